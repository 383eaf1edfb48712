/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * generation/: a policy with its settings, as both files were at one time.
 *
 * A generation comes into force when the planner has accepted it for the fabric; then it gets a number. The content of the files
 * never changes. Digests of what was reported about it are kept with it, so that nothing is reported twice; and the facts: who
 * brought it into force and when, what it changed, how it ended.
 *
 * An *undo* is a generation with the files of an older one, and with the layout of the tables as they were then.
 *
 * A caller that needs a generation for longer than a call holds a reference. The folder does not know when a generation comes
 * into force.
 */

#include "ib/m_keys.h"
#include "policy/policy.h"
#include "settings/settings.h"
#include "subnet/layout.h"

/* Who or what made a change. */
enum origin_kind {
        ORIGIN_UNKNOWN, /* an older version of pkeyd did not store it */
        ORIGIN_START,   /* of pkeyd */
        ORIGIN_SIGNAL,  /* SIGHUP */
        ORIGIN_BUS,     /* a caller on D-Bus */
        ORIGIN_COMMAND, /* pkeyctl, without pkeyd */
        ORIGIN_TIMEOUT, /* a change was not confirmed in time */
};

struct origin {
        enum origin_kind kind;
        uint32_t uid;  /* of ORIGIN_BUS and ORIGIN_COMMAND */
        char user[72]; /* its name, or "rest:" and that of a client of the REST API; "": not known */
};

/* "start", "signal", "bus", "command", "timeout", "unknown": static, also in records and JSON; and back, false: no such word. */
const char *origin_to_string(enum origin_kind kind);
bool origin_from_string(const char *word, enum origin_kind *ret);

#define CONFIRM_MAX            (7 * 24 * 3600) /* seconds */
#define GENERATION_MAX_CHANGES 100 /* sentences */
#define GENERATION_MAX_HELD    32  /* bases that are named */

/* What happened to a generation. Times: seconds since 1970, 0: never. */
struct generation_facts {
        uint64_t time;                 /* when it came into force */
        struct origin origin;
        uint64_t undoes, restores;     /* the generation that it undoes, and the one whose files it has again; 0: it is no undo */
        bool releases_stranded;        /* not stored: leases that have no place in it are released; false: they refuse it */
        uint64_t confirm_for;          /* seconds after which it is undone, unless it is confirmed; 0: it stays */
        uint64_t confirm_until;        /* the time at which they end */
        uint64_t confirmed;
        struct origin confirmed_by;
        char outcome[16];              /* of the last sweep that did not fail: "carried-out", "partial"; "": none yet */
        uint64_t ended;                /* when that was so first */
        uint32_t n_held;               /* bases that were held then */
        uint16_t held[GENERATION_MAX_HELD]; /* the first ones */
        size_t settings_size;          /* of the pkeyd.yaml that is stored with it; it may have been edited since */
        const char *const *changes;    /* one sentence each, which are stored up to 4096 bytes; NULL: not known, or none */
        size_t n_changes;
};

/* True while the change waits to be confirmed. */
static inline bool generation_waits(const struct generation_facts *f)
{
        return f->confirm_for > 0 && f->confirmed == 0;
}

struct generation {
        unsigned n_refs;
        struct arena *arena;    /* owns what follows */
        uint64_t number;        /* 0: not in force yet */
        struct generation_facts facts;
        const struct layout *layout; /* the indexes to which an undo returns; NULL: none */
        struct settings *settings;
        struct policy *policy;  /* NULL: none was read (pkeyctl show) */
        struct m_keys *m_keys;  /* owned; NULL: none */
        uint64_t sm_key;        /* for MADs to the SA; 0: none */
        const char *neighbors;  /* OpenSM's file of links, for the M_Keys of the first discovery; NULL: none, or used already */
        size_t n_neighbors;
        const char *settings_bytes, *policy_bytes;
        size_t n_settings_bytes, n_policy_bytes;

        uint64_t *reported;     /* malloc'ed; digests of the findings that were logged last; NULL: none was */
        uint64_t n_reported;    /* findings that were logged */
        size_t n_refused;       /* errors of the last refusal by the planner that was logged; 0: it did not refuse */
        bool carried_out;       /* the result of its first sweep was logged */
        bool is_off_file;       /* partitions.yaml and pkeyd.yaml are not what is in force; shown for an undo only */
        bool audits;            /* pkeyd writes nothing: mode: audit, or it saw a master SM that the settings do not expect */
};

/* With default settings, without a policy. Returns owned, with one reference, or NULL when out of memory. */
struct generation *generation_new(void);
struct generation *generation_ref(struct generation *g);
/* Accepts NULL, returns NULL. */
struct generation *generation_unref(struct generation *g);
DEFINE_CLEANUP(struct generation *, generation_unref)
#define _cleanup_generation_ _cleanup_(generation_unref_p)

/* Parses a file's bytes, which must live in g->arena. Returns 0, -EBADMSG (findings say why), -ENOMEM. */
int generation_read_settings(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);
int generation_read_policy(struct generation *g, const char *file, const char *bytes, size_t n, struct findings *findings);

/* g takes the place of another generation with the same policy: its number, facts and layout. If out of memory, some of what it
 * changed, or the layout, is lost. */
void generation_continue(struct generation *g, const struct generation *other);

/* True if both files have the same bytes in both generations, and the keys are the same. */
bool generation_equal(const struct generation *a, const struct generation *b);
bool generation_has_policy(const struct generation *g, const char *bytes, size_t n);
bool generation_has_settings(const struct generation *g, const char *bytes, size_t n);

/* True the first time that it is called with such a finding: each is reported once for a generation, or again after thousands of
 * others. */
bool generation_reports(struct generation *g, const struct finding *finding);
