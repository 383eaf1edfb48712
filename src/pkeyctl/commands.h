/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyctl/: the commands of pkeyctl, without those of report/ and store_commands/; and what they share.
 *
 * command_table.c has the table of all commands, with what session_provide() provides to each before it runs. --help, completion
 * and the errors about options come from this table, so a command needs nothing besides its row.
 *
 * This folder does not know how tables are read or written: session/ does that.
 */

#include "reach/reach.h"
#include "session/bus_client.h"
#include "session/output.h"
#include "session/session.h"
#include "verify/changes.h"
#include "verify/verify.h"

command_t command_check, command_check_fix, command_plan, command_apply, command_verify, command_verify_local;
command_t command_show_ports, command_show_matrix, command_show_partitions, command_show_port;
command_t command_import, command_export, command_env, command_explain, command_doctor;
command_t command_confirm, command_undo;
command_t command_lease_create, command_lease_edit, command_lease_renew, command_lease_release, command_lease_list;
command_t command_lease_show;
command_t command_status, command_reload, command_watch, command_violations, command_violations_once;

/* What the arguments of a command are, for completion. */
enum argument {
        ARGUMENT_NONE,
        ARGUMENT_FILE,
        ARGUMENT_PARTITION,
        ARGUMENT_SELECTOR, /* hosts, @switches, groups of the policy, GUIDs */
        ARGUMENT_NAME,     /* hosts and switches */
        ARGUMENT_LEASE,
        ARGUMENT_GENERATION, /* the second argument may also be `file` */
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
        const char *options[8];  /* those that it takes of the options for some commands only */
        const char *format;      /* what --format takes, besides json */
        enum argument argument;  /* what its arguments are */
        bool waits;              /* --timeout is how long it waits, like 90s; else it is that of a MAD, in milliseconds */
};

extern const struct command commands[];
extern const size_t n_commands;

/* The row of this name without a word; NULL: there is none. */
const struct command *command_find(const char *name);
/* The row of the next variant; NULL: there are no more. */
const struct command *command_next_variant(const struct command *c);
/* Returns whether the row is a variant that an option chooses. */
bool command_is_chosen_by_option(const struct command *c);
/* The variant that one of the given options (bits of options_line) or the word (NULL: none) chooses; else `parent`, its row without
 * a word. *ret_has_words: a word could have chosen one. */
const struct command *command_find_variant(const struct command *parent, uint64_t given, const char *word, bool *ret_has_words);
/* Returns whether the command takes an option of this name: those for all commands, too. */
bool command_takes(const struct command *c, const char *option);
/* Adds the commands that take an option, as in "apply and forget", with `last` between the last two. Nothing: it is for all. */
void command_add_takers(struct text *t, const char *option, const char *last);

/* `complete`: prints the candidates for word N of the command line WORD..., with N and the words in `arguments` (pkeyctl(1),
 * COMPLETION). Does not fail: what it cannot read adds no candidates. Sends nothing, changes nothing, does not wait. */
void completion_answer(int n, char **arguments);

/* The tables that `explain` reads (session.h). */
int explain_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

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
/* Frozen ports, each with the reason and the way out. */
json_t *json_frozen_ports(struct doc *d, const struct endports *frozen);
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

/* While tables are written, a signal ends the run in order; before that, at once. */
int apply_handle_signals(struct context *ctx);

/* What an apply did; of ctx->control. */
struct apply_result {
        struct plan_result plan;
        bool is_described; /* the plan */
        const struct control_results *sweep;
        struct apply_summary summary;
        bool verified;
        bool waits; /* --confirm: the generation waits to be confirmed */
        enum exit_status status;
};

/* Asks, and carries out ctx->policy. The caller has checked that no pkeyd writes. *ret is empty before. Returns as
 * session_sweep(). */
int apply_without_daemon(struct context *ctx, struct apply_result *ret);
/* Returns the status. */
int apply_show(struct context *ctx, const struct apply_result *result, enum exit_status status);
/* The policy file of a pkeyd that writes to this fabric, or will; NULL: no pkeyd runs, or it does not write. */
int apply_find_writer(struct context *ctx, const char **ret_policy_file);
/* Make a pkeyd that runs confirm the change, or undo this generation, if it is in force. Return a status or an error. */
int daemon_confirm(struct context *ctx, bool shows);
int daemon_undo(struct context *ctx, uint64_t generation);
/* Sets *ret to the user who runs pkeyctl. Returns 0 or -ENOMEM. */
int confirm_name_origin(struct context *ctx, struct origin *ret);
/* After an apply with --confirm: shows its result, waits until the generation is confirmed, or undoes it. With --json it shows one
 * result, after that: that of the apply or, if it undid this, that of the undo. Returns an exit status or a negative errno. */
int confirm_wait(struct context *ctx, const struct apply_result *result);
