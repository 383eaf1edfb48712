/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Log entries as data: what kind of event, what it is about, and its text. The shell puts them into the journal or on
 * stderr. What kinds there are is in events.def, what each means in systemd/pkeyd.catalog.
 *
 * A log is a queue. An entry that does not fit into memory is dropped: what it reports has happened all the same.
 */

#include "ib/types.h"
#include "util/findings.h"

enum log_event {
#define X(name, id, priority) LOG_EVENT_##name,
#include "events/events.def"
#undef X
        LOG_N_EVENTS,
        LOG_EVENT_DEBUG, /* shown with -v only, without an identifier */
};

/* What an entry is about: a field for each member that is not 0. */
struct log_about {
        uint64_t generation;
        const char *node;           /* label of a port */
        struct guid port_guid;
        struct lid lid;
        uint8_t port;               /* number of the port, with node only */
        const struct p_key *p_keys;
        uint32_t n_p_keys;
        const struct location *where;
        /* of a violation */
        const char *switch_name;    /* label of the switch port beside it */
        const char *partition;
        const char *source;         /* violation_source_to_string */
        struct p_key p_key;
        uint64_t count, total;      /* with source only */
};

struct log_entry {
        enum log_event event;
        struct log_about about;
        const char *text;
        const struct finding *finding; /* NULL: none. Else its own severity and place count */
};

struct log;

/* Returns owned, or NULL when memory is out. */
struct log *log_new(void);
struct log *log_free(struct log *l);

/* Appends; everything is copied. about may be NULL. */
void log_add(struct log *l, enum log_event event, const struct log_about *about, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void log_add_finding(struct log *l, enum log_event event, uint64_t generation, const struct finding *finding);
void log_debug(struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The next entry, valid until the log is used again; NULL: none. */
const struct log_entry *log_next(struct log *l);
