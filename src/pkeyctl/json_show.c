/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

json_t *as_json_member_count(struct doc *d, const struct member_count *count)
{
        return doc_pack(d, "{s:i, s:i, s:i}", "full", count->full, "limited", count->limited, "both", count->both);
}

static json_t *used_entries(struct doc *d, const struct observed_table *t)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < t->capacity; i++)
                if (t->entries[i].v != 0)
                        doc_append(d, array, doc_p_key(d, t->entries[i]));
        return array;
}

static const char *role(const struct context *ctx, const struct subnet_port *p)
{
        if (p->role == PORT_ENDPORT)
                return "endport";
        return subnet_port_can_enforce(ctx->subnet, p) ? "enforcing" : "external";
}

/* Null for a port whose table was read, and for one of which nobody asked for it. */
static const char *failure(const struct observed_table *t)
{
        if (t->source == TABLE_READ || t->failure == MAD_ANSWERED)
                return NULL;
        return mad_outcome_to_string(t->failure);
}

static json_t *port_object(struct doc *d, uint32_t port)
{
        const struct subnet *s = d->ctx->subnet;
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);
        const struct observed_table *t = &d->ctx->observed->tables[port];

        return doc_port(d, port, "{s:o, s:o, s:s, s:s, s:s, s:i, s:o, s:o}", "description", doc_text(node->description),
                        "node_guid", doc_guid(node->guid), "type", node_type_to_string(node->type), "role",
                        role(d->ctx, p), "state", port_state_to_string(p->state), "capacity", subnet_port_capacity(s, p),
                        "p_keys", t->source == TABLE_READ ? used_entries(d, t) : json_null(), "failure",
                        doc_text(failure(t)));
}

void as_json_show_ports(struct doc *d, const struct result *result)
{
        const struct ports_result *r = &result->ports;
        json_t *ports = json_array();

        for (uint32_t i = 0; i < r->n_ports; i++)
                doc_append(d, ports, port_object(d, r->ports[i]));
        doc_add(d, d->root, "{s:o}", "ports", ports);
}

void as_json_show_partitions(struct doc *d, const struct result *result)
{
        const struct partitions_result *r = &result->partitions;
        json_t *partitions = json_array();

        for (uint32_t i = 0; i < r->n_rows; i++) {
                const struct partition_row *row = &r->rows[i];

                doc_append(d, partitions,
                           doc_pack(d, "{s:o, s:o, s:o, s:o}", "partition",
                                    doc_text(row->partition < 0 ? NULL : output_partition(d->ctx, row->base)), "p_key",
                                    doc_base(row->base), "policy",
                                    d->ctx->policy ? as_json_member_count(d, &row->by_policy) : json_null(), "hardware",
                                    as_json_member_count(d, &row->in_hardware)));
        }
        doc_add(d, d->root, "{s:o, s:i}", "partitions", partitions, "unread", r->n_unread);
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

static json_t *table_entries(struct doc *d, uint32_t port)
{
        const struct observed_table *t = &d->ctx->observed->tables[port];
        json_t *array = json_array();

        for (uint32_t i = 0; i < t->capacity; i++) {
                struct p_key key = t->entries[i];

                if (key.v != 0)
                        doc_append(d, array,
                                   doc_pack(d, "{s:i, s:o, s:s, s:o}", "index", i, "p_key", doc_p_key(d, key),
                                            "membership", p_key_is_full(key) ? "full" : "limited", "partition",
                                            doc_text(output_partition(d->ctx, p_key_base(key)))));
        }
        return array;
}

static json_t *peer_object(struct doc *d, uint32_t peer)
{
        const struct observed_table *t;
        json_t *o;

        if (peer == SUBNET_NONE)
                return json_null();
        t = &d->ctx->observed->tables[peer];
        o = port_object(d, peer);
        doc_add(d, o, "{s:b, s:b, s:b}", "can_enforce",
                subnet_port_can_enforce(d->ctx->subnet, &d->ctx->subnet->ports[peer]), "inbound",
                t->enforce_inbound, "outbound", t->enforce_outbound);
        return o;
}

void as_json_show_port(struct doc *d, const struct result *result)
{
        const struct ports_result *r = &result->ports;
        json_t *ports = json_array();

        for (uint32_t i = 0; i < r->n_ports; i++) {
                uint32_t port = r->ports[i];
                const struct desired_port *wanted = d->ctx->desired ? &d->ctx->desired->ports[port] : NULL;
                json_t *o = port_object(d, port);

                doc_add(d, o, "{s:o, s:o, s:o}", "table", table_entries(d, port), "wanted",
                        wanted ? doc_p_keys(d, wanted->wanted, wanted->n_wanted) : json_null(), "neighbour",
                        peer_object(d, d->ctx->subnet->ports[port].peer));
                doc_append(d, ports, o);
        }
        doc_add(d, d->root, "{s:o}", "ports", ports);
}
