/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "desired/desired.h"
#include "policy/selector.h"
#include "subnet/known.h"
#include "policy_fixture.h"
#include "random_names.h"

static const struct subnet *subnet;
static struct memberships *memberships;
static const struct policy_memory nothing;

static int resolve(const char *yaml)
{
        subnet = fixture_subnet();
        memberships = NULL;
        return policy_resolve(arena, parse(yaml), subnet, &findings, &memberships);
}

static void resolve_members(const char *lines)
{
        int r = resolve(with_members(lines));

        ck_assert_msg(r == 0, "%d\n%s", r, print_findings());
}

static const struct port_membership *find(uint64_t port_guid, uint32_t partition)
{
        uint32_t port = fixture_port(subnet, port_guid), i;

        for (i = memberships->first[port]; i < memberships->first[port + 1]; i++) {
                if (i > memberships->first[port])
                        ck_assert_uint_gt(memberships->items[i].partition, memberships->items[i - 1].partition);
                if (memberships->items[i].partition == partition)
                        return &memberships->items[i];
        }
        return NULL;
}

/* In partition "p", whose index is 1. */
static enum membership of(uint64_t port_guid)
{
        const struct port_membership *m = find(port_guid, 1);

        return m ? m->membership : MEMBERSHIP_NONE;
}

static enum membership in_default(uint64_t port_guid)
{
        const struct port_membership *m = find(port_guid, 0);

        return m ? m->membership : MEMBERSHIP_NONE;
}

/* ---- what selectors match ------------------------------------------------------------------------------------- */

#define PORTS 12

static const struct {
        const char *selector;
        uint64_t ports[PORTS]; /* GUIDs of exactly the ports that match, 0 after the last */
} selections[] = {
        { "0x101", { 0x101 } },
        { "0x200", { 0x201, 0x202 } },          /* a node GUID: all its endports */
        { "0x202", { 0x202 } },
        { "0x1000", { 0x1000 } },               /* a switch: its port 0 */
        { "SELF", { 0x401 } },
        { "node0001", { 0x101 } },
        { "node0003", { 0x601, 0x701 } },       /* all nodes of that name */
        { "node[0001-0002]", { 0x101, 0x201, 0x202 } },
        { "oss*", { 0x301, 0xc01 } },
        { "node000?", { 0x101, 0x201, 0x202, 0x601, 0x701 } },
        { "leaf01", { 0x1000 } },
        { "leaf02", { 0x2000 } },               /* MF0;leaf02:MQM8700/U1 */
        { "node0003/mlx5_1", { 0x701 } },
        { "node0002/mlx5_0", { 0x201, 0x202 } },
        { "node0002/mlx5_0/2", { 0x202 } },
        { "node*/mlx5_0/1", { 0x101, 0x201, 0x601 } },
        { "node0003/mlx5_*", { 0x601, 0x701 } },
        { "@leaf01", { 0x101, 0x201, 0x202, 0x301, 0x401, 0x501 } },
        { "@leaf01/2", { 0x201 } },
        { "@leaf01/2-4", { 0x201, 0x202, 0x301 } },
        { "@leaf01/1,4-5,36", { 0x101, 0x301, 0x401 } },
        { "@leaf0[1-2]/1", { 0x101, 0x601 } },
        { "@0x2000/1", { 0x601 } },
        { "@0x2000/6", { 0xb01 } },             /* an Aggregation Node is an endport like any other */
        { "ALL_ROUTERS", { 0x801 } },
        { "ALL_SWITCHES", { 0x1000, 0x2000, 0x3000, 0x4000, 0x5000 } },
        { "ALL_CAS", { 0x101, 0x201, 0x202, 0x301, 0x401, 0x501, 0x601, 0x701, 0x901, 0xa01, 0xb01, 0xc01 } },
        { "node0001,@leaf02/2,0x301", { 0x101, 0x301, 0x701 } },
        { "node0001,node000[1-2],0x101", { 0x101, 0x201, 0x202 } },
};

START_TEST(selecting)
{
        uint32_t *ports = NULL, n = 99, i, expected = 0;

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_select(arena, NULL, subnet, &nothing, selections[_i].selector, &findings, &ports, &n), 0);
        for (i = 0; i < PORTS && selections[_i].ports[i]; i++)
                expected++;
        ck_assert_uint_eq(n, expected);
        for (i = 0; i < n; i++) {
                uint32_t k;

                for (k = 0; k < expected && subnet->ports[ports[i]].guid.v != selections[_i].ports[k]; k++)
                        ;
                ck_assert_uint_lt(k, expected);
                ck_assert(i == 0 || ports[i - 1] < ports[i]);
                ck_assert_int_eq(subnet->ports[ports[i]].role, PORT_ENDPORT);
        }
}
END_TEST

/* A number that is the GUID of a port and of a node, of one adapter or of two, means the port and no other port of the node. */
START_TEST(a_port_and_a_node_of_one_guid)
{
        static const struct { uint64_t node, ports[2]; } adapters[] = {
                { 0x9901, { 0x9901, 0x9902 } },
                { 0x8801, { 0x8800, 0x9903 } },
                { 0x9903, { 0x9904, 0x9905 } },
        };
        struct subnet_builder *b;
        struct subnet *s;
        uint32_t *ports, n;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (size_t i = 0; i < ELEMENTS(adapters); i++) {
                struct subnet_node node = { .guid = { adapters[i].node }, .type = NODE_CA, .num_ports = 2, .partition_cap = 128 };

                ck_assert_int_eq(subnet_builder_add_node(b, &node, "host mlx5_0", 11), 0);
                for (uint8_t k = 0; k < 2; k++)
                        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &(struct subnet_port) {
                                .number = k + 1, .guid = { adapters[i].ports[k] } }), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &s), 0);
        for (uint64_t guid = 0x9901; guid <= 0x9903; guid += 2) {
                const char *selector = arena_printf(arena, "0x%x", (unsigned) guid);

                ck_assert_int_eq(policy_select(arena, NULL, s, &nothing, selector, &findings, &ports, &n), 0);
                ck_assert_uint_eq(n, 1);
                ck_assert_uint_eq(s->ports[ports[0]].guid.v, guid);
        }
}
END_TEST

START_TEST(selecting_all)
{
        uint32_t *ports, n, i, endports = 0;

        subnet = fixture_subnet();
        for (i = 0; i < subnet->n_ports; i++)
                endports += subnet->ports[i].role == PORT_ENDPORT;
        ck_assert_int_eq(policy_select(arena, NULL, subnet, &nothing, "ALL", &findings, &ports, &n), 0);
        ck_assert_uint_eq(n, endports);
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

START_TEST(selecting_group)
{
        uint32_t *ports, n;
        const struct policy *policy = parse("version: 1\ngroups: {g: [node0001, h], h: oss*}\npartitions: {}\n");

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_select(arena, policy, subnet, &nothing, "g", &findings, &ports, &n), 0);
        ck_assert_uint_eq(n, 3);
        ck_assert_int_eq(policy_select(arena, NULL, subnet, &nothing, "g", &findings, &ports, &n), 0);
        ck_assert_uint_eq(n, 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text, "'g' matches nothing");
}
END_TEST

START_TEST(groups_do_not_mix)
{
        ck_assert_int_eq(resolve("version: 1\ngroups: {a: \"node0001,node0002\", b: oss01}\npartitions:\n  p:\n"
                                 "    pkey: 0x0010\n    members:\n      a: full\n      b: limited\n"), 0);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0xc01), MEMBERSHIP_NONE);
}
END_TEST

START_TEST(selecting_nonsense)
{
        uint32_t *ports = NULL, n = 7;

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_select(arena, NULL, subnet, &nothing, "0x10z", &findings, &ports, &n), -EBADMSG);
        ck_assert_uint_eq(n, 7);
        expect_text(only(FINDING_POLICY_GUID)->text, "'0x10z' is not a GUID");
}
END_TEST

/* ---- random names and selectors, compared with a search that tries every node --------------------------------- */

#define SWITCHES 24
#define HOSTS    400

/* Hosts may have the names of other hosts and of switches. Every switch has a name of its own. */
static struct subnet *random_fabric(struct prng *p)
{
        char names[SWITCHES][RANDOM_NAME_SIZE], name[RANDOM_NAME_SIZE];
        struct subnet_builder *b;
        struct subnet *s;
        unsigned i, k;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (i = 0; i < SWITCHES; i = k == i ? i + 1 : i) {
                random_name(p, names[i]);
                for (k = 0; k < i && strcmp(names[k], names[i]) != 0;)
                        k++;
                if (k == i)
                        fixture_node(b, 0x1000 + 0x10 * i, NODE_SWITCH, 36, names[i]);
        }
        for (i = 0; i < HOSTS; i++) {
                struct fixture_cable c = { .ca = 0x10000 + 0x10 * i, .n_ports = prng_between(p, 1, 2) };

                random_name(p, name);
                c.description = arena_printf(arena, "%s mlx5_%u", name, prng_below(p, 2));
                c.sw = 0x1000 + 0x10 * (i % SWITCHES);
                c.number = (uint8_t) (2 * (i / SWITCHES) + 1);
                fixture_node(b, c.ca, NODE_CA, (uint8_t) c.n_ports, c.description);
                fixture_plug(b, &c);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &s), 0);
        return s;
}

/* A selector of hosts by name, or of the endports plugged into switches by name. */
static const struct selector *random_selector(struct prng *p, struct arena *a)
{
        static const char *const ends[] = { "", "", "", "", "/mlx5_[0-1]", "/*_1", "/mlx5_0/2" };
        struct report report;
        struct selector_reader reader = { .arena = a, .report = &report };
        struct selector **list;
        uint32_t n;

        report_init(&report, &findings);
        for (;;) {
                const char *name = random_hostlist(p, a)->text, *end = ends[prng_below(p, ELEMENTS(ends))];
                struct selector_source source = { .text = arena_printf(a, "%s%s", name, end) };

                if (prng_permille(p, 200))
                        source.text = arena_printf(a, "@%s%s", name, end[0] ? "/1-9,12" : "");
                if (selector_parse_list(&reader, &source, &list, &n) == 0 && list[0]->host)
                        return list[0];
        }
}

static bool is_meant(const struct selector *s, uint32_t port)
{
        const struct subnet_port *p = &subnet->ports[port];
        const struct subnet_node *node = subnet_port_node(subnet, p);

        if (p->role != PORT_ENDPORT)
                return false;
        if (s->kind == SELECTOR_HOST)
                return hostlist_match(s->host, node->name) && (!s->device || hostlist_match(s->device, node->device)) &&
                       (s->port == 0 || s->port == p->number);
        if (p->peer == SUBNET_NONE)
                return false;
        p = &subnet->ports[p->peer];
        node = subnet_port_node(subnet, p);
        return hostlist_match(s->host, node->name) && (!s->has_ports || selector_has_port(s, p->number));
}

/* The first name of a hostlist without globs that no node has, or NULL. */
static const char *first_missing(const struct selector *s, char ret[HOSTLIST_MAX_NAME])
{
        for (uint64_t i = 0; i < s->host->n_names; i++) {
                uint32_t k;

                hostlist_name(s->host, i, ret);
                for (k = 0; k < subnet->n_nodes && strcmp(subnet->nodes[k].name, ret) != 0;)
                        k++;
                if (k == subnet->n_nodes)
                        return ret;
        }
        return NULL;
}

/* The number of nodes that the selector means and that have the name and device of an earlier node. */
static unsigned count_twins(const struct selector *s)
{
        const struct subnet_node *nodes = subnet->nodes;
        unsigned n = 0;

        for (uint32_t i = 0; i < subnet->n_nodes; i++) {
                if (nodes[i].type != NODE_CA || !hostlist_match(s->host, nodes[i].name) ||
                    (s->device && !hostlist_match(s->device, nodes[i].device)))
                        continue;
                for (uint32_t k = 0; k < i; k++) {
                        if (nodes[k].type == NODE_CA && strcmp(nodes[k].name, nodes[i].name) == 0 &&
                            strcmp(nodes[k].device, nodes[i].device) == 0) {
                                n++;
                                break;
                        }
                }
        }
        return n;
}

static unsigned count_findings(enum finding_code code)
{
        unsigned n = 0;

        for (size_t i = 0; i < findings.n; i++)
                n += findings.items[i].code == code;
        return n;
}

/* Checks the findings for a selector of hosts that matches. Returns whether names are missing. */
static bool check_notes(const struct selector *s)
{
        char name[HOSTLIST_MAX_NAME];

        ck_assert_uint_eq(count_findings(FINDING_NAME_DUPLICATE), count_twins(s));
        if (!first_missing(s, name)) {
                ck_assert_uint_eq(count_findings(FINDING_SELECTOR_PARTIAL), 0);
                return false;
        }
        expect_text(only(FINDING_SELECTOR_PARTIAL)->text, arena_printf(arena, "not in the fabric: %s", name));
        return true;
}

START_TEST(selecting_at_random)
{
        struct prng p = { (uint64_t) _i };
        unsigned round, matched = 0, partial = 0, complete = 0;

        subnet = random_fabric(&p);
        for (round = 0; round < 500; round++) {
                _cleanup_arena_ struct arena *scratch = arena_new();
                const struct selector *s = random_selector(&p, scratch);
                uint32_t *ports = NULL, n = 0, port, i = 0;

                findings_done(&findings);
                findings = (struct findings) { .arena = scratch };
                ck_assert_int_eq(policy_select(scratch, NULL, subnet, &nothing, s->text, &findings, &ports, &n), 0);
                for (port = 0; port < subnet->n_ports; port++) {
                        bool is_there = i < n && ports[i] == port;

                        if (is_there != is_meant(s, port))
                                ck_abort_msg("%s: %s %s", s->text, is_there ? "matches" : "does not match",
                                             subnet_port_label(arena, subnet, port));
                        i += is_there;
                }
                ck_assert_uint_eq(count_findings(FINDING_SELECTOR_NO_MATCH), n == 0);
                matched += n > 0;
                if (n > 0 && s->kind == SELECTOR_HOST) {
                        if (check_notes(s))
                                partial++;
                        else
                                complete++;
                }
                findings_done(&findings);
                findings = (struct findings) { .arena = arena };
        }
        ck_assert_uint_gt(matched, 100);
        ck_assert_uint_gt(partial, 20);
        ck_assert_uint_gt(complete, 20);
}
END_TEST

/* ---- specificity ---------------------------------------------------------------------------------------------- */

/* Selectors that match port 0x401 (head1 mlx5_0/1, SELF, leaf01 port 5), from the least specific. Those with the same number are
 * equally specific. */
static const struct {
        const char *selector;
        int rank;
} classes[] = {
        { "ALL", 0 },           { "ALL_CAS", 1 },       { "g", 2 },         { "other", 2 },
        { "head1", 3 },         { "head[1-2]", 3 }, { "h*", 3 },
        { "\"@leaf01\"", 3 },   { "\"@0x1000\"", 3 },   { "head1/mlx5_0", 4 }, { "\"*/mlx5_0\"", 4 },
        { "head1/mlx5_0/1", 5 }, { "\"@leaf01/5\"", 6 }, { "\"@0x1000/1-5\"", 6 }, { "0x401", 7 },
        { "0x400", 7 },         { "SELF", 7 },
};

START_TEST(specificity)
{
        static const char head[] = "version: 1\ngroups: {g: 0x401, other: [SELF, oss01]}\npartitions:\n  p:\n"
                                   "    pkey: 0x0010\n    members:\n";
        size_t k;

        for (k = 0; k < ELEMENTS(classes); k++) {
                struct policy *policy = NULL;
                const char *yaml;
                int r, expected = classes[_i].rank > classes[k].rank ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED;

                if ((size_t) _i == k)
                        continue;
                yaml = arena_printf(arena, "%s      %s: full\n      %s: limited\n", head, classes[_i].selector,
                                    classes[k].selector);
                findings_done(&findings);
                findings = (struct findings) { .arena = arena };
                subnet = fixture_subnet();
                memberships = NULL;
                r = policy_parse(arena, "p.yaml", yaml, strlen(yaml), &findings, &policy);
                if (r == 0)
                        r = policy_resolve(arena, policy, subnet, &findings, &memberships);
                if (classes[_i].rank == classes[k].rank) {
                        ck_assert_int_eq(r, -EBADMSG);
                        only(FINDING_POLICY_AMBIGUOUS);
                } else {
                        ck_assert_msg(r == 0, "%s\n%s", yaml, print_findings());
                        ck_assert_msg((int) of(0x401) == expected, "%s", yaml);
                }
        }
}
END_TEST

START_TEST(order_of_lines_does_not_matter)
{
        resolve_members("      0x101: none\n      node0001: full\n      ALL: limited\n");
        ck_assert_int_eq(of(0x101), MEMBERSHIP_NONE);
        ck_assert_int_eq(of(0x201), MEMBERSHIP_LIMITED);
        resolve_members("      ALL: limited\n      node0001: full\n      0x101: none\n");
        ck_assert_int_eq(of(0x101), MEMBERSHIP_NONE);
        ck_assert_int_eq(of(0x201), MEMBERSHIP_LIMITED);
}
END_TEST

START_TEST(the_deciding_line_is_named)
{
        resolve_members("      ALL: limited\n      node0001: both\n");
        ck_assert_str_eq(find(0x101, 1)->rule->text, "node0001");
        ck_assert_uint_eq(find(0x101, 1)->rule->where.line, 7);
        ck_assert_int_eq(find(0x101, 1)->membership, MEMBERSHIP_BOTH);
        ck_assert_str_eq(find(0x201, 1)->rule->text, "ALL");
}
END_TEST

START_TEST(the_overridden_line_is_named)
{
        static const uint64_t guids[] = { 0x101, 0x201, 0x301 };
        struct policy_lines *lines;
        uint32_t ports[3];

        resolve_members("      ALL: limited\n      node*: both\n      \"node0001,ALL_CAS\": both\n      0x101: none\n");
        for (unsigned i = 0; i < 3; i++)
                ports[i] = subnet_find_endport(subnet, (struct guid) { guids[i] });
        ck_assert_int_eq(policy_find_lines(arena, memberships->policy, subnet, NULL, ports, 3, &lines), 0);
        lines += 3; /* of the second partition */
        ck_assert_str_eq(lines[0].decides->text, "0x101");
        ck_assert_str_eq(lines[0].overridden->text, "node*"); /* of two equally specific ones the first */
        ck_assert_str_eq(lines[1].decides->text, "node*");
        ck_assert_str_eq(lines[1].overridden->text, "node0001,ALL_CAS"); /* not for its first selector */
        ck_assert_str_eq(lines[2].overridden->text, "ALL");
        /* a line that is on two levels does not override itself */
        resolve_members("      \"0x101,node0001\": full\n      ALL_CAS: limited\n");
        ck_assert_int_eq(policy_find_lines(arena, memberships->policy, subnet, NULL, ports, 1, &lines), 0);
        ck_assert_str_eq(lines[1].overridden->text, "ALL_CAS");
}
END_TEST

/* In one line with several selectors each has its own specificity. */
START_TEST(specificity_within_a_line)
{
        resolve_members("      \"0x101,ALL\": full\n      node*: limited\n");
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
        ck_assert_int_eq(of(0x201), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_FULL);
}
END_TEST

/* ---- ambiguity ------------------------------------------------------------------------------------------------ */

START_TEST(ambiguous)
{
        const struct finding *f;

        ck_assert_int_eq(resolve(with_members("      node*: full\n      node000[1-2]: limited\n")), -EBADMSG);
        f = only(FINDING_POLICY_AMBIGUOUS);
        ck_assert_uint_eq(f->where.line, 7);
        ck_assert_uint_eq(f->where.column, 7);
        expect_text(f->text, "partitions.p.members: 'node000[1-2]' (limited) and 'node*' (full) in p.yaml:6");
        expect_text(f->text, "node0001 mlx5_0/1 (and 2 other ports)");
        expect_text(f->source_line, "node000[1-2]: limited");
        ck_assert_ptr_null(memberships);
}
END_TEST

START_TEST(not_ambiguous_if_something_more_specific_decides)
{
        resolve_members("      node*: full\n      node0001: limited\n      0x101: both\n");
        ck_assert_int_eq(of(0x101), MEMBERSHIP_BOTH);
        ck_assert_int_eq(of(0x201), MEMBERSHIP_FULL);
}
END_TEST

START_TEST(not_ambiguous_if_they_agree)
{
        resolve_members("      node*: full\n      node0001: full\n      \"@leaf01\": full\n");
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
}
END_TEST

START_TEST(each_pair_of_lines_once)
{
        size_t i, n = 0;

        ck_assert_int_eq(resolve(with_members("      node*: full\n      \"*1\": limited\n      \"*000*\": none\n")), -EBADMSG);
        for (i = 0; i < findings.n; i++)
                n += findings.items[i].code == FINDING_POLICY_AMBIGUOUS;
        ck_assert_uint_eq(n, 2); /* *1 with node*, *000* with node* */
}
END_TEST

START_TEST(groups_may_be_ambiguous)
{
        ck_assert_int_eq(resolve("version: 1\ngroups: {a: node0001, b: \"node*\"}\npartitions:\n  p:\n    pkey: 0x0010\n"
                                 "    members:\n      a: full\n      b: none\n"), -EBADMSG);
        expect_text(only(FINDING_POLICY_AMBIGUOUS)->text, "'b' (none) and 'a' (full)");
}
END_TEST

/* ---- the default partition ------------------------------------------------------------------------------------ */

START_TEST(default_partition_made_up)
{
        ck_assert_int_eq(resolve("version: 1\npartitions: {}\n"), 0);
        ck_assert_int_eq(in_default(0x101), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(in_default(0x1000), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(in_default(0x801), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_FULL); /* SELF */
        ck_assert_int_eq(in_default(0x501), MEMBERSHIP_FULL); /* the master SM */
        ck_assert_ptr_null(find(0x101, 0)->rule);
}
END_TEST

START_TEST(self_and_sm_stay_full)
{
        ck_assert_int_eq(resolve("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n"
                                 "      ALL: limited\n      0x401: limited\n      sm1: limited\n      oss01: full\n"), 0);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_FULL);
        ck_assert_int_eq(in_default(0x501), MEMBERSHIP_FULL);
        ck_assert_int_eq(in_default(0x301), MEMBERSHIP_FULL);
        ck_assert_int_eq(in_default(0x101), MEMBERSHIP_LIMITED);
        ck_assert_ptr_null(find(0x401, 0)->rule);
        ck_assert_str_eq(find(0x301, 0)->rule->text, "oss01");
}
END_TEST

START_TEST(self_may_be_both)
{
        ck_assert_int_eq(resolve("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n      SELF: both\n"),
                         0);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_BOTH);
}
END_TEST

START_TEST(self_is_not_disputed_in_the_default_partition)
{
        ck_assert_int_eq(resolve("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n"
                                 "      \"head*\": limited\n      \"*ead1\": both\n"), 0);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_FULL);
}
END_TEST

START_TEST(default_partition_not_owned)
{
        ck_assert_int_eq(resolve("version: 1\nowns: 0x0001-0x0fff\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
                                 "      ALL: full\n"), 0);
        ck_assert_int_eq(in_default(0x101), MEMBERSHIP_NONE);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_NONE);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
}
END_TEST

START_TEST(external_ports_have_none)
{
        uint32_t i, external = 0;

        resolve_members("      ALL: full\n");
        for (i = 0; i < subnet->n_ports; i++) {
                if (subnet->ports[i].role == PORT_ENDPORT) {
                        ck_assert_uint_eq(memberships->first[i + 1] - memberships->first[i], 2);
                        continue;
                }
                external++;
                ck_assert_uint_eq(memberships->first[i + 1], memberships->first[i]);
        }
        ck_assert_uint_gt(external, 0);
}
END_TEST

START_TEST(no_members)
{
        ck_assert_int_eq(resolve("version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {}\n"), 0);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_NONE);
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

/* ---- selectors without a match, duplicate names --------------------------------------------------------------- */

static const struct {
        const char *selector, *hint; /* NULL: none */
} no_matches[] = {
        { "node0099x", NULL },
        { "nodee0001", "did you mean 'node0001'?" },
        { "Node0001", "did you mean 'node0001'?" },
        { "noed0002", "did you mean 'node0002'?" },
        { "node[1-4]", "names such as 'node0001'" },
        { "nod[0001-0004]", "names such as 'node0001'" },
        { "node1", "names such as 'node0001'" },
        { "node0001/mlx4_0", "devices in the fabric: node0001/mlx5_0" },
        { "node0003/mlx5_2", "devices in the fabric: node0003/mlx5_0, node0003/mlx5_1" },
        { "node0001/mlx5_0/2", "devices in the fabric: node0001/mlx5_0" },
        { "noed0002/mlx5_0", "did you mean 'node0002/mlx5_0'?" },
        { "noed0002/mlx5_0/2", "did you mean 'node0002/mlx5_0/2'?" },
        { "\"@leaf1\"", "did you mean '@leaf01'?" },
        { "\"@leaf1/1-3,5\"", "did you mean '@leaf01/1-3,5'?" },
        { "\"@leaf1:U1/2\"", "did you mean '@leaf01:U1/2'?" },
        { "\"@node0001\"", "'node0001' is a CA, not a switch" },
        { "\"@leaf03/1\"", "no endport is plugged into it at these ports" },
        { "\"@g\"", "'g' is a group" },
        { "\"@0x100\"", NULL },
        { "0x9999", "neither a port nor a node" },
        { "zebra", NULL },
};

START_TEST(no_match)
{
        const struct finding *f;

        ck_assert_int_eq(resolve(arena_printf(arena, "version: 1\ngroups: {g: oss01}\npartitions:\n  p:\n    pkey: 0x0010\n"
                                              "    members:\n      oss01: full\n      %s: full\n",
                                              no_matches[_i].selector)), 0);
        f = only(FINDING_SELECTOR_NO_MATCH);
        ck_assert_int_eq(f->severity, FINDING_WARNING);
        ck_assert_uint_eq(f->where.line, 8);
        expect_text(f->text, "matches nothing in the fabric");
        if (no_matches[_i].hint)
                expect_text(f->hint, no_matches[_i].hint);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_FULL);
}
END_TEST

/* The ports of a pool, which no line uses. */
START_TEST(no_match_in_a_pool)
{
        const struct finding *f;

        for (unsigned strict = 0; strict < 2; strict++) {
                findings_done(&findings);
                findings = (struct findings) { .arena = arena };
                ck_assert_int_eq(resolve(arena_printf(arena, "version: 1\nstrict: %s\npartitions: {}\npools:\n  jobs:\n    pkeys: 0x0020\n"
                                                      "    ports: node0001,node0099\n", strict ? "true" : "false")),
                                 strict ? -EBADMSG : 0);
                f = only(FINDING_SELECTOR_NO_MATCH);
                ck_assert_int_eq(f->severity, strict ? FINDING_ERROR : FINDING_WARNING);
                ck_assert_uint_eq(f->where.line, 7);
                ck_assert_uint_eq(f->where.column, 21);
                expect_text(f->text, "'node0099' matches nothing in the fabric");
        }
}
END_TEST

START_TEST(no_match_is_an_error_when_strict)
{
        ck_assert_int_eq(resolve("version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
                                 "      node0099: full\n"), -EBADMSG);
        ck_assert_int_eq(only(FINDING_SELECTOR_NO_MATCH)->severity, FINDING_ERROR);
}
END_TEST

/* Selectors that mean an absent port. */
static const struct {
        const char *selector, *seen; /* NULL: it matches nothing */
} absent[] = {
        { "node0099", "2024-02-29 23:59 UTC" },
        { "0x9901", "2024-02-29 23:59 UTC" },
        { "node0099/mlx5_0/1", "2024-02-29 23:59 UTC" },
        { "node[0098-0099]", "2024-03-01 00:00 UTC" }, /* the later of two */
        { "\"@leaf99/1\"", "2000-12-31 00:00 UTC" },
        { "node0099/mlx5_7", NULL },
        { "node0097", NULL },
        { "\"@leaf03/9\"", NULL }, /* the switch is present */
};

START_TEST(seen_once)
{
        struct known_port ports[] = {
                { { 0x9700 }, { 0x9701 }, NODE_CA, 1, "other mlx5_0", { 0x9800 }, 1, .seen = 978220800 },
                { { 0x9800 }, { 0x9802 }, NODE_SWITCH, 0, "leaf99", .seen = 978220800 - 60 },
                { { 0x9810 }, { 0x9811 }, NODE_CA, 1, "node0098 mlx5_0", .seen = 1709251200 },
                { { 0x9900 }, { 0x9901 }, NODE_CA, 1, "node0099 mlx5_0", { 0x5000 }, 9, .seen = 1709251199 },
        };
        const struct known known = { .ports = ports, .n = ELEMENTS(ports) };
        const struct policy_memory memory = { &known };
        struct policy *policy = parse(with_members(arena_printf(arena, "      %s: full\n", absent[_i].selector)));
        const struct finding *f;

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_resolve_with_memory(arena, policy, subnet, &memory, _i % 2, &findings, &memberships), 0);
        f = only(FINDING_SELECTOR_NO_MATCH);
        ck_assert_int_eq(f->severity, FINDING_WARNING);
        if (absent[_i].seen) {
                expect_text(f->text, arena_printf(arena, "is not in the fabric now (last seen %s)", absent[_i].seen));
                expect_text(f->hint, "again when it returns");
        } else {
                expect_text(f->text, "matches nothing in the fabric");
        }
}
END_TEST

/* A host that comes up answers some queries before others: it is in the snapshot, but without its name. */
START_TEST(seen_once_and_incomplete)
{
        struct known_port known_port = { { 0x9900 }, { 0x9901 }, NODE_CA, 1, "node0099 mlx5_0", .seen = 1709251200 };
        const struct known known = { .ports = &known_port, .n = 1 };
        const struct policy_memory memory = { &known };
        struct subnet_node node = { .guid = { 0x9900 }, .type = NODE_CA, .num_ports = 1, .incomplete = true };
        struct subnet_port port = { .number = 1, .guid = { 0x9901 } };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "", 0), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        ck_assert_int_eq(policy_resolve_with_memory(arena, parse(with_members("      node0099: full\n")), s, &memory, true, &findings,
                                                    &memberships), 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text,
                    "'node0099' is in the fabric, but did not answer all queries of discovery (it last did 2024-03-01 00:00 UTC)");
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->hint, "again when it does");
}
END_TEST

/* The GUIDs of groups and lines, several in one line; not the GUIDs of switches in @SWITCH, which are no members. */
START_TEST(names_each_guid_once)
{
        const struct guid *guids;
        uint32_t n;

        ck_assert_int_eq(policy_named_guids(arena, parse(with_members("      node1: full\n")), &guids, &n), 0);
        ck_assert_uint_eq(n, 0);
        ck_assert_int_eq(policy_named_guids(arena, parse("version: 1\ngroups:\n  g: 0x9,0x3\n  h: [g, 0x5]\npartitions:\n  p:\n"
                                                         "    pkey: 0x10\n    members: {h: full, \"0x3,0x7\": limited, \"@0x77/1\": full}\n"
                                                         "  q: {pkey: 0x11, members: {0x1: none}}\npools: {a: {pkeys: 0x20, ports: \"0xb,0x9\"}}\n"),
                                            &guids, &n), 0);
        ck_assert_uint_eq(n, 6);
        for (unsigned i = 0; i < n; i++)
                ck_assert_uint_eq(guids[i].v, 2 * i + 1);
}
END_TEST

/* A port of which only the GUID is known does not count as a CA. */
START_TEST(of_no_type_before_it_is_seen)
{
        const struct policy *policy = parse("version: 1\npartitions:\n  p: {pkey: 0x10, members: {ALL_CAS: full}}\n"
                                            "  q: {pkey: 0x11, members: {ALL_ROUTERS: full, ALL_SWITCHES: full}}\n"
                                            "  r: {pkey: 0x12, members: {ALL: limited}}\n  s: {pkey: 0x13, members: {0x99: full}}\n");
        const struct known none = {};
        struct memberships *m;
        const struct guid *guids;
        struct subnet *larger;
        uint32_t n, port;

        ck_assert_int_eq(policy_named_guids(arena, policy, &guids, &n), 0);
        ck_assert_int_eq(known_extend_named(arena, &none, fixture_subnet(), guids, n, NODE_UNKNOWN, &larger), 0);
        ck_assert_int_eq(policy_resolve(arena, policy, larger, &findings, &m), 0);
        port = subnet_find_endport(larger, (struct guid) { 0x99 });
        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_ptr_null(memberships_find(m, port, 0x10));
        ck_assert_ptr_null(memberships_find(m, port, 0x11));
        ck_assert_int_eq(memberships_find(m, port, 0x12)->membership, MEMBERSHIP_LIMITED);
        ck_assert_int_eq(memberships_find(m, port, 0x13)->membership, MEMBERSHIP_FULL);
        ck_assert_int_eq(memberships_find(m, port, 0x7fff)->membership, MEMBERSHIP_LIMITED);
}
END_TEST

/* A selector from a command line has no line of a policy that applies again. */
START_TEST(seen_once_and_asked_for)
{
        struct known_port port = { { 0x9900 }, { 0x9901 }, NODE_CA, 1, "node0099 mlx5_0", .seen = 0 };
        const struct known known = { .ports = &port, .n = 1 };
        const struct policy_memory memory = { &known };
        uint32_t *ports, n;

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_select(arena, NULL, subnet, &memory, "node0099", &findings, &ports, &n), 0);
        ck_assert_uint_eq(n, 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text, "'node0099' is not in the fabric now (last seen 1970-01-01 00:00 UTC)");
        ck_assert_ptr_null(only(FINDING_SELECTOR_NO_MATCH)->hint);
}
END_TEST

START_TEST(seen_once_is_an_error_when_strict)
{
        struct known_port port = { { 0x9900 }, { 0x9901 }, NODE_CA, 1, "node0099 mlx5_0", .seen = 0 };
        const struct known known = { .ports = &port, .n = 1 };
        const struct policy_memory memory = { &known };
        struct policy *policy = parse("version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
                                      "      node0099: full\n");

        subnet = fixture_subnet();
        ck_assert_int_eq(policy_resolve_with_memory(arena, policy, subnet, &memory, false, &findings, &memberships), -EBADMSG);
        ck_assert_int_eq(only(FINDING_SELECTOR_NO_MATCH)->severity, FINDING_ERROR);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text,
                    "'node0099' is not in the fabric now (last seen 1970-01-01 00:00 UTC); `strict: true` makes this an error");
}
END_TEST

START_TEST(no_match_within_a_group_is_said_once)
{
        ck_assert_int_eq(resolve("version: 1\ngroups:\n  g:\n    - oss01\n    - node0099\npartitions:\n"
                                 "  p:\n    pkey: 0x0010\n    members: {g: full}\n"
                                 "  q:\n    pkey: 0x0011\n    members: {g: full}\n"), 0);
        ck_assert_uint_eq(only(FINDING_SELECTOR_NO_MATCH)->where.line, 5);
}
END_TEST

/* As a template makes it of an empty variable. */
START_TEST(an_empty_group)
{
        ck_assert_int_eq(resolve("version: 1\ngroups:\n  g: []\npartitions:\n  p:\n    pkey: 0x0010\n    members: {g: full}\n"), 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text, "'g' matches nothing in the fabric");
        ck_assert_uint_eq(findings.items[0].where.line, 3);
        ck_assert_int_eq(resolve("version: 1\nstrict: true\ngroups:\n  g: []\npartitions:\n  p:\n    pkey: 0x0010\n    members: {g: full}\n"),
                         -EBADMSG);
}
END_TEST

START_TEST(keywords_may_match_nothing)
{
        struct subnet_builder *b;
        struct subnet *empty;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &empty), 0);
        ck_assert_int_eq(policy_resolve(arena, parse(with_members("      ALL: full\n      ALL_ROUTERS: none\n"
                                                                  "      SELF: both\n")), empty, &findings, &memberships), 0);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(memberships->first[0], 0);
}
END_TEST

START_TEST(partial)
{
        const struct finding *f;

        resolve_members("      node[0001-0009]: full\n");
        f = only(FINDING_SELECTOR_PARTIAL);
        ck_assert_int_eq(f->severity, FINDING_NOTE);
        expect_text(f->text, "'node[0001-0009]': not in the fabric: node0004, node0005, node0006, node0007, ...");
        ck_assert_int_eq(of(0x701), MEMBERSHIP_FULL);
}
END_TEST

START_TEST(partial_of_a_billion)
{
        resolve_members("      node[0000-9999]n[0-999999999],node[0001-9999]: full\n");
        expect_text(only(FINDING_SELECTOR_PARTIAL)->text, "node0004");
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->text, "node[0000-9999]n[0-999999999]");
}
END_TEST

START_TEST(complete_ranges_are_not_partial)
{
        resolve_members("      node[0001-0003]: full\n");
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

START_TEST(switches_of_one_name)
{
        const struct finding *f;

        ck_assert_int_eq(resolve(with_members("      \"@spine/1\": full\n")), -EBADMSG);
        f = only(FINDING_SELECTOR_SWITCH_AMBIGUOUS);
        expect_text(f->text, "2 switches call themselves 'spine': 0x0000000000003000, 0x0000000000004000");
        expect_text(f->hint, "@0x");
}
END_TEST

/* Turns leaf01, leaf02 and leaf03 of the fixture into boards of a director. */
static struct subnet *director_subnet(const char *board1, const char *board2, const char *board3)
{
        const char *boards[] = { board1, board2, board3 };
        const uint64_t guids[] = { 0x1000, 0x2000, 0x5000 };
        struct subnet *s = fixture_subnet();

        for (size_t i = 0; i < ELEMENTS(guids); i++) {
                struct subnet_node *n = &s->nodes[subnet_find_node(s, (struct guid) { guids[i] })];

                n->name = "leaf02"; /* they are adjacent in by_name */
                n->description = arena_printf(arena, "MF0;leaf02:CS8500/%s", boards[i]);
        }
        return s;
}

static int resolve_director(const char *members, const char *board1, const char *board2, const char *board3)
{
        subnet = director_subnet(board1, board2, board3);
        return policy_resolve(arena, parse(with_members(members)), subnet, &findings, &memberships);
}

START_TEST(boards_of_a_director)
{
        ck_assert_int_eq(resolve_director("      \"@leaf02:L02/U1\": limited\n      \"@leaf02:L20/U2/7\": full\n"
                                          "      \"@leaf02:U1/1, 4\": full\n", "U1", "L02/U1", "L20/U2"), 0);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_FULL);
        ck_assert_int_eq(of(0x401), MEMBERSHIP_NONE);
        ck_assert_int_eq(of(0x601), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0xb01), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0xc01), MEMBERSHIP_FULL);
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

START_TEST(boards_in_the_hint)
{
        const struct finding *f;

        ck_assert_int_eq(resolve_director("      \"@leaf02/1\": full\n", "L01/U1", "L01/U2", "L02/U1"), -EBADMSG);
        f = only(FINDING_SELECTOR_SWITCH_AMBIGUOUS);
        expect_text(f->text, "3 switches call themselves 'leaf02': ");
        expect_text(f->text, "leaf02:L01/U1, leaf02:L01/U2");
        expect_text(f->hint, "as in @leaf02:L01/U1/1");
}
END_TEST

/* Two switches with one name and one board cannot be distinguished by the board. */
START_TEST(two_switches_of_one_board)
{
        const struct finding *f;

        ck_assert_int_eq(resolve_director("      \"@leaf02:L01/U1/1\": full\n", "L01/U1", "L01/U1", "L02/U1"), -EBADMSG);
        f = only(FINDING_SELECTOR_SWITCH_AMBIGUOUS);
        expect_text(f->text, "2 switches call themselves 'leaf02': 0x0000000000001000, 0x0000000000002000");
        expect_text(f->hint, "@0x");
}
END_TEST

START_TEST(no_such_board)
{
        const struct finding *f;

        ck_assert_int_eq(resolve_director("      \"@leaf02:L03/U1/1\": full\n", "L01/U1", "L01/U2", "L02/U1"), 0);
        f = only(FINDING_SELECTOR_NO_MATCH);
        expect_text(f->text, "@leaf02:L03/U1/1");
        expect_text(f->hint, "no switch of this name has board L03/U1 (known: @leaf02:L01/U1, @leaf02:L01/U2, @leaf02:L02/U1)");
}
END_TEST

START_TEST(no_such_unit_of_a_board)
{
        ck_assert_int_eq(resolve_director("      \"@leaf02:L01/U3\": full\n", "L01/U1", "L02/U2", "L01/U2"), 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->hint, " (known: @leaf02:L01/U1, @leaf02:L01/U2)");
}
END_TEST

START_TEST(board_that_begins_like_another)
{
        ck_assert_int_eq(resolve_director("      \"@leaf02:L2/U3\": full\n", "L20/U1", "L2/U2", "L20/U2"), 0);
        expect_text(only(FINDING_SELECTOR_NO_MATCH)->hint, " (known: @leaf02:L2/U2)");
}
END_TEST

START_TEST(no_such_port_of_a_board)
{
        ck_assert_int_eq(resolve_director("      \"@leaf02:L01/U2/40\": full\n", "L01/U1", "L01/U2", "L02/U1"), -EBADMSG);
        expect_text(only(FINDING_SELECTOR_SWITCH_PORT)->text, "the switch 'leaf02:L01/U2' has no port 40 (accepted: 1 to 36)");
}
END_TEST

START_TEST(what_is_no_board)
{
        static const char *const texts[] = { "@leaf02:", "@leaf02:/1", "@leaf02:L1/", "@leaf02:l1/U1/3", "@leaf02:L01/U2,5", "@leaf02:7/3",
                                             "@leaf02:L01:U2", "@0x2000:L01/1", "@:L01/1" };

        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                refuse(with_members(arena_printf(arena, "      \"%s\": full\n", texts[i])));
        }
}
END_TEST

START_TEST(boards_contradict_each_other)
{
        refuse(with_members("      \"@d:L01/U1/3\": full\n      \"@d:L01/U1/2-4\": limited\n"));
        only(FINDING_POLICY_AMBIGUOUS);
        findings_done(&findings);
        findings = (struct findings) { .arena = arena };
        ck_assert_ptr_nonnull(parse(with_members("      \"@d:L01/U1/3\": full\n      \"@d:L01/U2/3\": limited\n"
                                                 "      \"@d:L02/U1\": full\n      \"@d:L02/U2\": limited\n")));
}
END_TEST

START_TEST(switch_has_no_such_port)
{
        ck_assert_int_eq(resolve(with_members("      \"@leaf01/1-40\": full\n")), -EBADMSG);
        expect_text(only(FINDING_SELECTOR_SWITCH_PORT)->text, "the switch 'leaf01' has no port 40 (accepted: 1 to 36)");
}
END_TEST

START_TEST(duplicate_names)
{
        const struct finding *f;

        resolve_members("      twin: full\n      twin/mlx5_0: limited\n");
        f = only(FINDING_NAME_DUPLICATE);
        ck_assert_int_eq(f->severity, FINDING_WARNING);
        expect_text(f->text, "two nodes call themselves 'twin mlx5_0': 0x0000000000000900 and 0x0000000000000a00");
}
END_TEST

/* ---- in force ------------------------------------------------------------------------------------------------- */

static int apply_in_force(const char *yaml)
{
        return policy_resolve_with_memory(arena, parse(yaml), subnet, &nothing, true, &findings, &memberships);
}

static void resolve_in_force(const char *yaml)
{
        int r;

        subnet = fixture_subnet();
        memberships = NULL;
        r = apply_in_force(yaml);
        ck_assert_msg(r == 0, "%d\n%s", r, print_findings());
}

static enum freeze frozen(uint64_t port_guid)
{
        return memberships->frozen[fixture_port(subnet, port_guid)];
}

static unsigned count_frozen(void)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < subnet->n_ports; i++)
                n += memberships->frozen[i] != FREEZE_NONE;
        return n;
}

/* Of lines that disagree, the one that gives least counts. Other ports get what their lines give. */
START_TEST(lines_disagree_in_force)
{
        resolve_in_force(with_members("      oss01: full\n      \"@leaf01\": limited\n      ALL_ROUTERS: both\n"));
        ck_assert_int_eq(only(FINDING_POLICY_AMBIGUOUS)->severity, FINDING_ERROR);
        ck_assert_int_eq(frozen(0x301), FREEZE_LINES);
        ck_assert_uint_eq(count_frozen(), 1);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(of(0x801), MEMBERSHIP_BOTH);
        ck_assert_int_eq(in_default(0x301), MEMBERSHIP_LIMITED);
}
END_TEST

START_TEST(three_lines_disagree_in_force)
{
        resolve_in_force(with_members("      oss01: full\n      \"@leaf01\": full\n      oss*: none\n      oss0?: limited\n"
                                      "      oss[01-09]: full\n"));
        ck_assert_int_eq(frozen(0x301), FREEZE_LINES);
        ck_assert_int_eq(of(0x301), MEMBERSHIP_NONE);
        ck_assert_int_eq(frozen(0xc01), FREEZE_LINES);
        ck_assert_int_eq(of(0xc01), MEMBERSHIP_NONE);
        ck_assert_uint_eq(count_frozen(), 2);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
}
END_TEST

/* Both adapters of one name are frozen where the name decides, but not where a more specific line does, or where an equally
 * specific line without a name gives the same. */
static const struct {
        const char *lines;
        bool first, second;
} twin_policies[] = {
        { "      twin: full\n", true, true },
        { "      twin/mlx5_0: limited\n", true, true },
        { "      t*: none\n", true, true },
        { "      ALL: full\n", false, false },
        { "      ALL: full\n      twin: none\n", true, true },
        { "      twin: full\n      0x901: limited\n", false, true },
        { "      twin: full\n      0x901: limited\n      \"@leaf02/5\": full\n", false, false },
        { "      twin: full\n      \"@leaf02\": full\n", false, false },
        { "      \"@leaf02\": full\n      twin: full\n", false, false },
        { "      node0001: full\n", false, false },
};

START_TEST(names_in_force)
{
        for (int in_force = 0; in_force < 2; in_force++) {
                if (in_force)
                        resolve_in_force(with_members(twin_policies[_i].lines));
                else
                        resolve_members(twin_policies[_i].lines);
                ck_assert_int_eq(frozen(0x901), twin_policies[_i].first ? FREEZE_NAME : FREEZE_NONE);
                ck_assert_int_eq(frozen(0xa01), twin_policies[_i].second ? FREEZE_NAME : FREEZE_NONE);
                ck_assert_uint_eq(count_frozen(), twin_policies[_i].first + twin_policies[_i].second);
        }
}
END_TEST

/* The first and the last of 400 adapters with one name have one device. */
START_TEST(twins_among_many)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = 0; i < 400; i++) {
                uint64_t guid = 0x10000 + 0x10 * i;

                fixture_node(b, guid, NODE_CA, 1, arena_printf(arena, "twin mlx5_%u", i % 399));
                ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { guid }, &(struct subnet_port) {
                        .number = 1, .guid = { guid + 1 }, .state = PORT_STATE_ACTIVE }), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &s), 0);
        subnet = s;
        ck_assert_int_eq(policy_resolve(arena, parse(with_members("      twin: full\n")), subnet, &findings, &memberships), 0);
        ck_assert_int_eq(frozen(0x10001), FREEZE_NAME);
        ck_assert_int_eq(frozen(0x10001 + 0x10 * 399), FREEZE_NAME);
        ck_assert_uint_eq(count_frozen(), 2);
}
END_TEST

/* A port is frozen if it is contested in any partition. */
START_TEST(contested_in_one_of_several)
{
        resolve_in_force("version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {twin: full}\n"
                         "  q:\n    pkey: 0x0011\n    members: {ALL: full, oss02: limited, \"@leaf03\": none}\n"
                         "  r:\n    pkey: 0x0012\n    members: {ALL: full}\n");
        ck_assert_int_eq(frozen(0x901), FREEZE_NAME);
        ck_assert_int_eq(frozen(0xc01), FREEZE_LINES);
        ck_assert_uint_eq(count_frozen(), 3);
}
END_TEST

/* `certain` is the least under every reading of contested lines: each of them may or may not mean the port. */
static const struct {
        const char *lines;
        enum membership certain;
} certain_policies[] = {
        { "      twin: full\n", MEMBERSHIP_NONE },
        { "      twin: full\n      ALL: limited\n", MEMBERSHIP_LIMITED },
        { "      twin: limited\n      ALL_CAS: full\n", MEMBERSHIP_LIMITED },
        { "      twin/mlx5_0: full\n      twin: limited\n      ALL_CAS: both\n      ALL: none\n", MEMBERSHIP_LIMITED },
        { "      twin/mlx5_0: full\n      twin: full\n", MEMBERSHIP_NONE },
        { "      0x901: limited\n      twin: full\n", MEMBERSHIP_LIMITED },
        { "      twin: full\n      \"@leaf02\": limited\n      ALL: none\n", MEMBERSHIP_LIMITED },
        { "      \"@leaf02\": full\n      twin: full\n", MEMBERSHIP_FULL },
};

START_TEST(certain)
{
        const struct port_membership *m;

        resolve_in_force(with_members(certain_policies[_i].lines));
        m = find(0x901, 1);
        ck_assert_int_eq(m->certain, certain_policies[_i].certain);
}
END_TEST

/* In the default partition it is at least a limited member. */
START_TEST(certain_of_the_default_partition)
{
        resolve_in_force("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members: {twin: full, sm1: limited}\n");
        ck_assert_int_eq(find(0x901, 0)->membership, MEMBERSHIP_FULL);
        ck_assert_int_eq(find(0x901, 0)->certain, MEMBERSHIP_LIMITED);
        ck_assert_int_eq(find(0x101, 0)->certain, MEMBERSHIP_LIMITED);
        ck_assert_int_eq(find(0x501, 0)->certain, MEMBERSHIP_FULL);
}
END_TEST

/* The master SM's port is a full member, even if a contested line decides about it. */
START_TEST(certain_of_the_sm)
{
        struct subnet *s = fixture_subnet();

        s->sm = fixture_port(s, 0x901);
        subnet = s;
        memberships = NULL;
        ck_assert_int_eq(apply_in_force("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n"
                                        "    members: {twin: full, ALL: limited}\n"), 0);
        ck_assert_int_eq(find(0x901, 0)->certain, MEMBERSHIP_FULL);
}
END_TEST

/* A port that a group names is contested, too, unless another selector of the group certainly means it. */
START_TEST(names_in_groups)
{
        static const struct {
                const char *group;
                bool first, second;
        } groups[] = {
                { "[twin]", true, true }, { "[twin, 0x900]", false, true }, { "[0x900, twin]", false, true },
                { "[inner]", true, true }, { "[inner, \"@leaf02\"]", false, false },
        };

        for (size_t i = 0; i < ELEMENTS(groups); i++) {
                resolve_in_force(arena_printf(arena, "version: 1\ngroups:\n  g: %s\n  inner: [\"tw*\"]\npartitions:\n  p:\n"
                                              "    pkey: 0x0010\n    members: {g: full}\n", groups[i].group));
                ck_assert_int_eq(frozen(0x901), groups[i].first ? FREEZE_NAME : FREEZE_NONE);
                ck_assert_int_eq(frozen(0xa01), groups[i].second ? FREEZE_NAME : FREEZE_NONE);
                ck_assert_int_eq(of(0x901), MEMBERSHIP_FULL);
        }
}
END_TEST

/* pkeyd knows its own host, so that this one is not frozen if another host has its name. */
START_TEST(name_of_this_host)
{
        struct subnet *s = fixture_subnet();
        int r;

        s->self = fixture_port(s, 0x901);
        subnet = s;
        r = apply_in_force(with_members("      twin: full\n"));
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(frozen(0x901), FREEZE_NONE);
        ck_assert_int_eq(frozen(0xa01), FREEZE_NAME);
}
END_TEST

START_TEST(switch_names_in_force)
{
        struct subnet *s = fixture_subnet();
        int r;

        s->nodes[subnet_find_node(s, (struct guid) { 0x5000 })].name = "leaf01";
        for (uint32_t i = 0; i < s->n_by_name; i++) /* names stay in order: leaf03 comes after leaf01 and leaf02 */
                if (s->nodes[s->by_name[i]].guid.v == 0x5000) {
                        memmove(&s->by_name[i], &s->by_name[i - 1], sizeof(*s->by_name));
                        s->by_name[i - 1] = subnet_find_node(s, (struct guid) { 0x5000 });
                }
        subnet = s;
        r = apply_in_force(with_members("      \"@leaf01/4,7\": full\n      0x101: full\n"));
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(only(FINDING_SELECTOR_SWITCH_AMBIGUOUS)->severity, FINDING_ERROR);
        ck_assert_int_eq(frozen(0x301), FREEZE_SWITCH_NAME);
        ck_assert_int_eq(frozen(0xc01), FREEZE_SWITCH_NAME);
        ck_assert_uint_eq(count_frozen(), 2);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
}
END_TEST

/* Errors about absent ports freeze nothing. */
START_TEST(not_there_in_force)
{
        resolve_in_force("version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
                         "      nobody: full\n      \"@leaf01/1-40\": full\n");
        ck_assert_int_eq(only(FINDING_SELECTOR_NO_MATCH)->severity, FINDING_ERROR);
        ck_assert_int_eq(only(FINDING_SELECTOR_SWITCH_PORT)->severity, FINDING_ERROR);
        ck_assert_uint_eq(count_frozen(), 0);
        ck_assert_int_eq(of(0x101), MEMBERSHIP_FULL);
}
END_TEST

/* The port that pkeyd works through and the master SM's port are full members of the default partition, even if lines disagree
 * about them. */
START_TEST(exempt_in_force)
{
        resolve_in_force("version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n      sm1: limited\n"
                         "      \"@leaf01\": full\n      head1: limited\n");
        ck_assert_uint_eq(count_frozen(), 0);
        ck_assert_int_eq(in_default(0x401), MEMBERSHIP_FULL);
        ck_assert_int_eq(in_default(0x501), MEMBERSHIP_FULL);
}
END_TEST

/* A code that is not listed is not about single ports, so that a new code cannot let a policy go on by mistake. */
START_TEST(scopes)
{
        static const enum finding_code of_ports[] = {
                FINDING_POLICY_AMBIGUOUS, FINDING_SELECTOR_SWITCH_AMBIGUOUS, FINDING_SELECTOR_NO_MATCH,
                FINDING_SELECTOR_SWITCH_PORT, FINDING_PLAN_CAPACITY, FINDING_PLAN_CAPACITY_TRANSITION,
        };

        for (enum finding_code code = 0; code < FINDING_CODE_MAX; code++) {
                bool is_listed = false;

                for (size_t i = 0; i < ELEMENTS(of_ports); i++)
                        is_listed = is_listed || of_ports[i] == code;
                ck_assert_int_eq(freeze_is_of_ports(code), is_listed);
        }
        for (enum freeze f = FREEZE_NAME; f < N_FREEZES; f++) {
                ck_assert_uint_gt(strlen(freeze_to_string(f)), 3);
                ck_assert_uint_gt(strlen(freeze_reason(f)), 10);
                ck_assert_uint_gt(strlen(freeze_way_out(f)), 10);
        }
}
END_TEST

START_TEST(several_devices_are_no_duplicates)
{
        resolve_members("      node0003: full\n");
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

/* 12,000 hosts and hundreds of lines: each line searches the names, and does not try all of them. */
START_TEST(large)
{
        struct subnet_builder *b;
        struct subnet *s;
        const char *yaml = "version: 1\ngroups: {everyone: \"node[00000-11999]\"}\npartitions:\n";
        char *lines = arena_alloc_array(arena, 1, 1 << 20);
        size_t used = 0;
        unsigned i;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (i = 0; i < 12000; i++) {
                struct fixture_cable c = { 0x100000 + 0x10ull * i, arena_printf(arena, "node%05u mlx5_0", i), 1, 0, 0 };
                struct subnet_port port = { .number = 1, .guid = { c.ca + 1 } };

                fixture_node(b, c.ca, NODE_CA, 1, c.description);
                ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { c.ca }, &port), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &s), 0);
        used += (size_t) sprintf(lines, "%s", yaml);
        for (i = 1; i <= 300; i++)
                used += (size_t) sprintf(lines + used, "  p%u:\n    pkey: 0x%04x\n    members:\n      everyone: limited\n"
                                         "      node[%05u-%05u]: full\n      node%05u: full\n", i, i, i * 10, i * 10 + 9, i);
        ck_assert_int_eq(policy_resolve(arena, parse(lines), s, &findings, &memberships), 0);
        ck_assert_uint_eq(memberships->first[s->n_ports], 12000 * 301);
}
END_TEST

/* The line of a lease claims index 0 of its members, and of no other port. */
START_TEST(index0_of_a_lease)
{
        struct desired *d;

        resolve_members("      node0001: full\n      node0002: full\n");
        ck_assert_int_eq(desired_compute(arena, memberships, &d), 0);
        ck_assert_uint_eq(d->ports[fixture_port(subnet, 0x101)].index0_base, 0);
        ((struct policy_rule *) find(0x101, 1)->rule)->index0 = true;
        ck_assert_int_eq(desired_compute(arena, memberships, &d), 0);
        ck_assert_uint_eq(d->ports[fixture_port(subnet, 0x101)].index0_base, memberships->policy->partitions[1].base);
        ck_assert_uint_eq(d->ports[fixture_port(subnet, 0x201)].index0_base, 0);
}
END_TEST

static void add_oddities(TCase *c)
{
        tcase_add_loop_test(c, no_match, 0, ELEMENTS(no_matches));
        tcase_add_loop_test(c, seen_once, 0, (int) ELEMENTS(absent));
        tcase_add_test(c, seen_once_and_incomplete);
        tcase_add_test(c, seen_once_and_asked_for);
        tcase_add_test(c, seen_once_is_an_error_when_strict);
        tcase_add_test(c, names_each_guid_once);
        tcase_add_test(c, of_no_type_before_it_is_seen);
        tcase_add_test(c, no_match_in_a_pool);
        tcase_add_test(c, no_match_is_an_error_when_strict);
        tcase_add_test(c, no_match_within_a_group_is_said_once);
        tcase_add_test(c, an_empty_group);
        tcase_add_test(c, keywords_may_match_nothing);
        tcase_add_test(c, partial);
        tcase_add_test(c, partial_of_a_billion);
        tcase_add_test(c, complete_ranges_are_not_partial);
        tcase_add_test(c, switches_of_one_name);
        tcase_add_test(c, boards_of_a_director);
        tcase_add_test(c, boards_in_the_hint);
        tcase_add_test(c, two_switches_of_one_board);
        tcase_add_test(c, no_such_board);
        tcase_add_test(c, no_such_unit_of_a_board);
        tcase_add_test(c, board_that_begins_like_another);
        tcase_add_test(c, no_such_port_of_a_board);
        tcase_add_test(c, what_is_no_board);
        tcase_add_test(c, boards_contradict_each_other);
        tcase_add_test(c, switch_has_no_such_port);
        tcase_add_test(c, duplicate_names);
        tcase_add_test(c, lines_disagree_in_force);
        tcase_add_test(c, three_lines_disagree_in_force);
        tcase_add_loop_test(c, names_in_force, 0, ELEMENTS(twin_policies));
        tcase_add_test(c, twins_among_many);
        tcase_add_test(c, contested_in_one_of_several);
        tcase_add_loop_test(c, certain, 0, ELEMENTS(certain_policies));
        tcase_add_test(c, certain_of_the_default_partition);
        tcase_add_test(c, certain_of_the_sm);
        tcase_add_test(c, names_in_groups);
        tcase_add_test(c, name_of_this_host);
        tcase_add_test(c, switch_names_in_force);
        tcase_add_test(c, not_there_in_force);
        tcase_add_test(c, exempt_in_force);
        tcase_add_test(c, scopes);
        tcase_add_test(c, several_devices_are_no_duplicates);
        tcase_add_test(c, large);
}

static void add_rules(TCase *c)
{
        tcase_add_loop_test(c, selecting, 0, ELEMENTS(selections));
        tcase_add_test(c, a_port_and_a_node_of_one_guid);
        tcase_add_test(c, selecting_all);
        tcase_add_test(c, selecting_group);
        tcase_add_test(c, groups_do_not_mix);
        tcase_add_test(c, selecting_nonsense);
        tcase_add_loop_test(c, selecting_at_random, 0, 40);
        tcase_add_loop_test(c, specificity, 0, ELEMENTS(classes));
        tcase_add_test(c, order_of_lines_does_not_matter);
        tcase_add_test(c, the_deciding_line_is_named);
        tcase_add_test(c, the_overridden_line_is_named);
        tcase_add_test(c, specificity_within_a_line);
        tcase_add_test(c, ambiguous);
        tcase_add_test(c, not_ambiguous_if_something_more_specific_decides);
        tcase_add_test(c, not_ambiguous_if_they_agree);
        tcase_add_test(c, each_pair_of_lines_once);
        tcase_add_test(c, groups_may_be_ambiguous);
        tcase_add_test(c, default_partition_made_up);
        tcase_add_test(c, self_and_sm_stay_full);
        tcase_add_test(c, self_may_be_both);
        tcase_add_test(c, self_is_not_disputed_in_the_default_partition);
        tcase_add_test(c, default_partition_not_owned);
        tcase_add_test(c, external_ports_have_none);
        tcase_add_test(c, no_members);
        tcase_add_test(c, index0_of_a_lease);
}

int main(void)
{
        Suite *suite = suite_create("policy_resolve");
        TCase *c = tcase_create("policy_resolve");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_set_timeout(c, 120);
        add_rules(c);
        add_oddities(c);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
