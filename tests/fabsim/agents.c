/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agents of a node: SMA and PMA, from bytes to bytes (the SA: sa.c). */

#include <infiniband/mad.h>
#include <string.h>

#include "fabric.h"

#define STATUS_BAD_ATTRIBUTE 0x0c
#define STATUS_BAD_MODIFIER  0x1c
#define METHOD_GET           1
#define METHOD_SET           2
#define PMA_CLASS            4
#define PMA_CLASS_PORT_INFO  0x01
#define PMA_PORT_COUNTERS    0x12
#define PMA_PORT_COUNTERS_EXTENDED 0x1d
#define PMA_DATA             64

struct question {
        struct fabsim *f;
        struct fabsim_place at;
        uint8_t entry; /* the port that a directed route came in by; 0: none, or a LID-routed SMP to a switch */
        struct fabsim_node *node;
        usec_t now;
        unsigned method;
        uint32_t modifier;
        uint8_t *data; /* in the answer: as it came, to be replaced */
};

static unsigned get_node_info(struct question *q)
{
        const struct fabsim_node *n = q->node;

        memset(q->data, 0, SMP_DATA_SIZE);
        mad_set_field(q->data, 0, IB_NODE_BASE_VERS_F, 1);
        mad_set_field(q->data, 0, IB_NODE_CLASS_VERS_F, 1);
        mad_set_field(q->data, 0, IB_NODE_TYPE_F, n->type);
        mad_set_field(q->data, 0, IB_NODE_NPORTS_F, n->num_ports);
        mad_set_field64(q->data, 0, IB_NODE_SYSTEM_GUID_F, n->guid.v);
        mad_set_field64(q->data, 0, IB_NODE_GUID_F, n->guid.v);
        mad_set_field64(q->data, 0, IB_NODE_PORT_GUID_F, n->ports[q->at.port].guid.v);
        mad_set_field(q->data, 0, IB_NODE_PARTITION_CAP_F, n->partition_cap);
        mad_set_field(q->data, 0, IB_NODE_LOCAL_PORT_F, q->entry);
        return 0;
}

static unsigned get_switch_info(struct question *q)
{
        const struct fabsim_node *n = q->node;

        if (n->type != NODE_SWITCH)
                return STATUS_BAD_ATTRIBUTE;
        memset(q->data, 0, SMP_DATA_SIZE);
        mad_set_field(q->data, 0, IB_SW_LINEAR_FDB_CAP_F, 0xc000);
        mad_set_field(q->data, 0, IB_SW_PARTITION_ENFORCE_CAP_F, n->partition_enforcement_cap);
        mad_set_field(q->data, 0, IB_SW_PARTITION_ENF_INB_F, n->inbound_cap);
        mad_set_field(q->data, 0, IB_SW_PARTITION_ENF_OUTB_F, n->outbound_cap);
        return 0;
}

/* A CA's own port may be called 0: "the port this came in by". */
static uint8_t port_number(const struct question *q)
{
        return (uint8_t) (q->node->type != NODE_SWITCH && q->modifier == 0 ? q->at.port : q->modifier);
}

static enum port_state state_of(struct fabsim *f, struct fabsim_place p)
{
        struct fabsim_place ignored;

        if (p.port == 0)
                return PORT_STATE_ACTIVE;
        return fabsim_peer(f, p, &ignored) ? PORT_STATE_ACTIVE : PORT_STATE_DOWN;
}

static bool enforces(const struct question *q, uint8_t number)
{
        return q->node->type == NODE_SWITCH && number > 0;
}

/* IBA 1.5, 14.2.5.6. What is not modelled is as an idle HDR port has it. */
static void fill_port_info(struct question *q, uint8_t number, bool show_m_key)
{
        struct fabsim_node *n = q->node;
        struct fabsim_port *p = &n->ports[number], *base = n->type == NODE_SWITCH ? &n->ports[0] : p;
        bool up = state_of(q->f, (struct fabsim_place) { q->at.node, number }) == PORT_STATE_ACTIVE;

        memset(q->data, 0, SMP_DATA_SIZE);
        mad_set_field64(q->data, 0, IB_PORT_GID_PREFIX_F, UINT64_C(0xfe80000000000000));
        if (fabsim_is_endport(q->f, (struct fabsim_place) { q->at.node, number })) {
                mad_set_field64(q->data, 0, IB_PORT_MKEY_F, show_m_key ? p->m_key : 0);
                mad_set_field(q->data, 0, IB_PORT_MKEY_LEASE_F, p->m_key_lease);
                mad_set_field(q->data, 0, IB_PORT_MKEY_PROT_BITS_F, p->m_key_protection);
                mad_set_field(q->data, 0, IB_PORT_MKEY_VIOL_F, p->m_key_violations);
                mad_set_field(q->data, 0, IB_PORT_PKEY_VIOL_F, p->p_key_violations);
                mad_set_field(q->data, 0, IB_PORT_LID_F, base->lid.v);
                mad_set_field(q->data, 0, IB_PORT_SMLID_F, base->sm_lid.v ? base->sm_lid.v : fabsim_port_at(q->f, q->f->sm)->lid.v);
                mad_set_field(q->data, 0, IB_PORT_LMC_F, base->lmc);
                if (q->f->sm_runs && q->at.node == q->f->sm.node && number == q->f->sm.port)
                        mad_set_field(q->data, 0, IB_PORT_CAPMASK_F, 1 << 1); /* IsSM */
        }
        mad_set_field(q->data, 0, IB_PORT_LOCAL_PORT_F, q->at.port);
        mad_set_field(q->data, 0, IB_PORT_LINK_WIDTH_ENABLED_F, 3);
        mad_set_field(q->data, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, 3);
        mad_set_field(q->data, 0, IB_PORT_LINK_WIDTH_ACTIVE_F, 2);
        mad_set_field(q->data, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, 7);
        mad_set_field(q->data, 0, IB_PORT_LINK_SPEED_ENABLED_F, 7);
        mad_set_field(q->data, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
        mad_set_field(q->data, 0, IB_PORT_STATE_F, up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN);
        mad_set_field(q->data, 0, IB_PORT_PHYS_STATE_F, up ? 5 : 2);
        mad_set_field(q->data, 0, IB_PORT_LINK_DOWN_DEF_F, 2);
        if (enforces(q, number)) {
                mad_set_field(q->data, 0, IB_PORT_PART_EN_INB_F, p->enforce_inbound);
                mad_set_field(q->data, 0, IB_PORT_PART_EN_OUTB_F, p->enforce_outbound);
        }
}

static unsigned set_port_info(struct question *q, uint8_t number)
{
        struct fabsim_port *p = &q->node->ports[number];

        if (enforces(q, number)) {
                p->enforce_inbound = q->node->inbound_cap && mad_get_field(q->data, 0, IB_PORT_PART_EN_INB_F);
                p->enforce_outbound = q->node->outbound_cap && mad_get_field(q->data, 0, IB_PORT_PART_EN_OUTB_F);
        } else {
                p->m_key = mad_get_field64(q->data, 0, IB_PORT_MKEY_F);
                p->m_key_lease = (uint16_t) mad_get_field(q->data, 0, IB_PORT_MKEY_LEASE_F);
                p->m_key_protection = (uint8_t) mad_get_field(q->data, 0, IB_PORT_MKEY_PROT_BITS_F);
                p->p_key_violations = (uint16_t) mad_get_field(q->data, 0, IB_PORT_PKEY_VIOL_F);
                p->lid.v = (uint16_t) mad_get_field(q->data, 0, IB_PORT_LID_F);
                p->lmc = (uint8_t) mad_get_field(q->data, 0, IB_PORT_LMC_F);
        }
        return 0;
}

/* m_key_given: the request has the M_Key, or there is none; then the answer may show it (14.2.4.1). */
static unsigned port_info(struct question *q, bool m_key_given)
{
        uint8_t number = port_number(q);

        if (q->modifier > q->node->num_ports || (q->node->type != NODE_SWITCH && number == 0))
                return STATUS_BAD_MODIFIER;
        if (q->method == METHOD_SET)
                (void) set_port_info(q, number);
        fill_port_info(q, number, m_key_given || q->node->ports[number].m_key_protection == 0);
        return 0;
}

struct fabsim_port *fabsim_table_at(struct fabsim *f, struct fabsim_place at, uint32_t modifier, uint16_t *ret_block)
{
        struct fabsim_node *n = &f->nodes[at.node];
        uint32_t number = n->type == NODE_SWITCH ? modifier >> 16 : at.port, block = modifier & 0xffff;
        struct fabsim_port *p;

        if (n->type == NODE_SWITCH ? number > n->num_ports : modifier >> 16 != 0)
                return NULL;
        p = &n->ports[number];
        if (block * P_KEY_BLOCK_ENTRIES >= p->capacity)
                return NULL;
        *ret_block = (uint16_t) block;
        return p;
}

static unsigned p_key_table(struct question *q)
{
        uint16_t block;
        struct fabsim_port *p = fabsim_table_at(q->f, q->at, q->modifier, &block);
        bool lies = false;

        if (!p)
                return STATUS_BAD_MODIFIER;
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                unsigned index = block * P_KEY_BLOCK_ENTRIES + i;
                uint8_t *bytes = q->data + 2 * i;
                uint16_t sent = (uint16_t) (bytes[0] << 8 | bytes[1]), there = 0;

                if (index < p->capacity) {
                        if (q->method == METHOD_SET && sent != 0 && sent == p->swallows.v)
                                lies = p->lies;
                        else if (q->method == METHOD_SET)
                                p->table[index].v = sent;
                        there = p->table[index].v;
                }
                if (!(lies && sent == p->swallows.v)) {
                        bytes[0] = (uint8_t) (there >> 8);
                        bytes[1] = (uint8_t) there;
                }
        }
        return 0;
}

/* --- M_Key (IBA 1.5, 14.2.4) ----------------------------------------------------------------------------------------- */

/* What a wrong M_Key does to a port, and when the port's lease ends. */
static void note_violation(struct fabsim_port *p, usec_t now)
{
        p->m_key_violations += p->m_key_violations < UINT16_MAX;
        if (p->m_key_lease && p->m_key_expires == 0)
                p->m_key_expires = now + p->m_key_lease * USEC_PER_SEC;
}

/* True if the request may be carried out. */
static bool check_m_key(struct question *q, uint64_t given, bool *ret_given)
{
        struct fabsim_port *p = &q->node->ports[q->node->type == NODE_SWITCH ? 0 : q->at.port];

        if (p->m_key_expires && q->now >= p->m_key_expires) {
                p->m_key_protection = 0;
                p->m_key_expires = 0;
        }
        *ret_given = p->m_key == 0 || given == p->m_key;
        if (*ret_given) {
                p->m_key_expires = 0;
                return true;
        }
        if (q->method == METHOD_GET && p->m_key_protection < 2)
                return true;
        note_violation(p, q->now);
        return false;
}

static bool answer_smp(struct question *q, uint64_t m_key, uint32_t attribute, unsigned *ret_status)
{
        enum fabsim_mute mute = q->node->ports[q->node->type == NODE_SWITCH ? 0 : q->at.port].mute;
        bool m_key_given;

        if (mute == FABSIM_MUTE || (mute == FABSIM_MUTE_P_KEYS && attribute == SMP_ATTR_P_KEY_TABLE) ||
            !check_m_key(q, m_key, &m_key_given))
                return false;
        if (q->method == METHOD_SET && attribute != SMP_ATTR_P_KEY_TABLE && attribute != SMP_ATTR_PORT_INFO)
                *ret_status = STATUS_BAD_ATTRIBUTE;
        else if (attribute == SMP_ATTR_NODE_INFO)
                *ret_status = get_node_info(q);
        else if (attribute == SMP_ATTR_NODE_DESCRIPTION)
                memcpy(q->data, q->node->description, NODE_DESCRIPTION_SIZE);
        else if (attribute == SMP_ATTR_SWITCH_INFO)
                *ret_status = get_switch_info(q);
        else if (attribute == SMP_ATTR_PORT_INFO)
                *ret_status = port_info(q, m_key_given);
        else if (attribute == SMP_ATTR_P_KEY_TABLE)
                *ret_status = p_key_table(q);
        else
                *ret_status = STATUS_BAD_ATTRIBUTE;
        return mute != FABSIM_MUTE_ANSWERS || attribute != SMP_ATTR_P_KEY_TABLE;
}

/* --- PMA ------------------------------------------------------------------------------------------------------------- */

/* Bits of CounterSelect in PortCounters (IBA 1.5, 16.1.3.5), the same in CounterSelect2 of PortCountersExtended. */
#define SELECT_XMIT_CONSTRAINT (1 << 7)
#define SELECT_RCV_CONSTRAINT  (1 << 8)

/* IBA 1.5, 16.1.3.1: there are always 64-bit counters of data (CapabilityMask, bit 9), of errors only where
 * CapabilityMask2 (bit 1) indicates this. */
static unsigned pma_class_port_info(const struct question *q)
{
        if (q->node->has_no_class_port_info || q->method != METHOD_GET)
                return STATUS_BAD_ATTRIBUTE;
        memset(q->data, 0, MAD_SIZE - PMA_DATA);
        mad_set_field(q->data, 0, IB_CPI_BASEVER_F, 1);
        mad_set_field(q->data, 0, IB_CPI_CLASSVER_F, 1);
        mad_set_field(q->data, 0, IB_CPI_CAPMASK_F, 1 << 9);
        mad_set_field(q->data, 0, IB_CPI_CAPMASK2_F, q->node->has_wide_errors ? 1 << 1 : 0);
        return 0;
}

static void port_counters(const struct question *q, struct fabsim_port *p)
{
        uint64_t rcv, xmit;

        if (q->method == METHOD_SET) {
                unsigned select = mad_get_field(q->data, 0, IB_PC_COUNTER_SELECT_F);

                if (select & SELECT_XMIT_CONSTRAINT)
                        p->xmit_constraint_errors = mad_get_field(q->data, 0, IB_PC_ERR_XMTCONSTR_F);
                if (select & SELECT_RCV_CONSTRAINT)
                        p->rcv_constraint_errors = mad_get_field(q->data, 0, IB_PC_ERR_RCVCONSTR_F);
        }
        rcv = p->rcv_constraint_errors;
        xmit = p->xmit_constraint_errors;
        mad_set_field(q->data, 0, IB_PC_ERR_XMTCONSTR_F, xmit < 0xff ? (uint32_t) xmit : 0xff);
        mad_set_field(q->data, 0, IB_PC_ERR_RCVCONSTR_F, rcv < 0xff ? (uint32_t) rcv : 0xff);
}

/* Counters that do not exist are 0. */
static void port_counters_extended(const struct question *q, struct fabsim_port *p)
{
        bool wide = q->node->has_wide_errors;

        if (q->method == METHOD_SET && wide) {
                unsigned select = mad_get_field(q->data, 0, IB_PC_EXT_COUNTER_SELECT2_F);

                if (select & SELECT_XMIT_CONSTRAINT)
                        p->xmit_constraint_errors = mad_get_field64(q->data, 0, IB_PC_EXT_ERR_XMTCONSTR_F);
                if (select & SELECT_RCV_CONSTRAINT)
                        p->rcv_constraint_errors = mad_get_field64(q->data, 0, IB_PC_EXT_ERR_RCVCONSTR_F);
        }
        mad_set_field64(q->data, 0, IB_PC_EXT_ERR_XMTCONSTR_F, wide ? p->xmit_constraint_errors : 0);
        mad_set_field64(q->data, 0, IB_PC_EXT_ERR_RCVCONSTR_F, wide ? p->rcv_constraint_errors : 0);
}

static unsigned answer_pma(struct question *q, uint32_t attribute)
{
        unsigned number;

        if (attribute == PMA_CLASS_PORT_INFO)
                return pma_class_port_info(q);
        if (attribute != PMA_PORT_COUNTERS && attribute != PMA_PORT_COUNTERS_EXTENDED)
                return STATUS_BAD_ATTRIBUTE;
        number = mad_get_field(q->data, 0, IB_PC_PORT_SELECT_F);
        if (q->node->type == NODE_SWITCH ? number > q->node->num_ports : number != q->at.port)
                return STATUS_BAD_MODIFIER;
        if (attribute == PMA_PORT_COUNTERS)
                port_counters(q, &q->node->ports[number]);
        else
                port_counters_extended(q, &q->node->ports[number]);
        return 0;
}

/* --- frames ---------------------------------------------------------------------------------------------------------- */

/* The ports that a directed route came in by, hop by hop; returns the last of them. */
static uint8_t find_way_back(const struct fabsim *f, const uint8_t *mad, uint8_t back[MAD_MAX_HOPS + 1])
{
        unsigned hops = mad_get_field((void *) mad, 0, IB_DRSMP_HOPCNT_F);
        uint8_t path[MAD_MAX_HOPS + 1];
        struct fabsim_place at = f->self;

        mad_get_array((void *) mad, 0, IB_DRSMP_PATH_F, path);
        for (unsigned i = 1; i <= hops; i++) {
                if (!fabsim_peer(f, (struct fabsim_place) { at.node, path[i] }, &at))
                        break;
                back[i] = at.port;
        }
        return at.port;
}

/* A directed route's way back: the ports it came in by, the pointer at its end (14.2.2). */
static void turn_round(uint8_t *mad, uint8_t back[MAD_MAX_HOPS + 1])
{
        mad_set_array(mad, 0, IB_DRSMP_RPATH_F, back);
        mad_set_field(mad, 0, IB_DRSMP_HOPPTR_F, 0);
        mad_set_field(mad, 0, IB_DRSMP_DIRECTION_F, 1);
}

bool fabsim_answer(struct fabsim *f, usec_t now, struct fabsim_place at, const struct mad_frame *frame,
                   struct mad_frame *ret)
{
        uint8_t *mad = ret->mad, back[MAD_MAX_HOPS + 1] = {};
        unsigned class, status = 0;
        bool directed, answered;
        struct question q = { .f = f, .at = at, .entry = at.port, .node = &f->nodes[at.node], .now = now };

        if (!q.node->is_up || frame->length < MAD_SIZE)
                return false;
        *ret = *frame;
        class = mad_get_field(mad, 0, IB_MAD_MGMTCLASS_F);
        directed = class == IB_SMI_DIRECT_CLASS;
        if (directed)
                q.entry = find_way_back(f, mad, back);
        if (class == IB_SA_CLASS)
                return at.node == f->sm.node && at.port == f->sm.port && fabsim_sa_answer(f, frame, ret);
        q.method = mad_get_field(mad, 0, IB_MAD_METHOD_F);
        q.modifier = mad_get_field(mad, 0, IB_MAD_ATTRMOD_F);
        q.data = mad + (class == PMA_CLASS ? PMA_DATA : IB_SMP_DATA_OFFS);
        if (q.method != METHOD_GET && q.method != METHOD_SET)
                return false; /* not a request: a response, a trap */
        if (class == IB_SMI_CLASS || directed)
                answered = answer_smp(&q, mad_get_field64(mad, 0, IB_MAD_MKEY_F), mad_get_field(mad, 0, IB_MAD_ATTRID_F),
                                      &status);
        else
                answered = class == PMA_CLASS;
        if (class == PMA_CLASS)
                status = answer_pma(&q, mad_get_field(mad, 0, IB_MAD_ATTRID_F));
        if (!answered)
                return false;
        mad_set_field(mad, 0, IB_MAD_METHOD_F, METHOD_GET);
        mad_set_field(mad, 0, IB_MAD_RESPONSE_F, 1);
        if (directed) {
                mad_set_field(mad, 0, IB_DRSMP_STATUS_F, status);
                turn_round(mad, back);
        } else {
                mad_set_field(mad, 0, IB_MAD_STATUS_F, status);
        }
        return true;
}
