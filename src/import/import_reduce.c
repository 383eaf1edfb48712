/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "import/import.h"

/* The last line about all ports, or all ports of one node type. Order 0: there is none. */
struct cover {
        enum membership membership;
        uint32_t order;
        struct location where;
};

struct covers {
        struct cover all, types[IMPORT_N_TYPES];
};

__attribute__((format(printf, 4, 5)))
static void warn(struct import *im, const struct location *where, enum finding_code code, const char *format, ...)
{
        struct place place = { .where = *where };
        va_list ap;

        va_start(ap, format);
        report_vadd(&im->report, FINDING_WARNING, code, where->line > 0 ? &place : NULL, format, ap);
        va_end(ap);
}

static const struct cover *later(const struct cover *a, const struct cover *b)
{
        return a->order > b->order ? a : b;
}

DEFINE_COMPARE(compare_ports, struct import_port, ORDER(a->guid.v, b->guid.v) ?: ORDER(a->order, b->order))

/* Keeps the last of several lines about one port. Returns how many are left. */
static uint32_t keep_last(struct import_port *ports, uint32_t n)
{
        uint32_t kept = 0;

        qsort(ports, n, sizeof(*ports), compare_ports);
        for (uint32_t i = 0; i < n; i++) {
                if (kept > 0 && ports[kept - 1].guid.v == ports[i].guid.v)
                        kept--;
                ports[kept++] = ports[i];
        }
        return kept;
}

static struct import_port find_port(const struct import *im, const struct partitions_conf_member *m)
{
        struct import_port p = { .guid = m->guid, .port = SUBNET_NONE, .where = m->where };

        if (m->who == PARTITIONS_CONF_SELF) {
                p.self = true;
                p.port = im->subnet ? partitions_conf_self_port(im->subnet) : SUBNET_NONE;
                p.guid = p.port != SUBNET_NONE ? im->subnet->ports[p.port].guid : (struct guid) { 0 };
        } else if (im->subnet) {
                p.port = subnet_find_endport(im->subnet, m->guid);
        }
        return p;
}

/* In OpenSM only some members may have indx0, in a policy all or none. */
static void reduce_index0(struct import *im, struct import_partition *p)
{
        bool all;
        const struct partitions_conf_member *with = partitions_conf_find_index0(p->source, &all);

        p->index0 = with && all;
        if (with && !all && p->source->base != P_KEY_DEFAULT_BASE)
                warn(im, &with->where, FINDING_IMPORT_INDEX0, "indx0 is left out, because other definitions of the partition do not have "
                     "it: a policy puts a partition at index 0 of all its members' tables, or of none");
}

static void gather(struct import *im, struct import_partition *p, struct covers *covers)
{
        uint32_t order = 0;

        for (const struct partitions_conf_member *m = p->source->members; m; m = m->next) {
                enum membership level = partitions_conf_membership(m->membership, im->allow_both_pkeys);
                struct cover *c = m->who == PARTITIONS_CONF_ALL ? &covers->all : &covers->types[m->type];

                order++;
                if (m->who == PARTITIONS_CONF_ALL || m->who == PARTITIONS_CONF_TYPE)
                        *c = (struct cover) { level, order, m->where };
                else {
                        p->ports[p->n_ports] = find_port(im, m);
                        p->ports[p->n_ports].membership = level;
                        p->ports[p->n_ports++].order = order;
                }
        }
        p->n_ports = keep_last(p->ports, p->n_ports);
}

/* A later line about a node type may or may not include a port of unknown type: the port gets the lesser membership. */
static void narrow(struct import *im, struct import_port *port, const struct covers *covers)
{
        for (unsigned t = NODE_CA; t < IMPORT_N_TYPES; t++) {
                const struct cover *c = &covers->types[t];
                enum membership lesser;

                if (c->order < port->order || c->membership == port->membership)
                        continue;
                lesser = MIN(c->membership, port->membership);
                warn(im, &port->where, FINDING_IMPORT_NARROWED, "whether line %u applies to this port depends on its node type, "
                     "which is not known, so it %s a %s member", c->where.line, lesser != port->membership ? "becomes" : "stays",
                     membership_to_string(lesser));
                port->membership = lesser;
        }
}

/* Returns whether a later line about all ports, or all of its node type, overrides this one, and warns. Narrows the membership of a
 * port of unknown type. */
static bool drop_overridden(struct import *im, struct import_port *port, const struct covers *covers)
{
        const struct cover *c = &covers->all;

        if (port->port != SUBNET_NONE)
                c = later(c, &covers->types[subnet_port_node(im->subnet, &im->subnet->ports[port->port])->type]);
        if (c->order < port->order) {
                if (port->port == SUBNET_NONE)
                        narrow(im, port, covers);
                return false;
        }
        if (c->membership != port->membership && port->where.line > 0)
                warn(im, &port->where, FINDING_IMPORT_OVERRIDDEN, "%s has no effect here: the later line %u makes the port %s",
                     membership_to_string(port->membership), c->where.line, membership_to_string(c->membership));
        return true;
}

/* Returns whether the GUID is that of a node, and warns. OpenSM knows only port GUIDs; a policy would read it as all ports of the
 * node. */
static bool drop_node_guid(struct import *im, const struct import_port *port)
{
        if (!im->subnet || port->port != SUBNET_NONE || port->self || subnet_find_node(im->subnet, port->guid) == SUBNET_NONE)
                return false;
        warn(im, &port->where, FINDING_IMPORT_GUID, "0x%016" PRIx64 " is the GUID of a node, not of a port: OpenSM ignores it, "
             "and the policy leaves it out", port->guid.v);
        return true;
}

/* Keeps SELF as a word where it selects the port that pkeyd works through. Returns whether it did. */
static bool keep_self(struct import *im, struct import_partition *p, const struct import_port *port)
{
        if (!port->self || (im->subnet && im->subnet->self != SUBNET_NONE && im->subnet->self != port->port))
                return false;
        p->self = port->membership;
        p->self_order = port->order;
        return true;
}

int import_reduce(struct import *im, struct import_partition *p)
{
        struct covers covers = {};
        uint32_t kept = 0;

        p->ports = arena_new_array(im->arena, struct import_port, p->source->n_members);
        if (!p->ports)
                return -ENOMEM;
        reduce_index0(im, p);
        gather(im, p, &covers);
        for (uint32_t i = 0; i < p->n_ports; i++) {
                struct import_port *port = &p->ports[i];

                if (!drop_overridden(im, port, &covers) && !drop_node_guid(im, port) && !keep_self(im, p, port))
                        p->ports[kept++] = *port;
        }
        p->n_ports = kept;
        p->all = covers.all.membership;
        for (unsigned t = NODE_CA; t < IMPORT_N_TYPES; t++) {
                const struct cover *c = &covers.types[t];

                if (c->order > covers.all.order && c->membership != p->all)
                        p->types[t] = c->membership;
                else if (c->order > 0 && c->order < covers.all.order && c->membership != p->all)
                        warn(im, &c->where, FINDING_IMPORT_OVERRIDDEN, "this line has no effect: the later line %u applies to all ports",
                             covers.all.where.line);
        }
        return 0;
}
