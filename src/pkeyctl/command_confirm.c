/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "session/bus_client.h"
#include "store_commands/store_change.h"

#define POLL_MSEC 1000 /* how often the store is read while a change waits */

/* A pkeyd that runs confirms and undoes by itself. Returns 1: it runs; 0: it does not; or an error. */
static int find_daemon(struct context *ctx, struct daemon_status *ret)
{
        int r = bus_client_find_here(ctx, ret);

        if (r != -ETIMEDOUT)
                return r;
        return findings_error(&ctx->findings, FINDING_DAEMON_FAILED, "see systemctl status pkeyd; or stop pkeyd",
                              "nothing was done: pkeyd is on the system bus but does not answer");
}

/* --- confirm -------------------------------------------------------------------------------------------------------- */

static void text_confirmed(struct context *, const void *result)
{
        const uint64_t *generation = result;

        printf("generation %" PRIu64 " is confirmed: it stays in force\n", *generation);
}

static void json_confirmed(struct doc *d, const void *result)
{
        const uint64_t *generation = result;

        doc_add(d, d->root, "{s:s, s:I}", "outcome", "carried-out", "generation", (json_int_t) *generation);
}

int confirm_name_origin(struct context *ctx, struct origin *ret)
{
        const char *user = store_get_user(ctx);

        *ret = (struct origin) { .kind = ORIGIN_COMMAND, .uid = getuid() };
        (void) snprintf(ret->user, sizeof(ret->user), "%s", user ?: "");
        return user ? 0 : -ENOMEM;
}

/* Stores the facts of the generation in force, with who confirmed it, and when. */
static int store_confirmation(struct context *ctx, bool, struct store_transaction *t, void *)
{
        const struct stored_files *files = &ctx->remembered->files;
        struct generation g = { .number = files->number, .facts = files->facts, .n_policy_bytes = files->policy_size };
        int r;

        if (!ctx->remembered->policy || !generation_waits(&g.facts))
                return findings_error(&ctx->findings, FINDING_CONFIRM_NONE, "pkeyctl history shows what was changed",
                                      "no change waits to be confirmed; nothing was done");
        g.facts.confirmed = clock_wall() / USEC_PER_SEC;
        r = confirm_name_origin(ctx, &g.facts.confirmed_by);
        records_put_facts(t, &g);
        return r;
}

static int confirm_in_store(struct context *ctx)
{
        return session_provide(ctx, NEED_STORE_TO_WRITE, NULL) ?: store_change(ctx, "nothing was done", store_confirmation, NULL);
}

static int confirm_here(struct context *ctx)
{
        static const struct printer printer = { text_confirmed, json_confirmed, QUIET };

        return confirm_in_store(ctx) ?: output(ctx, &printer, EXIT_DONE, &ctx->remembered->files.number);
}

int command_confirm(struct context *ctx)
{
        struct daemon_status s = {};
        int r = find_daemon(ctx, &s);

        return r < 0 ? r : r > 0 ? daemon_confirm(ctx, true) : confirm_here(ctx);
}

/* --- undo ----------------------------------------------------------------------------------------------------------- */

/* Reads both files of a generation. The present settings stay if none were stored with it, and with a store that head nodes share,
 * where they may be the other one's. */
static int read_generation(struct context *ctx, uint64_t number)
{
        struct generation *g = ctx->files;
        struct stored_files files;
        const char *policy, *settings;
        int r = state_read_generation(&ctx->state, ctx->arena, number, &files);

        if (r < 0)
                return state_complain_generation(&ctx->state, &ctx->findings, number, r);
        policy = text_copy(g->arena, &files.policy);
        settings = text_copy(g->arena, &files.settings);
        r = policy && settings ? 0 : -ENOMEM;
        if (r == 0 && files.has_settings && !ctx->state.etcd)
                r = generation_read_settings(g, "(pkeyd.yaml of an older generation)", settings, files.settings.n, &ctx->findings);
        g->audits = false; /* the mode is pkeyd's */
        r = r ?: generation_read_policy(g, "(partitions.yaml of an older generation)", policy, files.policy.n, &ctx->findings);
        stored_files_done(&files);
        if (r < 0)
                return r;
        pipeline_override_settings(ctx);
        ctx->policy = g->policy;
        return 0;
}

static int complain_past(struct context *ctx, uint64_t generation)
{
        return findings_error(&ctx->findings, FINDING_CONFIRM_NONE, "pkeyctl history lists the generations",
                              "generation %" PRIu64 " is not in force any more: generation %" PRIu64 " is; nothing was done", generation,
                              ctx->remembered->files.number);
}

/* Makes ctx->files the undo of the generation in force. generation: it must be this one; 0: any. */
static int prepare_undo(struct context *ctx, uint64_t generation)
{
        const struct stored_files *files = &ctx->remembered->files;
        uint64_t target = generation_history_target(&ctx->remembered->history, files->number, files->facts.restores);
        struct layout *layout = NULL;
        int r;

        if (generation > 0 && files->number != generation)
                return complain_past(ctx, generation);
        if (files->number == 0 || target == 0)
                return findings_error(&ctx->findings, FINDING_CONFIRM_NONE, "pkeyctl history lists the generations", "%s",
                                      generation_history_no_target(files->facts.restores));
        r = read_generation(ctx, target) ?: state_read_layout(&ctx->state, ctx->files->arena, target, &layout);
        if (r < 0)
                return r == -EBADMSG ? r : state_complain_generation(&ctx->state, &ctx->findings, target, r);
        ctx->files->facts = (struct generation_facts) { .undoes = files->number, .restores = target };
        ctx->files->layout = layout;
        (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_CONFIRM_UNDO, NULL,
                            "generation %" PRIu64 " is undone: the files of generation %" PRIu64 " come into force again; partitions.yaml and "
                            "pkeyd.yaml are not changed", files->number, target);
        return confirm_name_origin(ctx, &ctx->files->facts.origin);
}

/* An undo does not wait to be confirmed. One because the time is over is refused under the lock if the change was confirmed. */
static int undo_here(struct context *ctx, uint64_t generation)
{
        struct apply_result result = {};
        int r = session_provide(ctx, NEED_SETTINGS | NEED_STORE_TO_WRITE, NULL) ?: prepare_undo(ctx, generation);

        if (ctx->wait_end == WAIT_EXPIRED)
                ctx->files->facts.origin = (struct origin) { .kind = ORIGIN_TIMEOUT };
        r = r ?: session_provide(ctx, NEED_WRITER, NULL) ?: apply_without_daemon(ctx, &result);
        return r < 0 ? r : apply_show(ctx, &result, result.status);
}

int command_undo(struct context *ctx)
{
        struct daemon_status s = {};
        int r = find_daemon(ctx, &s);

        if (r > 0)
                return ask_person(ctx, "Have pkeyd undo generation %" PRIu64 ", and go back to the one before?", s.generation) ?:
                       daemon_undo(ctx, s.generation);
        return r < 0 ? r : apply_handle_signals(ctx) ?: undo_here(ctx, 0);
}

/* --- apply --confirm ------------------------------------------------------------------------------------------------ */

static bool was_interrupted(void)
{
        const struct timespec none = {};
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        return sigtimedwait(&set, NULL, &none) > 0;
}

/* Waits for a line from the terminal, and returns whether it is "yes". *fd becomes -1 at the end of the input. */
static bool said_yes(int *fd)
{
        struct pollfd p = { .fd = *fd, .events = POLLIN };
        char line[16] = "";

        if (poll(&p, 1, POLL_MSEC) <= 0)
                return false;
        if (!fgets(line, sizeof(line), stdin))
                *fd = -1;
        line[strcspn(line, "\r\n")] = '\0';
        return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

static int read_facts(struct context *ctx, uint64_t generation, struct generation_facts *ret)
{
        _cleanup_arena_ struct arena *a = arena_new(); /* the wait may be long */
        struct stored_files files;
        int r = a ? state_read_generation(&ctx->state, a, generation, &files) : -ENOMEM;

        if (r < 0)
                return r;
        *ret = files.facts;
        stored_files_done(&files);
        return 0;
}

/* The newest generation after this one; 0: there is none, or it is not known. */
static uint64_t find_newest_after(struct context *ctx, uint64_t generation)
{
        struct generation_history h;
        uint64_t newest;

        if (state_read_history(&ctx->state, generation, &h) < 0)
                return 0;
        newest = h.n > 0 ? h.items[h.n - 1].number : 0;
        generation_history_done(&h);
        return newest;
}

/* Another process has undone the change. at_once: pkeyctl does not wait until that is carried out. */
static bool is_undone(struct context *ctx, uint64_t generation, uint64_t by, bool at_once)
{
        struct generation_facts facts;

        if (by == 0 || read_facts(ctx, by, &facts) < 0)
                return false;
        if (at_once && facts.ended == 0)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_CONFIRM_UNDO, NULL, "generation %" PRIu64 " undoes generation "
                                    "%" PRIu64 ", but pkeyd has not carried that out yet; it continues while it runs", by, generation);
        return at_once || facts.ended > 0;
}

/* Another pkeyctl may have confirmed the change; a pkeyd that was started meanwhile may have undone it. Nothing else is accepted
 * while the change waits. The newest generation is looked up first, because one that is loaded after a confirmation is no undo. */
static bool has_ended(struct context *ctx, uint64_t generation, bool at_once, enum wait_end *ret)
{
        struct generation_facts facts;
        uint64_t newest = find_newest_after(ctx, generation);
        int r = read_facts(ctx, generation, &facts);

        *ret = r == -ENOENT || r == -EBADMSG ? WAIT_LOST : WAIT_CONFIRMED;
        if (r < 0 || !generation_waits(&facts))
                return r == 0 || *ret == WAIT_LOST;
        *ret = WAIT_UNDONE;
        return is_undone(ctx, generation, newest, at_once);
}

/* A pkeyd that was started meanwhile undoes the change itself, however long that takes: in audit mode, too, by the settings of the
 * generation before. */
static bool pkeyd_undoes(struct context *ctx)
{
        struct daemon_status s = {};
        int r = bus_client_find_here(ctx, &s);

        return r == -ETIMEDOUT || (r > 0 && (s.writing || s.confirm_until > 0 || s.generation == 0));
}

static enum wait_end wait_for_end(struct context *ctx, uint64_t generation, usec_t until)
{
        int fd = isatty(STDIN_FILENO) && !ctx->options->yes ? STDIN_FILENO : -1;
        enum wait_end end;

        while (clock_now() < until || pkeyd_undoes(ctx)) {
                bool interrupted;

                if (said_yes(&fd))
                        return WAIT_CONFIRMED_HERE;
                interrupted = was_interrupted();
                if (has_ended(ctx, generation, interrupted, &end))
                        return end;
                if (interrupted)
                        return WAIT_INTERRUPTED;
        }
        return has_ended(ctx, generation, true, &end) ? end : WAIT_EXPIRED;
}

/* Undoes the change as a new run in this process. */
static int undo_now(struct context *ctx, uint64_t generation)
{
        opened_port_close(&ctx->port);
        ctx->control = control_free(ctx->control);
        ctx->files = generation_unref(ctx->files);
        ctx->files = generation_new();
        ctx->policy = NULL;
        ctx->writing = false;
        ctx->assume_yes = true;
        return ctx->files ? undo_here(ctx, generation) : -ENOMEM;
}

/* Confirms the change for the person at the terminal. A pkeyd that was started meanwhile undoes it unless it knows that. Returns a
 * status or an error; other than EXIT_DONE: pkeyd has undone the change, or has not stored yet that it is confirmed. */
static int confirm_typed(struct context *ctx)
{
        struct daemon_status s = {};
        bool shows = !ctx->options->json;
        int r = find_daemon(ctx, &s);

        if (r > 0)
                return daemon_confirm(ctx, shows);
        return r < 0 ? r : shows ? confirm_here(ctx) : confirm_in_store(ctx);
}

/* Waits, and sets ctx->wait_end. Returns 0 or an error. */
static int await_end(struct context *ctx, uint64_t generation)
{
        usec_t until = clock_now() + ctx->options->confirm;
        enum wait_end end;
        int r;

        if (!ctx->options->quiet)
                fprintf(stderr, "generation %" PRIu64 " will be undone in %" PRIu64 " s unless `pkeyctl confirm` keeps it%s; ^C undoes it now\n",
                        generation, (uint64_t) (ctx->options->confirm / USEC_PER_SEC),
                        isatty(STDIN_FILENO) && !ctx->options->yes ? ", or you type yes here" : "");
        (void) fflush(stdout);
        state_unlock(&ctx->state);
        (void) signal(SIGHUP, SIG_IGN); /* the change may have cut off the terminal */
        do {
                end = wait_for_end(ctx, generation, until);
                r = end == WAIT_CONFIRMED_HERE ? confirm_typed(ctx) : 0;
        } while (r > 0);
        if (r == 0)
                ctx->wait_end = end;
        return r;
}

/* Returns an exit status or an error. */
static int undo_after_wait(struct context *ctx, uint64_t generation)
{
        struct daemon_status s = {};
        int r = find_daemon(ctx, &s);

        if (r >= 0)
                r = r > 0 ? daemon_undo(ctx, generation) : undo_now(ctx, generation);
        return r < 0 || r != EXIT_DONE ? r : EXIT_DIFFERENCE;
}

int confirm_wait(struct context *ctx, const struct apply_result *result)
{
        uint64_t generation = result->sweep->generation;
        enum exit_status status = result->status;
        int r;

        if (!ctx->options->json)
                (void) apply_show(ctx, result, status);
        r = await_end(ctx, generation);
        if (r < 0)
                return r;
        if (ctx->wait_end == WAIT_LOST)
                return findings_error(&ctx->findings, FINDING_HOST_STATE_DIR, NULL, "the store does not have generation %" PRIu64
                                      " any more: it stays in force", generation);
        if (ctx->wait_end == WAIT_EXPIRED || ctx->wait_end == WAIT_INTERRUPTED)
                return undo_after_wait(ctx, generation);
        if (ctx->wait_end == WAIT_UNDONE)
                status = EXIT_DIFFERENCE;
        if (ctx->options->json)
                return apply_show(ctx, result, status);
        text_findings(ctx, false);
        return (int) status;
}
