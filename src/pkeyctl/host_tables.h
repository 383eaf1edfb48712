/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The tables of this host as its kernel has them, compared beside the fabric or alone. */

#include "pkeyctl/context.h"
#include "shell/verbs_port.h"
#include "verify/verbs_tables.h"

/* Adds to v the differences in the kernel's tables of those ports of the snapshot that are on this host. A host whose ports
 * libibverbs does not know (a simulated fabric) is passed over in silence. Returns 0, -ENOMEM. */
int host_tables_verify(struct context *ctx, struct verification *v);

/* A port of this host whose table could not be judged. */
struct local_unread {
        uint32_t port;   /* of the snapshot of this host */
        const char *why;
};

/* What `verify --local` found; ctx->subnet is a snapshot of this host alone. */
struct local_result {
        struct local_verification verification;
        const struct local_unread *unread; /* these count: an answer was expected */
        const struct local_unread *down;   /* these do not: nothing is plugged in */
        uint32_t n_unread, n_down;
};
