/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/head.h"

#include <string.h>

#include "pkeyd/daemon.h"
#include "pkeyd/say.h"

#define GUARD_COOKIE UINT64_MAX /* no stage has so many requests */

bool head_follows(const struct daemon *d)
{
        return (d->generation && d->generation->settings->role == ROLE_FOLLOW_SM) ||
               (d->candidate && d->candidate->settings->role == ROLE_FOLLOW_SM);
}

bool head_may_write(const struct daemon *d, const struct generation *g)
{
        return g->settings->role == ROLE_ALWAYS || d->head.role.state == ROLE_WRITES;
}

void head_describe(const struct daemon *d, char *ret, size_t size)
{
        const struct head *h = &d->head;

        switch (h->role.state) {
        case ROLE_UNKNOWN:
                (void) snprintf(ret, size, "standing by: where the master SM is was not asked yet");
                return;
        case ROLE_STANDS_BY:
                (void) snprintf(ret, size, "standing by: the master SM is at LID %u%s%s%s", (unsigned) h->role.sm_lid.v,
                                *h->sm_name ? " (node " : "", h->sm_name, *h->sm_name ? ")" : "");
                return;
        case ROLE_TAKES_OVER:
                (void) snprintf(ret, size, "taking over: the master SM is on this host (LID %u), waiting until the other "
                                "head node has heard of it", (unsigned) h->role.sm_lid.v);
                return;
        case ROLE_WRITES:
                break;
        }
        (void) snprintf(ret, size, "writing: the master SM is on this host (LID %u)", (unsigned) h->role.sm_lid.v);
}

/* --- a look ------------------------------------------------------------------------------------------------------- */

static void make_view(const struct daemon *d, const struct port_info *info, struct role_view *ret)
{
        struct guid guids[ROLE_MAX_PORTS];
        size_t n = local_port_guids(guids, ROLE_MAX_PORTS);

        *ret = (struct role_view) { .sm_lid = info->sm_lid };
        role_view_add(ret, info->lid, info->lmc);
        if (d->picture)
                role_view_add_known(ret, d->picture->subnet, guids, n);
}

static void name_sm(struct daemon *d)
{
        const struct subnet *s = d->picture->subnet;
        const struct subnet_node *node = s->sm == SUBNET_NONE ? NULL : subnet_port_node(s, &s->ports[s->sm]);

        d->head.sm_name[0] = '\0';
        if (node)
                (void) snprintf(d->head.sm_name, sizeof(d->head.sm_name), "%s",
                                *node->name ? node->name : node->description);
}

static void say_role(const struct daemon *d)
{
        struct journal_about about = { .lid = d->head.role.sm_lid,
                                       .generation = d->generation ? d->generation->number : 0 };
        char text[192];

        head_describe(d, text, sizeof(text));
        switch (d->head.role.state) {
        case ROLE_STANDS_BY:
                journal_event(&d->journal, EVENT_STANDS_BY, &about, "%s; nothing is written from here", text);
                return;
        case ROLE_WRITES:
                journal_event(&d->journal, EVENT_WRITES, &about, "%s", text);
                return;
        case ROLE_UNKNOWN:
        case ROLE_TAKES_OVER:
                journal_debug(&d->journal, "%s", text);
                return;
        }
}

enum head_step head_see(struct daemon *d, const struct port_info *info, bool full, usec_t *ret_at)
{
        usec_t hold = ROLE_HOLD + daemon_wanted(d)->settings->timeout, now = clock_now();
        struct role_view view;
        bool changed;

        if (info->sm_lid.v != d->picture->subnet->sm_lid.v)
                return HEAD_LOOK_AGAIN; /* the picture is older than the SM */
        make_view(d, info, &view);
        changed = role_see(&d->head.role, &view, hold, now);
        name_sm(d);
        if (changed) {
                d->head.differs = 0;
                say_role(d);
        }
        if (d->head.role.state == ROLE_TAKES_OVER) {
                *ret_at = role_due(&d->head.role, hold);
                return HEAD_WAIT;
        }
        return changed && !full ? HEAD_LOOK_AGAIN : HEAD_GO_ON;
}

void head_doubt(struct daemon *d)
{
        role_doubt(&d->head.role);
}

/* --- the difference ------------------------------------------------------------------------------------------------- */

void head_compare(struct daemon *d, const struct generation *g, const struct verification *v)
{
        struct head *h = &d->head;

        if (head_may_write(d, g))
                h->differs = 0;
        else
                say_standby(&d->journal, g, d->picture->subnet, v, &h->differs);
}

/* --- the guard ------------------------------------------------------------------------------------------------------ */

static bool guard_next(void *state, usec_t now, struct mad_request *ret)
{
        struct head_guard *g = state;

        /* after a long wait for a port that does not answer, too, nothing is sent before it is known */
        if (g->asking)
                return false;
        if (now < g->asked_at + ROLE_ASK || g->inner.done(g->inner.state))
                return g->inner.next(g->inner.state, now, ret);
        g->ask = own_port_stage(&g->question, g->m_key);
        g->asking = true;
        g->asked_at = now;
        (void) g->ask.next(g->ask.state, now, ret);
        ret->cookie = GUARD_COOKIE;
        return true;
}

static void guard_result(void *state, usec_t now, const struct mad_result *result)
{
        struct head_guard *g = state;
        struct role_view view;

        if (result->cookie != GUARD_COOKIE) {
                g->inner.result(g->inner.state, now, result);
                return;
        }
        g->asking = false;
        g->ask.result(g->ask.state, now, result);
        if (g->question.outcome == MAD_ANSWERED) {
                make_view(g->d, &g->question.info, &view);
                if (role_sm_is_here(&view))
                        return;
        }
        g->end(g->userdata);
}

static bool guard_done(const void *state)
{
        const struct head_guard *g = state;

        return !g->asking && g->inner.done(g->inner.state);
}

static void guard_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct head_guard *g = state;

        g->inner.progress(g->inner.state, ret_done, ret_total);
}

struct mad_stage head_guard_stage(struct head_guard *g)
{
        return (struct mad_stage) {
                .state = g,
                .next = guard_next,
                .result = guard_result,
                .done = guard_done,
                .progress = guard_progress,
        };
}
