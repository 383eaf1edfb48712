/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "pkeyctl/commands.h"
#include "session/host_ports.h"
#include "verify/verbs_tables.h"

/*
 * `verify --local`: sends no MAD, opens only uverbs devices, and needs no root.
 *
 * The policy is resolved against a snapshot of this host's own devices, named as they name themselves in the fabric
 * (node_desc; rdma-ndd writes the host's name and the device's there).
 */

struct local_result {
        struct host_port *ports;
        uint32_t n;
        uint32_t n_unread;
        struct local_verification verification;
};

/* The port in the snapshot. */
static uint32_t port_of(const struct context *ctx, const struct host_port *p)
{
        return subnet_find_endport(ctx->subnet, p->verbs.port_guid);
}

/* --- printers -------------------------------------------------------------------------------------------------------- */

static json_t *undecided_object(struct doc *d, const struct undecided *u)
{
        return doc_port(d, u->port, "{s:o, s:s, s:o, s:o}",
                        "partition", doc_text(d->ctx->policy->partitions[u->partition].name), "found", membership_to_string(u->found),
                        "selector", doc_text(u->unresolved ? u->unresolved->text : "SELF"),
                        "line", u->unresolved ? json_integer(u->unresolved->where.line) : json_null());
}

static json_t *unjudged_object(struct doc *d, const struct host_port *p, const char *reason)
{
        return doc_port(d, port_of(d->ctx, p), "{s:o}", "reason", doc_text(reason));
}

static void json_verify_local(struct doc *d, const void *result)
{
        const struct local_result *r = result;
        const struct local_verification *v = &r->verification;

        doc_add(d, d->root, "{s:b, s:i, s:o, s:o, s:o, s:o}", "local", true, "ports", v->v->n_ports, "differ", json_differences(d, v->v),
                "undecided", JSON_ARRAY(i, v->n_undecided, undecided_object(d, &v->undecided[i])),
                "unreachable", JSON_ARRAY_IF(i, r->n, r->ports[i].unread, unjudged_object(d, &r->ports[i], r->ports[i].unread)),
                "down", JSON_ARRAY_IF(i, r->n, r->ports[i].is_down, unjudged_object(d, &r->ports[i], "the link is down")));
}

static void print_undecided(struct context *ctx, const struct undecided *u)
{
        printf("cannot be decided on this host: %s is %s in %s; whether that is correct depends on ", output_label(ctx, u->port),
               membership_to_string(u->found), ctx->policy->partitions[u->partition].name);
        if (u->unresolved)
                printf("'%s' (%s:%u), which only the fabric shows\n", u->unresolved->text, u->unresolved->where.file,
                       u->unresolved->where.line);
        else
                puts("whether pkeyd works through this port");
}

static void text_verify_local(struct context *ctx, const void *result)
{
        const struct local_result *r = result;
        const struct verification *v = r->verification.v;

        text_kernel(ctx, v);
        for (uint32_t i = 0; i < r->verification.n_undecided; i++)
                print_undecided(ctx, &r->verification.undecided[i]);
        for (const struct host_port *p = r->ports; p < r->ports + r->n; p++)
                if (p->unread)
                        printf("not checked: %s: %s\n", output_label(ctx, port_of(ctx, p)), p->unread);
        for (const struct host_port *p = r->ports; ctx->options->verbose && p < r->ports + r->n; p++)
                if (p->is_down)
                        printf("skipped: %s: the link is down\n", output_label(ctx, port_of(ctx, p)));
        printf("%u port%s of this host: ", v->n_ports, text_plural(v->n_ports));
        if (v->n_differ > 0)
                printf("%u differ%s from the policy\n", v->n_differ, v->n_differ == 1 ? "s" : "");
        else
                puts(ctx->status == EXIT_DONE ? "every table matches the policy" : "no table that was read differs");
}

/* --- the snapshot ---------------------------------------------------------------------------------------------------- */

/* The name up to the first dot, as rdma-ndd uses it. */
static void read_host_name(char ret[HOST_NAME_MAX + 1])
{
        if (gethostname(ret, HOST_NAME_MAX) < 0)
                ret[0] = '\0';
        ret[HOST_NAME_MAX] = '\0';
        ret[strcspn(ret, ".")] = '\0';
}

/* A device without a description is named as rdma-ndd would name it. */
static int describe(struct context *ctx, const struct verbs_port *p, const char *host, const char **ret)
{
        const char *all, *name, *device;
        struct finding *item;
        int r;

        *ret = *p->description ? p->description : arena_printf(ctx->arena, "%s %s", host, p->device);
        if (!*ret)
                return -ENOMEM;
        all = node_description_escape(ctx->arena, *ret, NODE_DESCRIPTION_SIZE);
        r = all ? node_description_split(ctx->arena, all, &name, &device) : -ENOMEM;
        if (r < 0 || strcmp(name, host) == 0)
                return r;
        item = findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_NAME, NULL,
                            "%s has the name '%s' in the fabric, so lines of the policy for '%s' do not apply to it", p->device,
                            all, host);
        finding_set_hint(&ctx->findings, item, "start rdma-ndd (package rdma-core), which sets the name of the host");
        return 0;
}

/* Two functions of a card may have the same node GUID: the first one names the node. */
static int add_port(struct context *ctx, struct subnet_builder *b, const struct verbs_port *p, const char *host)
{
        struct subnet_node node = { .guid = p->node_guid, .type = NODE_CA, .num_ports = 1, .partition_cap = p->n_p_keys };
        struct subnet_port port = {
                .number = (uint8_t) p->number, .state = p->state, .guid = p->port_guid, .lid = p->lid, .lmc = p->lmc,
        };
        const char *description;
        int r = describe(ctx, p, host, &description);

        if (r < 0)
                return r;
        r = subnet_builder_add_node(b, &node, description, strlen(description));
        if (r >= 0 || r == -EEXIST)
                r = subnet_builder_add_port(b, p->node_guid, &port);
        return r == -EEXIST ? 0 : r;
}

/* The port that pkeyd works through, if it works on this host: then it has a state directory. */
static struct guid find_self(struct context *ctx)
{
        struct local_port lp = {};
        struct stat st;

        if (stat(ctx->options->state_dir ?: ctx->fabric.state_dir, &st) < 0 ||
            local_port_find(ctx->settings->ca, ctx->settings->port, &lp) < 0)
                return (struct guid) {};
        return lp.port_guid;
}

static int make_snapshot(struct context *ctx, struct local_result *result)
{
        const struct verbs_port none = {}, *self = &none, *sm = &none;
        struct guid self_guid = find_self(ctx);
        struct subnet_builder *b;
        char host[HOST_NAME_MAX + 1];
        int r;

        read_host_name(host);
        r = subnet_builder_new(ctx->arena, &b);
        for (uint32_t i = 0; i < result->n && r >= 0; i++) {
                const struct verbs_port *p = &result->ports[i].verbs;

                r = add_port(ctx, b, p, host);
                if (self_guid.v != 0 && self_guid.v == p->port_guid.v)
                        self = p;
                if (p->sm_lid.v != 0 && p->sm_lid.v >= p->lid.v && p->sm_lid.v - p->lid.v < 1 << p->lmc)
                        sm = p;
        }
        if (r >= 0)
                r = subnet_builder_finish(b, self->node_guid, (uint8_t) self->number, sm->node_guid, (uint8_t) sm->number,
                                          &ctx->subnet);
        return r;
}

/* --- the tables ------------------------------------------------------------------------------------------------------ */

/* The tables of the ports that are in the snapshot. */
static int choose_tables(struct context *ctx, struct local_result *result, struct kernel_table **ret, uint32_t *ret_n)
{
        *ret_n = 0;
        *ret = arena_new_array(ctx->arena, struct kernel_table, result->n);
        for (uint32_t i = 0; *ret && i < result->n; i++) {
                const struct host_port *p = &result->ports[i];
                uint32_t port = port_of(ctx, p);

                result->n_unread += p->unread != NULL;
                if (p->entries && port != SUBNET_NONE)
                        (*ret)[(*ret_n)++] = (struct kernel_table) { port, p->entries, p->n_entries };
        }
        return *ret ? 0 : -ENOMEM;
}

static int verify_tables(struct context *ctx, struct local_result *result)
{
        struct possibilities possible;
        struct kernel_table *tables = NULL;
        uint32_t n_tables = 0;

        return host_ports_read(ctx, &result->ports, &result->n) ?: make_snapshot(ctx, result) ?:
               choose_tables(ctx, result, &tables, &n_tables) ?:
               policy_resolve_local(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &possible) ?:
               verbs_tables_verify_local(ctx->arena, &possible, &ctx->plan_options, tables, n_tables, &result->verification);
}

int command_verify_local(struct context *ctx)
{
        static const struct printer printer = { text_verify_local, json_verify_local, OK_IF_DONE | QUIET };
        struct local_result result = {};
        int r = verify_tables(ctx, &result);

        return r < 0 ? r : output(ctx, &printer, exit_status_of(result.verification.v->n_differ > 0, result.n_unread > 0), &result);
}
