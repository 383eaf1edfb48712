/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "opensm/key_changes.h"
#include "opensm/leaf_filter.h"

#define MAX_REPORTED 20

DEFINE_WORDS(opensm_phase_to_string, enum opensm_phase, "unknown",
             [OPENSM_ADOPT] = "adopt", [OPENSM_REVOKE] = "revoke", [OPENSM_RAISE] = "raise", [OPENSM_LOWER] = "lower",
             [OPENSM_GRANT] = "grant")

/* A sorted copy. Returns 0 or -ENOMEM. */
static int copy_set(struct arena *a, const struct p_key *keys, uint32_t n, const struct p_key **ret, uint32_t *ret_n)
{
        struct p_key *copy = arena_copy(a, keys, n);

        if (!copy)
                return -ENOMEM;
        *ret_n = p_keys_sort(copy, n);
        *ret = copy;
        return 0;
}

/* The membership in one base after a phase, in a transition from `before` to `after`. */
static enum membership membership_after(enum opensm_phase phase, enum membership before, enum membership after, bool allow_both)
{
        switch (phase) {
        case OPENSM_ADOPT:
                return before;
        case OPENSM_REVOKE:
                return after == MEMBERSHIP_NONE ? MEMBERSHIP_NONE : before;
        case OPENSM_RAISE:
                if (before == MEMBERSHIP_NONE || after == MEMBERSHIP_NONE)
                        return MEMBERSHIP_NONE;
                return partitions_conf_membership(before | after, allow_both);
        case OPENSM_LOWER:
                return before == MEMBERSHIP_NONE ? MEMBERSHIP_NONE : after;
        case OPENSM_GRANT:
        case OPENSM_N_PHASES:
                break;
        }
        return after;
}

/* The same without both entries in between: the new entry replaces the old one. */
static enum membership exchanged_after(enum opensm_phase phase, enum membership before, enum membership after)
{
        if (phase == OPENSM_RAISE && after != MEMBERSHIP_NONE)
                return before == MEMBERSHIP_LIMITED && membership_has_full(after) ? MEMBERSHIP_FULL : before;
        if (phase == OPENSM_LOWER && after == MEMBERSHIP_BOTH)
                return before == after ? after : MEMBERSHIP_FULL;
        return membership_after(phase, before, after, true);
}

/* Of two entries, OpenSM would move one away from index 0. */
static bool is_at_index0(const struct opensm_transition *transition, uint16_t base)
{
        return base == P_KEY_DEFAULT_BASE || base == transition->index0_base;
}

/* The port's set after one phase. */
static int compute_phase(struct arena *a, const struct opensm_transition *transition, struct opensm_key_sets sets,
                         enum opensm_phase phase, bool exchange, struct partitions_file_port *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, 2 * ((size_t) sets.n_before + sets.n_after));
        bool allow_both = sets.allow_both;
        struct opensm_base_change base;
        uint32_t n = 0;

        if (!keys)
                return -ENOMEM;
        while (opensm_next_base(&sets, &base))
                n += p_keys_of_membership(base.base, exchange || is_at_index0(transition, base.base)
                                                             ? exchanged_after(phase, base.before, base.after)
                                                             : membership_after(phase, base.before, base.after, allow_both),
                                          keys + n);
        *ret = (struct partitions_file_port) { transition->guid, transition->label, keys, n };
        return 0;
}

static int compute_phases(struct arena *a, const struct opensm_transition *transition, uint32_t at, bool exchange,
                          struct opensm_phases *ret)
{
        struct opensm_key_sets sets = { .allow_both = ret->allow_both };
        int r = copy_set(a, transition->before, transition->n_before, &sets.before, &sets.n_before) ?:
                copy_set(a, transition->after, transition->n_after, &sets.after, &sets.n_after);

        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES && r == 0; phase++)
                r = compute_phase(a, transition, sets, phase, exchange, &ret->tables[phase][at]);
        return r;
}

/* The first phase with more entries than the port's table has; OPENSM_N_PHASES: none. */
static enum opensm_phase find_overflow(const struct opensm_phases *p, uint32_t at)
{
        enum opensm_phase phase = OPENSM_REVOKE;

        while (phase < OPENSM_N_PHASES &&
               (p->transitions[at].capacity == 0 || p->tables[phase][at].n_keys <= p->transitions[at].capacity))
                phase++;
        return phase;
}

const struct partitions_file_port *opensm_phases_before(const struct opensm_phases *p, enum opensm_phase phase)
{
        return p->tables[phase == OPENSM_ADOPT ? OPENSM_ADOPT : phase - 1];
}

/* The sets of one port before and after a phase. */
static struct opensm_key_sets pair_in(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return opensm_key_sets_of(&opensm_phases_before(p, phase)[at], &p->tables[phase][at], p->allow_both);
}

static bool changes_port(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return !opensm_keys_equal(pair_in(p, phase, at));
}

/* Without a file, every port has what OpenSM gives a port that no file names. */
static bool differs_from_file(const struct opensm_phases *p, uint32_t at)
{
        const struct partitions_file_port *given = p->in_place ? &p->in_place[at] : &opensm_nothing_given;

        return !opensm_keys_equal(opensm_key_sets_of(given, &p->tables[OPENSM_ADOPT][at], p->allow_both));
}

static void find_needed(struct opensm_phases *p)
{
        memset(p->needed, 0, sizeof(p->needed));
        for (uint32_t i = 0; i < p->n_ports; i++) {
                p->needed[OPENSM_ADOPT] = p->needed[OPENSM_ADOPT] || p->transitions[i].has_surplus || differs_from_file(p, i);
                for (enum opensm_phase phase = OPENSM_REVOKE; phase < OPENSM_N_PHASES; phase++)
                        p->needed[phase] = p->needed[phase] || changes_port(p, phase, i);
        }
}

static int copy_in_place(struct arena *a, const struct opensm_tables *in_place, struct opensm_phases *p)
{
        struct partitions_file_port *ports;

        if (!in_place)
                return 0;
        ports = arena_new_array(a, struct partitions_file_port, p->n_ports);
        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_ports; i++)
                ports[i] = *opensm_find_given(in_place, p->transitions[i].guid);
        p->in_place = ports;
        return 0;
}

static void check_capacity(const struct opensm_phases *p, struct findings *findings)
{
        uint32_t n_given = 0;

        for (uint32_t i = 0; i < p->n_ports && n_given < MAX_REPORTED; i++) {
                enum opensm_phase phase = find_overflow(p, i);

                if (phase == OPENSM_N_PHASES)
                        continue;
                (void) findings_add(findings, FINDING_ERROR, FINDING_PLAN_CAPACITY_TRANSITION, NULL,
                                    "%s: its table of %u entries would have to hold %u in phase %s", p->transitions[i].label,
                                    p->transitions[i].capacity, p->tables[phase][i].n_keys, opensm_phase_to_string(phase));
                n_given++;
        }
}

int opensm_phases_compute(struct arena *a, const struct opensm_transition *transitions, uint32_t n_transitions,
                          const struct opensm_tables *in_place, bool allow_both, struct findings *findings,
                          struct opensm_phases *ret)
{
        size_t n_errors = findings->n_errors;

        *ret = (struct opensm_phases) { .n_ports = n_transitions, .transitions = transitions, .allow_both = allow_both };
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES; phase++) {
                ret->tables[phase] = arena_new_array(a, struct partitions_file_port, n_transitions);
                if (!ret->tables[phase])
                        return -ENOMEM;
        }
        if (copy_in_place(a, in_place, ret) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_transitions; i++)
                if (compute_phases(a, &transitions[i], i, false, ret) < 0 ||
                    (find_overflow(ret, i) < OPENSM_N_PHASES && compute_phases(a, &transitions[i], i, true, ret) < 0))
                        return -ENOMEM;
        find_needed(ret);
        check_capacity(ret, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}

/* ---- held bases ------------------------------------------------------------------------------------------------ */

static bool has_bases(const struct partitions_file_port *p, const struct opensm_bases *bases)
{
        for (uint32_t i = 0; i < p->n_keys; i++)
                if (opensm_bases_have(bases, p_key_base(p->keys[i])))
                        return true;
        return false;
}

static void copy_keys(struct p_key *keys, uint32_t *n, const struct partitions_file_port *from, const struct opensm_bases *bases,
                      bool held)
{
        for (uint32_t i = 0; i < from->n_keys; i++)
                if (opensm_bases_have(bases, p_key_base(from->keys[i])) == held)
                        keys[(*n)++] = from->keys[i];
}

/* Sets the held bases of a port to those in `before`. */
static int hold_port(struct arena *a, const struct partitions_file_port *before, const struct opensm_bases *bases,
                     struct partitions_file_port *at)
{
        struct p_key *keys;
        uint32_t n = 0;

        if (!has_bases(before, bases) && !has_bases(at, bases))
                return 0;
        keys = arena_new_array(a, struct p_key, (size_t) before->n_keys + at->n_keys);
        if (!keys)
                return -ENOMEM;
        copy_keys(keys, &n, before, bases, true);
        copy_keys(keys, &n, at, bases, false);
        at->n_keys = p_keys_sort(keys, n);
        at->keys = keys;
        return 0;
}

int opensm_phases_hold(struct arena *a, struct opensm_phases *p, enum opensm_phase from, const struct opensm_bases *bases)
{
        assert(from <= OPENSM_N_PHASES);
        for (size_t i = 0; i < sizeof(bases->bits); i++)
                p->held.bits[i] |= bases->bits[i];
        for (enum opensm_phase phase = from; phase < OPENSM_N_PHASES; phase++) {
                const struct partitions_file_port *before = opensm_phases_before(p, phase);

                if (phase == OPENSM_ADOPT && p->in_place)
                        before = p->in_place;
                for (uint32_t i = 0; i < p->n_ports; i++)
                        if (hold_port(a, &before[i], bases, &p->tables[phase][i]) < 0)
                                return -ENOMEM;
        }
        find_needed(p);
        return 0;
}

static void add_changed_bases(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at, struct opensm_bases *bases)
{
        struct opensm_key_sets sets = pair_in(p, phase, at);
        struct opensm_base_change base;

        while (opensm_next_difference(&sets, &base))
                opensm_bases_add(bases, base.base);
}

int opensm_phases_see_unread(struct arena *a, struct opensm_phases *p, enum opensm_phase phase, const struct observed *observed)
{
        struct opensm_bases changed = {};

        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < p->n_ports; i++) {
                if (p->transitions[i].port == SUBNET_NONE || !opensm_pair_failed(observed, p->transitions[i].port))
                        continue;
                add_changed_bases(p, phase, i, &changed);
                for (enum opensm_phase later = phase + 1; later < OPENSM_N_PHASES; later++)
                        p->tables[later][i] = p->tables[phase][i];
        }
        return opensm_phases_hold(a, p, phase + 1, &changed);
}

bool opensm_phase_is_visible(const struct opensm_phases *p, enum opensm_phase phase)
{
        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < p->n_ports; i++)
                if (p->transitions[i].port != SUBNET_NONE && changes_port(p, phase, i))
                        return true;
        return false;
}

int opensm_phases_changed(struct arena *a, const struct opensm_phases *phases, enum opensm_phase phase,
                          const struct subnet *subnet, const uint32_t **ret, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, 2 * (size_t) phases->n_ports);
        uint32_t n = 0;

        assert(phase < OPENSM_N_PHASES);
        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                uint32_t port = phases->transitions[i].port, peer;

                if (port == SUBNET_NONE || (phase != OPENSM_ADOPT && !changes_port(phases, phase, i)))
                        continue;
                if (subnet_port_is_managed(subnet, &subnet->ports[port]))
                        ports[n++] = port;
                peer = subnet->ports[port].peer;
                if (peer != SUBNET_NONE && subnet_port_can_enforce(subnet, &subnet->ports[peer]))
                        ports[n++] = peer;
        }
        SORT(ports, n, uint32_compare);
        *ret = ports;
        *ret_n = n;
        return 0;
}
