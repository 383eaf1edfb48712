/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk over a fabric with false answers, duplicate GUIDs, loops, and cables that are moved during the walk. */

#include "discovery_fixture.h"

/* --- false answers --------------------------------------------------------------------------------------------------- */

static const struct {
        bool of_switch;
        enum MAD_FIELDS field;
        uint64_t value;
} implausible[] = {
        { false, IB_NODE_GUID_F, 0 },
        { false, IB_NODE_PORT_GUID_F, 0 },
        { false, IB_NODE_TYPE_F, 0 },
        { false, IB_NODE_TYPE_F, 4 },
        { false, IB_NODE_TYPE_F, 255 },
        { false, IB_NODE_NPORTS_F, 0 },
        { false, IB_NODE_LOCAL_PORT_F, 0 },
        { false, IB_NODE_LOCAL_PORT_F, 2 },
        { false, IB_NODE_LOCAL_PORT_F, 255 },
        { true, IB_NODE_GUID_F, 0 },
        { true, IB_NODE_PORT_GUID_F, 0 },
        { true, IB_NODE_NPORTS_F, 0 },
        { true, IB_NODE_NPORTS_F, 3 },
        { true, IB_NODE_LOCAL_PORT_F, 0 },
        { true, IB_NODE_LOCAL_PORT_F, 7 },
};

/* A NodeInfo that cannot be true counts as no answer. */
START_TEST(implausible_node_info)
{
        lie_about(implausible[_i].of_switch ? leaf2 : host_b, SMP_ATTR_NODE_INFO, implausible[_i].field,
                  implausible[_i].value);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(host_b));
        ck_assert_int_eq(has_node(leaf2), !implausible[_i].of_switch);
        ck_assert(subnet_port_is_silent(implausible[_i].of_switch ? node(leaf1) : node(leaf2),
                                        implausible[_i].of_switch ? 5 : 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), implausible[_i].of_switch ? 2 : 1);
        ck_assert_uint_eq(count_incomplete(), 0);
}
END_TEST

/* NumPorts is 255, and PortInfo is refused for all but six ports. */
START_TEST(num_ports_too_large)
{
        lie_about(leaf2, SMP_ATTR_NODE_INFO, IB_NODE_NPORTS_F, 255);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(node(leaf2)->num_ports, 255);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(count_incomplete(), 0);
}
END_TEST

static bool lose_above_6(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == leaf2 && request->attribute == SMP_ATTR_PORT_INFO && request->modifier > 6;
}

/* PortInfo of the other ports is not answered: the switch is given up after two of them. */
START_TEST(num_ports_too_large_and_no_answer)
{
        lie_about(leaf2, SMP_ATTR_NODE_INFO, IB_NODE_NPORTS_F, 255);
        rules.lose = lose_above_6;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_lt(n_requests, 60);
        ck_assert(node(leaf2)->incomplete);
        ck_assert(has_port(host_b, 1));
        ck_assert(subnet_port_is_incomplete(subnet, port(host_b, 1)));
        ck_assert_uint_eq(subnet_count_silent(subnet), 249);
}
END_TEST

/* A host that claims to be a switch: no route leads through it. */
START_TEST(host_claims_to_be_a_switch)
{
        lie_about(host_b, SMP_ATTR_NODE_INFO, IB_NODE_TYPE_F, NODE_SWITCH);
        ck_assert_int_eq(discover(), 0);
        ck_assert_int_eq(node(host_b)->type, NODE_SWITCH);
        ck_assert(!has_port(leaf2, 1));
        ck_assert(node(host_b)->incomplete); /* no SwitchInfo */
}
END_TEST

static const enum MAD_FIELDS identity[] = {
        IB_NODE_GUID_F,     IB_NODE_PORT_GUID_F,      IB_NODE_TYPE_F,
        IB_NODE_NPORTS_F,   IB_NODE_PARTITION_CAP_F,  IB_NODE_LOCAL_PORT_F,
};

/* The second NodeInfo differs: the attributes may belong to another node. */
START_TEST(second_node_info_differs)
{
        lie_about(host_b, SMP_ATTR_NODE_INFO, identity[_i], 3);
        meant.from = 2;
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(host_b));
        ck_assert(!has_port(leaf2, 1));
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 1).v, 0);
        /* a switch: the switch port beside each of its hosts is not known then, so they are dropped, too */
        lie_about(leaf2, SMP_ATTR_NODE_INFO, identity[_i], 3);
        meant.from = 3; /* the second is queried over the other cable */
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(leaf2));
        ck_assert(!has_node(host_b));
        ck_assert(!has_port(host_a, 2));
        ck_assert(subnet_port_is_silent(node(leaf1), 5));
        ck_assert(subnet_port_is_silent(node(leaf1), 6));
        ck_assert_uint_eq(subnet_count_silent(subnet), 2);
        /* the local node */
        lie_about(host_a, SMP_ATTR_NODE_INFO, identity[_i], 3);
        meant.port = 1;
        meant.from = 2;
        ck_assert_int_eq(discover(), -ENODATA);
}
END_TEST

/* A port that answers over a link and reports that the link is down. */
START_TEST(answers_while_down)
{
        lie_about(host_b, SMP_ATTR_PORT_INFO, IB_PORT_STATE_F, PORT_STATE_DOWN);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_port(host_b, 1));
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
}
END_TEST

static const struct {
        enum MAD_FIELDS field;
        uint32_t value;
        bool is_followed;
} link_states[] = {
        { IB_PORT_PHYS_STATE_F, 2, false },              /* polling */
        { IB_PORT_PHYS_STATE_F, 0, false },
        { IB_PORT_PHYS_STATE_F, 6, false },              /* error recovery */
        { IB_PORT_STATE_F, PORT_STATE_DOWN, false },
        { IB_PORT_STATE_F, PORT_STATE_INIT, true },
        { IB_PORT_STATE_F, PORT_STATE_ARMED, true },
        { IB_PORT_STATE_F, 0, true },                    /* a state that the standard does not know */
        { IB_PORT_STATE_F, 15, true },
};

START_TEST(links_that_are_followed)
{
        lie_about(leaf2, SMP_ATTR_PORT_INFO, link_states[_i].field, link_states[_i].value);
        meant.modifier = 1;
        ck_assert_int_eq(discover(), 0);
        ck_assert_int_eq(has_node(host_b), link_states[_i].is_followed);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
}
END_TEST

/* Then it is not known either whether the switch port beside the local port enforces partitions. */
START_TEST(leaf_denies_the_link_of_the_local_port)
{
        lie_about(leaf1, SMP_ATTR_PORT_INFO, IB_PORT_STATE_F, PORT_STATE_DOWN);
        meant.modifier = 1;
        ck_assert_int_eq(discover(), 0);
        ck_assert(node(leaf1)->incomplete);
        ck_assert_uint_eq(count_incomplete(), 1);
        ck_assert(has_port(host_a, 1));
        rules.change = spoil; /* or reports that there is no such port */
        failure = MAD_REFUSED;
        failure_status = 0x1c;
        mean(leaf1, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(node(leaf1)->incomplete);
        ck_assert_uint_eq(count_incomplete(), 1);
}
END_TEST

START_TEST(description_of_any_bytes)
{
        memset(f.nodes[host_b].description, 0xff, NODE_DESCRIPTION_SIZE); /* without a terminating NUL */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(strlen(node(host_b)->description), 4 * NODE_DESCRIPTION_SIZE);
        ck_assert(!node(host_b)->incomplete);
}
END_TEST

/* --- duplicate GUIDs ------------------------------------------------------------------------------------------------- */

static unsigned add_twin(unsigned leaf, uint8_t at)
{
        unsigned twin = fabsim_add_node(&f, NODE_CA, 1, 17, "twin mlx5_0");

        f.nodes[twin].ports[1].lid.v = 77;
        fabsim_connect(&f, twin, 1, leaf, at);
        return twin;
}

/* Two hosts with the same GUIDs. Their attributes are not mixed, in whatever order they answer, and no LID is used,
 * because both may have the same. */
START_TEST(two_hosts_with_one_guid)
{
        unsigned twin = add_twin(leaf2, 2), n_twins = 0;

        f.nodes[twin].guid = f.nodes[host_b].guid;
        f.nodes[twin].ports[1].guid = f.nodes[host_b].ports[1].guid;
        order = ANY_ORDER;
        for (unsigned seed = 0; seed < 100; seed++) {
                const struct subnet_port *p;
                bool is_twin;

                prng.state = seed;
                ck_assert_int_eq(discover(), 0);
                p = port(host_b, 1);
                is_twin = strcmp(node(host_b)->name, "twin") == 0;
                ck_assert_uint_eq(node(host_b)->partition_cap, is_twin ? 17 : 64);
                ck_assert_uint_eq(p->lid.v, is_twin ? 77 : 4);
                ck_assert(mad_route_is_directed(&p->route));
                ck_assert_uint_eq(p->route.path[p->route.hops], is_twin ? 2 : 1);
                ck_assert_ptr_eq(peer(p), port(leaf2, is_twin ? 2 : 1));
                ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
                ck_assert_uint_eq(subnet->n_conflicts_all, 1);
                assert_conflict(0, f.nodes[host_b].ports[1].guid, place(leaf2, is_twin ? 2 : 1),
                                place(leaf2, is_twin ? 1 : 2));
                ck_assert(subnet_port_is_silent(node(leaf2), is_twin ? 1 : 2));
                ck_assert_uint_eq(subnet_count_silent(subnet), 1);
                n_twins += is_twin;
        }
        ck_assert(n_twins > 0 && n_twins < 100);
}
END_TEST

/* Only the node GUID or only the port GUID is a duplicate. */
START_TEST(one_of_two_guids_is_a_duplicate)
{
        unsigned twin = add_twin(leaf1, 3);

        f.nodes[twin].ports[1].guid = f.nodes[host_b].ports[1].guid;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        ck_assert_uint_eq(subnet->conflicts[0].guid.v, f.nodes[host_b].ports[1].guid.v);
        f.nodes[twin].ports[1].guid.v = 0xabc;
        f.nodes[twin].partition_cap = f.nodes[host_b].partition_cap;
        f.nodes[twin].guid = f.nodes[host_b].guid; /* could be its second port, if both were not port 1 */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        ck_assert_uint_eq(subnet->conflicts[0].guid.v, f.nodes[host_b].guid.v);
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        ck_assert_ptr_eq(subnet_find_conflict(subnet, subnet->conflicts[0].places[1].node, subnet->conflicts[0].places[1].number),
                         &subnet->conflicts[0]);
        f.nodes[twin].guid = f.nodes[leaf2].guid; /* the GUID of a switch, which is found over two links */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 2);
        ck_assert_uint_eq(subnet_count_silent(subnet), 3);
        f.nodes[twin].guid.v = 0xabd;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
}
END_TEST

/* A duplicate of host A's node GUID that could be its second port, but differs in another member of NodeInfo. */
START_TEST(not_a_second_port)
{
        unsigned twin = fabsim_add_node(&f, NODE_CA, 3, 128, "twin mlx5_0");

        fabsim_connect(&f, twin, 3, leaf1, 3);
        f.nodes[twin].guid = guid_of(host_a);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        assert_conflict(0, guid_of(host_a), (struct subnet_place) {}, place(leaf1, 3));
        ck_assert_uint_eq(node(host_a)->num_ports, 2);
        f.nodes[twin].num_ports = 2;
        fabsim_disconnect(&f, host_a, 2);
        fabsim_disconnect(&f, twin, 3);
        fabsim_connect(&f, twin, 2, leaf1, 3);
        f.nodes[twin].type = NODE_ROUTER;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        f.nodes[twin].type = NODE_CA;
        f.nodes[twin].partition_cap = 127;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        f.nodes[twin].partition_cap = 128; /* no difference is left */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        ck_assert(has_port(host_a, 2));
}
END_TEST

/* A duplicate of the local port's GUID. */
START_TEST(duplicate_of_the_local_port)
{
        unsigned twin = add_twin(leaf1, 3);

        f.nodes[twin].guid = guid_of(host_a);
        f.nodes[twin].ports[1].guid = f.nodes[host_a].ports[1].guid;
        ck_assert_int_eq(discover(), 0);
        ck_assert_str_eq(node(host_a)->name, "hostA");
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(host_a, 1));
        assert_directed(port(host_a, 1), 0, NULL);
        assert_conflict(0, f.nodes[host_a].ports[1].guid, (struct subnet_place) {}, place(leaf1, 3));
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
}
END_TEST

/* Two switches with the same GUID: a link whose ends name different peers shows it. The twin is in no
 * snapshot, nor is leaf 2 if the twin was found first: the hosts of the other one would be absent. */
START_TEST(two_switches_with_one_guid)
{
        unsigned twin = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "leaf2 of two words");
        unsigned behind = fabsim_add_node(&f, NODE_CA, 1, 64, "behind mlx5_0");

        fabsim_set_enforcement_cap(&f, twin, 32, true, false);
        fabsim_connect(&f, leaf1, 3, twin, 4); /* leaf 2 has a link at its port 4 as well */
        fabsim_connect(&f, behind, 1, twin, 1);
        f.nodes[twin].guid = f.nodes[twin].ports[0].guid = guid_of(leaf2);
        order = ANY_ORDER;
        for (unsigned seed = 0; seed < 100; seed++) {
                prng.state = seed;
                ck_assert_int_eq(discover(), 0);
                ck_assert_uint_gt(subnet->n_conflicts_all, 0);
                for (uint32_t i = 0; i < subnet->n_conflicts; i++)
                        ck_assert_uint_eq(subnet->conflicts[i].guid.v, guid_of(leaf2).v);
                ck_assert(!has_node(behind));
                ck_assert(has_node(leaf2) == has_node(host_b));
                ck_assert_uint_eq(subnet_count_silent(subnet), has_node(leaf2) ? 1 : 3);
                ck_assert(!has_node(leaf2) || mad_route_is_directed(&port(leaf2, 0)->route));
        }
        f.nodes[twin].num_ports = 5; /* NodeInfo differs: a conflict at both links to leaf 2 */
        order = FIRST_COME;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 2);
        ck_assert_uint_eq(subnet_count_silent(subnet), 3);
}
END_TEST

/* The node GUID is a duplicate, the port GUID is not. */
START_TEST(two_switches_with_one_node_guid)
{
        unsigned twin = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "twin");

        fabsim_connect(&f, leaf1, 3, twin, 2);
        f.nodes[twin].guid = guid_of(leaf1);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 1);
        assert_conflict(0, guid_of(leaf1), place(host_a, 1), place(leaf1, 3));
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
}
END_TEST

/* --- links between switches ------------------------------------------------------------------------------------------ */

/* Is this NodeInfo over the link of leaf 1's port `number`, or of leaf 2's, which was found over leaf 1's port 5? */
static bool is_over_leaf1(const struct mad_request *request, uint8_t number)
{
        const struct mad_route *route = &request->route;

        return request->attribute == SMP_ATTR_NODE_INFO && route->hops == 2 && route->path[2] == number;
}

static bool is_over_leaf2(const struct mad_request *request, uint8_t number)
{
        const struct mad_route *route = &request->route;

        return request->attribute == SMP_ATTR_NODE_INFO && route->hops == 3 && route->path[2] == 5 &&
               route->path[3] == number;
}

static unsigned n_over_second_cable;
static bool count_second_cable(const struct mad_request *request, struct fabsim_place at)
{
        (void) at;
        n_over_second_cable += is_over_leaf1(request, 6) || is_over_leaf2(request, 4);
        return false;
}

static unsigned leaf1_names(const struct mad_request *request)
{
        return is_over_leaf2(request, 4);
}

static unsigned leaf2_names(const struct mad_request *request)
{
        return request->attribute == SMP_ATTR_PORT_INFO && request->route.hops == 1 && request->modifier == 6;
}

static unsigned both_name(const struct mad_request *request)
{
        return is_over_leaf1(request, 6) || is_over_leaf2(request, 4);
}

static unsigned (*const second_cable[])(const struct mad_request *request) = { leaf1_names, leaf2_names, both_name };

/* The second cable between the leaves is queried once from each end, whichever end is known first. If the snapshot before has it,
 * one end is enough. */
START_TEST(second_cable_is_queried_from_both_ends)
{
        rules.rank = second_cable[_i];
        rules.lose = count_second_cable;
        n_over_second_cable = 0;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_over_second_cable, 2);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf1), 6).v, guid_of(leaf2).v);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 4).v, guid_of(leaf1).v);
        config.before = subnet;
        n_over_second_cable = 0;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_over_second_cable, rules.rank == both_name ? 2 : 1);
        ck_assert_uint_eq(subnet_count_silent(subnet) + subnet->n_conflicts_all, 0);
}
END_TEST

static bool is_port_info_of_port_4(const struct mad_request *request)
{
        return request->attribute == SMP_ATTR_PORT_INFO && request->route.hops == 2 && request->modifier == 4;
}

static unsigned port_info_then_node_info(const struct mad_request *request)
{
        return is_over_leaf1(request, 6) ? 2 : is_port_info_of_port_4(request);
}

/* Leaf 2's port 4 is up, and before its own NodeInfo is sent, the answer over leaf 1's port 6 names it, as the snapshot before
 * does. */
START_TEST(named_before_it_is_queried)
{
        ck_assert_int_eq(discover(), 0);
        config.before = subnet;
        rules.rank = port_info_then_node_info;
        rules.together = is_port_info_of_port_4;
        rules.lose = count_second_cable;
        n_over_second_cable = 0;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_over_second_cable, 1);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
}
END_TEST

/* Over leaf 1's port 6, leaf 2 answers that this is its port 1. */
static void leads_to_port_1(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        (void) at;
        if (is_over_leaf1(request, 6))
                mad_set_field(ret->data, 0, IB_NODE_LOCAL_PORT_F, 1);
}

static unsigned port_6_last(const struct mad_request *request)
{
        return is_over_leaf1(request, 6);
}

/* Host B is there: it keeps its place, and its link is the one that is learned. The cable is not in the snapshot. */
START_TEST(two_links_lead_to_one_port)
{
        rules.change = leads_to_port_1;
        rules.rank = port_6_last;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 2);
        assert_conflict(0, guid_of(leaf1), place(leaf2, 1), place(leaf2, 4));
        assert_conflict(1, guid_of(leaf2), place(host_b, 1), place(leaf1, 6));
        ck_assert_ptr_eq(peer(port(host_b, 1)), port(leaf2, 1));
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 1).v, f.nodes[host_b].ports[1].guid.v);
        ck_assert(subnet_port_is_silent(node(leaf1), 6));
        ck_assert(subnet_port_is_silent(node(leaf2), 4));
        ck_assert_uint_eq(subnet_count_silent(subnet) + count_incomplete(), 2);
        ck_assert(mad_route_is_directed(&port(leaf1, 0)->route));
        ck_assert(mad_route_is_directed(&port(leaf2, 0)->route));
        ck_assert(!mad_route_is_directed(&port(host_b, 1)->route));
}
END_TEST

/* A third cable leads from leaf 1's port 3 to port 2 of leaf 2, which answers there that this is its port 4. */
static void claims_port_4(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        (void) at;
        if (is_over_leaf1(request, 3))
                mad_set_field(ret->data, 0, IB_NODE_LOCAL_PORT_F, 4);
}

static unsigned claim_first(const struct mad_request *request)
{
        if (is_over_leaf1(request, 6))
                return 3;
        return is_over_leaf2(request, 4) ? 2 : is_over_leaf1(request, 3);
}

/* Port 4 is named as the end of the third cable while its own NodeInfo is in flight. Its own answer counts: the answer
 * from the other end of its cable agrees with it. */
START_TEST(own_answer_counts_more_than_a_claim)
{
        fabsim_connect(&f, leaf1, 3, leaf2, 2);
        rules.change = claims_port_4;
        rules.rank = claim_first;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 2);
        assert_conflict(0, guid_of(leaf1), place(leaf2, 4), place(leaf2, 2));
        assert_conflict(1, guid_of(leaf2), place(leaf1, 6), place(leaf1, 3));
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
        ck_assert(subnet_port_is_silent(node(leaf2), 2));
        ck_assert_uint_eq(subnet_count_silent(subnet) + count_incomplete(), 2);
}
END_TEST

/* --- an impostor ------------------------------------------------------------------------------------------------------ */

/* A device with an SMA of its own at leaf 1's port 3: it answers as leaf 2, through port `number`. Like leaf 2 it forwards to what
 * answers as leaf 1; nothing is plugged into its other ports. */
static void add_impostor(unsigned device, uint8_t at, uint8_t number)
{
        unsigned impostor = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "impostor");
        unsigned forged = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "forged");

        f.nodes[impostor].guid = f.nodes[impostor].ports[0].guid = guid_of(leaf2);
        f.nodes[forged].guid = f.nodes[forged].ports[0].guid = guid_of(leaf1);
        fabsim_connect(&f, impostor, number, device, at);
        fabsim_connect(&f, impostor, 5, forged, 5);
        if (number != 4)
                fabsim_connect(&f, impostor, 4, forged, 6);
}

static bool is_to_impostor(const struct mad_request *request)
{
        return request->route.hops > 1 && request->route.path[2] == 3;
}

static unsigned impostor_first(const struct mad_request *request)
{
        return !is_to_impostor(request);
}

static unsigned impostor_last(const struct mad_request *request)
{
        return is_to_impostor(request);
}

static const struct {
        unsigned (*rank)(const struct mad_request *request);
        enum answer_order order;
} impostor_orders[] = {
        { NULL, FIRST_COME }, { NULL, LAST_COME }, { NULL, ANY_ORDER },
        { impostor_first, FIRST_COME }, { impostor_last, FIRST_COME },
};

static void answer_in_order(int i)
{
        rules.rank = impostor_orders[i].rank;
        order = impostor_orders[i].order;
}

/* It is at its place, or that is silent, or the switch is not in the snapshot and the links to it are silent. */
static void assert_host_b_is_not_absent(void)
{
        ck_assert(subnet->n_conflicts_all > 0);
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf1), 3).v, 0);
        if (!has_node(leaf2)) {
                ck_assert(!has_node(host_b));
                ck_assert(subnet_port_is_silent(node(leaf1), 5) && subnet_port_is_silent(node(leaf1), 6));
                return;
        }
        ck_assert_ptr_eq(peer(port(host_b, 1)), port(leaf2, 1));
        ck_assert(port(leaf2, 1)->enforce_inbound);
        ck_assert_uint_eq(count_incomplete(), 0);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 1).v, f.nodes[host_b].ports[1].guid.v);
}

/* It names the port of host B, and its answer is the first or not. */
START_TEST(impostor_names_the_port_of_a_host)
{
        answer_in_order(_i);
        add_impostor(leaf1, 3, 1);
        ck_assert_int_eq(discover(), 0);
        assert_host_b_is_not_absent();
}
END_TEST

/* It names an unused port, and the port of host B is down. */
START_TEST(impostor_has_no_hosts)
{
        answer_in_order(_i);
        add_impostor(leaf1, 3, 2);
        ck_assert_int_eq(discover(), 0);
        assert_host_b_is_not_absent();
}
END_TEST

/* It invents a switch, with two links to leaf 2. */
START_TEST(impostor_behind_an_invented_switch)
{
        unsigned invented = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "invented");

        answer_in_order(_i);
        fabsim_connect(&f, leaf1, 3, invented, 1);
        add_impostor(invented, 2, 2);
        fabsim_connect(&f, invented, 3, f.n_nodes - 2, 3);
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet->n_conflicts_all > 0);
        ck_assert(has_node(host_b) == has_node(leaf2));
        ck_assert(has_node(leaf2) || (subnet_port_is_silent(node(leaf1), 5) && subnet_port_is_silent(node(leaf1), 6)));
        ck_assert(!has_node(host_b) || peer(port(host_b, 1)) == port(leaf2, 1));
}
END_TEST

/* It claims the GUID of leaf 2, and is no switch or has another number of ports. */
START_TEST(impostor_of_another_kind)
{
        unsigned impostor = fabsim_add_node(&f, _i ? NODE_CA : NODE_SWITCH, 5, 8, "impostor");

        f.nodes[impostor].guid = guid_of(leaf2);
        f.nodes[impostor].ports[_i].guid = guid_of(leaf2);
        fabsim_connect(&f, impostor, 1, leaf1, 3);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(leaf2));
        assert_host_b_is_not_absent();
}
END_TEST

/* The snapshot before has the link by which leaf 2 is found: it stays, and the impostor is silent. */
START_TEST(impostor_of_a_known_switch)
{
        ck_assert_int_eq(discover(), 0);
        config.before = subnet;
        rules.rank = impostor_last;
        add_impostor(leaf1, 3, (uint8_t) _i);
        ck_assert_int_eq(discover(), 0);
        ck_assert(has_node(leaf2));
        assert_host_b_is_not_absent();
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        /* it answers as leaf 1, through the port of the local port, of host B's link, or through an unused one */
        f.nodes[f.n_nodes - 2].guid = f.nodes[f.n_nodes - 2].ports[0].guid = guid_of(leaf1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(has_node(leaf1) && has_node(router) && has_node(host_b));
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
}
END_TEST

/* The snapshot before has both links of leaf 2. The impostor is found over another one, but what answers behind it as leaf 1
 * names the ends of those. */
START_TEST(impostor_of_a_known_switch_names_its_links)
{
        ck_assert_int_eq(discover(), 0);
        config.before = subnet;
        answer_in_order(_i / 2);
        add_impostor(leaf1, 3, (uint8_t) (1 + _i % 2));
        ck_assert_int_eq(discover(), 0);
        assert_host_b_is_not_absent();
}
END_TEST

static unsigned impostor_after_leaf2(const struct mad_request *request)
{
        if (is_to_impostor(request))
                return 1;
        return request->route.hops > 1 && !is_over_leaf1(request, 5) ? 2 : 0;
}

/* The snapshot before has a cable at the port that it names, which led elsewhere. Host B is there now. */
START_TEST(impostor_names_the_port_of_another_cable)
{
        ck_assert_int_eq(discover(), 0);
        config.before = subnet;
        fabsim_disconnect(&f, leaf1, 6);
        fabsim_disconnect(&f, host_b, 1);
        fabsim_connect(&f, host_b, 1, leaf2, 4);
        add_impostor(leaf1, 3, 4);
        rules.rank = impostor_after_leaf2;
        ck_assert_int_eq(discover(), 0);
        ck_assert_ptr_eq(peer(port(host_b, 1)), port(leaf2, 4));
        ck_assert(subnet_port_is_silent(node(leaf1), 3));
}
END_TEST

/* --- loops ----------------------------------------------------------------------------------------------------------- */

START_TEST(switch_connected_to_itself)
{
        fabsim_connect(&f, leaf1, 3, leaf1, 4);
        fabsim_connect(&f, leaf2, 2, leaf2, 2); /* a loopback plug */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_nodes, 5);
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
}
END_TEST

/* A loopback plug in the local port. */
START_TEST(loopback_at_the_local_port)
{
        fabsim_disconnect(&f, host_a, 1);
        fabsim_connect(&f, host_a, 1, host_a, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 1);
        assert_conflict(0, f.nodes[host_a].ports[1].guid, (struct subnet_place) {}, place(host_a, 1));
}
END_TEST

/* A switch that reports a wrong LocalPortNum: the link at that port is not followed, and the link by which it was
 * entered leads back to the local port. */
START_TEST(wrong_local_port_number)
{
        lie_about(leaf1, SMP_ATTR_NODE_INFO, IB_NODE_LOCAL_PORT_F, 2);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(router));
        ck_assert(!has_node(leaf2)); /* both its links lead to port 2 of leaf 1 */
        ck_assert(subnet_port_is_silent(node(leaf1), 5));
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(host_a, 1));
        ck_assert_uint_gt(subnet->n_conflicts_all, 0);
}
END_TEST

/* --- cables moved during the walk ------------------------------------------------------------------------------------- */

static unsigned move_at;
static void move_host_b(unsigned nth)
{
        if (nth != move_at)
                return;
        fabsim_disconnect(&f, host_b, 1);
        fabsim_connect(&f, host_b, 1, leaf1, 3);
}

/* Host B is moved from leaf 2 to leaf 1 at any time: it is in the snapshot in at most one place, and either complete
 * or marked incomplete. */
START_TEST(host_moved)
{
        unsigned n_seen = 0, last;

        ck_assert_int_eq(discover(), 0);
        last = n_requests;
        rules.before = move_host_b;
        for (move_at = 1; move_at <= last; move_at++) {
                bool at_leaf2, at_leaf1;

                teardown();
                setup();
                rules.before = move_host_b;
                ck_assert_int_eq(discover(), 0);
                at_leaf2 = has_port(leaf2, 1) && peer(port(leaf2, 1)) == port(host_b, 1);
                at_leaf1 = has_port(leaf1, 3) && peer(port(leaf1, 3)) == port(host_b, 1);
                ck_assert_int_eq(has_node(host_b), at_leaf1 || at_leaf2);
                ck_assert(!at_leaf1 || !at_leaf2);
                n_seen += has_node(host_b);
                if (has_node(host_b) && !node(host_b)->incomplete)
                        ck_assert_str_eq(node(host_b)->name, "hostB");
        }
        ck_assert_uint_gt(n_seen, last / 2);
}
END_TEST

static void swap_hosts(unsigned nth)
{
        if (nth != move_at)
                return;
        fabsim_disconnect(&f, host_b, 1);
        fabsim_disconnect(&f, router, 1);
        fabsim_connect(&f, host_b, 1, leaf1, 2);
        fabsim_connect(&f, router, 1, leaf2, 1);
}

/* Host B and the router are swapped at any time: neither gets the name, LID or table size of the other. */
START_TEST(nodes_swapped)
{
        unsigned last;

        ck_assert_int_eq(discover(), 0);
        last = n_requests;
        for (move_at = 1; move_at <= last; move_at++) {
                teardown();
                setup();
                rules.before = swap_hosts;
                ck_assert_int_eq(discover(), 0);
                if (has_node(host_b)) {
                        ck_assert(*node(host_b)->name == '\0' || strcmp(node(host_b)->name, "hostB") == 0);
                        ck_assert_uint_eq(node(host_b)->partition_cap, 64);
                        ck_assert(port(host_b, 1)->lid.v == 0 || port(host_b, 1)->lid.v == 4);
                }
                if (has_node(router)) {
                        ck_assert(*node(router)->name == '\0' || strcmp(node(router)->name, "router") == 0);
                        ck_assert_uint_eq(node(router)->partition_cap, 32);
                        ck_assert(port(router, 1)->lid.v == 0 || port(router, 1)->lid.v == 9);
                }
        }
}
END_TEST

/* leaf1/6 leads to leaf2/4; then a switch is put in between, and leaf2/4 leads to port 1 of that. */
static void put_in_between(unsigned nth)
{
        if (nth != move_at)
                return;
        fabsim_disconnect(&f, leaf1, 6);
        fabsim_connect(&f, leaf2, 4, f.n_nodes - 1, 1);
        fabsim_connect(&f, leaf1, 6, f.n_nodes - 1, 2);
}

/* If both ends are queried at the same time, they name different peers. */
START_TEST(switch_put_in_between)
{
        unsigned n_contradictions = 0, last;

        ck_assert_int_eq(discover(), 0);
        last = n_requests;
        for (unsigned i = 0; i < 8 * last; i++) {
                teardown();
                setup();
                (void) fabsim_add_node(&f, NODE_SWITCH, 4, 8, "between");
                rules.before = put_in_between;
                prng.state = i;
                order = ANY_ORDER;
                move_at = 1 + i % last;
                ck_assert_int_eq(discover(), 0);
                n_contradictions += subnet->n_conflicts_all;
                if (subnet_count_silent(subnet) + count_incomplete() > 0)
                        continue; /* the switch is in the way to leaf 2 */
                ck_assert(has_port(host_b, 1));
                ck_assert(has_port(host_a, 2));
        }
        ck_assert_uint_gt(n_contradictions, 0);
}
END_TEST

static void recable(unsigned nth)
{
        if (nth > 1 && prng_permille(&prng, 60)) {
                unsigned n = prng_between(&prng, 1, f.n_nodes - 1);

                fabsim_disconnect(&f, n, (uint8_t) prng_between(&prng, 1, f.nodes[n].num_ports));
                connect_any(2);
        }
}

/* Random cables are moved at random times: the snapshot is consistent, and no node has attributes of another. */
START_TEST(random_moves)
{
        order = ANY_ORDER;
        rules.before = recable;
        for (unsigned seed = 1; seed <= 300; seed++) {
                prng.state = seed;
                window = prng_between(&prng, 1, 60);
                burst = prng_between(&prng, 1, 20);
                make_random_fabric();
                if (discover() < 0)
                        continue;
                for (unsigned n = 0; n < f.n_nodes; n++) {
                        if (!has_node(n))
                                continue;
                        ck_assert(!*node(n)->description || strcmp(node(n)->description, f.nodes[n].description) == 0);
                        ck_assert_uint_eq(node(n)->partition_cap, f.nodes[n].partition_cap);
                        for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                                if (has_port(n, (uint8_t) p) && port(n, (uint8_t) p)->role == PORT_ENDPORT &&
                                    port(n, (uint8_t) p)->lid.v != 0)
                                        ck_assert_uint_eq(port(n, (uint8_t) p)->lid.v, f.nodes[n].ports[p].lid.v);
                }
                (void) arena_free(arena);
                arena = arena_new();
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("discovery_lies");
        TCase *t = tcase_create("discovery_lies");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_loop_test(t, implausible_node_info, 0, (int) ELEMENTS(implausible));
        tcase_add_test(t, num_ports_too_large);
        tcase_add_test(t, num_ports_too_large_and_no_answer);
        tcase_add_test(t, host_claims_to_be_a_switch);
        tcase_add_loop_test(t, second_node_info_differs, 0, (int) ELEMENTS(identity));
        tcase_add_test(t, answers_while_down);
        tcase_add_loop_test(t, links_that_are_followed, 0, (int) ELEMENTS(link_states));
        tcase_add_test(t, leaf_denies_the_link_of_the_local_port);
        tcase_add_test(t, description_of_any_bytes);
        tcase_add_test(t, two_hosts_with_one_guid);
        tcase_add_test(t, one_of_two_guids_is_a_duplicate);
        tcase_add_test(t, not_a_second_port);
        tcase_add_test(t, duplicate_of_the_local_port);
        tcase_add_test(t, two_switches_with_one_guid);
        tcase_add_test(t, two_switches_with_one_node_guid);
        tcase_add_loop_test(t, second_cable_is_queried_from_both_ends, 0, (int) ELEMENTS(second_cable));
        tcase_add_test(t, named_before_it_is_queried);
        tcase_add_test(t, two_links_lead_to_one_port);
        tcase_add_test(t, own_answer_counts_more_than_a_claim);
        tcase_add_loop_test(t, impostor_names_the_port_of_a_host, 0, (int) ELEMENTS(impostor_orders));
        tcase_add_loop_test(t, impostor_has_no_hosts, 0, (int) ELEMENTS(impostor_orders));
        tcase_add_loop_test(t, impostor_behind_an_invented_switch, 0, (int) ELEMENTS(impostor_orders));
        tcase_add_loop_test(t, impostor_of_another_kind, 0, 2);
        tcase_add_loop_test(t, impostor_of_a_known_switch, 1, 3);
        tcase_add_loop_test(t, impostor_of_a_known_switch_names_its_links, 0, 2 * (int) ELEMENTS(impostor_orders));
        tcase_add_test(t, impostor_names_the_port_of_another_cable);
        tcase_add_test(t, switch_connected_to_itself);
        tcase_add_test(t, loopback_at_the_local_port);
        tcase_add_test(t, wrong_local_port_number);
        tcase_add_test(t, host_moved);
        tcase_add_test(t, nodes_swapped);
        tcase_add_test(t, switch_put_in_between);
        tcase_add_test(t, random_moves);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
