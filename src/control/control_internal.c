/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/control_internal.h"

#include <assert.h>
#include <stdarg.h>

#include "policy/policy_select.h"

void control_request(struct control *c, const struct control_action *action)
{
        assert(c->n_actions < MAX_ACTIONS);
        c->actions[(c->first_action + c->n_actions++) % MAX_ACTIONS] = *action;
}

void control_await(struct control *c, enum control_state state, const struct control_action *action)
{
        c->state = state;
        control_request(c, action);
}

void control_answer(struct control *c, struct reload_answer *a, enum reload_outcome outcome, const char *text, size_t n)
{
        (void) snprintf(a->text, sizeof(a->text), "%s", text);
        a->end = (struct reload_end) {
                .outcome = outcome, .generation = c->in_force ? c->in_force->number : 0, .text = a->text,
                .findings = &a->findings, .requests = a->requests, .n_requests = n, .is_quiet = a == &c->confirm.answer,
        };
        control_request(c, &(struct control_action) { .kind = CONTROL_ANSWER, .end = &a->end });
}

void control_drop_kept_policy(struct control *c)
{
        knowledge_drop_policy(c->knowledge);
        (void) policy_selection_free(c->kept_policy.selection);
        arena_free(c->kept_policy.arena);
        c->kept_policy = (struct kept_policy) {};
}

void control_facts_changed(struct control *c)
{
        bool is_in_store = !c->in_force->audits && c->in_force->number > 0;

        c->sync.facts = is_in_store ? FACTS_CHANGED : FACTS_STORED;
        c->sync.at = c->now;
}

void control_set_status(struct control *c, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(c->text, sizeof(c->text), format, ap);
        va_end(ap);
}

bool control_serves(const struct control *c)
{
        return c->config.goal == CONTROL_SERVE;
}

struct generation *control_wanted(const struct control *c)
{
        return c->candidate ? c->candidate : c->in_force;
}

const struct pins *control_pins(const struct control *c, const struct generation *g)
{
        return g->settings->identity == IDENTITY_PIN ? &c->pins : NULL;
}

bool control_may_write(const struct control *c, const struct generation *g)
{
        return !control_serves(c) || g->settings->role == ROLE_ALWAYS || c->sm.state == SM_FOLLOW_WRITER;
}

bool control_writes(const struct control *c, const struct generation *g)
{
        return !g->audits && control_may_write(c, g);
}

static bool follows_sm(const struct generation *g)
{
        return g && g->settings->role == ROLE_FOLLOW_SM;
}

bool control_is_in_pair(const struct control *c)
{
        return follows_sm(c->in_force) || follows_sm(c->candidate);
}

bool control_follows_sm(const struct control *c)
{
        return control_serves(c) && control_is_in_pair(c);
}

bool control_is_guest(const struct control *c)
{
        return c->config.shares_store && control_follows_sm(c) && c->sm.state != SM_FOLLOW_WRITER;
}

bool control_stands_by(const struct control *c)
{
        return control_is_guest(c) && c->sm.state != SM_FOLLOW_TAKING_OVER;
}
