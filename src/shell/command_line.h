/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line of a program by a table of its options, which says where their values go. What is wrong with it becomes
 * findings, all of it in one run; nothing is printed.
 */

#include "util/findings.h"

enum command_line_kind {
        COMMAND_LINE_TEXT,    /* a const char *, borrowed from argv */
        COMMAND_LINE_FLAG,    /* a bool */
        COMMAND_LINE_PORT,    /* an unsigned, the number of a port */
        COMMAND_LINE_TIMEOUT, /* a usec_t, as milliseconds */
        COMMAND_LINE_READ,    /* whatever `read` makes of it */
};

struct command_line_option {
        const char *name;
        int letter;    /* 0: none */
        enum command_line_kind kind;
        size_t offset; /* of the member of `options` that takes the value */
        void (*read)(struct findings *findings, const char *text, void *options);
};

/* One whose value goes to a member of the program's struct options. */
#define COMMAND_LINE_OPTION(name, letter, kind, member)                                                                \
        { name, letter, COMMAND_LINE_##kind, offsetof(struct options, member), NULL }

#define COMMAND_LINE_MAX_OPTIONS 32

struct command_line {
        const char *program; /* its --help lists the options */
        const struct command_line_option *options;
        size_t n; /* at most COMMAND_LINE_MAX_OPTIONS */
};

/* Reads argv, which is reordered, into `options`. Returns the index of the first argument that is no option and belongs to
 * none (they all stand at the end then), or -EBADMSG: findings say why. */
int command_line_read(const struct command_line *line, int argc, char **argv, struct findings *findings, void *options);
