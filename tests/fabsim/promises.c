/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks the promises from the side of the fabric, independently of what pkeyd believes, except for its reports (promises_swept).
 *
 * The tables of the virtual hardware are checked over the whole history. Whenever a write of pkeyd arrives (a Set, or a write by
 * OpenSM from a file of pkeyd), every pair of endports is checked in every base, in both directions, in two models of a switch
 * (lenient, strict), whether or not the ports can be reached:
 *
 *     isolation    a pair that can talk because of the write may talk by the policy in force when it was sent. So two ports that
 *                  can talk may do so by some policy in force, or another writer let them.
 *     continuity   a pair that is cut off by the write may not talk by the policy in force when it was sent. So two ports that
 *                  talked, and may talk by every policy in force since, still talk.
 *     ownership    a write changes pairs only in bases of pkeyd; entries of other bases stay as they are
 *     stability    a wanted entry stays at its index; one that another writer removed returns to its index
 *     indexes      no index passes from one base to another while an unused one is left (also for a base that waits)
 *     identity     a Set goes only to an address that named its port since the stage began
 *     progress     (promises_converged) when everything is calm, each table matches the policy
 *
 * Neither the age of pkeyd, nor whether it was killed, what it lost, what it was refused, or its earlier mode excuses a
 * violation. Only the following does (observer.c):
 *
 *     surprise     another writer changed one of both ports in this base, after pkeyd read that table and before the write arrived.
 *                  A table that was never read is no surprise.
 *     elsewhere    one of both was moved since it was discovered, or was renamed, moved or replaced during the discovery. The
 *                  policy of a port is that for its state at the last discovery.
 *     expired      (isolation) one of both was absent at the last discovery, and last seen longer than absent_hold ago
 *     missing      (continuity) one of both was absent at the last discovery, so it talks to no port. (A port that returned behind
 *                  a switch that hangs also counts as absent here.)
 *     vouched      a person vouched wrongly that one of both holds nothing, and it was not found since
 *     strayed      (continuity) one of both, or a switch before it, was moved since it was last seen, and has not answered there.
 *                  OpenSM may write it. After absent_hold, or behind a switch that was silent before, it counts as talking to no
 *                  port
 *     lost         (isolation) likewise, if another port was at its new place, which was silent before this one was last seen, or
 *                  fell silent more than absent_hold later; or if this one counts as behind the filter of its old switch port
 *     unknown      (continuity) one of both was never discovered completely: its policy is not known
 *     hardware     a table that answers what was sent but holds something else; (continuity) one that does not store an entry
 *     address      the LID, or the cable, moved to another port after that address named its port
 *
 * The pkeyd of the other head node has its own state and the same policies. Its writes are a surprise only where a port has
 * more of a base than was read there and than any policy in force here gave it since (observer.c). A pkeyctl on the other head
 * node, which may write while pkeyd does, is another writer: each keeps only the order of its own phases.
 */

#include <infiniband/mad.h>
#include <limits.h>
#include <string.h>

#include "knowledge/held.h"
#include "sim.h"
#include "util/macros.h"

static bool may_enforce(const struct sim *s, struct fabsim_place p)
{
        const struct fabsim_node *n = &s->f.nodes[p.node];

        return n->type == NODE_SWITCH && p.port > 0 && n->partition_enforcement_cap > 0 &&
               (n->inbound_cap || n->outbound_cap);
}

/* --- reach ----------------------------------------------------------------------------------------------------------- */

static void reach_of(const struct sim *s, unsigned endport, struct reach ret[SIM_BASES])
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port], *leaf;
        struct fabsim_place at;
        bool has_leaf = observer_leaf(s, endport, &at);

        leaf = has_leaf ? &s->f.nodes[at.node].ports[at.port] : NULL;
        for (unsigned b = 0; b < SIM_BASES; b++) {
                int own = fabsim_level(p, sim_bases[b]), here = leaf ? fabsim_level(leaf, sim_bases[b]) : 2;

                ret[b].own = (uint8_t) own;
                for (int strict = 0; strict < 2; strict++) {
                        int limited = strict || here == 0 ? MIN(own, here) : own;

                        ret[b].sends[strict] = (uint8_t) (leaf && leaf->enforce_inbound ? limited : own);
                        ret[b].receives[strict] = (uint8_t) (leaf && leaf->enforce_outbound ? limited : own);
                }
        }
}

static bool passes(const struct reach *x, const struct reach *y, int strict)
{
        return x->sends[strict] && y->receives[strict] && (x->sends[strict] == 2 || y->receives[strict] == 2);
}

/* The endport at a place, and the endport at its peer. */
static void update_reach(struct sim *s, struct fabsim_place at)
{
        unsigned endport = observer_endport(s, at);

        if (endport != UINT32_MAX)
                reach_of(s, endport, s->reach[endport]);
}

/* --- changes --------------------------------------------------------------------------------------------------------- */

static void note_entry(struct sim *s, struct table_record *r, unsigned writer, unsigned index, struct p_key now)
{
        unsigned was = sim_base_number(r->is[index].v & 0x7fff), is = sim_base_number(now.v & 0x7fff);
        usec_t *at = r->changed_at[writer][index / P_KEY_BLOCK_ENTRIES];

        r->was_used[index] |= (now.v & 0x7fff) != 0;
        r->is[index] = now;
        if (was < SIM_BASES)
                at[was] = s->now;
        if (is < SIM_BASES)
                at[is] = s->now;
}

/* Records all changes since the last check for this writer. */
static void note_changes(struct sim *s, struct fabsim_place at, unsigned writer)
{
        struct table_record *r = observer_table(s, at);
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);

        if (!r)
                return;
        for (unsigned i = 0; i < p->capacity; i++)
                if (r->is[i].v != p->table[i].v)
                        note_entry(s, r, writer, i, p->table[i]);
        if (r->filters[0] != p->enforce_inbound || r->filters[1] != p->enforce_outbound)
                r->filter_changed_at[writer] = s->now;
        r->filters[0] = p->enforce_inbound;
        r->filters[1] = p->enforce_outbound;
}

void promises_disturbed(struct sim *s, struct fabsim_place at)
{
        note_changes(s, at, SIM_ELSE);
        update_reach(s, at);
}

void promises_moved(struct sim *s, struct fabsim_place at)
{
        unsigned endport = observer_endport(s, at);

        if (endport != UINT32_MAX)
                s->moved_at[endport] = s->now;
        update_reach(s, at);
}

void promises_begin(struct sim *s)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (uint8_t i = 0; i <= s->f.nodes[n].num_ports; i++) {
                        struct fabsim_place at = { n, i };

                        if (!fabsim_is_endport(&s->f, at) && !may_enforce(s, at))
                                continue;
                        s->tables[s->n_tables].at = at;
                        s->table_at[n][i] = (uint8_t) ++s->n_tables;
                        promises_disturbed(s, at);
                }
}

/* --- pairs ----------------------------------------------------------------------------------------------------------- */

static uint8_t level_of(enum membership m)
{
        if (m == MEMBERSHIP_NONE)
                return 0;
        return m == MEMBERSHIP_LIMITED ? 1 : 2;
}

/* The level that a lease gives; 0: none does. Its members are ports, whatever their names become. */
static uint8_t level_by_leases(const struct judgement *by, unsigned endport, uint16_t base)
{
        for (unsigned i = 0; i < by->leased.n; i++)
                if (by->leased.leases[i].base == base && by->leased.leases[i].members >> endport & 1)
                        return by->leased.leases[i].level;
        return 0;
}

/* Also what a lease gave. */
static bool may_touch(const struct judgement *by, uint16_t base)
{
        for (unsigned i = 0; i < by->leased.n; i++)
                if (by->leased.leases[i].base == base && intent_owns(&by->intent, base))
                        return true;
        return intent_may_touch(&by->intent, base);
}

/* What the policy and the leases want of a port. */
static unsigned wants_of(const struct judgement *by, unsigned endport, bool enforcing, struct p_key ret[SIM_MAX_WANTS])
{
        unsigned n = intent_wants(&by->intent, &by->census, endport, enforcing, ret);

        for (unsigned i = 0; i < by->leased.n; i++) {
                uint8_t level = level_by_leases(by, endport, by->leased.leases[i].base);

                if (level > 0)
                        ret[n++].v = (uint16_t) (by->leased.leases[i].base | (level == 2 ? 0x8000 : 0));
        }
        return n;
}

/* UINT_MAX: none is of this base. */
static unsigned find_partition(const struct judgement *by, uint16_t base)
{
        for (unsigned i = 0; i < by->intent.n_partitions; i++)
                if (by->intent.partitions[i].base == base)
                        return i;
        return UINT_MAX;
}

static uint8_t level_by_lines(const struct judgement *by, unsigned endport, uint16_t base)
{
        unsigned partition = find_partition(by, base);

        if (partition == UINT_MAX)
                return level_by_leases(by, endport, base);
        if (by->census.entries[endport].is_unknown)
                return partition == 0; /* whatever it is, it is a limited member of the default partition */
        return level_of(intent_membership(&by->intent, &by->census, endport, partition));
}

/* The certain level, or the lower one of the present level by the lines and of the earlier one. */
static uint8_t level_of_frozen(const struct judgement *by, unsigned endport, unsigned b, uint8_t before)
{
        unsigned partition = find_partition(by, sim_bases[b]);

        if (partition == UINT_MAX)
                return level_by_leases(by, endport, sim_bases[b]);
        if (by->census.entries[endport].is_unknown)
                return 0;
        if (!(by->contested >> endport & 1))
                return level_by_lines(by, endport, sim_bases[b]);
        return MAX(level_of(intent_certain(&by->intent, &by->census, endport, partition)),
                   MIN(before, level_by_lines(by, endport, sim_bases[b])));
}

/* The present level by the lines, or the earlier one. */
static uint8_t most_of_frozen(const struct judgement *by, unsigned endport, unsigned b, uint8_t before)
{
        uint8_t lines = level_by_lines(by, endport, sim_bases[b]);

        return by->contested >> endport & 1 ? MAX(before, lines) : lines;
}

/* During a change a table may hold up to twice the wanted entries, in addition to the present ones. */
static bool may_overflow(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place at)
{
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];
        struct p_key wants[SIM_MAX_WANTS];
        unsigned n = 2 * wants_of(by, endport, !fabsim_is_endport(&s->f, at), wants), used = 0;

        for (unsigned i = 0; i < p->capacity; i++)
                used += (p->table[i].v & 0x7fff) != 0;
        return n + MAX(used, (unsigned) SIM_BASES) > p->capacity;
}

static void check_frozen(struct sim *s, const struct judgement *by, unsigned endport)
{
        const struct fabsim_place at = s->endports[endport];
        struct fabsim_place leaf;

        if (!intent_has_twin(s, &by->census, endport, true) && !may_overflow(s, by, endport, at) &&
            !(observer_leaf(s, endport, &leaf) && may_overflow(s, by, endport, leaf)))
                sim_fail(s, "node %u port %u is frozen without a reason", at.node, at.port);
}

void promises_judged(struct sim *s, struct process *p, struct judgement *j)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                for (unsigned b = 0; b < SIM_BASES; b++) {
                        uint8_t before = p->is_given >> i & 1 ? p->given[i][b] : 0;

                        j->level[i][b] = level_by_lines(j, i, sim_bases[b]);
                        j->most[i][b] = j->level[i][b];
                        if (!(j->frozen >> i & 1))
                                continue;
                        j->level[i][b] = level_of_frozen(j, i, b, before);
                        j->most[i][b] = most_of_frozen(j, i, b, before);
                }
        j->open = j->contested & ~p->is_given;
        p->judgement = j;
}

void promises_given(struct sim *s, struct process *p)
{
        const struct judgement *j = p->judgement;

        for (unsigned i = 0; j && i < s->n_endports; i++) {
                if (j->frozen >> i & 1)
                        check_frozen(s, j, i);
                if (!j->census.entries[i].is_seen || j->frozen >> i & 1)
                        continue;
                p->is_given |= UINT64_C(1) << i;
                memcpy(p->given[i], j->level[i], sizeof(p->given[i]));
        }
}

struct change {
        const struct basis *basis;
        unsigned endport;
        const struct opensm_port *line;  /* that OpenSM carries out; NULL: it is a Set of pkeyd */
        const struct opensm_port *overtaken; /* the line before, which it was still to carry out */
        bool skip[SIM_BASES];            /* OpenSM writes this base by a rule of its own */
        uint16_t not_taken;              /* a bit for each base: the hardware did not take an entry */
        struct reach before[SIM_BASES];
};

static bool changed_since(const struct sim *s, const struct basis *basis, struct fabsim_place at, unsigned b)
{
        const struct table_record *r = observer_table((struct sim *) s, at);

        for (unsigned w = 0; r && w <= SIM_ELSE; w++) {
                if (w == basis->process || observer_is_pair(s, w, basis->process))
                        continue;
                if (r->filter_changed_at[w] >= basis->since)
                        return true;
                for (unsigned block = 0; block < SIM_BLOCKS; block++)
                        if (r->changed_at[w][block][b] >= basis->since)
                                return true;
        }
        return false;
}

/* pkeyd could not know the level of this port in this base. */
static bool is_surprise(const struct sim *s, const struct basis *basis, unsigned endport, unsigned b)
{
        struct fabsim_place leaf;

        return basis->surprises[endport] >> b & 1 || basis->elsewhere >> endport & 1 || s->moved_at[endport] >= basis->since ||
               changed_since(s, basis, s->endports[endport], b) ||
               (observer_leaf(s, endport, &leaf) && changed_since(s, basis, leaf, b));
}

/* A full member behind a limited entry is full or limited, depending on the model of a switch. OpenSM's file has it as limited.
 * */
static bool is_between(const struct reach *r)
{
        return r->sends[0] != r->sends[1] || r->receives[0] != r->receives[1];
}

static bool is_excused(struct sim *s, const struct change *c, unsigned other, unsigned b, bool gain)
{
        const struct basis *basis = c->basis;
        uint64_t strayed = c->line ? basis->strayed : basis->strayed_long;
        uint64_t absent = gain ? basis->expired | basis->lost : basis->missing | basis->unknown | strayed;

        if (c->line && !gain && (basis->unread >> c->endport & 1 || is_between(&c->before[b])))
                return true; /* OpenSM clears entries that no file had, and pkeyd did not know of it */
        absent |= basis->vouched;
        if ((absent >> c->endport & 1) || (absent >> other & 1) || (!gain && (c->not_taken >> b & 1)))
                return true;
        return is_surprise(s, basis, c->endport, b) || is_surprise(s, basis, other, b);
}

bool promises_excuse_holder(const struct sim *s, const struct basis *basis, unsigned endport, unsigned b)
{
        return (basis->expired | basis->lost | basis->vouched) >> endport & 1 || is_surprise(s, basis, endport, b);
}

bool promises_can_talk(const struct sim *s, unsigned x, unsigned y, unsigned b)
{
        for (int strict = 0; strict < 2; strict++)
                if (passes(&s->reach[x][b], &s->reach[y][b], strict) || passes(&s->reach[y][b], &s->reach[x][b], strict))
                        return true;
        return false;
}

/* OpenSM always makes every port at least a limited member of the default partition (the first base). */
static uint8_t wanted_level(const struct sim *s, const struct change *c, unsigned endport, unsigned b, bool gain)
{
        const struct judgement *by = c->basis->by;
        uint8_t level = gain ? by->level[endport][b] : by->most[endport][b];

        if (!gain && by->open >> endport & 1)
                level = MAX(level, s->reach[endport][b].own);
        return c->line && b == 0 ? MAX(level, (uint8_t) 1) : level;
}

/* Can they talk now, or are they cut off, against the policy of this write? */
static bool is_broken(struct sim *s, const struct change *c, unsigned other, unsigned b, bool after)
{
        uint8_t x = wanted_level(s, c, c->endport, b, after), y = wanted_level(s, c, other, b, after);
        bool wanted = x && y && (x == 2 || y == 2), excused;

        if (after == wanted && may_touch(c->basis->by, sim_bases[b]))
                return false;
        excused = is_excused(s, c, other, b, after);
        s->counters.pairs_excused += excused;
        sim_trace(s, "base 0x%04x, endports %u and %u %s talk%s: wanted levels %u and %u", sim_bases[b], c->endport, other,
                  after ? "come to" : "cease to", excused ? " (excused)" : "", x, y);
        return !excused;
}

/* OpenSM may now carry out an earlier file, of another policy, or what an admin put there and pkeyd keeps for a port that it cannot
 * read. */
static bool was_told_before(struct sim *s, const struct change *c, const struct opensm_port *line, unsigned other, unsigned b,
                            bool after)
{
        struct change first = *c;

        if (line && line->by_admin[b])
                return true;
        if (!line || !line->basis[b])
                return false;
        first.basis = line->basis[b];
        return !is_broken(s, &first, other, b, after);
}

static void check_direction(struct sim *s, const struct change *c, unsigned other, unsigned b, int strict, bool sends)
{
        const struct reach *was = &c->before[b], *is = &s->reach[c->endport][b], *peer = &s->reach[other][b];
        bool before = sends ? passes(was, peer, strict) : passes(peer, was, strict);
        bool after = sends ? passes(is, peer, strict) : passes(peer, is, strict);

        s->counters.pairs_checked++;
        if (before == after)
                return;
        s->counters.pairs_changed++;
        if (!is_broken(s, c, other, b, after) || was_told_before(s, c, c->line, other, b, after))
                return;
        if (!after && was_told_before(s, c, c->overtaken, other, b, after))
                return; /* and it cannot be known whether that was carried out already */
        sim_trace(s, "%u/%u becomes %u/%u, the other is %u/%u", was->sends[strict], was->receives[strict], is->sends[strict],
                  is->receives[strict], peer->sends[strict], peer->receives[strict]);
        sim_fail(s, "process %u broke %s (%s): node %u port %u %s node %u port %u, base 0x%04x", c->basis->process,
                 before ? "continuity" : "isolation", strict ? "strict" : "lenient", s->endports[c->endport].node,
                 s->endports[c->endport].port, sends ? "to" : "from", s->endports[other].node, s->endports[other].port,
                 sim_bases[b]);
}

static bool differs(const struct reach *x, const struct reach *y)
{
        return memcmp(x->sends, y->sends, sizeof(x->sends)) != 0 || memcmp(x->receives, y->receives, sizeof(x->receives)) != 0;
}

static void check_pairs(struct sim *s, const struct change *c)
{
        for (unsigned b = 0; b < SIM_BASES; b++) {
                if (c->skip[b] || !differs(&c->before[b], &s->reach[c->endport][b]))
                        continue;
                for (unsigned other = 0; other < s->n_endports; other++)
                        for (int strict = 0; other != c->endport && strict < 2; strict++) {
                                check_direction(s, c, other, b, strict, true);
                                check_direction(s, c, other, b, strict, false);
                        }
        }
}

/* The intended and the actual result of a Set. */
struct written {
        const struct basis *basis;
        struct table_record *record;
        const struct fabsim_port *now;
        unsigned endport;   /* UINT32_MAX: none is there any more */
        uint16_t not_taken;
};

static void judge(struct sim *s, const struct written *w)
{
        struct change c = { .basis = w->basis, .endport = w->endport, .not_taken = w->not_taken };

        memcpy(c.before, s->reach[w->endport], sizeof(c.before));
        reach_of(s, w->endport, s->reach[w->endport]);
        check_pairs(s, &c);
}

/* The switch port lets less of it through than the endport's own table has, in one of both models. A file makes them equal. */
static bool passes_less(const struct reach *r)
{
        for (int strict = 0; strict < 2; strict++)
                if (r->sends[strict] != r->own || r->receives[strict] != r->own)
                        return true;
        return false;
}

void promises_rewritten(struct sim *s, const struct opensm *o, unsigned endport)
{
        const struct basis *basis = &o->basis;
        struct change c = {
                .basis = basis, .endport = endport, .line = &o->ports[endport], .overtaken = &o->overtaken[endport],
        };
        /* it cannot be predicted when OpenSM clears entries that no file had, at a port that was not read */
        const unsigned writer = basis->unread >> endport & 1 ? SIM_ELSE : basis->process;
        struct fabsim_place leaf;

        note_changes(s, s->endports[endport], writer);
        if (observer_leaf(s, endport, &leaf))
                note_changes(s, leaf, writer);
        memcpy(c.before, s->reach[endport], sizeof(c.before));
        /* OpenSM always makes every port a member of the default partition */
        c.skip[0] = c.before[0].own == 0 || passes_less(&c.before[0]);
        reach_of(s, endport, s->reach[endport]);
        check_pairs(s, &c);
}

/* --- entries --------------------------------------------------------------------------------------------------------- */

static unsigned count_base(const struct p_key table[FABSIM_MAX_ENTRIES], uint16_t base)
{
        unsigned n = 0;

        for (unsigned i = 0; i < FABSIM_MAX_ENTRIES; i++)
                n += (table[i].v & 0x7fff) == base;
        return n;
}

/* What the policy wants of a base in this table: how many entries, and whether this is one of them. */
static unsigned count_wanted(const struct sim *s, const struct written *w, struct p_key key, bool *ret_wanted)
{
        struct p_key wants[SIM_MAX_WANTS];
        unsigned n = 0, n_of_base = 0;

        if (w->endport != UINT32_MAX)
                n = wants_of(w->basis->by, w->endport, !fabsim_is_endport(&s->f, w->record->at), wants);
        *ret_wanted = false;
        for (unsigned i = 0; i < n; i++) {
                *ret_wanted |= wants[i].v == key.v;
                n_of_base += (wants[i].v & 0x7fff) == (key.v & 0x7fff);
        }
        return n_of_base;
}

/* A lease keeps index 0 when its pool does not give that any more. */
static bool had_index0_pool(const struct sim *s)
{
        for (unsigned i = 0; i < s->n_intents; i++)
                if (intent_has_index0_pool(&s->intents[i]))
                        return true;
        return false;
}

/* With leases that may have index 0, entries of an endport may move away from index 0 and to it. */
static bool is_moved_for_lease(const struct sim *s, const struct written *w, unsigned index, uint16_t base)
{
        return had_index0_pool(s) && fabsim_is_endport(&s->f, w->record->at) &&
               (index == 0 || (w->now->table[0].v & 0x7fff) == base);
}

/* A wanted entry stays at its index; so does a base that has and should have one entry. */
static void check_stability(struct sim *s, const struct written *w, const struct p_key before[FABSIM_MAX_ENTRIES], unsigned index)
{
        const struct fabsim_place at = w->record->at;
        uint16_t key = before[index].v, now = w->now->table[index].v, base = key & 0x7fff;
        bool wanted;
        unsigned with_base = count_wanted(s, w, before[index], &wanted);

        if (base == 0 || w->basis->by->intent.settings.repair_index0 || count_base(before, base) != 1 ||
            observer_changed_in_sweep(&s->processes[w->basis->process], w->record, base) || is_moved_for_lease(s, w, index, base))
                return;
        if (wanted && now != key)
                sim_fail(s, "stability broken: 0x%04x at index %u of node %u port %u became 0x%04x", key, index, at.node,
                         at.port, now);
        if (with_base == 1 && (now & 0x7fff) != base)
                sim_fail(s, "stability broken: base 0x%04x left index %u of node %u port %u", base, index, at.node, at.port);
}

/* Index 0 of an endport is for one partition only, and a repair moves what it must. */
static bool is_index0(const struct sim *s, const struct table_record *r, unsigned index)
{
        return index == 0 && fabsim_is_endport(&s->f, r->at);
}

/* A removed base returns to its index, and no index passes to another base while an unused one is left. */
static void check_index(struct sim *s, const struct written *w, unsigned index)
{
        struct table_record *r = w->record;
        const struct process *p = &s->processes[w->basis->process];
        const struct seen_table *seen = &p->observer.tables[r - s->tables];
        uint16_t base = w->now->table[index].v & 0x7fff;
        unsigned b = sim_base_number(base), home = b < SIM_BASES ? seen->home[b] : SIM_NO_INDEX;
        bool ignored;

        if (base == 0 || w->basis->by->intent.settings.repair_index0 || is_index0(s, r, index) || w->basis->by->is_undo)
                return;
        if (seen->used[index] && seen->used[index] != base)
                r->passed_on = true;
        if (home == SIM_NO_INDEX || home == index || is_index0(s, r, home) || seen->used[home] != base ||
            observer_changed_in_sweep(p, r, base) || (w->now->table[home].v & 0x7fff) != 0 ||
            count_wanted(s, w, w->now->table[index], &ignored) != 1)
                return;
        sim_fail(s, "stability broken: base 0x%04x was at index %u of node %u port %u, and comes back at index %u", base, home,
                 r->at.node, r->at.port, index);
}

/* A switch port is written for the endport that was discovered there; a newer one has other entries. */
static bool is_stranger_beside(const struct sim *s, const struct written *w)
{
        if (w->endport == UINT32_MAX)
                return true;
        return !fabsim_is_endport(&s->f, w->record->at) &&
               (w->basis->strayed >> w->endport & 1 || s->moved_at[w->endport] >= w->basis->by->census.began);
}

/* The base of a lease that belongs at index 0 of this endport; 0: none does. */
static uint16_t leased_at_index0(const struct judgement *by, unsigned endport)
{
        for (unsigned i = 0; i < by->leased.n; i++)
                if (by->leased.leases[i].index0 >> endport & 1)
                        return by->leased.leases[i].base;
        return 0;
}

static void check_entries(struct sim *s, const struct written *w)
{
        struct process *p = &s->processes[w->basis->process];
        struct p_key before[FABSIM_MAX_ENTRIES];

        memcpy(before, w->record->is, sizeof(before));
        for (unsigned i = 0; i < w->now->capacity; i++) {
                uint16_t old = before[i].v & 0x7fff, new = w->now->table[i].v & 0x7fff;
                bool surprise = is_stranger_beside(s, w);

                if (before[i].v == w->now->table[i].v)
                        continue;
                s->counters.leases_at_index0 += is_index0(s, w->record, i) && w->endport != UINT32_MAX && new > 0 &&
                                                new == leased_at_index0(w->basis->by, w->endport);
                sim_trace(s, "node %u port %u index %u: 0x%04x becomes 0x%04x", w->record->at.node, w->record->at.port, i,
                          before[i].v, w->now->table[i].v);
                for (unsigned b = 0; b < SIM_BASES && !surprise; b++)
                        surprise = (sim_bases[b] == old || sim_bases[b] == new) && is_surprise(s, w->basis, w->endport, b);
                if (!surprise && ((old && !may_touch(w->basis->by, old)) || (new && !may_touch(w->basis->by, new))))
                        sim_fail(s, "index %u of node %u port %u: 0x%04x became 0x%04x, which is not pkeyd's", i,
                                 w->record->at.node, w->record->at.port, before[i].v, w->now->table[i].v);
                if (!surprise && !(w->not_taken >> sim_base_number(old) & 1)) {
                        check_stability(s, w, before, i);
                        if (old != new)
                                check_index(s, w, i);
                }
                note_entry(s, w->record, w->basis->process, i, w->now->table[i]);
                if (p->life == w->basis->life)
                        observer_wrote(s, p, w->record, i);
        }
}

/* What was sent and is not there, of an SMA that does not take an entry. One that claims it did changed its table unseen. */
static uint16_t find_not_taken(struct sim *s, const struct event *e, struct table_record *r, struct fabsim_port *now)
{
        unsigned b = sim_base_number(now->swallows.v & 0x7fff);
        unsigned block = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRMOD_F) & 0xffff;

        if (b == SIM_BASES || mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRID_F) != SMP_ATTR_P_KEY_TABLE)
                return 0;
        if (now->lies && block < SIM_BLOCKS)
                r->changed_at[SIM_ELSE][block][b] = s->now;
        return (uint16_t) (1 << b);
}

/* The address moved to this port after the previous one had answered which node it is. */
static bool is_misdirected(const struct sim *s, const struct basis *basis, struct fabsim_place at)
{
        unsigned sma = world_endport_at(s, (struct fabsim_place) {
                at.node, s->f.nodes[at.node].type == NODE_SWITCH ? 0 : at.port });

        if (basis->lid.v == 0)
                return s->cables_moved_at >= basis->asked_at;
        return sma != UINT32_MAX && s->lid_moved_at[sma] >= basis->asked_at;
}

/* A port that was connected to a switch port since the discovery is not the intended one. */
static void check_name(struct sim *s, const struct written *w)
{
        const struct basis *basis = w->basis;
        const struct fabsim_place at = w->record->at;

        if (w->endport == UINT32_MAX || basis->elsewhere >> w->endport & 1 || s->moved_at[w->endport] >= basis->since)
                return;
        if (basis->by->frozen >> w->endport & 1)
                sim_fail(s, "a Set to node %u port %u, which is frozen", at.node, at.port);
        else if (intent_is_contested(s, &basis->by->intent, &basis->by->census, w->endport))
                sim_fail(s, "a Set to node %u port %u, whose name another one has, too", at.node, at.port);
}

void promises_changed(struct sim *s, const struct basis *basis, const struct event *e, struct fabsim_place at)
{
        struct fabsim_port *now = fabsim_port_at(&s->f, at);
        struct written w = {
                .basis = basis, .record = observer_table(s, at), .now = now, .endport = observer_endport(s, at),
        };

        if (is_misdirected(s, basis, at)) {
                promises_disturbed(s, at);
                return;
        }
        if (!basis->by || !w.record) {
                sim_fail(s, basis->by ? "a Set of what is no P_Key table" : "a Set by no policy");
                return;
        }
        check_name(s, &w);
        w.not_taken = find_not_taken(s, e, w.record, now);
        check_entries(s, &w);
        note_changes(s, at, basis->process);
        if (w.endport != UINT32_MAX)
                judge(s, &w);
}

static void check_passed_on(struct sim *s, const struct process *p, struct table_record *r, bool all_done)
{
        const struct fabsim_port *now = fabsim_port_at(&s->f, r->at);
        bool passed_on = r->passed_on;

        r->passed_on = false;
        if (!passed_on || !all_done || p->judgement->intent.settings.repair_index0)
                return;
        s->counters.passed_on_checked++;
        for (unsigned i = fabsim_is_endport(&s->f, r->at) ? 1 : 0; i < now->capacity; i++)
                if ((now->table[i].v & 0x7fff) == 0 && !r->was_used[i] && p->observer.tables[r - s->tables].used[i] == 0)
                        sim_fail(s, "an index of node %u port %u went to another base, though %u was never used", r->at.node,
                                 r->at.port, i);
}

/* --- writers --------------------------------------------------------------------------------------------------------- */

void promises_check_set(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t attribute = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F);
        uint32_t modifier = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F);
        bool is_switch = s->f.nodes[at.node].type == NODE_SWITCH;
        const struct control_status *status = control_get_status(p->control);

        if (!p->judgement || status->state != CONTROL_APPLYING) {
                sim_fail(s, "a Set while nothing is applied");
                return;
        }
        if (p->goal == CONTROL_SERVE && p->judgement->intent.settings.mode == MODE_AUDIT)
                sim_fail(s, "a Set in audit mode");
        if (p->judgement->intent.settings.writer == WRITER_OPENSM)
                sim_fail(s, "a Set, where OpenSM writes");
        if (p->head->lock != p->life)
                sim_fail(s, "a Set without the lock");
        if (s->shares_store && !head_has_lock(s, p))
                sim_fail(s, "a Set although the lease of the lock has ended");
        if (attribute != SMP_ATTR_P_KEY_TABLE && (!is_switch || modifier == 0))
                sim_fail(s, "a Set(PortInfo) to an endport");
        ledger_check_set(s, p, frame, at);
        world_check_writer(s, p);
}

/* --- reports and convergence ----------------------------------------------------------------------------------------- */

static bool table_is_right(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place at)
{
        struct p_key wants[SIM_MAX_WANTS];
        unsigned n = wants_of(by, endport, !fabsim_is_endport(&s->f, at), wants), found = 0;
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

        for (unsigned i = 0; i < p->capacity; i++) {
                uint16_t base = p->table[i].v & 0x7fff;
                bool wanted = false;

                if (base == 0 || !may_touch(by, base))
                        continue;
                for (unsigned k = 0; k < n; k++)
                        if (wants[k].v == p->table[i].v) {
                                wants[k].v = 0; /* a second one is one too many */
                                wanted = true;
                        }
                if (!wanted)
                        return false;
                found++;
        }
        for (unsigned k = 0; k < n; k++)
                if (wants[k].v && !may_touch(by, wants[k].v & 0x7fff))
                        found++;
        return found == n;
}

/* A switch port that cannot hold what is wanted, or holds what is not pkeyd's, may be let go (enforcement_overflow). */
static bool leaf_is_special(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place leaf)
{
        const struct fabsim_port *ports[] = { &s->f.nodes[leaf.node].ports[leaf.port],
                                              &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port] };

        for (unsigned k = 0; k < ELEMENTS(ports); k++)
                for (unsigned i = 0; i < ports[k]->capacity; i++)
                        if (ports[k]->table[i].v & 0x7fff && !may_touch(by, ports[k]->table[i].v & 0x7fff))
                                return true;
        return may_overflow(s, by, endport, leaf);
}

/* A switch port that filters, and cannot hold the wanted entries. It stays closed as long as its host and other ports have an
 * entry that is not pkeyd's: the policy does not let them talk. */
static bool is_shut(const struct sim *s, const struct judgement *by, unsigned endport, unsigned b)
{
        const struct fabsim_port *p;
        struct fabsim_place leaf;

        if (by->intent.settings.writer == WRITER_OPENSM || !observer_leaf(s, endport, &leaf) || !may_enforce(s, leaf) ||
            !leaf_is_special(s, by, endport, leaf))
                return false;
        p = fabsim_port_at((struct fabsim *) &s->f, leaf);
        return (p->enforce_inbound || p->enforce_outbound) && fabsim_level(p, sim_bases[b]) < by->level[endport][b];
}

/* OpenSM sees to these itself. */
static bool leaf_is_right(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place leaf)
{
        const struct fabsim_node *n = &s->f.nodes[leaf.node];
        const struct fabsim_port *p = &n->ports[leaf.port];
        enum settings_enforcement e = by->intent.settings.enforcement;

        if (by->intent.settings.writer == WRITER_OPENSM || leaf_is_special(s, by, endport, leaf))
                return true;
        return p->enforce_inbound == ((e == ENFORCEMENT_BOTH || e == ENFORCEMENT_IN) && n->inbound_cap) &&
               p->enforce_outbound == ((e == ENFORCEMENT_BOTH || e == ENFORCEMENT_OUT) && n->outbound_cap) &&
               table_is_right(s, by, endport, leaf);
}

static bool endport_is_right(const struct sim *s, const struct judgement *by, unsigned endport)
{
        struct fabsim_place leaf;

        if (!table_is_right(s, by, endport, s->endports[endport]))
                return false;
        return !by->census.entries[endport].is_plugged || !observer_leaf(s, endport, &leaf) || !may_enforce(s, leaf) ||
               leaf_is_right(s, by, endport, leaf);
}

static void not_right(struct sim *s, const struct judgement *by, unsigned endport, const char *what)
{
        struct fabsim_place at = s->endports[endport], leaf = {};
        struct p_key wants[SIM_MAX_WANTS];
        unsigned n = wants_of(by, endport, false, wants);
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);

        (void) observer_leaf(s, endport, &leaf);
        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v)
                        sim_trace(s, "index %u: 0x%04x", i, p->table[i].v);
        for (unsigned i = 0; i < n; i++)
                sim_trace(s, "wanted: 0x%04x", wants[i].v);
        p = fabsim_port_at(&s->f, leaf);
        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v)
                        sim_trace(s, "beside it: index %u: 0x%04x%s%s", i, p->table[i].v, p->enforce_inbound ? " in" : "",
                                  p->enforce_outbound ? " out" : "");
        sim_fail(s, "node %u port %u (beside node %u port %u) %s", at.node, at.port, leaf.node, leaf.port, what);
}

/* From the head node, or from the other one whose records it may have loaded. */
static bool was_gone_since(const struct sim *s, const struct head *h, unsigned endport, usec_t since)
{
        for (unsigned i = 0; i < s->n_heads; i++)
                if ((s->shares_store || h == &s->heads[i]) && (s->is_gone[i][endport] || s->gone_at[i][endport] >= since))
                        return true;
        return false;
}

/* A port that was at its place all the time since it was found there last cannot be absent. */
static void check_absent(struct sim *s, const struct process *p, const struct knowledge *k)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                const struct seen_port *seen = &p->observer.ports[i];
                const struct fabsim_place at = s->endports[i];
                const struct knowledge_name name = { s->f.nodes[at.node].guid, at.port, KNOWLEDGE_ENDPORT };
                uint32_t record = knowledge_find(k, name);

                if (record == KNOWLEDGE_NONE || knowledge_get(k, record)->presence != KNOWLEDGE_ABSENT || seen->at == 0 ||
                    was_gone_since(s, p->head, i, seen->began) || s->moved_at[i] >= seen->began)
                        continue;
                sim_fail(s, "process %u takes node %u port %u for absent, which is there", p->number, at.node, at.port);
        }
}

/* After a sweep that reports success, everything that it could know is right. */
void promises_swept(struct sim *s, const struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        const struct judgement *by = p->judgement;
        struct basis basis;

        sim_trace(s, "%u sweep ended: %d, %u of %u ports right, %u differ, %u unreachable", p->number,
                  (int) p->last_result, status->ports.right, status->ports.managed, status->ports.differ,
                  status->ports.unreachable);
        for (unsigned i = 0; by && i < s->n_tables; i++)
                check_passed_on(s, p, &s->tables[i], p->last_result == SWEEP_DONE && status->ports.differ == 0);
        if (status->knowledge)
                check_absent(s, p, status->knowledge);
        if (p->number_taken > 0 && status->in_force && status->in_force->number <= p->number_taken)
                sim_fail(s, "process %u has generation %" PRIu64 " in force, which is another one in the store", p->number,
                         status->in_force->number);
        if (p->last_result != SWEEP_DONE || !by || status->ports.differ || status->ports.unreachable ||
            by->intent.settings.mode == MODE_AUDIT)
                return;
        observer_basis(s, p, &basis);
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!by->census.entries[i].is_seen || by->frozen >> i & 1 || basis.changes[i] || basis.elsewhere >> i & 1 ||
                    s->moved_at[i] >= by->census.began)
                        continue;
                s->counters.verified++;
                if (!endport_is_right(s, by, i))
                        not_right(s, by, i, "is called right and is not");
        }
}

/* OpenSM does not count the entries of a P_Key, so no file removes a duplicate by another writer. */
static bool is_left_by_opensm(const struct sim *s, const struct judgement *by, unsigned endport)
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];

        for (unsigned i = 1; by->intent.settings.writer == WRITER_OPENSM && i < p->capacity; i++)
                for (unsigned k = 0; k < i; k++)
                        if (p->table[i].v != 0 && p->table[i].v == p->table[k].v)
                                return true;
        return false;
}

/* Its SMA never answers. */
static bool is_silent(const struct sim *s, struct fabsim_place at)
{
        return fabsim_is_mute(&s->f, at) || keys_are_wrong(s, at);
}

/* Another port of the same adapter that is silent makes the node incomplete: then its tables are not read. */
static bool is_incomplete(const struct sim *s, struct fabsim_place at)
{
        for (uint8_t i = 1; s->f.nodes[at.node].type != NODE_SWITCH && i <= s->f.nodes[at.node].num_ports; i++)
                if (i != at.port && is_silent(s, (struct fabsim_place) { at.node, i }))
                        return true;
        return false;
}

/* The other head node may have carried out any policy, also one that was never in force here, and for any name that a port had.
 * */
static bool may_be_given(const struct sim *s, const struct process *p, unsigned endport, uint16_t base)
{
        if (s->role == ROLE_FOLLOW_SM && s->moved_at[endport] > 0)
                return true;
        if (s->n_heads > 1 && sim_has_leases(s) && base >= 0x0f01)
                return true; /* by a lease of that one */
        for (unsigned i = 0; s->role == ROLE_FOLLOW_SM && i < s->n_intents; i++)
                for (unsigned k = 0; k < s->intents[i].n_partitions; k++)
                        if (s->intents[i].partitions[k].base == base &&
                            intent_membership(&s->intents[i], &p->judgement->census, endport, k) != MEMBERSHIP_NONE)
                                return true;
        return false;
}

/* What pkeyd takes this table to hold, if it cannot read it: what it read last, and what it may have sent since. */
static bool may_hold(struct sim *s, const struct process *p, unsigned endport, struct fabsim_place at, uint16_t base)
{
        const struct table_record *r = observer_table(s, at);

        if (fabsim_level(fabsim_port_at(&s->f, at), base) > 0 || s->lid_moved_at[endport] > 0)
                return true; /* a sweep may have read another port at the LID that it had */
        for (unsigned i = 0; r && i < FABSIM_MAX_ENTRIES; i++)
                if (p->observer.tables[r - s->tables].used[i] == base)
                        return true;
        for (const struct judgement *j = s->judgements; j; j = j->next)
                if (level_by_lines(j, endport, base) > 0)
                        return true;
        return may_be_given(s, p, endport, base);
}

/* In its own table, or behind the switch port. */
static bool differs_from(const struct reach *r, uint8_t level)
{
        return r->own != level || passes_less(r);
}

static bool is_anybody_silent(const struct sim *s)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (is_silent(s, s->endports[i]) || keys_hide(s, i))
                        return true;
        return false;
}

/* Its cable may have been moved to the place of a silent device. */
static bool may_be_silent_elsewhere(const struct sim *s, const struct process *p, unsigned endport)
{
        bool is_gone = !p->judgement->census.entries[endport].is_there || s->is_replaced[s->endports[endport].node];

        return is_gone && is_anybody_silent(s);
}

/* Whether a silent port may hold this base, or is to hold it; or a frozen one does not hold what it is given. */
static bool is_kept(struct sim *s, const struct process *p, unsigned b)
{
        const uint16_t base = sim_bases[b];

        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_place at = s->endports[i], leaf = at;

                if (may_be_silent_elsewhere(s, p, i) && may_hold(s, p, i, at, base))
                        return true;
                if (!p->judgement->census.entries[i].is_there)
                        continue;
                if ((p->judgement->frozen >> i & 1 && (differs_from(&s->reach[i][b], p->judgement->level[i][b]) ||
                                                       differs_from(&s->reach[i][b], p->judgement->most[i][b]))) ||
                    is_shut(s, p->judgement, i, b))
                        return true;
                if (is_incomplete(s, at))
                        return true;
                if (!observer_leaf(s, i, &leaf) || !may_enforce(s, leaf))
                        leaf = at;
                if ((is_silent(s, at) || keys_hide(s, i) || is_silent(s, leaf)) &&
                    (may_hold(s, p, i, at, base) || may_hold(s, p, i, leaf, base)))
                        return true;
        }
        return false;
}

/* The base belongs at index 0 of this port. */
static bool belongs_first(const struct sim *s, const struct judgement *by, struct fabsim_place at, uint16_t base)
{
        unsigned partition = find_partition(by, base);

        return fabsim_is_endport(&s->f, at) && partition != UINT_MAX && by->intent.partitions[partition].index0;
}

/* A full table has no room for another base as long as it keeps an entry that is held; nor has one whose index 0 is held. */
static bool is_without_room(const struct sim *s, const struct judgement *by, const bool held[SIM_BASES], struct fabsim_place at,
                            uint16_t base)
{
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];
        unsigned first = sim_base_number(p->table[0].v & 0x7fff);
        bool keeps = false;

        if (fabsim_level(p, base) > 0)
                return false;
        if (first < SIM_BASES && held[first] && belongs_first(s, by, at, base))
                return true;
        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v == 0)
                        return false;
        for (unsigned b = 0; b < SIM_BASES; b++)
                keeps = keeps || (held[b] && fabsim_level(p, sim_bases[b]) > 0);
        return keeps;
}

/* Bases that have to wait because of silent ports. */
static void find_held(struct sim *s, const struct process *p, bool held[SIM_BASES])
{
        bool more = true;

        for (unsigned b = 0; b < SIM_BASES; b++)
                held[b] = is_kept(s, p, b);
        while (more) {
                more = false;
                for (unsigned b = 0; b < SIM_BASES; b++)
                        for (unsigned i = 0; i < s->n_endports && !held[b]; i++) {
                                struct fabsim_place leaf;

                                if (p->judgement->level[i][b] == 0)
                                        continue;
                                held[b] = is_without_room(s, p->judgement, held, s->endports[i], sim_bases[b]) ||
                                          (observer_leaf(s, i, &leaf) && may_enforce(s, leaf) &&
                                           is_without_room(s, p->judgement, held, leaf, sim_bases[b]));
                                more = more || held[b];
                        }
        }
}

/* Silent and frozen ports stay as they are. Everything that is not held because of them matches the policy. */
static void converged_without_silent(struct sim *s, const struct process *p)
{
        const struct judgement *by = p->judgement;
        bool held[SIM_BASES];
        struct fabsim_place leaf;

        s->counters.unconverged++;
        find_held(s, p, held);
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!by->census.entries[i].is_seen || by->frozen >> i & 1 || is_silent(s, s->endports[i]) ||
                    (observer_leaf(s, i, &leaf) && may_enforce(s, leaf) && is_silent(s, leaf)))
                        continue;
                for (unsigned b = 0; b < SIM_BASES; b++)
                        if (may_touch(by, sim_bases[b]) && !held[b] &&
                            s->reach[i][b].own != by->level[i][b])
                                not_right(s, by, i, "did not converge, though it answers");
        }
}

/* Certainly this one, not another one in its place. */
static bool was_read(struct sim *s, const struct process *p, struct fabsim_place at)
{
        const struct table_record *r = observer_table(s, at);

        /* with follow-sm, reads before its start, or before an apply, may be outdated by the other head node; so may reads while it
         * stood by and may have missed a policy */
        usec_t follows = s->role == ROLE_FOLLOW_SM ? MAX(p->head->started_at, p->stood_by_at) : 0;
        usec_t since = MAX(MAX(follows, p->head->replaced_at), SIM_MAYBE_READ);

        for (unsigned block = 0; r && block * P_KEY_BLOCK_ENTRIES < fabsim_port_at(&s->f, at)->capacity; block++)
                if (p->observer.tables[r - s->tables].block_at[block] <= since)
                        return false;
        return r;
}

/* It was at the same place all the time since it was last seen; otherwise the silent device is not known. */
static bool is_in_place(const struct sim *s, const struct process *p, unsigned endport)
{
        const struct fabsim_port *port = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];
        const struct seen_port *seen = &p->observer.ports[endport];

        if (seen->at == 0 || seen->entry.is_ambiguous || s->gone_at[p->head - s->heads][endport] >= seen->began)
                return false;
        return !port->is_cabled || (seen->entry.is_cabled && seen->entry.cable.node == port->peer_node &&
                                    seen->entry.cable.port == port->peer_port);
}

/* A present port that was never read may hold any base, so every base waits. So may ports behind a switch that is not
 * discovered. */
static bool anything_may_be_held(struct sim *s, const struct process *p, const struct judgement *by)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                const struct census_entry *e = &by->census.entries[i];
                bool is_read = was_read(s, p, s->endports[i]) && is_in_place(s, p, i);

                if (!e->is_there)
                        continue;
                if (e->type == NODE_SWITCH && !e->is_seen)
                        return true;
                if (!is_read && (is_silent(s, s->endports[i]) || is_incomplete(s, s->endports[i]) || keys_hide(s, i)))
                        return true;
        }
        return false;
}

/* The port of the master SM does not let itself be discovered: then nothing is written. */
static bool sm_is_hidden(const struct sim *s)
{
        unsigned sm = world_endport_at(s, s->f.sm);

        return sm == UINT32_MAX || !s->f.nodes[s->f.sm.node].ports[s->f.sm.port].is_cabled || is_silent(s, s->f.sm) ||
               keys_hide(s, sm);
}

static bool any_is_shut(const struct sim *s, const struct judgement *by, unsigned endport)
{
        for (unsigned b = 0; b < SIM_BASES; b++)
                if (is_shut(s, by, endport, b))
                        return true;
        return false;
}

/* ... or frozen, for a reason that is there, or behind a switch port that stays closed. */
static bool a_port_is_silent(struct sim *s, const struct judgement *by)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if ((by && any_is_shut(s, by, i)) || (by && by->frozen >> i & 1) || is_silent(s, s->endports[i]) || keys_hide(s, i))
                        return true;
        return false;
}

/* What belongs at index 0 without leases; 0: nothing. */
static uint16_t usual_at_index0(const struct judgement *by, unsigned endport)
{
        struct p_key wants[SIM_MAX_WANTS];
        unsigned n = wants_of(by, endport, false, wants);
        uint16_t ret = 0;

        for (unsigned i = 0; i < n; i++) {
                unsigned x = find_partition(by, wants[i].v & 0x7fff);

                if (x != UINT_MAX && (by->intent.partitions[x].index0 || (x == 0 && ret == 0)))
                        ret = by->intent.partitions[x].base;
        }
        return ret;
}

/* A lease has index 0 if it asked for it, and leaves it to the partition that had it before. */
static void check_index0(struct sim *s, const struct judgement *by, unsigned endport)
{
        const struct fabsim_port *p = fabsim_port_at(&s->f, s->endports[endport]);
        uint16_t leased = leased_at_index0(by, endport), has = p->table[0].v & 0x7fff;
        const struct intent_pool *pool = intent_pool_of(&by->intent, has);
        bool is_left = has == 0 || (pool && pool->index0), is_full = true;

        for (unsigned i = 1; i < p->capacity; i++)
                is_full &= (p->table[i].v & 0x7fff) != 0;
        if (is_full || p->swallows.v != 0 || (has != 0 && !may_touch(by, has)) || by->intent.settings.writer == WRITER_OPENSM)
                return;
        if (leased > 0 && has != leased)
                not_right(s, by, endport, "does not have the P_Key of its lease at index 0");
        if (leased == 0 && is_left && intent_has_index0_pool(&by->intent) && usual_at_index0(by, endport) > 0)
                not_right(s, by, endport, "was left without its partition at index 0");
}

static void all_converged(struct sim *s, const struct process *p, const struct judgement *by)
{
        s->counters.converged++;
        clients_settled(s, p);
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                const struct census_entry *e = &by->census.entries[i];

                if (e->is_there && !e->is_seen)
                        not_right(s, by, i, "was not discovered");
                else if (e->is_seen && !endport_is_right(s, by, i) && !is_left_by_opensm(s, by, i))
                        not_right(s, by, i, "did not converge");
                else if (e->is_seen)
                        check_index0(s, by, i);
        }
}

/* A filter waits as long as ports have entries that are not pkeyd's (owns): no port failed, and endports are right all the
 * same. */
static bool only_a_filter_waits(const struct process *p, const struct control_status *status)
{
        size_t n = 0;

        if (status->held)
                (void) held_list_items(status->held, &n);
        for (uint32_t i = 0; status->snapshot && i < status->snapshot->subnet->n_ports; i++)
                if (status->snapshot->failed[i])
                        return false;
        return p->last_result == SWEEP_PARTIAL && n > 0;
}

void promises_converged(struct sim *s, const struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        const struct judgement *by = p->judgement;
        bool is_calm = !a_port_is_silent(s, by);

        if (p->n_requests > 0)
                sim_fail(s, "process %u: a reload was not answered", p->number);
        if ((p->last_result == SWEEP_DONE || p->last_result == SWEEP_PARTIAL) && is_calm)
                ledger_settled(s, p);
        if (status->in_force && generation_waits(&status->in_force->facts) && status->in_force->number == p->head->waits &&
            (p->last_result == SWEEP_DONE || p->last_result == SWEEP_PARTIAL) &&
            s->now > p->head->waits_until + 90 * USEC_PER_SEC)
                sim_fail(s, "process %u: generation %" PRIu64 " still waits", p->number, p->head->waits);
        if (p->last_result == SWEEP_REFUSED && !status->in_force) {
                s->counters.refused++; /* a first policy with errors is not begun with */
                return;
        }
        if (p->last_result == SWEEP_WAITS && fabsim_port_at(&s->f, p->head->place)->lid.v == 0) {
                s->counters.unconverged++; /* no SM is there that could give the head node a LID */
                return;
        }
        if ((p->last_result == SWEEP_FAILED && sm_is_hidden(s)) || (by && !is_calm && anything_may_be_held(s, p, by))) {
                s->counters.unconverged++;
                return;
        }
        if ((p->last_result == SWEEP_PARTIAL || p->last_result == SWEEP_DONE) && !is_calm) {
                if (by && status->writing && by->intent.settings.writer == WRITER_DIRECT)
                        converged_without_silent(s, p);
                return;
        }
        if (p->last_result == SWEEP_FAILED && !is_calm)
                return; /* the fabric is behind a switch that does not answer */
        if ((p->last_result != SWEEP_DONE && !only_a_filter_waits(p, status)) || !by)
                sim_fail(s, "process %u did not converge: its last sweep ended with %d (%s)", p->number, (int) p->last_result,
                         status->text);
        else if (status->writing && is_calm)
                all_converged(s, p, by);
}
