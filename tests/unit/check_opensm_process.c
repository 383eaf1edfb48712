/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/opensm_process.h"
#include "util/arena.h"

static char directory[] = "/tmp/check-opensm-XXXXXX", why[OPENSM_WHY];

static const char *path_of(const char *name)
{
        static char path[256];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        return path;
}

/* sleep(1) by another name. */
static pid_t start(const char *name)
{
        char command[1024], comm[64] = "";
        pid_t pid;

        (void) snprintf(command, sizeof(command), "cp \"$(command -v sleep)\" %s", path_of(name));
        ck_assert_int_eq(system(command), 0);
        pid = fork();
        if (pid == 0) {
                (void) signal(SIGHUP, SIG_DFL); /* whoever runs this may have it ignored, as nohup does */
                (void) execl(path_of(name), name, "600", (char *) NULL);
                _exit(127);
        }
        (void) snprintf(command, sizeof(command), "/proc/%d/comm", (int) pid);
        for (int i = 0; i < 1000 && strncmp(comm, name, strlen(name)) != 0; i++) {
                FILE *f = fopen(command, "re");

                ck_assert_ptr_nonnull(f);
                ck_assert_ptr_nonnull(fgets(comm, sizeof(comm), f));
                (void) fclose(f);
                (void) usleep(1000);
        }
        return pid;
}

static int how_it_ended(pid_t pid)
{
        int status;

        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(test_opensm_is_told)
{
        pid_t pid = start("opensm");
        struct settings s = { .opensm_reload = RELOAD_PID, .opensm_pid = (unsigned) pid };

        ck_assert_int_eq(opensm_process_signal(&s, 0, why), 0);
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGHUP);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
        ck_assert_ptr_nonnull(strstr(why, "does not exist"));
}
END_TEST

/* A number that went stale belongs to somebody else now. */
START_TEST(test_others_are_not)
{
        pid_t pid = start("opensmd");
        struct settings s = { .opensm_reload = RELOAD_PIDFILE, .opensm_pidfile = path_of("pid") };
        char text[32];

        (void) snprintf(text, sizeof(text), "%d\n", (int) pid);
        ck_assert_int_eq(file_write_public(s.opensm_pidfile, text, strlen(text)), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
        ck_assert_ptr_nonnull(strstr(why, "is not OpenSM but 'opensmd'"));
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGKILL);
}
END_TEST

START_TEST(test_pidfile)
{
        struct settings s = { .opensm_reload = RELOAD_PIDFILE, .opensm_pidfile = path_of("pidfile") };
        static const char *const bad[] = { "", "\n", "0\n", "1\n", "-1\n", "x\n", "12 34\n", "99999999999\n" };
        pid_t pid = start("opensm");
        char text[32];

        (void) unlink(s.opensm_pidfile);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                ck_assert_int_eq(file_write_public(s.opensm_pidfile, bad[i], strlen(bad[i])), 0);
                ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
                ck_assert_ptr_nonnull(strstr(why, "there is no process number in it"));
        }
        (void) snprintf(text, sizeof(text), "%d", (int) pid);
        ck_assert_int_eq(file_write_public(path_of("pidfile"), text, strlen(text)), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGHUP);
}
END_TEST

START_TEST(test_long_path)
{
        char path[3000] = "/nonexistent/", expected[3100];
        struct settings s = { .opensm_reload = RELOAD_PIDFILE, .opensm_pidfile = path };

        for (size_t i = strlen(path); i < sizeof(path) - 1; i++)
                path[i] = i % 2 ? '/' : 'p';
        (void) snprintf(expected, sizeof(expected), "%s: No such file or directory", path);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        ck_assert(strcmp(why, expected) == 0);
}
END_TEST

START_TEST(test_no_systemd)
{
        struct settings s = { .opensm_reload = RELOAD_SYSTEMD, .opensm_unit = "opensm.service" };

        ck_assert_int_eq(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why, "systemd does not tell of opensm.service"));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("opensm_process");
        TCase *c = tcase_create("opensm_process");
        SRunner *runner;
        char command[64];
        int failed;

        if (!mkdtemp(directory))
                return EXIT_FAILURE;
        tcase_add_test(c, test_opensm_is_told);
        tcase_add_test(c, test_others_are_not);
        tcase_add_test(c, test_pidfile);
        tcase_add_test(c, test_long_path);
        tcase_add_test(c, test_no_systemd);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        (void) snprintf(command, sizeof(command), "rm -rf %s", directory);
        return system(command) == 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
