/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

const char *diagnosis_text(struct diagnosis_list *l, const char *format, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, format);
        text = arena_vprintf(l->arena, format, ap);
        va_end(ap);
        if (text)
                return text;
        l->out_of_memory = true;
        return "";
}

bool diagnosis_is_host_port(const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);

        return p->role == PORT_ENDPORT && node->type != NODE_SWITCH && (*node->name || !*node->description);
}

void places_add(struct diagnosis_list *l, struct places *p, uint32_t port, const char *text)
{
        uint32_t n_ports = l->facts->subnet ? l->facts->subnet->n_ports : 0;

        if (p->n == 0) {
                p->items = arena_new_array(l->arena, struct diagnosis_place, DOCTOR_MAX_PLACES);
                p->ports = arena_new_array(l->arena, uint32_t, n_ports);
        }
        if (!p->items || !p->ports) {
                l->out_of_memory = true;
                return;
        }
        if (p->n < DOCTOR_MAX_PLACES)
                p->items[p->n] = (struct diagnosis_place) { port, text ?: "" };
        if (p->n < n_ports)
                p->ports[p->n] = port;
        p->n++;
        p->has_texts |= text && *text;
}

void diagnosis_add(struct diagnosis_list *l, enum diagnosis_code code, const struct places *places, const char *format, ...)
{
        struct diagnosis *d = &l->items[code];
        const char *title;
        va_list ap;

        if (places && places->n == 0)
                return;
        va_start(ap, format);
        title = arena_vprintf(l->arena, format, ap);
        va_end(ap);
        if (!title) {
                l->out_of_memory = true;
                return;
        }
        *d = (struct diagnosis) { .code = code, .title = title };
        if (!places)
                return;
        d->places = places->items;
        d->n_places = MIN(places->n, DOCTOR_MAX_PLACES);
        d->n_more = places->n - d->n_places;
        if (places->has_texts)
                return;
        d->ports = places->ports;
        d->n_ports = places->n;
}
