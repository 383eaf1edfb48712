/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shell/shell.h"
#include "util/arena.h"
#include "util/findings.h"

/* For a descriptor that goes out of scope; does nothing if it is negative. */
static inline void file_close_p(int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}
#define _cleanup_close_ _cleanup_(file_close_p)

/* Occupies those of the descriptors 0 to 2 that are closed, so that no file, port or socket gets one of them and receives what the
 * program prints. Using them still fails. Call this before anything else is opened. Returns 0 or negative errno. */
int file_take_standard(void);

/* "DIR/NAME", owned; NULL: out of memory. */
char *file_path(const char *dir, const char *name);
/* Whether a directory has this file: 1, 0, or why that is not known. */
int file_exists(const char *dir, const char *name);
/* False only if it certainly has not. */
bool file_may_exist(const char *dir, const char *name);

/* Opens a file of any type for reading, without blocking. Returns a descriptor, which the caller closes, or negative errno. */
int file_open(const char *path);

/* Root in the directory of another user: until this goes out of scope, the thread is that user and its group for the file system.
 * So what it creates belongs to the user, who needs it later, and no link leads it to a file that the user may not touch. Does
 * nothing for other processes, for a directory of root, or if there is none. Returns 0 or -EPERM. */
struct file_identity {
        bool is_other;
        uid_t uid; /* to return to */
        gid_t gid;
};
int file_become_owner_of(const char *dir, struct file_identity *ret);
void file_become_self_p(struct file_identity *i);
#define _cleanup_identity_ _cleanup_(file_become_self_p)

/* Reads a regular file, or standard input for "-", of at most max bytes. *ret_bytes lives in the arena and has a NUL after its
 * last byte. Returns 0, -EFBIG, -EISDIR, -EINVAL (not a regular file), -ENOMEM or another negative errno. */
int file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n);

/* The same with an open descriptor, which stays open. */
int file_read_opened(struct arena *a, int fd, size_t max, const char **ret_bytes, size_t *ret_n);

/* Adds an error for a file that could not be read, with r as file_read returned it. Returns -EBADMSG or -ENOMEM. */
int file_refuse(struct findings *findings, const char *path, size_t max, int r);

/* As file_read, but an error becomes a finding (FILE_UNREADABLE, FILE_TOO_LARGE). Returns 0, -EBADMSG, -ENOMEM. */
int file_read_found(struct arena *a, const char *path, size_t max, struct findings *findings, const char **ret_bytes,
                    size_t *ret_n);

/* Writes n bytes to an open descriptor. Returns 0 or negative errno. */
int file_write_all(int fd, const char *bytes, size_t n);

/* Files are replaced by n bytes that are written to a new file beside them and renamed.
 *
 * FILE_PUBLIC: mode 0644 whatever the umask is; not synced, so a crash of the host may lose it; replaces a symbolic link.
 *
 * FILE_SHARED: for a file that another program must find complete after a crash. Synced. Keeps the mode of the old file if that has
 * the owner and group of this process; else the mode is 0644 whatever the umask is. Follows symbolic links, which an admin made,
 * and replaces or creates their target.
 *
 * FILE_NAMED: for a file that the user named, who expects what a shell does: as FILE_SHARED, but not synced, and the umask decides
 * the mode of a new file.
 *
 * FILE_EDITED: for a file of a person, which must exist: as FILE_SHARED, but the new file has the owner, the group and the mode of
 * the old one. If this process may not give it to them, the result is -EPERM, and the old file stays. */
enum file_kind { FILE_PUBLIC, FILE_SHARED, FILE_NAMED, FILE_EDITED };
/* Returns 0 or negative errno. */
int file_write(enum file_kind kind, const char *path, const void *bytes, size_t n);
/* As FILE_SHARED, but if `beside` is a symbolic link, the file is in the directory of its target: that of the link may be closed to
 * this process. `beside` may be NULL. */
int file_write_beside(const char *path, const char *beside, const void *bytes, size_t n);
