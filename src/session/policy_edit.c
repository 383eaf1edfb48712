/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/policy_edit.h"

#include <errno.h>
#include <string.h>

#include "session/output_text.h"
#include "shell/file.h"
#include "util/yaml_source.h"

static void print_line(struct context *ctx, FILE *out, char sign, const char *line)
{
        fprintf(out, "%c %s\n", sign, output_or_fail(ctx, yaml_source_visible(ctx->arena, line, strcspn(line, "\r\n"))));
}

void policy_edit_show(struct context *ctx, const struct policy_edit *e)
{
        const char *before = e->before, *after = e->after;
        FILE *out = ctx->options->json ? stderr : stdout;
        size_t n, m;

        for (unsigned line = 1; *before && *after; line++) {
                n = strcspn(before, "\n");
                m = strcspn(after, "\n");
                if (n != m || memcmp(before, after, n) != 0) {
                        fprintf(out, "%s:%u\n", e->path, line);
                        print_line(ctx, out, '-', before);
                        print_line(ctx, out, '+', after);
                }
                before += n + (before[n] == '\n');
                after += m + (after[m] == '\n');
        }
}

int policy_edit_write(struct context *ctx, const struct policy_edit *e)
{
        const char *now;
        size_t n;
        int r = file_read_found(ctx->arena, e->path, POLICY_MAX_FILE_SIZE, &ctx->findings, &now, &n);

        if (r < 0)
                return r;
        if (n != e->n_before || memcmp(now, e->before, n) != 0)
                return findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, "repeat the command",
                                      "%s has changed meanwhile: pkeyctl did not write it", e->path);
        r = file_write(FILE_EDITED, e->path, e->after, e->n_after);
        if (r == -ENOMEM || r == 0)
                return r;
        return findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE,
                              r == -EPERM ? "run this as root: the file keeps its owner and group" : NULL,
                              "%s cannot be written: %s", e->path, strerror(-r));
}
