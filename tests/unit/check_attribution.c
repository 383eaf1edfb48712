/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy_fixture.h"

#include "../fabsim/prng.h"
#include "leases/leases.h"
#include "violations/attribution.h"
#include "violations/notice_ends.h"
#include "violations/phrase.h"

#define SECOND USEC_PER_SEC
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* Now. */
#define NOW (100 * DAY)

/*
 * leaf07 (LID 70, can enforce): 3 node0007 (LIDs 16 to 19), 4 oss01, 5 router rt1, 6 node0043, 12 node0042;
 * leaf08 (LID 80, cannot): 1 node0050, 2 and 3 gpu01, which has two adapters. Port GUIDs are node GUIDs + 1.
 */
#define NODE0007 0x700
#define OSS01    0x100
#define RT1      0x800
#define NODE0043 0x4300
#define NODE0042 0x4200
#define NODE0050 0x5000
#define GPU01_0  0x6000
#define GPU01_1  0x6100
#define LEAF07   0x70000
#define LEAF08   0x80000
#define VANISHED 0xdead

static void add_switch(struct subnet_builder *b, uint64_t guid, const char *name, uint16_t lid, bool can_enforce)
{
        struct subnet_node node = { .guid = { guid }, .type = NODE_SWITCH, .num_ports = 36, .partition_cap = 32 };
        struct subnet_port port = { .guid = { guid }, .lid = { lid } };

        node.partition_enforcement_cap = can_enforce ? 32 : 0;
        node.inbound_enforcement_cap = node.outbound_enforcement_cap = can_enforce;
        ck_assert_int_eq(subnet_builder_add_node(b, &node, name, strlen(name)), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

static void add_host(struct subnet_builder *b, uint64_t guid, const char *name, uint16_t lid, uint8_t lmc, uint64_t sw,
                     uint8_t number, bool enforces)
{
        struct subnet_node node = { .guid = { guid }, .num_ports = 1, .partition_cap = 128 };
        struct subnet_port port = { .number = 1, .guid = { guid + 1 }, .lid = { lid }, .lmc = lmc };
        struct subnet_port external = { .number = number, .enforce_inbound = enforces, .enforce_outbound = enforces };

        node.type = guid == RT1 ? NODE_ROUTER : NODE_CA;
        port.state = external.state = PORT_STATE_ACTIVE;
        ck_assert_int_eq(subnet_builder_add_node(b, &node, name, strlen(name)), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { sw }, &external), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, node.guid, 1, (struct guid) { sw }, number), 0);
}

static struct subnet *make_fabric_of(bool has_node0042)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_switch(b, LEAF07, "MF0;leaf07:MQM8700/U1", 70, true);
        add_switch(b, LEAF08, "leaf08 switch", 80, false);
        add_host(b, NODE0007, "node0007 mlx5_0", 16, 2, LEAF07, 3, true);
        add_host(b, OSS01, "oss01 mlx5_0", 30, 0, LEAF07, 4, true);
        add_host(b, RT1, "rt1 router", 50, 0, LEAF07, 5, true);
        add_host(b, NODE0043, "node0043 mlx5_0", 43, 0, LEAF07, 6, false);
        if (has_node0042)
                add_host(b, NODE0042, "node0042 mlx5_0", 42, 0, LEAF07, 12, true);
        add_host(b, NODE0050, "node0050 mlx5_0", 60, 0, LEAF08, 1, false);
        add_host(b, GPU01_0, "gpu01 mlx5_0", 61, 0, LEAF08, 2, false);
        add_host(b, GPU01_1, "gpu01 mlx5_1", 62, 0, LEAF08, 3, false);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { OSS01 }, 1, (struct guid) { OSS01 }, 1, &s), 0);
        return s;
}

#define POLICY(tenant_a, lustre)                                                                                       \
        "version: 1\n"                                                                                                 \
        "owns: [0x7fff, 0x0001-0x0fff]\n"                                                                              \
        "partitions:\n"                                                                                                \
        "  lustre: {pkey: 0x0010, members: {oss01: full, 'node*': limited" lustre "}}\n"                               \
        "  tenant-a: {pkey: 0x0101, members: {" tenant_a "}}\n"                                                        \
        "  tenant-b: {pkey: 0x0102, members: {node0050: full, node0043: both, oss01: limited, gpu01/mlx5_0: full}}\n"

#define BEFORE POLICY("node0042: full, node0043: full, node0007: full", ", '0x700': full")
#define AFTER  POLICY("node0043: limited, node0007: full", "")

static struct subnet *make_fabric(void)
{
        return make_fabric_of(true);
}

static const struct subnet *subnet;
static const struct memberships *memberships;
static struct membership_history *history;
static struct lid_map *lids;

static const struct memberships *resolve(const char *yaml)
{
        struct memberships *m = NULL;
        int r = policy_resolve(arena, parse(yaml), subnet, &findings, &m);

        ck_assert_msg(r == 0, "%d\n%s", r, print_findings());
        return m;
}

/* Generation 41 for five days, 42 three minutes ago. */
static void setup_fabric(void)
{
        setup();
        subnet = make_fabric();
        lids = lid_map_new(arena, subnet);
        ck_assert_ptr_nonnull(lids);
        history = membership_history_new();
        ck_assert_ptr_nonnull(history);
        ck_assert_int_eq(membership_history_learn(history, NOW - 5 * DAY, 41, resolve(BEFORE)), 0);
        memberships = resolve(AFTER);
        ck_assert_int_eq(membership_history_learn(history, NOW - 3 * MINUTE, 42, memberships), 0);
}

static void teardown_fabric(void)
{
        history = membership_history_free(history);
        teardown();
}

static struct attribution_input everything(void)
{
        return (struct attribution_input) { subnet, memberships, history, NOW, NULL, false };
}

/* --- situations ------------------------------------------------------------------------------------------------- */

struct situation {
        enum violation_kind kind;
        enum violation_source source;
        uint64_t node;
        uint8_t port;
        uint64_t count;
        usec_t ago;         /* since when the report counts */
        uint64_t episode;   /* 0: count */
        usec_t began_ago;   /* 0: now */
        struct notice notice;
        unsigned bits;
        const char *text;
};

#define ENDS(from, to) .lid1 = { from }, .lid2 = { to }
#define GID1(guid)     .gid1 = { 0xfe80000000000000, guid }, .has_gid1 = true
#define GID2(guid)     .gid2 = { 0xfe80000000000000, guid }, .has_gid2 = true
#define AT(lid, p)     .switch_lid = { lid }, .switch_port = p, .has_switch_port = true

static const struct situation situations[] = {
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 3, 60 * SECOND, 0, 0, {}, 8,
          "node0042 mlx5_0/1 sent 3 packets in the last 60 seconds with a P_Key that its switch port leaf07/12 does not "
          "accept (PortRcvConstraintErrors); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation "
          "42: probably its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 1, 0, 0, 0, {}, 8,
          "node0042 mlx5_0/1 sent 1 packet with a P_Key that its switch port leaf07/12 does not accept "
          "(PortRcvConstraintErrors); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: "
          "probably its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_MORE, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 42, 60 * SECOND, 12345, 2 * MINUTE, {}, 8,
          "node0042 mlx5_0/1 sent 42 more packets in the last 60 seconds with a P_Key that its switch port leaf07/12 "
          "does not accept (PortRcvConstraintErrors); 12,345 since it began 2 minutes ago; node0042 was taken out of "
          "tenant-a (0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it is a limited "
          "member of default and lustre" },
        /* it had begun before the change */
        { VIOLATION_MORE, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 1, 60 * SECOND, 9, 2 * HOUR, {}, 8,
          "node0042 mlx5_0/1 sent 1 more packet in the last 60 seconds with a P_Key that its switch port leaf07/12 does "
          "not accept (PortRcvConstraintErrors); 9 since it began 2 hours ago; node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42, after this had begun; it is a limited member of default and lustre" },
        /* no check of P_Keys, nothing changed, a switch that cannot check, ports that are gone */
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 6, 5, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf07/6 dropped 5 packets in the last 60 seconds from node0043 mlx5_0/1 "
          "(PortRcvConstraintErrors); the port also counts raw packets that it filters (FilterRawInbound): the likelier "
          "cause, because it does not check P_Keys of incoming packets now; node0043 was changed from a full to a "
          "limited member of tenant-a (0x0101) 3 minutes ago by generation 42: probably because of that; it is a full "
          "and limited member of tenant-b, a limited member of default, lustre and tenant-a" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 4, 5, 60 * SECOND, 0, 0, {}, 8,
          "oss01 mlx5_0/1 sent 5 packets in the last 60 seconds with a P_Key that its switch port leaf07/4 does not "
          "accept (PortRcvConstraintErrors); the partitions of oss01 have not changed in the last 5 days, which is as far as pkeyd knows; "
          "it is a full member of default and lustre, a limited member of tenant-b" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF08, 1, 5, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf08/1 dropped 5 packets in the last 60 seconds from node0050 mlx5_0/1 "
          "(PortRcvConstraintErrors); the port also counts raw packets that it filters (FilterRawInbound): the likelier "
          "cause, because the switch reports that it cannot check P_Keys; the partitions of node0050 have not changed in "
          "the last 5 days, which is as far as pkeyd knows; it is a full member of tenant-b, a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 20, 5, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf07/20 dropped 5 packets in the last 60 seconds from its host (PortRcvConstraintErrors); no "
          "host is plugged into leaf07/20" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, VANISHED, 2, 5, 60 * SECOND, 0, 0, {}, 8,
          "port 2 of node 0x000000000000dead refused 5 packets in the last 60 seconds that came in "
          "(PortRcvConstraintErrors); port 2 of node 0x000000000000dead is not in the fabric any more" },
        { VIOLATION_FIRST, VIOLATION_XMIT_CONSTRAINT, LEAF07, 12, 3, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf07/12 dropped 3 packets in the last 60 seconds to node0042 mlx5_0/1 with a P_Key that the "
          "port does not accept (PortXmitConstraintErrors); node0042 was taken out of tenant-a (0x0101) 3 minutes ago "
          "by generation 42: probably other members still send to it; it is a limited member of default and lustre; "
          "this counter does not show the sender: check for an entry of the same time that names one (notice 257 or "
          "259, or PortRcvConstraintErrors)" },
        { VIOLATION_FIRST, VIOLATION_XMIT_CONSTRAINT, LEAF07, 6, 3, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf07/6 dropped 3 packets in the last 60 seconds to node0043 mlx5_0/1 "
          "(PortXmitConstraintErrors); the port also counts raw packets that it filters (FilterRawOutbound): the "
          "likelier cause, because it does not check P_Keys of outgoing packets now; node0043 was changed from a full "
          "to a limited member of tenant-a (0x0101) 3 minutes ago by generation 42: probably because of that; it is a "
          "full and limited member of tenant-b, a limited member of default, lustre and tenant-a" },
        { VIOLATION_FIRST, VIOLATION_XMIT_CONSTRAINT, LEAF08, 1, 1, 60 * SECOND, 0, 0, {}, 8,
          "switch port leaf08/1 dropped 1 packet in the last 60 seconds to node0050 mlx5_0/1 "
          "(PortXmitConstraintErrors); the port also counts raw packets that it filters (FilterRawOutbound): the "
          "likelier cause, because the switch reports that it cannot check P_Keys; the partitions of node0050 have not "
          "changed in the last 5 days, which is as far as pkeyd knows; it is a full member of tenant-b, a limited member of default and "
          "lustre" },
        { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, NODE0042, 1, 3, 60 * SECOND, 0, 0, {}, 64,
          "node0042 mlx5_0/1 refused 3 packets in the last 60 seconds that came in (PortRcvConstraintErrors); the "
          "standard (IBA 16.1.3.5) defines this counter for switch ports only: what an adapter counts in it is its "
          "vendor's choice; node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably "
          "other members still send to it; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_XMIT_CONSTRAINT, NODE0042, 1, 3, 60 * SECOND, 0, 0, {}, 64,
          "node0042 mlx5_0/1 refused 3 packets in the last 60 seconds going out (PortXmitConstraintErrors); "
          "the standard (IBA 16.1.3.5) defines this counter for switch ports only: what an adapter counts in it is "
          "its vendor's choice; node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably "
          "its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_P_KEY_VIOLATIONS, NODE0042, 1, 3, 60 * SECOND, 0, 0, {}, 16,
          "node0042 mlx5_0/1 received 3 packets in the last 60 seconds with a P_Key that matches none of its own "
          "(PortInfo:P_KeyViolations); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: "
          "probably other members still send to it; it is a limited member of default and lustre; this counter does not "
          "show the sender: check for an entry of the same time that names one (notice 257 or 259, or "
          "PortRcvConstraintErrors)" },
        { VIOLATION_FIRST, VIOLATION_P_KEY_VIOLATIONS, LEAF07, 0, 3, 60 * SECOND, 0, 0, {}, 16,
          "leaf07/0 received 3 packets in the last 60 seconds with a P_Key that matches none of its own "
          "(PortInfo:P_KeyViolations); the partitions of leaf07 have not changed in the last 5 days, which is as far as pkeyd knows; it "
          "is a limited member of default; this counter does not show the sender: check for an entry of the same time "
          "that names one (notice 257 or 259, or PortRcvConstraintErrors)" },
        { VIOLATION_FIRST, VIOLATION_BAD_PKEY_CNTR, OSS01, 1, 3, 60 * SECOND, 0, 0, {}, 0,
          "oss01 mlx5_0/1 received 3 packets in the last 60 seconds with a P_Key that matches none of its own "
          "(bad_pkey_cntr); the partitions of oss01 have not changed in the last 5 days, which is as far as pkeyd knows; it is a full "
          "member of default and lustre, a limited member of tenant-b; this counter does not show the sender: check for "
          "an entry of the same time that names one (notice 257 or 259, or PortRcvConstraintErrors)" },
        { VIOLATION_SATURATED, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 10, 60 * SECOND, 0, 0, {}, 8,
          "PortRcvConstraintErrors of switch port leaf07/12 is at its maximum, 255: there may have been more, and no "
          "more are seen until it is cleared (pkeyd clears it with violations: clear_saturated: true; by hand: "
          "perfquery -R 70 12); it counts packets that node0042 mlx5_0/1 sent with a P_Key that its switch port "
          "leaf07/12 does not accept, 10 in the last 60 seconds; node0042 was taken out of tenant-a (0x0101) 3 minutes "
          "ago by generation 42: probably its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_SATURATED, VIOLATION_XMIT_CONSTRAINT, LEAF07, 12, 0, 60 * SECOND, 5, 0, {}, 0,
          "PortXmitConstraintErrors of switch port leaf07/12 is at its maximum: there may have been more, and no more "
          "are seen until it is cleared (pkeyd clears it with violations: clear_saturated: true; by hand: perfquery -R "
          "70 12); it counts packets that switch port leaf07/12 dropped to node0042 mlx5_0/1 with a P_Key that the port "
          "does not accept; node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably other "
          "members still send to it; it is a limited member of default and lustre; this counter does not show the "
          "sender: check for an entry of the same time that names one (notice 257 or 259, or PortRcvConstraintErrors)" },
        { VIOLATION_SATURATED, VIOLATION_P_KEY_VIOLATIONS, NODE0050, 1, 1, 60 * SECOND, 0, 0, {}, 16,
          "PortInfo:P_KeyViolations of node0050 mlx5_0/1 is at its maximum, 65,535: there may have been more, and no "
          "more are seen until it is cleared; it counts packets that node0050 mlx5_0/1 received with a P_Key that "
          "matches none of its own, 1 in the last 60 seconds; the partitions of node0050 have not changed in the last 5 days, "
          "which is as far as pkeyd knows; it is a full member of tenant-b, a limited member of default and lustre; this counter "
          "does not show the sender: check for an entry of the same time that names one (notice 257 or 259, or "
          "PortRcvConstraintErrors)" },
        { VIOLATION_SATURATED, VIOLATION_BAD_PKEY_CNTR, OSS01, 1, 0, 60 * SECOND, 0, 0, {}, 0,
          "bad_pkey_cntr of oss01 mlx5_0/1 is at its maximum: there may have been more, and no more are seen until it "
          "is cleared; it counts packets that oss01 mlx5_0/1 received with a P_Key that matches none of its own; the "
          "partitions of oss01 have not changed in the last 5 days, which is as far as pkeyd knows; it is a full member of default and "
          "lustre, a limited member of tenant-b; this counter does not show the sender: check for an entry of the same "
          "time that names one (notice 257 or 259, or PortRcvConstraintErrors)" },
        { VIOLATION_QUIET, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 345, 17 * MINUTE, 0, 17 * MINUTE, {}, 8,
          "quiet again after 12 minutes, 345 in all, the last 5 minutes ago: packets that node0042 mlx5_0/1 sent with a "
          "P_Key that its switch port leaf07/12 does not accept (PortRcvConstraintErrors)" },
        { VIOLATION_QUIET, VIOLATION_P_KEY_VIOLATIONS, NODE0042, 1, 1, 5 * MINUTE, 0, 5 * MINUTE, {}, 8,
          "quiet again after a moment, 1 in all, the last 5 minutes ago: packets that node0042 mlx5_0/1 received with "
          "a P_Key that matches none of its own (PortInfo:P_KeyViolations)" },
        /* 257 */
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 3, 60 * SECOND, 0, 0, { .key = 0x8101, ENDS(42, 18),
          .qp1 = 0x48, .qp2 = 0x1a2 }, 0,
          "node0042 mlx5_0/1 sent at least 3 packets in the last 60 seconds to node0007 mlx5_0/1 with P_Key 0x8101 "
          "(the full key of tenant-a), refused there (notice 257, P_Key mismatch, queue pair 0x48 to 0x1a2); node0042 "
          "was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably its jobs still use the old "
          "key; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(60, 18), GID1(NODE0050
          + 1), GID2(NODE0007 + 1) }, 0,
          "node0050 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0050 was never a member of tenant-a (0x0101) in the 5 days that "
          "pkeyd remembers; it is a full member of tenant-b, a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0042, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(16, 42) }, 0,
          "node0007 mlx5_0/1 sent 1 packet to node0042 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by "
          "generation 42: probably other members still send to it; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0050, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(16, 60) }, 0,
          "node0007 mlx5_0/1 sent 1 packet to node0050 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0050 was never a member of tenant-a (0x0101) in the 5 days that "
          "pkeyd remembers; it is a full member of tenant-b, a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0050, 1, 1, 0, 0, 0, { .key = 0x0010, ENDS(42, 60) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0050 mlx5_0/1 with P_Key 0x0010 (the limited key of lustre), "
          "refused there (notice 257, P_Key mismatch); both are limited members of lustre: limited members may not "
          "talk to each other" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0050, 1, 1, 0, 0, 0, { .key = 0x0010, ENDS(16, 60) }, 0,
          "node0007 mlx5_0/1 sent 1 packet to node0050 mlx5_0/1 with P_Key 0x0010 (the limited key of lustre), "
          "refused there (notice 257, P_Key mismatch); both are limited members of lustre: limited members may not "
          "talk to each other; node0007 was changed from a full to a limited member of lustre (0x0010) 3 minutes ago "
          "by generation 42: probably because of that" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, OSS01, 1, 1, 0, 0, 0, { .key = 0x0102, ENDS(43, 30) }, 0,
          "node0043 mlx5_0/1 sent 1 packet to oss01 mlx5_0/1 with P_Key 0x0102 (the limited key of tenant-b), refused "
          "there (notice 257, P_Key mismatch); node0043 used its limited key of tenant-b, and oss01 is a limited "
          "member: limited members may not talk to each other" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(43, 16) }, 0,
          "node0043 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0043 is only a limited member of tenant-a, but used the full key; "
          "node0043 was changed from a full to a limited member of tenant-a (0x0101) 3 minutes ago by generation 42: "
          "probably because of that" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x0101, ENDS(43, 16) }, 0,
          "node0043 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x0101 (the limited key of tenant-a), "
          "refused there (notice 257, P_Key mismatch); the policy lets them talk; node0043 was changed from a full to a "
          "limited member of tenant-a (0x0101) 3 minutes ago by generation 42; check their P_Key tables with pkeyctl "
          "verify" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0050, 1, 1, 0, 0, 0, { .key = 0x8010, ENDS(30, 60) }, 0,
          "oss01 mlx5_0/1 sent 1 packet to node0050 mlx5_0/1 with P_Key 0x8010 (the full key of lustre), refused there "
          "(notice 257, P_Key mismatch); the policy lets them talk; check their P_Key tables with pkeyctl verify" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8333, ENDS(42, 16) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8333, refused there (notice 257, P_Key "
          "mismatch); no partition of the policy has 0x0333; node0042 is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x9333, ENDS(42, 16) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x9333, refused there (notice 257, P_Key "
          "mismatch); no partition of the policy has 0x1333 (owns: does not include it); node0042 is a limited member "
          "of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8000, ENDS(42, 16) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8000, refused there (notice 257, P_Key "
          "mismatch); this is not a P_Key but an empty table entry: probably the entry that the queue pair used was "
          "removed; node0042 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably its jobs still "
          "use the old key" },
        /* to a multicast group, of which a member refused it */
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0042, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(16, 0xc003),
          .gid2 = { 0xff12401b81010002, 0x00030004ffffffff }, .has_gid2 = true }, 0,
          "node0007 mlx5_0/1 sent 1 packet to multicast LID 0xc003 (MGID ff12:401b:8101:2:3:4:ffff:ffff) with P_Key 0x8101 (the "
          "full key of tenant-a), refused by node0042 mlx5_0/1 (notice 257, P_Key mismatch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably other members still send to it; it is a limited member of default "
          "and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x18101, ENDS(42, 16) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x18101, refused there (notice 257, P_Key "
          "mismatch); no P_Key has more than 16 bits" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(777, 16) }, 0,
          "LID 777 (no port of this fabric has it) sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key "
          "of tenant-a), refused there (notice 257, P_Key mismatch); node0007 is a full member of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(777, 16),
          GID1(NODE0042 + 1) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by "
          "generation 42: probably its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(42, 16), GID1(0xabc)
          }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "there (notice 257, P_Key mismatch); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by "
          "generation 42: probably its jobs still use the old key; it is a limited member of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(777, 16), GID1(0xabc)
          }, 0,
          "LID 777 with port GUID 0x0000000000000abc (no port of this fabric has it) sent 1 packet to node0007 "
          "mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused there (notice 257, P_Key mismatch); "
          "node0007 is a full member of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(0, 16), GID1(0xabc)
          }, 0,
          "LID 0 with port GUID 0x0000000000000abc (no port of this fabric has it) sent 1 packet to node0007 "
          "mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused there (notice 257, P_Key mismatch); "
          "node0007 is a full member of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(50, 16), GID1(0xabc)
          }, 0,
          "port GUID 0x0000000000000abc behind router rt1 router/1 sent 1 packet to node0007 mlx5_0/1 with P_Key "
          "0x8101 (the full key of tenant-a), refused there (notice 257, P_Key mismatch); node0007 is a full member "
          "of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(60, 16), GID1(NODE0042
          + 1) }, 0,
          "a port that is node0042 mlx5_0/1 by GID but node0050 mlx5_0/1 by LID sent 1 packet to node0007 mlx5_0/1 with "
          "P_Key 0x8101 (the full key of tenant-a), refused there (notice 257, P_Key mismatch); one of the two "
          "addresses is false; node0007 is a full member of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(0, 0xffff) }, 0,
          "an unknown port sent 1 packet to LID 65535 (no port of this fabric has it) with P_Key 0x8101 (the full key "
          "of tenant-a), refused by node0007 mlx5_0/1 (notice 257, P_Key mismatch)" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(43, 42) }, 0,
          "node0043 mlx5_0/1 sent 1 packet to node0042 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "by node0007 mlx5_0/1 (notice 257, P_Key mismatch); node0042 was taken out of tenant-a (0x0101) 3 minutes "
          "ago by generation 42: probably other members still send to it; it is a limited member of default and "
          "lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, VANISHED, 1, 1, 0, 0, 0, { .key = 0x8101, ENDS(42, 99) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to LID 99 (no port of this fabric has it) with P_Key 0x8101 (the full key "
          "of tenant-a), refused by port 1 of node 0x000000000000dead (notice 257, P_Key mismatch); node0042 was "
          "taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it "
          "is a limited member of default and lustre; port 1 of node 0x000000000000dead is not in the fabric "
          "any more" },
        { VIOLATION_QUIET, VIOLATION_NOTICE_257, NODE0007, 1, 1, 10 * MINUTE, 0, 10 * MINUTE, { .key = 0x8101,
          ENDS(42, 16) }, 0,
          "quiet again after 5 minutes, 1 in all, the last 5 minutes ago: packets that node0042 mlx5_0/1 sent to "
          "node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused there (notice 257, P_Key "
          "mismatch)" },
        /* 258 */
        { VIOLATION_MORE, VIOLATION_NOTICE_258, NODE0007, 1, 2, 60 * SECOND, 5, 3 * MINUTE, { .key = 0x11111111,
          ENDS(42, 16), .qp1 = 0x48, .qp2 = 1 }, 0,
          "node0042 mlx5_0/1 sent at least 2 more packets in the last 60 seconds to node0007 mlx5_0/1 with a Q_Key that "
          "it does not expect, refused there (notice 258, Q_Key mismatch, queue pair 0x48 to 0x1); 5 since it began 3 "
          "minutes ago; this does not concern partitions: the two programs do not agree on the Q_Key, the key between "
          "datagram queue pairs" },
        /* 259 */
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(42, 16), AT(70, 12) },
          0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it is a limited member "
          "of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(16, 42), AT(70, 12) },
          0,
          "node0007 mlx5_0/1 sent 1 packet to node0042 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably other members still send to it; it is a limited member "
          "of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(60, 16), GID1(NODE0042
          + 1), AT(70, 12) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it is a limited member "
          "of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(42, 16), GID1(NODE0050
          + 1), AT(70, 12) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it is a limited member "
          "of default and lustre" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(60, 16), AT(70, 12) },
          0,
          "node0050 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); only node0042 mlx5_0/1 is plugged into "
          "leaf07/12, so at least one of these addresses is false" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 12, 1, 0, 0, 0, { .key = 0x8101, ENDS(777, 16), AT(70, 12) },
          0,
          "LID 777 (no port of this fabric has it) sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key "
          "of tenant-a), refused at switch port leaf07/12 (notice 259, P_Key mismatch at a switch); only node0042 "
          "mlx5_0/1 is plugged into leaf07/12; node0007 is a full member of tenant-a" },
        { VIOLATION_FIRST, VIOLATION_NOTICE_259, LEAF07, 20, 1, 0, 0, 0, { .key = 0x8101, ENDS(42, 16), AT(70, 20) },
          0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
          "at switch port leaf07/20 (notice 259, P_Key mismatch at a switch); node0042 was taken out of tenant-a "
          "(0x0101) 3 minutes ago by generation 42: probably its jobs still use the old key; it is a limited member "
          "of default and lustre; pkeyd does not know the host at leaf07/20 (yet)" },
        /* the default partition */
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0, { .key = 0xffff, ENDS(42, 16) }, 0,
          "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0xffff (the full key of default), refused there "
          "(notice 257, P_Key mismatch); node0042 is only a limited member of default, but used the full key" },
        /* its other adapter is a member */
        { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0050, 1, 1, 0, 0, 0, { .key = 0x8102, ENDS(62, 60) }, 0,
          "gpu01 mlx5_1/1 sent 1 packet to node0050 mlx5_0/1 with P_Key 0x8102 (the full key of tenant-b), refused there "
          "(notice 257, P_Key mismatch); gpu01 mlx5_1/1 was never a member of tenant-b (0x0102) in the 5 days that pkeyd "
          "remembers; it is a limited member of default" },
};

/* As the violation table does when a notice comes. */
static void add_ends(struct violation_record *r, struct arena *a, const struct subnet *known, const struct lid_map *known_lids)
{
        struct violation_ends *ends = arena_new_object(a, struct violation_ends);

        if (!violation_source_is_notice(r->source))
                return;
        r->notice.trap = (uint16_t) (NOTICE_P_KEY + r->source - VIOLATION_NOTICE_257);
        ck_assert_int_eq(violation_ends_of_notice(a, known, known_lids, &r->notice, ends), 0);
        r->from = &ends->from;
        r->to = &ends->to;
        r->from_conflicts = ends->from_conflicts;
}

static struct violation_report report_of(const struct situation *s, const struct subnet *known)
{
        struct violation_report r = { .kind = s->kind, .count = s->count, .since = s->ago ? NOW - s->ago : 0 };

        r.record.port = (struct violation_port) { { s->node }, s->port };
        r.record.source = s->source;
        r.record.notice = s->notice;
        r.record.bits = s->bits;
        r.record.total = r.record.episode = s->episode ? s->episode : s->count;
        r.record.first = r.record.episode_began = NOW - s->began_ago;
        r.record.last = s->kind == VIOLATION_QUIET ? NOW - 5 * MINUTE : NOW;
        r.n_ports = 1;
        add_ends(&r.record, arena, known, lids);
        return r;
}

static void expect_sentence(size_t i, const char *text, const char *expected)
{
        ck_assert_msg(strcmp(text, expected) == 0, "situation %zu:\n%s\nexpected\n%s", i, text, expected);
}

START_TEST(test_situations)
{
        struct attribution_input c = everything();

        for (size_t i = 0; i < ELEMENTS(situations); i++) {
                struct violation_report report = report_of(&situations[i], subnet);
                struct attribution a;

                ck_assert_int_eq(attribution_explain(arena, &report, &c, &a), 0);
                expect_sentence(i, a.text, situations[i].text);
        }
}
END_TEST

/* --- fields ----------------------------------------------------------------------------------------------------- */

static struct attribution explain(enum violation_source source, uint64_t node, uint8_t port,
                                  const struct notice *notice)
{
        struct situation s = {
                        VIOLATION_FIRST, source, node, port, 1, 0, 0, 0, notice ? *notice : (struct notice) {}, 0, NULL};
        struct violation_report report = report_of(&s, subnet);
        struct attribution_input c = everything();
        struct attribution a;

        ck_assert_int_eq(attribution_explain(arena, &report, &c, &a), 0);
        return a;
}

static void expect_fields(struct attribution a, const char *node, uint64_t port_guid, uint16_t lid, bool names_sender,
                          const char *counted_by, const char *switch_name)
{
        ck_assert_str_eq(a.node, node);
        ck_assert_uint_eq(a.port_guid.v, port_guid);
        ck_assert_uint_eq(a.lid.v, lid);
        ck_assert_uint_eq(a.port, port_guid ? 1 : 0);
        ck_assert_int_eq(a.names_sender, names_sender);
        ck_assert_str_eq(a.counted_by, counted_by);
        ck_assert_pstr_eq(a.switch_name, switch_name);
}

START_TEST(test_fields)
{
        const struct notice outsider = { .key = 0x8101, ENDS(42, 18)},
                            forged = { .key = 0x8333, ENDS(60, 16), AT(70, 12)};
        const struct notice conflict = { .key = 0x0101, ENDS(60, 16), GID1(NODE0042 + 1)},
                            bad = { .key = 0x18101, ENDS(42, 16)};
        struct attribution a;

        /* an enforcing port: the host behind it sent */
        a = explain(VIOLATION_RCV_CONSTRAINT, LEAF07, 12, NULL);
        expect_fields(a, "node0042 mlx5_0/1", NODE0042 + 1, 42, true, "leaf07/12", "leaf07/12");
        ck_assert_ptr_null(a.partition);
        ck_assert_uint_eq(a.p_key.v, 0);
        /* the others do not know who sent */
        expect_fields(explain(VIOLATION_RCV_CONSTRAINT, LEAF07, 6, NULL), "node0043 mlx5_0/1", NODE0043 + 1, 43, false,
                      "leaf07/6", "leaf07/6");
        expect_fields(explain(VIOLATION_RCV_CONSTRAINT, LEAF08, 1, NULL), "node0050 mlx5_0/1", NODE0050 + 1, 60, false,
                      "leaf08/1", "leaf08/1");
        expect_fields(explain(VIOLATION_XMIT_CONSTRAINT, LEAF07, 12, NULL), "node0042 mlx5_0/1", NODE0042 + 1, 42,
                      false, "leaf07/12", "leaf07/12");
        expect_fields(explain(VIOLATION_P_KEY_VIOLATIONS, NODE0007, 1, NULL), "node0007 mlx5_0/1", NODE0007 + 1, 16,
                      false, "node0007 mlx5_0/1", "leaf07/3");
        expect_fields(explain(VIOLATION_P_KEY_VIOLATIONS, VANISHED, 1, NULL), "port 1 of node 0x000000000000dead", 0, 0,
                      false, "port 1 of node 0x000000000000dead", NULL);
        /* notices name who sent, as far as that can be believed */
        a = explain(VIOLATION_NOTICE_257, NODE0007, 1, &outsider);
        expect_fields(a, "node0042 mlx5_0/1", NODE0042 + 1, 42, true, "node0007 mlx5_0/1", "leaf07/3");
        ck_assert_str_eq(a.partition, "tenant-a");
        ck_assert_uint_eq(a.p_key.v, 0x8101);
        a = explain(VIOLATION_NOTICE_257, NODE0007, 1, &conflict);
        expect_fields(a, "node0007 mlx5_0/1", NODE0007 + 1, 16, false, "node0007 mlx5_0/1", "leaf07/3");
        ck_assert_uint_eq(a.p_key.v, 0x0101);
        a = explain(VIOLATION_NOTICE_259, LEAF07, 12, &forged);
        expect_fields(a, "node0042 mlx5_0/1", NODE0042 + 1, 42, false, "leaf07/12", "leaf07/12");
        ck_assert_ptr_null(a.partition);
        ck_assert_uint_eq(a.p_key.v, 0x8333);
        ck_assert_uint_eq(explain(VIOLATION_NOTICE_257, NODE0007, 1, &bad).p_key.v, 0);
        ck_assert_uint_eq(explain(VIOLATION_NOTICE_258, NODE0007, 1, &outsider).p_key.v, 0);
}
END_TEST

/* --- less is known ---------------------------------------------------------------------------------------------- */

static const char *sentence(const struct attribution_input *c, const struct situation *s)
{
        struct violation_report report = report_of(s, c->subnet);
        struct attribution a;

        ck_assert_int_eq(attribution_explain(arena, &report, c, &a), 0);
        return a.text;
}

START_TEST(test_less_is_known)
{
        const struct situation counter = {
                        VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 3, 0, 0, 0, {}, 0, NULL};
        const struct situation notice = { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 3, 0, 0, 0,
                                          { .key = 0x8101, ENDS(42, 16), GID1(NODE0042 + 1) }, 0, NULL };
        struct attribution_input c = everything();

        c.history = NULL;
        ck_assert_str_eq(sentence(&c, &counter),
                         "node0042 mlx5_0/1 sent 3 packets with a P_Key that its switch port leaf07/12 does not accept "
                         "(PortRcvConstraintErrors); node0042 is a limited member of default and lustre");
        ck_assert_str_eq(sentence(&c, &notice), "node0042 mlx5_0/1 sent at least 3 packets to node0007 mlx5_0/1 with "
                                                "P_Key 0x8101 (the full key of "
                                                "tenant-a), refused there (notice 257, P_Key mismatch); node0042 is not a "
                                                "member of tenant-a (0x0101); it "
                                                "is a limited member of default and lustre");
        c.memberships = NULL;
        ck_assert_str_eq(sentence(&c, &counter),
                         "node0042 mlx5_0/1 sent 3 packets with a P_Key that its switch port leaf07/12 does not accept "
                         "(PortRcvConstraintErrors)");
        ck_assert_str_eq(sentence(&c, &notice), "node0042 mlx5_0/1 sent at least 3 packets to node0007 mlx5_0/1 with "
                                                "P_Key 0x8101, refused there "
                                                "(notice 257, P_Key mismatch)");
        c.subnet = NULL;
        ck_assert_str_eq(sentence(&c, &counter),
                         "port 12 of node 0x0000000000070000 refused 3 packets that came in (PortRcvConstraintErrors)");
        ck_assert_str_eq(
                        sentence(&c, &notice),
                        "LID 42 with port GUID 0x0000000000004201 sent at least 3 packets to LID 16 with P_Key 0x8101, "
                        "refused by port 1 of node 0x0000000000000700 (notice 257, P_Key mismatch)");
        /* what was known of an endport before, without what it has now */
        c = everything();
        c.memberships = NULL;
        ck_assert_str_eq(sentence(&c, &counter),
                         "node0042 mlx5_0/1 sent 3 packets with a P_Key that its switch port leaf07/12 does not accept "
                         "(PortRcvConstraintErrors); node0042 was taken out of tenant-a (0x0101) 3 minutes ago by "
                         "generation 42: probably its jobs still use the old key");
}
END_TEST

/* --- what apply knows better than the last discovery -------------------------------------------------------------- */

START_TEST(test_enforcement_as_applied)
{
        struct situation s = { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 6, 3, 0, 0, 0, {}, 0, NULL };
        uint32_t port = subnet_find_port(subnet, subnet_find_node(subnet, (struct guid) { LEAF07 }), 6);
        struct attribution_input c = everything();
        struct observed *observed;

        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        c.observed = observed;
        observed->tables[port].enforce_inbound = true;
        expect_text(sentence(&c, &s),
                    "node0043 mlx5_0/1 sent 3 packets with a P_Key that its switch port leaf07/6 does not accept");
        s.source = VIOLATION_XMIT_CONSTRAINT;
        expect_text(sentence(&c, &s), "it does not check P_Keys of outgoing packets");
        observed->tables[port].enforce_outbound = true;
        expect_text(sentence(&c, &s),
                    "switch port leaf07/6 dropped 3 packets to node0043 mlx5_0/1 with a P_Key that the port does not accept");
        observed->tables[port].enforcement_doubted = true;
        expect_text(sentence(&c, &s), "pkeyd does not know whether the port checks P_Keys of outgoing packets");
        /* of another snapshot: it says nothing of this one */
        observed->subnet = NULL;
        expect_text(sentence(&c, &s), "it does not check P_Keys of outgoing packets");
}
END_TEST

/* A port names the sender of what it counted while it checked P_Keys, whatever it does now. */
START_TEST(test_enforcement_then)
{
        const struct violations_config config = { .interval = MINUTE, .threshold = 1 };
        const struct violation_port at = { { LEAF07 }, 6 };
        uint32_t port = subnet_find_port(subnet, subnet_find_node(subnet, at.node_guid), 6), n;
        static const bool filters[] = { false, false, true, true, true };
        struct violations *v = violations_new(&config);
        struct attribution_input c = everything();
        const struct violation_record *record;
        struct violation_report report;
        struct observed *observed;
        struct attribution a;
        usec_t now = NOW;

        ck_assert_ptr_nonnull(v);
        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        c.observed = observed;
        ck_assert_int_eq(violations_set_subnet(v, subnet), 0);
        for (unsigned i = 0; i < ELEMENTS(filters); i++, now += HOUR) {
                observed->tables[port].enforce_inbound = filters[i];
                violations_set_observed(v, subnet, observed);
                c.now = now;
                for (unsigned k = 0; k < 2; k++) { /* the last episode is over, then comes the next one */
                        if (k == 1)
                                ck_assert_int_eq(violations_see_counter(v, now, at, VIOLATION_RCV_CONSTRAINT, 64, 100 * i), 0);
                        observed->tables[port].enforce_inbound = !filters[i];
                        while (violations_next_report(v, now, &report)) {
                                ck_assert_int_eq(report.kind, k == 0 ? VIOLATION_QUIET : VIOLATION_FIRST);
                                ck_assert_int_eq(attribution_explain(arena, &report, &c, &a), 0);
                                ck_assert_int_eq(a.names_sender, i + k > 3);
                        }
                        observed->tables[port].enforce_inbound = filters[i];
                }
                observed->tables[port].enforce_inbound = true;
                record = violations_records(v, &n);
                ck_assert_uint_eq(n, i > 0);
                if (n == 0)
                        continue;
                ck_assert_int_eq(attribution_explain_record(arena, record, &c, &a), 0);
                ck_assert(!a.names_sender);
                expect_text(a.text, "packets from node0043 mlx5_0/1 (PortRcvConstraintErrors)");
                expect_text(a.text, "because it did not always check P_Keys of incoming packets at that time");
        }
        violations_free(v);
}
END_TEST

/* --- hosts as they were ------------------------------------------------------------------------------------------ */

static const char *explain_of(const struct violation_host *host, struct violation_port port, enum violation_source source,
                              struct attribution *ret)
{
        const struct violation_record record = { .port = port, .source = source, .host = host, .total = 2, .first = NOW,
                                                 .first_since = NOW - MINUTE, .last = NOW };
        struct attribution_input c = everything();

        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, ret), 0);
        return ret->text;
}

START_TEST(test_hosts)
{
        struct violation_host was = { .node_guid = { 0x9900 }, .guid = { 0x9901 }, .lid = { 99 }, .number = 1,
                                      .label = "node0099 mlx5_0/1", .name = "node0099", .at_switch = "leaf07/12" };
        const struct violation_host nobody = {};
        struct attribution a;
        uint32_t leaf;

        /* node0042 is there now */
        expect_text(explain_of(&was, (struct violation_port) { { LEAF07 }, 12 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "node0099 mlx5_0/1 sent 2 packets with a P_Key that its switch port leaf07/12 does not accept ");
        ck_assert_ptr_null(strstr(a.text, "node0042"));
        ck_assert_str_eq(a.node, "node0099 mlx5_0/1");
        ck_assert_str_eq(a.switch_name, "leaf07/12");
        ck_assert_uint_eq(a.port_guid.v, 0x9901);
        ck_assert_uint_eq(a.lid.v, 99);
        ck_assert(a.names_sender);
        /* nobody is, or the switch itself is gone */
        was.at_switch = "leaf07/20";
        expect_text(explain_of(&was, (struct violation_port) { { LEAF07 }, 20 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "switch port leaf07/20 dropped 2 packets from node0099 mlx5_0/1 (PortRcvConstraintErrors)");
        expect_text(a.text, "; no host is plugged into leaf07/20");
        ck_assert_str_eq(a.node, "node0099 mlx5_0/1");
        expect_text(explain_of(&was, (struct violation_port) { { VANISHED }, 20 }, VIOLATION_XMIT_CONSTRAINT, &a),
                    "switch port leaf07/20 dropped 2 packets to node0099 mlx5_0/1 (PortXmitConstraintErrors)");
        expect_text(a.text, "; leaf07/20 is not in the fabric any more");
        /* it is not known who; the switch port is */
        expect_text(explain_of(&nobody, (struct violation_port) { { LEAF07 }, 20 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "switch port leaf07/20 dropped 2 packets from an unidentified host (a cable may have been moved)");
        ck_assert_str_eq(a.switch_name, "leaf07/20");
        leaf = subnet_find_node(subnet, (struct guid) { LEAF07 });
        subnet->nodes[leaf].silent_ports[0] |= 1u << 20;
        expect_text(explain_of(&nobody, (struct violation_port) { { LEAF07 }, 20 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "; the device plugged into leaf07/20 did not answer");
        /* of a director the label has the board, as if the port were in the snapshot */
        subnet->nodes[leaf].description = "MF0;leaf07:CS8500/L20/U2";
        expect_text(explain_of(&nobody, (struct violation_port) { { LEAF07 }, 20 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "switch port leaf07:L20/U2/20 dropped 2 packets");
        subnet->nodes[leaf].description = "MF0;leaf07:MQM8700/U1";
        /* its own counter, under the name that it had */
        was.node_guid.v = NODE0042;
        was.guid.v = NODE0042 + 1;
        expect_text(explain_of(&was, (struct violation_port) { { NODE0042 }, 1 }, VIOLATION_P_KEY_VIOLATIONS, &a),
                    "node0099 mlx5_0/1 received 2 packets with a P_Key");
        expect_text(a.text, "; node0099 was taken out of tenant-a (0x0101) 3 minutes ago by generation 42: probably");
        ck_assert_str_eq(a.switch_name, "leaf07/20");
        /* it may have been either of two */
        expect_text(explain_of(&nobody, (struct violation_port) { { LEAF07 }, 12 }, VIOLATION_RCV_CONSTRAINT, &a),
                    "switch port leaf07/12 dropped 2 packets from an unidentified host (a cable may have been moved) with "
                    "a P_Key that the port does not accept (PortRcvConstraintErrors)");
        ck_assert_ptr_null(strstr(a.text, "node0042"));
        ck_assert_uint_eq(a.port_guid.v, 0);
        ck_assert(!a.names_sender);
}
END_TEST

/* An edit between the last sample without violations and the first one with them. */
/* A packet came through a port at which the last snapshot has no host: the one that was there an hour ago need not have sent it (i
 * = 0), nor the one that is found there later. */
START_TEST(test_notice_at_an_empty_port)
{
        const struct violations_config config = { .interval = MINUTE, .threshold = 1 };
        const struct violation_port port = { { LEAF07 }, 12 };
        const struct notice notice = { .trap = 259, .key = 0x8101, ENDS(777, 16), AT(70, 12) };
        const struct subnet *empty = make_fabric_of(false), *full = make_fabric_of(true);
        struct violations *v = violations_new(&config);
        struct violation_ends ends;
        const struct violation_record *record;
        struct attribution a;
        uint32_t n;

        ck_assert_ptr_nonnull(v);
        if (_i == 0)
                ck_assert_int_eq(violations_set_subnet(v, full), 0);
        ck_assert_int_eq(violations_set_subnet(v, empty), 0);
        ck_assert_int_eq(violation_ends_of_notice(arena, empty, lid_map_new(arena, empty), &notice, &ends), 0);
        ck_assert_int_eq(violations_see_notice(v, NOW, port, &notice, &ends), 0);
        record = violations_records(v, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq(attribution_explain_record(arena, record, &(struct attribution_input) { .subnet = empty, .now = NOW }, &a),
                         0);
        expect_text(a.text, "LID 777 (no port of this fabric has it) sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8101, refused at "
                            "switch port leaf07/12 (notice 259, P_Key mismatch at a switch); the first a moment ago, the last a moment "
                            "ago; pkeyd does not know the host at leaf07/12 (yet)");
        ck_assert_str_eq(a.node, "node0007 mlx5_0/1");
        ck_assert_int_eq(attribution_explain_record(arena, record, &(struct attribution_input) { .subnet = full, .now = NOW }, &a),
                         0);
        ck_assert_msg(!strstr(a.text, "node0042"), "%s", a.text);
        ck_assert_str_eq(a.switch_name, "leaf07/12");
        violations_free(v);
}
END_TEST

START_TEST(test_about_when)
{
        struct violation_record record = { .port = { { LEAF07 }, 12 }, .source = VIOLATION_RCV_CONSTRAINT, .total = 2,
                                           .first = NOW - 2 * MINUTE, .first_since = NOW - 3 * MINUTE - 1, .last = NOW };
        struct attribution_input c = everything();
        struct attribution a;

        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42, about when this began: perhaps its jobs still use the old key");
        record.first_since++;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42: probably its jobs still use the old key");
        record.first = NOW - 3 * MINUTE - 1;
        record.first_since = 0;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42, after this had begun");
}
END_TEST

/* Of what was edited while a host was down nobody knows which edit it was. */
START_TEST(test_away)
{
        struct violation_record record = { .port = { { LEAF07 }, 12 }, .source = VIOLATION_RCV_CONSTRAINT, .total = 2,
                                           .first = NOW, .last = NOW };
        struct attribution_input c = everything();
        const struct subnet *all = subnet;
        struct attribution a;

        memberships = resolve(BEFORE);
        ck_assert_int_eq(membership_history_learn(history, NOW - 2 * MINUTE, 43, memberships), 0);
        subnet = make_fabric_of(false);
        ck_assert_int_eq(membership_history_learn(history, NOW - 2 * MINUTE, 44, resolve(AFTER)), 0);
        subnet = all;
        ck_assert_int_eq(membership_history_learn(history, NOW - MINUTE, 45, resolve(AFTER)), 0);
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, "node0042 was taken out of tenant-a (0x0101) between 2 minutes and 60 seconds ago, while it was not in "
                            "the fabric: probably its jobs still use the old key");
        ck_assert_ptr_null(strstr(a.text, "generation"));
}
END_TEST

/* --- storms ----------------------------------------------------------------------------------------------------- */

static void add_worst(struct violation_report *r, enum violation_source source, uint64_t node, uint8_t port,
                      uint64_t unreported)
{
        struct violation_record *w = &r->worst[r->n_worst++];

        w->port = (struct violation_port) { { node }, port };
        w->source = source;
        w->unreported = unreported;
        w->first = w->episode_began = NOW;
        w->episode = w->total = 1;
}

static const char *storm(const struct violation_report *r)
{
        struct attribution_input c = everything();
        struct attribution a;

        ck_assert_int_eq(attribution_explain(arena, r, &c, &a), 0);
        ck_assert_ptr_null(a.node);
        return a.text;
}

START_TEST(test_storm)
{
        struct violation_report r = {
                        .kind = VIOLATION_STORM, .count = 12345, .since = NOW - 60 * SECOND, .n_ports = 317};
        const struct violation_report before = r;

        ck_assert_str_eq(storm(&r), "317 ports counted 12,345 violations in the last 60 seconds");
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 3000);
        add_worst(&r, VIOLATION_P_KEY_VIOLATIONS, NODE0042, 1, 200);
        add_worst(&r, VIOLATION_P_KEY_VIOLATIONS, NODE0050, 1, 20);
        ck_assert_str_eq(
                        storm(&r),
                        "317 ports counted 12,345 violations in the last 60 seconds; the worst: node0042 mlx5_0/1 sent "
                        "3,000, node0042 mlx5_0/1 received 200, node0050 mlx5_0/1 received 20; 2 of these 3 were "
                        "taken out of tenant-a (0x0101) 3 minutes ago by generation 42: this is "
                        "probably their cause");
        /* a switch that checks nothing does not know who sent it */
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, LEAF08, 1, 4);
        expect_text(storm(&r), ", switch port leaf08/1 counted 4 from node0050 mlx5_0/1");
        r.worst[--r.n_worst] = (struct violation_record) {};
        /* half of them is not most of them */
        add_worst(&r, VIOLATION_XMIT_CONSTRAINT, LEAF08, 1, 2);
        ck_assert_str_eq(
                        storm(&r),
                        "317 ports counted 12,345 violations in the last 60 seconds; the worst: node0042 mlx5_0/1 sent "
                        "3,000, node0042 mlx5_0/1 received 200, node0050 mlx5_0/1 received 20, node0050 mlx5_0/1 "
                        "should have received 2");
        r = before;
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, NODE0043, 1, 1);
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, NODE0043, 1, 1);
        expect_text(storm(&r), "; all of these were made limited members of tenant-a (0x0101) 3 minutes ago");
        expect_text(storm(&r), "this is probably the cause of all of them");
        /* one of them began perhaps before, or another one certainly */
        r.worst[1].first_since = NOW - 3 * MINUTE - 1;
        expect_text(storm(&r), " by generation 42: this is probably the cause of all of them");
        add_worst(&r, VIOLATION_P_KEY_VIOLATIONS, NODE0050, 1, 1);
        expect_text(storm(&r), "; 2 of these 3 were ");
        expect_text(storm(&r), ", about when this began: this is perhaps their cause");
        r.worst[1].first = NOW - 3 * MINUTE - 1;
        ck_assert_msg(!strstr(storm(&r), "cause"), "%s", storm(&r));
        r.worst[1].first = NOW;
        r.worst[1].first_since = 0;
        r.n_worst--;
        /* some cannot count any more, and at last it is over */
        r.n_saturated = 1;
        expect_text(storm(&r), "in the last 60 seconds; 1 counter is at its maximum: there may have been more; the worst: ");
        r.n_saturated = 20;
        expect_text(storm(&r), "; 20 counters are at their maximum: there may have been more; the worst: ");
        r.kind = VIOLATION_ALL_QUIET;
        r.since = NOW - 17 * MINUTE;
        ck_assert_str_eq(storm(&r), "quiet again after 17 minutes, 12,345 in all at 317 ports; the worst: node0043 mlx5_0/1 "
                                    "counted 1, node0043 mlx5_0/1 counted 1");
        r.kind = VIOLATION_STORM;
        /* a hostile number of them */
        r.n_worst = UINT32_MAX;
        expect_text(storm(&r), "; the worst: ");
}
END_TEST

/* Without a sender, it is the port that refused the packets that is worst, not the host that was to receive them; and what that
 * host lost is no cause. */
START_TEST(test_storm_of_notices)
{
        struct violation_report r = { .kind = VIOLATION_STORM, .count = 12, .n_ports = 2 };
        const struct violation_host nobody = {};

        for (unsigned i = 0; i < 2; i++) {
                add_worst(&r, VIOLATION_NOTICE_259, LEAF07, (uint8_t) (20 + i), 7 - i);
                r.worst[i].host = &nobody;
                r.worst[i].notice = (struct notice) { .key = 0x8101, ENDS(777, 42), AT(70, 20) };
                add_ends(&r.worst[i], arena, subnet, lids);
        }
        ck_assert_str_eq(storm(&r), "2 ports counted 12 violations; the worst: switch port leaf07/20 counted 7, switch port leaf07/21 "
                                    "counted 6");
        for (unsigned i = 0; i < 2; i++) {
                r.worst[i].notice.lid1.v = 42;
                r.worst[i].notice.lid2.v = 16;
                add_ends(&r.worst[i], arena, subnet, lids);
        }
        expect_text(storm(&r), "; the worst: node0042 mlx5_0/1 sent 7, node0042 mlx5_0/1 sent 6; all of these were taken out of tenant-a");
}
END_TEST

/* Ports that were put into a partition while they counted already. */
START_TEST(test_a_gain_is_no_cause)
{
        struct violation_report r = { .kind = VIOLATION_STORM, .count = 2, .n_ports = 2 };

        ck_assert_int_eq(membership_history_learn(history, NOW - MINUTE, 43, resolve(BEFORE)), 0);
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, NODE0043, 1, 1);
        add_worst(&r, VIOLATION_RCV_CONSTRAINT, NODE0042, 1, 1);
        ck_assert_msg(!strstr(storm(&r), "cause") && !strstr(storm(&r), "put into"), "%s", storm(&r));
}
END_TEST

/* Of two edits that took something from a host before it counted the later one is the likelier cause. */
START_TEST(test_a_later_loss_is_the_likelier_cause)
{
        struct violation_report r = { .kind = VIOLATION_STORM, .count = 2, .n_ports = 2 };

        add_worst(&r, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 1); /* node0042, as the next one */
        add_worst(&r, VIOLATION_P_KEY_VIOLATIONS, NODE0042, 1, 1);
        expect_text(storm(&r), "all of these were taken out of tenant-a (0x0101) 3 minutes ago by generation 42: this is probably");
        ck_assert_int_eq(membership_history_learn(history, NOW - MINUTE, 43,
                                                  resolve(POLICY("node0043: limited, node0007: full", ", node0042/mlx5_0: none"))), 0);
        expect_text(storm(&r), "all of these were taken out of lustre (0x0010) 60 seconds ago by generation 43: this is probably");
        r.worst[0].first = r.worst[1].first = NOW - 2 * MINUTE; /* before the later edit */
        expect_text(storm(&r), "all of these were taken out of tenant-a");
        r.worst[1].first = NOW;
        ck_assert_msg(!strstr(storm(&r), "cause"), "%s", storm(&r)); /* each has one of its own */
}
END_TEST

/* --- lists ------------------------------------------------------------------------------------------------------ */

START_TEST(test_record)
{
        struct attribution_input c = everything();
        struct violation_record record = {
                .port = { { LEAF07 }, 12 },
                .source = VIOLATION_RCV_CONSTRAINT,
                .total = 345,
                .first = NOW - 2 * HOUR,
                .last = NOW - 30 * SECOND,
        };
        struct attribution a;

        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        ck_assert_str_eq(
                        a.text,
                        "node0042 mlx5_0/1 sent 345 packets with a P_Key that its switch port leaf07/12 does not accept "
                        "(PortRcvConstraintErrors); the first 2 hours ago, the last 30 seconds ago; node0042 was taken "
                        "out of tenant-a (0x0101) 3 minutes ago by generation 42, after this had begun; it is a limited "
                        "member of default and lustre");
        ck_assert_str_eq(a.node, "node0042 mlx5_0/1");
        ck_assert(a.names_sender);
        record.saturated = true;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, "the last 30 seconds ago; the counter is at its maximum: there may have been more; node0042 was");
        /* at its maximum when pkeyd saw it first: since when, and so why, is not known */
        record.total = record.first = record.last = 0;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        ck_assert_str_eq(a.text, "PortRcvConstraintErrors of switch port leaf07/12 is at its maximum: there may have "
                                 "been more, and no more are seen until it is cleared (pkeyd clears it with violations: "
                                 "clear_saturated: true; by hand: perfquery -R 70 12); it counts packets that node0042 "
                                 "mlx5_0/1 sent with a P_Key that its switch port leaf07/12 does not accept; node0042 "
                                 "was taken out of tenant-a (0x0101) 3 minutes ago by generation 42; it is a limited "
                                 "member of default and lustre");
        c.clears_saturated = true;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, "no more are seen until it is cleared (pkeyd clears it now); it counts");
}
END_TEST

/* --- how sure ---------------------------------------------------------------------------------------------------- */

/* The same violation at various times after the change. */
START_TEST(test_age_of_a_change)
{
        static const struct {
                usec_t later;
                const char *text;
        } rows[] = {
                { 0, "3 minutes ago by generation 42: probably its jobs still use the old key;" },
                { 20 * HOUR, "20 hours ago by generation 42: probably its jobs still use the old key;" },
                { 3 * DAY, "3 days ago by generation 42: perhaps its jobs still use the old key;" },
                { 9 * DAY, "9 days ago by generation 42; it is" },
        };
        struct attribution_input c = everything();

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct violation_report r = { .kind = VIOLATION_FIRST, .count = 1 };
                struct attribution a;

                c.now = NOW + rows[i].later;
                r.record = (struct violation_record) {.port = {{LEAF07}, 12},
                                                     .source = VIOLATION_RCV_CONSTRAINT,
                                                     .total = 1,
                                                     .episode = 1,
                                                     .episode_began = c.now,
                                                     .first = c.now,
                                                     .last = c.now};
                ck_assert_int_eq(attribution_explain(arena, &r, &c, &a), 0);
                expect_text(a.text, "node0042 was taken out of tenant-a (0x0101)");
                expect_text(a.text, rows[i].text);
        }
}
END_TEST

/* Who did it before the change does not do it because of the change: at this port or at another, whatever was in between. */
START_TEST(test_not_the_first_time)
{
        struct violation_record record = { .port = { { LEAF07 }, 12 }, .source = VIOLATION_RCV_CONSTRAINT, .total = 2,
                                           .first = NOW - HOUR, .last = NOW, .episode_began = NOW - MINUTE };
        struct attribution_input c = everything();
        struct attribution a;

        for (unsigned quiet = 0; quiet < 2; quiet++) {
                record.episode = quiet ? 0 : 1;
                ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
                expect_text(a.text, " by generation 42, but this is not the first time: that was 60 minutes ago;");
        }
        record.first = NOW - MINUTE;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42: probably its jobs still use the old key;");
        record.host_first = NOW - 5 * MINUTE;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42, but this is not the first time: that was 5 minutes ago;");
        /* it may have begun before the change */
        record.host_first = NOW - 2 * MINUTE;
        record.host_first_since = NOW - 4 * MINUTE;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42, about when this began: perhaps its jobs still use the old key;");
        record.episode_began = record.first = NOW - 4 * MINUTE;
        record.host_first = 0;
        ck_assert_int_eq(attribution_explain_record(arena, &record, &c, &a), 0);
        expect_text(a.text, " by generation 42, after this had begun;");
}
END_TEST

/* What leases_extend() makes of a lease of this node that is in force. */
static const struct memberships *resolve_with_lease(const struct policy *policy, const char *id, uint16_t base, uint64_t node)
{
        struct lease_member member = { .node = { node }, .port = { node + 1 }, .number = 1, .name = "the member",
                                       .state = LEASE_MEMBER_CONFIRMED, .membership = MEMBERSHIP_FULL };
        struct arena *a = arena_new();
        struct lease *lease = arena_new_object(a, struct lease);
        struct leases *leases = leases_new();
        const struct policy *extended;
        struct memberships *m;

        *lease = (struct lease) { .arena = a, .id = id, .wish.pool = "jobs", .state = LEASE_ACTIVE, .base = base,
                                  .membership = MEMBERSHIP_FULL, .members = &member, .n_members = 1 };
        ck_assert_int_eq(leases_restore(leases, lease), 0);
        ck_assert_int_eq(leases_extend(arena, leases, policy, &extended), 0);
        leases_free(leases);
        ck_assert_int_eq(policy_resolve(arena, extended, subnet, &findings, &m), 0);
        return m;
}

static struct situation notice_257(uint32_t key, uint16_t from)
{
        return (struct situation) { VIOLATION_FIRST, VIOLATION_NOTICE_257, NODE0007, 1, 1, 0, 0, 0,
                                    { .key = key, ENDS(from, 16) }, 0, NULL };
}

/* node0042 had a lease, and node0050 has one, until generation 2 takes it away. */
START_TEST(test_leases)
{
        const struct policy *policy = parse("version: 1\nowns: 0x0001-0x0fff\npartitions: {}\n"
                                            "pools: {jobs: {pkeys: 0x0200-0x0201, ports: ALL_CAS, allow: [root]}}\n");
        const struct situation counted = { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 1, 0, 0, 0, {}, 0, NULL };
        const struct situation lost = notice_257(0x8200, 42), has = notice_257(0x8201, 60);
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        struct attribution_input c = everything();

        c.history = h;
        ck_assert_int_eq(membership_history_learn(h, NOW - HOUR, 1, resolve_with_lease(policy, "job17", 0x0200, NODE0042)), 0);
        c.memberships = resolve_with_lease(policy, "job18", 0x0201, NODE0050);
        ck_assert_int_eq(membership_history_learn(h, NOW - 2 * MINUTE, 1, c.memberships), 0);
        ck_assert_str_eq(strchr(sentence(&c, &counted), ';'),
                         "; node0042 was taken out of lease job17 (0x0200) 2 minutes ago: probably its jobs still use the old key; "
                         "the policy makes it a member of no partition");
        ck_assert_str_eq(strchr(sentence(&c, &lost), ';'),
                         "; no partition of the policy has 0x0200; node0042 was taken out of lease job17 (0x0200) 2 minutes ago: "
                         "probably its jobs still use the old key");
        ck_assert_str_eq(sentence(&c, &has),
                         "node0050 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1 with P_Key 0x8201 (the full key of lease job18), "
                         "refused there (notice 257, P_Key mismatch); node0007 was never a member of lease job18 (0x0201) in the "
                         "60 minutes that pkeyd remembers; the policy makes it a member of no partition");
        c.memberships = resolve_with_lease(policy, "job19", 0x0200, NODE0007);
        ck_assert_int_eq(membership_history_learn(h, NOW - MINUTE, 2, c.memberships), 0);
        ck_assert_ptr_nonnull(strstr(sentence(&c, &has), "; node0050 was taken out of lease job18 (0x0201) 60 seconds ago by "
                                                           "generation 2: probably "));
}
END_TEST

START_TEST(test_many_partitions)
{
        const struct memberships *one, *two;
        const struct situation s = { VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT, LEAF07, 12, 1, 0, 0, 0, {}, 0, NULL };
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        struct attribution_input c = everything();
        const char *yaml = "version: 1\npartitions:\n";

        for (unsigned i = 1; i <= 12; i++)
                yaml = arena_printf(arena, "%s  p%02u: {pkey: 0x%04x, members: {node0042: %s}}\n", yaml, i, i,
                                    i % 2 ? "full" : i == 2 ? "both" : "limited");
        one = resolve(yaml);
        two = resolve("version: 1\npartitions:\n  other: {pkey: 0x004d, members: {node0042: full}}\n");
        ck_assert_int_eq(membership_history_learn(h, NOW - HOUR, 1, one), 0);
        c.history = h;
        c.memberships = one;
        ck_assert_str_eq(strchr(sentence(&c, &s), ';'), "; the partitions of node0042 have not changed in the last 60 minutes, "
                                                        "which is as far as pkeyd knows; it is a full member "
                                                        "of p01, p03, p05, p07 and 2 others, a full and limited member "
                                                        "of p02, a limited member of default, p04, "
                                                        "p06, p08 and 2 others");
        ck_assert_int_eq(membership_history_learn(h, NOW - MINUTE, 2, two), 0);
        c.memberships = two;
        ck_assert_str_eq(strchr(sentence(&c, &s), ';'), "; node0042 was taken out of p01 (0x0001), p02 (0x0002), p03 "
                                                        "(0x0003), p04 (0x0004) and 8 others 60 "
                                                        "seconds ago by generation 2: probably its jobs still use the "
                                                        "old key; it is a full member of other, a "
                                                        "limited member of default");
        /* the same policy, and the host has another name: it gets nothing but the default partition */
        ck_assert_int_eq(membership_history_learn(h, NOW, 2,
                                                  resolve("version: 1\npartitions:\n  other: {pkey: 0x004d, members: "
                                                          "{oss01: full}}\n")),
                         0);
        expect_text(sentence(&c, &s),
                    "node0042 was taken out of other (0x004d) a moment ago, when the fabric changed and not the "
                    "policy");
}
END_TEST

/* --- LIDs ------------------------------------------------------------------------------------------------------- */

/* Looks through all ports. */
static uint32_t find_lid(uint32_t lid)
{
        uint32_t found = SUBNET_NONE;

        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                const struct subnet_port *p = &subnet->ports[i];
                uint32_t end = p->lid.v + (1u << (p->lmc & 7));

                if (p->role == PORT_ENDPORT && p->lid.v != 0 && lid >= p->lid.v && lid < end && lid < 0xc000)
                        found = found == SUBNET_NONE ? i : LID_SEVERAL;
        }
        return found;
}

static void expect_lid(uint16_t lid, uint32_t port)
{
        ck_assert_uint_eq(lid_map_find(lids, (struct lid) { lid }), port);
}

START_TEST(test_lids)
{
        struct subnet_port *oss01 = (struct subnet_port *) &subnet->ports[fixture_port(subnet, OSS01 + 1)];

        for (uint32_t lid = 0; lid <= UINT16_MAX; lid++)
                expect_lid((uint16_t) lid, find_lid(lid));
        expect_lid(15, SUBNET_NONE);
        for (uint16_t lid = 16; lid < 20; lid++)
                expect_lid(lid, fixture_port(subnet, NODE0007 + 1));
        expect_lid(20, SUBNET_NONE);
        expect_lid(70, fixture_port(subnet, LEAF07));
        /* a port that claims the LIDs of another, and one at the end of what there is */
        ((struct subnet_port *) &subnet->ports[fixture_port(subnet, NODE0050 + 1)])->lid.v = 18;
        oss01->lid.v = 0xbfff;
        oss01->lmc = 255;
        lids = lid_map_new(arena, subnet);
        ck_assert_ptr_nonnull(lids);
        expect_lid(18, LID_SEVERAL);
        expect_lid(0xbfff, fixture_port(subnet, OSS01 + 1));
        expect_lid(0xc000, SUBNET_NONE);
        for (uint32_t lid = 0; lid <= UINT16_MAX; lid++)
                expect_lid((uint16_t) lid, find_lid(lid));
        expect_text(explain(VIOLATION_NOTICE_257, NODE0007, 1, &(struct notice) { .key = 0x8101, ENDS(18, 16) }).text,
                    "LID 18 (several ports claim it) sent 1 packet to node0007 mlx5_0/1");
        expect_text(explain(VIOLATION_NOTICE_257, NODE0007, 1, &(struct notice) { .key = 0x8101, ENDS(18, 16),
                                                                                  GID1(NODE0042 + 1) }).text,
                    "node0042 mlx5_0/1 sent 1 packet to node0007 mlx5_0/1");
        /* nothing is said of LIDs that nobody was asked about */
        lids = NULL;
        expect_text(explain(VIOLATION_NOTICE_257, NODE0007, 1, &(struct notice) { .key = 0x8101, ENDS(21, 16) }).text,
                    "LID 21 sent 1 packet to LID 16");
}
END_TEST

/* --- words ------------------------------------------------------------------------------------------------------ */

START_TEST(test_durations)
{
        static const struct {
                usec_t duration;
                const char *text;
        } rows[] = {
                { 0, "a moment" },
                { SECOND - 1, "a moment" },
                { SECOND, "1 second" },
                { 2 * SECOND - 1, "2 seconds" },
                { 60 * SECOND, "60 seconds" },
                { 119 * SECOND, "119 seconds" },
                { 120 * SECOND, "2 minutes" },
                { 12 * MINUTE + 29 * SECOND, "12 minutes" },
                { 12 * MINUTE + 31 * SECOND, "13 minutes" },
                { 119 * MINUTE, "119 minutes" },
                { 2 * HOUR, "2 hours" },
                { 47 * HOUR, "47 hours" },
                { 48 * HOUR, "2 days" },
                { 4000 * DAY, "4,000 days" },
                { USEC_INFINITY, "213,503,982 days" },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                ck_assert_str_eq(phrase_duration(rows[i].duration).text, rows[i].text);
}
END_TEST

START_TEST(test_counts)
{
        ck_assert_str_eq(phrase_count(0, "port", "ports").text, "0 ports");
        ck_assert_str_eq(phrase_count(1, "port", "ports").text, "1 port");
        ck_assert_str_eq(phrase_count(999, "port", "ports").text, "999 ports");
        ck_assert_str_eq(phrase_count(1000, "port", "ports").text, "1,000 ports");
        ck_assert_str_eq(phrase_count(UINT64_MAX, "port", "ports").text, "18,446,744,073,709,551,615 ports");
}
END_TEST

/* --- anything --------------------------------------------------------------------------------------------------- */

static uint64_t odd_number(struct prng *random)
{
        static const uint64_t odd[] = {0,      1,  NOW, NOW + 1, UINT64_MAX, UINT32_MAX, UINT16_MAX,
                                       0xc000, 42, 16,  43,      0x8101,     0x10};

        return prng_permille(random, 700) ? odd[prng_below(random, ELEMENTS(odd))] : prng_next(random);
}

static uint64_t odd_guid(struct prng *random)
{
        static const uint64_t guids[] = {NODE0007, OSS01, RT1, NODE0043, NODE0042, NODE0050, LEAF07, LEAF08, VANISHED};

        return guids[prng_below(random, ELEMENTS(guids))] + prng_below(random, 2);
}

static struct violation_record odd_record(struct prng *random, struct arena *a, const struct subnet *known)
{
        struct violation_record r = {
                .port = { { odd_guid(random) }, (uint8_t) prng_below(random, 14) },
                .source = (enum violation_source) prng_below(random, VIOLATION_N_SOURCES),
                .total = odd_number(random), .episode = odd_number(random), .unreported = odd_number(random),
                .first = odd_number(random), .last = odd_number(random), .episode_began = odd_number(random),
                .bits = (unsigned) odd_number(random),
        };

        r.notice = (struct notice) {
                .key = (uint32_t) odd_number(random),
                .lid1 = { (uint16_t) odd_number(random) }, .lid2 = { (uint16_t) odd_number(random) },
                .gid1 = { odd_number(random), odd_guid(random) }, .gid2 = { odd_number(random), odd_guid(random) },
                .has_gid1 = prng_below(random, 2), .has_gid2 = prng_below(random, 2),
                .qp1 = (uint32_t) odd_number(random), .qp2 = (uint32_t) odd_number(random),
        };
        add_ends(&r, a, known, prng_below(random, 2) ? lids : NULL);
        return r;
}

/* One line of printable text, whole clauses. */
static void expect_line(const struct attribution *a)
{
        size_t n = strlen(a->text);

        ck_assert_uint_gt(n, 20);
        for (size_t i = 0; i < n; i++)
                ck_assert_msg(a->text[i] >= ' ' && a->text[i] <= '~', "%s", a->text);
        ck_assert_msg(!strstr(a->text, "  ") && !strstr(a->text, "(null)") && !strstr(a->text, " ;") &&
                                      !strstr(a->text, ";;") && !strstr(a->text, "()") && !strstr(a->text, "; ;"),
                      "%s", a->text);
        ck_assert_ptr_null(strstr(a->text, "..."));
}

START_TEST(test_anything)
{
        struct prng random = { 5 };

        for (unsigned i = 0; i < 3000; i++) {
                _cleanup_arena_ struct arena *a = arena_new();
                struct attribution_input c = {
                        .subnet = prng_permille(&random, 900) ? subnet : NULL,
                        .memberships = prng_permille(&random, 800) ? memberships : NULL,
                        .history = prng_permille(&random, 800) ? history : NULL,
                        .now = odd_number(&random),
                };
                struct violation_report r = { .kind = (enum violation_kind) prng_below(&random, VIOLATION_ALL_QUIET + 1),
                                             .count = odd_number(&random),
                                             .since = odd_number(&random)};
                struct attribution out;

                r.record = odd_record(&random, a, c.subnet);
                r.n_ports = (uint32_t) odd_number(&random);
                r.n_worst = prng_below(&random, VIOLATIONS_WORST + 1);
                for (uint32_t j = 0; j < r.n_worst; j++)
                        r.worst[j] = odd_record(&random, a, c.subnet);
                ck_assert_int_eq(attribution_explain(a, &r, &c, &out), 0);
                expect_line(&out);
                ck_assert(r.kind >= VIOLATION_STORM || (out.node && out.counted_by));
                ck_assert_int_eq(attribution_explain_record(a, &r.record, &c, &out), 0);
                expect_line(&out);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("attribution");
        TCase *tcase = tcase_create("attribution");
        SRunner *runner;
        int failed;

        tcase_set_timeout(tcase, 120);
        tcase_add_checked_fixture(tcase, setup_fabric, teardown_fabric);
        tcase_add_test(tcase, test_situations);
        tcase_add_test(tcase, test_fields);
        tcase_add_test(tcase, test_less_is_known);
        tcase_add_test(tcase, test_enforcement_as_applied);
        tcase_add_test(tcase, test_enforcement_then);
        tcase_add_test(tcase, test_hosts);
        tcase_add_loop_test(tcase, test_notice_at_an_empty_port, 0, 2);
        tcase_add_test(tcase, test_about_when);
        tcase_add_test(tcase, test_a_gain_is_no_cause);
        tcase_add_test(tcase, test_a_later_loss_is_the_likelier_cause);
        tcase_add_test(tcase, test_away);
        tcase_add_test(tcase, test_storm);
        tcase_add_test(tcase, test_storm_of_notices);
        tcase_add_test(tcase, test_record);
        tcase_add_test(tcase, test_age_of_a_change);
        tcase_add_test(tcase, test_not_the_first_time);
        tcase_add_test(tcase, test_leases);
        tcase_add_test(tcase, test_many_partitions);
        tcase_add_test(tcase, test_lids);
        tcase_add_test(tcase, test_durations);
        tcase_add_test(tcase, test_counts);
        tcase_add_test(tcase, test_anything);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
