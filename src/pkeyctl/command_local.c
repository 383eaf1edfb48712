/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "shell/verbs_port.h"
#include "verify/verbs_tables.h"

/* A port of this host whose table could not be judged. */
struct local_unread {
        uint32_t port;   /* of the snapshot of this host */
        const char *why;
};

/* What `verify --local` found; ctx->subnet is a snapshot of this host alone. */
struct local_result {
        struct local_verification verification;
        const struct local_unread *unread; /* these count: an answer was expected */
        const struct local_unread *down;   /* these do not: nothing is plugged in */
        uint32_t n_unread, n_down;
};

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *unread_ports(struct doc *d, const struct local_unread *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                doc_append(d, array, doc_port(d, ports[i].port, "{s:o}", "reason", doc_text(ports[i].why)));
        return array;
}

static json_t *undecided(struct doc *d, const struct local_verification *v)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];

                doc_append(d, array,
                           doc_port(d, u->port, "{s:o, s:s, s:o, s:o}", "partition",
                                    doc_text(d->ctx->policy->partitions[u->partition].name), "found",
                                    membership_to_string(u->found), "selector",
                                    doc_text(u->unresolved ? u->unresolved->text : "SELF"), "line",
                                    u->unresolved ? json_integer(u->unresolved->where.line) : json_null()));
        }
        return array;
}

static void json_verify_local(struct doc *d, const void *result)
{
        const struct local_result *r = result;
        const struct verification *v = r->verification.v;

        doc_add(d, d->root, "{s:b, s:i, s:o, s:o, s:o, s:o}", "local", true, "ports", v->n_ports, "differ",
                json_differences(d, v), "undecided", undecided(d, &r->verification), "unreachable",
                unread_ports(d, r->unread, r->n_unread), "down", unread_ports(d, r->down, r->n_down));
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

static void print_unread(struct context *ctx, const char *what, const struct local_unread *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                printf("%s: %s: %s\n", what, output_label(ctx, ports[i].port), ports[i].why);
}

static void print_undecided(struct context *ctx, const struct local_verification *v)
{
        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];

                printf("not decided here: %s is %s in %s, which is right ", output_label(ctx, u->port),
                       membership_to_string(u->found), ctx->policy->partitions[u->partition].name);
                if (u->unresolved)
                        printf("or wrong by '%s' (%s:%u), and that needs the fabric\n", u->unresolved->text,
                               u->unresolved->where.file, u->unresolved->where.line);
                else
                        puts("or wrong by whether pkeyd works through this port");
        }
}

static void text_verify_local(struct context *ctx, const void *result)
{
        const struct local_result *r = result;
        const struct verification *v = r->verification.v;

        text_kernel(ctx, v);
        print_undecided(ctx, &r->verification);
        print_unread(ctx, "not judged", r->unread, r->n_unread);
        if (ctx->options->verbose)
                print_unread(ctx, "left out", r->down, r->n_down);
        printf("%u port%s of this host: ", v->n_ports, text_plural(v->n_ports));
        if (v->n_differ > 0)
                printf("%u differ%s from the policy\n", v->n_differ, v->n_differ == 1 ? "s" : "");
        else
                puts(ctx->status == EXIT_DONE ? "every table is as the policy says" : "no table that was read differs");
}

#define VERBS_CLASS "/sys/class/infiniband_verbs" /* there with ib_uverbs */

/*
 * `verify --local`: no MAD is sent, no device is opened but uverbs, nobody needs to be root.
 *
 * The policy is resolved against a snapshot of this host's own devices, named as they name themselves in the fabric
 * (node_desc; what rdma-ndd writes there is the host's name and the device's).
 */
struct local {
        struct context *ctx;
        struct verbs_host *host;
        struct verbs_port *ports;    /* those of the snapshot, and which number they have in host */
        size_t *numbers;
        uint32_t *index;             /* in the snapshot */
        uint32_t n;
        unsigned n_other;            /* ports that are not InfiniBand */
        const char *other;           /* one of them */
        struct kernel_table *tables;
        uint32_t n_tables;
        struct local_unread *unread, *down;
        struct local_result *result;
};

/* --- what is there ------------------------------------------------------------------------------------------------ */

static int complain_scan(struct context *ctx, int error)
{
        struct findings *f = &ctx->findings;

        /* libibverbs finds nothing either way */
        if (error == -ENODEV && access(VERBS_CLASS, F_OK) < 0)
                error = -ENOSYS;
        switch (-error) {
        case ENOMEM:
                return -ENOMEM;
        case ENOSYS:
                return findings_error(f, FINDING_HOST_NO_DEVICE, "is ib_uverbs loaded?",
                                      "the kernel of this host has no RDMA verbs");
        case ENODEV:
                return findings_error(f, FINDING_HOST_NO_DEVICE,
                                      "ibv_devinfo shows them; is the driver loaded, and its libibverbs provider "
                                      "(ibverbs-providers) installed?",
                                      "no InfiniBand device on this host");
        case EACCES:
        case EPERM:
                return findings_error(f, FINDING_HOST_NO_PERMISSION,
                                      "its mode should be 0666; the udev rules of rdma-core see to that",
                                      "may not open /dev/infiniband/uverbs*");
        }
        return findings_error(f, FINDING_HOST_VERBS, NULL, "libibverbs: %s", strerror(-error));
}

static bool is_asked_for(const struct context *ctx, const struct verbs_port *p)
{
        const struct options *o = ctx->options;

        return (!o->ca || strcmp(o->ca, p->device) == 0) && (!o->port || o->port == p->number);
}

static int find_ports(struct local *l)
{
        size_t n = verbs_host_n_ports(l->host);
        struct arena *a = l->ctx->arena;

        l->ports = arena_new_array(a, struct verbs_port, n);
        l->numbers = arena_new_array(a, size_t, n);
        l->index = arena_new_array(a, uint32_t, n);
        l->tables = arena_new_array(a, struct kernel_table, n);
        l->unread = arena_new_array(a, struct local_unread, n);
        l->down = arena_new_array(a, struct local_unread, n);
        if (!l->ports || !l->numbers || !l->index || !l->tables || !l->unread || !l->down)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct verbs_port *p = &l->ports[l->n];

                if (verbs_host_query(l->host, i, p) < 0 || !is_asked_for(l->ctx, p))
                        continue;
                if (!p->is_infiniband) {
                        l->other = arena_printf(a, "%s/%u", p->device, p->number);
                        l->n_other++;
                        continue;
                }
                l->numbers[l->n++] = i;
        }
        return 0;
}

static int complain_no_port(struct local *l)
{
        const struct options *o = l->ctx->options;
        struct findings *f = &l->ctx->findings;

        if (l->n_other > 0)
                return findings_error(f, FINDING_HOST_NO_DEVICE, NULL,
                                      "no port of this host is InfiniBand: %s has another link layer (RoCE or iWARP)",
                                      l->other ?: "a port");
        if (o->ca || o->port)
                return findings_error(f, FINDING_HOST_NO_DEVICE, NULL, "this host has no InfiniBand device '%s'%s",
                                      o->ca ?: "(any)", o->port ? " with that port" : "");
        return findings_error(f, FINDING_HOST_NO_DEVICE, NULL, "no InfiniBand device on this host");
}

/* --- the snapshot -------------------------------------------------------------------------------------------------- */

/* Host name up to the first dot, as rdma-ndd has it. */
static void read_host_name(char ret[HOST_NAME_MAX + 1])
{
        if (gethostname(ret, HOST_NAME_MAX) < 0)
                ret[0] = '\0';
        ret[HOST_NAME_MAX] = '\0';
        ret[strcspn(ret, ".")] = '\0';
}

/* A device that tells nothing is named as rdma-ndd would name it. */
static int describe(struct local *l, const struct verbs_port *p, const char *host, const char **ret)
{
        const char *all, *name, *device;
        struct finding *item;
        int r;

        *ret = *p->description ? p->description : arena_printf(l->ctx->arena, "%s %s", host, p->device);
        if (!*ret)
                return -ENOMEM;
        r = node_description_split(l->ctx->arena, *ret, NODE_DESCRIPTION_SIZE, &all, &name, &device);
        if (r < 0 || strcmp(name, host) == 0)
                return r;
        item = findings_add(&l->ctx->findings, FINDING_WARNING, FINDING_HOST_NAME, NULL,
                            "%s calls itself '%s' in the fabric: lines of the policy that name '%s' do not mean it", p->device,
                            all, host);
        finding_set_hint(&l->ctx->findings, item, "rdma-ndd (package rdma-core) keeps the names right");
        return 0;
}

static bool is_master_sm(const struct verbs_port *p)
{
        return p->sm_lid.v != 0 && p->sm_lid.v >= p->lid.v && p->sm_lid.v - p->lid.v < 1 << p->lmc;
}

/* Two functions of one card may have one node GUID; the first names it. */
static int add_port(struct local *l, struct subnet_builder *b, const struct verbs_port *p, const char *host)
{
        struct subnet_node node = { .guid = p->node_guid, .type = NODE_CA, .num_ports = 1, .partition_cap = p->n_p_keys };
        struct subnet_port port = {
                .number = (uint8_t) p->number, .state = p->state, .guid = p->port_guid, .lid = p->lid, .lmc = p->lmc,
        };
        const char *description;
        int r = describe(l, p, host, &description);

        if (r < 0)
                return r;
        r = subnet_builder_add_node(b, &node, description, strlen(description));
        if (r < 0 && r != -EEXIST)
                return r;
        r = subnet_builder_add_port(b, p->node_guid, &port);
        return r == -EEXIST ? 0 : r;
}

/* Where pkeyd would work, if it works here at all: its state directory says so. */
static void find_self(struct context *ctx, struct local_port *ret)
{
        struct stat st;

        if (stat(ctx->options->state_dir ?: STATE_DIR_DEFAULT, &st) < 0 ||
            local_port_find(ctx->settings.ca, ctx->settings.port, ret) < 0)
                *ret = (struct local_port) {};
}

static int make_snapshot(struct local *l)
{
        struct guid self_node = {}, sm_node = {};
        uint8_t self = 0, sm = 0;
        struct subnet_builder *b;
        struct local_port lp;
        char host[HOST_NAME_MAX + 1];
        int r;

        read_host_name(host);
        find_self(l->ctx, &lp);
        r = subnet_builder_new(l->ctx->arena, &b);
        for (uint32_t i = 0; i < l->n && r >= 0; i++) {
                const struct verbs_port *p = &l->ports[i];

                r = add_port(l, b, p, host);
                if (lp.port_guid.v != 0 && lp.port_guid.v == p->port_guid.v) {
                        self_node = p->node_guid;
                        self = (uint8_t) p->number;
                }
                if (is_master_sm(p)) {
                        sm_node = p->node_guid;
                        sm = (uint8_t) p->number;
                }
        }
        if (r >= 0)
                r = subnet_builder_finish(b, self_node, self, sm_node, sm, &l->ctx->subnet);
        for (uint32_t i = 0; i < l->n && r >= 0; i++)
                l->index[i] = subnet_find_endport(l->ctx->subnet, l->ports[i].port_guid);
        return r;
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

static void leave_out(struct local_unread *list, uint32_t *n, uint32_t port, const char *why)
{
        list[(*n)++] = (struct local_unread) { port, why };
}

static int read_table(struct local *l, uint32_t i)
{
        struct kernel_table *t = &l->tables[l->n_tables];
        const struct verbs_port *p = &l->ports[i];
        struct p_key *entries;
        int r;

        switch (p->state) {
        case PORT_STATE_NONE:
        case PORT_STATE_DOWN:
                leave_out(l->down, &l->result->n_down, l->index[i], "the link is down");
                return 0;
        case PORT_STATE_INIT:
                leave_out(l->unread, &l->result->n_unread, l->index[i],
                          "no subnet manager has brought it up yet; its table means nothing");
                return 0;
        case PORT_STATE_ARMED:
        case PORT_STATE_ACTIVE:
                break;
        }
        r = verbs_host_read_table(l->host, l->numbers[i], l->ctx->arena, &entries, &t->n_entries);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                leave_out(l->unread, &l->result->n_unread, l->index[i], strerror(-r));
                return 0;
        }
        t->entries = entries;
        t->port = l->index[i];
        l->n_tables++;
        return 0;
}

static int read_tables(struct local *l)
{
        int r = 0;

        for (uint32_t i = 0; i < l->n && r == 0; i++)
                if (l->index[i] != SUBNET_NONE)
                        r = read_table(l, i);
        if (r < 0)
                return r;
        l->result->unread = l->unread;
        l->result->down = l->down;
        if (l->n_tables + l->result->n_unread > 0)
                return 0;
        return findings_error(&l->ctx->findings, FINDING_HOST_PORT_DOWN, NULL,
                              "the link of every InfiniBand port of this host%s%s is down",
                              l->ctx->options->ca ? " on " : "", l->ctx->options->ca ?: "");
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int verify_tables(struct local *l)
{
        struct context *ctx = l->ctx;
        struct possibilities possible;
        int r;

        r = verbs_host_scan(l->host);
        if (r < 0)
                return complain_scan(ctx, r);
        if (verbs_host_n_closed(l->host) > 0)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                                    "%u of the RDMA devices of this host could not be opened", verbs_host_n_closed(l->host));
        r = find_ports(l);
        if (r == 0 && l->n == 0)
                r = complain_no_port(l);
        if (r == 0)
                r = make_snapshot(l);
        if (r == 0)
                r = read_tables(l);
        if (r == 0)
                r = policy_resolve_local(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &possible);
        if (r == 0)
                r = verbs_tables_verify_local(ctx->arena, &possible, &ctx->plan_options, l->tables, l->n_tables,
                                              &l->result->verification);
        return r;
}

int command_verify_local(struct context *ctx)
{
        _cleanup_verbs_host_ struct verbs_host *host = NULL;
        static const struct printer printer = { text_verify_local, json_verify_local, OK_IF_DONE | QUIET };
        struct local_result result = {};
        struct local l = { .ctx = ctx, .result = &result };
        int r;

        r = verbs_host_new(NULL, NULL, NULL, &host);
        l.host = host;
        if (r == 0)
                r = verify_tables(&l);
        if (r < 0)
                return r;
        return output(ctx, &printer, exit_status_of(result.verification.v->n_differ > 0, result.n_unread > 0), &result);
}
