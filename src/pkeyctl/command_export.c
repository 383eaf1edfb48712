/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "opensm/opensm_conf.h"
#include "opensm/partitions_file.h"
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "policy/selector.h"
#include "util/vector.h"

#define MAX_DEPTH 32 /* of groups in groups, as the policy has it */

/* Ports that the policy names by GUID and that are not there now: OpenSM is to know them when they come. */
struct absent {
        struct context *ctx;
        uint16_t base;
        enum membership membership;
        struct partitions_file_port *ports;
        uint32_t n, allocated;
};

static bool is_known(const struct absent *b, struct guid guid)
{
        if (subnet_find_endport(b->ctx->subnet, guid) != SUBNET_NONE)
                return true;
        for (uint32_t i = 0; i < b->n; i++)
                if (b->ports[i].guid.v == guid.v && p_key_base(b->ports[i].keys[0]) == b->base)
                        return true;
        return false;
}

static int add_guid(struct absent *b, struct guid guid)
{
        struct p_key *keys;
        uint32_t n = 0;

        /* `none`, or more specific than what follows: either way it is decided */
        if (is_known(b, guid) || subnet_find_node(b->ctx->subnet, guid) != SUBNET_NONE)
                return 0;
        keys = arena_new_array(b->ctx->arena, struct p_key, 2);
        if (!keys || VECTOR_GROW(b->ctx->arena, b->ports, b->n, b->allocated) < 0)
                return -ENOMEM;
        keys[0] = p_key_make(b->base, false);
        if (membership_has_limited(b->membership))
                n++;
        if (membership_has_full(b->membership))
                keys[n++] = p_key_make(b->base, true);
        b->ports[b->n++] = (struct partitions_file_port) { .guid = guid, .label = "not there", .keys = keys, .n_keys = n };
        return 0;
}

static int add_selectors(struct absent *b, struct selector *const *selectors, uint32_t n, bool groups, unsigned depth)
{
        const struct policy *policy = b->ctx->policy;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                const struct selector *s = selectors[i];

                if (s->kind == SELECTOR_GUID && (depth > 0 || !groups))
                        r = add_guid(b, s->guid);
                else if (s->kind == SELECTOR_GROUP && groups && depth < MAX_DEPTH)
                        r = add_selectors(b, policy->groups[s->group].selectors, policy->groups[s->group].n_selectors, true,
                                          depth + 1);
        }
        return r;
}

static int add_partition(struct absent *b, const struct policy_partition *p)
{
        int r = 0;

        b->base = p->base;
        /* a GUID in a line of its own decides over one in a group */
        for (unsigned groups = 0; groups < 2; groups++)
                for (uint32_t i = 0; i < p->n_rules && r == 0; i++) {
                        b->membership = p->rules[i].membership;
                        r = add_selectors(b, p->rules[i].selectors, p->rules[i].n_selectors, groups == 1, 0);
                }
        return r;
}

static int collect(struct context *ctx, struct partitions_file *ret)
{
        struct absent absent = { .ctx = ctx };
        struct partitions_file_port *ports, *all;
        uint32_t n;
        int r;

        r = partitions_file_collect(ctx->arena, ctx->subnet, ctx->desired->ports, &ports, &n);
        for (uint32_t i = 0; i < ctx->policy->n_partitions && r == 0; i++)
                r = add_partition(&absent, &ctx->policy->partitions[i]);
        if (r < 0)
                return r;
        all = arena_new_array(ctx->arena, struct partitions_file_port, (size_t) n + absent.n);
        if (!all)
                return -ENOMEM;
        memcpy(all, ports, n * sizeof(*all));
        if (absent.n > 0)
                memcpy(all + n, absent.ports, absent.n * sizeof(*all));
        return partitions_file_from_ports(ctx->arena, ctx->policy, NULL, all, n + absent.n, ret);
}

int command_export(struct context *ctx)
{
        struct partitions_file file;
        const struct session_hooks hooks = { .choose = session_choose_none };
        struct result result = { .kind = RESULT_FILE };
        struct opensm_conf opensm;
        int r;

        if (strcmp(ctx->arguments[0], "opensm") != 0)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "export: '%s' is no kind of file (accepted: opensm)", ctx->arguments[0]);
        ctx->named_files_only = ctx->options->topology != NULL;
        r = pipeline_read_files(ctx, POLICY_REQUIRED, ctx->arguments[1]);
        if (r == 0)
                r = pipeline_read_opensm_conf(ctx, NULL, &opensm);
        if (r == 0)
                r = ctx->options->topology ? pipeline_read_topology(ctx) : session_sweep(ctx, CONTROL_LOOK, &hooks);
        if (r == 0)
                r = pipeline_resolve(ctx);
        if (r == 0)
                r = collect(ctx, &file);
        if (r < 0)
                return r;
        file.released = true;
        r = partitions_file_render(ctx->arena, &file, opensm.allow_both_pkeys, &ctx->findings, &result.file.bytes,
                                   &result.file.n);
        return r < 0 ? r : output(ctx, &result);
}
