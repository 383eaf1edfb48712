/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names folded into hostlists, the way an admin writes them: node[0001-0016,0020],oss01. */

#include "subnet/subnet.h"

/* Sorts names in place; equal names count once. Allocated from a; NULL: out of memory. */
const char *fold_names(struct arena *a, const char **names, size_t n);

/* The endports as selectors: a host whose every endport is among them by its name, else host/device/port. Nodes without a
 * name by their description. */
const char *fold_ports(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n);
