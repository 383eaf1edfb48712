/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests that were admitted, on their way through pkeyd.
 *
 * A job reads from pkeyd what its request needs, makes the view, and lets rest/ answer. A change is sent to pkeyd, and answered
 * with what pkeyd says of it: 200 is never the answer to a change that pkeyd did not confirm. One change is on its way at a time,
 * with what it reads before; others wait in a queue, whose length is bounded. A change that waits is dropped when its request has
 * ended; one that was sent is not, and is logged whoever waits for it.
 */

#include "pkeyd_rest/http.h"
#include "pkeyd_rest/pkeyd_bus.h"

struct jobs;

/* Borrows bus and journal. Returns 0 or negative errno; *ret owned. */
int jobs_new(sd_event *event, struct pkeyd_bus *bus, const struct journal_output *journal, struct jobs **ret);
/* Jobs that have not ended are dropped. */
struct jobs *jobs_free(struct jobs *j);
DEFINE_CLEANUP(struct jobs *, jobs_free)

/* Takes over the answer of a request, which has a client, or a path that is not one of the API. */
void jobs_add(struct jobs *j, struct http_request *q);
