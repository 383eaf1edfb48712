/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of M_Keys: what is read out of them, what is refused, and that no message shows any of it. */

#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "ib/m_keys.h"

#define G(x) ((struct guid) { (x) })

#define SECRET UINT64_C(0x5ec2e7a1b2c3d4e5)

void __wrap_qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));
void __real_qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));
void __wrap_free(void *p);
void __real_free(void *p);

static unsigned n_exposed, n_sorted;

static bool holds_secret(const void *p, size_t n)
{
        const uint64_t secret = SECRET;

        return memmem(p, n, &secret, sizeof(secret));
}

/* It may copy what it sorts, and does not wipe the copy. */
void __wrap_qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *))
{
        n_sorted++;
        n_exposed += holds_secret(items, n * size);
        __real_qsort(items, n, size, compare);
}

void __wrap_free(void *p)
{
        n_exposed += p && holds_secret(p, malloc_usable_size(p));
        __real_free(p);
}

static struct arena *arena;
static struct findings findings;
static struct m_keys *keys;

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        findings = (struct findings) { .arena = arena };
        keys = NULL;
}

static void teardown(void)
{
        (void) m_keys_free(keys);
        findings_done(&findings);
        arena_free(arena);
}

static int parse_n(const char *bytes, size_t n)
{
        keys = m_keys_free(keys);
        return m_keys_parse("m_key", bytes, n, &findings, &keys);
}

static void accept(const char *bytes)
{
        int r = parse_n(bytes, strlen(bytes));

        ck_assert_msg(r == 0, "%s", findings.n ? findings.items[0].text : "?");
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_ptr_nonnull(keys);
}

START_TEST(nobody_has)
{
        ck_assert_uint_eq(m_keys_get(NULL, G(1)), 0);
        ck_assert_uint_eq(m_keys_common(NULL), 0);
        ck_assert_uint_eq(m_keys_n_distinct(NULL), 0);
        ck_assert_int_eq(m_keys_source(NULL, G(1)), M_KEY_NO_FILE);
        ck_assert(m_keys_equal(NULL, NULL));
        ck_assert_ptr_null(m_keys_ref(NULL));
}
END_TEST

static const char *const singles[] = {
        "0x1122334455667788",           "0x1122334455667788\n",        "\n\n  0x1122334455667788 \t\n\n",
        "0X1122334455667788\n",
};

START_TEST(one_for_all)
{
        accept(singles[_i]);
        ck_assert_uint_eq(m_keys_get(keys, G(1)), UINT64_C(0x1122334455667788));
        ck_assert_uint_eq(m_keys_get(keys, G(UINT64_MAX)), UINT64_C(0x1122334455667788));
        ck_assert_uint_eq(m_keys_common(keys), UINT64_C(0x1122334455667788));
        ck_assert_uint_eq(m_keys_n_distinct(keys), 1);
        ck_assert_int_eq(m_keys_source(keys, G(1)), M_KEY_IN_FILE);
}
END_TEST

START_TEST(small_and_large)
{
        accept("0x1");
        ck_assert_uint_eq(m_keys_get(keys, G(1)), 1);
        accept("0xfFfFfFfFfFfFfFfF");
        ck_assert_uint_eq(m_keys_get(keys, G(1)), UINT64_MAX);
}
END_TEST

/* As OpenSM writes it; and without the empty lines, without the last newline, in any order. */
static const char *const files[] = {
        "0x0000000000000300 0x000000000000000c\n\n0x0000000000000100 0x000000000000000a\n\n"
        "0x0000000000000200 0x000000000000000b\n\n0x0000000000000400 0x000000000000000b\n\n"
        "0x0000000000000500 0x0000000000000000\n\n",
        "0x100 0xa\n0x200\t0xb\n0x300 0xc\n  0x400   0xb  \n0x500 0x0",
};

START_TEST(one_for_each)
{
        accept(files[_i]);
        ck_assert_uint_eq(m_keys_get(keys, G(0x100)), 0xa);
        ck_assert_uint_eq(m_keys_get(keys, G(0x200)), 0xb);
        ck_assert_uint_eq(m_keys_get(keys, G(0x300)), 0xc);
        ck_assert_uint_eq(m_keys_get(keys, G(0x400)), 0xb);
        ck_assert_uint_eq(m_keys_get(keys, G(0x500)), 0);
        ck_assert_int_eq(m_keys_source(keys, G(0x500)), M_KEY_IN_FILE);
        /* keys differ: none is guessed for a port that is not named */
        ck_assert_uint_eq(m_keys_get(keys, G(0x600)), 0);
        ck_assert_uint_eq(m_keys_get(keys, G(0)), 0);
        ck_assert_int_eq(m_keys_source(keys, G(0x600)), M_KEY_NOT_NAMED);
        ck_assert_uint_eq(m_keys_common(keys), 0xb);
        ck_assert_uint_eq(m_keys_n_distinct(keys), 3);
}
END_TEST

/* A guid2mkey that says the same of all: a port that came since has it, too. */
START_TEST(all_the_same)
{
        accept("0x100 0xa\n\n0x200 0xa\n\n");
        ck_assert_uint_eq(m_keys_get(keys, G(0x300)), 0xa);
        ck_assert_int_eq(m_keys_source(keys, G(0x300)), M_KEY_IN_FILE);
        ck_assert_int_eq(m_keys_source(keys, G(0x200)), M_KEY_IN_FILE);
        accept("0x100 0xa\n\n0x200 0x0\n\n");
        ck_assert_uint_eq(m_keys_get(keys, G(0x300)), 0);
        ck_assert_uint_eq(m_keys_common(keys), 0xa);
        accept("0x100 0x0\n\n0x200 0x0\n\n");
        ck_assert_uint_eq(m_keys_get(keys, G(0x300)), 0);
        ck_assert_uint_eq(m_keys_common(keys), 0);
        ck_assert_uint_eq(m_keys_n_distinct(keys), 0);
}
END_TEST

START_TEST(many)
{
        size_t size = 1 << 20, n = 0;
        char *text = malloc(size);

        ck_assert_ptr_nonnull(text);
        for (unsigned i = 5000; i > 0; i--)
                n += (size_t) snprintf(text + n, size - n, "0x%016x 0x%016x\n\n", i, i ^ 0x5555);
        accept(text);
        for (unsigned i = 1; i <= 5000; i++)
                ck_assert_uint_eq(m_keys_get(keys, G(i)), i ^ 0x5555);
        ck_assert_uint_eq(m_keys_get(keys, G(5001)), 0);
        free(text);
}
END_TEST

/* No memory that is freed has a key in it. */
START_TEST(wiped)
{
        accept("0x2 0x5ec2e7a1b2c3d4e5\n0x1 0x5ec2e7a1b2c3d4e5\n0x3 0x7\n");
        ck_assert_uint_eq(m_keys_common(keys), SECRET);
        ck_assert_uint_eq(m_keys_get(keys, G(1)), SECRET);
        ck_assert_uint_eq(m_keys_n_distinct(keys), 2);
        keys = m_keys_free(keys);
        accept("0x5ec2e7a1b2c3d4e5\n");
        keys = m_keys_free(keys);
        ck_assert_int_eq(parse_n("0x0 0x5ec2e7a1b2c3d4e5\n", 23), -EBADMSG);
        ck_assert_uint_gt(n_sorted, 0);
        ck_assert_uint_eq(n_exposed, 0);
}
END_TEST

START_TEST(equal)
{
        struct m_keys *before;

        accept(files[0]);
        before = m_keys_ref(keys);
        accept(files[1]);
        ck_assert(m_keys_equal(before, keys));
        ck_assert(!m_keys_equal(before, NULL) && !m_keys_equal(NULL, keys));
        accept("0x100 0xa\n0x200 0xb\n0x300 0xc\n0x400 0xb\n0x500 0x1");
        ck_assert(!m_keys_equal(before, keys));
        accept("0x100 0xa\n0x200 0xb\n0x300 0xc\n0x400 0xb\n0x501 0x0");
        ck_assert(!m_keys_equal(before, keys));
        accept("0xa");
        ck_assert(!m_keys_equal(before, keys));
        /* what somebody still holds is not wiped */
        ck_assert_uint_eq(m_keys_get(before, G(0x100)), 0xa);
        (void) m_keys_free(before);
}
END_TEST

/* 5ec4e7 is in every one of them that has digits to show, and must not be in what is said. */
static const struct {
        const char *bytes;
        size_t n; /* 0: up to the NUL */
        unsigned line, column;
        const char *text;
} refused[] = {
        { "", 0, 0, 0, "the file contains no key" },
        { "\n \n\t\n", 0, 0, 0, "the file contains no key" },
        { "5ec4e7", 0, 1, 1, "not a hexadecimal number with 0x in front" },
        { "secret 5ec4e7 text", 0, 1, 15, "more than a port GUID and its key" },
        { "0x", 0, 1, 1, "not a hexadecimal number with 0x in front" },
        { "0x5ec4e7g", 0, 1, 1, "contains another character" },
        { "0x5ec4e7,", 0, 1, 1, "contains another character" },
        { "-0x5ec4e7", 0, 1, 1, "with 0x in front" },
        { "# 0x5ec4e7", 0, 1, 1, "with 0x in front" },
        { "\xef\xbb\xbf" "0x5ec4e7", 0, 1, 1, "with 0x in front" },
        { "0x5ec4e7\0" "1", 10, 1, 1, "contains another character" },
        { "\0", 1, 1, 1, "with 0x in front" },
        { "0x05ec4e75ec4e75ec4", 0, 1, 1, "more than 64 bits (16 hexadecimal digits)" },
        { "0x0", 0, 1, 1, "0 means that there is no key" },
        { "0x5ec4e7\r\n", 0, 1, 9, "carriage return" },
        { "0x100 0x5ec4e7\r\n", 0, 1, 15, "carriage return" },
        { "0x5ec4e7\n0x5ec4e8\n", 0, 2, 1, "a second key" },
        { "0x5ec4e7\n0x5ec4e7\n", 0, 2, 1, "a second key" },
        { "0x5ec4e7\n\n0x100 0x5ec4e7\n", 0, 3, 1, "in a file with one key for all ports" },
        { "0x100 0x5ec4e7\n\n0x5ec4e7\n", 0, 3, 1, "a single number" },
        { "0x100 0x5ec4e7 0x5ec4e7", 0, 1, 16, "more than a port GUID and its key" },
        { "0x100 0x5ec4e7 a b c d", 0, 1, 16, "more than a port GUID and its key" },
        { "0x0 0x5ec4e7", 0, 1, 1, "0 is not a port GUID" },
        { "0x100 5ec4e7", 0, 1, 7, "with 0x in front" },
        { "0x100 0x5ec4e7\n\n0x100 0x5ec4e7\n", 0, 3, 1, "a line above has a key for this port GUID already" },
        { "0x100 0x5ec4e7\n\n0x200 0x1\n\n0x100 0x5ec4e8", 0, 5, 1, "a line above has a key for this port GUID already" },
        { "m_key 0x5ec4e7", 0, 1, 1, "with 0x in front" }, /* a line of opensm.conf */
};

START_TEST(refusing)
{
        size_t n = refused[_i].n ? refused[_i].n : strlen(refused[_i].bytes);
        const struct finding *item;

        ck_assert_int_eq(parse_n(refused[_i].bytes, n), -EBADMSG);
        ck_assert_ptr_null(keys);
        ck_assert_uint_eq(findings.n, 1);
        item = &findings.items[0];
        ck_assert_int_eq(item->code, FINDING_SECRET_SYNTAX);
        ck_assert_str_eq(finding_code_to_string(item->code), "secret.syntax");
        ck_assert_str_eq(item->where.file, "m_key");
        ck_assert_uint_eq(item->where.line, refused[_i].line);
        ck_assert_uint_eq(item->where.column, refused[_i].column);
        ck_assert_msg(strstr(item->text, refused[_i].text) != NULL, "%s", item->text);
        ck_assert_ptr_null(item->source_line);
        ck_assert_ptr_null(strstr(finding_format(arena, item), "5ec4e"));
}
END_TEST

/* A file of something else is not a thousand complaints. */
START_TEST(junk)
{
        size_t size = 100000;
        char *text = malloc(size);

        ck_assert_ptr_nonnull(text);
        for (size_t i = 0; i < size; i++)
                text[i] = i % 7 ? 'x' : '\n';
        ck_assert_int_eq(parse_n(text, size), -EBADMSG);
        ck_assert_uint_le(findings.n, 20);
        ck_assert_uint_ge(findings.n, 2);
        free(text);
}
END_TEST

START_TEST(sm_key)
{
        static const char pair[] = "0x100 0x5ec4e7";
        uint64_t value = 1;

        ck_assert_int_eq(sm_key_parse("sa_key", "0x77\n", 5, &findings, &value), 0);
        ck_assert_uint_eq(value, 0x77);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_int_eq(sm_key_parse("sa_key", pair, strlen(pair), &findings, &value), -EBADMSG);
        ck_assert_int_eq(sm_key_parse("sa_key", "0x0", 3, &findings, &value), -EBADMSG);
        ck_assert_int_eq(sm_key_parse("sa_key", "", 0, &findings, &value), -EBADMSG);
        ck_assert_uint_eq(value, 0x77);
        ck_assert_uint_eq(findings.n, 3);
        ck_assert_ptr_nonnull(strstr(findings.items[0].text, "must contain one key only"));
}
END_TEST

START_TEST(words)
{
        for (int s = M_KEY_NO_FILE; s <= M_KEY_NOT_NAMED; s++) {
                const char *maybe = m_key_source_of_reader((enum m_key_source) s, false);
                const char *sure = m_key_source_of_reader((enum m_key_source) s, true);

                ck_assert_ptr_nonnull(strstr(maybe, "answers reads but not writes: most likely"));
                ck_assert_ptr_nonnull(strstr(sure, "answers reads but not writes: it"));
                ck_assert_ptr_nonnull(strstr(sure, "M_KeyViolations rose at pkeyd's write"));
                ck_assert_ptr_nonnull(strstr(m_key_source_to_string((enum m_key_source) s), "m_key_file"));
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("m_keys");
        TCase *c = tcase_create("m_keys");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, nobody_has);
        tcase_add_loop_test(c, one_for_all, 0, ELEMENTS(singles));
        tcase_add_test(c, small_and_large);
        tcase_add_loop_test(c, one_for_each, 0, ELEMENTS(files));
        tcase_add_test(c, all_the_same);
        tcase_add_test(c, many);
        tcase_add_test(c, wiped);
        tcase_add_test(c, equal);
        tcase_add_loop_test(c, refusing, 0, ELEMENTS(refused));
        tcase_add_test(c, junk);
        tcase_add_test(c, sm_key);
        tcase_add_test(c, words);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
