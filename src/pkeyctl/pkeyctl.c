/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "shell/file.h"
#include "util/nearest.h"

/* Options that are for some commands only. */
enum {
        TOPOLOGY = 1 << 0,
        OPENSM_CONFIG = 1 << 1,
        OUTPUT = 1 << 2,
        YES = 1 << 3,
        LOCAL = 1 << 4,
        OF_VIOLATIONS = 1 << 5,
        BESIDE_OPENSM = 1 << 6,
};

#define MAX_FORGET 64 /* arguments */

static const struct command commands[] = {
        { "check", "[FILE]", "check the policy; needs no fabric", 0, 1,
          command_check, TOPOLOGY },
        { "plan", "[FILE]", "show what apply would write; sends no SubnSet", 0, 1, command_plan, BESIDE_OPENSM },
        { "apply", "[FILE]", "write the tables, phase by phase, and read them back", 0, 1, command_apply, YES | BESIDE_OPENSM },
        { "verify", "[FILE]", "read every table and compare it with the policy", 0, 1, command_verify, LOCAL },
        { "show", "[ports|partitions|held|vouches|port X]", "show what is in the tables, and what waits", 0, 2, command_show, 0 },
        { "forget", "NODE|GUID...", "vouch that ports that do not answer hold nothing", 1, MAX_FORGET, command_forget, YES },
        { "import", "FILE", "convert OpenSM's partitions.conf to a policy", 1, 1, command_import,
          TOPOLOGY | OPENSM_CONFIG | OUTPUT },
        { "export", "opensm [FILE]", "convert the policy to a partitions.conf", 1, 2, command_export,
          TOPOLOGY | OPENSM_CONFIG | OUTPUT },
        { "explain", "A B", "show whether two endports may talk, and why", 2, 2, command_explain, 0 },
        { "doctor", "[FILE]", "check whether this fabric is safe and this host set up right", 0, 1,
          command_doctor, OPENSM_CONFIG },
        { "status", "", "show what the daemon does and knows", 0, 0, command_status, 0 },
        { "reload", "", "make the daemon load both files again; waits for the result", 0, 0, command_reload, 0 },
        { "watch", "", "follow the daemon's events, until ^C", 0, 0, command_watch, 0 },
        { "violations", "", "list P_Key violations, by sender", 0, 0, command_violations,
          OF_VIOLATIONS },
};

static const char help_head[] = "Usage: pkeyctl [OPTION]... COMMAND [ARGUMENT]...\n"
                                "P_Key tables of an InfiniBand subnet: what they hold, what they should hold, and how to get there.\n"
                                "\n"
                                "Commands:\n";

static const char help_tail[] =
                "\n"
                "FILE is the policy (" DEFAULT_POLICY_FILE "). A and B are hosts, GUIDs, @SWITCH/PORT or\n"
                "other selectors of a policy.\n"
                "\n"
                "Options:\n"
                "  -C, --Ca CA          work through this device of this host\n"
                "  -P, --Port PORT      and this port of it\n"
                "  -t, --timeout MS     wait so long for the answer to one MAD\n"
                "      --config FILE    this host's settings (" DEFAULT_CONFIG_FILE ")\n"
                "      --policy FILE    the policy, for show and explain\n"
                "      --state-dir DIR  what is remembered between runs (" STATE_DIR_DEFAULT ")\n"
                "      --topology FILE  check, import, export: this output of ibnetdiscover for a fabric\n"
                "      --opensm-config FILE\n"
                "                       import, export, doctor: opensm.conf\n"
                "      --output FILE    import, export: write there, and not over a file that is there\n"
                "      --json           one JSON object on stdout\n"
                "      --yes            apply, forget: do not ask\n"
                "      --local          verify: this host's own tables, as its kernel has them; sends no MAD\n"
                "      --beside-opensm  plan, apply: a subnet manager that writes P_Key tables, too, is accepted\n"
                "      --since WHEN     violations: no older ones: 10m, 2h, 3d, or a date and time\n"
                "      --node NAME      violations: of this host or switch only\n"
                "      --once           violations: without a daemon; reads all counters twice\n"
                "      --interval TIME  violations --once: so long between the two readings (10s)\n"
                "  -q, --quiet          errors and the exit status only\n"
                "  -v, --verbose        more: every write, every port\n"
                "  -h, --help           this text\n"
                "  -V, --version        the version\n"
                "\n"
                "Exit status: 0 done, nothing to do, all equal; 1 refused, nothing was sent; 2 a difference;\n"
                "3 done in part, or ports did not answer.\n";

static void print_help(void)
{
        fputs(help_head, stdout);
        for (size_t i = 0; i < ELEMENTS(commands); i++)
                printf("  %-10s %-34s  %s\n", commands[i].name, commands[i].synopsis, commands[i].summary);
        fputs(help_tail, stdout);
}

static void complain_command(struct context *ctx, const char *word)
{
        const char *names[ELEMENTS(commands)], *hint;

        for (size_t i = 0; i < ELEMENTS(commands); i++)
                names[i] = commands[i].name;
        hint = nearest_hint(ctx->arena, word, names, ELEMENTS(names), "", "pkeyctl --help lists the commands");
        (void) findings_error(&ctx->findings, FINDING_USAGE, hint, "unknown command '%s'", word);
}

static const struct command *find_command(struct context *ctx)
{
        const struct options *o = ctx->options;

        if (o->n_arguments == 0) {
                (void) findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl --help lists the commands",
                                      "no command was given");
                return NULL;
        }
        for (size_t i = 0; i < ELEMENTS(commands); i++)
                if (strcmp(o->arguments[0], commands[i].name) == 0)
                        return &commands[i];
        complain_command(ctx, o->arguments[0]);
        return NULL;
}

static void refuse_if(struct context *ctx, bool given, const char *text)
{
        if (given)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "%s", text);
}

/* Options that stand for nothing here are mistakes, not decoration. */
static void check_options(struct context *ctx, const struct command *c)
{
        const struct options *o = ctx->options;
        unsigned n = o->n_arguments - 1, refused = ~c->options;
        bool takes_file = c->max_arguments == 1 && !(c->options & OUTPUT);

        if (n < c->min_arguments || n > c->max_arguments)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "usage: pkeyctl %s%s%s", c->name,
                                      *c->synopsis ? " " : "", c->synopsis);
        refuse_if(ctx, o->topology && (refused & TOPOLOGY), "--topology is for check, import and export only");
        refuse_if(ctx, o->opensm_config && (refused & OPENSM_CONFIG),
                  "--opensm-config is for import, export and doctor only");
        refuse_if(ctx, o->output && (refused & OUTPUT), "--output is for import and export only");
        refuse_if(ctx, o->yes && (refused & YES), "--yes is for apply and forget only");
        refuse_if(ctx, o->local && (refused & LOCAL), "--local is for verify only");
        refuse_if(ctx, o->beside_opensm && (refused & BESIDE_OPENSM), "--beside-opensm is for plan and apply only");
        refuse_if(ctx, (o->since || o->node || o->once || o->interval) && (refused & OF_VIOLATIONS),
                  "--since, --node, --once and --interval are for violations only");
        refuse_if(ctx, o->interval && !o->once, "--interval is for violations --once only");
        refuse_if(ctx, o->since && o->once, "--since and --once exclude each other");
        if (o->policy && takes_file && n > 0)
                (void) findings_error(&ctx->findings, FINDING_USAGE, NULL, "two policies were named: '%s' and '%s'",
                                      o->policy, o->arguments[1]);
}

static int run_command(struct context *ctx)
{
        const struct command *c = find_command(ctx);

        if (!c)
                return -EBADMSG;
        ctx->command = c->name;
        check_options(ctx, c);
        if (findings_refuse(&ctx->findings))
                return -EBADMSG;
        ctx->arguments = ctx->options->arguments + 1;
        return c->run(ctx);
}

/* Told without asking for memory. */
static void report_out_of_memory(const struct context *ctx)
{
        if (ctx->options->json)
                printf("{\"schema\":1,\"ok\":false,\"command\":\"%s\",\"findings\":[{\"file\":null,\"line\":0,\"column\":0,"
                       "\"severity\":\"error\",\"code\":\"%s\",\"text\":\"out of memory\"}]}\n",
                       ctx->command, finding_code_to_string(FINDING_HOST_MEMORY));
        else
                fputs("pkeyctl: error: out of memory\n", stderr);
}

/* Every way a run can fail ends here, in words, once. */
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
        r = parsed < 0 ? parsed : run_command(ctx);
        if (r >= 0 && ctx->output_r < 0)
                r = ctx->output_r;
        return r < 0 ? report_failure(ctx, r) : r;
}

int main(int argc, char **argv)
{
        _cleanup_context_ struct context ctx = {};
        struct options options = {};
        int r, status;

        r = file_take_standard();
        if (r == 0)
                r = context_init(&ctx, &options);
        if (r >= 0)
                r = options_parse(argc, argv, &ctx.findings, &options);
        status = run(&ctx, r);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "pkeyctl: error: standard output: %s\n", strerror(errno));
                if (status == EXIT_DONE)
                        status = ctx.writing ? EXIT_PARTIAL : EXIT_REFUSED;
        }
        return status;
}
