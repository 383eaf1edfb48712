/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/journal_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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
bool journal_fields_are_shown(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
               st.st_dev == device && st.st_ino == inode;
}
