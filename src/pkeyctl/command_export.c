/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "opensm/opensm_conf.h"
#include "opensm/partitions_file.h"
#include "opensm/unmanaged.h"
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "shell/file.h"
#include "subnet/known.h"

/* --- the policy's ----------------------------------------------------------------------------------------------------- */

static struct opensm_manager manager_of(const struct context *ctx)
{
        return (struct opensm_manager) { ctx->policy, ctx->plan_options.unmanaged == UNMANAGED_KEEP };
}

/* Ports that are not there now are to be known to OpenSM when they come: those that were seen, by the names that they had, and
 * those that the policy, or a partition of others in OpenSM's file (conf, may be NULL), names by GUID. */
static int find_ports(struct context *ctx, const struct partitions_conf *conf, struct subnet **ret)
{
        static const struct known none;
        const struct opensm_manager manager = manager_of(ctx);
        const struct guid *named;
        uint32_t n_named;
        int r = opensm_named_guids(ctx->arena, &manager, conf, &named, &n_named);

        return r < 0 ? r : known_extend_named(ctx->arena, ctx->known ?: &none, ctx->subnet, named, n_named, ret);
}

static int collect_given(struct context *ctx, const struct subnet *larger, struct partitions_file_port **ret, uint32_t *ret_n)
{
        _cleanup_findings_ struct findings findings = {};
        struct memberships *memberships;
        struct desired *desired;
        int r;

        findings_init(&findings, ctx->arena);
        r = policy_resolve(ctx->arena, ctx->policy, larger, &findings, &memberships);
        for (size_t i = 0; r == -EBADMSG && i < findings.n; i++)
                findings_append(&ctx->findings, &findings.items[i]);
        if (r == 0)
                r = desired_compute(ctx->arena, memberships, &desired);
        return r < 0 ? r : partitions_file_collect(ctx->arena, larger, desired->ports, ret, ret_n);
}

/* --- what is not the policy's ---------------------------------------------------------------------------------------- */

/* Does this policy leave entries as they are, whoever wrote them? */
static bool keeps_foreign(const struct context *ctx)
{
        const struct policy *p = ctx->policy;

        return ctx->plan_options.unmanaged == UNMANAGED_KEEP || p->n_owns != 1 || p->owns[0].first > 1 ||
               p->owns[0].last < P_KEY_BASE_MASK;
}

static bool is_foreign(const struct context *ctx, struct p_key key)
{
        const struct opensm_manager manager = manager_of(ctx);

        return p_key_is_used(key) && !policy_manages(manager.policy, manager.keeps_unmanaged, p_key_base(key));
}

static bool holds(const struct observed_table *t, struct p_key key)
{
        return p_keys_hold(t->entries, t->capacity, key);
}

/* As far as the switch port lets it through: OpenSM would open it to all that the file gives. 0: not at all. */
static struct p_key usable(const struct observed_table *filter, struct p_key key)
{
        struct p_key limited = p_key_make(p_key_base(key), false), full = p_key_make(p_key_base(key), true);

        if (!filter || holds(filter, full))
                return key;
        return holds(filter, limited) ? limited : (struct p_key) { 0 };
}

static const struct observed_table *filter_of(const struct context *ctx, uint32_t port)
{
        uint32_t beside = ctx->subnet->ports[port].peer;
        const struct observed_table *t = beside == SUBNET_NONE ? NULL : &ctx->observed->tables[beside];

        return t && (t->enforce_inbound || t->enforce_outbound) ? t : NULL;
}

/* The switch port filters, or may, and what it lets through is not known. */
static bool is_behind_unread(const struct context *ctx, uint32_t port)
{
        const struct observed_table *filter = filter_of(ctx, port);

        return subnet_port_is_behind_unknown(ctx->subnet, &ctx->subnet->ports[port]) || (filter && filter->source != TABLE_READ);
}

/* Its keys, with room for n more behind them. NULL: out of memory. */
static struct p_key *make_room(struct context *ctx, struct partitions_file_port *p, size_t n)
{
        struct p_key *keys = arena_new_array(ctx->arena, struct p_key, p->n_keys + n);

        if (keys && p->n_keys > 0)
                memcpy(keys, p->keys, p->n_keys * sizeof(*keys));
        if (keys)
                p->keys = keys;
        return keys;
}

/* Of a port that is there. With both entries of a base it is both, which the file may not be able to say: that is refused there. */
static int add_foreign(struct context *ctx, uint32_t port, struct partitions_file_port *p)
{
        const struct observed_table *t = &ctx->observed->tables[port], *filter = filter_of(ctx, port);
        struct p_key *keys;

        if (t->source != TABLE_READ) {
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_PLAN_UNREACHABLE, NULL,
                                    "%s: its P_Key table cannot be read: entries there that are not the policy's are not in the "
                                    "file, and OpenSM would remove them", p->label);
                return 0;
        }
        if (is_behind_unread(ctx, port)) {
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_PLAN_UNREACHABLE, NULL,
                                    "%s: the switch port that it is plugged into cannot be read: what passes there is not known, so "
                                    "entries that are not the policy's are not in the file, and OpenSM would remove them", p->label);
                return 0;
        }
        keys = make_room(ctx, p, t->capacity);
        if (!keys)
                return -ENOMEM;
        for (uint16_t i = 0; i < t->capacity; i++)
                if (is_foreign(ctx, t->entries[i]))
                        keys[p->n_keys++] = usable(filter, t->entries[i]);
        return 0;
}

/* Of one that is not: what OpenSM's file has. `both` there is refused like that in a table. */
static int add_told(struct context *ctx, const struct partitions_file_port *told, struct partitions_file_port *p)
{
        struct p_key *keys = make_room(ctx, p, told->n_keys);

        if (!keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < told->n_keys; i++)
                keys[p->n_keys++] = told->keys[i];
        return 0;
}

static int add_all_foreign(struct context *ctx, const struct partitions_conf *conf, const struct subnet *larger,
                           struct partitions_file_port *ports, uint32_t n)
{
        const struct opensm_manager manager = manager_of(ctx);
        struct partitions_file_port *told = NULL;
        int r = 0;

        if (conf)
                r = opensm_unmanaged_of_absent(ctx->arena, &manager, conf, larger, ctx->subnet, true, &told);
        for (uint32_t i = 0; i < n && r == 0; i++) {
                uint32_t port = subnet_find_endport(ctx->subnet, ports[i].guid);

                if (port != SUBNET_NONE)
                        r = add_foreign(ctx, port, &ports[i]);
                else if (told)
                        r = add_told(ctx, &told[subnet_find_endport(larger, ports[i].guid)], &ports[i]);
        }
        return r;
}

/* The file names ports. */
static void warn_of_all(struct context *ctx, const struct partitions_conf *conf)
{
        const struct opensm_manager manager = manager_of(ctx);
        const struct partitions_conf_partition *p = opensm_find_unmanaged_all(&manager, conf);

        if (p)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_OPENSM_ALL, NULL,
                                    "%s gives partition %s (0x%04x), which the policy leaves to others, to ALL ports; this file gives it "
                                    "to those that are known now", conf->file, p->name, p->base);
}

/* What OpenSM has now. */
static int read_conf(struct context *ctx, const struct opensm_conf *opensm, struct partitions_conf **ret)
{
        const struct settings *s = &ctx->settings;
        const char *path = settings_opensm_file(s), *bytes;
        struct findings before = ctx->findings;
        size_t n;
        int r;

        path = opensm->partition_config_file ?: path ?: OPENSM_PARTITIONS_CONF;
        findings_init(&ctx->findings, ctx->arena); /* what is odd there is not this command's matter */
        r = file_read_found(ctx->arena, path, PARTITIONS_CONF_MAX_SIZE, &ctx->findings, &bytes, &n);
        if (r == 0)
                r = partitions_conf_parse(ctx->arena, path, bytes, n, &ctx->findings, ret);
        findings_done(&ctx->findings);
        ctx->findings = before;
        if (r != -EBADMSG)
                return r;
        *ret = NULL;
        (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_OPENSM_IPOIB, NULL,
                            "%s cannot be read: partitions that are not the policy's have no parameters of IPoIB in the file, and "
                            "none of the hosts that are down", path);
        return 0;
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

static int collect(struct context *ctx, const struct opensm_conf *opensm, struct partitions_file *ret)
{
        struct partitions_file_port *ports;
        struct partitions_conf *conf = NULL;
        struct subnet *larger;
        uint32_t n;
        int r = 0;

        if (keeps_foreign(ctx))
                r = read_conf(ctx, opensm, &conf);
        if (conf)
                warn_of_all(ctx, conf);
        if (r == 0)
                r = find_ports(ctx, conf, &larger);
        if (r == 0)
                r = collect_given(ctx, larger, &ports, &n);
        if (r == 0 && keeps_foreign(ctx))
                r = add_all_foreign(ctx, conf, larger, ports, n);
        return r < 0 ? r : partitions_file_from_ports(ctx->arena, ctx->policy, conf, ports, n, ret);
}

/* The fabric; with its tables only where they matter. */
static int read_fabric(struct context *ctx)
{
        const struct session_hooks no_tables = { .choose = session_choose_none };

        if (!ctx->options->topology)
                return session_sweep(ctx, CONTROL_READ, keeps_foreign(ctx) ? NULL : &no_tables);
        if (keeps_foreign(ctx))
                return findings_error(&ctx->findings, FINDING_USAGE, "leave --topology out",
                                      "export: the policy leaves P_Keys of others as they are (owns, or unmanaged: keep), and "
                                      "which ports have them only their tables say: OpenSM would remove them");
        return pipeline_read_topology(ctx);
}

int command_export(struct context *ctx)
{
        struct partitions_file file;
        struct opensm_conf opensm;
        const char *bytes;
        size_t n;
        int r;

        r = pipeline_read_opensm_conf(ctx, ctx->settings.opensm_config, &opensm);
        if (r == 0)
                r = read_fabric(ctx);
        if (r == 0)
                r = pipeline_resolve(ctx);
        if (r == 0)
                r = collect(ctx, &opensm, &file);
        if (r < 0)
                return r;
        file.released = true;
        r = partitions_file_render(ctx->arena, &file, opensm.allow_both_pkeys, &ctx->findings, &bytes, &n);
        return r < 0 ? r : output_file(ctx, EXIT_DONE, bytes, n);
}
