/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "state/state_copy.h"
#include "store_commands/store_commands.h"
#include "util/text.h"

struct copied {
        const char *from, *to;
        const struct state_copy *copy;
};

static void text_copied(struct context *, const void *result)
{
        const struct copied *r = result;

        printf("%zu record%s copied from %s to %s", r->copy->n, text_plural(r->copy->n), r->from, r->to);
        if (r->copy->kept)
                printf("; state.db is now %s", r->copy->kept);
        printf("\n");
}

static void json_copied(struct doc *d, const void *result)
{
        const struct copied *r = result;

        doc_add(d, d->root, "{s:s, s:s, s:I, s:o}", "from", r->from, "to", r->to, "records", (json_int_t) r->copy->n, "kept",
                doc_text(r->copy->kept));
}

static const char *explain(int r)
{
        switch (-r) {
        case ENOENT:
                return "it has no records to copy";
        case ENOTEMPTY:
                return "the other store has records already";
        case EBADMSG:
        case EUCLEAN:
                return "it is damaged";
        case EHOSTUNREACH:
                return "no member answers, or the cluster has no majority";
        default:
                return strerror(-r);
        }
}

static int complain(struct context *ctx, int r, const struct copied *c)
{
        const char *hint = NULL;

        if (r == -ENOMEM)
                return r;
        if (r == -ENOTEMPTY)
                hint = arena_printf(ctx->arena, "if you do not need them, delete them first: etcdctl del --prefix %s, or move state.db away",
                                    c->copy->prefix.text);
        if (r == -EWOULDBLOCK)
                return findings_error(&ctx->findings, FINDING_HOST_BUSY, "stop pkeyd on both head nodes", "%s uses the store; nothing was copied",
                                      c->copy->holder);
        return findings_error(&ctx->findings, FINDING_HOST_STATE_DIR, hint, "%s could not be copied to %s: %s%s%s%s; nothing was copied", c->from,
                              c->to, explain(r), c->copy->problem ? " (" : "", c->copy->problem ?: "", c->copy->problem ? ")" : "");
}

static int find_etcd(struct context *ctx, struct etcd_config **ret)
{
        int r = session_find_etcd(ctx, ret);

        if (r < 0 || *ret)
                return r;
        return findings_error(&ctx->findings, FINDING_USAGE, "set store and etcd there until the records are copied",
                              "%s names no cluster; nothing was copied", ctx->options->config ?: ctx->fabric.config_file);
}

int command_store_copy(struct context *ctx)
{
        static const struct printer printer = { text_copied, json_copied, QUIET };
        const char *dir = ctx->options->state_dir ?: ctx->fabric.state_dir, *target = ctx->arguments[0];
        bool to_etcd = strcmp(target, "etcd") == 0;
        struct copied c = { to_etcd ? "state.db" : "etcd", to_etcd ? "etcd" : "state.db", NULL };
        struct etcd_config *etcd;
        struct state_copy copy;
        int r;

        if (!to_etcd && strcmp(target, "sqlite") != 0)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "'%s' is not a kind of store (accepted: sqlite, etcd)", target);
        r = find_etcd(ctx, &etcd);
        if (r < 0)
                return r;
        c.copy = &copy;
        r = state_copy(dir, etcd, to_etcd, &copy);
        r = r < 0 ? complain(ctx, r, &c) : output(ctx, &printer, EXIT_DONE, &c);
        state_copy_done(&copy);
        return r;
}
