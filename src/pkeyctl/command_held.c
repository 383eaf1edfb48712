/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/bus_client.h"
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"

/* show held */
struct held_result {
        const struct held_list *list;  /* what would wait if all ports that were read answer */
        bool has_daemon;
        struct daemon_status daemon;   /* which has seen more, such as a write that was not confirmed */
};

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static const char *const levels[N_LEVELS] = { [LEVEL_NONE] = "none", [LEVEL_LIMITED] = "limited", [LEVEL_FULL] = "full" };
static const char *const kinds[] = {
        [KNOWLEDGE_ENDPORT] = "endport", [KNOWLEDGE_LEAF] = "switch-port", [KNOWLEDGE_PLACE] = "unknown-device",
};

static json_t *guid_or_null(struct guid guid)
{
        return guid.v ? doc_guid(guid) : json_null();
}

/* Of a device that was never discovered, the switch port that leads to it. */
json_t *json_named_port(struct doc *d, const struct held_words *words, struct knowledge_name name)
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
        json_t *o = json_named_port(d, words, w->name);

        doc_add(d, o, "{s:s, s:s, s:s, s:s}", "attribute", w->is_filter ? "PortInfo" : "P_KeyTable", "before", levels[w->from], "after",
                levels[w->to], "rule", held_rule_to_string(w->rule));
        return o;
}

json_t *json_seconds(uint64_t seconds)
{
        return doc_time(seconds > INT64_MAX ? USEC_PER_SEC : seconds * USEC_PER_SEC); /* before 1970: see knowledge.h */
}

static json_t *by_object(struct doc *d, const struct held_words *words, const struct held *h, const struct held_by *by)
{
        _cleanup_text_ struct text text = {}, way_out = {};
        json_t *o = json_named_port(d, words, by->name);

        held_add_reason(words, by, &text);
        held_add_way_out(words, h, by->reason, &way_out);
        doc_add(d, o, "{s:s, s:o, s:o, s:o, s:o, s:o}", "reason", held_reason_to_string(by->reason), "since", json_seconds(by->since),
                "last_read", json_seconds(by->read_at), "until", json_seconds(by->until), "text", sentence(d, &text), "way_out",
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

json_t *json_held(struct doc *d, const struct held_list *held)
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

static void json_show_held(struct doc *d, const void *result)
{
        const struct held_result *r = result;
        json_t *daemon = json_null();

        if (r->has_daemon)
                daemon = doc_pack(d, "{s:I, s:o}", "held_bases", (json_int_t) r->daemon.held_bases, "held", doc_text(r->daemon.held ?: ""));
        doc_add(d, d->root, "{s:o, s:o}", "held", json_held(d, r->list), "daemon", daemon);
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

#define MAX_BASES 32 /* with all that is to be said of them; -v: all */

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
                text_add(t, "   and %u ports more\n", h->n_by - HELD_MAX);
        add_ways_out(words, h, t);
}

void text_held(struct context *ctx, const struct held_list *held)
{
        const struct held_words words = output_held_words(ctx);
        _cleanup_text_ struct text t = {};
        const struct held *const *items;
        size_t n = 0;

        items = held ? held_list_items(held, &n) : NULL;
        for (size_t i = 0; i < n && (i < MAX_BASES || ctx->options->verbose); i++)
                add_base(&words, items[i], &t);
        if (n > MAX_BASES && !ctx->options->verbose)
                text_add(&t, "%zu bases more are held; -v lists them\n", n - MAX_BASES);
        if (t.n > 0 || t.failed)
                fputs(output_taken(ctx, &t), stdout);
}

/* Is the base of this line of the daemon in the list? */
static bool is_listed(const struct held_list *list, const char *line)
{
        const struct held *const *items;
        unsigned base;
        size_t n;

        items = held_list_items(list, &n);
        for (size_t i = 0; i < n && sscanf(line, "base 0x%4x ", &base) == 1; i++)
                if (items[i]->base == base)
                        return true;
        return false;
}

static void print_held_by_daemon(const struct held_result *r)
{
        uint64_t n_lines = 0, n_new = 0;
        size_t length;

        for (const char *line = r->daemon.held ?: ""; *line; line += length + (line[length] == '\n'), n_lines++) {
                length = strcspn(line, "\n");
                if (is_listed(r->list, line))
                        continue;
                if (n_new++ == 0)
                        puts("held by pkeyd on this host, which may know of more than this look at the fabric shows:");
                printf("   %.*s\n", (int) length, line);
        }
        if (n_lines < r->daemon.held_bases)
                printf("pkeyd holds %" PRIu64 " bases more; they are in its journal\n", r->daemon.held_bases - n_lines);
}

static void text_show_held(struct context *ctx, const void *result)
{
        const struct held_result *r = result;

        if (ctx->status == EXIT_DONE)
                puts("no base is held");
        text_held(ctx, r->list);
        print_held_by_daemon(r);
}

/* --- show held -------------------------------------------------------------------------------------------------------- */

/* What would wait now, if the policy was applied: so it needs no daemon. But a plan cannot foresee that a port that was read does
 * not take a write, which a daemon on this host knows. That of another port may be of another fabric. */
int command_show_held(struct context *ctx)
{
        /* not quiet: "nothing is held" is no answer if the state cannot be read */
        static const struct printer printer = { text_show_held, json_show_held, 0 };
        struct held_result result = {};
        size_t n = 0;
        int r;

        result.list = control_get_results(ctx->control)->held;
        if (!result.list)
                return -ENOMEM;
        r = ctx->options->ca || ctx->options->port ? 0 : bus_client_find(ctx, &result.daemon);
        if (r < 0 && r != -ETIMEDOUT)
                return r;
        result.has_daemon = r > 0;
        (void) held_list_items(result.list, &n);
        return output(ctx, &printer, exit_status_of(n > 0 || result.daemon.held_bases > 0, false), &result);
}
