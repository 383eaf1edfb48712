/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "shell/fabric.h"
#include "shell/file.h"
#include "shell/timer.h"

#define EVERY (60 * USEC_PER_SEC)
#define SOON  USEC_PER_SEC

#define HEAD_SIZE 4096 /* has the first series */

/* --- writing ---------------------------------------------------------------------------------------------------- */

/* Whether the file has the numbers of another fabric, which its series name: two of them would overwrite each other's. */
static bool is_of_another(const struct metrics_file *f, const char *path)
{
        static const char info[] = "\npkeyd_build_info{";
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char bytes[HEAD_SIZE + 1] = {}, label[sizeof("fabric=\"\",") + FABRIC_NAME_MAX] = "version=";
        const char *found;

        if (fd < 0 || read(fd, bytes, HEAD_SIZE) < 0)
                return false;
        if (f->fabric)
                (void) snprintf(label, sizeof(label), "fabric=\"%s\",", f->fabric);
        found = strstr(bytes, info);
        return found && strncmp(found + strlen(info), label, strlen(label)) != 0;
}

static int write_file(const struct metrics_file *f, const char *path)
{
        _cleanup_free_ char *text = NULL;
        struct metrics m = {
                .version = PACKAGE_VERSION, .fabric = f->fabric, .started = f->started, .control = control_get_status(f->control),
                .now = clock_now(), .realtime = clock_wall(),
        };
        size_t n;
        int r;

        if (is_of_another(f, path))
                return -EEXIST;
        f->collect(&m, f->userdata);
        r = metrics_print(&m, &text, &n);
        return r < 0 ? r : file_write(FILE_PUBLIC, path, text, n);
}

/* If the settings name another file than before, or none, removes the old one, whose numbers would stay visible forever. */
static int set_path(struct metrics_file *f, const char *path)
{
        char *copy;

        if (f->path && path && strcmp(f->path, path) == 0)
                return 0;
        copy = path ? strdup(path) : NULL;
        if (path && !copy)
                return -ENOMEM;
        if (f->is_written && !is_of_another(f, f->path))
                (void) unlink(f->path);
        free(f->path);
        f->path = copy;
        f->is_written = f->failed = false;
        return 0;
}

static const char *problem(int r)
{
        return r == -EEXIST ? "the file has the metrics of another fabric" : strerror(-r);
}

/* pkeyd makes a new file beside the old one, so the directory counts, not the file. */
static const char *advice(int r)
{
        switch (-r) {
        case EACCES:
        case EPERM:
                return "; let the group pkeyd write to the directory: chgrp pkeyd, chmod 1775";
        case EEXIST:
                return "; name another file as metrics.textfile in pkeyd.yaml, or remove this one";
        case EROFS:
                return "; name the directory in ReadWritePaths= of a drop-in ('systemctl edit pkeyd')";
        }
        return "";
}

static void write_now(struct metrics_file *f)
{
        const struct control_status *s = control_get_status(f->control);
        const struct generation *g = s->in_force ? s->in_force : s->wanted;
        const char *path = g ? g->settings->metrics_textfile : NULL;
        int r = set_path(f, path);

        (void) timer_set(f->due, clock_now() + EVERY);
        if (!path)
                return;
        r = r ?: write_file(f, path);
        if (r < 0 && !f->failed)
                journal_event(f->journal, LOG_EVENT_METRICS_FILE, NULL,
                              "%s: the metrics cannot be written: %s; pkeyd continues without them%s", path, problem(r), advice(r));
        else if (r == 0 && f->failed)
                journal_event(f->journal, LOG_EVENT_METRICS_WRITTEN, NULL, "%s: the metrics can be written again", path);
        f->is_written |= r == 0;
        f->failed = r < 0;
}

static int on_due(sd_event_source *, uint64_t, void *userdata)
{
        write_now(userdata);
        return 0;
}

void metrics_file_violations(struct metrics_file *f, bool now)
{
        uint64_t due, soon = clock_now() + SOON;

        if (now)
                write_now(f);
        else if (sd_event_source_get_time(f->due, &due) >= 0 && due > soon)
                (void) timer_set(f->due, soon);
}

void metrics_file_update(struct metrics_file *f)
{
        const struct control_status *s = control_get_status(f->control);
        uint64_t n = 0;

        for (int result = 0; result < SWEEP_N_RESULTS; result++)
                n += s->numbers.sweeps[result];
        if (n == f->n_sweeps && s->n_file_errors == f->n_file_errors)
                return;
        f->n_sweeps = n;
        f->n_file_errors = s->n_file_errors;
        write_now(f);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

int metrics_file_init(struct metrics_file *f, sd_event *event, const char *fabric, const struct control *control,
                      const struct journal *journal, metrics_collector *collect, void *userdata)
{
        int r;

        *f = (struct metrics_file) {
                .fabric = fabric, .control = control, .journal = journal, .collect = collect, .userdata = userdata,
                .started = clock_wall(),
        };
        r = sd_event_add_time(event, &f->due, CLOCK_MONOTONIC, clock_now() + EVERY, 0, on_due, f);
        return r < 0 ? r : 0;
}

void metrics_file_done(struct metrics_file *f)
{
        sd_event_source_disable_unref(f->due);
        free(f->path);
}
