/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * OpenSM's partition file, written by pkeyd.
 *
 * writer: opensm  Each phase (opensm/phases.h) is a complete file, put in place at once; OpenSM is signalled to read it; the
 *                 tables are read until they are as the phase has them; then comes the next. No SubnSet is sent. Of each file only
 *                 what the rule admits is given (opensm/admission.h), and what it may make OpenSM write is stored first. A port
 *                 that cannot be read is not waited for, but what waits for it is held. If a phase is not carried out in time
 *                 (20 s, and 10 ms for each port), the sweep has failed; the file stays, for OpenSM may carry it out yet, and the
 *                 one before would undo that. If the tables show that OpenSM took its defaults, the last file that was carried
 *                 out is put back.
 * writer: direct  With opensm.mirror the file is only kept equal to the policy in force. OpenSM is not signalled: it reads the
 *                 file at the beginning of each heavy sweep, and outside of these it writes no table. The same is done with
 *                 writer: opensm on a standby, whose own OpenSM will read the file after a hand-over.
 *
 * A file that pkeyd did not write is not replaced, nor one that was changed since, with these exceptions: an empty one and one
 * that was cut short hold nothing of anybody's; one that OpenSM would drop, opening the fabric, is put aside; and one of which
 * there is a copy with `.before-pkeyd` behind its name was given to pkeyd by whoever made the copy.
 *
 * If pkeyd is stopped or killed on the way, the file that stands there is one of the phases, complete and valid; the next start
 * goes on from the tables as they are then.
 *
 * Sans I/O, one step at a time: the writer asks for an action, is given its answer, and asks for the next.
 *
 *     idle --start--> reading --> [putting aside] --> storing --> writing --> signalling --> waiting --> surveying --.
 *                        |                              ^                                       ^                    |
 *                        |                              '------------ next phase ---------------|------- reached ----+
 *                        '--> end (nothing to write)                                            '- not yet: probing -'
 *
 * It refuses to know where files are, and what becomes of the sweep that it is part of.
 */

#include "control/control.h"
#include "opensm/opensm_conf.h"

struct opensm_writer;

/* Borrows the log. Returns owned, or NULL when memory is out. */
struct opensm_writer *opensm_writer_new(struct log *log);
struct opensm_writer *opensm_writer_free(struct opensm_writer *w);

/* Can OpenSM give the ports what was decided? Findings say why not. Returns 0, -EBADMSG, -ENOMEM. */
int opensm_writer_judge(const struct generation *g, const struct opensm_conf *conf, const struct reconciled *decision,
                        struct findings *findings);

/* What is to be carried out, or mirrored. All is borrowed until the end. */
struct opensm_job {
        const struct generation *generation;
        const struct reconciled *decision;
        struct snapshot *snapshot;       /* its tables were read just now; kept true on the way */
        struct knowledge *knowledge;     /* likewise; with the policy of the decision */
        const struct known *known;
        const struct opensm_conf *conf;
        bool mirror;                     /* only the file */
        bool in_force;                   /* of a mirror: the tables are written here, or are as the policy says */
};

void opensm_writer_start(struct opensm_writer *w, usec_t now, const struct opensm_job *job);

/* What it wants done now; false: it waits, until its due time or for an answer. */
bool opensm_writer_next_action(struct opensm_writer *w, struct control_action *ret);
usec_t opensm_writer_due(const struct opensm_writer *w);

/* The answer to the action before; and the time. */
void opensm_writer_answer(struct opensm_writer *w, usec_t now, const struct control_event *event);
void opensm_writer_tick(struct opensm_writer *w, usec_t now);

/* Once after each start: it ended. *ret_r: 0 every phase was carried out, but for what is held; -ECANCELED: stopped early;
 * -ESTALE: a port is not at its address any more; else the problem was logged, and may be tried again. After 0 and -ECANCELED the
 * tables in the snapshot are those of now. */
bool opensm_writer_take_end(struct opensm_writer *w, int *ret_r);

/* No further phase begins; it ends when the one that OpenSM was given is carried out, or given up. */
void opensm_writer_stop(struct opensm_writer *w);
/* What it borrows goes away: it is idle from now on. */
void opensm_writer_drop(struct opensm_writer *w);

/* "revoke", ...: the phase that runs. */
const char *opensm_writer_phase(const struct opensm_writer *w);
/* What went wrong last; "" if the last job went well. */
const char *opensm_writer_problem(const struct opensm_writer *w);
