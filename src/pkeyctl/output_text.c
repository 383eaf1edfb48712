/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/result_text.h"
#include "shell/findings_print.h"

void text_findings(struct context *ctx, bool terse)
{
        enum finding_severity least = FINDING_NOTE;
        struct findings rest = ctx->findings;

        if (ctx->options->quiet || (terse && !ctx->options->verbose))
                least = FINDING_ERROR;
        rest.items += ctx->n_told;
        rest.n -= ctx->n_told;
        ctx->n_told = ctx->findings.n;
        if (findings_print(stderr, &rest, least) < 0)
                output_fail(ctx, -ENOMEM);
}

void text_table_print(struct context *ctx, struct text_table *t)
{
        int r = text_table_end(t);

        if (r < 0)
                output_fail(ctx, r);
}

const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < n; i++)
                if (keys[i].v != 0)
                        text_add(&t, "%s0x%04x", t.n > 0 ? " " : "", keys[i].v);
        return output_taken(ctx, &t);
}

void text_unreachable(struct context *ctx, const uint32_t *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                printf("not read: %s (LID %u, GUID 0x%016" PRIx64 "): %s%s\n", output_label(ctx, ports[i]),
                       ctx->subnet->ports[ports[i]].lid.v, ctx->subnet->ports[ports[i]].guid.v,
                       output_failure(ctx, ports[i]),
                       ctx->observed->tables[ports[i]].source == TABLE_ASSUMED
                                       ? "; taken to hold what the last policy gave it"
                                       : "");
}

void text_refused(struct context *ctx, const struct result *r)
{
        char count[64];

        (void) r;
        findings_print_count(&ctx->findings, count, sizeof(count));
        fprintf(stderr, "%s; %s\n", count,
                ctx->writing ? "the run ended in the middle, pkeyctl verify tells what is in force"
                             : "nothing was sent");
}

void text_file(struct context *ctx, const struct result *r)
{
        if (ctx->options->output)
                (void) output_write_file(ctx, r->file.bytes, r->file.n);
        else if (fwrite(r->file.bytes, 1, r->file.n, stdout) != r->file.n)
                output_fail(ctx, -EIO);
}

void text_check(struct context *ctx, const struct result *result)
{
        const struct check_result *r = &result->check;
        const struct policy *policy = ctx->policy;
        struct text_table t;
        char count[64];

        text_table_begin(&t, "PARTITION|P_KEY|>LINES|>FULL|>LIMITED|>BOTH", r->counts ? 0 : 3);
        for (uint32_t i = 0; i < policy->n_partitions; i++) {
                const struct policy_partition *p = &policy->partitions[i];
                const struct member_count none = {}, *c = r->counts ? &r->counts[i] : &none;

                text_table_row(&t, NULL, "%s\t0x%04x\t%u\t%u\t%u\t%u", p->name, p->base, p->n_rules, c->full, c->limited,
                               c->both);
        }
        text_table_print(ctx, &t);
        findings_print_count(&ctx->findings, count, sizeof(count));
        printf("%s: %u partition%s, %u group%s; %s\n", policy->file, policy->n_partitions,
               text_plural(policy->n_partitions), policy->n_groups, text_plural(policy->n_groups), count);
}
