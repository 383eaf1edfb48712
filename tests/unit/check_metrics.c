/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "knowledge/held.h"
#include "knowledge_fixture.h"
#include "metrics/metrics.h"

/*
 * What a full set of numbers gives stands in metrics.prom, beside this file, which promtool reads in tests/lint and
 * tests/system. With GOLDEN_WRITE=1 in the environment it is written instead; read it critically before it is committed.
 */

#define NOW      (5000 * USEC_PER_SEC)
#define REALTIME (1700000000 * USEC_PER_SEC + 250000)

static const struct violation_ends no_ends;

static struct generation generation;
static struct snapshot snapshot;
static struct leases *leases;
static struct control_status status;

static void setup(void)
{
        knowledge_setup();
        leases = leases_new();
        ck_assert_ptr_nonnull(leases);
        status = (struct control_status) { .leases = leases };
}

static void teardown(void)
{
        leases = leases_free(leases);
        knowledge_teardown();
}

static char *print(const struct metrics *m, size_t *ret_n)
{
        char *text, *copy;
        size_t n;

        ck_assert_int_eq(metrics_print(m, &text, &n), 0);
        ck_assert_uint_eq(strlen(text), n);
        copy = arena_strdup(arena, text);
        free(text);
        ck_assert_ptr_nonnull(copy);
        if (ret_n)
                *ret_n = n;
        return copy;
}

/* How many lines begin with this. */
static unsigned count(const char *text, const char *begin)
{
        unsigned n = 0;

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
                n += strncmp(line, begin, strlen(begin)) == 0;
        return n;
}

static void has_line(const char *text, const char *line)
{
        const char *with_end = arena_printf(arena, "%s\n", line), *at = strstr(text, with_end);

        ck_assert_msg(at && (at == text || at[-1] == '\n'), "no line %s in:\n%s", line, text);
}

static void add_port(struct subnet_builder *b, struct guid node, uint8_t number, uint64_t guid)
{
        struct subnet_port port = { .number = number, .state = PORT_STATE_ACTIVE, .guid = { guid }, .lid = { 1 } };

        ck_assert_int_eq(subnet_builder_add_port(b, node, &port), 0);
}

static void add_node(struct subnet_builder *b, uint64_t guid, enum node_type type, uint8_t n_ports, const char *description)
{
        struct subnet_node node = { .guid = { guid }, .type = type, .num_ports = n_ports, .partition_cap = 32 };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, description, strlen(description)), 0);
}

/* A switch; on its port 3 a host, on its port 4 one whose name is hostile, and one with two ports that nothing leads to. */
static struct subnet *named_subnet(void)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_node(b, 0x10, NODE_SWITCH, 8, "leaf07");
        add_node(b, 0x20, NODE_CA, 1, "node0042 mlx5_0");
        add_node(b, 0x30, NODE_CA, 1, "a\"b\\c\nd mlx5_0");
        add_node(b, 0x40, NODE_CA, 2, "node0001 mlx5_0");
        add_port(b, (struct guid) { 0x10 }, 0, 0x10);
        add_port(b, (struct guid) { 0x10 }, 3, 0);
        add_port(b, (struct guid) { 0x10 }, 4, 0);
        add_port(b, (struct guid) { 0x20 }, 1, 0x21);
        add_port(b, (struct guid) { 0x30 }, 1, 0x31);
        add_port(b, (struct guid) { 0x40 }, 1, 0x41);
        add_port(b, (struct guid) { 0x40 }, 2, 0x42);
        ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { 0x10 }, 3, (struct guid) { 0x20 }, 1), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { 0x10 }, 4, (struct guid) { 0x30 }, 1), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        return s;
}

/* As the violation table has them: ascending. */
static const struct violation_record records[] = {
        { .port = { { 0x10 }, 0 }, .source = VIOLATION_P_KEY_VIOLATIONS, .total = 3, .last = 4990 * USEC_PER_SEC },
        { .port = { { 0x10 }, 3 }, .source = VIOLATION_P_KEY_VIOLATIONS, .saturated = true },
        { .port = { { 0x10 }, 3 }, .source = VIOLATION_RCV_CONSTRAINT, .total = 17, .last = 4000 * USEC_PER_SEC },
        { .port = { { 0x10 }, 3 }, .source = VIOLATION_NOTICE_259, .notice = { .key = 0x8101 }, .total = 2,
          .last = 10 * USEC_PER_SEC },
        { .port = { { 0x10 }, 3 }, .source = VIOLATION_NOTICE_259, .notice = { .key = 0x8102 }, .total = 40,
          .last = 30 * USEC_PER_SEC },
        { .port = { { 0x10 }, 3 }, .source = VIOLATION_NOTICE_259, .notice = { .key = 0x8103 }, .total = 500,
          .last = 20 * USEC_PER_SEC },
        { .port = { { 0x10 }, 4 }, .source = VIOLATION_XMIT_CONSTRAINT, .total = 255, .last = 1, .saturated = true },
        { .port = { { 0x20 }, 1 }, .source = VIOLATION_RCV_CONSTRAINT, .total = UINT64_MAX, .last = 2 * USEC_PER_SEC },
        { .port = { { 0x30 }, 1 }, .source = VIOLATION_P_KEY_VIOLATIONS, .total = 65535, .saturated = true },
        { .port = { { 0x40 }, 2 }, .source = VIOLATION_BAD_PKEY_CNTR, .total = 1, .last = NOW + 5 },
        { .port = { { 0x99 }, 9 }, .source = VIOLATION_NOTICE_257, .total = 1, .last = NOW },
};

static const struct notices_status notices = { .state = NOTICES_SUBSCRIBED, .n_reports = 12, .n_malformed = 1 };
static const struct violation_poll_counters poll = { .n_ports = 4000, .n_silent = 2, .n_rounds = 77,
                                                      .cycle_duration = 340 * USEC_PER_SEC, .is_late = true };

/* n bases wait for two hosts, whose tables were not read. A host that is not in `there` is silent since 100 s. */
static const struct held_list *hold(uint16_t n, unsigned before, unsigned there)
{
        struct subnet *s = discover(before, ALL & ~before, 0, 100 * USEC_PER_SEC);
        struct held_list *list = held_list_new(arena);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        s = discover(there, ALL & ~there, 0, 100 * USEC_PER_SEC);
        read_host(s, 2, 0);
        read_host(s, 3, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 0xc);
        for (uint16_t base = 1; base <= n; base++) {
                block_of(0x8000 | base, block);
                ck_assert_int_eq(held_collect(list, k, host_record(2), 0, block, base), 0);
        }
        return list;
}

/* The host that is silent, by a hostile name, and a name for the second base. */
static struct known_port known_ports[] = {
        { .node_guid = { 0x100 }, .port_guid = { 0x101 }, .number = 1, .description = "a\"b\\c\nd mlx5_0" },
};
static const struct known known = { .ports = known_ports, .n = 1 };
static struct policy_partition partitions[] = { { .name = "storage", .base = 2 } };
static struct policy policy = { .partitions = partitions, .n_partitions = 1 };

static void add_leases(enum lease_state state, unsigned n)
{
        static uint16_t base;

        for (unsigned i = 0; i < n; i++) {
                struct lease *lease = lease_new();

                lease->id = arena_printf(lease->arena, "lease%u", (unsigned) ++base);
                lease->base = base;
                lease->state = state;
                ck_assert_int_eq(leases_restore(leases, lease), 0);
        }
}

static struct metrics with_violations(void)
{
        snapshot.subnet = named_subnet();
        status.snapshot = &snapshot;
        return (struct metrics) { .version = "1", .control = &status, .has_violations = true, .now = NOW, .realtime = REALTIME };
}

static struct metrics full(void)
{
        generation = (struct generation) { .number = 7, .n_refused = 1, .audits = true, .policy = &policy };
        snapshot.subnet = named_subnet();
        add_leases(LEASE_GRANTING, 1);
        add_leases(LEASE_ACTIVE, 12);
        add_leases(LEASE_RELEASING, 2);
        status = (struct control_status) {
                .standby = true, .n_file_errors = 2, .in_force = &generation, .wanted = &generation, .snapshot = &snapshot,
                .ports = { .managed = 104, .right = 100, .differ = 3, .unreachable = 1, .silent = 4 }, .n_frozen = 2, .n_claims = 6,
                .numbers = {
                        .sweeps = { [SWEEP_DONE] = 20, [SWEEP_PARTIAL] = 3, [SWEEP_REFUSED] = 2, [SWEEP_FAILED] = 1 },
                        .last_sweep = 1699999999 * USEC_PER_SEC, .last_success = 1699999000 * USEC_PER_SEC,
                        .last_apply = 1699995000 * USEC_PER_SEC, .apply_duration = 12 * USEC_PER_SEC + 1,
                        .sweep_duration = USEC_PER_SEC, .n_writes = 43, .n_writes_failed = 4, .n_refused_by_gate = 1, .n_drifts = 9,
                        .compared = true,
                },
                .leases = leases, .known = &known, .held = hold(3, ALL, ALL & ~1u),
        };
        return (struct metrics) {
                .version = "1.2.3", .started = 1699990000 * USEC_PER_SEC, .control = &status, .plan_duration = 1500,
                .mads = { .sent = 1000, .retried = 20, .timed_out = 21, .answered = 979, .busy = 5, .malformed = 6 },
                .notices = &notices, .poll = &poll, .has_violations = true, .records = records,
                .n_records = ELEMENTS(records), .violations = { 65538, 18, 255, 1, 1, 0, 542 },
                .now = NOW, .realtime = REALTIME,
        };
}

/* Both as one would be a message too long for Check. */
static void same_lines(const char *got, const char *expected)
{
        while (*got || *expected) {
                size_t n = strcspn(got, "\n"), n_expected = strcspn(expected, "\n");

                ck_assert_msg(n == n_expected && memcmp(got, expected, n) == 0, "got: %.*s\nexpected: %.*s", (int) n, got,
                              (int) n_expected, expected);
                got += n + (got[n] == '\n');
                expected += n_expected + (expected[n_expected] == '\n');
        }
}

START_TEST(golden)
{
        const char *top = getenv("top_srcdir");
        const char *path = arena_printf(arena, "%s/tests/unit/metrics.prom", top ? top : "..");
        struct metrics m = full();
        size_t n, n_expected;
        char *text = print(&m, &n), *expected = arena_new_array(arena, char, 2 * n + 100);
        FILE *f = fopen(path, getenv("GOLDEN_WRITE") ? "we" : "re");

        ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
        if (getenv("GOLDEN_WRITE")) {
                ck_assert_uint_eq(fwrite(text, 1, n, f), n);
        } else {
                n_expected = fread(expected, 1, 2 * n + 99, f);
                expected[n_expected] = '\0';
                same_lines(text, expected);
        }
        ck_assert_int_eq(fclose(f), 0);
}
END_TEST

/* The fabric is the first label of every series, and nothing else differs. */
START_TEST(fabric)
{
        struct metrics m = full();
        char *without = print(&m, NULL), *with, *label, *rest;

        m.fabric = "storage";
        with = print(&m, NULL);
        for (char *line = with; *line; line = rest) {
                rest = line + strcspn(line, "\n") + 1;
                if (*line == '#')
                        continue;
                label = strstr(line, "{fabric=\"storage\"");
                ck_assert_msg(label && label < rest, "%.*s", (int) (rest - line), line);
                /* take it out, and its comma or both brackets */
                label[0] = label[17] == '}' ? '\2' : '\1';
                memset(label + 1, '\2', 17);
        }
        for (label = rest = with; *rest; rest++)
                if (*rest != '\2')
                        *label++ = *rest == '\1' ? '{' : *rest;
        *label = '\0';
        ck_assert_str_eq(with, without);
}
END_TEST

/* A daemon that has just begun knows little, and says no more than that. */
START_TEST(what_is_not_known)
{
        struct metrics m = { .version = "1", .control = &status };
        const char *text = print(&m, NULL);

        has_line(text, "pkeyd_policy_generation 0");
        has_line(text, "pkeyd_policy_accepted 1");
        has_line(text, "pkeyd_mads_sent_total 0");
        ck_assert_uint_eq(count(text, "pkeyd_ports_"), 0);
        ck_assert_uint_eq(count(text, "pkeyd_last_"), 0);
        ck_assert_uint_eq(count(text, "pkeyd_plan_"), 0);
        ck_assert_uint_eq(count(text, "pkeyd_notices_"), 0);
        ck_assert_uint_eq(count(text, "pkeyd_polled_"), 0);
        ck_assert_ptr_null(strstr(text, "violations"));
}
END_TEST

/* With a violation table in which nothing stands: zeros, so that the first violation is an increase. */
START_TEST(no_violations)
{
        struct metrics m = with_violations();
        const char *text = print(&m, NULL);

        ck_assert_uint_eq(count(text, "pkeyd_fabric_violations_total{"), VIOLATION_N_SOURCES);
        has_line(text, "pkeyd_fabric_violations_total{source=\"trap_257\"} 0");
        has_line(text, "pkeyd_saturated_counters 0");
        ck_assert_uint_eq(count(text, "# TYPE pkeyd_violations_total"), 0);
}
END_TEST

/* Without a snapshot the series are as many, and as different from each other. */
START_TEST(no_picture)
{
        struct metrics m = full();
        const char *text;

        status.snapshot = NULL;
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), 8);
        has_line(text, "pkeyd_violations_total{source=\"trap_259\",node_guid=\"0x0000000000000010\",port=\"3\"} 542");
}
END_TEST

/* A series belongs to the host that was there when its counter was read. */
START_TEST(of_hosts)
{
        const struct violations_config config = { .interval = 60 * USEC_PER_SEC, .threshold = 1 };
        const struct violation_port leaf = { { 0x10 }, 3 }, empty = { { 0x10 }, 9 };
        struct violation_host away = { .node_guid = { 0x77 }, .guid = { 0x78 }, .number = 2, .label = "away mlx5_1/2", .name = "away",
                                       .node = "away", .device = "mlx5_1", .at_switch = "leaf07/3", .switch_name = "leaf07",
                                       .switch_port = 3 };
        struct violations *v = violations_new(&config);
        struct metrics m = with_violations();
        const char *text;

        ck_assert_ptr_nonnull(v);
        ck_assert_int_eq(violations_set_host(v, leaf, &away), 0);
        ck_assert_int_eq(violations_see_counter(v, 1, leaf, VIOLATION_RCV_CONSTRAINT, 64, 0), 0);
        ck_assert_int_eq(violations_see_counter(v, 2, leaf, VIOLATION_RCV_CONSTRAINT, 64, 200), 0);
        ck_assert_int_eq(violations_set_subnet(v, snapshot.subnet), 0);
        ck_assert_int_eq(violations_see_counter(v, 3, leaf, VIOLATION_RCV_CONSTRAINT, 64, 201), 0);
        ck_assert_int_eq(violations_see_counter(v, 4, leaf, VIOLATION_RCV_CONSTRAINT, 64, 203), 0);
        ck_assert_int_eq(violations_see_counter(v, 3, empty, VIOLATION_RCV_CONSTRAINT, 64, 0), 0);
        ck_assert_int_eq(violations_see_counter(v, 4, empty, VIOLATION_RCV_CONSTRAINT, 64, 7), 0);
        m.records = violations_records(v, &m.n_records);
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), 4);
        has_line(text, "pkeyd_violations_total{source=\"port_rcv_constraint_errors\",node_guid=\"0x0000000000000010\","
                       "seen_by=\"switch\",switch=\"leaf07\",switch_port=\"9\"} 7");
        has_line(text, "pkeyd_violations_total{source=\"port_rcv_constraint_errors\",node_guid=\"0x0000000000000010\","
                       "seen_by=\"switch\",node=\"away\",device=\"mlx5_1\",port=\"2\",port_guid=\"0x0000000000000078\","
                       "switch=\"leaf07\",switch_port=\"3\"} 200");
        has_line(text, "pkeyd_violations_total{source=\"port_rcv_constraint_errors\",node_guid=\"0x0000000000000010\","
                       "seen_by=\"switch\",switch=\"leaf07\",switch_port=\"3\"} 1");
        has_line(text, "pkeyd_violations_total{source=\"port_rcv_constraint_errors\",node_guid=\"0x0000000000000010\","
                       "seen_by=\"switch\",node=\"node0042\",device=\"mlx5_0\",port=\"1\",port_guid=\"0x0000000000000021\","
                       "switch=\"leaf07\",switch_port=\"3\"} 2");
        violations_free(v);
}
END_TEST

/* What the violation table says is what is written, also of a port that the snapshot does not have. */
START_TEST(of_violations)
{
        const struct violations_config config = { .interval = 60 * USEC_PER_SEC, .threshold = 1 };
        const struct violation_port host = { { 0x20 }, 1 }, leaf = { { 0x10 }, 3 };
        const struct notice one = { .trap = 259, .key = 0x8101 }, other = { .trap = 259, .key = 0x8102 };
        struct violations *v = violations_new(&config);
        struct metrics m = with_violations();
        const char *text;

        ck_assert_ptr_nonnull(v);
        ck_assert_int_eq(violations_set_subnet(v, snapshot.subnet), 0);
        ck_assert_int_eq(violations_see_counter(v, 1 * USEC_PER_SEC, host, VIOLATION_P_KEY_VIOLATIONS, 16, 100), 0);
        ck_assert_int_eq(violations_see_counter(v, 1 * USEC_PER_SEC, leaf, VIOLATION_RCV_CONSTRAINT, 8, 9), 0);
        ck_assert_int_eq(violations_see_counter(v, 4970 * USEC_PER_SEC, host, VIOLATION_P_KEY_VIOLATIONS, 16, 117), 0);
        ck_assert_int_eq(violations_see_notice(v, 4980 * USEC_PER_SEC, leaf, &one, &no_ends), 0);
        ck_assert_int_eq(violations_see_notice(v, 4990 * USEC_PER_SEC, leaf, &other, &no_ends), 0);
        m.records = violations_records(v, &m.n_records);
        for (int source = 0; source < VIOLATION_N_SOURCES; source++)
                m.violations[source] = violations_total(v, (enum violation_source) source);
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), 2);
        has_line(text, "pkeyd_violations_total{source=\"p_key_violations\",node_guid=\"0x0000000000000020\",seen_by=\"endport\","
                       "node=\"node0042\",device=\"mlx5_0\",port=\"1\",port_guid=\"0x0000000000000021\",switch=\"leaf07\","
                       "switch_port=\"3\"} 17");
        has_line(text, "pkeyd_violations_last_timestamp_seconds{source=\"trap_259\",node_guid=\"0x0000000000000010\","
                       "seen_by=\"switch\",node=\"node0042\",device=\"mlx5_0\",port=\"1\",port_guid=\"0x0000000000000021\","
                       "switch=\"leaf07\",switch_port=\"3\"} 1699999990");
        has_line(text, "pkeyd_fabric_violations_total{source=\"p_key_violations\"} 17");
        has_line(text, "pkeyd_fabric_violations_total{source=\"trap_259\"} 2");
        has_line(text, "pkeyd_fabric_violations_total{source=\"port_rcv_constraint_errors\"} 0");
        violations_free(v);
}
END_TEST

/* The first port of each base is named by what is known of it: a device without a name, and a host that was never read. */
/* A notice from a port whose host pkeyd does not know yet is none of the host that it finds there later: no two series have the
 * same labels. */
START_TEST(of_a_host_before_it_is_known)
{
        const struct violations_config config = { .interval = 60 * USEC_PER_SEC, .threshold = 1 };
        const struct violation_port leaf = { { 0x10 }, 3 };
        const struct notice notice = { .trap = 259, .key = 0x8101 };
        struct violations *v = violations_new(&config);
        struct metrics m = with_violations();
        const char *text;

        ck_assert_ptr_nonnull(v);
        ck_assert_int_eq(violations_see_notice(v, 1, leaf, &notice, &no_ends), 0);
        ck_assert_int_eq(violations_set_subnet(v, snapshot.subnet), 0);
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(violations_see_notice(v, 2, leaf, &notice, &no_ends), 0);
        m.records = violations_records(v, &m.n_records);
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), 2);
        has_line(text, "pkeyd_violations_total{source=\"trap_259\",node_guid=\"0x0000000000000010\",seen_by=\"switch\","
                       "switch=\"leaf07\",switch_port=\"3\"} 1");
        has_line(text, "pkeyd_violations_total{source=\"trap_259\",node_guid=\"0x0000000000000010\",seen_by=\"switch\","
                       "node=\"node0042\",device=\"mlx5_0\",port=\"1\",port_guid=\"0x0000000000000021\",switch=\"leaf07\","
                       "switch_port=\"3\"} 2");
        violations_free(v);
}
END_TEST

/* What an adapter counted at one switch port is not what it counts at another. */
START_TEST(of_a_host_that_moved)
{
        const struct violation_port port = { { 0x20 }, 1 };
        struct violation_host host = { .node_guid = { 0x20 }, .guid = { 0x21 }, .number = 1, .label = "node0042 mlx5_0/1",
                                       .name = "node0042", .node = "node0042", .device = "mlx5_0", .switch_port = 7 };
        struct violations *v = violations_new(&(struct violations_config) { .interval = USEC_PER_SEC, .threshold = 1 });
        struct metrics m = with_violations();
        const char *text;

        ck_assert_ptr_nonnull(v);
        for (unsigned i = 0; i < 2; i++) {
                host.at_switch = i == 0 ? "leafA/7" : "leafB/7";
                host.switch_name = i == 0 ? "leafA" : "leafB";
                ck_assert_int_eq(violations_set_host(v, port, &host), 0);
                ck_assert_int_eq(violations_see_counter(v, 1, port, VIOLATION_P_KEY_VIOLATIONS, 16, 11 * i), 0);
                ck_assert_int_eq(violations_see_counter(v, 2, port, VIOLATION_P_KEY_VIOLATIONS, 16, 10 + 2 * i), 0);
        }
        m.records = violations_records(v, &m.n_records);
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), 2);
        has_line(text, "pkeyd_violations_total{source=\"p_key_violations\",node_guid=\"0x0000000000000020\",seen_by=\"endport\","
                       "node=\"node0042\",device=\"mlx5_0\",port=\"1\",port_guid=\"0x0000000000000021\",switch=\"leafA\","
                       "switch_port=\"7\"} 10");
        violations_free(v);
}
END_TEST

START_TEST(of_held_bases)
{
        struct metrics m = { .version = "1", .control = &status };
        const char *text;

        status.held = hold(1, ALL & ~3u, ALL & ~3u);
        text = print(&m, NULL);
        has_line(text, "pkeyd_held_base_since_timestamp_seconds{base=\"0x0001\",reason=\"silent\",node_guid=\"0x0000000000000010\","
                       "switch_port=\"1\"} 100");
        status.held = hold(1, ALL, ALL);
        text = print(&m, NULL);
        has_line(text, "pkeyd_held_base_ports{base=\"0x0001\",reason=\"never-read\",node_guid=\"0x0000000000000100\","
                       "port=\"1\"} 2");
        ck_assert_uint_eq(count(text, "# HELP pkeyd_held_base_since"), 0);
        status.held = hold(METRICS_MAX_HELD + 1, ALL, ALL & ~1u);
        text = print(&m, NULL);
        has_line(text, "pkeyd_held_bases 65");
        ck_assert_uint_eq(count(text, "pkeyd_held_base_ports{"), METRICS_MAX_HELD);
        ck_assert_uint_eq(count(text, "pkeyd_held_base_since_timestamp_seconds{"), METRICS_MAX_HELD);
        ck_assert_uint_eq(count(text, "pkeyd_held_base_ports{base=\"0x0041\""), 0);
        status.held = held_list_new(arena);
        text = print(&m, NULL);
        has_line(text, "pkeyd_held_bases 0");
        ck_assert_uint_eq(count(text, "# HELP pkeyd_held_base_"), 0);
}
END_TEST

static uint64_t sum(const char *text, const char *name)
{
        uint64_t all = 0;

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
                if (strncmp(line, name, strlen(name)) == 0)
                        all += strtoull(strstr(line, "} ") + 2, NULL, 10);
        return all;
}

/* More than anybody wants to store: the largest are shown, and the sum is what it was. */
START_TEST(too_many)
{
        const uint32_t n = METRICS_MAX_SERIES + 1500;
        struct violation_record *many = arena_new_array(arena, struct violation_record, n);
        struct metrics m = { .version = "1", .control = &status, .has_violations = true, .records = many, .n_records = n,
                             .now = NOW };
        uint64_t all = 0;
        const char *text;

        for (uint32_t i = 0; i < n; i++) {
                many[i] = (struct violation_record) {
                        .port = { { 1 + i }, 1 }, .total = 1 + (i * UINT64_C(7919)) % 6500,
                        .source = i % 3 ? VIOLATION_P_KEY_VIOLATIONS : VIOLATION_NOTICE_257,
                };
                all += many[i].total;
        }
        text = print(&m, NULL);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{"), METRICS_MAX_SERIES + 2);
        ck_assert_uint_eq(count(text, "pkeyd_violations_last_timestamp_seconds{"), METRICS_MAX_SERIES + 2);
        ck_assert_uint_eq(sum(text, "pkeyd_violations_total{"), all);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{source=\"p_key_violations\",rest=\"true\"}"), 1);
        ck_assert_uint_eq(count(text, "pkeyd_violations_total{source=\"trap_257\",rest=\"true\"}"), 1);
        /* 7919 is prime to 6500: every number from 1 to 6500 is there once, and the 1500 least are not shown */
        ck_assert_uint_eq(sum(text, "pkeyd_violations_total{source=\"p_key_violations\",rest=\"true\"}") +
                                  sum(text, "pkeyd_violations_total{source=\"trap_257\",rest=\"true\"}"),
                          1500 * 1501 / 2);
        m.n_records = METRICS_MAX_SERIES;
        ck_assert_ptr_null(strstr(print(&m, NULL), "rest="));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("metrics");
        TCase *c = tcase_create("metrics");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, golden);
        tcase_add_test(c, fabric);
        tcase_add_test(c, what_is_not_known);
        tcase_add_test(c, no_violations);
        tcase_add_test(c, no_picture);
        tcase_add_test(c, of_hosts);
        tcase_add_test(c, of_violations);
        tcase_add_test(c, of_a_host_before_it_is_known);
        tcase_add_test(c, of_a_host_that_moved);
        tcase_add_test(c, of_held_bases);
        tcase_set_timeout(c, 120);
        tcase_add_test(c, too_many);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
