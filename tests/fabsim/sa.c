/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subnet administrator, as far as subscriptions and Reports go. Its key and its distrust are those of OpenSM: a
 * wrong key has no answer, without the key there is no subscription to the number of a security trap. */

#include <infiniband/mad.h>
#include <string.h>

#include "fabric.h"

#define METHOD_GET         1
#define METHOD_SET         2
#define METHOD_REPORT      6
#define ATTR_NOTICE        2
#define ATTR_INFORM_INFO   3
#define STATUS_UNSUPPORTED 0x000c
#define STATUS_INVALID     0x0200
#define STATUS_NO_ROOM     0x0100
#define ANY                0xffff
#define TYPE_SECURITY      2
#define RESEND_AFTER       (200 * USEC_PER_MSEC)
#define TRIES              40

static unsigned get16(const uint8_t *bytes)
{
        return (unsigned) (bytes[0] << 8 | bytes[1]);
}

static void put16(uint8_t *bytes, unsigned value)
{
        bytes[0] = (uint8_t) (value >> 8);
        bytes[1] = (uint8_t) value;
}

void fabsim_sa_restart(struct fabsim *f)
{
        f->sa.n_subscriptions = 0;
        memset(f->sa.reports, 0, sizeof(f->sa.reports));
        f->sa.n_seen = f->n_notices;
}

/* --- InformInfo ------------------------------------------------------------------------------------------------------ */

static struct fabsim_subscription *find(struct fabsim_sa *sa, struct fabsim_subscription wanted)
{
        for (unsigned i = 0; i < sa->n_subscriptions; i++)
                if (sa->subscriptions[i].trap == wanted.trap && sa->subscriptions[i].type == wanted.type)
                        return &sa->subscriptions[i];
        return NULL;
}

/* data: 16 bytes of GID, LID range, then IsGeneric, Subscribe, Type, TrapNumber (13.4.8.3). */
static unsigned inform(struct fabsim_sa *sa, bool trusted, const uint8_t *data)
{
        struct fabsim_subscription wanted = {
                .trap = (uint16_t) get16(data + 26),
                .type = (uint16_t) get16(data + 24),
        };
        struct fabsim_subscription *there = find(sa, wanted);

        if (sa->lacks_subscriptions)
                return STATUS_UNSUPPORTED;
        if (get16(data + 16) != ANY || data[22] != 1 || data[23] > 1)
                return STATUS_INVALID;
        if (sa->distrusts && !trusted && wanted.trap >= 256 && wanted.trap <= 259)
                return STATUS_INVALID;
        if (data[23] == 0) {
                if (!there)
                        return STATUS_INVALID;
                *there = sa->subscriptions[--sa->n_subscriptions];
        } else if (!there) {
                if (sa->n_subscriptions == FABSIM_MAX_SUBSCRIPTIONS)
                        return STATUS_NO_ROOM;
                sa->subscriptions[sa->n_subscriptions++] = wanted;
        }
        return 0;
}

static void report_answered(struct fabsim_sa *sa, uint64_t tid)
{
        for (unsigned i = 0; i < FABSIM_MAX_REPORTS; i++)
                if (sa->reports[i].tries && mad_get_field64(sa->reports[i].frame.mad, 0, IB_MAD_TRID_F) == tid)
                        sa->reports[i].tries = 0;
}

bool fabsim_sa_answer(struct fabsim *f, const struct mad_frame *frame, struct mad_frame *ret)
{
        struct fabsim_sa *sa = &f->sa;
        uint64_t key = mad_get_field64((void *) frame->mad, 0, IB_SA_MKEY_F);
        unsigned status = STATUS_UNSUPPORTED;

        if (frame->mad[3] == 0x86)
                report_answered(sa, mad_get_field64((void *) frame->mad, 0, IB_MAD_TRID_F));
        if ((frame->mad[3] != METHOD_SET && frame->mad[3] != METHOD_GET) || (key && key != sa->key))
                return false;
        *ret = *frame;
        if (frame->mad[3] == METHOD_SET && get16(frame->mad + 16) == ATTR_INFORM_INFO) {
                status = inform(sa, key != 0, ret->mad + IB_SA_DATA_OFFS);
                sa->n_asked++;
                sa->n_refused += status != 0;
        }
        mad_set_field(ret->mad, 0, IB_MAD_METHOD_F, METHOD_GET);
        mad_set_field(ret->mad, 0, IB_MAD_RESPONSE_F, 1);
        mad_set_field(ret->mad, 0, IB_MAD_STATUS_F, status);
        return true;
}

/* --- Reports --------------------------------------------------------------------------------------------------------- */

/* 14.2.5.1 */
static void encode_notice(const struct fabsim_notice *n, uint8_t *data)
{
        uint8_t *details = data + 10;

        data[0] = 0x80 | TYPE_SECURITY;
        data[3] = n->trap == 259 ? NODE_SWITCH : NODE_CA;
        put16(data + 4, n->trap);
        put16(data + 6, n->trap == 259 ? n->switch_lid.v : n->lid2.v);
        put16(details + 2, n->lid1.v);
        put16(details + 4, n->lid2.v);
        if (n->trap == 259) {
                put16(details, 0x07); /* the LIDs and the P_Key are valid */
                put16(details + 6, n->key.v);
                put16(details + 48, n->switch_lid.v);
                details[50] = n->switch_port;
        } else {
                put16(details + 8, n->key.v); /* the low half of 32 bits */
        }
}

static void add_report(struct fabsim *f, usec_t now, const struct fabsim_notice *n)
{
        struct fabsim_report *r = f->sa.reports;
        uint8_t *mad;

        while (r < f->sa.reports + FABSIM_MAX_REPORTS && r->tries)
                r++;
        if (r == f->sa.reports + FABSIM_MAX_REPORTS) {
                f->sa.n_given_up++;
                return;
        }
        *r = (struct fabsim_report) { .frame.length = MAD_SIZE, .next_at = now, .tries = TRIES };
        r->frame.lid = fabsim_port_at(f, f->sm)->lid;
        r->frame.mgmt_class = MAD_CLASS_SA;
        mad = r->frame.mad;
        mad_set_field(mad, 0, IB_MAD_BASEVER_F, 1);
        mad_set_field(mad, 0, IB_MAD_CLASSVER_F, 2);
        mad_set_field(mad, 0, IB_MAD_MGMTCLASS_F, IB_SA_CLASS);
        mad_set_field(mad, 0, IB_MAD_METHOD_F, METHOD_REPORT);
        mad_set_field(mad, 0, IB_MAD_ATTRID_F, ATTR_NOTICE);
        mad_set_field64(mad, 0, IB_MAD_TRID_F, UINT64_C(0x5a00000000) + f->sa.next_tid++);
        encode_notice(n, mad + IB_SA_DATA_OFFS);
}

static bool fits(const struct fabsim_subscription *s, const struct fabsim_notice *n)
{
        return (s->trap == ANY || s->trap == n->trap) && (s->type == ANY || s->type == TYPE_SECURITY);
}

/* What fell out of the fabric's ring before it was seen is lost; a test asks often enough. */
static void look_for_notices(struct fabsim *f, usec_t now)
{
        for (; f->sa.n_seen < f->n_notices; f->sa.n_seen++)
                for (unsigned i = 0; i < f->sa.n_subscriptions; i++) {
                        const struct fabsim_notice *n = &f->notices[f->sa.n_seen % FABSIM_MAX_NOTICES];

                        if (fits(&f->sa.subscriptions[i], n))
                                add_report(f, now, n);
                }
}

bool fabsim_sa_next_report(struct fabsim *f, usec_t now, struct mad_frame *ret)
{
        look_for_notices(f, now);
        for (unsigned i = 0; i < FABSIM_MAX_REPORTS; i++) {
                struct fabsim_report *r = &f->sa.reports[i];

                if (!r->tries || r->next_at > now)
                        continue;
                if (--r->tries == 0) {
                        f->sa.n_given_up++;
                        continue;
                }
                r->next_at = now + RESEND_AFTER;
                *ret = r->frame;
                return true;
        }
        return false;
}

usec_t fabsim_sa_due(const struct fabsim *f)
{
        usec_t due = f->sa.n_seen < f->n_notices ? 0 : USEC_INFINITY;

        for (unsigned i = 0; i < FABSIM_MAX_REPORTS; i++)
                if (f->sa.reports[i].tries && f->sa.reports[i].next_at < due)
                        due = f->sa.reports[i].next_at;
        return due;
}
