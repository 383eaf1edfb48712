/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_text.h"

static void add_port(struct context *ctx, struct text_table *t, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct observed_table *table = &ctx->observed->tables[port];
        const char *device = subnet_port_node(ctx->subnet, p)->device;
        bool read = table->source == TABLE_READ;
        char used[8] = "?";

        if (read)
                (void) snprintf(used, sizeof(used), "%u", observed_table_count(table));
        text_table_row(t, read ? NULL : "red", "%s\t%s%s%u\t%u\t%s\t%s/%u\t%s", output_node(ctx, port), device,
                       *device ? "/" : "", p->number, p->lid.v, port_state_to_string(p->state), used, table->capacity,
                       read ? text_p_keys(ctx, table->entries, table->capacity) : output_failure(ctx, port));
}

void text_show_ports(struct context *ctx, const struct result *result)
{
        const struct ports_result *r = &result->ports;
        struct text_table t;

        text_table_begin(&t, "NODE|PORT|>LID|STATE|>USED|*P_KEYS", 0);
        for (uint32_t i = 0; i < r->n_ports; i++)
                if (ctx->subnet->ports[r->ports[i]].role == PORT_ENDPORT || ctx->options->verbose)
                        add_port(ctx, &t, r->ports[i]);
        text_table_print(ctx, &t);
}

/* --- show partitions ------------------------------------------------------------------------------------------------- */

static const char *count_text(struct context *ctx, const struct member_count *c)
{
        return output_format(ctx, "%u/%u/%u", c->full, c->limited, c->both);
}

static bool same_count(const struct member_count *a, const struct member_count *b)
{
        return a->full == b->full && a->limited == b->limited && a->both == b->both;
}

void text_show_partitions(struct context *ctx, const struct result *result)
{
        const struct partitions_result *r = &result->partitions;
        struct text_table t;

        text_table_begin(&t, "PARTITION|P_KEY|>POLICY full/limited/both|>HARDWARE full/limited/both|STATE",
                         ctx->policy ? 0 : 4);
        for (uint32_t i = 0; i < r->n_rows; i++) {
                const struct partition_row *row = &r->rows[i];
                bool differs = ctx->policy && !same_count(&row->by_policy, &row->in_hardware);

                text_table_row(&t, differs ? "brown" : NULL, "%s\t0x%04x\t%s\t%s\t%s",
                               row->partition >= 0 ? output_partition(ctx, row->base) : "-", row->base,
                               ctx->policy ? count_text(ctx, &row->by_policy) : "-", count_text(ctx, &row->in_hardware),
                               differs ? "differs" : "equal");
        }
        text_table_print(ctx, &t);
        if (r->n_unread > 0)
                printf("%u endport%s could not be read and do not count\n", r->n_unread, text_plural(r->n_unread));
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

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
        if (ctx->observed->tables[port].source == TABLE_READ)
                printf("  table         %u of %u entries used\n", observed_table_count(&ctx->observed->tables[port]),
                       ctx->observed->tables[port].capacity);
}

/* What the policy says of one entry: the line that wants it, or that nothing does. */
static const char *entry_source(struct context *ctx, uint32_t port, struct p_key key)
{
        const struct desired_port *wanted;
        const struct port_membership *membership;

        if (!ctx->desired)
                return "";
        wanted = &ctx->desired->ports[port];
        if (!p_keys_hold(wanted->wanted, wanted->n_wanted, key))
                return "not in the policy";
        return output_line(ctx, port, p_key_base(key), &membership);
}

static void add_entry(struct context *ctx, struct text_table *t, uint32_t port, const char *index, struct p_key key)
{
        text_table_row(t, NULL, "%s\t0x%04x\t%s\t%s\t%s", index, key.v, p_key_is_full(key) ? "full" : "limited",
                       output_partition(ctx, p_key_base(key)), entry_source(ctx, port, key));
}

static void print_entries(struct context *ctx, uint32_t port)
{
        const struct observed_table *table = &ctx->observed->tables[port];
        const struct desired_port *wanted = ctx->desired ? &ctx->desired->ports[port] : NULL;
        struct text_table t;
        char index[8];

        text_table_begin(&t, ">INDEX|P_KEY|MEMBERSHIP|PARTITION|POLICY", ctx->policy ? 0 : 3);
        for (uint32_t i = 0; i < table->capacity; i++) {
                if (!p_key_is_used(table->entries[i]))
                        continue;
                (void) snprintf(index, sizeof(index), "%u", i);
                add_entry(ctx, &t, port, index, table->entries[i]);
        }
        for (uint32_t i = 0; wanted && i < wanted->n_wanted; i++)
                if (!p_keys_hold(table->entries, table->capacity, wanted->wanted[i]))
                        add_entry(ctx, &t, port, "missing", wanted->wanted[i]);
        text_table_print(ctx, &t);
}

void text_show_port(struct context *ctx, const struct result *result)
{
        const struct ports_result *r = &result->ports;

        for (uint32_t i = 0; i < r->n_ports; i++) {
                if (i > 0)
                        putchar('\n');
                print_head(ctx, r->ports[i]);
                if (ctx->observed->tables[r->ports[i]].source == TABLE_READ)
                        print_entries(ctx, r->ports[i]);
                else
                        printf("  not read: %s\n", output_failure(ctx, r->ports[i]));
        }
}
