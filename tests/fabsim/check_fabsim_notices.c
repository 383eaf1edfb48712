/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that the virtual fabric drops, an SA that reports them, and the real engine with the real subscription: each dropped
 * packet leads to one notice with its sender and receiver. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "mad_engine/dispatcher.h"
#include "notices/notices.h"
#include "prng.h"

#define HOSTS    5
#define SA_KEY   0x5e
#define LID_OF(host) ((uint16_t) (10 + (host)))
#define LEAF_LID 30
#define KEY_ALL  0xffff
#define KEY_A    0x8010 /* hosts 2 and 3 */
#define KEY_B    0x8011 /* host 4 holds it, the switch port beside it does not let it in */

/* Host 0 is pkeyd's, the SM is at host 1 or 2. */
struct setup {
        struct fabsim f;
        unsigned leaf;
        struct fabsim_place host[HOSTS];
        struct events events;
        struct prng rng;
        unsigned loss; /* of a thousand frames, each way */
        usec_t now;
        struct mad_dispatcher *dispatcher;
        struct notices *notices;
        struct mad_background_task task;
};

static void put_keys(struct fabsim_port *p, const uint16_t *keys, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                p->table[i].v = keys[i];
}

static void setup_fabric(struct setup *s)
{
        s->leaf = fabsim_add_node(&s->f, NODE_SWITCH, 8, 8, "leaf");
        fabsim_set_enforcement_cap(&s->f, s->leaf, 32, true, true);
        s->f.nodes[s->leaf].ports[0].lid.v = LEAF_LID;
        for (unsigned h = 0; h < HOSTS; h++) {
                s->host[h] = (struct fabsim_place) { fabsim_add_node(&s->f, NODE_CA, 1, 32, "host"), 1 };
                fabsim_connect(&s->f, s->host[h].node, 1, s->leaf, (uint8_t) (h + 1));
                fabsim_port_at(&s->f, s->host[h])->lid.v = LID_OF(h);
                put_keys(fabsim_port_at(&s->f, s->host[h]), (const uint16_t[]) { KEY_ALL, h >= 2 ? KEY_A : 0 },
                         h == 4 ? 1 : 2);
        }
        put_keys(fabsim_port_at(&s->f, s->host[4]), (const uint16_t[]) { KEY_ALL, KEY_B }, 2);
        put_keys(&s->f.nodes[s->leaf].ports[5], (const uint16_t[]) { KEY_ALL }, 1);
        s->f.nodes[s->leaf].ports[5].enforce_inbound = true;
        s->f.self = s->host[0];
        s->f.sm = s->host[1];
        s->f.sa.key = SA_KEY;
}

static void open_port(struct setup *s)
{
        struct mad_engine_config config = { .window = 16, .timeout = 500 * USEC_PER_MSEC,
                                            .tid_key = prng_next(&s->rng) };

        ck_assert_int_eq(mad_dispatcher_new(&config, &s->dispatcher), 0);
        mad_dispatcher_set_tasks(s->dispatcher, &s->task, 1);
}

/* As a session does it: requests under way get no result. */
static void close_port(struct setup *s)
{
        s->dispatcher = mad_dispatcher_free(s->dispatcher);
        s->task.reset(s->task.state, s->now);
}

static void setup_init(struct setup *s, uint64_t seed)
{
        memset(s, 0, sizeof(*s));
        setup_fabric(s);
        s->rng.state = seed;
        s->now = USEC_PER_SEC;
        s->notices = notices_new();
        ck_assert_ptr_nonnull(s->notices);
        s->task = notices_task(s->notices);
        open_port(s);
}

static void setup_done(struct setup *s)
{
        close_port(s);
        (void) notices_free(s->notices);
        events_done(&s->events);
}

/* --- the wire --------------------------------------------------------------------------------------------------------- */

static void on_the_way(struct setup *s, enum event_kind kind, const struct mad_frame *frame)
{
        if (!prng_permille(&s->rng, s->loss))
                events_add(&s->events, s->now + 5 + prng_below(&s->rng, 50), kind)->frame = *frame;
}

/* All that can be done now. */
static void turn(struct setup *s)
{
        struct mad_frame frame;

        while (mad_dispatcher_next_send(s->dispatcher, s->now, &frame))
                on_the_way(s, EVENT_ARRIVE, &frame);
        while (fabsim_sa_next_report(&s->f, s->now, &frame))
                on_the_way(s, EVENT_DELIVER, &frame);
}

static void carry_out(struct setup *s, const struct event *e)
{
        struct fabsim_place at;
        struct mad_frame answer;
        unsigned hops;

        if (e->kind == EVENT_DELIVER)
                mad_dispatcher_receive(s->dispatcher, s->now, &e->frame);
        else if (fabsim_route(&s->f, &e->frame, &at, &hops) && fabsim_answer(&s->f, s->now, at, &e->frame, &answer))
                on_the_way(s, EVENT_DELIVER, &answer);
}

static usec_t next_at(const struct setup *s)
{
        usec_t at = MIN(events_next_at(&s->events), mad_dispatcher_due(s->dispatcher));

        return MIN(at, fabsim_sa_due(&s->f));
}

/* Lets so much time pass. */
static void run(struct setup *s, usec_t duration)
{
        usec_t until = s->now + duration;
        struct event *e;

        for (;;) {
                turn(s);
                if (next_at(s) > until)
                        break;
                s->now = MAX(s->now, next_at(s));
                while (events_next_at(&s->events) <= s->now) {
                        e = events_take(&s->events);
                        carry_out(s, e);
                        free(e);
                }
        }
        s->now = until;
}

static void subscribe_at(struct setup *s, unsigned host, uint64_t key, bool again)
{
        struct notices_sa sa = { .lid.v = LID_OF(host), .sm_key = key };

        notices_set_sa(s->notices, s->now, &sa, again);
}

static struct notices_status status(const struct setup *s)
{
        struct notices_status ret;

        notices_get_status(s->notices, &ret);
        return ret;
}

/* --- packets --------------------------------------------------------------------------------------------------------- */

/* What must come out of it; a trap of 0: nothing. */
struct expected {
        unsigned from, to;
        uint16_t key, trap;
};

static const struct expected packets[] = {
        { 2, 3, KEY_A, 0 },     /* passes */
        { 2, 0, KEY_A, 257 },   /* host 0 does not have it */
        { 3, 1, KEY_A, 257 },
        { 4, 3, KEY_B, 259 },   /* the switch port of host 4 does not have it */
        { 4, 0, KEY_ALL, 0 },
        { 0, 3, KEY_A, 0 },     /* host 0 has nothing to send it with */
};

#define PACKETS (sizeof(packets) / sizeof(packets[0]))

static void send_packet(struct setup *s, const struct expected *p)
{
        (void) fabsim_send_packet(&s->f, s->host[p->from], s->host[p->to], (struct p_key) { p->key });
}

static bool is_of(const struct notice *n, const struct expected *p)
{
        if (n->trap != p->trap || n->key != p->key || n->lid1.v != LID_OF(p->from) || n->lid2.v != LID_OF(p->to))
                return false;
        if (n->trap == 259)
                return n->issuer.v == LEAF_LID && n->has_switch_port && n->switch_lid.v == LEAF_LID &&
                       n->switch_port == p->from + 1;
        return n->issuer.v == LID_OF(p->to) && !n->has_switch_port;
}

/* Sends each of them so often, and counts what came of each. */
static void send_all(struct setup *s, unsigned times, unsigned ret[PACKETS])
{
        struct notice n;

        memset(ret, 0, PACKETS * sizeof(ret[0]));
        for (unsigned t = 0; t < times; t++)
                for (unsigned i = 0; i < PACKETS; i++) {
                        send_packet(s, &packets[i]);
                        run(s, USEC_PER_MSEC);
                }
        run(s, 10 * USEC_PER_SEC);
        while (notices_next(s->notices, &n)) {
                unsigned i = 0;

                while (i < PACKETS && !is_of(&n, &packets[i]))
                        i++;
                ck_assert_msg(i < PACKETS, "a notice of trap %u that nobody raised", n.trap);
                ret[i]++;
        }
}

static void expect_each(struct setup *s, unsigned times)
{
        unsigned got[PACKETS];

        send_all(s, times, got);
        for (unsigned i = 0; i < PACKETS; i++)
                ck_assert_msg(got[i] == (packets[i].trap ? times : 0), "packet %u came %u times, not %u", i, got[i],
                              times);
        ck_assert_uint_eq(s->f.sa.n_given_up, 0);
}

static void expect_none(struct setup *s)
{
        unsigned got[PACKETS];

        send_all(s, 1, got);
        for (unsigned i = 0; i < PACKETS; i++)
                ck_assert_uint_eq(got[i], 0);
}

START_TEST(each_refusal_once)
{
        struct setup s;

        setup_init(&s, 1);
        expect_none(&s);
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        ck_assert_uint_eq(status(&s).state, NOTICES_SUBSCRIBED);
        ck_assert_uint_eq(s.f.sa.n_subscriptions, 3);
        expect_each(&s, 1);
        expect_each(&s, 20);
        ck_assert_uint_eq(status(&s).n_repeated, 0);
        setup_done(&s);
}
END_TEST

START_TEST(with_loss)
{
        struct setup s;

        setup_init(&s, (uint64_t) _i + 1);
        s.loss = 250;
        subscribe_at(&s, 1, 0, false);
        for (unsigned i = 0; i < 60 && s.f.sa.n_subscriptions < 3; i++)
                run(&s, USEC_PER_SEC);
        expect_each(&s, 15);
        ck_assert_uint_gt(status(&s).n_repeated, 0);
        setup_done(&s);
}
END_TEST

START_TEST(sm_changes)
{
        struct setup s;

        setup_init(&s, 2);
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        expect_each(&s, 1);
        /* another one, which knows nobody */
        s.f.sm = s.host[2];
        fabsim_sa_restart(&s.f);
        expect_none(&s);
        subscribe_at(&s, 2, 0, false);
        run(&s, USEC_PER_SEC);
        expect_each(&s, 3);
        /* it goes, before anybody else is there */
        s.f.nodes[s.host[2].node].is_up = false;
        fabsim_sa_restart(&s.f);
        subscribe_at(&s, 2, 0, true);
        run(&s, 30 * USEC_PER_SEC);
        ck_assert_uint_eq(status(&s).state, NOTICES_UNANSWERED);
        s.f.sm = s.host[1];
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        ck_assert_uint_eq(status(&s).state, NOTICES_SUBSCRIBED);
        s.f.nodes[s.host[2].node].is_up = true;
        expect_each(&s, 3);
        setup_done(&s);
}
END_TEST

START_TEST(sa_restarts)
{
        struct setup s;
        unsigned asked;

        setup_init(&s, 3);
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        expect_each(&s, 1);
        /* nobody says so: it is found out by and by */
        fabsim_sa_restart(&s.f);
        expect_none(&s);
        run(&s, 600 * USEC_PER_SEC);
        expect_each(&s, 1);
        /* the SM asks for client reregistration */
        fabsim_sa_restart(&s.f);
        subscribe_at(&s, 1, 0, true);
        run(&s, USEC_PER_SEC);
        expect_each(&s, 1);
        /* a day without anything: three requests in ten minutes, no more */
        asked = s.f.sa.n_asked;
        run(&s, 86400 * USEC_PER_SEC);
        ck_assert_uint_ge(s.f.sa.n_asked - asked, 3 * 143);
        ck_assert_uint_le(s.f.sa.n_asked - asked, 3 * 144);
        setup_done(&s);
}
END_TEST

START_TEST(keys)
{
        struct setup s;

        setup_init(&s, 4);
        s.f.sa.distrusts = true;
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        ck_assert(status(&s).state == NOTICES_SUBSCRIBED && status(&s).by_type);
        ck_assert_uint_eq(s.f.sa.n_subscriptions, 1);
        expect_each(&s, 2);
        /* with the key: by number, and not by type as well */
        subscribe_at(&s, 1, SA_KEY, false);
        run(&s, USEC_PER_SEC);
        ck_assert(status(&s).state == NOTICES_SUBSCRIBED && !status(&s).by_type);
        ck_assert_uint_eq(s.f.sa.n_subscriptions, 3);
        expect_each(&s, 2);
        /* a wrong one has no answer: without it, by type. The old ones go when the key is right again. */
        fabsim_sa_restart(&s.f);
        subscribe_at(&s, 1, SA_KEY + 1, false);
        run(&s, 60 * USEC_PER_SEC);
        ck_assert(status(&s).state == NOTICES_SUBSCRIBED && status(&s).by_type && status(&s).key_unanswered);
        ck_assert_uint_eq(s.f.sa.n_subscriptions, 1);
        expect_each(&s, 2);
        subscribe_at(&s, 1, SA_KEY, false);
        run(&s, USEC_PER_SEC);
        ck_assert_uint_eq(s.f.sa.n_subscriptions, 3);
        expect_each(&s, 2);
        setup_done(&s);
}
END_TEST

START_TEST(no_subscriptions)
{
        struct setup s;

        setup_init(&s, 5);
        s.f.sa.lacks_subscriptions = true;
        subscribe_at(&s, 1, 0, false);
        run(&s, USEC_PER_SEC);
        ck_assert_uint_eq(status(&s).state, NOTICES_REFUSED);
        ck_assert_uint_eq(status(&s).mad_status, 0x0c);
        expect_none(&s);
        /* an hour of patience: 5 s, 10 s, ... up to ten minutes, two requests each */
        run(&s, 3600 * USEC_PER_SEC);
        ck_assert_uint_eq(s.f.sa.n_asked, s.f.sa.n_refused);
        ck_assert_uint_le(s.f.sa.n_asked, 2 * 13);
        ck_assert_uint_ge(s.f.sa.n_asked, 2 * 11);
        s.f.sa.lacks_subscriptions = false;
        run(&s, 600 * USEC_PER_SEC);
        expect_each(&s, 1);
        setup_done(&s);
}
END_TEST

/* Whatever happened before, with half of all frames lost, keys that come and go and SAs that forget: when it is quiet,
 * each refusal comes once. */
START_TEST(after_trouble)
{
        struct setup s;

        setup_init(&s, (uint64_t) _i + 1000);
        s.f.sa.distrusts = _i % 2;
        s.loss = 500;
        for (unsigned i = 0; i < 12; i++) {
                uint64_t key = (uint64_t[]) { 0, SA_KEY, SA_KEY, SA_KEY + 1 }[prng_below(&s.rng, 4)];

                if (prng_permille(&s.rng, 200))
                        fabsim_sa_restart(&s.f);
                if (prng_permille(&s.rng, 200)) {
                        close_port(&s);
                        open_port(&s);
                }
                subscribe_at(&s, 1, key, prng_permille(&s.rng, 300));
                run(&s, prng_below(&s.rng, 900) * USEC_PER_SEC);
        }
        s.loss = 0;
        subscribe_at(&s, 1, _i % 3 ? SA_KEY : 0, true);
        run(&s, 60 * USEC_PER_SEC);
        ck_assert_uint_eq(status(&s).state, NOTICES_SUBSCRIBED);
        expect_each(&s, 3);
        setup_done(&s);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("notices on the virtual fabric");
        TCase *t = tcase_create("packets");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_set_timeout(t, 0);
        tcase_add_test(t, each_refusal_once);
        tcase_add_loop_test(t, with_loss, 0, 10);
        tcase_add_test(t, sm_changes);
        tcase_add_test(t, sa_restarts);
        tcase_add_test(t, keys);
        tcase_add_test(t, no_subscriptions);
        tcase_add_loop_test(t, after_trouble, 0, 40);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
