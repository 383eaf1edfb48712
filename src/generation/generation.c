/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "generation/generation.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/hash.h"
#include "util/text.h"
#include "util/vector.h"

#define MAX_REPORTED 4096

DEFINE_WORDS_AND_BACK(origin, enum origin_kind, "unknown",
                      [ORIGIN_UNKNOWN] = "unknown", [ORIGIN_START] = "start", [ORIGIN_SIGNAL] = "signal", [ORIGIN_BUS] = "bus",
                      [ORIGIN_COMMAND] = "command", [ORIGIN_TIMEOUT] = "timeout")

struct generation *generation_new(void)
{
        _cleanup_generation_ struct generation *g = calloc(1, sizeof(*g));

        if (!g)
                return NULL;
        g->n_refs = 1;
        g->settings_bytes = g->policy_bytes = "";
        g->arena = arena_new();
        g->settings = g->arena ? arena_new_object(g->arena, struct settings) : NULL;
        if (!g->settings)
                return NULL;
        settings_default(g->settings);
        return STEAL(g);
}

struct generation *generation_ref(struct generation *g)
{
        assert(!g || g->n_refs > 0);
        if (g)
                g->n_refs++;
        return g;
}

struct generation *generation_unref(struct generation *g)
{
        assert(!g || g->n_refs > 0);
        if (!g || --g->n_refs > 0)
                return NULL;
        arena_free(g->arena);
        (void) m_keys_free(g->m_keys);
        explicit_bzero(&g->sm_key, sizeof(g->sm_key));
        free(g->reported);
        free(g);
        return NULL;
}

int generation_read_settings(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings)
{
        int r;

        g->settings_bytes = bytes;
        g->n_settings_bytes = n;
        r = settings_parse(g->arena, file, bytes, n, findings, &g->settings);
        g->audits = r == 0 && g->settings->mode == MODE_AUDIT;
        return r;
}

int generation_read_policy(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings)
{
        g->policy_bytes = bytes;
        g->n_policy_bytes = n;
        return policy_parse(g->arena, file, bytes, n, findings, &g->policy);
}

static void copy_changes(struct generation *g, const struct generation_facts *from)
{
        const char **copy = arena_new_array(g->arena, const char *, from->n_changes);

        g->facts.changes = copy;
        g->facts.n_changes = 0;
        for (size_t i = 0; copy && i < from->n_changes; i++)
                if ((copy[g->facts.n_changes] = arena_strdup(g->arena, from->changes[i])))
                        g->facts.n_changes++;
}

static void copy_layout(struct generation *g, const struct layout *from)
{
        struct layout *copy = arena_new_object(g->arena, struct layout);
        int r = copy ? 0 : -ENOMEM;

        if (r == 0)
                copy->arena = g->arena;
        for (size_t i = 0; r == 0 && i < from->n; i++)
                r = layout_add(copy, from->tables[i].node_guid, from->tables[i].number, from->tables[i].entries, from->tables[i].n);
        g->layout = r == 0 ? copy : NULL;
}

void generation_continue(struct generation *g, const struct generation *other)
{
        g->number = other->number;
        g->facts = other->facts;
        g->is_off_file = other->is_off_file;
        copy_changes(g, &other->facts);
        if (other->layout)
                copy_layout(g, other->layout);
}

static bool equal_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
        return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a) == 0);
}

bool generation_has_policy(const struct generation *g, const char *bytes, size_t n)
{
        return equal_bytes(g->policy_bytes, g->n_policy_bytes, bytes, n);
}

bool generation_has_settings(const struct generation *g, const char *bytes, size_t n)
{
        return equal_bytes(g->settings_bytes, g->n_settings_bytes, bytes, n);
}

bool generation_equal(const struct generation *a, const struct generation *b)
{
        return generation_has_policy(a, b->policy_bytes, b->n_policy_bytes) &&
               generation_has_settings(a, b->settings_bytes, b->n_settings_bytes) &&
               m_keys_equal(a->m_keys, b->m_keys) && a->sm_key == b->sm_key;
}

/* That hosts of a selector are not in the fabric is one finding, whichever lines have the selector. */
static uint64_t digest_finding(const struct finding *f)
{
        bool is_anywhere = f->code == FINDING_SELECTOR_PARTIAL;
        uint64_t h = hash_mix(HASH_START, f->code);

        h = hash_mix(h, is_anywhere ? 0 : f->where.line);
        h = hash_mix(h, is_anywhere ? 0 : f->where.column);
        return hash_bytes(h, f->text, strlen(f->text));
}

/* Of more findings than are kept, the oldest may be reported again: none may be lost. When out of memory, nothing is reported: most
 * findings would be repetitions. */
bool generation_reports(struct generation *g, const struct finding *finding)
{
        uint64_t digest = digest_finding(finding);

        for (uint64_t i = 0; i < MIN(g->n_reported, (uint64_t) MAX_REPORTED); i++)
                if (g->reported[i] == digest)
                        return false;
        if (!g->reported)
                g->reported = calloc(MAX_REPORTED, sizeof(*g->reported));
        if (!g->reported)
                return false;
        g->reported[g->n_reported++ % MAX_REPORTED] = digest;
        return true;
}
