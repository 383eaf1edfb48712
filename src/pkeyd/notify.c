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

struct notify {
        const struct control *control;
        sd_event_source *timer;
        bool settled;                    /* clients can call the daemon, or it is known that they cannot */
        bool ready, reloading, stopping; /* as last sent */
        char *text;                      /* as last sent; owned; NULL: none yet */
};

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

int notify_new(sd_event *event, const struct control *control, struct notify **ret)
{
        _cleanup_(notify_free_p) struct notify *n = calloc(1, sizeof(*n));
        int r;

        if (!n)
                return -ENOMEM;
        n->control = control;
        r = sd_event_add_time(event, &n->timer, CLOCK_MONOTONIC, clock_now() + INTERVAL, 0, on_timer, n);
        if (r < 0)
                return r;
        *ret = STEAL(n);
        return 0;
}

struct notify *notify_free(struct notify *n)
{
        if (!n)
                return NULL;
        sd_event_source_disable_unref(n->timer);
        free(n->text);
        free(n);
        return NULL;
}
