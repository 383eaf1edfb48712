/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/command_line.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ib/types.h"
#include "util/nearest.h"
#include "util/scan.h"

#define MAX_PORT         254
#define MAX_TIMEOUT_MSEC 60000

#define HELP_COLUMN 23

#define FIRST_LONG 256 /* getopt_long() returns this plus the option's number in the table if it has no letter */

/* Decimal digits only, without sign or blanks. */
static bool read_number(struct findings *findings, const char *name, const char *text, unsigned most, unsigned *ret)
{
        struct scan s = { text, text + strlen(text) };
        uint64_t value;

        if (!scan_number(&s, 10, most, &value) || s.p < s.end || value == 0) {
                (void) findings_error(findings, FINDING_USAGE, NULL, "--%s: '%s' is not a number from 1 to %u", name,
                                      text, most);
                return false;
        }
        *ret = (unsigned) value;
        return true;
}

void command_line_read_timeout(struct findings *findings, const char *name, const char *text, usec_t *ret)
{
        unsigned number;

        if (read_number(findings, name, text, MAX_TIMEOUT_MSEC, &number))
                *ret = number * USEC_PER_MSEC;
}

static void take_value(struct findings *findings, const struct command_line_option *o, const char *text, void *options)
{
        void *member = (char *) options + o->offset;

        switch (o->kind) {
        case COMMAND_LINE_TEXT:
                *(const char **) member = text;
                break;
        case COMMAND_LINE_FLAG:
                *(bool *) member = true;
                break;
        case COMMAND_LINE_PORT:
                (void) read_number(findings, o->name, text, MAX_PORT, member);
                break;
        case COMMAND_LINE_TIMEOUT:
                command_line_read_timeout(findings, o->name, text, member);
                break;
        case COMMAND_LINE_READ:
                o->read(findings, text, options);
                break;
        }
}

static void refuse_unknown(const struct command_line *line, struct findings *findings, const char *word)
{
        const char *hint = arena_printf(findings->arena, "%s --help lists the options", line->program);
        const char *names[COMMAND_LINE_MAX_OPTIONS];

        for (size_t i = 0; i < line->n; i++)
                names[i] = line->options[i].name;
        if (strncmp(word, "--", 2) == 0)
                hint = nearest_hint(findings->arena, word + 2, names, line->n, "--", hint);
        (void) findings_error(findings, FINDING_USAGE, hint, "unknown option '%s'", word);
}

/* Handles the return value c of getopt_long(). `word` is the argument that it comes from. */
static void handle_option(const struct command_line *line, struct findings *findings, int c, const char *word, void *options,
                          uint64_t *given)
{
        const struct command_line_option *o = line->options;

        if (c == ':') {
                (void) findings_error(findings, FINDING_USAGE, NULL, "'%s' needs a value", word);
                return;
        }
        if (c == '?') {
                refuse_unknown(line, findings, word);
                return;
        }
        while (o->letter != c && c != FIRST_LONG + (o - line->options))
                o++;
        take_value(findings, o, optarg, options);
        if (given)
                *given |= UINT64_C(1) << (o - line->options);
}

/* The argument to name in an error. A short option may be part of a cluster ("-vx"); then it is its letter, which is in optopt. */
static const char *failed_word(char **argv, int c, char letter[3])
{
        if ((c == '?' || c == ':') && optopt > 0 && optopt < 256 && strncmp(argv[optind - 1], "--", 2) != 0) {
                letter[0] = '-';
                letter[1] = (char) optopt;
                letter[2] = '\0';
                return letter;
        }
        return argv[optind - 1];
}

/* Converts the table for getopt_long(). The colon in front: it prints nothing, and returns ':' for a missing value. */
static void make_tables(const struct command_line *line, struct option *long_options, char *letters)
{
        *letters++ = ':';
        for (size_t i = 0; i < line->n; i++) {
                const struct command_line_option *o = &line->options[i];
                bool has_value = o->kind != COMMAND_LINE_FLAG;

                long_options[i] = (struct option) {
                        o->name, has_value ? required_argument : no_argument, NULL, o->letter ?: FIRST_LONG + (int) i,
                };
                if (o->letter)
                        *letters++ = (char) o->letter;
                if (o->letter && has_value)
                        *letters++ = ':';
        }
}

int command_line_read(const struct command_line *line, int argc, char **argv, struct findings *findings, void *options,
                      uint64_t *given)
{
        struct option long_options[COMMAND_LINE_MAX_OPTIONS + 1] = {};
        char letters[1 + 2 * COMMAND_LINE_MAX_OPTIONS + 1] = "", letter[3];
        int c;

        assert(line->n <= COMMAND_LINE_MAX_OPTIONS);
        make_tables(line, long_options, letters);
        optind = 0; /* starts over, even if getopt_long() was called before */
        while ((c = getopt_long(argc, argv, letters, long_options, NULL)) >= 0)
                handle_option(line, findings, c, failed_word(argv, c, letter), options, given);
        return findings_refuse(findings) ? -EBADMSG : optind;
}

void command_line_print_help(const struct command_line_option *o, const char *in_front)
{
        int width = o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);

        if (o->argument)
                width += printf(" %s", o->argument);
        if (width + 2 > HELP_COLUMN)
                width = printf("\n") - 1;
        printf("%*s%s%s\n", HELP_COLUMN - width, "", in_front, o->help);
}
