/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The connection to the system bus, on which pkeyd is. It is opened again when it breaks. */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "pkeyd_rest/door_journal.h"
#include "shell/fabric.h"

struct pkeyd_bus;

/* Connects now, because systemd may have started pkeyd-rest for a request that already waits. A bus that cannot be reached is
 * no error: it is logged, and tried again. Borrows the fabric and the journal. Returns 0 or negative errno; *ret owned. */
int pkeyd_bus_new(sd_event *event, const struct fabric *fabric, const struct journal_output *journal, struct pkeyd_bus **ret);
struct pkeyd_bus *pkeyd_bus_free(struct pkeyd_bus *b);
DEFINE_CLEANUP(struct pkeyd_bus *, pkeyd_bus_free)

/* NULL: there is no connection now. */
sd_bus *pkeyd_bus_get(const struct pkeyd_bus *b);
/* The fabric of the pkeyd to call, with its bus name and path. */
const struct fabric *pkeyd_bus_fabric(const struct pkeyd_bus *b);
/* Notes why pkeyd did not answer a call; NULL: it did. Logs when pkeyd stops answering, and when it answers again. */
void pkeyd_bus_note_result(struct pkeyd_bus *b, const char *why);
