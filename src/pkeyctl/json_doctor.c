/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

static json_t *place_object(struct doc *d, const struct diagnosis_place *place)
{
        json_t *o = place->port != SUBNET_NONE ? doc_port(d, place->port, "{}") : json_object();

        if (*place->text)
                doc_add(d, o, "{s:o}", "text", doc_text(place->text));
        return o;
}

/* As any other finding, with more beside it. */
static json_t *diagnosis_object(struct doc *d, const struct diagnosis *item)
{
        const struct diagnosis_words *words = &diagnosis_words[item->code];
        json_t *where = json_array();

        for (uint32_t i = 0; i < item->n_places; i++)
                doc_append(d, where, place_object(d, &item->places[i]));
        return doc_pack(d, "{s:n, s:i, s:i, s:s, s:s, s:o, s:o, s:i, s:o, s:o}", "file", "line", 0, "column", 0,
                        "severity", finding_severity_to_string(words->severity), "code", words->code, "text",
                        doc_text(item->title), "where", where, "more", item->n_more, "why", doc_text(words->why), "advice",
                        doc_text(words->advice));
}

static json_t *subnet_managers(struct doc *d, const struct probe_result *probe)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < d->ctx->subnet->n_ports; i++) {
                const struct probe_port *p = &probe->ports[i];
                bool answered = probe_is_answered(&p->sm_info);

                if (p->sm_info.asked)
                        doc_append(d, array,
                                   doc_port(d, i, "{s:o, s:o}", "state",
                                            doc_text(answered ? sm_state_to_string(p->sm.state) : NULL), "priority",
                                            answered ? json_integer(p->sm.priority) : json_null()));
        }
        return array;
}

void as_json_doctor(struct doc *d, const struct result *result)
{
        const struct doctor_result *r = &result->doctor;
        const struct diagnoses *all = &r->diagnoses;

        for (uint32_t i = 0; i < all->n; i++)
                doc_append(d, json_object_get(d->root, "findings"), diagnosis_object(d, &all->items[i]));
        doc_add(d, d->root, "{s:i, s:i, s:i, s:o}", "errors", all->n_errors, "warnings", all->n_warnings, "notes",
                all->n_notes, "policy", doc_text(d->ctx->policy ? d->ctx->policy->file : NULL));
        if (r->facts->subnet)
                doc_add(d, d->root, "{s:i, s:i, s:o}", "nodes", d->ctx->subnet->n_nodes, "endports",
                        d->ctx->subnet->n_by_port_guid, "subnet_managers", subnet_managers(d, r->facts->probe));
}
