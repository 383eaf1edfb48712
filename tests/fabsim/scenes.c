/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Combined events, in some histories only: a cable that is moved while its host does not answer, two cables that are swapped,
 * the cable of a switch, a hand-over between two edits of the policy, and a device that answers as a switch. At random these would
 * coincide only once in many thousands of histories.
 *
 * A separate generator chooses these histories and their events, so that all other histories are the same as without scenes.
 */

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

#define SALT UINT64_C(0x7363656e6500018d) /* with it no history that tests/fabsim/seeds had before is one of these */
#define LIE_SALT UINT64_C(0x6c69617273000529) /* likewise, for histories with lies */

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
        SCENE_LIE,          /* x: endport, in whose place a device answers as a switch; y: which lie */
        SCENE_CONFESS,      /* x: endport, which is back */
};

static bool goes_on(enum scene_event what)
{
        return what == SCENE_SPEAK || what == SCENE_PLUG || what == SCENE_PLUG_UPLINK || what == SCENE_CONFESS;
}

static struct event *at(struct sim *s, usec_t when, enum scene_event what, unsigned x)
{
        struct event *e = events_add(&s->events, when, EVENT_SCENE);

        e->what = what;
        e->x = x;
        if (goes_on(what))
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

/* --- lies ------------------------------------------------------------------------------------------------------------ */

/*
 * A device in the place of a host answers as a switch. It is one or two nodes of the fabric that are forged: each invented link of
 * theirs leads from them to a port, and that port leads to what is plugged in there; so the device passes on, and answers for, what
 * is there. For the promises the host is unplugged: whether a device that lies about itself holds something cannot be known.
 *
 * Not told is what discovery/discovery.h lists as undetected: one device lies at a time, over one cable, which is none between
 * switches. A switch whose identity it takes answers meanwhile: else only the liar answers as that one.
 */

enum lie {
        LIE_INVENTS,        /* a switch, with links to ports of real ones */
        LIE_COPIES,         /* it is one of the real switches */
        LIE_COPIES_BEHIND,  /* ... which is behind an invented switch, with two links */
        N_LIES,
};

#define FORGED_PORTS 12 /* as every switch here */

/* A link that only this end names. */
static void invent_link(struct sim *s, unsigned node, uint8_t number, struct fabsim_place to)
{
        struct fabsim_port *p = &s->f.nodes[node].ports[number];

        p->is_cabled = true;
        p->peer_node = to.node;
        p->peer_port = to.port;
}

/* A port of a real switch; mostly one that a host is plugged into. */
static struct fabsim_place choose_claimed(struct sim *s, unsigned switch_or_any)
{
        struct prng *r = &s->lie_rng;
        unsigned node = switch_or_any == UINT_MAX ? prng_below(r, count_switches(s)) : switch_or_any;
        struct fabsim_place p = { node, (uint8_t) prng_between(r, 1, FORGED_PORTS) };

        for (unsigned tries = 0; tries < 20 && prng_permille(r, 900); tries++) {
                const struct fabsim_port *port = fabsim_port_at(&s->f, p);

                if (port->is_cabled && s->f.nodes[port->peer_node].type != NODE_SWITCH)
                        break;
                p.port = (uint8_t) prng_between(r, 1, FORGED_PORTS);
        }
        return p;
}

static unsigned forge(struct sim *s, unsigned n)
{
        unsigned node = s->n_nodes + n;
        struct fabsim_node *f = &s->f.nodes[node];

        while (s->f.n_nodes <= node)
                (void) fabsim_add_node(&s->f, NODE_SWITCH, FORGED_PORTS, 8, "MF0;forged:MQM8700/U1");
        for (uint8_t i = 0; i <= FORGED_PORTS; i++)
                f->ports[i].is_cabled = false;
        f->is_forged = f->is_up = true;
        return node;
}

/* Other switches than that which it is plugged into may not answer while the liar answers as them. */
static unsigned invent_switch(struct sim *s, unsigned beside)
{
        unsigned node = forge(s, 0), links = prng_between(&s->lie_rng, 1, 4);

        for (unsigned i = 0; i < links; i++)
                invent_link(s, node, (uint8_t) prng_between(&s->lie_rng, 1, FORGED_PORTS),
                            choose_claimed(s, s->copies_switches ? UINT_MAX : beside));
        return node;
}

/* It answers for all of the hosts there, for some, or for none. */
static void copy_links(struct sim *s, unsigned node, unsigned of)
{
        unsigned permille = prng_below(&s->lie_rng, 3) * 500;

        for (uint8_t i = 1; i <= FORGED_PORTS; i++) {
                const struct fabsim_port *p = &s->f.nodes[of].ports[i];

                if (p->is_cabled && prng_permille(&s->lie_rng, permille))
                        invent_link(s, node, i, (struct fabsim_place) { p->peer_node, p->peer_port });
        }
}

static unsigned copy_switch(struct sim *s, unsigned n, unsigned of)
{
        unsigned node = forge(s, n);
        struct fabsim_node *to = &s->f.nodes[node];
        const struct fabsim_node *from = &s->f.nodes[of];

        to->guid = from->guid;
        to->partition_cap = (uint16_t) (from->partition_cap + prng_permille(&s->lie_rng, 150));
        memcpy(to->description, from->description, sizeof(to->description));
        for (uint8_t i = 0; i <= FORGED_PORTS; i++)
                to->ports[i].guid = from->ports[i].guid;
        to->ports[0].capacity = to->partition_cap;
        to->ports[0].lid = from->ports[0].lid;
        copy_links(s, node, of);
        return node;
}

/* The invented switch has its own identity again. */
static void disown(struct sim *s, unsigned node)
{
        struct fabsim_node *f = &s->f.nodes[node];

        f->guid.v = UINT64_C(0x0002c90300800000) + s->counters.lies * 0x100;
        f->partition_cap = f->ports[0].capacity = 8;
        f->ports[0].lid.v = 0;
        (void) snprintf(f->description, sizeof(f->description), "MF0;forged:MQM8700/U1");
        for (uint8_t i = 0; i <= FORGED_PORTS; i++)
                f->ports[i].guid = f->guid;
}

/* The node that answers where the cable of the host was, and through which of its ports. */
static struct fabsim_place make_liar(struct sim *s, enum lie lie, unsigned beside)
{
        struct prng *r = &s->lie_rng;
        unsigned of = prng_below(r, count_switches(s)), node, behind;

        if (lie == LIE_COPIES) {
                node = copy_switch(s, 0, of);
                return (struct fabsim_place) { node, choose_claimed(s, of).port };
        }
        node = invent_switch(s, beside);
        disown(s, node);
        if (lie == LIE_COPIES_BEHIND) {
                behind = copy_switch(s, 1, of);
                for (unsigned i = 0; i < 2; i++)
                        fabsim_connect(&s->f, node, (uint8_t) (2 + i), behind, choose_claimed(s, of).port);
        }
        return (struct fabsim_place) { node, 1 };
}

static bool may_lie(const struct sim *s, unsigned endport)
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];

        return s->n_liars == 0 && p->is_cabled && s->f.nodes[p->peer_node].type == NODE_SWITCH;
}

static void trace_cables(struct sim *s)
{
        for (unsigned n = 0; s->trace && n < s->f.n_nodes; n++)
                for (uint8_t i = 1; i <= s->f.nodes[n].num_ports; i++) {
                        const struct fabsim_port *p = &s->f.nodes[n].ports[i];

                        if (p->is_cabled)
                                sim_trace(s, "%snode %u (0x%016" PRIx64 ") port %u leads to node %u port %u",
                                          s->f.nodes[n].is_forged ? "forged " : "", n, s->f.nodes[n].guid.v, i, p->peer_node, p->peer_port);
                }
}

static void tell(struct sim *s, const struct event *e)
{
        struct fabsim_place liar;

        if (!may_lie(s, e->x))
                return;
        pull(s, s->endports[e->x], &s->was_at[e->x]);
        s->n_liars = 1;
        s->liar = e->x;
        s->counters.lies++;
        liar = make_liar(s, (enum lie) e->y, s->was_at[e->x].node);
        fabsim_connect(&s->f, liar.node, liar.port, s->was_at[e->x].node, s->was_at[e->x].port);
        s->cables_moved_at = s->now;
        trace_cables(s);
}

static void confess(struct sim *s, unsigned endport)
{
        struct fabsim_place p = s->was_at[endport];

        if (s->n_liars == 0 || s->liar != endport)
                return;
        s->n_liars = 0;
        for (unsigned i = s->n_nodes; i < s->f.n_nodes; i++)
                s->f.nodes[i].is_up = false;
        fabsim_port_at(&s->f, p)->is_cabled = false;
        plug(s, s->endports[endport], p);
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
        case SCENE_LIE:
                tell(s, e);
                break;
        case SCENE_CONFESS:
                confess(s, e->x);
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

/* The liar comes, and goes after a while. */
static void lie_for_a_while(struct sim *s, struct prng *r, usec_t when, unsigned kinds)
{
        unsigned host = choose_host(s, r, UINT_MAX);
        usec_t until = when + USEC_PER_SEC + seconds(r, prng_permille(r, 500) ? 10 : 80);

        if (host == UINT_MAX)
                return;
        at(s, when, SCENE_LIE, host)->y = prng_below(r, kinds);
        (void) at(s, until, SCENE_CONFESS, host);
        (void) at(s, when + seconds(r, 2), SCENE_LOOK, 0);
        edit_after(s, r, when);
        s->quiet_at = MAX(s->quiet_at, until);
}

static bool is_any_switch_hidden(const struct sim *s)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->endports[i].port == 0 && (keys_hide(s, i) || keys_are_wrong(s, s->endports[i])))
                        return true;
        return false;
}

/* Where answers may be lost, so may be those of the switch whose identity is taken: then only the liar answers as that one. */
static void make_lies(struct sim *s)
{
        struct prng r = { .state = s->seed ^ LIE_SALT };
        unsigned kinds;

        if (prng_below(&r, 8) != 0 || s->use_directed_routes || count_switches(s) < 2)
                return;
        kinds = prng_permille(&r, 300) || is_any_switch_hidden(s) ? LIE_INVENTS + 1 : N_LIES;
        if (kinds == N_LIES)
                s->faults = (struct faults) { .kill = s->faults.kill, .trigger = s->faults.trigger, .slow = s->faults.slow };
        s->copies_switches = kinds == N_LIES;
        for (unsigned n = prng_between(&r, 2, 4); n > 0; n--)
                lie_for_a_while(s, &r, prng_permille(&r, 300) ? seconds(&r, 15) : 15 * USEC_PER_SEC + seconds(&r, 90), kinds);
        s->end_at = s->quiet_at + 900 * USEC_PER_SEC;
        s->calm_at = MAX(s->calm_at, s->quiet_at + SIM_MAX_HOLD);
        s->lie_rng = r;
}

void scenes_make(struct sim *s)
{
        struct prng r = { .state = s->seed ^ SALT };

        if (prng_below(&r, 8) != 0) {
                make_lies(s);
                return;
        }
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
