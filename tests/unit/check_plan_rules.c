/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of the planner, one port and the switch port beside it at a time: enforcement bits, phases, indexes, findings.
 */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_fabric.h"

static struct arena *a;
static struct fake_fabric f;
static struct findings findings;
static struct plan_options options;
static struct index_memory *memory;
static struct desired desired;
static struct observed *observed;
static struct plan *plan;
static uint32_t host, leaf;

static void setup(void)
{
        a = arena_new();
        memory = index_memory_new();
        findings = (struct findings) { .arena = a };
        options = (struct plan_options) {.enforcement = ENFORCEMENT_BOTH};
        fake_fabric_init(&f, a, 2, true);
        host = f.host[0];
        leaf = f.leaf[0];
        desired = (struct desired) {
                        .policy = &f.policy,
                        .subnet = f.subnet,
                        .index0_base = P_KEY_DEFAULT_BASE,
                        .ports = arena_new_array(a, struct desired_port, f.subnet->n_ports),
        };
}

static void teardown(void)
{
        findings_done(&findings);
        (void) index_memory_free(memory);
        arena_free(a);
}

/* Entries of a table from index 0 on; 0 ends them. */
#define KEYS(...) ((const uint16_t[]) {__VA_ARGS__ __VA_OPT__(, ) 0})

static void hold(uint32_t port, const uint16_t *keys)
{
        memset(f.tables[port], 0, sizeof(f.tables[port]));
        for (unsigned i = 0; keys[i]; i++)
                f.tables[port][i].v = keys[i];
}

static void want(uint32_t port, const uint16_t *keys)
{
        struct p_key *list = arena_new_array(a, struct p_key, FAKE_CAPACITY + 1);
        uint32_t n = 0;

        for (; keys[n]; n++)
                list[n].v = keys[n];
        for (uint32_t i = n; i <= FAKE_CAPACITY; i++)
                list[i].v = 0xffff; /* behind the end: not wanted */
        desired.ports[port] = (struct desired_port) {list, n};
}

static void bits(bool in, bool out)
{
        f.enforce_inbound[leaf] = in;
        f.enforce_outbound[leaf] = out;
}

static int compute(void)
{
        findings_done(&findings);
        findings = (struct findings) { .arena = a };
        plan = NULL;
        if (!observed)
                observed = fake_fabric_observe(&f, a);
        return plan_compute(a, &desired, observed, memory, &options, &findings, &plan);
}

static bool is_written(uint32_t port)
{
        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++)
                        if (plan->steps[phase].writes[i].port == port)
                                return true;
        return false;
}

static void must_plan(void)
{
        unsigned n = 0;

        observed = NULL;
        ck_assert_int_eq(compute(), 0);
        for (uint32_t port = 0; port < f.subnet->n_ports; port++)
                n += is_written(port);
        ck_assert_uint_eq(plan->n_ports_affected, n);
}

static unsigned writes_in(enum plan_phase phase, uint32_t port)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++)
                n += plan->steps[phase].writes[i].port == port;
        return n;
}

static bool has_finding(enum finding_code code)
{
        for (size_t i = 0; i < findings.n; i++)
                if (findings.items[i].code == code)
                        return true;
        return false;
}

static uint16_t final_at(uint32_t port, unsigned index)
{
        return plan->final_tables[port][index].v;
}

/* Both hold the default partition only, and nothing is wanted but that. */
static void at_rest(void)
{
        for (unsigned i = 0; i < 2; i++) {
                hold(f.host[i], KEYS(0xffff));
                hold(f.leaf[i], KEYS(0xffff));
                want(f.host[i], KEYS(0xffff));
                want(f.leaf[i], KEYS(0xffff));
        }
        bits(true, true);
}

/* --- enforcement --- */

/* Which bits a switch port has in the end: by the settings, as far as the switch can. */
START_TEST(bits_that_are_wanted)
{
        static const struct {
                enum settings_enforcement setting;
                bool cap_in, cap_out, in, out;
        } cases[] = {
                        {ENFORCEMENT_BOTH, true, true, true, true},   {ENFORCEMENT_IN, true, true, true, false},
                        {ENFORCEMENT_OUT, true, true, false, true},   {ENFORCEMENT_OFF, true, true, false, false},
                        {ENFORCEMENT_BOTH, true, false, true, false}, {ENFORCEMENT_BOTH, false, true, false, true},
                        {ENFORCEMENT_IN, false, true, false, false},  {ENFORCEMENT_OUT, true, false, false, false},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (unsigned before = 0; before < 4; before++) {
                        struct subnet_node *node = &f.subnet->nodes[f.subnet->ports[leaf].node];
                        bool now[2] = {before & 1, before & 2};

                        at_rest();
                        bits(now[0], now[1]);
                        node->inbound_enforcement_cap = cases[i].cap_in;
                        node->outbound_enforcement_cap = cases[i].cap_out;
                        options.enforcement = cases[i].setting;
                        must_plan();
                        for (enum plan_phase p = 0; p < PLAN_N_PHASES; p++)
                                for (uint32_t k = 0; k < plan->steps[p].n_writes; k++) {
                                        const struct plan_write *w = &plan->steps[p].writes[k];

                                        if (w->port != leaf || w->kind != WRITE_ENFORCEMENT)
                                                continue;
                                        ck_assert(w->before_inbound == now[0] && w->before_outbound == now[1]);
                                        now[0] = w->after_inbound;
                                        now[1] = w->after_outbound;
                                }
                        ck_assert_msg(now[0] == cases[i].in && now[1] == cases[i].out, "case %zu from %u", i, before);
                }
}
END_TEST

/* What goes off goes off before tables open, unless only it holds something back; what goes on goes on last. */
START_TEST(when_bits_change)
{
        at_rest();
        options.enforcement = ENFORCEMENT_OFF;
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_RELAX, leaf), 1);
        ck_assert_uint_eq(writes_in(PHASE_ENFORCE, leaf), 0);
        hold(host, KEYS(0xffff, 0x8011)); /* which the switch port keeps from having any effect */
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_RELAX, leaf), 0);
        ck_assert_uint_eq(writes_in(PHASE_ENFORCE, leaf), 1);
        options.enforcement = ENFORCEMENT_BOTH;
        bits(false, true);
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_ENFORCE, leaf), 1);
        ck_assert_uint_eq(plan->n_ports_affected, 2); /* the host's table, the switch port's bits */
}
END_TEST

/* An entry that is not pkeyd's must not be cut off: the bits stay as they are, each of them. A limited entry of the
 * switch port does not let a full one through. */
START_TEST(bits_beside_foreign_entries)
{
        static const struct {
                uint16_t host, leaf;
                bool skipped;
        } cases[] = {
                        {0x9234, 0, true},       {0x9234, 0x9234, false}, {0x9234, 0x1234, true},
                        {0x1234, 0x9234, false}, {0x1234, 0x1234, false}, {0x1234, 0, true},
                        {0, 0x1234, false},
        };

        options.unmanaged = UNMANAGED_KEEP;
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (unsigned now = 0; now < 3; now++) {
                        bool stays;

                        at_rest();
                        f.tables[host][4].v = cases[i].host;
                        f.tables[leaf][4].v = cases[i].leaf;
                        bits(now & 1, now & 2);
                        must_plan();
                        stays = writes_in(PHASE_ENFORCE, leaf) + writes_in(PHASE_RELAX, leaf) == 0;
                        ck_assert_msg(stays == cases[i].skipped, "case %zu", i);
                        ck_assert_int_eq(has_finding(FINDING_PLAN_ENFORCEMENT_SKIPPED), cases[i].skipped);
                }
}
END_TEST

/* At whichever index of the host it stands. */
START_TEST(bits_beside_a_foreign_entry_at_any_index)
{
        options.unmanaged = UNMANAGED_KEEP;
        for (unsigned i = 0; i < FAKE_CAPACITY; i++) {
                at_rest();
                f.tables[host][i].v = 0x9234;
                bits(false, false);
                must_plan();
                ck_assert_msg(has_finding(FINDING_PLAN_ENFORCEMENT_SKIPPED), "index %u", i);
        }
}
END_TEST

/* Bits in doubt are written once more as they are, which reads them. */
START_TEST(bits_in_doubt)
{
        at_rest();
        must_plan();
        ck_assert(plan_is_empty(plan));
        observed->tables[leaf].enforcement_doubted = true;
        ck_assert_int_eq(compute(), 0);
        ck_assert_uint_eq(writes_in(PHASE_ENFORCE, leaf), 1);
        ck_assert_uint_eq(plan->n_ports_affected, 1);
}
END_TEST

/* A switch port whose table was not read keeps its bits. */
START_TEST(bits_of_an_unread_port)
{
        static const enum table_source sources[] = {TABLE_UNKNOWN, TABLE_ASSUMED};

        for (size_t i = 0; i < ELEMENTS(sources); i++) {
                at_rest();
                bits(false, false);
                observed = fake_fabric_observe(&f, a);
                observed->tables[leaf].source = sources[i];
                observed->tables[leaf].failure = MAD_TIMED_OUT;
                ck_assert_int_eq(compute(), 0);
                ck_assert_uint_eq(writes_in(PHASE_ENFORCE, leaf), 0);
                ck_assert(has_finding(FINDING_PLAN_UNREACHABLE));
        }
}
END_TEST

/* What is taken to hold what it last held is planned like what was read; the write is for apply to refuse. */
START_TEST(plan_of_an_assumed_table)
{
        at_rest();
        want(host, KEYS(0x8011, 0xffff));
        observed = fake_fabric_observe(&f, a);
        observed->tables[host].source = TABLE_ASSUMED;
        observed->tables[host].failure = MAD_TIMED_OUT;
        ck_assert_int_eq(compute(), 0);
        ck_assert_uint_eq(writes_in(PHASE_GRANT, host), 1);
        ck_assert_uint_eq(final_at(host, 1), 0x8011);
        observed->tables[host].source = TABLE_UNKNOWN;
        ck_assert_int_eq(compute(), 0);
        ck_assert(!is_written(host));
        ck_assert_ptr_null(plan->final_tables[host]);
}
END_TEST

/* --- phases --- */

/* Of one entry, at an endport and at the switch port beside it. */
START_TEST(phase_of_each_change)
{
        static const struct {
                uint16_t before, after;
                enum plan_phase endport, enforcing;
        } cases[] = {
                        {0x8011, 0, PHASE_REVOKE, PHASE_CLOSE},
                        {0x0011, 0, PHASE_REVOKE, PHASE_CLOSE},
                        {0x8011, 0x0011, PHASE_LOWER_ENDPORTS, PHASE_LOWER_ENFORCING},
                        {0x0011, 0x8011, PHASE_RAISE, PHASE_OPEN},
                        {0, 0x8011, PHASE_GRANT, PHASE_OPEN},
                        {0, 0x0011, PHASE_GRANT, PHASE_OPEN},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                at_rest();
                f.tables[host][1].v = f.tables[leaf][1].v = cases[i].before;
                if (cases[i].after) {
                        want(host, KEYS(cases[i].after, 0xffff));
                        want(leaf, KEYS(cases[i].after, 0xffff));
                }
                must_plan();
                ck_assert_uint_eq(plan->n_block_writes, 2);
                ck_assert_msg(writes_in(cases[i].endport, host) == 1, "case %zu", i);
                ck_assert_msg(writes_in(cases[i].enforcing, leaf) == 1, "case %zu", i);
                ck_assert_uint_eq(final_at(host, 1), cases[i].after);
        }
}
END_TEST

/* As plans show them. */
START_TEST(phases_have_names)
{
        static const struct {
                enum plan_phase phase;
                const char *name;
                bool enforcing;
        } cases[] = {
                        {PHASE_REPAIR_ADD, "repair", false},
                        {PHASE_REPAIR_SWAP, "repair", false},
                        {PHASE_REPAIR_DROP, "repair", false},
                        {PHASE_REVOKE, "revoke", false},
                        {PHASE_CLOSE, "close", true},
                        {PHASE_RELAX, "relax", true},
                        {PHASE_OPEN, "open", true},
                        {PHASE_RAISE, "raise", false},
                        {PHASE_LOWER_ENDPORTS, "lower", false},
                        {PHASE_LOWER_ENFORCING, "lower", true},
                        {PHASE_GRANT_ENFORCING, "grant", true},
                        {PHASE_GRANT, "grant", false},
                        {PHASE_ENFORCE, "enforce", true},
        };

        at_rest();
        must_plan();
        ck_assert_uint_eq(ELEMENTS(cases), PLAN_N_PHASES);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ck_assert_str_eq(plan_phase_to_string(cases[i].phase), cases[i].name);
                ck_assert_int_eq(plan_phase_is_enforcing(cases[i].phase), cases[i].enforcing);
                ck_assert_int_eq(plan->steps[cases[i].phase].phase, cases[i].phase);
        }
}
END_TEST

/* Both entries of a base, to one of them: what goes while the other stays is a lower, or takes nothing away. */
START_TEST(phase_of_one_of_two)
{
        at_rest();
        hold(host, KEYS(0xffff, 0x8011, 0x0011));
        hold(leaf, KEYS(0xffff, 0x8011, 0x0011));
        want(host, KEYS(0x0011, 0xffff));
        want(leaf, KEYS(0x0011, 0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_LOWER_ENDPORTS, host), 1);
        ck_assert_uint_eq(writes_in(PHASE_LOWER_ENFORCING, leaf), 1);
        ck_assert_uint_eq(final_at(host, 2), 0x0011);
        ck_assert_uint_eq(final_at(host, 1), 0);
        want(host, KEYS(0x8011, 0xffff));
        want(leaf, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_REVOKE, host), 1);
        ck_assert_uint_eq(writes_in(PHASE_CLOSE, leaf), 1);
        hold(host, KEYS(0xffff, 0x0011));
        hold(leaf, KEYS(0xffff, 0x0011));
        want(host, KEYS(0x0011, 0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_RAISE, host), 1);
}
END_TEST

static bool leaf_covers(struct p_key key)
{
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                if (p_key_same_partition(f.tables[leaf][i], key) &&
                    (p_key_is_full(f.tables[leaf][i]) || !p_key_is_full(key)))
                        return true;
        return false;
}

/* Carries this step of the plan out. */
static void carry_out(const struct plan_step *step)
{
        for (uint32_t i = 0; i < step->n_writes; i++) {
                const struct plan_write *w = &step->writes[i];

                if (w->kind == WRITE_BLOCK)
                        memcpy(&f.tables[w->port][w->block * P_KEY_BLOCK_ENTRIES], w->after, sizeof(w->after));
        }
}

/* A host whose switch port lets its packets pass before and after a policy is never cut off by it on the way: the
 * switch port holds what the host does, after each phase. */
START_TEST(switch_port_covers_its_host)
{
        static const uint16_t values[] = {0, 0x0011, 0x8011};

        for (size_t i = 0; i < ELEMENTS(values) * ELEMENTS(values); i++) {
                uint16_t before = values[i / ELEMENTS(values)], after = values[i % ELEMENTS(values)];

                at_rest();
                f.tables[host][1].v = f.tables[leaf][1].v = before;
                if (after) {
                        want(host, KEYS(after, 0xffff));
                        want(leaf, KEYS(after, 0xffff));
                }
                must_plan();
                for (enum plan_phase p = 0; p < PLAN_N_PHASES; p++) {
                        carry_out(&plan->steps[p]);
                        for (unsigned k = 0; k < FAKE_CAPACITY; k++)
                                ck_assert_msg(!p_key_is_used(f.tables[host][k]) || leaf_covers(f.tables[host][k]),
                                              "0x%04x to 0x%04x, after %s", before, after, plan_phase_to_string(p));
                }
                ck_assert_uint_eq(f.tables[host][1].v, after);
        }
}
END_TEST

/* The host has the base already, and only the switch port keeps it from having any effect: opening is a grant, if it
 * filters. */
START_TEST(grant_by_the_switch)
{
        at_rest();
        hold(host, KEYS(0xffff, 0x8011));
        want(host, KEYS(0x8011, 0xffff));
        want(leaf, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_GRANT_ENFORCING, leaf), 1);
        bits(false, false);
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_OPEN, leaf), 1);
        ck_assert_uint_eq(writes_in(PHASE_GRANT_ENFORCING, leaf), 0);
        bits(false, true);
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_GRANT_ENFORCING, leaf), 1);
        observed = fake_fabric_observe(&f, a); /* also if the host is only taken to hold it */
        observed->tables[host].source = TABLE_ASSUMED;
        observed->tables[host].failure = MAD_TIMED_OUT;
        ck_assert_int_eq(compute(), 0);
        ck_assert_uint_eq(writes_in(PHASE_GRANT_ENFORCING, leaf), 1);
        hold(host, KEYS(0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_OPEN, leaf), 1);
}
END_TEST

/* Switch ports have smaller tables than hosts as a rule: what the host holds at an index that the switch port has not got counts,
 * too. */
START_TEST(grant_by_a_switch_with_a_smaller_table)
{
        at_rest();
        want(host, KEYS(0x8011, 0xffff));
        want(leaf, KEYS(0x8011, 0xffff));
        f.tables[host][FAKE_CAPACITY - 1].v = 0x8011;
        observed = fake_fabric_observe(&f, a);
        observed->tables[leaf].capacity = P_KEY_BLOCK_ENTRIES;
        ck_assert_int_eq(compute(), 0);
        ck_assert_uint_eq(writes_in(PHASE_GRANT_ENFORCING, leaf), 1);
        ck_assert_uint_eq(writes_in(PHASE_OPEN, leaf), 0);
}
END_TEST

/* The host is a limited member and becomes a full one, with both entries: that is a raise, and comes before all that is lowered. */
START_TEST(raise_by_the_switch)
{
        at_rest();
        hold(host, KEYS(0xffff, 0x0011));
        hold(leaf, KEYS(0xffff, 0x0011));
        want(host, KEYS(0x0011, 0x8011, 0xffff));
        want(leaf, KEYS(0x0011, 0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(writes_in(PHASE_OPEN, leaf), 1);
        ck_assert_uint_eq(writes_in(PHASE_RAISE, host), 1);
        ck_assert_uint_eq(plan->n_block_writes, 2);
}
END_TEST

/* Two changes of one block in two phases: the second begins where the first ended. */
START_TEST(writes_follow_each_other)
{
        const struct plan_write *revoke, *grant;

        at_rest();
        hold(host, KEYS(0xffff, 0x8011));
        want(host, KEYS(0x8012, 0xffff));
        must_plan();
        revoke = &plan->steps[PHASE_REVOKE].writes[0];
        grant = &plan->steps[PHASE_GRANT].writes[0];
        ck_assert_uint_eq(revoke->before[1].v, 0x8011);
        ck_assert_uint_eq(revoke->after[1].v, 0);
        ck_assert_mem_eq(grant->before, revoke->after, sizeof(grant->before));
        ck_assert_uint_eq(grant->after[2].v, 0x8012);
}
END_TEST

/* --- indexes --- */

/* No index of a switch port is special. */
START_TEST(index0_of_a_switch_port)
{
        at_rest();
        hold(leaf, KEYS(0x8011, 0xffff));
        want(host, KEYS(0x8011, 0xffff));
        want(leaf, KEYS(0x8011, 0xffff));
        options.repair_index0 = true;
        must_plan();
        ck_assert(!has_finding(FINDING_PLAN_INDEX0));
        ck_assert_uint_eq(final_at(leaf, 0), 0x8011);
        hold(leaf, KEYS(0));
        must_plan();
        ck_assert_uint_eq(final_at(leaf, 0), 0x8011);
}
END_TEST

/* The partition with index0, where the port is a member of it; else the default partition; else none. */
START_TEST(index0_of_a_partition)
{
        desired.index0_base = 0x0011;
        at_rest();
        hold(host, KEYS(0));
        want(host, KEYS(0x8010, 0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0x8011);
        want(host, KEYS(0x8010, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0xffff);
        want(host, KEYS(0x8010));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0x8010);
}
END_TEST

/* Its partition stands elsewhere, which only a repair may change: the second entry of it does not stand in for the first. */
START_TEST(index0_is_not_for_the_second_entry)
{
        at_rest();
        hold(host, KEYS(0));
        f.tables[host][1].v = 0x7fff;
        want(host, KEYS(0x7fff, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0);
        ck_assert_uint_eq(final_at(host, 1), 0x7fff);
        ck_assert_uint_eq(final_at(host, 2), 0xffff);
        ck_assert(has_finding(FINDING_PLAN_INDEX0));
        options.repair_index0 = true;
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0x7fff);
        ck_assert(!has_finding(FINDING_PLAN_INDEX0));
}
END_TEST

static void note(uint16_t index, uint16_t base, bool lost)
{
        const struct subnet_port *p = &f.subnet->ports[host];

        ck_assert_int_eq(index_memory_note(memory, f.subnet->nodes[p->node].guid, p->number, index, (struct p_key) { base },
                                           (struct p_key) {}, lost),
                         0);
}

/* What somebody else took away goes back to where it stood last; nothing else goes there. */
START_TEST(lost_index)
{
        at_rest();
        note(5, 0x8011, true);
        note(7, 0x8011, true);
        note(9, 0x8012, false);
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 7), 0x8011);
        want(host, KEYS(0x8012, 0xffff)); /* freed by pkeyd: not lost */
        must_plan();
        ck_assert_uint_eq(final_at(host, 10), 0x8012);
        f.tables[host][7].v = 0x9234; /* taken meanwhile, and not pkeyd's */
        options.unmanaged = UNMANAGED_KEEP;
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x8011);
}
END_TEST

/* Of a port that has both entries of a base each comes back to where it stood, whichever was lost last. If one of both places is
 * not known, the other one stays free for its own. */
START_TEST(lost_indexes_of_both)
{
        for (unsigned first = 0; first < 2; first++) {
                at_rest();
                (void) index_memory_free(memory);
                memory = index_memory_new();
                note(5, first ? 0x8011 : 0x0011, true);
                note(7, first ? 0x0011 : 0x8011, true);
                want(host, KEYS(0x0011, 0x8011, 0xffff));
                must_plan();
                ck_assert_uint_eq(final_at(host, 5), first ? 0x8011 : 0x0011);
                ck_assert_uint_eq(final_at(host, 7), first ? 0x0011 : 0x8011);
        }
        (void) index_memory_free(memory);
        memory = index_memory_new();
        note(5, 0x8011, true);
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x8011);
        ck_assert_uint_eq(final_at(host, 6), 0x0011);
        want(host, KEYS(0x0011, 0xffff)); /* one entry is enough, whichever it was */
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x0011);
}
END_TEST

/* In a full table a base goes back to the index that it had, and not to one that another base had longer ago. */
START_TEST(freed_index_of_its_own)
{
        at_rest();
        for (unsigned i = 1; i < f.subnet->nodes[f.subnet->ports[host].node].partition_cap; i++)
                note((uint16_t) i, (uint16_t) (0x8020 + i), false);
        want(host, KEYS(0x8025, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x8025);
        want(host, KEYS(0x8011, 0xffff)); /* it had none */
        must_plan();
        ck_assert_uint_eq(final_at(host, 1), 0x8011);
}
END_TEST

/* Index 0 is for its partition, whoever lost it, and also while that one stands elsewhere: when it is repaired it goes there. */
START_TEST(lost_index0_stays_free)
{
        at_rest();
        note(0, 0x8011, true);
        hold(host, KEYS(0));
        f.tables[host][1].v = 0xffff;
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0);
        ck_assert_uint_eq(final_at(host, 1), 0xffff);
        ck_assert_uint_eq(final_at(host, 2), 0x8011);
}
END_TEST

/* A table that became smaller (other firmware): what is remembered of indexes behind its end gives no place to anybody. */
START_TEST(remembered_behind_the_end)
{
        at_rest();
        hold(host, KEYS(0xffff, 0x8010, 0x8013));
        note(4, 0x8011, true);
        note(3, 0x8012, false);
        for (unsigned i = 0; i < 2; i++) {
                want(host, KEYS(0x8010, (uint16_t) (0x8011 + i), 0x8013, 0xffff));
                observed = fake_fabric_observe(&f, a);
                observed->tables[host].capacity = 4;
                ck_assert_int_eq(compute(), 0);
                ck_assert_uint_eq(final_at(host, 3), 0x8011 + i);
        }
}
END_TEST

static void note_open(uint16_t index, uint16_t base)
{
        const struct subnet_port *p = &f.subnet->ports[host];

        ck_assert_int_eq(index_memory_note_open(memory, f.subnet->nodes[p->node].guid, p->number, index, (struct p_key) {base}), 0);
}

/* A write that may have been carried out may have used an index: the base goes there again, others do not; but what certainly
 * was at an index, or where the base certainly was, counts more. */
START_TEST(index_of_an_open_write)
{
        at_rest();
        note_open(1, 0x8011);
        want(host, KEYS(0x8012, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 2), 0x8012);
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 1), 0x8011);
        note(5, 0x8013, true);
        note_open(7, 0x8013);
        note_open(5, 0x8014);
        want(host, KEYS(0x8013, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x8013);
        want(host, KEYS(0x8014, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 8), 0x8014);
}
END_TEST

/* ... also if that was the first thing ever to be remembered for certain. */
START_TEST(index_of_an_open_write_before_all_others)
{
        at_rest();
        note_open(7, 0x8013);
        note(5, 0x8013, true);
        want(host, KEYS(0x8013, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 5), 0x8013);
}
END_TEST

/* Of two guesses the later one counts, as it does after a restart. */
START_TEST(index_of_the_last_open_write)
{
        const struct freed_index *all;
        size_t n;

        at_rest();
        note_open(5, 0x8013);
        note_open(7, 0x8013);
        note_open(6, 0x8014);
        want(host, KEYS(0x8013, 0xffff));
        for (unsigned restarts = 0; restarts < 2; restarts++) {
                _cleanup_index_memory_ struct index_memory *before = memory;

                must_plan();
                ck_assert_uint_eq(final_at(host, 7), 0x8013);
                memory = index_memory_new();
                all = index_memory_all(before, &n);
                ck_assert_uint_eq(n, 3);
                for (size_t i = 0; i < n; i++)
                        ck_assert_int_eq(index_memory_restore(memory, &all[i]), 0);
        }
}
END_TEST

/* A full table: an index that is freed in a phase may be used in a later one only. */
START_TEST(freed_just_now)
{
        uint16_t keys[FAKE_CAPACITY + 2] = {0xffff};

        at_rest();
        for (unsigned i = 1; i < FAKE_CAPACITY; i++)
                keys[i] = (uint16_t) (0x8100 + i);
        hold(host, keys);
        for (unsigned i = 1; i < FAKE_CAPACITY; i++)
                keys[i - 1] = (uint16_t) (0x8101 + i);
        keys[FAKE_CAPACITY - 1] = 0xffff;
        want(host, keys);
        must_plan(); /* revoke, then grant */
        ck_assert_uint_eq(final_at(host, 1), 0x8140);
        /* at a switch port closing comes before opening, too, but a lower comes after it */
        keys[0] = 0xffff;
        for (unsigned i = 1; i < FAKE_CAPACITY; i++)
                keys[i] = (uint16_t) (0x8100 + i);
        keys[1] = 0x0102; /* 0x0102 beside 0x8102 */
        hold(leaf, keys);
        keys[0] = 0x0102;
        keys[1] = 0x8103;
        for (unsigned i = 2; i < FAKE_CAPACITY - 2; i++)
                keys[i] = (uint16_t) (0x8102 + i);
        keys[FAKE_CAPACITY - 2] = 0x8150;
        keys[FAKE_CAPACITY - 1] = 0xffff;
        want(leaf, keys);
        observed = NULL;
        ck_assert_int_eq(compute(), -EBADMSG);
        ck_assert(has_finding(FINDING_PLAN_CAPACITY_TRANSITION));
        /* that refuses nothing where such a port may stop to filter; its table is left alone */
        options.enforcement_overflow = OVERFLOW_DISABLE;
        must_plan();
        ck_assert(!has_finding(FINDING_PLAN_CAPACITY_TRANSITION));
        ck_assert(has_finding(FINDING_PLAN_ENFORCEMENT_OFF));
        ck_assert_ptr_null(plan->final_tables[leaf]);
}
END_TEST

/* ... but index 0 is for its partition, and for nobody else, also when it is all that is left. */
START_TEST(index0_freed_just_now)
{
        uint16_t keys[FAKE_CAPACITY + 1] = {};

        at_rest();
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                keys[i] = (uint16_t) (0x8101 + i);
        keys[1] = 0xffff;
        hold(host, keys);
        for (unsigned i = 2; i < FAKE_CAPACITY; i++)
                keys[i - 2] = keys[i];
        keys[FAKE_CAPACITY - 2] = 0x8150;
        keys[FAKE_CAPACITY - 1] = 0xffff;
        want(host, keys);
        observed = NULL;
        ck_assert_int_eq(compute(), -EBADMSG);
        ck_assert(has_finding(FINDING_PLAN_CAPACITY_TRANSITION));
}
END_TEST

/* Unused entries hold what they like. */
START_TEST(unused_entries)
{
        static const unsigned places[] = { 3, P_KEY_BLOCK_ENTRIES - 1, FAKE_CAPACITY - 1 };

        for (size_t i = 0; i < ELEMENTS(places); i++) {
                at_rest();
                f.tables[host][places[i]].v = 0x8000;
                must_plan();
                ck_assert(plan_is_empty(plan));
                ck_assert_uint_eq(final_at(host, places[i]), 0x8000);
        }
}
END_TEST

/* ... and take one write to be used, not one more that empties them first. */
START_TEST(new_entry_over_an_unused_one)
{
        at_rest();
        f.tables[host][1].v = 0x8000;
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 1), 0x8011);
        ck_assert_uint_eq(writes_in(PHASE_GRANT, host), 1);
        ck_assert_uint_eq(plan->n_block_writes, 1);
}
END_TEST

/* No partition belongs at index 0 of a switch port: what is not wanted there goes with all that is closed. */
START_TEST(nothing_is_repaired_at_a_switch_port)
{
        at_rest();
        hold(leaf, KEYS(0x8011, 0xffff));
        options.repair_index0 = true;
        must_plan();
        ck_assert_uint_eq(plan->steps[PHASE_REPAIR_SWAP].n_writes, 0);
        ck_assert_uint_eq(plan->steps[PHASE_CLOSE].n_writes, 1);
        ck_assert_uint_eq(final_at(leaf, 0), 0);
}
END_TEST

/* The default partition leaves index 1 for index 0: what is new does not get that index as long as there are others. */
START_TEST(index_left_by_a_repair)
{
        at_rest();
        options.repair_index0 = true;
        hold(host, KEYS(0x8010, 0xffff));
        want(host, KEYS(0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0xffff);
        ck_assert_uint_eq(final_at(host, 1), 0);
        ck_assert_uint_eq(final_at(host, 2), 0x8011);
}
END_TEST

/* Nor when the last index was used once, and no index is left behind it: while an unused one is left it goes there. */
START_TEST(index_left_by_a_repair_in_an_old_table)
{
        at_rest();
        options.repair_index0 = true;
        hold(host, KEYS(0x8010, 0xffff));
        f.tables[host][FAKE_CAPACITY - 1].v = 0x8020;
        want(host, KEYS(0x8010, 0x8020, 0x8030, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0xffff);
        ck_assert_uint_eq(final_at(host, 1), 0);
        ck_assert_uint_eq(final_at(host, 2), 0x8010);
        ck_assert_uint_eq(final_at(host, 3), 0x8030);
}
END_TEST

START_TEST(index_left_by_a_repair_of_a_full_table)
{
        uint16_t keys[FAKE_CAPACITY + 1] = { 0x8010, 0xffff };
        unsigned n = FAKE_CAPACITY;

        at_rest();
        options.repair_index0 = true;
        for (unsigned i = 2; i < n; i++)
                keys[i] = (uint16_t) (0x8101 + i);
        hold(host, keys);
        keys[0] = 0x8030;
        want(host, keys);
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0xffff);
        ck_assert_uint_eq(final_at(host, 1), 0x8030);
}
END_TEST

/* Wherever in the table it stands, the last index included. The old place is dropped in the MAD that writes index 0, or else in a
 * later phase: it must not go before index 0 has its entry. */
START_TEST(repair_from_any_index)
{
        for (uint16_t old = 1; old < FAKE_CAPACITY; old++) {
                at_rest();
                options.repair_index0 = true;
                hold(host, KEYS(0));
                want(host, KEYS(0xffff));
                f.tables[host][old].v = 0xffff;
                must_plan();
                ck_assert_uint_eq(final_at(host, 0), 0xffff);
                ck_assert_uint_eq(final_at(host, old), 0);
                ck_assert_uint_eq(writes_in(PHASE_REPAIR_SWAP, host), 1);
                ck_assert_uint_eq(writes_in(PHASE_REPAIR_DROP, host), old >= P_KEY_BLOCK_ENTRIES);
        }
}
END_TEST

/* No index is free for what stands at index 0, and all that is in the table is wanted: nothing of it makes room for the repair. */
START_TEST(repair_of_a_full_table)
{
        uint16_t keys[FAKE_CAPACITY + 1] = {};

        at_rest();
        options.repair_index0 = true;
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                keys[i] = (uint16_t) (0x8101 + i);
        keys[FAKE_CAPACITY - 1] = 0xffff;
        hold(host, keys);
        want(host, keys);
        must_plan();
        ck_assert_uint_eq(plan->n_block_writes, 0);
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                ck_assert_uint_eq(final_at(host, i), keys[i]);
        ck_assert(has_finding(FINDING_PLAN_INDEX0));
}
END_TEST

/* What a switch port cannot hold is no error where it is not to filter. */
START_TEST(no_room_where_nothing_filters)
{
        for (unsigned off = 0; off < 2; off++) {
                at_rest();
                bits(!off, !off);
                options.enforcement = off ? ENFORCEMENT_OFF : ENFORCEMENT_BOTH;
                want(host, KEYS(0x8010, 0x8011, 0xffff));
                want(leaf, KEYS(0x8010, 0x8011, 0xffff));
                observed = fake_fabric_observe(&f, a);
                observed->tables[leaf].capacity = 2;
                ck_assert_int_eq(compute(), off ? 0 : -EBADMSG);
        }
}
END_TEST

/* A host needs its entries, whatever the switch port beside it filters. */
START_TEST(no_room_at_an_endport)
{
        static const enum settings_enforcement settings[] = {ENFORCEMENT_OFF, ENFORCEMENT_IN, ENFORCEMENT_OUT, ENFORCEMENT_BOTH};

        for (size_t i = 0; i < 2 * ELEMENTS(settings); i++) {
                at_rest();
                options.enforcement = settings[i / 2];
                options.enforcement_overflow = i % 2 ? OVERFLOW_DISABLE : OVERFLOW_REFUSE;
                want(host, KEYS(0x8010, 0x8011, 0xffff));
                want(leaf, KEYS(0x8010, 0x8011, 0xffff));
                observed = fake_fabric_observe(&f, a);
                observed->tables[host].capacity = 2;
                ck_assert_int_eq(compute(), -EBADMSG);
                ck_assert(has_finding(FINDING_PLAN_CAPACITY));
        }
}
END_TEST

/* New entries by ascending base; as OpenSM has it, by the base in network byte order. */
START_TEST(order_of_new_entries)
{
        static const uint16_t ours[] = {0x8010, 0x8100, 0x0200}, theirs[] = {0x8100, 0x0200, 0x8010};

        for (unsigned opensm = 0; opensm < 2; opensm++) {
                at_rest();
                want(host, KEYS(0x8010, 0x8100, 0x0200, 0xffff));
                options.opensm_order = opensm;
                must_plan();
                for (unsigned i = 0; i < 3; i++)
                        ck_assert_uint_eq(final_at(host, 1 + i), opensm ? theirs[i] : ours[i]);
        }
}
END_TEST

/* Where index 0 is taken by an entry that is not pkeyd's, its partition is the first of those that are new. */
START_TEST(next_to_a_foreign_entry_at_index0)
{
        at_rest();
        options.unmanaged = UNMANAGED_KEEP;
        hold(host, KEYS(0x9234));
        want(host, KEYS(0x8010, 0x8011, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 1), 0xffff);
        ck_assert_uint_eq(final_at(host, 2), 0x8010);
        ck_assert_uint_eq(final_at(host, 3), 0x8011);
}
END_TEST

/* pkeyd does not manage the entry at index 0: it stays there, and pkeyd reports that. */
START_TEST(repair_of_a_foreign_entry)
{
        at_rest();
        options.repair_index0 = true;
        options.unmanaged = UNMANAGED_KEEP;
        hold(host, KEYS(0x9234, 0xffff));
        must_plan();
        ck_assert_uint_eq(final_at(host, 0), 0x9234);
        ck_assert_uint_eq(final_at(host, 1), 0xffff);
        ck_assert(has_finding(FINDING_PLAN_INDEX0));
        ck_assert_uint_eq(plan->n_block_writes, 0);
}
END_TEST

/* --- findings --- */

static uint64_t guid_of(unsigned i)
{
        return 0x1000 + 0x10 * i;
}

/* Hosts first, first + 1, ..., first + n - 1. */
static struct subnet *some_hosts(unsigned first, unsigned n)
{
        struct subnet_builder *b;
        struct subnet *subnet;

        ck_assert_int_eq(subnet_builder_new(a, &b), 0);
        for (unsigned i = first; i < first + n; i++) {
                struct subnet_node node = {
                                .guid = {guid_of(i)}, .type = NODE_CA, .num_ports = 1, .partition_cap = 32};
                struct subnet_port port = {.number = 1, .state = PORT_STATE_ACTIVE, .guid = {node.guid.v + 1}};

                ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &subnet), 0);
        return subnet;
}

static struct subnet *many_hosts(unsigned n)
{
        return some_hosts(0, n);
}

/* Fifty warnings of a kind, and then how many more there are. */
START_TEST(rest_of_a_kind)
{
        for (unsigned n = 50; n <= 60; n += n < 51 ? 1 : 9) {
                desired.subnet = many_hosts(n);
                desired.ports = arena_new_array(a, struct desired_port, n);
                ck_assert_int_eq(observed_new(a, desired.subnet, &observed), 0);
                for (uint32_t p = 0; p < n; p++) {
                        observed->tables[p].failure = MAD_REFUSED;
                        observed->tables[p].mad_status = 0x1c;
                }
                ck_assert_int_eq(compute(), 0);
                ck_assert_uint_eq(findings.n, n == 50 ? 50 : 51);
                ck_assert_ptr_nonnull(strstr(findings.items[49].text, "(status 0x001c: "));
                ck_assert_ptr_nonnull(strstr(findings.items[49].text, "left out of the plan"));
                if (n > 50)
                        ck_assert_str_eq(findings.items[50].text, n == 51 ? "... and 1 more port like this" :
                                                                            "... and 10 more ports like this");
        }
}
END_TEST

/* n hosts on one switch, whose port tables hold two entries. */
static struct subnet *many_links(unsigned n)
{
        struct subnet_node parent = {
                        .guid = {0x1000}, .type = NODE_SWITCH, .num_ports = (uint8_t) n, .partition_cap = 8,
                        .partition_enforcement_cap = 2, .inbound_enforcement_cap = true,
        };
        struct subnet_builder *b;
        struct subnet *subnet;

        ck_assert_int_eq(subnet_builder_new(a, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &parent, "leaf", 4), 0);
        for (unsigned i = 1; i <= n; i++) {
                struct subnet_node node = {
                                .guid = {0x2000 + 0x10 * i}, .type = NODE_CA, .num_ports = 1, .partition_cap = 32};
                struct subnet_port port = {.number = 1, .state = PORT_STATE_ACTIVE, .guid = {node.guid.v + 1}};

                ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
                port = (struct subnet_port) {.number = (uint8_t) i, .role = PORT_SWITCH_EXTERNAL, .guid = parent.guid};
                ck_assert_int_eq(subnet_builder_add_port(b, parent.guid, &port), 0);
                ck_assert_int_eq(subnet_builder_add_link(b, parent.guid, (uint8_t) i, node.guid, 1), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &subnet), 0);
        return subnet;
}

/* All ports of this role hold and want the same. */
static void all_ports(enum port_role role, const uint16_t *held, const uint16_t *wanted)
{
        for (uint32_t p = 0; p < desired.subnet->n_ports; p++) {
                if (desired.subnet->ports[p].role != role)
                        continue;
                want(p, wanted);
                observed->tables[p].source = TABLE_READ;
                for (unsigned i = 0; held[i]; i++)
                        observed->tables[p].entries[i].v = held[i];
        }
}

static void use(struct subnet *subnet)
{
        desired.subnet = subnet;
        desired.ports = arena_new_array(a, struct desired_port, subnet->n_ports);
        ck_assert_int_eq(observed_new(a, subnet, &observed), 0);
}

/* More writes in one phase than there is room for at first. */
START_TEST(many_writes)
{
        use(many_hosts(150));
        all_ports(PORT_ENDPORT, KEYS(0xffff), KEYS(0x8011, 0xffff));
        ck_assert_int_eq(compute(), 0);
        ck_assert_uint_eq(plan->steps[PHASE_GRANT].n_writes, 150);
        for (uint32_t i = 0; i < 150; i++) {
                ck_assert_uint_eq(plan->steps[PHASE_GRANT].writes[i].port, i);
                ck_assert_uint_eq(plan->steps[PHASE_GRANT].writes[i].after[1].v, 0x8011);
        }
}
END_TEST

static void expect_rest(enum finding_code code, unsigned most)
{
        const char *last = "";
        unsigned n = 0;

        for (size_t i = 0; i < findings.n; i++)
                if (findings.items[i].code == code) {
                        last = findings.items[i].text;
                        n++;
                }
        ck_assert_uint_eq(n, most + 1);
        ck_assert_str_eq(last, "... and 10 more ports like this");
}

START_TEST(rest_of_each_warning)
{
        options.unmanaged = UNMANAGED_KEEP;
        use(many_links(60));
        all_ports(PORT_ENDPORT, KEYS(0x8011, 0xffff, 0x9234), KEYS(0x8011, 0xffff));
        all_ports(PORT_SWITCH_EXTERNAL, KEYS(0xffff, 0x8011), KEYS(0x8011, 0xffff));
        ck_assert_int_eq(compute(), 0);
        expect_rest(FINDING_PLAN_INDEX0, 50);
        expect_rest(FINDING_PLAN_ENFORCEMENT_SKIPPED, 50);
        options.enforcement_overflow = OVERFLOW_DISABLE;
        all_ports(PORT_SWITCH_EXTERNAL, KEYS(0xffff, 0x8011), KEYS(0x8011, 0x8012, 0xffff));
        ck_assert_int_eq(compute(), 0);
        expect_rest(FINDING_PLAN_ENFORCEMENT_OFF, 50);
}
END_TEST

/* What refuses a policy is listed longer. */
START_TEST(rest_of_each_error)
{
        use(many_hosts(1010));
        for (uint32_t p = 0; p < desired.subnet->n_ports; p++)
                observed->tables[p].capacity = 3;
        all_ports(PORT_ENDPORT, KEYS(0x8011, 0x0011, 0x0012), KEYS(0x8011, 0x8012, 0x8013, 0x8014));
        ck_assert_int_eq(compute(), -EBADMSG);
        expect_rest(FINDING_PLAN_CAPACITY, 1000);
        /* one P_Key of a pair would have to go before the other of another pair comes */
        all_ports(PORT_ENDPORT, KEYS(0x8011, 0x0011, 0x0012), KEYS(0x0011, 0x0012, 0x8012));
        ck_assert_int_eq(compute(), -EBADMSG);
        expect_rest(FINDING_PLAN_CAPACITY_TRANSITION, 1000);
}
END_TEST

/* --- index memory --- */

static struct observed *read_tables(struct subnet *subnet)
{
        struct observed *o;

        ck_assert_int_eq(observed_new(a, subnet, &o), 0);
        for (uint32_t p = 0; p < subnet->n_ports; p++)
                o->tables[p].source = TABLE_READ;
        return o;
}

/* Of ports that are in both subnets, at whatever place. */
START_TEST(learned_of_another_subnet)
{
        for (unsigned i = 0; i < 2; i++) {
                struct observed *before = read_tables(i ? some_hosts(1, 1) : some_hosts(0, 2));
                struct observed *after = read_tables(i ? some_hosts(0, 2) : some_hosts(1, 1));
                const struct freed_index *freed;
                size_t n;

                before->tables[1 - i].entries[3].v = 0x8011; /* of host 1 */
                ck_assert_int_eq(index_memory_note_changes(memory, before, after, NULL), 0);
                freed = index_memory_get(memory, (struct guid) {guid_of(1)}, 1, &n);
                ck_assert_uint_eq(n, 1);
                ck_assert_uint_eq(freed->index, 3);
                (void) index_memory_all(memory, &n);
                ck_assert_uint_eq(n, 1);
                (void) index_memory_free(memory);
                memory = index_memory_new();
        }
}
END_TEST

/* Every member of a record is in the digest. */
/* ... and what the policy gives each of them is found at its place in the later one. */
START_TEST(learned_of_another_subnet_and_writer)
{
        for (unsigned i = 0; i < 2; i++) {
                struct observed *before = read_tables(i ? some_hosts(1, 1) : some_hosts(0, 2));
                struct observed *after = read_tables(i ? some_hosts(0, 2) : some_hosts(1, 1));
                struct p_key wanted = { 0x8011 };
                struct desired_port ports[2] = {};
                struct desired by_policy = { .subnet = after->subnet, .ports = ports };
                const struct freed_index *freed;
                size_t n;

                ports[i] = (struct desired_port) { &wanted, 1 }; /* host 1 */
                before->tables[1 - i].entries[3].v = 0x8011;
                before->tables[1 - i].entries[4].v = 0x8012;
                ck_assert_int_eq(index_memory_note_changes(memory, before, after, &by_policy), 0);
                freed = index_memory_all(memory, &n);
                ck_assert_uint_eq(n, 2);
                ck_assert(freed[0].index == 3 && freed[0].lost);
                ck_assert(freed[1].index == 4 && !freed[1].lost);
                (void) index_memory_free(memory);
                memory = index_memory_new();
        }
}
END_TEST

/* What is noted after a restart is younger than all that was restored. */
START_TEST(restored_memory)
{
        const struct subnet_port *p = &f.subnet->ports[host];
        const struct guid node = f.subnet->nodes[p->node].guid;
        const struct freed_index record = {
                        .node_guid = node, .port = p->number, .index = 9, .base = 0x11, .sequence = 70};
        const struct freed_index *all;
        size_t n;

        ck_assert_int_eq(index_memory_restore(memory, &record), 0);
        note(4, 0x8012, false);
        all = index_memory_get(memory, node, p->number, &n);
        ck_assert_uint_eq(n, 2);
        ck_assert_uint_eq(all[0].index, 9);
        ck_assert_uint_eq(all[1].index, 4);
        ck_assert_uint_eq(all[1].sequence, 71);
}
END_TEST

/* In whatever order a store gives its records. */
START_TEST(restored_memory_in_any_order)
{
        const struct guid node = f.subnet->nodes[f.subnet->ports[host].node].guid;
        const struct freed_index *all;
        size_t n;

        for (uint64_t sequence = 73; sequence > 70; sequence--) {
                struct freed_index record = {
                                .node_guid = node, .port = 1, .index = (uint16_t) (sequence - 60), .base = 0x11,
                                .sequence = sequence};

                ck_assert_int_eq(index_memory_restore(memory, &record), 0);
        }
        note(4, 0x8012, false);
        all = index_memory_get(memory, node, 1, &n);
        ck_assert_uint_eq(n, 4);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(all[i].sequence, 71 + i);
        ck_assert_uint_eq(all[3].index, 4);
}
END_TEST

/* A guess is of one port, says which entry it is of, and is to be stored like what is certain. */
START_TEST(open_writes_of_many_ports)
{
        const struct freed_index *freed;
        const struct index_port *unstored;
        size_t n;

        for (unsigned round = 0; round < 2; round++)
                for (uint64_t node = 3; node > 0; node--)
                        for (uint8_t port = 3; port > 0; port--)
                                ck_assert_int_eq(index_memory_note_open(memory, (struct guid) {node}, port, (uint16_t) (5 - round),
                                                                        (struct p_key) {round ? 0x8011 : 0x0011}),
                                                 0);
        for (uint64_t node = 1; node <= 3; node++)
                for (uint8_t port = 1; port <= 3; port++) {
                        freed = index_memory_get(memory, (struct guid) {node}, port, &n);
                        ck_assert_uint_eq(n, 2);
                        for (size_t i = 0; i < n; i++) {
                                ck_assert(freed[i].node_guid.v == node && freed[i].port == port);
                                ck_assert(freed[i].index == 5 - i && freed[i].base == 0x11);
                                ck_assert(freed[i].full == (i == 1) && freed[i].lost);
                        }
                }
        unstored = index_memory_unstored(memory, &n);
        ck_assert_uint_eq(n, 9);
        for (size_t i = 0; i < n; i++)
                ck_assert(unstored[i].node_guid.v == 1 + i / 3 && unstored[i].number == 1 + i % 3);
}
END_TEST

/* Each index once, as it was restored last; and a sequence after which there is none makes nothing old that is new. */
START_TEST(restored_memory_of_a_bad_store)
{
        const struct subnet_port *p = &f.subnet->ports[host];
        const struct guid node = f.subnet->nodes[p->node].guid;
        struct freed_index record = { .node_guid = node, .port = p->number, .index = 9, .base = 0x11, .sequence = 70 };
        const struct freed_index *all;
        size_t n;

        ck_assert_int_eq(index_memory_restore(memory, &record), 0);
        record.base = 0x12;
        record.sequence = 60;
        ck_assert_int_eq(index_memory_restore(memory, &record), 0);
        record.index = 10;
        record.sequence = UINT64_MAX;
        ck_assert_int_eq(index_memory_restore(memory, &record), 0);
        note(4, 0x8012, false);
        all = index_memory_get(memory, node, p->number, &n);
        ck_assert_uint_eq(n, 3);
        ck_assert_uint_eq(all[0].index, 9);
        ck_assert_uint_eq(all[0].base, 0x12);
        ck_assert_uint_eq(all[1].index, 4);
        ck_assert_uint_eq(all[2].index, 10);
}
END_TEST

/* Of both entries of its base one stays, and index 0 has the other: a repair keeps index 0 in use, and no level falls meanwhile. */
START_TEST(repair_keeps_index0)
{
        for (unsigned full = 0; full < 2; full++) {
                uint16_t stays = full ? 0xffff : 0x7fff, goes = full ? 0x7fff : 0xffff;

                at_rest();
                hold(host, KEYS(goes, 0x8011, stays));
                want(host, KEYS(0x8011, stays));
                options.repair_index0 = false;
                must_plan();
                ck_assert_uint_eq(final_at(host, 0), 0);
                ck_assert(has_finding(FINDING_PLAN_INDEX0));
                options.repair_index0 = true;
                must_plan();
                ck_assert_uint_eq(final_at(host, 0), stays);
                ck_assert_uint_eq(final_at(host, 2), 0);
                ck_assert(!has_finding(FINDING_PLAN_INDEX0));
                ck_assert_uint_eq(writes_in(PHASE_RAISE, host), full);
                ck_assert_uint_eq(writes_in(PHASE_REVOKE, host), !full);
                ck_assert_uint_eq(writes_in(PHASE_LOWER_ENDPORTS, host), 1);
                want(host, KEYS(0x8011, 0x7fff, 0xffff));
                must_plan();
                ck_assert(!is_written(host));
        }
}
END_TEST

/* An unused entry that held 0x8000 was nobody's. */
START_TEST(memory_of_an_unused_entry)
{
        size_t n;

        note(4, 0x8000, false);
        note(5, 0x8000, true);
        (void) index_memory_all(memory, &n);
        ck_assert_uint_eq(n, 0);
        (void) index_memory_unstored(memory, &n);
        ck_assert_uint_eq(n, 0);
}
END_TEST

/* A table of another size is another table: what differs went nowhere. */
START_TEST(learned_of_a_table_of_another_size)
{
        struct observed *before, *after;
        size_t n;

        at_rest();
        f.tables[host][3].v = f.tables[host][40].v = 0x8011;
        before = fake_fabric_observe(&f, a);
        f.tables[host][3].v = f.tables[host][40].v = 0;
        after = fake_fabric_observe(&f, a);
        before->tables[host].capacity = P_KEY_BLOCK_ENTRIES;
        ck_assert_int_eq(index_memory_note_changes(memory, before, after, NULL), 0);
        (void) index_memory_all(memory, &n);
        ck_assert_uint_eq(n, 0);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("rules of the planner");
        TCase *t = tcase_create("rules");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, bits_that_are_wanted);
        tcase_add_test(t, when_bits_change);
        tcase_add_test(t, bits_beside_foreign_entries);
        tcase_add_test(t, bits_beside_a_foreign_entry_at_any_index);
        tcase_add_test(t, bits_in_doubt);
        tcase_add_test(t, bits_of_an_unread_port);
        tcase_add_test(t, plan_of_an_assumed_table);
        tcase_add_test(t, phase_of_each_change);
        tcase_add_test(t, phases_have_names);
        tcase_add_test(t, phase_of_one_of_two);
        tcase_add_test(t, switch_port_covers_its_host);
        tcase_add_test(t, grant_by_the_switch);
        tcase_add_test(t, grant_by_a_switch_with_a_smaller_table);
        tcase_add_test(t, raise_by_the_switch);
        tcase_add_test(t, writes_follow_each_other);
        tcase_add_test(t, index0_of_a_switch_port);
        tcase_add_test(t, index0_of_a_partition);
        tcase_add_test(t, index0_is_not_for_the_second_entry);
        tcase_add_test(t, lost_index);
        tcase_add_test(t, lost_indexes_of_both);
        tcase_add_test(t, freed_index_of_its_own);
        tcase_add_test(t, lost_index0_stays_free);
        tcase_add_test(t, remembered_behind_the_end);
        tcase_add_test(t, index_of_an_open_write);
        tcase_add_test(t, index_of_an_open_write_before_all_others);
        tcase_add_test(t, index_of_the_last_open_write);
        tcase_add_test(t, freed_just_now);
        tcase_add_test(t, index0_freed_just_now);
        tcase_add_test(t, unused_entries);
        tcase_add_test(t, index_left_by_a_repair);
        tcase_add_test(t, index_left_by_a_repair_in_an_old_table);
        tcase_add_test(t, index_left_by_a_repair_of_a_full_table);
        tcase_add_test(t, repair_from_any_index);
        tcase_add_test(t, repair_of_a_full_table);
        tcase_add_test(t, no_room_where_nothing_filters);
        tcase_add_test(t, no_room_at_an_endport);
        tcase_add_test(t, new_entry_over_an_unused_one);
        tcase_add_test(t, nothing_is_repaired_at_a_switch_port);
        tcase_add_test(t, order_of_new_entries);
        tcase_add_test(t, next_to_a_foreign_entry_at_index0);
        tcase_add_test(t, repair_of_a_foreign_entry);
        tcase_add_test(t, rest_of_a_kind);
        tcase_add_test(t, many_writes);
        tcase_add_test(t, rest_of_each_warning);
        tcase_add_test(t, rest_of_each_error);
        tcase_add_test(t, learned_of_another_subnet);
        tcase_add_test(t, learned_of_another_subnet_and_writer);
        tcase_add_test(t, restored_memory);
        tcase_add_test(t, restored_memory_in_any_order);
        tcase_add_test(t, open_writes_of_many_ports);
        tcase_add_test(t, restored_memory_of_a_bad_store);
        tcase_add_test(t, repair_keeps_index0);
        tcase_add_test(t, memory_of_an_unused_entry);
        tcase_add_test(t, learned_of_a_table_of_another_size);
        suite_add_tcase(s, t);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
