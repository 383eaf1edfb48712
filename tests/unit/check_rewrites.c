/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "watch/rewrites.h"

#define HOSTS 8

static struct arena *arena;
static struct subnet_node nodes[2 + HOSTS];
static struct subnet_port ports[2 * HOSTS];
static struct subnet subnet;
static struct discrepancy differs[HOSTS];
static struct watch_event events[HOSTS + 1];
static struct watch_report report;

/* Hosts 0..n-1 on the first switch, the others on the second. */
static void setup(void)
{
        arena = arena_new();
        memset(nodes, 0, sizeof(nodes));
        memset(ports, 0, sizeof(ports));
        memset(differs, 0, sizeof(differs));
        memset(events, 0, sizeof(events));
        report = (struct watch_report) { .events = events };
        subnet = (struct subnet) { .nodes = nodes, .n_nodes = 2 + HOSTS, .ports = ports, .n_ports = 2 * HOSTS };
        for (uint32_t i = 0; i < 2 + HOSTS; i++)
                nodes[i] = (struct subnet_node) { .guid = { 1 + i }, .type = i < 2 ? NODE_SWITCH : NODE_CA };
        for (uint32_t i = 0; i < HOSTS; i++) {
                ports[i] = (struct subnet_port) { .node = i / 4, .number = (uint8_t) (i % 4 + 1), .peer = HOSTS + i,
                                                  .role = PORT_SWITCH_EXTERNAL };
                ports[HOSTS + i] = (struct subnet_port) { .node = 2 + i, .number = 1, .peer = i, .role = PORT_ENDPORT };
        }
}

static void teardown(void)
{
        arena_free(arena);
}

static void drift(uint32_t host, const struct p_key *lost, uint32_t n_lost, const struct p_key *gained, uint32_t n_gained)
{
        differs[host] =
                (struct discrepancy) { .missing = lost, .n_missing = n_lost, .unexpected = gained, .n_unexpected = n_gained };
        events[report.n_events++] = (struct watch_event) {
                .kind = WATCH_DRIFTED, .node_guid = { 3 + host }, .number = 1, .differs = &differs[host],
        };
        report.n_of[WATCH_DRIFTED]++;
}

START_TEST(test_one_leaf)
{
        static const struct p_key lost[] = { { 0x8010 }, { 0x0011 } }, gained[] = { { 0x0012 } };
        struct watch_rewrite *w;
        uint32_t n;
        bool *is_part;

        drift(4, lost, 1, NULL, 0);
        drift(5, lost, 2, gained, 1);
        drift(1, lost, 2, NULL, 0); /* alone on its switch */
        drift(6, lost, 1, gained, 1);
        ck_assert_int_eq(watch_find_rewrites(arena, &subnet, &report, &w, &n, &is_part), 0);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(w[0].node, 1);
        ck_assert_uint_eq(w[0].n_ports, 3);
        ck_assert_uint_eq(w[0].n_lost, 2);
        ck_assert_uint_eq(w[0].lost[0].v, 0x8010);
        ck_assert_uint_eq(w[0].lost[1].v, 0x0011);
        ck_assert_uint_eq(w[0].n_gained, 1);
        ck_assert_uint_eq(w[0].gained[0].v, 0x0012);
        ck_assert(is_part[0] && is_part[1] && !is_part[2] && is_part[3]);
}
END_TEST

/* A drift of a switch port belongs to the rewrite of its switch, but does not count as one of the drifted hosts that make a
 * rewrite. */
START_TEST(test_switch_ports)
{
        static const struct p_key lost[] = { { 0x8010 } };
        struct watch_rewrite *w;
        uint32_t n;
        bool *is_part;

        drift(0, lost, 1, NULL, 0);
        drift(1, lost, 1, NULL, 0);
        drift(2, lost, 1, NULL, 0);
        events[2].node_guid.v = 1; /* port 3 of the first switch */
        events[2].number = 3;
        ck_assert_int_eq(watch_find_rewrites(arena, &subnet, &report, &w, &n, &is_part), 0);
        ck_assert_uint_eq(n, 0);
        ck_assert(!is_part[0] && !is_part[1] && !is_part[2]);
        drift(3, lost, 1, NULL, 0);
        ck_assert_int_eq(watch_find_rewrites(arena, &subnet, &report, &w, &n, &is_part), 0);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(w[0].n_ports, 3);
        ck_assert(is_part[0] && is_part[1] && is_part[2] && is_part[3]);
}
END_TEST

START_TEST(test_many_keys)
{
        static struct p_key lost[20];
        struct watch_rewrite *w;
        uint32_t n;
        bool *is_part;

        for (uint16_t i = 0; i < 20; i++)
                lost[i].v = (uint16_t) (0x40 - i);
        for (uint32_t i = 0; i < 4; i++)
                drift(i, lost, 20, NULL, 0);
        ck_assert_int_eq(watch_find_rewrites(arena, &subnet, &report, &w, &n, &is_part), 0);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(w[0].n_lost, 20);
        ck_assert_uint_eq(w[0].lost[REWRITE_MAX_KEYS - 1].v, 0x2d + REWRITE_MAX_KEYS - 1);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("rewrites");
        TCase *c = tcase_create("rewrites");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, test_one_leaf);
        tcase_add_test(c, test_switch_ports);
        tcase_add_test(c, test_many_keys);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
