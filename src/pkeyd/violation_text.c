/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/violation_text.h"

#include <errno.h>
#include <string.h>

#include "shell/shell.h"

static bool is_of_many(const struct violation_report *report)
{
        return report->kind == VIOLATION_STORM || report->kind == VIOLATION_ALL_QUIET;
}

static enum log_event event_of(const struct violation_report *report)
{
        switch (report->kind) {
        case VIOLATION_FIRST:
        case VIOLATION_MORE:
                break;
        case VIOLATION_SATURATED:
                return LOG_EVENT_VIOLATION_SATURATED;
        case VIOLATION_QUIET:
                return LOG_EVENT_VIOLATION_QUIET;
        case VIOLATION_STORM:
                return LOG_EVENT_VIOLATION_STORM;
        case VIOLATION_ALL_QUIET:
                return LOG_EVENT_VIOLATION_QUIET;
        }
        return violation_source_is_notice(report->record.source) ? LOG_EVENT_VIOLATION_NOTICE : LOG_EVENT_VIOLATION;
}

static void fill_item(const struct attribution *words, const struct violation_record *record, struct violation_item *ret)
{
        *ret = (struct violation_item) {
                .source = violation_source_to_string(record->source),
                .node = words->node,
                .port_guid = words->port_guid,
                .lid = words->lid,
                .port = words->port,
                .switch_name = words->switch_name,
                .partition = words->partition,
                .p_key = words->p_key,
                .total = record->total,
                .first = clock_to_wall(record->first),
                .last = clock_to_wall(record->last),
                .names_sender = words->names_sender,
                .saturated = record->saturated,
                .text = words->text,
        };
}

int violation_item_of_record(struct arena *a, const struct violation_record *record,
                             const struct attribution_context *context, struct violation_item *ret)
{
        struct attribution words;
        int r = attribution_explain_record(a, record, context, &words);

        if (r == 0)
                fill_item(&words, record, ret);
        return r;
}

static const char *kind_to_string(enum violation_kind kind)
{
        switch (kind) {
        case VIOLATION_FIRST:
                return "first";
        case VIOLATION_MORE:
                return "more";
        case VIOLATION_SATURATED:
                return "saturated";
        case VIOLATION_QUIET:
                return "quiet";
        case VIOLATION_STORM:
                return "storm";
        case VIOLATION_ALL_QUIET:
                return "all-quiet";
        }
        return NULL;
}

static void fill_report(const struct violation_report *report, const struct attribution *words, struct violation_item *ret)
{
        if (is_of_many(report))
                *ret = (struct violation_item) { .source = "storm", .text = words->text };
        else
                fill_item(words, &report->record, ret);
        ret->kind = kind_to_string(report->kind);
        ret->count = report->count;
        ret->n_ports = report->n_ports;
}

bool violation_text_log(const struct journal *j, struct arena *a, uint64_t generation,
                        const struct attribution_context *context, const struct violation_report *report,
                        struct violation_item *ret_item)
{
        const char *source = is_of_many(report) ? "storm" : violation_source_to_string(report->record.source);
        struct attribution words = {};
        struct log_about about = {
                .generation = generation,
                .source = source,
                .count = report->count,
                .total = is_of_many(report) ? report->count : report->record.total,
        };

        if (!a || attribution_explain(a, report, context, &words) < 0) {
                /* out of memory: the number at least */
                journal_event(j, event_of(report), &about, "%" PRIu64 " violations (%s)", report->count, source);
                return false;
        }
        about.node = words.node;
        about.port_guid = words.port_guid;
        about.lid = words.lid;
        about.port = words.port;
        about.switch_name = words.switch_name;
        about.partition = words.partition;
        about.p_key = words.p_key;
        journal_event(j, event_of(report), &about, "%s", words.text);
        fill_report(report, &words, ret_item);
        return true;
}

void violation_text_notices(const struct journal *j, const struct notices_status *status, bool has_sm_key)
{
        const char *key = has_sm_key ? "" : "; OpenSM sends notices of traps 257 to 259 only to subscribers that have its "
                                            "sa_key, see sa_key_file in pkeyd.yaml(5)";

        switch (status->state) {
        case NOTICES_SUBSCRIBED:
                journal_event(j, LOG_EVENT_NOTICES_SUBSCRIBED, NULL,
                              "the SA sends notices of P_Key violations (traps 257 to 259)");
                break;
        case NOTICES_REFUSED:
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "the SA refused the subscription to P_Key violations (traps 257 to 259): %s%s; counters "
                              "are polled all the same",
                              mad_status_to_string(status->mad_status), key);
                break;
        case NOTICES_UNANSWERED:
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "the SA does not answer the subscription to P_Key violations (traps 257 to 259); pkeyd tries "
                              "again; counters are polled all the same");
                break;
        case NOTICES_OFF:
        case NOTICES_SUBSCRIBING:
        case NOTICES_N_STATES:
                break;
        }
}

void violation_text_no_gsi(const struct journal *j, int pma, int sa, int *reported)
{
        int error = pma < 0 ? pma : sa;

        if (*reported == error)
                return;
        *reported = error;
        if (pma < 0)
                journal_event(j, LOG_EVENT_COUNTERS_ABSENT, NULL,
                              "the counters of violations cannot be asked for through this port: %s; P_Key tables are "
                              "looked after all the same",
                              strerror(-pma));
        else if (sa == -EINVAL || sa == -EBUSY) /* what a kernel says of a method that has its agent */
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "another program of this host takes the Reports of the SA (srp_daemon?), so pkeyd hears of no "
                              "notice; tried again with each look at the fabric; counters are polled all the same");
        else
                journal_event(j, LOG_EVENT_NOTICES_ABSENT, NULL,
                              "Reports of the SA do not come to pkeyd: %s; tried again with each look at the fabric; "
                              "counters are polled all the same",
                              strerror(-sa));
}
