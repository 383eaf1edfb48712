/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/verify.h"

#include <errno.h>
#include <string.h>

struct verifier {
        struct arena *arena;
        const struct desired *desired;
        const struct observed *observed;
        const struct plan_options *options;
        struct verification *v;
        struct p_key *missing, *unexpected; /* of the port at hand */
        bool *found;                        /* per wanted P_Key of the port at hand */
        uint32_t n_missing, n_unexpected;
};

/* Entries of other bases are none of our business: not owned, or kept though nobody asked for them. */
static bool may_touch(const struct verifier *vf, struct p_key key)
{
        const struct policy *policy = vf->desired->policy;

        if (!policy_owns(policy, p_key_base(key)))
                return false;
        return vf->options->unmanaged == UNMANAGED_REMOVE || policy_find_base(policy, p_key_base(key)) >= 0;
}

/* Ascending base, the limited before the full entry: the order of desired_port.wanted. */
static uint32_t order_of(struct p_key key)
{
        return (uint32_t) p_key_base(key) << 1 | p_key_is_full(key);
}

static int compare_p_keys(const void *a, const void *b)
{
        uint32_t x = order_of(*(const struct p_key *) a), y = order_of(*(const struct p_key *) b);

        return x < y ? -1 : x > y;
}

/* Index into wanted, or n_wanted. */
static uint32_t find_wanted(const struct desired_port *want, struct p_key key)
{
        const struct p_key *hit = NULL;

        if (want->n_wanted > 0)
                hit = bsearch(&key, want->wanted, want->n_wanted, sizeof(key), compare_p_keys);
        return hit ? (uint32_t) (hit - want->wanted) : want->n_wanted;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void compare_table(struct verifier *vf, uint32_t port)
{
        const struct desired_port *want = &vf->desired->ports[port];
        const struct observed_table *t = &vf->observed->tables[port];

        vf->n_missing = vf->n_unexpected = 0;
        memset(vf->found, 0, want->n_wanted * sizeof(*vf->found));
        for (uint32_t i = 0; i < t->capacity; i++) {
                struct p_key key = t->entries[i];
                uint32_t k;

                if (!p_key_is_used(key) || !may_touch(vf, key))
                        continue;
                k = find_wanted(want, key);
                if (k < want->n_wanted && !vf->found[k])
                        vf->found[k] = true;
                else
                        vf->unexpected[vf->n_unexpected++] = key;
        }
        for (uint32_t k = 0; k < want->n_wanted; k++)
                if (!vf->found[k] && may_touch(vf, want->wanted[k]))
                        vf->missing[vf->n_missing++] = want->wanted[k];
        if (vf->n_unexpected > 1)
                qsort(vf->unexpected, vf->n_unexpected, sizeof(*vf->unexpected), compare_p_keys);
}

/* --- enforcing ports ---------------------------------------------------------------------------------------------- */

/* What is wanted and what stays besides does not fit. */
static bool overflows(const struct verifier *vf, uint32_t port)
{
        const struct observed_table *t = &vf->observed->tables[port];
        uint32_t needed = vf->desired->ports[port].n_wanted;

        for (uint32_t i = 0; i < t->capacity; i++)
                needed += p_key_is_used(t->entries[i]) && !may_touch(vf, t->entries[i]);
        return needed > t->capacity;
}

/* The planner leaves such a port's table alone and turns its enforcement off. */
static bool is_let_off(const struct verifier *vf, uint32_t port)
{
        return vf->desired->subnet->ports[port].role == PORT_SWITCH_EXTERNAL &&
               (vf->options->enforcement == ENFORCEMENT_OFF ||
                vf->options->enforcement_overflow == OVERFLOW_DISABLE) &&
               overflows(vf, port);
}

static bool key_covers(struct p_key holds, struct p_key key)
{
        return p_key_same_partition(holds, key) && (p_key_is_full(holds) || !p_key_is_full(key));
}

static bool port_covers(const struct verifier *vf, uint32_t port, struct p_key key)
{
        const struct desired_port *want = &vf->desired->ports[port];
        const struct observed_table *t = &vf->observed->tables[port];

        for (uint32_t i = 0; i < want->n_wanted; i++)
                if (key_covers(want->wanted[i], key))
                        return true;
        for (uint32_t i = 0; i < t->capacity; i++)
                if (key_covers(t->entries[i], key))
                        return true;
        return false;
}

/* Enforcement would cut off an entry of the neighbour that is not ours: the planner leaves the bits as they are. */
static bool is_left_as_it_is(const struct verifier *vf, uint32_t port)
{
        uint32_t neighbour = vf->desired->subnet->ports[port].neighbour;
        const struct observed_table *t = &vf->observed->tables[neighbour];

        for (uint32_t i = 0; t->source != TABLE_UNKNOWN && i < t->capacity; i++)
                if (p_key_is_used(t->entries[i]) && !may_touch(vf, t->entries[i]) &&
                    !port_covers(vf, port, t->entries[i]))
                        return true;
        return false;
}

static bool enforcement_differs(const struct verifier *vf, uint32_t port, bool let_off)
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
        if (let_off)
                inbound = outbound = false;
        else if ((inbound || outbound) && is_left_as_it_is(vf, port))
                return false;
        return t->enforce_inbound != inbound || t->enforce_outbound != outbound;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const struct p_key *keep(struct verifier *vf, const struct p_key *keys, uint32_t n)
{
        struct p_key *copy = arena_new_array(vf->arena, struct p_key, n);

        if (copy && n > 0)
                memcpy(copy, keys, n * sizeof(*keys));
        return copy;
}

static int verify_port(struct verifier *vf, uint32_t port)
{
        bool let_off = is_let_off(vf, port), differs = enforcement_differs(vf, port, let_off);
        struct discrepancy *d;

        vf->n_missing = vf->n_unexpected = 0;
        if (!let_off)
                compare_table(vf, port);
        if (vf->n_missing == 0 && vf->n_unexpected == 0 && !differs)
                return 0;
        d = &vf->v->differ[vf->v->n_differ++];
        *d = (struct discrepancy) {
                .port = port,
                .source = SOURCE_SMP,
                .missing = keep(vf, vf->missing, vf->n_missing),
                .unexpected = keep(vf, vf->unexpected, vf->n_unexpected),
                .n_missing = vf->n_missing,
                .n_unexpected = vf->n_unexpected,
                .enforcement_differs = differs,
        };
        return d->missing && d->unexpected ? 0 : -ENOMEM;
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
                r = verify_port(vf, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

int verify_compare(struct arena *a, const struct desired *desired, const struct observed *observed,
                   const struct plan_options *options, struct verification **ret)
{
        const struct subnet *s = desired->subnet;
        uint32_t max_wanted = 1, max_capacity = 1;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                max_wanted = MAX(max_wanted, desired->ports[i].n_wanted);
                max_capacity = MAX(max_capacity, (uint32_t) observed->tables[i].capacity);
        }

        _cleanup_free_ struct p_key *missing = calloc(max_wanted, sizeof(*missing));
        _cleanup_free_ struct p_key *unexpected = calloc(max_capacity, sizeof(*unexpected));
        _cleanup_free_ bool *found = calloc(max_wanted, sizeof(*found));
        struct verifier vf = {
                .arena = a,
                .desired = desired,
                .observed = observed,
                .options = options,
                .v = arena_new_object(a, struct verification),
                .missing = missing,
                .unexpected = unexpected,
                .found = found,
        };
        int r;

        if (!missing || !unexpected || !found || !vf.v)
                return -ENOMEM;
        vf.v->differ = arena_new_array(a, struct discrepancy, s->n_ports);
        vf.v->unreachable = arena_new_array(a, uint32_t, s->n_ports);
        if (!vf.v->differ || !vf.v->unreachable)
                return -ENOMEM;
        r = verify_ports(&vf);
        if (r < 0)
                return r;
        *ret = vf.v;
        return 0;
}

const char *discrepancy_source_to_string(enum discrepancy_source s)
{
        switch (s) {
        case SOURCE_SMP:
                return "smp";
        case SOURCE_KERNEL:
                return "kernel";
        }
        return "unknown";
}
