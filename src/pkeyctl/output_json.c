/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

static void as_json_refused(struct context *ctx)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, false);
        doc_print(&d);
}

static void as_json_file(struct context *ctx, const char *bytes, size_t n)
{
        const char *path = ctx->options->output;
        _cleanup_doc_ struct doc d = {};

        if (path && output_write_file(ctx, bytes, n) < 0)
                return;
        doc_begin(&d, ctx, true);
        doc_add(&d, d.root, "{s:o}", path ? "output" : "text", doc_text(path ?: bytes));
        doc_print(&d);
}

static void as_json_check(struct context *ctx, const struct check_result *r)
{
        _cleanup_doc_ struct doc d = {};
        json_t *partitions = json_array();

        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                const struct policy_partition *p = &ctx->policy->partitions[i];

                doc_append(&d, partitions,
                           doc_pack(&d, "{s:o, s:o, s:b, s:i, s:o}", "partition", doc_text(p->name), "p_key",
                                    doc_base(p->base), "index0", p->index0, "lines", p->n_rules, "members",
                                    r->counts ? as_json_member_count(&d, &r->counts[i]) : json_null()));
        }
        doc_add(&d, d.root, "{s:o, s:i, s:o}", "file", doc_text(ctx->policy->file), "groups", ctx->policy->n_groups,
                "partitions", partitions);
        doc_print(&d);
}

/* There is one object, at the end; the question on the terminal says how much it is about. */
static void as_json_propose(struct context *ctx, const struct plan_result *r)
{
        (void) ctx;
        (void) r;
}

const struct output output_json = {
        .refused = as_json_refused,
        .check = as_json_check,
        .plan = as_json_plan,
        .propose = as_json_propose,
        .apply = as_json_apply,
        .verify = as_json_verify,
        .verify_local = as_json_verify_local,
        .show_ports = as_json_show_ports,
        .show_partitions = as_json_show_partitions,
        .show_port = as_json_show_port,
        .file = as_json_file,
        .explain = as_json_explain,
        .doctor = as_json_doctor,
        .status = as_json_status,
        .reload = as_json_reload,
        .violations = as_json_violations,
        .watch = as_json_watch,
};
