/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

static json_t *place_object(struct doc *d, const struct context *ctx, const struct diagnosis_place *place)
{
        json_t *o = json_object();

        if (place->port != SUBNET_NONE)
                doc_put_port(d, o, ctx, place->port);
        if (*place->text)
                doc_put(d, o, "text", doc_text(place->text));
        return o;
}

/* As any other finding, with more beside it. */
static json_t *diagnosis_object(struct doc *d, const struct context *ctx, const struct diagnosis *item)
{
        json_t *o = json_object(), *where = json_array();

        for (uint32_t i = 0; i < item->n_places; i++)
                doc_append(d, where, place_object(d, ctx, &item->places[i]));
        doc_put(d, o, "file", json_null());
        doc_put(d, o, "line", json_integer(0));
        doc_put(d, o, "column", json_integer(0));
        doc_put(d, o, "severity", doc_text(finding_severity_to_string(diagnosis_severity(item->code))));
        doc_put(d, o, "code", doc_text(diagnosis_code_to_string(item->code)));
        doc_put(d, o, "text", doc_text(item->title));
        doc_put(d, o, "where", where);
        doc_put(d, o, "more", json_integer(item->n_more));
        doc_put(d, o, "why", doc_text(diagnosis_why(item->code)));
        doc_put(d, o, "advice", doc_text(diagnosis_advice(item->code)));
        return o;
}

static json_t *subnet_managers(struct doc *d, const struct context *ctx, const struct probe_result *probe)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < ctx->subnet->n_ports; i++) {
                const struct probe_port *p = &probe->ports[i];
                json_t *o;

                if (!p->sm_info.asked)
                        continue;
                o = json_object();
                doc_put_port(d, o, ctx, i);
                doc_put(d, o, "state",
                        probe_is_answered(&p->sm_info) ? doc_text(sm_state_to_string(p->sm.state)) : json_null());
                doc_put(d, o, "priority", probe_is_answered(&p->sm_info) ? json_integer(p->sm.priority) : json_null());
                doc_append(d, array, o);
        }
        return array;
}

int as_json_doctor(struct context *ctx, const struct doctor_result *r, enum exit_status status)
{
        const struct diagnoses *all = &r->diagnoses;
        _cleanup_doc_ struct doc d = {};
        json_t *findings;

        doc_begin(&d, ctx, status == EXIT_DONE);
        findings = json_object_get(d.root, "findings");
        for (uint32_t i = 0; i < all->n; i++)
                doc_append(&d, findings, diagnosis_object(&d, ctx, &all->items[i]));
        doc_put(&d, d.root, "errors", json_integer(all->n_errors));
        doc_put(&d, d.root, "warnings", json_integer(all->n_warnings));
        doc_put(&d, d.root, "notes", json_integer(all->n_notes));
        doc_put(&d, d.root, "policy", ctx->policy ? doc_text(ctx->policy->file) : json_null());
        if (!r->facts->subnet)
                return doc_print(&d);
        doc_put(&d, d.root, "nodes", json_integer(ctx->subnet->n_nodes));
        doc_put(&d, d.root, "endports", json_integer(ctx->subnet->n_by_port_guid));
        doc_put(&d, d.root, "subnet_managers", subnet_managers(&d, ctx, r->facts->probe));
        return doc_print(&d);
}
