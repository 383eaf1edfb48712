/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The poll reads the counters that violations move: as a background task, spread over the interval; or once, all of them, as fast
 * as the MAD engine allows, as a stage (pkeyctl violations --once).
 *
 * It reads PortInfo of every managed endport (P_KeyViolations, 16 bits), and PortCounters (8 bits) of endports and of every leaf
 * port, or PortCountersExtended (64 bits) where ClassPortInfo of the PMA reports these counters. ClassPortInfo is read once, and
 * again when the node came back or answers again. In an interval the poll sends one MAD for each port and block of counters, in
 * an order that jumps from node to node (poll_schedule.h, poll_targets.h).
 *
 * Requests (poll_requests.c): A port that refuses an attribute as unknown is not queried for it again until its node comes back. A
 * port that does not answer is queried once in an interval, without retries; SILENT_FLIGHTS of such ports are queried at a time, so
 * that waiting for many of them takes no room from the others. The ports of one PMA are queried one after the other: a switch that
 * stops answering takes the room of one request, and then its ports are silent ones. If ClassPortInfo redirects to another LID, the
 * poll queries that one; if it redirects to another queue pair, the PMA counts as silent.
 *
 * Answers (poll_answers.c): When counters moved, or are read for the first time, another node may have the LID by now. So, with
 * check_hosts, before the samples come out, the poll reads NodeInfo. Counters of another node are dropped; without an answer the
 * block is read again in its next turn, as it is if a sweep finds the port at another LID before that. When the counter of a switch
 * port moved, another host than that of the snapshot may be plugged in, too. So the poll then reads from the switch through which
 * port it forwards to the host's LID: a subnet manager sets that before a link carries data. If it is another port, or the switch
 * does not answer, the sample is marked as doubted; if the switch refuses to answer, the snapshot is trusted.
 *
 * The only thing that the poll writes is a single counter of PortCounters or PortCountersExtended, which CounterSelect can
 * choose, to clear it. It never clears P_KeyViolations: a Set(PortInfo) cannot write only that, but would write the LID, the
 * M_Key and all else that belongs to the subnet manager as it was a moment ago.
 *
 * Samples come out as data; the caller gives them to the violation table.
 */

#include "ib/m_keys.h"
#include "mad_engine/stage.h"
#include "violations/violations.h"

struct violation_poll;

struct violation_poll_config {
        usec_t interval;
        bool clear_saturated;
        bool check_hosts;      /* before a counter that moved comes out: for a violation table that knows the hosts */
        struct m_keys *m_keys; /* for SMPs; the poll takes a reference; NULL: none */
};

/* One sample of one counter, or that pkeyd cleared it. */
struct violation_sample {
        struct violation_port port;
        enum violation_source source;
        bool is_cleared; /* then the rest is 0 */
        bool is_doubted; /* another host than that of the snapshot may be plugged in */
        unsigned bits;
        uint64_t value;
};

/* Returns owned, or NULL: out of memory. */
struct violation_poll *violation_poll_new(const struct violation_poll_config *config);
struct violation_poll *violation_poll_free(struct violation_poll *p);
DEFINE_CLEANUP(struct violation_poll *, violation_poll_free)
void violation_poll_set_config(struct violation_poll *p, usec_t now, const struct violation_poll_config *config);

/* Takes a new snapshot, of which the poll copies what it needs. What it learned of ports that are still there stays; the round goes
 * on where it is. 0 or -ENOMEM (then the old targets stay). */
int violation_poll_set_subnet(struct violation_poll *p, usec_t now, const struct subnet *subnet);

struct mad_background_task violation_poll_task(struct violation_poll *p);
/* One round from its beginning, all at once, with a few retries; done when every port answered or was given up. */
struct mad_stage violation_poll_once(struct violation_poll *p);

/* The next sample, in the order in which they were read; false: none. A counter at its maximum may be given to
 * violation_poll_clear(): with clear_saturated the poll sends one MAD that clears only that counter, if it can be cleared, and
 * when it was accepted there is a sample with is_cleared. */
bool violation_poll_next_sample(struct violation_poll *p, struct violation_sample *ret);
void violation_poll_clear(struct violation_poll *p, struct violation_port port, enum violation_source source);
/* Gives all samples that wait to the violation table; counters at their maximum may be cleared. 0, or the first error of
 * violations_see_counter(). */
int violations_take_samples(struct violations *violations, usec_t now, struct violation_poll *poll);

struct violation_poll_counters {
        uint32_t n_ports;      /* polled */
        uint32_t n_silent;     /* of them: did not answer the last time */
        uint64_t n_rounds;     /* finished */
        usec_t interval;       /* as configured */
        usec_t cycle_duration; /* of the last cycle, in which each polled port was queried; 0: not known */
        bool is_slow;          /* its rounds took more than 1.5 intervals each: even ports that answer are queried late */
        bool is_late;          /* as violation_poll_is_late() */
};
void violation_poll_get_counters(const struct violation_poll *p, struct violation_poll_counters *ret);
/* Some ports are not queried once in an interval: silent ones wait for each other, or all of them for slow answers. True after
 * VIOLATIONS_QUIET_INTERVALS such rounds, false again after as many others in a row: hosts that reboot are not worth a report. */
bool violation_poll_is_late(const struct violation_poll *p);
