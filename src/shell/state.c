/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/state.h"

#include <errno.h>
#include <string.h>

int state_open(struct state *s, const char *path, bool make)
{
        *s = (struct state) { .path = strdup(path) };
        if (!s->path || asprintf(&s->indexes_path, "%s/indexes.json", path) < 0)
                return -ENOMEM;
        if (!make && access(path, F_OK) < 0 && errno == ENOENT)
                return -ENOENT;
        return state_dir_open(path, &s->dir);
}

void state_close(struct state *s)
{
        state_dir_close(s->dir);
        free(s->path);
        free(s->indexes_path);
        *s = (struct state) {};
}

/* --- indexes ------------------------------------------------------------------------------------------------------ */

static void see_file(const struct state *s, struct stat *ret)
{
        if (stat(s->indexes_path, ret) < 0)
                *ret = (struct stat) {};
}

static bool file_is_ours(const struct state *s)
{
        struct stat now;

        see_file(s, &now);
        return now.st_ino == s->on_disk.st_ino && now.st_size == s->on_disk.st_size &&
               now.st_mtim.tv_sec == s->on_disk.st_mtim.tv_sec && now.st_mtim.tv_nsec == s->on_disk.st_mtim.tv_nsec;
}

static int load_indexes(struct state *s, struct remembered *ret)
{
        int r = 0;

        if (s->dir)
                r = state_dir_load_indexes(s->dir, &ret->indexes, &ret->indexes_damaged);
        if (r < 0 && r != -ENOMEM)
                ret->r_indexes = r;
        if (!ret->indexes && r != -ENOMEM)
                ret->indexes = index_memory_new();
        if (s->dir)
                see_file(s, &s->on_disk);
        return ret->indexes ? 0 : -ENOMEM;
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

int state_load(struct state *s, struct arena *a, struct remembered *ret)
{
        int r;

        *ret = (struct remembered) {};
        r = load_indexes(s, ret);
        if (r < 0 || !s->dir)
                return r;
        ret->r_known = state_dir_load_known(s->dir, &ret->known);
        r = state_dir_load_policy(s->dir, a, &ret->policy, &ret->n_policy, &ret->generation);
        if (r < 0) {
                ret->policy = NULL;
                ret->r_policy = r == -ENOENT ? 0 : r;
        }
        if (r != -ENOMEM)
                return 0;
        (void) index_memory_free(ret->indexes);
        known_done(&ret->known);
        return r;
}

/* --- the lock ----------------------------------------------------------------------------------------------------- */

void state_lock(struct state *s, struct control_lock *ret)
{
        struct remembered now = {};

        *ret = (struct control_lock) { .r = -ENOENT };
        if (!s->dir)
                return;
        ret->r = state_dir_lock(s->dir, &ret->pid);
        if (ret->r == 0 && !file_is_ours(s) && load_indexes(s, &now) == 0) /* out of memory: ours are nearly as good */
                ret->indexes = now.indexes;
}

void state_unlock(struct state *s)
{
        if (s->dir)
                state_dir_unlock(s->dir);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

int state_write(struct state *s, const struct control_record *record, const char **ret_what)
{
        const struct generation *g = record->generation;
        int r = 0;

        if (!s->dir)
                return 0; /* that there is none was reported at the start */
        if (record->indexes) {
                *ret_what = s->indexes_path;
                r = state_dir_save_indexes(s->dir, record->indexes);
                see_file(s, &s->on_disk);
        }
        if (r == 0 && record->known) {
                *ret_what = "known.json";
                r = state_dir_save_known(s->dir, record->known);
        }
        if (r == 0 && g) {
                *ret_what = "the last policy in force could not be saved";
                r = state_dir_save_policy(s->dir, g->policy_bytes, g->n_policy_bytes, g->number);
        }
        return r;
}
