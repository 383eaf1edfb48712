/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * settings/: pkeyd.yaml, the configuration of pkeyd on this host.
 *
 * One table, settings_schema, defines each key with its type, range and default; the parser, the error messages and the check
 * of the manual page use it. Unknown keys are errors, as in the policy.
 *
 * This folder does not know which port is a member of which partition.
 */

#include "ib/types.h"
#include "util/arena.h"
#include "util/findings.h"

enum settings_mode { MODE_ENFORCE, MODE_AUDIT };
enum settings_role { ROLE_ALWAYS, ROLE_FOLLOW_SM };
enum settings_identity { IDENTITY_OFF, IDENTITY_PIN };
enum settings_unmanaged { UNMANAGED_REMOVE, UNMANAGED_KEEP };
enum settings_enforcement { ENFORCEMENT_BOTH, ENFORCEMENT_IN, ENFORCEMENT_OUT, ENFORCEMENT_OFF };
enum settings_overflow { OVERFLOW_REFUSE, OVERFLOW_DISABLE };
enum settings_writer { WRITER_DIRECT, WRITER_OPENSM };
enum settings_store { STORE_SQLITE, STORE_ETCD };

/* How pkeyd makes OpenSM read its file again. */
enum settings_opensm_reload {
        OPENSM_RELOAD_NOT_SET,
        OPENSM_RELOAD_SYSTEMD, /* a signal to the processes of a systemd unit */
        OPENSM_RELOAD_PIDFILE, /* ... to the process whose ID is in a file */
        OPENSM_RELOAD_PID,     /* ... to the process with a given ID */
};

#define SETTINGS_MAX_FILE_SIZE ((size_t) 1 << 20) /* of pkeyd.yaml */

struct settings {
        const char *ca;                   /* NULL: the CA of the first active InfiniBand port */
        unsigned port;                    /* 0: the first active port */
        enum settings_mode mode;
        enum settings_writer writer;
        bool beside_opensm;               /* write with WRITER_DIRECT although the SM may write tables, too */
        enum settings_role role;          /* write always, or while the master SM is on this host (host/sm_follow.h) */
        enum settings_identity identity;  /* IDENTITY_PIN: names are bound to node GUIDs (pins/pins.h) */
        enum settings_unmanaged unmanaged;
        enum settings_enforcement enforcement;
        enum settings_overflow enforcement_overflow;
        bool repair_index0;
        usec_t sweep_interval;
        usec_t absent_hold;               /* how long an absent port counts as holding its last entries; USEC_INFINITY: forever */
        usec_t timeout;                   /* for one MAD */
        unsigned window;                  /* limit of MADs in flight */
        const char *m_key_file;           /* absolute path; NULL: none. Format: ib/m_keys.h */
        const char *sa_key_file;          /* absolute path of a file with the SM_Key for MADs to the SA; NULL: none */
        usec_t violations_interval;       /* how often each counter is read */
        unsigned violations_threshold;    /* of violations in an interval, below which none is reported */
        bool violations_clear_saturated;
        unsigned history_keep, history_days; /* how many generations are kept in the store, and for how long */
        enum settings_store store;        /* where pkeyd remembers: in a file of this host, or in a cluster that both heads share */
        const char *const *etcd_endpoints; /* of STORE_ETCD: URLs, "https://head1:2379"; at least one */
        unsigned n_etcd_endpoints;
        const char *etcd_ca_file, *etcd_cert_file, *etcd_key_file; /* absolute paths; NULL: none */
        const char *etcd_user, *etcd_password_file; /* both or none */
        usec_t etcd_lease;                /* of the lock; whole seconds */
        const char *metrics_textfile;     /* absolute path of the file to write; NULL: none */
        const char *opensm_partitions_conf; /* absolute path; not NULL with WRITER_OPENSM */
        enum settings_opensm_reload opensm_reload; /* not OPENSM_RELOAD_NOT_SET with WRITER_OPENSM */
        const char *opensm_unit;          /* of OPENSM_RELOAD_SYSTEMD */
        const char *opensm_pidfile;       /* of OPENSM_RELOAD_PIDFILE; absolute path */
        unsigned opensm_pid;              /* of OPENSM_RELOAD_PID */
        const char *opensm_config;        /* absolute path of opensm.conf; NULL: OpenSM's defaults */
        const char *opensm_mirror;        /* absolute path of a partitions.conf that pkeyd keeps equal to the policy; with
                                             WRITER_DIRECT only; NULL: none */
};

/* The type of a value. */
enum settings_type {
        SETTINGS_NAME,     /* of a device, or of a user of another program */
        SETTINGS_NUMBER,
        SETTINGS_DURATION, /* number and unit */
        SETTINGS_BOOL,
        SETTINGS_WORD,     /* one of `words` */
        SETTINGS_SECRET,   /* the absolute path of a file with a secret; no message shows the value, because it may be the
                              secret itself, written here by mistake */
        SETTINGS_PATH,     /* the absolute path of a file */
        SETTINGS_URLS,     /* one or more of http(s)://HOST[:PORT]; sets etcd_endpoints */
        SETTINGS_RELOAD,   /* systemd:UNIT, pidfile:PATH or pid:N; sets opensm_reload and the member of its kind */
        SETTINGS_MAP,      /* a map; the names of the keys in it begin with its name and a dot */
};

/* One key of pkeyd.yaml. */
struct settings_key {
        const char *name;              /* as in messages: violations.interval is `interval` in the map `violations` */
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

/* Sets the defaults, as an empty file does. */
void settings_default(struct settings *ret);

/* The partition file of OpenSM that pkeyd writes; NULL: none. */
static inline const char *settings_opensm_file(const struct settings *s)
{
        return s->writer == WRITER_OPENSM ? s->opensm_partitions_conf : s->opensm_mirror;
}

/* True if pkeyd writes the tables itself and nothing keeps an SM from writing them, too: it has no file with the same content. */
static inline bool settings_conflict_with_sm(const struct settings *s)
{
        return !settings_opensm_file(s) && !s->beside_opensm;
}

/* Reads pkeyd.yaml; a missing key gets its default. Returns 0, -EBADMSG (refused: findings say why), -ENOMEM. *ret lives in the
 * arena and is set only on 0. */
int settings_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                   struct settings **ret);
