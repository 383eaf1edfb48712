/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The event queue in virtual time. Events with the same time happen in the order in which they were added. */

#include "fabric.h"

enum event_kind {
        EVENT_ARRIVE,   /* a frame reaches an agent */
        EVENT_DELIVER,  /* an answer reaches a host */
        EVENT_ANSWER,   /* an action of a process was carried out; `data` is the answer */
        EVENT_OPENSM,   /* an action of an OpenSM; `what` is its kind */
        EVENT_EXTERNAL, /* an external event; `what` is its kind */
        EVENT_SCENE,    /* likewise, in histories with scenes */
        EVENT_CONF,     /* an admin edits OpenSM's partition file, or (y) hands it over to pkeyd; x: head */
        EVENT_STORE,    /* x: head; y: whether its store can be read from now on */
        EVENT_CLOCK,    /* a wall clock is set; x: head */
        EVENT_MAIL,     /* a step of a process and its mailbox; `what` is its kind */
};

struct event {
        usec_t at;
        uint64_t sequence;
        enum event_kind kind;
        struct fabsim_place place; /* ARRIVE */
        unsigned hops;             /* ARRIVE */
        struct mad_frame frame;    /* ARRIVE, DELIVER */
        unsigned process;          /* ARRIVE, DELIVER: the owner of the frame */
        uint64_t life;             /* of the process */
        usec_t sent_at;            /* ARRIVE, DELIVER: when the host sent the request, which determines its destination */
        usec_t answered_at;        /* DELIVER: when the agent answered */
        void *data;                /* ARRIVE: the basis of a Set. ANSWER: the answer. Owned */
        uint64_t revision;         /* MAIL: what it is about */
        unsigned what;             /* OPENSM, EXTERNAL, SCENE, MAIL; with two arguments */
        unsigned x, y;
};

struct events {
        struct event **heap;
        unsigned n, allocated;
        uint64_t next_sequence;
};

void events_done(struct events *e);
/* Adds an event for this time, which the caller fills. Aborts when out of memory. */
struct event *events_add(struct events *e, usec_t at, enum event_kind kind);
/* The time of the next event; USEC_INFINITY: none. */
usec_t events_next_at(const struct events *e);
/* Removes the first event; owned by the caller. */
struct event *events_take(struct events *e);
