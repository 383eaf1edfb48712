/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "pkeyctl/commands.h"
#include "reconcile.h"
#include "shell/verbs_port.h"
#include "verify/verbs_tables.h"

/* The kernel's cache follows the SMA a moment later: only a difference that stays is one. */
#define ATTEMPTS   6
#define PAUSE_NSEC (200 * 1000 * 1000)

struct verify_result {
        struct verification *v;
        struct endports frozen;
};

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *kernel_difference(struct doc *d, const struct kernel_difference *k)
{
        return json_pack("{s:s, s:o, s:o, s:o}", "kind", kernel_difference_kind_to_string(k->kind), "p_key", doc_p_key(d, k->key),
                         "sma_index", k->kind == KERNEL_ONLY ? json_null() : json_integer(k->sma_index),
                         "kernel_index", k->kind == KERNEL_LACKS ? json_null() : json_integer(k->kernel_index));
}

static json_t *difference(struct doc *d, const struct discrepancy *item)
{
        json_t *o = doc_port(d, item->port, "{s:o, s:o, s:b, s:s}", "missing", doc_p_keys(d, item->missing, item->n_missing),
                             "unexpected", doc_p_keys(d, item->unexpected, item->n_unexpected),
                             "enforcement_differs", item->enforcement_differs, "source", discrepancy_source_to_string(item->source));

        if (item->source == SOURCE_KERNEL)
                doc_add(d, o, "{s:o}", "kernel", JSON_ARRAY(i, item->n_kernel, kernel_difference(d, &item->kernel[i])));
        return o;
}

json_t *json_differences(struct doc *d, const struct verification *v)
{
        return JSON_ARRAY(i, v->n_differ, difference(d, &v->differ[i]));
}

static void json_verify(struct doc *d, const void *result)
{
        const struct verify_result *r = result;
        const struct verification *v = r->v;

        doc_add(d, d->root, "{s:i, s:i, s:i, s:o, s:o, s:o}", "ports", v->n_ports, "kernel_ports", v->n_kernel_ports,
                "silent", v->n_silent, "differ", json_differences(d, v), "unreachable", json_unreachable(d, v->unreachable, v->n_unreachable),
                "frozen", json_frozen_ports(d, &r->frozen));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void print_kernel_difference(const struct kernel_difference *d)
{
        switch (d->kind) {
        case KERNEL_LACKS:
                printf("    0x%04x: the SMA has it at index %u, the kernel does not\n", d->key.v, d->sma_index);
                break;
        case KERNEL_ONLY:
                printf("    0x%04x: the kernel has it at index %u, the SMA does not\n", d->key.v, d->kernel_index);
                break;
        case KERNEL_MOVED:
                printf("    0x%04x: index moved, %u in the SMA's table, %u in the kernel's\n", d->key.v, d->sma_index,
                       d->kernel_index);
                break;
        }
}

void text_kernel(struct context *ctx, const struct verification *v)
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
                                       text_p_keys(ctx, d->unexpected, d->n_unexpected), d->enforcement_differs ? "differs" : "");
        }
        text_table_print(ctx, &t);
}

/* A port of this host may differ in both. */
static void print_counts(const struct verification *v)
{
        uint32_t n_kernel = 0, n;

        for (uint32_t i = 0; i < v->n_differ; i++)
                n_kernel += v->differ[i].source == SOURCE_KERNEL;
        n = v->n_differ - n_kernel;
        printf("%u differ%s from the policy", n, n == 1 ? "s" : "");
        if (n_kernel > 0)
                printf(", the kernel's table%s of %u port%s of this host differ%s", text_plural(n_kernel), n_kernel,
                       text_plural(n_kernel), n_kernel == 1 ? "s" : "");
}

static void text_verify(struct context *ctx, const void *result)
{
        const struct verify_result *r = result;
        const struct verification *v = r->v;

        print_differences(ctx, v);
        text_kernel(ctx, v);
        for (uint32_t i = 0; i < v->n_unreachable; i++) {
                uint32_t port = v->unreachable[i];
                const struct subnet_port *p = &ctx->subnet->ports[port];

                printf("not read: %s (LID %u, GUID 0x%016" PRIx64 "): %s%s\n", output_label(ctx, port), p->lid.v, p->guid.v,
                       output_failure(ctx, port),
                       ctx->observed->tables[port].source == TABLE_ASSUMED ? "; taken to hold what the last policy gave it" : "");
        }
        printf("%u port%s: ", v->n_ports, text_plural(v->n_ports));
        if (ctx->status == EXIT_DONE) {
                printf("every table matches the policy");
                if (v->n_kernel_ports > 0)
                        printf("; the kernel has the same for %u port%s of this host", v->n_kernel_ports,
                               text_plural(v->n_kernel_ports));
        } else {
                print_counts(v);
                text_unjudged(v->n_unreachable, v->n_silent, r->frozen.n);
        }
        putchar('\n');
}

/* --- this host's tables as its kernel has them ----------------------------------------------------------------------- */

/* The tables of the ports that are up and in the snapshot. */
static int read_tables(struct context *ctx, struct verbs_host *host, bool complain, struct kernel_table *tables, uint32_t *ret_n)
{
        uint32_t n = 0;

        for (size_t i = 0; i < verbs_host_n_ports(host); i++) {
                struct verbs_port p;
                struct p_key *entries;
                uint32_t index;
                int r;

                if (verbs_host_query(host, i, &p) < 0 || !p.is_infiniband ||
                    (p.state != PORT_STATE_ARMED && p.state != PORT_STATE_ACTIVE))
                        continue;
                index = subnet_find_endport(ctx->subnet, p.port_guid);
                if (index == SUBNET_NONE)
                        continue;
                r = verbs_host_read_table(host, i, ctx->arena, &entries, &tables[n].n_entries);
                if (r == -ENOMEM)
                        return r;
                if (r < 0 && complain)
                        (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                                            "%s/%u: the kernel's P_Key table cannot be read: %s", p.device, p.number, strerror(-r));
                if (r < 0)
                        continue;
                tables[n].entries = entries;
                tables[n++].port = index;
        }
        *ret_n = n;
        return 0;
}

/* True if a table of the SMA differs from that of the kernel, perhaps only for a moment. */
static bool is_kernel_different(const struct verification *v, uint32_t first)
{
        for (uint32_t i = first; i < v->n_differ; i++)
                if (v->differ[i].n_kernel > 0)
                        return true;
        return false;
}

/* Adds to v the differences of this host's tables. A host without verbs, or whose ports are not in the snapshot (a simulated
 * fabric), has none. */
static int compare_kernel(struct context *ctx, struct verification *v)
{
        _cleanup_verbs_host_ struct verbs_host *host = NULL;
        const struct timespec pause = { .tv_nsec = PAUSE_NSEC };
        uint32_t before = v->n_differ;
        struct kernel_table *tables;
        int r = verbs_host_new(NULL, NULL, NULL, &host) ?: verbs_host_scan(host);

        if (r == -EACCES || r == -EPERM)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_VERBS, NULL,
                                    "permission denied for /dev/infiniband/uverbs*: the kernel's tables were not compared");
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        tables = arena_new_array(ctx->arena, struct kernel_table, verbs_host_n_ports(host));
        for (unsigned i = 0; i < ATTEMPTS && tables; i++) {
                if (i > 0)
                        (void) nanosleep(&pause, NULL);
                v->n_differ = before;
                r = read_tables(ctx, host, i == 0, tables, &v->n_kernel_ports) ?:
                    verbs_tables_verify(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, tables, v->n_kernel_ports, v);
                if (r < 0 || !is_kernel_different(v, before))
                        return r;
        }
        return tables ? 0 : -ENOMEM;
}

/* The tables as they were read: nothing is assumed of those that were not. */
int command_verify(struct context *ctx)
{
        static const struct printer printer = { text_verify, json_verify, OK_IF_DONE | QUIET };
        struct verify_result result = {};
        struct verification *v;
        uint32_t n_unjudged;
        int r = verify_compare(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, &v) ?: compare_kernel(ctx, v) ?:
                pipeline_filter(ctx, pipeline_is_frozen, &result.frozen);

        if (r < 0)
                return r;
        result.v = v;
        v->n_silent = reconcile_report_silent(ctx->subnet, ctx->known, &ctx->findings);
        n_unjudged = v->n_unreachable + v->n_silent + result.frozen.n;
        return output(ctx, &printer, exit_status_of(v->n_differ > 0, n_unjudged > 0), &result);
}
