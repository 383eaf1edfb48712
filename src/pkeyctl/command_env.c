/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "applications/applications.h"
#include "pkeyctl/commands.h"
#include "session/host_ports.h"
#include "shell/ipoib_interface.h"

/*
 * `env`: the settings by which programs on this host use a partition, from the kernel's tables. What they mean is in
 * applications/applications.h.
 */

#define NET_CLASS    "/sys/class/net"
#define DEVICE_CLASS "/sys/class/infiniband"

/* A partition of this host. */
struct env_partition {
        uint16_t base;
        struct application_settings settings;
};

struct env_result {
        struct application_port *ports; /* that are up */
        uint32_t n_ports;
        struct env_partition *partitions; /* ascending base */
        uint32_t n_partitions;
};

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *entry_object(struct doc *d, const struct application_entry *e)
{
        return json_pack("{s:s, s:i, s:i, s:s, s:o, s:o, s:o, s:o}", "device", e->port->device, "port", e->port->number,
                         "index", e->index, "membership", membership_to_string(p_key_membership(e->key)),
                         "p_key", doc_p_key(d, e->key), "interface", doc_text(e->port->interface), "child_interface", doc_text(e->child),
                         "default_p_key", doc_p_key(d, e->by_default));
}

static json_t *environment(struct doc *d, const struct application_settings *s)
{
        json_t *o = json_object();

        for (size_t i = 0; i < APPLICATION_N_VARIABLES; i++)
                doc_merge(d, o, json_pack("{s:o}", s->variables[i].name, doc_text(s->variables[i].value)));
        return o;
}

static json_t *partition_object(struct doc *d, const struct env_partition *p)
{
        return doc_partition(d, p->base, "{s:o, s:o}",
                             "entries", JSON_ARRAY(i, p->settings.n_entries, entry_object(d, &p->settings.entries[i])),
                             "environment", environment(d, &p->settings));
}

static void json_env(struct doc *d, const void *result)
{
        const struct env_result *r = result;

        doc_add(d, d->root, "{s:o}", "partitions", JSON_ARRAY(i, r->n_partitions, partition_object(d, &r->partitions[i])));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void print_interfaces(const struct application_settings *s)
{
        for (uint32_t i = 0; i < s->n_entries; i++) {
                const struct application_entry *e = &s->entries[i];
                unsigned p_key = p_key_make(p_key_base(e->key), true).v;

                if (!e->child)
                        continue;
                printf("# IPoIB on %s/%u: %s\n", e->port->device, e->port->number, e->child);
                printf("#   ip link add link %s name %s type ipoib pkey 0x%04x\n", e->port->interface, e->child, p_key);
                printf("#   nmcli connection add type infiniband con-name %s ifname %s infiniband.parent %s infiniband.p-key 0x%04x\n",
                       e->child, e->child, e->port->interface, p_key);
                printf("#   ifcfg-%s: DEVICE=%s PHYSDEV=%s PKEY=yes PKEY_ID=0x%04x\n", e->child, e->child, e->port->interface, p_key);
        }
}

/* For the shell: only names and numbers that need no quotes. */
static void text_env(struct context *ctx, const void *result)
{
        const struct env_result *r = result;
        const struct env_partition *p = &r->partitions[0];
        const struct application_settings *s = &p->settings;

        printf("# %s (0x%04x):", output_base(ctx, p->base), p->base);
        for (uint32_t i = 0; i < s->n_entries; i++)
                printf("%s %s/%u index %u, %s member", i > 0 ? ";" : "", s->entries[i].port->device, s->entries[i].port->number,
                       s->entries[i].index, membership_to_string(p_key_membership(s->entries[i].key)));
        putchar('\n');
        for (size_t i = 0; i < APPLICATION_N_VARIABLES; i++)
                printf(s->variables[i].value ? "export %s=%s\n" : "unset %s\n", s->variables[i].name, s->variables[i].value);
        print_interfaces(s);
}

/* --- warnings -------------------------------------------------------------------------------------------------------- */

static const char *port_list(struct context *ctx, const struct env_result *r, const struct application_settings *s, bool holding)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < r->n_ports; i++) {
                bool holds = false;

                for (uint32_t k = 0; k < s->n_entries; k++)
                        holds |= s->entries[k].port == &r->ports[i];
                if (holds == holding)
                        text_add(&t, "%s%s:%u", t.n > 0 ? "," : "", r->ports[i].device, r->ports[i].number);
        }
        return output_taken(ctx, &t);
}

static void warn_of_ports(struct context *ctx, const struct env_result *r, const struct env_partition *p)
{
        const char *holding = port_list(ctx, r, &p->settings, true);
        struct finding *f;

        if (p->settings.n_entries == r->n_ports)
                return;
        f = findings_add(&ctx->findings, FINDING_WARNING, FINDING_ENV_PORTS, NULL, "%s is not on %s: programs that use these ports fail",
                         output_base(ctx, p->base), port_list(ctx, r, &p->settings, false));
        finding_set_hint(&ctx->findings, f, "UCX_NET_DEVICES=%s and NCCL_IB_HCA==%s limit them to the others", holding, holding);
}

static void warn_of_indexes(struct context *ctx, const struct env_partition *p)
{
        const struct application_settings *s = &p->settings;
        _cleanup_text_ struct text t = {};
        struct finding *f;

        if (!s->differs)
                return;
        for (uint32_t i = 0; i < s->n_entries; i++)
                text_add(&t, "%s%s/%u: %u", i > 0 ? ", " : "", s->entries[i].port->device, s->entries[i].port->number, s->entries[i].index);
        f = findings_add(&ctx->findings, FINDING_WARNING, FINDING_ENV_INDEX, NULL,
                         "the index of %s differs between ports (%s), and NCCL and NVSHMEM take one index for all of them",
                         output_base(ctx, p->base), output_taken(ctx, &t));
        finding_set_hint(&ctx->findings, f, "limit these programs to one port, or give the partition `index0: true` in the policy");
}

/* Names the first port only: one warning is enough. */
static void warn_of_limited(struct context *ctx, const struct env_partition *p)
{
        const struct application_entry *limited = p->settings.limited, *index0 = p->settings.limited_index0;

        if (limited)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_ENV_LIMITED, NULL,
                                    "%s/%u is a limited member of %s: it cannot talk to other limited members", limited->port->device,
                                    limited->port->number, output_base(ctx, p->base));
        if (index0)
                (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_ENV_LIMITED, NULL,
                                    "without these settings NCCL and NVSHMEM use index 0, where %s/%u is a limited member of %s: "
                                    "with another limited member they hang", index0->port->device, index0->port->number,
                                    output_base(ctx, p_key_base(index0->at_index0)));
}

/* --- the partitions --------------------------------------------------------------------------------------------------- */

static int find_ports(struct context *ctx, struct env_result *ret)
{
        struct host_port *ports = NULL;
        uint32_t n;
        int r = host_ports_read(ctx, &ports, &n);

        if (r < 0)
                return r;
        ret->ports = arena_new_array(ctx->arena, struct application_port, n);
        for (uint32_t i = 0; ret->ports && i < n; i++) {
                const char *device = arena_printf(ctx->arena, DEVICE_CLASS "/%s", ports[i].verbs.device);
                char interface[IF_NAMESIZE];

                if (!ports[i].entries)
                        continue;
                ret->ports[ret->n_ports] = (struct application_port) {
                        .device = ports[i].verbs.device, .number = ports[i].verbs.number, .entries = ports[i].entries,
                        .n_entries = ports[i].n_entries,
                };
                if (device && ipoib_interface_find(NET_CLASS, device, ports[i].verbs.number, interface))
                        ret->ports[ret->n_ports].interface = arena_strdup(ctx->arena, interface);
                ret->n_ports++;
        }
        return ret->ports ? 0 : -ENOMEM;
}

/* All bases in the tables, ascending. */
static int find_partitions(struct context *ctx, struct env_result *ret)
{
        bool seen[P_KEY_BASE_MASK + 1] = {};
        uint32_t n = 0;
        int r = 0;

        for (uint32_t i = 0; i < ret->n_ports; i++)
                for (uint32_t k = 0; k < ret->ports[i].n_entries; k++)
                        seen[p_key_base(ret->ports[i].entries[k])] = true;
        for (uint32_t base = 1; base <= P_KEY_BASE_MASK; base++)
                n += seen[base];
        ret->partitions = arena_new_array(ctx->arena, struct env_partition, n);
        for (uint32_t base = 1; ret->partitions && base <= P_KEY_BASE_MASK && r == 0; base++)
                if (seen[base]) {
                        struct env_partition *p = &ret->partitions[ret->n_partitions++];

                        p->base = (uint16_t) base;
                        r = application_settings(ctx->arena, ret->ports, ret->n_ports, p->base, &p->settings);
                }
        return ret->partitions ? r : -ENOMEM;
}

static const char *list_partitions(struct context *ctx, const struct env_result *r)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < r->n_partitions; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", output_base(ctx, r->partitions[i].base));
        return output_taken(ctx, &t);
}

/* A name of the policy, or a P_Key in hex, with or without the high bit. 0: it is neither. */
static uint16_t base_of(struct context *ctx, const char *text)
{
        unsigned long value;
        char *end;

        for (uint32_t i = 0; ctx->policy && i < ctx->policy->n_partitions; i++)
                if (strcmp(ctx->policy->partitions[i].name, text) == 0)
                        return ctx->policy->partitions[i].base;
        if (strncmp(text, "0x", 2) != 0 || strlen(text) > 6)
                return 0;
        value = strtoul(text, &end, 16);
        return *end ? 0 : value & P_KEY_BASE_MASK;
}

static int complain_unknown(struct context *ctx, const char *text)
{
        return findings_error(&ctx->findings, FINDING_ENV_PARTITION,
                              ctx->policy ? NULL : "this host has no policy that names partitions; write the P_Key, as in 0x0101",
                              "'%s' is neither a partition of the policy nor a P_Key", text);
}

/* The partition that the argument names; without one the only one that is not the default partition. */
static int choose_partition(struct context *ctx, struct env_result *result)
{
        const char *text = ctx->arguments[0];
        uint16_t base = text ? base_of(ctx, text) : 0;
        struct env_partition *chosen = NULL;
        uint32_t n = 0;

        if (text && base == 0)
                return complain_unknown(ctx, text);
        for (uint32_t i = 0; i < result->n_partitions; i++)
                if (text ? result->partitions[i].base == base : result->partitions[i].base != P_KEY_DEFAULT_BASE) {
                        chosen = &result->partitions[i];
                        n++;
                }
        if (n == 0)
                return findings_error(&ctx->findings, FINDING_ENV_PARTITION, NULL, "no port of this host is a member of %s%s%s",
                                      text ?: "a partition besides the default one", result->n_partitions > 0 ? "; this host is in " : "",
                                      list_partitions(ctx, result));
        if (n > 1)
                return findings_error(&ctx->findings, FINDING_ENV_PARTITION, NULL, "this host is in several partitions; name one: %s",
                                      list_partitions(ctx, result));
        result->partitions = chosen;
        result->n_partitions = 1;
        return 0;
}

int command_env(struct context *ctx)
{
        static const struct printer printer = { text_env, json_env, 0 };
        struct env_result result = {};
        bool is_partial = false;
        int r = find_ports(ctx, &result) ?: find_partitions(ctx, &result);

        if (r == 0 && (!ctx->options->json || ctx->arguments[0]))
                r = choose_partition(ctx, &result);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < result.n_partitions; i++)
                is_partial |= result.partitions[i].settings.differs;
        if (result.n_partitions == 1) {
                warn_of_ports(ctx, &result, &result.partitions[0]);
                warn_of_indexes(ctx, &result.partitions[0]);
                warn_of_limited(ctx, &result.partitions[0]);
        }
        return output(ctx, &printer, exit_status_of(false, is_partial), &result);
}
