/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Classes of endports: all that have the same memberships, before and after. */

#include "reach/reach.h"

/* The levels of a class in one base. LEVEL_NONE before or after: the class gains or loses the base. */
struct reach_level {
        uint16_t base;
        uint8_t before, after; /* enum level */
};

struct reach_class {
        const struct reach_level *levels; /* ascending base */
        uint32_t n_levels;
        const uint32_t *ports;            /* ascending */
        uint32_t n_ports;
        bool changes;
};

/* A class that has a base, before or after. */
struct reach_holder {
        uint32_t class;
        uint8_t before, after;
};

#define REACH_NO_CLASS UINT32_MAX

struct reach_classes {
        struct reach_class *items;        /* ascending first port */
        uint32_t n;
        const struct reach_holder *holders;
        const uint32_t *class_of;         /* by port: the index of its class; REACH_NO_CLASS: none */
        const uint32_t *first_holder;     /* by base, and one more: those of base b end where those of b + 1 begin */
        uint32_t n_unknown;               /* endports that are in no class */
};

/* Returns 0 or -ENOMEM; *ret lives in the arena. */
int reach_classify(struct arena *a, const struct subnet *s, const struct reach_table *before, const struct reach_table *after,
                   struct reach_classes *ret);
/* Classes by one array of tables: the levels after are those in it, the levels before are all LEVEL_NONE. */
int reach_classify_one(struct arena *a, const struct subnet *s, const struct reach_table *tables, struct reach_classes *ret);
