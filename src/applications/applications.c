/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "applications/applications.h"

#include <errno.h>

struct p_key application_default(const struct p_key *entries, uint32_t n)
{
        struct p_key limited = {};

        for (uint32_t i = 0; i < n; i++) {
                if (p_key_is_used(entries[i]) && p_key_is_full(entries[i]))
                        return entries[i];
                if (p_key_is_used(entries[i]) && !p_key_is_used(limited))
                        limited = entries[i];
        }
        return limited;
}

/* False: the port does not hold the base. */
static bool find_entry(const struct application_port *port, uint16_t base, struct application_entry *ret)
{
        *ret = (struct application_entry) { .port = port };
        for (uint32_t i = 0; i < port->n_entries; i++) {
                struct p_key key = port->entries[i];

                if (p_key_base(key) != base || (p_key_is_used(ret->key) && (p_key_is_full(ret->key) || !p_key_is_full(key))))
                        continue;
                ret->key = key;
                ret->index = i;
        }
        return p_key_is_used(ret->key);
}

static int add_entry(struct arena *a, struct application_entry *e)
{
        const struct application_port *port = e->port;

        e->by_default = application_default(port->entries, port->n_entries);
        if (port->n_entries > 0)
                e->at_index0 = port->entries[0];
        if (!port->interface)
                return 0;
        e->child = arena_printf(a, "%s.%04x", port->interface, p_key_make(p_key_base(e->key), true).v);
        return e->child ? 0 : -ENOMEM;
}

static int set_variables(struct arena *a, uint16_t base, struct application_settings *s)
{
        const char *value = arena_printf(a, "0x%04x", base), *index = arena_printf(a, "%u", s->entries[0].index);

        if (!value || !index)
                return -ENOMEM;
        for (uint32_t i = 1; i < s->n_entries; i++)
                s->differs |= s->entries[i].index != s->entries[0].index;
        if (s->differs)
                index = NULL;
        s->variables[0] = (struct application_variable) { "UCX_IB_PKEY", value };
        s->variables[1] = (struct application_variable) { "NCCL_IB_PKEY", index };
        s->variables[2] = (struct application_variable) { "NVSHMEM_IB_PKEY_INDEX", index };
        s->variables[3] = (struct application_variable) { "MV2_DEFAULT_PKEY", value };
        return 0;
}

static void find_limited(struct application_settings *s, uint16_t base)
{
        for (uint32_t i = 0; i < s->n_entries; i++) {
                const struct application_entry *e = &s->entries[i];

                if (!s->limited && !p_key_is_full(e->key))
                        s->limited = e;
                if (!s->limited_index0 && p_key_is_used(e->at_index0) && !p_key_is_full(e->at_index0) &&
                    p_key_base(e->at_index0) != base)
                        s->limited_index0 = e;
        }
}

int application_settings(struct arena *a, const struct application_port *ports, uint32_t n_ports, uint16_t base,
                         struct application_settings *ret)
{
        struct application_entry *entries = arena_new_array(a, struct application_entry, n_ports);
        int r = entries ? 0 : -ENOMEM;

        *ret = (struct application_settings) { .entries = entries };
        for (uint32_t i = 0; i < n_ports && r == 0; i++)
                if (find_entry(&ports[i], base, &entries[ret->n_entries]))
                        r = add_entry(a, &entries[ret->n_entries++]);
        if (r == 0 && ret->n_entries == 0)
                return -ENOENT;
        if (r == 0)
                find_limited(ret, base);
        return r < 0 ? r : set_variables(a, base, ret);
}
