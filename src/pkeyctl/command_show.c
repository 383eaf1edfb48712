/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "util/nearest.h"

/* node2 before node10 */
static int compare_ports(const void *pa, const void *pb, void *userdata)
{
        const struct context *ctx = userdata;
        uint32_t a = *(const uint32_t *) pa, b = *(const uint32_t *) pb;

        return strverscmp(output_node(ctx, a), output_node(ctx, b)) ?: ORDER(a, b);
}

static int collect_ports(struct context *ctx, struct ports_result *ret)
{
        uint32_t *ports = arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_ports), n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++)
                if (subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[p]))
                        ports[n++] = p;
        qsort_r(ports, n, sizeof(*ports), compare_ports, ctx);
        *ret = (struct ports_result) { ports, n };
        return 0;
}

/* What was asked for and could not be read makes it a partial answer. */
static int output_ports(struct context *ctx, struct result *result)
{
        const struct ports_result *p = &result->ports;

        for (uint32_t i = 0; i < p->n_ports; i++)
                if (ctx->observed->tables[p->ports[i]].source != TABLE_READ)
                        result->status = EXIT_PARTIAL;
        return output(ctx, result);
}

static int show_ports(struct context *ctx)
{
        struct result result = { .kind = RESULT_PORTS };
        int r;

        r = session_read(ctx, POLICY_OPTIONAL, NULL, NULL);
        if (r == 0)
                r = collect_ports(ctx, &result.ports);
        return r < 0 ? r : output_ports(ctx, &result);
}

/* --- show partitions ------------------------------------------------------------------------------------------------- */

static int count_table(struct arena *a, struct member_count *counts, const struct p_key *entries, uint32_t n)
{
        struct explain_table table;
        int r;

        r = explain_table_make(a, entries, n, &table);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < table.n_levels; i++)
                member_count_add(&counts[table.levels[i].base], explain_table_membership(&table, table.levels[i].base));
        return 0;
}

/* Counts of every base, indexed by it: those wanted, and those in the tables. */
static int count_all(struct context *ctx, struct member_count *wanted, struct member_count *held, uint32_t *ret_unread)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        uint32_t unread = 0;
        int r;

        if (!scratch)
                return -ENOMEM;
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++) {
                const struct observed_table *t = &ctx->observed->tables[p];

                if (ctx->subnet->ports[p].role != PORT_ENDPORT)
                        continue;
                if (ctx->desired) {
                        r = count_table(scratch, wanted, ctx->desired->ports[p].wanted, ctx->desired->ports[p].n_wanted);
                        if (r < 0)
                                return r;
                }
                if (t->source != TABLE_READ) {
                        unread++;
                        continue;
                }
                r = count_table(scratch, held, t->entries, t->capacity);
                if (r < 0)
                        return r;
        }
        *ret_unread = unread;
        return 0;
}

static bool is_empty(const struct member_count *c)
{
        return c->full == 0 && c->limited == 0 && c->both == 0;
}

/* A row for each base that is in the policy or in a table. */
static int make_rows(struct context *ctx, const struct member_count *wanted, const struct member_count *held,
                     struct partitions_result *ret)
{
        struct partition_row *rows = arena_new_array(ctx->arena, struct partition_row, P_KEY_BASE_MASK + 1);
        uint32_t n = 0;

        if (!rows)
                return -ENOMEM;
        for (uint32_t base = 1; base <= P_KEY_BASE_MASK; base++) {
                int partition = ctx->policy ? policy_find_base(ctx->policy, (uint16_t) base) : -1;

                if (partition < 0 && is_empty(&held[base]))
                        continue;
                rows[n++] = (struct partition_row) { (uint16_t) base, partition, wanted[base], held[base] };
        }
        ret->rows = rows;
        ret->n_rows = n;
        return 0;
}

static int show_partitions(struct context *ctx)
{
        struct result result = { .kind = RESULT_PARTITIONS };
        struct partitions_result *partitions = &result.partitions;
        struct member_count *wanted, *held;
        int r;

        wanted = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1);
        held = arena_new_array(ctx->arena, struct member_count, P_KEY_BASE_MASK + 1);
        if (!wanted || !held)
                return -ENOMEM;
        r = session_read(ctx, POLICY_OPTIONAL, NULL, NULL);
        if (r == 0)
                r = count_all(ctx, wanted, held, &partitions->n_unread);
        if (r == 0)
                r = make_rows(ctx, wanted, held, partitions);
        if (r < 0)
                return r;
        result.status = partitions->n_unread > 0 ? EXIT_PARTIAL : EXIT_DONE;
        return output(ctx, &result);
}

/* --- show port ------------------------------------------------------------------------------------------------------- */

struct chosen_ports {
        const char *text;
        uint32_t *ports, n;
};

static int choose_ports(struct context *ctx, void *userdata, const uint32_t **ret, uint32_t *ret_n)
{
        struct chosen_ports *chosen = userdata;
        int r = pipeline_select(ctx, chosen->text, &chosen->ports, &chosen->n);

        return r < 0 ? r : pipeline_around(ctx, chosen->ports, chosen->n, ret, ret_n);
}

static int show_port(struct context *ctx, const char *text)
{
        struct chosen_ports chosen = { .text = text };
        const struct session_hooks hooks = { .choose = choose_ports, .userdata = &chosen };
        struct result result = { .kind = RESULT_PORT };
        int r = session_read(ctx, POLICY_OPTIONAL, NULL, &hooks);

        if (r < 0)
                return r;
        result.ports = (struct ports_result) { chosen.ports, chosen.n };
        return output_ports(ctx, &result);
}

/* --- show held -------------------------------------------------------------------------------------------------------- */

/* What would wait now, if the policy was applied: so it needs no daemon. But a plan cannot foresee that a port that was read does
 * not take a write, which a daemon on this host knows. That of another port may be of another fabric. */
static int show_held(struct context *ctx)
{
        struct result result = { .kind = RESULT_HELD };
        size_t n = 0;
        int r;

        r = pipeline_read_files(ctx, POLICY_REQUIRED, NULL);
        if (r == 0)
                r = session_sweep(ctx, CONTROL_PLAN, NULL);
        if (r < 0)
                return r;
        result.held.list = control_get_results(ctx->control)->held;
        if (!result.held.list)
                return -ENOMEM;
        r = ctx->options->ca || ctx->options->port ? 0 : bus_client_find(ctx, &result.held.daemon);
        if (r < 0 && r != -ETIMEDOUT)
                return r;
        result.held.has_daemon = r > 0;
        (void) held_list_items(result.held.list, &n);
        result.status = exit_status_of(n > 0 || result.held.daemon.held_bases > 0, false);
        return output(ctx, &result);
}

/* --- which ----------------------------------------------------------------------------------------------------------- */

static int complain_usage(struct context *ctx, const char *word)
{
        static const char *const names[] = { "ports", "partitions", "held", "vouches", "port" };
        struct findings *f = &ctx->findings;

        if (strcmp(word, "port") == 0)
                return findings_error(f, FINDING_USAGE, NULL,
                                      "show port: which one? Give a host, a GUID or another selector");
        if (strcmp(word, "ports") == 0 || strcmp(word, "partitions") == 0 || strcmp(word, "held") == 0 ||
            strcmp(word, "vouches") == 0)
                return findings_error(f, FINDING_USAGE, NULL, "show %s takes no argument", word);
        return findings_error(f, FINDING_USAGE, nearest_hint(ctx->arena, word, names, ELEMENTS(names), "", NULL),
                              "cannot show '%s' (ports, partitions, held, vouches, or port NODE|GUID)", word);
}

int command_show(struct context *ctx)
{
        const char *what = ctx->arguments[0] ?: "ports", *which = ctx->arguments[0] ? ctx->arguments[1] : NULL;

        if (strcmp(what, "ports") == 0 && !which)
                return show_ports(ctx);
        if (strcmp(what, "partitions") == 0 && !which)
                return show_partitions(ctx);
        if (strcmp(what, "held") == 0 && !which)
                return show_held(ctx);
        if (strcmp(what, "vouches") == 0 && !which)
                return command_show_vouches(ctx);
        if (strcmp(what, "port") == 0 && which)
                return show_port(ctx, which);
        return complain_usage(ctx, what);
}
