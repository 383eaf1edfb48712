/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/commands.h"
#include "shell/findings_print.h"

/* The result: an array for the partitions of the policy; NULL: no topology was given. */
static void json_check(struct doc *d, const void *result)
{
        const struct member_count *counts = result;
        json_t *partitions = json_array();

        for (uint32_t i = 0; i < d->ctx->policy->n_partitions; i++) {
                const struct policy_partition *p = &d->ctx->policy->partitions[i];

                doc_append(d, partitions,
                           json_pack("{s:o, s:o, s:b, s:i, s:o}", "partition", doc_text(p->name), "p_key",
                                     doc_base(p->base), "index0", p->index0, "lines", p->n_rules, "members",
                                     counts ? json_member_count(&counts[i]) : json_null()));
        }
        doc_add(d, d->root, "{s:o, s:i, s:o}", "file", doc_text(d->ctx->policy->file), "groups", d->ctx->policy->n_groups,
                "partitions", partitions);
}

static void text_check(struct context *ctx, const void *result)
{
        const struct member_count *counts = result;
        const struct policy *policy = ctx->policy;
        struct text_table t;
        char count[64];

        text_table_begin(&t, "PARTITION|P_KEY|>LINES|>FULL|>LIMITED|>BOTH", counts ? 0 : 3);
        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                const struct policy_partition *p = &policy->partitions[i];
                const struct member_count none = {}, *c = counts ? &counts[i] : &none;

                text_table_row(&t, NULL, "%s\t0x%04x\t%u\t%u\t%u\t%u", p->name, p->base, p->n_rules, c->full, c->limited, c->both);
        }
        text_table_print(ctx, &t);
        findings_print_count(&ctx->findings, count, sizeof(count));
        printf("%s: %u partition%s, %u group%s; %s\n", policy->file, policy->n_partitions,
               text_plural(policy->n_partitions), policy->n_groups, text_plural(policy->n_groups), count);
}

static int count_members(struct context *ctx, struct member_count **ret)
{
        const struct memberships *m;
        int r = policy_resolve(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &ctx->memberships);

        if (r < 0)
                return r;
        *ret = arena_new_array(ctx->arena, struct member_count, ctx->policy->n_partitions);
        m = ctx->memberships;
        for (uint32_t i = 0; *ret && i < m->first[ctx->subnet->n_ports]; i++)
                member_count_add(&(*ret)[m->items[i].partition], m->items[i].membership);
        return *ret ? 0 : -ENOMEM;
}

int command_check(struct context *ctx)
{
        static const struct printer printer = { text_check, json_check, QUIET };
        struct member_count *counts = NULL;
        int r = ctx->subnet ? count_members(ctx, &counts) : 0;

        return r < 0 ? r : output(ctx, &printer, EXIT_DONE, counts);
}
