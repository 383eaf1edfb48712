/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One generation: a policy and the settings it is carried out with, as both files were at one moment. It comes in force
 * when the planner accepted it against the fabric; then it has a number. What its files say never changes; what was
 * reported about it is kept beside it, so that nothing is reported twice.
 *
 * Whoever needs a generation for longer than a call holds a reference.
 */

#include "ib/m_keys.h"
#include "policy/policy.h"
#include "settings/settings.h"

struct generation {
        unsigned n_refs;
        struct arena *arena;    /* owns what follows */
        uint64_t number;        /* 0: it was not in force yet */
        struct settings *settings;
        struct policy *policy;  /* NULL: none was given (pkeyctl show) */
        struct m_keys *m_keys;  /* owned; NULL: none */
        uint64_t sm_key;        /* for MADs to the SA; 0: none */
        const char *neighbors;  /* OpenSM's file of links, for the M_Keys of the first discovery; NULL: none, or taken */
        size_t n_neighbors;
        const char *settings_bytes, *policy_bytes;
        size_t n_settings_bytes, n_policy_bytes;

        uint64_t *reported;     /* malloc'ed; digests of findings that were logged */
        uint32_t n_reported, allocated_reported;
        size_t n_refused;       /* errors with which the planner last refused it, as was logged; 0: it did not */
        bool carried_out;       /* what its first sweep did was logged */
        bool audits;            /* nothing is written: mode: audit, or a master SM was seen of which the settings say nothing */
};

/* With default settings and nothing else, and one reference. Returns owned, or NULL when memory is out. */
struct generation *generation_new(void);
struct generation *generation_ref(struct generation *g);
/* Accepts NULL, returns NULL. */
struct generation *generation_unref(struct generation *g);
DEFINE_CLEANUP(struct generation *, generation_unref)
#define _cleanup_generation_ _cleanup_(generation_unref_p)

/* Reads a file's bytes, which must live in g->arena. Returns 0, -EBADMSG (findings say why), -ENOMEM. */
int generation_read_settings(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);
int generation_read_policy(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);

/* True if both files had the same bytes, and the keys are the same. */
bool generation_equal(const struct generation *a, const struct generation *b);
bool generation_has_policy(const struct generation *g, const char *bytes, size_t n);

/* True the first time that a finding like this is shown to it: once for each generation is enough. */
bool generation_reports(struct generation *g, const struct finding *finding);
