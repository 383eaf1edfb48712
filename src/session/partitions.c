/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/partitions.h"

#include <errno.h>

#include "verify/explain.h"

static int count_table(struct arena *a, struct member_count *counts, const struct p_key *entries, uint32_t n)
{
        struct explain_table table;
        int r = explain_table_make(a, entries, n, &table);

        for (uint32_t i = 0; r == 0 && i < table.n_levels; i++)
                member_count_add(&counts[table.levels[i].base], explain_table_membership(&table, table.levels[i].base));
        return r;
}

int partitions_count(struct context *ctx, struct partitions *result)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        int r;

        *result = (struct partitions) {
                .by_policy = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1),
                .in_hardware = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1),
        };
        r = scratch && result->by_policy && result->in_hardware ? 0 : -ENOMEM;
        for (uint32_t p = 0; r == 0 && p < ctx->subnet->n_ports; p++) {
                const struct observed_table *t = &ctx->observed->tables[p];

                if (ctx->subnet->ports[p].role != PORT_ENDPORT)
                        continue;
                if (ctx->desired)
                        r = count_table(scratch, result->by_policy, ctx->desired->ports[p].wanted, ctx->desired->ports[p].n_wanted);
                if (t->source != TABLE_READ)
                        result->n_unread++;
                else if (r == 0)
                        r = count_table(scratch, result->in_hardware, t->entries, t->capacity);
        }
        return r;
}

uint16_t partitions_next(const struct context *ctx, const struct partitions *r, uint32_t base)
{
        for (; base <= P_KEY_BASE_MASK; base++) {
                const struct member_count *c = &r->in_hardware[base];

                if (c->full + c->limited + c->both > 0 || (ctx->policy && policy_find_base(ctx->policy, (uint16_t) base) >= 0))
                        return (uint16_t) base;
        }
        return 0;
}

json_t *json_partition(struct doc *d, const struct partitions *r, uint16_t base)
{
        const char *name = output_partition(d->ctx, base);

        return json_pack("{s:o, s:o, s:o, s:o}", "partition", doc_text(*name ? name : NULL), "p_key", doc_base(base),
                         "policy", d->ctx->policy ? json_member_count(&r->by_policy[base]) : json_null(),
                         "hardware", json_member_count(&r->in_hardware[base]));
}
