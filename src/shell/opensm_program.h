/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The program file of this host's OpenSM. */

#include "opensm/opensm_numbers.h"

/* The numbers that it reads. UNKNOWN if none is installed, its program cannot be read, or several that differ are installed. */
enum opensm_numbers opensm_program_numbers(void);
