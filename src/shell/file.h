/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "shell/shell.h"
#include "util/arena.h"
#include "util/findings.h"

/* Closes a descriptor that goes out of scope; negative: there is none. */
static inline void file_close_p(int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}
#define _cleanup_close_ _cleanup_(file_close_p)

/* Descriptors 0 to 2 are taken, so that no file, port or socket gets one of them and with it what is printed. One that was closed
 * still cannot be used for what it is for. Before anything else is opened. Returns 0 or negative errno. */
int file_take_standard(void);

/* Opens a file of any kind to be read, without waiting. Returns a descriptor, which the caller closes, or negative errno. */
int file_open(const char *path);

/* Reads a regular file, or standard input for "-", of at most max bytes. *ret_bytes has a NUL behind its last byte and
 * lives in the arena. Returns 0, -EFBIG, -EISDIR, -ENOMEM or what the system said. */
int file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n);

/* The same of a file that is open; it stays open. */
int file_read_opened(struct arena *a, int fd, size_t max, const char **ret_bytes, size_t *ret_n);

/* As file_read, but what goes wrong becomes a finding (FILE_UNREADABLE, FILE_TOO_LARGE). Returns 0, -EBADMSG, -ENOMEM. */
int file_read_found(struct arena *a, const char *path, size_t max, struct findings *findings, const char **ret_bytes,
                    size_t *ret_n);

/* Replaces path by n bytes: written beside it, synced, renamed. Mode 0600. */
int file_write_atomic(const char *path, const void *bytes, size_t n);
/* The same for what others read and what may be lost with the host: mode 0644 whatever the umask is, not synced. */
int file_write_public(const char *path, const void *bytes, size_t n);
/* The same for what another program reads and must not miss: synced, with the mode of the file that is replaced if that has this
 * process' owner and group, else mode 0644 whatever the umask is. Of a symbolic link what it leads to is replaced, or made: an
 * admin put it there. The others replace the link. */
int file_write_shared(const char *path, const void *bytes, size_t n);
