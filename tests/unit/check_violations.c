/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "violations/counter_samples.h"
#include "violations/violations.h"

#define INTERVAL (60 * USEC_PER_SEC)
#define START    (1000 * USEC_PER_SEC)
#define RCV      VIOLATION_RCV_CONSTRAINT

static const struct violation_ends no_ends;

static struct violations *violations;
static struct violation_report report;

static struct violation_port port(uint64_t node)
{
        return (struct violation_port) { .node_guid = { node }, .number = 1 };
}

static void set_threshold(uint64_t threshold)
{
        violations_set_config(violations, &(struct violations_config) { .interval = INTERVAL, .threshold = threshold });
}

static void setup(void)
{
        violations = violations_new(&(struct violations_config) { .interval = INTERVAL, .threshold = 1 });
        ck_assert_ptr_nonnull(violations);
}

static void teardown(void)
{
        violations = violations_free(violations);
}

static int see(usec_t now, uint64_t node, unsigned bits, uint64_t value)
{
        return violations_see_counter(violations, now, port(node), RCV, bits, value);
}

static void assert_none(usec_t now)
{
        ck_assert(!violations_next_report(violations, now, &report));
}

static void assert_report(usec_t now, enum violation_kind kind, uint64_t node, uint64_t count, usec_t since)
{
        ck_assert(violations_next_report(violations, now, &report));
        ck_assert_int_eq(report.kind, kind);
        ck_assert_uint_eq(report.record.port.node_guid.v, node);
        ck_assert_uint_eq(report.count, count);
        ck_assert_uint_eq(report.since, since);
}

static const struct violation_record *only_record(void)
{
        const struct violation_record *records;
        uint32_t n;

        records = violations_records(violations, &n);
        ck_assert_uint_eq(n, 1);
        return records;
}

static void assert_no_record(void)
{
        uint32_t n;

        (void) violations_records(violations, &n);
        ck_assert_uint_eq(n, 0);
}

/* --- one counter ----------------------------------------------------------------------------------------------------- */

static struct counter_change sample(struct violation_counter *c, unsigned bits, uint64_t value)
{
        return violation_counter_see(c, 5, bits, value);
}

START_TEST(counter_counts_differences)
{
        struct violation_counter c = {};

        ck_assert_uint_eq(sample(&c, 16, 100).count, 0);
        ck_assert_uint_eq(sample(&c, 16, 100).count, 0);
        ck_assert_uint_eq(sample(&c, 16, 107).count, 7);
        ck_assert_uint_eq(sample(&c, 16, 107).since, 5);
        ck_assert_uint_eq(sample(&c, 16, 3).count, 3); /* was reset */
        ck_assert_uint_eq(sample(&c, 16, 0).count, 0);
        /* another width: another counter */
        ck_assert_uint_eq(sample(&c, 64, 50).count, 0);
        ck_assert_uint_eq(sample(&c, 64, 50).since, 5);
}
END_TEST

START_TEST(small_counters_saturate)
{
        static const unsigned widths[] = { 8, 16 };

        for (unsigned i = 0; i < 2; i++) {
                unsigned bits = widths[i];
                uint64_t max = (1u << bits) - 1;
                struct violation_counter c = {};

                ck_assert(!sample(&c, bits, max - 1).saturated);
                ck_assert(sample(&c, bits, max).newly_saturated);
                ck_assert(sample(&c, bits, max).saturated);
                ck_assert(!sample(&c, bits, max).newly_saturated);
                ck_assert_uint_eq(sample(&c, bits, max).count, 0);
                /* They never go round: 2 after the maximum is 2. */
                ck_assert_uint_eq(sample(&c, bits, 2).count, 2);
                ck_assert_uint_eq(sample(&c, bits, max).count, max - 2);
                violation_counter_cleared(&c);
                ck_assert(sample(&c, bits, max).newly_saturated);
                /* What does not fit cannot come from such a counter. */
                ck_assert_uint_eq(sample(&c, bits, max + 5).count, 0);
        }
}
END_TEST

START_TEST(wide_counters_go_round)
{
        struct violation_counter c = {};

        (void) sample(&c, 32, UINT32_MAX - 1);
        ck_assert(!sample(&c, 32, UINT32_MAX).saturated);
        ck_assert_uint_eq(sample(&c, 32, 4).count, 5);
        /* From the middle of its range no counter wraps within an interval. */
        (void) sample(&c, 32, 3000000000);
        ck_assert_uint_eq(sample(&c, 32, 4).count, 4);

        (void) sample(&c, 64, UINT64_MAX - 1);
        ck_assert(!sample(&c, 64, UINT64_MAX).saturated);
        ck_assert_uint_eq(sample(&c, 64, 0).count, 1);
        ck_assert_uint_eq(sample(&c, 64, UINT64_C(1) << 62).count, UINT64_C(1) << 62);
        ck_assert_uint_eq(sample(&c, 64, 9).count, 9);
}
END_TEST

/* --- the violation table ------------------------------------------------------------------------------------------ */

START_TEST(first_look_is_no_violation)
{
        ck_assert_int_eq(see(START, 1, 8, 200), 0);
        assert_none(START);
        assert_none(START + 100 * INTERVAL);
        ck_assert_uint_eq(violations_total(violations, RCV), 0);
        assert_no_record();
        ck_assert_uint_eq(violations_due(violations), USEC_INFINITY);
}
END_TEST

START_TEST(an_episode)
{
        usec_t t = START + INTERVAL;

        see(START, 1, 64, 10);
        see(t, 1, 64, 13);
        ck_assert_uint_eq(violations_due(violations), 0);
        assert_report(t, VIOLATION_FIRST, 1, 3, START);
        ck_assert_uint_eq(report.record.unreported, 0);
        ck_assert_uint_eq(report.record.total, 3);
        ck_assert_uint_eq(report.record.episode, 3);
        assert_none(t);
        /* more within the interval waits for its end */
        see(t + 10, 1, 64, 14);
        assert_none(t + INTERVAL - 1);
        ck_assert_uint_eq(violations_due(violations), t + INTERVAL);
        assert_report(t + INTERVAL, VIOLATION_MORE, 1, 1, t);
        /* an interval without any is none to speak of */
        assert_none(t + 3 * INTERVAL);
        see(t + 3 * INTERVAL + 5, 1, 64, 20);
        assert_report(t + 3 * INTERVAL + 5, VIOLATION_MORE, 1, 6, t + INTERVAL);
        assert_none(t + 8 * INTERVAL + 4);
        assert_report(t + 8 * INTERVAL + 5, VIOLATION_QUIET, 1, 10, t);
        ck_assert_uint_eq(report.record.episode, 0);
        ck_assert_uint_eq(report.record.last, t + 3 * INTERVAL + 5);
        assert_none(t + 100 * INTERVAL);
        /* and it begins anew */
        see(t + 200 * INTERVAL, 1, 64, 21);
        assert_report(t + 200 * INTERVAL, VIOLATION_FIRST, 1, 1, START + 4 * INTERVAL + 5);
        ck_assert_uint_eq(only_record()->total, 11);
        ck_assert_uint_eq(only_record()->first, t);
        ck_assert_uint_eq(violations_total(violations, RCV), 11);
}
END_TEST

START_TEST(saturation_is_said_once)
{
        usec_t t = START;

        see(t, 1, 8, 250);
        ck_assert_int_eq(see(t += INTERVAL, 1, 8, 255), 1);
        assert_report(t, VIOLATION_SATURATED, 1, 5, START);
        ck_assert(report.record.saturated);
        ck_assert_int_eq(see(t += INTERVAL, 1, 8, 255), 1);
        assert_none(t);
        violations_counter_cleared(violations, port(1), RCV);
        ck_assert(!only_record()->saturated);
        see(t += INTERVAL, 1, 8, 255);
        assert_report(t, VIOLATION_SATURATED, 1, 255, START + INTERVAL);
        /* reset by another program */
        see(t += INTERVAL, 1, 8, 4);
        assert_report(t, VIOLATION_MORE, 1, 4, t - INTERVAL);
        ck_assert(!only_record()->saturated);
        assert_report(t + 5 * INTERVAL, VIOLATION_QUIET, 1, 264, START + INTERVAL);
        assert_none(t + 5 * INTERVAL);
}
END_TEST

START_TEST(saturated_from_the_beginning)
{
        ck_assert_int_eq(see(START, 1, 16, 0xffff), 1);
        assert_report(START, VIOLATION_SATURATED, 1, 0, 0);
        ck_assert_uint_eq(only_record()->total, 0);
        ck_assert_uint_eq(only_record()->episode, 0);
        ck_assert_uint_eq(only_record()->last, 0);
        assert_none(START + 50 * INTERVAL);
        /* The first violation after that is reported at once, although there was a report just before. */
        ck_assert_int_eq(see(START + 60 * INTERVAL, 2, 16, 0xffff), 1);
        assert_report(START + 60 * INTERVAL, VIOLATION_SATURATED, 2, 0, 0);
        violations_counter_cleared(violations, port(2), RCV);
        violations_counter_cleared(violations, port(77), RCV); /* never sampled */
        see(START + 60 * INTERVAL + 7, 2, 16, 1);
        assert_report(START + 60 * INTERVAL + 7, VIOLATION_FIRST, 2, 1, START + 60 * INTERVAL);
}
END_TEST

START_TEST(threshold_is_of_an_interval)
{
        usec_t t = START + INTERVAL;

        set_threshold(10);
        see(START, 1, 64, 0);
        see(t, 1, 64, 9);
        assert_none(t);
        see(t + INTERVAL, 1, 64, 18);
        assert_none(t + INTERVAL);
        /* nine in this interval and one more */
        see(t + INTERVAL + 5, 1, 64, 19);
        assert_report(t + INTERVAL + 5, VIOLATION_FIRST, 1, 19, START);
        see(t + 2 * INTERVAL + 5, 1, 64, 20);
        assert_none(t + 2 * INTERVAL + 5);
        ck_assert_uint_eq(only_record()->unreported, 1);
        assert_report(t + 7 * INTERVAL + 5, VIOLATION_QUIET, 1, 20, t);
        /* An episode without a report ends without a report, and the next one does not include it. */
        see(t + 20 * INTERVAL, 1, 64, 23);
        assert_none(t + 30 * INTERVAL);
        see(t + 30 * INTERVAL, 1, 64, 43);
        assert_report(t + 30 * INTERVAL, VIOLATION_FIRST, 1, 20, t + 20 * INTERVAL);
        ck_assert_uint_eq(only_record()->total, 43);
}
END_TEST

static struct notice make_notice(uint16_t trap, uint32_t key, uint16_t from, uint16_t to)
{
        return (struct notice) { .trap = trap, .key = key, .lid1 = { from }, .lid2 = { to }, .qp1 = from };
}

START_TEST(notices_by_key_and_ends)
{
        struct notice a = make_notice(257, 0x8001, 1, 2), b = make_notice(257, 0x8002, 1, 2);
        struct notice other_qp = a, bad = make_notice(256, 1, 1, 2);
        const struct violation_record *records;
        uint32_t n;

        other_qp.qp1 = 99;
        ck_assert_int_eq(violations_see_notice(violations, START, port(2), &a, &no_ends), 0);
        assert_report(START, VIOLATION_FIRST, 2, 1, 0);
        ck_assert_int_eq(report.record.source, VIOLATION_NOTICE_257);
        ck_assert_uint_eq(report.record.notice.key, 0x8001);
        ck_assert_int_eq(violations_see_notice(violations, START + 1, port(2), &b, &no_ends), 0);
        assert_report(START + 1, VIOLATION_FIRST, 2, 1, 0);
        ck_assert_int_eq(violations_see_notice(violations, START + 2, port(2), &other_qp, &no_ends), 0);
        assert_none(START + 2);
        assert_report(START + INTERVAL, VIOLATION_MORE, 2, 1, START);
        ck_assert_uint_eq(report.record.notice.qp1, 99);
        ck_assert_int_eq(violations_see_notice(violations, START, port(2), &bad, &no_ends), -EINVAL);
        ck_assert_int_eq(violations_see_counter(violations, START, port(2), VIOLATION_NOTICE_258, 8, 1), -EINVAL);
        records = violations_records(violations, &n);
        ck_assert_uint_eq(n, 2);
        ck_assert_uint_eq(records[0].notice.key, 0x8001);
        ck_assert_uint_eq(records[0].total, 2);
        ck_assert_uint_eq(records[1].notice.key, 0x8002);
        ck_assert_uint_eq(violations_total(violations, VIOLATION_NOTICE_257), 3);
}
END_TEST

/* A storm fills an hour; then the interval is made shorter, and what waits is reported when that is over, or longer, which changes
 * nothing. */
START_TEST(a_shorter_interval)
{
        const usec_t hour = 60 * INTERVAL;

        violations_set_config(violations, &(struct violations_config) { .interval = hour, .threshold = 1 });
        for (unsigned i = 1; i <= VIOLATIONS_STORM_PORTS + 2; i++) {
                see(START, i, 64, 0);
                see(START + 1, i, 64, 5);
        }
        while (violations_next_report(violations, START + 1, &report))
                ck_assert_int_eq(report.kind, VIOLATION_FIRST);
        ck_assert_uint_eq(violations_due(violations), START + 1 + hour);
        for (unsigned i = 0; i < 3; i++) {
                violations_set_config(violations,
                                      &(struct violations_config) { .interval = i == 1 ? 2 * hour : INTERVAL, .threshold = 1 });
                ck_assert_uint_eq(violations_due(violations), START + 1 + INTERVAL);
        }
        assert_none(START + INTERVAL);
        ck_assert(violations_next_report(violations, START + 1 + INTERVAL, &report));
        ck_assert_int_eq(report.kind, VIOLATION_STORM);
        ck_assert_uint_eq(report.count, 10);
}
END_TEST

/* --- hosts ----------------------------------------------------------------------------------------------------------- */

static void set_host_at(uint64_t at, uint64_t guid, const char *label, const char *at_switch)
{
        struct violation_host host = { .node_guid = { guid }, .guid = { guid }, .number = 1, .label = label, .name = label,
                                       .node = label, .device = "", .at_switch = at_switch };

        ck_assert_int_eq(violations_set_host(violations, port(at), &host), 0);
}

static void set_host(uint64_t at, uint64_t guid, const char *label)
{
        set_host_at(at, guid, label, "leaf/1");
}

static uint64_t total_of(uint64_t guid, const char *label)
{
        const struct violation_record *records;
        uint64_t total = 0;
        uint32_t n;

        records = violations_records(violations, &n);
        for (uint32_t i = 0; i < n; i++)
                if (records[i].host->guid.v == guid && strcmp(records[i].host->label ?: "", label) == 0)
                        total += records[i].total;
        return total;
}

/* Two samples, of which the second one counts. */
static usec_t host_first(usec_t now, uint64_t at, enum violation_source source)
{
        const struct violation_record *records;
        uint32_t n;

        ck_assert_int_ge(violations_see_counter(violations, now - 1, port(at), source, 16, 0), 0);
        ck_assert_int_ge(violations_see_counter(violations, now, port(at), source, 16, 1), 0);
        records = violations_records(violations, &n);
        for (uint32_t i = 0; i < n; i++)
                if (records[i].first == now) {
                        ck_assert(records[i].host_first == now || records[i].host_first_since < now - 1);
                        ck_assert(records[i].host_first != now || records[i].host_first_since == now - 1);
                        return records[i].host_first;
                }
        ck_abort_msg("no record");
}

/* The first time of a host is one for each counter, and for its own port and the one beside it: what it sent says nothing of what
 * it received. It is the same at another port and under another name. */
START_TEST(the_first_time_of_a_host)
{
        set_host(7, 7, "a"); /* its own port */
        set_host(1, 7, "a"); /* of a switch */
        ck_assert_uint_eq(host_first(START + 10, 1, RCV), START + 10);
        ck_assert_uint_eq(host_first(START + 20, 1, VIOLATION_XMIT_CONSTRAINT), START + 20);
        ck_assert_uint_eq(host_first(START + 30, 7, VIOLATION_P_KEY_VIOLATIONS), START + 30);
        ck_assert_uint_eq(host_first(START + 40, 7, RCV), START + 40);
        set_host(2, 7, "a");
        ck_assert_uint_eq(host_first(START + 50, 2, RCV), START + 10);
        set_host(2, 7, "b");
        set_host(7, 7, "b");
        ck_assert_uint_eq(host_first(START + 60, 2, RCV), START + 10);
        ck_assert_uint_eq(host_first(START + 70, 7, VIOLATION_P_KEY_VIOLATIONS), START + 30);
        ck_assert_uint_eq(host_first(START + 80, 7, RCV), START + 40);
        /* another host */
        set_host(3, 8, "c");
        ck_assert_uint_eq(host_first(START + 90, 3, RCV), START + 90);
        ck_assert_uint_eq(host_first(START + 100, 3, VIOLATION_XMIT_CONSTRAINT), START + 100);
}
END_TEST

START_TEST(a_move_ends_the_episode)
{
        usec_t t = START;

        set_host(1, 7, "a");
        see(t, 1, 64, 10);
        see(t += INTERVAL, 1, 64, 13);
        assert_report(t, VIOLATION_FIRST, 1, 3, START);
        ck_assert_str_eq(report.record.host->label, "a");
        see(++t, 1, 64, 15);
        assert_none(t);
        set_host(1, 7, "a"); /* no news */
        assert_none(t);
        set_host(1, 8, "b");
        ck_assert_uint_eq(violations_due(violations), 0);
        assert_report(t, VIOLATION_MORE, 1, 2, t - 1);
        assert_report(t, VIOLATION_QUIET, 1, 5, START + INTERVAL);
        ck_assert_str_eq(report.record.host->label, "a");
        assert_none(t);
        /* either of them may have sent these */
        see(++t, 1, 64, 16);
        assert_report(t, VIOLATION_FIRST, 1, 1, t - 1);
        ck_assert_uint_eq(report.record.host->guid.v, 0);
        see(++t, 1, 64, 20);
        assert_report(t, VIOLATION_FIRST, 1, 4, t - 1);
        ck_assert_str_eq(report.record.host->label, "b");
        ck_assert_uint_eq(total_of(7, "a"), 5);
        ck_assert_uint_eq(total_of(8, "b"), 4);
        ck_assert_uint_eq(total_of(0, ""), 1);
        ck_assert_uint_eq(violations_total(violations, RCV), 10);
}
END_TEST

static uint32_t count_saturated(void)
{
        const struct violation_record *records;
        uint32_t n, saturated = 0;

        records = violations_records(violations, &n);
        for (uint32_t i = 0; i < n; i++)
                saturated += records[i].saturated;
        return saturated;
}

/* Whichever host it was when the counter reached its maximum, and whichever it is when it is not there any more. */
START_TEST(saturation_is_of_the_counter)
{
        usec_t t = START;

        set_host(1, 7, "a");
        see(t, 1, 8, 0);
        for (int i = 0; i < 8; i++) {
                if (i & 1) /* the record of an unidentified host */
                        violations_doubt_host(violations, port(1), RCV);
                see(++t, 1, 8, 255);
                ck_assert_uint_eq(count_saturated(), 1);
                if (i & 2)
                        set_host(1, i & 1 ? 7 : 8, i & 1 ? "b" : "c"); /* a new name, or another host */
                if (i & 4)
                        violations_doubt_host(violations, port(1), RCV);
                ck_assert_int_eq(see(++t, 1, 8, 255), 1);
                ck_assert_uint_eq(count_saturated(), 1);
                if (i & 1)
                        violations_counter_cleared(violations, port(1), RCV);
                else
                        see(++t, 1, 8, 0);
                ck_assert_uint_eq(count_saturated(), 0);
                see(++t, 1, 8, 0);
        }
}
END_TEST

/* One counter is at its maximum, and nothing else. */
START_TEST(saturation_is_of_one_counter)
{
        usec_t t = START;

        set_host(1, 7, "a");
        set_host(2, 8, "b");
        see(t, 1, 8, 255);
        see(t, 2, 8, 255);
        violations_see_counter(violations, t, port(1), VIOLATION_XMIT_CONSTRAINT, 8, 255);
        ck_assert_uint_eq(count_saturated(), 3);
        see(++t, 2, 8, 0);
        ck_assert_uint_eq(count_saturated(), 2);
        violations_see_counter(violations, t, port(2), VIOLATION_XMIT_CONSTRAINT, 8, 0); /* never at its maximum */
        violations_see_counter(violations, t, port(3), RCV, 8, 0);
        ck_assert_uint_eq(count_saturated(), 2);
        /* of another width it is another counter */
        set_host(1, 9, "c");
        see(++t, 1, 16, 0xffff);
        ck_assert_uint_eq(count_saturated(), 2);
        violations_counter_cleared(violations, port(1), RCV);
        ck_assert_uint_eq(count_saturated(), 1);
        violations_counter_cleared(violations, port(1), VIOLATION_XMIT_CONSTRAINT);
        ck_assert_uint_eq(count_saturated(), 0);
}
END_TEST

/* Whoever has its LID, its name or its port later. */
/* What an adapter counted stays where the adapter was then. */
START_TEST(a_move_of_an_adapter)
{
        usec_t t = START;

        set_host_at(7, 7, "a", "leaf/1");
        see(t, 7, 16, 10);
        see(t += INTERVAL, 7, 16, 13);
        assert_report(t, VIOLATION_FIRST, 7, 3, START);
        set_host_at(7, 7, "a", "leaf/2");
        assert_report(t, VIOLATION_QUIET, 7, 3, t);
        ck_assert_str_eq(report.record.host->at_switch, "leaf/1");
        see(++t, 7, 16, 14);
        assert_report(t, VIOLATION_FIRST, 7, 1, t - 1);
        ck_assert_str_eq(report.record.host->at_switch, "leaf/2");
        ck_assert_uint_eq(report.record.host->guid.v, 7);
        ck_assert_uint_eq(total_of(7, "a"), 4);
}
END_TEST

START_TEST(a_notice_keeps_its_hosts)
{
        const struct notice n = make_notice(259, 0x8001, 1, 2);
        struct violation_ends ends = { .from = { .guid = { 7 }, .label = "a", .name = "a" },
                                       .to = { .guid = { 9 }, .label = "c", .name = "c" }, .from_conflicts = true };

        set_host(1, 7, "a");
        ck_assert_int_eq(violations_see_notice(violations, START, port(1), &n, &ends), 0);
        set_host(1, 8, "b");
        ends.from = (struct violation_host) { .guid = { 8 }, .label = "b", .name = "b" };
        ends.from_conflicts = false;
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(violations_see_notice(violations, START, port(1), &n, &ends), 0);
        ends.to.guid.v = 10;
        ck_assert_int_eq(violations_see_notice(violations, START, port(1), &n, &ends), 0);
        ck_assert_uint_eq(total_of(7, "a"), 1);
        ck_assert_uint_eq(total_of(8, "b"), 3);
        assert_report(START, VIOLATION_FIRST, 1, 1, 0);
        ck_assert_str_eq(report.record.host->label, "a");
        ck_assert_str_eq(report.record.from->label, "a");
        ck_assert_uint_eq(report.record.to->guid.v, 9);
        ck_assert(report.record.from_conflicts);
        assert_report(START, VIOLATION_FIRST, 1, 2, 0);
        ck_assert_str_eq(report.record.from->label, "b");
        ck_assert(!report.record.from_conflicts);
        assert_report(START, VIOLATION_FIRST, 1, 1, 0);
        ck_assert_uint_eq(report.record.to->guid.v, 10);
}
END_TEST

START_TEST(a_new_name_is_a_new_record)
{
        set_host(1, 7, "a");
        see(START, 1, 64, 0);
        see(START + 1, 1, 64, 3);
        set_host(1, 7, "b");
        see(START + 2, 1, 64, 5);
        ck_assert_uint_eq(total_of(7, "a"), 3);
        ck_assert_uint_eq(total_of(7, "b"), 2);
}
END_TEST

START_TEST(a_doubted_host_is_not_named)
{
        set_host(1, 7, "a");
        violations_doubt_host(violations, port(2), RCV); /* never sampled */
        violations_doubt_host(violations, port(1), RCV); /* a first sample counts nothing */
        see(START, 1, 64, 0);
        see(START + 1, 1, 64, 3);
        violations_doubt_host(violations, port(1), RCV);
        see(START + 2, 1, 64, 5);
        see(START + 3, 1, 64, 6);
        ck_assert_uint_eq(total_of(7, "a"), 4);
        ck_assert_uint_eq(total_of(0, ""), 2);
}
END_TEST

/* A storm is reported at the end of its interval, and then the end of a part of it. */
START_TEST(a_move_in_a_storm)
{
        unsigned n_quiet = 0, n_storms = 0;
        usec_t t = START + 1;

        for (unsigned i = 1; i <= 40; i++) {
                set_host(i, 100 + i, "a");
                see(START, i, 64, 0);
                see(t, i, 64, 1);
        }
        while (violations_next_report(violations, t, &report))
                ck_assert_int_eq(report.kind, VIOLATION_FIRST);
        for (unsigned i = 1; i <= 40; i++)
                set_host(i, 200 + i, "b");
        for (usec_t end = t + 10 * INTERVAL; t < end; t = MAX(t + 1, MIN(violations_due(violations), end)))
                while (violations_next_report(violations, t, &report)) {
                        n_quiet += report.kind == VIOLATION_QUIET ? 1 : report.kind == VIOLATION_ALL_QUIET ? report.n_ports : 0;
                        n_storms += report.kind == VIOLATION_STORM;
                }
        ck_assert_uint_eq(n_storms, 1);
        ck_assert_uint_eq(n_quiet, 40);
        ck_assert_uint_eq(violations_due(violations), USEC_INFINITY);
}
END_TEST

/* --- storms ---------------------------------------------------------------------------------------------------------- */

#define STORM 300

static void all_see(usec_t now, unsigned n, uint64_t value)
{
        for (unsigned i = 1; i <= n; i++)
                see(now, i, 64, value * i);
}

static unsigned drain(usec_t now, enum violation_kind kind, uint64_t *ret_count)
{
        unsigned n = 0;

        while (violations_next_report(violations, now, &report)) {
                ck_assert_int_eq(report.kind, kind);
                *ret_count += report.count;
                n++;
        }
        return n;
}

START_TEST(a_storm_is_summed_up)
{
        usec_t t = START + INTERVAL;
        uint64_t told = 0;

        all_see(START, STORM, 0);
        all_see(t, STORM, 1);
        ck_assert_uint_eq(drain(t, VIOLATION_FIRST, &told), VIOLATIONS_STORM_PORTS);
        ck_assert_uint_eq(told, 16 * 17 / 2);
        assert_none(t + INTERVAL - 1);
        ck_assert_uint_eq(violations_due(violations), t + INTERVAL);
        ck_assert(violations_next_report(violations, t + INTERVAL, &report));
        ck_assert_int_eq(report.kind, VIOLATION_STORM);
        ck_assert_uint_eq(report.n_ports, STORM - 16);
        ck_assert_uint_eq(report.count, STORM * (STORM + 1) / 2 - told);
        ck_assert_uint_eq(report.since, START);
        ck_assert_uint_eq(report.n_worst, VIOLATIONS_WORST);
        for (unsigned i = 0; i < VIOLATIONS_WORST; i++) {
                ck_assert_uint_eq(report.worst[i].port.node_guid.v, STORM - i);
                ck_assert_uint_eq(report.worst[i].unreported, STORM - i);
        }
        assert_none(t + INTERVAL);
        ck_assert_uint_eq(violations_total(violations, RCV), STORM * (STORM + 1) / 2);

        /* It goes on: one line in an interval, but new violations are reported at once. */
        all_see(t + INTERVAL + 5, STORM, 2);
        see(t + INTERVAL + 6, STORM + 1, 64, 0);
        see(t + INTERVAL + 7, STORM + 1, 64, 5);
        assert_report(t + INTERVAL + 7, VIOLATION_FIRST, STORM + 1, 5, t + INTERVAL + 6);
        assert_none(t + INTERVAL + 7);
        ck_assert(violations_next_report(violations, t + 2 * INTERVAL, &report));
        ck_assert_int_eq(report.kind, VIOLATION_STORM);
        ck_assert_uint_eq(report.n_ports, STORM);
        ck_assert_uint_eq(report.count, STORM * (STORM + 1) / 2);
        assert_none(t + 2 * INTERVAL);
}
END_TEST

START_TEST(a_storm_ends_with_one_line)
{
        usec_t t = START + INTERVAL, end;
        uint64_t told = 0, sum = STORM * (STORM + 1) / 2;
        unsigned n = 0;

        all_see(START, STORM, 0);
        for (unsigned i = 1; i <= 3; i++) {
                all_see(t, STORM, i);
                while (violations_next_report(violations, t, &report))
                        told += report.count;
                t += INTERVAL;
        }
        end = t + 20 * INTERVAL;
        for (; t < end; t += USEC_PER_SEC)
                while (violations_next_report(violations, t, &report)) {
                        if (report.kind == VIOLATION_STORM) {
                                told += report.count;
                                continue;
                        }
                        ck_assert_int_eq(report.kind, VIOLATION_ALL_QUIET);
                        ck_assert_uint_eq(report.n_ports, STORM);
                        ck_assert_uint_eq(report.count, 3 * sum);
                        ck_assert_uint_eq(report.since, START + INTERVAL);
                        ck_assert_uint_eq(report.worst[0].unreported, 3 * STORM);
                        n++;
                }
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(told, 3 * sum);
        ck_assert_uint_eq(violations_due(violations), USEC_INFINITY);
}
END_TEST

/* Too few of those reported in a sum become quiet at the same time for another sum. */
START_TEST(a_storm_that_ends_bit_by_bit)
{
        usec_t t = START + INTERVAL;
        unsigned n_quiet = 0;

        all_see(START, 20, 0);
        for (unsigned i = 1; i < 20; i++, t += INTERVAL) {
                /* the first 15 stop after a while */
                for (unsigned n = i < 4 ? 1 : 16; n <= 20; n++)
                        see(t, n, 64, i);
                while (violations_next_report(violations, t, &report)) {
                        ck_assert_int_ne(report.kind, VIOLATION_ALL_QUIET);
                        n_quiet += report.kind == VIOLATION_QUIET;
                }
        }
        ck_assert_uint_eq(n_quiet, 15);
        for (usec_t end = t + 20 * INTERVAL; t < end; t += USEC_PER_SEC)
                while (violations_next_report(violations, t, &report))
                        n_quiet += report.kind == VIOLATION_QUIET;
        ck_assert_uint_eq(n_quiet, 20);
}
END_TEST

START_TEST(sixteen_are_no_storm)
{
        usec_t t = START + INTERVAL;
        uint64_t told = 0;

        all_see(START, 16, 0);
        for (unsigned i = 1; i <= 4; i++) {
                all_see(t, 16, i);
                ck_assert_uint_eq(drain(t, i == 1 ? VIOLATION_FIRST : VIOLATION_MORE, &told), 16);
                t += INTERVAL;
        }
        ck_assert_uint_eq(drain(t + 4 * INTERVAL, VIOLATION_QUIET, &told), 16);
}
END_TEST

/* When as many as the limit go on after a storm, they are reported one by one; one more is a storm. */
START_TEST(a_storm_down_to_the_limit)
{
        usec_t t = START + INTERVAL;
        uint64_t told = 0;

        all_see(START, STORM, 0);
        all_see(t, STORM, 1);
        ck_assert_uint_eq(drain(t, VIOLATION_FIRST, &told), VIOLATIONS_STORM_PORTS);
        ck_assert_uint_eq(drain(t += INTERVAL, VIOLATION_STORM, &told), 1);
        all_see(t + 1, VIOLATIONS_STORM_PORTS + 1, 2);
        ck_assert_uint_eq(drain(t + 1, VIOLATION_STORM, &told), 0);
        ck_assert_uint_eq(drain(t += INTERVAL, VIOLATION_STORM, &told), 1);
        all_see(t + 1, VIOLATIONS_STORM_PORTS, 3);
        ck_assert_uint_eq(drain(t + 1, VIOLATION_MORE, &told), 0);
        ck_assert_uint_eq(drain(t += INTERVAL, VIOLATION_MORE, &told), VIOLATIONS_STORM_PORTS);
}
END_TEST

/* Of those that were reported one by one in several intervals, more than the limit become quiet in one. */
START_TEST(quiet_has_a_limit)
{
        usec_t t = START;
        uint64_t told = 0;

        all_see(t, 20, 0);
        all_see(t += INTERVAL, 10, 1);
        ck_assert_uint_eq(drain(t, VIOLATION_FIRST, &told), 10);
        for (unsigned i = 11; i <= 20; i++)
                see(t + INTERVAL, i, 64, 1);
        ck_assert_uint_eq(drain(t += INTERVAL, VIOLATION_FIRST, &told), 10);
        t += 10 * INTERVAL;
        ck_assert_uint_eq(drain(t, VIOLATION_QUIET, &told), VIOLATIONS_STORM_PORTS);
        ck_assert_uint_eq(violations_due(violations), t + INTERVAL);
        ck_assert_uint_eq(drain(t + INTERVAL, VIOLATION_ALL_QUIET, &told), 1);
        ck_assert_uint_eq(report.n_ports, 4);
}
END_TEST

/* A port with two records is one port. */
START_TEST(a_storm_counts_ports)
{
        for (unsigned i = 0; i < 20; i++)
                for (unsigned n = 0; n < 2; n++)
                        for (unsigned s = 0; s < 2; s++)
                                violations_see_counter(violations, START, port(i), (enum violation_source) (1 + s), 8, n);
        for (unsigned i = 0; i < 16; i++)
                ck_assert(violations_next_report(violations, START, &report));
        assert_none(START);
        ck_assert(violations_next_report(violations, START + INTERVAL, &report));
        ck_assert_int_eq(report.kind, VIOLATION_STORM);
        ck_assert_uint_eq(report.count, 24);
        ck_assert_uint_eq(report.n_ports, 12);
}
END_TEST

/* --- bounds ---------------------------------------------------------------------------------------------------------- */

START_TEST(records_are_bounded)
{
        uint32_t n, extra = 1000;
        uint64_t told = 0;

        for (uint32_t i = 0; i < VIOLATIONS_MAX_RECORDS + extra; i++) {
                struct notice notice = make_notice(259, i, 1, 2);

                ck_assert_int_eq(violations_see_notice(violations, START + i, port(9), &notice, &no_ends), 0);
                while (violations_next_report(violations, START + i, &report))
                        told += report.count;
        }
        ck_assert_uint_eq(violations_total(violations, VIOLATION_NOTICE_259), VIOLATIONS_MAX_RECORDS + extra);
        ck_assert_uint_eq(violations_records(violations, &n)[0].notice.key, extra);
        ck_assert_uint_eq(n, VIOLATIONS_MAX_RECORDS);
        for (usec_t t = START; t < START + 20 * INTERVAL; t += INTERVAL / 4)
                while (violations_next_report(violations, t, &report))
                        if (report.kind == VIOLATION_STORM)
                                told += report.count;
        ck_assert_uint_le(told, VIOLATIONS_MAX_RECORDS + extra);
        ck_assert_uint_ge(told, VIOLATIONS_MAX_RECORDS);
}
END_TEST

START_TEST(numbers_stop_at_their_maximum)
{
        see(START, 1, 64, 0);
        see(START + 1, 1, 64, UINT64_MAX - 5);
        see(START + 2, 1, 64, 100);
        see(START + 3, 1, 64, UINT64_MAX - 5);
        ck_assert_uint_eq(only_record()->total, UINT64_MAX);
        ck_assert_uint_eq(violations_total(violations, RCV), UINT64_MAX);
}
END_TEST

/* --- random histories ------------------------------------------------------------------------------------------------ */

#define PORTS 40

/* The hardware, and what a naive reader makes of it. */
struct model {
        unsigned bits;
        uint64_t value, last;
        bool seen;
        uint64_t total, told;
        usec_t told_at;
};

static uint64_t rng_state;

static uint64_t rng(uint64_t below)
{
        rng_state ^= rng_state << 13;
        rng_state ^= rng_state >> 7;
        rng_state ^= rng_state << 17;
        return rng_state % below;
}

static void model_sample(struct model *m, usec_t now, unsigned i)
{
        ck_assert_int_ge(see(now, i + 1, m->bits, m->value), 0);
        if (m->seen)
                m->total += m->value >= m->last ? m->value - m->last : m->value;
        m->last = m->value;
        m->seen = true;
}

static void model_move(struct model *m)
{
        uint64_t max = (UINT64_C(1) << m->bits) - 1, moved = rng(4) * rng(40);

        if (rng(50) == 0)
                m->value = rng(3); /* rebooted */
        else
                m->value = MIN(max, m->value + moved);
}

/* Told by one report. */
static void model_report(struct model *models, usec_t now, uint64_t *in_sums)
{
        struct model *m = &models[report.record.port.node_guid.v - 1];

        if (report.kind == VIOLATION_STORM) {
                *in_sums += report.count;
                return;
        }
        if (report.kind == VIOLATION_ALL_QUIET)
                return;
        ck_assert_uint_eq(report.record.total, m->total);
        ck_assert_uint_eq(report.record.unreported, 0);
        if (report.kind == VIOLATION_QUIET) {
                ck_assert_uint_ge(now, report.record.last + 5 * INTERVAL);
                ck_assert_uint_le(report.count, m->total);
                return;
        }
        m->told += report.count;
        if (report.kind == VIOLATION_MORE)
                ck_assert_uint_ge(now, m->told_at + INTERVAL);
        m->told_at = now;
}

START_TEST(random_histories)
{
        struct model models[PORTS] = {};
        uint64_t in_sums = 0, told = 0, total = 0;
        unsigned n_ports = 1 + (unsigned) _i % PORTS, n_lines = 0;
        usec_t now = START, loud_until = START + 60 * INTERVAL, window = START;
        uint64_t threshold = _i % 4 == 3 ? 30 : 1;

        rng_state = 88172645463325252u + (uint64_t) _i * 7919;
        set_threshold(threshold);
        for (unsigned i = 0; i < n_ports; i++)
                models[i].bits = (unsigned[]) { 8, 16, 32 }[rng(3)];
        while (now < loud_until + 30 * INTERVAL) {
                unsigned i = (unsigned) rng(n_ports);
                usec_t due = violations_due(violations);

                /* Nothing is reported before it is due. */
                now += 1 + rng(2 * INTERVAL / n_ports);
                if (due > now)
                        ck_assert(!violations_next_report(violations, MIN(now, due - 1), &report));
                if (now < loud_until && rng(4) > 0) {
                        model_move(&models[i]);
                        model_sample(&models[i], now, i);
                }
                if (now >= window + INTERVAL) {
                        window = now;
                        n_lines = 0;
                }
                while (violations_next_report(violations, now, &report)) {
                        model_report(models, now, &in_sums);
                        n_lines++;
                }
                /* two of the violation table's intervals may touch one of these: 16 of news, 16 of quiet, sums and late ones
                 * each */
                ck_assert_uint_le(n_lines, 2 * (2 * VIOLATIONS_STORM_PORTS + 4));
        }
        for (unsigned i = 0; i < n_ports; i++) {
                told += models[i].told;
                total += models[i].total;
                ck_assert_uint_le(models[i].told, models[i].total);
        }
        ck_assert_uint_eq(violations_total(violations, RCV), total);
        if (threshold == 1)
                ck_assert_uint_eq(told + in_sums, total);
        ck_assert_uint_le(told + in_sums, total);
        ck_assert_uint_gt(told + in_sums, 0);
        if (n_ports <= VIOLATIONS_STORM_PORTS / 2)
                ck_assert_uint_eq(in_sums, 0);
        ck_assert_uint_eq(violations_due(violations), USEC_INFINITY);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("violations");
        TCase *t = tcase_create("violations");
        SRunner *r;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 300);
        tcase_add_test(t, counter_counts_differences);
        tcase_add_test(t, small_counters_saturate);
        tcase_add_test(t, wide_counters_go_round);
        tcase_add_test(t, first_look_is_no_violation);
        tcase_add_test(t, an_episode);
        tcase_add_test(t, saturation_is_said_once);
        tcase_add_test(t, saturated_from_the_beginning);
        tcase_add_test(t, threshold_is_of_an_interval);
        tcase_add_test(t, notices_by_key_and_ends);
        tcase_add_test(t, a_shorter_interval);
        tcase_add_test(t, the_first_time_of_a_host);
        tcase_add_test(t, a_move_ends_the_episode);
        tcase_add_test(t, a_move_of_an_adapter);
        tcase_add_test(t, saturation_is_of_the_counter);
        tcase_add_test(t, saturation_is_of_one_counter);
        tcase_add_test(t, a_notice_keeps_its_hosts);
        tcase_add_test(t, a_new_name_is_a_new_record);
        tcase_add_test(t, a_doubted_host_is_not_named);
        tcase_add_test(t, a_move_in_a_storm);
        tcase_add_test(t, a_storm_is_summed_up);
        tcase_add_test(t, a_storm_ends_with_one_line);
        tcase_add_test(t, a_storm_that_ends_bit_by_bit);
        tcase_add_test(t, sixteen_are_no_storm);
        tcase_add_test(t, a_storm_down_to_the_limit);
        tcase_add_test(t, quiet_has_a_limit);
        tcase_add_test(t, a_storm_counts_ports);
        tcase_add_test(t, records_are_bounded);
        tcase_add_test(t, numbers_stop_at_their_maximum);
        tcase_add_loop_test(t, random_histories, 0, 80);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed != 0;
}
