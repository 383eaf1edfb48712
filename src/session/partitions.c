/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/partitions.h"

#include <errno.h>

#include "verify/explain.h"

static int count_table(struct arena *a, struct member_count *counts, const struct p_key *entries, uint32_t n,
                       struct explain_table *ret)
{
        int r = explain_table_make(a, entries, n, ret);

        for (uint32_t i = 0; r == 0 && i < ret->n_levels; i++)
                member_count_add(&counts[ret->levels[i].base], explain_table_membership(ret, ret->levels[i].base));
        return r;
}

static void compare_tables(bool *differs, const struct explain_table *table, const struct explain_table *other)
{
        for (uint32_t i = 0; i < table->n_levels; i++) {
                uint16_t base = table->levels[i].base;

                differs[base] |= explain_table_membership(table, base) != explain_table_membership(other, base);
        }
}

static int count_port(struct context *ctx, struct arena *a, uint32_t port, struct partitions *result)
{
        const struct observed_table *t = &ctx->observed->tables[port];
        const struct desired_port *wanted = ctx->desired ? &ctx->desired->ports[port] : NULL;
        struct explain_table by_policy = {}, in_hardware = {};
        int r = wanted ? count_table(a, result->by_policy, wanted->wanted, wanted->n_wanted, &by_policy) : 0;

        if (t->source != TABLE_READ) {
                result->n_unread++;
                return r;
        }
        r = r ?: count_table(a, result->in_hardware, t->entries, t->capacity, &in_hardware);
        if (r == 0 && wanted) {
                compare_tables(result->differs, &by_policy, &in_hardware);
                compare_tables(result->differs, &in_hardware, &by_policy);
        }
        return r;
}

static bool counts_differ(const struct member_count *a, const struct member_count *b)
{
        return a->full != b->full || a->limited != b->limited || a->both != b->both;
}

int partitions_count(struct context *ctx, struct partitions *result)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        int r;

        *result = (struct partitions) {
                .by_policy = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1),
                .in_hardware = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1),
                .differs = arena_new_array(ctx->arena, bool, P_KEY_BASE_MASK + 1),
        };
        r = scratch && result->by_policy && result->in_hardware && result->differs ? 0 : -ENOMEM;
        for (uint32_t p = 0; r == 0 && p < ctx->subnet->n_ports; p++)
                if (ctx->subnet->ports[p].role == PORT_ENDPORT)
                        r = count_port(ctx, scratch, p, result);
        for (uint32_t base = 0; r == 0 && base <= P_KEY_BASE_MASK; base++)
                result->differs[base] |= counts_differ(&result->by_policy[base], &result->in_hardware[base]);
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

        return json_pack("{s:o, s:o, s:o, s:o, s:o}", "partition", doc_text(*name ? name : NULL), "p_key", doc_base(base),
                         "policy", d->ctx->policy ? json_member_count(&r->by_policy[base]) : json_null(),
                         "hardware", json_member_count(&r->in_hardware[base]),
                         "differs", d->ctx->policy ? json_boolean(r->differs[base]) : json_null());
}
