/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The text of each kind of result; output.c has the table of them. */

#include "pkeyctl/output.h"
#include "pkeyctl/text_table.h"

void text_refused(struct context *ctx, const struct result *r);
void text_check(struct context *ctx, const struct result *r);
void text_plan(struct context *ctx, const struct result *r);
void text_proposal(struct context *ctx, const struct plan_result *r);
void text_apply(struct context *ctx, const struct result *r);
void text_verify(struct context *ctx, const struct result *r);
void text_verify_local(struct context *ctx, const struct result *r);
void text_show_ports(struct context *ctx, const struct result *r);
void text_show_partitions(struct context *ctx, const struct result *r);
void text_show_port(struct context *ctx, const struct result *r);
void text_file(struct context *ctx, const struct result *r);
void text_vouches_proposal(struct context *ctx, const struct vouches_result *r);
void text_show_held(struct context *ctx, const struct result *r);
void text_forgotten(struct context *ctx, const struct result *r);
void text_vouches(struct context *ctx, const struct result *r);
void text_explain(struct context *ctx, const struct result *r);
void text_doctor(struct context *ctx, const struct result *r);
void text_status(struct context *ctx, const struct result *r);
void text_reload(struct context *ctx, const struct result *r);
void text_violations(struct context *ctx, const struct result *r);
void text_watched(struct context *ctx, const struct watched *r);

/* Findings that were not told yet, on stderr: errors only with -q, and with `terse` unless -v. */
void text_findings(struct context *ctx, bool terse);

/* Prints and ends it. */
void text_table_print(struct context *ctx, struct text_table *t);

/* "0xffff 0x8010" of the used entries. */
const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n);

/* Held bases, each with what waits for what, why, and the way out. NULL: none. */
void text_held(struct context *ctx, const struct held_list *held);

/* The ports that were not read, each with why. */
void text_unreachable(struct context *ctx, const uint32_t *ports, uint32_t n);
