/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/notify.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "shell/shell.h"
#include "shell/timer.h"

#define INTERVAL  (2 * USEC_PER_SEC) /* between requests for more time */
#define MORE_TIME (30 * USEC_PER_SEC)

#define MAX_STATUS 3800 /* bytes; systemd ignores a message of more than 4096 bytes, and READY=1 with it */

static void send_status(struct notify *n, const char *state, const char *text)
{
        if (!*state && n->text && strcmp(n->text, text) == 0)
                return;
        free(n->text);
        n->text = strdup(text);
        (void) sd_notifyf(0, "%s%sSTATUS=%.*s%s", state, *state ? "\n" : "", MAX_STATUS, text,
                          strlen(text) > MAX_STATUS ? "... (pkeyctl status shows all of it)" : "");
}

/* Runs while a start or a reload takes long. */
static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        struct notify *n = userdata;
        char what[CONTROL_TEXT_MAX];

        (void) sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, (uint64_t) MORE_TIME);
        control_describe(n->control, what, sizeof(what));
        send_status(n, "", what);
        (void) timer_set(n->timer, clock_now() + INTERVAL);
        return 0;
}

void notify_reloading(struct notify *n)
{
        if (!n->ready || n->reloading)
                return;
        n->reloading = true;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reloading the files", clock_now());
        (void) timer_set(n->timer, clock_now() + INTERVAL);
}

void notify_update(struct notify *n)
{
        const struct control_status *s = control_get_status(n->control);

        if (s->stopping) {
                send_status(n, n->stopping ? "" : "STOPPING=1", s->text);
                n->stopping = true;
        } else if (s->ready && n->settled && !s->reload_pending && (!n->ready || n->reloading)) {
                send_status(n, "READY=1", s->text);
                n->ready = true;
                n->reloading = false;
                (void) timer_set(n->timer, USEC_INFINITY);
        } else {
                send_status(n, "", s->text);
        }
}

void notify_settled(struct notify *n)
{
        n->settled = true;
        notify_update(n);
}

int notify_init(struct notify *n, sd_event *event, const struct control *control)
{
        int r;

        *n = (struct notify) { .control = control };
        r = sd_event_add_time(event, &n->timer, CLOCK_MONOTONIC, clock_now() + INTERVAL, 0, on_timer, n);
        return r < 0 ? r : 0;
}

void notify_done(struct notify *n)
{
        sd_event_source_disable_unref(n->timer);
        free(n->text);
}
