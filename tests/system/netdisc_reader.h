/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "subnet/subnet.h"

/* A snapshot made with libibnetdisc, for comparison. It trusts all answers. Returns 0, -ENOMEM, -EIO, -ENODATA; *ret in the
 * arena. */
int netdisc_read(struct arena *a, const char *ca, unsigned port, struct subnet **ret);
