/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "shell/discovery.h"

/*
 * Discovery in a process of its own. A daemon discovers every minute for months: libibnetdisc of rdma-core before 51 loses
 * some 80 bytes for each port of each switch each time, and waits for ever for an answer that its device never gives back.
 * Neither matters in a process that ends.
 *
 * The process is the same program again, with one argument; what to do (with the M_Key, which must not show in arguments
 * or environment) comes in through its standard input, the picture goes out through a pipe.
 */

/* As discovery_run; -ETIMEDOUT: it took more than a few minutes and was ended. May run in a thread. */
int discovery_run_apart(struct arena *a, const struct local_port *lp, const struct discovery_options *options,
                        struct subnet **ret);

/* True if this is that process: the first thing that main() looks at. Then discovery_process does what is to be done and
 * does not return. */
bool discovery_process_is_wanted(int argc, char *argv[]);
_Noreturn void discovery_process(void);
