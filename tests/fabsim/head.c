/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files and the store of a head node, which outlive pkeyd. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"
#include "util/vector.h"

static void store_clear(struct sim_store *store)
{
        for (size_t i = 0; i < store->n; i++) {
                free(store->records[i].key);
                free(store->records[i].value);
        }
        free(store->records);
        store->records = NULL;
        store->n = store->allocated = 0;
}

void head_make(struct sim *s, struct head *h, struct fabsim_place place)
{
        static const char copy[] = "Default=0x7fff: ALL=full;\n";

        h->place = place;
        h->store = s->shares_store ? &s->heads[0].own_store : &h->own_store;
        observer_init(&h->own_store.observer);
        /* OpenSM has its defaults, or a file that was given to pkeyd */
        if (prng_permille(&s->rng, 300)) {
                head_write_file(s, h, SIM_CONF, copy, strlen(copy), NULL);
                head_write_file(s, h, SIM_CONF ".before-pkeyd", copy, strlen(copy), NULL);
        }
}

void head_done(struct head *h)
{
        store_clear(&h->own_store);
        for (unsigned i = 0; i < SIM_FILES; i++) {
                free(h->files[i].bytes);
                free(h->files[i].before);
        }
}

/* --- files ----------------------------------------------------------------------------------------------------------- */

struct sim_file *head_file(struct head *h, const char *path)
{
        for (unsigned i = 0; i < SIM_FILES; i++)
                if (h->files[i].bytes && strcmp(h->files[i].path, path) == 0)
                        return &h->files[i];
        return NULL;
}

void head_write_file(struct sim *s, struct head *h, const char *path, const char *bytes, size_t n, const struct process *by)
{
        struct sim_file *f = head_file(h, path);

        for (unsigned i = 0; !f && i < SIM_FILES; i++)
                if (!h->files[i].bytes)
                        f = &h->files[i];
        if (!f || strlen(path) >= sizeof(f->path)) {
                sim_fail(s, "a file that pkeyd has no business with: %s", path);
                return;
        }
        if (by && strcmp(path, SIM_CONF) == 0 && f->bytes) {
                free(f->before);
                f->before = STEAL(f->bytes);
        }
        free(f->bytes);
        f->is_edited = false;
        f->kept_since = 0;
        f->bytes = malloc(n + 1);
        memcpy(f->bytes, bytes, n);
        f->bytes[n] = '\0';
        f->n = n;
        f->basis = (struct basis) {};
        if (by)
                observer_basis(s, by, &f->basis);
        if (by && strcmp(path, SIM_CONF) == 0)
                opensm_file_written(s, f);
        f->written_at = s->now;
        f->version++;
        memcpy(f->path, path, strlen(path) + 1);
}

struct generation *head_load(struct sim *s, struct head *h, struct findings *findings)
{
        _cleanup_generation_ struct generation *g = generation_new();
        const struct intent *it = &s->intents[h->intent_on_file];
        char text[16384];
        int r, r_policy;

        intent_print_settings(s, h->intent_on_file, text, sizeof(text));
        sim_trace(s, "settings %u:\n%s", h->intent_on_file, text);
        r = generation_read_settings(g, "pkeyd.yaml", arena_strdup(g->arena, text), strlen(text), findings);
        if (r < 0)
                sim_fail(s, "settings were refused: %s", findings->n ? findings->items[0].text : "no reason");
        intent_print_policy(s, h->intent_on_file, text, sizeof(text));
        r_policy = generation_read_policy(g, "partitions.yaml", arena_strdup(g->arena, text), strlen(text), findings);
        if (r_policy == 0 && it->is_broken)
                sim_fail(s, "a broken policy was taken");
        if (r_policy < 0 && !it->is_broken)
                sim_fail(s, "a policy was refused: %s", findings->n ? findings->items[0].text : "no reason");
        g->facts.origin.kind = ORIGIN_START;
        g->m_keys = m_keys_ref(s->m_keys);
        g->neighbors = s->neighbors;
        g->n_neighbors = s->neighbors ? strlen(s->neighbors) : 0;
        sim_trace(s, "policy %u:\n%s", h->intent_on_file, text);
        return r == 0 && r_policy == 0 ? STEAL(g) : NULL;
}

/* --- whether a store can be read -------------------------------------------------------------------------------------- */

#define LOAD_SALT UINT64_C(0x6c6f616400000269) /* no history that tests/fabsim/seeds had before is one of these */

void head_schedule(struct sim *s)
{
        struct prng *r = &s->load_rng;

        r->state = s->seed ^ LOAD_SALT;
        if (prng_below(r, 8) != 0 || sim_has_leases(s))
                return;
        for (unsigned n = prng_between(r, 1, 6); n > 0; n--) {
                usec_t at = prng_permille(r, 300) ? 0 : prng_next(r) % s->quiet_at;
                unsigned head = prng_below(r, s->n_heads);
                struct event *works;

                events_add(&s->events, at, EVENT_STORE)->x = head;
                at += prng_below(r, prng_permille(r, 500) ? 3000 : 60000) * USEC_PER_MSEC;
                works = events_add(&s->events, at, EVENT_STORE);
                works->x = head;
                works->y = true;
        }
}

void head_event(struct sim *s, const struct event *e)
{
        s->heads[e->x].store->is_unreadable = !e->y && !s->quiet;
        sim_trace(s, "the store of head node %u can%s be read", e->x, s->heads[e->x].store->is_unreadable ? "not" : "");
}

bool head_can_load(struct sim *s, const struct head *h)
{
        bool fails = h->store->is_unreadable && prng_permille(&s->load_rng, 800);

        s->counters.loads_failed += fails;
        return !fails;
}

/* --- the store ------------------------------------------------------------------------------------------------------- */

static void store_carry_out(struct sim_store *store, const struct store_op *op)
{
        size_t i = LOWER_BOUND(item, store->records, store->n, strcmp(item->key, op->key) < 0);
        bool exists = i < store->n && strcmp(store->records[i].key, op->key) == 0;
        struct stored_record *r;

        if (!exists && !op->value)
                return;
        if (!exists) {
                (void) VECTOR_GROW(NULL, store->records, store->n, store->allocated);
                memmove(store->records + i + 1, store->records + i, (store->n++ - i) * sizeof(*store->records));
                store->records[i] = (struct stored_record) { .key = strdup(op->key) };
        }
        r = &store->records[i];
        free(r->value);
        r->value = op->value ? memcpy(malloc(op->n + 1), op->value, op->n) : NULL;
        r->n = op->n;
        if (op->value)
                return;
        free(r->key);
        memmove(r, r + 1, (--store->n - i) * sizeof(*r));
}

/* Stored writes that may have used these indexes. */
static void note_used(struct sim *s, const struct remembered *m)
{
        size_t n;
        const struct freed_index *all = index_memory_all(m->indexes, &n);

        for (size_t i = 0; i < n; i++)
                for (unsigned t = 0; all[i].lost && t < s->n_tables; t++)
                        if (s->f.nodes[s->tables[t].at.node].guid.v == all[i].node_guid.v && s->tables[t].at.port == all[i].port)
                                s->tables[t].was_used[all[i].index] = true;
}

struct remembered *head_read_store(const struct sim_store *store, const char *boot)
{
        struct remembered *m = remembered_new(boot);

        for (size_t i = 0; i < store->n; i++)
                (void) remembered_restore(m, store->records[i].key, store->records[i].value, store->records[i].n);
        remembered_end(m);
        return m;
}

static const char *boot_of(const struct sim *s, struct head *h)
{
        (void) snprintf(h->boot, sizeof(h->boot), "boot %u of the %s", h->n_boots, h == s->heads ? "first" : "second");
        return h->boot;
}

static struct remembered *load(struct sim *s, struct head *h)
{
        struct remembered *m = head_read_store(h->store, boot_of(s, h));

        if (m->n_damaged > 0)
                sim_fail(s, "what was stored cannot be read: %s", m->first_damaged);
        note_used(s, m);
        return m;
}

static struct generation *make_generation(struct sim *s, const char *policy, size_t n_policy, const char *settings,
                                          size_t n_settings)
{
        _cleanup_generation_ struct generation *g = generation_new();
        struct findings ignored = { .arena = g->arena };
        int r;

        r = generation_read_settings(g, "pkeyd.yaml", arena_strndup(g->arena, settings, n_settings), n_settings, &ignored);
        if (r == 0)
                r = generation_read_policy(g, "(last policy in force)", arena_strndup(g->arena, policy, n_policy), n_policy, &ignored);
        findings_done(&ignored);
        g->m_keys = m_keys_ref(s->m_keys);
        g->neighbors = s->neighbors;
        g->n_neighbors = s->neighbors ? strlen(s->neighbors) : 0;
        if (r < 0)
                sim_fail(s, "a policy that was stored is refused");
        return STEAL(g);
}

/* Where entries were before the generations above this one. */
static const struct layout *read_layout(const struct sim_store *store, struct arena *a, uint64_t after)
{
        struct layout *l = arena_new_object(a, struct layout);

        l->arena = a;
        for (size_t i = 0; i < store->n; i++)
                if (strncmp(store->records[i].key, RECORDS_BEFORE, strlen(RECORDS_BEFORE)) == 0)
                        (void) before_record_read(l, after, store->records[i].key, store->records[i].value, store->records[i].n);
        layout_sort(l);
        return l;
}

static struct generation *generation_of(struct sim *s, const struct head *h, const struct remembered *m)
{
        char settings[4096];
        struct generation *g;

        intent_print_settings(s, h->intent_on_file, settings, sizeof(settings));
        g = make_generation(s, m->policy, m->n_policy, settings, strlen(settings));
        generation_continue(g, &(struct generation) { .number = m->generation, .facts = m->files.facts });
        if (g->facts.undoes > 0)
                g->layout = read_layout(h->store, g->arena, g->facts.restores);
        return g;
}

bool head_is_confirmed(const struct head *h, uint64_t number)
{
        _cleanup_remembered_ struct remembered *m = head_read_store(h->store, "");

        return h->store->confirmed == number && m->generation == number;
}

bool head_read_files(const struct sim_store *store, struct arena *a, uint64_t number, struct stored_files *ret)
{
        struct generation_key k;

        *ret = (struct stored_files) {};
        stored_files_begin(ret, number);
        for (size_t i = 0; i < store->n; i++)
                if (generation_key_read(store->records[i].key, &k) && k.number == number)
                        (void) stored_files_read(ret, a, &k, store->records[i].value, store->records[i].n);
        return stored_files_end(ret);
}

struct generation *head_load_undo(struct sim *s, struct head *h, const struct control_undo *undo, struct findings *findings)
{
        struct stored_files files = {};
        struct generation *g = NULL;

        if (h->store->fails || h->is_cut_off || !head_can_load(s, h) ||
            !head_read_files(h->store, findings->arena, undo->number, &files)) {
                (void) findings_error(findings, FINDING_HOST_STATE_DIR, NULL, "no generation %" PRIu64, undo->number);
        } else {
                g = make_generation(s, files.policy.bytes, files.policy.n, files.settings.bytes, files.settings.n);
                g->facts = (struct generation_facts) { .origin = undo->by, .undoes = undo->undoes, .restores = undo->number };
                g->layout = read_layout(h->store, g->arena, undo->number);
        }
        stored_files_done(&files);
        return g;
}

struct generation *head_load_at_start(struct sim *s, struct head *h, const struct control_start *start, struct findings *findings)
{
        struct generation *g = head_load(s, h, findings), *in_force = start->in_force;
        const struct stored_files *files = &start->remembered->files;

        if (!g || !in_force || in_force->facts.undoes == 0 ||
            generation_has_policy(g, in_force->policy_bytes, in_force->n_policy_bytes))
                return g;
        for (uint64_t n = in_force->facts.restores + 1; n < in_force->number; n++) {
                struct stored_files undone;
                bool is_it = head_read_files(h->store, findings->arena, n, &undone) &&
                             generation_has_policy(g, undone.policy.bytes, undone.policy.n);

                stored_files_done(&undone);
                if (!is_it)
                        continue;
                in_force->is_off_file = true;
                generation_unref(g);
                return make_generation(s, files->policy.bytes, files->policy.n, files->settings.bytes, files->settings.n);
        }
        return g;
}

void head_recall(struct sim *s, struct process *p, struct control_start *ret)
{
        static const struct sim_store nothing = {};
        bool is_unread = p->is_without_store || (sim_passes_on(s) && p->head->is_cut_off); /* then pkeyd starts without a store */

        ret->remembered = is_unread ? head_read_store(&nothing, boot_of(s, p->head)) : load(s, p->head);
        if (!p->is_without_store && p->goal == CONTROL_SERVE && ret->remembered->generation != p->head->waits)
                p->head->waits = 0; /* pkeyd was killed before it was stored */
        for (unsigned i = 0; !p->is_without_store && p->goal == CONTROL_SERVE && i < SIM_MAX_GENERATIONS; i++)
                if (p->head->in_force[i].number > ret->remembered->generation)
                        p->head->in_force[i].number = 0; /* its number will be used again */
        p->store_version = p->head->store->version;
        p->store_life = p->head->store->life;
        p->is_replaced = false;
        if (is_unread)
                p->store_version = UINT64_MAX;
        else
                clients_load(s, p);
        if (ret->remembered->policy)
                ret->in_force = generation_of(s, p->head, ret->remembered);
}

void head_forget(struct head *h)
{
        memset(h->in_force, 0, sizeof(h->in_force));
        h->waits = h->store->confirmed = 0;
        store_clear(h->store);
        observer_init(&h->store->observer);
        h->store->life++;
        h->store->version++;
}

/* By any process. */
static bool is_locked(const struct sim *s, const struct head *h)
{
        return h->lock || (s->shares_store && h->store->lock && s->now < h->store->lease_until);
}

/* What a pkeyctl of this host stores. */
static void commit(const struct sim *s, struct head *h, const struct store_transaction *t)
{
        for (size_t i = 0; i < t->n; i++)
                store_carry_out(h->store, &t->ops[i]);
        h->store->version++;
        if (sim_passes_on(s))
                h->store->last_writer = h;
}

void head_confirm(struct sim *s, struct head *h)
{
        bool is_usable = !is_locked(s, h) && !h->store->fails && !h->is_cut_off && head_can_load(s, h);
        _cleanup_remembered_ struct remembered *m = is_usable ? load(s, h) : NULL;
        _cleanup_arena_ struct arena *a = arena_new();
        struct store_transaction t;
        struct generation g = {};

        if (!m || !m->policy || !generation_waits(&m->files.facts))
                return;
        g.number = m->generation;
        g.n_policy_bytes = m->files.policy_size;
        g.facts = m->files.facts;
        g.facts.confirmed = clocks_wall(s, h) / USEC_PER_SEC;
        store_transaction_init(&t, a);
        records_put_facts(&t, &g);
        commit(s, h, &t);
        h->store->confirmed = g.number;
        ledger_confirmed(s, g.number);
        s->counters.confirmed++;
        sim_trace(s, "pkeyctl stores that generation %" PRIu64 " is confirmed", g.number);
}

bool head_vouch(struct sim *s, struct head *h, unsigned endport)
{
        const struct fabsim_place at = s->endports[endport];
        const struct fabsim_port *port = fabsim_port_at(&s->f, at);
        _cleanup_arena_ struct arena *a = arena_new();
        struct remembered *m = is_locked(s, h) || !head_can_load(s, h) ? NULL : load(s, h);
        struct store_transaction t;
        uint32_t record = KNOWLEDGE_NONE;
        bool vouched;

        if (m)
                record = knowledge_find(m->knowledge,
                                        (struct knowledge_name) { s->f.nodes[at.node].guid, at.port, KNOWLEDGE_ENDPORT });
        vouched = record != KNOWLEDGE_NONE && knowledge_get(m->knowledge, record)->presence != KNOWLEDGE_THERE &&
                  knowledge_vouch(m->knowledge, record, "admin", clocks_wall(s, h) / USEC_PER_SEC) == 0;
        if (vouched) {
                store_transaction_init(&t, a);
                knowledge_store(m->knowledge, m->boot, &t);
                commit(s, h, &t);
                sim_trace(s, "a person vouches for node %u port %u", at.node, at.port);
                for (unsigned i = 0; i < port->capacity; i++)
                        h->store->observer.ports[endport].is_vouched |= (port->table[i].v & 0x7fff) != 0;
        }
        (void) remembered_free(m);
        return vouched;
}

/* True: it was lost since p used it last. Another process may have stored something in the new one. */
static bool is_another(struct process *p)
{
        struct sim_store *store = p->head->store;
        bool another = p->store_life != store->life;

        p->store_life = store->life;
        p->is_replaced |= another && store->n > 0;
        if (another)
                p->store_version = store->n > 0 ? UINT64_MAX : store->version;
        return another;
}

static void note_writer(struct sim_store *store, const struct process *p)
{
        store->last_writer = p->head;
        if (p->goal == CONTROL_SERVE)
                store->last_pkeyd = p->head;
}

int head_store(struct sim *s, struct process *p, const struct store_transaction *t)
{
        struct sim_store *store = p->head->store;
        bool fails = store->fails;

        if (p->is_without_store)
                return -EIO;
        if (is_another(p))
                return -EUCLEAN;
        if (s->shares_store && (p->head->is_cut_off || !head_has_lock(s, p))) {
                bool arrives = head_has_lock(s, p) && prng_permille(&s->share_rng, 300); /* and its answer does not */

                for (size_t i = 0; arrives && i < t->n; i++)
                        store_carry_out(store, &t->ops[i]);
                store->version += arrives;
                if (arrives)
                        observer_store(p, &store->observer);
                if (arrives && sim_passes_on(s)) {
                        note_writer(store, p);
                        ledger_stored(s, p);
                }
                p->store_version = UINT64_MAX; /* state/state.c closes the store, and loads all of it again */
                return p->head->is_cut_off ? -EHOSTUNREACH : -ENOLCK;
        }
        note_writer(store, p);
        if (fails && prng_permille(&s->rng, 700))
                return -ENOSPC;
        for (size_t i = 0; i < t->n; i++)
                store_carry_out(store, &t->ops[i]);
        observer_store(p, &store->observer);
        p->store_version = ++store->version;
        ledger_stored(s, p);
        if (fails && sim_passes_on(s))
                p->store_version = UINT64_MAX;
        return fails ? -EIO : 0;
}

/* --- the lock -------------------------------------------------------------------------------------------------------- */

bool head_has_lock(const struct sim *s, const struct process *p)
{
        const struct sim_store *store = p->head->store;

        return store->lock == p->life && s->now < store->lease_until;
}

bool head_believes_in_lock(const struct sim *s, const struct process *p)
{
        return p->head->lock == p->life && (!s->shares_store || s->now < p->lock_until);
}

bool head_is_outdated(const struct process *p)
{
        return p->head->is_cut_off || p->loads || p->store_version != p->head->store->version;
}

/* Its clock runs up to a tenth slower or faster than etcd's. */
static void extend_lease(struct sim *s, struct process *p)
{
        p->head->store->lease_until = s->now + SIM_LEASE;
        p->lock_until = s->now + (SIM_LEASE - SIM_LEASE_MARGIN) * prng_between(&s->share_rng, 900, 1100) / 1000;
}

void head_renew(struct sim *s, struct process *p)
{
        if (s->shares_store && !p->head->is_cut_off && head_has_lock(s, p))
                extend_lease(s, p);
}

/* Returns 0, or what etcd/etcd_store.h does. */
static int take_lease(struct sim *s, struct process *p)
{
        struct sim_store *store = p->head->store;

        if (p->head->is_cut_off)
                return -EHOSTUNREACH;
        if (store->lock && store->lock != p->life && s->now < store->lease_until)
                return -EWOULDBLOCK;
        store->lock = p->life;
        extend_lease(s, p);
        return 0;
}

/* The generation in force had its number before the store could be read. */
static void note_number(struct process *p, uint64_t last)
{
        const struct generation *g = p->goal == CONTROL_SERVE ? control_get_status(p->control)->in_force : NULL;
        _cleanup_arena_ struct arena *a = arena_new();
        struct stored_files f = {};

        if (g && g->number > 0 && !g->audits && head_read_files(p->head->store, a, g->number, &f) &&
            !generation_has_policy(g, f.policy.bytes, f.policy.n))
                p->number_taken = last;
        stored_files_done(&f);
}

static void load_changed(struct sim *s, struct process *p, struct control_lock *ret)
{
        struct head *h = p->head;

        observer_load(p);
        clients_load(s, p);
        ret->changed = load(s, h);
        if (!s->shares_store) {
                note_number(p, ret->changed->generation);
                return;
        }
        ret->by_other_head = (h->store->last_pkeyd && h->store->last_pkeyd != h) ||
                             (h->store->last_writer && h->store->last_writer != h); /* as etcd_store_is_of_other_pkeyd() */
        if (ret->changed->policy)
                ret->in_force = generation_of(s, h, ret->changed);
}

void head_follow(struct sim *s, struct process *p, struct control_lock *ret)
{
        *ret = (struct control_lock) { .r = p->head->is_cut_off ? -EHOSTUNREACH : head_can_load(s, p->head) ? 0 : -EIO };
        if (ret->r == 0 && p->followed_version != p->head->store->version)
                load_changed(s, p, ret);
        p->followed_version = p->head->store->version;
        p->store_version = UINT64_MAX; /* the next lock loads everything */
}

void head_unlock(struct process *p)
{
        if (p->head->lock == p->life)
                p->head->lock = 0;
        if (p->head->store->lock == p->life && !p->head->is_cut_off) /* else the lease ends by itself */
                p->head->store->lock = 0;
        p->lock_until = 0;
}

/* As state/state.c does: without its store pkeyd gets the lock, but can commit nothing, and loads all of it when it can again. */
static bool can_open(struct sim *s, struct process *p, struct control_lock *ret)
{
        struct head *h = p->head;
        bool was_without = p->is_without_store;

        p->is_without_store = !head_can_load(s, h);
        if (!p->is_without_store && !(was_without && h->store->n == 0))
                return true;
        p->store_version = p->is_without_store ? UINT64_MAX : h->store->version;
        if (!p->is_without_store)
                ret->r = -EUCLEAN;
        else if (s->shares_store)
                ret->r = -EIO;
        else
                h->lock = p->life;
        if (ret->r < 0)
                head_unlock(p);
        return false;
}

void head_lock(struct sim *s, struct process *p, struct control_lock *ret)
{
        struct head *h = p->head;

        *ret = (struct control_lock) {};
        if (h->lock && h->lock != p->life) {
                ret->r = -EWOULDBLOCK;
                ret->holder = "the other process";
                return;
        }
        if (s->shares_store) {
                ret->r = take_lease(s, p);
                ret->holder = "the other head node";
                if (ret->r < 0) {
                        if (ret->r == -EHOSTUNREACH)
                                p->store_version = UINT64_MAX;
                        return;
                }
        }
        if (!can_open(s, p, ret))
                return;
        if (is_another(p) && h->store->n == 0) {
                ret->r = -EUCLEAN;
                return;
        }
        h->lock = p->life;
        if (h->store->version == p->store_version)
                return;
        p->store_version = h->store->version;
        load_changed(s, p, ret);
        if (p->is_replaced) {
                knowledge_stop_following(ret->changed->knowledge); /* as state/state.c does */
                h->replaced_at = s->now;
                p->is_replaced = false;
        }
        if (s->shares_store && prng_permille(&s->share_rng, 50) && !s->quiet) { /* the lease ended while it was loaded */
                ret->r = -ENOLCK;
                head_unlock(p);
        }
}
