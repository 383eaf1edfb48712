/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/state.h"

#include <errno.h>
#include <string.h>

static void say_trouble(struct state *s, const char *what, int error)
{
        if (!s->trouble)
                journal_event(s->journal, EVENT_STATE_DIR, NULL, "%s: %s; going on without", what, strerror(-error));
        s->trouble = true;
}

/* FNV-1a over what is remembered. */
static uint64_t digest_memory(const struct index_memory *m)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325);
        const struct freed_index *all;
        size_t n;

        all = index_memory_all(m, &n);
        for (size_t i = 0; i < n; i++) {
                h = (h ^ all[i].node_guid.v) * UINT64_C(0x100000001b3);
                h = (h ^ all[i].port) * UINT64_C(0x100000001b3);
                h = (h ^ all[i].index) * UINT64_C(0x100000001b3);
                h = (h ^ all[i].base) * UINT64_C(0x100000001b3);
                h = (h ^ all[i].sequence) * UINT64_C(0x100000001b3);
        }
        return h;
}

static void look_at_file(const struct state *s, struct stat *ret)
{
        if (stat(s->indexes_path, ret) < 0)
                *ret = (struct stat) {};
}

static bool file_is_ours(const struct state *s)
{
        struct stat now;

        look_at_file(s, &now);
        return now.st_ino == s->on_disk.st_ino && now.st_size == s->on_disk.st_size &&
               now.st_mtim.tv_sec == s->on_disk.st_mtim.tv_sec && now.st_mtim.tv_nsec == s->on_disk.st_mtim.tv_nsec;
}

/* What is on disk takes the place of what is in memory. */
static int load_memory(struct state *s)
{
        struct index_memory *memory;
        bool damaged = false;
        int r;

        r = state_dir_load_indexes(s->dir, &memory, &damaged);
        if (r < 0)
                return r;
        if (damaged)
                journal_event(s->journal, EVENT_STATE_DIR, NULL,
                              "%s is damaged; which P_Key indexes were used before is forgotten", s->indexes_path);
        index_memory_free(s->memory);
        s->memory = memory;
        s->saved = digest_memory(memory);
        look_at_file(s, &s->on_disk);
        return 0;
}

/* Whoever is there is soon learned again. */
static void load_known(struct state *s)
{
        int r = state_dir_load_known(s->dir, &s->known);

        if (r < 0)
                journal_event(s->journal, EVENT_STATE_DIR, NULL, "known.json: %s; which ports were seen before is forgotten",
                              r == -EBADMSG ? "is damaged" : strerror(-r));
}

void state_learn_ports(struct state *s, const struct subnet *subnet)
{
        int r = known_learn(&s->known, subnet, clock_wall() / USEC_PER_SEC);

        if (r > 0 && s->dir)
                r = state_dir_save_known(s->dir, &s->known);
        if (r < 0)
                say_trouble(s, "known.json", r);
}

int state_open(struct state *s, const char *path, const struct journal *journal)
{
        int r;

        *s = (struct state) { .journal = journal, .memory = index_memory_new() };
        if (!s->memory || asprintf(&s->indexes_path, "%s/indexes.json", path) < 0)
                return -ENOMEM;
        s->saved = digest_memory(s->memory);
        r = state_dir_open(path, &s->dir);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                say_trouble(s, path, r);
                return 0;
        }
        load_known(s);
        return load_memory(s);
}

void state_close(struct state *s)
{
        state_unlock(s);
        index_memory_free(s->memory);
        known_done(&s->known);
        state_dir_close(s->dir);
        free(s->indexes_path);
        *s = (struct state) {};
}

int state_lock(struct state *s, int *ret_pid)
{
        int r;

        if (!s->dir || s->locked)
                return 0;
        r = state_dir_lock(s->dir, ret_pid);
        if (r == -EWOULDBLOCK)
                return r;
        if (r < 0) {
                say_trouble(s, "the lock of the state directory", r);
                return 0;
        }
        s->locked = true;
        if (!file_is_ours(s))
                (void) load_memory(s); /* out of memory: ours is nearly as good */
        return 0;
}

void state_unlock(struct state *s)
{
        if (s->locked)
                state_dir_unlock(s->dir);
        s->locked = false;
}

void state_save_memory(struct state *s)
{
        uint64_t digest = digest_memory(s->memory);
        int r;

        if (!s->dir || digest == s->saved)
                return;
        r = state_dir_save_indexes(s->dir, s->memory);
        if (r < 0) {
                say_trouble(s, s->indexes_path, r);
                return;
        }
        s->trouble = false;
        s->saved = digest;
        look_at_file(s, &s->on_disk);
}

void state_save_policy(struct state *s, const struct generation *g)
{
        int r;

        if (!s->dir)
                return;
        r = state_dir_save_policy(s->dir, g->policy_bytes, g->n_policy_bytes, g->number);
        if (r < 0)
                say_trouble(s, "the last policy in force could not be saved", r);
        else
                s->trouble = false;
}

int state_load_policy(struct state *s, struct arena *a, const char **ret_bytes, size_t *ret_n, uint64_t *ret_number)
{
        int r;

        if (!s->dir)
                return -ENOENT;
        r = state_dir_load_policy(s->dir, a, ret_bytes, ret_n, ret_number);
        if (r == 0 || r == -ENOENT || r == -ENOMEM)
                return r;
        say_trouble(s, "the last policy in force could not be read", r);
        return -ENOENT;
}
