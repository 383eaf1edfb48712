/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

#define MAX_BASES  256  /* that one change of a block can touch; beyond that all bases of its port are counted anew */

struct knowledge *knowledge_new(void)
{
        return calloc(1, sizeof(struct knowledge));
}

struct knowledge *knowledge_free(struct knowledge *k)
{
        if (!k)
                return NULL;
        for (size_t i = 0; i < k->n; i++) {
                free(k->records[i].entries);
                free(k->records[i].writes);
                free(k->records[i].places);
                free(k->records[i].vouched_by);
        }
        free(k->records);
        hash_index_done(&k->index);
        knowledge_counts_done(&k->counts);
        free(k);
        return NULL;
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(struct knowledge_name name)
{
        return hash_mix(hash_mix(0, name.node.v), (uint64_t) name.kind << 8 | name.number);
}

uint32_t knowledge_find(const struct knowledge *k, struct knowledge_name name)
{
        uint32_t i = hash_index_first(&k->index, hash_of(name));

        while (i != HASH_INDEX_NONE && !knowledge_same_name(k->records[i].name, name))
                i = hash_index_next(&k->index, i);
        return i == HASH_INDEX_NONE ? KNOWLEDGE_NONE : i;
}

int knowledge_ensure_record(struct knowledge *k, struct knowledge_name name, uint32_t *ret)
{
        int r;

        *ret = knowledge_find(k, name);
        if (*ret != KNOWLEDGE_NONE)
                return 0;
        r = VECTOR_GROW(NULL, k->records, k->n, k->allocated);
        if (r == 0)
                r = hash_index_reserve(&k->index, (uint32_t) k->n + 1);
        if (r < 0)
                return r;
        *ret = (uint32_t) k->n++;
        k->records[*ret] = (struct knowledge_record) {
                .name = name, .presence = KNOWLEDGE_ABSENT, .was = KNOWLEDGE_ABSENT, .filters_unsure = true,
                .other_end = KNOWLEDGE_NONE,
        };
        hash_index_add(&k->index, *ret, hash_of(name));
        return 0;
}

static struct knowledge_name name_of(const struct subnet *s, const struct subnet_port *p)
{
        return (struct knowledge_name) {
                .node = s->nodes[p->node].guid,
                .number = p->number,
                .kind = p->role == PORT_ENDPORT ? KNOWLEDGE_ENDPORT : KNOWLEDGE_LEAF,
        };
}

const struct knowledge_record *knowledge_get(const struct knowledge *k, uint32_t record)
{
        assert(record < k->n);
        return &k->records[record];
}

uint32_t knowledge_n_records(const struct knowledge *k)
{
        return (uint32_t) k->n;
}

uint32_t knowledge_find_port(const struct knowledge *k, const struct subnet *s, uint32_t port)
{
        return knowledge_find(k, name_of(s, &s->ports[port]));
}

/* Returns a copy of n items, or NULL if there is no array or memory is out. */
static void *copy_array(const void *items, size_t n, size_t size)
{
        void *copy = items ? calloc(MAX(n, (size_t) 1), size) : NULL;

        if (copy)
                memcpy(copy, items, n * size);
        return copy;
}

static int copy_record(struct knowledge_record *to, const struct knowledge_record *from)
{
        *to = *from;
        to->entries = copy_array(from->entries, from->capacity, sizeof(*to->entries));
        to->writes = copy_array(from->writes, from->n_writes, sizeof(*to->writes));
        to->places = copy_array(from->places, from->n_places, sizeof(*to->places));
        to->vouched_by = from->vouched_by ? strdup(from->vouched_by) : NULL;
        to->n_allocated = from->n_writes;
        if (!to->entries != !from->entries || !to->writes != !from->writes || !to->places != !from->places ||
            !to->vouched_by != !from->vouched_by)
                return -ENOMEM;
        return 0;
}

struct knowledge *knowledge_copy(const struct knowledge *from)
{
        _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
        uint32_t record;
        int r = k ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < from->n; i++) {
                r = knowledge_ensure_record(k, from->records[i].name, &record);
                if (r == 0)
                        r = copy_record(&k->records[record], &from->records[i]);
        }
        if (r < 0)
                return NULL;
        k->now = from->now;
        k->wall = from->wall;
        k->absent_hold = from->absent_hold;
        return knowledge_counts_rebuild(k) < 0 ? NULL : STEAL(k);
}

/* --- who is there -------------------------------------------------------------------------------------------------------- */

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

/* 0 means never, and stays 0. No time is in the future. */
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
        r->was = r->presence;
        r->was_there_at = r->there_at;
        r->presence = KNOWLEDGE_ABSENT;
        r->fresh = r->may_be_back = false;
        r->other_end = KNOWLEDGE_NONE;
}

/* A vouch is about an absent or silent port: it ends when discovery finds more of the port than before. */
static void set_presence(struct knowledge_record *r, enum knowledge_presence presence, usec_t now, uint64_t wall)
{
        if (r->vouched && presence < r->was)
                r->vouched = r->is_stored = false;
        if (presence != r->was)
                r->since = wall;
        r->presence = presence;
        r->expired = r->found = r->is_restored = false;
        r->seen = now;
        r->seen_at = wall;
        if (presence == KNOWLEDGE_THERE)
                r->there_at = wall;
        follow_clock(r, now, wall); /* its record may be new */
}

void knowledge_was_discovered(struct knowledge *k, usec_t now, uint64_t wall)
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

void knowledge_forget_read(struct knowledge_record *r)
{
        free(STEAL(r->entries));
        r->n_writes = 0;
        r->vouched = r->is_unfollowed = r->is_stored = false;
}

/* What is known of a table does not hold for a table of another size. */
static void set_capacity(struct knowledge_record *r, uint16_t capacity)
{
        if (r->capacity == capacity)
                return;
        knowledge_forget_read(r);
        r->capacity = capacity;
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

static void see_port(struct knowledge *k, const struct subnet *s, const struct subnet_port *p, usec_t now, uint64_t wall)
{
        uint32_t i;

        if (!subnet_port_is_managed(s, p))
                return;
        i = ensure_reserved(k, name_of(s, p));
        set_presence(&k->records[i], KNOWLEDGE_THERE, now, wall);
        set_capacity(&k->records[i], subnet_port_capacity(s, p));
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

/* If a link of a switch is silent now, it counts as still leading there. */
static int find_places(const struct knowledge *k, const struct subnet *s, const struct subnet_port *p, struct places *ret)
{
        const struct subnet_port *leaf = p->peer == SUBNET_NONE ? NULL : &s->ports[p->peer];
        const struct subnet_node *node = subnet_port_node(s, p);
        uint32_t record = knowledge_find(k, name_of(s, p));
        const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : &k->records[record];
        size_t n_known = r && node->type == NODE_SWITCH ? r->n_places : 0;

        ret->items = calloc(1 + node->n_links + n_known, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        if (leaf)
                ret->items[ret->n++] = (struct subnet_place) { subnet_port_node(s, leaf)->guid, leaf->number };
        for (size_t i = 0; i < node->n_links; i++)
                ret->items[ret->n++] = node->links[i];
        for (size_t i = 0; i < n_known; i++)
                if (is_place_silent(s, r->places[i]))
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
        host = knowledge_find(k, name_of(s, p));
        if (host == KNOWLEDGE_NONE)
                return;
        set_places(&k->records[host], places);
        if (leaf && subnet_port_is_managed(s, leaf))
                end = knowledge_find(k, name_of(s, leaf));
        k->records[host].other_end = end;
        if (end != KNOWLEDGE_NONE)
                k->records[end].other_end = host;
}

/* --- who is silent ------------------------------------------------------------------------------------------------------- */

/* A device at a known place became silent between these times, in seconds since 1970. */
struct silence {
        int64_t from, to;
};

/* What a discovery shows about silent devices. */
struct claims {
        struct places *places;    /* for each port of the subnet */
        size_t n_places;
        uint64_t (*ports)[4];     /* for each node of the subnet, a bit for each port whose silent device is known */
        struct silence *silences; /* one for each known device that is silent */
        size_t n;
        bool with_switch;         /* one of them is a switch */
};

static void claims_done(struct claims *c)
{
        for (size_t i = 0; i < c->n_places; i++)
                free(c->places[i].items);
        free(c->places);
        free(c->ports);
        free(c->silences);
}

static struct knowledge_name place_of(const struct subnet_node *node, unsigned number)
{
        return (struct knowledge_name) { node->guid, (uint8_t) number, KNOWLEDGE_PLACE };
}

/* If this place is silent, its device is r, which discovery found there before, so it is not an unknown device. Exception: if an
 * unknown device was assumed there while r was silent already, it stays. */
static void claim_place(struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, struct subnet_place place,
                        struct claims *claims)
{
        uint32_t node = subnet_find_node(s, place.node), unknown;

        if (!is_place_silent(s, place))
                return;
        unknown = knowledge_find(k, place_of(&s->nodes[node], place.number));
        if (unknown != KNOWLEDGE_NONE && k->records[unknown].was == KNOWLEDGE_SILENT && r->was == KNOWLEDGE_SILENT)
                return;
        claims->ports[node][place.number / 64] |= UINT64_C(1) << place.number % 64;
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
static void find_silent(struct knowledge *k, struct knowledge_record *r, const struct subnet *s, struct claims *claims, usec_t now,
                        uint64_t wall)
{
        if (r->name.kind != KNOWLEDGE_ENDPORT || r->presence != KNOWLEDGE_ABSENT || !is_any_place_silent(r, s))
                return;
        set_presence(r, KNOWLEDGE_SILENT, now, wall);
        for (size_t i = 0; i < r->n_places && r->was != KNOWLEDGE_ABSENT && !is_long_unseen(r); i++)
                claim_place(k, r, s, r->places[i], claims);
        claims->silences[claims->n++] = (struct silence) { (int64_t) r->there_at, (int64_t) r->since };
        claims->with_switch = claims->with_switch || r->name.number == 0;
}

/* A silent place whose device was never identified gets a record of its own. If the device is a switch, the record stands for all
 * hosts behind it. If a known switch was seen within KNOWLEDGE_UNSEEN, the hosts behind it are known: none comes up while the
 * switch hangs, because the SM reaches them only through it. A host that came up between the last sweep that saw the switch and its
 * hang is missed; the alternative is to hold back everything. */
static void find_unknown_places(struct knowledge *k, const struct subnet *s, const struct claims *claims, usec_t now, uint64_t wall)
{
        for (uint32_t n = 0; n < s->n_nodes; n++)
                for (unsigned number = 1; number <= UINT8_MAX; number++)
                        if (subnet_port_is_silent(&s->nodes[n], (uint8_t) number) &&
                            !(claims->ports[n][number / 64] >> number % 64 & 1)) {
                                uint32_t place = ensure_reserved(k, place_of(&s->nodes[n], number));

                                set_presence(&k->records[place], KNOWLEDGE_SILENT, now, wall);
                        }
}

/* An unknown device is silent: it may be a switch with any port behind it. */
static bool is_unknown_silent(const struct subnet *s, const struct claims *claims)
{
        for (uint32_t n = 0; n < s->n_nodes; n++)
                for (unsigned i = 0; i < ELEMENTS(s->nodes[n].silent_ports); i++)
                        if (s->nodes[n].silent_ports[i] & ~claims->ports[n][i])
                                return true;
        return false;
}

/* True if this switch is not in the snapshot and is silent, or, where an unknown device is silent (any), simply not in it. A port
 * that disappeared while the switch still answered is not behind it; one that was absent when the switch was may be. */
static bool is_switch_silent(const struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, struct guid node,
                             bool any)
{
        uint32_t record = knowledge_find(k, (struct knowledge_name) { node, 0, KNOWLEDGE_ENDPORT });

        if (subnet_find_node(s, node) != SUBNET_NONE)
                return false;
        return any || (record != KNOWLEDGE_NONE && k->records[record].presence == KNOWLEDGE_SILENT &&
                       (r->was != KNOWLEDGE_ABSENT || k->records[record].was == KNOWLEDGE_ABSENT));
}

static bool is_behind(const struct knowledge *k, const struct knowledge_record *r, const struct subnet *s, bool any)
{
        if (r->name.kind == KNOWLEDGE_PLACE)
                return is_switch_silent(k, r, s, r->name.node, any);
        for (size_t i = 0; i < r->n_places; i++)
                if (is_switch_silent(k, r, s, r->places[i].node, any))
                        return true;
        return any && r->n_places == 0;
}

/* A port behind a silent switch is silent, and so is each port behind that. A place whose device was identified has another record
 * for it. Returns how many ports became silent. */
static size_t find_behind(struct knowledge *k, const struct subnet *s, bool any, usec_t now, uint64_t wall)
{
        size_t n = 0;

        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                if (r->name.kind == KNOWLEDGE_LEAF || r->presence != KNOWLEDGE_ABSENT || r->found || !is_behind(k, r, s, any))
                        continue;
                set_presence(r, KNOWLEDGE_SILENT, now, wall);
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

static void judge_moved(struct knowledge_record *r, const struct claims *claims, usec_t absent_hold)
{
        r->may_be_silent = false;
        if (r->name.kind != KNOWLEDGE_ENDPORT || r->presence != KNOWLEDGE_ABSENT)
                return;
        for (size_t i = 0; !r->may_be_silent && i < claims->n; i++)
                r->may_be_silent = may_be_moved(r, &claims->silences[i], absent_hold);
}

static void find_all_silent(struct knowledge *k, const struct subnet *s, struct claims *claims, usec_t now, uint64_t wall,
                            usec_t absent_hold)
{
        bool any;

        for (size_t i = 0; i < k->n; i++)
                find_silent(k, &k->records[i], s, claims, now, wall);
        any = is_unknown_silent(s, claims);
        while ((any || claims->with_switch) && find_behind(k, s, any, now, wall) > 0)
                continue;
        for (size_t i = 0; i < k->n; i++)
                judge_moved(&k->records[i], claims, absent_hold);
        find_unknown_places(k, s, claims, now, wall);
}

/* --- which fabric ---------------------------------------------------------------------------------------------------------- */

bool knowledge_is_of_another(const struct knowledge *k, const struct subnet *s)
{
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (s->ports[i].role == PORT_ENDPORT && knowledge_find_port(k, s, i) != KNOWLEDGE_NONE)
                        return false;
        return k->n > 0;
}

/* --- who is absent ------------------------------------------------------------------------------------------------------- */

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
        uint64_t answered = record == KNOWLEDGE_NONE ? 0 : k->records[record].was_there_at; /* 0: never */

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

static void expire(struct knowledge_record *r, usec_t now, usec_t absent_hold)
{
        r->expired = r->found ||
                     (!r->may_be_silent && absent_hold != USEC_INFINITY && now - MIN(now, r->seen) >= absent_hold);
}

/* `seen` is stored when a port disappears. A port that disappeared while pkeyd did not run counts as seen until now. */
static void judge_absent(const struct knowledge *k, struct knowledge_record *r, const struct subnet *s, usec_t now,
                         usec_t absent_hold)
{
        if (r->presence != KNOWLEDGE_ABSENT)
                return;
        if (r->may_be_silent || (r->is_restored && r->was != KNOWLEDGE_ABSENT))
                r->seen = now;
        r->is_restored = false;
        r->found = r->name.kind == KNOWLEDGE_PLACE && (r->found || is_discovered(k, s, r));
        expire(r, now, absent_hold);
}

void knowledge_doubt_absence(struct knowledge *k)
{
        k->counts.valid = false;
        for (size_t i = 0; i < k->n; i++)
                k->records[i].may_be_back = k->records[i].presence == KNOWLEDGE_ABSENT;
}

void knowledge_hold_absent(struct knowledge *k, usec_t now, usec_t absent_hold)
{
        k->counts.valid = false;
        k->absent_hold = absent_hold;
        for (size_t i = 0; i < k->n; i++)
                if (k->records[i].presence == KNOWLEDGE_ABSENT)
                        expire(&k->records[i], now, absent_hold);
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

/* Reserves all that a discovery may need before anything is changed: a discovery taken by half would lose ports. */
static int make_room(struct knowledge *k, const struct subnet *s, struct claims *ret)
{
        size_t n = count_new(k, s);

        if (VECTOR_EXTEND(NULL, k->records, k->n, k->allocated, n) < 0 || hash_index_reserve(&k->index, (uint32_t) (k->n + n)) < 0)
                return -ENOMEM;
        ret->ports = calloc(MAX(s->n_nodes, 1u), sizeof(*ret->ports));
        ret->silences = calloc(MAX(k->n + n, (size_t) 1), sizeof(*ret->silences));
        ret->places = calloc(MAX(s->n_ports, 1u), sizeof(*ret->places));
        ret->n_places = ret->places ? s->n_ports : 0;
        for (uint32_t i = 0; i < ret->n_places; i++)
                if (s->ports[i].role == PORT_ENDPORT && find_places(k, s, &s->ports[i], &ret->places[i]) < 0)
                        return -ENOMEM;
        return ret->ports && ret->silences && ret->places ? 0 : -ENOMEM;
}

int knowledge_see_subnet(struct knowledge *k, const struct subnet *s, usec_t now, uint64_t wall, usec_t absent_hold)
{
        _cleanup_(claims_done) struct claims claims = {};

        if (make_room(k, s, &claims) < 0)
                return -ENOMEM;
        k->counts.valid = false;
        k->now = now;
        k->wall = wall;
        k->is_stored = false;
        k->absent_hold = absent_hold;
        for (size_t i = 0; i < k->n; i++) {
                follow_clock(&k->records[i], now, wall);
                make_absent(&k->records[i]);
        }
        for (uint32_t i = 0; i < s->n_ports; i++)
                see_port(k, s, &s->ports[i], now, wall);
        for (uint32_t i = 0; i < s->n_ports; i++)
                link_port(k, s, &s->ports[i], &claims.places[i]);
        find_all_silent(k, s, &claims, now, wall, absent_hold);
        for (size_t i = 0; i < k->n; i++)
                judge_absent(k, &k->records[i], s, now, absent_hold);
        return 0;
}

/* --- tables --------------------------------------------------------------------------------------------------------------- */

static bool is_as_known(const struct knowledge_record *r, const struct observed_table *t)
{
        return r->entries && !r->is_unfollowed && r->n_writes == 0 && !r->vouched &&
               memcmp(r->entries, t->entries, t->capacity * sizeof(*r->entries)) == 0;
}

static int see_table(struct knowledge_record *r, const struct observed_table *t, uint64_t wall)
{
        set_capacity(r, t->capacity);
        r->fresh = true;
        r->read_at = wall;
        if (is_as_known(r, t))
                return 0;
        if (!r->entries)
                r->entries = calloc(MAX(t->capacity, 1u), sizeof(*r->entries));
        if (!r->entries)
                return -ENOMEM;
        memcpy(r->entries, t->entries, t->capacity * sizeof(*r->entries));
        r->n_writes = 0;
        r->vouched = r->is_unfollowed = r->is_stored = false;
        return 0;
}

int knowledge_see_tables(struct knowledge *k, const struct observed *seen, uint64_t wall)
{
        int r = 0;

        k->counts.valid = false;
        for (uint32_t i = 0; r == 0 && i < seen->subnet->n_ports; i++) {
                const struct observed_table *t = &seen->tables[i];
                uint32_t record = t->source == TABLE_READ ? knowledge_find_port(k, seen->subnet, i) : KNOWLEDGE_NONE;

                if (record != KNOWLEDGE_NONE)
                        r = see_table(&k->records[record], t, wall);
        }
        return r;
}

/* Returns false if there is nothing to recall. */
static bool recall(const struct knowledge_record *r, struct observed_table *t)
{
        if (!r->entries || r->capacity != t->capacity)
                return false;
        memcpy(t->entries, r->entries, t->capacity * sizeof(*t->entries));
        t->source = TABLE_ASSUMED;
        return true;
}

void knowledge_recall(const struct knowledge *k, struct observed *to)
{
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                uint32_t record = t->entries && t->source != TABLE_READ ? knowledge_find_port(k, to->subnet, i) : KNOWLEDGE_NONE;

                if (record != KNOWLEDGE_NONE)
                        (void) recall(&k->records[record], t);
        }
}

void knowledge_recall_certain(const struct knowledge *k, struct observed *to)
{
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                uint32_t record = t->entries ? knowledge_find_port(k, to->subnet, i) : KNOWLEDGE_NONE;
                const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : &k->records[record];

                if (r && r->fresh && !r->vouched && r->n_writes == 0 && recall(r, t))
                        t->source = TABLE_READ;
        }
}

/* An entry that is known to be in use stays; a free one takes its value from the first write that may have used it. */
static void add_used(const struct knowledge_record *r, const struct knowledge_write *w, struct p_key *entries)
{
        size_t first = (size_t) w->block * P_KEY_BLOCK_ENTRIES;

        for (size_t i = 0; w->is_sent && !w->is_foreign && i < P_KEY_BLOCK_ENTRIES && first + i < r->capacity; i++)
                if (!p_key_is_used(entries[first + i]))
                        entries[first + i] = w->entries[i];
}

void knowledge_recall_used(const struct knowledge *k, struct observed *to)
{
        knowledge_recall(k, to);
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                uint32_t record = t->source == TABLE_ASSUMED ? knowledge_find_port(k, to->subnet, i) : KNOWLEDGE_NONE;

                for (size_t w = 0; record != KNOWLEDGE_NONE && w < k->records[record].n_writes; w++)
                        add_used(&k->records[record], &k->records[record].writes[w], t->entries);
        }
}

bool knowledge_has_open_writes(const struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++)
                if (k->records[i].n_writes > 0)
                        return true;
        return false;
}

static bool is_certain(const struct knowledge_record *r)
{
        if (r->expired || r->vouched)
                return true;
        return r->fresh && r->n_writes == 0 && (r->name.kind != KNOWLEDGE_LEAF || !r->filters_unsure);
}

bool knowledge_is_certain(const struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++)
                if (!is_certain(&k->records[i]))
                        return false;
        return true;
}

/* --- blocks --------------------------------------------------------------------------------------------------------------- */

/* The bases at which a change of one block can change the bounds of its port. */
struct touched {
        uint16_t bases[MAX_BASES];
        size_t n;
        bool all;  /* too many bases, or the port may hold anything, or a person vouched for it */
};

static void touch(struct touched *t, struct p_key key)
{
        if (!p_key_is_used(key))
                return;
        if (t->n == MAX_BASES)
                t->all = true;
        else
                t->bases[t->n++] = p_key_base(key);
}

static void touch_block(struct touched *t, const struct p_key x[P_KEY_BLOCK_ENTRIES], const struct p_key y[P_KEY_BLOCK_ENTRIES])
{
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                if (x[i].v != y[i].v) {
                        touch(t, x[i]);
                        touch(t, y[i]);
                }
}

static void get_block(const struct knowledge_record *r, uint16_t block, struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        size_t first = (size_t) block * P_KEY_BLOCK_ENTRIES;

        for (size_t i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                ret[i] = first + i < r->capacity ? r->entries[first + i] : (struct p_key) {};
}

/* Entries behind the end of the table are ignored. */
static bool blocks_equal(const struct knowledge_record *r, uint16_t block, const struct p_key *x, const struct p_key *y)
{
        for (size_t i = 0, first = (size_t) block * P_KEY_BLOCK_ENTRIES; i < P_KEY_BLOCK_ENTRIES && first + i < r->capacity; i++)
                if (x[i].v != y[i].v)
                        return false;
        return true;
}

bool knowledge_block_is(const struct knowledge *k, uint32_t record, uint16_t block,
                        const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        const struct knowledge_record *r = &k->records[record];

        return blocks_equal(r, block, r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, entries);
}

/* What is known of a block, and what is to be known of it. */
static void find_touched(const struct knowledge *k, uint32_t record, uint16_t block,
                         const struct p_key entries[P_KEY_BLOCK_ENTRIES], struct touched *ret)
{
        const struct knowledge_record *r = &k->records[record];
        struct p_key known[P_KEY_BLOCK_ENTRIES];

        *ret = (struct touched) {
                .all = r->vouched || knowledge_counts_is_wild(k, record, SENDS) || knowledge_counts_is_wild(k, record, RECEIVES),
        };
        get_block(r, block, known);
        touch_block(ret, known, entries);
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].block == block && r->writes[i].is_sent)
                        touch_block(ret, known, r->writes[i].entries);
}

static void change_all(struct knowledge *k, uint32_t record, int sign)
{
        if (k->counts.valid)
                knowledge_counts_change_all(k, record, sign);
}

static void recount(struct knowledge *k, uint32_t record, const struct touched *t, int sign)
{
        if (t->all)
                change_all(k, record, sign);
        else if (k->counts.valid)
                knowledge_counts_change(k, record, t->bases, t->n, sign);
}

/* Removes the writes that are neither sent nor announced any more. */
static void drop_ended_writes(struct knowledge_record *r)
{
        size_t kept = 0;

        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent || r->writes[i].is_announced)
                        r->writes[kept++] = r->writes[i];
        r->is_stored = r->is_stored && kept == r->n_writes;
        r->n_writes = kept;
}

static void take_block(struct knowledge_record *r, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        size_t first = (size_t) block * P_KEY_BLOCK_ENTRIES;

        for (size_t i = 0; i < P_KEY_BLOCK_ENTRIES && first + i < r->capacity; i++)
                r->entries[first + i] = entries[i];
        for (size_t i = 0; i < r->n_writes; i++)
                r->writes[i].is_sent = r->writes[i].is_sent && r->writes[i].block != block;
        drop_ended_writes(r);
        r->vouched = false;
        r->is_stored = false;
}

static bool is_possible(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                        bool if_suspected)
{
        const struct knowledge_record *r = &k->records[record];

        if (knowledge_block_is(k, record, block, entries))
                return true;
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent && (if_suspected || !r->writes[i].is_suspected) && r->writes[i].block == block &&
                    blocks_equal(r, block, r->writes[i].entries, entries))
                        return true;
        return false;
}

bool knowledge_block_may_be(const struct knowledge *k, uint32_t record, uint16_t block,
                            const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return is_possible(k, record, block, entries, false);
}

/* If another program wrote a switch port, or it was reset, its filter bits may have changed as well. */
void knowledge_see_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_record *r = &k->records[record];
        struct touched touched;

        assert(r->entries);
        if (r->name.kind == KNOWLEDGE_LEAF && !is_possible(k, record, block, entries, true))
                knowledge_send_filter(k, record);
        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        take_block(r, block, entries);
        recount(k, record, &touched, 1);
}

int knowledge_announce_block(struct knowledge *k, uint32_t record, uint16_t block,
                             const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write write = knowledge_make_write(block, entries);
        struct knowledge_record *r = &k->records[record];

        assert(r->entries);
        if (VECTOR_RESERVE(NULL, r->writes, r->n_writes, r->n_allocated, r->n_writes + 1) < 0) /* rarely more than one */
                return -ENOMEM;
        write.is_announced = true;
        r->writes[r->n_writes++] = write;
        r->is_stored = false;
        return 0;
}

void knowledge_withdraw(struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                for (size_t w = 0; w < r->n_writes; w++)
                        r->writes[w].is_announced = false;
                drop_ended_writes(r);
        }
}

static bool is_write_of(const struct knowledge_write *w, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return w->block == block && memcmp(w->entries, entries, sizeof(w->entries)) == 0;
}

static struct knowledge_write *find_announced(struct knowledge_record *r, uint16_t block,
                                              const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_announced && r->writes[i].is_stored && is_write_of(&r->writes[i], block, entries))
                        return &r->writes[i];
        return NULL;
}

bool knowledge_send_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write *w = find_announced(&k->records[record], block, entries);
        struct touched touched;

        if (!w)
                return false;
        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        w->is_sent = true;
        recount(k, record, &touched, 1);
        return true;
}

/* --- blocks that another writes --------------------------------------------------------------------------------------------- */

static int add_foreign(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                       bool is_suspected)
{
        struct knowledge_write write = knowledge_make_write(block, entries);
        struct knowledge_record *r = &k->records[record];
        struct touched touched;

        assert(r->entries);
        if (VECTOR_RESERVE(NULL, r->writes, r->n_writes, r->n_allocated, r->n_writes + 1) < 0) /* rarely more than one */
                return -ENOMEM;
        write.is_sent = write.is_foreign = true;
        write.is_expected = !is_suspected;
        write.is_suspected = is_suspected;
        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        r->writes[r->n_writes++] = write;
        recount(k, record, &touched, 1);
        r->is_stored = false;
        return 0;
}

int knowledge_expect_block(struct knowledge *k, uint32_t record, uint16_t block,
                           const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return add_foreign(k, record, block, entries, false);
}

int knowledge_suspect_block(struct knowledge *k, uint32_t record, uint16_t block,
                            const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return add_foreign(k, record, block, entries, true);
}

static bool is_trusted(enum knowledge_trust trust, bool news)
{
        return trust == KNOWLEDGE_NAMED || (trust == KNOWLEDGE_EXPECTED && !news);
}

bool knowledge_hear_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                          enum knowledge_trust trust)
{
        bool news = !knowledge_block_may_be(k, record, block, entries);

        if (is_trusted(trust, news))
                knowledge_see_block(k, record, block, entries);
        else if (news && knowledge_suspect_block(k, record, block, entries) < 0)
                knowledge_doubt(k, record);
        return !news;
}

/* The indexes are guesses. If no index is free, existing entries are replaced in turn. */
static void add_wanted(struct p_key *table, uint16_t capacity, const struct desired_port *policy)
{
        uint32_t next = 0;

        for (uint32_t i = 0; i < policy->n_wanted; i++) {
                uint32_t at = 0;

                if (p_keys_hold(table, capacity, policy->wanted[i]))
                        continue;
                while (at < capacity && p_key_is_used(table[at]))
                        at++;
                table[at < capacity ? at : next++ % capacity] = policy->wanted[i];
        }
}

static int suspect_table(struct knowledge *k, uint32_t record, const struct desired_port *policy)
{
        const struct knowledge_record *r = &k->records[record];
        size_t n_blocks = (r->capacity + P_KEY_BLOCK_ENTRIES - 1u) / P_KEY_BLOCK_ENTRIES;
        _cleanup_free_ struct p_key *table = calloc(n_blocks * P_KEY_BLOCK_ENTRIES, sizeof(*table));
        int e = table ? 0 : -ENOMEM;

        if (table) {
                memcpy(table, r->entries, r->capacity * sizeof(*table));
                add_wanted(table, r->capacity, policy);
        }
        for (size_t block = 0; e == 0 && block < n_blocks; block++) {
                const struct p_key *entries = table + block * P_KEY_BLOCK_ENTRIES;

                if (!is_possible(k, record, (uint16_t) block, entries, true))
                        e = knowledge_suspect_block(k, record, (uint16_t) block, entries);
        }
        return e;
}

/* A switch port gets what the policy gives its peer. */
int knowledge_suspect_policy(struct knowledge *k)
{
        int e = 0;

        for (uint32_t i = 0; e == 0 && i < k->n; i++) {
                uint32_t port = knowledge_port_of(k, i);
                const struct knowledge_record *r = &k->records[i];

                if (port != KNOWLEDGE_NONE && k->records[port].policy && r->entries && r->capacity > 0)
                        e = suspect_table(k, i, k->records[port].policy);
        }
        return e;
}

static size_t find_last_sent(const struct knowledge_record *r, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        size_t i = r->n_writes;

        while (i > 0 && !(r->writes[i - 1].is_sent && is_write_of(&r->writes[i - 1], block, entries)))
                i--;
        assert(i > 0);
        return i - 1;
}

void knowledge_retract_block(struct knowledge *k, uint32_t record, uint16_t block,
                             const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_record *r = &k->records[record];
        struct touched touched;
        size_t i = find_last_sent(r, block, entries);

        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        memmove(&r->writes[i], &r->writes[i + 1], (--r->n_writes - i) * sizeof(*r->writes));
        recount(k, record, &touched, 1);
        r->is_stored = false;
}

void knowledge_settle_expected(struct knowledge *k, bool asked)
{
        for (uint32_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                change_all(k, i, -1);
                for (size_t w = 0; w < r->n_writes; w++) {
                        r->writes[w].is_sent = r->writes[w].is_sent && (asked || !r->writes[w].is_expected);
                        r->writes[w].is_expected = false;
                }
                drop_ended_writes(r);
                change_all(k, i, 1);
        }
}

/* --- the whole of a port --------------------------------------------------------------------------------------------------- */

void knowledge_stop_following(struct knowledge *k)
{
        k->counts.valid = false;
        for (size_t i = 0; i < k->n; i++)
                k->records[i].is_unfollowed = k->records[i].entries != NULL;
}

void knowledge_doubt(struct knowledge *k, uint32_t record)
{
        change_all(k, record, -1);
        k->records[record].fresh = false;
        change_all(k, record, 1);
}

void knowledge_see_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound)
{
        change_all(k, record, -1);
        k->records[record].filters[SENDS] = inbound;
        k->records[record].filters[RECEIVES] = outbound;
        k->records[record].filters_unsure = false;
        change_all(k, record, 1);
}

/* True if the bits are as they were last read, or not certain. */
static bool filter_may_be(const struct knowledge_record *r, bool inbound, bool outbound)
{
        return r->filters_unsure || (r->filters[SENDS] == inbound && r->filters[RECEIVES] == outbound);
}

void knowledge_send_filter(struct knowledge *k, uint32_t record)
{
        change_all(k, record, -1);
        k->records[record].filters_unsure = true;
        change_all(k, record, 1);
}

bool knowledge_hear_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound, enum knowledge_trust trust)
{
        bool news = !filter_may_be(&k->records[record], inbound, outbound);

        if (is_trusted(trust, news))
                knowledge_see_filter(k, record, inbound, outbound);
        else if (news)
                knowledge_send_filter(k, record);
        return !news;
}

int knowledge_vouch(struct knowledge *k, uint32_t record, const char *who, uint64_t wall)
{
        struct knowledge_record *r = &k->records[record];
        char *name = strdup(who);

        if (!name)
                return -ENOMEM;
        change_all(k, record, -1);
        r->vouched = true;
        free(r->vouched_by);
        r->vouched_by = name;
        r->vouched_at = wall;
        r->is_stored = false;
        change_all(k, record, 1);
        return 0;
}

/* --- the policy ------------------------------------------------------------------------------------------------------------ */

void knowledge_drop_policy(struct knowledge *k)
{
        k->counts.valid = false;
        for (size_t i = 0; i < k->n; i++)
                k->records[i].policy = NULL;
}

int knowledge_set_policy(struct knowledge *k, const struct desired *desired)
{
        const struct subnet *s = desired ? desired->subnet : NULL;

        knowledge_drop_policy(k);
        for (uint32_t i = 0; s && i < s->n_ports; i++) {
                uint32_t record = knowledge_find_port(k, s, i);

                if (record != KNOWLEDGE_NONE && !subnet_port_is_incomplete(s, &s->ports[i]))
                        k->records[record].policy = &desired->ports[i];
        }
        return knowledge_counts_rebuild(k);
}
