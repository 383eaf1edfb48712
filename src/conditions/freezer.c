/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "conditions/freezer.h"

#include <errno.h>
#include <stdlib.h>

#include "events/event_text.h"

#define MAX_GIVEN 200000 /* absent ports are remembered up to this number of ports */

/* The entries that an endport got from the last policy in force under which it was not frozen. */
struct given {
        struct guid node_guid;
        uint8_t number;
        struct desired_port keys;
};

/* The result of one sweep; the next sweep makes another. */
struct freezer {
        struct arena *arena;   /* of what follows; NULL: before the first sweep */
        struct given *given;   /* ascending (node GUID, number) */
        uint32_t n_given;
        struct frozen_port *ports;
        uint32_t n_ports;
};

struct freezer *freezer_new(void)
{
        return calloc(1, sizeof(struct freezer));
}

struct freezer *freezer_free(struct freezer *f)
{
        if (f)
                arena_free(f->arena);
        free(f);
        return NULL;
}

const struct frozen_port *freezer_ports(const struct freezer *f, uint32_t *ret_n)
{
        *ret_n = f->n_ports;
        return f->ports;
}

static int compare(struct guid node_a, uint8_t number_a, struct guid node_b, uint8_t number_b)
{
        return ORDER(node_a.v, node_b.v) ?: ORDER(number_a, number_b);
}

static struct guid node_guid_of(const struct subnet *s, uint32_t port)
{
        return s->nodes[s->ports[port].node].guid;
}

/* NULL: not known. */
static const struct given *find_given(const struct freezer *f, struct guid node, uint8_t number)
{
        return FIND_SORTED(g, f->given, f->n_given, compare(g->node_guid, g->number, node, number));
}

/* --- ranges ----------------------------------------------------------------------------------------------------------- */

/* The entry with the highest level of the base at *at. Moves *at past that base. */
static struct p_key take_highest(const struct desired_port *p, uint32_t *at)
{
        struct p_key key = p->wanted[(*at)++];

        while (*at < p->n_wanted && p_key_same_partition(p->wanted[*at], key))
                key = p->wanted[(*at)++];
        return key;
}

/* One base of two sets. */
struct two_keys {
        struct p_key x, y; /* 0: the set has no entry of the base */
};

/* The next base of the union of both sets. *i and *k: positions in them. False: there is none. */
static bool take_next(const struct desired_port *x, uint32_t *i, const struct desired_port *y, uint32_t *k, struct two_keys *ret)
{
        uint32_t base_x = *i < x->n_wanted ? p_key_base(x->wanted[*i]) : UINT32_MAX;
        uint32_t base_y = *k < y->n_wanted ? p_key_base(y->wanted[*k]) : UINT32_MAX;

        if (base_x == UINT32_MAX && base_y == UINT32_MAX)
                return false;
        *ret = (struct two_keys) {};
        if (base_x <= base_y)
                ret->x = take_highest(x, i);
        if (base_y <= base_x)
                ret->y = take_highest(y, k);
        return true;
}

/* Gives each base the lower level of both sets, or the higher one. */
static int combine(struct arena *a, const struct desired_port *x, const struct desired_port *y, bool higher,
                   struct desired_port *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, (size_t) x->n_wanted + y->n_wanted);
        uint32_t i = 0, k = 0, n = 0;
        struct two_keys two;

        if (!keys)
                return -ENOMEM;
        while (take_next(x, &i, y, &k, &two)) {
                bool both = p_key_is_used(two.x) && p_key_is_used(two.y);

                if (both)
                        keys[n++] = p_key_is_full(two.x) == higher ? two.x : two.y;
                else if (higher)
                        keys[n++] = p_key_is_used(two.x) ? two.x : two.y;
        }
        *ret = (struct desired_port) { keys, n };
        return 0;
}

/* The index in `all` of a port of `s`. */
static uint32_t find_in(const struct subnet *all, const struct subnet *s, uint32_t port)
{
        return all == s ? port : subnet_find_port_of(all, node_guid_of(s, port), s->ports[port].number);
}

/* The range of a port. At least the lower level of what it had before and of what the lines give it, or what is certain, if that is
 * more; at most the higher level of both. certain: never counts as more than the lines give, which may select the port by an
 * earlier name. ret may be `lines`. */
static int limit_port(const struct freezer *f, struct arena *a, struct guid node, uint8_t number, const struct desired_port *lines,
                      const struct desired_port *certain, struct desired_port *ret)
{
        struct desired_port *most = arena_new_object(a, struct desired_port), capped, lower, least;
        const struct given *before = find_given(f, node, number);
        int r = most ? combine(a, certain, lines, false, &capped) : -ENOMEM;

        if (r == 0 && !before) {
                *most = *lines;
                *ret = (struct desired_port) { capped.wanted, capped.n_wanted, most, .most_is_held = true };
                return 0;
        }
        r = r ?: combine(a, &before->keys, lines, true, most);
        r = r ?: combine(a, &before->keys, lines, false, &lower);
        r = r ?: combine(a, &lower, &capped, true, &least);
        if (r == 0)
                *ret = (struct desired_port) { least.wanted, least.n_wanted, most };
        return r;
}

/* True if it is uncertain what the policy gives the port; false if its table has no room for that. */
static bool is_ambiguous(enum freeze why)
{
        return why == FREEZE_NAME || why == FREEZE_SWITCH_NAME || why == FREEZE_LINES;
}

/* `to` has what the lines give each port, also of an incomplete adapter, which counts as what it was before. */
static int limit_frozen(const struct freezer *f, struct arena *a, const struct reconciled *decision, struct desired *to)
{
        const struct subnet *s = decision->desired->subnet;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < s->n_ports; i++) {
                uint32_t at;

                if (decision->plan->frozen[i] == FREEZE_NONE || s->ports[i].role != PORT_ENDPORT)
                        continue;
                at = find_in(to->subnet, s, i);
                if (at == SUBNET_NONE)
                        continue;
                r = limit_port(f, a, node_guid_of(s, i), s->ports[i].number, &to->ports[at], &decision->certain[i], &to->ports[at]);
                if (!is_ambiguous(decision->plan->frozen[i]))
                        to->ports[at].most = NULL;
        }
        return r;
}

/* An adapter that is gone may have been replaced by the one that has its name now. A missing port of an adapter that is in the
 * fabric is as contested as the adapter. */
static bool is_contested(const struct subnet *s, const struct desired *all, uint32_t port)
{
        uint32_t node = subnet_find_node(s, node_guid_of(all->subnet, port));
        bool lost = node != SUBNET_NONE && subnet_find_port(s, node, all->subnet->ports[port].number) == SUBNET_NONE;

        if (all->frozen[port] == FREEZE_NAME)
                return lost;
        return is_ambiguous(all->frozen[port]) && (node == SUBNET_NONE || lost);
}

static int limit_absent(const struct freezer *f, struct arena *a, const struct subnet *s, const struct memberships *m,
                        struct desired *all)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < all->subnet->n_ports; i++) {
                struct desired_port certain;

                if (!is_contested(s, all, i))
                        continue;
                r = desired_certain(a, m, i, &certain);
                if (r == 0)
                        r = limit_port(f, a, node_guid_of(all->subnet, i), all->subnet->ports[i].number, &all->ports[i], &certain,
                                       &all->ports[i]);
        }
        return r;
}

int freezer_limit(const struct freezer *f, struct arena *a, const struct reconciled *decision, const struct memberships *m,
                  struct desired *all, const struct desired **ret)
{
        struct desired *to = all;
        int r = all ? limit_absent(f, a, decision->desired->subnet, m, all) : 0;

        *ret = all ?: decision->given;
        if (r < 0 || !plan_has_frozen_ports(decision->plan))
                return r;
        if (!to) {
                to = arena_copy(a, decision->given, 1);
                if (!to)
                        return -ENOMEM;
                to->ports = arena_copy(a, to->ports, to->subnet->n_ports);
                if (!to->ports)
                        return -ENOMEM;
        }
        *ret = to;
        return limit_frozen(f, a, decision, to);
}

/* --- given entries ----------------------------------------------------------------------------------------------------- */

static int copy_given(struct freezer *to, struct guid node, uint8_t number, const struct desired_port *keys)
{
        struct p_key *copy = arena_copy(to->arena, keys->wanted, keys->n_wanted);

        if (!copy)
                return -ENOMEM;
        to->given[to->n_given++] = (struct given) { node, number, { copy, keys->n_wanted } };
        return 0;
}

/* Keeps absent ports up to this one: a port that one discovery misses may be frozen in the next. */
static int keep_absent(const struct freezer *old, uint32_t *at, struct guid node, uint8_t number, struct freezer *to)
{
        int r = 0;

        for (; r == 0 && *at < old->n_given; (*at)++) {
                const struct given *g = &old->given[*at];

                if (compare(g->node_guid, g->number, node, number) >= 0)
                        break;
                if (to->n_given < MAX_GIVEN)
                        r = copy_given(to, g->node_guid, g->number, &g->keys);
        }
        return r;
}

static int remember_given(const struct freezer *old, const struct reconciled *decision, struct freezer *to)
{
        const struct guid last = { UINT64_MAX };
        const struct subnet *s = decision->desired->subnet;
        uint32_t at = 0;
        int r = 0;

        to->given = arena_new_array(to->arena, struct given, (size_t) s->n_ports + old->n_given);
        if (!to->given)
                return -ENOMEM;
        for (uint32_t i = 0; r == 0 && i < s->n_ports; i++) {
                struct guid node = node_guid_of(s, i);
                uint8_t number = s->ports[i].number;
                const struct given *before;

                if (s->ports[i].role != PORT_ENDPORT)
                        continue;
                r = keep_absent(old, &at, node, number, to);
                before = at < old->n_given && compare(old->given[at].node_guid, old->given[at].number, node, number) == 0 ?
                         &old->given[at++] : NULL;
                if (r == 0 && decision->plan->frozen[i] == FREEZE_NONE && !subnet_port_is_incomplete(s, &s->ports[i]))
                        r = copy_given(to, node, number, &decision->given->ports[i]);
                else if (r == 0 && before)
                        r = copy_given(to, node, number, &before->keys);
        }
        return r < 0 ? r : keep_absent(old, &at, last, UINT8_MAX, to);
}

/* --- frozen ports ------------------------------------------------------------------------------------------------------- */

const struct frozen_port *freezer_find(const struct freezer *f, struct guid node, uint8_t number)
{
        return FIND_SORTED(p, f->ports, f->n_ports, compare(p->node_guid, p->number, node, number));
}

static int list_frozen(const struct freezer *old, const struct reconciled *decision, uint64_t wall, struct freezer *to)
{
        const struct subnet *s = decision->desired->subnet;

        to->ports = arena_new_array(to->arena, struct frozen_port, s->n_ports);
        if (!to->ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct frozen_port *port = &to->ports[to->n_ports];
                const struct frozen_port *before;

                if (decision->plan->frozen[i] == FREEZE_NONE || s->ports[i].role != PORT_ENDPORT)
                        continue;
                *port = (struct frozen_port) {
                        .node_guid = node_guid_of(s, i), .port_guid = s->ports[i].guid, .number = s->ports[i].number,
                        .lid = s->ports[i].lid, .why = decision->plan->frozen[i], .since = wall,
                        .label = subnet_port_label(to->arena, s, i), .text = reconcile_frozen_text(to->arena, decision, i),
                };
                if (!port->label || !port->text)
                        return -ENOMEM;
                before = freezer_find(old, port->node_guid, port->number);
                if (before)
                        port->since = before->since;
                to->n_ports++;
        }
        return 0;
}

/* --- the log ------------------------------------------------------------------------------------------------------------ */

static void log_port(struct log *log, uint64_t generation, const struct frozen_port *p, bool is_frozen)
{
        const struct log_about about = {
                .generation = generation, .node = p->label, .port_guid = p->port_guid, .lid = p->lid, .port = p->number,
        };

        if (is_frozen)
                log_add(log, LOG_EVENT_PORT_FROZEN, &about, "%s; %s", p->text, freeze_way_out(p->why));
        else
                log_add(log, LOG_EVENT_PORT_UNFROZEN, &about,
                        "%s (0x%016" PRIx64 ") is no longer frozen", p->label, p->port_guid.v);
}

/* Logs ports of `now` that are not in `before`, or, if is_frozen, are there for another reason. */
static void log_changes(struct log *log, uint64_t generation, const struct freezer *now, const struct freezer *before,
                        bool is_frozen)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < now->n_ports; i++) {
                const struct frozen_port *other = freezer_find(before, now->ports[i].node_guid, now->ports[i].number);

                if ((!other || (is_frozen && other->why != now->ports[i].why)) && n++ < EVENT_TEXT_MAX)
                        log_port(log, generation, &now->ports[i], is_frozen);
        }
        if (n > EVENT_TEXT_MAX)
                log_add(log, is_frozen ? LOG_EVENT_PORT_FROZEN : LOG_EVENT_PORT_UNFROZEN,
                        &(struct log_about) { .generation = generation }, "%u more port%s %s", n - EVENT_TEXT_MAX,
                        n - EVENT_TEXT_MAX == 1 ? " is" : "s are", is_frozen ? "frozen; pkeyctl plan lists all" : "no longer frozen");
}

int freezer_see(struct freezer *f, const struct reconciled *decision, uint64_t generation, uint64_t wall, struct log *log)
{
        struct freezer now = { .arena = arena_new() };
        int r = remember_given(f, decision, &now);

        r = r ?: list_frozen(f, decision, wall, &now);
        if (r < 0) {
                arena_free(now.arena);
                return r;
        }
        log_changes(log, generation, &now, f, true);
        log_changes(log, generation, f, &now, false);
        arena_free(f->arena);
        *f = now;
        return 0;
}
