/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The JSON of each kind of result: what it adds to an object that has the findings already. output.c has the table of them. */

#include "pkeyctl/doc.h"
#include "pkeyctl/output.h"

void as_json_check(struct doc *d, const struct result *r);
void as_json_plan(struct doc *d, const struct result *r);
void as_json_apply(struct doc *d, const struct result *r);
void as_json_verify(struct doc *d, const struct result *r);
void as_json_verify_local(struct doc *d, const struct result *r);
void as_json_show_ports(struct doc *d, const struct result *r);
void as_json_show_partitions(struct doc *d, const struct result *r);
void as_json_show_port(struct doc *d, const struct result *r);
void as_json_file(struct doc *d, const struct result *r);
void as_json_show_held(struct doc *d, const struct result *r);
void as_json_vouches(struct doc *d, const struct result *r);
void as_json_explain(struct doc *d, const struct result *r);
void as_json_doctor(struct doc *d, const struct result *r);
void as_json_status(struct doc *d, const struct result *r);
void as_json_reload(struct doc *d, const struct result *r);
void as_json_violations(struct doc *d, const struct result *r);
void as_json_watched(struct context *ctx, const struct watched *r);

/* UTC; null for 0. CLOCK_REALTIME. */
json_t *as_json_time(usec_t when);
/* An array; NULL: an empty one. */
json_t *as_json_held(struct doc *d, const struct held_list *held);
json_t *as_json_member_count(struct doc *d, const struct member_count *count);
json_t *as_json_unreachable(struct doc *d, const uint32_t *ports, uint32_t n);
