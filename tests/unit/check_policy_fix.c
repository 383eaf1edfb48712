/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Corrections: which errors have one, how they are applied, and that none changes what a policy means. The last is tested with
 * random typing errors in valid policies: the file that comes out is the original in meaning, or it is still refused. Most are put
 * right.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy_fixture.h"

#include "../fabsim/prng.h"
#include "../golden/policy_print.h"
#include "policy/policy_fix.h"
#include "util/text.h"

/* The number of typing errors, unless TYPOS in the environment has another one. */
#define N_TYPOS "10000"

static bool refused;

/* The file after all corrections, and their number. */
static const char *fixed(const char *yaml, unsigned *ret_n)
{
        const char *bytes;
        size_t n;

        ck_assert_int_eq(policy_fix(arena, "p.yaml", yaml, strlen(yaml), &bytes, &n, ret_n, &refused), 0);
        return arena_strndup(arena, bytes, n);
}

/* ---- which errors have a correction --------------------------------------------------------------------------------- */

#define HEAD "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n"
#define MEMBER HEAD "    members:\n      n1: "
#define POOL "version: 1\npartitions: {}\npools:\n  a:\n    pkeys: 0x0010\n"

struct example {
        const char *before, *after; /* NULL: there is no certain correction */
};

static const struct example examples[] = {
        /* keys */
        { "verison: 1\npartitions: {}\n", "version: 1\npartitions: {}\n" },
        { "Version: 1\n\"partitons\": {}\n", "version: 1\n\"partitions\": {}\n" },
        { "version: 1\npartitions:\n  p:\n    pky: 0x0010\n    members: {}\n",
          "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {}\n" },
        { HEAD "    ipoib: {mut: 2048, rates: 40}\n    members: {}\n", HEAD "    ipoib: {mtu: 2048, rate: 40}\n    members: {}\n" },
        { HEAD "    pky: 0x0011\n    members: {}\n", NULL },                     /* the key is there already */
        { HEAD "    membrs: {n1: full}\n    memers: {n2: full}\n", NULL },       /* two for one key */
        { HEAD "    member_list: {n1: full}\n", NULL },                          /* too far from any */
        { HEAD "    members: {}\n    \"pk\\x65y2\": 1\n", NULL },                 /* has no column that can be counted */
        { HEAD "    ipoib: {rte: 40}\n    members: {}\n", NULL },               /* mtu is only one edit farther */
        { "version: 1\nowns: 0x0001-0x7ff\nfpartitions: {}\n", NULL },          /* the f belongs to 0x7fff */
        { "version: 1\ngroups:\n  g: n1p\nartitions: {}\n", NULL },               /* the p belongs to partitions */
        { HEAD "    ipoib: {sl: 1,2rate: 40}\n    members: {}\n", NULL },       /* sl: 12 */
        { "version: 1\ngroups:\n  no: \"on, offy\npartitions:\n  \"1\":\n    pkey: \"0x0010\"\n    members: {\"no\": full}\n", NULL },
        { "version: 1\npartitions: {p: {pkey: 0x0010, members: {a: ful,lb: both}}}\n", NULL }, /* b */
        /* memberships */
        { MEMBER "Full\n", MEMBER "full\n" },
        { MEMBER "ful\n", MEMBER "full\n" },
        { MEMBER "'limted'\n", MEMBER "'limited'\n" },
        { MEMBER "lim\n", MEMBER "limited\n" },
        { MEMBER "partial\n", MEMBER "limited\n" },
        { MEMBER "nome\n", MEMBER "none\n" },
        { MEMBER "bone\n", NULL }, /* none or both */
        { MEMBER "yes\n", NULL },  { MEMBER "true\n", NULL }, { MEMBER "no\n", NULL },    { MEMBER "off\n", NULL },
        { MEMBER "rw\n", NULL },   { MEMBER "\"null\"\n", NULL }, { MEMBER "member\n", NULL }, { MEMBER "reader\n", NULL },
        { "version: 1\ngroups: {fully: n1}\npartitions: {p: {pkey: 0x0010, members: {n1: fully}}}\n", NULL },
        /* pools */
        { POOL "    port: n1\n", POOL "    ports: n1\n" },
        { POOL "    ports: n1\n    membership: ful\n", POOL "    ports: n1\n    membership: full\n" },
        { POOL "    ports: n1\n    membership: both\n", NULL },
        { POOL "    ports: n1\n    lease: unlimted\n", POOL "    ports: n1\n    lease: unlimited\n" },
        { POOL "    ports: n1\n    lease: 10h.\n", POOL "    ports: n1\n    lease: 10h\n" },
        { POOL "    ports: n1\n    lease: 10hh\n", NULL },                      /* or 101h */
        { POOL "    ports: n1\n    lease: 1000m.\n", NULL },                    /* or 1000ms */
        { POOL "    ports: n1\n    rest 10m\n", POOL "    ports: n1\n    rest: 10m\n" },
        { "version: 1\npools: {a: {pkeys: 1f40-20000, ports: n1}}\npartitions: {}\n",
          "version: 1\npools: {a: {pkeys: 0x1f40-0x4e20, ports: n1}}\npartitions: {}\n" },
        /* booleans */
        { HEAD "    index0: yes\n    members: {}\n", HEAD "    index0: true\n    members: {}\n" },
        { HEAD "    index0: FALSE\n    members: {}\n", HEAD "    index0: false\n    members: {}\n" },
        { HEAD "    ipoib: 1\n    members: {}\n", HEAD "    ipoib: true\n    members: {}\n" },
        { "version: 1\nstrict: 2\npartitions: {}\n", NULL },
        /* P_Keys */
        { "version: 1\nowns: [32767, 1f40-20000]\npartitions: {}\n", "version: 1\nowns: [0x7fff, 0x1f40-0x4e20]\npartitions: {}\n" },
        { "version: 1\nowns: 7fff\npartitions: {}\n", "version: 1\nowns: 0x7fff\npartitions: {}\n" },
        { "version: 1\nowns: 1234\npartitions: {}\n", NULL },  /* hex or decimal */
        { "version: 1\nowns: 1e10\npartitions: {}\n", NULL },  /* a decimal number in YAML */
        { "version: 1\nowns: 051a\npartitions: {}\n", NULL },  /* 0x1a with a wrong character */
        { "version: 1\nowns: 01234\npartitions: {}\n", NULL }, /* 0x1234 without the x */
        { "version: 1\nowns: 32768\npartitions: {}\n", NULL },
        { "version: 1\nowns: 0xffff\npartitions: {}\n", NULL },
        { "version: 1\nowns: 0x0fff-0x0001\npartitions: {}\n", NULL },
        /* MTU and rate */
        { HEAD "    ipoib: {mtu: 4}\n    members: {}\n", HEAD "    ipoib: {mtu: 2048}\n    members: {}\n" },
        { HEAD "    ipoib: {rate: 3}\n    members: {}\n", NULL }, /* the code of 10 Gb/s, or what is left of 30 */
        /* tabs: in all lines, in one between two that show where it must begin, after a colon */
        { "version: 1\npartitions:\n\tp:\n\t\tpkey: 0x0010\n\t\tmembers:\n\t\t\tn1: full\n",
          "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      n1: full\n" },
        { MEMBER "full\n\tn2: full # two\n\n      # three\n      n3: both\n", MEMBER "full\n      n2: full # two\n\n      # three\n      n3: both\n" },
        { HEAD "    members:\n  \t   n1: full\n      n2: both\n", HEAD "    members:\n      n1: full\n      n2: both\n" },
        { HEAD "    members:\n      n1:\t\tfull\n", HEAD "    members:\n      n1: full\n" },
        { MEMBER "full\n      \t2: full\n      n3: both\n", NULL }, /* n2 with a tab for the n */
        { MEMBER "full\n\tn2: full\n", NULL },
        { MEMBER "full\n\tn2: full\n    index0: true\n", NULL },
        { MEMBER "full\n      n\t2: full\n", NULL },
        { MEMBER "full\n      n2: \toth\n", MEMBER "full\n      n2: both\n" },
        { MEMBER "full\n      n2: \tull\n", MEMBER "full\n      n2: full\n" },
        { "version: 1\npartitions: {p: {pkey: 0x0010,\n  members: {n1: full,\n \tn2: full}}}\n", NULL },
        /* one character: too many, missing, wrong, swapped */
        { MEMBER "full\n     \"@leaf1/2\": full\n      n3: both\n", MEMBER "full\n      \"@leaf1/2\": full\n      n3: both\n" },
        { "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n     index0: true\n    members: {}\n",
          "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    index0: true\n    members: {}\n" },
        { HEAD "    members\n      n1: full\n", MEMBER "full\n" },
        { HEAD "    members:{}\n", HEAD "    members: {}\n" },
        { HEAD "    members :{}\n", HEAD "    members: {}\n" },
        { MEMBER "full\n      \"@leaf1/2\" both\n", MEMBER "full\n      \"@leaf1/2\": both\n" },
        { MEMBER "full\n      \"@leaf1/2\"k: both\n", MEMBER "full\n      \"@leaf1/2\": both\n" },
        { MEMBER "'full\n", MEMBER "full\n" },
        { HEAD "    members: {} 4 none yet\n", HEAD "    members: {} # none yet\n" },
        { MEMBER "full\n     node2: full\n      node3: both\n", NULL },            /* or ode2 */
        { MEMBER "full\n      node2 both\n", NULL },                              /* or node */
        { "version: 1\ngroups:\n  g: node[01-x4]\npartitions: {}\n", NULL },      /* or node[01-14] */
        { "version: 1\ngroups:\n  g: node[,-12]\npartitions: {}\n", NULL },      /* another number */
        { "version: 1\ngroups:\n  g: node[1-4\npartitions: {}\n", NULL },         /* or node[1-40], with a wrong 0 */
        { "version: 1\ngroups:\n  g: [node1, node2\npartitions: {}\n", NULL },    /* or node */
        { HEAD "    members: {0x10g4: full}\n", NULL },                           /* or another digit */
        { MEMBER "full\n     5g: full\n", NULL },                                 /* or g */
        { HEAD "    members:\n      ALL_!AS: full\n", NULL },                     /* ALL_CAS, or device AS of host ALL_ */
        { HEAD "    members:\n      ALL_SWI!CHES: full\n", NULL },
        { HEAD "    members:\n      ALL_ROUTE!S: full\n", NULL },
        { HEAD "    members:\n      ALL_CA!: full\n", HEAD "    members:\n      ALL_CAS: full\n" },
        { "version: 1\npartitions:\n  p:\n    pkey: 0x001\n2    ipoib: true\n    members: {}\n", NULL }, /* 0x0012 */
        { HEAD "    members: {}\n#   index0: true\n     ipoib: true\n  \xc3\xa4\n", NULL },
        /* a line feed too many, or missing: a correction is within a line */
        { HEAD "    index0: tr\nue\n    members: {}\n", NULL },
        { "version: 1\ngroups: {}partitions: {}\n", NULL },
        { "\xef\xbb\xbfversion:1\n\n\npartitions: {}\n", "\xef\xbb\xbfversion: 1\n\n\npartitions: {}\n" },
        /* only a glob would be accepted */
        { HEAD "    members:\n      node[1-4]: full\n      node4: limited\n      no\"e4/*: none\n", NULL },
        { HEAD "    members:\n      node[1-4]: full\n      node4: limited\n      n\"4/*: none\n", NULL },
        /* several in a line, behind characters of several bytes, one that hides others, a byte order mark, CR LF */
        { "version: 1\ngroups: {\"g\": n1}\npartitions: {p: {pkye: 7f10, index0: on, members: {n1: ful, n2: BOTH}}} # \xc3\xa4\n",
          "version: 1\ngroups: {\"g\": n1}\npartitions: {p: {pkey: 0x7f10, index0: true, members: {n1: full, n2: both}}} # \xc3\xa4\n" },
        { "\xef\xbb\xbfverion: 1\r\npartition: {p: {pkey: 0x0010, membrs: {n1: L}}}\r\n",
          "\xef\xbb\xbfversion: 1\r\npartitions: {p: {pkey: 0x0010, members: {n1: limited}}}\r\n" },
};

START_TEST(certain)
{
        const struct example *e = &examples[_i];
        unsigned n;
        const char *after = fixed(e->before, &n);

        ck_assert_str_eq(after, e->after ?: e->before);
        ck_assert_uint_eq(n > 0, e->after != NULL);
        ck_assert(!refused);
        if (e->after)
                (void) parse(after);
        else
                refuse(e->before);
}
END_TEST

/* The errors that have no correction stay, and those beside them are corrected. */
START_TEST(others_stay)
{
        unsigned n;

        ck_assert_str_eq(fixed(MEMBER "yes\n      n2: ful\n", &n), MEMBER "yes\n      n2: full\n");
        ck_assert_uint_eq(n, 1);
        ck_assert(!refused);
}
END_TEST

/* The P_Key that was meant is another partition's. */
START_TEST(taken_back)
{
        const char *yaml = "version: 1\npartitions:\n  a: {pkey: 0x7f10, members: {}}\n  b: {pkey: 7f10, members: {n1: ful}}\n";
        unsigned n;

        ck_assert_str_eq(fixed(yaml, &n), yaml);
        ck_assert_uint_eq(n, 0);
        ck_assert(refused);
}
END_TEST

/* The lines in front of an error may be far away: comments between them cost nothing. */
START_TEST(behind_comments)
{
        _cleanup_text_ struct text t = {};
        unsigned n;

        text_add(&t, MEMBER "full\n");
        for (unsigned i = 0; i < 200; i++)
                text_add(&t, "      # host %u of many others, which are below, for all partitions of all tenants, and so on\n\n", i);
        text_add(&t, "     \"@leaf1/2\": full\n      n3: both\n");
        ck_assert(!t.failed);
        ck_assert_ptr_nonnull(strstr(fixed(t.bytes, &n), "\n      \"@leaf1/2\": full\n"));
        ck_assert_uint_eq(n, 1);
}
END_TEST

/* A file with a NUL byte is no policy, but what follows that byte belongs to its owner. */
START_TEST(nul_byte)
{
        static const char before[] = "version:\t1\npartitions: {}\n#\0 the rest\n", after[] = "version: 1\npartitions: {}\n#\0 the rest\n";
        const char *bytes;
        unsigned n_fixed;
        size_t n;

        ck_assert_int_eq(policy_fix(arena, "p.yaml", before, sizeof(before) - 1, &bytes, &n, &n_fixed, &refused), 0);
        ck_assert_uint_eq(n_fixed, 1);
        ck_assert_uint_eq(n, sizeof(after) - 1);
        ck_assert_mem_eq(bytes, after, sizeof(after));
}
END_TEST

START_TEST(right_file)
{
        unsigned n;

        ck_assert_str_eq(fixed("version: 1\npartitions: {}\n", &n), "version: 1\npartitions: {}\n");
        ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- applying ------------------------------------------------------------------------------------------------------- */

static void add_fix(const char *file, unsigned line, unsigned column, unsigned length, const char *text)
{
        struct location where = { file, line, column };
        struct finding *item = findings_add(&findings, FINDING_ERROR, FINDING_VALUE_INVALID, &where, "wrong");

        ck_assert_ptr_nonnull(item);
        item->fix = (struct finding_fix) { line, column, length, text };
}

static int apply(const char *bytes, const char **ret)
{
        size_t n;
        int r = policy_fix_apply(arena, "p.yaml", bytes, strlen(bytes), &findings, ret, &n);

        if (r >= 0)
                ck_assert_uint_eq(n, strlen(*ret));
        return r;
}

START_TEST(applying)
{
        const char *after;

        add_fix("p.yaml", 2, 4, 2, "DEF");
        add_fix("p.yaml", 2, 1, 1, "");
        add_fix("p.yaml", 1, 3, 0, "+");
        add_fix("other.yaml", 1, 1, 1, "-");
        add_fix("p.yaml", 2, 6, 1, "!"); /* touches, and does not overlap */
        ck_assert_int_eq(apply("ab\n\xc3\xa4\xc3\xb6" "cdef", &after), 4);
        ck_assert_str_eq(after, "ab+\n\xc3\xb6" "cDEF!");
}
END_TEST

START_TEST(nothing_to_apply)
{
        const char *bytes = "ab\n", *after;

        ck_assert_int_eq(apply(bytes, &after), 0);
        ck_assert_ptr_eq(after, bytes);
}
END_TEST

START_TEST(misplaced)
{
        static const struct finding_fix wrong[][2] = {
                { { 1, 1, 2, "x" }, { 1, 2, 1, "y" } }, /* overlap */
                { { 1, 1, 1, "x" }, { 1, 1, 1, "x" } },
                { { 1, 3, 1, "x" } },                   /* the line feed */
                { { 1, 4, 0, "x" } },                   /* behind the end of the line */
                { { 2, 2, 2, "x" } },                   /* behind the end of the file */
                { { 3, 1, 0, "x" } },
        };
        const char *after = NULL;

        for (unsigned i = 0; i < 2; i++)
                if (wrong[_i][i].text)
                        add_fix("p.yaml", wrong[_i][i].line, wrong[_i][i].column, wrong[_i][i].length, wrong[_i][i].text);
        ck_assert_int_eq(apply("ab\ncd", &after), -EINVAL);
        ck_assert_ptr_null(after);
}
END_TEST

START_TEST(copied)
{
        _cleanup_arena_ struct arena *other = arena_new();
        struct finding copy;

        add_fix("p.yaml", 1, 2, 3, "text");
        ck_assert(finding_copy(other, &findings.items[0], &copy));
        ck_assert_str_eq(copy.fix.text, "text");
        ck_assert_ptr_ne(copy.fix.text, findings.items[0].fix.text);
        ck_assert_uint_eq(copy.fix.length, 3);
}
END_TEST

/* ---- typing errors -------------------------------------------------------------------------------------------------- */

/* A valid policy with its normal form. */
struct original {
        char *bytes;
        const char *meaning;
};

/* The meaning of a file; NULL: it is refused. */
static const char *meaning_of(struct arena *a, const char *bytes, size_t n)
{
        _cleanup_findings_ struct findings found = { .arena = a };
        struct policy *policy;

        return policy_parse(a, "p.yaml", bytes, n, &found, &policy) == 0 ? policy_print(a, policy) : NULL;
}

static void add_members(struct text *t, struct prng *p, const char *indent)
{
        static const char *const words[] = { "full", "limited", "both", "none" };
        unsigned n = prng_between(p, 1, 6);

        for (unsigned i = 0; i < n; i++)
                switch (prng_below(p, 4)) {
                case 0:
                        text_add(t, "%snode[%02u-%02u]: %s\n", indent, 10 * i, 10 * i + 9, words[prng_below(p, 4)]);
                        break;
                case 1:
                        text_add(t, "%s\"@leaf%u/%u\": %s # up\n", indent, i, prng_between(p, 1, 36), words[prng_below(p, 4)]);
                        break;
                case 2:
                        text_add(t, "%s0x%016llx: '%s'\n", indent, (unsigned long long) (prng_next(p) | i), words[prng_below(p, 4)]);
                        break;
                default:
                        text_add(t, "%sg%u:   %s\n", indent, i, words[prng_below(p, 4)]);
                }
}

static void add_ipoib(struct text *t, struct prng *p)
{
        static const char *const rates[] = { "10", "25", "30", "40", "2.5", "100", "200" };

        if (prng_permille(p, 500))
                text_add(t, "    ipoib: %s\n", prng_permille(p, 800) ? "true" : "false");
        else
                text_add(t, "    ipoib:\n      mtu: %u\n      rate: %s\n      sl: %u\n      scope: [2, %u]\n", 256u << prng_below(p, 5),
                         rates[prng_below(p, ELEMENTS(rates))], prng_below(p, 16), prng_between(p, 3, 14));
}

static void add_pool(struct text *t, struct prng *p)
{
        static const char *const units[] = { "s", "m", "h" };

        text_add(t, "pools:\n  jobs:\n    pkeys: 0x0%x00-0x0fff\n    ports: g1,node[01-%u]\n    membership: %s\n", prng_between(p, 1, 14),
                 prng_between(p, 2, 99), prng_permille(p, 500) ? "full" : "limited");
        if (prng_permille(p, 500))
                text_add(t, "    lease: unlimited\n    rest: %u000ms\n", prng_between(p, 1, 99));
        else
                text_add(t, "    lease: %u%s\n    allow: [slurm, root]\n", prng_between(p, 1, 99), units[prng_below(p, 3)]);
}

/* The files of tests/golden/accepted have the rare forms; these have the usual ones, in many combinations. */
static char *generate(uint64_t seed)
{
        struct prng p = { seed };
        struct text t = {};
        unsigned n = prng_between(&p, 1, 4);

        text_add(&t, "%sversion: 1\n%s", prng_permille(&p, 300) ? "# made by hand\n\n" : "", prng_permille(&p, 300) ? "strict: true\n" : "");
        if (prng_permille(&p, 300))
                text_add(&t, "owns: [0x7fff, 0x0001-0x0fff]\n");
        text_add(&t, "groups:\n");
        for (unsigned i = 0; i < 6; i++)
                text_add(&t, i % 2 ? "  g%u: [oss%u, mds%u]\n" : "  g%u:\n    - oss%u\n    - mds[%u-12]\n", i, i, i);
        if (prng_permille(&p, 300))
                add_pool(&t, &p);
        text_add(&t, "partitions:\n");
        for (unsigned i = 0; i < n; i++) {
                text_add(&t, "  part%u:\n    pkey: 0x%0*x\n", i, (int) prng_between(&p, 1, 4), 0x10 * i + prng_between(&p, 1, 15));
                if (i == 0 && prng_permille(&p, 500))
                        text_add(&t, "    index0: true\n");
                if (prng_permille(&p, 500))
                        add_ipoib(&t, &p);
                text_add(&t, "    members:\n");
                add_members(&t, &p, "      ");
        }
        ck_assert(!t.failed);
        return t.bytes;
}

static char *read_file(const char *path)
{
        FILE *f = fopen(path, "re");
        struct text t = {};
        char buffer[4096];
        size_t n;

        ck_assert_ptr_nonnull(f);
        while ((n = fread(buffer, 1, sizeof(buffer), f)) > 0)
                text_add_n(&t, buffer, n);
        (void) fclose(f);
        ck_assert(t.bytes && !t.failed);
        return t.bytes;
}

#define MAX_FILES 100

/* Files that are long are skipped: an error in them is like one in the others. */
static unsigned read_originals(struct original *originals)
{
        const char *top = getenv("top_srcdir");
        unsigned n = 0;
        glob_t files;

        ck_assert_int_eq(glob(arena_printf(arena, "%s/tests/golden/accepted/*.yaml", top), 0, NULL, &files), 0);
        for (size_t i = 0; i < files.gl_pathc && n < MAX_FILES; i++) {
                originals[n].bytes = read_file(files.gl_pathv[i]);
                if (strlen(originals[n].bytes) < 4096)
                        n++;
                else
                        free(originals[n].bytes);
        }
        globfree(&files);
        ck_assert_uint_gt(n, 10);
        for (uint64_t seed = 1; n < MAX_FILES; seed++) {
                char *bytes = generate(seed);

                if (meaning_of(arena, bytes, strlen(bytes)))
                        originals[n++].bytes = bytes;
                else
                        free(bytes);
        }
        for (unsigned i = 0; i < n; i++) {
                originals[i].meaning = meaning_of(arena, originals[i].bytes, strlen(originals[i].bytes));
                ck_assert_ptr_nonnull(originals[i].meaning);
        }
        return n;
}

static char other_case(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? (char) (c ^ 0x20) : c;
}

/* A copy with a typing error at a random place, which changes it. */
static char *mistype(struct prng *p, const char *bytes)
{
        static const char keys[] = "abcdefghijklmnopqrstuvwxyz0123456789 \t:-_.x0fe\"#,[";
        size_t n = strlen(bytes), at = prng_below(p, (unsigned) n), rest = n - at - 1;
        char *copy = calloc(n + 2, 1);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, n);
        switch (prng_below(p, 7)) {
        case 0: /* dropped */
                memmove(copy + at, copy + at + 1, rest + 1);
                break;
        case 1: /* doubled */
                memmove(copy + at + 1, copy + at, rest + 1);
                break;
        case 2: /* swapped */
                if (rest > 0) {
                        copy[at] = bytes[at + 1];
                        copy[at + 1] = bytes[at];
                }
                break;
        case 3: /* another one too many */
                memmove(copy + at + 1, copy + at, rest + 1);
                copy[at] = keys[prng_below(p, sizeof(keys) - 1)];
                break;
        case 4:
                copy[at] = other_case(copy[at]);
                break;
        case 5:
                copy[at] = bytes[at] == ' ' ? '\t' : (char) ('0' + prng_below(p, 10));
                break;
        default:
                copy[at] = keys[prng_below(p, sizeof(keys) - 1)];
        }
        return copy;
}

struct counts {
        unsigned same, other, refused, right;
};

static void try_typo(const struct original *o, const char *bytes, struct counts *counts)
{
        _cleanup_arena_ struct arena *a = arena_new();
        const char *meaning = meaning_of(a, bytes, strlen(bytes)), *result;
        unsigned n_fixed;
        bool is_refused;
        size_t n;

        ck_assert_int_eq(policy_fix(a, "p.yaml", bytes, strlen(bytes), &result, &n, &n_fixed, &is_refused), 0);
        if (meaning) {
                ck_assert_uint_eq(n_fixed, 0); /* a policy that is accepted is not changed */
                *(strcmp(meaning, o->meaning) == 0 ? &counts->same : &counts->other) += 1;
                return;
        }
        counts->refused++;
        meaning = meaning_of(a, result, n);
        if (!meaning)
                return;
        ck_assert_msg(strcmp(meaning, o->meaning) == 0, "a correction changed the policy\n--- original\n%s--- with the error\n%s"
                      "--- corrected\n%s", o->bytes, bytes, result);
        counts->right++;
}

START_TEST(typos)
{
        struct original *originals = calloc(MAX_FILES, sizeof(*originals));
        unsigned n = read_originals(originals), n_typos = (unsigned) atoi(getenv("TYPOS") ?: N_TYPOS);
        struct counts counts = {};

        for (unsigned i = 0; i < n_typos; i++) {
                struct prng p = { 0x7e50000 + i };
                const struct original *o = &originals[prng_below(&p, n)];
                char *bytes = mistype(&p, o->bytes);

                try_typo(o, bytes, &counts);
                free(bytes);
        }
        printf("%u typing errors: %u change nothing, %u give another valid policy, %u are refused, of which %u (%u %%) are put right\n",
               n_typos, counts.same, counts.other, counts.refused, counts.right, 100 * counts.right / counts.refused);
        ck_assert_uint_gt(counts.refused, n_typos / 4);
        ck_assert_uint_gt(counts.right, counts.refused / 2);
        for (unsigned i = 0; i < n; i++)
                free(originals[i].bytes);
        free(originals);
}
END_TEST

static Suite *suite(void)
{
        Suite *s = suite_create("policy_fix");
        TCase *tc = tcase_create("policy_fix");

        tcase_add_checked_fixture(tc, setup, teardown);
        tcase_set_timeout(tc, 1800);
        tcase_add_loop_test(tc, certain, 0, ELEMENTS(examples));
        tcase_add_test(tc, others_stay);
        tcase_add_test(tc, taken_back);
        tcase_add_test(tc, behind_comments);
        tcase_add_test(tc, nul_byte);
        tcase_add_test(tc, right_file);
        tcase_add_test(tc, applying);
        tcase_add_test(tc, nothing_to_apply);
        tcase_add_loop_test(tc, misplaced, 0, 6);
        tcase_add_test(tc, copied);
        tcase_add_test(tc, typos);
        suite_add_tcase(s, tc);
        return s;
}

int main(void)
{
        SRunner *sr = srunner_create(suite());
        int failed;

        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
