/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line. --help and --version are printed by pkeyctl.c. */

#include "shell/command_line.h"
#include "shell/shell.h"

#define FABRIC_VARIABLE "PKEYCTL_FABRIC"

struct options {
        const char *fabric;    /* NULL: as the environment says */
        const char *ca;        /* NULL: as the settings say */
        unsigned port;         /* 0: as the settings say */
        usec_t timeout;        /* of one MAD: --timeout without a unit; 0: as the settings say */
        usec_t wait;           /* of a command: --timeout with a unit, like 90s; 0: not given */
        const char *config;    /* NULL: that of the fabric, if there is one */
        const char *policy;    /* NULL: not named as an option */
        const char *state_dir; /* NULL: that of the fabric */
        const char *topology;
        const char *opensm_config; /* NULL: OpenSM's defaults are taken to hold */
        const char *output;        /* NULL: standard output */
        const char *format;
        bool json, yes, local, fix, write, beside_opensm, quiet, verbose, help, version;
        usec_t confirm;        /* 0: not given */
        usec_t since;          /* CLOCK_REALTIME; 0: not given */
        const char *node;
        bool once;
        usec_t interval;       /* 0: not given */
        struct {
                const char *pool, *id, *members, *membership, *add, *remove, *set;
                uint16_t base;     /* 0: not given */
                uint64_t seconds;  /* of --for; 0: not given; UINT64_MAX: until it is released */
                bool partial, index0;
        } lease;
        bool release_stranded;
        char **arguments;      /* the command and its positional arguments, NULL at the end */
        unsigned n_arguments;
        uint64_t given;        /* bit i: option i of options_line */
};

extern const struct command_line options_line;

/* Returns whether `given` has the bit of the option of this name. */
bool options_are_given(uint64_t given, const char *name);

/* Reads argv (and the clock, for --since 10m), which is reordered and borrowed. Every mistake becomes a finding. ret->json is
 * set by a wrong command line, too, so that its mistakes can be printed as JSON. Returns 0 or -EBADMSG. */
int options_parse(int argc, char **argv, struct findings *findings, struct options *ret);
