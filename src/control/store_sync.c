/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/store_sync.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "control/confirm.h"

#define RETRY_STORE USEC_PER_SEC

/* --- what must be stored --------------------------------------------------------------------------------------------- */

void sync_will_store(struct control *c, struct generation *g)
{
        if (c->unstored && c->unstored->number != g->number) {
                generation_unref(c->unstored_before);
                c->unstored_before = STEAL(c->unstored);
        }
        generation_unref(c->unstored);
        c->unstored = generation_ref(g);
        g->facts.settings_size = g->n_settings_bytes; /* what is stored */
}

static void unstore(struct control *c)
{
        knowledge_unstore(c->knowledge);
        (void) index_memory_unstore(c->indexes); /* if out of memory, some freed indexes are not stored */
        known_unstore(&c->known);
        pins_unstore(&c->pins);
        leases_unstore(c->leases);
        generation_history_done(&c->history);
        before_records_done(&c->before);
        if (c->in_force && c->in_force->number > 0 && !c->in_force->audits)
                sync_will_store(c, c->in_force);
}

void sync_store_was_lost(struct control *c)
{
        if (c->config.shares_store)
                knowledge_stop_following(c->knowledge);
        unstore(c);
}

/* --- transactions ---------------------------------------------------------------------------------------------------- */

struct store_transaction *sync_begin(struct control *c)
{
        struct sync *s = &c->sync;

        assert(!s->arena);
        s->arena = arena_new();
        if (!s->arena)
                return NULL;
        store_transaction_init(&s->transaction, s->arena);
        return &s->transaction;
}

void sync_put(struct control *c)
{
        struct sync *s = &c->sync;

        records_put_leases(&s->transaction, c->leases);
        leases_storing(c->leases);
        if (s->facts != FACTS_CHANGED)
                return;
        if (!c->unstored) /* else they are stored with its files */
                records_put_facts(&s->transaction, c->in_force);
        s->facts = FACTS_STORING;
}

int sync_end(struct control *c, int r)
{
        struct sync *s = &c->sync;

        s->arena = arena_free(s->arena);
        if (r == -EUCLEAN)
                unstore(c);
        if (s->facts == FACTS_STORING)
                s->facts = r < 0 ? FACTS_CHANGED : FACTS_STORED;
        if (r < 0)
                return r;
        leases_stored(c->leases);
        if (s->facts == FACTS_STORED)
                confirm_answer_stored(c);
        return 0;
}

int sync_commit(struct control *c, enum control_state state)
{
        struct sync *s = &c->sync;

        if (s->transaction.error < 0)
                return sync_end(c, s->transaction.error);
        if (s->transaction.n == 0) {
                s->arena = arena_free(s->arena);
                return 0;
        }
        control_await(c, state, &(struct control_action) { .kind = CONTROL_STORE, .transaction = &s->transaction });
        return 1;
}

/* --- what is taken from the store ------------------------------------------------------------------------------------- */

static bool is_in_force(const struct control *c, uint64_t number, const char *policy, size_t n)
{
        return c->in_force && c->in_force->number == number && generation_has_policy(c->in_force, policy, n);
}

/* What is in force by the store is in force here, or was until this writer brought a later generation into force. */
static bool has_what_is_in_force(const struct control *c, const struct remembered *m)
{
        const struct generation *g = c->in_force;

        if (m->generation == 0 || !g)
                return m->generation == 0;
        if (!control_is_guest(c))
                return g->number >= m->generation;
        return m->policy ? is_in_force(c, m->generation, m->policy, m->n_policy) : g->number == m->generation;
}

static bool is_used(const struct knowledge *k, const struct freed_index *f)
{
        for (enum knowledge_kind kind = KNOWLEDGE_ENDPORT; kind <= KNOWLEDGE_LEAF; kind++) {
                uint32_t i = knowledge_find(k, (struct knowledge_name) { f->node_guid, f->port, kind });
                const struct knowledge_record *r = i == KNOWLEDGE_NONE ? NULL : knowledge_get(k, i);

                if (r && r->entries && f->index < r->capacity && p_key_is_used(r->entries[f->index]))
                        return true;
        }
        return false;
}

/* A host that stands by, or could not use the store, has seen entries disappear of which the store does not know. If out of memory,
 * some are forgotten. */
static void keep_freed(const struct control *c, struct remembered *m)
{
        size_t n;
        const struct freed_index *freed = index_memory_all(c->indexes, &n);

        for (size_t i = 0; i < n; i++) {
                const struct freed_index *f = &freed[i];

                if (!is_used(m->knowledge, f))
                        (void) index_memory_note_open(m->indexes, f->node_guid, f->port, f->index, p_key_make(f->base, f->full));
        }
}

void sync_take_all(struct control *c, struct remembered *m)
{
        control_drop_kept_policy(c);
        if (control_is_guest(c)) /* the OpenSM of this host, whose file is not in the store */
                knowledge_take_foreign(m->knowledge, c->knowledge);
        if (c->indexes) /* else pkeyd starts */
                keep_freed(c, m);
        (void) knowledge_free(c->knowledge);
        (void) index_memory_free(c->indexes);
        known_done(&c->known);
        pins_done(&c->pins);
        if (!control_serves(c) || !c->leases_taken || control_is_guest(c)) {
                leases_pass_on(c->leases, m->leases);
                (void) leases_free(c->leases);
                c->leases = STEAL(m->leases);
                leases_start(c->leases, c->now, c->wall / USEC_PER_SEC);
                c->status.lease_changes++;
        }
        c->leases_taken = true;
        generation_history_done(&c->history);
        before_records_done(&c->before);
        c->knowledge = STEAL(m->knowledge);
        c->indexes = STEAL(m->indexes);
        c->known = STEAL(m->known);
        c->pins = STEAL(m->pins);
        c->history = STEAL(m->history);
        c->before = STEAL(m->before);
        c->last_number = MAX(c->last_number, m->generation);
        c->not_loaded = c->config.shares_store && control_serves(c) && !has_what_is_in_force(c, m) ? m->generation : 0;
        (void) snprintf(c->boot, sizeof(c->boot), "%s", m->boot);
        (void) remembered_free(m);
}

struct generation *sync_continue(struct control *c, struct generation *g)
{
        struct generation *candidate = c->candidate;

        if (!candidate || !generation_has_policy(candidate, g->policy_bytes, g->n_policy_bytes))
                return g;
        generation_continue(candidate, g);
        generation_unref(g);
        c->candidate = NULL;
        schedule_no_candidate(&c->schedule);
        return candidate;
}

/* A generation that only audits is not in the store, so that another process gives its number to another one. Generations that came
 * into force while the store could not be read are not in it either: it may have later ones, or others with these numbers. */
static bool has_lost_number(const struct control *c, const struct generation *g, const struct remembered *changed)
{
        const struct generation *first = g == c->unstored && c->unstored_before ? c->unstored_before : g;

        if (!changed->policy || control_is_guest(c))
                return false;
        if (first->number == changed->generation) /* the store has the one before after all, if the answer to it was lost */
                return first == g || !generation_has_policy(first, changed->policy, changed->n_policy);
        return first->number < changed->generation && g == c->unstored;
}

/* If the state directory was deleted, the other process has begun a new store, which has neither the generation in force nor
 * leases: they must be stored again. A guest stores its generation if it writes before the other head node has stored one. */
static void take_changed(struct control *c, struct remembered *changed)
{
        struct generation *g = control_serves(c) ? c->in_force : NULL;
        uint64_t stored = changed->generation;
        bool is_guest = control_is_guest(c);
        bool is_same = changed->policy && is_in_force(c, stored, changed->policy, changed->n_policy);
        bool has_lost = g && !is_same && has_lost_number(c, g, changed);

        if (is_same) {
                confirm_adopt_stored(c, &changed->files.facts);
                if (c->in_force != c->unstored) /* the other process may have stored other settings with it */
                        c->in_force->facts.settings_size = changed->files.facts.settings_size;
        }
        sync_take_all(c, changed);
        c->knowledge_is_new = true;
        if (!g)
                return;
        if (!is_guest)
                leases_unstore(c->leases);
        if (has_lost) {
                if (g == c->unstored && c->unstored_before)
                        c->unstored_before->number = ++c->last_number;
                g->number = ++c->last_number;
                c->unannounced = true;
        }
        if (g->number > stored && !g->audits)
                sync_will_store(c, g);
}

/* Puts the generation of the other head node in force here, and drops what this one wanted to store about generations. The two
 * generations may have the same policy: if the store could not be read before, or a change was copied to this host and reloaded. */
static void adopt(struct control *c, struct generation *g)
{
        bool is_same = is_in_force(c, g->number, g->policy_bytes, g->n_policy_bytes);

        c->not_loaded = 0;
        g->carried_out = is_same && c->in_force->carried_out;
        c->unannounced |= !is_same;
        if (!is_same) {
                verbs_check_forget(c->verbs);
                confirm_overtaken(c);
        }
        generation_unref(c->in_force);
        c->in_force = sync_continue(c, g);
        c->unstored_before = generation_unref(c->unstored_before);
        c->unstored = generation_unref(c->unstored);
        c->sync.facts = FACTS_STORED;
        confirm_begin(c);
}

/* Of two head nodes the writer goes on by its own generation, unless pkeyctl apply has brought a later one into force. */
static bool should_adopt(const struct control *c, const struct generation *g)
{
        return g && (control_is_guest(c) || !c->in_force || g->number > c->in_force->number);
}

/* What was loaded counts also if the lock was lost meanwhile: the store does not give it again. If the other head node wrote, the
 * master SM was there, although this one did not notice: then it takes over once more. */
void sync_take_changed(struct control *c, const struct control_lock *lock)
{
        if (lock->by_other_head && c->config.shares_store && c->sm.state == SM_FOLLOW_WRITER)
                c->sm.state = SM_FOLLOW_STANDBY;
        if (lock->changed)
                take_changed(c, lock->changed);
        if (should_adopt(c, lock->in_force))
                adopt(c, lock->in_force);
        else
                generation_unref(lock->in_force);
}

/* --- between two sweeps --------------------------------------------------------------------------------------------- */

static bool has_to_store(const struct control *c)
{
        if (c->state != CONTROL_IDLE || c->unstored || c->not_loaded || control_is_guest(c))
                return false;
        /* a sweep that is due now stores leases */
        return c->sync.facts == FACTS_CHANGED || (!leases_are_stored(c->leases) && c->now < schedule_due(&c->schedule));
}

static void retry(struct control *c, int r)
{
        c->sync.at = c->now + RETRY_STORE;
        if (r != -EWOULDBLOCK) /* else another process holds the lock, for a short time */
                confirm_answer_not_stored(c, r);
}

static void unlock(struct control *c)
{
        control_request(c, &(struct control_action) { .kind = CONTROL_UNLOCK });
        c->state = CONTROL_IDLE;
}

/* The lock is held. */
static void store(struct control *c)
{
        int r = -ENOMEM;

        if (sync_begin(c)) {
                sync_put(c);
                r = sync_commit(c, CONTROL_STORING_FACTS);
        }
        if (r <= 0)
                unlock(c);
        if (r < 0)
                retry(c, r);
}

void sync_locked(struct control *c, const struct control_event *event)
{
        int r = event->lock.r;

        c->state = CONTROL_IDLE;
        sync_take_changed(c, &event->lock);
        if (r == -EUCLEAN)
                sync_store_was_lost(c);
        if (r == -EUCLEAN || event->lock.changed) /* it stores everything */
                schedule_full_sweep(&c->schedule);
        c->may_lack_leases &= r < 0;
        if (r < 0)
                retry(c, r);
        else if (c->unstored || c->not_loaded || control_is_guest(c)) /* facts come after the files: the sweep stores both */
                unlock(c);
        else
                store(c);
}

void sync_stored(struct control *c, const struct control_event *event)
{
        int r;

        unlock(c);
        r = sync_end(c, event->r);
        if (r < 0)
                retry(c, r);
}

void sync_tick(struct control *c)
{
        if (c->state == CONTROL_ENDED || c->status.stopping || !has_to_store(c) || c->now < c->sync.at)
                return;
        control_await(c, CONTROL_LOCKING_FACTS, &(struct control_action) { .kind = CONTROL_LOCK });
}

usec_t sync_due(const struct control *c)
{
        return !c->status.stopping && has_to_store(c) ? c->sync.at : USEC_INFINITY;
}
