/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "violations/attribution_internal.h"

/* What the worst of a storm have in common is a change of this long ago, or later. */
#define STORM_HISTORY (3600 * USEC_PER_SEC)

/* One of the worst. */
struct worst {
        struct guid guid;
        struct beginning began;
        usec_t cause; /* when it last lost something before it began; 0: it did not */
};

/* The change of one of the worst that the most others share: of the same partition, with the same generation. */
struct shared_change {
        const struct membership_change *change;
        uint32_t n;
        bool is_between; /* some of them had perhaps begun before */
};

static bool may_be_cause(const struct worst *one, const struct membership_change *change)
{
        return membership_change_is_loss(change) && change->away_since == 0 && change->when <= one->began.latest;
}

static usec_t find_cause(const struct attribution_input *in, const struct worst *one)
{
        uint32_t n;
        const struct membership_change *changes = membership_history_of(in->history, one->guid, &n);
        usec_t cause = 0;

        for (uint32_t i = 0; i < n; i++)
                if (may_be_cause(one, &changes[i]))
                        cause = MAX(cause, changes[i].when);
        return cause;
}

static bool has_part(const struct attribution_input *in, const struct worst *one, const struct membership_change *change)
{
        const struct membership_change *own = membership_history_find(in->history, one->guid, change->base);

        return own && own->generation == change->generation && own->when == change->when && own->after == change->after &&
               may_be_cause(one, own) && own->when == one->cause;
}

static struct shared_change count_shared(const struct attribution_input *in, const struct worst *worst, uint32_t n,
                                         const struct membership_change *change)
{
        struct shared_change shared = { .change = change };

        for (uint32_t i = 0; i < n; i++)
                if (has_part(in, &worst[i], change)) {
                        shared.n++;
                        shared.is_between = shared.is_between || change->when > worst[i].began.earliest;
                }
        return shared;
}

static struct shared_change find_shared(const struct attribution_input *in, const struct worst *worst, uint32_t n)
{
        struct shared_change best = {};

        for (uint32_t i = 0; i < n; i++) {
                uint32_t n_changes;
                const struct membership_change *changes = membership_history_of(in->history, worst[i].guid, &n_changes);

                for (uint32_t j = 0; j < n_changes; j++) {
                        struct shared_change shared;

                        if (elapsed(changes[j].when, in->now) > STORM_HISTORY)
                                continue;
                        shared = count_shared(in, worst, n, &changes[j]);
                        if (shared.n > best.n)
                                best = shared;
                }
        }
        return best;
}

static void add_shared(struct text *w, const struct attribution_input *in, struct worst *worst, uint32_t n)
{
        struct shared_change shared;

        if (!in->history)
                return;
        for (uint32_t i = 0; i < n; i++)
                worst[i].cause = find_cause(in, &worst[i]);
        shared = find_shared(in, worst, n);
        if (shared.n < 2 || shared.n * 2 <= n)
                return;
        if (shared.n == n)
                text_add(w, "; all of these were ");
        else
                text_add(w, "; %u of these %u were ", shared.n, n);
        text_add(w, "%s %s (0x%04x) ", shared.change->after == MEMBERSHIP_NONE ? "taken out of" : "made limited members of",
                 shared.change->partition, (unsigned) shared.change->base);
        attribution_add_when(w, in, shared.change);
        /* it is no accident if all of them began between the same two samples as the edit */
        if (shared.n == n)
                text_add(w, ": this is probably the cause of all of them");
        else
                text_add(w, "%s their cause", shared.is_between ? ", about when this began: this is perhaps" : ": this is probably");
}

static const char *storm_verb(const struct facts *f)
{
        if (f->out->names_sender)
                return "sent";
        if (!source_is_constraint(f->record->source))
                return "received";
        if (f->record->source == VIOLATION_XMIT_CONSTRAINT && f->is_switch_port)
                return "should have received";
        return "counted";
}

/* Returns whether a notice does not name the sender: then the node that it names, if any, is the receiver. */
static bool is_of_unknown_sender(const struct facts *f)
{
        return violation_source_is_notice(f->record->source) && !f->out->names_sender;
}

/* A switch port that does not check P_Keys may count packets that its host did not send. */
static void add_worst(struct text *w, const struct facts *f)
{
        struct phrase n = phrase_number(f->record->unreported);

        if (is_of_unknown_sender(f))
                text_add(w, "%s%s counted %s", f->is_switch_port ? "switch port " : "", f->out->counted_by, n.text);
        else if (f->record->source == VIOLATION_RCV_CONSTRAINT && f->is_switch_port && !f->out->names_sender &&
                 host_is_known(&f->host))
                text_add(w, "switch port %s counted %s from %s", f->out->counted_by, n.text, f->out->node);
        else
                text_add(w, "%s %s %s", f->out->node, storm_verb(f), n.text);
}

static void add_storm(struct text *w, const struct violation_report *report, const struct attribution_input *in)
{
        text_add(w, "%s counted %s", phrase_count(report->n_ports, "port", "ports").text,
                 phrase_count(report->count, "violation", "violations").text);
        attribution_add_span(w, in, report->since);
        if (report->n_saturated > 0)
                text_add(w, "; %s: there may have been more",
                         phrase_count(report->n_saturated, "counter is at its maximum", "counters are at their maximum").text);
}

static void add_end_of_storm(struct text *w, const struct violation_report *report, const struct attribution_input *in)
{
        text_add(w, "quiet again after %s, %s in all at %s", phrase_duration(elapsed(report->since, in->now)).text,
                 phrase_number(report->count).text, phrase_count(report->n_ports, "port", "ports").text);
}

int attribution_write_sum(struct arena *a, const struct violation_report *report, const struct attribution_input *input,
                          struct attribution *out)
{
        uint32_t n = MIN(report->n_worst, (uint32_t) VIOLATIONS_WORST);
        bool quiet = report->kind == VIOLATION_ALL_QUIET;
        struct worst worst[VIOLATIONS_WORST];
        _cleanup_text_ struct text w = {};

        if (quiet)
                add_end_of_storm(&w, report, input);
        else
                add_storm(&w, report, input);
        for (uint32_t i = 0; i < n; i++) {
                struct attribution one = {};
                struct facts f = { .arena = a, .input = input, .record = &report->worst[i], .out = &one,
                                   .then = report->worst[i].episode_filter };
                int r = attribution_open(&f);

                if (r < 0)
                        return r;
                worst[i] = (struct worst) { .began = f.began };
                if (!is_of_unknown_sender(&f) || !f.is_switch_port)
                        worst[i].guid = one.port_guid;
                text_add(&w, i == 0 ? "; the worst: " : ", ");
                add_worst(&w, &f);
        }
        if (!quiet)
                add_shared(&w, input, worst, n);
        *out = (struct attribution) { .text = text_copy(a, &w) };
        return out->text ? 0 : -ENOMEM;
}
