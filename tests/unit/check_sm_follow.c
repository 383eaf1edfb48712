/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who of a pair of head nodes writes. */

#include <check.h>
#include <infiniband/mad.h>

#include "host/sm_follow.h"

#define HOLD (3 * USEC_PER_SEC)

static struct sm_view view_of(uint16_t sm_lid)
{
        struct sm_view v = { .sm_lid = { sm_lid } };

        sm_view_add(&v, (struct lid) { 5 }, 0);
        sm_view_add(&v, (struct lid) { 16 }, 2);
        return v;
}

static bool see(struct sm_follow *r, uint16_t sm_lid, usec_t now)
{
        struct sm_view v = view_of(sm_lid);

        return sm_follow_see(r, &v, now, HOLD);
}

START_TEST(test_sm_is_here)
{
        static const uint16_t here[] = { 5, 16, 17, 18, 19 }, elsewhere[] = { 0, 1, 4, 6, 15, 20, 0xbfff, 0xffff };
        struct sm_view none = { .sm_lid = { 5 } };

        for (size_t i = 0; i < ELEMENTS(here); i++) {
                struct sm_view v = view_of(here[i]);

                ck_assert_msg(sm_is_here(&v), "LID %u", here[i]);
        }
        for (size_t i = 0; i < ELEMENTS(elsewhere); i++) {
                struct sm_view v = view_of(elsewhere[i]);

                ck_assert_msg(!sm_is_here(&v), "LID %u", elsewhere[i]);
        }
        ck_assert(!sm_is_here(&none));
        /* no SM, and a base LID that its LMC does not allow */
        sm_view_add(&none, (struct lid) { 1 }, 3);
        none.sm_lid.v = 0;
        ck_assert(!sm_is_here(&none));
        none.n_own = 0;
        /* a port without a LID has none, and no more are taken than there is room for */
        sm_view_add(&none, (struct lid) { 0 }, 0);
        ck_assert_uint_eq(none.n_own, 0);
        for (unsigned i = 0; i < 2 * SM_MAX_PORTS; i++)
                sm_view_add(&none, (struct lid) { (uint16_t) (100 + i) }, 0xff);
        ck_assert_uint_eq(none.n_own, SM_MAX_PORTS);
        ck_assert_uint_eq(none.own[0].lmc, 7);
}
END_TEST

static void add_host(struct subnet_builder *b, uint64_t guid, uint16_t lid, uint8_t lmc)
{
        struct subnet_node node = { .guid = { guid }, .type = NODE_CA, .num_ports = 1, .partition_cap = 32 };
        struct subnet_port port = {
                .number = 1, .state = PORT_STATE_ACTIVE, .guid = { guid + 1 }, .lid = { lid }, .lmc = lmc,
        };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

/* Another port of this host counts if it is in this subnet; one of another fabric has LIDs that mean nothing here. */
START_TEST(test_other_ports)
{
        const struct guid own[] = { { 0x101 }, { 0x201 }, { 0x901 } };
        struct arena *a = arena_new();
        struct sm_view v = {};
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(a, &b), 0);
        add_host(b, 0x100, 8, 0);
        add_host(b, 0x200, 12, 1);
        add_host(b, 0x300, 20, 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0x100 }, 1, (struct guid) { 0x300 }, 1, &s), 0);
        sm_view_add_known(&v, s, own, ELEMENTS(own));
        ck_assert_uint_eq(v.n_own, 2);
        v.sm_lid.v = 13;
        ck_assert(sm_is_here(&v));
        v.sm_lid.v = 20;
        ck_assert(!sm_is_here(&v));
        arena_free(a);
}
END_TEST

START_TEST(test_takes_over_after_a_wait)
{
        struct sm_follow r = {};

        ck_assert(see(&r, 9, 0));
        ck_assert_int_eq(r.state, SM_FOLLOW_STANDBY);
        ck_assert(!see(&r, 9, 10 * USEC_PER_SEC));
        ck_assert(see(&r, 10, 20 * USEC_PER_SEC)); /* another standby's SM: news of where it is */
        ck_assert_int_eq(r.state, SM_FOLLOW_STANDBY);
        ck_assert(see(&r, 5, 30 * USEC_PER_SEC));
        ck_assert_int_eq(r.state, SM_FOLLOW_TAKING_OVER);
        ck_assert_uint_eq(sm_follow_due(&r, HOLD), 33 * USEC_PER_SEC);
        ck_assert(!see(&r, 5, 33 * USEC_PER_SEC - 1));
        ck_assert_int_eq(r.state, SM_FOLLOW_TAKING_OVER);
        ck_assert(see(&r, 5, 33 * USEC_PER_SEC));
        ck_assert_int_eq(r.state, SM_FOLLOW_WRITER);
        ck_assert(!see(&r, 17, 40 * USEC_PER_SEC)); /* it moved to another LID of this host */
        ck_assert_int_eq(r.state, SM_FOLLOW_WRITER);
        ck_assert(see(&r, 0, 50 * USEC_PER_SEC)); /* the place of the SM is not known: stop */
        ck_assert_int_eq(r.state, SM_FOLLOW_STANDBY);
}
END_TEST

/* At the start it is not known whether the other pkeyd writes. */
START_TEST(test_first_look)
{
        struct sm_follow r = {};

        ck_assert(see(&r, 5, 7));
        ck_assert_int_eq(r.state, SM_FOLLOW_TAKING_OVER);
        ck_assert(see(&r, 5, 7 + HOLD));
        ck_assert_int_eq(r.state, SM_FOLLOW_WRITER);
}
END_TEST

/* The SM went away while this one waited: the wait begins anew when it is back. */
START_TEST(test_flaps)
{
        struct sm_follow r = {};

        (void) see(&r, 5, 0);
        (void) see(&r, 9, HOLD - 1);
        ck_assert_int_eq(r.state, SM_FOLLOW_STANDBY);
        (void) see(&r, 5, HOLD);
        ck_assert_int_eq(r.state, SM_FOLLOW_TAKING_OVER);
        ck_assert_uint_eq(sm_follow_due(&r, HOLD), 2 * HOLD);
}
END_TEST

/* The SM may have moved and returned between two queries. */
START_TEST(test_events)
{
        struct sm_follow r = {};

        (void) see(&r, 5, 0);
        (void) see(&r, 5, HOLD);
        ck_assert_int_eq(r.state, SM_FOLLOW_WRITER);
        sm_follow_doubt(&r);
        ck_assert(see(&r, 5, 10 * HOLD));
        ck_assert_int_eq(r.state, SM_FOLLOW_TAKING_OVER);
        sm_follow_doubt(&r);
        ck_assert(!see(&r, 5, 11 * HOLD - 1));
        ck_assert_uint_eq(sm_follow_due(&r, HOLD), 12 * HOLD - 1);
        (void) see(&r, 5, 12 * HOLD - 1);
        ck_assert_int_eq(r.state, SM_FOLLOW_WRITER);
        sm_follow_doubt(&r);
        ck_assert(see(&r, 9, 20 * HOLD));
        ck_assert_int_eq(r.state, SM_FOLLOW_STANDBY);
        ck_assert(!r.doubted);
}
END_TEST

/* Two heads and an SM that goes back and forth, each of which hears of it up to a second late and asks itself while it
 * writes: they never write at once. */
START_TEST(test_never_two_writers)
{
        const usec_t step = 10 * USEC_PER_MSEC, period = 7 * USEC_PER_SEC;
        struct sm_follow hosts[2] = {};
        usec_t looked[2] = {};
        unsigned wrote[2] = {};

        for (usec_t now = 2 * period; now < 20 * period; now += step) {
                bool writing[2];

                for (unsigned h = 0; h < 2; h++) {
                        /* the new master sets PortInfo of its own port first */
                        usec_t heard = now / period % 2 == h || now % period >= USEC_PER_SEC ? now : now - now % period - 1;
                        struct sm_view v = { .sm_lid = { heard / period % 2 == 0 ? 1 : 2 } };

                        sm_view_add(&v, (struct lid) { (uint16_t) (1 + h) }, 0);
                        if (now >= looked[h] + SM_ANSWER_VALID) {
                                (void) sm_follow_see(&hosts[h], &v, now, SM_HOLD);
                                looked[h] = now;
                        }
                        writing[h] = hosts[h].state == SM_FOLLOW_WRITER;
                        wrote[h] += writing[h];
                }
                ck_assert_msg(!writing[0] || !writing[1], "both write at %" PRIu64, now);
        }
        ck_assert_uint_gt(wrote[0], 0);
        ck_assert_uint_gt(wrote[1], 0);
}
END_TEST

/* --- the guard --- */

/* A stage that sends Sets and Gets by turns for ever. */
struct endless {
        unsigned n_sent, n_results;
        bool ended;
        uint64_t last_cookie;
};

static bool endless_next(void *state, usec_t now, struct mad_request *ret)
{
        struct endless *s = state;

        (void) now;
        if (s->ended)
                return false;
        *ret = (struct mad_request) { .method = s->n_sent % 2 ? MAD_GET : MAD_SET, .cookie = s->n_sent };
        s->n_sent++;
        return true;
}

static void endless_result(void *state, usec_t now, const struct mad_result *result)
{
        struct endless *s = state;

        (void) now;
        s->n_results++;
        s->last_cookie = result->cookie;
}

static bool endless_done(const void *state)
{
        return ((const struct endless *) state)->ended;
}

static void endless_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        *ret_done = ((const struct endless *) state)->n_sent;
        *ret_total = 1000;
}

static void endless_end(void *userdata)
{
        ((struct endless *) userdata)->ended = true;
}

static struct sm_guard guard_of(struct endless *s, usec_t asked_at)
{
        return (struct sm_guard) {
                .inner = { s, endless_next, endless_result, endless_done, endless_progress }, .m_key = 0x55,
                .asked_at = asked_at, .end = endless_end, .userdata = s,
        };
}

static void answer_query(struct mad_stage *guard, const struct mad_request *query, uint16_t lid, uint16_t sm_lid)
{
        struct mad_result result = { .cookie = query->cookie, .outcome = MAD_ANSWERED };

        mad_set_field(result.data, 0, IB_PORT_LID_F, lid);
        mad_set_field(result.data, 0, IB_PORT_SMLID_F, sm_lid);
        guard->result(guard->state, 0, &result);
}

/* A Set may be sent until SM_ANSWER_VALID after the last question whose answer was yes; a Get has no such limit. */
START_TEST(test_guard_limits_sets)
{
        struct endless s = {};
        struct sm_guard g = guard_of(&s, 1000);
        struct mad_stage stage = sm_guard_stage(&g);
        struct mad_request r;

        ck_assert(stage.next(stage.state, 1000, &r));
        ck_assert_int_eq(r.method, MAD_SET);
        ck_assert_uint_eq(r.send_before, 1000 + SM_ANSWER_VALID);
        ck_assert(stage.next(stage.state, 1000 + SM_ANSWER_VALID - 1, &r));
        ck_assert_int_eq(r.method, MAD_GET);
        ck_assert_uint_eq(r.send_before, 0);
        /* now it asks first, and nothing else is sent */
        ck_assert(stage.next(stage.state, 1000 + SM_ANSWER_VALID, &r));
        ck_assert_uint_eq(r.attribute, SMP_ATTR_PORT_INFO);
        ck_assert_uint_eq(r.key, 0x55);
        ck_assert_uint_eq(r.send_before, 0);
        ck_assert(!stage.next(stage.state, 1000 + 10 * SM_ANSWER_VALID, &(struct mad_request) {}));
        ck_assert_uint_eq(s.n_sent, 2);
        answer_query(&stage, &r, 7, 7);
        ck_assert(!s.ended);
        ck_assert(stage.next(stage.state, 1000 + 2 * SM_ANSWER_VALID - 1, &r));
        ck_assert_int_eq(r.method, MAD_SET);
        ck_assert_uint_eq(r.send_before, 1000 + 2 * SM_ANSWER_VALID); /* from the question, not from its answer */
        ck_assert_uint_eq(s.n_results, 0);
}
END_TEST

/* The SM is on another host, or the port does not answer: the apply ends. Any port of this host counts. */
START_TEST(test_guard_ends)
{
        static const struct {
                enum mad_outcome outcome;
                uint16_t lid, sm_lid;
                bool ends;
        } cases[] = {
                { MAD_ANSWERED, 7, 7, false }, { MAD_ANSWERED, 7, 9, true },  { MAD_ANSWERED, 7, 0, true },
                { MAD_TIMED_OUT, 7, 7, true }, { MAD_UNSENT, 7, 7, true },    { MAD_ANSWERED, 7, 20, false },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct endless s = {};
                struct sm_guard g = guard_of(&s, 0);
                struct mad_stage stage = sm_guard_stage(&g);
                struct mad_request r;

                sm_view_add(&g.others, (struct lid) { 20 }, 0);
                ck_assert(stage.next(stage.state, SM_ANSWER_VALID, &r));
                ck_assert(!stage.done(stage.state));
                if (cases[i].outcome == MAD_ANSWERED)
                        answer_query(&stage, &r, cases[i].lid, cases[i].sm_lid);
                else
                        stage.result(stage.state, 0,
                                     &(struct mad_result) { .cookie = r.cookie, .outcome = cases[i].outcome });
                ck_assert_msg(s.ended == cases[i].ends, "case %zu", i);
                ck_assert_int_eq(stage.done(stage.state), cases[i].ends);
        }
}
END_TEST

/* What is the stage's own goes to the stage; a question that is out is waited for. */
START_TEST(test_guard_passes_on)
{
        struct endless s = {};
        struct sm_guard g = guard_of(&s, 0);
        struct mad_stage stage = sm_guard_stage(&g);
        struct mad_request r;
        uint64_t done, total;

        ck_assert(stage.next(stage.state, 0, &r));
        ck_assert(stage.next(stage.state, SM_ANSWER_VALID, &r));
        stage.result(stage.state, 0, &(struct mad_result) { .cookie = 0, .outcome = MAD_ANSWERED });
        ck_assert_uint_eq(s.n_results, 1);
        ck_assert_uint_eq(s.last_cookie, 0);
        stage.progress(stage.state, &done, &total);
        ck_assert(done == 1 && total == 1000);
        s.ended = true;
        ck_assert(!stage.done(stage.state));
        answer_query(&stage, &r, 7, 7);
        ck_assert(stage.done(stage.state));
        ck_assert(!stage.next(stage.state, 10 * SM_ANSWER_VALID, &r)); /* no query after the inner stage is done */
}
END_TEST

START_TEST(test_described)
{
        static const struct {
                struct sm_follow f;
                const char *name, *text;
        } cases[] = {
                { { .state = SM_FOLLOW_UNKNOWN }, "", "standing by: the location of the master SM is not known yet" },
                { { .state = SM_FOLLOW_STANDBY, .sm_lid = { 5 } }, "", "standing by: the master SM is at LID 5" },
                { { .state = SM_FOLLOW_STANDBY, .sm_lid = { 5 } }, "h2",
                  "standing by: the master SM is at LID 5 (node h2)" },
                { { .state = SM_FOLLOW_TAKING_OVER, .sm_lid = { 5 } }, "h2",
                  "taking over: the master SM is on this host (LID 5), waiting for the other head node to "
                  "notice" },
                { { .state = SM_FOLLOW_WRITER, .sm_lid = { 5 } }, "h2",
                  "writing: the master SM is on this host (LID 5)" },
        };
        char text[192];

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                sm_follow_describe(&cases[i].f, cases[i].name, text, sizeof(text));
                ck_assert_str_eq(text, cases[i].text);
        }
}
END_TEST

int main(void)
{
        Suite *s = suite_create("SM tracking");
        TCase *t = tcase_create("sm_follow");
        SRunner *runner;
        int failed;

        tcase_add_test(t, test_sm_is_here);
        tcase_add_test(t, test_other_ports);
        tcase_add_test(t, test_takes_over_after_a_wait);
        tcase_add_test(t, test_first_look);
        tcase_add_test(t, test_flaps);
        tcase_add_test(t, test_events);
        tcase_add_test(t, test_never_two_writers);
        tcase_add_test(t, test_guard_limits_sets);
        tcase_add_test(t, test_guard_ends);
        tcase_add_test(t, test_guard_passes_on);
        tcase_add_test(t, test_described);
        suite_add_tcase(s, t);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
