/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which changes of a file are admitted, for every small case, against a model of OpenSM that is independent of the phases and the
 * rule: it writes each table as the file says, in any order, and may leave out some. In each state that this can result in, pairs
 * that may talk before and by the policy may talk, and pairs that may talk neither before nor by the policy may not. If everything
 * is known, nothing is held, and the tables end as the policy gives them.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge_fixture.h"
#include "opensm/admission.h"

#define MAX_PORTS  3
#define MAX_BASES  2
#define MAX_TABLES (2 * MAX_PORTS)

/* ck_assert writes to a pipe even when it passes, which is too slow for some million calls. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s: %s", #condition, describe());                                                \
        } while (0)

enum sight {
        READABLE,
        KNOWN,      /* read before this sweep */
        NEVER_READ,
        N_SIGHTS,
};

/* The tables of the hosts, then those of their leaf ports. */
struct state {
        uint8_t level[MAX_TABLES][MAX_BASES];
};

static struct {
        unsigned n_ports, n_bases, filters; /* a bit for each port that is filtered */
        struct state before;
        uint8_t policy[MAX_PORTS][MAX_BASES];
        enum sight sight[MAX_TABLES];
        /* stops answering when OpenSM was given this phase, before or after it was written; MAX_TABLES: none */
        unsigned mutes;
        enum opensm_phase mutes_in;
        bool mutes_after;
} scene;

static struct subnet *subnet; /* of scene.n_ports and filters */
static struct arena *cases;   /* of one case */
static struct state now;
static struct opensm_phases phases;
static struct observed *seen;

static const char *describe(void)
{
        static char text[400];
        size_t n = 0;

        for (unsigned t = 0; t < MAX_TABLES; t++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "table %u: %u%u now %u%u sight %d; ", t, scene.before.level[t][0],
                                       scene.before.level[t][1], now.level[t][0], now.level[t][1], (int) scene.sight[t]);
        for (unsigned p = 0; p < scene.n_ports; p++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "wants %u%u ", scene.policy[p][0], scene.policy[p][1]);
        (void) snprintf(text + n, sizeof(text) - n, "filters %x mutes %u in %d %d", scene.filters, scene.mutes, (int) scene.mutes_in,
                        scene.mutes_after);
        return text;
}

/* --- who may talk ---------------------------------------------------------------------------------------------------- */

static unsigned level_of(const struct state *s, unsigned port, unsigned base, enum filter_model model)
{
        unsigned host = s->level[port][base], leaf = s->level[MAX_PORTS + port][base];

        if (!(scene.filters >> port & 1))
                return host;
        if (model == FILTER_BY_LEVEL)
                return MIN(host, leaf);
        return leaf ? host : LEVEL_NONE;
}

static bool talk_in(const struct state *s, unsigned x, unsigned y, unsigned base, enum filter_model model)
{
        return levels_talk(level_of(s, x, base, model), level_of(s, y, base, model));
}

/* The host is known to be a full member by one model of a switch and a limited one by the other: it becomes a limited one. */
static bool was_between(unsigned port, unsigned base)
{
        return scene.sight[port] == READABLE && scene.sight[MAX_PORTS + port] == READABLE &&
               level_of(&scene.before, port, base, 0) != level_of(&scene.before, port, base, 1);
}

static void check_promises(const struct state *s)
{
        for (unsigned base = 0; base < scene.n_bases; base++)
                for (unsigned x = 0; x < scene.n_ports; x++)
                        for (unsigned y = 0; y < x; y++)
                                for (enum filter_model m = 0; m < N_FILTER_MODELS; m++) {
                                        bool before = talk_in(&scene.before, x, y, base, m), talk = talk_in(s, x, y, base, m);
                                        bool after = levels_talk(scene.policy[x][base], scene.policy[y][base]);

                                        REQUIRE(!(before && after) || talk || was_between(x, base) || was_between(y, base));
                                        REQUIRE(before || after || !talk);
                                }
}

/* --- between levels and keys ------------------------------------------------------------------------------------------ */

static uint32_t keys_of(const uint8_t levels[MAX_BASES], struct p_key *ret)
{
        uint32_t n = 0;

        for (unsigned base = 0; base < scene.n_bases; base++)
                if (levels[base])
                        ret[n++] = p_key_make((uint16_t) (base + 1), levels[base] == LEVEL_FULL);
        return n;
}

static void levels_of(const struct partitions_file_port *file, uint8_t ret[MAX_BASES])
{
        memset(ret, 0, MAX_BASES);
        for (uint32_t i = 0; i < file->n_keys; i++)
                if (p_key_base(file->keys[i]) <= scene.n_bases)
                        ret[p_key_base(file->keys[i]) - 1] = p_key_is_full(file->keys[i]) ? LEVEL_FULL : LEVEL_LIMITED;
}

static uint32_t port_of(unsigned table)
{
        return table < MAX_PORTS ? port_at(subnet, host_guid(table), 1)
                                 : port_at(subnet, SWITCH, (uint8_t) (table - MAX_PORTS + 1));
}

static bool is_table(unsigned table)
{
        return table % MAX_PORTS < scene.n_ports;
}

/* Reads the tables that can be read at this moment. */
static void read_tables(enum sight worst)
{
        ck_assert_int_eq(observed_new(cases, subnet, &seen), 0);
        seen->tables[port_at(subnet, SWITCH, 0)].source = TABLE_READ; /* and holds nothing */
        for (unsigned t = 0; t < MAX_TABLES; t++) {
                struct observed_table *table = is_table(t) ? &seen->tables[port_of(t)] : NULL;

                if (!table)
                        continue;
                if (scene.sight[t] > worst) {
                        table->failure = MAD_TIMED_OUT;
                        continue;
                }
                (void) keys_of(now.level[t], table->entries);
                table->source = TABLE_READ;
        }
}

/* --- one case --------------------------------------------------------------------------------------------------------- */

/* The file in place gives each host what it has. */
static void make_file_in_place(struct opensm_tables *ret)
{
        *ret = (struct opensm_tables) {
                .ports = arena_new_array(cases, struct partitions_file_port, scene.n_ports), .n_ports = scene.n_ports,
        };
        for (unsigned p = 0; p < scene.n_ports; p++) {
                struct p_key *keys = arena_new_array(cases, struct p_key, MAX_BASES);

                ret->ports[p] = (struct partitions_file_port) {
                        .guid = G(host_guid(p) + 1), .keys = keys, .n_keys = keys_of(scene.before.level[p], keys),
                };
        }
}

static struct desired *make_desired(void)
{
        struct desired *d = arena_new_object(cases, struct desired);

        *d = (struct desired) { .subnet = subnet, .ports = arena_new_array(cases, struct desired_port, subnet->n_ports) };
        for (unsigned p = 0; p < scene.n_ports; p++) {
                struct p_key *keys = arena_new_array(cases, struct p_key, MAX_BASES);

                d->ports[port_of(p)] = (struct desired_port) { keys, keys_of(scene.policy[p], keys) };
        }
        return d;
}

static void know(void)
{
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, 0, 0, HOLD), 0);
        read_tables(KNOWN);
        ck_assert_int_eq(knowledge_see_tables(k, seen, 1), 0);
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, MINUTE, 60, HOLD), 0);
        read_tables(READABLE);
        ck_assert_int_eq(knowledge_see_tables(k, seen, 60), 0);
        knowledge_recall(k, seen);
}

static void prepare(void)
{
        struct desired *desired = make_desired();
        struct plan plan = { .subnet = subnet, .desired = desired };
        _cleanup_findings_ struct findings findings = {};
        struct opensm_tables in_place;
        struct opensm_transition *transitions;
        uint32_t n;

        findings = (struct findings) { .arena = cases };
        k = knowledge_free(k);
        k = knowledge_new();
        now = scene.before;
        know();
        ck_assert_int_eq(knowledge_set_policy(k, desired), 0);
        make_file_in_place(&in_place);
        plan.final_tables = arena_new_array(cases, struct p_key *, subnet->n_ports);
        ck_assert_int_eq(opensm_transitions_of_plan(cases, &plan, seen, k, &in_place, &transitions, &n), 0);
        ck_assert_int_eq(opensm_phases_compute(cases, transitions, n, &in_place, false, &findings, &phases), 0);
}

static uint32_t transition_of(unsigned table)
{
        uint32_t i = 0;

        while (phases.transitions[i].guid.v != host_guid(table % MAX_PORTS) + 1)
                i++;
        return i;
}

/* OpenSM writes to a table that pkeyd cannot read only what is new in its file. */
static bool is_written(unsigned table, unsigned base, enum opensm_phase phase, uint8_t level)
{
        uint8_t before[MAX_BASES];

        if (base_set_has(&phases.held, (uint16_t) (base + 1)))
                return false;
        if (scene.sight[table] == READABLE)
                return now.level[table][base] != level;
        levels_of(&(phase == OPENSM_ADOPT ? phases.in_place : phases.tables[phase - 1])[transition_of(table)], before);
        return before[base] != level;
}

/* Every intermediate state: each table with what it has or with what the file gives it. */
static void try_all_states(enum opensm_phase phase, struct state *ret_end)
{
        struct { unsigned table, base; uint8_t level; } writes[MAX_TABLES * MAX_BASES];
        unsigned n = 0;

        *ret_end = now;
        for (unsigned t = 0; t < MAX_TABLES; t++) {
                uint8_t levels[MAX_BASES];

                if (!is_table(t))
                        continue;
                levels_of(&phases.tables[phase][transition_of(t)], levels);
                for (unsigned base = 0; base < scene.n_bases; base++) {
                        if (!is_written(t, base, phase, levels[base]))
                                continue;
                        writes[n].table = t;
                        writes[n].base = base;
                        writes[n++].level = levels[base];
                        if (scene.sight[t] == READABLE && !(t == scene.mutes && phase == scene.mutes_in && !scene.mutes_after))
                                ret_end->level[t][base] = levels[base];
                }
        }
        for (unsigned done = 0; done < 1u << n; done++) {
                struct state s = now;

                for (unsigned i = 0; i < n; i++)
                        if (done >> i & 1)
                                s.level[writes[i].table][writes[i].base] = writes[i].level;
                check_promises(&s);
        }
}

static void carry_out(enum opensm_phase phase)
{
        struct state end;

        ck_assert_int_eq(opensm_admit(cases, &phases, phase, phase, subnet, k), 0);
        if (!phases.needed[phase])
                return;
        try_all_states(phase, &end);
        now = end;
        if (scene.mutes < MAX_TABLES && phase == scene.mutes_in)
                scene.sight[scene.mutes] = KNOWN;
        read_tables(READABLE);
        opensm_confirm(&phases, phase, seen, k);
        for (unsigned t = 0; t < MAX_TABLES; t++) /* only what was read is certain */
                if (is_table(t))
                        REQUIRE(knowledge_get(k, knowledge_find_port(k, subnet, port_of(t)))->fresh ==
                                (scene.sight[t] == READABLE));
        ck_assert_int_eq(opensm_phases_see_unread(cases, &phases, phase, seen), 0);
}

/* Returns whether anything was held. */
static bool try_case(void)
{
        bool any = false;

        cases = arena_new();
        prepare();
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES; phase++)
                if (phases.needed[phase])
                        carry_out(phase);
        for (unsigned base = 0; base < scene.n_bases; base++)
                any = any || base_set_has(&phases.held, (uint16_t) (base + 1));
        arena_free(cases);
        return any;
}

static void require_done(void)
{
        for (unsigned p = 0; p < scene.n_ports; p++) {
                REQUIRE(memcmp(now.level[p], scene.policy[p], scene.n_bases) == 0);
                REQUIRE(memcmp(now.level[MAX_PORTS + p], scene.policy[p], scene.n_bases) == 0);
        }
}

/* --- all cases -------------------------------------------------------------------------------------------------------- */

static void begin(unsigned n_ports, unsigned n_bases, unsigned filters)
{
        memset(&scene, 0, sizeof(scene));
        scene.n_ports = n_ports;
        scene.n_bases = n_bases;
        scene.filters = filters;
        scene.mutes = MAX_TABLES;
        subnet = make_subnet(&(struct scene) { (1u << n_ports) - 1, 0, filters, filters, false });
        k = knowledge_free(k);
        k = knowledge_new();
}

static unsigned power(unsigned base, unsigned exponent)
{
        return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static unsigned digit(unsigned *number, unsigned base)
{
        unsigned ret = *number % base;

        *number /= base;
        return ret;
}

/* Levels of the hosts before and by the policy, and of the leaf ports, unless those are the same. */
static void set_levels(unsigned before, unsigned policy, const unsigned *leaves)
{
        unsigned leaf = leaves ? *leaves : before;

        for (unsigned p = 0; p < scene.n_ports; p++)
                for (unsigned base = 0; base < scene.n_bases; base++) {
                        scene.before.level[p][base] = (uint8_t) digit(&before, 3);
                        scene.policy[p][base] = (uint8_t) digit(&policy, 3);
                        scene.before.level[MAX_PORTS + p][base] = (uint8_t) digit(&leaf, 3);
                }
}

static unsigned n_levels(void)
{
        return power(3, scene.n_ports * scene.n_bases);
}

START_TEST(all_is_known)
{
        static const unsigned scenes[][3] = { { 2, 2, 0 }, { 2, 2, 1 }, { 2, 2, 3 }, { 3, 1, 0 }, { 3, 1, 1 }, { 3, 1, 7 } };

        begin(scenes[_i][0], scenes[_i][1], scenes[_i][2]);
        for (unsigned before = 0; before < n_levels(); before++)
                for (unsigned policy = 0; policy < n_levels(); policy++) {
                        set_levels(before, policy, NULL);
                        REQUIRE(!try_case());
                        require_done();
                }
}
END_TEST

/* All combinations of hosts and leaf ports that cannot be read. */
static void set_sights(unsigned sights)
{
        for (unsigned p = 0; p < scene.n_ports; p++) {
                scene.sight[p] = (enum sight) digit(&sights, N_SIGHTS);
                scene.sight[MAX_PORTS + p] = digit(&sights, 2) ? KNOWN : READABLE;
        }
}

START_TEST(some_cannot_be_read)
{
        static const unsigned scenes[][3] = { { 2, 1, 0 }, { 2, 1, 1 }, { 2, 1, 3 }, { 3, 1, 0 }, { 3, 1, 1 } };
        unsigned n_held = 0, step;

        begin(scenes[_i][0], scenes[_i][1], scenes[_i][2]);
        step = scene.n_ports == 3 ? 5 : 1; /* of three ports every fifth combination, each in turn */
        for (unsigned before = 0; before < n_levels(); before++)
                for (unsigned policy = 0; policy < n_levels(); policy++)
                        for (unsigned sights = (before + policy) % step; sights < power(6, scene.n_ports); sights += step) {
                                set_levels(before, policy, NULL);
                                set_sights(sights);
                                n_held += try_case();
                        }
        ck_assert_uint_gt(n_held, 0);
}
END_TEST

/* One table stops answering after a file was given, and was written or not. */
START_TEST(one_goes_mute)
{
        begin(3, 1, (unsigned) _i);
        for (unsigned before = 0; before < n_levels(); before++)
                for (unsigned policy = 0; policy < n_levels(); policy++)
                        for (unsigned c = 0; c < 2 * OPENSM_N_PHASES * MAX_TABLES; c++) {
                                unsigned rest = c;

                                set_levels(before, policy, NULL);
                                memset(scene.sight, 0, sizeof(scene.sight));
                                scene.mutes_after = digit(&rest, 2);
                                scene.mutes_in = (enum opensm_phase) digit(&rest, OPENSM_N_PHASES);
                                scene.mutes = rest;
                                (void) try_case();
                        }
}
END_TEST

/* Leaf ports that do not have the entries of their hosts. */
START_TEST(filters_of_their_own)
{
        begin(2, 1, 3);
        for (unsigned before = 0; before < n_levels(); before++)
                for (unsigned policy = 0; policy < n_levels(); policy++)
                        for (unsigned leaves = 0; leaves < n_levels(); leaves++)
                                for (unsigned mute = 0; mute < 16; mute++) {
                                        set_levels(before, policy, &leaves);
                                        for (unsigned t = 0; t < 4; t++)
                                                scene.sight[t / 2 * MAX_PORTS + t % 2] = mute >> t & 1 ? KNOWN : READABLE;
                                        (void) try_case();
                                }
}
END_TEST

/* Host 0 is a full member behind a limited entry, and becomes limited; host 1 is raised. Nothing waits forever. */
START_TEST(full_member_behind_a_limited_entry)
{
        for (unsigned filters = 0; filters < 4; filters++) {
                begin(2, 1, filters);
                scene.before.level[0][0] = LEVEL_FULL;
                scene.before.level[MAX_PORTS][0] = LEVEL_LIMITED;
                scene.before.level[1][0] = scene.before.level[MAX_PORTS + 1][0] = LEVEL_LIMITED;
                scene.policy[0][0] = LEVEL_LIMITED;
                scene.policy[1][0] = LEVEL_FULL;
                REQUIRE(!try_case());
                require_done();
        }
}
END_TEST

/* --- single cases ------------------------------------------------------------------------------------------------------- */

/* Three hosts, of which host 2 is absent, with the transitions from `before` to `after`. */
static struct opensm_transition transitions[MAX_PORTS];

static const struct p_key none[1], limited[] = { { 0x0001 } }, full[] = { { 0x8001 } };

static void set_transition(unsigned host, const struct p_key *before, uint32_t n_before, const struct p_key *after,
                           uint32_t n_after)
{
        transitions[host] = (struct opensm_transition) {
                .port = port_at(subnet, host_guid(host), 1), .record = host_record(host), .guid = G(host_guid(host) + 1),
                .label = "host", .capacity = CAPACITY, .before = before, .n_before = n_before, .after = after, .n_after = n_after,
        };
}

/* The hosts with a bit in `there` are present, those in `mute` were only read before; hosts in `holders` hold base 1. */
static void begin_single(unsigned there, unsigned silent, unsigned mute, unsigned holders)
{
        cases = arena;
        begin(MAX_PORTS, 1, 0);
        for (unsigned p = 0; p < MAX_PORTS; p++) {
                now.level[p][0] = now.level[MAX_PORTS + p][0] = holders >> p & 1 ? LEVEL_FULL : LEVEL_NONE;
                scene.sight[p] = mute >> p & 1 ? KNOWN : READABLE;
        }
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, 0, 0, HOLD), 0);
        read_tables(KNOWN);
        ck_assert_int_eq(knowledge_see_tables(k, seen, 1), 0);
        subnet = make_subnet(&(struct scene) { there, silent, 0, 0, false });
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, MINUTE, 60, HOLD), 0);
        ck_assert_int_eq(observed_new(arena, subnet, &seen), 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                const struct knowledge_record *r = knowledge_get(k, knowledge_find_port(k, subnet, i));
                unsigned host = (unsigned) (subnet_port_node(subnet, &subnet->ports[i])->guid.v / 0x100) - 1;

                memcpy(seen->tables[i].entries, r->entries, r->capacity * sizeof(*r->entries));
                if (host >= MAX_PORTS || !(mute >> host & 1))
                        seen->tables[i].source = TABLE_READ;
        }
        ck_assert_int_eq(knowledge_see_tables(k, seen, 60), 0);
}

/* The policy gives base 1 to these hosts, present or not. */
static void compute_both(unsigned members, bool allow_both)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };

        want(make_subnet(&(struct scene) { 7, 0, 0, 0, false }), members);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, MAX_PORTS, NULL, allow_both, &findings, &phases), 0);
}

static void compute(unsigned members)
{
        compute_both(members, false);
}

static bool is_held(uint16_t base)
{
        return base_set_has(&phases.held, base);
}

static void admit(enum opensm_phase phase)
{
        ck_assert_int_eq(opensm_admit(arena, &phases, phase, phase, subnet, k), 0);
}

/* Host 2 is down. It has what the file gives it when it returns, so the file gives it nothing that a mute host could share. */
START_TEST(absent_host)
{
        for (unsigned mute = 0; mute < 2; mute++) {
                begin_single(3, 0, mute, 1);
                set_transition(0, full, 1, mute ? full : none, mute);
                set_transition(1, none, 0, none, 0);
                set_transition(2, none, 0, full, 1);
                ck_assert_uint_eq(transitions[2].port, SUBNET_NONE);
                compute(4);
                admit(OPENSM_REVOKE);
                for (unsigned i = 0; i < CAPACITY; i++)
                        seen->tables[port_at(subnet, host_guid(0), 1)].entries[i].v = 0;
                opensm_confirm(&phases, OPENSM_REVOKE, seen, k);
                admit(OPENSM_GRANT);
                ck_assert_int_eq(is_held(1), mute);
                ck_assert_uint_eq(phases.tables[OPENSM_GRANT][2].n_keys, !mute);
                /* it returns, and may have the entry before it is read */
                subnet = make_subnet(&(struct scene) { 7, 0, 0, 0, false });
                ck_assert_int_eq(knowledge_see_subnet(k, subnet, 2 * MINUTE, 120, HOLD), 0);
                ck_assert_uint_eq(knowledge_port_bounds(k, host_record(2), 1).may, mute ? LEVEL_NONE : LEVEL_FULL);
        }
}
END_TEST

/* Revoking a base of a host that is down cuts off no traffic. */
START_TEST(absent_host_loses)
{
        begin_single(3, 0, 0, 7);
        set_transition(0, full, 1, full, 1);
        set_transition(1, full, 1, full, 1);
        set_transition(2, full, 1, limited, 1);
        compute(7);
        admit(OPENSM_LOWER);
        ck_assert(!is_held(1));
        ck_assert_uint_eq(phases.tables[OPENSM_LOWER][2].keys[0].v, 0x0001);
}
END_TEST

/* Host 0 must lose the full one of its two entries; host 1, which does not answer, may still be limited. */
START_TEST(entry_that_goes)
{
        static const struct p_key both[] = { { 0x0001 }, { 0x8001 } };
        uint32_t port;

        for (unsigned mute = 0; mute < 2; mute++) {
                begin_single(7, 0, mute << 1, 2);
                port = port_at(subnet, host_guid(0), 1);
                seen->tables[port].entries[0].v = 0x0001;
                seen->tables[port].entries[1].v = 0x8001;
                ck_assert_int_eq(knowledge_see_tables(k, seen, 60), 0);
                set_transition(0, both, 2, limited, 1);
                set_transition(1, full, 1, full, 1);
                set_transition(2, none, 0, none, 0);
                compute_both(3, true);
                admit(OPENSM_LOWER);
                ck_assert_int_eq(is_held(1), mute);
                ck_assert_uint_eq(phases.tables[OPENSM_LOWER][0].n_keys, mute ? 2 : 1);
        }
}
END_TEST

/* OpenSM may still write what a table does not show. */
START_TEST(confirmed_is_what_was_read)
{
        begin_single(7, 0, 0, 0);
        set_transition(0, none, 0, full, 1);
        set_transition(1, none, 0, none, 0);
        set_transition(2, none, 0, none, 0);
        compute(1);
        admit(OPENSM_GRANT);
        opensm_confirm(&phases, OPENSM_GRANT, seen, k);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 1).may, LEVEL_FULL);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 1).has, LEVEL_NONE);
        seen->tables[port_at(subnet, host_guid(0), 1)].entries[0].v = 0x8001;
        seen->tables[port_at(subnet, SWITCH, 1)].entries[0].v = 0x8001;
        opensm_confirm(&phases, OPENSM_GRANT, seen, k);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 1).has, LEVEL_FULL);
        ck_assert_uint_eq(knowledge_get(k, leaf_record(0))->n_writes, 0);
}
END_TEST

static void put(uint32_t port, uint16_t key)
{
        seen->tables[port].entries[0].v = key;
}

/* Host 0 is a full member of base 1, and talks to host 1, a limited one. A file that lowers it is a loss, unless its level was one
 * of two, depending on the switch, and becomes the lower one. */
START_TEST(lowered_from_between)
{
        static const struct {
                unsigned filters;
                uint16_t leaf;
                bool says_nothing, waits;
        } rows[] = {
                { 3, 0x0001, false, false }, { 3, 0x0001, true, true }, { 3, 0x8001, false, true },
                { 0, 0x0001, false, true },  { 1, 0x0001, false, true }, { 2, 0x0001, false, true },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                begin_single(7, 0, 0, 0);
                put(port_at(subnet, host_guid(0), 1), 0x8001);
                put(port_at(subnet, SWITCH, 1), rows[i].leaf);
                put(port_at(subnet, host_guid(1), 1), 0x0001);
                put(port_at(subnet, SWITCH, 2), 0x0001);
                ck_assert_int_eq(knowledge_see_tables(k, seen, 60), 0);
                knowledge_see_filter(k, leaf_record(0), rows[i].filters & 1, rows[i].filters & 2);
                set_transition(0, limited, !rows[i].says_nothing, full, 1);
                set_transition(1, limited, 1, full, 1);
                set_transition(2, none, 0, none, 0);
                compute(3);
                admit(OPENSM_ADOPT);
                ck_assert_msg(is_held(1) == rows[i].waits, "row %zu", i);
        }
}
END_TEST

/* The first file would remove base 1 from host 0, which talks to host 1 in it: every port keeps it as in the file in place. */
START_TEST(held_from_the_first_file_on)
{
        struct partitions_file_port line = { .guid = G(host_guid(1) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { .ports = &line, .n_ports = 1 };
        _cleanup_findings_ struct findings findings = { .arena = arena };

        begin_single(7, 0, 0, 3);
        set_transition(0, none, 0, full, 1);
        set_transition(1, full, 1, full, 1);
        set_transition(2, none, 0, none, 0);
        want(subnet, 3);
        ck_assert_int_eq(opensm_phases_compute(arena, transitions, MAX_PORTS, &in_place, false, &findings, &phases), 0);
        ck_assert(phases.needed[OPENSM_ADOPT]);
        admit(OPENSM_ADOPT);
        ck_assert(is_held(1));
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES; phase++) {
                ck_assert_uint_eq(phases.tables[phase][0].n_keys, 0);
                ck_assert_uint_eq(phases.tables[phase][1].n_keys, 1);
                ck_assert_uint_eq(phases.tables[phase][1].keys[0].v, 0x0001);
                ck_assert(!phases.needed[phase]);
        }
}
END_TEST

/* OpenSM makes host 2 a limited member of the default partition with any file, so that waiting would change nothing. */
START_TEST(default_members)
{
        static const struct p_key default_full[] = { { 0xffff } }, default_limited[] = { { 0x7fff } };
        uint32_t port;

        for (unsigned is_full = 0; is_full < 2; is_full++) {
                begin_single(7, 0, 0, 0);
                port = port_at(subnet, host_guid(0), 1);
                seen->tables[port].entries[0].v = 0xffff;
                ck_assert_int_eq(knowledge_see_tables(k, seen, 60), 0);
                set_transition(0, default_full, 1, default_full, 1);
                set_transition(1, none, 0, none, 0);
                set_transition(2, is_full ? default_full : none, is_full, is_full ? default_full : default_limited, 1);
                compute(0);
                admit(OPENSM_ADOPT);
                ck_assert_uint_eq(knowledge_get(k, host_record(1))->n_writes, 1); /* though no file names it */
                ck_assert_uint_eq(knowledge_get(k, host_record(2))->n_writes, 1);
                ck_assert_int_eq(is_held(P_KEY_DEFAULT_BASE), is_full);
        }
}
END_TEST

static const struct policy owns_all = { .owns = &(struct base_range) { 1, 0x7fff }, .n_owns = 1 };
static const struct p_key *gives; /* one P_Key for each port; NULL: none */
static bool knows_policy = true;  /* for absent hosts */
static bool keeps;                /* unmanaged entries: the plan ends with the tables as they are */

/* The transitions as phases.c computes them. */
static const struct opensm_transition *transition_of_host(unsigned host, const struct opensm_tables *in_place)
{
        struct desired *d = arena_new_object(arena, struct desired);
        struct p_key *final[16] = {};
        struct plan plan = { .subnet = subnet, .desired = d, .final_tables = final };
        struct subnet *larger = make_subnet(&(struct scene) { 7, 0, 0, 0, false });
        const struct opensm_absent absent = { larger, knows_policy ? d : NULL, false, NULL };
        struct opensm_transition *list;
        uint32_t n;

        *d = (struct desired) {
                .subnet = larger, .policy = &owns_all, .ports = arena_new_array(arena, struct desired_port, larger->n_ports),
        };
        for (uint32_t i = 0; gives && i < larger->n_ports; i++)
                d->ports[i] = (struct desired_port) { .wanted = gives, .n_wanted = 1 };
        for (uint32_t i = 0; keeps && i < subnet->n_ports; i++)
                final[i] = seen->tables[i].entries;
        if (port_at(subnet, host_guid(host), 1) == NO_PORT)
                ck_assert_int_eq(opensm_transitions_of_absent(arena, &absent, subnet, k, in_place, &list, &n), 0);
        else
                ck_assert_int_eq(opensm_transitions_of_plan(arena, &plan, seen, k, in_place, &list, &n), 0);
        for (uint32_t i = 0; i < n; i++)
                if (list[i].guid.v == host_guid(host) + 1)
                        return &list[i];
        ck_abort_msg("there is no way of host %u", host);
        return NULL;
}

static void expect_stays(const struct opensm_transition *transition, uint16_t key)
{
        ck_assert_uint_eq(transition->after == transition->before, 1);
        ck_assert_uint_eq(transition->n_after, transition->n_before);
        for (uint32_t i = 0; i < transition->n_before; i++)
                ck_assert_uint_eq(transition->before[i].v, i ? 0 : key);
        ck_assert(transition->n_before > 0 || key == 0);
}

static void expect_begins(unsigned host, const struct opensm_tables *in_place, uint16_t key)
{
        const struct opensm_transition *transition = transition_of_host(host, in_place);

        ck_assert_uint_eq(transition->n_before, key != 0);
        ck_assert_uint_eq(key ? transition->before[0].v : 0, key);
}

/* An entry of a table that the file in place does not give may be gone by now. The transition has it only if the policy gives it,
 * or the file does not name the port. */
START_TEST(unknown_is_not_given_back)
{
        static const struct p_key both[] = { { 0x0001 }, { 0x8001 } };
        static const struct p_key another[] = { { 0x0002 } };
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = another, .n_keys = 1 };
        struct partitions_file_port of_other = { .guid = G(host_guid(1) + 1), .keys = another, .n_keys = 1 };
        const struct opensm_tables in_place = { .ports = &line, .n_ports = 1 }, not_named = { .ports = &of_other, .n_ports = 1 };
        const struct opensm_tables done = { &line, 1, true };

        begin_single(7, 0, 0, 1);
        expect_begins(0, NULL, 0x8001);
        expect_begins(0, &not_named, 0x8001);
        expect_begins(0, &done, 0x8001); /* another writer added it since: the first file has it, so that OpenSM removes it later */
        ck_assert(!transition_of_host(0, &done)->has_surplus);
        expect_begins(0, &in_place, 0);
        ck_assert(transition_of_host(0, &in_place)->has_surplus);
        gives = full;
        expect_begins(0, &in_place, 0x8001);
        ck_assert(!transition_of_host(0, &in_place)->has_surplus);
        gives = limited;
        expect_begins(0, &in_place, 0);
        gives = NULL;
        line.keys = limited;
        expect_begins(0, &in_place, 0x0001);
        line.keys = full;
        expect_begins(0, &in_place, 0x8001);
        line.keys = both;
        line.n_keys = 2;
        expect_begins(0, &in_place, 0x8001);
        line.n_keys = 0; /* it does not name the port */
        expect_begins(0, &in_place, 0x8001);
}
END_TEST

/* An unmanaged base that a port has with another entry than the file in place gives stays in the files as it is there. */
START_TEST(unmanaged_stays_as_told)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { .ports = &line, .n_ports = 1 };
        const struct opensm_transition *transition;

        begin_single(7, 0, 0, 1);
        keeps = true;
        for (unsigned told = 0; told < 2; told++) {
                line.keys = told ? full : limited;
                transition = transition_of_host(0, &in_place);
                ck_assert_uint_eq(transition->n_before, 1);
                ck_assert_uint_eq(transition->n_after, 1);
                ck_assert_uint_eq(transition->after[0].v, line.keys[0].v);
        }
        line.keys = limited;
        gives = full; /* pkeyd manages it */
        transition = transition_of_host(0, &in_place);
        ck_assert_uint_eq(transition->n_after, 1);
        ck_assert_uint_eq(transition->after[0].v, 0x8001);
        gives = NULL;
        seen->tables[port_at(subnet, host_guid(0), 1)].entries[0].v = 0x8002; /* the file gives nothing in this base */
        ck_assert_uint_eq(transition_of_host(0, &in_place)->n_after, 0);
        keeps = false;
}
END_TEST

/* A port that cannot be read, or is silent, begins with what it held, or what the file gave it last if it gave anything, or nothing
 * if a person vouches for it. */
START_TEST(unread_hosts_stay)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { &line, 1 };

        for (unsigned silent = 0; silent < 2; silent++) {
                struct p_key block[P_KEY_BLOCK_ENTRIES];

                begin_single(silent ? 6 : 7, silent, 1, 1);
                if (silent)
                        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
                else
                        knowledge_recall(k, seen);
                expect_stays(transition_of_host(0, &in_place), 0x0001);
                ck_assert(!transition_of_host(0, &in_place)->has_surplus); /* nothing to wait for */
                expect_stays(transition_of_host(0, NULL), 0x8001);
                block_of(0x0001, block);
                ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
                expect_stays(transition_of_host(0, &in_place), 0x0001);
                expect_stays(transition_of_host(0, NULL), 0x8001); /* no file gave it anything */
                if (silent) {
                        knowledge_see_block(k, leaf_record(0), 0, (const struct p_key[P_KEY_BLOCK_ENTRIES]) {});
                        knowledge_see_filter(k, leaf_record(0), false, false); /* it may have been reset */
                        expect_stays(transition_of_host(0, NULL), 0x8001);
                        ck_assert(!transition_of_host(0, NULL)->is_undecided);
                        knowledge_doubt_filter(k, leaf_record(0)); /* it may be on */
                        expect_stays(transition_of_host(0, NULL), 0);
                        ck_assert(transition_of_host(0, NULL)->is_undecided);
                }
                ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
                expect_stays(transition_of_host(0, &in_place), 0);
        }
}
END_TEST

/* Host 0 is unplugged, and host 1 hangs since: that may be host 0, which then stays as it was. If an edit comes before the next
 * sweep, host 0 may be back, and its transition is judged like any other. */
START_TEST(absent_hosts_that_may_be_there)
{
        for (unsigned hangs = 0; hangs < 2; hangs++) {
                begin_single(hangs ? 4 : 6, hangs ? 2 : 0, 3, 1);
                knowledge_doubt_absence(k);
                ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_ABSENT);
                ck_assert_int_eq(knowledge_get(k, host_record(0))->may_be_silent, hangs);
                gives = limited;
                knows_policy = true;
                if (hangs)
                        expect_stays(transition_of_host(0, NULL), 0x8001);
                else
                        ck_assert(transition_of_host(0, NULL)->n_after == 1 && transition_of_host(0, NULL)->after[0].v == 0x0001);
                gives = NULL;
        }
}
END_TEST

/* OpenSM may have removed from an unread host whatever no file gave it, even before it carried out the file in place. */
START_TEST(unread_hosts_hold_what_they_were_told)
{
        struct partitions_file_port of_other = { .guid = G(host_guid(1) + 1), .keys = limited, .n_keys = 1 };

        for (unsigned is_done = 0; is_done < 2; is_done++) {
                const struct opensm_tables in_place = { &of_other, 1, is_done };

                begin_single(7, 0, 1, 1);
                knowledge_recall(k, seen);
                expect_begins(0, NULL, 0x8001);
                expect_begins(0, &in_place, 0);
                gives = full;
                expect_begins(0, &in_place, 0x8001);
                gives = NULL;
        }
}
END_TEST

/* A host behind a leaf port that filters and passes nothing has nothing, unless a file gave it something that OpenSM may have
 * written since. If the leaf port was never read, it is not known what passes: the host has what the file in place gives it. */
START_TEST(hosts_behind_filters)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        struct partitions_file_port full_line = { .guid = G(host_guid(0) + 1), .keys = full, .n_keys = 1 };
        const struct opensm_tables in_place = { &line, 1 }, full_in_place = { &full_line, 1 };
        struct observed_table *leaf;

        begin_single(7, 0, 0, 1);
        leaf = &seen->tables[port_at(subnet, SWITCH, 1)];
        expect_begins(0, NULL, 0x8001);
        leaf->entries[0].v = 0;
        expect_begins(0, NULL, 0x8001);
        leaf->enforce_inbound = true;
        knowledge_see_filter(k, leaf_record(0), true, false);
        expect_begins(0, &in_place, 0);
        expect_begins(0, &full_in_place, 0);
        leaf->source = TABLE_ASSUMED;
        expect_begins(0, &in_place, 0x0001);
        expect_begins(0, &full_in_place, 0x8001);
        expect_begins(0, NULL, 0);
        leaf->source = TABLE_UNKNOWN;
        expect_begins(0, &in_place, 0x0001);
        expect_begins(0, NULL, 0);
        leaf->enforce_inbound = false; /* not known: it was not queried */
        expect_begins(0, NULL, 0x8001);
        knowledge_doubt_filter(k, leaf_record(0));
        expect_begins(0, NULL, 0);
        leaf->enforce_inbound = true;
        leaf->source = TABLE_READ;
        expect_begins(0, &in_place, 0x0001);
        expect_begins(0, &full_in_place, 0x8001);
        expect_begins(0, NULL, 0);
        ck_assert(transition_of_host(0, NULL)->is_undecided);
        leaf->enforce_inbound = false; /* its switch did not answer, or the filter may be on by now */
        expect_begins(0, NULL, 0);
        leaf->source = TABLE_ASSUMED;
        expect_begins(0, NULL, 0);
        ck_assert(transition_of_host(0, NULL)->is_undecided);
        leaf->entries[0].v = 0x0001;
        expect_begins(0, NULL, 0x0001);
        ck_assert(transition_of_host(0, NULL)->is_undecided);
        leaf->entries[0].v = 0x8001;
        expect_begins(0, NULL, 0x8001);
        ck_assert(!transition_of_host(0, NULL)->is_undecided);
        seen->tables[port_at(subnet, host_guid(0), 1)].entries[0].v = 0x0001;
        expect_begins(0, NULL, 0x0001);
        ck_assert(!transition_of_host(0, NULL)->is_undecided);
        leaf->entries[0].v = 0;
        ck_assert(transition_of_host(0, NULL)->is_undecided);
        seen->tables[port_at(subnet, host_guid(0), 1)].entries[0].v = 0x8001;
        leaf->entries[0].v = 0x0001;
        knowledge_see_filter(k, leaf_record(0), true, true);
        expect_begins(0, NULL, 0x8001); /* by this discovery the leaf port does not filter */
        leaf->enforce_inbound = true;
        expect_begins(0, NULL, 0x0001);
        ck_assert(!transition_of_host(0, NULL)->is_undecided);
}
END_TEST

/* If the switch did not answer discovery, it is not known what passes either: the host stays as in the file. */
START_TEST(hosts_behind_unseen_switches)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { &line, 1 };
        uint32_t port;

        begin_single(7, 0, 0, 1);
        port = port_at(subnet, host_guid(0), 1);
        ck_assert(transition_of_host(0, &in_place)->after != transition_of_host(0, &in_place)->before);
        subnet->ports[port].peer = SUBNET_NONE;
        expect_stays(transition_of_host(0, &in_place), 0x0001);
        expect_stays(transition_of_host(0, NULL), 0);
        set_transition(0, limited, 1, full, 1);
        set_transition(1, none, 0, none, 0);
        set_transition(2, none, 0, none, 0);
        compute(1);
        ck_assert_int_eq(opensm_phases_reached(&phases, OPENSM_GRANT, 0, seen), OPENSM_UNREAD);
        ck_assert(!is_held(1));
        ck_assert_int_eq(opensm_phases_see_unread(arena, &phases, OPENSM_RAISE, seen), 0);
        ck_assert(is_held(1)); /* in all later files */
}
END_TEST

/* The same for a leaf port that filters, and whose switch did not answer whether it can and how large its table is. */
START_TEST(hosts_behind_incomplete_switches)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { &line, 1 };
        struct subnet_port *leaf;
        struct subnet_node *node;

        begin_single(7, 0, 0, 1);
        leaf = &subnet->ports[subnet->ports[port_at(subnet, host_guid(0), 1)].peer];
        node = &subnet->nodes[leaf->node];
        node->partition_enforcement_cap = 0;
        node->incomplete = true;
        leaf->enforce_inbound = leaf->enforce_outbound = false;
        ck_assert_int_eq(observed_new(arena, subnet, &seen), 0);
        knowledge_recall(k, seen);
        ck_assert(transition_of_host(0, &in_place)->after != transition_of_host(0, &in_place)->before);
        for (int inbound = 0; inbound < 2; inbound++) {
                leaf->enforce_inbound = inbound;
                leaf->enforce_outbound = !inbound;
                ck_assert_int_eq(observed_new(arena, subnet, &seen), 0);
                knowledge_recall(k, seen);
                expect_stays(transition_of_host(0, &in_place), 0x0001);
                expect_stays(transition_of_host(0, NULL), 0);
        }
}
END_TEST

/* The same for a silent host that was not moved. */
START_TEST(silent_behind_filters)
{
        struct partitions_file_port line = { .guid = G(host_guid(0) + 1), .keys = limited, .n_keys = 1 };
        const struct opensm_tables in_place = { &line, 1 };
        static const struct p_key nothing[P_KEY_BLOCK_ENTRIES];

        begin_single(6, 1, 1, 1);
        expect_stays(transition_of_host(0, NULL), 0x8001);
        expect_begins(0, NULL, 0x8001);
        knows_policy = false;
        expect_stays(transition_of_host(0, NULL), 0x8001);
        expect_stays(transition_of_host(0, &in_place), 0x8001); /* the policy may give it */
        knows_policy = true;
        expect_stays(transition_of_host(0, &in_place), 0x0001);
        knowledge_see_filter(k, leaf_record(0), true, false);
        expect_begins(0, NULL, 0x8001); /* which passes */
        knowledge_see_block(k, leaf_record(0), 0, nothing);
        expect_begins(0, NULL, 0);
        expect_begins(0, &in_place, 0x0001);
        knowledge_see_filter(k, leaf_record(0), false, true);
        expect_begins(0, NULL, 0);
        knowledge_see_filter(k, leaf_record(0), false, false);
        expect_begins(0, NULL, 0x8001);
}
END_TEST

/* The tables of this host and its leaf port do not show what OpenSM may still write. */
static bool is_doubted(unsigned host)
{
        _cleanup_free_ bool *failed = calloc(subnet->n_ports, sizeof(*failed));
        uint32_t port = port_at(subnet, host_guid(host), 1), leaf = port_at(subnet, SWITCH, (uint8_t) (host + 1));
        bool doubted;

        opensm_doubt_open(&phases, seen, k, failed);
        doubted = failed[port];
        ck_assert_int_eq(failed[leaf], doubted);
        ck_assert_int_eq(seen->tables[port].source, doubted ? TABLE_UNKNOWN : TABLE_READ);
        ck_assert_int_eq(seen->tables[leaf].source, doubted ? TABLE_UNKNOWN : TABLE_READ);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                ck_assert(!failed[i] || i == port || i == leaf);
        seen->tables[port].source = seen->tables[leaf].source = TABLE_READ;
        return doubted;
}

static void holds_now(unsigned host, uint16_t key)
{
        seen->tables[port_at(subnet, host_guid(host), 1)].entries[0].v = key;
        seen->tables[port_at(subnet, SWITCH, (uint8_t) (host + 1))].entries[0].v = key;
}

/* A file's change at this host, even in a base that was held since, may be written at any time until it was. */
START_TEST(it_may_come_yet)
{
        for (unsigned comes = 0; comes < 2; comes++) {
                unsigned host = comes;

                begin_single(7, 0, 0, 1);
                for (unsigned p = 0; p < MAX_PORTS; p++)
                        set_transition(p, none, 0, none, 0);
                set_transition(0, full, 1, full, comes);
                if (comes)
                        set_transition(1, none, 0, full, 1);
                compute(comes ? 3 : 0);
                admit(OPENSM_GRANT);
                ck_assert(!is_held(1));
                ck_assert(is_doubted(host));
                base_set_add(&phases.held, 1);
                ck_assert(is_doubted(host));
                seen->tables[port_at(subnet, SWITCH, (uint8_t) (host + 1))].entries[0].v = comes ? 0x8001 : 0;
                ck_assert(is_doubted(host));
                holds_now(host, comes ? 0x8001 : 0);
                ck_assert(!is_doubted(host));
        }
}
END_TEST

/* A write to a mute host that is given twice is in the knowledge once. */
START_TEST(expected_once)
{
        begin_single(7, 0, 1, 1);
        set_transition(0, limited, 1, limited, 1);
        set_transition(1, none, 0, none, 0);
        set_transition(2, none, 0, none, 0);
        compute(1);
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_int_eq(opensm_expect(&phases, phases.tables[OPENSM_ADOPT], subnet, k), 0);
                ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        }
}
END_TEST

/* A write that another pkeyd may have sent was not admitted here: a file that gives the same is judged like any other. */
START_TEST(suspected_is_judged)
{
        for (unsigned mute = 0; mute < 2; mute++) {
                begin_single(7, 0, mute, mute);
                set_transition(0, mute ? full : none, mute, mute ? full : none, mute);
                set_transition(1, none, 0, full, 1);
                set_transition(2, none, 0, none, 0);
                compute(2);
                ck_assert_int_eq(knowledge_suspect_policy(k), 0);
                ck_assert_uint_eq(knowledge_port_bounds(k, host_record(1), 1).may, LEVEL_FULL);
                admit(OPENSM_GRANT);
                ck_assert_int_eq(is_held(1), mute);
        }
}
END_TEST

/* A held base takes room in the table: bases that no longer fit are held, too. */
START_TEST(held_needs_room)
{
        static const struct p_key after[] = { { 0x0001 }, { 0x8002 } };
        _cleanup_findings_ struct findings findings = { .arena = arena };
        struct base_set first = {};

        begin_single(7, 0, 0, 1);
        set_transition(0, full, 1, after, 2);
        set_transition(1, none, 0, none, 0);
        set_transition(2, none, 0, none, 0);
        want(subnet, 1);
        for (unsigned held = 0; held < 2; held++) {
                transitions[0].capacity = 2;
                ck_assert_int_eq(opensm_phases_compute(arena, transitions, MAX_PORTS, NULL, true, &findings, &phases), 0);
                base_set_add(&first, 1);
                if (held)
                        ck_assert_int_eq(opensm_phases_hold(arena, &phases, OPENSM_LOWER, &first), 0);
                admit(OPENSM_GRANT);
                ck_assert_int_eq(is_held(2), held);
                ck_assert_uint_eq(phases.tables[OPENSM_GRANT][0].n_keys, 2);
        }
}
END_TEST

/* A leaf port with too small a table passes everything, also bases that its host should not have. */
START_TEST(filter_goes_off)
{
        static const struct p_key after[] = { { 0x8001 }, { 0x8002 } };

        for (unsigned i = 0; i < 4; i++) {
                bool dead = i & 1, unsure = i & 2;
                struct observed *o;
                uint32_t host, port;

                begin(MAX_PORTS, 1, 1);
                subnet->nodes[subnet_find_node(subnet, G(SWITCH))].partition_enforcement_cap =
                        2; /* base 1, and the default partition */
                host = port_at(subnet, host_guid(0), 1);
                ck_assert_int_eq(knowledge_see_subnet(k, subnet, 0, 0, HOLD), 0);
                ck_assert_int_eq(observed_new(arena, subnet, &o), 0);
                for (port = 0; port < subnet->n_ports; port++)
                        o->tables[port].source = TABLE_READ;
                o->tables[host].entries[0].v = 0x8001;
                o->tables[host].entries[1].v = dead ? 0x8003 : 0;
                o->tables[port_at(subnet, SWITCH, 1)].entries[0].v = 0x8001;
                o->tables[port_at(subnet, host_guid(1), 1)].entries[0].v = 0x8003;
                ck_assert_int_eq(knowledge_see_tables(k, o, 1), 0);
                for (unsigned p = 0; p < MAX_PORTS; p++)
                        set_transition(p, none, 0, none, 0);
                set_transition(0, full, 1, after, 2);
                transitions[1].before = transitions[1].after = o->tables[port_at(subnet, host_guid(1), 1)].entries;
                transitions[1].n_before = transitions[1].n_after = 1;
                compute(1);
                if (unsure) { /* it was off, and may be on */
                        knowledge_see_filter(k, leaf_record(0), false, false);
                        knowledge_doubt_filter(k, leaf_record(0));
                }
                admit(OPENSM_GRANT);
                ck_assert_int_eq(is_held(2), dead);
                ck_assert_int_eq(knowledge_get(k, leaf_record(0))->filters_unsure, !dead || unsure);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("opensm_admission");
        TCase *t = tcase_create("model");
        SRunner *runner;
        int failed;

        tcase_set_timeout(t, 600);
        tcase_add_checked_fixture(t, knowledge_setup, knowledge_teardown);
        tcase_add_loop_test(t, all_is_known, 0, 6);
        tcase_add_loop_test(t, some_cannot_be_read, 0, 5);
        tcase_add_loop_test(t, one_goes_mute, 0, 2);
        tcase_add_test(t, filters_of_their_own);
        tcase_add_test(t, full_member_behind_a_limited_entry);
        tcase_add_test(t, absent_host);
        tcase_add_test(t, absent_host_loses);
        tcase_add_test(t, entry_that_goes);
        tcase_add_test(t, confirmed_is_what_was_read);
        tcase_add_test(t, lowered_from_between);
        tcase_add_test(t, held_from_the_first_file_on);
        tcase_add_test(t, default_members);
        tcase_add_test(t, unread_hosts_stay);
        tcase_add_test(t, absent_hosts_that_may_be_there);
        tcase_add_test(t, unread_hosts_hold_what_they_were_told);
        tcase_add_test(t, expected_once);
        tcase_add_test(t, suspected_is_judged);
        tcase_add_test(t, it_may_come_yet);
        tcase_add_test(t, hosts_behind_filters);
        tcase_add_test(t, hosts_behind_unseen_switches);
        tcase_add_test(t, hosts_behind_incomplete_switches);
        tcase_add_test(t, unknown_is_not_given_back);
        tcase_add_test(t, unmanaged_stays_as_told);
        tcase_add_test(t, silent_behind_filters);
        tcase_add_test(t, held_needs_room);
        tcase_add_test(t, filter_goes_off);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
