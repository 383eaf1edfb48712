/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/policy_reader.h"
#include "util/vector.h"

#define GROUPS_MAX_DEPTH 32

const char *policy_path(struct policy_reader *r, const char *prefix, const char *name, const char *suffix)
{
        return report_text(&r->report, "%s%s%s", prefix, report_escape(&r->report, name), suffix);
}

int policy_read_selectors(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, struct selector ***ret,
                          uint32_t *ret_n)
{
        struct selector_source source = { node->text, path, yaml_tree_place(&r->tree, node), node->verbatim };

        source.place.where.column += node->verbatim && !node->plain; /* after the quote */
        return selector_parse_list(&r->selectors, &source, ret, ret_n);
}

DEFINE_COMPARE(compare_groups, struct policy_group, strcmp(a->name, b->name))

static int read_names(struct policy_reader *r, const struct yaml_tree_node *map)
{
        struct policy *p = r->policy;

        p->groups = arena_new_array(r->arena, struct policy_group, map->n_children);
        if (!p->groups)
                return -ENOMEM;
        for (const struct yaml_tree_node *c = map->children; c; c = c->next) {
                const char *problem = selector_name_problem(c->key->text);

                if (problem) {
                        yaml_tree_error(&r->tree, c->key, FINDING_POLICY_NAME, "groups: %s %s",
                                        report_quote(&r->report, c->key->text), problem);
                        continue;
                }
                p->groups[p->n_groups++] = (struct policy_group) {
                        .name = c->key->text, .where = yaml_tree_place(&r->tree, c->key).where,
                };
        }
        qsort(p->groups, p->n_groups, sizeof(*p->groups), compare_groups);
        return 0;
}

/* The value of a group, or an item of it. */
static int add_item(struct policy_reader *r, const struct yaml_tree_node *node, const char *path,
                    struct policy_group *group, uint32_t *allocated)
{
        struct selector **selectors;
        uint32_t n;
        int e;

        if (node->broken)
                return -EBADMSG;
        if (node->kind != YAML_TREE_SCALAR || yaml_tree_is_null(node)) {
                yaml_tree_error(&r->tree, node, FINDING_YAML_TYPE, "%s: is %s (accepted: a selector, or a list of selectors)", path,
                                yaml_tree_is_null(node) ? "empty" : yaml_tree_kind_to_string(node->kind));
                if (node->kind == YAML_TREE_MAP)
                        report_hint(&r->report, "a group lists selectors only; memberships belong in `partitions`");
                return -EBADMSG;
        }
        e = policy_read_selectors(r, node, path, &selectors, &n);
        if (e < 0)
                return e;
        if (VECTOR_EXTEND(r->arena, group->selectors, group->n_selectors, *allocated, n) < 0)
                return -ENOMEM;
        memcpy(group->selectors + group->n_selectors, selectors, n * sizeof(*selectors));
        group->n_selectors += n;
        return 0;
}

static int read_members(struct policy_reader *r, struct policy_group *group, const struct yaml_tree_node *value)
{
        const char *path = policy_path(r, "groups.", group->name, "");
        uint32_t allocated = 0;

        YAML_TREE_FOR_EACH(c, value) {
                int e = add_item(r, c, path, group, &allocated);

                if (e == -ENOMEM)
                        return e;
        }
        return 0;
}

/* ---- cycles --------------------------------------------------------------------------------------------------- */

struct walk {
        struct policy_reader *reader;
        uint8_t *heights; /* of each group: 1 + the levels of groups below it; 0: not known yet */
        uint32_t stack[GROUPS_MAX_DEPTH]; /* the groups from the first one to the current one */
        unsigned depth;
};

static void refuse_cycle(struct walk *w, const struct selector *at, unsigned from)
{
        struct policy_reader *r = w->reader;
        const struct policy_group *groups = r->policy->groups;
        const char *first = groups[w->stack[from]].name, *chain = first;

        for (unsigned i = from + 1; i < w->depth && chain; i++)
                chain = arena_printf(r->report.findings->arena, "%s -> %s", chain, groups[w->stack[i]].name);
        report_add(&r->report, FINDING_ERROR, FINDING_POLICY_GROUP_CYCLE, &at->place,
                   "groups.%s: the group contains itself: %s -> %s", groups[w->stack[w->depth - 1]].name,
                   chain ? chain : "...", first);
        report_hint(&r->report, "remove one of these groups from the group before it in this chain");
}

/* Returns the height of a group; GROUPS_MAX_DEPTH + 1: it is nested too deeply or contains itself, and this was reported. */
static uint8_t walk_group(struct walk *w, uint32_t group)
{
        struct policy_reader *r = w->reader;
        const struct policy_group *g = &r->policy->groups[group];
        uint8_t height = 1, below;
        unsigned k;

        if (w->heights[group] > 0)
                return w->heights[group];
        w->stack[w->depth++] = group;
        for (uint32_t i = 0; i < g->n_selectors && height <= GROUPS_MAX_DEPTH; i++) {
                const struct selector *s = g->selectors[i];

                if (s->kind != SELECTOR_GROUP)
                        continue;
                for (k = 0; k < w->depth && w->stack[k] != s->group; k++)
                        ;
                if (k < w->depth) {
                        refuse_cycle(w, s, k);
                        height = GROUPS_MAX_DEPTH + 1;
                        break;
                }
                below = w->depth < GROUPS_MAX_DEPTH ? walk_group(w, s->group) : GROUPS_MAX_DEPTH;
                if (below == GROUPS_MAX_DEPTH)
                        report_add(&r->report, FINDING_ERROR, FINDING_POLICY_GROUP_CYCLE, &s->place,
                                   "groups.%s: groups are nested deeper than %d levels", g->name, GROUPS_MAX_DEPTH);
                height = MAX(height, (uint8_t) MIN(below + 1, GROUPS_MAX_DEPTH + 1));
        }
        w->depth--;
        w->heights[group] = height;
        return height;
}

static int check_cycles(struct policy_reader *r)
{
        struct walk w = { .reader = r };

        w.heights = arena_new_array(r->arena, uint8_t, r->policy->n_groups);
        if (!w.heights)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->policy->n_groups; i++)
                (void) walk_group(&w, i);
        return 0;
}

int policy_read_groups(struct policy_reader *r, const struct yaml_tree_node *map)
{
        int e, group;

        if (!map || !yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, "groups"))
                return 0;
        e = read_names(r, map);
        if (e < 0)
                return e;
        for (const struct yaml_tree_node *c = map->children; c; c = c->next) {
                group = selector_find_group(r->policy, c->key->text);
                if (group < 0)
                        continue;
                e = read_members(r, &r->policy->groups[group], c);
                if (e < 0)
                        return e;
        }
        return check_cycles(r);
}
