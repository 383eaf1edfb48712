/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"
#include "pkeyctl/kernel.h"

static json_t *kernel_differences(struct doc *d, const struct discrepancy *item)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < item->n_kernel; i++) {
                const struct kernel_difference *k = &item->kernel[i];
                json_t *o = json_object();

                doc_put(d, o, "kind", doc_text(kernel_difference_kind_to_string(k->kind)));
                doc_put(d, o, "p_key", doc_p_key(d, k->key));
                doc_put(d, o, "sma_index", k->kind == KERNEL_ONLY ? json_null() : json_integer(k->sma_index));
                doc_put(d, o, "kernel_index", k->kind == KERNEL_LACKS ? json_null() : json_integer(k->kernel_index));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *differences(struct doc *d, const struct context *ctx, const struct verification *v)
{
        json_t *differ = json_array();

        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *item = &v->differ[i];
                json_t *o = json_object();

                doc_put_port(d, o, ctx, item->port);
                doc_put(d, o, "missing", doc_p_keys(d, item->missing, item->n_missing));
                doc_put(d, o, "unexpected", doc_p_keys(d, item->unexpected, item->n_unexpected));
                doc_put(d, o, "enforcement_differs", json_boolean(item->enforcement_differs));
                doc_put(d, o, "source", doc_text(discrepancy_source_to_string(item->source)));
                if (item->source == SOURCE_KERNEL)
                        doc_put(d, o, "kernel", kernel_differences(d, item));
                doc_append(d, differ, o);
        }
        return differ;
}

int as_json_verify(struct context *ctx, const struct verification *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, status == EXIT_DONE);
        doc_put(&d, d.root, "ports", json_integer(r->n_ports));
        doc_put(&d, d.root, "kernel_ports", json_integer(r->n_kernel_ports));
        doc_put(&d, d.root, "differ", differences(&d, ctx, r));
        doc_put(&d, d.root, "unreachable", as_json_unreachable(&d, ctx, r->unreachable, r->n_unreachable));
        return doc_print(&d);
}

/* --- this host alone ------------------------------------------------------------------------------------------------- */

static json_t *unread_ports(struct doc *d, const struct context *ctx, const struct local_unread *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++) {
                json_t *o = json_object();

                doc_put_port(d, o, ctx, ports[i].port);
                doc_put(d, o, "reason", doc_text(ports[i].why));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *undecided(struct doc *d, const struct context *ctx, const struct local_verification *v)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];
                json_t *o = json_object();

                doc_put_port(d, o, ctx, u->port);
                doc_put(d, o, "partition", doc_text(ctx->policy->partitions[u->partition].name));
                doc_put(d, o, "found", doc_text(membership_to_string(u->found)));
                doc_put(d, o, "selector", doc_text(u->unresolved ? u->unresolved->text : "SELF"));
                doc_put(d, o, "line", u->unresolved ? json_integer(u->unresolved->where.line) : json_null());
                doc_append(d, array, o);
        }
        return array;
}

int as_json_verify_local(struct context *ctx, const struct local_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, status == EXIT_DONE);
        doc_put(&d, d.root, "local", json_true());
        doc_put(&d, d.root, "ports", json_integer(r->verification.v->n_ports));
        doc_put(&d, d.root, "differ", differences(&d, ctx, r->verification.v));
        doc_put(&d, d.root, "undecided", undecided(&d, ctx, &r->verification));
        doc_put(&d, d.root, "unreachable", unread_ports(&d, ctx, r->unread, r->n_unread));
        doc_put(&d, d.root, "down", unread_ports(&d, ctx, r->down, r->n_down));
        return doc_print(&d);
}
