/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "arena_fixture.h"
#include "policy/hostlist.h"
#include "random_names.h"
#include "util/nearest.h"

static struct hostlist *parse(const char *text)
{
        struct hostlist_error error = {};
        struct hostlist *h = NULL;
        int r = hostlist_parse(arena, text, strlen(text), &error, &h);

        ck_assert_msg(r == 0, "%s: %s", text, error.text ? error.text : "?");
        return h;
}

static const struct {
        const char *hostlist, *name;
        bool matches;
} matches[] = {
        { "node7", "node7", true },
        { "node7", "node70", false },
        { "node7", "Node7", false },
        { "node[1-4]", "node1", true },
        { "node[1-4]", "node4", true },
        { "node[1-4]", "node5", false },
        { "node[1-4]", "node0", false },
        { "node[1-4]", "node01", false }, /* padding is part of a name */
        { "node[1-4]", "node", false },
        { "node[1-4]", "node1x", false },
        { "node[01-18]", "node01", true },
        { "node[01-18]", "node1", false },
        { "node[01-18]", "node18", true },
        { "node[01-18]", "node001", false },
        { "node[001-128,200]", "node128", true },
        { "node[001-128,200]", "node200", true },
        { "node[001-128,200]", "node199", false },
        { "node[1-128]", "node100", true },
        { "node[1-128]", "node0100", false },
        { "node[0-10]", "node0", true },
        { "node[0-10]", "node10", true },
        { "node[0-10]", "node00", false },
        { "node[00-10]", "node00", true },
        { "node[08-100]", "node08", true }, /* as in pdsh and Slurm: the first number gives the least width */
        { "node[08-100]", "node99", true },
        { "node[08-100]", "node100", true },
        { "node[08-100]", "node8", false },
        { "node[08-100]", "node010", false },
        { "node[0001-11664]", "node10000", true },
        { "node[0001-11664]", "node09999", false },
        { "node[00-10]", "node0", false },
        { "node[9-11]", "node9", true },
        { "node[9-11]", "node10", true },
        { "node[9-11]", "node09", false },
        { "node[0-999999999]", "node123456789", true },
        { "node[0-999999999]", "node1234567890", false },
        { "node[0-999999999999999999]", "node999999999999999999", true },
        { "rack[1-4]n[01-18,20]", "rack4n20", true },
        { "rack[1-4]n[01-18,20]", "rack4n19", false },
        { "rack[1-4]n[01-18,20]", "rack5n01", false },
        { "n[1-2][3-4]", "n13", true },
        { "n[1-2][3-4]", "n24", true },
        { "n[1-2][3-4]", "n33", false },
        { "n[1-20]0", "n10", true },   /* 1, then 0 */
        { "n[1-20]0", "n100", true },  /* 10, then 0 */
        { "n[1-20]0", "n20", true },
        { "n[1-20]0", "n2", false },
        { "n[5,1-3,2-4]", "n4", true },
        { "n[05-15,7]", "n7", true },
        { "n[05-15,7]", "n07", true },
        { "*", "", true },
        { "*", "anything", true },
        { "node*", "node", true },
        { "node*", "node0001", true },
        { "node*", "nod", false },
        { "*-ib0", "node1-ib0", true },
        { "*-ib0", "node1-ib1", false },
        { "node?", "node1", true },
        { "node?", "node", false },
        { "node?", "node12", false },
        { "*[1-2]*", "ab1c", true },
        { "*[1-2]*", "abc", false },
        { "a*b*c", "aXbYbZc", true },
        { "a*b*c", "acb", false },
        { "node.example.com", "nodeXexampleXcom", false },
        { "[1-3]", "2", true },
};

START_TEST(matching)
{
        ck_assert_int_eq(hostlist_match(parse(matches[_i].hostlist), matches[_i].name), matches[_i].matches);
}
END_TEST

static const struct {
        const char *text;
        size_t offset;
        const char *problem, *hint;
} errors[] = {
        { "", 0, "empty", NULL },
        { "node[", 4, "not closed", NULL },
        { "node[]", 5, "number is missing", NULL },
        { "node[1-]", 7, "number is missing", NULL },
        { "node[-1]", 5, "number is missing", NULL },
        { "node[1,]", 7, "number is missing", NULL },
        { "node[1;2]", 6, "';'", NULL },
        { "node[1-2-3]", 8, "'-'", NULL },
        { "node[a-f]", 5, "number is missing", NULL },
        { "node[[1]]", 5, "brackets within brackets", NULL },
        { "node]", 4, "without a '['", NULL },
        { "node[18-01]", 5, "backwards", "write 01-18" },
        { "node[008-10]", 5, "zero padding", "write 008-010 or 8-10" },
        { "node[1-010]", 5, "zero padding", "write 001-010 or 1-10" },
        { "node[1234567890123456789]", 5, "more than 18 digits", NULL },
        { "node 1", 4, "a space", NULL },
        { "node\x01", 4, "byte 0x01", NULL },
        { "n\xc3\xb6", 1, "byte 0xc3", NULL },
        { "node,1", 4, "','", NULL },
        { "node@1", 4, "'@'", NULL },
        { "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", 0, "more than 64 characters", NULL },
        { "?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?", 32, "more than 32 parts", NULL },
};

START_TEST(refusing)
{
        struct hostlist_error error = {};
        struct hostlist *h = NULL;

        ck_assert_int_eq(hostlist_parse(arena, errors[_i].text, strlen(errors[_i].text), &error, &h), -EBADMSG);
        ck_assert_ptr_null(h);
        ck_assert_uint_eq(error.offset, errors[_i].offset);
        ck_assert_msg(strstr(error.text, errors[_i].problem) != NULL, "%s", error.text);
        if (errors[_i].hint)
                ck_assert_str_eq(error.hint, errors[_i].hint);
        else
                ck_assert_ptr_null(error.hint);
}
END_TEST

/* More ranges than a bracket may have. */
START_TEST(too_many_ranges)
{
        struct hostlist_error error = {};
        struct hostlist *h = NULL;
        char text[16384] = "n[";
        unsigned i;

        for (i = 0; i < HOSTLIST_MAX_RANGES; i++)
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? "," : "", 2 * i);
        strcat(text, "]");
        ck_assert(hostlist_match(parse(text), "n2046"));
        ck_assert(!hostlist_match(parse(text), "n2045"));
        text[strlen(text) - 1] = '\0';
        strcat(text, ",9999]");
        ck_assert_int_eq(hostlist_parse(arena, text, strlen(text), &error, &h), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(error.text, "1024"));
}
END_TEST

/* Each name that a hostlist counts matches it, and all of them differ. */
START_TEST(names)
{
        static const char *const texts[] = { "n7", "n[1-12]", "n[01-12,20]x", "r[1-3]n[08-11]", "[3,1-2]a[5-7]b[00-01]" };
        const struct hostlist *h = parse(texts[_i]);
        char name[HOSTLIST_MAX_NAME], before[HOSTLIST_MAX_NAME];
        uint64_t i, k;

        ck_assert_uint_gt(h->n_names, 0);
        for (i = 0; i < h->n_names; i++) {
                hostlist_name(h, i, name);
                ck_assert_msg(hostlist_match(h, name), "%s", name);
                for (k = 0; k < i; k++) {
                        hostlist_name(h, k, before);
                        ck_assert_str_ne(name, before);
                }
        }
}
END_TEST

START_TEST(counts)
{
        char name[HOSTLIST_MAX_NAME];

        ck_assert_uint_eq(parse("node")->n_names, 1);
        ck_assert_uint_eq(parse("n[1-4,7]")->n_names, 5);
        ck_assert_uint_eq(parse("n[1-4,3-6]")->n_names, 6);
        ck_assert_uint_eq(parse("r[1-4]n[01-18,20]")->n_names, 76);
        ck_assert_uint_eq(parse("n[05-15,10-20]")->n_names, 16);
        ck_assert_uint_eq(parse("n[1-20,01-20]")->n_names, 29); /* 01 to 09 are other names than 1 to 9 */
        ck_assert_uint_eq(parse("n[0-999999999999999999]")->n_names, UINT64_C(1000000000000000000));
        ck_assert_uint_eq(parse("n*")->n_names, 0);
        ck_assert_uint_eq(parse("[0-999999999][0-999999999][0-999999999]")->n_names, UINT64_MAX);
        hostlist_name(parse("r[1-4]n[01-18,20]"), 18, name);
        ck_assert_str_eq(name, "r1n20");
        hostlist_name(parse("r[1-4]n[01-18,20]"), 19, name);
        ck_assert_str_eq(name, "r2n01");
}
END_TEST

/* The longest name is as long as an escaped NodeDescription can be. Longer ones match nothing. */
START_TEST(long_names)
{
        char name[HOSTLIST_MAX_NAME + 2];

        memset(name, 'x', sizeof(name));
        name[HOSTLIST_MAX_NAME] = '\0';
        ck_assert(hostlist_match(parse("*"), name));
        ck_assert(hostlist_match(parse("x*x*x*x"), name));
        name[HOSTLIST_MAX_NAME] = 'x';
        name[HOSTLIST_MAX_NAME + 1] = '\0';
        ck_assert(!hostlist_match(parse("*"), name));
}
END_TEST

/* ---- searching in sorted names -------------------------------------------------------------------------------- */

static const struct {
        const char *hostlist, *name, *after; /* NULL: nothing matches after the name */
} searched[] = {
        { "node7", "", "node7" },
        { "node7", "node6x", "node7" },
        { "node7", "node7", NULL },
        { "node7", "node70", NULL },
        { "node7", "nodf", NULL },
        { "node[0001-0010]", "", "node" },
        { "node[0001-0010]", "nod", "node" },
        { "node[0001-0010]", "node", "node0001" },
        { "node[0001-0010]", "node0000", "node0001" },
        { "node[0001-0010]", "node-1", "node0001" },
        { "node[0001-0010]", "node00", "node0001" },
        { "node[0001-0010]", "node0003", "node0004" },
        { "node[0001-0010]", "node0003x", "node0004" },
        { "node[0001-0010]", "node00031", "node0004" },
        { "node[0001-0010]", "node000x", "node0010" },
        { "node[0001-0010]", "node0010", NULL },
        { "node[0001-0010]", "nodex", NULL },
        { "node[001-128,200]", "node1280", "node200" },
        { "node[1-4]", "node10", "node2" },
        { "node[1-20]", "node", "node1" },
        { "node[1-20]", "node1", "node10" },
        { "node[1-20]", "node1x", "node2" },
        { "node[1-20]", "node9", NULL },
        { "n[05-15,7]", "n", "n05" },
        { "n[05-15,7]", "n15", "n7" },
        { "n[0-999999999999999999]", "n99", "n990" },
        { "n[0-999999999999999999]", "n999999999999999999", NULL },
        { "n[0-999999999999999999]", "n99999999999999999:", NULL },
        { "n[1-20]0", "n1", "n10" }, /* 1, then 0 */
        { "n[1-20]0", "n10", "n100" }, /* 10, then 0 */
        { "n[1-20]0", "n2", "n20" },
        { "r[1-4]n[01-36]", "r2n36", "r3" },
        { "r[1-4]n[01-36]", "r2", "r2n" },
        { "r[1-4]n[01-36]", "r2n", "r2n01" },
        { "r[1-4]n[01-36]", "r4n36", NULL },
        { "n[1-2][3-4]", "n14", "n2" },
        { "node??", "node100", "node11" },
        { "node??", "node1", "node1\x01" },
        { "a?c", "abx", "ac" },
        { "a*", "", "a" },
        { "a*", "a", "" },
        { "a*", "ab", "" },
        { "a*", "b", NULL },
        { "a*b", "ax", "" },
        { "*", "x", "" },
};

START_TEST(bounds)
{
        char after[HOSTLIST_MAX_BOUND];
        bool found = hostlist_after(parse(searched[_i].hostlist), searched[_i].name, after);

        ck_assert_int_eq(found, searched[_i].after != NULL);
        if (searched[_i].after)
                ck_assert_str_eq(after, searched[_i].after);
}
END_TEST

START_TEST(bounds_of_long_names)
{
        char name[HOSTLIST_MAX_NAME + 2], after[HOSTLIST_MAX_BOUND], text[HOSTLIST_MAX_BOUND + 64] = "";
        unsigned i;

        memset(name, '9', sizeof(name));
        name[HOSTLIST_MAX_NAME + 1] = '\0';
        ck_assert(hostlist_after(parse("9[1-2]"), name, after)); /* longer than any name that matches */
        ck_assert_str_eq(after, "");
        for (i = 0; i < 14; i++)
                strcat(text, "[999999999999999999]");
        memset(text + strlen(text), 'x', 50);
        name[14 * 18] = '\0';
        ck_assert(hostlist_after(parse(text), name, after));
        ck_assert_uint_eq(strlen(after), 14 * 18 + 50);
        ck_assert_int_eq(strncmp(after, name, 14 * 18), 0);
}
END_TEST

static int compare_names(const void *left, const void *right)
{
        return strcmp(left, right);
}

/* No name that matches is skipped by a bound. Without a glob * each bound comes after the name. */
START_TEST(bounds_of_random_names)
{
        struct prng p = { (uint64_t) _i };
        char sorted[64][RANDOM_NAME_SIZE], after[HOSTLIST_MAX_BOUND];
        unsigned n_matches = 0, i, round;

        for (round = 0; round < 500; round++) {
                const struct hostlist *h = random_hostlist(&p, arena);
                const char *match = NULL; /* the first one after sorted[i] */

                for (i = 0; i < ELEMENTS(sorted); i++)
                        random_name(&p, sorted[i]);
                qsort(sorted, ELEMENTS(sorted), sizeof(sorted[0]), compare_names);
                for (i = ELEMENTS(sorted) - 1; i-- > 0;) {
                        bool more = hostlist_after(h, sorted[i], after);

                        if (strcmp(sorted[i], sorted[i + 1]) != 0 && hostlist_match(h, sorted[i + 1])) {
                                match = sorted[i + 1];
                                n_matches++;
                        }
                        if (match && (!more || strcmp(after, match) > 0))
                                ck_abort_msg("%s: from '%s' past '%s' to '%s'", h->text, sorted[i], match,
                                             more ? after : "the end");
                        if (more && !strchr(h->text, '*') && strcmp(after, sorted[i]) <= 0)
                                ck_abort_msg("%s: from '%s' to '%s'", h->text, sorted[i], after);
                }
        }
        ck_assert_uint_gt(n_matches, 500);
}
END_TEST

/* The search finds the same nodes as trying every name. */
START_TEST(next_of_random_names)
{
        struct prng p = { (uint64_t) _i };
        char sorted[64][RANDOM_NAME_SIZE];
        struct subnet_node nodes[ELEMENTS(sorted)] = {};
        uint32_t by_name[ELEMENTS(sorted)], n_matches = 0;
        const struct subnet subnet = { .nodes = nodes, .by_name = by_name, .n_by_name = ELEMENTS(sorted) };

        for (unsigned round = 0; round < 200; round++) {
                const struct hostlist *h = random_hostlist(&p, arena);

                for (uint32_t i = 0; i < ELEMENTS(sorted); i++)
                        random_name(&p, sorted[i]);
                qsort(sorted, ELEMENTS(sorted), sizeof(sorted[0]), compare_names);
                for (uint32_t i = 0; i < ELEMENTS(sorted); i++) {
                        by_name[i] = ELEMENTS(sorted) - 1 - i;
                        nodes[by_name[i]].name = sorted[i];
                }
                for (uint32_t from = 0; from <= ELEMENTS(sorted); from++) {
                        uint32_t expected = from;

                        while (expected < ELEMENTS(sorted) && !hostlist_match(h, sorted[expected]))
                                expected++;
                        ck_assert_uint_eq(hostlist_next_name(h, &subnet, from), expected);
                        n_matches += expected < ELEMENTS(sorted);
                }
        }
        ck_assert_uint_gt(n_matches, 200);
}
END_TEST

/* Searches in the names r1n1 to r<racks>n<nodes>. */
static const struct {
        const char *hostlist;
        unsigned racks, nodes;
        int width;        /* of the second number, padded with zeros */
        unsigned matches;
        unsigned others;  /* how many names that do not match the search may try */
} searches[] = {
        { "r1n0100", 1, 9999, 4, 1, 2 },
        { "r1n[0100-0199]", 1, 9999, 4, 100, 2 },
        { "r1n[0100-0199,5000,7000-7001]", 1, 9999, 4, 103, 4 },
        { "r1n[1-4]", 1, 9999, 0, 4, 4 },
        { "r1n[100-143]", 1, 9999, 0, 44, 45 },
        { "r1n01?9", 1, 9999, 4, 10, 12 },
        { "r1n01*", 1, 9999, 4, 100, 2 },
        { "r1n[0-999999999]", 1, 100, 0, 100, 0 },
        { "r1n[0-999999999]", 1, 9999, 4, 9000, 1 },
        { "r1n[0-999999999]x", 1, 100, 0, 0, 100 },
        { "r[0-999999999]n[0-999999999]", 10, 10, 0, 100, 0 },
        { "r[2-4]n[07-09]", 10, 1000, 2, 9, 7 },
        { "r[2-4]n7", 100, 100, 0, 3, 7 },
        { "r[1-9999]x[1-9999]", 10, 10, 0, 0, 10 },
        { "x[1-9999]", 10, 10, 0, 0, 1 },
        { "a[1-9999]", 10, 10, 0, 0, 1 },
};

START_TEST(few_tries)
{
        unsigned n = searches[_i].racks * searches[_i].nodes, n_matches = 0, n_others = 0, i;
        char (*sorted)[RANDOM_NAME_SIZE] = arena_alloc_array(arena, n, sizeof(*sorted)), after[HOSTLIST_MAX_BOUND];
        const struct hostlist *h = parse(searches[_i].hostlist);

        for (i = 0; i < n; i++)
                (void) sprintf(sorted[i], "r%un%0*u", i / searches[_i].nodes + 1, searches[_i].width,
                               i % searches[_i].nodes + 1);
        qsort(sorted, n, sizeof(*sorted), compare_names);
        for (i = 0; i < n;) {
                if (hostlist_match(h, sorted[i])) {
                        n_matches++;
                        i++;
                        continue;
                }
                n_others++;
                if (!hostlist_after(h, sorted[i], after))
                        break;
                while (++i < n && strcmp(sorted[i], after) < 0)
                        ;
        }
        ck_assert_uint_eq(n_matches, searches[_i].matches);
        ck_assert_uint_le(n_others, searches[_i].others);
}
END_TEST

START_TEST(distances)
{
        ck_assert_uint_eq(edit_distance("", "", 3), 0);
        ck_assert_uint_eq(edit_distance("node", "Node", 3), 0);
        ck_assert_uint_eq(edit_distance("node", "nod", 3), 1);
        ck_assert_uint_eq(edit_distance("nod", "node", 3), 1);
        ck_assert_uint_eq(edit_distance("node", "nodf", 3), 1);
        ck_assert_uint_eq(edit_distance("node", "ndoe", 3), 1); /* a swap */
        ck_assert_uint_eq(edit_distance("abcd", "badc", 3), 2); /* two */
        ck_assert_uint_eq(edit_distance("kitten", "sitting", 3), 3);
        ck_assert_uint_eq(edit_distance("kitten", "sitting", 2), 3);
        ck_assert_uint_eq(edit_distance("a", "bcdefgh", 3), 4);
        ck_assert_uint_eq(edit_distance("ca", "abc", 3), 3);
}
END_TEST

START_TEST(nearest)
{
        static const char *const words[] = { "members", "pkey", "index0" };

        ck_assert_str_eq(nearest_word("member", words, 3), "members");
        ck_assert_str_eq(nearest_word("p_key", words, 3), "pkey");
        ck_assert_str_eq(nearest_word("INDEX0", words, 3), "index0");
        ck_assert_ptr_null(nearest_word("ipoib", words, 3));
        ck_assert_ptr_null(nearest_word("", words, 3));
        ck_assert_ptr_null(nearest_word("x", words, 3));
}
END_TEST

START_TEST(hints)
{
        static const char *const words[] = { "plan", "apply" };

        ck_assert_str_eq(nearest_hint(arena, "aply", words, 2, "", "else"), "did you mean 'apply'?");
        ck_assert_str_eq(nearest_hint(arena, "plna", words, 2, "--", NULL), "did you mean '--plan'?");
        ck_assert_str_eq(nearest_hint(arena, "something", words, 2, "", "else"), "else");
        ck_assert_ptr_null(nearest_hint(arena, "something", words, 2, "", NULL));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("hostlist");
        TCase *c = tcase_create("hostlist");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_loop_test(c, matching, 0, ELEMENTS(matches));
        tcase_add_loop_test(c, refusing, 0, ELEMENTS(errors));
        tcase_add_test(c, too_many_ranges);
        tcase_add_loop_test(c, names, 0, 5);
        tcase_add_test(c, counts);
        tcase_add_test(c, long_names);
        tcase_add_loop_test(c, bounds, 0, ELEMENTS(searched));
        tcase_add_test(c, bounds_of_long_names);
        tcase_add_loop_test(c, bounds_of_random_names, 0, 40);
        tcase_add_loop_test(c, next_of_random_names, 0, 10);
        tcase_add_loop_test(c, few_tries, 0, ELEMENTS(searches));
        tcase_add_test(c, distances);
        tcase_add_test(c, nearest);
        tcase_add_test(c, hints);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
