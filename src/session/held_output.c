/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/held_output.h"

#define MAX_BASES 32 /* described in full; -v: all */

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

json_t *json_named_port(const struct held_context *context, struct knowledge_name name)
{
        static const char *const kinds[] = {
                [KNOWLEDGE_ENDPORT] = "endport", [KNOWLEDGE_LEAF] = "switch-port", [KNOWLEDGE_PLACE] = "unknown-device",
        };
        struct held_port port;

        if (held_port_find(context, name, &port) < 0)
                return NULL;
        return json_pack("{s:o, s:o, s:o, s:i, s:s}", "node", doc_text(port.node), "node_guid", doc_guid(port.node_guid),
                         "port_guid", port.port_guid.v ? doc_guid(port.port_guid) : json_null(), "port", name.number,
                         "kind", kinds[name.kind]);
}

json_t *json_seconds(uint64_t seconds)
{
        bool is_negative = seconds > INT64_MAX; /* before 1970, because the clock was set (knowledge.h) */

        return doc_time(is_negative ? USEC_PER_SEC : seconds * USEC_PER_SEC);
}

static json_t *waiting_object(struct doc *d, const struct held_context *context, const struct held_waiting *w)
{
        static const char *const levels[N_LEVELS] = { [LEVEL_NONE] = "none", [LEVEL_LIMITED] = "limited", [LEVEL_FULL] = "full" };
        json_t *o = json_named_port(context, w->name);

        doc_add(d, o, "{s:s, s:s, s:s, s:s}", "attribute", w->is_filter ? "PortInfo" : "P_KeyTable", "before", levels[w->from],
                "after", levels[w->to], "rule", held_rule_to_string(w->rule));
        return o;
}

static json_t *by_object(struct doc *d, const struct held_context *context, const struct held *h, const struct held_by *by)
{
        _cleanup_text_ struct text text = {}, way_out = {};
        json_t *o = json_named_port(context, by->name);

        held_add_reason(context, by, &text);
        held_add_way_out(context, h, by->reason, &way_out);
        d->failed |= text.failed || way_out.failed;
        doc_add(d, o, "{s:s, s:o, s:o, s:o, s:o, s:o}", "reason", held_reason_to_string(by->reason), "since", json_seconds(by->since),
                "last_read", json_seconds(by->read_at), "until", json_seconds(by->until), "text", doc_text(text.bytes),
                "way_out", doc_text(way_out.bytes));
        return o;
}

static json_t *base_object(struct doc *d, const struct held_context *context, const struct held *h)
{
        const char *name = held_partition(context, h->base);

        return json_pack("{s:o, s:o, s:o, s:i, s:o, s:i}", "base", doc_base(h->base),
                         "partitions", JSON_ARRAY(i, name ? 1u : 0u, doc_text(name)),
                         "waiting", JSON_ARRAY(i, held_n_kept(h->n_waiting), waiting_object(d, context, &h->waiting[i])),
                         "n_waiting", (int) h->n_waiting,
                         "held_by", JSON_ARRAY(i, held_n_kept(h->n_by), by_object(d, context, h, &h->by[i])),
                         "n_held_by", (int) h->n_by);
}

json_t *json_held(struct doc *d, const struct held_list *list)
{
        const struct held_context context = output_held_context(d->ctx);
        size_t n;
        const struct held *const *items = held_list_items(list, &n);

        return JSON_ARRAY(i, n, base_object(d, &context, items[i]));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* One way out for each reason. */
static void add_ways_out(const struct held_context *context, const struct held *h, struct text *t)
{
        unsigned done = 0;

        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                if (done & 1u << h->by[i].reason)
                        continue;
                done |= 1u << h->by[i].reason;
                text_add(t, "   way out: ");
                held_add_way_out(context, h, h->by[i].reason, t);
                text_add(t, "\n");
        }
}

static void add_base(const struct held_context *context, const struct held *h, struct text *t)
{
        held_add_headline(context, h, t);
        text_add(t, "\n");
        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                text_add(t, "   ");
                held_add_reason(context, &h->by[i], t);
                text_add(t, "\n");
        }
        if (h->n_by > HELD_MAX)
                text_add(t, "   and %u more ports\n", h->n_by - HELD_MAX);
        add_ways_out(context, h, t);
}

void text_held(struct context *ctx, const struct held_list *list)
{
        const struct held_context context = output_held_context(ctx);
        _cleanup_text_ struct text t = {};
        size_t n;
        const struct held *const *items = held_list_items(list, &n);

        for (size_t i = 0; i < n && (i < MAX_BASES || ctx->options->verbose); i++)
                add_base(&context, items[i], &t);
        if (n > MAX_BASES && !ctx->options->verbose)
                text_add(&t, "%zu more bases are held; -v lists them\n", n - MAX_BASES);
        if (t.n > 0 || t.failed)
                fputs(output_taken(ctx, &t), stdout);
}
