/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>

#include "knowledge/knowledge_internal.h"

/* --- what a discovery shows ---------------------------------------------------------------------------------------- */

/* Returns 0 if no leaf port of this switch is known. */
static uint16_t known_leaf_capacity(const struct knowledge *k, struct guid node)
{
        for (unsigned number = 1; number <= UINT8_MAX; number++) {
                uint32_t i = knowledge_find(k, (struct knowledge_name) { node, (uint8_t) number, KNOWLEDGE_LEAF });

                if (i != KNOWLEDGE_NONE)
                        return k->records[i].capacity;
        }
        return 0;
}

void knowledge_complete_subnet(const struct knowledge *k, struct subnet *s)
{
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                struct subnet_node *n = &s->nodes[i];

                if (n->type != NODE_SWITCH || !n->incomplete || n->partition_enforcement_cap > 0)
                        continue;
                n->partition_enforcement_cap = known_leaf_capacity(k, n->guid);
                n->inbound_enforcement_cap = n->outbound_enforcement_cap = n->partition_enforcement_cap > 0;
        }
}

/* Shifts a time by `step` seconds, but not beyond `wall`. 0 means never, and stays 0. */
static void move_time(uint64_t *t, int64_t step, uint64_t wall)
{
        if (*t > 0)
                *t = (uint64_t) (MIN((int64_t) *t + step, (int64_t) wall) ?: 1);
}

/* The times of a record state how long ago something was, by the wall clock as it is now, and in which order things happened, even
 * after the clock was set. If a time from another boot is in the future, the clock of that boot or of this one is wrong: it counts
 * as now. */
static void follow_clock(struct knowledge_record *r, usec_t now, uint64_t wall)
{
        int64_t clock = (int64_t) wall - (int64_t) (now / USEC_PER_SEC);
        int64_t step = r->has_clock ? clock - r->clock : MIN((int64_t) wall - (int64_t) r->seen_at, INT64_C(0));

        r->clock = clock;
        r->has_clock = true;
        if (step == 0)
                return;
        move_time(&r->since, step, wall);
        move_time(&r->seen_at, step, wall);
        move_time(&r->there_at, step, wall);
        move_time(&r->read_at, step, wall);
        move_time(&r->vouched_at, step, wall);
}

/* Makes a port absent until this discovery finds it; `seen` stays. It has no leaf port any more: it may return elsewhere. */
static void make_absent(struct knowledge_record *r)
{
        r->presence_before = r->presence;
        r->there_at_before = r->there_at;
        r->presence = KNOWLEDGE_ABSENT;
        r->fresh = r->may_be_back = false;
        r->other_end = KNOWLEDGE_NONE;
}

/* A vouch is about an absent or silent port: it ends when discovery finds more of the port than before. */
static void set_presence(const struct knowledge *k, struct knowledge_record *r, enum knowledge_presence presence)
{
        if (r->vouched && presence < r->presence_before)
                r->vouched = r->is_stored = false;
        if (presence != r->presence_before)
                r->since = k->wall;
        r->presence = presence;
        r->expired = r->found = r->is_restored = false;
        r->seen = k->now;
        r->seen_at = k->wall;
        if (presence == KNOWLEDGE_THERE)
                r->there_at = k->wall;
        follow_clock(r, k->now, k->wall); /* its record may be new */
}

void knowledge_confirm_presence(struct knowledge *k, usec_t now, uint64_t wall)
{
        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                if (r->seen_at == 0 || (now == USEC_INFINITY && r->has_clock) ||
                    (r->presence == KNOWLEDGE_ABSENT && !r->may_be_silent))
                        continue;
                if (now != USEC_INFINITY) {
                        follow_clock(r, now, wall);
                        r->seen = now;
                }
                if (r->presence == KNOWLEDGE_ABSENT)
                        continue; /* its absence was not counted meanwhile */
                r->seen_at = wall;
                if (r->presence == KNOWLEDGE_THERE)
                        r->there_at = wall;
        }
}

/* If the switch did not answer all queries, its bits are not certain. */
static void take_filter_bits(struct knowledge_record *r, const struct subnet *s, const struct subnet_port *p)
{
        r->filters[SENDS] = p->enforce_inbound;
        r->filters[RECEIVES] = p->enforce_outbound;
        r->filters_unsure = s->nodes[p->node].incomplete;
}

/* make_room() has reserved the memory. */
static uint32_t ensure_reserved(struct knowledge *k, struct knowledge_name name)
{
        uint32_t record = KNOWLEDGE_NONE;
        int r = knowledge_ensure_record(k, name, &record);

        assert(r == 0);
        (void) r;
        return record;
}

static void see_port(struct knowledge *k, const struct subnet *s, const struct subnet_port *p)
{
        uint32_t i;

        if (!subnet_port_is_managed(s, p))
                return;
        i = ensure_reserved(k, knowledge_name_of(s, p));
        set_presence(k, &k->records[i], KNOWLEDGE_THERE);
        knowledge_set_capacity(&k->records[i], subnet_port_capacity(s, p));
        if (p->role == PORT_SWITCH_EXTERNAL)
                take_filter_bits(&k->records[i], s, p);
}

static bool is_place_silent(const struct subnet *s, struct subnet_place place)
{
        uint32_t node = subnet_find_node(s, place.node);

        return node != SUBNET_NONE && subnet_port_is_silent(&s->nodes[node], place.number);
}

/* The places of one endport. */
struct places {
        struct subnet_place *items;
        size_t n;
};

/* If a link of a switch, or of the local port, is silent now, it counts as still leading where it led, also if the switch there was
 * not found. */
static int find_places(const struct knowledge *k, const struct subnet *s, const struct subnet_port *p, struct places *ret)
{
        const struct subnet_port *leaf = p->peer == SUBNET_NONE ? NULL : &s->ports[p->peer];
        const struct subnet_node *node = subnet_port_node(s, p);
        uint32_t record = knowledge_find(k, knowledge_name_of(s, p));
        const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : &k->records[record];
        bool is_switch = node->type == NODE_SWITCH;
        bool is_silent = is_switch ? subnet_node_count_silent(node) > 0 : subnet_port_is_silent(node, p->number);
        size_t n_known = r && (is_switch || is_silent) ? r->n_places : 0;

        ret->items = calloc(1 + node->n_links + n_known, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        if (leaf)
                ret->items[ret->n++] = (struct subnet_place) { subnet_port_node(s, leaf)->guid, leaf->number };
        for (size_t i = 0; i < node->n_links; i++)
                ret->items[ret->n++] = node->links[i];
        for (size_t i = 0; i < n_known && ret->n < UINT8_MAX; i++) /* devices that come and go must not fill it */
                if (is_place_silent(s, r->places[i]) || (is_silent && subnet_find_node(s, r->places[i].node) == SUBNET_NONE))
                        ret->items[ret->n++] = r->places[i];
        return 0;
}

static void set_places(struct knowledge_record *r, struct places *places)
{
        bool same = r->n_places == places->n;

        for (size_t i = 0; same && i < places->n; i++)
                same = r->places[i].node.v == places->items[i].node.v && r->places[i].number == places->items[i].number;
        r->is_stored = r->is_stored && same;
        free(r->places);
        r->places = STEAL(places->items);
        r->n_places = places->n;
}

/* A switch port that cannot filter has no record: it does not change what its peer sends or receives. */
static void link_port(struct knowledge *k, const struct subnet *s, const struct subnet_port *p, struct places *places)
{
        const struct subnet_port *leaf = p->peer == SUBNET_NONE ? NULL : &s->ports[p->peer];
        uint32_t host, end = KNOWLEDGE_NONE;

        if (p->role != PORT_ENDPORT)
                return;
        host = knowledge_find(k, knowledge_name_of(s, p));
        if (host == KNOWLEDGE_NONE)
                return;
        set_places(&k->records[host], places);
        if (leaf && subnet_port_is_managed(s, leaf))
                end = knowledge_find(k, knowledge_name_of(s, leaf));
        k->records[host].other_end = end;
        if (end != KNOWLEDGE_NONE)
                k->records[end].other_end = host;
}

/* --- silent devices ------------------------------------------------------------------------------------------------ */

/* A device at a known place became silent between these times, in seconds since 1970. */
struct silence {
        int64_t from, to;
};

/* What a discovery shows of places and silent devices. */
struct evidence {
        struct places *places;    /* for each port of the subnet */
        size_t n_places;
        uint64_t (*known)[4];     /* for each node of the subnet, a bit for each port whose silent device is known */
        struct silence *silences; /* one for each known device that is silent */
        size_t n_silences;
        bool has_switch;          /* one of them is a switch */
};

static void evidence_done(struct evidence *e)
{
        for (size_t i = 0; i < e->n_places; i++)
                free(e->places[i].items);
        free(e->places);
        free(e->known);
        free(e->silences);
}

static struct knowledge_name place_of(const struct subnet_node *node, unsigned number)
{
        return (struct knowledge_name) { node->guid, (uint8_t) number, KNOWLEDGE_PLACE };
}

/* If this place is silent, its device is r, which discovery found there before, so it is not an unknown device. Exception: if an
 * unknown device was assumed there while r was silent already, it stays. */
static void identify_place(struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, struct subnet_place place,
                        struct evidence *evidence)
{
        uint32_t node = subnet_find_node(s, place.node), unknown;

        if (!is_place_silent(s, place))
                return;
        unknown = knowledge_find(k, place_of(&s->nodes[node], place.number));
        if (unknown != KNOWLEDGE_NONE && k->records[unknown].presence_before == KNOWLEDGE_SILENT &&
            r->presence_before == KNOWLEDGE_SILENT)
                return;
        evidence->known[node][place.number / 64] |= UINT64_C(1) << place.number % 64;
        if (unknown != KNOWLEDGE_NONE)
                k->records[unknown].found = true;
}

static bool is_any_place_silent(const struct knowledge_record *r, const struct subnet *s)
{
        for (size_t i = 0; i < r->n_places; i++)
                if (is_place_silent(s, r->places[i]))
                        return true;
        return false;
}

/* No discovery saw this switch for a long time before it was found silent: unknown ports may have come up behind it. */
static bool is_long_unseen(const struct knowledge_record *r)
{
        return r->name.number == 0 && (int64_t) (r->since - r->there_at) > KNOWLEDGE_UNSEEN;
}

/* A device at its last place, behind a link that is up, did not answer discovery. If the link was down before, another device may
 * have been plugged in there. */
static void mark_silent(struct knowledge *k, struct knowledge_record *r, const struct subnet *s, struct evidence *evidence)
{
        if (r->name.kind != KNOWLEDGE_ENDPORT || r->presence != KNOWLEDGE_ABSENT || !is_any_place_silent(r, s))
                return;
        set_presence(k, r, KNOWLEDGE_SILENT);
        for (size_t i = 0; i < r->n_places && r->presence_before != KNOWLEDGE_ABSENT && !is_long_unseen(r); i++)
                identify_place(k, r, s, r->places[i], evidence);
        evidence->silences[evidence->n_silences++] = (struct silence) { (int64_t) r->there_at, (int64_t) r->since };
        evidence->has_switch = evidence->has_switch || r->name.number == 0;
}

/* A silent place whose device was never identified gets a record of its own. If the device is a switch, the record stands for all
 * hosts behind it. If a known switch was seen within KNOWLEDGE_UNSEEN, the hosts behind it are known: none comes up while the
 * switch hangs, because the SM reaches them only through it. pkeyd misses a host that came up after the last sweep that saw the
 * switch and before the switch hung; the alternative is to hold everything. */
static void mark_unknown_places(struct knowledge *k, const struct subnet *s, const struct evidence *evidence)
{
        for (uint32_t n = 0; n < s->n_nodes; n++)
                for (unsigned number = 1; number <= UINT8_MAX; number++)
                        if (subnet_port_is_silent(&s->nodes[n], (uint8_t) number) &&
                            !(evidence->known[n][number / 64] >> number % 64 & 1))
                                set_presence(k, &k->records[ensure_reserved(k, place_of(&s->nodes[n], number))], KNOWLEDGE_SILENT);
}

/* True if an unknown device is silent: it may be a switch with any port behind it. */
static bool is_unknown_silent(const struct subnet *s, const struct evidence *evidence)
{
        for (uint32_t n = 0; n < s->n_nodes; n++)
                for (unsigned i = 0; i < ELEMENTS(s->nodes[n].silent_ports); i++)
                        if (s->nodes[n].silent_ports[i] & ~evidence->known[n][i])
                                return true;
        return false;
}

/* True if this switch is not in the snapshot, and is silent or may be the unknown device that is. A port that disappeared while the
 * switch still answered is not behind it; one that was absent when the switch was may be. */
static bool is_switch_silent(const struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, struct guid node,
                             bool unknown_is_silent)
{
        uint32_t record = knowledge_find(k, (struct knowledge_name) { node, 0, KNOWLEDGE_ENDPORT });

        if (subnet_find_node(s, node) != SUBNET_NONE)
                return false;
        return unknown_is_silent ||
               (record != KNOWLEDGE_NONE && k->records[record].presence == KNOWLEDGE_SILENT &&
                (r->presence_before != KNOWLEDGE_ABSENT || k->records[record].presence_before == KNOWLEDGE_ABSENT));
}

static bool is_behind(const struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, bool unknown_is_silent)
{
        if (r->name.kind == KNOWLEDGE_PLACE)
                return is_switch_silent(k, r, s, r->name.node, unknown_is_silent);
        for (size_t i = 0; i < r->n_places; i++)
                if (is_switch_silent(k, r, s, r->places[i].node, unknown_is_silent))
                        return true;
        return unknown_is_silent && r->n_places == 0;
}

/* A port behind a silent switch is silent, and so is each port behind that. A place whose device was identified has another record
 * for it. Returns how many ports became silent. */
static size_t mark_behind(struct knowledge *k, const struct subnet *s, bool unknown_is_silent)
{
        size_t n = 0;

        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                if (r->name.kind == KNOWLEDGE_LEAF || r->presence != KNOWLEDGE_ABSENT || r->found ||
                    !is_behind(k, r, s, unknown_is_silent))
                        continue;
                set_presence(k, r, KNOWLEDGE_SILENT);
                n++;
        }
        return n;
}

/* A device that became silent after this port was last present, and while this port still counts, may be this port: its cable was
 * plugged in there, and it hangs. As long as that device is silent, this port counts. */
static bool may_be_moved(const struct knowledge_record *r, const struct silence *silence, usec_t absent_hold)
{
        const int64_t seen = (int64_t) r->seen_at; /* may be before 1970 if the clock was set */

        return silence->to >= (int64_t) r->there_at &&
               (silence->from <= seen || (uint64_t) (silence->from - seen) <= absent_hold / USEC_PER_SEC);
}

static void update_may_be_silent(struct knowledge_record *r, const struct evidence *evidence, usec_t absent_hold)
{
        r->may_be_silent = false;
        if (r->name.kind != KNOWLEDGE_ENDPORT || r->presence != KNOWLEDGE_ABSENT)
                return;
        for (size_t i = 0; !r->may_be_silent && i < evidence->n_silences; i++)
                r->may_be_silent = may_be_moved(r, &evidence->silences[i], absent_hold);
}

static void mark_all_silent(struct knowledge *k, const struct subnet *s, struct evidence *evidence)
{
        bool unknown_is_silent;

        for (size_t i = 0; i < k->n; i++)
                mark_silent(k, &k->records[i], s, evidence);
        unknown_is_silent = is_unknown_silent(s, evidence);
        while ((unknown_is_silent || evidence->has_switch) && mark_behind(k, s, unknown_is_silent) > 0)
                continue;
        for (size_t i = 0; i < k->n; i++)
                update_may_be_silent(&k->records[i], evidence, k->absent_hold);
        mark_unknown_places(k, s, evidence);
}

/* --- absent ports -------------------------------------------------------------------------------------------------- */

static bool is_plugged_into(const struct subnet_node *node, struct knowledge_name place)
{
        for (unsigned i = 0; i < node->n_links; i++)
                if (node->links[i].node.v == place.node.v && node->links[i].number == place.number)
                        return true;
        return false;
}

/* True if this device answered a discovery after the place became silent. */
static bool answered_elsewhere(const struct knowledge *k, uint32_t record, const struct knowledge_record *place)
{
        uint64_t answered = record == KNOWLEDGE_NONE ? 0 : k->records[record].there_at_before; /* 0: never */

        return answered != 0 && (int64_t) answered >= (int64_t) place->since;
}

/* True if the switch that is plugged in at this place now is known to have been elsewhere. */
static bool is_known_switch(const struct knowledge *k, const struct subnet *s, const struct knowledge_record *place)
{
        for (uint32_t n = 0; n < s->n_nodes; n++) {
                struct knowledge_name name = { s->nodes[n].guid, 0, KNOWLEDGE_ENDPORT };

                if (s->nodes[n].type == NODE_SWITCH && is_plugged_into(&s->nodes[n], place->name) &&
                    answered_elsewhere(k, knowledge_find(k, name), place))
                        return true;
        }
        return false;
}

/* A device was discovered at a place that was silent: it is the one that was silent, unless it answered elsewhere meanwhile. */
static bool is_discovered(const struct knowledge *k, const struct subnet *s, const struct knowledge_record *r)
{
        uint32_t node = subnet_find_node(s, r->name.node);
        uint32_t port = node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(s, node, r->name.number);

        if (port != SUBNET_NONE)
                return s->ports[port].peer == SUBNET_NONE ||
                       !answered_elsewhere(k, knowledge_find_port(k, s, s->ports[port].peer), r);
        return node != SUBNET_NONE && subnet_port_leads_to_switch(&s->nodes[node], r->name.number) && !is_known_switch(k, s, r);
}

static void update_expired(struct knowledge_record *r, usec_t now, usec_t absent_hold)
{
        r->expired = r->found || (!r->may_be_silent && absent_hold != USEC_INFINITY && now - MIN(now, r->seen) >= absent_hold);
}

/* `seen` is stored when a port disappears. A port that disappeared while pkeyd did not run counts as seen until now, and so does
 * one that was absent in another boot: no clock states for how long, because that may be a boot of the other head node. */
static void update_absent(const struct knowledge *k, struct knowledge_record *r, const struct subnet *s)
{
        if (r->presence != KNOWLEDGE_ABSENT)
                return;
        if (r->may_be_silent || r->seen == USEC_INFINITY || (r->is_restored && r->presence_before != KNOWLEDGE_ABSENT))
                r->seen = k->now;
        r->is_restored = false;
        r->found = r->name.kind == KNOWLEDGE_PLACE && (r->found || is_discovered(k, s, r));
        update_expired(r, k->now, k->absent_hold);
}

void knowledge_hold_absent(struct knowledge *k, usec_t now, usec_t absent_hold)
{
        k->counts.valid = false;
        k->absent_hold = absent_hold;
        for (size_t i = 0; i < k->n; i++)
                if (k->records[i].presence == KNOWLEDGE_ABSENT)
                        update_expired(&k->records[i], now, absent_hold);
}

/* Counts the ports and places that may need a new record. */
static size_t count_new(const struct knowledge *k, const struct subnet *s)
{
        size_t n = 0;

        for (uint32_t i = 0; i < s->n_ports; i++)
                n += subnet_port_is_managed(s, &s->ports[i]) && knowledge_find_port(k, s, i) == KNOWLEDGE_NONE;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                for (unsigned number = 1; number <= UINT8_MAX; number++)
                        n += subnet_port_is_silent(&s->nodes[i], (uint8_t) number) &&
                             knowledge_find(k, place_of(&s->nodes[i], number)) == KNOWLEDGE_NONE;
        return n;
}

/* Reserves all that a discovery may need before anything is changed: a discovery that is applied only in part would lose ports. */
static int make_room(struct knowledge *k, const struct subnet *s, struct evidence *ret)
{
        size_t n = count_new(k, s);

        if (VECTOR_EXTEND(NULL, k->records, k->n, k->allocated, n) < 0 || hash_index_reserve(&k->index, (uint32_t) (k->n + n)) < 0)
                return -ENOMEM;
        ret->known = calloc(MAX(s->n_nodes, 1u), sizeof(*ret->known));
        ret->silences = calloc(MAX(k->n + n, (size_t) 1), sizeof(*ret->silences));
        ret->places = calloc(MAX(s->n_ports, 1u), sizeof(*ret->places));
        ret->n_places = ret->places ? s->n_ports : 0;
        for (uint32_t i = 0; i < ret->n_places; i++)
                if (s->ports[i].role == PORT_ENDPORT && find_places(k, s, &s->ports[i], &ret->places[i]) < 0)
                        return -ENOMEM;
        return ret->known && ret->silences && ret->places ? 0 : -ENOMEM;
}

int knowledge_see_subnet(struct knowledge *k, const struct subnet *s, usec_t now, uint64_t wall, usec_t absent_hold)
{
        _cleanup_(evidence_done) struct evidence evidence = {};

        if (make_room(k, s, &evidence) < 0)
                return -ENOMEM;
        k->counts.valid = false;
        k->now = now;
        k->wall = wall;
        k->is_stored = false;
        k->absent_hold = absent_hold;
        k->doubt_at = USEC_INFINITY;
        for (size_t i = 0; i < k->n; i++) {
                follow_clock(&k->records[i], now, wall);
                make_absent(&k->records[i]);
        }
        for (uint32_t i = 0; i < s->n_ports; i++)
                see_port(k, s, &s->ports[i]);
        for (uint32_t i = 0; i < s->n_ports; i++)
                link_port(k, s, &s->ports[i], &evidence.places[i]);
        mark_all_silent(k, s, &evidence);
        for (size_t i = 0; i < k->n; i++)
                update_absent(k, &k->records[i], s);
        return 0;
}
