/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits of the walk, its M_Keys, the interface of the stage, and a walk that runs out of memory. */

#include "discovery_fixture.h"
#include "snapshot_rules.h"

/* --- limits ---------------------------------------------------------------------------------------------------------- */

START_TEST(too_many_nodes)
{
        for (config.max_nodes = 1; config.max_nodes <= 6; config.max_nodes++) {
                ck_assert_int_eq(discover(), 0);
                ck_assert_int_eq(subnet->truncated, config.max_nodes < 6);
                ck_assert_uint_le(subnet->n_nodes, config.max_nodes);
                ck_assert_int_eq(subnet_count_silent(subnet) > 0, config.max_nodes < 6);
                ck_assert_uint_eq(subnet->n_conflicts_all, 0);
        }
}
END_TEST

START_TEST(too_many_ports)
{
        config.max_ports = 12; /* the local port, and six of a leaf */
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet->truncated);
        ck_assert(has_node(leaf1));
        ck_assert(!has_node(leaf2));
        ck_assert(has_node(router));
        ck_assert_uint_eq(subnet_count_silent(subnet), 2);
        config.max_ports = 13;
        ck_assert_int_eq(discover(), 0);
        ck_assert(!subnet->truncated);
}
END_TEST

START_TEST(too_many_hops)
{
        config.max_hops = 2;
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet->truncated);
        ck_assert(has_node(leaf2));
        ck_assert(has_node(router));
        ck_assert(!has_node(host_b));
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert(subnet_port_is_silent(node(leaf2), 3));
        config.max_hops = 3;
        ck_assert_int_eq(discover(), 0);
        ck_assert(!subnet->truncated);
}
END_TEST

/* --- computed fabrics ------------------------------------------------------------------------------------------------ */

/* The local host, and behind it an endless row of switches with two ports. */
static bool answer_as_row(const struct mad_request *request, struct mad_result *ret)
{
        uint8_t hops = request->route.hops;

        for (unsigned i = 1; i <= hops; i++)
                REQUIRE(request->route.path[i] == (i == 1 ? 1 : 2));
        ret->outcome = MAD_ANSWERED;
        if (request->attribute == SMP_ATTR_NODE_INFO)
                fill_node_info(ret, hops == 0 ? NODE_CA : NODE_SWITCH, 2, 0x1000u + hops, 1);
        else if (request->attribute == SMP_ATTR_PORT_INFO)
                fill_port_info(ret, hops + 1);
        return true;
}

START_TEST(sixty_three_hops)
{
        static const uint8_t limits[] = { 0, MAD_MAX_HOPS, UINT8_MAX }; /* there is no higher one */
        uint32_t last;

        for (size_t i = 0; i < ELEMENTS(limits); i++) {
                config.max_hops = limits[i];
                rules.answer = answer_as_row;
                ck_assert_int_eq(discover(), 0);
                ck_assert(subnet->truncated);
                ck_assert_uint_eq(subnet->n_nodes, MAD_MAX_HOPS + 1);
                last = subnet_find_node(subnet, G(0x1000 + MAD_MAX_HOPS));
                ck_assert(subnet_port_is_silent(&subnet->nodes[last], 2));
                ck_assert_uint_eq(subnet_count_silent(subnet), 1);
        }
}
END_TEST

/* Switches with 16 ports, and behind every port another switch. The GUID is computed from the route. */
static bool answer_as_tree(const struct mad_request *request, struct mad_result *ret)
{
        uint64_t guid = 1;

        for (unsigned i = 1; i <= request->route.hops; i++)
                guid = guid * 31 + request->route.path[i];
        ret->outcome = MAD_ANSWERED;
        if (request->attribute == SMP_ATTR_NODE_INFO)
                fill_node_info(ret, request->route.hops == 0 ? NODE_CA : NODE_SWITCH, 16, guid, 16);
        else if (request->attribute == SMP_ATTR_PORT_INFO)
                fill_port_info(ret, 0);
        return true;
}

START_TEST(endless_fabric)
{
        rules.answer = answer_as_tree;
        config.max_nodes = 3000;
        ck_assert_int_eq(discover(), 0);
        ck_assert(subnet->truncated);
        ck_assert_uint_eq(subnet->n_nodes, 3000);
        ck_assert_uint_eq(subnet_count_silent(subnet), 2999 * 15 - 2998);
        ck_assert_uint_lt(n_requests, 3000 * 40);
}
END_TEST

/* A switch with 255 ports, and the same host at each of them. */
static bool answer_with_one_host(const struct mad_request *request, struct mad_result *ret)
{
        static const struct {
                enum node_type type;
                uint8_t num_ports;
                uint64_t guid;
        } nodes[] = { { NODE_CA, 1, 1 }, { NODE_SWITCH, 255, 2 }, { NODE_CA, 1, 3 } };
        uint8_t hops = request->route.hops;

        ret->outcome = MAD_ANSWERED;
        if (request->attribute == SMP_ATTR_NODE_INFO)
                fill_node_info(ret, nodes[hops].type, nodes[hops].num_ports, nodes[hops].guid, 1);
        else if (request->attribute == SMP_ATTR_PORT_INFO)
                fill_port_info(ret, 0);
        return true;
}

/* The list of conflicts is bounded, their count is not. */
START_TEST(many_conflicts)
{
        rules.answer = answer_with_one_host;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 5);
        ck_assert_uint_eq(subnet->n_conflicts, SUBNET_MAX_CONFLICTS);
        ck_assert_uint_eq(subnet->n_conflicts_all, 253);
        ck_assert_uint_eq(subnet_count_silent(subnet), 253);
        for (uint32_t i = 0; i < subnet->n_conflicts; i++)
                assert_conflict(i, G(3), (struct subnet_place) { G(2), 2 },
                                (struct subnet_place) { G(2), (uint8_t) (3 + i) });
}
END_TEST

/* The local port is port 0 of a switch that has two hosts. */
static bool answer_to_switch(const struct mad_request *request, struct mad_result *ret)
{
        const struct mad_route *route = &request->route;

        ret->outcome = MAD_ANSWERED;
        if (request->attribute == SMP_ATTR_NODE_INFO && route->hops == 0)
                fill_node_info(ret, NODE_SWITCH, 4, 0x100, 0);
        else if (request->attribute == SMP_ATTR_NODE_INFO)
                fill_node_info(ret, NODE_CA, 1, 0x200u + route->path[1], 1);
        else if (request->attribute == SMP_ATTR_PORT_INFO)
                fill_port_info(ret, route->hops == 0 ? 7 : 7 + route->path[1]);
        if (request->attribute == SMP_ATTR_PORT_INFO && route->hops == 0 && request->modifier > 2)
                set_state(ret, PORT_STATE_DOWN);
        if (request->attribute == SMP_ATTR_PORT_INFO && route->hops == 0 && request->modifier == 0)
                mad_set_field(ret->data, 0, IB_PORT_SMLID_F, 9);
        return true;
}

START_TEST(from_a_switch)
{
        rules.answer = answer_to_switch;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 5);
        ck_assert_uint_eq(subnet->ports[subnet->self].number, 0);
        ck_assert_uint_eq(subnet->ports[subnet->self].guid.v, 0x100);
        assert_directed(&subnet->ports[subnet->self], 0, NULL);
        ck_assert_uint_eq(subnet->sm, subnet_find_endport(subnet, G(0x202)));
        ck_assert_uint_eq(subnet->ports[subnet->sm].route.lid.v, 9);
        ck_assert_uint_eq(subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(subnet->n_conflicts_all, 0);
}
END_TEST

/* --- M_Keys ---------------------------------------------------------------------------------------------------------- */

/* An M_Key that also protects from reads. */
static void protect(unsigned n, uint8_t number, uint64_t key)
{
        f.nodes[n].ports[number].m_key = key;
        f.nodes[n].ports[number].m_key_protection = 2;
}

static void protect_all(void)
{
        protect(host_a, 1, 0xa1);
        protect(host_a, 2, 0xa2);
        protect(host_b, 1, 0xb1);
        protect(leaf1, 0, 0x11);
        protect(leaf2, 0, 0x12);
        protect(router, 1, 0xcc);
}

static unsigned violations(unsigned n, uint8_t number)
{
        return f.nodes[n].ports[number].m_key_violations;
}

static unsigned all_violations(void)
{
        unsigned sum = 0;

        for (unsigned n = 0; n < f.n_nodes; n++)
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        sum += f.nodes[n].ports[p].m_key_violations;
        return sum;
}

static void read_keys(const char *text)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };

        keys = m_keys_free(keys);
        ck_assert_int_eq(m_keys_parse("m_key", text, strlen(text), &findings, &keys), 0);
        config.m_keys = keys;
}

/* A guid2mkey file with the keys of the fabric, and this key for host B. */
static void give_keys(uint64_t key_of_b)
{
        const char *text = "";

        for (unsigned n = 0; n < f.n_nodes; n++)
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++) {
                        uint64_t key = n == host_b ? key_of_b : f.nodes[n].ports[p].m_key;

                        if (f.nodes[n].ports[p].m_key)
                                text = arena_printf(arena, "%s0x%" PRIx64 " 0x%" PRIx64 "\n", text,
                                                    f.nodes[n].ports[p].guid.v, key);
                }
        read_keys(text);
}

static void expect(unsigned n, uint8_t number, unsigned peer_node, uint8_t peer_number)
{
        ck_assert_int_eq(discovery_links_set(links, f.nodes[n].ports[is_switch(n) ? 0 : number].guid, number,
                                             f.nodes[peer_node].ports[peer_number].guid), 0);
}

static void expect_all(void)
{
        config.local_port = f.nodes[host_a].ports[1].guid;
        config.expected = links;
        expect(host_a, 1, leaf1, 0);
        expect(leaf1, 5, leaf2, 0);
        expect(leaf1, 6, leaf2, 0);
        expect(leaf1, 2, router, 1);
        expect(leaf2, 1, host_b, 1);
        expect(leaf2, 3, host_a, 2);
        expect(leaf2, 4, leaf1, 0);
}

START_TEST(each_port_gets_its_own_key)
{
        protect_all();
        give_keys(0xb1);
        expect_all();
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(count_incomplete() + subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(all_violations(), 0);
        /* leaf 1 is not expected at port 5 of leaf 2, but was named there, and does not have the common key */
        protect(router, 1, 0x12);
        protect(host_b, 1, 0x12);
        give_keys(0x12);
        links = discovery_links_free(links);
        links = discovery_links_new();
        expect_all();
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(count_incomplete() + subnet_count_silent(subnet), 0);
        ck_assert_uint_eq(all_violations(), 0);
}
END_TEST

START_TEST(one_key_for_all)
{
        protect_all();
        for (unsigned n = 0; n < f.n_nodes; n++)
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        if (f.nodes[n].ports[p].m_key)
                                f.nodes[n].ports[p].m_key = 0x77;
        read_keys("0x77\n");
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(all_violations(), 0);
}
END_TEST

/* No peer is expected: the most common key is tried, once. */
START_TEST(common_key_if_no_peer_is_expected)
{
        protect_all();
        f.nodes[router].ports[1].m_key = f.nodes[leaf1].ports[0].m_key = 0x12; /* as leaf 2: the common key */
        give_keys(0xb1);
        config.local_port = f.nodes[host_a].ports[1].guid;
        config.expected = links;
        ck_assert_int_eq(discover(), 0);
        ck_assert(has_node(router));
        ck_assert(has_node(leaf2));
        ck_assert(subnet_port_is_silent(node(leaf2), 1)); /* host B has another key */
        ck_assert(subnet_port_is_silent(node(leaf2), 3));
        ck_assert_uint_eq(violations(host_b, 1), 1);
        ck_assert_uint_eq(violations(host_a, 2), 1);
        ck_assert_uint_eq(all_violations(), 2);
        /* the peers that answered are learned */
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf1), 2).v, f.nodes[router].ports[1].guid.v);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf1), 1).v, f.nodes[host_a].ports[1].guid.v);
        ck_assert_uint_eq(discovery_links_get(links, f.nodes[host_a].ports[1].guid, 1).v, guid_of(leaf1).v);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 1).v, 0);
}
END_TEST

/* Another peer is expected: its key is tried, then the common one, and no third. */
START_TEST(two_keys_at_most)
{
        protect_all();
        f.nodes[router].ports[1].m_key = f.nodes[leaf1].ports[0].m_key = 0x12;
        give_keys(0xb1);
        expect_all();
        expect(leaf1, 2, host_b, 1); /* the router is there, and has the common key */
        expect(leaf2, 1, host_a, 2); /* host B is there, and has its own key */
        ck_assert_int_eq(discover(), 0);
        ck_assert(has_node(router));
        ck_assert_uint_eq(violations(router, 1), 1);
        ck_assert(!has_node(host_b));
        ck_assert_uint_eq(violations(host_b, 1), 2);
        ck_assert(subnet_port_is_silent(node(leaf2), 1));
        ck_assert_uint_eq(all_violations(), 3);
        /* the expectation stays: the expected port may come back */
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf2), 1).v, f.nodes[host_a].ports[2].guid.v);
        ck_assert_uint_eq(discovery_links_get(links, guid_of(leaf1), 2).v, f.nodes[router].ports[1].guid.v);
}
END_TEST

/* The expected peer has the common key, so there is no second key. */
START_TEST(no_second_try_with_the_same_key)
{
        protect_all();
        f.nodes[router].ports[1].m_key = f.nodes[leaf1].ports[0].m_key = 0x12;
        give_keys(0xb1);
        expect_all();
        expect(leaf2, 1, router, 1);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!has_node(host_b));
        ck_assert_uint_eq(violations(host_b, 1), 1);
}
END_TEST

/* A busy agent accepted the key. */
START_TEST(no_second_key_for_a_busy_agent)
{
        protect_all();
        give_keys(0xb1);
        expect_all();
        rules.change = spoil;
        failure = MAD_BUSY;
        mean(host_b, SMP_ATTR_NODE_INFO, ANY);
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_eq(meant.n, 1);
        ck_assert_uint_eq(violations(host_b, 1), 0);
}
END_TEST

/* Host B answers where the router is expected: from then on it is queried with its own key. */
START_TEST(own_key_of_the_port_that_answers)
{
        read_keys(arena_printf(arena, "0x%" PRIx64 " 0xb1\n0x%" PRIx64 " 0xcc\n", f.nodes[host_b].ports[1].guid.v,
                               f.nodes[router].ports[1].guid.v));
        f.nodes[host_b].ports[1].m_key = 0xb1;
        f.nodes[host_b].ports[1].m_key_protection = 1; /* reads need no key */
        config.expected = links;
        expect(leaf2, 1, router, 1);
        ck_assert_int_eq(discover(), 0);
        f.nodes[host_b].ports[1].m_key_protection = 2;
        ck_assert(!node(host_b)->incomplete);
        ck_assert_int_eq(discover(), 0);
        ck_assert(!node(host_b)->incomplete);
        ck_assert_uint_eq(violations(host_b, 1), 0); /* it is expected now */
}
END_TEST

/* The file has a wrong key for a port that answers NodeInfo with the common key: the port is in the snapshot, and
 * nothing else is known of it. */
START_TEST(wrong_key_in_the_file)
{
        protect_all();
        f.nodes[router].ports[1].m_key = f.nodes[leaf1].ports[0].m_key = 0x12;
        f.nodes[host_b].ports[1].m_key = 0x12;
        give_keys(0xdead);
        config.local_port = f.nodes[host_a].ports[1].guid;
        ck_assert_int_eq(discover(), 0);
        ck_assert(node(host_b)->incomplete);
        ck_assert_str_eq(node(host_b)->description, "");
        ck_assert_uint_eq(violations(host_b, 1), 2); /* then it is given up */
}
END_TEST

/* --- the stage ------------------------------------------------------------------------------------------------------- */

START_TEST(unexpected_results_are_ignored)
{
        struct discovery *d;
        struct mad_stage stage;
        struct mad_request request;
        struct mad_result result = {}, none = {};
        uint64_t done, total;

        ck_assert_int_eq(discovery_new(&config, &d), 0);
        stage = discovery_stage(d);
        ck_assert(!stage.done(stage.state));
        ck_assert_int_eq(discovery_finish(d, arena, &subnet), -EBUSY);
        stage.result(stage.state, 0, &none); /* nothing is in flight */
        ck_assert(stage.next(stage.state, 0, &request));
        ck_assert(!stage.next(stage.state, 0, &(struct mad_request) {}));
        n_requests = 0;
        carry(&request, &result);
        none.cookie = UINT64_MAX;
        stage.result(stage.state, 0, &none);
        none.cookie = (uint64_t) 5 << 16;
        stage.result(stage.state, 0, &none);
        none.cookie = (uint64_t) 5 << 16 | 3 << 8;
        stage.result(stage.state, 0, &none);
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_eq(done, 0);
        ck_assert_uint_eq(total, 1);
        stage.result(stage.state, 0, &result);
        stage.result(stage.state, 0, &result); /* a second time */
        ck_assert(!stage.done(stage.state));
        ck_assert(stage.next(stage.state, 0, &request));
        carry(&request, &result);
        stage.result(stage.state, 0, &result);
        stage.result(stage.state, 0, &result);
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_eq(done, 2);
        (void) discovery_free(d);
}
END_TEST

/* Every result is delivered a second time, when the next request to the same agent is in flight. While there is another request
 * to come it is not done. */
START_TEST(results_delivered_twice)
{
        struct mad_request request;
        struct mad_result result;
        struct mad_stage stage;
        struct discovery *d;
        bool done = false;
        unsigned n = 0;

        ck_assert_int_eq(discover(), 0);
        ck_assert_int_eq(discovery_new(&config, &d), 0);
        stage = discovery_stage(d);
        result.cookie = UINT64_MAX;
        for (unsigned last = n_requests; stage.next(stage.state, 0, &request); n++) {
                struct mad_result before = result;

                ck_assert(!done);
                carry(&request, &result);
                stage.result(stage.state, 0, &before);
                stage.result(stage.state, 0, &result);
                stage.result(stage.state, 0, &result);
                done = stage.done(stage.state);
                ck_assert_uint_lt(n, last);
        }
        ck_assert(stage.done(stage.state));
        ck_assert_int_eq(discovery_finish(d, arena, &subnet), 0);
        ck_assert_uint_eq(subnet->n_ports, 10);
        ck_assert_uint_eq(count_incomplete() + subnet_count_silent(subnet), 0);
        (void) discovery_free(d);
}
END_TEST

START_TEST(hundreds_in_flight)
{
        rules.answer = answer_as_tree;
        config.max_nodes = 2000;
        ck_assert_int_eq(discover(), 0);
        ck_assert_uint_gt(n_most_at_once, 500);
}
END_TEST

/* --- no memory ------------------------------------------------------------------------------------------------------- */

static unsigned allocations_left = UINT32_MAX;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
        return allocations_left > 0 && allocations_left-- > 0 ? __real_calloc(n, size) : NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
        return allocations_left > 0 && allocations_left-- > 0 ? __real_reallocarray(p, n, size) : NULL;
}

static int discover_with(unsigned n_allocations)
{
        struct discovery *d = NULL;
        int r;

        allocations_left = n_allocations;
        r = discovery_new(&config, &d);
        if (r == 0) {
                run(d);
                r = discovery_finish(d, arena, &subnet);
        }
        if (r == 0)
                r = discovery_learn_links(d, links);
        allocations_left = UINT32_MAX;
        (void) discovery_free(d);
        return r;
}

/* Each allocation fails once: the walk ends with -ENOMEM and leaks nothing. */
START_TEST(no_memory)
{
        unsigned n = 0;

        rules.answer = answer_as_tree;
        config.max_nodes = 600; /* so that every array grows more than once */
        for (;; n++) {
                int r;

                subnet = NULL;
                r = discover_with(n);
                if (r == 0)
                        break;
                ck_assert_int_eq(r, -ENOMEM);
                (void) arena_free(arena);
                arena = arena_new();
                (void) discovery_links_free(links);
                links = discovery_links_new();
        }
        ck_assert_uint_gt(n, 15);
        ck_assert_ptr_null(snapshot_rules_broken(subnet));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("discovery_limits");
        TCase *t = tcase_create("discovery_limits");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, too_many_nodes);
        tcase_add_test(t, too_many_ports);
        tcase_add_test(t, too_many_hops);
        tcase_add_test(t, sixty_three_hops);
        tcase_add_test(t, endless_fabric);
        tcase_add_test(t, many_conflicts);
        tcase_add_test(t, from_a_switch);
        tcase_add_test(t, each_port_gets_its_own_key);
        tcase_add_test(t, one_key_for_all);
        tcase_add_test(t, common_key_if_no_peer_is_expected);
        tcase_add_test(t, two_keys_at_most);
        tcase_add_test(t, no_second_try_with_the_same_key);
        tcase_add_test(t, no_second_key_for_a_busy_agent);
        tcase_add_test(t, own_key_of_the_port_that_answers);
        tcase_add_test(t, wrong_key_in_the_file);
        tcase_add_test(t, unexpected_results_are_ignored);
        tcase_add_test(t, results_delivered_twice);
        tcase_add_test(t, hundreds_in_flight);
        tcase_add_test(t, no_memory);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
