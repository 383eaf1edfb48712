/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/door_options.h"

#include <errno.h>

#include "config.h"
#include "shell/command_line.h"
#include "shell/findings_print.h"

static const struct command_line_option known_options[] = {
        COMMAND_LINE_OPTION("fabric", 0, TEXT, fabric_name, "FABRIC", "this one of several fabrics of this host"),
        COMMAND_LINE_OPTION("config", 0, TEXT, config_file, "FILE", "clients, TLS and limits (" CONFIG_DIR "/rest.yaml)"),
        COMMAND_LINE_OPTION("check", 0, FLAG, check, NULL, "check the file and those it names, print all errors, and exit"),
        COMMAND_LINE_OPTION("help", 'h', FLAG, help, NULL, "this text"),
        COMMAND_LINE_OPTION("version", 0, FLAG, version, NULL, "the version"),
};

static void print_help(void)
{
        puts("Usage: pkeyd-rest [OPTION]...\n"
             "Serves the partition subset of UFM's REST API, by pkeyd. Runs in the foreground.\n");
        for (size_t i = 0; i < ELEMENTS(known_options); i++)
                command_line_print_help(&known_options[i], "");
        puts("\nSIGHUP reads the file again. See pkeyd-rest(8), rest.yaml(5).");
}

int door_options_parse(struct arena *a, int argc, char *argv[], struct options *ret)
{
        static const struct command_line line = { "pkeyd-rest", known_options, ELEMENTS(known_options) };
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct options o = {};
        int r = command_line_read(&line, argc, argv, &findings, &o, NULL);

        if (r >= 0 && r < argc)
                r = findings_error(&findings, FINDING_USAGE, "the file is given with --config", "unexpected argument '%s'", argv[r]);
        if (r >= 0)
                r = fabric_init(a, o.fabric_name, "--fabric", &findings, &o.fabric);
        if (r < 0) {
                (void) findings_print(stderr, &findings, FINDING_ERROR);
                return r;
        }
        if (o.help)
                print_help();
        else if (o.version)
                puts("pkeyd-rest " PACKAGE_VERSION);
        o.config_file = o.config_file ?: o.fabric.rest_file;
        *ret = o;
        return !o.help && !o.version;
}
