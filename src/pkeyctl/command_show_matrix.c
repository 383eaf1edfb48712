/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "pkeyctl/commands.h"
#include "session/group_matrix.h"

/*
 * `show matrix`: who can talk to whom by the tables in the hardware, groups by groups. The groups are those of the policy; endports
 * that are in none of them are put together by their memberships.
 */

#define MAX_GRID 12  /* sets in a grid; more are listed */

/* "lustre,default*": with a star only some pairs can talk through it. */
static const char *ways(struct context *ctx, const struct reach_cell *cell)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < cell->n; i++)
                text_add(&t, "%s%s%s", i > 0 ? "," : "", output_base(ctx, cell->ways[i].base), cell->ways[i].all ? "" : "*");
        return t.n > 0 ? output_taken(ctx, &t) : "-";
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *set_object(struct doc *d, const struct matrix *r, uint32_t i)
{
        return json_pack("{s:o, s:i, s:s}", "name", doc_text(r->names[i]), "ports", r->sets[i].n,
                         "who", output_folded(d->ctx, r->sets[i].ports, r->sets[i].n));
}

static json_t *way_object(struct doc *d, const struct reach_way *w)
{
        return doc_partition(d, w->base, "{s:b}", "all", w->all);
}

static void json_matrix(struct doc *d, const void *result)
{
        const struct matrix *r = result;
        const struct reach_cell *c;
        json_t *cells = json_array();

        for (uint32_t x = 0, y = 0; (c = matrix_next_cell(r, &x, &y)); y++)
                doc_append(d, cells, json_pack("{s:o, s:o, s:o}", "a", doc_text(r->names[x]), "b", doc_text(r->names[y]), "partitions",
                                               JSON_ARRAY(i, c->n, way_object(d, &c->ways[i]))));
        doc_add(d, d->root, "{s:o, s:o}", "sets", JSON_ARRAY(i, r->n, set_object(d, r, (uint32_t) i)), "cells", cells);
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* The columns have the numbers of the rows. */
static void print_grid(struct context *ctx, const struct matrix *r)
{
        _cleanup_text_ struct text columns = {};
        struct text_table t;

        text_add(&columns, ">#|SET|>PORTS");
        for (uint32_t x = 0; x < r->n; x++)
                text_add(&columns, "|%u", x + 1);
        text_table_begin(&t, output_taken(ctx, &columns), 0);
        for (uint32_t x = 0; x < r->n; x++) {
                _cleanup_text_ struct text row = {};

                for (uint32_t y = 0; y < r->n; y++)
                        text_add(&row, "\t%s", ways(ctx, matrix_cell(r, x, y)));
                text_table_row(&t, NULL, "%u\t%s\t%u%s", x + 1, r->names[x], r->sets[x].n, output_taken(ctx, &row));
        }
        text_table_print(ctx, &t);
}

static void print_list(struct context *ctx, const struct matrix *r)
{
        const struct reach_cell *c;
        struct text_table t;

        text_table_begin(&t, "SET|WITH|*THROUGH", 0);
        for (uint32_t x = 0, y = 0; (c = matrix_next_cell(r, &x, &y)); y++)
                text_table_row(&t, NULL, "%s\t%s\t%s", r->names[x], y == x ? "(each other)" : r->names[y], ways(ctx, c));
        text_table_print(ctx, &t);
}

static void print_dot_name(const char *before, const char *name)
{
        printf("%s\"", before);
        for (; *name; name++)
                printf(*name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
        putchar('"');
}

/* For Graphviz; dashed: only some pairs can talk. */
static void print_dot(struct context *ctx, const struct matrix *r)
{
        const struct reach_cell *c;

        puts("graph partitions {");
        for (uint32_t x = 0; x < r->n; x++) {
                print_dot_name("    ", r->names[x]);
                puts(";");
        }
        for (uint32_t x = 0, y = 0; (c = matrix_next_cell(r, &x, &y)); y++)
                for (uint32_t i = 0; i < c->n; i++) {
                        print_dot_name("    ", r->names[x]);
                        print_dot_name(" -- ", r->names[y]);
                        print_dot_name(" [label=", output_base(ctx, c->ways[i].base));
                        puts(c->ways[i].all ? "];" : ", style=dashed];");
                }
        puts("}");
}

static bool has_partial(const struct matrix *r)
{
        for (size_t i = 0; i < (size_t) r->n * r->n; i++)
                for (uint32_t k = 0; k < r->cells[i].n; k++)
                        if (!r->cells[i].ways[k].all)
                                return true;
        return false;
}

static bool is_dot(const struct context *ctx)
{
        return ctx->options->format && strcmp(ctx->options->format, "dot") == 0;
}

static void text_matrix(struct context *ctx, const void *result)
{
        const struct matrix *r = result;

        if (is_dot(ctx))
                print_dot(ctx, r);
        else if (r->n <= MAX_GRID)
                print_grid(ctx, r);
        else
                print_list(ctx, r);
        if (!is_dot(ctx) && has_partial(r))
                puts("\n* only some of their ports");
        if (!is_dot(ctx) && r->n == MATRIX_MAX_SETS)
                printf("only the first %u sets are shown\n", MATRIX_MAX_SETS);
}

int command_show_matrix(struct context *ctx)
{
        static const struct printer printer = { text_matrix, json_matrix, 0 };
        struct endports unreachable;
        struct matrix result;
        int r = pipeline_filter(ctx, pipeline_is_unreachable, &unreachable) ?: matrix_make(ctx, &result);

        return r < 0 ? r : output(ctx, &printer, exit_status_of(false, unreachable.n > 0), &result);
}
