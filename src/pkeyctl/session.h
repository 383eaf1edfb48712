/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a command needs before it runs; and control (control/control.h) for one sweep: discover, read tables, and as far as the
 * command needs it plan and apply. The fabric's part of the context is filled from its results.
 */

#include "control/control.h"
#include "mad_engine/stage.h"
#include "pkeyctl/pipeline.h"

/* Which tables to read of ctx->subnet, in the context's arena. Like each hook it returns 0, -EBADMSG (findings say why) or
 * -ENOMEM, which ends the sweep. */
typedef int (*session_choose_t)(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

struct session_hooks {
        session_choose_t choose; /* NULL: all tables */
        /* CONTROL_APPLY: is ctx->plan to be carried out? */
        int (*confirm)(struct context *ctx, void *userdata);
        void *userdata;
};

/* Provides what a command needs, in the order of enum need. choose: for NEED_TABLES. Returns as session_sweep(). */
int session_provide(struct context *ctx, unsigned needs, session_choose_t choose);

/* hooks: NULL: none. Returns 0, -EBADMSG (findings say why) or -ENOMEM: every other error becomes a finding here. The port stays
 * open. */
int session_sweep(struct context *ctx, enum control_goal goal, const struct session_hooks *hooks);

/* Choices: no table; the local port's own; those of the endports that the arguments select, and of the switch ports beside them. */
int session_choose_none(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);
int session_choose_self(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);
int session_choose_selected(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* What opening or using the store found, as findings. fatal: without it nothing can be done. */
void session_report_state(struct context *ctx, bool fatal);

/* Runs one more stage over the port, with a progress bar that names it. Returns as session_sweep(). */
int session_run(struct context *ctx, const struct mad_stage *stage, const char *what);

/* Uses the port for QP 1, too: with the index of the default partition in its own table, if that was read. Returns 0 or why there
 * is no performance management; *ret_sa is 0 or why there is no subnet administration. */
int session_use_gsi(struct context *ctx, int *ret_sa);
