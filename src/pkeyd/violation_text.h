/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Journal entries about violations, and the same as items for the bus. */

#include "notices/notices.h"
#include "pkeyd/journal.h"
#include "pkeyd/violation_list.h"
#include "violations/attribution.h"
#include "violations/poll.h"

/* Logs a report. True: *ret_item is the same for the bus, with strings in the arena. False: out of memory (a may be NULL), and the
 * entry has only the number of violations. */
bool violation_text_log(const struct journal *j, struct arena *a, uint64_t generation,
                        const struct attribution_input *context, const struct violation_report *report,
                        struct violation_item *ret_item);

/* Logs the state of the subscription at the SA, which has changed. */
void violation_text_notices(const struct journal *j, const struct notices_status *status, bool has_sm_key);

/* Logs that the port could not be registered for performance management (pma) or for the SA's Reports (sa), each a negative errno
 * or 0; does nothing if *reported, the error that was logged last, is the same. */
void violation_text_no_gsi(const struct journal *j, int pma, int sa, int *reported);

/* Logs that polling takes longer than the interval, or no longer does (poll->is_late), which has changed. */
void violation_text_poll(const struct journal *j, const struct violation_poll_counters *poll);

/* Makes the item of a record of the violation table. Strings are in the arena. Returns 0 or -ENOMEM. */
int violation_item_of_record(struct arena *a, const struct violation_record *record,
                             const struct attribution_input *context, struct violation_item *ret);
