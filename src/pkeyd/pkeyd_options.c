/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/pkeyd_options.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "shell/command_line.h"
#include "shell/findings_print.h"

/* systemd sets a colon-separated list for StateDirectory=: this is the directory with the name of the fabric, else the first. */
static const char *default_state_dir(struct arena *a, const struct fabric *fabric)
{
        const char *list = getenv("STATE_DIRECTORY"), *first = NULL;

        for (size_t n; list && *list == '/'; list += n + (list[n] == ':')) {
                char *dir;

                n = strcspn(list, ":");
                dir = arena_strndup(a, list, n);
                if (!dir || (fabric->name && strcmp(strrchr(dir, '/') + 1, fabric->name) == 0))
                        return dir;
                first = first ?: dir;
        }
        return first ?: fabric->state_dir;
}

static const struct command_line_option known_options[] = {
        COMMAND_LINE_OPTION("fabric", 0, TEXT, fabric_name, "FABRIC", "serve this one of several fabrics of this host"),
        COMMAND_LINE_OPTION("config", 0, TEXT, config_file, "FILE", "settings of this host (" CONFIG_DIR "/pkeyd.yaml)"),
        COMMAND_LINE_OPTION("policy", 0, TEXT, policy_file, "FILE", "the policy (" CONFIG_DIR "/partitions.yaml)"),
        COMMAND_LINE_OPTION("state-dir", 0, TEXT, state_dir, "DIR", "state directory (" STATE_DIR ")"),
        COMMAND_LINE_OPTION("check", 0, FLAG, check, NULL, "check both files, print all errors and warnings, and exit"),
        COMMAND_LINE_OPTION("Ca", 'C', TEXT, ca, "CA", "use this channel adapter"),
        COMMAND_LINE_OPTION("Port", 'P', PORT, port, "PORT", "use this port of it"),
        COMMAND_LINE_OPTION("timeout", 't', TIMEOUT, timeout, "MS", "wait this long for the answer to one MAD"),
        COMMAND_LINE_OPTION("verbose", 'v', FLAG, verbose, NULL, "log debug messages, too"),
        COMMAND_LINE_OPTION("help", 'h', FLAG, help, NULL, "this text"),
        COMMAND_LINE_OPTION("version", 0, FLAG, version, NULL, "the version"),
};

static void print_help(void)
{
        puts("Usage: pkeyd [OPTION]...\n"
             "Keeps the P_Key tables of an InfiniBand subnet as partitions.yaml defines them. Runs in the foreground.\n");
        for (size_t i = 0; i < ELEMENTS(known_options); i++)
                command_line_print_help(&known_options[i], "");
        puts("\nThe files of a fabric with a name are in " CONFIG_DIR "/FABRIC, its state in " STATE_DIR "/FABRIC.\n"
             "SIGHUP reloads both files. See pkeyd(8), pkeyd.yaml(5), partitions.yaml(5).");
}

int options_parse(struct arena *a, int argc, char *argv[], struct options *ret)
{
        static const struct command_line line = { "pkeyd", known_options, ELEMENTS(known_options) };
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct options o = {};
        int r = command_line_read(&line, argc, argv, &findings, &o, NULL);

        if (r >= 0 && r < argc)
                r = findings_error(&findings, FINDING_USAGE, "name the policy with --policy",
                                   "unexpected argument '%s'", argv[r]);
        if (r >= 0)
                r = fabric_init(a, o.fabric_name, "--fabric", &findings, &o.fabric);
        if (r < 0) {
                (void) findings_print(stderr, &findings, FINDING_ERROR);
                return r;
        }
        if (o.help)
                print_help();
        else if (o.version)
                puts("pkeyd " PACKAGE_VERSION);
        if (o.help || o.version)
                return 0;
        o.config_named = o.config_file != NULL;
        o.config_file = o.config_file ?: o.fabric.config_file;
        o.policy_file = o.policy_file ?: o.fabric.policy_file;
        o.state_dir = o.state_dir ?: default_state_dir(a, &o.fabric);
        if (!o.state_dir)
                return -ENOMEM;
        *ret = o;
        return 1;
}
