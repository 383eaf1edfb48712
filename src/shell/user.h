/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Users of this system and their groups. A look-up may block: where they come from is a matter of nsswitch.conf. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/arena.h"

struct user {
        const char *name;   /* the decimal number of a user that has none */
        gid_t group;        /* its first one */
        bool is_known;      /* it has a name */
};

/* Returns 0 or -ENOMEM; the name is in the arena. */
int user_look_up(struct arena *a, uid_t uid, struct user *ret);
/* The names of all its groups, without those that have none. Returns 0 or -ENOMEM; *ret in the arena. */
int user_list_groups(struct arena *a, const struct user *user, const char ***ret, size_t *ret_n);

/* The users that the services run as; each has a group of that name. */
#define USER_PKEYD      "pkeyd"
#define USER_PKEYD_REST "pkeyd-rest"

/* Whether there is such a group. */
bool user_find_group(const char *name, gid_t *ret);
/* 0, the user root, if there is no such user. */
uid_t user_find_uid(const char *name);
/* Whether that user can read this file, as the kernel decides it for a process of that user. Only root can find out. Returns 0,
 * -ESRCH (there is no such user, or this process is not root), -ENOMEM, or why the user cannot read it. */
int user_may_read(const char *user, const char *path);
/* The name of the user that this process runs as, or its decimal number; NULL: out of memory. In the arena. */
const char *user_name_of_process(struct arena *a);
