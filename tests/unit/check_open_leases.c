/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open leases: members that come and go, and members that no port has yet. */

#include "control_fixture.h"
#include "policy/selector.h"
#include "policy/selector.h"

#define S        USEC_PER_SEC
#define SETTINGS "beside_opensm: true\nsweep_interval: 1h\n"
#define POOL(ports)                                                                                                    \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: full\n"                           \
        "pools:\n  cloud:\n    pkeys: 0x1000-0x1002\n    ports: " ports "\n    lease: unlimited\n    rest: 0s\n    index0: true\n"   \
        "    allow: [alice]\n"                                                                                        \
        "  other:\n    pkeys: 0x2000\n    ports: ALL_CAS\n    lease: 1h\n    allow: [alice]\n"
#define POLICY POOL("node[1-3]")
#define RESTING                                                                                                        \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: full\n"                           \
        "pools:\n  cloud:\n    pkeys: 0x1000-0x1002\n    ports: node[1-3]\n    rest: 1m\n    allow: alice\n"
#define EDIT(kind_, pool_, base_, ...)                                                                                 \
        (struct lease_edit) { .kind = (kind_), .pool = (pool_), .base = (base_), .groups = { { __VA_ARGS__ } }, .n_groups = 1 }
#define NOBODY "0x000a0b0c0d0e0f01" /* a GUID that no port has */

static const char *const names[] = { "alice" };
static uint64_t last_request;

static int ask(struct lease_request q)
{
        struct control_event event = { .kind = CONTROL_EVENT_LEASE, .lease = q };

        if (!event.lease.by.names)
                event.lease.by = (struct lease_caller) {
                        .origin = { .kind = ORIGIN_BUS, .uid = 1000, .user = "alice" }, .names = names, .n_names = 1,
                };
        event.lease.by.request = ++last_request;
        return give(&event);
}

static void edit_as(const char *id, const struct lease_edit *e)
{
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_EDIT, .id = id, .edit = *e }), 0);
}

static void edit(enum lease_edit_kind kind, const char *members)
{
        edit_as("a", &EDIT(kind, "cloud", 0, members, MEMBERSHIP_NONE));
}

static void expect_answer(enum lease_outcome outcome)
{
        ck_assert_msg(noted.lease_request == last_request, "request %" PRIu64 " has no answer", last_request);
        ck_assert_msg(noted.lease_outcome == outcome, "%s: %s", lease_outcome_to_string(noted.lease_outcome), noted.lease_text);
}

static void expect_refused(enum finding_code code)
{
        expect_answer(LEASE_REFUSED);
        ck_assert_msg(noted.code == code, "%s: %s", finding_code_to_string(noted.code), noted.lease_text);
}

static void expect_edited(void)
{
        live_until(now);
        expect_answer(LEASE_EDITED);
}

static const struct lease *find(const char *id)
{
        return leases_find(status()->leases, id);
}

static void serve(const char *policy)
{
        start(SETTINGS, policy);
        sweep();
        forget_log();
        last_request = 0;
}

/* A lease has an unseen member, and from now on host 3 is it. */
static void serve_who_appears(const char *policy)
{
        serve(policy);
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
}

/* A sweep of the whole fabric. */
static void look(const char *policy)
{
        ck_assert_int_eq(give_generation(make_generation(SETTINGS, policy), 7), 0);
        live_until(now + 10 * S);
}

static void restart(const char *policy)
{
        struct generation *g = make_generation(SETTINGS, policy);

        g->number = 1;
        c = control_free(c);
        drop_actions();
        noted = (struct noted) {};
        start_generation(CONTROL_SERVE, make_generation(SETTINGS, policy), g);
        live_until(now + 10 * S);
}

/* --- members come and go ---------------------------------------------------------------------------------------------- */

START_TEST(members_come_and_go)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert_int_eq(find("a")->state, LEASE_ACTIVE);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 1);
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0x1000, "node2", MEMBERSHIP_LIMITED));
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert(holds(hosts[1], 0x1000));
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(!holds(hosts[1], 0x1000));
        ck_assert(holds(hosts[2], 0x9000));
        edit(LEASE_REMOVE_MEMBERS, "node1");
        expect_edited();
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(find("a")->n_members, 2);
        edit(LEASE_SET_MEMBERS, "node[1-2]");
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(!holds(hosts[2], 0x9000));
        edit(LEASE_SET_MEMBERS, "");
        expect_edited();
        ck_assert(!holds(hosts[0], 0x9000));
        ck_assert_uint_eq(find("a")->n_members, 0);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_RELEASE, .id = "a" }), 0);
        live_until(now);
        expect_answer(LEASE_RELEASED);
        ck_assert_ptr_null(find("a"));
        ck_assert_uint_eq(n_kept_records(), 0);
}
END_TEST

/* The answer to the second comes at once, and nothing is written. */
START_TEST(the_same_again)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        n_sets = 0;
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_answer(LEASE_EDITED);
        edit(LEASE_REMOVE_MEMBERS, "node2, " NOBODY);
        expect_answer(LEASE_EDITED);
        live_until(now);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* Taken out and in again before a plan is made. */
START_TEST(out_and_in)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node[1-2]");
        expect_edited();
        n_sets = 0;
        edit(LEASE_REMOVE_MEMBERS, "node1");
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert_uint_eq(find("a")->n_members, 2);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 2);
}
END_TEST

static bool lose_tables(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == hosts[0] && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* It is answered when it is stored; the entry comes when the host answers. */
START_TEST(does_not_wait_for_a_mute_host)
{
        serve(POLICY);
        lose = lose_tables;
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 0);
        lose = NULL;
        live_until(now + 600 * S);
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 1);
}
END_TEST

START_TEST(is_refused)
{
        const struct lease_wish wish = { .pool = "cloud", .members = "node1" };
        const struct { struct lease_edit edit; const char *id; enum finding_code code; } cases[] = {
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_NONE), "closed", FINDING_LEASE_EXISTS },
                { EDIT(LEASE_ADD_MEMBERS, "other", 0, "node1", MEMBERSHIP_NONE), "a", FINDING_LEASE_EXISTS },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0x1002, "node1", MEMBERSHIP_NONE), "a", FINDING_LEASE_EXISTS },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0x2000, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_P_KEY },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "head1", MEMBERSHIP_NONE), "a", FINDING_LEASE_PORTS },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node7", MEMBERSHIP_NONE), "a", FINDING_SELECTOR_NO_MATCH },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_BOTH), "b", FINDING_LEASE_MEMBERSHIP },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_BOTH), "a", FINDING_LEASE_MEMBERSHIP },
                { EDIT(LEASE_ADD_MEMBERS, "nothing", 0, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_POOL },
                { EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_NONE), "an id", FINDING_LEASE_ID },
                { EDIT(LEASE_REMOVE_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_NONE },
                { EDIT(LEASE_REMOVE_MEMBERS, "cloud", 0x1002, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_NONE },
                { EDIT(LEASE_REMOVE_MEMBERS, "cloud", 0x1001, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_EXISTS },
                { EDIT(LEASE_REMOVE_MEMBERS, "cloud", 0x2000, "node1", MEMBERSHIP_NONE), "b", FINDING_LEASE_P_KEY },
        };

        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node2");
        expect_edited();
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "closed", .wish = wish }), 0);
        live_until(now);
        n_sets = 0;
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                edit_as(cases[i].id, &cases[i].edit);
                expect_refused(cases[i].code);
        }
        live_until(now);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(find("a")->n_members, 1);
        ck_assert_ptr_null(find("b"));
}
END_TEST

/* Another caller could take the ID of a partition of a client of the REST API, by a pool of its own. */
START_TEST(ids_of_clients)
{
        static const char *const clients[] = { "rest:kube", "alice" };
        const struct lease_caller client = { .origin = { .kind = ORIGIN_BUS, .user = "rest:kube" }, .names = clients, .n_names = 2 };
        const struct lease_wish wish = { .pool = "cloud", .members = "node1" };
        const struct lease_edit other = EDIT(LEASE_ADD_MEMBERS, "other", 0, "node1", MEMBERSHIP_NONE);

        serve(POLICY);
        edit_as("rest:0x1000", &other);
        expect_refused(FINDING_LEASE_ID);
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_CREATE, .id = "rest:0x1000", .wish = wish }), 0);
        expect_refused(FINDING_LEASE_ID);
        edit_as("rest", &other);
        expect_edited();
        ck_assert_int_eq(ask((struct lease_request) {
                .kind = LEASE_EDIT, .id = "rest:0x1000", .edit = EDIT(LEASE_ADD_MEMBERS, "cloud", 0x1000, "node1", MEMBERSHIP_NONE),
                .by = client,
        }), 0);
        expect_edited();
        /* whoever may use its pool can change one that exists */
        edit_as("rest:0x1000", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0x1000, "node2", MEMBERSHIP_NONE));
        expect_edited();
        ck_assert_uint_eq(find("rest:0x1000")->n_members, 2);
}
END_TEST

/* Who takes members out of what is being taken away already, has what it wants. */
START_TEST(edited_while_it_is_released)
{
        static const struct lease_edit add = EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node2", MEMBERSHIP_NONE);
        static const struct lease_edit out = EDIT(LEASE_REMOVE_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_NONE);

        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_RELEASE, .id = "a" }), 0);
        ck_assert_int_eq(find("a")->state, LEASE_RELEASING);
        edit_as("a", &out);
        expect_refused(FINDING_LEASE_NONE);
        edit_as("a", &add);
        expect_refused(FINDING_LEASE_EXISTS);
}
END_TEST

/* --- several groups --------------------------------------------------------------------------------------------------- */

static void edit_groups(enum lease_edit_kind kind, struct lease_group first, struct lease_group second)
{
        edit_as("a", &(struct lease_edit) { .kind = kind, .pool = "cloud", .groups = { first, second }, .n_groups = 2 });
}

START_TEST(groups_of_members)
{
        const struct lease_group one = { "node1", MEMBERSHIP_LIMITED }, more = { "node[2-3]", MEMBERSHIP_FULL };

        serve(POLICY);
        edit_groups(LEASE_ADD_MEMBERS, one, more);
        expect_edited();
        ck_assert(holds(hosts[0], 0x1000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(holds(hosts[2], 0x9000));
        ck_assert_int_eq(find("a")->membership, MEMBERSHIP_FULL); /* of the pool: the groups differ */
        edit_groups(LEASE_SET_MEMBERS, (struct lease_group) { "node2" }, one);
        expect_edited();
        ck_assert(holds(hosts[0], 0x1000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(!holds(hosts[2], 0x9000));
        edit_groups(LEASE_REMOVE_MEMBERS, (struct lease_group) { "node1", MEMBERSHIP_FULL }, (struct lease_group) { "node[1-2]", MEMBERSHIP_LIMITED });
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 0);
}
END_TEST

/* All groups say the same: so does the lease. */
START_TEST(groups_of_a_limited_lease)
{
        serve(POLICY);
        edit_groups(LEASE_ADD_MEMBERS, (struct lease_group) { "node1", MEMBERSHIP_LIMITED },
                    (struct lease_group) { "node2", MEMBERSHIP_LIMITED });
        expect_edited();
        edit(LEASE_ADD_MEMBERS, "node3");
        expect_edited();
        ck_assert(holds(hosts[2], 0x1000));
}
END_TEST

/* A port may be named twice, if both groups give it the same. */
START_TEST(groups_that_overlap)
{
        const struct lease_group all = { "node[1-3]", MEMBERSHIP_FULL }, limited = { "node2", MEMBERSHIP_LIMITED },
                                 nobody = { NOBODY, MEMBERSHIP_FULL }, limited_nobody = { NOBODY, MEMBERSHIP_LIMITED };

        serve(POLICY);
        edit_groups(LEASE_ADD_MEMBERS, all, limited);
        expect_refused(FINDING_LEASE_MEMBERSHIP);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "node2"));
        edit_groups(LEASE_ADD_MEMBERS, nobody, limited_nobody);
        expect_refused(FINDING_LEASE_MEMBERSHIP);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, NOBODY));
        ck_assert_ptr_null(find("a"));
        edit_groups(LEASE_ADD_MEMBERS, all, (struct lease_group) { "node2" }); /* full, by the pool */
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 3);
        edit_groups(LEASE_SET_MEMBERS, limited, (struct lease_group) { "node3", MEMBERSHIP_BOTH });
        expect_refused(FINDING_LEASE_MEMBERSHIP);
        ck_assert_uint_eq(find("a")->n_members, 3);
        ck_assert(holds(hosts[1], 0x9000));
}
END_TEST

/* Without groups: an empty lease. */
START_TEST(no_groups)
{
        serve(POLICY);
        edit_as("a", &(struct lease_edit) { .kind = LEASE_ADD_MEMBERS, .pool = "cloud" });
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 0);
        edit(LEASE_ADD_MEMBERS, "node1");
        edit_as("a", &(struct lease_edit) { .kind = LEASE_ADD_MEMBERS, .pool = "cloud" });
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        edit_as("a", &(struct lease_edit) { .kind = LEASE_SET_MEMBERS, .pool = "cloud" });
        expect_edited();
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

/* The limit is that of all groups together. */
START_TEST(long_groups)
{
        _cleanup_text_ struct text padded = {};
        struct lease_group first = { "node1" }, second;

        text_add(&padded, "%*s", LEASE_MAX_EDIT_TEXT - 5, "node2");
        second = (struct lease_group) { padded.bytes };
        serve(POLICY);
        edit_groups(LEASE_ADD_MEMBERS, first, second);
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 2);
        first.members = "node3 ";
        edit_groups(LEASE_ADD_MEMBERS, first, second);
        expect_refused(FINDING_LEASE_PORTS);
}
END_TEST

/* --- index 0 ------------------------------------------------------------------------------------------------------------ */

static void edit_index0(enum lease_edit_kind kind, const char *id, const char *members)
{
        edit_as(id, &EDIT(kind, "cloud", 0, members, MEMBERSHIP_NONE, true));
}

static bool has_index0(const char *id, uint32_t member)
{
        return find(id)->members[member].index0;
}

/* A port has one index 0, which the other lease gets when the first one does not claim it any more. */
START_TEST(one_lease_has_index0)
{
        serve(POLICY);
        edit_index0(LEASE_ADD_MEMBERS, "a", "node[1-2], " NOBODY);
        expect_edited();
        ck_assert(has_index0("a", 0) && has_index0("a", 1) && has_index0("a", 2));
        edit_as("b", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node[1-3]", MEMBERSHIP_NONE));
        expect_edited(); /* at another index */
        edit_index0(LEASE_ADD_MEMBERS, "b", "node[2-3]");
        expect_refused(FINDING_LEASE_INDEX0_TAKEN);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "node2"));
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "lease a"));
        edit_index0(LEASE_ADD_MEMBERS, "b", NOBODY);
        expect_refused(FINDING_LEASE_INDEX0_TAKEN);
        edit_index0(LEASE_REMOVE_MEMBERS, "b", "node2"); /* only who it is counts */
        expect_edited();
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node2", MEMBERSHIP_NONE));
        edit_index0(LEASE_REMOVE_MEMBERS, "a", NOBODY);
        edit_index0(LEASE_ADD_MEMBERS, "b", "node[2-3], " NOBODY);
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 2);
        ck_assert(!has_index0("a", 1));
        ck_assert_int_eq(ask((struct lease_request) { .kind = LEASE_RELEASE, .id = "a" }), 0);
        edit_index0(LEASE_ADD_MEMBERS, "b", "node1"); /* while `a` is released */
        ck_assert_uint_eq(lease_n_wanted(find("b")), 4);
        ck_assert(has_index0("b", 0));
}
END_TEST

START_TEST(index0_survives_a_restart)
{
        serve(POLICY);
        edit_index0(LEASE_ADD_MEMBERS, "a", "node1, " NOBODY);
        edit(LEASE_ADD_MEMBERS, "node2");
        expect_edited();
        restart(POLICY);
        ck_assert_uint_eq(find("a")->n_members, 3);
        for (uint32_t i = 0; i < 3; i++)
                ck_assert(has_index0("a", i) == (find("a")->members[i].port.v != port_of(hosts[1])->guid.v));
        edit_index0(LEASE_ADD_MEMBERS, "b", "node1");
        expect_refused(FINDING_LEASE_INDEX0_TAKEN);
}
END_TEST

/* The pool allows it, and groups agree about it. */
START_TEST(index0_is_refused)
{
        const struct lease_group at_0 = { "node1", .index0 = true }, elsewhere = { "node1" };

        serve(POLICY);
        edit_as("b", &EDIT(LEASE_ADD_MEMBERS, "other", 0, "node1", MEMBERSHIP_NONE, true));
        expect_refused(FINDING_LEASE_INDEX0);
        ck_assert_ptr_null(find("b"));
        edit_groups(LEASE_ADD_MEMBERS, at_0, elsewhere);
        expect_refused(FINDING_LEASE_MEMBERSHIP);
        edit_groups(LEASE_REMOVE_MEMBERS, at_0, elsewhere);
        expect_refused(FINDING_LEASE_NONE);
        edit_groups(LEASE_ADD_MEMBERS, at_0, (struct lease_group) { "node2" });
        expect_edited();
        edit_groups(LEASE_REMOVE_MEMBERS, at_0, elsewhere);
        expect_edited();
        ck_assert_uint_eq(find("a")->n_members, 1);
}
END_TEST

/* Moved there by a sweep of the fabric, and back when the lease does not claim it any more. */
START_TEST(index0_is_written)
{
        serve(POLICY);
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_LIMITED, true));
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node2", MEMBERSHIP_FULL, true));
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node3", MEMBERSHIP_FULL));
        look(POLICY);
        ck_assert_uint_eq(port_of(hosts[0])->table[0].v, 0x1000);
        ck_assert_uint_eq(port_of(hosts[1])->table[0].v, 0x9000);
        ck_assert_uint_ne(port_of(hosts[2])->table[0].v, 0x9000);
        ck_assert(holds(hosts[2], 0x9000));
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 3);
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node2", MEMBERSHIP_FULL));
        look(POLICY);
        ck_assert_uint_ne(port_of(hosts[1])->table[0].v, 0x9000);
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 3);
}
END_TEST

static bool lose_writes(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == hosts[0] && request->method == MAD_SET;
}

/* Read back at another index, the member waits. */
START_TEST(index0_is_confirmed)
{
        serve(POLICY);
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_FULL, true));
        look(POLICY);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 1);
        put_key(hosts[0], 0, 0x7fff);
        put_key(hosts[0], 5, 0x9000);
        lose = lose_writes;
        look(POLICY);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 0);
}
END_TEST

/* --- options ------------------------------------------------------------------------------------------------------------ */

static void edit_options(const struct lease_options *options)
{
        edit_as("a", &(struct lease_edit) { .kind = LEASE_ADD_MEMBERS, .pool = "cloud", .options = *options });
}

static void expect_options(bool ip_over_ib, uint8_t mtu, uint64_t updated)
{
        const struct lease *a = find("a");

        ck_assert(a->ip_over_ib == ip_over_ib);
        ck_assert_uint_eq(a->qos.mtu, mtu);
        ck_assert_uint_eq(a->qos.rate, mtu ? 1000 : 0);
        ck_assert_uint_eq(a->qos.service_level, mtu ? 3 : 0);
        ck_assert_uint_eq(a->updated, updated);
}

/* What an edit does not name stays. The time is that of the last edit that changed something. */
START_TEST(options_stay)
{
        const struct lease_options ip = { .sets_ip_over_ib = true, .ip_over_ib = true }, no_ip = { .sets_ip_over_ib = true },
                                   qos = { .qos = { .mtu = 4, .service_level = 3, .rate = 1000 } };
        uint64_t created;

        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        created = find("a")->created;
        expect_options(false, 0, created);
        live_until(now + 10 * S);
        edit_options(&qos);
        expect_edited();
        expect_options(false, 4, created + 10);
        live_until(now + 10 * S);
        edit_options(&ip);
        expect_edited();
        expect_options(true, 4, created + 20);
        live_until(now + 10 * S);
        edit_options(&ip);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        expect_options(true, 4, created + 20);
        restart(POLICY);
        expect_options(true, 4, created + 20);
        n_sets = 0;
        edit_options(&no_ip);
        expect_edited();
        expect_options(false, 4, find("a")->updated);
        ck_assert_uint_gt(find("a")->updated, created + 20);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(holds(hosts[0], 0x9000));
}
END_TEST

/* That of lease a, as the plan and OpenSM's file have it. */
static const struct policy_partition *partition(void)
{
        const struct policy *policy;
        int i;

        ck_assert_int_eq(leases_extend(arena, status()->leases, status()->in_force->policy, &policy), 0);
        i = policy_find_base(policy, 0x1000);
        ck_assert_int_ge(i, 0);
        return &policy->partitions[i];
}

/* `strict` is about lines that a person wrote. */
START_TEST(may_be_down)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        ck_assert(partition()->rules[0].selectors[0]->may_match_nothing);
}
END_TEST

/* OpenSM creates its multicast groups, with the defaults of a partition of the policy. */
START_TEST(ipoib_of_a_lease)
{
        const struct multicast_parameters usual = multicast_ipoib_default();
        struct multicast_parameters with_qos = usual;

        serve(POLICY);
        edit_options(&(struct lease_options) { .qos = { 4, 3, 1000 } });
        ck_assert_ptr_null(partition()->ipoib);
        edit_options(&(struct lease_options) { .sets_ip_over_ib = true, .ip_over_ib = true });
        with_qos.mtu = 5; /* 4096 bytes */
        with_qos.rate = 16; /* 100 Gb/s */
        with_qos.sl = 3;
        ck_assert(multicast_equal(&partition()->ipoib->broadcast, &with_qos));
        edit_options(&(struct lease_options) { .qos = { 2, 0, 100 } });
        ck_assert(multicast_equal(&partition()->ipoib->broadcast, &usual));
        edit_options(&(struct lease_options) { .sets_ip_over_ib = true });
        ck_assert_ptr_null(partition()->ipoib);
}
END_TEST

/* A new lease has them from the beginning. */
START_TEST(options_of_a_new_lease)
{
        serve(POLICY);
        edit_options(&(struct lease_options) { .must_exist = true });
        expect_refused(FINDING_LEASE_NONE);
        edit_options(&(struct lease_options) { .sets_ip_over_ib = true, .ip_over_ib = true, .qos = { 4, 3, 1000 } });
        expect_edited();
        expect_options(true, 4, find("a")->created);
        edit_options(&(struct lease_options) { .must_exist = true });
        expect_edited();
}
END_TEST

START_TEST(qos_problems)
{
        static const struct { struct lease_qos qos; const char *word; } cases[] = {
                { { 0, 0, 100 }, "MTU" }, { { 3, 0, 100 }, "MTU" }, { { 2, 16, 100 }, "service level" }, { { 2, 0, 0 }, "rate" },
                { { 2, 0, 101 }, "rate" }, { { 4, 15, 24 }, "rate" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                ck_assert_ptr_nonnull(strstr(lease_qos_problem(&cases[i].qos), cases[i].word));
        ck_assert_ptr_null(lease_qos_problem(&(struct lease_qos) { 2, 0, 25 }));
        ck_assert_ptr_null(lease_qos_problem(&(struct lease_qos) { 4, 15, 12000 }));
}
END_TEST

/* --- leases that are not kept ------------------------------------------------------------------------------------------- */

static const struct lease_options drops = { .drops = true }, keeps = { .keeps = true };

static void edit_with(enum lease_edit_kind kind, const char *members, const struct lease_options *options)
{
        edit_as("a", &(struct lease_edit) {
                .kind = kind, .pool = "cloud", .groups = { { members } }, .n_groups = 1, .options = *options,
        });
}

/* Released when it was without members for as long as the pool says; the P_Key then rests as long. */
START_TEST(released_without_members)
{
        size_t n;

        serve(RESTING);
        edit_with(LEASE_ADD_MEMBERS, "node[1-2]", &drops);
        expect_edited();
        live_until(now + 300 * S);
        edit(LEASE_REMOVE_MEMBERS, "node1");
        expect_edited();
        live_until(now + 300 * S);
        edit(LEASE_REMOVE_MEMBERS, "node2");
        expect_edited();
        live_until(now + 59 * S);
        ck_assert_int_eq(find("a")->state, LEASE_ACTIVE);
        edit(LEASE_REMOVE_MEMBERS, "node2"); /* the time goes on */
        expect_edited();
        live_until(now + S);
        ck_assert_ptr_null(find("a"));
        expect_logged(LOG_EVENT_LEASE_RELEASED, "it had no members");
        (void) leases_rests(status()->leases, &n);
        ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(members_return)
{
        serve(RESTING);
        edit_with(LEASE_ADD_MEMBERS, "node1", &drops);
        edit(LEASE_SET_MEMBERS, "");
        expect_edited();
        live_until(now + 59 * S);
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        live_until(now + 300 * S);
        edit(LEASE_REMOVE_MEMBERS, NOBODY);
        expect_edited();
        live_until(now + 59 * S);
        ck_assert_ptr_nonnull(find("a"));
        live_until(now + S);
        ck_assert_ptr_null(find("a"));
}
END_TEST

/* Made without members, it waits as long. What is kept stays, also if that is said later. */
START_TEST(kept_or_not)
{
        serve(RESTING);
        edit_with(LEASE_ADD_MEMBERS, "", &drops);
        expect_edited();
        live_until(now + 59 * S);
        ck_assert(!find("a")->is_kept);
        live_until(now + S);
        ck_assert_ptr_null(find("a"));
        edit_with(LEASE_ADD_MEMBERS, "", &drops);
        expect_edited();
        edit_with(LEASE_ADD_MEMBERS, "", &keeps);
        expect_edited();
        edit_with(LEASE_SET_MEMBERS, "", &drops);
        expect_edited();
        ck_assert(find("a")->is_kept);
        live_until(now + 300 * S);
        ck_assert_ptr_nonnull(find("a"));
        restart(RESTING);
        live_until(now + 300 * S);
        ck_assert_ptr_nonnull(find("a"));
}
END_TEST

/* The time counts anew. */
START_TEST(not_kept_after_a_restart)
{
        serve(RESTING);
        edit_with(LEASE_ADD_MEMBERS, "node1", &drops);
        edit(LEASE_SET_MEMBERS, "");
        expect_edited();
        live_until(now + 50 * S);
        restart(RESTING);
        live_until(now + 45 * S);
        ck_assert_ptr_nonnull(find("a"));
        live_until(now + 5 * S);
        ck_assert_ptr_null(find("a"));
}
END_TEST

/* Without rest it ends at once, but the edit is stored and answered first. */
START_TEST(not_kept_without_rest)
{
        serve(POLICY);
        edit_with(LEASE_ADD_MEMBERS, "node1", &drops);
        expect_edited();
        store_waits = true;
        edit(LEASE_REMOVE_MEMBERS, "node1");
        while (state() != CONTROL_STORING_END && state() != CONTROL_IDLE)
                answer();
        ck_assert_int_eq(find("a")->state, LEASE_ACTIVE);
        store_waits = false;
        live_until(now);
        expect_answer(LEASE_EDITED);
        ck_assert_ptr_null(find("a"));
        ck_assert(!holds(hosts[0], 0x9000));
}
END_TEST

/* --- members that no port has yet --------------------------------------------------------------------------------------- */

START_TEST(a_member_appears)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, NOBODY ", node1, " NOBODY);
        expect_edited();
        ck_assert(holds(hosts[0], 0x9000));
        ck_assert_uint_eq(find("a")->n_members, 2);
        ck_assert_uint_eq(lease_n_in_force(find("a")), 1);
        look(POLICY);
        ck_assert_uint_eq(lease_n_in_force(find("a")), 1);
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POLICY);
        ck_assert(holds(hosts[2], 0x9000));
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 2);
        restart(POLICY);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 2);
        edit(LEASE_REMOVE_MEMBERS, NOBODY);
        expect_edited();
        ck_assert(!holds(hosts[2], 0x9000));
}
END_TEST

/* pkeyd itself writes only to ports that there are: the policy does not have the member before. */
START_TEST(not_expected_without_opensm)
{
        serve(POOL("ALL"));
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        look(POOL("ALL"));
        ck_assert(lease_member_is_unseen(&find("a")->members[0]));
        ck_assert_uint_eq(partition()->n_rules, 0);
}
END_TEST

/* With its file, OpenSM may serve ports that discovery does not find. */
START_TEST(expected_with_opensm)
{
        const char *mirror = "sweep_interval: 1h\nopensm: {mirror: /etc/opensm/partitions.conf}\n";

        serve(POOL("node1, " NOBODY));
        edit(LEASE_ADD_MEMBERS, NOBODY ", 0x000a0b0c0d0e0f02");
        expect_edited();
        ck_assert_int_eq(give_generation(make_generation(mirror, POOL("node1, " NOBODY)), 7), 0);
        live_until(now + 10 * S);
        ck_assert_uint_eq(partition()->n_rules, 1);
        ck_assert_uint_eq(partition()->rules[0].n_selectors, 1);
        ck_assert_uint_eq(partition()->rules[0].selectors[0]->guid.v, UINT64_C(0x000a0b0c0d0e0f01));
        ck_assert(lease_member_is_unseen(&find("a")->members[0]));
        ck_assert_uint_eq(lease_n_in_force(find("a")), 0);
        edit(LEASE_REMOVE_MEMBERS, NOBODY);
        ck_assert_uint_eq(partition()->n_rules, 0);
}
END_TEST

/* Whether OpenSM gets a GUID of which nothing is known, for a pool of this policy. */
static bool is_expected(const char *policy)
{
        const char *mirror = "sweep_interval: 1h\nopensm: {mirror: /etc/opensm/partitions.conf}\n";

        serve(policy);
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        ck_assert_int_eq(give_generation(make_generation(mirror, policy), 7), 0);
        live_until(now + 10 * S);
        return partition()->n_rules > 0;
}

/* A virtual function is a port of a CA, so a pool of all CAs has it. */
START_TEST(expected_of_all_cas)
{
        ck_assert(is_expected(POOL("node1, ALL_CAS")));
}
END_TEST

START_TEST(expected_of_a_group_of_all_cas)
{
        ck_assert(is_expected("groups: {cas: ALL_CAS}\n" POOL("cas")));
}
END_TEST

START_TEST(not_expected_of_a_group_of_hosts)
{
        ck_assert(!is_expected("groups: {some: node1}\n" POOL("some")));
}
END_TEST

START_TEST(not_expected_of_all_switches)
{
        ck_assert(!is_expected(POOL("ALL_SWITCHES")));
}
END_TEST

/* A stranger's port gets nothing. */
START_TEST(a_member_appears_outside_of_the_pool)
{
        serve_who_appears(POOL("node[1-2]"));
        look(POOL("node[1-2]"));
        ck_assert(!holds(hosts[2], 0x9000));
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
        ck_assert_uint_eq(count_logged(LOG_EVENT_LEASE_FAILED), 1);
}
END_TEST

/* Also not if it is gone when it is added again. */
START_TEST(a_member_outside_of_the_pool_returns)
{
        struct guid *guid = &port_of(hosts[2])->guid, own = *guid;

        serve(POOL("node[1-2]"));
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        guid->v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POOL("node[1-2]"));
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
        *guid = own;
        look(POOL("node[1-2]"));
        edit(LEASE_ADD_MEMBERS, NOBODY);
        expect_edited();
        guid->v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POOL("node[1-2]"));
        ck_assert(!holds(hosts[2], 0x9000));
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
}
END_TEST

static void call_node(unsigned node, const char *description)
{
        (void) snprintf(f.nodes[node].description, sizeof(f.nodes[node].description), "%s", description);
}

/* Its link is up before the host has set its name. */
START_TEST(a_member_appears_before_its_name)
{
        unsigned n;

        serve_who_appears(POLICY);
        call_node(hosts[2], "MT4123 ConnectX6 Mellanox Technologies");
        look(POLICY);
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
        n = noted.n_leases;
        look(POLICY);
        ck_assert_uint_eq(count_logged(LOG_EVENT_LEASE_FAILED), 1);
        ck_assert_uint_eq(noted.n_leases, n);
        call_node(hosts[2], "node3 mlx5_0");
        look(POLICY);
        ck_assert(holds(hosts[2], 0x9000));
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 1);
        restart(POLICY);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 1);
}
END_TEST

/* Somebody else claimed its name when it appeared. */
START_TEST(a_member_appears_beside_a_twin)
{
        serve_who_appears(POOL("node[2-3]"));
        call_node(hosts[0], "node3 mlx5_0");
        look(POOL("node[2-3]"));
        ck_assert(!holds(hosts[2], 0x9000));
        call_node(hosts[0], "node1 mlx5_0");
        look(POOL("node[2-3]"));
        ck_assert(holds(hosts[2], 0x9000));
}
END_TEST

/* Who was taken out meanwhile stays out. */
START_TEST(left_out_and_taken_out)
{
        serve(POOL("node[1-2]"));
        edit(LEASE_ADD_MEMBERS, NOBODY ", node1");
        expect_edited();
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POOL("node[1-2]"));
        edit(LEASE_REMOVE_MEMBERS, NOBODY);
        look(POLICY);
        ck_assert(!holds(hosts[2], 0x9000));
        ck_assert_uint_eq(find("a")->n_members, 1);
}
END_TEST

/* Another lease got index 0 of the port meanwhile. */
START_TEST(left_out_without_index0)
{
        serve(POOL("node[1-2]"));
        edit_index0(LEASE_ADD_MEMBERS, "a", NOBODY);
        expect_edited();
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POOL("node[1-2]"));
        ck_assert_int_eq(find("a")->members[0].state, LEASE_MEMBER_LEFT_OUT);
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f02);
        look(POLICY);
        edit_index0(LEASE_ADD_MEMBERS, "b", NOBODY);
        expect_edited();
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POLICY);
        ck_assert(holds(hosts[2], 0x9001));
        ck_assert(!holds(hosts[2], 0x9000));
        edit(LEASE_ADD_MEMBERS, "node1");
        expect_edited();
        edit_index0(LEASE_REMOVE_MEMBERS, "b", NOBODY);
        expect_edited();
        look(POLICY);
        ck_assert(holds(hosts[2], 0x9000));
}
END_TEST

START_TEST(members_survive_a_restart)
{
        serve(POLICY);
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node1", MEMBERSHIP_LIMITED));
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, "node2", MEMBERSHIP_FULL));
        edit_as("a", &EDIT(LEASE_ADD_MEMBERS, "cloud", 0, NOBODY, MEMBERSHIP_FULL));
        expect_edited();
        edit_as("b", &EDIT(LEASE_SET_MEMBERS, "cloud", 0, "", MEMBERSHIP_NONE));
        expect_edited();
        n_sets = 0;
        restart(POLICY);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(holds(hosts[0], 0x1000));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(find("a")->is_open);
        ck_assert_uint_eq(lease_n_wanted(find("a")), 3);
        ck_assert_uint_eq(lease_n_confirmed(find("a")), 2);
        ck_assert_ptr_nonnull(find("b"));
        port_of(hosts[2])->guid.v = UINT64_C(0x000a0b0c0d0e0f01);
        look(POLICY);
        ck_assert(holds(hosts[2], 0x9000));
}
END_TEST

START_TEST(a_reload_would_strand_it)
{
        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node[1-2]");
        expect_edited();
        look(POOL("node1"));
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        edit(LEASE_REMOVE_MEMBERS, "node2");
        expect_edited();
        look(POOL("node1"));
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(holds(hosts[0], 0x9000));
}
END_TEST

#define OTHER_GROUP(name) "groups:\n  " name ": node1\n"

static void undo(const char *policy)
{
        struct control_event event = { .kind = CONTROL_EVENT_UNDO, .asked = { .by = { .kind = ORIGIN_BUS }, .request = 9 } };
        uint64_t number = status()->in_force->number;

        ck_assert_int_eq(give(&event), 0);
        ck_assert_int_eq(give_undo(SETTINGS, policy), 0);
        live_until(now + 60 * S);
        ck_assert_uint_eq(status()->in_force->number, number + 1);
}

/* A host that reboots has the name of its firmware for a while: what the policy says of it has not changed. */
START_TEST(a_renamed_host_strands_nothing)
{
        serve(POLICY);
        look(POLICY OTHER_GROUP("x"));
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        call_node(hosts[2], "MT4123 ConnectX6 Mellanox Technologies");
        look(POLICY OTHER_GROUP("y"));
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        undo(POLICY OTHER_GROUP("x"));
        ck_assert_ptr_nonnull(find("a"));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(holds(hosts[2], 0x9000));
}
END_TEST

START_TEST(a_twin_strands_nothing)
{
        serve(POOL("node[2-3]"));
        look(POOL("node[2-3]") OTHER_GROUP("x"));
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        call_node(hosts[0], "node3 mlx5_0");
        look(POOL("node[2-3]") OTHER_GROUP("y"));
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        look(POOL("node3, 0x00000000000000fe"));
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED); /* it has no node2 */
        undo(POOL("node[2-3]") OTHER_GROUP("x"));
        ck_assert_ptr_nonnull(find("a"));
        ck_assert(holds(hosts[1], 0x9000));
        ck_assert(holds(hosts[2], 0x9000));
}
END_TEST

/* Claiming the name keeps no port in the lease that the candidate does not name at all. */
START_TEST(a_twin_keeps_nothing)
{
        serve(POOL("node[2-3]"));
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        call_node(hosts[0], "node3 mlx5_0");
        look(POOL("node2"));
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_LEASE_STRANDED);
}
END_TEST

/* An undo releases what the older policy had no place for. */
START_TEST(an_undo_strands_it)
{
        serve(POOL("node[1-2]"));
        look(POLICY);
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        undo(POOL("node[1-2]"));
        ck_assert_ptr_null(find("a"));
        ck_assert(!holds(hosts[1], 0x9000));
}
END_TEST

/* By the policy that is in force since before the restart. */
START_TEST(stranded_after_a_restart)
{
        struct generation *g = make_generation(SETTINGS, POLICY);

        serve(POLICY);
        edit(LEASE_ADD_MEMBERS, "node[2-3]");
        expect_edited();
        call_node(hosts[2], "MT4123 ConnectX6 Mellanox Technologies");
        g->number = 1;
        c = control_free(c);
        drop_actions();
        noted = (struct noted) {};
        start_generation(CONTROL_SERVE, make_generation(SETTINGS, POLICY OTHER_GROUP("x")), g);
        live_until(now + 10 * S);
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert(holds(hosts[2], 0x9000));
        look(POOL("node3"));
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
}
END_TEST

/* --- many members ------------------------------------------------------------------------------------------------------- */

/* GUIDs that no port has, of which `first` is the number. */
static void edit_many(enum lease_edit_kind kind, unsigned first, unsigned n)
{
        struct text texts[LEASE_MAX_GROUPS] = {};
        struct lease_edit e = { .kind = kind, .pool = "cloud" };

        for (unsigned i = 0; i < n; i++) {
                struct text *t = &texts[i / SELECTOR_MAX_ELEMENTS];

                text_add(t, "%s0x%x", i % SELECTOR_MAX_ELEMENTS > 0 ? "," : "", 0xa0000000 + first + i);
        }
        for (; texts[e.n_groups].bytes; e.n_groups++)
                e.groups[e.n_groups].members = texts[e.n_groups].bytes;
        edit_as("a", &e);
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                text_done(&texts[i]);
}

/* Those that leave do not count, but they need memory until a plan is made without them. */
START_TEST(many_members_exchanged)
{
        serve(POLICY);
        edit_many(LEASE_ADD_MEMBERS, 0, 10000);
        expect_edited();
        edit_many(LEASE_SET_MEMBERS, 100000, 10000);
        edit_many(LEASE_SET_MEMBERS, 200000, 10000);
        edit_many(LEASE_SET_MEMBERS, 300000, 10000);
        expect_refused(FINDING_LEASE_NOT_NOW);
        ck_assert_uint_eq(find("a")->n_members, 30000);
        live_until(now);
        ck_assert_uint_eq(find("a")->n_members, 10000);
        edit_many(LEASE_ADD_MEMBERS, 300000, 8001);
        expect_refused(FINDING_LEASE_PORTS);
        ck_assert_ptr_nonnull(strstr(noted.lease_text, "18001"));
        edit_many(LEASE_ADD_MEMBERS, 300000, 8000);
        expect_edited();
        restart(POLICY);
        ck_assert_uint_eq(find("a")->n_members, 18000);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                members_come_and_go, the_same_again, out_and_in, does_not_wait_for_a_mute_host, is_refused, ids_of_clients,
                edited_while_it_is_released, groups_of_members, groups_of_a_limited_lease,
                groups_that_overlap, no_groups, long_groups, one_lease_has_index0,
                index0_survives_a_restart, index0_is_refused, index0_is_written, index0_is_confirmed, options_stay,
                may_be_down, ipoib_of_a_lease, options_of_a_new_lease, qos_problems, released_without_members, members_return,
                kept_or_not, not_kept_after_a_restart, not_kept_without_rest, a_member_appears, not_expected_without_opensm,
                expected_with_opensm, expected_of_all_cas, expected_of_a_group_of_all_cas, not_expected_of_a_group_of_hosts,
                not_expected_of_all_switches, a_member_appears_outside_of_the_pool,
                a_member_outside_of_the_pool_returns, a_member_appears_before_its_name, a_member_appears_beside_a_twin,
                left_out_and_taken_out, left_out_without_index0, members_survive_a_restart, a_reload_would_strand_it,
                a_renamed_host_strands_nothing, a_twin_strands_nothing, a_twin_keeps_nothing,
                an_undo_strands_it, stranded_after_a_restart, many_members_exchanged,
        };

        return run_suite("open_leases", tests, ELEMENTS(tests));
}
