/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Numbers in OpenSM's files. OpenSM reads them with strtoul() and strtoull() in base 0, and what these accept depends on how OpenSM
 * was built: compiled with the headers of glibc 2.38 or later it calls the functions of C23, for which 0b101 is 5. For those of C17
 * it is 0 and the text b101. The program itself shows which ones it calls. The build of pkeyd does not matter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPENSM_PROGRAM_MAX_SIZE (64u << 20)

enum opensm_numbers {
        OPENSM_NUMBERS_UNKNOWN,
        OPENSM_NUMBERS_C17,
        OPENSM_NUMBERS_C23, /* with binary numbers */
};

/* strtoull() with base 0, as this OpenSM has it; UNKNOWN: as in C23. */
uint64_t opensm_number(enum opensm_numbers numbers, const char *text, const char **ret_end);

/* True if C17 and C23 read the text differently: after blanks and a sign it begins with 0b and a binary digit. */
bool opensm_number_is_binary(const char *text);

/* What a program calls: bytes is an ELF file for this kind of machine, dynamically linked with glibc, with its table of sections.
 * UNKNOWN for all other bytes, and for a program that calls both kinds, or none. Safe for any bytes. */
enum opensm_numbers opensm_numbers_of_program(const void *bytes, size_t n);
