/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_text.h"

static const char *verdict_text(enum explain_verdict v)
{
        static const char *const words[] = {
                [EXPLAIN_TALK] = "may talk",
                [EXPLAIN_UNKNOWN] = "unknown",
                [EXPLAIN_BLOCKED_A] = "may not talk",
                [EXPLAIN_BLOCKED_B] = "may not talk",
                [EXPLAIN_BOTH_LIMITED] = "may not talk",
                [EXPLAIN_NOTHING_COMMON] = "may not talk",
        };

        return WORD(words, v, "?");
}

static void print_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                          bool by_policy)
{
        enum explain_verdict v = by_policy ? explain_pair(&a->by_policy, &b->by_policy)
                                           : explain_pair(&a->in_hardware, &b->in_hardware);

        printf("  %-13s %s: %s\n", by_policy ? "by policy:" : "in hardware:", verdict_text(v),
               output_verdict(ctx, a, b, by_policy));
}

/* One line of the policy that speaks of this endport. */
static void print_line(struct context *ctx, uint32_t port, const char *label, uint16_t base)
{
        const struct port_membership *m;
        const char *line = output_line(ctx, port, base, &m), *partition = output_partition(ctx, base);

        if (!m)
                printf("    %s: not in %s\n", label, partition);
        else
                printf("    %s: %s in %s (%s%s%s)\n", label, membership_to_string(m->membership), partition, line,
                       m->rule ? ": " : "", m->rule ? m->rule->text : "");
}

/* What decides: the partitions they talk through, else all that both are in, else all that either is in. */
static bool is_relevant(const struct explain_side *a, const struct explain_side *b, uint16_t p_key)
{
        enum explain_verdict best = explain_pair(&a->by_policy, &b->by_policy);
        struct explain_cursor cursor = {};
        struct explain_base base;

        if (best == EXPLAIN_NOTHING_COMMON)
                return explain_table_membership(&a->by_policy.table, p_key) != MEMBERSHIP_NONE ||
                       explain_table_membership(&b->by_policy.table, p_key) != MEMBERSHIP_NONE;
        while (explain_next_base(&a->by_policy, &b->by_policy, &cursor, &base))
                if (base.base == p_key)
                        return best != EXPLAIN_TALK || base.verdict == EXPLAIN_TALK;
        return false;
}

/* Where the hardware is not what the policy says, the lines do not explain it. */
static bool table_differs(const struct explain_side *side)
{
        const struct explain_table *p = &side->by_policy.table, *h = &side->in_hardware.table;

        if (!p->known || !h->known)
                return false;
        if (p->n_levels != h->n_levels)
                return true;
        for (uint32_t i = 0; i < p->n_levels; i++)
                if (p->levels[i].base != h->levels[i].base || p->levels[i].membership != h->levels[i].membership)
                        return true;
        return false;
}

static void print_pair(struct context *ctx, const struct explain_side *a, const struct explain_side *b)
{
        const char *label_a = output_label(ctx, a->port), *label_b = output_label(ctx, b->port);

        printf("%s and %s\n", label_a, label_b);
        print_verdict(ctx, a, b, false);
        if (!ctx->policy)
                return;
        print_verdict(ctx, a, b, true);
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                uint16_t base = ctx->policy->partitions[i].base;

                if (!is_relevant(a, b, base))
                        continue;
                print_line(ctx, a->port, label_a, base);
                print_line(ctx, b->port, label_b, base);
        }
        if (table_differs(a))
                printf("    the table of %s is not what the policy says\n", label_a);
        if (table_differs(b))
                printf("    the table of %s is not what the policy says\n", label_b);
}

static void print_total(const struct context *ctx, const struct explain_result *r)
{
        if (r->n_pairs > r->n_listed)
                printf("... %" PRIu64 " more pairs\n", r->n_pairs - r->n_listed);
        if (r->n_pairs == 1)
                return;
        printf("%" PRIu64 " pair%s of endports: %" PRIu64 " may talk by the hardware", r->n_pairs,
               text_plural(r->n_pairs), r->n_talk_hardware);
        if (r->n_unknown > 0)
                printf(", %" PRIu64 " unknown", r->n_unknown);
        if (ctx->policy)
                printf(", %" PRIu64 " by the policy", r->n_talk_policy);
        putchar('\n');
}

void text_explain(struct context *ctx, const struct result *result)
{
        const struct explain_result *r = &result->explain;

        for (uint32_t i = 0; i < r->n_listed; i++)
                print_pair(ctx, r->listed[i].a, r->listed[i].b);
        print_total(ctx, r);
}
