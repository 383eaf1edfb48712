/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/opensm_writer.h"

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
/* How long a phase may take, and how long OpenSM is given to read a file that changes nothing in the tables. */
#define PATIENCE          (20 * USEC_PER_SEC)
#define PATIENCE_PER_PORT (10 * USEC_PER_MSEC)
#define SETTLE            (1 * USEC_PER_SEC)
#define SETTLE_PER_PORT   (1 * USEC_PER_MSEC)

enum step {
        STEP_IDLE,
        STEP_READING,       /* the file in place, and the copy of it */
        STEP_PUTTING_ASIDE, /* a file that OpenSM would drop */
        STEP_STORING,       /* what the file may make OpenSM write */
        STEP_WRITING,       /* the file of a phase, or of the policy */
        STEP_SIGNALLING,
        STEP_WAITING,       /* for OpenSM; see due */
        STEP_SURVEYING,
        STEP_PROBING,       /* whether OpenSM runs, for the tables are not as the phase has them */
        STEP_ENDED,
};

/* What the file that is being written is for. */
enum purpose {
        FOR_PHASE,      /* OpenSM is to carry it out */
        FOR_CONTENT,    /* nothing changes in the tables; OpenSM should know the rest of it. The purpose of a mirror */
        TO_PUT_BACK,    /* OpenSM dropped its file, and opened the fabric */
};

struct file_bytes {
        const char *bytes; /* NULL: there is none, or nothing that counts */
        size_t n;
};

/* The file that this process wrote last, to recognise it when it was cut short. */
struct written_file {
        char *path, *bytes;   /* malloc'ed; NULL: there is none, or memory was out */
        size_t n;
        bool is_done;         /* the tables were as it says, or OpenSM had the time for that */
        bool is_after_open;   /* before it every table held 0xffff and nothing else */
};

struct opensm_writer {
        struct log *log;
        struct written_file last;
        char problem[CONTROL_TEXT_MAX]; /* that was logged last; "": it is over */

        struct opensm_job job;
        struct arena *arena;
        enum step step;
        bool asked;              /* the action of this step was given out */
        int r;                   /* of STEP_ENDED */
        enum purpose purpose;
        struct opensm_phases phases;
        enum opensm_phase phase; /* the one whose file stands there */
        struct file_bytes in_place;
        struct file_bytes good;  /* the file of the last phase that was carried out */
        const struct partitions_file_port *good_tables; /* what it gives; NULL: there is none */
        struct file_bytes file;  /* what is being written */
        const char *path;        /* of the partition file */
        const char *copy_path;   /* PATH.before-pkeyd */
        struct partitions_conf *others; /* what OpenSM was told of partitions that the policy does not have; NULL: nothing */
        const struct partitions_conf *replaced; /* the same before pkeyd's first file; NULL: pkeyd wrote the file in place */
        bool stopping, at_the_end;
        bool is_phase;           /* the file in place is not the last one of its generation */
        bool given;              /* that is from a file that a person gave to pkeyd just now */
        bool takes_over;         /* ... which is not in the journal yet */
        usec_t began, phase_began, delay, due;
        unsigned n_files;

        struct arena *read_arena; /* of one read of the tables */
        struct observed *seen;
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

/* The same problem is logged once until it is over. */
__attribute__((format(printf, 3, 4))) static void report(struct opensm_writer *w, enum log_event event, const char *format,
                                                         ...)
{
        struct log_about about = { .generation = w->job.generation->number };
        char text[sizeof(w->problem)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (strcmp(text, w->problem) == 0)
                return;
        (void) strcpy(w->problem, text);
        log_add(w->log, event, &about, "%s", text);
}

const char *opensm_writer_problem(const struct opensm_writer *w)
{
        return w->problem;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void go_to(struct opensm_writer *w, enum step step)
{
        w->step = step;
        w->asked = false;
        w->due = USEC_INFINITY;
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
        report(w, LOG_EVENT_APPLY_PARTIAL,
               "generation %" PRIu64 ": held back: partition%s %s; it is not known what some ports hold, and the change could "
               "let ports talk that may not, or cut off ports that may; the rest is carried out; 'pkeyctl show held' lists the "
               "ports",
               w->job.generation->number, text_plural(n), names.failed ? "some" : names.bytes);
}

static void end(struct opensm_writer *w, int r)
{
        knowledge_settle_expected(w->job.knowledge, false); /* no file says it */
        if (r == 0 && has_held(w))
                report_held(w);
        else if (r == 0)
                w->problem[0] = '\0';
        w->r = r;
        go_to(w, STEP_ENDED);
}

static void wait_until(struct opensm_writer *w, usec_t at)
{
        go_to(w, STEP_WAITING);
        w->due = at;
}

static void survey_at_the_end(struct opensm_writer *w, usec_t now)
{
        w->at_the_end = true;
        w->phase = OPENSM_GRANT;
        wait_until(w, now);
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
        go_to(w, STEP_IDLE);
        w->read_arena = arena_free(w->read_arena);
        w->arena = arena_free(w->arena);
        w->stopping = w->at_the_end = w->given = w->takes_over = w->is_phase = false;
        w->in_place = w->good = w->file = (struct file_bytes) {};
        w->good_tables = NULL;
        w->others = NULL;
        w->replaced = NULL;
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

/* The new path has its file. */
static void report_path(const struct opensm_writer *w)
{
        const struct log_about about = { .generation = w->job.generation->number };

        if (w->last.path && !is_last_path(w))
                log_add(w->log, LOG_EVENT_OPENSM_FILE_MOVED, &about,
                        "pkeyd writes OpenSM's partition file to %s from now on, and leaves %s as it is; check that OpenSM reads "
                        "the new one (partition_config_file in opensm.conf)", w->path, w->last.path);
}

/* To know it again. Where memory is out, a file that is cut short later is taken for somebody's. */
static void remember(struct opensm_writer *w, struct file_bytes f, bool is_done)
{
        char *copy = malloc(MAX(f.n, (size_t) 1)), *path = strdup(w->path);

        report_path(w);
        free(w->last.bytes);
        free(w->last.path);
        if (copy)
                memcpy(copy, f.bytes, f.n);
        w->last = (struct written_file) {
                .path = path, .bytes = copy, .n = copy ? f.n : 0, .is_done = is_done && copy,
                .is_after_open = opensm_phases_are_open(&w->phases, w->job.snapshot->observed),
        };
}

/* As this process wrote it last. */
static bool is_last_file(const struct opensm_writer *w, struct file_bytes f)
{
        return is_last_path(w) && same_bytes(f, (struct file_bytes) { w->last.bytes, w->last.n });
}

/* Returns 0; -EBADMSG: OpenSM would drop it, and open the fabric; -ENOMEM. */
static int parse_file(struct opensm_writer *w, struct file_bytes f, struct partitions_conf **ret)
{
        _cleanup_findings_ struct findings ignored = {};
        int r;

        findings_init(&ignored, w->arena);
        r = partitions_conf_parse(w->arena, w->path, f.bytes, f.n, &ignored, ret);
        return r == 0 && (*ret)->discarded ? -EBADMSG : r;
}

/* With a mirror the tables do not wait for the file. */
static const char *what_of_tables(const struct opensm_writer *w)
{
        if (!w->job.mirror)
                return "nothing is written";
        return w->job.in_force ? "the policy is in force without it, and OpenSM may undo that at its next heavy sweep"
                               : "OpenSM goes by it, not by the policy, when this host takes over";
}

static void refuse_file(struct opensm_writer *w, bool edited)
{
        const char *path = w->path;

        if (edited)
                report(w, LOG_EVENT_OPENSM_FILE_FOREIGN,
                       "%s was changed by somebody since pkeyd wrote it, and is left as it is; %s: put the change into the policy, "
                       "then let pkeyd have the file with: cp --backup=numbered %s %s.before-pkeyd", path, what_of_tables(w), path,
                       path);
        else
                report(w, LOG_EVENT_OPENSM_FILE_FOREIGN,
                       "%s was not written by pkeyd, and is left as it is; %s: make a policy of it with "
                       "pkeyctl import %s, then let pkeyd have the file with: cp --backup=numbered %s %s.before-pkeyd", path,
                       what_of_tables(w), path, path, path);
        end(w, -EEXIST);
}

/* Of a file that this process wrote before. */
static void report_damage(struct opensm_writer *w, const char *what)
{
        if (is_last_path(w))
                report(w, LOG_EVENT_OPENSM_FILE_BROKEN,
                       "%s, which pkeyd wrote, %s: from its next heavy sweep on OpenSM would not make of the fabric what the "
                       "policy says; pkeyd writes it again", w->path, what);
}

/* --- files of phases ---------------------------------------------------------------------------------------------- */

/* The last file of all has no phase: it is that of the policy. */
static bool is_last(const struct opensm_writer *w, enum opensm_phase phase)
{
        for (enum opensm_phase p = phase + 1; p < OPENSM_N_PHASES; p++)
                if (w->phases.needed[p])
                        return false;
        return true;
}

static int render(struct opensm_writer *w, enum opensm_phase phase, struct file_bytes *ret)
{
        _cleanup_findings_ struct findings findings = {};
        struct partitions_file file;
        int r;

        findings_init(&findings, w->arena);
        r = partitions_file_from_ports(w->arena, w->job.generation->policy, w->others, w->phases.tables[phase], w->phases.n_ports,
                                       &file);
        if (r < 0)
                return r;
        file.generation = w->job.generation->number;
        file.phase = is_last(w, phase) ? NULL : opensm_phase_to_string(phase);
        r = partitions_file_render(w->arena, &file, w->phases.allow_both, &findings, &ret->bytes, &ret->n);
        event_text_findings(w->log, &findings);
        return r;
}

static void write_file(struct opensm_writer *w, enum purpose purpose, struct file_bytes f)
{
        w->purpose = purpose;
        w->file = f;
        if (f.n <= PARTITIONS_CONF_MAX_SIZE) {
                go_to(w, STEP_STORING);
                return;
        }
        report(w, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s would have %zu bytes, more than pkeyd reads again (%u); nothing is written",
               w->path, f.n, PARTITIONS_CONF_MAX_SIZE);
        end(w, -EFBIG);
}

/* Holds what is not admitted of a phase; the rest may be written from now on. */
static int admit(struct opensm_writer *w, enum opensm_phase phase, enum opensm_phase hold_from)
{
        return opensm_admit(w->arena, &w->phases, phase, hold_from, w->job.snapshot->subnet, w->job.knowledge);
}

static void write_phase(struct opensm_writer *w, enum opensm_phase phase)
{
        struct file_bytes f;
        int r = render(w, phase, &f);

        w->phase = phase;
        if (r < 0)
                end(w, r);
        else
                write_file(w, FOR_PHASE, f);
}

/* The next phase of which something is admitted; OPENSM_N_PHASES: there is none. Returns 0 or -ENOMEM. */
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

/* What follows the two lines of the head. */
static struct file_bytes body_of(struct file_bytes f)
{
        for (int line = 0; line < 2; line++) {
                const char *newline = f.n > 0 ? memchr(f.bytes, '\n', f.n) : NULL;

                f.n = newline ? f.n - (size_t) (newline + 1 - f.bytes) : 0;
                f.bytes = newline ? newline + 1 : f.bytes;
        }
        return f;
}

/* Nothing changes in the tables; the file has to say the same. */
static void write_content(struct opensm_writer *w)
{
        struct file_bytes f;
        int r = render(w, OPENSM_GRANT, &f);

        if (r < 0 || same_bytes(f, w->in_place))
                end(w, r);
        else
                write_file(w, FOR_CONTENT, f);
}

/* The next file, or the survey of all tables that ends it. */
static void next_phase(struct opensm_writer *w, usec_t now, enum opensm_phase from)
{
        enum opensm_phase phase = OPENSM_N_PHASES;
        int r = w->stopping ? 0 : find_phase(w, from, &phase);

        if (r < 0)
                end(w, r);
        else if (phase < OPENSM_N_PHASES)
                write_phase(w, phase);
        else if (w->stopping || w->n_files > 0)
                survey_at_the_end(w, now);
        else
                write_content(w);
}

/* The last file that was carried out is put back. Without one, that of the tables as they were. */
static void put_back(struct opensm_writer *w)
{
        const struct partitions_file_port *tables = w->good_tables ? w->good_tables : w->phases.tables[OPENSM_ADOPT];
        struct file_bytes f = w->good;
        int r = f.bytes ? 0 : render(w, OPENSM_ADOPT, &f);

        if (r == 0)
                r = opensm_expect(&w->phases, tables, w->job.snapshot->subnet, w->job.knowledge);
        if (r < 0)
                end(w, r);
        else
                write_file(w, TO_PUT_BACK, f);
}

/* The file stays. That it was not carried out says a read from before now, and OpenSM may be writing still: the file before would
 * give back what was revoked since. */
static void give_up(struct opensm_writer *w)
{
        const char *label, *reads_it = "";
        uint32_t first, n = opensm_phases_missing(&w->phases, w->phase, w->seen, &first);

        label = subnet_port_label(w->arena, w->job.snapshot->subnet, first);
        if (!w->job.generation->settings->opensm_config) /* else that was checked */
                reads_it = arena_printf(w->arena, "; check that OpenSM reads %s (partition_config_file in opensm.conf)", w->path) ?: "";
        report(w, LOG_EVENT_OPENSM_NOT_DONE,
               "OpenSM did not carry out its partition file (%s): %u port%s not as it says, among them %s; the file stays, "
               "and the next sweep goes on from there%s",
               opensm_phase_to_string(w->phase), n, n == 1 ? " is" : "s are", label ?: "?", reads_it);
        end(w, -ETIMEDOUT);
}

/* told: OpenSM was signalled to read it. */
static void report_put_back(struct opensm_writer *w, bool told)
{
        report(w, LOG_EVENT_OPENSM_FELL_BACK,
               "OpenSM dropped its partition file (%s): every port is a full member of the default partition, and every "
               "other entry is gone; the last good file was put back%s", opensm_phase_to_string(w->phase),
               told ? " and OpenSM told to read it" : ", but OpenSM could not be told");
        end(w, -EIO);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

static struct opensm_manager manager_of(const struct opensm_writer *w)
{
        return (struct opensm_manager) { w->job.generation->policy, w->job.generation->settings->unmanaged == UNMANAGED_KEEP };
}

/* Those that are down, by the names and places they had, and those that the policy, or a partition of others, names by a GUID that
 * was never seen. A policy that says two things of one of them is refused when it is back; until then they keep what they
 * have. */
static int find_absent(struct opensm_writer *w, struct opensm_absent *ret)
{
        const struct subnet *subnet = w->job.snapshot->subnet;
        const struct opensm_manager manager = manager_of(w);
        _cleanup_findings_ struct findings ignored = {};
        struct partitions_file_port *given = NULL;
        struct memberships *memberships;
        struct desired *desired = NULL;
        const struct guid *named;
        struct subnet *larger;
        uint32_t n_named;
        int r;

        findings_init(&ignored, w->arena);
        r = opensm_named_guids(w->arena, &manager, w->others, &named, &n_named);
        if (r == 0)
                r = known_extend_named(w->arena, w->job.known, subnet, named, n_named, &larger);
        if (r == 0 && w->given)
                r = opensm_unmanaged_of_absent(w->arena, &manager, w->others, larger, subnet, w->job.conf->allow_both_pkeys,
                                               &given);
        if (r < 0)
                return r;
        r = policy_resolve(w->arena, manager.policy, larger, &ignored, &memberships);
        if (r == 0)
                r = desired_compute(w->arena, memberships, &desired);
        *ret = (struct opensm_absent) { larger, r == 0 ? desired : NULL, manager.keeps_unmanaged, given };
        return r == -EBADMSG ? 0 : r;
}

static int add_absent(struct opensm_writer *w, const struct opensm_tables *in_place, struct opensm_transition **transitions,
                      uint32_t *n)
{
        struct opensm_transition *absent, *all;
        struct opensm_absent who;
        uint32_t n_absent;
        int r = find_absent(w, &who);

        if (r == 0)
                r = opensm_transitions_of_absent(w->arena, &who, w->job.snapshot->subnet, w->job.knowledge, in_place, &absent,
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

/* What the file in place gives to whom; NULL if it says nothing that counts. One that is damaged is known from when it was
 * written. Where there never was one, or OpenSM drops it, OpenSM's fallback is what others have, and its broadcast group would go
 * with OpenSM's next restart if the file did not name it. */
static int read_in_place(struct opensm_writer *w, struct opensm_tables *tables, const struct opensm_tables **ret)
{
        struct file_bytes f = w->in_place;
        struct partitions_conf *conf;
        int r;

        *ret = NULL;
        if (!f.bytes && !w->given && is_last_path(w))
                f = (struct file_bytes) { w->last.bytes, w->last.n };
        if (!f.bytes) {
                r = w->given ? 0 : partitions_conf_fallback(w->arena, w->path, &w->others);
                w->replaced = w->others;
                return r;
        }
        r = parse_file(w, f, &conf);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        w->others = conf;
        if (!w->in_place.bytes)
                return 0;
        *ret = tables;
        r = opensm_tables_of_file(w->arena, conf, tables);
        tables->is_done = w->last.is_done && is_last_file(w, w->in_place);
        return r;
}

/* All files, from what is there to what was decided. */
static int prepare(struct opensm_writer *w)
{
        _cleanup_findings_ struct findings findings = {};
        const struct opensm_tables *in_place;
        struct opensm_tables tables;
        struct opensm_transition *transitions;
        uint32_t n_transitions;
        int r;

        r = read_in_place(w, &tables, &in_place);
        if (r == 0)
                r = opensm_transitions_of_plan(w->arena, w->job.decision->plan, w->job.snapshot->observed, w->job.knowledge,
                                               in_place, &transitions, &n_transitions);
        if (r == 0)
                r = add_absent(w, in_place, &transitions, &n_transitions);
        if (r < 0)
                return r;
        findings_init(&findings, w->arena);
        r = opensm_phases_compute(w->arena, transitions, n_transitions, in_place, w->job.conf->allow_both_pkeys, &findings,
                                  &w->phases);
        event_text_findings(w->log, &findings);
        return r;
}

/* Without phases: from the tables as they are to the file of the policy. What is held stays as the tables have it. */
static int admit_at_once(struct opensm_writer *w)
{
        int r = admit(w, OPENSM_GRANT, OPENSM_REVOKE);

        memset(w->phases.needed, 0, sizeof(w->phases.needed));
        return r;
}

/* OpenSM has not read the file in place yet, and the tables were open when that was written. Who wrote it ended since: then it may
 * have been so where others were to follow. */
static bool were_open_before(const struct opensm_writer *w)
{
        if (is_last_file(w, w->in_place))
                return w->last.is_after_open && !w->last.is_done;
        return w->is_phase;
}

/* Did OpenSM take its defaults since the last sweep, or while pkeyd did not run? */
static bool had_fallen_back(const struct opensm_writer *w)
{
        return !w->given && !were_open_before(w) && opensm_phases_had_fallen_back(&w->phases, w->job.snapshot->observed);
}

/* OpenSM took its defaults before: there is no time for steps, what is open is closed at once. */
static void close_at_once(struct opensm_writer *w)
{
        int r = admit_at_once(w);

        if (is_last_path(w) || w->in_place.bytes || w->job.generation->number > 1) /* else it never had any others */
                report(w, LOG_EVENT_OPENSM_FELL_BACK,
                       "OpenSM has taken its default partitions: every port is a full member of the default partition, and "
                       "every other entry is gone; it is given the file of the policy again");
        if (r < 0)
                end(w, r);
        else
                write_phase(w, OPENSM_GRANT);
}

/* OpenSM reads it at any heavy sweep. */
static void write_mirror(struct opensm_writer *w)
{
        int r = admit_at_once(w);

        if (r < 0)
                end(w, r);
        else
                write_content(w);
}

/* All tables that were read are as the file is to say. */
static void as_it_says(struct opensm_writer *w)
{
        if (w->in_place.bytes)
                remember(w, w->in_place, true);
        write_content(w);
}

/* No phase changes anything. What differs all the same is of no use to anybody; OpenSM has to read the file again to take it
 * away. */
static void write_again(struct opensm_writer *w)
{
        int r = admit(w, OPENSM_ADOPT, OPENSM_ADOPT);
        uint32_t first;

        if (r < 0)
                end(w, r);
        else if (opensm_phases_missing(&w->phases, OPENSM_GRANT, w->job.snapshot->observed, &first) > 0)
                write_phase(w, OPENSM_GRANT);
        else
                as_it_says(w);
}

/* Whatever the first file says of this port, it could cut it off, or open the switch port to it. NULL: there is none such, or not
 * the first file. */
static const struct opensm_transition *find_undecided(const struct opensm_writer *w)
{
        for (uint32_t i = 0; !w->phases.in_place && i < w->phases.n_ports; i++)
                if (w->phases.transitions[i].is_undecided)
                        return &w->phases.transitions[i];
        return NULL;
}

static void refuse_first(struct opensm_writer *w, const struct opensm_transition *undecided)
{
        report(w, LOG_EVENT_OPENSM_NOT_DONE,
               "%s is not written yet: the switch of %s did not answer all queries of discovery, so it is not known whether it filters "
               "by P_Key, and its table lacks entries of that port; by any file OpenSM could cut the port off or let others in; it is "
               "written when the switch answers", w->path, undecided->label);
        end(w, -EAGAIN);
}

/* The file in place is known, and may be replaced. */
static void begin(struct opensm_writer *w, usec_t now)
{
        int r = prepare(w);
        const struct opensm_transition *undecided = r == 0 ? find_undecided(w) : NULL;

        if (r < 0) {
                end(w, r);
        } else if (!w->job.mirror && had_fallen_back(w)) {
                close_at_once(w);
        } else if (undecided) {
                refuse_first(w, undecided);
        } else if (w->job.mirror) {
                write_mirror(w);
        } else {
                w->good = w->in_place;
                w->good_tables = w->phases.in_place;
                if (is_last(w, OPENSM_ADOPT))
                        write_again(w);
                else
                        next_phase(w, now, OPENSM_ADOPT);
        }
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
        if (w->copy_path)
                go_to(w, STEP_READING);
        else
                end(w, -ENOMEM);
}

/* A copy of it was made, and with that it was given away. */
static bool was_given(const struct control_file *copy, struct file_bytes f)
{
        return copy->r == 0 && same_bytes((struct file_bytes) { copy->bytes, copy->n }, f);
}

/* May the file in place be replaced? */
static void judge_file(struct opensm_writer *w, usec_t now, struct file_bytes f, const struct control_file *copy)
{
        enum partitions_file_owner owner = partitions_file_recognise(f.bytes, f.n, &w->is_phase);
        struct partitions_conf *conf;

        if (owner == PARTITIONS_FILE_INTACT) {
                w->in_place = f;
                begin(w, now);
        } else if (was_cut_short(w, f)) {
                report_damage(w, "was cut short");
                begin(w, now);
        } else if (was_given(copy, f)) {
                w->takes_over = true;
                w->given = parse_file(w, f, &conf) == 0;
                w->others = w->given ? conf : NULL;
                begin(w, now);
        } else if (owner == PARTITIONS_FILE_EDITED && parse_file(w, f, &conf) == -EBADMSG) {
                w->file = f;
                go_to(w, STEP_PUTTING_ASIDE);
        } else {
                refuse_file(w, owner == PARTITIONS_FILE_EDITED);
        }
}

static void files_read(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        const struct control_file *files = event->files;
        struct file_bytes f = {};

        if (files[0].r == 0)
                f = (struct file_bytes) { arena_strndup(w->arena, files[0].bytes, files[0].n), files[0].n };
        if (files[0].r == -ENOENT || (files[0].r == 0 && files[0].n == 0)) {
                report_damage(w, files[0].r == 0 ? "is empty" : "is gone");
                begin(w, now);
        } else if (files[0].r < 0) {
                report(w, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s cannot be read: %s; %s", w->path, strerror(-files[0].r),
                       what_of_tables(w));
                end(w, files[0].r);
        } else if (!f.bytes) {
                end(w, -ENOMEM);
        } else {
                judge_file(w, now, f, &files[1]);
        }
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void aside_written(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        if (event->r < 0) {
                end(w, event->r);
                return;
        }
        report(w, LOG_EVENT_OPENSM_FILE_BROKEN,
               "%s was changed so that OpenSM cannot read it and would make every port a full member of the default partition; "
               "the changed file is kept as %s.refused, and pkeyd puts its own in place again", w->path, w->path);
        begin(w, now);
}

/* What may be written and is not known after a crash could be given to others: so there is no file. */
static void stored(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        (void) now;
        if (event->r == 0) {
                go_to(w, STEP_WRITING);
                return;
        }
        report(w, LOG_EVENT_STATE_DIR, "state.db: %s; what OpenSM would write next could not be stored, so %s stays as it is until that "
               "works", strerror(-event->r), w->path);
        end(w, event->r);
}

/* "; it had ...", or "" */
static const char *describe_lost_all(struct opensm_writer *w)
{
        const struct opensm_manager manager = manager_of(w);
        const struct partitions_conf_partition *p = w->given ? opensm_find_unmanaged_all(&manager, w->others) : NULL;

        if (!p)
                return "";
        return arena_printf(w->arena, "; it gave partition %s (0x%04x), which the policy leaves to others, to ALL ports, and gives it now "
                            "to those that are known: put it into the policy if hosts that come later are to have it",
                            p->name, p->base) ?: "";
}

/* The first file in place of one that was given to pkeyd. */
static void report_taken(struct opensm_writer *w)
{
        if (w->takes_over)
                log_add(w->log, LOG_EVENT_OPENSM_FILE_TAKEN, &(struct log_about) { .generation = w->job.generation->number },
                        "%s is pkeyd's from now on; what it said before stands in %s%s", w->path, w->copy_path, describe_lost_all(w));
        w->takes_over = false;
}

static bool loses_group(const struct opensm_writer *w, const struct partitions_conf_partition *p)
{
        const struct policy *policy = w->job.generation->policy;
        int i = policy_find_base(policy, p->base);

        return p->has_broadcast && i >= 0 && policy_owns(policy, p->base) && !policy->partitions[i].ipoib;
}

/* "default (0x7fff), lab (0x0010)"; "": none. NULL: out of memory. */
static const char *name_lost_groups(struct opensm_writer *w, uint32_t *ret_n)
{
        const struct policy *policy = w->job.generation->policy;
        const char *text = "";
        uint32_t n = 0;

        for (uint32_t i = 0; text && i < w->replaced->n_partitions; i++) {
                const struct partitions_conf_partition *p = &w->replaced->partitions[i];

                if (loses_group(w, p) && n++ < MAX_NAMED)
                        text = arena_printf(w->arena, "%s%s%s (0x%04x)", text, n > 1 ? ", " : "",
                                            policy->partitions[policy_find_base(policy, p->base)].name, p->base);
        }
        if (text && n > MAX_NAMED)
                text = arena_printf(w->arena, "%s and %u more", text, n - MAX_NAMED);
        *ret_n = n;
        return text;
}

/* A first policy often says nothing of what OpenSM's fallback has. OpenSM keeps a group as long as it runs, so that hosts would
 * lose it without any change, weeks later. */
static void report_lost_groups(struct opensm_writer *w)
{
        const struct policy_partition *first = w->job.generation->policy->partitions; /* the default partition */
        const char *names, *line = "";
        uint32_t n = 0;

        names = w->replaced ? name_lost_groups(w, &n) : NULL;
        if (names && first->where.line == 0 && loses_group(w, &w->replaced->partitions[0]))
                line = " ('default: {pkey: 0x7fff, ipoib: true}', for the policy does not name that yet)";
        if (names && n > 0)
                log_add(w->log, LOG_EVENT_OPENSM_GROUPS_END, &(struct log_about) { .generation = w->job.generation->number },
                        "OpenSM made a broadcast group in partition%s %s; the policy has no ipoib there, so the group is gone after "
                        "OpenSM's next restart, and IPoIB with it; to keep it, add 'ipoib: true' to %s%s",
                        text_plural(n), names, n == 1 ? "that partition" : "these partitions", line);
        w->replaced = NULL;
}

static void file_written(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        int r = event->r;

        (void) now;
        knowledge_settle_expected(w->job.knowledge, true); /* after an error, too: OpenSM may find the file there */
        if (r < 0) {
                report(w, LOG_EVENT_OPENSM_FILE_FOREIGN, "%s cannot be written: %s%s%s", w->path, strerror(-r),
                       w->job.mirror ? "; " : "", w->job.mirror ? what_of_tables(w) : "");
                if (w->purpose == TO_PUT_BACK)
                        report_put_back(w, false);
                else
                        end(w, r);
                return;
        }
        remember(w, w->file, false);
        report_taken(w);
        report_lost_groups(w);
        /* what is not in the tables, as the parameters of IPoIB, should not wait for OpenSM's next heavy sweep */
        if (w->purpose == FOR_CONTENT && (w->job.mirror || same_bytes(body_of(w->file), body_of(w->in_place))))
                end(w, 0);
        else
                go_to(w, STEP_SIGNALLING);
}

/* OpenSM was given the file of a phase. */
static void phase_begins(struct opensm_writer *w, usec_t now)
{
        w->n_files++;
        w->phase_began = now;
        w->delay = FIRST_DELAY;
        log_debug(w->log, "OpenSM was given its partition file: %s", opensm_phase_to_string(w->phase));
        wait_until(w, now + (opensm_phases_show(&w->phases, w->phase) ? FIRST_DELAY
                                                                      : SETTLE + w->phases.n_ports * SETTLE_PER_PORT));
}

static void probed(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        usec_t patience = PATIENCE + w->phases.n_ports * PATIENCE_PER_PORT;

        if (event->opensm.r < 0) {
                report(w, LOG_EVENT_OPENSM_NOT_NOTIFIED, "OpenSM ended before it had carried out its partition file (%s): %s; the file "
                       "stays, and it goes on from there when OpenSM runs again", opensm_phase_to_string(w->phase), event->opensm.why);
                end(w, event->opensm.r);
        } else if (now - w->phase_began > patience) {
                give_up(w);
        } else {
                w->delay = MIN(2 * w->delay, MAX_DELAY);
                wait_until(w, now + w->delay);
        }
}

static void signalled(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        int r = event->opensm.r;

        if (w->purpose == TO_PUT_BACK) {
                w->last.is_done = r >= 0;
                report_put_back(w, r >= 0);
                return;
        }
        if (r < 0)
                report(w, LOG_EVENT_OPENSM_NOT_NOTIFIED,
                       "OpenSM could not be told to read its partition file: %s; it will be tried again", event->opensm.why);
        if (r < 0 || w->purpose == FOR_CONTENT)
                end(w, r);
        else
                phase_begins(w, now);
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

/* Reads the tables that the phase changes, in the end all. Returns 1 if there are any. */
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
        if (r == 0 && !w->at_the_end)
                r = opensm_phases_changed(w->read_arena, &w->phases, w->phase, subnet, &options.ports, &options.n_ports);
        if (r == 0 && options.ports && options.n_ports == 0)
                return 0; /* all of them are down */
        if (r == 0)
                r = survey_new(w->read_arena, w->seen, &options, &w->survey);
        if (r < 0)
                return r;
        w->stage = survey_stage(w->survey);
        return 1;
}

/* OpenSM took its defaults since the last read. Tables that looked like that before say nothing: they are of ports that only
 * the file gives something else, and OpenSM has not read it yet. */
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

static void end_well(struct opensm_writer *w, usec_t now)
{
        const struct generation *g = w->job.generation;
        uint32_t first;

        if (w->n_files > 0 && !has_held(w) && opensm_phases_missing(&w->phases, OPENSM_GRANT, w->seen, &first) == 0)
                log_add(w->log, LOG_EVENT_APPLIED, &(struct log_about) { .generation = g->number },
                        "generation %" PRIu64 ": carried out by OpenSM with %u partition file%s in %.1f s", g->number, w->n_files,
                        text_plural(w->n_files), (double) (now - w->began) / (double) USEC_PER_SEC);
        end(w, 0);
}

/* Each table that could be read is as the file says. */
static void phase_ends(struct opensm_writer *w, usec_t now)
{
        struct file_bytes f;
        int r;

        w->last.is_done = true;
        opensm_confirm(&w->phases, w->phase, w->seen, w->job.knowledge);
        r = opensm_phases_see_unread(w->arena, &w->phases, w->phase, w->seen);
        if (r < 0) {
                end(w, r);
                return;
        }
        if (render(w, w->phase, &f) == 0) {
                w->good = f;
                w->good_tables = w->phases.tables[w->phase];
        }
        next_phase(w, now, w->phase + 1);
}

/* To stop on the way would leave OpenSM writing what the next policy does not know of. */
static void judge_phase(struct opensm_writer *w, usec_t now)
{
        uint32_t first;

        if (opensm_phases_missing(&w->phases, w->phase, w->seen, &first) > 0)
                go_to(w, STEP_PROBING);
        else
                phase_ends(w, now);
}

/* A port that could not be read is tried again soon. The sweep goes on with what was read of all tables at the end. */
static int take_seen(struct opensm_writer *w, usec_t wall)
{
        struct snapshot *snapshot = w->job.snapshot;

        snapshot_merge(snapshot, w->seen);
        for (uint32_t i = 0; i < snapshot->subnet->n_ports; i++)
                snapshot->failed[i] |= w->seen->tables[i].failure != MAD_ANSWERED;
        if (!w->at_the_end)
                return 0;
        opensm_doubt_open(&w->phases, w->seen, w->job.knowledge, snapshot->failed);
        opensm_confirm(&w->phases, OPENSM_GRANT, w->seen, w->job.knowledge);
        return snapshot_learn(snapshot, w->job.knowledge, w->seen, wall / USEC_PER_SEC);
}

static void surveyed(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        bool fallen_back;
        int r = event->r;

        if (r == 0 && w->survey && survey_is_stale(w->survey)) {
                end(w, -ESTALE);
                return;
        }
        fallen_back = r == 0 && has_fallen_back(w);
        if (r == 0)
                r = take_seen(w, event->wall);
        if (r < 0) {
                report(w, LOG_EVENT_PASS_FAILED, "the P_Key tables could not be read: %s", strerror(-r));
                end(w, r);
                return;
        }
        if (w->at_the_end && w->stopping)
                end(w, -ECANCELED);
        else if (fallen_back)
                put_back(w);
        else if (w->at_the_end)
                end_well(w, now);
        else
                judge_phase(w, now);
}

void opensm_writer_tick(struct opensm_writer *w, usec_t now)
{
        int r;

        if (w->step != STEP_WAITING || now < w->due)
                return;
        r = prepare_survey(w);
        go_to(w, STEP_SURVEYING);
        if (r <= 0)
                surveyed(w, now, &(struct control_event) { .r = r });
}

/* --- actions ------------------------------------------------------------------------------------------------------ */

/* PATH.refused holds what was put aside. */
static const char *written_path(struct opensm_writer *w)
{
        return w->step == STEP_PUTTING_ASIDE ? arena_printf(w->arena, "%s.refused", w->path) : w->path;
}

/* The action of each step and its answer. Steps without an action wait for nothing. */
static const struct {
        enum control_action_kind action;
        enum control_event_kind answer;
        void (*answered)(struct opensm_writer *w, usec_t now, const struct control_event *event);
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
                action.files[0] = (struct control_file) { .path = written_path(w), .bytes = w->file.bytes, .n = w->file.n };
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
        assert(event->kind == steps[w->step].answer);
        steps[w->step].answered(w, now, event);
}

/* --- the judge ---------------------------------------------------------------------------------------------------- */

static bool has_both(const struct desired_port *port)
{
        for (uint32_t i = 1; i < port->n_wanted; i++)
                if (p_key_base(port->wanted[i - 1]) == p_key_base(port->wanted[i]))
                        return true;
        return false;
}

/* One example is enough: the remedy is the same for all. */
static void check_both(const struct desired *desired, const struct opensm_conf *conf, struct findings *findings)
{
        const struct subnet *s = desired->subnet;
        struct finding *item;

        for (uint32_t i = 0; !conf->allow_both_pkeys && i < s->n_ports; i++) {
                if (s->ports[i].role != PORT_ENDPORT || !has_both(&desired->ports[i]))
                        continue;
                item = findings_add(findings, FINDING_ERROR, FINDING_OPENSM_BOTH, NULL,
                                    "%s is to be both a full and a limited member of a partition, which OpenSM makes full only",
                                    subnet_port_label(findings->arena, s, i) ?: "a port");
                if (item)
                        finding_set_hint(findings, item, "add the line `allow_both_pkeys TRUE` to opensm.conf, restart OpenSM, and "
                                         "name opensm.conf in pkeyd.yaml (opensm.config)");
                return;
        }
}

int opensm_writer_judge(const struct generation *g, const struct opensm_conf *conf, const struct reconciled *decision,
                        struct findings *findings)
{
        const char *file = settings_opensm_file(g->settings);
        size_t n_errors = findings->n_errors;

        if (!file)
                return 0;
        opensm_conf_check_file(conf, g->settings->opensm_config, file, findings);
        check_both(decision->given, conf, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}
