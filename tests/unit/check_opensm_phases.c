/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that OpenSM is given one after the other, against a model of OpenSM that knows nothing of phases: it takes a file
 * and brings the ports, the switch ports beside them, and with both entries of a base each single entry, to it in any order.
 * Small fabrics at random; of each step all the states between are tried.
 */
#include <stdlib.h>

#include "opensm/phases.h"
#include "opensm/unmanaged.h"
#include "policy_fixture.h"

#define PORTS 3
#define BASES 3
#define ROUNDS 1000

static const uint16_t bases[BASES] = { P_KEY_DEFAULT_BASE, 0x10, 0x11 };

/* bit 0: the limited entry is there, bit 1: the full one */
struct table {
        unsigned entries[BASES];
};

struct fabric {
        struct table port[PORTS], beside[PORTS];
        bool enforces[PORTS];
        int index0[PORTS]; /* the base whose entry belongs at index 0 */
};

static struct knowledge *k; /* without records */
static unsigned seed;

static void setup_all(void)
{
        setup();
        k = knowledge_new();
        ck_assert_ptr_nonnull(k);
}

static void teardown_all(void)
{
        k = knowledge_free(k);
        teardown();
}

static unsigned any(unsigned n)
{
        seed = seed * 1103515245u + 12345u;
        return (seed >> 16) % n;
}

/* ---- the model: who may talk ----------------------------------------------------------------------------------- */

/* The level of a port in a base: its own, restricted by its leaf port. */
static unsigned level(const struct fabric *f, int port, int base)
{
        unsigned mine = f->port[port].entries[base] & 2 ? 2 : f->port[port].entries[base];
        unsigned passes = f->beside[port].entries[base] & 2 ? 2 : f->beside[port].entries[base];

        return f->enforces[port] && passes < mine ? passes : mine;
}

static bool may_talk(const struct fabric *f, int x, int y, int base)
{
        unsigned a = level(f, x, base), b = level(f, y, base);

        return a > 0 && b > 0 && (a == 2 || b == 2);
}

/* Without regard to switches. */
static bool endports_may_talk(const struct fabric *f, int x, int y, int base)
{
        struct fabric bare = *f;

        memset(bare.enforces, 0, sizeof(bare.enforces));
        return may_talk(&bare, x, y, base);
}

/* ---- between tables and keys ----------------------------------------------------------------------------------- */

static uint32_t keys_of(const struct table *t, struct p_key ret[2 * BASES])
{
        uint32_t n = 0;

        for (int b = BASES - 1; b >= 0; b--) { /* in any order */
                if (t->entries[b] & 2)
                        ret[n++] = p_key_make(bases[b], true);
                if (t->entries[b] & 1)
                        ret[n++] = p_key_make(bases[b], false);
        }
        return n;
}

static struct table table_of(const struct p_key *keys, uint32_t n)
{
        struct table t = {};

        for (uint32_t i = 0; i < n; i++)
                for (int b = 0; b < BASES; b++)
                        if (p_key_base(keys[i]) == bases[b])
                                t.entries[b] |= p_key_is_full(keys[i]) ? 2 : 1;
        return t;
}

/* ---- the model: what OpenSM makes of a file --------------------------------------------------------------------- */

static struct table beside_of(const struct table *t)
{
        struct table ret = *t;

        for (int b = 0; b < BASES; b++)
                if (ret.entries[b] & 2)
                        ret.entries[b] = 2;
        return ret;
}

static void carry_out(const struct partitions_file_port *file, bool allow_both, struct fabric *f)
{
        for (int p = 0; p < PORTS; p++) {
                f->port[p] = table_of(file[p].keys, file[p].n_keys);
                if (f->port[p].entries[0] == 0)
                        f->port[p].entries[0] = 1; /* named or not, it is a limited member of the default partition */
                for (int b = 0; b < BASES && !allow_both; b++)
                        if (f->port[p].entries[b] == 3)
                                f->port[p].entries[b] = 2;
                f->beside[p] = beside_of(&f->port[p]);
        }
}

/* The one entry at index 0 is exchanged for the other. */
static bool is_exchanged(const struct fabric *f, int port, int base)
{
        return base == 0 || base == f->index0[port];
}

/* A state between two: the changes with a bit in `done` have happened. Without both entries of a base a change of level is
 * one write; with them each entry may be in a block of its own, but those at index 0 are exchanged. */
static struct fabric between(const struct fabric *from, const struct fabric *to, bool allow_both, unsigned done)
{
        struct fabric f = *from;

        for (int p = 0; p < PORTS; p++)
                for (int b = 0; b < BASES; b++) {
                        unsigned old = from->port[p].entries[b], new = to->port[p].entries[b], mask = 0;

                        if (allow_both && !is_exchanged(to, p, b))
                                mask = (done & 1 ? 1 : 0) | (done & 2 ? 2 : 0);
                        else if (done & 1)
                                mask = 3;
                        f.port[p].entries[b] = (old & ~mask) | (new & mask);
                        if (done & 4)
                                f.beside[p].entries[b] = to->beside[p].entries[b];
                        done = done >> 3 | done << 29;
                }
        return f;
}

/* ---- promises -------------------------------------------------------------------------------------------------- */

struct promise {
        const struct fabric *a, *b; /* before the first file, behind the last */
        bool allow_both;
};

static void check_moment(const struct promise *w, const struct fabric *f, const char *phase)
{
        for (int x = 0; x < PORTS; x++)
                for (int y = 0; y < PORTS; y++)
                        for (int b = 0; x != y && b < BASES; b++) {
                                bool in_a = may_talk(w->a, x, y, b), in_b = may_talk(w->b, x, y, b);
                                bool both = w->allow_both && !is_exchanged(f, x, b) && !is_exchanged(f, y, b);

                                if (!in_a && !in_b && may_talk(f, x, y, b))
                                        ck_abort_msg("isolation broken in %s, seed %u", phase, seed);
                                if (!in_a || !in_b)
                                        continue;
                                if (!endports_may_talk(f, x, y, b))
                                        ck_abort_msg("continuity broken in %s, seed %u", phase, seed);
                                /* a leaf port may interrupt only a pair whose level in the base changes, and never where
                                 * both entries can be there on the way */
                                if ((both || (level(w->a, x, b) == level(w->b, x, b) && level(w->a, y, b) == level(w->b, y, b))) &&
                                    !may_talk(f, x, y, b))
                                        ck_abort_msg("a switch broke continuity in %s, seed %u", phase, seed);
                        }
}

static bool same_fabric(const struct fabric *x, const struct fabric *y)
{
        return memcmp(x->port, y->port, sizeof(x->port)) == 0;
}

static void check_step(const struct promise *w, const struct fabric *from, const struct fabric *to, const char *phase)
{
        if (same_fabric(from, to) && memcmp(from->beside, to->beside, sizeof(from->beside)) == 0)
                return;
        for (unsigned i = 0; i < 128; i++) {
                struct fabric f = between(from, to, w->allow_both, (unsigned) rand() ^ (unsigned) rand() << 16);

                check_moment(w, &f, phase);
        }
        check_moment(w, to, phase);
}

/* ---- random fabrics -------------------------------------------------------------------------------------------- */

static void random_tables(struct fabric *f, bool allow_both)
{
        for (int p = 0; p < PORTS; p++)
                for (int b = 0; b < BASES; b++) {
                        f->port[p].entries[b] = any(allow_both ? 4 : 3);
                        if (b == 0 && f->port[p].entries[b] == 0)
                                f->port[p].entries[b] = 1;
                        f->beside[p] = beside_of(&f->port[p]);
                }
}

static struct opensm_phases phases_between(const struct fabric *a, const struct fabric *b, bool allow_both,
                                           const struct opensm_tables *in_place, struct observed **ret_observed)
{
        static struct subnet_port ports[2 * PORTS];
        static struct subnet subnet = { .ports = ports, .n_ports = 2 * PORTS };
        struct observed *o = arena_new_object(arena, struct observed);
        struct desired_port *wanted = arena_new_array(arena, struct desired_port, 2 * PORTS);
        struct desired *desired = arena_new_object(arena, struct desired);
        struct plan *plan = arena_new_object(arena, struct plan);
        static struct subnet_node nodes[1] = { { .type = NODE_CA, .partition_cap = 2 * BASES, .description = "n", .name = "n",
                                                 .device = "" } };
        struct opensm_phases phases;
        struct opensm_transition *transitions;
        uint32_t n_transitions;

        subnet.nodes = nodes;
        subnet.n_nodes = 1;
        *plan = (struct plan) { .subnet = &subnet, .desired = desired };
        *desired = (struct desired) { .subnet = &subnet, .ports = wanted };
        plan->final_tables = arena_new_array(arena, struct p_key *, 2 * PORTS);
        *o = (struct observed) { &subnet, arena_new_array(arena, struct observed_table, 2 * PORTS) };
        for (uint32_t i = 0; i < 2 * PORTS; i++) {
                bool outside = i >= PORTS;
                uint32_t p = i % PORTS;
                struct p_key *keys = arena_new_array(arena, struct p_key, 2 * BASES);

                ports[i] = (struct subnet_port) {
                        .peer = outside ? p : p + PORTS, .number = (uint8_t) (i + 1), .guid = { 0x100 + i },
                        .role = outside ? PORT_SWITCH_EXTERNAL : PORT_ENDPORT,
                };
                o->tables[i] = (struct observed_table) { .entries = keys, .capacity = 2 * BASES, .source = TABLE_READ };
                (void) keys_of(outside ? &a->beside[p] : &a->port[p], keys);
                o->tables[i].enforce_inbound = o->tables[i].enforce_outbound = outside && a->enforces[p];
                keys = arena_new_array(arena, struct p_key, 2 * BASES);
                if (!outside) {
                        wanted[i] = (struct desired_port) {
                                .wanted = keys, .n_wanted = keys_of(&b->port[p], keys), .index0_base = bases[b->index0[p]],
                        };
                        plan->final_tables[i] = keys;
                }
        }
        ck_assert_int_eq(opensm_transitions_of_plan(arena, plan, o, k, in_place, &transitions, &n_transitions), 0);
        ck_assert_uint_eq(n_transitions, PORTS);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n_transitions, in_place, allow_both, &findings, &phases), 0);
        *ret_observed = o;
        return phases;
}

static void check_transition(unsigned round, bool allow_both)
{
        struct fabric a = {}, b = {}, now, next;
        struct opensm_phases phases;
        struct observed *o;

        seed = round;
        for (int p = 0; p < PORTS; p++) {
                a.enforces[p] = b.enforces[p] = any(2);
                a.index0[p] = b.index0[p] = (int) any(BASES);
        }
        random_tables(&a, allow_both);
        random_tables(&b, allow_both);
        /* some leaf ports drop what the port has; in the default partition OpenSM opens them at once */
        if (any(2))
                a.beside[any(PORTS)].entries[1 + any(BASES - 1)] = allow_both ? 0 : any(2);
        phases = phases_between(&a, &b, allow_both, NULL, &o);
        now = a;
        for (int phase = 0; phase < OPENSM_N_PHASES; phase++) {
                next = now;
                carry_out(phases.tables[phase], allow_both, &next);
                for (int i = 0; i < PORTS * BASES; i++) /* else OpenSM would move an entry away from index 0 */
                        ck_assert(!is_exchanged(&a, i / BASES, i % BASES) || next.port[i / BASES].entries[i % BASES] != 3 ||
                                  a.port[i / BASES].entries[i % BASES] == 3 || b.port[i / BASES].entries[i % BASES] == 3);
                if (phase > 0)
                        ck_assert_int_eq(phases.needed[phase], !same_fabric(&now, &next));
                check_step(&(struct promise) { &a, &b, allow_both }, &now, &next,
                           opensm_phase_to_string((enum opensm_phase) phase));
                now = next;
        }
        ck_assert(same_fabric(&now, &b));
}

START_TEST(test_promises)
{
        for (unsigned round = 0; round < ROUNDS; round++)
                check_transition(round, false);
}
END_TEST

START_TEST(test_promises_with_both)
{
        for (unsigned round = 0; round < ROUNDS; round++)
                check_transition(round, true);
}
END_TEST

/* ---- single cases ---------------------------------------------------------------------------------------------- */

static struct fabric fabric_of(const unsigned entries[PORTS][BASES])
{
        struct fabric f = {};

        for (int p = 0; p < PORTS; p++) {
                memcpy(f.port[p].entries, entries[p], sizeof(f.port[p].entries));
                f.beside[p] = beside_of(&f.port[p]);
        }
        return f;
}

static void expect_keys(const struct opensm_phases *p, enum opensm_phase phase, uint32_t port, const char *expected)
{
        const char *got = "";

        for (uint32_t i = 0; i < p->tables[phase][port].n_keys; i++)
                got = arena_printf(arena, "%s%s%04x", got, i ? " " : "", p->tables[phase][port].keys[i].v);
        ck_assert_msg(strcmp(got, expected) == 0, "%s of port %u: %s, not %s", opensm_phase_to_string(phase), port, got, expected);
}

START_TEST(test_all_phases)
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 2, 1, 2 }, { 1, 2, 0 }, { 1, 2, 0 } });
        struct fabric b = fabric_of((const unsigned[PORTS][BASES]) { { 2, 2, 0 }, { 1, 1, 0 }, { 1, 2, 1 } });
        struct observed *o;
        struct opensm_phases p = phases_between(&a, &b, false, NULL, &o);
        uint32_t first = 99;

        expect_keys(&p, OPENSM_ADOPT, 0, "0010 8011 ffff");
        expect_keys(&p, OPENSM_REVOKE, 0, "0010 ffff");
        expect_keys(&p, OPENSM_RAISE, 0, "8010 ffff");
        expect_keys(&p, OPENSM_RAISE, 1, "8010 7fff");
        expect_keys(&p, OPENSM_LOWER, 1, "0010 7fff");
        expect_keys(&p, OPENSM_LOWER, 2, "8010 7fff");
        expect_keys(&p, OPENSM_GRANT, 2, "8010 0011 7fff");
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_ADOPT, o, &first), 0);
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_REVOKE, o, &first), 1);
        ck_assert_uint_eq(first, 0);
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 3);
        o->tables[1].source = TABLE_ASSUMED; /* not known */
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 2);
}
END_TEST

/* Both entries are there for a while, so that neither is missing while they may be in two blocks. */
START_TEST(test_raise_with_both)
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 1, 1, 2 }, { 1, 3, 2 }, { 1, 0, 0 } });
        struct fabric b = fabric_of((const unsigned[PORTS][BASES]) { { 1, 2, 1 }, { 1, 1, 3 }, { 1, 0, 0 } });
        struct observed *o;
        struct opensm_phases p = phases_between(&a, &b, true, NULL, &o);

        expect_keys(&p, OPENSM_RAISE, 0, "0010 8010 0011 8011 7fff");
        expect_keys(&p, OPENSM_LOWER, 0, "8010 0011 7fff");
        expect_keys(&p, OPENSM_RAISE, 1, "0010 8010 0011 8011 7fff");
        expect_keys(&p, OPENSM_LOWER, 1, "0010 0011 8011 7fff");
        ck_assert(!p.needed[OPENSM_REVOKE] && p.needed[OPENSM_RAISE] && p.needed[OPENSM_LOWER] && !p.needed[OPENSM_GRANT]);
}
END_TEST

START_TEST(test_file_in_place)
{
        static const char file[] = "default=0x7fff:\n 0x100=full,\n 0x101=limited;\np=0x10:\n 0x101=limited,\n 0x7=both;\n";
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 1, 0 }, { 1, 0, 0 } });
        struct fabric b = a;
        struct partitions_conf *conf;
        struct opensm_tables t;
        struct observed *o;
        struct opensm_phases p;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", file, strlen(file), &findings, &conf), 0);
        ck_assert_int_eq(opensm_tables_of_file(arena, conf, &t), 0);
        ck_assert_uint_eq(t.n_ports, 3);
        ck_assert_uint_eq(t.ports[0].guid.v, 7);
        ck_assert_uint_eq(t.ports[0].n_keys, 2);
        /* 0x102 is not named, and so a limited member of the default partition */
        p = phases_between(&a, &b, false, &t, &o);
        for (int i = 0; i < OPENSM_N_PHASES; i++)
                ck_assert(!p.needed[i]);
        a.port[1].entries[1] = 2; /* it gets what the last file gave it, and nothing else */
        p = phases_between(&a, &b, false, &t, &o);
        for (int i = 0; i < OPENSM_N_PHASES; i++)
                ck_assert_int_eq(p.needed[i], i == OPENSM_ADOPT);
        expect_keys(&p, OPENSM_ADOPT, 1, "0010 7fff");
}
END_TEST

/* A port that was never read stays as in the file in place; so does one whose leaf port cannot be read. */
START_TEST(test_not_read)
{
        static const char file[] = "p=0x10:\n 0x101=full;\n";
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 0, 2 }, { 1, 0, 0 } });
        struct partitions_conf *conf;
        struct opensm_tables t;
        struct opensm_phases p;
        struct observed *o;
        struct opensm_transition *transitions;
        struct plan plan = {};
        struct desired desired = {};
        uint32_t n;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", file, strlen(file), &findings, &conf), 0);
        ck_assert_int_eq(opensm_tables_of_file(arena, conf, &t), 0);
        p = phases_between(&a, &a, false, &t, &o);
        expect_keys(&p, OPENSM_ADOPT, 1, "8011 7fff");
        o->tables[1].source = TABLE_UNKNOWN;
        desired = (struct desired) { .subnet = o->subnet, .ports = arena_new_array(arena, struct desired_port, 2 * PORTS) };
        plan = (struct plan) { .subnet = o->subnet, .desired = &desired,
                               .final_tables = arena_new_array(arena, struct p_key *, 2 * PORTS) };
        desired.ports[1] = (struct desired_port) { &(const struct p_key) { 0x11 }, 1 };
        ck_assert_int_eq(opensm_transitions_of_plan(arena, &plan, o, k, &t, &transitions, &n), 0);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, &t, false, &findings, &p), 0);
        for (int phase = 0; phase < OPENSM_N_PHASES; phase++)
                expect_keys(&p, (enum opensm_phase) phase, 1, "8010");
}
END_TEST

static uint32_t way_of_absent(const struct opensm_absent *absent, const struct subnet *now, const struct opensm_tables *t,
                              struct opensm_transition **ret)
{
        uint32_t n;

        ck_assert_int_eq(opensm_transitions_of_absent(arena, absent, now, k, t, ret, &n), 0);
        ck_assert_uint_eq(n, 1);
        return n;
}

/* A port that is down goes from what the file gave it to what the policy gives it, or stays if that is not known. */
START_TEST(test_absent)
{
        static const char file[] = "p=0x10:\n 0x7=full,\n 0x100=limited;\n";
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct subnet_node node = { .guid = { 6 }, .type = NODE_CA, .description = "n7", .name = "n7", .device = "" };
        struct subnet_port port = { .number = 1, .guid = { 7 }, .peer = SUBNET_NONE, .role = PORT_ENDPORT };
        uint32_t by_guid[PORTS] = { 0, 1, 2 }, n;
        const struct desired_port wanted = { &(const struct p_key) { 0x8011 }, 1 };
        struct subnet larger = { .nodes = &node, .n_nodes = 1, .ports = &port, .n_ports = 1 }, now;
        struct base_range owns = { 0x11, 0x7fff };
        const struct policy all = { .owns = &(struct base_range) { 1, 0x7fff }, .n_owns = 1 };
        const struct policy most = { .owns = &owns, .n_owns = 1 };
        struct desired desired = {
                .subnet = &larger, .policy = &all, .ports = (struct desired_port *) &wanted, .index0_base = 0x11,
        };
        struct partitions_conf *conf;
        struct opensm_tables t;
        struct opensm_phases p;
        struct opensm_transition *transitions;
        struct observed *o;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", file, strlen(file), &findings, &conf), 0);
        ck_assert_int_eq(opensm_tables_of_file(arena, conf, &t), 0);
        (void) phases_between(&a, &a, false, &t, &o);
        now = *o->subnet;
        now.by_port_guid = by_guid;
        now.n_by_port_guid = PORTS;
        n = way_of_absent(&(struct opensm_absent) { &larger, &desired, false, NULL }, &now, &t, &transitions);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, &t, false, &findings, &p), 0);
        expect_keys(&p, OPENSM_ADOPT, 0, "8010");
        expect_keys(&p, OPENSM_REVOKE, 0, "");
        expect_keys(&p, OPENSM_GRANT, 0, "8011");
        ck_assert_uint_eq(transitions->index0_base, 0x11);
        n = way_of_absent(&(struct opensm_absent) { &larger, NULL, false, NULL }, &now, &t, &transitions);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, &t, false, &findings, &p), 0);
        expect_keys(&p, OPENSM_GRANT, 0, "8010");
        /* unmanaged bases stay in the file: the policy does not own them, or has no partition with them */
        desired.policy = &most;
        n = way_of_absent(&(struct opensm_absent) { &larger, &desired, false, NULL }, &now, &t, &transitions);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, &t, false, &findings, &p), 0);
        expect_keys(&p, OPENSM_GRANT, 0, "8010 8011");
        desired.policy = &all;
        n = way_of_absent(&(struct opensm_absent) { &larger, &desired, true, NULL }, &now, &t, &transitions);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, &t, false, &findings, &p), 0);
        expect_keys(&p, OPENSM_GRANT, 0, "8010 8011");
}
END_TEST

/* Of what a file gives a port that is down, only the bases that the policy does not manage. */
START_TEST(test_unmanaged_of_absent)
{
        static const char file[] = "Default=0x7fff: ALL=limited;\nours=0x11: 0x7=full;\nmore=0x12: ALL=full;\n"
                                   "less=0x13: 0x7=limited, 0x100=full;\nboth=0x14: 0x7=both;\n";
        struct subnet_node node = { .guid = { 6 }, .type = NODE_CA, .description = "n7", .name = "n7", .device = "" };
        struct subnet_port ports[] = {
                { .number = 1, .guid = { 7 }, .peer = SUBNET_NONE, .role = PORT_ENDPORT },
                { .number = 2, .guid = { 8 }, .peer = SUBNET_NONE, .role = PORT_ENDPORT },
        };
        uint32_t by_guid[] = { 0, 1 };
        struct subnet larger = { .nodes = &node, .n_nodes = 1, .ports = ports, .n_ports = 2, .by_port_guid = by_guid,
                                 .n_by_port_guid = 2, .sm = SUBNET_NONE, .self = SUBNET_NONE };
        struct subnet present = { .nodes = &node, .n_nodes = 1, .ports = ports, .n_ports = 2, .by_port_guid = by_guid + 1,
                                  .n_by_port_guid = 1 };
        const struct policy policy = { .owns = &(struct base_range) { 0x11, 0x11 }, .n_owns = 1 };
        const struct opensm_manager manager = { &policy, false };
        struct partitions_file_port *given;
        struct partitions_conf *conf;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", file, strlen(file), &findings, &conf), 0);
        ck_assert_int_eq(opensm_unmanaged_of_absent(arena, &manager, conf, &larger, &present, true, &given), 0);
        ck_assert_uint_eq(given[1].n_keys, 0); /* it is in the snapshot */
        ck_assert_uint_eq(given[0].n_keys, 5);
        for (unsigned i = 0; i < 5; i++)
                ck_assert_uint_eq(given[0].keys[i].v, ((const uint16_t[]) { 0x7fff, 0x8012, 0x0013, 0x0014, 0x8014 })[i]);
        ck_assert_int_eq(opensm_unmanaged_of_absent(arena, &manager, conf, &larger, &present, false, &given), 0);
        ck_assert_uint_eq(given[0].n_keys, 4);
        ck_assert_uint_eq(given[0].keys[3].v, 0x8014);
        ck_assert_str_eq(opensm_find_unmanaged_all(&manager, conf)->name, "more"); /* OpenSM makes each port a limited member anyway */
}
END_TEST

START_TEST(test_fell_back)
{
        struct fabric open = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 2, 0, 0 }, { 2, 0, 0 } });
        struct fabric b = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 0, 0 }, { 2, 0, 0 } });
        struct observed *o;
        struct opensm_phases p = phases_between(&open, &b, false, NULL, &o);

        struct partitions_file_port in_place[PORTS] = { p.tables[OPENSM_ADOPT][0], p.tables[OPENSM_ADOPT][1] };

        ck_assert(opensm_phases_fell_back(&p, OPENSM_GRANT, o));
        ck_assert(!opensm_phases_fell_back(&p, OPENSM_ADOPT, o)); /* the first file gives that */
        ck_assert(opensm_phases_had_fallen_back(&p, o));
        p.in_place = in_place;
        ck_assert(!opensm_phases_had_fallen_back(&p, o)); /* the file opens both ports that it names */
        in_place[1] = p.tables[OPENSM_GRANT][1];
        ck_assert(opensm_phases_had_fallen_back(&p, o));
        o->tables[2].entries[1].v = 0x8010;
        ck_assert(!opensm_phases_fell_back(&p, OPENSM_GRANT, o));
        o->tables[2].source = TABLE_UNKNOWN;
        ck_assert(opensm_phases_fell_back(&p, OPENSM_GRANT, o));
}
END_TEST

/* A port may still have what it had before the phase. */
START_TEST(test_on_the_way_is_not_fallen_back)
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 3, 0, 0 }, { 2, 0, 0 }, { 2, 0, 0 } });
        struct fabric b = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 0, 0 }, { 2, 0, 0 } });
        struct observed *o;
        struct opensm_phases p = phases_between(&a, &b, true, NULL, &o);

        o->tables[0].entries[0].v = 0xffff;
        o->tables[0].entries[1].v = 0;
        ck_assert(!opensm_phases_fell_back(&p, OPENSM_LOWER, o));
        ck_assert(opensm_phases_fell_back(&p, OPENSM_GRANT, o)); /* by then host 1 is a limited member */
}
END_TEST

/* A port without room for both entries of a base gets them exchanged; one with room gets both. */
START_TEST(test_exchanges_where_there_is_no_room)
{
        static const struct p_key before[] = { { 0x10 }, { 0x8011 }, { 0x12 }, { 0xffff } };
        static const struct p_key after[] = { { 0x8010 }, { 0x11 }, { 0x12 }, { 0x8012 }, { 0xffff } };
        struct opensm_transition transitions[] = {
                { .port = SUBNET_NONE, .guid = { 1 }, .label = "a", .capacity = 5, .before = before, .n_before = 4,
                  .after = after, .n_after = 5 },
                { .port = SUBNET_NONE, .guid = { 2 }, .label = "b", .capacity = 7, .before = before, .n_before = 4,
                  .after = after, .n_after = 5 },
        };
        struct opensm_phases p;

        ck_assert_int_eq(opensm_phases_compute(arena, transitions, 2, NULL, true, &findings, &p), 0);
        expect_keys(&p, OPENSM_RAISE, 0, "8010 8011 8012 ffff");
        expect_keys(&p, OPENSM_LOWER, 0, "8010 0011 8012 ffff");
        expect_keys(&p, OPENSM_GRANT, 0, "8010 0011 0012 8012 ffff");
        expect_keys(&p, OPENSM_RAISE, 1, "0010 8010 0011 8011 0012 8012 ffff");
}
END_TEST

START_TEST(test_does_not_fit)
{
        static const struct p_key before[] = { { 0x10 }, { 0xffff } }, after[] = { { 0x8010 }, { 0x8011 }, { 0xffff } };
        struct opensm_transition transition = { .port = SUBNET_NONE, .guid = { 1 }, .label = "a", .capacity = 2, .before = before,
                                  .n_before = 2, .after = after, .n_after = 3 };
        struct opensm_phases p;
        static const struct p_key fits[] = { { 0x8010 }, { 0xffff } };
        struct opensm_transition full = { .port = SUBNET_NONE, .guid = { 1 }, .label = "a", .capacity = 2, .before = before,
                                   .n_before = 2, .after = fits, .n_after = 2 };

        ck_assert_int_eq(opensm_phases_compute(arena, &full, 1, NULL, false, &findings, &p), 0);
        ck_assert_int_eq(opensm_phases_compute(arena, &full, 1, NULL, true, &findings, &p), 0);
        ck_assert_int_eq(opensm_phases_compute(arena, &transition, 1, NULL, true, &findings, &p), -EBADMSG);
        expect_text(only(FINDING_PLAN_CAPACITY_TRANSITION)->text,
                    "a: its table of 2 entries would have to hold 3 in phase grant");
}
END_TEST

/* A plan in which only port 0 matters: what it holds, what its leaf port passes, what it has at the end of the plan. */
static struct opensm_phases phases_of_port(const uint16_t table[4], const uint16_t beside[4], bool in, bool out,
                                           const uint16_t final[4])
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 1, 0, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct p_key *keys[] = { arena_new_array(arena, struct p_key, 2 * BASES), NULL, NULL, NULL, NULL, NULL };
        static const struct p_key wanted[] = { { 0x8010 }, { 0x7fff } };
        struct opensm_phases p;
        struct opensm_transition *transitions;
        struct desired desired;
        struct observed *o;
        struct plan plan;
        uint32_t n;

        (void) phases_between(&a, &a, false, NULL, &o);
        for (unsigned i = 0; i < 4; i++) {
                o->tables[0].entries[i].v = table[i];
                o->tables[PORTS].entries[i].v = beside[i];
                keys[0][i].v = final[i];
        }
        o->tables[PORTS].enforce_inbound = in;
        o->tables[PORTS].enforce_outbound = out;
        desired = (struct desired) { .subnet = o->subnet, .ports = arena_new_array(arena, struct desired_port, 2 * PORTS) };
        desired.ports[0] = (struct desired_port) { wanted, 2 };
        plan = (struct plan) { .subnet = o->subnet, .desired = &desired, .final_tables = keys };
        ck_assert_int_eq(opensm_transitions_of_plan(arena, &plan, o, k, NULL, &transitions, &n), 0);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, n, NULL, false, &findings, &p), 0);
        return p;
}

/* An unmanaged entry that the leaf port drops is in no file, because OpenSM would open the leaf port to it. One that passes stays,
 * and so does an entry of the policy, even if it is dropped now. */
START_TEST(test_foreign_entry)
{
        static const uint16_t table[4] = { 0x7fff, 0x8e01, 0x8e02, 0 }, final[4] = { 0x7fff, 0x8e01, 0x8e02, 0x8010 };
        static const uint16_t narrow[4] = { 0x7fff, 0x8e01, 0, 0 }, limited[4] = { 0x7fff, 0x0e01, 0, 0 };
        struct opensm_phases p = phases_of_port(table, narrow, true, true, final);

        expect_keys(&p, OPENSM_ADOPT, 0, "8e01 7fff");
        expect_keys(&p, OPENSM_GRANT, 0, "8010 8e01 7fff");
        p = phases_of_port(table, narrow, false, false, final); /* it does not filter */
        expect_keys(&p, OPENSM_ADOPT, 0, "8e01 8e02 7fff");
        expect_keys(&p, OPENSM_GRANT, 0, "8010 8e01 8e02 7fff");
        p = phases_of_port(table, narrow, false, true, final); /* one direction counts as both */
        expect_keys(&p, OPENSM_ADOPT, 0, "8e01 7fff");
        p = phases_of_port(table, narrow, true, false, final);
        expect_keys(&p, OPENSM_ADOPT, 0, "8e01 7fff");
        p = phases_of_port(table, limited, true, true, final); /* as a limited member only */
        expect_keys(&p, OPENSM_ADOPT, 0, "0e01 7fff");
}
END_TEST

/* One open port does not mean that OpenSM dropped its file; nor does a port that is open by the file. */
START_TEST(test_one_is_not_all)
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct fabric b = fabric_of((const unsigned[PORTS][BASES]) { { 1, 0, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct fabric open = fabric_of((const unsigned[PORTS][BASES]) { { 2, 0, 0 }, { 2, 0, 0 }, { 2, 0, 0 } });
        struct opensm_phases p;
        struct observed *o;

        p = phases_between(&a, &b, false, NULL, &o);
        ck_assert(!opensm_phases_fell_back(&p, OPENSM_GRANT, o));
        p = phases_between(&open, &open, false, NULL, &o);
        ck_assert(!opensm_phases_fell_back(&p, OPENSM_GRANT, o));
}
END_TEST

/* A phase is reached when the leaf port passes the entries, too, if its table has room for them. */
START_TEST(test_missing)
{
        struct fabric a = fabric_of((const unsigned[PORTS][BASES]) { { 1, 2, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct subnet_node *node;
        struct opensm_phases p;
        struct observed *o;
        uint32_t first = 99;

        a.enforces[0] = true;
        p = phases_between(&a, &a, false, NULL, &o);
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
        ck_assert_uint_eq(first, 99);
        node = &o->subnet->nodes[0];
        *node = (struct subnet_node) { .type = NODE_SWITCH, .partition_cap = 6, .partition_enforcement_cap = 6,
                                       .inbound_enforcement_cap = true, .description = "n", .name = "n", .device = "" };
        for (uint16_t i = 0; i < o->tables[PORTS].capacity; i++)
                if (o->tables[PORTS].entries[i].v == 0x8010)
                        o->tables[PORTS].entries[i].v = 0x0010;
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 1);
        ck_assert_uint_eq(first, 0);
        base_set_add(&p.held, 0x10); /* held bases do not count */
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
        p.held = (struct base_set) {};
        o->tables[PORTS].capacity = 1; /* too small, so OpenSM turns its filter off */
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
        o->tables[2].entries[5].v = 0x8033;
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 1);
        ck_assert_uint_eq(first, 2);
        base_set_add(&p.held, 0x33);
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
        p.held = (struct base_set) {};
        o->tables[2].source = TABLE_ASSUMED;
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
}
END_TEST

static struct opensm_phases phases_of_transition(const struct opensm_transition *transition, const struct opensm_tables *in_place)
{
        struct opensm_phases p;

        ck_assert_int_eq(opensm_phases_compute(arena, transition, 1, in_place, false, &findings, &p), 0);
        return p;
}

/* OpenSM makes every port at least a limited member of the default partition, whatever is in a file or a table. */
START_TEST(test_default_partition)
{
        static const struct p_key p_only[] = { { 0x8010 } }, limited[] = { { 0x8010 }, { 0x7fff } };
        static const struct p_key full[] = { { 0xffff } };
        struct opensm_transition transition = { .port = 0, .guid = { 0x100 }, .label = "a", .before = p_only, .n_before = 1,
                                  .after = full, .n_after = 1 };
        struct fabric f = fabric_of((const unsigned[PORTS][BASES]) { { 1, 2, 0 }, { 1, 0, 0 }, { 1, 0, 0 } });
        struct opensm_phases p = phases_of_transition(&transition, NULL);
        struct observed *o;
        uint32_t first;

        expect_keys(&p, OPENSM_RAISE, 0, "ffff");
        ck_assert(p.needed[OPENSM_REVOKE] && p.needed[OPENSM_RAISE] && !p.needed[OPENSM_GRANT]);
        transition.after = limited;
        transition.n_after = 2;
        p = phases_of_transition(&transition, NULL);
        ck_assert(!p.needed[OPENSM_RAISE] && !p.needed[OPENSM_LOWER] && !p.needed[OPENSM_GRANT]);
        /* not in the policy, but in the table */
        transition.before = limited;
        transition.n_before = 2;
        transition.after = p_only;
        transition.n_after = 1;
        p = phases_of_transition(&transition, NULL);
        ck_assert(!p.needed[OPENSM_REVOKE] && !p.needed[OPENSM_LOWER]);
        (void) phases_between(&f, &f, false, NULL, &o);
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 0);
        o->tables[0].entries[3].v = 0xffff; /* more than that */
        ck_assert_uint_eq(opensm_phases_missing(&p, OPENSM_GRANT, o, &first), 1);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("opensm_phases");
        TCase *c = tcase_create("opensm_phases");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup_all, teardown_all);
        tcase_add_test(c, test_promises);
        tcase_add_test(c, test_promises_with_both);
        tcase_add_test(c, test_all_phases);
        tcase_add_test(c, test_raise_with_both);
        tcase_add_test(c, test_file_in_place);
        tcase_add_test(c, test_not_read);
        tcase_add_test(c, test_absent);
        tcase_add_test(c, test_unmanaged_of_absent);
        tcase_add_test(c, test_fell_back);
        tcase_add_test(c, test_on_the_way_is_not_fallen_back);
        tcase_add_test(c, test_exchanges_where_there_is_no_room);
        tcase_add_test(c, test_does_not_fit);
        tcase_add_test(c, test_foreign_entry);
        tcase_add_test(c, test_one_is_not_all);
        tcase_add_test(c, test_missing);
        tcase_add_test(c, test_default_partition);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
