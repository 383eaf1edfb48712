/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must be true, seen from the fabric: nobody asks here what pkeyd believes, but where the promise is about what it says
 * (promises_swept).
 *
 * Each write is judged alone, on the hardware as it is when the write arrives, by the policy that was in force when it was
 * sent, in two models of a switch:
 *
 *     isolation    two endports that come to talk in a base by it are to talk by the policy
 *     continuity   two endports that are to talk by the policy, and do, still do
 *     ownership    entries of bases that are not pkeyd's stay as they are
 *     stability    an entry that is wanted stays at its index
 *     indexes      no index passes from one base to another while one that was never used is left
 *
 * The promises are about what pkeyd could know. A pair of endports is *armed* for a process if it read all of both tables, and
 * those of the switch ports beside them, after anything else than pkeyd last changed them, and discovered both after their
 * cables or names last changed. Without that the hardware is not what it saw: a rival who grants an entry behind pkeyd's back
 * breaks isolation by himself. One end only is never enough. A port whose hardware tells lies about what a Set did is not
 * armed either. pkeyd's own unconfirmed Sets, lost answers, and kills do not disarm anything.
 *
 * A switch port that cannot hold what is wanted, or holds what is not pkeyd's, is let go (enforcement_overflow), which is
 * reported and not promised: in a base where only it keeps an endport from others, that endport is left out.
 */

#include <infiniband/mad.h>
#include <string.h>

#include "sim.h"
#include "util/cleanup.h"

static struct table_record *record_at(struct sim *s, struct fabsim_place p)
{
        return &s->tables[p.node][p.port];
}

static bool may_enforce(const struct sim *s, struct fabsim_place p)
{
        const struct fabsim_node *n = &s->f.nodes[p.node];

        return n->type == NODE_SWITCH && p.port > 0 && n->partition_enforcement_cap > 0 &&
               (n->inbound_cap || n->outbound_cap);
}

/* The switch port beside an endport. */
static bool leaf_of(const struct sim *s, unsigned endport, struct fabsim_place *ret)
{
        return fabsim_neighbour(&s->f, s->endports[endport], ret) && s->f.nodes[ret->node].type == NODE_SWITCH;
}

/* The endport that a place is, or has beside it; UINT32_MAX: none. */
static unsigned endport_beside(const struct sim *s, struct fabsim_place at)
{
        struct fabsim_place peer;

        if (fabsim_is_endport(&s->f, at))
                return world_endport_at(s, at);
        return fabsim_neighbour(&s->f, at, &peer) ? world_endport_at(s, peer) : UINT32_MAX;
}

/* --- reach ----------------------------------------------------------------------------------------------------------- */

static void reach_of(const struct sim *s, unsigned endport, struct reach ret[SIM_BASES])
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port], *leaf;
        struct fabsim_place at;
        bool has_leaf = leaf_of(s, endport, &at);

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

/* Only the switch port keeps this endport from what its own table gives it. */
static bool is_held_back(const struct reach *r)
{
        return r->sends[0] != r->own || r->sends[1] != r->own || r->receives[0] != r->own || r->receives[1] != r->own;
}

/* --- what a process knows -------------------------------------------------------------------------------------------- */

/* Of a port: nothing but this process changed it since it read it, which was after `since`. */
static bool table_is_known(const struct sim *s, const struct process *p, const struct judgement *by, usec_t since,
                           struct fabsim_place at)
{
        const struct fabsim_port *port = &s->f.nodes[at.node].ports[at.port];
        const struct table_record *r = &s->tables[at.node][at.port];
        usec_t changed_at = MAX(r->changed_at, since);

        /* the bits of a switch port are seen at discovery only */
        if (r->moved_at >= by->census.began || (!fabsim_is_endport(&s->f, at) && r->changed_at >= by->census.began))
                return false;
        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
                if (i != p->number)
                        changed_at = MAX(changed_at, r->set_at[i]);
        for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < port->capacity; block++)
                if (p->reads[at.node][at.port].block_at[block] <= changed_at)
                        return false;
        return true;
}

/* A table that does not take an entry, and says so, breaks nothing: pkeyd compares the answer and holds the base. But what is
 * moved within one block (a repair of index 0) is gone from its old place by then. */
static bool is_sound(const struct judgement *by, const struct fabsim_port *p)
{
        return !p->lies && (p->swallows.v == 0 || !by->intent.settings.repair_index0);
}

/* The switch beside it went or came, so nobody knows what was seen of it. */
static bool switch_moved(const struct sim *s, const struct judgement *by, unsigned endport)
{
        const struct fabsim_port *port = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];

        return port->is_cabled && s->tables[port->peer_node][port->peer_port].moved_at >= by->census.began;
}

static bool is_armed(const struct sim *s, const struct process *p, const struct judgement *by, usec_t since, unsigned endport)
{
        struct fabsim_place at = s->endports[endport];

        if (switch_moved(s, by, endport))
                return false;
        if (!by->census.entries[endport].is_seen || !table_is_known(s, p, by, since, at) ||
            !is_sound(by, &s->f.nodes[at.node].ports[at.port]))
                return false;
        if (!leaf_of(s, endport, &at) || !may_enforce(s, at))
                return true;
        return table_is_known(s, p, by, since, at) && is_sound(by, &s->f.nodes[at.node].ports[at.port]);
}

static unsigned find_node(const struct sim *s, struct guid guid)
{
        unsigned n = 0;

        while (n < s->f.n_nodes && s->f.nodes[n].guid.v != guid.v)
                n++;
        return n;
}

/* What is in a new snapshot is known as before, the rest is not: a port that was not found, or of which too little was. And
 * an endport is plugged into a switch if the switch was found. */
void promises_snapshot(struct sim *s, struct process *p, const struct subnet *subnet)
{
        bool node_seen[FABSIM_MAX_NODES] = {}, seen[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1] = {};

        for (uint32_t i = 0; i < subnet->n_nodes; i++)
                if (!subnet->nodes[i].incomplete && find_node(s, subnet->nodes[i].guid) < s->f.n_nodes)
                        node_seen[find_node(s, subnet->nodes[i].guid)] = true;
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                unsigned n = find_node(s, subnet_port_node(subnet, &subnet->ports[i])->guid);

                if (n < s->f.n_nodes && !subnet_port_is_incomplete(subnet, &subnet->ports[i]))
                        seen[n][subnet->ports[i].number] = true;
        }
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= FABSIM_MAX_PORTS; i++)
                        if (!seen[n][i])
                                p->reads[n][i] = (struct table_reads) {};
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct census_entry *e = &p->adopted.entries[i];

                e->is_seen = seen[s->endports[i].node][s->endports[i].port];
                e->is_plugged = e->is_plugged && node_seen[e->plugged_into.node];
        }
}

/* The endport at a place, and the one beside it. */
static void update_reach(struct sim *s, struct fabsim_place at)
{
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);
        unsigned endport = UINT32_MAX;

        if (fabsim_is_endport(&s->f, at))
                endport = world_endport_at(s, at);
        else if (p->is_cabled) /* whether it is up or not */
                endport = world_endport_at(s, (struct fabsim_place) { p->peer_node, p->peer_port });
        if (endport != UINT32_MAX)
                reach_of(s, endport, s->reach[endport]);
}

void promises_disturbed(struct sim *s, struct fabsim_place at)
{
        record_at(s, at)->changed_at = s->now;
        record_at(s, at)->was_disturbed = true;
        update_reach(s, at);
}

void promises_moved(struct sim *s, struct fabsim_place at)
{
        record_at(s, at)->moved_at = s->now;
        update_reach(s, at);
}

/* --- pairs ----------------------------------------------------------------------------------------------------------- */

/* What an endport should be in a base. */
static uint8_t level_wanted(const struct sim *s, const struct judgement *by, unsigned endport, uint16_t base)
{
        uint8_t level = 0;

        for (unsigned i = 0; i < by->intent.n_partitions; i++) {
                enum membership m = by->intent.partitions[i].base == base ?
                                            intent_membership(s, &by->intent, &by->census, endport, i) :
                                            MEMBERSHIP_NONE;

                if (m != MEMBERSHIP_NONE)
                        level = m == MEMBERSHIP_LIMITED ? 1 : 2;
        }
        return level;
}

struct change {
        const struct basis *basis;
        unsigned endport;
        bool skip[SIM_BASES];            /* in these bases the switch port was let go */
        struct reach before[SIM_BASES];
};

static void check_direction(struct sim *s, const struct change *c, unsigned other, unsigned b, int strict, bool sends)
{
        const struct reach *was = &c->before[b], *is = &s->reach[c->endport][b], *peer = &s->reach[other][b];
        bool before = sends ? passes(was, peer, strict) : passes(peer, was, strict);
        bool after = sends ? passes(is, peer, strict) : passes(peer, is, strict);
        uint8_t x, y;
        bool wanted;

        s->counters.pairs_checked++;
        if (before == after)
                return;
        x = level_wanted(s, c->basis->by, c->endport, sim_bases[b]);
        y = level_wanted(s, c->basis->by, other, sim_bases[b]);
        wanted = x && y && (x == 2 || y == 2);
        sim_trace(s, "base 0x%04x, endports %u and %u %s talk: wanted levels %u and %u, %u/%u becomes %u/%u, the other is %u/%u",
                  sim_bases[b], c->endport, other, after ? "come to" : "cease to", x, y, was->sends[strict], was->receives[strict],
                  is->sends[strict], is->receives[strict], peer->sends[strict], peer->receives[strict]);
        if (before == wanted || !intent_may_touch(&c->basis->by->intent, sim_bases[b]))
                sim_fail(s, "process %u broke %s (%s): node %u port %u %s node %u port %u, base 0x%04x", c->basis->process,
                         before ? "continuity" : "isolation", strict ? "strict" : "lenient", s->endports[c->endport].node,
                         s->endports[c->endport].port, sends ? "to" : "from", s->endports[other].node,
                         s->endports[other].port, sim_bases[b]);
}

static bool differs(const struct reach *x, const struct reach *y)
{
        return memcmp(x->sends, y->sends, sizeof(x->sends)) != 0 || memcmp(x->receives, y->receives, sizeof(x->receives)) != 0;
}

struct basis promises_basis(const struct sim *s, const struct process *p, usec_t since)
{
        struct basis basis = { .by = p->judgement, .process = p->number, .life = p->life, .since = s->now };

        for (unsigned i = 0; basis.by && i < s->n_endports; i++)
                basis.armed |= (uint64_t) is_armed(s, p, basis.by, since, i) << i;
        return basis;
}

static bool changed_since(const struct sim *s, const struct basis *basis, struct fabsim_place at)
{
        const struct table_record *r = &s->tables[at.node][at.port];
        usec_t changed_at = MAX(r->changed_at, r->moved_at);

        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
                if (i != basis->process)
                        changed_at = MAX(changed_at, r->set_at[i]);
        return changed_at >= basis->since;
}

/* It was armed then, and nothing else changed it since. */
static bool counts(const struct sim *s, const struct basis *basis, unsigned endport)
{
        struct fabsim_place leaf;

        return basis->armed >> endport & 1 && !changed_since(s, basis, s->endports[endport]) &&
               !(leaf_of(s, endport, &leaf) && changed_since(s, basis, leaf));
}

static void check_pairs(struct sim *s, const struct change *c)
{
        if (!counts(s, c->basis, c->endport))
                return;
        for (unsigned b = 0; b < SIM_BASES; b++) {
                if (c->skip[b] || !differs(&c->before[b], &s->reach[c->endport][b]))
                        continue;
                for (unsigned other = 0; other < s->n_endports; other++) {
                        if (other == c->endport || !counts(s, c->basis, other))
                                continue;
                        for (int strict = 0; strict < 2; strict++) {
                                check_direction(s, c, other, b, strict, true);
                                check_direction(s, c, other, b, strict, false);
                        }
                }
        }
}

/* Entries that are not pkeyd's to change, or what may not fit: then a switch port may be left to itself. */
static bool leaf_is_special(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place leaf,
                            const struct fabsim_port *leaf_before)
{
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        const struct fabsim_port *ports[] = { leaf_before, &s->f.nodes[leaf.node].ports[leaf.port],
                                              &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port] };

        for (unsigned k = 0; k < ELEMENTS(ports); k++)
                for (unsigned i = 0; i < ports[k]->capacity; i++)
                        if (ports[k]->table[i].v & 0x7fff && !intent_may_touch(&by->intent, ports[k]->table[i].v & 0x7fff))
                                return true;
        /* up to twice what is wanted may be there on the way */
        return 2 * intent_wants(s, &by->intent, &by->census, endport, true, wants) + SIM_BASES > ports[0]->capacity;
}

static void judge(struct sim *s, const struct basis *basis, unsigned endport, struct fabsim_place at,
                  const struct fabsim_port *before)
{
        struct change c = { .basis = basis, .endport = endport };
        struct fabsim_place leaf;
        bool let_go = leaf_of(s, endport, &leaf) && may_enforce(s, leaf) &&
                      leaf_is_special(s, basis->by, endport, leaf,
                                      fabsim_is_endport(&s->f, at) ? fabsim_port_at(&s->f, leaf) : before);

        memcpy(c.before, s->reach[endport], sizeof(c.before));
        for (unsigned b = 0; b < SIM_BASES; b++)
                c.skip[b] = let_go && is_held_back(&c.before[b]);
        reach_of(s, endport, s->reach[endport]);
        check_pairs(s, &c);
}

void promises_rewritten(struct sim *s, const struct basis *basis, unsigned endport)
{
        struct change c = { .basis = basis, .endport = endport };

        memcpy(c.before, s->reach[endport], sizeof(c.before));
        /* OpenSM makes every port a member of the default partition, whatever its file says */
        c.skip[0] = c.before[0].own == 0 || is_held_back(&c.before[0]);
        reach_of(s, endport, s->reach[endport]);
        check_pairs(s, &c);
}

/* --- entries --------------------------------------------------------------------------------------------------------- */

static void note_index(struct table_record *r, uint64_t life, unsigned index, uint16_t before, uint16_t after,
                       bool counts)
{
        if (after == before)
                return;
        if (after == 0) {
                r->freed[index] = before;
                r->freed_by[index] = life;
                return;
        }
        if (counts && (before != 0 || (r->freed[index] && r->freed[index] != after)))
                r->passed_on = true;
        r->freed[index] = 0;
}

static unsigned count_base(const struct fabsim_port *p, uint16_t base)
{
        unsigned n = 0;

        for (unsigned i = 0; i < p->capacity; i++)
                n += (p->table[i].v & 0x7fff) == base;
        return n;
}

/* An entry that is wanted stays at its index; so does a base of one entry that is to have one entry. */
static void check_stability(struct sim *s, const struct judgement *by, struct fabsim_place at, unsigned endport,
                            const struct fabsim_port *before, unsigned index)
{
        uint16_t key = before->table[index].v, now = fabsim_port_at(&s->f, at)->table[index].v, base = key & 0x7fff;
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, &by->intent, &by->census, endport, !fabsim_is_endport(&s->f, at), wants), with_base = 0;
        bool wanted = false;

        if (base == 0 || by->intent.settings.repair_index0 || count_base(before, base) != 1)
                return;
        for (unsigned i = 0; i < n; i++) {
                wanted |= wants[i].v == key;
                with_base += (wants[i].v & 0x7fff) == base;
        }
        if (wanted && now != key)
                sim_fail(s, "stability broken: 0x%04x at index %u of node %u port %u became 0x%04x", key, index, at.node,
                         at.port, now);
        if (with_base == 1 && (now & 0x7fff) != base)
                sim_fail(s, "stability broken: base 0x%04x left index %u of node %u port %u", base, index, at.node, at.port);
}

static void check_entries(struct sim *s, const struct basis *basis, struct fabsim_place at, const struct fabsim_port *before)
{
        const struct fabsim_port *now = fabsim_port_at(&s->f, at);
        const struct intent *it = &basis->by->intent;
        unsigned endport = endport_beside(s, at);
        bool armed = endport != UINT32_MAX && counts(s, basis, endport);

        for (unsigned i = 0; i < now->capacity; i++) {
                uint16_t old = before->table[i].v & 0x7fff, new = now->table[i].v & 0x7fff;

                if (before->table[i].v == now->table[i].v)
                        continue;
                sim_trace(s, "node %u port %u index %u: 0x%04x becomes 0x%04x", at.node, at.port, i, before->table[i].v,
                          now->table[i].v);
                if (armed && ((old && !intent_may_touch(it, old)) || (new && !intent_may_touch(it, new))))
                        sim_fail(s, "index %u of node %u port %u: 0x%04x became 0x%04x, which is not pkeyd's", i, at.node,
                                 at.port, before->table[i].v, now->table[i].v);
                if (armed)
                        check_stability(s, basis->by, at, endport, before, i);
                note_index(record_at(s, at), basis->life, i, old, new, i > 0 || !fabsim_is_endport(&s->f, at));
        }
}

void promises_changed(struct sim *s, const struct basis *basis, struct fabsim_place at, const struct fabsim_port *before)
{
        unsigned endport = endport_beside(s, at);
        struct table_record *r = record_at(s, at);

        if (!basis->by) {
                sim_fail(s, "a Set by no policy");
                return;
        }
        r->set_at[basis->process] = s->now;
        /* it was killed, and what it frees now nobody remembers; nor does a head node what the other one freed */
        r->was_disturbed |= basis->life != s->processes[basis->process].life || s->n_heads > 1;
        check_entries(s, basis, at, before);
        if (endport != UINT32_MAX)
                judge(s, basis, endport, at, before);
}

/* Index 0 of an endport is for one partition only, and a repair moves what it must. What else changed the table may have used
 * up indexes, too. */
static void check_passed_on(struct sim *s, struct fabsim_place at, const struct intent *it, bool all_done)
{
        struct table_record *r = record_at(s, at);
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);
        bool passed_on = r->passed_on;

        r->passed_on = false;
        if (!passed_on || !all_done || r->was_disturbed || it->settings.repair_index0)
                return;
        s->counters.passed_on_checked++;
        for (unsigned i = fabsim_is_endport(&s->f, at) ? 1 : 0; i < p->capacity; i++)
                if ((p->table[i].v & 0x7fff) == 0 && r->freed[i] == 0)
                        sim_fail(s, "an index of node %u port %u went to another base, though %u was never used", at.node,
                                 at.port, i);
}

void promises_stored(struct sim *s, const struct process *p)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= FABSIM_MAX_PORTS; i++)
                        for (unsigned k = 0; k < FABSIM_MAX_ENTRIES; k++)
                                if (s->tables[n][i].freed_by[k] == p->life)
                                        s->tables[n][i].freed_by[k] = 0;
}

/* What it freed and had not stored is forgotten, and so is what it knew of tables. */
void promises_lost(struct sim *s, const struct process *p)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= FABSIM_MAX_PORTS; i++)
                        for (unsigned k = 0; k < FABSIM_MAX_ENTRIES; k++)
                                if (s->tables[n][i].freed_by[k] == p->life && s->tables[n][i].freed[k]) {
                                        s->tables[n][i].freed[k] = 0;
                                        s->tables[n][i].was_disturbed = true;
                                }
}

/* --- who writes, and when -------------------------------------------------------------------------------------------- */

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
        if (attribute != SMP_ATTR_P_KEY_TABLE && (!is_switch || modifier == 0))
                sim_fail(s, "a Set(PortInfo) to an endport");
        world_check_writer(s, p);
}

/* --- what is said, and where it ends --------------------------------------------------------------------------------- */

static bool table_is_right(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place at)
{
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, &by->intent, &by->census, endport, !fabsim_is_endport(&s->f, at), wants), found = 0;
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

        for (unsigned i = 0; i < p->capacity; i++) {
                uint16_t base = p->table[i].v & 0x7fff;
                bool wanted = false;

                if (base == 0 || !intent_may_touch(&by->intent, base))
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
                if (wants[k].v && !intent_may_touch(&by->intent, wants[k].v & 0x7fff))
                        found++;
        return found == n;
}

/* OpenSM sees to these itself. */
static bool leaf_is_right(const struct sim *s, const struct judgement *by, unsigned endport, struct fabsim_place leaf)
{
        const struct fabsim_node *n = &s->f.nodes[leaf.node];
        const struct fabsim_port *p = &n->ports[leaf.port];
        enum settings_enforcement e = by->intent.settings.enforcement;

        if (by->intent.settings.writer == WRITER_OPENSM || leaf_is_special(s, by, endport, leaf, p))
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
        return !by->census.entries[endport].is_plugged || !leaf_of(s, endport, &leaf) || !may_enforce(s, leaf) ||
               leaf_is_right(s, by, endport, leaf);
}

static void not_right(struct sim *s, const struct judgement *by, unsigned endport, const char *what)
{
        struct fabsim_place at = s->endports[endport], leaf = {};
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, &by->intent, &by->census, endport, false, wants);
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);

        (void) leaf_of(s, endport, &leaf);
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

/* pkeyd leaves it as it is: two claim its name, or its table is too small since it was plugged in elsewhere. */
static bool is_frozen(const struct sim *s, const struct control_status *status, unsigned endport)
{
        struct fabsim_place at = s->endports[endport];

        for (uint32_t i = 0; i < status->n_frozen; i++)
                if (status->frozen[i].node_guid.v == s->f.nodes[at.node].guid.v && status->frozen[i].number == at.port)
                        return true;
        return false;
}

/* After a sweep that reports that all is well, all is well that it could know. */
void promises_swept(struct sim *s, const struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        const struct judgement *by = p->judgement;

        sim_trace(s, "%u sweep ended: %d, %u of %u ports right, %u differ, %u unreachable", p->number,
                  (int) p->last_result, status->ports.right, status->ports.managed, status->ports.differ,
                  status->ports.unreachable);
        for (unsigned n = 0; by && n < s->f.n_nodes; n++)
                for (uint8_t i = 0; i <= s->f.nodes[n].num_ports; i++)
                        check_passed_on(s, (struct fabsim_place) { n, i }, &by->intent, p->last_result == SWEEP_DONE);
        if (p->last_result != SWEEP_DONE || !by || status->ports.differ || status->ports.unreachable ||
            by->intent.settings.mode == MODE_AUDIT)
                return;
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!is_armed(s, p, by, 0, i) || is_frozen(s, status, i))
                        continue;
                s->counters.verified++;
                if (!endport_is_right(s, by, i))
                        not_right(s, by, i, "is called right and is not");
        }
}

/* Another port of the same adapter without its M_Key makes the node incomplete: then its tables are not read, and what pkeyd
 * takes them to hold may be long gone. */
static bool is_incomplete(const struct sim *s, struct fabsim_place at)
{
        for (uint8_t i = 1; s->f.nodes[at.node].type != NODE_SWITCH && i <= s->f.nodes[at.node].num_ports; i++)
                if (i != at.port && keys_are_wrong(s, (struct fabsim_place) { at.node, i }))
                        return true;
        return false;
}

/* Whether a port without its M_Key holds this base, or is to hold it. */
static bool is_kept(const struct sim *s, const struct judgement *by, uint16_t base)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_place at = s->endports[i], leaf = at;

                if (is_incomplete(s, at))
                        return true;
                if (!leaf_of(s, i, &leaf) || !may_enforce(s, leaf))
                        leaf = at;
                if ((keys_are_wrong(s, at) || keys_are_wrong(s, leaf)) &&
                    (level_wanted(s, by, i, base) > 0 || fabsim_level(&s->f.nodes[at.node].ports[at.port], base) > 0 ||
                     fabsim_level(&s->f.nodes[leaf.node].ports[leaf.port], base) > 0))
                        return true;
        }
        return false;
}

/* A full table has no room for another base as long as it keeps an entry that is held. */
static bool is_without_room(const struct sim *s, const bool held[SIM_BASES], struct fabsim_place at, uint16_t base)
{
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];
        bool keeps = false;

        if (fabsim_level(p, base) > 0)
                return false;
        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v == 0)
                        return false;
        for (unsigned b = 0; b < SIM_BASES; b++)
                keeps = keeps || (held[b] && fabsim_level(p, sim_bases[b]) > 0);
        return keeps;
}

static bool is_held_by_frozen(const struct sim *s, const struct control_status *status, uint16_t base)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_place at = s->endports[i];
                const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

                for (unsigned k = 0; is_frozen(s, status, i) && k < p->capacity; k++)
                        if (p_key_is_used(p->table[k]) && p_key_base(p->table[k]) == base)
                                return true;
        }
        return false;
}

/* Bases that have to wait, because of ports without their M_Key, or because of what frozen ports hold. */
static void find_held(const struct sim *s, const struct judgement *by, const struct control_status *status, bool held[SIM_BASES])
{
        bool more = true;

        for (unsigned b = 0; b < SIM_BASES; b++)
                held[b] = is_kept(s, by, sim_bases[b]) || is_held_by_frozen(s, status, sim_bases[b]);
        while (more) {
                more = false;
                for (unsigned b = 0; b < SIM_BASES; b++)
                        for (unsigned i = 0; i < s->n_endports && !held[b]; i++) {
                                struct fabsim_place leaf;

                                if (level_wanted(s, by, i, sim_bases[b]) == 0)
                                        continue;
                                held[b] = is_without_room(s, held, s->endports[i], sim_bases[b]) ||
                                          (leaf_of(s, i, &leaf) && may_enforce(s, leaf) &&
                                           is_without_room(s, held, leaf, sim_bases[b]));
                                more = more || held[b];
                        }
        }
}

/* Ports whose M_Key pkeyd has not got stay as they are, and frozen ones. What is not held because of them is as the policy says. */
static void converged_in_part(struct sim *s, const struct judgement *by, const struct control_status *status)
{
        bool held[SIM_BASES];
        struct fabsim_place leaf;

        s->counters.unconverged++;
        find_held(s, by, status, held);
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!by->census.entries[i].is_seen || keys_are_wrong(s, s->endports[i]) || is_frozen(s, status, i) ||
                    (leaf_of(s, i, &leaf) && may_enforce(s, leaf) && keys_are_wrong(s, leaf)))
                        continue;
                for (unsigned b = 0; b < SIM_BASES; b++)
                        if (intent_may_touch(&by->intent, sim_bases[b]) && !held[b] &&
                            s->reach[i][b].own != level_wanted(s, by, i, sim_bases[b]))
                                not_right(s, by, i, "did not converge, though its M_Key is right, and it is not frozen");
        }
}

/* A port that is there, and was never read, may hold any base: then every base waits. */
static bool anything_may_be_held(const struct sim *s, const struct process *p, const struct judgement *by)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_place at = s->endports[i];

                if (!by->census.entries[i].is_there || (s->n_wrong_keys == 0 && !keys_hide(s, i)))
                        continue;
                if (!by->census.entries[i].is_seen || p->reads[at.node][at.port].block_at[0] == 0)
                        return true;
        }
        return false;
}

void promises_converged(struct sim *s, const struct process *p)
{
        const struct control_status *status = control_get_status(p->control);
        const struct judgement *by = p->judgement;

        if (p->n_requests > 0)
                sim_fail(s, "process %u: a reload was not answered", p->number);
        if (p->last_result == SWEEP_REFUSED) {
                s->counters.refused++;
                return;
        }
        if (by && anything_may_be_held(s, p, by)) {
                s->counters.unconverged++;
                return;
        }
        if ((p->last_result == SWEEP_PARTIAL && s->n_wrong_keys > 0) || (p->last_result == SWEEP_DONE && status->n_frozen > 0)) {
                if (by && status->writing && by->intent.settings.writer == WRITER_DIRECT)
                        converged_in_part(s, by, status);
                return;
        }
        if (p->last_result == SWEEP_FAILED && s->n_wrong_keys > 0)
                return; /* the fabric, or the master SM, is behind a switch that answers nobody */
        if (p->last_result != SWEEP_DONE || !by)
                sim_fail(s, "process %u did not converge: its last sweep ended with %d (%s)", p->number, (int) p->last_result,
                         status->text);
        if (!by || !status->writing)
                return;
        s->counters.converged++;
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (by->census.entries[i].is_there && !by->census.entries[i].is_seen && s->n_wrong_keys == 0 && !keys_hide(s, i))
                        not_right(s, by, i, "was not discovered");
                if (by->census.entries[i].is_seen && !endport_is_right(s, by, i))
                        not_right(s, by, i, "did not converge");
        }
}
