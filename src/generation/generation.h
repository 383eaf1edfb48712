/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * generation/: a policy with its settings, as both files were at one time.
 *
 * A generation comes into force when the planner has accepted it for the fabric; then it gets a number. The content of the files
 * never changes. Digests of what was reported about it are kept with it, so that nothing is reported twice.
 *
 * A caller that needs a generation for longer than a call holds a reference. The folder does not know when a generation comes
 * into force.
 */

#include "ib/m_keys.h"
#include "policy/policy.h"
#include "settings/settings.h"

struct generation {
        unsigned n_refs;
        struct arena *arena;    /* owns what follows */
        uint64_t number;        /* 0: not in force yet */
        struct settings *settings;
        struct policy *policy;  /* NULL: none was read (pkeyctl show) */
        struct m_keys *m_keys;  /* owned; NULL: none */
        uint64_t sm_key;        /* for MADs to the SA; 0: none */
        const char *neighbors;  /* OpenSM's file of links, for the M_Keys of the first discovery; NULL: none, or used already */
        size_t n_neighbors;
        const char *settings_bytes, *policy_bytes;
        size_t n_settings_bytes, n_policy_bytes;

        uint64_t *reported;     /* malloc'ed; digests of findings that were logged */
        uint32_t n_reported, allocated_reported;
        size_t n_refused;       /* errors of the last refusal by the planner that was logged; 0: it did not refuse */
        bool carried_out;       /* the result of its first sweep was logged */
        bool audits;            /* pkeyd writes nothing: mode: audit, or it saw a master SM that the settings do not expect */
};

/* With default settings, without a policy. Returns owned, with one reference, or NULL when memory is out. */
struct generation *generation_new(void);
struct generation *generation_ref(struct generation *g);
/* Accepts NULL, returns NULL. */
struct generation *generation_unref(struct generation *g);
DEFINE_CLEANUP(struct generation *, generation_unref)
#define _cleanup_generation_ _cleanup_(generation_unref_p)

/* Parses a file's bytes, which must live in g->arena. Returns 0, -EBADMSG (findings say why), -ENOMEM. */
int generation_read_settings(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);
int generation_read_policy(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);

/* True if both files have the same bytes in both generations, and the keys are the same. */
bool generation_equal(const struct generation *a, const struct generation *b);
bool generation_has_policy(const struct generation *g, const char *bytes, size_t n);

/* True the first time that it is called with such a finding: each is reported once for a generation. */
bool generation_reports(struct generation *g, const struct finding *finding);
