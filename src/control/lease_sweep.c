/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/lease_sweep.h"

#include <errno.h>
#include <string.h>

#include "conditions/freezer.h"
#include "desired/desired.h"
#include "verify/verify.h"

/* --- from one sweep to the next ------------------------------------------------------------------------------------- */

/* Only a decision by the generation in force that this host carries out itself, and only with pools: it costs time and memory. */
static bool may_keep_policy(const struct control *c)
{
        const struct sweep *s = &c->sweep;
        const struct generation *g = s->generation;
        bool is_carried_out = s->result == SWEEP_DONE || (s->result == SWEEP_PARTIAL && s->kind != SWEEP_LEASE);

        return control_serves(c) && s->ended && is_carried_out && g && g == c->in_force && !c->candidate && c->snapshot &&
               g->policy->n_pools > 0 && control_writes(c, g) && g->settings->writer == WRITER_DIRECT &&
               !settings_opensm_file(g->settings) && knowledge_is_counted(c->knowledge);
}

void lease_sweep_keep(struct control *c)
{
        struct kept_policy *kept = &c->kept_policy;

        if (!may_keep_policy(c)) {
                control_drop_kept_policy(c);
                return;
        }
        kept->generation = c->in_force->number;
        kept->snapshot = c->snapshot;
        if (c->sweep.kind == SWEEP_LEASE)
                return; /* it changed what is kept */
        kept->arena = arena_new();
        if (!kept->arena || knowledge_keep_policy(c->knowledge, kept->arena) < 0)
                control_drop_kept_policy(c);
}

bool lease_sweep_is_possible(const struct control *c)
{
        const struct kept_policy *kept = &c->kept_policy;

        return kept->arena && kept->snapshot == c->snapshot && c->in_force && !c->candidate &&
               kept->generation == c->in_force->number && knowledge_is_counted(c->knowledge) &&
               arena_size(kept->arena) < KEPT_POLICY_MAX;
}

/* --- which ports ------------------------------------------------------------------------------------------------------ */

static bool is_of_this_host(const struct control *c, struct guid port)
{
        for (size_t i = 0; i < c->n_host_guids; i++)
                if (c->host_guids[i].v == port.v)
                        return true;
        return port.v == c->port_guid.v;
}

/* What the port holds, and what the policy gives it, is known for certain. */
static bool is_certain(const struct control *c, uint32_t port)
{
        const struct subnet *s = c->snapshot->subnet;
        const struct subnet_port *p = &s->ports[port];
        const struct observed_table *t = &c->snapshot->observed->tables[port];
        const struct knowledge_record *r = knowledge_get(c->knowledge, knowledge_find_port(c->knowledge, s, port));

        if (freezer_find(c->freezer, s->nodes[p->node].guid, p->number))
                return false; /* only a decision about the whole fabric shows that it is no longer frozen */
        return r && r->policy && !r->policy->most && !r->policy->most_is_held && t->source == TABLE_READ &&
               !t->enforcement_doubted && !c->snapshot->failed[port] && !subnet_port_is_incomplete(s, p) &&
               !subnet_port_is_behind_unknown(s, p);
}

/* Adds the port of a change, and its leaf port if that has a table. */
static int add_ports(const struct control *c, const struct lease_change *change, uint32_t *ports, uint32_t *n)
{
        const struct subnet *s = c->snapshot->subnet;
        uint32_t port = subnet_find_endport(s, change->port), leaf;

        if (port == SUBNET_NONE || !is_certain(c, port) || is_of_this_host(c, change->port))
                return -EAGAIN;
        ports[(*n)++] = port;
        leaf = subnet_leaf_port(s, port);
        if (leaf == SUBNET_NONE || !subnet_port_is_managed(s, &s->ports[leaf]))
                return 0;
        if (!is_certain(c, leaf))
                return -EAGAIN;
        ports[(*n)++] = leaf;
        return 0;
}

static uint32_t drop_doubles(uint32_t *ports, uint32_t n)
{
        uint32_t kept = 0;

        SORT(ports, n, uint32_compare);
        for (uint32_t i = 0; i < n; i++)
                if (i == 0 || ports[i] != ports[i - 1])
                        ports[kept++] = ports[i];
        return kept;
}

/* The part shares the entries of the tables with the snapshot. */
static int make_part(struct control *c, const struct lease_change *changes, size_t n)
{
        struct lease_part *part = &c->sweep.part;
        struct arena *a = c->sweep.arena;
        int r = 0;

        *part = (struct lease_part) {
                .ports = arena_new_array(a, uint32_t, 2 * n), .observed = arena_new_object(a, struct observed),
        };
        if (!part->ports || !part->observed)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_ports(c, &changes[i], part->ports, &part->n);
        if (r < 0)
                return r;
        part->n = drop_doubles(part->ports, part->n);
        r = subnet_part(a, c->snapshot->subnet, part->ports, part->n, &part->subnet);
        *part->observed = (struct observed) {
                .subnet = part->subnet, .tables = arena_new_array(a, struct observed_table, part->n),
        };
        if (r < 0 || !part->observed->tables)
                return -ENOMEM;
        for (uint32_t i = 0; i < part->n; i++)
                part->observed->tables[i] = c->snapshot->observed->tables[part->ports[i]];
        return 0;
}

/* --- what they should hold --------------------------------------------------------------------------------------------- */

/* Which lease has index 0 of the port then; 0: none. Another lease may have taken it in an earlier change. */
static uint16_t change_index0(const struct lease_change *change, uint16_t index0_base)
{
        if (change->index0)
                return change->base;
        return index0_base == change->base ? 0 : index0_base;
}

/* The entries that the port had, without those of the base, and with what the lease gives. */
static int change_wanted(struct arena *a, const struct lease_change *change, struct desired_port *port)
{
        struct p_key *wanted = arena_new_array(a, struct p_key, port->n_wanted + 2);
        uint32_t n = 0;

        if (!wanted)
                return -ENOMEM;
        for (uint32_t i = 0; i < port->n_wanted; i++)
                if (p_key_base(port->wanted[i]) != change->base)
                        wanted[n++] = port->wanted[i];
        n += p_keys_of_membership(change->base, change->membership, wanted + n);
        *port = (struct desired_port) {
                .wanted = wanted, .n_wanted = p_keys_sort(wanted, n), .index0_base = change_index0(change, port->index0_base),
        };
        return 0;
}

/* What the part should hold; the kept policy has not changed yet. */
static int compute_desired(struct control *c, const struct lease_change *changes, size_t n, struct desired **ret)
{
        const struct lease_part *part = &c->sweep.part;
        const struct policy *policy = c->in_force->policy;
        struct arena *a = c->kept_policy.arena;
        struct desired *d = arena_new_object(c->sweep.arena, struct desired);
        struct desired_port *ports = arena_new_array(a, struct desired_port, part->n);
        int r = d && ports ? 0 : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < part->n; i++)
                ports[i] = *knowledge_get(c->knowledge, knowledge_find_port(c->knowledge, part->subnet, i))->policy;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = change_wanted(a, &changes[i], &ports[subnet_find_endport(part->subnet, changes[i].port)]);
        for (uint32_t i = 0; r == 0 && i < part->n; i++)
                if (part->subnet->ports[i].role == PORT_SWITCH_EXTERNAL)
                        r = desired_of_leaf(a, &ports[part->subnet->ports[i].peer], &ports[i]);
        if (r < 0)
                return r;
        *d = (struct desired) {
                .policy = policy, .subnet = part->subnet, .ports = ports,
                .index0_base = policy->partitions[policy_index0_partition(policy)].base,
        };
        *ret = d;
        return 0;
}

/* --- the decision -------------------------------------------------------------------------------------------------------- */

static int make_plan(struct control *c, struct desired *desired)
{
        _cleanup_findings_ struct findings findings = { .arena = c->sweep.arena };
        struct sweep *s = &c->sweep;
        int r;

        plan_options_from_settings(c->in_force->settings, &s->options);
        s->options.known = &c->known;
        s->options.layout = c->in_force->layout;
        s->options.in_force = true;
        r = plan_compute(s->arena, desired, s->part.observed, c->indexes, &s->options, &findings, &s->decision.plan);
        if (r == -ENOMEM)
                return r;
        return r < 0 || findings.n_errors > 0 || plan_has_frozen_ports(s->decision.plan) ? -EAGAIN : 0;
}

/* From here on this is what the policy gives the ports. */
static void take_desired(struct control *c, const struct desired *desired)
{
        for (uint32_t i = 0; i < desired->subnet->n_ports; i++)
                knowledge_change_policy(c->knowledge, knowledge_find_port(c->knowledge, desired->subnet, i), &desired->ports[i]);
}

int lease_sweep_decide(struct control *c)
{
        struct lease_change *changes = NULL;
        struct sweep *s = &c->sweep;
        struct desired *desired = NULL;
        size_t n = 0;
        int r = lease_sweep_is_possible(c) ? leases_list_changes(s->arena, c->leases, &changes, &n) : -EAGAIN;

        r = r ?: make_part(c, changes, n) ?: compute_desired(c, changes, n, &desired) ?: make_plan(c, desired);
        if (r < 0) {
                s->part = (struct lease_part) {};
                return r;
        }
        c->status.numbers.n_plans++;
        s->generation = generation_ref(c->in_force);
        s->policy = c->in_force->policy;
        s->decision.desired = desired;
        s->decision.given = desired;
        take_desired(c, desired);
        c->status.lease_changes += leases_planned(c->leases);
        return 0;
}

/* --- the end --------------------------------------------------------------------------------------------------------------- */

void lease_sweep_merge(struct control *c)
{
        const struct lease_part *part = &c->sweep.part;
        const struct subnet *s = c->snapshot->subnet;

        for (uint32_t i = 0; i < part->n; i++) {
                const struct subnet_port *p = &s->ports[part->ports[i]];

                c->snapshot->observed->tables[part->ports[i]] = part->observed->tables[i];
                watch_forget_right(c->watch, subnet_port_node(s, p)->guid, p->number);
        }
}

static bool has_failed(const struct control *c)
{
        const struct lease_part *part = &c->sweep.part;

        for (uint32_t i = 0; i < part->n; i++)
                if (c->snapshot->failed[part->ports[i]])
                        return true;
        return false;
}

int lease_sweep_verify(const struct control *c, enum sweep_result *ret)
{
        const struct sweep *s = &c->sweep;
        struct verification *v;
        int r = verify_compare(s->arena, s->decision.desired, s->part.observed, &s->options, &v);

        /* the retry that follows compares the whole fabric, and reports */
        if (r == 0)
                *ret = has_failed(c) || v->n_differ > 0 || v->n_unreachable > 0 ? SWEEP_PARTIAL : SWEEP_DONE;
        return r;
}
