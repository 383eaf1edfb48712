/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/transitions.h"

#include <errno.h>
#include <string.h>

#include "opensm/leaf_filter.h"

/* The transition begins with the entries that pass the filter; where only the limited one passes, a full one becomes limited. */
static int begin_with_passing(struct arena *a, const struct p_key *entries, uint16_t capacity, const struct opensm_filter *f,
                              struct opensm_transition *transition)
{
        struct p_key *keys = arena_new_array(a, struct p_key, capacity);

        if (!keys)
                return -ENOMEM;
        transition->n_before = 0;
        for (uint16_t i = 0; i < capacity; i++) {
                uint16_t base = p_key_base(entries[i]);
                enum membership passes = opensm_filter_passes(f, base);

                if (!p_key_is_used(entries[i]))
                        continue;
                transition->is_undecided |= !f->is_sure && opensm_filter_drops(passes, entries[i]);
                if (passes != MEMBERSHIP_NONE)
                        keys[transition->n_before++] = membership_has_full(passes) ? entries[i] : p_key_make(base, false);
        }
        transition->before = keys;
        return 0;
}

static int begin_with_table(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                            const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        struct opensm_filter f = opensm_filter_of_port(observed, port, k, opensm_find_given(in_place, transition->guid));

        return begin_with_passing(a, t->entries, t->capacity, &f, transition);
}

/* The transition begins with what a file gives the port. */
static void begin_with_given(const struct partitions_file_port *given, struct opensm_transition *transition)
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

/* The transition begins with what may have been written to the port since it was read. */
static void begin_with_last_given(enum last_known known, const struct opensm_tables *in_place,
                                  struct opensm_transition *transition)
{
        bool is_empty = known == HOLDS_NOTHING;

        begin_with_given(is_empty ? &opensm_nothing_given : opensm_find_given(in_place, transition->guid), transition);
}

static int begin_present(struct arena *a, const struct observed *observed, uint32_t port, const struct knowledge *k,
                         const struct opensm_tables *in_place, struct opensm_transition *transition)
{
        const struct observed_table *t = &observed->tables[port];
        enum last_known known = last_known(k, transition->record, in_place);

        if (!opensm_filter_is_unread(observed, port, k) &&
            (opensm_table_was_read(t) || (known == LAST_READ && t->source == TABLE_ASSUMED)))
                return begin_with_table(a, observed, port, k, in_place, transition);
        begin_with_last_given(known, in_place, transition);
        return 0;
}

/* Drops what neither the file in place nor the policy gives the port. OpenSM may have removed it since the table was read, and a
 * file with it would restore it. Not if the table was read after OpenSM carried out the file, or the file does not name the port:
 * then they may be another writer's, and the first file must have them, because OpenSM removes only what an earlier file gave. */
static int leave_out_unknown(struct arena *a, const struct opensm_tables *in_place, const struct desired_port *wanted, bool is_read,
                             struct opensm_transition *transition)
{
        const struct partitions_file_port *given = opensm_find_given(in_place, transition->guid);
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

/* What stays as it is has no surplus: no file removes it. */
static void end_as_begun(struct opensm_transition *transition)
{
        transition->has_surplus = false;
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
static int end_present(struct arena *a, const struct plan *plan, const struct observed *observed, uint32_t port,
                       struct opensm_transition *transition)
{
        const struct desired_port *wanted = &plan->desired->ports[port];
        const struct p_key *final = plan->final_tables[port];
        uint16_t capacity = observed->tables[port].capacity;
        struct p_key *keys;

        if (!opensm_pair_was_read(observed, port)) {
                end_as_begun(transition);
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
                        .index0_base = desired_index0_base(plan->desired, i),
                };
                if (!transition->label || begin_present(a, observed, i, k, in_place, transition) < 0 ||
                    leave_out_unknown(a, in_place, &plan->desired->ports[i], opensm_table_was_read(&observed->tables[i]),
                                      transition) < 0 ||
                    end_present(a, plan, observed, i, transition) < 0)
                        return -ENOMEM;
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

/* The transition begins with the entries of the port that its last leaf port lets pass. */
static int begin_with_record(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                             struct opensm_transition *transition)
{
        const struct knowledge_record *r = knowledge_get(k, transition->record);
        struct opensm_filter f = opensm_filter_of_record(k, r, opensm_find_given(in_place, transition->guid));

        return begin_with_passing(a, r->entries, r->capacity, &f, transition);
}

/* A silent port keeps what it may hold. */
static int keep_silent(struct arena *a, const struct knowledge *k, const struct opensm_tables *in_place,
                       const struct desired_port *wanted, struct opensm_transition *transition)
{
        enum last_known known = last_known(k, transition->record, in_place);
        int r = 0;

        if (known != LAST_READ) {
                begin_with_last_given(known, in_place, transition);
        } else {
                r = begin_with_record(a, k, in_place, transition);
                if (r == 0 && wanted)
                        r = leave_out_unknown(a, in_place, wanted, false, transition);
        }
        end_as_begun(transition);
        return r;
}

/* Entries that pkeyd does not manage stay as they are in the file: when the host returns, only the file can restore them. */
static int end_absent(struct arena *a, const struct policy *policy, bool keeps_unmanaged,
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
                        .index0_base = desired ? desired_index0_base(desired, i) : 0,
                };
                if (!transition->label)
                        return -ENOMEM;
                begin_with_given(absent->given ? &absent->given[i] : opensm_find_given(in_place, transition->guid), transition);
                end_as_begun(transition);
                if (is_silent(k, transition->record))
                        r = keep_silent(a, k, in_place, wanted, transition);
                else if (wanted)
                        r = end_absent(a, desired->policy, absent->keeps_unmanaged, wanted, transition);
                if (r < 0)
                        return r;
                n++;
        }
        *ret = transitions;
        *ret_n = n;
        return 0;
}
