/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of subnet administration that pkeyd uses: InformInfo, Notice in a Report, PKeyTableRecord.
 *
 * The layout of what libibmad knows is libibmad's; that of InformInfo (IBA 1.5, 13.4.8.3), of the DataDetails of notices
 * 257 to 259 (14.2.5.1) and of PKeyTableRecord (15.2.5.11) it does not know, and stands in sa.c, once.
 */

#include "ib/mad.h"

#define SA_ATTR_CLASS_PORT_INFO    0x0001
#define SA_ATTR_NOTICE             0x0002
#define SA_ATTR_INFORM_INFO        0x0003
#define SA_ATTR_P_KEY_TABLE_RECORD 0x0033

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
