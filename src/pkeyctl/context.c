/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/context.h"

#include <errno.h>

int context_init(struct context *ctx, const struct options *options)
{
        *ctx = (struct context) { .options = options, .command = "" };
        ctx->arena = arena_new();
        findings_init(&ctx->findings, ctx->arena);
        settings_default(&ctx->settings);
        return ctx->arena ? 0 : -ENOMEM;
}

void context_done(struct context *ctx)
{
        opened_port_close(&ctx->port);
        (void) control_free(ctx->control);
        (void) m_keys_free(ctx->m_keys);
        (void) sd_event_unref(ctx->event);
        (void) remembered_free(ctx->remembered);
        state_close(&ctx->state);
        findings_done(&ctx->findings);
        (void) arena_free(ctx->arena);
}
