# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs of pools in a policy."""

from wrongs import Wrong

POOLS = "src/policy/policy_pools.c"
POLICY = "src/policy/policy.c"
RESOLVE = "src/policy/policy_resolve.c"
TYPING = "src/policy/typing_error.c"
DURATION = "src/util/duration.c"

WRONGS = [
    # whose P_Keys they are
    Wrong("pools-have-those-of-partitions", POOLS, "                        holders[p->partitions[i].base] = i + 1;", "                        holders[0] = i + 1;"),
    Wrong("pools-have-those-of-pools", POOLS, "                        p->holders[base] = self;\n", "                        p->holders[0] = self;\n"),
    Wrong("pools-last-of-a-range", POOLS, "base <= range->last; base++)", "base < range->last; base++)"),
    Wrong("pools-not-owned", POOLS, "        refuse(p, p->p_keys, \"%s: %s is not in `owns`\", path_of(p, \".pkeys\"), range_text(p, range));\n", ""),
    Wrong("pools-owned-in-part", POOLS, "range->first >= policy->owns[i].first && range->last <= policy->owns[i].last",
          "range->first <= policy->owns[i].last && range->last >= policy->owns[i].first"),
    Wrong("pools-other-holder", POOLS, "else if (holder != reported && n_reported++", "else if (reported == 0 && n_reported++"),
    Wrong("pools-all-holders", POOLS, " && n_reported++ < MAX_TAKEN)", ")"),
    # who has them, and for how long
    Wrong("pools-limited-is-full", POOLS, "strcmp(node->text, \"full\") == 0 ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED", "MEMBERSHIP_FULL"),
    Wrong("pools-by-default-limited", POOLS, ".membership = MEMBERSHIP_FULL, .longest", ".membership = MEMBERSHIP_LIMITED, .longest"),
    Wrong("pools-lease-of-nothing", POOLS, "read_duration(p, \"lease\", 1, &p->pool->longest);", "read_duration(p, \"lease\", 0, &p->pool->longest);"),
    Wrong("pools-part-of-a-second", POOLS, "else if (!problem && v % USEC != 0)", "else if (!problem && v % USEC == 1)"),
    Wrong("pools-longer-than-ten-years", POOLS, "v > MAX_DURATION * USEC", "v > MAX_DURATION * USEC * 2"),
    Wrong("duration-overflows", DURATION, "v > UINT64_MAX / units[i].usec ? UINT64_MAX : v * units[i].usec", "v * units[i].usec"),
    Wrong("pools-nobody-may", POOLS, "                names[p->pool->n_allow++] = \"root\";\n", ""),
    Wrong("pools-any-name", POOLS, "if (name[i] <= ' ' || name[i] > '~')", "if (name[i] < ' ' || name[i] > '~')"),
    Wrong("pools-name-twice", POOLS, "else if (text_is_one_of(node->text, names, p->pool->n_allow))", "else if (false)"),
    Wrong("pools-empty-list", POOLS, "node->kind == YAML_TREE_MAP || (list && node->n_children == 0)", "node->kind == YAML_TREE_MAP"),
    # what they mean elsewhere
    Wrong("pools-kept-as-unmanaged", POLICY, " || policy_pool_of_base(p, base));", ");"),
    Wrong("pools-next-base", "src/policy/policy.c", "base <= ranges[i].last)", "base <= ranges[i].last + 1)"),
    Wrong("pools-ports-unmatched", RESOLVE, "e = e ?: resolve_groups(&r) ?: resolve_pools(&r);", "e = e ?: resolve_groups(&r);"),
    Wrong("pools-guids-unseen", "src/policy/selector.c", "r = add_all(a, p->pools[i].ports, p->pools[i].n_ports, ret);", "r = 0;"),
    Wrong("pools-typing-of-units", TYPING, " || !duration_problem(word, &unused);", " && duration_problem(word, &unused);"),
]
