/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The InfiniBand ports of this host with their P_Key tables, as its kernel has them: sends no MAD, opens only uverbs devices, and
 * needs no root. */

#include "session/context.h"
#include "shell/verbs_port.h"

struct host_port {
        struct verbs_port verbs;
        bool is_down;
        const char *unread;          /* why its table could not be read, though an answer was expected; NULL: it was, or is_down */
        const struct p_key *entries; /* by index; NULL: not read */
        uint32_t n_entries;
};

/* The ports that -C and -P choose; an error if none of them is up. Returns 0, -EBADMSG (see the findings) or -ENOMEM; *ret lives in
 * the context's arena. */
int host_ports_read(struct context *ctx, struct host_port **ret, uint32_t *ret_n);
