/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Violations as the daemon shows them: one record of the violation table, or one report from it, with all names and sentences. The
 * monitor fills a struct violation_list; the bus reads it and knows nothing else of violations.
 */

#include "events/log.h"
#include "util/arena.h"

/* Strings are borrowed; NULL: unknown. A GUID, LID or P_Key of 0 is unknown, too. A boolean is an int, as sd-bus reads it. */
struct violation_item {
        const char *kind;        /* of a report: "first", "more", "saturated", "quiet", "all-quiet", "storm"; NULL: a record */
        struct log_about about;  /* as in the journal; node is the endport, total since the daemon was started */
        uint32_t n_ports;        /* of "storm" */
        usec_t first, last;      /* CLOCK_REALTIME */
        int names_sender;        /* node is the sender; else it is the receiver, whose counter moved */
        int saturated;
        const char *text;        /* the sentence */
};

struct violation_summary {
        uint64_t total;      /* violations of all sources and ports */
        usec_t since;        /* when counting began, CLOCK_REALTIME as that clock is set now */
        const char *notices; /* state of the subscription at the SA, as notices_state_to_string; static */
};

struct violation_list {
        void *userdata;
        /* Records that counted something since `since` (CLOCK_REALTIME), and those whose counter stood at its maximum all the
         * time, the latest first. At most `max`, since each one becomes text and any user may call. Allocated from the arena.
         * *ret_all: how many there are. Returns 0 or -ENOMEM. */
        int (*records)(void *userdata, struct arena *a, usec_t since, uint32_t max, struct violation_item **ret,
                       uint32_t *ret_n, uint32_t *ret_all);
        void (*summarize)(void *userdata, struct violation_summary *ret);
};
