/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "import/import.h"
#include "pkeyctl/commands.h"
#include "shell/file.h"

/* Without a fabric GUIDs stay GUIDs: that is a warning, but an error if -C or -P names a port. */
static int find_names(struct context *ctx)
{
        const struct session_hooks hooks = { .choose = session_choose_none };
        struct findings before = ctx->findings;
        const char *why = "";
        struct finding *item;
        int r;

        if (ctx->subnet)
                return 0;
        ctx->findings = (struct findings) { .arena = ctx->arena };
        r = session_sweep(ctx, CONTROL_READ, &hooks);
        for (size_t i = 0; i < ctx->findings.n && r == -EBADMSG; i++)
                why = ctx->findings.items[i].text;
        findings_done(&ctx->findings);
        ctx->findings = before;
        if (r != -EBADMSG)
                return r;
        item = findings_add(&ctx->findings, ctx->options->ca || ctx->options->port ? FINDING_ERROR : FINDING_WARNING,
                            FINDING_HOST_NO_DEVICE, NULL, "%s: GUIDs are kept, and the result is not compared with the fabric", why);
        finding_set_hint(&ctx->findings, item, "or give the output of ibnetdiscover with --topology FILE");
        return ctx->options->ca || ctx->options->port ? -EBADMSG : 0;
}

/* Before the first apply the admin has to decide who writes. A relative path names a copy, not OpenSM's own file. */
static void note_writer(struct context *ctx, const char *path)
{
        const char *config = ctx->options->opensm_config;

        if (*path != '/')
                return;
        (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_IMPORT_WRITER, NULL,
                            "before the first apply, on the host of this OpenSM, let pkeyd write the file: in pkeyd.yaml set "
                            "writer: opensm and opensm: {partitions_conf: %s, reload: \"systemd:opensm.service\"%s%s}, and follow "
                            "HANDING OVER THE PARTITION FILE in pkeyd-opensm(7)", path, config ? ", config: " : "", config ?: "");
}

int command_import(struct context *ctx)
{
        const char *path = ctx->arguments[0], *bytes, *yaml;
        enum opensm_numbers numbers = pipeline_opensm_numbers(ctx);
        struct partitions_conf *conf = NULL;
        struct opensm_conf opensm;
        size_t n;
        int r = pipeline_read_opensm_conf(ctx, NULL, &opensm) ?:
                file_read_found(ctx->arena, path, PARTITIONS_CONF_MAX_SIZE, &ctx->findings, &bytes, &n) ?:
                partitions_conf_parse(ctx->arena, numbers, path, bytes, n, &ctx->findings, &conf) ?: find_names(ctx) ?:
                import_convert(ctx->arena, conf, ctx->subnet, ctx->known, opensm.allow_both_pkeys, &ctx->findings, &yaml);

        if (r < 0)
                return r;
        note_writer(ctx, path);
        return output_file(ctx, conf->discarded ? EXIT_DIFFERENCE : EXIT_DONE, yaml, strlen(yaml));
}
