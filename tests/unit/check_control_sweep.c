/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a sweep does: what it reads, decides and reports, for each goal and each problem. */

#include "control/control_internal.h"
#include "control_fixture.h"
#include "discovery/links.h"
#include "verify/verify.h"

#define S USEC_PER_SEC

static unsigned lost_node, lost_attribute;

static bool lose_node(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == lost_node && (lost_attribute == 0 || request->attribute == lost_attribute);
}

static bool lose_sets(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == lost_node && request->method == MAD_SET;
}

static void lose_tables_of(unsigned node)
{
        lost_node = node;
        lost_attribute = SMP_ATTR_P_KEY_TABLE;
        lose = lose_node;
}

static void begin(enum control_goal goal, const char *policy, bool choose, bool confirm)
{
        const struct control_config config = {
                        .goal = goal,
                        .program = "pkeyctl 1",
                        .findings = &findings,
                        .choose_tables = choose,
                        .confirm = confirm,
        };

        c = control_new(&config);
        start_with(goal, ENFORCE, policy, NULL);
}

/* --- a full sweep and those between --- */

START_TEST(interval)
{
        start("sweep_interval: 40s\n", POLICY_1);
        sweep();
        forget_log();
        until(CONTROL_OPENING_PORT);
        ck_assert_uint_ge(now, 1040 * S);
        ck_assert_uint_lt(now, 1041 * S);
        n_sets = 0;
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(n_logged, count_logged(LOG_EVENT_KERNEL_VERIFIED)); /* nothing is new in the fabric */
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_DONE], 2);
}
END_TEST

/* A new policy is written to the known fabric at once; a sweep of the whole fabric follows five seconds later. */
START_TEST(reload_of_a_known_fabric)
{
        start(ENFORCE, POLICY_1);
        sweep();
        now += 10 * S;
        give_candidate(ENFORCE, POLICY_2, 1);
        wait_until_due();
        take(CONTROL_OPEN_PORT);
        give_port(0);
        ck_assert_int_eq(state(), CONTROL_LOCKING);
        sweep();
        ck_assert(holds(hosts[1], 0x8010));
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        now += 4 * S;
        give_kind(CONTROL_EVENT_DUE);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        until(CONTROL_DISCOVERING);
        ck_assert_uint_eq(now, 1015 * S);
}
END_TEST

/* That sweep follows the one that carried out the last policy, not the one that was stopped for it. */
START_TEST(look_after_a_stopped_apply)
{
        usec_t ended;

        start(ENFORCE, POLICY_1);
        sweep();
        now += 10 * S;
        give_candidate(ENFORCE, POLICY_2, 1);
        until(CONTROL_APPLYING);
        give_candidate(ENFORCE, POLICY_3, 2);
        answer();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        until(CONTROL_APPLYING);
        now += 3 * S;
        sweep();
        ended = now;
        ck_assert(holds(hosts[2], 0x8010));
        until(CONTROL_DISCOVERING);
        ck_assert_uint_eq(now, ended + 5 * S);
}
END_TEST

/* A sweep that waits for ports which do not answer is not waited for. */
static void interrupt(enum control_state in)
{
        start("sweep_interval: 40s\n", POLICY_1);
        sweep();
        until(in);
        n_sets = 0;
        give_candidate("sweep_interval: 40s\n", POLICY_2, 1);
        ck_assert_uint_eq(noted.n_abandoned, 1);
        answer();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        ck_assert(!holds(hosts[1], 0x8010));
        wait_until_due();
        take(CONTROL_OPEN_PORT);
        give_port(0);
        ck_assert_int_eq(state(), CONTROL_LOCKING);
        sweep();
        ck_assert(holds(hosts[1], 0x8010));
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.n_answers, 1);
}

START_TEST(reload_interrupts_discovery)
{
        interrupt(CONTROL_DISCOVERING);
}
END_TEST

START_TEST(reload_interrupts_a_survey)
{
        interrupt(CONTROL_SURVEYING);
}
END_TEST

#define EVERY_40S "sweep_interval: 40s\n"

/* One port in virtual time: what answers does so at once. The engine lives on between sweeps, as in a shell. */
static struct mad_dispatcher *port;

static void open_port(void)
{
        const struct mad_engine_config config = { .window = 128, .timeout = 500 * USEC_PER_MSEC, .tid_key = 1 };
        const struct mad_gate gate = control_gate(c);

        ck_assert_int_eq(mad_dispatcher_new(&config, &port), 0);
        mad_dispatcher_set_gate(port, &gate);
}

static void carry(const struct mad_frame *frame)
{
        struct mad_frame response;
        struct mad_request request;
        struct fabsim_place at;
        unsigned hops;

        mad_frame_decode(frame, &request);
        n_sets += request.method == MAD_SET;
        if (fabsim_route(&f, frame, &at, &hops) && !lose(&request, at) && fabsim_answer(&f, now, at, frame, &response))
                mad_dispatcher_receive(port, now, &response);
}

/* Runs the stage that waits until it ends, or not longer than `end`. */
static void run_until(usec_t end)
{
        struct mad_frame frame;
        int r;

        if (!mad_dispatcher_is_running(port))
                mad_dispatcher_start(port, stage_to_run());
        for (;;) {
                while (mad_dispatcher_next_send(port, now, &frame))
                        carry(&frame);
                if (mad_dispatcher_take_end(port, &r)) {
                        ck_assert_int_eq(r, 0);
                        take(CONTROL_RUN_STAGE);
                        give_stage_end(0);
                        return;
                }
                if (mad_dispatcher_due(port) > end)
                        break;
                now = MAX(now, mad_dispatcher_due(port));
        }
        now = end;
}

/* What happens from now to `end`, with stages that it may end in the middle of. */
static void live_in_stages_until(usec_t end)
{
        while (now < end) {
                if (stage_to_run()) {
                        run_until(end);
                } else if (waits()) {
                        answer();
                } else {
                        now = MAX(now, MIN(end, control_due(c)));
                        give_kind(CONTROL_EVENT_DUE);
                }
        }
}

/* Returns how long it takes until it is carried out. */
static usec_t edit(const char *policy, uint64_t serial)
{
        usec_t began = now;
        int r;

        give_candidate(EVERY_40S, policy, serial);
        while (noted.n_answers < serial) {
                if (mad_dispatcher_is_running(port) && !stage_to_run()) {
                        mad_dispatcher_abandon(port, now);
                        ck_assert(mad_dispatcher_take_end(port, &r));
                        answer();
                } else if (stage_to_run() && control_due(c) > now) {
                        run_until(control_due(c));
                } else if (!stage_to_run() && waits()) {
                        answer();
                } else {
                        give_kind(CONTROL_EVENT_DUE);
                }
        }
        return now - began;
}

/* A host is mute; files are edited again and again, which is about others. No edit waits for a sweep, but for a moment where no
 * pause is as long as a sweep takes; and no sweep starves. */
static void edit_every(usec_t gap, unsigned attribute)
{
        usec_t swept, took, slowest = 0;
        const struct snapshot *last;
        unsigned n_sweeps = 0;
        uint64_t serial = 0;

        start(EVERY_40S, POLICY_1);
        sweep();
        open_port();
        lost_node = hosts[2];
        lost_attribute = attribute;
        lose = lose_node;
        swept = now;
        last = status()->snapshot;
        for (usec_t end = now + 400 * S; now < end;) {
                live_in_stages_until(now + gap);
                took = edit(serial % 2 == 0 ? POLICY_2 : POLICY_1, serial + 1);
                slowest = MAX(slowest, took);
                serial++;
                if (status()->snapshot != last) {
                        n_sweeps++;
                        swept = now;
                }
                last = status()->snapshot;
                ck_assert_uint_le(now, swept + 3 * 40 * S);
                ck_assert(holds(hosts[1], 0x8010) == (serial % 2 == 1));
                forget_log();
        }
        ck_assert_uint_ge(n_sweeps, 4);
        ck_assert_uint_gt(noted.n_abandoned, 0);
        ck_assert_uint_le(slowest, gap < 1500 * USEC_PER_MSEC ? 3 * S : 0);
        port = mad_dispatcher_free(port);
}

static void edit_at_any_pace(unsigned attribute)
{
        static const usec_t gaps[] = {300, 600, 1000, 3000, 5100, 8000, 11000};

        for (size_t i = 0; i < ELEMENTS(gaps); i++) {
                edit_every(gaps[i] * USEC_PER_MSEC, attribute);
                teardown();
                setup();
        }
}

START_TEST(edits_beside_a_mute_host)
{
        edit_at_any_pace(0);
}
END_TEST

START_TEST(edits_beside_an_unreadable_host)
{
        edit_at_any_pace(SMP_ATTR_P_KEY_TABLE);
}
END_TEST

/* Without a snapshot there is nothing to write by, and the files as they were refused change nothing. */
START_TEST(sweep_that_is_not_interrupted)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_DISCOVERING);
        give_candidate(ENFORCE, POLICY_2, 1);
        until(CONTROL_SURVEYING);
        give_candidate(ENFORCE, POLICY_3, 2);
        sweep();
        ck_assert(holds(hosts[2], 0x8010));
        until(CONTROL_DISCOVERING);
        give_candidate(ENFORCE, NULL, 3);
        ck_assert_uint_eq(noted.n_abandoned, 0);
}
END_TEST

/* The snapshot is dropped if it is of another port. */
START_TEST(reload_with_another_port)
{
        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate("port: 1\n", POLICY_2, 1);
        wait_until_due();
        ck_assert_uint_eq(take(CONTROL_OPEN_PORT)->settings->port, 1);
        give_port(0);
        ck_assert_int_eq(state(), CONTROL_QUERYING_PORT);
        sweep();
        ck_assert_uint_eq(status()->in_force->settings->port, 1);
}
END_TEST

/* A sweep through one port decides nothing for another: what is wanted there has to wait for the next one. */
START_TEST(candidate_for_another_port)
{
        start(ENFORCE, POLICY_1);
        sweep();
        until(CONTROL_DISCOVERING);
        give_candidate("port: 1\n", POLICY_2, 3);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert(!holds(hosts[1], 0x8010));
        ck_assert_uint_eq(noted.n_answers, 0);
        wait_until_due();
        ck_assert_uint_eq(take(CONTROL_OPEN_PORT)->settings->port, 1);
        give_port(0);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
}
END_TEST

/* Nor does the policy in force decide for the fabric at the port of a candidate that was refused. */
START_TEST(refused_candidate_for_another_port)
{
        start(ENFORCE, POLICY_1);
        sweep();
        put_key(hosts[0], 1, 0);
        give_candidate("port: 1\n", POLICY_REFUSED, 3);
        wait_until_due();
        ck_assert_uint_eq(take(CONTROL_OPEN_PORT)->settings->port, 1);
        n_sets = 0;
        give_port(0);
        until(CONTROL_IDLE);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(n_sets, 0);
        wait_until_due();
        ck_assert_uint_eq(take(CONTROL_OPEN_PORT)->settings->port, 0);
        give_port(0);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* The shell found another port than before: the whole fabric again. */
START_TEST(another_guid)
{
        struct guid other = {0xabc};
        struct control_event event = {.kind = CONTROL_EVENT_PORT, .port = {.guid = other, .name = "mlx5_1 port 1"}};

        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate(ENFORCE, POLICY_2, 1);
        wait_until_due();
        take(CONTROL_OPEN_PORT);
        give(&event);
        ck_assert_int_eq(state(), CONTROL_QUERYING_PORT);
        ck_assert_ptr_null(status()->snapshot);
}
END_TEST

/* --- OpenSM's file of links --- */

static uint64_t key_of(unsigned node)
{
        return 0x100 + node;
}

/* Each port has an M_Key of its own, without which it does not answer. */
static void protect_ports(void)
{
        for (unsigned n = 0; n < f.n_nodes; n++) {
                struct fabsim_port *p = n == leaf ? &f.nodes[n].ports[0] : port_of(n);

                p->m_key = key_of(n);
                p->m_key_protection = 2;
        }
}

/* A generation that knows the M_Keys, and has such a file. */
static struct generation *make_generation_with(const char *policy, const char *neighbors)
{
        struct generation *g = make_generation(ENFORCE, policy);
        const char *text = "";

        for (unsigned n = 0; n < f.n_nodes; n++)
                text = arena_printf(g->arena, "%s0x%" PRIx64 " 0x%" PRIx64 "\n", text,
                                    n == leaf ? f.nodes[n].guid.v : port_of(n)->guid.v, key_of(n));
        ck_assert_int_eq(m_keys_parse("guid2mkey", text, strlen(text), &findings, &g->m_keys), 0);
        g->neighbors = neighbors;
        g->n_neighbors = strlen(neighbors);
        return g;
}

/* As OpenSM writes the link of a leaf's port, from the leaf's end. */
static char *line_of(unsigned number, unsigned node)
{
        return arena_printf(arena, "0x%" PRIx64 ":%u 0x%" PRIx64 ":1\n\n", f.nodes[leaf].guid.v, number,
                            port_of(node)->guid.v);
}

static char *lines_of_all(void)
{
        return arena_printf(arena, "0x%" PRIx64 ":1 0x%" PRIx64 ":1\n%s%s%s", port_of(head)->guid.v,
                            f.nodes[leaf].guid.v, line_of(2, hosts[0]), line_of(3, hosts[1]), line_of(4, hosts[2]));
}

static unsigned n_wrong_keys(void)
{
        unsigned sum = 0;

        for (unsigned n = 0; n < f.n_nodes; n++)
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        sum += f.nodes[n].ports[p].m_key_violations;
        return sum;
}

/* The first NodeInfo over each link carries the M_Key of the port that the file names: nothing counts a wrong one. */
START_TEST(first_discovery_expects_the_ports_of_the_file)
{
        protect_ports();
        start_generation(CONTROL_SERVE, make_generation_with(POLICY_3, lines_of_all()), NULL);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(status()->snapshot->subnet->n_nodes, 5);
        ck_assert_uint_eq(n_wrong_keys(), 0);
        ck_assert(holds(hosts[2], 0x8010));
        ck_assert_ptr_null(status()->in_force->neighbors);
}
END_TEST

/* Without the file they are sent another port's key. */
START_TEST(first_discovery_without_the_file)
{
        protect_ports();
        start_generation(CONTROL_SERVE, make_generation_with(POLICY_0, ""), NULL);
        sweep();
        ck_assert_uint_gt(n_wrong_keys(), 0);
}
END_TEST

/* Once for each generation: later changes of the file count for the next generation. */
START_TEST(file_is_taken_once)
{
        char *text = lines_of_all(), *later = strstr(text, line_of(4, hosts[2]));

        ck_assert_ptr_nonnull(later);
        protect_ports();
        fabsim_disconnect(&f, hosts[2], 1);
        memset(later, '\n', strlen(later));
        start_generation(CONTROL_SERVE, make_generation_with(POLICY_0, text), NULL);
        sweep();
        ck_assert_uint_eq(n_wrong_keys(), 0);
        ck_assert_uint_eq(status()->snapshot->subnet->n_nodes, 4);
        memcpy(later, line_of(4, hosts[2]), strlen(later));
        fabsim_connect(&f, hosts[2], 1, leaf, 4);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_uint_eq(status()->snapshot->subnet->n_nodes, 4);
        ck_assert_uint_eq(n_wrong_keys(), 1);
        give_generation(make_generation_with(POLICY_1, lines_of_all()), 1);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_uint_eq(status()->snapshot->subnet->n_nodes, 5);
        ck_assert_uint_eq(n_wrong_keys(), 1);
}
END_TEST

/* What is wrong with the file makes the M_Keys worse guesses, and nothing else. */
START_TEST(file_that_is_broken)
{
        static const struct {
                const char *text;
                size_t n_more;
        } cases[] = {
                        {"0x1:1", 0},
                        {"garbage\n\xff\xff 0x:0\n0x1:1 0x", 0},
                        {"", (size_t) DISCOVERY_MAX_NEIGHBORS_SIZE + 1}, /* none of it is read */
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct generation *g = make_generation_with(POLICY_3, cases[i].text);

                g->n_neighbors += cases[i].n_more;
                start_generation(CONTROL_SERVE, g, NULL);
                sweep();
                ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                ck_assert_uint_eq(status()->snapshot->subnet->n_nodes, 5);
                ck_assert(holds(hosts[2], 0x8010));
                ck_assert_ptr_null(status()->in_force->neighbors);
                teardown();
                setup();
        }
}
END_TEST

/* --- ports that do not answer --- */

/* It is read again alone, after 5, 10, 20 s, and brings what was held back. */
START_TEST(port_that_does_not_answer)
{
        lose_tables_of(hosts[0]);
        start(ENFORCE, POLICY_2);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert_uint_eq(status()->ports.unreachable, 1);
        ck_assert_uint_eq(status()->ports.managed, 9);
        ck_assert_uint_eq(status()->numbers.last_success, 0);
        ck_assert_uint_ne(status()->numbers.last_sweep, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNREACHABLE), 1);
        for (unsigned i = 0; i < 3; i++) {
                usec_t began = now;

                until(CONTROL_OPENING_PORT);
                ck_assert_uint_eq(now - began, (5 << i) * S);
                answer();
                ck_assert_int_eq(state(), CONTROL_SURVEYING);
                n_gets = 0;
                if (i == 2)
                        lose = NULL;
                answer();
                ck_assert_uint_eq(n_gets, i == 2 ? 3 : 1); /* blocks, and NodeInfo */
                sweep();
        }
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(status()->ports.unreachable, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNREACHABLE), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_READABLE), 1);
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010));
}
END_TEST

static void swap_lids(unsigned x, unsigned y)
{
        struct lid lid = port_of(x)->lid;

        port_of(x)->lid = port_of(y)->lid;
        port_of(y)->lid = lid;
}

/* What a survey sends more than the blocks that it reads. */
static unsigned n_names_asked(void)
{
        unsigned n_blocks = 0;

        until(CONTROL_SURVEYING);
        n_gets = 0;
        answer();
        for (uint32_t i = 0; i < control_get_results(c)->subnet->n_ports; i++)
                n_blocks += observed_table_blocks(&control_get_results(c)->observed->tables[i]);
        ck_assert_uint_ge(n_gets, n_blocks);
        return n_gets - n_blocks;
}

/* Who answers is asked where a table says something new: of all at first, of one host after another program wrote there, else of
 * nobody but this host's own port, which is read by a directed route. */
START_TEST(names_are_asked_when_tables_change)
{
        start("sweep_interval: 40s\n", POLICY_2);
        ck_assert_uint_eq(n_names_asked(), 1 + 1 + 3);
        sweep();
        ck_assert_uint_eq(n_names_asked(), 1);
        sweep();
        put_key(hosts[2], 5, 0x8055);
        ck_assert_uint_eq(n_names_asked(), 1 + 1);
        sweep();
        ck_assert(!holds(hosts[2], 0x8055));
        ck_assert_uint_eq(n_names_asked(), 1);
}
END_TEST

/* The SM gave LIDs anew while others were discovered. No table is another port's, and none is written like that. */
START_TEST(lids_move_during_a_discovery)
{
        for (unsigned first = 0; first < 2; first++) {
                start("sweep_interval: 40s\n", POLICY_1);
                if (!first)
                        sweep();
                put_key(hosts[2], 5, 0x8055);
                until(CONTROL_SURVEYING);
                n_sets = 0;
                swap_lids(hosts[0], hosts[2]);
                answer();
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
                ck_assert_uint_eq(control_due(c), 0);
                ck_assert_uint_eq(n_sets, 0);
                until(CONTROL_DISCOVERING);
                sweep();
                ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                ck_assert(!holds(hosts[2], 0x8055));
                teardown();
                setup();
        }
}
END_TEST

/* A LID that leads to another port whenever it is used: that port is not read, and the others are swept as ever. */
START_TEST(lids_move_during_every_discovery)
{
        start("sweep_interval: 40s\n", POLICY_3);
        for (unsigned i = 0; i < 2; i++) {
                until(CONTROL_SURVEYING);
                swap_lids(hosts[0], hosts[1]);
                answer();
                ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        }
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert_uint_eq(status()->ports.unreachable, 2);
        ck_assert(!holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
        until(CONTROL_SURVEYING); /* they are tried again, and then the fabric is discovered */
        answer();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 2);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* The same for a program with one sweep. */
START_TEST(lids_move_during_the_only_discovery)
{
        const struct observed *seen;
        const struct subnet *s;

        begin(CONTROL_READ, POLICY_1, false, false);
        until(CONTROL_SURVEYING);
        swap_lids(hosts[0], hosts[1]);
        sweep();
        ck_assert(noted.exited && noted.exit_r == 0);
        seen = control_get_results(c)->observed;
        s = control_get_results(c)->subnet;
        for (unsigned i = 0; i < N_HOSTS; i++)
                ck_assert_int_eq(seen->tables[subnet_find_endport(s, port_of(hosts[i])->guid)].source == TABLE_READ, i >= 2);
}
END_TEST

/* The SM reassigned LIDs since the discovery: answers of other nodes are not used, and the fabric is discovered again. */
START_TEST(lids_move_before_a_retry)
{
        lose_tables_of(hosts[0]);
        start(ENFORCE, POLICY_2);
        sweep();
        lose = NULL;
        put_key(hosts[2], 5, 0x8055);
        swap_lids(hosts[0], hosts[2]);
        until(CONTROL_SURVEYING);
        n_gets = n_sets = 0;
        answer();
        ck_assert_uint_eq(n_gets, 3);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_READABLE), 0);
        ck_assert_uint_eq(control_due(c), 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010) && !holds(hosts[2], 0x8055));
}
END_TEST

/* A person confirmed writes to ports that have other LIDs by now: the fabric is discovered again. */
START_TEST(lids_move_while_a_person_thinks)
{
        begin(CONTROL_APPLY, POLICY_2, false, true);
        until(CONTROL_CONFIRMING);
        swap_lids(hosts[0], hosts[2]);
        sweep();
        ck_assert_int_eq(control_get_results(c)->r, 0);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010));
}
END_TEST

/* LIDs move while pkeyd writes: no further port is written, and the fabric is discovered again. */
START_TEST(lids_move_during_an_apply)
{
        put_key(hosts[0], 1, 0x8055); /* a revoke, and then grants */
        start(ENFORCE, POLICY_3);
        until(CONTROL_APPLYING);
        swap_lids(hosts[0], hosts[2]);
        until(CONTROL_IDLE);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        ck_assert_uint_eq(control_due(c), 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[0], 0x8055) && holds(hosts[0], 0x8010) && holds(hosts[2], 0x8010));
}
END_TEST

static struct mad_request last_filter;

static void note_filter(const struct mad_request *request)
{
        if (request->method == MAD_SET && request->attribute == SMP_ATTR_PORT_INFO)
                last_filter = *request;
}

static struct mad_request last_block;

static void note_block(const struct mad_request *request)
{
        if (request->method == MAD_SET && request->attribute == SMP_ATTR_P_KEY_TABLE)
                last_block = *request;
}

static bool lose_read_back(const struct mad_request *request, struct fabsim_place at)
{
        (void) at;
        return last_filter.method == MAD_SET && request->method == MAD_GET && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* When an apply has ended, no Set leaves any more, though the sweep goes on: not even one that passed before. */
START_TEST(gate_is_closed_behind_an_apply)
{
        struct mad_gate gate;
        struct mad_frame frame;

        last_filter = (struct mad_request) {};
        before_request = note_filter;
        store_waits = true;
        lose = lose_read_back;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING_END);
        ck_assert_int_eq(last_filter.method, MAD_SET);
        mad_request_encode(&last_filter, 1, &frame);
        gate = control_gate(c);
        ck_assert(!gate.admit(gate.state, &frame));
        sweep();
}
END_TEST

/* Nor between two phases, while the possible writes of the next one are stored. */
START_TEST(gate_is_closed_between_phases)
{
        struct mad_gate gate;
        struct mad_frame frame;

        last_block = (struct mad_request) {};
        before_request = note_block;
        store_waits = true;
        put_key(hosts[0], 1, 0x8055); /* a revoke, and then grants */
        start(ENFORCE, POLICY_3);
        while (last_block.method != MAD_SET)
                answer();
        ck_assert_int_eq(state(), CONTROL_STORING);
        mad_request_encode(&last_block, 1, &frame);
        gate = control_gate(c);
        ck_assert(!gate.admit(gate.state, &frame));
        ck_assert_msg(strstr(gate_refusal(c->gate), "no write is expected now"), "%s", gate_refusal(c->gate));
        sweep();
}
END_TEST

/* LIDs move while pkeyctl writes: what another node answers is not written to, and the run ends with that. */
START_TEST(lids_move_while_pkeyctl_writes)
{
        begin(CONTROL_APPLY, POLICY_1, false, false);
        until(CONTROL_APPLYING);
        swap_lids(hosts[0], hosts[2]);
        sweep();
        ck_assert_int_eq(control_get_results(c)->r, -ESTALE);
        ck_assert_int_eq(control_get_results(c)->failed, CONTROL_APPLYING);
        ck_assert(!holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010));
}
END_TEST

/* A port that was never read may hold anything: no port joins a partition that it is not in. */
START_TEST(unread_port_may_hold_anything)
{
        lose_tables_of(hosts[1]);
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert(!holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->ports.unreachable, 1);
        lose = NULL;
        while (state() == CONTROL_IDLE)
                wait_until_due();
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* What was in force before the start is no knowledge: that the port had left the partition is not certain. */
START_TEST(policy_in_force_is_no_knowledge)
{
        struct generation *g = make_generation(ENFORCE, POLICY_1);

        g->number = 7;
        lose_tables_of(hosts[1]);
        start_with(CONTROL_SERVE, ENFORCE, POLICY_1, g);
        sweep();
        ck_assert(!holds(hosts[0], 0x8010));
}
END_TEST

/* Nothing is written to it in the sweep in which it was not read. */
START_TEST(unread_port_is_not_written)
{
        lose_tables_of(hosts[0]);
        start(ENFORCE, POLICY_1);
        sweep();
        lose = NULL;
        ck_assert(!holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->numbers.n_writes_failed, 0);
}
END_TEST

/* What could not be confirmed is tried again soon, and the same failure is not logged twice. */
START_TEST(set_without_an_answer)
{
        lost_node = hosts[0];
        lose = lose_sets;
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), 1);
        ck_assert_uint_eq(last_logged(LOG_EVENT_WRITE_FAILED)->port_guid.v, port_of(hosts[0])->guid.v);
        ck_assert_uint_gt(status()->numbers.n_writes_failed, 0);
        ck_assert_uint_eq(status()->numbers.last_apply, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), 1);
        lose = NULL;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_ne(status()->numbers.last_apply, 0);
}
END_TEST

/* --- what does not go well --- */

/* The wait doubles up to a minute; the discovery's failure is logged once until one succeeds. */
START_TEST(discovery_fails)
{
        static const usec_t waits_for[] = {5, 10, 20, 40, 60, 60};

        start(ENFORCE, POLICY_1);
        for (size_t i = 0; i < ELEMENTS(waits_for); i++) {
                until(CONTROL_DISCOVERING);
                take(CONTROL_RUN_STAGE);
                give_stage_end(-EIO);
                ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
                ck_assert_uint_eq(control_due(c) - now, MIN(waits_for[i], UINT64_C(60)) * S);
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_DISCOVERY_FAILED), 1);
        expect_logged(LOG_EVENT_DISCOVERY_FAILED,
                      "the fabric could not be discovered: Input/output error; pkeyd tries again");
        ck_assert_str_eq(status()->text, "the fabric could not be discovered: Input/output error");
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        until(CONTROL_DISCOVERING);
        take(CONTROL_RUN_STAGE);
        give_stage_end(-EIO);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DISCOVERY_FAILED), 2);
        ck_assert_uint_eq(control_due(c) - now, 5 * S);
}
END_TEST

/* The waits are not longer than the interval. */
START_TEST(failures_within_the_interval)
{
        start("sweep_interval: 10s\n", POLICY_1);
        for (unsigned i = 0; i < 4; i++) {
                until(CONTROL_SURVEYING);
                take(CONTROL_RUN_STAGE);
                give_stage_end(-EDEADLK);
        }
        ck_assert_uint_eq(control_due(c) - now, 10 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_SWEEP_FAILED), 4);
        expect_logged(LOG_EVENT_SWEEP_FAILED, "the P_Key tables could not be read: ");
}
END_TEST

/* A stage of any state that fails ends the sweep, names itself, and nothing is written after it. */
START_TEST(stage_fails)
{
        static const struct {
                enum control_state state;
                const char *text;
        } cases[] = {
                        {CONTROL_QUERYING_PORT, "PortInfo of the local port could not be queried: "},
                        {CONTROL_SURVEYING, "the P_Key tables could not be read: "},
                        {CONTROL_APPLYING, "writing was interrupted: "},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                start(ENFORCE, POLICY_1);
                until(cases[i].state);
                take(CONTROL_RUN_STAGE);
                give_stage_end(-ENODEV);
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
                ck_assert_uint_eq(noted.n_unlocked, cases[i].state == CONTROL_APPLYING);
                expect_logged(LOG_EVENT_SWEEP_FAILED, cases[i].text);
                ck_assert_uint_eq(n_sets, 0);
                teardown();
                setup();
        }
}
END_TEST

/* The host of the master SM hangs: nothing is written by what was discovered before. */
START_TEST(edit_after_a_failed_discovery)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start(ENFORCE, POLICY_1);
        sweep();
        lost_node = hosts[2];
        lost_attribute = 0;
        lose = lose_node;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        n_sets = 0;
        give_candidate(ENFORCE, POLICY_2, 1);
        wait_until_due();
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert_uint_eq(n_sets, 0);
        lose = NULL;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_gt(n_sets, 0);
        give_candidate(ENFORCE, POLICY_1, 2);
        wait_until_due();
        until(CONTROL_APPLYING); /* by what was discovered */
        ck_assert_uint_eq(count_logged(LOG_EVENT_DISCOVERY_FAILED), 1);
}
END_TEST

/* With a longer absent_hold, ports that were unplugged count again: discovery runs before the edit is carried out. */
START_TEST(absent_hold_is_lengthened)
{
        static const struct {
                const char *settings;
                bool is_known;
        } edits[] = {
                {"mode: enforce\nabsent_hold: 10m\n", true}, {"mode: enforce\nabsent_hold: 21m\n", false},
                {"mode: enforce\nabsent_hold: 21m\n", true}, {"mode: enforce\nabsent_hold: forever\n", false},
        };
        bool is_known;

        start("mode: enforce\nabsent_hold: 20m\n", POLICY_1);
        sweep();
        for (size_t i = 0; i < ELEMENTS(edits); i++) {
                give_candidate(edits[i].settings, i % 2 ? POLICY_1 : POLICY_2, i + 1);
                wait_until_due();
                for (is_known = true; state() != CONTROL_IDLE;) {
                        is_known = is_known && state() != CONTROL_DISCOVERING;
                        if (waits())
                                answer();
                        else
                                wait_until_due();
                }
                ck_assert_msg(is_known == edits[i].is_known, "edit %zu", i);
        }
}
END_TEST

/* The master SM's own port is missing in what was discovered: answers were lost, so it is no base for a decision. */
START_TEST(discovery_without_the_sm)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        lost_node = hosts[2];
        lost_attribute = 0;
        lose = lose_node;
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DISCOVERY_FAILED), 1);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_ptr_null(status()->snapshot);
}
END_TEST

/* --- refused by the planner --- */

START_TEST(first_policy_refused)
{
        start(ENFORCE, POLICY_REFUSED);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        ck_assert_uint_eq(count_logged(LOG_EVENT_POLICY_REFUSED), 1);
        expect_logged(LOG_EVENT_POLICY_REFUSED,
                      "1 error: the policy cannot be carried out on this fabric; nothing was written");
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        ck_assert_ptr_null(status()->in_force);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert_uint_eq(noted.n_generations, 0);
        ck_assert_uint_eq(status()->ports.managed, 9); /* ports that came, went or do not answer were reported */
        ck_assert(!status()->numbers.compared);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_POLICY_REFUSED), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_REFUSED], 2);
}
END_TEST

/* The port of the fabric that made it impossible is back: it is carried out. Gone again, it is an error, and stops nothing. */
START_TEST(refused_and_accepted_later)
{
        fabsim_disconnect(&f, hosts[1], 1);
        start("sweep_interval: 10s\n",
              "version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members: {\"node[1-2]\": full, node2: full}\n");
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        fabsim_connect(&f, hosts[1], 1, leaf, 3);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[1], 0x8010));
        ck_assert_uint_eq(status()->n_errors, 0);
        fabsim_disconnect(&f, hosts[1], 1);
        put_key(hosts[0], 1, 0);
        forget_log();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(count_logged(LOG_EVENT_POLICY_REFUSED), 0);
        ck_assert_uint_eq(status()->n_errors, 1);
        ck_assert_uint_eq(status()->n_frozen, 0);
        ck_assert_ptr_nonnull(strstr(status()->text, "; the policy has 1 error on this fabric: pkeyctl plan lists it"));
}
END_TEST

/* --- a policy in force goes on --- */

/* A line for all hosts of the switch, and a different one for a host that is absent. */
#define BY_NAME(lines)                                                                                                  \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      \"@leaf1\": limited\n      important: full\n" lines

static void rename_node(unsigned node, const char *description)
{
        (void) snprintf(f.nodes[node].description, sizeof(f.nodes[node].description), "%s", description);
}

static void next_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        until(CONTROL_DISCOVERING);
        sweep();
}

/* A host hangs: its table is as it was when it was read last, or not. */
START_TEST(silent_link_is_no_success)
{
        usec_t success;

        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_uint_eq(status()->ports.silent, 0);
        success = status()->numbers.last_success;
        ck_assert_uint_ne(success, 0);
        f.nodes[hosts[2]].ports[1].mute = FABSIM_MUTE;
        next_sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(status()->ports.silent, 1);
        ck_assert_uint_eq(status()->numbers.last_success, success);
        ck_assert_msg(strstr(status()->text, ", 1 silent link"), "%s", status()->text);
        f.nodes[hosts[2]].ports[1].mute = FABSIM_ANSWERS;
        next_sweep();
        ck_assert_uint_eq(status()->ports.silent, 0);
        ck_assert_uint_gt(status()->numbers.last_success, success);
        ck_assert(!strstr(status()->text, "silent"));
}
END_TEST

/* node3 takes a name that is in the policy: the line of its switch says something else. It keeps what it has, and so does its
 * switch port; the drift of others is repaired, and nobody is refused. */
START_TEST(second_line_claims_a_host)
{
        start("sweep_interval: 10s\n", BY_NAME(""));
        sweep();
        ck_assert(holds(hosts[2], 0x0010));
        rename_node(hosts[2], "important mlx5_0");
        put_key(hosts[2], 5, 0x8055);
        put_key(hosts[0], 1, 0);
        forget_log();
        next_sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x0010));
        ck_assert(holds(hosts[2], 0x0010) && holds(hosts[2], 0x8055) && !holds(hosts[2], 0x8010));
        ck_assert_uint_eq(status()->n_frozen, 1);
        ck_assert_int_eq(status()->frozen[0].why, FREEZE_LINES);
        ck_assert_str_eq(status()->frozen[0].label, "important mlx5_0/1");
        ck_assert_uint_eq(status()->frozen[0].since, UINT64_C(1700000000) + now / S);
        ck_assert_uint_eq(status()->ports.right + status()->ports.differ, status()->ports.managed - 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_FROZEN), 1);
        expect_logged(LOG_EVENT_PORT_FROZEN, ") is frozen: two equally specific lines");
        expect_logged(LOG_EVENT_PORT_FROZEN, "important mlx5_0/1 (0x");
        expect_logged(LOG_EVENT_PORT_FROZEN, "(0x0010 0x8055 0x7fff)");
        expect_logged(LOG_EVENT_PORT_FROZEN, "; check the name of the host");
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_FROZEN), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNFROZEN), 0);
        rename_node(hosts[2], "node3 mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_frozen, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_UNFROZEN), 1);
        expect_logged(LOG_EVENT_PORT_UNFROZEN, "important mlx5_0/1 (0x"); /* as it was when it was frozen */
        ck_assert(!holds(hosts[2], 0x8055));
}
END_TEST

/* Both that claim the name keep what they have: the one that was there first its partition, the other one nothing more. */
START_TEST(second_host_claims_a_name)
{
        start("sweep_interval: 10s\n", POLICY_2);
        sweep();
        rename_node(hosts[2], "node1 mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_frozen, 2);
        ck_assert_int_eq(status()->frozen[0].why, FREEZE_NAME);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010));
        /* node2 lost its entry: it gets it back beside node1, which was given it before it was frozen */
        put_key(hosts[1], 1, 0);
        next_sweep();
        ck_assert(holds(hosts[1], 0x8010));
        ck_assert(!holds(hosts[2], 0x8010));
        /* and after an edit that takes it from node2, which is a new policy with the same two claimants */
        give_candidate("sweep_interval: 10s\n", POLICY_1, 7);
        wait_until_due();
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        ck_assert(!holds(hosts[1], 0x8010));
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* After a restart nobody knows what a frozen port was given: what it holds is not opened to others, but for what it is given
 * whoever
 * it is. Else the SM's port would not get the default partition back. */
START_TEST(frozen_at_the_start)
{
        struct generation *in_force;

        put_key(hosts[0], 1, 0x8010);
        put_key(head, 0, 0);
        rename_node(hosts[2], "node1 mlx5_0");
        in_force = make_generation(ENFORCE, POLICY_2);
        in_force->number = 5;
        start_with(CONTROL_SERVE, ENFORCE, POLICY_2, in_force);
        sweep();
        ck_assert_uint_eq(status()->n_frozen, 2);
        ck_assert_uint_eq(status()->in_force->number, 5);
        ck_assert(holds(head, 0xffff));
        ck_assert(!holds(hosts[1], 0x8010)); /* would talk with node1, whoever that is */
        rename_node(hosts[2], "node3 mlx5_0");
        now += 60 * S;
        next_sweep();
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

#define TWO_MEMBERS(one, two) "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: " one "\n      node2: " two "\n"

/* node1 is frozen, cannot be raised, and holds 0x0010. By both policies it talks with node2. */
static void lower_beside_a_frozen_port(void)
{
        ck_assert_uint_eq(status()->n_frozen, 2);
        give_candidate("sweep_interval: 10s\n", TWO_MEMBERS("full", "limited"), 7);
        wait_until_due();
        sweep();
        ck_assert_uint_eq(status()->n_frozen, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        ck_assert(holds(hosts[0], 0x0010) && holds(hosts[1], 0x8010));
        expect_logged(LOG_EVENT_BASE_HELD, "node2 mlx5_0/1, leaf1/3 become limited members when node1 mlx5_0/1");
        expect_logged(LOG_EVENT_BASE_HELD, ") is frozen, and its P_Key table is not what the policy may give it; way out: pkeyctl plan");
        rename_node(hosts[2], "node3 mlx5_0");
        now += 60 * S;
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x0010));
}

/* The frozen port is given limited or full: nobody may be cut off who could talk with it by the one or the other. */
START_TEST(nobody_is_cut_off_from_a_frozen_port)
{
        start("sweep_interval: 10s\n", TWO_MEMBERS("limited", "full"));
        sweep();
        ck_assert(holds(hosts[0], 0x0010) && holds(hosts[1], 0x8010));
        rename_node(hosts[2], "node1 mlx5_0");
        next_sweep();
        lower_beside_a_frozen_port();
}
END_TEST

/* What it was given before is not known any more. */
START_TEST(nobody_is_cut_off_after_a_restart)
{
        struct generation *in_force;

        put_key(hosts[0], 1, 0x0010);
        put_key(hosts[1], 1, 0x8010);
        rename_node(hosts[2], "node1 mlx5_0");
        in_force = make_generation("sweep_interval: 10s\n", TWO_MEMBERS("limited", "full"));
        in_force->number = 5;
        start_with(CONTROL_SERVE, "sweep_interval: 10s\n", TWO_MEMBERS("limited", "full"), in_force);
        sweep();
        lower_beside_a_frozen_port();
}
END_TEST

/* A policy that is new is refused for what would only freeze a port of one in force. */
START_TEST(new_policy_with_a_contested_port)
{
        rename_node(hosts[2], "important mlx5_0");
        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate(ENFORCE, BY_NAME(""), 3);
        wait_until_due();
        sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_uint_eq(status()->n_frozen, 0);
}
END_TEST

/* What the policy in force is wrong about, too, for the same port, keeps no edit out; what is wrong about another does. */
START_TEST(edits_beside_a_frozen_port)
{
        start("sweep_interval: 10s\n", BY_NAME(""));
        sweep();
        rename_node(hosts[2], "important mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_frozen, 1);
        give_candidate("sweep_interval: 10s\n", BY_NAME("      node1: full\n"), 4); /* limited by @leaf1 */
        wait_until_due();
        sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_uint_eq(status()->n_frozen, 1);
        give_candidate("sweep_interval: 10s\n", BY_NAME("      \"@leaf1/2\": none\n"), 5);
        wait_until_due();
        sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_PARTIAL);
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert(!holds(hosts[0], 0x0010)); /* the revoke of a third host is carried out */
        ck_assert(holds(hosts[2], 0x0010));
        ck_assert_uint_eq(status()->n_frozen, 1);
}
END_TEST

/* The same for ports that are not there. */
START_TEST(edits_beside_an_absent_host)
{
#define STRICT(members) "version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members: {" members "}\n"
        start("sweep_interval: 10s\n", STRICT("node1: full, node2: full"));
        sweep();
        fabsim_disconnect(&f, hosts[1], 1);
        next_sweep();
        ck_assert_uint_eq(status()->n_errors, 1);
        give_candidate("sweep_interval: 10s\n", STRICT("node1: full, node2: full, nobody: full"), 4);
        wait_until_due();
        sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        give_candidate("sweep_interval: 10s\n", STRICT("node2: full, node3: full"), 5);
        wait_until_due();
        sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[2], 0x8010));
}
END_TEST

/* The wall clock is set wrong for a sweep: a host that is down stays known, and with it what the policy gives it. */
START_TEST(clock_is_set)
{
        static const int64_t days[] = { -2, -19000, 100, 36500 };
        const struct guid guid = port_of(hosts[1])->guid;

        start("sweep_interval: 10s\n", POLICY_2);
        sweep();
        fabsim_disconnect(&f, hosts[1], 1);
        next_sweep();
        for (size_t i = 0; i < ELEMENTS(days); i++) {
                usec_t step = (usec_t) (days[i] * 86400) * USEC_PER_SEC;

                wall_offset += step;
                next_sweep();
                ck_assert_ptr_nonnull(known_find(status()->known, guid));
                wall_offset -= step;
                next_sweep();
                ck_assert_ptr_nonnull(known_find(status()->known, guid));
        }
}
END_TEST

/* pkeyctl, where the first policy was in force (NULL: none was). */
static int plan_beside(const char *in_force, const char *policy)
{
        const struct control_config config = { .goal = CONTROL_PLAN, .program = "pkeyctl 1", .findings = &findings };

        rename_node(hosts[2], "important mlx5_0");
        c = control_new(&config);
        start_with(CONTROL_PLAN, ENFORCE, policy, in_force ? make_generation(ENFORCE, in_force) : NULL);
        sweep();
        return control_get_results(c)->r;
}

START_TEST(plan_of_what_is_in_force)
{
        ck_assert_int_eq(plan_beside(BY_NAME(""), BY_NAME("")), 0);
        ck_assert_uint_eq(findings.n_errors, 2);
        ck_assert_int_eq(findings.items[0].code, FINDING_POLICY_AMBIGUOUS);
        ck_assert_int_eq(findings.items[1].code, FINDING_PORT_FROZEN);
        ck_assert(!plan_is_empty(control_get_results(c)->decision->plan));
}
END_TEST

START_TEST(plan_of_an_edit)
{
        ck_assert_int_eq(plan_beside(BY_NAME(""), BY_NAME("      \"@leaf1/2\": none\n")), 0);
        ck_assert_uint_eq(findings.n_errors, 2);
}
END_TEST

START_TEST(plan_of_a_new_policy)
{
        ck_assert_int_eq(plan_beside(NULL, BY_NAME("")), -EBADMSG);
        ck_assert_uint_eq(findings.n_errors, 1);
}
END_TEST

START_TEST(plan_of_another_policy)
{
        ck_assert_int_eq(plan_beside(POLICY_1, BY_NAME("")), -EBADMSG);
        ck_assert_uint_eq(findings.n_errors, 1);
}
END_TEST

/* A candidate that is refused: what was in force stays, and is what this sweep goes on with. */
START_TEST(candidate_refused)
{
        start(ENFORCE, POLICY_1);
        sweep();
        put_key(hosts[1], 3, 0x8055);
        give_candidate(ENFORCE, POLICY_REFUSED, 9);
        ck_assert_uint_eq(noted.n_answers, 0);
        wait_until_due();
        sweep();
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.answered_generation, 1);
        ck_assert_uint_eq(noted.requests[0], 9);
        ck_assert_uint_eq(noted.n_findings, 1);
        expect_logged(LOG_EVENT_RELOAD_REFUSED, "1 error; generation 1 stays in force");
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_ptr_eq(status()->wanted, status()->in_force);
        ck_assert_uint_eq(status()->n_file_errors, 1);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!status()->reload_pending);
        give_candidate(ENFORCE, POLICY_2, 10);
        wait_until_due();
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(status()->n_file_errors, 0);
}
END_TEST

/* --- audit --- */

START_TEST(audit_writes_nothing)
{
        put_key(hosts[1], 3, 0x8055);
        start(AUDIT, POLICY_1);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!status()->writing && !status()->standby);
        ck_assert_uint_gt(status()->ports.differ, 0);
        ck_assert_uint_eq(status()->ports.differ + status()->ports.right, 9);
        ck_assert_uint_eq(status()->numbers.last_success, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_TABLE_DIFFERS), status()->ports.differ);
        ck_assert_uint_eq(noted.n_generations, 0); /* an audit writes no table */
        ck_assert_ptr_nonnull(strstr(status()->text, "generation 1 (audit): "));
}
END_TEST

/* The settings do not allow for the SM that runs. */
START_TEST(beside_an_sm_nothing_is_written)
{
        f.sm_runs = true;
        start("mode: enforce\n", POLICY_1);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(!status()->writing);
        ck_assert_uint_gt(status()->ports.differ, 0);
        ck_assert_uint_eq(noted.n_generations, 0);
        ck_assert_ptr_nonnull(strstr(status()->text, "generation 1 (audit: a subnet manager runs, and pkeyd.yaml has neither "));

        f.sm_runs = false; /* it may be back at any time */
        next_sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_ptr_null(strstr(status()->text, "a subnet manager runs"));
        ck_assert_ptr_nonnull(strstr(status()->text, "generation 1 (audit: a subnet manager ran since pkeyd loaded its files, and "));

        give_candidate("mode: enforce\nbeside_opensm: true\n", POLICY_1, 1);
        next_sweep();
        ck_assert_uint_gt(n_sets, 0);
        ck_assert(status()->writing);
        ck_assert_uint_eq(status()->ports.differ, 0);
}
END_TEST

START_TEST(an_sm_that_comes_later)
{
        unsigned before;

        start("mode: enforce\n", POLICY_1);
        sweep();
        ck_assert(status()->writing && holds(hosts[0], 0x8010));
        f.sm_runs = true;
        put_key(hosts[0], 1, 0);
        before = n_sets;
        next_sweep();
        ck_assert_uint_eq(n_sets, before);
        ck_assert(!status()->writing);
        ck_assert_uint_eq(count_logged(LOG_EVENT_BESIDE_SM), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 1);
}
END_TEST

/* --- drift --- */

START_TEST(drift_is_repaired_and_reported)
{
        start("sweep_interval: 10s\n", POLICY_1);
        sweep();
        ck_assert_uint_eq(status()->numbers.n_drifts, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_VERIFIED), 1);
        put_key(hosts[0], 1, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(status()->numbers.n_drifts, 1);
        expect_logged(LOG_EVENT_DRIFT_FOUND, "node1 mlx5_0/1 ");
        expect_logged(LOG_EVENT_DRIFT_FOUND, "lacks 0x8010");
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_REPAIRED), 1);
        ck_assert_uint_eq(port_of(hosts[0])->table[1].v, 0x8010); /* at the same index */
        ck_assert_uint_eq(count_logged(LOG_EVENT_VERIFIED), 1);
}
END_TEST

/* What a new policy changes did not drift. */
START_TEST(new_policy_is_no_drift)
{
        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate("mode: enforce\nwindow: 3\n", POLICY_2, 0);
        wait_until_due();
        sweep();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(status()->numbers.n_drifts, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_VERIFIED), 2);
}
END_TEST

/* A port is silent while a generation comes into force that gives it the same, but removes what others put into its table. */
START_TEST(entries_that_a_policy_removes_are_no_drift)
{
        start(ENFORCE "sweep_interval: 10s\nunmanaged: keep\n", POLICY_1);
        put_key(hosts[0], 2, 0x8099);
        sweep();
        lose_tables_of(hosts[0]);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(give_candidate(ENFORCE "sweep_interval: 10s\n", POLICY_1, 0), 0);
        wait_until_due();
        sweep();
        lose = NULL;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[0], 0x8099));
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
}
END_TEST

/* Not in audit mode either, where nothing is repaired before it is compared. */
START_TEST(audited_policy_is_no_drift)
{
        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate(AUDIT, POLICY_2, 0);
        wait_until_due();
        sweep();
        ck_assert_uint_eq(status()->ports.differ, 2); /* node2, and the switch port beside it */
        ck_assert_uint_eq(status()->numbers.n_drifts, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_TABLE_DIFFERS), 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
}
END_TEST

START_TEST(numbers)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_APPLYING);
        run_stage(take(CONTROL_RUN_STAGE)->stage);
        now += 3 * S;
        give_stage_end(0);
        sweep();
        ck_assert_uint_eq(status()->numbers.apply_duration, 3 * S);
        ck_assert_uint_eq(status()->numbers.sweep_duration, 3 * S);
        ck_assert_uint_eq(status()->numbers.n_plans, 1);
        ck_assert_uint_ge(status()->numbers.n_writes, 2);
        ck_assert_uint_eq(status()->numbers.last_sweep, UINT64_C(1700000000) * S + now);
        ck_assert_uint_eq(status()->numbers.last_success, status()->numbers.last_sweep);
        ck_assert_uint_eq(status()->numbers.last_apply, status()->numbers.last_sweep);
        ck_assert(status()->numbers.compared);
        expect_logged(LOG_EVENT_APPLIED, " in 3.00 s");
}
END_TEST

/* --- once, for a person --- */

START_TEST(look)
{
        begin(CONTROL_READ, POLICY_1, false, false);
        sweep();
        ck_assert(noted.exited && noted.exit_r == 0);
        ck_assert_ptr_nonnull(control_get_results(c)->observed);
        ck_assert_ptr_nonnull(control_get_results(c)->subnet);
        ck_assert_ptr_null(control_get_results(c)->decision);
        ck_assert_uint_eq(n_sets + noted.n_stored + noted.n_unlocked, 0);
}
END_TEST

START_TEST(look_at_some_tables)
{
        static const struct {
                uint32_t n;
                unsigned gets;
        } cases[] = {{0, 0}, {1, 2}}; /* a block, and a name: nothing was certain */

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                uint32_t ports[] = {0};
                struct control_event event = {.kind = CONTROL_EVENT_TABLES_CHOSEN, .chosen = {ports, cases[i].n}};
                char text[256];

                begin(CONTROL_READ, POLICY_1, true, false);
                until(CONTROL_CHOOSING);
                take(CONTROL_CHOOSE_TABLES);
                ports[0] = subnet_find_endport(control_get_results(c)->subnet, f.nodes[leaf].guid);
                give(&event);
                ports[0] = 0; /* it was copied */
                control_describe(c, text, sizeof(text)); /* also where nothing is to be done */
                ck_assert_str_eq(text, "reading P_Key tables, 0 % done");
                n_gets = 0;
                sweep();
                ck_assert_uint_eq(n_gets, cases[i].gets);
                teardown();
                setup();
        }
}
END_TEST

START_TEST(plan)
{
        begin(CONTROL_PLAN, POLICY_1, false, false);
        sweep();
        ck_assert(noted.exited && noted.exit_r == 0);
        ck_assert_ptr_nonnull(control_get_results(c)->decision);
        ck_assert(!plan_is_empty(control_get_results(c)->decision->plan));
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* Without asking: locked first, then written; stored as generation 1 when all is right. */
START_TEST(apply_at_once)
{
        begin(CONTROL_APPLY, POLICY_1, false, false);
        until(CONTROL_CONFIRMING);
        ck_assert_uint_eq(noted.n_unlocked, 0);
        sweep();
        ck_assert_uint_eq(n_sets > 0, true);
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert(noted.exited && noted.exit_r == 0);
        ck_assert_uint_eq(control_get_results(c)->generation, 1);
        ck_assert_uint_eq(noted.stored_generation, 1);
        ck_assert_ptr_nonnull(control_get_results(c)->apply);
        ck_assert_uint_eq(control_get_results(c)->verification->n_differ, 0);
        ck_assert_uint_eq(noted.n_known, 1); /* the names, for when they are down */
}
END_TEST

/* A store by which port `node`/1 was read once. */
static struct remembered *remember(uint64_t node)
{
        static const char value[] = "{\"capacity\":2,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"silent\","
                                    "\"since\":2,\"seen_at\":300,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                                    "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";
        const char *key = arena_printf(arena, "table/endport/0x%016" PRIx64 "/1", node);
        struct remembered *m = remembered_new("x");

        ck_assert_int_eq(knowledge_restore(m->knowledge, "x", key, value, strlen(value)), 0);
        return m;
}

static void start_knowing(enum control_goal goal, const char *settings, uint64_t node)
{
        const struct control_config config = {.goal = goal, .program = "pkeyctl 1", .findings = &findings};
        _cleanup_findings_ struct findings loaded = {};
        struct control_event event = {
                .kind = CONTROL_EVENT_START,
                .start = {.remembered = remember(node), .candidate = make_generation(settings, POLICY_1), .findings = &loaded},
        };

        c = control_new(&config);
        give(&event);
}

/* On a head node of a pair that writes, the records here may be older than writes of the other head node. */
START_TEST(store_of_a_head_of_a_pair)
{
        static const struct {
                enum control_goal goal;
                const char *settings;
                bool is_unfollowed;
        } cases[] = {
                {CONTROL_SERVE, "role: follow-sm\n", true}, {CONTROL_APPLY, "role: follow-sm\n", true},
                {CONTROL_PLAN, "role: follow-sm\n", false}, {CONTROL_SERVE, "role: always\n", false},
                {CONTROL_APPLY, "role: always\n", false},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                start_knowing(cases[i].goal, cases[i].settings, 0x900);
                ck_assert_msg(knowledge_get(c->knowledge, 0)->is_unfollowed == cases[i].is_unfollowed, "case %zu", i);
                teardown();
                setup();
        }
}
END_TEST

/* A host may have a port in each of two fabrics: what is stored of one of them does not become absent by applying to the other. */
START_TEST(store_of_another_fabric)
{
        for (unsigned is_here = 0; is_here < 2; is_here++) {
                start_knowing(CONTROL_APPLY, ENFORCE, is_here ? f.nodes[hosts[1]].guid.v : 0x900);
                sweep();
                ck_assert_int_eq(noted.exit_r, is_here ? 0 : -EBADMSG);
                ck_assert_int_eq(n_sets > 0, is_here);
                ck_assert_int_eq(noted.n_stored > 0, is_here);
                ck_assert_uint_eq(findings.n_errors, !is_here);
                ck_assert(is_here || findings.items[0].code == FINDING_HOST_STATE_DIR);
                teardown();
                setup();
        }
        start_knowing(CONTROL_PLAN, ENFORCE, 0x900);
        sweep();
        ck_assert_int_eq(noted.exit_r, 0);
}
END_TEST

static void sweep_other_fabric(void)
{
        n_sets = 0;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_ptr_null(status()->snapshot);
        ck_assert_str_eq(status()->text, "mlx5_0 port 1 leads to another fabric, of which pkeyd knows no port; nothing is written");
}

/* The port that pkeyd worked through is down, and the next one leads to another fabric: pkeyd writes and learns nothing there. */
START_TEST(other_fabric)
{
        struct noted before;
        uint32_t n_known;

        start(ENFORCE, POLICY_1);
        sweep();
        before = noted;
        n_known = c->known.n;
        forget_log();
        put_key(hosts[0], 5, 0x8099);
        move_to_other_fabric(0x100000);
        for (unsigned i = 1; i <= 3; i++) {
                sweep_other_fabric();
                ck_assert_uint_eq(noted.n_closed, i); /* no counters are polled there */
        }
        ck_assert_uint_eq(noted.n_stored, before.n_stored);
        ck_assert_uint_eq(c->known.n, n_known);
        ck_assert_uint_eq(n_logged, 1);
        expect_logged(LOG_EVENT_OTHER_FABRIC, "set ca and port in pkeyd.yaml");
        move_to_other_fabric(0x100000);
        sweep_other_fabric();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OTHER_FABRIC), 2);
        /* and back */
        move_to_other_fabric((uint64_t) -0x200000);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[0], 0x8099));
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_GONE) + count_logged(LOG_EVENT_PORT_NEW), 0);
        ck_assert_uint_eq(noted.n_closed, 4);
        move_to_other_fabric(0x200000);
        sweep_other_fabric();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OTHER_FABRIC), 3);
}
END_TEST

/* The first sweep of a pkeyd, with each writer and in audit mode. */
START_TEST(other_fabric_at_the_start)
{
        static const char *const settings[] = {ENFORCE, AUDIT, OPENSM, MIRROR, FOLLOW_SM};

        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                start_knowing(CONTROL_SERVE, settings[i], 0x900);
                sweep_other_fabric();
                ck_assert_uint_eq(noted.n_stored, 0);
                ck_assert_ptr_null(file_at(FILE_CONF)->bytes);
                ck_assert(status()->ready);
                teardown();
                setup();
        }
}
END_TEST

/* Of two head nodes with one store, only the one with the master SM brings a policy into force. */
START_TEST(apply_beside_the_other_head)
{
        const struct guid guids[] = {port_of(head)->guid, port_of(hosts[2])->guid};
        struct control_event opened = {
                .kind = CONTROL_EVENT_PORT,
                .port = {.name = "mlx5_0 port 1", .guid = guids[0], .host_guids = guids, .n_host_guids = ELEMENTS(guids)},
        };
        const struct {
                enum control_goal goal;
                bool shares_store;
                const char *settings;
                struct fabsim_place sm;
                const char *refused;
        } cases[] = {
                {CONTROL_APPLY, true, FOLLOW_SM, {hosts[1], 1}, "the master SM is at LID 4 (node node2), not on this host: "},
                {CONTROL_APPLY, true, FOLLOW_SM, {hosts[2], 1}, NULL}, {CONTROL_APPLY, true, FOLLOW_SM, {head, 1}, NULL},
                {CONTROL_APPLY, true, ENFORCE, {hosts[1], 1}, NULL}, {CONTROL_APPLY, false, FOLLOW_SM, {hosts[1], 1}, NULL},
                {CONTROL_PLAN, true, FOLLOW_SM, {hosts[1], 1}, NULL},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct control_config config = {
                        .goal = cases[i].goal, .program = "pkeyctl 1", .findings = &findings, .shares_store = cases[i].shares_store,
                };

                f.sm = cases[i].sm;
                c = control_new(&config);
                start_with(cases[i].goal, cases[i].settings, POLICY_1, NULL);
                take(CONTROL_OPEN_PORT);
                give(&opened);
                sweep();
                ck_assert_msg(noted.exit_r == (cases[i].refused ? -EBADMSG : 0), "case %zu", i);
                ck_assert_int_eq(n_sets > 0, cases[i].goal == CONTROL_APPLY && !cases[i].refused);
                ck_assert(!cases[i].refused || noted.n_stored == 0);
                if (cases[i].refused)
                        ck_assert_msg(findings.n_errors == 1 && strstr(findings.items[0].text, cases[i].refused), "%s",
                                      findings.n > 0 ? findings.items[0].text : "");
                teardown();
                setup();
        }
}
END_TEST

/* Of two head nodes that share a store the other one stored its fabric first. */
START_TEST(other_fabric_in_a_shared_store)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remember(0x900)}};

        start(ENFORCE, POLICY_1);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&event);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(noted.n_ops, 1); /* the record of 0x900 */
        noted.n_stored = 0;
        sweep_other_fabric();
        ck_assert_uint_eq(noted.n_stored, 0);
        ck_assert_uint_eq(noted.n_closed, 1);
}
END_TEST

/* What another process stored is taken over, also where it knows nothing of this fabric. */
START_TEST(apply_after_another_process)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};

        begin(CONTROL_APPLY, POLICY_1, false, false);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&event);
        ck_assert_int_eq(state(), CONTROL_DISCOVERING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_int_eq(noted.exit_r, 0);
}
END_TEST

/* While a person thought, another policy came into force: that must not be replaced unseen. */
START_TEST(another_policy_before_the_yes)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};

        event.lock.changed->generation = 6;
        begin(CONTROL_APPLY, POLICY_1, false, true);
        until(CONTROL_CONFIRMING);
        answer();
        take(CONTROL_LOCK);
        give(&event);
        ck_assert(noted.exited);
        ck_assert_int_eq(noted.exit_r, -EBADMSG);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(findings.n_errors, 1);
        ck_assert_str_eq(findings.items[0].text, "generation 6 came into force meanwhile; nothing was written");
}
END_TEST

/* A person is asked without the lock, so that no process waits for the answer; then it is locked, read and planned again. */
START_TEST(apply_after_a_yes)
{
        begin(CONTROL_APPLY, POLICY_1, false, true);
        until(CONTROL_CONFIRMING);
        ck_assert_uint_eq(n_sets, 0);
        take(CONTROL_ASK_PERSON);
        now += 100 * S;
        give(&(struct control_event) {.kind = CONTROL_EVENT_PERSON_ANSWERED, .yes = true});
        ck_assert_int_eq(state(), CONTROL_LOCKING);
        answer();
        ck_assert_int_eq(state(), CONTROL_DISCOVERING); /* filters, too, may be others by now */
        until(CONTROL_APPLYING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_int_eq(noted.exit_r, 0);
}
END_TEST

/* Meanwhile the tables changed so that the plan is another one: the person is asked again, without the lock. */
START_TEST(another_plan_after_a_yes)
{
        begin(CONTROL_APPLY, POLICY_1, false, true);
        until(CONTROL_CONFIRMING);
        answer();
        put_key(hosts[2], 4, 0x8077);
        until(CONTROL_CONFIRMING);
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert_uint_eq(n_sets, 0);
        answer();
        ck_assert_int_eq(state(), CONTROL_LOCKING); /* again */
        sweep();
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8077));
}
END_TEST

/* A part of what was confirmed is another plan, too, whichever write is gone. */
START_TEST(smaller_plan_after_a_yes)
{
        for (unsigned i = 0; i < 3; i++) {
                begin(CONTROL_APPLY, POLICY_3, false, true);
                until(CONTROL_CONFIRMING);
                answer();
                put_key(hosts[i], 4, 0x8010);
                until(CONTROL_CONFIRMING);
                ck_assert_uint_eq(noted.n_unlocked, 1);
                ck_assert_uint_eq(n_sets, 0);
                teardown();
                setup();
        }
}
END_TEST

START_TEST(apply_after_a_no)
{
        begin(CONTROL_APPLY, POLICY_1, false, true);
        until(CONTROL_CONFIRMING);
        take(CONTROL_ASK_PERSON);
        give(&(struct control_event) {.kind = CONTROL_EVENT_PERSON_ANSWERED});
        ck_assert(noted.exited);
        ck_assert_int_eq(noted.exit_r, -ECANCELED);
        ck_assert_int_eq(control_get_results(c)->failed, CONTROL_CONFIRMING);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* Every table matches the policy: no question. */
START_TEST(nothing_to_apply)
{
        struct generation *g;

        begin(CONTROL_APPLY, POLICY_1, false, false);
        sweep();
        c = control_free(c);
        noted = (struct noted) {};
        n_sets = 0;
        g = make_generation(ENFORCE, POLICY_1);
        g->number = 6;
        start_with(CONTROL_APPLY, ENFORCE, POLICY_1, g);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_int_eq(noted.exit_r, 0);
        ck_assert_uint_eq(control_get_results(c)->generation, 6); /* it was in force before */
        ck_assert_uint_eq(noted.n_generations, 0);
        ck_assert_ptr_nonnull(control_get_results(c)->verification);
}
END_TEST

START_TEST(apply_while_another_process_writes)
{
        begin(CONTROL_APPLY, POLICY_1, false, false);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give_lock(-EWOULDBLOCK, 33);
        ck_assert_int_eq(noted.exit_r, -EWOULDBLOCK);
        ck_assert_str_eq(control_get_results(c)->lock_holder, "process 33");
        ck_assert_int_eq(control_get_results(c)->failed, CONTROL_LOCKING);
        ck_assert_uint_eq(noted.n_unlocked, 0);
}
END_TEST

/* A policy that is not wholly in force is not remembered as if it were. */
START_TEST(apply_in_part)
{
        lost_node = hosts[0];
        lose = lose_sets;
        begin(CONTROL_APPLY, POLICY_1, false, false);
        sweep();
        ck_assert(noted.exited);
        ck_assert_uint_eq(control_get_results(c)->generation, 0);
        ck_assert_uint_eq(noted.n_generations, 0);
}
END_TEST

START_TEST(apply_with_a_silent_port)
{
        lose_tables_of(hosts[2]);
        begin(CONTROL_APPLY, POLICY_1, false, false);
        sweep();
        ck_assert_uint_eq(control_get_results(c)->generation, 0);
        ck_assert_uint_eq(noted.n_generations, 0);
}
END_TEST

START_TEST(apply_stopped)
{
        begin(CONTROL_APPLY, POLICY_1, false, false);
        until(CONTROL_APPLYING);
        give_kind(CONTROL_EVENT_STOP);
        ck_assert(!noted.exited);
        answer();
        ck_assert(noted.exited);
        ck_assert(control_get_results(c)->stopped);
        ck_assert_uint_eq(control_get_results(c)->generation, 0);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

START_TEST(plan_refused)
{
        begin(CONTROL_PLAN, POLICY_REFUSED, false, false);
        sweep();
        ck_assert_int_eq(noted.exit_r, -EBADMSG);
        ck_assert_int_eq(control_get_results(c)->r, -EBADMSG);
        ck_assert_uint_eq(findings.n_errors, 1);
        ck_assert_ptr_null(control_get_results(c)->decision);
}
END_TEST

START_TEST(once_without_a_port)
{
        begin(CONTROL_READ, POLICY_1, false, false);
        take(CONTROL_OPEN_PORT);
        give_port(-ENETDOWN);
        ck_assert_int_eq(noted.exit_r, -ENETDOWN);
        ck_assert_int_eq(control_get_results(c)->failed, CONTROL_OPENING_PORT);
}
END_TEST

/* --- one of two head nodes --- */

/* The master SM is elsewhere: compared and reported, nothing written. */
START_TEST(standby)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start(FOLLOW_SM, POLICY_1);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(status()->standby && !status()->writing);
        expect_logged(LOG_EVENT_STANDBY, "the master SM is at LID 5 (node node3)");
        expect_logged(LOG_EVENT_GENERATION, "role follow-sm: this host stands by, and only compares the tables with it");
        expect_logged(LOG_EVENT_STANDBY_DIFFERS,
                      "standing by: the fabric does not match the policy of this host (generation 1) on ");
        ck_assert_ptr_nonnull(
                        strstr(status()->text, "standing by: the master SM is at LID 5 (node node3); generation 1: "));
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_STANDBY_DIFFERS), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_STANDBY), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* What OpenSM may write by the mirror must be stored first, and that takes the lock. */
START_TEST(standby_without_the_lock)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start(FOLLOW_SM "opensm: {mirror: " FILE_CONF "}\n", POLICY_1);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give_lock(-EROFS, 0);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(noted.n_stored, 0);
        ck_assert_ptr_null(file_at(FILE_CONF)->bytes);
}
END_TEST

/* A host was unplugged, and is back before the next sweep when an edit comes: it is not cut off. The sweep carries out the rest. */
START_TEST(edit_beside_a_host_that_is_back)
{
        start(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: limited, node2: full}}\n");
        sweep();
        fabsim_disconnect(&f, hosts[0], 1);
        until(CONTROL_DISCOVERING);
        sweep();
        fabsim_connect(&f, hosts[0], 1, leaf, 2);
        give_candidate(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: full, node2: limited}}\n", 0);
        until(CONTROL_LOCKING);
        until(CONTROL_IDLE);
        ck_assert(holds(hosts[0], 0x0010) && holds(hosts[1], 0x8010));
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x0010));
}
END_TEST

/* node1 is back when discovery has got old, or just before. */
static void node1_comes_back(unsigned late)
{
        now += 8 * S + late;
        fabsim_connect(&f, hosts[0], 1, leaf, 2);
        until(CONTROL_IDLE);
}

/* node2 keeps its full membership as long as node1 has no other, and ends this fabric. */
static void expect_not_cut_off(unsigned late)
{
        ck_assert_int_eq(holds(hosts[1], 0x8010), late);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x0010));
        teardown();
        setup();
}

/* It is back while the tables are read, which takes long, for others do not answer. */
START_TEST(back_while_tables_are_read)
{
        for (unsigned late = 0; late < 2; late++) {
                start(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: limited, node2: full}}\n");
                sweep();
                fabsim_disconnect(&f, hosts[0], 1);
                until(CONTROL_DISCOVERING);
                sweep();
                give_candidate(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: full, node2: limited}}\n", 0);
                until(CONTROL_IDLE);
                until(CONTROL_DISCOVERING);
                until(CONTROL_SURVEYING);
                node1_comes_back(late);
                expect_not_cut_off(late);
        }
}
END_TEST

/* It is back after the first phase, in which others do not answer for long. */
START_TEST(back_while_tables_are_written)
{
        for (unsigned late = 0; late < 2; late++) {
                start(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: limited, node2: full}}\n"
                               "  q: {pkey: 0x0011, members: {node3: full}}\n");
                sweep();
                fabsim_disconnect(&f, hosts[0], 1);
                until(CONTROL_DISCOVERING);
                until(CONTROL_LOCKING); /* the sweep has discovered the fabric, and decides by this policy: */
                give_candidate(ENFORCE, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: full, node2: limited}}\n", 0);
                until(CONTROL_APPLYING);
                node1_comes_back(late);
                ck_assert(!holds(hosts[2], 0x8011));
                expect_not_cut_off(late);
        }
}
END_TEST

/* The SM comes here: it waits SM_HOLD and a timeout, reads all again, and writes. */
START_TEST(takes_over)
{
        usec_t since;

        f.sm = (struct fabsim_place) {hosts[2], 1};
        start("role: follow-sm\ntimeout: 500ms\n", POLICY_1);
        sweep();
        f.sm = (struct fabsim_place) {head, 1};
        until(CONTROL_TAKING_OVER);
        since = now;
        ck_assert_uint_eq(control_due(c), since + 2500 * USEC_PER_MSEC);
        now = since + 2500 * USEC_PER_MSEC - 1;
        give_kind(CONTROL_EVENT_DUE);
        ck_assert_int_eq(state(), CONTROL_TAKING_OVER);
        wait_until_due();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(control_due(c), 0); /* what was read is too old */
        until(CONTROL_DISCOVERING);
        ck_assert_uint_eq(n_sets, 0);
        sweep();
        ck_assert(status()->writing && !status()->standby);
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITES), 1);
}
END_TEST

/* The other head node wrote to node1 after this one read it, and node1 hangs since: what this one never saw there counts, for it
 * has the same policies. */
START_TEST(takes_over_what_the_other_wrote)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start("role: follow-sm\n", POLICY_1);
        sweep();
        put_key(hosts[0], 1, 0x8010);
        lose_tables_of(hosts[0]);
        give_candidate("role: follow-sm\n", "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node2: full}\n", 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        f.sm = (struct fabsim_place) {head, 1};
        until(CONTROL_TAKING_OVER);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert(status()->writing && !status()->standby);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
        lose = NULL;
        for (unsigned i = 0; i < 2; i++) {
                until(CONTROL_OPENING_PORT);
                sweep();
        }
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010));
}
END_TEST

#define OPEN_PAIR FOLLOW_SM "enforcement: off\n" /* behind a switch port that filters it would not matter */

/* The SM is elsewhere for a moment, and no sweep of a standby ends meanwhile. `next`: a policy that was not carried out here. */
static void come_back(const char *policy, const char *next)
{
        start(OPEN_PAIR, policy);
        until(CONTROL_APPLYING);
        give_verbs(VERBS_SM_CHANGE);
        answer();
        ck_assert_uint_eq(n_sets, 0);
        put_key(hosts[0], 1, 0x8010);
        lose_tables_of(hosts[0]);
        if (next)
                give_candidate(OPEN_PAIR, next, 0);
        until(CONTROL_TAKING_OVER);
        give_candidate(OPEN_PAIR, "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node2: full}\n", 0);
        for (unsigned i = 0; i < 2; i++) {
                until(CONTROL_DISCOVERING);
                sweep();
        }
        ck_assert(status()->writing && !status()->standby);
        ck_assert_uint_gt(n_sets, 0);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
}

START_TEST(takes_over_what_was_written_meanwhile)
{
        come_back(POLICY_1, NULL);
}
END_TEST

START_TEST(takes_over_what_was_edited_meanwhile)
{
        come_back("version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node3: full}}\n", POLICY_1);
}
END_TEST

/* A standby that saw nothing of the fabric for long, or was given a policy and the next one before it looked: the other head node
 * may have written to a host that is silent since. */
START_TEST(standby_misses_a_policy)
{
        static const struct {
                bool stands_by, passes_over;
                usec_t blind;
                bool stops;
        } cases[] = {
                {true, false, 0, false}, {true, true, 0, true}, {true, false, 49 * S, false}, {true, false, 61 * S, true},
                {false, true, 0, false}, {false, false, 61 * S, false},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                uint32_t record;

                f.sm = (struct fabsim_place) {cases[i].stands_by ? hosts[2] : head, 1};
                start(FOLLOW_SM "sweep_interval: 10s\n", POLICY_1);
                sweep();
                until(CONTROL_DISCOVERING);
                sweep();
                lose_tables_of(hosts[0]);
                now += cases[i].blind;
                if (cases[i].passes_over)
                        give_candidate(FOLLOW_SM "sweep_interval: 10s\n", POLICY_2, 0);
                give_candidate(FOLLOW_SM "sweep_interval: 10s\n", POLICY_3, 0);
                wait_until_due();
                sweep();
                record = knowledge_find(c->knowledge,
                                        (struct knowledge_name) {f.nodes[hosts[0]].guid, 1, KNOWLEDGE_ENDPORT});
                ck_assert_msg(knowledge_get(c->knowledge, record)->is_unfollowed == cases[i].stops, "case %zu", i);
                lose = NULL; /* it is read, and silent again */
                until(CONTROL_DISCOVERING);
                sweep();
                lose_tables_of(hosts[0]);
                until(CONTROL_DISCOVERING);
                sweep();
                ck_assert_msg(!knowledge_get(c->knowledge, record)->is_unfollowed, "case %zu", i);
                teardown();
                setup();
        }
}
END_TEST

/* This host has the ports of node2, head1 and node3, and pkeyd works through the one of head1: wherever of these the master
 * SM is, it is here. */
static void expect_writer_with_sm_at(unsigned node)
{
        const struct guid guids[] = {port_of(hosts[1])->guid, port_of(head)->guid, port_of(hosts[2])->guid};
        struct control_event event = {
                        .kind = CONTROL_EVENT_PORT,
                        .port = {.name = "mlx5_0 port 1",
                                 .guid = port_of(head)->guid,
                                 .host_guids = guids,
                                 .n_host_guids = ELEMENTS(guids)},
        };

        f.sm = (struct fabsim_place) {node, 1};
        start(FOLLOW_SM, POLICY_1);
        while (!status()->ready) {
                if (!waits()) {
                        wait_until_due();
                } else if (state() == CONTROL_OPENING_PORT) {
                        take(CONTROL_OPEN_PORT);
                        give(&event);
                } else {
                        answer();
                }
        }
        ck_assert(status()->writing && !status()->standby);
        ck_assert(holds(hosts[0], 0x8010));
}

START_TEST(sm_at_the_first_port_of_this_host)
{
        expect_writer_with_sm_at(hosts[1]);
}
END_TEST

START_TEST(sm_at_the_last_port_of_this_host)
{
        expect_writer_with_sm_at(hosts[2]);
}
END_TEST

/* The SM moved between the discovery and the lock: the snapshot is older than the SM. */
START_TEST(sm_moves_during_a_sweep)
{
        start(FOLLOW_SM, POLICY_1);
        until(CONTROL_FINDING_SM);
        f.sm = (struct fabsim_place) {hosts[2], 1};
        answer();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE); /* as before it began */
        ck_assert_uint_eq(n_sets, 0);
        while (!status()->ready) {
                wait_until_due();
                sweep();
        }
        ck_assert(status()->standby);
}
END_TEST

/* An SM event while it writes ends the apply, and the wait begins anew. */
START_TEST(sm_event_ends_an_apply)
{
        start(FOLLOW_SM, POLICY_1);
        until(CONTROL_APPLYING);
        give_verbs(VERBS_SM_CHANGE);
        answer();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE); /* as before it began */
        until(CONTROL_TAKING_OVER);
        ck_assert_uint_eq(status()->sm_changes, 1);
}
END_TEST

static void move_sm(const struct mad_request *request)
{
        now += 100 * USEC_PER_MSEC;
        if (request->method == MAD_SET)
                f.sm = (struct fabsim_place) {hosts[2], 1};
}

/* While it writes it asks where the SM is, and sends no Set after it heard that it is elsewhere. */
START_TEST(guard_ends_an_apply)
{
        start(FOLLOW_SM, POLICY_3);
        until(CONTROL_APPLYING);
        before_request = move_sm;
        sweep();
        ck_assert_uint_ge(n_sets, 1);
        ck_assert_uint_le(n_sets, 4); /* within SM_ANSWER_VALID of the first */
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        before_request = NULL;
        until(CONTROL_OPENING_PORT);
        sweep();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(status()->standby);
}
END_TEST

static void pause_query(const struct mad_request *request)
{
        if (request->attribute == SMP_ATTR_PORT_INFO && mad_route_is_directed(&request->route) && request->route.hops == 0)
                now += SM_ANSWER_VALID;
}

/* The answer to where the SM is lay unread: it asks again before the first Set. */
START_TEST(guard_counts_from_the_question)
{
        start(FOLLOW_SM, POLICY_3);
        before_request = pause_query;
        until(CONTROL_APPLYING);
        before_request = NULL;
        f.sm = (struct fabsim_place) {hosts[2], 1};
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
}
END_TEST

/* Without follow-sm an SM event ends nothing. */
START_TEST(sm_event_without_follow_sm)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_APPLYING);
        give_verbs(VERBS_SM_CHANGE);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_DONE], 1);
}
END_TEST

/* What the other head node wrote is learned: what it freed is stored, on the day that this one writes it is not reused.
 */
START_TEST(standby_learns)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        put_key(hosts[1], 1, 0x8055);
        start("role: follow-sm\nsweep_interval: 10s\n", POLICY_1);
        sweep();
        ck_assert_uint_eq(noted.n_indexes, 0);
        put_key(hosts[1], 1, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(noted.n_indexes, 1);
}
END_TEST

#define POLICY_OF_NODE2 "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node2: full\n"

/* node1 is gone with its P_Key, and may come back. A reload that ends that is heard without another discovery. */
START_TEST(absent_hold_is_shortened)
{
        start(ENFORCE, POLICY_1);
        sweep();
        fabsim_disconnect(&f, hosts[0], 1);
        next_sweep();
        give_candidate(ENFORCE, POLICY_OF_NODE2, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(!holds(hosts[1], 0x8010));
        give_candidate(ENFORCE "absent_hold: 0s\n", POLICY_OF_NODE2, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

/* A reboot makes no new host of it. */
START_TEST(host_returns)
{
        fabsim_disconnect(&f, hosts[2], 1);
        start(ENFORCE, POLICY_3);
        sweep();
        expect_logged(LOG_EVENT_FINDING, "'node3' matches nothing in the fabric");
        fabsim_connect(&f, hosts[2], 1, leaf, 4);
        next_sweep();
        expect_logged(LOG_EVENT_PORT_NEW, "node3 mlx5_0/1 (0x");
        fabsim_disconnect(&f, hosts[2], 1);
        next_sweep();
        expect_logged(LOG_EVENT_PORT_GONE, "node3 mlx5_0/1 (0x");
        expect_logged(LOG_EVENT_FINDING, "'node3' is not in the fabric now (last seen ");
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_RETURNED), 0);
        fabsim_connect(&f, hosts[2], 1, leaf, 4);
        next_sweep();
        expect_logged(LOG_EVENT_PORT_RETURNED, "node3 mlx5_0/1 (0x");
        ck_assert_uint_eq(count_logged(LOG_EVENT_PORT_NEW), 1);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        interval,
                        reload_of_a_known_fabric,
                        look_after_a_stopped_apply,
                        reload_interrupts_discovery,
                        reload_interrupts_a_survey,
                        edits_beside_a_mute_host,
                        edits_beside_an_unreadable_host,
                        sweep_that_is_not_interrupted,
                        reload_with_another_port,
                        candidate_for_another_port,
                        refused_candidate_for_another_port,
                        another_guid,
                        first_discovery_expects_the_ports_of_the_file,
                        first_discovery_without_the_file,
                        file_is_taken_once,
                        file_that_is_broken,
                        silent_link_is_no_success,
                        port_that_does_not_answer,
                        names_are_asked_when_tables_change,
                        lids_move_during_a_discovery,
                        lids_move_during_every_discovery,
                        lids_move_during_the_only_discovery,
                        lids_move_before_a_retry,
                        lids_move_while_a_person_thinks,
                        lids_move_while_pkeyctl_writes,
                        lids_move_during_an_apply,
                        gate_is_closed_behind_an_apply,
                        gate_is_closed_between_phases,
                        unread_port_may_hold_anything,
                        policy_in_force_is_no_knowledge,
                        unread_port_is_not_written,
                        set_without_an_answer,
                        discovery_fails,
                        failures_within_the_interval,
                        stage_fails,
                        discovery_without_the_sm,
                        first_policy_refused,
                        refused_and_accepted_later,
                        second_line_claims_a_host,
                        second_host_claims_a_name,
                        frozen_at_the_start,
                        nobody_is_cut_off_from_a_frozen_port,
                        nobody_is_cut_off_after_a_restart,
                        new_policy_with_a_contested_port,
                        edits_beside_a_frozen_port,
                        edits_beside_an_absent_host,
                        clock_is_set,
                        plan_of_what_is_in_force,
                        plan_of_an_edit,
                        plan_of_a_new_policy,
                        plan_of_another_policy,
                        candidate_refused,
                        edit_after_a_failed_discovery,
                        absent_hold_is_lengthened,
                        back_while_tables_are_read,
                        back_while_tables_are_written,
                        standby_misses_a_policy,
                        audit_writes_nothing,
                        beside_an_sm_nothing_is_written,
                        an_sm_that_comes_later,
                        store_of_a_head_of_a_pair,
                        store_of_another_fabric,
                        other_fabric,
                        other_fabric_at_the_start,
                        other_fabric_in_a_shared_store,
                        apply_beside_the_other_head,
                        drift_is_repaired_and_reported,
                        new_policy_is_no_drift,
                        entries_that_a_policy_removes_are_no_drift,
                        audited_policy_is_no_drift,
                        numbers,
                        absent_hold_is_shortened,
                        host_returns,
                        look,
                        look_at_some_tables,
                        plan,
                        apply_at_once,
                        apply_after_another_process,
                        apply_after_a_yes, another_policy_before_the_yes,
                        another_plan_after_a_yes,
                        smaller_plan_after_a_yes,
                        apply_after_a_no,
                        nothing_to_apply,
                        apply_while_another_process_writes,
                        apply_in_part,
                        apply_with_a_silent_port,
                        apply_stopped,
                        plan_refused,
                        once_without_a_port,
                        standby, standby_without_the_lock,
                        edit_beside_a_host_that_is_back,
                        takes_over,
                        takes_over_what_the_other_wrote,
                        takes_over_what_was_written_meanwhile,
                        takes_over_what_was_edited_meanwhile,
                        sm_at_the_first_port_of_this_host,
                        sm_at_the_last_port_of_this_host,
                        sm_moves_during_a_sweep,
                        sm_event_ends_an_apply,
                        guard_ends_an_apply,
                        guard_counts_from_the_question,
                        sm_event_without_follow_sm,
                        standby_learns,
        };

        return run_suite("sweep", tests, ELEMENTS(tests));
}
