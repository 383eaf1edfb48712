/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How errors that concern single ports affect a policy in force.
 *
 * A new policy with any error is refused. A policy in force is not: root on one host can take the name of another host, a host can
 * be down, a cable can be moved, and none of that may stop the policy for other ports. The ports concerned are *frozen*, each with
 * the port at the other end of its cable: pkeyd writes nothing to them, so their tables and filters stay as they are.
 *
 * The rule (knowledge/rule.h) needs to know what the policy gives a frozen port. That is a range in each base. The least that the
 * policy gives is the higher one of
 *
 *     what it certainly gives: the least under every reading of the contested lines, each of which may or may not select the port;
 *     the lower one of what the lines give now, which root on a host may have influenced, and of what the last policy in force
 *     gave the port before it was frozen; nothing, if that is not known.
 *
 * If lines are contested, the most that the policy gives is the higher one of what the lines give now and of what the last policy
 * in force gave the port before it was frozen; if that is not known, it is what the table of the port may hold. The rule uses the
 * least where other ports could gain access, and the most where they could lose access.
 *
 * It follows:
 *
 *     isolation   No port gains access to a frozen port unless the policy lets the two talk. If the frozen port holds a base that
 *                 the policy does not give it, writes that would let other ports talk with it in this base are held.
 *     continuity  A port that talks with a frozen port, and may do so by the most that the policy may give the frozen port, can go
 *                 on: the frozen port loses nothing, and others lose nothing that they need to talk with it.
 *     progress    Partitions that name the frozen port change for all other ports, as long as the frozen port holds exactly what
 *                 the policy gives it, or nothing.
 *
 * (tests/unit/check_freezer.c tries all cases of three ports.)
 *
 * A frozen port keeps what it should lose until an admin resolves the contradiction. So a name is only a claim
 * (partitions.yaml(5), SECURITY).
 */

#include "util/findings.h"

/* Why a port is frozen. */
enum freeze {
        FREEZE_NONE,
        FREEZE_NAME,        /* another adapter has its name, by which a line selects it */
        FREEZE_SWITCH_NAME, /* another switch has the name of its switch, by which a line selects it */
        FREEZE_LINES,       /* two equally specific lines disagree about it */
        FREEZE_CAPACITY,    /* its table, or that of its leaf port, is too small */
        FREEZE_TRANSITION,  /* ... or too full for the change */
        N_FREEZES,
};

/* Returns whether an error with this code is about single ports. If not, it is about the policy, the fabric or this host as a
 * whole, and even a policy in force is not carried out. */
bool freeze_is_of_ports(enum finding_code code);

/* Static strings: "name", "lines", ... for JSON; the reason as a clause; what an admin can do. */
const char *freeze_to_string(enum freeze f);
const char *freeze_reason(enum freeze f);
const char *freeze_way_out(enum freeze f);
