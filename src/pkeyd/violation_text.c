/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/violation_text.h"

#include <errno.h>
#include <string.h>

#include "shell/shell.h"
#include "violations/phrase.h"

static bool is_of_many(const struct violation_report *report)
{
        return report->kind == VIOLATION_STORM || report->kind == VIOLATION_ALL_QUIET;
}

static const struct {
        const char *name;
        enum log_event event;
} kinds[] = {
        [VIOLATION_FIRST] = { "first", LOG_EVENT_VIOLATION },
        [VIOLATION_MORE] = { "more", LOG_EVENT_VIOLATION },
        [VIOLATION_SATURATED] = { "saturated", LOG_EVENT_VIOLATION_SATURATED },
        [VIOLATION_QUIET] = { "quiet", LOG_EVENT_VIOLATION_QUIET },
        [VIOLATION_STORM] = { "storm", LOG_EVENT_VIOLATION_STORM },
        [VIOLATION_ALL_QUIET] = { "all-quiet", LOG_EVENT_VIOLATION_QUIET },
};

static enum log_event event_of(const struct violation_report *report)
{
        enum log_event event = kinds[report->kind].event;

        return event == LOG_EVENT_VIOLATION && violation_source_is_notice(report->record.source) ? LOG_EVENT_VIOLATION_NOTICE
                                                                                                  : event;
}

static void fill_item(const struct attribution *attribution, const struct violation_record *record, struct violation_item *ret)
{
        *ret = (struct violation_item) {
                .about = {
                        .source = violation_source_to_string(record->source),
                        .node = attribution->node,
                        .port_guid = attribution->port_guid,
                        .lid = attribution->lid,
                        .port = attribution->port,
                        .switch_name = attribution->switch_name,
                        .partition = attribution->partition,
                        .p_key = attribution->p_key,
                        .total = record->total,
                },
                .first = clock_to_wall(record->first),
                .last = clock_to_wall(record->last),
                .names_sender = attribution->names_sender,
                .saturated = record->saturated,
                .text = attribution->text,
        };
}

int violation_item_of_record(struct arena *a, const struct violation_record *record,
                             const struct attribution_input *context, struct violation_item *ret)
{
        struct attribution attribution;
        int r = attribution_explain_record(a, record, context, &attribution);

        if (r == 0)
                fill_item(&attribution, record, ret);
        return r;
}

static void fill_report(const struct violation_report *report, const struct attribution *attribution, struct violation_item *ret)
{
        if (is_of_many(report))
                *ret = (struct violation_item) { .about.source = "storm", .text = attribution->text };
        else
                fill_item(attribution, &report->record, ret);
        ret->kind = kinds[report->kind].name;
        ret->about.count = report->count;
        ret->n_ports = report->n_ports;
}

bool violation_text_log(const struct journal *j, struct arena *a, uint64_t generation,
                        const struct attribution_input *context, const struct violation_report *report,
                        struct violation_item *ret_item)
{
        struct attribution attribution = {};
        bool explained = a && attribution_explain(a, report, context, &attribution) == 0;
        struct log_about about;

        fill_report(report, &attribution, ret_item);
        about = ret_item->about;
        about.generation = generation;
        if (is_of_many(report))
                about.total = report->count;
        if (explained)
                journal_event(j, event_of(report), &about, "%s", attribution.text);
        else /* out of memory: the number at least */
                journal_event(j, event_of(report), &about, "%" PRIu64 " violations (%s)", report->count, about.source);
        return explained;
}

void violation_text_notices(const struct journal *j, const struct notices_status *status, bool has_sm_key)
{
        const char *key = has_sm_key ? "" : "; OpenSM sends notices of traps 257 to 259 only to subscribers that have its "
                                            "sa_key, see sa_key_file in pkeyd.yaml(5)";

        if (status->state == NOTICES_SUBSCRIBED)
                journal_event(j, LOG_EVENT_NOTICES_SUBSCRIBED, NULL,
                              "the SA sends notices of P_Key violations (traps 257 to 259)");
        else if (status->state == NOTICES_REFUSED)
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "the SA refused the subscription to P_Key violations (traps 257 to 259): %s%s; pkeyd still polls "
                              "counters",
                              status->mad_status ? mad_status_to_string(status->mad_status) : "its answer does not accept it", key);
        else if (status->state == NOTICES_UNANSWERED)
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "the SA does not answer the subscription to P_Key violations (traps 257 to 259); pkeyd tries "
                              "again, and still polls counters");
}

void violation_text_poll(const struct journal *j, const struct violation_poll_counters *poll)
{
        struct phrase silent = phrase_number(poll->n_silent), ports = phrase_count(poll->n_ports, "port", "ports");
        struct phrase cycle = phrase_duration(poll->cycle_duration), interval = phrase_duration(poll->interval);

        if (poll->is_late && poll->is_slow)
                journal_event(j, LOG_EVENT_POLL_LATE, NULL,
                              "polling the violation counters of %s takes %s, longer than violations.interval (%s), and %s of them did "
                              "not answer: answers are slow or lost; make violations.interval longer, or find the devices that hang",
                              ports.text, cycle.text, interval.text, silent.text);
        else if (poll->is_late)
                journal_event(j, LOG_EVENT_POLL_LATE, NULL,
                              "%s of %s did not answer when pkeyd polled their violation counters; polling each of them once takes %s, "
                              "longer than violations.interval (%s); the other ports are not delayed; restart or unplug the devices "
                              "that hang, or make violations.interval longer",
                              silent.text, ports.text, poll->cycle_duration > 0 ? cycle.text : "several rounds", interval.text);
        else
                journal_event(j, LOG_EVENT_POLL_IN_TIME, NULL,
                              "pkeyd polls the violation counters of every port within violations.interval (%s) again; %s of %s did "
                              "not answer",
                              interval.text, silent.text, ports.text);
}

void violation_text_no_gsi(const struct journal *j, int pma, int sa, int *reported)
{
        int error = pma < 0 ? pma : sa;

        if (*reported == error)
                return;
        *reported = error;
        if (pma < 0)
                journal_event(j, LOG_EVENT_COUNTERS_ABSENT, NULL,
                              "pkeyd cannot poll violation counters through this port: %s; it still keeps the P_Key tables up to date",
                              strerror(-pma));
        else if (sa == -EINVAL || sa == -EBUSY) /* what kernels return if another agent has the method */
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "another program of this host receives the Reports of the SA (srp_daemon?), so pkeyd gets no notices; "
                              "it tries again after each discovery, and still polls counters");
        else
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "pkeyd cannot receive Reports of the SA: %s; it tries again after each discovery, and still polls counters",
                              strerror(-sa));
}
