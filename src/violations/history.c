/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/history.h"

#include <errno.h>

#include "util/vector.h"

#define NO_NAME UINT32_MAX

/* The last known membership of an endport in one partition. `name` is an index into names. */
struct item {
        uint16_t base;
        uint16_t membership;
        uint32_t name;
};

/* An endport that was seen: items[first] ..., n of them, ascending base. */
struct seen_port {
        struct guid guid;
        usec_t since;        /* first seen */
        usec_t seen;         /* last seen */
        uint64_t learning;   /* in which it was last seen */
        uint64_t generation; /* when last seen */
        uint32_t first, n;
};

struct membership_history {
        struct arena *arena;               /* owned; all the rest but the changes lives in it */
        struct seen_port *ports;           /* ascending GUID */
        uint32_t n_ports;
        struct item *items;
        uint32_t n_items;
        const char **names;
        uint32_t n_names;
        struct membership_change *changes; /* owned; ascending (GUID, base) */
        uint32_t n_changes, allocated;
        uint64_t n_learned;                /* how often it was built anew */
        usec_t forgotten;                  /* the newest change that had to make room; 0: none had to */
};

/* One learning: from the old history and new memberships to the new history. */
struct learning {
        const struct membership_history *old;
        struct membership_history *to;
        const struct memberships *given;
        usec_t now;
        uint64_t generation;
        uint32_t *names; /* index in the old history -> in the new one, plus 1; 0: not copied */
        bool *forget;    /* ports of the old history */
};

static void release(struct membership_history *h)
{
        arena_free(h->arena);
        free(h->changes);
}

struct membership_history *membership_history_new(void)
{
        return calloc(1, sizeof(struct membership_history));
}

struct membership_history *membership_history_free(struct membership_history *h)
{
        if (h) {
                release(h);
                free(h);
        }
        return NULL;
}

DEFINE_COMPARE(compare_items, struct item, ORDER(a->base, b->base))

/* --- names ------------------------------------------------------------------------------------------------------ */

/* The index of a name of the old history, which is copied once; NO_NAME: out of memory. */
static uint32_t keep_name(struct learning *l, uint32_t old_name)
{
        struct membership_history *to = l->to;

        if (l->names[old_name] == 0) {
                to->names[to->n_names] = arena_strdup(to->arena, l->old->names[old_name]);
                if (!to->names[to->n_names])
                        return NO_NAME;
                l->names[old_name] = ++to->n_names;
        }
        return l->names[old_name] - 1;
}

/* --- changes ---------------------------------------------------------------------------------------------------- */

DEFINE_COMPARE(compare_changes, struct membership_change, ORDER(a->port_guid.v, b->port_guid.v) ?: ORDER(a->base, b->base))

DEFINE_COMPARE(compare_newest_first, struct membership_change, ORDER(b->when, a->when) ?: compare_changes(a, b))

static int add_change(struct membership_history *to, const struct membership_change *change, uint32_t name)
{
        struct membership_change *added;

        if (name == NO_NAME || VECTOR_ADD(NULL, to->changes, to->n_changes, to->allocated, *change) < 0)
                return -ENOMEM;
        added = &to->changes[to->n_changes - 1];
        added->name = name;
        added->partition = to->names[name];
        return 0;
}

/* Old changes stay, except those of a membership that has changed again. */
static int keep_changes(struct learning *l)
{
        struct membership_history *to = l->to;
        uint32_t n_new = to->n_changes;

        for (uint32_t i = 0; i < l->old->n_changes; i++) {
                const struct membership_change *c = &l->old->changes[i];
                if (FIND_SORTED(new, to->changes, n_new, compare_changes(new, c)))
                        continue;
                if (add_change(to, c, keep_name(l, c->name)) < 0)
                        return -ENOMEM;
        }
        SORT(to->changes, to->n_changes, compare_changes);
        return 0;
}

static int note_change(struct learning *l, const struct seen_port *old_port, const struct item *before, const struct item *after)
{
        bool same = old_port->generation == l->generation;
        uint16_t base = before ? before->base : after->base;
        bool by_lease = same && policy_pool_of_base(l->given->policy, base);
        bool was_away = old_port->learning != l->old->n_learned && !same;
        const struct membership_change change = {
                .port_guid = old_port->guid,
                .base = base,
                .before = before ? (enum membership) before->membership : MEMBERSHIP_NONE,
                .after = after ? (enum membership) after->membership : MEMBERSHIP_NONE,
                .generation = l->generation,
                .by_lease = by_lease,
                .same_policy = same && !by_lease,
                .away_since = was_away ? old_port->seen : 0,
                .when = l->now,
        };

        if (change.before == change.after)
                return 0;
        return add_change(l->to, &change, after ? after->name : keep_name(l, before->name));
}

/* Notes what changed for one endport. */
static int compare_port(struct learning *l, const struct seen_port *before, const struct seen_port *after)
{
        const struct item *b = l->old->items + before->first, *b_end = b + before->n;
        const struct item *a = l->to->items + after->first, *a_end = a + after->n;
        int r = 0;

        while (r >= 0 && (b < b_end || a < a_end)) {
                int order = b == b_end ? 1 : a == a_end ? -1 : compare_items(b, a);

                r = note_change(l, before, order <= 0 ? b : NULL, order >= 0 ? a : NULL);
                b += order <= 0;
                a += order >= 0;
        }
        return r;
}

/* The oldest make room. Of changes of the same time those of the lowest GUIDs stay. */
static void drop_oldest_changes(struct membership_history *m)
{
        if (m->n_changes <= HISTORY_MAX_CHANGES)
                return;
        qsort(m->changes, m->n_changes, sizeof(*m->changes), compare_newest_first);
        m->forgotten = MAX(m->forgotten, m->changes[HISTORY_MAX_CHANGES].when);
        m->n_changes = HISTORY_MAX_CHANGES;
        qsort(m->changes, m->n_changes, sizeof(*m->changes), compare_changes);
}

/* --- endports --------------------------------------------------------------------------------------------------- */

/* The memberships of endport `index` of the subnet, and what changed in them since `before`; NULL: it is new. */
static int learn_port(struct learning *l, uint32_t index, const struct seen_port *before)
{
        const struct memberships *given = l->given;
        struct membership_history *to = l->to;
        struct seen_port *port = &to->ports[to->n_ports++];

        *port = (struct seen_port) {
                .guid = given->subnet->ports[index].guid, .since = before ? before->since : l->now, .seen = l->now,
                .learning = to->n_learned, .generation = l->generation, .first = to->n_items,
                .n = given->first[index + 1] - given->first[index],
        };
        for (uint32_t i = given->first[index]; i < given->first[index + 1]; i++) {
                const struct port_membership *pm = &given->items[i];

                to->items[to->n_items++] = (struct item) {
                        .base = given->policy->partitions[pm->partition].base,
                        .membership = (uint16_t) pm->membership, .name = pm->partition,
                };
        }
        qsort(&to->items[port->first], port->n, sizeof(*to->items), compare_items);
        return before ? compare_port(l, before, port) : 0;
}

/* An endport that is not in the subnet stays as it was. */
static int keep_port(struct learning *l, const struct seen_port *before)
{
        struct membership_history *to = l->to;
        struct seen_port *port = &to->ports[to->n_ports++];

        *port = *before;
        port->first = to->n_items;
        for (uint32_t i = 0; i < before->n; i++) {
                struct item *item = &to->items[to->n_items++];

                *item = l->old->items[before->first + i];
                item->name = keep_name(l, item->name);
                if (item->name == NO_NAME)
                        return -ENOMEM;
        }
        return 0;
}

/* The next endport of the subnet by GUID, from place *i of by_port_guid on; of several with one GUID the first. */
static uint32_t next_endport(const struct subnet *s, uint32_t *i)
{
        for (; *i < s->n_by_port_guid; (*i)++) {
                struct guid guid = s->ports[s->by_port_guid[*i]].guid;

                if (guid.v != 0 && (*i == 0 || s->ports[s->by_port_guid[*i - 1]].guid.v != guid.v))
                        return s->by_port_guid[*i];
        }
        return SUBNET_NONE;
}

static int merge_ports(struct learning *l)
{
        const struct membership_history *old = l->old;
        const struct subnet *s = l->given->subnet;
        uint32_t i = 0, j = 0;
        int r = 0;

        while (r >= 0) {
                const struct seen_port *before = j < old->n_ports ? &old->ports[j] : NULL;
                uint32_t index = next_endport(s, &i);
                int order;

                if (!before && index == SUBNET_NONE)
                        return 0;
                order = !before ? 1 : index == SUBNET_NONE ? -1 : ORDER(before->guid.v, s->ports[index].guid.v);
                if (order >= 0)
                        r = learn_port(l, index, order == 0 ? before : NULL);
                else if (!l->forget[j])
                        r = keep_port(l, before);
                i += order >= 0;
                j += order <= 0;
        }
        return r;
}

/* --- bounds ----------------------------------------------------------------------------------------------------- */

/* An endport that is not in the subnet any more, and its index in the old history. */
struct gone {
        usec_t seen;
        uint32_t port, n_items;
};

DEFINE_COMPARE(compare_gone, struct gone, ORDER(b->seen, a->seen) ?: ORDER(a->port, b->port))

/* Marks as many endports as exceed the limits, those that have been gone longest first. */
static int choose_forgotten(struct learning *l)
{
        const struct membership_history *old = l->old;
        _cleanup_free_ struct gone *gone = malloc(MAX(old->n_ports, 1u) * sizeof(*gone));
        uint32_t n = 0, n_items = 0;

        if (!gone)
                return -ENOMEM;
        for (uint32_t i = 0; i < old->n_ports; i++)
                if (subnet_find_endport(l->given->subnet, old->ports[i].guid) == SUBNET_NONE)
                        gone[n++] = (struct gone) { old->ports[i].seen, i, old->ports[i].n };
        qsort(gone, n, sizeof(*gone), compare_gone);
        for (uint32_t i = 0; i < n; i++) {
                bool fits = i < HISTORY_MAX_GONE && gone[i].n_items <= HISTORY_MAX_GONE_ITEMS - n_items;

                l->forget[gone[i].port] = !fits;
                if (fits)
                        n_items += gone[i].n_items;
        }
        return 0;
}

/* Room for all endports, their memberships and the names, old and new. The policy's names come first, in their order. */
static int make_room(struct learning *l)
{
        const struct membership_history *old = l->old;
        const struct subnet *s = l->given->subnet;
        const struct policy *p = l->given->policy;
        struct membership_history *to = l->to;

        to->ports = arena_new_array(to->arena, struct seen_port, (size_t) old->n_ports + s->n_by_port_guid);
        to->items = arena_new_array(to->arena, struct item, (size_t) old->n_items + l->given->first[s->n_ports]);
        to->names = arena_new_array(to->arena, const char *, (size_t) p->n_partitions + old->n_names);
        l->names = arena_new_array(to->arena, uint32_t, old->n_names);
        l->forget = arena_new_array(to->arena, bool, old->n_ports);
        if (!to->ports || !to->items || !to->names || !l->names || !l->forget)
                return -ENOMEM;
        for (; to->n_names < p->n_partitions; to->n_names++) {
                to->names[to->n_names] = policy_partition_label(to->arena, &p->partitions[to->n_names]);
                if (!to->names[to->n_names])
                        return -ENOMEM;
        }
        return 0;
}

static int learn(struct learning *l)
{
        int r = make_room(l) ?: choose_forgotten(l) ?: merge_ports(l) ?: keep_changes(l);

        if (r >= 0)
                drop_oldest_changes(l->to);
        return r;
}

int membership_history_learn(struct membership_history *h, usec_t now, uint64_t generation, const struct memberships *m)
{
        _cleanup_(release) struct membership_history to = {
                .arena = arena_new(), .n_learned = h->n_learned + 1, .forgotten = h->forgotten,
        };
        struct learning l = { .old = h, .to = &to, .given = m, .now = now, .generation = generation };
        struct membership_history old = *h;
        int r = to.arena ? learn(&l) : -ENOMEM;

        if (r < 0)
                return r;
        *h = to;
        to = old; /* is released here */
        return 0;
}

/* --- queries ---------------------------------------------------------------------------------------------------- */

const struct membership_change *membership_history_of(const struct membership_history *h, struct guid port_guid, uint32_t *ret_n)
{
        uint32_t first = LOWER_BOUND(change, h->changes, h->n_changes, change->port_guid.v < port_guid.v);
        uint32_t end = LOWER_BOUND(change, h->changes, h->n_changes, change->port_guid.v <= port_guid.v);

        *ret_n = end - first;
        return end > first ? &h->changes[first] : NULL;
}

const struct membership_change *membership_history_find(const struct membership_history *h, struct guid port_guid, uint16_t base)
{
        const struct membership_change wanted = { .port_guid = port_guid, .base = base };
        return FIND_SORTED(change, h->changes, h->n_changes, compare_changes(change, &wanted));
}

usec_t membership_history_known_since(const struct membership_history *h, struct guid port_guid)
{
        uint32_t i = LOWER_BOUND(port, h->ports, h->n_ports, port->guid.v < port_guid.v);

        if (i == h->n_ports || h->ports[i].guid.v != port_guid.v)
                return USEC_INFINITY;
        return MAX(h->ports[i].since, h->forgotten);
}
