/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/role.h"

#define LMC_MASK 7 /* three bits */

void role_view_add(struct role_view *v, struct lid lid, uint8_t lmc)
{
        if (v->n_own < ROLE_MAX_PORTS && lid.v != 0)
                v->own[v->n_own++] = (struct role_port) { lid, lmc & LMC_MASK };
}

void role_view_add_known(struct role_view *v, const struct subnet *s, const struct guid *guids, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                uint32_t port = subnet_find_endport(s, guids[i]);

                if (port != SUBNET_NONE)
                        role_view_add(v, s->ports[port].lid, s->ports[port].lmc);
        }
}

bool role_sm_is_here(const struct role_view *v)
{
        for (size_t i = 0; i < v->n_own && v->sm_lid.v != 0; i++)
                if (v->own[i].lid.v >> v->own[i].lmc == v->sm_lid.v >> v->own[i].lmc)
                        return true;
        return false;
}

static enum role_state next_state(const struct role *r, const struct role_view *v, usec_t hold, usec_t now)
{
        if (!role_sm_is_here(v))
                return ROLE_STANDS_BY;
        if (r->doubted)
                return ROLE_TAKES_OVER;
        switch (r->state) {
        case ROLE_UNKNOWN:
        case ROLE_STANDS_BY:
                return ROLE_TAKES_OVER;
        case ROLE_TAKES_OVER:
                return now >= role_due(r, hold) ? ROLE_WRITES : ROLE_TAKES_OVER;
        case ROLE_WRITES:
                break;
        }
        return ROLE_WRITES;
}

bool role_see(struct role *r, const struct role_view *v, usec_t hold, usec_t now)
{
        enum role_state next = next_state(r, v, hold, now);
        bool moved = next == ROLE_STANDS_BY && v->sm_lid.v != r->sm_lid.v, changed = next != r->state;

        if (next == ROLE_TAKES_OVER && (changed || r->doubted))
                r->since = now;
        r->state = next;
        r->sm_lid = v->sm_lid;
        r->doubted = false;
        return changed || moved;
}

void role_doubt(struct role *r)
{
        r->doubted = true;
}

usec_t role_due(const struct role *r, usec_t hold)
{
        return r->since + hold;
}
