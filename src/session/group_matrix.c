/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/group_matrix.h"

#include <errno.h>

#include "subnet/fold.h"

#define NAME_MAX_BYTES 300 /* of a hostlist as a name, about: each pair of sets repeats the names */

const struct reach_cell *matrix_next_cell(const struct matrix *m, uint32_t *x, uint32_t *y)
{
        for (; *x < m->n; *y = ++*x)
                for (; *y < m->n; ++*y)
                        if (matrix_cell(m, *x, *y)->n > 0)
                                return matrix_cell(m, *x, *y);
        return NULL;
}

/* The groups of the policy that have endports in this fabric. */
static int add_groups(struct context *ctx, struct matrix *ret, bool *in_group)
{
        const struct known *known = control_get_status(ctx->control)->known;

        for (uint32_t i = 0; ctx->policy && i < ctx->policy->n_groups && ret->n < MATRIX_MAX_SETS; i++) {
                const char *name = ctx->policy->groups[i].name;
                struct endports found;

                if (pipeline_find(ctx, ctx->policy, ctx->subnet, known, name, &found) < 0)
                        return -ENOMEM;
                for (uint32_t k = 0; k < found.n; k++)
                        in_group[found.ports[k]] = true;
                if (found.n == 0)
                        continue;
                ret->names[ret->n] = name;
                ret->sets[ret->n++] = (struct reach_set) { found.ports, found.n };
        }
        return 0;
}

static int add_others(struct context *ctx, struct matrix *ret, const bool *in_group)
{
        uint32_t *ports = arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_ports), n = 0, n_sets;
        struct reach_set *sets;
        int r;

        ret->n_groups = ret->n;
        if (!ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++)
                if (ctx->subnet->ports[p].role == PORT_ENDPORT && !in_group[p])
                        ports[n++] = p;
        r = reach_split(ctx->arena, ctx->subnet, ret->tables, &(struct reach_set) { ports, n }, &sets, &n_sets);
        for (uint32_t i = 0; r == 0 && i < n_sets && ret->n < MATRIX_MAX_SETS; i++) {
                const char *all = output_folded(ctx, sets[i].ports, sets[i].n);

                ret->names[ret->n] = output_or_fail(ctx, fold_cut(ctx->arena, all, NAME_MAX_BYTES));
                ret->sets[ret->n++] = sets[i];
        }
        return r;
}

/* For a plan, control assumes what unreadable tables hold. Here they are unknown. */
static struct reach_table *tables_as_read(struct context *ctx)
{
        struct reach_table *tables = reach_observed(ctx->arena, ctx->observed);

        for (uint32_t p = 0; tables && p < ctx->subnet->n_ports; p++)
                if (ctx->observed->tables[p].source != TABLE_READ)
                        tables[p].entries = NULL;
        return tables;
}

int matrix_make(struct context *ctx, struct matrix *ret)
{
        const struct reach_table *tables = tables_as_read(ctx);
        bool *in_group = arena_new_array(ctx->arena, bool, ctx->subnet->n_ports);

        *ret = (struct matrix) {
                .tables = tables,
                .names = arena_new_array(ctx->arena, const char *, MATRIX_MAX_SETS),
                .sets = arena_new_array(ctx->arena, struct reach_set, MATRIX_MAX_SETS),
        };
        if (!tables || !in_group || !ret->names || !ret->sets)
                return -ENOMEM;
        return add_groups(ctx, ret, in_group) ?: add_others(ctx, ret, in_group) ?:
               reach_matrix(ctx->arena, ctx->subnet, tables, ret->sets, ret->n, &ret->cells);
}
