/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/load.h"

#include <errno.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/secret.h"

#define MAX_SETTINGS_SIZE (1u << 20)

/* Options take precedence over the file. */
static int override_settings(struct generation *g, const struct options *o)
{
        g->settings->port = o->port ?: g->settings->port;
        g->settings->timeout = o->timeout ?: g->settings->timeout;
        if (o->ca)
                g->settings->ca = arena_strdup(g->arena, o->ca);
        return o->ca && !g->settings->ca ? -ENOMEM : 0;
}

static int load_file(struct generation *g, const char *path, size_t max,
                     int (*read)(struct generation *g, const char *name, const char *bytes, size_t n, struct findings *findings),
                     struct findings *findings)
{
        const char *bytes;
        size_t n;

        return file_read_found(g->arena, path, max, findings, &bytes, &n) ?: read(g, path, bytes, n, findings);
}

/* The default file may be absent, a file that --config names may not. */
static int load_settings_file(struct generation *g, const struct options *o, struct findings *findings)
{
        int r;

        if (!o->config_named && access(o->config_file, F_OK) < 0 && errno == ENOENT)
                return override_settings(g, o);
        r = load_file(g, o->config_file, MAX_SETTINGS_SIZE, generation_read_settings, findings);
        return r < 0 ? r : override_settings(g, o);
}

/* The settings, and the secrets that they name. */
static int load_settings(struct generation *g, const struct options *o, struct findings *findings)
{
        int r = load_settings_file(g, o, findings), r_m_keys, r_sm_key;

        if (r < 0)
                return r;
        r_m_keys = secret_read_m_keys(g->settings, findings, &g->m_keys) ?:
                   secret_read_neighbors(g->arena, g->settings, g->m_keys, findings, &g->neighbors, &g->n_neighbors);
        r_sm_key = secret_read_sm_key(g->settings, findings, &g->sm_key);
        return r_m_keys < 0 ? r_m_keys : r_sm_key;
}

int load_generation(const struct options *o, struct findings *findings, struct generation **ret)
{
        _cleanup_generation_ struct generation *g = generation_new();
        int r, r_policy;

        if (!g)
                return -ENOMEM;
        /* both, even if the first has errors, to report all errors at once */
        r = load_settings(g, o, findings);
        r_policy = load_file(g, o->policy_file, POLICY_MAX_FILE_SIZE, generation_read_policy, findings);
        if (r == -ENOMEM || r_policy == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        if (r < 0 || r_policy < 0)
                return -EBADMSG;
        *ret = STEAL(g);
        return 0;
}

int load_remembered(const struct options *o, const char *policy, size_t n, uint64_t number, struct findings *findings,
                    struct generation **ret)
{
        _cleanup_generation_ struct generation *g = generation_new();
        const char *copy;
        int r;

        if (!g)
                return -ENOMEM;
        g->number = number;
        copy = arena_strndup(g->arena, policy, n);
        r = copy ? load_settings(g, o, findings) : -ENOMEM;
        r = r ?: generation_read_policy(g, "(last policy in force)", copy, n, findings);
        if (r < 0)
                return r;
        *ret = STEAL(g);
        return 0;
}
