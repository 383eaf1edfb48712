/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The virtual clock's agenda: what happens when. Events of one moment happen in the order in which they were added. */

#include "fabric.h"

enum event_kind {
        EVENT_ARRIVE,   /* a frame reaches an agent */
        EVENT_DELIVER,  /* an answer reaches a host */
        EVENT_ANSWER,   /* an action of a process was carried out; `data` is the answer */
        EVENT_OPENSM,   /* something that an OpenSM does; `what` says it */
        EVENT_EXTERNAL, /* something that no process asked for; `what` says it */
        EVENT_SCENE,    /* likewise, of the histories with scenes */
};

struct event {
        usec_t at;
        uint64_t sequence;
        enum event_kind kind;
        struct fabsim_place place; /* ARRIVE */
        unsigned hops;             /* ARRIVE */
        struct mad_frame frame;    /* ARRIVE, DELIVER */
        unsigned process;          /* ARRIVE, DELIVER: whose frame it is */
        uint64_t life;             /* of the process */
        usec_t sent_at;            /* ARRIVE, DELIVER: when the host sent the request, and where it was to go was settled */
        usec_t answered_at;        /* DELIVER: when the agent answered */
        void *data;                /* ARRIVE: the basis of a Set. ANSWER: the answer. Owned */
        unsigned what;             /* OPENSM, EXTERNAL, SCENE; with two numbers of its own */
        unsigned x, y;
};

struct events {
        struct event **heap;
        unsigned n, allocated;
        uint64_t next_sequence;
};

void events_done(struct events *e);
/* Room for one that happens at that time; to be filled by the caller. Aborts when memory is out: this is a test. */
struct event *events_add(struct events *e, usec_t at, enum event_kind kind);
/* USEC_INFINITY: nothing is on the agenda. */
usec_t events_next_at(const struct events *e);
/* Takes the first one off; owned by the caller. */
struct event *events_take(struct events *e);
