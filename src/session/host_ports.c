/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/host_ports.h"

#include <errno.h>
#include <string.h>

#define VERBS_CLASS "/sys/class/infiniband_verbs" /* there with ib_uverbs */

/* --- problems -------------------------------------------------------------------------------------------------------- */

static int complain_scan(struct context *ctx, int error)
{
        struct findings *f = &ctx->findings;

        /* libibverbs returns the same for a kernel without verbs */
        if (error == -ENODEV && access(VERBS_CLASS, F_OK) < 0)
                error = -ENOSYS;
        switch (-error) {
        case ENOMEM:
                return -ENOMEM;
        case ENOSYS:
                return findings_error(f, FINDING_HOST_NO_DEVICE,
                                      "modprobe ib_uverbs; rdma-core loads it at boot where it is installed",
                                      "the kernel of this host has no RDMA verbs");
        case ENODEV:
                return findings_error(f, FINDING_HOST_NO_DEVICE,
                                      "ibv_devinfo shows them; is the driver loaded, and its libibverbs provider "
                                      "(ibverbs-providers) installed?", "no InfiniBand device on this host");
        case EACCES:
        case EPERM:
                return findings_error(f, FINDING_HOST_NO_PERMISSION,
                                      "its mode should be 0666, as the kernel creates it; a udev rule of this host changes that",
                                      "permission denied for /dev/infiniband/uverbs*");
        }
        return findings_error(f, FINDING_HOST_VERBS, NULL, "libibverbs: %s", strerror(-error));
}

static int complain_no_port(struct context *ctx, const char *other)
{
        const struct options *o = ctx->options;
        struct findings *f = &ctx->findings;

        if (other)
                return findings_error(f, FINDING_HOST_NO_DEVICE, NULL,
                                      "no port of this host is InfiniBand: %s has another link layer (RoCE or iWARP)", other);
        if (o->ca || o->port)
                return findings_error(f, FINDING_HOST_NO_DEVICE, NULL, "this host has no InfiniBand device '%s'%s",
                                      o->ca ?: "(any)", o->port ? " with that port" : "");
        return findings_error(f, FINDING_HOST_NO_DEVICE, NULL, "no InfiniBand device on this host");
}

/* --- ports ----------------------------------------------------------------------------------------------------------- */

static int read_table(struct context *ctx, struct verbs_host *host, size_t number, struct host_port *p)
{
        struct p_key *entries;
        int r;

        switch (p->verbs.state) {
        case PORT_STATE_NONE:
        case PORT_STATE_DOWN:
                p->is_down = true;
                return 0;
        case PORT_STATE_INIT:
                p->unread = "no subnet manager has brought it up yet; its table means nothing";
                return 0;
        case PORT_STATE_ARMED:
        case PORT_STATE_ACTIVE:
                break;
        }
        r = verbs_host_read_table(host, number, ctx->arena, &entries, &p->n_entries);
        if (r == 0)
                p->entries = entries;
        else
                p->unread = arena_strdup(ctx->arena, strerror(-r));
        return r == -ENOMEM || (r < 0 && !p->unread) ? -ENOMEM : 0;
}

static bool is_chosen(const struct options *o, const struct verbs_port *p)
{
        return (!o->ca || strcmp(o->ca, p->device) == 0) && (!o->port || o->port == p->number);
}

static int read_ports(struct context *ctx, struct verbs_host *host, struct host_port *ports, uint32_t *ret_n)
{
        const char *other = NULL;
        bool is_up = false;

        for (size_t i = 0; i < verbs_host_n_ports(host); i++) {
                struct host_port *p = &ports[*ret_n];

                if (verbs_host_query(host, i, &p->verbs) < 0 || !is_chosen(ctx->options, &p->verbs))
                        continue;
                if (!p->verbs.is_infiniband) {
                        other = arena_printf(ctx->arena, "%s/%u", p->verbs.device, p->verbs.number) ?: "a port";
                        continue;
                }
                if (read_table(ctx, host, i, p) < 0)
                        return -ENOMEM;
                is_up |= !p->is_down;
                ++*ret_n;
        }
        if (*ret_n == 0)
                return complain_no_port(ctx, other);
        if (is_up)
                return 0;
        return findings_error(&ctx->findings, FINDING_HOST_PORT_DOWN, NULL, "the link of every InfiniBand port of this host%s%s is down",
                              ctx->options->ca ? " on " : "", ctx->options->ca ?: "");
}

int host_ports_read(struct context *ctx, struct host_port **ret, uint32_t *ret_n)
{
        _cleanup_verbs_host_ struct verbs_host *host = NULL;
        int r = verbs_host_new(NULL, NULL, NULL, &host) ?: verbs_host_scan(host);

        *ret_n = 0;
        if (r < 0)
                return complain_scan(ctx, r);
        if (verbs_host_n_closed(host) > 0)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                                    "%u of the RDMA devices of this host could not be opened", verbs_host_n_closed(host));
        *ret = arena_new_array(ctx->arena, struct host_port, verbs_host_n_ports(host));
        return *ret ? read_ports(ctx, host, *ret, ret_n) : -ENOMEM;
}
