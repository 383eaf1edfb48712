/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/generation.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/secret.h"

#define MAX_SETTINGS_SIZE (1u << 20)
#define MAX_SAID          4096

struct generation *generation_free(struct generation *g)
{
        if (!g)
                return NULL;
        arena_free(g->arena);
        (void) m_keys_free(g->m_keys);
        explicit_bzero(&g->sm_key, sizeof(g->sm_key));
        free(g->said);
        free(g);
        return NULL;
}

static int generation_new(struct generation **ret)
{
        _cleanup_(generation_free_p) struct generation *g = calloc(1, sizeof(*g));

        if (!g)
                return -ENOMEM;
        g->arena = arena_new();
        if (!g->arena)
                return -ENOMEM;
        *ret = STEAL(g);
        return 0;
}

/* What the command line says goes before what the file says. */
static int override_settings(struct generation *g, const struct options *o)
{
        if (o->ca) {
                g->settings->ca = arena_strdup(g->arena, o->ca);
                if (!g->settings->ca)
                        return -ENOMEM;
        }
        if (o->port)
                g->settings->port = o->port;
        if (o->timeout)
                g->settings->timeout = o->timeout;
        return 0;
}

/* Only the file that nobody named may be absent. */
static int load_settings_file(struct generation *g, const struct options *o, struct findings *findings)
{
        int r;

        if (!o->config_named && access(o->config_file, F_OK) < 0 && errno == ENOENT) {
                g->settings = arena_new_object(g->arena, struct settings);
                g->settings_bytes = "";
                if (!g->settings)
                        return -ENOMEM;
                settings_default(g->settings);
                return override_settings(g, o);
        }
        r = file_read_found(g->arena, o->config_file, MAX_SETTINGS_SIZE, findings, &g->settings_bytes,
                            &g->n_settings_bytes);
        if (r < 0)
                return r;
        r = settings_parse(g->arena, o->config_file, g->settings_bytes, g->n_settings_bytes, findings, &g->settings);
        if (r < 0)
                return r;
        return override_settings(g, o);
}

/* With what the settings name. */
static int load_settings(struct generation *g, const struct options *o, struct findings *findings)
{
        int r = load_settings_file(g, o, findings);

        int r_m_keys, r_sm_key;

        if (r < 0)
                return r;
        r_m_keys = secret_read_m_keys(g->settings, findings, &g->m_keys);
        r_sm_key = secret_read_sm_key(g->settings, findings, &g->sm_key);
        return r_m_keys < 0 ? r_m_keys : r_sm_key;
}

static int load_policy(struct generation *g, const struct options *o, struct findings *findings)
{
        int r;

        r = file_read_found(g->arena, o->policy_file, POLICY_MAX_FILE_SIZE, findings, &g->policy_bytes,
                            &g->n_policy_bytes);
        if (r < 0)
                return r;
        return policy_parse(g->arena, o->policy_file, g->policy_bytes, g->n_policy_bytes, findings, &g->policy);
}

int generation_load(const struct options *o, struct findings *findings, struct generation **ret)
{
        _cleanup_(generation_free_p) struct generation *g = NULL;
        int r, r_policy;

        r = generation_new(&g);
        if (r < 0)
                return r;
        /* both, whatever the first one says: all errors in one run */
        r = load_settings(g, o, findings);
        r_policy = load_policy(g, o, findings);
        if (r == -ENOMEM || r_policy == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        if (r < 0 || r_policy < 0)
                return -EBADMSG;
        *ret = STEAL(g);
        return 0;
}

int generation_load_remembered(const struct options *o, const char *policy_bytes, size_t n, uint64_t number,
                               struct findings *findings, struct generation **ret)
{
        _cleanup_(generation_free_p) struct generation *g = NULL;
        int r;

        r = generation_new(&g);
        if (r < 0)
                return r;
        r = load_settings(g, o, findings);
        if (r < 0)
                return r;
        g->policy_bytes = arena_strndup(g->arena, policy_bytes, n);
        if (!g->policy_bytes)
                return -ENOMEM;
        g->n_policy_bytes = n;
        g->number = number;
        r = policy_parse(g->arena, "(last policy in force)", g->policy_bytes, n, findings, &g->policy);
        if (r < 0)
                return r;
        *ret = STEAL(g);
        return 0;
}

static bool equal_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
        return n_a == n_b && memcmp(a, b, n_a) == 0;
}

bool generation_has_policy(const struct generation *g, const char *bytes, size_t n)
{
        return equal_bytes(g->policy_bytes, g->n_policy_bytes, bytes, n);
}

bool generation_equal(const struct generation *a, const struct generation *b)
{
        return generation_has_policy(a, b->policy_bytes, b->n_policy_bytes) &&
               equal_bytes(a->settings_bytes, a->n_settings_bytes, b->settings_bytes, b->n_settings_bytes) &&
               m_keys_equal(a->m_keys, b->m_keys) && a->sm_key == b->sm_key;
}

/* FNV-1a */
static uint64_t digest_finding(const struct finding *f)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        h = (h ^ f->code) * UINT64_C(0x100000001b3);
        h = (h ^ f->where.line) * UINT64_C(0x100000001b3);
        h = (h ^ f->where.column) * UINT64_C(0x100000001b3);
        for (const char *c = f->text; *c; c++)
                h = (h ^ (unsigned char) *c) * UINT64_C(0x100000001b3);
        return h;
}

/* When memory is out or the list is full, silence: what is lost was a repetition of some kind anyway. */
bool generation_says(struct generation *g, const struct finding *finding)
{
        uint64_t digest = digest_finding(finding);
        uint64_t *said;

        for (uint32_t i = 0; i < g->n_said; i++)
                if (g->said[i] == digest)
                        return false;
        if (g->n_said == MAX_SAID)
                return false;
        said = reallocarray(g->said, g->n_said + 1, sizeof(*said));
        if (!said)
                return false;
        g->said = said;
        g->said[g->n_said++] = digest;
        return true;
}
