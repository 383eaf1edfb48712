/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Within doctor/: how diagnoses are gathered. */

#include "doctor/doctor.h"
#include "util/text.h"

/* A list that grows; what does not fit in memory is noticed once, at the end. */
struct diagnosis_list {
        struct arena *arena;
        const struct doctor_facts *facts;
        struct diagnosis items[DIAGNOSIS_CODE_MAX]; /* each code at most once */
        bool is_set[DIAGNOSIS_CODE_MAX];
        bool bases[P_KEY_BASE_MASK + 1]; /* for whoever counts bases; all false in between */
        bool out_of_memory;
};

/* Places while they are gathered, zeroed at first: at most so many ports as the subnet has (there are more lines than ports
 * only on this host). Give it to diagnosis_add. */
struct places {
        struct diagnosis_place *items;
        uint32_t *ports;
        uint32_t n;      /* all */
        bool has_texts;
};

/* text may be NULL: the port says it all. */
void places_add_port(struct diagnosis_list *l, struct places *p, uint32_t port, const char *text);
void places_add_text(struct diagnosis_list *l, struct places *p, const char *text);

/* Does nothing if places is not NULL and empty. */
void diagnosis_add(struct diagnosis_list *l, enum diagnosis_code code, const struct places *places, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Text in the list's arena; "" (and out_of_memory) if there is none. */
const char *diagnosis_text(struct diagnosis_list *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True for an endport of a host: not of a switch, not one inside of a switch (an Aggregation Node). */
bool diagnosis_is_host_port(const struct subnet *s, uint32_t port);

void diagnose_protection(struct diagnosis_list *l); /* M_Keys, SA, SMs */
void diagnose_tables(struct diagnosis_list *l);     /* what stands in P_Key tables, who enforces them */
void diagnose_names(struct diagnosis_list *l);
void diagnose_host(struct diagnosis_list *l);
