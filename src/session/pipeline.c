/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/pipeline.h"

#include <errno.h>

#include "policy/typing_error.h"
#include "reconcile.h"
#include "shell/file.h"
#include "shell/opensm_program.h"

#define TOPOLOGY_MAX_SIZE     (256u << 20)

/* --- files ----------------------------------------------------------------------------------------------------------- */

/* A default file may be absent; a named one may not. */
static bool is_absent(const char *path)
{
        return access(path, F_OK) < 0 && errno == ENOENT;
}

void pipeline_override_settings(struct context *ctx)
{
        const struct options *o = ctx->options;
        struct settings *s = ctx->files->settings;

        if (o->ca) {
                s->ca = o->ca;
                s->port = 0;
        }
        if (o->port)
                s->port = o->port;
        if (o->timeout)
                s->timeout = o->timeout;
        s->beside_opensm |= o->beside_opensm;
        ctx->settings = s;
        plan_options_from_settings(s, &ctx->plan_options);
}

static int read_settings(struct context *ctx, unsigned needs)
{
        const char *path = ctx->options->config ?: ctx->fabric.config_file, *bytes;
        struct generation *g = ctx->files;
        size_t n;
        int r;

        if (!ctx->options->config && (!(needs & NEED_SETTINGS) || ctx->options->topology || is_absent(path)))
                return 0;
        r = file_read_found(g->arena, path, SETTINGS_MAX_FILE_SIZE, &ctx->findings, &bytes, &n) ?:
            generation_read_settings(g, path, bytes, n, &ctx->findings);
        g->audits = false; /* the mode is pkeyd's */
        return r;
}

static int read_policy(struct context *ctx, unsigned needs)
{
        const char *named = (needs & TAKES_POLICY ? ctx->arguments[0] : NULL) ?: ctx->options->policy;
        const char *path = named ?: ctx->fabric.policy_file, *bytes = NULL;
        struct generation *g = ctx->files;
        size_t n = 0;
        int r;

        if (!(needs & (NEED_POLICY | NEED_POLICY_IF_ANY)) || (!(needs & NEED_POLICY) && !named && is_absent(path)))
                return 0;
        r = file_read_found(g->arena, path, POLICY_MAX_FILE_SIZE, &ctx->findings, &bytes, &n) ?:
            generation_read_policy(g, path, bytes, n, &ctx->findings);
        ctx->policy = g->policy;
        /* only JSON has corrections */
        if (r == -EBADMSG && bytes && ctx->options->json)
                r = typing_error_find(path, bytes, n, &ctx->findings) ?: r;
        return r;
}

int pipeline_read_topology(struct context *ctx)
{
        const char *bytes, *path = ctx->options->topology;
        size_t n;

        if (!path)
                return 0;
        return file_read_found(ctx->arena, path, TOPOLOGY_MAX_SIZE, &ctx->findings, &bytes, &n) ?:
               subnet_parse_topology(ctx->arena, path, bytes, n, &ctx->findings, &ctx->subnet);
}

int pipeline_read_files(struct context *ctx, unsigned needs)
{
        int settings = read_settings(ctx, needs);
        int policy = read_policy(ctx, needs);
        int topology = needs & NEED_TOPOLOGY ? pipeline_read_topology(ctx) : 0;

        pipeline_override_settings(ctx);
        if (settings < 0 && settings != -EBADMSG)
                return settings;
        if (policy < 0 && policy != -EBADMSG)
                return policy;
        return topology ?: policy ?: settings;
}

int pipeline_read_opensm_conf(struct context *ctx, const char *otherwise, struct opensm_conf *ret)
{
        const char *bytes, *path = ctx->options->opensm_config;
        size_t n;

        *ret = (struct opensm_conf) {};
        if (!path && otherwise && access(otherwise, F_OK) == 0)
                path = otherwise;
        if (!path)
                return 0;
        return file_read_found(ctx->arena, path, OPENSM_CONF_MAX_SIZE, &ctx->findings, &bytes, &n) ?:
               opensm_conf_parse(ctx->arena, path, bytes, n, &ctx->findings, ret);
}

enum opensm_numbers pipeline_opensm_numbers(struct context *ctx)
{
        return ctx->options->topology ? OPENSM_NUMBERS_UNKNOWN : opensm_program_numbers();
}

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

int pipeline_around(struct context *ctx, const struct endports *lists, size_t n_lists, const uint32_t **ret, uint32_t *ret_n)
{
        const struct subnet *s = ctx->subnet;
        bool *chosen = arena_new_array(ctx->arena, bool, s->n_ports);
        uint32_t *all = arena_new_array(ctx->arena, uint32_t, s->n_ports), n = 0;

        if (!chosen || !all)
                return -ENOMEM;
        for (size_t l = 0; l < n_lists; l++)
                for (uint32_t i = 0; i < lists[l].n; i++) {
                        uint32_t port = lists[l].ports[i], peer = s->ports[port].peer;

                        chosen[port] = true;
                        if (peer != SUBNET_NONE)
                                chosen[peer] = true;
                }
        for (uint32_t p = 0; p < s->n_ports; p++)
                if (chosen[p] && subnet_port_is_managed(s, &s->ports[p]))
                        all[n++] = p;
        *ret = all;
        *ret_n = n;
        return 0;
}

static int select_endports(struct context *ctx, const char *text, struct endports *ret)
{
        const struct control_status *status = control_get_status(ctx->control);
        const struct policy_memory memory = { status->known, status->pins };
        _cleanup_findings_ struct findings found = { .arena = ctx->arena };
        int r = policy_select(ctx->arena, ctx->policy, ctx->subnet, &memory, text, &found, &ret->ports, &ret->n);

        if (r < 0 && r != -EBADMSG)
                return r;
        if (r >= 0 && ret->n > 0)
                return 0;
        /* what is a warning about a file is an error about an argument */
        for (size_t i = 0; i < found.n; i++) {
                found.items[i].severity = FINDING_ERROR;
                found.items[i].source_line = NULL;
                findings_append(&ctx->findings, &found.items[i]);
        }
        if (found.n == 0)
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_SELECTOR_NO_MATCH, NULL,
                                    "'%s' matches nothing in the fabric", text);
        return found.out_of_memory ? -ENOMEM : -EBADMSG;
}

int pipeline_select(struct context *ctx)
{
        int r = 0;

        for (size_t i = 0; i < ELEMENTS(ctx->selected) && ctx->arguments[i] && (r == 0 || r == -EBADMSG); i++) {
                int selected = select_endports(ctx, ctx->arguments[i], &ctx->selected[i]);

                r = selected < 0 ? selected : r;
        }
        return r;
}

int pipeline_find(struct context *ctx, const struct policy *policy, const struct subnet *s, const struct known *known,
                  const char *text, struct endports *ret)
{
        const struct policy_memory memory = { known, ctx->pins };
        _cleanup_findings_ struct findings ignored = { .arena = ctx->arena };
        int r;

        ret->n = 0;
        r = policy_select(ctx->arena, policy, s, &memory, text, &ignored, &ret->ports, &ret->n);
        return r == -EBADMSG ? 0 : r;
}

int pipeline_filter(struct context *ctx, bool (*is_wanted)(const struct context *ctx, uint32_t port), struct endports *ret)
{
        *ret = (struct endports) { arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_ports), 0 };
        if (!ret->ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++)
                if (is_wanted(ctx, p))
                        ret->ports[ret->n++] = p;
        return 0;
}

bool pipeline_is_unreachable(const struct context *ctx, uint32_t port)
{
        return subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[port]) && ctx->observed->tables[port].source != TABLE_READ;
}

bool pipeline_is_frozen(const struct context *ctx, uint32_t port)
{
        return ctx->desired && ctx->desired->frozen[port] != FREEZE_NONE && ctx->subnet->ports[port].role == PORT_ENDPORT;
}

void pipeline_note_in_force(struct context *ctx)
{
        const struct generation *g = control_get_status(ctx->control)->in_force;
        bool has_errors = false, freezes = false;

        for (size_t i = 0; i < ctx->findings.n; i++) {
                bool is_frozen = ctx->findings.items[i].code == FINDING_PORT_FROZEN;

                has_errors |= ctx->findings.items[i].severity == FINDING_ERROR && !is_frozen;
                freezes |= is_frozen;
        }
        if (g && has_errors)
                (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_PORT_FROZEN, NULL,
                                    "the policy in force (generation %" PRIu64 ") has the same errors: pkeyd %s", g->number,
                                    freezes ? "freezes the ports concerned, and plans all others"
                                            : "carries it out for all ports that are in the fabric");
}

/* --- the decision ---------------------------------------------------------------------------------------------------- */

static bool is_in_force(const struct context *ctx)
{
        const struct generation *g = ctx->control ? control_get_status(ctx->control)->in_force : NULL;

        return g && generation_has_policy(g, ctx->files->policy_bytes, ctx->files->n_policy_bytes);
}

int pipeline_resolve(struct context *ctx, bool judges)
{
        struct plan_options *options = &ctx->plan_options;
        bool in_force = is_in_force(ctx);
        struct reconciled decision;
        int r;

        if (!ctx->policy)
                return 0;
        options->known = ctx->known;
        options->pins = ctx->pins;
        options->in_force = in_force || !judges;
        r = reconcile_tables(ctx->arena, ctx->policy, ctx->observed, options, &ctx->findings, &decision);
        if (r < 0)
                return r;
        if (in_force)
                pipeline_note_in_force(ctx);
        ctx->memberships = decision.memberships;
        ctx->desired = decision.desired;
        ctx->given = decision.given;
        return 0;
}
