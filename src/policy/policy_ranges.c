/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/policy_reader.h"

/* The base at this offset of the node's text. least: it cannot be meant to be less. */
static int read_listed_base(struct policy_reader *r, const struct policy_range_list *list, const struct yaml_tree_node *node,
                            size_t offset, const char *text, uint16_t least, uint16_t *ret)
{
        uint16_t meant;
        const char *problem = policy_base_problem(text, ret, &meant);

        if (!problem)
                return 0;
        yaml_tree_error(&r->tree, node, list->code, "%s: %s %s", list->path, report_quote(&r->report, text), problem);
        if (meant < least)
                meant = 0;
        policy_hint_base(r, text, meant, "");
        policy_fix_base(r, node, offset, text, meant);
        return -EBADMSG;
}

static int read_range(struct policy_reader *r, const struct policy_range_list *list, const struct yaml_tree_node *node,
                      struct base_range *ret)
{
        struct base_range range = {};
        const char *dash;
        size_t length;
        char *first;

        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, list->path))
                return -EBADMSG;
        dash = strchr(node->text, '-');
        length = dash ? (size_t) (dash - node->text) : strlen(node->text);
        first = arena_strndup(r->arena, node->text, length);
        if (!first)
                return -ENOMEM;
        if (read_listed_base(r, list, node, 0, first, 0, &range.first) < 0 ||
            read_listed_base(r, list, node, dash ? length + 1 : 0, dash ? dash + 1 : first, range.first, &range.last) < 0)
                return -EBADMSG;
        if (range.first > range.last) {
                yaml_tree_error(&r->tree, node, list->code, "%s: the range %s runs backwards", list->path,
                                report_quote(&r->report, node->text));
                report_hint(&r->report, "write 0x%04x-0x%04x", range.last, range.first);
                return -EBADMSG;
        }
        *ret = range;
        return 0;
}

DEFINE_COMPARE(compare_ranges, struct base_range, ORDER(a->first, b->first))

/* Sorts ranges, and merges those that overlap or touch. Returns their number. */
static uint32_t sort_and_merge_ranges(struct base_range *ranges, uint32_t n)
{
        uint32_t used = 0;

        if (n == 0)
                return 0;
        SORT(ranges, n, compare_ranges);
        for (uint32_t i = 1; i < n; i++) {
                if (ranges[i].first <= ranges[used].last + 1)
                        ranges[used].last = MAX(ranges[used].last, ranges[i].last);
                else
                        ranges[++used] = ranges[i];
        }
        return used + 1;
}

int policy_read_ranges(struct policy_reader *r, const struct yaml_tree_node *node, const struct policy_range_list *list,
                       struct base_range **ret, uint32_t *ret_n)
{
        bool is_list = node->kind == YAML_TREE_LIST;
        uint32_t n = 0;

        *ret_n = 0;
        if (node->broken)
                return 0;
        if ((is_list && !node->children) || node->kind == YAML_TREE_MAP || yaml_tree_is_null(node)) {
                yaml_tree_error(&r->tree, node, list->code, "%s: is %s (accepted: a list of P_Keys and ranges, as in %s)", list->path,
                                node->kind == YAML_TREE_MAP ? "a map" : "empty", list->example);
                return 0;
        }
        *ret = arena_new_array(r->arena, struct base_range, is_list ? node->n_children : 1);
        if (!*ret)
                return -ENOMEM;
        YAML_TREE_FOR_EACH(c, node) {
                int e = read_range(r, list, c, &(*ret)[n]);

                if (e == -ENOMEM)
                        return e;
                n += e == 0;
        }
        *ret_n = sort_and_merge_ranges(*ret, n);
        return 0;
}
