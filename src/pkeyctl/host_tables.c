/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/host_tables.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* The kernel's cache follows the SMA a moment later: a difference is one only if it stays. */
#define ATTEMPTS   6
#define PAUSE_NSEC (200 * 1000 * 1000)

static bool is_up(const struct verbs_port *p)
{
        return p->is_infiniband && (p->state == PORT_STATE_ARMED || p->state == PORT_STATE_ACTIVE);
}

static void complain_unread(struct context *ctx, const struct verbs_port *p, int error)
{
        (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                            "%s/%u: the kernel does not tell its P_Key table: %s", p->device, p->number,
                            strerror(-error));
}

/* Tables of the ports that are in the snapshot and up. */
static int read_tables(struct context *ctx, struct verbs_host *host, bool complain, struct kernel_table *tables,
                       uint32_t *ret_n)
{
        uint32_t n = 0;
        int r;

        for (size_t i = 0; i < verbs_host_n_ports(host); i++) {
                struct verbs_port port;
                struct p_key *entries;
                uint32_t index;

                if (verbs_host_query(host, i, &port) < 0 || !is_up(&port))
                        continue;
                index = subnet_find_endport(ctx->subnet, port.port_guid);
                if (index == SUBNET_NONE)
                        continue;
                r = verbs_host_read_table(host, i, ctx->arena, &entries, &tables[n].n_entries);
                if (r == -ENOMEM)
                        return r;
                if (r < 0 && complain)
                        complain_unread(ctx, &port, r);
                if (r < 0)
                        continue;
                tables[n].entries = entries;
                tables[n++].port = index;
        }
        *ret_n = n;
        return 0;
}

static int compare_once(struct context *ctx, struct verbs_host *host, bool complain, struct verification *v)
{
        struct kernel_table *tables = arena_new_array(ctx->arena, struct kernel_table, verbs_host_n_ports(host));
        int r;

        if (!tables)
                return -ENOMEM;
        r = read_tables(ctx, host, complain, tables, &v->n_kernel_ports);
        if (r < 0)
                return r;
        return verbs_tables_verify(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, tables, v->n_kernel_ports, v);
}

/* The SMA's table and the kernel's are not (yet) the same. */
static bool lags(const struct verification *v, uint32_t first)
{
        for (uint32_t i = first; i < v->n_differ; i++)
                if (v->differ[i].n_kernel > 0)
                        return true;
        return false;
}

int host_tables_verify(struct context *ctx, struct verification *v)
{
        _cleanup_verbs_host_ struct verbs_host *host = NULL;
        const struct timespec pause = { .tv_nsec = PAUSE_NSEC };
        uint32_t before = v->n_differ;
        int r;

        r = verbs_host_new(NULL, NULL, NULL, &host);
        if (r < 0)
                return r;
        r = verbs_host_scan(host);
        if (r == -ENOMEM)
                return r;
        if (r == -EACCES || r == -EPERM)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                                    "may not open /dev/infiniband/uverbs*: what the kernel holds was not compared");
        if (r < 0)
                return 0;
        for (unsigned i = 0; i < ATTEMPTS; i++) {
                if (i > 0)
                        (void) nanosleep(&pause, NULL);
                v->n_differ = before;
                r = compare_once(ctx, host, i == 0, v);
                if (r < 0 || !lags(v, before))
                        return r;
        }
        return 0;
}
