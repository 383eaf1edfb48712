/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/opened_port.h"

#include <errno.h>
#include <string.h>

static bool is_open_as(const struct opened_port *p, const struct local_port *lp, const struct settings *settings)
{
        return p->session && strcmp(p->lp.ca, lp->ca) == 0 && p->lp.port == lp->port && p->window == settings->window &&
               p->timeout == settings->timeout;
}

static int open_session(struct opened_port *p, sd_event *event, const struct local_port *lp, const struct settings *settings,
                        const struct port_session_handlers *handlers)
{
        int r;

        if (is_open_as(p, lp, settings))
                return 0;
        opened_port_close(p);
        p->window = settings->window;
        p->timeout = settings->timeout;
        p->n_opened++;
        r = port_session_open(event, lp, settings, handlers, &p->session);
        if (r == 0 && p->serves)
                r = port_session_claim(p->session);
        if (r < 0)
                p->session = port_session_close(p->session);
        return r;
}

void opened_port_open(struct opened_port *p, sd_event *event, const struct settings *settings,
                      const struct port_session_handlers *handlers, struct control_port *ret)
{
        struct local_port lp = {};

        *ret = (struct control_port) { .r = local_port_find(settings->ca, settings->port, &lp) };
        if (p->is_of_several && lp.n_choices > 1)
                ret->r = -ENOTUNIQ;
        if (ret->r == 0)
                ret->r = open_session(p, event, &lp, settings, handlers);
        if (ret->r < 0)
                return;
        p->lp = lp;
        (void) snprintf(ret->name, sizeof(ret->name), "%s port %u", lp.ca, lp.port);
        ret->guid = lp.port_guid;
        ret->host_guids = p->host_guids;
        ret->n_host_guids = local_port_guids(p->host_guids, ELEMENTS(p->host_guids));
}

void opened_port_get_counters(const struct opened_port *p, struct mad_engine_counters *ret)
{
        struct mad_engine_counters now;

        *ret = p->closed;
        if (!p->session)
                return;
        port_session_get_counters(p->session, &now);
        ret->sent += now.sent;
        ret->retried += now.retried;
        ret->timed_out += now.timed_out;
        ret->answered += now.answered;
        ret->busy += now.busy;
        ret->malformed += now.malformed;
}

void opened_port_close(struct opened_port *p)
{
        opened_port_get_counters(p, &p->closed);
        p->session = port_session_close(p->session);
}
