/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/m_keys.h"
#include "settings/settings.h"
#include "shell/shell.h"
#include "util/findings.h"

/*
 * Files whose content nobody may see: M_Keys, the SM_Key. They are read into memory of their own, which is wiped, and no
 * message shows any of it.
 *
 * A secret comes from a credential of the service manager (LoadCredential=NAME:PATH, then $CREDENTIALS_DIRECTORY/NAME), or,
 * where there is none of that name, from the file that the settings name. A file must be owned by root or by the user that
 * pkeyd runs as, and nobody else may read or write it; a credential may be readable by a group, for an ACL of the service
 * manager looks like that. Owner and mode are those of the opened file, not of a name.
 */
struct secret {
        char *bytes;  /* owned; a NUL stands behind the last one; NULL: there is no such secret */
        size_t n;
        char *path;   /* owned: where it was read, for messages */
};

/* Reads at most max bytes. path may be NULL: only a credential will do. What is wrong becomes a finding (FILE_UNREADABLE,
 * FILE_TOO_LARGE, SECRET_EXPOSED). Returns 0 (with ret->bytes NULL if neither file nor credential was named), -EBADMSG,
 * -ENOMEM; *ret is to be given to secret_done in any case. */
int secret_read(const char *path, const char *credential, size_t max, struct findings *findings, struct secret *ret);
/* Wipes and frees. */
void secret_done(struct secret *s);
#define _cleanup_secret_ _cleanup_(secret_done)

/* The M_Keys that the settings (or a credential "m_key") name; *ret NULL: none. Returns 0, -EBADMSG, -ENOMEM; *ret owned. */
int secret_read_m_keys(const struct settings *settings, struct findings *findings, struct m_keys **ret);
/* The file `neighbors` beside them (or a credential of this name), if they are more than one: which port is expected at the end
 * of each link (discovery/links.h). Without it there is a note (M_KEYS_DIFFER), and *ret is NULL. It is not secret, but is not
 * used if others than root may write it. Returns 0 or -ENOMEM; *ret in the arena. */
int secret_read_neighbors(struct arena *a, const struct settings *settings, const struct m_keys *keys,
                          struct findings *findings, const char **ret, size_t *ret_n);
/* Likewise the SM_Key (credential "sa_key"); 0: none. */
int secret_read_sm_key(const struct settings *settings, struct findings *findings, uint64_t *ret);
