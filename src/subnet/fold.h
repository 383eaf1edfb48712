/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Folds names into host lists as an admin writes them: node[0001-0016,0020],oss01. */

#include "subnet/subnet.h"

/* Sorts names in place; equal names count once. Allocated from a; NULL: out of memory. */
const char *fold_names(struct arena *a, const char **names, size_t n);

/* A list of fold_names() with at most about `max` bytes: one that is longer is cut after a name, and ends with ",...". max is longer than
 * any name. */
const char *fold_cut(struct arena *a, const char *list, size_t max);

/* The endports as selectors: the name of a host if all its endports are in the list, else host/device/port; for nodes without a
 * name their description. */
const char *fold_ports(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n);

/* The same names one by one, unfolded, each once: *ret_n of them. NULL: out of memory. */
const char **fold_labels(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n, uint32_t *ret_n);
