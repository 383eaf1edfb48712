/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/policy_reader.h"

static const char *name_of(struct policy_reader *r, uint32_t partition)
{
        return report_escape(&r->report, r->policy->partitions[partition].name);
}

static int check_bases(struct policy_reader *r)
{
        _cleanup_free_ uint32_t *seen = calloc(P_KEY_BASE_MASK + 1, sizeof(*seen)); /* of each base: 1 + its partition */
        const struct policy *p = r->policy;

        if (!seen)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_partitions; i++) {
                uint32_t base = p->partitions[i].base, first;

                if (base == 0 || seen[base] == 0) {
                        seen[base] = i + 1;
                        continue;
                }
                first = seen[base] - 1;
                yaml_tree_error(&r->tree, r->nodes[i].p_key, FINDING_POLICY_P_KEY_DUPLICATE,
                                "partitions.%s.pkey: '0x%04x' is already the P_Key of partition '%s'", name_of(r, i), base,
                                name_of(r, first));
                report_hint(&r->report, "line %u gives it to '%s': give each partition its own P_Key", r->nodes[first].p_key->line, name_of(r, first));
        }
        return 0;
}

static void check_index0(struct policy_reader *r)
{
        const struct policy *p = r->policy;
        uint32_t first = policy_index0_partition(p);

        for (uint32_t i = first + 1; i < p->n_partitions; i++) {
                if (!p->partitions[i].index0)
                        continue;
                yaml_tree_error(&r->tree, r->nodes[i].index0, FINDING_POLICY_INDEX0,
                                "partitions.%s.index0: partition '%s' already has 'index0: true' (accepted: one partition)",
                                name_of(r, i), name_of(r, first));
                report_hint(&r->report, "line %u gives it to '%s': remove one of the two", r->nodes[first].index0->line, name_of(r, first));
        }
}

static void check_owns(struct policy_reader *r)
{
        const struct policy *p = r->policy;

        for (uint32_t i = 0; p->n_owns > 0 && i < p->n_partitions; i++) {
                if (p->partitions[i].base == 0 || policy_owns(p, p->partitions[i].base))
                        continue;
                yaml_tree_error(&r->tree, r->nodes[i].p_key, FINDING_POLICY_OWNS, "partitions.%s.pkey: '0x%04x' is not in `owns`",
                                name_of(r, i), p->partitions[i].base);
                report_hint(&r->report, "add it to `owns`, or choose a P_Key that is in it");
        }
}

static void check_default_name(struct policy_reader *r, uint32_t i)
{
        const struct policy_partition *partition = &r->policy->partitions[i];

        if (partition->base == 0 || partition->base == P_KEY_DEFAULT_BASE || strcmp(partition->name, "default") != 0)
                return;
        yaml_tree_error(&r->tree, r->nodes[i].p_key, FINDING_POLICY_DEFAULT,
                        "partitions.default.pkey: '0x%04x' is not the P_Key of the default partition (accepted: 0x7fff)",
                        partition->base);
        report_hint(&r->report, "give the partition another name, or write pkey: 0x7fff");
}

/* A port that is not a member of the default partition cannot reach the SA. */
static void check_default_members(struct policy_reader *r, uint32_t i)
{
        const struct policy_partition *partition = &r->policy->partitions[i];

        if (partition->base != P_KEY_DEFAULT_BASE)
                return;
        for (uint32_t k = 0; k < partition->n_rules; k++) {
                if (partition->rules[k].membership != MEMBERSHIP_NONE)
                        continue;
                yaml_tree_error(&r->tree, r->nodes[i].memberships[k], FINDING_POLICY_DEFAULT,
                                "partitions.%s.members: 'none' would cut %s off from the subnet administrator "
                                "(accepted in the default partition: limited, full, both)",
                                name_of(r, i), report_quote(&r->report, partition->rules[k].text));
                report_hint(&r->report, "limited members of the default partition can talk to full members only, not "
                                        "to each other");
        }
}

/* partitions[0] is the default partition. */
static void place_default(struct policy_reader *r)
{
        struct policy *p = r->policy;
        struct policy_partition found = { .name = "default", .base = P_KEY_DEFAULT_BASE, .where.file = p->file };
        struct partition_nodes nodes = {};
        int at = policy_find_base(p, P_KEY_DEFAULT_BASE);

        if (at >= 0) {
                found = p->partitions[at];
                nodes = r->nodes[at];
        } else {
                at = (int) p->n_partitions++;
        }
        memmove(p->partitions + 1, p->partitions, (size_t) at * sizeof(*p->partitions));
        memmove(r->nodes + 1, r->nodes, (size_t) at * sizeof(*r->nodes));
        p->partitions[0] = found;
        r->nodes[0] = nodes;
}

int policy_check_partitions(struct policy_reader *r)
{
        int e = check_bases(r);

        if (e < 0)
                return e;
        check_index0(r);
        check_owns(r);
        for (uint32_t i = 0; i < r->policy->n_partitions; i++) {
                check_default_name(r, i);
                check_default_members(r, i);
        }
        place_default(r);
        return 0;
}
