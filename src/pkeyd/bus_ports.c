/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_ports.h"

#include <errno.h>
#include <string.h>

#include "pins/claims.h"
#include "pkeyd/bus_message.h"
#include "policy/selector_match.h"

#define BUS_PORT         "ttyqsyy"
#define BUS_PORT_SIZE    48 /* about so many bytes, besides its name */
#define ERROR_NOT_READY  "org.pkeyd1.Error.NotReady"

static size_t size_of(const struct subnet *s)
{
        size_t size = 0;

        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                size += BUS_PORT_SIZE + strlen(s->nodes[s->ports[s->by_port_guid[i]].node].name);
        return size;
}

static int append_port(sd_bus_message *m, const struct matcher *names, const struct subnet_port *p)
{
        const struct subnet_node *node = &names->subnet->nodes[p->node];
        int r = sd_bus_message_open_container(m, 'r', BUS_PORT);

        if (r >= 0)
                r = sd_bus_message_append(m, "ttyq", p->guid.v, node->guid.v, p->number, p->lid.v);
        if (r >= 0)
                r = bus_append_text(m, names->has_twin[p->node] ? "" : node->name);
        if (r >= 0)
                r = sd_bus_message_append(m, "yy", (uint8_t) node->type, (uint8_t) p->state);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_ports(sd_bus_message *m, const struct matcher *names)
{
        const struct subnet *s = names->subnet;
        int r = sd_bus_message_open_container(m, 'a', "(" BUS_PORT ")");

        for (uint32_t i = 0; r >= 0 && i < s->n_by_port_guid; i++)
                r = append_port(m, names, &s->ports[s->by_port_guid[i]]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_ports_reply(sd_bus_message *call, const struct control_status *status, sd_bus_error *error)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_arena_ struct arena *a = arena_new();
        const struct subnet *s = NULL;
        struct matcher names;
        int r;

        if (!status->snapshot || !status->snapshot->subnet)
                return sd_bus_error_set(error, ERROR_NOT_READY, "pkeyd has not seen the fabric yet; call again later");
        r = a ? pins_view(a, status->pins, status->snapshot->subnet, &s) ?: matcher_init(&names, a, NULL, s, NULL) : -ENOMEM;
        r = r ?: bus_check_queue(call, error) ?: bus_check_size(size_of(s), error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_ports(reply, &names);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}
