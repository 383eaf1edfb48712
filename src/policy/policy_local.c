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
        struct report report;
        unsigned *group_needs;
        const struct policy_lines *lines;   /* of the current partition, for each port, without SELF */
        struct possible_membership *items;  /* of the current partition; `stride` apart */
        uint32_t stride;
};

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

/* Adds what lines may give that cannot be resolved, and are more specific than the one that decides. (One that is as specific, and
 * gives another membership, cannot match: such a policy is refused.) */
static void add_possible(struct local_resolver *r, const struct policy_partition *p, uint32_t port,
                         struct possible_membership *item)
{
        const struct policy_lines *lines = &r->lines[port];

        for (uint32_t i = 0; i < p->n_candidates; i++) {
                const struct policy_candidate *c = &p->candidates[i];

                if (lines->decides && c->selector->specificity <= lines->level)
                        return;
                if (!could_match(r, c->selector, port))
                        continue;
                item->possible |= MEMBERSHIP_BIT(p->rules[c->rule].membership);
                item->unresolved = &p->rules[c->rule];
        }
}

static void report_dispute(struct local_resolver *r, const struct policy_partition *p, uint32_t port)
{
        const struct policy_rule *rule = r->lines[port].disputes;
        struct place place = { rule->where, rule->source_line };

        selector_report_ambiguous(&r->report, &place, p->name, rule, r->lines[port].decides,
                                  subnet_port_label(r->report.findings->arena, r->host, port) ?: "?");
}

static enum membership with_full(enum membership m)
{
        return membership_has_full(m) ? m : MEMBERSHIP_FULL;
}

/* SELF and the master SM's port are full members of the default partition, whatever the lines say. */
static void finish_default(const struct local_resolver *r, uint32_t port, struct possible_membership *item)
{
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

static void resolve_partition(struct local_resolver *r, uint32_t partition)
{
        const struct policy_partition *p = &r->policy->partitions[partition];
        bool is_default = p->base == P_KEY_DEFAULT_BASE;

        for (uint32_t port = 0; port < r->host->n_ports; port++) {
                struct possible_membership *item = &r->items[(size_t) port * r->stride];
                const struct policy_rule *rule = r->lines[port].decides;
                bool disputed = r->lines[port].disputes && !policy_requires_full(r->host, port, p->base);

                item->partition = partition;
                item->likely = rule ? rule->membership : is_default ? MEMBERSHIP_LIMITED : MEMBERSHIP_NONE;
                if (!disputed)
                        item->possible = MEMBERSHIP_BIT(item->likely);
                add_possible(r, p, port, item);
                if (disputed && item->unresolved) /* without a line that decides, the policy would be refused */
                        item->likely = item->unresolved->membership;
                else if (disputed)
                        report_dispute(r, p, port);
                if (is_default)
                        finish_default(r, port, item);
        }
}

/* --- all partitions ----------------------------------------------------------------------------------------------- */

/* The lines that certainly match: without SELF. */
static int find_lines(struct arena *a, const struct local_resolver *r, struct policy_lines **ret)
{
        struct subnet without_self = *r->host;
        uint32_t *ports = arena_new_array(a, uint32_t, r->host->n_ports);

        without_self.self = SUBNET_NONE;
        for (uint32_t i = 0; ports && i < r->host->n_ports; i++)
                ports[i] = i;
        return ports ? policy_find_lines(a, r->policy, &without_self, NULL, ports, r->host->n_ports, ret) : -ENOMEM;
}

int policy_resolve_local(struct arena *a, const struct policy *policy, const struct subnet *host,
                         struct findings *findings, struct possibilities *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct local_resolver r = {
                .policy = policy, .host = host, .stride = policy->n_partitions,
                .group_needs = arena_new_array(scratch, unsigned, policy->n_groups),
        };
        struct possible_membership *items = arena_new_array(a, struct possible_membership,
                                                            (size_t) host->n_ports * policy->n_partitions);
        struct policy_lines *lines;
        int e = items && r.group_needs ? find_lines(scratch, &r, &lines) : -ENOMEM;

        if (e < 0)
                return e;
        report_init(&r.report, findings);
        for (uint32_t i = 0; i < policy->n_groups; i++)
                r.group_needs[i] = NEEDS_UNKNOWN;
        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                r.lines = lines + (size_t) i * host->n_ports;
                r.items = items + i;
                resolve_partition(&r, i);
        }
        e = report_finish(&r.report);
        if (e == 0)
                *ret = (struct possibilities) { policy, items };
        return e;
}
