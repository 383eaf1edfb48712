/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What commands do besides the sweep (session.h): files, and what a policy means. Each function fills members of the context. It
 * returns 0, -EBADMSG (findings say why) or -ENOMEM: every other error becomes a finding.
 */

#include "opensm/opensm_conf.h"
#include "opensm/opensm_numbers.h"
#include "session/context.h"

/* What a command needs before it runs, in the order in which it is provided. */
enum need {
        NEED_SETTINGS = 1 << 0,       /* pkeyd.yaml: without it only the one that --config names is read */
        NEED_POLICY = 1 << 1,         /* a policy: its absence is an error */
        NEED_POLICY_IF_ANY = 1 << 2,  /* the default one may be absent */
        TAKES_POLICY = 1 << 3,        /* the argument, if there is one, names the policy */
        NEED_TOPOLOGY = 1 << 4,       /* the subnet that --topology names, if it names one */
        NEED_WRITER = 1 << 5,         /* settings by which pkeyctl may write tables */
        NEED_CONFIRMATION = 1 << 6,   /* a terminal to ask on, or --yes */
        NEED_STORE = 1 << 7,          /* what is stored in the state directory */
        NEED_STORE_TO_WRITE = 1 << 8, /* the same, for changes: what is stored later is noticed (store_change.h) */
        NEED_TABLES = 1 << 9,         /* the fabric with its tables, and what the policy means there */
        NEED_PLAN = 1 << 10,          /* the fabric, and a plan */

        READ_FABRIC = NEED_SETTINGS | NEED_POLICY_IF_ANY | NEED_TABLES,
        JUDGE_HOST = NEED_SETTINGS | NEED_POLICY | TAKES_POLICY,
        JUDGE_FABRIC = JUDGE_HOST | NEED_TABLES,
        PLAN_FABRIC = JUDGE_HOST | NEED_PLAN,
        WRITE_FABRIC = JUDGE_HOST | NEED_WRITER | NEED_CONFIRMATION,
};

/* pkeyd.yaml, the policy and the file that --topology names, as far as `needs` has them, and all findings of all three; options
 * override the settings. With --topology the default pkeyd.yaml is not read. */
int pipeline_read_files(struct context *ctx, unsigned needs);

/* Options take precedence over the settings of ctx->files. */
void pipeline_override_settings(struct context *ctx);

/* The subnet that --topology names; nothing without one. */
int pipeline_read_topology(struct context *ctx);

/* The file that --opensm-config names, else this one (NULL: none) if it is there, else OpenSM's defaults. */
int pipeline_read_opensm_conf(struct context *ctx, const char *otherwise, struct opensm_conf *ret);
/* The numbers of this host's OpenSM. Unknown with --topology, because the files are then those of another host. */
enum opensm_numbers pipeline_opensm_numbers(struct context *ctx);

/* These endports and the switch ports they are plugged into, as a choice of tables to read (session.h). */
int pipeline_around(struct context *ctx, const struct endports *lists, size_t n_lists, const uint32_t **ret, uint32_t *ret_n);

/* The endports that the arguments select, at most two, into ctx->selected. An argument that selects none is an error. */
int pipeline_select(struct context *ctx);

/* The endports that a text selects in a subnet; none if it is wrong, which is not reported. Returns 0 or -ENOMEM. */
int pipeline_find(struct context *ctx, const struct policy *policy, const struct subnet *s, const struct known *known,
                  const char *text, struct endports *ret);

/* Memberships, and what each table should hold; nothing without a policy. Errors about single ports freeze these ports and refuse
 * nothing (policy/freeze.h) if the policy is in force, or if the command does not judge it. */
int pipeline_resolve(struct context *ctx, bool judges);

/* The ports for which `is_wanted` is true, in the context's arena. Returns 0 or -ENOMEM. */
int pipeline_filter(struct context *ctx, bool (*is_wanted)(const struct context *ctx, uint32_t port), struct endports *ret);
/* Returns whether it is a managed port whose table was not read; a frozen endport. */
bool pipeline_is_unreachable(const struct context *ctx, uint32_t port);
bool pipeline_is_frozen(const struct context *ctx, uint32_t port);

/* Adds a note if the plan is of a policy with errors: pkeyd has it in force, so its errors freeze ports. */
void pipeline_note_in_force(struct context *ctx);
