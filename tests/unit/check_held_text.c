/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each sentence about a held base, as a person reads it. */

#include <check.h>
#include <string.h>

#include "events/event_text.h"
#include "events/held_text.h"
#include "knowledge_fixture.h"

#define NOW UINT64_C(1800000000)

static struct held_context words;
static struct held held;

static const char *time_of(struct arena *a, uint64_t seconds)
{
        return arena_printf(a, "T%" PRIu64, seconds);
}

/* Host 3 is gone, and was known as "gone mlx5_0"; host 2 is gone and not known. Host 0 is there, its second port is gone. */
static void setup(void)
{
        static struct known_port ports[] = {
                { .node_guid = { 0x100 }, .port_guid = { 0x102 }, .number = 2, .type = NODE_CA },
                { .node_guid = { 0x400 }, .port_guid = { 0x401 }, .number = 1, .type = NODE_CA },
        };
        static struct known known = { .ports = ports, .n = ELEMENTS(ports) };
        static struct policy_partition partition = { .name = "storage", .base = 0x10 };
        static struct policy policy = { .partitions = &partition, .n_partitions = 1 };

        knowledge_setup();
        (void) snprintf(ports[1].description, sizeof(ports[1].description), "gone mlx5_0");
        words = (struct held_context) {
                .arena = arena, .subnet = make_subnet(&(struct scene) { .there = 3 }), .known = &known, .policy = &policy,
                .now = NOW, .time = time_of,
        };
        held = (struct held) { .base = 0x10 };
}

static struct knowledge_name host(unsigned i)
{
        return (struct knowledge_name) { { host_guid(i) }, 1, KNOWLEDGE_ENDPORT };
}

static const struct knowledge_name leaf = { { SWITCH }, 1, KNOWLEDGE_LEAF }, place = { { SWITCH }, 9, KNOWLEDGE_PLACE };

static void wait_for(struct knowledge_name name, uint8_t from, uint8_t to, enum rule_verdict rule)
{
        if (held.n_waiting < HELD_MAX)
                held.waiting[held.n_waiting] = (struct held_waiting) { .name = name, .from = from, .to = to, .rule = rule };
        held.n_waiting++;
}

static void block_by(struct knowledge_name name, enum held_reason reason, uint64_t since)
{
        if (held.n_by < HELD_MAX)
                held.by[held.n_by] = (struct held_by) { .name = name, .reason = reason, .since = since, .read_at = since };
        held.n_by++;
}

static void is(const struct text *t, const char *expected)
{
        ck_assert(!t->failed);
        ck_assert_str_eq(t->bytes, expected);
}

static void check_headline(const char *expected)
{
        _cleanup_text_ struct text t = {};

        held_add_headline(&words, &held, &t);
        is(&t, expected);
}

static void check_reason(const struct held_by *by, const char *expected)
{
        _cleanup_text_ struct text t = {};

        held_add_reason(&words, by, &t);
        is(&t, expected);
}

static void check_way_out(enum held_reason reason, const char *expected)
{
        _cleanup_text_ struct text t = {};

        held_add_way_out(&words, &held, reason, &t);
        is(&t, expected);
}

START_TEST(ports_have_names)
{
        static const struct {
                struct knowledge_name name;
                const char *label, *node, *forget;
                uint64_t port_guid;
                const char *place;
        } cases[] = {
                { { { 0x100 }, 1, KNOWLEDGE_ENDPORT }, "host/1", "host", "0x0000000000000101", 0x101 },
                { { { 0x100 }, 2, KNOWLEDGE_ENDPORT }, "host/2", "host", "0x0000000000000102", 0x102 },
                { { { 0x400 }, 1, KNOWLEDGE_ENDPORT }, "gone mlx5_0/1", "gone", "0x0000000000000401", 0x401 },
                { { { 0x400 }, 2, KNOWLEDGE_ENDPORT }, "0x0000000000000400/2", "", "0x0000000000000400/2", 0 },
                { { { SWITCH }, 1, KNOWLEDGE_LEAF }, "leaf/1", "leaf", NULL, SWITCH },
                { { { SWITCH }, 9, KNOWLEDGE_PLACE }, "the device at leaf/9", "leaf", "@0x0000000000000010/9", 0,
                  "@leaf/9" },
                { { { 0x99 }, 9, KNOWLEDGE_PLACE }, "the device at 0x0000000000000099/9", "", "@0x0000000000000099/9",
                  0, "@0x0000000000000099/9" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct held_port port;

                ck_assert_int_eq(held_port_find(&words, cases[i].name, &port), 0);
                ck_assert_str_eq(port.label, cases[i].label);
                ck_assert_str_eq(port.node, cases[i].node);
                ck_assert_uint_eq(port.port_guid.v, cases[i].port_guid);
                ck_assert_uint_eq(port.node_guid.v, cases[i].name.node.v);
                ck_assert_pstr_eq(port.place, cases[i].place);
                if (cases[i].forget)
                        ck_assert_str_eq(port.forget, cases[i].forget);
                else
                        ck_assert_ptr_null(port.forget);
        }
        words.subnet = NULL;
        words.known = NULL;
        check_reason(&(struct held_by) { .name = host(0), .reason = HELD_EXCESS },
                     "0x0000000000000100/1 still has more than the policy gives it: its own change failed or waits, or the port is frozen");
}
END_TEST

START_TEST(headlines)
{
        wait_for(host(1), LEVEL_NONE, LEVEL_FULL, RULE_GAIN);
        block_by(host(0), HELD_UNANSWERED, 7);
        check_headline("base 0x0010 (partition \"storage\") is held: host/1 gets it when host/1 is known not to hold it");
        held.by[0].policy = LEVEL_LIMITED;
        held.base = 0x11;
        check_headline("base 0x0011 is held: host/1 gets it when host/1 is known to hold no more than the policy gives it");
        wait_for(host(3), LEVEL_NONE, LEVEL_LIMITED, RULE_GAIN);
        wait_for(host(0), LEVEL_FULL, LEVEL_LIMITED, RULE_LOSS);
        block_by(host(3), HELD_ABSENT, 7);
        check_headline("base 0x0011 is held: host/1, gone mlx5_0/1 get it when the ports named here are known to hold no more than "
                       "the policy gives them; host/1 becomes a limited member when the ports named here are known to have it");
}
END_TEST

START_TEST(changes)
{
        static const struct {
                struct held_waiting waiting;
                const char *one, *many;
        } cases[] = {
                { { .from = LEVEL_NONE, .to = LEVEL_LIMITED }, "gets it", "get it" },
                { { .from = LEVEL_FULL, .to = LEVEL_FULL }, "gets it", "get it" },
                { { .from = LEVEL_NONE, .to = LEVEL_NONE }, "loses it", "lose it" },
                { { .from = LEVEL_FULL, .to = LEVEL_NONE }, "loses it", "lose it" },
                { { .from = LEVEL_LIMITED, .to = LEVEL_FULL }, "becomes a full member", "become full members" },
                { { .from = LEVEL_FULL, .to = LEVEL_LIMITED }, "becomes a limited member", "become limited members" },
                { { .name.kind = KNOWLEDGE_LEAF, .to = LEVEL_FULL }, "lets it through", "let it through" },
                { { .name.kind = KNOWLEDGE_LEAF, .from = LEVEL_FULL }, "stops it", "stop it" },
                { { .name.kind = KNOWLEDGE_LEAF, .from = LEVEL_FULL, .to = LEVEL_LIMITED }, "becomes a limited member",
                  "become limited members" },
                { { .name.kind = KNOWLEDGE_LEAF, .is_filter = true, .from = LEVEL_FULL, .to = LEVEL_FULL }, "changes its filter",
                  "change their filters" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                held = (struct held) { .base = 1, .waiting = { cases[i].waiting }, .n_waiting = 1 };
                held.waiting[0].name.node.v = SWITCH;
                held.waiting[1] = held.waiting[0];
                check_headline(arena_printf(arena,
                                            "base 0x0001 is held: leaf/0 %s when an earlier change of the same table is confirmed",
                                            cases[i].one));
                held.n_waiting = 2;
                check_headline(arena_printf(arena, "base 0x0001 is held: leaf/0, leaf/0 %s when an earlier change of the same table is "
                                            "confirmed", cases[i].many));
        }
}
END_TEST

START_TEST(many)
{
        static const char headline[] = "base 0x0010 (partition \"storage\") is held: host/1, host/1, host/1 and 13 more get it when "
                                       "pkeyd knows what is plugged into it; and %s";

        for (unsigned i = 0; i < HELD_MAX + 1; i++)
                wait_for(host(1), LEVEL_NONE, LEVEL_FULL, RULE_GAIN);
        block_by(leaf, HELD_UNKNOWN_DEVICE, 0);
        check_headline(arena_printf(arena, headline, "1 more port waits"));
        wait_for(host(1), LEVEL_NONE, LEVEL_FULL, RULE_GAIN);
        check_headline(arena_printf(arena, headline, "2 more ports wait"));
}
END_TEST

START_TEST(reasons)
{
        static const struct {
                enum held_reason reason;
                const char *since, *lasting;
        } cases[] = {
                { HELD_NEVER_READ, " has never answered a query for its P_Key table (link up)",
                  " has never answered a query for its P_Key table (link up)" },
                { HELD_UNANSWERED, " has not answered a query for its P_Key table since T1799996339 (link up)",
                  " has not answered a query for its P_Key table for 1 h 1 min (link up)" },
                { HELD_UNCONFIRMED, " has not confirmed a write to its P_Key table since T1799996339",
                  " has not confirmed a write to its P_Key table for 1 h 1 min" },
                { HELD_SILENT, " has not answered since T1799996339 (link up)",
                  " has not answered for 1 h 1 min (link up)" },
                { HELD_SILENT_SWITCH, " has not answered since T1799996339: it is behind a switch that does not answer, leaf (0x0000000000000010)",
                  " has not answered for 1 h 1 min: it is behind a switch that does not answer, leaf (0x0000000000000010)" },
                { HELD_ABSENT, " has not been in the fabric since T1799996339, and counts as holding what it held until T1800000065",
                  " has not been in the fabric for 1 h 1 min, and counts as holding what it held for 1 min more" },
                { HELD_MAYBE_SILENT, " has not been in the fabric since T1799996339, and may be a silent device elsewhere in the fabric: it counts as "
                              "holding what it held until that device answers or is unplugged",
                  " has not been in the fabric for 1 h 1 min, and may be a silent device elsewhere in the fabric: it counts as holding what it "
                  "held until that device answers or is unplugged" },
                { HELD_FROZEN, " is frozen, and its P_Key table is not what the policy may give it",
                  " is frozen, and its P_Key table is not what the policy may give it" },
                { HELD_LACK, " does not yet have what the policy gives it: its own change failed or waits, or the port is frozen",
                  " does not yet have what the policy gives it: its own change failed or waits, or the port is frozen" },
                { HELD_EARLIER, ": an earlier change of its P_Key table failed or waits",
                  ": an earlier change of its P_Key table failed or waits" },
                { HELD_UNKNOWN_DEVICE, ": pkeyd does not know what is plugged into it", ": pkeyd does not know what is plugged into it" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct held_by by = {
                        .name = host(0), .reason = cases[i].reason, .since = NOW - 3661, .read_at = 1, .until = NOW + 65,
                        .behind = { SWITCH },
                };

                words.time = time_of;
                check_reason(&by, arena_printf(arena, "host/1 (0x0000000000000101)%s", cases[i].since));
                words.time = NULL;
                check_reason(&by, arena_printf(arena, "host/1 (0x0000000000000101)%s", cases[i].lasting));
        }
}
END_TEST

/* A clock that is not set yet gives no dates; and what is not known is no date either. */
/* It did answer, with the GUID of another. */
START_TEST(guid_in_two_places)
{
        uint32_t n = subnet_find_node(words.subnet, place.node);
        struct subnet_conflict conflict = { { 0x77 }, { { place.node, 3 }, { place.node, 9 } } };
        struct held_by by = { .name = place, .reason = HELD_SILENT, .since = 1700000000 };
        struct subnet s = *words.subnet;

        s.nodes[n].silent_ports[0] |= 1u << 9;
        s.conflicts = &conflict;
        s.n_conflicts = 1;
        words.subnet = &s;
        check_reason(&by, "the device at leaf/9 has the same GUID 0x0000000000000077 as the device at leaf/3, so nothing is known "
                          "of it (give one of the two another GUID)");
        by.name = host(3);
        check_reason(&by, "gone mlx5_0/1 (0x0000000000000401) has not answered since T1700000000 (link up), and its P_Key table "
                          "was never read");
}
END_TEST

START_TEST(clock_without_a_time)
{
        struct held_by by = { .name = host(0), .reason = HELD_ABSENT, .since = 300, .read_at = 1, .until = 1000 };

        words.now = 600;
        check_reason(&by, "host/1 (0x0000000000000101) has not been in the fabric for 5 min, and counts as holding what it held for 6 min more");
        by.since = (uint64_t) -(3 * 86400 - 600);
        check_reason(&by, "host/1 (0x0000000000000101) has not been in the fabric for 3 d 0 h, and counts as holding what it held for 6 min "
                          "more");
}
END_TEST

/* Each unit from its first second on, and the one before it until its last. */
START_TEST(durations)
{
        static const struct { uint64_t seconds; const char *text; } cases[] = {
                { 59, "59 s" }, { 60, "1 min" }, { 3599, "59 min" }, { 3600, "1 h 0 min" }, { 86399, "23 h 59 min" }, { 86400, "1 d 0 h" },
        };
        struct held_by by = { .name = host(0), .reason = HELD_ABSENT, .read_at = 1, .until = 100000 };

        for (unsigned i = 0; i < ELEMENTS(cases); i++) {
                words.now = by.until - cases[i].seconds;
                by.since = words.now - 300;
                check_reason(&by, arena_printf(arena, "host/1 (0x0000000000000101) has not been in the fabric for 5 min, and counts as "
                                               "holding what it held for %s more", cases[i].text));
        }
}
END_TEST

START_TEST(never_known)
{
        words.time = NULL;
        check_reason(&(struct held_by) { .name = place, .reason = HELD_SILENT, .since = NOW - 2 * 86400 - 7200 },
                     "the device at leaf/9 has not answered for 2 d 2 h (link up), and its P_Key table was never read");
        check_reason(&(struct held_by) { .name = place, .reason = HELD_SILENT },
                     "the device at leaf/9 has not answered (link up), and its P_Key table was never read");
        check_reason(&(struct held_by) { .name = place, .reason = HELD_SILENT_SWITCH, .behind = { 0x77 } },
                     "the device at leaf/9 has not answered, and its P_Key table was never read: it is behind a switch that does not "
                     "answer, 0x0000000000000077");
        check_reason(&(struct held_by) { .name = host(3), .reason = HELD_ABSENT, .since = NOW + 5 },
                     "gone mlx5_0/1 (0x0000000000000401) has not been in the fabric for 0 s, and counts as holding anything indefinitely "
                     "(absent_hold: forever)");
}
END_TEST

START_TEST(ways_out)
{
        static const char repair[] = "repair or unplug it (pkeyd waits for an unplugged port only for absent_hold); or, if you are certain that it "
                                     "holds nothing: pkeyctl forget 0x0000000000000101";
        static const enum held_reason alike[] = { HELD_NEVER_READ, HELD_UNANSWERED, HELD_UNCONFIRMED, HELD_SILENT };

        for (size_t i = 0; i < ELEMENTS(alike); i++) {
                held.n_by = 0;
                block_by(host(0), alike[i], 1);
                block_by(host(1), HELD_ABSENT, 1);
                check_way_out(alike[i], repair);
        }
        block_by(host(1), HELD_SILENT_SWITCH, 1);
        check_way_out(HELD_SILENT_SWITCH, "repair the switch, or move it to another switch; or, if you are certain that it holds nothing: pkeyctl "
                                   "forget 0x0000000000000201");
        check_way_out(HELD_ABSENT, "wait, or plug it in again; or, if you are certain that it holds nothing: pkeyctl forget "
                      "0x0000000000000201");
        block_by(host(2), HELD_MAYBE_SILENT, 1);
        check_way_out(HELD_MAYBE_SILENT, "repair or unplug the device that does not answer, or plug it in again; or, if you are certain that it "
                                  "holds nothing: pkeyctl forget 0x0000000000000300/1");
        block_by(host(3), HELD_SILENT, 1);
        block_by(leaf, HELD_SILENT, 1);
        check_way_out(HELD_SILENT, "repair or unplug them (pkeyd waits for an unplugged port only for absent_hold); or, if you are certain that they "
                                   "hold nothing: pkeyctl forget 0x0000000000000101 0x0000000000000401");
        block_by(host(2), HELD_FROZEN, 1);
        check_way_out(HELD_FROZEN, "pkeyctl plan names the error that froze it, and what to do");
        block_by(leaf, HELD_LACK, 1);
        check_way_out(HELD_LACK, "pkeyd tries again; see the journal if the change failed, pkeyctl show held if it waits");
        block_by(leaf, HELD_UNKNOWN_DEVICE, 1);
        check_way_out(HELD_UNKNOWN_DEVICE, "pkeyd continues when discovery finds a port there");
        held.n_by = 0;
        block_by(leaf, HELD_UNANSWERED, 1);
        check_way_out(HELD_UNANSWERED, "repair or unplug it (pkeyd waits for an unplugged port only for absent_hold)");
}
END_TEST

/* One line names a few of many ports, and its way out does not vouch for the others. */
START_TEST(line_of_many)
{
        _cleanup_text_ struct text t = {};

        words.time = NULL;
        held = (struct held) { .base = 0x11 };
        wait_for(host(0), LEVEL_NONE, LEVEL_FULL, RULE_GAIN);
        for (unsigned i = 0; i < 6; i++)
                block_by((struct knowledge_name) { { 0x900u + i }, 1, KNOWLEDGE_ENDPORT }, HELD_SILENT, 1);
        held_add_line(&words, &held, &t);
        ck_assert_msg(strstr(t.bytes, "; and 2 more ports (pkeyctl show held); way out: repair or unplug them"), "%s", t.bytes);
        ck_assert_msg(strstr(t.bytes, "pkeyctl forget 0x0000000000000900/1 0x0000000000000901/1 0x0000000000000902/1 "
                                      "0x0000000000000903/1"), "%s", t.bytes);
        ck_assert_msg(!strstr(t.bytes, "904"), "%s", t.bytes);
        held.n_by--;
        held_add_line(&words, &held, &t);
        ck_assert_msg(strstr(t.bytes, "; and 1 more port (pkeyctl show held)"), "%s", t.bytes);
}
END_TEST

/* Who may hold the P_Key of a lease; nobody knows more of these ports. */
START_TEST(line_of_holders)
{
        _cleanup_text_ struct text t = {}, of_many = {};

        block_by(host(0), HELD_SILENT, 1);
        block_by(host(3), HELD_ABSENT, 1);
        held_add_holders(&words, &held, &t);
        is(&t, "host/1 (0x0000000000000101) has not answered since T1 (link up); gone mlx5_0/1 (0x0000000000000401) has not been in the "
               "fabric since T1, and counts as holding what it held indefinitely (absent_hold: forever); way out: repair or unplug it (pkeyd "
               "waits for an unplugged port only for absent_hold); or, if you are certain that it holds nothing: pkeyctl forget "
               "0x0000000000000101; way out: wait, or plug it in again; or, if you are certain that it holds nothing: pkeyctl forget "
               "0x0000000000000401");
        for (unsigned i = 0; i < 4; i++)
                block_by(host(1), HELD_SILENT, 1);
        held_add_holders(&words, &held, &of_many);
        ck_assert_msg(strstr(of_many.bytes, "; and 2 more ports; way out: "), "%s", of_many.bytes);
}
END_TEST

START_TEST(rules_have_words)
{
        ck_assert_str_eq(held_rule_to_string(RULE_GAIN), "isolation");
        ck_assert_str_eq(held_rule_to_string(RULE_LOSS), "continuity");
        ck_assert_str_eq(held_rule_to_string(RULE_ADMITS), "order");
}
END_TEST

/* --- the journal ---------------------------------------------------------------------------------------------------------- */

static struct log *l;
static struct generation generation = { .number = 42 };
static uint64_t reported;

/* Host 2 waits for base 1, which the policy gives to hosts 1 and 2, and host 0 may hold. */
static struct held_list *hold(struct subnet *s)
{
        struct held_list *list = held_list_new(arena);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        want(s, 6);
        block_of(0x8001, block);
        ck_assert_int_eq(held_collect(list, k, host_record(2), 0, block, 1), 0);
        return list;
}

static struct subnet *read_all_but_the_first(usec_t now)
{
        struct subnet *s = discover(ALL, 0, 0, now);

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        return s;
}

static void report(struct subnet *s, const struct held_list *list)
{
        event_text_held(l, &generation, s, NULL, list, 4600, &reported);
}

static const struct log_entry *next(enum log_event event, const char *text)
{
        const struct log_entry *e = log_next(l);

        ck_assert_ptr_nonnull(e);
        ck_assert_int_eq(e->event, event);
        ck_assert_str_eq(e->text, text);
        ck_assert_uint_eq(e->about.generation, 42);
        return e;
}

START_TEST(logged_when_it_changes)
{
        static const char unanswered[] =
                "base 0x0001 is held: host/1 gets it when host/1 is known not to hold it; host/1 (0x0000000000000101) has not answered "
                "a query for its P_Key table for 1 h 0 min (link up); way out: repair or unplug it (pkeyd waits for an unplugged port only for absent_hold); "
                "or, if you are certain that it holds nothing: pkeyctl forget 0x0000000000000101";
        struct subnet *s = read_all_but_the_first(0);
        const struct log_entry *e;

        generation.policy = &(struct policy) {};
        reported = 0;
        l = log_new();
        report(s, held_list_new(arena));
        ck_assert_ptr_null(log_next(l));
        read_host(s, 0, 0x8001);
        s = read_all_but_the_first(MINUTE);
        report(s, hold(s));
        e = next(LOG_EVENT_BASE_HELD, unanswered);
        ck_assert_str_eq(e->about.node, "host/1");
        ck_assert_uint_eq(e->about.port_guid.v, 0x101);
        ck_assert_uint_eq(e->about.port, 1);
        ck_assert_uint_eq(e->about.p_keys[0].v, 1);
        ck_assert_ptr_null(e->about.partition); /* no empty field */
        report(s, hold(s));
        ck_assert_ptr_null(log_next(l));
        report(s, held_list_new(arena));
        (void) next(LOG_EVENT_HELD_ENDED, "no base is held");
        report(s, hold(s));
        (void) next(LOG_EVENT_BASE_HELD, unanswered);
        ck_assert_ptr_null(log_next(l));
        (void) log_free(l);
}
END_TEST

static void check_logged_in_part(uint16_t last, const char *rest)
{
        struct subnet *s = read_all_but_the_first(0);
        struct held_list *list = hold(s);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        generation.policy = &(struct policy) {};
        reported = 0;
        for (uint16_t base = 2; base <= last; base++) {
                block_of(0x8000 | base, block);
                ck_assert_int_eq(held_collect(list, k, host_record(2), 0, block, base), 0);
        }
        l = log_new();
        report(s, list);
        for (unsigned i = 0; i < EVENT_TEXT_MAX; i++)
                ck_assert_int_eq(log_next(l)->event, LOG_EVENT_BASE_HELD);
        (void) next(LOG_EVENT_BASE_HELD, rest);
        ck_assert_ptr_null(log_next(l));
        (void) log_free(l);
}

START_TEST(logged_in_part)
{
        check_logged_in_part(EVENT_TEXT_MAX + 1, "1 more base is held; pkeyctl show held lists it");
        check_logged_in_part(EVENT_TEXT_MAX + 3, "3 more bases are held; pkeyctl show held lists them");
}
END_TEST

int main(void)
{
        TCase *t = tcase_create("held text");
        Suite *s = suite_create("held text");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(t, setup, knowledge_teardown);
        tcase_add_test(t, ports_have_names);
        tcase_add_test(t, headlines);
        tcase_add_test(t, changes);
        tcase_add_test(t, many);
        tcase_add_test(t, reasons);
        tcase_add_test(t, guid_in_two_places);
        tcase_add_test(t, clock_without_a_time);
        tcase_add_test(t, durations);
        tcase_add_test(t, never_known);
        tcase_add_test(t, ways_out);
        tcase_add_test(t, line_of_many);
        tcase_add_test(t, line_of_holders);
        tcase_add_test(t, rules_have_words);
        tcase_add_test(t, logged_when_it_changes);
        tcase_add_test(t, logged_in_part);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
