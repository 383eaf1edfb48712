/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

static const char *const levels[N_LEVELS] = { [LEVEL_NONE] = "none", [LEVEL_LIMITED] = "limited", [LEVEL_FULL] = "full" };
static const char *const kinds[] = {
        [KNOWLEDGE_ENDPORT] = "endport", [KNOWLEDGE_LEAF] = "switch-port", [KNOWLEDGE_PLACE] = "unknown-device",
};

static json_t *guid_or_null(struct guid guid)
{
        return guid.v ? doc_guid(guid) : json_null();
}

/* Of a device that was never discovered, the switch port that leads to it. */
static json_t *port_object(struct doc *d, const struct held_words *words, struct knowledge_name name)
{
        struct held_port port;

        if (held_port_find(words, name, &port) < 0) {
                d->failed = true;
                return NULL;
        }
        return doc_pack(d, "{s:o, s:o, s:o, s:i, s:s}", "node", doc_text(port.node), "node_guid", doc_guid(port.node_guid), "port_guid",
                        guid_or_null(port.port_guid), "port", name.number, "kind", kinds[name.kind]);
}

static json_t *sentence(struct doc *d, struct text *t)
{
        d->failed |= t->failed;
        return t->failed ? NULL : doc_text(t->bytes);
}

static json_t *waiting_object(struct doc *d, const struct held_words *words, const struct held_waiting *w)
{
        json_t *o = port_object(d, words, w->name);

        doc_add(d, o, "{s:s, s:s, s:s, s:s}", "attribute", w->is_filter ? "PortInfo" : "P_KeyTable", "before", levels[w->from], "after",
                levels[w->to], "rule", held_rule_to_string(w->rule));
        return o;
}

static json_t *time_or_null(uint64_t seconds)
{
        return as_json_time(seconds > INT64_MAX ? USEC_PER_SEC : seconds * USEC_PER_SEC); /* before 1970: see knowledge.h */
}

static json_t *by_object(struct doc *d, const struct held_words *words, const struct held *h, const struct held_by *by)
{
        _cleanup_text_ struct text text = {}, way_out = {};
        json_t *o = port_object(d, words, by->name);

        held_add_reason(words, by, &text);
        held_add_way_out(words, h, by->reason, &way_out);
        doc_add(d, o, "{s:s, s:o, s:o, s:o, s:o, s:o}", "reason", held_reason_to_string(by->reason), "since", time_or_null(by->since),
                "last_read", time_or_null(by->read_at), "until", time_or_null(by->until), "text", sentence(d, &text), "way_out",
                sentence(d, &way_out));
        return o;
}

static json_t *base_object(struct doc *d, const struct held_words *words, const struct held *h)
{
        json_t *partitions = json_array(), *waiting = json_array(), *by = json_array();
        const char *name = held_partition(words, h->base);

        if (name[0])
                doc_append(d, partitions, doc_text(name));
        for (uint32_t i = 0; i < held_n_kept(h->n_waiting); i++)
                doc_append(d, waiting, waiting_object(d, words, &h->waiting[i]));
        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++)
                doc_append(d, by, by_object(d, words, h, &h->by[i]));
        return doc_pack(d, "{s:o, s:o, s:o, s:i, s:o, s:i}", "base", doc_base(h->base), "partitions", partitions, "waiting", waiting,
                        "n_waiting", (int) h->n_waiting, "held_by", by, "n_held_by", (int) h->n_by);
}

json_t *as_json_held(struct doc *d, const struct held_list *held)
{
        const struct held_words words = output_held_words(d->ctx);
        json_t *array = json_array();
        const struct held *const *items;
        size_t n = 0;

        items = held ? held_list_items(held, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                doc_append(d, array, base_object(d, &words, items[i]));
        return array;
}

void as_json_show_held(struct doc *d, const struct result *result)
{
        const struct held_result *r = &result->held;
        json_t *daemon = json_null();

        if (r->has_daemon)
                daemon = doc_pack(d, "{s:I, s:o}", "held_bases", (json_int_t) r->daemon.held_bases, "held", doc_text(r->daemon.held ?: ""));
        doc_add(d, d->root, "{s:o, s:o}", "held", as_json_held(d, r->list), "daemon", daemon);
}

/* --- vouches ------------------------------------------------------------------------------------------------------------- */

static json_t *vouch_object(struct doc *d, const struct held_words *words, const struct vouch *v)
{
        json_t *o = port_object(d, words, v->name);

        doc_add(d, o, "{s:o, s:o, s:o, s:o}", "may_hold", v->may_hold_anything ? json_null() : doc_p_keys(d, v->may_hold, v->n_may_hold),
                "last_read", time_or_null(v->by.read_at), "vouched_by", doc_text(v->who), "vouched_at", as_json_time(v->at));
        return o;
}

void as_json_vouches(struct doc *d, const struct result *result)
{
        const struct held_words words = output_held_words(d->ctx);
        json_t *array = json_array();

        for (uint32_t i = 0; i < result->vouches.n; i++)
                doc_append(d, array, vouch_object(d, &words, &result->vouches.items[i]));
        doc_add(d, d->root, "{s:o}", "vouches", array);
}
