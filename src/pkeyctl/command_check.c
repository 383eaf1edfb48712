/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "policy/policy_fix.h"
#include "session/policy_edit.h"
#include "shell/file.h"
#include "shell/findings_print.h"
#include "util/yaml_source.h"

struct check_result {
        struct member_count *counts; /* per partition of the policy; NULL: no topology was given */
        struct policy_edit file;     /* --fix: before and after the corrections; path NULL: without --fix */
        unsigned n_fixed;            /* corrections that were written */
        bool refused;                /* corrections were taken back */
};

static void json_fixed(struct doc *d, const void *result)
{
        const struct check_result *r = result;

        if (r->file.path)
                doc_add(d, d->root, "{s:i}", "fixed", r->n_fixed);
}

static json_t *partition_object(const struct policy_partition *p, const struct member_count *count)
{
        return json_pack("{s:o, s:o, s:b, s:i, s:o}", "partition", doc_text(p->name), "p_key", doc_base(p->base), "index0", p->index0,
                         "lines", p->n_rules, "members", count ? json_member_count(count) : json_null());
}

static void json_check(struct doc *d, const void *result)
{
        const struct check_result *r = result;
        const struct policy *p = d->ctx->policy;

        doc_add(d, d->root, "{s:o, s:i, s:i, s:o}", "file", doc_text(p->file), "groups", p->n_groups, "pools", p->n_pools, "partitions",
                JSON_ARRAY(i, p->n_partitions, partition_object(&p->partitions[i], r->counts ? &r->counts[i] : NULL)));
        json_fixed(d, r);
}

static void text_check(struct context *ctx, const void *result)
{
        const struct check_result *r = result;
        const struct policy *policy = ctx->policy;
        struct text_table t;

        if (r->n_fixed > 0)
                printf("%s: %u correction%s written\n", r->file.path, r->n_fixed, text_plural(r->n_fixed));
        text_table_begin(&t, "PARTITION|P_KEY|>LINES|>FULL|>LIMITED|>BOTH", r->counts ? 0 : 3);
        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                const struct policy_partition *p = &policy->partitions[i];
                const struct member_count none = {}, *c = r->counts ? &r->counts[i] : &none;

                text_table_row(&t, NULL, "%s\t0x%04x\t%u\t%u\t%u\t%u", p->name, p->base, p->n_rules, c->full, c->limited,
                               c->both);
        }
        text_table_print(ctx, &t);
        printf("%s: %u partition%s, %u group%s", policy->file, policy->n_partitions, text_plural(policy->n_partitions),
               policy->n_groups, text_plural(policy->n_groups));
        if (policy->n_pools > 0)
                printf(", %u pool%s", policy->n_pools, text_plural(policy->n_pools));
        printf("; %s\n", findings_print_count(&ctx->findings).text);
}

static int count_members(struct context *ctx, struct check_result *result)
{
        struct memberships *m;
        int r = policy_resolve(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &m);

        if (r < 0)
                return r;
        result->counts = arena_new_array(ctx->arena, struct member_count, ctx->policy->n_partitions);
        if (!result->counts)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->first[ctx->subnet->n_ports]; i++)
                member_count_add(&result->counts[m->items[i].partition], m->items[i].membership);
        return 0;
}

/* Shows a policy that was read without errors. */
static int show_check(struct context *ctx, struct check_result *result)
{
        static const struct printer printer = { text_check, json_check, QUIET };
        int r = ctx->subnet ? count_members(ctx, result) : 0;

        return r < 0 ? r : output(ctx, &printer, EXIT_DONE, result);
}

int command_check(struct context *ctx)
{
        return show_check(ctx, &(struct check_result) {});
}

/* --- check --fix ----------------------------------------------------------------------------------------------------- */

/* Finds the corrections, shows them, asks, and writes them. Returns 0, -EBADMSG (findings say why), -ENOMEM. */
static int correct(struct context *ctx, struct check_result *c)
{
        int r;

        if (strcmp(c->file.path, "-") == 0)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "--fix writes the file: standard input cannot be one");
        r = file_read_found(ctx->arena, c->file.path, POLICY_MAX_FILE_SIZE, &ctx->findings, &c->file.before, &c->file.n_before);
        if (r < 0)
                return r;
        r = policy_fix(ctx->arena, c->file.path, c->file.before, c->file.n_before, &c->file.after, &c->file.n_after, &c->n_fixed,
                       &c->refused);
        if (r < 0 || c->n_fixed == 0)
                return r;
        if (!ctx->options->quiet || !ctx->options->yes)
                policy_edit_show(ctx, &c->file);
        if (ctx->output_r < 0)
                return ctx->output_r;
        return ask_person(ctx, "Write %u correction%s to %s?", c->n_fixed, text_plural(c->n_fixed), c->file.path) ?:
               policy_edit_write(ctx, &c->file);
}

static void text_left(struct context *ctx, const void *result)
{
        const struct check_result *r = result;
        fprintf(stderr, "%s; ", findings_print_count(&ctx->findings).text);
        if (r->n_fixed == 0)
                fputs("nothing was corrected\n", stderr);
        else
                fprintf(stderr, "%u correction%s written\n", r->n_fixed, text_plural(r->n_fixed));
}

int command_check_fix(struct context *ctx)
{
        static const struct printer printer = { text_left, json_fixed, OK_IF_DONE };
        struct check_result c = { .file.path = ctx->arguments[0] ?: ctx->options->policy ?: ctx->fabric.policy_file };
        int r = correct(ctx, &c);

        if (r < 0)
                return r;
        if (c.refused)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_FILE_UNWRITABLE, NULL,
                                    "%s: a correction was not made, because it would cause another error", c.file.path);
        r = pipeline_read_files(ctx, TAKES_POLICY | NEED_POLICY | NEED_TOPOLOGY);
        if (r == -EBADMSG)
                return output(ctx, &printer, EXIT_REFUSED, &c);
        return r < 0 ? r : show_check(ctx, &c);
}
