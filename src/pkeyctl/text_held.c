/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/text.h"

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
