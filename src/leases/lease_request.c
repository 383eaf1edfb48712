/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "leases/leases_internal.h"
#include "policy/policy_select.h"
#include "util/text.h"

/* --- permissions ------------------------------------------------------------------------------------------------------ */

static const char *list_allowed(struct arena *a, const struct policy_pool *pool)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < pool->n_allow; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", pool->allow[i]);
        return text_copy(a, &t) ?: "?";
}

const char *lease_caller_name(const struct lease_caller *by)
{
        return by->origin.user[0] ? by->origin.user : "?";
}

bool leases_allow(const struct policy_pool *pool, const struct lease_caller *by)
{
        for (size_t i = 0; i < by->n_names; i++)
                if (text_is_one_of(by->names[i], pool->allow, pool->n_allow))
                        return true;
        return false;
}

static int check_caller(const struct policy_pool *pool, const struct lease_caller *by, struct findings *findings)
{
        if (leases_allow(pool, by))
                return 0;
        return findings_error(findings, FINDING_LEASE_ACCESS, "an admin can add the user or one of its groups to `allow`, and reload",
                              "user %s (uid %u) may not use pool %s (allowed: %s)", lease_caller_name(by), by->origin.uid, pool->name,
                              list_allowed(findings->arena, pool));
}

static int check_obstacle(const struct lease_view *view, struct findings *findings)
{
        if (!view->policy)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "no policy is in force");
        if (view->obstacle)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "pkeyd cannot change leases now: %s", view->obstacle);
        return 0;
}

/* --- the wish --------------------------------------------------------------------------------------------------------- */

static const char *list_pools(struct arena *a, const struct policy *p)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < p->n_pools; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", p->pools[i].name);
        return p->n_pools > 0 ? text_copy(a, &t) ?: "?" : "none; partitions.yaml in force has no `pools`";
}

static int find_pool(const struct lease_view *view, const char *name, struct findings *findings, const struct policy_pool **ret)
{
        *ret = policy_find_pool(view->policy, name);
        if (*ret)
                return 0;
        return findings_error(findings, FINDING_LEASE_POOL, NULL, "there is no pool '%s' (pools: %s)",
                              arena_printable(findings->arena, name, strlen(name)) ?: "?", list_pools(findings->arena, view->policy));
}

/* As in the policy: "24h", "90m", "45s". In the arena, never NULL. */
static const char *duration_text(struct arena *a, uint64_t seconds)
{
        unsigned unit = seconds % 3600 == 0 ? 3600 : seconds % 60 == 0 ? 60 : 1;

        return arena_printf(a, "%" PRIu64 "%c", seconds / unit, unit == 3600 ? 'h' : unit == 60 ? 'm' : 's') ?: "?";
}

static int check_duration(const struct policy_pool *pool, uint64_t seconds, struct findings *findings)
{
        if (seconds > LEASE_LONGEST && seconds < POLICY_UNLIMITED)
                return findings_error(findings, FINDING_LEASE_DURATION, NULL, "a lease has up to %s, or lasts until it is released",
                                      duration_text(findings->arena, LEASE_LONGEST));
        if (seconds <= pool->longest)
                return 0;
        return findings_error(findings, FINDING_LEASE_DURATION, NULL, "pool %s has leases of up to %s, not longer", pool->name,
                              duration_text(findings->arena, pool->longest));
}

/* How long a lease lasts; 0: until it is released. wanted: seconds, 0: as long as the pool allows. */
static uint64_t duration_of(const struct policy_pool *pool, uint64_t wanted)
{
        uint64_t seconds = wanted ?: pool->longest;

        return seconds == POLICY_UNLIMITED ? 0 : MIN(seconds, LEASE_LONGEST);
}

int lease_check_membership(enum membership membership, struct findings *findings)
{
        if (membership != MEMBERSHIP_BOTH)
                return 0;
        return findings_error(findings, FINDING_LEASE_MEMBERSHIP, NULL, "members of a lease cannot be `both` (accepted: full, limited)");
}

int lease_check_base(const struct lease_view *view, const struct policy_pool *pool, uint16_t base, struct findings *findings)
{
        if (base == 0 || policy_pool_of_base(view->policy, base) == pool)
                return 0;
        return findings_error(findings, FINDING_LEASE_P_KEY, NULL, "P_Key 0x%04x is not in pool %s", base, pool->name);
}

static int check_wish(const struct lease_view *view, const struct policy_pool *pool, const struct lease_wish *wish,
                      struct findings *findings)
{
        int r = check_duration(pool, wish->seconds, findings);

        if (lease_check_membership(wish->membership, findings) < 0)
                r = -EBADMSG;
        if (lease_check_base(view, pool, wish->base, findings) < 0)
                r = -EBADMSG;
        return r;
}

static bool same_wish(const struct lease_wish *x, const struct lease_wish *y)
{
        return strcmp(x->pool, y->pool) == 0 && strcmp(x->members, y->members) == 0 && x->base == y->base &&
               x->membership == y->membership && x->seconds == y->seconds && x->partial == y->partial;
}

/* --- members ---------------------------------------------------------------------------------------------------------- */

DEFINE_COMPARE(compare_members, struct lease_member, ORDER(a->port.v, b->port.v))

void lease_sort_members(struct lease *lease)
{
        SORT(lease->members, lease->n_members, compare_members);
}

int lease_check_ports(const struct lease_view *view, const struct policy_pool *pool, const struct port_list *members,
                      struct findings *findings)
{
        struct port_list all = {};
        const char *first = NULL;
        uint32_t n = 0;
        int r = policy_selection_pool(view->selection, pool, &all);

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < members->n; i++)
                if (!port_list_holds_certainly(&all, members->ports[i]) && n++ == 0)
                        first = subnet_port_label(findings->arena, view->subnet, members->ports[i]);
        if (n == 0)
                return 0;
        return findings_error(findings, FINDING_LEASE_PORTS, NULL, "%s%s not among the ports of pool %s (ports: %s)", first ?: "?",
                              n > 1 ? arena_printf(findings->arena, " and %u other%s are", n - 1, text_plural(n - 1)) ?: "" : " is",
                              pool->name, pool->ports_text);
}

int lease_check_members(const struct lease_view *view, size_t n, size_t max, struct findings *findings)
{
        if (n > max)
                return findings_error(findings, FINDING_LEASE_PORTS, "name a group of the policy instead", "the list of members is longer "
                                      "than %zu bytes", max);
        if (!view->subnet)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "pkeyd has not seen the fabric yet; try again later");
        return view->selection ? 0 : -ENOMEM;
}

int lease_check_number(size_t n, struct findings *findings)
{
        if (n <= LEASE_MAX_MEMBERS)
                return 0;
        return findings_error(findings, FINDING_LEASE_PORTS, NULL, "a lease can have up to %u ports, not %zu", LEASE_MAX_MEMBERS, n);
}

static int find_members(const struct lease_view *view, const struct policy_pool *pool, const char *text, struct findings *findings,
                        struct port_list *ret)
{
        return lease_check_members(view, strlen(text), LEASE_MAX_TEXT, findings) ?:
               policy_selection_exactly(view->selection, text, findings, ret) ?: lease_check_number(ret->n, findings) ?:
               lease_check_ports(view, pool, ret, findings);
}

int lease_fill_member(struct lease *lease, const struct subnet *s, uint32_t port, struct lease_member *m)
{
        const struct subnet_port *p = &s->ports[port];

        m->node = s->nodes[p->node].guid;
        m->port = p->guid;
        m->number = p->number;
        m->name = subnet_port_label(lease->arena, s, port);
        return m->name ? 0 : -ENOMEM;
}

static int copy_members(struct lease *lease, const struct subnet *s, const struct port_list *ports)
{
        lease->members = arena_new_array(lease->arena, struct lease_member, ports->n);
        if (!lease->members)
                return -ENOMEM;
        for (uint32_t i = 0; i < ports->n; i++) {
                struct lease_member *m = &lease->members[lease->n_members++];

                *m = (struct lease_member) { .membership = lease->membership };
                if (lease_fill_member(lease, s, ports->ports[i], m) < 0)
                        return -ENOMEM;
        }
        lease_sort_members(lease);
        return 0;
}

/* --- the P_Key -------------------------------------------------------------------------------------------------------- */

/* Which bases cannot be handed out, and why. */
struct taken {
        const struct leases *leases;
        bool rests[P_KEY_BASE_MASK + 1];
        uint32_t holders[P_KEY_BASE_MASK + 1]; /* only if the knowledge does not count them */
        const struct knowledge *knowledge;
        bool is_counted;
};

static struct taken *find_taken(const struct leases *l, const struct knowledge *k)
{
        struct taken *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->leases = l;
        t->knowledge = k;
        t->is_counted = knowledge_is_counted(k);
        if (!t->is_counted)
                knowledge_list_holders(k, t->holders);
        for (size_t i = 0; i < l->n_rests; i++)
                t->rests[l->rests[i].base] |= !l->rests[i].is_over;
        return t;
}

static bool is_held(const struct taken *t, uint16_t base)
{
        return t->is_counted ? knowledge_may_hold(t->knowledge, base) : t->holders[base] != KNOWLEDGE_NONE;
}

static bool is_free(const struct taken *t, uint16_t base)
{
        return !leases_find_base(t->leases, base) && !t->rests[base] && !is_held(t, base);
}

static void add_number(struct text *t, uint32_t n, const char *what)
{
        if (n > 0)
                text_add(t, "%s%u %s", t->n > 0 ? ", " : "", n, what);
}

int leases_refuse_old(struct findings *findings)
{
        return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL,
                              "pkeyd cannot change leases now: it has not read what the other head node stored");
}

static bool is_old(const struct lease_view *view)
{
        return view->is_old && view->is_old(view->userdata);
}

static int choose_base(const struct taken *t, const struct lease_view *view, const struct policy_pool *pool,
                       struct findings *findings, uint16_t *ret)
{
        uint32_t n_leased = 0, n_resting = 0, n_held = 0;
        _cleanup_text_ struct text numbers = {};

        for (uint32_t i = 0; i < pool->n_ranges; i++)
                for (uint32_t base = pool->ranges[i].first; base <= pool->ranges[i].last; base++) {
                        bool is_leased = leases_find_base(t->leases, (uint16_t) base);

                        if (is_free(t, (uint16_t) base)) {
                                *ret = (uint16_t) base;
                                return 0;
                        }
                        n_leased += is_leased;
                        n_resting += t->rests[base];
                        n_held += !is_leased && !t->rests[base];
                }
        if (is_old(view))
                return leases_refuse_old(findings);
        add_number(&numbers, n_leased, "in leases");
        add_number(&numbers, n_resting, "resting");
        add_number(&numbers, n_held, "that ports may still hold");
        return findings_error(findings, FINDING_LEASE_P_KEY, "a larger range in `pkeys` of the pool, or a shorter `rest`, gives more",
                              "pool %s has no free P_Key: %s", pool->name, numbers.bytes ?: "?");
}

/* Why this base cannot be handed out; NULL: it can. */
static const char *describe_taken(struct arena *a, const struct taken *t, uint16_t base)
{
        const struct lease *other = leases_find_base(t->leases, base);

        if (other)
                return arena_printf(a, "lease %s has it (%s)", other->id, lease_state_to_string(other->state)) ?: "?";
        if (t->rests[base])
                return "it is not leased again yet, because its last lease ended recently";
        return is_held(t, base) ? "a port may still hold it (pkeyctl show ports, pkeyctl forget)" : NULL;
}

static int take_base(const struct leases *l, const struct lease_view *view, const struct policy_pool *pool, uint16_t wanted,
                     struct findings *findings, uint16_t *ret)
{
        _cleanup_free_ struct taken *t = find_taken(l, view->knowledge);
        const char *why;

        if (!t)
                return -ENOMEM;
        if (wanted == 0)
                return choose_base(t, view, pool, findings, ret);
        why = describe_taken(findings->arena, t, wanted);
        if (why && is_old(view))
                return leases_refuse_old(findings);
        if (why)
                return findings_error(findings, FINDING_LEASE_P_KEY, NULL, "P_Key 0x%04x cannot be handed out now: %s", wanted, why);
        *ret = wanted;
        return 0;
}

/* --- create ----------------------------------------------------------------------------------------------------------- */

static int check_id(struct findings *findings, const char *id)
{
        const char *problem = lease_id_problem(id);

        if (!problem)
                return 0;
        return findings_error(findings, FINDING_LEASE_ID, NULL, "'%s' is not the ID of a lease: it %s (accepted: up to %d letters, digits and "
                              "._:@+-)", arena_printable(findings->arena, id, strlen(id)) ?: "?", problem, LEASE_ID_MAX);
}

/* pkeyd-rest finds its leases by these IDs: another caller could take one, also by another pool. */
static int check_reserved(const struct lease_caller *by, const char *id, struct findings *findings)
{
        static const char reserved[] = "rest:"; /* the names of its clients begin so, too */
        size_t n = strlen(reserved);

        if (strncmp(id, reserved, n) != 0 || strncmp(by->origin.user, reserved, n) == 0)
                return 0;
        return findings_error(findings, FINDING_LEASE_ID, "choose another ID", "only clients of the REST API make leases whose ID begins "
                              "with %s", reserved);
}

static int copy_wish(struct lease *lease, const char *id, const struct lease_wish *wish)
{
        lease->wish = *wish;
        lease->id = arena_strdup(lease->arena, id);
        lease->wish.pool = arena_strdup(lease->arena, wish->pool);
        lease->wish.members = arena_strdup(lease->arena, wish->members);
        return lease->id && lease->wish.pool && lease->wish.members ? 0 : -ENOMEM;
}

static void set_times(struct lease *lease, const struct policy_pool *pool, const struct lease_view *view, uint64_t timeout)
{
        lease->created = lease->updated = view->wall;
        lease->timeout = timeout;
        lease->confirm_by = view->wall + timeout;
        lease->rest = MIN(pool->rest, LEASE_LONGEST);
        lease->seconds = duration_of(pool, lease->wish.seconds);
        lease->ends = lease->seconds > 0 ? view->wall + lease->seconds : 0;
        lease_set_due(lease, view->now, view->wall);
}

struct lease_waiter lease_waiter_of(const struct lease_view *view, const struct lease_caller *by, enum lease_request_kind kind,
                                    uint64_t timeout)
{
        return (struct lease_waiter) {
                .request = by->request, .kind = kind, .until = view->now + (timeout + LEASE_STORE_SPARE) * USEC_PER_SEC,
        };
}

int lease_check_releasing(const struct lease *lease, bool makes, struct findings *findings)
{
        if (lease->state != LEASE_RELEASING)
                return 0;
        return findings_error(findings, makes ? FINDING_LEASE_EXISTS : FINDING_LEASE_NONE,
                              makes ? "try again when it has ended, or choose another ID" : NULL,
                              "lease %s is being released (%s)", lease->id, lease->why);
}

/* The lease exists: its caller may have lost the answer, and asks again. */
static int join(struct leases *l, struct lease *lease, const struct lease_waiter *waiter, const struct lease_wish *wish,
                struct findings *findings)
{
        if (!same_wish(&lease->wish, wish))
                return findings_error(findings, FINDING_LEASE_EXISTS, LEASE_EXISTS_HINT,
                                      "lease %s already exists with other arguments", lease->id);
        return lease_check_releasing(lease, true, findings) ?: lease_wait(l, lease, waiter, findings);
}

int lease_make(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
               const struct lease_wish *wish, uint64_t timeout, const struct policy_pool *pool, struct findings *findings,
               struct lease **ret)
{
        _cleanup_(lease_free_p) struct lease *lease = lease_new();
        int r = lease ? copy_wish(lease, id, wish) : -ENOMEM;

        r = r ?: check_reserved(by, id, findings) ?: check_wish(view, pool, wish, findings) ?:
            take_base(l, view, pool, wish->base, findings, &lease->base);
        if (r < 0)
                return r;
        lease->membership = wish->membership == MEMBERSHIP_NONE ? pool->membership : wish->membership;
        lease->owner = by->origin;
        set_times(lease, pool, view, timeout);
        *ret = STEAL(lease);
        return 0;
}

int lease_add(struct leases *l, struct lease *lease, const struct lease_waiter *waiter, struct findings *findings)
{
        int r;

        if (l->n >= LEASE_MAX)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "there are already %d leases", LEASE_MAX);
        r = lease_wait(l, lease, waiter, findings);
        if (r == 0 && leases_insert(l, lease) < 0) {
                l->n_waiting--;
                r = -ENOMEM;
        }
        if (r < 0)
                return r;
        lease_changed(l, lease);
        return 0;
}

int lease_find_pool(const struct lease_view *view, const struct lease_caller *by, const char *id, const char *name,
                    struct findings *findings, const struct policy_pool **ret)
{
        return check_id(findings, id) ?: check_obstacle(view, findings) ?: find_pool(view, name, findings, ret) ?:
               check_caller(*ret, by, findings);
}

int leases_create(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                  const struct lease_wish *wish, uint64_t timeout, struct log *log, struct findings *findings)
{
        const struct lease_waiter waiter = lease_waiter_of(view, by, LEASE_CREATE,
                                                           MIN(timeout, (uint64_t) LEASE_TIMEOUT_MAX) ?: LEASE_TIMEOUT);
        _cleanup_(lease_free_p) struct lease *made = NULL;
        struct lease *lease = (struct lease *) leases_find(l, id);
        const struct policy_pool *pool = NULL;
        struct port_list members = {};
        int r = lease_find_pool(view, by, id, wish->pool, findings, &pool);

        if (r < 0)
                return r;
        if (lease)
                return join(l, lease, &waiter, wish, findings);
        if (timeout > LEASE_TIMEOUT_MAX)
                return findings_error(findings, FINDING_LEASE_DURATION, NULL, "the timeout must be at most %d s", LEASE_TIMEOUT_MAX);
        r = find_members(view, pool, wish->members, findings, &members) ?:
            lease_make(l, view, by, id, wish, timeout ?: LEASE_TIMEOUT, pool, findings, &made) ?:
            copy_members(made, view->subnet, &members) ?:
            lease_add(l, made, &waiter, findings);
        if (r < 0)
                return r;
        lease = STEAL(made);
        log_add(log, LOG_EVENT_LEASE_CREATED, NULL, "lease %s of %s: P_Key 0x%04x of pool %s for %u port%s", lease->id,
                lease_caller_name(by), lease->base, pool->name, lease->n_members, text_plural(lease->n_members));
        return 0;
}

/* --- renew, release --------------------------------------------------------------------------------------------------- */

/* The lease, if the caller may use its pool. */
static int find_own(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                    struct findings *findings, struct lease **ret, const struct policy_pool **ret_pool)
{
        int r = check_id(findings, id);

        if (r < 0)
                return r;
        *ret = (struct lease *) leases_find(l, id);
        if (!*ret)
                return findings_error(findings, FINDING_LEASE_NONE, "pkeyctl lease list shows all", "there is no lease %s", id);
        if (!view->policy)
                return check_obstacle(view, findings);
        r = find_pool(view, (*ret)->wish.pool, findings, ret_pool);
        return r ?: check_caller(*ret_pool, by, findings);
}

int leases_renew(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id, uint64_t seconds,
                 struct log *log, struct findings *findings)
{
        const struct lease_waiter waiter = lease_waiter_of(view, by, LEASE_RENEW, LEASE_TIMEOUT);
        const struct policy_pool *pool = NULL;
        struct lease *lease = NULL;
        int r = find_own(l, view, by, id, findings, &lease, &pool) ?: check_duration(pool, seconds, findings) ?:
                lease_check_releasing(lease, false, findings) ?: lease_wait(l, lease, &waiter, findings);

        if (r < 0)
                return r;
        lease->seconds = duration_of(pool, seconds);
        lease->ends = lease->seconds > 0 ? view->wall + lease->seconds : 0;
        lease_unstored(lease);
        lease_set_ends_due(lease, view->now, view->wall);
        if (lease->seconds > 0)
                log_add(log, LOG_EVENT_LEASE_RENEWED, NULL, "lease %s is renewed by %s, for %" PRIu64 " s", id, lease_caller_name(by),
                        lease->seconds);
        else
                log_add(log, LOG_EVENT_LEASE_RENEWED, NULL, "lease %s is renewed by %s, until it is released", id,
                        lease_caller_name(by));
        return 0;
}

int leases_release(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                   struct log *log, struct findings *findings)
{
        const struct lease_waiter waiter = lease_waiter_of(view, by, LEASE_RELEASE, LEASE_TIMEOUT);
        const struct policy_pool *pool = NULL;
        struct lease *lease = NULL;
        char why[96];
        int r = find_own(l, view, by, id, findings, &lease, &pool) ?: lease_wait(l, lease, &waiter, findings);

        if (r < 0)
                return r;
        if (lease->state == LEASE_RELEASING)
                return 0;
        (void) snprintf(why, sizeof(why), "released by %s", lease_caller_name(by));
        log_add(log, LOG_EVENT_LEASE_RELEASED, NULL, "lease %s: %s; P_Key 0x%04x is revoked", id, why, lease->base);
        lease_begin_release(l, lease, view->now, why);
        return 0;
}
