/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "pkeyd/daemon.h"

/* Starts a pass; d->fabric must be there, d->picture too for other kinds than PASS_FULL. daemon_pass_ended is called
 * later, or from in here if it cannot even begin. Returns 0 or -ENOMEM (nothing was started or called). */
int pass_start(struct daemon *d, enum pass_kind kind);
/* Ends it without ceremony; the job on the fabric must be gone. */
struct pass *pass_free(struct pass *p);

/* An apply that runs begins no more writes; those in flight are awaited. Other steps only read and go on. */
void pass_end_apply(struct pass *p);
/* True if it must be awaited: a write may be in flight, or a thread be discovering. */
bool pass_must_be_awaited(const struct pass *p);
/* "discovering", "applying (grant), 40 %": what it does now. */
void pass_describe(const struct pass *p, char *ret, size_t size);
