/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/held_text.h"

#include <errno.h>
#include <string.h>

#define MAX_LABELS 3 /* of ports in one sentence */
#define MAX_PORTS  4 /* that a base waits for, in one line */

#define FIRST_DATE UINT64_C(1577836800) /* 2020-01-01, in seconds since 1970 */

/* --- ports ------------------------------------------------------------------------------------------------------------- */

static const struct known_port *find_known(const struct known *known, struct knowledge_name name)
{
        for (uint32_t i = 0; known && i < known->n; i++)
                if (known->ports[i].node_guid.v == name.node.v && known->ports[i].number == name.number)
                        return &known->ports[i];
        return NULL;
}

/* The node as it is in the snapshot, or as it was last seen. A port may be gone while its node is still there. */
static int find_node(const struct held_context *context, struct knowledge_name name, struct subnet_node *ret, struct guid *ret_port)
{
        uint32_t i = context->subnet ? subnet_find_node(context->subnet, name.node) : SUBNET_NONE, port;
        const struct known_port *known = name.kind == KNOWLEDGE_ENDPORT ? find_known(context->known, name) : NULL;

        *ret = (struct subnet_node) { .guid = name.node, .description = "", .name = "", .device = "" };
        if (known)
                *ret_port = known->port_guid;
        if (i != SUBNET_NONE) {
                *ret = context->subnet->nodes[i];
                port = subnet_find_port(context->subnet, i, name.number);
                if (port != SUBNET_NONE && context->subnet->ports[port].guid.v)
                        *ret_port = context->subnet->ports[port].guid;
        }
        if (i != SUBNET_NONE || !known)
                return 0;
        ret->description = known->description;
        return node_description_split(context->arena, known->description, &ret->name, &ret->device);
}

/* GUIDs only: a name may match other ports, too, and it is chosen by the host, while the command is pasted into a shell. */
static const char *forget_argument(struct arena *a, struct knowledge_name name, struct guid port)
{
        if (name.kind == KNOWLEDGE_ENDPORT && port.v)
                return arena_printf(a, "0x%016" PRIx64, port.v);
        return arena_printf(a, "%s0x%016" PRIx64 "/%u", name.kind == KNOWLEDGE_PLACE ? "@" : "", name.node.v, name.number);
}

int held_port_find(const struct held_context *context, struct knowledge_name name, struct held_port *ret)
{
        bool is_place = name.kind == KNOWLEDGE_PLACE;
        struct subnet_node node;
        const char *label;
        int r;

        *ret = (struct held_port) { .node_guid = name.node };
        r = find_node(context, name, &node, &ret->port_guid);
        label = r == 0 ? subnet_node_label(context->arena, &node) : NULL;
        if (!label)
                return -ENOMEM;
        if (is_place)
                ret->port_guid.v = 0;
        ret->node = node.name[0] ? node.name : node.description;
        ret->label = arena_printf(context->arena, is_place ? "the device at %s/%u" : "%s/%u", label, name.number);
        ret->place = is_place ? arena_printf(context->arena, "@%s/%u", label, name.number) : NULL;
        ret->forget = name.kind == KNOWLEDGE_LEAF ? NULL : forget_argument(context->arena, name, ret->port_guid);
        return ret->label && (ret->place || !is_place) && (ret->forget || name.kind == KNOWLEDGE_LEAF) ? 0 : -ENOMEM;
}

/* The same while a text is written; false: out of memory, and the text failed. */
static bool find_port(const struct held_context *context, struct knowledge_name name, struct text *t, struct held_port *ret)
{
        bool found = held_port_find(context, name, ret) == 0;

        t->failed |= !found;
        return found;
}

static const char *label_of(const struct held_context *context, struct knowledge_name name, struct text *t)
{
        struct held_port port;

        return find_port(context, name, t, &port) ? port.label : "?";
}

/* --- times ------------------------------------------------------------------------------------------------------------- */

static void add_duration(struct text *t, uint64_t s)
{
        if (s >= 86400)
                text_add(t, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s % 86400 / 3600);
        else if (s >= 3600)
                text_add(t, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
        else if (s >= 60)
                text_add(t, "%" PRIu64 " min", s / 60);
        else
                text_add(t, "%" PRIu64 " s", s);
}

bool held_has_dates(const struct held_context *context)
{
        return context->time && context->now >= FIRST_DATE;
}

static void add_time(const struct held_context *context, const char *word, uint64_t when, struct text *t)
{
        const char *time = context->time(context->arena, when);

        t->failed |= !time;
        text_add(t, " %s %s", word, time ?: "?");
}

/* " since ..." or " for ..."; nothing if `since` is not known. */
static void add_since(const struct held_context *context, uint64_t since, struct text *t)
{
        int64_t age = (int64_t) (context->now - since); /* `since` may be before 1970 (knowledge.h) */

        if (since == 0)
                return;
        if (held_has_dates(context)) {
                add_time(context, "since", since, t);
                return;
        }
        text_add(t, " for ");
        add_duration(t, (uint64_t) MAX(age, INT64_C(0)));
}

static void add_until(const struct held_context *context, uint64_t until, struct text *t)
{
        if (until == 0) {
                text_add(t, " indefinitely (absent_hold: forever)");
        } else if (held_has_dates(context)) {
                add_time(context, "until", until, t);
        } else {
                text_add(t, " for ");
                add_duration(t, MAX(context->now, until) - context->now);
                text_add(t, " more");
        }
}

/* --- what waits ---------------------------------------------------------------------------------------------------------- */

enum change {
        CHANGE_FILTER,
        CHANGE_PASS, /* of a switch port: what is plugged in gets the entry through */
        CHANGE_BLOCK,
        CHANGE_LOSE,
        CHANGE_GET,
        CHANGE_RAISE,
        CHANGE_LOWER,
};

/* Of one port, of several. */
static const char *const changes[][2] = {
        [CHANGE_FILTER] = { "changes its filter", "change their filters" },
        [CHANGE_PASS] = { "lets it through", "let it through" },
        [CHANGE_BLOCK] = { "stops it", "stop it" },
        [CHANGE_LOSE] = { "loses it", "lose it" },
        [CHANGE_GET] = { "gets it", "get it" },
        [CHANGE_RAISE] = { "becomes a full member", "become full members" },
        [CHANGE_LOWER] = { "becomes a limited member", "become limited members" },
};

static enum change change_of(const struct held_waiting *w)
{
        if (w->is_filter)
                return CHANGE_FILTER;
        if (w->name.kind == KNOWLEDGE_LEAF && w->to != LEVEL_LIMITED)
                return w->to > w->from || (w->to == w->from && w->to != LEVEL_NONE) ? CHANGE_PASS : CHANGE_BLOCK;
        if (w->to == LEVEL_NONE)
                return CHANGE_LOSE;
        if (w->from == LEVEL_NONE || w->from == w->to)
                return CHANGE_GET;
        return w->to == LEVEL_FULL ? CHANGE_RAISE : CHANGE_LOWER;
}

static void add_condition(const struct held_context *context, const struct held *h, enum rule_verdict rule, struct text *t)
{
        bool many = h->n_by > 1;

        if (rule == RULE_ADMITS) {
                text_add(t, " when an earlier change of the same table is confirmed");
                return;
        }
        if (h->n_by == 1 && h->by[0].reason == HELD_UNKNOWN_DEVICE) {
                text_add(t, " when pkeyd knows what is plugged into it");
                return;
        }
        text_add(t, " when %s ", many ? "the ports named here" : label_of(context, h->by[0].name, t));
        if (rule == RULE_LOSS)
                text_add(t, "%s known to have it", many ? "are" : "is");
        else if (!many && rule_policy_for(RULE_GAIN, h->by[0].policy) == LEVEL_NONE)
                text_add(t, "is known not to hold it");
        else
                text_add(t, "%s known to hold no more than the policy gives %s", many ? "are" : "is", many ? "them" : "it");
}

static bool is_alike(const struct held_waiting *x, const struct held_waiting *y)
{
        return x->rule == y->rule && change_of(x) == change_of(y);
}

/* Ports with the same change, which waits by the same rule, are one sentence. */
static void add_alike(const struct held_context *context, const struct held *h, uint32_t first, struct text *t)
{
        uint32_t n = 0;

        text_add(t, "%s", first > 0 ? "; " : "");
        for (uint32_t i = first; i < held_n_kept(h->n_waiting); i++) {
                if (!is_alike(&h->waiting[i], &h->waiting[first]))
                        continue;
                if (n++ < MAX_LABELS)
                        text_add(t, "%s%s", n > 1 ? ", " : "", label_of(context, h->waiting[i].name, t));
        }
        if (n > MAX_LABELS)
                text_add(t, " and %u more", n - MAX_LABELS);
        text_add(t, " %s", changes[change_of(&h->waiting[first])][n > 1]);
        add_condition(context, h, h->waiting[first].rule, t);
}

static bool is_first_of_its_kind(const struct held *h, uint32_t i)
{
        for (uint32_t before = 0; before < i; before++)
                if (is_alike(&h->waiting[before], &h->waiting[i]))
                        return false;
        return true;
}

void held_add_headline(const struct held_context *context, const struct held *h, struct text *t)
{
        const char *name = held_partition(context, h->base);

        text_add(t, "base 0x%04x", (unsigned) h->base);
        if (name)
                text_add(t, " (partition \"%s\")", name);
        text_add(t, " is held: ");
        for (uint32_t i = 0; i < held_n_kept(h->n_waiting); i++)
                if (is_first_of_its_kind(h, i))
                        add_alike(context, h, i, t);
        if (h->n_waiting > HELD_MAX)
                text_add(t, "; and %u more port%s", h->n_waiting - HELD_MAX, h->n_waiting - HELD_MAX == 1 ? " waits" : "s wait");
}

/* --- what it waits for ----------------------------------------------------------------------------------------------------- */

static void add_switch(const struct held_context *context, struct guid node, struct text *t)
{
        struct held_port port;

        if (find_port(context, (struct knowledge_name) { node, 0, KNOWLEDGE_ENDPORT }, t, &port))
                text_add(t, "%s%s0x%016" PRIx64 "%s", port.node, port.node[0] ? " (" : "", node.v, port.node[0] ? ")" : "");
}

/* A device that answered, but with the GUID of another one. False: it is not such a device. */
static bool add_conflict(const struct held_context *context, struct knowledge_name name, struct text *t)
{
        bool is_place = context->subnet && name.kind == KNOWLEDGE_PLACE;
        const struct subnet_conflict *c = is_place ? subnet_find_conflict(context->subnet, name.node, name.number) : NULL;
        const char *first;

        if (!c)
                return false;
        first = subnet_place_label(context->arena, context->subnet, c->places[0]);
        t->failed |= !first;
        text_add(t, " has the same GUID 0x%016" PRIx64 " as %s, so nothing is known of it (give one of the two another GUID)",
                 c->guid.v, first ?: "?");
        return true;
}

/* A port whose table was not queried, because its node or its switch is incomplete. False: it is not such a port. */
static bool add_incomplete(const struct held_context *context, struct knowledge_name name, struct text *t)
{
        const struct subnet *s = context->subnet;
        uint32_t port = s ? subnet_find_port_of(s, name.node, name.number) : SUBNET_NONE;
        const struct subnet_node *incomplete = port == SUBNET_NONE ? NULL : subnet_port_incomplete_node(s, &s->ports[port]);
        const char *label;

        if (!incomplete)
                return false;
        label = subnet_node_label(context->arena, incomplete);
        t->failed |= !label;
        text_add(t, " was not queried for its P_Key table, because %s did not answer all discovery queries (link up)", label ?: "?");
        return true;
}

/* Parts that sentences have in common. */
#define REPAIR       "repair or unplug "
#define UNPLUGGED    " (pkeyd waits for an unplugged port only for absent_hold)"
#define BEHIND       ": it is behind a switch that does not answer, "
#define MAY_BE       ", and may be a silent device elsewhere in the fabric: it counts as holding"
#define MAY_BE_UNTIL " until that device answers or is unplugged"
#define OWN_CHANGE   ": its own change failed or waits, or the port is frozen"
#define TRIES_AGAIN  "pkeyd tries again; see the journal if the change failed, pkeyctl show held if it waits"

/* Sentences about a port that stands in the way, and the way out. */
static const struct {
        const char *state;          /* after the port */
        bool has_since;             /* after the state */
        const char *rest, *unread;  /* after that; `unread` if its table was never read, NULL: also `rest` */
        const char *way_out, *them; /* before and after "it" or "them"; `them` NULL: without either */
        bool can_vouch;
} reasons[HELD_N_REASONS] = {
        [HELD_NEVER_READ] = { " has never answered a query for its P_Key table", false, " (link up)", NULL, REPAIR, UNPLUGGED, true },
        [HELD_UNANSWERED] = { " has not answered a query for its P_Key table", true, " (link up)", NULL, REPAIR, UNPLUGGED, true },
        [HELD_UNCONFIRMED] = { " has not confirmed a write to its P_Key table", true, "", NULL, REPAIR, UNPLUGGED, true },
        [HELD_SILENT] = { " has not answered", true, " (link up)", " (link up), and its P_Key table was never read", REPAIR,
                          UNPLUGGED, true },
        [HELD_SILENT_SWITCH] = { " has not answered", true, BEHIND, ", and its P_Key table was never read" BEHIND,
                                 "repair the switch, or move ", " to another switch", true },
        [HELD_ABSENT] = { " has not been in the fabric", true, ", and counts as holding what it held", ", and counts as holding anything",
                          "wait, or plug ", " in again", true },
        [HELD_MAYBE_SILENT] = { " has not been in the fabric", true, MAY_BE " what it held" MAY_BE_UNTIL, MAY_BE " anything" MAY_BE_UNTIL,
                                "repair or unplug the device that does not answer, or plug ", " in again", true },
        [HELD_FROZEN] = { " is frozen, and its P_Key table is not what the policy may give it", false, "", NULL,
                          "pkeyctl plan names the error that froze ", ", and what to do", false },
        [HELD_EXCESS] = { " still has more than the policy gives it", false, OWN_CHANGE, NULL, TRIES_AGAIN, NULL, false },
        [HELD_LACK] = { " does not yet have what the policy gives it", false, OWN_CHANGE, NULL, TRIES_AGAIN, NULL, false },
        [HELD_EARLIER] = { ": an earlier change of its P_Key table failed or waits", false, "", NULL, TRIES_AGAIN, NULL, false },
        [HELD_UNKNOWN_DEVICE] = { ": pkeyd does not know what is plugged into it", false, "", NULL,
                                  "pkeyd continues when discovery finds a port there", NULL, false },
};

/* What a survey or discovery found out about it in particular. False: nothing. */
static bool add_special_reason(const struct held_context *context, const struct held_by *by, struct text *t)
{
        if (by->reason == HELD_NEVER_READ || by->reason == HELD_UNANSWERED)
                return add_incomplete(context, by->name, t);
        return by->reason == HELD_SILENT && add_conflict(context, by->name, t);
}

void held_add_reason(const struct held_context *context, const struct held_by *by, struct text *t)
{
        const char *unread = by->read_at ? NULL : reasons[by->reason].unread;
        struct held_port port;

        if (!find_port(context, by->name, t, &port))
                return;
        text_add(t, "%s", port.label);
        if (port.port_guid.v)
                text_add(t, " (0x%016" PRIx64 ")", port.port_guid.v);
        if (add_special_reason(context, by, t))
                return;
        text_add(t, "%s", reasons[by->reason].state);
        if (reasons[by->reason].has_since)
                add_since(context, by->since, t);
        text_add(t, "%s", unread ?: reasons[by->reason].rest);
        if (by->reason == HELD_SILENT_SWITCH)
                add_switch(context, by->behind, t);
        if (by->reason == HELD_ABSENT)
                add_until(context, by->until, t);
}

/* --- the way out ------------------------------------------------------------------------------------------------------------- */

void held_add_way_out(const struct held_context *context, const struct held *h, enum held_reason reason, struct text *t)
{
        _cleanup_text_ struct text names = {}; /* arguments of pkeyctl forget: the ports that a vouch can end */
        uint32_t n = 0, n_vouch = 0;

        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                struct held_port port;

                if (h->by[i].reason != reason)
                        continue;
                n++;
                if (reasons[reason].can_vouch && find_port(context, h->by[i].name, t, &port) && port.forget) {
                        text_add(&names, " %s", port.forget);
                        n_vouch++;
                }
        }
        text_add(t, "%s", reasons[reason].way_out);
        if (reasons[reason].them)
                text_add(t, "%s%s", n > 1 ? "them" : "it", reasons[reason].them);
        t->failed |= names.failed;
        if (n_vouch > 0)
                text_add(t, "; or, if you are certain that %s nothing: pkeyctl forget%s", n_vouch > 1 ? "they hold" : "it holds",
                         names.bytes);
}

/* The way out names only ports that the line names, so that an admin vouches for no other port. */
static void add_ports(const struct held_context *context, const struct held *h, const char *where_all, struct text *t)
{
        struct held named = *h;
        unsigned done = 0;

        named.n_by = MIN(h->n_by, (uint32_t) MAX_PORTS);
        for (uint32_t i = 0; i < named.n_by; i++) {
                text_add(t, "%s", t->n > 0 ? "; " : "");
                held_add_reason(context, &h->by[i], t);
        }
        if (h->n_by > MAX_PORTS)
                text_add(t, "; and %u more port%s%s", h->n_by - MAX_PORTS, text_plural(h->n_by - MAX_PORTS), where_all);
        for (uint32_t i = 0; i < named.n_by; i++) {
                if (done & 1u << h->by[i].reason)
                        continue;
                done |= 1u << h->by[i].reason;
                text_add(t, "; way out: ");
                held_add_way_out(context, &named, h->by[i].reason, t);
        }
}

void held_add_line(const struct held_context *context, const struct held *h, struct text *t)
{
        held_add_headline(context, h, t);
        add_ports(context, h, " (pkeyctl show held)", t);
}

void held_add_holders(const struct held_context *context, const struct held *h, struct text *t)
{
        add_ports(context, h, "", t);
}

const char *held_partition(const struct held_context *context, uint16_t base)
{
        int i = context->policy ? policy_find_base(context->policy, base) : -1;

        return i < 0 ? NULL : context->policy->partitions[i].name;
}

DEFINE_WORDS(held_rule_to_string, enum rule_verdict, "?",
             [RULE_ADMITS] = "order", [RULE_GAIN] = "isolation", [RULE_LOSS] = "continuity")
