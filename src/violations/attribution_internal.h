/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What attribution.c (the kinds of reports, counters) and attribution_notice.c (notices) share: one record, and who
 * takes part in it.
 */

#include "violations/membership_text.h"

/* Does a switch port compare the P_Keys of what goes through it, in the direction that the counter is about? */
enum switch_filter {
        FILTER_ON,
        FILTER_OFF,
        FILTER_UNSUPPORTED,
        FILTER_UNCONFIRMED, /* a write of it was not confirmed */
        FILTER_GONE,        /* it is not in the snapshot any more */
};

struct attribution_context {
        struct arena *arena;
        const struct attribution_input *c;
        const struct violation_record *record;
        struct attribution *out;
        struct beginning began;   /* when the first came that this is about */
        uint32_t counted;         /* the port that counted or refused, an index into the subnet's ports, or SUBNET_NONE */
        bool node_is_there;       /* its node is in the subnet */
        bool is_switch_port;      /* it is an external one, or was */
        bool is_silent;           /* likewise, and its link is up, and what is there did not answer */
        const char *counted_label;
        struct party host;        /* the endport: itself, or what is plugged into the switch port */
        enum switch_filter check; /* of a switch port */
        struct party from, to;    /* of a notice */
        bool wiring_conflicts;    /* neither end of a packet that passed a switch port is what is plugged in there */
};

/* "SUBJECT VERB 3 packets TAIL (SOURCE)", "packets that SUBJECT VERB TAIL (SOURCE)" */
struct headline {
        const char *subject, *verb, *tail, *source;
};

/* The fields say that it is about this endport, which is known. */
void attribution_set_endport(struct attribution_context *s, const struct party *p);

/* Of notices. Opens the two ends and fills the fields. */
void notice_open(struct attribution_context *s);
/* ret->source is the name of the notice. */
int notice_headline(struct attribution_context *s, struct headline *ret);
void notice_add_reasons(struct attribution_context *s, struct text *w);
