/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Combined events, in some histories only: a cable that is moved while its host does not answer, two cables that are swapped,
 * the cable of a switch, and a hand-over between two edits of the policy. At random these would coincide only once in many
 * thousands of histories.
 *
 * A separate generator chooses these histories and their events, so that all other histories are the same as without scenes.
 */

#include <limits.h>

#include "sim.h"
#include "util/cleanup.h"

#define SALT UINT64_C(0x7363656e6500018d) /* with it no history that tests/fabsim/seeds had before is one of these */

enum scene_event {
        SCENE_MUTE,         /* x: endport, y: how */
        SCENE_SPEAK,        /* x: endport */
        SCENE_PULL,         /* x: endport */
        SCENE_PLUG,         /* x: endport, y: 0: anywhere; n + 1: where endport n was when it was pulled last */
        SCENE_PULL_UPLINK,  /* x: switch */
        SCENE_PLUG_UPLINK,  /* x: switch */
        SCENE_LOOK,         /* a reload of what is in force: the whole fabric is discovered */
        SCENE_EDIT,
        SCENE_HAND_OVER,
};

static struct event *at(struct sim *s, usec_t when, enum scene_event what, unsigned x)
{
        struct event *e = events_add(&s->events, when, EVENT_SCENE);

        e->what = what;
        e->x = x;
        if (what == SCENE_SPEAK || what == SCENE_PLUG || what == SCENE_PLUG_UPLINK)
                s->calm_at = MAX(s->calm_at, when + SIM_MAX_HOLD);
        return e;
}

static usec_t seconds(struct prng *r, unsigned most)
{
        return prng_below(r, most * 1000) * USEC_PER_MSEC;
}

/* --- what is moved --------------------------------------------------------------------------------------------------- */

static unsigned count_switches(const struct sim *s)
{
        unsigned n = 0;

        while (s->f.nodes[n].type == NODE_SWITCH)
                n++;
        return n;
}

static bool is_head_or_sm(const struct sim *s, unsigned node)
{
        for (unsigned i = 0; i < s->n_heads; i++)
                if (s->heads[i].place.node == node)
                        return true;
        return s->f.sm.node == node;
}

/* UINT_MAX: there is none. */
static unsigned choose_host(const struct sim *s, struct prng *r, unsigned but)
{
        for (unsigned tries = 0; tries < 50; tries++) {
                unsigned i = prng_below(r, s->n_endports);
                const struct fabsim_place p = s->endports[i];

                if (i != but && p.port > 0 && !is_head_or_sm(s, p.node) && s->f.nodes[p.node].ports[p.port].is_cabled)
                        return i;
        }
        return UINT_MAX;
}

#define UPLINK 12 /* of every switch but the first */

/* A link to a switch that hangs does not come up: the SM cannot set its port. */
static bool is_free(const struct sim *s, struct fabsim_place p)
{
        return !s->f.nodes[p.node].ports[p.port].is_cabled && !fabsim_is_mute(&s->f, p) && !(p.node > 0 && p.port == UPLINK);
}

static bool find_free(struct sim *s, unsigned switch_or_any, uint8_t first, uint8_t last, struct fabsim_place *ret)
{
        unsigned n = count_switches(s);

        for (unsigned tries = 0; tries < 50; tries++) {
                ret->node = switch_or_any == UINT_MAX ? prng_below(&s->scene_rng, n) : switch_or_any;
                ret->port = (uint8_t) prng_between(&s->scene_rng, first, last);
                if (is_free(s, *ret))
                        return true;
        }
        return false;
}

static void moved(struct sim *s, struct fabsim_place x, struct fabsim_place y)
{
        s->cables_moved_at = s->now;
        promises_moved(s, x);
        promises_moved(s, y);
        world_note_gone(s);
}

static void pull(struct sim *s, struct fabsim_place p, struct fabsim_place *ret_was_at)
{
        const struct fabsim_port *port = fabsim_port_at(&s->f, p);
        struct fabsim_place peer = { port->peer_node, port->peer_port };

        if (!port->is_cabled)
                return;
        *ret_was_at = peer;
        promises_moved(s, p); /* as it is still */
        fabsim_disconnect(&s->f, p.node, p.port);
        moved(s, p, peer);
}

static void plug(struct sim *s, struct fabsim_place p, struct fabsim_place peer)
{
        fabsim_connect(&s->f, p.node, p.port, peer.node, peer.port);
        s->has_moved_cables = true;
        moved(s, p, peer);
}

static void plug_host(struct sim *s, const struct event *e)
{
        struct fabsim_place peer = e->y > 0 ? s->was_at[e->y - 1] : (struct fabsim_place) {};

        if (fabsim_port_at(&s->f, s->endports[e->x])->is_cabled)
                return;
        if ((peer.port > 0 && is_free(s, peer)) || find_free(s, UINT_MAX, 1, 8, &peer))
                plug(s, s->endports[e->x], peer);
        else
                at(s, s->now + USEC_PER_SEC, SCENE_PLUG, e->x)->y = e->y; /* every switch with a free port hangs */
}

/* Switches are a tree: each has its uplink to one with a lower number. */
static void plug_uplink(struct sim *s, unsigned node)
{
        struct fabsim_place up = { node, UPLINK }, peer;

        if (fabsim_port_at(&s->f, up)->is_cabled)
                return;
        s->uplink_moved_at[node] = s->now;
        if (find_free(s, prng_below(&s->scene_rng, node), 9, 12, &peer) || find_free(s, 0, 9, 11, &peer))
                plug(s, up, peer);
        else
                (void) at(s, s->now + USEC_PER_SEC, SCENE_PLUG_UPLINK, node);
}

static void mute(struct sim *s, const struct event *e)
{
        static const enum fabsim_mute kinds[] = { FABSIM_MUTE, FABSIM_MUTE, FABSIM_MUTE, FABSIM_MUTE_ANSWERS, FABSIM_MUTE_P_KEYS };
        const struct fabsim_place p = s->endports[e->x];

        if (!is_head_or_sm(s, p.node))
                fabsim_port_at(&s->f, p)->mute = kinds[e->y % ELEMENTS(kinds)];
}

static bool goes_on(enum scene_event what)
{
        return what == SCENE_SPEAK || what == SCENE_PLUG || what == SCENE_PLUG_UPLINK;
}

void scenes_event(struct sim *s, const struct event *e)
{
        struct fabsim_place ignored;

        if (s->quiet && !goes_on(e->what))
                return;
        sim_trace(s, "scene: %u %u %u", e->what, e->x, e->y);
        switch ((enum scene_event) e->what) {
        case SCENE_MUTE:
                mute(s, e);
                break;
        case SCENE_SPEAK:
                fabsim_port_at(&s->f, s->endports[e->x])->mute = FABSIM_ANSWERS;
                break;
        case SCENE_PULL:
                pull(s, s->endports[e->x], &s->was_at[e->x]);
                break;
        case SCENE_PLUG:
                plug_host(s, e);
                break;
        case SCENE_PULL_UPLINK:
                s->uplink_moved_at[e->x] = s->now;
                pull(s, (struct fabsim_place) { e->x, UPLINK }, &ignored);
                break;
        case SCENE_PLUG_UPLINK:
                plug_uplink(s, e->x);
                break;
        case SCENE_LOOK:
                for (unsigned i = 0; i < s->n_heads; i++)
                        process_hangup(s, &s->processes[i]);
                break;
        case SCENE_EDIT:
                world_edit(s);
                break;
        case SCENE_HAND_OVER:
                world_hand_over(s);
                break;
        }
}

/* --- scenes ---------------------------------------------------------------------------------------------------------- */

/* Before its cable is pulled, meanwhile, or after; for a while, or forever. */
static void fall_silent(struct sim *s, struct prng *r, usec_t pulled, usec_t plugged, unsigned endport)
{
        usec_t when = pulled - seconds(r, 12);

        if (prng_permille(r, 400))
                when = pulled + prng_below(r, (unsigned) (plugged - pulled) + 300000);
        at(s, when, SCENE_MUTE, endport)->y = prng_below(r, 1000);
        if (prng_permille(r, 600))
                (void) at(s, plugged + seconds(r, 200), SCENE_SPEAK, endport);
}

/* The fabric is discovered soon, and after a while again; then the policy is edited. */
static void edit_after(struct sim *s, struct prng *r, usec_t when)
{
        (void) at(s, when + seconds(r, 8), SCENE_LOOK, 0);
        if (prng_permille(r, 500))
                (void) at(s, when += seconds(r, 70), SCENE_LOOK, 0);
        for (unsigned n = prng_between(r, 1, 2); n > 0; n--)
                (void) at(s, when += seconds(r, 25), SCENE_EDIT, 0);
        s->quiet_at = MAX(s->quiet_at, when + 20 * USEC_PER_SEC);
}

/* The cable of a silent host goes to a free port; or to that of another, whose cable goes elsewhere, or where the first was. */
static void move_host(struct sim *s, struct prng *r, usec_t when)
{
        unsigned host = choose_host(s, r, UINT_MAX), other = choose_host(s, r, host);
        usec_t plugged = when + seconds(r, prng_permille(r, 500) ? 2 : 30);
        bool takes_place = other != UINT_MAX && prng_permille(r, 600), swaps = prng_permille(r, 500);

        if (host == UINT_MAX)
                return;
        if (prng_permille(r, 500))
                (void) at(s, when - 5 * USEC_PER_SEC + seconds(r, 4), SCENE_LOOK, 0);
        (void) at(s, when, SCENE_PULL, host);
        if (takes_place)
                (void) at(s, when, SCENE_PULL, other);
        at(s, plugged, SCENE_PLUG, host)->y = takes_place ? other + 1 : 0;
        if (takes_place)
                at(s, plugged + (swaps ? 0 : seconds(r, 90)), SCENE_PLUG, other)->y = swaps ? host + 1 : 0;
        fall_silent(s, r, when, plugged, host);
        if (takes_place && prng_permille(r, 300))
                fall_silent(s, r, when, plugged, other);
        edit_after(s, r, plugged);
}

/* The cable of a switch, while it, or a host anywhere, does not answer. */
static void move_switch(struct sim *s, struct prng *r, usec_t when)
{
        unsigned n = count_switches(s), node, silent;
        usec_t plugged = when + seconds(r, prng_permille(r, 500) ? 2 : 30);

        if (n < 2)
                return;
        node = prng_between(r, 1, n - 1);
        silent = prng_permille(r, 300) ? world_endport_at(s, (struct fabsim_place) { node, 0 }) : choose_host(s, r, UINT_MAX);
        (void) at(s, when, SCENE_PULL_UPLINK, node);
        (void) at(s, plugged, SCENE_PLUG_UPLINK, node);
        if (silent != UINT_MAX)
                fall_silent(s, r, when, plugged, silent);
        edit_after(s, r, plugged);
}

/* A policy, a host that hangs when it was written to, a hand-over, and another policy. */
static void hand_over(struct sim *s, struct prng *r, usec_t when)
{
        unsigned silent;

        (void) at(s, when, SCENE_EDIT, 0);
        for (unsigned n = prng_between(r, 1, 3); n > 0; n--) {
                silent = choose_host(s, r, UINT_MAX);
                if (silent == UINT_MAX)
                        continue;
                at(s, when + seconds(r, 4), SCENE_MUTE, silent)->y = prng_below(r, 1000);
                if (prng_permille(r, 700))
                        (void) at(s, when + 20 * USEC_PER_SEC + seconds(r, 80), SCENE_SPEAK, silent);
        }
        when += seconds(r, 15);
        (void) at(s, when, SCENE_HAND_OVER, 0);
        edit_after(s, r, when);
}

void scenes_make(struct sim *s)
{
        struct prng r = { .state = s->seed ^ SALT };

        if (prng_below(&r, 8) != 0)
                return;
        for (unsigned n = prng_between(&r, 1, 3); n > 0; n--) {
                usec_t when = 15 * USEC_PER_SEC + seconds(&r, 90);
                unsigned kind = prng_below(&r, 3);

                s->quiet_at = MAX(s->quiet_at, when + 60 * USEC_PER_SEC);
                if (s->n_heads > 1 && kind != 0)
                        hand_over(s, &r, when);
                else if (kind == 2 && !s->use_directed_routes)
                        move_switch(s, &r, when);
                else if (!s->use_directed_routes)
                        move_host(s, &r, when);
        }
        s->end_at = s->quiet_at + 900 * USEC_PER_SEC;
        s->calm_at = MAX(s->calm_at, s->quiet_at + SIM_MAX_HOLD);
        s->scene_rng = r;
}
