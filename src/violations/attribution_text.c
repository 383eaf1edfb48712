/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "violations/attribution_internal.h"
#include "violations/counter_samples.h"

#define MAX_NAMES 4

/* --- templates ---------------------------------------------------------------------------------------------------- */

static const char *const remark_templates[N_REMARKS] = {
#define REMARK(name, text) [REMARK_##name] = text,
#include "violations/attribution_remarks.def"
#undef REMARK
};

/* What happened: "SUBJECT VERB 3 packets TAIL (SOURCE)", "packets that SUBJECT VERB TAIL (SOURCE)". */
struct headline {
        const char *subject, *verb, *tail, *source;
};

/* Names of the standard and the kernel. */
static const char *const sources[VIOLATION_N_SOURCES] = {
        [VIOLATION_P_KEY_VIOLATIONS] = "PortInfo:P_KeyViolations",
        [VIOLATION_RCV_CONSTRAINT] = "PortRcvConstraintErrors",
        [VIOLATION_XMIT_CONSTRAINT] = "PortXmitConstraintErrors",
        [VIOLATION_BAD_PKEY_CNTR] = "bad_pkey_cntr",
        [VIOLATION_NOTICE_257] = "notice 257, P_Key mismatch",
        [VIOLATION_NOTICE_258] = "notice 258, Q_Key mismatch",
        [VIOLATION_NOTICE_259] = "notice 259, P_Key mismatch at a switch",
};

static const char *const certainty_texts[] = {
        [CAUSE_UNRELATED] = "",
        [CAUSE_LATER] = ", after this had begun",
        [CAUSE_REPEATED] = ", but this is not the first time: that was ",
        [CAUSE_SIMULTANEOUS] = ", about when this began: perhaps ",
        [CAUSE_POSSIBLE] = ": perhaps ",
        [CAUSE_PROBABLE] = ": probably ",
};

/* A template has values in braces. */
struct value {
        const char *name, *text;
};

struct sentence {
        const struct facts *facts;
        struct text text;
        const struct value *values; /* up to one without a name */
        char base[16]; /* "0x0101" */
        struct headline headline;
};

static void sentence_done(struct sentence *s)
{
        text_done(&s->text);
}

static const struct value *find_value(const struct sentence *s, const char *template)
{
        for (const struct value *v = s->values; v->name; v++)
                if (strncmp(template, v->name, strlen(v->name)) == 0)
                        return v;
        return NULL;
}

static void add_template(struct text *w, const struct sentence *s, const char *template)
{
        while (*template) {
                const struct value *v = find_value(s, template);

                text_add_n(w, v ? v->text : template, v ? strlen(v->text) : 1);
                template += v ? strlen(v->name) : 1;
        }
}

static const char *membership_word(enum membership m)
{
        return m == MEMBERSHIP_BOTH ? "full and limited" : membership_to_string(m);
}

/* --- the headline ------------------------------------------------------------------------------------------------- */

static const char *expand(const struct sentence *s, const char *template)
{
        _cleanup_text_ struct text w = {};

        add_template(&w, s, template);
        return text_copy(s->facts->arena, &w);
}

static int make_counter_headline(struct sentence *s)
{
        const struct facts *f = s->facts;
        bool in = f->record->source == VIOLATION_RCV_CONSTRAINT, constraint = source_is_constraint(f->record->source);
        struct headline h;

        if (f->out->names_sender)
                h = (struct headline) { "{host}", "sent", "with a P_Key that its switch port {port} does not accept" };
        else if (constraint && f->is_switch_port && f->filter == FILTER_ON)
                h = (struct headline) { "switch port {port}", "dropped", "{way} {host} with a P_Key that the port does not accept" };
        else if (constraint && f->is_switch_port)
                h = (struct headline) { "switch port {port}", "dropped", "{way} {host}" };
        else if (constraint)
                h = (struct headline) { "{port}", "refused", in ? "that came in" : "going out" };
        else
                h = (struct headline) { "{port}", "received", "with a P_Key that matches none of its own" };
        s->headline = (struct headline) { expand(s, h.subject), h.verb, expand(s, h.tail), sources[f->record->source] };
        return s->headline.subject && s->headline.tail ? 0 : -ENOMEM;
}

/* "with P_Key 0x8101 (the full key of tenant-a)"; a Q_Key is a secret of its users and is not shown. */
static const char *make_key(const struct facts *f)
{
        uint32_t key = f->record->notice.key;

        if (f->record->source == VIOLATION_NOTICE_258)
                return "with a Q_Key that it does not expect";
        if (!f->partition)
                return arena_printf(f->arena, "with P_Key 0x%04" PRIx32, key);
        return arena_printf(f->arena, "with P_Key 0x%04" PRIx32 " (the %s key of %s)", key,
                            membership_to_string(p_key_membership(f->out->p_key)), f->partition);
}

/* Whether the port that sent the notice is the receiver of the packet. */
static bool is_receiver(const struct facts *f)
{
        if (f->record->port.node_guid.v == 0)
                return f->record->notice.issuer.v == f->record->notice.lid2.v;
        return host_is_known(f->record->to) && f->to.guid.v == f->host.guid.v;
}

static int make_notice_headline(struct sentence *s)
{
        const struct facts *f = s->facts;
        const struct notice *n = &f->record->notice;
        const char *key = make_key(f), *at = "there", *by = "";
        bool is_259 = f->record->source == VIOLATION_NOTICE_259;

        if (is_259 || !is_receiver(f)) {
                at = !is_259 ? "by " : f->is_switch_port ? "at switch port " : "at ";
                by = f->out->counted_by;
        }
        if (!key)
                return -ENOMEM;
        s->headline = (struct headline) {
                .subject = f->from.label, .verb = "sent",
                .tail = arena_printf(f->arena, "to %s %s, refused %s%s", f->to.label, key, at, by),
                .source = sources[f->record->source],
        };
        if (n->qp1 != 0 || n->qp2 != 0)
                s->headline.source = arena_printf(f->arena, "%s, queue pair 0x%" PRIx32 " to 0x%" PRIx32, s->headline.source,
                                                  n->qp1, n->qp2);
        return s->headline.tail && s->headline.source ? 0 : -ENOMEM;
}

/* --- the subject ---------------------------------------------------------------------------------------------------- */

/* Name i of n, in "A, B (0x0101) and 3 others", but never "and 1 other", which is no shorter than a name. base: 0: without it. */
static void add_name(struct text *w, uint32_t i, uint32_t n, const char *name, uint16_t base)
{
        uint32_t shown = n > MAX_NAMES + 1 ? MAX_NAMES : n;

        if (i == shown)
                text_add(w, " and %s others", phrase_number(n - shown).text);
        if (i >= shown)
                return;
        text_add(w, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", name);
        if (base != 0)
                text_add(w, " (0x%04x)", (unsigned) base);
}

static const char *label_of(const struct facts *f, uint32_t partition)
{
        const struct policy_partition *p = &f->input->memberships->policy->partitions[partition];

        return policy_partition_label(f->arena, p) ?: p->name;
}

/* "; it is a full member of A, B and 3 others, a limited member of C" */
static void add_memberships(struct text *w, const struct facts *f, uint32_t port, const char *name)
{
        static const enum membership kinds[] = { MEMBERSHIP_FULL, MEMBERSHIP_BOTH, MEMBERSHIP_LIMITED };
        const struct memberships *m = f->input->memberships;
        const char *separator = "";

        if (m->first[port] == m->first[port + 1]) {
                text_add(w, "; the policy makes %s a member of no partition", name);
                return;
        }
        text_add(w, "; %s is", name);
        for (size_t k = 0; k < ELEMENTS(kinds); k++) {
                uint32_t n = 0, i = 0;

                for (uint32_t j = m->first[port]; j < m->first[port + 1]; j++)
                        n += m->items[j].membership == kinds[k];
                if (n == 0)
                        continue;
                text_add(w, "%s a %s member of ", separator, membership_word(kinds[k]));
                for (uint32_t j = m->first[port]; j < m->first[port + 1]; j++)
                        if (m->items[j].membership == kinds[k])
                                add_name(w, i++, n, label_of(f, m->items[j].partition), 0);
                separator = ",";
        }
}

void attribution_add_when(struct text *w, const struct attribution_input *input, const struct membership_change *change)
{
        if (change->away_since != 0) {
                text_add(w, "between %s and %s ago, while it was not in the fabric",
                         phrase_duration(elapsed(change->away_since, input->now)).text,
                         phrase_duration(elapsed(change->when, input->now)).text);
                return;
        }
        text_add(w, "%s ago", phrase_duration(elapsed(change->when, input->now)).text);
        if (change->same_policy)
                text_add(w, ", when the fabric changed and not the policy (was it renamed or plugged in elsewhere?)");
        else if (!change->by_lease)
                text_add(w, " by generation %" PRIu64, change->generation);
}

/* Of the same time and kind: both put into something, both taken out, or both changed in the same way. */
static bool is_like(const struct membership_change *a, const struct membership_change *b)
{
        bool both_in = a->before == MEMBERSHIP_NONE && b->before == MEMBERSHIP_NONE;
        bool both_out = a->after == MEMBERSHIP_NONE && b->after == MEMBERSHIP_NONE;

        return a->when == b->when && a->generation == b->generation && (both_out || a->before == b->before) &&
               (both_in || a->after == b->after);
}

static void add_consequence(struct text *w, const struct facts *f)
{
        const struct subject *s = &f->subject;

        text_add(w, "%s", certainty_texts[s->certainty]);
        if (s->certainty == CAUSE_REPEATED)
                text_add(w, "%s ago", phrase_duration(elapsed(f->began.latest, f->input->now)).text);
        if (s->certainty < CAUSE_SIMULTANEOUS)
                return;
        text_add(w, "%s", s->change->after != MEMBERSHIP_NONE ? "because of that"
                          : s->role == ROLE_SENDER            ? "its jobs still use the old key"
                                                              : "other members still send to it");
}

static void add_change(struct text *w, const struct facts *f)
{
        const struct subject *s = &f->subject;
        const struct membership_change *change = s->change;
        uint32_t n = 0, k = 0;

        text_add(w, "; %s was ", s->host->name);
        if (change->after == MEMBERSHIP_NONE)
                text_add(w, "taken out of ");
        else if (change->before == MEMBERSHIP_NONE)
                text_add(w, "put into ");
        else
                text_add(w, "changed from a %s to a %s member of ", membership_word(change->before),
                         membership_word(change->after));
        for (uint32_t i = 0; i < s->n_changes; i++)
                n += is_like(&s->changes[i], change);
        for (uint32_t i = 0; i < s->n_changes; i++)
                if (is_like(&s->changes[i], change))
                        add_name(w, k++, n, s->changes[i].partition, s->changes[i].base);
        text_add(w, " ");
        attribution_add_when(w, f->input, change);
        add_consequence(w, f);
}

static void add_subject(struct sentence *sentence)
{
        const struct facts *f = sentence->facts;
        struct text *w = &sentence->text;
        const struct subject *s = &f->subject;
        struct phrase known_for = phrase_duration(s->known_for);
        uint32_t port = SUBNET_NONE;

        switch (s->past) {
        case PAST_NOT_SHOWN:
                break;
        case PAST_CHANGED:
                add_change(w, f);
                break;
        case PAST_UNCHANGED:
                text_add(w, "; the partitions of %s have not changed in the last %s, which is as far as pkeyd knows", s->host->name, known_for.text);
                break;
        case PAST_NEVER:
                text_add(w, "; %s was never a member of %s (%s) in the %s that pkeyd remembers", s->host->name, f->partition,
                         sentence->base, known_for.text);
                break;
        case PAST_NO_MEMBER:
                text_add(w, "; %s is not a member of %s (%s)", s->host->name, f->partition, sentence->base);
                break;
        }
        if (s->lists_memberships)
                port = attribution_find_host(f->input, s->host);
        if (port != SUBNET_NONE)
                add_memberships(w, f, port, s->past == PAST_NOT_SHOWN ? s->host->name : "it");
}

/* --- kinds of reports ----------------------------------------------------------------------------------------------- */

void attribution_add_span(struct text *w, const struct attribution_input *input, usec_t since)
{
        if (since != 0 && elapsed(since, input->now) >= USEC_PER_SEC)
                text_add(w, " in the last %s", phrase_duration(elapsed(since, input->now)).text);
}

/* "node0042 sent 3 packets"; report: NULL: of the record. Not every packet leads to a notice. */
static void add_packets(struct sentence *s, const struct violation_report *report)
{
        const struct facts *f = s->facts;
        const struct headline *h = &s->headline;
        uint64_t n = report ? report->count : f->record->total;
        bool more = report && report->kind == VIOLATION_MORE;

        text_add(&s->text, "%s %s %s%s", h->subject, h->verb, violation_source_is_notice(f->record->source) && n > 1 ? "at least " : "",
                 phrase_count(n, more ? "more packet" : "packet", more ? "more packets" : "packets").text);
        if (report)
                attribution_add_span(&s->text, f->input, report->since);
        text_add(&s->text, " %s (%s)", h->tail, h->source);
}

static void add_first(struct sentence *s, const struct violation_report *report)
{
        const struct violation_record *r = s->facts->record;

        add_packets(s, report);
        if (report->kind == VIOLATION_MORE && r->episode > report->count)
                text_add(&s->text, "; %s since it began %s ago", phrase_number(r->episode).text,
                         phrase_duration(elapsed(r->episode_began, s->facts->input->now)).text);
}

static void add_record(struct sentence *s)
{
        const struct violation_record *r = s->facts->record;
        usec_t now = s->facts->input->now;

        add_packets(s, NULL);
        text_add(&s->text, "; the first %s ago, the last %s ago%s", phrase_duration(elapsed(r->first, now)).text,
                 phrase_duration(elapsed(r->last, now)).text,
                 r->saturated ? "; the counter is at its maximum: there may have been more" : "");
}

static void add_quiet(struct sentence *s, const struct violation_report *report)
{
        const struct violation_record *r = s->facts->record;
        const struct headline *h = &s->headline;

        text_add(&s->text, "quiet again after %s, %s in all, the last %s ago%s: packets that %s %s %s (%s)",
                 phrase_duration(elapsed(report->since, r->last)).text, phrase_number(report->count).text,
                 phrase_duration(elapsed(r->last, s->facts->input->now)).text,
                 r->saturated ? " (but the counter is at its maximum: more are not seen until it is cleared)" : "",
                 h->subject, h->verb, h->tail, h->source);
}

/* How to clear it, with the command where the port is known. */
static void add_clearing(struct sentence *s)
{
        const struct facts *f = s->facts;

        if (f->input->clears_saturated) {
                text_add(&s->text, " (pkeyd clears it now)");
                return;
        }
        text_add(&s->text, " (pkeyd clears it with violations: clear_saturated: true; by hand: perfquery -R");
        if (f->counted != SUBNET_NONE && f->input->subnet->ports[f->counted].lid.v != 0)
                text_add(&s->text, " %u %u", f->input->subnet->ports[f->counted].lid.v, f->record->port.number);
        text_add(&s->text, ")");
}

/* report: NULL: nothing is new. */
static void add_saturated(struct sentence *s, const struct violation_report *report)
{
        const struct facts *f = s->facts;
        const struct headline *h = &s->headline;

        text_add(&s->text, "%s of %s%s is at its maximum", h->source, f->is_switch_port ? "switch port " : "", f->out->counted_by);
        if (f->record->bits > 0)
                text_add(&s->text, ", %s", phrase_number(violation_counter_maximum(f->record->bits)).text);
        text_add(&s->text, ": there may have been more, and no more are seen until it is cleared");
        if (source_is_constraint(f->record->source))
                add_clearing(s);
        text_add(&s->text, "; it counts packets that %s %s %s", h->subject, h->verb, h->tail);
        if (!report || report->count == 0)
                return;
        text_add(&s->text, ", %s%s", phrase_number(report->count).text, f->record->episode > report->count ? " more" : "");
        attribution_add_span(&s->text, f->input, report->since);
}

static void add_headline(struct sentence *s, const struct violation_report *report)
{
        if (report && report->kind == VIOLATION_QUIET)
                add_quiet(s, report);
        else if (report ? report->kind == VIOLATION_SATURATED : s->facts->record->total == 0)
                add_saturated(s, report);
        else if (report)
                add_first(s, report);
        else
                add_record(s);
}

int attribution_write(struct facts *f, const struct violation_report *report)
{
        bool in = f->record->source != VIOLATION_XMIT_CONSTRAINT;
        _cleanup_(sentence_done) struct sentence s = { .facts = f };
        const struct value values[] = {
                { "{host}", host_is_known(&f->host) ? f->host.label
                            : f->record->host       ? "an unidentified host (a cable may have been moved)"
                                                    : "its host" },
                { "{port}", f->out->counted_by },
                { "{sender}", f->from.name },
                { "{receiver}", f->to.name },
                { "{partition}", f->partition },
                { "{base}", s.base },
                { "{member}", membership_word(f->member) },
                { "{way}", in ? "from" : "to" },
                { "{direction}", in ? "incoming" : "outgoing" },
                { "{raw}", in ? "FilterRawInbound" : "FilterRawOutbound" },
                {},
        };
        int r;

        s.values = values;
        (void) snprintf(s.base, sizeof(s.base), "0x%04x", (unsigned) p_key_base(f->out->p_key));
        r = violation_source_is_notice(f->record->source) ? make_notice_headline(&s) : make_counter_headline(&s);
        if (r < 0)
                return r;
        add_headline(&s, report);
        for (enum remark k = 0; k < N_REMARKS; k++) {
                if (k == REMARK_SUBJECT)
                        add_subject(&s);
                if (!(f->remarks >> k & 1))
                        continue;
                text_add(&s.text, "; ");
                add_template(&s.text, &s, remark_templates[k]);
        }
        f->out->text = text_copy(f->arena, &s.text);
        return f->out->text ? 0 : -ENOMEM;
}
