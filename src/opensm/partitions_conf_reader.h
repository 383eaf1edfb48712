/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the parts of partitions_conf_parse share; nobody else includes this. */

#include "opensm/partitions_conf.h"
#include "policy/file_report.h"

#define NOWHERE   SIZE_MAX
#define NAME_SIZE 32 /* of OpenSM's name of a partition, with its NUL */

struct origin {
        unsigned line, column;
};

/* Multicast flags as OpenSM holds them, unchecked. */
struct group_flags {
        uint32_t mtu, rate, sl, q_key, tclass, flow_label;
        uint16_t scopes; /* a bit for each */
};

/* From the first word of a definition to its semicolon. */
struct definition {
        bool is_open;               /* its head was read */
        uint32_t partition;         /* index */
        unsigned line;              /* where it begins */
        enum membership membership; /* of members that say none */
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
        uint32_t allocated;
        uint32_t *by_base;            /* index + 1 */
        uint32_t n_definitions;
        uint16_t counter;             /* the last number that was made up */
        bool begun, any, discarded;
        enum line_ends line_ends;     /* of the file */
        bool has_byte_order_mark;     /* of UTF-8, at its begin */
        struct definition open;
        struct partitions_conf_comment **next_comment;
        unsigned line_number, column; /* of the line at hand, and where in it the buffer begins */
        const char *source_line;
        size_t length, hash;          /* of the text in the buffer; where its comment begins, or NOWHERE */
        size_t written;               /* so many bytes of the buffer were ever written */
        char line[4096];              /* OpenSM's */
        struct origin origin[4096];
};

/*
 * partitions_conf_tokens.c: the tokens in the buffer, what they mean, and where they mean something else than it seems. It calls
 * nothing of partitions_conf.c, which reads lines and definitions.
 */

/* Where a position of the buffer is in the file. */
struct place partitions_conf_place(const struct reader *r, size_t position);
/* A warning at a position of the buffer. */
void partitions_conf_warn(struct reader *r, size_t position, enum finding_code code, const char *format, ...)
                __attribute__((format(printf, 4, 5)));

size_t partitions_conf_skip_blanks(const struct reader *r, size_t p);
/* Writes a NUL over the first c between p and the next NUL. Returns its position; NOWHERE if there is none. */
size_t partitions_conf_cut(struct reader *r, size_t p, char c);
/* NAME or NAME=VALUE from p to the next NUL. Gives how far OpenSM goes on: behind that NUL. */
size_t partitions_conf_read_token(struct reader *r, size_t p, struct token *ret);
/* strtoull with base 0, of a libc for which 0b is no prefix. */
uint64_t partitions_conf_number(const char *text, const char **ret_end);

/* May OpenSM's reading go on at p, and is it known what stands there? Says so if it is no longer this line's text. */
bool partitions_conf_known_text(struct reader *r, size_t p);

void partitions_conf_add_flag(struct reader *r, const struct token *t);
/* To the definition that is open. 0 or -ENOMEM. */
int partitions_conf_add_member(struct reader *r, struct partitions_conf_member member);
/* 0, -EINVAL (no GUID: the file is dropped), -ENOMEM. */
int partitions_conf_read_member(struct reader *r, const struct token *t);
/* The rest of a line `mgid=...`, flags from p on. 0, -EBADMSG, -ENOMEM. */
int partitions_conf_read_group(struct reader *r, const struct token *t, size_t p, size_t *ret_end);
/* The broadcast group of the definition that was just opened, if it says ipoib. */
int partitions_conf_add_broadcast(struct reader *r, const struct token *head);
void partitions_conf_judge_key(struct reader *r, size_t at, const char *text, uint64_t value);
void partitions_conf_judge_definition(struct reader *r, const struct token *head, const char *name, bool generated,
                                      bool again);
