/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Internal to partitions_conf.c and partitions_conf_tokens.c. */

#include "opensm/partitions_conf.h"
#include "util/file_report.h"

#define NOWHERE   SIZE_MAX
#define NAME_SIZE 32 /* of a partition's name in OpenSM, including its NUL */

struct origin {
        unsigned line, column;
};

/* Multicast flags as OpenSM holds them, unchecked. */
struct group_flags {
        uint32_t mtu, rate, sl, q_key, tclass, flow_label;
        uint16_t scopes; /* a bit for each scope */
};

/* The state from the first word of a definition to its semicolon. */
struct definition {
        bool is_open;               /* its head was read, the part before the colon */
        uint32_t partition;         /* index */
        unsigned line;              /* of its first word */
        enum membership membership; /* of members without one (defmember) */
        bool ipoib, index0;
        struct group_flags flags;
};

struct token {
        const char *name, *value;   /* value NULL: no '=' */
        size_t at, value_at;
};

enum line_ends {
        LINE_ENDS_LF,
        LINE_ENDS_CR_LF, /* some or all */
        LINE_ENDS_CR,    /* all */
};

struct reader {
        struct arena *arena;
        struct report report;
        struct partitions_conf *conf;
        enum opensm_numbers numbers;
        uint32_t allocated;
        uint32_t *by_base;            /* index + 1 */
        uint32_t n_definitions;
        uint16_t counter;             /* the last P_Key that was assigned */
        bool begun;                   /* `open` is initialized */
        bool has_statement;           /* a statement was read */
        bool discarded;               /* OpenSM drops the file */
        enum line_ends line_ends;     /* of the file */
        bool has_byte_order_mark;     /* the file begins with that of UTF-8 */
        struct definition open;
        struct partitions_conf_comment **next_comment;
        unsigned line_number;         /* of the current line */
        unsigned column;              /* of it, where the buffer begins */
        const char *source_line;      /* the current line, printable; NULL: too long */
        size_t length;                /* of the text in the buffer */
        size_t hash;                  /* where its comment begins, or NOWHERE */
        size_t written;               /* bytes of the buffer that were ever written */
        char line[4096];              /* the buffer, as large as OpenSM's */
        struct origin origin[4096];   /* of each byte in it */
};

/*
 * partitions_conf_tokens.c: the tokens in the buffer, what OpenSM reads them as, and warnings where that is surprising. It calls
 * nothing of partitions_conf.c, which reads lines and definitions.
 */

/* The place in the file of a position in the buffer. */
struct place partitions_conf_place(const struct reader *r, size_t position);
/* A warning at a position of the buffer. */
void partitions_conf_warn(struct reader *r, size_t position, enum finding_code code, const char *format, ...)
                __attribute__((format(printf, 4, 5)));

size_t partitions_conf_skip_blanks(const struct reader *r, size_t p);
/* Writes a NUL over the first c between p and the next NUL. Returns its position; NOWHERE if there is none. */
size_t partitions_conf_cut(struct reader *r, size_t p, char c);
/* Reads NAME or NAME=VALUE between p and the next NUL. Returns the distance from p to where OpenSM continues, after that NUL. */
size_t partitions_conf_read_token(struct reader *r, size_t p, struct token *ret);
/* A number as OpenSM reads it; position: of the text in the buffer. Reports an error if that cannot be known. */
uint64_t partitions_conf_number(struct reader *r, size_t position, const char *text, const char **ret_end);
/* The way out for text that is not a number for this OpenSM, but would be for another; NULL: none. In the findings' arena. */
const char *partitions_conf_binary_hint(struct reader *r, const char *text);

/* False if position p was never written, so that what OpenSM reads there is not known. Warns if an earlier line wrote the text. */
bool partitions_conf_was_written(struct reader *r, size_t p);

void partitions_conf_add_flag(struct reader *r, const struct token *t);
/* Adds to the open definition. Returns 0 or -ENOMEM. */
int partitions_conf_add_member(struct reader *r, struct partitions_conf_member member);
/* Returns 0, -EINVAL (not a port: OpenSM drops the file), -ENOMEM. */
int partitions_conf_read_member(struct reader *r, const struct token *t);
/* The rest of a line `mgid=...`, with flags from p on. Returns 0, -EBADMSG, -ENOMEM. */
int partitions_conf_read_group(struct reader *r, const struct token *t, size_t p, size_t *ret_end);
/* That of the open definition's partition, which is created if needed. NULL: out of memory. */
struct ipoib *partitions_conf_ipoib(struct reader *r);
/* Adds the broadcast group, if the open definition has the flag ipoib. Returns 0 or -ENOMEM. */
int partitions_conf_add_broadcast(struct reader *r, const struct token *head);
/* Warns if a P_Key, or what a definition does, is not what its author probably meant. */
void partitions_conf_check_key(struct reader *r, size_t at, const char *text, uint64_t value);
void partitions_conf_check_definition(struct reader *r, const struct token *head, const char *name, bool generated,
                                      bool again);
