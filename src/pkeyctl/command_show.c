/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "pkeyctl/commands.h"
#include "session/partitions.h"

/* --- show ports ------------------------------------------------------------------------------------------------------ */

static const char *role(const struct context *ctx, const struct subnet_port *p)
{
        if (p->role == PORT_ENDPORT)
                return "endport";
        return subnet_port_can_enforce(ctx->subnet, p) ? "enforcing" : "external";
}

static json_t *port_object(struct doc *d, uint32_t port)
{
        const struct subnet *s = d->ctx->subnet;
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);
        const struct observed_table *t = &d->ctx->observed->tables[port];
        bool is_read = t->source == TABLE_READ, has_failed = !is_read && t->failure != MAD_ANSWERED;

        return doc_port(d, port, "{s:o, s:o, s:s, s:s, s:s, s:i, s:o, s:o}", "description", doc_text(node->description),
                        "node_guid", doc_guid(node->guid), "type", node_type_to_string(node->type), "role", role(d->ctx, p),
                        "state", port_state_to_string(p->state), "capacity", subnet_port_capacity(s, p),
                        "p_keys", is_read ? doc_used_p_keys(d, t->entries, t->capacity) : json_null(),
                        "failure", doc_text(has_failed ? mad_outcome_to_string(t->failure) : NULL));
}

static void json_show_ports(struct doc *d, const void *result)
{
        const struct endports *r = result;

        doc_add(d, d->root, "{s:o}", "ports", JSON_ARRAY(i, r->n, port_object(d, r->ports[i])));
}

static void add_port(struct context *ctx, struct text_table *t, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct observed_table *table = &ctx->observed->tables[port];
        const char *device = subnet_port_node(ctx->subnet, p)->device;
        bool is_read = table->source == TABLE_READ;

        text_table_row(t, is_read ? NULL : "red", "%s\t%s%s%u\t%u\t%s\t%s/%u\t%s", output_node(ctx, port), device,
                       *device ? "/" : "", p->number, p->lid.v, port_state_to_string(p->state),
                       is_read ? output_format(ctx, "%u", observed_table_count(table)) : "?", table->capacity,
                       is_read ? text_p_keys(ctx, table->entries, table->capacity) : output_failure(ctx, port));
}

static void text_show_ports(struct context *ctx, const void *result)
{
        const struct endports *r = result;
        struct text_table t;

        text_table_begin(&t, "NODE|PORT|>LID|STATE|>USED|*P_KEYS", 0);
        for (uint32_t i = 0; i < r->n; i++)
                if (ctx->subnet->ports[r->ports[i]].role == PORT_ENDPORT || ctx->options->verbose)
                        add_port(ctx, &t, r->ports[i]);
        text_table_print(ctx, &t);
}

static bool is_managed(const struct context *ctx, uint32_t port)
{
        return subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[port]);
}

/* node2 before node10 */
static int compare_ports(const void *pa, const void *pb, void *userdata)
{
        const struct context *ctx = userdata;
        uint32_t a = *(const uint32_t *) pa, b = *(const uint32_t *) pb;

        return strverscmp(output_node(ctx, a), output_node(ctx, b)) ?: ORDER(a, b);
}

/* Partial if a table that should be shown was not read. */
static enum exit_status status_of(const struct context *ctx, const struct endports *r)
{
        for (uint32_t i = 0; i < r->n; i++)
                if (ctx->observed->tables[r->ports[i]].source != TABLE_READ)
                        return EXIT_PARTIAL;
        return EXIT_DONE;
}

int command_show_ports(struct context *ctx)
{
        static const struct printer printer = { text_show_ports, json_show_ports, TERSE };
        struct endports all;
        int r = pipeline_filter(ctx, is_managed, &all);

        if (r < 0)
                return r;
        qsort_r(all.ports, all.n, sizeof(*all.ports), compare_ports, ctx);
        return output(ctx, &printer, status_of(ctx, &all), &all);
}

/* --- show partitions ------------------------------------------------------------------------------------------------- */

static void json_show_partitions(struct doc *d, const void *result)
{
        const struct partitions *r = result;
        json_t *partitions = json_array();

        for (uint16_t base = partitions_next(d->ctx, r, 1); base > 0; base = partitions_next(d->ctx, r, base + 1u))
                doc_append(d, partitions, json_partition(d, r, base));
        doc_add(d, d->root, "{s:o, s:i}", "partitions", partitions, "unread", r->n_unread);
}

static const char *count_text(struct context *ctx, const struct member_count *c)
{
        return output_format(ctx, "%u/%u/%u", c->full, c->limited, c->both);
}

static void text_show_partitions(struct context *ctx, const void *result)
{
        const struct partitions *r = result;
        struct text_table t;

        text_table_begin(&t, "PARTITION|P_KEY|>POLICY full/limited/both|>HARDWARE full/limited/both|STATE", ctx->policy ? 0 : 4);
        for (uint16_t base = partitions_next(ctx, r, 1); base > 0; base = partitions_next(ctx, r, base + 1u)) {
                const char *name = output_partition(ctx, base);
                bool differs = ctx->policy && r->differs[base];

                text_table_row(&t, differs ? "brown" : NULL, "%s\t0x%04x\t%s\t%s\t%s", *name ? name : "-", base,
                               ctx->policy ? count_text(ctx, &r->by_policy[base]) : "-", count_text(ctx, &r->in_hardware[base]),
                               differs ? "differs" : "equal");
        }
        text_table_print(ctx, &t);
        if (r->n_unread > 0)
                printf("%u endport%s could not be read and do not count\n", r->n_unread, text_plural(r->n_unread));
}

int command_show_partitions(struct context *ctx)
{
        static const struct printer printer = { text_show_partitions, json_show_partitions, TERSE };
        struct partitions result;
        int r = partitions_count(ctx, &result);

        return r < 0 ? r : output(ctx, &printer, result.n_unread > 0 ? EXIT_PARTIAL : EXIT_DONE, &result);
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

static json_t *entry_object(struct doc *d, size_t index, struct p_key key)
{
        return json_pack("{s:i, s:o, s:s, s:o}", "index", (int) index, "p_key", doc_p_key(d, key),
                         "membership", membership_to_string(p_key_membership(key)),
                         "partition", doc_text(output_partition(d->ctx, p_key_base(key))));
}

static json_t *peer_object(struct doc *d, uint32_t peer)
{
        const struct observed_table *t;
        json_t *o;

        if (peer == SUBNET_NONE)
                return json_null();
        t = &d->ctx->observed->tables[peer];
        o = port_object(d, peer);
        doc_add(d, o, "{s:b, s:b, s:b}", "can_enforce", subnet_port_can_enforce(d->ctx->subnet, &d->ctx->subnet->ports[peer]),
                "inbound", t->enforce_inbound, "outbound", t->enforce_outbound);
        return o;
}

static json_t *whole_port_object(struct doc *d, uint32_t port)
{
        const struct desired_port *wanted = d->ctx->given ? &d->ctx->given->ports[port] : NULL;
        const struct observed_table *t = &d->ctx->observed->tables[port];
        json_t *o = port_object(d, port);

        doc_add(d, o, "{s:o, s:o, s:o}",
                "table", JSON_ARRAY_IF(i, t->capacity, p_key_is_used(t->entries[i]), entry_object(d, i, t->entries[i])),
                "wanted", wanted ? doc_p_keys(d, wanted->wanted, wanted->n_wanted) : json_null(),
                "neighbour", peer_object(d, d->ctx->subnet->ports[port].peer));
        return o;
}

static void json_show_port(struct doc *d, const void *result)
{
        const struct endports *r = result;

        doc_add(d, d->root, "{s:o}", "ports", JSON_ARRAY(i, r->n, whole_port_object(d, r->ports[i])));
}

static void print_peer(struct context *ctx, uint32_t peer)
{
        const struct subnet_port *p;
        const struct observed_table *t;

        if (peer == SUBNET_NONE)
                return;
        p = &ctx->subnet->ports[peer];
        t = &ctx->observed->tables[peer];
        printf("  plugged into  %s", output_label(ctx, peer));
        if (p->role != PORT_SWITCH_EXTERNAL)
                printf("\n");
        else if (!subnet_port_can_enforce(ctx->subnet, p))
                printf(", which cannot enforce partitions\n");
        else
                printf(", enforcement in %s, out %s, %u of %u entries used\n", t->enforce_inbound ? "on" : "off",
                       t->enforce_outbound ? "on" : "off", observed_table_count(t), t->capacity);
}

static void print_head(struct context *ctx, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct subnet_node *node = subnet_port_node(ctx->subnet, p);

        printf("%s\n", output_label(ctx, port));
        printf("  description   %s\n", node->description);
        printf("  port GUID     0x%016" PRIx64 " (%s, node GUID 0x%016" PRIx64 ")\n", p->guid.v,
               node_type_to_string(node->type), node->guid.v);
        printf("  LID           %u, state %s\n", p->lid.v, port_state_to_string(p->state));
        print_peer(ctx, p->peer);
}

/* The line of the policy that wants an entry, or that none does. */
static const char *entry_source(struct context *ctx, uint32_t port, struct p_key key)
{
        const struct desired_port *wanted;
        const struct port_membership *membership;

        if (!ctx->given)
                return "";
        wanted = &ctx->given->ports[port];
        if (!p_keys_hold(wanted->wanted, wanted->n_wanted, key))
                return "not in the policy";
        return output_line(ctx, port, p_key_base(key), &membership);
}

static void add_entry(struct context *ctx, struct text_table *t, uint32_t port, const char *index, struct p_key key)
{
        text_table_row(t, NULL, "%s\t0x%04x\t%s\t%s\t%s", index, key.v, membership_to_string(p_key_membership(key)),
                       output_partition(ctx, p_key_base(key)), entry_source(ctx, port, key));
}

static void print_table(struct context *ctx, uint32_t port)
{
        const struct observed_table *table = &ctx->observed->tables[port];
        const struct desired_port *wanted = ctx->given ? &ctx->given->ports[port] : NULL;
        struct text_table t;

        printf("  table         %u of %u entries used\n", observed_table_count(table), table->capacity);
        text_table_begin(&t, ">INDEX|P_KEY|MEMBERSHIP|PARTITION|POLICY", ctx->policy ? 0 : 3);
        for (uint32_t i = 0; i < table->capacity; i++)
                if (p_key_is_used(table->entries[i]))
                        add_entry(ctx, &t, port, output_format(ctx, "%u", i), table->entries[i]);
        for (uint32_t i = 0; wanted && i < wanted->n_wanted; i++)
                if (!p_keys_hold(table->entries, table->capacity, wanted->wanted[i]))
                        add_entry(ctx, &t, port, "missing", wanted->wanted[i]);
        text_table_print(ctx, &t);
}

static void text_show_port(struct context *ctx, const void *result)
{
        const struct endports *r = result;

        for (uint32_t i = 0; i < r->n; i++) {
                if (i > 0)
                        putchar('\n');
                print_head(ctx, r->ports[i]);
                if (ctx->observed->tables[r->ports[i]].source == TABLE_READ)
                        print_table(ctx, r->ports[i]);
                else
                        printf("  not read: %s\n", output_failure(ctx, r->ports[i]));
        }
}

int command_show_port(struct context *ctx)
{
        static const struct printer printer = { text_show_port, json_show_port, TERSE };

        return output(ctx, &printer, status_of(ctx, &ctx->selected[0]), &ctx->selected[0]);
}
