/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What an error that concerns single ports does to a policy that is in force.
 *
 * A new policy with any error is refused. A policy in force goes on: root on one host can take the name of another, a host can be
 * down, a cable can be moved, and none of that may stop what concerns everybody else. The ports concerned are *frozen*, each with
 * the port at the other end of its cable: their tables and filters stay as they are, and nothing is written to them.
 *
 * The rule (knowledge/rule.h) needs to know what the policy gives a frozen port. That is a range, in each base. At least it gives
 * the higher one of
 *
 *     what it certainly gives: the least under every reading of the lines that are contested, so that it is a name's, or not;
 *     the lower one of what the lines say now, which somebody may have brought about, and of what the last policy in force gave the
 *     port before it was frozen. Where that is not known, it is nothing.
 *
 * If lines are contested, it gives at most the higher one of what the lines say now and of what the last policy in force gave the
 * port before it was frozen. Where that is not known, it is what the table of the port may hold. The least counts where others
 * could gain something, the most where they could lose something.
 *
 * From this follows:
 *
 *     isolation   Nobody comes to talk with a frozen port whom the policy does not let talk with it. If the port holds a base that
 *                 it is not given, what would let others talk with it there waits, and the base is held.
 *     continuity  Who talks with a frozen port, and is let by the most that it may be given, goes on: the port loses nothing, and
 *                 others lose nothing that they need for it.
 *     progress    Partitions that name the port go on for all others, as long as it holds just what it is given, or nothing.
 *
 * (tests/unit/check_freezer.c tries all cases of three ports.)
 *
 * What a frozen port should lose it keeps until a person ends the contradiction. So a name is a claim (partitions.yaml(5)).
 */

#include "util/findings.h"

/* Why a port is frozen. */
enum freeze {
        FREEZE_NONE,
        FREEZE_NAME,        /* another adapter has its name, by which a line means it */
        FREEZE_SWITCH_NAME, /* another switch has the name of its switch, by which a line means it */
        FREEZE_LINES,       /* two equally specific lines disagree about it */
        FREEZE_CAPACITY,    /* its table, or that of its leaf port, is too small */
        FREEZE_TRANSITION,  /* ... or too full to get there */
        N_FREEZES,
};

/* True: an error with this code is about single ports. False: about the policy, the fabric or this host as a whole, so that even a
 * policy in force is not carried out. */
bool freeze_is_of_ports(enum finding_code code);

/* "name", "lines", ...: for JSON; why it is so, in words; what a person can do about it. Static strings. */
const char *freeze_to_string(enum freeze f);
const char *freeze_reason(enum freeze f);
const char *freeze_way_out(enum freeze f);
