/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the parts of the poll share: poll_requests.c makes the MADs, poll_answers.c makes samples of what comes back, and poll.c is
 * the background task, the stage and the rest of the interface. */

#include "util/vector.h"
#include "violations/poll_schedule.h"
#include "violations/poll_targets.h"

#define POLL_MAX_FLIGHTS 256 /* a background task has a handful */
#define POLL_MAX_QUEUED  262144
#define POLL_RETRIES     2   /* of what no later turn repeats: checks, and reads of the stage "once" */

enum flight_kind {
        FLIGHT_PORT_INFO,
        FLIGHT_CLASS_PORT_INFO,
        FLIGHT_COUNTERS,
        FLIGHT_CLEAR,
        FLIGHT_FORWARDING, /* checks: the port through which a switch forwards to a host */
        FLIGHT_IDENTITY,   /* ... or the port that is at a LID */
};

/* A request in flight. */
struct poll_flight {
        bool is_used;
        bool is_silent;               /* to a port that did not answer before */
        uint64_t cookie;
        enum flight_kind kind;
        struct violation_port port;   /* of FLIGHT_CLASS_PORT_INFO: that of the agent */
        enum violation_source source; /* of FLIGHT_CLEAR: of the counter; of a check: of the block that waits for the answer */
        bool is_extended;
        struct lid lid;               /* of the port, when it was sent */
        struct lid host_lid;          /* of FLIGHT_FORWARDING */
};

/* What is to be sent beside the round, in this order. */
enum poll_todo {
        TODO_CHECK, /* the host of a target */
        TODO_CLEAR, /* a counter */
        TODO_READ,  /* the counters of a target that waited for its agent */
        N_TODOS,
};

/* Samples that were read; or what is to be sent, of which only the port and the source are set. */
struct poll_queue {
        struct violation_sample *items;
        uint32_t first, end, allocated; /* items[first..end) */
};

/* What does not fit (false) is no loss: the next sample of that counter has it, and a counter that went down was cleared. */
static inline bool poll_queue_push(struct poll_queue *q, const struct violation_sample *s)
{
        if (q->first == q->end)
                q->first = q->end = 0;
        return q->end < POLL_MAX_QUEUED && VECTOR_ADD(NULL, q->items, q->end, q->allocated, *s) == 0;
}

static inline bool poll_queue_pop(struct poll_queue *q, struct violation_sample *ret)
{
        if (q->first == q->end)
                return false;
        *ret = q->items[q->first++];
        return true;
}

struct violation_poll {
        struct violation_poll_config config;
        struct poll_targets t;
        struct poll_schedule schedule; /* of t.items */
        uint32_t once_position;        /* of the stage: items before it had their turn */

        struct poll_flight flights[POLL_MAX_FLIGHTS]; /* at the index cookie % POLL_MAX_FLIGHTS */
        unsigned n_flights, n_silent_flights;
        uint64_t next_serial;
        struct poll_queue samples, todo[N_TODOS];
};

/* Requests the block of an item, if it has no request in flight and was not refused. True: there is a request. */
bool poll_request(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret);
/* The same in the background, where a port that did not answer before may have to wait. */
bool poll_request_in_turn(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret);
/* Gets the next request beside those of the round. */
bool poll_request_queued(struct violation_poll *p, struct mad_request *ret);
bool poll_has_queued(const struct violation_poll *p);

/* Takes how a request ended, whose flight is over. */
void poll_take_result(struct violation_poll *p, const struct poll_flight *flight, const struct mad_result *result);
