/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm_writer/opensm_writer_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "events/event_text.h"
#include "opensm/admission.h"
#include "util/text.h"

#define FIRST_DELAY (50 * USEC_PER_MSEC)
#define MAX_DELAY   (1 * USEC_PER_SEC)
/* How long OpenSM may take to carry out a phase, and to read a file that changes no table. */
#define PHASE_TIMEOUT          (20 * USEC_PER_SEC)
#define PHASE_TIMEOUT_PER_PORT (10 * USEC_PER_MSEC)
#define SETTLE                 (1 * USEC_PER_SEC)
#define SETTLE_PER_PORT        (1 * USEC_PER_MSEC)

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
        static const struct base_set none;

        return memcmp(&w->phases.held, &none, sizeof(none)) != 0;
}

static void report_held(struct opensm_writer *w)
{
        _cleanup_text_ struct text names = {};
        uint32_t n = 0;

        for (uint32_t base = 1; base <= P_KEY_BASE_MASK; base++)
                if (base_set_has(&w->phases.held, (uint16_t) base) && n++ < WRITER_MAX_NAMED)
                        text_add(&names, "%s0x%04x", n > 1 ? ", " : "", base);
        if (n > WRITER_MAX_NAMED)
                text_add(&names, " and %u more", n - WRITER_MAX_NAMED);
        (void) writer_report(w, 0, LOG_EVENT_BASE_HELD,
                             "generation %" PRIu64 ": held back: partition%s %s; pkeyd does not know what some ports hold, so the change "
                             "could connect ports that must not talk, or cut off ports that may; OpenSM carries out the rest; "
                             "'pkeyctl show held' lists the ports",
                             w->job.generation->number, text_plural(n), names.failed ? "some" : names.bytes);
}

static int end(struct opensm_writer *w, int r)
{
        knowledge_settle_expected(w->job.knowledge, false); /* writes of a file that was not put in place */
        if (r == -ENOMEM && !w->reported)
                (void) writer_report(w, r, LOG_EVENT_SWEEP_FAILED, "%s could not be updated: %s", w->path, strerror(-r));
        else if (r == 0 && has_held(w))
                report_held(w);
        else if (r == 0 || !w->reported)
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

/* --- files of phases ---------------------------------------------------------------------------------------------- */

static int write_file(struct opensm_writer *w, enum purpose purpose, struct file_bytes f)
{
        w->purpose = purpose;
        w->file = f;
        if (f.n > PARTITIONS_CONF_MAX_SIZE)
                return writer_report(w, -EFBIG, LOG_EVENT_OPENSM_FILE_UNUSABLE, "the new %s would be %zu bytes, and pkeyd reads at "
                                     "most %u; nothing is written; use fewer partitions or groups", w->path, f.n,
                                     PARTITIONS_CONF_MAX_SIZE);
        return go_to(w, w->job.stores ? STEP_STORING : STEP_WRITING);
}

static int write_phase(struct opensm_writer *w, enum opensm_phase phase)
{
        struct file_bytes f;
        int r = writer_render(w, phase, &f);

        w->phase = phase;
        return r < 0 ? r : write_file(w, FOR_PHASE, f);
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
        int r = writer_render(w, OPENSM_GRANT, &f);

        if (r < 0 || writer_same_bytes(f, w->in_place))
                return end(w, r);
        return write_file(w, FOR_CONTENT, f);
}

/* Writes the file of the next phase, or begins the survey of all tables that ends the job. The files before may have taken long. */
static int next_phase(struct opensm_writer *w, usec_t now, enum opensm_phase from)
{
        enum opensm_phase phase = OPENSM_N_PHASES;
        int r = w->stopping ? 0 : knowledge_apply_doubt(w->job.knowledge, now) ?: writer_find_phase(w, from, &phase);

        if (r < 0)
                return r;
        if (phase < OPENSM_N_PHASES)
                return write_phase(w, phase);
        return w->stopping || w->n_files > 0 ? begin_last_survey(w, now) : write_content(w);
}

/* OpenSM dropped the file. Puts the last one back that was carried out; without one, a file of the tables as they were. */
static int put_back(struct opensm_writer *w)
{
        const struct partitions_file_port *tables = w->good_tables ? w->good_tables : w->phases.tables[OPENSM_ADOPT];
        struct file_bytes f = w->good;
        int r;

        (void) writer_report(w, 0, LOG_EVENT_OPENSM_FELL_BACK,
                             "OpenSM dropped its partition file (%s): every port is a full member of the default partition, and every "
                             "other entry is gone; pkeyd %s and signals OpenSM to read it", opensm_phase_to_string(w->phase),
                             f.bytes ? "puts the last good file back" : "writes a file of the tables as they were");
        w->last.fallback_reported = true;
        r = f.bytes ? 0 : writer_render(w, OPENSM_ADOPT, &f);
        r = r ?: opensm_expect(&w->phases, tables, w->job.snapshot->subnet, w->job.knowledge);
        return r < 0 ? r : write_file(w, TO_PUT_BACK, f);
}

/* The file stays: OpenSM may still be writing, and the file before it would give back what was revoked since. */
static int give_up(struct opensm_writer *w)
{
        const char *label = subnet_port_label(w->arena, w->job.snapshot->subnet, w->first_missing), *reads_it = "";
        uint32_t n = w->n_missing;

        if (!w->job.generation->settings->opensm_config) /* else that was checked */
                reads_it = arena_printf(w->arena, "; check that OpenSM reads %s (partition_config_file in opensm.conf)", w->path) ?: "";
        return writer_report(w, -ETIMEDOUT, LOG_EVENT_OPENSM_NOT_DONE,
                             "OpenSM did not carry out its partition file (%s): %u P_Key table%s from it, for example that of %s; the "
                             "file stays, and pkeyd continues with the next sweep%s",
                             opensm_phase_to_string(w->phase), n, n == 1 ? " differs" : "s differ", label ?: "?", reads_it);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

/* Were the tables open already when the file in place was written, and has OpenSM not read it yet? If another process wrote it,
 * that is possible where the file is not the last one of its generation. */
static bool were_open_before_file(const struct opensm_writer *w)
{
        if (writer_is_last_file(w, w->in_place))
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
        int r = writer_admit_at_once(w);
        bool had_partitions = writer_is_last_path(w) || w->in_place.bytes || w->job.generation->number > 1;

        if (had_partitions && !w->last.fallback_reported)
                log_add(w->log, LOG_EVENT_OPENSM_FELL_BACK, &(struct log_about) { .generation = w->job.generation->number },
                        "OpenSM fell back to its default partitions: every port is a full member of the default partition, and every "
                        "other entry is gone; pkeyd writes the file of the policy again");
        w->last.fallback_reported = had_partitions;
        return r < 0 ? r : write_phase(w, OPENSM_GRANT);
}

/* No phases: OpenSM reads a mirror at any heavy sweep. */
static int write_mirror(struct opensm_writer *w)
{
        int r = writer_admit_at_once(w);

        return r < 0 ? r : write_content(w);
}

/* To be called when every table that was read matches the policy: the file in place counts as carried out. */
static int accept_file_in_place(struct opensm_writer *w)
{
        if (w->in_place.bytes)
                writer_remember_file(w, w->in_place, true);
        return write_content(w);
}

/* No phase changes anything. If tables differ nevertheless, they have entries without an effect, which OpenSM removes when it reads
 * the file again. */
static int write_without_phases(struct opensm_writer *w)
{
        int r = writer_admit(w, OPENSM_ADOPT, OPENSM_ADOPT);
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
        return writer_report(w, -EAGAIN, LOG_EVENT_OPENSM_FILE_WAITS,
                             "%s is not written yet: the switch of %s did not answer all queries of discovery, so pkeyd does not know "
                             "whether it filters by P_Key, and its table lacks entries of that port; whatever the file, OpenSM could cut "
                             "the port off or let others in; pkeyd writes the file when the switch answers", w->path, undecided->label);
}

/* The file in place was read, and may be replaced. */
static int begin(struct opensm_writer *w, usec_t now)
{
        const struct opensm_transition *undecided;
        int r = writer_prepare(w);

        if (r < 0)
                return r;
        if (!w->job.mirror && had_fallen_back(w))
                return answer_fallback(w);
        w->last.fallback_reported = false;
        undecided = find_undecided(w);
        if (undecided)
                return refuse_undecided(w, undecided);
        if (w->job.mirror)
                return write_mirror(w);
        w->good = w->in_place;
        w->good_tables = w->phases.in_place;
        return writer_is_last_phase(w, OPENSM_ADOPT) ? write_without_phases(w) : next_phase(w, now, OPENSM_ADOPT);
}

void opensm_writer_start(struct opensm_writer *w, usec_t now, const struct opensm_job *job)
{
        assert(w->step == STEP_IDLE);
        w->job = *job;
        w->began = now;
        w->n_files = 0;
        w->reported = false;
        w->phase = OPENSM_ADOPT;
        w->phases = (struct opensm_phases) {};
        w->arena = arena_new();
        w->path = settings_opensm_file(job->generation->settings);
        w->copy_path = w->arena ? arena_printf(w->arena, "%s.before-pkeyd", w->path) : NULL;
        w->refused_path = w->arena ? arena_printf(w->arena, "%s.refused", w->path) : NULL;
        (void) (w->copy_path && w->refused_path ? go_to(w, STEP_READING) : end(w, -ENOMEM));
}

static int files_read(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        const struct control_file *file = &event->files[0];
        struct file_bytes f;
        int r;

        if (file->r == -ENOENT || (file->r == 0 && file->n == 0)) {
                writer_report_damaged(w, file->r == 0 ? "is empty" : "is gone");
                return begin(w, now);
        }
        if (file->r < 0)
                return writer_report(w, file->r, LOG_EVENT_OPENSM_FILE_UNUSABLE, "%s cannot be read: %s; %s", w->path,
                                     strerror(-file->r), writer_describe_consequence(w));
        f = (struct file_bytes) { arena_copy(w->arena, file->bytes, file->n + 1), file->n };
        r = f.bytes ? writer_check_in_place(w, f, &event->files[1]) : -ENOMEM;
        if (r < 0)
                return r;
        if (r == 0)
                return begin(w, now);
        w->file = f;
        return go_to(w, STEP_PUTTING_ASIDE);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* pkeyd is not root, and sees most of the file system read-only. */
static const char *way_out(int r)
{
        return r == -EACCES || r == -EPERM || r == -EROFS ? "; THE UNIT in pkeyd-opensm(7) describes how to let pkeyd write it" : "";
}

/* /etc/opensm itself should not be writable for pkeyd, so the path often is a link. */
#define OF_LINK "(beside the target, if the path is a link)"

static int aside_written(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        static const char changed[] = "was changed so that OpenSM cannot read it and would make every port a full member of the default "
                                      "partition";

        if (event->r < 0)
                return writer_report(w, event->r, LOG_EVENT_OPENSM_FILE_BROKEN,
                                     "%s %s; pkeyd does not replace it, because it cannot write a copy to %s " OF_LINK ": %s%s", w->path, changed,
                                     w->refused_path, strerror(-event->r), way_out(event->r));
        if (!w->last.damage_reported)
                log_add(w->log, LOG_EVENT_OPENSM_FILE_BROKEN, &(struct log_about) { .generation = w->job.generation->number },
                        "%s %s; pkeyd keeps the changed file as %s " OF_LINK ", and puts its own back in place", w->path, changed,
                        w->refused_path);
        w->last.damage_reported = true;
        return begin(w, now);
}

/* Without the record pkeyd would not know after a crash what OpenSM may have written, so no file is written. */
static int stored(struct opensm_writer *w, usec_t, const struct control_event *event)
{
        if (event->r == 0)
                return go_to(w, w->n_files > 0 ? STEP_READING_AGAIN : STEP_WRITING);
        return writer_report(w, event->r, LOG_EVENT_STATE_DIR, "pkeyd could not store what OpenSM would write next: %s; %s stays as it is until it can",
                             strerror(-event->r), w->path);
}

/* Phases may take minutes. If the file was changed meanwhile, the next sweep begins with what is in place. */
static int file_read_again(struct opensm_writer *w, usec_t, const struct control_event *event)
{
        const struct control_file *file = &event->files[0];

        if (file->r < 0 || !writer_is_last_file(w, (struct file_bytes) { file->bytes, file->n }))
                return -ESTALE;
        return go_to(w, STEP_WRITING);
}

static int file_written(struct opensm_writer *w, usec_t, const struct control_event *event)
{
        knowledge_settle_expected(w->job.knowledge, true); /* after an error, too: the file may be in place */
        if (event->r < 0)
                return writer_report(w, event->r, LOG_EVENT_OPENSM_FILE_UNUSABLE, "%s cannot be written: %s%s%s%s", w->path,
                                     strerror(-event->r), way_out(event->r), w->job.mirror ? "; " : "",
                                     w->job.mirror ? writer_describe_consequence(w) : "");
        writer_remember_file(w, w->file, false);
        writer_report_handover(w);
        writer_report_lost_groups(w);
        /* what is in no table, such as IPoIB parameters, should not wait for OpenSM's next heavy sweep */
        if (w->purpose == FOR_CONTENT && (w->job.mirror || writer_same_bytes(body_of(w->file), body_of(w->in_place))))
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
        usec_t timeout = PHASE_TIMEOUT + w->phases.n_ports * PHASE_TIMEOUT_PER_PORT;

        if (event->opensm.r < 0)
                return writer_report(w, event->opensm.r, LOG_EVENT_OPENSM_NOT_NOTIFIED,
                                     "OpenSM ended before it had carried out its partition file (%s): %s; the file stays, and pkeyd "
                                     "continues when OpenSM runs again", opensm_phase_to_string(w->phase), event->opensm.why);
        if (now - w->phase_began > timeout)
                return give_up(w);
        w->delay = MIN(2 * w->delay, MAX_DELAY);
        return wait_until(w, now + w->delay);
}

static int signalled(struct opensm_writer *w, usec_t now, const struct control_event *event)
{
        int r = event->opensm.r;

        if (r < 0)
                return writer_report(w, r, LOG_EVENT_OPENSM_NOT_NOTIFIED,
                                     "OpenSM could not be signalled to read its partition file: %s; pkeyd tries again", event->opensm.why);
        if (w->purpose == TO_PUT_BACK) {
                w->last.is_after_open = false; /* if all tables are open in the next sweep, too, OpenSM does not restore them */
                return -EIO; /* put_back() reported why */
        }
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
        r = r ?: survey_new(w->read_arena, w->seen, &options, &w->survey);
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
        if (writer_render(w, w->phase, &f) == 0) {
                w->good = f;
                w->good_tables = w->phases.tables[w->phase];
        }
        return next_phase(w, now, w->phase + 1);
}

/* Does not stop before the phase is carried out: OpenSM would go on writing what the next plan does not expect. */
static int check_phase(struct opensm_writer *w, usec_t now)
{
        w->n_missing = opensm_phases_missing(&w->phases, w->phase, w->seen, &w->first_missing);
        return w->n_missing > 0 ? go_to(w, STEP_PROBING) : phase_ends(w, now);
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
        r = r ?: take_seen(w, event->wall);
        if (r < 0)
                return writer_report(w, r, LOG_EVENT_SWEEP_FAILED, "the P_Key tables could not be read: %s", strerror(-r));
        if (w->is_last_survey && w->stopping)
                return -ECANCELED;
        if (fallen_back)
                return put_back(w);
        return w->is_last_survey ? finish(w, now) : check_phase(w, now);
}

/* --- actions ------------------------------------------------------------------------------------------------------ */

/* The action of each step and its answer. In a step without an action the writer waits for its due time, or has nothing to do. */
static const struct {
        enum control_action_kind action;
        enum control_event_kind answer;
        int (*answered)(struct opensm_writer *w, usec_t now, const struct control_event *event);
} steps[] = {
        [STEP_READING] = { CONTROL_READ_FILES, CONTROL_EVENT_FILES_READ, files_read },
        [STEP_PUTTING_ASIDE] = { CONTROL_WRITE_FILE, CONTROL_EVENT_FILE_WRITTEN, aside_written },
        [STEP_STORING] = { CONTROL_STORE, CONTROL_EVENT_STORED, stored },
        [STEP_READING_AGAIN] = { CONTROL_READ_FILES, CONTROL_EVENT_FILES_READ, file_read_again },
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
                        action.files[0].path = w->refused_path;
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

const char *opensm_writer_problem(const struct opensm_writer *w)
{
        return w->problem;
}
