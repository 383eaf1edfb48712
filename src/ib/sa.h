/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of subnet administration that pkeyd uses: InformInfo, Notice in a Report, PKeyTableRecord.
 *
 * libibmad defines the layouts that it knows; those of InformInfo (IBA 1.5, 13.4.8.3), of the DataDetails of notices 257 to 259
 * (14.2.5.1) and of PKeyTableRecord (15.2.5.11) are in sa.c.
 */

#include "ib/mad.h"

#define SA_ATTR_NOTICE             0x0002
#define SA_ATTR_INFORM_INFO        0x0003
#define SA_ATTR_P_KEY_TABLE_RECORD 0x0033

struct gid {
        uint64_t prefix, id;
};

/* Notice of a security event, traps 257, 258 and 259. The values are as received; they may be wrong. */
struct notice {
        uint16_t trap;
        struct lid issuer;      /* the port that raised it */
        uint32_t key;           /* the P_Key (257, 259), the Q_Key (258) of the packet */
        struct lid lid1, lid2;  /* sender and receiver */
        struct gid gid1, gid2;  /* valid with has_gid1, has_gid2 */
        uint32_t qp1, qp2;      /* 24 bits */
        struct lid switch_lid;  /* of 259: the switch ... */
        uint8_t switch_port;    /* ... and its port */
        bool has_switch_port, has_gid1, has_gid2;
};

/* All requests to the SA have one destination (mad_request); those of SMPs are small numbers. */
#define SA_DESTINATION UINT32_MAX

#define NOTICE_P_KEY        257 /* at an endport */
#define NOTICE_Q_KEY        258 /* at an endport */
#define NOTICE_SWITCH_P_KEY 259 /* at an external port of a switch */

/* Decodes the Notice in the data of a Report, bytes of unknown content. A LID of 0 in lid1 or lid2: unknown. Returns 0; -ENOMSG
 * for a notice that is not generic or has another trap than these three; -EBADMSG for one of them with an impossible issuer or
 * sender. */
int notice_decode(const uint8_t data[MAD_DATA_SIZE], struct notice *ret);

/* A subscription to notices of all issuers, by trap number, type or both. */
#define INFORM_ANY            0xffff
#define INFORM_TYPE_SECURITY  2 /* traps 256 to 259 */

struct inform_info {
        uint16_t trap, type; /* INFORM_ANY: any */
        bool subscribe;      /* false: end the subscription */
};

/* Makes Set(InformInfo) to the SA at that LID; sm_key 0: untrusted. Leaves cookie, lane and retries 0. */
void inform_info_request(const struct inform_info *info, struct lid sa, uint8_t sl, uint64_t sm_key, struct mad_request *ret);
/* True if the answer of the SA repeats what was requested. A refusal may have status 0, too, but then Subscribe is 0. */
bool inform_info_is_accepted(const struct inform_info *info, const uint8_t data[MAD_DATA_SIZE]);

/* Which block of a P_Key table, in the terms of the SA. */
struct p_key_record {
        struct lid lid;       /* of the endport; of a switch, of its port 0 */
        uint16_t block;
        uint8_t switch_port;  /* 0 for a CA or router */
};

/* Makes SubnAdmGet(PKeyTableRecord) of one block. An SA shows these only to a requester with its SM_Key. Leaves cookie, lane and
 * retries 0. */
void p_key_record_request(const struct p_key_record *which, struct lid sa, uint8_t sl, uint64_t sm_key, struct mad_request *ret);
