/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/pipeline.h"

#include <errno.h>
#include <string.h>

#include "desired/assume.h"
#include "pkeyctl/progress.h"
#include "shell/file.h"
#include "shell/secret.h"
#include "subnet/survey.h"

#define SETTINGS_MAX_SIZE     (1u << 20)
#define TOPOLOGY_MAX_SIZE     (256u << 20)

/* --- files ----------------------------------------------------------------------------------------------------------- */

/* A default file may be absent; one that was named may not. */
static bool is_absent(const char *path)
{
        return access(path, F_OK) < 0 && errno == ENOENT;
}

static void override_settings(struct context *ctx)
{
        const struct options *o = ctx->options;

        if (o->ca) {
                ctx->settings.ca = o->ca;
                ctx->settings.port = 0;
        }
        if (o->port)
                ctx->settings.port = o->port;
        if (o->timeout)
                ctx->settings.timeout = o->timeout;
        plan_options_from_settings(&ctx->settings, &ctx->plan_options);
}

static int read_settings(struct context *ctx)
{
        const char *path = ctx->options->config ?: DEFAULT_CONFIG_FILE, *bytes;
        struct settings *settings;
        size_t n;
        int r;

        if (!ctx->options->config && (ctx->named_files_only || is_absent(path)))
                return 0;
        r = file_read_found(ctx->arena, path, SETTINGS_MAX_SIZE, &ctx->findings, &bytes, &n);
        if (r < 0)
                return r;
        r = settings_parse(ctx->arena, path, bytes, n, &ctx->findings, &settings);
        if (r < 0)
                return r;
        ctx->settings = *settings;
        return 0;
}

static int read_policy(struct context *ctx, enum policy_need need, const char *argument)
{
        const char *named = argument ?: ctx->options->policy, *path = named ?: DEFAULT_POLICY_FILE, *bytes;
        size_t n;
        int r;

        if (need == POLICY_NONE || (need == POLICY_OPTIONAL && !named && is_absent(path)))
                return 0;
        r = file_read_found(ctx->arena, path, POLICY_MAX_FILE_SIZE, &ctx->findings, &bytes, &n);
        if (r < 0)
                return r;
        r = policy_parse(ctx->arena, path, bytes, n, &ctx->findings, &ctx->policy);
        if (r < 0)
                return r;
        ctx->policy_path = path;
        ctx->policy_bytes = bytes;
        ctx->policy_n_bytes = n;
        return 0;
}

int pipeline_read_files(struct context *ctx, enum policy_need need, const char *argument)
{
        int settings = read_settings(ctx), policy;

        if (settings < 0 && settings != -EBADMSG)
                return settings;
        policy = read_policy(ctx, need, argument);
        if (policy < 0 && policy != -EBADMSG)
                return policy;
        override_settings(ctx);
        return settings < 0 || policy < 0 ? -EBADMSG : 0;
}

/* --- what is remembered ---------------------------------------------------------------------------------------------- */

/* What cannot be remembered costs no correctness: only a directory that was named must work, and only for writing. */
static int complain_state_dir(struct context *ctx, const char *path, int error, bool fatal)
{
        struct finding *item = findings_add(&ctx->findings, fatal ? FINDING_ERROR : FINDING_WARNING,
                                            FINDING_HOST_STATE_DIR, NULL, "%s: %s", path, strerror(-error));

        if (item)
                finding_set_hint(&ctx->findings, item,
                                 "the state directory remembers which indexes were used; --state-dir names another");
        return fatal ? -EBADMSG : 0;
}

static int take_lock(struct context *ctx, const char *path)
{
        int pid = 0, r = state_dir_lock(ctx->state, &pid);

        if (r == 0)
                return 0;
        if (r != -EWOULDBLOCK)
                return complain_state_dir(ctx, path, r, ctx->options->state_dir != NULL);
        if (pid > 0)
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_BUSY, NULL,
                                    "%s: process %d is writing tables now", path, pid);
        else
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_BUSY, NULL,
                                    "%s: another process is writing tables now", path);
        return -EBADMSG;
}

static int load_memory(struct context *ctx, const char *path)
{
        bool damaged = false;
        int r;

        r = state_dir_load_indexes(ctx->state, &ctx->memory, &damaged);
        if (r < 0)
                return r == -ENOMEM ? r : complain_state_dir(ctx, path, r, false);
        if (damaged)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_STATE_DIR, NULL,
                                    "%s: the memory of used indexes is damaged and was not used", path);
        r = state_dir_load_policy(ctx->state, ctx->arena, &ctx->last_policy, &ctx->last_policy_n, &ctx->generation);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r == -ENOMEM ? r : complain_state_dir(ctx, path, r, false);
        return 0;
}

int pipeline_open_state(struct context *ctx, bool writing)
{
        const char *path = ctx->options->state_dir ?: STATE_DIR_DEFAULT;
        int r;

        /* who only looks does not make it */
        if (!writing && is_absent(path))
                return 0;
        r = state_dir_open(path, &ctx->state);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return complain_state_dir(ctx, path, r, writing && ctx->options->state_dir);
        if (writing) {
                r = take_lock(ctx, path);
                if (r < 0)
                        return r;
        }
        return load_memory(ctx, path);
}

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

static int complain_no_device(struct context *ctx)
{
        const char *ca = ctx->settings.ca;
        unsigned port = ctx->settings.port;
        struct finding *item;

        if (ca && port)
                item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL,
                                    "this host has no InfiniBand port '%s' %u", ca, port);
        else if (ca)
                item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL,
                                    "this host has no InfiniBand device '%s'", ca);
        else if (port)
                item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL,
                                    "no InfiniBand device of this host has a port %u", port);
        else
                item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL,
                                    "no InfiniBand device on this host");
        if (item)
                finding_set_hint(&ctx->findings, item, "ibstat shows them; is ib_umad loaded?");
        return -EBADMSG;
}

/* What this host's own stack said; `what` was tried. */
static int complain_host(struct context *ctx, int r, const char *what)
{
        struct findings *f = &ctx->findings;
        struct finding *item;

        switch (-r) {
        case ENOMEM:
                return -ENOMEM;
        case ENODEV:
        case ENXIO:
                return complain_no_device(ctx);
        case EACCES:
        case EPERM:
                item = findings_add(f, FINDING_ERROR, FINDING_HOST_NO_PERMISSION, NULL,
                                    "may not open /dev/infiniband/umad*");
                if (item)
                        finding_set_hint(f, item, "run as root");
                return -EBADMSG;
        case EOPNOTSUPP:
                item = findings_add(f, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL, "the kernel module ib_umad is not loaded");
                if (item)
                        finding_set_hint(f, item, "modprobe ib_umad; rdma-core loads it at boot where it is installed");
                return -EBADMSG;
        case ENETDOWN:
                item = findings_add(f, FINDING_ERROR, FINDING_HOST_PORT_DOWN, NULL,
                                    "the link of this host's InfiniBand port%s%s is down",
                                    ctx->settings.ca ? " of " : "", ctx->settings.ca ?: "");
                if (item)
                        finding_set_hint(f, item, "-C and -P choose another; ibstat shows them");
                return -EBADMSG;
        }
        (void) findings_add(f, FINDING_ERROR, FINDING_HOST_DISCOVERY, NULL, "%s: %s", what, strerror(-r));
        return -EBADMSG;
}

static int complain_discovery(struct context *ctx, int r)
{
        const struct local_port *lp = fabric_local_port(ctx->fabric);
        struct finding *item;

        if (r == -EIO) {
                item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_DISCOVERY, NULL,
                                    "%s/%u: libibnetdisc could not discover the fabric", lp->ca, lp->port);
                finding_set_hint(&ctx->findings, item, "the port itself does not answer; if it has an M_Key, m_key_file must "
                                                       "name it");
        } else if (r == -ENODATA) {
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_DISCOVERY, NULL,
                                    "%s/%u: the fabric that was discovered does not have this host's own port", lp->ca,
                                    lp->port);
        } else {
                return complain_host(ctx, r, "discovery");
        }
        return -EBADMSG;
}

/* The waiting side knows the result from fabric_wait. */
static void ignore_done(int r, void *userdata)
{
        (void) r;
        (void) userdata;
}

int pipeline_read_topology(struct context *ctx)
{
        const char *bytes, *path = ctx->options->topology;
        size_t n;
        int r;

        r = file_read_found(ctx->arena, path, TOPOLOGY_MAX_SIZE, &ctx->findings, &bytes, &n);
        if (r < 0)
                return r;
        return subnet_parse_topology(ctx->arena, path, bytes, n, &ctx->findings, &ctx->subnet);
}

int pipeline_discover(struct context *ctx)
{
        _cleanup_progress_ struct progress progress = progress_begin("discovering", ctx->options->quiet);
        int r;

        if (!ctx->event) {
                r = sd_event_default(&ctx->event);
                if (r < 0)
                        return complain_host(ctx, r, "event loop");
        }
        r = secret_read_m_keys(&ctx->settings, &ctx->findings, &ctx->m_keys);
        if (r < 0)
                return r;
        r = fabric_new(ctx->event, &ctx->settings, &ctx->fabric);
        if (r < 0)
                return complain_host(ctx, r, "InfiniBand port");
        fabric_set_m_key(ctx->fabric, m_keys_common(ctx->m_keys));
        r = fabric_discover(ctx->fabric, ctx->arena, &ctx->subnet, ignore_done, NULL);
        if (r >= 0)
                r = fabric_wait(ctx->fabric, progress_show, &progress);
        return r < 0 ? complain_discovery(ctx, r) : 0;
}

int pipeline_run(struct context *ctx, const struct mad_stage *stage, const char *what)
{
        _cleanup_progress_ struct progress progress = progress_begin(what, ctx->options->quiet);
        int r;

        r = fabric_run(ctx->fabric, stage, ignore_done, NULL);
        if (r >= 0)
                r = fabric_wait(ctx->fabric, progress_show, &progress);
        return r < 0 ? complain_host(ctx, r, what) : 0;
}

/* The last policy was good when it was saved. If it is not any more (another version of pkeyd, a damaged file), nothing
 * is assumed: that is safe, for a port of which nothing is known is left alone. */
static int assume_unread(struct context *ctx)
{
        _cleanup_findings_ struct findings scratch;
        struct memberships *memberships;
        struct desired *desired;
        struct policy *policy;
        int r;

        findings_init(&scratch, ctx->arena);
        r = policy_parse(ctx->arena, "policy.yaml", ctx->last_policy, ctx->last_policy_n, &scratch, &policy);
        if (r >= 0)
                r = policy_resolve(ctx->arena, policy, ctx->subnet, &scratch, &memberships);
        if (r >= 0)
                r = desired_compute(ctx->arena, memberships, &desired);
        if (r == -EBADMSG)
                return 0;
        if (r < 0)
                return r;
        (void) desired_assume_unread(ctx->observed, desired);
        return 0;
}

int pipeline_survey(struct context *ctx, const uint32_t *ports, uint32_t n_ports)
{
        const struct survey_options options = {
                .m_keys = ctx->m_keys, .retries = STAGE_RETRIES, .ports = ports, .n_ports = n_ports,
        };
        struct mad_stage stage;
        struct survey *survey;
        int r;

        r = observed_new(ctx->arena, ctx->subnet, &ctx->observed);
        if (r < 0)
                return r;
        r = survey_new(ctx->arena, ctx->observed, &options, &survey);
        if (r < 0)
                return r;
        stage = survey_stage(survey);
        r = pipeline_run(ctx, &stage, "reading tables");
        if (r < 0)
                return r;
        if (survey_n_unreachable(survey) > 0 && ctx->last_policy)
                return assume_unread(ctx);
        return 0;
}

int pipeline_look(struct context *ctx)
{
        int r = pipeline_discover(ctx);

        return r < 0 ? r : pipeline_survey(ctx, NULL, 0);
}

int pipeline_survey_around(struct context *ctx, const uint32_t *ports, uint32_t n_ports)
{
        const struct subnet *s = ctx->subnet;
        bool *chosen = arena_new_array(ctx->arena, bool, s->n_ports);
        uint32_t *list = arena_new_array(ctx->arena, uint32_t, s->n_ports), n = 0;

        if (!chosen || !list)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_ports; i++) {
                uint32_t neighbour = s->ports[ports[i]].neighbour;

                chosen[ports[i]] = true;
                if (neighbour != SUBNET_NONE)
                        chosen[neighbour] = true;
        }
        for (uint32_t p = 0; p < s->n_ports; p++)
                if (chosen[p] && subnet_port_is_managed(s, &s->ports[p]))
                        list[n++] = p;
        return pipeline_survey(ctx, list, n);
}

static void pass_on(struct context *ctx, const struct finding *item)
{
        struct finding *copy = findings_add(&ctx->findings, FINDING_ERROR, item->code, &item->where, "%s", item->text);

        if (copy && item->hint)
                finding_set_hint(&ctx->findings, copy, "%s", item->hint);
}

int pipeline_select(struct context *ctx, const char *text, uint32_t **ret_ports, uint32_t *ret_n)
{
        _cleanup_findings_ struct findings found;
        int r;

        findings_init(&found, ctx->arena);
        r = policy_select(ctx->arena, ctx->policy, ctx->subnet, text, &found, ret_ports, ret_n);
        if (r < 0 && r != -EBADMSG)
                return r;
        if (r >= 0 && *ret_n > 0)
                return 0;
        /* what is only worth a warning in a file is the end of the matter here */
        for (size_t i = 0; i < found.n; i++)
                pass_on(ctx, &found.items[i]);
        if (found.n == 0)
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_SELECTOR_NO_MATCH, NULL,
                                    "'%s' matches nothing in the fabric", text);
        return found.out_of_memory ? -ENOMEM : -EBADMSG;
}

int pipeline_unreachable(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_ports), n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++)
                if (subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[p]) &&
                    ctx->observed->tables[p].source != TABLE_READ)
                        ports[n++] = p;
        *ret = ports;
        *ret_n = n;
        return 0;
}

/* --- the decision ---------------------------------------------------------------------------------------------------- */

int pipeline_resolve(struct context *ctx)
{
        int r;

        if (!ctx->policy)
                return 0;
        r = policy_resolve(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &ctx->memberships);
        if (r < 0)
                return r;
        return desired_compute(ctx->arena, ctx->memberships, &ctx->desired);
}

int pipeline_plan(struct context *ctx)
{
        struct reconciled out;
        int r;

        r = reconcile(ctx->arena, ctx->policy, ctx->observed, ctx->memory, &ctx->plan_options, &ctx->findings, &out);
        if (r < 0)
                return r;
        ctx->memberships = out.memberships;
        ctx->desired = out.desired;
        ctx->plan = out.plan;
        return 0;
}
