/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that are pinned (pins/pins.h), from one sweep to the next. */

#include "control_fixture.h"

#define PIN      "identity: pin\n"
#define SETTINGS PIN "sweep_interval: 10s\n"
#define NO_PINS  "sweep_interval: 10s\n"

static void rename_node(unsigned node, const char *description)
{
        (void) snprintf(f.nodes[node].description, sizeof(f.nodes[node].description), "%s", description);
}

static void next_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}

static void reload(const char *settings, const char *policy)
{
        ck_assert_int_eq(give_candidate(settings, policy, 7), 0);
        until(CONTROL_OPENING_PORT);
        sweep();
}

static unsigned count_pins(const struct store_transaction *t)
{
        unsigned n = 0;

        for (size_t i = 0; i < t->n; i++)
                n += strncmp(t->ops[i].key, RECORDS_PIN, strlen(RECORDS_PIN)) == 0;
        return n;
}

/* All names of the fabric are bound in the first sweep: head1, the leaf, three hosts. They are stored before the first write. */
START_TEST(stored_before_the_first_write)
{
        store_waits = true;
        start(SETTINGS, POLICY_1);
        until(CONTROL_STORING);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(count_pins(take(CONTROL_STORE)->transaction), 5);
        store_waits = false;
        ck_assert_int_eq(give_stored(0), 0);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->pins->n, 5);
        next_sweep();
        ck_assert_uint_eq(noted.n_pins, 1); /* not stored again */
}
END_TEST

/* node3 takes the name of node1, then that of nobody. It keeps what it had, and node1 is not frozen. */
START_TEST(renamed)
{
        uint64_t since;

        start(SETTINGS, POLICY_1 "      node3: limited\n");
        sweep();
        forget_log();
        rename_node(hosts[2], "node1 mlx5_0");
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert(holds(hosts[2], 0x0010) && !holds(hosts[2], 0x8010));
        ck_assert_uint_eq(status()->n_frozen, 0);
        ck_assert_uint_eq(status()->n_claims, 1);
        ck_assert_uint_eq(status()->claims[0].since, UINT64_C(1700000000) + now / USEC_PER_SEC);
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_CLAIMED), 1);
        expect_logged(LOG_EVENT_NAME_CLAIMED, " calls itself 'node1 mlx5_0', a name that is pinned to 0x");
        expect_logged(LOG_EVENT_NAME_CLAIMED, "for the policy it is still 'node3 mlx5_0'");
        expect_logged(LOG_EVENT_NAME_CLAIMED, "; if the name is right: pkeyctl pin accept node1 0x");
        ck_assert_str_eq(last_logged(LOG_EVENT_NAME_CLAIMED)->node, "node1 mlx5_0/1");
        since = status()->claims[0].since;
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_CLAIMED), 1);
        ck_assert_uint_eq(status()->claims[0].since, since);
        rename_node(hosts[2], "other mlx5_0");
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_CLAIMED), 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_SETTLED), 0);
        ck_assert(holds(hosts[2], 0x0010));
        rename_node(hosts[2], "node3 mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_claims, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_SETTLED), 1);
        expect_logged(LOG_EVENT_NAME_SETTLED, "no longer claims a name: its name is pinned to it");
}
END_TEST

static bool lose_name(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == hosts[2] && request->attribute == SMP_ATTR_NODE_DESCRIPTION;
}

/* node3 calls itself node1, and then does not answer what it calls itself: that does not end the claim. */
START_TEST(claim_outlasts_silence)
{
        uint64_t since;

        start(SETTINGS, POLICY_1);
        sweep();
        rename_node(hosts[2], "node1 mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_claims, 1);
        since = status()->claims[0].since;
        for (unsigned i = 0; i < 4; i++) {
                lose = i < 2 ? lose_name : NULL;
                until(CONTROL_OPENING_PORT);
                until(CONTROL_DISCOVERING);
                sweep();
                ck_assert_uint_eq(status()->n_claims, 1);
                ck_assert_uint_eq(status()->claims[0].since, since);
                ck_assert_ptr_nonnull(strstr(status()->claims[0].text, " calls itself 'node1 mlx5_0'"));
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_CLAIMED), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_NAME_SETTLED), 0);
        lose = lose_name;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_int_eq(give_candidate(NO_PINS, POLICY_1, 7), 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(status()->n_claims, 0);
        expect_logged(LOG_EVENT_NAME_SETTLED, "no longer claims a name: names are no longer pinned");
}
END_TEST

/* node3 was never seen before it calls itself node1: it gets nothing by that name. */
START_TEST(new_host_with_a_name)
{
        fabsim_disconnect(&f, hosts[2], 1);
        start(SETTINGS, POLICY_1);
        sweep();
        rename_node(hosts[2], "node1 mlx5_0");
        fabsim_connect(&f, hosts[2], 1, leaf, 4);
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010));
        ck_assert_uint_eq(status()->n_frozen, 0);
        expect_logged(LOG_EVENT_NAME_CLAIMED, "; it gets no partition by that name; if the name is right: pkeyctl pin accept node1 0x");
        expect_logged(LOG_EVENT_NAME_CLAIMED, "if its adapter replaced the other one: pkeyctl replace 0x");
        fabsim_disconnect(&f, hosts[2], 1);
        next_sweep();
        expect_logged(LOG_EVENT_NAME_SETTLED, ": it is no longer in the fabric");
}
END_TEST

/* The host boots: for a while it has no name. That is no claim, and takes nothing. */
START_TEST(not_named_yet)
{
        start(SETTINGS, POLICY_1);
        sweep();
        rename_node(hosts[0], "MT4123 ConnectX6   Mellanox Technologies");
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->n_claims, 0);
        rename_node(hosts[0], "");
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* The key comes and goes with a reload. What a refused policy would bind is not bound. */
START_TEST(turned_on_and_off)
{
        start(NO_PINS, POLICY_1);
        sweep();
        ck_assert_ptr_null(status()->pins);
        ck_assert_uint_eq(noted.n_pins, 0);
        reload(SETTINGS, POLICY_REFUSED);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.n_pins, 0);
        rename_node(hosts[0], "node2 mlx5_0");
        rename_node(hosts[1], "node1 mlx5_0");
        next_sweep();
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010));
        reload(SETTINGS, POLICY_1); /* on the known fabric */
        ck_assert_uint_eq(noted.n_pins, 1);
        rename_node(hosts[0], "node1 mlx5_0");
        next_sweep();
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010));
        ck_assert_uint_eq(status()->n_claims, 1);
        rename_node(hosts[1], "node9 mlx5_0");
        reload(NO_PINS, POLICY_2);
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
        ck_assert_ptr_null(status()->pins);
        expect_logged(LOG_EVENT_NAME_SETTLED, ": names are no longer pinned");
        ck_assert_uint_eq(noted.n_pins, 1); /* they stay in the store */
}
END_TEST

/* An edit on the known fabric is carried out by the pinned names, too. */
START_TEST(reload_with_a_claim)
{
        start(SETTINGS, POLICY_1);
        sweep();
        rename_node(hosts[2], "node2 mlx5_0");
        next_sweep();
        reload(SETTINGS, POLICY_2);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(holds(hosts[1], 0x8010) && !holds(hosts[2], 0x8010));
}
END_TEST

/* What another process stored counts: an admin accepted a name. */
START_TEST(accepted)
{
        struct remembered *changed = remembered_new("boot");
        struct control_event locked = { .kind = CONTROL_EVENT_LOCK, .lock.changed = changed };

        start(SETTINGS, POLICY_1);
        sweep();
        rename_node(hosts[0], "node2 mlx5_0");
        rename_node(hosts[1], "node1 mlx5_0");
        next_sweep();
        ck_assert_uint_eq(status()->n_claims, 2);
        for (uint32_t i = 0; i < status()->pins->n; i++)
                ck_assert_int_eq(pins_add(&changed->pins, &status()->pins->items[i]), 0);
        for (uint32_t i = 0; i < 2; i++)
                ck_assert_int_eq(pins_accept(&changed->pins, status()->snapshot->subnet,
                                             subnet_find_node(status()->snapshot->subnet, f.nodes[hosts[i]].guid), 1), 0);
        until(CONTROL_LOCKING);
        (void) take(CONTROL_LOCK);
        ck_assert_int_eq(give(&locked), 0);
        next_sweep();
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010));
        ck_assert_uint_eq(status()->n_claims, 0);
        expect_logged(LOG_EVENT_NAME_SETTLED, ": its name is pinned to it");
}
END_TEST

/* OpenSM's file names hosts that are down by the names that they had; not one that had the name of another. */
START_TEST(down_with_a_claim)
{
        char guid[32];

        (void) snprintf(guid, sizeof(guid), "0x%016" PRIx64 "=full", port_of(hosts[2])->guid.v);
        start(OPENSM PIN, POLICY_1);
        sweep();
        rename_node(hosts[2], "node1 mlx5_0");
        next_sweep();
        fabsim_disconnect(&f, hosts[2], 1);
        next_sweep();
        ck_assert_int_eq(give_candidate(OPENSM PIN, POLICY_2, 7), 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_ptr_nonnull(strstr(file_at(FILE_CONF)->bytes, "p=0x0010"));
        ck_assert_msg(!strstr(file_at(FILE_CONF)->bytes, guid), "%s is in\n%s", guid, file_at(FILE_CONF)->bytes);
}
END_TEST

/* pkeyctl apply binds names, too. */
START_TEST(apply_stores)
{
        start_with(CONTROL_APPLY, SETTINGS "beside_opensm: true\n", POLICY_1, NULL);
        sweep();
        ck_assert_uint_gt(noted.n_pins, 0);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

START_TEST(plan_does_not_store)
{
        start_with(CONTROL_PLAN, SETTINGS, POLICY_1, NULL);
        sweep();
        ck_assert_uint_eq(noted.n_pins, 0);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                stored_before_the_first_write, renamed, claim_outlasts_silence, new_host_with_a_name, not_named_yet,
                turned_on_and_off, reload_with_a_claim, accepted, down_with_a_claim, apply_stores, plan_does_not_store,
        };

        return run_suite("control with pins", tests, ELEMENTS(tests));
}
