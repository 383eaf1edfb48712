/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
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

/* Starts sleep(1) under another name. */
static pid_t start(const char *name)
{
        char command[1024], comm[64] = "";
        pid_t pid;

        (void) snprintf(command, sizeof(command), "cp --remove-destination \"$(command -v sleep)\" %s", path_of(name));
        ck_assert_int_eq(system(command), 0);
        pid = fork();
        if (pid == 0) {
                (void) signal(SIGHUP, SIG_DFL); /* the parent may ignore it, as nohup does */
                (void) execl(path_of(name), name, "600", (char *) NULL);
                _exit(127);
        }
        (void) snprintf(command, sizeof(command), "/proc/%d/comm", (int) pid);
        while (strncmp(comm, name, strlen(name)) != 0) { /* Check ends a test that hangs */
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
        return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

START_TEST(test_opensm_is_told)
{
        pid_t pid = start("opensm");
        struct settings s = { .opensm_reload = OPENSM_RELOAD_PID, .opensm_pid = (unsigned) pid };

        ck_assert_int_eq(opensm_process_signal(&s, 0, why), 0);
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGHUP);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
        ck_assert_ptr_nonnull(strstr(why, "does not exist"));
}
END_TEST

/* The number in an old pidfile belongs to another process now. */
START_TEST(test_others_are_not)
{
        pid_t pid = start("opensmd");
        struct settings s = { .opensm_reload = OPENSM_RELOAD_PIDFILE, .opensm_pidfile = path_of("pid") };
        char text[32];

        (void) snprintf(text, sizeof(text), "%d\n", (int) pid);
        ck_assert_int_eq(file_write(FILE_PUBLIC, s.opensm_pidfile, text, strlen(text)), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
        ck_assert_ptr_nonnull(strstr(why, "is not OpenSM but 'opensmd'"));
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGKILL);
}
END_TEST

/* pkeyd runs as a user of its own, OpenSM as root. */
START_TEST(test_not_permitted)
{
        pid_t pid = start("opensm"), child;
        struct settings s = { .opensm_reload = OPENSM_RELOAD_PID, .opensm_pid = (unsigned) pid };

        fflush(NULL);
        child = geteuid() == 0 ? fork() : -1;
        if (child == 0) {
                if (setuid(65534) < 0 || opensm_process_signal(&s, SIGHUP, why) != -EPERM)
                        _exit(1);
                _exit(strstr(why, "Operation not permitted; THE UNIT in pkeyd-opensm(7)") ? 0 : 2);
        }
        ck_assert(child < 0 || how_it_ended(child) == 0);
        ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGKILL);
}
END_TEST

START_TEST(test_pidfile)
{
        struct settings s = { .opensm_reload = OPENSM_RELOAD_PIDFILE, .opensm_pidfile = path_of("pidfile") };
        static const char *const bad[] = { "", "\n", "0\n", "1\n", "-1\n", "x\n", "12 34\n", "99999999999\n" };
        pid_t pid = start("opensm");
        char text[32];

        (void) unlink(s.opensm_pidfile);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                ck_assert_int_eq(file_write(FILE_PUBLIC, s.opensm_pidfile, bad[i], strlen(bad[i])), 0);
                ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ESRCH);
                ck_assert_ptr_nonnull(strstr(why, "does not contain a process ID"));
        }
        (void) snprintf(text, sizeof(text), "%d", (int) pid);
        ck_assert_int_eq(file_write(FILE_PUBLIC, path_of("pidfile"), text, strlen(text)), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), 0);
        ck_assert_int_eq(how_it_ended(pid), SIGHUP);
}
END_TEST

START_TEST(test_long_path)
{
        char path[3000] = "/nonexistent/", expected[3100];
        struct settings s = { .opensm_reload = OPENSM_RELOAD_PIDFILE, .opensm_pidfile = path };

        for (size_t i = strlen(path); i < sizeof(path) - 1; i++)
                path[i] = i % 2 ? '/' : 'p';
        (void) snprintf(expected, sizeof(expected), "%s: No such file or directory", path);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        ck_assert(strcmp(why, expected) == 0);
}
END_TEST

/* ---- units of a fake systemd ---- */

#define CGROUPS "/sys/fs/cgroup/check-opensm"

static const struct unit {
        const char *name, *group;
        const char *parts[5]; /* up to NULL */
} units[] = {
        /* as in Debian: the enabled unit has ended, and the process is in the unit of the port */
        { "opensm.service", "", { "opensm.target", "opensm@1.service", "opensm@2.service", "opensm@3.service", "other.service" } },
        { "opensm@1.service", "/check-opensm/1", {} },
        { "opensm@2.service", "", {} },
        { "opensm@3.service", "/check-opensm/3", {} },
        { "other.service", "/check-opensm/other", {} },
        { "opensmd.service", "/check-opensm/1", { "opensm@3.service" } },
        { "down.service", "/check-opensm/gone", { "opensm@2.service", "other.service" } },
        { "alone.service", "", {} },
};

/* The processes of a control group, one a line. */
static struct {
        const char *group;
        char procs[32];
} groups[] = { { CGROUPS "/1", "" }, { CGROUPS "/3", "" }, { CGROUPS "/other", "" } };

int __wrap_file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n);
int __real_file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n);

int __wrap_file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n)
{
        for (size_t i = 0; i < ELEMENTS(groups); i++)
                if (strncmp(path, groups[i].group, strlen(groups[i].group)) == 0) {
                        *ret_bytes = groups[i].procs;
                        *ret_n = strlen(groups[i].procs);
                        return 0;
                }
        return __real_file_read(a, path, max, ret_bytes, ret_n);
}

static pid_t start_in(size_t group, const char *name)
{
        pid_t pid = start(name);

        (void) snprintf(groups[group].procs, sizeof(groups[group].procs), "%d\n", (int) pid);
        return pid;
}

static int get_unit(sd_bus_message *call)
{
        const char *name;
        char object[8];

        if (sd_bus_message_read(call, "s", &name) < 0)
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTS(units); i++)
                if (strcmp(units[i].name, name) == 0) {
                        (void) snprintf(object, sizeof(object), "/u/%zu", i);
                        return sd_bus_reply_method_return(call, "o", object);
                }
        return sd_bus_reply_method_errorf(call, "org.freedesktop.systemd1.NoSuchUnit", "not loaded");
}

static int get_property(sd_bus_message *call)
{
        const struct unit *u = &units[atoi(sd_bus_message_get_path(call) + 3)];
        const char *interface, *property, *const *p = u->parts;

        if (sd_bus_message_read(call, "ss", &interface, &property) < 0)
                return -EINVAL;
        if (strcmp(interface, "org.freedesktop.systemd1.Service") == 0 && strcmp(property, "ControlGroup") == 0)
                return sd_bus_reply_method_return(call, "v", "s", u->group);
        if (strcmp(interface, "org.freedesktop.systemd1.Unit") == 0 && strcmp(property, "ConsistsOf") == 0)
                return sd_bus_reply_method_return(call, "v", "as", !p[0] ? 0 : !p[1] ? 1 : !p[2] ? 2 : 5, p[0], p[1], p[2], p[3],
                                                  p[4]);
        return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_PROPERTY, "unknown");
}

static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        (void) userdata;
        (void) error;
        if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus", "Hello"))
                return sd_bus_reply_method_return(call, "s", ":1.1");
        if (sd_bus_message_is_method_call(call, "org.freedesktop.systemd1.Manager", "GetUnit"))
                return get_unit(call);
        if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get"))
                return get_property(call);
        return 0;
}

static void serve(int fd)
{
        sd_bus *bus = NULL;
        int r;

        if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 ||
            sd_bus_set_server(bus, 1, SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10)) < 0 ||
            sd_bus_add_filter(bus, NULL, on_call, NULL) < 0 || sd_bus_start(bus) < 0)
                _exit(1);
        while ((r = sd_bus_process(bus, NULL)) >= 0)
                if (r == 0)
                        (void) sd_bus_wait(bus, UINT64_MAX);
        sd_bus_unref(bus);
}

/* A bus with only the fake systemd on it. */
static pid_t start_systemd(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char variable[256];
        pid_t pid;
        int fd;

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", directory);
        (void) unlink(address.sun_path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        ck_assert_int_eq(listen(fd, 4), 0);
        (void) snprintf(variable, sizeof(variable), "unix:path=%s", address.sun_path);
        ck_assert_int_eq(setenv("DBUS_SYSTEM_BUS_ADDRESS", variable, 1), 0);
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        serve(accept(fd, NULL, NULL));
        }
        (void) close(fd);
        return pid;
}

static int signal_unit(const char *unit, int number)
{
        struct settings s = { .opensm_reload = OPENSM_RELOAD_SYSTEMD };

        s.opensm_unit = unit;
        return opensm_process_signal(&s, number, why);
}

/* One unit has another process beside OpenSM. */
START_TEST(test_units)
{
        pid_t bus = start_systemd(), first = start_in(0, "opensm"), third = start_in(1, "opensm"), other = start_in(2, "other");

        ck_assert_msg(signal_unit("opensm@1.service", 0) == 0, "%s", why);
        ck_assert_int_eq(signal_unit("opensm.service", SIGHUP), 0);
        ck_assert_int_eq(how_it_ended(first), SIGHUP);
        ck_assert_int_eq(how_it_ended(third), SIGHUP);
        ck_assert_int_eq(signal_unit("opensm.service", SIGHUP), -ESRCH);

        /* the parts of a unit are not searched if OpenSM runs in the unit itself */
        first = start_in(0, "opensm");
        third = start_in(1, "opensm");
        ck_assert_int_eq(signal_unit("opensmd.service", SIGHUP), 0);
        ck_assert_int_eq(how_it_ended(first), SIGHUP);
        ck_assert_int_eq(waitpid(third, NULL, WNOHANG), 0);

        ck_assert_int_eq(signal_unit("down.service", SIGHUP), -ESRCH);
        ck_assert_ptr_nonnull(strstr(why, "OpenSM is not running in down.service or in a service that is PartOf= it; "));
        ck_assert_int_eq(signal_unit("alone.service", SIGHUP), -ESRCH);
        ck_assert_int_lt(signal_unit("unknown.service", SIGHUP), 0);
        ck_assert_ptr_nonnull(strstr(why, "cannot ask systemd about unknown.service"));
        ck_assert_int_eq(waitpid(other, NULL, WNOHANG), 0);
        (void) kill(bus, SIGKILL);
        (void) kill(third, SIGKILL);
        (void) kill(other, SIGKILL);
}
END_TEST

START_TEST(test_no_systemd)
{
        struct settings s = { .opensm_reload = OPENSM_RELOAD_SYSTEMD, .opensm_unit = "opensm.service" };

        ck_assert_int_eq(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1), 0);
        ck_assert_int_eq(opensm_process_signal(&s, SIGHUP, why), -ENOENT);
        ck_assert_ptr_nonnull(strstr(why, "cannot ask systemd about opensm.service"));
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
        tcase_add_test(c, test_not_permitted);
        tcase_add_test(c, test_pidfile);
        tcase_add_test(c, test_long_path);
        tcase_add_test(c, test_units);
        tcase_add_test(c, test_no_systemd);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        (void) snprintf(command, sizeof(command), "rm -rf %s", directory);
        return system(command) == 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
