/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "shell/shell.h"

/* Ends the loop with an error that was made a finding, or is -ENOMEM. */
static int fail(struct context *ctx, int r)
{
        (void) sd_event_exit(ctx->event, r);
        return r;
}

/* Each line has an arena of its own: a watch may last for weeks. */
static int show(struct context *ctx, struct watched *what,
                int (*fill)(struct context *ctx, sd_bus_message *m, struct watched *what), sd_bus_message *m)
{
        struct arena *all = ctx->arena;
        int r = 0;

        ctx->arena = arena_new();
        what->when = clock_wall();
        if (!ctx->arena)
                r = -ENOMEM;
        if (r == 0 && fill)
                r = fill(ctx, m, what);
        if (r == 0)
                output_watched(ctx, what);
        if (r == 0)
                r = ctx->output_r;
        if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
                r = -EIO;
        (void) arena_free(ctx->arena);
        ctx->arena = all;
        return r < 0 ? fail(ctx, r) : 0;
}

static int fill_status(struct context *ctx, sd_bus_message *m, struct watched *what)
{
        return bus_client_read_fields(ctx, m, daemon_status_fields, n_daemon_status_fields, &what->status, &what->changed);
}

static int fill_reload(struct context *ctx, sd_bus_message *m, struct watched *what)
{
        struct reload_result *r = &what->reload;

        (void) ctx;
        return sd_bus_message_read(m, "sts", &r->outcome, &r->generation, &r->text) < 0 ? -ENOMEM : 0;
}

static int fill_violation(struct context *ctx, sd_bus_message *m, struct watched *what)
{
        return bus_client_read_fields(ctx, m, seen_violation_fields, n_seen_violation_fields, &what->violation, NULL);
}

static int show_status(struct context *ctx, sd_bus *bus)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        struct watched what = { .kind = WATCHED_STATUS };
        int r = bus_client_call(ctx, bus, "Status", 0, &reply);

        return r < 0 ? r : show(ctx, &what, fill_status, reply);
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct watched what = { .kind = WATCHED_CHANGE };
        const char *interface;

        (void) error;
        if (sd_bus_message_read(m, "s", &interface) < 0 || strcmp(interface, BUS_INTERFACE) != 0)
                return 0;
        return show(userdata, &what, fill_status, m);
}

static int on_reload_ended(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct watched what = { .kind = WATCHED_RELOAD };

        (void) error;
        return show(userdata, &what, fill_reload, m);
}

static int on_violation(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct watched what = { .kind = WATCHED_VIOLATION };

        (void) error;
        return show(userdata, &what, fill_violation, m);
}

/* The daemon came or went. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        struct watched what = { .kind = WATCHED_GONE };
        const char *name, *before, *now;
        struct context *ctx = userdata;
        int r;

        (void) error;
        if (sd_bus_message_read(m, "sss", &name, &before, &now) < 0)
                return 0;
        if (*now == '\0')
                return show(ctx, &what, NULL, NULL);
        r = show_status(ctx, sd_bus_message_get_bus(m));
        return r < 0 ? fail(ctx, r) : 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        (void) m;
        (void) error;
        return fail(userdata, bus_client_complain(userdata, -ECONNRESET));
}

static int match_signals(struct context *ctx, sd_bus *bus)
{
        int r;

        r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local", "Disconnected",
                                on_disconnected, ctx);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, "org.freedesktop.DBus.Properties", "PropertiesChanged",
                                        on_changed, ctx);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, BUS_INTERFACE, "ReloadEnded", on_reload_ended, ctx);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, BUS_NAME, BUS_PATH, BUS_INTERFACE, "Violation", on_violation, ctx);
        if (r >= 0)
                r = sd_bus_add_match(bus, NULL,
                                     "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                                     "member='NameOwnerChanged',arg0='" BUS_NAME "'",
                                     on_owner, ctx);
        return r < 0 ? bus_client_complain(ctx, r) : 0;
}

/* SIGINT and SIGTERM are its ordinary end. */
static int make_loop(struct context *ctx, sd_bus *bus)
{
        sigset_t set;
        int r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_default(&ctx->event);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, NULL, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_bus_attach_event(bus, ctx->event, SD_EVENT_PRIORITY_NORMAL);
        return r < 0 ? bus_client_complain(ctx, r) : 0;
}

int command_watch(struct context *ctx)
{
        _cleanup_bus_ sd_bus *bus = NULL;
        int r;

        r = bus_client_open(ctx, &bus);
        if (r == 0)
                r = make_loop(ctx, bus);
        if (r == 0)
                r = match_signals(ctx, bus);
        if (r == 0)
                r = show_status(ctx, bus);
        if (r < 0)
                return r;
        r = sd_event_loop(ctx->event);
        return r < 0 ? r : EXIT_DONE;
}
