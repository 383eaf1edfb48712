/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "session/bus_client.h"
#include "session/held_output.h"
#include "store_commands/store_commands.h"

struct held_result {
        const struct held_list *list;  /* what would wait if all ports that were read take a write */
        bool has_daemon;
        struct daemon_status daemon;   /* it may have seen more, such as a write that was not confirmed */
};

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static void json_show_held(struct doc *d, const void *result)
{
        const struct held_result *r = result;
        json_t *daemon = json_null();

        if (r->has_daemon)
                daemon = json_pack("{s:I, s:o}", "held_bases", (json_int_t) r->daemon.held_bases, "held", doc_text(r->daemon.held ?: ""));
        doc_add(d, d->root, "{s:o, s:o}", "held", json_held(d, r->list), "daemon", daemon);
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* Whether the base of this line of the daemon is in the list. */
static bool is_listed(const struct held_list *list, const char *line)
{
        unsigned base;
        size_t n;
        const struct held *const *items = held_list_items(list, &n);

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

/* The plan shows what would wait if the policy was applied now, but not that a port which was read does not take a write. A daemon
 * on this host knows that; with -C or -P the fabric may be another one than the daemon's. */
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
        (void) held_list_items(result.list, &n);
        return output(ctx, &printer, exit_status_of(n > 0 || result.daemon.held_bases > 0, false), &result);
}
