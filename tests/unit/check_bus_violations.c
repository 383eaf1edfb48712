/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The method Violations over a socket pair: which calls are answered, in which order, and which are refused. */

#include <check.h>
#include <string.h>
#include <sys/socket.h>

#include "pkeyd/bus_message.h"
#include "pkeyd/bus_violations.h"
#include "shell/shell.h"

#define PATH      "/test"
#define INTERFACE "org.test"
#define MAX_SEEN  64

static sd_event *event;
static sd_bus *server, *client;
static struct bus_violations violations;
static usec_t now, duration; /* the time of the clock, and how long collecting records takes */
static unsigned n_collected;
static uint32_t n_earlier; /* records that are not given */
static uint32_t total;     /* in the last answer */
static char seen[MAX_SEEN][512]; /* the answers in their order: the name of the call, and the error */
static size_t n_seen;

usec_t __wrap_clock_now(void);
usec_t __real_clock_now(void);

usec_t __wrap_clock_now(void)
{
        return now;
}

static int records(void *userdata, struct arena *a, usec_t since, uint32_t max, struct violation_item **ret, uint32_t *ret_n,
                   uint32_t *ret_all)
{
        struct violation_item *item = arena_new_array(a, struct violation_item, 1);

        (void) userdata;
        (void) since;
        ck_assert_uint_eq(max, BUS_MAX_RECORDS);
        *item = (struct violation_item) { .about.node = "node0001 mlx5_0/1" };
        n_collected++;
        now += duration;
        *ret = item;
        *ret_n = 1;
        *ret_all = 1 + n_earlier;
        return 0;
}

static void summarize(void *userdata, struct violation_summary *ret)
{
        (void) userdata;
        *ret = (struct violation_summary) { .since = USEC_PER_SEC };
}

static const struct violation_list list = { .records = records, .summarize = summarize };
static struct control_status status;

static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_violations_take(userdata, call, error);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Violations", "ts", "tuaa{sv}", on_call, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        (void) error;
        ck_assert_uint_lt(n_seen, MAX_SEEN);
        if (!e && sd_bus_message_has_signature(reply, "tuaa{sv}")) {
                uint64_t since;

                ck_assert_int_ge(sd_bus_message_read(reply, "tu", &since, &total), 0);
        }
        (void) snprintf(seen[n_seen++], sizeof(seen[0]), "%s%s%s%s%s", (const char *) userdata, e ? " " : "", e ? e->name : "",
                        e ? ": " : "", e ? e->message : "");
        return 1;
}

/* Sets the sender, as a bus does. */
static void send_call(const char *name, const char *sender, const char *interface, const char *member, const char *node)
{
        sd_bus_message *call = NULL;

        ck_assert_int_ge(sd_bus_message_new_method_call(client, &call, NULL, PATH, interface, member), 0);
        if (sender)
                ck_assert_int_ge(sd_bus_message_set_sender(call, sender), 0);
        if (node)
                ck_assert_int_ge(sd_bus_message_append(call, "ts", UINT64_C(0), node), 0);
        ck_assert_int_ge(sd_bus_call_async(client, NULL, call, on_answer, (void *) name, UINT64_MAX), 0);
        sd_bus_message_unref(call);
}

static void violations_of(const char *name, const char *sender, const char *node)
{
        send_call(name, sender, INTERFACE, "Violations", node);
}

/* Calls another method, in the place of Status. */
static void ping(void)
{
        send_call("ping", NULL, "org.freedesktop.DBus.Peer", "Ping", NULL);
}

static void expect(const char *answer)
{
        static size_t next;

        next = n_seen == 0 ? 0 : next;
        while (next == n_seen)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        ck_assert_str_eq(seen[next], answer);
        next++;
}

static void setup(void)
{
        sd_id128_t id = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);
        int ends[2];

        n_seen = n_collected = 0;
        duration = 0;
        now = 1;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(bus_violations_init(&violations, event, &status, &list), 0);
        ck_assert_int_ge(sd_bus_new(&server), 0);
        ck_assert_int_ge(sd_bus_set_fd(server, ends[0], ends[0]), 0);
        ck_assert_int_ge(sd_bus_set_server(server, 1, id), 0);
        ck_assert_int_ge(sd_bus_add_object_vtable(server, NULL, PATH, INTERFACE, vtable, &violations), 0);
        ck_assert_int_ge(sd_bus_new(&client), 0);
        ck_assert_int_ge(sd_bus_set_fd(client, ends[1], ends[1]), 0);
        ck_assert_int_ge(sd_bus_start(server), 0);
        ck_assert_int_ge(sd_bus_start(client), 0);
        ck_assert_int_ge(sd_bus_attach_event(server, event, SD_EVENT_PRIORITY_NORMAL), 0);
        ck_assert_int_ge(sd_bus_attach_event(client, event, SD_EVENT_PRIORITY_NORMAL), 0);
        ping();
        expect("ping");
}

static void teardown(void)
{
        bus_violations_done(&violations);
        (void) sd_bus_close_unref(client);
        (void) sd_bus_close_unref(server);
        sd_event_unref(event);
}

static void setup_again(void)
{
        teardown();
        setup();
}

START_TEST(answered)
{
        violations_of("all", ":1.1", "");
        expect("all");
        violations_of("node0001", ":1.1", "node0001");
        expect("node0001");
        ck_assert_uint_eq(n_collected, 2);
}
END_TEST

/* Records that are not given may be of that host. */
START_TEST(earlier_ones_count)
{
        n_earlier = 7;
        violations_of("all", ":1.1", "");
        expect("all");
        ck_assert_uint_eq(total, 8);
        violations_of("its", ":1.1", "node0001");
        expect("its");
        ck_assert_uint_eq(total, 8);
        violations_of("none", ":1.1", "node0002");
        expect("none");
        ck_assert_uint_eq(total, 7);
        n_earlier = 0;
}
END_TEST

/* Refusals and other methods do not wait for the queue. */
START_TEST(one_for_each_client)
{
        static const char again[] = "again org.freedesktop.DBus.Error.LimitsExceeded: this client already waits for violations; "
                                    "call again after that answer";

        violations_of("first", ":1.1", "");
        for (int i = 0; i < 10; i++)
                violations_of("again", ":1.1", "");
        violations_of("other", ":1.2", "");
        ping();
        for (int i = 0; i < 10; i++)
                expect(again);
        expect("ping");
        ck_assert_uint_eq(n_collected, 0);
        expect("first");
        expect("other");
        ck_assert_uint_eq(n_collected, 2);
        violations_of("later", ":1.1", "");
        expect("later");
}
END_TEST

START_TEST(many_clients)
{
        char sender[32];

        for (int i = 0; i < BUS_MAX_VIOLATIONS + 1; i++) {
                (void) snprintf(sender, sizeof(sender), ":1.%d", i);
                violations_of("call", sender, "");
        }
        expect("call org.pkeyd1.Error.TooManyCallers: 16 clients already wait for violations; call again later");
        for (int i = 0; i < BUS_MAX_VIOLATIONS; i++)
                expect("call");
}
END_TEST

/* `due`: when the second is answered, if the first takes `duration`, compared with the time it is now. */
static void answer_two(usec_t due)
{
        duration = __real_clock_now() / 20;
        now = due - 10 * duration;
        violations_of("first", ":1.1", "");
        violations_of("second", ":1.2", "");
        expect("first");
}

/* After an answer the queue rests nine times as long as the answer took. */
START_TEST(tenth_of_the_time)
{
        usec_t real = __real_clock_now();

        answer_two(real - real / 40);
        expect("second");
        setup_again();
        answer_two(real + real / 40);
        ping();
        expect("ping");
        while (sd_event_run(event, 10 * USEC_PER_MSEC) > 0)
                ;
        ck_assert_uint_eq(n_collected, 1);
}
END_TEST

START_TEST(long_name)
{
        static char name[1 << 20];

        memset(name, 'x', 320);
        violations_of("call", ":1.1", name);
        expect("call");
        memset(name, 'x', sizeof(name) - 1);
        violations_of("call", ":1.1", name);
        expect("call org.pkeyd1.Error.NoSuchNode: no host, switch or port of the fabric has a name of 1048575 characters");
        ck_assert_uint_eq(n_collected, 1);
}
END_TEST

START_TEST(nobody_waits_any_more)
{
        violations_of("first", ":1.1", "");
        violations_of("again", ":1.1", "");
        while (n_seen < 2)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        bus_violations_drop(&violations);
        violations_of("next", ":1.1", "");
        while (n_seen < 3)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        ck_assert_str_eq(seen[2], "next");
        ck_assert_uint_eq(n_collected, 1);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("bus_violations");
        TCase *t = tcase_create("bus_violations");
        SRunner *r;
        int n_failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, answered);
        tcase_add_test(t, earlier_ones_count);
        tcase_add_test(t, one_for_each_client);
        tcase_add_test(t, many_clients);
        tcase_add_test(t, tenth_of_the_time);
        tcase_add_test(t, long_name);
        tcase_add_test(t, nobody_waits_any_more);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
