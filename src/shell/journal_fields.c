/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SD_JOURNAL_SUPPRESS_LOCATION

#include "shell/journal_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

void journal_fields_add(struct journal_fields *f, const char *format, ...)
{
        char *field;
        va_list ap;
        int n;

        if (f->n == JOURNAL_FIELDS_MAX)
                return;
        va_start(ap, format);
        n = vasprintf(&field, format, ap);
        va_end(ap);
        if (n >= 0)
                f->items[f->n++] = (struct iovec) { .iov_base = field, .iov_len = (size_t) n };
}

void journal_fields_done(struct journal_fields *f)
{
        for (int i = 0; i < f->n; i++)
                free(f->items[i].iov_base);
}

/* systemd sets JOURNAL_STREAM to the device and inode of the stderr that it passes; a shell may have redirected stderr since. */
static bool is_connected(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
               st.st_dev == device && st.st_ino == inode;
}

void journal_output_init(struct journal_output *o, const char *program, const char *fabric)
{
        *o = (struct journal_output) { .fabric = fabric, .native = is_connected() };
        (void) snprintf(o->identifier, sizeof(o->identifier), "%s%s%s", program, fabric ? "@" : "", fabric ?: "");
}

static DEFINE_WORDS(priority_to_string, int, "",
                    [LOG_ALERT] = "ALERT: ", [LOG_CRIT] = "critical: ", [LOG_ERR] = "error: ",
                    [LOG_WARNING] = "warning: ", [LOG_DEBUG] = "debug: ")

bool journal_output_begin(const struct journal_output *o, int priority, const char *message_id, const char *text,
                          struct journal_fields *f)
{
        if (!o->native) {
                fprintf(stderr, "%s: %s%s\n", o->identifier, priority_to_string(priority), text);
                return false;
        }
        journal_fields_add(f, "MESSAGE=%s", text);
        journal_fields_add(f, "PRIORITY=%d", priority);
        journal_fields_add(f, "SYSLOG_IDENTIFIER=%s", o->identifier);
        if (o->fabric)
                journal_fields_add(f, "PKEYD_FABRIC=%s", o->fabric);
        if (message_id)
                journal_fields_add(f, "MESSAGE_ID=%s", message_id);
        return true;
}

void journal_output_send(const struct journal_fields *f, const char *text)
{
        if (sd_journal_sendv(f->items, f->n) < 0)
                fprintf(stderr, "%s\n", text);
}
