/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "pkeyctl/commands.h"
#include "session/output.h"

/* What a plan means: who can no longer talk to whom, and who now can. */

#define MAX_LINES 20 /* without -v */

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *port_guids(struct doc *d, const uint32_t *ports, uint32_t n)
{
        return DOC_ARRAY(d, i, n, doc_guid(d->ctx->subnet->ports[ports[i]].guid));
}

static json_t *partition_object(struct doc *d, uint16_t base)
{
        return doc_pack(d, "{s:o, s:o}", "partition", doc_text(output_partition(d->ctx, base)), "p_key", doc_base(base));
}

static json_t *others_object(struct doc *d, const struct reach_others *o)
{
        return doc_pack(d, "{s:b, s:o, s:s, s:i}", "gained", o->gained,
                        "partitions", DOC_ARRAY(d, i, o->n_bases, partition_object(d, o->bases[i])),
                        "who", output_folded(d->ctx, o->ports, o->n_ports), "ports", o->n_ports);
}

static json_t *line_object(struct doc *d, const struct reach_line *l)
{
        return doc_pack(d, "{s:s, s:o, s:o}", "who", output_folded(d->ctx, l->ports, l->n_ports),
                        "port_guids", port_guids(d, l->ports, l->n_ports),
                        "others", DOC_ARRAY(d, i, l->n_others, others_object(d, &l->others[i])));
}

json_t *json_reach(struct doc *d, const struct reach_changes *r)
{
        return doc_pack(d, "{s:I, s:I, s:i, s:b, s:b, s:o}", "pairs_lost", (json_int_t) r->n_lost,
                        "pairs_gained", (json_int_t) r->n_gained, "not_judged", r->n_unknown, "truncated", r->truncated,
                        "too_many", r->too_many,
                        "lines", DOC_ARRAY(d, i, r->n_lines, line_object(d, &r->lines[i])));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* "node[0001-0007]", "each other", "each other and oss01": the others may contain all ports of the line. */
static void add_ports(struct context *ctx, struct text *t, const struct reach_line *l, const struct reach_others *o)
{
        uint32_t *rest = arena_new_array(ctx->arena, uint32_t, o->n_ports), n = 0;

        if (!rest) {
                output_fail(ctx, -ENOMEM);
                return;
        }
        for (uint32_t i = 0; i < o->n_ports; i++)
                if (!bsearch(&o->ports[i], l->ports, l->n_ports, sizeof(*l->ports), uint32_compare))
                        rest[n++] = o->ports[i];
        text_add(t, "%s%s%s", n < o->n_ports ? "each other" : "", n < o->n_ports && n > 0 ? " and " : "",
                 n > 0 ? output_folded(ctx, rest, n) : "");
}

static void add_others(struct context *ctx, struct text *t, const struct reach_line *l, const struct reach_others *o)
{
        add_ports(ctx, t, l, o);
        for (uint32_t i = 0; i < o->n_bases; i++) {
                const char *name = output_partition(ctx, o->bases[i]);

                text_add(t, "%s%s", i == 0 ? " (" : ", ", *name ? name : output_format(ctx, "0x%04x", o->bases[i]));
        }
        text_add(t, ")");
}

/* "node0008: no longer with node[0001-0007] (tenant-a); now with node[0009-0016] (tenant-b)" */
static void print_line(struct context *ctx, const struct reach_line *l)
{
        _cleanup_text_ struct text t = {};

        text_add(&t, "%s:", output_folded(ctx, l->ports, l->n_ports));
        for (uint32_t i = 0; i < l->n_others; i++) {
                const struct reach_others *o = &l->others[i];
                bool is_first = i == 0 || l->others[i - 1].gained != o->gained;

                text_add(&t, "%s %s", i == 0 ? "" : is_first ? ";" : ",", !is_first ? "" : o->gained ? "now with " : "no longer with ");
                add_others(ctx, &t, l, o);
        }
        puts(output_taken(ctx, &t));
}

void text_reach(struct context *ctx, const struct reach_changes *r)
{
        uint32_t shown = ctx->options->verbose ? r->n_lines : MIN(r->n_lines, (uint32_t) MAX_LINES);

        if (r->too_many) {
                puts("Who can talk to whom cannot be said: too many different tables change.");
        } else if (r->n_lost + r->n_gained == 0) {
                puts("Who can talk to whom does not change.");
        } else {
                puts("Who can talk to whom:");
                for (uint32_t i = 0; i < shown; i++) {
                        fputs("  ", stdout);
                        print_line(ctx, &r->lines[i]);
                }
                if (shown < r->n_lines)
                        printf("  and %u more lines, which -v shows\n", r->n_lines - shown);
                printf("  %" PRIu64 " pair%s of ports lost, %" PRIu64 " gained%s; nothing else changes\n", r->n_lost, text_plural(r->n_lost),
                       r->n_gained, r->truncated ? " (too many to list them all)" : "");
        }
        if (r->n_unknown > 0)
                printf("  %u port%s could not be judged: %s not known\n", r->n_unknown, text_plural(r->n_unknown),
                       r->n_unknown == 1 ? "its table is" : "their tables are");
        putchar('\n');
}
