/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A person is asked, unless --yes was given. */

#include "pkeyctl/context.h"

/* Refuses at once rather than after a minute of discovery. Returns 0 or -EBADMSG. */
int ask_is_possible(struct context *ctx);
/* Returns 0: yes; or -EBADMSG: no. */
int ask_person(struct context *ctx, const char *question, ...) __attribute__((format(printf, 2, 3)));
