/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * settings/: pkeyd.yaml, what is particular to this host and this daemon.
 *
 * One table (settings_schema) is the only place where a key, its type, its range and its default stand; the parser, the
 * manual page check and the error messages come from it. Unknown keys are errors, like in the policy.
 *
 * This folder refuses to know who belongs to which partition.
 */

#include "ib/types.h"
#include "util/arena.h"
#include "util/findings.h"

enum settings_mode { MODE_ENFORCE, MODE_AUDIT };
enum settings_role { ROLE_ALWAYS, ROLE_FOLLOW_SM };
enum settings_unmanaged { UNMANAGED_REMOVE, UNMANAGED_KEEP };
enum settings_enforcement { ENFORCEMENT_BOTH, ENFORCEMENT_IN, ENFORCEMENT_OUT, ENFORCEMENT_OFF };
enum settings_overflow { OVERFLOW_REFUSE, OVERFLOW_DISABLE };
enum settings_writer { WRITER_DIRECT, WRITER_OPENSM };

/* How OpenSM is told to read its file again. */
enum settings_reload {
        RELOAD_NOT_SET,
        RELOAD_SYSTEMD, /* the processes of a unit of systemd */
        RELOAD_PIDFILE,
        RELOAD_PID,
};

struct settings {
        const char *ca;                   /* NULL: the first active InfiniBand port */
        unsigned port;                    /* 0: the first active one */
        enum settings_mode mode;
        enum settings_writer writer;
        bool beside_opensm;               /* WRITER_DIRECT, and the SM of the fabric may write tables, too */
        enum settings_role role;          /* when to write: always, or while the master SM is on this host (control/sm_follow.h) */
        enum settings_unmanaged unmanaged;
        enum settings_enforcement enforcement;
        enum settings_overflow enforcement_overflow;
        bool repair_index0;
        usec_t sweep_interval;
        usec_t absent_hold;               /* how long a port that is gone counts as holding what it held; USEC_INFINITY: always */
        usec_t timeout;                   /* for one MAD */
        unsigned window;                  /* upper bound of MADs in flight */
        const char *m_key_file;           /* absolute path; NULL: none. What stands in it: ib/m_keys.h */
        const char *sa_key_file;          /* absolute path of a file with the SM_Key for MADs to the SA; NULL: none */
        usec_t violations_interval;       /* how often each counter is looked at */
        unsigned violations_threshold;    /* of violations in an interval, below which nothing is told */
        bool violations_clear_saturated;
        const char *metrics_textfile;     /* absolute path; NULL: none is written */
        const char *opensm_partitions_conf; /* absolute path; there with WRITER_OPENSM */
        enum settings_reload opensm_reload; /* set with WRITER_OPENSM */
        const char *opensm_unit;          /* of RELOAD_SYSTEMD */
        const char *opensm_pidfile;       /* of RELOAD_PIDFILE; absolute path */
        unsigned opensm_pid;              /* of RELOAD_PID */
        const char *opensm_config;        /* absolute path of opensm.conf; NULL: OpenSM's defaults */
        const char *opensm_mirror;        /* absolute path of the file that is kept equal to the policy; with WRITER_DIRECT only;
                                             NULL: none */
};

/* What a value looks like. */
enum settings_type {
        SETTINGS_NAME,     /* a word */
        SETTINGS_NUMBER,
        SETTINGS_DURATION, /* number and unit */
        SETTINGS_BOOL,
        SETTINGS_WORD,     /* one of `words` */
        SETTINGS_SECRET,   /* the absolute path of a file with a secret; no message shows the value, for it may be the secret
                              itself, put there by mistake */
        SETTINGS_PATH,     /* the absolute path of a file */
        SETTINGS_RELOAD,   /* systemd:UNIT, pidfile:PATH or pid:N; all members opensm_reload and what belongs to it */
        SETTINGS_MAP,      /* a map: the keys in it are the lines that follow, whose names begin with its own and a dot */
};

/* A line of the schema. */
struct settings_key {
        const char *name;              /* as messages have it: violations.interval is `interval` in the map `violations` */
        enum settings_type type;
        size_t offset;                 /* of the member of struct settings; 0 for SETTINGS_MAP, which has none */
        uint64_t min, max;             /* of numbers; of durations in microseconds */
        const char *accepted;          /* the accepted values, for messages; not of SETTINGS_WORD and SETTINGS_MAP */
        const char *const *words;      /* of SETTINGS_WORD: the accepted values in the order of the enum */
        size_t n_words;
        const char *standard;          /* the default, as it would be written in the file; NULL: none */
};

extern const struct settings_key settings_schema[];
extern const size_t settings_n_keys;

/* The defaults, as if the file were empty. */
void settings_default(struct settings *ret);

/* The partition file of OpenSM that pkeyd writes; NULL: none. */
static inline const char *settings_opensm_file(const struct settings *s)
{
        return s->writer == WRITER_OPENSM ? s->opensm_partitions_conf : s->opensm_mirror;
}

/* pkeyd writes the tables, and nothing says what an SM that writes them, too, is to have in its file. */
static inline bool settings_leave_out_the_sm(const struct settings *s)
{
        return !settings_opensm_file(s) && !s->beside_opensm;
}

/* Reads pkeyd.yaml over the defaults. Returns 0, -EBADMSG (findings say why), -ENOMEM. */
int settings_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                   struct settings **ret);
