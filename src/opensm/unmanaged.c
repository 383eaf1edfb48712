/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/unmanaged.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

static bool is_unmanaged(const struct opensm_manager *m, const struct partitions_conf_partition *p)
{
        return !policy_manages(m->policy, m->keeps_unmanaged, p->base);
}

int opensm_named_guids(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                       const struct guid **ret, uint32_t *ret_n)
{
        const struct guid *of_policy;
        struct guid *guids;
        uint32_t n, n_conf = 0;
        int r = policy_named_guids(a, manager->policy, &of_policy, &n);

        if (r < 0)
                return r;
        for (uint32_t i = 0; conf && i < conf->n_partitions; i++)
                n_conf += conf->partitions[i].n_members;
        guids = arena_new_array(a, struct guid, n + n_conf);
        if (!guids)
                return -ENOMEM;
        if (n > 0)
                memcpy(guids, of_policy, n * sizeof(*guids));
        for (uint32_t i = 0; conf && i < conf->n_partitions; i++) {
                if (!is_unmanaged(manager, &conf->partitions[i]))
                        continue;
                for (const struct partitions_conf_member *m = conf->partitions[i].members; m; m = m->next)
                        if (m->who == PARTITIONS_CONF_GUID)
                                guids[n++] = m->guid;
        }
        *ret = guids;
        *ret_n = n;
        return 0;
}

struct absent_ports {
        struct arena *arena;
        const struct subnet *larger, *present;
        struct partitions_file_port *ports;
        uint32_t *allocated; /* entries of each port */
};

static int add_entry(struct absent_ports *to, uint32_t port, struct p_key key)
{
        struct partitions_file_port *p = &to->ports[port];
        struct p_key *keys = (struct p_key *) (uintptr_t) p->keys;

        if (VECTOR_ADD(to->arena, keys, p->n_keys, to->allocated[port], key) < 0)
                return -ENOMEM;
        p->keys = keys;
        return 0;
}

static int add_partition(struct absent_ports *to, const struct partitions_conf_partition *p, bool allow_both_pkeys)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct p_key keys[2];
        uint8_t *memberships;
        uint32_t n;
        int r = scratch ? partitions_conf_apply(scratch, p, to->larger, allow_both_pkeys, &memberships) : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < to->larger->n_ports; i++) {
                if (memberships[i] == MEMBERSHIP_NONE || !subnet_lacks_endport(to->present, &to->larger->ports[i]))
                        continue;
                n = p_keys_of_membership(p->base, memberships[i], keys);
                for (uint32_t k = 0; r == 0 && k < n; k++)
                        r = add_entry(to, i, keys[k]);
        }
        return r;
}

int opensm_unmanaged_of_absent(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                               const struct subnet *larger, const struct subnet *present, bool allow_both_pkeys,
                               struct partitions_file_port **ret)
{
        struct absent_ports to = {
                a, larger, present, arena_new_array(a, struct partitions_file_port, larger->n_ports),
                arena_new_array(a, uint32_t, larger->n_ports),
        };
        int r = to.ports && to.allocated ? 0 : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < larger->n_ports; i++)
                to.ports[i].guid = larger->ports[i].guid;
        for (uint32_t i = 0; r == 0 && i < conf->n_partitions; i++)
                if (is_unmanaged(manager, &conf->partitions[i]))
                        r = add_partition(&to, &conf->partitions[i], allow_both_pkeys);
        if (r == 0)
                *ret = to.ports;
        return r;
}

/* ALL=limited in the default partition adds nothing: OpenSM makes every port a limited member of it. */
static bool is_for_all(const struct partitions_conf_partition *p, const struct partitions_conf_member *m)
{
        return (m->who == PARTITIONS_CONF_ALL || m->who == PARTITIONS_CONF_TYPE) &&
               (p->base != P_KEY_DEFAULT_BASE || membership_has_full(m->membership));
}

const struct partitions_conf_partition *opensm_find_unmanaged_all(const struct opensm_manager *manager,
                                                                  const struct partitions_conf *conf)
{
        for (uint32_t i = 0; i < conf->n_partitions; i++) {
                if (!is_unmanaged(manager, &conf->partitions[i]))
                        continue;
                for (const struct partitions_conf_member *m = conf->partitions[i].members; m; m = m->next)
                        if (is_for_all(&conf->partitions[i], m))
                                return &conf->partitions[i];
        }
        return NULL;
}
