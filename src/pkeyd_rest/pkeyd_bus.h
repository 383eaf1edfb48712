/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The connection to the system bus, on which pkeyd is. It is opened again when it breaks. */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "pkeyd_rest/door_journal.h"
#include "shell/fabric.h"

struct pkeyd_bus {
        sd_event *event;
        const struct fabric *fabric; /* of the pkeyd to call */
        const struct journal_output *journal;
        sd_bus *bus;            /* owned; NULL: not connected */
        sd_event_source *retry;
        bool is_broken;         /* the timer closes the connection, because one of its own callbacks noticed that it broke */
        bool logged_absent;
};

/* Connects now, because systemd may have started pkeyd-rest for a request that already waits. A bus that cannot be reached is
 * no error: it is logged, and tried again. Borrows the fabric and the journal. Returns 0 or negative errno. */
int pkeyd_bus_init(struct pkeyd_bus *b, sd_event *event, const struct fabric *fabric, const struct journal_output *journal);
/* Zeroed: nothing to do. */
void pkeyd_bus_done(struct pkeyd_bus *b);

/* NULL: there is no connection now. */
sd_bus *pkeyd_bus_get(const struct pkeyd_bus *b);
/* Notes why pkeyd did not answer a call; NULL: it did. Logs when pkeyd stops answering, and when it answers again. */
void pkeyd_bus_note_result(struct pkeyd_bus *b, const char *why);
