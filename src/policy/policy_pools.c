/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/policy_keys.h"
#include "policy/policy_reader.h"
#include "util/duration.h"

#define NAME_MAX_LENGTH 64 /* of a user or group */
#define USEC            UINT64_C(1000000)

struct pool_reader {
        struct policy_reader *r;
        struct policy_pool *pool;
        const struct yaml_tree_node *map, *p_keys;
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

        if (!node || !yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return 0;
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
        const struct yaml_tree_node *node = yaml_tree_get(p->map, "membership");
        const char *path = path_of(p, ".membership");

        if (!node || !yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return;
        if (strcmp(node->text, "full") == 0)
                p->pool->membership = MEMBERSHIP_FULL;
        else if (strcmp(node->text, "limited") == 0)
                p->pool->membership = MEMBERSHIP_LIMITED;
        else
                refuse(p, node, "%s: %s is not a membership of a pool (accepted: full, limited)", path,
                       report_quote(&p->r->report, node->text));
}

/* In seconds. */
static void read_duration(const struct pool_reader *p, const char *key, uint64_t least, uint64_t *ret)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, key);
        const char *path = path_of(p, arena_printf(p->r->arena, ".%s", key) ?: ""), *problem;
        uint64_t v;

        if (!node || !yaml_tree_expect(&p->r->tree, node, YAML_TREE_SCALAR, path))
                return;
        problem = duration_problem(node->text, &v);
        if (problem) {
                refuse(p, node, "%s: %s %s (accepted: %s)", path, report_quote(&p->r->report, node->text), problem,
                       least > 0 ? "1s or more, or unlimited" : "0s or more");
                report_hint(&p->r->report, DURATION_HINT);
        } else if (v / USEC < least || v % USEC != 0) {
                refuse(p, node, "%s: %s is not a whole number of seconds (accepted: %s)", path, report_quote(&p->r->report, node->text),
                       least > 0 ? "1s or more, or unlimited" : "0s or more");
        } else {
                *ret = v / USEC;
        }
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
                return "is longer than 64 characters";
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
                refuse(p, node, "%s: %s %s (accepted: names of users and groups)", path, report_quote(&p->r->report, node->text), problem);
        else if (text_is_one_of(node->text, names, p->pool->n_allow))
                refuse(p, node, "%s: %s is there twice", path, report_quote(&p->r->report, node->text));
        else
                names[p->pool->n_allow++] = node->text;
}

static int read_allow(const struct pool_reader *p)
{
        const struct yaml_tree_node *node = yaml_tree_get(p->map, "allow");
        const char *path = path_of(p, ".allow"), **names;
        bool list = node && node->kind == YAML_TREE_LIST;

        names = arena_new_array(p->r->arena, const char *, list ? node->n_children : 1);
        if (!names)
                return -ENOMEM;
        p->pool->allow = names;
        if (!node) {
                names[p->pool->n_allow++] = "root";
                return 0;
        }
        if (node->kind == YAML_TREE_MAP || (list && node->n_children == 0)) {
                refuse(p, node, "%s: is %s (accepted: a name, or a list of names, of users and groups)", path,
                       list ? "empty, so that nobody could use the pool" : "a map");
                return 0;
        }
        for (const struct yaml_tree_node *c = list ? node->children : node; c; c = list ? c->next : NULL)
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

static bool is_owned(const struct policy *p, const struct base_range *range)
{
        for (uint32_t i = 0; i < p->n_owns; i++)
                if (range->first >= p->owns[i].first && range->last <= p->owns[i].last)
                        return true;
        return p->n_owns == 0; /* `owns` has errors of its own */
}

static bool overlap(const struct base_range *a, const struct base_range *b)
{
        return a->first <= b->last && b->first <= a->last;
}

static void check_partitions(const struct pool_reader *p, const struct base_range *range)
{
        const struct policy *policy = p->r->policy;

        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                const struct policy_partition *other = &policy->partitions[i];

                if (other->base >= range->first && other->base <= range->last)
                        refuse(p, p->p_keys, "%s: %s has 0x%04x, the P_Key of partition '%s'", path_of(p, ".pkeys"), range_text(p, range),
                               other->base, report_escape(&p->r->report, other->name));
        }
}

static void check_pools(const struct pool_reader *p, const struct base_range *range)
{
        for (const struct policy_pool *other = p->r->policy->pools; other < p->pool; other++)
                for (uint32_t i = 0; i < other->n_ranges; i++) {
                        if (!overlap(range, &other->ranges[i]))
                                continue;
                        refuse(p, p->p_keys, "%s: %s overlaps with %s of pool '%s' in line %u", path_of(p, ".pkeys"), range_text(p, range),
                               range_text(p, &other->ranges[i]), report_escape(&p->r->report, other->name), other->where.line);
                        report_hint(&p->r->report, "give each pool P_Keys of its own");
                }
}

static int read_p_keys(struct pool_reader *p)
{
        int e;

        p->p_keys = get_required(p, "pkeys", "a range of P_Keys, as in 0x1000-0x1fff, or a list of ranges");
        if (!p->p_keys)
                return 0;
        e = policy_read_ranges(p->r, p->p_keys, path_of(p, ".pkeys"), FINDING_POLICY_POOL, &p->pool->ranges, &p->pool->n_ranges);
        for (uint32_t i = 0; e == 0 && i < p->pool->n_ranges; i++) {
                const struct base_range *range = &p->pool->ranges[i];

                if (!is_owned(p->r->policy, range))
                        refuse(p, p->p_keys, "%s: %s is not in `owns`", path_of(p, ".pkeys"), range_text(p, range));
                check_partitions(p, range);
                check_pools(p, range);
        }
        return e;
}

/* ---- pools -------------------------------------------------------------------------------------------------------- */

static int read_pool(struct policy_reader *r, const struct yaml_tree_node *node, struct policy_pool *pool)
{
        struct pool_reader p = { .r = r, .pool = pool, .map = node };
        const struct yaml_tree_node *index0 = yaml_tree_get(node, "index0");
        const char *problem = selector_name_problem(node->key->text);

        *pool = (struct policy_pool) {
                .name = node->key->text, .where = yaml_tree_place(&r->tree, node->key).where, .ports_text = "",
                .membership = MEMBERSHIP_FULL, .longest = 24 * 3600, .rest = 600,
        };
        if (problem)
                yaml_tree_error(&r->tree, node->key, FINDING_POLICY_NAME, "pools: %s %s", report_quote(&r->report, pool->name), problem);
        yaml_tree_check_keys(&r->tree, node, path_of(&p, ""), policy_pool_keys, ELEMENTS(policy_pool_keys));
        read_membership(&p);
        read_lease(&p);
        read_duration(&p, "rest", 0, &pool->rest);
        if (index0)
                (void) yaml_tree_bool(&r->tree, index0, path_of(&p, ".index0"), &pool->index0);
        return read_p_keys(&p) ?: read_ports(&p) ?: read_allow(&p);
}

int policy_read_pools(struct policy_reader *r, const struct yaml_tree_node *map)
{
        struct policy *p = r->policy;
        int e = 0;

        if (!map || !yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, "pools"))
                return 0;
        p->pools = arena_new_array(r->arena, struct policy_pool, map->n_children);
        if (!p->pools)
                return -ENOMEM;
        for (const struct yaml_tree_node *c = map->children; e == 0 && c; c = c->next) {
                const char *path = policy_path(r, "pools.", c->key->text, "");

                if (!yaml_tree_expect(&r->tree, c, YAML_TREE_MAP, path))
                        continue;
                e = read_pool(r, c, &p->pools[p->n_pools++]);
        }
        return e;
}

/* ---- a policy with pools ------------------------------------------------------------------------------------------ */

const struct policy_pool *policy_find_pool(const struct policy *p, const char *name)
{
        for (uint32_t i = 0; i < p->n_pools; i++)
                if (strcmp(p->pools[i].name, name) == 0)
                        return &p->pools[i];
        return NULL;
}

const struct policy_pool *policy_pool_of_base(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_pools; i++)
                for (uint32_t k = 0; k < p->pools[i].n_ranges; k++)
                        if (base >= p->pools[i].ranges[k].first && base <= p->pools[i].ranges[k].last)
                                return &p->pools[i];
        return NULL;
}
