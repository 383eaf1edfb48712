/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of subnet administration that pkeyd uses: InformInfo, Notice in a Report, PKeyTableRecord.
 *
 * The layout of what libibmad knows is libibmad's; that of InformInfo (IBA 1.5, 13.4.8.3), of the DataDetails of
 * notices 257 to 259 (14.2.5.1) and of PKeyTableRecord (15.2.5.11) it does not know, and stands in sa.c, once.
 */

#include "ib/mad.h"

#define SA_ATTR_NOTICE             0x0002
#define SA_ATTR_INFORM_INFO        0x0003
#define SA_ATTR_P_KEY_TABLE_RECORD 0x0033

#define LID_MAX_UNICAST 0xbfff

struct gid {
        uint64_t prefix, id;
};

/* Notice of a security event, traps 257, 258 and 259. Numbers as they came; nothing is known of their truth. */
struct notice {
        uint16_t trap;
        struct lid issuer;      /* who raised it */
        uint16_t count;         /* NoticeCount; not of packets */
        uint32_t key;           /* the P_Key (257, 259), the Q_Key (258) of the packet */
        struct lid lid1, lid2;  /* sender and receiver */
        struct gid gid1, gid2;  /* 0: the notice has none */
        uint32_t qp1, qp2;      /* 24 bits */
        uint8_t sl;
        struct lid switch_lid;  /* of 259: the switch ... */
        uint8_t switch_port;    /* ... and its port */
        bool has_switch_port, has_gid1, has_gid2;
};

/* All requests to the SA are to one destination (mad_request); SMPs have small numbers. */
#define SA_DESTINATION UINT32_MAX

#define NOTICE_P_KEY        257 /* at an endport */
#define NOTICE_Q_KEY        258 /* at an endport */
#define NOTICE_SWITCH_P_KEY 259 /* at an external port of a switch */

/* The Notice in the data of a Report, bytes of unknown content. Returns 0; -ENOMSG: a notice, but not generic or of
 * another trap than these three; -EBADMSG: it says that it is one of them, but names an issuer or a sender that cannot
 * be. A LID of 0 in lid1, lid2: not known. */
int notice_decode(const uint8_t data[MAD_DATA_SIZE], struct notice *ret);

/* Who wants to hear of what: notices of all issuers, by trap number, type or both. */
#define INFORM_ANY            0xffff
#define INFORM_TYPE_SECURITY  2 /* traps 256 to 259 */

struct inform_info {
        uint16_t trap, type; /* INFORM_ANY: of any */
        bool subscribe;      /* false: no longer */
};

/* Set(InformInfo) to the SA at that LID; sm_key 0: untrusted. Leaves cookie, lane and retries 0. */
void inform_info_request(const struct inform_info *info, struct lid sa, uint8_t sl, uint64_t sm_key,
                         struct mad_request *ret);
/* True if the answer's data says that the SA did so: a refusal may come back with status 0, but with Subscribe 0. */
bool inform_info_is_taken(const struct inform_info *info, const uint8_t data[MAD_DATA_SIZE]);

/* Which block of a P_Key table, as the SA names it. */
struct p_key_record {
        struct lid lid;       /* of the endport; of a switch, of its port 0 */
        uint16_t block;
        uint8_t switch_port;  /* 0 for a CA or router */
};

/* SubnAdmGet(PKeyTableRecord) of one block. An SA shows these only to who has its SM_Key. Leaves
 * cookie, lane and retries 0. */
void p_key_record_request(const struct p_key_record *which, struct lid sa, uint8_t sl, uint64_t sm_key,
                          struct mad_request *ret);
