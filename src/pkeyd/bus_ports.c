/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_ports.h"

#include <errno.h>
#include <string.h>

#include "pins/claims.h"
#include "pkeyd/bus_message.h"
#include "policy/selector_match.h"

#define BUS_PORT         "(ttyqsyy)"
#define BUS_PORT_SIZE    48 /* about so many bytes, besides its name */
#define ERROR_NOT_READY  "org.pkeyd1.Error.NotReady"

static size_t size_of(const struct subnet *s)
{
        size_t size = 0;

        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                size += BUS_PORT_SIZE + strlen(s->nodes[s->ports[s->by_port_guid[i]].node].name);
        return size;
}

static void append_port(struct bus_builder *b, const struct matcher *names, const struct subnet_port *p)
{
        const struct subnet_node *node = &names->subnet->nodes[p->node];

        bus_append(b, BUS_PORT, p->guid.v, node->guid.v, p->number, p->lid.v, names->has_twin[p->node] ? "" : node->name, node->type,
                   p->state);
}

int bus_ports_reply(sd_bus_message *call, const struct control_status *status, sd_bus_error *error)
{
        _cleanup_arena_ struct arena *a = arena_new();
        const struct subnet *s = NULL;
        struct bus_builder reply;
        struct matcher names;
        int r;

        if (!status->snapshot || !status->snapshot->subnet)
                return sd_bus_error_set(error, ERROR_NOT_READY, "pkeyd has not seen the fabric yet; call again later");
        r = a ? pins_view(a, status->pins, status->snapshot->subnet, &s) ?: matcher_init(&names, a, NULL, s, NULL) : -ENOMEM;
        r = r ?: bus_check_queue(call, error) ?: bus_check_size(size_of(s), error);
        if (r < 0)
                return r;
        reply = bus_begin_reply(call);
        bus_open(&reply, 'a', BUS_PORT);
        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                append_port(&reply, &names, &s->ports[s->by_port_guid[i]]);
        bus_close(&reply);
        return bus_send(&reply);
}
