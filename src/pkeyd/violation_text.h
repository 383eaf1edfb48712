/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Violations and what concerns them, as journal entries, and as items for the bus. */

#include "notices/notices.h"
#include "pkeyd/journal.h"
#include "pkeyd/violation_list.h"
#include "violations/attribution.h"
#include "violations/poll.h"

/* A report as a journal entry. True: *ret_item is the same for the bus, its strings in the arena. False: memory
 * is out (a may be NULL), and the entry has the number only. */
bool violation_text_log(const struct journal *j, struct arena *a, uint64_t generation,
                        const struct attribution_input *context, const struct violation_report *report,
                        struct violation_item *ret_item);

/* What became of the subscription at the SA; called when that is news. */
void violation_text_notices(const struct journal *j, const struct notices_status *status, bool has_sm_key);

/* The port could not be registered for performance management (pma) or for the SA's Reports (sa), a negative errno each;
 * once for each error. *reported is what was logged last. */
void violation_text_no_gsi(const struct journal *j, int pma, int sa, int *reported);

/* Silent ports are not asked in time, or are again (poll->is_late); called when that is news. */
void violation_text_poll(const struct journal *j, const struct violation_poll_counters *poll);

/* A record of the violation table as it is shown. Strings are in the arena. Returns 0 or -ENOMEM. */
int violation_item_of_record(struct arena *a, const struct violation_record *record,
                             const struct attribution_input *context, struct violation_item *ret);
