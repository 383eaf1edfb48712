/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Findings to a stream, as a compiler prints them. Errors are red and warnings yellow where that is welcome. */

#include "util/findings.h"

/* True if the stream is a terminal that shows colours and NO_COLOR is not set. */
bool findings_print_wants_colour(FILE *stream);

/* Prints the findings from severity `least` upwards, sorted by place. Returns 0 or -ENOMEM (then some are missing). */
int findings_print(FILE *stream, struct findings *findings, enum finding_severity least);

/* "2 errors, 1 warning", "1 error", "no errors": written to buffer, cut to its size. */
void findings_print_count(const struct findings *findings, char *buffer, size_t size);
