/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/control_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "policy/policy_select.h"

void control_do(struct control *c, const struct control_action *action)
{
        assert(c->n_actions < MAX_ACTIONS);
        c->actions[(c->first_action + c->n_actions++) % MAX_ACTIONS] = *action;
}

void control_await(struct control *c, enum control_state state, const struct control_action *action)
{
        c->state = state;
        control_do(c, action);
}

void control_drop_kept_policy(struct control *c)
{
        knowledge_drop_policy(c->knowledge);
        (void) policy_selection_free(c->kept_policy.selection);
        arena_free(c->kept_policy.arena);
        c->kept_policy = (struct kept_policy) {};
}

void control_take_remembered(struct control *c, struct remembered *m)
{
        control_drop_kept_policy(c);
        if (control_is_guest(c)) /* the OpenSM of this host, whose file is not in the store */
                knowledge_take_foreign(m->knowledge, c->knowledge);
        (void) knowledge_free(c->knowledge);
        (void) index_memory_free(c->indexes);
        known_done(&c->known);
        pins_done(&c->pins);
        if (!control_serves(c) || !c->leases_taken || control_is_guest(c)) {
                leases_pass_on(c->leases, m->leases);
                (void) leases_free(c->leases);
                c->leases = STEAL(m->leases);
                leases_start(c->leases, c->now, c->wall / USEC_PER_SEC);
        }
        c->leases_taken = true;
        generation_history_done(&c->history);
        before_records_done(&c->before);
        c->knowledge = STEAL(m->knowledge);
        c->indexes = STEAL(m->indexes);
        c->known = STEAL(m->known);
        c->pins = STEAL(m->pins);
        c->history = STEAL(m->history);
        c->before = STEAL(m->before);
        c->last_number = MAX(c->last_number, m->generation);
        (void) snprintf(c->boot, sizeof(c->boot), "%s", m->boot);
        (void) remembered_free(m);
}

/* A generation that only audits is not in the store: if another process gave its number to another generation, this one gets a new
 * number. If the state directory was deleted, the other process has begun a new store, which has neither the generation in force
 * nor leases, so that they must be stored again. A guest stores its generation if it writes before the other head node has stored
 * one. */
void control_take_changed(struct control *c, struct remembered *changed)
{
        struct generation *g = control_serves(c) ? c->in_force : NULL;
        uint64_t stored = changed->generation;
        bool is_guest = control_is_guest(c);
        bool has_lost_number = g && !is_guest && g->number == stored && changed->policy &&
                               !generation_has_policy(g, changed->policy, changed->n_policy);

        control_take_remembered(c, changed);
        c->knowledge_is_new = true;
        if (!g)
                return;
        if (!is_guest)
                leases_unstore(c->leases);
        if (has_lost_number) {
                g->number = ++c->last_number;
                c->unannounced = true;
        }
        if (g->number > stored && !g->audits)
                control_will_store(c, g);
}

void control_unstore(struct control *c)
{
        knowledge_unstore(c->knowledge);
        (void) index_memory_unstore(c->indexes); /* if out of memory, some freed indexes are not stored */
        known_unstore(&c->known);
        pins_unstore(&c->pins);
        leases_unstore(c->leases);
        generation_history_done(&c->history);
        before_records_done(&c->before);
        if (c->in_force && c->in_force->number > 0 && !c->in_force->audits)
                control_will_store(c, c->in_force);
}

struct generation *control_continue(struct control *c, struct generation *g)
{
        struct generation *candidate = c->candidate;

        if (!candidate || !generation_has_policy(candidate, g->policy_bytes, g->n_policy_bytes))
                return g;
        generation_continue(candidate, g);
        generation_unref(g);
        c->candidate = NULL;
        schedule_no_candidate(&c->schedule);
        return candidate;
}

void control_will_store(struct control *c, struct generation *g)
{
        if (c->unstored && c->unstored->number != g->number) {
                generation_unref(c->unstored_before);
                c->unstored_before = STEAL(c->unstored);
        }
        generation_unref(c->unstored);
        c->unstored = generation_ref(g);
        g->facts.settings_size = g->n_settings_bytes; /* what is stored */
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

bool control_is_of_pair(const struct control *c)
{
        return follows_sm(c->in_force) || follows_sm(c->candidate);
}

bool control_follows_sm(const struct control *c)
{
        return control_serves(c) && control_is_of_pair(c);
}

bool control_is_guest(const struct control *c)
{
        return c->config.shares_store && control_follows_sm(c) && c->sm.state != SM_FOLLOW_WRITER;
}

bool control_stands_by(const struct control *c)
{
        return control_is_guest(c) && c->sm.state != SM_FOLLOW_TAKING_OVER;
}

void port_key_make(const struct settings *s, struct port_key *ret)
{
        *ret = (struct port_key) { .number = s->port };
        (void) snprintf(ret->ca, sizeof(ret->ca), "%s", s->ca ? s->ca : "");
}

bool port_key_is_of(const struct port_key *k, const struct settings *s)
{
        return strcmp(k->ca, s->ca ? s->ca : "") == 0 && k->number == s->port;
}

const char *control_port_name(const struct settings *s, char ret[CONTROL_PORT_NAME])
{
        if (s->ca)
                (void) snprintf(ret, CONTROL_PORT_NAME, "%s%s%.0u", s->ca, s->port ? "/" : "", s->port);
        else
                (void) snprintf(ret, CONTROL_PORT_NAME, "an InfiniBand port");
        return ret;
}

const char *control_port_problem(int r)
{
        switch (r) {
        case -ENETDOWN:
                return "its link is down";
        case -ENODEV:
                return "this host has no such device";
        case -EACCES:
        case -EPERM:
                return "no permission to use /dev/infiniband/umad*; the udev rule 70-pkeyd.rules gives them to the group pkeyd: "
                       "'systemctl restart systemd-udevd', then 'udevadm trigger'";
        case -ENOTUNIQ:
                return "several InfiniBand ports of this host are possible, and each fabric needs its own; set ca and port in pkeyd.yaml";
        case -EBUSY:
                return "another pkeyd of this host serves this port; each fabric needs its own: see ca and port in pkeyd.yaml";
        case -EOPNOTSUPP:
                return "the kernel module ib_umad is not loaded";
        }
        return strerror(-r);
}
