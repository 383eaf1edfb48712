/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * session/: what the commands of pkeyctl share.
 *
 *     pkeyctl_options   the table of options, and their values
 *     context           all that one run of pkeyctl has: files, fabric, policy, plan, store, bus
 *     pipeline          what a command can need; files, and what a policy means for a snapshot
 *     session           provides what a command needs; control (control/control.h) for one sweep: discover, read tables and, as
 *                       far as the command needs it, plan and apply. The fabric's part of the context is filled from the results
 *     bus_client        the daemon's answers over D-Bus
 *     policy_edit       changes of characters in a policy file: shown, and written
 *     host_ports        the ports of this host with their tables, as its kernel has them
 *     output, output_text, doc, text_table, progress    the result as text or as one JSON object
 *     held_output, partitions, group_matrix  results that several commands show: what waits, how many members, who can talk to whom
 *
 * Invariants: a sweep sends no SubnSet unless its goal is to apply and the plan was confirmed. Every error that a function meets is
 * a finding in the context before the function returns -EBADMSG. Nothing is printed before the result is complete, except progress.
 *
 * This folder does not know the commands.
 */

#include "session/pipeline.h"

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

/* Finds the etcd cluster with the store: *ret, in the context's arena; NULL: the store is in files. Returns as session_sweep(). */
int session_find_etcd(struct context *ctx, struct etcd_config **ret);

/* Adds the reports of the store to the findings. fatal: the command cannot work without a store. */
void session_report_state(struct context *ctx, bool fatal);

/* Blocks SIGINT and SIGTERM, or lets them end the program. */
void session_block_signals(bool blocked);
/* Blocks them, and handles them in ctx->event; handler NULL: they end its loop. Returns as session_sweep(). */
int session_handle_signals(struct context *ctx, sd_event_signal_handler_t handler);

/* Runs one more stage over the port, with a progress bar that names it. Returns as session_sweep(). */
int session_run_stage(struct context *ctx, const struct mad_stage *stage, const char *what);

/* Opens QP 1 of the port, too, with the index of the default partition in its table, if that was read. Returns 0, or the errno why
 * counters cannot be read; *ret_sa is 0, or the errno why the SA cannot be asked. */
int session_use_gsi(struct context *ctx, int *ret_sa);
