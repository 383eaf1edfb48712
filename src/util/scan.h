/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parses a text from its beginning. It need not end with a NUL. */

#include <stdbool.h>
#include <stdint.h>

struct scan {
        const char *p, *end; /* borrows: what is left */
};

/* Takes blanks and tabs. Returns false if there is none. */
bool scan_blanks(struct scan *s);
/* These return false, and take nothing, if the text does not go on with it. */
bool scan_char(struct scan *s, char c);
bool scan_word(struct scan *s, const char *word);
/* Takes digits of this base. Returns false, and takes nothing, if there is none or the value exceeds max. */
bool scan_number(struct scan *s, unsigned base, uint64_t max, uint64_t *ret);
/* Takes a line with its newline; the last line may lack that. Returns false if nothing is left. *ret is without the newline. */
bool scan_line(struct scan *s, struct scan *ret);
