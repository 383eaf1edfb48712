/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "policy/policy_select.h"
#include "util/vector.h"

/* Two lines that are equally specific and disagree. */
struct dispute {
        const struct policy_rule *earlier, *later;
        const struct selector *selector; /* of the later line */
        uint32_t port;                   /* an example */
        uint32_t n_ports;
};

/* What the lines of the current partition give a port. */
struct decision {
        const struct policy_rule *rule;   /* the one that decides; NULL: none */
        const struct policy_rule *lowest; /* `rule`, or the one that gives least if several disagree */
        enum specificity level;           /* of `rule` */
        enum freeze contested;            /* why it is not certain that `rule` decides */
        enum membership certain;          /* the least that any rule gives, from `rule` to the first that is not contested */
        unsigned settled;                 /* 1 + how specific that one is; 0: there is none */
};

/* An item of the result, with its port. */
struct grant {
        uint32_t port;
        struct port_membership membership;
};

struct resolver {
        struct matcher matcher;
        const struct policy *policy;
        const struct subnet *subnet;
        struct report report;
        struct arena *scratch;      /* borrows */
        struct decision *decisions; /* of each port, in the current partition */
        uint32_t *decided;          /* the ports that a line of the current partition matches */
        uint32_t n_decided;
        struct dispute *disputes;   /* of the current partition */
        size_t n_disputes, disputes_allocated;
        struct grant *grants;       /* of all partitions so far */
        size_t n_grants, grants_allocated;
        enum freeze *frozen;        /* of each port */
};

/* ---- the line that decides ------------------------------------------------------------------------------------ */

static int add_dispute(struct resolver *r, const struct policy_rule *later, const struct selector *selector, uint32_t port)
{
        const struct policy_rule *earlier = r->decisions[port].rule;

        /* most ports have the same dispute as the one before them */
        for (size_t i = r->n_disputes; i-- > 0;) {
                struct dispute *d = &r->disputes[i];

                if (d->later == later && d->earlier == earlier) {
                        d->n_ports++;
                        return 0;
                }
        }
        if (r->n_disputes >= REPORT_MAX)
                return 0;
        return VECTOR_ADD(r->scratch, r->disputes, r->n_disputes, r->disputes_allocated,
                          (struct dispute) { earlier, later, selector, port, 1 });
}

/* Applies another rule that is as specific as the one that decides. */
static int apply_equally_specific(struct resolver *r, const struct policy_partition *p, const struct policy_candidate *c,
                                  uint32_t port, enum freeze contested)
{
        const struct policy_rule *rule = &p->rules[c->rule];
        struct decision *d = &r->decisions[port];

        if (rule->membership == d->rule->membership) {
                if (contested == FREEZE_NONE && d->contested != FREEZE_LINES)
                        d->contested = FREEZE_NONE; /* this one certainly decides the same */
                return 0;
        }
        d->contested = FREEZE_LINES;
        if (rule->membership < d->lowest->membership)
                d->lowest = rule;
        return policy_requires_full(r->subnet, port, p->base) ? 0 : add_dispute(r, rule, c->selector, port);
}

/* Lowers what is certain to what this rule gives, unless a more specific rule certainly decides. It is not certain that a contested
 * rule selects the port; if it does not, the next rule decides. */
static void lower_certain(struct decision *d, enum specificity level, enum membership membership, enum freeze contested)
{
        if (d->settled != 0 && d->settled != 1u + level)
                return;
        d->certain = MIN(d->certain, membership);
        if (contested == FREEZE_NONE)
                d->settled = 1u + level;
}

static int apply_candidate(struct resolver *r, const struct policy_partition *p, const struct policy_candidate *c)
{
        const struct policy_rule *rule = &p->rules[c->rule];
        enum specificity level = c->selector->specificity;
        struct port_list list = {};
        int e = matcher_match(&r->matcher, c->selector, &list);

        for (uint32_t i = 0; e == 0 && i < list.n; i++) {
                struct decision *d = &r->decisions[list.ports[i]];
                enum freeze contested = (enum freeze) list.contested[i];

                lower_certain(d, level, rule->membership, contested);
                if (!d->rule) {
                        d->rule = d->lowest = rule;
                        d->level = level;
                        d->contested = contested;
                        r->decided[r->n_decided++] = list.ports[i];
                } else if (d->level == level) {
                        e = apply_equally_specific(r, p, c, list.ports[i], contested);
                }
        }
        return e;
}

static void report_disputes(struct resolver *r, const struct policy_partition *p)
{
        struct arena *a = r->report.findings->arena;

        for (size_t i = 0; i < r->n_disputes; i++) {
                const struct dispute *d = &r->disputes[i];
                const char *port = subnet_port_label(a, r->subnet, d->port), *others = "";

                if (d->n_ports > 1)
                        others = arena_printf(a, " (and %u other port%s)", d->n_ports - 1, d->n_ports > 2 ? "s" : "");
                selector_report_ambiguous(&r->report, &d->selector->place, p->name, d->later, d->earlier,
                                          report_text(&r->report, "%s%s", port ?: "?", others ?: ""));
        }
        r->n_disputes = 0;
}

/* ---- memberships ---------------------------------------------------------------------------------------------- */

static int add_grant(struct resolver *r, uint32_t port, uint32_t partition, enum membership membership,
                     const struct policy_rule *rule, enum membership certain)
{
        if (membership == MEMBERSHIP_NONE)
                return 0;
        return VECTOR_ADD(r->scratch, r->grants, r->n_grants, r->grants_allocated,
                          (struct grant) { port, { partition, membership, rule, certain } });
}

/* Every endport is at least a limited member. */
static int grant_default(struct resolver *r, const struct policy_partition *p, uint32_t port)
{
        const struct decision *d = &r->decisions[port];
        enum membership membership = d->rule ? d->lowest->membership : MEMBERSHIP_LIMITED;
        enum membership certain = d->settled ? d->certain : MEMBERSHIP_LIMITED;
        const struct policy_rule *rule = d->lowest;

        if (policy_requires_full(r->subnet, port, p->base)) {
                certain = MEMBERSHIP_FULL;
                if (!membership_has_full(membership) || d->contested == FREEZE_LINES) {
                        rule = NULL;
                        membership = MEMBERSHIP_FULL;
                }
        }
        return add_grant(r, port, 0, membership, rule, certain);
}

static int grant_default_partition(struct resolver *r, const struct policy_partition *p)
{
        int e = 0;

        for (uint32_t port = 0; port < r->subnet->n_ports && e == 0; port++)
                if (r->subnet->ports[port].role == PORT_ENDPORT)
                        e = grant_default(r, p, port);
        return e;
}

static int grant_partition(struct resolver *r, uint32_t partition)
{
        int e = 0;

        for (uint32_t i = 0; i < r->n_decided && e == 0; i++) {
                const struct decision *d = &r->decisions[r->decided[i]];

                e = add_grant(r, r->decided[i], partition, d->lowest->membership, d->lowest,
                              d->settled ? d->certain : MEMBERSHIP_NONE);
        }
        return e;
}

/* If a port is contested for two reasons in two partitions, lines that disagree come first: an admin can read them. */
static void freeze_contested(struct resolver *r, const struct policy_partition *p)
{
        for (uint32_t i = 0; i < r->n_decided; i++) {
                uint32_t port = r->decided[i];

                if (!policy_requires_full(r->subnet, port, p->base))
                        r->frozen[port] = MAX(r->frozen[port], r->decisions[port].contested);
        }
}

static void reset_decisions(struct resolver *r)
{
        while (r->n_decided > 0)
                r->decisions[r->decided[--r->n_decided]] = (struct decision) { .certain = MEMBERSHIP_BOTH };
}

/* Takes time for the ports that the lines match, not for all ports: there may be thousands of partitions. */
static int resolve_partition(struct resolver *r, uint32_t partition)
{
        const struct policy_partition *p = &r->policy->partitions[partition];
        int e = 0;

        if (!policy_owns(r->policy, p->base))
                return 0;
        for (uint32_t i = 0; i < p->n_candidates && e == 0; i++)
                e = apply_candidate(r, p, &p->candidates[i]);
        if (e < 0)
                return e;
        report_disputes(r, p);
        freeze_contested(r, p);
        e = p->base == P_KEY_DEFAULT_BASE ? grant_default_partition(r, p) : grant_partition(r, partition);
        reset_decisions(r);
        return e;
}

/* Matches groups that no line uses, too, so that their findings appear before a line uses them. */
static int resolve_groups(struct resolver *r)
{
        int e = 0;

        for (uint32_t i = 0; i < r->policy->n_groups && e == 0; i++) {
                struct selector s = { .kind = SELECTOR_GROUP, .group = i };
                struct port_list list;

                e = matcher_match(&r->matcher, &s, &list);
        }
        return e;
}

/* The same for the ports of pools. */
static int resolve_pools(struct resolver *r)
{
        struct port_list list;
        int e = 0;

        for (uint32_t i = 0; i < r->policy->n_pools && e == 0; i++)
                e = matcher_match_list(&r->matcher, r->policy->pools[i].ports, r->policy->pools[i].n_ports, &list);
        return e;
}

/* Sorts the grants, which are ordered by partition, by port. */
static int sort_grants(const struct resolver *r, struct arena *a, struct memberships **ret)
{
        struct memberships *m = arena_new_object(a, struct memberships);
        uint32_t n_ports = r->subnet->n_ports;

        if (!m)
                return -ENOMEM;
        *m = (struct memberships) {
                .policy = r->policy, .subnet = r->subnet, .frozen = r->frozen,
                .first = arena_new_array(a, uint32_t, (size_t) n_ports + 1),
                .items = arena_new_array(a, struct port_membership, r->n_grants),
        };
        if (!m->first || !m->items)
                return -ENOMEM;
        for (size_t k = 0; k < r->n_grants; k++)
                m->first[r->grants[k].port]++;
        for (uint32_t i = 0; i < n_ports; i++)
                m->first[i + 1] += m->first[i];
        /* each port's items end at first[port], and are filled in from there */
        for (size_t k = r->n_grants; k-- > 0;)
                m->items[--m->first[r->grants[k].port]] = r->grants[k].membership;
        *ret = m;
        return 0;
}

static int resolver_init(struct resolver *r, struct arena *a, const struct policy_memory *memory)
{
        uint32_t n = r->subnet->n_ports;

        r->decisions = arena_new_array(r->scratch, struct decision, n);
        r->decided = arena_new_array(r->scratch, uint32_t, n);
        r->frozen = arena_new_array(a, enum freeze, n);
        if (!r->decisions || !r->decided || !r->frozen)
                return -ENOMEM;
        for (uint32_t port = 0; port < n; port++)
                r->decisions[port].certain = MEMBERSHIP_BOTH;
        return matcher_init_by_pins(&r->matcher, r->scratch, r->policy, r->subnet, memory, &r->report);
}

/* Returns whether an error is not only about single ports. */
static bool refuses_in_force(const struct report *r)
{
        for (enum finding_code code = 0; code < FINDING_CODE_MAX; code++)
                if (r->has_error[code] && !freeze_is_of_ports(code))
                        return true;
        return false;
}

int policy_resolve_with_memory(struct arena *a, const struct policy *policy, const struct subnet *subnet,
                               const struct policy_memory *memory, bool in_force, struct findings *findings,
                               struct memberships **ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct resolver r = { .policy = policy, .subnet = subnet, .scratch = scratch };
        int e;

        if (!scratch)
                return -ENOMEM;
        report_init(&r.report, findings);
        e = resolver_init(&r, a, memory);
        r.matcher.in_force = in_force;
        e = e ?: resolve_groups(&r) ?: resolve_pools(&r);
        for (uint32_t i = 0; i < policy->n_partitions && e == 0; i++)
                e = resolve_partition(&r, i);
        if (e < 0)
                return e;
        e = report_finish(&r.report);
        findings_sort(findings);
        if (e == -EBADMSG && in_force && !refuses_in_force(&r.report))
                e = 0;
        return e ?: sort_grants(&r, a, ret);
}

int policy_resolve(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                   struct memberships **ret)
{
        return policy_resolve_with_memory(a, policy, subnet, &(struct policy_memory) {}, false, findings, ret);
}

static int find_lines(struct matcher *m, const struct policy_partition *p, const uint32_t *ports, uint32_t n,
                      struct policy_lines *ret)
{
        int e = 0;

        for (uint32_t i = 0; i < p->n_candidates && e == 0; i++) {
                const struct policy_candidate *c = &p->candidates[i];
                const struct policy_rule *rule = &p->rules[c->rule];
                struct port_list list = {};

                e = matcher_match(m, c->selector, &list);
                for (uint32_t k = 0; k < n && e == 0; k++) {
                        if (!port_list_holds(&list, ports[k]))
                                continue;
                        if (!ret[k].decides) {
                                ret[k].decides = rule;
                                ret[k].level = c->selector->specificity;
                        } else if (c->selector->specificity != ret[k].level) {
                                if (rule != ret[k].decides)
                                        ret[k].overridden = ret[k].overridden ?: rule;
                        } else if (rule->membership != ret[k].decides->membership) {
                                ret[k].disputes = ret[k].disputes ?: rule;
                        }
                }
        }
        return e;
}

int policy_find_lines(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct pins *pins,
                      const uint32_t *ports, uint32_t n, struct policy_lines **ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        _cleanup_findings_ struct findings unused = { .arena = scratch };
        const struct policy_memory memory = { .pins = pins };
        struct matcher matcher;
        struct report report;
        int e;

        report_init(&report, &unused);
        *ret = arena_new_array(a, struct policy_lines, (size_t) policy->n_partitions * n);
        e = *ret ? matcher_init_by_pins(&matcher, scratch, policy, subnet, &memory, &report) : -ENOMEM;
        for (uint32_t i = 0; i < policy->n_partitions && e == 0; i++)
                e = find_lines(&matcher, &policy->partitions[i], ports, n, *ret + (size_t) i * n);
        return e;
}
