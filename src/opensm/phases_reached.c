/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "opensm/key_changes.h"
#include "opensm/leaf_filter.h"

/* Returns whether the table has exactly these entries; ignores the bases `without`, and unless allow_both a limited entry next to
 * the full one. */
static bool holds_exactly(const struct observed_table *t, const struct partitions_file_port *want, bool allow_both,
                          const struct opensm_bases *without)
{
        _cleanup_free_ struct p_key *all = malloc((t->capacity + 1u) * sizeof(*all));

        if (!all)
                return false; /* the table is read again */
        memcpy(all, t->entries, t->capacity * sizeof(*all));
        return opensm_keys_equal((struct opensm_key_sets) { all, want->keys, p_keys_sort(all, t->capacity), want->n_keys,
                                                            allow_both, without });
}

static bool table_covers(const struct observed_table *t, const struct partitions_file_port *want,
                         const struct opensm_bases *without)
{
        for (uint32_t i = 0; i < want->n_keys; i++)
                if (!opensm_bases_have(without, p_key_base(want->keys[i])) && !p_keys_cover(t->entries, t->capacity, want->keys[i]))
                        return false;
        return true;
}

/* Returns whether the leaf port lets all these entries pass. OpenSM does not write a table that is too small, and turns its filter
 * off. */
static bool leaf_passes_all(const struct observed *o, uint32_t port, const struct partitions_file_port *want,
                            const struct opensm_bases *without)
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
        return opensm_keys_equal(opensm_key_sets_of(&open_port, given, phases->allow_both));
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
