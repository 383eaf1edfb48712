/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * subscribe [SM_KEY]
 *
 * Sends pkeyd's queries to the subnet administrator through the port that pkeyd would use: for the first P_Key block of this
 * port, then a subscription to notices. Prints one JSON object: the result and the contents of the record, and the state of the
 * subscription after the answer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ib/smp.h"
#include "notices/notices.h"
#include "shell/opened_port.h"

#define LOOK_AGAIN (20 * USEC_PER_MSEC)

/* A stage that queries one record. */
struct question {
        struct mad_request request;
        struct mad_result result;
        bool asked, answered;
};

static bool question_next(void *state, usec_t now, struct mad_request *ret)
{
        struct question *q = state;

        (void) now;
        if (q->asked)
                return false;
        q->asked = true;
        *ret = q->request;
        return true;
}

static void question_result(void *state, usec_t now, const struct mad_result *result)
{
        struct question *q = state;

        (void) now;
        q->result = *result;
        q->answered = true;
}

static bool question_done(const void *state)
{
        return ((const struct question *) state)->answered;
}

static void question_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        *ret_done = ((const struct question *) state)->answered;
        *ret_total = 1;
}

static void on_stage_ended(int r, void *userdata)
{
        (void) r;
        *(bool *) userdata = true;
}

static int ask_record(sd_event *event, const struct opened_port *port, const struct notices_sa *sa, bool *ended)
{
        struct p_key_record which = { .lid = port->lp.lid };
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        struct question q = {};
        struct mad_stage stage = { &q, question_next, question_result, question_done, question_progress };
        int r = 0;

        p_key_record_request(&which, sa->lid, sa->sl, sa->sm_key, &q.request);
        q.request.retries = 2;
        port_session_run(port->session, &stage);
        while (r >= 0 && !*ended)
                r = sd_event_run(event, UINT64_MAX);
        if (r < 0)
                return r;
        /* IBA 1.5, 15.2.5.11: the LID, the block's number, the port, and from the 9th byte on the entries */
        p_key_block_decode(q.result.data + 8, entries);
        printf("{\"record\": \"%s\", \"record_status\": %u, \"lid\": %u, \"entries\": [",
               mad_outcome_to_string(q.result.outcome), q.result.mad_status, q.result.data[0] << 8 | q.result.data[1]);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                printf("%s%u", i ? ", " : "", entries[i].v);
        printf("], ");
        return 0;
}

/* Ends the loop when the subscription has a result. */
static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct notices_status status;

        notices_get_status(userdata, &status);
        if (status.state != NOTICES_SUBSCRIBING)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        (void) sd_event_source_set_time(source, usec + LOOK_AGAIN);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int subscribe(sd_event *event, struct port_session *session, struct notices *notices, const struct notices_sa *sa)
{
        struct mad_background_task task = notices_task(notices);
        struct notices_status s;
        uint64_t now;
        int r;

        r = sd_event_now(event, CLOCK_MONOTONIC, &now);
        if (r < 0)
                return r;
        notices_set_sa(notices, now, sa, false);
        port_session_set_tasks(session, &task, 1);
        r = sd_event_add_time(event, NULL, CLOCK_MONOTONIC, now, 0, on_time, notices);
        r = r < 0 ? r : sd_event_loop(event);
        if (r < 0)
                return r;
        notices_get_status(notices, &s);
        printf("\"state\": %d, \"subscribed\": %s, \"by_type\": %s, \"key_unanswered\": %s, \"status\": %u}\n",
               (int) s.state, s.state == NOTICES_SUBSCRIBED ? "true" : "false", s.by_type ? "true" : "false",
               s.key_unanswered ? "true" : "false", s.mad_status);
        return 0;
}

static int run(sd_event *event, struct opened_port *port, uint64_t sm_key)
{
        const struct settings settings = { .timeout = USEC_PER_SEC / 10, .window = 16 };
        _cleanup_(notices_free_p) struct notices *notices = notices_new();
        struct port_session_handlers handlers = { .stage_ended = on_stage_ended };
        struct notices_sa sa = { .sm_key = sm_key };
        struct control_port opened;
        bool ended = false;
        int r, sa_error;

        if (!notices)
                return -1;
        handlers.userdata = &ended;
        opened_port_open(port, event, &settings, &handlers, &opened);
        if (opened.r < 0)
                return opened.r;
        sa.lid = port->lp.sm_lid;
        r = port_session_use_gsi(port->session, true, &sa_error);
        r = r < 0 ? r : sa_error;
        r = r < 0 ? r : ask_record(event, port, &sa, &ended);
        r = r < 0 ? r : subscribe(event, port->session, notices, &sa);
        opened_port_close(port);
        return r;
}

int main(int argc, char **argv)
{
        struct opened_port port = {};
        sd_event *event = NULL;
        int r;

        r = sd_event_new(&event);
        r = r < 0 ? r : run(event, &port, argc > 1 ? strtoull(argv[1], NULL, 0) : 0);
        (void) sd_event_unref(event);
        if (r < 0)
                fprintf(stderr, "subscribe: error %d\n", -r);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
