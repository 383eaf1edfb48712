/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <infiniband/ibnetdisc.h>
#include <string.h>

#include "shell/discovery.h"

/*
 * What libibnetdisc could bring, made by hand: this program has the two functions of it that discovery calls. The real
 * library is met in the system tests.
 */
static ibnd_fabric_t fabric;
static struct ibnd_config config;
static char ca_name[CA_NAME_SIZE];
static bool fails;
static unsigned n_destroyed;

ibnd_fabric_t *ibnd_discover_fabric(char *ca, int ca_port, ib_portid_t *from, struct ibnd_config *cfg)
{
        ck_assert_int_eq(ca_port, 1);
        ck_assert_ptr_null(from);
        config = *cfg;
        strncpy(ca_name, ca, sizeof(ca_name) - 1);
        return fails ? NULL : &fabric;
}

void ibnd_destroy_fabric(ibnd_fabric_t *f)
{
        ck_assert_ptr_eq(f, &fabric);
        n_destroyed++;
}

static struct arena *arena;
static struct subnet *subnet;

static ibnd_node_t *add_node(uint64_t guid, int type, uint8_t num_ports, const char *description)
{
        ibnd_node_t *n = arena_new_object(arena, ibnd_node_t);

        n->guid = guid;
        n->type = type;
        n->numports = num_ports;
        n->ports = arena_new_array(arena, ibnd_port_t *, num_ports + 1u);
        mad_set_field(n->info, 0, IB_NODE_TYPE_F, (uint32_t) type);
        mad_set_field(n->info, 0, IB_NODE_NPORTS_F, num_ports);
        mad_set_field64(n->info, 0, IB_NODE_GUID_F, guid);
        mad_set_field64(n->info, 0, IB_NODE_PORT_GUID_F, guid + (type == NODE_SWITCH ? 0 : 1));
        mad_set_field(n->info, 0, IB_NODE_PARTITION_CAP_F, 128);
        mad_set_field(n->switchinfo, 0, IB_SW_PARTITION_ENFORCE_CAP_F, 32);
        mad_set_field(n->switchinfo, 0, IB_SW_PARTITION_ENF_INB_F, 1);
        mad_set_field(n->switchinfo, 0, IB_SW_PARTITION_ENF_OUTB_F, 1);
        memcpy(n->nodedesc, description, strlen(description));
        n->next = fabric.nodes;
        fabric.nodes = n;
        return n;
}

static ibnd_port_t *add_port(ibnd_node_t *n, int number, uint16_t lid, enum port_state state)
{
        ibnd_port_t *p = arena_new_object(arena, ibnd_port_t);

        p->node = n;
        p->portnum = number;
        p->guid = n->guid + (n->type == NODE_SWITCH ? 0 : (uint64_t) number);
        p->base_lid = lid;
        mad_set_field(p->info, 0, IB_PORT_LID_F, lid);
        mad_set_field(p->info, 0, IB_PORT_SMLID_F, 4);
        mad_set_field(p->info, 0, IB_PORT_STATE_F, state);
        n->ports[number] = p;
        return p;
}

static void connect_ports(ibnd_port_t *a, ibnd_port_t *b)
{
        a->remoteport = b;
        b->remoteport = a;
}

static void set_path(ibnd_node_t *n, int hops, uint8_t exit1, uint8_t exit2)
{
        n->path_portid.drpath.cnt = hops;
        n->path_portid.drpath.p[1] = exit1;
        n->path_portid.drpath.p[2] = exit2;
}

/*
 * host A (we, on its port 1) -- leaf1 -- leaf2 -- host B; A's port 2 is on leaf2, too.
 * LIDs: A 1 and 2, leaf1 10, leaf2 11, B 4 to 7 (the SM's).
 */
static ibnd_node_t *a, *leaf1, *leaf2, *b;

static void setup(void)
{
        arena = arena_new();
        memset(&fabric, 0, sizeof(fabric));
        subnet = NULL;
        fails = false;
        n_destroyed = 0;
        a = add_node(0x100, NODE_CA, 2, "hostA mlx5_0");
        leaf1 = add_node(0x300, NODE_SWITCH, 4, "MF0;leaf1:MQM8700/U1");
        leaf2 = add_node(0x400, NODE_SWITCH, 4, "leaf2");
        b = add_node(0x200, NODE_CA, 1, "hostB mlx5_0");
        set_path(leaf1, 1, 1, 0);
        set_path(leaf2, 2, 1, 4);
        b->path_portid.drpath.cnt = 3;
        memcpy(b->path_portid.drpath.p, (uint8_t[]) { 0, 1, 4, 1 }, 4);
        add_port(leaf1, 0, 10, PORT_STATE_ACTIVE);
        add_port(leaf2, 0, 11, PORT_STATE_DOWN); /* what a base port 0 says of its state means nothing */
        connect_ports(add_port(a, 1, 1, PORT_STATE_ACTIVE), add_port(leaf1, 1, 10, PORT_STATE_ACTIVE));
        connect_ports(add_port(a, 2, 2, PORT_STATE_ACTIVE), add_port(leaf2, 3, 11, PORT_STATE_ACTIVE));
        connect_ports(add_port(b, 1, 4, PORT_STATE_ACTIVE), add_port(leaf2, 1, 11, PORT_STATE_ACTIVE));
        mad_set_field(b->ports[1]->info, 0, IB_PORT_LMC_F, 2);
        mad_set_field(leaf2->ports[1]->info, 0, IB_PORT_PART_EN_INB_F, 1);
        connect_ports(add_port(leaf1, 4, 10, PORT_STATE_ACTIVE), add_port(leaf2, 2, 11, PORT_STATE_ACTIVE));
        fabric.from_node = a;
        fabric.from_portnum = 1;
}

static void teardown(void)
{
        arena_free(arena);
}

static int discover(void)
{
        struct local_port lp = { .ca = "mlx5_7", .port = 1 };
        struct discovery_options options = { .max_smps = 32, .timeout = 300 * USEC_PER_MSEC, .m_key = 0x99 };

        return discovery_run(arena, &lp, &options, &subnet);
}

static const struct subnet_port *port(const ibnd_node_t *n, uint8_t number)
{
        uint32_t i = subnet_find_port(subnet, subnet_find_node(subnet, (struct guid) { n->guid }), number);

        ck_assert_msg(i != SUBNET_NONE, "no port %u of 0x%" PRIx64, number, n->guid);
        return &subnet->ports[i];
}

static void assert_directed(const struct subnet_port *p, uint8_t hops, const uint8_t *path)
{
        ck_assert(mad_route_is_directed(&p->route));
        ck_assert_uint_eq(p->route.hops, hops);
        for (uint8_t i = 1; i <= hops; i++)
                ck_assert_uint_eq(p->route.path[i], path[i - 1]);
}
#define PATH(...) ((const uint8_t[]) { __VA_ARGS__ })

/* No LID, no subnet manager: as after power on. */
static void forget_lids(void)
{
        for (ibnd_node_t *n = fabric.nodes; n; n = n->next)
                for (int i = 0; i <= n->numports; i++)
                        if (n->ports[i]) {
                                mad_set_field(n->ports[i]->info, 0, IB_PORT_LID_F, 0);
                                mad_set_field(n->ports[i]->info, 0, IB_PORT_SMLID_F, 0);
                                mad_set_field(n->ports[i]->info, 0, IB_PORT_STATE_F, PORT_STATE_INIT);
                        }
}

START_TEST(picture)
{
        ck_assert_int_eq(discover(), 0);
        ck_assert_str_eq(ca_name, "mlx5_7");
        ck_assert_uint_eq(config.max_smps, 32);
        ck_assert_uint_eq(config.timeout_ms, 300);
        ck_assert_uint_eq(config.mkey, 0x99);
        ck_assert_uint_eq(n_destroyed, 1);

        ck_assert_uint_eq(subnet->n_nodes, 4);
        ck_assert_uint_eq(subnet->n_ports, 8);
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(a, 1));
        ck_assert_ptr_eq(&subnet->ports[subnet->sm], port(b, 1));
        ck_assert_str_eq(subnet->nodes[port(leaf1, 0)->node].name, "leaf1");
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(a, 1)), 128);
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(leaf2, 1)), 32);
        ck_assert(subnet_port_can_enforce(subnet, port(leaf2, 1)));
        ck_assert(port(leaf2, 1)->enforce_inbound);
        ck_assert(!port(leaf2, 1)->enforce_outbound);
        ck_assert(!port(leaf2, 3)->enforce_inbound);
        ck_assert_uint_eq(port(a, 2)->guid.v, 0x102);
        ck_assert_uint_eq(port(b, 1)->lmc, 2);
        ck_assert_ptr_eq(&subnet->ports[port(a, 2)->neighbour], port(leaf2, 3));
        ck_assert_ptr_eq(&subnet->ports[port(leaf2, 1)->neighbour], port(b, 1));
}
END_TEST

START_TEST(routes_by_lid)
{
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(a, 1), 0, NULL); /* ourselves */
        ck_assert_uint_eq(port(a, 2)->route.lid.v, 2);
        ck_assert_uint_eq(port(b, 1)->route.lid.v, 4);
        ck_assert_uint_eq(port(leaf1, 0)->route.lid.v, 10);
        ck_assert_uint_eq(port(leaf2, 0)->route.lid.v, 11);
        ck_assert_uint_eq(port(leaf2, 1)->route.lid.v, 11);
}
END_TEST

START_TEST(directed_routes)
{
        forget_lids();
        /* the way to A's node is the way to its first port; to the second one leads another */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        assert_directed(port(a, 1), 0, NULL);
        assert_directed(port(a, 2), 3, PATH(1, 4, 3));
        assert_directed(port(b, 1), 3, PATH(1, 4, 1));
        assert_directed(port(leaf1, 1), 1, PATH(1));
        assert_directed(port(leaf2, 3), 2, PATH(1, 4));
}
END_TEST

START_TEST(a_lid_that_two_claim_is_none)
{
        mad_set_field(a->ports[2]->info, 0, IB_PORT_LID_F, 6); /* B has 4 to 7 */
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(a, 2), 3, PATH(1, 4, 3));
        ck_assert_uint_eq(port(b, 1)->route.lid.v, 4);
        mad_set_field(a->ports[2]->info, 0, IB_PORT_LID_F, 4);
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(a, 2), 3, PATH(1, 4, 3));
        assert_directed(port(b, 1), 3, PATH(1, 4, 1));
        mad_set_field(a->ports[2]->info, 0, IB_PORT_LID_F, 0xc001); /* multicast */
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(a, 2), 3, PATH(1, 4, 3));
}
END_TEST

START_TEST(a_port_that_is_not_up_has_no_lid_yet)
{
        mad_set_field(b->ports[1]->info, 0, IB_PORT_STATE_F, PORT_STATE_INIT);
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(b, 1), 3, PATH(1, 4, 1));
        ck_assert_int_eq(port(b, 1)->state, PORT_STATE_INIT);
        mad_set_field(a->ports[1]->info, 0, IB_PORT_STATE_F, PORT_STATE_INIT); /* ours */
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(leaf2, 0), 2, PATH(1, 4));
}
END_TEST

START_TEST(back_to_back)
{
        fabric.nodes = NULL;
        a = add_node(0x100, NODE_CA, 2, "hostA mlx5_0");
        b = add_node(0x200, NODE_CA, 1, "hostB mlx5_0");
        set_path(b, 1, 1, 0);
        connect_ports(add_port(a, 1, 0, PORT_STATE_INIT), add_port(b, 1, 0, PORT_STATE_INIT));
        fabric.from_node = a;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 2);
        assert_directed(port(b, 1), 1, PATH(1));
        ck_assert_uint_eq(subnet->ports[subnet->self].neighbour, (uint32_t) (port(b, 1) - subnet->ports));
}
END_TEST

START_TEST(from_a_switch)
{
        fabric.from_node = leaf1;
        fabric.from_portnum = 0;
        set_path(leaf1, 0, 0, 0);
        ck_assert_int_eq(discover(), 0);
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(leaf1, 0));
        assert_directed(port(leaf1, 0), 0, NULL);
        ck_assert_uint_eq(port(b, 1)->route.lid.v, 4);
}
END_TEST

START_TEST(no_fabric)
{
        fails = true;
        ck_assert_int_eq(discover(), -EIO);
        ck_assert_uint_eq(n_destroyed, 0);
        fails = false;
        fabric.from_node = NULL;
        ck_assert_int_eq(discover(), -ENODATA);
        fabric.from_node = a;
        fabric.from_portnum = 77;
        ck_assert_int_eq(discover(), -ENODATA);
        fabric.from_portnum = -1;
        ck_assert_int_eq(discover(), -ENODATA);
        ck_assert_ptr_null(subnet);
        ck_assert_uint_eq(n_destroyed, 3);
}
END_TEST

START_TEST(what_did_not_answer)
{
        /* B said who it is, but its PortInfo got lost; leaf2's port 0 never answered */
        memset(b->ports[1]->info, 0, sizeof(b->ports[1]->info));
        leaf2->ports[0] = NULL;
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(b, 1), 3, PATH(1, 4, 1));
        ck_assert_int_eq(port(b, 1)->state, PORT_STATE_NONE);
        assert_directed(port(leaf2, 0), 2, PATH(1, 4));
        ck_assert_uint_eq(port(leaf2, 0)->guid.v, 0x400);
}
END_TEST

static unsigned count_silent(void)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < subnet->n_nodes; i++)
                for (unsigned number = 0; number <= UINT8_MAX; number++)
                        n += subnet_port_is_silent(&subnet->nodes[i], (uint8_t) number);
        return n;
}

/* Links that are up, with nobody who answers at the other end: an M_Key that is not ours, for one. */
START_TEST(silent_links)
{
        ibnd_port_t *dead = add_port(leaf1, 2, 10, PORT_STATE_ACTIVE);
        ibnd_node_t *large = add_node(0x500, NODE_SWITCH, 255, "large");

        set_path(large, 2, 1, 3);
        connect_ports(add_port(large, 1, 12, PORT_STATE_ACTIVE), add_port(leaf1, 3, 10, PORT_STATE_ACTIVE));
        for (ibnd_node_t *n = fabric.nodes; n; n = n->next)
                for (int i = 1; i <= n->numports; i++)
                        if (n->ports[i])
                                mad_set_field(n->ports[i]->info, 0, IB_PORT_PHYS_STATE_F, 5);
        mad_set_field(dead->info, 0, IB_PORT_PHYS_STATE_F, 2);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_silent(), 0); /* polling: no cable */
        mad_set_field(dead->info, 0, IB_PORT_PHYS_STATE_F, 5);
        mad_set_field(add_port(large, 255, 12, PORT_STATE_INIT)->info, 0, IB_PORT_PHYS_STATE_F, 5);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_silent(), 2);
        ck_assert(subnet_port_is_silent(&subnet->nodes[port(leaf1, 0)->node], 2));
        ck_assert(subnet_port_is_silent(&subnet->nodes[subnet_find_node(subnet, (struct guid) { 0x500 })], 255));
        /* what an adapter has on its other side nobody asked for, but through our own port */
        a->ports[2]->remoteport = b->ports[1]->remoteport = NULL;
        leaf2->ports[3]->remoteport = leaf2->ports[1]->remoteport = NULL;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_silent(), 4);
        a->ports[1]->remoteport = NULL;
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(&subnet->nodes[port(a, 1)->node], 1));
}
END_TEST

START_TEST(lies)
{
        ibnd_node_t *odd = add_node(0x900, 7, 3, "odd"), *twin = add_node(0x200, NODE_CA, 1, "twin");
        ibnd_node_t *bare = add_node(0x901, NODE_SWITCH, 255, "bare"), *empty = add_node(0x902, NODE_CA, 0, "");

        odd->ports = NULL;
        empty->ports = NULL;
        memset(bare->nodedesc, 0xff, sizeof(bare->nodedesc)); /* and no NUL behind it */
        bare->path_portid.drpath.cnt = 5000;
        add_port(bare, 255, 0, PORT_STATE_ACTIVE)->remoteport = b->ports[1];
        add_port(twin, 1, 0, PORT_STATE_ACTIVE)->remoteport = leaf1->ports[0];
        add_port(leaf1, 2, 0, PORT_STATE_ACTIVE)->remoteport = add_port(odd = add_node(0x903, NODE_CA, 1, "x"), 1, 0,
                                                                        PORT_STATE_ACTIVE);
        odd->ports[1]->portnum = 4711;
        odd->ports[1]->remoteport = leaf1->ports[2];
        leaf1->ports[2]->portnum = -3;
        mad_set_field(b->ports[1]->info, 0, IB_PORT_LMC_F, 7);
        mad_set_field(b->ports[1]->info, 0, IB_PORT_LID_F, 0xbfff);
        ck_assert_int_eq(discover(), 0);
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(a, 1));
        ck_assert_uint_eq(subnet_find_node(subnet, (struct guid) { 0x900 }), SUBNET_NONE);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                ck_assert_uint_le(subnet->ports[i].route.hops, MAD_MAX_HOPS);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("libibnetdisc");
        TCase *t = tcase_create("libibnetdisc");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, picture);
        tcase_add_test(t, routes_by_lid);
        tcase_add_test(t, directed_routes);
        tcase_add_test(t, a_lid_that_two_claim_is_none);
        tcase_add_test(t, a_port_that_is_not_up_has_no_lid_yet);
        tcase_add_test(t, back_to_back);
        tcase_add_test(t, from_a_switch);
        tcase_add_test(t, no_fabric);
        tcase_add_test(t, what_did_not_answer);
        tcase_add_test(t, silent_links);
        tcase_add_test(t, lies);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
