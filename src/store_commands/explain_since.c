/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "store_commands/store_commands.h"

#define MAX_GENERATIONS 50 /* that are resolved: each as long as the policy at hand */

/* Goes back through the stored generations, from the newest. */
struct walk {
        struct context *ctx;
        const uint32_t *ports;
        uint32_t n_ports, n_open;
        struct since *items;       /* n_ports for each partition of ctx->policy */
        bool *is_open;             /* of each item: the same in all generations so far */
        struct text policy;        /* bytes of the last generation; owned */
};

static uint32_t n_items(const struct walk *w)
{
        return w->ctx->policy->n_partitions * w->n_ports;
}

/* Of item i. */
static bool is_as_now(const struct walk *w, const struct memberships *then, uint32_t i)
{
        uint32_t port = w->ports[i % w->n_ports];
        uint16_t base = w->ctx->policy->partitions[i / w->n_ports].base;

        return memberships_get(then, port, base) == memberships_get(w->ctx->memberships, port, base);
}

/* then: NULL: the policy is that of the generation that was compared last. */
static void compare(struct walk *w, uint64_t number, const struct memberships *then)
{
        for (uint32_t i = 0; i < n_items(w); i++) {
                if (!w->is_open[i])
                        continue;
                if (then && !is_as_now(w, then, i)) {
                        w->is_open[i] = w->items[i].or_earlier = false;
                        w->n_open--;
                } else {
                        w->items[i].generation = number;
                }
        }
}

/* Compares with the memberships by an older policy, on the present fabric with the present pins. As if it were in force, errors
 * about single ports only freeze these. */
static int resolve(struct walk *w, uint64_t number, const struct text *bytes)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings ignored = { .arena = a };
        const struct policy_memory memory = { .known = w->ctx->known, .pins = w->ctx->pins };
        struct memberships *then;
        struct policy *policy;
        int r = a ? 0 : -ENOMEM;

        r = r ?: policy_parse(a, "", bytes->bytes ?: "", bytes->n, &ignored, &policy) ?:
            policy_resolve_with_memory(a, policy, w->ctx->subnet, &memory, true, &ignored, &then);
        if (r == 0)
                compare(w, number, then);
        return r;
}

/* Returns 0, or a negative errno: the generations before this one cannot be compared. */
static int go_back(struct walk *w, uint64_t number)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct stored_files files;
        bool is_same;
        int r = a ? state_read_generation(&w->ctx->state, a, number, &files) : -ENOMEM;

        if (r < 0)
                return r;
        is_same = files.policy.n == w->policy.n &&
                  (w->policy.n == 0 || memcmp(files.policy.bytes, w->policy.bytes, w->policy.n) == 0);
        if (is_same)
                compare(w, number, NULL);
        else
                r = resolve(w, number, &files.policy);
        text_done(&w->policy);
        w->policy = files.policy;
        text_done(&files.settings);
        return r;
}

static int go_back_all(struct walk *w, const struct generation_history *h)
{
        int r = 0;

        for (size_t i = h->n; i > 0 && h->n - i < MAX_GENERATIONS && w->n_open > 0 && r == 0; i--) {
                r = go_back(w, h->items[i - 1].number);
                for (uint32_t k = 0; r == 0 && h->items[i - 1].number == 1 && k < n_items(w); k++)
                        w->items[k].or_earlier = false; /* no policy was in force before */
        }
        return r == -ENOMEM ? r : 0;
}

/* Sets whether the policy at hand is that of the newest generation. */
static int check_in_force(struct context *ctx, uint64_t number, struct explain_since *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct stored_files files;
        int r = a ? state_read_generation(&ctx->state, a, number, &files) : -ENOMEM;

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        ret->in_force = number;
        ret->is_in_force = generation_has_policy(ctx->files, files.policy.bytes, files.policy.n);
        stored_files_done(&files);
        return 0;
}

static int find(struct context *ctx, const struct generation_history *h, const uint32_t *ports, uint32_t n,
                struct explain_since *ret)
{
        struct walk w = { .ctx = ctx, .ports = ports, .n_ports = n };
        int r = h->n > 0 ? check_in_force(ctx, h->items[h->n - 1].number, ret) : 0;

        if (r < 0 || !ret->is_in_force)
                return r;
        w.items = arena_new_array(ctx->arena, struct since, n_items(&w));
        w.is_open = arena_new_array(ctx->arena, bool, n_items(&w));
        if (!w.items || !w.is_open)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_items(&w); i++) { /* no generation has leases */
                w.is_open[i] = w.items[i].or_earlier = !ctx->policy->partitions[i / n].lease;
                w.n_open += w.is_open[i];
        }
        text_add_n(&w.policy, ctx->files->policy_bytes, ctx->files->n_policy_bytes);
        r = w.policy.failed ? -ENOMEM : go_back_all(&w, h);
        text_done(&w.policy);
        ret->items = w.items;
        ret->n_ports = n;
        return r;
}

int explain_find_since(struct context *ctx, const uint32_t *ports, uint32_t n, struct explain_since *ret)
{
        struct generation_history history;
        int r = ctx->policy ? state_read_history(&ctx->state, 0, &history) : -ENOENT;

        *ret = (struct explain_since) {};
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = find(ctx, &history, ports, n, ret);
        generation_history_done(&history);
        return r;
}
