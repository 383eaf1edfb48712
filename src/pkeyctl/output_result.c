/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"
#include "pkeyctl/result_text.h"

enum {
        OK_IF_DONE = 1 << 0,    /* "ok" is true then only; else whenever there is a result */
        QUIET = 1 << 1,         /* -q leaves its text out */
        TERSE = 1 << 2,         /* its text has no warnings, unless -v */
        FINDINGS_LAST = 1 << 3, /* behind its text: they are about it */
};

/* How each kind of result is told. */
static const struct printer {
        void (*text)(struct context *ctx, const struct result *r);
        void (*json)(struct doc *d, const struct result *r); /* what stands beside the findings; NULL: nothing */
        unsigned flags;
} printers[] = {
        [RESULT_REFUSED] = { text_refused, NULL, OK_IF_DONE },
        [RESULT_CHECK] = { text_check, as_json_check, QUIET },
        [RESULT_PLAN] = { text_plan, as_json_plan, QUIET },
        [RESULT_APPLY] = { text_apply, as_json_apply, OK_IF_DONE },
        [RESULT_VERIFY] = { text_verify, as_json_verify, OK_IF_DONE | QUIET },
        [RESULT_VERIFY_LOCAL] = { text_verify_local, as_json_verify_local, OK_IF_DONE | QUIET },
        [RESULT_PORTS] = { text_show_ports, as_json_show_ports, TERSE },
        [RESULT_PARTITIONS] = { text_show_partitions, as_json_show_partitions, TERSE },
        [RESULT_PORT] = { text_show_port, as_json_show_port, TERSE },
        [RESULT_FILE] = { text_file, as_json_file, FINDINGS_LAST },
        [RESULT_HELD] = { text_show_held, as_json_show_held, 0 }, /* "nothing is held" is no answer if the state cannot be read */
        [RESULT_FORGOTTEN] = { text_forgotten, as_json_vouches, QUIET },
        [RESULT_VOUCHES] = { text_vouches, as_json_vouches, QUIET },
        [RESULT_EXPLAIN] = { text_explain, as_json_explain, TERSE | QUIET },
        [RESULT_DOCTOR] = { text_doctor, as_json_doctor, OK_IF_DONE | QUIET },
        [RESULT_STATUS] = { text_status, as_json_status, QUIET },
        [RESULT_RELOAD] = { text_reload, as_json_reload, OK_IF_DONE },
        [RESULT_VIOLATIONS] = { text_violations, as_json_violations, QUIET },
};

static void print_json(struct context *ctx, const struct printer *p, const struct result *r)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, !(p->flags & OK_IF_DONE) || r->status == EXIT_DONE);
        if (p->json)
                p->json(&d, r);
        if (ctx->output_r == 0)
                doc_print(&d);
}

static void print_text(struct context *ctx, const struct printer *p, const struct result *r)
{
        if (!(p->flags & FINDINGS_LAST))
                text_findings(ctx, p->flags & TERSE);
        if (!ctx->options->quiet || !(p->flags & QUIET))
                p->text(ctx, r);
        if (p->flags & FINDINGS_LAST && ctx->output_r == 0)
                text_findings(ctx, p->flags & TERSE);
}

int output(struct context *ctx, const struct result *r)
{
        if (ctx->options->json)
                print_json(ctx, &printers[r->kind], r);
        else
                print_text(ctx, &printers[r->kind], r);
        return r->status;
}

/* JSON has one object, at the end; the question on the terminal says how much it is about. */
void output_proposal(struct context *ctx, const struct plan_result *r)
{
        if (!ctx->options->json)
                text_proposal(ctx, r);
}

void output_vouches_proposal(struct context *ctx, const struct vouches_result *r)
{
        if (!ctx->options->json)
                text_vouches_proposal(ctx, r);
}

void output_watched(struct context *ctx, const struct watched *r)
{
        if (ctx->options->json)
                as_json_watched(ctx, r);
        else if (!ctx->options->quiet)
                text_watched(ctx, r);
}
