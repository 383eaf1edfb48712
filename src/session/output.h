/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How results are shown. A command collects its result in a struct of its own and ends with output(), which calls the command's
 * printer; apply also shows what it proposes before it writes, and watch prints one line after another. Text goes to stdout,
 * findings to stderr. JSON is one object on stdout, with the findings in it.
 */

#include "session/doc.h"
#include "session/output_text.h"
#include "session/text_table.h"

/* How many endports have which membership in a partition. */
struct member_count {
        uint32_t full, limited, both;
};

static inline void member_count_add(struct member_count *count, enum membership m)
{
        count->limited += m == MEMBERSHIP_LIMITED;
        count->full += m == MEMBERSHIP_FULL;
        count->both += m == MEMBERSHIP_BOTH;
}

/* How the result of a command is shown. `result` is a struct of the command's own. */
struct printer {
        void (*text)(struct context *ctx, const void *result);
        void (*json)(struct doc *d, const void *result); /* adds to an object that has the findings; NULL: adds nothing */
        enum {
                OK_IF_DONE = 1 << 0,    /* "ok" is true with EXIT_DONE only; else whenever there is a result */
                QUIET = 1 << 1,         /* -q omits the text */
                TERSE = 1 << 2,         /* the text has no warnings, unless -v */
                FINDINGS_LAST = 1 << 3, /* findings follow the text: they are about it */
        } flags;
};

/* Shows a result as text or, with --json, as JSON. Returns the status, which is ctx->status while the printer runs. */
int output(struct context *ctx, const struct printer *p, enum exit_status status, const void *result);

/* Prints the sentence that answers a request: on stderr if ctx->status is that it was refused; else not with -q. */
void output_sentence(struct context *ctx, const char *text);

/* Shows the findings and that nothing was sent, or that the run ended in the middle. */
void output_refusal(struct context *ctx);

/* Shows a file that was made: writes it to --output, or to stdout. Returns the status. */
int output_file(struct context *ctx, enum exit_status status, const char *bytes, size_t n);

/* With --yes both return 0. ask_check_terminal() refuses before a minute of discovery if nobody could answer; ask_person() prints
 * the question, and waits for the answer. They return 0 (yes), -EBADMSG (no) or -ENOMEM. */
int ask_check_terminal(struct context *ctx);
int ask_person(struct context *ctx, const char *question, ...) __attribute__((format(printf, 2, 3)));

json_t *json_member_count(const struct member_count *count);

/* The ports that were not read, each with the reason. */
json_t *json_unreachable(struct doc *d, const uint32_t *ports, uint32_t n);

/* Prints the findings that were not printed yet on stderr; only errors with -q, or with `terse` but without -v. */
void text_findings(struct context *ctx, bool terse);

/* ", 3 could not be read, 2 links are up, but ..., 2 are frozen"; nothing if all are 0. */
void text_unjudged(uint32_t n_unreachable, uint32_t n_silent, uint32_t n_frozen);

/* Prints the table and frees it. */
void text_table_print(struct context *ctx, struct text_table *t);

/* "0xffff 0x8010" of the used entries. */
const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n);
