/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Internal to doctor/: how diagnoses are gathered. */

#include "doctor/doctor.h"
#include "util/text.h"

/* The diagnoses so far. Running out of memory is recorded, and checked once at the end. */
struct diagnosis_list {
        struct arena *arena;
        const struct doctor_facts *facts;
        struct diagnosis items[DIAGNOSIS_CODE_MAX]; /* each code at most once; title NULL: it is not among them */
        bool bases[P_KEY_BASE_MASK + 1]; /* scratch space to mark bases; all false between uses */
        bool out_of_memory;
};

/* The places of one diagnosis while they are gathered, zeroed at first. `ports` has room for each port of the subnet once; a list
 * of texts may be longer. */
struct places {
        struct diagnosis_place *items;
        uint32_t *ports;
        uint32_t n;      /* of all places, listed or not */
        bool has_texts;
};

/* port may be SUBNET_NONE. text NULL: nothing to add to the port. */
void places_add(struct diagnosis_list *l, struct places *p, uint32_t port, const char *text);

/* Adds a diagnosis with this title, unless `places` is empty. places NULL: the diagnosis has no place. */
void diagnosis_add(struct diagnosis_list *l, enum diagnosis_code code, const struct places *places, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Text in the list's arena; if out of memory, "", and out_of_memory is set. */
const char *diagnosis_text(struct diagnosis_list *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True for an endport of a host: neither of a switch nor of an Aggregation Node, which is inside a switch. */
bool diagnosis_is_host_port(const struct subnet *s, uint32_t port);

void diagnose_protection(struct diagnosis_list *l); /* M_Keys, SA, SMs */
void diagnose_tables(struct diagnosis_list *l);     /* contents, capacity and enforcement of P_Key tables */
void diagnose_names(struct diagnosis_list *l);
void diagnose_host(struct diagnosis_list *l);
