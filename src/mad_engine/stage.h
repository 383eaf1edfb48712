/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a state machine that talks to the fabric looks like from outside.
 *
 * A *stage* has an end: discovery, survey, apply. It is asked for its next request, it is given results, it says when it
 * is done. A *background task* has none: counters that are polled, a subscription that is kept alive. It works only while
 * no stage runs, and a few MADs at a time.
 *
 * Neither does I/O, keeps a clock, or calls back: `now` is an argument. The dispatcher (dispatcher.h) carries requests to
 * the MAD engine and results back.
 */

#include "ib/mad.h"

/* How often a request of a stage is sent again before its port counts as unreachable. On a fabric that loses one MAD in
 * five, one request in 80,000 is given up; a port that is dead costs 11.5 s at the default timeout, once in a survey. */
#define STAGE_RETRIES 6
/* Of what did not answer the last time either: it costs 1.5 s. A host that hangs for days makes no sweep long, and no edit waits
 * for it. */
#define STAGE_RETRIES_AGAIN 1

struct mad_stage {
        void *state;
        /* The next request, if there is one now. False: nothing to send until a result arrives (or done). */
        bool (*next)(void *state, usec_t now, struct mad_request *ret);
        /* How a request of this stage ended. */
        void (*result)(void *state, usec_t now, const struct mad_result *result);
        bool (*done)(const void *state);
        /* Steps done and in all, for a progress bar; an estimate. */
        void (*progress)(const void *state, uint64_t *ret_done, uint64_t *ret_total);
        /* NULL, or: the stage was abandoned before this request ended; result->timeouts tries of it had no answer. What it
         * learned so of who is silent is of use to the next one. */
        void (*take_back)(void *state, usec_t now, const struct mad_result *result);
};

struct mad_background_task {
        void *state;
        /* The next request that is due at `now`. */
        bool (*next)(void *state, usec_t now, struct mad_request *ret);
        void (*result)(void *state, usec_t now, const struct mad_result *result);
        /* When next() has something again, if no result comes before; USEC_INFINITY: not before something comes. */
        usec_t (*due)(const void *state);
        /* A Report that the SA sent, MAD_SIZE bytes of unknown content. True: it was for this task, and is to be answered
         * with a ReportResp. NULL: the task takes none. */
        bool (*report)(void *state, usec_t now, const struct mad_frame *frame);
        /* Requests under way are forgotten, no results come for them: the port was closed. */
        void (*reset)(void *state, usec_t now);
};
