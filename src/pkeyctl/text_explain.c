/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/text.h"

static const char *say(enum explain_verdict v)
{
        switch (v) {
        case EXPLAIN_TALK:
                return "may talk";
        case EXPLAIN_UNKNOWN:
                return "unknown";
        case EXPLAIN_BLOCKED_A:
        case EXPLAIN_BLOCKED_B:
        case EXPLAIN_BOTH_LIMITED:
        case EXPLAIN_NOTHING_COMMON:
                return "may not talk";
        }
        return "?";
}

static int print_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                         bool by_policy)
{
        enum explain_verdict v = by_policy ? explain_pair(&a->by_policy, &b->by_policy)
                                           : explain_pair(&a->in_hardware, &b->in_hardware);
        const char *detail = output_verdict(ctx, a, b, by_policy);

        if (!detail)
                return -ENOMEM;
        printf("  %-13s %s: %s\n", by_policy ? "by policy:" : "in hardware:", say(v), detail);
        return 0;
}

/* One line of the policy that speaks of this endport. */
static int print_line(struct context *ctx, uint32_t port, const char *label, uint16_t base)
{
        const struct port_membership *m;
        const char *line = output_line(ctx, port, base, &m);

        if (!line)
                return -ENOMEM;
        if (!m)
                printf("    %s: not in %s\n", label, output_partition(ctx, base));
        else if (!m->rule)
                printf("    %s: %s in %s (%s)\n", label, membership_to_string(m->membership),
                       output_partition(ctx, base), line);
        else
                printf("    %s: %s in %s (%s: %s)\n", label, membership_to_string(m->membership),
                       output_partition(ctx, base), line, m->rule->text);
        return 0;
}

/* What decides: the partitions they talk through, else all that both are in, else all that either is in. */
static bool is_telling(const struct explain_side *a, const struct explain_side *b, uint16_t p_key)
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

static int print_lines(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                       const char *label_a, const char *label_b)
{
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                uint16_t p_key = ctx->policy->partitions[i].base;

                if (!is_telling(a, b, p_key))
                        continue;
                if (print_line(ctx, a->port, label_a, p_key) < 0 || print_line(ctx, b->port, label_b, p_key) < 0)
                        return -ENOMEM;
        }
        return 0;
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
                if (p->levels[i].base != h->levels[i].base || p->levels[i].full != h->levels[i].full ||
                    p->levels[i].limited != h->levels[i].limited)
                        return true;
        return false;
}

static int print_pair(struct context *ctx, const struct explain_side *a, const struct explain_side *b)
{
        const char *label_a = subnet_port_label(ctx->arena, ctx->subnet, a->port);
        const char *label_b = subnet_port_label(ctx->arena, ctx->subnet, b->port);

        if (!label_a || !label_b)
                return -ENOMEM;
        printf("%s and %s\n", label_a, label_b);
        if (print_verdict(ctx, a, b, false) < 0)
                return -ENOMEM;
        if (!ctx->policy)
                return 0;
        if (print_verdict(ctx, a, b, true) < 0 || print_lines(ctx, a, b, label_a, label_b) < 0)
                return -ENOMEM;
        if (table_differs(a))
                printf("    the table of %s is not what the policy says\n", label_a);
        if (table_differs(b))
                printf("    the table of %s is not what the policy says\n", label_b);
        return 0;
}

static void print_total(const struct context *ctx, const struct explain_result *r, uint32_t listed)
{
        if (r->n_pairs > listed)
                printf("... %" PRIu64 " more pairs\n", r->n_pairs - listed);
        if (r->n_pairs == 1)
                return;
        text_count(r->n_pairs, "pair");
        printf(" of endports: %" PRIu64 " may talk by the hardware", r->n_talk_hardware);
        if (r->n_unknown > 0)
                printf(", %" PRIu64 " unknown", r->n_unknown);
        if (ctx->policy)
                printf(", %" PRIu64 " by the policy", r->n_talk_policy);
        putchar('\n');
}

int text_explain(struct context *ctx, const struct explain_result *r, enum exit_status status)
{
        uint32_t listed = 0;

        (void) status;
        if (text_findings(ctx, true) < 0)
                return -ENOMEM;
        if (ctx->options->quiet)
                return 0;
        for (uint32_t i = 0; i < r->n_a; i++)
                for (uint32_t j = 0; j < r->n_b && listed < r->max_listed; j++) {
                        if (r->a[i].port == r->b[j].port)
                                continue;
                        if (print_pair(ctx, &r->a[i], &r->b[j]) < 0)
                                return -ENOMEM;
                        listed++;
                }
        print_total(ctx, r, listed);
        return 0;
}
