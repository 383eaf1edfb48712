/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "control/backoff.h"
#include "pkeyd/bus_leases.h"
#include "pkeyd/bus_message.h"
#include "pkeyd/bus_status.h"
#include "pkeyd/bus_violations.h"
#include "shell/shell.h"
#include "shell/timer.h"
#include "util/json.h"

#define BUS_INTERFACE "org.pkeyd1"

#define MAX_RETRY (60 * USEC_PER_SEC) /* the longest wait before connecting again */

/* Replies to RequestName, from the D-Bus specification. */
#define NAME_PRIMARY_OWNER 1u
#define NAME_ALREADY_OWNER 4u

/* A caller that has no answer yet. */
struct waiter {
        struct bus *bus;
        sd_bus_message *call; /* owned */
        struct bus_request request;
};

struct bus {
        sd_event *event;
        const struct fabric *fabric;
        const struct journal *journal;
        const struct control *control;
        const struct violation_list *violations;
        struct bus_handlers handlers;
        sd_bus *bus;                       /* NULL: not connected */
        sd_event_source *retry, *post;
        usec_t retry_delay;
        bool owns_name;
        bool logged_absent;
        char *policy_file;                 /* owned */
        struct bus_status status;          /* as it was after the last event */
        uint32_t unreported;               /* properties that changed since the last PropertiesChanged */
        struct waiter *waiters[BUS_MAX_WAITERS]; /* owned */
        size_t n_waiters;
        uint64_t last_request;
        struct bus_violations calls;
        struct bus_leases leases;
};

/* --- callers that wait for a reload ----------------------------------------------------------------------------- */

static void waiter_remove(struct bus *b, struct waiter *w)
{
        for (size_t i = 0; i < b->n_waiters; i++)
                if (b->waiters[i] == w) {
                        b->waiters[i] = b->waiters[--b->n_waiters];
                        break;
                }
        sd_bus_message_unref(w->call);
        free(w);
}

static void waiter_refuse(struct waiter *w, const char *error, const char *text)
{
        (void) sd_bus_reply_method_errorf(w->call, error, "%s", text);
        waiter_remove(w->bus, w);
}

static int waiter_new(struct bus *b, sd_bus_message *call, const struct bus_request *request, struct waiter **ret)
{
        struct waiter *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = (struct waiter) { .bus = b, .call = sd_bus_message_ref(call), .request = *request };
        w->request.number = ++b->last_request;
        b->waiters[b->n_waiters++] = w;
        *ret = w;
        return 0;
}

static void append_end(struct bus_builder *m, const struct reload_end *end)
{
        bus_append(m, "st", reload_outcome_to_string(end->outcome), end->generation);
        bus_append_text(m, end->text);
}

static void answer(struct waiter *w, const struct reload_end *end)
{
        struct bus_builder reply = bus_begin_reply(w->call);

        append_end(&reply, end);
        bus_append_findings(&reply, end->findings);
        bus_send_reply(&reply, w->call);
        waiter_remove(w->bus, w);
}

static bool fulfils(const struct reload_end *end, uint64_t request)
{
        for (size_t i = 0; i < end->n_requests; i++)
                if (end->requests[i] == request)
                        return true;
        return false;
}

/* --- signals ---------------------------------------------------------------------------------------------------- */

/* r is -EAGAIN: signals cannot be sent now. */
static struct bus_builder begin_signal(struct bus *b, const char *name)
{
        struct bus_builder m = { .r = -EAGAIN };

        if (b->owns_name && !bus_queue_is_full(b->bus))
                m.r = sd_bus_message_new_signal(b->bus, &m.message, b->fabric->bus_path, BUS_INTERFACE, name);
        return m;
}

static void send_signal(struct bus *b, const char *name, struct bus_builder *m)
{
        int r = bus_send(m);

        if (r < 0 && r != -EAGAIN)
                journal_event(b->journal, LOG_EVENT_DEBUG, NULL, "bus: signal %s: %s", name, strerror(-r));
}

void bus_answer(struct bus *b, const struct reload_end *end)
{
        if (!end->is_quiet) {
                struct bus_builder m = begin_signal(b, "ReloadEnded");

                append_end(&m, end);
                send_signal(b, "ReloadEnded", &m);
        }
        for (size_t i = b->n_waiters; i > 0; i--)
                if (fulfils(end, b->waiters[i - 1]->request.number))
                        answer(b->waiters[i - 1], end);
}

struct bus_leases *bus_get_leases(struct bus *b)
{
        return &b->leases;
}

void bus_emit_violation(struct bus *b, const struct violation_item *item)
{
        struct bus_builder m = begin_signal(b, "Violation");

        bus_append_violation(&m, item);
        send_signal(b, "Violation", &m);
}

/* Runs after each event and compares all properties, so that code that changes one need not emit it. */
static int on_post(sd_event_source *, void *userdata)
{
        const char *names[BUS_STATUS_MAX_NAMES];
        struct bus *b = userdata;
        int r;

        b->unreported |= bus_status_update(&b->status, control_get_status(b->control), b->violations, b->fabric->name ?: "",
                                           b->policy_file);
        if (b->unreported == 0 || !b->owns_name || bus_queue_is_full(b->bus))
                return 0;
        bus_status_names(b->unreported, names);
        r = sd_bus_emit_properties_changed_strv(b->bus, b->fabric->bus_path, BUS_INTERFACE, (char **) names);
        if (r < 0)
                journal_event(b->journal, LOG_EVENT_DEBUG, NULL, "bus: PropertiesChanged: %s", strerror(-r));
        b->unreported = 0;
        return 0;
}

/* --- methods ---------------------------------------------------------------------------------------------------- */

static int method_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const struct bus *b = userdata;
        struct bus_builder reply;
        int r = bus_check_queue(call, error);

        if (r < 0)
                return r;
        reply = bus_begin_reply(call);
        bus_status_append(&b->status, &reply);
        return bus_send(&reply);
}

/* Root may change something, and the user that pkeyd runs as. */
static int on_sender_user(sd_bus_message *reply, void *userdata, sd_bus_error *)
{
        struct waiter *w = userdata;
        const struct bus *b = w->bus;
        uint32_t user;

        if (!bus_read_sender(reply, &user) || (user != 0 && user != geteuid())) {
                waiter_refuse(w, SD_BUS_ERROR_ACCESS_DENIED, "permission denied: only root may do this");
        } else if (control_get_status(b->control)->stopping) {
                waiter_refuse(w, BUS_ERROR_STOPPING, "pkeyd is stopping");
        } else {
                struct bus_request request = w->request; /* a copy: the answer frees the waiter */

                request.by = (struct origin) { .kind = ORIGIN_BUS, .uid = user };
                (void) snprintf(request.by.user, sizeof(request.by.user), "%s", user == 0 ? "root" : "");
                b->handlers.asked(&request, b->handlers.userdata);
        }
        return 1;
}

/* Looks up the user of the caller; if it is authorized, it waits until bus_answer(). */
static int take_call(struct bus *b, sd_bus_message *call, const struct bus_request *request, sd_bus_error *error)
{
        struct waiter *w;
        int r;

        if (b->n_waiters == BUS_MAX_WAITERS)
                return sd_bus_error_setf(error, BUS_ERROR_TOO_MANY, "%d callers already wait for an answer; call again later",
                                         BUS_MAX_WAITERS);
        r = waiter_new(b, call, request, &w);
        if (r < 0)
                return r;
        r = bus_look_up_sender(call, on_sender_user, w, error);
        if (r < 0) {
                waiter_remove(b, w);
                return r;
        }
        return 1;
}

static int method_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return take_call(userdata, call, &(struct bus_request) { .kind = BUS_RELOAD }, error);
}

static int check_confirm_for(uint64_t seconds, sd_bus_error *error)
{
        if (seconds > 0 && seconds <= CONFIRM_MAX)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "the time to confirm must be 1 to %d seconds", CONFIRM_MAX);
}

static int method_reload_confirm(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct bus_request q = { .kind = BUS_RELOAD };
        int r = sd_bus_message_read(call, "t", &q.confirm_for);

        if (r >= 0)
                r = check_confirm_for(q.confirm_for, error);
        return r < 0 ? r : take_call(userdata, call, &q, error);
}

/* One entry of the options of ReloadWith. */
static int read_option(sd_bus_message *call, struct bus_request *q, sd_bus_error *error)
{
        const char *key;
        int r = sd_bus_message_read(call, "s", &key), yes = 0;

        if (r < 0)
                return r;
        if (strcmp(key, "Confirm") == 0) {
                r = sd_bus_message_read(call, "v", "t", &q->confirm_for);
                return r < 0 ? r : check_confirm_for(q->confirm_for, error);
        }
        if (strcmp(key, "ReleaseStranded") == 0) {
                r = sd_bus_message_read(call, "v", "b", &yes);
                q->releases_stranded = yes;
                return r < 0 ? r : 0;
        }
        return bus_refuse_option(key, "Confirm, ReleaseStranded", error);
}

static int method_reload_with(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct bus_request q = { .kind = BUS_RELOAD };
        int r = sd_bus_message_enter_container(call, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
                r = read_option(call, &q, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(call);
        }
        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int method_confirm(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return take_call(userdata, call, &(struct bus_request) { .kind = BUS_CONFIRM }, error);
}

static int method_undo(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return take_call(userdata, call, &(struct bus_request) { .kind = BUS_UNDO }, error);
}

static int method_undo_generation(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct bus_request q = { .kind = BUS_UNDO };
        int r = sd_bus_message_read(call, "t", &q.generation);

        return r < 0 ? r : take_call(userdata, call, &q, error);
}

static int method_violations(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        struct bus *b = userdata;
        int r = bus_check_queue(call, error);

        return r < 0 ? r : bus_violations_take(&b->calls, call, error);
}

/* All methods are unprivileged for sd-bus, because its own check would block: it asks the bus and waits for the answer. */
static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Status", "", "a{sv}", method_status, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Reload", "", "stsa" BUS_FINDING, method_reload, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ReloadConfirm", "t", "stsa" BUS_FINDING, method_reload_confirm, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ReloadWith", "a{sv}", "stsa" BUS_FINDING, method_reload_with, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Confirm", "", "stsa" BUS_FINDING, method_confirm, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Undo", "", "stsa" BUS_FINDING, method_undo, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("UndoGeneration", "t", "stsa" BUS_FINDING, method_undo_generation, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Violations", "ts", "tuaa{sv}", method_violations, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("Violation", "a{sv}", 0),
        SD_BUS_SIGNAL("ReloadEnded", "sts", 0),
#define X(name, signature, member, kind)                                                                               \
        SD_BUS_PROPERTY(#name, signature, NULL, offsetof(struct bus, status.member),                                   \
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        BUS_PROPERTIES(X)
#undef X
        SD_BUS_VTABLE_END,
};

/* --- the connection --------------------------------------------------------------------------------------------- */

static void disconnect(struct bus *b)
{
        while (b->n_waiters > 0)
                waiter_remove(b, b->waiters[0]);
        bus_violations_drop(&b->calls);
        bus_leases_drop(&b->leases);
        b->owns_name = false;
        if (!b->bus)
                return;
        (void) sd_bus_detach_event(b->bus);
        sd_bus_close(b->bus);
        b->bus = sd_bus_unref(b->bus);
}

/* The timer closes the connection, because this may be called from one of its callbacks. */
static void retry_later(struct bus *b, const char *why)
{
        int enabled;

        if (sd_event_source_get_enabled(b->retry, &enabled) > 0)
                return; /* already scheduled */
        b->owns_name = false;
        if (!b->logged_absent)
                journal_event(b->journal, LOG_EVENT_BUS_ABSENT, NULL,
                              "not on the system bus: %s; pkeyctl status, reload, lease, watch and violations cannot reach "
                              "pkeyd; pkeyd tries again", why);
        b->logged_absent = true;
        b->handlers.settled(b->handlers.userdata);
        b->retry_delay = backoff_next(b->retry_delay, MAX_RETRY);
        (void) timer_set(b->retry, clock_now() + b->retry_delay);
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *)
{
        struct bus *b = userdata;
        const char *problem = NULL;
        char why[128];
        uint32_t result;

        if (sd_bus_message_is_method_error(reply, NULL))
                problem = sd_bus_message_get_error(reply)->message ?: "the bus refused the name";
        else if (sd_bus_message_read(reply, "u", &result) < 0 || (result != NAME_PRIMARY_OWNER && result != NAME_ALREADY_OWNER))
                problem = "another process has the name";
        if (problem) {
                (void) snprintf(why, sizeof(why), "%s: %s", b->fabric->bus_name, problem);
                retry_later(b, why);
                return 1;
        }
        b->owns_name = true;
        b->retry_delay = 0;
        if (b->logged_absent)
                journal_event(b->journal, LOG_EVENT_BUS_FOUND, NULL, "on the system bus as %s", b->fabric->bus_name);
        b->logged_absent = false;
        b->handlers.settled(b->handlers.userdata);
        return 1;
}

static int on_disconnected(sd_bus_message *, void *userdata, sd_bus_error *)
{
        retry_later(userdata, "the bus closed the connection");
        return 0;
}

/* Whether this waits for org.pkeyd1, or has it, makes no difference; see fabric.h. */
static int on_common_name(sd_bus_message *reply, void *userdata, sd_bus_error *)
{
        const struct bus *b = userdata;

        if (sd_bus_message_is_method_error(reply, NULL))
                journal_event(b->journal, LOG_EVENT_DEBUG, NULL, "bus: " FABRIC_BUS_NAME ": %s", sd_bus_message_get_error(reply)->name);
        return 1;
}

/* The pkeyd of a host with one fabric takes org.pkeyd1 from those of named fabrics. */
static int request_names(struct bus *b)
{
        int r = 0;

        if (b->fabric->name)
                r = sd_bus_request_name_async(b->bus, NULL, FABRIC_BUS_NAME, SD_BUS_NAME_QUEUE | SD_BUS_NAME_ALLOW_REPLACEMENT,
                                              on_common_name, b);
        if (r >= 0)
                r = sd_bus_request_name_async(b->bus, NULL, b->fabric->bus_name,
                                              b->fabric->name ? 0 : SD_BUS_NAME_REPLACE_EXISTING, on_name, b);
        return r;
}

static int connect_to_bus(struct bus *b)
{
        int r = sd_bus_open_system(&b->bus);

        if (r >= 0)
                r = sd_bus_attach_event(b->bus, b->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_match_signal_async(b->bus, NULL, "org.freedesktop.DBus.Local", NULL,
                                              "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, NULL, b);
        if (r >= 0)
                r = sd_bus_add_object_vtable(b->bus, NULL, b->fabric->bus_path, BUS_INTERFACE, vtable, b);
        if (r >= 0)
                r = bus_leases_connect(&b->leases, b->bus, b->fabric->bus_path);
        if (r >= 0)
                r = request_names(b);
        return r < 0 ? r : 0;
}

static int on_retry(sd_event_source *, uint64_t, void *userdata)
{
        struct bus *b = userdata;
        int r;

        disconnect(b);
        r = connect_to_bus(b);
        if (r < 0)
                retry_later(b, strerror(-r));
        return 0;
}

int bus_new(sd_event *event, const struct fabric *fabric, const struct control *control, const struct violation_list *violations,
            const struct journal *journal, const char *policy_file, const struct bus_handlers *handlers, struct bus **ret)
{
        _cleanup_(bus_free_p) struct bus *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        *b = (struct bus) {
                .event = event, .fabric = fabric, .journal = journal, .control = control, .violations = violations,
                .handlers = *handlers, .policy_file = json_make_utf8(policy_file),
        };
        bus_leases_init(&b->leases, control_get_status(control), handlers->asked_lease, handlers->userdata);
        r = b->policy_file ? 0 : -ENOMEM;
        if (r >= 0)
                r = sd_event_add_time(event, &b->retry, CLOCK_MONOTONIC, 0, 0, on_retry, b);
        if (r >= 0)
                r = sd_event_add_post(event, &b->post, on_post, b);
        if (r >= 0)
                r = bus_violations_init(&b->calls, event, control_get_status(control), violations);
        if (r < 0)
                return r;
        (void) bus_status_update(&b->status, control_get_status(control), violations, fabric->name ?: "", b->policy_file);
        *ret = STEAL(b);
        return 0;
}

struct bus *bus_free(struct bus *b)
{
        if (!b)
                return NULL;
        disconnect(b);
        bus_violations_done(&b->calls);
        sd_event_source_disable_unref(b->retry);
        sd_event_source_disable_unref(b->post);
        free(b->policy_file);
        free(b);
        return NULL;
}
