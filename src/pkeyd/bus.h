/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon on D-Bus: the name org.pkeyd1 on the system bus, with one object, /org/pkeyd1, of one interface,
 * org.pkeyd1.
 *
 *     properties      what the daemon does and knows, with PropertiesChanged
 *     Status          all of them at once
 *     Reload          as SIGHUP; answers when the reload has ended, with how, and the findings; root only
 *     Violations      what was counted
 *     Violation       signal: one for each entry of the journal about violations
 *     ReloadEnded     signal: of any reload, whoever asked for it
 *
 * Everybody may read. Who may call Reload is decided twice: by the bus (systemd/org.pkeyd1.conf) and here by the user of
 * the sender, for a policy file can be missing.
 *
 * Nothing here blocks: the bus is connected to, the name is asked for and a sender's user is looked up asynchronously.
 * Nothing here grows without bound: callers of Reload that wait are BUS_MAX_WAITERS at most, an answer has
 * BUS_MAX_FINDINGS findings, Violations has bounds of its own (bus_violations.h), and when the bus does not take what is sent
 * to it nothing more is put in its way. Without a bus the daemon runs all the same; that is logged once, and it is tried again
 * now and then.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "pkeyd/journal.h"
#include "pkeyd/violation_list.h"

#define BUS_MAX_WAITERS  16
#define BUS_MAX_FINDINGS 256

struct bus;

struct bus_handlers {
        /* A caller that may asks for a reload; bus_answer with this number answers it. */
        void (*reload)(uint64_t request, void *userdata);
        void *userdata;
};

/* Connects, or tries again later. Borrows all but the handlers. Returns 0, -ENOMEM or an error of the event loop; *ret
 * owned. */
int bus_new(sd_event *event, const struct control *control, const struct violation_list *violations,
            const struct journal *journal, const char *policy_file, const struct bus_handlers *handlers, struct bus **ret);
struct bus *bus_free(struct bus *b);

/* A reload has ended: the signal, for everybody, and the answers to those who wait. */
void bus_answer(struct bus *b, const struct reload_end *end);
/* The signal. Copies what it needs. */
void bus_emit_violation(struct bus *b, const struct violation_item *item);
