/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

static json_t *common_bases(struct doc *d, const struct explain_end *a, const struct explain_end *b)
{
        json_t *array = json_array();
        struct explain_cursor cursor = {};
        struct explain_base base;

        while (explain_next_base(a, b, &cursor, &base))
                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:o, s:o, s:s}", "partition",
                                    doc_text(output_partition(d->ctx, base.base)), "p_key", doc_base(base.base), "a",
                                    doc_p_key(d, base.a), "b", doc_p_key(d, base.b), "verdict",
                                    explain_verdict_to_string(base.verdict)));
        return array;
}

/* The pair by one of the two sources. */
static json_t *verdict_object(struct doc *d, const struct explain_side *a, const struct explain_side *b, bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict v = explain_pair(ea, eb);

        return doc_pack(d, "{s:o, s:s, s:o, s:o}", "may_talk",
                        v == EXPLAIN_UNKNOWN ? json_null() : json_boolean(v == EXPLAIN_TALK), "verdict",
                        explain_verdict_to_string(v), "detail", doc_text(output_verdict(d->ctx, a, b, by_policy)),
                        "common", common_bases(d, ea, eb));
}

/* What the policy makes of one endport, and by which lines. */
static json_t *membership_lines(struct doc *d, uint32_t port)
{
        const struct memberships *m = d->ctx->memberships;
        json_t *array = json_array();

        for (uint32_t i = m ? m->first[port] : 0; m && i < m->first[port + 1]; i++) {
                const struct port_membership *item = &m->items[i];
                const struct policy_partition *partition = &d->ctx->policy->partitions[item->partition];
                const struct policy_rule none = {}, *rule = item->rule ?: &none;

                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:s, s:o, s:i, s:i, s:o}", "partition", doc_text(partition->name),
                                    "p_key", doc_base(partition->base), "membership",
                                    membership_to_string(item->membership), "file", doc_text(rule->where.file), "line",
                                    rule->where.line, "column", rule->where.column, "selector", doc_text(rule->text)));
        }
        return array;
}

static json_t *side_object(struct doc *d, const struct explain_side *side)
{
        return doc_port(d, side->port, "{s:o}", "memberships", membership_lines(d, side->port));
}

static json_t *pairs(struct doc *d, const struct explain_result *r)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < r->n_listed; i++) {
                const struct explain_side *a = r->listed[i].a, *b = r->listed[i].b;

                doc_append(d, array,
                           doc_pack(d, "{s:o, s:o, s:o, s:o}", "a", side_object(d, a), "b", side_object(d, b), "policy",
                                    d->ctx->policy ? verdict_object(d, a, b, true) : json_null(), "hardware",
                                    verdict_object(d, a, b, false)));
        }
        return array;
}

void as_json_explain(struct doc *d, const struct result *result)
{
        const struct explain_result *r = &result->explain;

        doc_add(d, d->root, "{s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "may_talk",
                result->status == EXIT_PARTIAL ? json_null() : json_boolean(result->status == EXIT_DONE), "policy_allows",
                d->ctx->policy ? json_boolean(r->n_talk_policy == r->n_pairs) : json_null(), "pairs_total",
                (json_int_t) r->n_pairs, "pairs_talking", (json_int_t) r->n_talk_hardware, "pairs_unknown",
                (json_int_t) r->n_unknown, "pairs_talking_by_policy",
                d->ctx->policy ? json_integer((json_int_t) r->n_talk_policy) : json_null(), "pairs", pairs(d, r));
}
