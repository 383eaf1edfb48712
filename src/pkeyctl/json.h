/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The JSON of each command; output_json.c makes the table of them. */

#include "pkeyctl/doc.h"
#include "pkeyctl/output.h"

void as_json_plan(struct context *ctx, const struct plan_result *r, enum exit_status status);
void as_json_apply(struct context *ctx, const struct apply_result *r, enum exit_status status);
void as_json_verify(struct context *ctx, const struct verification *r, enum exit_status status);
void as_json_verify_local(struct context *ctx, const struct local_result *r, enum exit_status status);
void as_json_show_ports(struct context *ctx, const struct ports_result *r);
void as_json_show_partitions(struct context *ctx, const struct partitions_result *r);
void as_json_show_port(struct context *ctx, const struct ports_result *r);
void as_json_explain(struct context *ctx, const struct explain_result *r, enum exit_status status);
void as_json_doctor(struct context *ctx, const struct doctor_result *r, enum exit_status status);
void as_json_status(struct context *ctx, const struct daemon_status *r, enum exit_status status);
void as_json_reload(struct context *ctx, const struct reload_result *r, enum exit_status status);
void as_json_violations(struct context *ctx, const struct violations_result *r, enum exit_status status);
void as_json_watch(struct context *ctx, const struct watched *r);

json_t *as_json_member_count(struct doc *d, const struct member_count *count);
json_t *as_json_unreachable(struct doc *d, const uint32_t *ports, uint32_t n);
