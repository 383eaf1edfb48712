/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_local.h"

#include <errno.h>
#include <string.h>

#include "policy/selector_match.h"

/* What resolving a selector needs, and a single host does not know. */
enum {
        NEEDS_NOTHING = 0,
        NEEDS_CABLES = 1, /* the switch port that each port is plugged into */
        NEEDS_SELF = 2,   /* the port that pkeyd works through */
        NEEDS_UNKNOWN = 4,
};

struct local_resolver {
        const struct policy *policy;
        const struct subnet *host;
        struct subnet without_self;         /* `host` without SELF, so that the matcher finds only what is certain */
        struct matcher matcher;
        struct report report;
        unsigned *group_needs;
        const struct policy_candidate **decided; /* of the current partition, for each port; NULL: none decides so far */
        struct possible_membership *items;  /* of the current partition; `stride` apart */
        uint32_t stride;
};

static struct possible_membership *item_of(struct local_resolver *r, uint32_t port)
{
        return &r->items[(size_t) port * r->stride];
}

/* --- selectors that cannot be resolved ---------------------------------------------------------------------------- */

static unsigned simple_needs(const struct selector *s)
{
        if (s->kind == SELECTOR_SWITCH)
                return NEEDS_CABLES;
        return s->kind == SELECTOR_SELF ? NEEDS_SELF : NEEDS_NOTHING;
}

/* The parser has refused cycles, so the recursion ends. */
static unsigned group_needs(struct local_resolver *r, uint32_t group)
{
        const struct policy_group *g = &r->policy->groups[group];
        unsigned needs = NEEDS_NOTHING;

        if (r->group_needs[group] != NEEDS_UNKNOWN)
                return r->group_needs[group];
        for (uint32_t i = 0; i < g->n_selectors; i++)
                needs |= g->selectors[i]->kind == SELECTOR_GROUP ? group_needs(r, g->selectors[i]->group)
                                                                 : simple_needs(g->selectors[i]);
        r->group_needs[group] = needs;
        return needs;
}

static bool could_match(struct local_resolver *r, const struct selector *s, uint32_t port)
{
        unsigned needs = s->kind == SELECTOR_GROUP ? group_needs(r, s->group) : simple_needs(s);

        return (needs & NEEDS_CABLES) || ((needs & NEEDS_SELF) && port == r->host->self);
}

/* --- one partition ------------------------------------------------------------------------------------------------ */

static void set_likely(struct local_resolver *r, uint32_t port, enum membership m)
{
        struct possible_membership *item = item_of(r, port);

        item->likely = m;
        item->possible |= MEMBERSHIP_BIT(m);
}

static void report_dispute(struct local_resolver *r, const struct policy_partition *p, const struct policy_rule *rule,
                           uint32_t port)
{
        struct place place = { rule->where, rule->source_line };

        selector_report_ambiguous(&r->report, &place, p->name, rule, &p->rules[r->decided[port]->rule],
                                  subnet_port_label(r->report.findings->arena, r->host, port) ?: "?");
}

/* Applies a line to the ports that it certainly matches. */
static int apply_certain(struct local_resolver *r, const struct policy_partition *p, const struct policy_candidate *c)
{
        const struct policy_rule *rule = &p->rules[c->rule];
        struct port_list list = {};
        int e = matcher_match(&r->matcher, c->selector, &list);

        for (uint32_t i = 0; i < list.n && e == 0; i++) {
                const struct policy_candidate **decided = &r->decided[list.ports[i]];

                if (!*decided) {
                        *decided = c;
                        set_likely(r, list.ports[i], rule->membership);
                } else if ((*decided)->selector->specificity == c->selector->specificity &&
                           p->rules[(*decided)->rule].membership != rule->membership &&
                           !policy_exempts(r->host, list.ports[i], p->base))
                        report_dispute(r, p, rule, list.ports[i]);
        }
        return e;
}

/* Applies a line to the ports that it may match and that no line has decided about. (A line that is as specific as the one that has
 * decided, and gives another membership, cannot match: such a policy is refused.) */
static void apply_possible(struct local_resolver *r, const struct policy_rule *rule, const struct selector *s)
{
        for (uint32_t port = 0; port < r->host->n_ports; port++) {
                struct possible_membership *item = item_of(r, port);

                if (r->decided[port] || !could_match(r, s, port))
                        continue;
                item->possible |= MEMBERSHIP_BIT(rule->membership);
                item->unresolved = rule;
        }
}

/* Applies the candidates that are as specific as number `first`. *ret: the number of the next one. */
static int resolve_level(struct local_resolver *r, const struct policy_partition *p, uint32_t first, uint32_t *ret)
{
        const struct policy_candidate *c = p->candidates;
        enum specificity level = c[first].selector->specificity;
        uint32_t end;
        int e = 0;

        for (end = first; e == 0 && end < p->n_candidates && c[end].selector->specificity == level; end++)
                e = apply_certain(r, p, &c[end]);
        for (uint32_t i = first; e == 0 && i < end; i++)
                apply_possible(r, &p->rules[c[i].rule], c[i].selector);
        *ret = end;
        return e;
}

static enum membership with_full(enum membership m)
{
        return membership_has_full(m) ? m : MEMBERSHIP_FULL;
}

/* SELF and the master SM's port are full members of the default partition, whatever the lines say. */
static void finish_default(struct local_resolver *r, uint32_t port)
{
        struct possible_membership *item = item_of(r, port);
        unsigned possible = 0;

        for (int m = MEMBERSHIP_NONE; m <= MEMBERSHIP_BOTH; m++)
                if (item->possible & MEMBERSHIP_BIT(m))
                        possible |= MEMBERSHIP_BIT(with_full((enum membership) m));
        if (port == r->host->sm) {
                item->possible = possible;
                item->likely = with_full(item->likely);
        } else if (port == r->host->self)
                item->possible |= possible;
}

static int resolve_partition(struct local_resolver *r, uint32_t partition)
{
        const struct policy_partition *p = &r->policy->partitions[partition];
        bool is_default = p->base == P_KEY_DEFAULT_BASE;
        int e = 0;

        memset(r->decided, 0, r->host->n_ports * sizeof(*r->decided));
        for (uint32_t i = 0; i < p->n_candidates && e == 0;)
                e = resolve_level(r, p, i, &i);
        if (e < 0)
                return e;
        for (uint32_t port = 0; port < r->host->n_ports; port++) {
                item_of(r, port)->partition = partition;
                if (!r->decided[port])
                        set_likely(r, port, is_default ? MEMBERSHIP_LIMITED : MEMBERSHIP_NONE);
                if (is_default)
                        finish_default(r, port);
        }
        return 0;
}

/* --- all partitions ----------------------------------------------------------------------------------------------- */

static int prepare(struct local_resolver *r, struct arena *scratch, struct report *silent)
{
        r->without_self = *r->host;
        r->without_self.self = SUBNET_NONE;
        r->decided = arena_new_array(scratch, const struct policy_candidate *, r->host->n_ports);
        r->group_needs = arena_new_array(scratch, unsigned, r->policy->n_groups);
        if (!r->decided || !r->group_needs)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->policy->n_groups; i++)
                r->group_needs[i] = NEEDS_UNKNOWN;
        return matcher_init(&r->matcher, scratch, r->policy, &r->without_self, silent);
}

int policy_resolve_local(struct arena *a, const struct policy *policy, const struct subnet *host,
                         struct findings *findings, struct possibilities *ret)
{
        struct local_resolver r = { .policy = policy, .host = host, .stride = policy->n_partitions };
        _cleanup_arena_ struct arena *scratch = arena_new();
        /* about selectors that match nothing: most mean other hosts */
        _cleanup_findings_ struct findings ignored = { .arena = scratch };
        struct possible_membership *items;
        struct report silent;
        int e;

        if (!scratch)
                return -ENOMEM;
        report_init(&silent, &ignored);
        report_init(&r.report, findings);
        items = arena_new_array(a, struct possible_membership, (size_t) host->n_ports * policy->n_partitions);
        e = items ? prepare(&r, scratch, &silent) : -ENOMEM;
        for (uint32_t i = 0; i < policy->n_partitions && e == 0; i++) {
                r.items = items + i;
                e = resolve_partition(&r, i);
        }
        e = e ?: report_finish(&r.report);
        if (e == 0)
                *ret = (struct possibilities) { policy, items };
        return e;
}
