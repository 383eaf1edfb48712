/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/table.h"
#include "pkeyctl/text.h"

static uint32_t count_used(const struct observed_table *t)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < t->capacity; i++)
                n += p_key_is_used(t->entries[i]);
        return n;
}

static int add_port(struct context *ctx, struct table *t, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct observed_table *table = &ctx->observed->tables[port];
        const char *device = subnet_port_node(ctx->subnet, p)->device, *keys;
        char where[CA_NAME_SIZE + NODE_DESCRIPTION_SIZE * 4], lid[8], used[16];
        bool read = table->source == TABLE_READ;

        keys = read ? text_p_keys(ctx, table->entries, table->capacity) : output_failure(ctx, port);
        if (!keys)
                return -ENOMEM;
        (void) snprintf(where, sizeof(where), "%s%s%u", device, *device ? "/" : "", p->number);
        (void) snprintf(lid, sizeof(lid), "%u", p->lid.v);
        if (read)
                (void) snprintf(used, sizeof(used), "%u/%u", count_used(table), table->capacity);
        else
                (void) snprintf(used, sizeof(used), "?/%u", table->capacity);
        return table_row(t, read ? NULL : "red", output_node(ctx, port), where, lid, port_state_to_string(p->state), used,
                         keys);
}

int text_show_ports(struct context *ctx, const struct ports_result *r)
{
        static const struct table_column columns[] = {
                { "NODE", TABLE_LEFT },  { "PORT", TABLE_LEFT },  { "LID", TABLE_RIGHT },
                { "STATE", TABLE_LEFT }, { "USED", TABLE_RIGHT }, { "P_KEYS", TABLE_LIST },
        };
        _cleanup_table_ struct table *t = NULL;

        if (text_findings(ctx, true) < 0 || table_new(columns, ELEMENTS(columns), &t) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_ports; i++) {
                if (ctx->subnet->ports[r->ports[i]].role != PORT_ENDPORT && ctx->options->verbose == 0)
                        continue;
                if (add_port(ctx, t, r->ports[i]) < 0)
                        return -ENOMEM;
        }
        return table_print(t);
}

/* --- show partitions ------------------------------------------------------------------------------------------------- */

static const char *count_text(struct context *ctx, const struct member_count *c)
{
        return arena_printf(ctx->arena, "%u/%u/%u", c->full, c->limited, c->both);
}

static bool same_count(const struct member_count *a, const struct member_count *b)
{
        return a->full == b->full && a->limited == b->limited && a->both == b->both;
}

static int add_partition(struct context *ctx, struct table *t, const struct partition_row *row)
{
        const char *policy = ctx->policy ? count_text(ctx, &row->by_policy) : "-";
        const char *hardware = count_text(ctx, &row->in_hardware);
        const char *name = row->partition >= 0 ? output_partition(ctx, row->base) : "-";
        bool differs = ctx->policy && !same_count(&row->by_policy, &row->in_hardware);
        char p_key[8];

        if (!policy || !hardware)
                return -ENOMEM;
        (void) snprintf(p_key, sizeof(p_key), "0x%04x", row->base);
        return table_row(t, differs ? "brown" : NULL, name, p_key, policy, hardware,
                         differs ? "differs" : "equal");
}

int text_show_partitions(struct context *ctx, const struct partitions_result *r)
{
        static const struct table_column columns[] = {
                { "PARTITION", TABLE_LEFT },
                { "P_KEY", TABLE_LEFT },
                { "POLICY full/limited/both", TABLE_RIGHT },
                { "HARDWARE full/limited/both", TABLE_RIGHT },
                { "STATE", TABLE_LEFT },
        };
        _cleanup_table_ struct table *t = NULL;

        if (text_findings(ctx, true) < 0 || table_new(columns, ctx->policy ? 5 : 4, &t) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_rows; i++)
                if (add_partition(ctx, t, &r->rows[i]) < 0)
                        return -ENOMEM;
        if (table_print(t) < 0)
                return -EIO;
        if (r->n_unread > 0) {
                text_count(r->n_unread, "endport");
                puts(" could not be read and do not count");
        }
        return 0;
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

static void print_neighbour(struct context *ctx, uint32_t neighbour)
{
        const struct subnet_port *p;
        const struct observed_table *t;
        const char *label;

        if (neighbour == SUBNET_NONE)
                return;
        p = &ctx->subnet->ports[neighbour];
        t = &ctx->observed->tables[neighbour];
        label = subnet_port_label(ctx->arena, ctx->subnet, neighbour);
        printf("  plugged into  %s", label ?: "?");
        if (p->role != PORT_SWITCH_EXTERNAL)
                printf("\n");
        else if (!subnet_port_can_enforce(ctx->subnet, p))
                printf(", which cannot enforce partitions\n");
        else
                printf(", enforcement in %s, out %s, %u of %u entries used\n", t->enforce_inbound ? "on" : "off",
                       t->enforce_outbound ? "on" : "off", count_used(t), t->capacity);
}

static void print_head(struct context *ctx, uint32_t port, const char *label)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];
        const struct subnet_node *node = subnet_port_node(ctx->subnet, p);

        printf("%s\n", label);
        printf("  description   %s\n", node->description);
        printf("  port GUID     0x%016" PRIx64 " (%s, node GUID 0x%016" PRIx64 ")\n", p->guid.v,
               node_type_to_string(node->type), node->guid.v);
        printf("  LID           %u, state %s\n", p->lid.v, port_state_to_string(p->state));
        print_neighbour(ctx, p->neighbour);
        if (ctx->observed->tables[port].source == TABLE_READ)
                printf("  table         %u of %u entries used\n", count_used(&ctx->observed->tables[port]),
                       ctx->observed->tables[port].capacity);
}

static bool holds(const struct p_key *keys, uint32_t n, struct p_key key)
{
        for (uint32_t i = 0; i < n; i++)
                if (keys[i].v == key.v)
                        return true;
        return false;
}

/* What the policy says of one entry: the line that wants it, or that nothing does. */
static const char *entry_source(struct context *ctx, uint32_t port, struct p_key key)
{
        const struct desired_port *wanted;
        const struct port_membership *membership;

        if (!ctx->desired)
                return "";
        wanted = &ctx->desired->ports[port];
        if (!holds(wanted->wanted, wanted->n_wanted, key))
                return "not in the policy";
        return output_line(ctx, port, p_key_base(key), &membership);
}

static int add_entry(struct context *ctx, struct table *t, uint32_t port, const char *index, struct p_key key)
{
        const char *source = entry_source(ctx, port, key);
        char p_key[8];

        if (!source)
                return -ENOMEM;
        (void) snprintf(p_key, sizeof(p_key), "0x%04x", key.v);
        return table_row(t, NULL, index, p_key, p_key_is_full(key) ? "full" : "limited",
                         output_partition(ctx, p_key_base(key)), source);
}

static int add_entries(struct context *ctx, struct table *t, uint32_t port)
{
        const struct observed_table *table = &ctx->observed->tables[port];
        const struct desired_port *wanted = ctx->desired ? &ctx->desired->ports[port] : NULL;
        char index[8];

        for (uint32_t i = 0; i < table->capacity; i++) {
                if (!p_key_is_used(table->entries[i]))
                        continue;
                (void) snprintf(index, sizeof(index), "%u", i);
                if (add_entry(ctx, t, port, index, table->entries[i]) < 0)
                        return -ENOMEM;
        }
        for (uint32_t i = 0; wanted && i < wanted->n_wanted; i++)
                if (!holds(table->entries, table->capacity, wanted->wanted[i]) &&
                    add_entry(ctx, t, port, "missing", wanted->wanted[i]) < 0)
                        return -ENOMEM;
        return 0;
}

static int print_port(struct context *ctx, uint32_t port)
{
        static const struct table_column columns[] = {
                { "INDEX", TABLE_RIGHT },    { "P_KEY", TABLE_LEFT },  { "MEMBERSHIP", TABLE_LEFT },
                { "PARTITION", TABLE_LEFT }, { "POLICY", TABLE_LEFT },
        };
        const char *label = subnet_port_label(ctx->arena, ctx->subnet, port), *why;
        _cleanup_table_ struct table *t = NULL;

        if (!label || table_new(columns, ctx->policy ? ELEMENTS(columns) : 3, &t) < 0)
                return -ENOMEM;
        print_head(ctx, port, label);
        if (ctx->observed->tables[port].source != TABLE_READ) {
                why = output_failure(ctx, port);
                printf("  not read: %s\n", why ?: "?");
                return 0;
        }
        if (add_entries(ctx, t, port) < 0)
                return -ENOMEM;
        return table_print(t);
}

int text_show_port(struct context *ctx, const struct ports_result *r)
{
        int error = text_findings(ctx, true);

        for (uint32_t i = 0; error >= 0 && i < r->n_ports; i++) {
                if (i > 0)
                        putchar('\n');
                error = print_port(ctx, r->ports[i]);
        }
        return error;
}
