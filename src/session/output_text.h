/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Texts of results, for people and programs: ports, partitions, times, reasons. */

#include "apply/apply.h"
#include "events/held_text.h"
#include "session/context.h"
#include "util/text.h"

/* Notes the first error of output, with which the run ends; r 0: none. */
void output_fail(struct context *ctx, int r);

/* Texts for both kinds of output. They are static or live in the context's arena; when out of memory they are "?", and the output
 * has failed. */
/* This text, which is NULL when out of memory. */
const char *output_or_fail(struct context *ctx, const char *text);
const char *output_format(struct context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *output_taken(struct context *ctx, const struct text *t);
/* Local time, as journalctl has it, of CLOCK_REALTIME; "never" for 0. */
const char *output_time(struct context *ctx, usec_t when);
/* "node0001 mlx5_0/1", see subnet_port_label(). */
const char *output_label(struct context *ctx, uint32_t port);
/* "node[0001-0016]", see fold_ports(). */
const char *output_folded(struct context *ctx, const uint32_t *ports, uint32_t n);

/* A node's name, or its description if it has none. */
const char *output_node(const struct context *ctx, uint32_t port);
/* The partition of a base: its name, or "" if the policy has none or there is no policy. */
const char *output_partition(const struct context *ctx, uint16_t base);
/* The same, or the base itself, "0x0101", if it has no name. */
const char *output_base(struct context *ctx, uint16_t base);
/* The bases that wait, by the sweep; NULL: not known. */
const struct held_list *output_held(const struct context *ctx);
/* The context of texts about held bases. */
struct held_context output_held_context(struct context *ctx);
/* Why a port's table was not read. */
const char *output_failure(struct context *ctx, uint32_t port);
/* One sentence about an outcome of apply on that port. */
const char *output_reason(struct context *ctx, uint32_t port, const struct apply_outcome *outcome);
/* The line that makes an endport a member of a base: "partitions.yaml:14", "the default partition's own rules", "lease"; "" if it is no
 * member or there is no policy. */
const char *output_line(struct context *ctx, uint32_t port, uint16_t base, const struct port_membership **ret);
