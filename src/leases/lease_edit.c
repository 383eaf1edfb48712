/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "leases/leases_internal.h"
#include "policy/policy_select.h"
#include "util/text.h"
#include "util/vector.h"

/* --- the ports that an edit names ------------------------------------------------------------------------------------- */

struct target {
        struct guid guid;
        uint32_t port;              /* SUBNET_NONE: it is not in the fabric */
        enum membership membership; /* that it gets */
        bool index0;
};

struct targets {
        struct target *items;       /* ascending GUID, each once */
        size_t n, allocated;
};

DEFINE_COMPARE(compare_targets, struct target, ORDER(a->guid.v, b->guid.v))

/* NULL: the edit does not name it. */
static const struct target *find_target(const struct targets *list, struct guid guid)
{
        return FIND_SORTED(t, list->items, list->n, ORDER(t->guid.v, guid.v));
}

/* target: what all of them get. */
static int add_targets(struct arena *a, const struct subnet *s, const struct port_list *ports, const struct guid *unseen,
                       size_t n_unseen, struct target target, struct targets *list)
{
        if (VECTOR_EXTEND(a, list->items, list->n, list->allocated, ports->n + n_unseen) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < ports->n; i++) {
                target.port = ports->ports[i];
                target.guid = s->ports[target.port].guid;
                list->items[list->n++] = target;
        }
        for (size_t i = 0; i < n_unseen; i++) {
                target.port = SUBNET_NONE;
                target.guid = unseen[i];
                list->items[list->n++] = target;
        }
        return 0;
}

static int add_group(const struct lease_view *view, const struct policy_pool *pool, const struct lease *lease,
                     const struct lease_edit *edit, const struct lease_group *group, struct findings *findings,
                     struct targets *list)
{
        const struct target target = {
                .membership = group->membership == MEMBERSHIP_NONE ? lease->membership : group->membership, .index0 = group->index0,
        };
        const struct guid *unseen = NULL;
        struct port_list ports = {};
        size_t n_unseen = 0;
        int r = lease_check_membership(group->membership, findings);

        if (r == 0 && *group->members)
                r = policy_selection_members(view->selection, group->members, findings, &ports, &unseen, &n_unseen);
        if (r == 0 && edit->kind != LEASE_REMOVE_MEMBERS)
                r = lease_check_ports(view, pool, &ports, findings);
        return r ?: add_targets(findings->arena, view->subnet, &ports, unseen, n_unseen, target, list);
}

static const char *target_label(struct arena *a, const struct subnet *s, const struct target *t)
{
        if (t->port == SUBNET_NONE)
                return arena_printf(a, "0x%016" PRIx64, t->guid.v) ?: "?";
        return subnet_port_label(a, s, t->port) ?: "?";
}

/* Sorts them, and keeps each once. For LEASE_REMOVE_MEMBERS it does not matter what they would get. */
static int unite_groups(const struct lease_view *view, const struct lease_edit *edit, struct findings *findings,
                        struct targets *list)
{
        size_t n = 0;

        SORT(list->items, list->n, compare_targets);
        for (size_t i = 0; i < list->n; i++) {
                const struct target *t = &list->items[i], *last = n > 0 ? &list->items[n - 1] : NULL;

                if (!last || last->guid.v != t->guid.v)
                        list->items[n++] = *t;
                else if ((last->membership != t->membership || last->index0 != t->index0) && edit->kind != LEASE_REMOVE_MEMBERS)
                        return findings_error(findings, FINDING_LEASE_MEMBERSHIP, "name each port once", "%s is in two groups of members "
                                              "with different memberships or index 0",
                                              target_label(findings->arena, view->subnet, t));
        }
        list->n = n;
        return 0;
}

static int find_targets(const struct lease_view *view, const struct policy_pool *pool, const struct lease *lease,
                        const struct lease_edit *edit, struct findings *findings, struct targets *ret)
{
        size_t length = 0;
        int r;

        for (size_t i = 0; i < edit->n_groups; i++)
                length += strlen(edit->groups[i].members);
        r = lease_check_members(view, length, LEASE_MAX_EDIT_TEXT, findings);
        for (size_t i = 0; r == 0 && i < edit->n_groups; i++)
                r = add_group(view, pool, lease, edit, &edit->groups[i], findings, ret);
        return r ?: unite_groups(view, edit, findings, ret);
}

/* --- the members of a lease ------------------------------------------------------------------------------------------- */

static struct lease_member *find_member(const struct lease *lease, uint32_t n, struct guid port)
{
        return FIND_SORTED(m, lease->members, n, ORDER(m->port.v, port.v));
}

/* With room for n_more members; in an arena of its own, so that edits do not fill that of the old lease. */
static struct lease *copy_lease(const struct lease *from, size_t n_more)
{
        _cleanup_(lease_free_p) struct lease *to = lease_new();
        struct arena *a;

        assert(!from->why); /* it is not released, so its copy does not need the reason */
        if (!to)
                return NULL;
        a = to->arena;
        *to = *from;
        to->arena = a;
        to->id = arena_strdup(a, from->id);
        to->wish.pool = arena_strdup(a, from->wish.pool);
        to->wish.members = arena_strdup(a, from->wish.members);
        to->members = arena_new_array(a, struct lease_member, from->n_members + n_more);
        if (!to->id || !to->wish.pool || !to->wish.members || !to->members)
                return NULL;
        for (uint32_t i = 0; i < from->n_members; i++) {
                to->members[i] = from->members[i];
                to->members[i].name = arena_strdup(a, from->members[i].name);
                if (!to->members[i].name)
                        return NULL;
        }
        return STEAL(to);
}

/* LEASE_REMOVE_MEMBERS: the targets; LEASE_SET_MEMBERS: all others. Returns how many. */
static uint32_t remove_members(struct lease *lease, const struct targets *targets, enum lease_edit_kind kind)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members && kind != LEASE_ADD_MEMBERS; i++) {
                struct lease_member *m = &lease->members[i];
                bool is_target = find_target(targets, m->port);

                if (m->is_leaving || is_target != (kind == LEASE_REMOVE_MEMBERS))
                        continue;
                m->is_leaving = m->is_changed = true;
                n++;
        }
        return n;
}

static int add_member(struct lease *lease, const struct subnet *s, const struct target *t, struct lease_member *m)
{
        *m = (struct lease_member) { .state = LEASE_MEMBER_WAITS };
        if (t->port != SUBNET_NONE)
                return lease_fill_member(lease, s, t->port, m);
        m->state = LEASE_MEMBER_UNSEEN;
        m->port = t->guid;
        m->name = arena_printf(lease->arena, "0x%016" PRIx64, t->guid.v);
        return m->name ? 0 : -ENOMEM;
}

/* *ret: how many are new, or get another membership or index 0. Returns 0 or -ENOMEM. */
static int add_members(struct lease *lease, const struct subnet *s, const struct targets *targets, uint32_t *ret)
{
        uint32_t n_known = lease->n_members;

        *ret = 0;
        for (size_t i = 0; i < targets->n; i++) {
                const struct target *t = &targets->items[i];
                struct lease_member *m = find_member(lease, n_known, t->guid);
                bool is_admitted = m && m->state != LEASE_MEMBER_LEFT_OUT;

                if (is_admitted && m->membership == t->membership && m->index0 == t->index0 && !m->is_leaving)
                        continue;
                if (!m)
                        m = &lease->members[lease->n_members++];
                if (!is_admitted && add_member(lease, s, t, m) < 0)
                        return -ENOMEM;
                m->membership = t->membership;
                m->index0 = t->index0;
                if (m->state == LEASE_MEMBER_CONFIRMED)
                        m->state = LEASE_MEMBER_WAITS;
                m->is_leaving = false;
                m->is_changed = true;
                (*ret)++;
        }
        lease_sort_members(lease);
        return 0;
}

/* --- index 0 ------------------------------------------------------------------------------------------------------------ */

/* A member that another lease has at index 0, where the edit wants it, too; NULL: there is none. */
static const struct lease_member *find_at_index0(const struct lease *other, const struct targets *targets)
{
        for (uint32_t i = 0; lease_is_in_force(other) && i < other->n_members; i++) {
                const struct lease_member *m = &other->members[i];
                const struct target *t = find_target(targets, m->port);

                if (m->index0 && m->state != LEASE_MEMBER_LEFT_OUT && !m->is_leaving && t && t->index0)
                        return m;
        }
        return NULL;
}

/* A pool may forbid it, and a table has one index 0. */
static int check_index0(const struct leases *l, const struct policy_pool *pool, const struct lease *lease,
                        const struct lease_edit *edit, const struct targets *targets, struct findings *findings)
{
        bool any = false;

        for (size_t i = 0; i < edit->n_groups; i++)
                any |= edit->groups[i].index0;
        if (!any || edit->kind == LEASE_REMOVE_MEMBERS)
                return 0;
        if (!pool->index0)
                return findings_error(findings, FINDING_LEASE_INDEX0, "an admin can set `index0: true` there, and reload",
                                      "pool %s does not allow index 0", pool->name);
        for (size_t i = 0; i < l->n; i++) {
                const struct lease_member *m = l->items[i] == lease ? NULL : find_at_index0(l->items[i], targets);

                if (m)
                        return findings_error(findings, FINDING_LEASE_INDEX0_TAKEN, "take it out of that lease first",
                                              "lease %s already gives %s index 0", l->items[i]->id, m->name);
        }
        return 0;
}

/* --- edit --------------------------------------------------------------------------------------------------------------- */

static int check_edit(const struct lease *lease, const struct lease_edit *edit, struct findings *findings)
{
        if (!lease->is_open)
                return findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT,
                                      "lease %s is not open: its members cannot be changed", lease->id);
        if (strcmp(lease->wish.pool, edit->pool) != 0 || (edit->base > 0 && edit->base != lease->base))
                return findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT, "lease %s has P_Key 0x%04x of pool %s",
                                      lease->id, lease->base, lease->wish.pool);
        return lease_check_releasing(lease, edit->kind != LEASE_REMOVE_MEMBERS, findings);
}

/* What an edit changed. */
struct edited {
        uint32_t n_added, n_removed;  /* members; those that got another membership or index 0 count as added */
        bool options_changed;
};

static bool same_qos(const struct lease_qos *x, const struct lease_qos *y)
{
        return x->mtu == y->mtu && x->service_level == y->service_level && x->rate == y->rate;
}

/* Returns whether anything changed. */
static bool set_options(struct lease *lease, const struct lease_options *options)
{
        const struct lease old = *lease;

        if (options->sets_ip_over_ib)
                lease->ip_over_ib = options->ip_over_ib;
        if (options->qos.mtu > 0)
                lease->qos = options->qos;
        lease->is_kept |= options->keeps;
        return lease->ip_over_ib != old.ip_over_ib || !same_qos(&lease->qos, &old.qos) || lease->is_kept != old.is_kept;
}

static bool is_changed(const struct edited *e)
{
        return e->n_added > 0 || e->n_removed > 0 || e->options_changed;
}

/* Members that leave do not count, but take memory until a plan is made without them. */
static int check_numbers(const struct lease *lease, struct findings *findings)
{
        if (lease->n_members > 2 * LEASE_MAX_MEMBERS)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, "try again later", "pkeyd has not planned the last changes of lease "
                                      "%s yet", lease->id);
        return lease_check_number(lease_n_wanted(lease), findings);
}

/* A copy of the lease as it is after the edit; *ret owned. */
static int change(const struct lease_view *view, const struct lease *lease, const struct targets *targets,
                  const struct lease_edit *edit, struct findings *findings, struct edited *ret_edited, struct lease **ret)
{
        _cleanup_(lease_free_p) struct lease *new = copy_lease(lease, targets->n);
        int r = 0;

        if (!new)
                return -ENOMEM;
        *ret_edited = (struct edited) {
                .n_removed = remove_members(new, targets, edit->kind), .options_changed = set_options(new, &edit->options),
        };
        if (edit->kind != LEASE_REMOVE_MEMBERS)
                r = add_members(new, view->subnet, targets, &ret_edited->n_added) ?:
                    check_numbers(new, findings);
        if (r < 0)
                return r;
        if (is_changed(ret_edited))
                new->updated = view->wall;
        lease_set_empty_due(new, view->now);
        *ret = STEAL(new);
        return 0;
}

/* Puts the changed lease in the place of the old one. */
static void replace(struct leases *l, struct lease *old, struct lease *new)
{
        size_t i = leases_lower_bound(l, old->id);

        while (l->items[i] != old)
                i++;
        l->items[i] = new;
        l->by_base[new->base] = new;
        lease_free(old);
}

/* NONE: the groups differ. */
static enum membership common_membership(const struct lease_edit *edit)
{
        for (size_t i = 1; i < edit->n_groups; i++)
                if (edit->groups[i].membership != edit->groups[0].membership)
                        return MEMBERSHIP_NONE;
        return edit->n_groups > 0 ? edit->groups[0].membership : MEMBERSHIP_NONE;
}

/* An open lease without members, which is in no list yet. */
static int make_open(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                     const struct lease_edit *edit, const struct policy_pool *pool, struct findings *findings, struct lease **ret)
{
        const struct lease_wish wish = {
                .pool = edit->pool, .members = "", .base = edit->base, .membership = common_membership(edit),
        };
        int r = lease_make(l, view, by, id, &wish, 0, pool, findings, ret);

        if (r < 0)
                return r;
        (*ret)->is_open = true;
        (*ret)->is_kept = !edit->options.drops;
        (*ret)->state = LEASE_ACTIVE;
        lease_set_due(*ret, view->now, view->wall);
        return 0;
}

/* There is no lease with this ID. If another lease has the P_Key, the caller must not take it that its members have lost it. */
static int refuse_absent(const struct leases *l, const struct lease_view *view, const struct policy_pool *pool, const char *id,
                         const struct lease_edit *edit, struct findings *findings)
{
        const struct lease *other = edit->base > 0 ? leases_find_base(l, edit->base) : NULL;
        int r = lease_check_base(view, pool, edit->base, findings);

        if (r == 0 && other && lease_is_in_force(other))
                r = findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT, "P_Key 0x%04x is that of lease %s", edit->base,
                                   other->id);
        return r ?: findings_error(findings, FINDING_LEASE_NONE, "pkeyctl lease list shows all", "there is no lease %s", id);
}

int leases_edit(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                const struct lease_edit *edit, struct log *log, struct findings *findings)
{
        const struct lease_waiter waiter = lease_waiter_of(view, by, LEASE_EDIT, LEASE_TIMEOUT);
        _cleanup_(lease_free_p) struct lease *made = NULL, *new = NULL;
        struct lease *lease = (struct lease *) leases_find(l, id);
        const struct policy_pool *pool = NULL;
        struct targets targets = {};
        struct edited edited = {};
        int r = lease_find_pool(view, by, id, edit->pool, findings, &pool);

        if (r < 0)
                return r;
        if (!lease && (edit->kind == LEASE_REMOVE_MEMBERS || edit->options.must_exist))
                return refuse_absent(l, view, pool, id, edit, findings);
        r = lease ? check_edit(lease, edit, findings) : make_open(l, view, by, id, edit, pool, findings, &made);
        r = r ?: find_targets(view, pool, lease ?: made, edit, findings, &targets);
        r = r ?: check_index0(l, pool, lease, edit, &targets, findings);
        r = r ?: change(view, lease ?: made, &targets, edit, findings, &edited, &new);
        r = r ?: lease ? lease_wait(l, new, &waiter, findings) : lease_add(l, new, &waiter, findings);
        if (r < 0)
                return r;
        log_add(log, LOG_EVENT_LEASE_EDITED, NULL, "lease %s, P_Key 0x%04x of pool %s: %u member%s added, %u taken out%s, by %s", id,
                new->base, pool->name, edited.n_added, text_plural(edited.n_added), edited.n_removed,
                edited.options_changed ? ", options changed" : "", lease_caller_name(by));
        if (lease && is_changed(&edited))
                lease_changed(l, new);
        if (lease)
                replace(l, lease, new);
        (void) STEAL(new);
        return 0;
}

/* --- members that appear ------------------------------------------------------------------------------------------------ */

/* Whether it gets the entry when its port appears. */
static bool is_waiting(const struct lease *lease, const struct lease_member *m)
{
        return lease->state == LEASE_ACTIVE && lease_member_is_unseen(m) && !m->is_leaving;
}

/* A member that is left out gets the entry later: when its port appeared, its host may not have had its name yet. */
static bool has_appeared(const struct lease *lease, const struct lease_member *m, const struct subnet *s)
{
        bool is_left_out = m->state == LEASE_MEMBER_LEFT_OUT && lease->is_open && lease->state == LEASE_ACTIVE && !m->is_leaving;

        return (is_left_out || is_waiting(lease, m)) && subnet_find_endport(s, m->port) != SUBNET_NONE;
}

/* While the member was left out, another lease may have got index 0 of its port. */
static bool index0_is_taken(const struct leases *l, const struct lease *lease, const struct lease_member *m)
{
        struct target target = { .guid = m->port, .index0 = true };
        const struct targets targets = { .items = &target, .n = 1 };

        for (size_t i = 0; i < l->n && m->index0 && m->state == LEASE_MEMBER_LEFT_OUT; i++)
                if (l->items[i] != lease && find_at_index0(l->items[i], &targets))
                        return true;
        return false;
}

bool leases_have_appeared(const struct leases *l, const struct subnet *s)
{
        for (size_t i = 0; i < l->n; i++)
                for (uint32_t k = 0; k < l->items[i]->n_members; k++)
                        if (has_appeared(l->items[i], &l->items[i]->members[k], s))
                                return true;
        return false;
}

static int admit(struct leases *l, struct lease *lease, struct lease_member *m, const struct subnet *s,
                 const struct port_list *ports, struct log *log)
{
        uint32_t port = subnet_find_endport(s, m->port);
        enum lease_member_state state = LEASE_MEMBER_LEFT_OUT;

        if (port_list_holds_certainly(ports, port) && !index0_is_taken(l, lease, m))
                state = LEASE_MEMBER_WAITS;
        if (m->state == state)
                return 0;
        if (lease_fill_member(lease, s, port, m) < 0)
                return -ENOMEM;
        m->state = state;
        m->is_changed = true;
        lease_changed(l, lease);
        if (m->state == LEASE_MEMBER_LEFT_OUT)
                log_add(log, LOG_EVENT_LEASE_FAILED, NULL, "lease %s: %s is in the fabric now, and gets no P_Key until pkeyd is certain that "
                        "it belongs to pool %s", lease->id, m->name, lease->wish.pool);
        else
                log_add(log, LOG_EVENT_LEASE_EDITED, NULL, "lease %s: %s is among the ports of pool %s now, and gets P_Key 0x%04x", lease->id,
                        m->name, lease->wish.pool, lease->base);
        return 0;
}

int leases_admit(struct leases *l, const struct lease_view *view, struct log *log)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                struct lease *lease = l->items[i];
                const struct policy_pool *pool = policy_find_pool(view->policy, lease->wish.pool);
                struct port_list ports;

                for (uint32_t k = 0; r == 0 && pool && k < lease->n_members; k++)
                        if (has_appeared(lease, &lease->members[k], view->subnet))
                                r = (view->selection ? policy_selection_pool(view->selection, pool, &ports) : -ENOMEM) ?:
                                    admit(l, lease, &lease->members[k], view->subnet, &ports, log);
        }
        return r;
}

int leases_list_unseen(struct arena *a, const struct leases *l, const struct guid **ret, uint32_t *ret_n)
{
        struct guid *list = NULL;
        uint32_t n = 0, allocated = 0;

        for (size_t i = 0; i < l->n; i++)
                for (uint32_t k = 0; k < l->items[i]->n_members; k++) {
                        if (!is_waiting(l->items[i], &l->items[i]->members[k]))
                                continue;
                        if (VECTOR_ADD(a, list, n, allocated, l->items[i]->members[k].port) < 0)
                                return -ENOMEM;
                }
        *ret = list;
        *ret_n = n;
        return 0;
}

static int expect(struct lease *lease, const struct lease_view *view)
{
        const struct policy_pool *pool = view->selection ? policy_find_pool(view->policy, lease->wish.pool) : NULL;
        struct port_list ports = {};
        int r = pool ? policy_selection_pool(view->selection, pool, &ports) : 0;

        for (uint32_t i = 0; r == 0 && i < lease->n_members; i++) {
                struct lease_member *m = &lease->members[i];
                uint32_t port;

                if (!is_waiting(lease, m))
                        continue;
                port = pool ? subnet_find_endport(view->subnet, m->port) : SUBNET_NONE;
                m->state = port != SUBNET_NONE && port_list_holds_certainly(&ports, port) ? LEASE_MEMBER_EXPECTED :
                           LEASE_MEMBER_UNSEEN;
        }
        return r;
}

int leases_expect(struct leases *l, const struct lease_view *view)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++)
                r = expect(l->items[i], view);
        return r;
}
