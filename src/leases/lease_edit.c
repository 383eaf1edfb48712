/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "leases/leases_internal.h"
#include "policy/policy_select.h"
#include "util/text.h"

/* --- who is meant ----------------------------------------------------------------------------------------------------- */

struct meant {
        struct guid guid;
        uint32_t port; /* SUBNET_NONE: it is not in the fabric */
};

struct meant_list {
        struct meant *items; /* ascending GUID, each once */
        size_t n;
};

DEFINE_COMPARE(compare_meant, struct meant, ORDER(a->guid.v, b->guid.v))

static bool is_meant(const struct meant_list *list, struct guid guid)
{
        size_t i = LOWER_BOUND(m, list->items, list->n, m->guid.v < guid.v);

        return i < list->n && list->items[i].guid.v == guid.v;
}

static int fill_meant(struct arena *a, const struct subnet *s, const struct port_list *ports, const struct guid *unseen,
                      size_t n_unseen, struct meant_list *ret)
{
        size_t n = 0;

        ret->items = arena_new_array(a, struct meant, ports->n + n_unseen);
        if (!ret->items)
                return -ENOMEM;
        for (uint32_t i = 0; i < ports->n; i++)
                ret->items[n++] = (struct meant) { s->ports[ports->ports[i]].guid, ports->ports[i] };
        for (size_t i = 0; i < n_unseen; i++)
                ret->items[n++] = (struct meant) { unseen[i], SUBNET_NONE };
        SORT(ret->items, n, compare_meant);
        for (size_t i = 0; i < n; i++)
                if (ret->n == 0 || ret->items[ret->n - 1].guid.v != ret->items[i].guid.v)
                        ret->items[ret->n++] = ret->items[i];
        return 0;
}

static int find_meant(const struct lease_view *view, const struct policy_pool *pool, const struct lease_edit *edit,
                      struct findings *findings, struct meant_list *ret)
{
        const struct guid *unseen = NULL;
        struct port_list ports = {};
        size_t n_unseen = 0;
        int r = lease_check_membership(edit->membership, findings) ?: lease_check_members(view, edit->members, findings);

        if (r == 0 && *edit->members)
                r = policy_selection_members(view->selection, edit->members, findings, &ports, &unseen, &n_unseen);
        if (r == 0 && edit->kind != LEASE_REMOVE_MEMBERS)
                r = lease_check_ports(view, pool, &ports, findings);
        return r ?: fill_meant(findings->arena, view->subnet, &ports, unseen, n_unseen, ret);
}

/* --- the members of a lease ------------------------------------------------------------------------------------------- */

static struct lease_member *find_member(const struct lease *lease, uint32_t n, struct guid port)
{
        uint32_t i = LOWER_BOUND(m, lease->members, n, m->port.v < port.v);

        return i < n && lease->members[i].port.v == port.v ? &lease->members[i] : NULL;
}

/* With room for so many more members. In an arena of its own, so that no arena grows with each edit. */
static struct lease *copy_lease(const struct lease *from, size_t n_more)
{
        _cleanup_(lease_free_p) struct lease *to = lease_new();
        struct arena *a;

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

/* LEASE_REMOVE_MEMBERS: those that are meant; LEASE_SET_MEMBERS: all others. Returns how many. */
static uint32_t remove_members(struct lease *lease, const struct meant_list *meant, enum lease_edit_kind kind)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members && kind != LEASE_ADD_MEMBERS; i++) {
                struct lease_member *m = &lease->members[i];

                if (m->is_leaving || is_meant(meant, m->port) != (kind == LEASE_REMOVE_MEMBERS))
                        continue;
                m->is_leaving = m->is_changed = true;
                m->confirmed = false;
                n++;
        }
        return n;
}

static int add_member(struct lease *lease, const struct subnet *s, const struct meant *meant, struct lease_member *m)
{
        *m = (struct lease_member) { .port = meant->guid, .is_unseen = meant->port == SUBNET_NONE };
        if (meant->port != SUBNET_NONE)
                return lease_fill_member(lease, s, meant->port, m);
        m->name = arena_printf(lease->arena, "0x%016" PRIx64, meant->guid.v);
        return m->name ? 0 : -ENOMEM;
}

/* *ret: how many are new, or get another membership. Returns 0 or -ENOMEM. */
static int add_members(struct lease *lease, const struct subnet *s, const struct meant_list *meant, enum membership membership,
                       uint32_t *ret)
{
        uint32_t n_known = lease->n_members;

        *ret = 0;
        for (size_t i = 0; i < meant->n; i++) {
                struct lease_member *m = find_member(lease, n_known, meant->items[i].guid);
                bool is_admitted = m && !m->left_out;

                if (is_admitted && m->membership == membership && !m->is_leaving)
                        continue;
                if (!m)
                        m = &lease->members[lease->n_members++];
                if (!is_admitted && add_member(lease, s, &meant->items[i], m) < 0)
                        return -ENOMEM;
                m->membership = membership;
                m->is_leaving = m->confirmed = false;
                m->is_changed = true;
                (*ret)++;
        }
        lease_sort_members(lease);
        return 0;
}

/* --- edit --------------------------------------------------------------------------------------------------------------- */

static int check_edit(const struct lease *lease, const struct lease_edit *edit, struct findings *findings)
{
        if (!lease->is_open)
                return findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT,
                                      "lease %s has the members that it was made for: it is not open", lease->id);
        if (strcmp(lease->wish.pool, edit->pool) != 0 || (edit->base > 0 && edit->base != lease->base))
                return findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT, "lease %s has P_Key 0x%04x of pool %s",
                                      lease->id, lease->base, lease->wish.pool);
        return lease_check_releasing(lease, findings);
}

/* How many members an edit added, or gave another membership, and how many it took out. */
struct edited {
        uint32_t n_added, n_removed;
};

/* A copy of the lease with the members that it has after the edit; *ret owned. */
static int change(const struct lease_view *view, const struct lease *lease, const struct meant_list *meant,
                  const struct lease_edit *edit, struct findings *findings, struct edited *ret_edited, struct lease **ret)
{
        enum membership membership = edit->membership == MEMBERSHIP_NONE ? lease->membership : edit->membership;
        _cleanup_(lease_free_p) struct lease *new = copy_lease(lease, meant->n);
        int r = 0;

        if (!new)
                return -ENOMEM;
        *ret_edited = (struct edited) { .n_removed = remove_members(new, meant, edit->kind) };
        if (edit->kind != LEASE_REMOVE_MEMBERS)
                r = add_members(new, view->subnet, meant, membership, &ret_edited->n_added) ?:
                    lease_check_number(new->n_members, findings);
        if (r < 0)
                return r;
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
        lease_free(old);
}

/* An open lease without members, which is in no list yet. */
static int begin(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                 const struct lease_edit *edit, const struct policy_pool *pool, struct findings *findings, struct lease **ret)
{
        const struct lease_wish wish = { .pool = edit->pool, .members = "", .base = edit->base, .membership = edit->membership };
        int r = lease_make(l, view, by, id, &wish, 0, pool, findings, ret);

        if (r < 0)
                return r;
        (*ret)->is_open = true;
        (*ret)->state = LEASE_ACTIVE;
        lease_set_due(*ret, view->now, view->wall);
        return 0;
}

int leases_edit(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                const struct lease_edit *edit, struct log *log, struct findings *findings)
{
        const struct lease_waiter waiter = { .request = by->request, .edits = true };
        _cleanup_(lease_free_p) struct lease *made = NULL, *new = NULL;
        struct lease *lease = (struct lease *) leases_find(l, id);
        const struct policy_pool *pool = NULL;
        struct meant_list meant = {};
        struct edited edited = {};
        int r = lease_find_pool(view, by, id, edit->pool, findings, &pool) ?: find_meant(view, pool, edit, findings, &meant);

        if (r < 0)
                return r;
        if (!lease && edit->kind == LEASE_REMOVE_MEMBERS)
                return findings_error(findings, FINDING_LEASE_NONE, "pkeyctl lease list shows all", "there is no lease %s", id);
        r = lease ? check_edit(lease, edit, findings) : begin(l, view, by, id, edit, pool, findings, &made);
        r = r ?: change(view, lease ?: made, &meant, edit, findings, &edited, &new);
        r = r ?: lease ? lease_wait(l, new, &waiter, findings) : lease_add(l, new, &waiter, findings);
        if (r < 0)
                return r;
        log_add(log, LOG_EVENT_LEASE_EDITED, NULL, "lease %s, P_Key 0x%04x of pool %s: %u member%s added, %u taken out, by %s", id, new->base,
                pool->name, edited.n_added, text_plural(edited.n_added), edited.n_removed, lease_caller_name(by));
        if (lease && edited.n_added + edited.n_removed > 0)
                lease_changed(l, new);
        if (lease)
                replace(l, lease, new);
        (void) STEAL(new);
        return 0;
}

/* --- members that appear ------------------------------------------------------------------------------------------------ */

static bool has_appeared(const struct lease_member *m, const struct subnet *s)
{
        return m->is_unseen && !m->is_leaving && subnet_find_endport(s, m->port) != SUBNET_NONE;
}

bool leases_have_appeared(const struct leases *l, const struct subnet *s)
{
        for (size_t i = 0; i < l->n; i++)
                for (uint32_t k = 0; l->items[i]->state == LEASE_ACTIVE && k < l->items[i]->n_members; k++)
                        if (has_appeared(&l->items[i]->members[k], s))
                                return true;
        return false;
}

static int admit(struct leases *l, struct lease *lease, struct lease_member *m, const struct subnet *s,
                 const struct port_list *ports, struct log *log)
{
        uint32_t port = subnet_find_endport(s, m->port);
        int r = lease_fill_member(lease, s, port, m);

        if (r < 0)
                return r;
        m->is_unseen = false;
        m->is_changed = true;
        m->left_out = !port_list_holds(ports, port);
        lease_changed(l, lease);
        if (m->left_out)
                log_add(log, LOG_EVENT_LEASE_FAILED, NULL, "lease %s: %s is in the fabric now, and gets no P_Key: it is not among the ports of "
                        "pool %s", lease->id, m->name, lease->wish.pool);
        else
                log_add(log, LOG_EVENT_LEASE_EDITED, NULL, "lease %s: %s is in the fabric now, and gets P_Key 0x%04x", lease->id, m->name,
                        lease->base);
        return 0;
}

int leases_admit(struct leases *l, const struct lease_view *view, struct log *log)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                struct lease *lease = l->items[i];
                const struct policy_pool *pool = policy_find_pool(view->policy, lease->wish.pool);
                struct port_list ports;

                for (uint32_t k = 0; r == 0 && pool && lease->state == LEASE_ACTIVE && k < lease->n_members; k++)
                        if (has_appeared(&lease->members[k], view->subnet))
                                r = (view->selection ? policy_selection_pool(view->selection, pool, &ports) : -ENOMEM) ?:
                                    admit(l, lease, &lease->members[k], view->subnet, &ports, log);
        }
        return r;
}

void lease_drop_leaving(struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                lease->members[i].is_changed = false;
                if (!lease->members[i].is_leaving)
                        lease->members[n++] = lease->members[i];
        }
        lease->n_members = n;
}
