/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "config.h"
#include "shell/state_dir.h"

#define MAX_PORT       254
#define MAX_TIMEOUT_MS 60000

enum {
        OPTION_CONFIG = 0x100,
        OPTION_POLICY,
        OPTION_STATE_DIR,
        OPTION_CHECK,
        OPTION_VERSION,
};

static const struct option long_options[] = {
        { "config", required_argument, NULL, OPTION_CONFIG },
        { "policy", required_argument, NULL, OPTION_POLICY },
        { "state-dir", required_argument, NULL, OPTION_STATE_DIR },
        { "check", no_argument, NULL, OPTION_CHECK },
        { "Ca", required_argument, NULL, 'C' },
        { "Port", required_argument, NULL, 'P' },
        { "timeout", required_argument, NULL, 't' },
        { "verbose", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, OPTION_VERSION },
        {},
};

static void print_help(void)
{
        printf("Usage: pkeyd [OPTION]...\n"
               "Keeps the P_Key tables of an InfiniBand subnet as partitions.yaml says. Stays in the foreground.\n"
               "\n"
               "      --config FILE     settings of this host (" SYSCONFDIR "/pkeyd/pkeyd.yaml)\n"
               "      --policy FILE     who belongs to which partition (" SYSCONFDIR "/pkeyd/partitions.yaml)\n"
               "      --state-dir DIR   what is remembered (" STATE_DIR_DEFAULT ")\n"
               "      --check           test both files, print all that is wrong, and exit\n"
               "  -C, --Ca CA           work through this channel adapter\n"
               "  -P, --Port PORT       and this port of it\n"
               "  -t, --timeout MS      wait this long for the answer to one MAD\n"
               "  -v, --verbose         say more\n"
               "  -h, --help            this text\n"
               "      --version         the version\n"
               "\n"
               "SIGHUP loads both files again. See pkeyd(8), pkeyd.yaml(5), partitions.yaml(5).\n");
}

/* The first of a colon-separated list, as systemd sets it for StateDirectory=. */
static char *default_state_dir(void)
{
        const char *list = getenv("STATE_DIRECTORY");

        if (list && list[0] == '/')
                return strndup(list, strcspn(list, ":"));
        return strdup(STATE_DIR_DEFAULT);
}

static int parse_number(const char *what, const char *text, unsigned long max, unsigned long *ret)
{
        unsigned long value;
        char *end;

        errno = 0;
        value = strtoul(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 || value > max) {
                fprintf(stderr, "pkeyd: error: %s: '%s' is not a number from 1 to %lu\n", what, text, max);
                return -EINVAL;
        }
        *ret = value;
        return 0;
}

static int set_state_dir(struct options *o, const char *path)
{
        free(o->state_dir);
        o->state_dir = strdup(path);
        return o->state_dir ? 1 : -ENOMEM;
}

/* 1: go on; 0: done; < 0: refused. */
static int take_option(struct options *o, int option)
{
        unsigned long number = 0;
        int r = 1;

        switch (option) {
        case OPTION_CONFIG:
                o->config_file = optarg;
                o->config_named = true;
                return 1;
        case OPTION_POLICY:
                o->policy_file = optarg;
                return 1;
        case OPTION_STATE_DIR:
                return set_state_dir(o, optarg);
        case OPTION_CHECK:
                o->check = true;
                return 1;
        case 'C':
                o->ca = optarg;
                return 1;
        case 'P':
                r = parse_number("--Port", optarg, MAX_PORT, &number);
                o->port = (unsigned) number;
                return r < 0 ? r : 1;
        case 't':
                r = parse_number("--timeout", optarg, MAX_TIMEOUT_MS, &number);
                o->timeout = number * USEC_PER_MSEC;
                return r < 0 ? r : 1;
        case 'v':
                o->verbose = true;
                return 1;
        case 'h':
                print_help();
                return 0;
        case OPTION_VERSION:
                printf("pkeyd %s\n", PACKAGE_VERSION);
                return 0;
        default:
                fprintf(stderr, "Try 'pkeyd --help'.\n");
                return -EINVAL;
        }
}

void options_done(struct options *o)
{
        free(o->state_dir);
        o->state_dir = NULL;
}

int options_parse(int argc, char *argv[], struct options *ret)
{
        struct options o = {
                .config_file = SYSCONFDIR "/pkeyd/pkeyd.yaml",
                .policy_file = SYSCONFDIR "/pkeyd/partitions.yaml",
                .state_dir = default_state_dir(),
        };
        int option, r = o.state_dir ? 1 : -ENOMEM;

        while (r > 0 && (option = getopt_long(argc, argv, "C:P:t:vh", long_options, NULL)) != -1)
                r = take_option(&o, option);
        if (r > 0 && optind < argc) {
                fprintf(stderr, "pkeyd: error: '%s' is one argument too many (a policy is given with --policy)\n",
                        argv[optind]);
                r = -EINVAL;
        }
        if (r <= 0) {
                options_done(&o);
                return r;
        }
        *ret = o;
        return 1;
}
