/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/policy_keys.h"
#include "policy/policy_reader.h"

static void read_version(struct policy_reader *r, const struct yaml_tree_node *node)
{
        struct place top = { .where = { r->policy->file, 1, 1 } };

        if (!node) {
                top.source_line = yaml_source_line(&r->tree.source, r->arena, 1);
                report_add(&r->report, FINDING_ERROR, FINDING_KEY_MISSING, &top, "the key 'version' is missing (accepted: 1)");
                report_hint(&r->report, "begin the file with `version: 1`");
                return;
        }
        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, "version") || strcmp(node->text, "1") == 0)
                return;
        yaml_tree_error(&r->tree, node, FINDING_POLICY_VERSION, "version: %s is not a version of this format (accepted: 1)",
                        report_quote(&r->report, node->text));
}

/* ---- owns ----------------------------------------------------------------------------------------------------- */

static int read_owns(struct policy_reader *r, const struct yaml_tree_node *node)
{
        static const struct policy_range_list list = { "owns", "[0x7fff, 0x0001-0x0fff]", FINDING_POLICY_OWNS };
        struct policy *p = r->policy;

        if (node)
                return policy_read_ranges(r, node, &list, &p->owns, &p->n_owns);
        p->owns = arena_new_object(r->arena, struct base_range);
        if (!p->owns)
                return -ENOMEM;
        p->owns[p->n_owns++] = (struct base_range) { 1, P_KEY_BASE_MASK };
        return 0;
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

static int read_policy(struct policy_reader *r)
{
        struct yaml_tree_node *root = r->tree.root, *node;
        struct place whole = { .where = { r->policy->file, 1, 1 } };
        int e;

        if (!root) {
                report_add(&r->report, FINDING_ERROR, FINDING_YAML_EMPTY, &whole, "the policy is empty");
                report_hint(&r->report, "the smallest policy is `version: 1` and `partitions: {}`: the default partition only");
                return 0;
        }
        yaml_tree_check_keys(&r->tree, root, "", policy_keys, ELEMENTS(policy_keys));
        read_version(r, yaml_tree_get(root, "version"));
        (void) yaml_tree_bool(&r->tree, yaml_tree_get(root, "strict"), "strict", &r->policy->strict);
        e = read_owns(r, yaml_tree_get(root, "owns")) ?: policy_read_groups(r, yaml_tree_get(root, "groups"));
        if (e < 0)
                return e;
        node = yaml_tree_get(root, "partitions");
        if (!node) {
                yaml_tree_error(&r->tree, root, FINDING_KEY_MISSING, "the key 'partitions' is missing");
                report_hint(&r->report, "for the default partition only, write `partitions: {}`");
        }
        return policy_read_partitions(r, node) ?: policy_check_partitions(r) ?:
               policy_read_pools(r, yaml_tree_get(root, "pools")) ?: policy_check_contradictions(r);
}

/* Recognizes a line of OpenSM's partitions.conf: `Default=0x7fff, ipoib: ALL=full;` */
static const char *opensm_hint(const char *line)
{
        if (!strchr(line, '=') || (!strstr(line, "=0x") && !strchr(line, ';')))
                return NULL;
        return "this looks like OpenSM's partitions.conf: `pkeyctl import FILE` converts it to a partitions.yaml";
}

int policy_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                 struct policy **ret)
{
        struct policy_reader r = { .arena = a };
        int e;

        report_init(&r.report, findings);
        r.policy = arena_new_object(a, struct policy);
        if (!r.policy)
                return -ENOMEM;
        r.policy->file = arena_strdup(a, file_name);
        if (!r.policy->file)
                return -ENOMEM;
        r.selectors = (struct selector_reader) { .arena = a, .report = &r.report, .policy = r.policy };
        e = yaml_tree_parse(&r.tree, a, r.policy->file, bytes, n, opensm_hint, &r.report) ?: read_policy(&r);
        e = yaml_tree_finish(&r.tree, e);
        if (e == 0)
                *ret = r.policy;
        return e;
}
