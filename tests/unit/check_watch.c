/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>

#include "control/backoff.h"
#include "watch/watch.h"

/* A fabric of hosts with one port each. A bit mask selects those that are present, so that two snapshots can differ. */
#define HOSTS 4
#define CAP   32

struct fixture {
        struct arena *arena;
        struct watch *watch;
        struct observed *observed;
        const struct known *known;
        struct verification verification;
        struct discrepancy differ[HOSTS];
        struct p_key missing[HOSTS];
        struct desired desired;
        struct desired_port wanted[HOSTS];
        uint64_t generation;
};

static void fixture_init(struct fixture *f)
{
        *f = (struct fixture) { .arena = arena_new(), .watch = watch_new() };
        ck_assert_ptr_nonnull(f->arena);
        ck_assert_ptr_nonnull(f->watch);
        f->verification.differ = f->differ;
        f->desired.ports = f->wanted;
        f->verification.desired = &f->desired;
}

static void fixture_done(struct fixture *f)
{
        watch_free(f->watch);
        arena_free(f->arena);
}

static void add_host(struct subnet_builder *b, unsigned i)
{
        struct guid guid = { 0x100 * (i + 1) };
        struct subnet_node node = { .guid = guid, .type = NODE_CA, .num_ports = 1, .partition_cap = CAP };
        struct subnet_port port = {
                .number = 1, .role = PORT_ENDPORT, .state = PORT_STATE_ACTIVE, .guid = { guid.v + 1 },
                .lid = { (uint16_t) (i + 1) },
        };
        char description[32];
        int n = snprintf(description, sizeof(description), "node%u mlx5_0", i);

        ck_assert_int_eq(subnet_builder_add_node(b, &node, description, (size_t) n), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, guid, &port), 0);
}

/* All tables were read, and none differs. */
static void take_snapshot(struct fixture *f, unsigned present)
{
        struct subnet_builder *b;
        struct subnet *subnet;

        ck_assert_int_eq(subnet_builder_new(f->arena, &b), 0);
        for (unsigned i = 0; i < HOSTS; i++)
                if (present & (1u << i))
                        add_host(b, i);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &subnet), 0);
        ck_assert_int_eq(observed_new(f->arena, subnet, &f->observed), 0);
        for (uint32_t p = 0; p < subnet->n_ports; p++)
                f->observed->tables[p].source = TABLE_READ;
        f->verification.n_differ = 0;
        f->verification.n_ports = subnet->n_ports;
}

static void let_differ(struct fixture *f, uint32_t port, uint16_t missing)
{
        uint32_t i = f->verification.n_differ++;

        f->missing[i].v = missing;
        f->differ[i] = (struct discrepancy) {
                .port = port, .source = SOURCE_SMP, .missing = &f->missing[i], .n_missing = 1,
        };
}

static void let_fail(struct fixture *f, uint32_t port, enum mad_outcome failure, uint16_t status)
{
        f->observed->tables[port].source = TABLE_UNKNOWN;
        f->observed->tables[port].failure = failure;
        f->observed->tables[port].mad_status = status;
}

static struct watch_report update(struct fixture *f, bool judge, bool same_policy)
{
        struct watch_report report;

        f->generation += !same_policy;
        ck_assert_int_eq(watch_update(f->watch, f->arena, f->observed, judge ? &f->verification : NULL, f->generation, f->known,
                                      &report),
                         0);
        return report;
}

/* Expects that the report has one event, of this kind, about this host. */
static const struct watch_event *assert_one(const struct watch_report *report, enum watch_kind kind, unsigned host)
{
        const struct watch_event *events;
        uint32_t n;

        ck_assert_uint_eq(report->n_events, 1);
        events = watch_report_events(report, kind, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(events[0].node_guid.v, 0x100 * (host + 1));
        ck_assert_uint_eq(events[0].kind, kind);
        return events;
}

START_TEST(first_look_is_no_news)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        report = update(&f, true, false);
        ck_assert_uint_eq(report.n_events, 0);
        ck_assert_uint_eq(report.n_ports, HOSTS);
        ck_assert_uint_eq(report.n_right, HOSTS);
        fixture_done(&f);
}
END_TEST

START_TEST(new_and_gone)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xb);
        (void) update(&f, true, false);
        take_snapshot(&f, 0xf);
        report = update(&f, true, true);
        ck_assert_str_eq(assert_one(&report, WATCH_NEW, 2)->label, "node2 mlx5_0/1");
        take_snapshot(&f, 0x7);
        report = update(&f, true, true);
        assert_one(&report, WATCH_GONE, 3);
        take_snapshot(&f, 0x6);
        report = update(&f, true, true);
        assert_one(&report, WATCH_GONE, 0);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 0);
        fixture_done(&f);
}
END_TEST

/* A known host is not new, even for a watch that has never seen it. */
START_TEST(a_known_host_returns)
{
        struct known_port ports[] = {{.node_guid = {0x200}, .port_guid = {0x201}, .number = 1},
                                     {.node_guid = {0x300}, .port_guid = {0x301}, .number = 1, .is_new = true}};
        struct known known = {.ports = ports, .n = 2};
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        f.known = &known;
        take_snapshot(&f, 0x1);
        (void) update(&f, true, false);
        take_snapshot(&f, 0x3);
        report = update(&f, true, true);
        assert_one(&report, WATCH_RETURNED, 1);
        take_snapshot(&f, 0x7);
        report = update(&f, true, true);
        assert_one(&report, WATCH_NEW, 2);
        take_snapshot(&f, 0xf); /* this host is not known */
        report = update(&f, true, true);
        assert_one(&report, WATCH_NEW, 3);
        fixture_done(&f);
}
END_TEST

START_TEST(drift_is_said_once_and_again_when_it_changes)
{
        struct fixture f;
        struct watch_report report;
        const struct watch_event *e;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_differ(&f, 1, 0x8010);
        report = update(&f, true, true);
        e = assert_one(&report, WATCH_DRIFTED, 1);
        ck_assert_uint_eq(e->differs->missing[0].v, 0x8010);
        ck_assert_uint_eq(report.n_differ, 1);
        ck_assert_uint_eq(report.n_right, HOSTS - 1);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 0);
        ck_assert_uint_eq(report.n_differ, 1);
        f.missing[0].v = 0x8011;
        report = update(&f, true, true);
        assert_one(&report, WATCH_DRIFTED, 1);
        f.verification.n_differ = 0;
        report = update(&f, true, true);
        assert_one(&report, WATCH_REPAIRED, 1);
        fixture_done(&f);
}
END_TEST

/* A drifted table is not judged while its port is frozen; afterwards it is judged anew. */
START_TEST(frozen_is_not_judged)
{
        enum freeze frozen[HOSTS] = {};
        struct watch_report report;
        struct fixture f;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_differ(&f, 1, 0x8010);
        (void) update(&f, true, true);
        frozen[1] = FREEZE_LINES;
        f.verification.frozen = frozen;
        f.verification.n_differ = 0;
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 0);
        ck_assert_uint_eq(report.n_right, HOSTS - 1);
        ck_assert_uint_eq(report.n_differ, 0);
        f.verification.frozen = NULL;
        let_differ(&f, 1, 0x8010);
        report = update(&f, true, true);
        assert_one(&report, WATCH_DIFFERS, 1);
        fixture_done(&f);
}
END_TEST

START_TEST(a_new_policy_is_no_drift)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_differ(&f, 2, 0x8010);
        report = update(&f, true, false);
        assert_one(&report, WATCH_DIFFERS, 2);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 0);
        f.verification.n_differ = 0;
        report = update(&f, true, true);
        assert_one(&report, WATCH_MATCHES, 2);
        let_differ(&f, 2, 0x8010);
        report = update(&f, true, true);
        assert_one(&report, WATCH_DRIFTED, 2);
        f.verification.n_differ = 0;
        let_differ(&f, 2, 0x8011);
        report = update(&f, true, false); /* under a new policy a table that had drifted only differs */
        assert_one(&report, WATCH_DIFFERS, 2);
        fixture_done(&f);
}
END_TEST

START_TEST(unreachable_and_back)
{
        struct fixture f;
        struct watch_report report;
        const struct watch_event *e;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_fail(&f, 3, MAD_REFUSED, 0x1c);
        report = update(&f, true, true);
        e = assert_one(&report, WATCH_UNREACHABLE, 3);
        ck_assert_uint_eq(e->failure, MAD_REFUSED);
        ck_assert_uint_eq(e->mad_status, 0x1c);
        ck_assert_uint_eq(report.n_unreachable, 1);
        ck_assert_uint_eq(report.n_right, HOSTS - 1);
        report = update(&f, false, true);
        ck_assert_uint_eq(report.n_events, 0);
        take_snapshot(&f, 0xf);
        report = update(&f, true, true);
        assert_one(&report, WATCH_READABLE, 3);
        fixture_done(&f);
}
END_TEST

/* A table that was right before its port fell silent, and is wrong when the port answers again, has drifted. */
START_TEST(judgement_outlasts_silence)
{
        struct fixture f;
        struct watch_report report;
        uint32_t n;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_fail(&f, 0, MAD_TIMED_OUT, 0);
        (void) update(&f, true, true);
        take_snapshot(&f, 0xf);
        let_differ(&f, 0, 0x8010);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 2);
        (void) watch_report_events(&report, WATCH_READABLE, &n);
        ck_assert_uint_eq(n, 1);
        (void) watch_report_events(&report, WATCH_DRIFTED, &n);
        ck_assert_uint_eq(n, 1);
        fixture_done(&f);
}
END_TEST

/* A port is silent while a new policy comes into force; then its table is still that of the policy before. */
START_TEST(a_policy_that_changed_during_silence_is_no_drift)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_fail(&f, 0, MAD_TIMED_OUT, 0);
        (void) update(&f, true, true);
        (void) update(&f, true, false);
        take_snapshot(&f, 0xf);
        let_differ(&f, 0, 0x8010);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_of[WATCH_DRIFTED], 0);
        ck_assert_uint_eq(report.n_of[WATCH_DIFFERS], 1);
        f.verification.n_differ = 0;
        (void) update(&f, true, true);
        let_differ(&f, 0, 0x8010);
        report = update(&f, true, true);
        assert_one(&report, WATCH_DRIFTED, 0);
        fixture_done(&f);
}
END_TEST

/* A lease, a name or a place in the fabric changes what one port should hold; the tables of others that change have drifted. */
START_TEST(other_entries_by_the_same_policy_are_no_drift)
{
        static const struct p_key before[] = {{0x8010}}, after[] = {{0x8011}};
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        for (unsigned i = 0; i < HOSTS; i++)
                f.wanted[i] = (struct desired_port) { .wanted = before, .n_wanted = 1 };
        (void) update(&f, true, false);
        f.wanted[1].wanted = after;
        let_differ(&f, 1, 0x8011);
        let_differ(&f, 2, 0x8010);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 2);
        ck_assert_uint_eq(report.events[0].kind, WATCH_DRIFTED);
        ck_assert_uint_eq(report.events[0].node_guid.v, 0x300);
        ck_assert_uint_eq(report.events[1].kind, WATCH_DIFFERS);
        ck_assert_uint_eq(report.events[1].node_guid.v, 0x200);
        f.verification.n_differ = 0;
        f.wanted[3].wanted = after;
        (void) update(&f, true, true);
        let_differ(&f, 1, 0x8011);
        let_differ(&f, 3, 0x8011);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 2);
        ck_assert_uint_eq(report.n_of[WATCH_DRIFTED], 2);
        fixture_done(&f);
}
END_TEST

/* What pkeyd wrote between two updates does not count as written by another program; what had drifted is still repaired. */
START_TEST(own_writes_are_no_drift)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        let_differ(&f, 2, 0x8010);
        report = update(&f, true, true);
        assert_one(&report, WATCH_DRIFTED, 2);
        for (unsigned i = 1; i <= 2; i++)
                watch_forget_right(f.watch, (struct guid) { 0x100 * (i + 1) }, 1);
        watch_forget_right(f.watch, (struct guid) { 0x150 }, 1);
        watch_forget_right(f.watch, (struct guid) { 0x300 }, 2);
        f.verification.n_differ = 0;
        let_differ(&f, 0, 0x8010);
        let_differ(&f, 1, 0x8010);
        report = update(&f, true, true);
        ck_assert_uint_eq(report.n_events, 3);
        ck_assert_uint_eq(report.n_of[WATCH_DRIFTED], 1);
        ck_assert_uint_eq(report.n_of[WATCH_DIFFERS], 1);
        ck_assert_uint_eq(report.n_of[WATCH_REPAIRED], 1);
        ck_assert_uint_eq(report.events[0].node_guid.v, 0x100);
        fixture_done(&f);
}
END_TEST

/* An update without a verification must not forget how tables were judged. */
START_TEST(a_look_without_judgement_forgets_nothing)
{
        struct fixture f;
        struct watch_report report;

        fixture_init(&f);
        take_snapshot(&f, 0xf);
        (void) update(&f, true, false);
        take_snapshot(&f, 0xf);
        report = update(&f, false, true);
        ck_assert_uint_eq(report.n_right, 0);
        let_differ(&f, 1, 0x8010);
        report = update(&f, true, true);
        assert_one(&report, WATCH_DRIFTED, 1);
        fixture_done(&f);
}
END_TEST

START_TEST(backoff_doubles_up_to_its_cap)
{
        usec_t cap = 60 * USEC_PER_SEC, t = 0;
        static const unsigned seconds[] = { 5, 10, 20, 40, 60, 60 };

        for (size_t i = 0; i < ELEMENTS(seconds); i++) {
                t = backoff_next(t, cap);
                ck_assert_uint_eq(t, seconds[i] * USEC_PER_SEC);
        }
        ck_assert_uint_eq(backoff_next(0, USEC_PER_SEC), USEC_PER_SEC);
        ck_assert_uint_eq(backoff_next(USEC_INFINITY, USEC_INFINITY), USEC_INFINITY);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("watch");
        TCase *tc = tcase_create("watch");
        SRunner *runner = srunner_create(suite);
        int failed;

        tcase_add_test(tc, first_look_is_no_news);
        tcase_add_test(tc, new_and_gone);
        tcase_add_test(tc, a_known_host_returns);
        tcase_add_test(tc, drift_is_said_once_and_again_when_it_changes);
        tcase_add_test(tc, frozen_is_not_judged);
        tcase_add_test(tc, a_new_policy_is_no_drift);
        tcase_add_test(tc, unreachable_and_back);
        tcase_add_test(tc, judgement_outlasts_silence);
        tcase_add_test(tc, a_policy_that_changed_during_silence_is_no_drift);
        tcase_add_test(tc, other_entries_by_the_same_policy_are_no_drift);
        tcase_add_test(tc, own_writes_are_no_drift);
        tcase_add_test(tc, a_look_without_judgement_forgets_nothing);
        tcase_add_test(tc, backoff_doubles_up_to_its_cap);
        suite_add_tcase(suite, tc);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
