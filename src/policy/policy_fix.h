/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes the certain corrections (struct finding_fix) in the bytes of a policy file. A correction changes characters within a line,
 * never the number of lines.
 */

#include "policy/policy.h"
#include "util/findings.h"

/* Applies the corrections of findings about this file to its bytes. *ret_bytes lives in the arena; with no correction it is
 * `bytes`. Returns the number of corrections, -EINVAL if two overlap or one is not within a line, -ENOMEM. */
int policy_fix_apply(struct arena *a, const char *file, const char *bytes, size_t n, const struct findings *findings,
                     const char **ret_bytes, size_t *ret_n);

/* Parses the file and applies corrections, with that of typing_error.h, until none is left: one error can hide others. A
 * correction is taken back, with all others of its round, if its place still has an error, or if the file has an error of its YAML
 * form that it did not have before. Errors that were hidden, and have no correction, stay. *ret_n_fixed: the number of corrections
 * in *ret_bytes. *ret_refused: corrections were taken back. Returns 0 or -ENOMEM. */
int policy_fix(struct arena *a, const char *file, const char *bytes, size_t n, const char **ret_bytes, size_t *ret_n,
               unsigned *ret_n_fixed, bool *ret_refused);

/* Hardware was exchanged. */
struct guid_change {
        struct guid from, to;
};

/* Changes each GUID `from` of ports, nodes and switches in the lines, groups and pools of the bytes that `policy` was read from,
 * and nothing else: not in comments, names or other values. *ret_bytes lives in the arena; if there is nothing to change it is
 * `bytes`. Returns the number of GUIDs that were changed; -EINVAL if the place of one is not certain, as in a text that continues
 * on the next line; or -ENOMEM. */
int policy_change_guids(struct arena *a, const struct policy *policy, const char *bytes, size_t n,
                        const struct guid_change *changes, size_t n_changes, const char **ret_bytes, size_t *ret_n);
