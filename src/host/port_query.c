/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/port_query.h"

#define MAX_RETRIES 2

/* A directed route without hops ends at the local port; modifier 0 is the port that receives the request. */
static bool port_query_next(void *state, usec_t now, struct mad_request *ret)
{
        struct port_query *q = state;

        if (q->asked)
                return false;
        q->asked = true;
        q->asked_at = now;
        *ret = (struct mad_request) {
                .route = { .hops = 0 }, .method = MAD_GET, .attribute = SMP_ATTR_PORT_INFO, .key = q->m_key,
                .retries = MAX_RETRIES,
        };
        return true;
}

static void port_query_result(void *state, usec_t, const struct mad_result *result)
{
        struct port_query *q = state;

        q->outcome = result->outcome;
        if (q->outcome == MAD_ANSWERED)
                port_info_decode(result->data, &q->info);
        q->done = true;
}

static bool port_query_done(const void *state)
{
        const struct port_query *q = state;

        return q->done;
}

static void port_query_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        *ret_done = port_query_done(state);
        *ret_total = 1;
}

struct mad_stage port_query_stage(struct port_query *q, uint64_t m_key)
{
        *q = (struct port_query) { .m_key = m_key };
        return (struct mad_stage) {
                .state = q,
                .next = port_query_next,
                .result = port_query_result,
                .done = port_query_done,
                .progress = port_query_progress,
        };
}

const char *port_query_problem(const struct port_query *q)
{
        if (q->outcome == MAD_UNSENT) /* its device was lost or reset; the port is closed before the next sweep */
                return "this host could not send to it; pkeyd opens it again";
        if (q->outcome != MAD_ANSWERED)
                return "it does not answer (if it has an M_Key, m_key_file must name it)";
        if (q->info.state == PORT_STATE_NONE || q->info.state == PORT_STATE_DOWN)
                return "its link is down";
        if (q->info.state == PORT_STATE_INIT)
                return "no subnet manager has brought it up yet";
        if (q->info.lid.v == 0 || q->info.sm_lid.v == 0)
                return "no subnet manager has given it a LID yet";
        return NULL;
}
