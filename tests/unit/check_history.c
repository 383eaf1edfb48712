/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../fabsim/prng.h"
#include "violations/history.h"

/* Fabrics and policies made by hand: endport i has GUID 100 + i, partition i has base i + 1. */
#define PORTS      8
#define PARTITIONS 5
#define ABSENT     UINT8_MAX

/* What each endport is in each partition; ABSENT in the first: it is not there. */
typedef uint8_t grid[PORTS][PARTITIONS];

static struct guid guid_of(uint32_t port)
{
        return (struct guid) { 100 + port };
}

/* Ports stand in the snapshot from the highest GUID to the lowest, so that order in it is no help; partitions' bases go
 * down. The names are those of this policy only. */
static struct memberships *make(struct arena *a, uint32_t n_ports, uint32_t n_partitions, const uint8_t *cells,
                                const char *prefix)
{
        struct memberships *m = arena_new_object(a, struct memberships);
        struct subnet *s = arena_new_object(a, struct subnet);
        struct policy *p = arena_new_object(a, struct policy);
        uint32_t n = 0;

        p->n_partitions = n_partitions;
        p->partitions = arena_new_array(a, struct policy_partition, n_partitions);
        for (uint32_t i = 0; i < n_partitions; i++) {
                p->partitions[i].base = (uint16_t) (n_partitions - i);
                p->partitions[i].name = arena_printf(a, "%s%u", prefix, (unsigned) p->partitions[i].base);
        }
        s->ports = arena_new_array(a, struct subnet_port, n_ports);
        s->by_port_guid = arena_new_array(a, uint32_t, n_ports);
        m->first = arena_new_array(a, uint32_t, (size_t) n_ports + 1);
        m->items = arena_new_array(a, struct port_membership, (size_t) n_ports * n_partitions);
        for (uint32_t i = n_ports; i-- > 0;) {
                const uint8_t *row = cells + (size_t) i * n_partitions;

                if (row[0] == ABSENT)
                        continue;
                s->ports[s->n_ports].guid = guid_of(i);
                m->first[s->n_ports++] = n;
                for (uint32_t j = 0; j < n_partitions; j++) {
                        uint16_t base = p->partitions[j].base;

                        if (row[base - 1] != MEMBERSHIP_NONE)
                                m->items[n++] = (struct port_membership) { j, (enum membership) row[base - 1], NULL };
                }
        }
        m->first[s->n_ports] = n;
        for (uint32_t i = 0; i < s->n_ports; i++)
                s->by_port_guid[i] = s->n_ports - 1 - i;
        s->n_by_port_guid = s->n_ports;
        m->subnet = s;
        m->policy = p;
        return m;
}

static void learn(struct membership_history *h, usec_t now, uint64_t generation, grid cells, const char *prefix)
{
        _cleanup_arena_ struct arena *a = arena_new();

        ck_assert_int_eq(membership_history_learn(h, now, generation, make(a, PORTS, PARTITIONS, &cells[0][0], prefix)),
                         0);
}

static void expect(const struct membership_history *h, uint32_t port, uint16_t base, enum membership before,
                   enum membership after, uint64_t generation, usec_t when, const char *name, bool same_policy)
{
        const struct membership_change *c = membership_history_find(h, guid_of(port), base);

        ck_assert_msg(c != NULL, "port %u, base %u: no change is known", port, base);
        ck_assert_uint_eq(c->port_guid.v, guid_of(port).v);
        ck_assert_int_eq(c->before, before);
        ck_assert_int_eq(c->after, after);
        ck_assert_uint_eq(c->generation, generation);
        ck_assert_uint_eq(c->when, when);
        ck_assert_str_eq(c->partition, name);
        ck_assert_int_eq(c->same_policy, same_policy);
}

static uint32_t count(const struct membership_history *h)
{
        uint32_t n, all = 0;

        for (uint32_t i = 0; i < PORTS; i++) {
                (void) membership_history_of(h, guid_of(i), &n);
                all += n;
        }
        return all;
}

START_TEST(test_first_generation)
{
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        grid cells = { { MEMBERSHIP_FULL, MEMBERSHIP_LIMITED } };
        uint32_t n = 7;

        ck_assert_ptr_nonnull(h);
        ck_assert_ptr_null(membership_history_find(h, guid_of(0), 1));
        ck_assert_ptr_null(membership_history_of(h, guid_of(0), &n));
        ck_assert_uint_eq(n, 0);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(0)), USEC_INFINITY);
        learn(h, 10, 1, cells, "p");
        ck_assert_uint_eq(count(h), 0);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(0)), 10);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(PORTS)), USEC_INFINITY);
        /* the same again, with the same generation and with another one: nothing has changed */
        learn(h, 20, 1, cells, "p");
        learn(h, 30, 2, cells, "p");
        ck_assert_uint_eq(count(h), 0);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(0)), 10);
}
END_TEST

START_TEST(test_changes)
{
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        grid cells = { { MEMBERSHIP_FULL, MEMBERSHIP_LIMITED, MEMBERSHIP_NONE, MEMBERSHIP_BOTH } };
        const struct membership_change *c;
        uint32_t n;

        learn(h, 10, 1, cells, "old-");
        cells[0][0] = MEMBERSHIP_NONE;
        cells[0][2] = MEMBERSHIP_LIMITED;
        learn(h, 20, 2, cells, "new-");
        expect(h, 0, 1, MEMBERSHIP_FULL, MEMBERSHIP_NONE, 2, 20, "old-1", false);
        expect(h, 0, 3, MEMBERSHIP_NONE, MEMBERSHIP_LIMITED, 2, 20, "new-3", false);
        ck_assert_ptr_null(membership_history_find(h, guid_of(0), 2));
        ck_assert_ptr_null(membership_history_find(h, guid_of(0), 4));
        /* names outlive the generations they come from */
        cells[0][3] = MEMBERSHIP_FULL;
        learn(h, 30, 3, cells, "third-");
        expect(h, 0, 1, MEMBERSHIP_FULL, MEMBERSHIP_NONE, 2, 20, "old-1", false);
        expect(h, 0, 4, MEMBERSHIP_BOTH, MEMBERSHIP_FULL, 3, 30, "third-4", false);
        c = membership_history_of(h, guid_of(0), &n);
        ck_assert_uint_eq(n, 3);
        ck_assert(c[0].base == 1 && c[1].base == 3 && c[2].base == 4);
        /* only the last change of each is kept */
        cells[0][0] = MEMBERSHIP_LIMITED;
        learn(h, 40, 4, cells, "x");
        expect(h, 0, 1, MEMBERSHIP_NONE, MEMBERSHIP_LIMITED, 4, 40, "x1", false);
        ck_assert_uint_eq(count(h), 3);
}
END_TEST

/* The same policy gives a host something else once it has another name or another switch port. */
START_TEST(test_same_policy_another_fabric)
{
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        grid cells = { { MEMBERSHIP_FULL }, { MEMBERSHIP_FULL } };

        learn(h, 10, 1, cells, "p");
        cells[1][0] = MEMBERSHIP_NONE;
        learn(h, 20, 1, cells, "p");
        expect(h, 1, 1, MEMBERSHIP_FULL, MEMBERSHIP_NONE, 1, 20, "p1", true);
        ck_assert_uint_eq(count(h), 1);
}
END_TEST

START_TEST(test_absence)
{
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        grid cells = { { MEMBERSHIP_FULL }, { ABSENT }, { MEMBERSHIP_LIMITED, MEMBERSHIP_FULL } };

        learn(h, 10, 1, cells, "p");
        /* a new one has no past */
        cells[1][0] = MEMBERSHIP_FULL;
        learn(h, 20, 2, cells, "p");
        ck_assert_uint_eq(count(h), 0);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(1)), 20);
        /* vanished: that alone is no change of what it is given */
        cells[2][0] = ABSENT;
        learn(h, 30, 2, cells, "p");
        learn(h, 40, 3, cells, "q");
        ck_assert_uint_eq(count(h), 0);
        /* back under the same policy as before */
        cells[2][0] = MEMBERSHIP_LIMITED;
        learn(h, 50, 3, cells, "q");
        ck_assert_uint_eq(count(h), 0);
        /* gone once more, and back under another policy: which of those in between did it is not known */
        cells[2][0] = ABSENT;
        learn(h, 60, 3, cells, "q");
        learn(h, 70, 4, cells, "r");
        cells[2][0] = MEMBERSHIP_LIMITED;
        cells[2][1] = MEMBERSHIP_NONE;
        learn(h, 80, 4, cells, "r");
        expect(h, 2, 2, MEMBERSHIP_FULL, MEMBERSHIP_NONE, 4, 80, "q2", false);
        ck_assert_uint_eq(membership_history_find(h, guid_of(2), 2)->away_since, 50);
        ck_assert_uint_eq(count(h), 1);
        /* it was there all the time */
        cells[2][0] = MEMBERSHIP_FULL;
        learn(h, 90, 5, cells, "r");
        ck_assert_uint_eq(membership_history_find(h, guid_of(2), 1)->away_since, 0);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(2)), 10);
}
END_TEST

/* Two endports with one GUID, and one without: hostile, and no reason to lose the order of things. */
START_TEST(test_hostile_guids)
{
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        _cleanup_arena_ struct arena *a = arena_new();
        grid cells = {{MEMBERSHIP_FULL}, {MEMBERSHIP_FULL, MEMBERSHIP_FULL}, {MEMBERSHIP_LIMITED}, {MEMBERSHIP_FULL}};
        struct memberships *m = make(a, 4, PARTITIONS, &cells[0][0], "p");
        uint32_t n;

        /* in the order of by_port_guid: 0, 101, 101, 103 */
        ((struct subnet *) m->subnet)->ports[3].guid.v = 0;
        ((struct subnet *) m->subnet)->ports[1].guid = guid_of(1);
        for (usec_t now = 1; now < 4; now++)
                ck_assert_int_eq(membership_history_learn(h, now, now, m), 0);
        ck_assert_uint_eq(count(h), 0);
        ck_assert_ptr_null(membership_history_of(h, (struct guid) {}, &n));
        ck_assert_uint_eq(membership_history_known_since(h, (struct guid) {}), USEC_INFINITY);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(1)), 1);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(3)), 1);
}
END_TEST

/* --- bounds ----------------------------------------------------------------------------------------------------- */

static uint8_t *fill(uint32_t n, uint8_t a, uint8_t b)
{
        uint8_t *cells = malloc((size_t) n * 2);

        ck_assert_ptr_nonnull(cells);
        for (uint32_t i = 0; i < n; i++) {
                cells[2 * i] = a;
                cells[2 * i + 1] = b;
        }
        return cells;
}

static void learn_many(struct membership_history *h, usec_t now, uint32_t n, const uint8_t *cells)
{
        _cleanup_arena_ struct arena *a = arena_new();

        ck_assert_int_eq(membership_history_learn(h, now, now, make(a, n, 2, cells, "p")), 0);
}

START_TEST(test_oldest_changes_go_first)
{
        const uint32_t n = HISTORY_MAX_CHANGES / 2 + 1000;
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        _cleanup_free_ uint8_t *one = fill(n, MEMBERSHIP_FULL, MEMBERSHIP_FULL);
        _cleanup_free_ uint8_t *two = fill(n, MEMBERSHIP_NONE, MEMBERSHIP_FULL);
        _cleanup_free_ uint8_t *three = fill(n, MEMBERSHIP_NONE, MEMBERSHIP_LIMITED);
        uint32_t kept[3] = {};

        learn_many(h, 1, n, one);
        learn_many(h, 2, n, two);
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(0)), 1);
        learn_many(h, 3, n, three);
        for (uint32_t i = 0; i < n; i++) {
                kept[1] += membership_history_find(h, guid_of(i), 1) != NULL;
                kept[2] += membership_history_find(h, guid_of(i), 2) != NULL;
        }
        ck_assert_uint_eq(kept[2], n);
        ck_assert_uint_eq(kept[1], HISTORY_MAX_CHANGES - n);
        /* what is known is known from the lost changes on only */
        ck_assert_uint_eq(membership_history_known_since(h, guid_of(0)), 2);
}
END_TEST

START_TEST(test_longest_gone_are_forgotten)
{
        const uint32_t n = HISTORY_MAX_GONE + 100;
        _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
        _cleanup_free_ uint8_t *cells = fill(n + 1, MEMBERSHIP_FULL, MEMBERSHIP_FULL);

        learn_many(h, 1, n + 1, cells);
        for (uint32_t i = 0; i < 50; i++)
                cells[2 * i] = ABSENT;
        learn_many(h, 2, n + 1, cells);
        for (uint32_t i = 0; i < n; i++)
                cells[2 * i] = ABSENT;
        learn_many(h, 3, n + 1, cells);
        /* 50 are gone since the first snapshot, the rest since the second: of them those with the highest GUIDs go */
        for (uint32_t i = 0; i < n + 1; i++) {
                bool forgotten = i < 50 || (i >= n - 50 && i < n);

                ck_assert_msg((membership_history_known_since(h, guid_of(i)) == USEC_INFINITY) == forgotten, "port %u",
                              i);
        }
}
END_TEST

/* --- a naive model ---------------------------------------------------------------------------------------------- */

struct cell {
        bool changed;
        uint8_t before, after;
        uint64_t generation;
        usec_t when;
        bool same_policy;
        char name[24];
};

struct model {
        uint8_t last[PORTS][PARTITIONS];
        char names[PORTS][8]; /* the prefix of the policy that gave `last` */
        uint64_t generation[PORTS];
        usec_t since[PORTS];
        bool known[PORTS];
        struct cell cells[PORTS][PARTITIONS];
};

static void model_learn(struct model *m, usec_t now, uint64_t generation, grid cells, const char *prefix)
{
        for (uint32_t i = 0; i < PORTS; i++) {
                if (cells[i][0] == ABSENT)
                        continue;
                for (uint32_t j = 0; m->known[i] && j < PARTITIONS; j++) {
                        struct cell *c = &m->cells[i][j];

                        if (m->last[i][j] == cells[i][j])
                                continue;
                        *c = (struct cell) { true, m->last[i][j], cells[i][j], generation, now,
                                             m->generation[i] == generation, "" };
                        (void) snprintf(c->name, sizeof(c->name), "%s%u",
                                        cells[i][j] == MEMBERSHIP_NONE ? m->names[i] : prefix, j + 1);
                }
                if (!m->known[i])
                        m->since[i] = now;
                m->known[i] = true;
                memcpy(m->last[i], cells[i], PARTITIONS);
                (void) snprintf(m->names[i], sizeof(m->names[i]), "%s", prefix);
                m->generation[i] = generation;
        }
}

static void compare(const struct model *m, const struct membership_history *h)
{
        for (uint32_t i = 0; i < PORTS; i++) {
                uint32_t n, n_changed = 0;

                for (uint32_t j = 0; j < PARTITIONS; j++) {
                        const struct cell *c = &m->cells[i][j];

                        n_changed += c->changed;
                        if (c->changed)
                                expect(h, i, (uint16_t) (j + 1), (enum membership) c->before,
                                       (enum membership) c->after, c->generation, c->when, c->name, c->same_policy);
                        else
                                ck_assert_ptr_null(membership_history_find(h, guid_of(i), (uint16_t) (j + 1)));
                }
                (void) membership_history_of(h, guid_of(i), &n);
                ck_assert_uint_eq(n, n_changed);
                ck_assert_uint_eq(membership_history_known_since(h, guid_of(i)),
                                  m->known[i] ? m->since[i] : USEC_INFINITY);
        }
}

/* One step: some cells change, some ports come and go, now and then there is a new generation. */
static void shake(struct prng *random, grid cells, uint64_t *generation)
{
        *generation += prng_permille(random, 600);
        for (uint32_t i = 0; i < PORTS; i++) {
                bool absent = prng_permille(random, 200);

                for (uint32_t j = 0; j < PARTITIONS; j++)
                        if (cells[i][j] == ABSENT || prng_permille(random, 200))
                                cells[i][j] = (uint8_t) prng_below(random, MEMBERSHIP_BOTH + 1);
                if (absent)
                        cells[i][0] = ABSENT;
        }
}

START_TEST(test_against_model)
{
        for (uint64_t seed = 0; seed < 100; seed++) {
                _cleanup_(membership_history_free_p) struct membership_history *h = membership_history_new();
                struct prng random = { seed };
                struct model model = {};
                uint64_t generation = 1;
                grid cells = {};

                for (usec_t now = 1; now <= 20; now++) {
                        char prefix[8];

                        shake(&random, cells, &generation);
                        (void) snprintf(prefix, sizeof(prefix), "g%u-", (unsigned) generation);
                        learn(h, now, generation, cells, prefix);
                        model_learn(&model, now, generation, cells, prefix);
                        compare(&model, h);
                }
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("history");
        TCase *tcase = tcase_create("history");
        SRunner *runner;
        int failed;

        tcase_set_timeout(tcase, 120);
        tcase_add_test(tcase, test_first_generation);
        tcase_add_test(tcase, test_changes);
        tcase_add_test(tcase, test_same_policy_another_fabric);
        tcase_add_test(tcase, test_absence);
        tcase_add_test(tcase, test_hostile_guids);
        tcase_add_test(tcase, test_oldest_changes_go_first);
        tcase_add_test(tcase, test_longest_gone_are_forgotten);
        tcase_add_test(tcase, test_against_model);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
