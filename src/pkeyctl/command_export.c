/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "opensm/unmanaged.h"
#include "opensm_writer/opensm_writer.h"
#include "pkeyctl/commands.h"
#include "policy/selector.h"
#include "shell/file.h"

/* --- entries by the policy -------------------------------------------------------------------------------------------- */

static struct opensm_manager manager_of(const struct context *ctx)
{
        return (struct opensm_manager) { ctx->policy, ctx->plan_options.unmanaged == UNMANAGED_KEEP };
}

static bool is_frozen(const struct context *ctx, uint32_t port)
{
        return port != SUBNET_NONE && pipeline_is_frozen(ctx, port);
}

/* The entries of frozen ports are those that they hold (add_held()). */
static int collect_by_policy(struct context *ctx, const struct subnet *extended, struct partitions_file_port **ret, uint32_t *ret_n)
{
        _cleanup_findings_ struct findings findings = { .arena = ctx->arena };
        const struct policy_memory memory = { .pins = ctx->pins };
        struct memberships *memberships;
        struct desired *desired;
        int r = policy_resolve_with_memory(ctx->arena, ctx->policy, extended, &memory, ctx->plan_options.in_force, &findings,
                                           &memberships);

        if (r == -EBADMSG)
                findings_append_all(&ctx->findings, &findings);
        r = r ?: desired_compute(ctx->arena, memberships, &desired);
        for (uint32_t i = 0; i < extended->n_ports && r == 0; i++)
                if (is_frozen(ctx, subnet_find_endport(ctx->subnet, extended->ports[i].guid)))
                        desired->ports[i].n_wanted = 0;
        return r ?: partitions_file_collect(ctx->arena, extended, desired->ports, ret, ret_n);
}

/* --- entries of others, and of frozen ports --------------------------------------------------------------------------- */

/* Returns whether the policy leaves some entries as they are, whoever wrote them. */
static bool keeps_foreign(const struct context *ctx)
{
        const struct policy *p = ctx->policy;

        return ctx->plan_options.unmanaged == UNMANAGED_KEEP || p->n_owns != 1 || p->owns[0].first > 1 ||
               p->owns[0].last < P_KEY_BASE_MASK;
}

/* The entry that passes the filter of the switch port, 0: none. If the file had the entry itself, OpenSM would open the switch port
 * to it. */
static struct p_key passing_key(const struct observed_table *filter, struct p_key key)
{
        struct p_key limited = p_key_make(p_key_base(key), false), full = p_key_make(p_key_base(key), true);

        if (!filter || p_keys_hold(filter->entries, filter->capacity, full))
                return key;
        return p_keys_hold(filter->entries, filter->capacity, limited) ? limited : (struct p_key) { 0 };
}

/* The switch port beside this one, if it filters. */
static const struct observed_table *filter_of(const struct context *ctx, uint32_t port)
{
        uint32_t peer = ctx->subnet->ports[port].peer;
        const struct observed_table *t = peer == SUBNET_NONE ? NULL : &ctx->observed->tables[peer];

        return t && (t->enforce_inbound || t->enforce_outbound) ? t : NULL;
}

static int append_keys(struct context *ctx, struct partitions_file_port *p, const struct p_key *more, uint32_t n)
{
        struct p_key *keys = arena_new_array(ctx->arena, struct p_key, (size_t) p->n_keys + n);

        if (!keys)
                return -ENOMEM;
        if (p->n_keys > 0)
                memcpy(keys, p->keys, p->n_keys * sizeof(*keys));
        if (n > 0)
                memcpy(keys + p->n_keys, more, n * sizeof(*keys));
        p->keys = keys;
        p->n_keys += n;
        return 0;
}

/* Adds the entries of others in the table of a port, or all of a frozen one. Both entries of a base are refused later if the file
 * cannot have them. */
static int add_held(struct context *ctx, uint32_t port, struct partitions_file_port *p)
{
        bool all = is_frozen(ctx, port);
        const struct observed_table *t = &ctx->observed->tables[port], *filter = filter_of(ctx, port);
        const struct opensm_manager manager = manager_of(ctx);
        const char *unread = NULL;
        struct p_key *kept;
        uint32_t n = 0;

        if (subnet_port_is_behind_unknown(ctx->subnet, &ctx->subnet->ports[port]) || (filter && filter->source != TABLE_READ))
                unread = "the switch port that it is plugged into cannot be read, so pkeyd does not know what passes there";
        if (t->source != TABLE_READ)
                unread = "its P_Key table cannot be read";
        if (unread) {
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_PLAN_UNREACHABLE, NULL,
                                    "%s: %s%s; the output lacks its entries%s, and OpenSM would remove them", p->label,
                                    all ? "it is frozen, and " : "", unread, all ? "" : " from outside the policy");
                return 0;
        }
        kept = arena_new_array(ctx->arena, struct p_key, t->capacity);
        if (!kept)
                return -ENOMEM;
        for (uint16_t i = 0; i < t->capacity; i++) {
                struct p_key key = t->entries[i];

                if (p_key_is_used(key) && (all || !policy_manages(manager.policy, manager.keeps_unmanaged, p_key_base(key))))
                        kept[n++] = passing_key(filter, key);
        }
        return append_keys(ctx, p, kept, n);
}

/* Adds the entries of others: for ports in the fabric from their tables, for absent ports from OpenSM's file; and those of frozen
 * ports. */
static int add_all_held(struct context *ctx, const struct partitions_conf *conf, const struct subnet *extended,
                        struct partitions_file_port *ports, uint32_t n)
{
        const struct opensm_manager manager = manager_of(ctx);
        struct partitions_file_port *absent = NULL;
        int r = 0;

        if (conf)
                r = opensm_unmanaged_of_absent(ctx->arena, &manager, conf, extended, ctx->subnet, true, &absent);
        for (uint32_t i = 0; i < n && r == 0; i++) {
                uint32_t port = subnet_find_endport(ctx->subnet, ports[i].guid);

                if (is_frozen(ctx, port) || (port != SUBNET_NONE && keeps_foreign(ctx))) {
                        r = add_held(ctx, port, &ports[i]);
                } else if (absent) {
                        const struct partitions_file_port *p = &absent[subnet_find_endport(extended, ports[i].guid)];

                        r = append_keys(ctx, &ports[i], p->keys, p->n_keys);
                }
        }
        return r;
}

/* Reads the file that OpenSM has now. Ignores its findings: they are not about the export. */
static int read_conf(struct context *ctx, const struct opensm_conf *opensm, struct partitions_conf **ret)
{
        const char *path = opensm_conf_partition_file(opensm, settings_opensm_file(ctx->settings)), *bytes;
        _cleanup_findings_ struct findings ignored = { .arena = ctx->arena };
        size_t n;
        int r = file_read_found(ctx->arena, path, PARTITIONS_CONF_MAX_SIZE, &ignored, &bytes, &n) ?:
                partitions_conf_parse(ctx->arena, pipeline_opensm_numbers(ctx), path, bytes, n, &ignored, ret);

        if (r != -EBADMSG)
                return r;
        *ret = NULL;
        (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_OPENSM_IPOIB, NULL,
                            "%s cannot be read: for partitions outside the policy, the output has neither IPoIB parameters nor "
                            "hosts that are down", path);
        return 0;
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

static int collect(struct context *ctx, const struct opensm_conf *opensm, struct partitions_file *ret)
{
        static const struct known none;
        const struct opensm_manager manager = manager_of(ctx);
        const struct partitions_conf_partition *to_all = NULL;
        struct partitions_file_port *ports;
        struct partitions_conf *conf = NULL;
        const struct guid *named;
        struct subnet *extended;
        uint32_t n, n_named;
        int r = 0;

        if (keeps_foreign(ctx))
                r = read_conf(ctx, opensm, &conf);
        if (conf)
                to_all = opensm_find_unmanaged_all(&manager, conf);
        if (to_all)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_OPENSM_ALL, NULL,
                                    "%s gives partition %s (0x%04x), which pkeyd does not manage, to ALL ports; this file gives it "
                                    "to those that are known now", conf->file, to_all->name, to_all->base);
        /* OpenSM must know absent ports when they come: those that were seen, by the names that they had, and those that the
         * policy, or a partition of others in OpenSM's file, names by GUID */
        r = r ?: opensm_named_guids(ctx->arena, &manager, conf, &named, &n_named);
        r = r ?: known_extend_named(ctx->arena, ctx->known ?: &none, ctx->subnet, named, n_named, NODE_UNKNOWN, &extended);
        r = r ?: collect_by_policy(ctx, extended, &ports, &n);
        r = r ?: add_all_held(ctx, conf, extended, ports, n);
        return r < 0 ? r : partitions_file_from_ports(ctx->arena, ctx->policy, conf, ports, n, ret);
}

static void refuse_self(struct selector **selectors, uint32_t n, struct report *report)
{
        for (uint32_t i = 0; i < n; i++) {
                if (selectors[i]->kind != SELECTOR_SELF)
                        continue;
                report_add(report, FINDING_ERROR, FINDING_USAGE, &selectors[i]->place,
                           "export: a topology file does not show which port SELF selects");
                report_hint(report, "name the host, or leave --topology out");
        }
}

/* Lines of the default partition may have SELF: the file makes it a full member (self_full). */
static int check_self(struct context *ctx)
{
        const struct policy *p = ctx->policy;
        struct report report;

        report_init(&report, &ctx->findings);
        for (uint32_t i = 0; i < p->n_groups; i++)
                refuse_self(p->groups[i].selectors, p->groups[i].n_selectors, &report);
        for (uint32_t i = 1; i < p->n_partitions; i++)
                for (uint32_t k = 0; k < p->partitions[i].n_rules; k++)
                        refuse_self(p->partitions[i].rules[k].selectors, p->partitions[i].rules[k].n_selectors, &report);
        return report_finish(&report);
}

static int read_fabric(struct context *ctx)
{
        if (!ctx->options->topology)
                return session_sweep(ctx, CONTROL_READ, NULL);
        if (keeps_foreign(ctx))
                return findings_error(&ctx->findings, FINDING_USAGE, "leave --topology out",
                                      "export: the policy keeps P_Keys of others (owns, or unmanaged: keep), and only the tables "
                                      "show which ports have them: OpenSM would remove them");
        return check_self(ctx) ?: pipeline_read_topology(ctx) ?: observed_new(ctx->arena, ctx->subnet, &ctx->observed);
}

int command_export(struct context *ctx)
{
        struct partitions_file file;
        struct opensm_conf opensm;
        struct endports frozen;
        const char *bytes;
        size_t n;
        int r = pipeline_read_opensm_conf(ctx, ctx->settings->opensm_config, &opensm) ?:
                opensm_writer_check_index0(ctx->policy, &ctx->findings) ?: read_fabric(ctx) ?: pipeline_resolve(ctx, true) ?:
                collect(ctx, &opensm, &file) ?: pipeline_filter(ctx, pipeline_is_frozen, &frozen);

        if (r < 0)
                return r;
        file.released = true;
        file.self_full = ctx->subnet->sm == SUBNET_NONE && policy_owns(ctx->policy, P_KEY_DEFAULT_BASE);
        return partitions_file_render(ctx->arena, &file, opensm.allow_both_pkeys, &ctx->findings, &bytes, &n) ?:
               output_file(ctx, exit_status_of(false, frozen.n > 0), bytes, n);
}
