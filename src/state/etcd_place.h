/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "etcd/etcd.h"
#include "util/findings.h"

/* Where the store is, by pkeyd.yaml: *ret is NULL unless it has `store: etcd`. Reads the password, too, which stays in the arena.
 * A file that is absent or has errors names no cluster: if there is one, state_open() refuses. fabric: of several of this host;
 * NULL: there is one; borrowed. Findings say why the password cannot be read. Returns 0, -EBADMSG, -ENOMEM. *ret lives in the
 * arena. */
int etcd_place_find(struct arena *a, const char *settings_file, const char *fabric, struct findings *findings,
                    struct etcd_config **ret);
