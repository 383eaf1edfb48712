/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a partition file gives to each port that it names. */

#include "opensm/partitions_conf.h"
#include "opensm/partitions_file.h"

/* The ports of the file in place and what it gives them, by ascending GUID. Labels are NULL. */
struct opensm_tables {
        struct partitions_file_port *ports;
        uint32_t n_ports;
        bool is_done; /* OpenSM carried it out: another writer added whatever else a table has, and OpenSM does not know of it */
};

/* Members by ALL and the like are ignored, so this is meant for files that pkeyd wrote. Returns 0 or -ENOMEM; *ret in the arena. */
int opensm_tables_of_file(struct arena *a, const struct partitions_conf *conf, struct opensm_tables *ret);

/* What a file gives a port that it does not name. */
extern const struct partitions_file_port opensm_nothing_given;

/* What a file gives a port; opensm_nothing_given: the file does not name it, or there is no file (t NULL). */
const struct partitions_file_port *opensm_find_given(const struct opensm_tables *t, struct guid guid);
