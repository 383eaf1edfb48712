/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store_commands/vouches.h"

#include <errno.h>
#include <string.h>

#include "knowledge/table_records.h"
#include "session/output.h"
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
                .name = r->name, .presence = r->presence, .since = r->since, .read_at = r->read_at, .clock = r->clock,
                .by = held_by_record(k, record), .may_hold_anything = !r->entries || r->is_unfollowed,
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

/* When the wall clock is set, all times of a record move with it, unless they were recorded in another boot. */
static bool is_same_time(uint64_t x, uint64_t y, int64_t step)
{
        return x == y || y - x == (uint64_t) step;
}

static bool is_as_shown(const struct vouch *shown, const struct vouch *now)
{
        const int64_t step = now->clock - shown->clock;

        return now->presence == shown->presence && is_same_time(shown->since, now->since, step) &&
               is_same_time(shown->read_at, now->read_at, step) && now->may_hold_anything == shown->may_hold_anything &&
               now->n_may_hold == shown->n_may_hold &&
               memcmp(now->may_hold, shown->may_hold, now->n_may_hold * sizeof(*now->may_hold)) == 0;
}

static int check(struct context *ctx, uint32_t record, const struct vouch *shown, const char *nothing)
{
        const struct held_context context = output_held_context(ctx);
        struct vouches now = {};
        struct held_port port;
        int r = record == KNOWLEDGE_NONE ? 0 : vouches_add(ctx, record, &now);

        if (r < 0 || (now.n > 0 && is_as_shown(shown, &now.items[0])))
                return r;
        if (held_port_find(&context, shown->name, &port) < 0)
                return -ENOMEM;
        return findings_error(&ctx->findings, FINDING_HOST_BUSY, "repeat the command",
                              "what is known of %s has changed meanwhile; %s", port.label, nothing);
}

int vouches_store(struct context *ctx, const char *nothing, struct store_transaction *t, struct vouches *all)
{
        struct remembered *m = ctx->remembered;
        const char *who = store_get_user(ctx);
        usec_t wall = clock_wall();
        int r = who ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < all->n; i++) {
                struct vouch *v = &all->items[i];
                uint32_t record = knowledge_find(m->knowledge, v->name);

                r = check(ctx, record, v, nothing) ?: knowledge_vouch(m->knowledge, record, who, wall / USEC_PER_SEC);
                v->who = who;
                v->at = wall;
                if (r == 0)
                        knowledge_store_record(m->knowledge, record, m->boot, t);
        }
        return r;
}
