/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "reach/reach_text.h"
#include "session/output.h"

/* What a plan means: who can no longer talk to whom, and who now can. */

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *port_guids(struct doc *d, const uint32_t *ports, uint32_t n)
{
        return JSON_ARRAY(i, n, doc_guid(d->ctx->subnet->ports[ports[i]].guid));
}

static json_t *others_object(struct doc *d, const struct reach_others *o)
{
        return json_pack("{s:b, s:o, s:s, s:i}", "gained", o->gained,
                         "partitions", JSON_ARRAY(i, o->n_bases, doc_partition(d, o->bases[i], "{}")),
                         "who", output_folded(d->ctx, o->ports, o->n_ports), "ports", o->n_ports);
}

static json_t *line_object(struct doc *d, const struct reach_line *l)
{
        return json_pack("{s:s, s:o, s:o}", "who", output_folded(d->ctx, l->ports, l->n_ports),
                         "port_guids", port_guids(d, l->ports, l->n_ports),
                         "others", JSON_ARRAY(i, l->n_others, others_object(d, &l->others[i])));
}

json_t *json_reach(struct doc *d, const struct reach_changes *r)
{
        return json_pack("{s:I, s:I, s:i, s:b, s:b, s:o}", "pairs_lost", (json_int_t) r->n_lost,
                         "pairs_gained", (json_int_t) r->n_gained, "not_judged", r->n_unknown, "truncated", r->truncated,
                         "too_many", r->too_many,
                         "lines", JSON_ARRAY(i, r->n_lines, line_object(d, &r->lines[i])));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

void text_reach(struct context *ctx, const struct reach_changes *r)
{
        uint32_t shown = ctx->options->verbose ? r->n_lines : MIN(r->n_lines, (uint32_t) REACH_MAX_SHOWN);
        const char *summary = output_or_fail(ctx, reach_summarize(ctx->arena, r));
        const struct reach_names names = { .now = ctx->policy };

        if (r->n_lost + r->n_gained == 0) {
                printf("W%s.\n", summary + 1); /* "who can ..." begins a sentence here */
        } else {
                puts("Who can talk to whom:");
                for (uint32_t i = 0; i < shown; i++)
                        printf("  %s\n", output_or_fail(ctx, reach_describe(ctx->arena, ctx->subnet, &names, &r->lines[i])));
                if (shown < r->n_lines)
                        printf("  and %u more lines, which -v shows\n", r->n_lines - shown);
                printf("  %s\n", summary);
        }
        if (r->n_unknown > 0)
                printf("  %u port%s could not be judged: %s not known\n", r->n_unknown, text_plural(r->n_unknown),
                       r->n_unknown == 1 ? "its table is" : "their tables are");
        putchar('\n');
}
