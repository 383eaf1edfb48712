/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * opensm_writer/: OpenSM's partition file, written by pkeyd.
 *
 * writer: opensm  Each phase (opensm/phases.h) is a complete file, which replaces the one before at once. pkeyd signals OpenSM to
 *                 read it, and reads the tables until they match the phase; then the next phase begins. pkeyd sends no SubnSet. A
 *                 file has only changes that the rule admits (opensm/admission.h); before pkeyd writes it, it stores the writes
 *                 that OpenSM may send because of it. The writer does not wait for a port that cannot be read, but holds the
 *                 bases that depend on it. If OpenSM does not carry out a phase in time (20 s, and 10 ms for each port), the sweep
 *                 fails; the file stays, because OpenSM may still carry it out, and the file before it would undo that. If the
 *                 tables show that OpenSM fell back to its default partitions, pkeyd puts the last file back that OpenSM carried
 *                 out.
 * writer: direct  With opensm.mirror pkeyd keeps the file equal to the policy in force. It does not signal OpenSM, which reads the
 *                 file at the beginning of each heavy sweep, and writes no table at other times. With writer: opensm a standby
 *                 does the same: its own OpenSM will read the file after a hand-over.
 *
 * The writer does not replace a file that pkeyd did not write, or that was edited since, with these exceptions: a file that is
 * empty, or that was cut short since this process wrote it, in which nothing can be lost; a file of pkeyd that was edited so that
 * OpenSM would drop it, opening the fabric, which is kept as PATH.refused; and a file with an equal copy at PATH.before-pkeyd, by
 * which an admin handed it over. If PATH.refused cannot be written, the file stays: it is in the same directory as PATH, which
 * usually could not be written either, and what was edited would be lost.
 *
 * If pkeyd is stopped or killed, the file of one of the phases is in place, complete and valid; the next start begins with the
 * tables as they are then.
 *
 * Sans I/O, one step at a time: the writer gives an action, takes its answer, and gives the next action.
 *
 *     idle --start--> reading --> [putting aside] --> storing --> [reading again] --> writing --> signalling --.
 *                        |                              ^                                                      v
 *                        '--> end (nothing to write)    '-- next phase: reached -- surveying <-------------- waiting
 *                                                                                      '-- not yet: probing ---^
 *
 *     step           waits for                                then
 *     reading        the file in place, and its copy          refused: end; OpenSM would drop it: putting aside; nothing to
 *                                                             change: end; else storing
 *     putting aside  PATH.refused to be written               as after reading
 *     storing        the store to have what OpenSM may write  the first file: writing; else reading again; a mirror for the other
 *                                                             head node's store skips this
 *     reading again  the file in place                        it was changed since the last phase: end; else writing
 *     writing        the partition file to be in place        a mirror, or only the head changed (generation, phase): end; else
 *                                                             signalling
 *     signalling     OpenSM to be signalled                   a phase: waiting; no table changes, or the last good file was put
 *                                                             back: end
 *     waiting        the due time                             surveying
 *     surveying      the tables that the phase changes        the phase is reached: storing the next one, or waiting for the last
 *                                                             survey, of all tables; OpenSM fell back: storing the last good
 *                                                             file; else probing; the last survey: end
 *     probing        whether OpenSM runs                      waiting, twice as long; its time is over, or OpenSM ended: end
 *
 * An error ends the job in any step.
 *
 * This folder does not know where files are, or what follows in the sweep that it is part of.
 */

#include "actions/actions.h"
#include "opensm/opensm_conf.h"
#include "reconcile.h"

struct opensm_writer;

/* Borrows the log. Returns owned, or NULL when out of memory. */
struct opensm_writer *opensm_writer_new(struct log *log);
struct opensm_writer *opensm_writer_free(struct opensm_writer *w);

/* Checks whether OpenSM can carry out the decision. Returns 0, -EBADMSG (the findings give the reason) or -ENOMEM. */
int opensm_writer_check(const struct generation *g, const struct opensm_conf *conf, const struct reconciled *decision,
                        struct findings *findings);

/* The part of it that needs no fabric: no line gives `both` at an index 0 where OpenSM would put the limited entry. Returns 0 or
 * -EBADMSG; running out of memory: findings->out_of_memory. */
int opensm_writer_check_index0(const struct policy *policy, struct findings *findings);

/* The decision to carry out or to mirror. Everything is borrowed until the end. */
struct opensm_job {
        const char *fabric;              /* of several fabrics of this host; NULL: it has one */
        const struct generation *generation;
        const struct reconciled *decision;
        struct snapshot *snapshot;       /* its tables were read just now; updated with each survey */
        struct knowledge *knowledge;     /* has the policy of the decision; updated with each survey */
        const struct known *known;
        const struct pins *pins;       /* NULL: names are not pinned */
        const struct opensm_conf *conf;
        bool mirror;                     /* only keep the file equal to the policy */
        bool stores;                     /* false: the store is the other head node's, and only the knowledge has the writes that
                                          * the mirror may make OpenSM send */
        bool in_force;                   /* only with `mirror`: this pkeyd writes the tables, or they match the policy */
};

void opensm_writer_start(struct opensm_writer *w, usec_t now, const struct opensm_job *job);

/* The next action; false: it waits for its due time or for an answer, no job runs, or the job has ended. */
bool opensm_writer_next_action(struct opensm_writer *w, struct control_action *ret);
usec_t opensm_writer_due(const struct opensm_writer *w);

/* Takes the answer to the last action; and what to call when the due time has come. */
void opensm_writer_answer(struct opensm_writer *w, usec_t now, const struct control_event *event);
void opensm_writer_tick(struct opensm_writer *w, usec_t now);

/* True once after each start: the job has ended. *ret_r: 0: every phase was carried out, except for held bases; -ECANCELED: stopped
 * early; -ESTALE: a port is no longer at its address, or the file in place was changed during the job; else the problem or
 * findings were logged, and the job may be tried again. After 0 and -ECANCELED the snapshot has the tables as they are now. */
bool opensm_writer_take_end(struct opensm_writer *w, int *ret_r);

/* No further phase begins; the job ends when OpenSM has carried out the current one, or its time is over. */
void opensm_writer_stop(struct opensm_writer *w);
/* Ends the job at once: the writer borrows nothing any more. */
void opensm_writer_drop(struct opensm_writer *w);

/* The current phase: "revoke", ...; a static string. */
const char *opensm_writer_phase(const struct opensm_writer *w);
/* The problem of the last job; "": it had none, or it is among the findings that were logged. */
const char *opensm_writer_problem(const struct opensm_writer *w);
