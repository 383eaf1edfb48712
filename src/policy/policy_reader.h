/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files that implement policy_parse(). */

#include "policy/policy.h"
#include "policy/selector.h"
#include "util/text.h"
#include "util/yaml_tree.h"

/* The nodes of a partition, for findings that need all partitions. */
struct partition_nodes {
        const struct yaml_tree_node *name, *p_key, *index0;
        const struct yaml_tree_node **memberships; /* of each rule: the node of its membership */
        bool sound; /* it has no error */
};

struct policy_reader {
        struct arena *arena;
        struct report report;
        struct yaml_tree tree;
        struct selector_reader selectors;
        struct policy *policy;
        struct partition_nodes *nodes; /* same index as policy->partitions */
};

/* Reads a base: 0x and up to four hex digits, 0x0001 to 0x7fff. Returns NULL and sets *ret; or returns what is wrong, a static
 * string, and sets *ret_meant to the base that was probably meant, or 0. */
const char *policy_base_problem(const char *text, uint16_t *ret, uint16_t *ret_meant);

/* After an error about a base: adds the hint to write the one that was probably meant (0: there is none). more: follows it. */
void policy_hint_base(struct policy_reader *r, const char *text, uint16_t meant, const char *more);

/* After an error about a base: corrects the last finding if the base that was meant is certain. text: it, at this offset of the
 * node's text. */
void policy_fix_base(struct policy_reader *r, const struct yaml_tree_node *node, size_t offset, const char *text, uint16_t meant);

/* Reads the groups map: first all names, because any line may use any group; then the selectors; then checks for cycles. Returns
 * 0 or -ENOMEM, like the functions below. */
int policy_read_groups(struct policy_reader *r, const struct yaml_tree_node *map);

/* Reads the partitions map into r->policy->partitions, in the order of the file. */
int policy_read_partitions(struct policy_reader *r, const struct yaml_tree_node *map);

/* A list of P_Keys and ranges, for its findings. */
struct policy_range_list {
        const char *path, *example;
        enum finding_code code;
};

/* Reads one P_Key, a range, or a list of both. *ret is ascending, without overlaps; after an error some may be missing. */
int policy_read_ranges(struct policy_reader *r, const struct yaml_tree_node *node, const struct policy_range_list *list,
                       struct base_range **ret, uint32_t *ret_n);

/* Reads the pools map, after policy_check_partitions(); map may be NULL. */
int policy_read_pools(struct policy_reader *r, const struct yaml_tree_node *map);

/* Reads the `ipoib` of a partition whose base was read, or is 0 if it was refused. node may be NULL. */
int policy_read_ipoib(struct policy_reader *r, const struct yaml_tree_node *node, const char *path,
                      struct policy_partition *partition);

/* Checks partitions against each other and the policy: bases, index 0, `owns`, the default partition. Moves the default partition
 * to the front, or adds it. */
int policy_check_partitions(struct policy_reader *r);

/* Reports lines that contradict each other in every fabric. */
int policy_check_contradictions(struct policy_reader *r);

/* The selectors in the text of a scalar. Returns 0, -EBADMSG (reported), -ENOMEM. */
int policy_read_selectors(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, struct selector ***ret,
                          uint32_t *ret_n);

/* The path of a key, escaped: "partitions.lustre.members". In the findings' arena; never NULL. */
const char *policy_path(struct policy_reader *r, const char *prefix, const char *name, const char *suffix);
