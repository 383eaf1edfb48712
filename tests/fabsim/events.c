/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events.h"

#include <stdlib.h>

void events_done(struct events *e)
{
        for (unsigned i = 0; i < e->n; i++) {
                free(e->heap[i]->data);
                free(e->heap[i]);
        }
        free(e->heap);
        *e = (struct events) {};
}

static bool is_before(const struct event *a, const struct event *b)
{
        return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void swap(struct events *e, unsigned i, unsigned j)
{
        struct event *t = e->heap[i];

        e->heap[i] = e->heap[j];
        e->heap[j] = t;
}

struct event *events_add(struct events *e, usec_t at, enum event_kind kind)
{
        struct event *event = calloc(1, sizeof(*event));
        unsigned i;

        if (e->n == e->allocated) {
                e->allocated = e->allocated ? e->allocated * 2 : 64;
                e->heap = reallocarray(e->heap, e->allocated, sizeof(*e->heap));
        }
        if (!event || !e->heap)
                abort();
        event->at = at;
        event->kind = kind;
        event->sequence = e->next_sequence++;
        i = e->n++;
        e->heap[i] = event;
        for (; i > 0 && is_before(e->heap[i], e->heap[(i - 1) / 2]); i = (i - 1) / 2)
                swap(e, i, (i - 1) / 2);
        return event;
}

usec_t events_next_at(const struct events *e)
{
        return e->n ? e->heap[0]->at : USEC_INFINITY;
}

struct event *events_take(struct events *e)
{
        struct event *first = e->heap[0];
        unsigned i = 0, least;

        e->heap[0] = e->heap[--e->n];
        for (;;) {
                least = i;
                for (unsigned k = 2 * i + 1; k <= 2 * i + 2; k++)
                        if (k < e->n && is_before(e->heap[k], e->heap[least]))
                                least = k;
                if (least == i)
                        return first;
                swap(e, i, least);
                i = least;
        }
}
