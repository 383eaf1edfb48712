/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/own_port.h"

#define MAX_RETRIES 2

/* A directed route without a hop ends where it begins; modifier 0 is the port that the question comes in through. */
static bool own_port_next(void *state, usec_t now, struct mad_request *ret)
{
        struct own_port *p = state;

        (void) now;
        if (p->asked)
                return false;
        p->asked = true;
        *ret = (struct mad_request) {
                .route = { .hops = 0 }, .method = MAD_GET, .attribute = SMP_ATTR_PORT_INFO, .key = p->m_key,
                .retries = MAX_RETRIES,
        };
        return true;
}

static void own_port_result(void *state, usec_t now, const struct mad_result *result)
{
        struct own_port *p = state;

        (void) now;
        p->outcome = result->outcome;
        if (p->outcome == MAD_ANSWERED)
                port_info_decode(result->data, &p->info);
        p->done = true;
}

static bool own_port_done(const void *state)
{
        const struct own_port *p = state;

        return p->done;
}

static void own_port_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        *ret_done = own_port_done(state);
        *ret_total = 1;
}

struct mad_stage own_port_stage(struct own_port *p, uint64_t m_key)
{
        *p = (struct own_port) { .m_key = m_key };
        return (struct mad_stage) {
                .state = p,
                .next = own_port_next,
                .result = own_port_result,
                .done = own_port_done,
                .progress = own_port_progress,
        };
}

const char *own_port_why_wait(const struct own_port *p)
{
        if (p->outcome != MAD_ANSWERED)
                return "it does not answer (if it has an M_Key, m_key_file must name it)";
        switch (p->info.state) {
        case PORT_STATE_NONE:
        case PORT_STATE_DOWN:
                return "its link is down";
        case PORT_STATE_INIT:
                return "no subnet manager brought it up yet";
        case PORT_STATE_ARMED:
        case PORT_STATE_ACTIVE:
                break;
        }
        if (p->info.lid.v == 0 || p->info.sm_lid.v == 0)
                return "no subnet manager gave it a LID yet";
        return NULL;
}
