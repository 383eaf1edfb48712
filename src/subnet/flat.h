/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "subnet/subnet.h"

/* A picture as one run of bytes, to be handed from one process of the same program to another; nothing for a disk. */

/* *ret_bytes in the arena. Returns 0 or -ENOMEM. */
int subnet_flatten(struct arena *a, const struct subnet *s, const char **ret_bytes, size_t *ret_n);

/* The other way round; copies. Returns 0, -EBADMSG (these bytes are no picture), -ENOMEM; *ret in the arena. */
int subnet_unflatten(struct arena *a, const char *bytes, size_t n, struct subnet **ret);
