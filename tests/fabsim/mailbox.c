/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests for leases that two head nodes which share a store pass on to each other: src/pkeyd/forward.c and
 * src/etcd/etcd_mailbox.c, in virtual time. The texts are those of records/lease_json.c, as in pkeyd.
 *
 *     caller -> control of a guest: LEASE_ELSEWHERE -> ask/ID -> control of a writer -> answer/ID -> caller
 *
 * Each process looks into the mailbox twice a second while it writes, as it believes, or has callers that wait. A look, a request
 * that is left, fetched or answered takes a while. It fails where etcd cannot be reached, and of those that fail some had their
 * effect: a request is then left once more after it was answered, or is answered without its process knowing that.
 *
 * There is neither an order nor an addressee. Whoever writes takes what it finds; so do two at a time, if one of them has not
 * noticed that it does not write any more. The first answer counts. A request outlives the process that left it, and what is
 * carried out then is answered to nobody. It is gone when its lease of etcd ends, or when its caller does not wait any more and its
 * process reaches etcd to say so.
 *
 * A process that is paused, killed or cut off does none of this. A process is also killed between carrying out a request and
 * answering it.
 */

#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "records/lease_json.h"
#include "util/macros.h"

#define INTERVAL   (500 * USEC_PER_MSEC)
#define SPARE      30u /* as in forward.c: seconds that a caller waits in addition to what it asked for */
#define LEASE_MORE 60u /* as in etcd_mailbox.c: seconds that the lease of a request is longer than that */
#define CALM       (60 * USEC_PER_SEC) /* after the last fault: by then a head node writes */

enum step {
        STEP_TICK,    /* the time to look has come */
        STEP_LOOKED,
        STEP_LEFT,    /* x: the letter */
        STEP_FETCHED, /* x: the request that was taken */
        STEP_REPLIED,
};

/* revision: of what is taken, which may be another request by then. */
static void later(struct sim *s, const struct process *p, usec_t after, enum step what, unsigned x, uint64_t revision)
{
        struct event *e = events_add(&s->events, s->now + after, EVENT_MAIL);

        e->process = p->number;
        e->life = p->life;
        e->what = what;
        e->x = x;
        e->revision = revision;
}

static usec_t latency(struct sim *s)
{
        usec_t slow = !s->quiet && prng_permille(&s->mail_rng, 50) ? prng_below(&s->mail_rng, 3000000) : 0;

        return 1000 + prng_below(&s->mail_rng, 30000) + slow;
}

/* A call that fails may have had its effect. */
static bool arrives(struct sim *s, const struct process *p)
{
        return !p->head->is_cut_off || prng_permille(&s->mail_rng, 300);
}

static bool has_letters(const struct sim *s, const struct process *p)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++) {
                const struct sim_letter *l = &s->mailbox.letters[i];

                if (l->is_awaited && l->process == p->number && l->life == p->life)
                        return true;
        }
        return false;
}

static void arm(struct sim *s, const struct process *p)
{
        if (s->mailbox.of[p->number].is_armed || (!s->mailbox.of[p->number].serves && !has_letters(s, p)))
                return;
        s->mailbox.of[p->number].is_armed = true;
        later(s, p, INTERVAL, STEP_TICK, 0, 0);
}

/* --- letters ---------------------------------------------------------------------------------------------------------- */

static void letter_clear(struct sim_letter *l)
{
        free(l->text);
        free(l->answer);
        *l = (struct sim_letter) {};
}

static bool is_free(const struct sim *s, const struct sim_letter *l)
{
        return !l->is_awaited && (l->id == 0 || s->now >= l->gone_at);
}

static bool is_in_mailbox(const struct sim *s, const struct sim_letter *l)
{
        return l->created > 0 && s->now < l->gone_at;
}

/* NULL: it is gone. */
static struct sim_letter *find_letter(struct sim *s, uint64_t id)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++)
                if (s->mailbox.letters[i].id == id && id > 0)
                        return &s->mailbox.letters[i];
        return NULL;
}

static void leave(struct sim *s, const struct process *p, struct sim_letter *l)
{
        if (l->is_left || l->is_leaving)
                return;
        l->is_leaving = true;
        later(s, p, latency(s), STEP_LEFT, (unsigned) (l - s->mailbox.letters), 0);
}

/* A request that was answered before its process knew that it was left is there again. */
static void left(struct sim *s, const struct process *p, struct sim_letter *l)
{
        if (!l->is_leaving || l->life != p->life || l->process != p->number)
                return; /* another one is at its place */
        l->is_leaving = false;
        if (arrives(s, p)) {
                if (l->id == 0)
                        l->gone_at = s->now + (l->seconds + LEASE_MORE) * USEC_PER_SEC;
                l->id = l->id ?: ++s->mailbox.last_id;
                l->created = l->created ?: ++s->mailbox.last_revision;
        }
        l->is_left = !p->head->is_cut_off;
}

void mailbox_ask(struct sim *s, struct process *p, const struct sim_lease_request *q)
{
        char members[CLIENTS_MEMBERS], pool[8];
        const struct lease_request request = clients_request(q, members, pool);
        uint64_t wait = q->kind == LEASE_CREATE && q->timeout > 0 ? MIN(q->timeout, LEASE_TIMEOUT_MAX) : LEASE_TIMEOUT;
        _cleanup_json_ json_t *o = lease_request_to_json(&request);
        struct sim_letter *l = s->mailbox.letters;

        while (l < s->mailbox.letters + SIM_MAX_LETTERS && !is_free(s, l))
                l++;
        if (l == s->mailbox.letters + SIM_MAX_LETTERS) {
                sim_fail(s, "too many requests are in the mailbox");
                return;
        }
        letter_clear(l);
        *l = (struct sim_letter) {
                .is_awaited = true, .process = p->number, .life = p->life, .asked = *q, .seconds = (unsigned) wait + SPARE,
                .text = json_dumps(o, JSON_COMPACT),
        };
        l->late_at = s->now + l->seconds * USEC_PER_SEC;
        s->counters.passed_on++;
        leave(s, p, l);
        arm(s, p);
}

/* Nobody waits any more: the lease is given back, if etcd can be reached. */
static void end_letter(const struct process *p, struct sim_letter *l)
{
        l->is_awaited = l->is_leaving = false;
        if (!p->head->is_cut_off)
                letter_clear(l);
}

static void end_late(struct sim *s, const struct process *p)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++) {
                struct sim_letter *l = &s->mailbox.letters[i];

                if (!l->is_awaited || l->process != p->number || l->life != p->life)
                        continue;
                if (s->now < l->late_at) {
                        leave(s, p, l);
                        continue;
                }
                s->counters.unanswered++;
                sim_trace(s, "client: request %" PRIu64 " of process %u has no answer", l->asked.number, p->number);
                if (s->quiet && l->asked.at >= s->quiet_at + CALM)
                        s->ledger.unanswered = l->asked.number;
                end_letter(p, l);
        }
}

/* --- taken requests --------------------------------------------------------------------------------------------------- */

static void taken_clear(struct sim_taken *t)
{
        free(t->reply);
        *t = (struct sim_taken) {};
}

static struct sim_taken *find_taken(struct sim *s, const struct process *p, uint64_t id)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++)
                if (s->mailbox.of[p->number].taken[i].id == id)
                        return &s->mailbox.of[p->number].taken[i];
        return NULL;
}

static void taken_go_on(struct sim *s, const struct process *p, struct sim_taken *t)
{
        bool replies = t->reply && !t->is_replied;
        unsigned x = (unsigned) (t - s->mailbox.of[p->number].taken);

        if (t->calls || (t->is_asked && !replies))
                return;
        t->calls = true;
        later(s, p, latency(s), t->is_asked ? STEP_REPLIED : STEP_FETCHED, x, t->created);
}

static void take(struct sim *s, const struct process *p, const struct sim_letter *l)
{
        struct sim_taken *t = find_taken(s, p, l->id);

        if (t && t->created != l->created) {
                taken_clear(t); /* it was left once more after it was answered */
                t = NULL;
        }
        if (!t)
                t = find_taken(s, p, 0);
        if (!t)
                return;
        t->id = l->id;
        t->created = l->created;
}

static void see_requests(struct sim *s, const struct process *p)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++)
                if (is_in_mailbox(s, &s->mailbox.letters[i]))
                        take(s, p, &s->mailbox.letters[i]);
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++) {
                struct sim_taken *t = &s->mailbox.of[p->number].taken[i];
                const struct sim_letter *l = find_letter(s, t->id);

                if (t->id > 0 && !(l && is_in_mailbox(s, l)))
                        taken_clear(t);
                if (t->id > 0)
                        taken_go_on(s, p, t);
        }
}

static bool is_still_there(const struct sim *s, const struct sim_letter *l, const struct sim_taken *t)
{
        return l && is_in_mailbox(s, l) && l->created == t->created;
}

/* If it fails, the next look finds it again, or not. */
static void fetched(struct sim *s, struct process *p, struct sim_taken *t)
{
        struct sim_letter *l = find_letter(s, t->id);
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *o = NULL;
        struct sim_lease_request q;
        struct lease_request request;

        if (p->head->is_cut_off || !is_still_there(s, l, t) || p->n_lease_requests == SIM_MAX_REQUESTS)
                return;
        o = json_loads(l->text, JSON_REJECT_DUPLICATES, NULL);
        if (!lease_request_from_json(a, o, &request)) {
                sim_fail(s, "a request that was passed on is not understood: %s", l->text);
                return;
        }
        t->is_asked = true;
        s->counters.carried_out_again += l->n_carried_out++ > 0;
        q = l->asked;
        q.number = request.by.request = l->id | SIM_FOREIGN;
        clients_take(s, p, &q, &request);
}

static void replied(struct sim *s, const struct process *p, struct sim_taken *t)
{
        struct sim_letter *l = find_letter(s, t->id);

        t->is_replied = !p->head->is_cut_off;
        if (!arrives(s, p) || !is_still_there(s, l, t))
                return;
        free(l->answer);
        l->answer = strdup(t->reply);
        l->created = 0;
}

/* Whoever writes next finds a request in the mailbox that was passed on once more, or could not be stored. */
void mailbox_reply(struct sim *s, struct process *p, const struct lease_reply *reply)
{
        struct sim_taken *t = find_taken(s, p, reply->answer.request & ~SIM_FOREIGN);
        _cleanup_json_ json_t *o = NULL;

        if (reply->answer.outcome > LEASE_REFUSED)
                return;
        if (!s->quiet && prng_permille(&s->mail_rng, 20)) {
                p->killed = true;
                return;
        }
        if (!t || t->reply)
                return;
        o = lease_reply_to_json(reply);
        t->reply = json_dumps(o, JSON_COMPACT);
        taken_go_on(s, p, t);
}

/* --- looking ---------------------------------------------------------------------------------------------------------- */

static void read_answer(struct sim *s, struct process *p, struct sim_letter *l)
{
        _cleanup_(lease_free_p) struct lease *lease = lease_new();
        _cleanup_findings_ struct findings findings = {};
        _cleanup_json_ json_t *o = json_loads(l->answer, JSON_REJECT_DUPLICATES, NULL);
        const struct sim_lease_request asked = l->asked;
        struct lease_reply reply = { .findings = &findings };

        findings = (struct findings) { .arena = lease->arena };
        if (!lease_reply_from_json(o, control_get_status(p->control)->known, lease, &findings, &reply.answer))
                sim_fail(s, "an answer of the other head node is not understood: %s", l->answer);
        reply.answer.request = asked.number;
        end_letter(p, l);
        if (!s->failed)
                clients_told(s, p, &asked, &reply);
}

static void see_answers(struct sim *s, struct process *p)
{
        uint64_t life = p->life;

        for (unsigned i = 0; p->life == life && i < SIM_MAX_LETTERS; i++) {
                struct sim_letter *l = &s->mailbox.letters[i];

                if (l->is_awaited && l->process == p->number && l->life == life && l->answer && s->now < l->gone_at)
                        read_answer(s, p, l);
        }
}

static void looked(struct sim *s, struct process *p)
{
        s->mailbox.of[p->number].looks = false;
        if (p->head->is_cut_off)
                return;
        if (s->mailbox.of[p->number].serves)
                see_requests(s, p);
        see_answers(s, p);
}

static void tick(struct sim *s, struct process *p)
{
        s->mailbox.of[p->number].is_armed = false;
        end_late(s, p);
        if (!s->mailbox.of[p->number].looks && (s->mailbox.of[p->number].serves || has_letters(s, p))) {
                s->mailbox.of[p->number].looks = true;
                later(s, p, latency(s), STEP_LOOKED, 0, 0);
        }
        arm(s, p);
}

void mailbox_event(struct sim *s, const struct event *e)
{
        struct process *p = &s->processes[e->process];
        struct sim_taken *t = &s->mailbox.of[e->process].taken[e->x];

        if (!p->control || p->life != e->life)
                return;
        if (e->what == STEP_FETCHED || e->what == STEP_REPLIED) {
                if (!t->calls || t->created != e->revision)
                        return; /* it was dropped meanwhile */
                t->calls = false;
        }
        switch ((enum step) e->what) {
        case STEP_TICK:
                tick(s, p);
                break;
        case STEP_LOOKED:
                looked(s, p);
                break;
        case STEP_LEFT:
                left(s, p, &s->mailbox.letters[e->x]);
                break;
        case STEP_FETCHED:
                fetched(s, p, t);
                break;
        case STEP_REPLIED:
                replied(s, p, t);
                break;
        }
}

/* --- who serves it ---------------------------------------------------------------------------------------------------- */

/* What it has not answered is left to others. */
void mailbox_update(struct sim *s, struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        bool serves = status->in_force && !status->guest && !status->stopping;

        if (status->guest && !status->stopping && p->n_lease_requests > 0)
                sim_fail(s, "process %u stands by, and lets %u callers wait", p->number, p->n_lease_requests);
        for (unsigned i = 0; !serves && i < SIM_MAX_LETTERS; i++)
                if (!s->mailbox.of[p->number].taken[i].reply)
                        taken_clear(&s->mailbox.of[p->number].taken[i]);
        s->mailbox.of[p->number].serves = serves;
        arm(s, p);
}

void mailbox_forget(struct sim *s, const struct process *p)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++) {
                struct sim_letter *l = &s->mailbox.letters[i];

                taken_clear(&s->mailbox.of[p->number].taken[i]);
                if (l->process == p->number && l->life == p->life)
                        l->is_awaited = l->is_leaving = false;
        }
        s->mailbox.of[p->number].serves = s->mailbox.of[p->number].is_armed = s->mailbox.of[p->number].looks = false;
}

void mailbox_done(struct sim *s)
{
        for (unsigned i = 0; i < SIM_MAX_LETTERS; i++)
                letter_clear(&s->mailbox.letters[i]);
}
