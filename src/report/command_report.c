/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "reconcile.h"
#include "report/report.h"
#include "shell/file.h"
#include "util/vector.h"
#include "verify/explain.h"

/* --- what is known ---------------------------------------------------------------------------------------------------- */

static bool is_read(const struct context *ctx, uint32_t port)
{
        return subnet_port_is_managed(ctx->subnet, &ctx->subnet->ports[port]) && ctx->observed->tables[port].source == TABLE_READ;
}

static int judge_tables(struct context *ctx, struct report_data *r)
{
        if (!ctx->desired)
                return 0;
        r->held = output_held(ctx);
        return verify_compare(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, &r->verification);
}

static int count_ports(struct context *ctx, struct report_data *r)
{
        for (uint32_t p = 0; p < ctx->subnet->n_ports; p++) {
                const struct subnet_port *port = &ctx->subnet->ports[p];

                r->n_endports += port->role == PORT_ENDPORT;
                r->n_switches += port->role == PORT_ENDPORT && subnet_port_node(ctx->subnet, port)->type == NODE_SWITCH;
                r->n_switch_ports += port->role == PORT_SWITCH_EXTERNAL && subnet_port_is_managed(ctx->subnet, port);
        }
        r->n_silent = subnet_count_silent(ctx->subnet);
        return pipeline_filter(ctx, is_read, &r->read) ?: pipeline_filter(ctx, pipeline_is_unreachable, &r->unreachable) ?:
               pipeline_filter(ctx, pipeline_is_frozen, &r->frozen);
}

DEFINE_COMPARE(compare_members, struct report_member,
               ORDER(a->base, b->base) ?: ORDER(a->membership, b->membership) ?: ORDER(a->port, b->port))

static int add_members(struct context *ctx, struct arena *scratch, uint32_t port, struct report_data *r)
{
        const struct observed_table *t = &ctx->observed->tables[port];
        struct explain_table table;
        int e = explain_table_make(scratch, t->entries, t->capacity, &table);

        for (uint32_t i = 0; e == 0 && i < table.n_levels; i++) {
                uint16_t base = table.levels[i].base;

                e = VECTOR_ADD(ctx->arena, r->members, r->n_members, r->allocated_members,
                               (struct report_member) { base, explain_table_membership(&table, base), port });
        }
        return e;
}

static int list_members(struct context *ctx, struct report_data *r)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        int e = scratch ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < r->read.n && e == 0; i++)
                if (ctx->subnet->ports[r->read.ports[i]].role == PORT_ENDPORT)
                        e = add_members(ctx, scratch, r->read.ports[i], r);
        SORT(r->members, r->n_members, compare_members);
        return e;
}

static int judge_reach(struct context *ctx, struct report_data *r)
{
        return matrix_make(ctx, &r->matrix) ?:
               reach_kinds(ctx->arena, ctx->subnet, r->matrix.tables, r->matrix.sets, r->matrix.n, &r->kinds, &r->n_kinds);
}

/* Without a store the report shows its parts as not known. The sweep has reported why the store is unusable. What members of leases
 * hold is by the tables that were read now. */
static int read_store(struct context *ctx, struct report_data *r)
{
        struct state state = {};
        struct etcd_config *etcd;
        int e = session_find_etcd(ctx, &etcd);

        if (e == 0)
                e = state_open(&state, ctx->options->state_dir ?: ctx->fabric.state_dir, STATE_READ, etcd);
        if (e == 0)
                e = state_load(&state, &ctx->remembered);
        if (e == 0 && state.store) {
                leases_confirm(ctx->remembered->leases, ctx->observed);
                r->stored = ctx->remembered;
        }
        state_close(&state);
        return e == -ENOMEM ? e : 0;
}

static int ask_daemon(struct context *ctx, struct report_data *r)
{
        int e;

        r->daemon_state = REPORT_DAEMON_NOT_ASKED;
        if (ctx->options->ca || ctx->options->port)
                return 0;
        e = bus_client_find(ctx, &r->daemon);
        r->daemon_state = e == -ETIMEDOUT ? REPORT_DAEMON_SILENT : e == 1 ? REPORT_DAEMON_RUNNING : REPORT_DAEMON_ABSENT;
        if (e == 1)
                return violations_request(ctx, &r->violations);
        return e == -ETIMEDOUT ? 0 : e;
}

static int name_host(struct context *ctx, struct report_data *r)
{
        char name[HOST_NAME_MAX + 1] = "";

        (void) gethostname(name, sizeof(name) - 1);
        r->host = arena_strdup(ctx->arena, name);
        r->made = clock_wall();
        return r->host ? 0 : -ENOMEM;
}

/* --- the result ------------------------------------------------------------------------------------------------------- */

static bool is_stdout(const struct options *o)
{
        return !o->output || strcmp(o->output, "-") == 0;
}

/* Returns false if the output has failed; a finding has the reason. */
static bool write_page(struct context *ctx, const json_t *root)
{
        _cleanup_text_ struct text page = {};
        const char *path = ctx->options->output;
        int r = report_page(root, &page);

        if (r == 0 && is_stdout(ctx->options))
                r = fwrite(page.bytes, 1, page.n, stdout) == page.n ? 0 : -EIO;
        else if (r == 0)
                r = file_write(FILE_NAMED, path, page.bytes, page.n);
        if (r < 0 && r != -ENOMEM && !is_stdout(ctx->options))
                r = findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, NULL, "%s: %s", path, strerror(-r));
        output_fail(ctx, r);
        return r == 0;
}

/* Writes the page, too, if --output names a file. */
static void json_report(struct doc *d, const void *result)
{
        struct context *ctx = d->ctx;

        report_json(d, result);
        if (d->failed || !d->root || is_stdout(ctx->options))
                return;
        if (write_page(ctx, d->root))
                doc_add(d, d->root, "{s:o}", "output", doc_text(ctx->options->output));
}

static void print_summary(const struct context *ctx, const struct report_data *r)
{
        uint32_t n_differ = r->verification ? r->verification->n_differ : 0;

        printf("%s: %u port%s", ctx->options->output, r->read.n + r->unreachable.n, text_plural(r->read.n + r->unreachable.n));
        if (!r->verification)
                printf(", compared with no policy");
        else if (n_differ > 0)
                printf(", %u differ%s from the policy", n_differ, n_differ == 1 ? "s" : "");
        else
                printf(", none of them known to differ from the policy");
        text_unjudged(r->unreachable.n, r->n_silent, r->frozen.n);
        putchar('\n');
}

static void text_report(struct context *ctx, const void *result)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, true);
        report_json(&d, result);
        if (d.failed || !d.root)
                output_fail(ctx, -ENOMEM);
        else if (write_page(ctx, d.root) && !is_stdout(ctx->options) && !ctx->options->quiet)
                print_summary(ctx, result);
}

/* Returns why the file cannot be written; NULL: no reason is known yet. */
static const char *find_obstacle(struct context *ctx, const char *path)
{
        char *copy = arena_strdup(ctx->arena, path);
        struct stat st;

        if (!copy)
                return strerror(ENOMEM);
        if (stat(path, &st) == 0)
                return S_ISREG(st.st_mode) ? NULL : "not a regular file, so it is not replaced";
        if (errno != ENOENT)
                return strerror(errno);
        if (access(dirname(copy), W_OK | X_OK) == 0)
                return NULL;
        return errno == ENOENT ? "its directory does not exist" : output_format(ctx, "its directory: %s", strerror(errno));
}

/* Refuses an output before a minute of discovery. A page on a terminal helps no one. */
static int check_output(struct context *ctx)
{
        const char *path = ctx->options->output, *obstacle;

        if (is_stdout(ctx->options)) {
                if (ctx->options->json || !isatty(STDOUT_FILENO))
                        return 0;
                return findings_error(&ctx->findings, FINDING_USAGE, "--output FILE writes it to a file",
                                      "the report is a page for a web browser, and standard output is a terminal");
        }
        obstacle = find_obstacle(ctx, path);
        return obstacle ? findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, NULL, "%s: %s", path, obstacle) : 0;
}

int command_report(struct context *ctx)
{
        static const struct printer printer = { text_report, json_report, TERSE };
        /* a plan has the memberships and the held bases, too; without a policy only the tables can be read */
        enum control_goal goal = ctx->policy ? CONTROL_PLAN : CONTROL_READ;
        struct report_data r = {};
        int e = check_output(ctx) ?: session_sweep(ctx, goal, NULL) ?: judge_tables(ctx, &r) ?: count_ports(ctx, &r) ?:
                partitions_count(ctx, &r.partitions) ?: list_members(ctx, &r) ?: judge_reach(ctx, &r) ?: read_store(ctx, &r) ?:
                ask_daemon(ctx, &r) ?: name_host(ctx, &r);

        return e < 0 ? e : output(ctx, &printer, exit_status_of(false, r.unreachable.n + r.n_silent + r.frozen.n > 0), &r);
}
