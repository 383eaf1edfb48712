/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/smp.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mad.h>
#include <string.h>

#define MAD_BASE_VERSION      1
#define SMP_CLASS_VERSION     1
#define MAD_STATUS_CODE_MASK  0x1c
#define MAD_STATUS_REDIRECT   0x02
#define PERMISSIVE_LID        0xffff
#define DR_STATUS_MASK        0x7fff /* IBA 1.5, 14.2.1.2: the high bit of Status is the direction */

static_assert(IB_SMP_DATA_SIZE == SMP_DATA_SIZE && IB_MAD_SIZE == MAD_SIZE, "libibmad and we speak of the same MAD");
static_assert(IB_SUBNET_PATH_HOPS_MAX == SMP_MAX_HOPS + 1, "a directed route fits");

/* libibmad reads through pointers that are not const. */
static uint32_t field(const uint8_t *bytes, enum MAD_FIELDS f)
{
        return mad_get_field((void *) bytes, 0, f);
}

static uint64_t field64(const uint8_t *bytes, enum MAD_FIELDS f)
{
        return mad_get_field64((void *) bytes, 0, f);
}

void smp_encode(const struct smp_request *request, uint32_t tid, struct mad_frame *ret)
{
        const struct smp_route *route = &request->route;
        bool directed = smp_route_is_directed(route);
        ib_dr_path_t path = {};
        ib_rpc_t rpc = {
                .mgtclass = directed ? IB_SMI_DIRECT_CLASS : IB_SMI_CLASS,
                .method = (int) request->method,
                .attr = { .id = request->attribute, .mod = request->modifier },
                .dataoffs = IB_SMP_DATA_OFFS,
                .datasz = IB_SMP_DATA_SIZE,
                .mkey = request->m_key,
                .trid = 1, /* for 0, libibmad would take a number of its own from a clock */
        };

        memset(ret, 0, sizeof(*ret));
        if (directed) {
                path.cnt = route->hops <= SMP_MAX_HOPS ? route->hops : SMP_MAX_HOPS;
                memcpy(path.p, route->path, sizeof(path.p));
        }
        (void) mad_encode(ret->mad, &rpc, &path, (void *) request->data);
        mad_set_field64(ret->mad, 0, IB_MAD_TRID_F, tid);

        ret->length = MAD_SIZE;
        ret->directed = directed;
        ret->dlid.v = directed ? PERMISSIVE_LID : route->lid.v;
}

uint32_t mad_frame_tid(const struct mad_frame *frame)
{
        return (uint32_t) field64(frame->mad, IB_MAD_TRID_F);
}

int smp_check_response(const struct smp_request *request, const struct mad_frame *frame, uint16_t *ret_status)
{
        bool directed = smp_route_is_directed(&request->route);
        const uint8_t *mad = frame->mad;
        uint16_t status;

        /* 1. An SMP has one size only. */
        if (frame->length < MAD_SIZE)
                return -EMSGSIZE;

        /* 2. A version that we know, the class we asked in, and an answer. */
        if (field(mad, IB_MAD_BASEVER_F) != MAD_BASE_VERSION || field(mad, IB_MAD_CLASSVER_F) != SMP_CLASS_VERSION)
                return -EPROTO;
        if (field(mad, IB_MAD_MGMTCLASS_F) != (directed ? IB_SMI_DIRECT_CLASS : IB_SMI_CLASS))
                return -EPROTO;
        if ((field(mad, IB_MAD_METHOD_F) | field(mad, IB_MAD_RESPONSE_F) << 7) != SMP_GET_RESP)
                return -EPROTO;

        /* 3. To this very question. */
        if (field(mad, IB_MAD_ATTRID_F) != request->attribute || field(mad, IB_MAD_ATTRMOD_F) != request->modifier)
                return -EBADMSG;

        status = (uint16_t) field(mad, IB_MAD_STATUS_F);
        *ret_status = directed ? status & DR_STATUS_MASK : status;
        return 0;
}

void smp_get_data(const struct mad_frame *frame, uint8_t ret[SMP_DATA_SIZE])
{
        memcpy(ret, frame->mad + IB_SMP_DATA_OFFS, SMP_DATA_SIZE);
}

const char *mad_status_to_string(uint16_t status)
{
        /* IBA 1.5, 13.4.7: bits 2-4 are one code, the lower two are flags, the upper ones belong to the class. */
        switch (status & MAD_STATUS_CODE_MASK) {
        case 0x04:
                return "bad version or class";
        case 0x08:
                return "method not supported";
        case 0x0c:
                return "method or attribute not supported";
        case 0x1c:
                return "invalid attribute or modifier";
        case 0:
                break;
        default: /* a number from the wire, not an enum: two codes are reserved */
                return "reserved status code";
        }
        if (mad_status_is_busy(status))
                return "busy";
        if (status & MAD_STATUS_REDIRECT)
                return "redirect";
        return status == 0 ? "ok" : "class specific status";
}

const char *smp_outcome_to_string(enum smp_outcome o)
{
        switch (o) {
        case SMP_ANSWERED:
                return "answered";
        case SMP_TIMED_OUT:
                return "timeout";
        case SMP_REFUSED:
                return "status";
        case SMP_BUSY:
                return "busy";
        case SMP_UNSENT:
                return "unsent";
        }
        return "unknown";
}

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
                .lmc = (uint8_t) field(data, IB_PORT_LMC_F),
                .state = state <= PORT_STATE_ACTIVE ? (enum port_state) state : PORT_STATE_NONE,
                .enforce_inbound = field(data, IB_PORT_PART_EN_INB_F),
                .enforce_outbound = field(data, IB_PORT_PART_EN_OUTB_F),
                .p_key_violations = (uint16_t) field(data, IB_PORT_PKEY_VIOL_F),
        };
}

void port_info_set_enforcement(uint8_t data[SMP_DATA_SIZE], bool inbound, bool outbound)
{
        /* IBA 1.5, 14.2.5.6: 0 says "no change" in each of these, any other value is a command. */
        static const enum MAD_FIELDS commands[] = {
                IB_PORT_STATE_F,
                IB_PORT_PHYS_STATE_F,
                IB_PORT_LINK_DOWN_DEF_F,
                IB_PORT_LINK_WIDTH_ENABLED_F,
                IB_PORT_LINK_SPEED_ENABLED_F,
                IB_PORT_LINK_SPEED_EXT_ENABLED_F,
                IB_PORT_CLIENT_REREG_F,
        };

        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
                mad_set_field(data, 0, commands[i], 0);
        mad_set_field(data, 0, IB_PORT_PART_EN_INB_F, inbound);
        mad_set_field(data, 0, IB_PORT_PART_EN_OUTB_F, outbound);
}
