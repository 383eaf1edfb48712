/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "util/nearest.h"
#include "verify/explain.h"

/* One base in `show partitions`. */
struct partition_row {
        uint16_t base;
        int partition;                 /* of the policy; -1: nobody asked for it */
        struct member_count by_policy, in_hardware;
};

struct partitions_result {
        const struct partition_row *rows;
        uint32_t n_rows;
        uint32_t n_unread;             /* endports whose tables are not counted */
};

struct ports_result {
        const uint32_t *ports;
        uint32_t n_ports;
};

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

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

static void json_show_ports(struct doc *d, const void *result)
{
        const struct ports_result *r = result;
        json_t *ports = json_array();

        for (uint32_t i = 0; i < r->n_ports; i++)
                doc_append(d, ports, port_object(d, r->ports[i]));
        doc_add(d, d->root, "{s:o}", "ports", ports);
}

static void json_show_partitions(struct doc *d, const void *result)
{
        const struct partitions_result *r = result;
        json_t *partitions = json_array();

        for (uint32_t i = 0; i < r->n_rows; i++) {
                const struct partition_row *row = &r->rows[i];

                doc_append(d, partitions,
                           doc_pack(d, "{s:o, s:o, s:o, s:o}", "partition",
                                    doc_text(row->partition < 0 ? NULL : output_partition(d->ctx, row->base)), "p_key",
                                    doc_base(row->base), "policy",
                                    d->ctx->policy ? json_member_count(d, &row->by_policy) : json_null(), "hardware",
                                    json_member_count(d, &row->in_hardware)));
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

static void json_show_port(struct doc *d, const void *result)
{
        const struct ports_result *r = result;
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

/* --- text --------------------------------------------------------------------------------------------------------------- */

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

static void text_show_ports(struct context *ctx, const void *result)
{
        const struct ports_result *r = result;
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

static void text_show_partitions(struct context *ctx, const void *result)
{
        const struct partitions_result *r = result;
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

static void text_show_port(struct context *ctx, const void *result)
{
        const struct ports_result *r = result;

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

/* --- show ports --------------------------------------------------------------------------------------------------------- */

/* node2 before node10 */
static int compare_ports(const void *pa, const void *pb, void *userdata)
{
        const struct context *ctx = userdata;
        uint32_t a = *(const uint32_t *) pa, b = *(const uint32_t *) pb;

        return strverscmp(output_node(ctx, a), output_node(ctx, b)) ?: ORDER(a, b);
}

static int collect_ports(struct context *ctx, struct ports_result *ret)
{
        uint32_t *ports = arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_ports), n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++)
                if (subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[p]))
                        ports[n++] = p;
        qsort_r(ports, n, sizeof(*ports), compare_ports, ctx);
        *ret = (struct ports_result) { ports, n };
        return 0;
}

/* What was asked for and could not be read makes it a partial answer. */
static int output_ports(struct context *ctx, const struct printer *printer, const struct ports_result *p)
{
        enum exit_status status = EXIT_DONE;

        for (uint32_t i = 0; i < p->n_ports; i++)
                if (ctx->observed->tables[p->ports[i]].source != TABLE_READ)
                        status = EXIT_PARTIAL;
        return output(ctx, printer, status, p);
}

int command_show_ports(struct context *ctx)
{
        static const struct printer printer = { text_show_ports, json_show_ports, TERSE };
        struct ports_result result;
        int r = collect_ports(ctx, &result);

        return r < 0 ? r : output_ports(ctx, &printer, &result);
}

/* --- show partitions ------------------------------------------------------------------------------------------------- */

static int count_table(struct arena *a, struct member_count *counts, const struct p_key *entries, uint32_t n)
{
        struct explain_table table;
        int r;

        r = explain_table_make(a, entries, n, &table);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < table.n_levels; i++)
                member_count_add(&counts[table.levels[i].base], explain_table_membership(&table, table.levels[i].base));
        return 0;
}

/* Counts of every base, indexed by it: those wanted, and those in the tables. */
static int count_all(struct context *ctx, struct member_count *wanted, struct member_count *held, uint32_t *ret_unread)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        uint32_t unread = 0;
        int r;

        if (!scratch)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++) {
                const struct observed_table *t = &ctx->observed->tables[p];

                if (ctx->subnet->ports[p].role != PORT_ENDPORT)
                        continue;
                if (ctx->desired) {
                        r = count_table(scratch, wanted, ctx->desired->ports[p].wanted, ctx->desired->ports[p].n_wanted);
                        if (r < 0)
                                return r;
                }
                if (t->source != TABLE_READ) {
                        unread++;
                        continue;
                }
                r = count_table(scratch, held, t->entries, t->capacity);
                if (r < 0)
                        return r;
        }
        *ret_unread = unread;
        return 0;
}

static bool is_empty(const struct member_count *c)
{
        return c->full == 0 && c->limited == 0 && c->both == 0;
}

/* A row for each base that is in the policy or in a table. */
static int make_rows(struct context *ctx, const struct member_count *wanted, const struct member_count *held,
                     struct partitions_result *ret)
{
        struct partition_row *rows = arena_new_array(ctx->arena, struct partition_row, P_KEY_BASE_MASK + 1);
        uint32_t n = 0;

        if (!rows)
                return -ENOMEM;
        for (uint32_t base = 1; base <= P_KEY_BASE_MASK; base++) {
                int partition = ctx->policy ? policy_find_base(ctx->policy, (uint16_t) base) : -1;

                if (partition < 0 && is_empty(&held[base]))
                        continue;
                rows[n++] = (struct partition_row) { (uint16_t) base, partition, wanted[base], held[base] };
        }
        ret->rows = rows;
        ret->n_rows = n;
        return 0;
}

int command_show_partitions(struct context *ctx)
{
        static const struct printer printer = { text_show_partitions, json_show_partitions, TERSE };
        struct partitions_result partitions = {};
        struct member_count *wanted, *held;
        int r;

        wanted = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1);
        held = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1);
        if (!wanted || !held)
                return -ENOMEM;
        r = count_all(ctx, wanted, held, &partitions.n_unread);
        if (r == 0)
                r = make_rows(ctx, wanted, held, &partitions);
        if (r < 0)
                return r;
        return output(ctx, &printer, partitions.n_unread > 0 ? EXIT_PARTIAL : EXIT_DONE, &partitions);
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

int command_show_port(struct context *ctx)
{
        static const struct printer printer = { text_show_port, json_show_port, TERSE };
        const struct ports_result result = { ctx->selected[0].ports, ctx->selected[0].n };

        return output_ports(ctx, &printer, &result);
}
