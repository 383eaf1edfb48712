/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The violation table: entries, each a record and what the report scheduler needs to know of it. Entries are never freed, only
 * reused; each is in one list of life and in at most one of reports. Since time does not go back and every list has one delay,
 * each list is sorted by when something is due for its members, and only first members need to be checked.
 */

#include "violations/hosts.h"
#include "violations/list.h"

/* When the table is full, the first entry of the first list that has one is used anew. */
enum life {
        LIFE_IDLE,   /* no episode; sorted by when the last one ended */
        LIFE_QUIET,  /* the episode is over, which waits for a summary */
        LIFE_MOVED,  /* in an episode that ends as soon as all of it was reported: the host is not there any more */
        LIFE_ACTIVE, /* in an episode; sorted by when it last counted */
        LIFE_N,
};

enum report_state {
        REPORT_COOLING, /* reported less than an interval ago; sorted by when */
        REPORT_DUE,     /* to be reported now, if there is room for a line */
        REPORT_HELD,    /* there was none: waits for the summary */
        REPORT_N_STATES,
        REPORT_NONE = REPORT_N_STATES,
};

struct violation_entry {
        struct violation_record record; /* has references to its hosts, each of which may be NULL */
        enum life life;
        enum report_state report_state;
        uint64_t in_interval; /* counted in the interval that began then */
        usec_t interval_began;
        usec_t since;         /* of the unreported violations; as in violation_report */
        usec_t reported_at;
        bool is_reported;     /* of this episode */
        bool in_sum;          /* ... the last time, in a summary */
        bool report_saturated;
};

struct violation_table {
        struct violation_entry *entries;
        struct violation_link *life_links, *report_links;
        struct violation_record *sorted; /* room for as many as there are entries, so that a list of all never fails */
        uint32_t n, allocated;
        struct hash_index index;
        struct record_list lives[LIFE_N], reports[REPORT_N_STATES];
};

void violation_table_init(struct violation_table *t);
void violation_table_done(struct violation_table *t);
/* The record with the port, source and hosts of `key`, and for a notice its key, LIDs and GIDs; VIOLATION_NONE: there is none. */
uint32_t violation_table_find(const struct violation_table *t, const struct violation_record *key);
/* Finds this record, or adds it: `key` must have only these fields. Its hosts become those of `key`, which are copies or NULL.
 * VIOLATION_NONE: out of memory. */
uint32_t violation_table_take(struct violation_table *t, const struct violation_record *key);
void violation_table_set_life(struct violation_table *t, uint32_t entry, enum life life);
void violation_table_set_report_state(struct violation_table *t, uint32_t entry, enum report_state state);
/* qsort's order of records. */
int violation_compare_records(const void *a, const void *b);

static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
