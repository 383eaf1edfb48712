/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The third shell of control (besides src/pkeyd/daemon.c and src/session/session.c): a process of a head node in virtual time.
 *
 * Each action takes some time, and takes effect at its beginning or at its end, at random; in between the process may be
 * killed, stopped, reloaded, or get other events. The shell does not depend on the order of actions.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "../unit/fail_alloc.h"
#include "util/macros.h"

#define MAX_SLOTS 1024 /* requests that an engine may ever have memory for here */

static void feed(struct sim *s, struct process *p, struct control_event *event);

/* --- life ------------------------------------------------------------------------------------------------------------ */

static bool holds_lock(void *userdata)
{
        const struct process *p = userdata;

        return head_believes_in_lock(p->sim, p);
}

static bool is_outdated(void *userdata)
{
        return head_is_outdated(userdata);
}

void process_start(struct sim *s, struct process *p, struct head *h, enum control_goal goal)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct control_event event = { .kind = CONTROL_EVENT_START };
        struct control_config config = {
                .goal = goal, .program = "pkeyd", .shares_store = s->shares_store, .holds_lock = holds_lock,
                .is_outdated = sim_passes_on(s) ? is_outdated : NULL, .store_userdata = p,
        };

        p->is_without_store = !head_can_load(s, h);
        if (p->is_without_store && goal != CONTROL_SERVE)
                return; /* it would have ended with that */
        if (p->is_without_store)
                h->waits = 0; /* pkeyd begins with the files, whatever waits */
        p->sim = s;
        p->head = h;
        p->goal = goal;
        p->life = ++s->last_life;
        clocks_start(s, h);
        h->started_at = s->now;
        p->stood_by_at = 0;
        if (p->is_without_store || (sim_passes_on(s) && h->is_cut_off))
                observer_init(&p->observer); /* it begins without a store */
        else
                observer_load(p);
        if (goal != CONTROL_SERVE) {
                p->arena = arena_new();
                p->findings = (struct findings) { .arena = p->arena };
                config.findings = &p->findings;
                config.confirm = prng_permille(&s->rng, 500);
        }
        p->control = control_new(&config);
        head_recall(s, p, &event.start);
        event.start.candidate = goal == CONTROL_SERVE ? head_load_at_start(s, h, &event.start, &findings)
                                                      : head_load(s, h, &findings);
        event.start.findings = &findings;
        clients_start(s, p);
        sim_trace(s, "process %u starts: %s", p->number, goal == CONTROL_SERVE ? "pkeyd" : "pkeyctl");
        if (goal != CONTROL_SERVE && !event.start.candidate) {
                /* it would have ended with the findings */
                generation_unref(event.start.in_force);
                (void) remembered_free(event.start.remembered);
                process_kill(s, p);
                return;
        }
        feed(s, p, &event);
}

static void close_port(struct sim *s, struct process *p)
{
        p->port = mad_dispatcher_free(p->port);
        wire_forget(s, p);
}

/* Completed actions stay; pending ones are dropped. */
void process_kill(struct sim *s, struct process *p)
{
        struct process fresh = { .number = p->number };

        close_port(s, p);
        mailbox_forget(s, p);
        p->control = control_free(p->control);
        if (p->head)
                head_unlock(p);
        findings_done(&p->findings);
        p->arena = arena_free(p->arena);
        *p = fresh;
}

/* It was killed or has ended. A pkeyd is restarted. */
static void bury(struct sim *s, struct process *p)
{
        bool serves = p->goal == CONTROL_SERVE;
        unsigned head = (unsigned) (p->head - s->heads);

        sim_trace(s, "process %u is gone", p->number);
        s->counters.kills++;
        process_kill(s, p);
        if (serves)
                world_restart(s, head, s->now + USEC_PER_SEC + prng_below(&s->rng, 5000000));
}

void process_die(struct sim *s, struct process *p)
{
        if (p->control)
                bury(s, p);
}

/* --- changes that wait, and undos --------------------------------------------------------------------------------------- */

/* These are the files of a generation, which the store may have from pkeyd or from a pkeyctl apply. */
static bool are_files_of(const struct sim_generation *g, uint64_t number, unsigned policy, unsigned settings)
{
        return (g->number == number && g->policy == policy && (g->settings == settings || g->first_settings == settings)) ||
               (g->applied_number == number && g->applied_policy == policy && g->applied_settings == settings);
}

static bool was_undone(const struct head *h, uint64_t number)
{
        for (unsigned i = 0; i < SIM_MAX_GENERATIONS; i++)
                if (h->in_force[i].number > 0 && h->in_force[i].undoes == number)
                        return true;
        return false;
}

/* It was in force before, and has a new number now, because the store has another generation of the old one. */
static bool has_new_number(const struct head *h, const struct generation *g, unsigned policy, unsigned settings)
{
        for (unsigned i = 0; i < SIM_MAX_GENERATIONS; i++) {
                const struct sim_generation *other = &h->in_force[i];

                if (other->number > 0 && other->undoes == g->facts.undoes && other->policy == policy && other->settings == settings)
                        return true;
        }
        return false;
}

/* Another generation than the one that had this number before, which was never stored. */
static bool has_number_again(const struct head *h, const struct sim_generation *before, unsigned policy)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct stored_files files;
        bool is_stored = head_read_files(h->store, a, before->number, &files);

        stored_files_done(&files);
        return before->policy != policy && !is_stored;
}

/* A generation came into force: an undo brings back the files of the one that it says, which was not undone, and nothing else is
 * accepted while a change waits. */
static void check_generation(struct sim *s, struct process *p, const struct generation *g)
{
        struct head *h = p->head;
        unsigned policy = intent_of_text(g->policy_bytes), settings = intent_of_text(g->settings_bytes);
        unsigned of = g->facts.restores % SIM_MAX_GENERATIONS;

        if (h->waits && h->waits != g->number && g->facts.undoes != h->waits)
                sim_fail(s, "generation %" PRIu64 " came into force while generation %" PRIu64 " waited to be confirmed", g->number, h->waits);
        if (g->facts.undoes >= g->number || (g->facts.undoes && g->facts.restores >= g->facts.undoes))
                sim_fail(s, "generation %" PRIu64 " undoes %" PRIu64 " and restores %" PRIu64, g->number, g->facts.undoes, g->facts.restores);
        if (g->facts.undoes && h->in_force[of].number == g->facts.restores &&
            h->in_force[g->number % SIM_MAX_GENERATIONS].number != g->number && !has_new_number(h, g, policy, settings) &&
            !are_files_of(&h->in_force[of], g->facts.restores, policy, settings))
                sim_fail(s, "generation %" PRIu64 " has not the files of generation %" PRIu64, g->number, g->facts.restores);
        of = g->number % SIM_MAX_GENERATIONS;
        if (h->in_force[of].number != g->number || has_number_again(h, &h->in_force[of], policy)) {
                if (g->facts.undoes && was_undone(h, g->facts.restores))
                        sim_fail(s, "generation %" PRIu64 " restores generation %" PRIu64 ", which was undone", g->number, g->facts.restores);
                if (g->facts.origin.kind == ORIGIN_TIMEOUT && head_is_confirmed(h, g->facts.undoes))
                        sim_fail(s, "generation %" PRIu64 " is undone, and the store has that it is confirmed", g->facts.undoes);
                s->counters.undone += g->facts.undoes > 0;
                h->in_force[of].number = g->number;
                h->in_force[of].undoes = g->facts.undoes;
                h->in_force[of].policy = policy;
                h->in_force[of].first_settings = settings;
        }
        h->in_force[of].settings = settings; /* after a restart those of the file, which are stored soon */
        if (!generation_waits(&g->facts)) {
                h->waits = 0;
        } else if (h->waits != g->number) {
                h->waits = g->number;
                h->waits_until = s->now + g->facts.confirm_for * USEC_PER_SEC;
                s->counters.waited++;
        }
}

/* Of two head nodes that share a store the one that stands by refuses, unless there is a reload that it can withdraw. */
static bool is_to_refuse(const struct sim *s, const struct process *p, enum control_event_kind kind)
{
        const struct control_status *status = control_get_status(p->control);

        return sim_passes_on(s) && status->guest && (kind == CONTROL_EVENT_CONFIRM || status->wanted == status->in_force);
}

static bool is_paused(const struct sim *s, const struct process *p)
{
        return s->now < p->paused_until;
}

void process_ask(struct sim *s, struct process *p, enum control_event_kind kind)
{
        struct control_event event = { .kind = kind, .asked.by.kind = ORIGIN_BUS };
        uint64_t life = p->life;

        if (!p->control || control_get_status(p->control)->stopping || p->n_requests == SIM_MAX_REQUESTS)
                return;
        if (sim_passes_on(s) && is_paused(s, p))
                return;
        event.asked.request = ++s->last_request;
        p->requests[p->n_requests++] = event.asked.request;
        s->counters.confirmed += kind == CONTROL_EVENT_CONFIRM && p->head->waits;
        ledger_asked(s, p, kind);
        p->asked_of_guest = is_to_refuse(s, p, kind) ? event.asked.request : 0;
        feed(s, p, &event);
        if (p->life == life && p->asked_of_guest)
                sim_fail(s, "process %u stands by, and does not refuse at once to confirm or to undo", p->number);
}

/* --- what it judges by ----------------------------------------------------------------------------------------------- */

static uint64_t endport_of(const struct sim *s, struct guid node, uint8_t number)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->f.nodes[s->endports[i].node].guid.v == node.v && s->endports[i].port == number)
                        return UINT64_C(1) << i;
        return 0; /* it is another device now */
}

static void add_frozen(const struct sim *s, struct judgement *to, struct guid node, uint8_t number, enum freeze why)
{
        uint64_t bit = endport_of(s, node, number);

        to->frozen |= bit;
        to->contested |= why == FREEZE_NAME ? bit : 0;
}

/* by: the policy; NULL: none is known yet. */
static void find_frozen(const struct sim *s, const struct process *p, const struct intent *by, struct judgement *ret)
{
        const struct control_status *status = control_get_status(p->control);
        const struct reconciled *decision = control_get_results(p->control)->decision;

        ret->frozen = ret->contested = 0;
        for (uint32_t i = 0; i < status->n_frozen; i++)
                add_frozen(s, ret, status->frozen[i].node_guid, status->frozen[i].number, status->frozen[i].why);
        for (uint32_t i = 0; p->goal != CONTROL_SERVE && decision && i < decision->plan->subnet->n_ports; i++) {
                const struct subnet *subnet = decision->plan->subnet;
                const struct subnet_port *port = &subnet->ports[i];

                if (decision->plan->frozen[i] != FREEZE_NONE && port->role == PORT_ENDPORT)
                        add_frozen(s, ret, subnet_port_node(subnet, port)->guid, port->number, decision->plan->frozen[i]);
        }
        for (unsigned i = 0; by && i < s->n_endports; i++) /* a silent port of a contested adapter, if meant by name */
                for (unsigned k = 0; !p->adopted.entries[i].is_seen && k < s->n_endports; k++)
                        if (s->endports[k].node == s->endports[i].node && ret->contested >> k & 1 &&
                            intent_is_meant_by_name(by, &p->adopted, i))
                                ret->frozen |= UINT64_C(1) << i, ret->contested |= UINT64_C(1) << i;
}

/* What is in force was decided about, and is carried out. */
static bool is_carried_out(const struct process *p)
{
        enum control_state state = control_get_status(p->control)->state;

        return state == CONTROL_STORING || state == CONTROL_APPLYING || state == CONTROL_WRITING_OPENSM ||
               state == CONTROL_MIRRORING;
}

static void note_applied(struct head *h, const struct generation *g)
{
        struct sim_generation *in_force = &h->in_force[g->number % SIM_MAX_GENERATIONS];

        in_force->applied_number = g->number;
        in_force->applied_policy = intent_of_text(g->policy_bytes);
        in_force->applied_settings = intent_of_text(g->settings_bytes);
}

static void take_judgement(struct sim *s, struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        const struct generation *g = p->goal == CONTROL_SERVE ? status->in_force : status->wanted;
        bool other_leases = clients_watch(s, p);
        struct judgement *j, now;

        if (status->snapshot && status->snapshot->subnet != p->subnet) {
                p->subnet = status->snapshot->subnet;
                p->adopted = p->census;
                observer_discovered(s, p, p->subnet);
                p->judged = NULL;
        }
        if (g && g->number == p->head->waits && !generation_waits(&g->facts))
                p->head->waits = 0; /* it is confirmed */
        if (g && g->facts.undoes == p->head->waits && p->is_without_store)
                p->head->waits = 0; /* it is undone; the store has that later */
        if (p->goal == CONTROL_APPLY && status->in_force)
                note_applied(p->head, status->in_force);
        if (p->goal == CONTROL_APPLY && g && g->number > 0)
                note_applied(p->head, g);
        find_frozen(s, p, g ? &s->intents[intent_of_text(g->policy_bytes)] : NULL, &now);
        if (!g || (g == p->judged && !other_leases && g->number == p->judged_generation && p->judgement &&
                   now.frozen == p->judgement->frozen && now.contested == p->judgement->contested))
                return;
        p->judged = g;
        p->judged_generation = g->number;
        if (p->goal == CONTROL_SERVE && !g->audits && g->number > 0 && !sim_passes_on(s) && !p->is_without_store)
                check_generation(s, p, g);
        j = calloc(1, sizeof(*j));
        j->next = s->judgements;
        s->judgements = j;
        j->intent = s->intents[intent_of_text(g->policy_bytes)];
        j->intent.settings = s->intents[intent_of_text(g->settings_bytes)].settings;
        j->leased = p->leased;
        j->census = p->adopted;
        j->frozen = now.frozen;
        j->is_undo = g->facts.undoes > 0;
        j->contested = now.contested;
        sim_trace(s, "process %u: generation %" PRIu64 " is policy %u with settings %u", p->number, g->number,
                  intent_of_text(g->policy_bytes), intent_of_text(g->settings_bytes));
        promises_judged(s, p, j);
        observer_judged(s, p);
}

/* --- actions --------------------------------------------------------------------------------------------------------- */

static bool is_linked(const struct sim *s, const struct head *h)
{
        struct fabsim_place ignored;

        return s->f.nodes[h->place.node].is_up && fabsim_peer(&s->f, h->place, &ignored);
}

static void open_port(struct sim *s, struct process *p, const struct settings *settings, struct sim_answer *a)
{
        const struct mad_gate gate = control_gate(p->control);
        struct control_port *ret = &a->event.port;
        struct mad_engine_config config = {
                .window = settings->window, .timeout = settings->timeout, .tid_key = prng_next(&s->rng),
        };

        *ret = (struct control_port) { .name = "mlx5_0 port 1", .host_guids = &a->guid, .n_host_guids = 1 };
        ret->guid = a->guid = fabsim_port_at(&s->f, p->head->place)->guid;
        ret->r = is_linked(s, p->head) ? 0 : -ENETDOWN;
        if (ret->r < 0) {
                close_port(s, p);
        } else if (!p->port) {
                if (mad_dispatcher_new(&config, &p->port) < 0)
                        abort();
                mad_dispatcher_set_gate(p->port, &gate);
        }
}

static void read_local_tables(struct sim *s, const struct process *p, struct sim_answer *a)
{
        const struct fabsim_port *port = fabsim_port_at(&s->f, p->head->place);

        a->table = (struct local_table) { .port_guid = port->guid };
        if (is_linked(s, p->head)) {
                a->table.entries = port->table;
                a->table.n_entries = port->capacity;
        }
        a->event.local.tables = &a->table;
        a->event.local.n = 1;
}

static void read_files(struct head *h, const struct sim_answer *a, struct control_event *ret)
{
        for (unsigned i = 0; i < CONTROL_MAX_FILES && *a->paths[i]; i++) {
                const struct sim_file *f = head_file(h, a->paths[i]);

                ret->files[i] = (struct control_file) { .path = a->paths[i], .r = f ? 0 : -ENOENT };
                if (!f)
                        continue;
                ret->files[i].bytes = f->bytes;
                ret->files[i].n = f->n;
        }
}

static bool is_copied(struct head *h, const struct sim_file *f, const char *path)
{
        const struct sim_file *copy = head_file(h, path);

        return copy && f->n == copy->n && memcmp(f->bytes, copy->bytes, f->n) == 0;
}

/* A file that an admin edited before pkeyd read it last stays, unless it was handed over, or OpenSM would drop it and pkeyd has
 * kept it. */
static void check_replaced(struct sim *s, const struct process *p, const char *path)
{
        const struct sim_file *f = strcmp(path, SIM_CONF) == 0 ? head_file(p->head, path) : NULL;

        if (f && f->kept_since > 0 && f->kept_since < p->conf_read_at && !is_copied(p->head, f, SIM_CONF ".before-pkeyd") &&
            !is_copied(p->head, f, SIM_CONF ".refused"))
                sim_fail(s, "process %u replaces a partition file that was edited", p->number);
}

static int write_file(struct sim *s, struct process *p, const struct sim_answer *a)
{
        const struct control_file *f = &a->action.files[0];

        check_replaced(s, p, a->paths[0]);
        if (p->head->store->fails)
                return -ENOSPC; /* the disk is full */
        head_write_file(s, p->head, a->paths[0], f->bytes, f->n, p);
        return 0;
}

/* Carries out an action; returns its answer. */
static void carry_out(struct sim *s, struct process *p, struct sim_answer *a)
{
        struct control_event *e = &a->event;

        a->done = true;
        switch (a->action.kind) {
        case CONTROL_OPEN_PORT:
                e->kind = CONTROL_EVENT_PORT;
                open_port(s, p, a->action.settings, a);
                break;
        case CONTROL_FOLLOW_STORE:
                e->kind = CONTROL_EVENT_FOLLOWED;
                head_follow(s, p, &e->lock);
                p->loads |= e->lock.changed != NULL;
                break;
        case CONTROL_LOCK:
                e->kind = CONTROL_EVENT_LOCK;
                head_lock(s, p, &e->lock);
                p->loads |= e->lock.changed != NULL;
                break;
        case CONTROL_STORE:
                e->kind = CONTROL_EVENT_STORED;
                e->r = head_store(s, p, a->action.transaction);
                break;
        case CONTROL_READ_LOCAL_TABLES:
                e->kind = CONTROL_EVENT_LOCAL_TABLES;
                read_local_tables(s, p, a);
                break;
        case CONTROL_READ_FILES:
                e->kind = CONTROL_EVENT_FILES_READ;
                read_files(p->head, a, e);
                p->conf_read_at = s->now;
                break;
        case CONTROL_WRITE_FILE:
                e->kind = CONTROL_EVENT_FILE_WRITTEN;
                e->r = write_file(s, p, a);
                break;
        case CONTROL_SIGNAL_OPENSM:
                e->kind = CONTROL_EVENT_OPENSM_SIGNALLED;
                e->opensm.r = opensm_signal(s, p->head, a->action.signal);
                e->opensm.why = "there is no process of OpenSM";
                break;
        case CONTROL_ASK_PERSON:
                e->kind = CONTROL_EVENT_PERSON_ANSWERED;
                e->yes = prng_permille(&s->rng, 900);
                break;
        case CONTROL_LOAD_UNDO:
                e->kind = CONTROL_EVENT_CANDIDATE;
                e->candidate.is_undo = true;
                e->candidate.request = a->undo.request;
                break; /* the rest when it is answered */
        case CONTROL_RUN_STAGE:
        case CONTROL_ABANDON_STAGE:
        case CONTROL_CHOOSE_TABLES:
        case CONTROL_CLOSE_PORT:
        case CONTROL_UNLOCK:
        case CONTROL_LOG:
        case CONTROL_ANSWER:
        case CONTROL_ANSWER_LEASE:
        case CONTROL_EXIT:
                sim_fail(s, "action %d has no answer", (int) a->action.kind);
                break;
        }
}

/* What an action points at is valid until control is called again, but for the bytes of a file. */
static bool must_be_done_at_once(enum control_action_kind kind)
{
        return kind == CONTROL_OPEN_PORT || kind == CONTROL_STORE;
}

static bool must_be_done_at_last(enum control_action_kind kind)
{
        return kind == CONTROL_READ_LOCAL_TABLES || kind == CONTROL_READ_FILES; /* the answer points at what was read */
}

static void begin(struct sim *s, struct process *p, const struct control_action *action)
{
        struct sim_answer *a = calloc(1, sizeof(*a));
        usec_t takes = 1 + prng_below(&s->rng, 3000);
        struct event *e;

        if (p->waits_for[action->kind]++ > 0 && action->kind != CONTROL_LOAD_UNDO)
                sim_fail(s, "action %d comes again before it was answered", (int) action->kind);
        if (sim_passes_on(s) && action->kind == CONTROL_LOAD_UNDO && control_get_status(p->control)->guest)
                sim_fail(s, "process %u stands by, and undoes", p->number);
        a->process = p->number;
        a->life = p->life;
        a->action = *action;
        for (unsigned i = 0; action->kind == CONTROL_READ_FILES && i < CONTROL_MAX_FILES && action->files[i].path; i++)
                (void) snprintf(a->paths[i], sizeof(a->paths[i]), "%s", action->files[i].path);
        if (action->kind == CONTROL_LOAD_UNDO)
                a->undo = *action->undo;
        if (action->kind == CONTROL_WRITE_FILE)
                (void) snprintf(a->paths[0], sizeof(a->paths[0]), "%s", action->files[0].path);
        if (must_be_done_at_once(action->kind) || (!must_be_done_at_last(action->kind) && prng_permille(&s->rng, 500)))
                carry_out(s, p, a);
        if (!s->quiet && prng_permille(&s->rng, s->faults.slow))
                takes += prng_below(&s->rng, 4000000);
        if (action->kind == CONTROL_ASK_PERSON)
                takes += prng_below(&s->rng, 90) * USEC_PER_SEC;
        e = events_add(&s->events, s->now + takes, EVENT_ANSWER);
        e->data = a;
}

static void answer_requests(struct sim *s, struct process *p, const struct reload_end *end)
{
        if (!*end->text)
                sim_fail(s, "a reload is answered without a word");
        for (size_t i = 0; i < end->n_requests; i++) {
                unsigned k = 0;

                if (end->requests[i] == p->asked_of_guest) {
                        p->asked_of_guest = 0;
                        if (end->outcome != RELOAD_REFUSED)
                                sim_fail(s, "process %u stands by, and confirms or undoes", p->number);
                }

                while (k < p->n_requests && p->requests[k] != end->requests[i])
                        k++;
                if (k == p->n_requests)
                        sim_fail(s, "a reload is answered that nobody asked for, or again");
                else
                        p->requests[k] = p->requests[--p->n_requests];
        }
}

static void exit_process(struct sim *s, struct process *p, int r)
{
        if (control_get_status(p->control)->state != CONTROL_ENDED)
                sim_fail(s, "process %u ends in state %d", p->number, (int) control_get_status(p->control)->state);
        sim_trace(s, "process %u ends with %d", p->number, r);
        p->killed = true;
}

static void act(struct sim *s, struct process *p, const struct control_action *action)
{
        switch (action->kind) {
        case CONTROL_RUN_STAGE:
                if (!p->port) {
                        sim_fail(s, "a stage without a port");
                        return;
                }
                p->stage = control_get_status(p->control)->state;
                p->stage_began = s->now;
                mad_dispatcher_start(p->port, action->stage);
                return;
        case CONTROL_ABANDON_STAGE:
                mad_dispatcher_abandon(p->port, clocks_now(s, p->head));
                wire_abandoned(s, p);
                return;
        case CONTROL_CLOSE_PORT:
                close_port(s, p);
                return;
        case CONTROL_UNLOCK:
                head_unlock(p);
                return;
        case CONTROL_LOG:
                sim_digest(s, action->entry->text);
                sim_trace(s, "%u log: %s", p->number, action->entry->text);
                if (!*action->entry->text || strchr(action->entry->text, '\n'))
                        sim_fail(s, "a log entry is no line: %s", action->entry->text);
                return;
        case CONTROL_ANSWER:
                answer_requests(s, p, action->end);
                return;
        case CONTROL_ANSWER_LEASE:
                clients_answered(s, p, action->lease);
                return;
        case CONTROL_EXIT:
                exit_process(s, p, action->r);
                return;
        case CONTROL_OPEN_PORT:
        case CONTROL_FOLLOW_STORE:
        case CONTROL_LOCK:
        case CONTROL_STORE:
        case CONTROL_READ_LOCAL_TABLES:
        case CONTROL_READ_FILES:
        case CONTROL_WRITE_FILE:
        case CONTROL_SIGNAL_OPENSM:
        case CONTROL_CHOOSE_TABLES:
        case CONTROL_ASK_PERSON:
        case CONTROL_LOAD_UNDO:
                begin(s, p, action);
                return;
        }
}

/* --- events ---------------------------------------------------------------------------------------------------------- */

/* A sweep that ended is seen by its count. */
static void see_sweeps(struct sim *s, struct process *p)
{
        const struct control_status *status = control_get_status(p->control);

        if (status->standby)
                p->stood_by_at = s->now;
        if (status->state != CONTROL_IDLE && p->sweep_began == 0)
                p->sweep_began = s->now;
        for (int r = 0; r < SWEEP_N_RESULTS; r++) {
                if (status->numbers.sweeps[r] == p->n_sweeps[r])
                        continue;
                p->n_sweeps[r]++;
                p->last_result = (enum sweep_result) r;
                p->n_quiet += p->full && r != SWEEP_STALE && s->quiet && p->sweep_began > s->calm_at;
                p->sweep_began = 0;
                p->full = false;
                s->counters.sweeps++;
                if (r == SWEEP_DONE || r == SWEEP_PARTIAL || (r == SWEEP_FAILED && status->numbers.n_plans != p->n_plans_before))
                        promises_given(s, p);
                p->n_plans_before = status->numbers.n_plans;
                promises_swept(s, p);
                p->number_taken = 0;
                observer_swept(p);
        }
}

/* Fails if the process waits for nothing, because it would wait forever. */
static void check_waiting(struct sim *s, const struct process *p)
{
        enum control_state state = control_get_status(p->control)->state;
        unsigned waits_for = 0;

        if (state == CONTROL_ENDED)
                return;
        for (unsigned i = 0; i < CONTROL_N_ACTIONS; i++)
                waits_for += p->waits_for[i];
        if (!waits_for && !(p->port && mad_dispatcher_is_running(p->port)) && control_due(p->control) == USEC_INFINITY)
                sim_fail(s, "process %u waits for nothing in state %d", p->number, (int) state);
}

static void post(struct sim *s, struct process *p, struct control_event *event)
{
        enum control_event_kind kind = event->kind;
        int r;

        event->wall = clocks_wall(s, p->head);
        fail_alloc_enter();
        r = control_event(p->control, clocks_now(s, p->head), event);
        fail_alloc_leave();
        if (r < 0 && control_get_status(p->control)->state != CONTROL_ENDED)
                sim_fail(s, "event %d was not expected in state %d", (int) kind,
                         (int) control_get_status(p->control)->state);
        take_judgement(s, p);
        observer_suspect(s, p);
        if (is_carried_out(p))
                promises_given(s, p);
        see_sweeps(s, p);
}

static bool next_action(struct process *p, struct control_action *ret)
{
        bool is_one;

        fail_alloc_enter();
        is_one = control_next_action(p->control, ret);
        fail_alloc_leave();
        return is_one;
}

static bool next_send(struct sim *s, struct process *p, struct mad_frame *ret)
{
        bool is_one;

        fail_alloc_enter();
        is_one = mad_dispatcher_next_send(p->port, clocks_now(s, p->head), ret);
        fail_alloc_leave();
        return is_one;
}

static void take_turn(struct sim *s, struct process *p)
{
        struct mad_frame frame;

        while (!p->killed && !s->failed && next_send(s, p, &frame)) {
                if (!s->quiet && prng_permille(&s->rng, s->faults.send_fails))
                        mad_dispatcher_send_failed(p->port, clocks_now(s, p->head), &frame, ENOBUFS);
                else
                        wire_send(s, p, &frame);
        }
}

static bool take_stage_end(struct sim *s, struct process *p, struct control_event *ret)
{
        if (p->killed || !p->port || !mad_dispatcher_take_end(p->port, &ret->r))
                return false;
        if (ret->r == -ECANCELED) /* nothing that it read counts */
                observer_forget_stage(s, p);
        else if (ret->r < 0)
                sim_fail(s, "a stage waits for nothing");
        ret->kind = CONTROL_EVENT_STAGE_ENDED;
        observer_stage_ended(s, p);
        p->full = p->full && ret->r == 0;
        if (ret->r == 0 && p->stage == CONTROL_DISCOVERING) {
                p->full = true;
                world_take_census(s, p->head, p->stage_began, &p->census);
        }
        return true;
}

/* Gives an event, and carries out its immediate consequences. */
static void feed(struct sim *s, struct process *p, struct control_event *event)
{
        struct control_event ended = {};
        struct control_action action;
        bool more = true;

        p->killed |= p->dies_applying && control_get_status(p->control)->state == CONTROL_APPLYING;
        head_renew(s, p);
        while (more && !s->failed) {
                post(s, p, event);
                while (!p->killed && !s->failed && next_action(p, &action)) {
                        p->killed |= action.kind != CONTROL_LOG && !s->quiet && prng_permille(&s->rng, s->faults.kill);
                        if (!p->killed || prng_permille(&s->rng, 500)) /* before it was done, or just after */
                                act(s, p, &action);
                }
                if (p->port)
                        take_turn(s, p);
                more = take_stage_end(s, p, &ended);
                event = &ended;
        }
        if (!p->killed && !s->failed)
                check_waiting(s, p);
        if (p->killed)
                bury(s, p);
        else if (sim_passes_on(s))
                mailbox_update(s, p);
}

usec_t process_due(const struct process *p)
{
        usec_t due = p->control ? control_due(p->control) : USEC_INFINITY;

        due = p->port ? MIN(due, mad_dispatcher_due(p->port)) : due;
        due = p->head ? clocks_virtual(p->head, due) : due;
        return due == USEC_INFINITY ? due : MAX(due, p->paused_until);
}

/* Frames of its port may end a stage. */
static void turn(struct sim *s, struct process *p)
{
        struct control_event ended = {};

        take_turn(s, p);
        if (take_stage_end(s, p, &ended))
                feed(s, p, &ended);
        else if (p->killed)
                bury(s, p);
}

void process_tick(struct sim *s, struct process *p)
{
        struct control_event event = { .kind = CONTROL_EVENT_DUE };

        if (p->port && clocks_now(s, p->head) >= mad_dispatcher_due(p->port))
                turn(s, p);
        if (p->control && clocks_now(s, p->head) >= control_due(p->control))
                feed(s, p, &event);
}

void process_receive(struct sim *s, struct process *p, const struct event *e)
{
        struct mad_engine_counters before, after;

        if (!p->port)
                return;
        mad_dispatcher_get_counters(p->port, &before);
        fail_alloc_enter();
        mad_dispatcher_receive(p->port, clocks_now(s, p->head), &e->frame);
        fail_alloc_leave();
        mad_dispatcher_get_counters(p->port, &after);
        if (after.answered + after.busy > before.answered + before.busy)
                wire_answered(s, p, e);
        if (after.slots > MAX_SLOTS)
                sim_fail(s, "memory grows: %zu slots", after.slots);
        turn(s, p);
}

void process_drop(struct sim_answer *a)
{
        if (a->done && (a->event.kind == CONTROL_EVENT_LOCK || a->event.kind == CONTROL_EVENT_FOLLOWED)) {
                (void) remembered_free(a->event.lock.changed);
                generation_unref(a->event.lock.in_force);
        }
}

/* The generation is read when the answer is given. */
static void answer_undo(struct sim *s, struct process *p, struct sim_answer *a)
{
        _cleanup_arena_ struct arena *arena = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = arena };

        a->event.candidate.generation = head_load_undo(s, p->head, &a->undo, &findings);
        a->event.candidate.findings = &findings;
        if (!s->failed)
                feed(s, p, &a->event);
}

void process_answer(struct sim *s, struct sim_answer *a)
{
        struct process *p = &s->processes[a->process];

        if (!p->control || p->life != a->life) {
                process_drop(a);
                return;
        }
        p->waits_for[a->action.kind]--;
        if (!a->done)
                carry_out(s, p, a);
        if (a->action.kind == CONTROL_LOCK || a->action.kind == CONTROL_FOLLOW_STORE)
                p->loads = false;
        if (a->action.kind == CONTROL_LOAD_UNDO)
                answer_undo(s, p, a);
        else if (!s->failed)
                feed(s, p, &a->event);
        if (a->action.kind == CONTROL_LOCK && p->control && p->life == a->life && !control_get_status(p->control)->guest)
                p->has_loaded = false; /* a writer goes on by its own leases */
}

/* Signals and events do not reach a process that is paused; nobody tries again. */
void process_hangup(struct sim *s, struct process *p)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct control_event event = { .kind = CONTROL_EVENT_CANDIDATE };

        if (!p->control || control_get_status(p->control)->stopping || is_paused(s, p))
                return;
        s->counters.reloads++;
        if (s->fail_in_reload)
                fail_alloc_at(s->fail_in_reload);
        s->fail_in_reload = 0;
        event.candidate.generation = head_load(s, p->head, &findings);
        event.candidate.findings = &findings;
        if (event.candidate.generation)
                event.candidate.generation->facts.origin.kind = ORIGIN_SIGNAL; /* so that its settings are stored */
        if (event.candidate.generation && sim_has_undos(s) && prng_permille(&s->undo_rng, 600))
                event.candidate.generation->facts.confirm_for = prng_between(&s->undo_rng, 1, 60);
        if (event.candidate.generation && sim_has_leases(s))
                event.candidate.generation->facts.releases_stranded = prng_permille(&s->lease_rng, 500);
        if (prng_permille(&s->rng, 500) && p->n_requests < SIM_MAX_REQUESTS) {
                event.candidate.request = ++s->last_request;
                p->requests[p->n_requests++] = event.candidate.request;
        }
        feed(s, p, &event);
}

void process_lease(struct sim *s, struct process *p, const struct lease_request *q)
{
        struct control_event event = { .kind = CONTROL_EVENT_LEASE, .lease = *q };

        feed(s, p, &event);
}

void process_store_changed(struct sim *s, struct process *p)
{
        struct control_event event = { .kind = CONTROL_EVENT_STORE_CHANGED };

        feed(s, p, &event);
}

void process_stop(struct sim *s, struct process *p)
{
        struct control_event event = { .kind = CONTROL_EVENT_STOP };

        if (p->control && !control_get_status(p->control)->stopping && !is_paused(s, p))
                feed(s, p, &event);
}

void process_verbs(struct sim *s, struct process *p, enum verbs_event_kind kind)
{
        struct control_event event = {
                .kind = CONTROL_EVENT_VERBS,
                .verbs = { .kind = kind, .device = "mlx5_0", .number = kind == VERBS_DEVICE_FATAL ? 0 : 1 },
        };

        if (!p->control || is_paused(s, p))
                return;
        if (kind == VERBS_P_KEY_CHANGE && prng_permille(&s->rng, 500))
                event.verbs.port_guid = fabsim_port_at(&s->f, p->head->place)->guid;
        feed(s, p, &event);
}
