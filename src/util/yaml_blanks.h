/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the number of spaces that a YAML file must have in place of tabs, if only one can be meant. */

#include "util/yaml_source.h"

/* True if several lines are indented, and all of them with tabs only. */
bool yaml_blanks_are_tabs(const struct yaml_source *s);

/* Corrects a line, whose first tab is in this column: the *ret_length characters from *ret_column on become as many spaces as it
 * returns; 0: it is not certain how many. file_has_tabs: the result of yaml_blanks_are_tabs(). */
unsigned yaml_blanks_for_tab(const struct yaml_source *s, bool file_has_tabs, unsigned line, unsigned column, unsigned *ret_column,
                             unsigned *ret_length);
