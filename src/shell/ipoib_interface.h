/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <net/if.h>
#include <stdbool.h>

/* Finds the IPoIB interface of an InfiniBand port in sysfs: the one on the port itself, not a child of it with a P_Key of its own.
 * net: the directory of the network interfaces, "/sys/class/net"; device: that of the device, "/sys/class/infiniband/mlx5_0".
 * Returns false if there is none. */
bool ipoib_interface_find(const char *net, const char *device, unsigned port, char ret[IF_NAMESIZE]);
