/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "ib/smp.h"
#include "violations/poll.h"

#define G(x)      ((struct guid) { (x) })
#define INTERVAL  (60 * USEC_PER_SEC)
#define START     (1000 * USEC_PER_SEC)
#define HOSTS     4
#define SWITCH    0x10
#define HOST(i)   (0x100u * (i))
#define MAX_ASKED 4096
#define M_KEY     0x4d4b

/* The registers of a port, and the behavior of its agents. */
struct fake_port {
        uint64_t rcv, xmit;
        uint16_t p_key_violations;
};

struct fake_node {
        struct fake_port ports[HOSTS + 1];
        bool is_elsewhere, refuses_forwarding, is_mute; /* of host i's LID: the switch forwards to another port, ... */
        bool is_another, refuses_node_info, says_no_name; /* the node that answers at its LID */
        bool is_dead, has_no_class_port_info, refuses_port_info, refuses_counters, refuses_extended, redirects;
        uint8_t mute_port; /* its counters are not answered */
        uint32_t capability_mask2;
        uint16_t redirect_lid;
        uint32_t redirect_qp;
};

/* A request. */
struct asked {
        usec_t when;
        struct mad_request request;
        uint64_t node;
        uint8_t port;
};

static struct arena *arena;
static struct subnet *subnet;
static struct violation_poll *poll;
static struct mad_background_task side;
static struct fake_node nodes[HOSTS + 1]; /* [0]: the switch */
static struct asked asked[MAX_ASKED];
static unsigned n_asked;
static struct violation_sample samples[MAX_ASKED];
static unsigned n_samples, n_cleared;

static void add_node(struct subnet_builder *b, uint64_t guid, enum node_type type)
{
        struct subnet_node node = { .guid = G(guid), .type = type, .partition_cap = 32 };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "x", 1), 0);
}

static void add_port(struct subnet_builder *b, uint64_t node, uint8_t number, uint16_t lid)
{
        struct subnet_port port = { .number = number, .guid = G(node + number), .lid = { lid },
                                    .route.lid = { lid } };

        ck_assert_int_eq(subnet_builder_add_port(b, G(node), &port), 0);
}

static bool lids_are_swapped; /* of the hosts 1 and 2 */

/* One switch (LID 1) with those of the hosts 1 to 4 (LIDs 11 to 14) that the mask has. */
static struct subnet *make_subnet(unsigned mask)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_node(b, SWITCH, NODE_SWITCH);
        add_port(b, SWITCH, 0, 1);
        for (uint8_t i = 1; i <= HOSTS; i++) {
                add_port(b, SWITCH, i, 0);
                if (!(mask & 1u << i))
                        continue;
                add_node(b, HOST(i), NODE_CA);
                add_port(b, HOST(i), 1, (uint16_t) (10 + (lids_are_swapped && i < 3 ? 3 - i : i)));
                ck_assert_int_eq(subnet_builder_add_link(b, G(SWITCH), i, G(HOST(i)), 1), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &s), 0);
        return s;
}

static struct m_keys *m_keys;

static void set_config(bool clear_saturated)
{
        violation_poll_set_config(poll, START, &(struct violation_poll_config) {
                .interval = INTERVAL, .clear_saturated = clear_saturated, .check_hosts = true, .m_keys = m_keys });
}

static void setup(void)
{
        struct violation_poll_config config = { .interval = INTERVAL, .check_hosts = true };
        struct findings findings;

        arena = arena_new();
        findings = (struct findings) { .arena = arena };
        ck_assert_int_eq(m_keys_parse("m_key", "0x4d4b", 6, &findings, &m_keys), 0);
        findings_done(&findings);
        config.m_keys = m_keys;
        subnet = make_subnet(0x1e);
        memset(nodes, 0, sizeof(nodes));
        n_asked = n_samples = n_cleared = 0;
        lids_are_swapped = false;
        poll = violation_poll_new(&config);
        ck_assert_ptr_nonnull(poll);
        ck_assert_int_eq(violation_poll_set_subnet(poll, START, subnet), 0);
        side = violation_poll_task(poll);
}

static void teardown(void)
{
        violation_poll_free(poll);
        m_keys = m_keys_free(m_keys);
        arena_free(arena);
}

/* --- agents ---------------------------------------------------------------------------------------------------------- */

static struct fake_node *node_of(const struct mad_request *r)
{
        uint16_t lid = r->route.lid.v;

        for (unsigned i = 0; i <= HOSTS; i++)
                if (nodes[i].redirect_lid && nodes[i].redirect_lid == lid)
                        return &nodes[i];
        ck_assert(lid == 1 || (lid >= 11 && lid <= 10 + HOSTS));
        if (lids_are_swapped && (lid == 11 || lid == 12))
                lid = (uint16_t) (23 - lid);
        return lid == 1 ? &nodes[0] : &nodes[lid - 10];
}

static void refuse(struct mad_result *ret)
{
        ret->outcome = MAD_REFUSED;
        ret->mad_status = 0x0c;
}

static void answer_class_port_info(const struct fake_node *n, const struct mad_request *q, struct mad_result *ret)
{
        if (n->has_no_class_port_info) {
                refuse(ret);
                return;
        }
        mad_set_field(ret->data, 0, IB_CPI_CAPMASK_F, 1 << 9);
        mad_set_field(ret->data, 0, IB_CPI_CAPMASK2_F, n->capability_mask2);
        if (n->redirect_lid != q->route.lid.v) {
                mad_set_field(ret->data, 0, IB_CPI_REDIRECT_LID_F, n->redirect_lid);
                mad_set_field(ret->data, 0, IB_CPI_REDIRECT_QP_F, n->redirect_qp);
        }
}

static void answer_counters(struct fake_node *n, const struct mad_request *q, struct mad_result *ret)
{
        struct fake_port *p = &n->ports[mad_get_field((void *) q->data, 0, IB_PC_PORT_SELECT_F)];
        bool extended = q->attribute == IB_GSI_PORT_COUNTERS_EXT;
        unsigned select = mad_get_field((void *) q->data, 0, IB_PC_COUNTER_SELECT_F);

        if (n->mute_port && p == &n->ports[n->mute_port]) {
                ret->outcome = MAD_TIMED_OUT;
                return;
        }
        if (n->refuses_counters || (extended && n->refuses_extended)) {
                refuse(ret);
                return;
        }
        if (n->redirects && q->route.lid.v != n->redirect_lid) {
                ret->outcome = MAD_REFUSED;
                ret->mad_status = 0x02;
                return;
        }
        if (q->method == MAD_SET) {
                ck_assert(!extended);
                p->xmit = select & 0x080 ? 0 : p->xmit;
                p->rcv = select & 0x100 ? 0 : p->rcv;
        }
        if (extended) {
                mad_set_field64(ret->data, 0, IB_PC_EXT_ERR_RCVCONSTR_F, p->rcv);
                mad_set_field64(ret->data, 0, IB_PC_EXT_ERR_XMTCONSTR_F, p->xmit);
        } else {
                mad_set_field(ret->data, 0, IB_PC_ERR_RCVCONSTR_F, (uint32_t) MIN(p->rcv, 255U));
                mad_set_field(ret->data, 0, IB_PC_ERR_XMTCONSTR_F, (uint32_t) MIN(p->xmit, 255U));
        }
}

static void answer_forwarding(const struct mad_request *q, struct mad_result *ret)
{
        ck_assert_uint_eq(q->route.lid.v, 1);
        ck_assert_uint_eq(q->modifier, 0);
        ck_assert_int_eq(q->method, MAD_GET);
        if (nodes[0].refuses_forwarding)
                refuse(ret);
        if (nodes[0].is_mute)
                ret->outcome = MAD_TIMED_OUT;
        for (uint8_t i = 1; i <= HOSTS; i++)
                ret->data[10 + i] = nodes[i].is_elsewhere ? 0xff : i;
}

static void answer_who(const struct fake_node *n, struct mad_result *ret)
{
        unsigned i = (unsigned) (n - nodes);

        if (n->says_no_name)
                ret->outcome = MAD_TIMED_OUT;
        if (n->refuses_node_info)
                refuse(ret);
        mad_set_field64(ret->data, 0, IB_NODE_PORT_GUID_F, n->is_another ? HOST(9) + 1 : i ? HOST(i) + 1 : SWITCH);
}

static void answer(const struct mad_request *q, struct mad_result *ret)
{
        struct fake_node *n = node_of(q);

        *ret = (struct mad_result) { .cookie = q->cookie };
        if (n->is_dead) {
                ret->outcome = MAD_TIMED_OUT;
        } else if (q->mgmt_class == MAD_CLASS_SMP && q->attribute == SMP_ATTR_LINEAR_FORWARDING_TABLE) {
                ck_assert_uint_eq(q->key, M_KEY);
                answer_forwarding(q, ret);
        } else if (q->mgmt_class == MAD_CLASS_SMP && q->attribute == SMP_ATTR_NODE_INFO) {
                ck_assert_uint_eq(q->key, M_KEY);
                ck_assert_uint_eq(q->modifier, 0);
                answer_who(n, ret);
        } else if (q->mgmt_class == MAD_CLASS_SMP) {
                ck_assert_uint_eq(q->attribute, SMP_ATTR_PORT_INFO);
                ck_assert_uint_eq(q->key, M_KEY);
                ck_assert_int_eq(q->method, MAD_GET); /* PortInfo is never written */
                ck_assert_uint_eq(q->modifier, n == &nodes[0] ? 0 : 1);
                if (n->refuses_port_info)
                        refuse(ret);
                mad_set_field(ret->data, 0, IB_PORT_PKEY_VIOL_F, n->ports[q->modifier].p_key_violations);
        } else {
                ck_assert_int_eq(q->mgmt_class, MAD_CLASS_PMA);
                ck_assert_uint_eq(q->modifier, 0);
                if (q->attribute == CLASS_PORT_INFO)
                        answer_class_port_info(n, q, ret);
                else
                        answer_counters(n, q, ret);
        }
}

/* --- virtual time ---------------------------------------------------------------------------------------------------- */

static void note_asked(usec_t now, const struct mad_request *q)
{
        struct fake_node *n = node_of(q);

        ck_assert_uint_lt(n_asked, MAX_ASKED);
        asked[n_asked++] = (struct asked) {
                .when = now,
                .request = *q,
                .node = n == &nodes[0] ? SWITCH : HOST((unsigned) (n - nodes)),
                .port = q->mgmt_class == MAD_CLASS_SMP ? (uint8_t) q->modifier : q->data[1],
        };
}

static void fetch(void)
{
        struct violation_sample s;

        while (violation_poll_next_sample(poll, &s)) {
                if (s.is_cleared) {
                        n_cleared++;
                        continue;
                }
                if (s.bits < 64 && s.value == (UINT64_C(1) << s.bits) - 1)
                        violation_poll_clear(poll, s.port, s.source);
                ck_assert_uint_lt(n_samples, MAX_ASKED);
                samples[n_samples++] = s;
        }
}

/* Each request is answered a millisecond later. */
static void run(usec_t from, usec_t until)
{
        struct mad_request q;
        struct mad_result result;

        for (usec_t now = from; now < until;) {
                usec_t due;

                while (side.next(side.state, now, &q)) {
                        note_asked(now, &q);
                        answer(&q, &result);
                        side.result(side.state, now + USEC_PER_MSEC, &result);
                        fetch();
                }
                due = side.due(side.state);
                ck_assert_uint_gt(due, now);
                now = due;
        }
}

/* Queries without their own turn: NodeInfo and ClassPortInfo. */
static bool is_extra(const struct asked *a)
{
        return a->request.attribute == CLASS_PORT_INFO || a->request.attribute == SMP_ATTR_NODE_INFO;
}

static unsigned count_asked(usec_t from, usec_t until, uint64_t node, int port, unsigned attribute)
{
        unsigned n = 0;

        for (unsigned i = 0; i < n_asked; i++)
                n += asked[i].when >= from && asked[i].when < until && asked[i].node == node &&
                     (port < 0 || asked[i].port == port) && asked[i].request.attribute == attribute;
        return n;
}

static const struct violation_sample *last_sample(uint64_t node, uint8_t number, enum violation_source source)
{
        for (unsigned i = n_samples; i-- > 0;)
                if (samples[i].port.node_guid.v == node && samples[i].port.number == number &&
                    samples[i].source == source)
                        return &samples[i];
        return NULL;
}

static void assert_sample(uint64_t node, uint8_t number, enum violation_source source, unsigned bits, uint64_t value)
{
        const struct violation_sample *s = last_sample(node, number, source);

        ck_assert_ptr_nonnull(s);
        ck_assert_uint_eq(s->bits, bits);
        ck_assert_uint_eq(s->value, value);
}

static unsigned n_silent(void)
{
        struct violation_poll_counters c;

        violation_poll_get_counters(poll, &c);
        return c.n_silent;
}

/* --- tests ----------------------------------------------------------------------------------------------------------- */

/* PortInfo of 5 endports; counters of those and of 4 ports of the switch. */
#define ITEMS 14

START_TEST(asks_what_it_should)
{
        nodes[0].ports[3] = (struct fake_port) { .rcv = 5, .xmit = 300 };
        nodes[2].ports[1] = (struct fake_port) { .rcv = 7, .xmit = 8, .p_key_violations = 0x1234 };
        run(START, START + INTERVAL);
        assert_sample(SWITCH, 3, VIOLATION_RCV_CONSTRAINT, 8, 5);
        assert_sample(SWITCH, 3, VIOLATION_XMIT_CONSTRAINT, 8, 255);
        assert_sample(SWITCH, 0, VIOLATION_P_KEY_VIOLATIONS, 16, 0);
        ck_assert_ptr_null(last_sample(SWITCH, 3, VIOLATION_P_KEY_VIOLATIONS));
        assert_sample(HOST(2), 1, VIOLATION_RCV_CONSTRAINT, 8, 7);
        assert_sample(HOST(2), 1, VIOLATION_XMIT_CONSTRAINT, 8, 8);
        assert_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 0x1234);
        ck_assert_uint_eq(n_samples, 5 + 2 * 9);
        for (unsigned i = 0; i < n_asked; i++)
                ck_assert_uint_eq(asked[i].request.retries, asked[i].request.attribute == SMP_ATTR_NODE_INFO ? 2 : 0);
}
END_TEST

/* A change at a switch port is reported after the switch was queried for the port of the host. */
START_TEST(checks_who_is_plugged_in)
{
        const struct violation_sample *s;

        run(START, START + INTERVAL);
        ck_assert_uint_eq(count_asked(START, START + INTERVAL, SWITCH, -1, SMP_ATTR_LINEAR_FORWARDING_TABLE), 0);
        for (unsigned i = 1; i < 5; i++) {
                nodes[0].is_mute = i == 3;
                nodes[0].refuses_forwarding = i == 4;
                nodes[2].is_elsewhere = i == 2;
                nodes[0].ports[2].rcv = i;
                nodes[2].ports[1].rcv = i;
                run(START + i * INTERVAL, START + (i + 1) * INTERVAL);
                assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 8, i);
                s = last_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT);
                ck_assert_int_eq(s->is_doubted, i == 2 || i == 3);
                ck_assert_uint_eq(count_asked(START + i * INTERVAL, START + (i + 1) * INTERVAL, SWITCH, -1,
                                              SMP_ATTR_LINEAR_FORWARDING_TABLE), 1);
        }
}
END_TEST

/* A change at an endport, or its first value, is reported after it has answered NodeInfo. */
START_TEST(checks_who_answers)
{
        enum { SAYS, ANOTHER, NO_ANSWER, REFUSES, N };
        usec_t from = START;

        nodes[3].is_another = true;
        run(from, from + INTERVAL);
        ck_assert_uint_eq(count_asked(from, from + INTERVAL, HOST(2), -1, SMP_ATTR_NODE_INFO), 2);
        ck_assert_uint_eq(count_asked(from, from + INTERVAL, SWITCH, -1, SMP_ATTR_NODE_INFO), 2 + HOSTS);
        ck_assert_ptr_null(last_sample(HOST(3), 1, VIOLATION_P_KEY_VIOLATIONS));
        ck_assert_ptr_null(last_sample(HOST(3), 1, VIOLATION_RCV_CONSTRAINT));
        nodes[3].is_another = false;
        from += INTERVAL;
        run(from, from + INTERVAL);
        ck_assert_uint_eq(count_asked(from, from + INTERVAL, HOST(2), -1, SMP_ATTR_NODE_INFO), 0);
        assert_sample(HOST(3), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 0);
        assert_sample(HOST(3), 1, VIOLATION_XMIT_CONSTRAINT, 8, 0);
        for (unsigned i = SAYS; i < N; i++) {
                bool comes_out = i == SAYS || i == REFUSES;

                nodes[2].is_another = i == ANOTHER;
                nodes[2].says_no_name = i == NO_ANSWER;
                nodes[2].refuses_node_info = i == REFUSES;
                nodes[2].ports[1] = (struct fake_port) { .xmit = 1 + 10 * i, .p_key_violations = (uint16_t) (2 + 10 * i) };
                from += INTERVAL;
                run(from, from + INTERVAL);
                ck_assert_uint_eq(count_asked(from, from + INTERVAL, HOST(2), -1, SMP_ATTR_NODE_INFO), 2);
                assert_sample(HOST(2), 1, VIOLATION_XMIT_CONSTRAINT, 8, comes_out ? 1 + 10 * i : 1);
                assert_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS, 16, comes_out ? 2 + 10 * i : 2);
                ck_assert(!last_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS)->is_doubted);
        }
}
END_TEST

/* What another switch counts, which has the LID of ours for a while, is no sample of our ports, be it more or less. */
START_TEST(another_switch_answers)
{
        usec_t now = START;

        for (unsigned i = 0; i < 4; i++, now += INTERVAL) {
                nodes[0].is_another = i % 2 == 0;
                nodes[0].ports[2].rcv = i == 0 ? 50 : i == 2 ? 250 : 20;
                run(now, now + INTERVAL);
                if (i == 0)
                        ck_assert_ptr_null(last_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT));
                else
                        assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 8, 20);
        }
        nodes[0].ports[2].rcv = 21;
        run(now, now + INTERVAL);
        assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 8, 21);
        ck_assert(!last_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT)->is_doubted);
}
END_TEST

static bool is_info_of_lid12(const struct mad_request *q)
{
        return q->attribute == SMP_ATTR_PORT_INFO && q->route.lid.v == 12;
}

/* The first host has the LID of the second by now, which a sweep finds before NodeInfo is queried (late), or before the answer
 * comes: what the first one counted is no sample of the second. */
START_TEST(a_new_lid_before_the_check)
{
        bool is_late = _i;
        struct mad_request q = {};
        struct mad_result result;
        usec_t now = START + INTERVAL;

        nodes[1].ports[1].p_key_violations = 500;
        run(START, now);
        lids_are_swapped = true;
        for (; !is_info_of_lid12(&q); now = MAX(now + 1, side.due(side.state)))
                while (!is_info_of_lid12(&q) && side.next(side.state, now, &q)) {
                        answer(&q, &result);
                        if (is_late || !is_info_of_lid12(&q))
                                side.result(side.state, now, &result);
                }
        ck_assert_int_eq(violation_poll_set_subnet(poll, now, make_subnet(0x1e)), 0);
        if (!is_late)
                side.result(side.state, now, &result);
        run(now, now + 2 * INTERVAL);
        for (unsigned i = 0; i < n_samples; i++)
                ck_assert(samples[i].value != 500 || samples[i].port.node_guid.v == HOST(1));
        assert_sample(HOST(1), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 500);
        assert_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 0);
}
END_TEST

/* The counter did not move since, and NodeInfo is still queried. */
START_TEST(a_name_that_got_lost)
{
        run(START, START + INTERVAL);
        nodes[2].ports[1].p_key_violations = 3;
        nodes[2].says_no_name = true;
        run(START + INTERVAL, START + 2 * INTERVAL);
        assert_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 0);
        nodes[2].says_no_name = false;
        run(START + 2 * INTERVAL, START + 3 * INTERVAL);
        assert_sample(HOST(2), 1, VIOLATION_P_KEY_VIOLATIONS, 16, 3);
        ck_assert_uint_eq(count_asked(START + 2 * INTERVAL, START + 3 * INTERVAL, HOST(2), -1, SMP_ATTR_NODE_INFO), 1);
}
END_TEST

/* A sample whose check was never answered is checked with the next one. */
START_TEST(a_check_that_got_lost)
{
        struct mad_request q;
        struct mad_result result;
        usec_t now = START + INTERVAL;

        run(START, now);
        nodes[0].ports[2].rcv = 3;
        nodes[2].is_elsewhere = true;
        for (; count_asked(START, now, SWITCH, -1, SMP_ATTR_LINEAR_FORWARDING_TABLE) == 0; now = side.due(side.state))
                while (side.next(side.state, now, &q)) {
                        note_asked(now, &q);
                        answer(&q, &result);
                        if (q.attribute != SMP_ATTR_LINEAR_FORWARDING_TABLE)
                                side.result(side.state, now, &result);
                        now++;
                }
        side.reset(side.state, now);
        fetch();
        assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 8, 0);
        run(now, now + 2 * INTERVAL);
        for (unsigned i = 0; i < n_samples; i++)
                if (samples[i].port.node_guid.v == SWITCH && samples[i].port.number == 2 && samples[i].value == 3) {
                        ck_assert(samples[i].is_doubted);
                        return;
                }
        ck_abort_msg("it never came");
}
END_TEST

#define PLACES 8 /* of the dispatcher, for all background tasks */

struct waiting {
        uint64_t cookie;
        usec_t until;
};

static void time_out(usec_t now, struct waiting waiting[static PLACES], unsigned *n)
{
        struct mad_result result = { .outcome = MAD_TIMED_OUT };

        for (unsigned i = 0; i < *n; i++)
                if (waiting[i].until <= now) {
                        result.cookie = waiting[i].cookie;
                        waiting[i--] = waiting[--*n];
                        side.result(side.state, now, &result);
                }
}

/* As the dispatcher does it: eight at a time, and what is not answered takes its place until it timed out. Returns how many did. */
static unsigned run_dispatched(usec_t from, usec_t until, usec_t timeout, unsigned max_waiting)
{
        struct waiting waiting[PLACES];
        unsigned n_waiting = 0, n_lost = 0;
        struct mad_request q;
        struct mad_result result;

        for (usec_t now = from; now < until || n_waiting > 0; now += USEC_PER_SEC / 4) {
                time_out(now, waiting, &n_waiting);
                while (now < until && n_waiting < PLACES && side.next(side.state, now, &q)) {
                        note_asked(now, &q);
                        answer(&q, &result);
                        if (result.outcome == MAD_TIMED_OUT) {
                                n_lost++;
                                waiting[n_waiting].cookie = q.cookie;
                                waiting[n_waiting++].until = now + timeout;
                        } else {
                                side.result(side.state, now, &result);
                        }
                }
                fetch();
                if (now > from + 5 * INTERVAL)
                        ck_assert_uint_le(n_waiting, max_waiting);
        }
        return n_lost;
}

/* Ports that do not answer wait for each other, and do not delay the polling of others. */
START_TEST(silent_ports_take_no_places)
{
        nodes[1].is_dead = nodes[2].is_dead = nodes[3].is_dead = true;
        ck_assert_uint_gt(run_dispatched(START, START + 40 * INTERVAL, 3 * INTERVAL / 2, 2), 20);
        for (unsigned i = 10; i < 39; i++) {
                usec_t from = START + i * INTERVAL;

                ck_assert_uint_ge(count_asked(from, from + INTERVAL + USEC_PER_SEC, HOST(4), 1, SMP_ATTR_PORT_INFO), 1);
        }
        /* and each of them has its turn */
        for (unsigned i = 1; i <= 3; i++) {
                ck_assert_uint_ge(count_asked(START + 10 * INTERVAL, START + 40 * INTERVAL, HOST(i), 1, SMP_ATTR_PORT_INFO), 3);
                ck_assert_uint_ge(count_asked(START + 10 * INTERVAL, START + 40 * INTERVAL, HOST(i), -1, CLASS_PORT_INFO), 3);
        }
}
END_TEST

/* Its ports have one agent: behind a port that got no answer, the others do not wait in places of their own. */
START_TEST(a_switch_that_falls_silent_takes_one_place)
{
        const usec_t dies = START + 3 * INTERVAL, timeout = INTERVAL / 2, back = dies + 8 * INTERVAL;
        usec_t first = dies;

        run(START, dies);
        nodes[0].is_dead = true;
        run_dispatched(dies, dies + 8 * INTERVAL, timeout, 2);
        while (count_asked(dies, first, SWITCH, -1, IB_GSI_PORT_COUNTERS) == 0)
                first += USEC_PER_SEC;
        ck_assert_uint_eq(count_asked(dies, first + timeout - USEC_PER_SEC, SWITCH, -1, IB_GSI_PORT_COUNTERS), 1);
        /* nor when it timed out, all at once */
        ck_assert_uint_le(count_asked(dies, first + timeout + 2 * USEC_PER_SEC, SWITCH, -1, IB_GSI_PORT_COUNTERS), 2);
        ck_assert_uint_eq(n_silent(), 5);
        nodes[0].is_dead = false;
        run_dispatched(back, back + 2 * INTERVAL, timeout, 2);
        ck_assert_uint_eq(n_silent(), 0);
}
END_TEST

#define MANY       20 /* switches, one host at each port */
#define MANY_PORTS 12

static struct subnet *make_many(void)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = 1; i <= MANY; i++) {
                add_node(b, 0x1000 * i, NODE_SWITCH);
                add_port(b, 0x1000 * i, 0, (uint16_t) i);
                for (uint8_t port = 1; port <= MANY_PORTS; port++) {
                        uint64_t host = 0x1000 * i + 0x10 * port;

                        add_port(b, 0x1000 * i, port, 0);
                        add_node(b, host, NODE_CA);
                        add_port(b, host, 1, (uint16_t) (100 * i + port));
                        ck_assert_int_eq(subnet_builder_add_link(b, G(0x1000 * i), port, G(host), 1), 0);
                }
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &s), 0);
        return s;
}

static bool is_a_switch_s_pma(const struct mad_request *q)
{
        return q->mgmt_class == MAD_CLASS_PMA && q->route.lid.v <= MANY;
}

/* These still answer ClassPortInfo. */
static bool is_a_host_s_counters(const struct mad_request *q)
{
        return q->mgmt_class == MAD_CLASS_PMA && q->attribute == IB_GSI_PORT_COUNTERS && q->route.lid.v > MANY;
}

/* Nobody answers these; what they take of each interval is a tenth. */
static void run_many(usec_t from, usec_t until, bool (*is_lost)(const struct mad_request *))
{
        struct waiting waiting[PLACES];
        unsigned n = 0;
        struct mad_request q;

        for (usec_t now = from; now < until; now += 10 * USEC_PER_MSEC) {
                time_out(now, waiting, &n);
                while (n < PLACES && side.next(side.state, now, &q)) {
                        struct mad_result result = { .cookie = q.cookie };

                        if (is_lost && is_lost(&q)) {
                                waiting[n++] = (struct waiting) { q.cookie, now + INTERVAL / 10 };
                                continue;
                        }
                        if (q.mgmt_class == MAD_CLASS_SMP && q.attribute == SMP_ATTR_NODE_INFO)
                                result.outcome = MAD_REFUSED;
                        side.result(side.state, now, &result);
                }
                while (violation_poll_next_sample(poll, &(struct violation_sample) {}))
                        ;
        }
}

static uint64_t n_rounds(void)
{
        struct violation_poll_counters c;

        violation_poll_get_counters(poll, &c);
        return c.n_rounds;
}

static void begin_many(void)
{
        violation_poll_free(poll);
        poll = violation_poll_new(&(struct violation_poll_config) { .interval = INTERVAL, .check_hosts = true });
        ck_assert_int_eq(violation_poll_set_subnet(poll, START, make_many()), 0);
        side = violation_poll_task(poll);
        run_many(START, START + 3 * INTERVAL, NULL);
}

/* A third of all queries: no round takes longer than the interval for the others. */
START_TEST(many_switches_that_fall_silent)
{
        uint64_t before;

        begin_many();
        before = n_rounds();
        run_many(START + 3 * INTERVAL, START + 9 * INTERVAL, is_a_switch_s_pma);
        ck_assert_uint_ge(n_rounds(), before + 5);
}
END_TEST

/* Each of them takes a place, once; from then on they wait for each other. */
START_TEST(many_hosts_that_fall_silent)
{
        uint64_t before;

        begin_many();
        run_many(START + 3 * INTERVAL, START + 8 * INTERVAL, is_a_host_s_counters);
        before = n_rounds();
        run_many(START + 8 * INTERVAL, START + 20 * INTERVAL, is_a_host_s_counters);
        ck_assert_uint_ge(n_rounds(), before + 11);
}
END_TEST

/* Ports after it in each round would never be polled. */
START_TEST(one_silent_port_of_a_switch_holds_up_no_other)
{
        const usec_t falls_silent = START + 3 * INTERVAL, settled = falls_silent + 8 * INTERVAL;

        run(START, falls_silent);
        nodes[0].mute_port = 2;
        run_dispatched(falls_silent, settled + 10 * INTERVAL, INTERVAL / 2, 1);
        for (int port = 1; port <= HOSTS; port++)
                ck_assert_uint_ge(count_asked(settled, settled + 10 * INTERVAL, SWITCH, port, IB_GSI_PORT_COUNTERS), 9);
        ck_assert_uint_eq(n_silent(), 1);
}
END_TEST

static bool is_of_external_port(const struct mad_request *q)
{
        return q->attribute == IB_GSI_PORT_COUNTERS && node_of(q) == &nodes[0] && q->data[1] != 0;
}

/* A queried port may disappear before it answers: ports that wait for the same switch are polled in the next round. */
START_TEST(who_waits_for_a_port_that_is_gone)
{
        const usec_t falls_silent = START + 3 * INTERVAL;
        struct mad_request q = {};
        usec_t now;

        run(START, falls_silent);
        for (now = falls_silent; !is_of_external_port(&q); now = side.due(side.state))
                while (side.next(side.state, now, &q) && !is_of_external_port(&q)) {
                        struct mad_result result;

                        answer(&q, &result);
                        side.result(side.state, now, &result);
                }
        run(now, now + INTERVAL);
        ck_assert_uint_eq(count_asked(now, USEC_INFINITY, SWITCH, -1, IB_GSI_PORT_COUNTERS), 0);
        ck_assert_int_eq(violation_poll_set_subnet(poll, now + INTERVAL, make_subnet(0x1eu & ~(1u << q.data[1]))), 0);
        run(now + INTERVAL, now + 3 * INTERVAL);
        ck_assert_uint_eq(count_asked(now, USEC_INFINITY, SWITCH, -1, IB_GSI_PORT_COUNTERS), 2 * 4);
}
END_TEST

static struct violation_poll_counters counters(void)
{
        struct violation_poll_counters c;

        violation_poll_get_counters(poll, &c);
        ck_assert_int_eq(c.is_late, violation_poll_is_late(poll));
        return c;
}

/* A few rounds do not matter: hosts reboot, and one of them may be polled in time. */
START_TEST(silent_ports_that_are_not_asked_in_time)
{
        const usec_t timeout = 3 * INTERVAL / 2, back = START + 40 * INTERVAL;
        usec_t t;

        ck_assert_uint_eq(counters().cycle_duration, 0);
        run_dispatched(START, START + 3 * INTERVAL, timeout, 0);
        ck_assert_uint_eq(counters().cycle_duration, INTERVAL);
        nodes[1].is_dead = nodes[2].is_dead = nodes[3].is_dead = true;
        run_dispatched(START + 3 * INTERVAL, START + 6 * INTERVAL, timeout, 8);
        ck_assert(!counters().is_late);
        /* six of them, two in one and a half intervals: the last one begins three intervals after the first, at the earliest */
        run_dispatched(START + 10 * INTERVAL, back, timeout, 2);
        ck_assert(counters().is_late && !counters().is_slow);
        ck_assert_uint_ge(counters().cycle_duration, 4 * INTERVAL);
        ck_assert_uint_le(counters().cycle_duration, 8 * INTERVAL);
        ck_assert_uint_eq(counters().cycle_duration % INTERVAL, 0);
        nodes[1].is_dead = nodes[2].is_dead = nodes[3].is_dead = false;
        for (t = back + 2 * INTERVAL; counters().is_late && t < back + 40 * INTERVAL; t += INTERVAL)
                run_dispatched(t, t + INTERVAL, timeout, 2);
        ck_assert_uint_ge(t, back + (2 + VIOLATIONS_QUIET_INTERVALS) * INTERVAL);
        ck_assert_uint_le(t, back + 16 * INTERVAL);
        ck_assert_uint_eq(counters().cycle_duration, INTERVAL);
        /* a port that does not answer is polled once in an interval, and delays no other port */
        nodes[1].is_dead = true;
        run_dispatched(t, t + 20 * INTERVAL, INTERVAL / 20, 2);
        ck_assert(!counters().is_late);
}
END_TEST

/* Requests have to wait: each round takes twice the interval, though every port answers. */
START_TEST(rounds_that_take_too_long)
{
        const usec_t apart = 2 * INTERVAL / ITEMS;
        struct mad_request q;
        struct mad_result result;
        usec_t now = START;

        run(START, START + 2 * INTERVAL);
        for (now = START + 2 * INTERVAL; now < START + 8 * INTERVAL || !counters().is_late; now += apart) {
                ck_assert_uint_lt(now, START + 20 * INTERVAL);
                if (!side.next(side.state, now, &q))
                        continue;
                answer(&q, &result);
                side.result(side.state, now + USEC_PER_MSEC, &result);
                fetch();
        }
        ck_assert(counters().is_slow);
        ck_assert_uint_gt(counters().cycle_duration, 3 * INTERVAL / 2);
        ck_assert_uint_ge(now, START + (2 + VIOLATIONS_QUIET_INTERVALS) * INTERVAL);
        run(now, now + 20 * INTERVAL);
        ck_assert(!counters().is_slow && !counters().is_late);
}
END_TEST

/* What it took while nothing could be sent, or with another interval, is no measure. */
START_TEST(the_duration_is_of_whole_cycles)
{
        run(START, START + INTERVAL / 2);
        side.reset(side.state, START + INTERVAL / 2);
        run(START + 9 * INTERVAL, START + 10 * INTERVAL);
        ck_assert_uint_eq(counters().cycle_duration, 0);
        run(START + 10 * INTERVAL, START + 12 * INTERVAL);
        ck_assert_uint_eq(counters().cycle_duration, INTERVAL);
        ck_assert(!counters().is_late);
        violation_poll_set_config(poll, START + 12 * INTERVAL, &(struct violation_poll_config) { .interval = INTERVAL / 2 });
        ck_assert_uint_eq(counters().cycle_duration, 0);
        ck_assert_uint_eq(counters().interval, INTERVAL / 2);
}
END_TEST

START_TEST(one_in_each_nth_of_an_interval)
{
        struct violation_poll_counters c;

        run(START, START + 3 * INTERVAL);
        for (unsigned r = 0; r < 3; r++)
                for (uint64_t i = 0; i < ITEMS; i++) {
                        usec_t from = START + r * INTERVAL + i * INTERVAL / ITEMS;
                        unsigned n = 0;

                        for (unsigned k = 0; k < n_asked; k++)
                                n += asked[k].when == from && !is_extra(&asked[k]);
                        ck_assert_uint_eq(n, 1);
                }
        /* each once in each round, at the same place */
        for (unsigned k = 0; k < n_asked; k++)
                if (!is_extra(&asked[k]))
                        ck_assert_uint_eq(count_asked(asked[k].when - asked[k].when % INTERVAL,
                                                      asked[k].when - asked[k].when % INTERVAL + INTERVAL, asked[k].node,
                                                      asked[k].port, asked[k].request.attribute), 1);
        ck_assert_uint_eq(n_asked, 3 * ITEMS + 5 + 2 * 5 + HOSTS); /* five agents, and whoever answers for each port, once each */
        violation_poll_get_counters(poll, &c);
        ck_assert_uint_eq(c.n_ports, 9);
        ck_assert_uint_eq(c.n_silent, 0);
        ck_assert_uint_eq(c.n_rounds, 3);
}
END_TEST

START_TEST(wide_counters_where_they_are)
{
        nodes[0].capability_mask2 = 1 << 1;
        nodes[0].ports[2].rcv = UINT64_C(0x123456789ab);
        nodes[3].capability_mask2 = ~(1u << 1) & 0x7ffffff;
        nodes[4].has_no_class_port_info = true;
        run(START, START + INTERVAL);
        assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 64, UINT64_C(0x123456789ab));
        assert_sample(HOST(3), 1, VIOLATION_RCV_CONSTRAINT, 8, 0);
        assert_sample(HOST(4), 1, VIOLATION_RCV_CONSTRAINT, 8, 0);
        /* It reports that it has them, but does not. */
        nodes[0].refuses_extended = true;
        run(START + INTERVAL, START + 4 * INTERVAL);
        assert_sample(SWITCH, 2, VIOLATION_RCV_CONSTRAINT, 8, 255);
}
END_TEST

START_TEST(what_is_refused_is_not_asked_again)
{
        nodes[1].refuses_port_info = true;
        nodes[2].refuses_counters = true;
        run(START, START + 2 * INTERVAL);
        ck_assert_int_eq(violation_poll_set_subnet(poll, START + 2 * INTERVAL, subnet), 0);
        run(START + 2 * INTERVAL, START + 4 * INTERVAL);
        ck_assert_uint_eq(count_asked(START, START + 4 * INTERVAL, HOST(1), 1, SMP_ATTR_PORT_INFO), 1);
        ck_assert_uint_eq(count_asked(START, START + 4 * INTERVAL, HOST(2), 1, IB_GSI_PORT_COUNTERS), 1);
        ck_assert_uint_eq(count_asked(START, START + 4 * INTERVAL, HOST(2), 1, SMP_ATTR_PORT_INFO), 4);
        ck_assert_ptr_null(last_sample(HOST(1), 1, VIOLATION_P_KEY_VIOLATIONS));
        ck_assert_uint_eq(n_silent(), 0);
        /* Until it goes away and comes back. */
        ck_assert_int_eq(violation_poll_set_subnet(poll, START + 4 * INTERVAL, make_subnet(0x18)), 0);
        ck_assert_int_eq(violation_poll_set_subnet(poll, START + 4 * INTERVAL, subnet), 0);
        nodes[2].refuses_counters = false;
        n_asked = 0;
        run(START + 4 * INTERVAL, START + 6 * INTERVAL);
        ck_assert_uint_ge(count_asked(0, USEC_INFINITY, HOST(1), 1, SMP_ATTR_PORT_INFO), 1);
        ck_assert_uint_eq(count_asked(0, USEC_INFINITY, HOST(2), -1, CLASS_PORT_INFO), 1);
        ck_assert_uint_eq(count_asked(0, USEC_INFINITY, HOST(3), -1, CLASS_PORT_INFO), 0);
        assert_sample(HOST(2), 1, VIOLATION_RCV_CONSTRAINT, 8, 0);
}
END_TEST

START_TEST(the_silent_are_asked_once_in_an_interval)
{
        usec_t t = START + 3 * INTERVAL;

        nodes[0].is_dead = nodes[2].is_dead = true;
        run(START, t);
        ck_assert_uint_eq(count_asked(START, t, HOST(2), -1, SMP_ATTR_PORT_INFO), 3);
        ck_assert_uint_eq(count_asked(START, t, HOST(2), -1, CLASS_PORT_INFO), 3);
        ck_assert_uint_eq(count_asked(START, t, SWITCH, -1, CLASS_PORT_INFO), 3 * 5);
        ck_assert_uint_eq(n_silent(), 6);
        /* It is back, and knows something else than before. */
        nodes[0].is_dead = nodes[2].is_dead = false;
        nodes[2].capability_mask2 = 1 << 1;
        run(t, t + 2 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 0);
        assert_sample(HOST(2), 1, VIOLATION_RCV_CONSTRAINT, 64, 0);
        nodes[2].is_dead = true;
        run(t + 2 * INTERVAL, t + 3 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 1);
        nodes[2].is_dead = false;
        nodes[2].capability_mask2 = 0;
        run(t + 3 * INTERVAL, t + 5 * INTERVAL);
        assert_sample(HOST(2), 1, VIOLATION_RCV_CONSTRAINT, 8, 0);
}
END_TEST

START_TEST(redirected)
{
        nodes[1].redirect_lid = 0x77;
        nodes[1].redirect_qp = 1;
        nodes[1].ports[1].rcv = 9;
        nodes[2].redirect_lid = 0x78;
        nodes[2].redirect_qp = 2; /* not where MADs of ours go */
        nodes[3].redirect_lid = 0xc001; /* an unused LID */
        nodes[3].redirect_qp = 1;
        run(START, START + 3 * INTERVAL);
        assert_sample(HOST(1), 1, VIOLATION_RCV_CONSTRAINT, 8, 9);
        ck_assert_uint_eq(count_asked(0, USEC_INFINITY, HOST(1), -1, CLASS_PORT_INFO), 2);
        ck_assert_ptr_null(last_sample(HOST(2), 1, VIOLATION_RCV_CONSTRAINT));
        ck_assert_ptr_null(last_sample(HOST(3), 1, VIOLATION_RCV_CONSTRAINT));
        ck_assert_uint_eq(n_silent(), 2);
        for (unsigned i = 0; i < n_asked; i++)
                if (asked[i].node == HOST(1) && asked[i].request.attribute == IB_GSI_PORT_COUNTERS)
                        ck_assert_uint_eq(asked[i].request.route.lid.v, 0x77);
}
END_TEST

/* A PMA that moves while it is polled reports that in the status. */
START_TEST(redirected_later)
{
        run(START, START + INTERVAL);
        nodes[1].redirects = true;
        run(START + INTERVAL, START + 2 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 1);
        nodes[1].redirect_lid = 0x77;
        nodes[1].redirect_qp = 1;
        nodes[1].ports[1].rcv = 11;
        run(START + 2 * INTERVAL, START + 4 * INTERVAL);
        assert_sample(HOST(1), 1, VIOLATION_RCV_CONSTRAINT, 8, 11);
        ck_assert_uint_eq(n_silent(), 0);
}
END_TEST

START_TEST(only_the_full_counter_is_cleared)
{
        unsigned n_sets = 0;

        set_config(true);
        nodes[0].ports[2] = (struct fake_port) { .rcv = 255, .xmit = 254 };
        nodes[3].ports[1] = (struct fake_port) { .xmit = 400, .p_key_violations = 0xffff };
        nodes[4].capability_mask2 = 1 << 1;
        nodes[4].ports[1].rcv = 255; /* of 64 bits: not full */
        run(START, START + INTERVAL);
        for (unsigned i = 0; i < n_asked; i++)
                n_sets += asked[i].request.method == MAD_SET;
        ck_assert_uint_eq(n_sets, 2);
        ck_assert_uint_eq(n_cleared, 2);
        ck_assert_uint_eq(nodes[0].ports[2].rcv, 0);
        ck_assert_uint_eq(nodes[0].ports[2].xmit, 254);
        ck_assert_uint_eq(nodes[3].ports[1].xmit, 0);
        ck_assert_uint_eq(nodes[3].ports[1].p_key_violations, 0xffff);
        ck_assert_uint_eq(nodes[4].ports[1].rcv, 255);
}
END_TEST

START_TEST(nothing_is_written_unrequested)
{
        nodes[0].ports[2].rcv = 255;
        run(START, START + 3 * INTERVAL);
        for (unsigned i = 0; i < n_asked; i++)
                ck_assert_int_eq(asked[i].request.method, MAD_GET);
        ck_assert_uint_eq(n_cleared, 0);
        ck_assert_uint_eq(nodes[0].ports[2].rcv, 255);
}
END_TEST

/* Counters of a PMA at a queue pair that pkeyd cannot address are not at the port's own LID either. */
START_TEST(nothing_is_cleared_where_the_pma_is_not)
{
        struct mad_request q;

        set_config(true);
        nodes[2].redirect_lid = 0x78;
        nodes[2].redirect_qp = 2;
        run(START, START + INTERVAL);
        violation_poll_clear(poll, (struct violation_port) { G(HOST(2)), 1 }, VIOLATION_RCV_CONSTRAINT);
        while (side.next(side.state, START + INTERVAL, &q))
                ck_assert_int_eq(q.method, MAD_GET);
}
END_TEST

/* Samples before and after a counter was cleared, and that in between. */
START_TEST(cleared_comes_in_its_order)
{
        struct violation_port port = { .node_guid = G(HOST(1)), .number = 1 };
        struct violation_sample s;
        struct mad_request q;
        struct mad_result result;
        unsigned n = 0;

        set_config(true);
        run(START, START + INTERVAL);
        violation_poll_clear(poll, port, VIOLATION_RCV_CONSTRAINT);
        violation_poll_clear(poll, port, VIOLATION_RCV_CONSTRAINT); /* once is enough */
        violation_poll_clear(poll, port, VIOLATION_P_KEY_VIOLATIONS);
        violation_poll_clear(poll, port, VIOLATION_NOTICE_257);
        ck_assert_uint_eq(side.due(side.state), 0);
        for (usec_t now = START + INTERVAL; now < START + 2 * INTERVAL; now += INTERVAL / ITEMS)
                while (side.next(side.state, now, &q)) {
                        n += q.method == MAD_SET;
                        answer(&q, &result);
                        side.result(side.state, now, &result);
                }
        ck_assert_uint_eq(n, 1);
        ck_assert(violation_poll_next_sample(poll, &s));
        ck_assert(s.is_cleared);
        ck_assert_uint_eq(s.port.node_guid.v, HOST(1));
        ck_assert_int_eq(s.source, VIOLATION_RCV_CONSTRAINT);
        ck_assert(s.bits == 0 && s.value == 0);
        ck_assert(violation_poll_next_sample(poll, &s));
        ck_assert(!s.is_cleared);
        for (n = 1; violation_poll_next_sample(poll, &s); n++)
                ck_assert(!s.is_cleared);
        ck_assert_uint_eq(n, 4 + 2 * 8);
}
END_TEST

START_TEST(a_pause_is_not_made_up_for)
{
        struct mad_request q;
        struct mad_result result;
        usec_t resume = START + 10 * INTERVAL;
        unsigned n = 0;

        run(START, START + INTERVAL / 2);
        while (side.next(side.state, resume, &q)) {
                n++;
                answer(&q, &result);
                side.result(side.state, resume, &result);
        }
        ck_assert_uint_le(n, 3); /* one turn, and the ClassPortInfo and NodeInfo that it may need */
        n_asked = 0;
        run(resume, resume + INTERVAL);
        ck_assert_uint_le(n_asked, 2 * ITEMS + 5);
        for (unsigned i = 1; i < n_asked; i++)
                ck_assert(is_extra(&asked[i]) || is_extra(&asked[i - 1]) ||
                          asked[i].when - asked[i - 1].when >= INTERVAL / ITEMS);
}
END_TEST

/* Snapshots change in the middle of rounds: ports that stay are polled once in a round. */
START_TEST(pictures_in_the_middle_of_a_round)
{
        usec_t now = START;

        for (unsigned i = 0; i < 40; i++) {
                usec_t next = now + INTERVAL / 7;

                run(now, next);
                now = MAX(next, side.due(side.state));
                ck_assert_int_eq(violation_poll_set_subnet(poll, now, make_subnet(i % 3 ? 0x1e : 0x06)), 0);
        }
        for (unsigned i = 0; i < n_asked; i++) {
                const struct asked *a = &asked[i];

                if (is_extra(a) || a->when > START + 4 * INTERVAL)
                        continue;
                if (a->node != HOST(1) && a->node != SWITCH)
                        continue;
                /* never twice within half an interval, always again within one and a half */
                ck_assert_uint_eq(count_asked(a->when, a->when + INTERVAL / 2, a->node, a->port, a->request.attribute), 1);
                if (a->node == HOST(1))
                        ck_assert_uint_ge(count_asked(a->when + 1, a->when + 3 * INTERVAL / 2, a->node, a->port,
                                                      a->request.attribute), 1);
        }
}
END_TEST

START_TEST(results_that_come_too_late_or_never)
{
        struct mad_request requests[64], again;
        struct mad_result result;
        unsigned n = 0, n_again = 0;

        for (usec_t now = START; now < START + 5 * INTERVAL; now += INTERVAL / ITEMS)
                while (side.next(side.state, now, &requests[n]))
                        ck_assert_uint_lt(++n, 64);
        /* no query is repeated before it is answered: PortInfo of 5, ClassPortInfo of 5 */
        ck_assert_uint_eq(n, 10);
        side.reset(side.state, START + 5 * INTERVAL);
        /* old answers, though the same is under way again */
        for (usec_t now = START + 5 * INTERVAL; now < START + 6 * INTERVAL; now += INTERVAL / ITEMS)
                while (side.next(side.state, now, &again))
                        n_again++;
        ck_assert_uint_eq(n_again, 10);
        for (unsigned i = 0; i < n; i++) {
                answer(&requests[i], &result);
                side.result(side.state, START + 5 * INTERVAL, &result);
        }
        fetch();
        ck_assert_uint_eq(n_samples, 0);
        side.reset(side.state, START + 6 * INTERVAL);
        run(START + 6 * INTERVAL, START + 7 * INTERVAL + INTERVAL / ITEMS);
        /* a round and the beginning of the next */
        ck_assert_uint_ge(n_samples, 5 + 2 * 9);
        ck_assert_uint_le(n_samples, 5 + 2 * 9 + 4);
        /* answers to ports that are not there any more */
        n = 0;
        for (usec_t now = START + 8 * INTERVAL; now < START + 9 * INTERVAL; now += INTERVAL / ITEMS)
                while (side.next(side.state, now, &requests[n]))
                        n++;
        ck_assert_int_eq(violation_poll_set_subnet(poll, START + 9 * INTERVAL, make_subnet(0)), 0);
        n_samples = 0;
        for (unsigned i = 0; i < n; i++) {
                answer(&requests[i], &result);
                side.result(side.state, START + 9 * INTERVAL, &result);
                side.result(side.state, START + 9 * INTERVAL, &result); /* twice */
        }
        fetch();
        ck_assert_uint_eq(n_samples, 3); /* of port 0 of the switch */
}
END_TEST

/* As run(), but what `is_it` picks ends like this, and changes nothing. */
static unsigned run_into(usec_t from, usec_t until, bool (*is_it)(const struct mad_request *), enum mad_outcome outcome)
{
        struct mad_request q;
        unsigned n = 0;

        for (usec_t now = from; now < until; now = MAX(now + 1, side.due(side.state)))
                while (side.next(side.state, now, &q)) {
                        struct mad_result result = { .cookie = q.cookie, .outcome = outcome };

                        note_asked(now, &q);
                        if (is_it(&q))
                                n++;
                        else
                                answer(&q, &result);
                        side.result(side.state, now, &result);
                        fetch();
                }
        return n;
}

static bool is_set(const struct mad_request *q)
{
        return q->method == MAD_SET;
}

static bool is_of_host2(const struct mad_request *q)
{
        return node_of(q) == &nodes[2];
}

static bool is_counters_of_host2(const struct mad_request *q)
{
        return is_of_host2(q) && q->attribute == IB_GSI_PORT_COUNTERS;
}

/* A clear that got no answer, or was refused or not sent, cleared nothing as far as anybody knows: when the counter is full in the
 * next sample, it is asked for once more. */
START_TEST(a_clear_in_vain)
{
        static const enum mad_outcome outcomes[] = { MAD_TIMED_OUT, MAD_BUSY, MAD_REFUSED, MAD_UNSENT };
        usec_t now = START;

        set_config(true);
        nodes[3].ports[1].rcv = 255;
        for (unsigned i = 0; i < ELEMENTS(outcomes); i++, now += INTERVAL) {
                ck_assert_uint_eq(run_into(now, now + INTERVAL, is_set, outcomes[i]), 1);
                ck_assert_uint_eq(n_cleared, 0);
        }
        run(now, now + INTERVAL);
        ck_assert_uint_eq(n_cleared, 1);
        ck_assert_uint_eq(nodes[3].ports[1].rcv, 0);
}
END_TEST

/* With the session ends what was under way: nothing waits for a clear that will not come back. */
START_TEST(a_clear_that_a_reset_ends)
{
        const struct violation_port port = { .node_guid = G(HOST(1)), .number = 1 };
        struct mad_request q;

        set_config(true);
        run(START, START + INTERVAL);
        for (unsigned i = 0; i < 3; i++) {
                violation_poll_clear(poll, port, VIOLATION_XMIT_CONSTRAINT);
                ck_assert(side.next(side.state, START + INTERVAL, &q));
                ck_assert_int_eq(q.method, MAD_SET);
                ck_assert_uint_eq(q.retries, 0);
                side.reset(side.state, START + INTERVAL);
        }
}
END_TEST

/* Nor for silent ports that were polled before it. */
START_TEST(silent_ports_after_a_reset)
{
        usec_t now = START + 3 * INTERVAL;
        struct mad_request q;

        nodes[1].is_dead = nodes[2].is_dead = nodes[3].is_dead = true;
        run(START, now);
        for (unsigned i = 0; i < 4; i++, now += INTERVAL) {
                for (usec_t t = now; t < now + INTERVAL; t += INTERVAL / ITEMS)
                        while (side.next(side.state, t, &q))
                                ;
                side.reset(side.state, now + INTERVAL);
        }
        nodes[1].is_dead = nodes[2].is_dead = nodes[3].is_dead = false;
        run(now, now + 4 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 0);
}
END_TEST

/* What was not sent says nothing of a port, be it silent or not. One whose counters are busy is silent with these only: its other
 * queries wait for nobody. */
START_TEST(unsent_and_busy)
{
        usec_t now = START + 2 * INTERVAL;

        run(START, now);
        ck_assert_uint_eq(run_into(now, now + INTERVAL, is_of_host2, MAD_UNSENT), 2);
        ck_assert_uint_eq(n_silent(), 0);
        now += INTERVAL;
        ck_assert_uint_ge(run_into(now, now + INTERVAL, is_counters_of_host2, MAD_BUSY), 1);
        ck_assert_uint_eq(n_silent(), 1);
        now += INTERVAL;
        n_asked = 0;
        run(now, now + INTERVAL);
        ck_assert_uint_eq(n_silent(), 0);
        ck_assert_uint_eq(count_asked(now, now + INTERVAL, HOST(2), -1, CLASS_PORT_INFO), 0); /* the same agent as before */
        now += INTERVAL;
        nodes[2].is_dead = true;
        run(now, now + 2 * INTERVAL);
        now += 2 * INTERVAL;
        ck_assert_uint_eq(n_silent(), 1);
        (void) run_into(now, now + 2 * INTERVAL, is_of_host2, MAD_UNSENT);
        ck_assert_uint_eq(n_silent(), 1);
}
END_TEST

/* A port is silent if it does not answer PortInfo or its counters; if it answers neither, it counts once. */
START_TEST(silent_by_either)
{
        nodes[1].mute_port = 1;
        nodes[2].is_dead = true;
        run(START, START + 2 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 2);
        nodes[3].refuses_counters = true;
        run(START + 2 * INTERVAL, START + 3 * INTERVAL);
        nodes[3].is_dead = true; /* its counters are no longer polled */
        run(START + 3 * INTERVAL, START + 4 * INTERVAL);
        ck_assert_uint_eq(n_silent(), 3);
}
END_TEST

START_TEST(no_fabric_at_all)
{
        struct mad_stage once;
        struct mad_request q;

        ck_assert_int_eq(violation_poll_set_subnet(poll, START, make_subnet(0)), 0);
        run(START, START + INTERVAL);
        ck_assert_uint_eq(n_samples, 3);
        violation_poll_free(poll);
        poll = violation_poll_new(&(struct violation_poll_config) { .interval = INTERVAL });
        side = violation_poll_task(poll);
        ck_assert(!side.next(side.state, START, &q));
        ck_assert_uint_eq(side.due(side.state), USEC_INFINITY);
        once = violation_poll_once(poll);
        ck_assert(!once.next(once.state, 0, &q));
        ck_assert(once.done(once.state));
}
END_TEST

/* Takes all there is, answers last first. */
static void run_once(struct mad_stage *once)
{
        struct mad_request requests[64];
        struct mad_result result;
        uint64_t done, total;

        while (!once->done(once->state)) {
                unsigned n = 0;

                while (once->next(once->state, 0, &requests[n]))
                        ck_assert_uint_lt(++n, 64);
                ck_assert_uint_gt(n, 0);
                while (n-- > 0) {
                        answer(&requests[n], &result);
                        once->result(once->state, 0, &result);
                }
                fetch();
        }
        once->progress(once->state, &done, &total);
        ck_assert_uint_eq(done, total);
        ck_assert_uint_eq(total, ITEMS);
}

START_TEST(all_at_once)
{
        struct mad_stage once = violation_poll_once(poll);

        nodes[0].ports[4].rcv = 3;
        nodes[3].is_dead = true;
        run_once(&once);
        ck_assert_uint_eq(n_samples, 4 + 2 * 8);
        assert_sample(SWITCH, 4, VIOLATION_RCV_CONSTRAINT, 8, 3);
        nodes[0].ports[4].rcv = 5;
        once = violation_poll_once(poll);
        run_once(&once);
        ck_assert_uint_eq(n_samples, 2 * (4 + 2 * 8));
        assert_sample(SWITCH, 4, VIOLATION_RCV_CONSTRAINT, 8, 5);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("violation_poll");
        TCase *t = tcase_create("violation_poll");
        SRunner *r;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, asks_what_it_should);
        tcase_add_test(t, checks_who_is_plugged_in);
        tcase_add_test(t, checks_who_answers);
        tcase_add_test(t, another_switch_answers);
        tcase_add_loop_test(t, a_new_lid_before_the_check, 0, 2);
        tcase_add_test(t, a_name_that_got_lost);
        tcase_add_test(t, a_check_that_got_lost);
        tcase_add_test(t, silent_ports_take_no_places);
        tcase_add_test(t, a_switch_that_falls_silent_takes_one_place);
        tcase_add_test(t, many_switches_that_fall_silent);
        tcase_add_test(t, many_hosts_that_fall_silent);
        tcase_add_test(t, one_silent_port_of_a_switch_holds_up_no_other);
        tcase_add_test(t, who_waits_for_a_port_that_is_gone);
        tcase_add_test(t, silent_ports_that_are_not_asked_in_time);
        tcase_add_test(t, the_duration_is_of_whole_cycles);
        tcase_add_test(t, one_in_each_nth_of_an_interval);
        tcase_add_test(t, wide_counters_where_they_are);
        tcase_add_test(t, what_is_refused_is_not_asked_again);
        tcase_add_test(t, the_silent_are_asked_once_in_an_interval);
        tcase_add_test(t, redirected);
        tcase_add_test(t, redirected_later);
        tcase_add_test(t, rounds_that_take_too_long);
        tcase_add_test(t, only_the_full_counter_is_cleared);
        tcase_add_test(t, nothing_is_written_unrequested);
        tcase_add_test(t, nothing_is_cleared_where_the_pma_is_not);
        tcase_add_test(t, cleared_comes_in_its_order);
        tcase_add_test(t, a_pause_is_not_made_up_for);
        tcase_add_test(t, pictures_in_the_middle_of_a_round);
        tcase_add_test(t, results_that_come_too_late_or_never);
        tcase_add_test(t, a_clear_in_vain);
        tcase_add_test(t, a_clear_that_a_reset_ends);
        tcase_add_test(t, silent_ports_after_a_reset);
        tcase_add_test(t, unsent_and_busy);
        tcase_add_test(t, silent_by_either);
        tcase_add_test(t, no_fabric_at_all);
        tcase_add_test(t, all_at_once);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed != 0;
}
