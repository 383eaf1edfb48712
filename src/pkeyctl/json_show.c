/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

json_t *as_json_member_count(struct doc *d, const struct member_count *count)
{
        json_t *o = json_object();

        doc_put(d, o, "full", json_integer(count->full));
        doc_put(d, o, "limited", json_integer(count->limited));
        doc_put(d, o, "both", json_integer(count->both));
        return o;
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

static void put_port_details(struct doc *d, json_t *o, struct context *ctx, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct subnet_node *node = subnet_port_node(ctx->subnet, p);
        const struct observed_table *t = &ctx->observed->tables[port];
        bool read = t->source == TABLE_READ;

        doc_put_port(d, o, ctx, port);
        doc_put(d, o, "description", doc_text(node->description));
        doc_put(d, o, "node_guid", doc_guid(node->guid));
        doc_put(d, o, "type", doc_text(node_type_to_string(node->type)));
        doc_put(d, o, "role", doc_text(role(ctx, p)));
        doc_put(d, o, "state", doc_text(port_state_to_string(p->state)));
        doc_put(d, o, "capacity", json_integer(subnet_port_capacity(ctx->subnet, p)));
        doc_put(d, o, "p_keys", read ? used_entries(d, t) : json_null());
        doc_put(d, o, "failure", doc_text(failure(t)));
}

int as_json_show_ports(struct context *ctx, const struct ports_result *r)
{
        _cleanup_doc_ struct doc d = {};
        json_t *ports = json_array();

        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < r->n_ports; i++) {
                json_t *o = json_object();

                put_port_details(&d, o, ctx, r->ports[i]);
                doc_append(&d, ports, o);
        }
        doc_put(&d, d.root, "ports", ports);
        return doc_print(&d);
}

int as_json_show_partitions(struct context *ctx, const struct partitions_result *r)
{
        _cleanup_doc_ struct doc d = {};
        json_t *partitions = json_array();

        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < r->n_rows; i++) {
                const struct partition_row *row = &r->rows[i];
                json_t *o = json_object();

                doc_put(&d, o, "partition", row->partition < 0 ? json_null() : doc_text(output_partition(ctx, row->base)));
                doc_put(&d, o, "p_key", doc_base(row->base));
                doc_put(&d, o, "policy", ctx->policy ? as_json_member_count(&d, &row->by_policy) : json_null());
                doc_put(&d, o, "hardware", as_json_member_count(&d, &row->in_hardware));
                doc_append(&d, partitions, o);
        }
        doc_put(&d, d.root, "partitions", partitions);
        doc_put(&d, d.root, "unread", json_integer(r->n_unread));
        return doc_print(&d);
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

static json_t *table_entries(struct doc *d, struct context *ctx, uint32_t port)
{
        const struct observed_table *t = &ctx->observed->tables[port];
        json_t *array = json_array();

        for (uint32_t i = 0; i < t->capacity; i++) {
                struct p_key key = t->entries[i];
                json_t *o;

                if (key.v == 0)
                        continue;
                o = json_object();
                doc_put(d, o, "index", json_integer(i));
                doc_put(d, o, "p_key", doc_p_key(d, key));
                doc_put(d, o, "membership", doc_text(p_key_is_full(key) ? "full" : "limited"));
                doc_put(d, o, "partition", doc_text(output_partition(ctx, p_key_base(key))));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *neighbour_object(struct doc *d, struct context *ctx, uint32_t neighbour)
{
        const struct observed_table *t;
        json_t *o;

        if (neighbour == SUBNET_NONE)
                return json_null();
        t = &ctx->observed->tables[neighbour];
        o = json_object();
        put_port_details(d, o, ctx, neighbour);
        doc_put(d, o, "can_enforce",
                json_boolean(subnet_port_can_enforce(ctx->subnet, &ctx->subnet->ports[neighbour])));
        doc_put(d, o, "inbound", json_boolean(t->enforce_inbound));
        doc_put(d, o, "outbound", json_boolean(t->enforce_outbound));
        return o;
}

int as_json_show_port(struct context *ctx, const struct ports_result *r)
{
        _cleanup_doc_ struct doc d = {};
        json_t *ports = json_array();

        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < r->n_ports; i++) {
                uint32_t port = r->ports[i];
                const struct desired_port *wanted = ctx->desired ? &ctx->desired->ports[port] : NULL;
                json_t *o = json_object();

                put_port_details(&d, o, ctx, port);
                doc_put(&d, o, "table", table_entries(&d, ctx, port));
                doc_put(&d, o, "wanted", wanted ? doc_p_keys(&d, wanted->wanted, wanted->n_wanted) : json_null());
                doc_put(&d, o, "neighbour", neighbour_object(&d, ctx, ctx->subnet->ports[port].neighbour));
                doc_append(&d, ports, o);
        }
        doc_put(&d, d.root, "ports", ports);
        return doc_print(&d);
}
