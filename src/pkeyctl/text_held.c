/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/result_text.h"

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

void text_show_held(struct context *ctx, const struct result *result)
{
        if (result->status == EXIT_DONE)
                puts("no base is held");
        text_held(ctx, result->held.list);
        print_held_by_daemon(&result->held);
}

/* --- vouches ------------------------------------------------------------------------------------------------------------- */

static const char *label_of(struct context *ctx, struct knowledge_name name)
{
        const struct held_words words = output_held_words(ctx);
        struct held_port port;

        if (held_port_find(&words, name, &port) == 0)
                return port.label;
        output_fail(ctx, -ENOMEM);
        return "?";
}

static const char *time_of(struct context *ctx, uint64_t seconds)
{
        const struct held_words words = output_held_words(ctx);

        return words.time(ctx->arena, seconds) ?: "?";
}

static const char *may_hold(struct context *ctx, const struct vouch *v)
{
        if (v->may_hold_anything)
                return "any P_Key, for its table was never read";
        if (v->n_may_hold == 0)
                return "no P_Key";
        return text_p_keys(ctx, v->may_hold, v->n_may_hold);
}

void text_vouches_proposal(struct context *ctx, const struct vouches_result *r)
{
        const struct held_words words = output_held_words(ctx);
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < r->n; i++) {
                held_add_reason(&words, &r->items[i].by, &t);
                text_add(&t, "\n   may hold %s", may_hold(ctx, &r->items[i]));
                if (!r->items[i].may_hold_anything && held_has_dates(&words))
                        text_add(&t, " (last read %s)", time_of(ctx, r->items[i].by.read_at));
                text_add(&t, "\n");
        }
        fputs(output_taken(ctx, &t), stdout);
}

void text_forgotten(struct context *ctx, const struct result *result)
{
        const struct vouches_result *r = &result->vouches;

        for (uint32_t i = 0; i < r->n; i++)
                printf("%s counts as holding nothing until it answers or comes back (vouched by %s); pkeyd goes on at its next sweep\n",
                       label_of(ctx, r->items[i].name), r->items[i].who);
}

void text_vouches(struct context *ctx, const struct result *result)
{
        const struct vouches_result *r = &result->vouches;
        struct text_table t;

        if (r->n == 0) {
                puts("nobody vouches for any port");
                return;
        }
        text_table_begin(&t, "PORT|VOUCHED BY|AT|*MAY HOLD", 0);
        for (uint32_t i = 0; i < r->n; i++)
                text_table_row(&t, NULL, "%s\t%s\t%s\t%s", label_of(ctx, r->items[i].name), r->items[i].who,
                               time_of(ctx, r->items[i].at / USEC_PER_SEC), may_hold(ctx, &r->items[i]));
        text_table_print(ctx, &t);
}
