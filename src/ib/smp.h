/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of subnet management that pkeyd reads and writes.
 *
 * libibmad defines the layout of every field. Only the attribute modifiers of IBA 1.5, 14.2.5.7 (P_KeyTable: the block in the low
 * 16 bits, on a switch the port in the high 16) and 14.2.5.6 (PortInfo: the port), and the P_KeyTable block, which is just 32
 * big-endian numbers, are defined here.
 */

#include "ib/mad.h"

#define SMP_DATA_SIZE 64

enum smp_attribute {
        SMP_ATTR_NODE_DESCRIPTION = 0x10,
        SMP_ATTR_NODE_INFO = 0x11,
        SMP_ATTR_SWITCH_INFO = 0x12,
        SMP_ATTR_PORT_INFO = 0x15,
        SMP_ATTR_P_KEY_TABLE = 0x16,
        SMP_ATTR_LINEAR_FORWARDING_TABLE = 0x19,
        SMP_ATTR_SM_INFO = 0x20,
};

/* LinearForwardingTable (IBA 1.5, 14.2.5.12): each block has the port numbers of this many LIDs. */
#define LINEAR_FORWARDING_BLOCK 64

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
        uint8_t sm_sl;
        uint8_t lmc;
        enum port_state state;
        bool link_up; /* PortPhysicalState is LinkUp */
        bool is_sm;   /* CapabilityMask:IsSM: a subnet manager, master or not, runs on this port */
        bool enforce_inbound, enforce_outbound;
        uint16_t p_key_violations, m_key_violations;
};

/* How a port is protected: other parts of PortInfo, decoded separately because few callers need them. The M_Key is not kept,
 * because it is secret. */
struct port_protection {
        bool m_key_is_shown; /* the answer contains an M_Key: it is not 0, and the requester may see it */
        uint8_t m_key_level; /* M_KeyProtectBits, 0 to 3 */
        uint8_t sm_sl;       /* MasterSMSL */
};

/* SMInfo:SMState (IBA 1.5, 14.2.5.13). */
enum sm_state {
        SM_NOT_ACTIVE = 0,
        SM_DISCOVERING = 1,
        SM_STANDBY = 2,
        SM_MASTER = 3,
};

struct sm_info {
        struct guid port_guid;
        enum sm_state state;
        uint8_t priority; /* 0 to 15 */
};

void node_info_decode(const uint8_t data[SMP_DATA_SIZE], struct node_info *ret);
void switch_info_decode(const uint8_t data[SMP_DATA_SIZE], struct switch_info *ret);
void port_info_decode(const uint8_t data[SMP_DATA_SIZE], struct port_info *ret);
void port_protection_decode(const uint8_t data[SMP_DATA_SIZE], struct port_protection *ret);
/* An unknown state becomes SM_NOT_ACTIVE. */
void sm_info_decode(const uint8_t data[SMP_DATA_SIZE], struct sm_info *ret);
/* "not active", "discovering", "standby", "master"; a static string. */
const char *sm_state_to_string(enum sm_state s);

/* Turns a PortInfo that was read into one that sets only PartitionEnforcementInbound/Outbound: every other component stays as read,
 * and components that are commands (PortState, PortPhysicalState, LinkDownDefaultState, ClientReregister, the enabled widths and
 * speeds) are set to "no change". */
void port_info_set_enforcement(uint8_t data[SMP_DATA_SIZE], bool inbound, bool outbound);
