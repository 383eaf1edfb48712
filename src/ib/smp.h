/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of subnet management that pkeyd reads and writes.
 *
 * The layout of every field is libibmad's; nothing here counts bits itself but the attribute modifiers of IBA 1.5, 14.2.5.7
 * (P_KeyTable: block in the low 16 bits, on a switch the port in the high 16) and 14.2.5.6 (PortInfo: port), and the
 * P_KeyTable block, which is nothing but 32 big-endian numbers.
 */

#include "ib/mad.h"

#define SMP_DATA_SIZE 64

enum smp_attribute {
        SMP_ATTR_NODE_DESCRIPTION = 0x10,
        SMP_ATTR_NODE_INFO = 0x11,
        SMP_ATTR_SWITCH_INFO = 0x12,
        SMP_ATTR_PORT_INFO = 0x15,
        SMP_ATTR_P_KEY_TABLE = 0x16,
};

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
        bool link_up; /* PortPhysicalState LinkUp */
        bool enforce_inbound, enforce_outbound;
        uint16_t p_key_violations, m_key_violations;
};

void node_info_decode(const uint8_t data[SMP_DATA_SIZE], struct node_info *ret);
void switch_info_decode(const uint8_t data[SMP_DATA_SIZE], struct switch_info *ret);
void port_info_decode(const uint8_t data[SMP_DATA_SIZE], struct port_info *ret);

/* Turns a PortInfo that was read into one that sets only PartitionEnforcementInbound/Outbound: every other component is
 * as read, and those that are commands (PortState, PortPhysicalState, LinkDownDefaultState, ClientReregister, the
 * enabled widths and speeds) say "no change". */
void port_info_set_enforcement(uint8_t data[SMP_DATA_SIZE], bool inbound, bool outbound);
