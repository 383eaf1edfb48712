/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The commands. Each returns an exit status, or a negative errno. `arguments` are those behind the command's name. */

#include "pkeyctl/context.h"

struct arguments {
        char **items;
        unsigned n;
};

struct command {
        const char *name;
        const char *synopsis; /* its arguments */
        const char *summary;
        unsigned min_arguments, max_arguments;
        int (*run)(struct context *ctx, const struct arguments *arguments);
        unsigned options; /* those that it takes of the options that are for some commands only */
};

int command_check(struct context *ctx, const struct arguments *arguments);
int command_plan(struct context *ctx, const struct arguments *arguments);
int command_apply(struct context *ctx, const struct arguments *arguments);
int command_verify(struct context *ctx, const struct arguments *arguments);
int command_verify_local(struct context *ctx, const struct arguments *arguments);
int command_show(struct context *ctx, const struct arguments *arguments);
int command_import(struct context *ctx, const struct arguments *arguments);
int command_export(struct context *ctx, const struct arguments *arguments);
int command_explain(struct context *ctx, const struct arguments *arguments);
int command_doctor(struct context *ctx, const struct arguments *arguments);
int command_status(struct context *ctx, const struct arguments *arguments);
int command_reload(struct context *ctx, const struct arguments *arguments);
int command_watch(struct context *ctx, const struct arguments *arguments);
int command_violations(struct context *ctx, const struct arguments *arguments);
/* `violations --once` */
int command_violations_once(struct context *ctx);
