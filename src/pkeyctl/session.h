/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Control (control/control.h) for one sweep: discover, read tables, and as far as the command needs it plan and apply. The
 * fabric's part of the context is filled from what it came to.
 */

#include "control/control.h"
#include "mad_engine/stage.h"
#include "pkeyctl/pipeline.h"

/* Questions on the way. Each returns 0, -EBADMSG (findings say why) or -ENOMEM, which ends the sweep. */
struct session_hooks {
        /* Which tables to read of ctx->subnet, in the context's arena. NULL: all. */
        int (*choose)(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n);
        /* CONTROL_APPLY: is ctx->plan to be carried out? */
        int (*confirm)(struct context *ctx, void *userdata);
        void *userdata;
};

/* hooks: NULL: none. Returns 0, -EBADMSG (findings say why) or -ENOMEM: whatever else goes wrong on the way becomes a finding
 * here. The port stays open. */
int session_sweep(struct context *ctx, enum control_goal goal, const struct session_hooks *hooks);

/* Reads the files (pipeline.h), then the fabric with the tables that the hooks choose, and what the policy means there. */
int session_read(struct context *ctx, enum policy_need need, const char *argument, const struct session_hooks *hooks);

/* A choice that reads no table. */
int session_choose_none(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n);

/* What opening or using a store had to say, as findings. fatal: without it nothing can be done. */
void session_report_state(struct context *ctx, struct state *state, bool fatal);

/* Runs one more stage over the port, with a progress bar that says what it does. Same returns. */
int session_run(struct context *ctx, const struct mad_stage *stage, const char *what);

/* The port is used for QP 1, too: with the index of the default partition in its own table, if that was read. Returns 0 or
 * why there is no performance management; *ret_sa is 0 or why there is no subnet administration. */
int session_use_gsi(struct context *ctx, int *ret_sa);
