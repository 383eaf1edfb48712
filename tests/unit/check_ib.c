/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib/smp.h"

START_TEST(matching_rule)
{
        static const struct {
                uint16_t a, b;
                bool may_talk;
        } cases[] = {
                { 0x8001, 0x0001, true },  { 0x0001, 0x8001, true },  { 0x8001, 0x8001, true },  { 0x0001, 0x0001, false },
                { 0x8002, 0x0001, false }, { 0x8002, 0x8001, false }, { 0xffff, 0x7fff, true },  { 0x7fff, 0x7fff, false },
                { 0x0000, 0x8000, false }, { 0x8000, 0x8000, false },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct p_key a = { cases[i].a }, b = { cases[i].b };

                ck_assert_msg(p_key_may_talk(a, b) == cases[i].may_talk, "0x%04x and 0x%04x", a.v, b.v);
                ck_assert(p_key_may_talk(a, b) == p_key_may_talk(b, a));
        }
}
END_TEST

START_TEST(p_key_halves)
{
        struct p_key k = p_key_make(0xffff, false);

        ck_assert_uint_eq(k.v, 0x7fff);
        ck_assert(!p_key_is_full(k));
        ck_assert_uint_eq(p_key_make(0x10, true).v, 0x8010);
        ck_assert_uint_eq(p_key_base((struct p_key) { 0x8010 }), 0x10);
        ck_assert(!p_key_is_used((struct p_key) { 0x8000 }));
        ck_assert(!p_key_is_used((struct p_key) { 0 }));
        ck_assert(p_key_is_used((struct p_key) { 1 }));
}
END_TEST

START_TEST(p_key_lists)
{
        static const struct p_key table[] = { { 0x0000 }, { 0x8010 }, { 0x0020 } };
        static const struct p_key covered[] = { { 0x0010 }, { 0x8010 }, { 0x0020 }, { 0x8000 } };
        static const struct p_key full[] = { { 0x8010 }, { 0x8020 } }, first[] = { { 0x0030 }, { 0x0010 } };

        ck_assert(p_keys_hold(table, 3, (struct p_key) { 0x8010 }) && !p_keys_hold(table, 3, (struct p_key) { 0x0010 }));
        ck_assert(p_keys_hold_base(table, 3, 0x10) && p_keys_hold_base(table, 3, 0x20) && !p_keys_hold_base(table, 2, 0x20));
        ck_assert_ptr_null(p_keys_find_uncovered(table, 3, covered, 4));
        ck_assert_ptr_eq(p_keys_find_uncovered(table, 3, full, 2), &full[1]);
        ck_assert_ptr_eq(p_keys_find_uncovered(table, 3, first, 2), &first[0]);
        ck_assert_ptr_eq(p_keys_find_uncovered(table, 1, covered, 4), &covered[0]);
        ck_assert_ptr_null(p_keys_find_uncovered(table, 3, first, 0));
}
END_TEST

START_TEST(words)
{
        ck_assert_str_eq(membership_to_string(MEMBERSHIP_BOTH), "both");
        ck_assert_str_eq(membership_to_string(MEMBERSHIP_NONE), "none");
        ck_assert_str_eq(node_type_to_string(NODE_ROUTER), "router");
        ck_assert_str_eq(node_type_to_string((enum node_type) 77), "unknown");
        ck_assert_str_eq(port_state_to_string(PORT_STATE_ARMED), "ARMED");
        ck_assert_str_eq(mad_outcome_to_string(MAD_TIMED_OUT), "timeout");
        ck_assert_str_eq(mad_status_to_string(0), "ok");
        ck_assert_str_eq(mad_status_to_string(1), "busy");
        ck_assert_str_eq(mad_status_to_string(0x1c), "invalid attribute or modifier");
        ck_assert_str_eq(mad_status_to_string(0x0100), "class specific status");
        for (unsigned i = 0; i <= UINT16_MAX; i++)
                ck_assert_ptr_nonnull(mad_status_to_string((uint16_t) i));
}
END_TEST

/* Set(P_KeyTable), LID-routed, byte by byte (IBA 1.5, 13.4.3 and 14.2.1.1). */
START_TEST(encode_lid_routed)
{
        static const uint8_t header[32] = {
                0x01, 0x01, 0x01, 0x02, /* BaseVersion, MgmtClass, ClassVersion, Method */
                0x00, 0x00, 0x00, 0x00, /* Status, reserved */
                0x00, 0x00, 0x00, 0x00, 0xca, 0xfe, 0xba, 0xbe, /* TransactionID */
                0x00, 0x16, 0x00, 0x00, /* AttributeID, reserved */
                0x00, 0x05, 0x00, 0x02, /* AttributeModifier: port 5, block 2 */
                0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* M_Key */
        };
        struct mad_request q = {
                .route.lid.v = 0x0123,
                .method = MAD_SET,
                .attribute = SMP_ATTR_P_KEY_TABLE,
                .modifier = p_key_table_modifier(5, 2),
                .key = UINT64_C(0x1122334455667788),
        };
        uint8_t zeros[MAD_SIZE] = {};
        struct mad_frame f;

        for (size_t i = 0; i < SMP_DATA_SIZE; i++)
                q.data[i] = (uint8_t) (i + 1);
        mad_request_encode(&q, 0xcafebabe, &f);
        ck_assert_mem_eq(f.mad, header, sizeof(header));
        ck_assert_mem_eq(f.mad + 32, zeros, 32);
        ck_assert_mem_eq(f.mad + 64, q.data, SMP_DATA_SIZE);
        ck_assert_mem_eq(f.mad + 128, zeros, 128);
        ck_assert_uint_eq(f.length, MAD_SIZE);
        ck_assert_uint_eq(f.lid.v, 0x0123);
        ck_assert(!f.directed);
        ck_assert_uint_eq(mad_frame_tid(&f), 0xcafebabe);
}
END_TEST

/* Get(NodeInfo), directed route of two hops (IBA 1.5, 14.2.1.2). */
START_TEST(encode_directed)
{
        static const uint8_t header[40] = {
                0x01, 0x81, 0x01, 0x01, /* BaseVersion, MgmtClass, ClassVersion, Method */
                0x00, 0x00, 0x00, 0x02, /* D and Status, HopPointer, HopCount */
                0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, /* TransactionID */
                0x00, 0x11, 0x00, 0x00, /* AttributeID, reserved */
                0x00, 0x00, 0x00, 0x00, /* AttributeModifier */
                0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* M_Key */
                0xff, 0xff, 0xff, 0xff, /* DrSLID, DrDLID */
        };
        static const uint8_t path[5] = { 0, 1, 17, 0, 0 };
        struct mad_request q = {
                .route = { .hops = 2, .path = { 0, 1, 17 } },
                .method = MAD_GET,
                .attribute = SMP_ATTR_NODE_INFO,
        };
        struct mad_frame f;

        mad_request_encode(&q, 7, &f);
        ck_assert_mem_eq(f.mad, header, sizeof(header));
        ck_assert_mem_eq(f.mad + 128, path, sizeof(path));
        ck_assert_uint_eq(f.lid.v, 0xffff);
        ck_assert(f.directed);
}
END_TEST

/* A transaction ID is ours to choose, 0 too: the same request gives the same bytes each time. */
START_TEST(encode_is_pure)
{
        struct mad_request q = { .route.lid.v = 1, .method = MAD_GET, .attribute = SMP_ATTR_PORT_INFO };
        struct mad_frame a, b;

        mad_request_encode(&q, 0, &a);
        mad_request_encode(&q, 0, &b);
        ck_assert_uint_eq(mad_frame_tid(&a), 0);
        ck_assert_mem_eq(a.mad, b.mad, MAD_SIZE);
}
END_TEST

/* A route longer than a MAD can hold must not become a write or read out of bounds. */
START_TEST(encode_hops_bounded)
{
        struct mad_request q = { .route.hops = 255, .method = MAD_GET, .attribute = SMP_ATTR_NODE_INFO };
        struct mad_frame f;

        mad_request_encode(&q, 1, &f);
        ck_assert_uint_eq(f.mad[7], MAD_MAX_HOPS);
}
END_TEST

static struct mad_request a_request(bool directed)
{
        return (struct mad_request) {
                .route = { .lid.v = directed ? 0 : 9, .hops = 1, .path = { 0, 1 } },
                .method = MAD_GET,
                .attribute = SMP_ATTR_P_KEY_TABLE,
                .modifier = 3,
        };
}

static struct mad_frame an_answer(const struct mad_request *q)
{
        struct mad_frame f;

        mad_request_encode(q, 5, &f);
        f.mad[3] = MAD_GET_RESP;
        if (f.directed)
                f.mad[4] |= 0x80;
        return f;
}

START_TEST(check_response)
{
        static const struct {
                unsigned byte;
                uint8_t value;
                int r;
        } damages[] = {
                { 0, 2, -EPROTO },     /* base version */
                { 1, 0x04, -EPROTO },  /* class */
                { 2, 2, -EPROTO },     /* class version */
                { 3, MAD_GET, -EPROTO },
                { 3, MAD_SET, -EPROTO },
                { 3, 0x85, -EPROTO },
                { 17, 0x15, -EBADMSG }, /* attribute */
                { 16, 0x01, -EBADMSG },
                { 23, 4, -EBADMSG },    /* modifier */
                { 20, 4, -EBADMSG },
        };
        struct mad_request q = a_request(_i);
        struct mad_frame f = an_answer(&q);
        uint16_t status = 0xaaaa;

        ck_assert_int_eq(mad_check_response(&q, &f, &status), 0);
        ck_assert_uint_eq(status, 0);
        for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
                struct mad_frame g = f;

                g.mad[damages[i].byte] = damages[i].value;
                status = 0xaaaa;
                ck_assert_msg(mad_check_response(&q, &g, &status) == damages[i].r, "damage %zu", i);
                ck_assert_uint_eq(status, 0xaaaa);
        }
        for (f.length = 0; f.length < MAD_SIZE; f.length++)
                ck_assert_int_eq(mad_check_response(&q, &f, &status), -EMSGSIZE);
}
END_TEST

START_TEST(check_response_class)
{
        struct mad_request lid_routed = a_request(false), directed = a_request(true);
        struct mad_frame f = an_answer(&lid_routed), g = an_answer(&directed);
        uint16_t status;

        ck_assert_int_eq(mad_check_response(&directed, &f, &status), -EPROTO);
        ck_assert_int_eq(mad_check_response(&lid_routed, &g, &status), -EPROTO);
}
END_TEST

START_TEST(check_response_status)
{
        struct mad_request lid_routed = a_request(false), directed = a_request(true);
        struct mad_frame f = an_answer(&lid_routed), g = an_answer(&directed);
        uint16_t status;

        f.mad[4] = 0x81;
        f.mad[5] = 0x1c;
        ck_assert_int_eq(mad_check_response(&lid_routed, &f, &status), 0);
        ck_assert_uint_eq(status, 0x811c);
        g.mad[5] = 0x01;
        ck_assert_int_eq(mad_check_response(&directed, &g, &status), 0);
        ck_assert_uint_eq(status, 0x0001); /* without the direction */
        ck_assert(mad_status_is_busy(status));
}
END_TEST

START_TEST(p_key_blocks)
{
        struct p_key keys[P_KEY_BLOCK_ENTRIES], back[P_KEY_BLOCK_ENTRIES];
        uint8_t data[SMP_DATA_SIZE];

        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                keys[i].v = (uint16_t) (0x8102 + i * 0x0101);
        p_key_block_encode(keys, data);
        ck_assert_uint_eq(data[0], 0x81);
        ck_assert_uint_eq(data[1], 0x02);
        ck_assert_uint_eq(data[62], 0xa0);
        ck_assert_uint_eq(data[63], 0x21);
        p_key_block_decode(data, back);
        ck_assert_mem_eq(keys, back, sizeof(keys));
}
END_TEST

START_TEST(p_key_modifier)
{
        ck_assert_uint_eq(p_key_table_modifier(0, 0), 0);
        ck_assert_uint_eq(p_key_table_modifier(0, 2047), 0x7ff);
        ck_assert_uint_eq(p_key_table_modifier(36, 1), 0x00240001);
        ck_assert_uint_eq(p_key_table_modifier(254, 65535), 0x00feffff);
}
END_TEST

/* IBA 1.5, 14.2.5.3 */
START_TEST(node_info)
{
        static const uint8_t data[SMP_DATA_SIZE] = {
                0x01, 0x01, 0x02, 0x24, /* BaseVersion, ClassVersion, NodeType, NumPorts */
                0, 1, 2, 3, 4, 5, 6, 7, /* SystemImageGUID */
                0x00, 0x02, 0xc9, 0x03, 0x00, 0x0e, 0x0b, 0x70, /* NodeGUID */
                0x00, 0x02, 0xc9, 0x03, 0x00, 0x0e, 0x0b, 0x71, /* PortGUID */
                0x00, 0x80, 0x10, 0x03, /* PartitionCap, DeviceID */
                0, 0, 0, 0,             /* Revision */
                0x07, 0x00, 0x02, 0xc9, /* LocalPortNum, VendorID */
        };
        struct node_info ni;

        node_info_decode(data, &ni);
        ck_assert_int_eq(ni.type, NODE_SWITCH);
        ck_assert_uint_eq(ni.num_ports, 0x24);
        ck_assert_uint_eq(ni.node_guid.v, UINT64_C(0x0002c903000e0b70));
        ck_assert_uint_eq(ni.port_guid.v, UINT64_C(0x0002c903000e0b71));
        ck_assert_uint_eq(ni.partition_cap, 128);
        ck_assert_uint_eq(ni.local_port, 7);
}
END_TEST

/* IBA 1.5, 14.2.5.4: PartitionEnforcementCap is bytes 14 and 15, the capability bits the two highest of byte 16. */
START_TEST(switch_info)
{
        uint8_t data[SMP_DATA_SIZE] = {};
        struct switch_info si;

        data[15] = 32;
        data[16] = 0x80;
        switch_info_decode(data, &si);
        ck_assert_uint_eq(si.partition_enforcement_cap, 32);
        ck_assert(si.inbound_enforcement_cap);
        ck_assert(!si.outbound_enforcement_cap);
        data[16] = 0x40;
        switch_info_decode(data, &si);
        ck_assert(!si.inbound_enforcement_cap);
        ck_assert(si.outbound_enforcement_cap);
}
END_TEST

/* IBA 1.5, 14.2.5.6 */
START_TEST(port_info)
{
        uint8_t data[SMP_DATA_SIZE] = {};
        struct port_info pi;

        data[17] = 0x21; /* LID */
        data[16] = 0x01;
        data[19] = 0x05; /* MasterSMLID */
        data[32] = 0x14; /* LinkSpeedSupported, PortState */
        data[34] = 0x03; /* M_KeyProtectBits, reserved, LMC */
        data[43] = 0x48; /* OperationalVLs, PartitionEnforcementInbound, ...Outbound, FilterRaw... */
        data[33] = 0x52; /* PortPhysicalState, LinkDownDefaultState */
        data[44] = 0x56; /* M_KeyViolations */
        data[45] = 0x78;
        data[46] = 0x12; /* P_KeyViolations */
        data[47] = 0x34;
        port_info_decode(data, &pi);
        ck_assert_uint_eq(pi.lid.v, 0x0121);
        ck_assert_uint_eq(pi.sm_lid.v, 5);
        ck_assert_int_eq(pi.state, PORT_STATE_ACTIVE);
        ck_assert_uint_eq(pi.lmc, 3);
        ck_assert(pi.enforce_inbound);
        ck_assert(!pi.enforce_outbound);
        ck_assert_uint_eq(pi.p_key_violations, 0x1234);
        ck_assert_uint_eq(pi.m_key_violations, 0x5678);
        ck_assert(pi.link_up);

        data[32] = 0x1f; /* a state that does not exist */
        data[33] = 0x45;
        port_info_decode(data, &pi);
        ck_assert(!pi.link_up);
        ck_assert_int_eq(pi.state, PORT_STATE_NONE);
}
END_TEST

/* Of a PortInfo full of ones, only the commands and the two bits may change. */
START_TEST(port_info_enforcement)
{
        uint8_t data[SMP_DATA_SIZE], expected[SMP_DATA_SIZE];

        memset(expected, 0xff, sizeof(expected));
        expected[29] = 0x00; /* LinkWidthEnabled */
        expected[32] = 0xf0; /* PortState */
        expected[33] = 0x00; /* PortPhysicalState, LinkDownDefaultState */
        expected[35] = 0xf0; /* LinkSpeedEnabled */
        expected[43] = 0xfb; /* PartitionEnforcementOutbound */
        expected[51] = 0x7f; /* ClientReregister */
        expected[63] = 0xe0; /* LinkSpeedExtEnabled */
        memset(data, 0xff, sizeof(data));
        port_info_set_enforcement(data, true, false);
        ck_assert_mem_eq(data, expected, sizeof(data));

        memset(data, 0, sizeof(data));
        memset(expected, 0, sizeof(expected));
        expected[43] = 0x0c;
        port_info_set_enforcement(data, true, true);
        ck_assert_mem_eq(data, expected, sizeof(data));
}
END_TEST

int main(void)
{
        Suite *s = suite_create("ib");
        TCase *t = tcase_create("ib");
        SRunner *r;
        int n_failed;

        tcase_add_test(t, matching_rule);
        tcase_add_test(t, p_key_halves);
        tcase_add_test(t, words);
        tcase_add_test(t, encode_lid_routed);
        tcase_add_test(t, encode_directed);
        tcase_add_test(t, encode_is_pure);
        tcase_add_test(t, encode_hops_bounded);
        tcase_add_loop_test(t, check_response, 0, 2);
        tcase_add_test(t, check_response_class);
        tcase_add_test(t, check_response_status);
        tcase_add_test(t, p_key_lists);
        tcase_add_test(t, p_key_blocks);
        tcase_add_test(t, p_key_modifier);
        tcase_add_test(t, node_info);
        tcase_add_test(t, switch_info);
        tcase_add_test(t, port_info);
        tcase_add_test(t, port_info_enforcement);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
