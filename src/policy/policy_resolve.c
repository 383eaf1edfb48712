/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "policy/selector_match.h"
#include "util/vector.h"

#define NOBODY UINT32_MAX

/* Two lines that are equally specific and disagree. */
struct dispute {
        uint32_t earlier, later; /* rules */
        const struct selector *selector;
        uint32_t port;           /* an example */
        uint32_t n_ports;
};

/* An item of the result, with the port it is of. */
struct grant {
        uint32_t port;
        struct port_membership membership;
};

struct resolver {
        struct matcher matcher;
        const struct policy *policy;
        const struct subnet *subnet;
        struct report report;
        /* of the partition at hand, for each port: the rule that decided, and how specific it was */
        uint32_t *decided;
        uint8_t *level;
        uint8_t *contested;      /* why it is not certain that this rule decides (enum freeze) */
        uint32_t *lowest;        /* of the rules that disagree the one that gives least; else the one that decided */
        uint8_t *certain;        /* the least that any rule gives, from the one that decided to the first that is not contested */
        uint8_t *settled;        /* 1 + how specific that one is; 0: there is none */
        struct dispute *disputes;
        size_t n_disputes, disputes_allocated;
        /* of all partitions */
        struct grant *grants;
        size_t n_grants, grants_allocated;
        enum freeze *frozen;
};

static void resolver_done(struct resolver *r)
{
        free(r->disputes);
        free(r->grants);
}

/* ---- who decides ---------------------------------------------------------------------------------------------- */

static int add_dispute(struct resolver *r, const struct policy_candidate *c, uint32_t port)
{
        struct dispute *d;

        /* the pair at hand was nearly always the last one found */
        for (size_t i = r->n_disputes; i-- > 0;) {
                d = &r->disputes[i];
                if (d->later == c->rule && d->earlier == r->decided[port]) {
                        d->n_ports++;
                        return 0;
                }
        }
        if (r->n_disputes >= REPORT_MAX)
                return 0;
        if (VECTOR_GROW(NULL, r->disputes, r->n_disputes, r->disputes_allocated) < 0)
                return -ENOMEM;
        r->disputes[r->n_disputes++] = (struct dispute) { r->decided[port], c->rule, c->selector, port, 1 };
        return 0;
}

/* Always a full member of the default partition: the port pkeyd works through, and the master SM's. */
static bool is_exempt(const struct resolver *r, const struct policy_partition *p, uint32_t port)
{
        return p->base == P_KEY_DEFAULT_BASE && (port == r->subnet->self || port == r->subnet->sm);
}

static enum membership membership_of(const struct policy_partition *p, uint32_t rule)
{
        return p->rules[rule].membership;
}

/* Another rule decided already, and this one is as specific. */
static int apply_second(struct resolver *r, const struct policy_partition *p, const struct policy_candidate *c, uint32_t port,
                        enum freeze contested)
{
        if (membership_of(p, r->decided[port]) == membership_of(p, c->rule)) {
                if (contested == FREEZE_NONE && r->contested[port] != FREEZE_LINES)
                        r->contested[port] = FREEZE_NONE; /* this one decides the same for certain */
                return 0;
        }
        r->contested[port] = FREEZE_LINES;
        if (membership_of(p, c->rule) < membership_of(p, r->lowest[port]))
                r->lowest[port] = c->rule;
        return is_exempt(r, p, port) ? 0 : add_dispute(r, c, port);
}

/* Whoever has the name of a contested line may be meant by the next one. */
static void find_certain(struct resolver *r, uint32_t port, const struct policy_candidate *c, enum membership membership,
                         enum freeze contested)
{
        uint8_t level = (uint8_t) (1 + c->selector->specificity);

        if (r->settled[port] != 0 && r->settled[port] != level)
                return;
        r->certain[port] = MIN(r->certain[port], (uint8_t) membership);
        if (contested == FREEZE_NONE)
                r->settled[port] = level;
}

static int apply_candidate(struct resolver *r, const struct policy_partition *p, const struct policy_candidate *c)
{
        struct port_list list = {};
        int e = matcher_match(&r->matcher, c->selector, &list);

        for (uint32_t i = 0; e == 0 && i < list.n; i++) {
                uint32_t port = list.ports[i];

                find_certain(r, port, c, membership_of(p, c->rule), (enum freeze) list.contested[i]);
                if (r->decided[port] == NOBODY) {
                        r->decided[port] = r->lowest[port] = c->rule;
                        r->level[port] = (uint8_t) c->selector->specificity;
                        r->contested[port] = list.contested[i];
                } else if (r->level[port] == c->selector->specificity) {
                        e = apply_second(r, p, c, port, (enum freeze) list.contested[i]);
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
                selector_report_ambiguous(&r->report, &d->selector->place, p->name, &p->rules[d->later],
                                          &p->rules[d->earlier],
                                          report_text(&r->report, "%s%s", port ?: "?", others ?: ""));
                report_hint(&r->report, "remove it from one of the two lines, or add a more specific line that decides");
        }
        r->n_disputes = 0;
}

/* ---- what follows --------------------------------------------------------------------------------------------- */

static int add_grant(struct resolver *r, uint32_t port, uint32_t partition, enum membership membership,
                     const struct policy_rule *rule, enum membership certain)
{
        if (membership == MEMBERSHIP_NONE)
                return 0;
        if (VECTOR_GROW(NULL, r->grants, r->n_grants, r->grants_allocated) < 0)
                return -ENOMEM;
        r->grants[r->n_grants++] = (struct grant) { port, { partition, membership, rule, certain } };
        return 0;
}

/* Every endport is at least a limited member. */
static int grant_default(struct resolver *r, uint32_t port)
{
        enum membership certain = r->settled[port] ? (enum membership) r->certain[port] : MEMBERSHIP_LIMITED;
        const struct policy_partition *p = &r->policy->partitions[0];
        const struct policy_rule *rule = NULL;
        enum membership membership = MEMBERSHIP_LIMITED;

        if (r->decided[port] != NOBODY) {
                rule = &p->rules[r->lowest[port]];
                membership = rule->membership;
        }
        if (is_exempt(r, p, port))
                certain = MEMBERSHIP_FULL;
        if (is_exempt(r, p, port) && (!membership_has_full(membership) || r->contested[port] == FREEZE_LINES)) {
                rule = NULL;
                membership = MEMBERSHIP_FULL;
        }
        return add_grant(r, port, 0, membership, rule, certain);
}

static int grant_partition(struct resolver *r, uint32_t partition)
{
        const struct policy_partition *p = &r->policy->partitions[partition];
        int e = 0;

        for (uint32_t port = 0; port < r->subnet->n_ports && e == 0; port++) {
                if (r->subnet->ports[port].role != PORT_ENDPORT)
                        continue;
                if (p->base == P_KEY_DEFAULT_BASE)
                        e = grant_default(r, port);
                else if (r->decided[port] != NOBODY)
                        e = add_grant(r, port, partition, membership_of(p, r->lowest[port]), &p->rules[r->lowest[port]],
                                      r->settled[port] ? (enum membership) r->certain[port] : MEMBERSHIP_NONE);
        }
        return e;
}

/* Of two reasons in two partitions the one that names lines counts: they can be read. */
static void freeze_contested(struct resolver *r, const struct policy_partition *p)
{
        for (uint32_t port = 0; port < r->subnet->n_ports; port++)
                if (!is_exempt(r, p, port))
                        r->frozen[port] = MAX(r->frozen[port], (enum freeze) r->contested[port]);
}

static int resolve_partition(struct resolver *r, uint32_t partition)
{
        const struct policy_partition *p = &r->policy->partitions[partition];
        int e = 0;

        if (!policy_owns(r->policy, p->base))
                return 0;
        memset(r->decided, 0xff, r->subnet->n_ports * sizeof(*r->decided));
        memset(r->contested, 0, r->subnet->n_ports * sizeof(*r->contested));
        memset(r->certain, MEMBERSHIP_BOTH, r->subnet->n_ports * sizeof(*r->certain));
        memset(r->settled, 0, r->subnet->n_ports * sizeof(*r->settled));
        for (uint32_t i = 0; i < p->n_candidates && e == 0; i++)
                e = apply_candidate(r, p, &p->candidates[i]);
        if (e < 0)
                return e;
        report_disputes(r, p);
        freeze_contested(r, p);
        return grant_partition(r, partition);
}

/* Groups that no line uses are looked at too: what is wrong in them should not wait until one does. */
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

/* Grants came partition by partition; the result is wanted port by port. */
static int sort_grants(struct resolver *r, struct arena *a, struct memberships **ret)
{
        struct memberships *m = arena_new_object(a, struct memberships);
        uint32_t n_ports = r->subnet->n_ports, *next = r->decided;

        if (!m)
                return -ENOMEM;
        m->policy = r->policy;
        m->subnet = r->subnet;
        m->frozen = r->frozen;
        m->first = arena_new_array(a, uint32_t, (size_t) n_ports + 1);
        m->items = arena_new_array(a, struct port_membership, r->n_grants);
        if (!m->first || !m->items)
                return -ENOMEM;
        for (size_t k = 0; k < r->n_grants; k++)
                m->first[r->grants[k].port + 1]++;
        for (uint32_t i = 0; i < n_ports; i++) {
                m->first[i + 1] += m->first[i];
                next[i] = m->first[i];
        }
        for (size_t k = 0; k < r->n_grants; k++)
                m->items[next[r->grants[k].port]++] = r->grants[k].membership;
        *ret = m;
        return 0;
}

static int resolver_init(struct resolver *r, struct arena *a, struct arena *scratch)
{
        size_t n = r->subnet->n_ports;

        r->decided = arena_new_array(scratch, uint32_t, n);
        r->level = arena_new_array(scratch, uint8_t, n);
        r->contested = arena_new_array(scratch, uint8_t, n);
        r->lowest = arena_new_array(scratch, uint32_t, n);
        r->certain = arena_new_array(scratch, uint8_t, n);
        r->settled = arena_new_array(scratch, uint8_t, n);
        r->frozen = arena_new_array(a, enum freeze, n);
        if (!r->decided || !r->level || !r->contested || !r->lowest || !r->certain || !r->settled || !r->frozen)
                return -ENOMEM;
        return matcher_init(&r->matcher, scratch, r->policy, r->subnet, &r->report);
}

int policy_resolve_known(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct known *known,
                         bool in_force, struct findings *findings, struct memberships **ret)
{
        _cleanup_(resolver_done) struct resolver r = { .policy = policy, .subnet = subnet };
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct memberships *memberships;
        int e;

        if (!scratch)
                return -ENOMEM;
        report_init(&r.report, findings);
        e = resolver_init(&r, a, scratch);
        r.matcher.in_force = in_force;
        r.matcher.known = known;
        if (e == 0)
                e = resolve_groups(&r);
        for (uint32_t i = 0; i < policy->n_partitions && e == 0; i++)
                e = resolve_partition(&r, i);
        if (e < 0)
                return e;
        e = report_finish(&r.report);
        findings_sort(findings);
        if (e == -EBADMSG && in_force && !r.report.refuses)
                e = 0;
        if (e == 0)
                e = sort_grants(&r, a, &memberships);
        if (e == 0)
                *ret = memberships;
        return e;
}

int policy_resolve(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                   struct memberships **ret)
{
        return policy_resolve_known(a, policy, subnet, NULL, false, findings, ret);
}

int policy_resolve_in_force(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                            struct memberships **ret)
{
        return policy_resolve_known(a, policy, subnet, NULL, true, findings, ret);
}

int policy_select(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct known *known,
                  const char *text, struct findings *findings, uint32_t **ret_ports, uint32_t *ret_n)
{
        struct selector_source source = { .text = text };
        struct selector_reader reader = { .arena = a, .policy = policy };
        struct selector **selectors;
        struct matcher matcher;
        struct port_list list;
        struct report report;
        uint32_t n;
        int e;

        report_init(&report, findings);
        reader.report = &report;
        e = selector_parse_list(&reader, &source, &selectors, &n);
        if (e == 0)
                e = matcher_init(&matcher, a, policy, subnet, &report);
        if (e == 0) {
                matcher.known = known;
                e = matcher_match_list(&matcher, selectors, n, &list);
        }
        if (e == 0)
                e = report_finish(&report);
        if (e < 0)
                return e;
        *ret_ports = list.ports;
        *ret_n = list.n;
        return 0;
}
