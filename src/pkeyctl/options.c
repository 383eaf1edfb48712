/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>

#include "policy/nearest.h"

#define MAX_TIMEOUT_MSEC 60000
#define MAX_SPAN         1000000 /* of any unit */
#define MAX_INTERVAL     (86400 * USEC_PER_SEC)

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
        OPTION_SINCE,
        OPTION_NODE,
        OPTION_ONCE,
        OPTION_INTERVAL,
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
        { "since", required_argument, NULL, OPTION_SINCE },
        { "node", required_argument, NULL, OPTION_NODE },
        { "once", no_argument, NULL, OPTION_ONCE },
        { "interval", required_argument, NULL, OPTION_INTERVAL },
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
                (void) findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL,
                                    "--since: '%s' is not a time (90s, 10m, 2h, 3d, or like 2026-01-31T08:00)", text);
        else if (o->since > now + USEC_PER_SEC)
                (void) findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL, "--since: '%s' has not come yet", text);
}

static void read_interval(struct findings *findings, const char *text, struct options *o)
{
        o->interval = span_from_string(text);
        if (o->interval == 0 || o->interval > MAX_INTERVAL)
                (void) findings_add(findings, FINDING_ERROR, FINDING_USAGE, NULL,
                                    "--interval: '%s' is not a time from 1s to 1d", text);
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
        case OPTION_SINCE:
                read_since(findings, optarg, o);
                break;
        case OPTION_NODE:
                o->node = optarg;
                break;
        case OPTION_ONCE:
                o->once = true;
                break;
        case OPTION_INTERVAL:
                read_interval(findings, optarg, o);
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
