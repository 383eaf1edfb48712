/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "desired/desired.h"
#include "subnet/observed.h"

/* Ports that could not be read are taken to hold what the last policy in force gave them: `old` is that policy, resolved
 * on the same subnet as observed. Their tables become TABLE_ASSUMED, the entry of old->index0_base at index 0. What does
 * not fit, and a port to which the old policy gave nothing, stays unknown. Returns how many tables were filled. */
uint32_t desired_assume_unread(struct observed *observed, const struct desired *old);
