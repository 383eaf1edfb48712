/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/sm_follow.h"

#define LMC_MASK 7 /* three bits */

void sm_view_add(struct sm_view *v, struct lid lid, uint8_t lmc)
{
        if (v->n_own < SM_MAX_PORTS && lid.v != 0)
                v->own[v->n_own++] = (struct sm_port) { lid, lmc & LMC_MASK };
}

void sm_view_add_known(struct sm_view *v, const struct subnet *s, const struct guid *guids, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                uint32_t port = subnet_find_endport(s, guids[i]);

                if (port != SUBNET_NONE)
                        sm_view_add(v, s->ports[port].lid, s->ports[port].lmc);
        }
}

bool sm_is_here(const struct sm_view *v)
{
        for (size_t i = 0; i < v->n_own && v->sm_lid.v != 0; i++)
                if (v->own[i].lid.v >> v->own[i].lmc == v->sm_lid.v >> v->own[i].lmc)
                        return true;
        return false;
}

static enum sm_follow_state next_state(const struct sm_follow *f, const struct sm_view *v, usec_t now, usec_t hold)
{
        if (!sm_is_here(v))
                return SM_FOLLOW_STANDBY;
        if (f->doubted)
                return SM_FOLLOW_TAKING_OVER;
        switch (f->state) {
        case SM_FOLLOW_UNKNOWN:
        case SM_FOLLOW_STANDBY:
                return SM_FOLLOW_TAKING_OVER;
        case SM_FOLLOW_TAKING_OVER:
                return now >= sm_follow_due(f, hold) ? SM_FOLLOW_WRITER : SM_FOLLOW_TAKING_OVER;
        case SM_FOLLOW_WRITER:
                break;
        }
        return SM_FOLLOW_WRITER;
}

bool sm_follow_see(struct sm_follow *f, const struct sm_view *v, usec_t now, usec_t hold)
{
        enum sm_follow_state next = next_state(f, v, now, hold);
        bool moved = next == SM_FOLLOW_STANDBY && v->sm_lid.v != f->sm_lid.v, changed = next != f->state;

        if (next == SM_FOLLOW_TAKING_OVER && (changed || f->doubted))
                f->since = now;
        f->state = next;
        f->sm_lid = v->sm_lid;
        f->doubted = false;
        return changed || moved;
}

void sm_follow_doubt(struct sm_follow *f)
{
        f->doubted = true;
}

usec_t sm_follow_due(const struct sm_follow *f, usec_t hold)
{
        return f->since + hold;
}

void sm_follow_describe(const struct sm_follow *f, const char *sm_name, char *ret, size_t size)
{
        unsigned lid = f->sm_lid.v;

        switch (f->state) {
        case SM_FOLLOW_UNKNOWN:
                (void) snprintf(ret, size, "standing by: the location of the master SM is not known yet");
                return;
        case SM_FOLLOW_STANDBY:
                (void) snprintf(ret, size, "standing by: the master SM is at LID %u%s%s%s", lid, *sm_name ? " (node " : "",
                                sm_name, *sm_name ? ")" : "");
                return;
        case SM_FOLLOW_TAKING_OVER:
                (void) snprintf(ret, size, "taking over: the master SM is on this host (LID %u), waiting for the other "
                                "head node to notice", lid);
                return;
        case SM_FOLLOW_WRITER:
                break;
        }
        (void) snprintf(ret, size, "writing: the master SM is on this host (LID %u)", lid);
}

/* --- the guard ------------------------------------------------------------------------------------------------------ */

#define GUARD_COOKIE UINT64_MAX /* not a cookie of `inner`: no stage has so many requests */

static bool guard_next(void *state, usec_t now, struct mad_request *ret)
{
        struct sm_guard *g = state;

        /* nothing is sent before the answer, however long that takes */
        if (g->asking)
                return false;
        if (now < g->asked_at + SM_ANSWER_VALID || g->inner.done(g->inner.state)) {
                if (!g->inner.next(g->inner.state, now, ret))
                        return false;
                if (ret->method == MAD_SET)
                        ret->send_before = g->asked_at + SM_ANSWER_VALID;
                return true;
        }
        g->ask = port_query_stage(&g->query, g->m_key);
        g->asking = true;
        g->asked_at = now;
        (void) g->ask.next(g->ask.state, now, ret);
        ret->cookie = GUARD_COOKIE;
        return true;
}

static bool guard_sees_sm(const struct sm_guard *g)
{
        struct sm_view view = g->others;

        if (g->query.outcome != MAD_ANSWERED)
                return false;
        sm_view_add(&view, g->query.info.lid, g->query.info.lmc);
        view.sm_lid = g->query.info.sm_lid;
        return sm_is_here(&view);
}

static void guard_result(void *state, usec_t now, const struct mad_result *result)
{
        struct sm_guard *g = state;

        if (result->cookie != GUARD_COOKIE) {
                g->inner.result(g->inner.state, now, result);
                return;
        }
        g->asking = false;
        g->ask.result(g->ask.state, now, result);
        if (!guard_sees_sm(g))
                g->end(g->userdata);
}

static bool guard_done(const void *state)
{
        const struct sm_guard *g = state;

        return !g->asking && g->inner.done(g->inner.state);
}

static void guard_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct sm_guard *g = state;

        g->inner.progress(g->inner.state, ret_done, ret_total);
}

struct mad_stage sm_guard_stage(struct sm_guard *g)
{
        return (struct mad_stage) {
                .state = g,
                .next = guard_next,
                .result = guard_result,
                .done = guard_done,
                .progress = guard_progress,
        };
}
