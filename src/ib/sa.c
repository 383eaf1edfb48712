/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/sa.h"

#include <errno.h>

#include "ib/field.h"
#include "ib/smp.h"

/* InformInfo, 36 bytes (IBA 1.5, 13.4.8.3). GID, LIDRangeEnd and reserved fields are 0. */
#define INFORM_LID_RANGE_BEGIN 16
#define INFORM_IS_GENERIC      22
#define INFORM_SUBSCRIBE       23
#define INFORM_TYPE            24
#define INFORM_TRAP            26
#define INFORM_QPN             28 /* 24 bits */
#define INFORM_RESP_TIME       31 /* the low 5 bits */
#define INFORM_PRODUCER_TYPE   33 /* 24 bits */

#define ALL_LIDS       0xffff
#define ALL_PRODUCERS  0xffffff
#define GSI_QP         1  /* the QP that Reports go to, and by which an SA knows the subscription to be ended */
#define RESP_TIME      18 /* 4.096 us * 2^18, one second: how long pkeyd may take to answer a Report */

/* Its bits in a component mask: each field has one, reserved fields too. */
#define INFORM_COMPONENTS                                                                                              \
        (UINT64_C(1) << 1 /* LIDRangeBegin */ | UINT64_C(1) << 4 /* IsGeneric */ | UINT64_C(1) << 5 /* Subscribe */ |  \
         UINT64_C(1) << 6 /* Type */ | UINT64_C(1) << 7 /* TrapNumber */ | UINT64_C(1) << 8 /* QPN */ |                \
         UINT64_C(1) << 10 /* RespTimeValue */ | UINT64_C(1) << 12 /* ProducerType */)

/* DataDetails of a Notice and its fields (14.2.5.1). The LIDs are at the same place in all three. */
#define DETAILS          10
#define DETAILS_LID1     (DETAILS + 2)
#define DETAILS_LID2     (DETAILS + 4)
#define ENDPORT_KEY      (DETAILS + 6)
#define ENDPORT_SL_QP1   (DETAILS + 10)
#define SWITCH_VALID     DETAILS
#define SWITCH_P_KEY     (DETAILS + 6)
#define SWITCH_SL_QP1    (DETAILS + 8)
#define SWITCH_LID       (DETAILS + 48)
#define SWITCH_PORT      (DETAILS + 50)

/* From the word with SL and QP1 on: QP2, GIDADDR1, GIDADDR2. */
#define AFTER_QP2   4
#define AFTER_GID1  8
#define AFTER_GID2  24
#define QP_MASK     0xffffff

/* DataValid of trap 259: which fields are valid. */
enum {
        VALID_LID1 = 1 << 0,
        VALID_LID2 = 1 << 1,
        VALID_P_KEY = 1 << 2,
        VALID_QP1 = 1 << 4,
        VALID_QP2 = 1 << 5,
        VALID_GID1 = 1 << 6,
        VALID_GID2 = 1 << 7,
        VALID_ALL = 0xff,
};

/* PKeyTableRecord (15.2.5.11). */
#define RECORD_LID      0
#define RECORD_BLOCK    2
#define RECORD_PORT     4
#define RECORD_COMPONENTS 7 /* LID, block, port */

static uint16_t get16(const uint8_t *bytes)
{
        return (uint16_t) (bytes[0] << 8 | bytes[1]);
}

static uint32_t get32(const uint8_t *bytes)
{
        return (uint32_t) get16(bytes) << 16 | get16(bytes + 2);
}

static uint64_t get64(const uint8_t *bytes)
{
        return (uint64_t) get32(bytes) << 32 | get32(bytes + 4);
}

static void put16(uint8_t *bytes, uint16_t value)
{
        bytes[0] = (uint8_t) (value >> 8);
        bytes[1] = (uint8_t) value;
}

static void put24(uint8_t *bytes, uint32_t value)
{
        bytes[0] = (uint8_t) (value >> 16);
        put16(bytes + 1, (uint16_t) value);
}

/* --- Notice ---------------------------------------------------------------------------------------------------------- */

/* A packet without a GRH has no GIDs; the notice then has zeros. */
static bool get_gid(const uint8_t *bytes, struct gid *ret)
{
        *ret = (struct gid) { .prefix = get64(bytes), .id = get64(bytes + 8) };
        return ret->prefix != 0 || ret->id != 0;
}

static void get_packet(const uint8_t *data, const uint8_t *sl_qp1, unsigned valid, struct notice *ret)
{
        if (valid & VALID_LID1)
                ret->lid1.v = get16(data + DETAILS_LID1);
        if (valid & VALID_LID2)
                ret->lid2.v = get16(data + DETAILS_LID2);
        if (valid & VALID_QP1)
                ret->qp1 = get32(sl_qp1) & QP_MASK;
        if (valid & VALID_QP2)
                ret->qp2 = get32(sl_qp1 + AFTER_QP2) & QP_MASK;
        if (valid & VALID_GID1)
                ret->has_gid1 = get_gid(sl_qp1 + AFTER_GID1, &ret->gid1);
        if (valid & VALID_GID2)
                ret->has_gid2 = get_gid(sl_qp1 + AFTER_GID2, &ret->gid2);
}

/* A field that the switch marks as invalid is not used. If it marks all of them so, its notice would have no point: then every
 * field that is not 0 counts. */
static unsigned valid_fields(const uint8_t *data)
{
        unsigned valid = get16(data + SWITCH_VALID) & VALID_ALL;

        return valid ? valid : VALID_ALL;
}

static void get_switch_notice(const uint8_t *data, struct notice *ret)
{
        unsigned valid = valid_fields(data);

        get_packet(data, data + SWITCH_SL_QP1, valid, ret);
        if (valid & VALID_P_KEY)
                ret->key = get16(data + SWITCH_P_KEY);
        ret->switch_lid.v = get16(data + SWITCH_LID);
        ret->switch_port = data[SWITCH_PORT];
        ret->has_switch_port = ret->switch_lid.v != 0 && ret->switch_port != 0;
}

static bool lids_can_be(const struct notice *n)
{
        /* the receiver may be a multicast group */
        return lid_is_unicast(n->issuer) && n->lid1.v <= LID_MAX_UNICAST && n->switch_lid.v <= LID_MAX_UNICAST;
}

int notice_decode(const uint8_t data[MAD_DATA_SIZE], struct notice *ret)
{
        struct notice n = {
                .trap = (uint16_t) field(data, IB_NOTICE_TRAP_NUMBER_F), .issuer.v = (uint16_t) field(data, IB_NOTICE_ISSUER_LID_F),
        };

        if (!field(data, IB_NOTICE_IS_GENERIC_F))
                return -ENOMSG;
        switch (n.trap) {
        case NOTICE_P_KEY:
        case NOTICE_Q_KEY:
                get_packet(data, data + ENDPORT_SL_QP1, VALID_ALL, &n);
                n.key = get32(data + ENDPORT_KEY);
                if (n.trap == NOTICE_P_KEY)
                        n.key &= UINT16_MAX;
                break;
        case NOTICE_SWITCH_P_KEY:
                get_switch_notice(data, &n);
                break;
        default: /* a number from the fabric */
                return -ENOMSG;
        }
        if (!lids_can_be(&n))
                return -EBADMSG;
        *ret = n;
        return 0;
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static void make_request(struct lid sa, uint8_t sl, uint64_t sm_key, struct mad_request *ret)
{
        *ret = (struct mad_request) {
                .mgmt_class = MAD_CLASS_SA, .route = { .lid = sa, .sl = sl }, .destination = SA_DESTINATION, .key = sm_key,
        };
}

void inform_info_request(const struct inform_info *info, struct lid sa, uint8_t sl, uint64_t sm_key, struct mad_request *ret)
{
        make_request(sa, sl, sm_key, ret);
        ret->method = MAD_SET;
        ret->attribute = SA_ATTR_INFORM_INFO;
        ret->component_mask = INFORM_COMPONENTS;
        put16(ret->data + INFORM_LID_RANGE_BEGIN, ALL_LIDS);
        ret->data[INFORM_IS_GENERIC] = 1;
        ret->data[INFORM_SUBSCRIBE] = info->subscribe;
        put16(ret->data + INFORM_TYPE, info->type);
        put16(ret->data + INFORM_TRAP, info->trap);
        put24(ret->data + INFORM_QPN, GSI_QP);
        ret->data[INFORM_RESP_TIME] = RESP_TIME;
        put24(ret->data + INFORM_PRODUCER_TYPE, ALL_PRODUCERS);
}

bool inform_info_is_accepted(const struct inform_info *info, const uint8_t data[MAD_DATA_SIZE])
{
        return data[INFORM_IS_GENERIC] == 1 && data[INFORM_SUBSCRIBE] == info->subscribe &&
               get16(data + INFORM_TYPE) == info->type && get16(data + INFORM_TRAP) == info->trap;
}

void p_key_record_request(const struct p_key_record *which, struct lid sa, uint8_t sl, uint64_t sm_key, struct mad_request *ret)
{
        make_request(sa, sl, sm_key, ret);
        ret->method = MAD_GET;
        ret->attribute = SA_ATTR_P_KEY_TABLE_RECORD;
        ret->component_mask = RECORD_COMPONENTS;
        put16(ret->data + RECORD_LID, which->lid.v);
        put16(ret->data + RECORD_BLOCK, which->block);
        ret->data[RECORD_PORT] = which->switch_port;
}
