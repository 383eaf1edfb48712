/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule, tried on every small case. One base. A port has a host table and, if it filters, the table of its leaf port; what
 * both let through is its level, in each of two models of a switch. Tables that do not answer keep their level, and what is
 * known of them are any bounds around it.
 * Writes come in any order that the rule admits, each alone. In every state that can be reached: who may talk before and by the
 * policy may talk; who may talk neither before nor by the policy may not; and where everything is known something is always
 * admitted until all is done.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/rule.h"

#define MAX_PORTS  3
#define MAX_TABLES 4
#define MAX_STATES 81 /* 3 to the power of MAX_TABLES */

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some million times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

struct scene {
        unsigned n_ports, n_tables;       /* table i of port i; then those of the leaf ports of ports 0, 1, ... */
        uint8_t before[MAX_TABLES];       /* levels of tables */
        uint8_t policy[MAX_PORTS];
        bool mute[MAX_TABLES];
        struct bounds known[MAX_TABLES];  /* of mute tables */
        bool absent[MAX_PORTS];           /* host and leaf table are mute, and it talks to no port */
        bool frozen[MAX_PORTS];           /* host table is mute, and of what the policy gives it only a range is known: */
        struct bounds range[MAX_PORTS];
        bool any_mute;
};

static unsigned port_of(const struct scene *s, unsigned table)
{
        return table < s->n_ports ? table : table - s->n_ports;
}

static unsigned leaf_of(const struct scene *s, unsigned port)
{
        return s->n_ports + port < s->n_tables ? s->n_ports + port : MAX_TABLES;
}

static unsigned level_of(const struct scene *s, const uint8_t *levels, unsigned port, enum filter_model model)
{
        unsigned leaf = leaf_of(s, port);

        if (leaf == MAX_TABLES)
                return levels[port];
        if (model == FILTER_BY_LEVEL)
                return MIN(levels[port], levels[leaf]);
        return levels[leaf] ? levels[port] : LEVEL_NONE;
}

static struct bounds bounds_of(const struct scene *s, const uint8_t *levels, unsigned port, enum filter_model model)
{
        unsigned leaf = leaf_of(s, port);
        struct bounds b[2];

        for (unsigned i = 0; i < 2; i++) {
                unsigned table = i ? leaf : port;

                if (table == MAX_TABLES)
                        return b[0];
                b[i] = s->mute[table] ? s->known[table] : (struct bounds) { levels[table], levels[table] };
        }
        return bounds_behind_filter(model, b[0], b[1]);
}

static void check_promises(const struct scene *s, const uint8_t *now, enum filter_model model)
{
        for (unsigned x = 0; x < s->n_ports; x++)
                for (unsigned y = 0; y < x; y++) {
                        bool before = levels_talk(level_of(s, s->before, x, model), level_of(s, s->before, y, model));
                        bool after = levels_talk(s->policy[x], s->policy[y]);
                        bool talk = levels_talk(level_of(s, now, x, model), level_of(s, now, y, model));

                        /* an absent port is cut off already; but it may be back at any time */
                        REQUIRE(!(before && after && !talk) || s->absent[x] || s->absent[y]);
                        REQUIRE(before || after || !talk);
                }
}

static enum level policy_of(const struct scene *s, unsigned port)
{
        return s->frozen[port] ? rule_policy_between(s->range[port].has, s->range[port].may) : (enum level) s->policy[port];
}

/* The counts of all other ports give the same verdict as each port alone. */
static bool is_admitted_by(const struct scene *s, const uint8_t *levels, unsigned table, enum filter_model model)
{
        unsigned q = port_of(s, table);
        struct rule_counts others = {};
        enum rule_verdict verdict, worst = RULE_ADMITS;
        struct bounds before = bounds_of(s, levels, q, model), after;
        uint8_t then[MAX_TABLES];

        memcpy(then, levels, sizeof(then));
        then[table] = s->policy[q];
        after = bounds_of(s, then, q, model);
        for (unsigned p = 0; p < s->n_ports; p++) {
                const struct rule_class class = {
                        .policy = (uint8_t) policy_of(s, p), .bounds = bounds_of(s, levels, p, model), .is_absent = s->absent[p],
                };

                if (p == q)
                        continue;
                rule_count(&others, &class, 1);
                if (worst == RULE_ADMITS)
                        worst = rule_judge_pair(policy_of(s, q), before, after, &class);
        }
        verdict = rule_judge(policy_of(s, q), before, after, &others);
        REQUIRE((verdict == RULE_ADMITS) == (worst == RULE_ADMITS));
        return verdict == RULE_ADMITS;
}

static bool is_admitted(const struct scene *s, const uint8_t *levels, unsigned table)
{
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                if (!is_admitted_by(s, levels, table, m))
                        return false;
        return true;
}

static unsigned pack(const struct scene *s, const uint8_t *levels)
{
        unsigned state = 0;

        for (unsigned i = 0; i < s->n_tables; i++)
                state = 3 * state + levels[i];
        return state;
}

static void step(const struct scene *s, const uint8_t *now, bool *seen, uint8_t (*todo)[MAX_TABLES], unsigned *n_todo)
{
        bool any = false, all_done = true;

        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                check_promises(s, now, m);
        for (unsigned i = 0; i < s->n_tables; i++) {
                uint8_t next[MAX_TABLES];

                if (s->mute[i] || now[i] == s->policy[port_of(s, i)])
                        continue;
                all_done = false;
                if (!is_admitted(s, now, i))
                        continue;
                any = true;
                memcpy(next, now, sizeof(next));
                next[i] = s->policy[port_of(s, i)];
                if (!seen[pack(s, next)]) {
                        seen[pack(s, next)] = true;
                        memcpy(todo[(*n_todo)++], next, sizeof(next));
                }
        }
        REQUIRE(any || all_done || s->any_mute);
}

static void explore(const struct scene *s)
{
        uint8_t todo[MAX_STATES][MAX_TABLES] = {};
        bool seen[MAX_STATES] = {};
        unsigned n_todo = 1;

        memcpy(todo[0], s->before, MAX_TABLES);
        seen[pack(s, s->before)] = true;
        while (n_todo > 0) {
                uint8_t now[MAX_TABLES];

                memcpy(now, todo[--n_todo], sizeof(now));
                step(s, now, seen, todo, &n_todo);
        }
}

/* Every ignorance of each mute table. */
static void know(struct scene *s, unsigned table)
{
        if (table == s->n_tables) {
                explore(s);
                return;
        }
        if (!s->mute[table]) {
                know(s, table + 1);
                return;
        }
        for (uint8_t has = 0; has <= s->before[table]; has++)
                for (uint8_t may = s->before[table]; may < N_LEVELS; may++) {
                        s->known[table] = (struct bounds) { has, may };
                        know(s, table + 1);
                }
}

/* What the policy gives this port is known as any range in which it is. */
static void freeze(struct scene *s, unsigned port)
{
        s->frozen[port] = true;
        for (uint8_t least = 0; least <= s->policy[port]; least++)
                for (uint8_t most = s->policy[port]; most < N_LEVELS; most++) {
                        s->range[port] = (struct bounds) { least, most };
                        know(s, 0);
                }
        s->frozen[port] = false;
}

/* One mute port in turn is absent: it talks to no port until it returns; or it is frozen, or was never discovered completely. */
static void leave(struct scene *s)
{
        know(s, 0);
        for (unsigned p = 0; p < s->n_ports; p++) {
                if (!s->mute[p] || leaf_of(s, p) != MAX_TABLES)
                        continue;
                freeze(s, p);
                s->absent[p] = true;
                know(s, 0);
                s->absent[p] = false;
        }
}

static unsigned power(unsigned base, unsigned exponent)
{
        return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static void digits(unsigned number, unsigned base, unsigned n, uint8_t *ret)
{
        for (unsigned i = 0; i < n; i++, number /= base)
                ret[i] = (uint8_t) (number % base);
}

static void try_all(unsigned n_ports, unsigned n_filters)
{
        struct scene s = { .n_ports = n_ports, .n_tables = n_ports + n_filters };

        for (unsigned before = 0; before < power(3, s.n_tables); before++)
                for (unsigned policy = 0; policy < power(3, n_ports); policy++)
                        for (unsigned mute = 0; mute < power(2, s.n_tables); mute++) {
                                digits(before, 3, s.n_tables, s.before);
                                digits(policy, 3, n_ports, s.policy);
                                for (unsigned i = 0; i < s.n_tables; i++)
                                        s.mute[i] = mute >> i & 1;
                                s.any_mute = mute != 0;
                                leave(&s);
                        }
}

START_TEST(two_ports)
{
        try_all(2, 0);
        try_all(2, 1);
}
END_TEST

START_TEST(two_ports_behind_filters)
{
        try_all(2, 2);
}
END_TEST

START_TEST(three_ports)
{
        try_all(3, 0);
        try_all(3, 1);
}
END_TEST

/* --- counts -------------------------------------------------------------------------------------------------------------- */

START_TEST(counts_are_taken_back)
{
        struct rule_counts counts = {}, none = {};
        const struct rule_class classes[] = {
                { LEVEL_FULL, { LEVEL_LIMITED, LEVEL_FULL }, false }, { LEVEL_FULL, { LEVEL_NONE, LEVEL_FULL }, true },
                { LEVEL_NONE, { LEVEL_NONE, LEVEL_LIMITED }, false },
                { POLICY_UNKNOWN, { LEVEL_NONE, LEVEL_FULL }, false }, { LEVEL_FULL, { LEVEL_NONE, LEVEL_NONE }, false },
                { POLICY_UP_TO_LIMITED, { LEVEL_NONE, LEVEL_FULL }, false },
                { POLICY_FROM_LIMITED, { LEVEL_FULL, LEVEL_FULL }, false },
        };

        for (unsigned i = 0; i < ELEMENTS(classes); i++)
                rule_count(&counts, &classes[i], 3);
        ck_assert_int_ne(memcmp(&counts, &none, sizeof(counts)), 0);
        for (unsigned i = 0; i < ELEMENTS(classes); i++)
                rule_count(&counts, &classes[i], -3);
        ck_assert_int_eq(memcmp(&counts, &none, sizeof(counts)), 0);
}
END_TEST

START_TEST(cannot_take_away_what_is_not_there)
{
        struct rule_counts counts = {};

        rule_count(&counts, &(struct rule_class) { .bounds = { LEVEL_NONE, LEVEL_FULL } }, -1);
}
END_TEST

/* An absent port keeps its entries, but no port can be cut off from it. */
START_TEST(absent_ports_lose_nothing)
{
        const struct bounds full = { LEVEL_FULL, LEVEL_FULL }, none = {};
        struct rule_class other = { LEVEL_FULL, { LEVEL_NONE, LEVEL_FULL }, true };

        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, full, none, &other), RULE_ADMITS);
        other.is_absent = false;
        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, full, none, &other), RULE_LOSS);
        other.policy = LEVEL_NONE;
        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, full, none, &other), RULE_ADMITS);
        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, none, full, &other), RULE_GAIN);
        other.is_absent = true;
        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, none, full, &other), RULE_GAIN);
}
END_TEST

/* No port may gain it as a peer, and no port that may be its peer may be cut off from it. */
START_TEST(unknown_policy_admits_least)
{
        const struct bounds full = { LEVEL_FULL, LEVEL_FULL }, none = {};
        const struct rule_class other = { POLICY_UNKNOWN, { LEVEL_NONE, LEVEL_FULL }, false };
        const struct bounds limited = { LEVEL_LIMITED, LEVEL_LIMITED };

        ck_assert_int_eq(rule_judge_pair(LEVEL_FULL, none, limited, &other), RULE_GAIN);
        ck_assert_int_eq(rule_judge_pair(LEVEL_LIMITED, full, limited, &other), RULE_LOSS);
        ck_assert_int_eq(rule_judge_pair(LEVEL_NONE, full, none, &other), RULE_ADMITS);
        ck_assert_int_eq(rule_judge_pair(POLICY_UNKNOWN, full, none, &other), RULE_LOSS);
}
END_TEST

/* Of each range the lowest level counts for a gain, the highest for a loss. */
START_TEST(ranges)
{
        bool met[N_POLICY_LEVELS] = {};

        for (enum level least = 0; least < N_LEVELS; least++)
                for (enum level most = least; most < N_LEVELS; most++) {
                        enum level policy = rule_policy_between(least, most);

                        ck_assert_uint_lt(policy, N_POLICY_LEVELS);
                        ck_assert(!met[policy]);
                        met[policy] = true;
                        ck_assert_uint_eq(rule_policy_for(RULE_GAIN, policy), least);
                        ck_assert_uint_eq(rule_policy_for(RULE_LOSS, policy), most);
                }
        ck_assert_uint_eq(rule_policy_between(LEVEL_NONE, LEVEL_FULL), POLICY_UNKNOWN);
}
END_TEST

int main(void)
{
        TCase *model = tcase_create("model"), *counts = tcase_create("counts");
        Suite *s = suite_create("rule");
        SRunner *sr;
        int failed;

        tcase_set_timeout(model, 300);
        tcase_add_test(model, two_ports);
        tcase_add_test(model, two_ports_behind_filters);
        tcase_add_test(model, three_ports);
        tcase_add_test(counts, counts_are_taken_back);
        tcase_add_test_raise_signal(counts, cannot_take_away_what_is_not_there, 6);
        tcase_add_test(counts, absent_ports_lose_nothing);
        tcase_add_test(counts, unknown_policy_admits_least);
        tcase_add_test(counts, ranges);
        suite_add_tcase(s, model);
        suite_add_tcase(s, counts);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
