/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the event loop does next for a server. */
#include "pkeyd_rest/http_internal.h"
#include "shell/timer.h"

void http_run_soon(struct http_server *s)
{
        (void) sd_event_source_set_enabled(s->run, SD_EVENT_ONESHOT);
}

void http_wake_at(struct http_server *s, usec_t due)
{
        if (due >= s->timer_due)
                return;
        s->timer_due = due;
        (void) timer_set(s->timer, due);
}

bool http_has_ended(const struct http_server *s)
{
        return s->is_ending && !s->connections && s->n_requests == 0;
}

void http_check_end(struct http_server *s)
{
        if (http_has_ended(s))
                (void) sd_event_source_set_enabled(s->end, SD_EVENT_ONESHOT);
}
