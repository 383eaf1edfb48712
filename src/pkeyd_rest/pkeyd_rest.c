/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "config.h"
#include "pkeyd_rest/door.h"
#include "pkeyd_rest/door_conf.h"
#include "shell/command_line.h"
#include "shell/file.h"
#include "shell/findings_print.h"

/* The command line of pkeyd-rest. Texts are borrowed from argv, or live in the arena. */
struct options {
        const char *fabric_name;
        struct fabric fabric;
        const char *config_file;
        bool check, help, version;
};

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
             "Serves the partition subset of UFM's REST API on top of pkeyd. Runs in the foreground.\n");
        for (size_t i = 0; i < ELEMENTS(known_options); i++)
                command_line_print_help(&known_options[i], "");
        puts("\nSIGHUP reads the file again. See pkeyd-rest(8), rest.yaml(5).");
}

/* Returns 1: run; 0: done (--help, --version); -EBADMSG: wrong usage, reported on stderr; -ENOMEM. */
static int parse_options(struct arena *a, int argc, char *argv[], struct options *ret)
{
        static const struct command_line line = { "pkeyd-rest", known_options, ELEMENTS(known_options) };
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct options o = {};
        int r = command_line_read(&line, argc, argv, &findings, &o, NULL);

        if (r >= 0 && r < argc)
                r = findings_error(&findings, FINDING_USAGE, "name the file with --config", "unexpected argument '%s'", argv[r]);
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

/* Blocks the signals that the event loop handles. */
static int block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

/* --check */
static int check_files(const struct options *o)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_(door_conf_free_p) struct door_conf *c = NULL;
        _cleanup_findings_ struct findings findings = { .arena = a };
        int r = a ? door_conf_load(o->config_file, &findings, &c) : -ENOMEM;

        if (r == -ENOMEM || findings_print(stderr, &findings, FINDING_NOTE) < 0) {
                fprintf(stderr, "pkeyd-rest: error: out of memory\n");
                return EXIT_FAILURE;
        }
        printf("%s: %s\n", o->config_file, findings_print_count(&findings).text);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(const struct options *o)
{
        int r = block_signals();

        if (r < 0) {
                fprintf(stderr, "pkeyd-rest: error: signals: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        return door_run(o->config_file, &o->fabric) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct options options;
        int r = a ? file_take_standard() : -ENOMEM;

        r = r ?: parse_options(a, argc, argv, &options);
        if (r <= 0)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        return options.check ? check_files(&options) : run(&options);
}
