/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients that ask the pkeyds for leases, in some histories, and what they may rely on. The books here are kept from requests,
 * answers and the clock; what pkeyd reports (control_status.leases) is only compared with them, and the entries are checked in
 * the tables of the virtual hardware.
 *
 *     grant       a P_Key is handed out only if no port holds it, and no other lease has it; when the answer says granted, each
 *                 member has the entry at the index of the answer, and no other port can talk to one by it
 *     members     are the ports that the names mean, with the membership and the P_Key of the request
 *     end         a lease that was granted ends only when it is released, its time is over, or a reload strands it; and then it
 *                 does. When it has ended, no port holds its P_Key, which then rests
 *     records     the leases of a pkeyd that starts are those that were granted and have not ended
 *     answers     each request that was not refused has one answer
 *
 * The promises (promises.c) count a lease as a partition from the plan that has it to the plan that does not. What excuses pkeyd
 * there excuses it here.
 */

#include <stdio.h>
#include <string.h>

#include "sim.h"

#define SLACK     (2 * USEC_PER_SEC)   /* times in records are seconds */
#define IMPATIENT (300 * USEC_PER_SEC) /* by then everything was answered */

static const char *const ids[SIM_LEASE_IDS] = { "a", "b", "slurm:c:7:0", "d", "e" };

/* Of these IDs leases are open. */
static bool is_open_id(unsigned id)
{
        return id >= SIM_LEASE_IDS - 2;
}

const char *clients_id(unsigned id)
{
        return ids[id];
}

static struct sim_lease *find_book(struct process *p, const char *id)
{
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++)
                if (strcmp(ids[i], id) == 0)
                        return &p->head->books.leases[i];
        return NULL;
}

/* --- a request ------------------------------------------------------------------------------------------------------- */

static struct rule random_member(struct sim *s)
{
        struct prng *r = &s->lease_rng;
        unsigned node, kind = prng_below(r, 40);

        do
                node = prng_below(r, s->n_nodes);
        while (s->f.nodes[node].type != NODE_CA);
        if (kind == 0)
                return (struct rule) { .kind = RULE_GROUP, .x = prng_below(r, 2) };
        return (struct rule) {
                .kind = kind < 8 ? RULE_DEVICE : RULE_HOST, .x = s->host_of[node], .y = kind < 8 ? s->device_of[node] : 0,
        };
}

static struct sim_wish random_wish(struct sim *s)
{
        static const uint64_t seconds[] = { 0, 0, 0, 0, 5, 15, 40, POLICY_UNLIMITED };
        struct prng *r = &s->lease_rng;
        struct sim_wish w = {
                .pool = prng_below(r, 10) < 9 ? prng_below(r, s->intents[0].n_pools) : prng_below(r, SIM_MAX_POOLS + 1),
                .n_members = prng_between(r, 1, SIM_WISHED_HOSTS),
                .seconds = seconds[prng_below(r, ELEMENTS(seconds))], .partial = prng_permille(r, 300),
        };

        for (unsigned i = 0; i < w.n_members; i++)
                w.members[i] = random_member(s);
        if (prng_permille(r, 100))
                w.base = (uint16_t) (0x0f01 + prng_below(r, 4));
        if (prng_permille(r, 300))
                w.membership = prng_permille(r, 500) ? MEMBERSHIP_LIMITED : MEMBERSHIP_FULL;
        return w;
}

static void print_members(const struct sim_wish *w, char *ret, size_t size)
{
        size_t n = 0;

        for (unsigned i = 0; i < w->n_members && n < size; i++) {
                const struct rule *m = &w->members[i];
                const char *comma = i > 0 ? ", " : "";

                if (m->kind == RULE_GROUP)
                        n += (size_t) snprintf(ret + n, size - n, "%s%s", comma, m->x ? "odd" : "even");
                else if (m->kind == RULE_DEVICE)
                        n += (size_t) snprintf(ret + n, size - n, "%snode%03u/mlx5_%u", comma, m->x, m->y);
                else
                        n += (size_t) snprintf(ret + n, size - n, "%snode%03u", comma, m->x);
        }
}

static void choose_edit(struct sim *s, struct sim_lease_request *q)
{
        q->kind = LEASE_EDIT;
        q->edit = (enum lease_edit_kind) prng_below(&s->lease_rng, 3);
        q->wish = random_wish(s);
        q->wish.seconds = 0;
        q->wish.membership = MEMBERSHIP_NONE;
        q->wish.index0 = prng_permille(&s->lease_rng, 400);
}

/* Often the same again, as a client does that has no answer. */
static void choose_request(struct sim *s, const struct sim_lease *book, struct sim_lease_request *q)
{
        static const uint64_t seconds[] = { 0, 5, 20, POLICY_UNLIMITED };
        struct prng *r = &s->lease_rng;
        unsigned kind = prng_below(r, 10);
        bool is_there = book->state == SIM_LEASE_ASKED || book->state == SIM_LEASE_GIVEN;

        q->kind = kind < (is_there ? 4 : 9) ? LEASE_CREATE : kind < 7 ? LEASE_RENEW : LEASE_RELEASE;
        q->wish = book->wish.n_members > 0 && prng_permille(r, is_there ? 800 : 500) ? book->wish : random_wish(s);
        q->seconds = seconds[prng_below(r, ELEMENTS(seconds))];
        q->is_allowed = prng_permille(r, 960);
        q->at = s->now;
        if (is_open_id(q->id) && q->kind == LEASE_CREATE)
                choose_edit(s, q);
}

struct lease_request clients_request(const struct sim_lease_request *q, char members[CLIENTS_MEMBERS], char pool[8])
{
        static const char *const root[] = { "root" }, *const others[] = { "mallory", "users" };

        print_members(&q->wish, members, CLIENTS_MEMBERS);
        (void) snprintf(pool, 8, "pool%u", q->wish.pool % 10);
        return (struct lease_request) {
                .kind = q->kind, .id = ids[q->id], .seconds = q->seconds, .timeout = q->timeout,
                .wish = {
                        .pool = pool, .members = members, .base = q->wish.base, .membership = q->wish.membership,
                        .seconds = q->wish.seconds, .partial = q->wish.partial,
                },
                .edit = {
                        .kind = q->edit, .pool = pool, .base = q->wish.base, .n_groups = 1,
                        .groups = { { .members = members, .index0 = q->wish.index0 } },
                },
                .by = {
                        .origin = { .kind = ORIGIN_BUS }, .names = q->is_allowed ? root : others, .n_names = q->is_allowed ? 1 : 2,
                        .request = q->number,
                },
        };
}

static struct sim_lease_request *find_request(struct process *p, uint64_t number)
{
        for (unsigned i = 0; i < p->n_lease_requests; i++)
                if (p->lease_requests[i].number == number)
                        return &p->lease_requests[i];
        return NULL;
}

static const struct intent *policy_in_force(const struct sim *s, const struct process *p)
{
        const struct generation *g = control_get_status(p->control)->in_force;

        return g ? &s->intents[intent_of_text(g->policy_bytes)] : NULL;
}

/* When a lease ends that has so many seconds from now on. */
static void set_ends(const struct sim *s, uint64_t seconds, usec_t *ret_first, usec_t *ret_last)
{
        *ret_first = *ret_last = USEC_INFINITY;
        if (seconds == 0 || seconds == POLICY_UNLIMITED)
                return;
        *ret_first = s->now + seconds * USEC_PER_SEC - MIN(SLACK, seconds * USEC_PER_SEC);
        *ret_last = s->now + seconds * USEC_PER_SEC + SLACK;
}

/* A renewal that is not answered may have been carried out or not. */
static void renew_perhaps(struct sim_lease *book, const struct sim_lease_request *q)
{
        book->ends_first = MIN(book->ends_first, q->ends_first);
        book->ends_last = MAX(book->ends_last, q->ends_last);
}

/* Clients that have no answer, because pkeyd was killed, ask again soon. */
static void choose_again(struct sim *s, const struct sim_lease *book, struct sim_lease_request *q)
{
        q->kind = LEASE_CREATE;
        q->wish = book->wish.n_members > 0 ? book->wish : random_wish(s);
        q->is_allowed = true;
        q->at = s->now;
        if (is_open_id(q->id))
                choose_edit(s, q);
}

/* Most clients ask the one that writes, unless the other one passes requests on. */
static unsigned choose_head(const struct sim *s, const struct event *e)
{
        unsigned x = e->x;

        if (e->y >= CLIENTS_AGAIN)
                return x % s->n_heads;
        if (sim_passes_on(s))
                return x % s->n_heads;
        for (unsigned i = 0; x % 5 != 0 && i < s->n_heads; i++)
                if (s->heads[i].place.node == s->f.sm.node)
                        return i;
        return x / 5 % s->n_heads;
}

/* Gives a request to p, and to its books. */
static void ask(struct sim *s, struct process *p, struct sim_lease_request *q, const struct lease_request *request)
{
        struct sim_lease *book = &p->head->books.leases[q->id];
        const struct intent_pool *pool = NULL;
        uint64_t life = p->life;

        if (policy_in_force(s, p))
                pool = intent_pool_of(policy_in_force(s, p), book->is.base);
        set_ends(s, q->seconds > 0 ? q->seconds : pool ? pool->longest : 0, &q->ends_first, &q->ends_last);
        q->is_of_guest = control_get_status(p->control)->guest;
        p->lease_requests[p->n_lease_requests++] = *q;
        p->asking = *q;
        process_lease(s, p, request);
        if (q->kind == LEASE_RENEW && (!p->control || p->life != life || find_request(p, q->number)))
                renew_perhaps(book, q);
        if (q->is_of_guest && p->life == life && find_request(p, q->number))
                sim_fail(s, "process %u stands by, and does not answer at once", p->number);
        if (p->life == life)
                p->asking.number = 0;
}

void clients_take(struct sim *s, struct process *p, const struct sim_lease_request *q, const struct lease_request *request)
{
        struct sim_lease_request asked = *q;

        sim_trace(s, "client: process %u takes request %" PRIu64, p->number, request->by.request & ~SIM_FOREIGN);
        ask(s, p, &asked, request);
}

/* The other head node, or the same one, is asked the same soon; or who has an answer by then asks in vain. */
static void choose(struct sim *s, const struct head *h, unsigned what, struct sim_lease_request *q)
{
        unsigned id = q->id;

        if (what >= CLIENTS_SAME)
                *q = s->last_asked[id];
        else
                (what < CLIENTS_AGAIN ? choose_request : choose_again)(s, &h->books.leases[id], q);
        q->id = id;
        q->at = s->now;
        s->last_asked[id] = *q;
        if (sim_passes_on(s) && prng_permille(&s->mail_rng, 250))
                world_ask_same(s, prng_below(&s->mail_rng, s->n_heads), id);
}

void clients_ask(struct sim *s, const struct event *e)
{
        static const char *const kinds[] = { "create", "renew", "release", "edit" };
        static const uint64_t timeouts[] = { 0, 1, 3, 10, 30 };
        struct process *p = &s->processes[choose_head(s, e)];
        const struct head *h = s->ledger.by ? s->ledger.by : &s->heads[p->number];
        struct sim_lease_request q = { .id = e->y % CLIENTS_AGAIN % SIM_LEASE_IDS };
        char members[CLIENTS_MEMBERS], pool[8];
        struct lease_request request;

        choose(s, h, e->y, &q);
        if (!p->control || control_get_status(p->control)->stopping || p->n_lease_requests == SIM_MAX_REQUESTS)
                return;
        s->counters.lease_requests++;
        q.number = ++s->last_lease_request;
        q.timeout = timeouts[prng_below(&s->lease_rng, ELEMENTS(timeouts))];
        request = clients_request(&q, members, pool);
        sim_trace(s, "client: request %" PRIu64 " of process %u: %s %s (pool%u, %s)", q.number, p->number,
                  kinds[q.kind], ids[q.id], q.wish.pool, members);
        ask(s, p, &q, &request);
}

/* --- the hardware ---------------------------------------------------------------------------------------------------- */

unsigned clients_endport(const struct sim *s, struct guid port)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->f.nodes[s->endports[i].node].ports[s->endports[i].port].guid.v == port.v)
                        return i;
        return UINT32_MAX;
}

static bool holds(const struct sim *s, unsigned endport, unsigned b)
{
        const struct reach *r = &s->reach[endport][b];

        return r->sends[0] || r->sends[1] || r->receives[0] || r->receives[1];
}

/* The switch that it is connected to drops what it sends, or what is sent to it. */
static bool is_blocked(const struct sim *s, unsigned endport, unsigned b)
{
        const struct reach *r = &s->reach[endport][b];

        return r->own && !(r->sends[0] && r->sends[1] && r->receives[0] && r->receives[1]);
}

/* By the settings that just came into force, it was absent for so long that it does not count. */
static bool has_expired(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct generation *g = control_get_status(p->control)->in_force;
        const struct seen_port *seen = &p->observer.ports[endport];

        return g && seen->is_missing && s->now - seen->at >= s->intents[intent_of_text(g->settings_bytes)].settings.absent_hold;
}

/* No port holds this base, but those that pkeyd cannot know of. */
static void check_free(struct sim *s, const struct process *p, uint16_t base, const char *id, const char *when)
{
        unsigned b = sim_base_number(base);
        struct basis basis;

        if (sim_passes_on(s) && head_is_outdated(p))
                return; /* it has not noticed that the other head node writes, and cannot store this */
        observer_basis(s, p, &basis);
        for (unsigned i = 0; i < s->n_endports; i++)
                if (holds(s, i, b) && !promises_excuse_holder(s, &basis, i, b) && !has_expired(s, p, i)) {
                        struct fabsim_place leaf = {};

                        (void) observer_leaf(s, i, &leaf);
                        sim_trace(s, "own level %u, sends %u/%u, receives %u/%u, beside node %u port %u", s->reach[i][b].own,
                                  s->reach[i][b].sends[0], s->reach[i][b].sends[1], s->reach[i][b].receives[0],
                                  s->reach[i][b].receives[1], leaf.node, leaf.port);
                        sim_fail(s, "process %u, lease %s: 0x%04x is %s, and node %u port %u holds it", p->number, id, base, when,
                                 s->endports[i].node, s->endports[i].port);
                }
}

/* Did a writer that is not this pkeyd change the base in the table of this port, or of its leaf port, since then? */
static bool was_disturbed(struct sim *s, const struct process *p, unsigned endport, unsigned b, usec_t since)
{
        struct fabsim_place leaf;
        const struct table_record *tables[] = {
                observer_table(s, s->endports[endport]), observer_leaf(s, endport, &leaf) ? observer_table(s, leaf) : NULL,
        };

        for (unsigned i = 0; i < ELEMENTS(tables); i++)
                for (unsigned w = 0; tables[i] && w <= SIM_ELSE; w++) {
                        if (w != p->number && tables[i]->filter_changed_at[w] >= since)
                                return true;
                        for (unsigned block = 0; w != p->number && block < SIM_BLOCKS; block++)
                                if (tables[i]->changed_at[w][block][b] >= since)
                                        return true;
                }
        return s->moved_at[endport] >= since || s->lid_moved_at[endport] >= since;
}

/* --- a lease --------------------------------------------------------------------------------------------------------- */

static struct leased leased_of(const struct sim *s, const struct lease *lease)
{
        struct leased ret = { .base = lease->base, .level = lease->membership == MEMBERSHIP_FULL ? 2 : 1 };

        for (uint32_t i = 0; i < lease->n_members; i++) {
                unsigned endport = clients_endport(s, lease->members[i].port);

                if (endport == UINT32_MAX || !lease_member_is_in_force(&lease->members[i]))
                        continue;
                ret.members |= UINT64_C(1) << endport;
                ret.index0 |= (uint64_t) lease->members[i].index0 << endport;
        }
        return ret;
}

static bool is_meant(const struct sim_wish *w, const struct census_entry *e)
{
        for (unsigned i = 0; i < w->n_members; i++)
                if (intent_names(&w->members[i], e))
                        return true;
        return false;
}

static void check_members(struct sim *s, const struct process *p, const struct sim_wish *w, const struct leased *is, const char *id)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                const struct census_entry *e = &p->adopted.entries[i];
                bool is_certain = e->is_seen && !e->is_ambiguous && s->moved_at[i] < p->adopted.began;

                if (is_certain && is_meant(w, e) != (is->members >> i & 1))
                        sim_fail(s, "process %u, lease %s: node %u port %u is %s", p->number, id, s->endports[i].node, s->endports[i].port,
                                 is_meant(w, e) ? "meant, and no member" : "a member, and not meant");
        }
}

static void check_key(struct sim *s, struct process *p, const struct sim_wish *w, const struct leased *is, const char *id)
{
        const struct intent *it = policy_in_force(s, p);
        const struct intent_pool *pool = it ? intent_pool_of(it, is->base) : NULL;
        bool is_limited = w->membership == MEMBERSHIP_NONE ? pool && pool->is_limited : w->membership == MEMBERSHIP_LIMITED;

        if (!pool || pool != &it->pools[w->pool] || (w->base != 0 && w->base != is->base))
                sim_fail(s, "process %u, lease %s: 0x%04x is not what was asked for", p->number, id, is->base);
        if (is->level != (is_limited ? 1 : 2))
                sim_fail(s, "process %u, lease %s: another membership than was asked for", p->number, id);
        if (s->now < p->head->books.rests_until[sim_base_number(is->base)])
                sim_fail(s, "process %u, lease %s: 0x%04x rests", p->number, id, is->base);
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++) {
                const struct sim_lease *other = &p->head->books.leases[i];

                if (strcmp(ids[i], id) != 0 && other->state != SIM_LEASE_ABSENT && !other->is_ended && other->is.base == is->base)
                        sim_fail(s, "process %u: leases %s and %s have 0x%04x", p->number, id, ids[i], is->base);
        }
}

/* A new lease: pkeyd did not refuse the request that it is being asked. */
static void begin(struct sim *s, struct process *p, struct sim_lease *book, const struct lease *lease)
{
        const struct sim_lease_request *q = &p->asking;
        const struct control_status *status = control_get_status(p->control);
        const struct intent *it = policy_in_force(s, p);
        const struct intent_pool *pool;
        bool was_another = book->state != SIM_LEASE_ABSENT;

        if (q->number == 0 || (q->kind != LEASE_CREATE && q->kind != LEASE_EDIT) || strcmp(ids[q->id], lease->id) != 0 ||
            !q->is_allowed || status->standby || !it) {
                sim_fail(s, "process %u has a lease %s that it may not make", p->number, lease->id);
                return;
        }
        *book = (struct sim_lease) {
                .state = SIM_LEASE_ASKED, .was_another = was_another, .wish = q->wish, .is = leased_of(s, lease),
                .asked_at = s->now,
        };
        pool = intent_pool_of(it, lease->base);
        set_ends(s, q->wish.seconds > 0 ? q->wish.seconds : pool ? pool->longest : 0, &book->ends_first, &book->ends_last);
        book->rest = pool ? pool->rest : 0;
        if (q->kind == LEASE_EDIT)
                book->is.members = 0; /* see_edit() */
        else
                check_members(s, p, &book->wish, &book->is, lease->id);
        check_key(s, p, &book->wish, &book->is, lease->id);
        check_free(s, p, lease->base, lease->id, "handed out");
}

/* The members after an edit, of ports of which it is certain whether they are meant: those are set in *ret_certain. */
static uint64_t members_after(const struct sim *s, const struct process *p, const struct sim_lease_request *q, uint64_t before,
                              uint64_t *ret_certain)
{
        uint64_t after = 0;

        *ret_certain = 0;
        for (unsigned i = 0; i < s->n_endports; i++) {
                const struct census_entry *e = &p->adopted.entries[i];
                bool meant = is_meant(&q->wish, e), was = before >> i & 1;
                bool is = q->edit == LEASE_ADD_MEMBERS ? was || meant : q->edit == LEASE_REMOVE_MEMBERS ? was && !meant : meant;

                after |= (uint64_t) is << i;
                *ret_certain |= (uint64_t) (e->is_seen && !e->is_ambiguous && s->moved_at[i] < p->adopted.began) << i;
        }
        return after;
}

/* An open lease while it is edited: its members are as before (the request is refused) or as the request means. */
static void see_edit(struct sim *s, struct process *p, struct sim_lease *book, const struct leased *is, const char *id)
{
        struct sim_lease_request *q = find_request(p, p->asking.number);
        uint64_t certain, after = members_after(s, p, &p->asking, book->is.members, &certain);
        bool is_done = ((is->members ^ after) & certain) == 0;

        if (!is_done && is->members != book->is.members)
                sim_fail(s, "process %u, lease %s: an edit gives other members than it means", p->number, id);
        if (q)
                q->was_applied |= is_done;
        book->was_edited |= is->members != book->is.members;
        book->is.members = is->members;
}

/* A reload or an undo may have put it out of force. */
static bool may_be_stranded(const struct process *p)
{
        const struct generation *g = control_get_status(p->control)->in_force;

        return g && (g->facts.releases_stranded || g->facts.undoes > 0);
}

static bool is_in_force(const struct lease *lease)
{
        return lease && (lease->state == LEASE_GRANTING || lease->state == LEASE_ACTIVE);
}

/* It is not in force any more. */
static void leave(struct sim *s, struct process *p, struct sim_lease *book, unsigned id)
{
        bool is_asked = p->asking.number > 0 && p->asking.kind == LEASE_RELEASE && p->asking.id == id && p->asking.is_allowed;

        if (book->state == SIM_LEASE_GIVEN && !is_asked && s->now < book->ends_first && !may_be_stranded(p))
                sim_fail(s, "process %u: lease %s ends without a reason", p->number, ids[id]);
        s->counters.leases_expired += book->state == SIM_LEASE_GIVEN && !is_asked && s->now >= book->ends_first;
        book->state = SIM_LEASE_LEAVING;
}

/* No port may hold its P_Key any more, if any had it by this lease. */
static void end(struct sim *s, struct process *p, struct sim_lease *book, unsigned id)
{
        if (book->is_ended)
                return;
        book->is_ended = true;
        if (book->was_planned)
                check_free(s, p, book->is.base, ids[id], "taken back");
        if (book->was_given && book->was_planned && book->rest * USEC_PER_SEC > SLACK)
                p->head->books.rests_until[sim_base_number(book->is.base)] = s->now + book->rest * USEC_PER_SEC - SLACK;
}

static bool is_listed(const struct leases *l, const char *id)
{
        size_t n;
        const struct lease *const *all = leases_list(l, &n);

        for (size_t i = 0; i < n; i++)
                if (strcmp(all[i]->id, id) == 0)
                        return true;
        return false;
}

/* --- a start --------------------------------------------------------------------------------------------------------- */

/* What was not granted may be stored or not. */
static void doubt(struct head *h)
{
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++) {
                struct sim_lease *book = &h->books.leases[i];

                book->is_uncertain = book->state != SIM_LEASE_ABSENT &&
                                     (book->state != SIM_LEASE_GIVEN || book->store_life != h->store->life);
        }
}

static void rests_follow_clock(const struct sim *s, struct sim_books *books)
{
        for (unsigned b = 0; b < SIM_BASES; b++)
                books->rests_until[b] -= MIN(books->rests_until[b], clocks_slack(s));
}

void clients_start(struct sim *s, struct process *p)
{
        struct head *h = p->head;

        if (p->goal != CONTROL_SERVE || !sim_has_leases(s))
                return;
        p->is_new = true;
        if (!sim_passes_on(s))
                doubt(h);
        if (h->lease_store_life != h->store->life)
                memset(h->books.rests_until, 0, sizeof(h->books.rests_until));
        h->lease_store_life = h->store->life;
        rests_follow_clock(s, &h->books);
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++)
                if (h->books.leases[i].state != SIM_LEASE_ABSENT && prng_permille(&s->lease_rng, 500))
                        world_ask_again(s, (unsigned) (h - s->heads), i, s->now + prng_below(&s->lease_rng, 1000000));
}

void clients_load(struct sim *s, struct process *p)
{
        if (!s->ledger.by || s->ledger.by == p->head)
                return;
        sim_trace(s, "process %u loads what the other head node has stored", p->number);
        p->loaded = s->ledger.by->books;
        p->has_loaded = true;
}

/* p writes from now on, by what it loaded from the store. */
static void take_over(struct sim *s, struct process *p)
{
        if (p->has_loaded)
                p->head->books = p->loaded;
        sim_trace(s, "process %u takes over%s", p->number, p->has_loaded ? " by what it loaded" : "");
        p->has_loaded = false;
        rests_follow_clock(s, &p->head->books);
        doubt(p->head);
        s->counters.taken_over++;
}

/* Its time goes on by the wall clock, perhaps another one than before. */
static void follow_clock(const struct sim *s, struct sim_lease *book)
{
        book->ends_first -= MIN(book->ends_first, book->ends_first == USEC_INFINITY ? 0 : clocks_slack(s));
        book->ends_last += book->ends_last == USEC_INFINITY ? 0 : clocks_slack(s);
}

/* What was granted is there; of everything else what was stored last. */
static void restore(struct sim *s, struct process *p, struct sim_lease *book, unsigned id, const struct lease *lease)
{
        bool was_there = book->state != SIM_LEASE_ABSENT;
        bool ended_at_once = was_there && !lease && !book->was_planned && may_be_stranded(p); /* no port had its P_Key */
        struct leased is = {};
        bool has_others;

        book->is_ended = book->is_ended && !lease;
        follow_clock(s, book);
        if (lease)
                is = leased_of(s, lease);
        if (!book->is_uncertain && !ended_at_once && was_there != (lease != NULL))
                sim_fail(s, "process %u: lease %s %s", p->number, ids[id], lease ? "is back" : "was granted, and is lost");
        if (lease && book->is_left && is_in_force(lease))
                sim_fail(s, "process %u: lease %s is in force again", p->number, ids[id]);
        s->counters.leases_restored += lease != NULL;
        if (!lease) {
                *book = (struct sim_lease) { .wish = book->wish };
                return;
        }
        if (book->was_edited && is.base == book->is.base) /* perhaps that was not stored */
                book->is.members = is.members;
        has_others = is_in_force(lease) && (is.members & ~book->is.members) != 0; /* else it may have ended in an edit */
        if (!book->was_another && (is.base != book->is.base || is.level != book->is.level || has_others))
                sim_fail(s, "process %u: lease %s has other entries than before", p->number, ids[id]);
        if (book->was_another) { /* it may be the one before, also if both have the same P_Key */
                book->wish.n_members = 0;
                book->ends_first = 0;
                book->ends_last = USEC_INFINITY;
                book->is = is;
        }
        if (book->state == SIM_LEASE_LEAVING && is_in_force(lease)) /* what ended it was not stored */
                book->state = SIM_LEASE_ASKED;
        book->was_active = lease->state == LEASE_ACTIVE && book->state == SIM_LEASE_ASKED;
        book->active_plan = 0; /* each process counts its own */
        book->was_another = book->is_uncertain = false;
}

/* --- after each event ------------------------------------------------------------------------------------------------ */

/* A lease whose time was over before it was granted ends at once. */
static void check_time(struct sim *s, const struct process *p, struct sim_lease *book, unsigned id, const struct lease *lease)
{
        bool is_over = lease && lease->state == LEASE_ACTIVE && s->now > book->ends_last;

        if (is_over && book->is_over && !control_get_status(p->control)->stopping)
                sim_fail(s, "process %u: the time of lease %s is over", p->number, ids[id]);
        book->is_over = is_over;
}

static bool is_asked_to_edit(const struct process *p, unsigned id)
{
        return p->asking.number > 0 && p->asking.kind == LEASE_EDIT && p->asking.id == id && p->asking.is_allowed;
}

static void watch_one(struct sim *s, struct process *p, unsigned id)
{
        const struct leases *all = control_get_status(p->control)->leases;
        const struct lease *lease = leases_find(all, ids[id]);
        struct sim_lease *book = &p->head->books.leases[id];
        struct leased is = {};

        if (p->is_new)
                restore(s, p, book, id, lease);
        if (is_in_force(lease) && (book->state == SIM_LEASE_ABSENT || book->is_ended))
                begin(s, p, book, lease);
        if (is_in_force(lease) && book->state == SIM_LEASE_LEAVING)
                sim_fail(s, "process %u: lease %s is in force again", p->number, ids[id]);
        check_time(s, p, book, id, lease);
        book->was_planned |= lease && lease->progress >= LEASE_PLANNED;
        if (lease && lease->state == LEASE_ACTIVE && book->active_plan == 0)
                book->active_plan = control_get_status(p->control)->numbers.n_plans;
        if (!is_in_force(lease) && (book->state == SIM_LEASE_ASKED || book->state == SIM_LEASE_GIVEN))
                leave(s, p, book, id);
        if (!lease && book->state == SIM_LEASE_LEAVING)
                end(s, p, book, id);
        if (!is_listed(all, ids[id]) && book->state == SIM_LEASE_LEAVING)
                *book = (struct sim_lease) { .wish = book->wish };
        if (is_in_force(lease))
                is = leased_of(s, lease);
        if (is_in_force(lease) && is_asked_to_edit(p, id))
                see_edit(s, p, book, &is, ids[id]);
        if (is_in_force(lease) && (is.base != book->is.base || is.level != book->is.level || (is.members & ~book->is.members) != 0))
                sim_fail(s, "process %u: lease %s has changed", p->number, ids[id]);
        else if (is_in_force(lease) && is_open_id(id) && sim_passes_on(s))
                book->is.members = is.members; /* another policy may have left some out */
}

static void add(struct sim *s, struct leased_all *to, const struct leased *lease)
{
        if (to->n == SIM_MAX_LEASES)
                sim_fail(s, "there are more leases than P_Keys");
        else
                to->leases[to->n++] = *lease;
}

static const struct leased *find_base(const struct leased_all *all, uint16_t base)
{
        for (unsigned i = 0; i < all->n; i++)
                if (all->leases[i].base == base)
                        return &all->leases[i];
        return NULL;
}

/* The leases in the plan that this event made. What changed after the plan, in the same event, was in it as it was before. */
static struct leased_all list_planned(struct sim *s, const struct process *p, const struct lease *const *leases, size_t n)
{
        struct leased_all ret = {};

        for (size_t i = 0; i < n; i++) {
                const struct leased is = leased_of(s, leases[i]), *before = find_base(&p->leased_now, is.base);
                bool is_old = p->goal == CONTROL_SERVE && leases[i]->progress < LEASE_PLANNED;

                if (is_old && before)
                        add(s, &ret, before);
                else if (!is_old && is_in_force(leases[i]) && !leases[i]->is_stranded)
                        add(s, &ret, &is);
                else if (!is_old && leases[i]->state == LEASE_RELEASING)
                        add(s, &ret, &(struct leased) { .base = is.base }); /* it is revoked */
        }
        return ret;
}

bool clients_watch(struct sim *s, struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        struct leased_all now = {}, planned = p->leased;
        const struct lease *const *leases;
        bool is_other;
        size_t n;

        if (!sim_has_leases(s) || !status->leases)
                return false;
        leases = leases_list(status->leases, &n);
        for (size_t i = 0; i < n; i++) {
                const struct leased is = leased_of(s, leases[i]);

                if (is_in_force(leases[i]))
                        add(s, &now, &is);
        }
        if (status->numbers.n_plans != p->n_plans)
                planned = list_planned(s, p, leases, n);
        p->n_plans = status->numbers.n_plans;
        is_other = memcmp(&planned, &p->leased, sizeof(planned)) != 0;
        p->leased = planned;
        p->leased_now = now;
        if (sim_passes_on(s) && (status->guest || !status->in_force)) {
                p->is_new = true; /* what it has in memory counts for nothing */
                return is_other;
        }
        if (sim_passes_on(s) && p->is_new)
                take_over(s, p);
        for (unsigned i = 0; p->goal == CONTROL_SERVE && i < SIM_LEASE_IDS; i++)
                watch_one(s, p, i);
        p->is_new = false;
        return is_other;
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

/* The entry is in the table of a member, at its index. first: when it was granted, it was just read. */
static void check_member(struct sim *s, const struct process *p, const struct sim_lease *book, const struct lease *lease,
                         const struct lease_member *m, const struct basis *basis)
{
        unsigned b = sim_base_number(lease->base), i = clients_endport(s, m->port);
        uint16_t key = (uint16_t) (lease->base | (lease->membership == MEMBERSHIP_FULL ? 0x8000 : 0));
        const struct fabsim_port *port;

        if (i == UINT32_MAX || m->state != LEASE_MEMBER_CONFIRMED || basis->elsewhere >> i & 1 ||
            s->moved_at[i] >= p->adopted.began || basis->changes[i] >> b & 1 ||
            (book->state == SIM_LEASE_GIVEN && was_disturbed(s, p, i, b, book->given_at)))
                return;
        port = fabsim_port_at(&s->f, s->endports[i]);
        if (book->state != SIM_LEASE_GIVEN && is_blocked(s, i, b))
                sim_fail(s, "process %u, lease %s is granted: the switch of node %u port %u drops 0x%04x", p->number, lease->id,
                         s->endports[i].node, s->endports[i].port, key);
        if (port->table[m->index].v != key)
                sim_fail(s, "process %u, lease %s is granted: index %u of node %u port %u has 0x%04x, not 0x%04x", p->number, lease->id,
                         m->index, s->endports[i].node, s->endports[i].port, port->table[m->index].v, key);
        else if (!(book->is.members >> i & 1))
                sim_fail(s, "process %u, lease %s: node %u port %u is a member that was not asked for", p->number, lease->id,
                         s->endports[i].node, s->endports[i].port);
}

/* No other port can talk to a member by the P_Key, if no other writer has let it since the lease was asked for. */
static void check_others(struct sim *s, const struct process *p, const struct sim_lease *book, const struct leased *is,
                         const struct basis *basis)
{
        unsigned b = sim_base_number(is->base);

        for (unsigned i = 0; i < s->n_endports; i++)
                for (unsigned k = 0; k < s->n_endports; k++)
                        if ((is->members >> i & 1) && !(is->members >> k & 1) && promises_can_talk(s, i, k, b) &&
                            !promises_excuse_holder(s, basis, k, b) && !promises_excuse_holder(s, basis, i, b) &&
                            !was_disturbed(s, p, k, b, book->asked_at) && !(book->is.members >> k & 1))
                                sim_fail(s, "process %u: a lease of 0x%04x is granted, and node %u port %u, which is no member, can talk to "
                                         "node %u port %u", p->number, is->base, s->endports[k].node, s->endports[k].port,
                                         s->endports[i].node, s->endports[i].port);
}

/* The last sweep says that it read all tables, and no other one has begun; the switch beside the port was found. */
static bool was_read_again(const struct sim *s, const struct process *p, unsigned endport)
{
        struct fabsim_place leaf;

        return p->last_result == SWEEP_DONE && p->sweep_began == 0 && control_get_status(p->control)->ports.unreachable == 0 &&
               endport != UINT32_MAX && p->adopted.entries[endport].is_seen &&
               (!observer_leaf(s, endport, &leaf) || p->adopted.entries[endport].is_plugged);
}

/* Members of a complete lease are not confirmed any more: others changed them since it was granted, or the last sweep did not read
 * them. */
static bool is_part_by_others(struct sim *s, const struct process *p, const struct sim_lease *book, const struct lease *lease)
{
        unsigned b = sim_base_number(lease->base);

        for (uint32_t i = 0; i < lease->n_members; i++) {
                unsigned endport = clients_endport(s, lease->members[i].port);

                if (lease->members[i].state != LEASE_MEMBER_CONFIRMED &&
                    (!was_read_again(s, p, endport) || was_disturbed(s, p, endport, b, book->given_at)))
                        return true;
        }
        return false;
}

static void granted(struct sim *s, struct process *p, struct sim_lease *book, const struct lease_answer *answer)
{
        const struct lease *lease = answer->lease;
        const struct leased is = leased_of(s, lease);
        bool is_first = book->state != SIM_LEASE_GIVEN, is_whole = answer->outcome == LEASE_GRANTED;
        /* the answer came late, and its tables were read again meanwhile */
        bool was_active = book->was_active || control_get_status(p->control)->numbers.n_plans > book->active_plan;
        struct basis basis;

        *(is_whole ? &s->counters.leases_granted : &s->counters.leases_partial) += 1;
        observer_basis(s, p, &basis);
        for (uint32_t i = 0; i < lease->n_members; i++) {
                const struct lease_member *m = &lease->members[i];

                check_member(s, p, book, lease, m, &basis);
                if (m->state != LEASE_MEMBER_CONFIRMED &&
                    (is_whole || (is_first && m->state != LEASE_MEMBER_LEFT_OUT && !was_active && p->last_result == SWEEP_DONE)))
                        sim_fail(s, "process %u: lease %s is granted, and %s is not confirmed", p->number, lease->id, m->name);
        }
        if (!is_whole && !book->wish.partial && (is_first ? !was_active : !is_part_by_others(s, p, book, lease)))
                sim_fail(s, "process %u: lease %s is granted in part, which was not asked for", p->number, lease->id);
        if (is_first)
                check_others(s, p, book, &is, &basis);
        book->is.members = is.members;
        if (is_first)
                book->given_at = s->now;
        book->state = SIM_LEASE_GIVEN;
        book->was_given = true;
        book->was_another = false;
        book->store_life = p->store_life;
}

static void edited(struct sim *s, const struct process *p, struct sim_lease *book, const struct sim_lease_request *q,
                   const struct lease_answer *answer)
{
        if (!answer->lease || !answer->lease->is_open || q->kind != LEASE_EDIT || !q->was_applied)
                sim_fail(s, "process %u: lease %s is edited, and has other members than asked for", p->number, ids[q->id]);
        book->was_edited = false;
        for (unsigned i = 0; i < p->n_lease_requests; i++)
                book->was_edited |= p->lease_requests[i].kind == LEASE_EDIT && p->lease_requests[i].id == q->id;
        s->counters.leases_edited++;
        book->state = SIM_LEASE_GIVEN;
        book->was_given = true;
        book->was_another = false;
        book->given_at = s->now;
        book->store_life = p->store_life;
}

/* Others that are not answered yet may have been carried out since. */
static void renewed(struct sim *s, const struct process *p, struct sim_lease *book, const struct sim_lease_request *q)
{
        s->counters.leases_renewed++;
        book->ends_first = q->ends_first;
        book->ends_last = q->ends_last;
        for (unsigned i = 0; i < p->n_lease_requests; i++)
                if (p->lease_requests[i].kind == LEASE_RENEW && p->lease_requests[i].id == q->id)
                        renew_perhaps(book, &p->lease_requests[i]);
}

static void refused(struct sim *s, const struct process *p, const struct sim_lease *book, const struct sim_lease_request *q,
                    const struct findings *findings)
{
        enum finding_code code = findings && findings->n > 0 ? findings->items[0].code : FINDING_LEASE_NOT_NOW;
        bool is_same = memcmp(&q->wish, &book->wish, sizeof(q->wish)) == 0;

        s->counters.leases_refused++;
        sim_trace(s, "client: refused: %s", findings && findings->n > 0 ? findings->items[0].text : "?");
        if (!findings || (findings->n == 0 && !findings->out_of_memory))
                sim_fail(s, "process %u refuses a request without a word", p->number);
        if (book->state != SIM_LEASE_GIVEN || !q->is_allowed)
                return;
        if ((code == FINDING_LEASE_EXISTS && q->kind == LEASE_CREATE && is_same) || code == FINDING_LEASE_NONE)
                sim_fail(s, "process %u refuses a request about lease %s, which it has: %s", p->number, ids[q->id], findings->items[0].text);
}

static void took_back(struct sim_lease *book)
{
        if (book->state == SIM_LEASE_LEAVING)
                book->is_left = true;
}

/* By the policy that a standby knows, which may be old. */
static bool is_refused_as_stranger(const struct lease_reply *reply)
{
        return reply->answer.outcome == LEASE_REFUSED && reply->findings->n == 1 &&
               reply->findings->items[0].code == FINDING_LEASE_ACCESS;
}

void clients_answered(struct sim *s, struct process *p, const struct lease_reply *reply)
{
        const struct lease_answer *answer = &reply->answer;
        struct sim_lease_request *q = find_request(p, answer->request), asked;
        struct sim_lease *book;

        sim_trace(s, "client: request %" PRIu64 " is answered: %s: %s", answer->request, lease_outcome_to_string(answer->outcome),
                  answer->text);
        if (sim_passes_on(s) && q)
                ledger_answered(s, p, q, reply);
        if (!q || (!*answer->text && answer->outcome != LEASE_ELSEWHERE)) {
                sim_fail(s, "process %u answers a request for a lease that nobody asked, or again, or without a word", p->number);
                return;
        }
        asked = *q;
        *q = p->lease_requests[--p->n_lease_requests];
        book = &p->head->books.leases[asked.id];
        if (!asked.is_allowed && answer->outcome != LEASE_REFUSED && answer->outcome != LEASE_ELSEWHERE)
                sim_fail(s, "process %u carries out what this user may not ask for", p->number);
        if (answer->lease && find_book(p, answer->lease->id) != book)
                sim_fail(s, "process %u answers with another lease", p->number);
        if (asked.is_of_guest && answer->outcome != LEASE_ELSEWHERE && !is_refused_as_stranger(reply))
                sim_fail(s, "process %u stands by, and decides about a request of a client", p->number);
        switch (answer->outcome) {
        case LEASE_GRANTED:
        case LEASE_GRANTED_PARTLY:
                granted(s, p, book, answer);
                break;
        case LEASE_RENEWED:
                renewed(s, p, book, &asked);
                break;
        case LEASE_EDITED:
                edited(s, p, book, &asked, answer);
                break;
        case LEASE_RELEASED:
        case LEASE_IS_RELEASING:
                s->counters.leases_released++;
                took_back(book);
                break;
        case LEASE_FAILED:
                s->counters.leases_failed++;
                took_back(book);
                break;
        case LEASE_REFUSED:
                refused(s, p, book, &asked, reply->findings);
                break;
        case LEASE_ELSEWHERE:
                if (!sim_passes_on(s))
                        sim_fail(s, "process %u passes a request on, and shares no store", p->number);
                else if (!(asked.number & SIM_FOREIGN))
                        mailbox_ask(s, p, &asked);
                break;
        case LEASE_UNSTORED: /* it may be carried out, or not */
                s->counters.leases_unstored++;
                break;
        }
        if (asked.number & SIM_FOREIGN)
                mailbox_reply(s, p, reply);
}

/* The books are those of the process that carried it out. */
void clients_told(struct sim *s, struct process *p, const struct sim_lease_request *q, const struct lease_reply *reply)
{
        const struct lease_answer *answer = &reply->answer;

        sim_trace(s, "client: request %" PRIu64 " is answered to process %u: %s: %s", q->number, p->number,
                  lease_outcome_to_string(answer->outcome), answer->text);
        s->counters.passed_back++;
        if (!*answer->text || answer->outcome == LEASE_ELSEWHERE)
                sim_fail(s, "request %" PRIu64 " is passed back without an answer", q->number);
        if (!q->is_allowed && answer->outcome != LEASE_REFUSED)
                sim_fail(s, "request %" PRIu64 " was carried out, and its user may not ask for that", q->number);
        if (answer->lease && strcmp(answer->lease->id, ids[q->id]) != 0)
                sim_fail(s, "request %" PRIu64 " is answered with another lease", q->number);
        process_store_changed(s, p);
}

void clients_settled(struct sim *s, const struct process *p)
{
        const struct leases *all = control_get_status(p->control)->leases;
        size_t n;
        const struct lease *const *leases = leases_list(all, &n);
        const struct intent *it = &p->judgement->intent;

        for (unsigned i = 0; i < p->n_lease_requests; i++)
                if (s->now > p->lease_requests[i].at + IMPATIENT)
                        sim_fail(s, "process %u: request %" PRIu64 " has no answer", p->number, p->lease_requests[i].number);
        for (size_t i = 0; i < n; i++)
                if (leases[i]->state != LEASE_ACTIVE && leases[i]->state != LEASE_ENDED && intent_owns(it, leases[i]->base))
                        sim_fail(s, "process %u: lease %s is still %s", p->number, leases[i]->id, lease_state_to_string(leases[i]->state));
}
