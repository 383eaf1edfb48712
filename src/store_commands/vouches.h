/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Ports for which a person vouches that they hold nothing (forget, replace). */

#include "knowledge/held.h"
#include "session/context.h"

/* A port for which a person vouches, or will: what is known of it when the person is asked. */
struct vouch {
        struct knowledge_name name;
        enum knowledge_presence presence;
        uint64_t since, read_at;       /* seconds since 1970, as in struct knowledge_record */
        int64_t clock;
        struct held_by by;
        const struct p_key *may_hold;  /* ascending; without the vouch */
        uint32_t n_may_hold;
        bool may_hold_anything;        /* its table was never read */
        const char *who;               /* NULL: no person yet */
        usec_t at;                     /* CLOCK_REALTIME */
};

/* Zeroed: none. In the context's arena. */
struct vouches {
        struct vouch *items;
        size_t n, allocated;
};

/* Adds a record of ctx->remembered. Returns 0 or -ENOMEM. */
int vouches_add(struct context *ctx, uint32_t record, struct vouches *all);
bool vouches_have(const struct vouches *all, struct knowledge_name name);

/* Part of a store_changer: the user vouches for these ports, unless one of them was seen or read, or may hold something else, since
 * vouches_add(). Puts their records and no others: what the fabric showed to this command may be older than what is known of other
 * ports. nothing: as of store_change(). Returns 0, -EBADMSG (findings say why) or -ENOMEM. */
int vouches_store(struct context *ctx, const char *nothing, struct store_transaction *t, struct vouches *all);
