/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The planner's three promises, by enumeration: every transition between all levels of four ports and one base, and of three
 * ports and two bases, with every subset of every phase done. And the rules of indexes, one by one.
 */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_fabric.h"

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some million times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

static const struct plan_options remove_options = { .enforcement = ENFORCEMENT_BOTH };

static struct plan *plan_or_die(struct fake_fabric *f, struct arena *a, const struct desired *d, const struct observed *o,
                                const struct index_memory *m, const struct plan_options *options)
{
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct plan *plan = NULL;
        int r;

        (void) f;
        r = plan_compute(a, d, o, m, options, &findings, &plan);
        if (r != 0)
                ck_abort_msg("%s", findings.n ? findings.items[0].text : "refused");
        return plan;
}

static void do_write(struct fake_fabric *f, const struct plan_write *w)
{
        if (w->kind == WRITE_ENFORCEMENT) {
                f->enforce_inbound[w->port] = w->after_inbound;
                f->enforce_outbound[w->port] = w->after_outbound;
                return;
        }
        REQUIRE(memcmp(&f->tables[w->port][w->block * P_KEY_BLOCK_ENTRIES], w->before, sizeof(w->before)) == 0);
        memcpy(&f->tables[w->port][w->block * P_KEY_BLOCK_ENTRIES], w->after, sizeof(w->after));
}

struct relation {
        bool may[3][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];
};

static void relate(const struct fake_fabric *f, unsigned n_bases, bool strict, struct relation *ret)
{
        int level[FAKE_MAX_HOSTS];
        unsigned b, x, y;

        for (b = 0; b < n_bases; b++) {
                for (x = 0; x < f->n_hosts; x++)
                        level[x] = fake_fabric_level(f, x, FAKE_BASE(b + 1), strict);
                for (x = 0; x < f->n_hosts; x++)
                        for (y = x + 1; y < f->n_hosts; y++)
                                ret->may[b][x][y] = level[x] && level[y] && (level[x] == 2 || level[y] == 2);
        }
}

static void check_between(const struct relation *a, const struct relation *b, const struct relation *now, unsigned n_bases,
                          unsigned n_hosts)
{
        unsigned i, x, y;

        for (i = 0; i < n_bases; i++)
                for (x = 0; x < n_hosts; x++)
                        for (y = x + 1; y < n_hosts; y++) {
                                if (a->may[i][x][y] != b->may[i][x][y] || now->may[i][x][y] == a->may[i][x][y])
                                        continue;
                                ck_abort_msg("%s broken for %u-%u", a->may[i][x][y] ? "continuity" : "isolation", x, y);
                        }
}

/* Every subset of the writes of one step, from the state at its beginning; leaves all of them done. */
static void walk_step(struct fake_fabric *f, const struct plan_step *step, const struct relation from[2],
                      const struct relation to[2], unsigned n_bases)
{
        struct fake_fabric start = *f;
        struct relation now;
        unsigned subset, strict, w, n_models = f->enforce_inbound[f->leaf[0]] ? 2 : 1;

        REQUIRE(step->n_writes <= 8);
        for (subset = 0; subset < 1u << step->n_writes; subset++) {
                *f = start;
                for (w = 0; w < step->n_writes; w++)
                        if (subset & (1u << w))
                                do_write(f, &step->writes[w]);
                for (strict = 0; strict < n_models; strict++) {
                        relate(f, n_bases, strict, &now);
                        check_between(&from[strict], &to[strict], &now, n_bases, f->n_hosts);
                }
        }
}

/* What is in A and in B stays where it is, and no index goes from one base to another (there is room enough here). */
static void check_stability(const struct fake_fabric *before, const struct fake_fabric *after, const struct plan *plan)
{
        uint32_t p;
        unsigned i;

        for (p = 0; p < after->subnet->n_ports; p++)
                for (i = 0; plan->final_tables[p] && i < FAKE_CAPACITY; i++) {
                        struct p_key a = before->tables[p][i], b = after->tables[p][i];

                        REQUIRE(plan->final_tables[p][i].v == b.v);
                        if (p_key_is_used(a) && p_key_is_used(b))
                                REQUIRE(p_key_base(a) == p_key_base(b));
                }
}

static void put_all(struct fake_fabric *f, enum membership m[][4], unsigned n_partitions)
{
        unsigned h, p;
        enum membership at_leaf;

        for (h = 0; h < f->n_hosts; h++)
                for (p = 0; p < n_partitions; p++) {
                        fake_fabric_put(f, f->host[h], f->partitions[p].base, m[h][p]);
                        at_leaf = m[h][p] == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : m[h][p];
                        if (f->enforce_inbound[f->leaf[h]])
                                fake_fabric_put(f, f->leaf[h], f->partitions[p].base, at_leaf);
                }
}

static void check_final(const struct fake_fabric *f, const struct desired *d)
{
        uint32_t p, i, n;
        unsigned k;

        for (p = 0; p < f->subnet->n_ports; p++) {
                for (i = 0; i < d->ports[p].n_wanted; i++) {
                        for (n = 0, k = 0; k < FAKE_CAPACITY; k++)
                                n += f->tables[p][k].v == d->ports[p].wanted[i].v;
                        REQUIRE(n == 1);
                }
                for (n = 0, k = 0; k < FAKE_CAPACITY; k++)
                        n += p_key_is_used(f->tables[p][k]);
                REQUIRE(n == d->ports[p].n_wanted);
        }
}

static void check_transition(const struct fake_fabric *empty, enum membership from[][4], enum membership to[][4],
                             unsigned n_bases)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct fake_fabric f = *empty, before, target = *empty;
        struct relation relation_a[2], relation_b[2];
        struct desired desired;
        struct plan *plan;
        enum plan_phase phase;
        unsigned strict;

        put_all(&f, from, n_bases + 1);
        put_all(&target, to, n_bases + 1);
        for (strict = 0; strict < 2; strict++) {
                relate(&f, n_bases, strict, &relation_a[strict]);
                relate(&target, n_bases, strict, &relation_b[strict]);
        }
        before = f;
        fake_fabric_desire(&f, a, to, n_bases + 1, &desired);
        plan = plan_or_die(&f, a, &desired, fake_fabric_observe(&f, a), NULL, &remove_options);
        for (phase = 0; phase < PLAN_N_PHASES; phase++)
                if (plan->steps[phase].n_writes)
                        walk_step(&f, &plan->steps[phase], relation_a, relation_b, n_bases);
        check_final(&f, &desired);
        check_stability(&before, &f, plan);
}

static void all_full_default(enum membership m[][4])
{
        unsigned h;

        for (h = 0; h < FAKE_MAX_HOSTS; h++)
                m[h][0] = MEMBERSHIP_FULL;
}

/* A port's transition has a code of 16: its level in A and in B. Ports are alike, so all transitions of four ports are those
 * whose codes do not descend (3,876 of 65,536); the slices share them out by the first. */
static void four_ports_one_base(bool with_leaf, unsigned slice)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4] = {}, to[FAKE_MAX_HOSTS][4] = {};
        struct fake_fabric f;
        unsigned code[4], h;

        fake_fabric_init(&f, a, 4, with_leaf);
        all_full_default(from);
        all_full_default(to);
        for (code[0] = slice; code[0] < 16; code[0] += 4)
                for (code[1] = code[0]; code[1] < 16; code[1]++)
                        for (code[2] = code[1]; code[2] < 16; code[2]++)
                                for (code[3] = code[2]; code[3] < 16; code[3]++) {
                                        for (h = 0; h < 4; h++) {
                                                from[h][1] = code[h] / 4;
                                                to[h][1] = code[h] % 4;
                                        }
                                        check_transition(&f, from, to, 1);
                                }
}

START_TEST(test_four_ports_one_base)
{
        four_ports_one_base(false, (unsigned) _i);
}
END_TEST

START_TEST(test_four_ports_one_base_enforced)
{
        four_ports_one_base(true, (unsigned) _i);
}
END_TEST

static void decode_levels(unsigned code, enum membership m[][4])
{
        unsigned h;

        for (h = 0; h < 3; h++) {
                m[h][1] = code % 3;
                m[h][2] = code / 3 % 3;
                code /= 9;
        }
}

/* Three ports, two bases, levels none, limited and full; up to the order of ports, as above. */
START_TEST(test_three_ports_two_bases)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4] = {}, to[FAKE_MAX_HOSTS][4] = {};
        unsigned x, y, z, code_from, code_to;
        struct fake_fabric f;

        fake_fabric_init(&f, a, 3, false);
        all_full_default(from);
        all_full_default(to);
        for (x = (unsigned) _i; x < 81; x += 4)
                for (y = x; y < 81; y++)
                        for (z = y; z < 81; z++) {
                                code_from = x / 9 + y / 9 * 9 + z / 9 * 81;
                                code_to = x % 9 + y % 9 * 9 + z % 9 * 81;
                                decode_levels(code_from, from);
                                decode_levels(code_to, to);
                                check_transition(&f, from, to, 2);
                        }
}
END_TEST

/* A switch that forgot its table while it enforces: what it opens for a host that has the base already is a grant, and a bit
 * that goes off there waits for the end. */
START_TEST(test_switch_grants_last)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct plan_options off = { .enforcement = ENFORCEMENT_OFF };
        enum membership to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;
        struct desired desired;
        struct plan *plan;

        fake_fabric_init(&f, a, 2, true);
        memset(to, 0, sizeof(to));
        all_full_default(to);
        for (unsigned h = 0; h < 2; h++) {
                fake_fabric_put(&f, f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                fake_fabric_put(&f, f.leaf[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                fake_fabric_put(&f, f.host[h], FAKE_BASE(1), h == 0 ? MEMBERSHIP_LIMITED : MEMBERSHIP_FULL);
                to[h][1] = MEMBERSHIP_LIMITED;
        }
        fake_fabric_put(&f, f.leaf[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        fake_fabric_desire(&f, a, to, 2, &desired);
        plan = plan_or_die(&f, a, &desired, fake_fabric_observe(&f, a), NULL, &remove_options);
        ck_assert_uint_eq(plan->steps[PHASE_OPEN].n_writes, 0);
        ck_assert_uint_eq(plan->steps[PHASE_GRANT_ENFORCING].n_writes, 1);
        ck_assert_uint_eq(plan->steps[PHASE_GRANT_ENFORCING].writes[0].port, f.leaf[0]);
        plan = plan_or_die(&f, a, &desired, fake_fabric_observe(&f, a), NULL, &off);
        ck_assert_uint_eq(plan->steps[PHASE_RELAX].n_writes, 1);
        ck_assert_uint_eq(plan->steps[PHASE_RELAX].writes[0].port, f.leaf[1]);
        ck_assert_uint_eq(plan->steps[PHASE_ENFORCE].n_writes, 1);
        ck_assert_uint_eq(plan->steps[PHASE_ENFORCE].writes[0].port, f.leaf[0]);
}
END_TEST

/* --- indexes --------------------------------------------------------------------------------------------------------- */

struct index_case {
        struct arena *a;
        struct fake_fabric f;
        struct desired d;
        struct index_memory *m;
        struct plan_options options;
        struct findings findings;
        uint16_t leased; /* the base that a lease puts at index 0; 0: none */
};

static void index_case_init(struct index_case *c)
{
        *c = (struct index_case) { .a = arena_new(), .m = index_memory_new(), .options = remove_options };
        fake_fabric_init(&c->f, c->a, 1, false);
        c->findings = (struct findings) { .arena = c->a };
}

static void index_case_done(struct index_case *c)
{
        findings_done(&c->findings);
        index_memory_free(c->m);
        arena_free(c->a);
}

static void set_entry(struct index_case *c, unsigned index, uint16_t key)
{
        c->f.tables[c->f.host[0]][index] = (struct p_key) { key };
}

/* Plans host 0 to want `keys` (ascending base), zero-ended. */
static int plan_host(struct index_case *c, const uint16_t *keys, struct plan **ret)
{
        struct p_key *list = arena_new_array(c->a, struct p_key, 80);
        uint32_t n = 0;

        for (; *keys; keys++)
                list[n++] = (struct p_key) { *keys };
        c->d = (struct desired) {
                .policy = &c->f.policy,
                .subnet = c->f.subnet,
                .ports = arena_new_array(c->a, struct desired_port, c->f.subnet->n_ports),
                .index0_base = P_KEY_DEFAULT_BASE,
        };
        c->d.ports[c->f.host[0]] = (struct desired_port) { list, n, .index0_base = c->leased };
        return plan_compute(c->a, &c->d, fake_fabric_observe(&c->f, c->a), c->m, &c->options, &c->findings, ret);
}

static unsigned index_of(const struct index_case *c, const struct plan *p, uint16_t key)
{
        unsigned i;

        for (i = 0; i < FAKE_CAPACITY; i++)
                if (p->final_tables[c->f.host[0]][i].v == key)
                        return i;
        return UINT32_MAX;
}

static struct guid host_guid(const struct index_case *c)
{
        return c->f.subnet->nodes[c->f.subnet->ports[c->f.host[0]].node].guid;
}

#define WANT(...) ((const uint16_t[]) { __VA_ARGS__, 0 })

START_TEST(test_new_entry_goes_behind_the_highest)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x8011);
        set_entry(&c, 5, 0x8012);
        ck_assert_int_eq(plan_host(&c, WANT(0x8012, 0x8013, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8012), 5);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 6);
        index_case_done(&c);
}
END_TEST

START_TEST(test_memory_knows_higher_ones)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        ck_assert_int_eq(index_memory_note(c.m, host_guid(&c), 1, 9, (struct p_key) { 0x8011 }, (struct p_key) { 0 }, false), 0);
        ck_assert_int_eq(plan_host(&c, WANT(0x8013, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 10);
        index_case_done(&c);
}
END_TEST

/* Only when the end is reached the index that was freed longest ago; one freed right now comes last. */
START_TEST(test_end_reached)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 63, 0x8012);
        set_entry(&c, 7, 0x8011);
        for (unsigned i = 1; i < 63; i++)
                if (i != 7)
                        ck_assert_int_eq(index_memory_note(c.m, host_guid(&c), 1, (uint16_t) (i < 20 ? 20 - i : i),
                                                           (struct p_key) { 0x8011 }, (struct p_key) { 0 }, false), 0);
        /* index 13 = 20 - 7 was never noted: unused since before anybody remembers */
        ck_assert_int_eq(plan_host(&c, WANT(0x8012, 0x8013, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 13);
        ck_assert_int_eq(index_memory_note(c.m, host_guid(&c), 1, 13, (struct p_key) { 0x8011 }, (struct p_key) { 0 }, false), 0);
        ck_assert_int_eq(plan_host(&c, WANT(0x8012, 0x8013, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 19);
        index_case_done(&c);
}
END_TEST

/* The first of them may be the one that was freed longest ago; and then it is taken. */
START_TEST(test_first_index_is_the_oldest)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 63, 0x8012);
        for (uint16_t i = 1; i < 63; i++)
                ck_assert_int_eq(index_memory_note(c.m, host_guid(&c), 1, i,
                                                   (struct p_key) { 0x8011 }, (struct p_key) { 0 }, false), 0);
        ck_assert_int_eq(plan_host(&c, WANT(0x8012, 0x8013, 0x8014, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 1);
        ck_assert_uint_eq(index_of(&c, p, 0x8014), 2);
        index_case_done(&c);
}
END_TEST

/* The last index of all is behind the highest, too; a hole that nobody remembers comes after it. */
START_TEST(test_last_index_before_holes)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, FAKE_CAPACITY - 2, 0x8012);
        ck_assert_int_eq(plan_host(&c, WANT(0x8012, 0x8013, 0x8014, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), FAKE_CAPACITY - 1);
        ck_assert_uint_eq(index_of(&c, p, 0x8014), 1);
        index_case_done(&c);
}
END_TEST

/* Index 0 is for one partition only, however full the table is. */
START_TEST(test_index0_is_kept_free)
{
        struct index_case c;
        struct plan *p = NULL;
        uint16_t want[80];
        unsigned i;

        index_case_init(&c);
        for (i = 1; i < FAKE_CAPACITY - 1; i++) {
                set_entry(&c, i, (uint16_t) (0x8100 + i));
                want[i - 1] = (uint16_t) (0x8100 + i);
        }
        set_entry(&c, FAKE_CAPACITY - 1, 0xffff);
        want[FAKE_CAPACITY - 2] = 0x8140;
        want[FAKE_CAPACITY - 1] = 0xffff;
        want[FAKE_CAPACITY] = 0;
        ck_assert_int_eq(plan_host(&c, want, &p), -EBADMSG);
        ck_assert_ptr_null(p);
        ck_assert_int_eq(c.findings.items[0].code, FINDING_PLAN_CAPACITY_TRANSITION);
        index_case_done(&c);
}
END_TEST

START_TEST(test_full_table_reuses_what_it_frees)
{
        struct index_case c;
        struct plan *p;
        uint16_t want[80];
        unsigned i;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        for (i = 1; i < FAKE_CAPACITY; i++)
                set_entry(&c, i, (uint16_t) (0x8100 + i));
        for (i = 1; i < FAKE_CAPACITY; i++)
                want[i - 1] = (uint16_t) (0x8101 + i); /* all but 0x8101, and one more */
        want[FAKE_CAPACITY - 1] = 0xffff;
        want[FAKE_CAPACITY] = 0;
        ck_assert_int_eq(plan_host(&c, want, &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8140), 1);
        ck_assert_uint_eq(p->steps[PHASE_REVOKE].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_GRANT].n_writes, 1);
        index_case_done(&c);
}
END_TEST

/* --- a layout -------------------------------------------------------------------------------------------------------- */

static struct layout layout;

static void lay_out(struct index_case *c, const struct p_key *entries, uint16_t n)
{
        layout = (struct layout) { .arena = c->a };
        ck_assert_int_eq(layout_add(&layout, host_guid(c), 1, entries, n), 0);
        layout_sort(&layout);
        c->options.layout = &layout;
}

/* Entries that are added go back, before others get an index; those that are there stay where they are. */
START_TEST(test_layout_brings_back)
{
        static const struct p_key entries[] = { { 0xffff }, { 0 },      { 0x8012 }, { 0x8013 },
                                                { 0x0014 }, { 0x8015 }, { 0x0016 }, { 0x8016 } };
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x8013); /* it was at 3, and came back elsewhere */
        lay_out(&c, entries, ELEMENTS(entries));
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x8012, 0x8013, 0x8014, 0x0015, 0x0016, 0x8016, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8012), 2);
        ck_assert_uint_eq(index_of(&c, p, 0x8013), 1);
        ck_assert_uint_eq(index_of(&c, p, 0x8014), 4); /* of the same partition, with another membership */
        ck_assert_uint_eq(index_of(&c, p, 0x0015), 5);
        ck_assert_uint_eq(index_of(&c, p, 0x0016), 6);
        ck_assert_uint_eq(index_of(&c, p, 0x8016), 7);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 8);
        index_case_done(&c);
}
END_TEST

/* Also to an index that another entry has now, if that is dropped in an earlier phase, and not if it stays. */
START_TEST(test_layout_takes_what_is_freed)
{
        static const struct p_key entries[] = { { 0xffff }, { 0x8011 }, { 0x8012 } };
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x8021);
        set_entry(&c, 2, 0x8022);
        lay_out(&c, entries, ELEMENTS(entries));
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x8012, 0x8022, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 1);
        ck_assert_uint_eq(index_of(&c, p, 0x8022), 2);
        ck_assert_uint_eq(index_of(&c, p, 0x8012), 3);
        ck_assert_uint_eq(p->steps[PHASE_REVOKE].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_GRANT].n_writes, 1);
        index_case_done(&c);
}
END_TEST

/* Index 0 may have had another partition than the one that belongs there. */
START_TEST(test_layout_of_index0)
{
        static const struct p_key entries[] = { { 0x8011 }, { 0xffff } };
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        lay_out(&c, entries, ELEMENTS(entries));
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 1);
        index_case_done(&c);
}
END_TEST

START_TEST(test_overflow_is_refused)
{
        struct index_case c;
        struct plan *p = NULL;
        uint16_t want[80];
        unsigned i;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        for (i = 0; i < FAKE_CAPACITY; i++)
                want[i] = (uint16_t) (0x8100 + i);
        want[FAKE_CAPACITY] = 0xffff;
        want[FAKE_CAPACITY + 1] = 0;
        ck_assert_int_eq(plan_host(&c, want, &p), -EBADMSG);
        ck_assert_ptr_null(p);
        ck_assert_uint_eq(c.findings.n_errors, 1);
        ck_assert_int_eq(c.findings.items[0].code, FINDING_PLAN_CAPACITY);
        ck_assert_ptr_nonnull(strstr(c.findings.items[0].text, "holds 64 entries and would need 65"));
        index_case_done(&c);
}
END_TEST

/* {L} to {L, F} raises before {F, L} to {L} lowers: a full table cannot do both at one index. */
START_TEST(test_stuck_in_transition)
{
        struct index_case c;
        struct plan *p = NULL;
        uint16_t want[80];
        unsigned i;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x0011);
        set_entry(&c, 2, 0x0012);
        set_entry(&c, 3, 0x8012);
        want[0] = 0x0011;
        want[1] = 0x8011;
        want[2] = 0x0012;
        for (i = 4; i < FAKE_CAPACITY; i++) {
                set_entry(&c, i, (uint16_t) (0x8100 + i));
                want[i - 1] = (uint16_t) (0x8100 + i);
        }
        want[63] = 0xffff;
        want[64] = 0;
        ck_assert_int_eq(plan_host(&c, want, &p), -EBADMSG);
        ck_assert_int_eq(c.findings.items[0].code, FINDING_PLAN_CAPACITY_TRANSITION);
        c.options.in_force = true;
        ck_assert_int_eq(plan_host(&c, want, &p), 0);
        ck_assert_int_eq(p->frozen[c.f.host[0]], FREEZE_TRANSITION);
        ck_assert(plan_is_empty(p));
        index_case_done(&c);
}
END_TEST

START_TEST(test_raise_and_lower_in_place)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0x7fff);
        set_entry(&c, 3, 0x8011);
        set_entry(&c, 40, 0x0012);
        ck_assert_int_eq(plan_host(&c, WANT(0x0011, 0x8012, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x0011), 3);
        ck_assert_uint_eq(index_of(&c, p, 0x8012), 40);
        ck_assert_uint_eq(p->steps[PHASE_RAISE].n_writes, 2); /* two blocks */
        ck_assert_uint_eq(p->steps[PHASE_LOWER_ENDPORTS].n_writes, 1);
        ck_assert_uint_eq(p->n_block_writes, 3);
        index_case_done(&c);
}
END_TEST

START_TEST(test_index0_is_reported_not_repaired)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 1, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 0);
        ck_assert_uint_eq(c.findings.n_warnings, 1);
        ck_assert_int_eq(c.findings.items[0].code, FINDING_PLAN_INDEX0);
        ck_assert_ptr_nonnull(strstr(c.findings.items[0].text, "index 0 holds 0x8011, not an entry of 0x7fff ('repair_index0: "
                                                               "true' repairs it)"));
        index_case_done(&c);
}
END_TEST

/* OpenSM puts the entry at index 0, whatever repair_index0 is. */
START_TEST(test_index0_is_opensms)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 1, 0xffff);
        c.options.writer = WRITER_OPENSM;
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(c.findings.n, 0);
        index_case_done(&c);
}
END_TEST

START_TEST(test_index0_repaired_in_one_write)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        c.options.repair_index0 = true;
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 1, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_REPAIR_SWAP].n_writes, 1);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 2);
        ck_assert_uint_eq(p->final_tables[c.f.host[0]][1].v, 0);
        index_case_done(&c);
}
END_TEST

/* Old and new place in block 1: three barriers, and at each the levels are what they were. */
START_TEST(test_index0_repaired_over_blocks)
{
        struct index_case c;
        struct plan *p;
        unsigned i;

        index_case_init(&c);
        c.options.repair_index0 = true;
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 40, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(p->steps[PHASE_REPAIR_ADD].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_REPAIR_SWAP].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_REPAIR_DROP].n_writes, 1);
        ck_assert_uint_eq(p->n_block_writes, 3);
        for (i = PHASE_REPAIR_ADD; i <= PHASE_REPAIR_DROP; i++)
                do_write(&c.f, &p->steps[i].writes[0]);
        ck_assert_uint_eq(c.f.tables[c.f.host[0]][0].v, 0xffff);
        ck_assert_uint_eq(c.f.tables[c.f.host[0]][41].v, 0x8011);
        ck_assert_uint_eq(c.f.tables[c.f.host[0]][40].v, 0);
        index_case_done(&c);
}
END_TEST

/* A limited entry at index 0 would make programs that use that index limited members. */
START_TEST(test_index0_is_for_the_full_entry)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        ck_assert_int_eq(plan_host(&c, WANT(0x7fff, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x7fff), 1);
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 1, 0x7fff);
        set_entry(&c, 2, 0xffff);
        c.options.repair_index0 = true;
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x7fff, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x7fff), 1);
        index_case_done(&c);
}
END_TEST

START_TEST(test_index0_never_goes_to_others)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 1);
        index_case_done(&c);
}
END_TEST

/* An unwanted entry at index 0: the default partition does not inherit it, unless that is to be repaired. */
START_TEST(test_index0_not_passed_on)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0x8011);
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 1);
        ck_assert_int_eq(c.findings.items[0].code, FINDING_PLAN_INDEX0);
        c.options.repair_index0 = true;
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        index_case_done(&c);
}
END_TEST

/* --- index 0 of a lease ----------------------------------------------------------------------------------------------- */

/* A pool with this P_Key. */
static void give_pool(struct index_case *c, uint16_t base, bool index0)
{
        struct policy_pool *pool = arena_new_object(c->a, struct policy_pool);

        *pool = (struct policy_pool) { .ranges = arena_new_object(c->a, struct base_range), .n_ranges = 1, .index0 = index0 };
        pool->ranges[0] = (struct base_range) { base, base };
        c->f.policy.pools = pool;
        c->f.policy.n_pools = 1;
}

/* Carries a plan out, phase by phase; returns in how many writes. The port is never without an entry that it keeps. */
static unsigned carry_out(struct index_case *c, const struct plan *p, uint16_t kept)
{
        unsigned n = 0;

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < p->steps[phase].n_writes; i++, n++) {
                        do_write(&c->f, &p->steps[phase].writes[i]);
                        ck_assert(p_keys_hold(c->f.tables[c->f.host[0]], FAKE_CAPACITY, (struct p_key) { kept }));
                }
        return n;
}

static uint16_t entry(const struct index_case *c, unsigned index)
{
        return c->f.tables[c->f.host[0]][index].v;
}

/* The default partition makes way, without a setting, and the new entry takes index 0 in the same plan. */
START_TEST(test_lease_takes_index0)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x8012);
        c.leased = 0x11;
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x8012, 0xffff), &p), 0);
        ck_assert_uint_eq(p->steps[PHASE_REPAIR_SWAP].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_GRANT].n_writes, 1);
        ck_assert_uint_eq(carry_out(&c, p, 0xffff), 2);
        ck_assert_uint_eq(entry(&c, 0), 0x8011);
        ck_assert_uint_eq(entry(&c, 1), 0x8012);
        ck_assert_uint_eq(entry(&c, 2), 0xffff);
        ck_assert_uint_eq(c.findings.n, 0);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x8012, 0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 0);
        index_case_done(&c);
}
END_TEST

/* It has the P_Key already, elsewhere. */
START_TEST(test_lease_moves_to_index0)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 40, 0x8011);
        c.leased = 0x11;
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(carry_out(&c, p, 0xffff), 3);
        ck_assert_uint_eq(entry(&c, 0), 0x8011);
        ck_assert_uint_eq(entry(&c, 40), 0);
        ck_assert_uint_eq(entry(&c, 41), 0xffff);
        index_case_done(&c);
}
END_TEST

/* At the end of the lease the default partition is back at index 0, in the same write that revokes the P_Key. */
START_TEST(test_lease_gives_index0_back)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        give_pool(&c, 0x11, true);
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 2, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(carry_out(&c, p, 0xffff), 1);
        ck_assert_uint_eq(entry(&c, 0), 0xffff);
        ck_assert_uint_eq(entry(&c, 2), 0);
        ck_assert_uint_eq(c.findings.n, 0);
        /* the revoke came through, and the rest did not */
        set_entry(&c, 0, 0);
        set_entry(&c, 2, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        (void) carry_out(&c, p, 0xffff);
        ck_assert_uint_eq(entry(&c, 0), 0xffff);
        /* the lease goes on, but not at index 0 */
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 2, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        (void) carry_out(&c, p, 0xffff);
        ck_assert_uint_eq(entry(&c, 0), 0xffff);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 3);
        index_case_done(&c);
}
END_TEST

/* What no lease can have put there stays, and so does the partition that belongs there, as long as nobody asks for a repair. */
START_TEST(test_index0_of_others_stays)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0x8011);
        set_entry(&c, 2, 0xffff);
        give_pool(&c, 0x12, true); /* has another P_Key */
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 0);
        give_pool(&c, 0x11, false);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 0);
        set_entry(&c, 0, 0);
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 0);
        index_case_done(&c);
}
END_TEST

/* With a full table the entry goes where it can, and index 0 is reported; the next plan has room. */
START_TEST(test_lease_waits_for_room)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        for (unsigned i = 1; i < FAKE_CAPACITY; i++)
                set_entry(&c, i, (uint16_t) (0x8100 + i));
        c.options.unmanaged = UNMANAGED_REMOVE;
        c.leased = 0x11;
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(c.findings.n_warnings, 1);
        ck_assert_ptr_nonnull(strstr(c.findings.items[0].text, "no index is free"));
        (void) carry_out(&c, p, 0xffff);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        (void) carry_out(&c, p, 0xffff);
        ck_assert_uint_eq(entry(&c, 0), 0x8011);
        index_case_done(&c);
}
END_TEST

/* The layout of an earlier generation does not keep it from index 0. */
START_TEST(test_lease_at_index0_before_layout)
{
        static const struct p_key elsewhere[] = { { 0xffff }, { 0x8011 } }, other[] = { { 0x8012 }, { 0xffff } };
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        c.leased = 0x11;
        set_entry(&c, 0, 0xffff);
        lay_out(&c, elsewhere, ELEMENTS(elsewhere));
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 0);
        set_entry(&c, 0, 0);
        lay_out(&c, other, ELEMENTS(other));
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x8012, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 1);
        index_case_done(&c);
}
END_TEST

START_TEST(test_owns_and_keep)
{
        struct index_case c;
        struct plan *p;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 1, 0x8011); /* a partition of the policy */
        set_entry(&c, 2, 0x9234); /* of none */
        c.options.unmanaged = UNMANAGED_KEEP;
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), UINT32_MAX);
        ck_assert_uint_eq(index_of(&c, p, 0x9234), 2);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011), &p), 0); /* also of the first partition of the policy */
        ck_assert_uint_eq(index_of(&c, p, 0xffff), UINT32_MAX);
        c.options.unmanaged = UNMANAGED_REMOVE;
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x9234), UINT32_MAX);
        c.f.owns = (struct base_range) { 0x0001, 0x0fff };
        ck_assert_int_eq(plan_host(&c, WANT(0x8012), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0xffff), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x9234), 2);
        ck_assert_uint_eq(index_of(&c, p, 0x8012), 3);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), UINT32_MAX);
        index_case_done(&c);
}
END_TEST

START_TEST(test_unread_port_is_left_out)
{
        struct index_case c;
        _cleanup_findings_ struct findings findings = {};
        struct observed *o;
        struct plan *p;

        index_case_init(&c);
        ck_assert_int_eq(plan_host(&c, WANT(0xffff), &p), 0);
        ck_assert_uint_eq(p->n_block_writes, 1);
        findings.arena = c.a;
        o = fake_fabric_observe(&c.f, c.a);
        o->tables[c.f.host[0]].source = TABLE_UNKNOWN;
        o->tables[c.f.host[0]].failure = MAD_TIMED_OUT;
        ck_assert_int_eq(plan_compute(c.a, &c.d, o, NULL, &c.options, &findings, &p), 0);
        ck_assert(plan_is_empty(p));
        ck_assert_ptr_null(p->final_tables[c.f.host[0]]);
        ck_assert_int_eq(findings.items[0].code, FINDING_PLAN_UNREACHABLE);
        index_case_done(&c);
}
END_TEST

/* --- enforcement ----------------------------------------------------------------------------------------------------- */

static struct plan *plan_enforced(struct fake_fabric *f, struct arena *a, const struct plan_options *options,
                                  struct findings *findings)
{
        enum membership m[FAKE_MAX_HOSTS][4] = {};
        struct desired *d = arena_new_object(a, struct desired);
        struct plan *p = NULL;

        all_full_default(m);
        m[0][1] = MEMBERSHIP_BOTH;
        fake_fabric_desire(f, a, m, 2, d);
        ck_assert_int_eq(plan_compute(a, d, fake_fabric_observe(f, a), NULL, options, findings, &p), 0);
        return p;
}

START_TEST(test_enforcement_on_after_and_off_before)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct plan_options options = remove_options;
        struct fake_fabric f;
        struct plan *p;

        fake_fabric_init(&f, a, 2, true);
        f.enforce_inbound[f.leaf[0]] = f.enforce_outbound[f.leaf[0]] = false;
        p = plan_enforced(&f, a, &options, &findings);
        ck_assert_uint_eq(p->steps[PHASE_ENFORCE].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_ENFORCE].writes[0].port, f.leaf[0]);
        ck_assert_uint_eq(p->steps[PHASE_RELAX].n_writes, 0);
        ck_assert_uint_eq(p->steps[PHASE_OPEN].n_writes, 2);

        options.enforcement = ENFORCEMENT_IN;
        p = plan_enforced(&f, a, &options, &findings);
        ck_assert_uint_eq(p->steps[PHASE_RELAX].n_writes, 1); /* outbound of leaf 1 goes off */
        ck_assert(p->steps[PHASE_RELAX].writes[0].after_inbound);
        ck_assert(!p->steps[PHASE_RELAX].writes[0].after_outbound);
        ck_assert_uint_eq(p->steps[PHASE_ENFORCE].n_writes, 1); /* inbound of leaf 0 goes on */
        ck_assert(!p->steps[PHASE_ENFORCE].writes[0].after_outbound);
}
END_TEST

/* To enforce a table that lacks what the peer keeps, owned by somebody else, would cut that off. */
START_TEST(test_enforcement_skipped_for_foreign_entries)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct fake_fabric f;
        struct plan *p;

        fake_fabric_init(&f, a, 2, true);
        f.owns = (struct base_range) { 0x0001, 0x7fff };
        f.enforce_inbound[f.leaf[0]] = f.enforce_outbound[f.leaf[0]] = false;
        f.tables[f.host[0]][9] = (struct p_key) { 0x9234 };
        f.policy.n_owns = 1;
        f.owns.first = 0x0010;
        f.owns.last = 0x7fff;
        p = plan_enforced(&f, a, &(struct plan_options) { .unmanaged = UNMANAGED_KEEP }, &findings);
        ck_assert_uint_eq(p->steps[PHASE_ENFORCE].n_writes, 0);
        ck_assert_uint_eq(findings.n_warnings, 1);
        ck_assert_int_eq(findings.items[0].code, FINDING_PLAN_ENFORCEMENT_SKIPPED);
}
END_TEST

static void overflow_leaf(struct fake_fabric *f, struct arena *a, struct desired *d)
{
        struct p_key *list = arena_new_array(a, struct p_key, FAKE_CAPACITY + 1);
        enum membership m[FAKE_MAX_HOSTS][4] = {};
        unsigned i;

        all_full_default(m);
        fake_fabric_desire(f, a, m, 1, d);
        for (i = 0; i <= FAKE_CAPACITY; i++)
                list[i] = p_key_make((uint16_t) (0x100 + i), true);
        d->ports[f->leaf[0]] = (struct desired_port) { list, FAKE_CAPACITY + 1 };
}

START_TEST(test_enforcement_overflow)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct plan_options options = remove_options;
        struct fake_fabric f;
        struct desired d;
        struct plan *p = NULL;

        fake_fabric_init(&f, a, 2, true);
        overflow_leaf(&f, a, &d);
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &options, &findings, &p), -EBADMSG);
        ck_assert_int_eq(findings.items[0].code, FINDING_PLAN_CAPACITY);
        ck_assert_ptr_nonnull(strstr(findings.items[0].text, "enforcement_overflow: disable"));

        findings_done(&findings);
        findings = (struct findings) { .arena = a };
        options.enforcement_overflow = OVERFLOW_DISABLE;
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &options, &findings, &p), 0);
        ck_assert_int_eq(findings.items[0].code, FINDING_PLAN_ENFORCEMENT_OFF);
        ck_assert_uint_eq(p->steps[PHASE_RELAX].n_writes, 1);
        ck_assert(!p->steps[PHASE_RELAX].writes[0].after_inbound && !p->steps[PHASE_RELAX].writes[0].after_outbound);
        ck_assert_ptr_null(p->final_tables[f.leaf[0]]);

        /* at once, even where it holds something back: its table will never be right, so there is nothing to wait for */
        f.tables[f.host[0]][FAKE_CAPACITY - 1] = (struct p_key) { 0x8077 };
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &options, &findings, &p), 0);
        ck_assert_uint_eq(p->steps[PHASE_RELAX].n_writes, 1);
        ck_assert_uint_eq(p->steps[PHASE_ENFORCE].n_writes, 0);
}
END_TEST

/* --- frozen ports ---------------------------------------------------------------------------------------------------- */

static unsigned count_writes_to(const struct plan *p, uint32_t port)
{
        unsigned n = 0;

        for (unsigned phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < p->steps[phase].n_writes; i++)
                        n += p->steps[phase].writes[i].port == port;
        return n;
}

static unsigned count_all_writes(const struct plan *p)
{
        unsigned n = 0;

        for (unsigned phase = 0; phase < PLAN_N_PHASES; phase++)
                n += p->steps[phase].n_writes;
        return n;
}

/* Everything about host 0 and its leaf port stays, everything about host 1 is planned. */
static void assert_first_is_frozen(const struct fake_fabric *f, const struct plan *p, enum freeze why)
{
        const uint32_t pair[] = { f->host[0], f->leaf[0] };

        for (size_t i = 0; i < ELEMENTS(pair); i++) {
                ck_assert_int_eq(p->frozen[pair[i]], why);
                ck_assert_uint_eq(count_writes_to(p, pair[i]), 0);
                ck_assert_mem_eq(p->final_tables[pair[i]], f->tables[pair[i]], sizeof(f->tables[0]));
        }
        ck_assert_int_eq(p->frozen[f->host[1]], FREEZE_NONE);
        ck_assert_uint_gt(count_writes_to(p, f->host[1]), 0);
        ck_assert_uint_gt(count_writes_to(p, f->leaf[1]), 0);
        ck_assert_uint_eq(p->n_ports_affected, 2);
        ck_assert_uint_eq(p->n_block_writes + p->n_enforcement_writes, count_all_writes(p));
}

/* What the pair holds is not what the policy gives: without the overflow, it would be changed. */
static void put_something_else(struct fake_fabric *f)
{
        f->tables[f->host[0]][3] = (struct p_key) { 0x8077 };
        f->tables[f->leaf[0]][5] = (struct p_key) { 0x8078 };
}

/* The table that overflows is that of the host, whose leaf port was planned before, or the other way round. */
START_TEST(test_overflow_in_force)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct plan_options options = remove_options;
        struct fake_fabric f;
        struct plan *p = NULL;
        struct desired d;

        fake_fabric_init(&f, a, 2, true);
        put_something_else(&f);
        overflow_leaf(&f, a, &d);
        if (_i == 1) {
                d.ports[f.host[0]] = d.ports[f.leaf[0]];
                d.ports[f.leaf[0]] = (struct desired_port) {};
        }
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &options, &findings, &p), -EBADMSG);
        options.in_force = true;
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &options, &findings, &p), 0);
        ck_assert_uint_eq(findings.n_errors, 2);
        ck_assert_int_eq(findings.items[findings.n - 1].code, FINDING_PLAN_CAPACITY);
        assert_first_is_frozen(&f, p, FREEZE_CAPACITY);
}
END_TEST

START_TEST(test_frozen_by_the_policy)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        enum membership m[FAKE_MAX_HOSTS][4] = {};
        enum freeze frozen[4] = {};
        struct fake_fabric f;
        struct plan *p = NULL;
        struct desired d;

        fake_fabric_init(&f, a, 2, true);
        put_something_else(&f);
        all_full_default(m);
        fake_fabric_desire(&f, a, m, 1, &d);
        frozen[f.host[0]] = frozen[f.leaf[0]] = FREEZE_LINES;
        d.frozen = frozen;
        ck_assert_int_eq(plan_compute(a, &d, fake_fabric_observe(&f, a), NULL, &remove_options, &findings, &p), 0);
        ck_assert_uint_eq(findings.n, 0);
        assert_first_is_frozen(&f, p, FREEZE_LINES);
}
END_TEST

/* --- index memory ---------------------------------------------------------------------------------------------------- */

START_TEST(test_index_memory)
{
        _cleanup_index_memory_ struct index_memory *m = index_memory_new(), *copy = index_memory_new();
        const struct freed_index *items, *other;
        struct guid g = { 7 }, h = { 3 };
        struct p_key used = { 0x8010 }, unused = { 0 };
        size_t n, k, i;

        ck_assert_int_eq(index_memory_note(m, g, 1, 5, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 1, 2, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, h, 1, 9, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 2, 1, used, unused, false), 0);
        items = index_memory_get(m, g, 1, &n);
        ck_assert_uint_eq(n, 2);
        ck_assert_uint_eq(items[0].index, 5);
        ck_assert_uint_eq(items[1].index, 2);
        ck_assert_uint_eq(items[1].base, 0x10);
        ck_assert_int_eq(index_memory_note(m, g, 1, 5, unused, used, false), 0);
        items = index_memory_get(m, g, 1, &n);
        ck_assert_uint_eq(n, 1);
        items = index_memory_all(m, &n);
        for (i = 0; i < n; i++)
                ck_assert_int_eq(index_memory_restore(copy, &items[n - 1 - i]), 0);
        other = index_memory_all(copy, &k);
        ck_assert_uint_eq(n, k);
        ck_assert_mem_eq(items, other, n * sizeof(*items));
        /* what comes later is younger than what was restored */
        ck_assert_int_eq(index_memory_note(copy, g, 1, 8, used, unused, false), 0);
        items = index_memory_get(copy, g, 1, &n);
        ck_assert_uint_eq(items[n - 1].index, 8);
}
END_TEST

/* An entry that came and went between two looks, by somebody else's hand, has used its index. */
/* One port that changed is one port to be stored, and what changed nothing is none. */
START_TEST(test_index_memory_unstored)
{
        _cleanup_index_memory_ struct index_memory *m = index_memory_new();
        const struct p_key used = { 0x8010 }, other = { 0x8011 }, unused = { 0 };
        const struct guid g = { 7 }, h = { 3 };
        const struct index_port *ports;
        size_t n;

        ck_assert_int_eq(index_memory_note(m, g, 2, 5, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 1, 5, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 2, 6, used, unused, false), 0);
        ck_assert_int_eq(index_memory_note(m, h, 1, 0, used, unused, false), 0);
        ports = index_memory_unstored(m, &n);
        ck_assert_uint_eq(n, 3);
        ck_assert(ports[0].node_guid.v == 3 && ports[1].node_guid.v == 7 && ports[2].node_guid.v == 7);
        ck_assert(ports[1].number == 1 && ports[2].number == 2);
        index_memory_stored(m);
        ck_assert_int_eq(index_memory_note(m, g, 1, 9, unused, used, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 1, 8, used, other, false), 0);
        ck_assert_int_eq(index_memory_note(m, g, 1, 8, unused, unused, false), 0);
        (void) index_memory_unstored(m, &n);
        ck_assert_uint_eq(n, 0);
        ck_assert_int_eq(index_memory_note(m, g, 1, 5, unused, used, false), 0); /* the last one of its port */
        ports = index_memory_unstored(m, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert(ports[0].node_guid.v == 7 && ports[0].number == 1);
        index_memory_stored(m);
        ck_assert_int_eq(index_memory_unstore(m), 0);
        (void) index_memory_unstored(m, &n);
        ck_assert_uint_eq(n, 2);
}
END_TEST

START_TEST(test_index_memory_learns)
{
        const struct freed_index *freed;
        struct observed *before, *after;
        struct index_case c;
        struct plan *p;
        size_t n;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 20, 0x9234);
        before = fake_fabric_observe(&c.f, c.a);
        set_entry(&c, 20, 0);
        after = fake_fabric_observe(&c.f, c.a);
        ck_assert_int_eq(index_memory_note_changes(c.m, before, after, NULL), 0);
        freed = index_memory_all(c.m, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(freed[0].index, 20);
        ck_assert(freed[0].lost);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 21);
        /* what was taken away comes back to where it stood, at whatever level; what pkeyd freed itself does not */
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x1234, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x1234), 20);
        ck_assert_int_eq(index_memory_note(c.m, host_guid(&c), 1, 20, (struct p_key) { 0x9234 }, (struct p_key) { 0 }, false), 0);
        ck_assert_int_eq(plan_host(&c, WANT(0x8011, 0x1234, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x8011), 21);
        ck_assert_uint_eq(index_of(&c, p, 0x1234), 22);
        after->tables[c.f.host[0]].source = TABLE_ASSUMED;
        ck_assert_int_eq(index_memory_note_changes(c.m, after, before, NULL), 0);
        (void) index_memory_all(c.m, &n);
        ck_assert_uint_eq(n, 1);
        index_case_done(&c);
}
END_TEST

/* Seen by a pkeyd that stands by: what the policy does not give the port was freed by the other one's hand. */
START_TEST(test_index_memory_learns_of_another_writer)
{
        const struct freed_index *freed;
        struct observed *before, *after;
        struct desired desired = {};
        struct desired_port *ports;
        struct p_key wanted[] = { { 0x1234 }, { 0xffff } }; /* at another level than it was there */
        struct index_case c;
        struct plan *p;
        size_t n;

        index_case_init(&c);
        set_entry(&c, 0, 0xffff);
        set_entry(&c, 7, 0x9234);
        set_entry(&c, 8, 0x9235);
        before = fake_fabric_observe(&c.f, c.a);
        set_entry(&c, 7, 0);
        set_entry(&c, 8, 0);
        after = fake_fabric_observe(&c.f, c.a);
        ports = arena_new_array(c.a, struct desired_port, after->subnet->n_ports);
        ck_assert_ptr_nonnull(ports);
        ports[c.f.host[0]] = (struct desired_port) { wanted, ELEMENTS(wanted) };
        desired.ports = ports;
        ck_assert_int_eq(index_memory_note_changes(c.m, before, after, &desired), 0);
        freed = index_memory_all(c.m, &n);
        ck_assert_uint_eq(n, 2);
        ck_assert(freed[0].index == 7 && freed[0].lost);
        ck_assert(freed[1].index == 8 && !freed[1].lost);
        ck_assert_int_eq(plan_host(&c, WANT(0x9234, 0x9235, 0xffff), &p), 0);
        ck_assert_uint_eq(index_of(&c, p, 0x9234), 7);
        ck_assert_uint_eq(index_of(&c, p, 0x9235), 9);
        index_case_done(&c);
}
END_TEST

static Suite *plan_suite(void)
{
        Suite *s = suite_create("plan");
        TCase *t = tcase_create("promises");

        tcase_set_timeout(t, 0); /* enumerations take as long as they take */
        tcase_add_loop_test(t, test_four_ports_one_base, 0, 4);
        tcase_add_loop_test(t, test_four_ports_one_base_enforced, 0, 4);
        tcase_add_loop_test(t, test_three_ports_two_bases, 0, 4);
        suite_add_tcase(s, t);
        t = tcase_create("indexes");
        tcase_add_test(t, test_switch_grants_last);
        tcase_add_test(t, test_new_entry_goes_behind_the_highest);
        tcase_add_test(t, test_memory_knows_higher_ones);
        tcase_add_test(t, test_end_reached);
        tcase_add_test(t, test_first_index_is_the_oldest);
        tcase_add_test(t, test_last_index_before_holes);
        tcase_add_test(t, test_index0_is_kept_free);
        tcase_add_test(t, test_full_table_reuses_what_it_frees);
        tcase_add_test(t, test_layout_brings_back);
        tcase_add_test(t, test_layout_takes_what_is_freed);
        tcase_add_test(t, test_layout_of_index0);
        tcase_add_test(t, test_overflow_is_refused);
        tcase_add_test(t, test_stuck_in_transition);
        tcase_add_test(t, test_raise_and_lower_in_place);
        tcase_add_test(t, test_index0_is_reported_not_repaired);
        tcase_add_test(t, test_index0_is_opensms);
        tcase_add_test(t, test_index0_repaired_in_one_write);
        tcase_add_test(t, test_index0_repaired_over_blocks);
        tcase_add_test(t, test_index0_is_for_the_full_entry);
        tcase_add_test(t, test_index0_never_goes_to_others);
        tcase_add_test(t, test_index0_not_passed_on);
        tcase_add_test(t, test_lease_takes_index0);
        tcase_add_test(t, test_lease_moves_to_index0);
        tcase_add_test(t, test_lease_gives_index0_back);
        tcase_add_test(t, test_index0_of_others_stays);
        tcase_add_test(t, test_lease_waits_for_room);
        tcase_add_test(t, test_lease_at_index0_before_layout);
        tcase_add_test(t, test_owns_and_keep);
        tcase_add_test(t, test_unread_port_is_left_out);
        tcase_add_test(t, test_index_memory);
        tcase_add_test(t, test_index_memory_unstored);
        tcase_add_test(t, test_index_memory_learns);
        tcase_add_test(t, test_index_memory_learns_of_another_writer);
        suite_add_tcase(s, t);
        t = tcase_create("enforcement");
        tcase_add_test(t, test_enforcement_on_after_and_off_before);
        tcase_add_test(t, test_enforcement_skipped_for_foreign_entries);
        tcase_add_test(t, test_enforcement_overflow);
        tcase_add_loop_test(t, test_overflow_in_force, 0, 2);
        tcase_add_test(t, test_frozen_by_the_policy);
        suite_add_tcase(s, t);
        return s;
}

int main(void)
{
        SRunner *sr = srunner_create(plan_suite());
        int failed;

        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
