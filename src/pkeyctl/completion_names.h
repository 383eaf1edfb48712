/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The candidates of completion, and how they get what is stored: names of the policy and of ports that were seen once, numbers of
 * generations, and IDs of leases. */

#include <stddef.h>

#include "util/arena.h"

struct candidates {
        struct arena *arena; /* borrowed; everything below is in it */
        const char *lead;    /* the part of the word that stays as it is, before each candidate: "--node=", "node1," */
        const char *prefix;  /* what candidates begin with */
        struct candidate {
                const char *word, *about;
        } *items;
        size_t n, allocated;
};

/* Adds a copy of a word, if it begins with the prefix. about: borrowed; NULL: nothing. */
void candidates_add(struct candidates *c, const char *word, const char *about);

/* What names are for. */
enum names_kind {
        NAMES_PLAIN,    /* of hosts and switches */
        NAMES_PARTITION,
        NAMES_POOL,
        NAMES_SELECTOR, /* hosts, @SWITCH, groups; GUIDs if the prefix begins like one */
};

/* Adds names from the policy and from the store, as far as both can be read. Only names that a group could
 * have (selector_name_problem()), because names from the fabric may be hostile to a shell. */
void completion_add_names(struct candidates *c, enum names_kind kind, const char *policy, const char *state_dir);

/* Adds the IDs of the stored leases. */
void completion_add_leases(struct candidates *c, const char *state_dir);

/* Adds the numbers of the stored generations, each with the time at which it came into force. */
void completion_add_generations(struct candidates *c, const char *state_dir);
