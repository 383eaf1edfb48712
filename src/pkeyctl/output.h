/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How results are told. A command puts what it found into a struct result and ends with output(); apply also shows what it
 * proposes before it writes, and watch has one line after the other. Text goes to stdout, findings to stderr. JSON is one
 * object on stdout, findings inside it.
 */

#include "apply/apply.h"
#include "doctor/doctor.h"
#include "events/held_text.h"
#include "pkeyctl/bus_client.h"
#include "pkeyctl/context.h"
#include "pkeyctl/host_tables.h"
#include "util/text.h"
#include "verify/changes.h"
#include "verify/explain.h"
#include "verify/verify.h"

/* What `check` found: sizes, and per partition how many endports of the topology are what in it. */
struct member_count {
        uint32_t full, limited, both;
};

static inline void member_count_add(struct member_count *count, enum membership m)
{
        count->limited += m == MEMBERSHIP_LIMITED;
        count->full += m == MEMBERSHIP_FULL;
        count->both += m == MEMBERSHIP_BOTH;
}

struct check_result {
        struct member_count *counts;   /* per partition of the policy; NULL: no topology was given */
};

struct plan_result {
        const struct changes *changes;
        const uint32_t *unreachable;   /* ports whose tables were not read */
        uint32_t n_unreachable;
        uint32_t n_silent;             /* links that are up and whose other end did not answer discovery */
        const uint32_t *frozen;        /* endports */
        uint32_t n_frozen;
        const struct held_list *held;  /* what would wait; NULL: not known */
};

struct apply_result {
        const struct plan_result *plan;
        const struct apply *apply;     /* NULL: there was nothing to write */
        const struct held_list *held;  /* what waits; NULL: not known */
        struct apply_summary summary;
        const struct verification *verification;
        bool verified;
        bool interrupted;
        uint64_t generation;           /* of the policy, now in force; 0: not all of it is */
};

/* One base in `show partitions`. */
struct partition_row {
        uint16_t base;
        int partition;                 /* of the policy; -1: nobody asked for it */
        struct member_count by_policy, in_hardware;
};

struct partitions_result {
        const struct partition_row *rows;
        uint32_t n_rows;
        uint32_t n_unread;             /* endports whose tables are not counted */
};

struct ports_result {
        const uint32_t *ports;
        uint32_t n_ports;
};

/* `explain`: one endport, by what the policy wants and by what the hardware holds. */
struct explain_side {
        uint32_t port;
        struct explain_end by_policy, in_hardware;
};

#define EXPLAIN_MAX_LISTED 16

struct explain_listed {
        const struct explain_side *a, *b;
};

struct explain_result {
        struct explain_listed listed[EXPLAIN_MAX_LISTED]; /* the first pairs */
        uint32_t n_listed;
        uint64_t n_pairs;              /* pairs of different endports */
        uint64_t n_talk_policy, n_talk_hardware, n_unknown;
};

struct doctor_result {
        const struct doctor_facts *facts; /* without a subnet: the fabric could not be looked at, findings say why */
        struct diagnoses diagnoses;
};

/* A port for which a person vouches, or did. */
struct vouch {
        struct knowledge_name name;
        struct held_by by;
        const struct p_key *may_hold;  /* ascending; but for the vouch */
        uint32_t n_may_hold;
        bool may_hold_anything;        /* its table was never read */
        const char *who;               /* NULL: nobody yet */
        usec_t at;                     /* CLOCK_REALTIME */
};

struct vouches_result {
        const struct vouch *items;
        uint32_t n;
};

/* show held */
struct held_result {
        const struct held_list *list;  /* what would wait if all ports that were read answer */
        bool has_daemon;
        struct daemon_status daemon;   /* which has seen more, such as a write that was not confirmed */
};

/* How a reload of the daemon ended. */
struct reload_result {
        const char *outcome;           /* "carried-out", ...: see org.pkeyd1(5) */
        uint64_t generation;           /* in force */
        const char *text;
        struct daemon_status daemon;   /* behind it, for its held bases; empty: not known */
};

struct violations_result {
        const struct seen_violation *items; /* the latest first */
        uint32_t n_items;
        uint64_t n_all;                /* that there are; the daemon gives a bounded number */
        const char *node;              /* only of this one; NULL: of all */
        usec_t since;                  /* what was asked for; 0: all. CLOCK_REALTIME */
        usec_t counted_since;          /* 0: nothing is counted */
        bool once;                     /* polled twice by this program */
        uint32_t n_polled, n_silent;   /* ports, of once */
        usec_t interval;               /* between the two looks */
};

/* One line of `watch`. */
enum watched_kind {
        WATCHED_STATUS,                /* as it is at the beginning, and when the daemon came back */
        WATCHED_CHANGE,
        WATCHED_RELOAD,
        WATCHED_VIOLATION,
        WATCHED_GONE,
};

struct watched {
        enum watched_kind kind;
        usec_t when;                   /* CLOCK_REALTIME */
        struct daemon_status status;   /* of WATCHED_STATUS and WATCHED_CHANGE */
        uint64_t changed;              /* fields of it */
        struct reload_result reload;
        struct seen_violation violation;
};

enum result_kind {
        RESULT_REFUSED,                /* findings, and that nothing was sent */
        RESULT_CHECK,
        RESULT_PLAN,
        RESULT_APPLY,
        RESULT_VERIFY,
        RESULT_VERIFY_LOCAL,
        RESULT_PORTS,                  /* show ports */
        RESULT_PARTITIONS,
        RESULT_PORT,                   /* show port, which may be several */
        RESULT_FILE,                   /* that was made: to --output, or standard output */
        RESULT_HELD,                   /* show held */
        RESULT_FORGOTTEN,
        RESULT_VOUCHES,                /* show vouches */
        RESULT_EXPLAIN,
        RESULT_DOCTOR,
        RESULT_STATUS,
        RESULT_RELOAD,
        RESULT_VIOLATIONS,
};

struct result {
        enum result_kind kind;
        enum exit_status status;
        union {
                struct check_result check;
                struct plan_result plan;
                struct apply_result apply;
                struct verification *verification;
                struct local_result local;
                struct ports_result ports;
                struct partitions_result partitions;
                struct {
                        const char *bytes;
                        size_t n;
                } file;
                struct held_result held;
                struct vouches_result vouches;
                struct explain_result explain;
                struct doctor_result doctor;
                struct daemon_status daemon;
                struct reload_result reload;
                struct violations_result violations;
        };
};

/* Tells the result as --json says. Returns its status. */
int output(struct context *ctx, const struct result *r);
/* What apply is about to do. */
void output_proposal(struct context *ctx, const struct plan_result *r);
/* For what forget asks to vouch. */
void output_vouches_proposal(struct context *ctx, const struct vouches_result *r);
void output_watched(struct context *ctx, const struct watched *r);

/* Output went wrong: the run ends with its first error, in the context. */
void output_fail(struct context *ctx, int r);

/* What both kinds say in the same words. Texts are static or live in the context's arena; where memory is out they are
 * "?", and the output has failed. */
const char *output_format(struct context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *output_taken(struct context *ctx, const struct text *t);
/* "node0001 mlx5_0/1", see subnet_port_label(). */
const char *output_label(struct context *ctx, uint32_t port);
/* "node[0001-0016]", see fold_ports(). */
const char *output_folded(struct context *ctx, const uint32_t *ports, uint32_t n);

/* Writes the file that --output names, which must not be there. Returns 0, or -EBADMSG: a finding says why, and the
 * output has failed. */
int output_write_file(struct context *ctx, const char *bytes, size_t n);

/* A node's name, or its description if it has none. */
const char *output_node(const struct context *ctx, uint32_t port);
/* The partition of a base: its name, or "" if the policy has none or there is no policy. */
const char *output_partition(const struct context *ctx, uint16_t base);
/* What held bases are put into words with. */
struct held_words output_held_words(struct context *ctx);
/* Why a port's table was not read. */
const char *output_failure(struct context *ctx, uint32_t port);
/* One sentence about an outcome of apply on that port. */
const char *output_reason(struct context *ctx, uint32_t port, const struct apply_outcome *outcome);
/* What stands between two endports, or through what they talk, in words. */
const char *output_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                           bool by_policy);
/* The line that makes an endport a member of a base: "partitions.yaml:14", "the default partition's own rules"; "" if it is
 * none or there is no policy. */
const char *output_line(struct context *ctx, uint32_t port, uint16_t base, const struct port_membership **ret);
