/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/load.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/secret.h"

/* Options take precedence over the file. */
static int override_settings(struct generation *g, const struct options *o)
{
        g->settings->port = o->port ?: g->settings->port;
        g->settings->timeout = o->timeout ?: g->settings->timeout;
        if (o->ca)
                g->settings->ca = arena_strdup(g->arena, o->ca);
        return o->ca && !g->settings->ca ? -ENOMEM : 0;
}

/* generation_read_settings() or generation_read_policy(). */
typedef int read_t(struct generation *g, const char *name, const char *bytes, size_t n, struct findings *findings);

static int load_file(struct generation *g, const char *path, size_t max, read_t *read, struct findings *findings)
{
        const char *bytes;
        size_t n;

        return file_read_found(g->arena, path, max, findings, &bytes, &n) ?: read(g, path, bytes, n, findings);
}

/* A file of a stored generation. */
static int load_stored(struct generation *g, const struct text *bytes, const char *name, read_t *read, struct findings *findings)
{
        const char *copy = arena_copy(g->arena, bytes->bytes ?: "", bytes->n + 1);

        return copy ? read(g, name, copy, bytes->n, findings) : -ENOMEM;
}

/* The default file may be absent, a file that --config names may not. */
static int load_settings_file(struct generation *g, const struct options *o, const struct load_from *from,
                              struct findings *findings)
{
        int r = 0;

        if (from->settings)
                r = load_stored(g, &from->settings->settings, "(pkeyd.yaml of an older generation)", generation_read_settings,
                                findings);
        else if (o->config_named || access(o->config_file, F_OK) == 0 || errno != ENOENT)
                r = load_file(g, o->config_file, SETTINGS_MAX_FILE_SIZE, generation_read_settings, findings);
        return r < 0 ? r : override_settings(g, o);
}

/* The settings, and the secrets that they name. */
static int load_settings(struct generation *g, const struct options *o, const struct load_from *from, struct findings *findings)
{
        int r = load_settings_file(g, o, from, findings), r_m_keys, r_sm_key;

        if (r < 0)
                return r;
        r_m_keys = secret_read_m_keys(g->settings, findings, &g->m_keys) ?:
                   secret_read_neighbors(g->arena, g->settings, g->m_keys, findings, &g->neighbors, &g->n_neighbors);
        r_sm_key = secret_read_sm_key(g->settings, findings, &g->sm_key);
        return r_m_keys < 0 ? r_m_keys : r_sm_key;
}

static int load_policy(struct generation *g, const struct options *o, const struct load_from *from, struct findings *findings)
{
        const char *name = from->undoes ? "(partitions.yaml of an older generation)" : "(last policy in force)";

        if (from->policy)
                return load_stored(g, &from->policy->policy, name, generation_read_policy, findings);
        return load_file(g, o->policy_file, POLICY_MAX_FILE_SIZE, generation_read_policy, findings);
}

int load_generation(const struct options *o, const struct load_from *from, struct findings *findings, struct generation **ret)
{
        static const struct load_from files = {};
        _cleanup_generation_ struct generation *g = generation_new();
        int r, r_policy;

        if (!g)
                return -ENOMEM;
        /* both, even if the first has errors, to report all errors at once */
        r = load_settings(g, o, from ?: &files, findings);
        r_policy = load_policy(g, o, from ?: &files, findings);
        if (r == -ENOMEM || r_policy == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        if (r < 0 || r_policy < 0)
                return -EBADMSG;
        *ret = STEAL(g);
        return 0;
}

/* --- from the store ------------------------------------------------------------------------------------------------- */

/* Without a layout an undo chooses other indexes, and is an undo all the same. */
static int add_layout(struct generation *g, struct state *s)
{
        struct layout *layout;
        int r = g->facts.undoes > 0 ? state_read_layout(s, g->arena, g->facts.restores, &layout) : -ENOENT;

        if (r == 0)
                g->layout = layout;
        return r == -ENOMEM ? r : 0;
}

int load_in_force(const struct options *o, struct state *s, const struct stored_files *files, struct findings *findings,
                  struct generation **ret)
{
        const struct generation was = { .number = files->number, .facts = files->facts };
        const struct load_from from = { .policy = files };
        _cleanup_generation_ struct generation *g = NULL;
        int r = load_generation(o, &from, findings, &g);

        if (r < 0)
                return r;
        generation_continue(g, &was);
        r = add_layout(g, s);
        if (r < 0)
                return r;
        *ret = STEAL(g);
        return 0;
}

/* The bytes of a file as it is on the disk now. */
struct on_disk {
        const char *bytes;
        size_t n;
        bool is_there;
};

static struct on_disk read_now(struct arena *a, const char *path, size_t max)
{
        struct on_disk f = {};

        f.is_there = file_read(a, path, max, &f.bytes, &f.n) == 0;
        return f;
}

static bool is_file(const struct on_disk *f, const struct text *bytes)
{
        return f->is_there && f->n == bytes->n && (f->n == 0 || memcmp(f->bytes, bytes->bytes, f->n) == 0);
}

bool load_off_files(const struct options *o, struct state *s, struct arena *a, const struct remembered *m, struct load_from *ret)
{
        const struct stored_files *in_force = &m->files;
        struct on_disk policy, settings;
        bool is_other_policy, are_other_settings;

        *ret = (struct load_from) {};
        if (in_force->facts.undoes == 0)
                return false;
        policy = read_now(a, o->policy_file, POLICY_MAX_FILE_SIZE);
        settings = read_now(a, o->config_file, SETTINGS_MAX_FILE_SIZE);
        is_other_policy = !is_file(&policy, &in_force->policy);
        are_other_settings = in_force->has_settings && !is_file(&settings, &in_force->settings);
        for (size_t i = 0; (is_other_policy || are_other_settings) && i < m->history.n; i++) {
                uint64_t number = m->history.items[i].number;
                struct stored_files undone;

                if (number <= in_force->facts.restores || number >= in_force->number ||
                    state_read_generation(s, a, number, &undone) < 0)
                        continue;
                if (is_other_policy && is_file(&policy, &undone.policy))
                        ret->policy = in_force;
                /* those of a store that head nodes share may be the other one's */
                if (are_other_settings && !s->etcd && undone.has_settings && is_file(&settings, &undone.settings))
                        ret->settings = in_force;
                stored_files_done(&undone);
        }
        return ret->policy || ret->settings;
}

int load_undo(const struct options *o, struct state *s, const struct control_undo *undo, struct findings *findings,
              struct generation **ret)
{
        _cleanup_generation_ struct generation *g = NULL;
        struct stored_files files;
        struct load_from from;
        int r = state_read_generation(s, findings->arena, undo->number, &files);

        if (r < 0)
                return state_complain_generation(s, findings, undo->number, r);
        from = (struct load_from) { .policy = &files, .settings = files.has_settings && !s->etcd ? &files : NULL, .undoes = true };
        r = load_generation(o, &from, findings, &g);
        stored_files_done(&files);
        if (r < 0)
                return r;
        g->facts = (struct generation_facts) { .origin = undo->by, .undoes = undo->undoes, .restores = undo->number };
        r = add_layout(g, s);
        if (r < 0)
                return r;
        *ret = STEAL(g);
        return 0;
}
