/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the parts of policy_parse share; nobody else includes this. */

#include "policy/policy.h"
#include "policy/selector.h"
#include "util/text.h"
#include "policy/yaml_tree.h"

/* Where the parts of a partition stand, for findings that are made after all of them were read. */
struct partition_nodes {
        const struct yaml_tree_node *name, *p_key, *index0;
        const struct yaml_tree_node **memberships; /* of each rule: the value */
        bool sound; /* nothing was wrong with it */
};

struct policy_reader {
        struct arena *arena;
        struct report report;
        struct yaml_tree tree;
        struct selector_reader selectors;
        struct policy *policy;
        struct partition_nodes *nodes; /* same index as policy->partitions */
};

/* Reads a base: 0x and up to four hex digits, 0x0001 to 0x7fff. Returns 0 or -EBADMSG; then *reterr_text is what is wrong,
 * a static string, and *reterr_instead the base that was probably meant, or 0. */
int policy_parse_base(const char *text, uint16_t *ret, const char **reterr_text, uint16_t *reterr_instead);

/* The groups map: names first, since any line may use any group; then what is in them; then circles. -ENOMEM or 0. */
int policy_read_groups(struct policy_reader *r, const struct yaml_tree_node *map);

/* The partitions map, into r->policy->partitions in the order of the file. -ENOMEM or 0. */
int policy_read_partitions(struct policy_reader *r, const struct yaml_tree_node *map);

/* The `ipoib` of a partition whose base was read (or is 0); node may be NULL. -ENOMEM or 0. */
int policy_read_ipoib(struct policy_reader *r, const struct yaml_tree_node *node, const char *path,
                      struct policy_partition *partition);

/* What can be wrong only between partitions: bases, index 0, `owns`, the default partition (which is put first, or made
 * up). -ENOMEM or 0. */
int policy_check_partitions(struct policy_reader *r);

/* Lines that contradict each other in any fabric. -ENOMEM or 0. */
int policy_check_contradictions(struct policy_reader *r);

/* The selectors in the text of a scalar. Returns 0, -EBADMSG (reported), -ENOMEM. */
int policy_read_selectors(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, struct selector ***ret,
                          uint32_t *ret_n);

/* The path of something below a key, escaped: "partitions.lustre.members". In the findings' arena; never NULL. */
const char *policy_path(struct policy_reader *r, const char *prefix, const char *name, const char *suffix);
