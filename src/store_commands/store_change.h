/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Changes of what is stored by a command (forget, pin, replace). A running pkeyd finds them when it locks the store. */

#include "session/context.h"
#include "store/store.h"

/* Adds what the fabric shows now to ctx->remembered, which was read before, so that a person can be shown both. Returns 0 or
 * -ENOMEM. */
int store_see_fabric(struct context *ctx);
/* The user behind sudo, else the owner of this process. NULL: out of memory. */
const char *store_get_user(struct context *ctx);

/* Changes ctx->remembered, and puts what changed. is_reread: another process had stored something, so ctx->remembered and
 * ctx->known are not those that the command has seen. Returns 0 or negative errno; then nothing is stored. */
typedef int store_changer(struct context *ctx, bool is_reread, struct store_transaction *t, void *userdata);

/* Calls it under the lock, for which it waits some seconds, and commits. nothing: "nothing was forgotten", for messages. Returns 0,
 * -EBADMSG (findings say why) or -ENOMEM. */
int store_change(struct context *ctx, const char *nothing, store_changer *change, void *userdata);
