/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "shell/umad_port.h"
#include "subnet/subnet.h"

struct discovery_options {
        unsigned max_smps;  /* SMPs in flight */
        usec_t timeout;     /* for one of them */
        uint64_t m_key;     /* in everything that is asked: libibnetdisc knows one for the whole fabric */
};

/* Discovers the fabric through one port with libibnetdisc and makes a picture of it. Blocks for as long as that takes (a
 * few seconds for ten thousand hosts); nothing else may use subnet management classes of this process meanwhile. Touches
 * no global of ours, so it may run in a thread. Returns 0, -ENOMEM, -EIO (libibnetdisc could not), -ENODATA (the fabric
 * it saw does not have our own port); *ret in the arena. */
int discovery_run(struct arena *a, const struct local_port *lp, const struct discovery_options *options,
                  struct subnet **ret);
