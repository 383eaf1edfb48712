# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs of changes that wait to be confirmed, and of undo."""

from wrongs import Wrong

CONFIRM = "src/control/confirm.c"
SYNC = "src/control/store_sync.c"
RELOAD = "src/control/reload.c"
CONTROL = "src/control/control.c"
STEPS = "src/control/sweep_steps.c"
DECIDE = "src/control/sweep_decide.c"
SWEEP_PLAN = "src/control/sweep_plan.c"
LAYOUT = "src/plan/port_plan.c"
GENERATION = "src/generation/generation.c"
COMMAND = "src/pkeyctl/command_confirm.c"
RECORDS = "src/records/generation_records.c"
STORED = "src/records/stored_records.c"

WRONGS = [
    # the time
    Wrong("confirm-time-restarts", CONFIRM, "MIN(f->confirm_until > wall ? f->confirm_until - wall : 0, f->confirm_for)", "f->confirm_for"),
    Wrong("confirm-time-ends-with-pkeyd", CONFIRM, "        set_time(c, MIN(", "        if (0)\n                set_time(c, MIN("),
    Wrong("confirm-warns-at-once", CONFIRM, "left > WARN_BEFORE ? c->confirm.due - WARN_BEFORE", "left > WARN_BEFORE ? c->now"),
    Wrong("confirm-due-while-stopping", CONFIRM, "        if (c->status.stopping || control_is_guest(c))\n                return USEC_INFINITY;\n", ""),
    Wrong("confirm-in-audit", CONFIRM, "        if (g->audits)\n                return \"there is nothing to undo, because", "        if (0)\n                return \"there is nothing to undo, because"),
    # confirm
    Wrong("confirm-leaves-the-time", CONFIRM, "        stop_time(c);\n        g->facts.confirmed", "        g->facts.confirmed"),
    Wrong("confirm-leaves-the-undo", CONTROL, "if (confirm_waits(c) && c->candidate && c->candidate->facts.undoes > 0)", "if (0)"),
    Wrong("confirm-is-not-stored", CONFIRM, "        control_facts_changed(c);\n        if (!c->unstored", "        if (!c->unstored"),
    Wrong("confirm-answers-at-once", CONFIRM, "        if (!c->unstored || c->sync.arena) /* control stores it soon */\n                return;\n", ""),
    Wrong("confirm-answers-while-it-is-stored", CONFIRM, "if (!c->unstored || c->sync.arena)", "if (!c->unstored)"),
    Wrong("confirm-answers-what-the-store-lacks", CONFIRM, "if (generation_history_before(&c->history, g->number + 1) < g->number)", "if (true)"),
    Wrong("confirm-answers-for-another", SYNC, "                confirm_overtaken(c);\n", ""),
    Wrong("confirm-stored-too-early", SYNC, "        if (s->facts == FACTS_STORING)\n", "        if (s->facts != FACTS_STORED)\n"),
    # another process stores it
    Wrong("confirm-ignores-the-store", SYNC, "                confirm_adopt_stored(c, &changed->files.facts);\n", ""),
    Wrong("settings-size-of-this-process", SYNC, "                if (c->in_force != c->unstored)", "                if (false)"),
    Wrong("settings-size-of-what-is-replaced", SYNC, "                if (c->in_force != c->unstored)", "                if (true)"),
    Wrong("confirm-by-another-policy", SYNC, "bool is_same = changed->policy && is_in_force(c, stored, changed->policy, changed->n_policy);", "bool is_same = changed->policy && c->in_force && c->in_force->number == stored;"),
    Wrong("number-of-the-one-before-given-twice", SYNC, "*first = g == c->unstored && c->unstored_before ? c->unstored_before : g;", "*first = g;"),
    Wrong("number-of-the-one-before-changes-by-itself", SYNC, "return first == g || !generation_has_policy(first, changed->policy, changed->n_policy);", "return true;"),
    Wrong("confirm-by-what-waits", CONFIRM, "if (confirm_waits(c) && stored->confirmed > 0)", "if (confirm_waits(c))"),
    Wrong("confirm-is-not-read-by-pkeyctl", SYNC, "        if (is_same) {", "        if (g && is_same) {"),
    # undo
    Wrong("undo-without-the-lock", DECIDE, "control_may_write(c, g) && !c->sweep.lock.held;", "false;"),
    Wrong("undo-of-the-past", CONFIRM, "return generation > 0 && c->in_force && c->in_force->number != generation;", "return false;"),
    Wrong("undo-of-the-past-withdraws", CONTROL, " || confirm_is_past(c, event->asked.generation)) {", ") {"),
    Wrong("undo-by-pkeyctl-of-the-past", CONFIRM, "return g->facts.undoes == c->last_number;", "return true;"),
    Wrong("undo-by-pkeyctl-of-the-confirmed", CONFIRM, "if (g->facts.origin.kind == ORIGIN_TIMEOUT && c->in_force && !confirm_waits(c))", "if (0)"),
    Wrong("undo-of-whatever-is-in-force", COMMAND, "daemon_undo(ctx, s.generation);", "daemon_undo(ctx, 0);"),
    Wrong("undo-goes-forth-and-back", CONFIRM, "generation_history_target(&c->history, g->number, g->facts.restores);", "generation_history_target(&c->history, g->number, 0);"),
    Wrong("undo-passes-over-the-unstored", CONFIRM, "return unstored && g->facts.restores == 0 ? MAX(stored, unstored->number) : stored;", "return stored;"),
    Wrong("undo-restores-what-was-undone", RECORDS, "                restores = g->restores;\n", "                restores = 0;\n"),
    Wrong("undo-restores-what-was-undone-since-the-start", RECORDS, "        item->restores = g->facts.restores;\n", ""),
    Wrong("undo-restores-what-may-be-undone", STORED, "stored->restores = e < 0 ? k.number :", "stored->restores ="),
    Wrong("undo-of-the-first-after-undos", RECORDS, "        if (restores == 0)\n                return \"there", "        if (restores == UINT64_MAX)\n                return \"there"),
    Wrong("undo-says-that-there-are-none", CONFIRM, "return generation_history_no_target(c->in_force->facts.restores);", "return generation_history_no_target(0);"),
    Wrong("undo-by-pkeyctl-says-that-there-are-none", COMMAND, "generation_history_no_target(files->facts.restores)", "generation_history_no_target(0)"),
    Wrong("undo-by-pkeyctl-goes-forth-and-back", COMMAND, "generation_history_target(&ctx->remembered->history, files->number, files->facts.restores);", "generation_history_target(&ctx->remembered->history, files->number, 0);"),
    Wrong("undo-twice-at-once", CONFIRM, "        else if (c->confirm.undoing)\n                refuse", "        else if (0)\n                refuse"),
    Wrong("undo-passes-over-a-reload", CONTROL, "if (c->confirm.undoing || !c->in_force || !c->candidate || confirm_is_past(c, event->asked.generation)) {", "if (true) {"),
    Wrong("undo-is-not-tried-again", CONFIRM, "c->confirm.due = c->now + RETRY_UNDO;", "c->confirm.due = USEC_INFINITY;"),
    Wrong("undo-that-failed-goes-on", CONFIRM, "        c->confirm.undoing = false;\n        if (confirm_waits(c))", "        if (confirm_waits(c))"),
    Wrong("undo-is-refused-like-a-new-policy", SWEEP_PLAN, "        if (g->facts.undoes > 0)\n                return true;\n        if (control_serves(c))", "        if (control_serves(c))"),
    Wrong("undo-audits-beside-an-sm", SWEEP_PLAN, " || has_to_undo(s->generation))", ")"),
    # what is accepted meanwhile
    Wrong("confirm-admits-older-files", DECIDE, "        reload_admit_again(c);\n", ""),
    Wrong("confirm-by-a-guest", CONFIRM, "        if (control_is_guest(c)) {\n                refuse(c,", "        if (0) {\n                refuse(c,"),
    Wrong("confirm-stored-by-a-guest", SYNC, "if (c->unstored || c->not_loaded || control_is_guest(c)) /*", "if (c->unstored || c->not_loaded) /*"),
    Wrong("confirm-that-a-guest-never-answers", CONFIRM, "                answer_confirmation(c, RELOAD_WAITS, \"this host stands by now,", "                if (0)\n                        answer_confirmation(c, RELOAD_WAITS, \"this host stands by now,"),
    Wrong("confirm-admits-another-change", CONFIRM, "        if (confirm_waits(c)) {\n                (void) findings_error", "        if (0) {\n                (void) findings_error"),
    Wrong("confirm-admits-a-first-policy", CONFIRM, "if (g->facts.confirm_for == 0 || g->audits ||", "if (true ||"),
    Wrong("confirm-admits-a-late-undo", CONFIRM, "return c->confirm.undoing && g->facts.undoes == c->in_force->number;", "return c->in_force;"),
    # the start
    Wrong("start-with-an-edited-file", CONTROL, "        if (serves)\n                reload_admit_again(c);\n", ""),
    Wrong("start-forgets-facts", GENERATION, "        g->facts = other->facts;\n", ""),
    Wrong("start-forgets-settings", CONTROL, "        if (stores && !c->in_force->audits)", "        if (0)"),
    # how a generation of pkeyctl ended
    Wrong("outcome-of-pkeyctl-is-not-stored", "src/control/sweep_write.c", "        (void) reload_set_outcome(c, g, all ? RELOAD_CARRIED_OUT : RELOAD_PARTIAL);\n        sync_will_store(c, g);\n", "        (void) reload_set_outcome(c, g, all ? RELOAD_CARRIED_OUT : RELOAD_PARTIAL);\n"),
    Wrong("outcome-of-pkeyctl-is-always-good", "src/control/sweep_write.c", "g, all ? RELOAD_CARRIED_OUT : RELOAD_PARTIAL);", "g, all || true ? RELOAD_CARRIED_OUT : RELOAD_PARTIAL);"),
    Wrong("outcome-of-pkeyctl-behind-silent-links", "src/control/sweep_write.c", " && c->status.ports.silent == 0 && !plan", " && !plan"),
    Wrong("outcome-without-its-end", RELOAD, "        g->facts.ended = c->wall / USEC_PER_SEC;\n        return true;", "        return true;"),
    Wrong("outcome-without-what-is-held", RELOAD, "        note_held(c, &g->facts);\n        (void) snprintf", "        (void) note_held;\n        (void) snprintf"),
    # the tables before
    Wrong("before-is-after", "src/control/sweep_write.c", "if (done[port] || t->source == TABLE_UNKNOWN)", "if (t->source == TABLE_UNKNOWN)"),
    Wrong("before-is-not-stored", STEPS, "        records_put_before(t,", "        if (0)\n                records_put_before(t,"),
    Wrong("layout-last", LAYOUT, "        if (pp->layout)\n                place_by_layout(pp);\n", ""),
    Wrong("layout-any-entry", LAYOUT, "int index = find_entry(pp->layout->entries, n, key.v, UINT16_MAX);", "int index = -1;"),
    Wrong("layout-only-unused", LAYOUT, "(!is_unused(pp, (uint16_t) index) && !is_freed_before(pp, (uint16_t) index, key))", "!is_unused(pp, (uint16_t) index)"),
    # apply --confirm
    Wrong("apply-undoes-again", COMMAND, "if (ctx->wait_end == WAIT_EXPIRED || ctx->wait_end == WAIT_INTERRUPTED)", "if (ctx->wait_end >= WAIT_UNDONE)"),
    Wrong("apply-does-not-see-the-undo", COMMAND, "return is_undone(ctx, generation, newest, at_once);", "return false;"),
    Wrong("apply-does-not-wait-for-pkeyd", COMMAND, "while (clock_now() < until || pkeyd_undoes(ctx)) {", "while (clock_now() < until) {"),
    Wrong("apply-does-not-wait-for-the-undo", COMMAND, "return at_once || facts.ended > 0;", "return true;"),
    Wrong("apply-does-not-wait-for-one-in-audit-mode", COMMAND, "(s.writing || s.confirm_until > 0 || s.generation == 0)", "s.writing"),
    Wrong("apply-confirms-without-pkeyd", COMMAND, "        if (r > 0)\n                return daemon_confirm(ctx, shows);", "        if (0)\n                return daemon_confirm(ctx, shows);"),
    Wrong("apply-undoes-without-a-reason", COMMAND, "        if (ctx->wait_end == WAIT_EXPIRED)\n                ctx->files->facts.origin", "        if (0)\n                ctx->files->facts.origin"),
    Wrong("apply-undoes-what-was-confirmed", COMMAND, "if (ctx->wait_end == WAIT_EXPIRED || ctx->wait_end == WAIT_INTERRUPTED)", "if (ctx->wait_end != WAIT_UNDONE)"),
    Wrong("apply-prints-two-objects", COMMAND, "        if (!ctx->options->json)\n                (void) apply_show", "        (void) apply_show"),
    Wrong("apply-goes-on-after-an-interrupt", COMMAND, "return sigtimedwait(&set, NULL, &none) > 0;", "return false;"),
    Wrong("apply-keeps-what-is-not-confirmed", COMMAND, "r = r > 0 ? daemon_undo(ctx, generation) : undo_now(ctx, generation);", "r = EXIT_DONE;"),
    Wrong("undone-file-counts-as-in-force", RELOAD, "        if (!c->candidate)\n                c->in_force->is_off_file = false;\n", ""),
]
