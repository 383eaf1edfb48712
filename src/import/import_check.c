/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "import/import.h"
#include "policy/policy.h"

/* Returns whether any policy makes the port a full member. */
static bool is_kept_full(const struct subnet *s, uint32_t port, uint16_t base, enum membership got)
{
        return policy_requires_full(s, port, base) && got == MEMBERSHIP_FULL;
}

static void report_difference(struct import *im, const struct import_partition *p, const struct memberships *m, uint32_t port,
                              enum membership wanted, uint32_t others)
{
        enum membership got = memberships_get(m, port, p->source->base);
        bool kept = is_kept_full(im->subnet, port, p->source->base, got), frozen = !kept && got == wanted;
        const char *label = subnet_port_label(im->arena, im->subnet, port);
        struct place place = { .where = p->source->where };

        report_add(&im->report, kept ? FINDING_WARNING : FINDING_ERROR, FINDING_IMPORT_DIFFERENT,
                   place.where.line > 0 ? &place : NULL, "%s: OpenSM gives %s membership %s, this policy %s%s%s", p->name,
                   label ?: "?", membership_to_string(wanted), frozen ? "freezes it" : "gives it ",
                   frozen ? "" : membership_to_string(got), others > 0 ? " (and other ports)" : "");
        if (kept)
                report_hint(&im->report, "without a full member there, no host could reach the subnet administrator");
}

/* pkeyd leaves the table of such a port as it is. */
static bool is_frozen_member(const struct memberships *m, uint32_t port, uint16_t base, enum membership got)
{
        return got != MEMBERSHIP_NONE && m->frozen[port] != FREEZE_NONE && !policy_requires_full(m->subnet, port, base);
}

static int compare_partition(struct import *im, const struct import_partition *p, const struct memberships *m)
{
        uint32_t example = SUBNET_NONE, n = 0;
        uint8_t *levels;
        int r = partitions_conf_apply(im->arena, p->source, im->subnet, im->allow_both_pkeys, &levels);

        if (r < 0)
                return r;
        for (uint32_t port = 0; port < im->subnet->n_ports; port++) {
                enum membership got = memberships_get(m, port, p->source->base);

                if (im->subnet->ports[port].role != PORT_ENDPORT ||
                    (got == (enum membership) levels[port] && !is_frozen_member(m, port, p->source->base, got)))
                        continue;
                if (is_kept_full(im->subnet, port, p->source->base, got))
                        report_difference(im, p, m, port, (enum membership) levels[port], 0);
                else if (n++ == 0)
                        example = port;
        }
        if (n > 0)
                report_difference(im, p, m, example, (enum membership) levels[example], n - 1);
        return 0;
}

/* A switch port has one entry for each partition of the host behind it. */
static uint32_t count_entries(const struct memberships *m, const struct subnet *s, uint32_t port)
{
        uint32_t of = s->ports[port].role == PORT_ENDPORT ? port : s->ports[port].peer, n = 0;

        if (of != port)
                return m->first[of + 1] - m->first[of];
        for (uint32_t i = m->first[of]; i < m->first[of + 1]; i++)
                n += membership_has_limited(m->items[i].membership) + membership_has_full(m->items[i].membership);
        return n;
}

static bool is_too_small(const struct memberships *m, const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        uint16_t capacity = subnet_port_capacity(s, p);

        if (p->role != PORT_ENDPORT && (!subnet_port_can_enforce(s, p) || p->peer == SUBNET_NONE))
                return false;
        return capacity > 0 && count_entries(m, s, port) > capacity;
}

/* If entries do not fit in a table, OpenSM leaves them out, but pkeyd refuses the whole policy. */
static void check_capacity(struct import *im, const struct memberships *m, enum port_role role, const char *hint)
{
        const struct subnet *s = im->subnet;
        uint32_t example = SUBNET_NONE, n = 0;

        for (uint32_t port = 0; port < s->n_ports; port++)
                if (s->ports[port].role == role && is_too_small(m, s, port) && n++ == 0)
                        example = port;
        if (n == 0)
                return;
        report_add(&im->report, FINDING_WARNING, FINDING_PLAN_CAPACITY, NULL,
                   "%s: its P_Key table holds %u entries and would need %u%s: OpenSM leaves out what does not fit, pkeyd will refuse this "
                   "policy", subnet_port_label(im->arena, s, example) ?: "?", subnet_port_capacity(s, &s->ports[example]),
                   count_entries(m, s, example), n > 1 ? " (and other ports)" : "");
        report_hint(&im->report, "%s", hint);
}

/* Errors of the generated policy. Its warnings are left out: the original has had warnings about the same already. */
static void report_errors(struct import *im, const struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++)
                if (findings->items[i].severity == FINDING_ERROR)
                        report_add(&im->report, FINDING_ERROR, FINDING_IMPORT_DIFFERENT, NULL,
                                   "the generated policy cannot be used: line %u: %s", findings->items[i].where.line,
                                   findings->items[i].text);
}

static int compare(struct import *im, const struct policy *policy)
{
        _cleanup_findings_ struct findings findings = { .arena = im->arena };
        struct memberships *m;
        int r = policy_resolve(im->arena, policy, im->subnet, &findings, &m);

        report_errors(im, &findings);
        for (uint32_t i = 0; i < im->n_partitions && r == 0; i++)
                r = compare_partition(im, &im->partitions[i], m);
        if (r < 0)
                return r;
        check_capacity(im, m, PORT_ENDPORT, "remove such ports from partitions that they do not use, before pkeyctl plan");
        check_capacity(im, m, PORT_SWITCH_EXTERNAL,
                       "remove the hosts behind such ports from partitions that they do not use, before pkeyctl plan; or set "
                       "'enforcement_overflow: disable' or 'enforcement: off' in pkeyd.yaml");
        return 0;
}

int import_check(struct import *im, const char *yaml)
{
        _cleanup_findings_ struct findings findings = { .arena = im->arena };
        struct policy *policy;
        int r = policy_parse(im->arena, "partitions.yaml", yaml, strlen(yaml), &findings, &policy);

        report_errors(im, &findings);
        return r < 0 || !im->subnet ? r : compare(im, policy);
}
