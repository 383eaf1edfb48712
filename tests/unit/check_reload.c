/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reloads: which requests are answered, when, and with what. */

#include "control_fixture.h"

#define S USEC_PER_SEC

static void serve(const char *policy)
{
        start("beside_opensm: true\nsweep_interval: 1h\n", policy);
        sweep();
        forget_log();
}

/* The sweep that is due. */
static void next_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        sweep();
}

static void reload(const char *policy, uint64_t request)
{
        ck_assert_int_eq(give_candidate("beside_opensm: true\nsweep_interval: 1h\n", policy, request), 0);
}

START_TEST(carried_out)
{
        serve(POLICY_1);
        reload(POLICY_2, 5);
        ck_assert(status()->reload_pending);
        ck_assert_uint_eq(control_due(c), 0);
        ck_assert_uint_eq(status()->in_force->number, 1); /* until the planner accepted it */
        until(CONTROL_APPLYING);
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 1); /* before the first write */
        sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.answered_generation, 2);
        ck_assert_uint_eq(noted.n_requests, 1);
        ck_assert_uint_eq(noted.requests[0], 5);
        ck_assert_str_eq(noted.answer, "generation 2: 9 ports verified");
        ck_assert_uint_eq(noted.stored_generation, 2);
        expect_logged(LOG_EVENT_GENERATION, "generation 2 is in force: 2 partitions, mode enforce");
        ck_assert(!status()->reload_pending);
}
END_TEST

/* Files that cannot be read are refused at once; what is in force stays. */
START_TEST(refused_at_once)
{
        serve(POLICY_1);
        reload(NULL, 6);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.answered_generation, 1);
        ck_assert_uint_eq(noted.requests[0], 6);
        ck_assert_uint_eq(noted.n_findings, 1);
        ck_assert_str_eq(noted.answer, "1 error; generation 1 stays in force");
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 1);
        ck_assert_uint_eq(status()->n_file_errors, 1);
        ck_assert_str_eq(status()->text,
                         "1 error; generation 1 stays in force (pkeyd refused the present files: 1 error)");
        ck_assert(!status()->reload_pending);
        wait_until_due();
        take(CONTROL_READ_LOCAL_TABLES); /* and no sweep */
}
END_TEST

/* A reload without a request: the answer goes to the service manager only. */
START_TEST(refused_for_nobody)
{
        serve(POLICY_1);
        reload(NULL, 0);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_uint_eq(noted.n_requests, 0);
}
END_TEST

/* A refusal answers only its own request; a reload that is pending continues. */
START_TEST(refused_while_another_waits)
{
        serve(POLICY_1);
        reload(POLICY_2, 1);
        reload(NULL, 2);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_uint_eq(noted.n_requests, 1);
        ck_assert_uint_eq(noted.requests[0], 2);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.requests[0], 1);
        ck_assert_uint_eq(status()->n_file_errors, 0);
}
END_TEST

/* The same files: the whole fabric is swept, and that is the answer. */
START_TEST(unchanged)
{
        serve(POLICY_1);
        reload(POLICY_1, 7);
        ck_assert_uint_eq(noted.n_answers, 0);
        expect_logged(LOG_EVENT_RELOAD_UNCHANGED, "both files are unchanged");
        ck_assert_uint_eq(control_due(c), 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_UNCHANGED);
        ck_assert_uint_eq(noted.answered_generation, 1);
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_uint_eq(noted.n_generations, 1);
}
END_TEST

/* The sweep that runs began before: it may have read what the admin has repaired since. */
START_TEST(unchanged_during_a_sweep)
{
        serve(POLICY_1);
        until(CONTROL_DISCOVERING);
        reload(POLICY_1, 7);
        sweep();
        ck_assert_uint_eq(noted.n_answers, 0);
        ck_assert(status()->reload_pending);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_UNCHANGED);
}
END_TEST

/* Files that were refused are corrected: the error count goes. */
START_TEST(unchanged_after_refused)
{
        serve(POLICY_1);
        reload(NULL, 0);
        reload(POLICY_1, 0);
        ck_assert_uint_eq(status()->n_file_errors, 0);
        ck_assert_ptr_null(strstr(status()->text, "refused"));
}
END_TEST

/* Both keys and settings belong to a generation. */
START_TEST(other_settings_are_another_generation)
{
        serve(POLICY_1);
        ck_assert_int_eq(give_candidate("sweep_interval: 1h\nwindow: 5\n", POLICY_1, 8), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(status()->in_force->settings->window, 5);
}
END_TEST

/* The last candidate counts; its end answers all requests. */
START_TEST(several_candidates)
{
        serve(POLICY_1);
        reload(POLICY_2, 1);
        reload(POLICY_3, 2);
        reload(POLICY_3, 3); /* as the candidate */
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_uint_eq(noted.n_requests, 3);
        ck_assert_uint_eq(noted.answered_generation, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(holds(hosts[2], 0x8010));
}
END_TEST

/* Back to what is in force: a candidate like any other. */
START_TEST(back_to_what_is_in_force)
{
        serve(POLICY_1);
        reload(POLICY_2, 1);
        reload(POLICY_1, 2);
        next_sweep();
        ck_assert_uint_eq(noted.n_requests, 2);
        ck_assert(!holds(hosts[1], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 2);
}
END_TEST

/* One that comes after the decision waits for the next sweep, one before is part of this. */
START_TEST(after_the_decision)
{
        serve(POLICY_1);
        reload(POLICY_2, 1);
        until(CONTROL_LOCKING);
        reload(POLICY_3, 2);
        answer(); /* the lock: now it decides */
        ck_assert_int_eq(state(), CONTROL_APPLYING);
        reload(POLICY_0, 3);
        sweep();
        ck_assert_uint_eq(noted.n_answers, 0); /* the next sweep is part of it */
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_uint_eq(noted.n_requests, 3);
        ck_assert(!holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 3);
}
END_TEST

/* While the port is down a reload is answered at once; it is carried out when the port is up again. */
START_TEST(while_the_port_is_down)
{
        serve(POLICY_1);
        reload(POLICY_2, 4);
        until(CONTROL_OPENING_PORT);
        take(CONTROL_OPEN_PORT);
        give_port(-ENETDOWN);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert_uint_eq(noted.answered_generation, 1);
        ck_assert(!status()->reload_pending);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

/* The same for files that are as they were. */
START_TEST(unchanged_while_the_port_is_down)
{
        serve(POLICY_1);
        reload(POLICY_1, 4);
        until(CONTROL_OPENING_PORT);
        take(CONTROL_OPEN_PORT);
        give_port(-ENETDOWN);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
}
END_TEST

START_TEST(sweep_failed)
{
        serve(POLICY_1);
        reload(POLICY_1, 4);
        until(CONTROL_DISCOVERING);
        take(CONTROL_RUN_STAGE);
        give_stage_end(-EIO);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
}
END_TEST

static bool lose_host(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == hosts[1] && request->method == MAD_SET;
}

START_TEST(carried_out_in_part)
{
        serve(POLICY_1);
        lose = lose_host;
        reload(POLICY_2, 4);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        ck_assert_uint_eq(noted.answered_generation, 2);
        ck_assert_uint_eq(status()->in_force->number, 2);
}
END_TEST

START_TEST(unchanged_in_part)
{
        serve(POLICY_1);
        lose = lose_host;
        put_key(hosts[1], 2, 0x8033);
        reload(POLICY_1, 4);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
}
END_TEST

/* A device hangs: the status is "partial" then, and so are the answers, whether files changed, are the same or are only audited. */
START_TEST(silent_link)
{
        serve(POLICY_1);
        f.nodes[hosts[2]].ports[1].mute = FABSIM_MUTE;
        reload(POLICY_1, 4);
        next_sweep();
        ck_assert_uint_eq(status()->ports.silent, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        reload(POLICY_2, 5);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        ck_assert_uint_eq(noted.answered_generation, 2);
        ck_assert_int_eq(give_candidate("mode: audit\nsweep_interval: 1h\n", POLICY_2, 6), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        f.nodes[hosts[2]].ports[1].mute = FABSIM_ANSWERS;
        reload(POLICY_2, 7);
        next_sweep();
        next_sweep(); /* the reload was carried out on the fabric as it was known */
        reload(POLICY_2, 8);
        next_sweep();
        ck_assert_uint_eq(noted.requests[0], 8);
        ck_assert_int_eq(noted.outcome, RELOAD_UNCHANGED);
}
END_TEST

#define POLICY_OF_NODE2 "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node2: full\n"
#define HOLD "sweep_interval: 1h\nabsent_hold: forever\n"

/* node1 is gone with its P_Key, so node2 does not get it. */
static void hold(const char *settings, uint64_t request)
{
        ck_assert_int_eq(give_candidate(settings, POLICY_OF_NODE2, request), 0);
        next_sweep();
        ck_assert(!holds(hosts[1], 0x8010));
        ck_assert_uint_eq(noted.n_answers, request);
        ck_assert_ptr_nonnull(strstr(noted.answer, "1 base held"));
}

static void lose_node1(void)
{
        start(HOLD, POLICY_1);
        sweep();
        fabsim_disconnect(&f, hosts[0], 1);
        next_sweep();
}

/* No sweep is sooner than without that. */
START_TEST(base_is_held)
{
        usec_t began;

        lose_node1();
        for (unsigned i = 0; i < 2; i++) { /* the second time both files are as they were */
                hold(HOLD, 1 + i);
                ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
                ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
                ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_PARTIAL], 1 + i);
        }
        began = now;
        until(CONTROL_OPENING_PORT);
        ck_assert_uint_gt(now - began, 3500 * S);
}
END_TEST

/* In audit mode nothing is written, so nothing waits. */
START_TEST(base_would_be_held)
{
        lose_node1();
        hold(HOLD AUDIT, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
}
END_TEST

/* The generation in force cannot be carried out either: the answer has the reasons. */
START_TEST(nothing_can_be_carried_out)
{
        start(ENFORCE, POLICY_REFUSED);
        sweep();
        ck_assert_int_eq(give_candidate(ENFORCE, POLICY_REFUSED, 3), 0);
        next_sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.answered_generation, 0);
        ck_assert_uint_eq(noted.n_findings, 1);
        ck_assert_uint_eq(noted.requests[0], 3);
}
END_TEST

/* Nothing is written then, so that the answer to a reload reports it, too. */
START_TEST(what_stands_beside_is_told)
{
        f.sm_runs = true;
        start("sweep_interval: 1h\n", POLICY_1);
        sweep();
        forget_log();
        ck_assert_int_eq(give_candidate("sweep_interval: 1h\n", POLICY_2, 1), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.n_findings, 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_BESIDE_SM), 1);
}
END_TEST

/* An answer has the findings of the planner, too. */
START_TEST(planners_findings_for_who_waits)
{
        serve(POLICY_1);
        reload("version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {nobody: full}\n", 1);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.n_findings, 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        /* and not for those after them */
        reload(POLICY_1, 2);
        next_sweep();
        ck_assert_uint_eq(noted.n_findings, 0);
}
END_TEST

/* No more than 32 requests wait; the next one is answered with that, and its policy is carried out nevertheless. */
START_TEST(too_many_callers)
{
        serve(POLICY_1);
        for (uint64_t i = 1; i <= 31; i++)
                reload(POLICY_2, i);
        reload(POLICY_2, 0);
        reload(POLICY_2, 0); /* of reloads without a request one is kept */
        ck_assert_uint_eq(noted.n_answers, 0);
        reload(POLICY_3, 99);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert_uint_eq(noted.requests[0], 99);
        ck_assert_str_eq(noted.answer, "too many callers already wait for a reload");
        ck_assert_uint_eq(noted.n_requests, 1);
}
END_TEST

/* Audit is in force as well, and stored as nothing. */
START_TEST(reload_to_audit)
{
        serve(POLICY_1);
        ck_assert_int_eq(give_candidate("mode: audit\nsweep_interval: 1h\n", POLICY_2, 1), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.answered_generation, 2);
        ck_assert_uint_eq(noted.stored_generation, 1);
        expect_logged(LOG_EVENT_GENERATION, "generation 2: 2 partitions, mode audit: pkeyd compares the tables with it, and writes nothing");
        ck_assert(!holds(hosts[1], 0x8010));
}
END_TEST

START_TEST(reload_to_follow_sm)
{
        serve(POLICY_1);
        ck_assert_int_eq(give_candidate(FOLLOW_SM, POLICY_1, 1), 0);
        until(CONTROL_TAKING_OVER);
        ck_assert_uint_eq(noted.n_answers, 0);
        sweep();
        next_sweep();
        expect_logged(LOG_EVENT_GENERATION, "mode enforce, role follow-sm");
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
}
END_TEST

/* Warnings about files that are accepted are logged, and are in the answer. */
START_TEST(warnings_of_the_files)
{
        _cleanup_findings_ struct findings loaded = {};
        struct control_event event = {
                .kind = CONTROL_EVENT_CANDIDATE, .candidate = { .findings = &loaded, .request = 5 },
        };

        serve(POLICY_1);
        event.candidate.generation = make_generation(ENFORCE, POLICY_2);
        loaded = (struct findings) { .arena = arena };
        ck_assert_ptr_nonnull(findings_add(&loaded, FINDING_WARNING, FINDING_YAML_EMPTY, NULL, "an odd file"));
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        expect_logged(LOG_EVENT_FINDING, "an odd file");
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.n_findings, 1 + 2); /* and what changes */
        ck_assert_uint_eq(count_logged(LOG_EVENT_REACH), 2);
        expect_logged(LOG_EVENT_REACH, "with ");
}
END_TEST

/* A generation keeps what it changes: who can talk to whom, or else the memberships. */
static void expect_changes(const char *policy, size_t n, const char *first, const char *last)
{
        const struct generation *g;

        reload(policy, 9);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        g = status()->in_force;
        ck_assert_uint_eq(g->facts.n_changes, n);
        ck_assert_str_eq(g->facts.changes[0], first);
        ck_assert_str_eq(g->facts.changes[n - 1], last);
}

/* A generation that is not written connects and disconnects nobody. */
START_TEST(audit_changes_nothing)
{
        start(AUDIT, POLICY_3);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_REACH), 0);
        ck_assert_uint_eq(status()->in_force->facts.n_changes, 0);
        ck_assert_int_eq(give_candidate(ENFORCE, POLICY_3, 9), 0);
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_REACH), 2);
        ck_assert_uint_eq(status()->in_force->facts.n_changes, 2);
}
END_TEST

START_TEST(standby_changes_nothing)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start("role: follow-sm\n", POLICY_3);
        sweep();
        ck_assert(status()->standby);
        ck_assert_uint_eq(count_logged(LOG_EVENT_REACH), 0);
        ck_assert_uint_eq(status()->in_force->facts.n_changes, 0);
}
END_TEST

START_TEST(what_changes_is_kept)
{
        static const char none[] = "who can talk to whom does not change";

        serve(POLICY_1);
        expect_changes(POLICY_3, 2, "who can talk to whom: 0 pairs of ports lost, 3 gained; nothing else changes",
                       "node[2-3]: now with each other and node1 (p)");
        expect_changes(POLICY_3 "  q:\n    pkey: 0x0011\n    members: {node1: limited, node2: full}\n", 3, none, "q: 1 port gained it (limited)");
        ck_assert_uint_eq(noted.n_findings, 0);
        expect_changes(POLICY_3 "  q:\n    pkey: 0x0011\n    members: {node1: full, node2: full}\n", 2, none,
                       "q: 1 port changed (limited to full)");
        expect_changes(POLICY_3, 2, none, "q: 2 ports lost it (full)");
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        carried_out,
                        what_changes_is_kept,
                        audit_changes_nothing,
                        standby_changes_nothing,
                        refused_at_once,
                        refused_for_nobody,
                        refused_while_another_waits,
                        unchanged,
                        unchanged_during_a_sweep,
                        unchanged_after_refused,
                        other_settings_are_another_generation,
                        several_candidates,
                        back_to_what_is_in_force,
                        after_the_decision,
                        while_the_port_is_down,
                        unchanged_while_the_port_is_down,
                        sweep_failed,
                        carried_out_in_part,
                        unchanged_in_part,
                        silent_link,
                        base_is_held,
                        base_would_be_held,
                        nothing_can_be_carried_out,
                        what_stands_beside_is_told,
                        planners_findings_for_who_waits,
                        too_many_callers,
                        reload_to_audit,
                        reload_to_follow_sm,
                        warnings_of_the_files,
        };

        return run_suite("reload", tests, ELEMENTS(tests));
}
