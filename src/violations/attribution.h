/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A report in words: what happened, where, who, since when, how often, and what to make of it; one line that a tired
 * admin understands.
 */

#include "policy/policy.h"
#include "subnet/observed.h"
#include "util/arena.h"
#include "violations/history.h"
#include "violations/lids.h"
#include "violations/violations.h"

/* What is known; each of the pointers may be NULL. */
struct attribution_input {
        const struct subnet *subnet;
        const struct memberships *memberships;     /* in force, of that subnet */
        const struct membership_history *history;
        usec_t now;
        const struct observed *observed;           /* of that subnet: whether a switch port checks P_Keys after what was
                                                      written since discovery; without it the subnet's own bits count */
        bool clears_saturated;      /* pkeyd clears what came to its maximum by itself */
};

/* The parts that become fields, and the sentence. Strings live in the arena, NULL: not known. */
struct attribution {
        const char *text;
        const char *node; /* label of the endport it is about: the sender where known, else the one that counted */
        struct guid port_guid;    /* of that endport; 0: not known */
        struct lid lid;
        uint8_t port;
        const char *counted_by;   /* label of the port whose counter moved, or that raised the notice */
        const char *switch_name;  /* label of the switch port beside it */
        const char *partition;    /* name */
        struct p_key p_key;       /* base 0: not known */
        bool names_sender;        /* node is who sent it; else it is the victim's counter */
};

/* Returns 0 or -ENOMEM. */
int attribution_explain(struct arena *a, const struct violation_report *report, const struct attribution_input *c,
                        struct attribution *ret);
/* The same for a record, for lists: all of it, and when it began and when the last came. */
int attribution_explain_record(struct arena *a, const struct violation_record *record,
                               const struct attribution_input *c, struct attribution *ret);
