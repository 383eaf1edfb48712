/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The only place that logs. Under systemd an entry goes to the journal with its MESSAGE_ID and fields; otherwise it is
 * a line on stderr. What kinds of entries there are stands in events.def, what each means in systemd/pkeyd.catalog.
 */

#include "ib/types.h"
#include "util/findings.h"

enum journal_event {
#define X(name, id, priority) EVENT_##name,
#include "pkeyd/events.def"
#undef X
        JOURNAL_N_EVENTS,
};

/* What an entry is about: a field for each member that is not 0. */
struct journal_about {
        uint64_t generation;
        const char *node;         /* label of a port */
        struct guid port_guid;
        struct lid lid;
        unsigned port;            /* number of the port, with node only */
        const struct p_key *p_keys; /* borrows */
        uint32_t n_p_keys;
        const struct location *where;
        /* of a violation */
        const char *switch_name;  /* label of the switch port beside it */
        const char *partition;
        const char *source;       /* violation_source_to_string */
        struct p_key p_key;
        uint64_t count, total;    /* with source only */
};

/* native: stderr is the journal. verbose: debug lines too. */
struct journal {
        bool native;
        bool verbose;
};

void journal_init(struct journal *j, bool verbose);

/* about may be NULL. */
void journal_event(const struct journal *j, enum journal_event event, const struct journal_about *about,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A finding: its own priority and place, the source line and caret only on stderr. */
void journal_finding(const struct journal *j, enum journal_event event, uint64_t generation,
                     const struct finding *finding);
/* With -v only, and without a MESSAGE_ID. */
void journal_debug(const struct journal *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
