/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The `ipoib` of a partition: the multicast groups that the SM creates for it. */
#include <errno.h>
#include <string.h>

#include "ib/multicast.h"
#include "policy/policy_keys.h"
#include "policy/policy_reader.h"

#define MAX_GROUPS 1024

/* The scalar at a key of a map; NULL: the key is missing, or was refused. Extends *path, that of the map, by the key. */
static const struct yaml_tree_node *get_scalar(struct policy_reader *r, const struct yaml_tree_node *map, const char *key,
                                               const char **path)
{
        const struct yaml_tree_node *node = yaml_tree_get(map, key);

        *path = report_text(&r->report, "%s.%s", *path, key);
        return node && yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, *path) ? node : NULL;
}

static void refuse(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, const char *what)
{
        yaml_tree_error(&r->tree, node, FINDING_POLICY_IPOIB, "%s: %s %s", path, report_quote(&r->report, node->text), what);
}

/* Decimal, or hexadecimal with 0x, of up to 18 digits. Returns false if it is not a number or larger than max. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
        bool hex = text[0] == '0' && text[1] == 'x';
        const char *digits = hex ? text + 2 : text;
        size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

        if (n == 0 || n > 18 || digits[n])
                return false;
        *ret = strtoull(digits, NULL, hex ? 16 : 10); /* too large a number becomes UINT64_MAX */
        return *ret <= max;
}

/* fallback: the value if the key is missing or was refused. */
static uint64_t read_number(struct policy_reader *r, const struct yaml_tree_node *map, const char *path, const char *key,
                            uint64_t max, const char *problem, uint64_t fallback)
{
        const struct yaml_tree_node *node = get_scalar(r, map, key, &path);
        uint64_t v;

        if (!node)
                return fallback;
        if (parse_number(node->text, max, &v))
                return v;
        refuse(r, node, path, problem);
        return fallback;
}

static void read_mtu(struct policy_reader *r, const struct yaml_tree_node *map, const char *path, struct multicast_parameters *p)
{
        const struct yaml_tree_node *node = get_scalar(r, map, "mtu", &path);
        uint64_t v;

        if (!node)
                return;
        if (parse_number(node->text, UINT16_MAX, &v) && multicast_mtu_code(v)) {
                p->mtu = multicast_mtu_code(v);
                return;
        }
        refuse(r, node, path, "is not an MTU in bytes (accepted: 256, 512, 1024, 2048, 4096)");
        if (!parse_number(node->text, 5, &v) || !multicast_mtu_bytes((uint8_t) v))
                return;
        report_hint(&r->report, "if %s is the code of a partitions.conf, write %u", node->text, multicast_mtu_bytes((uint8_t) v));
        /* no MTU in bytes is this short. (But the rate 4 may be what is left of 40.) */
        yaml_tree_fix_scalar(&r->tree, node, arena_printf(r->arena, "%u", multicast_mtu_bytes((uint8_t) v)));
}

static void read_rate(struct policy_reader *r, const struct yaml_tree_node *map, const char *path, struct multicast_parameters *p)
{
        const struct yaml_tree_node *node = get_scalar(r, map, "rate", &path);
        uint64_t v;

        if (!node)
                return;
        if (multicast_rate_code(node->text)) {
                p->rate = multicast_rate_code(node->text);
                return;
        }
        refuse(r, node, path, "is not a rate in Gb/s (accepted: 2.5, 5, 10, "
               "14, 20, 25, 28, 30, 40, 50, 56, 60, 80, 100, 112, 120, 168, 200, 300, 400, 600, 800, 1200)");
        if (parse_number(node->text, UINT8_MAX, &v) && multicast_rate_text((uint8_t) v))
                report_hint(&r->report, "if %s is the code of a partitions.conf, write %s", node->text,
                            multicast_rate_text((uint8_t) v));
}

static void read_scope(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, uint16_t *scopes)
{
        uint64_t v;

        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, path))
                return;
        if (parse_number(node->text, MULTICAST_MAX_SCOPE, &v) && v > 0)
                *scopes |= (uint16_t) (1u << v);
        else
                refuse(r, node, path, "is not a scope (accepted: 1 to 15; 2 is link-local, 5 site-local, 14 global)");
}

static void read_scopes(struct policy_reader *r, const struct yaml_tree_node *map, const char *path, struct multicast_parameters *p)
{
        const struct yaml_tree_node *node = yaml_tree_get(map, "scope");
        uint16_t scopes = 0;

        path = report_text(&r->report, "%s.scope", path);
        YAML_TREE_FOR_EACH(c, node)
                read_scope(r, c, path, &scopes);
        if (node && node->kind == YAML_TREE_LIST && !node->children)
                yaml_tree_error(&r->tree, node, FINDING_POLICY_IPOIB,
                                "%s: the list is empty (accepted: a scope, or a list of scopes)", path);
        if (scopes)
                p->scopes = scopes;
}

static void read_parameters(struct policy_reader *r, const struct yaml_tree_node *map, const char *path,
                            struct multicast_parameters *p)
{
        read_mtu(r, map, path, p);
        read_rate(r, map, path, p);
        read_scopes(r, map, path, p);
        p->sl = (uint8_t) read_number(r, map, path, "sl", MULTICAST_MAX_SL, "is not an SL (accepted: 0 to 15)", p->sl);
        p->q_key = (uint32_t) read_number(r, map, path, "q_key", UINT32_MAX, "is not a Q_Key (accepted: up to 0xffffffff)",
                                          p->q_key);
        p->tclass = (uint8_t) read_number(r, map, path, "tclass", UINT8_MAX, "is not a traffic class (accepted: 0 to 255)",
                                          p->tclass);
        p->flow_label = (uint32_t) read_number(r, map, path, "flow_label", MULTICAST_MAX_FLOW,
                                               "is not a flow label (accepted: up to 0xfffff)", p->flow_label);
}

/* ---- multicast groups besides the broadcast group ------------------------------------------------------------- */

/* OpenSM logs and ignores a group that breaks these rules. */
static void check_ip_group(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, uint16_t base,
                           const struct multicast_parameters *broadcast, const struct multicast_group *group)
{
        if (!mgid_is_ip(&group->mgid))
                return;
        if (!multicast_fits(broadcast, group))
                refuse(r, node, path, "carries IP, so its mtu and rate must be those of the partition's broadcast group");
        if (base && !mgid_fits_partition(&group->mgid, base))
                refuse(r, node, path, "carries IP and contains another partition's P_Key (accepted: this partition's P_Key with "
                       "the high bit set, or 0)");
}

static void read_group(struct policy_reader *r, const struct yaml_tree_node *node, const char *path, uint16_t base,
                       const struct multicast_parameters *broadcast, struct multicast_group *ret)
{
        const struct yaml_tree_node *gid = node;

        if (node->kind == YAML_TREE_MAP) {
                yaml_tree_check_keys(&r->tree, node, path, policy_group_keys, ELEMENTS(policy_group_keys));
                gid = yaml_tree_get(node, "mgid");
                if (!gid) {
                        yaml_tree_error(&r->tree, node, FINDING_KEY_MISSING, "%s: the key 'mgid' is missing", path);
                        return;
                }
        }
        if (!yaml_tree_expect(&r->tree, gid, YAML_TREE_SCALAR, path))
                return;
        if (mgid_parse(gid->text, &ret->mgid) < 0) {
                refuse(r, gid, path, "is not a multicast GID (accepted: as in ff12:401b::16)");
                return;
        }
        ret->parameters = multicast_inherit(broadcast, &ret->mgid);
        if (node->kind == YAML_TREE_MAP)
                read_parameters(r, node, path, &ret->parameters);
        check_ip_group(r, gid, path, base, broadcast, ret);
}

static int read_groups(struct policy_reader *r, const struct yaml_tree_node *map, const char *path, uint16_t base,
                       struct ipoib *ret)
{
        const struct yaml_tree_node *node = yaml_tree_get(map, "mgids");
        struct multicast_group *groups;

        path = report_text(&r->report, "%s.mgids", path);
        if (!node || !yaml_tree_expect(&r->tree, node, YAML_TREE_LIST, path))
                return 0;
        if (node->n_children > MAX_GROUPS) {
                yaml_tree_error(&r->tree, node, FINDING_POLICY_IPOIB, "%s: too many groups: %u (accepted: at most %u)", path,
                                node->n_children, MAX_GROUPS);
                return 0;
        }
        groups = arena_new_array(r->arena, struct multicast_group, node->n_children);
        if (!groups)
                return -ENOMEM;
        ret->groups = groups;
        for (const struct yaml_tree_node *c = node->children; c; c = c->next)
                read_group(r, c, path, base, &ret->broadcast, &groups[ret->n_groups++]);
        return 0;
}

/* ---- ipoib ---------------------------------------------------------------------------------------------------- */

int policy_read_ipoib(struct policy_reader *r, const struct yaml_tree_node *node, const char *path,
                      struct policy_partition *partition)
{
        struct ipoib *ipoib;
        bool wanted = true;

        if (!node)
                return 0;
        if (node->kind == YAML_TREE_SCALAR && !node->broken && yaml_tree_bool(&r->tree, node, path, &wanted) < 0)
                return 0;
        if (!wanted || (node->kind != YAML_TREE_SCALAR && !yaml_tree_expect(&r->tree, node, YAML_TREE_MAP, path)))
                return 0;
        ipoib = arena_new_object(r->arena, struct ipoib);
        if (!ipoib)
                return -ENOMEM;
        ipoib->broadcast = multicast_ipoib_default();
        partition->ipoib = ipoib;
        if (node->kind != YAML_TREE_MAP)
                return 0;
        yaml_tree_check_keys(&r->tree, node, path, policy_ipoib_keys, ELEMENTS(policy_ipoib_keys));
        read_parameters(r, node, path, &ipoib->broadcast);
        return read_groups(r, node, path, partition->base, ipoib);
}

/* ---- the normal form ------------------------------------------------------------------------------------------ */

/* Only the values that differ from the defaults. */
static void print_parameters(struct text *t, const char *indent, const struct multicast_parameters *p,
                             const struct multicast_parameters *defaults)
{
        const char *comma = "";

        if (p->mtu != defaults->mtu)
                text_add(t, "%smtu: %u\n", indent, multicast_mtu_bytes(p->mtu));
        if (p->rate != defaults->rate)
                text_add(t, "%srate: %s\n", indent, multicast_rate_text(p->rate));
        if (p->sl != defaults->sl)
                text_add(t, "%ssl: %u\n", indent, p->sl);
        if (p->scopes != defaults->scopes) {
                text_add(t, "%sscope: [", indent);
                for (unsigned scope = 1; scope <= MULTICAST_MAX_SCOPE; scope++) {
                        if (!(p->scopes >> scope & 1))
                                continue;
                        text_add(t, "%s%u", comma, scope);
                        comma = ", ";
                }
                text_add(t, "]\n");
        }
        if (p->q_key != defaults->q_key)
                text_add(t, "%sq_key: 0x%x\n", indent, p->q_key);
        if (p->tclass != defaults->tclass)
                text_add(t, "%stclass: %u\n", indent, p->tclass);
        if (p->flow_label != defaults->flow_label)
                text_add(t, "%sflow_label: 0x%x\n", indent, p->flow_label);
}

static bool print_group(struct text *t, struct arena *a, const struct ipoib *ipoib, const struct multicast_group *group)
{
        struct multicast_parameters defaults = multicast_inherit(&ipoib->broadcast, &group->mgid);
        const char *gid = mgid_text(a, &group->mgid);

        if (!gid)
                return false;
        if (multicast_equal(&group->parameters, &defaults)) {
                text_add(t, "        - \"%s\"\n", gid);
        } else {
                text_add(t, "        - mgid: \"%s\"\n", gid);
                print_parameters(t, "          ", &group->parameters, &defaults);
        }
        return true;
}

const char *policy_print_ipoib(struct arena *a, const struct ipoib *ipoib)
{
        struct multicast_parameters defaults = multicast_ipoib_default();
        _cleanup_text_ struct text t = {};

        if (ipoib->n_groups == 0 && multicast_equal(&ipoib->broadcast, &defaults))
                return "    ipoib: true\n";
        text_add(&t, "    ipoib:\n");
        print_parameters(&t, "      ", &ipoib->broadcast, &defaults);
        if (ipoib->n_groups > 0)
                text_add(&t, "      mgids:\n");
        for (uint32_t i = 0; i < ipoib->n_groups; i++)
                if (!print_group(&t, a, ipoib, &ipoib->groups[i]))
                        return NULL;
        return text_copy(a, &t);
}
