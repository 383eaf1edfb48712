/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/jobs.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "pkeyd_rest/lease_messages.h"

#define MAX_READS   8                   /* at a time */
#define MAX_CHANGES 64                  /* of a pool that wait */
#define TIMEOUT     (60 * USEC_PER_SEC) /* of a call: pkeyd stores a change when its sweep has ended */

#define NOT_AVAILABLE "pkeyd is not available: "

/* What a view can need, by a method of pkeyd. */
static const struct read {
        unsigned need; /* enum rest_needs */
        const char *method;
        bool is_of_pool; /* the method has a pool as argument */
        int (*read)(struct arena *a, sd_bus_message *answer, struct rest_view *view);
} reads[] = {
        { REST_NEEDS_PARTITIONS, "ListWhole", true, lease_messages_read_list },
        { REST_NEEDS_PORTS, "Ports", false, lease_messages_read_ports },
        { REST_NEEDS_DEFAULT, "DefaultMembership", false, lease_messages_read_default },
};

enum stage { JOB_READS, JOB_EDITS, JOB_ENDED };

struct job {
        struct jobs *jobs;
        STAILQ_ENTRY(job) next;       /* in its queue */
        struct http_request *request; /* a reference */
        enum stage stage;
        unsigned needs;               /* enum rest_needs: what was not read yet */
        const struct read *read;      /* the last one of JOB_READS; NULL: there was none */
        struct rest_view view;
        struct rest_reply reply;
        sd_bus_slot *call;            /* owned; NULL: none is on its way */
        sd_bus_message *answer;       /* of the call; owned; NULL: none yet */
};

struct queue {
        STAILQ_HEAD(, job) jobs;
        size_t n;
};

/* The changes of a pool. */
struct pool {
        LIST_ENTRY(pool) next;
        struct queue changes;         /* jobs that wait; owned */
        struct job *changing;         /* slot of the job that runs; owned; NULL: free */
        char name[];
};

struct jobs {
        struct pkeyd_bus *bus;
        const struct journal_output *journal;
        sd_event_source *run;
        struct queue reads;           /* jobs that wait; owned */
        struct job *reading[MAX_READS]; /* slots of the jobs that run; owned; NULL: free */
        LIST_HEAD(, pool) pools;      /* those with changes; owned */
};

/* --- queues ----------------------------------------------------------------------------------------------------------- */

static void push(struct queue *q, struct job *job)
{
        STAILQ_INSERT_TAIL(&q->jobs, job, next);
        q->n++;
}

/* NULL: it is empty. */
static struct job *pop(struct queue *q)
{
        struct job *job = STAILQ_FIRST(&q->jobs);

        if (job) {
                STAILQ_REMOVE_HEAD(&q->jobs, next);
                q->n--;
        }
        return job;
}

static struct job *job_free(struct job *job)
{
        if (!job)
                return NULL;
        sd_bus_slot_unref(job->call);
        sd_bus_message_unref(job->answer);
        (void) http_request_unref(job->request);
        free(job);
        return NULL;
}
DEFINE_CLEANUP(struct job *, job_free)

static void drop(struct queue *q)
{
        for (struct job *job = pop(q); job; job = pop(q))
                (void) job_free(job);
}

static struct pool *pool_free(struct pool *p)
{
        LIST_REMOVE(p, next);
        (void) job_free(p->changing);
        drop(&p->changes);
        free(p);
        return NULL;
}

static void drop_unawaited(struct queue *q)
{
        for (size_t n = q->n; n > 0; n--) {
                struct job *job = pop(q);

                if (http_request_is_awaited(job->request))
                        push(q, job);
                else
                        (void) job_free(job);
        }
}

/* Changes that nobody awaits do not count. */
static bool is_full(struct queue *q)
{
        if (q->n == MAX_CHANGES)
                drop_unawaited(q);
        return q->n == MAX_CHANGES;
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

static void refuse(struct job *job, const char *why)
{
        http_refuse(job->request, 503, why);
        job->stage = JOB_ENDED;
}

/* Answers a change, and logs it. */
static void answer_change(struct job *job, enum rest_outcome outcome, const char *text)
{
        struct http_request *q = job->request;
        const struct door_audit audit = {
                .client = q->client->name, .address = q->address, .change = &job->reply.change, .outcome = outcome,
                .text = outcome == REST_STORED ? NULL : text,
        };
        struct rest_response response;

        door_log_change(job->jobs->journal, &audit);
        if (rest_answer(q->arena, &job->reply.change, outcome, text, &response) == 0)
                http_answer(q, &response);
        else
                http_refuse(q, 503, "out of memory");
        job->stage = JOB_ENDED;
}

/* Turns the request into a response or a change, by the view as far as it was read. */
static void handle(struct job *job)
{
        struct http_request *q = job->request;
        const struct rest_request request = { .method = q->method, .target = q->target, .body = q->body, .n_body = q->n_body };

        if (rest_handle(q->arena, &request, &job->view, &job->reply) < 0) {
                refuse(job, "out of memory");
        } else if (!job->reply.is_change) {
                http_answer(q, &job->reply.response);
                job->stage = JOB_ENDED;
        }
}

/* --- calls ------------------------------------------------------------------------------------------------------------ */

/* Goes on when the loop runs again. */
static void run_soon(struct jobs *j)
{
        (void) sd_event_source_set_enabled(j->run, SD_EVENT_ONESHOT);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *)
{
        struct job *job = userdata;

        job->answer = sd_bus_message_ref(m);
        job->call = sd_bus_slot_unref(job->call);
        run_soon(job->jobs);
        return 1;
}

/* Answers with 503. may_be_stored: also a change that was sent. */
static void fail(struct job *job, bool may_be_stored, const char *what, const char *why)
{
        char text[512];

        (void) snprintf(text, sizeof(text), "%s%.400s%s", what, why,
                        job->request->is_sent && may_be_stored ? HTTP_MAY_BE_STORED : "");
        if (job->reply.is_change)
                answer_change(job, REST_UNAVAILABLE, text);
        else
                refuse(job, text);
}

/* An error of this process, or of its connection to the bus. pkeyd_bus.c notices by itself if that breaks. */
static void fail_here(struct job *job, const char *what, int error)
{
        if (error == -ENOMEM)
                fail(job, true, "", "out of memory");
        else
                fail(job, true, what, strerror(-error));
}

static int make_call(struct job *job, enum stage stage, sd_bus_message **ret)
{
        const struct pkeyd_bus *b = job->jobs->bus;
        struct http_request *q = job->request;
        struct rest_edit edit;

        if (stage == JOB_READS)
                return lease_messages_call(b, job->read->method, job->read->is_of_pool ? q->client->pool : NULL, ret);
        return rest_edit_make(q->arena, &job->reply.change, &job->view, &edit) ?:
               lease_messages_edit(b, q->client->pool, q->client->name, &edit, ret);
}

static void call(struct job *job, enum stage stage)
{
        static const char no_bus[] = "there is no connection to the system bus";
        sd_bus *bus = pkeyd_bus_get(job->jobs->bus);
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        if (!bus) {
                pkeyd_bus_note_result(job->jobs->bus, no_bus);
                fail(job, true, NOT_AVAILABLE, no_bus);
                return;
        }
        r = make_call(job, stage, &m);
        if (r >= 0)
                r = sd_bus_call_async(bus, &job->call, m, on_answer, job, TIMEOUT);
        if (r < 0) {
                fail_here(job, NOT_AVAILABLE, r);
                return;
        }
        job->stage = stage;
        job->request->is_sent = stage == JOB_EDITS;
}

/* --- one step --------------------------------------------------------------------------------------------------------- */

static void take_edit(struct job *job, sd_bus_message *m)
{
        struct arena *a = job->request->arena;
        struct lease_messages_answer answer;
        int r = lease_messages_read_answer(a, m, &answer);
        const char *text = r < 0 ? NULL : rest_edit_translate(a, answer.text);

        if (!text)
                fail_here(job, "cannot parse pkeyd's answer: ", r < 0 ? r : -ENOMEM);
        else
                answer_change(job, rest_edit_outcome(&job->reply.change, answer.outcome, answer.code), text);
}

/* No program has the name of pkeyd, or the pkeyd of another fabric has it. */
static bool is_absent(const sd_bus_error *e)
{
        return sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) || sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
               sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT);
}

/* pkeyd did not carry out the call. After other errors, as NoReply and NoAnswer, it may have. */
static bool is_refused(const sd_bus_error *e)
{
        return is_absent(e) || sd_bus_error_has_name(e, SD_BUS_ERROR_ACCESS_DENIED) ||
               sd_bus_error_has_name(e, "org.pkeyd1.Error.TooManyCallers") || sd_bus_error_has_name(e, "org.pkeyd1.Error.Stopping");
}

/* In place of pkeyd, the bus or sd-bus answered. */
static bool is_from_bus(sd_bus_message *m)
{
        const char *sender = sd_bus_message_get_sender(m);

        return sender && strcmp(sender, "org.freedesktop.DBus") == 0;
}

static void take_error(struct job *job, sd_bus_message *m)
{
        const sd_bus_error *e = sd_bus_message_get_error(m);
        const char *text = is_absent(e) ? "it is not running, or is not on the system bus" : e->message ?: e->name;

        pkeyd_bus_note_result(job->jobs->bus, is_absent(e) || is_from_bus(m) ? text : NULL);
        if (job->stage == JOB_EDITS && sd_bus_error_has_name(e, SD_BUS_ERROR_INVALID_ARGS))
                answer_change(job, REST_REFUSED, text);
        else
                fail(job, !is_refused(e), NOT_AVAILABLE, text);
}

static void take_answer(struct job *job)
{
        _cleanup_message_ sd_bus_message *m = STEAL(job->answer);
        int r;

        if (sd_bus_message_is_method_error(m, NULL)) {
                take_error(job, m);
                return;
        }
        pkeyd_bus_note_result(job->jobs->bus, NULL);
        if (job->stage == JOB_EDITS) {
                take_edit(job, m);
                return;
        }
        r = job->read->read(job->request->arena, m, &job->view);
        if (r < 0)
                fail_here(job, "cannot parse pkeyd's answer: ", r);
}

/* The view is current, because no other change of this pool is on its way. */
static void edit(struct job *job)
{
        if (rest_edit_lacks_partition(&job->reply.change, &job->view))
                answer_change(job, REST_NOT_FOUND, "there is no such partition");
        else
                call(job, JOB_EDITS);
}

/* NULL: the view is complete. */
static const struct read *next_read(const struct job *job)
{
        for (size_t i = 0; i < ELEMENTS(reads); i++)
                if (job->needs & reads[i].need)
                        return &reads[i];
        return NULL;
}

/* Goes on as far as it can without an answer of pkeyd. */
static void step(struct job *job)
{
        const struct read *next = next_read(job);

        if (job->call)
                return;
        if (job->answer)
                take_answer(job);
        if (job->stage == JOB_ENDED)
                return;
        if (!http_request_is_awaited(job->request)) {
                job->stage = JOB_ENDED;
        } else if (next) {
                job->needs &= ~next->need;
                job->read = next;
                call(job, JOB_READS);
        } else {
                if (!job->reply.is_change)
                        handle(job);
                if (job->stage != JOB_ENDED)
                        edit(job);
        }
}

/* Steps the job in a slot. When it has ended, the next one in the queue takes the slot. */
static void run_slot(struct job **slot, struct queue *waiting)
{
        if (!*slot)
                *slot = pop(waiting);
        while (*slot) {
                step(*slot);
                if ((*slot)->stage != JOB_ENDED)
                        return;
                (void) job_free(*slot);
                *slot = pop(waiting);
        }
}

static int on_run(sd_event_source *, void *userdata)
{
        struct jobs *j = userdata;

        for (size_t i = 0; i < MAX_READS; i++)
                run_slot(&j->reading[i], &j->reads);
        for (struct pool *p = LIST_FIRST(&j->pools), *next; p; p = next) {
                next = LIST_NEXT(p, next);
                run_slot(&p->changing, &p->changes);
                if (!p->changing)
                        (void) pool_free(p);
        }
        return 0;
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

int jobs_new(sd_event *event, struct pkeyd_bus *bus, const struct journal_output *journal, struct jobs **ret)
{
        _cleanup_(jobs_free_p) struct jobs *j = calloc(1, sizeof(*j));
        int r;

        if (!j)
                return -ENOMEM;
        *j = (struct jobs) { .bus = bus, .journal = journal };
        STAILQ_INIT(&j->reads.jobs);
        r = sd_event_add_defer(event, &j->run, on_run, j);
        if (r < 0)
                return r;
        *ret = STEAL(j);
        return 0;
}

struct jobs *jobs_free(struct jobs *j)
{
        if (!j)
                return NULL;
        for (size_t i = 0; i < MAX_READS; i++)
                (void) job_free(j->reading[i]);
        drop(&j->reads);
        while (!LIST_EMPTY(&j->pools))
                (void) pool_free(LIST_FIRST(&j->pools));
        sd_event_source_disable_unref(j->run);
        free(j);
        return NULL;
}

/* Malformed changes are refused before pkeyd is asked. The names of hosts can be judged only with its ports. */
static bool is_handled_first(unsigned needs)
{
        return needs == REST_NEEDS_NOTHING || ((needs & REST_CHANGES) && !(needs & REST_NEEDS_PORTS));
}

/* NULL: out of memory. */
static struct queue *changes_of(struct jobs *j, const char *pool)
{
        struct pool *p;

        LIST_FOREACH(p, &j->pools, next)
                if (strcmp(p->name, pool) == 0)
                        return &p->changes;
        p = calloc(1, sizeof(*p) + strlen(pool) + 1);
        if (!p)
                return NULL;
        strcpy(p->name, pool);
        STAILQ_INIT(&p->changes.jobs);
        LIST_INSERT_HEAD(&j->pools, p, next);
        return &p->changes;
}

static void start(struct jobs *j, struct http_request *q, unsigned needs)
{
        _cleanup_(job_free_p) struct job *job = calloc(1, sizeof(*job));
        struct queue *queue;

        if (!job) {
                http_refuse(q, 503, "out of memory");
                return;
        }
        *job = (struct job) { .jobs = j, .request = http_request_ref(q), .needs = needs };
        if (is_handled_first(needs))
                handle(job);
        if (job->stage == JOB_ENDED)
                return;
        queue = needs & REST_CHANGES ? changes_of(j, q->client->pool) : &j->reads;
        if (!queue) {
                http_refuse(q, 503, "out of memory");
                return;
        }
        if (queue != &j->reads && is_full(queue)) {
                http_refuse(q, 503, "too many changes of this pool are already waiting");
                return;
        }
        push(queue, STEAL(job));
        run_soon(j);
}

void jobs_add(struct jobs *j, struct http_request *q)
{
        const struct rest_request request = { .method = q->method, .target = q->target };
        unsigned needs;

        if (rest_needs(q->arena, &request, &needs) < 0)
                http_refuse(q, 503, "out of memory");
        else
                start(j, q, needs);
}
