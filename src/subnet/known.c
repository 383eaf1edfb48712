/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subnet/known.h"

#include <errno.h>
#include <string.h>

#include "util/macros.h"
#include "util/vector.h"

#define DAY         86400u
#define MAX_ABSENCE (KNOWN_DAYS * DAY * USEC_PER_SEC)
#define MAX_COUNTED (DAY * USEC_PER_SEC)  /* between two sweeps; a longer time without a sweep counts as this */
#define NOTE_PERIOD (3600 * USEC_PER_SEC) /* of absence, after which it is stored */

void known_done(struct known *k)
{
        free(k->ports);
        free(k->gone);
        *k = (struct known) {};
}

static struct known_port *find_port(const struct known *k, struct guid port_guid)
{
        return FIND_SORTED(port, k->ports, k->n, ORDER(port->port_guid.v, port_guid.v));
}

const struct known_port *known_find(const struct known *k, struct guid port_guid)
{
        return find_port(k, port_guid);
}

/* Below 0: x was present later. The monotonic clock decides as far as possible. */
static int compare_last(const struct known_port *x, const struct known_port *y)
{
        return ORDER(x->absent, y->absent) ?: ORDER(y->seen, x->seen);
}

bool known_is_later(const struct known_port *x, const struct known_port *y)
{
        return compare_last(x, y) < 0;
}

const struct known_port *known_find_at(const struct known *k, const struct subnet *subnet, struct subnet_place place)
{
        const struct known_port *last = NULL;

        for (uint32_t i = 0; i < k->n; i++) {
                const struct known_port *p = &k->ports[i];

                if (p->switch_guid.v == place.node.v && p->switch_port == place.number && (!last || known_is_later(p, last)) &&
                    subnet_find_endport(subnet, p->port_guid) == SUBNET_NONE)
                        last = p;
        }
        return last;
}

const char *known_port_label(struct arena *a, const struct known_port *p)
{
        struct subnet_node node = { .guid = p->node_guid };
        const char *label;

        if (p->description[0] == '\0')
                return arena_printf(a, "0x%016" PRIx64, p->port_guid.v);
        node.description = p->description;
        if (node_description_split(a, p->description, &node.name, &node.device) < 0)
                return NULL;
        label = subnet_node_label(a, &node);
        return label ? arena_printf(a, "%s/%u", label, p->number) : NULL;
}

int known_add(struct known *k, const struct known_port *port)
{
        uint32_t at = LOWER_BOUND(p, k->ports, k->n, p->port_guid.v < port->port_guid.v);

        if (at == k->n || k->ports[at].port_guid.v != port->port_guid.v)
                return k->n == KNOWN_MAX ? -ENOSPC : VECTOR_INSERT(NULL, k->ports, k->n, k->allocated, at, *port);
        k->ports[at] = *port;
        return 0;
}

static void make_known_port(const struct subnet *s, const struct subnet_port *p, uint64_t wall, struct known_port *ret)
{
        const struct subnet_node *node = subnet_port_node(s, p);

        *ret = (struct known_port) {
                .node_guid = node->guid, .port_guid = p->guid, .type = node->type, .number = p->number,
                .seen = wall, .noted = wall,
        };
        (void) snprintf(ret->description, sizeof(ret->description), "%s", node->description);
        if (p->peer != SUBNET_NONE) {
                ret->switch_guid = subnet_port_node(s, &s->ports[p->peer])->guid;
                ret->switch_port = s->ports[p->peer].number;
        }
}

/* True if this differs from what is known (NULL: nothing), or the time in the store is too old. */
static bool is_news(const struct known_port *old, const struct known_port *port)
{
        return !old || old->node_guid.v != port->node_guid.v || old->type != port->type || old->number != port->number ||
               old->switch_guid.v != port->switch_guid.v || old->switch_port != port->switch_port ||
               strcmp(old->description, port->description) != 0 || port->seen > old->noted + DAY || port->seen + DAY < old->noted;
}

static bool forget_absent(struct known *k)
{
        uint32_t kept = 0;

        /* without memory it is kept; otherwise it would stay in the store */
        for (uint32_t i = 0; i < k->n; i++)
                if (k->ports[i].absent <= MAX_ABSENCE ||
                    VECTOR_ADD(NULL, k->gone, k->n_gone, k->allocated_gone, k->ports[i].port_guid) < 0)
                        k->ports[kept++] = k->ports[i];
        if (kept == k->n)
                return false;
        k->n = kept;
        return true;
}

static bool mark_present(struct known_port *port)
{
        bool news = port->absent > 0;

        port->absent = 0;
        port->is_absent = false;
        if (news)
                port->is_stored = false;
        return news;
}

/* Absence begins with the first sweep that does not find the port. The store then gets the time when it was last seen. */
static bool mark_absent(struct known_port *port, usec_t passed, bool must_store)
{
        bool news = must_store || (!port->is_absent && port->seen != port->noted);

        if (port->is_absent)
                port->absent += passed;
        port->is_absent = true;
        if (news) {
                port->noted = port->seen;
                port->is_stored = false;
        }
        return news;
}

/* All absent ports are stored at the same time; otherwise a port that is absent for longer could seem to be absent for less. */
static bool count_absence(struct known *k, const struct subnet *subnet, usec_t now)
{
        usec_t passed = k->counted > 0 ? MIN(now - MIN(now, k->counted), MAX_COUNTED) : 0;
        bool must_store = k->unnoted + passed >= NOTE_PERIOD, news = false;

        k->counted = now;
        k->unnoted = must_store ? 0 : k->unnoted + passed;
        for (uint32_t i = 0; i < k->n; i++) {
                bool is_there = subnet_find_endport(subnet, k->ports[i].port_guid) != SUBNET_NONE;

                news |= is_there ? mark_present(&k->ports[i]) : mark_absent(&k->ports[i], passed, must_store);
        }
        return news;
}

int known_learn(struct known *k, const struct subnet *subnet, usec_t now, uint64_t wall)
{
        bool news = count_absence(k, subnet, now);

        news |= forget_absent(k);

        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                struct known_port port, *old;
                int r;

                if (subnet->ports[i].role != PORT_ENDPORT || subnet->ports[i].guid.v == 0 ||
                    subnet_port_is_incomplete(subnet, &subnet->ports[i]))
                        continue;
                make_known_port(subnet, &subnet->ports[i], wall, &port);
                old = find_port(k, port.port_guid);
                if (!is_news(old, &port)) {
                        old->seen = wall; /* stored only once a day */
                        continue;
                }
                port.is_new = !old || old->is_new;
                r = known_add(k, &port);
                if (r == -ENOMEM)
                        return r;
                news = news || r == 0;
        }
        return news;
}

void known_reported(struct known *k)
{
        for (uint32_t i = 0; i < k->n; i++)
                k->ports[i].is_new = false;
}

void known_stored(struct known *k)
{
        for (uint32_t i = 0; i < k->n; i++)
                k->ports[i].is_stored = true;
        k->n_gone = 0;
}

void known_unstore(struct known *k)
{
        for (uint32_t i = 0; i < k->n; i++)
                k->ports[i].is_stored = false;
}

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

/* Finds one port of the node; all have its name. */
static const struct known_port *find_node(const struct known *k, struct guid node)
{
        for (uint32_t i = 0; i < k->n; i++)
                if (k->ports[i].node_guid.v == node.v)
                        return &k->ports[i];
        return NULL;
}

const char *known_description(const struct known *k, struct guid node)
{
        const struct known_port *p = find_node(k, node);

        return p ? p->description : "";
}

/* ---- the larger snapshot ---------------------------------------------------------------------------------------- */

/* An incomplete node gets what is known of it. */
static int copy_node(struct subnet_builder *b, const struct known *k, const struct subnet_node *from)
{
        const struct known_port *known = from->incomplete ? find_node(k, from->guid) : NULL;
        const char *description = known ? known->description : from->description;
        struct subnet_node node = *from;

        node.incomplete = node.incomplete && !known;
        return subnet_builder_add_described(b, &node, description);
}

static int copy_snapshot(struct subnet_builder *b, const struct known *k, const struct subnet *s)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < s->n_nodes; i++)
                r = copy_node(b, k, &s->nodes[i]);
        for (uint32_t i = 0; r == 0 && i < s->n_ports; i++)
                r = subnet_builder_add_port(b, subnet_port_node(s, &s->ports[i])->guid, &s->ports[i]);
        for (uint32_t i = 0; r == 0 && i < s->n_ports; i++) {
                const struct subnet_port *p = &s->ports[i], *q;

                if (p->role != PORT_ENDPORT || p->peer == SUBNET_NONE)
                        continue;
                q = &s->ports[p->peer];
                r = subnet_builder_add_link(b, subnet_port_node(s, p)->guid, p->number, subnet_port_node(s, q)->guid, q->number);
        }
        return r;
}

/* Adds the switch port that the port was plugged into, unless another port is or was there since. The switch may be absent, too. */
static int plug_in(struct subnet_builder *b, const struct subnet *s, const struct known_port *k)
{
        uint32_t node = k->switch_guid.v ? subnet_find_node(s, k->switch_guid) : SUBNET_NONE;
        struct subnet_port port = { .number = k->switch_port };
        int r;

        if (subnet_find_endport(s, k->port_guid) != SUBNET_NONE || k->switch_guid.v == 0 || k->switch_port == 0)
                return 0;
        if (node != SUBNET_NONE && (s->nodes[node].type != NODE_SWITCH || subnet_find_port(s, node, k->switch_port) != SUBNET_NONE))
                return 0;
        r = subnet_builder_add_port(b, k->switch_guid, &port) ?:
            subnet_builder_add_link(b, k->node_guid, k->number, k->switch_guid, k->switch_port);
        return r == -ENOMEM ? r : 0;
}

static int add_absent(struct subnet_builder *b, const struct subnet *s, const struct known_port *k)
{
        struct subnet_node node = { .guid = k->node_guid, .type = k->type };
        struct subnet_port port = { .number = k->number, .guid = k->port_guid };
        int r;

        if (subnet_find_endport(s, k->port_guid) != SUBNET_NONE)
                return 0;
        r = subnet_builder_add_described(b, &node, k->description);
        if (r == 0 || r == -EEXIST)
                r = subnet_builder_add_port(b, k->node_guid, &port);
        /* an error means that it contradicts the snapshot, which is newer */
        return r == -ENOMEM ? r : 0;
}

static int compare_seen(const void *left, const void *right)
{
        const struct known_port *const *a = left, *const *b = right;

        return compare_last(*a, *b) ?: ORDER((*a)->port_guid.v, (*b)->port_guid.v);
}

/* The port that was seen last at a switch port is plugged in there. */
static int plug_in_all(struct subnet_builder *b, const struct subnet *s, const struct known *k)
{
        _cleanup_free_ const struct known_port **ports = calloc(MAX(k->n, 1u), sizeof(*ports));
        int r = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < k->n; i++)
                ports[i] = &k->ports[i];
        qsort(ports, k->n, sizeof(*ports), compare_seen);
        for (uint32_t i = 0; r == 0 && i < k->n; i++)
                r = plug_in(b, s, ports[i]);
        return r;
}

/* Adds no port if the GUID is that of a node that was seen: it stands for the ports of that node. */
static int add_named(struct subnet_builder *b, const struct known *k, const struct subnet *s, struct guid guid,
                     enum node_type type)
{
        const struct subnet_node node = { .guid = guid, .type = type };
        const struct subnet_port port = { .number = 1, .guid = guid };
        int r;

        if (subnet_find_endport(s, guid) != SUBNET_NONE || known_find(k, guid))
                return 0;
        r = subnet_builder_add_node(b, &node, "", 0) ?: subnet_builder_add_port(b, guid, &port);
        return r == -EEXIST ? 0 : r;
}

/* Node and number of this port (SUBNET_NONE: none, a GUID of 0). */
static struct subnet_place place_of_port(const struct subnet *s, uint32_t port)
{
        if (port == SUBNET_NONE)
                return (struct subnet_place) {};
        return (struct subnet_place) { subnet_port_node(s, &s->ports[port])->guid, s->ports[port].number };
}

int known_extend_named(struct arena *a, const struct known *k, const struct subnet *subnet, const struct guid *guids,
                       uint32_t n_guids, enum node_type type, struct subnet **ret)
{
        const struct subnet *s = subnet;
        struct subnet_place self = place_of_port(s, s->self), sm = place_of_port(s, s->sm);
        struct subnet_builder *b;
        int r = subnet_builder_new(a, &b) ?: copy_snapshot(b, k, s);

        for (uint32_t i = 0; r == 0 && i < k->n; i++)
                r = add_absent(b, s, &k->ports[i]);
        for (uint32_t i = 0; r == 0 && i < n_guids; i++)
                r = add_named(b, k, s, guids[i], type);
        r = r ?: plug_in_all(b, s, k);
        if (r < 0)
                return -ENOMEM;
        return subnet_builder_finish(b, self.node, self.number, sm.node, sm.number, ret);
}

int known_extend(struct arena *a, const struct known *k, const struct subnet *subnet, struct subnet **ret)
{
        return known_extend_named(a, k, subnet, NULL, 0, NODE_UNKNOWN, ret);
}
