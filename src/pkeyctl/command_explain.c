/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pins/claims.h"
#include "pkeyctl/commands.h"
#include "store_commands/store_commands.h"
#include "verify/explain.h"

#define MAX_PAIRS  UINT64_C(4000000) /* a few seconds */
#define MAX_LISTED 16

enum source {
        IN_HARDWARE,
        BY_POLICY,
        N_SOURCES,
};

/* One endport. */
struct side {
        uint32_t port;
        struct explain_end ends[N_SOURCES];
};

struct pair {
        const struct side *a, *b;
};

struct explain_result {
        struct pair listed[MAX_LISTED]; /* the first pairs */
        uint32_t n_listed;
        uint64_t n_pairs;               /* of different endports */
        uint64_t n_talk[N_SOURCES];
        uint64_t n_unknown;             /* in hardware */
        uint32_t ports[2 * MAX_LISTED]; /* of the listed pairs */
        uint32_t n_ports;
        struct policy_lines *lines;     /* n_ports for each partition; NULL: there is no policy */
        struct explain_since since;     /* of the same ports and partitions */
};

static enum explain_verdict judge(const struct pair *p, enum source s)
{
        return explain_pair(&p->a->ends[s], &p->b->ends[s]);
}

/* The index in `lines` and `since` for a partition and a port of a listed pair. */
static size_t index_in_lists(const struct explain_result *r, uint32_t port, size_t partition)
{
        uint32_t i = 0;

        while (r->ports[i] != port)
                i++;
        return partition * r->n_ports + i;
}

/* The lines of the policy about this port in a partition. */
static struct policy_lines lines_of(const struct explain_result *r, uint32_t port, size_t partition)
{
        return r->lines ? r->lines[index_in_lists(r, port, partition)] : (struct policy_lines) {};
}

static struct since since_of(const struct explain_result *r, uint32_t port, size_t partition)
{
        return r->since.items ? r->since.items[index_in_lists(r, port, partition)] : (struct since) {};
}

/* The index of an entry in the table of a port; -1: it is not there, or the table was not read. */
static int index_of(const struct context *ctx, const struct side *side, struct p_key key)
{
        const struct observed_table *t = &ctx->observed->tables[side->port];

        for (int i = 0; t->source == TABLE_READ && i < t->capacity; i++)
                if (t->entries[i].v == key.v)
                        return i;
        return -1;
}

/* --- verdicts in words ----------------------------------------------------------------------------------------------- */

/* "tenant-a (0x0101 with 0x8101)" */
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

static void add_filter(struct text *t, struct context *ctx, const struct side *side)
{
        text_add(t, "switch port %s enforces partitions and does not hold ",
                 output_label(ctx, ctx->subnet->ports[side->port].peer));
}

/* The partitions through which the two talk, or what keeps them apart. */
static const char *describe_verdict(struct context *ctx, const struct pair *p, enum source s)
{
        enum explain_verdict verdict = judge(p, s);
        struct explain_cursor cursor = {};
        struct explain_base base;
        _cleanup_text_ struct text t = {};
        size_t begin;

        switch (verdict) {
        case EXPLAIN_TALK:
                text_add(&t, "through ");
                break;
        case EXPLAIN_UNKNOWN:
                return s == BY_POLICY ? "there is no policy" : "a table that decides could not be read";
        case EXPLAIN_BLOCKED_A:
                add_filter(&t, ctx, p->a);
                break;
        case EXPLAIN_BLOCKED_B:
                add_filter(&t, ctx, p->b);
                break;
        case EXPLAIN_BOTH_LIMITED:
                text_add(&t, "both are only limited members of ");
                break;
        case EXPLAIN_NOTHING_COMMON:
                return "they have no partition in common";
        }
        begin = t.n;
        while (explain_next_base(&p->a->ends[s], &p->b->ends[s], &cursor, &base))
                if (base.verdict == verdict) {
                        text_add(&t, "%s", t.n > begin ? ", " : "");
                        add_base(&t, ctx, &base);
                }
        return output_taken(ctx, &t);
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *common_bases(struct doc *d, const struct pair *p, enum source s)
{
        json_t *array = json_array();
        struct explain_cursor cursor = {};
        struct explain_base base;

        while (explain_next_base(&p->a->ends[s], &p->b->ends[s], &cursor, &base)) {
                json_t *o = doc_partition(d, base.base, "{s:o, s:o, s:s}", "a", doc_p_key(d, base.a), "b", doc_p_key(d, base.b),
                                          "verdict", explain_verdict_to_string(base.verdict));

                if (s == IN_HARDWARE)
                        doc_add(d, o, "{s:i, s:i}", "index_a", index_of(d->ctx, p->a, base.a), "index_b", index_of(d->ctx, p->b, base.b));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *verdict_object(struct doc *d, const struct pair *p, enum source s)
{
        enum explain_verdict v = judge(p, s);

        return json_pack("{s:o, s:s, s:o, s:o}", "may_talk", v == EXPLAIN_UNKNOWN ? json_null() : json_boolean(v == EXPLAIN_TALK),
                         "verdict", explain_verdict_to_string(v), "detail", doc_text(describe_verdict(d->ctx, p, s)),
                         "common", common_bases(d, p, s));
}

static json_t *rule_object(const struct policy_rule *rule)
{
        if (!rule)
                return json_null();
        return json_pack("{s:o, s:i, s:i, s:o, s:s}", "file", doc_text(rule->where.file), "line", rule->where.line,
                         "column", rule->where.column, "selector", doc_text(rule->text), "membership", membership_to_string(rule->membership));
}

static json_t *membership_object(struct doc *d, const struct explain_result *r, uint32_t port, const struct port_membership *m)
{
        const struct policy_partition *partition = &d->ctx->policy->partitions[m->partition];
        const struct policy_rule none = {}, *rule = m->rule ?: &none;
        struct policy_lines lines = lines_of(r, port, m->partition);
        struct since since = since_of(r, port, m->partition);
        json_t *o = json_pack("{s:o, s:o, s:s, s:o, s:i, s:i, s:o, s:o}", "partition", doc_text(partition->name),
                        "p_key", doc_base(partition->base), "membership", membership_to_string(m->membership),
                        "file", doc_text(rule->where.file), "line", rule->where.line, "column", rule->where.column,
                        "selector", doc_text(rule->text), "overrides", rule_object(m->rule ? lines.overridden : lines.decides));

        doc_add(d, o, "{s:o, s:b}", "since_generation", doc_number(since.generation),
                "or_earlier", since.or_earlier);
        return o;
}

/* The endport with its memberships and the lines that give them. */
static json_t *side_object(struct doc *d, const struct explain_result *r, const struct side *side)
{
        const struct memberships *m = d->ctx->memberships;
        uint32_t first = m ? m->first[side->port] : 0, n = m ? m->first[side->port + 1] - first : 0;

        return doc_port(d, side->port, "{s:o}", "memberships", JSON_ARRAY(i, n, membership_object(d, r, side->port, &m->items[first + i])));
}

static json_t *pair_object(struct doc *d, const struct explain_result *r, const struct pair *p)
{
        return json_pack("{s:o, s:o, s:o, s:o}", "a", side_object(d, r, p->a), "b", side_object(d, r, p->b),
                        "policy", d->ctx->policy ? verdict_object(d, p, BY_POLICY) : json_null(),
                        "hardware", verdict_object(d, p, IN_HARDWARE));
}

static void json_explain(struct doc *d, const void *result)
{
        const struct explain_result *r = result;
        bool has_policy = d->ctx->policy;

        doc_add(d, d->root, "{s:o, s:o, s:I, s:I, s:I, s:o, s:o}",
                "may_talk", d->ctx->status == EXIT_PARTIAL ? json_null() : json_boolean(d->ctx->status == EXIT_DONE),
                "policy_allows", has_policy ? json_boolean(r->n_talk[BY_POLICY] == r->n_pairs) : json_null(),
                "pairs_total", (json_int_t) r->n_pairs, "pairs_talking", (json_int_t) r->n_talk[IN_HARDWARE],
                "pairs_unknown", (json_int_t) r->n_unknown,
                "pairs_talking_by_policy", has_policy ? json_integer((json_int_t) r->n_talk[BY_POLICY]) : json_null(),
                "pairs", JSON_ARRAY(i, r->n_listed, pair_object(d, r, &r->listed[i])));
        doc_add(d, d->root, "{s:o}", "in_force", r->since.in_force > 0 ? json_boolean(r->since.is_in_force) : json_null());
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void print_verdict(struct context *ctx, const struct pair *p, enum source s)
{
        enum explain_verdict v = judge(p, s);

        printf("  %-13s %s: %s\n", s == BY_POLICY ? "by policy:" : "in hardware:",
               v == EXPLAIN_TALK ? "may talk" : v == EXPLAIN_UNKNOWN ? "unknown" : "may not talk", describe_verdict(ctx, p, s));
}

/* ", overrides partitions.yaml:12: ALL" */
static const char *describe_overridden(struct context *ctx, const struct policy_rule *rule)
{
        return rule ? output_format(ctx, ", overrides %s:%u: %s", rule->where.file, rule->where.line, rule->text) : "";
}

/* "; since generation 7" */
static const char *describe_since(struct context *ctx, const struct explain_result *r, uint32_t port, uint32_t partition)
{
        struct since since = since_of(r, port, partition);

        return since.generation == 0 ? "" : output_format(ctx, "; since generation %" PRIu64 "%s", since.generation,
                                                           since.or_earlier ? " or earlier" : "");
}

/* The lines of the policy that decide about this endport in a partition. */
static void print_line(struct context *ctx, const struct explain_result *r, uint32_t port, uint32_t partition)
{
        const struct policy_partition *p = &ctx->policy->partitions[partition];
        struct policy_lines lines = lines_of(r, port, partition);
        const struct port_membership *m;
        const char *line = output_line(ctx, port, p->base, &m), *since = describe_since(ctx, r, port, partition);

        printf("    %s: ", output_label(ctx, port));
        if (m && m->rule)
                printf("%s in %s (%s: %s%s%s)\n", membership_to_string(m->membership), p->name, line, m->rule->text,
                       describe_overridden(ctx, lines.overridden), since);
        else if (m)
                printf("%s in %s (%s%s%s)\n", membership_to_string(m->membership), p->name, line, describe_overridden(ctx, lines.decides),
                       since);
        else if (lines.decides)
                printf("not in %s (%s:%u: %s%s%s)\n", p->name, lines.decides->where.file, lines.decides->where.line, lines.decides->text,
                       describe_overridden(ctx, lines.overridden), since);
        else
                printf("not in %s%s%s%s\n", p->name, *since ? " (" : "", *since ? since + strlen("; ") : "", *since ? ")" : "");
}

/* The partitions that decide: those through which the two talk, else all that both are in, else all that either is in. */
static bool is_relevant(const struct pair *p, uint16_t p_key)
{
        const struct explain_end *a = &p->a->ends[BY_POLICY], *b = &p->b->ends[BY_POLICY];
        enum explain_verdict best = explain_pair(a, b);
        struct explain_cursor cursor = {};
        struct explain_base base;

        if (best == EXPLAIN_NOTHING_COMMON)
                return explain_table_membership(&a->table, p_key) != MEMBERSHIP_NONE ||
                       explain_table_membership(&b->table, p_key) != MEMBERSHIP_NONE;
        while (explain_next_base(a, b, &cursor, &base))
                if (base.base == p_key)
                        return best != EXPLAIN_TALK || base.verdict == EXPLAIN_TALK;
        return false;
}

/* The two do not talk, one of them is in this partition, and a line keeps the other one out. */
static bool is_kept_out(const struct explain_result *r, const struct pair *p, uint32_t partition)
{
        const struct policy_rule *a = lines_of(r, p->a->port, partition).decides, *b = lines_of(r, p->b->port, partition).decides;

        return judge(p, BY_POLICY) != EXPLAIN_TALK && a && b &&
               (a->membership == MEMBERSHIP_NONE) != (b->membership == MEMBERSHIP_NONE);
}

/* Prints that the table differs, so that the lines of the policy do not explain it. */
static void print_if_different(struct context *ctx, const struct side *side)
{
        const struct explain_table *p = &side->ends[BY_POLICY].table, *h = &side->ends[IN_HARDWARE].table;
        bool differs = p->n_levels != h->n_levels;

        for (uint32_t i = 0; i < p->n_levels && !differs; i++)
                differs = p->levels[i].base != h->levels[i].base || p->levels[i].membership != h->levels[i].membership;
        if (p->known && h->known && differs)
                printf("    the table of %s differs from the policy\n", output_label(ctx, side->port));
}

/* Prints the claim of a node whose own name the lines do not use. */
static void print_claim(struct context *ctx, const struct side *side)
{
        struct claim *claims;
        uint32_t n;

        if (pins_find_claims(ctx->arena, ctx->pins, ctx->subnet, &claims, &n) < 0) {
                output_fail(ctx, -ENOMEM);
                return;
        }
        for (uint32_t i = 0; i < n; i++)
                if (claims[i].node == ctx->subnet->ports[side->port].node)
                        printf("    %s\n", output_or_fail(ctx, claim_text(ctx->arena, ctx->subnet, &claims[i])));
}

static struct p_key at_index0(const struct context *ctx, const struct side *side)
{
        const struct observed_table *t = &ctx->observed->tables[side->port];

        return t->source == TABLE_READ && t->capacity > 0 ? t->entries[0] : (struct p_key) {};
}

/* How programs on both sides choose a partition through which they talk; and what happens to those without a setting. */
static void print_settings(struct context *ctx, const struct pair *p)
{
        struct p_key a = at_index0(ctx, p->a), b = at_index0(ctx, p->b);
        struct explain_cursor cursor = {};
        struct explain_base base;

        while (explain_next_base(&p->a->ends[IN_HARDWARE], &p->b->ends[IN_HARDWARE], &cursor, &base))
                if (base.verdict == EXPLAIN_TALK)
                        printf("    programs in %s: UCX_IB_PKEY=0x%04x; NVSHMEM_IB_PKEY_INDEX and NCCL_IB_PKEY=%d on %s, %d on %s; "
                               "IPoIB interface that ends in .%04x\n", output_base(ctx, base.base), base.base,
                               index_of(ctx, p->a, base.a), output_label(ctx, p->a->port), index_of(ctx, p->b, base.b),
                               output_label(ctx, p->b->port), p_key_make(base.base, true).v);
        if (p_key_is_used(a) && p_key_is_used(b) && !p_key_is_full(a) && !p_key_is_full(b) && judge(p, IN_HARDWARE) == EXPLAIN_TALK)
                puts("    programs without such a setting that use index 0 hang: both are limited members there");
}

static void print_pair(struct context *ctx, const struct explain_result *r, const struct pair *p)
{
        printf("%s and %s\n", output_label(ctx, p->a->port), output_label(ctx, p->b->port));
        print_verdict(ctx, p, IN_HARDWARE);
        print_settings(ctx, p);
        if (!ctx->policy)
                return;
        print_verdict(ctx, p, BY_POLICY);
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                if (!is_relevant(p, ctx->policy->partitions[i].base) && !is_kept_out(r, p, i))
                        continue;
                print_line(ctx, r, p->a->port, i);
                print_line(ctx, r, p->b->port, i);
        }
        print_claim(ctx, p->a);
        print_claim(ctx, p->b);
        print_if_different(ctx, p->a);
        print_if_different(ctx, p->b);
}

static void text_explain(struct context *ctx, const void *result)
{
        const struct explain_result *r = result;

        for (uint32_t i = 0; i < r->n_listed; i++)
                print_pair(ctx, r, &r->listed[i]);
        if (ctx->policy && r->since.in_force > 0 && !r->since.is_in_force)
                printf("%s is not in force yet: it is not the policy of generation %" PRIu64 "\n", ctx->policy->file, r->since.in_force);
        if (r->n_pairs > r->n_listed)
                printf("... %" PRIu64 " more pairs\n", r->n_pairs - r->n_listed);
        if (r->n_pairs == 1)
                return;
        printf("%" PRIu64 " pair%s of endports: %" PRIu64 " may talk by the hardware", r->n_pairs,
               text_plural(r->n_pairs), r->n_talk[IN_HARDWARE]);
        if (r->n_unknown > 0)
                printf(", %" PRIu64 " unknown", r->n_unknown);
        if (ctx->policy)
                printf(", %" PRIu64 " by the policy", r->n_talk[BY_POLICY]);
        putchar('\n');
}

/* --- the command ----------------------------------------------------------------------------------------------------- */

/* The tables of a port by both sources; `known` stays false without one. */
static int make_tables(struct context *ctx, uint32_t port, struct explain_table *by_policy, struct explain_table *in_hardware)
{
        const struct observed_table *t = &ctx->observed->tables[port];
        const struct desired_port *wanted = ctx->given ? &ctx->given->ports[port] : NULL;
        int r = wanted ? explain_table_make(ctx->arena, wanted->wanted, wanted->n_wanted, by_policy) : 0;

        return r < 0 || t->source != TABLE_READ ? r : explain_table_make(ctx->arena, t->entries, t->capacity, in_hardware);
}

/* The peer filters by the policy if the settings want it to, in hardware if its enforcement bits are set. */
static int make_side(struct context *ctx, uint32_t port, struct side *ret)
{
        struct explain_end *by_policy = &ret->ends[BY_POLICY], *in_hardware = &ret->ends[IN_HARDWARE];
        uint32_t peer = ctx->subnet->ports[port].peer;
        const struct subnet_port *p = &ctx->subnet->ports[peer == SUBNET_NONE ? port : peer];
        int r = make_tables(ctx, port, &by_policy->table, &in_hardware->table);

        ret->port = port;
        if (r < 0 || peer == SUBNET_NONE || !subnet_port_can_enforce(ctx->subnet, p))
                return r;
        by_policy->is_filtered = ctx->settings->enforcement != ENFORCEMENT_OFF;
        in_hardware->is_filtered = ctx->observed->tables[peer].enforce_inbound || ctx->observed->tables[peer].enforce_outbound ||
                                   p->enforce_inbound || p->enforce_outbound;
        return make_tables(ctx, peer, &by_policy->filter, &in_hardware->filter);
}

static int make_sides(struct context *ctx, const struct endports *endports, struct side **ret)
{
        int r = 0;

        *ret = arena_new_array(ctx->arena, struct side, endports->n);
        if (!*ret)
                return -ENOMEM;
        for (uint32_t i = 0; i < endports->n && r == 0; i++)
                r = make_side(ctx, endports->ports[i], &(*ret)[i]);
        return r;
}

static void count_pair(const struct pair *p, struct explain_result *result)
{
        enum explain_verdict v = judge(p, IN_HARDWARE);

        if (p->a->port == p->b->port)
                return;
        if (result->n_listed < MAX_LISTED)
                result->listed[result->n_listed++] = *p;
        result->n_pairs++;
        result->n_talk[IN_HARDWARE] += v == EXPLAIN_TALK;
        result->n_talk[BY_POLICY] += judge(p, BY_POLICY) == EXPLAIN_TALK;
        result->n_unknown += v == EXPLAIN_UNKNOWN;
}

static int check_pairs(struct context *ctx)
{
        const struct endports *a = &ctx->selected[0], *b = &ctx->selected[1];
        const char *text_a = ctx->arguments[0], *text_b = ctx->arguments[1];
        uint64_t pairs = (uint64_t) a->n * b->n;

        if (pairs > MAX_PAIRS)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "'%s' and '%s' select %" PRIu64 " pairs of endports (accepted: at most %" PRIu64 ")", text_a, text_b, pairs,
                                      MAX_PAIRS);
        if (pairs == 1 && a->ports[0] == b->ports[0])
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "'%s' and '%s' are the same endport", text_a, text_b);
        return 0;
}

int explain_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        return pipeline_select(ctx) ?: check_pairs(ctx) ?: pipeline_around(ctx, ctx->selected, ELEMENTS(ctx->selected), ret, ret_n);
}

int command_explain(struct context *ctx)
{
        static const struct printer printer = { text_explain, json_explain, TERSE | QUIET };
        struct explain_result e = {};
        struct side *a, *b;
        int r = make_sides(ctx, &ctx->selected[0], &a) ?: make_sides(ctx, &ctx->selected[1], &b);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < ctx->selected[0].n; i++)
                for (uint32_t j = 0; j < ctx->selected[1].n; j++)
                        count_pair(&(struct pair) { &a[i], &b[j] }, &e);
        for (uint32_t i = 0; i < e.n_listed; i++) {
                e.ports[e.n_ports++] = e.listed[i].a->port;
                e.ports[e.n_ports++] = e.listed[i].b->port;
        }
        if (ctx->policy)
                r = policy_find_lines(ctx->arena, ctx->policy, ctx->subnet, ctx->pins, e.ports, e.n_ports, &e.lines) ?:
                    explain_find_since(ctx, e.ports, e.n_ports, &e.since);
        if (r < 0)
                return r;
        return output(ctx, &printer, exit_status_of(e.n_talk[IN_HARDWARE] + e.n_unknown < e.n_pairs, e.n_unknown > 0), &e);
}
