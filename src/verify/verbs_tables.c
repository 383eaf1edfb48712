/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/verbs_tables.h"

#include <errno.h>
#include <string.h>

/* --- the SMA's table and the kernel's ----------------------------------------------------------------------------- */

/* An entry that the other table does not have at this index. */
struct unmatched {
        struct p_key key;
        uint16_t index;
};

DEFINE_COMPARE(compare_unmatched, struct unmatched, ORDER(a->key.v, b->key.v) ?: ORDER(a->index, b->index))

static struct p_key entry_at(const struct p_key *entries, uint32_t n, uint32_t index)
{
        return index < n ? entries[index] : (struct p_key) {};
}

/* Collects the used entries of `of` that are not at the same index of `other`, sorted by key. */
static uint32_t collect_unmatched(const struct p_key *of, uint32_t n, const struct p_key *other, uint32_t n_other,
                                  struct unmatched *ret)
{
        uint32_t used = 0;

        for (uint32_t i = 0; i < n; i++)
                if (p_key_is_used(of[i]) && entry_at(other, n_other, i).v != of[i].v)
                        ret[used++] = (struct unmatched) { of[i], (uint16_t) i };
        SORT(ret, used, compare_unmatched);
        return used;
}

static uint16_t difference_index(const struct kernel_difference *d)
{
        return d->kind == KERNEL_ONLY ? d->kernel_index : d->sma_index;
}

DEFINE_COMPARE(compare_differences, struct kernel_difference,
               ORDER(difference_index(a), difference_index(b)) ?: ORDER(a->kind, b->kind))

/* Merges both lists by key: a key in both has moved. */
static uint32_t merge_unmatched(const struct unmatched *sma, uint32_t n_sma, const struct unmatched *kernel, uint32_t n_kernel,
                                struct kernel_difference *ret)
{
        uint32_t i = 0, k = 0, n = 0;

        while (i < n_sma || k < n_kernel) {
                if (k == n_kernel || (i < n_sma && sma[i].key.v < kernel[k].key.v)) {
                        ret[n++] = (struct kernel_difference) { KERNEL_LACKS, sma[i].key, .sma_index = sma[i].index };
                        i++;
                } else if (i == n_sma || kernel[k].key.v < sma[i].key.v) {
                        ret[n++] = (struct kernel_difference) { KERNEL_ONLY, kernel[k].key,
                                                                .kernel_index = kernel[k].index };
                        k++;
                } else {
                        ret[n++] = (struct kernel_difference) { KERNEL_MOVED, sma[i].key, sma[i].index, kernel[k].index };
                        i++;
                        k++;
                }
        }
        SORT(ret, n, compare_differences);
        return n;
}

int verbs_tables_compare(struct arena *a, const struct p_key *sma, uint32_t n_sma, const struct p_key *kernel,
                         uint32_t n_kernel, struct discrepancy *ret)
{
        _cleanup_free_ struct unmatched *unmatched = calloc((size_t) n_sma + n_kernel + 1, sizeof(*unmatched));
        uint32_t n_unmatched_sma, n_unmatched_kernel;
        struct kernel_difference *differences;

        if (!unmatched)
                return -ENOMEM;
        n_unmatched_sma = collect_unmatched(sma, n_sma, kernel, n_kernel, unmatched);
        n_unmatched_kernel = collect_unmatched(kernel, n_kernel, sma, n_sma, unmatched + n_unmatched_sma);
        differences = arena_new_array(a, struct kernel_difference, (size_t) n_unmatched_sma + n_unmatched_kernel);
        if (!differences)
                return -ENOMEM;
        ret->n_kernel = merge_unmatched(unmatched, n_unmatched_sma, unmatched + n_unmatched_sma, n_unmatched_kernel, differences);
        ret->kernel = differences;
        return 0;
}

/* --- with a snapshot of the fabric -------------------------------------------------------------------------------- */

/* Makes room for n more discrepancies. */
static int grow(struct arena *a, struct verification *v, uint32_t n)
{
        struct discrepancy *more = arena_new_array(a, struct discrepancy, (size_t) v->n_differ + n);

        if (!more)
                return -ENOMEM;
        if (v->n_differ > 0)
                memcpy(more, v->differ, v->n_differ * sizeof(*more));
        v->differ = more;
        return 0;
}

/* Compares the kernel's table with the desired entries, and adds the discrepancy d to v, which has room for it, if there is any
 * difference. d may have the differences from the SMA's table already. */
static int add_table(struct arena *a, const struct policy *policy, const struct plan_options *options,
                     const struct desired_port *want, const struct kernel_table *t, struct discrepancy *d,
                     struct verification *v)
{
        int r = verify_table(a, policy, options->unmanaged, want, t->entries, t->n_entries, d);

        d->port = t->port;
        d->source = SOURCE_KERNEL;
        if (r == 0 && (d->n_missing > 0 || d->n_unexpected > 0 || d->n_kernel > 0))
                v->differ[v->n_differ++] = *d;
        return r;
}

int verbs_tables_verify(struct arena *a, const struct desired *desired, const struct observed *observed,
                        const struct plan_options *options, const struct kernel_table *tables, uint32_t n_tables,
                        struct verification *v)
{
        int r = grow(a, v, n_tables);

        for (uint32_t i = 0; i < n_tables && r == 0; i++) {
                const struct kernel_table *t = &tables[i];
                const struct observed_table *sma = &observed->tables[t->port];
                struct discrepancy d = {};

                if (sma->source == TABLE_READ)
                        r = verbs_tables_compare(a, sma->entries, sma->capacity, t->entries, t->n_entries, &d);
                r = r ?: add_table(a, desired->policy, options, &desired->ports[t->port], t, &d, v);
        }
        return r;
}

/* --- without a snapshot ------------------------------------------------------------------------------------------- */

/* The desired entries of a table: in each partition the membership that the table has, if it is possible, else the likely one; and
 * its P_Keys of pools, because only the daemon knows the leases. Records in lv where another membership is possible, too. */
static int choose_desired(struct arena *a, const struct possibilities *possible, const struct kernel_table *t,
                          struct local_verification *lv, struct desired_port *ret)
{
        const struct policy *policy = possible->policy;
        struct p_key *wanted = arena_new_array(a, struct p_key, (size_t) policy->n_partitions * 2 + t->n_entries);
        uint32_t n = 0;

        if (!wanted)
                return -ENOMEM;
        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                const struct possible_membership *item = &possible->items[(size_t) t->port * policy->n_partitions + i];
                uint16_t base = policy->partitions[i].base;
                enum membership found = p_keys_membership(t->entries, t->n_entries, base), m = item->likely;
                bool is_possible = item->possible & MEMBERSHIP_BIT(found);

                if (is_possible)
                        m = found;
                if (is_possible && item->possible != MEMBERSHIP_BIT(found) && policy_owns(policy, base))
                        lv->undecided[lv->n_undecided++] = (struct undecided) { t->port, i, found, item->unresolved };
                n += p_keys_of_membership(base, m, wanted + n);
        }
        for (uint32_t k = 0; k < t->n_entries; k++)
                if (policy_pool_of_base(policy, p_key_base(t->entries[k])))
                        wanted[n++] = t->entries[k];
        *ret = (struct desired_port) { wanted, p_keys_sort(wanted, n) };
        return 0;
}

int verbs_tables_verify_local(struct arena *a, const struct possibilities *possible, const struct plan_options *options,
                              const struct kernel_table *tables, uint32_t n_tables, struct local_verification *ret)
{
        struct verification *v = arena_new_object(a, struct verification);
        int r;

        *ret = (struct local_verification) { .v = v };
        ret->undecided = arena_new_array(a, struct undecided, (size_t) n_tables * possible->policy->n_partitions);
        if (!v || !ret->undecided)
                return -ENOMEM;
        r = grow(a, v, n_tables);
        v->n_ports = n_tables;
        for (uint32_t i = 0; i < n_tables && r == 0; i++) {
                struct discrepancy d = {};
                struct desired_port want;

                r = choose_desired(a, possible, &tables[i], ret, &want) ?:
                    add_table(a, possible->policy, options, &want, &tables[i], &d, v);
        }
        return r;
}

DEFINE_WORDS(kernel_difference_kind_to_string, enum kernel_difference_kind, "unknown",
             [KERNEL_LACKS] = "lacks", [KERNEL_ONLY] = "only", [KERNEL_MOVED] = "moved")
