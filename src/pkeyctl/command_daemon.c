/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "session/bus_client.h"

#define MAX_HELD_LINES 4

/* --- status ---------------------------------------------------------------------------------------------------------- */

static void json_status(struct doc *d, const void *result)
{
        doc_merge(d, d->root, json_daemon_status(d, result, UINT64_MAX));
}

/* "": pkeyd always writes. */
static const char *describe_role(const struct daemon_status *s)
{
        if (!s->role || strcmp(s->role, "follow-sm") != 0)
                return "";
        return s->writing ? ", role follow-sm (writing)" : ", role follow-sm (not writing)";
}

static void print_files(const struct daemon_status *s)
{
        if (s->generation == 0)
                printf("  in force      nothing yet\n");
        else
                printf("  in force      generation %" PRIu64 ", %" PRIu64 " partition%s, mode %s%s%s\n", s->generation,
                       s->partitions, text_plural(s->partitions), s->mode ?: "?", describe_role(s),
                       daemon_is_in_state(s, "failed") ? "; the last sweep failed to carry it out" : "");
        printf("  policy        %s", s->policy_file ?: "?");
        if (s->file_errors > 0)
                printf(": pkeyd refused it or pkeyd.yaml, with %" PRIu64 " error%s; pkeyctl reload lists them",
                       s->file_errors, text_plural(s->file_errors));
        putchar('\n');
}

/* "  frozen        2 ports; ...", and at most `max` of the lines that the daemon sent of them. */
static void print_list(const char *label, uint64_t n, const char *what, const char *hint, const char *lines, uint64_t max)
{
        const char *line;
        uint64_t i = 0;
        int length;

        if (n == 0)
                return;
        printf("  %-13s %" PRIu64 " %s%s; %s\n", label, n, what, text_plural(n), hint);
        for (; i < max && (line = bus_next_line(&lines, &length)); i++)
                printf("                %.*s\n", length, line);
        if (i < n)
                printf("                and %" PRIu64 " more\n", n - i);
}

static void print_held(const struct daemon_status *s)
{
        print_list("held", s->held_bases, "base", "pkeyctl show held lists them", s->held, MAX_HELD_LINES);
}

static void print_leases(const struct daemon_status *s)
{
        if (s->leases == 0)
                return;
        printf("  leases        %" PRIu64 " lease%s", s->leases, text_plural(s->leases));
        if (s->leases_releasing > 0)
                printf(", %" PRIu64 " of them %s being released", s->leases_releasing, s->leases_releasing == 1 ? "is" : "are");
        printf("; pkeyctl lease list lists them\n");
}

/* "9 min 30 s" */
static const char *time_left(struct context *ctx, usec_t until)
{
        usec_t now = clock_wall();
        uint64_t left = until > now ? (until - now) / USEC_PER_SEC : 0, days = left / 86400;

        if (days > 0)
                return output_format(ctx, "%" PRIu64 " d %" PRIu64 " h", days, left % 86400 / 3600);
        if (left >= 3600)
                return output_format(ctx, "%" PRIu64 " h %" PRIu64 " min", left / 3600, left % 3600 / 60);
        return left >= 60 ? output_format(ctx, "%" PRIu64 " min %" PRIu64 " s", left / 60, left % 60)
                          : output_format(ctx, "%" PRIu64 " s", left);
}

static void print_confirm(struct context *ctx, const struct daemon_status *s, bool is_labelled)
{
        if (s->confirm_until > 0)
                printf("%sgeneration %" PRIu64 " will be undone in %s, at %s, unless pkeyctl confirm keeps it; pkeyctl undo undoes it now\n",
                       is_labelled ? "  confirm       " : "", s->generation, time_left(ctx, s->confirm_until),
                       output_time(ctx, s->confirm_until));
        if (s->undone > 0)
                printf("%sgeneration %" PRIu64 " was undone: the files on disk are not the ones in force; correct them, then "
                       "pkeyctl reload\n", is_labelled ? "  undone        " : "", s->undone);
}

static void text_status(struct context *ctx, const void *result)
{
        const struct daemon_status *s = result;
        uint64_t n_wrong = s->ports_differ + s->ports_unreachable;

        printf("pkeyd %s%s%s: %s%s\n", s->version ?: "?", s->fabric && *s->fabric ? ", fabric " : "", s->fabric ?: "", s->state ?: "?", s->reloading ? ", a reload is under way" : "");
        printf("  status        %s\n", s->text ?: "");
        print_files(s);
        print_confirm(ctx, s, true);
        printf("  ports         %" PRIu64 " managed: %" PRIu64 " match, %" PRIu64 " differ, %" PRIu64 " unreachable%s\n",
               s->ports_managed, s->ports_right, s->ports_differ, s->ports_unreachable,
               n_wrong == 0 ? "" : n_wrong == 1 ? "; pkeyctl verify names it" : "; pkeyctl verify names them");
        if (s->links_silent > 0)
                printf("  silent        %" PRIu64 " link%s did not answer discovery; pkeyctl verify names %s\n", s->links_silent,
                       s->links_silent == 1 ? " is up, but its other end" : "s are up, but their other ends",
                       s->links_silent == 1 ? "it" : "them");
        print_list("frozen", s->ports_frozen, "port", "pkeyctl plan shows what to do", s->frozen, UINT64_MAX);
        print_list("claims", s->names_claimed, "name", "pkeyctl pins shows what to do", s->claims, UINT64_MAX);
        print_held(s);
        print_leases(s);
        printf("  last success  %s\n", output_time(ctx, s->last_success));
        if (s->violations_since == 0)
                printf("  violations    not counted\n");
        else
                printf("  violations    %" PRIu64 " since %s\n", s->violations_total, output_time(ctx, s->violations_since));
        if (s->notices) /* an older daemon does not send it */
                printf("  notices       %s\n", s->notices);
}

static enum exit_status status_of(const struct daemon_status *s)
{
        bool is_partial = daemon_is_in_state(s, "partial");

        if (s->ports_differ > 0 || s->file_errors > 0 || s->undone > 0 || !(is_partial || daemon_is_in_state(s, "right")))
                return EXIT_DIFFERENCE;
        return s->ports_unreachable > 0 || s->ports_frozen > 0 || is_partial ? EXIT_PARTIAL : EXIT_DONE;
}

int command_status(struct context *ctx)
{
        static const struct printer printer = { text_status, json_status, QUIET };
        _cleanup_message_ sd_bus_message *reply = NULL;
        struct daemon_status status = {};

        return bus_client_call(ctx, BUS_INTERFACE, "Status", 0, &reply, "") ?:
               bus_client_read(ctx, reply, &daemon_status_fields, &status, NULL) ?:
               output(ctx, &printer, status_of(&status), &status);
}

/* --- reload ---------------------------------------------------------------------------------------------------------- */

/* How a reload ended. */
struct reload_result {
        const char *outcome;           /* "carried-out", ...: see org.pkeyd1(5) */
        uint64_t generation;           /* in force */
        const char *text;
        struct daemon_status daemon;   /* after it, for its held bases; empty: not known */
};

/* Any other outcome means that pkeyd refused the reload. */
static const struct outcome {
        const char *name, *sentence;
        enum exit_status status;
} outcomes[] = {
        { "carried-out", "carried out: ", EXIT_DONE },
        { "unchanged", "both files are unchanged: ", EXIT_DONE },
        { "partial", "partly carried out, pkeyd continues: ", EXIT_PARTIAL },
        { "waits", "not carried out yet, pkeyd keeps trying: ", EXIT_PARTIAL },
        { NULL, "", EXIT_REFUSED },
};

static const struct outcome *find_outcome(const struct reload_result *r)
{
        const struct outcome *o = outcomes;

        while (o->name && strcmp(r->outcome, o->name) != 0)
                o++;
        return o;
}

static json_t *reload_object(const struct reload_result *r)
{
        return json_pack("{s:o, s:I, s:o}", "outcome", doc_text(r->outcome), "generation", (json_int_t) r->generation,
                         "text", doc_text(r->text));
}

static void json_reload(struct doc *d, const void *result)
{
        const struct reload_result *r = result;

        doc_merge(d, d->root, reload_object(r));
        doc_add(d, d->root, "{s:I, s:o}", "held_bases", (json_int_t) r->daemon.held_bases, "held", doc_text(r->daemon.held ?: ""));
}

static void text_reload(struct context *ctx, const void *result)
{
        const struct reload_result *r = result;

        output_sentence(ctx, output_format(ctx, "%s%s", find_outcome(r)->sentence, r->text));
        if (ctx->status == EXIT_REFUSED || ctx->options->quiet)
                return;
        print_held(&r->daemon);
        print_confirm(ctx, &r->daemon, false);
}

static int read_reload(struct context *ctx, sd_bus_message *m, struct reload_result *ret)
{
        int r = sd_bus_message_read(m, "sts", &ret->outcome, &ret->generation, &ret->text);

        return r < 0 ? bus_client_complain(ctx, r) : 0;
}

/* The reply of a method that changes something. printer NULL: only its status. */
static int show_reply(struct context *ctx, const struct printer *printer, sd_bus_message *reply)
{
        struct reload_result result = {};
        enum exit_status status;
        int r = read_reload(ctx, reply, &result) ?: bus_client_read_findings(ctx, reply);

        if (r < 0)
                return r;
        status = find_outcome(&result)->status;
        if (status != EXIT_REFUSED) /* shows the bases that the new policy holds */
                r = bus_client_find(ctx, &result.daemon);
        if (r < 0 && r != -ETIMEDOUT)
                return r;
        return printer ? output(ctx, printer, status, &result) : (int) status;
}

static const struct printer reload_printer = { text_reload, json_reload, OK_IF_DONE };

/* An older pkeyd does not know ReloadWith. */
static int call_reload(struct context *ctx, sd_bus_message **ret)
{
        uint64_t seconds = ctx->options->confirm / USEC_PER_SEC;

        if (ctx->options->release_stranded && seconds > 0)
                return bus_client_call(ctx, BUS_INTERFACE, "ReloadWith", BUS_NO_TIMEOUT, ret, "a{sv}", 2, "ReleaseStranded", "b", true,
                                       "Confirm", "t", seconds);
        if (ctx->options->release_stranded)
                return bus_client_call(ctx, BUS_INTERFACE, "ReloadWith", BUS_NO_TIMEOUT, ret, "a{sv}", 1, "ReleaseStranded", "b",
                                       true);
        return seconds > 0 ? bus_client_call(ctx, BUS_INTERFACE, "ReloadConfirm", BUS_NO_TIMEOUT, ret, "t", seconds)
                           : bus_client_call(ctx, BUS_INTERFACE, "Reload", BUS_NO_TIMEOUT, ret, "");
}

int command_reload(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;

        return call_reload(ctx, &reply) ?: show_reply(ctx, &reload_printer, reply);
}

int daemon_undo(struct context *ctx, uint64_t generation)
{
        _cleanup_message_ sd_bus_message *reply = NULL;

        return bus_client_call(ctx, BUS_INTERFACE, "UndoGeneration", BUS_NO_TIMEOUT, &reply, "t", generation) ?:
               show_reply(ctx, &reload_printer, reply);
}

static void text_confirm(struct context *ctx, const void *result)
{
        const struct reload_result *r = result;

        output_sentence(ctx, r->text);
}

int daemon_confirm(struct context *ctx, bool shows)
{
        static const struct printer printer = { text_confirm, json_reload, OK_IF_DONE };
        _cleanup_message_ sd_bus_message *reply = NULL;

        return bus_client_call(ctx, BUS_INTERFACE, "Confirm", BUS_NO_TIMEOUT, &reply, "") ?:
               show_reply(ctx, shows ? &printer : NULL, reply);
}

/* --- watch ----------------------------------------------------------------------------------------------------------- */

/* What one line is about. */
enum event_kind {
        EVENT_STATUS, /* at the beginning, and when pkeyd has started */
        EVENT_CHANGE,
        EVENT_RELOAD,
        EVENT_VIOLATION,
        EVENT_GONE,
};

struct event {
        enum event_kind kind;
        usec_t when;                 /* CLOCK_REALTIME */
        struct daemon_status status; /* of EVENT_STATUS and EVENT_CHANGE */
        uint64_t changed;            /* its fields that the message had, a bit for each */
        struct reload_result reload;
        struct seen_violation violation;
};

/* One object to a line, each with the keys that every object of pkeyctl has. */
static void json_event(struct doc *d, const struct event *e)
{
        static const char *const names[] = {
                [EVENT_STATUS] = "status",       [EVENT_CHANGE] = "change", [EVENT_RELOAD] = "reload",
                [EVENT_VIOLATION] = "violation", [EVENT_GONE] = "gone",
        };

        doc_add(d, d->root, "{s:s, s:o}", "event", names[e->kind], "time", doc_time(e->when));
        if (e->kind == EVENT_STATUS || e->kind == EVENT_CHANGE)
                doc_add(d, d->root, "{s:o}", "status", json_daemon_status(d, &e->status, e->changed));
        else if (e->kind == EVENT_RELOAD)
                doc_add(d, d->root, "{s:o}", "reload", reload_object(&e->reload));
        else if (e->kind == EVENT_VIOLATION)
                doc_add(d, d->root, "{s:o}", "violation", json_violation(d, &e->violation));
}

/* "state=right generation=2", followed by the status line if that changed. Fields of several lines are left out. */
static void print_changes(struct context *ctx, const struct event *e)
{
        const uint64_t left_out = DAEMON_STATUS_BIT(text) | DAEMON_STATUS_BIT(frozen) | DAEMON_STATUS_BIT(claims) |
                                  DAEMON_STATUS_BIT(held);
        const char *space = "";

        for (size_t i = 0; i < daemon_status_fields.n; i++) {
                const struct bus_field *f = &daemon_status_fields.items[i];

                if (!(e->changed & ~left_out & UINT64_C(1) << i))
                        continue;
                if (f->kind == FIELD_TEXT)
                        printf("%s%s=%s", space, f->json_key, bus_field_text(f, &e->status) ?: "");
                else if (f->kind == FIELD_TIME)
                        printf("%s%s='%s'", space, f->json_key, output_time(ctx, bus_field_number(f, &e->status)));
                else
                        printf("%s%s=%" PRIu64, space, f->json_key, bus_field_number(f, &e->status));
                space = " ";
        }
        if (e->status.text)
                printf("%s%s", *space ? ": " : "", e->status.text);
}

/* A line for each held base. */
static void print_held_bases(struct context *ctx, const struct event *e)
{
        const char *when = output_time(ctx, e->when), *rest = e->status.held, *line;
        int length;

        if (rest && *rest == '\0' && e->kind == EVENT_CHANGE)
                printf("%s no base is held\n", when);
        while ((line = bus_next_line(&rest, &length)))
                printf("%s %.*s\n", when, length, line);
}

static void text_event(struct context *ctx, const struct event *e)
{
        if (e->kind == EVENT_CHANGE && e->changed == DAEMON_STATUS_BIT(held)) {
                print_held_bases(ctx, e);
                return;
        }
        printf("%s ", output_time(ctx, e->when));
        switch (e->kind) {
        case EVENT_STATUS:
        case EVENT_CHANGE:
                print_changes(ctx, e);
                break;
        case EVENT_RELOAD:
                printf("reload %s: %s", e->reload.outcome, e->reload.text);
                break;
        case EVENT_VIOLATION:
                printf("violation: %s", e->violation.text ?: "?");
                break;
        case EVENT_GONE:
                printf("pkeyd stopped");
                break;
        }
        putchar('\n');
        if (e->kind == EVENT_STATUS || e->changed & DAEMON_STATUS_BIT(confirm_until))
                print_confirm(ctx, &e->status, false);
        print_held_bases(ctx, e);
}

static int read_event(struct context *ctx, sd_bus_message *m, struct event *e)
{
        switch (e->kind) {
        case EVENT_STATUS:
        case EVENT_CHANGE:
                return bus_client_read(ctx, m, &daemon_status_fields, &e->status, &e->changed);
        case EVENT_RELOAD:
                return read_reload(ctx, m, &e->reload);
        case EVENT_VIOLATION:
                return bus_client_read(ctx, m, &seen_violation_fields, &e->violation, NULL);
        case EVENT_GONE:
                break;
        }
        return 0;
}

/* Ends the loop with an error. */
static int fail(struct context *ctx, int r)
{
        (void) sd_event_exit(ctx->event, r);
        return r;
}

/* Each line has an arena of its own: a watch may last for weeks. */
static int show(struct context *ctx, enum event_kind kind, sd_bus_message *m)
{
        struct event e = { .kind = kind, .when = clock_wall() };
        struct arena *all = ctx->arena;
        _cleanup_doc_ struct doc d = {};
        int r;

        ctx->arena = arena_new();
        r = ctx->arena ? read_event(ctx, m, &e) : -ENOMEM;
        if (r == 0 && ctx->options->json) {
                doc_begin(&d, ctx, true);
                json_event(&d, &e);
                doc_print(&d);
        } else if (r == 0 && !ctx->options->quiet) {
                text_event(ctx, &e);
        }
        r = r ?: ctx->output_r;
        if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
                r = -EIO;
        (void) arena_free(ctx->arena);
        ctx->arena = all;
        return r < 0 ? fail(ctx, r) : 0;
}

static int show_status(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;

        return bus_client_call(ctx, BUS_INTERFACE, "Status", 0, &reply, "") ?: show(ctx, EVENT_STATUS, reply);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *)
{
        const char *interface;

        if (sd_bus_message_is_signal(m, BUS_INTERFACE, "ReloadEnded") > 0)
                return show(userdata, EVENT_RELOAD, m);
        if (sd_bus_message_is_signal(m, BUS_INTERFACE, "Violation") > 0)
                return show(userdata, EVENT_VIOLATION, m);
        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties", "PropertiesChanged") > 0 &&
            sd_bus_message_read(m, "s", &interface) >= 0 && strcmp(interface, BUS_INTERFACE) == 0)
                return show(userdata, EVENT_CHANGE, m);
        return 0;
}

/* pkeyd has started or stopped. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *)
{
        const char *name, *before, *now;
        struct context *ctx = userdata;
        int r;

        if (sd_bus_message_read(m, "sss", &name, &before, &now) < 0)
                return 0;
        if (*now == '\0')
                return show(ctx, EVENT_GONE, NULL);
        r = show_status(ctx);
        return r < 0 ? fail(ctx, r) : 0;
}

static int on_disconnected(sd_bus_message *, void *userdata, sd_bus_error *)
{
        return fail(userdata, bus_client_complain(userdata, -ECONNRESET));
}

static int attach_bus(struct context *ctx)
{
        const char *owner = arena_printf(ctx->arena, "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                                                     "member='NameOwnerChanged',arg0='%s'", ctx->fabric.bus_name);
        sd_bus *bus = ctx->bus;
        int r;

        if (!owner)
                return -ENOMEM;
        r = sd_bus_attach_event(bus, ctx->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local", "Disconnected",
                                        on_disconnected, ctx);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, ctx->fabric.bus_name, ctx->fabric.bus_path, NULL, NULL, on_signal, ctx);
        if (r >= 0)
                r = sd_bus_add_match(bus, NULL, owner, on_owner, ctx);
        return r < 0 ? bus_client_complain(ctx, r) : 0;
}

int command_watch(struct context *ctx)
{
        return bus_client_open(ctx) ?: session_handle_signals(ctx, NULL) ?: attach_bus(ctx) ?:
               show_status(ctx) ?: sd_event_loop(ctx->event);
}
