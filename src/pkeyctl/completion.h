/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a shell offers while a person types a command line of pkeyctl. The scripts in completions/ only pass the answer on; what can
 * be typed is in the table of commands and in that of options. */

#include "pkeyctl/commands.h"

/* Prints the candidates for word N of the command line WORD..., with N and the words in `arguments` (pkeyctl(1), COMPLETION). Does
 * not fail: what it cannot read adds no candidates. Sends nothing, changes nothing, does not wait. */
void completion_answer(int n, char **arguments);
