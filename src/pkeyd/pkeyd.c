/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "opensm/opensm_conf.h"
#include "pkeyd/daemon.h"
#include "pkeyd/load.h"
#include "shell/file.h"
#include "shell/findings_print.h"

#define OPENSM_CONF "/etc/opensm/opensm.conf"

/* Blocks the signals that the event loop handles; before any thread starts, so that all threads inherit it. */
static int block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGUSR1, SIG_IGN) == SIG_ERR)
                return -errno;
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

/* Checks that OpenSM, by its configuration on this host, reads the file that pkeyd writes. */
static int check_opensm(struct arena *a, const struct generation *g, struct findings *findings)
{
        const char *path = g->settings->opensm_config ?: OPENSM_CONF, *file = settings_opensm_file(g->settings), *bytes;
        struct opensm_conf conf = {};
        size_t n;
        int r;

        if (!file || (!g->settings->opensm_config && access(path, F_OK) < 0))
                return 0;
        r = file_read_found(a, path, OPENSM_CONF_MAX_SIZE, findings, &bytes, &n);
        r = r ?: opensm_conf_parse(a, path, bytes, n, findings, &conf);
        if (r == 0)
                opensm_conf_check_file(&conf, path, file, findings);
        return r < 0 ? r : findings_refuse(findings) ? -EBADMSG : 0;
}

/* --check: pkeyd's files and OpenSM's, without the fabric. */
static int check_files(const struct options *o)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_generation_ struct generation *g = NULL;
        _cleanup_findings_ struct findings findings = { .arena = a };
        int r = a ? load_generation(o, NULL, &findings, &g) : -ENOMEM;

        r = r ?: check_opensm(a, g, &findings);
        if (r == -ENOMEM || findings_print(stderr, &findings, FINDING_NOTE) < 0) {
                fprintf(stderr, "pkeyd: error: out of memory\n");
                return EXIT_FAILURE;
        }
        printf("%s and %s: %s\n", o->config_file, o->policy_file, findings_print_count(&findings).text);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(const struct options *o)
{
        int r = block_signals();

        if (r < 0) {
                fprintf(stderr, "pkeyd: error: signals: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        return daemon_run(o) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct options options;
        int r = a ? file_take_standard() : -ENOMEM;

        r = r ?: options_parse(a, argc, argv, &options);
        if (r <= 0)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        return options.check ? check_files(&options) : run(&options);
}
