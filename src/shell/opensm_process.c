/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/opensm_process.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>

#include "shell/file.h"
#include "util/scan.h"

#define PROC_MAX    (64u << 10)
#define COMM_SIZE   64
#define BUS_TIMEOUT (5 * USEC_PER_SEC)
#define MANAGER     "org.freedesktop.systemd1"
#define WAY_OUT     "; THE UNIT in pkeyd-opensm(7) describes how to let pkeyd signal OpenSM"

/* glibc has functions for these since 2.36; Ubuntu 22.04 and RHEL 9 are older. */
static int open_pidfd(int pid)
{
        return (int) syscall(SYS_pidfd_open, pid, 0);
}

static int signal_pidfd(int fd, int signal)
{
        return (int) syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

__attribute__((format(printf, 3, 4))) static int explain(char ret_why[OPENSM_WHY], int error, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(ret_why, OPENSM_WHY, format, ap);
        va_end(ap);
        return error;
}

/* --- one process ------------------------------------------------------------------------------------------------ */

/* The name of the process; "" if it cannot be read. */
static void read_comm(int pid, char ret[static COMM_SIZE])
{
        char path[64];
        FILE *f;

        ret[0] = '\0';
        (void) snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        f = fopen(path, "re");
        if (!f)
                return;
        if (!fgets(ret, COMM_SIZE, f))
                ret[0] = '\0';
        (void) fclose(f);
        ret[strcspn(ret, "\n")] = '\0';
}

static bool exe_is_opensm(int pid)
{
        char path[64], exe[PATH_MAX];
        const char *name;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        n = readlink(path, exe, sizeof(exe) - 1);
        if (n <= 0)
                return false;
        exe[n] = '\0';
        name = strrchr(exe, '/');
        /* "(deleted)": the program was updated while the process was running */
        return name && (strcmp(name, "/opensm") == 0 || strcmp(name, "/opensm (deleted)") == 0);
}

static int signal_one(int pid, int signal, char ret_why[OPENSM_WHY])
{
        _cleanup_close_ int fd = open_pidfd(pid);
        char comm[COMM_SIZE];

        if (fd < 0)
                return explain(ret_why, -errno, "process %d: %s", pid, errno == ESRCH ? "does not exist" : strerror(errno));
        read_comm(pid, comm);
        if (!comm[0]) /* it exists, but ProtectProc=invisible hides it */
                return explain(ret_why, -EPERM, "process %d cannot be identified: permission denied" WAY_OUT, pid);
        if (strcmp(comm, "opensm") != 0 && !exe_is_opensm(pid)) {
                for (char *c = comm; *c; c++)
                        *c = *c >= ' ' && *c < 0x7f ? *c : '?';
                return explain(ret_why, -ESRCH, "process %d is not OpenSM but '%s'", pid, comm);
        }
        if (signal_pidfd(fd, signal) < 0)
                return explain(ret_why, -errno, "process %d: %s%s", pid, strerror(errno), errno == EPERM ? WAY_OUT : "");
        return 0;
}

/* --- a pidfile -------------------------------------------------------------------------------------------------- */

/* Takes a line with the number of a process. */
static bool take_pid(struct scan *s, int *ret)
{
        struct scan line = {};
        uint64_t pid;

        (void) scan_line(s, &line);
        (void) scan_blanks(&line);
        if (!scan_number(&line, 10, INT_MAX, &pid) || pid <= 1 || line.p < line.end)
                return false;
        *ret = (int) pid;
        return true;
}

static int signal_pidfile(const char *path, int signal, char ret_why[OPENSM_WHY])
{
        _cleanup_arena_ struct arena *a = arena_new();
        const char *bytes;
        size_t n;
        int pid, r = a ? file_read(a, path, PROC_MAX, &bytes, &n) : -ENOMEM;

        if (r < 0)
                return explain(ret_why, r, "%s: %s", path, strerror(-r));
        if (!take_pid(&(struct scan) { bytes, bytes + n }, &pid))
                return explain(ret_why, -ESRCH, "%s does not contain a process ID", path);
        return signal_one(pid, signal, ret_why);
}

/* --- a unit of systemd ------------------------------------------------------------------------------------------ */

/* One property of a loaded unit: a string; with `ret_list` a list of strings. */
static int read_property(sd_bus *bus, const char *unit, const char *interface, const char *property, char **ret_text,
                         char ***ret_list)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *object;
        int r;

        r = sd_bus_call_method(bus, MANAGER, "/org/freedesktop/systemd1", MANAGER ".Manager", "GetUnit", NULL, &reply, "s", unit);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &object);
        if (r < 0)
                return r;
        return ret_list ? sd_bus_get_property_strv(bus, MANAGER, object, interface, property, NULL, ret_list)
                        : sd_bus_get_property_string(bus, MANAGER, object, interface, property, NULL, ret_text);
}

static int read_group(struct arena *a, const char *group, struct scan *ret)
{
        static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/systemd" };
        int r = -ENOENT;
        const char *bytes;
        size_t n;

        if (strstr(group, ".."))
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTS(roots); i++) {
                const char *path = arena_printf(a, "%s%s/cgroup.procs", roots[i], group);

                r = path ? file_read(a, path, PROC_MAX, &bytes, &n) : -ENOMEM;
                if (r == 0)
                        *ret = (struct scan) { bytes, bytes + n };
                if (r != -ENOENT)
                        return r;
        }
        return r;
}

/* Returns how many processes of the service are OpenSM; -EPERM: pkeyd may signal or identify none of them. */
static int signal_service(sd_bus *bus, const char *unit, int signal, char ret_why[OPENSM_WHY])
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_free_ char *group = NULL;
        struct scan pids;
        int pid, n = 0, error = 0, r = a ? read_property(bus, unit, MANAGER ".Service", "ControlGroup", &group, NULL) : -ENOMEM;

        if (r < 0)
                return explain(ret_why, r, "cannot ask systemd about %s: %s", unit, strerror(-r));
        r = group[0] ? read_group(a, group, &pids) : -ENOENT;
        if (r == -ENOENT) /* no process runs in it */
                return 0;
        if (r < 0)
                return explain(ret_why, r, "cannot read the processes of %s: %s", unit, strerror(-r));
        while (pids.p < pids.end) {
                r = take_pid(&pids, &pid) ? signal_one(pid, signal, ret_why) : -ESRCH;
                if (r == -EPERM)
                        error = r;
                n += r == 0;
        }
        return n > 0 ? n : error;
}

/* The same for the services that are PartOf= the unit. */
static int signal_parts(sd_bus *bus, const char *unit, int signal, char ret_why[OPENSM_WHY])
{
        char **parts = NULL;
        int n = 0, error = 0, r = read_property(bus, unit, MANAGER ".Unit", "ConsistsOf", NULL, &parts);

        if (r < 0)
                return explain(ret_why, r, "cannot ask systemd which units are PartOf= %s: %s", unit, strerror(-r));
        for (char **part = parts; part && *part; part++) {
                r = fnmatch("*.service", *part, 0) == 0 ? signal_service(bus, *part, signal, ret_why) : 0;
                if (r < 0)
                        error = r;
                else
                        n += r;
                free(*part);
        }
        free(parts);
        return n > 0 ? n : error;
}

static int signal_unit(const char *unit, int signal, char ret_why[OPENSM_WHY])
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_open_system(&bus);

        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, BUS_TIMEOUT);
        if (r < 0)
                return explain(ret_why, r, "cannot ask systemd about %s: %s", unit, strerror(-r));
        r = signal_service(bus, unit, signal, ret_why) ?: signal_parts(bus, unit, signal, ret_why);
        if (r == 0)
                return explain(ret_why, -ESRCH,
                               "OpenSM is not running in %s or in a service that is PartOf= it; start OpenSM, or set opensm.reload to "
                               "the unit that it runs in, which 'systemctl status PID' shows", unit);
        return r < 0 ? r : 0;
}

int opensm_process_signal(const struct settings *s, int signal, char ret_why[OPENSM_WHY])
{
        switch (s->opensm_reload) {
        case OPENSM_RELOAD_SYSTEMD:
                return signal_unit(s->opensm_unit, signal, ret_why);
        case OPENSM_RELOAD_PIDFILE:
                return signal_pidfile(s->opensm_pidfile, signal, ret_why);
        case OPENSM_RELOAD_PID:
                return signal_one((int) s->opensm_pid, signal, ret_why);
        case OPENSM_RELOAD_NOT_SET:
                break;
        }
        return explain(ret_why, -EINVAL, "opensm.reload is not set");
}
