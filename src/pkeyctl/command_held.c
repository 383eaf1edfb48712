/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/commands.h"
#include "session/bus_client.h"

#define MAX_BASES 32 /* described in full; -v: all */

struct held_result {
        const struct held_list *list;  /* what would wait if all ports that were read answer */
        bool has_daemon;
        struct daemon_status daemon;   /* which has seen more, such as a write that was not confirmed */
};

static const struct held *const *held_items(const struct held_list *list, size_t *ret_n)
{
        *ret_n = 0;
        return list ? held_list_items(list, ret_n) : NULL;
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

json_t *json_named_port(struct doc *d, const struct held_words *words, struct knowledge_name name)
{
        static const char *const kinds[] = {
                [KNOWLEDGE_ENDPORT] = "endport", [KNOWLEDGE_LEAF] = "switch-port", [KNOWLEDGE_PLACE] = "unknown-device",
        };
        struct held_port port;

        if (held_port_find(words, name, &port) < 0) {
                d->failed = true;
                return NULL;
        }
        return json_pack("{s:o, s:o, s:o, s:i, s:s}", "node", doc_text(port.node), "node_guid", doc_guid(port.node_guid),
                         "port_guid", port.port_guid.v ? doc_guid(port.port_guid) : json_null(), "port", name.number,
                         "kind", kinds[name.kind]);
}

json_t *json_seconds(uint64_t seconds)
{
        return doc_time(seconds > INT64_MAX ? USEC_PER_SEC : seconds * USEC_PER_SEC); /* before 1970: see knowledge.h */
}

static json_t *waiting_object(struct doc *d, const struct held_words *words, const struct held_waiting *w)
{
        static const char *const levels[N_LEVELS] = { [LEVEL_NONE] = "none", [LEVEL_LIMITED] = "limited", [LEVEL_FULL] = "full" };
        json_t *o = json_named_port(d, words, w->name);

        doc_add(d, o, "{s:s, s:s, s:s, s:s}", "attribute", w->is_filter ? "PortInfo" : "P_KeyTable", "before", levels[w->from],
                "after", levels[w->to], "rule", held_rule_to_string(w->rule));
        return o;
}

static json_t *by_object(struct doc *d, const struct held_words *words, const struct held *h, const struct held_by *by)
{
        _cleanup_text_ struct text text = {}, way_out = {};
        json_t *o = json_named_port(d, words, by->name);

        held_add_reason(words, by, &text);
        held_add_way_out(words, h, by->reason, &way_out);
        d->failed |= text.failed || way_out.failed;
        doc_add(d, o, "{s:s, s:o, s:o, s:o, s:o, s:o}", "reason", held_reason_to_string(by->reason), "since", json_seconds(by->since),
                "last_read", json_seconds(by->read_at), "until", json_seconds(by->until), "text", doc_text(text.bytes),
                "way_out", doc_text(way_out.bytes));
        return o;
}

static json_t *base_object(struct doc *d, const struct held_words *words, const struct held *h)
{
        const char *name = held_partition(words, h->base);

        return json_pack("{s:o, s:o, s:o, s:i, s:o, s:i}", "base", doc_base(h->base),
                         "partitions", DOC_ARRAY(d, i, *name ? 1u : 0u, doc_text(name)),
                         "waiting", DOC_ARRAY(d, i, held_n_kept(h->n_waiting), waiting_object(d, words, &h->waiting[i])),
                         "n_waiting", (int) h->n_waiting,
                         "held_by", DOC_ARRAY(d, i, held_n_kept(h->n_by), by_object(d, words, h, &h->by[i])),
                         "n_held_by", (int) h->n_by);
}

json_t *json_held(struct doc *d, const struct held_list *list)
{
        const struct held_words words = output_held_words(d->ctx);
        size_t n;
        const struct held *const *items = held_items(list, &n);

        return DOC_ARRAY(d, i, n, base_object(d, &words, items[i]));
}

static void json_show_held(struct doc *d, const void *result)
{
        const struct held_result *r = result;
        json_t *daemon = json_null();

        if (r->has_daemon)
                daemon = json_pack("{s:I, s:o}", "held_bases", (json_int_t) r->daemon.held_bases, "held", doc_text(r->daemon.held ?: ""));
        doc_add(d, d->root, "{s:o, s:o}", "held", json_held(d, r->list), "daemon", daemon);
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* One way out for each reason. */
static void add_ways_out(const struct held_words *words, const struct held *h, struct text *t)
{
        unsigned done = 0;

        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                if (done & 1u << h->by[i].reason)
                        continue;
                done |= 1u << h->by[i].reason;
                text_add(t, "   way out: ");
                held_add_way_out(words, h, h->by[i].reason, t);
                text_add(t, "\n");
        }
}

static void add_base(const struct held_words *words, const struct held *h, struct text *t)
{
        held_add_headline(words, h, t);
        text_add(t, "\n");
        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                text_add(t, "   ");
                held_add_reason(words, &h->by[i], t);
                text_add(t, "\n");
        }
        if (h->n_by > HELD_MAX)
                text_add(t, "   and %u more ports\n", h->n_by - HELD_MAX);
        add_ways_out(words, h, t);
}

void text_held(struct context *ctx, const struct held_list *list)
{
        const struct held_words words = output_held_words(ctx);
        _cleanup_text_ struct text t = {};
        size_t n;
        const struct held *const *items = held_items(list, &n);

        for (size_t i = 0; i < n && (i < MAX_BASES || ctx->options->verbose); i++)
                add_base(&words, items[i], &t);
        if (n > MAX_BASES && !ctx->options->verbose)
                text_add(&t, "%zu more bases are held; -v lists them\n", n - MAX_BASES);
        if (t.n > 0 || t.failed)
                fputs(output_taken(ctx, &t), stdout);
}

/* Is the base of this line of the daemon in the list? */
static bool is_listed(const struct held_list *list, const char *line)
{
        unsigned base;
        size_t n;
        const struct held *const *items = held_items(list, &n);

        for (size_t i = 0; i < n && sscanf(line, "base 0x%4x ", &base) == 1; i++)
                if (items[i]->base == base)
                        return true;
        return false;
}

static void print_held_by_daemon(const struct held_result *r)
{
        const char *rest = r->daemon.held, *line;
        uint64_t n_lines = 0, n_new = 0;
        int length;

        for (; (line = bus_next_line(&rest, &length)); n_lines++) {
                if (is_listed(r->list, line))
                        continue;
                if (n_new++ == 0)
                        puts("held by pkeyd on this host, which may know more than this reading of the fabric shows:");
                printf("   %.*s\n", length, line);
        }
        if (n_lines < r->daemon.held_bases)
                printf("pkeyd holds %" PRIu64 " more bases; they are in its journal\n", r->daemon.held_bases - n_lines);
}

static void text_show_held(struct context *ctx, const void *result)
{
        const struct held_result *r = result;

        if (ctx->status == EXIT_DONE)
                puts("no base is held");
        text_held(ctx, r->list);
        print_held_by_daemon(r);
}

/* What would wait now if the policy was applied needs no daemon. But no plan can foresee that a port that was read does not take a
 * write; a daemon on this host knows that. With -C or -P the fabric may be another one than the daemon's. */
int command_show_held(struct context *ctx)
{
        /* -q shows the text, too: "no base is held" alone would hide that the state cannot be read */
        static const struct printer printer = { text_show_held, json_show_held, 0 };
        struct held_result result = { .list = output_held(ctx) };
        size_t n;
        int r;

        if (!result.list)
                return -ENOMEM;
        r = ctx->options->ca || ctx->options->port ? 0 : bus_client_find(ctx, &result.daemon);
        if (r < 0 && r != -ETIMEDOUT)
                return r;
        result.has_daemon = r > 0;
        (void) held_items(result.list, &n);
        return output(ctx, &printer, exit_status_of(n > 0 || result.daemon.held_bases > 0, false), &result);
}
