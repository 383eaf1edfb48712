/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/leaf_filter.h"

#include "opensm/given.h"

bool opensm_table_was_read(const struct observed_table *t)
{
        return t->entries && t->source == TABLE_READ;
}

/* Returns whether the table was read now or earlier. */
static bool is_known(const struct observed_table *t)
{
        return opensm_table_was_read(t) || t->source == TABLE_ASSUMED;
}

/* Returns whether the port filters, and the size of its table is not known because its switch did not answer everything. */
static bool is_incomplete_filter(const struct subnet *s, const struct subnet_port *p)
{
        return subnet_port_node(s, p)->incomplete && (p->enforce_inbound || p->enforce_outbound);
}

bool opensm_may_be_filtered(const struct subnet *s, uint32_t port)
{
        uint32_t peer = s->ports[port].peer;

        if (peer == SUBNET_NONE)
                return subnet_port_is_behind_unknown(s, &s->ports[port]);
        return subnet_port_can_enforce(s, &s->ports[peer]) || is_incomplete_filter(s, &s->ports[peer]);
}

bool opensm_pair_was_read(const struct observed *observed, uint32_t port)
{
        uint32_t peer = observed->subnet->ports[port].peer;

        if (!opensm_table_was_read(&observed->tables[port]))
                return false;
        return !opensm_may_be_filtered(observed->subnet, port) ||
               (peer != SUBNET_NONE && opensm_table_was_read(&observed->tables[peer]));
}

bool opensm_pair_failed(const struct observed *observed, uint32_t port)
{
        uint32_t peer = observed->subnet->ports[port].peer;

        if (observed_table_failed(&observed->tables[port]))
                return true;
        return opensm_may_be_filtered(observed->subnet, port) &&
               (peer == SUBNET_NONE || observed_table_failed(&observed->tables[peer]));
}

/* Returns whether OpenSM may have turned the filter on or off since the discovery, or the switch did not answer. */
static bool is_filter_unsure(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        const struct knowledge_record *r = knowledge_get(k, knowledge_find_port(k, observed->subnet, port));

        return r && r->filters_unsure;
}

/* True if the switch port filters, or may, and its table is known. */
static bool may_filter(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        const struct observed_table *t = &observed->tables[port];

        return is_known(t) && (t->enforce_inbound || t->enforce_outbound || is_filter_unsure(observed, port, k));
}

bool opensm_filter_is_unread(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        uint32_t peer = observed->subnet->ports[port].peer;
        const struct observed_table *t = peer == SUBNET_NONE ? NULL : &observed->tables[peer];

        if (!opensm_may_be_filtered(observed->subnet, port) || (t && is_known(t)))
                return false;
        return !t || t->enforce_inbound || t->enforce_outbound || is_filter_unsure(observed, peer, k);
}

struct opensm_filter opensm_filter_of_port(const struct observed *observed, uint32_t port, const struct knowledge *k,
                                           const struct partitions_file_port *given)
{
        uint32_t peer = observed->subnet->ports[port].peer;
        const struct observed_table *t;
        bool is_sure;

        if (peer == SUBNET_NONE || !may_filter(observed, peer, k))
                return (struct opensm_filter) {};
        t = &observed->tables[peer];
        is_sure = !is_filter_unsure(observed, peer, k);
        return (struct opensm_filter) { true, is_sure, t->entries, t->capacity,
                                        is_sure && opensm_table_was_read(t) ? &opensm_nothing_given : given };
}

/* The leaf port where a host was plugged in last; NULL: not known, or the record is of a switch. */
static const struct knowledge_record *find_last_leaf(const struct knowledge *k, const struct knowledge_record *r)
{
        const struct subnet_place *last = r->places;

        if (r->name.number == 0 || r->n_places == 0)
                return NULL;
        return knowledge_get(k, knowledge_find(k, (struct knowledge_name) { last->node, last->number, KNOWLEDGE_LEAF }));
}

struct opensm_filter opensm_filter_of_record(const struct knowledge *k, const struct knowledge_record *r,
                                             const struct partitions_file_port *given)
{
        const struct knowledge_record *leaf = find_last_leaf(k, r);

        if (!leaf || !leaf->entries || !(leaf->filters[0] || leaf->filters[1] || leaf->filters_unsure))
                return (struct opensm_filter) {};
        return (struct opensm_filter) { true, !leaf->filters_unsure, leaf->entries, leaf->capacity, given };
}

enum membership opensm_filter_passes(const struct opensm_filter *f, uint16_t base)
{
        if (!f->is_on)
                return MEMBERSHIP_FULL;
        return p_keys_membership(f->entries, f->capacity, base) | p_keys_membership(f->given->keys, f->given->n_keys, base);
}

bool opensm_filter_drops(enum membership passes, struct p_key key)
{
        if (p_key_is_full(key))
                return !membership_has_full(passes);
        return passes == MEMBERSHIP_NONE && p_key_base(key) != P_KEY_DEFAULT_BASE;
}
