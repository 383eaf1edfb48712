/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Several fabrics on one host, for example one for computing and one for storage. Each has a name, and a pkeyd with files, a store
 * and an object on the bus of its own. A host with one fabric needs no name.
 *
 *                     without a name                     fabric "storage"
 *     files           /etc/pkeyd/                        /etc/pkeyd/storage/
 *     store           /var/lib/pkeyd                     /var/lib/pkeyd/storage
 *     on the bus      org.pkeyd1 /org/pkeyd1             org.pkeyd1.storage /org/pkeyd1/storage
 *
 * A bus name has one owner, so each pkeyd has a name of its own. It also waits for the name org.pkeyd1, because the rules of the
 * bus for that name (systemd/org.pkeyd1.conf) hold for all who wait for it.
 */

#include "util/findings.h"

#define FABRIC_NAME_MAX 32
#define FABRIC_BUS_NAME "org.pkeyd1"
/* Of a host with one fabric; those of a named one are in directories below. */
#define CONFIG_DIR SYSCONFDIR "/pkeyd"
#define STATE_DIR  "/var/lib/pkeyd"

struct fabric {
        const char *name; /* NULL: none */
        const char *config_file, *policy_file, *rest_file;
        const char *state_dir;
        const char *bus_name, *bus_path;
};

/* name: NULL or empty: none. where: it was given, for the message: "--fabric". Text lives in the arena. Returns 0, -ENOMEM, or
 * -EBADMSG (the findings say why): not a name. */
int fabric_init(struct arena *a, const char *name, const char *where, struct findings *findings, struct fabric *ret);

/* The fabrics that have files on this host. */
struct fabric_names {
        struct fabric_name {
                const char *text;
        } *items; /* ascending */
        size_t n, allocated;
};
/* In the arena. Returns 0 or -ENOMEM. */
int fabric_list(struct arena *a, struct fabric_names *ret);

/* A hint: "fabrics of this host, for --fabric: compute, storage". NULL: there are none, or out of memory. */
const char *fabric_hint(struct arena *a);
