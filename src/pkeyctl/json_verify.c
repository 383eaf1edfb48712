/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/host_tables.h"
#include "pkeyctl/result_json.h"

static json_t *kernel_differences(struct doc *d, const struct discrepancy *item)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < item->n_kernel; i++) {
                const struct kernel_difference *k = &item->kernel[i];

                doc_append(d, array,
                           doc_pack(d, "{s:s, s:o, s:o, s:o}", "kind", kernel_difference_kind_to_string(k->kind),
                                    "p_key", doc_p_key(d, k->key), "sma_index",
                                    k->kind == KERNEL_ONLY ? json_null() : json_integer(k->sma_index), "kernel_index",
                                    k->kind == KERNEL_LACKS ? json_null() : json_integer(k->kernel_index)));
        }
        return array;
}

static json_t *differences(struct doc *d, const struct verification *v)
{
        json_t *differ = json_array();

        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *item = &v->differ[i];
                json_t *o = doc_port(d, item->port, "{s:o, s:o, s:b, s:s}", "missing",
                                     doc_p_keys(d, item->missing, item->n_missing), "unexpected",
                                     doc_p_keys(d, item->unexpected, item->n_unexpected), "enforcement_differs",
                                     item->enforcement_differs, "source", discrepancy_source_to_string(item->source));

                if (item->source == SOURCE_KERNEL)
                        doc_add(d, o, "{s:o}", "kernel", kernel_differences(d, item));
                doc_append(d, differ, o);
        }
        return differ;
}

void as_json_verify(struct doc *d, const struct result *result)
{
        const struct verification *r = result->verification;

        doc_add(d, d->root, "{s:i, s:i, s:i, s:o, s:o}", "ports", r->n_ports, "kernel_ports", r->n_kernel_ports, "silent", r->n_silent,
                "differ", differences(d, r), "unreachable", as_json_unreachable(d, r->unreachable, r->n_unreachable));
}

/* --- this host alone ------------------------------------------------------------------------------------------------- */

static json_t *unread_ports(struct doc *d, const struct local_unread *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                doc_append(d, array, doc_port(d, ports[i].port, "{s:o}", "reason", doc_text(ports[i].why)));
        return array;
}

static json_t *undecided(struct doc *d, const struct local_verification *v)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];

                doc_append(d, array,
                           doc_port(d, u->port, "{s:o, s:s, s:o, s:o}", "partition",
                                    doc_text(d->ctx->policy->partitions[u->partition].name), "found",
                                    membership_to_string(u->found), "selector",
                                    doc_text(u->unresolved ? u->unresolved->text : "SELF"), "line",
                                    u->unresolved ? json_integer(u->unresolved->where.line) : json_null()));
        }
        return array;
}

void as_json_verify_local(struct doc *d, const struct result *result)
{
        const struct local_result *r = &result->local;
        const struct verification *v = r->verification.v;

        doc_add(d, d->root, "{s:b, s:i, s:o, s:o, s:o, s:o}", "local", true, "ports", v->n_ports, "differ",
                differences(d, v), "undecided", undecided(d, &r->verification), "unreachable",
                unread_ports(d, r->unread, r->n_unread), "down", unread_ports(d, r->down, r->n_down));
}
