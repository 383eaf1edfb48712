/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "session/output.h"
#include "session/progress.h"
#include "shell/findings_print.h"
#include "shell/secret.h"
#include "state/etcd_place.h"

#define PROGRESS_INTERVAL (USEC_PER_SEC / 5)

/* One sweep. */
struct session {
        struct context *ctx;
        const struct session_hooks *hooks;
        int hook_r;          /* of a hook that ended it */
        bool ended;
};

/* --- problems -------------------------------------------------------------------------------------------------------- */

/* Reports an error of this host's drivers or kernel. what: what failed. */
static int complain_host(struct context *ctx, int r, const char *what)
{
        struct findings *f = &ctx->findings;

        switch (-r) {
        case ENOMEM:
                return -ENOMEM;
        case ENODEV:
        case ENXIO:
                return local_port_complain(ctx->settings->ca, ctx->settings->port, &ctx->findings);
        case EACCES:
        case EPERM:
                return findings_error(f, FINDING_HOST_NO_PERMISSION, "run as root", "permission denied for /dev/infiniband/umad*");
        case EOPNOTSUPP:
                return findings_error(f, FINDING_HOST_NO_DEVICE,
                                      "modprobe ib_umad; rdma-core loads it at boot where it is installed",
                                      "the kernel module ib_umad is not loaded");
        case ENOTUNIQ:
                return findings_error(f, FINDING_USAGE, "set ca and port in the fabric's pkeyd.yaml, or use -C and -P; ibstat shows them",
                                      "fabric %s: this host has several InfiniBand ports that may lead to it", ctx->fabric.name);
        case ENETDOWN:
                return findings_error(f, FINDING_HOST_PORT_DOWN, "-C and -P choose another; ibstat shows them",
                                      "the link of this host's InfiniBand port%s%s is down",
                                      ctx->settings->ca ? " of " : "", ctx->settings->ca ?: "");
        }
        return findings_error(f, FINDING_HOST_DISCOVERY, NULL, "%s: %s", what, strerror(-r));
}

/* Also with -q. */
static void show_always(const struct context *ctx, struct finding *item)
{
        struct findings alone = { .arena = ctx->arena, .items = item, .n = 1 };

        if (ctx->options->quiet && !ctx->options->json && item)
                (void) findings_print(stderr, &alone, item->severity);
}

void session_report_state(struct context *ctx, bool fatal)
{
        struct state_report r;

        while (state_next_report(&ctx->state, &r)) {
                enum finding_severity severity = r.kind == STATE_USABLE                ? FINDING_NOTE
                                                 : fatal && r.kind == STATE_UNUSABLE ? FINDING_ERROR : FINDING_WARNING;
                struct finding *item = findings_add(&ctx->findings, severity, FINDING_HOST_STATE_DIR, NULL, "%s; %s", r.text,
                                                    r.effect);

                if (r.hint)
                        finding_set_hint(&ctx->findings, item, "%s", r.hint);
                if (r.kind == STATE_DAMAGED && ctx->state.access != STATE_READ)
                        show_always(ctx, item);
        }
}

static int complain_store(struct context *ctx, enum control_state failed, int r)
{
        if (failed == CONTROL_LOCKING && ctx->state.error == r)
                return -EBADMSG; /* session_report_state() has reported it */
        return findings_error(&ctx->findings, FINDING_HOST_STATE_DIR, state_hint(&ctx->state, r),
                              "%s cannot be used: %s; nothing more was written", ctx->state.name, state_explain(&ctx->state, r));
}

static int complain(struct context *ctx, const struct control_results *results)
{
        static const char *const steps[] = {
                [CONTROL_OPENING_PORT] = "InfiniBand port", [CONTROL_DISCOVERING] = "discovery",
                [CONTROL_SURVEYING] = "reading tables", [CONTROL_APPLYING] = "writing tables",
        };
        struct findings *f = &ctx->findings;
        int r = results->r;

        if (r == 0 || r == -EBADMSG || r == -ENOMEM)
                return r;
        if (r == -ESTALE)
                return findings_error(f, FINDING_HOST_DISCOVERY, "run the command again",
                                      "the fabric has changed since it was discovered: another node answers at the LID of a port; "
                                      "nothing more was written");
        if (results->failed == CONTROL_DISCOVERING && r == -ENODATA)
                return findings_error(f, FINDING_HOST_DISCOVERY,
                                      "if it has an M_Key, set m_key_file in pkeyd.yaml to a file with that key",
                                      "this host's own port %s/%u does not answer, so the fabric cannot be discovered", ctx->port.lp.ca,
                                      ctx->port.lp.port);
        if (results->failed == CONTROL_LOCKING && *results->lock_holder)
                return findings_error(f, FINDING_HOST_BUSY, NULL, "%s: %s is writing tables; try again later", ctx->state.name,
                                      results->lock_holder);
        if (results->failed == CONTROL_LOCKING || results->failed == CONTROL_STORING)
                return complain_store(ctx, results->failed, r);
        return complain_host(ctx, r, WORD(steps, results->failed, "sweep"));
}

/* --- signals --------------------------------------------------------------------------------------------------------- */

void session_block_signals(bool blocked)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        (void) sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int session_handle_signals(struct context *ctx, sd_event_signal_handler_t handler)
{
        void *userdata = handler ? ctx : NULL; /* without a handler it is the exit status of the loop */
        int r = sd_event_default(&ctx->event);

        session_block_signals(true);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, NULL, SIGINT, handler, userdata);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, NULL, SIGTERM, handler, userdata);
        return r < 0 ? complain_host(ctx, r, "event loop") : 0;
}

/* --- stages ---------------------------------------------------------------------------------------------------------- */

static void on_stage_ended(int r, void *userdata)
{
        struct context *ctx = userdata;

        ctx->stage_ended = true;
        ctx->stage_r = r;
}

static int run_stage(struct context *ctx, const struct mad_stage *stage, const char *what)
{
        _cleanup_progress_ struct progress progress = progress_begin(what, ctx->options->quiet);
        uint64_t done, total;

        ctx->stage_ended = false;
        port_session_run(ctx->port.session, stage);
        while (!ctx->stage_ended) {
                int r = sd_event_run(ctx->event, PROGRESS_INTERVAL);

                if (r < 0)
                        return r;
                port_session_progress(ctx->port.session, &done, &total);
                progress_show(&progress, done, total);
        }
        return ctx->stage_r;
}

int session_run_stage(struct context *ctx, const struct mad_stage *stage, const char *what)
{
        int r = run_stage(ctx, stage, what);

        return r < 0 ? complain_host(ctx, r, what) : 0;
}

int session_use_gsi(struct context *ctx, int *ret_sa)
{
        uint32_t self = ctx->subnet->self;
        int index = self == SUBNET_NONE ? 0 : observed_default_index(ctx->observed, self);

        port_session_set_p_key_index(ctx->port.session, (unsigned) MAX(index, 0));
        return port_session_use_gsi(ctx->port.session, false, ret_sa);
}

/* --- choices of tables ----------------------------------------------------------------------------------------------- */

int session_choose_none(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        *ret = &ctx->subnet->self;
        *ret_n = 0;
        return 0;
}

int session_choose_self(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        *ret = &ctx->subnet->self;
        *ret_n = ctx->subnet->self == SUBNET_NONE ? 0 : 1;
        return 0;
}

int session_choose_selected(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        return pipeline_select(ctx) ?: pipeline_around(ctx, ctx->selected, ELEMENTS(ctx->selected), ret, ret_n);
}

/* --- actions --------------------------------------------------------------------------------------------------------- */

static void carry_out_stage(struct session *s, const struct mad_stage *stage, struct control_event *ret)
{
        enum control_state state = control_get_status(s->ctx->control)->state;

        s->ctx->writing |= state == CONTROL_APPLYING;
        ret->kind = CONTROL_EVENT_STAGE_ENDED;
        ret->r = run_stage(s->ctx, stage, state == CONTROL_DISCOVERING ? "discovering" :
                                          state == CONTROL_APPLYING    ? "writing tables" : "reading tables");
}

static void open_port(struct context *ctx, const struct settings *settings, struct control_event *ret)
{
        const struct port_session_handlers handlers = {
                .stage_ended = on_stage_ended, .userdata = ctx, .gate = control_gate(ctx->control),
        };

        ret->kind = CONTROL_EVENT_PORT;
        ctx->port.is_of_several = ctx->fabric.name;
        opened_port_open(&ctx->port, ctx->event, settings, &handlers, &ret->port);
}

/* A hook that fails ends the sweep. */
static void choose_tables(struct session *s, struct control_event *ret)
{
        struct context *ctx = s->ctx;

        ctx->subnet = control_get_results(ctx->control)->subnet;
        ret->kind = CONTROL_EVENT_TABLES_CHOSEN;
        s->hook_r = s->hooks->choose(ctx, &ret->chosen.ports, &ret->chosen.n);
        if (s->hook_r < 0)
                ret->kind = CONTROL_EVENT_STOP;
}

static void take_results(struct context *ctx)
{
        const struct control_results *results = control_get_results(ctx->control);

        ctx->subnet = results->subnet;
        ctx->observed = results->observed;
        ctx->known = control_get_status(ctx->control)->known;
        ctx->pins = control_get_status(ctx->control)->pins;
        if (ctx->policy &&
            leases_extend(ctx->arena, control_get_status(ctx->control)->leases, ctx->files->policy, &ctx->policy) < 0)
                ctx->findings.out_of_memory = true;
        if (!results->decision)
                return;
        ctx->memberships = results->decision->memberships;
        ctx->desired = results->decision->desired;
        ctx->plan = results->decision->plan;
}

static void confirm(struct session *s, struct control_event *ret)
{
        take_results(s->ctx);
        ret->kind = CONTROL_EVENT_PERSON_ANSWERED;
        s->hook_r = s->hooks->confirm(s->ctx, s->hooks->userdata);
        ret->yes = s->hook_r == 0;
}

/* True: *ret is the event that control waits for. */
static bool carry_out(struct session *s, const struct control_action *action, struct control_event *ret)
{
        struct context *ctx = s->ctx;

        switch (action->kind) {
        case CONTROL_OPEN_PORT:
                open_port(ctx, action->settings, ret);
                return true;
        case CONTROL_RUN_STAGE:
                carry_out_stage(s, action->stage, ret);
                return true;
        case CONTROL_LOCK:
                ret->kind = CONTROL_EVENT_LOCK;
                ret->lock.r = state_lock(&ctx->state, &ret->lock.holder, &ret->lock.changed);
                ret->lock.why = state_explain(&ctx->state, ret->lock.r);
                session_report_state(ctx, true);
                return true;
        case CONTROL_STORE:
                ret->kind = CONTROL_EVENT_STORED;
                ret->r = state_commit(&ctx->state, action->transaction);
                session_report_state(ctx, false); /* all may be written already */
                return true;
        case CONTROL_CHOOSE_TABLES:
                choose_tables(s, ret);
                return true;
        case CONTROL_ASK_PERSON:
                confirm(s, ret);
                return true;
        case CONTROL_UNLOCK:
                state_unlock(&ctx->state);
                return false;
        case CONTROL_EXIT:
                s->ended = true;
                return false;
        case CONTROL_FOLLOW_STORE:
        case CONTROL_LOG: /* what a person needs of it is in the results */
        case CONTROL_ABANDON_STAGE: /* these are for a daemon */
        case CONTROL_READ_LOCAL_TABLES:
        case CONTROL_READ_FILES:
        case CONTROL_WRITE_FILE:
        case CONTROL_SIGNAL_OPENSM:
        case CONTROL_CLOSE_PORT:
        case CONTROL_LOAD_UNDO:
        case CONTROL_ANSWER:
        case CONTROL_ANSWER_LEASE:
                return false;
        }
        return false;
}

static void feed(struct session *s, struct control_event *event)
{
        struct control *c = s->ctx->control;
        struct control_action action;

        event->wall = clock_wall();
        (void) control_event(c, clock_now(), event);
        while (!s->ended && control_next_action(c, &action)) {
                struct control_event answer = { .wall = clock_wall() };

                if (carry_out(s, &action, &answer))
                        (void) control_event(c, clock_now(), &answer);
        }
}

/* --- the beginning --------------------------------------------------------------------------------------------------- */

int session_find_etcd(struct context *ctx, struct etcd_config **ret)
{
        const char *settings = ctx->options->config ?: ctx->fabric.config_file;

        return etcd_place_find(ctx->arena, settings, ctx->fabric.name, &ctx->findings, ret);
}

/* Without `writing` it does not make the directory, and goes without what it may not read. A sweep has a loop, on which a store in
 * etcd renews its lease. */
static int open_state(struct context *ctx, bool writing)
{
        struct etcd_config *etcd;
        int r;

        state_close(&ctx->state);
        r = session_find_etcd(ctx, &etcd);
        r = r ?: state_open(&ctx->state, ctx->options->state_dir ?: ctx->fabric.state_dir, writing ? STATE_WRITE : STATE_READ,
                            etcd);
        return r == 0 && ctx->event ? state_attach(&ctx->state, ctx->event) : r;
}

/* The last policy was valid when it was stored. If it is not any more (another version of pkeyd, a damaged file), nothing is
 * assumed of it. */
static struct generation *remembered_generation(struct context *ctx, const struct remembered *m)
{
        _cleanup_generation_ struct generation *g = m->policy ? generation_new() : NULL;
        _cleanup_findings_ struct findings ignored = { .arena = ctx->arena };
        const char *policy = g ? arena_copy(g->arena, m->policy, m->n_policy + 1) : NULL;
        const char *settings = policy ? text_copy(g->arena, &m->files.settings) : NULL;

        if (!settings || generation_read_policy(g, "(last policy in force)", policy, m->n_policy, &ignored) < 0)
                return NULL;
        g->settings_bytes = settings; /* to be stored again if the state directory is deleted meanwhile */
        g->n_settings_bytes = m->files.settings.n;
        generation_continue(g, &(struct generation) { .number = m->generation, .facts = m->files.facts });
        return STEAL(g);
}

/* CONTROL_READ needs only the names of known endports, so that it knows hosts that are down, the pins, and the policy in force. It
 * assumes nothing of tables, so it drops the knowledge; and unless names are pinned, it works without a state directory. */
static int load_state(struct context *ctx, enum control_goal goal, struct control_start *ret)
{
        bool writing = goal == CONTROL_APPLY, is_open = ctx->remembered && goal == CONTROL_READ, is_damaged, is_fatal;
        struct remembered *before = ctx->remembered, *m;
        int r = is_open ? state_attach(&ctx->state, ctx->event) : open_state(ctx, writing);

        is_damaged = r == -ENOTRECOVERABLE;
        is_fatal = writing || (is_damaged && goal == CONTROL_PLAN);
        if (r != -ENOMEM && (goal != CONTROL_READ || is_damaged || ctx->settings->identity == IDENTITY_PIN))
                session_report_state(ctx, is_fatal);
        if (r == -ENOMEM || (r < 0 && is_fatal))
                return r == -ENOMEM ? r : -EBADMSG;
        r = state_load(&ctx->state, is_open ? &ctx->remembered : &m);
        if (r < 0)
                return r;
        if (is_open) { /* state_lock() compares the store with what was loaded last */
                m = before;
                ctx->known = &ctx->remembered->known;
        }
        ret->remembered = m;
        if (goal == CONTROL_READ) {
                (void) knowledge_free(m->knowledge);
                m->knowledge = knowledge_new();
                if (!m->knowledge)
                        return -ENOMEM;
        } else {
                session_report_state(ctx, writing);
        }
        ret->in_force = remembered_generation(ctx, m);
        return 0;
}

static bool holds_lock(void *userdata)
{
        const struct context *ctx = userdata;

        return state_holds_lock(&ctx->state);
}

static int prepare(struct context *ctx, enum control_goal goal, const struct session_hooks *hooks, struct control_start *ret)
{
        struct control_config config = {
                .goal = goal, .choose_tables = hooks->choose, .confirm = !ctx->options->yes && !ctx->assume_yes,
                .findings = &ctx->findings, .holds_lock = holds_lock, .store_userdata = ctx,
        };
        struct generation *g = ctx->files;
        int r = 0;

        if (!ctx->event)
                r = sd_event_default(&ctx->event);
        if (r < 0)
                return complain_host(ctx, r, "event loop");
        r = secret_read_m_keys(g->settings, &ctx->findings, &g->m_keys) ?:
            secret_read_neighbors(g->arena, g->settings, g->m_keys, &ctx->findings, &g->neighbors, &g->n_neighbors) ?:
            load_state(ctx, goal, ret);
        if (r < 0)
                return r;
        config.shares_store = ctx->state.etcd;
        ctx->control = control_new(&config);
        ret->candidate = generation_ref(g);
        return ctx->control ? 0 : -ENOMEM;
}

int session_sweep(struct context *ctx, enum control_goal goal, const struct session_hooks *hooks)
{
        static const struct session_hooks none = {};
        struct session s = { .ctx = ctx, .hooks = hooks ?: &none };
        struct control_event event = { .kind = CONTROL_EVENT_START };
        int r = prepare(ctx, goal, s.hooks, &event.start);

        if (r < 0)
                return r;
        event.start.findings = &ctx->findings;
        feed(&s, &event);
        take_results(ctx);
        return s.hook_r < 0 ? s.hook_r : complain(ctx, control_get_results(ctx->control));
}

/* --- what a command needs -------------------------------------------------------------------------------------------- */

static int check_writer(struct context *ctx)
{
        if (ctx->settings->writer == WRITER_DIRECT)
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE,
                              "pkeyctl plan shows what would change, pkeyctl reload makes pkeyd carry it out",
                              "pkeyctl cannot write with writer: opensm: only pkeyd writes the partition files of OpenSM, phase by phase");
}

static int read_store(struct context *ctx, bool writing)
{
        int r = open_state(ctx, writing);

        if (r == 0 || (r == -ENOENT && !writing))
                r = state_load(&ctx->state, &ctx->remembered);
        session_report_state(ctx, true);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        ctx->known = &ctx->remembered->known;
        return 0;
}

int session_provide(struct context *ctx, unsigned needs, session_choose_t choose)
{
        const struct session_hooks hooks = { .choose = choose };
        int r = 0;

        if (needs & (NEED_SETTINGS | NEED_POLICY | NEED_POLICY_IF_ANY))
                r = pipeline_read_files(ctx, needs);
        if (r == 0 && needs & NEED_WRITER)
                r = check_writer(ctx);
        if (r == 0 && needs & NEED_CONFIRMATION)
                r = ask_check_terminal(ctx);
        if (r == 0 && needs & (NEED_STORE | NEED_STORE_TO_WRITE))
                r = read_store(ctx, needs & NEED_STORE_TO_WRITE);
        if (r == 0 && needs & NEED_TABLES)
                r = session_sweep(ctx, CONTROL_READ, &hooks);
        if (r == 0 && needs & NEED_TABLES)
                r = pipeline_resolve(ctx, needs & TAKES_POLICY);
        if (r == 0 && needs & NEED_PLAN)
                r = session_sweep(ctx, CONTROL_PLAN, NULL);
        return r;
}
