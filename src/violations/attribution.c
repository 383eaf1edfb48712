/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/attribution.h"

#include <errno.h>

#include "violations/attribution_internal.h"

/* Changes of so long ago are compared for what the worst of a storm have in common. */
#define STORM_HISTORY (3600 * USEC_PER_SEC)

/* The name that the standard, or the kernel, has for what counted, and of counters what an endport did with these packets. */
static const struct {
        const char *name, *verb, *tail;
} sources[VIOLATION_N_SOURCES] = {
        [VIOLATION_P_KEY_VIOLATIONS] = { "PortInfo:P_KeyViolations", "received",
                                         "with a P_Key that matches none of its own" },
        [VIOLATION_RCV_CONSTRAINT] = { "PortRcvConstraintErrors", "refused", "that came in" },
        [VIOLATION_XMIT_CONSTRAINT] = { "PortXmitConstraintErrors", "refused", "going out" },
        [VIOLATION_BAD_PKEY_CNTR] = { "bad_pkey_cntr", "received", "with a P_Key that matches none of its own" },
        [VIOLATION_NOTICE_257] = { .name = "notice 257, P_Key mismatch" },
        [VIOLATION_NOTICE_258] = { .name = "notice 258, Q_Key mismatch" },
        [VIOLATION_NOTICE_259] = { .name = "notice 259, P_Key mismatch at a switch" },
};

/* --- who takes part --------------------------------------------------------------------------------------------- */

/* Whether the switch port checks P_Keys in the direction that its counter is about: as apply left it, else as seen. */
static enum switch_filter check_of(const struct attribution_context *s)
{
        const struct attribution_input *c = s->c;
        const struct subnet_port *p = &c->subnet->ports[s->counted];
        bool outbound = s->record->source == VIOLATION_XMIT_CONSTRAINT;
        bool checks = outbound ? p->enforce_outbound : p->enforce_inbound;

        if (c->observed && c->observed->subnet == c->subnet) {
                const struct observed_table *t = &c->observed->tables[s->counted];

                if (t->enforcement_doubted)
                        return FILTER_UNCONFIRMED;
                checks = outbound ? t->enforce_outbound : t->enforce_inbound;
        }
        if (checks)
                return FILTER_ON;
        return subnet_port_can_enforce(c->subnet, p) ? FILTER_OFF : FILTER_UNSUPPORTED;
}

/* A port that is not in the snapshot, by what its node is called if that is, or by what the notice says of it. */
static int open_missing_port(struct attribution_context *s, uint32_t node)
{
        const struct violation_port *port = &s->record->port;
        const struct notice *notice = &s->record->notice;
        const struct subnet *subnet = s->c->subnet;

        if (subnet_node_has_external(subnet, node, port->number)) {
                s->is_switch_port = true; /* with nothing in it, as far as is known */
                s->check = FILTER_GONE;
                s->is_silent = subnet_port_is_silent(&subnet->nodes[node], port->number);
        }
        if (port->node_guid.v == 0 && notice->has_switch_port)
                s->counted_label = arena_printf(s->arena, "port %u of the switch with LID %u", notice->switch_port,
                                                notice->switch_lid.v);
        else if (port->node_guid.v == 0)
                s->counted_label = arena_printf(s->arena, "LID %u", notice->issuer.v);
        else if (node == SUBNET_NONE)
                s->counted_label = arena_printf(s->arena, "port %u of node 0x%016" PRIx64, port->number,
                                                port->node_guid.v);
        else
                s->counted_label = arena_printf(s->arena, "%s/%u", subnet->nodes[node].name[0]
                                                                   ? subnet->nodes[node].name
                                                                   : subnet->nodes[node].description,
                                                port->number);
        return s->counted_label ? 0 : -ENOMEM;
}

/* The host as it was known then, whatever is plugged in there now. */
static void open_host(struct attribution_context *s, const struct violation_host *host)
{
        if (host->guid.v == 0) {
                s->host = (struct party) { .port = SUBNET_NONE, .name = "the host" };
                return;
        }
        s->host = party_of_host(s->c->subnet, host);
        if (s->counted == SUBNET_NONE && host->node_guid.v != s->record->port.node_guid.v) {
                s->is_switch_port = true;
                s->check = FILTER_GONE;
        }
        s->counted_label = !s->is_switch_port ? host->label : host->at_switch ?: s->counted_label;
}

static int open_port(struct attribution_context *s)
{
        const struct subnet *subnet = s->c->subnet;
        const struct subnet_port *p;
        uint32_t node = subnet ? subnet_find_node(subnet, s->record->port.node_guid) : SUBNET_NONE, host;

        s->host = (struct party) { .port = SUBNET_NONE, .name = "the host" };
        s->node_is_there = node != SUBNET_NONE;
        s->counted = node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(subnet, node, s->record->port.number);
        if (s->counted == SUBNET_NONE)
                return open_missing_port(s, node);
        s->counted_label = subnet_port_label(s->arena, subnet, s->counted);
        if (!s->counted_label)
                return -ENOMEM;
        p = &subnet->ports[s->counted];
        s->is_switch_port = p->role == PORT_SWITCH_EXTERNAL;
        if (s->is_switch_port)
                s->check = check_of(s);
        host = s->is_switch_port ? p->peer : s->counted;
        return host == SUBNET_NONE ? 0 : party_open(s->arena, subnet, host, &s->host);
}

static int fill_fields(struct attribution_context *s)
{
        const struct subnet *subnet = s->c->subnet;
        struct attribution *out = s->out;
        uint32_t leaf;

        out->counted_by = s->counted_label;
        out->node = s->counted_label;
        if (s->is_switch_port)
                out->switch_name = s->counted_label;
        if (!party_is_known(&s->host))
                return 0;
        attribution_set_endport(s, &s->host);
        out->names_sender =
                        s->record->source == VIOLATION_RCV_CONSTRAINT && s->is_switch_port && s->check == FILTER_ON;
        if (s->record->host)
                out->switch_name = s->record->host->at_switch;
        if (s->record->host || s->host.port == SUBNET_NONE)
                return 0;
        leaf = s->is_switch_port ? SUBNET_NONE : subnet_leaf_port(subnet, s->host.port);
        if (leaf == SUBNET_NONE)
                return 0;
        out->switch_name = subnet_port_label(s->arena, subnet, leaf);
        return out->switch_name ? 0 : -ENOMEM;
}

static struct beginning beginning_of(const struct violation_record *r)
{
        usec_t latest = r->host_first ?: r->first, since = r->host_first ? r->host_first_since : r->first_since;

        if (r->total == 0) /* it only is saturated, for nobody knows how long */
                return (struct beginning) { 0, USEC_INFINITY, USEC_INFINITY };
        return (struct beginning) { since ?: latest, latest, MAX(r->episode_began, latest) };
}

static int attribution_open(struct attribution_context *s)
{
        int r = open_port(s);

        s->began = beginning_of(s->record);
        if (r >= 0 && s->record->host)
                open_host(s, s->record->host);
        if (r >= 0)
                r = fill_fields(s);
        if (r >= 0 && violation_source_is_notice(s->record->source))
                notice_open(s);
        return r;
}

/* --- counters --------------------------------------------------------------------------------------------------- */

static int switch_headline(struct attribution_context *s, struct headline *ret)
{
        bool in = s->record->source == VIOLATION_RCV_CONSTRAINT;
        const char *host = party_is_known(&s->host) ? s->host.label
                           : s->record->host        ? "a host that is not certain (one was plugged in or out then)"
                                                    : "its host";

        if (s->check == FILTER_ON && in && party_is_known(&s->host)) {
                ret->subject = host;
                ret->verb = "sent";
                ret->tail = arena_printf(s->arena, "with a P_Key that its switch port %s does not let in",
                                         s->counted_label);
        } else {
                ret->subject = arena_printf(s->arena, "switch port %s", s->counted_label);
                ret->verb = in ? "dropped" : "held back";
                if (s->check == FILTER_ON)
                        ret->tail = arena_printf(s->arena, "%s %s with a P_Key that it does not let %s",
                                                 in ? "from" : "for", host, in ? "in" : "out");
                else
                        ret->tail = arena_printf(s->arena, "%s %s", in ? "from" : "for", host);
        }
        return ret->subject && ret->tail ? 0 : -ENOMEM;
}

static int make_headline(struct attribution_context *s, struct headline *ret)
{
        enum violation_source source = s->record->source;

        ret->source = sources[source].name;
        if (violation_source_is_notice(source))
                return notice_headline(s, ret);
        if (s->is_switch_port && (source == VIOLATION_RCV_CONSTRAINT || source == VIOLATION_XMIT_CONSTRAINT))
                return switch_headline(s, ret);
        ret->subject = s->counted_label;
        ret->verb = sources[source].verb;
        ret->tail = sources[source].tail;
        return 0;
}

/* A port that does not check P_Keys should count only raw packets that it filters. But what a switch says of itself need
 * not be so, nor what was so a moment ago. */
static void add_unchecked(struct attribution_context *s, struct text *w)
{
        bool in = s->record->source == VIOLATION_RCV_CONSTRAINT;
        const char *direction = in ? "comes in" : "goes out", *filter = in ? "FilterRawInbound" : "FilterRawOutbound";

        if (s->check == FILTER_UNSUPPORTED)
                text_add(w,
                         "; raw packets that it filters (%s) count, too: the likelier cause, as that switch says that it "
                         "cannot check P_Keys",
                         filter);
        else if (s->check == FILTER_GONE)
                return;
        else if (s->check == FILTER_OFF)
                text_add(w, "; raw packets that it filters (%s) count, too: the likelier cause, as it does not check P_Keys "
                            "of what %s now", filter, direction);
        else
                text_add(w, "; whether it checks P_Keys of what %s is not certain now: a write was not confirmed",
                         direction);
}

static void add_memberships(struct attribution_context *s, struct text *w, enum party_role role)
{
        bool has_change = membership_text_add_last_change(w, s->c, &s->host, role, s->began);

        membership_text_add_all(w, s->c, &s->host, has_change);
}

/* Counters of who was hit. */
static void add_unknown_sender(struct text *w)
{
        text_add(w, "; the counter does not say who sent them: look for an entry of the same time that names a sender "
                    "(notice 257 or 259, or PortRcvConstraintErrors)");
}

static void add_counter_reasons(struct attribution_context *s, struct text *w)
{
        bool in = s->record->source == VIOLATION_RCV_CONSTRAINT;

        if (s->is_switch_port && s->check != FILTER_ON) {
                add_unchecked(s, w);
                add_memberships(s, w, in ? PARTY_SENDER : PARTY_RECEIVER);
        } else if (s->is_switch_port) {
                add_memberships(s, w, in ? PARTY_SENDER : PARTY_RECEIVER);
                if (!in)
                        add_unknown_sender(w);
        } else if (in || s->record->source == VIOLATION_XMIT_CONSTRAINT) {
                text_add(w, "; the standard (IBA 16.1.3.5) defines this counter for switch ports only: what an "
                            "adapter counts in it is its vendor's choice");
                add_memberships(s, w, in ? PARTY_RECEIVER : PARTY_SENDER);
        } else {
                add_memberships(s, w, PARTY_RECEIVER);
                add_unknown_sender(w);
        }
}

static void add_reasons(struct attribution_context *s, struct text *w)
{
        if (violation_source_is_notice(s->record->source))
                notice_add_reasons(s, w);
        else if (s->counted != SUBNET_NONE || party_is_known(&s->host))
                add_counter_reasons(s, w);
        if (s->counted != SUBNET_NONE || !s->c->subnet)
                return;
        if (s->is_silent)
                text_add(w, "; what is plugged into %s did not answer", s->counted_label);
        else if (s->node_is_there)
                text_add(w, "; no host is plugged into %s", s->counted_label);
        else if (s->record->port.node_guid.v != 0)
                text_add(w, "; %s is not in the fabric any more", s->counted_label);
        else
                text_add(w, "; pkeyd does not know %s (yet)", s->counted_label);
}

/* --- kinds of reports ------------------------------------------------------------------------------------------- */

/* Each notice is about one packet, but not every packet leads to a notice. */
static const char *at_least(const struct attribution_context *s, uint64_t n)
{
        return violation_source_is_notice(s->record->source) && n > 1 ? "at least " : "";
}

static void add_span(struct text *w, const struct attribution_input *c, usec_t since)
{
        if (since != 0 && elapsed(since, c->now) >= USEC_PER_SEC)
                text_add(w, " in the last %s", phrase_duration(elapsed(since, c->now)).text);
}

static void add_first(struct attribution_context *s, struct text *w, const struct violation_report *report,
                      const struct headline *h)
{
        bool more = report->kind == VIOLATION_MORE;

        text_add(w, "%s %s %s%s", h->subject, h->verb, at_least(s, report->count),
                 phrase_count(report->count, more ? "more packet" : "packet", more ? "more packets" : "packets").text);
        add_span(w, s->c, report->since);
        text_add(w, " %s (%s)", h->tail, h->source);
        if (more && s->record->episode > report->count)
                text_add(w, "; %s since it began %s ago", phrase_number(s->record->episode).text,
                         phrase_duration(elapsed(s->record->episode_began, s->c->now)).text);
}

static void add_quiet(struct attribution_context *s, struct text *w, const struct violation_report *report,
                      const struct headline *h)
{
        text_add(w, "quiet again after %s, %s in all, the last %s ago%s: packets that %s %s %s (%s)",
                 phrase_duration(elapsed(report->since, s->record->last)).text, phrase_number(report->count).text,
                 phrase_duration(elapsed(s->record->last, s->c->now)).text,
                 s->record->saturated ? " (but the counter is at its maximum: more are not seen until it is cleared)"
                                      : "",
                 h->subject, h->verb, h->tail, h->source);
}

/* What a counter of this many bits holds at most. */
static uint64_t maximum_of(const struct violation_record *r)
{
        if (r->source == VIOLATION_P_KEY_VIOLATIONS)
                return UINT16_MAX; /* PortInfo has no other */
        return r->bits == 0 || r->bits > 64 ? 0 : UINT64_MAX >> (64 - r->bits);
}

/* How to clear it: with the very words to type where the port is known. */
static void add_clearing(struct attribution_context *s, struct text *w)
{
        if (s->c->clears_saturated) {
                text_add(w, " (pkeyd does it now)");
                return;
        }
        text_add(w, " (pkeyd does it with violations: clear_saturated: true; by hand: perfquery -R");
        if (s->counted != SUBNET_NONE && s->c->subnet->ports[s->counted].lid.v != 0)
                text_add(w, " %u %u", s->c->subnet->ports[s->counted].lid.v, s->record->port.number);
        text_add(w, ")");
}

/* count: what was not reported before; since: as in the report */
static void add_saturated(struct attribution_context *s, struct text *w, uint64_t count, usec_t since, const struct headline *h)
{
        uint64_t maximum = maximum_of(s->record);

        text_add(w, "%s of %s%s is at its maximum", sources[s->record->source].name,
                 s->is_switch_port ? "switch port " : "", s->counted_label);
        if (maximum > 0)
                text_add(w, ", %s", phrase_number(maximum).text);
        text_add(w, ": there may have been more, and no more are seen until it is cleared");
        if (s->record->source == VIOLATION_RCV_CONSTRAINT || s->record->source == VIOLATION_XMIT_CONSTRAINT)
                add_clearing(s, w);
        text_add(w, "; it counts packets that %s %s %s", h->subject, h->verb, h->tail);
        if (count == 0)
                return;
        text_add(w, ", %s%s", phrase_number(count).text, s->record->episode > count ? " more" : "");
        add_span(w, s->c, since);
}

static int finish(struct attribution_context *s, const struct text *w)
{
        s->out->text = text_copy(s->arena, w);
        return s->out->text ? 0 : -ENOMEM;
}

/* A record as it is now. */
static void add_all(struct attribution_context *s, struct text *w, const struct headline *h)
{
        const struct violation_record *r = s->record;

        text_add(w, "%s %s %s%s %s (%s); the first %s ago, the last %s ago%s", h->subject, h->verb,
                 at_least(s, r->total), phrase_count(r->total, "packet", "packets").text, h->tail, h->source,
                 phrase_duration(elapsed(r->first, s->c->now)).text, phrase_duration(elapsed(r->last, s->c->now)).text,
                 r->saturated ? "; the counter is at its maximum: there may have been more" : "");
}

/* A report of one record, or (NULL) the record. */
static int explain_one(struct attribution_context *s, const struct violation_report *report)
{
        _cleanup_text_ struct text w = {};
        struct headline h;
        int r = attribution_open(s);

        if (r >= 0)
                r = make_headline(s, &h);
        if (r < 0)
                return r;
        if (report && report->kind == VIOLATION_QUIET)
                add_quiet(s, &w, report, &h);
        else if (report && report->kind == VIOLATION_SATURATED)
                add_saturated(s, &w, report->count, report->since, &h);
        else if (report)
                add_first(s, &w, report, &h);
        else if (s->record->total == 0)
                add_saturated(s, &w, 0, 0, &h);
        else
                add_all(s, &w, &h);
        if (!report || report->kind != VIOLATION_QUIET)
                add_reasons(s, &w);
        return finish(s, &w);
}

/* --- a storm ---------------------------------------------------------------------------------------------------- */

/* The change of one of the worst that the most others share: of the same partition, with the same generation. */
struct shared {
        const struct membership_change *change;
        uint32_t n;
        bool is_between; /* some of them had perhaps begun before */
};

/* One of the worst. */
struct worst {
        struct guid guid;
        struct beginning began;
};

/* A cause is a loss before the first sample with violations. */
static bool may_be_cause(const struct worst *one, const struct membership_change *change)
{
        return membership_text_is_loss(change) && change->away_since == 0 && change->when <= one->began.latest;
}

/* A later loss of the same host is the likelier cause. */
static bool lost_more_later(const struct attribution_input *c, const struct worst *one, const struct membership_change *change)
{
        const struct membership_change *changes;
        uint32_t n;

        changes = membership_history_of(c->history, one->guid, &n);
        for (uint32_t i = 0; i < n; i++)
                if (may_be_cause(one, &changes[i]) && changes[i].when > change->when)
                        return true;
        return false;
}

static bool has_part(const struct attribution_input *c, const struct worst *one, const struct membership_change *change)
{
        const struct membership_change *own;

        own = membership_history_find(c->history, one->guid, change->base);
        return own && own->generation == change->generation && own->when == change->when && own->after == change->after &&
               may_be_cause(one, own) && !lost_more_later(c, one, own);
}

static void find_shared(const struct attribution_input *c, const struct worst *worst, uint32_t n,
                        struct shared *ret)
{
        *ret = (struct shared) {};
        for (uint32_t i = 0; i < n; i++) {
                const struct membership_change *changes;
                uint32_t n_changes;

                changes = membership_history_of(c->history, worst[i].guid, &n_changes);
                for (uint32_t j = 0; j < n_changes; j++) {
                        bool is_between = false;
                        uint32_t with = 0;

                        if (elapsed(changes[j].when, c->now) > STORM_HISTORY)
                                continue;
                        for (uint32_t k = 0; k < n; k++)
                                if (has_part(c, &worst[k], &changes[j])) {
                                        with++;
                                        is_between = is_between || changes[j].when > worst[k].began.earliest;
                                }
                        if (with > ret->n)
                                *ret = (struct shared) { &changes[j], with, is_between };
                }
        }
}

static void add_shared(struct text *w, const struct attribution_input *c, const struct worst *worst, uint32_t n)
{
        struct shared shared;

        if (!c->history)
                return;
        find_shared(c, worst, n, &shared);
        if (shared.n < 2 || shared.n * 2 <= n)
                return;
        if (shared.n == n)
                text_add(w, "; all of these were ");
        else
                text_add(w, "; %u of these %u were ", shared.n, n);
        text_add(w, shared.change->after == MEMBERSHIP_NONE ? "taken out of" : "made limited members of");
        text_add(w, " %s (0x%04x) ", shared.change->partition, (unsigned) shared.change->base);
        membership_text_add_when(w, c, shared.change);
        /* that all of them began between the same two samples as the edit is no accident */
        if (shared.n == n)
                text_add(w, ": probably this is the one cause");
        else
                text_add(w, "%s this is the cause there", shared.is_between ? ", about when this began: perhaps" : ": probably");
}

static const char *storm_verb(const struct attribution_context *s)
{
        if (s->out->names_sender)
                return "sent";
        if (s->record->source == VIOLATION_P_KEY_VIOLATIONS || s->record->source == VIOLATION_BAD_PKEY_CNTR)
                return "received";
        if (s->record->source == VIOLATION_XMIT_CONSTRAINT && s->is_switch_port)
                return "was to receive";
        return "counted";
}

/* What a switch port counted that does not check P_Keys, as far as is known, its host may not have sent. */
static void add_worst(struct text *w, const struct attribution_context *s)
{
        struct phrase n = phrase_number(s->record->unreported);

        if (s->record->source == VIOLATION_RCV_CONSTRAINT && s->is_switch_port && !s->out->names_sender && party_is_known(&s->host))
                text_add(w, "switch port %s counted %s from %s", s->counted_label, n.text, s->out->node);
        else
                text_add(w, "%s %s %s", s->out->node, storm_verb(s), n.text);
}

static void add_storm(struct text *w, const struct violation_report *report, const struct attribution_input *c)
{
        text_add(w, "%s counted %s", phrase_count(report->n_ports, "port", "ports").text,
                 phrase_count(report->count, "violation", "violations").text);
        add_span(w, c, report->since);
        if (report->n_saturated > 0)
                text_add(w, "; %s: there may have been more",
                         phrase_count(report->n_saturated, "counter is at its maximum", "counters are at their maximum")
                                         .text);
}

static void add_storm_ends(struct text *w, const struct violation_report *report, const struct attribution_input *c)
{
        text_add(w, "quiet again after %s, %s in all at %s", phrase_duration(elapsed(report->since, c->now)).text,
                 phrase_number(report->count).text, phrase_count(report->n_ports, "port", "ports").text);
}

static int explain_storm(struct attribution_context *s, const struct violation_report *report)
{
        uint32_t n = MIN(report->n_worst, (uint32_t) VIOLATIONS_WORST);
        bool quiet = report->kind == VIOLATION_ALL_QUIET;
        struct worst worst[VIOLATIONS_WORST];
        _cleanup_text_ struct text w = {};

        if (quiet)
                add_storm_ends(&w, report, s->c);
        else
                add_storm(&w, report, s->c);
        for (uint32_t i = 0; i < n; i++) {
                struct attribution one = {};
                struct attribution_context one_context = { .arena = s->arena, .c = s->c, .record = &report->worst[i], .out = &one };
                int r = attribution_open(&one_context);

                if (r < 0)
                        return r;
                worst[i] = (struct worst) { one.port_guid, one_context.began };
                text_add(&w, i == 0 ? "; the worst: " : ", ");
                add_worst(&w, &one_context);
        }
        if (!quiet)
                add_shared(&w, s->c, worst, n);
        return finish(s, &w);
}

/* --- both ways in ----------------------------------------------------------------------------------------------- */

/* report: NULL: of the record as it is. */
static int explain(struct arena *a, const struct violation_report *report, const struct violation_record *record,
                   const struct attribution_input *c, struct attribution *ret)
{
        bool sums_up = report && (report->kind == VIOLATION_STORM || report->kind == VIOLATION_ALL_QUIET);
        struct attribution out = {};
        struct attribution_context s = { .arena = a, .c = c, .record = record, .out = &out };
        int r = sums_up ? explain_storm(&s, report) : explain_one(&s, report);

        if (r >= 0)
                *ret = out;
        return r;
}

int attribution_explain(struct arena *a, const struct violation_report *report, const struct attribution_input *c,
                        struct attribution *ret)
{
        return explain(a, report, &report->record, c, ret);
}

int attribution_explain_record(struct arena *a, const struct violation_record *record,
                               const struct attribution_input *c, struct attribution *ret)
{
        return explain(a, NULL, record, c, ret);
}
