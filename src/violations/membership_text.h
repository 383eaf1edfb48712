/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The memberships of an endport in words: what the policy gives it, what it gave it before, and what follows for a violation.
 * Clauses of a sentence, each with "; " before it. */

#include "violations/attribution.h"
#include "violations/phrase.h"

/* An endport that a sentence is about. */
struct party {
        uint32_t port;     /* index into the subnet's ports; SUBNET_NONE: it is in none, or not known */
        struct guid guid;  /* 0: not known */
        struct lid lid;
        uint8_t number;
        const char *label; /* "node0042 mlx5_0/1", or what else is known of it */
        const char *name;  /* "node0042": for later in the sentence */
};

/* When the first violations of a host came, as far as the samples show: after the last one without them, until the first one with
 * them. 0 and USEC_INFINITY: not known. `again`: when those came that this is about, if it was quiet in between. */
struct beginning {
        usec_t earliest, latest, again;
};

/* What it did. */
enum party_role {
        PARTY_SENDER,
        PARTY_RECEIVER,
        PARTY_OTHER, /* it is named, but nothing follows from it */
};

/* Returns 0 or -ENOMEM. */
int party_open(struct arena *a, const struct subnet *s, uint32_t port, struct party *ret);

/* A host as it was known when it did what a record is about, in this subnet (NULL: none); borrows its texts. */
struct party party_of_host(const struct subnet *s, const struct violation_host *host);

static inline bool party_is_known(const struct party *p)
{
        return p->guid.v != 0;
}

/* What the policy in force gives it in a partition; *ret only if that is known. */
bool membership_text_find(const struct attribution_input *c, const struct party *p, uint16_t base,
                          enum membership *ret);

/* Of what it is a member; `it`: the clause before was about it, too. */
void membership_text_add_all(struct text *w, const struct attribution_input *c, const struct party *p, bool it);
/* What it lost or got last in any partition, or that there was nothing, and whether that may be the reason of
 * violations that began at `began`. False: nothing is known, nothing was added. */
bool membership_text_add_last_change(struct text *w, const struct attribution_input *c, const struct party *p,
                                     enum party_role role, struct beginning began);
/* The same of one partition. False: no change is known, nothing was added. */
bool membership_text_add_change(struct text *w, const struct attribution_input *c, const struct party *p, uint16_t base,
                                enum party_role role, struct beginning began);
/* That it was no member of a partition (named `what`) as long as anything is known of it. */
void membership_text_add_never(struct text *w, const struct attribution_input *c, const struct party *p, const char *what);

/* "limited", "full", "full and limited" */
const char *membership_text_word(enum membership m);
/* A membership became less: from full to limited, or to none. */
bool membership_text_is_loss(const struct membership_change *c);
/* "3 minutes ago by generation 42", or what else made it. */
void membership_text_add_when(struct text *w, const struct attribution_input *c, const struct membership_change *change);
