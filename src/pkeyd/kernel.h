/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "desired/desired.h"
#include "pkeyd/generation.h"
#include "pkeyd/picture.h"
#include "shell/verbs_port.h"

/*
 * This host's kernel as the second witness of what its own ports hold, and as the first to tell when that changes.
 *
 * At the end of each pass the tables of local ports, as libibverbs gives them, are held against the policy and against
 * what the ports' SMAs answered. The kernel's follow a moment later: where they differ they are looked at again when
 * IBV_EVENT_PKEY_CHANGE comes and when a grace period is over (not all hardware raises it at every Set), then the SMA is
 * asked once more; what differs even then is said.
 *
 * Between passes an event on a local port is a reason to look: a table that pkeyd did not write has drifted, a LID or an SM
 * that changed may be another fabric, a device that failed is no device.
 *
 * A host whose ports libibverbs does not know (a simulated fabric) has no witness, and nothing is said of that.
 */
struct daemon;
struct kernel;

/* Returns 0 or negative errno; *ret owned; borrows d and its event loop. */
int kernel_new(struct daemon *d, struct kernel **ret);
struct kernel *kernel_free(struct kernel *k);

/* For pass.c: so the picture's tables should be. Copies what it needs, but g, which it borrows until kernel_forget. */
void kernel_expect(struct kernel *k, const struct generation *g, const struct desired *desired,
                   const struct picture *picture);
/* Each port of this host that libibverbs knows, as it is now. */
void kernel_each_port(struct kernel *k, void (*see)(const struct verbs_port *port, void *userdata), void *userdata);
/* The generation goes away. */
void kernel_forget(struct kernel *k);
