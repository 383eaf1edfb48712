/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Subnet management packets: one request, one response, and the attributes pkeyd reads and writes.
 *
 * The layout of every field is libibmad's (mad_encode, mad_set_field, mad_get_field); nothing here counts bits itself
 * but the attribute modifiers of IBA 1.5, 14.2.5.7 (P_KeyTable: block in the low 16 bits, on a switch the port in the
 * high 16) and 14.2.5.6 (PortInfo: port), and the P_KeyTable block, which is nothing but 32 big-endian numbers.
 */

#include "ib/types.h"

#define MAD_SIZE      256
#define SMP_DATA_SIZE 64
#define SMP_MAX_HOPS  63

enum smp_method {
        SMP_GET = 0x01,
        SMP_SET = 0x02,
        SMP_GET_RESP = 0x81,
};

enum smp_attribute {
        SMP_ATTR_NODE_DESCRIPTION = 0x10,
        SMP_ATTR_NODE_INFO = 0x11,
        SMP_ATTR_SWITCH_INFO = 0x12,
        SMP_ATTR_PORT_INFO = 0x15,
        SMP_ATTR_P_KEY_TABLE = 0x16,
};

/* How a MAD gets there. LID-routed where the port has a LID (lid.v != 0, hops ignored), else the directed route:
 * `hops` exits, path[1] the local port, path[0] unused, as libibmad's ib_dr_path_t has it. */
struct smp_route {
        struct lid lid;
        uint8_t hops;
        uint8_t path[SMP_MAX_HOPS + 1];
};

static inline bool smp_route_is_directed(const struct smp_route *r)
{
        return r->lid.v == 0;
}

/* One question. `destination` names the SMA that answers (any number that is equal for equal SMAs): at most one request
 * to a destination is outstanding. `cookie` comes back with the result. `retries` is how often the engine may send it
 * again; 0: once only, the caller decides what a loss means (a write that rests on a read). */
struct smp_request {
        struct smp_route route;
        uint32_t destination;
        uint64_t cookie;
        enum smp_method method;
        enum smp_attribute attribute;
        uint32_t modifier;
        uint64_t m_key;
        uint8_t retries;
        uint8_t data[SMP_DATA_SIZE]; /* network byte order, as in the MAD */
};

/* How a request ended. */
enum smp_outcome {
        SMP_ANSWERED,   /* status 0, data valid */
        SMP_TIMED_OUT,  /* nobody answered, after all retries */
        SMP_REFUSED,    /* answered with a MAD status other than 0 (and other than busy) */
        SMP_BUSY,       /* still busy after all retries */
        SMP_UNSENT,     /* this host's own stack refused to send it */
};

struct smp_result {
        uint64_t cookie;
        enum smp_outcome outcome;
        uint16_t mad_status; /* of SMP_REFUSED: the Status field */
        uint8_t data[SMP_DATA_SIZE];
};

/* A MAD on its way, ready for the wire or as it came from there. */
struct mad_frame {
        uint8_t mad[MAD_SIZE];
        size_t length;          /* bytes valid in mad, at most MAD_SIZE; what is received may be shorter */
        struct lid dlid;        /* to send: LID, 0xffff for a directed route */
        bool directed;          /* class 0x81 instead of 0x01 */
        usec_t timeout;         /* to send: how long an answer is waited for */
};

/* Writes the MAD of `request` with transaction ID `tid` to ret. Only the low 32 bits of a TID are ours: the kernel (and
 * ibsim) use the others. */
void smp_encode(const struct smp_request *request, uint32_t tid, struct mad_frame *ret);

/* The low 32 bits of the transaction ID. The frame must hold at least 24 bytes (MAD header). */
uint32_t mad_frame_tid(const struct mad_frame *frame);

/* Why an answer is not one to this request. 0 if it is; else a negative errno: -EMSGSIZE (short), -EPROTO (base
 * version, class, or not a GetResp), -EBADMSG (attribute or modifier differ). *ret_status is the MAD status without the
 * direction bit; set only on success. */
int smp_check_response(const struct smp_request *request, const struct mad_frame *frame, uint16_t *ret_status);

/* The attribute's data in a frame that smp_check_response took. */
void smp_get_data(const struct mad_frame *frame, uint8_t ret[SMP_DATA_SIZE]);

/* MAD status bit 0: busy, come again. */
static inline bool mad_status_is_busy(uint16_t status)
{
        return status & 1;
}

/* Words for a MAD status ("invalid attribute or modifier", ...); a static string. */
const char *mad_status_to_string(uint16_t status);
/* "timeout", "status", "busy", "unsent"; "answered"; a static string. */
const char *smp_outcome_to_string(enum smp_outcome o);

/* P_KeyTable (IBA 1.5, 14.2.5.7). switch_port is 0 for a CA or router port and a switch's port 0. */
uint32_t p_key_table_modifier(uint8_t switch_port, uint16_t block);
void p_key_block_decode(const uint8_t data[SMP_DATA_SIZE], struct p_key ret[P_KEY_BLOCK_ENTRIES]);
void p_key_block_encode(const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint8_t ret[SMP_DATA_SIZE]);

/* What pkeyd reads of NodeInfo, SwitchInfo and PortInfo. */
struct node_info {
        enum node_type type;
        uint8_t num_ports;
        struct guid node_guid, port_guid;
        uint16_t partition_cap;
        uint8_t local_port;
};

struct switch_info {
        uint16_t partition_enforcement_cap;
        bool inbound_enforcement_cap, outbound_enforcement_cap;
};

struct port_info {
        struct lid lid, sm_lid;
        uint8_t lmc;
        enum port_state state;
        bool enforce_inbound, enforce_outbound;
        uint16_t p_key_violations;
};

void node_info_decode(const uint8_t data[SMP_DATA_SIZE], struct node_info *ret);
void switch_info_decode(const uint8_t data[SMP_DATA_SIZE], struct switch_info *ret);
void port_info_decode(const uint8_t data[SMP_DATA_SIZE], struct port_info *ret);

/* Turns a PortInfo that was read into one that sets only PartitionEnforcementInbound/Outbound: every other component is
 * as read, and those that are commands (PortState, PortPhysicalState, LinkDownDefaultState, ClientReregister, the
 * enabled widths and speeds) say "no change". */
void port_info_set_enforcement(uint8_t data[SMP_DATA_SIZE], bool inbound, bool outbound);
