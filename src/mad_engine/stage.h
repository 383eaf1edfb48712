/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a state machine that talks to the fabric looks like from outside: it is asked for the next request, it is given
 * results, it says when it is done. survey, apply and whatever comes later are such stages; the pump of shell/ (and the
 * tests' virtual fabric) carries requests to the MAD engine and results back. A stage does no I/O, keeps no clock and
 * never calls back.
 */

#include "ib/mad.h"

/* How often a request of a stage is sent again before its port counts as unreachable. On a fabric that loses one MAD in
 * five, one request in 80,000 is given up; a port that is dead costs 11.5 s at the default timeout, once in a survey. */
#define STAGE_RETRIES 6

struct mad_stage {
        void *state;
        /* The next request, if there is one now. False: nothing to send until a result arrives (or done). */
        bool (*next)(void *state, struct mad_request *ret);
        /* How a request of this stage ended. */
        void (*result)(void *state, const struct mad_result *result);
        bool (*done)(const void *state);
        /* Steps done and in all, for a progress bar; an estimate. */
        void (*progress)(const void *state, uint64_t *ret_done, uint64_t *ret_total);
};

/*
 * A side stage has no end: it goes on for as long as the port is open, slowly, while no other stage runs (counters that are
 * polled, a subscription that is kept). It knows time as an argument.
 */
struct mad_side_stage {
        void *state;
        /* The next request that is due at `now`. */
        bool (*next)(void *state, usec_t now, struct mad_request *ret);
        void (*result)(void *state, usec_t now, const struct mad_result *result);
        /* When next() has something again, if no result comes before; USEC_INFINITY: not before something comes. */
        usec_t (*due)(const void *state);
        /* A Report that the SA sent, MAD_SIZE bytes of unknown content. True: it was for this stage, and shall be answered
         * with a ReportResp. NULL: the stage takes none. */
        bool (*report)(void *state, usec_t now, const struct mad_frame *frame);
        /* What was under way is forgotten, no results come for it: the port was closed. */
        void (*reset)(void *state, usec_t now);
};
