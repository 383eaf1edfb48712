/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The commands, each of which returns an exit status or a negative errno; and what one of them has for others. pkeyctl.c has
 * their table, with what is provided to each before it runs. */

#include "reach/reach.h"
#include "session/bus_client.h"
#include "session/output.h"
#include "session/session.h"
#include "verify/changes.h"
#include "verify/verify.h"

typedef int command_t(struct context *ctx);
command_t command_check, command_check_fix, command_plan, command_apply, command_verify, command_verify_local;
command_t command_show_ports, command_show_matrix, command_show_partitions, command_show_port, command_show_held;
command_t command_show_vouches, command_forget, command_import, command_export, command_env, command_explain, command_doctor;
command_t command_confirm, command_undo;
command_t command_pins, command_pin_accept, command_pin_drop, command_replace;
command_t command_status, command_reload, command_watch, command_violations, command_violations_once;
command_t command_history, command_history_show, command_history_diff, command_history_policy;

#define MAX_FORGET 64 /* arguments */

/* What the arguments of a command are, for completion. */
enum argument {
        ARGUMENT_NONE,
        ARGUMENT_FILE,
        ARGUMENT_PARTITION,
        ARGUMENT_SELECTOR, /* hosts, @switches, groups of the policy, GUIDs */
        ARGUMENT_NAME,     /* hosts and switches */
        ARGUMENT_GENERATION, /* behind the first one `file`, too */
};

/* A row of the table of commands. A row with a word is a variant of the row before it that has none, chosen by its first argument
 * or by an option. It takes the options of that row, too. */
struct command {
        const char *name, *word;
        const char *synopsis; /* its arguments */
        const char *summary;  /* for --help and completion; --help lists no variants */
        unsigned min_arguments, max_arguments;
        int (*run)(struct context *ctx); /* returns an exit status or a negative errno; NULL: a word is needed */
        unsigned needs;
        session_choose_t choose; /* the tables that NEED_TABLES reads; NULL: all */
        const char *options[4];  /* those that it takes of the options for some commands only */
        const char *format;      /* what --format takes, besides json */
        enum argument argument;  /* what its arguments are */
};

/* The tables that these commands read (session.h). */
int explain_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);
int forget_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* "0x" and up to 16 hex digits. */
bool guid_argument(const char *text, struct guid *ret);
/* The node with this GUID, or with this GUID of a port; SUBNET_NONE: there is none. */
uint32_t find_node_of(const struct subnet *s, struct guid guid);

/* Since which generation a port has been what it is now in a partition. */
struct since {
        uint64_t generation; /* 0: not known */
        bool or_earlier;     /* the generations before it are not stored, or are too many */
};

struct explain_since {
        uint64_t in_force;   /* the newest generation; 0: none is stored */
        bool is_in_force;    /* its policy is the one at hand */
        struct since *items; /* n_ports for each partition; NULL: not known */
        uint32_t n_ports;
};

/* For n endports, from the stored generations and the present fabric; nothing without a store. Returns 0 or -ENOMEM. */
int explain_find_since(struct context *ctx, const uint32_t *ports, uint32_t n, struct explain_since *ret);

/* A plan (ctx->plan) as a person reads it. */
struct plan_result {
        struct changes changes;
        struct reach_changes reach;
        struct endports unreachable; /* ports whose tables were not read; switch ports, too */
        struct endports frozen;
        uint32_t n_silent;           /* links that are up and whose other end did not answer discovery */
};

/* In the context's arena. Returns 0 or -ENOMEM. */
int plan_describe(struct context *ctx, struct plan_result *ret);
/* Adds a struct plan_result to the JSON of a command. */
void json_plan(struct doc *d, const void *result);
/* Who can no longer talk to whom, and who now can. */
json_t *json_reach(struct doc *d, const struct reach_changes *r);
void text_reach(struct context *ctx, const struct reach_changes *r);
/* A write: its port, its block, and the values before and after. */
json_t *json_write(struct doc *d, const struct plan_write *w);
/* Shows what apply is about to do, before it asks; nothing with --json, which has one object, at the end. */
void plan_propose(struct context *ctx, const struct plan_result *r);

/* Differences from the policy; as text, those of the kernel's tables only. */
json_t *json_differences(struct doc *d, const struct verification *v);
void text_kernel(struct context *ctx, const struct verification *v);

/* Does pkeyd, if it runs on this host, write to another fabric than this run of pkeyctl? */
bool apply_is_elsewhere(const struct context *ctx);
/* While tables are written, a signal ends the run in order; before that, at once. */
int apply_handle_signals(struct context *ctx);
/* Carries out ctx->policy, after a person confirmed the plan, and shows the result. No pkeyd runs with it. */
int apply_here(struct context *ctx);
/* Have pkeyd do it. */
int daemon_confirm(struct context *ctx);
int daemon_undo(struct context *ctx);
/* The user who runs pkeyctl. Returns 0 or -ENOMEM. */
int confirm_name_origin(struct context *ctx, struct origin *ret);
/* After an apply with --confirm: waits until the generation is confirmed, or undoes it. Returns an exit status or a negative
 * errno. */
int confirm_wait(struct context *ctx, uint64_t generation, int status);
