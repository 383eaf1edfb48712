/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Generations as records of a store:
 *
 *     generation/NUMBER                {"number", "time", "policy_size"}, and if pkeyd stored them: {"settings_size", "via",
 *                                      "uid", "user", "undoes", "restores", "confirm_for", "confirm_until", "confirmed",
 *                                      "confirmed_via", "confirmed_uid", "confirmed_user", "outcome", "ended", "n_held", "held",
 *                                      "changes"}: struct generation_facts; a member that would be 0 or empty is left out.
 *                                      NUMBER has 20 digits
 *     generation/NUMBER/policy/PART    the bytes of partitions.yaml, in parts of STORE_VALUE_MAX; PART has two digits
 *     generation/NUMBER/settings/PART  the bytes of pkeyd.yaml
 *
 * The highest generation is in force. The oldest ones are deleted when a new one is put.
 */

#include "generation/generation.h"
#include "store/store.h"
#include "util/text.h"

#define RECORDS_GENERATION     "generation/"
#define RECORDS_GENERATION_KEY RECORDS_GENERATION "%020" PRIu64 /* format: of its number */

/* What the key of a record names. */
struct generation_key {
        uint64_t number;
        enum { GENERATION_FACTS, GENERATION_POLICY, GENERATION_SETTINGS } what;
        unsigned part; /* of a file */
};

/* False: it is no key of a generation. */
bool generation_key_read(const char *key, struct generation_key *ret);

/* --- what is in the store ------------------------------------------------------------------------------------------ */

struct generation_history {
        struct stored_generation {
                uint64_t number;
                uint64_t time;                            /* when it came into force */
                uint64_t restores;                        /* as its facts say; its own number: they are not known */
                unsigned n_policy_parts, n_settings_parts;
        } *items;                                         /* malloc'ed, ascending */
        size_t n, allocated;
};

/* How many generations are kept. The one before the newest is kept always: an undo returns to it. */
struct history_limits {
        size_t keep;      /* with the newest; at least 2 */
        uint64_t seconds; /* and none that came into force earlier before the newest; UINT64_MAX: any */
};

/* Frees it; no generation is in the store. */
void generation_history_done(struct generation_history *h);
/* Notes a record that is in the store, in the order of their keys, whatever its value is. Returns the item, or NULL: out of
 * memory. */
struct stored_generation *generation_history_note(struct generation_history *h, const struct generation_key *key);
/* The newest generation below this number; 0: none. */
uint64_t generation_history_before(const struct generation_history *h, uint64_t number);
/* The generation to which an undo of this one goes back; 0: none. restores: as its facts say. An undo brings an older change into
 * force again, perhaps through other undos that it restores: the target is the generation before that change, because those since
 * then were undone. */
uint64_t generation_history_target(const struct generation_history *h, uint64_t number, uint64_t restores);
/* Why there is none; static. */
const char *generation_history_no_target(uint64_t restores);

/* Puts a generation with its files and facts, and deletes the oldest ones beyond the limits. */
void records_put_generation(struct store_transaction *t, const struct generation_history *h, const struct generation *g,
                            const struct history_limits *limits);
/* Puts the facts of a generation again whose files are in the store: a policy of this size, and settings of facts.settings_size. */
void records_put_facts(struct store_transaction *t, const struct generation *g);
/* The generation was stored, by records_put_generation() with the same limits. */
void generation_history_stored(struct generation_history *h, const struct generation *g, const struct history_limits *limits);

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* One generation, while its records are read in the order of their keys. */
struct stored_files {
        uint64_t number;                  /* 0: none yet */
        bool is_missing;                  /* no record of it was read */
        bool is_damaged;                  /* a record of it is damaged or is missing */
        bool has_settings;                /* pkeyd 0.1.0 did not store them */
        struct generation_facts facts;    /* changes are in the arena of stored_files_read() */
        struct text policy, settings;     /* their bytes; owned */
        size_t policy_size, settings_size;
        unsigned n_policy_parts, n_settings_parts;
};

/* Begins with a generation, before its first record. */
void stored_files_begin(struct stored_files *f, uint64_t number);
/* Frees the bytes. */
void stored_files_done(struct stored_files *f);
/* Reads a record of this generation; value NULL: it is damaged. Returns 0, -EBADMSG (is_damaged is set) or -ENOMEM. */
int stored_files_read(struct stored_files *f, struct arena *a, const struct generation_key *key, const void *value, size_t n);
/* All its records were read: true if it is whole. */
bool stored_files_end(struct stored_files *f);
