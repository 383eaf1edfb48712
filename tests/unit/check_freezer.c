/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What frozen ports were given, and what is logged of them; and that the rule keeps the promises beside a frozen port. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "conditions/freezer.h"
#include "events/event_text.h"

#define MAX_HOSTS 40
#define WALL      1700000000

/* ck_assert writes to a pipe each time it is passed: too slow for what runs thousands of times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

static struct arena *arena;
static struct freezer *freezer;
static struct log *events;

static void setup(void)
{
        arena = arena_new();
        freezer = freezer_new();
        events = log_new();
}

static void teardown(void)
{
        (void) log_free(events);
        (void) freezer_free(freezer);
        arena_free(arena);
}

/* --- a decision by hand ------------------------------------------------------------------------------------------------ */

struct decision {
        struct reconciled r;
        struct plan plan;
        struct desired desired;
        struct desired_port certain[MAX_HOSTS];
};

static struct guid guid_of(unsigned host)
{
        return (struct guid) { 0x1000 + 0x10 * (uint64_t) host };
}

static uint8_t ports_each = 1;

/* Hosts first .. first + n - 1, without cables. */
static struct subnet *make_subnet(unsigned first, unsigned n)
{
        struct subnet_builder *b;
        struct subnet *s;
        char name[32];

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = first; i < first + n; i++) {
                struct subnet_node node = { .guid = guid_of(i), .type = NODE_CA, .num_ports = ports_each, .partition_cap = 32 };
                int length = snprintf(name, sizeof(name), "node%u mlx5_0", i);

                ck_assert_int_eq(subnet_builder_add_node(b, &node, name, (size_t) length), 0);
                for (uint8_t number = 1; number <= ports_each; number++) {
                        struct subnet_port port = {
                                .number = number,
                                .guid = { guid_of(i).v + number },
                                .lid = { (uint16_t) (ports_each * i + number) },
                        };

                        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
                }
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        return s;
}

/* Each host is given 0x7fff and 0x8010. */
static void make_decision(struct decision *d, unsigned first, unsigned n)
{
        struct subnet *s = make_subnet(first, n);

        *d = (struct decision) {};
        d->desired = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct p_key *keys = arena_new_array(arena, struct p_key, 2);

                keys[0].v = 0x8010;
                keys[1].v = 0x7fff;
                d->desired.ports[i] = (struct desired_port) { keys, 2 };
        }
        d->plan = (struct plan) { .subnet = s, .frozen = arena_new_array(arena, enum freeze, s->n_ports) };
        d->desired.frozen = d->plan.frozen;
        d->r = (struct reconciled) {
                .desired = &d->desired, .given = &d->desired, .certain = d->certain, .plan = &d->plan,
        };
}

static void give(struct decision *d, unsigned port, const struct p_key *keys, uint32_t n)
{
        d->desired.ports[port] = (struct desired_port) { keys, n };
}

static void see(const struct decision *d, unsigned at)
{
        ck_assert_int_eq(freezer_see(freezer, &d->r, 7, WALL + at, events), 0);
}

/* Every port is a limited member of the default partition, whatever contested lines give it. */
static struct memberships *make_memberships(const struct subnet *s)
{
        static struct policy_partition partition = { .base = 0x7fff };
        static const struct policy policy = { .partitions = &partition, .n_partitions = 1 };
        struct memberships *m = arena_new_object(arena, struct memberships);

        *m = (struct memberships) {
                .policy = &policy, .subnet = s, .first = arena_new_array(arena, uint32_t, s->n_ports + 1),
                .items = arena_new_array(arena, struct port_membership, s->n_ports),
        };
        for (uint32_t i = 0; i <= s->n_ports; i++)
                m->first[i] = i;
        for (uint32_t i = 0; i < s->n_ports; i++)
                m->items[i] = (struct port_membership) { .membership = MEMBERSHIP_FULL, .certain = MEMBERSHIP_LIMITED };
        return m;
}

static const struct desired *limit(const struct decision *d, struct desired *all)
{
        const struct desired *limited = NULL;

        ck_assert_int_eq(freezer_limit(freezer, arena, &d->r, all ? make_memberships(all->subnet) : NULL, all, &limited), 0);
        return limited;
}

static void expect_keys(const struct desired_port *p, const uint16_t *keys, uint32_t n)
{
        ck_assert_uint_eq(p->n_wanted, n);
        for (uint32_t i = 0; i < n; i++)
                ck_assert_uint_eq(p->wanted[i].v, keys[i]);
}
/* At most what the port had before and what the lines give it. */
static void expect_most(const struct desired_port *p, bool is_held, const uint16_t *keys, uint32_t n)
{
        ck_assert_ptr_nonnull(p->most);
        ck_assert_int_eq(p->most_is_held, is_held);
        ck_assert_ptr_null(p->most->most);
        expect_keys(p->most, keys, n);
}
#define EXPECT_MOST(port, is_held, ...) \
        expect_most(port, is_held, (const uint16_t[]) { __VA_ARGS__ }, ELEMENTS(((const uint16_t[]) { __VA_ARGS__ })))
#define EXPECT(port, ...) expect_keys(port, (const uint16_t[]) { __VA_ARGS__ }, ELEMENTS(((const uint16_t[]) { __VA_ARGS__ })))

/* --- what the rule takes for the policy --------------------------------------------------------------------------------- */

START_TEST(nothing_frozen)
{
        struct decision d;

        make_decision(&d, 0, 3);
        ck_assert_ptr_eq(limit(&d, NULL), &d.desired);
}
END_TEST

START_TEST(frozen_and_never_seen)
{
        struct decision d;
        const struct desired *limited;

        make_decision(&d, 0, 3);
        d.plan.frozen[1] = FREEZE_NAME;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[0], 0x8010, 0x7fff);
        ck_assert_uint_eq(limited->ports[1].n_wanted, 0);
        EXPECT_MOST(&limited->ports[1], true, 0x8010, 0x7fff);
        ck_assert_ptr_null(limited->ports[0].most);
        EXPECT(&d.desired.ports[1], 0x8010, 0x7fff); /* it is the decision's */
        ck_assert_ptr_null(d.desired.ports[1].most);
}
END_TEST

/* Without its name it is not known what the policy gives it. */
START_TEST(frozen_and_seen_incomplete)
{
        struct decision d;

        make_decision(&d, 0, 3);
        ((struct subnet *) d.plan.subnet)->nodes[1].incomplete = true;
        see(&d, 0);
        make_decision(&d, 0, 3);
        d.plan.frozen[1] = FREEZE_NAME;
        ck_assert_uint_eq(limit(&d, NULL)->ports[1].n_wanted, 0);
}
END_TEST

/* In each base the lower level of both at least, what only one of both has is nothing; the higher level of both at most. */
START_TEST(lower_of_both)
{
        static const struct p_key before[] = { { 0x0010 }, { 0x8010 }, { 0x8011 }, { 0x0012 }, { 0x8013 }, { 0x7fff } };
        static const struct p_key after[] = { { 0x0009 }, { 0x8010 }, { 0x0011 }, { 0x8012 }, { 0x0015 }, { 0xffff } };
        const struct desired *limited;
        struct decision d;

        make_decision(&d, 0, 3);
        give(&d, 1, before, ELEMENTS(before));
        see(&d, 0);
        give(&d, 1, after, ELEMENTS(after));
        d.plan.frozen[1] = FREEZE_LINES;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x8010, 0x0011, 0x0012, 0x7fff);
        EXPECT_MOST(&limited->ports[1], false, 0x0009, 0x8010, 0x8011, 0x8012, 0x8013, 0x0015, 0xffff);
        EXPECT(&limited->ports[2], 0x8010, 0x7fff);
}
END_TEST

/* What it certainly gives counts, whatever was given before. */
START_TEST(certainly_given)
{
        static const struct p_key before[] = { { 0x0010 }, { 0x8012 }, { 0x7fff } };
        static const struct p_key certain[] = { { 0x0009 }, { 0x8010 }, { 0x0012 }, { 0x7fff } };
        static const struct p_key after[] = { { 0x8009 }, { 0x8010 }, { 0x8012 }, { 0xffff } };
        const struct desired *limited;
        struct decision d;

        make_decision(&d, 0, 2);
        give(&d, 1, after, ELEMENTS(after));
        d.certain[1] = (struct desired_port) { certain, ELEMENTS(certain) };
        d.plan.frozen[1] = FREEZE_NAME;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x0009, 0x8010, 0x0012, 0x7fff);
        EXPECT_MOST(&limited->ports[1], true, 0x8009, 0x8010, 0x8012, 0xffff);
        give(&d, 1, before, ELEMENTS(before));
        d.plan.frozen[1] = FREEZE_NONE;
        see(&d, 0);
        give(&d, 1, after, ELEMENTS(after));
        d.plan.frozen[1] = FREEZE_NAME;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x0009, 0x8010, 0x8012, 0x7fff);
        EXPECT_MOST(&limited->ports[1], false, 0x8009, 0x8010, 0x8012, 0xffff);
}
END_TEST

/* An adapter that did not tell everything counts as what it was before: then what is certain by its new name may be more. */
START_TEST(certain_by_another_name)
{
        static const struct p_key before[] = { { 0x8010 }, { 0x7fff } }, lines[] = { { 0x0012 }, { 0x7fff } };
        static const struct p_key certain[] = { { 0x8012 }, { 0x8013 }, { 0xffff } };
        const struct desired *limited;
        struct decision d;

        make_decision(&d, 0, 2);
        give(&d, 1, lines, ELEMENTS(lines));
        d.certain[1] = (struct desired_port) { certain, ELEMENTS(certain) };
        d.plan.frozen[1] = FREEZE_NAME;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x0012, 0x7fff);
        EXPECT_MOST(&limited->ports[1], true, 0x0012, 0x7fff);
        give(&d, 1, before, ELEMENTS(before));
        d.plan.frozen[1] = FREEZE_NONE;
        see(&d, 0);
        give(&d, 1, lines, ELEMENTS(lines));
        d.plan.frozen[1] = FREEZE_NAME;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x0012, 0x7fff);
        EXPECT_MOST(&limited->ports[1], false, 0x8010, 0x0012, 0x7fff);
}
END_TEST

/* What it was given before counts as long as it is frozen, through sweeps and edits, and a sweep that misses it. */
START_TEST(given_before_is_kept)
{
        static const struct p_key none[] = { { 0x7fff } }, more[] = { { 0x8010 }, { 0x8020 }, { 0x7fff } };
        struct decision d, without;
        const struct desired *limited;

        make_decision(&d, 0, 3);
        make_decision(&without, 2, 4);
        see(&d, 0);
        see(&without, 1);
        give(&d, 1, more, ELEMENTS(more));
        d.plan.frozen[1] = d.plan.frozen[0] = FREEZE_LINES;
        for (unsigned i = 0; i < 3; i++) {
                limited = limit(&d, NULL);
                EXPECT(&limited->ports[1], 0x8010, 0x7fff);
                see(&d, 2 + i);
        }
        give(&d, 1, none, ELEMENTS(none));
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x7fff);
        /* not frozen any more: what it is given now is what counts later */
        d.plan.frozen[1] = FREEZE_NONE;
        see(&d, 5);
        give(&d, 1, more, ELEMENTS(more));
        d.plan.frozen[1] = FREEZE_LINES;
        limited = limit(&d, NULL);
        EXPECT(&limited->ports[1], 0x7fff);
}
END_TEST

/* Ports that are not there: what is certain, where the policy says two things of them. In the larger subnet a port has another
 * place, and an adapter that did not answer everything may have another name, which counts: what it calls itself now may be a
 * claim. */
START_TEST(larger_subnet)
{
        enum freeze contested[6] = { [0] = FREEZE_LINES, [1] = FREEZE_NAME, [4] = FREEZE_LINES, [5] = FREEZE_SWITCH_NAME };
        static const struct p_key more[] = { { 0x8010 }, { 0x8011 }, { 0x7fff } };
        const struct desired *limited;
        struct decision d, all;

        make_decision(&d, 2, 3);
        make_decision(&all, 0, 6);
        give(&all, 4, more, ELEMENTS(more));
        all.desired.frozen = contested;
        see(&d, 0);
        d.plan.frozen[0] = FREEZE_CAPACITY; /* host 2 */
        all.desired.ports[2].n_wanted = 1;
        limited = limit(&d, &all.desired);
        ck_assert_ptr_eq(limited, &all.desired);
        EXPECT(&limited->ports[0], 0x7fff);
        EXPECT(&limited->ports[1], 0x8010, 0x7fff);
        EXPECT(&limited->ports[2], 0x8010);
        ck_assert_ptr_null(limited->ports[2].most); /* no line is contested: it is known */
        EXPECT(&limited->ports[3], 0x8010, 0x7fff);
        EXPECT(&limited->ports[4], 0x8010, 0x8011, 0x7fff); /* it is there, and not contested there */
        EXPECT(&limited->ports[5], 0x7fff);
        EXPECT_MOST(&limited->ports[5], true, 0x8010, 0x7fff);
        ck_assert_ptr_null(limited->ports[4].most);
}
END_TEST

/* A port that is silent, of an adapter that is there and whose name another one has. */
START_TEST(silent_port)
{
        enum freeze contested[4] = { [1] = FREEZE_NAME, [3] = FREEZE_NAME };
        static const struct p_key limited_key[] = { { 0x0010 } };
        const struct desired *limited;
        struct decision d, both, all;

        make_decision(&d, 0, 2);
        ports_each = 2;
        make_decision(&both, 0, 2);
        give(&both, 1, limited_key, 1);
        make_decision(&all, 0, 2);
        all.desired.frozen = contested;
        limited = limit(&d, &all.desired);
        EXPECT(&limited->ports[0], 0x8010, 0x7fff);
        EXPECT(&limited->ports[1], 0x7fff); /* it had nothing else before */
        see(&both, 0);
        make_decision(&all, 0, 2);
        all.desired.frozen = contested;
        limited = limit(&d, &all.desired);
        EXPECT(&limited->ports[1], 0x0010, 0x7fff);
        EXPECT(&limited->ports[2], 0x8010, 0x7fff);
        EXPECT(&limited->ports[3], 0x8010, 0x7fff);
        ports_each = 1;
}
END_TEST

/* --- the log -------------------------------------------------------------------------------------------------------------- */

static unsigned count_logged(enum log_event event)
{
        const struct log_entry *entry;
        unsigned n = 0;

        while ((entry = log_next(events)) != NULL)
                n += entry->event == event;
        return n;
}

START_TEST(logged_once)
{
        const struct frozen_port *ports;
        struct decision d;
        uint32_t n;

        make_decision(&d, 0, 3);
        see(&d, 0);
        (void) freezer_ports(freezer, &n);
        ck_assert_uint_eq(n, 0);
        d.plan.frozen[1] = FREEZE_NAME;
        see(&d, 10);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_FROZEN), 1);
        see(&d, 20);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_FROZEN), 0);
        d.plan.frozen[1] = FREEZE_LINES; /* another reason is news, but it was frozen before */
        see(&d, 30);
        ports = freezer_ports(freezer, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(ports[0].node_guid.v, guid_of(1).v);
        ck_assert_uint_eq(ports[0].since, WALL + 10);
        ck_assert_uint_eq(ports[0].lid.v, 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_FROZEN), 1);
        d.plan.frozen[1] = FREEZE_NONE;
        see(&d, 40);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNFROZEN), 1);
        see(&d, 50);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNFROZEN), 0);
}
END_TEST

START_TEST(many_are_summed_up)
{
        const struct log_entry *entry;
        struct decision d;

        make_decision(&d, 0, MAX_HOSTS);
        for (unsigned i = 0; i < MAX_HOSTS; i++)
                d.plan.frozen[i] = FREEZE_SWITCH_NAME;
        see(&d, 0);
        for (unsigned i = 0; i < EVENT_TEXT_MAX; i++)
                ck_assert_int_eq(log_next(events)->event, LOG_EVENT_PORT_FROZEN);
        entry = log_next(events);
        ck_assert_ptr_nonnull(strstr(entry->text, "24 more ports are frozen; pkeyctl plan lists all"));
        ck_assert_ptr_null(log_next(events));
}
END_TEST

/* --- the promises beside a frozen port -------------------------------------------------------------------------------------- */

enum { FROZEN, X, Y, N_PORTS };

struct scene {
        uint8_t before[N_PORTS], policy[N_PORTS];
        uint8_t given; /* what the policy in force gave the frozen port before it was frozen */
};

static bool is_admitted(const struct scene *s, const uint8_t *now, unsigned q)
{
        const enum level given = s->given, lines = s->policy[FROZEN];

        for (unsigned p = 0; p < N_PORTS; p++) {
                const struct rule_class other = {
                        .policy = p == FROZEN ? rule_policy_between(MIN(given, lines), MAX(given, lines)) : s->policy[p],
                        .bounds = { now[p], now[p] },
                };

                if (p != q && rule_judge_pair(s->policy[q], (struct bounds) { now[q], now[q] },
                                              (struct bounds) { s->policy[q], s->policy[q] }, &other) != RULE_ADMITS)
                        return false;
        }
        return true;
}

static void judge_state(const struct scene *s, const uint8_t *now)
{
        for (unsigned q = X; q < N_PORTS; q++) {
                bool talked = levels_talk(s->before[q], s->before[FROZEN]), talks = levels_talk(now[q], now[FROZEN]);

                REQUIRE(!talks || talked ||
                        (levels_talk(s->policy[q], s->policy[FROZEN]) && levels_talk(s->policy[q], s->given)));
                REQUIRE(talks || !talked ||
                        (!levels_talk(s->policy[q], s->policy[FROZEN]) && !levels_talk(s->policy[q], s->given)));
        }
        REQUIRE(!levels_talk(now[X], now[Y]) || levels_talk(s->before[X], s->before[Y]) || levels_talk(s->policy[X], s->policy[Y]));
        REQUIRE(levels_talk(now[X], now[Y]) || !levels_talk(s->before[X], s->before[Y]) ||
                !levels_talk(s->policy[X], s->policy[Y]));
}

/* Every order of writes; the frozen port is not written. Gives whether there is one to the end. */
static bool walk(const struct scene *s, const uint8_t now[N_PORTS])
{
        bool done = true, is_reached = false;

        judge_state(s, now);
        for (unsigned q = X; q < N_PORTS; q++) {
                uint8_t next[N_PORTS] = { now[FROZEN], now[X], now[Y] };

                if (now[q] == s->policy[q])
                        continue;
                done = false;
                if (!is_admitted(s, now, q))
                        continue;
                next[q] = s->policy[q];
                is_reached |= walk(s, next);
        }
        return done || is_reached;
}

START_TEST(promises)
{
        unsigned n_stuck = 0;

        for (unsigned i = 0; i < 3 * 3 * 3 * 3 * 3 * 3 * 3; i++) {
                unsigned k = i, last = k % 3;
                struct scene s;
                bool is_reached;

                for (unsigned p = 0; p < N_PORTS; p++) {
                        s.before[p] = (uint8_t) ((k /= 3) % 3);
                        s.policy[p] = (uint8_t) ((k /= 3) % 3);
                }
                s.given = (uint8_t) last;
                is_reached = walk(&s, s.before);
                REQUIRE(is_reached || s.before[FROZEN] > MIN(s.given, s.policy[FROZEN]) ||
                        (s.before[FROZEN] != LEVEL_NONE && s.before[FROZEN] < MAX(s.given, s.policy[FROZEN])));
                n_stuck += !is_reached;
        }
        ck_assert_uint_gt(n_stuck, 0); /* where the frozen port holds more than it is given, or less, others wait */
}
END_TEST

int main(void)
{
        Suite *s = suite_create("freezer");
        TCase *t = tcase_create("freezer");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, nothing_frozen);
        tcase_add_test(t, frozen_and_never_seen);
        tcase_add_test(t, frozen_and_seen_incomplete);
        tcase_add_test(t, lower_of_both);
        tcase_add_test(t, certainly_given);
        tcase_add_test(t, certain_by_another_name);
        tcase_add_test(t, given_before_is_kept);
        tcase_add_test(t, larger_subnet);
        tcase_add_test(t, silent_port);
        tcase_add_test(t, logged_once);
        tcase_add_test(t, many_are_summed_up);
        tcase_add_test(t, promises);
        suite_add_tcase(s, t);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
