/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * watch/: what changed from one snapshot of the fabric to the next.
 *
 *     observed, verification --watch_update--> report: the events that deserve a line in the journal
 *
 * A daemon reads the same fabric every minute, and must report only news: a port that appeared, one that went away, one that
 * stopped answering or answers again, a table that matched and now differs. So the watch keeps a record of each managed
 * port from the last update, and an update reports only differences.
 *
 * A table that differs from the policy *drifted* if it matched when it was compared last, the generation and what it gives the
 * port are the same as then, and pkeyd did not write it for a lease meanwhile: another program wrote it, or the port was reset.
 * Otherwise it only *differs*: pkeyd may not have written it yet, for a port can be silent while its entries change, and a lease,
 * a name or a place in the fabric changes them within a generation. Both are reported once, and again when the difference changes.
 *
 * The watch outlives snapshots and generations, so it identifies ports by node GUID and port number, never by an index into a
 * snapshot. An update merges the old records and the new snapshot, both in ascending order.
 *
 * This folder does not know what logs its events, what is repaired, or when the next update comes.
 */

#include "subnet/known.h"
#include "subnet/observed.h"
#include "util/macros.h"
#include "verify/verify.h"

enum watch_kind {
        WATCH_NEW,         /* an endport that was never seen before */
        WATCH_RETURNED,    /* a known endport that was not there at the last update */
        WATCH_GONE,        /* an endport that was there at the last update, and is not any more */
        WATCH_UNREACHABLE, /* the table cannot be read, and could be before, or the port is new */
        WATCH_READABLE,    /* the table can be read again */
        WATCH_DRIFTED,     /* the table matched the policy with the entries that it should hold, and now differs */
        WATCH_DIFFERS,     /* the table differs from the policy, and did not match it before */
        WATCH_MATCHES,     /* the table differed, and now matches the policy */
        WATCH_REPAIRED,    /* the table had drifted, and now matches the policy */
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
        const char *incomplete;    /* of WATCH_UNREACHABLE: the incomplete node that prevented the read, or NULL */
        const struct discrepancy *differs; /* of WATCH_DRIFTED and WATCH_DIFFERS; borrows the verification */
};

struct watch_report {
        struct watch_event *events; /* by kind, then ascending (node GUID, port number) */
        uint32_t n_events;
        uint32_t n_of[WATCH_N_KINDS];
        uint32_t n_ports;           /* managed ports */
        uint32_t n_right, n_differ; /* of them, those whose tables were read and compared */
        uint32_t n_unreachable;     /* of them, those whose tables could not be read */
};

struct watch;

/* Returns owned, or NULL if out of memory. */
struct watch *watch_new(void);
struct watch *watch_free(struct watch *w);
DEFINE_CLEANUP(struct watch *, watch_free)

/* Compares the snapshot with the last one. v NULL: reports presence and answers, but does not judge tables. generation: by which v
 * is. known: the endports seen so far, including those of this snapshot; NULL: none, so each endport that appears is new. The first
 * update reports no port as new. The report lives in the arena and borrows v. Returns 0 or -ENOMEM, which leaves the watch
 * unchanged. */
int watch_update(struct watch *w, struct arena *a, const struct observed *observed, const struct verification *v,
                 uint64_t generation, const struct known *known, struct watch_report *ret);

/* pkeyd wrote this table since the last update, for entries that the update did not compare it with: that it was right does not
 * count any more. */
void watch_forget_right(struct watch *w, struct guid node_guid, uint8_t port);

/* The events of one kind, *ret_n of them. */
const struct watch_event *watch_report_events(const struct watch_report *report, enum watch_kind kind, uint32_t *ret_n);
