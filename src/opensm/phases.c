/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPORTED 20

DEFINE_WORDS(opensm_phase_to_string, enum opensm_phase, "unknown",
             [OPENSM_ADOPT] = "adopt", [OPENSM_REVOKE] = "revoke", [OPENSM_RAISE] = "raise", [OPENSM_LOWER] = "lower",
             [OPENSM_GRANT] = "grant")

/* ---- sets of P_Keys -------------------------------------------------------------------------------------------- */

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

/* What is left of two normalized sets while they are walked in parallel. */
struct set_pair {
        const struct p_key *before, *after;
        uint32_t n_before, n_after;
        bool allow_both;
        const struct opensm_bases *without; /* bases to ignore; NULL: none */
};

/* The membership in one base by both sets. */
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
static bool next_base(struct set_pair *s, struct base_change *ret)
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
static bool next_difference(struct set_pair *s, struct base_change *ret)
{
        while (next_base(s, ret)) {
                if (ret->base == P_KEY_DEFAULT_BASE && ret->after == MEMBERSHIP_NONE)
                        ret->after = MEMBERSHIP_LIMITED;
                if (ret->before != ret->after && !(s->without && opensm_bases_have(s->without, ret->base)))
                        return true;
        }
        return false;
}

static struct set_pair pair_of(const struct partitions_file_port *x, const struct partitions_file_port *y, bool allow_both)
{
        return (struct set_pair) { x->keys, y->keys, x->n_keys, y->n_keys, allow_both, NULL };
}

static bool are_equal(struct set_pair s)
{
        struct base_change change;

        return !next_difference(&s, &change);
}

/* ---- the file in place ----------------------------------------------------------------------------------------- */

struct grant {
        struct guid guid;
        struct p_key key;
};

DEFINE_COMPARE(compare_grants, struct grant, ORDER(a->guid.v, b->guid.v))

static size_t add_grants(struct grant *grants, size_t n, const struct partitions_conf_partition *p)
{
        struct p_key keys[2];
        uint32_t n_keys;

        for (const struct partitions_conf_member *m = p->members; m; m = m->next) {
                if (m->who != PARTITIONS_CONF_GUID)
                        continue;
                n_keys = p_keys_of_membership(p->base, m->membership, keys);
                for (uint32_t i = 0; i < n_keys; i++)
                        grants[n++] = (struct grant) { m->guid, keys[i] };
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
                        .guid = grants[first].guid, .keys = keys + first,
                        .n_keys = p_keys_sort(keys + first, (uint32_t) (i - first)),
                };
        }
        *ret = (struct opensm_tables) { .ports = ports, .n_ports = n_ports };
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

/* What a file gives a port that it does not name. */
static const struct partitions_file_port nothing_given;

/* What a file gives a port; nothing_given: the file does not name it, or there is no file. */
static const struct partitions_file_port *find_given(const struct opensm_tables *t, struct guid guid)
{
        uint32_t i = t ? LOWER_BOUND(port, t->ports, t->n_ports, port->guid.v < guid.v) : 0;

        return t && i < t->n_ports && t->ports[i].guid.v == guid.v ? &t->ports[i] : &nothing_given;
}

/* ---- transitions ----------------------------------------------------------------------------------------------- */

static bool was_read(const struct observed_table *t)
{
        return t->entries && t->source == TABLE_READ;
}

/* Returns whether the table was read now or earlier. */
static bool is_known(const struct observed_table *t)
{
        return was_read(t) || t->source == TABLE_ASSUMED;
}

/* A leaf port that filters, or may. given: what the file in place gives its peer, which OpenSM may have written to the leaf port
 * since its table was read; nothing_given if it was read since. */
struct filter {
        bool is_on;   /* or may be */
        bool is_sure; /* is_on is certain */
        const struct p_key *entries;
        uint16_t capacity;
        const struct partitions_file_port *given;
};

/* The membership with which packets of this base pass the filter, or may by now. */
static enum membership passing_membership(const struct filter *f, uint16_t base)
{
        if (!f->is_on)
                return MEMBERSHIP_FULL;
        return p_keys_membership(f->entries, f->capacity, base) | p_keys_membership(f->given->keys, f->given->n_keys, base);
}

/* Returns whether OpenSM may have turned the filter on or off since the discovery, or the switch did not answer. */
static bool is_filter_unsure(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        const struct knowledge_record *r = knowledge_get(k, knowledge_find_port(k, observed->subnet, port));

        return r && r->filters_unsure;
}

/* True if the switch port filters, or may, and its table is known. */
static bool may_filter(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        const struct observed_table *t = &observed->tables[port];

        return is_known(t) && (t->enforce_inbound || t->enforce_outbound || is_filter_unsure(observed, port, k));
}

/* True if the filter drops packets of this entry. Every file gives the limited entry of the default partition, so that one never
 * counts. */
static bool is_dropped(enum membership passes, struct p_key key)
{
        if (p_key_is_full(key))
                return !membership_has_full(passes);
        return passes == MEMBERSHIP_NONE && p_key_base(key) != P_KEY_DEFAULT_BASE;
}

/* The transition begins with those of these entries that pass the filter. */
static int set_before_to_usable(struct arena *a, const struct p_key *entries, uint16_t capacity, const struct filter *f,
                                struct opensm_transition *transition)
{
        struct p_key *keys = arena_new_array(a, struct p_key, capacity);

        if (!keys)
                return -ENOMEM;
        transition->n_before = 0;
        for (uint16_t i = 0; i < capacity; i++) {
                uint16_t base = p_key_base(entries[i]);
                enum membership passes = passing_membership(f, base);

                if (!p_key_is_used(entries[i]))
                        continue;
                transition->is_undecided |= !f->is_sure && is_dropped(passes, entries[i]);
                if (passes != MEMBERSHIP_NONE)
                        keys[transition->n_before++] = membership_has_full(passes) ? entries[i] : p_key_make(base, false);
        }
        transition->before = keys;
        return 0;
}

static int set_before_by_table(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                               const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        uint32_t peer = observed->subnet->ports[port].peer;
        struct filter f = {};

        if (peer != SUBNET_NONE && may_filter(observed, peer, k)) {
                const struct observed_table *filter = &observed->tables[peer];
                bool is_sure = !is_filter_unsure(observed, peer, k);

                f = (struct filter) { true, is_sure, filter->entries, filter->capacity,
                                      is_sure && was_read(filter) ? &nothing_given : find_given(in_place, transition->guid) };
        }
        return set_before_to_usable(a, t->entries, t->capacity, &f, transition);
}

/* Returns whether the port filters, and the size of its table is not known because its switch did not answer everything. */
static bool is_incomplete_filter(const struct subnet *s, const struct subnet_port *p)
{
        return subnet_port_node(s, p)->incomplete && (p->enforce_inbound || p->enforce_outbound);
}

/* True if the other end of the link filters, or may: it did not answer discovery. */
static bool may_be_filtered(const struct subnet *s, uint32_t port)
{
        uint32_t peer = s->ports[port].peer;

        if (peer == SUBNET_NONE)
                return subnet_port_is_behind_unknown(s, &s->ports[port]);
        return subnet_port_can_enforce(s, &s->ports[peer]) || is_incomplete_filter(s, &s->ports[peer]);
}

/* True if the port was read, and its leaf port, too, if that may filter. */
static bool pair_was_read(const struct observed *observed, uint32_t port)
{
        uint32_t peer = observed->subnet->ports[port].peer;

        if (!was_read(&observed->tables[port]))
                return false;
        return !may_be_filtered(observed->subnet, port) || (peer != SUBNET_NONE && was_read(&observed->tables[peer]));
}

/* Returns whether the leaf port filters, or may, and was never read. It is not known what it lets through, and a file with what the
 * endport holds could let that through. */
static bool is_behind_unread_filter(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        uint32_t peer = observed->subnet->ports[port].peer;
        const struct observed_table *t = peer == SUBNET_NONE ? NULL : &observed->tables[peer];

        if (!may_be_filtered(observed->subnet, port) || (t && is_known(t)))
                return false;
        return !t || t->enforce_inbound || t->enforce_outbound || is_filter_unsure(observed, peer, k);
}

/* The transition begins with what a file gives the port. */
static void set_before_to_given(const struct partitions_file_port *given, struct opensm_transition *transition)
{
        transition->before = given->keys;
        transition->n_before = given->n_keys;
}

/* What is known of a port that cannot be read. */
enum last_known {
        LAST_READ,     /* what it held when it was read last */
        LAST_GIVEN,    /* what the file in place gives it, which OpenSM may have written since; or it was never read */
        HOLDS_NOTHING, /* a person vouches for it */
};

static enum last_known last_known(const struct knowledge *k, uint32_t record, const struct opensm_tables *in_place)
{
        const struct knowledge_record *r = knowledge_get(k, record);

        if (r && r->vouched)
                return HOLDS_NOTHING;
        return r && r->entries && (r->n_writes == 0 || !in_place) ? LAST_READ : LAST_GIVEN;
}

static int set_before(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                      const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        enum last_known known = last_known(k, transition->record, in_place);

        if (!is_behind_unread_filter(observed, port, k) && (was_read(t) || (known == LAST_READ && t->source == TABLE_ASSUMED)))
                return set_before_by_table(a, observed, port, k, in_place, transition);
        set_before_to_given(known == HOLDS_NOTHING ? &nothing_given : find_given(in_place, transition->guid), transition);
        return 0;
}

/* Drops what neither the file in place nor the policy gives the port. OpenSM may have removed it since the table was read, and a
 * file with it would restore it. Not if the table was read after OpenSM carried out the file, or the file does not name the port:
 * then they may be another writer's, and the first file must have them, because OpenSM removes only what an earlier file gave. */
static int drop_unknown(struct arena *a, const struct opensm_tables *in_place, const struct desired_port *wanted, bool is_read,
                        struct opensm_transition *transition)
{
        const struct partitions_file_port *given = find_given(in_place, transition->guid);
        uint32_t n = 0, n_kept;
        struct p_key *keys;

        if (!in_place || (is_read && (in_place->is_done || given->n_keys == 0)))
                return 0;
        keys = arena_new_array(a, struct p_key, transition->n_before + given->n_keys);
        if (!keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < transition->n_before; i++)
                if (p_keys_hold(given->keys, given->n_keys, transition->before[i]) ||
                    p_keys_hold(wanted->wanted, wanted->n_wanted, transition->before[i]))
                        keys[n++] = transition->before[i];
        n_kept = n;
        for (uint32_t i = 0; i < given->n_keys; i++) /* the port has the base, with another entry than the file gives */
                if (p_keys_hold_base(transition->before, transition->n_before, p_key_base(given->keys[i])) &&
                    !p_keys_hold_base(keys, n_kept, p_key_base(given->keys[i])))
                        keys[n++] = given->keys[i];
        transition->has_surplus = n_kept < transition->n_before;
        transition->before = keys;
        transition->n_before = n;
        return 0;
}

static void keep_before(struct opensm_transition *transition)
{
        transition->after = transition->before;
        transition->n_after = transition->n_before;
}

/* True if the port has the base of this given entry with another one, and pkeyd does not manage the base: the given entry stays. */
static bool keeps_given(const struct p_key *final, uint16_t capacity, const struct desired_port *wanted, struct p_key given)
{
        return !p_keys_hold(final, capacity, given) && p_keys_hold_base(final, capacity, p_key_base(given)) &&
               !p_keys_hold_base(wanted->wanted, wanted->n_wanted, p_key_base(given));
}

/* The transition ends with the plan's tables. An entry that pkeyd does not manage and that the leaf port drops is left out, because
 * OpenSM would open the leaf port to it. */
static int set_after(struct arena *a, const struct plan *plan, const struct observed *observed, uint32_t port,
                     struct opensm_transition *transition)
{
        const struct desired_port *wanted = &plan->desired->ports[port];
        const struct p_key *final = plan->final_tables[port];
        uint16_t capacity = observed->tables[port].capacity;
        struct p_key *keys;

        if (!pair_was_read(observed, port)) {
                keep_before(transition);
                return 0;
        }
        transition->after = wanted->wanted;
        transition->n_after = wanted->n_wanted;
        if (!final)
                return 0;
        keys = arena_new_array(a, struct p_key, capacity + transition->n_before);
        if (!keys)
                return -ENOMEM;
        transition->n_after = 0;
        for (uint16_t i = 0; i < capacity; i++)
                if (p_keys_hold(wanted->wanted, wanted->n_wanted, final[i]) ||
                    p_keys_hold(transition->before, transition->n_before, final[i]))
                        keys[transition->n_after++] = final[i];
        for (uint32_t i = 0; i < transition->n_before; i++)
                if (keeps_given(final, capacity, wanted, transition->before[i]))
                        keys[transition->n_after++] = transition->before[i];
        transition->after = keys;
        return 0;
}

int opensm_transitions_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed, const struct knowledge *k,
                               const struct opensm_tables *in_place, struct opensm_transition **ret, uint32_t *ret_n)
{
        const struct subnet *s = plan->subnet;
        struct opensm_transition *transitions = arena_new_array(a, struct opensm_transition, s->n_ports);
        uint32_t n = 0;

        if (!transitions)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct opensm_transition *transition = &transitions[n];

                if (s->ports[i].role != PORT_ENDPORT || s->ports[i].guid.v == 0)
                        continue;
                *transition = (struct opensm_transition) {
                        .port = i,
                        .record = knowledge_find_port(k, s, i),
                        .guid = s->ports[i].guid,
                        .label = subnet_port_label(a, s, i),
                        .capacity = subnet_port_capacity(s, &s->ports[i]),
                };
                if (!transition->label || set_before(a, observed, i, k, in_place, transition) < 0 ||
                    drop_unknown(a, in_place, &plan->desired->ports[i], was_read(&observed->tables[i]), transition) < 0 ||
                    set_after(a, plan, observed, i, transition) < 0)
                        return -ENOMEM;
                transition->has_surplus = transition->has_surplus && pair_was_read(observed, i);
                n++;
        }
        *ret = transitions;
        *ret_n = n;
        return 0;
}

/* Returns whether the port is silent, or may be. A port that may be back since the discovery does not count: OpenSM can reach it,
 * so its transition is judged like any other. */
static bool is_silent(const struct knowledge *k, uint32_t record)
{
        const struct knowledge_record *r = knowledge_get(k, record);

        return r && (r->presence == KNOWLEDGE_SILENT || (r->presence == KNOWLEDGE_ABSENT && r->may_be_silent));
}

/* The leaf port where a host was plugged in last; NULL: not known, or the record is of a switch. */
static const struct knowledge_record *find_last_leaf(const struct knowledge *k, const struct knowledge_record *r)
{
        const struct subnet_place *last = r->places;

        if (r->name.number == 0 || r->n_places == 0)
                return NULL;
        return knowledge_get(k, knowledge_find(k, (struct knowledge_name) { last->node, last->number, KNOWLEDGE_LEAF }));
}

/* The transition begins with the entries of the port that its last leaf port lets pass. */
static int set_before_by_knowledge(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                                   struct opensm_transition *transition)
{
        const struct knowledge_record *r = knowledge_get(k, transition->record), *leaf = find_last_leaf(k, r);
        struct filter f = {};

        if (leaf && leaf->entries && (leaf->filters[0] || leaf->filters[1] || leaf->filters_unsure))
                f = (struct filter) { true, !leaf->filters_unsure, leaf->entries, leaf->capacity,
                                      find_given(in_place, transition->guid) };
        return set_before_to_usable(a, r->entries, r->capacity, &f, transition);
}

/* A silent port keeps what it may hold. */
static int set_silent(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                      const struct desired_port *wanted, struct opensm_transition *transition)
{
        enum last_known known = last_known(k, transition->record, in_place);
        int r = 0;

        if (known != LAST_READ) {
                set_before_to_given(known == HOLDS_NOTHING ? &nothing_given : find_given(in_place, transition->guid), transition);
        } else {
                r = set_before_by_knowledge(a, k, in_place, transition);
                if (r == 0 && wanted)
                        r = drop_unknown(a, in_place, wanted, false, transition);
        }
        keep_before(transition);
        transition->has_surplus = false;
        return r;
}

/* Entries that pkeyd does not manage stay as they are in the file: when the host returns, only the file can restore them. */
static int set_after_of_absent(struct arena *a, const struct policy *policy, bool keeps_unmanaged,
                               const struct desired_port *wanted, struct opensm_transition *transition)
{
        struct p_key *keys = arena_new_array(a, struct p_key, wanted->n_wanted + transition->n_before);
        uint32_t n = wanted->n_wanted;

        if (!keys)
                return -ENOMEM;
        if (n > 0)
                memcpy(keys, wanted->wanted, n * sizeof(*keys));
        for (uint32_t i = 0; i < transition->n_before; i++)
                if (!policy_manages(policy, keeps_unmanaged, p_key_base(transition->before[i])))
                        keys[n++] = transition->before[i];
        transition->after = keys;
        transition->n_after = n;
        return 0;
}

int opensm_transitions_of_absent(struct arena *a, const struct opensm_absent *absent, const struct subnet *subnet,
                                 const struct knowledge *k, const struct opensm_tables *in_place, struct opensm_transition **ret,
                                 uint32_t *ret_n)
{
        const struct subnet *larger = absent->larger;
        const struct desired *desired = absent->desired;
        struct opensm_transition *transitions = arena_new_array(a, struct opensm_transition, larger->n_ports);
        uint32_t n = 0;
        int r = 0;

        if (!transitions)
                return -ENOMEM;
        for (uint32_t i = 0; i < larger->n_ports; i++) {
                const struct desired_port *wanted = desired ? &desired->ports[i] : NULL;
                struct opensm_transition *transition = &transitions[n];

                if (!subnet_lacks_endport(subnet, &larger->ports[i]))
                        continue;
                *transition = (struct opensm_transition) {
                        .port = SUBNET_NONE,
                        .record = knowledge_find_port(k, larger, i),
                        .guid = larger->ports[i].guid,
                        .label = subnet_port_label(a, larger, i),
                };
                if (!transition->label)
                        return -ENOMEM;
                set_before_to_given(absent->given ? &absent->given[i] : find_given(in_place, transition->guid), transition);
                keep_before(transition);
                if (is_silent(k, transition->record))
                        r = set_silent(a, k, in_place, wanted, transition);
                else if (wanted)
                        r = set_after_of_absent(a, desired->policy, absent->keeps_unmanaged, wanted, transition);
                if (r < 0)
                        return r;
                n++;
        }
        *ret = transitions;
        *ret_n = n;
        return 0;
}

/* ---- phases ---------------------------------------------------------------------------------------------------- */

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

/* The port's set after one phase. The entries of the default partition are always exchanged: of two, OpenSM would move one away
 * from index 0. */
static int compute_phase(struct arena *a, const struct opensm_transition *transition, struct set_pair sets, enum opensm_phase phase,
                         bool exchange, struct partitions_file_port *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, 2 * ((size_t) sets.n_before + sets.n_after));
        bool allow_both = sets.allow_both;
        struct base_change base;
        uint32_t n = 0;

        if (!keys)
                return -ENOMEM;
        while (next_base(&sets, &base))
                n += p_keys_of_membership(base.base, exchange || base.base == P_KEY_DEFAULT_BASE
                                                             ? exchanged_after(phase, base.before, base.after)
                                                             : membership_after(phase, base.before, base.after, allow_both),
                                          keys + n);
        *ret = (struct partitions_file_port) { transition->guid, transition->label, keys, n };
        return 0;
}

static int compute_phases(struct arena *a, const struct opensm_transition *transition, uint32_t at, bool exchange,
                          struct opensm_phases *ret)
{
        struct set_pair sets = { .allow_both = ret->allow_both };
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
static struct set_pair pair_in(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return pair_of(&opensm_phases_before(p, phase)[at], &p->tables[phase][at], p->allow_both);
}

static bool changes_port(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return !are_equal(pair_in(p, phase, at));
}

/* Without a file, every port has what OpenSM gives a port that no file names. */
static bool differs_from_file(const struct opensm_phases *p, uint32_t at)
{
        return !are_equal(pair_of(p->in_place ? &p->in_place[at] : &nothing_given, &p->tables[OPENSM_ADOPT][at], p->allow_both));
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
                ports[i] = *find_given(in_place, p->transitions[i].guid);
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

static bool is_unread(const struct observed *observed, uint32_t port)
{
        uint32_t peer = observed->subnet->ports[port].peer;

        if (observed_table_failed(&observed->tables[port]))
                return true;
        return may_be_filtered(observed->subnet, port) && (peer == SUBNET_NONE || observed_table_failed(&observed->tables[peer]));
}

static void add_changed_bases(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at, struct opensm_bases *bases)
{
        struct set_pair sets = pair_in(p, phase, at);
        struct base_change base;

        while (next_difference(&sets, &base))
                opensm_bases_add(bases, base.base);
}

int opensm_phases_see_unread(struct arena *a, struct opensm_phases *p, enum opensm_phase phase, const struct observed *observed)
{
        struct opensm_bases changed = {};

        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < p->n_ports; i++) {
                if (p->transitions[i].port == SUBNET_NONE || !is_unread(observed, p->transitions[i].port))
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

/* ---- results --------------------------------------------------------------------------------------------------- */

/* Returns whether the table has exactly these entries; ignores the bases `without`, and unless allow_both a limited entry next to
 * the full one. */
static bool holds_exactly(const struct observed_table *t, const struct partitions_file_port *want, bool allow_both,
                          const struct opensm_bases *without)
{
        _cleanup_free_ struct p_key *all = malloc((t->capacity + 1u) * sizeof(*all));

        if (!all)
                return false; /* the table is read again */
        memcpy(all, t->entries, t->capacity * sizeof(*all));
        return are_equal((struct set_pair) { all, want->keys, p_keys_sort(all, t->capacity), want->n_keys, allow_both, without });
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

        return !may_be_filtered(o->subnet, port) || want->n_keys > o->tables[peer].capacity ||
               table_covers(&o->tables[peer], want, without);
}

/* Returns whether the port is in the snapshot and was read. */
static bool was_port_read(const struct opensm_transition *transition, const struct observed *observed)
{
        return transition->port != SUBNET_NONE && was_read(&observed->tables[transition->port]);
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
        if (!pair_was_read(observed, port))
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

/* Returns whether all ports that were read are open, and at least one of them gets that neither by `tables` nor by `before`. A port
 * that the file in place does not name does not count, because that file does not show what OpenSM gives it. */
static bool are_unexpectedly_open(const struct opensm_phases *phases, const struct partitions_file_port *before,
                                  const struct partitions_file_port *tables, const struct observed *observed)
{
        bool unexpected = false;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                bool unnamed = tables == phases->in_place && tables[i].n_keys == 0;

                if (was_port_read(&phases->transitions[i], observed))
                        unexpected = unexpected || !(unnamed || are_equal(pair_of(&open_port, &tables[i], phases->allow_both)) ||
                                                     are_equal(pair_of(&open_port, &before[i], phases->allow_both)));
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
