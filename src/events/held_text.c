/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/held_text.h"

#include <errno.h>
#include <string.h>

#define MAX_LABELS 3 /* of ports in one sentence */
#define MAX_PORTS  4 /* that stand in the way, in one line */

#define FIRST_DATE UINT64_C(1577836800) /* 2020-01-01, in seconds since 1970 */

/* --- ports ------------------------------------------------------------------------------------------------------------- */

static const struct known_port *find_known(const struct known *known, struct knowledge_name name)
{
        for (uint32_t i = 0; known && i < known->n; i++)
                if (known->ports[i].node_guid.v == name.node.v && known->ports[i].number == name.number)
                        return &known->ports[i];
        return NULL;
}

/* The node as it is in the snapshot, or was when it was seen last. A port may be gone while its node is there. */
static int find_node(const struct held_words *words, struct knowledge_name name, struct subnet_node *ret, struct guid *ret_port)
{
        uint32_t i = words->subnet ? subnet_find_node(words->subnet, name.node) : SUBNET_NONE, port;
        const struct known_port *known = name.kind == KNOWLEDGE_ENDPORT ? find_known(words->known, name) : NULL;

        *ret = (struct subnet_node) { .guid = name.node, .description = "", .name = "", .device = "" };
        if (known)
                *ret_port = known->port_guid;
        if (i != SUBNET_NONE) {
                *ret = words->subnet->nodes[i];
                port = subnet_find_port(words->subnet, i, name.number);
                if (port != SUBNET_NONE && words->subnet->ports[port].guid.v)
                        *ret_port = words->subnet->ports[port].guid;
                return 0;
        }
        if (!known)
                return 0;
        return node_description_split(words->arena, known->description, strlen(known->description), &ret->description, &ret->name,
                                      &ret->device);
}

/* GUIDs only: a name may mean other ports, too, and a host chooses its own name, which a person may paste into a shell. */
static const char *forget_of(struct arena *a, struct knowledge_name name, struct guid port)
{
        if (name.kind == KNOWLEDGE_ENDPORT && port.v)
                return arena_printf(a, "0x%016" PRIx64, port.v);
        return arena_printf(a, "%s0x%016" PRIx64 "/%u", name.kind == KNOWLEDGE_PLACE ? "@" : "", name.node.v, name.number);
}

int held_port_find(const struct held_words *words, struct knowledge_name name, struct held_port *ret)
{
        bool is_place = name.kind == KNOWLEDGE_PLACE;
        struct subnet_node node;
        const char *label;
        int r;

        *ret = (struct held_port) { .node_guid = name.node };
        r = find_node(words, name, &node, &ret->port_guid);
        label = r == 0 ? subnet_node_label(words->arena, &node) : NULL;
        if (!label)
                return -ENOMEM;
        if (is_place)
                ret->port_guid.v = 0;
        ret->node = node.name[0] ? node.name : node.description;
        ret->label = arena_printf(words->arena, is_place ? "the device at %s/%u" : "%s/%u", label, name.number);
        ret->place = is_place ? arena_printf(words->arena, "@%s/%u", label, name.number) : NULL;
        ret->forget = name.kind == KNOWLEDGE_LEAF ? NULL : forget_of(words->arena, name, ret->port_guid);
        return ret->label && (ret->place || !is_place) && (ret->forget || name.kind == KNOWLEDGE_LEAF) ? 0 : -ENOMEM;
}

static const char *label_of(const struct held_words *words, struct knowledge_name name, struct text *t)
{
        struct held_port port;

        if (held_port_find(words, name, &port) == 0)
                return port.label;
        t->failed = true;
        return "?";
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

bool held_has_dates(const struct held_words *words)
{
        return words->time && words->now >= FIRST_DATE;
}

static void add_time(const struct held_words *words, const char *word, uint64_t when, struct text *t)
{
        const char *time = words->time(words->arena, when);

        t->failed |= !time;
        text_add(t, " %s %s", word, time ?: "?");
}

/* " since ..." or " for ..."; nothing if it is not known. */
static void add_since(const struct held_words *words, uint64_t since, struct text *t)
{
        int64_t age = (int64_t) (words->now - since); /* `since` may be before 1970 (knowledge.h) */

        if (since == 0)
                return;
        if (held_has_dates(words)) {
                add_time(words, "since", since, t);
                return;
        }
        text_add(t, " for ");
        add_duration(t, (uint64_t) MAX(age, INT64_C(0)));
}

static void add_until(const struct held_words *words, uint64_t until, struct text *t)
{
        if (until == 0) {
                text_add(t, " for ever (absent_hold: forever)");
        } else if (held_has_dates(words)) {
                add_time(words, "until", until, t);
        } else {
                text_add(t, " for ");
                add_duration(t, MAX(words->now, until) - words->now);
                text_add(t, " more");
        }
}

/* --- what waits ---------------------------------------------------------------------------------------------------------- */

static const char *change_of(const struct held_waiting *w, bool many)
{
        bool more = w->to > w->from || (w->to == w->from && w->to != LEVEL_NONE);

        if (w->is_filter)
                return many ? "change their filters" : "changes its filter";
        if (w->name.kind == KNOWLEDGE_LEAF && w->to != LEVEL_LIMITED)
                return more ? (many ? "let it through" : "lets it through") : many ? "stop it" : "stops it";
        if (w->to == LEVEL_NONE)
                return many ? "lose it" : "loses it";
        if (w->from == LEVEL_NONE || w->from == w->to)
                return many ? "get it" : "gets it";
        if (w->to == LEVEL_FULL)
                return many ? "become full members" : "becomes a full member";
        return many ? "become limited members" : "becomes a limited member";
}

static void add_condition(const struct held_words *words, const struct held *h, enum rule_verdict rule, struct text *t)
{
        bool many = h->n_by > 1;

        if (rule == RULE_ADMITS) {
                text_add(t, " when an earlier change of the same table is confirmed");
                return;
        }
        if (h->n_by == 1 && h->by[0].reason == HELD_NOBODY) {
                text_add(t, " when it is known what is plugged into it");
                return;
        }
        text_add(t, " when %s ", many ? "the ports named here" : label_of(words, h->by[0].name, t));
        if (rule == RULE_LOSS)
                text_add(t, "%s known to have it", many ? "are" : "is");
        else if (!many && rule_policy_for(RULE_GAIN, h->by[0].policy) == LEVEL_NONE)
                text_add(t, "is known not to hold it");
        else
                text_add(t, "%s known to hold no more than the policy gives %s", many ? "are" : "is", many ? "them" : "it");
}

static bool is_alike(const struct held_waiting *x, const struct held_waiting *y)
{
        return x->rule == y->rule && change_of(x, false) == change_of(y, false);
}

/* Ports of which the same is to become, by the same rule, are one sentence. */
static void add_alike(const struct held_words *words, const struct held *h, uint32_t first, struct text *t)
{
        uint32_t n = 0;

        for (uint32_t i = first; i < held_n_kept(h->n_waiting); i++) {
                if (!is_alike(&h->waiting[i], &h->waiting[first]))
                        continue;
                if (n++ < MAX_LABELS)
                        text_add(t, "%s%s", n > 1 ? ", " : "", label_of(words, h->waiting[i].name, t));
        }
        if (n > MAX_LABELS)
                text_add(t, " and %u more", n - MAX_LABELS);
        text_add(t, " %s", change_of(&h->waiting[first], n > 1));
        add_condition(words, h, h->waiting[first].rule, t);
}

static bool is_first_of_its_kind(const struct held *h, uint32_t i)
{
        for (uint32_t before = 0; before < i; before++)
                if (is_alike(&h->waiting[before], &h->waiting[i]))
                        return false;
        return true;
}

void held_add_headline(const struct held_words *words, const struct held *h, struct text *t)
{
        const char *name = held_partition(words, h->base);

        text_add(t, "base 0x%04x", (unsigned) h->base);
        if (name[0])
                text_add(t, " (partition \"%s\")", name);
        text_add(t, " is held: ");
        for (uint32_t i = 0; i < held_n_kept(h->n_waiting); i++)
                if (is_first_of_its_kind(h, i)) {
                        text_add(t, "%s", i > 0 ? "; " : "");
                        add_alike(words, h, i, t);
                }
        if (h->n_waiting > HELD_MAX)
                text_add(t, "; and %u ports more wait", h->n_waiting - HELD_MAX);
}

/* --- what it waits for ----------------------------------------------------------------------------------------------------- */

static void add_switch(const struct held_words *words, struct guid node, struct text *t)
{
        struct held_port port;

        if (held_port_find(words, (struct knowledge_name) { node, 0, KNOWLEDGE_ENDPORT }, &port) < 0)
                t->failed = true;
        else
                text_add(t, "%s%s0x%016" PRIx64 "%s", port.node, port.node[0] ? " (" : "", node.v, port.node[0] ? ")" : "");
}

/* It did answer. */
static bool add_conflict(const struct held_words *words, struct knowledge_name name, struct text *t)
{
        const struct subnet_conflict *c = NULL;
        const char *first;

        if (words->subnet && name.kind == KNOWLEDGE_PLACE)
                c = subnet_find_conflict(words->subnet, name.node, name.number);
        if (!c)
                return false;
        first = subnet_place_label(words->arena, words->subnet, c->places[0]);
        t->failed |= !first;
        text_add(t, " has the same GUID 0x%016" PRIx64 " as %s (give one of the two another), and nothing is known of it", c->guid.v,
                 first ?: "?");
        return true;
}

/* It was not asked for its table. */
static bool add_incomplete(const struct held_words *words, struct knowledge_name name, struct text *t)
{
        uint32_t port = words->subnet ? subnet_find_port_of(words->subnet, name.node, name.number) : SUBNET_NONE;
        const struct subnet_node *incomplete;
        const char *label;

        incomplete = port == SUBNET_NONE ? NULL : subnet_port_incomplete_node(words->subnet, &words->subnet->ports[port]);
        if (!incomplete)
                return false;
        label = subnet_node_label(words->arena, incomplete);
        t->failed |= !label;
        text_add(t, " was not asked for its P_Key table, for %s did not answer all of discovery (link up)", label ?: "?");
        return true;
}

void held_add_reason(const struct held_words *words, const struct held_by *by, struct text *t)
{
        struct held_port port;

        if (held_port_find(words, by->name, &port) < 0) {
                t->failed = true;
                return;
        }
        text_add(t, "%s", port.label);
        if (port.port_guid.v)
                text_add(t, " (0x%016" PRIx64 ")", port.port_guid.v);
        switch (by->reason) {
        case HELD_NEVER_READ:
                if (add_incomplete(words, by->name, t))
                        break;
                text_add(t, " has never answered for its P_Key table (link up)");
                break;
        case HELD_UNANSWERED:
                if (add_incomplete(words, by->name, t))
                        break;
                text_add(t, " has not answered for its P_Key table");
                add_since(words, by->since, t);
                text_add(t, " (link up)");
                break;
        case HELD_UNCONFIRMED:
                text_add(t, " has not confirmed a write to its P_Key table");
                add_since(words, by->since, t);
                break;
        case HELD_SILENT:
                if (add_conflict(words, by->name, t))
                        break;
                text_add(t, " has not answered at all");
                add_since(words, by->since, t);
                text_add(t, " (link up)%s", by->read_at ? "" : ", and its P_Key table was never read");
                break;
        case HELD_BEHIND:
                text_add(t, " has not answered at all");
                add_since(words, by->since, t);
                text_add(t, ": it is behind the switch ");
                add_switch(words, by->behind, t);
                text_add(t, ", which does not answer%s", by->read_at ? "" : "; and its P_Key table was never read");
                break;
        case HELD_ABSENT:
                text_add(t, " is not in the fabric");
                add_since(words, by->since, t);
                text_add(t, ", and counts%s", by->read_at ? " as holding what it held" : " as holding anything");
                add_until(words, by->until, t);
                break;
        case HELD_MOVED:
                text_add(t, " is not in the fabric");
                add_since(words, by->since, t);
                text_add(t, ", and may be a device elsewhere that does not answer: it counts%s until that answers or is unplugged",
                         by->read_at ? " as holding what it held" : " as holding anything");
                break;
        case HELD_FROZEN:
                text_add(t, " is frozen, and its P_Key table is not what the policy may give it");
                break;
        case HELD_EXCESS:
                text_add(t, " still has more than the policy gives it: its own change failed or waits, or the port is frozen");
                break;
        case HELD_LACK:
                text_add(t, " does not have yet what the policy gives it: its own change failed or waits, or the port is frozen");
                break;
        case HELD_EARLIER:
                text_add(t, ": an earlier change of its P_Key table failed or waits");
                break;
        case HELD_NOBODY:
                text_add(t, ": it is not known what is plugged into it");
                break;
        case HELD_N_REASONS:
                break;
        }
}

/* --- the way out ------------------------------------------------------------------------------------------------------------- */

/* The ports with this reason that a vouch can end, as arguments. */
static uint32_t add_forget(const struct held_words *words, const struct held *h, enum held_reason reason, struct text *t)
{
        struct held_port port;
        uint32_t n = 0;

        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++) {
                if (h->by[i].reason != reason)
                        continue;
                if (held_port_find(words, h->by[i].name, &port) < 0)
                        t->failed = true;
                else if (port.forget && ++n)
                        text_add(t, " %s", port.forget);
        }
        return n;
}

static void add_vouch(const struct held_words *words, const struct held *h, enum held_reason reason, struct text *t)
{
        _cleanup_text_ struct text names = {};
        uint32_t n = add_forget(words, h, reason, &names);

        t->failed |= names.failed;
        if (n > 0)
                text_add(t, "; or, if you are certain that %s nothing: pkeyctl forget%s", n > 1 ? "they hold" : "it holds",
                         names.bytes);
}

static uint32_t count_reason(const struct held *h, enum held_reason reason)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < held_n_kept(h->n_by); i++)
                n += h->by[i].reason == reason;
        return n;
}

void held_add_way_out(const struct held_words *words, const struct held *h, enum held_reason reason, struct text *t)
{
        const char *them = count_reason(h, reason) > 1 ? "them" : "it";

        switch (reason) {
        case HELD_NEVER_READ:
        case HELD_UNANSWERED:
        case HELD_UNCONFIRMED:
        case HELD_SILENT:
                text_add(t, "repair or unplug %s (what is unplugged counts for absent_hold)", them);
                add_vouch(words, h, reason, t);
                break;
        case HELD_BEHIND:
                text_add(t, "repair the switch, or plug %s in elsewhere", them);
                add_vouch(words, h, reason, t);
                break;
        case HELD_ABSENT:
                text_add(t, "wait, or plug %s in again", them);
                add_vouch(words, h, reason, t);
                break;
        case HELD_MOVED:
                text_add(t, "repair or unplug the device that does not answer, or plug %s in again", them);
                add_vouch(words, h, reason, t);
                break;
        case HELD_FROZEN:
                text_add(t, "pkeyctl plan says why %s frozen, and what to do", count_reason(h, reason) > 1 ? "they are" : "it is");
                break;
        case HELD_EXCESS:
        case HELD_LACK:
        case HELD_EARLIER:
                text_add(t, "pkeyd tries again; the journal names what that change failed at, pkeyctl show held what it waits for");
                break;
        case HELD_NOBODY:
                text_add(t, "pkeyd goes on when discovery finds a port there");
                break;
        case HELD_N_REASONS:
                break;
        }
}

/* A person vouches only for what was named. */
void held_add_line(const struct held_words *words, const struct held *h, struct text *t)
{
        struct held named = *h;
        unsigned done = 0;

        named.n_by = MIN(h->n_by, (uint32_t) MAX_PORTS);

        held_add_headline(words, h, t);
        for (uint32_t i = 0; i < MIN(h->n_by, (uint32_t) MAX_PORTS); i++) {
                text_add(t, "; ");
                held_add_reason(words, &h->by[i], t);
        }
        if (h->n_by > MAX_PORTS)
                text_add(t, "; and %u ports more (pkeyctl show held)", h->n_by - MAX_PORTS);
        for (uint32_t i = 0; i < MIN(h->n_by, (uint32_t) MAX_PORTS); i++) {
                if (done & 1u << h->by[i].reason)
                        continue;
                done |= 1u << h->by[i].reason;
                text_add(t, "; way out: ");
                held_add_way_out(words, &named, h->by[i].reason, t);
        }
}

const char *held_partition(const struct held_words *words, uint16_t base)
{
        int i = words->policy ? policy_find_base(words->policy, base) : -1;

        return i < 0 ? "" : words->policy->partitions[i].name;
}

const char *held_rule_to_string(enum rule_verdict rule)
{
        static const char *const strings[] = {
                [RULE_ADMITS] = "order", [RULE_GAIN] = "isolation", [RULE_LOSS] = "continuity",
        };

        return WORD(strings, rule, "?");
}
