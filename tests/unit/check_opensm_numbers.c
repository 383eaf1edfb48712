/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "opensm/opensm_numbers.h"
#include "util/macros.h"

/* ---- numbers --------------------------------------------------------------------------------------------------- */

struct number_case {
        const char *text;
        uint64_t c17, c23;
        size_t end_17, end_23;
};

static const struct number_case number_cases[] = {
        { "0b101", 0, 5, 1, 5 },
        { "0B101", 0, 5, 1, 5 },
        { " \t-0b1", 0, UINT64_MAX, 4, 6 },
        { "+0b10x", 0, 2, 2, 5 },
        { "0b102", 0, 2, 1, 4 },
        { "0b2", 0, 0, 1, 1 },
        { "0b", 0, 0, 1, 1 },
        { "0b1111111111111111111111111111111111111111111111111111111111111111", 0, UINT64_MAX, 1, 66 },
        { "0b0001111111111111111111111111111111111111111111111111111111111111111", 0, UINT64_MAX, 1, 69 },
        { "0x0b101", 0xb101, 0xb101, 7, 7 },
        { "00b1", 0, 0, 2, 2 },
        { "0101", 65, 65, 4, 4 },
        { "101", 101, 101, 3, 3 },
        { "-1", UINT64_MAX, UINT64_MAX, 2, 2 },
        { "b101", 0, 0, 0, 0 },
        { "", 0, 0, 0, 0 },
};

START_TEST(numbers)
{
        const struct number_case *c = &number_cases[_i];
        bool differs = c->end_17 != c->end_23;
        const char *end;

        errno = 0;
        ck_assert_uint_eq(opensm_number(OPENSM_NUMBERS_C17, c->text, &end), c->c17);
        ck_assert_uint_eq((size_t) (end - c->text), c->end_17);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_uint_eq(opensm_number(i ? OPENSM_NUMBERS_UNKNOWN : OPENSM_NUMBERS_C23, c->text, &end), c->c23);
                ck_assert_uint_eq((size_t) (end - c->text), c->end_23);
        }
        ck_assert_int_eq(opensm_number_is_binary(c->text), differs);
        ck_assert_int_eq(errno, 0);
}
END_TEST

START_TEST(too_large_a_number)
{
        static const char text[] = "-0b10000000000000000000000000000000000000000000000000000000000000000";
        const char *end;

        errno = 0;
        ck_assert_uint_eq(opensm_number(OPENSM_NUMBERS_C23, text, &end), UINT64_MAX);
        ck_assert_int_eq(errno, ERANGE);
        ck_assert_int_eq(*end, '\0');
        errno = 0;
        ck_assert_uint_eq(opensm_number(OPENSM_NUMBERS_C17, "0x10000000000000000", &end), UINT64_MAX);
        ck_assert_int_eq(errno, ERANGE);
}
END_TEST

/* ---- programs --------------------------------------------------------------------------------------------------- */

/* The parts of a program that count: dynamic symbols and their names, in a table of sections. */
struct program {
        ElfW(Ehdr) header;
        ElfW(Shdr) sections[3]; /* none, symbols, names */
        ElfW(Sym) symbols[4];
        char names[128];
};

static struct program make_program(const char *needed, const char *const *symbols)
{
        struct program p = {
                .header = {
                        .e_shoff = offsetof(struct program, sections), .e_shentsize = sizeof(ElfW(Shdr)), .e_shnum = 3,
                },
                .sections[1] = {
                        .sh_type = SHT_DYNSYM, .sh_link = 2, .sh_offset = offsetof(struct program, symbols),
                        .sh_size = sizeof(p.symbols), .sh_entsize = sizeof(ElfW(Sym)),
                },
                .sections[2] = { .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct program, names), .sh_size = sizeof(p.names) },
        };
        size_t n = 1;

        memcpy(p.header.e_ident, ELFMAG, SELFMAG);
        p.header.e_ident[EI_CLASS] = sizeof(ElfW(Addr)) == 8 ? ELFCLASS64 : ELFCLASS32;
        p.header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
        memcpy(p.names + n, needed, strlen(needed));
        n += strlen(needed) + 1;
        for (unsigned i = 0; i < 3 && symbols[i]; i++) {
                memcpy(p.names + n, symbols[i], strlen(symbols[i]));
                p.symbols[i + 1] = (ElfW(Sym)) { .st_name = (ElfW(Word)) n, .st_shndx = SHN_UNDEF };
                n += strlen(symbols[i]) + 1;
        }
        return p;
}

static enum opensm_numbers numbers_of(struct program p)
{
        return opensm_numbers_of_program(&p, sizeof(p));
}

START_TEST(programs)
{
        static const struct {
                const char *needed, *symbols[3];
                enum opensm_numbers expected;
        } cases[] = {
                { "libc.so.6", { "strtoull", "strtoul", "strtol" }, OPENSM_NUMBERS_C17 },
                { "libc.so.6", { "strtok", "strtoull" }, OPENSM_NUMBERS_C17 },
                { "libc.so.6", { "__isoc23_strtoull", "__isoc23_strtoul", "strtok" }, OPENSM_NUMBERS_C23 },
                { "libc.so.6", { "__isoc23_strtoul" }, OPENSM_NUMBERS_C23 },
                { "libc.so.6", { "__isoc23_strtoull", "strtoul" }, OPENSM_NUMBERS_UNKNOWN },
                { "libc.so.6", { "strtol", "__isoc23_strtol" }, OPENSM_NUMBERS_UNKNOWN },
                { "libc.so.6", { "strtoulls", "xstrtoul" }, OPENSM_NUMBERS_UNKNOWN },
                { "libc.so", { "strtoull", "strtoul" }, OPENSM_NUMBERS_UNKNOWN },
                { "libc.so.60", { "strtoull", "strtoul" }, OPENSM_NUMBERS_UNKNOWN },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                ck_assert_msg(numbers_of(make_program(cases[i].needed, cases[i].symbols)) == cases[i].expected, "case %zu", i);
}
END_TEST

/* A symbol that the program defines is not what it calls in the C library. */
START_TEST(defined_symbol)
{
        struct program p = make_program("libc.so.6", (const char *const[3]) { "strtoull", "__isoc23_strtoull" });

        p.symbols[1].st_shndx = 1;
        ck_assert_int_eq(numbers_of(p), OPENSM_NUMBERS_C23);
}
END_TEST

START_TEST(damaged_programs)
{
        const struct program whole = make_program("libc.so.6", (const char *const[3]) { "strtoull", "strtoul" });
        struct program p;

        for (size_t n = 0; n < sizeof(whole); n++) {
                char *copy = malloc(MAX(n, (size_t) 1)); /* of its own, so that the sanitizer finds a read past its end */

                ck_assert_ptr_nonnull(copy);
                memcpy(copy, &whole, n);
                ck_assert_int_eq(opensm_numbers_of_program(copy, n), OPENSM_NUMBERS_UNKNOWN);
                free(copy);
        }
        for (size_t i = 0; i < sizeof(whole); i++) {
                p = whole;
                ((unsigned char *) &p)[i] ^= 0xff;
                ck_assert_int_ne(numbers_of(p), OPENSM_NUMBERS_C23);
        }
        for (unsigned i = 0; i < 6; i++) {
                p = whole;
                p.header.e_ident[EI_CLASS] ^= i == 0 ? 3 : 0;
                p.header.e_ident[EI_DATA] ^= i == 1 ? 3 : 0;
                p.header.e_shentsize += i == 2;
                p.sections[1].sh_link = i == 3 ? 3 : 2;
                p.sections[2].sh_size += i == 4;
                p.names[sizeof(p.names) - 1] = i == 5 ? 'x' : '\0';
                ck_assert_msg(numbers_of(p) == OPENSM_NUMBERS_UNKNOWN, "case %u", i);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("opensm_numbers");
        TCase *c = tcase_create("all");
        SRunner *runner;
        int failed;

        tcase_add_loop_test(c, numbers, 0, (int) ELEMENTS(number_cases));
        tcase_add_test(c, too_large_a_number);
        tcase_add_test(c, programs);
        tcase_add_test(c, defined_symbol);
        tcase_add_test(c, damaged_programs);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
