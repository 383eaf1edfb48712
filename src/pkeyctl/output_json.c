/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

void as_json_file(struct doc *d, const struct result *r)
{
        const char *path = d->ctx->options->output;

        if (path && output_write_file(d->ctx, r->file.bytes, r->file.n) < 0)
                return;
        doc_add(d, d->root, "{s:o}", path ? "output" : "text", doc_text(path ?: r->file.bytes));
}

void as_json_check(struct doc *d, const struct result *result)
{
        const struct check_result *r = &result->check;
        json_t *partitions = json_array();

        for (uint32_t i = 0; i < d->ctx->policy->n_partitions; i++) {
                const struct policy_partition *p = &d->ctx->policy->partitions[i];

                doc_append(d, partitions,
                           doc_pack(d, "{s:o, s:o, s:b, s:i, s:o}", "partition", doc_text(p->name), "p_key",
                                    doc_base(p->base), "index0", p->index0, "lines", p->n_rules, "members",
                                    r->counts ? as_json_member_count(d, &r->counts[i]) : json_null()));
        }
        doc_add(d, d->root, "{s:o, s:i, s:o}", "file", doc_text(d->ctx->policy->file), "groups", d->ctx->policy->n_groups,
                "partitions", partitions);
}
