/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/phases.h"

#include <assert.h>
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

static int copy_set(struct arena *a, const struct p_key *keys, uint32_t n, const struct p_key **ret, uint32_t *ret_n)
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

/* What is left of two tidy sets while they are read side by side. */
struct two_sets {
        const struct p_key *before, *after;
        uint32_t n_before, n_after;
        bool allow_both;
        const struct opensm_bases *without; /* bases to pass over; NULL: none */
};

/* One base in both sets. */
struct base_way {
        uint16_t base;
        unsigned before, after;
};

/* The entries of one base at the beginning of a set, of which they are taken. */
static unsigned take_base(const struct p_key **keys, uint32_t *n, uint16_t base, bool allow_both)
{
        unsigned entries = NOTHING;

        for (; *n > 0 && p_key_base(**keys) == base; (*keys)++, (*n)--)
                entries |= p_key_is_full(**keys) ? FULL : LIMITED;
        return level_seen(entries, allow_both);
}

/* The next base, ascending; false: there is none. Every port begins as at least a limited member of the default partition. */
static bool take_way(struct two_sets *s, struct base_way *ret)
{
        uint16_t before = s->n_before > 0 ? p_key_base(*s->before) : UINT16_MAX;
        uint16_t after = s->n_after > 0 ? p_key_base(*s->after) : UINT16_MAX;

        if (s->n_before == 0 && s->n_after == 0)
                return false;
        ret->base = MIN(before, after);
        ret->before = take_base(&s->before, &s->n_before, ret->base, s->allow_both);
        ret->after = take_base(&s->after, &s->n_after, ret->base, s->allow_both);
        if (ret->base == P_KEY_DEFAULT_BASE && ret->before == NOTHING)
                ret->before = LIMITED;
        return true;
}

/* Likewise, the next base in which the sets differ, where being a limited member of the default partition is nothing. */
static bool take_difference(struct two_sets *s, struct base_way *ret)
{
        while (take_way(s, ret)) {
                if (ret->base == P_KEY_DEFAULT_BASE && ret->after == NOTHING)
                        ret->after = LIMITED;
                if (ret->before != ret->after && !(s->without && opensm_bases_have(s->without, ret->base)))
                        return true;
        }
        return false;
}

static struct two_sets sets_of(const struct partitions_file_port *x, const struct partitions_file_port *y, bool allow_both)
{
        return (struct two_sets) { x->keys, y->keys, x->n_keys, y->n_keys, allow_both, NULL };
}

static bool same_sets(struct two_sets s)
{
        struct base_way transition;

        return !take_difference(&s, &transition);
}

/* ---- the file in place ----------------------------------------------------------------------------------------- */

struct grant {
        struct guid guid;
        struct p_key key;
};

static int compare_grants(const void *left, const void *right)
{
        const struct grant *a = left, *b = right;

        return ORDER(a->guid.v, b->guid.v);
}

static size_t add_grants(struct grant *grants, size_t n, const struct partitions_conf_partition *p)
{
        for (const struct partitions_conf_member *m = p->members; m; m = m->next) {
                if (m->who != PARTITIONS_CONF_GUID)
                        continue;
                if (membership_has_limited(m->membership))
                        grants[n++] = (struct grant) { m->guid, p_key_make(p->base, false) };
                if (membership_has_full(m->membership))
                        grants[n++] = (struct grant) { m->guid, p_key_make(p->base, true) };
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

/* NULL: the file does not name it, or there is none. */
static const struct partitions_file_port *find_in(const struct opensm_tables *t, struct guid guid)
{
        uint32_t i = t ? LOWER_BOUND(port, t->ports, t->n_ports, port->guid.v < guid.v) : 0;

        return t && i < t->n_ports && t->ports[i].guid.v == guid.v ? &t->ports[i] : NULL;
}

/* ---- transitions ----------------------------------------------------------------------------------------------- */

static bool was_read(const struct observed_table *t)
{
        return t->entries && t->source == TABLE_READ;
}

/* Now or before. */
static bool is_known(const struct observed_table *t)
{
        return was_read(t) || t->source == TABLE_ASSUMED;
}

/* The table of a switch port, if it filters, and what OpenSM was told of its peer (NULL: nothing, or it is in that table). */
struct filter {
        bool is_on;   /* or may be */
        bool is_sure; /* whether it is */
        const struct p_key *entries;
        uint16_t capacity;
        const struct partitions_file_port *told;
};

static unsigned entries_of_base(const struct p_key *entries, uint32_t n, struct p_key key)
{
        unsigned found = NOTHING;

        for (uint32_t i = 0; i < n; i++)
                if (p_key_is_used(entries[i]) && p_key_base(entries[i]) == p_key_base(key))
                        found |= p_key_is_full(entries[i]) ? FULL : LIMITED;
        return found;
}

/* How far the switch port lets a P_Key of its peer through. OpenSM writes both: what it was told may pass by now. */
static unsigned let_through(const struct filter *f, struct p_key key)
{
        if (!f->is_on)
                return FULL;
        return entries_of_base(f->entries, f->capacity, key) |
               (f->told ? entries_of_base(f->told->keys, f->told->n_keys, key) : 0u);
}

/* OpenSM may have turned its filter on or off since the discovery, or the switch did not say. */
static bool may_be_switched(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        uint32_t record = knowledge_find_port(k, observed->subnet, port);

        return record != KNOWLEDGE_NONE && knowledge_get(k, record)->filters_unsure;
}

/* May this switch port filter, and what it lets through is known? */
static bool filters(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        const struct observed_table *t = &observed->tables[port];

        return is_known(t) && (t->enforce_inbound || t->enforce_outbound || may_be_switched(observed, port, k));
}

/* Does the switch port keep back something of this entry? Being a limited member of the default partition every file gives. */
static bool is_kept_back(unsigned passes, struct p_key key)
{
        if (p_key_is_full(key))
                return !(passes & FULL);
        return passes == NOTHING && p_key_base(key) != P_KEY_DEFAULT_BASE;
}

/* What the port can use of these entries. */
static int take_usable(struct arena *a, const struct p_key *entries, uint16_t capacity, const struct filter *f,
                       struct opensm_transition *transition)
{
        struct p_key *keys = arena_new_array(a, struct p_key, capacity);

        if (!keys)
                return -ENOMEM;
        transition->n_before = 0;
        for (uint16_t i = 0; i < capacity; i++) {
                unsigned passes = let_through(f, entries[i]);

                if (!p_key_is_used(entries[i]))
                        continue;
                transition->is_undecided |= !f->is_sure && is_kept_back(passes, entries[i]);
                if (passes != NOTHING)
                        keys[transition->n_before++] = passes & FULL ? entries[i] : p_key_make(p_key_base(entries[i]), false);
        }
        transition->before = keys;
        return 0;
}

static int usable_entries(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                          const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        uint32_t peer = observed->subnet->ports[port].peer;
        struct filter f = {};

        if (peer != SUBNET_NONE && filters(observed, peer, k)) {
                const struct observed_table *filter = &observed->tables[peer];
                bool is_sure = !may_be_switched(observed, peer, k);

                f = (struct filter) { true, is_sure, filter->entries, filter->capacity,
                                      is_sure && was_read(filter) ? NULL : find_in(in_place, transition->guid) };
        }
        return take_usable(a, t->entries, t->capacity, &f, transition);
}

/* The port says that it filters, and its switch did not say how large the table is. */
static bool filters_by_unknown(const struct subnet *s, const struct subnet_port *p)
{
        return subnet_port_node(s, p)->incomplete && (p->enforce_inbound || p->enforce_outbound);
}

/* May the other end of its link filter? What did not answer discovery may. */
static bool may_be_filtered(const struct subnet *s, uint32_t port)
{
        uint32_t beside = s->ports[port].peer;

        if (beside == SUBNET_NONE)
                return subnet_port_is_behind_unknown(s, &s->ports[port]);
        return subnet_port_can_enforce(s, &s->ports[beside]) || filters_by_unknown(s, &s->ports[beside]);
}

/* With the leaf port beside it. */
static bool pair_was_read(const struct observed *observed, uint32_t port)
{
        uint32_t beside = observed->subnet->ports[port].peer;

        if (!was_read(&observed->tables[port]))
                return false;
        return !may_be_filtered(observed->subnet, port) || (beside != SUBNET_NONE && was_read(&observed->tables[beside]));
}

/* What passes a switch port that filters, or may, and was never read, is not known: a file that gives it what the port holds could
 * open it. */
static bool is_shut_off(const struct observed *observed, uint32_t port, const struct knowledge *k)
{
        uint32_t beside = observed->subnet->ports[port].peer;
        const struct observed_table *t = beside == SUBNET_NONE ? NULL : &observed->tables[beside];

        if (!may_be_filtered(observed->subnet, port) || (t && is_known(t)))
                return false;
        return !t || t->enforce_inbound || t->enforce_outbound || may_be_switched(observed, beside, k);
}

static void go_from(const struct partitions_file_port *told, struct opensm_transition *transition)
{
        transition->before = told ? told->keys : NULL;
        transition->n_before = told ? told->n_keys : 0;
}

static void go_from_file(const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        go_from(find_in(in_place, transition->guid), transition);
}

/* What is known of a port that cannot be read. */
enum last_known {
        LAST_READ,   /* what it held then */
        LAST_TOLD,   /* what the file in place gives it: that may have been done since, or it was never read */
        HOLDS_NOTHING, /* a person vouches for it */
};

static enum last_known last_known(const struct knowledge *k, uint32_t record, const struct opensm_tables *in_place)
{
        const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : knowledge_get(k, record);

        if (r && r->vouched)
                return HOLDS_NOTHING;
        return r && r->entries && (r->n_writes == 0 || !in_place) ? LAST_READ : LAST_TOLD;
}

static int set_before(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                      const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        enum last_known known = last_known(k, transition->record, in_place);

        if (!is_shut_off(observed, port, k) && (was_read(t) || (known == LAST_READ && t->source == TABLE_ASSUMED)))
                return usable_entries(a, observed, port, k, in_place, transition);
        if (known != HOLDS_NOTHING)
                go_from_file(in_place, transition);
        return 0;
}

/* What the file in place does not say of a port, OpenSM may have taken since the table was read; to tell it that the port has this
 * would give it back, which only the policy may. What was read after the file was done, OpenSM does not know of, nor perhaps of
 * what a port has that the file does not name: that it has to be told before it takes it away. */
static int drop_unknown(struct arena *a, const struct opensm_tables *in_place, const struct desired_port *wanted, bool is_read,
                        struct opensm_transition *transition)
{
        const struct partitions_file_port *told = find_in(in_place, transition->guid);
        uint32_t n_told = told ? told->n_keys : 0, n = 0, n_kept;
        struct p_key *keys;

        if (!in_place || (is_read && (in_place->is_done || n_told == 0)))
                return 0;
        keys = arena_new_array(a, struct p_key, transition->n_before + n_told);
        if (!keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < transition->n_before; i++)
                if ((told && p_keys_hold(told->keys, n_told, transition->before[i])) ||
                    p_keys_hold(wanted->wanted, wanted->n_wanted, transition->before[i]))
                        keys[n++] = transition->before[i];
        n_kept = n;
        for (uint32_t i = 0; i < n_told; i++) /* it has the base otherwise than it was told */
                if (entries_of_base(transition->before, transition->n_before, told->keys[i]) != NOTHING &&
                    entries_of_base(keys, n_kept, told->keys[i]) == NOTHING)
                        keys[n++] = told->keys[i];
        transition->is_late = n_kept < transition->n_before;
        transition->before = keys;
        transition->n_before = n;
        return 0;
}

static void stay(struct opensm_transition *transition)
{
        transition->after = transition->before;
        transition->n_after = transition->n_before;
}

/* The port holds this base, which is not pkeyd's, otherwise than OpenSM was told: that stays as it was told. */
static bool stays_as_told(const struct p_key *final, uint16_t capacity, const struct desired_port *wanted, struct p_key told)
{
        return !p_keys_hold(final, capacity, told) && entries_of_base(final, capacity, told) != NOTHING &&
               entries_of_base(wanted->wanted, wanted->n_wanted, told) == NOTHING;
}

/* The end of the plan. An entry that is not pkeyd's and that the switch port does not let through is left out: OpenSM would
 * open the switch port to it. */
static int set_after(struct arena *a, const struct plan *plan, const struct observed *observed, uint32_t port,
                     struct opensm_transition *transition)
{
        const struct desired_port *wanted = &plan->desired->ports[port];
        const struct p_key *final = plan->final_tables[port];
        uint16_t capacity = observed->tables[port].capacity;
        struct p_key *keys;

        if (!pair_was_read(observed, port)) {
                stay(transition);
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
                if (stays_as_told(final, capacity, wanted, transition->before[i]))
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
                transition->is_late = transition->is_late && pair_was_read(observed, i);
                n++;
        }
        *ret = transitions;
        *ret_n = n;
        return 0;
}

/* Or may be. One that may be back since the discovery OpenSM can reach: its transition is judged like that of any other. */
static bool is_silent(const struct knowledge *k, uint32_t record)
{
        const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : knowledge_get(k, record);

        return r && (r->presence == KNOWLEDGE_SILENT || (r->presence == KNOWLEDGE_ABSENT && r->may_be_silent));
}

/* Where a host was plugged in last. A switch is behind no filter. */
static uint32_t find_last_leaf(const struct knowledge *k, const struct knowledge_record *r)
{
        if (r->name.number == 0 || r->n_places == 0)
                return KNOWLEDGE_NONE;
        return knowledge_find(k, (struct knowledge_name) { r->places[0].node, r->places[0].number, KNOWLEDGE_LEAF });
}

/* What it could use of what it held, where it is. */
static int usable_by_silent(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                            struct opensm_transition *transition)
{
        const struct knowledge_record *r = knowledge_get(k, transition->record);
        uint32_t place = find_last_leaf(k, r);
        const struct knowledge_record *leaf = place == KNOWLEDGE_NONE ? NULL : knowledge_get(k, place);
        struct filter f = {};

        if (leaf && leaf->entries && (leaf->filters[0] || leaf->filters[1] || leaf->filters_unsure))
                f = (struct filter) { true, !leaf->filters_unsure, leaf->entries, leaf->capacity,
                                      find_in(in_place, transition->guid) };
        return take_usable(a, r->entries, r->capacity, &f, transition);
}

static int stay_silent(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                       const struct desired_port *wanted, struct opensm_transition *transition)
{
        int r = 0;

        switch (last_known(k, transition->record, in_place)) {
        case LAST_READ:
                r = usable_by_silent(a, k, in_place, transition);
                if (r == 0 && wanted)
                        r = drop_unknown(a, in_place, wanted, false, transition);
                break;
        case LAST_TOLD:
                go_from_file(in_place, transition);
                break;
        case HOLDS_NOTHING:
                transition->n_before = 0;
                break;
        }
        stay(transition);
        transition->is_late = false;
        return r;
}

/* What pkeyd does not manage stays as OpenSM was told: nobody else would give it back when the host returns. */
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
                go_from(absent->given ? &absent->given[i] : find_in(in_place, transition->guid), transition);
                stay(transition);
                if (is_silent(k, transition->record))
                        r = stay_silent(a, k, in_place, wanted, transition);
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

/* Likewise, never with both entries on the way: one takes the place of the other. */
static unsigned exchanged_after(enum opensm_phase phase, unsigned before, unsigned after)
{
        if (phase == OPENSM_RAISE && after != NOTHING)
                return before == LIMITED && (after & FULL) ? (unsigned) FULL : before;
        if (phase == OPENSM_LOWER && after == (FULL | LIMITED))
                return before == after ? after : (unsigned) FULL;
        return entries_after(phase, before, after, true);
}

/* The port's sets after one phase. Of the default partition both entries would not do: OpenSM would move one of them away from
 * index 0. */
static int go(struct arena *a, const struct opensm_transition *transition, struct two_sets sets, enum opensm_phase phase,
              bool exchange, struct partitions_file_port *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, 2 * ((size_t) sets.n_before + sets.n_after));
        bool allow_both = sets.allow_both;
        struct base_way base;
        uint32_t n = 0;

        if (!keys)
                return -ENOMEM;
        while (take_way(&sets, &base)) {
                unsigned entries = exchange || base.base == P_KEY_DEFAULT_BASE
                                           ? exchanged_after(phase, base.before, base.after)
                                           : entries_after(phase, base.before, base.after, allow_both);

                if (entries & LIMITED)
                        keys[n++] = p_key_make(base.base, false);
                if (entries & FULL)
                        keys[n++] = p_key_make(base.base, true);
        }
        *ret = (struct partitions_file_port) { transition->guid, transition->label, keys, n };
        return 0;
}

static int go_all(struct arena *a, const struct opensm_transition *transition, uint32_t at, bool exchange,
                  struct opensm_phases *ret)
{
        struct two_sets sets = { .allow_both = ret->allow_both };
        int r;

        r = copy_set(a, transition->before, transition->n_before, &sets.before, &sets.n_before);
        if (r == 0)
                r = copy_set(a, transition->after, transition->n_after, &sets.after, &sets.n_after);
        for (enum opensm_phase phase = 0; phase < OPENSM_N_PHASES && r == 0; phase++)
                r = go(a, transition, sets, phase, exchange, &ret->tables[phase][at]);
        return r;
}

/* The first phase in which it has more entries than its table; OPENSM_N_PHASES: it has room for all. */
static enum opensm_phase overflows_in(const struct opensm_phases *p, uint32_t at)
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
static struct two_sets sets_in(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return sets_of(&opensm_phases_before(p, phase)[at], &p->tables[phase][at], p->allow_both);
}

static bool differs(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at)
{
        return !same_sets(sets_in(p, phase, at));
}

/* Where there is none, a port is only what it is without being named. */
static bool differs_from_file(const struct opensm_phases *p, uint32_t at)
{
        static const struct partitions_file_port unnamed;

        return !same_sets(sets_of(p->in_place ? &p->in_place[at] : &unnamed, &p->tables[OPENSM_ADOPT][at], p->allow_both));
}

static void find_needed(struct opensm_phases *p)
{
        memset(p->needed, 0, sizeof(p->needed));
        for (uint32_t i = 0; i < p->n_ports; i++) {
                p->needed[OPENSM_ADOPT] = p->needed[OPENSM_ADOPT] || p->transitions[i].is_late || differs_from_file(p, i);
                for (enum opensm_phase phase = OPENSM_REVOKE; phase < OPENSM_N_PHASES; phase++)
                        p->needed[phase] = p->needed[phase] || differs(p, phase, i);
        }
}

static int take_in_place(struct arena *a, const struct opensm_tables *in_place, struct opensm_phases *p)
{
        struct partitions_file_port *ports = in_place ? arena_new_array(a, struct partitions_file_port, p->n_ports) : NULL;

        if (in_place && !ports)
                return -ENOMEM;
        for (uint32_t i = 0; in_place && i < p->n_ports; i++) {
                const struct partitions_file_port *found = find_in(in_place, p->transitions[i].guid);

                ports[i] = (struct partitions_file_port) { p->transitions[i].guid, p->transitions[i].label, NULL, 0 };
                if (found) {
                        ports[i].keys = found->keys;
                        ports[i].n_keys = found->n_keys;
                }
        }
        p->in_place = ports;
        return 0;
}

static void check_capacity(const struct opensm_phases *p, struct findings *findings)
{
        uint32_t n_told = 0;

        for (uint32_t i = 0; i < p->n_ports && n_told < MAX_TOLD; i++) {
                enum opensm_phase phase = overflows_in(p, i);

                if (phase == OPENSM_N_PHASES)
                        continue;
                (void) findings_add(findings, FINDING_ERROR, FINDING_PLAN_CAPACITY_TRANSITION, NULL,
                                    "%s: its table of %u entries would have to hold %u on the way (%s)", p->transitions[i].label,
                                    p->transitions[i].capacity, p->tables[phase][i].n_keys, opensm_phase_to_string(phase));
                n_told++;
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
        if (take_in_place(a, in_place, ret) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_transitions; i++)
                if (go_all(a, &transitions[i], i, false, ret) < 0 ||
                    (overflows_in(ret, i) < OPENSM_N_PHASES && go_all(a, &transitions[i], i, true, ret) < 0))
                        return -ENOMEM;
        find_needed(ret);
        check_capacity(ret, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}

/* ---- what is held ---------------------------------------------------------------------------------------------- */

static bool has_any(const struct partitions_file_port *p, const struct opensm_bases *bases)
{
        for (uint32_t i = 0; i < p->n_keys; i++)
                if (opensm_bases_have(bases, p_key_base(p->keys[i])))
                        return true;
        return false;
}

static void add_keys(struct p_key *keys, uint32_t *n, const struct partitions_file_port *from, const struct opensm_bases *bases,
                     bool held)
{
        for (uint32_t i = 0; i < from->n_keys; i++)
                if (opensm_bases_have(bases, p_key_base(from->keys[i])) == held)
                        keys[(*n)++] = from->keys[i];
}

/* The held bases as in `before`, all others as they are. */
static int hold_at(struct arena *a, const struct partitions_file_port *before, const struct opensm_bases *bases,
                   struct partitions_file_port *at)
{
        struct p_key *keys;
        uint32_t n = 0;

        if (!has_any(before, bases) && !has_any(at, bases))
                return 0;
        keys = arena_new_array(a, struct p_key, (size_t) before->n_keys + at->n_keys);
        if (!keys)
                return -ENOMEM;
        add_keys(keys, &n, before, bases, true);
        add_keys(keys, &n, at, bases, false);
        at->n_keys = tidy(keys, n);
        at->keys = keys;
        return 0;
}

int opensm_phases_hold(struct arena *a, struct opensm_phases *p, enum opensm_phase from, const struct opensm_bases *bases)
{
        for (size_t i = 0; i < sizeof(bases->bits); i++)
                p->held.bits[i] |= bases->bits[i];
        for (enum opensm_phase phase = from; phase < OPENSM_N_PHASES; phase++) {
                const struct partitions_file_port *before = opensm_phases_before(p, phase);

                if (phase == OPENSM_ADOPT && p->in_place)
                        before = p->in_place;
                for (uint32_t i = 0; i < p->n_ports; i++)
                        if (hold_at(a, &before[i], bases, &p->tables[phase][i]) < 0)
                                return -ENOMEM;
        }
        find_needed(p);
        return 0;
}

static bool was_asked_in_vain(const struct observed *observed, uint32_t port)
{
        const struct observed_table *t = &observed->tables[port];

        return t->entries && t->source != TABLE_READ && t->failure != MAD_ANSWERED;
}

static bool is_unread(const struct observed *observed, uint32_t port)
{
        uint32_t beside = observed->subnet->ports[port].peer;

        if (was_asked_in_vain(observed, port))
                return true;
        return may_be_filtered(observed->subnet, port) && (beside == SUBNET_NONE || was_asked_in_vain(observed, beside));
}

static void add_changed(const struct opensm_phases *p, enum opensm_phase phase, uint32_t at, struct opensm_bases *bases)
{
        struct two_sets sets = sets_in(p, phase, at);
        struct base_way base;

        while (take_difference(&sets, &base))
                opensm_bases_add(bases, base.base);
}

int opensm_phases_see_unread(struct arena *a, struct opensm_phases *p, enum opensm_phase phase, const struct observed *observed)
{
        struct opensm_bases changed = {};

        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < p->n_ports; i++) {
                if (p->transitions[i].port == SUBNET_NONE || !is_unread(observed, p->transitions[i].port))
                        continue;
                add_changed(p, phase, i, &changed);
                for (enum opensm_phase later = phase + 1; later < OPENSM_N_PHASES; later++)
                        p->tables[later][i] = p->tables[phase][i];
        }
        return opensm_phases_hold(a, p, phase + 1, &changed);
}

bool opensm_phases_show(const struct opensm_phases *p, enum opensm_phase phase)
{
        for (uint32_t i = 0; i < p->n_ports; i++)
                if (p->transitions[i].port != SUBNET_NONE && differs(p, phase, i))
                        return true;
        return false;
}

int opensm_phases_changed(struct arena *a, const struct opensm_phases *phases, enum opensm_phase phase,
                          const struct subnet *subnet, const uint32_t **ret, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, 2 * (size_t) phases->n_ports);
        uint32_t n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                uint32_t port = phases->transitions[i].port, beside;

                if (port == SUBNET_NONE || (phase != OPENSM_ADOPT && !differs(phases, phase, i)))
                        continue;
                if (subnet_port_is_managed(subnet, &subnet->ports[port]))
                        ports[n++] = port;
                beside = subnet->ports[port].peer;
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

/* Exactly these, but for the bases `without`; limited beside full only counts with allow_both. */
static bool holds(const struct observed_table *t, const struct partitions_file_port *want, bool allow_both,
                  const struct opensm_bases *without)
{
        struct p_key keys[UINT8_MAX + 1];
        struct p_key *all = t->capacity <= ELEMENTS(keys) ? keys : calloc(t->capacity, sizeof(*all));
        uint32_t n;
        bool same;

        if (!all)
                return false; /* looked at again */
        memcpy(all, t->entries, t->capacity * sizeof(*all));
        n = tidy(all, t->capacity);
        same = same_sets((struct two_sets) { all, want->keys, n, want->n_keys, allow_both, without });
        if (all != keys)
                free(all);
        return same;
}

static bool lets_through(const struct observed_table *t, const struct partitions_file_port *want,
                         const struct opensm_bases *without)
{
        const struct filter f = { .is_on = true, .entries = t->entries, .capacity = t->capacity };

        for (uint32_t i = 0; i < want->n_keys; i++) {
                unsigned passes = let_through(&f, want->keys[i]);

                if (opensm_bases_have(without, p_key_base(want->keys[i])))
                        continue;
                if (passes == NOTHING || (p_key_is_full(want->keys[i]) && !(passes & FULL)))
                        return false;
        }
        return true;
}

/* A switch port whose table is too small is not filled and does not enforce. */
static bool beside_is_right(const struct observed *o, uint32_t port, const struct partitions_file_port *want,
                            const struct opensm_bases *without)
{
        uint32_t beside = o->subnet->ports[port].peer;

        return !may_be_filtered(o->subnet, port) || want->n_keys > o->tables[beside].capacity ||
               lets_through(&o->tables[beside], want, without);
}

/* The transition is of a port of the snapshot that was read. */
static bool has_table(const struct opensm_transition *transition, const struct observed *observed)
{
        return transition->port != SUBNET_NONE && was_read(&observed->tables[transition->port]);
}

enum opensm_reached opensm_phases_reached(const struct opensm_phases *p, enum opensm_phase phase, uint32_t transition,
                                          const struct observed *observed)
{
        const struct partitions_file_port *want = &p->tables[phase][transition];
        uint32_t port = p->transitions[transition].port;

        if (!has_table(&p->transitions[transition], observed))
                return OPENSM_UNREAD;
        if (!holds(&observed->tables[port], want, p->allow_both, &p->held))
                return OPENSM_MISSING;
        if (!pair_was_read(observed, port))
                return OPENSM_UNREAD;
        return beside_is_right(observed, port, want, &p->held) ? OPENSM_REACHED : OPENSM_MISSING;
}

uint32_t opensm_phases_missing(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed,
                               uint32_t *ret_first)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                if (opensm_phases_reached(phases, phase, i, observed) != OPENSM_MISSING)
                        continue;
                if (n++ == 0)
                        *ret_first = phases->transitions[i].port;
        }
        return n;
}

/* What OpenSM gives every port if it cannot read its file. */
static const struct p_key everything = { P_KEY_DEFAULT_BASE | P_KEY_FULL_BIT };
static const struct partitions_file_port open_port = { .keys = &everything, .n_keys = 1 };

bool opensm_phases_are_open(const struct opensm_phases *phases, const struct observed *observed)
{
        for (uint32_t i = 0; i < phases->n_ports; i++) {
                const struct opensm_transition *transition = &phases->transitions[i];

                if (has_table(transition, observed) &&
                    !holds(&observed->tables[transition->port], &open_port, phases->allow_both, NULL))
                        return false;
        }
        return true;
}

/* All are open, and to one of them neither these tables give that nor those before. Of a file in place that does not name a port
 * nothing is known there. */
static bool looks_open(const struct opensm_phases *phases, const struct partitions_file_port *before,
                       const struct partitions_file_port *tables, const struct observed *observed)
{
        bool unexpected = false;

        for (uint32_t i = 0; i < phases->n_ports; i++) {
                bool unnamed = tables == phases->in_place && tables[i].n_keys == 0;

                if (has_table(&phases->transitions[i], observed))
                        unexpected = unexpected || !(unnamed || same_sets(sets_of(&open_port, &tables[i], phases->allow_both)) ||
                                                     same_sets(sets_of(&open_port, &before[i], phases->allow_both)));
        }
        return unexpected && opensm_phases_are_open(phases, observed);
}

bool opensm_phases_fell_back(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed)
{
        return looks_open(phases, opensm_phases_before(phases, phase), phases->tables[phase], observed);
}

bool opensm_phases_had_fallen_back(const struct opensm_phases *phases, const struct observed *observed)
{
        const struct partitions_file_port *wanted = phases->tables[OPENSM_GRANT];

        return looks_open(phases, wanted, wanted, observed) &&
               (!phases->in_place || looks_open(phases, phases->in_place, phases->in_place, observed));
}
