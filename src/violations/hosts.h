/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Copies of hosts, each shared by the ports where it is and the records that it is in: each of them has a reference. */

#include "violations/violations.h"

/* Copies the host. Returns a reference, owned; NULL: out of memory. */
const struct violation_host *violation_host_copy(const struct violation_host *host);
/* Only for copies, or NULL. */
const struct violation_host *violation_host_ref(const struct violation_host *copy);
const struct violation_host *violation_host_unref(const struct violation_host *copy);
DEFINE_CLEANUP(const struct violation_host *, violation_host_unref)
#define _cleanup_host_ _cleanup_(violation_host_unref_p)

/* By GUID, label and where it is plugged in. */
int violation_compare_hosts(const struct violation_host *a, const struct violation_host *b);
