/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a shell offers while a person types a command line of pkeyctl. The scripts in completions/ only pass the answer on; what can
 * be typed is in the table of commands and in that of options. */
#include <stdlib.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/completion_names.h"
#include "shell/fabric.h"
#include "util/scan.h"

#define MAX_CANDIDATES 1000

/* A command line, of which one word is to be completed: the one with the cursor. */
struct typed_line {
        char **words;                              /* words[0] is the program */
        int n, cursor;                             /* cursor: at most n, a new word at the end */
        bool after_dashes;                         /* "--" stands in front of the cursor */
        const struct command_line_option *option_at_cursor; /* the cursor is in the value of this option */
        uint64_t given;                            /* bit i: option i of options_line */
        const char *values[COMMAND_LINE_MAX_OPTIONS];
        struct fabric fabric;                      /* that of the line, if there is one of this name */
        const char *arguments[2];                  /* the first of those that belong to no option, without the cursor's word */
        unsigned n_arguments, n_before;            /* how many; in front of the cursor */
};

/* --- reading the line ------------------------------------------------------------------------------------------------ */

/* By its name, or a beginning of it that no other option has, as getopt_long() does. */
static const struct command_line_option *find_option(const char *name, size_t n)
{
        const struct command_line_option *found = NULL;

        for (const struct command_line_option *o = options_line.options; o < options_line.options + options_line.n; o++) {
                if (strncmp(o->name, name, n) != 0)
                        continue;
                if (strlen(o->name) == n)
                        return o;
                if (found)
                        return NULL;
                found = o;
        }
        return found;
}

static const struct command_line_option *find_letter(char letter)
{
        for (const struct command_line_option *o = options_line.options; o < options_line.options + options_line.n; o++)
                if (o->letter == letter)
                        return o;
        return NULL;
}

static void take_value(struct typed_line *l, const struct command_line_option *o, const char *value)
{
        l->values[o - options_line.options] = value;
}

/* "--name", "--name=value". Returns the option whose value is the next word; NULL: none. */
static const struct command_line_option *take_long(struct typed_line *l, const char *name)
{
        size_t n = strcspn(name, "=");
        const struct command_line_option *o = find_option(name, n);

        if (!o)
                return NULL;
        l->given |= UINT64_C(1) << (o - options_line.options);
        if (o->kind == COMMAND_LINE_FLAG)
                return NULL;
        if (!name[n])
                return o;
        take_value(l, o, name + n + 1);
        return NULL;
}

/* "-q", "-vq", "-P1", "-P". */
static const struct command_line_option *take_letters(struct typed_line *l, const char *letters)
{
        for (; *letters; letters++) {
                const struct command_line_option *o = find_letter(*letters);

                if (!o)
                        return NULL;
                l->given |= UINT64_C(1) << (o - options_line.options);
                if (o->kind != COMMAND_LINE_FLAG)
                        return letters[1] ? NULL : o;
        }
        return NULL;
}

static void take_argument(struct typed_line *l, int i)
{
        if (l->n_arguments < ELEMENTS(l->arguments))
                l->arguments[l->n_arguments] = l->words[i];
        l->n_arguments++;
        l->n_before += i < l->cursor;
}

static void parse_line(struct typed_line *l)
{
        const struct command_line_option *expects = NULL;
        bool after_dashes = false;

        for (int i = 1; i <= l->n; i++) {
                const char *word = i < l->n ? l->words[i] : NULL;

                if (i == l->cursor) {
                        l->option_at_cursor = expects;
                        l->after_dashes = after_dashes;
                        expects = NULL;
                } else if (!word) {
                        return;
                } else if (expects) {
                        take_value(l, expects, word);
                        expects = NULL;
                } else if (after_dashes || word[0] != '-' || !word[1]) {
                        take_argument(l, i);
                } else if (word[1] != '-') {
                        expects = take_letters(l, word + 1);
                } else if (word[2]) {
                        expects = take_long(l, word + 2);
                } else {
                        after_dashes = true;
                }
        }
}

static const char *value_of(const struct typed_line *l, const char *option)
{
        const struct command_line_option *o = find_option(option, strlen(option));

        return o ? l->values[o - options_line.options] : NULL;
}

/* The row of the command on the line; NULL: none is there, or it does not exist. */
static const struct command *find_command(const struct typed_line *l)
{
        return l->n_arguments > 0 ? command_find(l->arguments[0]) : NULL;
}

static const struct command *find_variant(const struct typed_line *l, const struct command *parent, bool *ret_has_words)
{
        return command_find_variant(parent, l->given, l->n_arguments > 1 ? l->arguments[1] : NULL, ret_has_words);
}

/* The variant that the line chooses; NULL: no command. */
static const struct command *chosen_command(const struct typed_line *l)
{
        const struct command *command = find_command(l);
        bool has_words;

        return command ? find_variant(l, command, &has_words) : NULL;
}

/* --- candidates ------------------------------------------------------------------------------------------------------ */

static void add_commands(struct candidates *c)
{
        for (size_t i = 0; i < n_commands; i++)
                if (!commands[i].word)
                        candidates_add(c, commands[i].name, commands[i].summary);
}

static void add_variants(struct candidates *c, const struct command *parent)
{
        for (const struct command *v = parent; (v = command_next_variant(v));)
                if (!command_is_chosen_by_option(v))
                        candidates_add(c, v->word, v->summary);
}

/* Those that the command takes, or without a command all, except those that the line has. */
static void add_options(struct candidates *c, const struct typed_line *l)
{
        const struct command *command = chosen_command(l);

        if (l->n_arguments > 0 && !command)
                return;
        for (size_t i = 0; i < options_line.n; i++) {
                const struct command_line_option *o = &options_line.options[i];

                if (!(l->given & UINT64_C(1) << i) && (!command || command_takes(command, o->name)))
                        candidates_add(c, arena_printf(c->arena, "--%s", o->name) ?: "", o->help);
        }
}

/* In a list of selectors, the last one is completed. */
static void skip_list(struct candidates *c)
{
        size_t depth = 0, n = 0;

        for (size_t i = 0; c->prefix[i]; i++) {
                if (c->prefix[i] == '[')
                        depth++;
                else if (c->prefix[i] == ']' && depth > 0)
                        depth--;
                else if (c->prefix[i] == ',' && depth == 0)
                        n = i + 1;
        }
        c->lead = arena_printf(c->arena, "%s%.*s", c->lead, (int) n, c->prefix) ?: "";
        c->prefix += n;
}

static const char *state_dir(const struct typed_line *l)
{
        return value_of(l, "state-dir") ?: l->fabric.state_dir;
}

static void add_names(struct candidates *c, const struct typed_line *l, enum names_kind kind)
{
        completion_add_names(c, kind, value_of(l, "policy") ?: l->fabric.policy_file, state_dir(l));
}

static void add_fabrics(struct candidates *c)
{
        struct fabric_names names;

        if (fabric_list(c->arena, &names) < 0)
                return;
        for (size_t i = 0; i < names.n; i++)
                candidates_add(c, names.items[i].text, NULL);
}

/* The formats of the command. */
static void add_formats(struct candidates *c, const struct typed_line *l)
{
        const struct command *command = chosen_command(l);

        if (command && command->format) {
                candidates_add(c, command->format, NULL);
                candidates_add(c, "json", NULL);
        }
}

/* Returns a directive for the shell; NULL: the candidates are the answer. */
static const char *add_value(struct candidates *c, const struct typed_line *l, const struct command_line_option *o)
{
        const char *argument = o->argument ?: "";

        if (strcmp(argument, "FILE") == 0)
                return ":files";
        if (strcmp(argument, "DIR") == 0)
                return ":directories";
        if (strcmp(argument, "NAME") == 0)
                add_names(c, l, NAMES_PLAIN);
        if (strcmp(argument, "POOL") == 0)
                add_names(c, l, NAMES_POOL);
        if (strcmp(argument, "SELECTORS") == 0) {
                skip_list(c);
                add_names(c, l, NAMES_SELECTOR);
        }
        if (strcmp(argument, "MEMBERSHIP") == 0) {
                candidates_add(c, "full", NULL);
                candidates_add(c, "limited", NULL);
        }
        if (strcmp(argument, "FORMAT") == 0)
                add_formats(c, l);
        if (strcmp(argument, "FABRIC") == 0)
                add_fabrics(c);
        return NULL;
}

static const char *add_argument_of(struct candidates *c, const struct typed_line *l, const struct command *command, unsigned index)
{
        if (index >= command->max_arguments)
                return NULL;
        switch (command->argument) {
        case ARGUMENT_NONE:
                return NULL;
        case ARGUMENT_FILE:
                return ":files";
        case ARGUMENT_PARTITION:
                add_names(c, l, NAMES_PARTITION);
                return NULL;
        case ARGUMENT_NAME:
                add_names(c, l, NAMES_PLAIN);
                return NULL;
        case ARGUMENT_SELECTOR:
                skip_list(c);
                add_names(c, l, NAMES_SELECTOR);
                return NULL;
        case ARGUMENT_LEASE:
                completion_add_leases(c, state_dir(l));
                return NULL;
        case ARGUMENT_GENERATION:
                completion_add_generations(c, state_dir(l));
                if (index > 0)
                        candidates_add(c, "file", "the present files");
                return NULL;
        }
        return NULL;
}

static const char *add_arguments(struct candidates *c, const struct typed_line *l)
{
        const struct command *parent, *command;
        bool has_words;

        if (l->n_before == 0) {
                add_commands(c);
                return NULL;
        }
        parent = find_command(l);
        if (!parent)
                return NULL;
        command = find_variant(l, parent, &has_words);
        if (has_words && l->n_before == 1) {
                add_variants(c, parent);
                return NULL;
        }
        if (command->word && !command_is_chosen_by_option(command))
                return add_argument_of(c, l, command, l->n_before - 2);
        return has_words ? NULL : add_argument_of(c, l, command, l->n_before - 1);
}

static const char *add_candidates(struct candidates *c, const struct typed_line *l)
{
        const char *equals = strchr(c->prefix, '=');
        const struct command_line_option *o = l->option_at_cursor;

        if (o)
                return add_value(c, l, o);
        if (l->after_dashes || c->prefix[0] != '-')
                return add_arguments(c, l);
        if (strncmp(c->prefix, "--", 2) != 0 || !equals) {
                add_options(c, l);
                return NULL;
        }
        o = find_option(c->prefix + 2, (size_t) (equals - c->prefix) - 2);
        if (!o || o->kind == COMMAND_LINE_FLAG)
                return NULL;
        c->lead = arena_strndup(c->arena, c->prefix, (size_t) (equals + 1 - c->prefix)) ?: "";
        c->prefix = equals + 1;
        return add_value(c, l, o);
}

/* --- the answer ------------------------------------------------------------------------------------------------------ */

DEFINE_COMPARE(candidate_compare, struct candidate, strcmp(a->word, b->word) ?: strcmp(a->about ?: "", b->about ?: ""))

/* If there are too many, prints the first ones and the last one, because shells insert what all printed ones begin with: so that is
 * what all candidates begin with. */
static void print_candidates(struct candidates *c)
{
        size_t n = 0;

        SORT(c->items, c->n, candidate_compare);
        for (size_t i = 0; i < c->n; i++)
                if (n == 0 || strcmp(c->items[n - 1].word, c->items[i].word) != 0)
                        c->items[n++] = c->items[i];
        if (n > MAX_CANDIDATES) {
                c->items[MAX_CANDIDATES - 1] = c->items[n - 1];
                n = MAX_CANDIDATES;
        }
        for (size_t i = 0; i < n; i++)
                printf("%s%s%s%s\n", c->lead, c->items[i].word, c->items[i].about ? "\t" : "", c->items[i].about ?: "");
}

/* Digits of an index of a word, or of the end. */
static bool read_cursor(const char *text, int n, int *ret)
{
        struct scan s = { text, text + strlen(text) };
        uint64_t value;

        if (!scan_number(&s, 10, (uint64_t) n, &value) || s.p < s.end || value == 0)
                return false;
        *ret = (int) value;
        return true;
}

void completion_answer(int n, char **arguments)
{
        _cleanup_arena_ struct arena *arena = arena_new();
        struct candidates c = { .arena = arena, .lead = "" };
        struct typed_line line = { .words = arguments + 1, .n = n - 1 };
        _cleanup_findings_ struct findings ignored = { .arena = arena };
        const char *directive;

        if (!arena || n < 2 || !read_cursor(arguments[0], n - 1, &line.cursor))
                return;
        parse_line(&line);
        (void) fabric_init(arena, value_of(&line, "fabric") ?: getenv(FABRIC_VARIABLE), "", &ignored, &line.fabric);
        c.prefix = line.cursor < line.n ? line.words[line.cursor] : "";
        directive = add_candidates(&c, &line);
        if (!directive && c.n == 0)
                directive = ":none";
        if (directive)
                puts(directive);
        else
                print_candidates(&c);
}
