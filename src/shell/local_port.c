/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <string.h>

#include "shell/umad_port.h"

/* DOWN and unknown states rank lowest: such a port is only reported as down. Otherwise a higher state is better. */
static unsigned rank(enum port_state s)
{
        return MAX((unsigned) s, (unsigned) PORT_STATE_DOWN);
}

/* Old kernels and simulators have no link_layer file; libibumad reports "IB" then. */
static bool is_infiniband(const umad_port_t *p)
{
        return strcmp(p->link_layer, "InfiniBand") == 0 || strcmp(p->link_layer, "IB") == 0 || p->link_layer[0] == 0;
}

static void fill_port(const umad_ca_t *ca, unsigned number, struct local_port *ret)
{
        const umad_port_t *p = ca->ports[number];

        *ret = (struct local_port) {
                .port = number,
                .port_guid.v = be64toh(p->port_guid),
                .lid.v = (uint16_t) p->base_lid,
                .sm_lid.v = (uint16_t) p->sm_lid,
                .state = p->state <= PORT_STATE_ACTIVE ? (enum port_state) p->state : PORT_STATE_NONE,
        };
        memcpy(ret->ca, ca->ca_name, strnlen(ca->ca_name, sizeof(ca->ca_name)));
}

/* Replaces *best by a better port of this CA, and counts all of them. port 0: any port of it. */
static int check_ca(const char *name, unsigned port, struct local_port *best, unsigned *best_rank, unsigned *n)
{
        umad_ca_t ca = {};
        int r = umad_get_ca(name, &ca);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < UMAD_CA_MAX_PORTS; i++) {
                struct local_port found;

                if (!ca.ports[i] || (port != 0 && port != i) || !is_infiniband(ca.ports[i]))
                        continue;
                fill_port(&ca, i, &found);
                (*n)++;
                if (rank(found.state) > *best_rank) {
                        *best = found;
                        *best_rank = rank(found.state);
                }
        }
        (void) umad_release_ca(&ca);
        return 0;
}

int local_port_find(const char *ca, unsigned port, struct local_port *ret)
{
        char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN] = {};
        struct local_port best;
        unsigned best_rank = 0, n_choices = 0;
        int n = 1;

        if (umad_init() < 0)
                return -ENODEV;
        if (ca && (strlen(ca) >= UMAD_CA_NAME_LEN || strchr(ca, '/')))
                return -ENODEV;
        if (ca)
                strcpy(names[0], ca);
        else
                n = umad_get_cas_names(names, UMAD_MAX_DEVICES);
        for (int i = 0; i < n; i++)
                /* A device that disappears meanwhile is skipped. */
                (void) check_ca(names[i], port, &best, &best_rank, &n_choices);

        if (best_rank == 0)
                return -ENODEV;
        *ret = best;
        ret->n_choices = n_choices;
        return best_rank == rank(PORT_STATE_DOWN) ? -ENETDOWN : 0;
}

static size_t add_guids(const char *name, struct guid *ret, size_t n, size_t max)
{
        umad_ca_t ca = {};

        if (umad_get_ca(name, &ca) < 0)
                return n; /* the device disappeared meanwhile */
        for (unsigned i = 0; i < UMAD_CA_MAX_PORTS && n < max; i++)
                if (ca.ports[i] && is_infiniband(ca.ports[i]) && ca.ports[i]->port_guid != 0)
                        ret[n++].v = be64toh(ca.ports[i]->port_guid);
        (void) umad_release_ca(&ca);
        return n;
}

size_t local_port_guids(struct guid *ret, size_t max)
{
        char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN] = {};
        int n_names = umad_init() < 0 ? 0 : umad_get_cas_names(names, UMAD_MAX_DEVICES);
        size_t n = 0;

        for (int i = 0; i < n_names; i++)
                n = add_guids(names[i], ret, n, max);
        return n;
}

int local_port_complain(const char *ca, unsigned port, struct findings *findings)
{
        static const char hint[] = "ibstat lists them; check that the module ib_umad is loaded";
        const enum finding_code code = FINDING_HOST_NO_DEVICE;

        if (ca && port)
                return findings_error(findings, code, hint, "this host has no InfiniBand port '%s' %u", ca, port);
        if (ca)
                return findings_error(findings, code, hint, "this host has no InfiniBand device '%s'", ca);
        if (port)
                return findings_error(findings, code, hint, "no InfiniBand device of this host has a port %u", port);
        return findings_error(findings, code, hint, "no InfiniBand device on this host");
}
