/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The steps commands are made of, in the order of the data flow. Each fills members of the context. Returns 0, -EBADMSG
 * (findings say why) or -ENOMEM: whatever else goes wrong on the way becomes a finding here.
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

/* The state directory, for reading what was remembered. Without one, or if it cannot be opened, runs that only look go on
 * without. `writing` takes the lock as well; then a directory that was named must be there, the default one should. */
int pipeline_open_state(struct context *ctx, bool writing);

/* The file that --opensm-config names, or OpenSM's defaults. */
int pipeline_read_opensm_conf(struct context *ctx, struct opensm_conf *ret);

/* The picture that --topology names. */
int pipeline_read_topology(struct context *ctx);

/* The local port, then the picture of the fabric through it. */
int pipeline_discover(struct context *ctx);

/* Reads tables: of the given ports, or (NULL) of all. For ports that do not answer the last policy in force says what they
 * hold, if the state directory was opened and has one. */
int pipeline_survey(struct context *ctx, const uint32_t *ports, uint32_t n_ports);

/* Both, for a command that works on the whole fabric: the picture, then every table. */
int pipeline_look(struct context *ctx);

/* The tables of these endports and of the switch ports they are plugged into, no more. */
int pipeline_survey_around(struct context *ctx, const uint32_t *ports, uint32_t n_ports);

/* The endports a selector means; none is an error here. */
int pipeline_select(struct context *ctx, const char *text, uint32_t **ret_ports, uint32_t *ret_n);

/* Who is a member of what, and what each table should hold; nothing without a policy. */
int pipeline_resolve(struct context *ctx);

/* How to get there: memberships, desired, plan. */
int pipeline_plan(struct context *ctx);

/* Ports whose tables were not read now, in the context's arena. Returns 0 or -ENOMEM. */
int pipeline_unreachable(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* Runs a stage, with a progress bar that says what it does. */
int pipeline_run(struct context *ctx, const struct mad_stage *stage, const char *what);
