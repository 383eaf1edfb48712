/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The poll: asks for the counters that violations move, spread over the interval, as a side stage; or once, all of them, as
 * fast as the engine likes, as a stage (pkeyctl violations --once).
 *
 * What is asked of whom (design, section 9): PortInfo of every managed endport (P_KeyViolations, 16 bits), PortCounters of
 * endports and of every switch port next to an endport (8 bits), or PortCountersExtended where the PMA's ClassPortInfo says
 * that it has these counters (64 bits). A PMA is asked for its ClassPortInfo once, and again when its node came back. One
 * MAD for each port and counter block and interval. A PMA that says it does not know an attribute is not asked for it again until its node comes
 * back; one that does not answer is asked once in an interval, without retries.
 *
 * Samples come out as data; the caller gives them to the book.
 */

#include "subnet/stage.h"
#include "violations/violations.h"

struct violation_poll;

struct violation_poll_config {
        usec_t interval;
        bool clear_saturated;
        uint64_t m_key; /* for PortInfo, 0: none */
};

/* One look at one counter. */
struct violation_sample {
        struct violation_port port;
        enum violation_source source;
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

struct mad_side_stage violation_poll_side(struct violation_poll *p);
/* One round, all at once; done when every target was asked. */
struct mad_stage violation_poll_once(struct violation_poll *p);

/* The next sample; false: none. */
bool violation_poll_next_sample(struct violation_poll *p, struct violation_sample *ret);
/* A counter at its maximum: with clear_saturated one MAD is sent that clears only that counter; when it was taken, it
 * comes out of violation_poll_next_cleared. */
void violation_poll_clear(struct violation_poll *p, struct violation_port port, enum violation_source source);
bool violation_poll_next_cleared(struct violation_poll *p, struct violation_port *ret_port, enum violation_source *ret_source);

struct violation_poll_counters {
        uint32_t n_ports;      /* polled */
        uint32_t n_silent;     /* of them: did not answer the last time */
        uint64_t n_rounds;     /* finished */
};
void violation_poll_get_counters(const struct violation_poll *p, struct violation_poll_counters *ret);
