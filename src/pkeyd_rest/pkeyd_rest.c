/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "pkeyd_rest/door.h"
#include "pkeyd_rest/door_conf.h"
#include "pkeyd_rest/door_options.h"
#include "shell/file.h"
#include "shell/findings_print.h"

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
        return door_run(o) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct options options;
        int r = a ? file_take_standard() : -ENOMEM;

        r = r ?: door_options_parse(a, argc, argv, &options);
        if (r <= 0)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        return options.check ? check_files(&options) : run(&options);
}
