/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

#include <errno.h>

const struct diagnosis_words diagnosis_words[DIAGNOSIS_CODE_MAX] = {
#define X(name, text, severity, why, advice) [DIAGNOSIS_##name] = {text, why, advice, FINDING_##severity},
#include "doctor/diagnosis-codes.def"
#undef X
};

/* --- the list ------------------------------------------------------------------------------------------------------------- */

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

/* --- all diagnoses --------------------------------------------------------------------------------------------------------- */

static void sort_worst_first(const struct diagnosis_list *l, struct diagnosis *items, struct diagnoses *ret)
{
        for (int severity = FINDING_ERROR; severity >= FINDING_NOTE; severity--)
                for (int code = 0; code < DIAGNOSIS_CODE_MAX; code++)
                        if (l->items[code].title && (int) diagnosis_words[code].severity == severity) {
                                items[ret->n++] = l->items[code];
                                ret->n_errors += severity == FINDING_ERROR;
                                ret->n_warnings += severity == FINDING_WARNING;
                                ret->n_notes += severity == FINDING_NOTE;
                        }
}

int doctor_diagnose(struct arena *a, const struct doctor_facts *facts, struct diagnoses *ret)
{
        struct diagnosis *items = arena_new_array(a, struct diagnosis, DIAGNOSIS_CODE_MAX);
        struct diagnosis_list *l = arena_new_object(a, struct diagnosis_list);

        if (!items || !l)
                return -ENOMEM;
        l->arena = a;
        l->facts = facts;
        if (facts->subnet) {
                diagnose_protection(l);
                diagnose_tables(l);
                diagnose_names(l);
        }
        diagnose_host(l);
        if (l->out_of_memory)
                return -ENOMEM;
        *ret = (struct diagnoses) { .items = items };
        sort_worst_first(l, items, ret);
        return 0;
}
