/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "util/nearest.h"
#include "policy/policy_keys.h"
#include "policy/policy_reader.h"
#include "util/vector.h"

/* ---- P_Keys --------------------------------------------------------------------------------------------------- */

#define HEX_DIGITS "0123456789abcdefABCDEF"

static const char *not_hex_problem(const char *text, uint16_t *ret_meant)
{
        size_t n = strlen(text);
        bool decimal = n > 0 && strspn(text, "0123456789") == n, hex = n > 0 && n <= 4 && strspn(text, HEX_DIGITS) == n;
        unsigned long v = decimal ? strtoul(text, NULL, 10) : hex ? strtoul(text, NULL, 16) : 0;

        *ret_meant = v <= P_KEY_BASE_MASK ? (uint16_t) v : 0;
        return decimal ? "is decimal (accepted: hex, 0x0001 to 0x7fff)" : "is not a P_Key (accepted: hex, 0x0001 to 0x7fff)";
}

const char *policy_base_problem(const char *text, uint16_t *ret, uint16_t *ret_meant)
{
        size_t n = strlen(text);
        unsigned long v;

        if (n < 3 || text[0] != '0' || text[1] != 'x' || strspn(text + 2, HEX_DIGITS) != n - 2)
                return not_hex_problem(text, ret_meant);
        *ret_meant = 0;
        if (n > 6)
                return "has more than four hex digits (accepted: 0x0001 to 0x7fff)";
        v = strtoul(text, NULL, 16);
        if ((v & P_KEY_BASE_MASK) == 0)
                return "is not a partition: it marks an unused table entry (accepted: 0x0001 to 0x7fff)";
        if (v & P_KEY_FULL_BIT) {
                *ret_meant = v & P_KEY_BASE_MASK;
                return "has the high bit set, which means full membership and is not part of the partition's number (accepted: "
                       "0x0001 to 0x7fff)";
        }
        *ret = (uint16_t) v;
        return NULL;
}

/* The base that decimal digits are if 0x is missing in front of them; 0: they can only be decimal. */
static uint16_t base_without_0x(const char *text)
{
        size_t n = strlen(text);

        return n <= 4 && strspn(text, "0123456789") == n ? strtoul(text, NULL, 16) & P_KEY_BASE_MASK : 0;
}

void policy_hint_base(struct policy_reader *r, const char *text, uint16_t meant, const char *more)
{
        uint16_t hex = base_without_0x(text);

        if (meant > 0 && hex > 0 && hex != meant)
                report_hint(&r->report, "write 0x%04x, or 0x%04x if it is hexadecimal", meant, hex);
        else if (meant > 0)
                report_hint(&r->report, "write 0x%04x%s", meant, more);
}

/* Either decimal with five digits, which no P_Key in hex has, or hex with a digit first and a letter that no decimal number has.
 * Not if it begins with 0: then it may be 0x with another character for the x, or without it. Not if the high bit is set: it may be
 * wrong, or the membership. */
static bool base_is_certain(const char *text)
{
        size_t n = strlen(text), decimal = strspn(text, "0123456789"), hex = strspn(text, HEX_DIGITS);

        if (text[0] < '1' || text[0] > '9')
                return false;
        return n == 5 ? decimal == n : n == 4 && hex == n && strspn(text, "0123456789eE") < n;
}

void policy_fix_base(struct policy_reader *r, const struct yaml_tree_node *node, size_t offset, const char *text, uint16_t meant)
{
        if (meant > 0 && base_is_certain(text))
                yaml_tree_fix(&r->tree, node, offset, strlen(text), arena_printf(r->arena, "0x%04x", meant));
}

static void read_p_key(struct policy_reader *r, struct policy_partition *partition, struct partition_nodes *nodes,
                       const struct yaml_tree_node *map)
{
        const char *path = policy_path(r, "partitions.", partition->name, ".pkey"), *problem;
        const struct yaml_tree_node *node = yaml_tree_get(map, "pkey");
        uint16_t meant;

        if (!node) {
                yaml_tree_error(&r->tree, nodes->name, FINDING_KEY_MISSING,
                                "partitions.%s: the key 'pkey' is missing (accepted: 0x0001 to 0x7fff)",
                                report_escape(&r->report, partition->name));
                if (strcmp(partition->name, "default") == 0)
                        report_hint(&r->report, "write `pkey: 0x7fff`");
                return;
        }
        nodes->p_key = node;
        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, path))
                return;
        problem = policy_base_problem(node->text, &partition->base, &meant);
        if (!problem)
                return;
        yaml_tree_error(&r->tree, node, FINDING_POLICY_P_KEY, "%s: %s %s", path, report_quote(&r->report, node->text), problem);
        policy_hint_base(r, node->text, meant, strstr(problem, "high bit") ? " here, and `full` as the membership" : "");
        policy_fix_base(r, node, 0, node->text, meant);
}

/* ---- members -------------------------------------------------------------------------------------------------- */

/* The membership that was probably meant; NULL: unknown. *ret_certain: no other one can have been meant. That is so for
 * abbreviations and for `partial`; but `yes` may mean full or limited, and `no` none or limited. */
static const char *near_membership(const char *text, bool *ret_certain)
{
        static const struct {
                const char *word, *meant;
                bool is_certain;
        } synonyms[] = {
                { "yes", "full", false }, { "true", "full", false }, { "f", "full", true }, { "rw", "full", false },
                { "no", "none", false }, { "false", "none", false }, { "null", "none", false }, { "off", "none", false },
                { "l", "limited", true }, { "lim", "limited", true }, { "partial", "limited", true }, { "member", "limited", false },
        };
        const char *words[MEMBERSHIP_BOTH + 1];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(synonyms); i++) {
                if (strcasecmp(text, synonyms[i].word) != 0)
                        continue;
                *ret_certain = synonyms[i].is_certain;
                return synonyms[i].meant;
        }
        for (int m = MEMBERSHIP_NONE; m <= MEMBERSHIP_BOTH; m++)
                words[n++] = membership_to_string((enum membership) m);
        *ret_certain = nearest_certain(text, words, n);
        return nearest_word(text, words, n);
}

/* Adds a hint to the last finding, about this membership, and a correction if it is certain. The name of a group is not corrected:
 * it may be in the wrong place. */
static void suggest_membership(struct policy_reader *r, const struct yaml_tree_node *node)
{
        bool is_certain;
        const char *near = near_membership(node->text, &is_certain);

        if (!near)
                return;
        report_hint(&r->report, "did you mean '%s'?", near);
        if (is_certain && selector_find_group(r->policy, node->text) < 0)
                yaml_tree_fix_scalar(&r->tree, node, near);
}

static int read_membership(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, enum membership *ret)
{
        const char *selector = report_quote(&r->report, node->key->text);
        int membership;

        if (node->broken)
                return -EBADMSG;
        if (node->kind != YAML_TREE_SCALAR || node->text[0] == '\0' || yaml_tree_is_null(node)) {
                yaml_tree_error(&r->tree, node, FINDING_POLICY_MEMBERSHIP,
                                "%s: the membership of %s is %s (accepted: full, limited, both, none)", path, selector,
                                node->kind != YAML_TREE_SCALAR ? yaml_tree_kind_to_string(node->kind) : "missing");
                if (node->kind == YAML_TREE_LIST)
                        report_hint(&r->report, "write SELECTOR: MEMBERSHIP in each line; to name several ports, define a group");
                return -EBADMSG;
        }
        membership = selector_find_membership(node->text);
        if (membership >= 0 && strcmp(node->text, membership_to_string((enum membership) membership)) == 0) {
                *ret = (enum membership) membership;
                return 0;
        }
        yaml_tree_error(&r->tree, node, FINDING_POLICY_MEMBERSHIP,
                        "%s: %s is not a membership (accepted: full, limited, both, none)",
                        path, report_quote(&r->report, node->text));
        suggest_membership(r, node);
        return -EBADMSG;
}

static int read_rule(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, struct policy_rule *rule)
{
        struct place place = yaml_tree_place(&r->tree, node->key);
        int e, membership;

        rule->text = node->key->text;
        rule->where = place.where;
        rule->source_line = place.source_line;
        e = policy_read_selectors(r, node->key, path, &rule->selectors, &rule->n_selectors);
        if (e == -ENOMEM)
                return e;
        membership = read_membership(r, node, path, &rule->membership);
        return e < 0 ? e : membership;
}

/* A list of maps is a common mistake, and so is a colon without a blank after it. */
static bool expect_members(struct policy_reader *r, const struct yaml_tree_node *node, const char *path)
{
        bool is_list = node->kind == YAML_TREE_LIST;

        if (node->kind == YAML_TREE_MAP || yaml_tree_is_null(node) || node->broken)
                return yaml_tree_expect(&r->tree, node, YAML_TREE_MAP, path);
        yaml_tree_error(&r->tree, node, FINDING_YAML_TYPE, "%s: is %s (accepted: a map of selectors to memberships)", path,
                        yaml_tree_kind_to_string(node->kind));
        report_hint(&r->report, is_list ? "remove the dashes and write SELECTOR: MEMBERSHIP in each line"
                                        : "write SELECTOR: MEMBERSHIP in each line, with a blank after the colon");
        return false;
}

DEFINE_COMPARE(compare_candidates, struct policy_candidate,
               ORDER(b->selector->specificity, a->selector->specificity) ?: ORDER(a->rule, b->rule))

static int collect_candidates(struct arena *a, struct policy_partition *p)
{
        uint32_t allocated = 0;
        int r = 0;

        for (uint32_t rule = 0; rule < p->n_rules; rule++)
                for (uint32_t i = 0; r == 0 && i < p->rules[rule].n_selectors; i++)
                        r = VECTOR_ADD(a, p->candidates, p->n_candidates, allocated,
                                       (struct policy_candidate) { p->rules[rule].selectors[i], rule });
        SORT(p->candidates, p->n_candidates, compare_candidates);
        return r;
}

static int read_members(struct policy_reader *r, struct policy_partition *partition, struct partition_nodes *nodes,
                        const struct yaml_tree_node *map)
{
        const char *path = policy_path(r, "partitions.", partition->name, ".members");
        const struct yaml_tree_node *node = yaml_tree_get(map, "members");
        struct place place = yaml_tree_place(&r->tree, nodes->name);
        int e;

        if (!node) {
                /* every endport is a member of the default partition, with or without lines */
                if (partition->base != P_KEY_DEFAULT_BASE)
                        report_add(&r->report, FINDING_WARNING, FINDING_KEY_MISSING, &place,
                                   "partitions.%s: has no 'members', so no port is a member",
                                   report_escape(&r->report, partition->name));
                return 0;
        }
        if (!expect_members(r, node, path))
                return 0;
        partition->rules = arena_new_array(r->arena, struct policy_rule, node->n_children);
        nodes->memberships = arena_new_array(r->arena, const struct yaml_tree_node *, node->n_children);
        if (!partition->rules || !nodes->memberships)
                return -ENOMEM;
        for (const struct yaml_tree_node *c = node->children; c; c = c->next) {
                e = read_rule(r, c, path, &partition->rules[partition->n_rules]);
                if (e == -ENOMEM)
                        return e;
                if (e == 0)
                        nodes->memberships[partition->n_rules++] = c;
        }
        return collect_candidates(r->arena, partition);
}

/* ---- partitions ----------------------------------------------------------------------------------------------- */

static int read_partition(struct policy_reader *r, const struct yaml_tree_node *node,
                          struct policy_partition *partition, struct partition_nodes *nodes)
{
        const char *path = policy_path(r, "partitions.", node->key->text, ""), *problem;
        size_t errors = r->report.n_errors;
        int e;

        nodes->name = node->key;
        partition->name = node->key->text;
        partition->where = yaml_tree_place(&r->tree, node->key).where;
        problem = selector_name_problem(node->key->text);
        if (problem)
                yaml_tree_error(&r->tree, node->key, FINDING_POLICY_NAME, "partitions: %s %s",
                                report_quote(&r->report, node->key->text), problem);
        if (yaml_tree_is_null(node)) {
                yaml_tree_error(&r->tree, node, FINDING_YAML_TYPE,
                                "%s: has no value (accepted: a map with pkey and members)", path);
                return 0;
        }
        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_MAP, path))
                return 0;
        yaml_tree_check_keys(&r->tree, node, path, policy_partition_keys, ELEMENTS(policy_partition_keys));
        read_p_key(r, partition, nodes, node);
        nodes->index0 = yaml_tree_get(node, "index0");
        (void) yaml_tree_bool(&r->tree, nodes->index0, policy_path(r, "partitions.", node->key->text, ".index0"), &partition->index0);
        path = policy_path(r, "partitions.", node->key->text, ".ipoib");
        e = policy_read_ipoib(r, yaml_tree_get(node, "ipoib"), path, partition) ?: read_members(r, partition, nodes, node);
        nodes->sound = r->report.n_errors == errors;
        return e;
}

int policy_read_partitions(struct policy_reader *r, const struct yaml_tree_node *map)
{
        struct policy *p = r->policy;
        size_t n;
        int e;

        if (map && !yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, "partitions"))
                map = NULL;
        /* one more, for the default partition if the file does not define it */
        n = map ? map->n_children + 1 : 1;
        p->partitions = arena_new_array(r->arena, struct policy_partition, n);
        r->nodes = arena_new_array(r->arena, struct partition_nodes, n);
        if (!p->partitions || !r->nodes)
                return -ENOMEM;
        for (const struct yaml_tree_node *c = map ? map->children : NULL; c; c = c->next) {
                e = read_partition(r, c, &p->partitions[p->n_partitions], &r->nodes[p->n_partitions]);
                if (e < 0)
                        return e;
                p->n_partitions++;
        }
        return 0;
}
