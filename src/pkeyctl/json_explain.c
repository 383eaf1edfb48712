/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

static json_t *common_bases(struct doc *d, const struct context *ctx, const struct explain_end *a,
                            const struct explain_end *b)
{
        json_t *array = json_array();
        struct explain_cursor cursor = {};
        struct explain_base base;

        while (explain_next_base(a, b, &cursor, &base)) {
                json_t *o = json_object();

                doc_put(d, o, "partition", doc_text(output_partition(ctx, base.base)));
                doc_put(d, o, "p_key", doc_base(base.base));
                doc_put(d, o, "a", doc_p_key(d, base.a));
                doc_put(d, o, "b", doc_p_key(d, base.b));
                doc_put(d, o, "verdict", doc_text(explain_verdict_to_string(base.verdict)));
                doc_append(d, array, o);
        }
        return array;
}

/* The pair by one of the two sources. */
static json_t *verdict_object(struct doc *d, struct context *ctx, const struct explain_side *a,
                              const struct explain_side *b, bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict v = explain_pair(ea, eb);
        const char *detail = output_verdict(ctx, a, b, by_policy);
        json_t *o = json_object();

        if (!detail)
                d->failed = true;
        doc_put(d, o, "may_talk", v == EXPLAIN_UNKNOWN ? json_null() : json_boolean(v == EXPLAIN_TALK));
        doc_put(d, o, "verdict", doc_text(explain_verdict_to_string(v)));
        doc_put(d, o, "detail", doc_text(detail));
        doc_put(d, o, "common", common_bases(d, ctx, ea, eb));
        return o;
}

/* What the policy makes of one endport, and by which lines. */
static json_t *membership_lines(struct doc *d, const struct context *ctx, uint32_t port)
{
        const struct memberships *m = ctx->memberships;
        json_t *array = json_array();

        for (uint32_t i = m ? m->first[port] : 0; m && i < m->first[port + 1]; i++) {
                const struct port_membership *item = &m->items[i];
                const struct policy_partition *partition = &ctx->policy->partitions[item->partition];
                json_t *o = json_object();

                doc_put(d, o, "partition", doc_text(partition->name));
                doc_put(d, o, "p_key", doc_base(partition->base));
                doc_put(d, o, "membership", doc_text(membership_to_string(item->membership)));
                doc_put(d, o, "file", doc_text(item->rule ? item->rule->where.file : NULL));
                doc_put(d, o, "line", json_integer(item->rule ? item->rule->where.line : 0));
                doc_put(d, o, "column", json_integer(item->rule ? item->rule->where.column : 0));
                doc_put(d, o, "selector", doc_text(item->rule ? item->rule->text : NULL));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *side_object(struct doc *d, const struct context *ctx, const struct explain_side *side)
{
        json_t *o = json_object();

        doc_put_port(d, o, ctx, side->port);
        doc_put(d, o, "memberships", membership_lines(d, ctx, side->port));
        return o;
}

static json_t *pairs(struct doc *d, struct context *ctx, const struct explain_result *r)
{
        json_t *array = json_array();
        uint32_t listed = 0;

        for (uint32_t i = 0; i < r->n_a; i++)
                for (uint32_t j = 0; j < r->n_b && listed < r->max_listed; j++) {
                        json_t *o;

                        if (r->a[i].port == r->b[j].port)
                                continue;
                        o = json_object();
                        doc_put(d, o, "a", side_object(d, ctx, &r->a[i]));
                        doc_put(d, o, "b", side_object(d, ctx, &r->b[j]));
                        doc_put(d, o, "policy",
                                ctx->policy ? verdict_object(d, ctx, &r->a[i], &r->b[j], true) : json_null());
                        doc_put(d, o, "hardware", verdict_object(d, ctx, &r->a[i], &r->b[j], false));
                        doc_append(d, array, o);
                        listed++;
                }
        return array;
}

int as_json_explain(struct context *ctx, const struct explain_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};
        json_t *may_talk = status == EXIT_PARTIAL ? json_null() : json_boolean(status == EXIT_DONE);

        doc_begin(&d, ctx, true);
        doc_put(&d, d.root, "may_talk", may_talk);
        doc_put(&d, d.root, "policy_allows",
                ctx->policy ? json_boolean(r->n_talk_policy == r->n_pairs) : json_null());
        doc_put(&d, d.root, "pairs_total", json_integer((json_int_t) r->n_pairs));
        doc_put(&d, d.root, "pairs_talking", json_integer((json_int_t) r->n_talk_hardware));
        doc_put(&d, d.root, "pairs_unknown", json_integer((json_int_t) r->n_unknown));
        doc_put(&d, d.root, "pairs_talking_by_policy",
                ctx->policy ? json_integer((json_int_t) r->n_talk_policy) : json_null());
        doc_put(&d, d.root, "pairs", pairs(&d, ctx, r));
        return doc_print(&d);
}
