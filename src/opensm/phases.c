/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opensm/leaf_filter.h"
#include "opensm/partitions_conf.h"

#define MAX_REPORTED 20

DEFINE_WORDS(opensm_phase_to_string, enum opensm_phase, "unknown",
             [OPENSM_ADOPT] = "adopt", [OPENSM_REVOKE] = "revoke", [OPENSM_RAISE] = "raise", [OPENSM_LOWER] = "lower",
             [OPENSM_GRANT] = "grant")

/* ---- two sets of P_Keys ---------------------------------------------------------------------------------------- */

/* What is left of two sets while they are walked in parallel. They ascend, limited before full. */
struct key_sets {
        const struct p_key *before, *after;
        uint32_t n_before, n_after;
        bool allow_both;
        const struct base_set *without; /* bases to ignore; NULL: none */
};

/* The membership in one base by both sets, as OpenSM gives it to a port. */
struct base_change {
        uint16_t base;
        enum membership before, after;
};

/* Removes the entries of a base from the beginning of a set, and returns the membership that they give. */
static enum membership take_entries(const struct p_key **keys, uint32_t *n, uint16_t base, bool allow_both)
{
        enum membership m = MEMBERSHIP_NONE;

        for (; *n > 0 && p_key_base(**keys) == base; (*keys)++, (*n)--)
                m |= p_key_membership(**keys);
        return partitions_conf_membership(m, allow_both);
}

/* The next base of both sets, ascending; false: there is none. Every port begins as at least a limited member of the default
 * partition. */
static bool next_base(struct key_sets *s, struct base_change *ret)
{
        uint16_t before = s->n_before > 0 ? p_key_base(*s->before) : UINT16_MAX;
        uint16_t after = s->n_after > 0 ? p_key_base(*s->after) : UINT16_MAX;

        if (s->n_before == 0 && s->n_after == 0)
                return false;
        ret->base = MIN(before, after);
        ret->before = take_entries(&s->before, &s->n_before, ret->base, s->allow_both);
        ret->after = take_entries(&s->after, &s->n_after, ret->base, s->allow_both);
        if (ret->base == P_KEY_DEFAULT_BASE && ret->before == MEMBERSHIP_NONE)
                ret->before = MEMBERSHIP_LIMITED;
        return true;
}

/* The next base in which the sets differ. A limited entry of the default partition makes no difference: every port has it. */
static bool next_difference(struct key_sets *s, struct base_change *ret)
{
        while (next_base(s, ret)) {
                if (ret->base == P_KEY_DEFAULT_BASE && ret->after == MEMBERSHIP_NONE)
                        ret->after = MEMBERSHIP_LIMITED;
                if (ret->before != ret->after && !(s->without && base_set_has(s->without, ret->base)))
                        return true;
        }
        return false;
}

static struct key_sets sets_of(const struct partitions_file_port *x, const struct partitions_file_port *y, bool allow_both)
{
        return (struct key_sets) { x->keys, y->keys, x->n_keys, y->n_keys, allow_both, NULL };
}

static bool are_equal(struct key_sets s)
{
        struct base_change change;

        return !next_difference(&s, &change);
}

/* ---- the tables of each phase --------------------------------------------------------------------------------- */

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
static int compute_phase(struct arena *a, const struct opensm_transition *transition, struct key_sets sets,
                         enum opensm_phase phase, bool exchange, struct partitions_file_port *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, 2 * ((size_t) sets.n_before + sets.n_after));
        bool allow_both = sets.allow_both;
        struct base_change base;
        uint32_t n = 0;

        if (!keys)
                return -ENOMEM;
        while (next_base(&sets, &base))
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
        struct key_sets sets = { .allow_both = ret->allow_both };
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
static struct key_sets pair_in(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return sets_of(&opensm_phases_before(p, phase)[at], &p->tables[phase][at], p->allow_both);
}

static bool changes_port(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return !are_equal(pair_in(p, phase, at));
}

/* Without a file, every port has what OpenSM gives a port that no file names. */
static bool differs_from_file(const struct opensm_phases *p, uint32_t at)
{
        const struct partitions_file_port *given = p->in_place ? &p->in_place[at] : &opensm_nothing_given;

        return !are_equal(sets_of(given, &p->tables[OPENSM_ADOPT][at], p->allow_both));
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

static bool has_bases(const struct partitions_file_port *p, const struct base_set *bases)
{
        for (uint32_t i = 0; i < p->n_keys; i++)
                if (base_set_has(bases, p_key_base(p->keys[i])))
                        return true;
        return false;
}

static void copy_keys(struct p_key *keys, uint32_t *n, const struct partitions_file_port *from, const struct base_set *bases,
                      bool held)
{
        for (uint32_t i = 0; i < from->n_keys; i++)
                if (base_set_has(bases, p_key_base(from->keys[i])) == held)
                        keys[(*n)++] = from->keys[i];
}

/* Sets the held bases of a port to those in `before`. */
static int hold_port(struct arena *a, const struct partitions_file_port *before, const struct base_set *bases,
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

int opensm_phases_hold(struct arena *a, struct opensm_phases *p, enum opensm_phase from, const struct base_set *bases)
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

static void add_changed_bases(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at, struct base_set *bases)
{
        struct key_sets sets = pair_in(p, phase, at);
        struct base_change base;

        while (next_difference(&sets, &base))
                base_set_add(bases, base.base);
}

int opensm_phases_see_unread(struct arena *a, struct opensm_phases *p, enum opensm_phase phase, const struct observed *observed)
{
        struct base_set changed = {};

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

/* ---- whether OpenSM carried a file out ------------------------------------------------------------------------- */

/* Returns whether the table has exactly these entries; ignores the bases `without`, and unless allow_both a limited entry next to
 * the full one. */
static bool holds_exactly(const struct observed_table *t, const struct partitions_file_port *want, bool allow_both,
                          const struct base_set *without)
{
        _cleanup_free_ struct p_key *all = malloc((t->capacity + 1u) * sizeof(*all));

        if (!all)
                return false; /* the table is read again */
        memcpy(all, t->entries, t->capacity * sizeof(*all));
        return are_equal((struct key_sets) { all, want->keys, p_keys_sort(all, t->capacity), want->n_keys, allow_both, without });
}

static bool table_covers(const struct observed_table *t, const struct partitions_file_port *want,
                         const struct base_set *without)
{
        for (uint32_t i = 0; i < want->n_keys; i++)
                if (!base_set_has(without, p_key_base(want->keys[i])) && !p_keys_cover(t->entries, t->capacity, want->keys[i]))
                        return false;
        return true;
}

/* Returns whether the leaf port lets all these entries pass. OpenSM does not write a table that is too small, and turns its filter
 * off. */
static bool leaf_passes_all(const struct observed *o, uint32_t port, const struct partitions_file_port *want,
                            const struct base_set *without)
{
        uint32_t peer = o->subnet->ports[port].peer;

        return !opensm_may_be_filtered(o->subnet, port) || want->n_keys > o->tables[peer].capacity ||
               table_covers(&o->tables[peer], want, without);
}

/* Returns whether the port is in the snapshot and was read. */
static bool was_port_read(const struct opensm_transition *transition, const struct observed *observed)
{
        return transition->port != SUBNET_NONE && opensm_table_was_read(&observed->tables[transition->port]);
}

enum opensm_reached opensm_phases_reached(const struct opensm_phases *p, enum opensm_phase phase, uint32_t transition,
                                          const struct observed *observed)
{
        const struct partitions_file_port *want;
        uint32_t port;

        assert(phase < OPENSM_N_PHASES && transition < p->n_ports);
        want = &p->tables[phase][transition];
        port = p->transitions[transition].port;
        if (!was_port_read(&p->transitions[transition], observed))
                return OPENSM_UNREAD;
        if (!holds_exactly(&observed->tables[port], want, p->allow_both, &p->held))
                return OPENSM_MISSING;
        if (!opensm_pair_was_read(observed, port))
                return OPENSM_UNREAD;
        return leaf_passes_all(observed, port, want, &p->held) ? OPENSM_REACHED : OPENSM_MISSING;
}

uint32_t opensm_phases_missing(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed,
                               uint32_t *ret_first)
{
        uint32_t n = 0;

        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                if (opensm_phases_reached(phases, phase, i, observed) != OPENSM_MISSING)
                        continue;
                if (n++ == 0)
                        *ret_first = phases->transitions[i].port;
        }
        return n;
}

/* The entries that OpenSM gives every port when it drops its file. */
static const struct p_key everything = { P_KEY_DEFAULT_BASE | P_KEY_FULL_BIT };
static const struct partitions_file_port open_port = { .keys = &everything, .n_keys = 1 };

bool opensm_phases_are_open(const struct opensm_phases *phases, const struct observed *observed)
{
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                const struct opensm_transition *transition = &phases->transitions[i];

                if (was_port_read(transition, observed) &&
                    !holds_exactly(&observed->tables[transition->port], &open_port, phases->allow_both, NULL))
                        return false;
        }
        return true;
}

static bool gives_open(const struct opensm_phases *phases, const struct partitions_file_port *given)
{
        return are_equal(sets_of(&open_port, given, phases->allow_both));
}

/* Returns whether all ports that were read are open, and at least one of them gets that neither by `tables` nor by `before`. A port
 * that the file in place does not name does not count, because that file does not show what OpenSM gives it. */
static bool are_unexpectedly_open(const struct opensm_phases *phases, const struct partitions_file_port *before,
                                  const struct partitions_file_port *tables, const struct observed *observed)
{
        bool unexpected = false;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                bool unnamed = tables == phases->in_place && tables[i].n_keys == 0;

                if (was_port_read(&phases->transitions[i], observed))
                        unexpected = unexpected || !(unnamed || gives_open(phases, &tables[i]) || gives_open(phases, &before[i]));
        }
        return unexpected && opensm_phases_are_open(phases, observed);
}

bool opensm_phases_fell_back(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed)
{
        return are_unexpectedly_open(phases, opensm_phases_before(phases, phase), phases->tables[phase], observed);
}

bool opensm_phases_had_fallen_back(const struct opensm_phases *phases, const struct observed *observed)
{
        const struct partitions_file_port *wanted = phases->tables[OPENSM_GRANT];

        return are_unexpectedly_open(phases, wanted, wanted, observed) &&
               (!phases->in_place || are_unexpectedly_open(phases, phases->in_place, phases->in_place, observed));
}
