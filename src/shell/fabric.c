/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/fabric.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "shell/discovery_process.h"
#include "shell/port_session.h"
#include "shell/thread.h"

#define DISCOVERY_MAX_SMPS 64 /* the window of libibnetdisc does not adapt: modest; more gains little */
#define PROGRESS_INTERVAL  (USEC_PER_SEC / 5)

enum fabric_job {
        JOB_NONE,
        JOB_DISCOVERY,
        JOB_STAGE,
};

/* What the discovery thread works on. It owns all of this, and nothing else of the fabric, until it rings. */
struct fabric_discovery {
        struct local_port lp;
        struct discovery_options options;
        struct arena *arena;
        struct subnet *subnet;
        bool apart;
        int r;
        int event_fd;
};

struct fabric {
        sd_event *event;
        char *ca;           /* as in the settings: NULL and 0 mean any */
        unsigned port_number;
        unsigned max_smps;
        usec_t timeout;
        uint64_t m_key;     /* of discoveries */
        struct local_port lp;
        struct settings settings;
        struct port_session *session; /* open from the first stage after a discovery on */
        struct mad_engine_counters closed; /* of sessions before this one */
        unsigned p_key_index;
        bool use_gsi, listen;
        int sa_error, pma_error; /* of the last registration */
        const struct mad_background_task *tasks;
        size_t n_tasks;
        void (*turn_ended)(void *userdata);
        void *tasks_userdata;

        enum fabric_job job;
        fabric_done_t done;
        void *userdata;
        uint64_t n_jobs_done;
        int last_r;

        struct mad_stage stage;
        struct fabric_discovery discovery;
        pthread_t thread;
        sd_event_source *discovered;
        struct subnet **ret_subnet;
};

/* The last thing that is done to a job: in `done` another one may begin. */
static void finish_job(struct fabric *f, int r)
{
        f->job = JOB_NONE;
        f->last_r = r;
        f->n_jobs_done++;
        f->done(r, f->userdata);
}

static int on_discovered(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
        struct fabric *f = userdata;
        eventfd_t n;

        (void) s;
        (void) revents;
        (void) eventfd_read(fd, &n);
        if (f->job != JOB_DISCOVERY)
                return 0;
        (void) pthread_join(f->thread, NULL);
        if (f->discovery.r >= 0)
                *f->ret_subnet = f->discovery.subnet;
        finish_job(f, MIN(f->discovery.r, 0));
        return 0;
}

int fabric_new(sd_event *event, const struct settings *settings, struct fabric **ret)
{
        _cleanup_(fabric_free_p) struct fabric *f = calloc(1, sizeof(*f));
        int r;

        *ret = NULL;
        if (!f)
                return -ENOMEM;
        f->event = event;
        f->port_number = settings->port;
        f->timeout = settings->timeout;
        f->settings = *settings;
        f->max_smps = MIN(settings->window, (unsigned) DISCOVERY_MAX_SMPS);
        f->discovery.event_fd = -1;
        if (settings->ca) {
                f->ca = strdup(settings->ca);
                if (!f->ca)
                        return -ENOMEM;
        }
        r = local_port_find(f->ca, f->port_number, &f->lp);
        if (r < 0)
                return r;
        f->discovery.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (f->discovery.event_fd < 0)
                return -errno;
        r = sd_event_add_io(event, &f->discovered, f->discovery.event_fd, EPOLLIN, on_discovered, f);
        if (r < 0)
                return r;
        *ret = STEAL(f);
        return 0;
}

static void close_port(struct fabric *f)
{
        if (f->session)
                fabric_get_counters(f, &f->closed);
        f->session = port_session_close(f->session);
}

struct fabric *fabric_free(struct fabric *f)
{
        if (!f)
                return NULL;
        if (f->job == JOB_DISCOVERY)
                (void) pthread_join(f->thread, NULL);
        close_port(f);
        if (f->discovered) {
                (void) sd_event_source_set_enabled(f->discovered, SD_EVENT_OFF);
                (void) sd_event_source_unref(f->discovered);
        }
        if (f->discovery.event_fd >= 0)
                (void) close(f->discovery.event_fd);
        free(f->ca);
        explicit_bzero(f, sizeof(*f)); /* M_Keys */
        free(f);
        return NULL;
}

const struct local_port *fabric_local_port(const struct fabric *f)
{
        return &f->lp;
}

int fabric_refresh_port(struct fabric *f)
{
        struct local_port found;
        bool same;
        int r;

        r = local_port_find(f->ca, f->port_number, &found);
        if (r < 0 && r != -ENETDOWN)
                return r;
        same = strcmp(found.ca, f->lp.ca) == 0 && found.port == f->lp.port;
        if (!same && f->job != JOB_NONE)
                return r; /* a job goes on through the port that it began with */
        if (!same)
                close_port(f);
        f->lp = found;
        return r;
}

static void *discover(void *argument)
{
        struct fabric_discovery *d = argument;

        if (d->apart) {
                d->r = discovery_run_apart(d->arena, &d->lp, &d->options, &d->subnet);
        } else {
                int lent = umad_port_lend(&d->lp);

                /* libibnetdisc would not say why the port cannot be used */
                d->r = lent < 0 ? lent : discovery_run(d->arena, &d->lp, &d->options, &d->subnet);
                umad_port_reclaim(&d->lp, lent);
        }
        (void) eventfd_write(d->event_fd, 1);
        return NULL;
}

void fabric_set_m_key(struct fabric *f, uint64_t m_key)
{
        f->m_key = m_key;
}

void fabric_discover_apart(struct fabric *f)
{
        f->discovery.apart = true;
}

int fabric_discover(struct fabric *f, struct arena *arena, struct subnet **ret_subnet, fabric_done_t done, void *userdata)
{
        int r;

        if (f->job != JOB_NONE)
                return -EBUSY;
        if (!f->discovery.apart)
                close_port(f);
        f->discovery.lp = f->lp;
        f->discovery.options = (struct discovery_options) { .max_smps = f->max_smps, .timeout = f->timeout,
                                                            .m_key = f->m_key };
        f->discovery.arena = arena;
        f->discovery.subnet = NULL;
        r = thread_start(&f->thread, discover, &f->discovery);
        if (r < 0)
                return r;
        f->ret_subnet = ret_subnet;
        f->done = done;
        f->userdata = userdata;
        f->job = JOB_DISCOVERY;
        return 0;
}

static void on_stage_ended(int r, void *userdata)
{
        finish_job(userdata, r);
}

static void on_turn_ended(void *userdata)
{
        struct fabric *f = userdata;

        if (f->turn_ended)
                f->turn_ended(f->tasks_userdata);
}

static void register_gsi(struct fabric *f)
{
        port_session_set_p_key_index(f->session, f->p_key_index);
        if (f->use_gsi)
                f->pma_error = port_session_use_gsi(f->session, f->listen, &f->sa_error);
}

static int open_port(struct fabric *f)
{
        const struct port_session_handlers handlers = {
                .turn_ended = on_turn_ended, .stage_ended = on_stage_ended, .userdata = f,
        };
        int r;

        if (f->session)
                return 0;
        r = port_session_open(f->event, &f->lp, &f->settings, &handlers, &f->session);
        if (r < 0)
                return r;
        register_gsi(f);
        if (f->n_tasks > 0)
                port_session_set_tasks(f->session, f->tasks, f->n_tasks);
        return 0;
}

int fabric_use_gsi(struct fabric *f, bool listen, int *ret_sa)
{
        bool is_open = f->session;
        int r;

        f->use_gsi = true;
        f->listen = listen;
        r = open_port(f);
        if (r < 0)
                return r;
        if (is_open)
                register_gsi(f);
        *ret_sa = f->sa_error;
        return f->pma_error;
}

void fabric_set_p_key_index(struct fabric *f, unsigned index)
{
        f->p_key_index = index;
        if (f->session)
                port_session_set_p_key_index(f->session, index);
}

int fabric_set_tasks(struct fabric *f, const struct mad_background_task *tasks, size_t n,
                     void (*turn_ended)(void *userdata), void *userdata)
{
        if (!f->discovery.apart)
                return -EOPNOTSUPP;
        f->tasks = tasks;
        f->n_tasks = n;
        f->turn_ended = turn_ended;
        f->tasks_userdata = userdata;
        if (!f->session)
                return open_port(f);
        port_session_set_tasks(f->session, tasks, n);
        return 0;
}

void fabric_wake_tasks(struct fabric *f)
{
        if (f->session)
                port_session_wake(f->session);
}

int fabric_run(struct fabric *f, const struct mad_stage *stage, fabric_done_t done, void *userdata)
{
        int r;

        if (f->job != JOB_NONE)
                return -EBUSY;
        r = open_port(f);
        if (r < 0)
                return r;
        port_session_run(f->session, stage);
        f->stage = *stage;
        f->done = done;
        f->userdata = userdata;
        f->job = JOB_STAGE;
        return 0;
}

bool fabric_is_busy(const struct fabric *f)
{
        return f->job != JOB_NONE;
}

static void tell_progress(const struct fabric *f, fabric_progress_t progress, void *userdata)
{
        uint64_t done = 0, total = 0;

        if (f->job == JOB_STAGE && f->stage.progress)
                f->stage.progress(f->stage.state, &done, &total);
        progress(done, total, userdata);
}

int fabric_wait(struct fabric *f, fabric_progress_t progress, void *userdata)
{
        uint64_t before = f->n_jobs_done;
        usec_t told = clock_now();

        if (f->job == JOB_NONE)
                return f->last_r;
        while (f->n_jobs_done == before) {
                int r = sd_event_run(f->event, PROGRESS_INTERVAL);

                if (r < 0)
                        return r;
                if (sd_event_get_state(f->event) == SD_EVENT_FINISHED)
                        return -ECANCELED;
                if (!progress || f->n_jobs_done != before || clock_now() - told < PROGRESS_INTERVAL)
                        continue;
                tell_progress(f, progress, userdata);
                told = clock_now();
        }
        return f->last_r;
}

void fabric_get_counters(const struct fabric *f, struct mad_engine_counters *ret)
{
        struct mad_engine_counters c = {};

        if (f->session)
                port_session_get_counters(f->session, &c);
        c.sent += f->closed.sent;
        c.retried += f->closed.retried;
        c.timed_out += f->closed.timed_out;
        c.answered += f->closed.answered;
        c.busy += f->closed.busy;
        c.malformed += f->closed.malformed;
        *ret = c;
}
