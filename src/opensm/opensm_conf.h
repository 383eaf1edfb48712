/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * OpenSM's own configuration, opensm.conf: one `option value` on each line. pkeyd uses the options that determine which
 * partitions.conf OpenSM reads, and how. Of others that partitions depend on it only checks the values.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/findings.h"

#define OPENSM_CONF_MAX_SIZE (1u << 20)

/* Zeroed it has OpenSM's defaults, which it uses without a file. */
struct opensm_conf {
        bool allow_both_pkeys;             /* without it `both` is full */
        const char *partition_config_file; /* in the arena; NULL: OpenSM's default */
};

/* Reads a file as OpenSM does: it ignores unknown options and comments, uses the last of several lines, and accepts only TRUE for
 * true. What the author probably did not mean becomes a warning. M_Key and SM_Key never appear in a finding. Returns 0 or -ENOMEM;
 * the strings of *ret in the arena. */
int opensm_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                      struct opensm_conf *ret);

/* True if both paths are the same but for repeated slashes and "."; does not follow links. */
bool opensm_conf_is_same_file(const char *x, const char *y);

/* The partition file that OpenSM, as distributions build it, reads by default. */
#define OPENSM_PARTITIONS_CONF "/etc/opensm/partitions.conf"

/* The partition file that OpenSM reads: the one that conf names, else `otherwise` (NULL: none is known), else OpenSM's default. */
static inline const char *opensm_conf_partition_file(const struct opensm_conf *conf, const char *otherwise)
{
        return conf->partition_config_file ?: otherwise ?: OPENSM_PARTITIONS_CONF;
}

/* Checks that OpenSM reads the partition file `written`. path: of its opensm.conf, for findings; NULL: none was read, and conf has
 * the defaults. An error if conf names another file; a warning if it names none, and `written` is not OpenSM's default. */
void opensm_conf_check_file(const struct opensm_conf *conf, const char *path, const char *written, struct findings *findings);
