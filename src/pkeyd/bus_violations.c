/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_violations.h"

#include <errno.h>
#include <string.h>

#include "pkeyd/bus_message.h"
#include "shell/shell.h"
#include "shell/timer.h"

#define ERROR_NO_SUCH_NODE "org.pkeyd1.Error.NoSuchNode"

#define MAX_NAME 320       /* a label has 64 bytes of the fabric, each escaped as \xNN, and a port number */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1) /* after all other events */
#define ACCURACY USEC_PER_MSEC
#define REST     9         /* times the duration of an answer, so that answers take at most a tenth of the daemon's time */

/* --- one answer ------------------------------------------------------------------------------------------------- */

/* Collects the latest BUS_MAX_RECORDS records; with `node` those of them that concern it. *ret_all: these and all earlier ones. */
static int collect(const struct violation_list *list, struct arena *a, usec_t since, const char *node,
                   struct violation_item **ret, uint32_t *ret_n, uint32_t *ret_all)
{
        struct violation_item *items;
        uint32_t n, all, kept = 0;
        int r = list->records(list->userdata, a, since, BUS_MAX_RECORDS, &items, &n, &all);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n && *node != '\0'; i++)
                if (subnet_label_is_of(items[i].about.node, node) || subnet_label_is_of(items[i].about.switch_name, node))
                        items[kept++] = items[i];
        *ret = items;
        *ret_n = *node == '\0' ? n : kept;
        *ret_all = *ret_n + (all - n);
        return 0;
}

/* A mistyped name must not lead to "no violations". Without a snapshot any name may be right. */
static bool is_unknown(const struct snapshot *snapshot, struct arena *a, const char *node)
{
        const struct subnet *s = snapshot ? snapshot->subnet : NULL;

        if (!s || *node == '\0')
                return false;
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (subnet_label_is_of(subnet_port_label(a, s, i), node))
                        return false;
        return true;
}

static void append_violations(struct bus_builder *b, const struct violation_list *list, const struct violation_item *items,
                              uint32_t n, uint32_t all)
{
        struct violation_summary summary;

        list->summarize(list->userdata, &summary);
        bus_append(b, "tu", summary.since, all);
        bus_open(b, 'a', "a{sv}");
        for (uint32_t i = 0; i < n; i++)
                bus_append_violation(b, &items[i]);
        bus_close(b);
}

/* Sends the answer, or sets the error. */
static int answer(struct bus_violations *v, sd_bus_message *call, sd_bus_error *error)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct violation_item *items;
        struct bus_builder reply;
        const char *node;
        uint32_t n, all;
        uint64_t since;
        int r = sd_bus_message_read(call, "ts", &since, &node);

        if (r < 0)
                return r;
        r = a ? collect(v->list, a, since, node, &items, &n, &all) : -ENOMEM;
        if (r < 0)
                return r;
        if (n == 0 && is_unknown(v->status->snapshot, a, node))
                return sd_bus_error_setf(error, ERROR_NO_SUCH_NODE,
                                         "no host, switch or port of the fabric is called '%s'", node);
        reply = bus_begin_reply(call);
        append_violations(&reply, v->list, items, n, all);
        return bus_send(&reply);
}

/* --- the queue -------------------------------------------------------------------------------------------------- */

static sd_bus_message *take_first_call(struct bus_violations *v)
{
        sd_bus_message *call = v->calls[0];

        memmove(&v->calls[0], &v->calls[1], --v->n_calls * sizeof(v->calls[0]));
        return call;
}

static int schedule_answer(struct bus_violations *v)
{
        return timer_set(v->turn, v->n_calls > 0 ? v->due : USEC_INFINITY);
}

static int on_turn(sd_event_source *, uint64_t, void *userdata)
{
        _cleanup_message_ sd_bus_message *call = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct bus_violations *v = userdata;
        usec_t began = clock_now(), now;
        int r;

        call = take_first_call(v);
        r = answer(v, call, &error);
        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, &error);
        sd_bus_error_free(&error);
        now = clock_now();
        v->due = now + REST * (now - began);
        return schedule_answer(v);
}

static bool is_waiting(const struct bus_violations *v, const char *sender)
{
        for (size_t i = 0; sender && i < v->n_calls; i++)
                if (strcmp(sd_bus_message_get_sender(v->calls[i]), sender) == 0)
                        return true;
        return false;
}

int bus_violations_take(struct bus_violations *v, sd_bus_message *call, sd_bus_error *error)
{
        const char *sender = sd_bus_message_get_sender(call), *node;
        uint64_t since;
        int r = sd_bus_message_read(call, "ts", &since, &node);

        if (r >= 0)
                r = sd_bus_message_rewind(call, true);
        if (r < 0)
                return r;
        if (!sender)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "the bus does not name the sender of this call");
        if (strlen(node) > MAX_NAME)
                return sd_bus_error_setf(error, ERROR_NO_SUCH_NODE,
                                         "no host, switch or port of the fabric has a name of %zu characters", strlen(node));
        if (is_waiting(v, sender))
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "this client already waits for violations; call again after that answer");
        if (v->n_calls == BUS_MAX_VIOLATIONS)
                return sd_bus_error_setf(error, BUS_ERROR_TOO_MANY, "%d clients already wait for violations; call again later",
                                         BUS_MAX_VIOLATIONS);
        v->calls[v->n_calls++] = sd_bus_message_ref(call);
        r = schedule_answer(v);
        if (r < 0)
                sd_bus_message_unref(v->calls[--v->n_calls]);
        return r < 0 ? r : 1;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void bus_violations_drop(struct bus_violations *v)
{
        while (v->n_calls > 0)
                sd_bus_message_unref(take_first_call(v));
        if (v->turn)
                (void) schedule_answer(v);
}

int bus_violations_init(struct bus_violations *v, sd_event *event, const struct control_status *status,
                        const struct violation_list *list)
{
        int r;

        *v = (struct bus_violations) { .status = status, .list = list };
        r = sd_event_add_time(event, &v->turn, CLOCK_MONOTONIC, 0, ACCURACY, on_turn, v);
        if (r >= 0)
                r = sd_event_source_set_priority(v->turn, PRIORITY);
        return r < 0 ? r : schedule_answer(v);
}

void bus_violations_done(struct bus_violations *v)
{
        bus_violations_drop(v);
        sd_event_source_disable_unref(v->turn);
}
