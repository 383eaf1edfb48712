/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "notices/notices.h"
#include "pkeyd/daemon.h"
#include "pkeyd/violation_list.h"
#include "violations/attribution.h"

/* A report of the book as a journal entry, and as a signal on the bus. */
void say_violation(struct daemon *d, const struct attribution_context *context, const struct violation_report *report);

/* What became of the subscription at the SA; called when that is news. */
void say_notices(struct daemon *d, const struct notices_status *status, bool has_sm_key);

/* The port could not be registered for performance management (pma) or for the SA's Reports (sa), a negative errno each;
 * once for each error. *said is what was said last. */
void say_no_gsi(struct daemon *d, int pma, int sa, int *said);

/* A record of the book as it is shown. Strings are in the arena. Returns 0 or -ENOMEM. */
int violation_item_of_record(struct arena *a, const struct violation_record *record,
                             const struct attribution_context *context, struct violation_item *ret);
