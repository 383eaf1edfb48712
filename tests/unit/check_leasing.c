/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leases: requests, their time, what is read back, restarts, and reloads that would strand them. */

#include "control_fixture.h"

#define S        USEC_PER_SEC
#define SETTINGS "beside_opensm: true\nsweep_interval: 1h\n"
#define POOL(pkeys, ports)                                                                                             \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: full\n"                           \
        "pools:\n  jobs:\n    pkeys: " pkeys "\n    ports: " ports "\n    lease: 1h\n    rest: 1m\n    allow: [alice, staff]\n"
#define POLICY POOL("0x1000-0x1002", "node[1-3]")

static const char *const names[] = { "alice", "users" };
static const struct lease_caller alice = {
        .origin = { .kind = ORIGIN_BUS, .uid = 1000, .user = "alice" }, .names = names, .n_names = 2,
};
static const struct lease_wish two_nodes = { .pool = "jobs", .members = "node[1-2]" };

static uint64_t last_request;

static void next_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        sweep();
}

static void serve(const char *policy)
{
        start(SETTINGS, policy);
        sweep();
        forget_log();
        last_request = 0;
}

static int ask(struct lease_request q)
{
        struct control_event event = { .kind = CONTROL_EVENT_LEASE, .lease = q };

        if (!event.lease.by.names)
                event.lease.by = alice;
        event.lease.by.request = ++last_request;
        return give(&event);
}

static void create(const char *id, const struct lease_wish *wish)
{
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = id, .wish = *wish }), 0);
}

static void release(const char *id)
{
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_RELEASE, .id = id }), 0);
}

static void renew(const char *id, uint64_t seconds)
{
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_RENEW, .id = id, .seconds = seconds }), 0);
}

static void expect_answer(enum lease_outcome outcome)
{
        ck_assert_msg(noted.lease_request == last_request, "request %" PRIu64 " has no answer", last_request);
        ck_assert_msg(noted.lease_outcome == outcome, "%s: %s", lease_outcome_to_string(noted.lease_outcome), noted.lease_text);
}

static void expect_no_answer(void)
{
        ck_assert_uint_ne(noted.lease_request, last_request);
}

static void expect_refused(enum finding_code code)
{
        expect_answer(LEASE_REFUSED);
        ck_assert_msg(noted.code == code, "%s: %s", finding_code_to_string(noted.code), noted.lease_text);
        ck_assert_int_eq(state(), CONTROL_IDLE);
}

static const struct lease *find(const char *id)
{
        return leases_find(status()->leases, id);
}

static void grant(const char *id, const struct lease_wish *wish)
{
        create(id, wish);
        live_until(now);
        expect_answer(LEASE_GRANTED);
}

/* Another process with what was stored. The pins, the knowledge and the policy are as new. */
static void restart(const char *policy)
{
        struct generation *g = make_generation(SETTINGS, POLICY);

        g->number = 1;
        c = control_free(c);
        drop_actions();
        noted = (struct noted) {};
        start_generation(CONTROL_SERVE, make_generation(SETTINGS, policy), g);
}

/* --- create ---------------------------------------------------------------------------------------------------------- */

static unsigned stored_before_set;

static void note_stored(const struct mad_request *request)
{
        if (request->method == MAD_SET && stored_before_set == 0)
                stored_before_set = 1 + noted.n_leases;
}

START_TEST(is_granted)
{
        serve(POLICY);
        noted.n_leases = stored_before_set = 0;
        before_request = note_stored;
        create("a", &two_nodes);
        expect_no_answer();
        live_until(now);
        expect_answer(LEASE_GRANTED);
        ck_assert_str_eq(noted.lease_text, "lease a is granted: P_Key 0x1000, 2 ports");
        ck_assert_uint_eq(noted.leased_base, 0x1000);
        ck_assert_uint_eq(stored_before_set, 2); /* one transaction with it came before the first Set */
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(!holds(hosts[2], 0x9000));
        ck_assert_int_eq(find("a")->state, LEASE_ACTIVE);
        ck_assert_uint_eq(find("a")->members[0].index, 2); /* node1 is in p, too */
        ck_assert_uint_eq(find("a")->members[1].index, 1);
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_CONFIRMED);
        expect_logged(LOG_EVENT_LEASE_GRANTED, "lease a is granted");
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
}
END_TEST

START_TEST(is_answered_when_stored)
{
        serve(POLICY);
        create("a", &two_nodes);
        until(CONTROL_APPLYING);
        store_waits = true;
        while (state() != CONTROL_STORING_END)
                answer();
        ck_assert(holds(hosts[0], 0x9000));
        expect_no_answer();
        (void) take(CONTROL_STORE);
        ck_assert_int_eq(give_stored(-ENOSPC), 0);
        expect_no_answer();
        store_waits = false;
        live_until(now + 10 * S);
        expect_answer(LEASE_GRANTED);
}
END_TEST

/* What is committed is the lease as it was before it was renewed. */
START_TEST(renewed_while_it_is_stored)
{
        serve(POLICY);
        create("a", &two_nodes);
        until(CONTROL_APPLYING);
        store_waits = true;
        while (state() != CONTROL_STORING_END)
                answer();
        renew("a", 200);
        (void) take(CONTROL_STORE);
        ck_assert_int_eq(give_stored(0), 0);
        expect_no_answer();
        store_waits = false;
        live_until(now);
        expect_answer(LEASE_RENEWED);
}
END_TEST

/* Two adapters have the name of a member: it is refused each time. */
START_TEST(a_name_that_two_have)
{
        serve(POLICY);
        (void) snprintf(f.nodes[hosts[2]].description, sizeof(f.nodes[hosts[2]].description), "node2 mlx5_0");
        live_until(now + 3601 * S);
        for (int i = 0; i < 2; i++) {
                create("a", &two_nodes);
                expect_answer(LEASE_REFUSED);
        }
        ck_assert_int_eq(noted.code, FINDING_POLICY_AMBIGUOUS);
}
END_TEST

START_TEST(is_made_once)
{
        const struct lease_wish other = { .pool = "jobs", .members = "node[1-3]" };

        serve(POLICY);
        grant("a", &two_nodes);
        n_sets = 0;
        create("a", &two_nodes);
        expect_answer(LEASE_GRANTED); /* at once */
        create("a", &other);
        expect_refused(FINDING_LEASE_EXISTS);
        ck_assert_uint_eq(n_sets, 0);
        /* two callers wait for the same lease */
        create("b", &two_nodes);
        until(CONTROL_APPLYING);
        noted.n_lease_answers = 0;
        create("b", &two_nodes);
        expect_no_answer();
        live_until(now);
        ck_assert_uint_eq(noted.n_lease_answers, 2);
        expect_answer(LEASE_GRANTED);
        ck_assert_uint_eq(find("b")->base, 0x1001);
}
END_TEST

START_TEST(limited_and_wanted_key)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node2", .base = 0x1002, .membership = MEMBERSHIP_LIMITED };

        serve(POLICY);
        grant("a", &wish);
        ck_assert(holds(hosts[1], 0x1002));
        ck_assert(!holds(hosts[1], 0x9002));
}
END_TEST

/* The table in the kernel of this host is compared with what the lease gives, too. */
START_TEST(this_host_is_a_member)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "head1,node1" };

        serve(POOL("0x1000-0x1002", "ALL_CAS"));
        grant("a", &wish);
        ck_assert(holds(head, 0x9000));
        ck_assert_int_eq(give_verbs(VERBS_P_KEY_CHANGE), 0);
        live_until(now + 10 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_KERNEL_DIFFERS), 0);
        release("a");
        live_until(now + 10 * S);
        ck_assert(!holds(head, 0x9000));
        ck_assert_uint_eq(count_logged(LOG_EVENT_KERNEL_DIFFERS), 0);
}
END_TEST

/* Each is refused at once, and nothing changes. */
START_TEST(is_refused)
{
        static const char *const strangers[] = { "bob", "wheel" };
        const struct {
                struct lease_wish wish;
                const char *id;
                enum finding_code code;
        } cases[] = {
                { { .pool = "jobs", .members = "node1" }, "a b", FINDING_LEASE_ID },
                { { .pool = "jobs", .members = "node1" }, "", FINDING_LEASE_ID },
                { { .pool = "jobs", .members = "node1" }, "-x", FINDING_LEASE_ID },
                { { .pool = "job", .members = "node1" }, "a", FINDING_LEASE_POOL },
                { { .pool = "jobs", .members = "head1" }, "a", FINDING_LEASE_PORTS },
                { { .pool = "jobs", .members = "node1,node9" }, "a", FINDING_SELECTOR_NO_MATCH },
                { { .pool = "jobs", .members = "node[1-9]" }, "a", FINDING_SELECTOR_PARTIAL },
                { { .pool = "jobs", .members = "node1", .base = 0x1003 }, "a", FINDING_LEASE_P_KEY },
                { { .pool = "jobs", .members = "node1", .base = 0x0010 }, "a", FINDING_LEASE_P_KEY },
                { { .pool = "jobs", .members = "node1", .seconds = 3601 }, "a", FINDING_LEASE_DURATION },
                { { .pool = "jobs", .members = "node1", .seconds = POLICY_UNLIMITED }, "a", FINDING_LEASE_DURATION },
                { { .pool = "jobs", .members = "node1", .membership = MEMBERSHIP_BOTH }, "a", FINDING_LEASE_MEMBERSHIP },
        };
        static const struct { const char *pool, *text; } longest[] = {
                { "jobs", "pool jobs has leases of up to 1h, not longer" },
                { "minutes", "pool minutes has leases of up to 90m, not longer" },
                { "seconds", "pool seconds has leases of up to 61s, not longer" },
        };
        struct lease_request q = { .kind = LEASE_CREATE, .id = "a", .wish = two_nodes };

        serve(POLICY "  minutes:\n    pkeys: 0x1010\n    ports: node1\n    lease: 5400s\n    allow: alice\n"
              "  seconds:\n    pkeys: 0x1011\n    ports: node1\n    lease: 61s\n    allow: alice\n");
        n_sets = 0;
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                create(cases[i].id, &cases[i].wish);
                expect_refused(cases[i].code);
        }
        for (size_t i = 0; i < ELEMENTS(longest); i++) {
                const struct lease_wish wish = { .pool = longest[i].pool, .members = "node1", .seconds = POLICY_UNLIMITED };

                create("a", &wish);
                expect_refused(FINDING_LEASE_DURATION);
                ck_assert_str_eq(noted.lease_text, longest[i].text);
        }
        q.by = alice;
        q.by.names = strangers;
        ck_assert_int_eq(ask(q), 0);
        expect_refused(FINDING_LEASE_ACCESS);
        release("a");
        expect_refused(FINDING_LEASE_NONE);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(n_kept_records(), 0);
}
END_TEST

START_TEST(a_group_may)
{
        static const char *const staff[] = { "bob", "staff" };
        struct lease_request q = { .kind = LEASE_CREATE, .id = "a", .wish = two_nodes, .by = { .names = staff, .n_names = 2 } };

        serve(POLICY);
        ck_assert_int_eq(ask(q), 0);
        live_until(now);
        expect_answer(LEASE_GRANTED);
}
END_TEST

/* OpenSM writes the tables; its file has the partition of the lease. */
START_TEST(opensm_writes)
{
        const struct fixture_file *file;

        start(OPENSM "sweep_interval: 1h\n", POLICY);
        sweep();
        live_until(now + 10 * S);
        create("a", &two_nodes);
        live_until(now + 30 * S);
        expect_answer(LEASE_GRANTED);
        file = file_at(FILE_CONF);
        ck_assert_ptr_nonnull(strstr(file->bytes, "lease-0x1000=0x1000"));
        ck_assert(holds(hosts[0], 0x9000));
        release("a");
        live_until(now + 30 * S);
        expect_answer(LEASE_RELEASED);
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

START_TEST(audit_has_no_leases)
{
        start("mode: audit\nbeside_opensm: true\nsweep_interval: 1h\n", POLICY);
        sweep();
        create("a", &two_nodes);
        expect_refused(FINDING_LEASE_NOT_NOW);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "it is in audit mode"));
}
END_TEST

/* pkeyd.yaml has `mode: enforce`, so the caller learns why nothing is written nevertheless. */
START_TEST(beside_an_sm_there_are_no_leases)
{
        f.sm_runs = true;
        start("mode: enforce\nsweep_interval: 1h\n", POLICY);
        sweep();
        create("a", &two_nodes);
        expect_refused(FINDING_LEASE_NOT_NOW);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "a subnet manager runs, or ran since pkeyd loaded its files, and pkeyd.yaml has neither"));
}
END_TEST

/* The other head node has a store of its own. */
START_TEST(a_pair_has_no_leases)
{
        start(FOLLOW_SM "sweep_interval: 1h\n", POLICY);
        sweep();
        create("a", &two_nodes);
        expect_answer(LEASE_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_LEASE_NOT_NOW);
}
END_TEST

START_TEST(no_free_key)
{
        serve(POLICY);
        grant("a", &two_nodes);
        grant("b", &two_nodes);
        grant("c", &two_nodes);
        create("d", &two_nodes);
        expect_refused(FINDING_LEASE_P_KEY);
        ck_assert_str_eq(noted.lease_text, "pool jobs has no free P_Key: 3 in leases");
        ck_assert_uint_eq(find("c")->base, 0x1002);
        release("a");
        live_until(now);
        create("d", &two_nodes);
        expect_refused(FINDING_LEASE_P_KEY);
        ck_assert_str_eq(noted.lease_text, "pool jobs has no free P_Key: 2 in leases, 1 resting");
}
END_TEST

/* An entry of unknown origin: the P_Key is handed out when pkeyd has removed it. */
START_TEST(a_key_that_is_held)
{
        put_key(hosts[2], 5, 0x9000);
        serve(POOL("0x1000", "node[1-3]"));
        ck_assert(!holds(hosts[2], 0x9000));
        grant("a", &two_nodes);
}
END_TEST

/* --- the end --------------------------------------------------------------------------------------------------------- */

START_TEST(is_released)
{
        serve(POLICY);
        grant("a", &two_nodes);
        release("a");
        expect_no_answer();
        live_until(now);
        expect_answer(LEASE_RELEASED);
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert(!holds(hosts[1], 0x9000));
        ck_assert_ptr_null(find("a"));
        ck_assert_uint_eq(n_kept_records(), 1); /* it rests */
        grant("a", &two_nodes);
        ck_assert_uint_eq(find("a")->base, 0x1001);
        live_until(now + 61 * S);
        grant("b", &two_nodes);
        ck_assert_uint_eq(find("b")->base, 0x1000);
        ck_assert_uint_eq(n_kept_records(), 2);
}
END_TEST

/* Who explains violations learns of each change before the write that follows from it. */
START_TEST(changes_are_counted)
{
        const struct lease_wish own = { .pool = "jobs", .members = "head1" };
        uint64_t before;

        serve(POOL("0x1000-0x1002", "ALL_CAS"));
        before = status()->lease_changes;
        next_sweep();
        ck_assert_uint_eq(status()->lease_changes, before);
        create("a", &two_nodes);
        until(CONTROL_APPLYING);
        ck_assert_uint_eq(status()->lease_changes, before + 1);
        live_until(now);
        renew("a", 200);
        live_until(now);
        ck_assert_uint_eq(status()->lease_changes, before + 1);
        release("a");
        live_until(now);
        ck_assert_uint_eq(status()->lease_changes, before + 2);
        grant("b", &own); /* a decision about the whole fabric */
        ck_assert_uint_eq(status()->lease_changes, before + 3);
}
END_TEST

START_TEST(ends_in_time)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node1", .seconds = 100 };
        usec_t began;

        serve(POLICY);
        began = now;
        grant("a", &wish);
        ck_assert_uint_eq(find("a")->ends, find("a")->created + 100);
        live_until(began + 99 * S);
        ck_assert(holds(hosts[0], 0x9000));
        live_until(began + 101 * S);
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert_ptr_null(find("a"));
}
END_TEST

START_TEST(is_renewed)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node1", .seconds = 100 };
        usec_t began;

        serve(POLICY);
        began = now;
        grant("a", &wish);
        live_until(began + 50 * S);
        renew("a", 3601);
        expect_refused(FINDING_LEASE_DURATION);
        n_sets = n_gets = 0;
        renew("a", 200);
        live_until(now);
        expect_answer(LEASE_RENEWED);
        ck_assert_uint_eq(n_sets + n_gets, 0); /* nothing but the store */
        live_until(began + 249 * S);
        ck_assert(holds(hosts[0], 0x9000));
        live_until(began + 251 * S);
        ck_assert(!holds(hosts[0], 0x9000));
        renew("a", 10);
        expect_refused(FINDING_LEASE_NONE);
}
END_TEST

START_TEST(is_renewed_for_ever)
{
        serve("version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: full\n"
              "pools:\n  jobs:\n    pkeys: 0x1000\n    ports: node1\n    lease: unlimited\n    allow: [alice]\n");
        grant("a", &(struct lease_wish) { .pool = "jobs", .members = "node1", .seconds = 100 });
        renew("a", 200);
        live_until(now);
        expect_logged(LOG_EVENT_LEASE_RENEWED, "lease a is renewed by alice, for 200 s");
        forget_log();
        renew("a", 0);
        live_until(now);
        expect_answer(LEASE_RENEWED);
        expect_logged(LOG_EVENT_LEASE_RENEWED, "lease a is renewed by alice, until it is released");
        live_until(now + 300 * S);
        ck_assert(holds(hosts[0], 0x9000));
}
END_TEST

/* --- ports that do not answer ---------------------------------------------------------------------------------------- */

static unsigned lost_node;

static bool lose_tables(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == lost_node && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

static void mute(unsigned node)
{
        lost_node = node;
        lose = lose_tables;
}

START_TEST(is_taken_back)
{
        serve(POLICY);
        mute(hosts[1]);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = two_nodes, .timeout = 30 }), 0);
        live_until(now + 20 * S);
        expect_no_answer();
        ck_assert_int_eq(find("a")->state, LEASE_GRANTING);
        live_until(now + 20 * S);
        expect_answer(LEASE_FAILED);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "1 of 2 ports could not be confirmed in 30 s: node2"));
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert(!holds(hosts[1], 0x9000));
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0);
        /* when it answers again it can have a lease, before the next sweep of the fabric */
        lose = NULL;
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "b", .wish = two_nodes, .timeout = 30 }), 0);
        live_until(now + 40 * S);
        expect_answer(LEASE_GRANTED);
        ck_assert_uint_eq(count_logged(LOG_EVENT_DRIFT_FOUND), 0); /* this sweep read a table, and planned a lease */
}
END_TEST

START_TEST(is_granted_partly)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node[1-2]", .partial = true };

        serve(POLICY);
        mute(hosts[1]);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = wish, .timeout = 30 }), 0);
        live_until(now + 40 * S);
        expect_answer(LEASE_GRANTED_PARTLY);
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert_int_eq(find("a")->members[1].state, LEASE_MEMBER_LEFT_OUT);
        lose = NULL;
        live_until(now + 600 * S);
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert(!holds(hosts[1], 0x9000));
        restart(POLICY);
        live_until(now + 10 * S);
        ck_assert_int_eq(find("a")->state, LEASE_ACTIVE);
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert(!holds(hosts[1], 0x9000));
}
END_TEST

/* The table of node1 has room for what the policy gives it, and no more. */
static void serve_full(const char *policy)
{
        f.nodes[hosts[0]].partition_cap = port_of(hosts[0])->capacity = 2;
        serve(policy);
        ck_assert(holds(hosts[0], 0x8010));
}

START_TEST(is_not_granted_where_a_table_is_full)
{
        serve_full(POLICY);
        create("a", &two_nodes);
        live_until(now);
        expect_answer(LEASE_FAILED);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "node1 mlx5_0/1 is frozen: "));
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert(!holds(hosts[1], 0x9000));
        ck_assert_uint_eq(status()->n_frozen, 0);
        ck_assert_uint_eq(status()->n_errors, 0);
}
END_TEST

START_TEST(is_granted_but_where_a_table_is_full)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node[1-2]", .partial = true };

        serve_full(POLICY);
        create("a", &wish);
        live_until(now);
        expect_answer(LEASE_GRANTED_PARTLY);
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert_uint_eq(status()->n_frozen, 0);
}
END_TEST

/* The end of a lease makes room in a table that became too small. */
START_TEST(an_end_thaws_a_port)
{
        const struct lease_wish node1 = { .pool = "jobs", .members = "node1" };

        f.nodes[hosts[0]].partition_cap = port_of(hosts[0])->capacity = 3;
        serve(POLICY);
        grant("a", &node1);
        f.nodes[hosts[0]].partition_cap = port_of(hosts[0])->capacity = 2;
        ck_assert_int_eq(give_generation(make_generation(SETTINGS, POLICY), 7), 0);
        next_sweep();
        ck_assert_uint_eq(status()->n_frozen, 1);
        release("a");
        live_until(now);
        ck_assert_uint_eq(status()->n_frozen, 0);
}
END_TEST

/* The switch filters, and lets nothing through yet. */
START_TEST(is_not_granted_behind_a_filter)
{
        serve(POLICY);
        mute(leaf);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = two_nodes, .timeout = 30 }), 0);
        live_until(now + 60 * S);
        expect_answer(LEASE_FAILED);
}
END_TEST

/* Whether the switch filters is not known since the first write of its filters; and later, nothing is written to it. */
static bool filters_are_lost, sets_are_lost;

static bool lose_filters(const struct mad_request *request, struct fabsim_place at)
{
        if (at.node != leaf)
                return false;
        filters_are_lost |= request->method == MAD_SET && request->attribute == SMP_ATTR_PORT_INFO;
        return (filters_are_lost && request->attribute == SMP_ATTR_PORT_INFO) || (sets_are_lost && request->method == MAD_SET);
}

START_TEST(is_not_granted_where_a_filter_is_doubted)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "head1" };

        start(SETTINGS, POOL("0x1000-0x1002", "ALL_CAS"));
        lose = lose_filters;
        sweep();
        ck_assert(filters_are_lost);
        sets_are_lost = true;
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = wish, .timeout = 30 }), 0);
        live_until(now + 60 * S);
        expect_answer(LEASE_FAILED);
}
END_TEST

static bool lose_all(const struct mad_request *request, struct fabsim_place at)
{
        (void) request;
        return at.node == lost_node;
}

/* This host is all that pkeyd finds any more, and has the entry: the switch, which may filter, does not answer. */
START_TEST(is_not_granted_behind_a_silent_switch)
{
        static const char policy[] = POOL("0x1000-0x1002", "ALL_CAS");
        const struct lease_wish wish = { .pool = "jobs", .members = "head1" };

        serve(policy);
        lost_node = leaf;
        lose = lose_all;
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = wish, .timeout = 30 }), 0);
        put_key(head, 5, 0x9000);
        ck_assert_int_eq(give_generation(make_generation(SETTINGS, policy), 7), 0);
        live_until(now + 60 * S);
        expect_answer(LEASE_FAILED);
}
END_TEST

/* At a port that leads to another fabric no lease is granted, and one that ends is released where it was granted. */
START_TEST(in_another_fabric)
{
        serve(POLICY);
        create("a", &two_nodes);
        next_sweep();
        expect_answer(LEASE_GRANTED);
        move_to_other_fabric(0x100000);
        next_sweep();
        create("b", &two_nodes);
        expect_answer(LEASE_REFUSED);
        ck_assert_str_eq(noted.lease_text, "pkeyd cannot change leases now: its port leads to another fabric");
        release("a");
        live_until(now + 300 * S);
        expect_answer(LEASE_IS_RELEASING);
        ck_assert(holds(hosts[0], 0x9000));
        move_to_other_fabric((uint64_t) -0x100000);
        live_until(now + 60 * S);
        ck_assert_ptr_null(find("a"));
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

/* One member had the entry and does not answer any more when the other one gets it. */
START_TEST(is_not_granted_by_memory)
{
        serve(POLICY);
        mute(hosts[0]);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = two_nodes, .timeout = 600 }), 0);
        live_until(now + 5 * S);
        ck_assert(holds(hosts[1], 0x9000));
        mute(hosts[1]);
        ck_assert_int_eq(give_verbs(VERBS_PORT_ACTIVE), 0); /* a sweep of the fabric */
        live_until(now + 60 * S);
        ck_assert(holds(hosts[0], 0x9000));
        expect_no_answer();
        lose = NULL;
        live_until(now + 300 * S);
        expect_answer(LEASE_GRANTED);
}
END_TEST

/* A lease is released while a port of it is mute: its P_Key is not handed out. */
START_TEST(is_releasing)
{
        const struct lease_wish chosen = { .pool = "jobs", .members = "node1", .base = 0x1000 };

        start(SETTINGS "enforcement: off\n", POOL("0x1000", "node[1-3]"));
        sweep();
        grant("a", &two_nodes);
        mute(hosts[1]);
        release("a");
        live_until(now + 5 * S);
        expect_answer(LEASE_IS_RELEASING);
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert_int_eq(find("a")->state, LEASE_RELEASING);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 0);
        expect_logged(LOG_EVENT_LEASE_HELD, "lease a is released, but node2 mlx5_0/1, and perhaps other ports, may still hold P_Key 0x1000; ");
        create("b", &two_nodes);
        expect_refused(FINDING_LEASE_P_KEY);
        create("a", &two_nodes);
        expect_refused(FINDING_LEASE_EXISTS);
        renew("a", 60);
        expect_refused(FINDING_LEASE_NONE);
        store_is_outdated = true; /* the other head node may have granted it */
        renew("a", 60);
        expect_refused(FINDING_LEASE_NOT_NOW);
        create("b", &two_nodes); /* the P_Key may be free by now */
        expect_refused(FINDING_LEASE_NOT_NOW);
        create("b", &chosen);
        expect_refused(FINDING_LEASE_NOT_NOW);
        store_is_outdated = false;
        lose = NULL;
        live_until(now + 300 * S);
        ck_assert(!holds(hosts[1], 0x9000));
        ck_assert_ptr_null(find("a"));
        live_until(now + 61 * S);
        grant("b", &two_nodes);
}
END_TEST

/* The same after another process had the lock for so long that the caller does not wait for the sweep any more. */
START_TEST(is_releasing_after_a_long_wait)
{
        start(SETTINGS "enforcement: off\n", POOL("0x1000", "node[1-3]"));
        sweep();
        grant("a", &two_nodes);
        mute(hosts[1]);
        release("a");
        until(CONTROL_LOCKING);
        for (unsigned i = 0; i < 40; i++) {
                take(CONTROL_LOCK);
                ck_assert_int_eq(give_lock(-EWOULDBLOCK, 4711), 0);
                wait_until_due();
        }
        live_until(now + 5 * S);
        expect_answer(LEASE_IS_RELEASING);
        ck_assert(holds(hosts[1], 0x9000));
        expect_logged(LOG_EVENT_LEASE_HELD, "node2");
        ck_assert_uint_eq(count_logged(LOG_EVENT_LEASE_HELD), 1);
        live_until(now + 300 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_LEASE_HELD), 1);
}
END_TEST

static bool lose_sets(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == lost_node && request->method == MAD_SET;
}

/* A host without a lease holds the only P_Key, and pkeyd cannot take it away. */
START_TEST(no_free_key_because_of_a_stranger)
{
        start(SETTINGS "enforcement: off\n", POOL("0x1000", "node[1-3]"));
        sweep();
        put_key(hosts[2], 5, 0x9000);
        lost_node = hosts[2];
        lose = lose_sets;
        live_until(now + 3601 * S);
        create("a", &two_nodes);
        live_until(now);
        expect_answer(LEASE_REFUSED);
        ck_assert_str_eq(noted.lease_text, "pool jobs has no free P_Key: 1 that ports may still hold");
}
END_TEST

/* Another program gave a port the P_Key, and pkeyd cannot take it away. */
START_TEST(not_the_key_of_a_stranger)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node1", .base = 0x1000 };

        start(SETTINGS "enforcement: off\n", POLICY);
        sweep();
        put_key(hosts[2], 5, 0x9000);
        lost_node = hosts[2];
        lose = lose_sets;
        live_until(now + 3601 * S);
        ck_assert(holds(hosts[2], 0x9000));
        create("a", &wish);
        live_until(now);
        expect_answer(LEASE_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_LEASE_P_KEY);
        grant("a", &two_nodes);
        ck_assert_uint_eq(find("a")->base, 0x1001);
        lose = NULL;
        live_until(now + 3601 * S);
        ck_assert(!holds(hosts[2], 0x9000));
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "b", .wish = wish }), 0);
        live_until(now);
        expect_answer(LEASE_GRANTED);
}
END_TEST

/* Behind a filter that is closed it has no effect what the mute port holds. */
START_TEST(is_closed_at_the_switch)
{
        serve(POLICY);
        grant("a", &two_nodes);
        mute(hosts[1]);
        release("a");
        live_until(now + 5 * S);
        expect_answer(LEASE_RELEASED);
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

/* --- restarts -------------------------------------------------------------------------------------------------------- */

START_TEST(survives_a_restart)
{
        usec_t began;

        serve(POLICY);
        began = now;
        grant("a", &two_nodes);
        release("a");
        live_until(now);
        grant("b", &two_nodes);
        now = began + 1800 * S;
        n_sets = 0;
        restart(POLICY);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(holds(hosts[0], 0x9001));
        ck_assert_int_eq(find("b")->state, LEASE_ACTIVE);
        ck_assert_str_eq(find("b")->owner.user, "alice");
        live_until(began + 3599 * S);
        ck_assert(holds(hosts[0], 0x9001));
        live_until(began + 3700 * S);
        ck_assert(!holds(hosts[0], 0x9001));
        ck_assert_uint_eq(noted.n_lease_answers, 0);
}
END_TEST

/* The state directory was deleted, and another process has begun a new one: nothing of what is in force is in there. */
START_TEST(the_store_is_another_one)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK, .lock = { .changed = remembered_new("this boot") } };

        serve(POLICY);
        grant("a", &two_nodes);
        live_until(now);
        noted.n_generations = noted.n_leases = 0;
        ck_assert_int_eq(give_generation(make_generation(SETTINGS, POLICY), 7), 0);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&event);
        live_until(now + 10 * S);
        ck_assert_uint_eq(noted.n_generations, 1);
        ck_assert_uint_eq(noted.n_leases, 1);
}
END_TEST

START_TEST(a_clock_that_was_set_back)
{
        const struct lease_wish wish = { .pool = "jobs", .members = "node1", .seconds = 100 };

        serve(POLICY);
        grant("a", &wish);
        wall_offset -= 1000 * S;
        restart(POLICY);
        sweep();
        live_until(now + 101 * S);
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

/* The wall clock is set while a lease is granted; perhaps it is renewed before. Its time goes on by the other clock. */
START_TEST(a_clock_that_is_set_meanwhile)
{
        static const int64_t steps[] = { -1000, -30, 30, 1000 };

        for (size_t i = 0; i < 2 * ELEMENTS(steps); i++) {
                const struct lease_wish wish = { .pool = "jobs", .members = "node1", .seconds = i % 2 ? 50 : 100 };
                usec_t began;

                serve(POLICY);
                store_r = -ENOSPC;
                began = now;
                create("a", &wish);
                live_until(began + 10 * S);
                if (i % 2)
                        renew("a", 90);
                live_until(began + 11 * S);
                wall_offset += (usec_t) (steps[i / 2] * (int64_t) S);
                store_r = 0;
                live_until(began + 40 * S);
                ck_assert(holds(hosts[0], 0x9000));
                live_until(began + 99 * S);
                ck_assert_msg(holds(hosts[0], 0x9000), "step %zu", i);
                live_until(began + 102 * S);
                ck_assert_msg(!holds(hosts[0], 0x9000), "step %zu", i);
                teardown();
                setup();
        }
}
END_TEST

/* The sweep for the lease fails; it is granted when the disk has room again. */
START_TEST(the_disk_is_full)
{
        serve(POLICY);
        store_r = -ENOSPC;
        create("a", &two_nodes);
        live_until(now + 10 * S);
        expect_no_answer();
        ck_assert(!holds(hosts[0], 0x9000));
        store_r = 0;
        live_until(now + 60 * S);
        expect_answer(LEASE_GRANTED);
        ck_assert(holds(hosts[0], 0x9000));
}
END_TEST

/* Nobody waits for the store for ever; what was asked for is carried out when the disk has room again. */
START_TEST(the_disk_stays_full)
{
        struct lease_wish wish = two_nodes;

        serve(POLICY);
        grant("a", &(struct lease_wish) { .pool = "jobs", .members = "node3" });
        store_r = -ENOSPC;
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "b", .wish = wish, .timeout = 30 }), 0);
        live_until(now + 39 * S);
        expect_no_answer();
        live_until(now + 1 * S);
        expect_answer(LEASE_UNSTORED);
        release("a");
        live_until(now + 69 * S);
        expect_no_answer();
        live_until(now + 1 * S);
        expect_answer(LEASE_UNSTORED);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "it may still be carried out"));
        ck_assert(holds(hosts[2], 0x9000) && !holds(hosts[0], 0x9001));
        noted.n_lease_answers = 0;
        store_r = 0;
        live_until(now + 600 * S);
        ck_assert(!holds(hosts[2], 0x9000) && !holds(hosts[0], 0x9001));
        ck_assert_ptr_null(find("a"));
        ck_assert_ptr_null(find("b"));
        ck_assert_uint_eq(noted.n_lease_answers, 0);
}
END_TEST

/* Each caller has its own time; and the store is not what a caller waits for if it has the lease. */
START_TEST(callers_wait_for_the_store)
{
        struct lease_wish wish = { .pool = "jobs", .members = "node1" };

        for (unsigned is_full = 0; is_full < 2; is_full++) {
                serve(POLICY);
                store_r = is_full ? -ENOSPC : 0;
                port_of(hosts[0])->mute = !is_full;
                ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = wish, .timeout = 120 }), 0);
                live_until(now + 1 * S);
                create("a", &wish);
                live_until(now + 69 * S);
                ck_assert_uint_eq(noted.n_lease_answers, 0);
                live_until(now + 1 * S);
                ck_assert_uint_eq(noted.n_lease_answers, is_full);
                if (is_full)
                        expect_answer(LEASE_UNSTORED);
                live_until(now + 62 * S);
                ck_assert_uint_eq(noted.n_lease_answers, 2);
                ck_assert_uint_eq(noted.n_of_outcome[is_full ? LEASE_UNSTORED : LEASE_FAILED], 2);
                teardown();
                setup();
        }
}
END_TEST

/* Nor does a caller wait longer because others ask as well. */
START_TEST(many_wait_for_the_store)
{
        serve(POLICY);
        grant("a", &two_nodes);
        store_r = -ENOSPC;
        noted.n_lease_answers = 0;
        renew("a", 600);
        live_until(now + 65 * S);
        renew("a", 600);
        live_until(now + 5 * S);
        ck_assert_uint_eq(noted.n_lease_answers, 1);
        live_until(now + 65 * S);
        ck_assert_uint_eq(noted.n_of_outcome[LEASE_UNSTORED], 2);
}
END_TEST

/* The second one has waited for longer than its own time when the lease is granted: that is stored at once. */
START_TEST(granted_late)
{
        struct lease_wish wish = { .pool = "jobs", .members = "node1" };

        serve(POLICY);
        port_of(hosts[0])->mute = true;
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "a", .wish = wish, .timeout = 120 }), 0);
        create("a", &wish);
        live_until(now + 90 * S);
        port_of(hosts[0])->mute = false;
        live_until(now + 20 * S);
        ck_assert_uint_eq(noted.n_lease_answers, 2);
        ck_assert_uint_eq(noted.n_of_outcome[LEASE_GRANTED], 2);
}
END_TEST

/* The caller is gone with the process, and may ask again. */
START_TEST(a_restart_while_it_is_granted)
{
        serve(POLICY);
        create("a", &two_nodes);
        until(CONTROL_APPLYING);
        restart(POLICY);
        sweep();
        create("a", &two_nodes);
        live_until(now);
        expect_answer(LEASE_GRANTED);
        ck_assert(holds(hosts[1], 0x9000));
}
END_TEST

/* What its answer says was read by the pkeyd that gives it. */
START_TEST(a_restart_and_the_same_request)
{
        serve(POLICY);
        grant("a", &two_nodes);
        restart(POLICY);
        until(CONTROL_LOCKING);
        create("a", &two_nodes);
        expect_no_answer();
        live_until(now);
        expect_answer(LEASE_GRANTED);
}
END_TEST

/* --- reloads --------------------------------------------------------------------------------------------------------- */

static void reload(const char *policy, bool releases)
{
        struct generation *g = make_generation(SETTINGS, policy);

        g->facts.releases_stranded = releases;
        ck_assert_int_eq(give_generation(g, 7), 0);
        next_sweep();
}

START_TEST(a_reload_would_strand_it)
{
        static const char *const policies[] = {
                POLICY_1, POOL("0x1001-0x1002", "node[1-3]"), POOL("0x1000-0x1002", "node[2-3]"),
        };

        serve(POLICY);
        grant("a", &two_nodes);
        for (size_t i = 0; i < ELEMENTS(policies); i++) {
                reload(policies[i], false);
                ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
                ck_assert_int_eq(noted.code, FINDING_LEASE_STRANDED);
                ck_assert_uint_eq(status()->in_force->number, 1);
                ck_assert(holds(hosts[0], 0x9000));
        }
        reload(POOL("0x1000-0x1001", "node[1-3]"), false);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(holds(hosts[0], 0x9000));
        reload(POOL("0x1000-0x1002", "node[2-3]"), true);
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert(!holds(hosts[1], 0x9000));
        live_until(now + 10 * S);
        ck_assert_ptr_null(find("a"));
}
END_TEST

/* The P_Key is in no pool any more, but pkeyd gave it. */
START_TEST(a_stranded_key_is_revoked)
{
        struct generation *g = make_generation(SETTINGS "unmanaged: keep\n", POLICY_1);

        serve(POLICY);
        grant("a", &two_nodes);
        g->facts.releases_stranded = true;
        ck_assert_int_eq(give_generation(g, 7), 0);
        next_sweep();
        live_until(now + 10 * S);
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert_ptr_null(find("a"));
}
END_TEST

/* node3 has another name during a reload, and during its undo. */
static void rename_and_reload(const char *description)
{
        static const char before[] = POOL("0x1000-0x1001", "node[2-3]");
        const struct lease_wish wish = { .pool = "jobs", .members = "node[2-3]" };
        struct control_event undo = { .kind = CONTROL_EVENT_UNDO, .asked = { .by = alice.origin, .request = 9 } };

        serve(before);
        grant("a", &wish);
        (void) snprintf(f.nodes[hosts[2]].description, sizeof(f.nodes[hosts[2]].description), "%s", description);
        reload(POOL("0x1000-0x1002", "node[2-3]"), false);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_int_eq(give(&undo), 0);
        ck_assert_int_eq(give_undo(SETTINGS, before), 0);
        live_until(now + 60 * S);
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert_ptr_nonnull(find("a"));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(holds(hosts[2], 0x9000));
}

START_TEST(a_host_that_reboots_strands_nothing)
{
        rename_and_reload("MT4123 ConnectX6 Mellanox Technologies");
}
END_TEST

START_TEST(a_twin_strands_nothing)
{
        rename_and_reload("node2 mlx5_0");
}
END_TEST

static unsigned count_findings(const char *part)
{
        unsigned n = 0;

        for (size_t i = 0; i < n_logged; i++)
                n += logged[i].is_finding && strstr(logged[i].text, part);
        return n;
}

/* What the plan with the lease that gives its port up found is not reported; what was found before it is. */
START_TEST(an_undo_strands_one_and_freezes_another)
{
        static const char before[] = POOL("0x1001-0x1002", "node[1-3], node9");
        struct generation *g = make_generation(SETTINGS, POLICY);
        struct control_event undo = { .kind = CONTROL_EVENT_UNDO, .asked = { .by = alice.origin, .request = 9 } };
        const struct lease_wish node1 = { .pool = "jobs", .members = "node1" }, node2 = { .pool = "jobs", .members = "node2" };

        serve_full(before);
        ck_assert_int_eq(give_generation(g, 7), 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        grant("a", &node2);
        ck_assert_uint_eq(find("a")->base, 0x1000);
        ck_assert_int_eq(give(&undo), 0);
        create("b", &node1);
        ck_assert_int_eq(give_undo(SETTINGS, before), 0);
        forget_log();
        noted.n_answers = 0;
        live_until(now + 60 * S);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert_uint_eq(noted.n_findings, 2);
        ck_assert_uint_eq(count_findings("lease a is released: "), 1);
        ck_assert_uint_eq(count_findings("node9"), 1);
        ck_assert_ptr_null(find("a"));
        ck_assert_ptr_null(find("b"));
}
END_TEST

/* A lease that the plan does not have, because it is stranded, is not given up because of a frozen port, too. */
START_TEST(an_undo_strands_one_of_a_frozen_port)
{
        static const char before[] = POOL("0x1001-0x1002", "node[1-3], node9");
        const struct lease_wish stranded = { .pool = "jobs", .members = "node1", .base = 0x1000 };
        const struct lease_wish freezes = { .pool = "jobs", .members = "node1", .base = 0x1001 };
        struct control_event undo = { .kind = CONTROL_EVENT_UNDO, .asked = { .by = alice.origin, .request = 9 } };

        serve_full(before);
        ck_assert_int_eq(give_generation(make_generation(SETTINGS, POLICY), 7), 0);
        next_sweep();
        ck_assert_int_eq(give(&undo), 0);
        create("a", &stranded);
        create("b", &freezes);
        ck_assert_int_eq(give_undo(SETTINGS, before), 0);
        noted.n_lease_answers = 0;
        live_until(now + 60 * S);
        ck_assert_uint_eq(noted.n_lease_answers, 2);
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert_ptr_null(find("a"));
        ck_assert_ptr_null(find("b"));
}
END_TEST

/* --- */

int main(void)
{
        const TTest *const tests[] = {
                is_granted, is_answered_when_stored, renewed_while_it_is_stored, a_name_that_two_have,
                is_made_once, limited_and_wanted_key, this_host_is_a_member, is_refused, a_group_may,
                opensm_writes, audit_has_no_leases, beside_an_sm_there_are_no_leases, a_pair_has_no_leases, no_free_key,
                a_key_that_is_held, is_released, changes_are_counted, ends_in_time, is_renewed, is_renewed_for_ever, is_taken_back,
                is_granted_partly,
                is_not_granted_where_a_table_is_full, is_granted_but_where_a_table_is_full, an_end_thaws_a_port,
                is_not_granted_behind_a_filter, is_not_granted_where_a_filter_is_doubted,
                is_not_granted_behind_a_silent_switch, is_not_granted_by_memory, in_another_fabric, is_releasing,
                is_releasing_after_a_long_wait, no_free_key_because_of_a_stranger,
                not_the_key_of_a_stranger, is_closed_at_the_switch, survives_a_restart, the_store_is_another_one,
                a_clock_that_was_set_back, a_clock_that_is_set_meanwhile, the_disk_is_full, the_disk_stays_full,
                callers_wait_for_the_store,
                many_wait_for_the_store, granted_late,
                a_restart_and_the_same_request, a_restart_while_it_is_granted, a_reload_would_strand_it,
                a_stranded_key_is_revoked, a_host_that_reboots_strands_nothing, a_twin_strands_nothing,
                an_undo_strands_one_and_freezes_another, an_undo_strands_one_of_a_frozen_port,
        };

        return run_suite("leasing", tests, ELEMENTS(tests));
}
