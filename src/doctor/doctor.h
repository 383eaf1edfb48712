/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * doctor/: is this fabric safe, and is this host configured correctly?
 *
 *     subnet, observed tables, the answers to the probe (probe.h) --.
 *     policy, settings, files of this host -------------------------+--> struct doctor_facts --> diagnoses
 *
 * Partitions separate tenants only if the rest of the fabric is secured. A host that can write P_Key tables without an M_Key, that
 * the SA trusts, or that is a full member of the partition of all hosts can bypass any policy. The doctor checks for these. It
 * turns facts into a list of diagnoses: what is wrong, where, why it matters, and what an admin can do about it. The last two are
 * constant texts for each code, in diagnosis-codes.def. The conditions are in
 *
 *     diagnose_protection  M_Keys, the SA, subnet managers, a second writer of tables
 *     diagnose_tables      contents and size of tables, enforcement
 *     diagnose_names       nodes without a name of their own, names and GUIDs that two devices have
 *     diagnose_host        settings, policy, state directory and OpenSM's files on this host
 *
 * diagnose.h is what these files share.
 *
 * Invariants: a diagnosis states only what is known. A query that was not sent or not answered yields no diagnosis except the one
 * that reports this. Absent facts (no policy, no OpenSM) yield no diagnoses. The facts never contain a key, only whether there is
 * one.
 *
 * This folder does not know how facts are gathered, how diagnoses are printed, or whether the daemon runs.
 */

#include "doctor/probe.h"
#include "settings/settings.h"
#include "verify/verify.h"

#define DOCTOR_MAX_PLACES  64   /* listed in one diagnosis; more are only counted */
#define DOCTOR_FEW_FULL    3    /* unexpected full members of the default partition that need no diagnosis */
#define DOCTOR_NEARLY_FULL 80   /* per cent of a table */

enum diagnosis_code {
#define X(name, text, severity, why, advice) DIAGNOSIS_##name,
#include "doctor/diagnosis-codes.def"
#undef X
        DIAGNOSIS_CODE_MAX,
};

/* The constant parts of a diagnosis, from diagnosis-codes.def. */
struct diagnosis_words {
        const char *code;   /* "m-key.zero" */
        const char *why;    /* why it matters */
        const char *advice; /* what to do */
        enum finding_severity severity;
};
extern const struct diagnosis_words diagnosis_words[DIAGNOSIS_CODE_MAX];

/* Where: a port, or a node as its first port. With SUBNET_NONE it is something on this host, named by the text. */
struct diagnosis_place {
        uint32_t port;
        const char *text; /* "": nothing to add to the port */
};

struct diagnosis {
        enum diagnosis_code code;
        const char *title;  /* what is wrong, with numbers; one line, no full stop */
        const struct diagnosis_place *places;
        uint32_t n_places;  /* at most DOCTOR_MAX_PLACES */
        uint32_t n_more;    /* places not listed */
        const uint32_t *ports; /* the ports of all places, listed or not, to be folded; NULL if a place has a text */
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
        const char *path;         /* NULL: not in use */
        const char *error;        /* why it cannot be used; NULL: it can, or it does not exist */
        bool exists;
        bool changeable;          /* it exists, and users other than root and pkeyd's can change or replace it */
};

/* Findings about a file, as text lines. */
struct doctor_lines {
        const char *const *items;
        uint32_t n;
};

/* OpenSM's partitions.conf on this host. */
struct doctor_opensm {
        const char *path;        /* NULL: there is no file to check */
        bool discarded;          /* OpenSM drops the whole file */
        struct doctor_lines odd; /* lines that OpenSM probably reads differently than intended, or why it drops the file */
        bool is_edited;          /* pkeyd wrote it, and it was edited or truncated since */
        bool is_foreign;         /* pkeyd must write it by its settings, but did not create it */
        const char *instead_of;  /* the file that pkeyd writes, if opensm.conf names `path` instead; else NULL */
};

struct doctor_host {
        struct doctor_file settings_file, policy_file, state_dir;
        struct doctor_lines settings_errors, policy_errors, policy_warnings, secret_errors;
        struct doctor_lines unreadable; /* files that the user of the service cannot read, and why */
        bool state_damaged, state_of_other_fabric;
        const char *verbs_error; /* NULL: libibverbs can read this port */
        struct doctor_opensm opensm;
};

/* Borrows everything, changes nothing. */
struct doctor_facts {
        const struct settings *settings;
        struct doctor_host host;
        /* NULL: the fabric could not be read; then only this host is checked */
        const struct subnet *subnet;
        const struct observed *observed;
        const struct probe_result *probe;
        const char *sa_error;      /* why the SA was not queried; NULL: it was, or there is none */
        /* NULL: there is no policy, or it was refused */
        const struct desired *desired;
        const struct verification *verification;
};

/* Returns 0 or -ENOMEM; in the arena. */
int doctor_diagnose(struct arena *a, const struct doctor_facts *facts, struct diagnoses *ret);
