/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests that passed the login, on their way through pkeyd.
 *
 * A job reads from pkeyd what its request needs, makes the view, and lets rest/ answer. It sends a change to pkeyd, and passes the
 * outcome on: a client gets 200 only for a change that pkeyd stored. One change of each pool at a time reads its view and is sent;
 * the others of this pool wait in a bounded queue, so that a client whose changes take long delays none of another pool. A job that
 * was not sent yet when its client's time is over is dropped; a change that was sent is logged in any case.
 */

#include "pkeyd_rest/http.h"
#include "pkeyd_rest/pkeyd_bus.h"

struct jobs;

/* Borrows bus and journal. Returns 0 or negative errno; *ret owned. */
int jobs_new(sd_event *event, struct pkeyd_bus *bus, const struct journal_output *journal, struct jobs **ret);
/* Drops the jobs that have not ended. */
struct jobs *jobs_free(struct jobs *j);
DEFINE_CLEANUP(struct jobs *, jobs_free)

/* Answers a request, now or later. It has a client, unless its path is outside of the API. */
void jobs_add(struct jobs *j, struct http_request *q);
