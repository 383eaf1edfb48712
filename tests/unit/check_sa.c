/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What goes to and comes from the SA, byte by byte, as the standard's tables have it; nothing here uses the codecs. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib/sa.h"

/* Two digits a byte; spaces are ignored. Returns how many bytes. */
static size_t bytes_of(const char *hex, uint8_t *ret)
{
        size_t n = 0;

        while (*hex) {
                char pair[3] = { hex[0], hex[1], 0 };

                if (*hex == ' ') {
                        hex++;
                        continue;
                }
                ret[n++] = (uint8_t) strtoul(pair, NULL, 16);
                hex += 2;
        }
        return n;
}

static void check_mad(const struct mad_request *request, const char *header, const char *data)
{
        uint8_t expected[MAD_SIZE] = {};
        struct mad_frame frame;

        mad_request_encode(request, 0x01020304, &frame);
        ck_assert_uint_eq(bytes_of(header, expected), 56);
        ck_assert_uint_le(bytes_of(data, expected + 56), 200);
        for (size_t i = 0; i < MAD_SIZE; i++)
                ck_assert_msg(frame.mad[i] == expected[i], "byte %zu is 0x%02x, not 0x%02x", i, frame.mad[i],
                              expected[i]);
}

START_TEST(subscribe)
{
        struct inform_info info = { .trap = 257, .type = INFORM_ANY, .subscribe = true };
        struct mad_request r;

        inform_info_request(&info, (struct lid) { 7 }, 3, UINT64_C(0x1122334455667788), &r);
        ck_assert_uint_eq(r.route.lid.v, 7);
        ck_assert_uint_eq(r.route.sl, 3);
        ck_assert_uint_eq(r.retries, 0);
        check_mad(&r,
                  "01 03 02 02 0000 0000 0000000001020304 0003 0000 00000000" /* class, version, Set; TID; InformInfo */
                  "000000000000000000000000 1122334455667788 0000 0000 00000000000015f2", /* RMPP, SM_Key, components */
                  "00000000000000000000000000000000 ffff 0000 0000 01 01 ffff 0101 000001 12 00 ffffff");
}
END_TEST

START_TEST(unsubscribe_from_a_type)
{
        struct inform_info info = { .trap = INFORM_ANY, .type = INFORM_TYPE_SECURITY, .subscribe = false };
        struct mad_request r;

        inform_info_request(&info, (struct lid) { 7 }, 0, 0, &r);
        check_mad(&r,
                  "01 03 02 02 0000 0000 0000000001020304 0003 0000 00000000"
                  "000000000000000000000000 0000000000000000 0000 0000 00000000000015f2",
                  "00000000000000000000000000000000 ffff 0000 0000 01 00 0002 ffff 000001 12 00 ffffff");
}
END_TEST

START_TEST(taken)
{
        struct inform_info info = { .trap = 259, .type = INFORM_ANY, .subscribe = true };
        uint8_t data[MAD_DATA_SIZE] = {};

        (void) bytes_of("00000000000000000000000000000000 ffff 0000 0000 01 01 ffff 0103 000001 12 00 ffffff", data);
        ck_assert(inform_info_is_accepted(&info, data));
        data[23] = 0; /* not subscribed after all */
        ck_assert(!inform_info_is_accepted(&info, data));
        info.subscribe = false;
        ck_assert(inform_info_is_accepted(&info, data));
        data[27] = 2; /* of another trap */
        ck_assert(!inform_info_is_accepted(&info, data));
        data[27] = 3;
        data[25] = 4; /* of one type only */
        ck_assert(!inform_info_is_accepted(&info, data));
        data[25] = 0xff;
        data[22] = 0; /* the vendor's own traps */
        ck_assert(!inform_info_is_accepted(&info, data));
}
END_TEST

static int decode(const char *hex, struct notice *ret)
{
        uint8_t data[MAD_DATA_SIZE] = {};

        ck_assert_uint_eq(bytes_of(hex, data), 80);
        memset(data + 80, 0xee, sizeof(data) - 80); /* behind the Notice nothing is read */
        return notice_decode(data, ret);
}

#define GIDS "fe80000000000000 0002c90300000101 fe80000000000000 0002c90300000201 "
#define NO_GIDS "0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
#define ISSUER "fe80000000000000 0002c90300000201"
/* generic and security; producer; trap; issuer; toggle and count */
#define HEAD_257 "82 000001 0101 0014 8005 "
#define HEAD_258 "82 000001 0102 0014 0000 "
#define HEAD_259 "82 000002 0103 0020 0001 "

START_TEST(notice_257)
{
        struct notice n;

        ck_assert_int_eq(decode(HEAD_257 "0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.trap, 257);
        ck_assert_uint_eq(n.issuer.v, 0x14);
        ck_assert_uint_eq(n.key, 0x8101);
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(n.lid2.v, 20);
        ck_assert_uint_eq(n.qp1, 0xabc);
        ck_assert_uint_eq(n.qp2, 0xdef);
        ck_assert(n.has_gid1 && n.has_gid2 && !n.has_switch_port);
        ck_assert_uint_eq(n.gid1.prefix, UINT64_C(0xfe80000000000000));
        ck_assert_uint_eq(n.gid1.id, UINT64_C(0x0002c90300000101));
        ck_assert_uint_eq(n.gid2.id, UINT64_C(0x0002c90300000201));
}
END_TEST

START_TEST(notice_258)
{
        struct notice n;

        ck_assert_int_eq(decode(HEAD_258 "ffff 000b c001 80010000 ffffffff ff000002 " NO_GIDS "ffffffff" ISSUER, &n), 0);
        ck_assert_uint_eq(n.trap, 258);
        ck_assert_uint_eq(n.key, 0x80010000); /* a Q_Key has 32 bits */
        ck_assert_uint_eq(n.lid2.v, 0xc001);  /* sent to a multicast group */
        ck_assert_uint_eq(n.qp1, 0xffffff);
        ck_assert_uint_eq(n.qp2, 2);
        ck_assert(!n.has_gid1 && !n.has_gid2);
}
END_TEST

START_TEST(notice_259)
{
        struct notice n;

        ck_assert_int_eq(decode(HEAD_259 "00ff 000b 0014 8101 30000abc 00000def " GIDS "0020 11 000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.trap, 259);
        ck_assert_uint_eq(n.issuer.v, 0x20);
        ck_assert_uint_eq(n.key, 0x8101);
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(n.lid2.v, 20);
        ck_assert_uint_eq(n.qp1, 0xabc);
        ck_assert_uint_eq(n.qp2, 0xdef);
        ck_assert(n.has_gid1 && n.has_gid2 && n.has_switch_port);
        ck_assert_uint_eq(n.gid1.id, UINT64_C(0x0002c90300000101));
        ck_assert_uint_eq(n.gid2.id, UINT64_C(0x0002c90300000201));
        ck_assert_uint_eq(n.switch_lid.v, 0x20);
        ck_assert_uint_eq(n.switch_port, 17);
}
END_TEST

START_TEST(what_a_switch_says_is_valid)
{
        struct notice n;

        /* the sender's LID and the P_Key, nothing else */
        ck_assert_int_eq(decode(HEAD_259 "0005 000b 0014 8101 30000abc 00000def " GIDS "0020 11 000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(n.key, 0x8101);
        ck_assert_uint_eq(n.lid2.v, 0);
        ck_assert_uint_eq(n.qp1 + n.qp2, 0);
        ck_assert(!n.has_gid1 && !n.has_gid2 && n.has_switch_port);
        /* all but those */
        ck_assert_int_eq(decode(HEAD_259 "00fa 000b 0014 8101 30000abc 00000def " GIDS "0020 11 000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.lid1.v + n.key, 0);
        ck_assert_uint_eq(n.lid2.v, 20);
        ck_assert_uint_eq(n.qp2, 0xdef);
        ck_assert(n.has_gid1 && n.has_gid2);
        /* a sender's LID that cannot be is none if it is not valid */
        ck_assert_int_eq(decode(HEAD_259 "0004 ffff 0014 8101 30000abc 00000def " GIDS "0020 11 000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.lid1.v, 0);
        /* a notice in which nothing is valid would be none */
        ck_assert_int_eq(decode(HEAD_259 "0000 000b 0014 8101 30000abc 00000def " NO_GIDS "0000 11 000000" ISSUER, &n), 0);
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(n.lid2.v, 20);
        ck_assert(!n.has_gid1 && !n.has_switch_port);
}
END_TEST

START_TEST(no_such_notice)
{
        static const struct {
                const char *hex;
                int r;
        } cases[] = {
                { "02 000001 0101 0014 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -ENOMSG },
                { "82 000001 0100 0014 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -ENOMSG },
                { "84 000004 0040 0014 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -ENOMSG },
                { "82 000001 ffff 0014 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -ENOMSG },
                { "82 000001 0101 0000 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -EBADMSG },
                { "82 000001 0101 c000 0000 0000 000b 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -EBADMSG },
                { HEAD_257 "0000 c000 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -EBADMSG },
                { HEAD_258 "0000 ffff 0014 00008101 50000abc 00000def " GIDS "00000000" ISSUER, -EBADMSG },
                { HEAD_259 "00ff c000 0014 8101 30000abc 00000def " GIDS "0020 11 000000" ISSUER, -EBADMSG },
                { HEAD_259 "00ff 000b 0014 8101 30000abc 00000def " GIDS "ffff 11 000000" ISSUER, -EBADMSG },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct notice n = { .trap = 4711 };

                ck_assert_msg(decode(cases[i].hex, &n) == cases[i].r, "case %zu", i);
                ck_assert_uint_eq(n.trap, 4711);
        }
}
END_TEST

START_TEST(p_key_table_record)
{
        struct p_key_record which = { .lid.v = 0x1234, .block = 3, .switch_port = 17 };
        struct mad_request r;

        p_key_record_request(&which, (struct lid) { 7 }, 1, 1, &r);
        ck_assert_uint_eq(r.route.lid.v, 7);
        ck_assert_uint_eq(r.route.sl, 1);
        check_mad(&r,
                  "01 03 02 01 0000 0000 0000000001020304 0033 0000 00000000"
                  "000000000000000000000000 0000000000000001 0000 0000 0000000000000007",
                  "1234 0003 11 00 0000");
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("sa");
        TCase *t = tcase_create("bytes");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_add_test(t, subscribe);
        tcase_add_test(t, unsubscribe_from_a_type);
        tcase_add_test(t, taken);
        tcase_add_test(t, notice_257);
        tcase_add_test(t, notice_258);
        tcase_add_test(t, notice_259);
        tcase_add_test(t, what_a_switch_says_is_valid);
        tcase_add_test(t, no_such_notice);
        tcase_add_test(t, p_key_table_record);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
