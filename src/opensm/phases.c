/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOLD 20

const char *opensm_phase_to_string(enum opensm_phase p)
{
        static const char *const names[OPENSM_N_PHASES] = {
                [OPENSM_ADOPT] = "adopt", [OPENSM_REVOKE] = "revoke", [OPENSM_RAISE] = "raise",
                [OPENSM_LOWER] = "lower", [OPENSM_GRANT] = "grant",
        };

        return names[p];
}

/* ---- sets of P_Keys -------------------------------------------------------------------------------------------- */

/* Of one base: which of the two entries are there. */
enum { NOTHING = 0, LIMITED = 1, FULL = 2 };

/* Sorted, each once, without what is unused. */
static uint32_t tidy(struct p_key *keys, uint32_t n)
{
        uint32_t kept = 0;

        if (n > 0)
                qsort(keys, n, sizeof(*keys), p_key_compare);
        for (uint32_t i = 0; i < n; i++)
                if (p_key_is_used(keys[i]) && (kept == 0 || p_key_compare(&keys[kept - 1], &keys[i]) != 0))
                        keys[kept++] = keys[i];
        return kept;
}

static int copy_set(struct arena *a, const struct p_key *keys, uint32_t n, struct p_key **ret, uint32_t *ret_n)
{
        struct p_key *copy = arena_new_array(a, struct p_key, n);

        if (!copy)
                return -ENOMEM;
        if (n > 0)
                memcpy(copy, keys, n * sizeof(*copy));
        *ret_n = tidy(copy, n);
        *ret = copy;
        return 0;
}

/* Without allow_both the limited entry beside a full one counts for nothing. */
static unsigned level_seen(unsigned entries, bool allow_both)
{
        return !allow_both && (entries & FULL) ? (unsigned) FULL : entries;
}

/* Of the base at keys[*i] of a tidy set; moves on behind it. */
static unsigned take_base(const struct p_key *keys, uint32_t n, uint32_t *i, bool allow_both)
{
        uint16_t base = p_key_base(keys[*i]);
        unsigned entries = NOTHING;

        for (; *i < n && p_key_base(keys[*i]) == base; (*i)++)
                entries |= p_key_is_full(keys[*i]) ? FULL : LIMITED;
        return level_seen(entries, allow_both);
}

/* Are two tidy sets the same? Every port is at least a limited member of the default partition. */
static bool same_sets(const struct p_key *x, uint32_t n_x, const struct p_key *y, uint32_t n_y, bool allow_both)
{
        static const struct p_key limited = { P_KEY_DEFAULT_BASE };
        uint32_t i = 0, j = 0;

        while (i < n_x || j < n_y) {
                uint16_t base_x = i < n_x ? p_key_base(x[i]) : UINT16_MAX, base_y = j < n_y ? p_key_base(y[j]) : UINT16_MAX;
                unsigned in_x = base_x <= base_y ? take_base(x, n_x, &i, allow_both) : (unsigned) NOTHING;
                unsigned in_y = base_y <= base_x ? take_base(y, n_y, &j, allow_both) : (unsigned) NOTHING;

                if (MIN(base_x, base_y) == p_key_base(limited)) {
                        in_x = in_x == NOTHING ? (unsigned) LIMITED : in_x;
                        in_y = in_y == NOTHING ? (unsigned) LIMITED : in_y;
                }
                if (in_x != in_y)
                        return false;
        }
        return true;
}

/* ---- the file in place ----------------------------------------------------------------------------------------- */

struct grant {
        struct guid guid;
        struct p_key key;
        uint32_t order;
};

static int compare_grants(const void *left, const void *right)
{
        const struct grant *a = left, *b = right;

        return ORDER(a->guid.v, b->guid.v) ?: ORDER(a->order, b->order);
}

static size_t add_grants(struct grant *grants, size_t n, const struct partitions_conf_partition *p)
{
        for (const struct partitions_conf_member *m = p->members; m; m = m->next) {
                if (m->who != PARTITIONS_CONF_GUID)
                        continue;
                if (m->membership == MEMBERSHIP_LIMITED || m->membership == MEMBERSHIP_BOTH) {
                        grants[n] = (struct grant) { m->guid, p_key_make(p->base, false), (uint32_t) n };
                        n++;
                }
                if (m->membership == MEMBERSHIP_FULL || m->membership == MEMBERSHIP_BOTH) {
                        grants[n] = (struct grant) { m->guid, p_key_make(p->base, true), (uint32_t) n };
                        n++;
                }
        }
        return n;
}

static int group_grants(struct arena *a, const struct grant *grants, size_t n, struct opensm_tables *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, n);
        struct partitions_file_port *ports = arena_new_array(a, struct partitions_file_port, n);
        uint32_t n_ports = 0;

        if (!keys || !ports)
                return -ENOMEM;
        for (size_t i = 0; i < n;) {
                size_t first = i;

                for (; i < n && grants[i].guid.v == grants[first].guid.v; i++)
                        keys[i] = grants[i].key;
                ports[n_ports++] = (struct partitions_file_port) {
                        .guid = grants[first].guid, .keys = keys + first, .n_keys = tidy(keys + first, (uint32_t) (i - first)),
                };
        }
        *ret = (struct opensm_tables) { ports, n_ports };
        return 0;
}

int opensm_tables_of_file(struct arena *a, const struct partitions_conf *conf, struct opensm_tables *ret)
{
        _cleanup_free_ struct grant *grants = NULL;
        size_t n = 0;

        for (uint32_t i = 0; i < conf->n_partitions; i++)
                n += 2 * (size_t) conf->partitions[i].n_members;
        grants = calloc(MAX(n, (size_t) 1), sizeof(*grants));
        if (!grants)
                return -ENOMEM;
        n = 0;
        for (uint32_t i = 0; i < conf->n_partitions; i++)
                n = add_grants(grants, n, &conf->partitions[i]);
        qsort(grants, n, sizeof(*grants), compare_grants);
        return group_grants(a, grants, n, ret);
}

/* NULL: the file does not name it, or there is none. */
static const struct partitions_file_port *find_in(const struct opensm_tables *t, struct guid guid)
{
        uint32_t i = t ? LOWER_BOUND(port, t->ports, t->n_ports, port->guid.v < guid.v) : 0;

        return t && i < t->n_ports && t->ports[i].guid.v == guid.v ? &t->ports[i] : NULL;
}

/* ---- ways ------------------------------------------------------------------------------------------------------ */

/* How far the switch port lets a P_Key of its neighbour through. */
static unsigned let_through(const struct observed_table *t, struct p_key key)
{
        unsigned entries = NOTHING;

        for (uint16_t i = 0; i < t->capacity; i++)
                if (p_key_is_used(t->entries[i]) && p_key_base(t->entries[i]) == p_key_base(key))
                        entries |= p_key_is_full(t->entries[i]) ? FULL : LIMITED;
        return entries;
}

/* What the port can use of its table. */
static int usable_entries(struct arena *a, const struct observed *observed, uint32_t port, struct opensm_way *way)
{
        const struct observed_table *t = &observed->tables[port], *beside = NULL;
        uint32_t neighbour = observed->subnet->ports[port].neighbour;
        struct p_key *keys = arena_new_array(a, struct p_key, t->capacity);

        if (!keys)
                return -ENOMEM;
        if (neighbour != SUBNET_NONE && observed->tables[neighbour].entries &&
            observed->tables[neighbour].source == TABLE_READ)
                beside = &observed->tables[neighbour];
        if (beside && !beside->enforce_inbound && !beside->enforce_outbound)
                beside = NULL;
        for (uint16_t i = 0; i < t->capacity; i++) {
                unsigned passes = beside ? let_through(beside, t->entries[i]) : (unsigned) FULL;

                if (!p_key_is_used(t->entries[i]) || passes == NOTHING)
                        continue;
                keys[way->n_before++] = passes & FULL ? t->entries[i] : p_key_make(p_key_base(t->entries[i]), false);
        }
        way->before = keys;
        return 0;
}

static int set_before(struct arena *a, const struct observed *observed, uint32_t port, const struct opensm_tables *in_place,
                      struct opensm_way *way)
{
        const struct partitions_file_port *in_file = find_in(in_place, way->guid);
        const struct observed_table *t = &observed->tables[port];

        if (t->entries && t->source == TABLE_READ)
                return usable_entries(a, observed, port, way);
        if (in_file) {
                way->before = in_file->keys;
                way->n_before = in_file->n_keys;
        } else if (t->entries && t->source == TABLE_ASSUMED) {
                way->before = t->entries;
                way->n_before = t->capacity;
        }
        return 0;
}

/* The end of the plan. An entry that is not pkeyd's and that the switch port does not let through is left out: OpenSM would
 * open the switch port to it. */
static int set_after(struct arena *a, const struct plan *plan, const struct observed *observed, uint32_t port,
                     struct opensm_way *way)
{
        const struct desired_port *wanted = &plan->desired->ports[port];
        const struct p_key *final = plan->final_tables[port];
        struct p_key *keys;

        way->after = wanted->wanted;
        way->n_after = wanted->n_wanted;
        if (!final)
                return 0;
        keys = arena_new_array(a, struct p_key, observed->tables[port].capacity);
        if (!keys)
                return -ENOMEM;
        way->n_after = 0;
        for (uint16_t i = 0; i < observed->tables[port].capacity; i++)
                if (p_keys_hold(wanted->wanted, wanted->n_wanted, final[i]) ||
                    p_keys_hold(way->before, way->n_before, final[i]))
                        keys[way->n_after++] = final[i];
        way->after = keys;
        return 0;
}

int opensm_ways_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed,
                        const struct opensm_tables *in_place, struct opensm_way **ret, uint32_t *ret_n)
{
        const struct subnet *s = plan->subnet;
        struct opensm_way *ways = arena_new_array(a, struct opensm_way, s->n_ports);
        uint32_t n = 0;

        if (!ways)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct opensm_way *way = &ways[n];

                if (s->ports[i].role != PORT_ENDPORT || s->ports[i].guid.v == 0)
                        continue;
                *way = (struct opensm_way) {
                        .port = i,
                        .guid = s->ports[i].guid,
                        .label = subnet_port_label(a, s, i),
                        .capacity = subnet_port_capacity(s, &s->ports[i]),
                };
                if (!way->label || set_before(a, observed, i, in_place, way) < 0 || set_after(a, plan, observed, i, way) < 0)
                        return -ENOMEM;
                n++;
        }
        *ret = ways;
        *ret_n = n;
        return 0;
}

static int stay_as_in_file(struct arena *a, const struct subnet *subnet, const struct opensm_tables *in_place,
                           struct opensm_way **ret, uint32_t *ret_n)
{
        uint32_t n_ports = in_place ? in_place->n_ports : 0, n = 0;
        struct opensm_way *ways = arena_new_array(a, struct opensm_way, n_ports);

        if (!ways)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_ports; i++) {
                const struct partitions_file_port *p = &in_place->ports[i];

                if (subnet_find_endport(subnet, p->guid) == SUBNET_NONE)
                        ways[n++] = (struct opensm_way) {
                                .port = SUBNET_NONE, .guid = p->guid, .label = "not there now", .before = p->keys,
                                .n_before = p->n_keys, .after = p->keys, .n_after = p->n_keys,
                        };
        }
        *ret = ways;
        *ret_n = n;
        return 0;
}

int opensm_ways_of_absent(struct arena *a, const struct desired *desired, const struct subnet *subnet,
                          const struct opensm_tables *in_place, struct opensm_way **ret, uint32_t *ret_n)
{
        const struct subnet *s = desired ? desired->subnet : NULL;
        struct opensm_way *ways;
        uint32_t n = 0;

        if (!desired)
                return stay_as_in_file(a, subnet, in_place, ret, ret_n);
        ways = arena_new_array(a, struct opensm_way, s->n_ports);
        if (!ways)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct guid guid = s->ports[i].guid;
                const struct partitions_file_port *in_file = find_in(in_place, guid);

                if (s->ports[i].role != PORT_ENDPORT || guid.v == 0 || subnet_find_endport(subnet, guid) != SUBNET_NONE)
                        continue;
                ways[n] = (struct opensm_way) {
                        .port = SUBNET_NONE,
                        .guid = guid,
                        .label = subnet_port_label(a, s, i),
                        .before = in_file ? in_file->keys : NULL,
                        .n_before = in_file ? in_file->n_keys : 0,
                        .after = desired->ports[i].wanted,
                        .n_after = desired->ports[i].n_wanted,
                };
                if (!ways[n++].label)
                        return -ENOMEM;
        }
        *ret = ways;
        *ret_n = n;
        return 0;
}

/* ---- phases ---------------------------------------------------------------------------------------------------- */

/* What a port has of one base after a phase, which it goes through from `before` to `after`. */
static unsigned entries_after(enum opensm_phase phase, unsigned before, unsigned after, bool allow_both)
{
        switch (phase) {
        case OPENSM_ADOPT:
                return before;
        case OPENSM_REVOKE:
                return after == NOTHING ? (unsigned) NOTHING : before;
        case OPENSM_RAISE:
                if (before == NOTHING || after == NOTHING)
                        return NOTHING;
                return level_seen(before | after, allow_both);
        case OPENSM_LOWER:
                return before == NOTHING ? (unsigned) NOTHING : after;
        case OPENSM_GRANT:
        case OPENSM_N_PHASES:
                break;
        }
        return after;
}

struct base_way {
        uint16_t base;
        unsigned before, after;
};

/* Both ends of a way by base, ascending; `ret` has room for all. */
static uint32_t ends_by_base(const struct p_key *before, uint32_t n_before, const struct p_key *after, uint32_t n_after,
                             bool allow_both, struct base_way *ret)
{
        uint32_t i = 0, j = 0, n = 0;

        while (i < n_before || j < n_after) {
                uint16_t b = i < n_before ? p_key_base(before[i]) : UINT16_MAX;
                uint16_t c = j < n_after ? p_key_base(after[j]) : UINT16_MAX;

                ret[n].base = MIN(b, c);
                ret[n].before = b <= c ? take_base(before, n_before, &i, allow_both) : (unsigned) NOTHING;
                ret[n].after = c <= b ? take_base(after, n_after, &j, allow_both) : (unsigned) NOTHING;
                if (ret[n].base == P_KEY_DEFAULT_BASE && ret[n].before == NOTHING)
                        ret[n].before = LIMITED;
                n++;
        }
        return n;
}

/* The port's sets after each phase. */
static int go(struct arena *a, const struct opensm_way *way, bool allow_both, uint32_t at, struct opensm_phases *ret)
{
        struct base_way *bases = arena_new_array(a, struct base_way, (size_t) way->n_before + way->n_after);
        uint32_t n_before, n_after, n;
        struct p_key *before, *after;

        if (!bases || copy_set(a, way->before, way->n_before, &before, &n_before) < 0 ||
            copy_set(a, way->after, way->n_after, &after, &n_after) < 0)
                return -ENOMEM;
        n = ends_by_base(before, n_before, after, n_after, allow_both, bases);
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES; phase++) {
                struct p_key *keys = arena_new_array(a, struct p_key, 2 * (size_t) n);
                uint32_t n_keys = 0;

                if (!keys)
                        return -ENOMEM;
                for (uint32_t i = 0; i < n; i++) {
                        unsigned entries = entries_after(phase, bases[i].before, bases[i].after, allow_both);

                        if (entries & LIMITED)
                                keys[n_keys++] = p_key_make(bases[i].base, false);
                        if (entries & FULL)
                                keys[n_keys++] = p_key_make(bases[i].base, true);
                }
                ret->tables[phase][at] = (struct partitions_file_port) { way->guid, way->label, keys, n_keys };
        }
        return 0;
}

static bool differs(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        const struct partitions_file_port *x = &p->tables[phase - 1][at], *y = &p->tables[phase][at];

        return !same_sets(x->keys, x->n_keys, y->keys, y->n_keys, p->allow_both);
}

static bool differs_from_file(const struct opensm_phases *p, const struct opensm_tables *in_place, uint32_t at)
{
        const struct partitions_file_port *x = find_in(in_place, p->ways[at].guid), *y = &p->tables[OPENSM_ADOPT][at];

        return !same_sets(x ? x->keys : NULL, x ? x->n_keys : 0, y->keys, y->n_keys, p->allow_both);
}

/* Bases are counted, and both entries of one where both are on the way. */
static void check_capacity(const struct opensm_phases *p, struct findings *findings)
{
        uint32_t n_told = 0;

        for (uint32_t i = 0; i < p->n_ports && n_told < MAX_TOLD; i++)
                for (enum opensm_phase phase = OPENSM_REVOKE; phase < OPENSM_N_PHASES; phase++) {
                        uint32_t n_keys = p->tables[phase][i].n_keys;

                        if (p->ways[i].capacity == 0 || n_keys <= p->ways[i].capacity)
                                continue;
                        (void) findings_add(findings, FINDING_ERROR, FINDING_PLAN_CAPACITY_TRANSITION, NULL,
                                            "%s: its table of %u entries would have to hold %u on the way (%s)",
                                            p->ways[i].label, p->ways[i].capacity, n_keys, opensm_phase_to_string(phase));
                        n_told++;
                        break;
                }
}

int opensm_phases_compute(struct arena *a, const struct opensm_way *ways, uint32_t n_ways,
                          const struct opensm_tables *in_place, bool allow_both, struct findings *findings,
                          struct opensm_phases *ret)
{
        size_t n_errors = findings->n_errors;

        *ret = (struct opensm_phases) { .n_ports = n_ways, .ways = ways, .allow_both = allow_both };
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES; phase++) {
                ret->tables[phase] = arena_new_array(a, struct partitions_file_port, n_ways);
                if (!ret->tables[phase])
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < n_ways; i++)
                if (go(a, &ways[i], allow_both, i, ret) < 0)
                        return -ENOMEM;
        for (uint32_t i = 0; i < n_ways; i++) {
                ret->needed[OPENSM_ADOPT] = ret->needed[OPENSM_ADOPT] || differs_from_file(ret, in_place, i);
                for (enum opensm_phase phase = OPENSM_REVOKE; phase < OPENSM_N_PHASES; phase++)
                        ret->needed[phase] = ret->needed[phase] || differs(ret, phase, i);
        }
        check_capacity(ret, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}

int opensm_phases_changed(struct arena *a, const struct opensm_phases *phases, enum opensm_phase phase,
                          const struct subnet *subnet, const uint32_t **ret, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, 2 * (size_t) phases->n_ports);
        uint32_t n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                uint32_t port = phases->ways[i].port, beside;

                if (port == SUBNET_NONE || (phase != OPENSM_ADOPT && !differs(phases, phase, i)))
                        continue;
                if (subnet_port_is_managed(subnet, &subnet->ports[port]))
                        ports[n++] = port;
                beside = subnet->ports[port].neighbour;
                if (beside != SUBNET_NONE && subnet_port_can_enforce(subnet, &subnet->ports[beside]))
                        ports[n++] = beside;
        }
        if (n > 0)
                qsort(ports, n, sizeof(*ports), uint32_compare);
        *ret = ports;
        *ret_n = n;
        return 0;
}

/* ---- what became of it ----------------------------------------------------------------------------------------- */

static bool was_read(const struct observed_table *t)
{
        return t->entries && t->source == TABLE_READ;
}

/* Exactly these; limited beside full only counts with allow_both. */
static bool holds(const struct observed_table *t, const struct partitions_file_port *want, bool allow_both)
{
        struct p_key keys[UINT8_MAX + 1];
        struct p_key *all = t->capacity <= ELEMENTS(keys) ? keys : calloc(t->capacity, sizeof(*all));
        uint32_t n;
        bool same;

        if (!all)
                return false; /* looked at again */
        memcpy(all, t->entries, t->capacity * sizeof(*all));
        n = tidy(all, t->capacity);
        same = same_sets(all, n, want->keys, want->n_keys, allow_both);
        if (all != keys)
                free(all);
        return same;
}

static bool lets_through(const struct observed_table *t, const struct partitions_file_port *want)
{
        for (uint32_t i = 0; i < want->n_keys; i++) {
                unsigned passes = let_through(t, want->keys[i]);

                if (passes == NOTHING || (p_key_is_full(want->keys[i]) && !(passes & FULL)))
                        return false;
        }
        return true;
}

/* A switch port whose table is too small is not filled and does not enforce. */
static bool beside_is_right(const struct observed *o, uint32_t port, const struct partitions_file_port *want)
{
        uint32_t beside = o->subnet->ports[port].neighbour;

        if (beside == SUBNET_NONE || !subnet_port_can_enforce(o->subnet, &o->subnet->ports[beside]))
                return true;
        if (!was_read(&o->tables[beside]) || want->n_keys > o->tables[beside].capacity)
                return true;
        return lets_through(&o->tables[beside], want);
}

uint32_t opensm_phases_missing(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed,
                               uint32_t *ret_first)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                uint32_t port = phases->ways[i].port;
                const struct partitions_file_port *want = &phases->tables[phase][i];

                if (port == SUBNET_NONE || !was_read(&observed->tables[port]))
                        continue;
                if (holds(&observed->tables[port], want, phases->allow_both) && beside_is_right(observed, port, want))
                        continue;
                if (n++ == 0)
                        *ret_first = port;
        }
        return n;
}

bool opensm_phases_fell_back(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed)
{
        static const struct p_key everything = { P_KEY_DEFAULT_BASE | P_KEY_FULL_BIT };
        const struct partitions_file_port open = { .keys = &everything, .n_keys = 1 };
        bool unasked = false;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                uint32_t port = phases->ways[i].port;
                const struct partitions_file_port *want = &phases->tables[phase][i];

                if (port == SUBNET_NONE || !was_read(&observed->tables[port]))
                        continue;
                if (!holds(&observed->tables[port], &open, phases->allow_both))
                        return false;
                unasked = unasked || !same_sets(open.keys, 1, want->keys, want->n_keys, phases->allow_both);
        }
        return unasked;
}
