/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "partitions_find.h"
#include "policy_fixture.h"

/* Of the OpenSM that reads. */
static enum opensm_numbers numbers;

static struct partitions_conf *read_n(const char *text, size_t n)
{
        struct partitions_conf *c = NULL;

        ck_assert_msg(partitions_conf_parse(arena, numbers, "p.conf", text, n, &findings, &c) == 0, "%s", print_findings());
        ck_assert_ptr_nonnull(c);
        ck_assert_uint_eq(c->partitions[0].base, 0x7fff);
        return c;
}

static struct partitions_conf *read_conf(const char *text)
{
        return read_n(text, strlen(text));
}

static const struct partitions_conf_partition *partition(const struct partitions_conf *c, uint16_t base)
{
        const struct partitions_conf_partition *p = find_partition(c, base);

        ck_assert_msg(p != NULL, "no partition 0x%04x\n%s", base, print_findings());
        return p;
}

/* The n-th member, from 0. */
static const struct partitions_conf_member *member(const struct partitions_conf_partition *p, unsigned n)
{
        const struct partitions_conf_member *m = p->members;

        for (; m && n > 0; n--)
                m = m->next;
        ck_assert_ptr_nonnull(m);
        return m;
}

static void expect_discarded(const char *text, unsigned line, unsigned column, const char *why)
{
        const struct partitions_conf *c;
        const struct finding *f;

        findings.n = findings.n_warnings = 0;
        c = read_conf(text);
        f = only(FINDING_OPENSM_DISCARDED);
        ck_assert(c->discarded);
        ck_assert_uint_eq(c->n_partitions, 1);
        ck_assert_int_eq(c->partitions[0].members->membership, MEMBERSHIP_FULL);
        ck_assert_ptr_null(c->partitions[0].members->next);
        ck_assert_uint_eq(f->where.line, line);
        ck_assert_uint_eq(f->where.column, column);
        expect_text(f->text, why);
}

/* One warning, at this place. */
static void expect_warning(enum finding_code code, unsigned line, unsigned column, const char *part)
{
        const struct finding *f = only(code);

        ck_assert_int_eq(f->severity, FINDING_WARNING);
        ck_assert_msg(f->where.line == line && f->where.column == column, "%u:%u\n%s", f->where.line, f->where.column,
                      print_findings());
        expect_text(f->text, part);
        findings.n = findings.n_warnings = 0;
}

START_TEST(test_plain)
{
        const struct partitions_conf *c = read_conf("# head\nDefault=0x7fff, ipoib : ALL=limited, SELF=full;\n"
                                                    "a=0x10, defmember=full :\n  0x5, # five\n  ALL_CAS=limited,\n 0x6=both ;\n");
        const struct partitions_conf_partition *a = partition(c, 0x10), *d = &c->partitions[0];

        ck_assert_uint_eq(findings.n, 0);
        ck_assert(!c->discarded);
        ck_assert_uint_eq(c->n_partitions, 2);
        ck_assert_str_eq(a->name, "a");
        ck_assert_uint_eq(a->where.line, 3);
        ck_assert_uint_eq(a->n_members, 3);
        ck_assert_uint_eq(member(a, 0)->guid.v, 5);
        ck_assert_int_eq(member(a, 0)->membership, MEMBERSHIP_FULL);
        ck_assert_uint_eq(member(a, 0)->where.line, 4);
        ck_assert_uint_eq(member(a, 0)->where.column, 3);
        ck_assert_int_eq(member(a, 1)->who, PARTITIONS_CONF_TYPE);
        ck_assert_int_eq(member(a, 1)->type, NODE_CA);
        ck_assert_int_eq(member(a, 2)->membership, MEMBERSHIP_BOTH);
        ck_assert_uint_eq(d->n_members, 4); /* OpenSM's own two before those of the file */
        ck_assert_uint_eq(member(d, 1)->where.line, 0);
        ck_assert(d->has_broadcast);
        ck_assert_uint_eq(d->ipoib->broadcast.mtu, 4);
        ck_assert_str_eq(c->comments->text, "head");
        ck_assert(c->comments->alone && !c->comments->next->alone);
        ck_assert_str_eq(c->comments->next->text, "five");
}
END_TEST

START_TEST(test_words)
{
        const struct partitions_conf *c = read_conf("a=0x10: 0x5=;\n");

        ck_assert_int_eq(member(partition(c, 0x10), 0)->membership, MEMBERSHIP_FULL);
        expect_warning(FINDING_OPENSM_WORD, 1, 13, "the empty word here as full");
        c = read_conf("a=0x10: AL=full;\n");
        ck_assert_int_eq(member(partition(c, 0x10), 0)->who, PARTITIONS_CONF_ALL);
        expect_warning(FINDING_OPENSM_WORD, 1, 9, "OpenSM reads 'AL' as ALL");
        c = read_conf("a=0x10: ALL_=full;\n");
        ck_assert_int_eq(member(partition(c, 0x10), 0)->type, NODE_CA);
        expect_warning(FINDING_OPENSM_WORD, 1, 9, "as ALL_CAS");
        c = read_conf("a=0x10: 0x5=ful1;\n");
        ck_assert_int_eq(member(partition(c, 0x10), 0)->membership, MEMBERSHIP_LIMITED);
        expect_warning(FINDING_OPENSM_WORD, 1, 13, "'ful1' is not a membership");
        c = read_conf("a=0x10: 0x5=ful;\n");
        ck_assert_int_eq(member(partition(c, 0x10), 0)->membership, MEMBERSHIP_FULL);
        expect_warning(FINDING_OPENSM_WORD, 1, 13, "as full");
        c = read_conf("a=0x10: 0x5=limi;\n");
        ck_assert_uint_eq(findings.n, 0); /* the documented syntax */
        c = read_conf("a=0x10: NO, N=full;\n");
        ck_assert_uint_eq(partition(c, 0x10)->n_members, 0);
        ck_assert_uint_eq(findings.n, 2);
        findings.n = 0;
        (void) read_conf("a=0x10, indx: 0x5;\n");
        expect_warning(FINDING_OPENSM_WORD, 1, 9, "'indx' is not a partition flag");
}
END_TEST

START_TEST(test_p_keys)
{
        const struct partitions_conf *c = read_conf("a=0x12345: 0x5;\n");

        (void) partition(c, 0x2345);
        expect_warning(FINDING_OPENSM_P_KEY, 1, 3, "cut to its low 15 bits: OpenSM reads it as 0x2345");
        c = read_conf("a: 0x5;\nb=0x1: 0x6;\n");
        ck_assert_uint_eq(partition(c, 1)->n_members, 2);
        ck_assert_uint_eq(findings.n, 2);
        expect_text(findings.items[1].text, "0x0001 is the P_Key that OpenSM assigned");
        findings.n = 0;
        c = read_conf("b=0x1: 0x6;\na: 0x5;\n");
        (void) partition(c, 2);
        expect_warning(FINDING_OPENSM_P_KEY, 2, 1, "OpenSM assigns 0x0002");
        c = read_conf("default: 0x6;\n");
        expect_warning(FINDING_OPENSM_P_KEY, 1, 1, "with a capital D");
        c = read_conf("Default: 0x6=full;\n");
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(c->n_partitions, 1);
        /* of two partitions with one name OpenSM finds the one whose byte-swapped P_Key is less */
        c = read_conf("x=0x0002: 0x5;\nx=0x0100: 0x6;\nx: 0x7;\n");
        ck_assert_uint_eq(partition(c, 0x100)->n_members, 2);
        c = read_conf("=0x0fa2: 0x5;\n: 0x6;\nx: 0x7;\n"); /* a nameless partition is never found by name */
        ck_assert_uint_eq(partition(c, 0xfa2)->n_members, 1);
        ck_assert_uint_eq(partition(c, 1)->n_members, 1);
        ck_assert_uint_eq(partition(c, 2)->n_members, 1);
        findings.n = 0;
        c = read_conf("x=010: 0x5;\n");
        (void) partition(c, 8);
        expect_warning(FINDING_OPENSM_P_KEY, 1, 3, "octal");
        c = read_conf(": 0x5;\n");
        expect_warning(FINDING_OPENSM_P_KEY, 1, 1, "another P_Key at each sweep");
}
END_TEST

START_TEST(test_guids)
{
        const struct partitions_conf *c = read_conf("a=0x10: 010=full;\n");

        ck_assert_uint_eq(member(partition(c, 0x10), 0)->guid.v, 8);
        expect_warning(FINDING_OPENSM_GUID, 1, 9, "octal");
        c = read_conf("a=0x10: 17=full;\n");
        ck_assert_uint_eq(member(partition(c, 0x10), 0)->guid.v, 17);
        expect_warning(FINDING_OPENSM_GUID, 1, 9, "decimal: 0x0000000000000011");
        c = read_conf("a=0x10: 0x10002c90300800001=full;\n");
        ck_assert_uint_eq(member(partition(c, 0x10), 0)->guid.v, UINT64_MAX);
        expect_warning(FINDING_OPENSM_GUID, 1, 9, "more than 64 bits");
        expect_discarded("a=0x10: 0b=full;\n", 1, 9, "not a port GUID");
        expect_discarded("a=0x10: 0b2=full;\n", 1, 9, "not a port GUID");
}
END_TEST

START_TEST(test_binary_numbers_of_c17)
{
        const struct partitions_conf *c;

        numbers = OPENSM_NUMBERS_C17;
        expect_discarded("a=0x10: 0b101=full;\n", 1, 9, "'0b101' is not a port GUID");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "has no binary numbers: if 0x5 is meant, write that");
        expect_discarded("a=0b11: 0x5=full;\n", 1, 3, "this P_Key is not a number");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "if 0x3 is meant");
        findings.n = findings.n_warnings = 0;
        c = read_conf("a=0x10, ipoib, mtu=0b101: 0x5=full;\n");
        ck_assert_uint_eq(partition(c, 0x10)->ipoib->broadcast.mtu, MULTICAST_MTU_2048);
        expect_text(findings.items[0].text, "mtu: '0b101' is not a number; OpenSM uses the digits at its beginning, or 0");
        numbers = OPENSM_NUMBERS_UNKNOWN;
}
END_TEST

START_TEST(test_binary_numbers_of_c23)
{
        const struct partitions_conf *c;

        numbers = OPENSM_NUMBERS_C23;
        c = read_conf("a=0x10: 0b101=full;\n");
        ck_assert_uint_eq(member(partition(c, 0x10), 0)->guid.v, 5);
        expect_warning(FINDING_OPENSM_GUID, 1, 9, "'0b101' is read as binary, because this OpenSM was built with glibc 2.38 or later: "
                       "0x0000000000000005");
        c = read_conf("a=0B11: 0x5=full;\n");
        ck_assert_uint_eq(partition(c, 3)->n_members, 1);
        expect_warning(FINDING_OPENSM_P_KEY, 1, 3, "is read as binary");
        c = read_conf("a=0x10, ipoib, mtu=0b101: 0x5=full;\n");
        ck_assert_uint_eq(partition(c, 0x10)->ipoib->broadcast.mtu, 5);
        ck_assert_uint_eq(findings.n, 0);
        numbers = OPENSM_NUMBERS_UNKNOWN;
}
END_TEST

/* What depends on the build of OpenSM is refused where it is not known, also if OpenSM drops the file for another reason. */
START_TEST(test_binary_numbers_of_unknown)
{
        static const struct {
                const char *text;
                unsigned line, column;
        } cases[] = {
                { "a=0x10: 0b101=full;\n", 1, 9 },
                { "a=0x10: 0x1,\n 0x2,  -0b101;\n", 2, 8 },
                { "a=0b11: 0x5=full;\n", 1, 3 },
                { "0b11: 0x5=full;\n", 1, 1 },
                { "a=0x10, ipoib, mtu=0b101: 0x5=full;\n", 1, 20 },
                { "a=0x10, ipoib, sl=0b1: 0x5=full;\n", 1, 19 },
                { "a=0x10:\n mgid=ff12:401b::16,rate=0b1\n 0x5=full;\n", 2, 26 },
                { "a=0x10: 0b101=full, node1=full;\n", 1, 9 },
                { "a=0x10: 0b0=full;\n", 1, 9 },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const char *text = cases[i].text;
                struct partitions_conf *c = NULL;
                const struct finding *f;

                findings.n = findings.n_warnings = 0;
                ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", text, strlen(text), &findings, &c),
                                 -EBADMSG);
                ck_assert_ptr_null(c);
                f = only(FINDING_OPENSM_NUMBER);
                ck_assert_int_eq(f->severity, FINDING_ERROR);
                ck_assert_msg(f->where.line == cases[i].line && f->where.column == cases[i].column, "%s", print_findings());
                expect_text(f->text, "and not a number for an older build; it is not known which one reads this file");
                expect_text(f->hint, "write the number in hexadecimal");
        }
}
END_TEST

START_TEST(test_discarded)
{
        expect_discarded("a=0x10: 0x5=full;\nb=0x11: 0x10000z=full;\n", 2, 9,
                         "'0x10000z' is not a port GUID: OpenSM drops the whole file");
        expect_discarded("a=0x10: node1=full;\n", 1, 9, "not a port GUID");
        expect_discarded("a=0x10: 0x5=full;\r\nb=0x11: 0x6;\r\n", 1, 18, "no ':'");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "CR LF");
        expect_discarded("a=0x10: \r\n 0x5=full;\r\n", 1, 9, "not a port GUID");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "CR LF");
        expect_discarded("a=0x10, ipoib\r\n: 0x5=full;\r\n", 1, 1, "no ':'");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "CR LF");
        expect_discarded("# x\ra=0x10: 0x5=full;\r", 1, 1, "this file defines no partition");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "CR alone");
        expect_discarded("\xef\xbb\xbf# x\r\na=0x10: 0x5=full;\r\n", 1, 1, "no ':'"); /* the first thing to fix */
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "a byte order mark, which OpenSM reads as text");
        expect_discarded("\xef\xbb\xbf" "a=0x10: 0x5=full;\nb=0x11: 0x10000z=full;\n", 2, 9, "not a port GUID");
        expect_text(only(FINDING_OPENSM_DISCARDED)->hint, "OpenSM accepts port GUIDs");
        expect_discarded("a=0x10: node\r=full;\n", 1, 9, "not a port GUID");
        ck_assert_ptr_null(strstr(only(FINDING_OPENSM_DISCARDED)->hint, "CR"));
        expect_discarded("", 1, 1, "this file defines no partition");
        expect_discarded("# x\n\n", 1, 1, "this file defines no partition");
        expect_discarded("a=0x10g: 0x5;\n", 1, 3, "not a number");
        expect_discarded("a=: 0x5;\n", 1, 3, "not a number");
        expect_discarded("a=0x10,\n ipoib: 0x5;\n", 1, 1, "no ':'");
        expect_discarded("a=0x10: 0x5, ,full;\n", 1, 15, "not a port GUID");
}
END_TEST

START_TEST(test_long_line)
{
        static const char head[] = "a=0x10: 0x5=full,";
        char text[5000];
        const struct partitions_conf *c;
        size_t n = strlen(head);

        memcpy(text, head, n);
        memset(text + n, ' ', sizeof(text) - n);
        /* four digits before the cut, the rest behind it */
        memcpy(text + 4094 - 4, "0x12345678=full;\n", 17);
        c = read_n(text, 4094 + 13);
        ck_assert_uint_eq(partition(c, 0x10)->n_members, 3);
        ck_assert_uint_eq(member(partition(c, 0x10), 1)->guid.v, 0x12);
        ck_assert_int_eq(member(partition(c, 0x10), 1)->membership, MEMBERSHIP_LIMITED);
        ck_assert_uint_eq(member(partition(c, 0x10), 2)->guid.v, 345678);
        ck_assert_uint_eq(member(partition(c, 0x10), 2)->where.column, 4095);
        findings.n--; /* the decimal GUID */
        ck_assert_int_eq(findings.items[findings.n].code, FINDING_OPENSM_GUID);
        expect_warning(FINDING_OPENSM_LINE, 1, 4095, "reads the text from here on as another line");
}
END_TEST

START_TEST(test_semicolon)
{
        struct partitions_conf *c = NULL;
        size_t i;

        /* after the end of the short line is what the longer one left */
        expect_discarded("a=0x10:\n 0x123=full\n;\n", 2, 4, "no ':'");
        (void) only(FINDING_OPENSM_SEMICOLON);
        (void) only(FINDING_OPENSM_STALE);
        findings.n = findings.n_warnings = 0;
        /* and here nothing was ever written */
        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", ";a=0x10:0x5=full;\n", 18, &findings, &c),
                         -EBADMSG);
        ck_assert_ptr_null(c);
        for (i = 0; i < findings.n && findings.items[i].severity != FINDING_ERROR; i++)
                ;
        ck_assert_uint_lt(i, findings.n);
        ck_assert_int_eq(findings.items[i].code, FINDING_OPENSM_STALE);
}
END_TEST

START_TEST(test_multicast)
{
        const struct partitions_conf *c;
        const struct ipoib *i;
        struct partitions_conf *none = NULL;

        c = read_conf("a=0x10,ipoib,mtu=5,rate=16,scope=2,scope=5,sl=3,Q_Key=0x77,TClass=9,FlowLabel=0x10:\n"
                      " mgid=ff12:401b::16 # IGMP\n mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,mtu=2\n 0x5;\n");
        ck_assert_uint_eq(findings.n, 0);
        i = partition(c, 0x10)->ipoib;
        ck_assert_uint_eq(i->broadcast.mtu, 5);
        ck_assert_uint_eq(i->broadcast.rate, 16);
        ck_assert_uint_eq(i->broadcast.scopes, 1u << 2 | 1u << 5);
        ck_assert_uint_eq(i->broadcast.q_key, 0x77);
        ck_assert_uint_eq(i->broadcast.tclass, 9);
        ck_assert_uint_eq(i->n_groups, 2);
        ck_assert_uint_eq(i->groups[0].parameters.tclass, 0);
        ck_assert_uint_eq(i->groups[0].parameters.q_key, 0x77);
        ck_assert_uint_eq(i->groups[1].parameters.mtu, 2);
        ck_assert_uint_eq(i->groups[1].parameters.sl, 1);
        (void) read_conf("a=0x10,ipoib,mtu=4096: 0x5;\n");
        expect_warning(FINDING_OPENSM_IPOIB, 1, 1, "mtu=4096 is not the code of an MTU (it is a code");
        (void) read_conf("a=0x10,ipoib,scope=16: 0x5;\n");
        expect_warning(FINDING_OPENSM_IPOIB, 1, 20, "scope: '16' is not a scope; OpenSM ignores it");
        c = read_conf("a=0x10,ipoib,scope=15: 0x5;\n");
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(partition(c, 0x10)->ipoib->broadcast.scopes, 1u << 15);
        (void) read_conf("a=0x10:\n mgid=fe80::1\n 0x5;\n");
        expect_warning(FINDING_OPENSM_GROUP, 2, 7, "'fe80::1' is not a multicast GID");
        (void) read_conf("a=0x10,ipoib,mtu=5:\n mgid=ff12:401b::16,mtu=4\n 0x5;\n");
        expect_warning(FINDING_OPENSM_GROUP, 2, 7, "mtu and rate are not those of the partition");
        (void) read_conf("a=0x10,ipoib:\n mgid=ff12:401b::16 # mtu=5\n 0x5;\n");
        ck_assert_int_eq(findings.items[0].code, FINDING_OPENSM_STALE);
        findings.n = 0;
        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", "a=0x10:\n mgid\n", 14, &findings, &none),
                         -EBADMSG);
        expect_text(only(FINDING_OPENSM_GROUP)->text, "OpenSM crashes");
}
END_TEST

static uint8_t level(const struct partitions_conf *c, uint16_t base, const struct subnet *s, uint64_t guid, bool both)
{
        uint32_t port = subnet_find_endport(s, (struct guid) { guid });
        uint8_t *levels;

        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_int_eq(partitions_conf_apply(arena, partition(c, base), s, both, &levels), 0);
        return levels[port];
}

/* The later line counts; SELF is the SM's port, not this host's; a GUID that is not in the fabric is no port. */
START_TEST(test_apply)
{
        const struct subnet *s = fixture_subnet();
        const struct partitions_conf *c = read_conf(
                "a=0x10: 0x101=full, ALL=limited, ALL_SWITCHES=full, SELF=full, ALL_ROUTERS=both, 0x301=both, 0x100=full;\n"
                "b=0x11: ALL=full, 0x101;\n");

        ck_assert_uint_eq(level(c, 0x10, s, 0x101, false), MEMBERSHIP_LIMITED);
        ck_assert_uint_eq(level(c, 0x10, s, 0x1000, false), MEMBERSHIP_FULL);
        ck_assert_uint_eq(level(c, 0x10, s, 0x501, false), MEMBERSHIP_FULL);    /* the master SM */
        ck_assert_uint_eq(level(c, 0x10, s, 0x401, false), MEMBERSHIP_LIMITED); /* this host */
        ck_assert_uint_eq(level(c, 0x10, s, 0x301, false), MEMBERSHIP_FULL);
        ck_assert_uint_eq(level(c, 0x10, s, 0x301, true), MEMBERSHIP_BOTH);
        ck_assert_uint_eq(level(c, 0x10, s, 0x801, true), MEMBERSHIP_BOTH);
        ck_assert_uint_eq(level(c, 0x11, s, 0x101, false), MEMBERSHIP_LIMITED);
        ck_assert_uint_eq(level(c, 0x11, s, 0x1000, false), MEMBERSHIP_FULL);
        ck_assert_uint_eq(level(c, 0x7fff, s, 0x501, false), MEMBERSHIP_FULL);
        ck_assert_uint_eq(level(c, 0x7fff, s, 0x401, false), MEMBERSHIP_LIMITED);
}
END_TEST

START_TEST(test_too_many_definitions)
{
        size_t n = (size_t) (PARTITIONS_CONF_MAX_DEFINITIONS + 1) * 8, i;
        char *text = arena_alloc_array(arena, n, 1);
        struct partitions_conf *c = NULL;

        for (i = 0; i < n; i += 8)
                memcpy(text + i, "0x9:;\n  ", 8);
        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", text, n, &findings, &c), -EBADMSG);
        (void) only(FINDING_FILE_TOO_LARGE);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                test_plain, test_words, test_p_keys, test_guids, test_binary_numbers_of_c17, test_binary_numbers_of_c23,
                test_binary_numbers_of_unknown, test_discarded, test_long_line, test_semicolon, test_multicast, test_apply,
                test_too_many_definitions,
        };
        Suite *suite = suite_create("partitions_conf");
        TCase *c = tcase_create("all");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        for (size_t i = 0; i < ELEMENTS(tests); i++)
                tcase_add_test(c, tests[i]);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
