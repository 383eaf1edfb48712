/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the daemon shows violations: a report as a journal entry and as an item, an item as a D-Bus message. */

#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>

#include "pkeyd/bus_message.h"
#include "pkeyd/violation_text.h"

static sd_bus *bus;
static int ends[2];
static struct arena *arena;
static const char *sent; /* the fields of the last entry, each with a newline behind it */

int __wrap_sd_journal_sendv(const struct iovec *fields, int n);

int __wrap_sd_journal_sendv(const struct iovec *fields, int n)
{
        sent = "";
        for (int i = 0; i < n; i++)
                sent = arena_printf(arena, "%s%.*s\n", sent, (int) fields[i].iov_len, (const char *) fields[i].iov_base);
        return 0;
}

/* As if systemd had connected stderr to the journal. */
static struct journal native_journal(void)
{
        struct journal j;
        struct stat st;

        ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
        ck_assert_int_eq(setenv("JOURNAL_STREAM",
                                arena_printf(arena, "%llu:%llu", (unsigned long long) st.st_dev, (unsigned long long) st.st_ino),
                                1), 0);
        journal_init(&j, NULL, false);
        ck_assert(j.output.native);
        return j;
}

static void check_field(const char *name, const char *value)
{
        const char *field = arena_printf(arena, "\n%s=%s\n", name, value);

        ck_assert_msg(strstr(sent, field), "no %s=%s in\n%s", name, value, sent);
}

/* Messages need a connection that was started, but no bus. */
static void setup(void)
{
        arena = arena_new();
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        ck_assert_int_ge(sd_bus_new(&bus), 0);
        ck_assert_int_ge(sd_bus_set_fd(bus, ends[0], ends[0]), 0);
        ck_assert_int_ge(sd_bus_start(bus), 0);
}

static void teardown(void)
{
        sd_bus_close(bus);
        sd_bus_unref(bus);
        (void) close(ends[1]);
        arena_free(arena);
}

/* "Key=value ..." of an a{sv}. */
static const char *text_of(sd_bus_message *m)
{
        const char *key, *contents, *text = "";
        union {
                const char *s;
                uint64_t t;
                uint32_t u;
                uint16_t q;
                uint8_t y;
                int b;
        } v;

        ck_assert_int_gt(sd_bus_message_enter_container(m, 'a', "{sv}"), 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                ck_assert_int_gt(sd_bus_message_read_basic(m, 's', &key), 0);
                ck_assert_int_gt(sd_bus_message_peek_type(m, NULL, &contents), 0);
                ck_assert_int_gt(sd_bus_message_enter_container(m, 'v', contents), 0);
                ck_assert_int_gt(sd_bus_message_read_basic(m, *contents, &v), 0);
                if (*contents == 's')
                        text = arena_printf(arena, "%s%s=%s ", text, key, v.s);
                else
                        text = arena_printf(arena, "%s%s=%s:%" PRIu64 " ", text, key, contents,
                                            *contents == 't'   ? v.t
                                            : *contents == 'u' ? v.u
                                            : *contents == 'q' ? v.q
                                            : *contents == 'y' ? v.y
                                                               : (uint64_t) v.b);
                ck_assert_int_ge(sd_bus_message_exit_container(m), 0);
                ck_assert_int_ge(sd_bus_message_exit_container(m), 0);
        }
        return text;
}

static const char *shown(const struct violation_item *item)
{
        struct bus_builder b = {};
        const char *text;

        ck_assert_int_ge(sd_bus_message_new_signal(bus, &b.message, "/a", "a.b", "c"), 0);
        bus_append_violation(&b, item);
        ck_assert_int_ge(b.r, 0);
        ck_assert_int_ge(sd_bus_message_seal(b.message, 1, 0), 0);
        ck_assert_int_ge(sd_bus_message_rewind(b.message, true), 0);
        text = text_of(b.message);
        sd_bus_message_unref(b.message);
        return text;
}

START_TEST(all_that_is_known)
{
        const struct violation_item item = {
                .kind = "first",
                .about = {
                        .source = "notice", .node = "node0001 mlx5_0/1", .port_guid.v = 0x1122334455667788, .lid.v = 40000,
                        .port = 200, .switch_name = "leaf01/7", .partition = "tenant-a", .p_key.v = 0x8123,
                        .count = UINT64_C(5000000000), .total = UINT64_C(6000000000), .generation = 9,
                },
                .n_ports = 3, .first = UINT64_C(7000000000), .last = UINT64_C(8000000000), .names_sender = 1,
                .saturated = 1, .text = "a sentence",
        };

        ck_assert_str_eq(shown(&item), "Kind=first Source=notice Node=node0001 mlx5_0/1 PortGuid=t:1234605616436508552 Lid=q:40000 "
                                       "Port=y:200 Switch=leaf01/7 Partition=tenant-a PKey=q:33059 Count=t:5000000000 "
                                       "Total=t:6000000000 Ports=u:3 First=t:7000000000 Last=t:8000000000 NamesSender=b:1 "
                                       "Saturated=b:1 Text=a sentence ");
}
END_TEST

START_TEST(what_is_not_known_is_not_there)
{
        struct violation_item item = {};

        ck_assert_str_eq(shown(&item), "Total=t:0 NamesSender=b:0 Saturated=b:0 ");
        /* members for which 0 is a value */
        item.kind = "more";
        item.about.node = "node0001";
        ck_assert_str_eq(shown(&item), "Kind=more Node=node0001 Port=y:0 Count=t:0 Total=t:0 NamesSender=b:0 Saturated=b:0 ");
        /* members that are omitted with another one */
        item = (struct violation_item) { .about = { .port = 4, .count = 5 }, .text = "\xff" };
        ck_assert_str_eq(shown(&item), "Total=t:0 NamesSender=b:0 Saturated=b:0 Text=\\xff ");
}
END_TEST

START_TEST(reports)
{
        static const struct {
                enum violation_kind kind;
                const char *name, *source, *id, *journal_total;
                uint64_t total;
        } cases[] = {
#define ONE "port_rcv_constraint_errors"
                { VIOLATION_FIRST, "first", ONE, "1ec5c9321bb64fc6bdb058d6ede1577f", "12", 12 },
                { VIOLATION_MORE, "more", ONE, "1ec5c9321bb64fc6bdb058d6ede1577f", "12", 12 },
                { VIOLATION_SATURATED, "saturated", ONE, "d9664498de54467eb7a0ae14751537ea", "12", 12 },
                { VIOLATION_QUIET, "quiet", ONE, "752d636c3b284d18900a695dccc391f0", "12", 12 },
                { VIOLATION_STORM, "storm", "storm", "442e5cde9d7f491195f26b61a6a7fd78", "7", 0 },
                { VIOLATION_ALL_QUIET, "all-quiet", "storm", "752d636c3b284d18900a695dccc391f0", "7", 0 },
#undef ONE
        };
        const struct attribution_input context = { .now = 2000 };
        struct violation_report report = {
                .record = { .source = VIOLATION_RCV_CONSTRAINT, .total = 12, .saturated = true, .first = 1000, .last = 1000 },
                .count = 7, .n_ports = 2,
        };
        struct journal j = native_journal();
        struct violation_item item;

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                report.kind = cases[i].kind;
                ck_assert(violation_text_log(&j, arena, 3, &context, &report, &item));
                ck_assert_str_eq(item.kind, cases[i].name);
                ck_assert_str_eq(item.about.source, cases[i].source);
                ck_assert_uint_eq(item.about.count, 7);
                ck_assert_uint_eq(item.about.total, cases[i].total);
                ck_assert_uint_eq(item.n_ports, 2);
                ck_assert_int_eq(item.saturated, cases[i].total > 0);
                ck_assert_int_eq(item.last != 0, cases[i].total > 0);
                ck_assert_str_eq(sent, arena_printf(arena, "MESSAGE=%s\n%s", item.text, strstr(sent, "PRIORITY=")));
                check_field("MESSAGE_ID", cases[i].id);
                check_field("PKEYD_GENERATION", "3");
                check_field("PKEYD_SOURCE", cases[i].source);
                check_field("PKEYD_COUNT", "7");
                check_field("PKEYD_TOTAL", cases[i].journal_total);
        }
}
END_TEST

START_TEST(of_a_notice)
{
        const struct attribution_input context = { .now = 2000 };
        const struct violation_host from = { .label = "LID 3" }, to = { .label = "somebody" };
        struct violation_report report = {
                .kind = VIOLATION_FIRST,
                .record = { .source = VIOLATION_NOTICE_257,
                            .from = &from, .to = &to,
                            .total = 1,
                            .notice = { .trap = NOTICE_P_KEY, .key = 0x8005, .lid1.v = 3 } },
                .count = 1,
        };
        struct journal j = native_journal();
        struct violation_item item;

        ck_assert(violation_text_log(&j, arena, 0, &context, &report, &item));
        check_field("MESSAGE_ID", "2eb7a2693a6f41ffb64d08dd02f1acca");
        check_field("PKEYD_PKEY", "0x8005");
        ck_assert_ptr_null(strstr(sent, "PKEYD_GENERATION"));
        ck_assert_uint_eq(item.about.p_key.v, 0x8005);
        report.kind = VIOLATION_QUIET;
        ck_assert(violation_text_log(&j, arena, 0, &context, &report, &item));
        check_field("MESSAGE_ID", "752d636c3b284d18900a695dccc391f0");
}
END_TEST

START_TEST(without_memory)
{
        const struct attribution_input context = {};
        const struct violation_report report = {
                .kind = VIOLATION_STORM, .record = { .source = VIOLATION_RCV_CONSTRAINT, .total = 12 }, .count = 7,
        };
        struct journal j = native_journal();
        struct violation_item item;

        ck_assert(!violation_text_log(&j, NULL, 3, &context, &report, &item));
        ck_assert_str_eq(sent, arena_printf(arena, "MESSAGE=7 violations (storm)\n%s", strstr(sent, "PRIORITY=")));
        check_field("PKEYD_COUNT", "7");
        check_field("PKEYD_TOTAL", "7");
}
END_TEST

START_TEST(subscription_refused)
{
        struct journal j = native_journal();
        struct notices_status status = { .state = NOTICES_REFUSED };

        violation_text_notices(&j, &status, true);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=the SA refused the subscription to P_Key violations (traps 257 to 259): its answer does "
                                      "not accept it; pkeyd still polls counters\n"), sent);
        status.mad_status = 0x0200;
        violation_text_notices(&j, &status, true);
        ck_assert_ptr_nonnull(strstr(sent, arena_printf(arena, "259): %s; pkeyd", mad_status_to_string(0x0200))));
}
END_TEST

START_TEST(ports_that_are_not_asked_in_time)
{
        struct violation_poll_counters poll = { .n_ports = 2368, .n_silent = 600, .interval = 5 * USEC_PER_SEC,
                                                .cycle_duration = 340 * USEC_PER_SEC, .is_late = true };
        struct journal j = native_journal();

        violation_text_poll(&j, &poll);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=600 of 2,368 ports did not answer when pkeyd polled their violation counters; polling "
                                      "each of them once takes 6 minutes, longer than violations.interval (5 seconds); "), sent);
        check_field("MESSAGE_ID", "2d6fc449e6074094809cc0fce169f887");
        check_field("PRIORITY", "4");
        poll.cycle_duration = 0;
        violation_text_poll(&j, &poll);
        ck_assert_ptr_nonnull(strstr(sent, " once takes several rounds, longer than "));
        poll.cycle_duration = 14 * USEC_PER_SEC;
        poll.is_slow = true;
        violation_text_poll(&j, &poll);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=polling the violation counters of 2,368 ports takes 14 seconds, longer than "
                                      "violations.interval (5 seconds), and 600 of them did not answer: "), sent);
        poll = (struct violation_poll_counters) { .n_ports = 1, .n_silent = 0, .interval = 60 * USEC_PER_SEC };
        violation_text_poll(&j, &poll);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=pkeyd polls the violation counters of every port within violations.interval "
                                      "(60 seconds) again; 0 of 1 port did not answer\n"), sent);
        check_field("MESSAGE_ID", "e1b2afe4e61a421d9be496ebdb0a9c9a");
        check_field("PRIORITY", "5");
}
END_TEST

/* Each severity has a priority of its own, whatever the event has. */
START_TEST(findings)
{
        static const struct {
                enum finding_severity severity;
                int priority;
        } cases[] = { { FINDING_ERROR, LOG_ERR }, { FINDING_WARNING, LOG_WARNING }, { FINDING_NOTE, LOG_INFO } };
        struct journal j = native_journal();

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct finding f = { .severity = cases[i].severity, .text = "a finding", .hint = "a hint" };
                const struct log_entry entry = { .event = LOG_EVENT_FINDING, .finding = &f, .text = f.text };

                journal_entry(&j, &entry);
                ck_assert_ptr_eq(strstr(sent, "MESSAGE=a finding (hint: a hint)\n"), sent);
                check_field("PRIORITY", arena_printf(arena, "%d", cases[i].priority));
        }
}
END_TEST

START_TEST(finding_with_its_place)
{
        struct finding f = { .severity = FINDING_WARNING,
                             .text = "a finding",
                             .where = { .file = "a.yaml", .line = 3, .column = 7 } };
        const struct log_entry entry = { .event = LOG_EVENT_FINDING, .finding = &f, .text = f.text, .about.where = &f.where };
        struct journal j = native_journal();

        journal_entry(&j, &entry);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=a.yaml:3:7: warning: a finding\n"), sent);
        check_field("CONFIG_LINE", "3");
        f.where.line = 0;
        f.hint = "a hint";
        journal_entry(&j, &entry);
        ck_assert_ptr_eq(strstr(sent, "MESSAGE=a.yaml: warning: a finding (hint: a hint)\n"), sent);
        check_field("CONFIG_FILE", "a.yaml");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("violation_item");
        TCase *t = tcase_create("violation_item");
        SRunner *r;
        int n_failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, all_that_is_known);
        tcase_add_test(t, what_is_not_known_is_not_there);
        tcase_add_test(t, reports);
        tcase_add_test(t, of_a_notice);
        tcase_add_test(t, without_memory);
        tcase_add_test(t, subscription_refused);
        tcase_add_test(t, ports_that_are_not_asked_in_time);
        tcase_add_test(t, findings);
        tcase_add_test(t, finding_with_its_place);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
