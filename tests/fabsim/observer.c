/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The most that a pkeyd can know: each table as answered, each port as discovered, independently of what pkeyd believes. The
 * promises excuse it only for the following:
 *
 *     surprise   another writer changed the table after it was read. A table that was never read is not one: it may hold anything.
 *     elsewhere  the port was moved, or became another device, after it was discovered
 *     missing    the port was absent at the last discovery; whether it counts depends on when it was last seen
 *
 * The reads of a survey are known when it ends, and those of a table only if all of it was answered. During an apply each
 * answer is known at once.
 */

#include <infiniband/mad.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

struct table_record *observer_table(struct sim *s, struct fabsim_place at)
{
        unsigned n = s->table_at[at.node][at.port];

        return n ? &s->tables[n - 1] : NULL;
}

bool observer_leaf(const struct sim *s, unsigned endport, struct fabsim_place *ret)
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];

        *ret = (struct fabsim_place) { p->peer_node, p->peer_port };
        return p->is_cabled && s->f.nodes[p->peer_node].type == NODE_SWITCH;
}

unsigned observer_endport(const struct sim *s, struct fabsim_place at)
{
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

        if (fabsim_is_endport(&s->f, at))
                return world_endport_at(s, at);
        return p->is_cabled ? world_endport_at(s, (struct fabsim_place) { p->peer_node, p->peer_port }) : UINT32_MAX;
}

/* --- tables ---------------------------------------------------------------------------------------------------------- */

/* The number of entries of each base (2: or more), and the index of the last one. */
static void count_entries(const struct seen_table *t, uint8_t n[SIM_BASES + 1], uint8_t last[SIM_BASES + 1])
{
        memset(n, 0, SIM_BASES + 1);
        for (unsigned i = 0; i < FABSIM_MAX_ENTRIES; i++) {
                unsigned b = sim_base_number(t->entries[i].v & 0x7fff);

                n[b] = (uint8_t) MIN(n[b] + 1, 2);
                last[b] = (uint8_t) i;
        }
}

bool observer_changed_in_sweep(const struct process *p, const struct table_record *r, uint16_t base)
{
        unsigned b = sim_base_number(base);

        for (unsigned w = 0; b < SIM_BASES && w <= SIM_ELSE; w++)
                for (unsigned block = 0; w != p->number && block < SIM_BLOCKS; block++)
                        if (r->changed_at[w][block][b] >= MIN(p->sweep_began, p->adopted.began))
                                return true;
        return false;
}

/* Single blocks do not determine the home of a base with several entries (which may be from different times), or of one that
 * another writer wrote meanwhile. */
static void find_homes(const struct process *p, const struct table_record *r, struct seen_table *t,
                       const uint8_t n_before[SIM_BASES + 1], bool is_whole)
{
        uint8_t n[SIM_BASES + 1], last[SIM_BASES + 1];

        count_entries(t, n, last);
        for (unsigned b = 0; b < SIM_BASES; b++) {
                bool is_known = is_whole || t->home[b] == last[b] ||
                                (n_before[b] == 0 && !observer_changed_in_sweep(p, r, sim_bases[b]));

                if (n[b] > 0)
                        t->home[b] = n[b] == 1 && is_known ? last[b] : SIM_NO_INDEX;
        }
}

static void know_block(struct seen_table *t, unsigned block, usec_t at, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        unsigned first = block * P_KEY_BLOCK_ENTRIES;

        if (at == 0)
                return;
        t->block_at[block] = at;
        memcpy(t->entries + first, entries, P_KEY_BLOCK_ENTRIES * sizeof(*entries));
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                if (entries[i].v & 0x7fff)
                        t->used[first + i] = entries[i].v & 0x7fff;
}

static bool is_whole(const struct sim *s, const struct table_record *r, const struct pending_reads *pending)
{
        unsigned capacity = s->f.nodes[r->at.node].ports[r->at.port].capacity;

        for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < capacity; block++)
                if (pending->block_at[block] == 0)
                        return false;
        return true;
}

/* Bases that the policy in force does not give to this port are revoked, and need not return to their index. */
static void forget_revoked(const struct sim *s, struct process *p, unsigned table)
{
        unsigned endport = observer_endport(s, s->tables[table].at);

        for (unsigned b = 0; p->judgement && b < SIM_BASES; b++)
                if (endport == UINT32_MAX || p->judgement->level[endport][b] == 0)
                        p->observer.tables[table].home[b] = SIM_NO_INDEX;
}

static unsigned sma_at(const struct sim *s, struct fabsim_place at)
{
        return world_endport_at(s, (struct fabsim_place) { at.node, s->f.nodes[at.node].type == NODE_SWITCH ? 0 : at.port });
}

void observer_sent(const struct sim *s, struct process *p, const struct mad_frame *frame, struct fabsim_place at, bool again)
{
        bool is_node_info = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F) == SMP_ATTR_NODE_INFO;

        if (p->stage != CONTROL_DISCOVERING && sma_at(s, at) < SIM_MAX_ENDPORTS)
                p->is_unnamed[sma_at(s, at)] |= again || is_node_info;
}

void observer_sent_nowhere(const struct sim *s, struct process *p, const struct mad_frame *frame)
{
        for (unsigned i = 0; !frame->directed && i < s->n_endports; i++)
                if (p->census.entries[i].lid.v == frame->lid.v && frame->lid.v != 0)
                        observer_sent(s, p, frame, s->endports[i], false);
}

static void know_tables(struct sim *s, struct process *p, bool whole_only)
{
        for (unsigned i = 0; i < s->n_tables; i++) {
                struct pending_reads *pending = &p->pending[i];
                struct seen_table *t = &p->observer.tables[i];
                unsigned sma = sma_at(s, s->tables[i].at);
                bool is_unnamed = sma < SIM_MAX_ENDPORTS && p->is_unnamed[sma];

                if (is_unnamed && !whole_only)
                        continue;
                if (!is_unnamed && (!whole_only || is_whole(s, &s->tables[i], pending))) {
                        uint8_t n_before[SIM_BASES + 1], last[SIM_BASES + 1];

                        count_entries(t, n_before, last);
                        for (unsigned block = 0; block < SIM_BLOCKS; block++)
                                know_block(t, block, pending->block_at[block],
                                           pending->entries + block * P_KEY_BLOCK_ENTRIES);
                        find_homes(p, &s->tables[i], t, n_before, whole_only);
                        forget_revoked(s, p, i);
                        if (whole_only)
                                memset(t->suspects, 0, sizeof(t->suspects));
                }
                memset(pending->block_at, 0, sizeof(pending->block_at));
        }
}

static void know_filters(struct sim *s, struct process *p)
{
        for (unsigned i = 0; i < s->n_tables; i++) {
                if (p->pending[i].filter_at)
                        p->observer.tables[i].filter_at = p->pending[i].filter_at;
                p->pending[i].filter_at = 0;
        }
}

void observer_swept(struct process *p)
{
        for (unsigned i = 0; i < SIM_MAX_TABLES; i++)
                p->pending[i].filter_at = 0;
}

static void take_block(struct sim *s, struct process *p, const struct event *e)
{
        uint32_t modifier = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRMOD_F), block = modifier & 0xffff;
        struct fabsim_place at = e->place;
        const struct table_record *r;
        struct pending_reads *pending;

        if (s->f.nodes[at.node].type == NODE_SWITCH)
                at.port = (uint8_t) (modifier >> 16);
        r = observer_table(s, at);
        if (!r || block >= SIM_BLOCKS)
                return;
        pending = &p->pending[r - s->tables];
        pending->block_at[block] = e->answered_at;
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                const uint8_t *bytes = e->frame.mad + IB_SMP_DATA_OFFS + 2 * i;

                pending->entries[block * P_KEY_BLOCK_ENTRIES + i].v = (uint16_t) (bytes[0] << 8 | bytes[1]);
        }
}

/* The endport whose SMA answered. */
static unsigned endport_of(const struct sim *s, const struct event *e)
{
        bool is_switch = s->f.nodes[e->place.node].type == NODE_SWITCH;

        return world_endport_at(s, (struct fabsim_place) { e->place.node, is_switch ? 0 : e->place.port });
}

/* Has this LID moved since p learned the LIDs of this sweep, or queried the node there? Then p takes the table of another port
 * for that of this one; within a sweep no program can defend against that. */
static bool lid_moved(const struct sim *s, const struct process *p, const struct event *e)
{
        usec_t since = p->lid_asked_at[e->frame.lid.v % SIM_MAX_LIDS];

        if (p->full)
                since = MAX(since, p->census.began);
        return since > 0 && s->lid_moved_at[endport_of(s, e)] >= since;
}

/* This table is not the one that p read: to p, any base may have been at any index. */
static void mistake_table(struct sim *s, struct process *p, unsigned table)
{
        struct table_record *r = &s->tables[table];

        for (unsigned block = 0; block < SIM_BLOCKS; block++) {
                usec_t *read_at = &p->observer.tables[table].block_at[block];

                *read_at = *read_at ?: SIM_MAYBE_READ;
                for (unsigned b = 0; b < SIM_BASES; b++)
                        r->changed_at[SIM_ELSE][block][b] = s->now;
        }
        r->filter_changed_at[SIM_ELSE] = s->now;
        memset(p->observer.tables[table].home, SIM_NO_INDEX, SIM_BASES);
        memset(p->observer.tables[table].entries, 0, sizeof(p->observer.tables[table].entries));
        memset(r->was_used, true, sizeof(r->was_used));
}

/* The tables behind this LID, as p knows it. */
static void mistake(struct sim *s, struct process *p, const struct event *e)
{
        for (unsigned i = 0; i < s->n_tables; i++) {
                const struct fabsim_place at = s->tables[i].at;
                const struct fabsim_place sma = { at.node, s->f.nodes[at.node].type == NODE_SWITCH ? 0 : at.port };
                unsigned endport = world_endport_at(s, sma);

                if (p->census.entries[endport].lid.v == e->frame.lid.v || s->lid_moved_at[endport] >= p->census.began)
                        mistake_table(s, p, i);
        }
}

static void take_port_info(struct sim *s, struct process *p, const struct event *e)
{
        uint32_t number = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRMOD_F);
        const struct table_record *r;

        if (s->f.nodes[e->place.node].type != NODE_SWITCH || number == 0 || number > FABSIM_MAX_PORTS)
                return;
        r = observer_table(s, (struct fabsim_place) { e->place.node, (uint8_t) number });
        if (r)
                p->pending[r - s->tables].filter_at = e->answered_at;
}

/* The port at a place, as p believes. */
static const struct census *known_census(const struct process *p)
{
        return p->full ? &p->census : &p->adopted;
}

/* A LID that moved during the discovery may belong to another port in p's snapshot; p then discards the whole stage. */
static void see_who(const struct sim *s, struct process *p, const struct event *e)
{
        unsigned who = endport_of(s, e);

        p->lid_asked_at[e->frame.lid.v % SIM_MAX_LIDS] = e->sent_at;
        p->is_unnamed[who] = false;
        p->met_stranger |= known_census(p)->entries[who].lid.v != e->frame.lid.v;
        p->met_other |= s->lid_moved_at[who] >= known_census(p)->began;
}

/* p queried the node at that LID, and another port than expected answered. */
static bool is_stranger(const struct sim *s, const struct process *p, const struct event *e)
{
        return known_census(p)->entries[endport_of(s, e)].lid.v != e->frame.lid.v;
}

void observer_answered(struct sim *s, struct process *p, const struct event *e)
{
        uint32_t attribute = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRID_F);
        bool directed = mad_get_field((void *) e->frame.mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS;

        if (!directed && attribute != SMP_ATTR_NODE_INFO && lid_moved(s, p, e))
                mistake(s, p, e);
        else if (!directed && attribute != SMP_ATTR_NODE_INFO && is_stranger(s, p, e))
                return;
        else if (attribute == SMP_ATTR_P_KEY_TABLE)
                take_block(s, p, e);
        else if (attribute == SMP_ATTR_PORT_INFO)
                take_port_info(s, p, e);
        else if (attribute == SMP_ATTR_NODE_INFO && directed)
                p->is_unnamed[endport_of(s, e)] = false, p->route_asked_at = e->sent_at;
        else if (attribute == SMP_ATTR_NODE_INFO)
                see_who(s, p, e);
        if (p->stage == CONTROL_APPLYING) {
                know_tables(s, p, false);
                know_filters(s, p);
        }
}

void observer_forget_stage(struct sim *s, struct process *p)
{
        for (unsigned i = 0; i < s->n_tables; i++)
                memset(p->pending[i].block_at, 0, sizeof(p->pending[i].block_at));
}

void observer_stage_ended(struct sim *s, struct process *p)
{
        if (p->met_stranger || p->met_other)
                observer_forget_stage(s, p);
        for (unsigned i = 0; p->met_other && i < s->n_tables; i++)
                mistake_table(s, p, i);
        if (p->stage != CONTROL_DISCOVERING)
                know_tables(s, p, true);
        p->met_stranger = p->met_other = false;
        memset(p->is_unnamed, 0, sizeof(p->is_unnamed));
}

void observer_wrote(struct sim *s, struct process *p, const struct table_record *r, unsigned index)
{
        struct seen_table *t = &p->observer.tables[r - s->tables];
        unsigned was = sim_base_number(t->entries[index].v & 0x7fff), is = sim_base_number(r->is[index].v & 0x7fff);

        if (was < SIM_BASES && was != is && t->home[was] == index)
                t->home[was] = SIM_NO_INDEX;
        if (was != is)
                t->entries[index].v = 0; /* until it is read: an earlier read of another block does not determine its home */
        if (is < SIM_BASES)
                t->used[index] = sim_bases[is];
}

/* --- ports ----------------------------------------------------------------------------------------------------------- */

/* SUBNET_NONE: it was not found. */
static uint32_t find_port(const struct sim *s, const struct subnet *subnet, unsigned endport)
{
        const struct fabsim_place at = s->endports[endport];

        return subnet_find_port_of(subnet, s->f.nodes[at.node].guid, at.port);
}

static bool switch_is_discovered(const struct sim *s, const struct subnet *subnet, unsigned node)
{
        uint32_t i = subnet_find_node(subnet, s->f.nodes[node].guid);

        return i != SUBNET_NONE && !subnet->nodes[i].incomplete;
}

/* The port of this node that was discovered last; NULL: none was. */
static const struct seen_port *find_seen(const struct sim *s, const struct observer *o, unsigned node)
{
        const struct seen_port *last = NULL;

        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->endports[i].node == node && o->ports[i].at > (last ? last->at : 0))
                        last = &o->ports[i];
        return last;
}

/* It has the same name as before. */
static void discover_incomplete(const struct sim *s, const struct observer *o, struct census_entry *e, unsigned endport)
{
        const struct seen_port *before = find_seen(s, o, s->endports[endport].node);

        e->is_unknown = !before;
        if (before) {
                e->host = before->entry.host;
                e->device = before->entry.device;
        }
}

/* A port that was renamed meanwhile has the name that it answered. */
static void take_name(const struct subnet_node *node, struct census_entry *e)
{
        unsigned host, device;

        if (sscanf(node->name, "node%u", &host) != 1 || sscanf(node->device, "mlx5_%u", &device) != 1)
                return;
        e->host = host;
        e->device = device;
}

/* A port whose cable was moved meanwhile is where it was found. */
static void take_place(const struct sim *s, const struct subnet *subnet, uint32_t port, struct census_entry *e)
{
        uint32_t beside = subnet->ports[port].peer;

        e->is_plugged = false;
        for (unsigned i = 0; beside != SUBNET_NONE && !e->is_plugged && i < s->f.n_nodes; i++)
                if (s->f.nodes[i].guid.v == subnet_port_node(subnet, &subnet->ports[beside])->guid.v) {
                        e->is_plugged = s->f.nodes[i].type == NODE_SWITCH;
                        e->plugged_into = (struct fabsim_place) { i, subnet->ports[beside].number };
                }
}

/* Is it plugged into a switch that was not discovered? A switch by its uplink. */
static bool is_behind_undiscovered(const struct sim *s, const struct subnet *subnet, const struct census_entry *e, unsigned endport)
{
        const struct fabsim_port *up = &s->f.nodes[s->endports[endport].node].ports[12];
        bool is_switch = s->endports[endport].port == 0;
        unsigned node = is_switch ? up->peer_node : e->plugged_into.node;

        return (is_switch ? up->is_cabled : e->is_plugged) && subnet_find_node(subnet, s->f.nodes[node].guid) == SUBNET_NONE;
}

/* Its state for the policy: that of its last complete discovery, but at its present place, if that was found. */
static void discover_port(struct sim *s, const struct subnet *subnet, struct observer *o, struct census_entry *e, unsigned endport)
{
        struct seen_port *seen = &o->ports[endport];
        uint32_t port = find_port(s, subnet, endport), node = subnet_find_node(subnet, s->f.nodes[s->endports[endport].node].guid);

        e->is_seen = port != SUBNET_NONE && !subnet_port_is_incomplete(subnet, &subnet->ports[port]);
        if (e->is_seen && e->is_ambiguous) {
                take_name(subnet_port_node(subnet, &subnet->ports[port]), e);
                take_place(s, subnet, port, e);
        }
        e->is_plugged = e->is_plugged && (!e->is_seen || switch_is_discovered(s, subnet, e->plugged_into.node));
        if (e->is_seen) {
                *seen = (struct seen_port) { .at = s->now, .entry = *e };
                return;
        }
        seen->is_vouched = seen->is_vouched && port == SUBNET_NONE;
        /* behind a switch that hangs no link comes up: the SM reaches the ports only through it */
        seen->is_missing = e->was_gone ||
                           (seen->is_missing && port == SUBNET_NONE && is_behind_undiscovered(s, subnet, e, endport));
        seen->is_nowhere = port == SUBNET_NONE && e->is_ambiguous && fabsim_is_mute(&s->f, s->endports[endport]);
        seen->is_ambiguous = port != SUBNET_NONE ? e->is_ambiguous : seen->is_ambiguous && seen->at == 0;
        seen->entry.is_there = e->is_there;
        seen->entry.is_unknown = seen->at == 0;
        seen->entry.is_seen = false;
        seen->entry.is_self = e->is_self; /* the other head node may have seen it */
        seen->entry.is_sm = e->is_sm; /* all other ports report the LID of the SM */
        if (port == SUBNET_NONE && node != SUBNET_NONE) /* its adapter is there, by another port */
                take_name(&subnet->nodes[node], &seen->entry);
        if (port == SUBNET_NONE)
                *e = seen->entry;
        else if (subnet_port_node(subnet, &subnet->ports[port])->incomplete)
                discover_incomplete(s, o, e, endport);
}

static bool same_place(struct fabsim_place x, struct fabsim_place y)
{
        return x.node == y.node && x.port == y.port;
}

/* The port that p takes it for: one that was discovered at this place (or was moved during the discovery, and may have been
 * there), and fell silent there. UINT32_MAX: none. */
static unsigned taken_for(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct seen_port *ports = p->observer.ports;
        struct fabsim_place at;

        if (ports[endport].entry.is_seen || !observer_leaf(s, endport, &at) || same_place(ports[endport].entry.plugged_into, at))
                return UINT32_MAX;
        for (unsigned i = 0; i < s->n_endports; i++)
                if (i != endport && !ports[i].entry.is_seen && ports[i].at > 0 &&
                    (ports[i].entry.is_ambiguous || (ports[i].silent_at > 0 && same_place(ports[i].entry.plugged_into, at))))
                        return i;
        return UINT32_MAX;
}

/* An absent port is at its old place, if no other port is there or was since. */
static void unplug_absent(const struct sim *s, struct process *p, const struct subnet *subnet)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                for (unsigned k = 0; k < s->n_endports && find_port(s, subnet, i) == SUBNET_NONE; k++) {
                        const struct seen_port *seen = &p->observer.ports[k];

                        if (seen->at > p->observer.ports[i].at && seen->entry.is_plugged && p->adopted.entries[i].is_plugged &&
                            same_place(seen->entry.plugged_into, p->adopted.entries[i].plugged_into))
                                p->adopted.entries[i].is_plugged = false;
                }
}

/* The switch reported that the link is up, and the device there did not answer. */
static bool is_silent_at(const struct sim *s, const struct subnet *subnet, struct fabsim_place place)
{
        uint32_t node = subnet_find_node(subnet, s->f.nodes[place.node].guid);

        return node != SUBNET_NONE && subnet_port_is_silent(&subnet->nodes[node], place.port);
}

void observer_discovered(struct sim *s, struct process *p, const struct subnet *subnet)
{
        know_filters(s, p);
        for (unsigned i = 0; i < s->n_endports; i++) {
                discover_port(s, subnet, &p->observer, &p->adopted.entries[i], i);
                if (p->observer.ports[i].at == s->now)
                        p->observer.ports[i].began = p->adopted.began;
        }
        unplug_absent(s, p, subnet);
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct seen_port *seen = &p->observer.ports[i];
                bool is_silent = seen->at > 0 && seen->at < s->now && seen->entry.is_plugged && !p->adopted.entries[i].is_seen &&
                                 is_silent_at(s, subnet, seen->entry.plugged_into);

                seen->silent_at = is_silent ? seen->silent_at ?: s->now : 0;
        }
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_place at;

                if (observer_leaf(s, i, &at) && is_silent_at(s, subnet, at) && taken_for(s, p, i) == UINT32_MAX)
                        p->observer.ports[i].counted_at = s->now;
        }
}

void observer_forget(struct sim *s, unsigned endport)
{
        size_t table = (size_t) (observer_table(s, s->endports[endport]) - s->tables);
        struct observer *all[SIM_MAX_PROCESSES + SIM_MAX_HEADS];

        for (unsigned i = 0; i < ELEMENTS(all); i++)
                all[i] = i < SIM_MAX_PROCESSES ? &s->processes[i].observer : &s->heads[i - SIM_MAX_PROCESSES].own_store.observer;
        for (unsigned i = 0; i < ELEMENTS(all); i++) {
                all[i]->ports[endport] = (struct seen_port) { .is_ambiguous = true }; /* until the next discovery */
                all[i]->tables[table] = (struct seen_table) {};
                memset(all[i]->tables[table].home, SIM_NO_INDEX, SIM_BASES);
        }
        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
                s->processes[i].pending[table] = (struct pending_reads) {};
                s->processes[i].is_given &= ~(UINT64_C(1) << endport);
        }
}

void observer_init(struct observer *o)
{
        *o = (struct observer) {};
        for (unsigned i = 0; i < SIM_MAX_TABLES; i++)
                memset(o->tables[i].home, SIM_NO_INDEX, SIM_BASES);
}

void observer_store(const struct process *p, struct observer *to)
{
        *to = p->observer;
}

void observer_load(struct process *p)
{
        p->observer = p->head->store->observer;
}

void observer_judged(struct sim *s, struct process *p)
{
        for (unsigned i = 0; i < s->n_tables; i++)
                forget_revoked(s, p, i);
}

void observer_suspect(struct sim *s, struct process *p)
{
        for (unsigned i = 0; p->judgement && s->n_heads > 1 && i < s->n_tables; i++) {
                uint8_t *suspects = p->observer.tables[i].suspects;
                unsigned endport = observer_endport(s, s->tables[i].at);

                for (unsigned b = 0; endport != UINT32_MAX && b < SIM_BASES; b++)
                        suspects[b] = MAX(suspects[b], p->judgement->level[endport][b]);
        }
}

/* --- limits of knowledge --------------------------------------------------------------------------------------------- */

static bool is_elsewhere(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct seen_port *seen = &p->observer.ports[endport];
        const struct fabsim_place at = s->endports[endport];
        const struct fabsim_port *port = &s->f.nodes[at.node].ports[at.port];

        if (seen->is_ambiguous || seen->is_nowhere)
                return true;
        if (seen->at == 0)
                return s->moved_at[endport] >= p->adopted.began;
        if (seen->entry.is_ambiguous || seen->entry.guid.v != port->guid.v)
                return true;
        if (seen->is_missing) /* it may return anywhere */
                return false;
        if (s->moved_at[endport] < p->adopted.began)
                return false; /* it does not answer at its place: a silent device there may be this one */
        if (at.port > 0 && !p->adopted.entries[endport].is_seen && !p->adopted.entries[endport].is_plugged)
                return true; /* another one was seen where it was, and is again */
        return seen->entry.is_cabled != port->is_cabled ||
               (port->is_cabled && !same_place(seen->entry.cable, (struct fabsim_place) { port->peer_node, port->peer_port }));
}

/* Other processes on this head node, present and earlier, share the state; of three processes the second is on the other one. */
static bool is_own(const struct process *p, unsigned writer)
{
        return writer < SIM_MAX_PROCESSES && (writer == 1) == (p->number == 1);
}

/* A switch, or one before it, was moved since it was last seen, and did not answer there. */
static bool is_behind_strayed(const struct sim *s, const struct process *p, unsigned node)
{
        for (unsigned i = 0; i < s->f.n_nodes && s->f.nodes[node].type == NODE_SWITCH; i++) {
                const struct fabsim_port *up = &s->f.nodes[node].ports[12];
                const struct seen_port *seen = &p->observer.ports[world_endport_at(s, (struct fabsim_place) { node, 0 })];

                if (seen->at > 0 && !seen->entry.is_seen && s->uplink_moved_at[node] >= seen->began)
                        return true;
                if (!up->is_cabled)
                        break;
                node = up->peer_node;
        }
        return false;
}

/* It, or a switch before it, was moved since it was last seen, and did not answer there: to p it is absent. */
static bool has_strayed(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct seen_port *seen = &p->observer.ports[endport];
        struct fabsim_place at;

        if (!seen->entry.is_seen && is_behind_strayed(s, p, s->endports[endport].port == 0 || !observer_leaf(s, endport, &at) ?
                                                            s->endports[endport].node : at.node))
                return true;
        return seen->at > 0 && !seen->entry.is_seen && seen->entry.is_plugged && observer_leaf(s, endport, &at) &&
               !same_place(seen->entry.plugged_into, at);
}

/* It was never seen, and came up, perhaps behind a switch that is silent now, after the last sweep that saw that switch
 * (pkeyd(8)). */
static bool came_up_unseen(const struct sim *s, const struct process *p, unsigned endport)
{
        for (unsigned i = 0; p->observer.ports[endport].at == 0 && i < s->n_endports; i++) {
                const struct seen_port *sw = &p->observer.ports[i];

                if (s->endports[i].port == 0 && sw->at > 0 && !sw->entry.is_seen &&
                    s->gone_at[p->head - s->heads][endport] >= sw->at)
                        return true;
        }
        return false;
}

/* It is behind a switch that answered until longer than absent_hold after this port was last seen, and then fell silent: no
 * discovery reaches it. */
static bool is_hidden(const struct sim *s, const struct process *p, unsigned endport, usec_t last, usec_t hold)
{
        struct fabsim_place at;
        unsigned leaf;

        if ((p->observer.ports[endport].at > 0 && !has_strayed(s, p, endport)) || !observer_leaf(s, endport, &at))
                return false;
        leaf = world_endport_at(s, (struct fabsim_place) { at.node, 0 });
        return !p->observer.ports[leaf].entry.is_seen && s->now - last >= hold &&
               p->observer.ports[leaf].at + USEC_PER_SEC > last + hold;
}

/* A port that p takes for another one counts as long as that one is silent, if that fell silent within absent_hold after this
 * one was last found (pkeyd(8)); times are stored in seconds. If a device is silent at its own place, too, it always counts,
 * but as behind the filter there. */
static bool is_lost(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct seen_port *seen = &p->observer.ports[endport];
        const unsigned other = taken_for(s, p, endport);
        const usec_t last = MAX(seen->at, seen->counted_at), since = other == UINT32_MAX ? 0 : p->observer.ports[other].silent_at;
        const struct fabsim_place at = seen->entry.plugged_into;
        const struct fabsim_port *leaf = &s->f.nodes[at.node].ports[at.port];
        usec_t hold;

        if (!p->judgement)
                return false;
        hold = p->judgement->intent.settings.absent_hold;
        if (other == UINT32_MAX)
                return is_hidden(s, p, endport, last, hold) || came_up_unseen(s, p, endport);
        if (p->observer.ports[other].entry.is_ambiguous)
                return true;
        if (seen->silent_at > 0)
                return leaf->enforce_inbound || leaf->enforce_outbound;
        if (seen->at == 0) /* never seen: it is not expected at the places of others */
                return s->now - last >= hold;
        return s->now - last >= hold && (since < last + USEC_PER_SEC || since + USEC_PER_SEC > last + hold);
}

/* The highest level of a base that p has read in this table, or that a policy in force here has given it since. */
static uint8_t highest_known(const struct seen_table *t, unsigned b)
{
        uint8_t level = t->suspects[b];

        for (unsigned i = 0; i < FABSIM_MAX_ENTRIES; i++)
                if ((t->entries[i].v & 0x7fff) == sim_bases[b])
                        level = MAX(level, (uint8_t) (t->entries[i].v & 0x8000 ? 2 : 1));
        return level;
}

bool observer_is_pair(const struct sim *s, unsigned x, unsigned y)
{
        return x < s->n_heads && y < s->n_heads && x != y;
}

/* The bases that this writer changed since p read them. */
static uint16_t table_changes(const struct sim *s, const struct process *p, const struct table_record *r, unsigned writer)
{
        const struct seen_table *t = &p->observer.tables[r - s->tables];
        uint16_t bases = 0;

        if (t->filter_at && r->filter_changed_at[writer] >= t->filter_at)
                return UINT16_MAX;
        for (unsigned block = 0; block < SIM_BLOCKS; block++)
                for (unsigned b = 0; t->block_at[block] && b < SIM_BASES; b++)
                        if (r->changed_at[writer][block][b] >= t->block_at[block])
                                bases |= (uint16_t) (1 << b);
        return bases;
}

/* The pkeyd of the other head node has its own store and the same policies. Its writes are a surprise only if a table now has
 * more of a base than was read there and than any policy in force here has given it since: this head node cannot know another
 * policy (it was down when that was loaded, or refused it; or SELF is another port there). */
static uint16_t find_unexpected(const struct sim *s, const struct process *p, const struct table_record *r)
{
        const struct fabsim_port *now = &s->f.nodes[r->at.node].ports[r->at.port];
        uint16_t bases = 0;

        for (unsigned b = 0; b < SIM_BASES; b++)
                if (fabsim_level(now, sim_bases[b]) > highest_known(&p->observer.tables[r - s->tables], b))
                        bases |= (uint16_t) (1 << b);
        return bases;
}

static void add_surprises(const struct sim *s, const struct process *p, const struct table_record *r, unsigned endport,
                          struct basis *ret)
{
        for (unsigned w = 0; w <= SIM_ELSE; w++) {
                uint16_t changes = is_own(p, w) ? 0 : table_changes(s, p, r, w);

                ret->changes[endport] |= changes;
                ret->surprises[endport] |= changes & (observer_is_pair(s, p->number, w) ? find_unexpected(s, p, r) : UINT16_MAX);
        }
}

/* A port that cannot filter has no table. */
static bool was_read(const struct process *p, const struct sim *s, const struct table_record *r)
{
        return !r || p->observer.tables[r - s->tables].block_at[0] > 0;
}

/* A device at its present place, or the switch there, was already silent when it was last seen elsewhere: no discovery notices
 * that cables were swapped, or that a port came up behind a switch whose M_Key pkeyd does not have. */
static bool is_exchanged(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct seen_port *ports = p->observer.ports;
        struct fabsim_place at;
        unsigned leaf;

        if (!observer_leaf(s, endport, &at))
                return false;
        for (unsigned i = 0; i < s->n_endports; i++)
                if (ports[i].silent_at > 0 && ports[i].silent_at <= ports[endport].at &&
                    same_place(ports[i].entry.plugged_into, at))
                        return true;
        leaf = world_endport_at(s, (struct fabsim_place) { at.node, 0 });
        return !ports[leaf].entry.is_seen && ports[leaf].at < ports[endport].at;
}

void observer_basis(const struct sim *s, const struct process *p, struct basis *ret)
{
        *ret = (struct basis) { .by = p->judgement, .process = p->number, .life = p->life, .since = s->now };
        for (unsigned i = 0; i < s->n_endports; i++) {
                const struct seen_port *seen = &p->observer.ports[i];
                struct table_record *r = observer_table((struct sim *) s, s->endports[i]);
                struct fabsim_place leaf;

                if (r)
                        add_surprises(s, p, r, i, ret);
                ret->unread |= (uint64_t) !was_read(p, s, r) << i;
                if (observer_leaf(s, i, &leaf) && (r = observer_table((struct sim *) s, leaf))) {
                        add_surprises(s, p, r, i, ret);
                        /* a port whose switch is absent has the entries of the file in place: the switch port may filter by now */
                        ret->unread |= (uint64_t) (!was_read(p, s, r) || !p->adopted.entries[i].is_plugged) << i;
                }
                ret->elsewhere |= (uint64_t) is_elsewhere(s, p, i) << i;
                ret->strayed |= (uint64_t) has_strayed(s, p, i) << i;
                ret->strayed_long |= (uint64_t) (has_strayed(s, p, i) && p->judgement &&
                                                 (s->now - seen->at >= p->judgement->intent.settings.absent_hold ||
                                                  is_exchanged(s, p, i))) << i;
                ret->lost |= (uint64_t) is_lost(s, p, i) << i;
                ret->vouched |= (uint64_t) seen->is_vouched << i;
                ret->unknown |= (uint64_t) (seen->at == 0) << i;
                ret->missing |= (uint64_t) (seen->is_missing) << i;
                ret->expired |= (uint64_t) (p->judgement && seen->is_missing &&
                                            (seen->at == 0 || s->now - seen->at >= p->judgement->intent.settings.absent_hold)) << i;
        }
}
