/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the command line of a program by a table of its options, which has the place of each value and the text for --help. All
 * errors of the command line become findings.
 */

#include "ib/types.h"
#include "util/findings.h"

enum command_line_kind {
        COMMAND_LINE_TEXT,    /* a const char *, borrowed from argv */
        COMMAND_LINE_FLAG,    /* a bool */
        COMMAND_LINE_PORT,    /* an unsigned, the number of a port */
        COMMAND_LINE_TIMEOUT, /* a usec_t, given in milliseconds */
        COMMAND_LINE_READ,    /* parsed by `read` */
};

struct command_line_option {
        const char *name;
        int letter;    /* 0: none */
        enum command_line_kind kind;
        size_t offset; /* of the member of `options` that gets the value */
        void (*read)(struct findings *findings, const char *text, void *options);
        const char *argument, *help; /* "FILE" (NULL for a flag), "this host's settings" */
};

/* An option whose value goes to a member of the program's struct options. */
#define COMMAND_LINE_OPTION(name, letter, kind, member, argument, help)                                                \
        { name, letter, COMMAND_LINE_##kind, offsetof(struct options, member), NULL, argument, help }

#define COMMAND_LINE_MAX_OPTIONS 64

struct command_line {
        const char *program; /* for hints: "PROGRAM --help lists the options" */
        const struct command_line_option *options;
        size_t n; /* at most COMMAND_LINE_MAX_OPTIONS */
};

/* Reads argv into `options`, and moves the arguments that belong to no option to the end of argv. Returns the index of the first
 * of these, or -EBADMSG with the reasons in the findings. given: gets bit i for option i; may be NULL. */
int command_line_read(const struct command_line *line, int argc, char **argv, struct findings *findings, void *options,
                      uint64_t *given);

/* Reads the text of COMMAND_LINE_TIMEOUT. */
void command_line_read_timeout(struct findings *findings, const char *name, const char *text, usec_t *ret);

/* Prints an option as a line of --help, with in_front in front of its help text. */
void command_line_print_help(const struct command_line_option *o, const char *in_front);
