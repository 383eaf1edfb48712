/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hostlists in the syntax of pdsh and Slurm: node[001-128,200], rack[1-4]n[01-18], and the globs * and ?.
 *
 * A hostlist is matched, never expanded: node[0-999999999] costs as much as node7. Zero padding is part of a name: [01-18] means
 * 01 to 18, [1-18] means 1 to 18, [08-100] means 08 to 99 and 100.
 */

#include <stdbool.h>
#include <stdint.h>

#include "subnet/subnet.h"
#include "util/arena.h"

#define HOSTLIST_MAX_TOKENS 32   /* literals, ranges and globs of one hostlist */
#define HOSTLIST_MAX_RANGES 1024 /* between one pair of brackets */
#define HOSTLIST_MAX_DIGITS 18   /* so that a number fits in 64 bits */
#define HOSTLIST_MAX_LENGTH 64   /* of a name: a NodeDescription has no more bytes */
#define HOSTLIST_MAX_NAME   256  /* of a name in a snapshot, where each byte may be escaped as \xNN */
#define HOSTLIST_MAX_BOUND  (HOSTLIST_MAX_NAME + HOSTLIST_MAX_LENGTH + 1) /* of a result of hostlist_after() */

/* Numbers of exactly `width` digits: 8-12 is stored as 8-9 and 10-12, and 08-12 as 08-12. */
struct hostlist_range {
        uint64_t first, last;
        uint8_t width;
};

enum hostlist_kind {
        HOSTLIST_LITERAL,
        HOSTLIST_RANGES,
        HOSTLIST_ONE, /* ? */
        HOSTLIST_ANY, /* * */
};

struct hostlist_token {
        enum hostlist_kind kind;
        const char *literal;
        size_t length;
        struct hostlist_range *ranges; /* ascending (width, first), not overlapping within a width */
        uint32_t n_ranges;
};

struct hostlist {
        const char *text; /* as written */
        struct hostlist_token *tokens;
        uint32_t n_tokens;
        uint64_t n_names; /* the number of names it means; 0 if it has globs; UINT64_MAX: that or more */
};

struct hostlist_error {
        size_t offset;    /* into the text */
        const char *text; /* in the arena; NULL: out of memory */
        const char *hint; /* NULL: none */
};

/* Reads one hostlist; commas are allowed in brackets only. Returns 0, -EBADMSG (see *reterr), -ENOMEM. */
int hostlist_parse(struct arena *a, const char *text, size_t n, struct hostlist_error *reterr, struct hostlist **ret);

bool hostlist_match(const struct hostlist *h, const char *name);

/* For a search in names sorted by strcmp. Returns false if no name after `name` matches. Otherwise no name between `name` and
 * *ret matches, and the search continues at *ret. *ret is "" where a glob * may match the very next name. */
bool hostlist_after(const struct hostlist *h, const char *name, char ret[HOSTLIST_MAX_BOUND]);

/* Index into subnet->by_name of the first node, from index `from` on, whose name the hostlist matches (n_by_name: none).
 *
 * From a name that does not match, the search jumps to the next place where a name can match. So a small range costs little in a
 * large fabric, and a large range no more than the names that exist. Only with a glob * every name is tried that begins with the
 * part before it. */
uint32_t hostlist_next_name(const struct hostlist *h, const struct subnet *subnet, uint32_t from);

/* Name number `index` (< n_names) of a hostlist without globs. */
void hostlist_name(const struct hostlist *h, uint64_t index, char ret[HOSTLIST_MAX_NAME]);
