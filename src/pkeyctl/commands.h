/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The commands. Each returns an exit status, or a negative errno. */

#include "pkeyctl/context.h"

struct command {
        const char *name;
        const char *synopsis; /* its arguments */
        const char *summary;
        unsigned min_arguments, max_arguments;
        int (*run)(struct context *ctx);
        unsigned options; /* those that it takes of the options that are for some commands only */
};

int command_check(struct context *ctx);
int command_plan(struct context *ctx);
int command_apply(struct context *ctx);
int command_verify(struct context *ctx);
int command_verify_local(struct context *ctx);
int command_show(struct context *ctx);
int command_forget(struct context *ctx);
/* `show vouches` */
int command_show_vouches(struct context *ctx);
int command_import(struct context *ctx);
int command_export(struct context *ctx);
int command_explain(struct context *ctx);
int command_doctor(struct context *ctx);
int command_status(struct context *ctx);
int command_reload(struct context *ctx);
int command_watch(struct context *ctx);
int command_violations(struct context *ctx);
/* `violations --once` */
int command_violations_once(struct context *ctx);
