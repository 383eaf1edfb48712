/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "session/bus_client.h"
#include "session/progress.h"
#include "violations/attribution.h"
#include "violations/poll.h"

#define DEFAULT_INTERVAL (10 * USEC_PER_SEC)
#define STEP             (200 * USEC_PER_MSEC)

static void add_row(struct context *ctx, struct text_table *t, const struct seen_violation *v)
{
        /* of a counter that was at its maximum when it was first read, neither time nor number is known */
        bool is_counted = v->total > 0;

        text_table_row(t, NULL, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", is_counted ? output_time(ctx, v->first) : "?",
                       is_counted ? output_time(ctx, v->last) : "?", v->node ?: "?", v->switch_name ?: "", v->source ?: "",
                       v->p_key ? output_format(ctx, "0x%04x", (unsigned) v->p_key) : "", v->partition ?: "",
                       is_counted ? output_format(ctx, "%s%" PRIu64, v->saturated ? ">=" : "", v->total) : "maximum");
}

/* The daemon looks through a bounded number of records. */
static void print_earlier(const struct violations_result *r)
{
        uint64_t n = r->n_all - r->n_items;

        if (n > 0 && r->node)
                printf("%" PRIu64 " earlier ones, of this host or others, were not searched\n", n);
        else if (n > 0)
                printf("and %" PRIu64 " earlier ones, which are not listed\n", n);
}

static void print_none(struct context *ctx, const struct violations_result *r)
{
        const char *at = r->node ? " at " : "", *node = r->node ?: "";

        if (r->once)
                printf("no violations%s%s within %.0f s, on %u ports\n", at, node,
                       (double) r->interval / (double) USEC_PER_SEC, r->n_polled);
        else if (r->counted_since == 0)
                printf("pkeyd does not count violations\n");
        else
                printf("no violations%s%s since %s\n", at, node, output_time(ctx, MAX(r->since, r->counted_since)));
}

static void text_violations(struct context *ctx, const void *result)
{
        const struct violations_result *r = result;
        struct text_table t;

        if (r->once && r->n_silent > 0)
                printf("the counters of %u of %u ports could not be read\n", r->n_silent, r->n_polled);
        if (r->n_items == 0) {
                print_none(ctx, r);
                print_earlier(r);
                return;
        }
        text_table_begin(&t, "SINCE|LAST|PORT|SWITCH|SOURCE|P_KEY|PARTITION|>COUNT", 0);
        for (uint32_t i = 0; i < r->n_items; i++)
                add_row(ctx, &t, &r->items[i]);
        text_table_print(ctx, &t);
        print_earlier(r);
        for (uint32_t i = 0; i < r->n_items && (r->once || ctx->options->verbose); i++)
                if (r->items[i].text)
                        printf("%s\n", r->items[i].text);
}

static const struct printer printer = { text_violations, json_violations, QUIET };

/* --- what pkeyd counted ---------------------------------------------------------------------------------------------- */

int command_violations(struct context *ctx)
{
        struct violations_result result = { .node = ctx->options->node, .since = ctx->options->since };
        int r = violations_request(ctx, &result);

        return r < 0 ? r : output(ctx, &printer, result.n_items > 0 ? EXIT_DIFFERENCE : EXIT_DONE, &result);
}

/* --- --once ---------------------------------------------------------------------------------------------------------- */

/* One sample of every counter, into the violation table. */
static int sample(struct context *ctx, struct violation_poll *poll, struct violations *violations)
{
        struct mad_stage stage = violation_poll_once(poll);
        int r = session_run_stage(ctx, &stage, "reading counters");

        return r < 0 ? r : violations_take_samples(violations, clock_now(), poll);
}

static void wait_between(const struct context *ctx, usec_t interval)
{
        _cleanup_progress_ struct progress progress = progress_begin("waiting", ctx->options->quiet);
        usec_t began = clock_now(), passed;

        while ((passed = clock_now() - began) < interval) {
                progress_show(&progress, passed / USEC_PER_SEC, interval / USEC_PER_SEC);
                (void) usleep((useconds_t) MIN(interval - passed, STEP));
        }
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
                if (!result->node || subnet_label_is_of(item->node, result->node) ||
                    subnet_label_is_of(item->switch_name, result->node))
                        result->n_items++;
        }
        result->n_all = result->n_items;
        return 0;
}

/* The same check as in the daemon: a mistyped name must not be answered with "no violations". */
static int check_node(struct context *ctx, const char *node)
{
        const struct subnet *s = ctx->subnet;

        if (!node)
                return 0;
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (subnet_label_is_of(subnet_port_label(ctx->arena, s, i), node))
                        return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, NULL, "no host, switch or port of the fabric is called '%s'", node);
}

static int poll_twice(struct context *ctx, struct violation_poll *poll, struct violations *violations,
                      struct violations_result *result)
{
        const struct violation_poll_config config = {
                .interval = result->interval, .check_hosts = true, .m_keys = ctx->files->m_keys,
        };
        struct violation_poll_counters counters;
        int r;

        violation_poll_set_config(poll, clock_now(), &config);
        r = violation_poll_set_subnet(poll, clock_now(), ctx->subnet) ?: violations_set_subnet(violations, ctx->subnet) ?:
            sample(ctx, poll, violations);
        if (r < 0)
                return r;
        result->counted_since = clock_wall();
        violation_poll_get_counters(poll, &counters);
        if (ctx->options->verbose)
                fprintf(stderr, "read the counters of %u ports; reading them again in %.0f s\n", counters.n_ports,
                        (double) result->interval / (double) USEC_PER_SEC);
        wait_between(ctx, result->interval);
        r = sample(ctx, poll, violations);
        if (r < 0)
                return r;
        violation_poll_get_counters(poll, &counters);
        result->n_polled = counters.n_ports;
        result->n_silent = counters.n_silent;
        return collect(ctx, violations, result);
}

int command_violations_once(struct context *ctx)
{
        usec_t interval = ctx->options->interval ?: DEFAULT_INTERVAL;
        struct violations_result result = { .node = ctx->options->node, .once = true, .interval = interval };
        const struct violations_config config = { .interval = interval, .threshold = 1 };
        const struct violation_poll_config poll_config = { .interval = interval };
        _cleanup_(violation_poll_free_p) struct violation_poll *poll = violation_poll_new(&poll_config);
        _cleanup_(violations_free_p) struct violations *violations = violations_new(&config);
        int sa, r;

        if (!poll || !violations)
                return -ENOMEM;
        r = session_use_gsi(ctx, &sa);
        if (r < 0 && r != -ENOMEM)
                r = findings_error(&ctx->findings, FINDING_HOST_DISCOVERY, NULL,
                                   "the port cannot be used for performance management: %s", strerror(-r));
        return r ?: check_node(ctx, ctx->options->node) ?: poll_twice(ctx, poll, violations, &result) ?:
               output(ctx, &printer, exit_status_of(result.n_items > 0, result.n_silent > 0), &result);
}
