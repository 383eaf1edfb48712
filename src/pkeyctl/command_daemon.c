/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"

/* --- status ---------------------------------------------------------------------------------------------------------- */

static enum exit_status status_of(const struct daemon_status *s)
{
        if (s->ports_differ > 0 || s->file_errors > 0 || !(daemon_is(s, "right") || daemon_is(s, "partial")))
                return EXIT_DIFFERENCE;
        return s->ports_unreachable > 0 || s->ports_frozen > 0 || daemon_is(s, "partial") ? EXIT_PARTIAL : EXIT_DONE;
}

int command_status(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_ sd_bus *bus = NULL;
        struct result result = { .kind = RESULT_STATUS };
        int r;

        r = bus_client_open(ctx, &bus);
        if (r == 0)
                r = bus_client_call(ctx, bus, "Status", 0, &reply);
        if (r == 0)
                r = bus_client_read_fields(ctx, reply, daemon_status_fields, n_daemon_status_fields, &result.daemon, NULL);
        if (r < 0)
                return r;
        result.status = status_of(&result.daemon);
        return output(ctx, &result);
}

/* --- reload ---------------------------------------------------------------------------------------------------------- */

static enum exit_status status_of_outcome(const char *outcome)
{
        if (strcmp(outcome, "carried-out") == 0 || strcmp(outcome, "unchanged") == 0)
                return EXIT_DONE;
        if (strcmp(outcome, "partial") == 0 || strcmp(outcome, "waits") == 0)
                return EXIT_PARTIAL;
        return EXIT_REFUSED;
}

/* What the new policy has to wait for. The reload is over, whatever comes of this. */
static int find_held(struct context *ctx, struct result *result)
{
        int r = result->status == EXIT_REFUSED ? 0 : bus_client_find(ctx, &result->reload.daemon);

        return r < 0 && r != -ETIMEDOUT ? r : 0;
}

int command_reload(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_ sd_bus *bus = NULL;
        struct result result = { .kind = RESULT_RELOAD };
        struct reload_result *reload = &result.reload;
        int r;

        r = bus_client_open(ctx, &bus);
        if (r == 0)
                r = bus_client_call(ctx, bus, "Reload", UINT64_MAX, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "sts", &reload->outcome, &reload->generation, &reload->text);
        if (r < 0)
                return bus_client_complain(ctx, r);
        r = bus_client_read_findings(ctx, reply);
        if (r < 0)
                return r;
        result.status = status_of_outcome(reload->outcome);
        r = find_held(ctx, &result);
        return r < 0 ? r : output(ctx, &result);
}
