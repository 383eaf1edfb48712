/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/opensm_numbers.h"

#include <ctype.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------------------------- */

/* The text after blanks and a sign. */
static const char *skip_sign(const char *text)
{
        while (isspace((unsigned char) *text))
                text++;
        return text + (*text == '-' || *text == '+');
}

static bool has_binary_prefix(const char *digits)
{
        return digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
}

bool opensm_number_is_binary(const char *text)
{
        const char *p = skip_sign(text);

        return has_binary_prefix(p) && (p[2] == '0' || p[2] == '1');
}

static uint64_t read_binary(const char *text, const char **ret_end)
{
        const char *sign = skip_sign(text) - 1, *p = sign + 3;
        bool negative = sign >= text && *sign == '-', too_large = false;
        uint64_t v = 0;

        for (; *p == '0' || *p == '1'; p++) {
                too_large |= v >> 63 != 0;
                v = v << 1 | (uint64_t) (*p - '0');
        }
        *ret_end = p;
        if (too_large) {
                errno = ERANGE;
                return UINT64_MAX;
        }
        return negative ? -v : v;
}

uint64_t opensm_number(enum opensm_numbers numbers, const char *text, const char **ret_end)
{
        const char *p = skip_sign(text);
        uint64_t v;
        char *end;

        if (numbers != OPENSM_NUMBERS_C17 && opensm_number_is_binary(text))
                return read_binary(text, ret_end);
        /* a newer C library of pkeyd would read a binary number */
        if (has_binary_prefix(p)) {
                *ret_end = p + 1;
                return 0;
        }
        v = strtoull(text, &end, 0);
        *ret_end = end;
        return v;
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

struct file {
        const char *bytes;
        size_t n;
};

/* Copies, because nothing in a file is aligned. Returns false if the file ends before. */
static bool copy_from(struct file f, uint64_t offset, void *ret, size_t size)
{
        if (offset > f.n || size > f.n - offset)
                return false;
        memcpy(ret, f.bytes + offset, size);
        return true;
}

static bool take_section(struct file f, ElfW(Shdr) section, struct file *ret)
{
        if (section.sh_offset > f.n || section.sh_size > f.n - section.sh_offset)
                return false;
        *ret = (struct file) { f.bytes + section.sh_offset, section.sh_size };
        return true;
}

static bool is_elf(const ElfW(Ehdr) *h)
{
        return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
               h->e_ident[EI_CLASS] == (sizeof(ElfW(Addr)) == 8 ? ELFCLASS64 : ELFCLASS32) &&
               h->e_ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
               h->e_shentsize == sizeof(ElfW(Shdr));
}

/* The table of dynamic symbols, and their names, which end with a NUL. */
static bool find_symbols(struct file f, struct file *ret_symbols, struct file *ret_names)
{
        ElfW(Ehdr) h;
        ElfW(Shdr) section, names;

        if (!copy_from(f, 0, &h, sizeof(h)) || !is_elf(&h))
                return false;
        for (unsigned i = 0; i < h.e_shnum; i++) {
                if (!copy_from(f, h.e_shoff + i * sizeof(section), &section, sizeof(section)))
                        return false;
                if (section.sh_type != SHT_DYNSYM)
                        continue;
                return section.sh_link < h.e_shnum &&
                       copy_from(f, h.e_shoff + section.sh_link * sizeof(names), &names, sizeof(names)) &&
                       take_section(f, section, ret_symbols) && take_section(f, names, ret_names) &&
                       ret_names->n > 0 && ret_names->bytes[ret_names->n - 1] == '\0';
        }
        return false;
}

enum opensm_numbers opensm_numbers_of_program(const void *bytes, size_t n)
{
        static const char needed[] = "\0libc.so.6"; /* with both NULs */
        bool c17 = false, c23 = false;
        struct file symbols, names;
        ElfW(Sym) symbol;

        if (!find_symbols((struct file) { bytes, n }, &symbols, &names) ||
            !memmem(names.bytes, names.n, needed, sizeof(needed)))
                return OPENSM_NUMBERS_UNKNOWN;
        for (size_t at = 0; copy_from(symbols, at, &symbol, sizeof(symbol)); at += sizeof(symbol)) {
                const char *name = symbol.st_name < names.n ? names.bytes + symbol.st_name : "";

                if (symbol.st_shndx != SHN_UNDEF)
                        continue;
                c17 |= strcmp(name, "strtoul") == 0 || strcmp(name, "strtoull") == 0;
                c23 |= strcmp(name, "__isoc23_strtoul") == 0 || strcmp(name, "__isoc23_strtoull") == 0;
        }
        if (c17 == c23)
                return OPENSM_NUMBERS_UNKNOWN;
        return c23 ? OPENSM_NUMBERS_C23 : OPENSM_NUMBERS_C17;
}
