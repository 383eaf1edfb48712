/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which endports a text, or a pool, selects in a fabric. policy_select() (policy.h) is implemented here, too.
 *
 * A selection answers many such questions about one policy and one snapshot, and is prepared once: that takes time and memory in
 * proportion to the fabric. It borrows policy, subnet and memory.
 */

#include "policy/selector_match.h"

struct policy_selection;

/* A matcher with the names by which the policy knows the nodes of the subnet. Ports have the same indexes. Returns 0 or -ENOMEM. */
int matcher_init_by_pins(struct matcher *m, struct arena *a, const struct policy *policy, const struct subnet *subnet,
                         const struct policy_memory *memory, struct report *report);

/* Returns owned, or NULL if out of memory. */
struct policy_selection *policy_selection_new(const struct policy *policy, const struct subnet *subnet,
                                              const struct policy_memory *memory);
struct policy_selection *policy_selection_free(struct policy_selection *s);
DEFINE_CLEANUP(struct policy_selection *, policy_selection_free)
/* Bytes: each question needs some. */
size_t policy_selection_size(const struct policy_selection *s);

/* As policy_select(), but every finding about the text is an error, and so is a contested port. The list is not empty. Returns 0,
 * -EBADMSG (findings name the reason) or -ENOMEM; *ret lives as long as the selection. */
int policy_selection_exactly(struct policy_selection *s, const char *text, struct findings *findings, struct port_list *ret);

/* As policy_selection_exactly(), but a GUID that neither a port nor a node has is listed apart, and the list may be empty. */
int policy_selection_members(struct policy_selection *s, const char *text, struct findings *findings, struct port_list *ret,
                             const struct guid **ret_unseen, size_t *ret_n_unseen);

/* The endports of a pool of its policy, also contested ones. Returns 0 or -ENOMEM; *ret lives as long as the selection. */
int policy_selection_pool(struct policy_selection *s, const struct policy_pool *pool, struct port_list *ret);
