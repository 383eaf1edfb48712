/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Users of this system and their groups. A look-up may block: where they come from is a matter of nsswitch.conf. */

#include <stddef.h>
#include <sys/types.h>

#include "util/arena.h"

/* The user name, or the decimal number of a user that has none; and the names of all its groups, without those that have none. The
 * user name is the first. Returns 0 or -ENOMEM; *ret in the arena. */
int user_list_names(struct arena *a, uid_t uid, const char *const **ret, size_t *ret_n);
