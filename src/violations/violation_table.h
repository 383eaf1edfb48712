/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The violation table, the inside of this folder: violation_table.c keeps the entries, violations.c counts, report_scheduler.c
 * decides what is reported when, counter_samples.c keeps the last sample of each counter. Of no interest outside of this folder.
 *
 * An entry is a record and what the report scheduler needs to know of it. Entries are never freed, only used anew; each is in one
 * list of life and in at most one of the report scheduler. Since time does not go back and every list has one delay, each is
 * sorted by when something is to be done with its members, and only first members need to be checked.
 */

#include "violations/counter.h"
#include "violations/list.h"
#include "violations/violations.h"

enum life {
        LIFE_IDLE,   /* no episode; by when the last one ended */
        LIFE_ACTIVE, /* in an episode; by when it last counted */
        LIFE_MOVED,  /* in an episode that ends as soon as all of it was reported: the host is not there any more */
        LIFE_CALMED, /* the episode is over, and held back to be reported in a sum */
        LIFE_N,
};

enum report_state {
        REPORT_COOLING,  /* reported less than an interval ago; by when */
        REPORT_DUE,      /* to be reported now, if there is room for a line */
        REPORT_HELD,     /* there was none: waits for the end of the interval */
        REPORT_RELEASED, /* held, and now reported alone: too few for a sum */
        REPORT_N_STATES,
        REPORT_NONE = REPORT_N_STATES,
};

struct violation_entry {
        struct violation_record record;
        struct shared_host *host;  /* what record.host points into; NULL: nothing, or nobody */
        struct shared_host *from, *to; /* likewise */
        enum life life;
        enum report_state report_state;
        uint64_t in_interval; /* counted in the interval that began then */
        usec_t interval_began;
        usec_t since;         /* of what is unreported; as in violation_report */
        usec_t reported_at;
        bool is_reported;     /* of this episode */
        bool in_sum;          /* ... the last time, in a sum */
        bool report_saturated;
};

/* --- hosts: shared by the ports where they are and the records that they are in -------------------------------------------- */

struct shared_host {
        struct violation_host host;
        uint32_t n_refs;
        char strings[];
};

/* A host that is not known. */
extern const struct violation_host violation_nobody;

/* Returns owned, or NULL when memory is out. */
struct shared_host *shared_host_new(const struct violation_host *host);
struct shared_host *shared_host_ref(struct shared_host *h);
struct shared_host *shared_host_unref(struct shared_host *h);
DEFINE_CLEANUP(struct shared_host *, shared_host_unref)
#define _cleanup_host_ _cleanup_(shared_host_unref_p)
/* The entry takes over these references for those that it had; each may be NULL. */
void violation_entry_set_hosts(struct violation_entry *e, struct shared_host *host, struct shared_host *from,
                               struct shared_host *to);
/* By GUID, label and where it is plugged in. */
int violation_compare_hosts(const struct violation_host *a, const struct violation_host *b);

/* --- the last sample of each counter of each port; the port that was sampled longest ago makes room ---------------- */

/* More than a subnet can have: 49151 endports, each beside one port of a switch. */
#define VIOLATION_MAX_PORTS 131072

/* As violation_record.first; 0: never. */
struct first_counted {
        usec_t first, since;
};

struct port_samples {
        struct violation_port port;
        struct violation_counter counters[VIOLATION_N_COUNTERS];
        struct shared_host *host;           /* referenced; NULL: nobody said */
        bool doubted[VIOLATION_N_COUNTERS]; /* what the next sample finds may be another host's */
        /* Of an endport: when it was first counted there, or at a switch port beside it, wherever that was. */
        struct first_counted own[VIOLATION_N_COUNTERS], beside[VIOLATION_N_COUNTERS];
};

struct counter_samples {
        struct port_samples *ports;
        struct violation_link *links;
        uint32_t n, allocated;
        struct hash_index index;
        struct record_list by_age;
};

void counter_samples_init(struct counter_samples *l);
void counter_samples_done(struct counter_samples *l);
/* Borrowed until the next _take. NULL: never sampled. */
struct port_samples *counter_samples_find(const struct counter_samples *l, struct violation_port port);
/* The same for a port that is sampled now, made if need be. NULL: memory is out. */
struct port_samples *counter_samples_take(struct counter_samples *l, struct violation_port port);

/* What the next sample of each counter finds may be another host's. */
void counter_samples_doubt(struct port_samples *p);

/* --- the violation table ------------------------------------------------------------------------------------------ */

struct violations {
        struct violations_config config;

        struct violation_entry *entries;
        struct violation_link *life_links, *report_links;
        struct violation_record *sorted; /* room for as many as there are entries, so that a list of all never fails */
        struct violation_port *ports;    /* likewise, to count ports of a storm */
        uint32_t n, allocated;
        struct hash_index index;
        struct record_list lives[LIFE_N], report_lists[REPORT_N_STATES];

        struct counter_samples samples;
        uint64_t totals[VIOLATION_N_SOURCES];

        /* The interval in which lines are counted. */
        bool window_open;
        usec_t window_began;
        uint32_t n_reported, n_calm_reported;
        uint32_t n_calm_released; /* of LIFE_CALMED, the first so many: too few for a sum */
        bool in_storm;           /* the last one ended with a sum */
};

static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* violation_table.c */
void violation_table_init(struct violations *v);
void violation_table_done(struct violations *v);
/* Which record; the last three of a notice only. */
struct violation_key {
        struct violation_port port;
        enum violation_source source;
        const struct violation_host *host;
        const struct notice *notice;
        const struct violation_host *from, *to;
};

/* VIOLATION_NONE: there is no such record. */
uint32_t violation_table_find(const struct violations *v, const struct violation_key *key);
/* Makes it if need be; VIOLATION_NONE: memory is out. */
uint32_t violation_table_take(struct violations *v, const struct violation_key *key);
void violation_table_set_life(struct violations *v, uint32_t entry, enum life life);
void violation_table_set_report_state(struct violations *v, uint32_t entry, enum report_state state);
/* qsort's order of records. */
int violation_compare_records(const void *a, const void *b);

/* report_scheduler.c */
/* There is something new with this entry. */
void report_scheduler_update(struct violations *v, uint32_t entry);
