/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "ib/multicast.h"
#include "leases/leases_internal.h"
#include "policy/policy_select.h"
#include "policy/selector.h"
#include "util/text.h"
#include "util/vector.h"

#define MAX_STRANDED 32 /* findings */

/* --- partitions -------------------------------------------------------------------------------------------------------- */

static bool is_in_policy(const struct lease *lease)
{
        return lease_is_in_force(lease) && !lease->is_stranded;
}

/* The policy does not know its P_Key any more, which pkeyd gave to its members. */
static bool is_unmanaged(const struct lease *lease, const struct policy *policy)
{
        return (lease->state == LEASE_RELEASING || lease->is_stranded) && !policy_pool_of_base(policy, lease->base) &&
               policy_find_base(policy, lease->base) < 0;
}

static bool has_own_partition(const struct lease *lease, const struct policy *policy)
{
        return is_in_policy(lease) || is_unmanaged(lease, policy);
}

/* What the members of a line have in common. */
struct line {
        enum membership membership;
        bool index0;
};

static bool has_member(const struct line *line, const struct lease_member *m)
{
        return m->state <= LEASE_MEMBER_EXPECTED && !m->is_leaving && m->membership == line->membership &&
               m->index0 == line->index0;
}

/* One line that names its members by their port GUIDs, which no name of a host can change. */
static int fill_rule(struct arena *a, const struct lease *lease, const struct line *line, struct policy_rule *rule)
{
        struct selector *selectors = arena_new_array(a, struct selector, lease->n_members);

        *rule = (struct policy_rule) {
                .text = arena_strdup(a, lease->id), .source_line = NULL, .where = { .file = "(leases)" },
                .membership = line->membership, .index0 = line->index0,
                .selectors = arena_new_array(a, struct selector *, lease->n_members),
        };
        if (!selectors || !rule->selectors || !rule->text)
                return -ENOMEM;
        for (uint32_t i = 0; i < lease->n_members; i++) {
                const struct lease_member *m = &lease->members[i];

                if (!has_member(line, m))
                        continue;
                selectors[i] = (struct selector) {
                        .kind = SELECTOR_GUID, .specificity = SPECIFICITY_GUID, .guid = m->port, .text = arena_strdup(a, m->name),
                        .place = { .where = rule->where }, .may_match_nothing = true,
                };
                if (!selectors[i].text)
                        return -ENOMEM;
                rule->selectors[rule->n_selectors++] = &selectors[i];
        }
        return 0;
}

/* NULL in *ret: the partition has no IPoIB. */
static int make_ipoib(struct arena *a, const struct lease *lease, const struct ipoib **ret)
{
        const struct lease_qos *q = &lease->qos;
        struct ipoib *ipoib;

        *ret = NULL;
        if (!lease->ip_over_ib)
                return 0;
        ipoib = arena_new_object(a, struct ipoib);
        if (!ipoib)
                return -ENOMEM;
        ipoib->broadcast = multicast_ipoib_default();
        if (q->mtu > 0) {
                ipoib->broadcast.mtu = multicast_mtu_code(q->mtu * 1024ul);
                ipoib->broadcast.rate = multicast_rate_code_of_tenths(q->rate);
                ipoib->broadcast.sl = q->service_level;
        }
        *ret = ipoib;
        return 0;
}

static int fill_partition(struct arena *a, const struct lease *lease, struct policy_partition *p)
{
        static const struct line lines[] = {
                { MEMBERSHIP_FULL }, { MEMBERSHIP_LIMITED }, { MEMBERSHIP_FULL, true }, { MEMBERSHIP_LIMITED, true },
        };

        *p = (struct policy_partition) {
                .name = arena_printf(a, "lease-0x%04x", lease->base), .where = { .file = "(leases)" }, .base = lease->base,
                .lease = arena_strdup(a, lease->id),
                .rules = arena_new_array(a, struct policy_rule, ELEMENTS(lines)),
                .candidates = arena_new_array(a, struct policy_candidate, lease->n_members),
        };
        if (!p->name || !p->lease || !p->rules || !p->candidates || make_ipoib(a, lease, &p->ipoib) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(lines) && is_in_policy(lease); i++) {
                struct policy_rule *rule = &p->rules[p->n_rules];

                if (fill_rule(a, lease, &lines[i], rule) < 0)
                        return -ENOMEM;
                for (uint32_t k = 0; k < rule->n_selectors; k++)
                        p->candidates[p->n_candidates++] = (struct policy_candidate) { rule->selectors[k], p->n_rules };
                p->n_rules += rule->n_selectors > 0;
        }
        return 0;
}

int leases_extend(struct arena *a, const struct leases *l, const struct policy *policy, const struct policy **ret)
{
        struct policy *p;

        *ret = policy;
        if (l->n == 0)
                return 0;
        p = arena_copy(a, policy, 1);
        if (!p)
                return -ENOMEM;
        p->partitions = arena_new_array(a, struct policy_partition, policy->n_partitions + l->n);
        if (!p->partitions)
                return -ENOMEM;
        memcpy(p->partitions, policy->partitions, policy->n_partitions * sizeof(*p->partitions));
        for (size_t i = 0; i < l->n; i++)
                if (has_own_partition(l->items[i], policy) && fill_partition(a, l->items[i], &p->partitions[p->n_partitions++]) < 0)
                        return -ENOMEM;
        if (p->n_partitions > policy->n_partitions)
                *ret = p;
        return 0;
}

static bool is_changed(const struct lease *lease)
{
        return lease->progress < LEASE_PLANNED && lease->state != LEASE_ENDED;
}

int leases_list_changes(struct arena *a, const struct leases *l, struct lease_change **ret, size_t *ret_n)
{
        size_t allocated = 0;

        *ret = NULL;
        *ret_n = 0;
        for (size_t i = 0; i < l->n; i++) {
                const struct lease *lease = l->items[i];

                for (uint32_t k = 0; is_changed(lease) && k < lease->n_members; k++) {
                        const struct lease_member *m = &lease->members[k];
                        bool gives = is_in_policy(lease) && lease_member_is_in_force(m);

                        if (lease_member_is_unseen(m) || (lease->is_open && is_in_policy(lease) && !m->is_changed))
                                continue;
                        if (VECTOR_ADD(a, *ret, *ret_n, allocated, (struct lease_change) {
                                    .port = m->port, .base = lease->base, .membership = gives ? m->membership : MEMBERSHIP_NONE,
                                    .index0 = gives && m->index0 }) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

/* --- a candidate of the policy ------------------------------------------------------------------------------------------- */

/* The ports that the pool of the lease has, contested ones, too; none without such a pool. */
static int list_ports(const struct lease *lease, const struct lease_view *view, struct port_list *ret)
{
        const struct policy_pool *pool = view->policy ? policy_find_pool(view->policy, lease->wish.pool) : NULL;

        *ret = (struct port_list) {};
        if (!pool)
                return 0;
        return view->selection ? policy_selection_pool(view->selection, pool, ret) : -ENOMEM;
}

/* The first member that is in the fabric, and of which the policy took the port from the pool; NULL: there is none. What is in
 * neither list has lost its name, which is no change of the policy. */
static const struct lease_member *find_outside(const struct lease *lease, const struct subnet *s, const struct port_list *before,
                                               const struct port_list *ports)
{
        for (uint32_t i = 0; i < lease->n_members; i++) {
                uint32_t port = subnet_find_endport(s, lease->members[i].port);

                if (port != SUBNET_NONE && lease_member_is_in_force(&lease->members[i]) && port_list_holds(before, port) &&
                    !port_list_holds(ports, port))
                        return &lease->members[i];
        }
        return NULL;
}

/* Why the candidate, which is the policy of the view, has no place for the lease; *ret NULL: it has. */
static int describe_stranded(struct arena *a, const struct lease *lease, const struct lease_view *view,
                             const struct lease_view *in_force, const char **ret)
{
        const struct policy_pool *pool = policy_find_pool(view->policy, lease->wish.pool);
        const struct lease_member *outside;
        struct port_list before, ports;
        int r;

        *ret = NULL;
        if (!pool)
                *ret = arena_printf(a, "there is no pool '%s'", lease->wish.pool) ?: "?";
        else if (policy_pool_of_base(view->policy, lease->base) != pool)
                *ret = arena_printf(a, "pool %s does not have P_Key 0x%04x", pool->name, lease->base) ?: "?";
        if (*ret || !view->subnet)
                return 0;
        r = list_ports(lease, in_force, &before) ?: list_ports(lease, view, &ports);
        if (r < 0)
                return r;
        outside = find_outside(lease, view->subnet, &before, &ports);
        if (outside)
                *ret = arena_printf(a, "%s is not among the ports of pool %s", outside->name, pool->name) ?: "?";
        return 0;
}

static void report_stranded(const struct lease *lease, const char *why, bool release, struct findings *findings)
{
        struct finding *item = findings_add(findings, release ? FINDING_WARNING : FINDING_ERROR, FINDING_LEASE_STRANDED, NULL,
                                            release ? "lease %s is released: %s" : "the policy leaves no pool, P_Key or port for lease %s: %s",
                                            lease->id, why);

        if (!release)
                finding_set_hint(findings, item, "release it first (pkeyctl lease release %s), or reload with --release-stranded", lease->id);
}

int leases_check(struct leases *l, const struct lease_view *view, const struct lease_view *in_force, bool release,
                 struct findings *findings)
{
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                struct lease *lease = l->items[i];
                const char *why = NULL;

                lease->is_stranded = false;
                if (is_in_policy(lease))
                        r = describe_stranded(findings->arena, lease, view, in_force, &why);
                lease->is_stranded = r == 0 && why;
                if (why && n++ < MAX_STRANDED)
                        report_stranded(lease, why, release, findings);
        }
        if (r == 0 && n > MAX_STRANDED)
                (void) findings_add(findings, release ? FINDING_WARNING : FINDING_ERROR, FINDING_LEASE_STRANDED, NULL,
                                    "%zu more leases like this, %zu in total", n - MAX_STRANDED, n);
        return r < 0 ? r : n > 0 && !release ? -EBADMSG : 0;
}

void leases_release_stranded(struct leases *l, usec_t now, struct log *log)
{
        for (size_t i = 0; i < l->n; i++) {
                struct lease *lease = l->items[i];

                if (!lease->is_stranded)
                        continue;
                lease->is_stranded = false;
                log_add(log, LOG_EVENT_LEASE_RELEASED, NULL, "lease %s is released: the policy in force leaves no pool, P_Key or port for it; P_Key 0x%04x is "
                        "revoked", lease->id, lease->base);
                lease_begin_release(l, lease, now, "the policy leaves no pool, P_Key or port for it");
                lease->progress = LEASE_PLANNED; /* the plan that is being made is without it */
        }
}

void leases_keep_stranded(struct leases *l)
{
        for (size_t i = 0; i < l->n; i++)
                l->items[i]->is_stranded = false;
}
