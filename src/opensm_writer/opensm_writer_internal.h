/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the parts of the writer share: opensm_writer_file.c decides whether the file in place may be replaced, and remembers the one
 * that this process wrote; opensm_writer_phases.c makes the files of the phases; opensm_writer.c goes from step to step. */

#include <string.h>

#include "opensm/phases.h"
#include "opensm/unmanaged.h"
#include "opensm_writer/opensm_writer.h"

#define WRITER_MAX_NAMED 16 /* partitions in a message */

enum step {
        STEP_IDLE,
        STEP_READING,       /* the file in place, and PATH.before-pkeyd */
        STEP_PUTTING_ASIDE, /* a copy of a file that OpenSM cannot parse */
        STEP_STORING,       /* the writes that the next file may make OpenSM send */
        STEP_READING_AGAIN, /* the file in place, before a further one replaces it */
        STEP_WRITING,       /* the partition file */
        STEP_SIGNALLING,
        STEP_WAITING,       /* until `due`: OpenSM reads the file and writes tables */
        STEP_SURVEYING,
        STEP_PROBING,       /* tables differ from the phase: does OpenSM still run? */
        STEP_ENDED,
};

/* Why a file is written. */
enum purpose {
        FOR_PHASE,      /* OpenSM carries the phase out */
        FOR_CONTENT,    /* no table changes, only the file: IPoIB parameters, names, comments; always so for a mirror */
        TO_PUT_BACK,    /* OpenSM fell back to its default partitions */
};

struct file_bytes {
        const char *bytes; /* NULL: there is no file, or one that is not used */
        size_t n;
};

/* The file that this process wrote last, to recognize it when it was cut short, and what happened to it. */
struct written_file {
        char *path, *bytes;   /* malloc'ed; NULL: no file was written, or out of memory */
        size_t n;
        bool is_done;         /* every table matched it, or OpenSM had enough time to carry it out */
        bool is_after_open;   /* when it was written, every table held 0xffff and nothing else; false for one that was put back and
                               * that OpenSM was signalled to read */
        /* Reported since it was written, and not over. */
        bool damage_reported, fallback_reported;
};

struct opensm_writer {
        struct log *log;
        struct written_file last;
        char problem[CONTROL_TEXT_MAX]; /* logged last; "": solved */
        bool reported;                  /* `problem` is of this job, also if it was logged before */

        struct opensm_job job;
        struct arena *arena;
        enum step step;
        bool asked;              /* control has the action of this step */
        int r;                   /* result of the job, in STEP_ENDED */
        enum purpose purpose;
        struct opensm_phases phases;
        enum opensm_phase phase; /* the phase whose file is in place; in the last survey OPENSM_GRANT */
        struct file_bytes in_place;
        struct file_bytes good;  /* the file of the last phase that was carried out */
        const struct partitions_file_port *good_tables; /* the tables of `good`; NULL: there is no such file */
        struct file_bytes file;  /* to write */
        const char *path;        /* of the partition file */
        const char *copy_path;   /* PATH.before-pkeyd */
        const char *refused_path; /* PATH.refused */
        struct partitions_conf *conf_in_place; /* the file in place, or OpenSM's fallback. New files repeat what it has of
                                                * partitions that the policy does not manage. NULL: nothing is known */
        const struct partitions_conf *conf_before_pkeyd; /* the same, if pkeyd did not write the file in place; else NULL */
        bool stopping;           /* no further phase begins */
        bool is_last_survey;     /* of all tables, after the last file */
        bool is_phase;           /* the file in place belongs to a phase before the last one of its generation */
        bool handed_over;        /* an admin handed the file in place over to pkeyd, and it could be parsed */
        bool handover_unreported;
        usec_t began, phase_began, delay, due;
        unsigned n_files;
        uint32_t n_missing, first_missing; /* ports whose tables did not match the phase when they were read last */

        struct arena *read_arena; /* for one survey */
        struct observed *seen;    /* its result */
        struct survey *survey;
        struct mad_stage stage;   /* of the survey */
};

static inline bool writer_same_bytes(struct file_bytes x, struct file_bytes y)
{
        return x.n == y.n && (x.n == 0 || memcmp(x.bytes, y.bytes, x.n) == 0);
}

/* With the leases. */
static inline const struct policy *writer_policy(const struct opensm_writer *w)
{
        return w->job.decision->memberships->policy;
}

static inline struct opensm_manager writer_manager(const struct opensm_writer *w)
{
        return (struct opensm_manager) { writer_policy(w), w->job.generation->settings->unmanaged == UNMANAGED_KEEP };
}

/* --- problems, and the file in place (opensm_writer_file.c) ----------------------------------------------------------- */

/* Logs a problem, unless it is the one that was logged last. Returns r. */
int writer_report(struct opensm_writer *w, int r, enum log_event event, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* May the file in place, which has the bytes f, be replaced? copy: PATH.before-pkeyd. Returns 0: yes; 1: yes, after a copy of f
 * was put aside, because OpenSM would drop it; or a negative errno: no, and it is logged why not. */
int writer_check_in_place(struct opensm_writer *w, struct file_bytes f, const struct control_file *copy);
/* *ret: the tables of the file in place; NULL: there is no usable file. Sets conf_in_place. Returns 0 or -ENOMEM. */
int writer_read_in_place(struct opensm_writer *w, struct opensm_tables *tables, const struct opensm_tables **ret);

/* Is f the file that this process wrote last? */
bool writer_is_last_file(const struct opensm_writer *w, struct file_bytes f);
/* Was the last file written to the present path? */
bool writer_is_last_path(const struct opensm_writer *w);
void writer_remember_file(struct opensm_writer *w, struct file_bytes f, bool is_done);

/* Reports damage to a file that this process wrote. */
void writer_report_damaged(struct opensm_writer *w, const char *what);
/* The consequence of a file that pkeyd does not replace, for the admin; a static string. */
const char *writer_describe_consequence(const struct opensm_writer *w);
/* After pkeyd's first file is in place of one that was handed over: that, and which broadcast groups end with it. */
void writer_report_handover(struct opensm_writer *w);
void writer_report_lost_groups(struct opensm_writer *w);

/* --- the files of the phases (opensm_writer_phases.c) ----------------------------------------------------------------- */

/* These return 0 or a negative errno. */

/* Computes the files of all phases, from the tables as they are to those of the decision. */
int writer_prepare(struct opensm_writer *w);
int writer_render(struct opensm_writer *w, enum opensm_phase phase, struct file_bytes *ret);
/* Holds the bases of a phase that the rule does not admit, and announces the rest to the knowledge. */
int writer_admit(struct opensm_writer *w, enum opensm_phase phase, enum opensm_phase hold_from);
/* Goes from the tables as they are to the file of the policy in one step. Held bases stay as the tables have them. */
int writer_admit_at_once(struct opensm_writer *w);
/* The next phase in which the rule admits a change; OPENSM_N_PHASES: there is none. */
int writer_find_phase(struct opensm_writer *w, enum opensm_phase from, enum opensm_phase *ret);
/* No later phase changes anything, so that the file of this one is that of the policy. */
bool writer_is_last_phase(const struct opensm_writer *w, enum opensm_phase phase);
