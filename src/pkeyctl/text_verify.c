/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/host_tables.h"
#include "pkeyctl/result_text.h"

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

static void print_kernel(struct context *ctx, const struct verification *v)
{
        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];
                const char *missing = text_p_keys(ctx, d->missing, d->n_missing);
                const char *unexpected = text_p_keys(ctx, d->unexpected, d->n_unexpected);

                if (d->source != SOURCE_KERNEL)
                        continue;
                printf("%s: the kernel's table differs%s%s%s%s\n", output_label(ctx, d->port),
                       *missing ? ", missing " : "", missing, *unexpected ? ", unexpected " : "", unexpected);
                for (uint32_t k = 0; k < d->n_kernel; k++)
                        print_kernel_difference(&d->kernel[k]);
        }
}

/* --- the fabric's ---------------------------------------------------------------------------------------------------- */

static void print_differences(struct context *ctx, const struct verification *v)
{
        bool enforcement = false;
        struct text_table t;

        for (uint32_t i = 0; i < v->n_differ; i++)
                enforcement |= v->differ[i].enforcement_differs;
        text_table_begin(&t, "PORT|GUID|*MISSING|*UNEXPECTED|ENFORCEMENT", enforcement ? 0 : 4);
        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];

                if (d->source == SOURCE_SMP)
                        text_table_row(&t, "red", "%s\t0x%016" PRIx64 "\t%s\t%s\t%s", output_label(ctx, d->port),
                                       ctx->subnet->ports[d->port].guid.v, text_p_keys(ctx, d->missing, d->n_missing),
                                       text_p_keys(ctx, d->unexpected, d->n_unexpected),
                                       d->enforcement_differs ? "differs" : "");
        }
        text_table_print(ctx, &t);
}

void text_verify(struct context *ctx, const struct result *result)
{
        const struct verification *r = result->verification;

        print_differences(ctx, r);
        print_kernel(ctx, r);
        text_unreachable(ctx, r->unreachable, r->n_unreachable);
        printf("%u port%s: ", r->n_ports, text_plural(r->n_ports));
        if (result->status == EXIT_DONE) {
                printf("every table is as the policy says");
                if (r->n_kernel_ports > 0)
                        printf("; the kernel says the same of %u port%s of this host", r->n_kernel_ports,
                               text_plural(r->n_kernel_ports));
        } else {
                printf("%u differ%s from the policy", r->n_differ, r->n_differ == 1 ? "s" : "");
                if (r->n_unreachable > 0)
                        printf(", %u could not be read", r->n_unreachable);
                if (r->n_silent > 0)
                        printf(", the other end of %u link%s up did not answer discovery", r->n_silent,
                               r->n_silent == 1 ? " that is" : "s that are");
        }
        putchar('\n');
}

/* --- this host alone ------------------------------------------------------------------------------------------------- */

static void print_unread(struct context *ctx, const char *what, const struct local_unread *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                printf("%s: %s: %s\n", what, output_label(ctx, ports[i].port), ports[i].why);
}

static void print_undecided(struct context *ctx, const struct local_verification *v)
{
        for (uint32_t i = 0; i < v->n_undecided; i++) {
                const struct undecided *u = &v->undecided[i];

                printf("not decided here: %s is %s in %s, which is right ", output_label(ctx, u->port),
                       membership_to_string(u->found), ctx->policy->partitions[u->partition].name);
                if (u->unresolved)
                        printf("or wrong by '%s' (%s:%u), and that needs the fabric\n", u->unresolved->text,
                               u->unresolved->where.file, u->unresolved->where.line);
                else
                        puts("or wrong by whether pkeyd works through this port");
        }
}

void text_verify_local(struct context *ctx, const struct result *result)
{
        const struct local_result *r = &result->local;
        const struct verification *v = r->verification.v;

        print_kernel(ctx, v);
        print_undecided(ctx, &r->verification);
        print_unread(ctx, "not judged", r->unread, r->n_unread);
        if (ctx->options->verbose)
                print_unread(ctx, "left out", r->down, r->n_down);
        printf("%u port%s of this host: ", v->n_ports, text_plural(v->n_ports));
        if (v->n_differ > 0)
                printf("%u differ%s from the policy\n", v->n_differ, v->n_differ == 1 ? "s" : "");
        else
                puts(result->status == EXIT_DONE ? "every table is as the policy says" : "no table that was read differs");
}
