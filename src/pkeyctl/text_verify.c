/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/kernel.h"
#include "pkeyctl/table.h"
#include "pkeyctl/text.h"

/* --- the kernel's tables --------------------------------------------------------------------------------------------- */

static void print_kernel_difference(const struct kernel_difference *d)
{
        switch (d->kind) {
        case KERNEL_LACKS:
                printf("    0x%04x: the SMA has it at index %u, the kernel has not\n", d->key.v, d->sma_index);
                break;
        case KERNEL_ONLY:
                printf("    0x%04x: the kernel has it at index %u, the SMA has not\n", d->key.v, d->kernel_index);
                break;
        case KERNEL_MOVED:
                printf("    0x%04x: index moved, %u in the SMA's table, %u in the kernel's\n", d->key.v, d->sma_index,
                       d->kernel_index);
                break;
        }
}

static int print_kernel(struct context *ctx, const struct verification *v)
{
        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];
                const char *label = subnet_port_label(ctx->arena, ctx->subnet, d->port);
                const char *missing = text_p_keys(ctx, d->missing, d->n_missing);
                const char *unexpected = text_p_keys(ctx, d->unexpected, d->n_unexpected);

                if (!label || !missing || !unexpected)
                        return -ENOMEM;
                if (d->source != SOURCE_KERNEL)
                        continue;
                printf("%s: the kernel's table differs%s%s%s%s\n", label, *missing ? ", missing " : "", missing,
                       *unexpected ? ", unexpected " : "", unexpected);
                for (uint32_t k = 0; k < d->n_kernel; k++)
                        print_kernel_difference(&d->kernel[k]);
        }
        return 0;
}

/* --- the fabric's ---------------------------------------------------------------------------------------------------- */

static int add_difference(struct context *ctx, struct table *t, const struct discrepancy *d)
{
        const char *label = subnet_port_label(ctx->arena, ctx->subnet, d->port);
        const char *missing = text_p_keys(ctx, d->missing, d->n_missing);
        const char *unexpected = text_p_keys(ctx, d->unexpected, d->n_unexpected);
        char guid[24];

        if (!label || !missing || !unexpected)
                return -ENOMEM;
        (void) snprintf(guid, sizeof(guid), "0x%016" PRIx64, ctx->subnet->ports[d->port].guid.v);
        return table_row(t, "red", label, guid, missing, unexpected, d->enforcement_differs ? "differs" : "");
}

static int print_differences(struct context *ctx, const struct verification *v)
{
        static const struct table_column columns[] = {
                { "PORT", TABLE_LEFT },       { "GUID", TABLE_LEFT },        { "MISSING", TABLE_LIST },
                { "UNEXPECTED", TABLE_LIST }, { "ENFORCEMENT", TABLE_LEFT },
        };
        _cleanup_table_ struct table *t = NULL;
        bool enforcement = false;

        for (uint32_t i = 0; i < v->n_differ; i++)
                enforcement |= v->differ[i].enforcement_differs;
        if (table_new(columns, enforcement ? ELEMENTS(columns) : ELEMENTS(columns) - 1, &t) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < v->n_differ; i++)
                if (v->differ[i].source == SOURCE_SMP && add_difference(ctx, t, &v->differ[i]) < 0)
                        return -ENOMEM;
        return table_print(t);
}

int text_verify(struct context *ctx, const struct verification *r, enum exit_status status)
{
        int error = text_findings(ctx, false);

        if (error < 0 || ctx->options->quiet)
                return error;
        error = print_differences(ctx, r);
        if (error >= 0)
                error = print_kernel(ctx, r);
        if (error < 0)
                return error;
        error = text_unreachable(ctx, r->unreachable, r->n_unreachable);
        if (error < 0)
                return error;
        text_count(r->n_ports, "port");
        if (status == EXIT_DONE) {
                printf(": every table is as the policy says");
                if (r->n_kernel_ports > 0) {
                        printf("; the kernel says the same of ");
                        text_count(r->n_kernel_ports, "port");
                        printf(" of this host");
                }
                putchar('\n');
                return 0;
        }
        printf(": %u differ%s from the policy", r->n_differ, r->n_differ == 1 ? "s" : "");
        if (r->n_unreachable > 0)
                printf(", %u could not be read", r->n_unreachable);
        putchar('\n');
        return 0;
}

/* --- this host alone ------------------------------------------------------------------------------------------------- */

static int print_unread(struct context *ctx, const char *what, const struct local_unread *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                const char *label = subnet_port_label(ctx->arena, ctx->subnet, ports[i].port);

                if (!label)
                        return -ENOMEM;
                printf("%s: %s: %s\n", what, label, ports[i].why);
        }
        return 0;
}

static int print_undecided(struct context *ctx, const struct local_verification *v)
{
        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];
                const char *label = subnet_port_label(ctx->arena, ctx->subnet, u->port);

                if (!label)
                        return -ENOMEM;
                printf("not decided here: %s is %s in %s, which is right ", label, membership_to_string(u->found),
                       ctx->policy->partitions[u->partition].name);
                if (u->unresolved)
                        printf("or wrong by '%s' (%s:%u), and that needs the fabric\n", u->unresolved->text,
                               u->unresolved->where.file, u->unresolved->where.line);
                else
                        puts("or wrong by whether pkeyd works through this port");
        }
        return 0;
}

int text_verify_local(struct context *ctx, const struct local_result *r, enum exit_status status)
{
        const struct verification *v = r->verification.v;
        int error = text_findings(ctx, false);

        if (error < 0 || ctx->options->quiet)
                return error;
        error = print_kernel(ctx, v);
        if (error >= 0)
                error = print_undecided(ctx, &r->verification);
        if (error >= 0)
                error = print_unread(ctx, "not judged", r->unread, r->n_unread);
        if (error >= 0 && ctx->options->verbose > 0)
                error = print_unread(ctx, "left out", r->down, r->n_down);
        if (error < 0)
                return error;
        text_count(v->n_ports, "port");
        if (v->n_differ > 0)
                printf(" of this host: %u differ%s from the policy\n", v->n_differ, v->n_differ == 1 ? "s" : "");
        else
                printf(" of this host: %s\n",
                       status == EXIT_DONE ? "every table is as the policy says" : "no table that was read differs");
        return 0;
}
