/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A report as a sentence, in one line: what happened, at which port, how often and since when, and the likely cause. attribution.c
 * and attribution_storm.c choose the cause:
 *
 *     counter  It does not show the P_Key. The sentence states which other packets the counter may have counted, and then the last
 *              loss of a membership by the host behind the port; if that is long ago, its last change, or that it had none.
 *     notice   It shows the P_Key, and perhaps both ends of the packet. The first that applies: it is about a Q_Key; the key is no
 *              P_Key; the policy has no such partition; the sender is no member; the receiver is no member; the sender is a
 *              limited member, but used the full key; limited members cannot talk to each other; the policy lets them talk. If the
 *              membership of an end in this partition changed (first the sender), the sentence states the change.
 *     summary  A change of the last hour that most of the worst ten have in common: one partition, one generation.
 *
 * A change can be the cause only if it took something away. It "probably" is if the violations began within a day after it; it
 * "perhaps" is if they began within a week, or if it happened between the last sample without them and the first one with them.
 */

#include "policy/policy.h"
#include "subnet/observed.h"
#include "violations/history.h"
#include "violations/violations.h"

/* What is known; each of the pointers may be NULL. */
struct attribution_input {
        const struct subnet *subnet;
        const struct memberships *memberships;     /* in force, of that subnet */
        const struct membership_history *history;
        usec_t now;
        const struct observed *observed;           /* of that subnet: whether switch ports check P_Keys, after writes since
                                                      discovery; without it the bits of the subnet count */
        bool clears_saturated;                     /* pkeyd clears counters at their maximum */
};

/* The fields of a journal entry, and the sentence. Strings live in the arena; NULL: not known. */
struct attribution {
        const char *text;
        const char *node; /* label of the endport: the sender if it is known, else the one that counted */
        struct guid port_guid;    /* of that endport; 0: not known */
        struct lid lid;
        uint8_t port;
        const char *counted_by;   /* label of the port whose counter moved, or that raised the notice */
        const char *switch_name;  /* label of the leaf port */
        const char *partition;    /* name; the sentence has the ID of a lease instead */
        struct p_key p_key;       /* base 0: not known */
        bool names_sender;        /* node sent the packets; else it is the endport that was to receive them */
};

/* Returns 0 or -ENOMEM. */
int attribution_explain(struct arena *a, const struct violation_report *report, const struct attribution_input *input,
                        struct attribution *ret);
/* The same for a record, for lists: all that it counted, and when it counted first and last. */
int attribution_explain_record(struct arena *a, const struct violation_record *record,
                               const struct attribution_input *input, struct attribution *ret);
