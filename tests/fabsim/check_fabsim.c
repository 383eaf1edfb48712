/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual fabric does what hardware does: if it did not, nothing that is proven on it would be worth much. */

#include <check.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

/* Host 0 (self) and host 1 on one leaf, host 2 behind a second switch. */
struct setup {
        struct fabsim f;
        unsigned leaf, spine;
        struct fabsim_place host[3];
};

static void setup_init(struct setup *s)
{
        memset(s, 0, sizeof(*s));
        s->leaf = fabsim_add_node(&s->f, NODE_SWITCH, 4, 8, "leaf");
        s->spine = fabsim_add_node(&s->f, NODE_SWITCH, 4, 8, "spine");
        for (unsigned h = 0; h < 3; h++)
                s->host[h] = (struct fabsim_place) { fabsim_add_node(&s->f, NODE_CA, 1, 40, "host mlx5_0"), 1 };
        fabsim_set_enforcement_cap(&s->f, s->leaf, 32, true, true);
        fabsim_connect(&s->f, s->host[0].node, 1, s->leaf, 1);
        fabsim_connect(&s->f, s->host[1].node, 1, s->leaf, 2);
        fabsim_connect(&s->f, s->leaf, 4, s->spine, 1);
        fabsim_connect(&s->f, s->spine, 3, s->host[2].node, 1);
        for (unsigned h = 0; h < 3; h++)
                fabsim_port_at(&s->f, s->host[h])->lid.v = (uint16_t) (10 + h);
        s->f.nodes[s->leaf].ports[0].lid.v = 20;
        s->f.self = s->f.sm = s->host[0];
}

static struct mad_request by_lid(uint16_t lid, enum mad_method method, enum smp_attribute attribute, uint32_t modifier)
{
        return (struct mad_request) { .route.lid.v = lid, .method = method, .attribute = attribute, .modifier = modifier };
}

/* 0 and the data in the request, or the status; -1: no answer. Answers are checked as by the engine. */
static int ask(struct setup *s, struct mad_request *request, usec_t now)
{
        struct mad_frame frame, answer;
        struct fabsim_place at;
        unsigned hops;
        uint16_t status;

        mad_request_encode(request, 77, &frame);
        if (!fabsim_route(&s->f, &frame, &at, &hops) || !fabsim_answer(&s->f, now, at, &frame, &answer))
                return -1;
        ck_assert_int_eq(mad_check_response(request, &answer, &status), 0);
        ck_assert_uint_eq(mad_frame_tid(&answer), 77);
        mad_frame_get_data(&answer, MAD_CLASS_SMP, request->data);
        return status;
}

START_TEST(test_routes)
{
        struct setup s;
        struct mad_request r = by_lid(12, MAD_GET, SMP_ATTR_NODE_INFO, 0);
        struct node_info ni;

        setup_init(&s);
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        node_info_decode(r.data, &ni);
        ck_assert_uint_eq(ni.node_guid.v, s.f.nodes[s.host[2].node].guid.v);
        ck_assert_uint_eq(ni.partition_cap, 40);
        ck_assert_int_eq(fabsim_distance(&s.f, s.host[2]), 3);
        r = by_lid(0, MAD_GET, SMP_ATTR_NODE_INFO, 0);
        r.route.hops = 3;
        r.route.path[1] = 1;
        r.route.path[2] = 4;
        r.route.path[3] = 3;
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        node_info_decode(r.data, &ni);
        ck_assert_uint_eq(ni.port_guid.v, s.f.nodes[s.host[2].node].ports[1].guid.v);
        r.route.path[3] = 2; /* no cable there */
        ck_assert_int_eq(ask(&s, &r, 0), -1);
        fabsim_disconnect(&s.f, s.spine, 1);
        r = by_lid(12, MAD_GET, SMP_ATTR_NODE_INFO, 0);
        ck_assert_int_eq(ask(&s, &r, 0), -1);
        r = by_lid(99, MAD_GET, SMP_ATTR_NODE_INFO, 0);
        ck_assert_int_eq(ask(&s, &r, 0), -1);
}
END_TEST

START_TEST(test_tables)
{
        struct setup s;
        struct mad_request r = by_lid(11, MAD_SET, SMP_ATTR_P_KEY_TABLE, p_key_table_modifier(0, 1));
        struct p_key block[P_KEY_BLOCK_ENTRIES] = { { 0x8010 }, { 0x0011 } };

        setup_init(&s);
        block[8].v = 0x8013; /* behind the end of 40 entries */
        p_key_block_encode(block, r.data);
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        p_key_block_decode(r.data, block);
        ck_assert_uint_eq(block[1].v, 0x0011);
        ck_assert_uint_eq(block[8].v, 0);
        ck_assert_uint_eq(fabsim_port_at(&s.f, s.host[1])->table[32].v, 0x8010);
        r = by_lid(11, MAD_GET, SMP_ATTR_P_KEY_TABLE, p_key_table_modifier(0, 2));
        ck_assert_int_eq(ask(&s, &r, 0), 0x1c);
        r = by_lid(20, MAD_SET, SMP_ATTR_P_KEY_TABLE, p_key_table_modifier(2, 0));
        p_key_block_encode(block, r.data);
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        ck_assert_uint_eq(s.f.nodes[s.leaf].ports[2].table[0].v, 0x8010);
        ck_assert_uint_eq(s.f.nodes[s.leaf].ports[1].table[0].v, 0);
        r = by_lid(20, MAD_GET, SMP_ATTR_P_KEY_TABLE, p_key_table_modifier(5, 0));
        ck_assert_int_eq(ask(&s, &r, 0), 0x1c);
        fabsim_port_at(&s.f, s.host[1])->swallows.v = 0x0011;
        fabsim_port_at(&s.f, s.host[1])->lies = true;
        r = by_lid(11, MAD_SET, SMP_ATTR_P_KEY_TABLE, 0);
        p_key_block_encode(block, r.data);
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        ck_assert_uint_eq(r.data[3], 0x11);
        ck_assert_uint_eq(fabsim_port_at(&s.f, s.host[1])->table[1].v, 0);
}
END_TEST

START_TEST(test_enforcement_bits)
{
        struct setup s;
        struct mad_request r = by_lid(20, MAD_GET, SMP_ATTR_PORT_INFO, 2);
        struct port_info pi;

        setup_init(&s);
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        port_info_decode(r.data, &pi);
        ck_assert(!pi.enforce_inbound && !pi.enforce_outbound && pi.state == PORT_STATE_ACTIVE);
        port_info_set_enforcement(r.data, true, false);
        r.method = MAD_SET;
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        ck_assert(s.f.nodes[s.leaf].ports[2].enforce_inbound);
        ck_assert(!s.f.nodes[s.leaf].ports[2].enforce_outbound);
        s.f.nodes[s.leaf].inbound_cap = false; /* a switch that cannot does not */
        ck_assert_int_eq(ask(&s, &r, 0), 0);
        ck_assert(!s.f.nodes[s.leaf].ports[2].enforce_inbound);
        r.modifier = 5;
        ck_assert_int_eq(ask(&s, &r, 0), 0x1c);
}
END_TEST

/* Levels 0 to 3, and a lease that ends the protection (IBA 1.5, 14.2.4). */
START_TEST(test_m_key)
{
        struct setup s;
        struct mad_request get = by_lid(11, MAD_GET, SMP_ATTR_P_KEY_TABLE, 0);
        struct mad_request set = by_lid(11, MAD_SET, SMP_ATTR_P_KEY_TABLE, 0);
        struct mad_request info = by_lid(11, MAD_GET, SMP_ATTR_PORT_INFO, 0);
        struct fabsim_port *p;

        setup_init(&s);
        p = fabsim_port_at(&s.f, s.host[1]);
        p->m_key = 0x1234;
        for (p->m_key_protection = 0; p->m_key_protection < 4; p->m_key_protection++) {
                ck_assert_int_eq(ask(&s, &set, 0), -1);
                ck_assert_int_eq(ask(&s, &get, 0), p->m_key_protection < 2 ? 0 : -1);
                if (p->m_key_protection < 2) {
                        ck_assert_int_eq(ask(&s, &info, 0), 0);
                        ck_assert_uint_eq(mad_get_field64(info.data, 0, IB_PORT_MKEY_F),
                                          p->m_key_protection == 0 ? 0x1234 : 0);
                }
        }
        ck_assert_uint_eq(p->m_key_violations, 4 + 2);
        p->m_key_protection = 3;
        get.key = set.key = 0x1234;
        ck_assert_int_eq(ask(&s, &get, 0), 0);
        ck_assert_int_eq(ask(&s, &set, 0), 0);
        get.key = 0;
        p->m_key_lease = 10;
        ck_assert_int_eq(ask(&s, &get, 0), -1);
        ck_assert_int_eq(ask(&s, &get, 9 * USEC_PER_SEC), -1);
        ck_assert_int_eq(ask(&s, &get, 10 * USEC_PER_SEC), 0);
}
END_TEST

static void put(struct fabsim *f, struct fabsim_place p, unsigned index, uint16_t key)
{
        fabsim_port_at(f, p)->table[index].v = key;
}

static const struct p_key full = { 0x8010 }, limited = { 0x0010 };

START_TEST(test_packets)
{
        struct setup s;
        struct fabsim_place leaf1, leaf2;

        setup_init(&s);
        leaf1 = (struct fabsim_place) { s.leaf, 1 };
        leaf2 = (struct fabsim_place) { s.leaf, 2 };
        ck_assert(!fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        put(&s.f, s.host[0], 3, 0x0010);
        put(&s.f, s.host[1], 7, 0x0010);
        ck_assert(!fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        ck_assert_uint_eq(fabsim_port_at(&s.f, s.host[1])->p_key_violations, 1);
        ck_assert_uint_eq(s.f.n_notices, 1);
        ck_assert_uint_eq(s.f.notices[0].trap, 257);
        ck_assert_uint_eq(s.f.notices[0].lid1.v, 10);
        put(&s.f, s.host[1], 7, 0x8010);
        ck_assert(fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        ck_assert(fabsim_send_packet(&s.f, s.host[1], s.host[0], full));
        ck_assert(fabsim_base_passes(&s.f, s.host[0], s.host[1], 0x10, true));
        /* the sender's own leaf port counts, and names it */
        fabsim_port_at(&s.f, leaf1)->enforce_inbound = true;
        ck_assert(!fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        ck_assert_uint_eq(fabsim_port_at(&s.f, leaf1)->rcv_constraint_errors, 1);
        ck_assert_uint_eq(s.f.notices[1].trap, 259);
        ck_assert_uint_eq(s.f.notices[1].switch_port, 1);
        ck_assert(fabsim_base_passes(&s.f, s.host[1], s.host[0], 0x10, false));
        put(&s.f, leaf1, 0, 0x0010);
        ck_assert(fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        fabsim_port_at(&s.f, leaf2)->enforce_outbound = true;
        ck_assert(!fabsim_send_packet(&s.f, s.host[0], s.host[1], limited));
        ck_assert_uint_eq(fabsim_port_at(&s.f, leaf2)->xmit_constraint_errors, 1);
        put(&s.f, leaf2, 0, 0x0010);
        ck_assert(fabsim_base_passes(&s.f, s.host[0], s.host[1], 0x10, false));
        ck_assert(!fabsim_base_passes(&s.f, s.host[0], s.host[1], 0x10, true)); /* no more than limited behind it */
}
END_TEST

START_TEST(test_counters)
{
        struct setup s;
        struct mad_frame frame = { .length = MAD_SIZE }, answer;
        struct fabsim_place leaf1;

        setup_init(&s);
        leaf1 = (struct fabsim_place) { s.leaf, 1 };
        fabsim_port_at(&s.f, leaf1)->rcv_constraint_errors = 300;
        mad_set_field(frame.mad, 0, IB_MAD_METHOD_F, 1);
        mad_set_field(frame.mad, 0, IB_MAD_MGMTCLASS_F, 4);
        mad_set_field(frame.mad, 0, IB_MAD_ATTRID_F, 0x12);
        mad_set_field(frame.mad + 64, 0, IB_PC_PORT_SELECT_F, 1);
        s.f.nodes[s.leaf].has_wide_errors = true;
        fabsim_port_at(&s.f, leaf1)->xmit_constraint_errors = 7;
        ck_assert(fabsim_answer(&s.f, 0, (struct fabsim_place) { s.leaf, 0 }, &frame, &answer));
        ck_assert_uint_eq(mad_get_field(answer.mad + 64, 0, IB_PC_ERR_RCVCONSTR_F), 255);
        mad_set_field(frame.mad, 0, IB_MAD_ATTRID_F, 0x1d);
        ck_assert(fabsim_answer(&s.f, 0, (struct fabsim_place) { s.leaf, 0 }, &frame, &answer));
        ck_assert_uint_eq(mad_get_field64(answer.mad + 64, 0, IB_PC_EXT_ERR_RCVCONSTR_F), 300);
        mad_set_field(frame.mad, 0, IB_MAD_ATTRID_F, 0x12);
        mad_set_field(frame.mad, 0, IB_MAD_METHOD_F, 2);
        mad_set_field(frame.mad + 64, 0, IB_PC_COUNTER_SELECT_F, 0x100);
        ck_assert(fabsim_answer(&s.f, 0, (struct fabsim_place) { s.leaf, 0 }, &frame, &answer));
        ck_assert_uint_eq(fabsim_port_at(&s.f, leaf1)->rcv_constraint_errors, 0);
        ck_assert_uint_eq(fabsim_port_at(&s.f, leaf1)->xmit_constraint_errors, 7);
        /* 64 bits only if ClassPortInfo indicates them */
        s.f.nodes[s.leaf].has_wide_errors = false;
        mad_set_field(frame.mad, 0, IB_MAD_METHOD_F, 1);
        mad_set_field(frame.mad, 0, IB_MAD_ATTRID_F, 0x1d);
        ck_assert(fabsim_answer(&s.f, 0, (struct fabsim_place) { s.leaf, 0 }, &frame, &answer));
        ck_assert_uint_eq(mad_get_field64(answer.mad + 64, 0, IB_PC_EXT_ERR_XMTCONSTR_F), 0);
        mad_set_field(frame.mad, 0, IB_MAD_ATTRID_F, 1);
        ck_assert(fabsim_answer(&s.f, 0, (struct fabsim_place) { s.leaf, 0 }, &frame, &answer));
        ck_assert_uint_eq(answer.mad[64 + 7], 0);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("fabsim");
        TCase *t = tcase_create("fabric");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_add_test(t, test_routes);
        tcase_add_test(t, test_tables);
        tcase_add_test(t, test_enforcement_bits);
        tcase_add_test(t, test_m_key);
        tcase_add_test(t, test_packets);
        tcase_add_test(t, test_counters);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
