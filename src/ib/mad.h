/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * MADs: one request, one answer, for every management class.
 *
 * Subnet management packets (SMPs, to the SMA of a port) go to QP 0, by LID or by a directed route; performance management and
 * subnet administration go to QP 1, by LID. This file knows only how the classes differ in a MAD: the class, its version, where
 * its data is, and which key it carries. The attributes are in smp.h (P_KeyTable, PortInfo, ...), pma.h (counters) and sa.h
 * (InformInfo, Notice).
 *
 * libibmad defines the layout of every field (mad_encode, mad_set_field, mad_get_field).
 */

#include "ib/types.h"

#define MAD_SIZE      256
#define MAD_DATA_SIZE 200 /* the most of all classes: SA */
#define MAD_MAX_HOPS  63

/* The management class of a MAD; SMP is 0, so that a zeroed request is one. */
enum mad_class {
        MAD_CLASS_SMP, /* 64 bytes of data */
        MAD_CLASS_PMA, /* 192 */
        MAD_CLASS_SA,  /* 200 */
        MAD_N_CLASSES,
};

enum mad_method {
        MAD_GET = 0x01,
        MAD_SET = 0x02,
        MAD_REPORT = 0x06,      /* from the SA, unsolicited */
        MAD_GET_RESP = 0x81,
        MAD_REPORT_RESP = 0x86,
};

/* The route of a MAD. LID-routed if the port has a LID (lid.v != 0, hops ignored), else the directed route: `hops` exits, path[1]
 * the local port, path[0] unused, as in libibmad's ib_dr_path_t. */
struct mad_route {
        struct lid lid;
        uint8_t sl; /* of SA MADs: PortInfo:MasterSMSL; SMPs have none */
        uint8_t hops;
        uint8_t path[MAD_MAX_HOPS + 1];
};

static inline bool mad_route_is_directed(const struct mad_route *r)
{
        return r->lid.v == 0;
}

struct mad_request {
        enum mad_class mgmt_class;
        struct mad_route route;
        uint32_t destination;    /* stands for the SMA that answers: any number that is the same for the same SMA. At most one
                                  * request to a destination is in flight */
        uint64_t cookie;         /* comes back with the result */
        enum mad_method method;
        uint16_t attribute;
        uint32_t modifier;
        uint64_t key;            /* the M_Key of an SMP, the SM_Key of an SA MAD; otherwise 0 */
        uint64_t component_mask; /* SA only */
        usec_t send_before;      /* by the clock of `now`; a request that is not sent by then is never sent. 0: no limit */
        uint8_t lane;            /* comes back with the result, as the cookie does; only mad_engine_give_up() uses it */
        uint8_t retries;         /* how often the engine may send it again. 0: the caller decides what a loss means (a write that
                                  * rests on a read) */
        bool doubtful;           /* the destination did not answer the last time either: a loss does not narrow the window */
        uint8_t data[MAD_DATA_SIZE]; /* network byte order, as in the MAD; as much of it as the class has */
};

/* How a request ended. */
enum mad_outcome {
        MAD_ANSWERED,   /* status 0, data valid */
        MAD_TIMED_OUT,  /* no answer after all retries */
        MAD_REFUSED,    /* answered with a MAD status other than 0 and other than busy */
        MAD_BUSY,       /* still busy after all retries */
        MAD_UNSENT,     /* never sent: this host could not send it, or its send_before had passed */
};

struct mad_result {
        uint64_t cookie;
        uint8_t lane;
        enum mad_class mgmt_class;   /* of the request, as the three fields below */
        uint16_t attribute;
        uint32_t modifier;
        struct mad_route route;
        enum mad_outcome outcome;
        uint16_t mad_status; /* of MAD_REFUSED: the Status field */
        bool repeated;       /* it was sent more than once, or not answered within the time of its first try */
        uint8_t timeouts;    /* tries without an answer in time */
        uint8_t data[MAD_DATA_SIZE];
};

/* True if the first try was answered in time. A late or missing answer takes many seconds, and meanwhile another port may have got
 * the LID. */
static inline bool mad_result_is_prompt(const struct mad_result *r)
{
        return (r->outcome == MAD_ANSWERED || r->outcome == MAD_REFUSED) && !r->repeated;
}

/* A MAD as it is sent or received. */
struct mad_frame {
        uint8_t mad[MAD_SIZE];
        size_t length;          /* valid bytes in mad, at most MAD_SIZE; a received frame may be shorter */
        struct lid lid;         /* to send: the destination, 0xffff for a directed route; received: the source */
        uint8_t sl;             /* the service level, as for lid */
        bool directed;          /* an SMP by a directed route: class 0x81 instead of 0x01 */
        enum mad_class mgmt_class;
        usec_t timeout;         /* to send: how long to wait for an answer; 0: none is expected */
};

/* Encodes `request` with transaction ID `tid`. pkeyd uses only the low 32 bits of a TID: the kernel (and ibsim) use the others. */
void mad_request_encode(const struct mad_request *request, uint32_t tid, struct mad_frame *ret);

/* Decodes the request in a frame (MAD_SIZE bytes, to send): class, route, method, attribute, modifier, key, data. What a MAD does
 * not have stays 0. An unknown class is MAD_N_CLASSES. */
void mad_frame_decode(const struct mad_frame *frame, struct mad_request *ret);

/* The low 32 bits of the transaction ID. The frame must hold at least 24 bytes (MAD header). */
uint32_t mad_frame_tid(const struct mad_frame *frame);

/* Checks whether a frame is an answer to this request. Returns 0, or -EMSGSIZE (short), -EPROTO (base version, class, or not a
 * GetResp), -EBADMSG (attribute or modifier differ, or, for a LID-routed request, another LID answered). *ret_status is the MAD
 * status without the direction bit; set only on success. */
int mad_check_response(const struct mad_request *request, const struct mad_frame *frame, uint16_t *ret_status);

/* Copies the data of the attribute from a frame of MAD_SIZE bytes and of that class; what the class does not have is 0. */
void mad_frame_get_data(const struct mad_frame *frame, enum mad_class mgmt_class, uint8_t ret[MAD_DATA_SIZE]);

/* True if the frame is a Report of an SA: complete, and of that class and method. */
bool mad_frame_is_report(const struct mad_frame *frame);

/* Makes the ReportResp that confirms a Report to the SA (IBA 1.5, 13.4.8.3, 15.4.3): the same MAD, back to its sender, with the
 * method of an answer and status 0. */
void mad_frame_make_report_response(const struct mad_frame *report, struct mad_frame *ret);

/* MAD status bit 0: busy, try again later. */
static inline bool mad_status_is_busy(uint16_t status)
{
        return status & 1;
}

/* MAD status bit 1: redirect, requests of this class go to the address in ClassPortInfo. */
static inline bool mad_status_is_redirect(uint16_t status)
{
        return status & 2;
}

#define MAD_STATUS_CODE(status) ((status) >> 2 & 7) /* IBA 1.5, 13.4.7 */

/* MAD status code 7, invalid attribute or modifier. A switch answers with it for a port that does not exist. */
static inline bool mad_status_is_invalid_attribute(uint16_t status)
{
        return MAD_STATUS_CODE(status) == 7;
}

/* The meaning of a MAD status ("invalid attribute or modifier", ...); a static string. */
const char *mad_status_to_string(uint16_t status);
/* "answered", "timeout", "status", "busy" or "unsent"; a static string. */
const char *mad_outcome_to_string(enum mad_outcome o);
