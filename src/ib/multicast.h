/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Multicast groups that a subnet manager creates for a partition, in the codes of the standard (IBA 1.5, MCMemberRecord), and
 * conversions from bytes and Gb/s.
 */

#include "ib/types.h"
#include "util/arena.h"

#define MULTICAST_Q_KEY_IPOIB   0x0b1bu  /* of IPoIB groups, RFC 4391 */
#define MULTICAST_SCOPE_LINK    2
#define MULTICAST_MAX_SCOPE     15
#define MULTICAST_MAX_SL        15
#define MULTICAST_MAX_FLOW      0xfffffu
#define MULTICAST_MTU_2048      4        /* code; the default of subnet managers for an IPoIB group */
#define MULTICAST_RATE_10       3

struct mgid {
        uint8_t raw[16];
};

struct multicast_parameters {
        uint8_t mtu, rate;   /* codes */
        uint8_t sl, tclass;
        uint16_t scopes;     /* a bit for each scope; each gets a group of its own */
        uint32_t q_key;      /* 0: the subnet manager's default, which for IPoIB groups is 0x0b1b */
        uint32_t flow_label;
};

struct multicast_group {
        struct mgid mgid;
        struct multicast_parameters parameters;
};

/* What IPoIB needs in a partition: the broadcast group, and further groups. */
struct ipoib {
        struct multicast_parameters broadcast;
        const struct multicast_group *groups;
        uint32_t n_groups;
};

/* MTU 2048, 10 Gb/s, SL 0, link-local, no class, no label, Q_Key 0x0b1b. */
struct multicast_parameters multicast_ipoib_default(void);
/* The defaults of a further group: as the broadcast group, but with traffic class 0 and, if it is no IP group, Q_Key 0. */
struct multicast_parameters multicast_inherit(const struct multicast_parameters *broadcast, const struct mgid *mgid);
bool multicast_equal(const struct multicast_parameters *a, const struct multicast_parameters *b);

/* The code of an MTU of 256, 512, 1024, 2048 or 4096 bytes, or 0; and back (0: not such a code). */
uint8_t multicast_mtu_code(unsigned long bytes);
unsigned multicast_mtu_bytes(uint8_t code);
/* The code of a rate in Gb/s ("2.5", "10", ... "1200"), or 0; and back (NULL: not such a code; else a static string). */
uint8_t multicast_rate_code(const char *gigabits);
const char *multicast_rate_text(uint8_t code);
/* The code of a rate in tenths of a Gb/s (25: 2.5 Gb/s), or 0. */
uint8_t multicast_rate_code_of_tenths(unsigned tenths);

/* Parses "ff12:401b::16". Returns 0, or -EINVAL if it is no multicast GID. */
int mgid_parse(const char *text, struct mgid *ret);
/* In the arena; NULL: out of memory. */
const char *mgid_text(struct arena *a, const struct mgid *mgid);
/* True if it carries IPv4 or IPv6 (signature 0x401b or 0x601b): such a group has to match the broadcast group of its partition. */
bool mgid_is_ip(const struct mgid *mgid);
/* True if this group can exist beside that broadcast group: one that carries IP must have its MTU and rate. */
bool multicast_fits(const struct multicast_parameters *broadcast, const struct multicast_group *group);
/* True if an IP group with this MGID can belong to the partition: its P_Key bits are 0 or the partition's, or it is the broadcast
 * group of IPv4. */
bool mgid_fits_partition(const struct mgid *mgid, uint16_t base);
