/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints findings to a stream in the style of a compiler. Severities are colored if findings_print_wants_color(). */

#include "util/findings.h"

/* True if the stream is a terminal that shows colors and NO_COLOR is not set. */
bool findings_print_wants_color(FILE *stream);

/* The control sequence for the word of a severity; a static string. */
const char *findings_print_color(enum finding_severity severity);
#define FINDINGS_PRINT_COLOR_OFF "\033[0m"

/* Prints the findings of severity `least` and above, sorted by place. Returns 0 or -ENOMEM (then some are missing). */
int findings_print(FILE *stream, struct findings *findings, enum finding_severity least);

/* "2 errors, 1 warning", "1 error" or "no errors". */
struct findings_count {
        char text[64];
};
struct findings_count findings_print_count(const struct findings *findings);
