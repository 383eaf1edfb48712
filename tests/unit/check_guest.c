/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control on one of two head nodes that share a store. */
#include "control_fixture.h"

#define S USEC_PER_SEC

static void sm_moves_elsewhere(void)
{
        f.sm = (struct fabsim_place) { hosts[2], 1 };
}

static void sm_moves_here(void)
{
        f.sm = (struct fabsim_place) { head, 1 };
}

static struct generation *generation_of_other(uint64_t number, const char *policy)
{
        struct generation *g = make_generation(FOLLOW_SM, policy);

        g->number = number;
        return g;
}

/* What the other head node stored since. */
static void fill_changed(struct control_lock *lock, uint64_t number, const char *policy)
{
        lock->changed = remembered_new("this boot");
        ck_assert_ptr_nonnull(lock->changed);
        lock->changed->generation = number;
        lock->in_force = generation_of_other(number, policy);
}

static void give_followed(uint64_t number, const char *policy)
{
        struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };

        take(CONTROL_FOLLOW_STORE);
        if (policy)
                fill_changed(&event.lock, number, policy);
        ck_assert_int_eq(give(&event), 0);
}

static void give_changed_lock(uint64_t number, const char *policy)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK };

        take(CONTROL_LOCK);
        fill_changed(&event.lock, number, policy);
        ck_assert_int_eq(give(&event), 0);
}

static void live(usec_t time)
{
        live_until(now + time);
}

static void start_as_guest(const char *policy)
{
        shares_store = true;
        sm_moves_elsewhere();
        start_with(CONTROL_SERVE, FOLLOW_SM, policy, NULL);
}

/* Of a guest nothing is stored, because the lock is the writer's. */
START_TEST(stands_by_without_the_lock)
{
        start_as_guest(POLICY_1);
        ck_assert_int_eq(state(), CONTROL_FOLLOWING);
        sweep();
        ck_assert(status()->standby && !status()->writing);
        for (unsigned i = 0; i < 3; i++) {
                until(CONTROL_FOLLOWING);
                while (state() != CONTROL_IDLE) {
                        ck_assert_int_ne(state(), CONTROL_LOCKING);
                        answer();
                }
        }
        ck_assert_uint_eq(noted.n_stored, 0);
        ck_assert_uint_eq(noted.n_unlocked, 0);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

START_TEST(follows_the_writer)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_2);
        ck_assert_uint_eq(status()->in_force->number, 7);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 7);
        expect_logged(LOG_EVENT_GENERATION, "generation 7: 2 partitions");
        expect_logged(LOG_EVENT_RELOAD_REFUSED, "generation 7 stays in force");
        until(CONTROL_FOLLOWING);
        give_followed(0, NULL);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 1);
        until(CONTROL_FOLLOWING);
        give_followed(8, POLICY_3);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 8);
        expect_logged(LOG_EVENT_GENERATION, "generation 8: 2 partitions");
}
END_TEST

/* It goes on comparing by what it knew last, and says so. */
START_TEST(store_cannot_be_read)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        ck_assert_ptr_null(strstr(status()->text, "the store"));
        for (unsigned i = 0; i < 2; i++) {
                struct control_event event = {
                        .kind = CONTROL_EVENT_FOLLOWED,
                        .lock = { .r = -EHOSTUNREACH, .why = i ? "no member answers" : NULL },
                };

                until(CONTROL_FOLLOWING);
                take(CONTROL_FOLLOW_STORE);
                ck_assert_int_eq(give(&event), 0);
                sweep();
                ck_assert_uint_eq(status()->in_force->number, 7);
                ck_assert_ptr_nonnull(strstr(status()->text, i ? "the store cannot be read: no member answers; generation 7: "
                                                               : "the store cannot be read: No route to host; generation 7: "));
        }
        until(CONTROL_FOLLOWING);
        sweep();
        ck_assert_ptr_null(strstr(status()->text, "the store"));
}
END_TEST

/* The policy in force is the writer's, whatever the files here say. */
START_TEST(refuses_other_files)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 0); /* its files are those */
        give_candidate(FOLLOW_SM, POLICY_3, 5);
        live(120 * S);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_RELOAD_STANDBY);
        ck_assert_uint_eq(status()->in_force->number, 7);
        ck_assert(status()->in_force->is_off_file);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* A change was made on the writer, copied to this host, and reloaded here before this host has read of it. */
START_TEST(takes_copied_files)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        give_candidate(FOLLOW_SM, POLICY_3, 5);
        until(CONTROL_FOLLOWING);
        give_followed(8, POLICY_3);
        ck_assert_int_eq(state(), CONTROL_IDLE); /* the next sweep discovers and reads everything */
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert(!status()->in_force->is_off_file);
        ck_assert_uint_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 0);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.answered_generation, 8);
}
END_TEST

/* The store cannot be reached: what the other head node did is not known, so this one does not become the writer. */
START_TEST(no_writer_without_the_store)
{
        start_as_guest(POLICY_1);
        sweep();
        sm_moves_here();
        for (unsigned i = 0; i < 10; i++) {
                until(CONTROL_LOCKING);
                take(CONTROL_LOCK);
                give_lock(-EHOSTUNREACH, 0);
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert(strstr(status()->text, "nothing is written, because the store cannot be used: "));
                ck_assert(!status()->writing);
        }
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* The SM was on the other host for a moment, which wrote and stored, and this one has not noticed. */
START_TEST(other_head_wrote_unnoticed)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK };

        shares_store = true;
        start(FOLLOW_SM, POLICY_1);
        live_until(now + 120 * S);
        ck_assert(status()->writing);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        fill_changed(&event.lock, 1, POLICY_3);
        event.lock.by_other_head = true;
        ck_assert_int_eq(give(&event), 0);
        ck_assert(!status()->writing && status()->standby);
        ck_assert_uint_eq(status()->in_force->policy->n_partitions, 2);
        live_until(now + 120 * S);
        ck_assert(status()->writing);
        ck_assert(holds(hosts[2], 0x8010)); /* by its policy, of the same number */
}
END_TEST

static void until_state(enum control_state wanted)
{
        while (state() != wanted) {
                if (!waits())
                        wait_until_due();
                else
                        answer();
        }
}

static void until_lock(void)
{
        until_state(CONTROL_LOCKING);
}

/* It locks, takes what the other one stored last, reads everything again, and writes that. */
START_TEST(takes_over)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        sm_moves_here();
        until_lock();
        ck_assert_uint_eq(n_sets, 0);
        give_changed_lock(8, POLICY_3);
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert_uint_eq(n_sets, 0); /* what was read is older */
        until_lock();
        answer();
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010) && holds(hosts[2], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert_uint_gt(noted.n_stored, 0);
}
END_TEST

/* The store was lost while it stood by, and the other one began a new one without a generation: it stores its own. */
START_TEST(takes_over_with_a_new_store)
{
        struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };

        start_as_guest(POLICY_1);
        give_followed(7, POLICY_3);
        sweep();
        until(CONTROL_FOLLOWING);
        take(CONTROL_FOLLOW_STORE);
        event.lock.changed = remembered_new("this boot");
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(status()->in_force->number, 7);
        sweep();
        ck_assert_uint_eq(noted.n_stored, 0);
        sm_moves_here();
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert(holds(hosts[2], 0x8010));
        ck_assert_uint_eq(noted.stored_generation, 7);
        ck_assert_uint_eq(noted.n_generations, 1);
}
END_TEST

/* The other one brought a generation into force that this host cannot load, because of an error in its own pkeyd.yaml. */
static void give_not_loaded(enum control_action_kind kind, uint64_t number)
{
        struct control_event event = { .kind = kind == CONTROL_LOCK ? CONTROL_EVENT_LOCK : CONTROL_EVENT_FOLLOWED };

        take(kind);
        event.lock.changed = remembered_new("this boot");
        event.lock.changed->generation = number;
        ck_assert_int_eq(give(&event), 0);
}

static void expect_not_loaded(void)
{
        ck_assert_ptr_nonnull(strstr(status()->text, "nothing is written, because the store cannot be used: generation 8, which is in "
                                                     "force, cannot be loaded"));
        ck_assert(status()->not_loaded);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(noted.n_stored, 0);
}

/* An older one does not come back. */
START_TEST(does_not_take_over_by_an_older_generation)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_3);
        sweep();
        until(CONTROL_FOLLOWING);
        give_not_loaded(CONTROL_FOLLOW_STORE, 8);
        sweep();
        expect_not_loaded();
        give_candidate(FOLLOW_SM, POLICY_2, 5);
        live(60 * S);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert_uint_eq(status()->in_force->number, 7);
        sm_moves_here();
        until_lock();
        give_not_loaded(CONTROL_LOCK, 8);
        expect_not_loaded();
        live(120 * S);
        expect_not_loaded();
        until_lock();
        give_changed_lock(8, POLICY_2);
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert(holds(hosts[1], 0x8010) && !holds(hosts[2], 0x8010));
}
END_TEST

/* The same after a restart. The files of this host are older. */
START_TEST(does_not_start_with_an_older_policy)
{
        static const struct findings none = {};
        struct control_event event = { .kind = CONTROL_EVENT_START };

        shares_store = true;
        c = control_new(&(struct control_config) { .goal = CONTROL_SERVE, .program = "pkeyd 1", .shares_store = true });
        event.start = (struct control_start) {
                .remembered = remembered_new("this boot"), .candidate = make_generation(FOLLOW_SM, POLICY_3), .findings = &none,
        };
        event.start.remembered->generation = 8;
        ck_assert_int_eq(give(&event), 0);
        live(120 * S);
        ck_assert_ptr_null(status()->in_force);
        expect_not_loaded();
        until_lock();
        give_changed_lock(8, POLICY_1);
        ck_assert_uint_eq(status()->in_force->number, 8);
}
END_TEST

/* It knows what it has adopted already. */
START_TEST(has_what_is_in_force)
{
        static const struct { uint64_t number; const char *policy; bool is_missing; } cases[] = {
                { 7, NULL, false }, { 7, POLICY_1, false }, { 7, POLICY_2, true }, { 8, POLICY_1, true }, { 6, NULL, true },
                { 0, NULL, false },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };

                start_as_guest(POLICY_1);
                give_followed(7, POLICY_1);
                sweep();
                until(CONTROL_FOLLOWING);
                take(CONTROL_FOLLOW_STORE);
                event.lock.changed = remembered_new("this boot");
                event.lock.changed->generation = cases[i].number;
                event.lock.changed->policy = cases[i].policy;
                event.lock.changed->n_policy = cases[i].policy ? strlen(cases[i].policy) : 0;
                ck_assert_int_eq(give(&event), 0);
                ck_assert_int_eq(status()->not_loaded, cases[i].is_missing);
                teardown();
                setup();
        }
}
END_TEST

/* pkeyctl apply brought it into force, and the writer cannot load it. What it stored itself it has in any case. */
START_TEST(writer_cannot_load_what_was_applied)
{
        shares_store = true;
        start_generation(CONTROL_SERVE, make_generation(FOLLOW_SM, POLICY_1), generation_of_other(7, POLICY_1));
        live(120 * S);
        ck_assert(status()->writing);
        until_lock();
        give_not_loaded(CONTROL_LOCK, 7);
        live(120 * S);
        ck_assert(status()->writing && !status()->not_loaded);
        until_lock();
        n_sets = noted.n_stored = 0;
        give_not_loaded(CONTROL_LOCK, 8);
        expect_not_loaded();
        put_key(hosts[0], 1, 0);
        live(120 * S);
        expect_not_loaded();
        until_lock();
        give_changed_lock(8, POLICY_1);
        live(120 * S);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* It notices between two sweeps, when it is about to store a confirmation of its own generation. */
START_TEST(writer_stores_nothing_of_an_older_generation)
{
        struct generation *g = generation_of_other(7, POLICY_1);

        g->facts.confirm_for = 1000;
        g->facts.confirm_until = (wall_offset + now) / S + 1000;
        shares_store = true;
        start_generation(CONTROL_SERVE, make_generation(FOLLOW_SM, POLICY_1), g);
        live(120 * S);
        until(CONTROL_IDLE);
        noted.n_stored = 0;
        ck_assert_int_eq(give_kind(CONTROL_EVENT_CONFIRM), 0);
        ck_assert_int_eq(state(), CONTROL_LOCKING_FACTS);
        give_not_loaded(CONTROL_LOCK, 8);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        live(120 * S);
        ck_assert_uint_eq(noted.n_stored, 0);
}
END_TEST

/* It was started while the store could not be read: its files are those of the generation in force, or a change. */
START_TEST(learns_late_what_is_in_force)
{
        static const struct { const char *policy; uint64_t number; } cases[] = { { POLICY_1, 7 }, { POLICY_3, 8 } };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                shares_store = true;
                start_with(CONTROL_SERVE, FOLLOW_SM, cases[i].policy, NULL);
                until_lock();
                take(CONTROL_LOCK);
                give_lock(-EHOSTUNREACH, 0);
                until_lock();
                give_changed_lock(7, POLICY_1);
                ck_assert_uint_eq(status()->in_force->number, 7);
                live(120 * S);
                ck_assert(status()->writing);
                ck_assert_uint_eq(status()->in_force->number, cases[i].number);
                ck_assert_uint_eq(noted.n_generations, i);
                ck_assert_int_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 0);
                teardown();
                setup();
        }
}
END_TEST

/* The other one still has the lock: it may write. */
START_TEST(waits_for_the_lock)
{
        start_as_guest(POLICY_1);
        sweep();
        sm_moves_here();
        until_lock();
        for (unsigned i = 0; i < 5; i++) {
                take(CONTROL_LOCK);
                give_lock(-EWOULDBLOCK, 77);
                ck_assert_int_eq(state(), CONTROL_LOCKING);
                wait_until_due();
        }
        expect_logged(LOG_EVENT_LOCK_WAIT, "process 77 is writing");
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* The time to confirm is the writer's; whoever takes over goes on with it. */
START_TEST(confirm_timer_of_the_writer)
{
        struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };

        start_as_guest(POLICY_1);
        take(CONTROL_FOLLOW_STORE);
        fill_changed(&event.lock, 7, POLICY_2);
        event.lock.in_force->facts.time = (wall_offset + now) / S;
        event.lock.in_force->facts.confirm_for = 600;
        event.lock.in_force->facts.confirm_until = (wall_offset + now) / S + 600;
        ck_assert_int_eq(give(&event), 0);
        live(1200 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_UNDO_FAILED), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRM_SOON), 0);
        sm_moves_here();
        live(120 * S);
        expect_logged(LOG_EVENT_UNDO_FAILED, "generation 7 was not confirmed in time"); /* this store has none before it */
}
END_TEST

static enum finding_code release_unknown(uint64_t request)
{
        struct control_event event = {
                .kind = CONTROL_EVENT_LEASE, .lease = { .kind = LEASE_RELEASE, .id = "job", .by.request = request },
        };

        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(noted.lease_request, request);
        ck_assert_int_eq(noted.lease_outcome, LEASE_REFUSED);
        return noted.code;
}

/* Between two sweeps the lock is not held, and what is in memory may be old. */
static enum finding_code release_outdated(uint64_t request)
{
        enum finding_code code;

        store_is_outdated = true;
        code = release_unknown(request);
        store_is_outdated = false;
        return code;
}

/* Whoever has the lock may be the other head node, which took over unnoticed and makes leases. */
START_TEST(another_may_have_made_a_lease)
{
        shares_store = true;
        start(FOLLOW_SM, POLICY_1);
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert_int_eq(release_unknown(1), FINDING_LEASE_NONE);
        ck_assert_int_eq(release_outdated(5), FINDING_LEASE_NOT_NOW);
        until_lock();
        take(CONTROL_LOCK);
        give_lock(-EWOULDBLOCK, 77);
        ck_assert_int_eq(release_unknown(2), FINDING_LEASE_NOT_NOW);
        wait_until_due();
        take(CONTROL_LOCK);
        give_lock(-EHOSTUNREACH, 0);
        ck_assert_int_eq(release_unknown(3), FINDING_LEASE_NOT_NOW);
        live(120 * S);
        ck_assert_int_eq(release_unknown(4), FINDING_LEASE_NONE);
}
END_TEST

/* While it stood by an entry disappeared that the other one never read: its index is not given to another base. */
START_TEST(takes_over_with_the_indexes_that_it_saw)
{
        start_as_guest(POLICY_1);
        put_key(hosts[0], 1, 0x8020);
        give_followed(7, POLICY_1);
        sweep();
        put_key(hosts[0], 1, 0);
        until(CONTROL_FOLLOWING);
        give_followed(0, NULL);
        sweep();
        sm_moves_here();
        until_lock();
        give_changed_lock(8, POLICY_1);
        live(120 * S);
        ck_assert_uint_eq(f.nodes[hosts[0]].ports[1].table[1].v, 0);
        ck_assert_uint_eq(f.nodes[hosts[0]].ports[1].table[2].v, 0x8010);
}
END_TEST

/* The SM is on the other host again before this one has taken over. Both lock, and each finds what the other one stored. */
START_TEST(notices_that_it_does_not_take_over)
{
        uint64_t n = 8;

        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        sm_moves_here();
        until_lock();
        sm_moves_elsewhere();
        for (usec_t end = now + 60 * S; now < end;)
                if (state() == CONTROL_LOCKING)
                        give_changed_lock(n++, POLICY_1);
                else if (waits())
                        answer();
                else
                        wait_until_due();
        ck_assert_uint_le(n, 10);
        ck_assert(status()->standby);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* Not even when it queries where the SM is, because its sweeps are outdated again and again. */
START_TEST(does_not_take_over_by_old_tables)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        sm_moves_here();
        for (uint64_t n = 8; n < 12; n++) {
                until_lock();
                give_changed_lock(n, POLICY_1);
                while (state() != CONTROL_IDLE)
                        answer();
                ck_assert(!status()->writing && status()->standby);
        }
        live(10 * S);
        ck_assert(status()->writing);
}
END_TEST

/* --- OpenSM's file -------------------------------------------------------------------------------------------------- */

#define GUEST_MIRROR FOLLOW_SM "opensm: {mirror: " FILE_CONF "}\n"

static void start_mirror(void)
{
        shares_store = true;
        sm_moves_elsewhere();
        start_with(CONTROL_SERVE, GUEST_MIRROR, POLICY_1, NULL);
}

/* Its own OpenSM reads the file when it becomes the master. Nothing is stored, because the store is the writer's. */
START_TEST(mirrors_without_the_lock)
{
        start_mirror();
        for (unsigned i = 0; i < 3; i++) {
                sweep();
                ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                ck_assert_ptr_nonnull(strstr(file_at(FILE_CONF)->bytes, "=0x0010"));
                until(CONTROL_FOLLOWING);
        }
        ck_assert_uint_eq(noted.n_stored, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_STATE_DIR), 0);
}
END_TEST

/* What the store of the writer has of this host: it was read, and has nothing. */
static void know_empty(struct remembered *m, unsigned node)
{
        static const char value[] = "{\"capacity\":32,\"read\":true,\"entries\":\"\",\"read_at\":1,\"presence\":\"there\","
                                    "\"since\":2,\"seen_at\":300,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                                    "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";
        const char *key = arena_printf(arena, KNOWLEDGE_PREFIX "endport/0x%016" PRIx64 "/1", f.nodes[node].guid.v);

        ck_assert_int_eq(knowledge_restore(m->knowledge, "x", key, value, strlen(value)), 0);
}

static bool may_hold(unsigned node, uint16_t base)
{
        const struct knowledge *k = status()->knowledge;
        uint32_t record = knowledge_find(k, (struct knowledge_name) { f.nodes[node].guid, 1, KNOWLEDGE_ENDPORT });

        return knowledge_table_bounds(k, record, base).may != LEVEL_NONE;
}

static void give_other_policy(enum control_event_kind kind)
{
        struct control_event event = { .kind = kind };

        fill_changed(&event.lock, 8, POLICY_1);
        know_empty(event.lock.changed, hosts[0]);
        know_empty(event.lock.changed, hosts[1]);
        ck_assert_int_eq(give(&event), 0);
}

/* By its file its own OpenSM may have written to a host before that became mute: the store does not have it. */
START_TEST(own_opensm_may_have_written)
{
        start_mirror();
        sweep();
        ck_assert_ptr_nonnull(strstr(file_at(FILE_CONF)->bytes, "=0x0010"));
        port_of(hosts[0])->mute = true;
        sm_moves_here();
        until_lock();
        take(CONTROL_LOCK);
        give_other_policy(CONTROL_EVENT_LOCK);
        ck_assert(may_hold(hosts[0], 0x0010));
        ck_assert(!may_hold(hosts[1], 0x0010));
}
END_TEST

/* When it starts, it does not know what that OpenSM has done meanwhile. */
START_TEST(own_opensm_while_it_was_down)
{
        for (unsigned i = 0; i < 4; i++) {
                bool is_mirror = i & 1, is_in_force = i & 2; /* or in the files */
                struct generation *g = make_generation(is_mirror ? GUEST_MIRROR : FOLLOW_SM, POLICY_1);
                struct control_event event = {
                        .kind = CONTROL_EVENT_START,
                        .start = { .remembered = remembered_new("x"), .findings = &findings,
                                   .candidate = is_in_force ? NULL : g, .in_force = is_in_force ? g : NULL },
                };

                g->number = 7;
                start_as_guest(POLICY_1);
                know_empty(event.start.remembered, hosts[0]);
                c = control_free(c);
                c = control_new(&(struct control_config) { .goal = CONTROL_SERVE, .program = "pkeyd", .shares_store = true });
                ck_assert_int_eq(give(&event), 0);
                ck_assert_int_eq(may_hold(hosts[0], 0x0010), is_mirror);
                teardown();
                setup();
        }
}
END_TEST

static void confirm(uint64_t request)
{
        struct control_event event = { .kind = CONTROL_EVENT_CONFIRM, .asked.request = request };

        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(noted.requests[0], request);
}

static void let_wait(struct generation *g)
{
        g->facts.time = (wall_offset + now) / S;
        g->facts.confirm_for = 600;
        g->facts.confirm_until = g->facts.time + 600;
}

/* A guest stores nothing, so its word would not count. */
START_TEST(confirm_on_the_standby)
{
        struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };

        start_as_guest(POLICY_1);
        take(CONTROL_FOLLOW_STORE);
        fill_changed(&event.lock, 7, POLICY_2);
        let_wait(event.lock.in_force);
        ck_assert_int_eq(give(&event), 0);
        sweep();
        confirm(5);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRMED), 0);
        ck_assert(generation_waits(&status()->in_force->facts));
}
END_TEST

/* Generation 2 is in force on the writer, and waits. */
static void wait_for_confirmation(void)
{
        struct generation *g = make_generation(FOLLOW_SM, POLICY_2);

        shares_store = true;
        start(FOLLOW_SM, POLICY_1);
        live(120 * S);
        g->facts.confirm_for = 600;
        ck_assert_int_eq(give_generation(g, 4), 0);
        live(10 * S);
        ck_assert(generation_waits(&status()->in_force->facts));
}

/* The writer is about to store that it is confirmed. */
static void confirm_a_change(void)
{
        wait_for_confirmation();
        ck_assert_int_eq(give(&(struct control_event) { .kind = CONTROL_EVENT_CONFIRM, .asked.request = 5 }), 0);
        ck_assert_int_eq(state(), CONTROL_LOCKING_FACTS);
}

/* The other head node took over, and the confirmation is not in the store. */
START_TEST(confirmation_that_was_not_stored)
{
        struct control_event changed = { .kind = CONTROL_EVENT_LOCK, .lock.by_other_head = true };

        confirm_a_change();
        take(CONTROL_LOCK);
        fill_changed(&changed.lock, 2, POLICY_2);
        let_wait(changed.lock.in_force);
        ck_assert_int_eq(give(&changed), 0);
        ck_assert_uint_eq(noted.requests[0], 5);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert(generation_waits(&status()->in_force->facts));
}
END_TEST

/* pkeyctl confirm stored it, on either head node. */
START_TEST(confirmed_by_pkeyctl)
{
        for (unsigned elsewhere = 0; elsewhere < 2; elsewhere++) {
                struct control_event changed = { .kind = CONTROL_EVENT_LOCK, .lock.by_other_head = elsewhere };
                struct remembered *m;

                wait_for_confirmation();
                until_lock();
                take(CONTROL_LOCK);
                fill_changed(&changed.lock, 2, POLICY_2);
                let_wait(changed.lock.in_force);
                changed.lock.in_force->facts.confirmed = 4711;
                m = changed.lock.changed;
                m->policy = POLICY_2;
                m->n_policy = strlen(POLICY_2);
                m->files.facts = changed.lock.in_force->facts;
                ck_assert_int_eq(give(&changed), 0);
                live(1200 * S);
                ck_assert_uint_eq(status()->in_force->number, 2);
                ck_assert_uint_eq(status()->in_force->facts.confirmed, 4711);
                expect_logged(LOG_EVENT_CONFIRMED, "generation 2 is confirmed");
                ck_assert_uint_eq(noted.n_undos, 0);
                teardown();
                setup();
        }
}
END_TEST

/* pkeyctl undo, on this host, brought another generation into force before the confirmation was stored. */
START_TEST(confirmation_that_was_overtaken)
{
        confirm_a_change();
        give_changed_lock(3, POLICY_1);
        ck_assert_uint_eq(noted.requests[0], 5);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        live(10 * S);
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert_uint_eq(status()->in_force->facts.confirmed, 0);
}
END_TEST

/* The lease of the lock ended while the records were loaded, which the store does not give again. */
START_TEST(loses_the_lock_while_it_loads)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK, .lock.r = -ENOLCK };

        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        sweep();
        sm_moves_here();
        until_lock();
        take(CONTROL_LOCK);
        fill_changed(&event.lock, 8, POLICY_3);
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert_uint_eq(n_sets, 0);
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert(holds(hosts[2], 0x8010));
}
END_TEST

/* The lease of the lock ends while tables are written. */
START_TEST(loses_the_lock)
{
        shares_store = true;
        start(FOLLOW_SM, POLICY_1);
        until_lock();
        lock_is_held = false;
        live(120 * S);
        for (unsigned i = 0; i < N_HOSTS; i++)
                ck_assert(!holds(hosts[i], 0x8010));
        expect_logged(LOG_EVENT_LOCK_LOST, "pkeyd lost the lock in etcd, because its lease ended");
        ck_assert_uint_eq(status()->numbers.n_refused_by_gate, 0);
        lock_is_held = true;
        live(120 * S);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

static void change_under_the_writer(uint64_t number)
{
        until_lock();
        give_changed_lock(number, POLICY_3);
        live(120 * S);
}

/* pkeyctl apply, on either head node, brought a policy into force. An older one does not come back. */
START_TEST(writer_goes_on_with_what_was_applied)
{
        struct generation *g = generation_of_other(5, POLICY_1);

        shares_store = true;
        start_generation(CONTROL_SERVE, make_generation(FOLLOW_SM, POLICY_1), g);
        live(120 * S);
        ck_assert(status()->writing);
        ck_assert_uint_eq(status()->in_force->number, 5);
        change_under_the_writer(4);
        ck_assert_uint_eq(status()->in_force->number, 5);
        ck_assert(!holds(hosts[2], 0x8010));
        change_under_the_writer(6);
        ck_assert_uint_eq(status()->in_force->number, 6);
        ck_assert(holds(hosts[2], 0x8010));
}
END_TEST

/* pkeyd has files that are not in force yet, when a generation comes into force elsewhere that waits to be confirmed. */
START_TEST(no_other_files_while_a_change_waits)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK };

        shares_store = true;
        start(FOLLOW_SM, POLICY_1);
        live(120 * S);
        ck_assert(status()->writing);
        until_lock();
        give_candidate(FOLLOW_SM, POLICY_3, 5);
        take(CONTROL_LOCK);
        fill_changed(&event.lock, 8, POLICY_2);
        event.lock.in_force->facts.confirm_for = 600;
        event.lock.in_force->facts.confirm_until = (wall_offset + now) / S + 600;
        ck_assert_int_eq(give(&event), 0);
        live(120 * S);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_CONFIRM_WAITS);
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert(status()->in_force->is_off_file);
}
END_TEST

/* --- leases ----------------------------------------------------------------------------------------------------------- */

#define POOL_POLICY POLICY_1 "pools:\n  jobs:\n    pkeys: 0x1000-0x1002\n    ports: ALL_CAS\n    lease: 1h\n    allow: alice\n"

static const char *asker = "alice";

static void ask(enum lease_request_kind kind, uint64_t request)
{
        const char *const names[] = { asker };
        struct control_event event = {
                .kind = CONTROL_EVENT_LEASE,
                .lease = {
                        .kind = kind, .id = "job", .wish = { .pool = "jobs", .members = "node[1-2]" },
                        .by = { .origin = { .kind = ORIGIN_BUS, .user = "alice" }, .names = names, .n_names = 1, .request = request },
                },
        };

        ck_assert_int_eq(give(&event), 0);
}

static void ask_for_lease(uint64_t request)
{
        ask(LEASE_CREATE, request);
}

static void expect_answer(uint64_t request, enum lease_outcome outcome)
{
        ck_assert_uint_eq(noted.lease_request, request);
        ck_assert_str_eq(lease_outcome_to_string(noted.lease_outcome), lease_outcome_to_string(outcome));
}

START_TEST(passes_requests_on)
{
        start_as_guest(POOL_POLICY);
        ask_for_lease(5); /* while it reads */
        expect_answer(5, LEASE_ELSEWHERE);
        sweep();
        asker = "mallory"; /* what is passed on is stored, so nobody but clients may ask */
        ask_for_lease(100); /* the other head node may know her already */
        expect_answer(100, LEASE_ELSEWHERE);
        for (enum lease_request_kind kind = LEASE_CREATE; kind <= LEASE_EDIT; kind++) {
                ask(kind, 101 + kind);
                expect_answer(101 + kind, LEASE_REFUSED);
                ck_assert_int_eq(noted.code, FINDING_LEASE_ACCESS);
        }
        live(10 * S);
        ask_for_lease(110);
        expect_answer(110, LEASE_ELSEWHERE);
        asker = "alice";
        ask_for_lease(6);
        expect_answer(6, LEASE_ELSEWHERE);
        ck_assert_ptr_null(leases_find(status()->leases, "job"));
        sm_moves_here();
        for (uint64_t i = 7; status()->guest; i++) { /* also when it is about to write */
                ask_for_lease(i);
                expect_answer(i, LEASE_ELSEWHERE);
                ck_assert_ptr_null(leases_find(status()->leases, "job"));
                if (waits())
                        answer();
                else
                        wait_until_due();
        }
        live(120 * S);
        ck_assert(status()->writing);
        ask_for_lease(1000);
        live(1 * S);
        expect_answer(1000, LEASE_GRANTED);
}
END_TEST

static void begin_to_write(void)
{
        shares_store = true;
        start(FOLLOW_SM, POOL_POLICY);
        live(120 * S);
        ck_assert(status()->writing);
}

/* On the head node that has taken over unnoticed the lease may have ended since. */
START_TEST(grants_nothing_by_old_memory)
{
        begin_to_write();
        ask_for_lease(5);
        live(1 * S);
        expect_answer(5, LEASE_GRANTED);
        store_is_outdated = true;
        ask_for_lease(6);
        expect_answer(6, LEASE_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_LEASE_NOT_NOW);
        store_is_outdated = false;
        ask_for_lease(7);
        live(1 * S);
        expect_answer(7, LEASE_GRANTED);
}
END_TEST

/* If pkeyd were killed now, the lease would be in force again, and who was told that there is none would not know. */
START_TEST(says_nothing_of_an_end_that_is_not_stored)
{
        begin_to_write();
        ask_for_lease(5);
        ask(LEASE_RELEASE, 6);
        ck_assert_ptr_null(leases_find(status()->leases, "job"));
        ck_assert_int_eq(release_unknown(7), FINDING_LEASE_NOT_NOW);
        live(1 * S);
        ck_assert_int_eq(release_unknown(8), FINDING_LEASE_NONE);
}
END_TEST

static void begin_lease_of_mute_port(void)
{
        begin_to_write();
        f.nodes[hosts[1]].ports[1].mute = FABSIM_MUTE_P_KEYS;
        ask_for_lease(5);
        live(3 * S);
        ck_assert_uint_eq(noted.lease_request, 0);
}

/* On the head node that has taken over unnoticed the lease may have ended and been made again. */
START_TEST(releases_nothing_by_old_memory)
{
        shares_store = true;
        start(FOLLOW_SM "enforcement: off\n", POOL_POLICY);
        live(120 * S);
        ask_for_lease(5);
        live(1 * S);
        f.nodes[hosts[1]].ports[1].mute = FABSIM_MUTE_P_KEYS;
        ask(LEASE_RELEASE, 6);
        live(3 * S);
        expect_answer(6, LEASE_IS_RELEASING);
        store_is_outdated = true;
        ask(LEASE_RELEASE, 7);
        expect_answer(7, LEASE_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_LEASE_NOT_NOW);
        store_is_outdated = false;
        ask(LEASE_RELEASE, 8);
        expect_answer(8, LEASE_IS_RELEASING);
}
END_TEST

/* Nobody waits at a pkeyd that does not write any more. */
START_TEST(passes_on_who_waits)
{
        begin_lease_of_mute_port();
        sm_moves_elsewhere();
        live(120 * S);
        ck_assert(status()->guest);
        expect_answer(5, LEASE_ELSEWHERE);
}
END_TEST

/* What is stored is answered: on the other head node the lease may have ended, and asking there would get "none". */
START_TEST(answers_a_release_that_is_stored)
{
        shares_store = true;
        start(FOLLOW_SM, POOL_POLICY);
        live(120 * S);
        ask_for_lease(5);
        live(1 * S);
        expect_answer(5, LEASE_GRANTED);
        ask(LEASE_RELEASE, 6);
        until_state(CONTROL_APPLYING);
        sm_moves_elsewhere();
        ck_assert_int_eq(give(&(struct control_event) { .kind = CONTROL_EVENT_VERBS, .verbs = { VERBS_SM_CHANGE, "a" } }), 0);
        live(120 * S);
        ck_assert(status()->guest);
        expect_answer(6, LEASE_IS_RELEASING);
}
END_TEST

static struct lease *lease_of_other(void)
{
        struct lease *lease = lease_new();

        lease->id = "other";
        lease->wish = (struct lease_wish) { .pool = "jobs", .members = "node[1-2]" };
        lease->state = LEASE_ACTIVE;
        lease->base = 0x1001;
        lease->membership = MEMBERSHIP_FULL;
        lease->members = arena_new_array(lease->arena, struct lease_member, 2);
        for (lease->n_members = 0; lease->n_members < 2; lease->n_members++)
                lease->members[lease->n_members] = (struct lease_member) {
                        .node = f.nodes[hosts[lease->n_members]].guid, .port = port_of(hosts[lease->n_members])->guid, .number = 1,
                        .name = "a node", .membership = MEMBERSHIP_FULL,
                };
        return lease;
}

static unsigned n_confirmed(void)
{
        const struct lease *lease = leases_find(status()->leases, "other");
        unsigned n = 0;

        ck_assert_ptr_nonnull(lease);
        for (uint32_t i = 0; i < lease->n_members; i++)
                n += lease->members[i].state == LEASE_MEMBER_CONFIRMED;
        return n;
}

/* It shows of the other one's leases what it has read itself. */
START_TEST(looks_at_leases)
{
        struct control_event event = { .kind = CONTROL_EVENT_FOLLOWED };
        uint64_t changes;

        put_key(hosts[0], 3, 0x9001);
        start_as_guest(POOL_POLICY);
        give_followed(7, POOL_POLICY);
        sweep();
        until(CONTROL_FOLLOWING);
        take(CONTROL_FOLLOW_STORE);
        fill_changed(&event.lock, 7, POOL_POLICY);
        ck_assert_int_eq(leases_restore(event.lock.changed->leases, lease_of_other()), 0);
        changes = status()->lease_changes;
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_gt(status()->lease_changes, changes);
        ck_assert_uint_eq(n_confirmed(), 1);
        put_key(hosts[1], 2, 0x9001);
        sweep();
        ck_assert_uint_eq(n_confirmed(), 2);
        ck_assert_uint_eq(leases_find(status()->leases, "other")->members[0].index, 3);
        put_key(hosts[0], 3, 0);
        live(120 * S);
        ck_assert_uint_eq(n_confirmed(), 1);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* The same, where the store tells before the SM that the other one wrote. */
START_TEST(passes_on_who_waits_when_the_store_changed)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK };

        begin_lease_of_mute_port();
        until_lock();
        take(CONTROL_LOCK);
        fill_changed(&event.lock, 9, POOL_POLICY);
        event.lock.by_other_head = true;
        ck_assert_int_eq(give(&event), 0);
        expect_answer(5, LEASE_ELSEWHERE);
        ck_assert_ptr_null(leases_find(status()->leases, "job"));
}
END_TEST

static void say_store_changed(void)
{
        ck_assert_int_eq(give(&(struct control_event) { .kind = CONTROL_EVENT_STORE_CHANGED }), 0);
}

/* Between two sweeps only: each begins by reading the store. */
START_TEST(follows_between_sweeps)
{
        start_as_guest(POLICY_1);
        give_followed(7, POLICY_1);
        say_store_changed();
        ck_assert_int_ne(state(), CONTROL_FOLLOWING);
        sweep();
        say_store_changed();
        ck_assert_int_eq(state(), CONTROL_FOLLOWING);
        give_followed(8, POLICY_3);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->in_force->number, 8);
        until(CONTROL_FOLLOWING); /* the next sweep comes nevertheless */
        give_followed(0, NULL);
        sweep();
        sm_moves_here();
        live(120 * S);
        ck_assert(status()->writing);
        say_store_changed();
        ck_assert_int_ne(state(), CONTROL_FOLLOWING);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                stands_by_without_the_lock, follows_the_writer, store_cannot_be_read, refuses_other_files,
                takes_copied_files, takes_over, takes_over_with_the_indexes_that_it_saw,
                takes_over_with_a_new_store, does_not_take_over_by_an_older_generation, does_not_start_with_an_older_policy,
                has_what_is_in_force, writer_cannot_load_what_was_applied, writer_stores_nothing_of_an_older_generation,
                learns_late_what_is_in_force,
                waits_for_the_lock,
                confirm_timer_of_the_writer, loses_the_lock, loses_the_lock_while_it_loads, no_other_files_while_a_change_waits,
                notices_that_it_does_not_take_over, does_not_take_over_by_old_tables, mirrors_without_the_lock,
                own_opensm_may_have_written, own_opensm_while_it_was_down,
                confirm_on_the_standby, confirmation_that_was_not_stored, confirmation_that_was_overtaken, confirmed_by_pkeyctl,
                writer_goes_on_with_what_was_applied, no_writer_without_the_store, other_head_wrote_unnoticed,
                passes_requests_on, passes_on_who_waits, answers_a_release_that_is_stored,
                looks_at_leases,
                passes_on_who_waits_when_the_store_changed, follows_between_sweeps,
                another_may_have_made_a_lease, grants_nothing_by_old_memory, releases_nothing_by_old_memory,
                says_nothing_of_an_end_that_is_not_stored,
        };

        return run_suite("guest", tests, ELEMENTS(tests));
}
