/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/m_keys.h"
#include "pkeyd/options.h"
#include "policy/policy.h"
#include "settings/settings.h"

/*
 * One generation: a policy and the settings it is carried out with, as both files were at one moment. Immutable but for
 * what was said about it. It comes in force when the planner accepted it against the fabric; then it has a number.
 */
struct generation {
        struct arena *arena; /* owns what follows */
        uint64_t number;
        struct settings *settings;
        struct policy *policy;
        struct m_keys *m_keys; /* owned; NULL: none */
        uint64_t sm_key;       /* for MADs to the SA; 0: none */
        const char *settings_bytes, *policy_bytes;
        size_t n_settings_bytes, n_policy_bytes;
        uint64_t *said;      /* malloc'ed; digests of findings that were logged, ascending by time */
        uint32_t n_said;
        size_t n_refused;    /* errors with which the planner last refused it, as was logged; 0: it did not */
        bool carried_out;    /* what the first pass of it did was logged */
};

struct generation *generation_free(struct generation *g);
DEFINE_CLEANUP(struct generation *, generation_free)

/* Reads both files; all that is wrong with either is appended. Returns 0, -EBADMSG, -ENOMEM; *ret owned, number 0. */
int generation_load(const struct options *o, struct findings *findings, struct generation **ret);

/* The settings of the file, but the policy of these bytes (which are copied). Same returns. */
int generation_load_remembered(const struct options *o, const char *policy_bytes, size_t n, uint64_t number,
                               struct findings *findings, struct generation **ret);

/* True if both files had the same bytes, and the M_Keys are the same. */
bool generation_equal(const struct generation *a, const struct generation *b);
bool generation_has_policy(const struct generation *g, const char *bytes, size_t n);

/* True the first time a finding like this is shown to it: once per generation is enough. */
bool generation_says(struct generation *g, const struct finding *finding);
