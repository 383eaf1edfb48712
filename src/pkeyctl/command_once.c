/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/progress.h"
#include "pkeyctl/session.h"
#include "shell/shell.h"
#include "violations/attribution.h"
#include "violations/poll.h"

#define DEFAULT_INTERVAL (10 * USEC_PER_SEC)
#define STEP             (200 * USEC_PER_MSEC)

/* --- what is asked ---------------------------------------------------------------------------------------------------- */

/* The local port's own table: at which index of it the default partition is, MADs to QP 1 go out with. */
static int choose_self(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n)
{
        (void) userdata;
        *ret = &ctx->subnet->self;
        *ret_n = ctx->subnet->self == SUBNET_NONE ? 0 : 1;
        return 0;
}

static int prepare(struct context *ctx)
{
        const struct session_hooks hooks = { .choose = choose_self };
        int r, sa;

        r = session_read(ctx, POLICY_OPTIONAL, NULL, &hooks);
        if (r < 0)
                return r;
        r = session_use_gsi(ctx, &sa);
        if (r == 0 || r == -ENOMEM)
                return r;
        return findings_error(&ctx->findings, FINDING_HOST_DISCOVERY, NULL,
                              "the port cannot be used for performance management: %s", strerror(-r));
}

/* One sample of every counter, into the violation table. */
static int sample(struct context *ctx, struct violation_poll *poll, struct violations *violations)
{
        struct mad_stage stage = violation_poll_once(poll);
        struct violation_sample s;
        int r;

        r = session_run(ctx, &stage, "reading counters");
        while (r >= 0 && violation_poll_next_sample(poll, &s))
                r = violations_see_sample(violations, clock_now(), &s);
        return r < 0 ? r : 0;
}

static void wait_between(const struct context *ctx, usec_t interval)
{
        _cleanup_progress_ struct progress progress = progress_begin("waiting", ctx->options->quiet);
        usec_t began = clock_now(), passed;

        while ((passed = clock_now() - began) < interval) {
                progress_show(passed / USEC_PER_SEC, interval / USEC_PER_SEC, &progress);
                (void) usleep((useconds_t) MIN(interval - passed, STEP));
        }
}

/* --- what is shown ---------------------------------------------------------------------------------------------------- */

/* A label is of a port: "node0007 mlx5_0/1", "leaf07/12". */
static bool is_of(const char *label, const char *node)
{
        size_t n = strlen(node);

        return label && strncmp(label, node, n) == 0 && strchr(" /", label[n]);
}

static int describe(struct context *ctx, const struct violation_record *record, struct seen_violation *ret)
{
        const struct attribution_input known = {
                .subnet = ctx->subnet, .memberships = ctx->memberships, .now = clock_now(), .observed = ctx->observed,
        };
        struct attribution who;
        int r = attribution_explain_record(ctx->arena, record, &known, &who);

        if (r < 0)
                return r;
        *ret = (struct seen_violation) {
                .source = violation_source_to_string(record->source),
                .node = who.node, .port_guid = who.port_guid.v, .lid = who.lid.v, .port = who.port,
                .switch_name = who.switch_name, .partition = who.partition, .p_key = who.p_key.v,
                .total = record->total, .first = clock_to_wall(record->first), .last = clock_to_wall(record->last),
                .names_sender = who.names_sender, .saturated = record->saturated, .text = who.text,
        };
        return 0;
}

static int collect(struct context *ctx, struct violations *violations, struct violations_result *result)
{
        const struct violation_record *records;
        struct seen_violation *items;
        uint32_t n;
        int r;

        records = violations_records(violations, &n);
        items = arena_new_array(ctx->arena, struct seen_violation, n);
        if (!items)
                return -ENOMEM;
        result->items = items;
        for (uint32_t i = 0; i < n; i++) {
                struct seen_violation *item = &items[result->n_items];

                if (records[i].total == 0 && !records[i].saturated)
                        continue;
                r = describe(ctx, &records[i], item);
                if (r < 0)
                        return r;
                if (!result->node || is_of(item->node, result->node) || is_of(item->switch_name, result->node))
                        result->n_items++;
        }
        result->n_all = result->n_items;
        return 0;
}

static void count_polled(const struct violation_poll *poll, struct violations_result *result)
{
        struct violation_poll_counters counters;

        violation_poll_get_counters(poll, &counters);
        result->n_polled = counters.n_ports;
        result->n_silent = counters.n_silent;
}

/* As the daemon does it: a name that is mistyped must not read as "no violations". */
static int check_node(struct context *ctx, const char *node)
{
        const struct subnet *s = ctx->subnet;

        for (uint32_t i = 0; i < s->n_ports; i++)
                if (!node || *node == '\0' || is_of(subnet_port_label(ctx->arena, s, i), node))
                        return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                              "no host, switch or port of the fabric is called '%s'", node ?: "");
}

static int poll_twice(struct context *ctx, struct violation_poll *poll, struct violations *violations,
                      struct violations_result *result)
{
        const struct violation_poll_config config = { .interval = result->interval, .check_hosts = true, .m_keys = ctx->m_keys };
        int r;

        violation_poll_set_config(poll, clock_now(), &config);
        r = violation_poll_set_subnet(poll, clock_now(), ctx->subnet);
        if (r == 0)
                r = violations_set_subnet(violations, ctx->subnet);
        if (r == 0)
                r = sample(ctx, poll, violations);
        if (r < 0)
                return r;
        result->counted_since = clock_wall();
        count_polled(poll, result);
        if (ctx->options->verbose)
                fprintf(stderr, "looked at the counters of %u ports; again in %.0f s\n", result->n_polled,
                        (double) result->interval / (double) USEC_PER_SEC);
        wait_between(ctx, result->interval);
        r = sample(ctx, poll, violations);
        if (r < 0)
                return r;
        count_polled(poll, result);
        return collect(ctx, violations, result);
}

int command_violations_once(struct context *ctx)
{
        usec_t interval = ctx->options->interval ?: DEFAULT_INTERVAL;
        struct result result = {
                .kind = RESULT_VIOLATIONS,
                .violations = { .node = ctx->options->node, .once = true, .interval = interval },
        };
        const struct violations_config config = { .interval = interval, .threshold = 1 };
        const struct violation_poll_config poll_config = { .interval = interval };
        _cleanup_(violation_poll_free_p) struct violation_poll *poll = violation_poll_new(&poll_config);
        _cleanup_(violations_free_p) struct violations *violations = violations_new(&config);
        int r;

        r = poll && violations ? prepare(ctx) : -ENOMEM;
        if (r == 0)
                r = check_node(ctx, ctx->options->node);
        if (r == 0)
                r = poll_twice(ctx, poll, violations, &result.violations);
        if (r < 0)
                return r;
        result.status = exit_status_of(result.violations.n_items > 0, result.violations.n_silent > 0);
        return output(ctx, &result);
}
