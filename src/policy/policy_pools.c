/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_keys.h"
#include "policy/policy_reader.h"
#include "util/duration.h"
#include "util/nearest.h"

#define MAX_POOLS       1024
#define MAX_ALLOWED     64 /* users and groups of a pool */
#define NAME_MAX_LENGTH 69 /* of one of them: "rest:" and a client of the REST API */
#define MAX_TAKEN       16 /* P_Keys of a range that are reported as those of others */
#define MAX_DURATION    (UINT64_C(87600) * 3600) /* ten years */
#define USEC            UINT64_C(1000000)

struct pool_reader {
        struct policy_reader *r;
        struct policy_pool *pool;
        const struct yaml_tree_node *map, *p_keys;
        uint32_t *holders; /* of each base: 0: none; 1 + a partition, or 1 + n_partitions + a pool */
};

static const char *path_of(const struct pool_reader *p, const char *key)
{
        return policy_path(p->r, "pools.", p->pool->name, key);
}

__attribute__((format(printf, 3, 4)))
static void refuse(const struct pool_reader *p, const struct yaml_tree_node *node, const char *format, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, format);
        text = arena_vprintf(p->r->arena, format, ap);
        va_end(ap);
        yaml_tree_error(&p->r->tree, node, FINDING_POLICY_POOL, "%s", text ?: "out of memory");
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* NULL: it is missing, which is reported. */
static const struct yaml_tree_node *get_required(const struct pool_reader *p, const char *key, const char *accepted)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, key);

        if (!node)
                yaml_tree_error(&p->r->tree, p->map->key, FINDING_KEY_MISSING, "pools.%s: the key '%s' is missing (accepted: %s)",
                                report_escape(&p->r->report, p->pool->name), key, accepted);
        return node;
}

static int read_ports(const struct pool_reader *p)
{
        const struct yaml_tree_node *node = get_required(p, "ports", "selectors, as in the members of a partition");
        const char *path = path_of(p, ".ports");
        int e;

        if (!node)
                return 0;
        if (!yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path)) {
                if (node->kind == YAML_TREE_LIST && !node->broken)
                        report_hint(&p->r->report, "separate the selectors by commas, or define a group");
                return 0;
        }
        if (yaml_tree_is_null(node)) {
                refuse(p, node, "%s: is empty (accepted: selectors, as in the members of a partition)", path);
                return 0;
        }
        p->pool->ports_text = node->text;
        e = policy_read_selectors(p->r, node, path, &p->pool->ports, &p->pool->n_ports);
        return e == -ENOMEM ? e : 0;
}

static void read_membership(const struct pool_reader *p)
{
        static const char *const words[] = { "full", "limited" };
        const struct yaml_tree_node *node = yaml_tree_get(p->map, "membership");
        const char *path = path_of(p, ".membership"), *near;

        if (!node || !yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return;
        if (text_is_one_of(node->text, words, ELEMENTS(words))) {
                p->pool->membership = strcmp(node->text, "full") == 0 ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED;
                return;
        }
        refuse(p, node, "%s: %s is not a membership of a pool (accepted: full, limited)", path,
               report_quote(&p->r->report, node->text));
        near = nearest_certain(node->text, words, ELEMENTS(words));
        if (!near)
                return;
        report_hint(&p->r->report, "did you mean '%s'?", near);
        yaml_tree_fix_scalar(&p->r->tree, node, near);
}

/* In seconds. */
static void read_duration(const struct pool_reader *p, const char *key, uint64_t least, uint64_t *ret)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, key);
        const char *path = path_of(p, arena_printf(p->r->arena, ".%s", key) ?: ""), *problem;
        bool is_malformed;
        uint64_t v = 0;

        if (!node || !yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return;
        problem = duration_problem(node->text, &v);
        is_malformed = problem;
        if (!problem && (v < least * USEC || v > MAX_DURATION * USEC))
                problem = "is out of range";
        else if (!problem && v % USEC != 0)
                problem = "is not a whole number of seconds";
        if (!problem) {
                *ret = v / USEC;
                return;
        }
        refuse(p, node, "%s: %s %s (accepted: %us to 87600h%s)", path, report_quote(&p->r->report, node->text), problem,
               (unsigned) least, least > 0 ? ", or unlimited" : "");
        if (is_malformed)
                report_hint(&p->r->report, DURATION_HINT);
}

static void read_lease(const struct pool_reader *p)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, "lease");

        if (node && node->kind == YAML_TREE_SCALAR && strcmp(node->text, "unlimited") == 0)
                p->pool->longest = POLICY_UNLIMITED;
        else
                read_duration(p, "lease", 1, &p->pool->longest);
}

/* ---- who may ------------------------------------------------------------------------------------------------------ */

static const char *name_problem(const char *name)
{
        size_t n = strlen(name);

        if (n == 0)
                return "is empty";
        if (n > NAME_MAX_LENGTH)
                return "is longer than 69 characters";
        for (size_t i = 0; i < n; i++)
                if (name[i] <= ' ' || name[i] > '~')
                        return "has a blank or a character that is not printable ASCII";
        return NULL;
}

static void add_allowed(const struct pool_reader *p, const struct yaml_tree_node *node, const char *path, const char **names)
{
        const char *problem;

        if (!yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return;
        problem = yaml_tree_is_null(node) ? "is empty" : name_problem(node->text);
        if (problem)
                refuse(p, node, "%s: %s %s (accepted: names of users and groups, and rest:CLIENT)", path,
                       report_quote(&p->r->report, node->text), problem);
        else if (text_is_one_of(node->text, names, p->pool->n_allow))
                refuse(p, node, "%s: %s is listed twice", path, report_quote(&p->r->report, node->text));
        else
                names[p->pool->n_allow++] = node->text;
}

static int read_allow(const struct pool_reader *p)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, "allow");
        const char *path = path_of(p, ".allow"), **names = arena_new_array(p->r->arena, const char *, MAX_ALLOWED);
        bool list = node && node->kind == YAML_TREE_LIST;

        if (!names)
                return -ENOMEM;
        p->pool->allow = names;
        if (!node) {
                names[p->pool->n_allow++] = "root";
                return 0;
        }
        if (node->kind == YAML_TREE_MAP || (list && node->n_children == 0)) {
                refuse(p, node, "%s: is %s (accepted: a name, or a list of names, of users and groups)", path,
                       list ? "empty: nobody could use the pool" : "a map");
                return 0;
        }
        if (list && node->n_children > MAX_ALLOWED) {
                refuse(p, node, "%s: too many names: %u (accepted: at most %u)", path, node->n_children, MAX_ALLOWED);
                return 0;
        }
        YAML_TREE_FOR_EACH(c, node)
                add_allowed(p, c, path, names);
        return 0;
}

/* ---- P_Keys ------------------------------------------------------------------------------------------------------- */

/* "0x1000-0x1fff", "0x1000" */
static const char *range_text(const struct pool_reader *p, const struct base_range *range)
{
        if (range->first == range->last)
                return report_text(&p->r->report, "0x%04x", range->first);
        return report_text(&p->r->report, "0x%04x-0x%04x", range->first, range->last);
}

static void check_owns(const struct pool_reader *p, const struct base_range *range)
{
        const struct policy *policy = p->r->policy;

        for (uint32_t i = 0; i < policy->n_owns; i++)
                if (range->first >= policy->owns[i].first && range->last <= policy->owns[i].last)
                        return;
        if (policy->n_owns == 0)
                return; /* `owns` has an error of its own */
        refuse(p, p->p_keys, "%s: %s is not in `owns`", path_of(p, ".pkeys"), range_text(p, range));
        report_hint(&p->r->report, "add it to `owns`, or choose P_Keys that are in it");
}

static void refuse_taken(const struct pool_reader *p, unsigned base, uint32_t holder)
{
        const struct policy *policy = p->r->policy;
        bool is_pool = holder >= policy->n_partitions;
        const char *name = report_escape(&p->r->report, is_pool ? policy->pools[holder - policy->n_partitions].name :
                                                                  policy->partitions[holder].name);

        refuse(p, p->p_keys, "%s: 0x%04x is already %s '%s'", path_of(p, ".pkeys"), base,
               is_pool ? "a P_Key of pool" : "the P_Key of partition", name);
        if (is_pool)
                report_hint(&p->r->report, "line %u gives it to '%s': give each pool its own P_Keys",
                            policy->pools[holder - policy->n_partitions].where.line, name);
        else if (base == P_KEY_DEFAULT_BASE)
                report_hint(&p->r->report, "all ports are members of the default partition");
        else
                report_hint(&p->r->report, "line %u gives it to '%s': remove it from the pool",
                            p->r->nodes[holder].p_key->line, name);
}

/* Takes the bases of a range for this pool, and reports those that a partition or another pool has. */
static void take_range(const struct pool_reader *p, const struct base_range *range)
{
        uint32_t self = p->r->policy->n_partitions + (uint32_t) (p->pool - p->r->policy->pools) + 1, reported = 0;
        unsigned n_reported = 0;

        for (unsigned base = range->first; base <= range->last; base++) {
                uint32_t holder = p->holders[base];

                if (holder == 0)
                        p->holders[base] = self;
                else if (holder != reported && n_reported++ < MAX_TAKEN)
                        refuse_taken(p, base, holder - 1);
                reported = holder ?: reported;
        }
}

static int read_p_keys(struct pool_reader *p)
{
        const struct policy_range_list list = { path_of(p, ".pkeys"), "[0x0010, 0x1000-0x1fff]", FINDING_POLICY_POOL };
        int e;

        p->p_keys = get_required(p, "pkeys", "a range of P_Keys, as in 0x1000-0x1fff, or a list of ranges");
        if (!p->p_keys)
                return 0;
        e = policy_read_ranges(p->r, p->p_keys, &list, &p->pool->ranges, &p->pool->n_ranges);
        for (uint32_t i = 0; e == 0 && i < p->pool->n_ranges; i++) {
                check_owns(p, &p->pool->ranges[i]);
                take_range(p, &p->pool->ranges[i]);
        }
        return e;
}

/* ---- pools -------------------------------------------------------------------------------------------------------- */

static bool expect_pool(struct policy_reader *r, const struct yaml_tree_node *node)
{
        const char *path = policy_path(r, "pools.", node->key->text, "");

        if (!yaml_tree_is_null(node))
                return yaml_tree_expect(&r->tree, node, YAML_TREE_MAP, path);
        yaml_tree_error(&r->tree, node, FINDING_YAML_TYPE, "%s: has no value (accepted: a map with pkeys and ports)", path);
        return false;
}

static int read_pool(struct pool_reader *p)
{
        struct policy_reader *r = p->r;
        const struct yaml_tree_node *name = p->map->key;
        const char *problem = selector_name_problem(name->text);

        *p->pool = (struct policy_pool) {
                .name = name->text, .where = yaml_tree_place(&r->tree, name).where, .ports_text = "",
                .membership = MEMBERSHIP_FULL, .longest = 24 * 3600, .rest = 600,
        };
        if (problem)
                yaml_tree_error(&r->tree, name, FINDING_POLICY_NAME, "pools: %s %s", report_quote(&r->report, name->text), problem);
        yaml_tree_check_keys(&r->tree, p->map, path_of(p, ""), policy_pool_keys, ELEMENTS(policy_pool_keys));
        read_membership(p);
        read_lease(p);
        read_duration(p, "rest", 0, &p->pool->rest);
        (void) yaml_tree_bool(&r->tree, yaml_tree_get(p->map, "index0"), path_of(p, ".index0"), &p->pool->index0);
        return read_p_keys(p) ?: read_ports(p) ?: read_allow(p);
}

int policy_read_pools(struct policy_reader *r, const struct yaml_tree_node *map)
{
        _cleanup_free_ uint32_t *holders = calloc(P_KEY_BASE_MASK + 1, sizeof(*holders));
        struct policy *p = r->policy;
        int e = 0;

        if (!map || !yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, "pools"))
                return 0;
        if (map->n_children > MAX_POOLS) {
                yaml_tree_error(&r->tree, map, FINDING_POLICY_POOL, "pools: too many pools: %u (accepted: at most %u)", map->n_children,
                                MAX_POOLS);
                return 0;
        }
        p->pools = arena_new_array(r->arena, struct policy_pool, map->n_children);
        if (!p->pools || !holders)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_partitions; i++)
                if (p->partitions[i].base > 0)
                        holders[p->partitions[i].base] = i + 1;
        for (const struct yaml_tree_node *c = map->children; e == 0 && c; c = c->next)
                if (expect_pool(r, c))
                        e = read_pool(&(struct pool_reader) { r, &p->pools[p->n_pools++], c, .holders = holders });
        return e;
}
