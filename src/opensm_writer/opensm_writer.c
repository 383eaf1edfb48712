/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm_writer/opensm_writer.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "events/event_text.h"
#include "opensm/admission.h"
#include "opensm/unmanaged.h"
#include "util/text.h"

#define FIRST_DELAY (50 * USEC_PER_MSEC)
#define MAX_DELAY   (1 * USEC_PER_SEC)
#define MAX_NAMED   16
/* How long OpenSM may take to carry out a phase, and to read a file that changes no table. */
#define PATIENCE          (20 * USEC_PER_SEC)
#define PATIENCE_PER_PORT (10 * USEC_PER_MSEC)
#define SETTLE            (1 * USEC_PER_SEC)
#define SETTLE_PER_PORT   (1 * USEC_PER_MSEC)

enum step {
        STEP_IDLE,
        STEP_READING,       /* the file in place, and PATH.before-pkeyd */
        STEP_PUTTING_ASIDE, /* a copy of a file that OpenSM cannot parse */
        STEP_STORING,       /* the writes that the next file may make OpenSM send */
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

/* The file that this process wrote last, to recognise it when it was cut short. */
struct written_file {
        char *path, *bytes;   /* malloc'ed; NULL: no file was written, or memory was out */
        size_t n;
        bool is_done;         /* every table matched it, or OpenSM had enough time to carry it out */
        bool is_after_open;   /* when it was written, every table held 0xffff and nothing else */
};

struct opensm_writer {
        struct log *log;
        struct written_file last;
        char problem[CONTROL_TEXT_MAX]; /* logged last; "": solved */

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

        struct arena *read_arena; /* for one survey */
        struct observed *seen;    /* its result */
        struct survey *survey;
        struct mad_stage stage;   /* of the survey */
};

struct opensm_writer *opensm_writer_new(struct log *log)
{
        struct opensm_writer *w = calloc(1, sizeof(*w));

        if (w) {
                w->log = log;
                w->due = USEC_INFINITY;
        }
        return w;
}

struct opensm_writer *opensm_writer_free(struct opensm_writer *w)
{
        if (!w)
                return NULL;
        opensm_writer_drop(w);
        free(w->last.bytes);
        free(w->last.path);
        free(w);
        return NULL;
}

/* --- problems ----------------------------------------------------------------------------------------------------- */

/* Logs a problem, unless it is the one that was logged last. Returns r. */
__attribute__((format(printf, 4, 5))) static int report(struct opensm_writer *w, int r, enum log_event event, const char *format,
                                                        ...)
{
        struct log_about about = { .generation = w->job.generation->number };
        char text[sizeof(w->problem)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (strcmp(text, w->problem) == 0)
                return r;
        (void) strcpy(w->problem, text);
        log_add(w->log, event, &about, "%s", text);
        return r;
}

const char *opensm_writer_problem(const struct opensm_writer *w)
{
        return w->problem;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* Functions that take a step return 0, or the error that ends the job. */
static int go_to(struct opensm_writer *w, enum step step)
{
        w->step = step;
        w->asked = false;
        w->due = USEC_INFINITY;
        return 0;
}

static bool has_held(const struct opensm_writer *w)
{
        static const struct opensm_bases none;

        return memcmp(&w->phases.held, &none, sizeof(none)) != 0;
}

static void report_held(struct opensm_writer *w)
{
        _cleanup_text_ struct text names = {};
        uint32_t n = 0;

        for (uint32_t base = 1; base <= P_KEY_BASE_MASK; base++)
                if (opensm_bases_have(&w->phases.held, (uint16_t) base) && n++ < MAX_NAMED)
                        text_add(&names, "%s0x%04x", n > 1 ? ", " : "", base);
        if (n > MAX_NAMED)
                text_add(&names, " and %u more", n - MAX_NAMED);
        (void) report(w, 0, LOG_EVENT_APPLY_PARTIAL,
                      "generation %" PRIu64 ": held back: partition%s %s; pkeyd does not know what some ports hold, so the change "
                      "could connect ports that must not talk, or cut off ports that may; OpenSM carries out the rest; "
                      "'pkeyctl show held' lists the ports",
                      w->job.generation->number, text_plural(n), names.failed ? "some" : names.bytes);
}

static int end(struct opensm_writer *w, int r)
{
        knowledge_settle_expected(w->job.knowledge, false); /* writes of a file that was not put in place */
        if (r == 0 && has_held(w))
                report_held(w);
        else if (r == 0)
                w->problem[0] = '\0';
        w->r = r;
        return go_to(w, STEP_ENDED);
}

static int wait_until(struct opensm_writer *w, usec_t at)
{
        (void) go_to(w, STEP_WAITING);
        w->due = at;
        return 0;
}

static int begin_last_survey(struct opensm_writer *w, usec_t now)
{
        w->is_last_survey = true;
        w->phase = OPENSM_GRANT;
        return wait_until(w, now);
}

bool opensm_writer_take_end(struct opensm_writer *w, int *ret_r)
{
        if (w->step != STEP_ENDED)
                return false;
        *ret_r = w->r;
        opensm_writer_drop(w);
        return true;
}

void opensm_writer_drop(struct opensm_writer *w)
{
        (void) go_to(w, STEP_IDLE);
        w->read_arena = arena_free(w->read_arena);
        w->arena = arena_free(w->arena);
        w->stopping = w->is_last_survey = w->handed_over = w->handover_unreported = w->is_phase = false;
        w->in_place = w->good = w->file = (struct file_bytes) {};
        w->good_tables = NULL;
        w->conf_in_place = NULL;
        w->conf_before_pkeyd = NULL;
        w->job = (struct opensm_job) {};
        w->path = NULL;
}

void opensm_writer_stop(struct opensm_writer *w)
{
        w->stopping = true;
}

const char *opensm_writer_phase(const struct opensm_writer *w)
{
        return opensm_phase_to_string(w->phase);
}

usec_t opensm_writer_due(const struct opensm_writer *w)
{
        return w->due;
}

/* --- the file in place -------------------------------------------------------------------------------------------- */

static bool same_bytes(struct file_bytes x, struct file_bytes y)
{
        return x.n == y.n && (x.n == 0 || memcmp(x.bytes, y.bytes, x.n) == 0);
}

static bool is_last_path(const struct opensm_writer *w)
{
        return w->last.path && strcmp(w->last.path, w->path) == 0;
}

static bool was_cut_short(const struct opensm_writer *w, struct file_bytes f)
{
        return is_last_path(w) && f.n < w->last.n && memcmp(f.bytes, w->last.bytes, f.n) == 0;
}

static void report_new_path(const struct opensm_writer *w)
{
        const struct log_about about = { .generation = w->job.generation->number };

        if (w->last.path && !is_last_path(w))
                log_add(w->log, LOG_EVENT_OPENSM_FILE_MOVED, &about,
                        "pkeyd writes OpenSM's partition file to %s from now on, and leaves %s as it is; check that OpenSM reads "
                        "the new one (partition_config_file in opensm.conf)", w->path, w->last.path);
}

/* Without memory for the copy, pkeyd will not recognise this file as its own if it is cut short later. */
static void remember_file(struct opensm_writer *w, struct file_bytes f, bool is_done)
{
        char *copy = malloc(MAX(f.n, (size_t) 1)), *path = strdup(w->path);

        report_new_path(w);
        free(w->last.bytes);
        free(w->last.path);
        if (copy)
                memcpy(copy, f.bytes, f.n);
        w->last = (struct written_file) {
                .path = path, .bytes = copy, .n = copy ? f.n : 0, .is_done = is_done && copy,
                .is_after_open = opensm_phases_are_open(&w->phases, w->job.snapshot->observed),
        };
}

static bool is_last_file(const struct opensm_writer *w, struct file_bytes f)
{
        return is_last_path(w) && same_bytes(f, (struct file_bytes) { w->last.bytes, w->last.n });
}

static int parse_as(struct opensm_writer *w, enum opensm_numbers numbers, struct file_bytes f, struct partitions_conf **ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = w->arena };
        int r = partitions_conf_parse(w->arena, numbers, w->path, f.bytes, f.n, &ignored, ret);

        return r == 0 && (*ret)->discarded ? -EBADMSG : r;
}

/* Returns 0; -EBADMSG: OpenSM would drop the file and fall back to its default partitions; -ENOTUNIQ: that depends on its build;
 * -ENOMEM. */
static int parse_file(struct opensm_writer *w, struct file_bytes f, struct partitions_conf **ret)
{
        int r = parse_as(w, OPENSM_NUMBERS_UNKNOWN, f, ret), c17, c23;
        struct partitions_conf *other;

        if (r != -EBADMSG)
                return r;
        c17 = parse_as(w, OPENSM_NUMBERS_C17, f, &other);
        c23 = parse_as(w, OPENSM_NUMBERS_C23, f, &other);
        if (c17 == -ENOMEM || c23 == -ENOMEM)
                return -ENOMEM;
        return c17 == -EBADMSG && c23 == -EBADMSG ? -EBADMSG : -ENOTUNIQ;
}

/* The consequence of a file that pkeyd does not replace, for the admin. */
static const char *describe_consequence(const struct opensm_writer *w)
{
        if (!w->job.mirror)
                return "nothing is written";
        return w->job.in_force ? "pkeyd carries out the policy without it, and OpenSM may undo that at its next heavy sweep"
                               : "when this host takes over, OpenSM will follow this file, not the policy";
}

/* A file that was handed over: what it gives to hosts that are down must stay in pkeyd's first file. */
static int refuse_numbers(struct opensm_writer *w)
{
        return report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                      "%s has a binary number (0b...), which only an OpenSM that was built with glibc 2.38 or later reads, so pkeyd "
                      "does not replace it; %s; to resolve this, write the number in hexadecimal, then hand the file over again: "
                      "cp --backup=numbered %s %s.before-pkeyd", w->path, describe_consequence(w), w->path, w->path);
}

static int refuse_file(struct opensm_writer *w, enum partitions_file_owner owner)
{
        const char *path = w->path;

        if (owner == PARTITIONS_FILE_OTHER)
                return report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                              "%s is written by the pkeyd of another fabric of this host, so this one does not replace it; %s; to resolve "
                              "this, give the OpenSM of each fabric a partition file of its own (opensm in pkeyd.yaml, "
                              "partition_config_file in opensm.conf), or hand the file over: cp --backup=numbered %s %s.before-pkeyd",
                              path, describe_consequence(w), path, path);
        if (owner == PARTITIONS_FILE_EDITED)
                return report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                              "%s was edited after pkeyd wrote it, so pkeyd does not replace it; %s; to resolve this, put the "
                              "change into the policy, then hand the file over to pkeyd: cp --backup=numbered %s %s.before-pkeyd",
                              path, describe_consequence(w), path, path);
        return report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                      "%s was not written by pkeyd, so pkeyd does not replace it; %s; to resolve this, make a policy of it with "
                      "pkeyctl import %s, then hand the file over to pkeyd: cp --backup=numbered %s %s.before-pkeyd", path,
                      describe_consequence(w), path, path, path);
}

/* Reports damage to a file that this process wrote. */
static void report_damaged_file(struct opensm_writer *w, const char *what)
{
        if (is_last_path(w))
                (void) report(w, 0, LOG_EVENT_OPENSM_FILE_BROKEN,
                              "%s, which pkeyd wrote, %s: at its next heavy sweep OpenSM would set tables that do not match "
                              "the policy; pkeyd writes the file again", w->path, what);
}

/* --- files of phases ---------------------------------------------------------------------------------------------- */

/* With the leases. */
static const struct policy *policy_of(const struct opensm_writer *w)
{
        return w->job.decision->memberships->policy;
}

/* No later phase changes anything, so that the file of this one is that of the policy. */
static bool is_last(const struct opensm_writer *w, enum opensm_phase phase)
{
        for (enum opensm_phase p = phase + 1; p < OPENSM_N_PHASES; p++)
                if (w->phases.needed[p])
                        return false;
        return true;
}

static int render(struct opensm_writer *w, enum opensm_phase phase, struct file_bytes *ret)
{
        _cleanup_findings_ struct findings findings = { .arena = w->arena };
        struct partitions_file file;
        int r;

        r = partitions_file_from_ports(w->arena, policy_of(w), w->conf_in_place, w->phases.tables[phase],
                                       w->phases.n_ports, &file);
        if (r < 0)
                return r;
        file.generation = w->job.generation->number;
        file.fabric = w->job.fabric;
        file.phase = is_last(w, phase) ? NULL : opensm_phase_to_string(phase);
        r = partitions_file_render(w->arena, &file, w->phases.allow_both, &findings, &ret->bytes, &ret->n);
        event_text_findings(w->log, &findings);
        return r;
}

static int write_file(struct opensm_writer *w, enum purpose purpose, struct file_bytes f)
{
        w->purpose = purpose;
        w->file = f;
        if (f.n > PARTITIONS_CONF_MAX_SIZE)
                return report(w, -EFBIG, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s would have %zu bytes, but pkeyd could not read back "
                              "more than %u; nothing is written", w->path, f.n, PARTITIONS_CONF_MAX_SIZE);
        return go_to(w, w->job.stores ? STEP_STORING : STEP_WRITING);
}

/* Holds the bases of a phase that the rule does not admit, and announces the rest to the knowledge. */
static int admit(struct opensm_writer *w, enum opensm_phase phase, enum opensm_phase hold_from)
{
        return opensm_admit(w->arena, &w->phases, phase, hold_from, w->job.snapshot->subnet, w->job.knowledge);
}

static int write_phase(struct opensm_writer *w, enum opensm_phase phase)
{
        struct file_bytes f;
        int r = render(w, phase, &f);

        w->phase = phase;
        return r < 0 ? r : write_file(w, FOR_PHASE, f);
}

/* The next phase in which the rule admits a change; OPENSM_N_PHASES: there is none. Returns 0 or -ENOMEM. */
static int find_phase(struct opensm_writer *w, enum opensm_phase from, enum opensm_phase *ret)
{
        for (*ret = from; *ret < OPENSM_N_PHASES; (*ret)++) {
                int r = w->phases.needed[*ret] ? admit(w, *ret, *ret) : 0;

                if (r < 0)
                        return r;
                if (w->phases.needed[*ret])
                        break;
        }
        return 0;
}

/* Without the two header lines, which have the generation and the phase. */
static struct file_bytes body_of(struct file_bytes f)
{
        for (int line = 0; line < 2; line++) {
                const char *newline = f.n > 0 ? memchr(f.bytes, '\n', f.n) : NULL;

                f.n = newline ? f.n - (size_t) (newline + 1 - f.bytes) : 0;
                f.bytes = newline ? newline + 1 : f.bytes;
        }
        return f;
}

/* To be called when the tables match the policy: only the file may have to change. */
static int write_content(struct opensm_writer *w)
{
        struct file_bytes f;
        int r = render(w, OPENSM_GRANT, &f);

        if (r < 0 || same_bytes(f, w->in_place))
                return end(w, r);
        return write_file(w, FOR_CONTENT, f);
}

/* Writes the file of the next phase, or begins the survey of all tables that ends the job. */
static int next_phase(struct opensm_writer *w, usec_t now, enum opensm_phase from)
{
        enum opensm_phase phase = OPENSM_N_PHASES;
        int r = w->stopping ? 0 : find_phase(w, from, &phase);

        if (r < 0)
                return r;
        if (phase < OPENSM_N_PHASES)
                return write_phase(w, phase);
        return w->stopping || w->n_files > 0 ? begin_last_survey(w, now) : write_content(w);
}

/* Puts the last file that was carried out back in place; without one, a file of the tables as they were. */
static int put_back(struct opensm_writer *w)
{
        const struct partitions_file_port *tables = w->good_tables ? w->good_tables : w->phases.tables[OPENSM_ADOPT];
        struct file_bytes f = w->good;
        int r = f.bytes ? 0 : render(w, OPENSM_ADOPT, &f);

        if (r == 0)
                r = opensm_expect(&w->phases, tables, w->job.snapshot->subnet, w->job.knowledge);
        return r < 0 ? r : write_file(w, TO_PUT_BACK, f);
}

/* The file stays: OpenSM may still be writing, and the file before it would give back what was revoked since. */
static int give_up(struct opensm_writer *w)
{
        const char *label, *reads_it = "";
        uint32_t first, n = opensm_phases_missing(&w->phases, w->phase, w->seen, &first);

        label = subnet_port_label(w->arena, w->job.snapshot->subnet, first);
        if (!w->job.generation->settings->opensm_config) /* else that was checked */
                reads_it = arena_printf(w->arena, "; check that OpenSM reads %s (partition_config_file in opensm.conf)", w->path) ?: "";
        return report(w, -ETIMEDOUT, LOG_EVENT_OPENSM_NOT_DONE,
                      "OpenSM did not carry out its partition file (%s): %u P_Key table%s from it, for example that of %s; the "
                      "file stays, and pkeyd continues with the next sweep%s",
                      opensm_phase_to_string(w->phase), n, n == 1 ? " differs" : "s differ", label ?: "?", reads_it);
}

static int report_put_back(struct opensm_writer *w, bool signalled)
{
        return report(w, -EIO, LOG_EVENT_OPENSM_FELL_BACK,
                      "OpenSM dropped its partition file (%s): every port is a full member of the default partition, and every "
                      "other entry is gone; pkeyd put the last good file back%s", opensm_phase_to_string(w->phase),
                      signalled ? " and signalled OpenSM to read it" : ", but could not signal OpenSM to read it");
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

static struct opensm_manager manager_of(const struct opensm_writer *w)
{
        return (struct opensm_manager) { policy_of(w), w->job.generation->settings->unmanaged == UNMANAGED_KEEP };
}

/* Endports that are not in the snapshot: those that are down, by the names and places that they had, and those that the policy, or
 * a partition that it does not manage, names by a GUID that was never seen. If the policy is ambiguous about one of them, all of
 * them keep what they have. */
static int resolve_absent(struct opensm_writer *w, struct opensm_absent *ret)
{
        const struct subnet *subnet = w->job.snapshot->subnet;
        const struct opensm_manager manager = manager_of(w);
        _cleanup_findings_ struct findings ignored = { .arena = w->arena };
        struct partitions_file_port *given = NULL;
        struct memberships *memberships;
        struct desired *desired = NULL;
        const struct guid *named;
        struct subnet *larger;
        uint32_t n_named;
        int r;

        r = opensm_named_guids(w->arena, &manager, w->conf_in_place, &named, &n_named);
        if (r == 0)
                r = known_extend_named(w->arena, w->job.known, subnet, named, n_named, NODE_UNKNOWN, &larger);
        if (r == 0 && w->handed_over)
                r = opensm_unmanaged_of_absent(w->arena, &manager, w->conf_in_place, larger, subnet, w->job.conf->allow_both_pkeys,
                                               &given);
        if (r < 0)
                return r;
        r = policy_resolve_known(w->arena, manager.policy, larger, &(struct policy_memory) { .pins = w->job.pins }, false, &ignored,
                                 &memberships);
        if (r == 0)
                r = desired_compute(w->arena, memberships, &desired);
        *ret = (struct opensm_absent) { larger, r == 0 ? desired : NULL, manager.keeps_unmanaged, given };
        return r == -EBADMSG ? 0 : r;
}

static int add_absent(struct opensm_writer *w, const struct opensm_tables *in_place, struct opensm_transition **transitions,
                      uint32_t *n)
{
        struct opensm_transition *absent, *all;
        struct opensm_absent known;
        uint32_t n_absent;
        int r = resolve_absent(w, &known);

        if (r == 0)
                r = opensm_transitions_of_absent(w->arena, &known, w->job.snapshot->subnet, w->job.knowledge, in_place, &absent,
                                                 &n_absent);
        if (r < 0)
                return r;
        all = arena_new_array(w->arena, struct opensm_transition, (size_t) *n + n_absent);
        if (!all)
                return -ENOMEM;
        memcpy(all, *transitions, *n * sizeof(*all));
        memcpy(all + *n, absent, n_absent * sizeof(*all));
        *transitions = all;
        *n += n_absent;
        return 0;
}

/* *ret: the tables of the file in place; NULL: there is no usable file. Then conf_in_place is the last file that this process
 * wrote, if it was damaged since, or else OpenSM's fallback: its broadcast group would be gone after OpenSM's next restart if the
 * new file did not have it. */
static int read_in_place(struct opensm_writer *w, struct opensm_tables *tables, const struct opensm_tables **ret)
{
        struct file_bytes f = w->in_place;
        struct partitions_conf *conf;
        int r;

        *ret = NULL;
        if (!f.bytes && !w->handed_over && is_last_path(w))
                f = (struct file_bytes) { w->last.bytes, w->last.n };
        if (!f.bytes) {
                r = w->handed_over ? 0 : partitions_conf_fallback(w->arena, w->path, &w->conf_in_place);
                w->conf_before_pkeyd = w->conf_in_place;
                return r;
        }
        r = parse_file(w, f, &conf);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        w->conf_in_place = conf;
        if (!w->in_place.bytes)
                return 0;
        *ret = tables;
        r = opensm_tables_of_file(w->arena, conf, tables);
        tables->is_done = w->last.is_done && is_last_file(w, w->in_place);
        return r;
}

/* Computes the files of all phases, from the tables as they are to those of the decision. */
static int prepare(struct opensm_writer *w)
{
        _cleanup_findings_ struct findings findings = { .arena = w->arena };
        const struct opensm_tables *in_place;
        struct opensm_tables tables;
        struct opensm_transition *transitions;
        uint32_t n_transitions;
        int r = read_in_place(w, &tables, &in_place);

        if (r == 0)
                r = opensm_transitions_of_plan(w->arena, w->job.decision->plan, w->job.snapshot->observed, w->job.knowledge,
                                               in_place, &transitions, &n_transitions);
        if (r == 0)
                r = add_absent(w, in_place, &transitions, &n_transitions);
        if (r < 0)
                return r;
        r = opensm_phases_compute(w->arena, transitions, n_transitions, in_place, w->job.conf->allow_both_pkeys, &findings,
                                  &w->phases);
        event_text_findings(w->log, &findings);
        return r;
}

/* Goes from the tables as they are to the file of the policy in one step. Held bases stay as the tables have them. */
static int admit_at_once(struct opensm_writer *w)
{
        int r = admit(w, OPENSM_GRANT, OPENSM_REVOKE);

        memset(w->phases.needed, 0, sizeof(w->phases.needed));
        return r;
}

/* Were the tables open already when the file in place was written, and has OpenSM not read it yet? If another process wrote it,
 * that is possible where the file is not the last one of its generation. */
static bool were_open_before_file(const struct opensm_writer *w)
{
        if (is_last_file(w, w->in_place))
                return w->last.is_after_open && !w->last.is_done;
        return w->is_phase;
}

/* Did OpenSM fall back to its default partitions since the last sweep, or while pkeyd did not run? */
static bool had_fallen_back(const struct opensm_writer *w)
{
        return !w->handed_over && !were_open_before_file(w) && opensm_phases_had_fallen_back(&w->phases, w->job.snapshot->observed);
}

/* OpenSM has fallen back to its default partitions: the fabric is open, so the file of the policy is written at once. */
static int answer_fallback(struct opensm_writer *w)
{
        int r = admit_at_once(w);

        if (is_last_path(w) || w->in_place.bytes || w->job.generation->number > 1) /* else it never had other partitions */
                (void) report(w, 0, LOG_EVENT_OPENSM_FELL_BACK,
                              "OpenSM fell back to its default partitions: every port is a full member of the default partition, "
                              "and every other entry is gone; pkeyd writes the file of the policy again");
        return r < 0 ? r : write_phase(w, OPENSM_GRANT);
}

/* No phases: OpenSM reads a mirror at any heavy sweep. */
static int write_mirror(struct opensm_writer *w)
{
        int r = admit_at_once(w);

        return r < 0 ? r : write_content(w);
}

/* To be called when every table that was read matches the policy: the file in place counts as carried out. */
static int accept_file_in_place(struct opensm_writer *w)
{
        if (w->in_place.bytes)
                remember_file(w, w->in_place, true);
        return write_content(w);
}

/* No phase changes anything. If tables differ nevertheless, they have entries without an effect, which OpenSM removes when it reads
 * the file again. */
static int write_without_phases(struct opensm_writer *w)
{
        int r = admit(w, OPENSM_ADOPT, OPENSM_ADOPT);
        uint32_t first;

        if (r < 0)
                return r;
        if (opensm_phases_missing(&w->phases, OPENSM_GRANT, w->job.snapshot->observed, &first) > 0)
                return write_phase(w, OPENSM_GRANT);
        return accept_file_in_place(w);
}

/* A port that the first file could cut off, or let through its switch port, whatever the file gives it. NULL: there is none, or
 * this is not the first file. */
static const struct opensm_transition *find_undecided(const struct opensm_writer *w)
{
        for (uint32_t i = 0; !w->phases.in_place && i < w->phases.n_ports; i++)
                if (w->phases.transitions[i].is_undecided)
                        return &w->phases.transitions[i];
        return NULL;
}

static int refuse_undecided(struct opensm_writer *w, const struct opensm_transition *undecided)
{
        return report(w, -EAGAIN, LOG_EVENT_OPENSM_NOT_DONE,
                      "%s is not written yet: the switch of %s did not answer all queries of discovery, so pkeyd does not know "
                      "whether it filters by P_Key, and its table lacks entries of that port; with any file OpenSM could cut the "
                      "port off or let others in; pkeyd writes the file when the switch answers", w->path, undecided->label);
}

/* The file in place was read, and may be replaced. */
static int begin(struct opensm_writer *w, usec_t now)
{
        const struct opensm_transition *undecided;
        int r = prepare(w);

        if (r < 0)
                return r;
        if (!w->job.mirror && had_fallen_back(w))
                return answer_fallback(w);
        undecided = find_undecided(w);
        if (undecided)
                return refuse_undecided(w, undecided);
        if (w->job.mirror)
                return write_mirror(w);
        w->good = w->in_place;
        w->good_tables = w->phases.in_place;
        return is_last(w, OPENSM_ADOPT) ? write_without_phases(w) : next_phase(w, now, OPENSM_ADOPT);
}

void opensm_writer_start(struct opensm_writer *w, usec_t now, const struct opensm_job *job)
{
        assert(w->step == STEP_IDLE);
        w->job = *job;
        w->began = now;
        w->n_files = 0;
        w->phase = OPENSM_ADOPT;
        w->phases = (struct opensm_phases) {};
        w->arena = arena_new();
        w->path = settings_opensm_file(job->generation->settings);
        w->copy_path = w->arena ? arena_printf(w->arena, "%s.before-pkeyd", w->path) : NULL;
        (void) (w->copy_path ? go_to(w, STEP_READING) : end(w, -ENOMEM));
}

/* The copy with the same content is the sign by which an admin hands the file over. */
static bool was_handed_over(const struct control_file *copy, struct file_bytes f)
{
        return copy->r == 0 && same_bytes((struct file_bytes) { copy->bytes, copy->n }, f);
}

/* May the file in place be replaced? */
static int check_file_in_place(struct opensm_writer *w, usec_t now, struct file_bytes f, const struct control_file *copy)
{
        enum partitions_file_owner owner = partitions_file_recognise(f.bytes, f.n, w->job.fabric, &w->is_phase);
        struct partitions_conf *conf;
        int r;

        if (owner == PARTITIONS_FILE_INTACT) {
                w->in_place = f;
        } else if (was_cut_short(w, f)) {
                report_damaged_file(w, "was cut short");
        } else if (was_handed_over(copy, f)) {
                r = parse_file(w, f, &conf);
                if (r == -ENOTUNIQ)
                        return refuse_numbers(w);
                w->handover_unreported = true;
                w->handed_over = r == 0;
                w->conf_in_place = w->handed_over ? conf : NULL;
        } else if (owner == PARTITIONS_FILE_EDITED && parse_file(w, f, &conf) == -EBADMSG) {
                w->file = f;
                return go_to(w, STEP_PUTTING_ASIDE);
        } else {
                return refuse_file(w, owner);
        }
        return begin(w, now);
}

static int files_read(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        const struct control_file *file = &event->files[0];
        struct file_bytes f;

        if (file->r == -ENOENT || (file->r == 0 && file->n == 0)) {
                report_damaged_file(w, file->r == 0 ? "is empty" : "is gone");
                return begin(w, now);
        }
        if (file->r < 0)
                return report(w, file->r, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s cannot be read: %s; %s", w->path, strerror(-file->r),
                              describe_consequence(w));
        f = (struct file_bytes) { arena_strndup(w->arena, file->bytes, file->n), file->n };
        return f.bytes ? check_file_in_place(w, now, f, &event->files[1]) : -ENOMEM;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static int aside_written(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        if (event->r < 0)
                return event->r;
        (void) report(w, 0, LOG_EVENT_OPENSM_FILE_BROKEN,
                      "%s was changed so that OpenSM cannot read it and would make every port a full member of the default "
                      "partition; pkeyd keeps the changed file as %s.refused, and puts its own back in place", w->path, w->path);
        return begin(w, now);
}

/* Without the record pkeyd would not know after a crash what OpenSM may have written, so no file is written. */
static int stored(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        (void) now;
        if (event->r == 0)
                return go_to(w, STEP_WRITING);
        return report(w, event->r, LOG_EVENT_STATE_DIR, "what OpenSM would write next could not be stored: %s; %s stays as it is until that works",
                      strerror(-event->r), w->path);
}

/* "; the old file gave ...", or "" */
static const char *describe_lost_all(struct opensm_writer *w)
{
        const struct opensm_manager manager = manager_of(w);
        const struct partitions_conf_partition *p = w->handed_over ? opensm_find_unmanaged_all(&manager, w->conf_in_place) : NULL;

        if (!p)
                return "";
        return arena_printf(w->arena, "; the old file gave partition %s (0x%04x), which pkeyd does not manage, to ALL ports; the "
                            "new one gives it only to the ports known now: add it to the policy if new hosts need it",
                            p->name, p->base) ?: "";
}

/* The first file of pkeyd is in place of one that was handed over. */
static void report_handover(struct opensm_writer *w)
{
        if (w->handover_unreported)
                log_add(w->log, LOG_EVENT_OPENSM_FILE_TAKEN, &(struct log_about) { .generation = w->job.generation->number },
                        "pkeyd manages %s from now on; its previous content is in %s%s", w->path, w->copy_path, describe_lost_all(w));
        w->handover_unreported = false;
}

static bool loses_group(const struct opensm_writer *w, const struct partitions_conf_partition *p)
{
        const struct policy *policy = policy_of(w);
        int i = policy_find_base(policy, p->base);

        return p->has_broadcast && i >= 0 && policy_owns(policy, p->base) && !policy->partitions[i].ipoib;
}

/* A first policy often does not mention the broadcast group of OpenSM's fallback. OpenSM keeps a group as long as it runs, so that
 * hosts would lose IPoIB weeks later, without any change. */
static void report_lost_groups(struct opensm_writer *w)
{
        const struct policy *policy = policy_of(w);
        const struct partitions_conf *before = w->conf_before_pkeyd;
        _cleanup_text_ struct text names = {};
        const char *line = "";
        uint32_t n = 0;

        for (uint32_t i = 0; before && i < before->n_partitions; i++) {
                const struct partitions_conf_partition *p = &before->partitions[i];
                const struct policy_partition *of_policy;

                if (!loses_group(w, p) || n++ >= MAX_NAMED)
                        continue;
                of_policy = &policy->partitions[policy_find_base(policy, p->base)];
                text_add(&names, "%s%s (0x%04x)", n > 1 ? ", " : "", of_policy->name, p->base);
                if (of_policy->where.line == 0)
                        line = " ('default: {pkey: 0x7fff, ipoib: true}', because the policy does not name it yet)";
        }
        if (n > MAX_NAMED)
                text_add(&names, " and %u more", n - MAX_NAMED);
        if (n > 0 && !names.failed)
                log_add(w->log, LOG_EVENT_OPENSM_GROUPS_END, &(struct log_about) { .generation = w->job.generation->number },
                        "OpenSM made a broadcast group in partition%s %s; the policy has no ipoib there, so the group, and IPoIB with "
                        "it, will be gone after OpenSM's next restart; to keep it, add 'ipoib: true' to %s%s",
                        text_plural(n), names.bytes, n == 1 ? "that partition" : "these partitions", line);
        w->conf_before_pkeyd = NULL;
}

/* pkeyd is not root, and sees most of the file system read-only. */
static const char *way_out(int r)
{
        return r == -EACCES || r == -EPERM || r == -EROFS ? "; THE UNIT in pkeyd-opensm(7) describes how to let pkeyd write it" : "";
}

static int file_written(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        (void) now;
        knowledge_settle_expected(w->job.knowledge, true); /* after an error, too: the file may be in place */
        if (event->r < 0) {
                (void) report(w, 0, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s cannot be written: %s%s%s%s", w->path, strerror(-event->r), way_out(event->r),
                              w->job.mirror ? "; " : "", w->job.mirror ? describe_consequence(w) : "");
                return w->purpose == TO_PUT_BACK ? report_put_back(w, false) : event->r;
        }
        remember_file(w, w->file, false);
        report_handover(w);
        report_lost_groups(w);
        /* what is in no table, such as IPoIB parameters, should not wait for OpenSM's next heavy sweep */
        if (w->purpose == FOR_CONTENT && (w->job.mirror || same_bytes(body_of(w->file), body_of(w->in_place))))
                return end(w, 0);
        return go_to(w, STEP_SIGNALLING);
}

static int phase_begins(struct opensm_writer *w, usec_t now)
{
        w->n_files++;
        w->phase_began = now;
        w->delay = FIRST_DELAY;
        log_debug(w->log, "OpenSM was signalled to read its partition file: %s", opensm_phase_to_string(w->phase));
        return wait_until(w, now + (opensm_phase_is_visible(&w->phases, w->phase) ? FIRST_DELAY
                                                                                  : SETTLE + w->phases.n_ports * SETTLE_PER_PORT));
}

static int probed(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        usec_t patience = PATIENCE + w->phases.n_ports * PATIENCE_PER_PORT;

        if (event->opensm.r < 0)
                return report(w, event->opensm.r, LOG_EVENT_OPENSM_NOT_NOTIFIED,
                              "OpenSM ended before it had carried out its partition file (%s): %s; the file stays, and pkeyd "
                              "continues when OpenSM runs again", opensm_phase_to_string(w->phase), event->opensm.why);
        if (now - w->phase_began > patience)
                return give_up(w);
        w->delay = MIN(2 * w->delay, MAX_DELAY);
        return wait_until(w, now + w->delay);
}

static int signalled(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        int r = event->opensm.r;

        if (w->purpose == TO_PUT_BACK) {
                w->last.is_done = r >= 0;
                return report_put_back(w, r >= 0);
        }
        if (r < 0)
                return report(w, r, LOG_EVENT_OPENSM_NOT_NOTIFIED,
                              "OpenSM could not be signalled to read its partition file: %s; pkeyd tries again", event->opensm.why);
        return w->purpose == FOR_CONTENT ? end(w, r) : phase_begins(w, now);
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

/* Reads the tables that the phase changes; in the last survey all. Returns 1, 0: there is no table to read, or -ENOMEM. */
static int prepare_survey(struct opensm_writer *w)
{
        struct survey_options options = {
                .m_keys = w->job.generation->m_keys, .retries = STAGE_RETRIES, .before = w->job.snapshot->observed,
                .identify = true,
        };
        const struct subnet *subnet = w->job.snapshot->subnet;
        int r;

        w->survey = NULL;
        arena_free(w->read_arena);
        w->read_arena = arena_new();
        if (!w->read_arena)
                return -ENOMEM;
        r = observed_new(w->read_arena, subnet, &w->seen);
        if (r == 0 && !w->is_last_survey)
                r = opensm_phases_changed(w->read_arena, &w->phases, w->phase, subnet, &options.ports, &options.n_ports);
        if (r == 0 && options.ports && options.n_ports == 0)
                return 0; /* all these ports are down */
        if (r == 0)
                r = survey_new(w->read_arena, w->seen, &options, &w->survey);
        if (r < 0)
                return r;
        w->stage = survey_stage(w->survey);
        return 1;
}

/* Did OpenSM fall back to its default partitions since the last read? If the tables looked like that before, no: then OpenSM has
 * not read the file yet that changes them. */
static bool has_fallen_back(struct opensm_writer *w)
{
        const struct observed *known = w->job.snapshot->observed;
        struct observed *before;

        if (!opensm_phases_fell_back(&w->phases, w->phase, w->seen) || observed_new(w->read_arena, known->subnet, &before) < 0)
                return false;
        for (uint32_t i = 0; i < known->subnet->n_ports; i++)
                if (w->seen->tables[i].source == TABLE_READ)
                        before->tables[i] = known->tables[i];
        return !opensm_phases_fell_back(&w->phases, w->phase, before);
}

static int finish(struct opensm_writer *w, usec_t now)
{
        const struct generation *g = w->job.generation;
        uint32_t first;

        if (w->n_files > 0 && !has_held(w) && opensm_phases_missing(&w->phases, OPENSM_GRANT, w->seen, &first) == 0)
                log_add(w->log, LOG_EVENT_APPLIED, &(struct log_about) { .generation = g->number },
                        "generation %" PRIu64 ": carried out by OpenSM with %u partition file%s in %.1f s", g->number, w->n_files,
                        text_plural(w->n_files), (double) (now - w->began) / (double) USEC_PER_SEC);
        return end(w, 0);
}

/* Each table that could be read matches the file. */
static int phase_ends(struct opensm_writer *w, usec_t now)
{
        struct file_bytes f;
        int r;

        w->last.is_done = true;
        opensm_confirm(&w->phases, w->phase, w->seen, w->job.knowledge);
        r = opensm_phases_see_unread(w->arena, &w->phases, w->phase, w->seen);
        if (r < 0)
                return r;
        if (render(w, w->phase, &f) == 0) {
                w->good = f;
                w->good_tables = w->phases.tables[w->phase];
        }
        return next_phase(w, now, w->phase + 1);
}

/* Does not stop before the phase is carried out: OpenSM would go on writing what the next plan does not expect. */
static int check_phase(struct opensm_writer *w, usec_t now)
{
        uint32_t first;

        return opensm_phases_missing(&w->phases, w->phase, w->seen, &first) > 0 ? go_to(w, STEP_PROBING) : phase_ends(w, now);
}

/* A port that could not be read is tried again soon. The last survey goes into the knowledge, with which the sweep continues. */
static int take_seen(struct opensm_writer *w, usec_t wall)
{
        struct snapshot *snapshot = w->job.snapshot;

        snapshot_merge(snapshot, w->seen);
        for (uint32_t i = 0; i < snapshot->subnet->n_ports; i++)
                snapshot->failed[i] |= w->seen->tables[i].failure != MAD_ANSWERED;
        if (!w->is_last_survey)
                return 0;
        opensm_doubt_open(&w->phases, w->seen, w->job.knowledge, snapshot->failed);
        opensm_confirm(&w->phases, OPENSM_GRANT, w->seen, w->job.knowledge);
        return snapshot_learn(snapshot, w->job.knowledge, w->seen, wall / USEC_PER_SEC);
}

static int surveyed(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        bool fallen_back;
        int r = event->r;

        if (r == 0 && w->survey && survey_is_stale(w->survey))
                return -ESTALE;
        fallen_back = r == 0 && has_fallen_back(w);
        if (r == 0)
                r = take_seen(w, event->wall);
        if (r < 0)
                return report(w, r, LOG_EVENT_SWEEP_FAILED, "the P_Key tables could not be read: %s", strerror(-r));
        if (w->is_last_survey && w->stopping)
                return -ECANCELED;
        if (fallen_back)
                return put_back(w);
        return w->is_last_survey ? finish(w, now) : check_phase(w, now);
}

/* --- actions ------------------------------------------------------------------------------------------------------ */

/* The action of each step and its answer. Steps without an action wait for nothing. */
static const struct {
        enum control_action_kind action;
        enum control_event_kind answer;
        int (*answered)(struct opensm_writer *w, usec_t now, const struct control_event *event);
} steps[] = {
        [STEP_READING] = { CONTROL_READ_FILES, CONTROL_EVENT_FILES_READ, files_read },
        [STEP_PUTTING_ASIDE] = { CONTROL_WRITE_FILE, CONTROL_EVENT_FILE_WRITTEN, aside_written },
        [STEP_STORING] = { CONTROL_STORE, CONTROL_EVENT_STORED, stored },
        [STEP_WRITING] = { CONTROL_WRITE_FILE, CONTROL_EVENT_FILE_WRITTEN, file_written },
        [STEP_SIGNALLING] = { CONTROL_SIGNAL_OPENSM, CONTROL_EVENT_OPENSM_SIGNALLED, signalled },
        [STEP_SURVEYING] = { CONTROL_RUN_STAGE, CONTROL_EVENT_STAGE_ENDED, surveyed },
        [STEP_PROBING] = { CONTROL_SIGNAL_OPENSM, CONTROL_EVENT_OPENSM_SIGNALLED, probed },
        [STEP_ENDED] = {},
};

bool opensm_writer_next_action(struct opensm_writer *w, struct control_action *ret)
{
        struct control_action action = { .kind = steps[w->step].action };

        if (w->asked || !steps[w->step].answered)
                return false;
        if (action.kind == CONTROL_READ_FILES) {
                action.files[0].path = w->path;
                action.files[1].path = w->copy_path;
        } else if (action.kind == CONTROL_WRITE_FILE) {
                action.files[0] = (struct control_file) { .path = w->path, .bytes = w->file.bytes, .n = w->file.n };
                if (w->step == STEP_PUTTING_ASIDE) {
                        action.files[0].path = arena_printf(w->arena, "%s.refused", w->path);
                        action.files[0].beside = w->path;
                }
        } else if (action.kind == CONTROL_SIGNAL_OPENSM) {
                action.settings = w->job.generation->settings;
                action.signal = w->step == STEP_SIGNALLING ? SIGHUP : 0;
        } else if (action.kind == CONTROL_RUN_STAGE) {
                action.stage = &w->stage;
        }
        w->asked = true;
        *ret = action;
        return true;
}

void opensm_writer_answer(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        int r;

        assert(event->kind == steps[w->step].answer);
        r = steps[w->step].answered(w, now, event);
        if (r < 0)
                (void) end(w, r);
}

void opensm_writer_tick(struct opensm_writer *w, usec_t now)
{
        int r;

        if (w->step != STEP_WAITING || now < w->due)
                return;
        r = prepare_survey(w);
        (void) go_to(w, STEP_SURVEYING);
        if (r <= 0)
                opensm_writer_answer(w, now, &(struct control_event) { .kind = CONTROL_EVENT_STAGE_ENDED, .r = r });
}
