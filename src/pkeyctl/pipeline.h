/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What commands do beside the sweep (session.h): files, and what a policy means. Each function fills members of the context.
 * It returns 0, -EBADMSG (findings say why) or -ENOMEM: whatever else goes wrong on the way becomes a finding.
 */

#include "opensm/opensm_conf.h"
#include "pkeyctl/context.h"

enum policy_need {
        POLICY_REQUIRED, /* positional FILE or the default; its absence is an error */
        POLICY_OPTIONAL, /* --policy FILE or the default, which may be absent */
        POLICY_NONE,
};

/* pkeyd.yaml and the policy, all findings of both; options override settings. argument: the positional FILE or NULL. */
int pipeline_read_files(struct context *ctx, enum policy_need need, const char *argument);

/* The file that --opensm-config names, else this one (NULL: none) if it is there, else OpenSM's defaults. */
int pipeline_read_opensm_conf(struct context *ctx, const char *otherwise, struct opensm_conf *ret);

/* The subnet that --topology names. */
int pipeline_read_topology(struct context *ctx);

/* These endports and the switch ports they are plugged into, as a choice of tables to read (session.h). */
int pipeline_around(struct context *ctx, const uint32_t *ports, uint32_t n_ports, const uint32_t **ret, uint32_t *ret_n);

/* The endports a selector means; none is an error here. */
int pipeline_select(struct context *ctx, const char *text, uint32_t **ret_ports, uint32_t *ret_n);

/* Who is a member of what, and what each table should hold; nothing without a policy. */
int pipeline_resolve(struct context *ctx);

/* Ports whose tables were not read now, in the context's arena. Returns 0 or -ENOMEM. */
int pipeline_unreachable(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* Endports that the plan leaves as they are (policy/freeze.h), in the context's arena. Returns 0 or -ENOMEM. */
int pipeline_frozen(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* Where the policy was planned in spite of errors, why. */
void pipeline_note_in_force(struct context *ctx);
