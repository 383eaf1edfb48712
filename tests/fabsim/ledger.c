/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store that two head nodes share is what they agree on, so it is what holds over hand-overs. Here it is read after each
 * commit, by code that knows nothing of either pkeyd:
 *
 *     a grant     is answered if the store had the lease in force since the client asked, whichever head node answers; of a lease
 *                 that the store has in force no answer is that it was released, or that there is none
 *     an entry    of a pool is written to a port that is a member of a stored lease in force with this P_Key. So no P_Key of a pool
 *                 belongs to two clients: the store has one lease for each
 *     a change    that waits to be confirmed is followed by nothing but its undo, which comes when it is asked for or when its time
 *                 is over; the time stays as it was, and only who was asked to confirm it does so
 *     an undo     undoes the generation that is in force, and has the files of the one that was before the change in force
 *     a policy    of a stored generation stays as it is, and no generation is lost
 *
 * When everything is calm both head nodes have in memory what the store has, and all requests have been answered.
 */

#include <infiniband/mad.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

#define SLACK (2 * USEC_PER_SEC) /* times in records are seconds */
#define EPOCH UINT64_C(1700000000) /* see post() in process.c */

/* --- leases ----------------------------------------------------------------------------------------------------------- */

static bool is_in_force(const struct lease *lease)
{
        return lease && (lease->state == LEASE_GRANTING || lease->state == LEASE_ACTIVE);
}

static uint64_t members_of(const struct sim *s, const struct lease *lease)
{
        uint64_t members = 0;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                unsigned endport = clients_endport(s, lease->members[i].port);

                if (endport != UINT32_MAX && lease_member_is_in_force(&lease->members[i]))
                        members |= UINT64_C(1) << endport;
        }
        return members;
}

static void see_lease(struct sim *s, struct sim_stored_lease *to, const struct lease *lease)
{
        bool is = is_in_force(lease);

        for (unsigned i = 0; to->is_in_force && i < s->n_endports; i++)
                if (to->members >> i & 1)
                        s->ledger.member_until[sim_base_number(to->base)][i] = s->now;
        if (to->is_in_force && (!is || lease->base != to->base)) {
                to->base_before = to->base;
                to->ended_at = s->now;
        }
        if (is && (!to->is_in_force || lease->base != to->base))
                to->began_at = s->now;
        to->is_in_force = is;
        if (is) {
                to->base = lease->base;
                to->members = members_of(s, lease);
        }
}

/* Has the store had this lease in force at any time since then? */
static bool was_in_force(const struct sim_stored_lease *l, uint16_t base, usec_t since)
{
        return (l->is_in_force && l->base == base) || (l->ended_at >= since && l->base_before == base);
}

static void check_granted(struct sim *s, const struct process *p, const struct sim_lease_request *q, const struct lease *lease)
{
        const struct sim_stored_lease *l = &s->ledger.leases[q->id];

        if (!was_in_force(l, lease->base, q->at))
                sim_fail(s, "process %u answers that lease %s is in force with 0x%04x, and the store does not have it so", p->number,
                         lease->id, lease->base);
        else if (l->is_in_force && l->base == lease->base && !lease->is_open && (members_of(s, lease) & ~l->members) != 0)
                sim_fail(s, "process %u answers that lease %s is in force, with members that the store does not have", p->number,
                         lease->id);
}

void ledger_answered(struct sim *s, const struct process *p, const struct sim_lease_request *q, const struct lease_reply *reply)
{
        const struct sim_stored_lease *l = &s->ledger.leases[q->id];
        const struct findings *f = reply->findings;
        const struct lease *own = leases_find(control_get_status(p->control)->leases, clients_id(q->id));
        bool was_there = l->is_in_force && l->began_at < q->at;

        switch (reply->answer.outcome) {
        case LEASE_GRANTED:
        case LEASE_GRANTED_PARTLY:
        case LEASE_RENEWED:
        case LEASE_EDITED:
                if (reply->answer.lease)
                        check_granted(s, p, q, reply->answer.lease);
                break;
        case LEASE_RELEASED:
        case LEASE_IS_RELEASING:
                if (was_there && !is_in_force(own)) /* else it has been made once more */
                        sim_fail(s, "process %u answers that a lease is released, which the store has in force", p->number);
                break;
        case LEASE_REFUSED:
                if (was_there && q->is_allowed && f && f->n > 0 && f->items[0].code == FINDING_LEASE_NONE &&
                    !own) /* else it is releasing */
                        sim_fail(s, "process %u says of a lease that there is none, and the store has it in force", p->number);
                break;
        case LEASE_FAILED:
        case LEASE_ELSEWHERE:
        case LEASE_UNSTORED:
                break;
        }
}

/* Also where it was one when p planned. */
static bool is_member(const struct sim *s, const struct process *p, unsigned endport, uint16_t base)
{
        usec_t until = s->ledger.member_until[sim_base_number(base)][endport];

        if (until > 0 && until >= p->sweep_began)
                return true;
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++) {
                const struct sim_stored_lease *l = &s->ledger.leases[i];

                if (l->is_in_force && l->base == base && l->members >> endport & 1)
                        return true;
        }
        return false;
}

static bool has_entry(const struct fabsim_port *port, uint16_t key)
{
        for (unsigned i = 0; i < port->capacity; i++)
                if (port->table[i].v == key)
                        return true;
        return false;
}

/* Entries that are there, or were when p read the block, are not its own. */
void ledger_check_set(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        unsigned endport = world_endport_at(s, at), first;
        const struct table_record *r = observer_table(s, at);

        if (!sim_passes_on(s) || s->f.nodes[at.node].type == NODE_SWITCH || endport == UINT32_MAX || !r ||
            mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F) != SMP_ATTR_P_KEY_TABLE || s->lid_moved_at[endport] > 0)
                return;
        first = (mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F) & 0xffff) * P_KEY_BLOCK_ENTRIES;
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES && first + i < FABSIM_MAX_ENTRIES; i++) {
                const uint8_t *bytes = frame->mad + IB_SMP_DATA_OFFS + 2 * i;
                uint16_t key = (uint16_t) (bytes[0] << 8 | bytes[1]), base = key & 0x7fff;

                if (sim_is_of_pool(base) && !is_member(s, p, endport, base) && !has_entry(fabsim_port_at(&s->f, at), key) &&
                    p->observer.tables[r - s->tables].entries[first + i].v != key)
                        sim_fail(s, "process %u gives 0x%04x to node %u port %u, and the store has no lease for that", p->number, key,
                                 at.node, at.port);
        }
}

/* --- generations ------------------------------------------------------------------------------------------------------ */

static struct sim_stored_generation *generation_at(struct sim *s, uint64_t number)
{
        struct sim_stored_generation *g = &s->ledger.generations[number % SIM_MAX_GENERATIONS];

        return number > 0 && g->number == number ? g : NULL;
}

/* NULL: there is none. */
static struct sim_stored_generation *generation_before(struct sim *s, uint64_t number)
{
        while (number > 1)
                if (generation_at(s, --number))
                        return generation_at(s, number);
        return NULL;
}

static bool has_files_of(const struct sim_stored_generation *g, const struct sim_stored_generation *of)
{
        return g->policy == of->policy && (g->settings == of->settings || g->settings == of->first_settings);
}

static uint64_t find_below(struct sim *s, const struct sim_stored_generation *g, const struct sim_stored_generation *before)
{
        const struct sim_stored_generation *restored = generation_at(s, g->restores);

        if (g->restores > 0)
                return restored ? restored->below : 0;
        return before ? before->number : 0;
}

static void check_undo(struct sim *s, const struct sim_stored_generation *g, const struct sim_stored_generation *before)
{
        const struct sim_stored_generation *target = generation_at(s, before->below);

        if (g->undoes > before->number)
                target = before; /* what it undoes came into force, but was never stored */
        if (g->undoes < before->number || !target || g->restores != target->number)
                sim_fail(s, "generation %" PRIu64 " undoes %" PRIu64 " and restores %" PRIu64 ", not %" PRIu64 " and %" PRIu64, g->number,
                         g->undoes, g->restores, before->number, target ? target->number : 0);
        else if (!has_files_of(g, target))
                sim_fail(s, "generation %" PRIu64 " has not the files of generation %" PRIu64, g->number, g->restores);
}

static void see_new(struct sim *s, struct sim_stored_generation *g, enum origin_kind by)
{
        const struct sim_stored_generation *before = generation_before(s, g->number);

        g->below = find_below(s, g, before);
        /* of several generations that came into force while the store could not be reached only the last two are stored */
        if (before && before->waits && g->undoes != before->number && g->number == before->number + 1 &&
            s->ledger.asked[before->number % SIM_MAX_GENERATIONS] != before->number)
                sim_fail(s, "generation %" PRIu64 " came into force while generation %" PRIu64 " waited to be confirmed", g->number,
                         before->number);
        if (g->undoes > 0 && before)
                check_undo(s, g, before);
        if (by == ORIGIN_TIMEOUT && (!before || !before->waits || s->now + SLACK + clocks_slack(s) < before->waits_until))
                sim_fail(s, "generation %" PRIu64 " is undone before its time is over", g->undoes);
        s->counters.undone += g->undoes > 0;
        s->counters.waited += g->waits;
}

static void see_again(struct sim *s, const struct sim_stored_generation *g, const struct sim_stored_generation *was, bool confirmed)
{
        if (g->policy != was->policy)
                sim_fail(s, "generation %" PRIu64 " is another one now", g->number);
        if (g->waits && (!was->waits || g->waits_until != was->waits_until))
                sim_fail(s, "generation %" PRIu64 " waits again, or for another time", g->number);
        if (was->waits && confirmed && s->ledger.asked[g->number % SIM_MAX_GENERATIONS] != g->number)
                sim_fail(s, "generation %" PRIu64 " is confirmed, and nobody has asked for that", g->number);
        if (was->waits && !g->waits && !confirmed && generation_before(s, g->number))
                sim_fail(s, "generation %" PRIu64 " stays, and nobody has confirmed it", g->number);
        s->counters.confirmed += was->waits && confirmed;
}

static void see_generation(struct sim *s, const struct sim_store *store, uint64_t number)
{
        struct sim_stored_generation *to = &s->ledger.generations[number % SIM_MAX_GENERATIONS], was = *to;
        _cleanup_arena_ struct arena *a = arena_new();
        struct stored_files f;

        if (!head_read_files(store, a, number, &f)) {
                sim_fail(s, "generation %" PRIu64 " is not whole", number);
                stored_files_done(&f);
                return;
        }
        *to = (struct sim_stored_generation) {
                .number = number, .undoes = f.facts.undoes, .restores = f.facts.restores, .below = was.below,
                .policy = intent_of_text(f.policy.bytes),
                .settings = intent_of_text(f.settings.bytes), .waits = generation_waits(&f.facts),
                .waits_until = f.facts.confirm_until > EPOCH ? (f.facts.confirm_until - EPOCH) * USEC_PER_SEC : 0,
        };
        to->first_settings = was.number == number ? was.first_settings : to->settings;
        if (was.number == number)
                see_again(s, to, &was, f.facts.confirmed > 0);
        else
                see_new(s, to, f.facts.origin.kind);
        stored_files_done(&f);
}

void ledger_stored(struct sim *s, const struct process *p)
{
        const struct sim_store *store = p->head->store;
        _cleanup_remembered_ struct remembered *m = NULL;

        if (!sim_passes_on(s))
                return;
        sim_trace(s, "process %u has stored%s", p->number, p->has_loaded ? ", what it loaded" : "");
        m = head_read_store(store, "");
        if (!p->has_loaded) /* else its own books are older */
                s->ledger.by = p->head;
        if (m->n_damaged > 0)
                sim_fail(s, "process %u has stored what cannot be read: %s", p->number, m->first_damaged);
        for (unsigned i = 0; i < SIM_LEASE_IDS; i++)
                see_lease(s, &s->ledger.leases[i], leases_find(m->leases, clients_id(i)));
        if (m->generation < s->ledger.last)
                sim_fail(s, "process %u goes back to generation %" PRIu64, p->number, m->generation);
        for (size_t i = 0; i < m->history.n && !s->failed; i++)
                if (m->history.items[i].number >= s->ledger.last)
                        see_generation(s, store, m->history.items[i].number);
        s->ledger.last = m->generation;
}

void ledger_asked(struct sim *s, const struct process *p, enum control_event_kind kind)
{
        const struct control_status *status = control_get_status(p->control);

        if (kind == CONTROL_EVENT_CONFIRM && !status->guest && status->in_force)
                s->ledger.asked[status->in_force->number % SIM_MAX_GENERATIONS] = status->in_force->number;
}

void ledger_confirmed(struct sim *s, uint64_t number)
{
        struct sim_stored_generation *g = generation_at(s, number);

        s->ledger.asked[number % SIM_MAX_GENERATIONS] = number;
        if (g)
                g->waits = false;
}

/* --- in peace --------------------------------------------------------------------------------------------------------- */

static void leases_settled(struct sim *s, const struct process *p)
{
        const struct leases *all = control_get_status(p->control)->leases;

        for (unsigned i = 0; i < SIM_LEASE_IDS; i++) {
                const struct sim_stored_lease *l = &s->ledger.leases[i];
                const struct lease *lease = leases_find(all, clients_id(i));

                if (is_in_force(lease) != l->is_in_force || (l->is_in_force && lease->base != l->base))
                        sim_fail(s, "process %u: lease %s is not as the store has it", p->number, clients_id(i));
        }
}

void ledger_settled(struct sim *s, const struct process *p)
{
        const struct generation *g = control_get_status(p->control)->in_force;
        const struct sim_stored_generation *last = generation_at(s, s->ledger.last);

        if (!sim_passes_on(s) || !g || g->audits || s->ledger.last == 0)
                return;
        if (g->number != s->ledger.last)
                sim_fail(s, "process %u has generation %" PRIu64 " in force, and the store %" PRIu64, p->number, g->number, s->ledger.last);
        if (last && last->waits && s->now > last->waits_until + 90 * USEC_PER_SEC + clocks_slack(s))
                sim_fail(s, "generation %" PRIu64 " still waits to be confirmed", last->number);
        if (s->ledger.unanswered > 0 && control_get_status(p->control)->writing)
                sim_fail(s, "request %" PRIu64 " has no answer, although a head node writes", s->ledger.unanswered);
        leases_settled(s, p);
}
