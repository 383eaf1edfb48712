/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random fabrics and random external events. */

#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

#define MAX_HOSTS_NAMED 99

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

static void describe_host(struct sim *s, unsigned node)
{
        (void) snprintf(s->f.nodes[node].description, NODE_DESCRIPTION_SIZE, "node%03u mlx5_%u", s->host_of[node],
                        s->device_of[node]);
}

static uint16_t random_key(struct sim *s)
{
        uint16_t base = sim_bases[prng_below(&s->rng, SIM_BASES)];

        return (uint16_t) (base | (prng_permille(&s->rng, 500) ? 0x8000 : 0));
}

/* Often at the boundaries of blocks. */
static unsigned random_index(struct sim *s, uint16_t capacity)
{
        static const unsigned edges[] = { 1, 2, 3, 30, 31, 32, 33, 63, 64, 65, 95, 96, 127 };
        unsigned i = prng_permille(&s->rng, 700) ? edges[prng_below(&s->rng, ELEMENTS(edges))] :
                                                   prng_below(&s->rng, capacity);

        return i < capacity ? i : capacity - 1U;
}

/* The table before pkeyd starts: mostly the default partition at index 0, and random entries without duplicates. */
static void fill_table(struct sim *s, struct fabsim_port *p)
{
        unsigned n = prng_below(&s->rng, prng_permille(&s->rng, 200) ? p->capacity : MIN(6, p->capacity - 1));

        memset(p->table, 0, sizeof(p->table));
        if (prng_permille(&s->rng, 900))
                p->table[0].v = prng_permille(&s->rng, 500) ? 0xffff : 0x7fff;
        while (n-- > 0) {
                unsigned i = random_index(s, p->capacity);
                uint16_t key = random_key(s);
                bool twice = false;

                for (unsigned k = 0; k < p->capacity; k++)
                        twice |= p->table[k].v == key;
                if (!twice)
                        p->table[i].v = key;
        }
        if (prng_permille(&s->rng, 50))
                p->table[p->capacity - 1].v = 0x8000; /* still unused */
}

/* A switch port that enforces has the entries of its peer, as set by the program that turned enforcement on. */
static void fill_enforcing(struct sim *s, struct fabsim_place leaf, const struct fabsim_port *endport)
{
        struct fabsim_port *p = fabsim_port_at(&s->f, leaf);
        const struct fabsim_node *n = &s->f.nodes[leaf.node];
        unsigned used = 0;

        for (unsigned b = 0; b < SIM_BASES; b++) {
                int level = fabsim_level(endport, sim_bases[b]);

                if (level > 0 && used < p->capacity)
                        p->table[used++].v = (uint16_t) (sim_bases[b] | (level == 2 ? 0x8000 : 0));
        }
        if (prng_permille(&s->rng, 400)) {
                p->enforce_inbound = n->inbound_cap && prng_permille(&s->rng, 800);
                p->enforce_outbound = n->outbound_cap && prng_permille(&s->rng, 800);
        }
        if (s->writer == WRITER_OPENSM) /* which filters in both directions, or in none */
                p->enforce_inbound = p->enforce_outbound = p->enforce_inbound && p->enforce_outbound;
}

static void make_switches(struct sim *s, unsigned n)
{
        static const uint16_t caps[] = { 0, 8, 16, 32, 32, 64 };
        char name[32];

        for (unsigned i = 0; i < n; i++) {
                uint16_t cap = caps[prng_below(&s->rng, ELEMENTS(caps))];

                (void) snprintf(name, sizeof(name), "MF0;leaf%02u:MQM8700/U1", i);
                (void) fabsim_add_node(&s->f, NODE_SWITCH, 12, (uint16_t) (prng_permille(&s->rng, 300) ? 8 : 32), name);
                if (cap)
                        fabsim_set_enforcement_cap(&s->f, i, cap, s->writer == WRITER_OPENSM || prng_permille(&s->rng, 850),
                                                   s->writer == WRITER_OPENSM || prng_permille(&s->rng, 850));
                if (i > 0)
                        fabsim_connect(&s->f, i, 12, prng_below(&s->rng, i), (uint8_t) (12 - i));
        }
}

static bool free_switch_port(struct sim *s, unsigned n_switches, struct fabsim_place *ret)
{
        for (unsigned tries = 0; tries < 50; tries++) {
                ret->node = prng_below(&s->rng, n_switches);
                ret->port = (uint8_t) prng_between(&s->rng, 1, 8);
                if (!fabsim_port_at(&s->f, *ret)->is_cabled)
                        return true;
        }
        return false;
}

static void plug_in(struct sim *s, unsigned n_switches, unsigned node)
{
        struct fabsim_place at;

        for (uint8_t p = 1; p <= s->f.nodes[node].num_ports; p++) {
                fill_table(s, &s->f.nodes[node].ports[p]);
                if ((p > 1 && prng_permille(&s->rng, 300)) || !free_switch_port(s, n_switches, &at))
                        continue;
                fabsim_connect(&s->f, node, p, at.node, at.port);
                fill_enforcing(s, at, &s->f.nodes[node].ports[p]);
        }
}

static void make_hosts(struct sim *s, unsigned n_switches)
{
        static const uint16_t caps[] = { 128, 128, 64, 33, 20, 12 };
        unsigned n = prng_between(&s->rng, 2, 9);

        for (unsigned i = 0; i < n; i++) {
                bool same_host = i > 0 && prng_permille(&s->rng, 150);
                bool is_router = i > 1 && prng_permille(&s->rng, 50);
                unsigned node = fabsim_add_node(&s->f, is_router ? NODE_ROUTER : NODE_CA,
                                                prng_permille(&s->rng, 150) ? 2 : 1,
                                                caps[prng_below(&s->rng, ELEMENTS(caps))], "router");

                s->host_of[node] = same_host ? s->host_of[node - 1] : s->next_host++;
                s->device_of[node] = same_host ? s->device_of[node - 1] + 1 : 0;
                if (!is_router)
                        describe_host(s, node);
                plug_in(s, n_switches, node);
        }
}

static void name_endports(struct sim *s)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (uint8_t p = 0; p <= s->f.nodes[n].num_ports; p++)
                        if (fabsim_is_endport(&s->f, (struct fabsim_place) { n, p }) && s->n_endports < SIM_MAX_ENDPORTS) {
                                s->endports[s->n_endports++] = (struct fabsim_place) { n, p };
                                s->f.nodes[n].ports[p].lid.v = s->next_lid++;
                        }
}

static void choose_faults(struct sim *s)
{
        unsigned level = prng_below(&s->rng, 4); /* none, few, many, very many */
        static const unsigned scale[] = { 0, 4, 20, 80 };
        unsigned *rates[] = {
                &s->faults.lose_request, &s->faults.lose_answer, &s->faults.late, &s->faults.twice, &s->faults.busy,
                &s->faults.status_undone, &s->faults.status_done, &s->faults.cut_short, &s->faults.stranger,
                &s->faults.wrong_modifier,
        };

        for (unsigned i = 0; i < ELEMENTS(rates); i++)
                *rates[i] = prng_below(&s->rng, scale[level] + 1);
        s->faults.send_fails = level ? 1 : 0;
        s->faults.kill = prng_permille(&s->rng, 300) ? 3 : 0;
        s->faults.slow = prng_permille(&s->rng, 300) ? 100 : 0;
        s->faults.trigger = prng_permille(&s->rng, 500) ? prng_below(&s->rng, 100) : 0;
        s->has_rival = prng_permille(&s->rng, 500);
        s->use_directed_routes = prng_permille(&s->rng, 200);
        s->moves_cables = s->has_rival && !s->use_directed_routes && prng_permille(&s->rng, 500);
}

/* The parts that all edits of the policy have in common. */
static void choose_settings(struct sim *s)
{
        s->writer = prng_permille(&s->rng, 200) ? WRITER_OPENSM : WRITER_DIRECT;
        s->mirrors = s->writer == WRITER_DIRECT && prng_permille(&s->rng, 150);
        s->n_heads = prng_permille(&s->rng, 250) ? 2 : 1;
        s->role = s->n_heads > 1 || prng_permille(&s->rng, 100) ? ROLE_FOLLOW_SM : ROLE_ALWAYS;
        s->has_pkeyctl = s->writer == WRITER_DIRECT && prng_permille(&s->rng, 300);
        s->shares_store = s->seed >= SIM_SHARE_SEEDS;
        if (!s->shares_store)
                return;
        s->n_heads = 2;
        s->role = ROLE_FOLLOW_SM;
        s->has_pkeyctl = false;
        if (!sim_passes_on(s))
                return;
        s->writer = WRITER_DIRECT;
        s->mirrors = false;
}

static void make_heads(struct sim *s, unsigned first_host)
{
        static const char both[] = "allow_both_pkeys TRUE\n";

        for (unsigned i = 0; i < s->n_heads; i++) {
                head_make(s, &s->heads[i], (struct fabsim_place) { first_host + i, 1 });
                if (s->writer == WRITER_OPENSM || s->mirrors)
                        head_write_file(s, &s->heads[i], SIM_OPENSM_CONF, both, strlen(both), NULL);
                world_restart(s, i, prng_below(&s->rng, 2000000));
        }
        s->f.sm_runs = true;
        s->f.sm = s->heads[0].place;
        if (s->writer == WRITER_DIRECT && s->role == ROLE_ALWAYS && prng_permille(&s->rng, 500))
                s->f.sm = (struct fabsim_place) { first_host + 1, 1 };
}

void world_note_gone(struct sim *s)
{
        for (unsigned h = 0; h < s->n_heads; h++) {
                s->f.self = s->heads[h].place;
                for (unsigned i = 0; i < s->n_endports; i++) {
                        bool was_gone = s->is_gone[h][i];

                        s->is_gone[h][i] = fabsim_distance(&s->f, s->endports[i]) < 0;
                        if (was_gone || s->is_gone[h][i])
                                s->gone_at[h][i] = s->now;
                }
        }
}

void world_make(struct sim *s)
{
        unsigned n_switches = prng_between(&s->rng, 1, 3), n_events;

        fabsim_init(&s->f);
        s->next_lid = 1;
        choose_settings(s);
        make_switches(s, n_switches);
        for (unsigned i = 0; i < n_switches; i++)
                fill_table(s, &s->f.nodes[i].ports[0]);
        make_hosts(s, n_switches);
        s->n_nodes = s->f.n_nodes;
        name_endports(s);
        choose_faults(s);
        make_heads(s, n_switches);
        s->quiet_at = (usec_t) prng_between(&s->rng, 1, 150) * USEC_PER_SEC;
        s->end_at = s->quiet_at + 900 * USEC_PER_SEC;
        s->calm_at = s->quiet_at + SIM_MAX_HOLD;
        intent_make(s, &s->intents[0]);
        s->n_intents = 1;
        world_note_gone(s);
        promises_begin(s);
        if (sim_has_undos(s))
                world_schedule_undos(s);
        if (sim_has_leases(s))
                world_schedule_clients(s);
        if (s->shares_store)
                world_schedule_shared(s);
        if (sim_passes_on(s))
                world_schedule_passing(s);
        n_events = prng_below(&s->rng, 12);
        for (unsigned i = 0; i < n_events; i++)
                world_schedule(s, prng_next(&s->rng) % s->quiet_at);
}

unsigned world_endport_at(const struct sim *s, struct fabsim_place p)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->endports[i].node == p.node && s->endports[i].port == p.port)
                        return i;
        return UINT32_MAX;
}

/* By the PortInfo of this port. */
static bool is_sm(const struct sim *s, struct fabsim_place self, struct fabsim_place p)
{
        struct lid told = s->f.nodes[self.node].ports[self.port].sm_lid;

        if (told.v)
                return s->f.nodes[p.node].ports[p.port].lid.v == told.v;
        return p.node == s->f.sm.node && p.port == s->f.sm.port;
}

static void take_entry(const struct sim *s, struct fabsim_place self, struct fabsim_place p, struct census_entry *ret)
{
        const struct fabsim_node *n = &s->f.nodes[p.node];
        const struct fabsim_port *port = &n->ports[p.port];
        struct fabsim_place peer;
        bool linked = fabsim_peer(&s->f, p, &peer);

        *ret = (struct census_entry) {
                .is_there = fabsim_distance(&s->f, p) >= 0,
                .is_self = p.node == self.node && p.port == self.port,
                .is_sm = is_sm(s, self, p),
                .type = n->type,
                .host = s->host_of[p.node],
                .device = s->device_of[p.node],
                .is_plugged = p.port > 0 && linked && s->f.nodes[peer.node].type == NODE_SWITCH,
                .guid = port->guid,
                .lid = port->lid,
                .is_cabled = port->is_cabled,
                .cable = { port->peer_node, port->peer_port },
        };
        if (ret->is_plugged)
                ret->plugged_into = peer;
}

void world_take_census(struct sim *s, const struct head *h, usec_t began, struct census *ret)
{
        unsigned head = (unsigned) (h - s->heads);

        s->f.self = h->place;
        ret->began = began;
        for (unsigned i = 0; i < s->n_endports; i++) {
                take_entry(s, h->place, s->endports[i], &ret->entries[i]);
                ret->entries[i].is_ambiguous = s->moved_at[i] >= began;
                ret->entries[i].was_gone = s->is_gone[head][i] || s->gone_at[head][i] >= began;
        }
}

/* --- external events ------------------------------------------------------------------------------------------------- */

enum external {
        EXTERNAL_EDIT,         /* of the policy: a new one */
        EXTERNAL_EDIT_BACK,    /* an earlier one */
        EXTERNAL_HANG_UP,      /* nothing changed */
        EXTERNAL_STOP,         /* SIGTERM */
        EXTERNAL_PKEYCTL,      /* pkeyctl apply, while pkeyd runs */
        EXTERNAL_VERBS,        /* events of a head node's port, some without a reason */
        EXTERNAL_STORE,        /* the disk is full for a while */
        EXTERNAL_OPENSM,       /* crashes, hangs, reads its file */
        EXTERNAL_HAND_OVER,    /* the master SM moves to the other head node */
        EXTERNAL_VOUCH,        /* pkeyctl forget */
        EXTERNAL_FORGET,       /* the state directory of a head node is deleted */
        /* the following only with a rival */
        EXTERNAL_WRITE,        /* another writer changes an entry */
        EXTERNAL_REBOOT,       /* a host or a switch, which resets its tables */
        EXTERNAL_DIE,
        EXTERNAL_RENAME,
        EXTERNAL_LID,
        EXTERNAL_M_KEY,
        EXTERNAL_SWALLOW,
        EXTERNAL_CABLE,        /* pulled, and connected elsewhere after a while */
        EXTERNAL_MUTE,         /* an SMA does not answer, for a moment, for a while, or forever */
        EXTERNAL_LIDS,         /* two ports swap their LIDs */
        EXTERNAL_UNPLUG,       /* a host, which returns unchanged, wiped, as another device, or never */
        EXTERNAL_CLAIM,        /* a host takes the name of another one */
        /* consequences of these */
        EXTERNAL_SM_REWRITES,  /* after a reboot on a leaf: OpenSM writes its copies */
        EXTERNAL_REVIVE,
        EXTERNAL_PLUG,
        EXTERNAL_SPEAK,
        EXTERNAL_RETURN,
        EXTERNAL_STORE_WORKS,
        EXTERNAL_SM_TOLD,      /* a port gets the LID of the master SM */
        EXTERNAL_START,        /* a pkeyd */
        EXTERNAL_EDIT_AGAIN,   /* in histories with undos only, like the next two */
        EXTERNAL_CONFIRM,
        EXTERNAL_UNDO,
        EXTERNAL_LEASE,        /* in histories with leases only */
        EXTERNAL_PAUSE,        /* a pkeyd gets no processor for a while; in histories with a shared store only, like the others */
        EXTERNAL_CUT_OFF,      /* a head node cannot reach the store for a while */
        EXTERNAL_REACHES,
        EXTERNAL_HAND_OVER_AGAIN,
        EXTERNAL_KILL,         /* a pkeyd, in histories in which requests are passed on, like the next one */
        EXTERNAL_KILL_APPLYING, /* the same, when it writes next */
        N_EXTERNAL,
};

/* It continues after the end of faults. */
static bool follows(enum external what)
{
        return what > EXTERNAL_SM_REWRITES;
}

static struct event *again(struct sim *s, usec_t at, enum external what, unsigned x)
{
        struct event *e = events_add(&s->events, at, EVENT_EXTERNAL);

        e->what = what;
        e->x = x;
        if (follows(what) && what != EXTERNAL_START)
                s->calm_at = MAX(s->calm_at, at + SIM_MAX_HOLD);
        return e;
}

void world_schedule_undos(struct sim *s)
{
        static const enum external kinds[] = { EXTERNAL_EDIT_AGAIN, EXTERNAL_EDIT_AGAIN, EXTERNAL_CONFIRM, EXTERNAL_UNDO };
        unsigned n = prng_between(&s->undo_rng, 4, 16);

        for (unsigned i = 0; i < n; i++) {
                struct event *e = events_add(&s->events, prng_next(&s->undo_rng) % s->quiet_at, EVENT_EXTERNAL);

                e->what = kinds[prng_below(&s->undo_rng, ELEMENTS(kinds))];
                e->x = prng_below(&s->undo_rng, 1000);
        }
}

/* Pauses and outages, some longer than the lease, and more hand-overs than elsewhere. */
void world_schedule_shared(struct sim *s)
{
        static const enum external kinds[] = { EXTERNAL_PAUSE, EXTERNAL_CUT_OFF, EXTERNAL_HAND_OVER_AGAIN };
        unsigned n = prng_between(&s->share_rng, 2, 20);

        for (unsigned i = 0; i < n; i++) {
                struct event *e = events_add(&s->events, prng_next(&s->share_rng) % s->quiet_at, EVENT_EXTERNAL);

                e->what = kinds[prng_below(&s->share_rng, ELEMENTS(kinds))];
                e->x = prng_below(&s->share_rng, 2);
                e->y = prng_between(&s->share_rng, 1, 40);
        }
}

static struct event *share(struct sim *s, usec_t at, enum external what, unsigned x, unsigned y)
{
        struct event *e = events_add(&s->events, at, EVENT_EXTERNAL);

        e->what = what;
        e->x = x;
        e->y = y;
        return e;
}

/* A writer is paused, and the other head node takes over and carries out requests; when it goes on, it is asked before it has
 * noticed that. */
static void overtake(struct sim *s, usec_t at, unsigned head)
{
        struct prng *r = &s->share_rng;
        unsigned n = prng_between(r, 4, 10);

        (void) share(s, at, EXTERNAL_PAUSE, head, 35);
        (void) share(s, at + USEC_PER_SEC, EXTERNAL_HAND_OVER_AGAIN, 0, 0);
        for (unsigned i = 0; i < n; i++) {
                usec_t later = at + prng_between(r, 8, 34) * USEC_PER_SEC;

                if (later < s->quiet_at)
                        (void) share(s, later, EXTERNAL_LEASE, prng_below(r, 2), prng_below(r, 1000));
        }
}

/* The writer cannot reach the store for longer than its lease, and the master SM moves while it cannot, or soon after; there is no
 * majority for a while; processes are killed, or overtaken. */
void world_schedule_passing(struct sim *s)
{
        struct prng *r = &s->share_rng;
        unsigned n = prng_below(r, 6);

        for (unsigned i = 0; i < n; i++) {
                usec_t at = prng_next(r) % s->quiet_at, outage = prng_between(r, 12, 50) * USEC_PER_SEC;
                unsigned head = prng_below(r, 2), kind = prng_below(r, 8);

                if (kind == 0) {
                        (void) share(s, at, EXTERNAL_CUT_OFF, head, (unsigned) (outage / USEC_PER_SEC));
                        (void) share(s, at + prng_next(r) % (outage + 10 * USEC_PER_SEC), EXTERNAL_HAND_OVER_AGAIN, 0, 0);
                } else if (kind == 1) {
                        (void) share(s, at, EXTERNAL_CUT_OFF, 0, (unsigned) (outage / USEC_PER_SEC));
                        (void) share(s, at, EXTERNAL_CUT_OFF, 1, (unsigned) (outage / USEC_PER_SEC));
                } else if (kind < 4) {
                        overtake(s, at, head);
                } else if (kind < 6) {
                        (void) share(s, at, EXTERNAL_KILL, head, 0);
                } else {
                        (void) share(s, at, EXTERNAL_KILL_APPLYING, head, 0);
                }
        }
}

static void cut_off(struct sim *s, unsigned head, unsigned seconds)
{
        struct event *e = events_add(&s->events, s->now + seconds * USEC_PER_SEC, EVENT_EXTERNAL);

        s->heads[head].is_cut_off = true;
        e->what = EXTERNAL_REACHES;
        e->x = head;
}

void world_schedule_clients(struct sim *s)
{
        unsigned n = prng_between(&s->lease_rng, 8, 40);

        for (unsigned i = 0; i < n; i++) {
                struct event *e = events_add(&s->events, prng_next(&s->lease_rng) % s->quiet_at, EVENT_EXTERNAL);

                e->what = EXTERNAL_LEASE;
                e->x = prng_below(&s->lease_rng, 1000);
                e->y = prng_below(&s->lease_rng, 1000);
        }
        s->calm_at += SIM_LEASE_CALM;
        for (unsigned i = 0; sim_passes_on(s) && i < 6; i++) /* in peace either head node answers */
                (void) share(s, s->quiet_at + prng_between(&s->lease_rng, 60, 120) * USEC_PER_SEC, EXTERNAL_LEASE,
                             prng_below(&s->lease_rng, 1000), prng_below(&s->lease_rng, 1000));
        s->calm_at += sim_passes_on(s) ? 120 * USEC_PER_SEC : 0;
        s->end_at += sim_passes_on(s) ? 200 * USEC_PER_SEC : 0;
}

void world_ask_again(struct sim *s, unsigned head, unsigned id, usec_t at)
{
        struct event *e = at < s->quiet_at ? events_add(&s->events, at, EVENT_EXTERNAL) : NULL;

        if (!e)
                return;
        e->what = EXTERNAL_LEASE;
        e->x = head;
        e->y = CLIENTS_AGAIN + id;
}

void world_ask_same(struct sim *s, unsigned head, unsigned id)
{
        usec_t at = s->now + prng_below(&s->mail_rng, prng_permille(&s->mail_rng, 500) ? 2000000 : 30000000);

        if (at < s->quiet_at)
                (void) share(s, at, EXTERNAL_LEASE, head, CLIENTS_SAME + id);
}

void world_schedule(struct sim *s, usec_t at)
{
        unsigned n = s->has_rival ? EXTERNAL_SM_REWRITES : EXTERNAL_WRITE;
        struct event *e = again(s, at, prng_below(&s->rng, n), prng_below(&s->rng, 1000));

        e->y = prng_below(&s->rng, 1000);
}

void world_restart(struct sim *s, unsigned head, usec_t at)
{
        (void) again(s, at, EXTERNAL_START, head);
}

static void hang_up(struct sim *s, unsigned head)
{
        process_hangup(s, &s->processes[head]);
}

/* An admin does not know which head node writes. */
static void ask_both(struct sim *s, enum external what)
{
        usec_t at = s->now + prng_below(&s->undo_rng, 25000000);

        (void) share(s, at, what, 0, 0);
        (void) share(s, at + prng_below(&s->undo_rng, 2000000), what, 1, 0);
}

/* An admin edits the files of one head node, and then of the other. */
static void edit(struct sim *s, bool back)
{
        unsigned intent;

        if (!back && s->n_intents < SIM_MAX_INTENTS) {
                intent_make(s, &s->intents[s->n_intents]);
                intent = s->n_intents++;
        } else {
                intent = prng_below(&s->rng, s->n_intents);
        }
        for (unsigned i = 0; i < s->n_heads; i++) {
                s->heads[i].intent_on_file = intent;
                hang_up(s, i);
        }
        if (sim_passes_on(s) && prng_permille(&s->undo_rng, 500))
                ask_both(s, prng_permille(&s->undo_rng, 700) ? EXTERNAL_CONFIRM : EXTERNAL_UNDO);
}

void world_edit(struct sim *s)
{
        edit(s, false);
}

/* The tables of a host after a reboot: the default partition at index 0. A switch loses its enforcing tables and bits. */
static void reboot(struct sim *s, unsigned node)
{
        struct fabsim_node *n = &s->f.nodes[node];

        for (uint8_t p = 0; p <= n->num_ports; p++) {
                memset(n->ports[p].table, 0, sizeof(n->ports[p].table));
                n->ports[p].enforce_inbound = n->ports[p].enforce_outbound = false;
                if (fabsim_is_endport(&s->f, (struct fabsim_place) { node, p }))
                        n->ports[p].table[0].v = 0xffff;
                promises_disturbed(s, (struct fabsim_place) { node, p });
        }
}

/* OpenSM after a reboot of another host on the same leaf: it reads the tables, which differ from its copies. */
static void sm_rewrites(struct sim *s, unsigned leaf)
{
        struct fabsim_place peer;

        for (uint8_t p = 1; p <= s->f.nodes[leaf].num_ports; p++) {
                if (!fabsim_peer(&s->f, (struct fabsim_place) { leaf, p }, &peer) ||
                    s->f.nodes[peer.node].type == NODE_SWITCH)
                        continue;
                memset(fabsim_port_at(&s->f, peer)->table, 0, sizeof(struct p_key) * P_KEY_BLOCK_ENTRIES);
                fabsim_port_at(&s->f, peer)->table[0].v = 0xffff;
                promises_disturbed(s, peer);
        }
}

static bool is_head(const struct sim *s, unsigned node)
{
        for (unsigned i = 0; i < s->n_heads; i++)
                if (s->heads[i].place.node == node)
                        return true;
        return false;
}

/* Else it cannot be known that a device which answers as this switch lies. */
static bool must_answer(const struct sim *s, unsigned node)
{
        return s->copies_switches && s->f.nodes[node].type == NODE_SWITCH;
}

static void node_moved(struct sim *s, unsigned node)
{
        for (uint8_t p = 0; p <= s->f.nodes[node].num_ports; p++)
                promises_moved(s, (struct fabsim_place) { node, p });
}

static void go_down(struct sim *s, const struct event *e, bool reboots)
{
        unsigned node = e->x % s->n_nodes;
        struct fabsim_place at;

        if (is_head(s, node) || !s->f.nodes[node].is_up || must_answer(s, node))
                return;
        if (reboots) {
                reboot(s, node);
                if (fabsim_peer(&s->f, (struct fabsim_place) { node, 1 }, &at) &&
                    s->f.nodes[at.node].type == NODE_SWITCH)
                        (void) again(s, s->now + prng_below(&s->rng, 3000000), EXTERNAL_SM_REWRITES, at.node);
        }
        s->f.nodes[node].is_up = reboots && prng_permille(&s->rng, 500);
        node_moved(s, node);
        if (!s->f.nodes[node].is_up)
                (void) again(s, s->now + prng_below(&s->rng, 90) * USEC_PER_SEC, EXTERNAL_REVIVE, node);
}

static void rival_writes(struct sim *s, const struct event *e)
{
        struct fabsim_place at = s->endports[e->x % s->n_endports], leaf;
        struct fabsim_port *p;

        if (e->y % 4 == 0 && fabsim_peer(&s->f, at, &leaf) && s->f.nodes[leaf.node].type == NODE_SWITCH &&
            fabsim_port_at(&s->f, leaf)->capacity)
                at = leaf;
        p = fabsim_port_at(&s->f, at);
        p->table[random_index(s, p->capacity)].v = prng_permille(&s->rng, 500) ? random_key(s) : 0;
        promises_disturbed(s, at);
}

static void rename_host(struct sim *s, unsigned x)
{
        unsigned node = x % s->n_nodes;

        if (s->f.nodes[node].type != NODE_CA || s->next_host >= MAX_HOSTS_NAMED)
                return;
        s->host_of[node] = prng_permille(&s->rng, 700) ? s->next_host++ : prng_below(&s->rng, s->next_host);
        describe_host(s, node);
        node_moved(s, node);
}

/* Another node takes the name of this one, which keeps it. */
static void claim_name(struct sim *s, const struct event *e)
{
        unsigned node = e->x % s->n_nodes, other = e->y % s->n_nodes;

        if (node == other || s->f.nodes[node].type != NODE_CA || s->f.nodes[other].type != NODE_CA)
                return;
        s->host_of[node] = s->host_of[other];
        s->device_of[node] = s->device_of[other];
        describe_host(s, node);
        node_moved(s, node);
}

static void set_lid(struct sim *s, unsigned endport, struct lid lid)
{
        fabsim_port_at(&s->f, s->endports[endport])->lid = lid;
        s->lid_moved_at[endport] = s->now;
}

static void new_lid(struct sim *s, unsigned x)
{
        if (s->next_lid < SIM_MAX_LIDS)
                set_lid(s, x % s->n_endports, (struct lid) { s->next_lid++ });
}

/* As if OpenSM started with another guid2lid. Processes that read the LID of the SM before take the other port for the SM's. */
static void swap_lids(struct sim *s, const struct event *e)
{
        unsigned x = e->x % s->n_endports, y = e->y % s->n_endports, sm = world_endport_at(s, s->f.sm);
        struct lid lid = fabsim_port_at(&s->f, s->endports[x])->lid;

        set_lid(s, x, fabsim_port_at(&s->f, s->endports[y])->lid);
        set_lid(s, y, lid);
        if (x == sm || y == sm) {
                promises_moved(s, s->endports[x]);
                promises_moved(s, s->endports[y]);
        }
}

/* Of a switch: the SMA of all its ports. The port of the master SM always answers. */
static void mute(struct sim *s, const struct event *e)
{
        static const enum fabsim_mute kinds[] = { FABSIM_MUTE_P_KEYS, FABSIM_MUTE_ANSWERS, FABSIM_MUTE, FABSIM_MUTE };
        unsigned endport = e->x % s->n_endports, how_long = e->y / 4 % 10;
        struct fabsim_place at = s->endports[endport];

        if (is_head(s, at.node) || at.node == s->f.sm.node || must_answer(s, at.node))
                return;
        fabsim_port_at(&s->f, at)->mute = kinds[e->y % 4];
        if (how_long > 0)
                (void) again(s, s->now + prng_below(&s->rng, how_long < 5 ? 5000000 : 100000000), EXTERNAL_SPEAK, endport);
}

enum fate {
        FATE_SAME,
        FATE_WIPED,
        FATE_REPLACED,
        FATE_LOST,
};

static void unplug(struct sim *s, const struct event *e)
{
        unsigned node = e->x % s->n_nodes;

        if (is_head(s, node) || node == s->f.sm.node || s->f.nodes[node].type != NODE_CA || !s->f.nodes[node].is_up)
                return;
        s->f.nodes[node].is_up = false;
        node_moved(s, node);
        s->is_lost[node] = e->y % (FATE_LOST + 1) == FATE_LOST;
        again(s, s->now + prng_below(&s->rng, 100000000), EXTERNAL_RETURN, node)->y = e->y % (FATE_LOST + 1);
}

/* A new device without an M_Key takes its place and its name. */
static void replace(struct sim *s, unsigned node)
{
        struct fabsim_node *n = &s->f.nodes[node];

        s->is_replaced[node] = true;
        n->guid.v += UINT64_C(0x1000000);
        for (uint8_t p = 1; p <= n->num_ports; p++) {
                unsigned endport = world_endport_at(s, (struct fabsim_place) { node, p });

                n->ports[p].guid.v += UINT64_C(0x1000000);
                n->ports[p].m_key = 0;
                n->ports[p].mute = FABSIM_ANSWERS;
                s->keys[endport] = (struct sim_key) { .in_file = s->keys[endport].in_file };
                s->lid_moved_at[endport] = s->now;
                observer_forget(s, endport);
        }
}

static void come_back(struct sim *s, const struct event *e)
{
        unsigned node = e->x;

        if (s->is_lost[node] || s->f.nodes[node].is_up)
                return;
        if (e->y != FATE_SAME)
                reboot(s, node);
        if (e->y == FATE_REPLACED)
                replace(s, node);
        s->f.nodes[node].is_up = true;
        node_moved(s, node);
}

static void protect(struct sim *s, const struct event *e)
{
        struct fabsim_place at = s->endports[e->x % s->n_endports];
        struct fabsim_port *p = fabsim_port_at(&s->f, at);

        if (must_answer(s, at.node))
                return;
        p->m_key = 0x5ec4e7;
        p->m_key_protection = e->y % 4;
        p->m_key_lease = (uint16_t) (e->y % 2 ? 20 : 0);
}

static void pull_cable(struct sim *s, const struct event *e)
{
        struct fabsim_place at = s->endports[e->x % s->n_endports], peer;

        if (!s->moves_cables || at.port == 0 || is_head(s, at.node) || !fabsim_peer(&s->f, at, &peer))
                return;
        promises_moved(s, at);
        s->cables_moved_at = s->now;
        fabsim_disconnect(&s->f, at.node, at.port);
        promises_moved(s, peer);
        (void) again(s, s->now + prng_below(&s->rng, 30000000), EXTERNAL_PLUG, e->x);
}

static void put_cable(struct sim *s, const struct event *e)
{
        struct fabsim_place at = s->endports[e->x % s->n_endports], peer;
        unsigned n_switches = 0;

        while (s->f.nodes[n_switches].type == NODE_SWITCH)
                n_switches++;
        if (fabsim_port_at(&s->f, at)->is_cabled || !free_switch_port(s, n_switches, &peer))
                return;
        fabsim_connect(&s->f, at.node, at.port, peer.node, peer.port);
        s->has_moved_cables = true;
        s->cables_moved_at = s->now;
        promises_moved(s, at);
        promises_moved(s, peer);
}

/* --- head nodes ------------------------------------------------------------------------------------------------------ */

static void run_pkeyctl(struct sim *s)
{
        struct process *p = &s->processes[2];

        if (s->has_pkeyctl && !p->control)
                process_start(s, p, &s->heads[0], CONTROL_APPLY);
}

static void verbs_event(struct sim *s, const struct event *e)
{
        static const enum verbs_event_kind kinds[] = {
                VERBS_P_KEY_CHANGE, VERBS_LID_CHANGE, VERBS_SM_CHANGE, VERBS_CLIENT_REREGISTER, VERBS_PORT_ACTIVE,
                VERBS_PORT_ERROR, VERBS_DEVICE_FATAL,
        };

        process_verbs(s, &s->processes[e->x % s->n_heads], kinds[e->y % ELEMENTS(kinds)]);
}

static void fill_disk(struct sim *s, unsigned head)
{
        s->heads[head].store->fails = true;
        (void) again(s, s->now + prng_below(&s->rng, 40) * USEC_PER_SEC, EXTERNAL_STORE_WORKS, head);
}

/* The membership of the SM's port in the default partition depends on whether its LID is known. */
static void sm_moved(struct sim *s)
{
        for (unsigned i = 0; i < s->n_heads; i++)
                promises_moved(s, s->heads[i].place);
}

/* Its own port is set first, the others within a second. */
void world_hand_over(struct sim *s)
{
        struct lid before = fabsim_port_at(&s->f, s->f.sm)->lid;
        unsigned to = s->f.sm.node == s->heads[0].place.node;

        if (s->n_heads < 2)
                return;
        s->counters.hand_overs++;
        s->f.sm = s->heads[to].place;
        s->handed_over_at = s->now;
        for (unsigned i = 0; i < s->n_endports; i++) {
                fabsim_port_at(&s->f, s->endports[i])->sm_lid = before;
                (void) again(s, s->now + prng_below(&s->rng, 1000000), EXTERNAL_SM_TOLD, i);
        }
        fabsim_port_at(&s->f, s->f.sm)->sm_lid.v = 0;
        sm_moved(s);
}

static void sm_told(struct sim *s, unsigned endport)
{
        struct fabsim_place at = s->endports[endport];

        fabsim_port_at(&s->f, at)->sm_lid.v = 0;
        for (unsigned i = 0; i < s->n_heads; i++)
                if (s->heads[i].place.node == at.node && s->heads[i].place.port == at.port) {
                        sm_moved(s);
                        process_verbs(s, &s->processes[i], VERBS_SM_CHANGE);
                }
}

/* A process that is paused gets the request later. */
static void ask_for_lease(struct sim *s, const struct event *e)
{
        usec_t until = sim_passes_on(s) ? s->processes[e->x % SIM_MAX_HEADS].paused_until : 0;

        if (s->now < until)
                (void) share(s, until, EXTERNAL_LEASE, e->x, e->y);
        else
                clients_ask(s, e);
}

/* Two pkeyds follow the master SM: none must write after the master has been elsewhere for the hold time of the other one. */
void world_check_writer(struct sim *s, const struct process *p)
{
        bool is_here = p->head->place.node == s->f.sm.node && p->head->place.port == s->f.sm.port;

        if (p->goal == CONTROL_SERVE && s->role == ROLE_FOLLOW_SM && !is_here && s->now > s->handed_over_at + 2 * USEC_PER_SEC)
                sim_fail(s, "a Set of a standby");
}

/* --- external events ------------------------------------------------------------------------------------------------- */

static void happens_to_ports(struct sim *s, const struct event *e)
{
        struct fabsim_port *p = fabsim_port_at(&s->f, s->endports[e->x % s->n_endports]);

        switch ((enum external) e->what) {
        case EXTERNAL_WRITE:
                rival_writes(s, e);
                break;
        case EXTERNAL_REBOOT:
        case EXTERNAL_DIE:
                go_down(s, e, e->what == EXTERNAL_REBOOT);
                break;
        case EXTERNAL_SM_REWRITES:
                sm_rewrites(s, e->x);
                break;
        case EXTERNAL_REVIVE:
                s->f.nodes[e->x].is_up = s->f.nodes[e->x].is_up || !s->is_lost[e->x];
                node_moved(s, e->x);
                break;
        case EXTERNAL_RENAME:
                rename_host(s, e->x);
                break;
        case EXTERNAL_LID:
                new_lid(s, e->x);
                break;
        case EXTERNAL_M_KEY:
                protect(s, e);
                break;
        case EXTERNAL_SWALLOW:
                p->swallows.v = random_key(s);
                p->lies = e->y % 2;
                break;
        case EXTERNAL_CABLE:
                pull_cable(s, e);
                break;
        case EXTERNAL_PLUG:
                put_cable(s, e);
                break;
        case EXTERNAL_MUTE:
                mute(s, e);
                break;
        case EXTERNAL_SPEAK:
                p->mute = FABSIM_ANSWERS;
                break;
        case EXTERNAL_LIDS:
                swap_lids(s, e);
                break;
        case EXTERNAL_UNPLUG:
                unplug(s, e);
                break;
        case EXTERNAL_RETURN:
                come_back(s, e);
                break;
        case EXTERNAL_CLAIM:
                claim_name(s, e);
                break;
        default:
                break;
        }
        world_note_gone(s);
}

void world_external(struct sim *s, const struct event *e)
{
        if (s->quiet && !follows(e->what))
                return;
        sim_trace(s, "external: %u %u %u", e->what, e->x, e->y);
        switch ((enum external) e->what) {
        case EXTERNAL_EDIT:
        case EXTERNAL_EDIT_BACK:
                edit(s, e->what == EXTERNAL_EDIT_BACK);
                break;
        case EXTERNAL_HANG_UP:
                hang_up(s, e->x % s->n_heads);
                break;
        case EXTERNAL_STOP:
                process_stop(s, &s->processes[e->x % SIM_MAX_PROCESSES]);
                break;
        case EXTERNAL_PKEYCTL:
                run_pkeyctl(s);
                break;
        case EXTERNAL_VERBS:
                verbs_event(s, e);
                break;
        case EXTERNAL_STORE:
                fill_disk(s, e->x % s->n_heads);
                break;
        case EXTERNAL_STORE_WORKS:
                s->heads[e->x].store->fails = false;
                break;
        case EXTERNAL_VOUCH:
                for (unsigned i = 0; i < s->n_endports && !head_vouch(s, &s->heads[e->y % s->n_heads], (e->x + i) % s->n_endports);
                     i++)
                        ;
                break;
        case EXTERNAL_FORGET:
                if (e->y % 2 && !sim_passes_on(s)) /* a cluster outlives both head nodes */
                        head_forget(&s->heads[e->x % s->n_heads]);
                break;
        case EXTERNAL_OPENSM:
                opensm_disturb(s, &s->heads[e->x % s->n_heads]);
                break;
        case EXTERNAL_HAND_OVER:
                world_hand_over(s);
                break;
        case EXTERNAL_SM_TOLD:
                sm_told(s, e->x);
                break;
        case EXTERNAL_EDIT_AGAIN:
                edit(s, false);
                break;
        case EXTERNAL_CONFIRM:
                if (e->x % 4 < 2)
                        process_ask(s, &s->processes[e->x % s->n_heads], CONTROL_EVENT_CONFIRM);
                else /* pkeyctl does not find pkeyd on the bus */
                        head_confirm(s, &s->heads[e->x % s->n_heads]);
                break;
        case EXTERNAL_UNDO:
                process_ask(s, &s->processes[e->x % s->n_heads], CONTROL_EVENT_UNDO);
                break;
        case EXTERNAL_LEASE:
                ask_for_lease(s, e);
                break;
        case EXTERNAL_PAUSE:
                if (s->processes[e->x].control)
                        s->processes[e->x].paused_until = s->now + e->y * USEC_PER_SEC;
                break;
        case EXTERNAL_CUT_OFF:
                cut_off(s, e->x, e->y);
                break;
        case EXTERNAL_REACHES:
                s->heads[e->x].is_cut_off = false;
                break;
        case EXTERNAL_HAND_OVER_AGAIN:
                world_hand_over(s);
                break;
        case EXTERNAL_KILL:
                process_die(s, &s->processes[e->x]);
                break;
        case EXTERNAL_KILL_APPLYING:
                s->processes[e->x].dies_applying = true;
                break;
        case EXTERNAL_START:
                if (!s->processes[e->x].control)
                        process_start(s, &s->processes[e->x], &s->heads[e->x], CONTROL_SERVE);
                break;
        default:
                happens_to_ports(s, e);
                break;
        }
}

void world_be_quiet(struct sim *s)
{
        s->quiet = true;
        s->now = MAX(s->now, s->quiet_at);
        s->faults = (struct faults) {};
        for (unsigned n = 0; n < s->n_nodes; n++)
                for (uint8_t p = 0; p <= s->f.nodes[n].num_ports; p++)
                        s->f.nodes[n].ports[p].swallows.v = 0;
        keys_restore(s);
        for (unsigned n = 0; n < s->n_nodes; n++) {
                if (s->f.nodes[n].is_up || s->is_lost[n])
                        continue;
                s->f.nodes[n].is_up = true;
                node_moved(s, n);
        }
        world_note_gone(s);
        for (unsigned i = 0; i < s->n_heads; i++) {
                s->heads[i].store->fails = s->heads[i].store->is_unreadable = s->heads[i].is_cut_off = false;
                opensm_start(s, &s->heads[i]);
                if (s->intents[s->heads[i].intent_on_file].is_broken && prng_permille(&s->rng, 500)) {
                        s->heads[i].intent_on_file = 0;
                        hang_up(s, i);
                }
        }
        process_stop(s, &s->processes[2]); /* a person who confirms later would write on a standby */
        sim_trace(s, "faults are over");
}
