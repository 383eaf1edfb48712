/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/mad.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ib/field.h"
#include "util/macros.h"

#define MAD_BASE_VERSION      1
#define PERMISSIVE_LID        0xffff
#define DR_STATUS_MASK        0x7fff /* IBA 1.5, 14.2.1.2: the high bit of Status is the direction */

static_assert(IB_MAD_SIZE == MAD_SIZE && IB_SA_DATA_SIZE == MAD_DATA_SIZE, "libibmad has the same sizes of a MAD");
static_assert(IB_SUBNET_PATH_HOPS_MAX == MAD_MAX_HOPS + 1, "a directed route fits");

/* How the classes differ in a MAD. */
static const struct {
        uint8_t number, version;
        uint8_t data_offset, data_size;
} classes[MAD_N_CLASSES] = {
        [MAD_CLASS_SMP] = { IB_SMI_CLASS, 1, IB_SMP_DATA_OFFS, IB_SMP_DATA_SIZE },
        [MAD_CLASS_PMA] = { IB_PERFORMANCE_CLASS, 1, IB_PC_DATA_OFFS, IB_PC_DATA_SZ },
        [MAD_CLASS_SA] = { IB_SA_CLASS, 2, IB_SA_DATA_OFFS, IB_SA_DATA_SIZE },
};

static uint32_t method(const uint8_t *mad)
{
        return field(mad, IB_MAD_METHOD_F) | field(mad, IB_MAD_RESPONSE_F) << 7;
}

static int class_on_wire(enum mad_class c, bool directed)
{
        return directed ? IB_SMI_DIRECT_CLASS : classes[c].number;
}

static bool is_directed(const struct mad_request *request)
{
        return request->mgmt_class == MAD_CLASS_SMP && mad_route_is_directed(&request->route);
}

void mad_request_encode(const struct mad_request *request, uint32_t tid, struct mad_frame *ret)
{
        const struct mad_route *route = &request->route;
        bool directed = is_directed(request);
        ib_dr_path_t path = {};
        ib_rpc_t rpc = {
                .mgtclass = class_on_wire(request->mgmt_class, directed),
                .method = (int) request->method,
                .attr = { .id = request->attribute, .mod = request->modifier },
                .dataoffs = classes[request->mgmt_class].data_offset,
                .datasz = classes[request->mgmt_class].data_size,
                .mkey = request->mgmt_class == MAD_CLASS_SMP ? request->key : 0,
                .mask = request->component_mask,
                .trid = 1, /* for 0, libibmad would generate a number from a clock */
        };

        memset(ret, 0, sizeof(*ret));
        if (directed) {
                path.cnt = route->hops <= MAD_MAX_HOPS ? route->hops : MAD_MAX_HOPS;
                memcpy(path.p, route->path, sizeof(path.p));
        }
        (void) mad_encode(ret->mad, &rpc, &path, (void *) request->data);
        if (request->mgmt_class == MAD_CLASS_SA)
                mad_set_field64(ret->mad, 0, IB_SA_MKEY_F, request->key);
        mad_set_field64(ret->mad, 0, IB_MAD_TRID_F, tid);

        ret->length = MAD_SIZE;
        ret->mgmt_class = request->mgmt_class;
        ret->directed = directed;
        ret->lid.v = directed ? PERMISSIVE_LID : route->lid.v;
        ret->sl = route->sl;
}

static enum mad_class class_of(const uint8_t *mad, bool *ret_directed)
{
        uint32_t number = field(mad, IB_MAD_MGMTCLASS_F);
        enum mad_class c = MAD_CLASS_SMP;

        *ret_directed = number == IB_SMI_DIRECT_CLASS;
        while (!*ret_directed && c < MAD_N_CLASSES && (uint32_t) classes[c].number != number)
                c++;
        return c;
}

void mad_frame_decode(const struct mad_frame *frame, struct mad_request *ret)
{
        const uint8_t *mad = frame->mad;
        bool directed;

        *ret = (struct mad_request) {
                .mgmt_class = class_of(mad, &directed), .method = (enum mad_method) method(mad),
                .attribute = (uint16_t) field(mad, IB_MAD_ATTRID_F), .modifier = field(mad, IB_MAD_ATTRMOD_F),
        };
        if (directed) {
                ret->route.hops = (uint8_t) field(mad, IB_DRSMP_HOPCNT_F);
                mad_get_array((void *) mad, 0, IB_DRSMP_PATH_F, ret->route.path);
        } else {
                ret->route.lid = frame->lid;
        }
        if (ret->mgmt_class == MAD_CLASS_SMP)
                ret->key = field64(mad, IB_MAD_MKEY_F);
        if (ret->mgmt_class < MAD_N_CLASSES)
                mad_frame_get_data(frame, ret->mgmt_class, ret->data);
}

uint32_t mad_frame_tid(const struct mad_frame *frame)
{
        return (uint32_t) field64(frame->mad, IB_MAD_TRID_F);
}

static bool is_of_class(const uint8_t *mad, enum mad_class c, bool directed)
{
        return field(mad, IB_MAD_BASEVER_F) == MAD_BASE_VERSION && field(mad, IB_MAD_CLASSVER_F) == classes[c].version &&
               field(mad, IB_MAD_MGMTCLASS_F) == (uint32_t) class_on_wire(c, directed);
}

int mad_check_response(const struct mad_request *request, const struct mad_frame *frame, uint16_t *ret_status)
{
        bool directed = is_directed(request);
        const uint8_t *mad = frame->mad;
        uint16_t status;

        /* 1. All MADs have one size. */
        if (frame->length < MAD_SIZE)
                return -EMSGSIZE;

        /* 2. A known version, the class of the request, and a response. */
        if (!is_of_class(mad, request->mgmt_class, directed) || method(mad) != MAD_GET_RESP)
                return -EPROTO;

        /* 3. To this request. */
        if (field(mad, IB_MAD_ATTRID_F) != request->attribute || field(mad, IB_MAD_ATTRMOD_F) != request->modifier)
                return -EBADMSG;

        /* 4. From the port that it was sent to: the answer to a base LID comes from that LID, whatever the LMC is. The kernel does
         * not compare them. */
        if (!directed && frame->lid.v != request->route.lid.v)
                return -EBADMSG;

        status = (uint16_t) field(mad, IB_MAD_STATUS_F);
        *ret_status = directed ? status & DR_STATUS_MASK : status;
        return 0;
}

void mad_frame_get_data(const struct mad_frame *frame, enum mad_class mgmt_class, uint8_t ret[MAD_DATA_SIZE])
{
        memset(ret, 0, MAD_DATA_SIZE);
        memcpy(ret, frame->mad + classes[mgmt_class].data_offset, classes[mgmt_class].data_size);
}

bool mad_frame_is_report(const struct mad_frame *frame)
{
        return frame->length >= MAD_SIZE && is_of_class(frame->mad, MAD_CLASS_SA, false) &&
               method(frame->mad) == MAD_REPORT && field(frame->mad, IB_MAD_ATTRID_F) == IB_SA_ATTR_NOTICE;
}

void mad_frame_make_report_response(const struct mad_frame *report, struct mad_frame *ret)
{
        *ret = *report;
        mad_set_field(ret->mad, 0, IB_MAD_RESPONSE_F, 1);
        mad_set_field(ret->mad, 0, IB_MAD_STATUS_F, 0);
        ret->mgmt_class = MAD_CLASS_SA;
        ret->directed = false;
        ret->length = MAD_SIZE;
        ret->timeout = 0;
}

const char *mad_status_to_string(uint16_t status)
{
        /* Bits 2-4 are one code, the lower two are flags, the upper ones belong to the class. */
        static const char *const codes[] = {
                [1] = "bad version or class", [2] = "method not supported", [3] = "method or attribute not supported",
                [7] = "invalid attribute or modifier",
        };
        unsigned code = MAD_STATUS_CODE(status);

        if (code)
                return WORD(codes, code, "reserved status code");
        if (mad_status_is_busy(status))
                return "busy";
        if (mad_status_is_redirect(status))
                return "redirect";
        return status == 0 ? "ok" : "class specific status";
}

DEFINE_WORDS(mad_outcome_to_string, enum mad_outcome, "unknown",
             [MAD_ANSWERED] = "answered", [MAD_TIMED_OUT] = "timeout", [MAD_REFUSED] = "status", [MAD_BUSY] = "busy",
             [MAD_UNSENT] = "unsent")
