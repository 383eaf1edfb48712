/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon on D-Bus: the name org.pkeyd1 on the system bus, with one object, /org/pkeyd1, of the interface org.pkeyd1, which is
 * described here, and of org.pkeyd1.Leases (bus_leases.h).
 *
 *     properties      what the daemon does and knows, with PropertiesChanged
 *     Status          method: all properties at once
 *     Reload          method: as SIGHUP; answers with the outcome and the findings when the reload has ended; root only
 *     ReloadConfirm   method: the same, and the change is undone after so many seconds, unless it is confirmed
 *     ReloadWith      method: the same, with options by name
 *     Confirm         method: the change that waits stays; answers when that is stored; root only
 *     Undo            method: back to the generation before; answers as Reload; root only
 *     UndoGeneration  method: the same, if the generation that it names is in force
 *     Violations      method: the records of the violation table
 *     Violation       signal: one for each journal entry about violations
 *     ReloadEnded     signal: after any reload, by D-Bus or by SIGHUP
 *
 * All users may read. Whether a caller may change something is checked twice: by the bus (systemd/org.pkeyd1.conf: only root), and
 * here by the sender's user (root, or the one that pkeyd runs as), because that file may not be installed.
 *
 * Nothing here blocks: connecting to the bus, requesting the name and looking up a sender's user are asynchronous.
 * Nothing here grows without bound: at most BUS_MAX_WAITERS callers of the methods for root wait, an answer has at most
 * BUS_MAX_FINDINGS findings, Violations has bounds of its own (bus_violations.h), and while the bus does not take messages no more
 * are queued.
 * Without a bus the daemon continues; it logs that once, and tries again at growing intervals.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "pkeyd/journal.h"
#include "pkeyd/violation_list.h"
#include "shell/fabric.h"

#define BUS_MAX_WAITERS 16

struct bus;

enum bus_request_kind { BUS_RELOAD, BUS_CONFIRM, BUS_UNDO };

/* What an authorized caller asks for. bus_answer() with this number answers it. */
struct bus_request {
        enum bus_request_kind kind;
        uint64_t number;
        uint64_t confirm_for;   /* of BUS_RELOAD: seconds; 0: the change stays */
        uint64_t generation;    /* of BUS_UNDO: it is not undone unless it is in force; 0: whichever is */
        bool releases_stranded; /* of BUS_RELOAD: leases that have no place in the new policy; false: they refuse it */
        struct origin by;
};

struct bus_handlers {
        void (*asked)(const struct bus_request *q, void *userdata);
        void (*asked_lease)(const struct lease_request *q, void *userdata); /* bus_leases_answer() answers it */
        void (*settled)(void *userdata); /* clients can call the daemon now; or they cannot, and that was logged */
        void *userdata;
};

/* Connects when the loop runs, and again after failures. Borrows all but the handlers and policy_file. Returns 0, -ENOMEM or an
 * error of the event loop; *ret owned. */
int bus_new(sd_event *event, const struct fabric *fabric, const struct control *control, const struct violation_list *violations,
            const struct journal *journal, const char *policy_file, const struct bus_handlers *handlers, struct bus **ret);
struct bus *bus_free(struct bus *b);
DEFINE_CLEANUP(struct bus *, bus_free)

/* A reload has ended: sends the signal, and answers the callers whose requests it fulfils. */
void bus_answer(struct bus *b, const struct reload_end *end);
/* For the answers to requests about leases; borrowed. */
struct bus_leases *bus_get_leases(struct bus *b);
/* Sends the signal. */
void bus_emit_violation(struct bus *b, const struct violation_item *item);
