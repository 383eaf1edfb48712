/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "policy/nearest.h"

#define MAX_TIMEOUT_MSEC 60000

enum {
        OPTION_CONFIG = 256,
        OPTION_STATE_DIR,
        OPTION_POLICY,
        OPTION_TOPOLOGY,
        OPTION_OPENSM_CONFIG,
        OPTION_OUTPUT,
        OPTION_JSON,
        OPTION_YES,
        OPTION_LOCAL,
};

static const struct option long_options[] = {
        { "Ca", required_argument, NULL, 'C' },
        { "Port", required_argument, NULL, 'P' },
        { "timeout", required_argument, NULL, 't' },
        { "config", required_argument, NULL, OPTION_CONFIG },
        { "state-dir", required_argument, NULL, OPTION_STATE_DIR },
        { "policy", required_argument, NULL, OPTION_POLICY },
        { "topology", required_argument, NULL, OPTION_TOPOLOGY },
        { "opensm-config", required_argument, NULL, OPTION_OPENSM_CONFIG },
        { "output", required_argument, NULL, OPTION_OUTPUT },
        { "json", no_argument, NULL, OPTION_JSON },
        { "yes", no_argument, NULL, OPTION_YES },
        { "local", no_argument, NULL, OPTION_LOCAL },
        { "quiet", no_argument, NULL, 'q' },
        { "verbose", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        {},
};

void options_hint(struct findings *findings, struct finding *item, const char *word, const char *const *names,
                  size_t n_names)
{
        const char *near = nearest_word(word, names, n_names);

        if (item && near)
                finding_set_hint(findings, item, "did you mean '%s'?", near);
}

static void complain_unknown(struct findings *findings, const char *word)
{
        const char *names[ELEMENTS(long_options)];
        struct finding *item = findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL, "unknown option '%s'", word);
        const char *near = NULL;
        size_t n = 0;

        for (; long_options[n].name; n++)
                names[n] = long_options[n].name;
        if (strncmp(word, "--", 2) == 0)
                near = nearest_word(word + 2, names, n);
        if (!item)
                return;
        if (near)
                finding_set_hint(findings, item, "did you mean '--%s'?", near);
        else
                finding_set_hint(findings, item, "pkeyctl --help lists the options");
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
                (void) findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL, "%s: '%s' is not a number from %u to %u",
                                    what, text, least, most);
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

/* One option that getopt_long gave. `word` is the argument it was found in. */
static void take(struct findings *findings, int c, const char *word, struct options *o)
{
        switch (c) {
        case 'C':
                o->ca = optarg;
                break;
        case 'P':
                read_port(findings, optarg, o);
                break;
        case 't':
                read_timeout(findings, optarg, o);
                break;
        case OPTION_CONFIG:
                o->config = optarg;
                break;
        case OPTION_STATE_DIR:
                o->state_dir = optarg;
                break;
        case OPTION_POLICY:
                o->policy = optarg;
                break;
        case OPTION_TOPOLOGY:
                o->topology = optarg;
                break;
        case OPTION_OPENSM_CONFIG:
                o->opensm_config = optarg;
                break;
        case OPTION_OUTPUT:
                o->output = optarg;
                break;
        case OPTION_JSON:
                o->json = true;
                break;
        case OPTION_YES:
                o->yes = true;
                break;
        case OPTION_LOCAL:
                o->local = true;
                break;
        case 'q':
                o->quiet = true;
                break;
        case 'v':
                o->verbose++;
                break;
        case 'h':
                o->help = true;
                break;
        case 'V':
                o->version = true;
                break;
        case ':':
                (void) findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL, "'%s' needs a value", word);
                break;
        case '?':
                complain_unknown(findings, word);
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
        char letter[3];
        int c;

        *ret = (struct options) { .json = asks_for_json(argc, argv) };
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":C:P:t:qvhV", long_options, NULL)) >= 0)
                take(findings, c, blame(argv, c, letter), ret);
        ret->arguments = argv + optind;
        ret->n_arguments = (unsigned) (argc - optind);
        return findings_refuse(findings) ? -EBADMSG : 0;
}
