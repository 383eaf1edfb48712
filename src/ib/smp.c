/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/smp.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "ib/field.h"
#include "util/macros.h"

#define CAPABILITY_IS_SM (1u << 1) /* IBA 1.5, 14.2.5.6 */
#define PHYSICAL_STATE_LINK_UP 5 /* IBA 1.5, 14.2.5.6 */

static_assert(IB_SMP_DATA_SIZE == SMP_DATA_SIZE, "libibmad has the same size of an SMP");

uint32_t p_key_table_modifier(uint8_t switch_port, uint16_t block)
{
        return (uint32_t) switch_port << 16 | block;
}

void p_key_block_decode(const uint8_t data[SMP_DATA_SIZE], struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        for (size_t i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                uint16_t be;

                memcpy(&be, data + i * sizeof(be), sizeof(be));
                ret[i].v = be16toh(be);
        }
}

void p_key_block_encode(const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint8_t ret[SMP_DATA_SIZE])
{
        for (size_t i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                uint16_t be = htobe16(entries[i].v);

                memcpy(ret + i * sizeof(be), &be, sizeof(be));
        }
}

void node_info_decode(const uint8_t data[SMP_DATA_SIZE], struct node_info *ret)
{
        *ret = (struct node_info) {
                .type = (enum node_type) field(data, IB_NODE_TYPE_F),
                .num_ports = (uint8_t) field(data, IB_NODE_NPORTS_F),
                .node_guid.v = field64(data, IB_NODE_GUID_F),
                .port_guid.v = field64(data, IB_NODE_PORT_GUID_F),
                .partition_cap = (uint16_t) field(data, IB_NODE_PARTITION_CAP_F),
                .local_port = (uint8_t) field(data, IB_NODE_LOCAL_PORT_F),
        };
}

void switch_info_decode(const uint8_t data[SMP_DATA_SIZE], struct switch_info *ret)
{
        *ret = (struct switch_info) {
                .partition_enforcement_cap = (uint16_t) field(data, IB_SW_PARTITION_ENFORCE_CAP_F),
                .inbound_enforcement_cap = field(data, IB_SW_PARTITION_ENF_INB_F),
                .outbound_enforcement_cap = field(data, IB_SW_PARTITION_ENF_OUTB_F),
        };
}

void port_info_decode(const uint8_t data[SMP_DATA_SIZE], struct port_info *ret)
{
        uint32_t state = field(data, IB_PORT_STATE_F);

        *ret = (struct port_info) {
                .lid.v = (uint16_t) field(data, IB_PORT_LID_F),
                .sm_lid.v = (uint16_t) field(data, IB_PORT_SMLID_F),
                .sm_sl = (uint8_t) field(data, IB_PORT_SMSL_F),
                .lmc = (uint8_t) field(data, IB_PORT_LMC_F),
                .state = state <= PORT_STATE_ACTIVE ? (enum port_state) state : PORT_STATE_NONE,
                .link_up = field(data, IB_PORT_PHYS_STATE_F) == PHYSICAL_STATE_LINK_UP,
                .is_sm = field(data, IB_PORT_CAPMASK_F) & CAPABILITY_IS_SM,
                .enforce_inbound = field(data, IB_PORT_PART_EN_INB_F),
                .enforce_outbound = field(data, IB_PORT_PART_EN_OUTB_F),
                .p_key_violations = (uint16_t) field(data, IB_PORT_PKEY_VIOL_F),
                .m_key_violations = (uint16_t) field(data, IB_PORT_MKEY_VIOL_F),
        };
}

void port_protection_decode(const uint8_t data[SMP_DATA_SIZE], struct port_protection *ret)
{
        *ret = (struct port_protection) {
                .m_key_is_shown = field64(data, IB_PORT_MKEY_F) != 0,
                .m_key_level = (uint8_t) field(data, IB_PORT_MKEY_PROT_BITS_F),
                .sm_sl = (uint8_t) field(data, IB_PORT_SMSL_F),
        };
}

void sm_info_decode(const uint8_t data[SMP_DATA_SIZE], struct sm_info *ret)
{
        uint32_t state = field(data, IB_SMINFO_STATE_F);

        *ret = (struct sm_info) {
                .port_guid.v = field64(data, IB_SMINFO_GUID_F),
                .state = state <= SM_MASTER ? (enum sm_state) state : SM_NOT_ACTIVE,
                .priority = (uint8_t) field(data, IB_SMINFO_PRIO_F),
        };
}

DEFINE_WORDS(sm_state_to_string, enum sm_state, "?",
             [SM_NOT_ACTIVE] = "not active", [SM_DISCOVERING] = "discovering", [SM_STANDBY] = "standby", [SM_MASTER] = "master")

void port_info_set_enforcement(uint8_t data[SMP_DATA_SIZE], bool inbound, bool outbound)
{
        /* IBA 1.5, 14.2.5.6: in each of these 0 means "no change", any other value is a command. */
        static const enum MAD_FIELDS commands[] = {
                IB_PORT_STATE_F,
                IB_PORT_PHYS_STATE_F,
                IB_PORT_LINK_DOWN_DEF_F,
                IB_PORT_LINK_WIDTH_ENABLED_F,
                IB_PORT_LINK_SPEED_ENABLED_F,
                IB_PORT_LINK_SPEED_EXT_ENABLED_F,
                IB_PORT_CLIENT_REREG_F,
        };

        for (size_t i = 0; i < ELEMENTS(commands); i++)
                mad_set_field(data, 0, commands[i], 0);
        mad_set_field(data, 0, IB_PORT_PART_EN_INB_F, inbound);
        mad_set_field(data, 0, IB_PORT_PART_EN_OUTB_F, outbound);
}
