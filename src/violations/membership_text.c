/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/membership_text.h"

#include <errno.h>
#include <string.h>

#define MAX_NAMES 4

/* What is known for less time than that is too young to say how long. */
#define WORTH_SAYING (60 * USEC_PER_SEC)

/* Violations that began this long after a change are probably, or perhaps, its consequence. */
#define PROBABLY (24 * 3600 * USEC_PER_SEC)
#define PERHAPS  (7 * PROBABLY)

/* What is said of one port of a host need not be so of the others. */
static bool is_only_port(const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);
        uint32_t i = subnet_first_name(s, node->name);

        if (i + 1 < s->n_by_name && strcmp(s->nodes[s->by_name[i + 1]].name, node->name) == 0)
                return false; /* another adapter */
        if (node->type == NODE_SWITCH)
                return true;
        return (port == 0 || p[-1].node != p->node) && (port + 1 == s->n_ports || p[1].node != p->node);
}

int party_open(struct arena *a, const struct subnet *s, uint32_t port, struct party *ret)
{
        const struct subnet_port *p = &s->ports[port];
        const char *label = subnet_port_label(a, s, port), *name = subnet_port_node(s, p)->name;

        if (!label)
                return -ENOMEM;
        if (!name[0] || !is_only_port(s, port))
                name = label;
        *ret = (struct party) { .port = port, .guid = p->guid, .lid = p->lid, .number = p->number, .label = label, .name = name };
        return 0;
}

struct party party_of_host(const struct subnet *s, const struct violation_host *host)
{
        return (struct party) {
                .port = s ? subnet_find_endport(s, host->guid) : SUBNET_NONE,
                .guid = host->guid, .lid = host->lid, .number = host->number, .label = host->label, .name = host->name,
        };
}

const char *membership_text_word(enum membership m)
{
        return m == MEMBERSHIP_BOTH ? "full and limited" : membership_to_string(m);
}

/* --- what it is ------------------------------------------------------------------------------------------------- */

static uint32_t endport_of(const struct attribution_input *c, const struct party *p)
{
        if (!c->memberships || p->guid.v == 0)
                return SUBNET_NONE;
        return subnet_find_endport(c->memberships->subnet, p->guid);
}

bool membership_text_find(const struct attribution_input *c, const struct party *p, uint16_t base,
                          enum membership *ret)
{
        uint32_t port = endport_of(c, p);
        const struct port_membership *found;

        if (port == SUBNET_NONE)
                return false;
        found = memberships_find(c->memberships, port, base);
        *ret = found ? found->membership : MEMBERSHIP_NONE;
        return true;
}

/* "A, B (0x0101) and 3 others". "and 1 other" would be no shorter than its name. */
struct names {
        struct {
                const char *name;
                uint16_t base; /* 0: without it */
        } items[MAX_NAMES + 1];
        uint32_t n; /* of them all; the first are in items */
};

static void take_name(struct names *l, const char *name, uint16_t base)
{
        if (l->n < ELEMENTS(l->items)) {
                l->items[l->n].name = name;
                l->items[l->n].base = base;
        }
        l->n++;
}

static void add_names(struct text *w, const struct names *l)
{
        uint32_t shown = l->n > ELEMENTS(l->items) ? MAX_NAMES : l->n;

        for (uint32_t i = 0; i < shown; i++) {
                phrase_add_separator(w, i, shown < l->n ? shown + 1 : shown);
                text_add(w, "%s", l->items[i].name);
                if (l->items[i].base != 0)
                        text_add(w, " (0x%04x)", (unsigned) l->items[i].base);
        }
        if (shown < l->n)
                text_add(w, " and %s others", phrase_number(l->n - shown).text);
}

/* ", a full member of A, B and 3 others" */
static void add_kind(struct text *w, const struct memberships *m, uint32_t port, enum membership kind, bool *first)
{
        struct names names = {};

        for (uint32_t j = m->first[port]; j < m->first[port + 1]; j++)
                if (m->items[j].membership == kind)
                        take_name(&names, m->policy->partitions[m->items[j].partition].name, 0);
        if (names.n == 0)
                return;
        text_add(w, "%s %s member of ", *first ? " a" : ", a", membership_text_word(kind));
        add_names(w, &names);
        *first = false;
}

void membership_text_add_all(struct text *w, const struct attribution_input *c, const struct party *p, bool it)
{
        const struct memberships *m = c->memberships;
        uint32_t port = endport_of(c, p);
        bool first = true;

        if (port == SUBNET_NONE)
                return;
        if (m->first[port] == m->first[port + 1]) {
                text_add(w, "; the policy lets %s into no partition", it ? "it" : p->name);
                return;
        }
        text_add(w, "; %s is", it ? "it" : p->name);
        add_kind(w, m, port, MEMBERSHIP_FULL, &first);
        add_kind(w, m, port, MEMBERSHIP_BOTH, &first);
        add_kind(w, m, port, MEMBERSHIP_LIMITED, &first);
}

/* --- what it was ------------------------------------------------------------------------------------------------ */

/* Both is no more than full: the limited key lets a port talk to nobody to whom the full one does not. */
static int level_of(enum membership m)
{
        return membership_has_full(m) ? 2 : membership_has_limited(m) ? 1 : 0;
}

bool membership_text_is_loss(const struct membership_change *c)
{
        return level_of(c->after) < level_of(c->before);
}

void membership_text_add_when(struct text *w, const struct attribution_input *c, const struct membership_change *change)
{
        if (change->away_since != 0) {
                text_add(w, "between %s and %s ago, while it was not in the fabric",
                         phrase_duration(elapsed(change->away_since, c->now)).text,
                         phrase_duration(elapsed(change->when, c->now)).text);
                return;
        }
        text_add(w, "%s ago", phrase_duration(elapsed(change->when, c->now)).text);
        if (change->same_policy)
                text_add(w, ", when the fabric changed and not the policy (was it renamed or plugged in elsewhere?)");
        else
                text_add(w, " by generation %" PRIu64, change->generation);
}

/* Those that came with `change` and are of its kind. */
static bool is_like(const struct membership_change *a, const struct membership_change *b)
{
        if (a->when != b->when || a->generation != b->generation)
                return false;
        if (a->after == MEMBERSHIP_NONE || a->before == MEMBERSHIP_NONE)
                return (a->after == MEMBERSHIP_NONE) == (b->after == MEMBERSHIP_NONE) &&
                       (a->before == MEMBERSHIP_NONE) == (b->before == MEMBERSHIP_NONE);
        return a->before == b->before && a->after == b->after;
}

static void add_like(struct text *w, const struct membership_change *changes, uint32_t n,
                     const struct membership_change *change)
{
        struct names names = {};

        for (uint32_t j = 0; j < n; j++)
                if (is_like(&changes[j], change))
                        take_name(&names, changes[j].partition, changes[j].base);
        add_names(w, &names);
}

/* What a change has to do with violations that began at `began`. Who did the same before it does not do it because of it. */
static void add_consequence(struct text *w, const struct attribution_input *c, const struct membership_change *change,
                            enum party_role role, struct beginning began)
{
        bool is_between = change->when > began.earliest;

        if (role == PARTY_OTHER || began.latest == USEC_INFINITY || !membership_text_is_loss(change))
                return;
        if (change->when > began.again) {
                text_add(w, ", after this had begun");
                return;
        }
        if (change->when > began.latest) {
                text_add(w, ", but this is not the first time: that was %s ago",
                         phrase_duration(elapsed(began.latest, c->now)).text);
                return;
        }
        if (began.latest - change->when > PERHAPS)
                return;
        text_add(w, is_between ? ", about when this began: perhaps "
                               : began.latest - change->when > PROBABLY ? ": perhaps " : ": probably ");
        if (change->after != MEMBERSHIP_NONE)
                text_add(w, "because of that");
        else
                text_add(w, role == PARTY_SENDER ? "its jobs still use the old key"
                                                    : "other members still send to it");
}

/* One change, with those that are like it out of n. */
static void add_change(struct text *w, const struct attribution_input *c, const struct party *p,
                       const struct membership_change *change, const struct membership_change *changes, uint32_t n)
{
        text_add(w, "; %s was ", p->name);
        if (change->after == MEMBERSHIP_NONE)
                text_add(w, "taken out of ");
        else if (change->before == MEMBERSHIP_NONE)
                text_add(w, "put into ");
        else
                text_add(w, "changed from a %s to a %s member of ", membership_text_word(change->before),
                         membership_text_word(change->after));
        add_like(w, changes, n, change);
        text_add(w, " ");
        membership_text_add_when(w, c, change);
}

static const struct membership_change *newest(const struct membership_change *changes, uint32_t n, bool only_losses)
{
        const struct membership_change *found = NULL;

        for (uint32_t i = 0; i < n; i++)
                if ((!only_losses || membership_text_is_loss(&changes[i])) && (!found || changes[i].when > found->when))
                        found = &changes[i];
        return found;
}

bool membership_text_add_last_change(struct text *w, const struct attribution_input *c, const struct party *p,
                                     enum party_role role, struct beginning began)
{
        const struct membership_change *changes, *change;
        usec_t known_since;
        uint32_t n;

        if (!c->history || p->guid.v == 0)
                return false;
        changes = membership_history_of(c->history, p->guid, &n);
        change = newest(changes, n, true);
        if (!change || elapsed(change->when, c->now) > PERHAPS)
                change = newest(changes, n, false);
        known_since = membership_history_known_since(c->history, p->guid);
        if (change) {
                add_change(w, c, p, change, changes, n);
                add_consequence(w, c, change, role, began);
                return true;
        }
        if (known_since == USEC_INFINITY || elapsed(known_since, c->now) < WORTH_SAYING)
                return false;
        text_add(w, "; the partitions of %s did not change in the %s that pkeyd remembers", p->name,
                 phrase_duration(elapsed(known_since, c->now)).text);
        return true;
}

bool membership_text_add_change(struct text *w, const struct attribution_input *c, const struct party *p, uint16_t base,
                                enum party_role role, struct beginning began)
{
        const struct membership_change *change;

        if (!c->history || p->guid.v == 0)
                return false;
        change = membership_history_find(c->history, p->guid, base);
        if (!change)
                return false;
        add_change(w, c, p, change, change, 1);
        add_consequence(w, c, change, role, began);
        return true;
}

void membership_text_add_never(struct text *w, const struct attribution_input *c, const struct party *p, const char *what)
{
        usec_t known_since = c->history ? membership_history_known_since(c->history, p->guid) : USEC_INFINITY;

        if (known_since == USEC_INFINITY || elapsed(known_since, c->now) < WORTH_SAYING)
                text_add(w, "; %s is no member of %s", p->name, what);
        else
                text_add(w, "; %s was never a member of %s in the %s that pkeyd remembers", p->name, what,
                         phrase_duration(elapsed(known_since, c->now)).text);
}
