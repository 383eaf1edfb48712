/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a state machine that talks to the fabric looks like from outside: it is asked for the next request, it is given
 * results, it says when it is done. survey, apply and whatever comes later are such stages; the pump of shell/ (and the
 * tests' virtual fabric) carries requests to the MAD engine and results back. A stage does no I/O, keeps no clock and
 * never calls back.
 */

#include "ib/smp.h"

/* How often a request of a stage is sent again before its port counts as unreachable. On a fabric that loses one MAD in
 * five, one request in 80,000 is given up; a port that is dead costs 11.5 s at the default timeout, once in a survey. */
#define STAGE_RETRIES 6

struct smp_stage {
        void *state;
        /* The next request, if there is one now. False: nothing to send until a result arrives (or done). */
        bool (*next)(void *state, struct smp_request *ret);
        /* How a request of this stage ended. */
        void (*result)(void *state, const struct smp_result *result);
        bool (*done)(const void *state);
        /* Steps done and in all, for a progress bar; an estimate. */
        void (*progress)(const void *state, uint64_t *ret_done, uint64_t *ret_total);
};
