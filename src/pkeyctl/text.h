/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The text of each command; output_text.c makes the table of them. */

#include "pkeyctl/output.h"

int text_plan(struct context *ctx, const struct plan_result *r, enum exit_status status);
int text_propose(struct context *ctx, const struct plan_result *r);
int text_apply(struct context *ctx, const struct apply_result *r, enum exit_status status);
int text_verify(struct context *ctx, const struct verification *r, enum exit_status status);
int text_verify_local(struct context *ctx, const struct local_result *r, enum exit_status status);
int text_show_ports(struct context *ctx, const struct ports_result *r);
int text_show_partitions(struct context *ctx, const struct partitions_result *r);
int text_show_port(struct context *ctx, const struct ports_result *r);
int text_explain(struct context *ctx, const struct explain_result *r, enum exit_status status);
int text_doctor(struct context *ctx, const struct doctor_result *r, enum exit_status status);
int text_status(struct context *ctx, const struct daemon_status *r, enum exit_status status);
int text_reload(struct context *ctx, const struct reload_result *r, enum exit_status status);
int text_violations(struct context *ctx, const struct violations_result *r, enum exit_status status);
int text_watch(struct context *ctx, const struct watched *r);

/* Findings that were not told yet, on stderr: errors only with -q, and with `terse` unless -v. Returns 0 or -ENOMEM. */
int text_findings(struct context *ctx, bool terse);

/* "1 port", "2 ports", on stdout. */
void text_count(uint64_t n, const char *noun);

/* "0xffff 0x8010" of the used entries; in the context's arena, NULL: out of memory. */
const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n);

/* The ports that were not read, each with why. */
int text_unreachable(struct context *ctx, const uint32_t *ports, uint32_t n);
