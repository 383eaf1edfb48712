/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Hosts, each shared by the ports where it is and the records that it is in. */

#include "violations/violations.h"

struct shared_host {
        struct violation_host host;
        uint32_t n_refs;
        char strings[];
};

/* A copy. Returns owned, or NULL: out of memory. */
struct shared_host *shared_host_new(const struct violation_host *host);
struct shared_host *shared_host_ref(struct shared_host *h);
struct shared_host *shared_host_unref(struct shared_host *h);
DEFINE_CLEANUP(struct shared_host *, shared_host_unref)
#define _cleanup_host_ _cleanup_(shared_host_unref_p)

/* By GUID, label and where it is plugged in. */
int violation_compare_hosts(const struct violation_host *a, const struct violation_host *b);
