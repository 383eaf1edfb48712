/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The poll: asks for the counters that violations move, spread over the interval, as a background task; or once, all of them, as
 * fast as the engine likes, as a stage (pkeyctl violations --once).
 *
 * What is asked of whom (design, section 9): PortInfo of every managed endport (P_KeyViolations, 16 bits); PortCounters of
 * endports and of every switch port next to an endport (8 bits), or PortCountersExtended where the PMA's ClassPortInfo says
 * that it has these counters (64 bits). A PMA is asked for its ClassPortInfo once, and again when its node came back, or
 * answers again. One MAD for each port and counter block and interval: with n of them, one in each n-th of an interval, in an
 * order that jumps from node to node and stays the same from round to round, whoever comes and goes. What could not be sent
 * in time, because a stage ran, makes the round longer; it is not made up for in a burst.
 *
 * A port that says it does not know an attribute is not asked for it again until its node comes back; one that does not answer
 * is asked once in an interval, without retries; of such ports SILENT_FLIGHTS are asked at a time, each in its turn, so that
 * waiting for many of them takes no places from those that answer. The ports of one PMA are asked one after the other: a switch
 * that falls silent costs one place, and its ports have their turn as silent ones then. A PMA that ClassPortInfo says is at another
 * LID is asked there; one that is at another QP, too, counts as silent.
 *
 * A switch port's counter that moved says nothing of who is plugged in now, which may have changed since the snapshot. So, with
 * check_hosts, the switch is asked at once where it forwards to the host's LID, before the sample comes out: a subnet manager
 * sets that before a link carries data. Where that is not the port, or the switch does not answer, the sample says that the
 * host is doubted; where the switch refuses to answer, the snapshot is all there is.
 *
 * Likewise an endport whose counters moved, or were never read, is asked who it is (NodeInfo): its LID may be another port's by
 * now, and that port's counters are no news of this one. What another one answered is dropped; what nobody says anything about
 * waits for the next turn.
 *
 * Clearing: the only thing that is ever written is a single counter of PortCounters or PortCountersExtended, which
 * CounterSelect can choose. P_KeyViolations is never cleared: a Set(PortInfo) has no way to say "only this", it would write
 * the LID, the M_Key and whatever else is the subnet manager's as they were a moment ago.
 *
 * Samples come out as data; the caller gives them to the violation table.
 */

#include "ib/m_keys.h"
#include "mad_engine/stage.h"
#include "violations/violations.h"

struct violation_poll;

struct violation_poll_config {
        usec_t interval;
        bool clear_saturated;
        bool check_hosts;      /* who is plugged in, before what moved comes out: for a violation table that knows the hosts */
        struct m_keys *m_keys; /* for PortInfo; the poll becomes one more owner; NULL: none */
};

/* One sample of one counter, or that pkeyd cleared it. */
struct violation_sample {
        struct violation_port port;
        enum violation_source source;
        bool is_cleared; /* then the rest is 0 */
        bool is_doubted; /* another host than that of the snapshot may be plugged in */
        unsigned bits;
        uint64_t value;
};

/* Returns owned, or NULL when memory is out. */
struct violation_poll *violation_poll_new(const struct violation_poll_config *config);
struct violation_poll *violation_poll_free(struct violation_poll *p);
DEFINE_CLEANUP(struct violation_poll *, violation_poll_free)
void violation_poll_set_config(struct violation_poll *p, usec_t now, const struct violation_poll_config *config);

/* The fabric as it is now; what is copied is all that is needed of it. What was learned of ports that are still there
 * stays; the round goes on where it is. 0 or -ENOMEM (then the old targets stay). */
int violation_poll_set_subnet(struct violation_poll *p, usec_t now, const struct subnet *subnet);

struct mad_background_task violation_poll_task(struct violation_poll *p);
/* One round from its beginning, all at once, with a few retries; done when every port answered or was given up. */
struct mad_stage violation_poll_once(struct violation_poll *p);

/* The next sample, in the order in which they happened; false: none. A counter at its maximum may be handed to
 * violation_poll_clear: with clear_saturated one MAD is sent that clears only that counter (nothing else is done with one that
 * cannot be cleared so), and when it was taken there is a sample of that. */
bool violation_poll_next_sample(struct violation_poll *p, struct violation_sample *ret);
void violation_poll_clear(struct violation_poll *p, struct violation_port port, enum violation_source source);
/* One sample that is no clearing, as violations_see_counter(). */
int violations_see_sample(struct violations *violations, usec_t now, const struct violation_sample *s);
/* All samples that wait, into the violation table; counters at their maximum may be cleared. */
void violations_take_samples(struct violations *violations, usec_t now, struct violation_poll *poll);

struct violation_poll_counters {
        uint32_t n_ports;      /* polled */
        uint32_t n_silent;     /* of them: did not answer the last time */
        uint64_t n_rounds;     /* finished */
        usec_t interval;       /* as configured */
        usec_t cycle_duration; /* of the last cycle: the time in which each polled port was asked; 0: not known */
        bool is_slow;          /* in that cycle the interval was not kept, not even for the ports that answer */
        bool is_late;          /* as violation_poll_is_late() */
};
void violation_poll_get_counters(const struct violation_poll *p, struct violation_poll_counters *ret);
/* Not each port is asked once in an interval: silent ones wait for each other, or all of them wait for answers that are slow. True
 * after VIOLATIONS_QUIET_INTERVALS rounds of that kind, false again after as many in a row of the other kind: hosts that reboot are
 * no news. */
bool violation_poll_is_late(const struct violation_poll *p);
