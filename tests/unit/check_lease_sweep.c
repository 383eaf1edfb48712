/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sweep for leases must decide what a decision about the whole fabric would. Leases come, are renewed, released and end at
 * random, among reloads, foreign entries, lost answers and sweeps of the fabric; before the first MAD of each plan for leases the
 * plan for the whole fabric is computed, too, and compared: same phases, ports, blocks and entries.
 *
 * STEPS=N: so many random steps, SEED=N.
 */

#include <stdlib.h>

#include "control/control_internal.h"
#include "control_fixture.h"
#include "reconcile.h"
#include "../fabsim/prng.h"

#define S        USEC_PER_SEC
#define SETTINGS "beside_opensm: true\nsweep_interval: 10m\n"
#define HEAD     "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
#define POOLS                                                                                                          \
        "pools:\n  jobs:\n    pkeys: 0x1000-0x1007\n    ports: node[1-3],head1\n    lease: 1h\n    rest: 20s\n    index0: true\n    allow: [alice]\n"

static const char *const policies[] = {
        HEAD "      node1: full\n" POOLS,
        HEAD "      node1: full\n      node2: limited\n" POOLS,
        HEAD "      node[2-3]: both\n" POOLS,
};
static const char *const more_settings[] = {
        SETTINGS, SETTINGS "enforcement: off\n", SETTINGS "enforcement: in\n", SETTINGS "unmanaged: keep\n",
};

static struct prng rng;
static const char *const names[] = { "alice" };
static uint64_t n_requests;
static unsigned n_compared, n_plans_for_leases;
static bool is_compared; /* the plan of this sweep was */

/* --- the comparison --------------------------------------------------------------------------------------------------- */

static bool is_in_part(const struct lease_part *part, uint32_t port)
{
        return bsearch(&port, part->ports, part->n, sizeof(port), uint32_compare);
}

/* Writes of other ports, which could not be carried out earlier, are not for the leases. */
static void compare_step(const struct lease_part *part, const struct plan_step *step, const struct plan_step *whole)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < whole->n_writes; i++) {
                const struct plan_write *x, *y = &whole->writes[i];

                if (!is_in_part(part, y->port))
                        continue;
                ck_assert_msg(n < step->n_writes, "%s: a write is missing", plan_phase_to_string(step->phase));
                x = &step->writes[n++];
                ck_assert_uint_eq(part->ports[x->port], y->port);
                ck_assert_int_eq(x->kind, y->kind);
                ck_assert_uint_eq(x->block, y->block);
                ck_assert_mem_eq(x->before, y->before, sizeof(x->before));
                ck_assert_mem_eq(x->after, y->after, sizeof(x->after));
        }
        ck_assert_uint_eq(n, step->n_writes);
}

static void compare_desired(const struct desired *part, const struct desired *whole, const uint32_t *ports)
{
        for (uint32_t i = 0; i < part->subnet->n_ports; i++) {
                const struct desired_port *x = &part->ports[i], *y = &whole->ports[ports[i]];

                ck_assert_uint_eq(x->n_wanted, y->n_wanted);
                for (uint32_t k = 0; k < x->n_wanted; k++)
                        ck_assert_uint_eq(x->wanted[k].v, y->wanted[k].v);
        }
}

static void compare(void)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings ignored = { .arena = a };
        const struct sweep *s = &c->sweep;
        const struct policy *policy;
        struct reconciled whole;

        ck_assert_int_eq(leases_extend(a, c->leases, c->in_force->policy, &policy), 0);
        ck_assert_int_eq(reconcile(a, policy, c->snapshot->observed, c->indexes, &s->options, &ignored, &whole), 0);
        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                compare_step(&s->part, &s->decision.plan->steps[phase], &whole.plan->steps[phase]);
        compare_desired(s->decision.desired, whole.desired, s->part.ports);
        n_compared++;
}

static void see_request(const struct mad_request *request)
{
        (void) request;
        if (c->sweep.kind == SWEEP_LEASE && c->sweep.part.subnet && c->state == CONTROL_APPLYING && !is_compared) {
                is_compared = true;
                compare();
        }
}

/* What the policy gives each port, kept from sweep to sweep, is what the whole fabric would get. */
static void check_kept_policy(void)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings ignored = { .arena = a };
        const struct policy *policy;
        struct plan_options options;
        struct reconciled whole;

        if (!c->kept_policy.arena || leases_need_plan(c->leases))
                return;
        ck_assert_int_eq(leases_extend(a, c->leases, c->in_force->policy, &policy), 0);
        plan_options_from_settings(c->in_force->settings, &options);
        options.in_force = true;
        ck_assert_int_eq(reconcile(a, policy, c->snapshot->observed, c->indexes, &options, &ignored, &whole), 0);
        for (uint32_t i = 0; i < c->snapshot->subnet->n_ports; i++) {
                const struct knowledge_record *r =
                        knowledge_get(c->knowledge, knowledge_find_port(c->knowledge, c->snapshot->subnet, i));

                if (!r || !r->policy || r->policy->most)
                        continue;
                ck_assert_uint_eq(r->policy->n_wanted, (whole.given ?: whole.desired)->ports[i].n_wanted);
        }
}

/* --- random steps -------------------------------------------------------------------------------------------------------- */

static bool lose_some(const struct mad_request *request, struct fabsim_place at)
{
        (void) request;
        return at.node == hosts[2] && prng_permille(&rng, 400);
}

static void ask(enum lease_request_kind kind)
{
        static const char *const members[] = { "node1", "node2", "node3", "node[1-2]", "node[2-3]", "node[1-3]", "head1,node1" };
        static const char *const ids[] = { "a", "b", "c", "d", "e", "f", "open1", "open2" };
        struct control_event event = {
                .kind = CONTROL_EVENT_LEASE,
                .lease = {
                        .kind = kind, .id = ids[prng_below(&rng, ELEMENTS(ids))], .timeout = 5, .seconds = prng_below(&rng, 100),
                        .by = { .origin = { .kind = ORIGIN_BUS }, .names = names, .n_names = 1, .request = ++n_requests },
                        .wish = {
                                .pool = "jobs", .members = members[prng_below(&rng, ELEMENTS(members))],
                                .membership = (enum membership) prng_below(&rng, MEMBERSHIP_BOTH),
                                .seconds = prng_below(&rng, 200), .partial = prng_permille(&rng, 300),
                        },
                        .edit = {
                                .kind = (enum lease_edit_kind) prng_below(&rng, 3), .pool = "jobs",
                                .groups = { {
                                        .members = prng_permille(&rng, 100) ? "" : members[prng_below(&rng, ELEMENTS(members))],
                                        .membership = (enum membership) prng_below(&rng, MEMBERSHIP_BOTH),
                                        .index0 = prng_permille(&rng, 400),
                                } },
                                .n_groups = 1,
                        },
                },
        };

        ck_assert_int_eq(give(&event), 0);
}

static void live(usec_t until_then)
{
        for (unsigned n = 0; n < 100000; n++) {
                if (waits()) {
                        answer();
                } else if (control_due(c) <= until_then) {
                        is_compared = false;
                        wait_until_due();
                        n_plans_for_leases += c->sweep.kind == SWEEP_LEASE && c->state != CONTROL_IDLE;
                } else {
                        break;
                }
        }
        ck_assert(!waits());
        now = MAX(now, until_then);
}

static void step(void)
{
        unsigned what = prng_below(&rng, 100);

        if (what < 30)
                ask(LEASE_CREATE);
        else if (what < 45)
                ask(LEASE_EDIT);
        else if (what < 75)
                ask(LEASE_RELEASE);
        else if (what < 80)
                ask(LEASE_RENEW);
        else if (what < 83)
                put_key(hosts[prng_below(&rng, N_HOSTS)], 1 + prng_below(&rng, 20), (uint16_t) (0x8000 | prng_below(&rng, 0x1008)));
        else if (what < 85)
                lose = lose ? NULL : lose_some;
        else if (what < 88)
                (void) give_candidate(more_settings[prng_below(&rng, ELEMENTS(more_settings))],
                                      policies[prng_below(&rng, ELEMENTS(policies))], 0);
        forget_log();
        live(now + (prng_permille(&rng, 700) ? 0 : prng_below(&rng, 30) * S));
        check_kept_policy();
}

static unsigned number(const char *name, unsigned otherwise)
{
        const char *text = getenv(name);

        return text ? (unsigned) strtoul(text, NULL, 10) : otherwise;
}

START_TEST(equals_the_whole)
{
        unsigned n = number("STEPS", 1500);

        rng = (struct prng) { number("SEED", (unsigned) _i) };
        n_compared = n_plans_for_leases = 0;
        before_request = see_request;
        start(SETTINGS, policies[0]);
        sweep();
        for (unsigned i = 0; i < n; i++)
                step();
        ck_assert_msg(n_compared > n / 20, "%u plans were compared in %u steps", n_compared, n);
}
END_TEST

static bool lose_node2(const struct mad_request *request, struct fabsim_place at)
{
        (void) request;
        return at.node == hosts[1];
}

START_TEST(failed_writes_name_their_port)
{
        n_plans_for_leases = 0;
        start(SETTINGS, policies[0]);
        sweep();
        forget_log();
        lose = lose_node2;
        ck_assert_int_eq(give(&(struct control_event) {
                .kind = CONTROL_EVENT_LEASE,
                .lease = {
                        .kind = LEASE_CREATE, .id = "a", .timeout = 5,
                        .by = { .origin = { .kind = ORIGIN_BUS }, .names = names, .n_names = 1, .request = 1 },
                        .wish = { .pool = "jobs", .members = "node[2-3]", .partial = true },
                },
        }), 0);
        live(now);
        ck_assert_uint_eq(n_plans_for_leases, 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNREACHABLE), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), 1);
        ck_assert_str_eq(last_logged(LOG_EVENT_WRITE_FAILED)->node, "node2 mlx5_0/1");
        expect_logged(LOG_EVENT_APPLY_PARTIAL, ", 1 failed, ");
}
END_TEST

static void ask_for(enum lease_request_kind kind)
{
        struct control_event event = {
                .kind = CONTROL_EVENT_LEASE,
                .lease = {
                        .kind = kind, .id = "a", .timeout = 5,
                        .by = { .origin = { .kind = ORIGIN_BUS }, .names = names, .n_names = 1, .request = ++n_requests },
                        .wish = { .pool = "jobs", .members = "node2" },
                },
        };

        ck_assert_int_eq(give(&event), 0);
}

/* A host is silent while a lease ends: the entry that is left in its table is pkeyd's own. */
START_TEST(own_entries_are_no_drift)
{
        n_plans_for_leases = 0;
        start(SETTINGS, policies[0]);
        sweep();
        ask_for(LEASE_CREATE);
        live(now);
        lose = lose_node2;
        ask_for(LEASE_RELEASE);
        live(now);
        ck_assert_uint_eq(n_plans_for_leases, 2);
        lose = NULL;
        live(now + 60 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
        ck_assert_uint_eq(c->status.numbers.n_drifts, 0);
        ck_assert_uint_eq(c->status.ports.differ, 0);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("lease_sweep");
        TCase *t = tcase_create("lease_sweep"), *one = tcase_create("one sweep");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 3600);
        tcase_add_loop_test(t, equals_the_whole, 1, 5);
        suite_add_tcase(s, t);
        tcase_add_checked_fixture(one, setup, teardown);
        tcase_add_test(one, failed_writes_name_their_port);
        tcase_add_test(one, own_entries_are_no_drift);
        suite_add_tcase(s, one);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
