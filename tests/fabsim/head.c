/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is on a head node's disk, and outlives pkeyd. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "util/cleanup.h"

void head_make(struct sim *s, struct head *h, struct fabsim_place place)
{
        static const char copy[] = "Default=0x7fff: ALL=full;\n";

        h->place = place;
        h->store.indexes = index_memory_new();
        observer_init(&h->store.observer);
        /* OpenSM has its defaults, or a file that was given to pkeyd */
        if (prng_permille(&s->rng, 300)) {
                head_write_file(s, h, SIM_CONF, copy, strlen(copy), NULL);
                head_write_file(s, h, SIM_CONF ".before-pkeyd", copy, strlen(copy), NULL);
        }
}

void head_done(struct head *h)
{
        (void) index_memory_free(h->store.indexes);
        known_done(&h->store.known);
        free(h->store.policy);
        for (unsigned i = 0; i < SIM_FILES; i++)
                free(h->files[i].bytes);
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
        free(f->bytes);
        f->bytes = malloc(n + 1);
        memcpy(f->bytes, bytes, n);
        f->bytes[n] = '\0';
        f->n = n;
        f->basis = (struct basis) {};
        if (by)
                observer_basis(s, by, &f->basis);
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
        g->m_keys = m_keys_ref(s->m_keys);
        g->neighbors = s->neighbors;
        g->n_neighbors = s->neighbors ? strlen(s->neighbors) : 0;
        sim_trace(s, "policy %u:\n%s", h->intent_on_file, text);
        return r == 0 && r_policy == 0 ? STEAL(g) : NULL;
}

/* --- the store ------------------------------------------------------------------------------------------------------- */

static struct index_memory *copy_indexes(const struct index_memory *from)
{
        struct index_memory *m = index_memory_new();
        const struct freed_index *all;
        size_t n;

        all = index_memory_all(from, &n);
        for (size_t i = 0; i < n; i++)
                (void) index_memory_restore(m, &all[i]);
        return m;
}

static void copy_known(const struct known *from, struct known *to)
{
        known_done(to);
        *to = (struct known) {};
        for (uint32_t i = 0; i < from->n; i++)
                (void) known_add(to, &from->ports[i]);
}

void head_recall(struct sim *s, struct process *p, struct control_start *ret)
{
        struct head *h = p->head;
        _cleanup_generation_ struct generation *g = h->store.policy ? generation_new() : NULL;
        struct findings ignored;
        char settings[4096];
        int r;

        ret->indexes = copy_indexes(h->store.indexes);
        copy_known(&h->store.known, &ret->known);
        ret->last_number = h->store.number;
        p->store_version = h->store.version;
        if (!g)
                return;
        findings_init(&ignored, g->arena);
        intent_print_settings(s, h->intent_on_file, settings, sizeof(settings));
        r = generation_read_settings(g, "pkeyd.yaml", arena_strdup(g->arena, settings), strlen(settings), &ignored);
        if (r == 0)
                r = generation_read_policy(g, "(last policy in force)", arena_strdup(g->arena, h->store.policy),
                                           strlen(h->store.policy), &ignored);
        findings_done(&ignored);
        g->m_keys = m_keys_ref(s->m_keys);
        g->neighbors = s->neighbors;
        g->n_neighbors = s->neighbors ? strlen(s->neighbors) : 0;
        g->number = h->store.number;
        if (r < 0)
                sim_fail(s, "a policy that was stored is refused");
        else
                ret->in_force = STEAL(g);
}

int head_store(struct process *p, const struct control_record *record)
{
        struct store *store = &p->head->store;

        if (store->fails)
                return -ENOSPC;
        if (record->indexes) {
                (void) index_memory_free(store->indexes);
                store->indexes = copy_indexes(record->indexes);
                p->store_version = ++store->version;
        }
        if (record->known) {
                copy_known(record->known, &store->known);
                observer_store_ports(&p->observer, &store->observer);
        }
        if (record->generation) {
                free(store->policy);
                store->policy = strndup(record->generation->policy_bytes, record->generation->n_policy_bytes);
                store->number = record->generation->number;
        }
        return 0;
}

/* --- the lock -------------------------------------------------------------------------------------------------------- */

void head_lock(struct process *p, struct control_lock *ret)
{
        struct head *h = p->head;

        *ret = (struct control_lock) {};
        if (h->lock && h->lock != p->life) {
                ret->r = -EWOULDBLOCK;
                ret->pid = (int) h->lock;
                return;
        }
        h->lock = p->life;
        if (h->store.version == p->store_version)
                return;
        p->store_version = h->store.version;
        ret->indexes = copy_indexes(h->store.indexes);
}

void head_unlock(struct process *p)
{
        if (p->head->lock == p->life)
                p->head->lock = 0;
}
