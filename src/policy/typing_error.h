/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One typing error in a policy that is refused: a character that is missing, superfluous, wrong, or swapped with its neighbor. The
 * search tries every such edit near the first error. The correction is certain if there are edits with which the policy is
 * accepted, and the file has the same meaning with all of them. So a wrong digit in a GUID has no correction, and a lost colon has
 * one.
 *
 * Words that the parser knows (keys, memberships, booleans) are not corrected here: it has rules of its own for them.
 */

#include "util/findings.h"

/* Sets the correction of the first error in this file (struct finding_fix) if there is a certain one and no error has one yet.
 * findings: with those of policy_parse() about these bytes; their arena owns the text. A file that is too long for a search of a
 * few seconds gets none. Returns 0 or -ENOMEM. */
int typing_error_find(const char *file, const char *bytes, size_t n, struct findings *findings);
