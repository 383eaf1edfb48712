/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store_commands/vouches.h"

#include <errno.h>
#include <string.h>

#include "knowledge/table_records.h"
#include "store_commands/store_change.h"
#include "util/vector.h"

/* Every P_Key of the table as it was last read, and of the writes that are not confirmed. */
static int gather_keys(struct arena *a, const struct knowledge_record *r, struct vouch *v)
{
        size_t n = r->entries ? r->capacity : 0;
        struct p_key *keys = arena_new_array(a, struct p_key, n + r->n_writes * P_KEY_BLOCK_ENTRIES);

        if (!keys)
                return -ENOMEM;
        if (n > 0)
                memcpy(keys, r->entries, n * sizeof(*keys));
        for (size_t w = 0; w < r->n_writes; w++, n += P_KEY_BLOCK_ENTRIES)
                memcpy(keys + n, r->writes[w].entries, P_KEY_BLOCK_ENTRIES * sizeof(*keys));
        v->n_may_hold = p_keys_sort(keys, (uint32_t) n);
        v->may_hold = keys;
        return 0;
}

int vouches_add(struct context *ctx, uint32_t record, struct vouches *all)
{
        const struct knowledge *k = ctx->remembered->knowledge;
        const struct knowledge_record *r = knowledge_get(k, record);
        struct vouch *v;

        if (VECTOR_GROW(ctx->arena, all->items, all->n, all->allocated) < 0)
                return -ENOMEM;
        v = &all->items[all->n++];
        *v = (struct vouch) {
                .name = r->name, .by = held_by_record(k, record), .may_hold_anything = !r->entries || r->is_unfollowed,
                .who = r->vouched ? arena_strdup(ctx->arena, r->vouched_by ?: "?") : NULL, .at = r->vouched_at * USEC_PER_SEC,
        };
        return r->vouched && !v->who ? -ENOMEM : gather_keys(ctx->arena, r, v);
}

bool vouches_have(const struct vouches *all, struct knowledge_name name)
{
        for (size_t i = 0; i < all->n; i++)
                if (knowledge_same_name(all->items[i].name, name))
                        return true;
        return false;
}

int vouches_store(struct context *ctx, struct store_transaction *t, struct vouches *all)
{
        struct remembered *m = ctx->remembered;
        const char *who = store_get_user(ctx);
        usec_t wall = clock_wall();
        int r = who ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < all->n; i++) {
                uint32_t record = knowledge_find(m->knowledge, all->items[i].name);

                all->items[i].who = who;
                all->items[i].at = wall;
                r = record == KNOWLEDGE_NONE ? -ESTALE : knowledge_vouch(m->knowledge, record, who, wall / USEC_PER_SEC);
                if (r == 0)
                        knowledge_store_record(m->knowledge, record, m->boot, t);
        }
        return r;
}
