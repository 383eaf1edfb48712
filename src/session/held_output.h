/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Held bases as text and as JSON. */

#include "session/output.h"

/* Held bases, each with what waits for what, why, and the way out. NULL: none. */
json_t *json_held(struct doc *d, const struct held_list *held);
void text_held(struct context *ctx, const struct held_list *held);
/* A port as the knowledge names it; for a device that was never discovered, the switch port that leads to it. */
json_t *json_named_port(const struct held_context *context, struct knowledge_name name);
/* A time of the knowledge, in seconds. */
json_t *json_seconds(uint64_t seconds);
