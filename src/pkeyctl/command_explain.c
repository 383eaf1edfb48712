/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"

#define MAX_PAIRS  UINT64_C(4000000) /* a few seconds */
#define MAX_LISTED 16

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
static int add_filters(struct context *ctx, uint32_t neighbour, struct explain_side *side)
{
        const struct subnet_port *port;
        const struct observed_table *t;
        int r;

        if (neighbour == SUBNET_NONE)
                return 0;
        port = &ctx->subnet->ports[neighbour];
        t = &ctx->observed->tables[neighbour];
        if (!subnet_port_can_enforce(ctx->subnet, port))
                return 0;
        side->by_policy.is_filtered = ctx->settings.enforcement != ENFORCEMENT_OFF;
        side->in_hardware.is_filtered = t->enforce_inbound || t->enforce_outbound || port->enforce_inbound ||
                                        port->enforce_outbound;
        r = wanted_table(ctx, neighbour, &side->by_policy.filter);
        return r < 0 ? r : held_table(ctx, neighbour, &side->in_hardware.filter);
}

static int make_sides(struct context *ctx, const uint32_t *ports, uint32_t n, const struct explain_side **ret)
{
        struct explain_side *sides = arena_new_array(ctx->arena, struct explain_side, n);
        int r;

        if (!sides)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                sides[i].port = ports[i];
                r = wanted_table(ctx, ports[i], &sides[i].by_policy.table);
                if (r == 0)
                        r = held_table(ctx, ports[i], &sides[i].in_hardware.table);
                if (r == 0)
                        r = add_filters(ctx, ctx->subnet->ports[ports[i]].neighbour, &sides[i]);
                if (r < 0)
                        return r;
        }
        *ret = sides;
        return 0;
}

static void judge(struct explain_result *result)
{
        for (uint32_t i = 0; i < result->n_a; i++)
                for (uint32_t j = 0; j < result->n_b; j++) {
                        const struct explain_side *a = &result->a[i], *b = &result->b[j];
                        enum explain_verdict v;

                        if (a->port == b->port)
                                continue;
                        v = explain_pair(&a->in_hardware, &b->in_hardware);
                        result->n_pairs++;
                        result->n_talk_hardware += v == EXPLAIN_TALK;
                        result->n_unknown += v == EXPLAIN_UNKNOWN;
                        result->n_talk_policy += explain_pair(&a->by_policy, &b->by_policy) == EXPLAIN_TALK;
                }
}

static enum exit_status explain_status(const struct explain_result *r)
{
        if (r->n_talk_hardware + r->n_unknown < r->n_pairs)
                return EXIT_DIFFERENCE;
        return r->n_unknown > 0 ? EXIT_PARTIAL : EXIT_DONE;
}

static int check_pairs(struct context *ctx, const struct explain_result *r, const uint32_t *a, const uint32_t *b)
{
        uint64_t pairs = (uint64_t) r->n_a * r->n_b;

        if (pairs > MAX_PAIRS)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "'%s' and '%s' are %" PRIu64 " pairs of endports (at most %" PRIu64 ")",
                                      r->a_text, r->b_text, pairs, MAX_PAIRS);
        if (pairs == 1 && a[0] == b[0])
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "'%s' and '%s' are the same endport",
                                      r->a_text, r->b_text);
        return 0;
}

/* Which endports are meant. */
struct chosen_pairs {
        struct explain_result *result;
        uint32_t *a, *b;
};

static int choose_pairs(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n)
{
        struct chosen_pairs *c = userdata;
        struct explain_result *result = c->result;
        uint32_t *all;
        int r, rb;

        r = pipeline_select(ctx, result->a_text, &c->a, &result->n_a);
        if (r < 0 && r != -EBADMSG)
                return r;
        rb = pipeline_select(ctx, result->b_text, &c->b, &result->n_b);
        if (r < 0 || rb < 0)
                return rb < 0 ? rb : r;
        r = check_pairs(ctx, result, c->a, c->b);
        if (r < 0)
                return r;
        all = arena_new_array(ctx->arena, uint32_t, (size_t) result->n_a + result->n_b);
        if (!all)
                return -ENOMEM;
        memcpy(all, c->a, result->n_a * sizeof(*all));
        memcpy(all + result->n_a, c->b, result->n_b * sizeof(*all));
        return pipeline_around(ctx, all, result->n_a + result->n_b, ret, ret_n);
}

int command_explain(struct context *ctx)
{
        struct result result = { .kind = RESULT_EXPLAIN };
        struct explain_result *e = &result.explain;
        struct chosen_pairs chosen = { .result = e };
        const struct session_hooks hooks = { .choose = choose_pairs, .userdata = &chosen };
        int r;

        *e = (struct explain_result) {
                .a_text = ctx->arguments[0], .b_text = ctx->arguments[1], .max_listed = MAX_LISTED,
        };
        r = pipeline_read_files(ctx, POLICY_OPTIONAL, NULL);
        if (r == 0)
                r = session_sweep(ctx, CONTROL_LOOK, &hooks);
        if (r == 0)
                r = pipeline_resolve(ctx);
        if (r == 0)
                r = make_sides(ctx, chosen.a, e->n_a, &e->a);
        if (r == 0)
                r = make_sides(ctx, chosen.b, e->n_b, &e->b);
        if (r < 0)
                return r;
        judge(e);
        result.status = explain_status(e);
        return output(ctx, &result);
}
