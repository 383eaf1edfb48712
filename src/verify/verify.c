/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/verify.h"

#include <assert.h>
#include <errno.h>

#include "util/hash.h"

/* --- one table --------------------------------------------------------------------------------------------------- */

static bool may_touch(const struct policy *policy, enum settings_unmanaged unmanaged, struct p_key key)
{
        return policy_manages(policy, unmanaged == UNMANAGED_KEEP, p_key_base(key));
}

int verify_table(struct arena *a, const struct policy *policy, enum settings_unmanaged unmanaged,
                 const struct desired_port *want, const struct p_key *entries, uint32_t n_entries, struct discrepancy *ret)
{
        _cleanup_free_ struct p_key *keys = calloc((size_t) n_entries * 2 + want->n_wanted + 1, sizeof(*keys));
        struct p_key *unexpected = keys ? keys + n_entries : NULL, *missing = keys ? unexpected + n_entries : NULL;
        uint32_t n = 0, n_missing = 0, n_unexpected = 0;

        if (!keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_entries; i++)
                if (p_key_is_used(entries[i]) && may_touch(policy, unmanaged, entries[i]))
                        keys[n++] = entries[i];
        SORT(keys, n, p_key_compare);
        for (uint32_t i = 0, k = 0; i < n || k < want->n_wanted;) {
                int c = i == n ? 1 : k == want->n_wanted ? -1 : p_key_compare(&keys[i], &want->wanted[k]);

                if (c < 0)
                        unexpected[n_unexpected++] = keys[i];
                if (c > 0 && may_touch(policy, unmanaged, want->wanted[k]))
                        missing[n_missing++] = want->wanted[k];
                i += c <= 0;
                k += c >= 0;
        }
        ret->n_missing = n_missing;
        ret->n_unexpected = n_unexpected;
        if (n_missing == 0 && n_unexpected == 0)
                return 0;
        ret->missing = arena_copy(a, missing, n_missing);
        ret->unexpected = arena_copy(a, unexpected, n_unexpected);
        return ret->missing && ret->unexpected ? 0 : -ENOMEM;
}

/* --- enforcing ports ---------------------------------------------------------------------------------------------- */

struct verifier {
        struct arena *arena;
        const struct desired *desired;
        const struct observed *observed;
        const struct plan_options *options;
        struct verification *v;
};

static bool is_managed(const struct verifier *vf, struct p_key key)
{
        return may_touch(vf->desired->policy, vf->options->unmanaged, key);
}

/* Returns whether the desired entries and the entries that pkeyd may not write do not fit into the table. */
static bool overflows(const struct verifier *vf, uint32_t port)
{
        const struct observed_table *t = &vf->observed->tables[port];
        uint32_t needed = vf->desired->ports[port].n_wanted;

        for (uint32_t i = 0; i < t->capacity; i++)
                needed += p_key_is_used(t->entries[i]) && !is_managed(vf, t->entries[i]);
        return needed > t->capacity;
}

/* Returns whether the planner turns the enforcement of this port off and leaves its table as it is. */
static bool gives_up_enforcement(const struct verifier *vf, uint32_t port)
{
        return vf->desired->subnet->ports[port].role == PORT_SWITCH_EXTERNAL &&
               (vf->options->enforcement == ENFORCEMENT_OFF ||
                vf->options->enforcement_overflow == OVERFLOW_DISABLE) &&
               overflows(vf, port);
}

static bool port_covers(const struct verifier *vf, uint32_t port, struct p_key key)
{
        const struct desired_port *want = &vf->desired->ports[port];
        const struct observed_table *t = &vf->observed->tables[port];

        return p_keys_cover(want->wanted, want->n_wanted, key) || p_keys_cover(t->entries, t->capacity, key);
}

/* Returns whether enforcement would cut off an entry of the peer that pkeyd may not write. Then the planner leaves the bits as they
 * are. */
static bool keeps_enforcement_bits(const struct verifier *vf, uint32_t port)
{
        uint32_t peer = vf->desired->subnet->ports[port].peer;
        const struct observed_table *t = &vf->observed->tables[peer];

        for (uint32_t i = 0; t->source != TABLE_UNKNOWN && i < t->capacity; i++)
                if (p_key_is_used(t->entries[i]) && !is_managed(vf, t->entries[i]) && !port_covers(vf, port, t->entries[i]))
                        return true;
        return false;
}

static bool enforcement_differs(const struct verifier *vf, uint32_t port, bool gives_up)
{
        const struct subnet *s = vf->desired->subnet;
        const struct observed_table *t = &vf->observed->tables[port];
        const struct subnet_node *node = subnet_port_node(s, &s->ports[port]);
        enum settings_enforcement e = vf->options->enforcement;
        bool inbound = (e == ENFORCEMENT_BOTH || e == ENFORCEMENT_IN) && node->inbound_enforcement_cap;
        bool outbound = (e == ENFORCEMENT_BOTH || e == ENFORCEMENT_OUT) && node->outbound_enforcement_cap;

        if (!subnet_port_can_enforce(s, &s->ports[port]))
                return false;
        if (t->enforcement_doubted)
                return true;
        if (gives_up)
                inbound = outbound = false;
        else if ((inbound || outbound) && keeps_enforcement_bits(vf, port))
                return false;
        return t->enforce_inbound != inbound || t->enforce_outbound != outbound;
}

/* --- all ports ---------------------------------------------------------------------------------------------------- */

static int verify_port(struct verifier *vf, uint32_t port)
{
        bool gives_up = gives_up_enforcement(vf, port);
        const struct observed_table *t = &vf->observed->tables[port];
        struct discrepancy d = {
                .port = port, .source = SOURCE_SMP, .enforcement_differs = enforcement_differs(vf, port, gives_up),
        };
        int r = 0;

        if (!gives_up)
                r = verify_table(vf->arena, vf->desired->policy, vf->options->unmanaged, &vf->desired->ports[port],
                                 t->entries, t->capacity, &d);
        if (r == 0 && (d.n_missing > 0 || d.n_unexpected > 0 || d.enforcement_differs))
                vf->v->differ[vf->v->n_differ++] = d;
        return r;
}

static int verify_ports(struct verifier *vf)
{
        const struct subnet *s = vf->desired->subnet;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                int r;

                if (!subnet_port_is_managed(s, &s->ports[i]))
                        continue;
                vf->v->n_ports++;
                if (vf->observed->tables[i].source != TABLE_READ) {
                        vf->v->unreachable[vf->v->n_unreachable++] = i;
                        continue;
                }
                if (vf->v->frozen && vf->v->frozen[i] != FREEZE_NONE)
                        continue;
                r = verify_port(vf, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

int verify_compare(struct arena *a, const struct desired *desired, const struct observed *observed,
                   const struct plan_options *options, struct verification **ret)
{
        struct verifier vf = {
                .arena = a, .desired = desired, .observed = observed, .options = options,
                .v = arena_new_object(a, struct verification),
        };
        int r;

        assert(desired->subnet == observed->subnet); /* ports are indexes into it */
        if (!vf.v)
                return -ENOMEM;
        vf.v->desired = desired;
        vf.v->frozen = desired->frozen;
        vf.v->differ = arena_new_array(a, struct discrepancy, desired->subnet->n_ports);
        vf.v->unreachable = arena_new_array(a, uint32_t, desired->subnet->n_ports);
        if (!vf.v->differ || !vf.v->unreachable)
                return -ENOMEM;
        r = verify_ports(&vf);
        if (r < 0)
                return r;
        *ret = vf.v;
        return 0;
}

uint64_t discrepancy_hash(uint64_t h, const struct discrepancy *d)
{
        for (uint32_t i = 0; i < d->n_missing; i++)
                h = hash_mix(h, d->missing[i].v);
        for (uint32_t i = 0; i < d->n_unexpected; i++)
                h = hash_mix(h, 0x10000u | d->unexpected[i].v);
        for (uint32_t i = 0; i < d->n_kernel; i++) {
                h = hash_mix(h, 0x20000u | d->kernel[i].key.v);
                h = hash_mix(h, (uint64_t) d->kernel[i].sma_index << 32 | d->kernel[i].kernel_index);
        }
        return hash_mix(h, d->enforcement_differs);
}

DEFINE_WORDS(discrepancy_source_to_string, enum discrepancy_source, "unknown", [SOURCE_SMP] = "smp", [SOURCE_KERNEL] = "kernel")
