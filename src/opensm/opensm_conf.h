/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * OpenSM's own configuration, opensm.conf: one `option value` on each line. Of its hundred options these are what pkeyd has
 * to know to tell what OpenSM will do with a partitions.conf.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/findings.h"

#define OPENSM_CONF_MAX_SIZE (1u << 20)

struct opensm_conf {
        bool allow_both_pkeys;             /* without it `both` is full */
        bool qos;                          /* without it every SL is 0 */
        bool keep_pkey_indexes;            /* with it (the default) an entry stays at its index */
        const char *partition_config_file; /* in the arena; NULL: OpenSM's default */
        const char *part_enforce;          /* "both", "in", "out", "off"; in the arena; NULL: the default, both */
        uint64_t m_key;
        unsigned m_key_protection_level;   /* 0 to 3 */
        bool sm_key_is_default;            /* sa_key is 1, as it comes */
};

/* What OpenSM does without a file. */
void opensm_conf_default(struct opensm_conf *ret);

/* Reads a file over the defaults, as OpenSM does: unknown options and comments are passed over, of two lines the last one
 * counts, true is TRUE and nothing else. Where that is hardly what was meant there is a warning. M_Key and SA key never
 * appear in a finding. Returns 0 or -ENOMEM. */
int opensm_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                      struct opensm_conf *ret);

/* Do both name one file, as far as their text says? Repeated slashes and "." count for nothing; links are not followed. */
bool opensm_conf_is_same_file(const char *x, const char *y);

/* The partition file that OpenSM reads if nothing names another one, as distributions build it. */
#define OPENSM_PARTITIONS_CONF "/etc/opensm/partitions.conf"

/* Does OpenSM read the partition file `written`? path: of its opensm.conf, as findings have it; NULL: conf has the defaults, and no
 * file was read. If conf names another file there is an error; if it names none, and `written` is not OpenSM's default, a
 * warning. */
void opensm_conf_check_file(const struct opensm_conf *conf, const char *path, const char *written, struct findings *findings);
