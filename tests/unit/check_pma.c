/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "ib/pma.h"

/* The layouts are written out here byte by byte, from the tables of IBA 1.5, 16.1.3 and 16.1.4: a second opinion. */

START_TEST(class_port_info)
{
        uint8_t data[PMA_DATA_SIZE] = {};
        struct pma_class_port_info info;

        pma_class_port_info_decode(data, &info);
        ck_assert(!info.has_extended_errors);
        ck_assert_uint_eq(info.redirect_lid.v, 0);

        /* CapabilityMask bits 9 and 10: PortCountersExtended, with counters of data only */
        data[2] = 0x06;
        /* CapabilityMask2 has 27 bits, RespTimeValue the last 5 of the word: all of these, and bits 0 and 2 */
        data[7] = 0x1f | 1 << 5 | 1 << 7;
        pma_class_port_info_decode(data, &info);
        ck_assert(!info.has_extended_errors);

        data[7] = 1 << 6;
        data[28] = 0x12;
        data[29] = 0x34;
        data[33] = 0xab;
        data[34] = 0xcd;
        data[35] = 0xef;
        pma_class_port_info_decode(data, &info);
        ck_assert(info.has_extended_errors);
        ck_assert_uint_eq(info.redirect_lid.v, 0x1234);
        ck_assert_uint_eq(info.redirect_qp, 0xabcdef);
}
END_TEST

START_TEST(port_counters)
{
        uint8_t data[PMA_DATA_SIZE];
        uint64_t values[PMA_N_COUNTERS];

        memset(data, 0xee, sizeof(data));
        data[16] = 3;
        data[17] = 255;
        pma_counters_decode(data, false, values);
        ck_assert_uint_eq(values[PMA_XMIT_CONSTRAINT_ERRORS], 3);
        ck_assert_uint_eq(values[PMA_RCV_CONSTRAINT_ERRORS], 255);
}
END_TEST

START_TEST(port_counters_extended)
{
        uint8_t data[PMA_DATA_SIZE];
        uint64_t values[PMA_N_COUNTERS];

        memset(data, 0xee, sizeof(data));
        for (unsigned i = 0; i < 8; i++) {
                data[128 + i] = (uint8_t) (0x10 + i);
                data[136 + i] = (uint8_t) (0xf0 + i);
        }
        pma_counters_decode(data, true, values);
        ck_assert_uint_eq(values[PMA_XMIT_CONSTRAINT_ERRORS], 0x1011121314151617);
        ck_assert_uint_eq(values[PMA_RCV_CONSTRAINT_ERRORS], 0xf0f1f2f3f4f5f6f7);
}
END_TEST

/* Every byte but these is 0. */
static void assert_bytes(const uint8_t data[PMA_DATA_SIZE], unsigned at, uint8_t x, uint8_t y)
{
        for (unsigned i = 0; i < PMA_DATA_SIZE; i++) {
                uint8_t want = i == 1 ? 7 : i == at ? x : i == at + 1 ? y : 0;

                ck_assert_msg(data[i] == want, "byte %u is %#x, not %#x", i, data[i], want);
        }
}

START_TEST(a_question_selects_nothing)
{
        uint8_t data[PMA_DATA_SIZE];

        memset(data, 0xff, sizeof(data));
        pma_counters_encode(7, data);
        assert_bytes(data, 2, 0, 0);
}
END_TEST

/* CounterSelect is 16 bits at byte 2, its bits 7 and 8 the two; CounterSelect2 of the extended one 32 bits at byte 4. */
START_TEST(one_counter_is_cleared)
{
        uint8_t data[PMA_DATA_SIZE];

        memset(data, 0xff, sizeof(data));
        pma_clear_encode(7, false, PMA_XMIT_CONSTRAINT_ERRORS, data);
        assert_bytes(data, 2, 0x00, 0x80);
        pma_clear_encode(7, false, PMA_RCV_CONSTRAINT_ERRORS, data);
        assert_bytes(data, 2, 0x01, 0x00);
        pma_clear_encode(7, true, PMA_XMIT_CONSTRAINT_ERRORS, data);
        assert_bytes(data, 6, 0x00, 0x80);
        pma_clear_encode(7, true, PMA_RCV_CONSTRAINT_ERRORS, data);
        assert_bytes(data, 6, 0x01, 0x00);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("pma");
        TCase *t = tcase_create("pma");
        SRunner *r;
        int failed;

        tcase_add_test(t, class_port_info);
        tcase_add_test(t, port_counters);
        tcase_add_test(t, port_counters_extended);
        tcase_add_test(t, a_question_selects_nothing);
        tcase_add_test(t, one_counter_is_cleared);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed != 0;
}
