/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/table.h"
#include "pkeyctl/text.h"
#include "shell/report.h"

int text_findings(struct context *ctx, bool terse)
{
        enum finding_severity least = FINDING_NOTE;
        struct findings rest = ctx->findings;

        if (ctx->options->quiet || (terse && ctx->options->verbose == 0))
                least = FINDING_ERROR;
        rest.items += ctx->n_told;
        rest.n -= ctx->n_told;
        ctx->n_told = ctx->findings.n;
        return report_findings(stderr, &rest, least);
}

void text_count(uint64_t n, const char *noun)
{
        printf("%" PRIu64 " %s%s", n, noun, n == 1 ? "" : "s");
}

const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n)
{
        _cleanup_free_ char *text = NULL;
        const char *separator = "";
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        for (uint32_t i = 0; i < n; i++) {
                if (keys[i].v == 0)
                        continue;
                fprintf(f, "%s0x%04x", separator, keys[i].v);
                separator = " ";
        }
        if (fclose(f) != 0)
                return NULL;
        return arena_strndup(ctx->arena, text, size);
}

int text_unreachable(struct context *ctx, const uint32_t *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                const char *label = subnet_port_label(ctx->arena, ctx->subnet, ports[i]);
                const char *why = output_failure(ctx, ports[i]);

                if (!label || !why)
                        return -ENOMEM;
                printf("not read: %s (LID %u, GUID 0x%016" PRIx64 "): %s%s\n", label, ctx->subnet->ports[ports[i]].lid.v,
                       ctx->subnet->ports[ports[i]].guid.v, why,
                       ctx->observed->tables[ports[i]].source == TABLE_ASSUMED
                                       ? "; taken to hold what the last policy gave it"
                                       : "");
        }
        return 0;
}

static int text_refused(struct context *ctx)
{
        char count[64];
        int r = text_findings(ctx, false);

        report_count(&ctx->findings, count, sizeof(count));
        if (ctx->writing)
                fprintf(stderr, "%s; the run ended in the middle, pkeyctl verify tells what is in force\n", count);
        else
                fprintf(stderr, "%s; nothing was sent\n", count);
        return r;
}

static int text_file(struct context *ctx, const char *bytes, size_t n)
{
        int r = ctx->options->output ? output_write_file(ctx, bytes, n) : 0;

        if (r < 0)
                return r;
        if (!ctx->options->output && fwrite(bytes, 1, n, stdout) != n)
                return -EIO;
        return text_findings(ctx, false);
}

static int text_check(struct context *ctx, const struct check_result *r)
{
        static const struct table_column columns[] = {
                { "PARTITION", TABLE_LEFT }, { "P_KEY", TABLE_LEFT },    { "LINES", TABLE_RIGHT },
                { "FULL", TABLE_RIGHT },     { "LIMITED", TABLE_RIGHT }, { "BOTH", TABLE_RIGHT },
        };
        _cleanup_table_ struct table *t = NULL;
        char count[64];

        if (text_findings(ctx, false) < 0)
                return -ENOMEM;
        if (ctx->options->quiet)
                return 0;
        if (table_new(columns, r->counts ? ELEMENTS(columns) : 3, &t) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < ctx->policy->n_partitions; i++) {
                const struct policy_partition *p = &ctx->policy->partitions[i];
                const struct member_count none = {}, *c = r->counts ? &r->counts[i] : &none;
                char cells[5][16];

                (void) snprintf(cells[0], sizeof(cells[0]), "0x%04x", p->base);
                (void) snprintf(cells[1], sizeof(cells[1]), "%u", p->n_rules);
                (void) snprintf(cells[2], sizeof(cells[2]), "%u", c->full);
                (void) snprintf(cells[3], sizeof(cells[3]), "%u", c->limited);
                (void) snprintf(cells[4], sizeof(cells[4]), "%u", c->both);
                if (table_row(t, NULL, p->name, cells[0], cells[1], cells[2], cells[3], cells[4]) < 0)
                        return -ENOMEM;
        }
        if (table_print(t) < 0)
                return -ENOMEM;
        report_count(&ctx->findings, count, sizeof(count));
        printf("%s: ", ctx->policy->file);
        text_count(ctx->policy->n_partitions, "partition");
        printf(", ");
        text_count(ctx->policy->n_groups, "group");
        printf("; %s\n", count);
        return 0;
}

const struct output output_text = {
        .refused = text_refused,
        .check = text_check,
        .plan = text_plan,
        .propose = text_propose,
        .apply = text_apply,
        .verify = text_verify,
        .verify_local = text_verify_local,
        .show_ports = text_show_ports,
        .show_partitions = text_show_partitions,
        .show_port = text_show_port,
        .file = text_file,
        .explain = text_explain,
        .doctor = text_doctor,
        .status = text_status,
        .reload = text_reload,
        .violations = text_violations,
        .watch = text_watch,
};
