/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * OpenSM's partition file, written by the daemon.
 *
 * writer: opensm  Each phase (opensm/phases.h) is a complete file, put in place at once; OpenSM is told to read it; the tables
 *                 are read until they are as the phase has them; then comes the next. No SubnSet is sent. If that does not
 *                 happen in time (20 s, and 10 ms for each port), or the tables show that OpenSM took its defaults, the last
 *                 file that was carried out is put back, which is said as loud as can be, and the pass has failed.
 * writer: direct  With opensm.mirror the file is only kept equal to the policy in force. OpenSM need not be told: it reads the
 *                 file at the beginning of each heavy sweep, and outside of these it writes no table.
 *
 * A file that pkeyd did not write is not replaced, nor one that was changed since, with these exceptions: an empty one and one
 * that was cut short hold nothing of anybody's; one that OpenSM would throw away, opening the fabric, is put aside; and one of
 * which there is a copy with `.before-pkeyd` behind its name was given to pkeyd by whoever made the copy.
 *
 * If pkeyd is stopped or killed on the way, the file that stands there is one of the phases, complete and valid; the next start
 * goes on from the tables as they are then.
 */

#include "pkeyd/daemon.h"
#include "reconcile.h"

struct opensm_writer;

/* r: 0 every phase was carried out; -ECANCELED: ended early; else it was said, and may be tried again. The tables in the
 * daemon's picture are those of now, unless r is another error. Called from the loop. */
typedef void (*opensm_writer_done_t)(int r, void *userdata);

/* Borrows the daemon. Returns 0 or -ENOMEM; *ret owned. */
int opensm_writer_new(struct daemon *d, struct opensm_writer **ret);
struct opensm_writer *opensm_writer_free(struct opensm_writer *w);

/* Can OpenSM give the ports what was decided? Findings say why not. Returns 0, -EBADMSG, -ENOMEM. */
int opensm_writer_judge(const struct generation *g, const struct reconciled *decision,
                        struct findings *findings);

/* Carries out what was decided about the daemon's picture, whose tables must have been read just now. Borrows both until done
 * is called, which may be in here. */
void opensm_writer_start(struct opensm_writer *w, const struct generation *g, const struct reconciled *decision,
                         opensm_writer_done_t done, void *userdata);
/* No further file is written; done is called soon. */
void opensm_writer_end(struct opensm_writer *w);
/* Nobody is told any more; the job on the fabric must be gone. */
void opensm_writer_drop(struct opensm_writer *w);
/* "revoke", ...: the phase that runs. */
const char *opensm_writer_phase(const struct opensm_writer *w);

/* Keeps the file equal to what was decided, without telling OpenSM: that of opensm.mirror, or with writer: opensm that of a head
 * node that stands by, whose own OpenSM will read it after a hand-over. */
void opensm_writer_mirror(struct opensm_writer *w, const struct generation *g, const struct reconciled *decision);
