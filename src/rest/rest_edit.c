/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rest/rest_edit.h"

#include <errno.h>
#include <string.h>

#include "policy/selector.h"
#include "rest/rest_internal.h"
#include "rest/rest_view.h"

#define MAX_IN_GROUP SELECTOR_MAX_ELEMENTS /* GUIDs */

#define N_KINDS 4 /* of members: two memberships, and index 0 or not */

static unsigned kind_of(const struct rest_member *m)
{
        return (m->membership == MEMBERSHIP_FULL ? 1u : 0u) + (m->index0 ? 2u : 0u);
}

/* Takes the text over into the arena. */
static int add_group(struct arena *a, struct rest_edit *e, unsigned kind, struct text *t)
{
        const char *selectors = text_copy(a, t);

        if (!selectors)
                return -ENOMEM;
        t->n = 0;
        e->groups[e->n_groups++] = (struct rest_group) { selectors, kind & 1 ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED, kind & 2 };
        return 0;
}

static int add_groups_of_kind(struct arena *a, const struct rest_change *c, unsigned kind, struct rest_edit *e)
{
        _cleanup_text_ struct text t = {};
        uint32_t n = 0;
        int r = 0;

        for (uint32_t i = 0; i < c->n_members && r == 0; i++) {
                if (kind_of(&c->members[i]) != kind)
                        continue;
                text_add(&t, "%s0x%" PRIx64, n % MAX_IN_GROUP > 0 ? "," : "", c->members[i].guid.v);
                if (++n % MAX_IN_GROUP == 0)
                        r = add_group(a, e, kind, &t);
        }
        return r < 0 || n % MAX_IN_GROUP == 0 ? r : add_group(a, e, kind, &t);
}

static int add_groups(struct arena *a, const struct rest_change *c, struct rest_edit *e)
{
        int r = 0;

        e->groups = arena_new_array(a, struct rest_group, N_KINDS + c->n_members / MAX_IN_GROUP);
        if (!e->groups)
                return -ENOMEM;
        for (unsigned kind = 0; kind < N_KINDS && r == 0; kind++)
                r = add_groups_of_kind(a, c, kind, e);
        return r;
}

/* The QoS of a new partition. What its lease has from a former partition, which clients do not see any more, does not count. */
static struct rest_qos new_qos(struct rest_qos wanted, const struct rest_partition *former)
{
        if (wanted.mtu_limit > 0 || !former || former->qos.mtu_limit == 0)
                return wanted;
        return (struct rest_qos) { .mtu_limit = REST_DEFAULT_MTU_LIMIT, .rate_limit = REST_DEFAULT_RATE_LIMIT };
}

/* p: the partition that is there, or the hidden rest of a former one; NULL: neither. */
static void set_options(const struct rest_change *c, const struct rest_partition *p, struct rest_edit *e)
{
        bool is_new = !p || p->is_hidden;

        switch (c->kind) {
        case REST_ADD:
        case REST_REPLACE:
        case REST_CREATE:
                e->what = c->kind == REST_REPLACE ? "set" : "add";
                e->has_ip_over_ib = is_new || c->has_ip_over_ib;
                e->ip_over_ib = c->ip_over_ib;
                e->has_keep = is_new || c->kind == REST_CREATE;
                e->keep = c->kind == REST_CREATE;
                if (c->kind == REST_CREATE)
                        e->qos = c->qos;
                if (is_new)
                        e->qos = new_qos(e->qos, p);
                break;
        case REST_REMOVE:
                e->what = "remove";
                break;
        case REST_SET_QOS:
                e->what = "add";
                e->must_exist = true;
                e->qos = c->qos;
                break;
        case REST_DELETE:
                break;
        }
}

int rest_edit_make(struct arena *a, const struct rest_change *change, const struct rest_view *view, struct rest_edit *ret)
{
        const struct rest_partition *p = rest_find_partition(view, change->base);
        struct rest_edit e = { .base = change->base };
        char id[REST_LEASE_ID_SIZE];

        rest_lease_id(change->base, id);
        e.id = p ? p->lease : arena_strdup(a, id);
        if (!e.id || add_groups(a, change, &e) < 0)
                return -ENOMEM;
        set_options(change, p, &e);
        *ret = e;
        return 0;
}

bool rest_edit_lacks_partition(const struct rest_change *change, const struct rest_view *view)
{
        const struct rest_partition *p = rest_find_partition(view, change->base);

        if (change->kind == REST_SET_QOS)
                return p && p->is_hidden;
        return change->kind == REST_DELETE && (!p || p->is_hidden);
}

const char *rest_edit_translate(struct arena *a, const char *text)
{
        static const char lease[] = "lease rest:";
        _cleanup_text_ struct text t = {};

        for (const char *at; (at = strstr(text, lease)); text = at + strlen(lease))
                text_add(&t, "%.*spartition ", (int) (at - text), text);
        text_add(&t, "%s", text);
        return text_copy(a, &t);
}

enum rest_outcome rest_edit_outcome(const struct rest_change *change, const char *outcome, const char *code)
{
        static const char *const stored[] = { "edited", "released", "releasing" };

        if (text_is_one_of(outcome, stored, ELEMENTS(stored)))
                return REST_STORED;
        if (strcmp(outcome, "refused") != 0 || !code)
                return REST_UNAVAILABLE;
        if (strcmp(code, "lease.none") == 0)
                return change->kind == REST_REMOVE ? REST_STORED : REST_NOT_FOUND;
        if (strcmp(code, "lease.exists") == 0 || strcmp(code, "lease.index0-taken") == 0)
                return REST_CONFLICT;
        return strcmp(code, "lease.not-now") == 0 ? REST_UNAVAILABLE : REST_REFUSED;
}
