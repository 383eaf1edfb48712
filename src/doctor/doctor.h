/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * doctor/: is this fabric safe, and is this host set up right?
 *
 *     subnet, observed tables, what the probe was told (probe.h) --.
 *     policy, settings, what is on this host ----------------------+--> struct doctor_facts --> diagnoses
 *
 * Partitions keep tenants apart only if other things are as they should be: whoever may write P_Key tables with any M_Key, or
 * be trusted by the SA, or is a full member of what everybody is a member of, needs no gap in the policy. The doctor knows
 * what these things are. It takes facts and gives a list of diagnoses: what is wrong, where, why that matters, and what an
 * admin can do about it. Why and what to do stand with each code in diagnosis-codes.def and nowhere else.
 *
 * Invariants: nothing is said that is not known. A question that was not asked or not answered gives no diagnosis but the one
 * that says so, for "could not be asked" is something to know, too. Facts that are absent (no policy, no OpenSM) leave out
 * what would follow from them. No key is in the facts, only whether there is one.
 *
 * This folder refuses to know how facts are gathered and how diagnoses are printed. Whether a daemon is running it cannot
 * see either.
 */

#include "doctor/probe.h"
#include "settings/settings.h"
#include "verify/verify.h"

#define DOCTOR_MAX_PLACES  64   /* of one diagnosis; the others are counted */
#define DOCTOR_FEW_FULL    3    /* full members of the default partition, beside SMs and this port, that are nothing to tell */
#define DOCTOR_NEARLY_FULL 80   /* per cent of a table */

enum diagnosis_code {
#define X(name, text, severity, why, advice) DIAGNOSIS_##name,
#include "doctor/diagnosis-codes.def"
#undef X
        DIAGNOSIS_CODE_MAX,
};

/* What stands in diagnosis-codes.def of each code. */
struct diagnosis_words {
        const char *code;   /* "m-key.zero" */
        const char *why;    /* it matters */
        const char *advice; /* what to do */
        enum finding_severity severity;
};
extern const struct diagnosis_words diagnosis_words[DIAGNOSIS_CODE_MAX];

/* Where: a port, or a node by its first port, or (SUBNET_NONE) something on this host; text says more, or what it is. */
struct diagnosis_place {
        uint32_t port;
        const char *text; /* "" if the port says it all */
};

struct diagnosis {
        enum diagnosis_code code;
        const char *title;  /* what, with numbers; one line, no full stop */
        const struct diagnosis_place *places;
        uint32_t n_places;  /* at most DOCTOR_MAX_PLACES */
        uint32_t n_more;    /* that are not listed */
        const uint32_t *ports; /* all of them, listed or not, if no place has a text: they can be folded */
        uint32_t n_ports;
};

/* Worst first, then in the order of diagnosis-codes.def. */
struct diagnoses {
        const struct diagnosis *items;
        uint32_t n;
        uint32_t n_errors, n_warnings, n_notes;
};

/* A file or directory of this host. */
struct doctor_file {
        const char *path;         /* NULL: it is of no concern */
        const char *error;        /* why it cannot be used; NULL: it can, or it is not there */
        bool exists;
        bool changeable;          /* by others than root and who pkeyd runs as, or they may replace it */
};

/* Lines for people, as they stand: what a reader of a file complained about. */
struct doctor_lines {
        const char *const *items;
        uint32_t n;
};

/* OpenSM's partitions.conf on this host. */
struct doctor_opensm {
        const char *path;        /* NULL: there is none to look at */
        bool discarded;          /* OpenSM drops the whole file */
        struct doctor_lines odd; /* where it does what the author hardly meant, or why it drops the file */
        bool is_edited;          /* pkeyd wrote it, and it is not what pkeyd wrote any more */
        bool is_foreign;         /* pkeyd did not write it, though by its settings it is to */
        const char *instead_of;  /* the file that pkeyd writes by its settings, where OpenSM reads `path` by opensm.conf; or NULL */
};

struct doctor_host {
        struct doctor_file settings_file, policy_file, state_dir;
        struct doctor_lines settings_errors, policy_errors, policy_warnings, secret_errors;
        bool state_damaged;
        const char *verbs_error; /* NULL: libibverbs sees this port */
        struct doctor_opensm opensm;
};

/* Everything borrowed, and none of it changed. */
struct doctor_facts {
        const struct settings *settings;
        struct doctor_host host;
        /* NULL: the fabric could not be looked at; then only this host is judged */
        const struct subnet *subnet;
        const struct observed *observed;
        const struct probe_result *probe;
        const char *sa_error;      /* why the SA was not asked; NULL: it was, or there is none */
        /* NULL: there is no policy, or it is refused */
        const struct desired *desired;
        const struct verification *verification;
};

/* Returns 0 or -ENOMEM; in the arena. */
int doctor_diagnose(struct arena *a, const struct doctor_facts *facts, struct diagnoses *ret);
