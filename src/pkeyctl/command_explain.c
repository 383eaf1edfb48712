/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"

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

/* Which endports are meant. */
struct chosen {
        const char *text;
        uint32_t *ports;
        uint32_t n;
        struct explain_side *sides; /* of them */
};

static int make_sides(struct context *ctx, struct chosen *c)
{
        int r = 0;

        c->sides = arena_new_array(ctx->arena, struct explain_side, c->n);
        if (!c->sides)
                return -ENOMEM;
        for (uint32_t i = 0; i < c->n && r == 0; i++) {
                struct explain_side *side = &c->sides[i];

                side->port = c->ports[i];
                r = wanted_table(ctx, side->port, &side->by_policy.table);
                if (r == 0)
                        r = held_table(ctx, side->port, &side->in_hardware.table);
                if (r == 0)
                        r = add_filters(ctx, ctx->subnet->ports[side->port].peer, side);
        }
        return r;
}

static void judge(const struct chosen *left, const struct chosen *right, struct explain_result *result)
{
        for (uint32_t i = 0; i < left->n; i++)
                for (uint32_t j = 0; j < right->n; j++) {
                        const struct explain_side *a = &left->sides[i], *b = &right->sides[j];
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

static int check_pairs(struct context *ctx, const struct chosen *a, const struct chosen *b)
{
        uint64_t pairs = (uint64_t) a->n * b->n;

        if (pairs > MAX_PAIRS)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "'%s' and '%s' are %" PRIu64 " pairs of endports (at most %" PRIu64 ")",
                                      a->text, b->text, pairs, MAX_PAIRS);
        if (pairs == 1 && a->ports[0] == b->ports[0])
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "'%s' and '%s' are the same endport",
                                      a->text, b->text);
        return 0;
}

static int choose_pairs(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n)
{
        struct chosen *a = userdata, *b = a + 1;
        uint32_t *all;
        int r, rb;

        r = pipeline_select(ctx, a->text, &a->ports, &a->n);
        if (r < 0 && r != -EBADMSG)
                return r;
        rb = pipeline_select(ctx, b->text, &b->ports, &b->n);
        if (r < 0 || rb < 0)
                return rb < 0 ? rb : r;
        r = check_pairs(ctx, a, b);
        if (r < 0)
                return r;
        all = arena_new_array(ctx->arena, uint32_t, (size_t) a->n + b->n);
        if (!all)
                return -ENOMEM;
        memcpy(all, a->ports, a->n * sizeof(*all));
        memcpy(all + a->n, b->ports, b->n * sizeof(*all));
        return pipeline_around(ctx, all, a->n + b->n, ret, ret_n);
}

int command_explain(struct context *ctx)
{
        struct result result = { .kind = RESULT_EXPLAIN };
        struct explain_result *e = &result.explain;
        struct chosen chosen[2] = { { .text = ctx->arguments[0] }, { .text = ctx->arguments[1] } };
        const struct session_hooks hooks = { .choose = choose_pairs, .userdata = chosen };
        int r;

        r = session_read(ctx, POLICY_OPTIONAL, NULL, &hooks);
        for (size_t i = 0; i < ELEMENTS(chosen) && r == 0; i++)
                r = make_sides(ctx, &chosen[i]);
        if (r < 0)
                return r;
        judge(&chosen[0], &chosen[1], e);
        result.status = exit_status_of(e->n_talk_hardware + e->n_unknown < e->n_pairs, e->n_unknown > 0);
        return output(ctx, &result);
}
