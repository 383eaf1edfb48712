/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/opensm_writer.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "opensm/opensm_conf.h"
#include "opensm/phases.h"
#include "pkeyd/say.h"
#include "shell/file.h"
#include "shell/opensm_process.h"

#define FIRST_LOOK (50 * USEC_PER_MSEC)
#define MAX_LOOK   (1 * USEC_PER_SEC)
/* How long a phase may take, and how long OpenSM is given to read a file that changes nothing in the tables. */
#define PATIENCE          (20 * USEC_PER_SEC)
#define PATIENCE_PER_PORT (10 * USEC_PER_MSEC)
#define SETTLE            (1 * USEC_PER_SEC)
#define SETTLE_PER_PORT   (1 * USEC_PER_MSEC)

struct file_bytes {
        const char *bytes;
        size_t n;
};

struct opensm_writer {
        struct daemon *d;
        char *last;              /* the bytes that were written last, to know a file that was cut short; malloc'ed */
        size_t n_last;
        uint64_t said;           /* digest of the trouble that was told last */

        /* while it runs */
        struct arena *arena;
        const struct generation *g;
        const struct reconciled *decision;
        opensm_writer_done_t done;
        void *userdata;
        struct opensm_phases phases;
        enum opensm_phase phase; /* the one whose file stands there */
        struct file_bytes good;  /* the file of the last phase that was carried out; bytes NULL: none */
        bool running, ending, at_the_end;
        usec_t began, phase_began, delay;
        unsigned n_files;
        sd_event_source *timer;
        struct arena *look;      /* of one look at the tables */
        struct observed *seen;
};

/* ---- what is said ---------------------------------------------------------------------------------------------- */

static uint64_t digest(const char *text)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                h = (h ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        return h;
}

/* The same trouble once until it is over. */
__attribute__((format(printf, 3, 4))) static void trouble(struct opensm_writer *w, enum journal_event event, const char *format,
                                                          ...)
{
        struct journal_about about = { .generation = w->g ? w->g->number : 0 };
        char text[1024];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (w->said != digest(text))
                journal_event(&w->d->journal, event, &about, "%s", text);
        w->said = digest(text);
        daemon_set_status(w->d, "%s", text);
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void opensm_writer_drop(struct opensm_writer *w)
{
        w->timer = sd_event_source_disable_unref(w->timer);
        w->look = arena_free(w->look);
        w->arena = arena_free(w->arena);
        w->running = w->ending = w->at_the_end = false;
        w->good = (struct file_bytes) {};
        w->g = NULL;
}

/* Always the last thing that is done. */
static void finish(struct opensm_writer *w, int r)
{
        opensm_writer_done_t done = w->done;
        void *userdata = w->userdata;

        if (r == 0)
                w->said = 0;
        opensm_writer_drop(w);
        done(r, userdata);
}

/* ---- the file in place ----------------------------------------------------------------------------------------- */

static bool was_cut_short(const struct opensm_writer *w, struct file_bytes f)
{
        return w->last && f.n < w->n_last && memcmp(f.bytes, w->last, f.n) == 0;
}

/* Somebody made a copy of it, and with that gave it away. */
static bool was_given(struct arena *a, const char *path, struct file_bytes f)
{
        const char *copy = arena_printf(a, "%s.before-pkeyd", path), *bytes;
        size_t n;

        return copy && file_read(a, copy, PARTITIONS_CONF_MAX_SIZE, &bytes, &n) == 0 && n == f.n &&
               memcmp(bytes, f.bytes, n) == 0;
}

/* Would OpenSM throw it away? */
static bool opens_the_fabric(struct arena *a, const char *path, struct file_bytes f)
{
        _cleanup_findings_ struct findings ignored;
        struct partitions_conf *conf;

        findings_init(&ignored, a);
        return partitions_conf_parse(a, path, f.bytes, f.n, &ignored, &conf) == -EBADMSG || conf->discarded;
}

static int put_aside(struct opensm_writer *w, struct arena *a, const char *path, struct file_bytes f)
{
        const char *aside = arena_printf(a, "%s.refused", path);
        int r = aside ? file_write_shared(aside, f.bytes, f.n) : -ENOMEM;

        if (r == 0)
                trouble(w, EVENT_OPENSM_FILE_BROKEN,
                        "%s was changed so that OpenSM cannot read it and would make every port a full member of the default "
                        "partition; the changed file is kept as %s, and pkeyd puts its own in place again", path, aside);
        return r;
}

static int refuse_file(struct opensm_writer *w, const char *path, bool edited)
{
        if (edited)
                trouble(w, EVENT_OPENSM_FILE_FOREIGN,
                        "%s was changed by somebody since pkeyd wrote it, and is left as it is; nothing is written until it is "
                        "known what is meant: put the change into the policy, then let pkeyd have the file with: cp %s "
                        "%s.before-pkeyd", path, path, path);
        else
                trouble(w, EVENT_OPENSM_FILE_FOREIGN,
                        "%s was not written by pkeyd, and is left as it is; nothing is written: make a policy of it with "
                        "pkeyctl import %s, then let pkeyd have the file with: cp %s %s.before-pkeyd", path, path, path,
                        path);
        return -EEXIST;
}

/* Of a file that this daemon wrote before. */
static void tell_damage(struct opensm_writer *w, const char *path, const char *what)
{
        if (w->last)
                trouble(w, EVENT_OPENSM_FILE_BROKEN,
                        "%s, which pkeyd wrote, %s: from its next heavy sweep on OpenSM would not make of the fabric what the "
                        "policy says; pkeyd writes it again", path, what);
}

/* What stands there, if it may be replaced; *ret_ours: it is intact and ours. bytes NULL: nothing that counts. */
static int look_at_file(struct opensm_writer *w, struct arena *a, const char *path, struct file_bytes *ret, bool *ret_ours)
{
        enum partitions_file_owner owner;
        struct file_bytes f = {};
        int r;

        *ret = f;
        *ret_ours = false;
        r = file_read(a, path, PARTITIONS_CONF_MAX_SIZE, &f.bytes, &f.n);
        if (r == -ENOENT || (r == 0 && f.n == 0)) {
                tell_damage(w, path, r == -ENOENT ? "is gone" : "is empty");
                return 0;
        }
        if (r < 0) {
                trouble(w, EVENT_OPENSM_FILE_FOREIGN, "%s cannot be read: %s; nothing is written", path, strerror(-r));
                return r;
        }
        owner = partitions_file_recognise(f.bytes, f.n, NULL);
        if (owner == PARTITIONS_FILE_INTACT) {
                *ret = f;
                *ret_ours = true;
                return 0;
        }
        if (was_cut_short(w, f))
                tell_damage(w, path, "was cut short");
        if (was_cut_short(w, f) || was_given(a, path, f))
                return 0;
        if (owner == PARTITIONS_FILE_EDITED && opens_the_fabric(a, path, f))
                return put_aside(w, a, path, f);
        return refuse_file(w, path, owner == PARTITIONS_FILE_EDITED);
}

static int write_file(struct opensm_writer *w, const char *path, struct file_bytes f)
{
        char *copy;
        int r;

        if (f.n > PARTITIONS_CONF_MAX_SIZE) {
                trouble(w, EVENT_OPENSM_FILE_FOREIGN, "%s would have %zu bytes, more than pkeyd reads again (%u); nothing is written",
                        path, f.n, PARTITIONS_CONF_MAX_SIZE);
                return -EFBIG;
        }
        copy = malloc(MAX(f.n, (size_t) 1));
        if (!copy)
                return -ENOMEM;
        r = file_write_shared(path, f.bytes, f.n);
        if (r < 0) {
                free(copy);
                trouble(w, EVENT_OPENSM_FILE_FOREIGN, "%s cannot be written: %s", path, strerror(-r));
                return r;
        }
        memcpy(copy, f.bytes, f.n);
        free(w->last);
        w->last = copy;
        w->n_last = f.n;
        return 0;
}

/* What follows the two lines of the head. */
static struct file_bytes body_of(struct file_bytes f)
{
        for (int line = 0; line < 2; line++) {
                const char *end = f.n > 0 ? memchr(f.bytes, '\n', f.n) : NULL;

                f.n = end ? f.n - (size_t) (end + 1 - f.bytes) : 0;
                f.bytes = end ? end + 1 : f.bytes;
        }
        return f;
}

static bool same_bytes(struct file_bytes x, struct file_bytes y)
{
        return x.n == y.n && (x.n == 0 || memcmp(x.bytes, y.bytes, x.n) == 0);
}

static int reload(struct opensm_writer *w)
{
        char why[OPENSM_WHY];
        int r = opensm_process_signal(w->g->settings, SIGHUP, why);

        if (r < 0)
                trouble(w, EVENT_OPENSM_UNTOLD, "OpenSM could not be told to read its partition file: %s; it will be tried again",
                        why);
        return r;
}

/* ---- files of phases ------------------------------------------------------------------------------------------- */

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
        _cleanup_findings_ struct findings findings;
        struct partitions_file file;
        int r;

        findings_init(&findings, w->arena);
        r = partitions_file_from_ports(w->arena, w->g->policy, w->phases.tables[phase], w->phases.n_ports, &file);
        if (r < 0)
                return r;
        file.generation = w->g->number;
        file.phase = is_last(w, phase) ? NULL : opensm_phase_to_string(phase);
        r = partitions_file_render(w->arena, &file, w->phases.allow_both, &findings, &ret->bytes, &ret->n);
        say_findings(&w->d->journal, &findings);
        return r;
}

/* ---- from phase to phase --------------------------------------------------------------------------------------- */

static void arm(struct opensm_writer *w, usec_t delay)
{
        (void) sd_event_source_set_time(w->timer, clock_now() + delay);
        (void) sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
}

static void look_once_more(struct opensm_writer *w)
{
        w->at_the_end = true;
        arm(w, 0);
}

static void begin_phase(struct opensm_writer *w, enum opensm_phase phase)
{
        struct file_bytes f;
        int r;

        r = render(w, phase, &f);
        if (r == 0)
                r = write_file(w, w->g->settings->opensm_partitions_conf, f);
        if (r == 0)
                r = reload(w);
        if (r < 0) {
                finish(w, r);
                return;
        }
        w->n_files++;
        w->phase = phase;
        w->phase_began = clock_now();
        w->delay = FIRST_LOOK;
        journal_debug(&w->d->journal, "OpenSM was given its partition file: %s", opensm_phase_to_string(phase));
        arm(w, phase == OPENSM_ADOPT ? SETTLE + w->phases.n_ports * SETTLE_PER_PORT : FIRST_LOOK);
}

/* The next file, or the look at all tables that ends it. */
static void next_phase(struct opensm_writer *w, enum opensm_phase from)
{
        for (enum opensm_phase phase = from; !w->ending && phase < OPENSM_N_PHASES; phase++)
                if (w->phases.needed[phase]) {
                        begin_phase(w, phase);
                        return;
                }
        look_once_more(w);
}

/* The last file that was carried out is put back. Without one, that of the tables as they were. */
static int put_back(struct opensm_writer *w)
{
        struct file_bytes f = w->good;
        int r = 0;

        if (!f.bytes)
                r = render(w, OPENSM_ADOPT, &f);
        if (r == 0)
                r = write_file(w, w->g->settings->opensm_partitions_conf, f);
        return r < 0 ? r : reload(w);
}

static void fell_back(struct opensm_writer *w)
{
        int r = put_back(w);

        trouble(w, EVENT_OPENSM_FELL_BACK,
                "OpenSM dropped its partition file (%s): every port is a full member of the default partition, and every other "
                "entry is gone; the last good file was put back%s", opensm_phase_to_string(w->phase),
                r < 0 ? ", but OpenSM could not be told" : " and OpenSM told to read it");
        finish(w, -EIO);
}

static void not_reached(struct opensm_writer *w, uint32_t n, uint32_t port)
{
        const char *label = subnet_port_label(w->look, w->d->picture->subnet, port);
        int r = put_back(w);

        trouble(w, EVENT_OPENSM_NOT_DONE,
                "OpenSM did not carry out its partition file (%s): %u port%s not as it says, among them %s; the last file that was "
                "carried out was put back%s", opensm_phase_to_string(w->phase), n, n == 1 ? " is" : "s are",
                label ? label : "?", r < 0 ? ", but OpenSM could not be told" : "");
        finish(w, -ETIMEDOUT);
}

static void end_well(struct opensm_writer *w, const struct observed *observed)
{
        uint32_t first = 0, n = opensm_phases_missing(&w->phases, OPENSM_GRANT, observed, &first);

        if (opensm_phases_fell_back(&w->phases, OPENSM_GRANT, observed)) {
                w->phase = OPENSM_GRANT;
                fell_back(w);
                return;
        }
        if (n == 0 && w->n_files > 0)
                journal_event(&w->d->journal, EVENT_APPLIED, &(struct journal_about) { .generation = w->g->number },
                              "generation %" PRIu64 ": carried out by OpenSM with %u partition file%s in %.1f s", w->g->number,
                              w->n_files, w->n_files == 1 ? "" : "s",
                              (double) (clock_now() - w->began) / (double) USEC_PER_SEC);
        finish(w, 0);
}

/* OpenSM needs time; a process that is gone needs more of it than there is. */
static void wait_longer(struct opensm_writer *w, uint32_t n, uint32_t port)
{
        usec_t patience = PATIENCE + w->phases.n_ports * PATIENCE_PER_PORT;
        char why[OPENSM_WHY];
        int r = opensm_process_signal(w->g->settings, 0, why);

        if (r < 0) {
                trouble(w, EVENT_OPENSM_UNTOLD, "OpenSM ended before it had carried out its partition file (%s): %s; the file stays, "
                        "and it goes on from there when OpenSM runs again", opensm_phase_to_string(w->phase), why);
                finish(w, r);
        } else if (clock_now() - w->phase_began > patience) {
                not_reached(w, n, port);
        } else {
                w->delay = MIN(2 * w->delay, MAX_LOOK);
                arm(w, w->delay);
        }
}

static void on_looked(int r, void *userdata)
{
        struct opensm_writer *w = userdata;
        uint32_t n, first = 0;
        struct file_bytes f;

        if (r < 0) {
                trouble(w, EVENT_PASS_FAILED, "the P_Key tables could not be read: %s", strerror(-r));
                finish(w, r);
                return;
        }
        picture_merge(w->d->picture, w->seen);
        if (w->at_the_end && w->ending) {
                finish(w, -ECANCELED);
                return;
        }
        if (w->at_the_end) {
                end_well(w, w->seen);
                return;
        }
        n = opensm_phases_missing(&w->phases, w->phase, w->seen, &first);
        if (opensm_phases_fell_back(&w->phases, w->phase, w->seen)) {
                fell_back(w);
        } else if (w->ending) {
                look_once_more(w);
        } else if (n > 0) {
                wait_longer(w, n, first);
        } else {
                if (render(w, w->phase, &f) == 0)
                        w->good = f;
                next_phase(w, w->phase + 1);
        }
}

/* Reads the tables that the phase changes, in the end all. */
static int start_look(struct opensm_writer *w)
{
        struct survey_options options = { .m_keys = w->g->m_keys, .retries = STAGE_RETRIES };
        const struct subnet *subnet = w->d->picture->subnet;
        struct mad_stage stage;
        struct survey *survey;
        int r;

        arena_free(w->look);
        w->look = arena_new();
        if (!w->look)
                return -ENOMEM;
        r = observed_new(w->look, subnet, &w->seen);
        if (r == 0 && !w->at_the_end)
                r = opensm_phases_changed(w->look, &w->phases, w->phase, subnet, &options.ports, &options.n_ports);
        if (r == 0 && options.ports && options.n_ports == 0)
                return 0; /* all of them are down */
        if (r == 0)
                r = survey_new(w->look, w->seen, &options, &survey);
        if (r < 0)
                return r;
        stage = survey_stage(survey);
        r = fabric_run(w->d->fabric, &stage, on_looked, w);
        return r < 0 ? r : 1;
}

static int on_timer(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        struct opensm_writer *w = userdata;
        int r = start_look(w);

        (void) timer;
        (void) scheduled;
        if (r <= 0)
                on_looked(r, w);
        return 0;
}

/* ---- the beginning --------------------------------------------------------------------------------------------- */

/* In force are OpenSM's defaults where no file of options is named. */
static int read_conf(struct arena *a, const struct settings *s, struct findings *findings, struct opensm_conf *ret)
{
        const char *bytes;
        size_t n;
        int r;

        opensm_conf_default(ret);
        if (!s->opensm_config)
                return 0;
        r = file_read_found(a, s->opensm_config, OPENSM_CONF_MAX_SIZE, findings, &bytes, &n);
        return r < 0 ? r : opensm_conf_parse(a, s->opensm_config, bytes, n, findings, ret);
}

static const char *path_of(const struct generation *g)
{
        return g->settings->writer == WRITER_OPENSM ? g->settings->opensm_partitions_conf : g->settings->opensm_mirror;
}

static void check_path(const struct generation *g, const struct opensm_conf *conf, struct findings *findings)
{
        const struct location where = { .file = g->settings->opensm_config };

        if (conf->partition_config_file && strcmp(conf->partition_config_file, path_of(g)) != 0)
                (void) findings_add(findings, FINDING_ERROR, FINDING_OPENSM_CONF, &where,
                                    "partition_config_file is %s, but the partition file in pkeyd.yaml is %s",
                                    conf->partition_config_file, path_of(g));
}

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

int opensm_writer_judge(const struct generation *g, const struct reconciled *decision,
                        struct findings *findings)
{
        size_t n_errors = findings->n_errors;
        struct opensm_conf conf;
        int r;

        if (!path_of(g))
                return 0;
        r = read_conf(findings->arena, g->settings, findings, &conf);
        if (r < 0)
                return r;
        check_path(g, &conf, findings);
        check_both(decision->desired, &conf, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}

/* Those that are down, by the names and places they had. A policy that says two things of one of them is refused when it is
 * back; until then they keep what they have. */
static int add_absent(struct opensm_writer *w, const struct opensm_tables *in_place, struct opensm_way **ways, uint32_t *n)
{
        const struct subnet *subnet = w->d->picture->subnet;
        _cleanup_findings_ struct findings ignored;
        struct memberships *memberships;
        struct opensm_way *absent, *all;
        struct desired *desired;
        struct subnet *larger;
        uint32_t n_absent;
        int r;

        findings_init(&ignored, w->arena);
        r = known_extend(w->arena, &w->d->state.known, subnet, &larger);
        if (r == 0)
                r = policy_resolve(w->arena, w->g->policy, larger, &ignored, &memberships);
        if (r == 0)
                r = desired_compute(w->arena, memberships, &desired);
        if (r == 0 || r == -EBADMSG)
                r = opensm_ways_of_absent(w->arena, r == 0 ? desired : NULL, subnet, in_place, &absent, &n_absent);
        if (r < 0)
                return r;
        all = arena_new_array(w->arena, struct opensm_way, (size_t) *n + n_absent);
        if (!all)
                return -ENOMEM;
        memcpy(all, *ways, *n * sizeof(*all));
        memcpy(all + *n, absent, n_absent * sizeof(*all));
        *ways = all;
        *n += n_absent;
        return 0;
}

/* All files, from what is there to what was decided. */
static int prepare(struct opensm_writer *w, const char *path, struct file_bytes *ret_in_place)
{
        _cleanup_findings_ struct findings findings;
        struct opensm_tables tables, *in_place = NULL;
        struct partitions_conf *parsed;
        struct opensm_conf conf;
        struct opensm_way *ways;
        uint32_t n_ways;
        bool ours = false;
        int r;

        findings_init(&findings, w->arena);
        r = read_conf(w->arena, w->g->settings, &findings, &conf);
        if (r < 0)
                say_findings(&w->d->journal, &findings);
        else
                r = look_at_file(w, w->arena, path, ret_in_place, &ours);
        if (r < 0)
                return r;
        if (ours && partitions_conf_parse(w->arena, path, ret_in_place->bytes, ret_in_place->n, &findings, &parsed) == 0 &&
            !parsed->discarded) {
                r = opensm_tables_of_file(w->arena, parsed, &tables);
                in_place = &tables;
        }
        if (r == 0)
                r = opensm_ways_of_plan(w->arena, w->decision->plan, w->d->picture->observed, in_place, &ways, &n_ways);
        if (r == 0)
                r = add_absent(w, in_place, &ways, &n_ways);
        if (r < 0)
                return r;
        findings_done(&findings);
        findings_init(&findings, w->arena);
        r = opensm_phases_compute(w->arena, ways, n_ways, in_place, conf.allow_both_pkeys, &findings, &w->phases);
        say_findings(&w->d->journal, &findings);
        return r;
}

/* Nothing changes in the tables; the file has to say the same. OpenSM reads it at its next heavy sweep, but what is not in
 * the tables, as the parameters of IPoIB, should not wait for that. */
static void freshen(struct opensm_writer *w, const char *path, struct file_bytes in_place)
{
        struct file_bytes f;
        int r;

        r = render(w, OPENSM_GRANT, &f);
        if (r == 0 && !same_bytes(f, in_place))
                r = write_file(w, path, f);
        if (r == 0 && !same_bytes(body_of(f), body_of(in_place)))
                r = reload(w);
        finish(w, r);
}

static void begin(struct opensm_writer *w)
{
        const char *path = w->g->settings->opensm_partitions_conf;
        const struct observed *observed = w->d->picture->observed;
        struct file_bytes in_place = {};
        int r;

        r = prepare(w, path, &in_place);
        if (r < 0) {
                finish(w, r);
                return;
        }
        if (opensm_phases_fell_back(&w->phases, OPENSM_GRANT, observed)) {
                /* no time for steps: what is open is closed at once */
                if (w->last || in_place.bytes || w->g->number > 1) /* else it never had any others */
                        trouble(w, EVENT_OPENSM_FELL_BACK,
                                "OpenSM has taken its default partitions: every port is a full member of the default partition, "
                                "and every other entry is gone; it is given the file of the policy again");
                memset(w->phases.needed, 0, sizeof(w->phases.needed));
                begin_phase(w, OPENSM_GRANT);
                return;
        }
        w->good = in_place;
        if (is_last(w, OPENSM_ADOPT))
                freshen(w, path, in_place);
        else
                next_phase(w, OPENSM_ADOPT);
}

void opensm_writer_start(struct opensm_writer *w, const struct generation *g, const struct reconciled *decision,
                         opensm_writer_done_t done, void *userdata)
{
        int r;

        w->g = g;
        w->decision = decision;
        w->done = done;
        w->userdata = userdata;
        w->running = true;
        w->began = clock_now();
        w->n_files = 0;
        w->phase = OPENSM_ADOPT;
        w->arena = arena_new();
        r = w->arena ? sd_event_add_time(w->d->event, &w->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, w) : -ENOMEM;
        if (r < 0)
                finish(w, r);
        else
                begin(w);
}

void opensm_writer_end(struct opensm_writer *w)
{
        w->ending = w->running;
}

const char *opensm_writer_phase(const struct opensm_writer *w)
{
        return opensm_phase_to_string(w->phase);
}

/* ---- the mirror ------------------------------------------------------------------------------------------------ */

void opensm_writer_mirror(struct opensm_writer *w, const struct generation *g, const struct reconciled *decision)
{
        const char *path = path_of(g);
        struct file_bytes in_place = {}, f;
        int r;

        if (!path || w->running)
                return;
        w->g = g;
        w->decision = decision;
        w->arena = arena_new();
        r = w->arena ? prepare(w, path, &in_place) : -ENOMEM;
        if (r == 0)
                r = render(w, OPENSM_GRANT, &f);
        if (r == 0 && !same_bytes(f, in_place))
                r = write_file(w, path, f);
        if (r == 0)
                w->said = 0;
        opensm_writer_drop(w);
}

int opensm_writer_new(struct daemon *d, struct opensm_writer **ret)
{
        struct opensm_writer *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        w->d = d;
        *ret = w;
        return 0;
}

struct opensm_writer *opensm_writer_free(struct opensm_writer *w)
{
        if (!w)
                return NULL;
        opensm_writer_drop(w);
        free(w->last);
        free(w);
        return NULL;
}
