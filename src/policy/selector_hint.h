/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What to say of a selector that matches nothing: why that may be, and what is there that has a similar name. */

#include "policy/selector_match.h"

/* A warning, or an error under `strict`. absent: the port that the selector means and that is not in the fabric now; NULL: there
 * is none. */
void selector_report_no_match(struct matcher *m, const struct selector *s, const struct known_port *absent);
