/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "pkeyctl/commands.h"
#include "pkeyctl/completion.h"
#include "report/report.h"
#include "session/output.h"
#include "shell/file.h"
#include "store_commands/store_commands.h"
#include "util/nearest.h"

static const struct command commands[] = {
        { "check", NULL, "[FILE]", "check the policy; needs no fabric", 0, 1, command_check,
          TAKES_POLICY | NEED_POLICY | NEED_TOPOLOGY, NULL, { "topology", "fix" }, .argument = ARGUMENT_FILE },
        { "check", "--fix", "[FILE]", NULL, 0, 1, command_check_fix, TAKES_POLICY | NEED_CONFIRMATION, NULL, { "yes" },
          .argument = ARGUMENT_FILE },
        { "plan", NULL, "[FILE]", "show what apply would write; sends no SubnSet", 0, 1, command_plan, PLAN_FABRIC, NULL,
          { "beside-opensm" }, .argument = ARGUMENT_FILE },
        { "apply", NULL, "[FILE]", "write the tables, phase by phase, and read them back", 0, 1, command_apply, WRITE_FABRIC, NULL,
          { "yes", "beside-opensm", "confirm" }, .argument = ARGUMENT_FILE },
        { "verify", NULL, "[FILE]", "read every table and compare it with the policy", 0, 1, command_verify, JUDGE_FABRIC, NULL,
          { "local" }, .argument = ARGUMENT_FILE },
        { "verify", "--local", "[FILE]", NULL, 0, 1, command_verify_local, JUDGE_HOST, NULL, {}, .argument = ARGUMENT_FILE },
        { "show", NULL, "[ports|partitions|matrix|held|vouches|port X]", "show what is in the tables, and what waits", 0, 0,
          command_show_ports, READ_FABRIC, NULL, {} },
        { "show", "ports", "", "show every endport with its P_Keys", 0, 0, command_show_ports, READ_FABRIC, NULL, {} },
        { "show", "partitions", "", "show every partition with the number of its members", 0, 0,
          command_show_partitions, READ_FABRIC, NULL, {} },
        { "show", "held", "", "show what waits, for which ports, and why", 0, 0,
          command_show_held, NEED_SETTINGS | NEED_POLICY | NEED_PLAN, NULL, {} },
        { "show", "vouches", "", "show the ports for which forget was used", 0, 0, command_show_vouches, NEED_STORE, NULL, {} },
        { "show", "matrix", "", "show who can talk to whom, by groups and partitions", 0, 0,
          command_show_matrix, READ_FABRIC, NULL, { "format" }, "dot" },
        { "show", "port", "NODE|GUID", "show one endport, entry by entry", 1, 1,
          command_show_port, READ_FABRIC, session_choose_selected, {}, .argument = ARGUMENT_SELECTOR },
        { "forget", NULL, "NODE|GUID...", "vouch that ports that do not answer hold nothing", 1, MAX_FORGET, command_forget,
          NEED_CONFIRMATION | NEED_SETTINGS | NEED_TABLES | NEED_STORE_TO_WRITE, forget_choose, { "yes" },
          .argument = ARGUMENT_SELECTOR },
        { "pins", NULL, "", "list the names that are pinned to nodes, and who claims them", 0, 0, command_pins,
          NEED_SETTINGS | NEED_TABLES | NEED_STORE, session_choose_none, {} },
        { "pin", NULL, "accept NAME [GUID] | drop NAME", "accept or drop the name of a node", 1, 2, NULL, 0, NULL, { "yes" } },
        { "pin", "accept", "NAME|GUID [GUID]", "accept the name that a node gives itself", 1, 2, command_pin_accept,
          NEED_CONFIRMATION | NEED_SETTINGS | NEED_TABLES | NEED_STORE_TO_WRITE, session_choose_none, {},
          .argument = ARGUMENT_NAME },
        { "pin", "drop", "NAME", "drop a name; the next sweep binds it anew", 1, 1, command_pin_drop,
          NEED_CONFIRMATION | NEED_SETTINGS | NEED_STORE_TO_WRITE, NULL, {}, .argument = ARGUMENT_NAME },
        { "replace", NULL, "OLD NEW", "after an adapter was replaced: move its name, show its lines", 2, 2, command_replace,
          NEED_CONFIRMATION | NEED_SETTINGS | NEED_TABLES | NEED_STORE_TO_WRITE, session_choose_none, { "yes", "write" } },
        { "import", NULL, "FILE", "convert OpenSM's partitions.conf to a policy", 1, 1, command_import,
          NEED_SETTINGS | NEED_TOPOLOGY, NULL, { "topology", "opensm-config", "output" }, .argument = ARGUMENT_FILE },
        { "export", NULL, "opensm [FILE]", "convert the policy to a partitions.conf", 1, 2, NULL, 0, NULL,
          { "topology", "opensm-config", "output" } },
        { "export", "opensm", "[FILE]", "print a partitions.conf for OpenSM", 0, 1,
          command_export, JUDGE_HOST, NULL, {}, .argument = ARGUMENT_FILE },
        { "explain", NULL, "A B", "show whether two endports may talk, and why", 2, 2,
          command_explain, READ_FABRIC, explain_choose, {}, .argument = ARGUMENT_SELECTOR },
        { "env", NULL, "[PARTITION]", "print the settings by which programs on this host use a partition", 0, 1, command_env,
          NEED_POLICY_IF_ANY, NULL, { "format" }, "sh", .argument = ARGUMENT_PARTITION },
        { "doctor", NULL, "[FILE]", "check whether this fabric is safe and this host is set up correctly", 0, 1, command_doctor,
          TAKES_POLICY, NULL, { "opensm-config" }, .argument = ARGUMENT_FILE },
        { "report", NULL, "", "write the fabric's partitions as one page for a web browser", 0, 0, command_report,
          NEED_SETTINGS | NEED_POLICY_IF_ANY, NULL, { "output" } },
        { "status", NULL, "", "show what the daemon does and knows", 0, 0, command_status, 0, NULL, {} },
        { "reload", NULL, "", "make the daemon load both files again; waits for the result", 0, 0, command_reload, 0, NULL,
          { "confirm", "release-stranded" } },
        { "confirm", NULL, "", "keep a change that was made with --confirm", 0, 0, command_confirm, 0, NULL, {} },
        { "undo", NULL, "", "go back to the generation before the one in force", 0, 0, command_undo, NEED_CONFIRMATION, NULL,
          { "yes", "beside-opensm" } },
        { "history", NULL, "[show N|diff N [M]|policy N]", "list the policies that came into force, with what each changed", 0, 0,
          command_history, NEED_STORE, NULL, {} },
        { "history", "show", "N", "show one generation: who, when, what changed, what was held", 1, 1,
          command_history_show, NEED_STORE, NULL, {}, .argument = ARGUMENT_GENERATION },
        { "history", "diff", "N [M|file]", "show what it changed in the files, or what differs in M or the present files", 1, 2,
          command_history_diff, NEED_STORE, NULL, {}, .argument = ARGUMENT_GENERATION },
        { "history", "policy", "N", "print its partitions.yaml", 1, 1,
          command_history_policy, NEED_STORE, NULL, { "output" }, .argument = ARGUMENT_GENERATION },
        { "store", NULL, "copy sqlite|etcd", "move the records of pkeyd to another kind of store", 1, 2, NULL, 0, NULL, {} },
        { "store", "copy", "sqlite|etcd", "copy it to state.db, or to etcd", 1, 1, command_store_copy, 0, NULL, {} },
        { "lease", NULL, "create|edit ID|renew ID|release ID|list|show ID", "lease P_Keys of a pool to ports, for a time", 1, 2, NULL, 0, NULL,
          {} },
        { "lease", "create", "--pool POOL --id ID --members SELECTORS", "lease a P_Key, and wait until every member has it", 0, 0,
          command_lease_create, 0, NULL, { "pool", "id", "members", "pkey", "membership", "for", "partial" }, .waits = true },
        { "lease", "edit", "ID --pool POOL --add|--remove|--set SELECTORS", "change the members of an open lease", 1, 1,
          command_lease_edit, 0, NULL, { "pool", "add", "remove", "set", "pkey", "membership", "index0" },
          .argument = ARGUMENT_LEASE },
        { "lease", "renew", "ID --for TIME", "let a lease last this long from now", 1, 1, command_lease_renew, 0, NULL, { "for" },
          .argument = ARGUMENT_LEASE },
        { "lease", "release", "ID", "take its P_Key from all its members", 1, 1, command_lease_release, 0, NULL, {},
          .argument = ARGUMENT_LEASE },
        { "lease", "list", "", "list all leases", 0, 0, command_lease_list, 0, NULL, {} },
        { "lease", "show", "ID", "show one lease with its members", 1, 1, command_lease_show, 0, NULL, {}, .argument = ARGUMENT_LEASE },
        { "watch", NULL, "", "follow the daemon's events, until ^C", 0, 0, command_watch, 0, NULL, {} },
        { "violations", NULL, "", "list P_Key violations, by sender", 0, 0,
          command_violations, 0, NULL, { "since", "node", "once" } },
        { "violations", "--once", "", NULL, 0, 0, command_violations_once, READ_FABRIC, session_choose_self, { "interval" } },
};

/* --- options --------------------------------------------------------------------------------------------------------- */

static bool lists(const struct command *c, const char *option)
{
        for (size_t i = 0; i < ELEMENTS(c->options) && c->options[i]; i++)
                if (strcmp(c->options[i], option) == 0)
                        return true;
        return false;
}

/* "apply and forget", with `last` between the last two. Nothing: the option is for all commands. */
static void add_commands(struct text *t, const char *option, const char *last)
{
        size_t n = 0, k = 0;

        for (size_t i = 0; i < ELEMENTS(commands); i++)
                n += lists(&commands[i], option);
        for (size_t i = 0; i < ELEMENTS(commands); i++) {
                const struct command *c = &commands[i];

                if (!lists(c, option))
                        continue;
                text_add(t, "%s%s%s%s", k == 0 ? "" : k + 1 < n ? ", " : last, c->name, c->word ? " " : "", c->word ?: "");
                k++;
        }
}

static bool takes(const struct command *c, const char *option)
{
        bool is_special = false;

        for (size_t i = 0; i < ELEMENTS(commands); i++) {
                const struct command *other = &commands[i];
                bool is_listed = lists(other, option);

                if (is_listed && (other == c || (!other->word && strcmp(other->name, c->name) == 0)))
                        return true;
                is_special |= is_listed;
        }
        return !is_special;
}

/* An option without a meaning here is a mistake. */
static void check_options(struct context *ctx, const struct command *c)
{
        const struct options *o = ctx->options;

        for (size_t i = 0; i < options_line.n; i++) {
                const char *name = options_line.options[i].name;
                _cleanup_text_ struct text allowed = {};

                if (!options_are_given(o, name) || takes(c, name))
                        continue;
                add_commands(&allowed, name, " and ");
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--%s is for %s only", name, allowed.bytes ?: "other commands");
        }
        if (o->format && c->format && strcmp(o->format, "json") != 0 && strcmp(o->format, c->format) != 0)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--format: '%s' is not a format (accepted: %s, json)", o->format,
                                      c->format);
        if (c->waits && o->timeout)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--timeout: this command waits for seconds or longer (as in 90s, "
                                      "10m)");
        if (!c->waits && o->wait)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--timeout: this command takes the time to wait for one MAD, in "
                                      "milliseconds, from 1 to 60000, without a unit");
        if (o->since && o->once)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--since and --once exclude each other");
}

static void print_help(void)
{
        puts("Usage: pkeyctl [OPTION]... COMMAND [ARGUMENT]...\n"
             "P_Key tables of an InfiniBand subnet: what they hold, what they should hold, and how to get there.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < ELEMENTS(commands); i++)
                if (!commands[i].word)
                        printf("  %-10s %-34s  %s\n", commands[i].name, commands[i].synopsis, commands[i].summary);
        puts("\n"
             "FILE is the policy (" CONFIG_DIR "/partitions.yaml). A and B are hosts, GUIDs, @SWITCH/PORT or\n"
             "other selectors of a policy.\n"
             "\n"
             "Options:");
        for (size_t i = 0; i < options_line.n; i++) {
                _cleanup_text_ struct text allowed = {};

                add_commands(&allowed, options_line.options[i].name, ", ");
                if (allowed.n > 0)
                        text_add(&allowed, ": ");
                command_line_print_help(&options_line.options[i], allowed.bytes ?: "");
        }
        puts("\n"
             "Exit status: 0 done, nothing to do, all equal; 1 refused, nothing was sent; 2 a difference;\n"
             "3 done in part, or ports did not answer.");
}

/* --- commands -------------------------------------------------------------------------------------------------------- */

/* There is no command of this name or, with a parent, no variant of it. */
static void complain_word(struct context *ctx, const struct command *parent, const char *word)
{
        const char *names[ELEMENTS(commands)], *otherwise = "pkeyctl --help lists the commands";
        size_t n = 0;

        for (const struct command *c = commands; c < commands + ELEMENTS(commands); c++)
                if (parent ? c->word && strcmp(c->name, parent->name) == 0 : !c->word)
                        names[n++] = c->word ?: c->name;
        if (parent)
                otherwise = arena_printf(ctx->arena, "usage: pkeyctl %s %s", parent->name, parent->synopsis);
        (void) findings_error(&ctx->findings, FINDING_USAGE, nearest_hint(ctx->arena, word, names, n, "", otherwise),
                              "unknown command '%s%s%s'", parent ? parent->name : "", parent ? " " : "", word);
}

/* The variant that an option or the next argument chooses, which is passed then; else the command itself. */
static const struct command *find_variant(struct context *ctx, const struct command *parent)
{
        const char *word = ctx->arguments[0];
        bool has_words = false;

        for (const struct command *c = parent + 1; c < commands + ELEMENTS(commands) && c->word; c++) {
                if (strncmp(c->word, "--", 2) == 0) {
                        if (options_are_given(ctx->options, c->word + 2))
                                return c;
                        continue;
                }
                has_words = true;
                if (word && strcmp(word, c->word) == 0) {
                        ctx->arguments++;
                        return c;
                }
        }
        if (word && has_words) {
                complain_word(ctx, parent, word);
                return NULL;
        }
        return parent;
}

static const struct command *find_command(struct context *ctx)
{
        const struct options *o = ctx->options;

        if (o->n_arguments == 0) {
                (void) findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl --help lists the commands", "no command was given");
                return NULL;
        }
        ctx->arguments = o->arguments + 1;
        for (size_t i = 0; i < ELEMENTS(commands); i++)
                if (strcmp(o->arguments[0], commands[i].name) == 0) {
                        ctx->command = commands[i].name;
                        return find_variant(ctx, &commands[i]);
                }
        complain_word(ctx, NULL, o->arguments[0]);
        return NULL;
}

static void check_arguments(struct context *ctx, const struct command *c)
{
        const struct options *o = ctx->options;
        size_t n = (size_t) (o->arguments + o->n_arguments - ctx->arguments);

        if (n < c->min_arguments || n > c->max_arguments)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "usage: pkeyctl %s%s%s%s%s", c->name,
                                      c->word ? " " : "", c->word ?: "", *c->synopsis ? " " : "", c->synopsis);
        if (o->policy && c->needs & TAKES_POLICY && n > 0)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "two policies were named: '%s' and '%s'",
                                      o->policy, ctx->arguments[0]);
}

static int run_command(struct context *ctx)
{
        const struct command *c = find_command(ctx);

        if (c)
                check_arguments(ctx, c);
        if (c)
                check_options(ctx, c);
        if (findings_refuse(&ctx->findings))
                return -EBADMSG;
        return session_provide(ctx, c->needs, c->choose) ?: c->run(ctx);
}

/* --- main ------------------------------------------------------------------------------------------------------------ */

/* This allocates nothing. */
static void report_out_of_memory(const struct context *ctx)
{
        if (ctx->options->json)
                printf("{\"schema\":1,\"ok\":false,\"command\":\"%s\",\"findings\":[{\"file\":null,\"line\":0,\"column\":0,"
                       "\"severity\":\"error\",\"code\":\"%s\",\"text\":\"out of memory\",\"fix\":null}]}\n",
                       ctx->command, finding_code_to_string(FINDING_HOST_MEMORY));
        else
                fputs("pkeyctl: error: out of memory\n", stderr);
}

/* Every failure of a run is reported here, once. */
static int report_failure(struct context *ctx, int r)
{
        if (r == -EIO && ferror(stdout))
                return ctx->writing ? EXIT_PARTIAL : EXIT_REFUSED;
        if (r != -EBADMSG && r != -ENOMEM)
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_DISCOVERY, NULL, "%s", strerror(-r));
        ctx->output_r = 0;
        if (r != -ENOMEM)
                output_refusal(ctx);
        if (r == -ENOMEM || ctx->output_r < 0)
                report_out_of_memory(ctx);
        return ctx->writing ? EXIT_PARTIAL : EXIT_REFUSED;
}

static int choose_fabric(struct context *ctx)
{
        const char *option = ctx->options->fabric;

        return fabric_init(ctx->arena, option ?: getenv(FABRIC_VARIABLE), option ? "--fabric" : FABRIC_VARIABLE, &ctx->findings,
                           &ctx->fabric);
}

static int run(struct context *ctx, int parsed)
{
        int r;

        if (parsed >= 0 && ctx->options->help) {
                print_help();
                return EXIT_DONE;
        }
        if (parsed >= 0 && ctx->options->version) {
                puts("pkeyctl " PACKAGE_VERSION);
                return EXIT_DONE;
        }
        r = parsed < 0 ? parsed : choose_fabric(ctx) ?: run_command(ctx);
        if (r >= 0 && ctx->output_r < 0)
                r = ctx->output_r;
        return r < 0 ? report_failure(ctx, r) : r;
}

static int context_init(struct context *ctx, const struct options *options)
{
        *ctx = (struct context) { .options = options, .command = "" };
        ctx->arena = arena_new();
        findings_init(&ctx->findings, ctx->arena);
        ctx->files = generation_new();
        ctx->settings = ctx->files ? ctx->files->settings : NULL;
        return ctx->arena && ctx->files ? 0 : -ENOMEM;
}

static void context_done(struct context *ctx)
{
        opened_port_close(&ctx->port);
        (void) control_free(ctx->control);
        (void) generation_unref(ctx->files);
        if (ctx->bus)
                sd_bus_close(ctx->bus);
        (void) sd_bus_unref(ctx->bus);
        (void) sd_event_unref(ctx->event);
        (void) remembered_free(ctx->remembered);
        state_close(&ctx->state);
        findings_done(&ctx->findings);
        (void) arena_free(ctx->arena);
}

int main(int argc, char **argv)
{
        _cleanup_(context_done) struct context ctx = {};
        struct options options = {};
        int r = file_take_standard(), status;

        if (r == 0 && argc > 1 && strcmp(argv[1], "complete") == 0) {
                completion_answer(&(struct completion_table) { commands, ELEMENTS(commands), takes }, argc - 2, argv + 2);
                return EXIT_DONE;
        }
        status = run(&ctx, r ?: context_init(&ctx, &options) ?: options_parse(argc, argv, &ctx.findings, &options));
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "pkeyctl: error: standard output: %s\n", strerror(errno));
                if (status == EXIT_DONE)
                        status = ctx.writing ? EXIT_PARTIAL : EXIT_REFUSED;
        }
        return status;
}
