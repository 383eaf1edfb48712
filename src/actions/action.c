/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "actions/action.h"

DEFINE_WORDS(reload_outcome_to_string, enum reload_outcome, "",
             [RELOAD_CARRIED_OUT] = "carried-out", [RELOAD_UNCHANGED] = "unchanged", [RELOAD_PARTIAL] = "partial",
             [RELOAD_WAITS] = "waits", [RELOAD_REFUSED] = "refused")
