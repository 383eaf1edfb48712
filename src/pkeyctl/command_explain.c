/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "verify/explain.h"

#define EXPLAIN_MAX_LISTED 16

/* `explain`: one endport, by what the policy wants and by what the hardware holds. */
struct explain_side {
        uint32_t port;
        struct explain_end by_policy, in_hardware;
};

struct explain_listed {
        const struct explain_side *a, *b;
};

struct explain_result {
        struct explain_listed listed[EXPLAIN_MAX_LISTED]; /* the first pairs */
        uint32_t n_listed;
        uint64_t n_pairs;              /* pairs of different endports */
        uint64_t n_talk_policy, n_talk_hardware, n_unknown;
};

/* --- verdicts in words -------------------------------------------------------------------------------------------------- */

static void add_base(struct text *t, const struct context *ctx, const struct explain_base *b)
{
        const char *name = output_partition(ctx, b->base);

        text_add(t, "%s%s", name, *name ? " (" : "");
        if (b->verdict == EXPLAIN_BOTH_LIMITED)
                text_add(t, "0x%04x", b->base);
        else
                text_add(t, "0x%04x with 0x%04x", b->a.v, b->b.v);
        text_add(t, "%s", *name ? ")" : "");
}

/* The common bases that fare as the pair does. */
static void add_bases(struct text *t, const struct context *ctx, const struct explain_end *a,
                      const struct explain_end *b, enum explain_verdict verdict)
{
        struct explain_cursor cursor = {};
        struct explain_base base;
        const char *separator = "";

        while (explain_next_base(a, b, &cursor, &base)) {
                if (base.verdict != verdict)
                        continue;
                text_add(t, "%s", separator);
                separator = ", ";
                add_base(t, ctx, &base);
        }
}

static void add_filter(struct text *t, struct context *ctx, const struct explain_side *side)
{
        text_add(t, "switch port %s enforces partitions and does not hold ",
                 output_label(ctx, ctx->subnet->ports[side->port].peer));
}

static const char *describe_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                           bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict verdict = explain_pair(ea, eb);
        _cleanup_text_ struct text t = {};

        switch (verdict) {
        case EXPLAIN_TALK:
                text_add(&t, "through ");
                break;
        case EXPLAIN_UNKNOWN:
                return by_policy ? "there is no policy" : "a table that decides could not be read";
        case EXPLAIN_BLOCKED_A:
                add_filter(&t, ctx, a);
                break;
        case EXPLAIN_BLOCKED_B:
                add_filter(&t, ctx, b);
                break;
        case EXPLAIN_BOTH_LIMITED:
                text_add(&t, "both are only limited members of ");
                break;
        case EXPLAIN_NOTHING_COMMON:
                return "they have no partition in common";
        }
        add_bases(&t, ctx, ea, eb, verdict);
        return output_taken(ctx, &t);
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *common_bases(struct doc *d, const struct explain_end *a, const struct explain_end *b)
{
        json_t *array = json_array();
        struct explain_cursor cursor = {};
        struct explain_base base;

        while (explain_next_base(a, b, &cursor, &base))
                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:o, s:o, s:s}", "partition",
                                    doc_text(output_partition(d->ctx, base.base)), "p_key", doc_base(base.base), "a",
                                    doc_p_key(d, base.a), "b", doc_p_key(d, base.b), "verdict",
                                    explain_verdict_to_string(base.verdict)));
        return array;
}

/* The pair by one of the two sources. */
static json_t *verdict_object(struct doc *d, const struct explain_side *a, const struct explain_side *b, bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict v = explain_pair(ea, eb);

        return doc_pack(d, "{s:o, s:s, s:o, s:o}", "may_talk",
                        v == EXPLAIN_UNKNOWN ? json_null() : json_boolean(v == EXPLAIN_TALK), "verdict",
                        explain_verdict_to_string(v), "detail", doc_text(describe_verdict(d->ctx, a, b, by_policy)),
                        "common", common_bases(d, ea, eb));
}

/* What the policy makes of one endport, and by which lines. */
static json_t *membership_lines(struct doc *d, uint32_t port)
{
        const struct memberships *m = d->ctx->memberships;
        json_t *array = json_array();

        for (uint32_t i = m ? m->first[port] : 0; m && i < m->first[port + 1]; i++) {
                const struct port_membership *item = &m->items[i];
                const struct policy_partition *partition = &d->ctx->policy->partitions[item->partition];
                const struct policy_rule none = {}, *rule = item->rule ?: &none;

                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:s, s:o, s:i, s:i, s:o}", "partition", doc_text(partition->name),
                                    "p_key", doc_base(partition->base), "membership",
                                    membership_to_string(item->membership), "file", doc_text(rule->where.file), "line",
                                    rule->where.line, "column", rule->where.column, "selector", doc_text(rule->text)));
        }
        return array;
}

static json_t *side_object(struct doc *d, const struct explain_side *side)
{
        return doc_port(d, side->port, "{s:o}", "memberships", membership_lines(d, side->port));
}

static json_t *pairs(struct doc *d, const struct explain_result *r)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < r->n_listed; i++) {
                const struct explain_side *a = r->listed[i].a, *b = r->listed[i].b;

                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:o, s:o}", "a", side_object(d, a), "b", side_object(d, b), "policy",
                                    d->ctx->policy ? verdict_object(d, a, b, true) : json_null(), "hardware",
                                    verdict_object(d, a, b, false)));
        }
        return array;
}

static void json_explain(struct doc *d, const void *result)
{
        const struct explain_result *r = result;

        doc_add(d, d->root, "{s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "may_talk",
                d->ctx->status == EXIT_PARTIAL ? json_null() : json_boolean(d->ctx->status == EXIT_DONE), "policy_allows",
                d->ctx->policy ? json_boolean(r->n_talk_policy == r->n_pairs) : json_null(), "pairs_total",
                (json_int_t) r->n_pairs, "pairs_talking", (json_int_t) r->n_talk_hardware, "pairs_unknown",
                (json_int_t) r->n_unknown, "pairs_talking_by_policy",
                d->ctx->policy ? json_integer((json_int_t) r->n_talk_policy) : json_null(), "pairs", pairs(d, r));
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

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
               describe_verdict(ctx, a, b, by_policy));
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

static void text_explain(struct context *ctx, const void *result)
{
        const struct explain_result *r = result;

        for (uint32_t i = 0; i < r->n_listed; i++)
                print_pair(ctx, r->listed[i].a, r->listed[i].b);
        print_total(ctx, r);
}

/* --- the command -------------------------------------------------------------------------------------------------------- */

#define MAX_PAIRS UINT64_C(4000000) /* a few seconds */

static int wanted_table(struct context *ctx, uint32_t port, struct explain_table *ret)
{
        const struct desired_port *wanted;

        if (!ctx->desired)
                return 0;
        wanted = &ctx->desired->ports[port];
        return explain_table_make(ctx->arena, wanted->wanted, wanted->n_wanted, ret);
}

static int held_table(struct context *ctx, uint32_t port, struct explain_table *ret)
{
        const struct observed_table *t = &ctx->observed->tables[port];

        if (t->source != TABLE_READ)
                return 0;
        return explain_table_make(ctx->arena, t->entries, t->capacity, ret);
}

/* The switch port next to it, if it enforces partitions: as the settings want it, as its bits say. */
static int add_filters(struct context *ctx, uint32_t peer, struct explain_side *side)
{
        const struct subnet_port *port;
        const struct observed_table *t;
        int r;

        if (peer == SUBNET_NONE)
                return 0;
        port = &ctx->subnet->ports[peer];
        t = &ctx->observed->tables[peer];
        if (!subnet_port_can_enforce(ctx->subnet, port))
                return 0;
        side->by_policy.is_filtered = ctx->settings.enforcement != ENFORCEMENT_OFF;
        side->in_hardware.is_filtered = t->enforce_inbound || t->enforce_outbound || port->enforce_inbound ||
                                        port->enforce_outbound;
        r = wanted_table(ctx, peer, &side->by_policy.filter);
        return r < 0 ? r : held_table(ctx, peer, &side->in_hardware.filter);
}

static int make_sides(struct context *ctx, const struct endports *endports, struct explain_side **ret)
{
        struct explain_side *sides = arena_new_array(ctx->arena, struct explain_side, endports->n);
        int r = 0;

        if (!sides)
                return -ENOMEM;
        for (uint32_t i = 0; i < endports->n && r == 0; i++) {
                struct explain_side *side = &sides[i];

                side->port = endports->ports[i];
                r = wanted_table(ctx, side->port, &side->by_policy.table);
                if (r == 0)
                        r = held_table(ctx, side->port, &side->in_hardware.table);
                if (r == 0)
                        r = add_filters(ctx, ctx->subnet->ports[side->port].peer, side);
        }
        *ret = sides;
        return r;
}

static void judge(const struct endports selected[2], struct explain_side *const sides[2], struct explain_result *result)
{
        for (uint32_t i = 0; i < selected[0].n; i++)
                for (uint32_t j = 0; j < selected[1].n; j++) {
                        const struct explain_side *a = &sides[0][i], *b = &sides[1][j];
                        enum explain_verdict v;

                        if (a->port == b->port)
                                continue;
                        v = explain_pair(&a->in_hardware, &b->in_hardware);
                        if (result->n_pairs < EXPLAIN_MAX_LISTED)
                                result->listed[result->n_listed++] = (struct explain_listed) { a, b };
                        result->n_pairs++;
                        result->n_talk_hardware += v == EXPLAIN_TALK;
                        result->n_unknown += v == EXPLAIN_UNKNOWN;
                        result->n_talk_policy += explain_pair(&a->by_policy, &b->by_policy) == EXPLAIN_TALK;
                }
}

static int check_pairs(struct context *ctx)
{
        const struct endports *a = &ctx->selected[0], *b = &ctx->selected[1];
        const char *text_a = ctx->arguments[0], *text_b = ctx->arguments[1];
        uint64_t pairs = (uint64_t) a->n * b->n;

        if (pairs > MAX_PAIRS)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "'%s' and '%s' are %" PRIu64 " pairs of endports (at most %" PRIu64 ")", text_a, text_b, pairs,
                                      MAX_PAIRS);
        if (pairs == 1 && a->ports[0] == b->ports[0])
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "'%s' and '%s' are the same endport", text_a, text_b);
        return 0;
}

int explain_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        int r = pipeline_select(ctx);

        if (r == 0)
                r = check_pairs(ctx);
        return r < 0 ? r : pipeline_around(ctx, ctx->selected, ELEMENTS(ctx->selected), ret, ret_n);
}

int command_explain(struct context *ctx)
{
        static const struct printer printer = { text_explain, json_explain, TERSE | QUIET };
        struct explain_result e = {};
        struct explain_side *sides[2];

        for (size_t i = 0; i < ELEMENTS(sides); i++) {
                int r = make_sides(ctx, &ctx->selected[i], &sides[i]);

                if (r < 0)
                        return r;
        }
        judge(ctx->selected, sides, &e);
        return output(ctx, &printer, exit_status_of(e.n_talk_hardware + e.n_unknown < e.n_pairs, e.n_unknown > 0), &e);
}
