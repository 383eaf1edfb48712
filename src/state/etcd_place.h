/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "etcd/etcd.h"
#include "util/findings.h"

struct settings;

/* The cluster that pkeyd.yaml names, with the password; *ret is NULL unless the file has `store: etcd`. If the file is absent or
 * has errors, *ret is NULL, too: state_open() then refuses a directory whose store is in etcd. fabric: the name of one of several
 * on this host, borrowed; NULL: there is one. Findings say why the password cannot be read. Returns 0, -EBADMSG, -ENOMEM. *ret and
 * the password live in the arena. */
int etcd_place_find(struct arena *a, const char *settings_file, const char *fabric, struct findings *findings,
                    struct etcd_config **ret);

/* Returns whether these settings name this place; c NULL: the state directory. */
bool etcd_place_is(const struct etcd_config *c, const struct settings *s);
