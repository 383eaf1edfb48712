/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "pkeyctl/commands.h"
#include "report/report.h"
#include "store_commands/store_commands.h"

const struct command commands[] = {
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
        { "history", "show", "N", "show one generation: who, when, what changed, and which bases were held", 1, 1,
          command_history_show, NEED_STORE, NULL, {}, .argument = ARGUMENT_GENERATION },
        { "history", "diff", "N [M|file]", "show the changes of generation N, or its differences from generation M or the files on disk", 1, 2,
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
        { "violations", NULL, "", "list P_Key violations, with the sender if it is known", 0, 0,
          command_violations, 0, NULL, { "since", "node", "once" } },
        { "violations", "--once", "", NULL, 0, 0, command_violations_once, READ_FABRIC, session_choose_self, { "interval" } },
};
const size_t n_commands = ELEMENTS(commands);

/* --- finding one ------------------------------------------------------------------------------------------------------- */

const struct command *command_find(const char *name)
{
        for (const struct command *c = commands; c < commands + n_commands; c++)
                if (!c->word && strcmp(c->name, name) == 0)
                        return c;
        return NULL;
}

const struct command *command_next_variant(const struct command *c)
{
        return c + 1 < commands + n_commands && c[1].word ? c + 1 : NULL;
}

bool command_is_chosen_by_option(const struct command *c)
{
        return c->word && strncmp(c->word, "--", 2) == 0;
}

const struct command *command_find_variant(const struct command *parent, uint64_t given, const char *word, bool *ret_has_words)
{
        *ret_has_words = false;
        for (const struct command *c = parent; (c = command_next_variant(c));) {
                bool by_option = command_is_chosen_by_option(c);

                if (by_option ? options_are_given(given, c->word + strlen("--")) : word && strcmp(c->word, word) == 0)
                        return c;
                *ret_has_words |= !by_option;
        }
        return parent;
}

/* --- options ----------------------------------------------------------------------------------------------------------- */

static bool lists(const struct command *c, const char *option)
{
        for (size_t i = 0; i < ELEMENTS(c->options) && c->options[i]; i++)
                if (strcmp(c->options[i], option) == 0)
                        return true;
        return false;
}

bool command_takes(const struct command *c, const char *option)
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

void command_add_takers(struct text *t, const char *option, const char *last)
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
