/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "violations/attribution_internal.h"

void attribution_set_endport(struct attribution_context *s, const struct party *p)
{
        s->out->node = p->label;
        s->out->port_guid = p->guid;
        s->out->lid = p->lid;
        s->out->port = p->number;
}

/* --- the key ---------------------------------------------------------------------------------------------------- */

static bool has_p_key(const struct attribution_context *s)
{
        return s->record->source != VIOLATION_NOTICE_258 && s->record->notice.key <= UINT16_MAX &&
               p_key_base((struct p_key) { (uint16_t) s->record->notice.key }) != 0;
}

static const char *partition_name(const struct attribution_input *c, uint16_t base)
{
        int i = c->memberships ? policy_find_base(c->memberships->policy, base) : -1;

        return i < 0 ? NULL : c->memberships->policy->partitions[i].name;
}

static void fill_fields(struct attribution_context *s)
{
        struct attribution *out = s->out;
        const struct party *p = &s->host;

        /* what passes a switch port beside an endport comes from that endport or goes to it */
        s->wiring_conflicts =
                        s->is_switch_port && party_is_known(p) && s->from.guid.v != p->guid.v && s->to.guid.v != p->guid.v;
        out->names_sender = party_is_known(&s->from) && !s->wiring_conflicts;
        if (out->names_sender)
                p = &s->from;
        else if (!party_is_known(p))
                p = &s->to;
        if (party_is_known(p))
                attribution_set_endport(s, p);
        if (has_p_key(s)) {
                out->p_key.v = (uint16_t) s->record->notice.key;
                out->partition = partition_name(s->c, p_key_base(out->p_key));
        }
}

void notice_open(struct attribution_context *s)
{
        s->from = party_of_host(s->c->subnet, s->record->from);
        s->to = party_of_host(s->c->subnet, s->record->to);
        fill_fields(s);
}

/* --- the headline ----------------------------------------------------------------------------------------------- */

/* "with P_Key 0x8101 (the full key of tenant-a)"; a Q_Key is a secret of those who use it, and is not said */
static const char *key_of(struct attribution_context *s)
{
        uint32_t key = s->record->notice.key;
        const char *name = s->out->partition;

        if (s->record->source == VIOLATION_NOTICE_258)
                return "with another Q_Key than it expects";
        if (name)
                return arena_printf(s->arena, "with P_Key 0x%04" PRIx32 " (the %s key of %s)", key,
                                    p_key_is_full(s->out->p_key) ? "full" : "limited", name);
        return arena_printf(s->arena, "with P_Key 0x%04" PRIx32, key);
}

/* The receiver is who reported it, be it known or not. */
static bool is_receiver(const struct attribution_context *s)
{
        if (s->record->port.node_guid.v == 0)
                return s->record->notice.issuer.v == s->record->notice.lid2.v;
        return party_is_known(&s->to) && s->to.guid.v == s->host.guid.v;
}

int notice_headline(struct attribution_context *s, struct headline *ret)
{
        const struct notice *n = &s->record->notice;
        const char *key = key_of(s), *where = "refused there";

        if (s->record->source == VIOLATION_NOTICE_259)
                where = arena_printf(s->arena, "refused at %s%s", s->node_is_there ? "switch port " : "", s->counted_label);
        else if (!is_receiver(s))
                where = arena_printf(s->arena, "refused by %s", s->counted_label);
        if (!key || !where)
                return -ENOMEM;
        ret->subject = s->from.label;
        ret->verb = "sent";
        if (n->qp1 != 0 || n->qp2 != 0)
                ret->source = arena_printf(s->arena, "%s, queue pair 0x%" PRIx32 " to 0x%" PRIx32, ret->source, n->qp1,
                                           n->qp2);
        ret->tail = arena_printf(s->arena, "to %s %s, %s", s->to.label, key, where);
        return ret->tail && ret->source ? 0 : -ENOMEM;
}

/* --- why -------------------------------------------------------------------------------------------------------- */

/* What changed for this end in the partition of the key; false: nothing is known. */
static bool add_change(struct attribution_context *s, struct text *w, const struct party *p, enum party_role role)
{
        return membership_text_add_change(w, s->c, p, p_key_base(s->out->p_key), role, s->began);
}

/* A partition that the policy does not have, perhaps not any more. */
static void add_no_partition(struct attribution_context *s, struct text *w, uint16_t base)
{
        text_add(w, "; no partition of the policy has 0x%04x", (unsigned) base);
        if (!policy_owns(s->c->memberships->policy, base))
                text_add(w, " (owns: leaves it to others)");
        if (!add_change(s, w, &s->from, PARTY_SENDER) && !add_change(s, w, &s->to, PARTY_RECEIVER))
                membership_text_add_all(w, s->c, &s->from, false);
}

/* One end is no member. */
static void add_outsider(struct attribution_context *s, struct text *w, const struct party *p, enum party_role role)
{
        const char *what = arena_printf(s->arena, "%s (0x%04x)", s->out->partition,
                                        (unsigned) p_key_base(s->out->p_key));

        if (!add_change(s, w, p, role))
                membership_text_add_never(w, s->c, p, what ? what : s->out->partition);
        membership_text_add_all(w, s->c, p, true);
}

/* Both are members, but limited to limited. */
static void add_limited(struct attribution_context *s, struct text *w, enum membership from, enum membership to)
{
        const char *name = s->out->partition;

        if (from == MEMBERSHIP_LIMITED && to == MEMBERSHIP_LIMITED)
                text_add(w, "; both are limited members of %s: limited members may not talk to each other", name);
        else
                text_add(w,
                         "; %s used its limited key of %s, and %s is a limited member: limited members may not "
                         "talk to each other",
                         s->from.name, name, s->to.name);
        if (!add_change(s, w, &s->from, PARTY_SENDER))
                (void) add_change(s, w, &s->to, PARTY_RECEIVER);
}

/* The policy says that this should have worked. */
static void add_allowed(struct attribution_context *s, struct text *w)
{
        text_add(w, "; the policy lets them talk");
        if (!add_change(s, w, &s->from, PARTY_OTHER))
                (void) add_change(s, w, &s->to, PARTY_OTHER);
        text_add(w, "; look whether their P_Key tables are as it says (pkeyctl verify)");
}

static void add_one_known(struct attribution_context *s, struct text *w, const struct party *p, enum membership m)
{
        text_add(w, "; %s is a %s member of %s", p->name, membership_text_word(m), s->out->partition);
}

static void add_verdict(struct attribution_context *s, struct text *w)
{
        enum membership from = MEMBERSHIP_NONE, to = MEMBERSHIP_NONE;
        bool knows_from = party_is_known(&s->from) &&
                          membership_text_find(s->c, &s->from, p_key_base(s->out->p_key), &from);
        bool knows_to = party_is_known(&s->to) && membership_text_find(s->c, &s->to, p_key_base(s->out->p_key), &to);
        bool full_key = p_key_is_full(s->out->p_key);

        if (knows_from && from == MEMBERSHIP_NONE) {
                add_outsider(s, w, &s->from, PARTY_SENDER);
        } else if (knows_to && to == MEMBERSHIP_NONE) {
                add_outsider(s, w, &s->to, PARTY_RECEIVER);
        } else if (knows_from && full_key && !membership_has_full(from)) {
                text_add(w, "; %s is only a limited member of %s, but used the full key", s->from.name,
                         s->out->partition);
                (void) add_change(s, w, &s->from, PARTY_SENDER);
        } else if (knows_from && knows_to && !full_key && !membership_has_full(to)) {
                add_limited(s, w, from, to);
        } else if (knows_from && knows_to) {
                add_allowed(s, w);
        } else if (knows_from) {
                add_one_known(s, w, &s->from, from);
        } else if (knows_to) {
                add_one_known(s, w, &s->to, to);
        }
}

static void add_wiring(struct attribution_context *s, struct text *w)
{
        const struct party *h = &s->host;

        text_add(w, "; only %s is plugged into %s%s", h->label, s->counted_label,
                 party_is_known(&s->from) && party_is_known(&s->to) ? ", so not both of these addresses are true"
                                                                    : "");
}

static void add_p_key_reasons(struct attribution_context *s, struct text *w)
{
        if (s->out->partition)
                add_verdict(s, w);
        else if (s->c->memberships)
                add_no_partition(s, w, p_key_base(s->out->p_key));
}

void notice_add_reasons(struct attribution_context *s, struct text *w)
{
        uint32_t key = s->record->notice.key;

        if (s->record->from_conflicts)
                text_add(w, "; one of the two is not true");
        if (s->wiring_conflicts)
                add_wiring(s, w);
        if (s->record->source == VIOLATION_NOTICE_258)
                text_add(w, "; no matter of partitions: the two programs do not agree on the Q_Key, the key between "
                            "datagram queue pairs");
        else if (key > UINT16_MAX)
                text_add(w, "; no P_Key has more than 16 bits");
        else if (p_key_base((struct p_key) { (uint16_t) key }) == 0)
                text_add(w, "; that is no P_Key but an empty table entry: probably a queue pair whose entry was "
                            "removed");
        if (!has_p_key(s)) {
                if (s->record->source != VIOLATION_NOTICE_258 && key <= UINT16_MAX)
                        (void) membership_text_add_last_change(w, s->c, &s->from, PARTY_SENDER, s->began);
        } else if (s->out->names_sender || !party_is_known(&s->from)) {
                add_p_key_reasons(s, w);
        }
}
