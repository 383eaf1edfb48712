/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * events/: the journal entries of the daemon, as data.
 *
 *     results of a sweep, findings, held bases --event_text_*--> entries in a log --log_next--> the shell: journal, or stderr
 *
 * An entry has a kind (events.def; systemd/pkeyd.catalog explains each), the objects that it is about (fields of the journal), and
 * one sentence. held_text.h has the sentences about held bases, which pkeyctl and the bus show, too.
 *
 * A log is a queue. If out of memory, the entry is dropped; the event has happened all the same.
 *
 * This folder knows nothing about the journal, nor when something happens.
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

/* What an entry is about. Each member that is not 0 becomes a field of the journal. */
struct log_about {
        uint64_t generation;
        const char *node;           /* label of a port */
        struct guid port_guid;
        struct lid lid;
        uint8_t port;               /* number of the port, with node only */
        const struct p_key *p_keys;
        uint32_t n_p_keys;
        const struct location *where;
        /* of a violation, a held base, or tables that another program rewrote */
        const char *switch_name;    /* label of the leaf port; of rewritten tables the name of the switch */
        const char *partition;
        /* of a violation */
        const char *source;         /* violation_source_to_string */
        struct p_key p_key;
        uint64_t count, total;      /* with source only */
};

struct log_entry {
        enum log_event event;
        struct log_about about;
        const char *text;
        const struct finding *finding; /* NULL: none. Else its severity and place take the place of those of the event */
};

struct log;

/* Returns owned, or NULL when out of memory. */
struct log *log_new(void);
struct log *log_free(struct log *l);

/* Appends an entry; everything is copied. about may be NULL. */
void log_add(struct log *l, enum log_event event, const struct log_about *about, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void log_add_finding(struct log *l, enum log_event event, uint64_t generation, const struct finding *finding);
#define log_debug(l, ...) log_add((l), LOG_EVENT_DEBUG, NULL, __VA_ARGS__)

/* Takes the next entry, which is valid until the log is used again; NULL: there is none. */
const struct log_entry *log_next(struct log *l);
