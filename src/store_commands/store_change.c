/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store_commands/store_change.h"

#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include "session/session.h"

/* How long a command waits for another process that writes tables, and how often it tries. */
#define LOCK_TIMEOUT (10 * USEC_PER_SEC)
#define STEP         (USEC_PER_SEC / 4)

int store_see_fabric(struct context *ctx)
{
        struct knowledge *k = ctx->remembered->knowledge;
        uint64_t wall = clock_wall() / USEC_PER_SEC;
        int r = knowledge_see_subnet(k, ctx->subnet, clock_now(), wall, ctx->settings->absent_hold);

        return r == 0 ? knowledge_see_tables(k, ctx->observed, wall) : r;
}

const char *store_get_user(struct context *ctx)
{
        const char *sudo = getenv("SUDO_USER");
        const struct passwd *user = getpwuid(getuid());

        if (sudo && *sudo)
                return sudo;
        return user ? arena_strdup(ctx->arena, user->pw_name) : arena_printf(ctx->arena, "uid %u", (unsigned) getuid());
}

static int complain(struct context *ctx, const char *nothing, int r, const char *holder)
{
        session_report_state(ctx, true);
        if (r == -ENOMEM || r == -EBADMSG)
                return r;
        if (r == -EWOULDBLOCK)
                return findings_error(&ctx->findings, FINDING_HOST_BUSY, "try again later", "%s: %s is writing tables; %s",
                                      ctx->state.name, holder, nothing);
        return findings_error(&ctx->findings, FINDING_HOST_STATE_DIR, NULL, "%s: %s; %s", ctx->state.name,
                              state_explain(&ctx->state, r), nothing);
}

static void take_changed(struct context *ctx, struct remembered *changed)
{
        if (!changed)
                return;
        (void) remembered_free(ctx->remembered);
        ctx->remembered = changed;
        ctx->known = &changed->known;
}

/* pkeyd has the lock at every sweep, mostly for less than a second. */
static int wait_for_lock(struct context *ctx, const char **ret_holder, struct remembered **ret_changed)
{
        usec_t end = clock_boot() + LOCK_TIMEOUT;
        int r;

        while ((r = state_lock(&ctx->state, ret_holder, ret_changed)) == -EWOULDBLOCK && clock_boot() < end)
                (void) usleep(STEP);
        return r;
}

int store_change(struct context *ctx, const char *nothing, store_changer *change, void *userdata)
{
        struct remembered *changed = NULL;
        struct store_transaction t;
        const char *holder = NULL;
        int r = wait_for_lock(ctx, &holder, &changed);

        if (r < 0)
                return complain(ctx, nothing, r, holder);
        take_changed(ctx, changed);
        store_transaction_init(&t, ctx->arena);
        r = change(ctx, changed != NULL, &t, userdata);
        r = r ?: state_commit(&ctx->state, &t);
        state_unlock(&ctx->state);
        return r < 0 ? complain(ctx, nothing, r, NULL) : 0;
}
