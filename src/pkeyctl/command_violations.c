/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"

static int read_items(struct context *ctx, sd_bus_message *m, struct violations_result *result)
{
        struct seen_violation *items;
        uint32_t n_all, n = 0;
        int r;

        r = sd_bus_message_read(m, "tu", &result->counted_since, &n_all);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "a{sv}");
        if (r < 0)
                return bus_client_complain(ctx, r);
        items = arena_new_array(ctx->arena, struct seen_violation, n_all);
        if (!items)
                return -ENOMEM;
        while (n < n_all && sd_bus_message_at_end(m, 0) == 0) {
                r = bus_client_read_fields(ctx, m, seen_violation_fields, n_seen_violation_fields, &items[n], NULL);
                if (r < 0)
                        return r;
                n++;
        }
        result->items = items;
        result->n_items = n;
        result->n_all = n_all;
        return 0;
}

static int ask(struct context *ctx, sd_bus *bus, sd_bus_message **ret)
{
        _cleanup_message_ sd_bus_message *call = NULL;
        const char *node = ctx->options->node ?: "";
        int r = sd_bus_message_new_method_call(bus, &call, BUS_NAME, BUS_PATH, BUS_INTERFACE, "Violations");

        if (r >= 0)
                r = sd_bus_message_append(call, "ts", ctx->options->since, node);
        return r < 0 ? bus_client_complain(ctx, r) : bus_client_send(ctx, bus, call, 0, ret);
}

int command_violations(struct context *ctx)
{
        struct result result = {
                .kind = RESULT_VIOLATIONS, .violations = { .node = ctx->options->node, .since = ctx->options->since },
        };
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_ sd_bus *bus = NULL;
        int r;

        if (ctx->options->once)
                return command_violations_once(ctx);
        r = bus_client_open(ctx, &bus);
        if (r == 0)
                r = ask(ctx, bus, &reply);
        if (r == 0)
                r = read_items(ctx, reply, &result.violations);
        if (r < 0)
                return r;
        result.status = result.violations.n_items > 0 ? EXIT_DIFFERENCE : EXIT_DONE;
        return output(ctx, &result);
}
