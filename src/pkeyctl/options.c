/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>

#include "util/nearest.h"

#define MAX_TIMEOUT_MSEC 60000
#define MAX_SPAN         1000000 /* of any unit */
#define MAX_INTERVAL     (86400 * USEC_PER_SEC)

void options_hint(struct findings *findings, struct finding *item, const char *word, const char *const *names,
                  size_t n_names)
{
        const char *near = nearest_word(word, names, n_names);

        if (near)
                finding_set_hint(findings, item, "did you mean '%s'?", near);
}

/* A decimal number and nothing else; `what` names the option. */
static bool read_number(struct findings *findings, const char *what, const char *text, unsigned least, unsigned most,
                        unsigned *ret)
{
        unsigned long value = 0;
        char *end = NULL;

        if (*text >= '0' && *text <= '9') {
                errno = 0;
                value = strtoul(text, &end, 10);
        }
        if (!end || *end != '\0' || errno != 0 || value < least || value > most) {
                (void) findings_error(findings, FINDING_USAGE, NULL, "%s: '%s' is not a number from %u to %u", what,
                                      text, least, most);
                return false;
        }
        *ret = (unsigned) value;
        return true;
}

static void read_port(struct findings *findings, const char *text, struct options *o)
{
        (void) read_number(findings, "--Port", text, 1, 254, &o->port);
}

static void read_timeout(struct findings *findings, const char *text, struct options *o)
{
        unsigned milliseconds;

        if (read_number(findings, "--timeout", text, 1, MAX_TIMEOUT_MSEC, &milliseconds))
                o->timeout = milliseconds * USEC_PER_MSEC;
}

/* "90s", "10m", "2h", "3d"; 0: it is none. */
static usec_t span_from_string(const char *text)
{
        static const struct {
                const char *unit;
                usec_t length;
        } units[] = {
                { "s", USEC_PER_SEC }, { "m", 60 * USEC_PER_SEC }, { "min", 60 * USEC_PER_SEC }, { "h", 3600 * USEC_PER_SEC },
                { "d", 86400 * USEC_PER_SEC },
        };
        unsigned long value;
        char *end;

        if (*text < '0' || *text > '9')
                return 0;
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno != 0 || value > MAX_SPAN)
                return 0;
        for (size_t i = 0; i < ELEMENTS(units); i++)
                if (strcmp(end, units[i].unit) == 0)
                        return value * units[i].length;
        return 0;
}

/* Local time, or UTC with a Z behind. 0: it is none. */
static usec_t moment_from_string(const char *text)
{
        static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                               "%Y-%m-%d %H:%M", "%Y-%m-%d" };

        for (size_t i = 0; i < ELEMENTS(formats); i++) {
                struct tm tm = { .tm_isdst = -1 };
                const char *rest = strptime(text, formats[i], &tm);
                time_t t;

                if (!rest || (*rest && strcmp(rest, "Z") != 0))
                        continue;
                t = *rest ? timegm(&tm) : mktime(&tm);
                return t > 0 ? (usec_t) t * USEC_PER_SEC : 0;
        }
        return 0;
}

static void read_since(struct findings *findings, const char *text, struct options *o)
{
        usec_t span = span_from_string(text), now = (usec_t) time(NULL) * USEC_PER_SEC;

        o->since = span ? now - MIN(span, now - 1) : moment_from_string(text);
        if (!o->since)
                (void) findings_error(findings, FINDING_USAGE, NULL,
                                      "--since: '%s' is not a time (90s, 10m, 2h, 3d, or like 2026-01-31T08:00)", text);
        else if (o->since > now + USEC_PER_SEC)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--since: '%s' has not come yet", text);
}

static void read_interval(struct findings *findings, const char *text, struct options *o)
{
        o->interval = span_from_string(text);
        if (o->interval == 0 || o->interval > MAX_INTERVAL)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--interval: '%s' is not a time from 1s to 1d",
                                      text);
}

enum option_kind {
        OPTION_TEXT, /* a const char * of struct options */
        OPTION_FLAG, /* a bool of it */
        OPTION_READ, /* a value that is read by a function */
};

static const struct known_option {
        const char *name;
        int letter; /* 0: none */
        enum option_kind kind;
        size_t offset;
        void (*read)(struct findings *findings, const char *text, struct options *o);
} known_options[] = {
#define TEXT(member) OPTION_TEXT, offsetof(struct options, member), NULL
#define FLAG(member) OPTION_FLAG, offsetof(struct options, member), NULL
#define READ(function) OPTION_READ, 0, function
        { "Ca", 'C', TEXT(ca) },
        { "Port", 'P', READ(read_port) },
        { "timeout", 't', READ(read_timeout) },
        { "config", 0, TEXT(config) },
        { "state-dir", 0, TEXT(state_dir) },
        { "policy", 0, TEXT(policy) },
        { "topology", 0, TEXT(topology) },
        { "opensm-config", 0, TEXT(opensm_config) },
        { "output", 0, TEXT(output) },
        { "json", 0, FLAG(json) },
        { "yes", 0, FLAG(yes) },
        { "local", 0, FLAG(local) },
        { "since", 0, READ(read_since) },
        { "node", 0, TEXT(node) },
        { "once", 0, FLAG(once) },
        { "interval", 0, READ(read_interval) },
        { "quiet", 'q', FLAG(quiet) },
        { "verbose", 'v', FLAG(verbose) },
        { "help", 'h', FLAG(help) },
        { "version", 'V', FLAG(version) },
#undef TEXT
#undef FLAG
#undef READ
};

#define FIRST_LONG 256 /* what getopt_long() gives for an option without a letter: this and its number */

static void complain_unknown(struct findings *findings, const char *word)
{
        const char *names[ELEMENTS(known_options)];
        struct finding *item = findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL, "unknown option '%s'", word);
        const char *near = NULL;

        for (size_t i = 0; i < ELEMENTS(names); i++)
                names[i] = known_options[i].name;
        if (strncmp(word, "--", 2) == 0)
                near = nearest_word(word + 2, names, ELEMENTS(names));
        if (near)
                finding_set_hint(findings, item, "did you mean '--%s'?", near);
        else
                finding_set_hint(findings, item, "pkeyctl --help lists the options");
}

/* What getopt_long() gave. `word` is the argument it was found in. */
static void take(struct findings *findings, int c, const char *word, struct options *o)
{
        const struct known_option *k = known_options;

        if (c == ':') {
                (void) findings_error(findings, FINDING_USAGE, NULL, "'%s' needs a value", word);
                return;
        }
        if (c == '?') {
                complain_unknown(findings, word);
                return;
        }
        while (k->letter != c && c != FIRST_LONG + (k - known_options))
                k++;
        switch (k->kind) {
        case OPTION_TEXT:
                memcpy((char *) o + k->offset, &optarg, sizeof(optarg));
                break;
        case OPTION_FLAG:
                *(bool *) ((char *) o + k->offset) = true;
                break;
        case OPTION_READ:
                k->read(findings, optarg, o);
                break;
        }
}

/* The word to blame: a short option may stand inside a cluster, then optopt is its letter. */
static const char *blame(char **argv, int c, char letter[3])
{
        if ((c == '?' || c == ':') && optopt > 0 && optopt < 256 && strncmp(argv[optind - 1], "--", 2) != 0) {
                letter[0] = '-';
                letter[1] = (char) optopt;
                letter[2] = '\0';
                return letter;
        }
        return argv[optind - 1];
}

/* Mistakes too are told as JSON if it was asked for, wherever on the line that stands. */
static bool asks_for_json(int argc, char **argv)
{
        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (strncmp(argv[i], "--j", 3) == 0 && strncmp(argv[i], "--json", strlen(argv[i])) == 0)
                        return true;
        return false;
}

int options_parse(int argc, char **argv, struct findings *findings, struct options *ret)
{
        struct option long_options[ELEMENTS(known_options) + 1] = {};
        char letter[3];
        int c;

        for (size_t i = 0; i < ELEMENTS(known_options); i++) {
                const struct known_option *k = &known_options[i];

                long_options[i] = (struct option) {
                                k->name,
                                k->kind == OPTION_FLAG ? no_argument : required_argument,
                                NULL,
                                k->letter ?: FIRST_LONG + (int) i,
                };
        }
        *ret = (struct options) { .json = asks_for_json(argc, argv) };
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":C:P:t:qvhV", long_options, NULL)) >= 0)
                take(findings, c, blame(argv, c, letter), ret);
        ret->arguments = argv + optind;
        ret->n_arguments = (unsigned) (argc - optind);
        return findings_refuse(findings) ? -EBADMSG : 0;
}
