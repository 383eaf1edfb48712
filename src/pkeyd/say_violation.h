/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "notices/notices.h"
#include "pkeyd/daemon.h"
#include "violations/attribution.h"

/* A report of the book as a journal entry. */
void say_violation(struct daemon *d, const struct attribution_context *context, const struct violation_report *report);

/* What became of the subscription at the SA; called when that is news. */
void say_notices(struct daemon *d, const struct notices_status *status, bool has_sm_key);

/* The port could not be registered for performance management (pma) or for the SA's Reports (sa), a negative errno each;
 * once for each error. *said is what was said last. */
void say_no_gsi(struct daemon *d, int pma, int sa, int *said);
