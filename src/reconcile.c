/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reconcile.h"

#include <errno.h>

#include "pins/claims.h"
#include "policy/selector.h"
#include "subnet/known.h"
#include "util/text.h"

#define MAX_SILENT 8    /* findings about single ports; more are counted in one */
#define MAX_FROZEN 1000

/* The master SM's port must stay a full member of the default partition, or every limited member loses the SA. So pkeyd must
 * know which port that is. */
static int check_sm(const struct policy *policy, const struct subnet *s, struct findings *findings)
{
        if (s->self == SUBNET_NONE || s->sm != SUBNET_NONE || !policy_owns(policy, P_KEY_DEFAULT_BASE))
                return 0;
        if (s->sm_lid.v == 0) {
                (void) findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SM_UNKNOWN, NULL,
                                    "no master SM manages this port: when one starts, its port must be a full member of the "
                                    "default partition");
                return 0;
        }
        (void) findings_add(findings, FINDING_ERROR, FINDING_SUBNET_SM_UNKNOWN, NULL,
                            "the master SM is at LID %u, where discovery found no endport, so pkeyd does not know which port must "
                            "stay a full member of the default partition (try again: an answer may have been lost)",
                            s->sm_lid.v);
        return -EBADMSG;
}

/* An SM writes tables from its own file, without regard to what pkeyd writes. */
static int check_beside_sm(const struct subnet *s, enum plan_beside_sm beside, struct findings *findings)
{
        static const char *const leads[] = {
                [BESIDE_SM_REFUSED] = "nothing is written, because ",
                [BESIDE_SM_AUDITED] = "pkeyd only compares, and writes nothing (as with mode: audit), because ",
        };
        const char *name = s->sm == SUBNET_NONE ? "" : subnet_port_node(s, &s->ports[s->sm])->name;
        bool refuses = beside == BESIDE_SM_REFUSED;
        struct finding *item;

        if (beside == BESIDE_SM_ACCEPTED || !subnet_has_master(s))
                return 0;
        item = findings_add(findings, refuses ? FINDING_ERROR : FINDING_WARNING, FINDING_PLAN_BESIDE_SM, NULL,
                            "%sthe subnet manager%s%s (LID %u) may write P_Key tables, too: OpenSM restores what its own "
                            "file gives a port when a host near it is reset, and knows no path for P_Keys that it did not write",
                            WORD(leads, beside, ""), *name ? " on " : "", name, (unsigned) s->sm_lid.v);
        finding_set_hint(findings, item,
                         "set writer: opensm or opensm.mirror in pkeyd.yaml on the host of OpenSM (see pkeyd-opensm(7)); if the "
                         "subnet manager leaves P_Keys alone, beside_opensm: true%s",
                         beside == BESIDE_SM_AUDITED ? "; then pkeyctl reload" : " (for pkeyctl: --beside-opensm)");
        return refuses ? -EBADMSG : 0;
}

/* With writer: direct, the multicast groups of an IPoIB partition are still the SM's part. */
static void note_ipoib(const struct policy *policy, struct findings *findings)
{
        const struct policy_partition *first = NULL;
        struct finding *item;
        uint32_t i, n = 0;

        for (i = 0; i < policy->n_partitions; i++) {
                if (!policy->partitions[i].ipoib)
                        continue;
                n++;
                first = first ?: &policy->partitions[i];
        }
        if (n == 0)
                return;
        item = findings_add(findings, FINDING_NOTE, FINDING_OPENSM_IPOIB, &first->where,
                            "ipoib (of %s%s): pkeyd writes P_Keys only; the SM creates the multicast groups, by its own "
                            "configuration", first->name, n > 1 ? " and others" : "");
        finding_set_hint(findings, item, "pkeyctl export opensm writes a partitions.conf for OpenSM");
}

/* " (node0003 mlx5_0/1 was there last)"; "": not known */
static const char *last_port_text(struct arena *a, const struct subnet *s, const struct known *known, struct subnet_place place)
{
        const struct known_port *p = known ? known_find_at(known, s, place) : NULL;

        return p ? arena_printf(a, " (%s was there last)", known_port_label(a, p) ?: "?") ?: "" : "";
}

static void report_one_silent(const struct subnet *s, const struct known *known, const struct subnet_node *node, uint8_t number,
                              struct findings *findings)
{
        const struct subnet_conflict *c = subnet_find_conflict(s, node->guid, number);
        const char *label = subnet_node_label(findings->arena, node) ?: "?", *first;
        struct finding *item;
        uint32_t first_node;

        if (!c) {
                item = findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SILENT, NULL,
                                    "%s/%u: its link is up, but the node at the other end did not answer discovery%s", label, number,
                                    last_port_text(findings->arena, s, known, (struct subnet_place) { node->guid, number }));
                finding_set_hint(findings, item, "the node hangs, MADs are lost, or it has an M_Key that discovery does not know; "
                                                 "see pkeyd(8), M_KEYS");
                return;
        }
        first = subnet_place_label(findings->arena, s, c->places[0]) ?: "?";
        item = findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SILENT, NULL,
                            "%s/%u: the device at the other end has the same GUID 0x%016" PRIx64 " as %s, which was found first",
                            label, number, c->guid.v, first);
        first_node = subnet_find_node(s, c->places[0].node);
        if (first_node != SUBNET_NONE && subnet_port_is_silent(&s->nodes[first_node], c->places[0].number)) {
                finding_set_hint(findings, item, "pkeyd knows nothing of either device, and writes nothing to them: one of them is a "
                                 "switch, or pretends to be one; give one of the two another GUID");
                return;
        }
        finding_set_hint(findings, item, "pkeyd gives %s what the policy gives this GUID; it knows nothing of the other device, and "
                         "writes nothing to it: give one of the two adapters another GUID", first);
}

uint32_t reconcile_report_silent(const struct subnet *s, const struct known *known, struct findings *findings)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                for (unsigned number = 1; number <= UINT8_MAX; number++) {
                        const struct subnet_node *node = &s->nodes[i];

                        if (!subnet_port_is_silent(node, (uint8_t) number) || n++ >= MAX_SILENT)
                                continue;
                        report_one_silent(s, known, node, (uint8_t) number, findings);
                }
        if (n > MAX_SILENT)
                (void) findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SILENT, NULL,
                                    "%u more ports like this, %u in total", n - MAX_SILENT, n);
        return n;
}

static bool has_full_default(const struct p_key *entries, uint16_t capacity)
{
        const struct p_key full = { P_KEY_DEFAULT_BASE | P_KEY_FULL_BIT };

        return entries && p_keys_hold(entries, capacity, full);
}

/* Ports that become limited although the policy has this line have a more specific line. */
static bool has_full_for_all(const struct policy_partition *p)
{
        for (uint32_t i = 0; i < p->n_candidates; i++) {
                const struct policy_candidate *c = &p->candidates[i];

                if (c->selector->kind == SELECTOR_ALL && membership_has_full(p->rules[c->rule].membership))
                        return true;
        }
        return false;
}

/* By OpenSM's default every port is a full member, and hosts may talk in the default partition. A policy that does not mention it
 * ends that, which an admin may not expect. */
static void report_default(const struct policy *policy, const struct plan *plan, const struct observed *observed,
                           struct findings *findings)
{
        const struct subnet *s = observed->subnet;
        struct finding *item;
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct observed_table *t = &observed->tables[i];

                if (s->ports[i].role == PORT_ENDPORT && subnet_port_node(s, &s->ports[i])->type == NODE_CA &&
                    t->source == TABLE_READ && plan->final_tables[i] &&
                    has_full_default(t->entries, t->capacity) && !has_full_default(plan->final_tables[i], t->capacity))
                        n++;
        }
        if (n < 2)
                return;
        item = findings_add(findings, FINDING_WARNING, FINDING_PLAN_DEFAULT_LIMITED, NULL,
                            "%u ports become limited members of the default partition (0x7fff): they can no longer talk to each "
                            "other in it; IPoIB on an interface without a P_Key of its own stops working between them; all of them "
                            "still reach the subnet administrator",
                            n);
        if (has_full_for_all(&policy->partitions[0]))
                return;
        finding_set_hint(findings, item,
                         "'ALL: full' in the members of the default partition keeps them full members ('default: {pkey: 0x7fff, "
                         "ipoib: true, members: {ALL: full}}' if the policy does not have that yet)");
}

/* --- frozen ports --------------------------------------------------------------------------------------------------- */

/* A leaf port is frozen with the endport that is plugged into it. */
static int mark_frozen(struct arena *a, const struct memberships *m, struct desired *d)
{
        const struct subnet *s = d->subnet;
        enum freeze *frozen = arena_new_array(a, enum freeze, s->n_ports);

        if (!frozen)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                uint32_t endport = s->ports[i].role == PORT_ENDPORT ? i : s->ports[i].peer;

                frozen[i] = endport == SUBNET_NONE ? FREEZE_NONE : m->frozen[endport];
        }
        d->frozen = frozen;
        return 0;
}

static int copy_observed(struct arena *a, const struct observed_table *t, struct desired_port *ret)
{
        uint32_t n = t->source == TABLE_UNKNOWN ? 0 : t->capacity;
        struct p_key *keys = arena_copy(a, t->entries, n);

        if (!keys)
                return -ENOMEM;
        *ret = (struct desired_port) { keys, p_keys_sort(keys, n) };
        return 0;
}

/* Makes the observed table of each frozen port its desired one; `given` keeps what the policy gives. */
static int keep_frozen(struct arena *a, const struct observed *observed, struct reconciled *out)
{
        const enum freeze *frozen = out->plan ? out->plan->frozen : out->desired->frozen;
        struct desired *given = arena_new_object(a, struct desired);
        struct desired_port *ports = arena_new_array(a, struct desired_port, observed->subnet->n_ports);
        struct desired_port *certain = arena_new_array(a, struct desired_port, observed->subnet->n_ports);
        int r = 0;

        if (!given || !ports || !certain)
                return -ENOMEM;
        *given = *out->desired;
        for (uint32_t i = 0; r == 0 && i < observed->subnet->n_ports; i++) {
                ports[i] = given->ports[i];
                if (frozen[i] != FREEZE_NONE)
                        r = copy_observed(a, &observed->tables[i], &ports[i]);
                if (r == 0 && frozen[i] != FREEZE_NONE && observed->subnet->ports[i].role == PORT_ENDPORT)
                        r = desired_certain(a, out->memberships, i, &certain[i]);
        }
        out->given = given;
        out->certain = certain;
        out->desired->ports = ports;
        out->desired->frozen = frozen;
        return r;
}

static const char *list_entries(struct arena *a, const struct desired_port *port)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < port->n_wanted; i++)
                text_add(&t, "%s0x%04x", i > 0 ? " " : "", (unsigned) port->wanted[i].v);
        return port->n_wanted > 0 ? text_copy(a, &t) : "no known entries";
}

const char *reconcile_frozen_text(struct arena *a, const struct reconciled *r, uint32_t port)
{
        const struct subnet *s = r->desired->subnet;
        const char *label = subnet_port_label(a, s, port), *entries = list_entries(a, &r->desired->ports[port]);

        if (!label || !entries)
                return NULL;
        /* with the GUID, because two frozen ports may have one name */
        return arena_printf(a, "%s (0x%016" PRIx64 ") is frozen: %s; nothing is written to it, and its P_Key table stays as it is (%s)",
                            label, s->ports[port].guid.v, freeze_reason(r->desired->frozen[port]), entries);
}

/* Skips ports that were not queried, because the command does not show their tables. */
static void report_frozen(const struct reconciled *out, const struct observed *observed, struct findings *findings)
{
        const struct subnet *s = out->desired->subnet;
        struct finding *item;
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                enum freeze why = out->desired->frozen[i];
                const struct observed_table *t = &observed->tables[i];

                if (why == FREEZE_NONE || s->ports[i].role != PORT_ENDPORT ||
                    (t->entries && t->source == TABLE_UNKNOWN && t->failure == MAD_ANSWERED) || n++ >= MAX_FROZEN)
                        continue;
                item = findings_add(findings, FINDING_ERROR, FINDING_PORT_FROZEN, NULL, "%s",
                                    reconcile_frozen_text(findings->arena, out, i) ?: "?");
                finding_set_hint(findings, item, "%s", freeze_way_out(why));
        }
        if (n > MAX_FROZEN)
                (void) findings_add(findings, FINDING_ERROR, FINDING_PORT_FROZEN, NULL, "%u more ports are frozen, %u in total",
                                    n - MAX_FROZEN, n);
}

/* --- the decision --------------------------------------------------------------------------------------------------- */

/* Which port is a member of which partition (policy x subnet), and what each table should hold. */
static int resolve(struct arena *a, const struct policy *policy, const struct subnet *s, const struct plan_options *options,
                   struct findings *findings, struct reconciled *out)
{
        const struct policy_memory names = { options->known, options->pins };

        return pins_report_claims(options->pins, s, findings) ?:
               policy_resolve_with_memory(a, policy, s, &names, options->in_force, findings, &out->memberships) ?:
               desired_compute(a, out->memberships, &out->desired) ?: mark_frozen(a, out->memberships, out->desired);
}

int reconcile_tables(struct arena *a, const struct policy *policy, const struct observed *observed,
                     const struct plan_options *options, struct findings *findings, struct reconciled *ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = a };
        struct reconciled out = {};
        int r = resolve(a, policy, observed->subnet, options, findings, &out);

        if (r == 0 && options->in_force)
                r = plan_compute(a, out.desired, observed, NULL, options, &ignored, &out.plan);
        r = r ?: keep_frozen(a, observed, &out);
        if (r < 0)
                return r;
        report_frozen(&out, observed, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        *ret = out;
        return 0;
}

int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret)
{
        struct reconciled out = {};
        int r = check_sm(policy, observed->subnet, findings) ?: check_beside_sm(observed->subnet, options->beside_sm, findings);

        if (r < 0)
                return r;

        if (options->writer == WRITER_DIRECT && !options->opensm_order) /* OpenSM gets no file */
                note_ipoib(policy, findings);
        (void) reconcile_report_silent(observed->subnet, options->known, findings);

        r = resolve(a, policy, observed->subnet, options, findings, &out);
        if (r < 0)
                return r;

        /* which writes lead from the observed tables to the desired ones without breaking a promise */
        r = plan_compute(a, out.desired, observed, memory, options, findings, &out.plan) ?: keep_frozen(a, observed, &out);
        if (r < 0)
                return r;
        if (!options->in_force)
                report_default(policy, out.plan, observed, findings);
        report_frozen(&out, observed, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        *ret = out;
        return 0;
}
