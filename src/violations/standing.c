/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/standing.h"

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
        *ret = (struct party) { .port = port, .guid = p->guid, .label = label, .name = name };
        return 0;
}

const char *standing_membership_word(enum membership m)
{
        return m == MEMBERSHIP_BOTH ? "full and limited" : membership_to_string(m);
}

/* --- what it is ------------------------------------------------------------------------------------------------- */

static uint32_t endport_of(const struct attribution_context *c, const struct party *p)
{
        if (!c->memberships || p->guid.v == 0)
                return SUBNET_NONE;
        return subnet_find_endport(c->memberships->subnet, p->guid);
}

bool standing_membership(const struct attribution_context *c, const struct party *p, uint16_t base,
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

/* "A, B and 3 others" of n names. "and 1 other" would be no shorter than its name. */
struct names {
        uint32_t n, shown, i;
};

static struct names begin_names(uint32_t n)
{
        return (struct names) { .n = n, .shown = n > MAX_NAMES + 1 ? MAX_NAMES : n };
}

/* Puts what stands before the next name. False: no more are named. */
static bool next_name(struct words *w, struct names *l)
{
        if (l->i == l->shown)
                return false;
        words_add_separator(w, l->i++, l->shown < l->n ? l->shown + 1 : l->shown);
        return true;
}

static void end_names(struct words *w, const struct names *l)
{
        if (l->shown < l->n)
                words_add(w, " and %s others", words_number(l->n - l->shown).text);
}

/* ", a full member of A, B and 3 others" */
static void add_kind(struct words *w, const struct memberships *m, uint32_t port, enum membership kind, bool *first)
{
        struct names names;
        uint32_t n = 0;

        for (uint32_t j = m->first[port]; j < m->first[port + 1]; j++)
                n += m->items[j].membership == kind;
        if (n == 0)
                return;
        names = begin_names(n);
        words_add(w, "%s %s member of ", *first ? " a" : ", a", standing_membership_word(kind));
        for (uint32_t j = m->first[port]; j < m->first[port + 1]; j++)
                if (m->items[j].membership == kind && next_name(w, &names))
                        words_add(w, "%s", m->policy->partitions[m->items[j].partition].name);
        end_names(w, &names);
        *first = false;
}

void standing_add_memberships(struct words *w, const struct attribution_context *c, const struct party *p, bool it)
{
        const struct memberships *m = c->memberships;
        uint32_t port = endport_of(c, p);
        bool first = true;

        if (port == SUBNET_NONE)
                return;
        if (m->first[port] == m->first[port + 1]) {
                words_add(w, "; the policy lets %s into no partition", it ? "it" : p->name);
                return;
        }
        words_add(w, "; %s is", it ? "it" : p->name);
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

bool standing_is_loss(const struct membership_change *c)
{
        return level_of(c->after) < level_of(c->before);
}

static usec_t since(usec_t now, usec_t then)
{
        return now > then ? now - then : 0;
}

void standing_add_when(struct words *w, const struct attribution_context *c, const struct membership_change *change)
{
        words_add(w, "%s ago", words_duration(since(c->now, change->when)).text);
        if (change->same_policy)
                words_add(w, ", when the fabric changed and not the policy (was it renamed or plugged in elsewhere?)");
        else
                words_add(w, " by generation %" PRIu64, change->generation);
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

static void add_like(struct words *w, const struct membership_change *changes, uint32_t n,
                     const struct membership_change *change)
{
        struct names names;
        uint32_t n_like = 0;

        for (uint32_t j = 0; j < n; j++)
                n_like += is_like(&changes[j], change);
        names = begin_names(n_like);
        for (uint32_t j = 0; j < n; j++)
                if (is_like(&changes[j], change) && next_name(w, &names))
                        words_add(w, "%s (0x%04x)", changes[j].partition, (unsigned) changes[j].base);
        end_names(w, &names);
}

/* What a change has to do with violations that began at `began`. */
static void add_consequence(struct words *w, const struct membership_change *change, enum standing_part part,
                            usec_t began)
{
        if (part == STANDING_ASIDE || began == USEC_INFINITY || !standing_is_loss(change))
                return;
        if (change->when > began) {
                words_add(w, ", after this had begun");
                return;
        }
        if (began - change->when > PERHAPS)
                return;
        words_add(w, began - change->when > PROBABLY ? ": perhaps " : ": probably ");
        if (change->after != MEMBERSHIP_NONE)
                words_add(w, "because of that");
        else
                words_add(w, part == STANDING_SENDER ? "its jobs still use the old key"
                                                     : "other members still send to it");
}

/* One change, with those that are like it out of n. */
static void add_change(struct words *w, const struct attribution_context *c, const struct party *p,
                       const struct membership_change *change, const struct membership_change *changes, uint32_t n)
{
        words_add(w, "; %s was ", p->name);
        if (change->after == MEMBERSHIP_NONE)
                words_add(w, "taken out of ");
        else if (change->before == MEMBERSHIP_NONE)
                words_add(w, "put into ");
        else
                words_add(w, "changed from a %s to a %s member of ", standing_membership_word(change->before),
                          standing_membership_word(change->after));
        add_like(w, changes, n, change);
        words_add(w, " ");
        standing_add_when(w, c, change);
}

static const struct membership_change *newest(const struct membership_change *changes, uint32_t n, bool only_losses)
{
        const struct membership_change *found = NULL;

        for (uint32_t i = 0; i < n; i++)
                if ((!only_losses || standing_is_loss(&changes[i])) && (!found || changes[i].when > found->when))
                        found = &changes[i];
        return found;
}

bool standing_add_last_change(struct words *w, const struct attribution_context *c, const struct party *p,
                              enum standing_part part, usec_t began)
{
        const struct membership_change *changes, *change;
        usec_t known_since;
        uint32_t n;

        if (!c->history || p->guid.v == 0)
                return false;
        changes = membership_history_of(c->history, p->guid, &n);
        change = newest(changes, n, true);
        if (!change || since(c->now, change->when) > PERHAPS)
                change = newest(changes, n, false);
        known_since = membership_history_known_since(c->history, p->guid);
        if (change) {
                add_change(w, c, p, change, changes, n);
                add_consequence(w, change, part, began);
                return true;
        }
        if (known_since == USEC_INFINITY || since(c->now, known_since) < WORTH_SAYING)
                return false;
        words_add(w, "; the partitions of %s did not change in the %s that pkeyd remembers", p->name,
                  words_duration(since(c->now, known_since)).text);
        return true;
}

bool standing_add_change_of(struct words *w, const struct attribution_context *c, const struct party *p, uint16_t base,
                            enum standing_part part, usec_t began)
{
        const struct membership_change *change;

        if (!c->history || p->guid.v == 0)
                return false;
        change = membership_history_find(c->history, p->guid, base);
        if (!change)
                return false;
        add_change(w, c, p, change, change, 1);
        add_consequence(w, change, part, began);
        return true;
}

void standing_add_never(struct words *w, const struct attribution_context *c, const struct party *p, const char *what)
{
        usec_t known_since = c->history ? membership_history_known_since(c->history, p->guid) : USEC_INFINITY;

        if (known_since == USEC_INFINITY || since(c->now, known_since) < WORTH_SAYING)
                words_add(w, "; %s is no member of %s", p->name, what);
        else
                words_add(w, "; %s was never a member of %s in the %s that pkeyd remembers", p->name, what,
                          words_duration(since(c->now, known_since)).text);
}
