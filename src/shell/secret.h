/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/m_keys.h"
#include "settings/settings.h"
#include "shell/shell.h"
#include "util/findings.h"

/*
 * Files with secrets: M_Keys, the SM_Key. They are read into memory of their own, which is wiped, and no message shows any of
 * their content.
 *
 * A secret comes from a credential of the service manager (LoadCredential=NAME:PATH, then $CREDENTIALS_DIRECTORY/NAME), or,
 * if there is no credential of that name, from the file that the settings name. A file must be owned by root or by the user of
 * this process. No other user may write it, and none may read it but the group that pkeyd runs as: the effective group of this
 * process, or, if that runs as root, the group named pkeyd. A credential may be readable by its group, because an ACL that the
 * service manager sets shows up like that. Owner and mode are checked on the open descriptor.
 */
struct secret {
        char *bytes;  /* owned; has a NUL after the last byte; NULL: there is no such secret */
        size_t n;
        char *path;   /* owned; the file that was read, for messages */
};

/* Reads at most max bytes. path NULL: from a credential only. An error becomes a finding (FILE_UNREADABLE, FILE_TOO_LARGE,
 * SECRET_EXPOSED). Returns 0 (ret->bytes is NULL if there is no credential and no path), -EBADMSG or -ENOMEM. The caller passes
 * *ret to secret_done() in any case. */
int secret_read(const char *path, const char *credential, size_t max, struct findings *findings, struct secret *ret);
/* The same for a file of a service with a user of its own: the group of the file may read it, too. */
int secret_read_of_group(const char *path, size_t max, struct findings *findings, struct secret *ret);
/* Wipes and frees. */
void secret_done(struct secret *s);
#define _cleanup_secret_ _cleanup_(secret_done)

/* Reads the M_Keys from the credential "m_key" or the file m_key_file of the settings. *ret is owned, and NULL if there are none.
 * Returns 0, -EBADMSG, -ENOMEM. */
int secret_read_m_keys(const struct settings *settings, struct findings *findings, struct m_keys **ret);
/* If there are several M_Keys, reads the file `neighbors` from the same directory (or the credential of this name): which port is
 * expected at the end of each link (discovery/links.h). If it cannot be read, *ret is NULL and a note says so (M_KEYS_DIFFER). It
 * is no secret, but a file that others than root may write is not used. Returns 0 or -ENOMEM; *ret lives in the arena. */
int secret_read_neighbors(struct arena *a, const struct settings *settings, const struct m_keys *keys,
                          struct findings *findings, const char **ret, size_t *ret_n);
/* Reads the SM_Key from the credential "sa_key" or the file sa_key_file of the settings; 0: there is none. Returns 0, -EBADMSG,
 * -ENOMEM. */
int secret_read_sm_key(const struct settings *settings, struct findings *findings, uint64_t *ret);
