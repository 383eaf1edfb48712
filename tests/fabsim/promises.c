/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must be true, seen from the fabric: what pkeyd believes is asked only where the promise is about what it says
 * (promises_verified).
 *
 * A transition lasts from the moment a plan was made until its apply ended (if pkeyd is killed, until it starts again and
 * all that was in flight has arrived). A is what the tables really hold at its beginning, B what the policy means,
 * by the oracle in intent.c.
 *
 * Continuity and isolation are checked for every ordered pair of endports and every base, in two models of a switch, after
 * every Set that arrived. A pair is *armed* if pkeyd read the tables of both ends, and those of the switch ports beside
 * them, whole at some time in its life, and nobody else changed them, or what is plugged in, since then. Without that A is
 * not what pkeyd saw, and the promise (from the *observed* A to B) says nothing: a rival who grants an entry behind pkeyd's
 * back breaks isolation by himself. One end only is never enough. A port whose hardware tells lies about what a Set did is
 * not armed either. Unconfirmed Sets of pkeyd's own, lost answers, and kills do not disarm anything.
 *
 * Bases that are not pkeyd's stay as they are: there A and B are the same. A port where in A only a switch that enforces
 * keeps such a base from passing is left out in that base, for the switch port may be asked to end enforcing; and in any
 * base if the switch port's table is too small for what is wanted, or holds what is not pkeyd's, for it is let go then
 * (enforcement_overflow), which is said and not promised.
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

/* --- reach ----------------------------------------------------------------------------------------------------------- */

static void reach_of(const struct sim *s, unsigned endport, struct reach ret[SIM_BASES])
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port], *leaf;
        struct fabsim_place at;
        bool has_leaf = leaf_of(s, endport, &at);

        leaf = has_leaf ? &s->f.nodes[at.node].ports[at.port] : NULL;
        for (unsigned b = 0; b < SIM_BASES; b++) {
                int own = fabsim_level(p, sim_bases[b]), here = leaf ? fabsim_level(leaf, sim_bases[b]) : 2;

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

static void check_pair(struct sim *s, unsigned x, unsigned y)
{
        struct transition *t = &s->transition;

        for (unsigned b = 0; b < SIM_BASES; b++)
                for (int strict = 0; strict < 2; strict++) {
                        bool from = passes(&t->from[x][b], &t->from[y][b], strict);
                        bool to = passes(&t->to[x][b], &t->to[y][b], strict);

                        if (from != to || t->skip[x][b] || t->skip[y][b])
                                continue;
                        if (passes(&t->now[x][b], &t->now[y][b], strict) != from)
                                sim_fail(s, "%s broken (%s): node %u port %u to node %u port %u, base 0x%04x",
                                         from ? "continuity" : "isolation", strict ? "strict" : "lenient",
                                         s->endports[x].node, s->endports[x].port, s->endports[y].node,
                                         s->endports[y].port, sim_bases[b]);
                        s->counters.pairs_checked++;
                }
}

/* After the table of an endport, or that of the switch port beside it, changed. */
static void check_endport(struct sim *s, unsigned endport)
{
        struct transition *t = &s->transition;

        reach_of(s, endport, t->now[endport]);
        if (!t->is_on || !t->armed[endport])
                return;
        for (unsigned other = 0; other < s->n_endports; other++)
                if (other != endport && t->armed[other]) {
                        check_pair(s, endport, other);
                        check_pair(s, other, endport);
                }
}

/* The endport that a place is, or has beside it. */
static unsigned endport_beside(const struct sim *s, struct fabsim_place at)
{
        struct fabsim_place peer;

        if (fabsim_is_endport(&s->f, at))
                return world_endport_at(s, at);
        return fabsim_neighbour(&s->f, at, &peer) ? world_endport_at(s, peer) : UINT32_MAX;
}

/* --- what pkeyd read ------------------------------------------------------------------------------------------------- */

struct fabsim_place promises_place_of(const struct sim *s, const struct subnet *subnet, uint32_t port)
{
        const struct subnet_port *p = &subnet->ports[port];
        unsigned n = 0;

        while (n + 1 < s->f.n_nodes && s->f.nodes[n].guid.v != subnet->nodes[p->node].guid.v)
                n++;
        return (struct fabsim_place) { n, p->number };
}

void promises_read(struct sim *s, const struct observed *o, usec_t began, bool whole)
{
        bool seen[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1] = {};

        for (uint32_t i = 0; i < o->subnet->n_ports; i++) {
                struct fabsim_place at = promises_place_of(s, o->subnet, i);

                seen[at.node][at.port] = true;
                if (!o->tables[i].entries || o->tables[i].source != TABLE_READ)
                        continue;
                /* the bits of a switch port are seen at discovery only */
                if (whole || o->subnet->ports[i].role == PORT_ENDPORT)
                        record_at(s, at)->is_known = record_at(s, at)->changed_at < began;
        }
        for (unsigned n = 0; whole && n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= FABSIM_MAX_PORTS; p++)
                        if (!seen[n][p])
                                s->tables[n][p].is_known = false;
}

static void disarm(struct sim *s, unsigned endport)
{
        if (endport != UINT32_MAX)
                s->transition.armed[endport] = false;
}

void promises_disturbed(struct sim *s, struct fabsim_place at)
{
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);

        record_at(s, at)->is_known = false;
        record_at(s, at)->changed_at = s->now;
        record_at(s, at)->was_disturbed = true;
        if (fabsim_is_endport(&s->f, at))
                disarm(s, world_endport_at(s, at));
        /* whether it is up or not */
        if (p->is_cabled && s->f.nodes[p->peer_node].type != NODE_SWITCH)
                disarm(s, world_endport_at(s, (struct fabsim_place) { p->peer_node, p->peer_port }));
}

/* Entries that are not pkeyd's to change, or what may not fit: then a switch port may be left to itself. */
static bool leaf_is_special(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport,
                            struct fabsim_place leaf)
{
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        const struct fabsim_port *ports[] = { &s->f.nodes[leaf.node].ports[leaf.port],
                                              &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port] };

        for (unsigned k = 0; k < 2; k++)
                for (unsigned i = 0; i < ports[k]->capacity; i++)
                        if (ports[k]->table[i].v & 0x7fff && !intent_may_touch(it, ports[k]->table[i].v & 0x7fff))
                                return true;
        /* up to twice what is wanted may be there on the way */
        return 2 * intent_wants(s, it, c, endport, true, wants) + SIM_BASES > ports[0]->capacity;
}

/* --- transitions ----------------------------------------------------------------------------------------------------- */

/* A table that does not take an entry, and says so, breaks nothing: pkeyd compares the answer and holds the base. But what is
 * moved within one block (a repair of index 0) is gone from its old place by then. */
static bool is_sound(const struct sim *s, const struct fabsim_port *p)
{
        return !p->lies && (p->swallows.v == 0 || !s->transition.intent->settings.repair_index0);
}

static bool is_armed(struct sim *s, unsigned endport)
{
        struct fabsim_place at;

        if (!s->transition.census.entries[endport].is_there || !record_at(s, s->endports[endport])->is_known ||
            !is_sound(s, fabsim_port_at(&s->f, s->endports[endport])))
                return false;
        if (!leaf_of(s, endport, &at) || !may_enforce(s, at))
                return true;
        return record_at(s, at)->is_known && is_sound(s, fabsim_port_at(&s->f, at));
}

static unsigned level_in(const struct p_key *keys, unsigned n, uint16_t base)
{
        unsigned level = 0;

        for (unsigned i = 0; i < n; i++)
                if ((keys[i].v & 0x7fff) == base)
                        level = keys[i].v & 0x8000 ? 2 : MAX(level, 1U);
        return level;
}

static void trace_start(struct sim *s)
{
        for (unsigned n = 0; s->trace && n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= s->f.nodes[n].num_ports; p++)
                        for (unsigned i = 0; i < s->f.nodes[n].ports[p].capacity; i++)
                                if (s->f.nodes[n].ports[p].table[i].v)
                                        sim_trace(s, "A: node %u port %u index %u: 0x%04x%s%s", n, p, i,
                                                  s->f.nodes[n].ports[p].table[i].v,
                                                  s->f.nodes[n].ports[p].enforce_inbound ? " in" : "",
                                                  s->f.nodes[n].ports[p].enforce_outbound ? " out" : "");
}

static void trace_endport(struct sim *s, unsigned endport)
{
        const struct census_entry *c = &s->transition.census.entries[endport];
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        struct fabsim_place at = {};
        unsigned n = s->trace ? intent_wants(s, s->transition.intent, &s->transition.census, endport, false, wants) : 0;

        if (!leaf_of(s, endport, &at))
                at = s->endports[endport];
        if (s->trace && c->is_there)
                sim_trace(s, "B: node %u port %u%s%s%s, host %u, beside node %u port %u:", s->endports[endport].node,
                          s->endports[endport].port, s->transition.armed[endport] ? " armed" : "", c->is_self ? " self" : "",
                          c->is_sm ? " sm" : "", c->host, at.node, at.port);
        for (unsigned i = 0; i < n; i++)
                sim_trace(s, "   wanted 0x%04x", wants[i].v);
}

/* In A only the switch port keeps this endport from what its own table gives it. */
static bool is_held_back(const struct sim *s, unsigned endport, unsigned b)
{
        const struct reach *r = &s->transition.from[endport][b];
        const struct fabsim_place p = s->endports[endport];
        int own = fabsim_level(&s->f.nodes[p.node].ports[p.port], sim_bases[b]);

        return r->sends[0] != own || r->sends[1] != own || r->receives[0] != own || r->receives[1] != own;
}

static void set_goal(struct sim *s, unsigned endport)
{
        struct transition *t = &s->transition;
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, t->intent, &t->census, endport, false, wants);
        struct fabsim_place leaf;
        bool let_go = leaf_of(s, endport, &leaf) && may_enforce(s, leaf) &&
                      leaf_is_special(s, t->intent, &t->census, endport, leaf);

        for (unsigned b = 0; b < SIM_BASES; b++) {
                uint8_t level = (uint8_t) level_in(wants, n, sim_bases[b]);

                t->to[endport][b] = (struct reach) { { level, level }, { level, level } };
                t->skip[endport][b] = let_go && is_held_back(s, endport, b);
                if (!intent_may_touch(t->intent, sim_bases[b])) {
                        t->to[endport][b] = t->from[endport][b];
                        t->skip[endport][b] = is_held_back(s, endport, b);
                }
        }
}

void promises_begin(struct sim *s)
{
        struct transition *t = &s->transition;

        t->is_on = true;
        t->began = s->now;
        t->intent = s->daemon.generation->intent;
        t->census = s->daemon.census;
        s->counters.transitions++;
        trace_start(s);
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= s->f.nodes[n].num_ports; p++) {
                        memcpy(s->tables[n][p].at_start, s->f.nodes[n].ports[p].table, sizeof(s->tables[n][p].at_start));
                        s->tables[n][p].passed_on = false;
                }
        for (unsigned i = 0; i < s->n_endports; i++) {
                reach_of(s, i, t->from[i]);
                memcpy(t->now[i], t->from[i], sizeof(t->now[i]));
                t->armed[i] = is_armed(s, i);
                if (t->armed[i])
                        set_goal(s, i);
                trace_endport(s, i);
        }
}

/* No index may have gone from one base to another while one that was never used is left. Index 0 of an endport is for one
 * partition only, and a repair moves what it must. Who else changed the table may have used up indexes, too. */
static void check_passed_on(struct sim *s, struct fabsim_place at)
{
        const struct table_record *r = record_at(s, at);
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);

        if (!r->passed_on || r->was_disturbed || s->transition.intent->settings.repair_index0)
                return;
        s->counters.passed_on_checked++;
        for (unsigned i = fabsim_is_endport(&s->f, at) ? 1 : 0; i < p->capacity; i++)
                if ((p->table[i].v & 0x7fff) == 0 && r->freed[i] == 0)
                        sim_fail(s, "an index of node %u port %u went to another base, though %u was never used", at.node,
                                 at.port, i);
}

void promises_end(struct sim *s, bool clean)
{
        if (s->transition.is_on && clean)
                for (unsigned n = 0; n < s->f.n_nodes; n++)
                        for (uint8_t p = 0; p <= s->f.nodes[n].num_ports; p++)
                                check_passed_on(s, (struct fabsim_place) { n, p });
        s->transition.is_on = false;
}

/* --- Sets ------------------------------------------------------------------------------------------------------------ */

static void note_index(struct table_record *r, unsigned index, uint16_t before, uint16_t after, bool counts)
{
        if (after == before)
                return;
        if (after == 0) {
                r->freed[index] = before;
                r->freed_unsaved[index] = true;
                return;
        }
        if (counts && ((before != 0 && before != after) || (before == 0 && r->freed[index] && r->freed[index] != after)))
                r->passed_on = true;
        r->freed[index] = 0;
}

static unsigned count_base(const struct p_key *table, uint16_t base)
{
        unsigned n = 0;

        for (unsigned i = 0; i < FABSIM_MAX_ENTRIES; i++)
                n += (table[i].v & 0x7fff) == base;
        return n;
}

/* An entry that is in A and in B stays at its index; a base that is in both and has one entry each does, too. */
static void check_stability(struct sim *s, struct fabsim_place at, unsigned index, uint16_t now)
{
        struct transition *t = &s->transition;
        const struct table_record *r = record_at(s, at);
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        uint16_t key = r->at_start[index].v, base = key & 0x7fff;
        unsigned endport = endport_beside(s, at), n, with_base = 0;
        bool wanted = false;

        if (endport == UINT32_MAX || !t->armed[endport] || base == 0 || t->intent->settings.repair_index0)
                return;
        n = intent_wants(s, t->intent, &t->census, endport, !fabsim_is_endport(&s->f, at), wants);
        for (unsigned i = 0; i < n; i++) {
                wanted |= wants[i].v == key;
                with_base += (wants[i].v & 0x7fff) == base;
        }
        if (count_base(r->at_start, base) != 1)
                return;
        if (wanted && now != key)
                sim_fail(s, "stability broken: 0x%04x at index %u of node %u port %u became 0x%04x", key, index, at.node,
                         at.port, now);
        if (with_base == 1 && (now & 0x7fff) != base)
                sim_fail(s, "stability broken: base 0x%04x left index %u of node %u port %u", base, index, at.node, at.port);
}

void promises_set(struct sim *s, struct fabsim_place at, const struct p_key *before, uint16_t block)
{
        const struct fabsim_port *p = fabsim_port_at(&s->f, at);
        struct transition *t = &s->transition;

        if (!t->is_on) {
                sim_fail(s, "a Set that belongs to no plan");
                return;
        }
        for (unsigned i = block * P_KEY_BLOCK_ENTRIES; i < p->capacity && i < (block + 1U) * P_KEY_BLOCK_ENTRIES; i++) {
                uint16_t old = before[i].v & 0x7fff, new = p->table[i].v & 0x7fff;

                if (before[i].v == p->table[i].v)
                        continue;
                sim_trace(s, "node %u port %u index %u: 0x%04x becomes 0x%04x", at.node, at.port, i, before[i].v,
                          p->table[i].v);
                /* a rival who writes between pkeyd's look and its Set is not seen by anybody */
                if (record_at(s, at)->changed_at >= t->began)
                        continue;
                if ((old && !intent_may_touch(t->intent, old)) || (new && !intent_may_touch(t->intent, new)))
                        sim_fail(s, "index %u of node %u port %u: 0x%04x became 0x%04x, which is not pkeyd's", i, at.node,
                                 at.port, before[i].v, p->table[i].v);
                check_stability(s, at, i, p->table[i].v);
        }
        for (unsigned i = block * P_KEY_BLOCK_ENTRIES; i < p->capacity && i < (block + 1U) * P_KEY_BLOCK_ENTRIES; i++) {
                uint16_t old = before[i].v & 0x7fff, new = p->table[i].v & 0x7fff;

                note_index(record_at(s, at), i, old, new, i > 0 || !fabsim_is_endport(&s->f, at));
        }
        if (endport_beside(s, at) != UINT32_MAX)
                check_endport(s, endport_beside(s, at));
}

void promises_enforcement(struct sim *s, struct fabsim_place at)
{
        if (!s->transition.is_on)
                sim_fail(s, "a Set(PortInfo) that belongs to no plan");
        if (endport_beside(s, at) != UINT32_MAX)
                check_endport(s, endport_beside(s, at));
}

static bool is_planned(const struct sim *s, const struct plan *plan, struct fabsim_place at, bool is_table, uint32_t number,
                       uint32_t block)
{
        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];
                        struct fabsim_place p = promises_place_of(s, plan->subnet, w->port);

                        if (p.node == at.node && p.port == number && (w->kind == WRITE_BLOCK) == is_table &&
                            (!is_table || w->block == block))
                                return true;
                }
        return false;
}

void promises_check_set(struct sim *s, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t attribute = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F);
        uint32_t modifier = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F);
        bool is_table = attribute == SMP_ATTR_P_KEY_TABLE, is_switch = s->f.nodes[at.node].type == NODE_SWITCH;
        uint32_t number = !is_table ? modifier : is_switch ? modifier >> 16 : at.port;

        if (!s->daemon.applying || !s->daemon.decision.plan) {
                sim_fail(s, "a Set while nothing is applied");
                return;
        }
        if (s->daemon.generation->intent->settings.mode == MODE_AUDIT)
                sim_fail(s, "a Set in audit mode");
        if (!is_planned(s, s->daemon.decision.plan, at, is_table, number, modifier & 0xffff))
                sim_fail(s, "a Set to node %u port %u (modifier 0x%08x), which the plan does not have", at.node, number,
                         modifier);
        if (!is_table && (!is_switch || number == 0))
                sim_fail(s, "a Set(PortInfo) to an endport");
}

void promises_saved(struct sim *s)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= FABSIM_MAX_PORTS; p++)
                        memset(s->tables[n][p].freed_unsaved, 0, sizeof(s->tables[n][p].freed_unsaved));
}

/* pkeyd was killed: what it freed and had not written down is forgotten, and so is what it knew of tables. */
void promises_lost(struct sim *s)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= FABSIM_MAX_PORTS; p++) {
                        struct table_record *r = &s->tables[n][p];

                        r->is_known = false;
                        for (unsigned i = 0; i < FABSIM_MAX_ENTRIES; i++)
                                if (r->freed_unsaved[i]) {
                                        r->freed[i] = 0;
                                        r->freed_unsaved[i] = false;
                                        r->was_disturbed = true;
                                }
                }
}

/* --- what is said, and where it ends --------------------------------------------------------------------------------- */

static void trace_table(struct sim *s, unsigned endport, struct fabsim_place at)
{
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, s->daemon.generation->intent, &s->daemon.census, endport, !fabsim_is_endport(&s->f, at),
                                  wants);

        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v)
                        sim_trace(s, "node %u port %u index %u: 0x%04x", at.node, at.port, i, p->table[i].v);
        for (unsigned i = 0; i < n; i++)
                sim_trace(s, "wanted: 0x%04x", wants[i].v);
}

static bool table_is_right(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport,
                           struct fabsim_place at)
{
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, it, c, endport, !fabsim_is_endport(&s->f, at), wants), found = 0;
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

        for (unsigned i = 0; i < p->capacity; i++) {
                uint16_t base = p->table[i].v & 0x7fff;
                bool wanted = false;

                if (base == 0 || !intent_may_touch(it, base))
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
                if (wants[k].v && !intent_may_touch(it, wants[k].v & 0x7fff))
                        found++;
        return found == n;
}

static bool leaf_is_right(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport,
                          struct fabsim_place leaf)
{
        const struct fabsim_node *n = &s->f.nodes[leaf.node];
        const struct fabsim_port *p = &n->ports[leaf.port];
        enum settings_enforcement e = it->settings.enforcement;

        if (leaf_is_special(s, it, c, endport, leaf))
                return true;
        return p->enforce_inbound == ((e == ENFORCEMENT_BOTH || e == ENFORCEMENT_IN) && n->inbound_cap) &&
               p->enforce_outbound == ((e == ENFORCEMENT_BOTH || e == ENFORCEMENT_OUT) && n->outbound_cap) &&
               table_is_right(s, it, c, endport, leaf);
}

static void not_right(struct sim *s, unsigned endport, struct fabsim_place at, const char *what)
{
        trace_table(s, endport, at);
        sim_fail(s, "node %u port %u %s", at.node, at.port, what);
}

/* A port that pkeyd calls verified is right. (One that it says differs may be right after all, if it could not confirm what
 * it wrote; that is said, too, and mended.) */
void promises_verified(struct sim *s, const struct verification *v)
{
        const struct observed *o = s->daemon.picture->observed;
        const struct intent *it = s->daemon.generation->intent;
        uint32_t next = 0;

        for (uint32_t i = 0; i < o->subnet->n_ports; i++) {
                struct fabsim_place at = promises_place_of(s, o->subnet, i);
                unsigned endport = endport_beside(s, at);

                while (next < v->n_differ && v->differ[next].port < i)
                        next++;
                if (!o->tables[i].entries || o->tables[i].source != TABLE_READ || !record_at(s, at)->is_known ||
                    endport == UINT32_MAX || !record_at(s, s->endports[endport])->is_known || (next < v->n_differ && v->differ[next].port == i))
                        continue;
                s->counters.verified++;
                if (fabsim_is_endport(&s->f, at) ? !table_is_right(s, it, &s->daemon.census, endport, at) :
                                                   !leaf_is_right(s, it, &s->daemon.census, endport, at))
                        not_right(s, endport, at, "is called verified and is not right");
        }
}

/* What is not held back is as it should be: a P_Key of such a base is there if and only if it is wanted. */
static bool rest_is_right(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport)
{
        const struct fabsim_port *p = &s->f.nodes[s->endports[endport].node].ports[s->endports[endport].port];
        struct p_key wants[2 * SIM_MAX_PARTITIONS];
        unsigned n = intent_wants(s, it, c, endport, false, wants);

        for (unsigned key = 1; key <= UINT16_MAX; key++) {
                bool wanted = false, there = false;

                if (!intent_may_touch(it, key & 0x7fff) || s->daemon.held[key & 0x7fff] || (key & 0x7fff) == 0)
                        continue;
                for (unsigned k = 0; k < n; k++)
                        wanted |= wants[k].v == key;
                for (unsigned i = 0; i < p->capacity; i++)
                        there |= p->table[i].v == key;
                if (wanted != there)
                        return false;
        }
        return true;
}

/* Ports whose M_Key pkeyd has not got stay as they are, and what their tables hold keeps others waiting. Everything else is
 * as the policy says, and nobody says that all is well. */
static void converged_without_keys(struct sim *s, const struct intent *it)
{
        const struct census *c = &s->daemon.census;
        struct fabsim_place leaf;
        bool all = true;

        s->counters.converged_without_keys++;
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!c->entries[i].is_there)
                        continue;
                all &= table_is_right(s, it, c, i, s->endports[i]);
                if (!keys_are_wrong(s, s->endports[i]) && !rest_is_right(s, it, c, i))
                        not_right(s, i, s->endports[i], "did not converge, though its M_Key is right");
                if (s->daemon.n_held == 0 && leaf_of(s, i, &leaf) && may_enforce(s, leaf) && !keys_are_wrong(s, leaf) &&
                    !keys_are_wrong(s, s->endports[i]) && !leaf_is_right(s, it, c, i, leaf))
                        not_right(s, i, leaf, "did not converge, though its M_Key is right");
        }
        if (!all && s->daemon.last_result != SIM_PARTIAL)
                sim_fail(s, "a port is not as the policy says, and the last pass ended with %d", (int) s->daemon.last_result);
}

/* A switch that answers nobody without its M_Key is not in the picture, nor are its ports. */
static bool is_seen(const struct sim *s, const struct census *c, unsigned endport, struct fabsim_place leaf)
{
        return c->entries[endport].is_plugged || !keys_are_wrong(s, leaf);
}

/* Faults have been over for a while. */
void promises_converged(struct sim *s)
{
        const struct census *c = &s->daemon.census;
        const struct intent *it = s->daemon.generation ? s->daemon.generation->intent : NULL;
        struct fabsim_place leaf;

        if (s->daemon.last_result == SIM_REFUSED) {
                s->counters.refused++;
                return;
        }
        if (s->daemon.last_result == SIM_PARTIAL && s->n_wrong_keys > 0 && it && it->settings.mode == MODE_ENFORCE) {
                converged_without_keys(s, it);
                return;
        }
        if (s->daemon.last_result == SIM_PARTIAL && s->n_wrong_keys > 0 && it)
                return; /* nothing is written; what cannot be read is said */
        if (s->daemon.last_result != SIM_DONE || !it)
                sim_fail(s, "did not converge: the last pass ended with %d", (int) s->daemon.last_result);
        if (!it || it->settings.mode == MODE_AUDIT)
                return;
        s->counters.converged++;
        for (unsigned i = 0; i < s->n_endports && !s->failed; i++) {
                if (!c->entries[i].is_there)
                        continue;
                if (!table_is_right(s, it, c, i, s->endports[i]))
                        not_right(s, i, s->endports[i], "did not converge");
                if (leaf_of(s, i, &leaf) && may_enforce(s, leaf) && is_seen(s, c, i, leaf) && !leaf_is_right(s, it, c, i, leaf))
                        not_right(s, i, leaf, "did not converge");
        }
}
