/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which blanks stand where a file has tabs, if only one number of them can be meant. */

#include "util/yaml_source.h"

/* True if several lines are indented, and all of them with tabs only. */
bool yaml_blanks_are_tabs(const struct yaml_source *s);

/* The characters of this line to replace by blanks. The first tab of the line is in this column. file_has_tabs: the result of
 * yaml_blanks_are_tabs(). Returns the number of blanks and sets *ret_column and *ret_length; 0: it is not certain. */
unsigned yaml_blanks_for_tab(const struct yaml_source *s, bool file_has_tabs, unsigned line, unsigned column, unsigned *ret_column,
                             unsigned *ret_length);
