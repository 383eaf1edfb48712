/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/ask.h"

#include <string.h>

int ask_is_possible(struct context *ctx)
{
        if (ctx->options->yes || isatty(STDIN_FILENO))
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, "--yes goes on without asking", "there is no terminal to ask on");
}

int ask_person(struct context *ctx, const char *question, ...)
{
        char answer[16] = "";
        va_list ap;

        if (ctx->options->yes)
                return 0;
        (void) fflush(stdout);
        va_start(ap, question);
        (void) vfprintf(stderr, question, ap);
        va_end(ap);
        fputs(" [y/N] ", stderr);
        if (!fgets(answer, sizeof(answer), stdin))
                fputc('\n', stderr);
        answer[strcspn(answer, "\r\n")] = '\0';
        if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, NULL, "not confirmed");
}
