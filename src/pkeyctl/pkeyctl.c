/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "pkeyctl/commands.h"
#include "session/output.h"
#include "shell/file.h"
#include "util/nearest.h"

/* --- options --------------------------------------------------------------------------------------------------------- */

/* An option without a meaning here is a mistake. */
static void check_options(struct context *ctx, const struct command *c)
{
        const struct options *o = ctx->options;

        for (size_t i = 0; i < options_line.n; i++) {
                const char *name = options_line.options[i].name;
                _cleanup_text_ struct text allowed = {};

                if (!options_are_given(o->given, name) || command_takes(c, name))
                        continue;
                command_add_takers(&allowed, name, " and ");
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--%s is for %s only", name, allowed.bytes ?: "other commands");
        }
        if (o->format && c->format && strcmp(o->format, "json") != 0 && strcmp(o->format, c->format) != 0)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--format: '%s' is not a format (accepted: %s, json)", o->format,
                                      c->format);
        if (c->waits && o->timeout)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--timeout: this command takes a time with a unit (accepted: as in "
                                      "90s, 10m)");
        if (!c->waits && o->wait)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--timeout: this command takes milliseconds to wait for one MAD, "
                                      "without a unit (accepted: 1 to 60000)");
        if (o->since && o->once)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "--since and --once exclude each other");
}

/* A synopsis that does not fit into its column has a line of its own. */
static void print_command(const struct command *c)
{
        printf("  %-10s %-34s", c->name, c->synopsis);
        if (strlen(c->synopsis) > 34)
                printf("\n%47s", "");
        printf("  %s\n", c->summary);
}

static void print_help(void)
{
        puts("Usage: pkeyctl [OPTION]... COMMAND [ARGUMENT]...\n"
             "P_Key tables of an InfiniBand subnet: show them, compare them with the policy, and change them.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < n_commands; i++)
                if (!commands[i].word)
                        print_command(&commands[i]);
        puts("\n"
             "FILE is the policy (" CONFIG_DIR "/partitions.yaml). A and B are hosts, GUIDs, @SWITCH/PORT or\n"
             "other selectors of a policy.\n"
             "\n"
             "Options:");
        for (size_t i = 0; i < options_line.n; i++) {
                _cleanup_text_ struct text allowed = {};

                command_add_takers(&allowed, options_line.options[i].name, ", ");
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
        const char **names = arena_new_array(ctx->arena, const char *, n_commands), *otherwise = "pkeyctl --help lists the commands";
        size_t n = 0;

        for (const struct command *c = commands; names && c < commands + n_commands; c++)
                if (parent ? c->word && strcmp(c->name, parent->name) == 0 : !c->word)
                        names[n++] = c->word ?: c->name;
        if (parent)
                otherwise = arena_printf(ctx->arena, "usage: pkeyctl %s %s", parent->name, parent->synopsis);
        (void) findings_error(&ctx->findings, FINDING_USAGE, nearest_hint(ctx->arena, word, names, n, "", otherwise),
                              "unknown command '%s%s%s'", parent ? parent->name : "", parent ? " " : "", word);
}

static const struct command *find_command(struct context *ctx)
{
        const struct options *o = ctx->options;
        const struct command *parent, *c;
        const char *word = o->n_arguments > 1 ? o->arguments[1] : NULL;
        bool has_words;

        if (o->n_arguments == 0) {
                (void) findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl --help lists the commands", "no command was given");
                return NULL;
        }
        parent = command_find(o->arguments[0]);
        if (!parent) {
                complain_word(ctx, NULL, o->arguments[0]);
                return NULL;
        }
        ctx->command = parent->name;
        c = command_find_variant(parent, o->given, word, &has_words);
        if (c == parent && word && has_words) {
                complain_word(ctx, parent, word);
                return NULL;
        }
        ctx->arguments = o->arguments + (c == parent || command_is_chosen_by_option(c) ? 1 : 2);
        return c;
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
        ctx->findings = (struct findings) { .arena = ctx->arena };
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
                completion_answer(argc - 2, argv + 2);
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
