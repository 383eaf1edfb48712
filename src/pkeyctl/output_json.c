/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

static int as_json_refused(struct context *ctx)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, false);
        return doc_print(&d);
}

static json_t *partition_object(struct doc *d, const struct policy_partition *partition)
{
        json_t *o = json_object();

        doc_put(d, o, "partition", doc_text(partition->name));
        doc_put(d, o, "p_key", doc_base(partition->base));
        doc_put(d, o, "index0", json_boolean(partition->index0));
        doc_put(d, o, "lines", json_integer(partition->n_rules));
        return o;
}

static int as_json_file(struct context *ctx, const char *bytes, size_t n)
{
        _cleanup_doc_ struct doc d = {};
        int r = ctx->options->output ? output_write_file(ctx, bytes, n) : 0;

        if (r < 0)
                return r;
        doc_begin(&d, ctx, true);
        if (ctx->options->output)
                doc_put(&d, d.root, "output", doc_text(ctx->options->output));
        else
                doc_put(&d, d.root, "text", doc_text(bytes));
        return doc_print(&d);
}

static int as_json_check(struct context *ctx, const struct check_result *r)
{
        _cleanup_doc_ struct doc d = {};
        json_t *partitions = json_array();

        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                json_t *o = partition_object(&d, &ctx->policy->partitions[i]);

                doc_put(&d, o, "members", r->counts ? as_json_member_count(&d, &r->counts[i]) : json_null());
                doc_append(&d, partitions, o);
        }
        doc_put(&d, d.root, "file", doc_text(ctx->policy->file));
        doc_put(&d, d.root, "groups", json_integer(ctx->policy->n_groups));
        doc_put(&d, d.root, "partitions", partitions);
        return doc_print(&d);
}

/* There is one object, at the end; the question on the terminal says how much it is about. */
static int as_json_propose(struct context *ctx, const struct plan_result *r)
{
        (void) ctx;
        (void) r;
        return 0;
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
