/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface of state machines that send MADs.
 *
 * A *stage* has an end: discovery, survey, apply. The dispatcher takes its next request, gives it results, and checks whether it is
 * done. A *background task* has no end: counters that are polled, a subscription that is renewed. It sends only while no stage
 * runs, and a few MADs at a time.
 *
 * Neither does I/O, has a clock, or calls back: `now` is an argument. The dispatcher (dispatcher.h) carries requests to the MAD
 * engine and results back.
 */

#include "ib/mad.h"
#include "util/macros.h"

/* How often a request of a stage is sent again before its port counts as unreachable. On a fabric that loses one MAD in five, one
 * request in 80,000 fails; a dead port costs 11.5 s at the default timeout, once in a survey. */
#define STAGE_RETRIES 6
/* The same for a device that did not answer the last time either: it costs 1.5 s, so a host that hangs for days does not make every
 * sweep and every change of the policy slow. */
#define STAGE_RETRIES_AGAIN 1

/* Sets how often a request is sent again: fewer times if the same one failed in the last stage of this kind, and `tries` times less
 * that an interrupted stage had no answer. */
static inline void mad_stage_set_retries(struct mad_request *request, uint8_t retries, bool failed_before, uint8_t tries)
{
        uint8_t most = failed_before ? MIN(retries, STAGE_RETRIES_AGAIN) : retries;

        request->retries = (uint8_t) (most - MIN(most, tries));
        request->doubtful = failed_before || tries > 0;
}

struct mad_stage {
        void *state;
        /* Gets the next request. False: none until a result arrives, or the stage is done. */
        bool (*next)(void *state, usec_t now, struct mad_request *ret);
        /* Takes how a request of this stage ended. */
        void (*result)(void *state, usec_t now, const struct mad_result *result);
        bool (*done)(const void *state);
        /* Steps done and in total, for a progress bar; an estimate. */
        void (*progress)(const void *state, uint64_t *ret_done, uint64_t *ret_total);
        /* NULL, or called if the stage was abandoned before this request ended: result->timeouts tries of it were not answered. The
         * next stage can use what is learned of silent devices. */
        void (*take_back)(void *state, usec_t now, const struct mad_result *result);
};

struct mad_background_task {
        void *state;
        /* Gets the next request that is due at `now`. */
        bool (*next)(void *state, usec_t now, struct mad_request *ret);
        void (*result)(void *state, usec_t now, const struct mad_result *result);
        /* When next() has a request again if no result comes before; USEC_INFINITY: not before one comes. */
        usec_t (*due)(const void *state);
        /* Takes a Report of the SA, MAD_SIZE bytes of unknown content. Returns true if it was for this task; then a ReportResp is
         * sent. NULL: the task takes none. */
        bool (*report)(void *state, usec_t now, const struct mad_frame *frame);
        /* The port was closed: requests in flight are forgotten, and get no result. */
        void (*reset)(void *state, usec_t now);
};
