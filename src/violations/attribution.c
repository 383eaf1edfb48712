/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/attribution.h"

#include <errno.h>

#include "violations/attribution_internal.h"

/* How long pkeyd must have known an endport before a sentence states that its memberships did not change. */
#define WORTH_STATING (60 * USEC_PER_SEC)

/* Violations that begin within these times after a change are probably, or perhaps, its consequence. */
#define PROBABLY (24 * 3600 * USEC_PER_SEC)
#define PERHAPS  (7 * PROBABLY)

/* --- the ports ---------------------------------------------------------------------------------------------------- */

/* As apply left it, else as discovery saw it. */
static enum switch_filter filter_of(const struct facts *f)
{
        const struct attribution_input *in = f->input;
        const struct subnet_port *p = &in->subnet->ports[f->counted];
        bool outbound = f->record->source == VIOLATION_XMIT_CONSTRAINT;
        bool checks = outbound ? p->enforce_outbound : p->enforce_inbound;

        if (in->observed && in->observed->subnet == in->subnet) {
                const struct observed_table *t = &in->observed->tables[f->counted];

                if (t->enforcement_doubted)
                        return FILTER_UNCONFIRMED;
                checks = outbound ? t->enforce_outbound : t->enforce_inbound;
        }
        if (checks)
                return FILTER_ON;
        return subnet_port_can_enforce(in->subnet, p) ? FILTER_OFF : FILTER_UNSUPPORTED;
}

static void add_remark(struct facts *f, enum remark remark)
{
        f->remarks |= UINT32_C(1) << remark;
}

/* The label of a port that is not in the snapshot: with the name of its node if that is in it, else from the notice. */
static const char *label_of_missing(const struct facts *f, uint32_t node)
{
        const struct violation_port *port = &f->record->port;
        const struct notice *notice = &f->record->notice;
        const char *label;

        if (port->node_guid.v == 0 && notice->has_switch_port)
                return arena_printf(f->arena, "port %u of the switch with LID %u", notice->switch_port, notice->switch_lid.v);
        if (port->node_guid.v == 0)
                return arena_printf(f->arena, "LID %u", notice->issuer.v);
        if (node == SUBNET_NONE)
                return arena_printf(f->arena, "port %u of node 0x%016" PRIx64, port->number, port->node_guid.v);
        label = subnet_node_label(f->arena, &f->input->subnet->nodes[node]);
        return label ? arena_printf(f->arena, "%s/%u", label, port->number) : NULL;
}

static void remark_missing(struct facts *f, uint32_t node)
{
        const struct violation_port *port = &f->record->port;

        if (node == SUBNET_NONE)
                add_remark(f, port->node_guid.v != 0 ? REMARK_GONE : REMARK_UNKNOWN_PORT);
        else if (f->is_switch_port && subnet_port_is_silent(&f->input->subnet->nodes[node], port->number))
                add_remark(f, REMARK_SILENT);
        else
                add_remark(f, REMARK_EMPTY);
}

static int find_counted_port(struct facts *f)
{
        const struct subnet *s = f->input->subnet;
        const struct violation_port *port = &f->record->port;
        uint32_t node = s ? subnet_find_node(s, port->node_guid) : SUBNET_NONE;

        f->is_switch_port = s && subnet_node_has_external(s, node, port->number);
        f->filter = FILTER_GONE;
        f->counted = node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(s, node, port->number);
        if (f->counted != SUBNET_NONE) {
                f->out->counted_by = subnet_port_label(f->arena, s, f->counted);
                if (f->is_switch_port)
                        f->filter = filter_of(f);
        } else {
                f->out->counted_by = label_of_missing(f, node);
                if (s)
                        remark_missing(f, node);
        }
        return f->out->counted_by ? 0 : -ENOMEM;
}

/* As it was known when the counter was read, whatever is plugged in there now; without that as the snapshot has it. */
static int find_host(struct facts *f)
{
        const struct violation_host *then = f->record->host;
        uint32_t endport = f->counted;

        if (then) {
                if (!host_is_known(then))
                        return 0;
                f->host = *then;
                if (f->counted == SUBNET_NONE && then->node_guid.v != f->record->port.node_guid.v)
                        f->is_switch_port = true;
                if (!f->is_switch_port || then->at_switch)
                        f->out->counted_by = f->is_switch_port ? then->at_switch : then->label;
                return 0;
        }
        if (f->counted != SUBNET_NONE && f->is_switch_port)
                endport = f->input->subnet->ports[f->counted].peer;
        return endport == SUBNET_NONE ? 0 : violation_host_open(f->arena, f->input->subnet, endport, &f->host);
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

static void set_endport(struct facts *f, const struct violation_host *host)
{
        f->out->node = host->label;
        f->out->port_guid = host->guid;
        f->out->lid = host->lid;
        f->out->port = host->number;
}

static void fill_fields(struct facts *f)
{
        struct attribution *out = f->out;

        out->node = out->counted_by;
        if (host_is_known(&f->host)) {
                set_endport(f, &f->host);
                out->switch_name = f->host.at_switch;
                out->names_sender = f->record->source == VIOLATION_RCV_CONSTRAINT && f->is_switch_port && f->filter == FILTER_ON;
        } else if (f->is_switch_port) {
                out->switch_name = out->counted_by;
        }
}

static bool has_p_key(const struct violation_record *r)
{
        return r->source != VIOLATION_NOTICE_258 && r->notice.key <= UINT16_MAX &&
               p_key_base((struct p_key) { (uint16_t) r->notice.key }) != 0;
}

static void fill_notice_fields(struct facts *f)
{
        const struct memberships *m = f->input->memberships;
        struct attribution *out = f->out;
        const struct violation_host *host = &f->host;
        bool from_is_known = host_is_known(f->record->from);
        int i;

        f->from = *f->record->from;
        f->to = *f->record->to;
        out->names_sender = from_is_known;
        /* what passes a leaf port comes from the endport that is plugged in or goes to it */
        if (f->is_switch_port && host_is_known(host) && f->from.guid.v != host->guid.v && f->to.guid.v != host->guid.v) {
                out->names_sender = false;
                add_remark(f, from_is_known && host_is_known(&f->to) ? REMARK_WIRING_CONFLICT : REMARK_WIRING);
        }
        if (out->names_sender)
                host = &f->from;
        else if (!host_is_known(host))
                host = &f->to;
        if (host_is_known(host))
                set_endport(f, host);
        if (!has_p_key(f->record))
                return;
        out->p_key.v = (uint16_t) f->record->notice.key;
        i = m ? policy_find_base(m->policy, p_key_base(out->p_key)) : -1;
        out->partition = i < 0 ? NULL : m->policy->partitions[i].name;
}

static struct beginning beginning_of(const struct violation_record *r)
{
        usec_t latest = r->host_first ?: r->first, since = r->host_first ? r->host_first_since : r->first_since;

        if (r->total == 0) /* it is only saturated, and since when is not known */
                return (struct beginning) { 0, USEC_INFINITY, USEC_INFINITY };
        return (struct beginning) { since ?: latest, latest, MAX(r->episode_began, latest) };
}

int attribution_open(struct facts *f)
{
        int r = find_counted_port(f) ?: find_host(f);

        if (r < 0)
                return r;
        f->began = beginning_of(f->record);
        fill_fields(f);
        if (violation_source_is_notice(f->record->source))
                fill_notice_fields(f);
        return 0;
}

/* --- memberships and their changes ---------------------------------------------------------------------------------- */

uint32_t attribution_find_host(const struct attribution_input *input, const struct violation_host *host)
{
        const struct memberships *m = input->memberships;

        return m && host_is_known(host) ? subnet_find_endport(m->subnet, host->guid) : SUBNET_NONE;
}

/* What the policy in force gives it in the partition of the P_Key; *ret only if that is known. */
static bool find_membership(const struct facts *f, const struct violation_host *host, enum membership *ret)
{
        uint32_t port = attribution_find_host(f->input, host);

        if (port != SUBNET_NONE)
                *ret = memberships_get(f->input->memberships, port, p_key_base(f->out->p_key));
        return port != SUBNET_NONE;
}

/* Both counts as full: with the limited key a port reaches no member that it does not reach with the full one. */
static int level_of(enum membership m)
{
        return membership_has_full(m) ? 2 : membership_has_limited(m) ? 1 : 0;
}

bool membership_change_is_loss(const struct membership_change *change)
{
        return level_of(change->after) < level_of(change->before);
}

static enum certainty certainty_of(const struct facts *f, const struct membership_change *change, enum role role)
{
        const struct beginning *began = &f->began;

        if (role == ROLE_NONE || began->latest == USEC_INFINITY || !membership_change_is_loss(change))
                return CAUSE_UNRELATED;
        if (change->when > began->again)
                return CAUSE_LATER;
        if (change->when > began->latest)
                return CAUSE_REPEATED;
        if (began->latest - change->when > PERHAPS)
                return CAUSE_UNRELATED;
        if (change->when > began->earliest)
                return CAUSE_SIMULTANEOUS;
        return began->latest - change->when > PROBABLY ? CAUSE_POSSIBLE : CAUSE_PROBABLE;
}

static void set_changed(struct facts *f, const struct violation_host *host, enum role role, const struct membership_change *change)
{
        f->subject = (struct subject) {
                .host = host, .role = role, .past = PAST_CHANGED, .change = change, .changes = change, .n_changes = 1,
                .certainty = certainty_of(f, change, role),
        };
}

/* Makes this endport the subject if its membership in the partition of the P_Key changed; false: no change is known. */
static bool take_change(struct facts *f, const struct violation_host *host, enum role role)
{
        const struct membership_change *change = NULL;

        if (f->input->history && host_is_known(host))
                change = membership_history_find(f->input->history, host->guid, p_key_base(f->out->p_key));
        if (change)
                set_changed(f, host, role, change);
        return change;
}

/* The same of the two ends of a packet, first the sender. */
static bool take_change_of_end(struct facts *f, enum role from, enum role to)
{
        return take_change(f, &f->from, from) || take_change(f, &f->to, to);
}

static usec_t known_for(const struct facts *f, const struct violation_host *host)
{
        usec_t since = f->input->history ? membership_history_known_since(f->input->history, host->guid) : USEC_INFINITY;

        return elapsed(since, f->input->now);
}

/* An endport that is no member of the partition of the P_Key. */
static void take_outsider(struct facts *f, const struct violation_host *host, enum role role)
{
        if (!take_change(f, host, role)) {
                usec_t known = known_for(f, host);

                f->subject = (struct subject) { .host = host, .past = known < WORTH_STATING ? PAST_NO_MEMBER : PAST_NEVER,
                                                .known_for = known };
        }
        f->subject.lists_memberships = true;
}

static const struct membership_change *newest(const struct membership_change *changes, uint32_t n, bool only_losses)
{
        const struct membership_change *found = NULL;

        for (uint32_t i = 0; i < n; i++)
                if ((!only_losses || membership_change_is_loss(&changes[i])) && (!found || changes[i].when > found->when))
                        found = &changes[i];
        return found;
}

/* Makes this endport the subject, with its last loss in any partition; if that is long ago, or there is none, with its last
 * change. */
static void take_last_change(struct facts *f, const struct violation_host *host, enum role role)
{
        const struct membership_change *changes, *change;
        uint32_t n;

        if (!f->input->history || !host_is_known(host))
                return;
        changes = membership_history_of(f->input->history, host->guid, &n);
        change = newest(changes, n, true);
        if (!change || elapsed(change->when, f->input->now) > PERHAPS)
                change = newest(changes, n, false);
        if (change) {
                set_changed(f, host, role, change);
                f->subject.changes = changes;
                f->subject.n_changes = n;
        } else if (known_for(f, host) >= WORTH_STATING) {
                f->subject = (struct subject) { .host = host, .past = PAST_UNCHANGED, .known_for = known_for(f, host) };
        }
}

/* --- why a counter moved -------------------------------------------------------------------------------------------- */

/* A switch port that does not check P_Keys should count only raw packets that it filters. But what a switch reports of itself need
 * not be true, and may have been different a moment ago. */
static void remark_filter(struct facts *f)
{
        if (f->filter == FILTER_OFF)
                add_remark(f, REMARK_DOES_NOT_FILTER);
        else if (f->filter == FILTER_UNSUPPORTED)
                add_remark(f, REMARK_CANNOT_FILTER);
        else if (f->filter == FILTER_UNCONFIRMED)
                add_remark(f, REMARK_MAY_FILTER);
}

static void add_counter_reasons(struct facts *f)
{
        bool in = f->record->source == VIOLATION_RCV_CONSTRAINT, constraint = source_is_constraint(f->record->source);
        /* the host sent what comes into its switch port, and received what comes into its adapter */
        bool is_sender = constraint && in == f->is_switch_port;

        if (f->is_switch_port)
                remark_filter(f);
        else if (constraint)
                add_remark(f, REMARK_ADAPTER);
        if (!constraint || (f->is_switch_port && !in && f->filter == FILTER_ON))
                add_remark(f, REMARK_UNKNOWN_SENDER);
        take_last_change(f, &f->host, is_sender ? ROLE_SENDER : ROLE_RECEIVER);
        f->subject.host = &f->host;
        f->subject.lists_memberships = true;
}

/* --- why a packet of a notice was refused --------------------------------------------------------------------------- */

/* A partition that the policy does not have, perhaps not any more. */
static void judge_no_partition(struct facts *f)
{
        bool owned = policy_owns(f->input->memberships->policy, p_key_base(f->out->p_key));

        add_remark(f, owned ? REMARK_NO_PARTITION : REMARK_NOT_OWNED);
        if (!take_change_of_end(f, ROLE_SENDER, ROLE_RECEIVER))
                f->subject = (struct subject) { .host = &f->from, .lists_memberships = true };
}

static void judge_memberships(struct facts *f)
{
        enum membership from = MEMBERSHIP_NONE, to = MEMBERSHIP_NONE;
        bool knows_from = find_membership(f, &f->from, &from), knows_to = find_membership(f, &f->to, &to);
        bool full_key = p_key_is_full(f->out->p_key);

        if (knows_from && from == MEMBERSHIP_NONE) {
                take_outsider(f, &f->from, ROLE_SENDER);
        } else if (knows_to && to == MEMBERSHIP_NONE) {
                take_outsider(f, &f->to, ROLE_RECEIVER);
        } else if (knows_from && full_key && !membership_has_full(from)) {
                add_remark(f, REMARK_FULL_KEY_OF_LIMITED);
                (void) take_change(f, &f->from, ROLE_SENDER);
        } else if (knows_from && knows_to && !full_key && !membership_has_full(to)) {
                bool both = from == MEMBERSHIP_LIMITED && to == MEMBERSHIP_LIMITED;

                add_remark(f, both ? REMARK_BOTH_LIMITED : REMARK_LIMITED_KEY_USED);
                (void) take_change_of_end(f, ROLE_SENDER, ROLE_RECEIVER);
        } else if (knows_from && knows_to) {
                add_remark(f, REMARK_ALLOWED);
                add_remark(f, REMARK_VERIFY);
                (void) take_change_of_end(f, ROLE_NONE, ROLE_NONE);
        } else if (knows_from || knows_to) {
                add_remark(f, knows_from ? REMARK_SENDER_IS_MEMBER : REMARK_RECEIVER_IS_MEMBER);
                f->member = knows_from ? from : to;
        }
}

static void add_notice_reasons(struct facts *f)
{
        uint32_t key = f->record->notice.key;

        if (f->record->from_conflicts)
                add_remark(f, REMARK_ADDRESS_CONFLICT);
        if (f->record->source == VIOLATION_NOTICE_258) {
                add_remark(f, REMARK_Q_KEY);
        } else if (key > UINT16_MAX) {
                add_remark(f, REMARK_LONG_KEY);
        } else if (!has_p_key(f->record)) {
                add_remark(f, REMARK_EMPTY_ENTRY);
                take_last_change(f, &f->from, ROLE_SENDER);
        } else if (f->out->names_sender || !host_is_known(&f->from)) {
                if (f->out->partition)
                        judge_memberships(f);
                else if (f->input->memberships)
                        judge_no_partition(f);
        }
}

static void add_reasons(struct facts *f)
{
        if (violation_source_is_notice(f->record->source))
                add_notice_reasons(f);
        else if (f->counted != SUBNET_NONE || host_is_known(&f->host))
                add_counter_reasons(f);
}

/* --- the interface -------------------------------------------------------------------------------------------------- */

static int explain(struct arena *a, const struct violation_report *report, const struct violation_record *record,
                   const struct attribution_input *input, struct attribution *ret)
{
        struct attribution out = {};
        struct facts f = { .arena = a, .input = input, .record = record, .out = &out };
        int r = attribution_open(&f);

        if (r < 0)
                return r;
        if (!report || report->kind != VIOLATION_QUIET)
                add_reasons(&f);
        r = attribution_write(&f, report);
        if (r >= 0)
                *ret = out;
        return r;
}

int attribution_explain(struct arena *a, const struct violation_report *report, const struct attribution_input *input,
                        struct attribution *ret)
{
        if (report->kind == VIOLATION_STORM || report->kind == VIOLATION_ALL_QUIET)
                return attribution_write_sum(a, report, input, ret);
        return explain(a, report, &report->record, input, ret);
}

int attribution_explain_record(struct arena *a, const struct violation_record *record, const struct attribution_input *input,
                               struct attribution *ret)
{
        return explain(a, NULL, record, input, ret);
}
