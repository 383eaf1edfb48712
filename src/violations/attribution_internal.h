/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * attribution_facts.c finds the ports and endports of one record, attribution.c the cause, attribution_text.c puts both into a
 * sentence, attribution_storm.c sums up many records. A sentence is a headline (which port dropped what), then clauses: remarks,
 * and in their midst the memberships of one endport, the subject, with its last change.
 */

#include "util/text.h"
#include "violations/attribution.h"
#include "violations/phrase.h"

/* Whether a switch port compares P_Keys in the direction that its counter is about. */
enum switch_filter {
        FILTER_ON,
        FILTER_OFF,
        FILTER_UNSUPPORTED,
        FILTER_UNCONFIRMED, /* a write of it was not confirmed */
        FILTER_CHANGED,     /* it compares them now, but did not at some of the samples */
        FILTER_GONE,        /* the port is not in the snapshot any more */
};

/* In the order of the sentence. */
enum remark {
#define REMARK(name, text) REMARK_##name,
#include "violations/attribution_remarks.def"
#undef REMARK
        N_REMARKS,
};

/* When the first violations of a host came: after the last sample without them (earliest), before the first one with them
 * (latest). 0 and USEC_INFINITY: not known. again: the begin of this episode, if the host was quiet since the first ones. */
struct beginning {
        usec_t earliest, latest, again;
};

/* What the subject did. */
enum role {
        ROLE_SENDER,
        ROLE_RECEIVER,
        ROLE_NONE, /* nothing follows from its change */
};

/* What is known of the past of the subject. */
enum past {
        PAST_NOT_SHOWN,
        PAST_CHANGED,
        PAST_UNCHANGED, /* for known_for */
        PAST_NEVER,     /* it was no member of the partition for known_for */
        PAST_NO_MEMBER, /* ... now; pkeyd has not known it for long */
};

/* Whether a change of the subject is the cause of the violations. */
enum certainty {
        CAUSE_UNRELATED,    /* it is no loss, or too long ago; or it is not known when they began */
        CAUSE_LATER,        /* they began before it */
        CAUSE_REPEATED,     /* this episode began after it, but the first one before */
        CAUSE_SIMULTANEOUS, /* it is between the last sample without violations and the first one with them */
        CAUSE_POSSIBLE,
        CAUSE_PROBABLE,
};

struct subject {
        const struct violation_host *host; /* NULL: the sentence has none */
        enum role role;
        enum past past;
        const struct membership_change *change, *changes; /* the change, and those from which the ones like it are listed */
        uint32_t n_changes;
        enum certainty certainty;
        usec_t known_for;
        bool lists_memberships;
};

struct facts {
        struct arena *arena;
        const struct attribution_input *input;
        const struct violation_record *record;
        enum violation_filter then;       /* when what the text is about was counted */
        struct attribution *out;          /* all but the text */
        struct beginning began;
        uint32_t counted;                 /* the port that counted or refused, an index into the subnet's ports, or SUBNET_NONE */
        bool is_switch_port;              /* it is an external one, or was */
        enum switch_filter filter;        /* of a switch port */
        struct violation_host host;       /* the endport: itself, or what is or was plugged into it; GUID 0: not known */
        struct violation_host from, to;   /* of a notice */
        const char *partition;            /* label of that of the P_Key; NULL: none is known */
        enum membership member;           /* of REMARK_..._IS_MEMBER */
        uint32_t remarks;                 /* a bit for each */
        struct subject subject;
};

static inline bool host_is_known(const struct violation_host *host)
{
        return host->guid.v != 0;
}

static inline bool source_is_constraint(enum violation_source source)
{
        return source == VIOLATION_RCV_CONSTRAINT || source == VIOLATION_XMIT_CONSTRAINT;
}

/* A notice shows the key that a packet had. False: it is no P_Key, or an empty entry. */
static inline bool record_has_p_key(const struct violation_record *r)
{
        return r->source != VIOLATION_NOTICE_258 && r->notice.key <= UINT16_MAX &&
               p_key_base((struct p_key) { (uint16_t) r->notice.key }) != 0;
}

static inline void add_remark(struct facts *f, enum remark remark)
{
        f->remarks |= UINT32_C(1) << remark;
}

/* A membership became less: from full to limited, or to none. */
bool membership_change_is_loss(const struct membership_change *change);
/* The endport as an index of input->memberships; SUBNET_NONE: its memberships are not known. */
uint32_t attribution_find_host(const struct attribution_input *input, const struct violation_host *host);

/* Finds the port that counted and the endports, and fills `out`; arena, input, record, then and out are set. 0 or -ENOMEM. */
int attribution_open(struct facts *f);

/* Writes out->text. report: NULL: of the record as it is. 0 or -ENOMEM. */
int attribution_write(struct facts *f, const struct violation_report *report);
/* "3 minutes ago by generation 42" */
void attribution_add_when(struct text *w, const struct attribution_input *input, const struct membership_change *change);
/* " in the last 60 seconds"; since: 0: nothing. */
void attribution_add_span(struct text *w, const struct attribution_input *input, usec_t since);

/* The text of a report that sums up many records. 0 or -ENOMEM. */
int attribution_write_sum(struct arena *a, const struct violation_report *report, const struct attribution_input *input,
                          struct attribution *out);
