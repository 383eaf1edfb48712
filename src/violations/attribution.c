/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/attribution.h"

#include "violations/attribution_internal.h"

/* How long pkeyd must have known an endport before a sentence states that its memberships did not change. */
#define WORTH_STATING (60 * USEC_PER_SEC)

/* Violations that begin within these times after a change are probably, or perhaps, its consequence. */
#define PROBABLY (24 * 3600 * USEC_PER_SEC)
#define PERHAPS  (7 * PROBABLY)

/* --- memberships and their changes ---------------------------------------------------------------------------------- */

/* What the policy in force gives the host in the partition of the P_Key; *ret is set only if that is known. */
static bool find_membership(const struct facts *f, const struct violation_host *host, enum membership *ret)
{
        uint32_t port = attribution_find_host(f->input, host);

        if (port != SUBNET_NONE)
                *ret = memberships_get(f->input->memberships, port, p_key_base(f->out->p_key));
        return port != SUBNET_NONE;
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
        else if (f->filter == FILTER_CHANGED)
                add_remark(f, REMARK_DID_NOT_FILTER);
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
        } else if (!record_has_p_key(f->record)) {
                add_remark(f, REMARK_EMPTY_ENTRY);
                take_last_change(f, &f->from, ROLE_SENDER);
        } else if (f->out->names_sender || !host_is_known(&f->from)) {
                if (f->partition)
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
        struct facts f = { .arena = a, .input = input, .record = record, .out = &out,
                           .then = report ? record->episode_filter : record->filter };
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
