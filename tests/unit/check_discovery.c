/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk over a correct fabric, and over one where some requests are not answered. */

#include "discovery_fixture.h"

/* --- a correct fabric ------------------------------------------------------------------------------------------------ */

START_TEST(snapshot)
{
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_nodes, 5);
        /* port 0 of two switches, four CA and router ports, and the four switch ports beside them */
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(count_incomplete(), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        ck_assert(!subnet->truncated);
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(host_a, 1));
        ck_assert_ptr_eq(&subnet->ports[subnet->sm], port(host_b, 1));
        ck_assert_uint_eq(subnet->sm_lid.v, 4);

        ck_assert_str_eq(node(leaf1)->name, "leaf1");
        ck_assert_str_eq(node(leaf2)->device, "");
        ck_assert_str_eq(node(host_a)->name, "hostA");
        ck_assert_str_eq(node(host_a)->device, "mlx5_0");
        ck_assert_int_eq(node(router)->type, NODE_ROUTER);
        ck_assert_uint_eq(node(host_a)->num_ports, 2);
        ck_assert_uint_eq(node(leaf1)->num_ports, 6);
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(host_a, 1)), 128);
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(router, 1)), 32);
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(leaf1, 0)), 8);
        ck_assert_uint_eq(subnet_port_capacity(subnet, port(leaf2, 1)), 32);
        ck_assert(subnet_port_can_enforce(subnet, port(leaf2, 1)));
        ck_assert(node(leaf2)->inbound_enforcement_cap);
        ck_assert(!node(leaf2)->outbound_enforcement_cap);
        ck_assert(!subnet_port_can_enforce(subnet, port(leaf1, 1)));
        ck_assert(port(leaf2, 1)->enforce_inbound);
        ck_assert(!port(leaf2, 1)->enforce_outbound);
        ck_assert(!port(leaf2, 3)->enforce_inbound);

        ck_assert_uint_eq(port(host_a, 2)->guid.v, f.nodes[host_a].ports[2].guid.v);
        ck_assert_uint_eq(port(leaf2, 3)->guid.v, guid_of(leaf2).v);
        ck_assert_uint_eq(port(host_b, 1)->lmc, 2);
        ck_assert_int_eq(port(leaf2, 1)->state, PORT_STATE_ACTIVE);
        ck_assert_ptr_eq(peer(port(host_a, 1)), port(leaf1, 1));
        ck_assert_ptr_eq(peer(port(host_a, 2)), port(leaf2, 3));
        ck_assert_ptr_eq(peer(port(leaf2, 1)), port(host_b, 1));
        ck_assert_ptr_eq(peer(port(leaf1, 2)), port(router, 1));
}
END_TEST

START_TEST(routes_by_lid)
{
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(host_a, 1), 0, NULL); /* the local port */
        ck_assert_uint_eq(port(host_a, 2)->route.lid.v, 2);
        ck_assert_uint_eq(port(host_b, 1)->route.lid.v, 4);
        ck_assert_uint_eq(port(leaf1, 0)->route.lid.v, 10);
        ck_assert_uint_eq(port(leaf2, 0)->route.lid.v, 11);
        ck_assert_uint_eq(port(leaf2, 1)->route.lid.v, 11);
}
END_TEST

START_TEST(directed_routes)
{
        forget_lids();
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        ck_assert_uint_eq(subnet->sm_lid.v, 0);
        assert_directed(port(host_a, 1), 0, NULL);
        assert_directed(port(leaf1, 1), 1, PATH(1));
        assert_directed(port(router, 1), 2, PATH(1, 2));
        assert_directed(port(leaf2, 3), 2, PATH(1, 5));
        assert_directed(port(host_a, 2), 3, PATH(1, 5, 3));
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
}
END_TEST

#define ALL_QUERIES (2 + 3 + 4 /* NodeInfo */ + 4 * 3 /* endports */ + 2 * (4 + 6) /* switches */)

/* Every query is sent once: NodeInfo over every link, over those between switches from both ends, and then the queries of each
 * agent. PortInfo of ports 4 and 5 of leaf 2 tells nothing that leaf 1 has not told. */
START_TEST(every_query_once)
{
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_requests, ALL_QUERIES - 2);
        ck_assert_uint_ge(n_most_at_once, 3);
        /* links that the snapshot before has are queried from one end */
        config.before = subnet;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_requests, ALL_QUERIES - 4);
        ck_assert_uint_eq(subnet_count_silent(subnet) + subnet->n_conflicts_all, 0);
        config.before = subnet;
        fabsim_disconnect(&f, leaf1, 6);
        fabsim_connect(&f, leaf1, 6, leaf2, 2); /* from port 4 */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_requests, ALL_QUERIES - 3);
        ck_assert_uint_eq(subnet_count_silent(subnet) + subnet->n_conflicts_all, 0);
}
END_TEST

static void deactivate(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (request->attribute == SMP_ATTR_PORT_INFO && is_switch(at.node))
                set_state(ret, PORT_STATE_INIT);
}

/* As long as no port of the switch is active, each of them may be. */
START_TEST(switch_without_active_ports)
{
        rules.change = deactivate;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_requests, ALL_QUERIES);
        assert_directed(port(leaf2, 0), 2, PATH(1, 5));
}
END_TEST

START_TEST(back_to_back)
{
        fabsim_disconnect(&f, host_a, 1);
        fabsim_disconnect(&f, host_b, 1);
        fabsim_connect(&f, host_a, 1, host_b, 1);
        forget_lids();
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 2);
        assert_directed(port(host_b, 1), 1, PATH(1));
        ck_assert_ptr_eq(peer(port(host_a, 1)), port(host_b, 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
}
END_TEST

START_TEST(alone)
{
        fabsim_disconnect(&f, host_a, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 1);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(n_requests, 4);
}
END_TEST

START_TEST(links_that_are_down)
{
        fabsim_disconnect(&f, host_a, 2);
        f.nodes[host_b].is_up = false;
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_port(host_a, 2));
        ck_assert(!has_node(host_b));
        ck_assert(has_port(leaf2, 0));
        ck_assert(!has_port(leaf2, 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
}
END_TEST

/* What lies behind a router or an adapter belongs to another subnet. */
START_TEST(only_switches_forward)
{
        unsigned beyond = fabsim_add_node(&f, NODE_SWITCH, 4, 8, "beyond");

        fabsim_connect(&f, router, 2, beyond, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(beyond));
        ck_assert(!has_port(router, 2));
}
END_TEST

/* --- random fabrics -------------------------------------------------------------------------------------------------- */

static bool is_reachable(unsigned n, uint8_t number)
{
        return f.nodes[n].is_up && fabsim_distance(&f, (struct fabsim_place) { n, number }) >= 0;
}

/* The peer of an endport must be the port at the other end of its cable. */
static void check_cable(unsigned n, uint8_t number)
{
        const struct subnet_port *p = port(n, number);
        struct fabsim_place far;

        if (is_switch(n) || !fabsim_peer(&f, (struct fabsim_place) { n, number }, &far) ||
            (n == far.node && number == far.port)) {
                ck_assert_uint_eq(p->peer, SUBNET_NONE);
                return;
        }
        ck_assert_ptr_eq(peer(p), port(far.node, far.port));
        ck_assert_int_eq(peer(p)->enforce_inbound, f.nodes[far.node].ports[far.port].enforce_inbound);
}

static void check_endport(unsigned n, uint8_t number)
{
        const struct fabsim_node *truth = &f.nodes[n];
        const struct subnet_node *found;
        const struct subnet_port *p;

        ck_assert_int_eq(has_port(n, number), is_reachable(n, number));
        if (!has_port(n, number))
                return;
        p = port(n, number);
        found = node(n);
        ck_assert_int_eq(found->type, truth->type);
        ck_assert_uint_eq(found->num_ports, truth->num_ports);
        ck_assert_uint_eq(found->partition_cap, truth->partition_cap);
        ck_assert_uint_eq(found->partition_enforcement_cap, truth->partition_enforcement_cap);
        ck_assert_int_eq(found->inbound_enforcement_cap, truth->inbound_cap);
        ck_assert_int_eq(found->outbound_enforcement_cap, truth->outbound_cap);
        ck_assert_str_eq(found->description, truth->description);
        ck_assert(!found->incomplete);
        ck_assert_uint_eq(p->guid.v, truth->ports[number].guid.v);
        ck_assert_uint_eq(p->lid.v, truth->ports[number].lid.v);
        check_cable(n, number);
        assert_leads_there(p);
}

static void check_snapshot(void)
{
        unsigned n_ports = 0;

        for (unsigned n = 0; n < f.n_nodes; n++) {
                if (is_switch(n))
                        check_endport(n, 0);
                for (unsigned p = 1; p <= f.nodes[n].num_ports && !is_switch(n); p++)
                        check_endport(n, (uint8_t) p);
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        n_ports += has_port(n, (uint8_t) p);
        }
        ck_assert_uint_eq(subnet->n_ports, n_ports);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        ck_assert_ptr_eq(&subnet->ports[subnet->self], port(f.self.node, f.self.port));
}

START_TEST(random_fabrics)
{
        for (unsigned seed = 1; seed <= 300; seed++) {
                prng.state = (uint64_t) _i << 32 | seed;
                order = (unsigned) _i;
                window = seed % 2 ? MAX_REQUESTS : prng_between(&prng, 1, 20);
                burst = prng_between(&prng, 1, 30);
                make_random_fabric();
                ck_assert_int_eq(discover(), 0);
                check_snapshot();
                (void) arena_free(arena);
                arena = arena_new();
        }
}
END_TEST

/* --- LIDs and the subnet manager ------------------------------------------------------------------------------------- */

START_TEST(lid_claimed_twice)
{
        f.nodes[host_a].ports[2].lid.v = 6; /* B has 4 to 7 */
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(host_a, 2), 3, PATH(1, 5, 3));
        ck_assert_uint_eq(port(host_b, 1)->route.lid.v, 4);
        f.nodes[host_a].ports[2].lid.v = 4;
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(host_a, 2), 3, PATH(1, 5, 3));
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
}
END_TEST

/* LIDs 1 to 0xbfff are addresses of a port; a multicast LID is not. An LMC of 7 does not reach beyond the last. */
START_TEST(invalid_lids)
{
        f.nodes[host_a].ports[1].lid.v = 20;
        f.nodes[leaf2].ports[0].lid.v = 1;
        f.nodes[host_a].ports[2].lid.v = 0xc001;
        f.nodes[router].ports[1].lid.v = 0xffff;
        f.nodes[router].ports[1].lmc = 7;
        f.nodes[leaf1].ports[0].lid.v = 0xbfff;
        f.nodes[leaf1].ports[0].lmc = 7;
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(host_a, 2), 3, PATH(1, 5, 3));
        assert_directed(port(router, 1), 2, PATH(1, 2));
        ck_assert(!mad_route_is_directed(&port(leaf2, 0)->route));
        ck_assert_uint_eq(port(leaf2, 0)->route.lid.v, 1);
        ck_assert_uint_eq(port(leaf1, 0)->route.lid.v, 0xbfff);
        ck_assert_uint_eq(port(leaf1, 0)->lmc, 7);
}
END_TEST

/* As before the SM brings the link up: no forwarding table has an entry for the LID. */
static unsigned init_node;
static unsigned init_number;
static void one_port_is_init(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (is_port_info_of(request, at, init_node, init_number))
                set_state(ret, PORT_STATE_INIT);
}

START_TEST(no_lid_route_to_a_port_that_is_not_up)
{
        rules.change = one_port_is_init;
        init_node = host_b;
        init_number = 1;
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
        ck_assert_int_eq(port(host_b, 1)->state, PORT_STATE_INIT);
        ck_assert_uint_eq(port(host_a, 2)->route.lid.v, 2);
        init_node = host_a; /* the local port, which cannot send LID-routed SMPs */
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(leaf2, 0), 2, PATH(1, 5));
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
}
END_TEST

static void all_ports_are_init(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (request->attribute == SMP_ATTR_PORT_INFO && at.node == leaf2 && request->modifier > 0)
                set_state(ret, PORT_STATE_INIT);
        if (is_port_info_of(request, at, leaf2, 4))
                set_state(ret, init_number ? PORT_STATE_ARMED : PORT_STATE_INIT);
}

START_TEST(links_between_switches)
{
        const struct subnet_place far[] = { { f.nodes[leaf1].guid, 6 }, { f.nodes[leaf1].guid, 5 } };

        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(node(leaf2)->n_links, 2);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_uint_eq(node(leaf2)->links[i].node.v, far[i].node.v);
                ck_assert_uint_eq(node(leaf2)->links[i].number, far[i].number);
        }
        ck_assert_uint_eq(node(host_a)->n_links, 0);
}
END_TEST

/* The state of port 0 has no meaning: one of the links of the switch must be up. */
START_TEST(switch_is_up_if_a_link_is)
{
        rules.change = all_ports_are_init;
        init_number = 0;
        ck_assert_int_eq(discover(), 0);
        assert_directed(port(leaf2, 0), 2, PATH(1, 5));
        init_number = 1;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(port(leaf2, 0)->route.lid.v, 11);
}
END_TEST

START_TEST(port_of_the_sm)
{
        f.sm = (struct fabsim_place) { leaf2, 0 };
        ck_assert_int_eq(discover(), 0);
        ck_assert_ptr_eq(&subnet->ports[subnet->sm], port(leaf2, 0));
        f.sm = f.self;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, subnet->self);
}
END_TEST

/* The SM's port becomes a full member of the default partition, so a LID that two ports claim makes neither the SM's.
 * */
START_TEST(sm_lid_claimed_twice)
{
        f.nodes[host_a].ports[2].lid.v = 4; /* the SM's */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        ck_assert_uint_eq(subnet->sm_lid.v, 4);
        /* the local port is trusted */
        f.sm = f.self;
        f.nodes[host_a].ports[2].lid.v = 1;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, subnet->self);
        ck_assert_uint_eq(subnet->sm_lid.v, 1);
}
END_TEST

static uint16_t sm_lid;
static void set_sm_lid(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (is_port_info_of(request, at, host_a, 1))
                mad_set_field(ret->data, 0, IB_PORT_SMLID_F, sm_lid);
}

/* Host B has the LIDs 4 to 7. */
START_TEST(sm_lid_with_lmc)
{
        rules.change = set_sm_lid;
        for (sm_lid = 3; sm_lid <= 8; sm_lid++) {
                ck_assert_int_eq(discover(), 0);
                ck_assert_uint_eq(subnet->sm_lid.v, sm_lid);
                if (sm_lid >= 4 && sm_lid <= 7)
                        ck_assert_ptr_eq(&subnet->ports[subnet->sm], port(host_b, 1));
                else
                        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        }
}
END_TEST

static void sm_is_multicast(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (is_port_info_of(request, at, host_a, 1))
                mad_set_field(ret->data, 0, IB_PORT_SMLID_F, 0xc000);
        if (is_port_info_of(request, at, host_b, 1))
                mad_set_field(ret->data, 0, IB_PORT_LID_F, 0xc000);
}

START_TEST(sm_lid_is_multicast)
{
        rules.change = sm_is_multicast;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
}
END_TEST

/* --- unanswered requests --------------------------------------------------------------------------------------------- */

START_TEST(unanswered_link_is_silent)
{
        rules.lose = is_meant;
        mean(host_b, ANY, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(host_b));
        ck_assert(!has_port(leaf2, 1));
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        ck_assert_uint_eq(meant.n, 1);
        /* a leaf: both links to it are silent, and the nodes behind it are not in the snapshot */
        mean(leaf2, ANY, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(node(leaf1), 5));
        ck_assert(subnet_port_is_silent(node(leaf1), 6));
        ck_assert_uint_eq(subnet_count_silent(subnet), 2);
        ck_assert(!has_port(host_a, 2));
        /* the leaf of the local port */
        mean(leaf1, ANY, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 1);
        ck_assert(subnet_port_is_silent(node(host_a), 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
}
END_TEST

/* What did not answer the last time is tried less often, and nothing else is. */
START_TEST(fewer_retries_for_the_silent)
{
        rules.lose = is_meant;
        mean(host_b, ANY, ANY);
        for (unsigned i = 0; i < 3; i++) {
                n_again = 0;
                ck_assert_int_eq(discover(), 0);
                ck_assert_uint_eq(n_again, i > 0); /* the link to it */
                config.before = subnet;
        }
        rules.lose = NULL;
        n_again = 0;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_again, 1); /* it answers: its other queries get all tries */
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        rules.lose = is_meant;
        mean(router, SMP_ATTR_NODE_DESCRIPTION, ANY);
        config.before = NULL;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_incomplete(), 1);
        config.before = subnet;
        n_again = 0;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(n_again, 3); /* all of its queries, once its name is known */
}
END_TEST

/* Answers all queries except the selected ones, which timed out `timeouts` times. */
static struct discovery *interrupted_walk(const struct discovery *before, uint8_t timeouts, uint8_t *ret_retries)
{
        struct discovery_config again = config;
        struct mad_stage stage;
        struct mad_request request, mute[8];
        struct discovery *d;
        unsigned n = 0;

        again.interrupted = before;
        ck_assert_int_eq(discovery_new(&again, &d), 0);
        stage = discovery_stage(d);
        while (stage.next(stage.state, 0, &request)) {
                struct mad_result result;

                carry(&request, &result);
                if (result.outcome == MAD_ANSWERED) {
                        ck_assert(!request.doubtful && request.retries == config.retries);
                        stage.result(stage.state, 0, &result);
                } else {
                        mute[n++] = request;
                }
        }
        ck_assert_uint_eq(n, 1);
        ck_assert(mute[0].doubtful == (before != NULL));
        *ret_retries = mute[0].retries;
        stage.take_back(stage.state, 0, &(struct mad_result) { .cookie = mute[0].cookie, .timeouts = timeouts });
        return d;
}

/* A node that does not answer, or only its NodeInfo, is queried seven times in all, however often walks are interrupted. */
START_TEST(interrupted_walks_learn)
{
        rules.lose = is_meant;
        for (unsigned i = 0; i < 2; i++) {
                struct discovery *d = NULL, *next;
                uint8_t retries;

                if (i == 0)
                        mean(host_b, ANY, ANY);
                else
                        mean(router, SMP_ATTR_NODE_DESCRIPTION, ANY);
                for (unsigned n = 0; n < 10; n++) {
                        next = interrupted_walk(d, 2, &retries);
                        ck_assert_uint_eq(retries, config.retries - MIN(2 * n, (unsigned) config.retries));
                        (void) discovery_free(d);
                        d = next;
                }
                (void) discovery_free(d);
        }
}
END_TEST

/* Of an agent that left a request unanswered, and then others. */
START_TEST(interrupted_at_the_second_request)
{
        struct discovery *d, *again;
        struct discovery_config next = config;
        struct mad_request request;
        struct mad_result result;
        struct mad_stage stage;
        unsigned n = 0;

        rules.lose = is_meant;
        mean(router, SMP_ATTR_NODE_DESCRIPTION, ANY);
        ck_assert_int_eq(discovery_new(&config, &d), 0);
        run(d);
        next.interrupted = d;
        ck_assert_int_eq(discovery_new(&next, &again), 0);
        stage = discovery_stage(again);
        while (stage.next(stage.state, 0, &request)) {
                n += request.doubtful;
                ck_assert(!request.doubtful || request.retries == 0);
                carry(&request, &result);
                stage.result(stage.state, 0, &result);
        }
        ck_assert_uint_eq(n, 3); /* all queries to the router */
        (void) discovery_free(again);
        (void) discovery_free(d);
}
END_TEST

static unsigned nth_is_lost;
static bool is_missed;

/* That the links between the leaves are up is known from the other end, too, and host A's name comes from either of its ports. */
static bool is_known_otherwise(const struct mad_request *request, struct fabsim_place at)
{
        switch (request->attribute) {
        case SMP_ATTR_NODE_DESCRIPTION:
                return at.node == host_a;
        case SMP_ATTR_PORT_INFO:
                return (at.node == leaf1 && (request->modifier == 5 || request->modifier == 6)) ||
                       (at.node == leaf2 && (request->modifier == 4 || request->modifier == 5));
        }
        return false;
}

static bool lose_nth(const struct mad_request *request, struct fabsim_place at)
{
        if (n_requests != nth_is_lost)
                return false;
        is_missed = !is_known_otherwise(request, at);
        return true;
}

/* Whichever answer is lost, the snapshot shows a gap, and all the rest is correct. */
START_TEST(any_single_answer_lost)
{
        unsigned last;

        ck_assert_int_eq(discover(), 0);
        last = n_requests;
        rules.lose = lose_nth;
        for (nth_is_lost = 1; nth_is_lost <= last; nth_is_lost++) {
                if (discover() == -ENODATA)
                        continue; /* the local port */
                ck_assert_int_eq(finished, 0);
                ck_assert_uint_le(count_incomplete(), 1);
                ck_assert_int_eq(count_incomplete() + subnet_count_silent(subnet) > 0, is_missed);
                ck_assert(subnet->n_conflicts_all == 0 || !has_node(leaf2)); /* which may be another device */
                for (uint32_t i = 0; i < subnet->n_ports; i++)
                        assert_leads_there(&subnet->ports[i]);
        }
}
END_TEST

static void assert_only_incomplete(unsigned n)
{
        ck_assert(node(n)->incomplete);
        ck_assert_uint_eq(count_incomplete(), 1);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(subnet->n_ports, 10);
}

/* A node without a name would lose the partitions of its name. */
START_TEST(no_description)
{
        rules.lose = is_meant;
        mean(host_b, SMP_ATTR_NODE_DESCRIPTION, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        ck_assert_str_eq(node(host_b)->description, "");
        ck_assert_uint_eq(port(host_b, 1)->lid.v, 4); /* the other attributes are kept */
        mean(leaf1, SMP_ATTR_NODE_DESCRIPTION, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(leaf1);
        mean(host_a, SMP_ATTR_NODE_DESCRIPTION, ANY); /* the local node */
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_a);
}
END_TEST

/* ... so it has its known name, and stays incomplete. A node that reports its name has that. */
START_TEST(description_that_is_known)
{
        _cleanup_(known_done) struct known known = {};

        ck_assert_int_eq(discover(), 0);
        ck_assert_int_eq(known_learn(&known, subnet, 1, 1), 1);
        config.known = &known;
        rules.lose = is_meant;
        mean(host_b, SMP_ATTR_NODE_DESCRIPTION, ANY);
        (void) snprintf(f.nodes[host_a].description, sizeof(f.nodes[host_a].description), "renamed mlx5_0");
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        ck_assert_str_eq(node(host_b)->name, "hostB");
        ck_assert_uint_eq(subnet->nodes[subnet->by_name[subnet_first_name(subnet, "hostB")]].guid.v, node(host_b)->guid.v);
        ck_assert_str_eq(node(host_a)->name, "renamed");
        known_done(&known); /* no port is known */
        ck_assert_int_eq(discover(), 0);
        ck_assert_str_eq(node(host_b)->description, "");
}
END_TEST

/* The second port of an adapter supplies the description as well. */
START_TEST(description_from_second_port)
{
        rules.lose = is_meant;
        mean(host_a, SMP_ATTR_NODE_DESCRIPTION, ANY);
        meant.port = 1;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_incomplete(), 0);
        ck_assert_str_eq(node(host_a)->name, "hostA");
}
END_TEST

START_TEST(no_switch_info)
{
        rules.lose = is_meant;
        mean(leaf2, SMP_ATTR_SWITCH_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(leaf2);
        ck_assert_str_eq(node(leaf2)->name, "leaf2");
        ck_assert_uint_eq(node(leaf2)->partition_enforcement_cap, 0);
        ck_assert(!subnet_port_can_enforce(subnet, port(leaf2, 1)));
        ck_assert(subnet_port_is_incomplete(subnet, port(host_b, 1)));
}
END_TEST

START_TEST(no_port_info)
{
        rules.lose = is_meant;
        mean(host_b, SMP_ATTR_PORT_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        ck_assert_str_eq(node(host_b)->name, "hostB");
        ck_assert_uint_eq(port(host_b, 1)->lid.v, 0);
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
        mean(leaf2, SMP_ATTR_PORT_INFO, 0);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(leaf2);
        assert_directed(port(leaf2, 0), 2, PATH(1, 5));
}
END_TEST

/* A host may be plugged into a switch port that was not read. */
START_TEST(no_port_info_of_external_port)
{
        rules.lose = is_meant;
        mean(leaf2, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        ck_assert(!has_node(host_b));
        ck_assert_uint_eq(count_incomplete(), 0);
        ck_assert(has_port(host_a, 2));
        mean(leaf2, SMP_ATTR_PORT_INFO, 2); /* nothing is plugged in there, but that is not known */
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(node(leaf2), 2));
        ck_assert(has_port(host_b, 1));
}
END_TEST

/* After two unanswered requests the agent is not queried further, and its attributes are dropped. */
START_TEST(two_timeouts)
{
        rules.lose = is_meant;
        mean(leaf2, SMP_ATTR_PORT_INFO, ANY);
        meant.from = 3; /* ports 0 and 1 answer */
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(meant.n, 4);
        ck_assert(node(leaf2)->incomplete);
        ck_assert_str_eq(node(leaf2)->description, "");
        ck_assert_uint_eq(node(leaf2)->partition_enforcement_cap, 0);
        ck_assert_uint_eq(port(leaf2, 0)->lid.v, 0);
        ck_assert(has_port(host_b, 1)); /* found over port 1 */
        ck_assert(!has_port(host_a, 2));
        for (uint8_t number = 2; number <= 6; number++) {
                ck_assert_int_eq(subnet_port_is_silent(node(leaf2), number), number != 4 && number != 5); /* lead to leaf 1 */
                ck_assert_int_eq(subnet_port_leads_to_switch(node(leaf2), number), number == 4 || number == 5);
        }
        /* a single lost answer does not end the queries */
        mean(leaf2, SMP_ATTR_PORT_INFO, ANY);
        meant.from = meant.to = 2;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(meant.n, 7 - 2); /* without ports 4 and 5 */
}
END_TEST

static bool lose_odd_ports(const struct mad_request *request, struct fabsim_place at)
{
        return is_meant(request, at) && request->modifier % 2 == 1;
}

/* An agent that answers in between cannot delay the walk without limit either. */
START_TEST(two_timeouts_with_answers_between)
{
        rules.lose = lose_odd_ports;
        mean(leaf2, SMP_ATTR_PORT_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(meant.n, 4); /* ports 0 to 3 */
        ck_assert(node(leaf2)->incomplete);
}
END_TEST

/* An adapter with three ports, of which one does not answer PortInfo. */
START_TEST(no_port_info_of_one_port)
{
        unsigned host = fabsim_add_node(&f, NODE_CA, 3, 64, "three mlx5_0");

        fabsim_connect(&f, host, 1, leaf1, 3);
        fabsim_connect(&f, host, 2, leaf1, 4);
        fabsim_connect(&f, host, 3, leaf2, 2);
        rules.lose = is_meant;
        for (uint32_t number = 1; number <= 3; number++) {
                mean(host, SMP_ATTR_PORT_INFO, number);
                ck_assert_int_eq(discover(), 0);
                ck_assert(node(host)->incomplete);
                ck_assert_uint_eq(count_incomplete(), 1);
                ck_assert(has_port(host, 1) && has_port(host, 2) && has_port(host, 3));
        }
}
END_TEST

START_TEST(no_second_node_info)
{
        rules.lose = is_meant;
        mean(host_b, SMP_ATTR_NODE_INFO, ANY);
        meant.from = 2;
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        ck_assert_str_eq(node(host_b)->description, "");
        ck_assert_uint_eq(subnet->n_by_name, 4);
        ck_assert_uint_eq(port(host_b, 1)->lid.v, 0);
        ck_assert_int_eq(port(host_b, 1)->state, PORT_STATE_NONE);
        assert_directed(port(host_b, 1), 3, PATH(1, 5, 1));
        ck_assert_uint_eq(subnet->sm, SUBNET_NONE);
}
END_TEST

/* A request that was refused, met a busy agent or could not be sent has no answer, whatever its data holds. */
START_TEST(other_failures)
{
        static const enum mad_outcome outcomes[] = { MAD_REFUSED, MAD_BUSY, MAD_UNSENT };

        rules.change = spoil;
        failure = outcomes[_i];
        failure_status = failure == MAD_REFUSED ? 0x0c : 0;
        mean(host_b, SMP_ATTR_NODE_DESCRIPTION, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        mean(leaf2, SMP_ATTR_SWITCH_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(leaf2);
        ck_assert_uint_eq(node(leaf2)->partition_enforcement_cap, 0);
        mean(host_b, SMP_ATTR_PORT_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        assert_only_incomplete(host_b);
        mean(leaf2, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        mean(host_b, SMP_ATTR_NODE_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(host_b));
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
}
END_TEST

/* An agent that refuses requests is alive, and is queried to the end. */
START_TEST(refused_requests)
{
        rules.change = spoil;
        failure = MAD_REFUSED;
        failure_status = 0x1c;
        mean(leaf2, SMP_ATTR_PORT_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(meant.n, 7);
        /* the switch reports that these ports do not exist */
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert(node(leaf2)->incomplete); /* PortInfo of port 0 is missing */
        failure_status = 0x0c;
        mean(leaf2, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
}
END_TEST

START_TEST(local_port_fails)
{
        rules.lose = is_meant;
        mean(host_a, SMP_ATTR_NODE_INFO, ANY);
        ck_assert_int_eq(discover(), -ENODATA);
        ck_assert_uint_eq(n_requests, 1);
        mean(host_a, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), -ENODATA);
        mean(host_a, SMP_ATTR_NODE_INFO, ANY);
        meant.from = 2;
        ck_assert_int_eq(discover(), -ENODATA);
        rules.lose = NULL;
        rules.change = spoil;
        failure = MAD_UNSENT;
        mean(host_a, SMP_ATTR_NODE_INFO, ANY);
        ck_assert_int_eq(discover(), -EIO);
        mean(host_a, SMP_ATTR_PORT_INFO, 1);
        ck_assert_int_eq(discover(), -EIO);
        failure = MAD_REFUSED;
        mean(host_a, SMP_ATTR_NODE_INFO, ANY);
        ck_assert_int_eq(discover(), -ENODATA);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("discovery");
        TCase *t = tcase_create("discovery");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, snapshot);
        tcase_add_test(t, routes_by_lid);
        tcase_add_test(t, directed_routes);
        tcase_add_test(t, every_query_once);
        tcase_add_test(t, switch_without_active_ports);
        tcase_add_test(t, back_to_back);
        tcase_add_test(t, alone);
        tcase_add_test(t, links_that_are_down);
        tcase_add_test(t, only_switches_forward);
        tcase_add_loop_test(t, random_fabrics, FIRST_COME, ANY_ORDER + 1);
        tcase_add_test(t, lid_claimed_twice);
        tcase_add_test(t, invalid_lids);
        tcase_add_test(t, no_lid_route_to_a_port_that_is_not_up);
        tcase_add_test(t, links_between_switches);
        tcase_add_test(t, switch_is_up_if_a_link_is);
        tcase_add_test(t, port_of_the_sm);
        tcase_add_test(t, sm_lid_claimed_twice);
        tcase_add_test(t, sm_lid_with_lmc);
        tcase_add_test(t, sm_lid_is_multicast);
        tcase_add_test(t, unanswered_link_is_silent);
        tcase_add_test(t, fewer_retries_for_the_silent);
        tcase_add_test(t, interrupted_walks_learn);
        tcase_add_test(t, interrupted_at_the_second_request);
        tcase_add_test(t, any_single_answer_lost);
        tcase_add_test(t, no_description);
        tcase_add_test(t, description_that_is_known);
        tcase_add_test(t, description_from_second_port);
        tcase_add_test(t, no_switch_info);
        tcase_add_test(t, no_port_info);
        tcase_add_test(t, no_port_info_of_external_port);
        tcase_add_test(t, two_timeouts);
        tcase_add_test(t, two_timeouts_with_answers_between);
        tcase_add_test(t, no_port_info_of_one_port);
        tcase_add_test(t, no_second_node_info);
        tcase_add_loop_test(t, other_failures, 0, 3);
        tcase_add_test(t, refused_requests);
        tcase_add_test(t, local_port_fails);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
