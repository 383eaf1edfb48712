/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Multicast groups that a subnet manager makes for a partition, in the standard's codes (IBA 1.5, MCMemberRecord), and the
 * way to those from what people say: bytes and Gb/s.
 */

#include "ib/types.h"
#include "util/arena.h"

#define MULTICAST_Q_KEY_IPOIB   0x0b1bu  /* of IPoIB groups, RFC 4391 */
#define MULTICAST_SCOPE_LINK    2
#define MULTICAST_MAX_SCOPE     15
#define MULTICAST_MAX_SL        15
#define MULTICAST_MAX_FLOW      0xfffffu
#define MULTICAST_MTU_2048      4        /* code; what subnet managers give an IPoIB group */
#define MULTICAST_RATE_10       3

struct mgid {
        uint8_t raw[16];
};

struct multicast_parameters {
        uint8_t mtu, rate;   /* codes */
        uint8_t sl, tclass;
        uint16_t scopes;     /* bit for each scope; one group is made for each of them */
        uint32_t q_key;      /* 0: the subnet manager's default, which for IPoIB groups is 0x0b1b */
        uint32_t flow_label;
};

struct multicast_group {
        struct mgid mgid;
        struct multicast_parameters parameters;
};

/* What makes a partition one that IPoIB can use: the broadcast group, and groups beside it. */
struct ipoib {
        struct multicast_parameters broadcast;
        const struct multicast_group *groups;
        uint32_t n_groups;
};

/* MTU 2048, 10 Gb/s, SL 0, link-local, no class, no label, Q_Key 0x0b1b. */
struct multicast_parameters multicast_ipoib_default(void);
/* What a further group is if nothing is said of it: as the broadcast group, with the traffic class 0 and, if it is no IP
 * group, the Q_Key 0. */
struct multicast_parameters multicast_inherit(const struct multicast_parameters *broadcast, const struct mgid *mgid);
bool multicast_equal(const struct multicast_parameters *a, const struct multicast_parameters *b);

/* The code of an MTU of 256, 512, 1024, 2048 or 4096 bytes, or 0; and back (0: not such a code). */
uint8_t multicast_mtu_code(unsigned long bytes);
unsigned multicast_mtu_bytes(uint8_t code);
/* The code of a rate in Gb/s ("2.5", "10", ... "1200"), or 0; and back (NULL: not such a code; else a static string). */
uint8_t multicast_rate_code(const char *gigabits);
const char *multicast_rate_text(uint8_t code);

/* "ff12:401b::16". Returns 0, or -EINVAL for what is no multicast GID. */
int mgid_parse(const char *text, struct mgid *ret);
/* In the arena; NULL: out of memory. */
const char *mgid_text(struct arena *a, const struct mgid *mgid);
/* Carries IPv4 or IPv6 (signature 0x401b or 0x601b): such a group has to be as its partition's broadcast group is. */
bool mgid_is_ip(const struct mgid *mgid);
/* Can this group stand beside that broadcast group? One that carries IP must have its MTU and rate. */
bool multicast_fits(const struct multicast_parameters *broadcast, const struct multicast_group *group);
/* Can an IP group with this MGID belong to a partition? Its P_Key bits are 0, the partition's, or it is the broadcast group
 * of IPv4 itself. */
bool mgid_fits_partition(const struct mgid *mgid, uint16_t base);
