/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "control/confirm.h"
#include "control/sweep_steps.h"

/* Does the plan have exactly the writes that a person confirmed? */
static bool is_confirmed(const struct control *c)
{
        const struct plan *now = c->sweep.decision.plan, *then = c->sweep.confirmed;

        for (int p = 0; then && p < PLAN_N_PHASES; p++)
                if (now->steps[p].n_writes != then->steps[p].n_writes ||
                    memcmp(now->steps[p].writes, then->steps[p].writes, now->steps[p].n_writes * sizeof(struct plan_write)) != 0)
                        return false;
        return then != NULL;
}

static void confirm(struct control *c)
{
        /* other processes need not wait for a person */
        if (c->config.confirm)
                sweep_unlock(c);
        control_await(c, CONTROL_CONFIRMING, &(struct control_action) { .kind = CONTROL_ASK_PERSON });
}

/* Plans; what that changes is noted for the history only, because a person is shown the plan. */
static int plan_to_show(struct control *c, struct findings *findings)
{
        _cleanup_findings_ struct findings shown = { .arena = c->sweep.arena };
        struct generation *g = c->candidate;
        int r = sweep_plan(c, g, findings);

        if (r < 0 || c->config.goal != CONTROL_APPLY || sweep_is_in_force(c, g))
                return r;
        g->facts.n_changes = 0;
        sweep_note_reach(c, &shown);
        return 0;
}

/* The findings of a second plan are shown only if it differs from the one that was confirmed: else they were shown already. */
static int plan_once(struct control *c)
{
        _cleanup_findings_ struct findings again = { .arena = c->sweep.arena };
        int r;

        if (!c->sweep.confirmed)
                return plan_to_show(c, c->config.findings);
        r = plan_to_show(c, &again);
        for (size_t i = 0; i < again.n && (r < 0 || !is_confirmed(c)); i++)
                findings_append(c->config.findings, &again.items[i]);
        return r;
}

/* While a change waits to be confirmed, pkeyctl is refused, too. */
static int admit_once(struct control *c)
{
        const struct generation *g = c->candidate;

        if (c->config.goal != CONTROL_APPLY || (g->facts.undoes == 0 && sweep_is_in_force(c, g)))
                return 0;
        return confirm_admits(c, g, c->config.findings) ? 0 : -EBADMSG;
}

void sweep_decide_once(struct control *c)
{
        struct sweep *s = &c->sweep;
        int r = admit_once(c) ?: plan_once(c);

        if (r < 0) {
                sweep_end_with(c, r == -EBADMSG ? SWEEP_REFUSED : SWEEP_FAILED, r);
                return;
        }
        c->results.decision = &s->decision;
        sweep_predict_held(c);
        if (c->config.goal == CONTROL_PLAN)
                sweep_end(c, SWEEP_DONE);
        else if (!plan_is_empty(s->decision.plan) && !is_confirmed(c))
                confirm(c);
        else if (!s->lock.held)
                sweep_lock(c);
        else if (plan_is_empty(s->decision.plan))
                sweep_verify(c);
        else
                sweep_apply(c);
}

void sweep_confirmed(struct control *c, const struct control_event *event)
{
        c->sweep.confirmed = event->yes ? c->sweep.decision.plan : NULL;
        if (!event->yes)
                sweep_end_with(c, SWEEP_REFUSED, -ECANCELED);
        else if (c->sweep.lock.held)
                sweep_apply(c);
        else
                sweep_lock(c);
}
