/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * violations/: packets that were dropped because their P_Key does not match, and who sent them.
 *
 *     counters (poll.h) --.
 *                          >--> violation table --> reports --> sentences (attribution.h)
 *     notices ------------'
 *
 * The fabric drops a packet whose P_Key does not match and counts it. The *poll* reads these counters, a few MADs at a time;
 * *counter_samples.h* computes from two samples of a counter by how much it moved. The *violation table* keeps one record for each
 * port, source and host behind it, and is the only place where violations are counted: the journal, the metrics, the bus and
 * pkeyctl all show its numbers. *history.h* keeps the memberships that endports had before the last changes, and *attribution.h*
 * writes a sentence from all that.
 *
 * When pkeyd reports (report_scheduler.h): the first violation of an episode at once; then once in an interval for each record, if
 * there were more; and that it is quiet again, when nothing came for VIOLATIONS_QUIET_INTERVALS intervals. A counter that reaches
 * its maximum is reported at once, too. In an interval VIOLATIONS_STORM_PORTS records are reported one by one. The others wait for
 * its end; if the limit was exceeded, one report sums them up, with the worst ten, and they are not reported again. While a storm
 * goes on, only what is new is reported between two summaries; and the records of a summary become quiet in a summary. Fewer than
 * `threshold` violations in an interval are counted but not reported. So the sum of `count` over all reports of a record, without
 * those of quiet (which repeat the whole episode), never exceeds its total, and equals it with a threshold of 1 once it is quiet.
 *
 * A record belongs to the host that was behind the port when the counter was read, and keeps the name that it had then. When the
 * host moves, its episode ends, and the first sample after that counts for no host. A notice belongs to the hosts that had its
 * LIDs when it came (notice_ends.h).
 *
 * Invariants: the first sample of a counter is a baseline and no violation; a counter that went down was reset (its new value
 * counts); one of 8 or 16 bits at its maximum is saturated: that is reported once, and it counts no more until it is cleared
 * (wider ones wrap around). Ports are identified by node GUID and number, so that records outlive snapshots. Everything is
 * bounded: there are at most VIOLATIONS_MAX_RECORDS records; the one that has been quiet longest makes room (its violations stay in
 * the totals of the sources). Numbers stop at their maximum.
 *
 * The cost of a step does not depend on the number of records, except for a summary (once per interval) and the list of all
 * records.
 *
 * Sans I/O: `now` is a monotonic time, and an argument. This folder does not know what logs, what queries, or the wall time.
 */

#include "ib/sa.h"
#include "subnet/observed.h"
#include "util/hash.h"
#include "util/macros.h"

#define VIOLATIONS_MAX_RECORDS 65536
#define VIOLATIONS_STORM_PORTS 16
#define VIOLATIONS_WORST       10
#define VIOLATIONS_QUIET_INTERVALS 5

enum violation_source {
        VIOLATION_P_KEY_VIOLATIONS,  /* PortInfo:P_KeyViolations of an endport: received packets */
        VIOLATION_RCV_CONSTRAINT,    /* PortRcvConstraintErrors of a switch port or endport: incoming packets */
        VIOLATION_XMIT_CONSTRAINT,   /* PortXmitConstraintErrors: outgoing packets */
        VIOLATION_BAD_PKEY_CNTR,     /* bad_pkey_cntr of a port of this host, as its kernel has it */
        VIOLATION_N_COUNTERS,        /* those above are counters, those below are notices */
        VIOLATION_NOTICE_257 = VIOLATION_N_COUNTERS, /* P_Key mismatch at an endport */
        VIOLATION_NOTICE_258,        /* Q_Key mismatch at an endport */
        VIOLATION_NOTICE_259,        /* P_Key mismatch at a switch port */
        VIOLATION_N_SOURCES,
};

static inline bool violation_source_is_notice(enum violation_source s)
{
        return s >= VIOLATION_N_COUNTERS && s < VIOLATION_N_SOURCES;
}

/* "p_key_violations", "port_rcv_constraint_errors", ..., "trap_257"; a static string: PKEYD_SOURCE, labels of metrics. */
const char *violation_source_to_string(enum violation_source s);

/* A port, independent of a snapshot. */
struct violation_port {
        struct guid node_guid;
        uint8_t number;
};

static inline bool violation_port_equal(struct violation_port a, struct violation_port b)
{
        return a.node_guid.v == b.node_guid.v && a.number == b.number;
}

/* By node GUID, then number; for qsort(), too. */
static inline int violation_port_compare(const void *a, const void *b)
{
        const struct violation_port *x = a, *y = b;

        return ORDER(x->node_guid.v, y->node_guid.v) ?: ORDER(x->number, y->number);
}

static inline uint64_t violation_port_hash(struct violation_port port)
{
        return hash_mix(hash_mix(0, port.node_guid.v), port.number);
}

/* The endport that a counter is about, as it was known when the counter was read: the port itself, or what was plugged into the
 * switch port, whatever is plugged in there later and whatever its name is then. */
struct violation_host {
        struct guid node_guid, guid; /* of the node and of the port; 0: the host is not known, and the rest is empty (but for the
                                        label of an end of a notice) */
        struct lid lid;
        uint8_t number;
        const char *label, *name; /* "node0042 mlx5_0/1", and "node0042" for later in a sentence */
        const char *node, *device; /* "node0042" (the description, if that names no host) and "mlx5_0", which may be "" */
        const char *at_switch;    /* label of the switch port that it is plugged into; NULL: it is not known */
        const char *switch_name;  /* its two parts; NULL and 0: not known */
        uint8_t switch_port;
};

static inline struct violation_port violation_host_port(const struct violation_host *host)
{
        return (struct violation_port) { host->node_guid, host->number };
}

/* An endport of a snapshot (hosts.c). Strings live in the arena or in the subnet. 0 or -ENOMEM. */
int violation_host_open(struct arena *a, const struct subnet *s, uint32_t endport, struct violation_host *ret);

/* The sender and the receiver of the packet that a notice is about, as far as they were known when the notice came: later,
 * another host may have the LID. An end whose GUID is 0 has a label only: the addresses in the packet. */
struct violation_ends {
        struct violation_host from, to;
        bool from_conflicts; /* the sender's LID and GID belong to two ports */
};

/* Whether a switch port checked P_Keys when its counter moved. */
enum violation_filter {
        VIOLATION_FILTER_UNKNOWN,
        VIOLATION_FILTER_ON,         /* at both samples of each count */
        VIOLATION_FILTER_NOT_ALWAYS,
};

/* All of one source at one port and of one host (and for notices: with one key between the same two ends). */
struct violation_record {
        struct violation_port port;
        enum violation_source source;
        const struct violation_host *host; /* not NULL in what this folder returns. Borrowed as long as violations_records() */
        struct notice notice;     /* the last one, of VIOLATION_NOTICE_*: key, LIDs, GIDs, QPs */
        const struct violation_host *from, *to; /* of a notice: its ends, as in violation_ends; borrowed as `host` */
        bool from_conflicts;
        uint64_t total;           /* since pkeyd was started */
        uint64_t episode;         /* since the episode began; 0: quiet */
        uint64_t unreported;      /* counted and not in a report yet */
        usec_t first_since;       /* the last sample before `first`; 0: not known */
        usec_t first, last;       /* when it first and last counted a violation; 0: it never did, it only is saturated */
        usec_t host_first, host_first_since; /* the same of the host and this source, at whatever port and under whatever name;
                                                0: not known */
        usec_t episode_began;
        enum violation_filter filter, episode_filter; /* of `total`; of the present or last episode */
        bool saturated;           /* the counter is at its maximum: there may have been more */
        unsigned bits;            /* of the counter; 0: a notice, or not known */
};

enum violation_kind {
        VIOLATION_FIRST,     /* the first of an episode */
        VIOLATION_MORE,      /* more in an interval */
        VIOLATION_SATURATED, /* the counter is at its maximum: it counts no more until it is cleared */
        VIOLATION_QUIET,     /* the episode is over */
        VIOLATION_STORM,     /* many ports; `worst` has the records */
        VIOLATION_ALL_QUIET, /* many ports, in whose episodes nothing more came; `worst` as well */
};

/* An entry of the journal. Of VIOLATION_STORM and VIOLATION_ALL_QUIET: count is the sum, n_ports how many ports, `record` is
 * unused. */
struct violation_report {
        enum violation_kind kind;
        struct violation_record record; /* as it is after this report */
        uint64_t count;                 /* violations that were not reported before; SATURATED: perhaps 0; QUIET and ALL_QUIET:
                                           those of the whole episodes, again */
        /* The earliest time at which they may have come. First report of an episode: the last sample without them (0: not known);
         * later ones: the last report; STORM: the earliest of these; QUIET, ALL_QUIET: the (first) episode's begin. */
        usec_t since;
        uint32_t n_ports;
        uint32_t n_saturated;           /* records of a STORM whose counter reached its maximum */
        /* the largest first; `unreported` is what each has in this report */
        struct violation_record worst[VIOLATIONS_WORST];
        uint32_t n_worst;
};

struct violations_config {
        usec_t interval;    /* at most one report of a record in it; at most a day */
        uint64_t threshold; /* of violations in an interval, below which nothing is reported; at least 1 */
};

struct violations;

/* Returns owned, or NULL: out of memory. */
struct violations *violations_new(const struct violations_config *config);
struct violations *violations_free(struct violations *v);
DEFINE_CLEANUP(struct violations *, violations_free)
/* Records stay. */
void violations_set_config(struct violations *v, const struct violations_config *config);

/* Whether switch ports check P_Keys, for the samples that follow. Borrowed until the next call. Either may be NULL: not known; the
 * bits of the subnet count. */
void violations_set_observed(struct violations *v, const struct subnet *subnet, const struct observed *observed);
/* Takes a sample of a counter of `bits` bits (1 to 64) at a port. Returns 1 if it is at its maximum (it may be cleared), 0, -EINVAL
 * (no counter), or -ENOMEM (then the next sample counts what this one missed). */
int violations_see_counter(struct violations *v, usec_t now, struct violation_port port, enum violation_source source,
                           unsigned bits, uint64_t value);
/* pkeyd cleared the counter: its next value counts from 0. */
void violations_counter_cleared(struct violations *v, struct violation_port port, enum violation_source source);

/* Sets the host behind this port from now on; copied. Another host than before (by GUID) is a move: the episodes of the old one
 * end, and the next sample of each counter counts for no host, because either may have sent the packets. A new name is a new
 * record. 0, or -ENOMEM (then the port has no host). */
int violations_set_host(struct violations *v, struct violation_port port, const struct violation_host *host);
/* The same for all ports of a snapshot. Where no host is plugged in now, the last one stays, but the next sample counts for no
 * host: another one may have come and gone. 0 or -ENOMEM. */
int violations_set_subnet(struct violations *v, const struct subnet *subnet);
/* Another host than the known one may be plugged in: the next sample of this counter counts for no host. */
void violations_doubt_host(struct violations *v, struct violation_port port, enum violation_source source);

/* Counts a notice about this port: for 257 and 258 the endport, for 259 the switch port that refused the packet. The ends (see
 * violation_ends_of_notice()) are copied. 0, -EINVAL (none of the three), or -ENOMEM. */
int violations_see_notice(struct violations *v, usec_t now, struct violation_port port, const struct notice *notice,
                          const struct violation_ends *ends);

/* The next report that is due at `now`; false: none. */
bool violations_next_report(struct violations *v, usec_t now, struct violation_report *ret);
/* When the next report may be due, if nothing is counted before; USEC_INFINITY: none. */
usec_t violations_due(const struct violations *v);

/* All records, ascending (node GUID, number, source, ...). Borrowed until the next call that sees or reports something. */
const struct violation_record *violations_records(struct violations *v, uint32_t *ret_n);
/* All violations of a source since pkeyd was started, with those of records that had to make room. */
uint64_t violations_total(const struct violations *v, enum violation_source source);
