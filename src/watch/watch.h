/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * watch/: what changed from one snapshot of the fabric to the next.
 *
 *     observed, verification --watch_update--> report: what is worth a line in the journal
 *
 * A daemon reads the same fabric every minute. What it reports must be news: a port that appeared, one that went away,
 * one that stopped answering or answers again, a table that was right and is not any more. So the watch remembers of
 * each managed port what was known of it at the last update, and an update gives only differences.
 *
 * A table that differs from the policy *drifted* if it was right at an earlier update under the same policy: somebody
 * else wrote it, or the port was reset. If it was never right, or the policy is a new one, it only *differs*. Either
 * is news once, and again when the way in which it differs changes.
 *
 * The watch is a mutable object of its own, since it outlives snapshots and generations: ports are known by node GUID
 * and port number, never by an index into a snapshot. An update goes through the old records and the new snapshot side by
 * side, both in ascending order.
 *
 * This folder refuses to know who logs, what is repaired and when the next update will be.
 */

#include "subnet/known.h"
#include "subnet/observed.h"
#include "util/cleanup.h"
#include "verify/verify.h"

enum watch_kind {
        WATCH_NEW,         /* an endport that was never seen before */
        WATCH_RETURNED,    /* an endport that was not there at the last update, and is known from before */
        WATCH_GONE,        /* an endport that was */
        WATCH_UNREACHABLE, /* its table could not be read, and could before (or it was never seen) */
        WATCH_BACK,        /* it could not be read, and was now */
        WATCH_DRIFTED,     /* its table was right under this policy, and is not */
        WATCH_DIFFERS,     /* its table is not what the policy says; it was not right before */
        WATCH_RIGHT,       /* its table only differed, and is what the policy says now */
        WATCH_REPAIRED,    /* its table had drifted, and is what the policy says now */
        WATCH_N_KINDS,
};

struct watch_event {
        enum watch_kind kind;
        const char *label;         /* as subnet_port_label; in the arena of the update */
        struct guid node_guid, port_guid;
        struct lid lid;
        uint8_t number;
        enum mad_outcome failure;  /* of WATCH_UNREACHABLE */
        uint16_t mad_status;       /* of WATCH_UNREACHABLE with MAD_REFUSED */
        const char *incomplete;    /* of WATCH_UNREACHABLE: not asked, as this node did not answer all of discovery; or NULL */
        const struct discrepancy *differs; /* of WATCH_DRIFTED and WATCH_DIFFERS; borrows the verification */
};

struct watch_report {
        struct watch_event *events; /* by kind, then ascending (node GUID, port number) */
        uint32_t n_events;
        uint32_t n_of[WATCH_N_KINDS];
        uint32_t n_ports;           /* managed ports, all */
        uint32_t n_right, n_differ; /* tables read and compared */
        uint32_t n_unreachable;     /* not read at the last attempt */
};

struct watch;

/* Returns owned, or NULL when memory is out. */
struct watch *watch_new(void);
struct watch *watch_free(struct watch *w);
DEFINE_CLEANUP(struct watch *, watch_free)

/* Looks. v may be NULL: tables are not judged then, only who is there and who answers. same_policy: the verification is
 * by the same policy as that of the last update that had one. known: the endports seen so far, those of this snapshot among
 * them; NULL: none, so that each is new. The first update finds nobody new. Returns 0 or -ENOMEM (the
 * watch is then as it was before); the report lives in the arena and borrows v. */
int watch_update(struct watch *w, struct arena *a, const struct observed *observed, const struct verification *v,
                 bool same_policy, const struct known *known, struct watch_report *ret);

/* The events of one kind, *ret_n of them. */
const struct watch_event *watch_report_events(const struct watch_report *report, enum watch_kind kind, uint32_t *ret_n);
