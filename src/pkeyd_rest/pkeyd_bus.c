/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/pkeyd_bus.h"

#include <errno.h>
#include <string.h>

#include "shell/shell.h"
#include "shell/timer.h"

#define RETRY (1 * USEC_PER_SEC)

sd_bus *pkeyd_bus_get(const struct pkeyd_bus *b)
{
        return b->is_broken ? NULL : b->bus;
}

void pkeyd_bus_note_result(struct pkeyd_bus *b, const char *why)
{
        if (why && !b->logged_absent)
                door_log(b->journal, DOOR_EVENT_PKEYD_ABSENT, "pkeyd is not available: %s; clients get 503 until it is", why);
        if (!why && b->logged_absent)
                door_log(b->journal, DOOR_EVENT_PKEYD_FOUND, "pkeyd answers again");
        b->logged_absent = why;
}

static void disconnect(struct pkeyd_bus *b)
{
        if (!b->bus)
                return;
        (void) sd_bus_detach_event(b->bus);
        sd_bus_close(b->bus);
        b->bus = sd_bus_unref(b->bus);
}

static void retry_later(struct pkeyd_bus *b, const char *why)
{
        pkeyd_bus_note_result(b, why);
        b->is_broken = true;
        (void) timer_set(b->retry, clock_now() + RETRY);
}

static int on_disconnected(sd_bus_message *, void *userdata, sd_bus_error *)
{
        retry_later(userdata, "the bus closed the connection");
        return 0;
}

static int connect_to_bus(struct pkeyd_bus *b)
{
        int r = sd_bus_open_system(&b->bus);

        if (r >= 0)
                r = sd_bus_attach_event(b->bus, b->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_match_signal_async(b->bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local",
                                              "Disconnected", on_disconnected, NULL, b);
        return r < 0 ? r : 0;
}

static void reconnect(struct pkeyd_bus *b)
{
        char why[128];
        int r;

        disconnect(b);
        b->is_broken = false;
        r = connect_to_bus(b);
        if (r < 0) {
                (void) snprintf(why, sizeof(why), "the system bus: %s", strerror(-r));
                retry_later(b, why);
        }
}

static int on_retry(sd_event_source *, uint64_t, void *userdata)
{
        reconnect(userdata);
        return 0;
}

int pkeyd_bus_init(struct pkeyd_bus *b, sd_event *event, const struct fabric *fabric, const struct journal_output *journal)
{
        int r;

        *b = (struct pkeyd_bus) { .event = event, .fabric = fabric, .journal = journal };
        r = sd_event_add_time(event, &b->retry, CLOCK_MONOTONIC, USEC_INFINITY, 0, on_retry, b);
        if (r >= 0)
                reconnect(b);
        return r < 0 ? r : 0;
}

void pkeyd_bus_done(struct pkeyd_bus *b)
{
        disconnect(b);
        sd_event_source_disable_unref(b->retry);
}
