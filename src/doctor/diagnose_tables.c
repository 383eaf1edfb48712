/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

#include <stdio.h>

#define MAX_KEYS_LISTED 6

/* The table as the survey or the probe read it; entries NULL: neither did. */
static const struct observed_table *table_of(const struct doctor_facts *f, uint32_t port)
{
        static const struct observed_table unread;
        const struct observed_table *t = &f->observed->tables[port];

        if (!t->entries && f->probe && f->probe->tables)
                t = &f->probe->tables->tables[port];
        return t->entries && t->source == TABLE_READ ? t : &unread;
}

static bool is_full_member(const struct observed_table *t)
{
        return p_keys_hold(t->entries, t->capacity, p_key_make(P_KEY_DEFAULT_BASE, true));
}

/* --- the default partition --------------------------------------------------------------------------------------- */

/* pkeyd always makes its own port and the SMs' full members. */
static bool must_be_full(const struct doctor_facts *f, uint32_t port)
{
        return port == f->subnet->self || port == f->subnet->sm || (f->probe && f->probe->ports[port].is_sm);
}

static bool is_wanted_full(const struct doctor_facts *f, uint32_t port)
{
        const struct desired_port *d = f->desired ? &f->desired->ports[port] : NULL;

        return d && p_keys_hold(d->wanted, d->n_wanted, p_key_make(P_KEY_DEFAULT_BASE, true));
}

static void diagnose_default(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places full = {}, surplus = {};
        uint32_t n_hosts = 0;

        for (uint32_t i = 0; i < f->subnet->n_ports; i++) {
                const struct observed_table *t = table_of(f, i);

                if (!t->entries || !diagnosis_is_host_port(f->subnet, i) || must_be_full(f, i))
                        continue;
                n_hosts++;
                if (!is_full_member(t))
                        continue;
                places_add(l, &full, i, NULL);
                if (!is_wanted_full(f, i))
                        places_add(l, &surplus, i, NULL);
        }
        if (full.n * UINT64_C(2) > n_hosts)
                diagnosis_add(l, DIAGNOSIS_DEFAULT_FULL_FOR_ALL, &full,
                              "%u of %u host ports, not counting SMs and this port, are full members of the default partition",
                              full.n, n_hosts);
        else if (surplus.n > DOCTOR_FEW_FULL)
                diagnosis_add(l, DIAGNOSIS_DEFAULT_FULL_FOR_SOME, &surplus,
                              "%u host ports are unexpectedly full members of the default partition", surplus.n);
}

static void diagnose_self(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        const struct p_key limited = p_key_make(P_KEY_DEFAULT_BASE, false);
        struct places self = {};
        const struct observed_table *t;

        if (f->subnet->self == SUBNET_NONE)
                return;
        t = table_of(f, f->subnet->self);
        if (!t->entries || is_full_member(t))
                return;
        places_add(l, &self, f->subnet->self, NULL);
        diagnosis_add(l, DIAGNOSIS_SELF_LIMITED, &self, "the port pkeyd works through is %s the default partition",
                      p_keys_hold(t->entries, t->capacity, limited) ? "only a limited member of" : "not in");
}

/* --- unexpected entries ------------------------------------------------------------------------------------------ */

/* The default partition, or what the policy or a lease puts there. */
static bool is_expected_at_index0(const struct doctor_facts *f, uint32_t port, uint16_t base)
{
        if (base == P_KEY_DEFAULT_BASE)
                return true;
        return f->desired && (base == f->desired->index0_base || (base > 0 && base == f->desired->ports[port].index0_base));
}

static void diagnose_index0(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places other = {};

        for (uint32_t i = 0; i < f->subnet->n_ports; i++) {
                const struct observed_table *t = table_of(f, i);
                uint16_t base;

                if (!t->entries || t->capacity == 0 || f->subnet->ports[i].role != PORT_ENDPORT)
                        continue;
                base = p_key_base(t->entries[0]);
                if (is_expected_at_index0(f, i, base))
                        continue;
                places_add(l, &other, i,
                           base == 0 ? "nothing at index 0" : diagnosis_text(l, "0x%04x at index 0", t->entries[0].v));
        }
        diagnosis_add(l, DIAGNOSIS_INDEX0_OTHER, &other, "%u table%s do%s not have the expected partition at index 0",
                      other.n, text_plural(other.n), other.n == 1 ? "es" : "");
}

static void mark_bases(struct diagnosis_list *l, const struct observed_table *t, bool value)
{
        for (uint32_t i = 0; i < t->capacity; i++)
                l->bases[p_key_base(t->entries[i])] = value;
}

/* Adds a switch port if it has entries in bases that its peer does not have; the peer's are marked in l->bases. The text is
 * "0x901f 0x9020 and 7 more, from index 31 on". */
static void add_stale(struct diagnosis_list *l, struct places *places, uint32_t port, const struct observed_table *t)
{
        const char *keys = "";
        uint32_t n = 0, first = 0;

        for (uint32_t i = 0; i < t->capacity; i++) {
                if (!p_key_is_used(t->entries[i]) || l->bases[p_key_base(t->entries[i])])
                        continue;
                if (n == 0)
                        first = i;
                if (n < MAX_KEYS_LISTED)
                        keys = diagnosis_text(l, "%s%s0x%04x", keys, n > 0 ? " " : "", t->entries[i].v);
                n++;
        }
        if (n > MAX_KEYS_LISTED)
                keys = diagnosis_text(l, "%s and %u more", keys, n - MAX_KEYS_LISTED);
        if (n > 0)
                places_add(l, places, port, diagnosis_text(l, "%s, from index %u on", keys, first));
}

static void diagnose_stale(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places stale = {}, idle = {};

        for (uint32_t i = 0; i < f->subnet->n_ports; i++) {
                const struct subnet_port *port = &f->subnet->ports[i];
                const struct observed_table *here = table_of(f, i), *host;

                if (port->role != PORT_SWITCH_EXTERNAL || port->peer == SUBNET_NONE)
                        continue;
                host = table_of(f, port->peer);
                if (!here->entries || !host->entries)
                        continue;
                mark_bases(l, host, true);
                add_stale(l, subnet_port_can_enforce(f->subnet, port) ? &stale : &idle, i, here);
                mark_bases(l, host, false);
        }
        diagnosis_add(l, DIAGNOSIS_STALE_KEYS, &stale, "%u switch port%s hold%s P_Keys that no host behind them has",
                      stale.n, text_plural(stale.n), stale.n == 1 ? "s" : "");
        diagnosis_add(l, DIAGNOSIS_STALE_KEYS_IDLE, &idle,
                      "%u port%s of switches that cannot enforce hold%s P_Keys that no host behind them has", idle.n,
                      text_plural(idle.n), idle.n == 1 ? "s" : "");
}

static void diagnose_unread(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places unread = {};

        for (uint32_t i = 0; i < f->subnet->n_ports; i++)
                if (subnet_port_is_managed(f->subnet, &f->subnet->ports[i]) && f->observed->tables[i].source != TABLE_READ)
                        places_add(l, &unread, i, NULL);
        diagnosis_add(l, DIAGNOSIS_TABLE_UNREAD, &unread, "%u table%s could not be read", unread.n, text_plural(unread.n));
}

static void diagnose_frozen(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places frozen = {};

        for (uint32_t i = 0; f->desired && f->desired->frozen && i < f->subnet->n_ports; i++)
                if (f->desired->frozen[i] != FREEZE_NONE && f->subnet->ports[i].role == PORT_ENDPORT)
                        places_add(l, &frozen, i, freeze_reason(f->desired->frozen[i]));
        diagnosis_add(l, DIAGNOSIS_PORT_FROZEN, &frozen, "%u port%s frozen", frozen.n, frozen.n == 1 ? " is" : "s are");
}

static void diagnose_differences(struct diagnosis_list *l)
{
        const struct verification *v = l->facts->verification;
        struct places differ = {};

        for (uint32_t i = 0; v && i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];

                if (d->source == SOURCE_SMP)
                        places_add(l, &differ, d->port,
                                   diagnosis_text(l, "%u missing, %u unexpected%s", d->n_missing, d->n_unexpected,
                                                  d->enforcement_differs ? ", enforcement differs" : ""));
        }
        diagnosis_add(l, DIAGNOSIS_POLICY_DIFFERS, &differ, "%u table%s differ%s from the policy", differ.n,
                      text_plural(differ.n), differ.n == 1 ? "s" : "");
}

/* --- capacity ---------------------------------------------------------------------------------------------------- */

/* Bases, not entries: the switch port next to it needs one entry for each base. */
static uint32_t count_bases(struct diagnosis_list *l, const struct observed_table *t)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < t->capacity; i++) {
                bool *seen = &l->bases[p_key_base(t->entries[i])];

                n += p_key_is_used(t->entries[i]) && !*seen;
                *seen = true;
        }
        mark_bases(l, t, false);
        return n;
}

struct load {
        uint32_t port, used, capacity;
        bool by_policy;
};

/* The greater of what the port's table holds and what the policy gives it. */
static struct load load_of(const struct doctor_facts *f, uint32_t port, uint32_t held)
{
        uint32_t wanted = f->desired ? f->desired->ports[port].n_wanted : 0;

        return (struct load) { port, MAX(held, wanted), subnet_port_capacity(f->subnet, &f->subnet->ports[port]), wanted > held };
}

static void diagnose_overflow(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct places over = {};

        if (f->settings->enforcement == ENFORCEMENT_OFF || f->settings->enforcement_overflow == OVERFLOW_DISABLE)
                return; /* accepted */
        for (uint32_t i = 0; i < f->subnet->n_ports; i++) {
                const struct subnet_port *port = &f->subnet->ports[i];
                struct load load;

                if (!subnet_port_can_enforce(f->subnet, port) || port->peer == SUBNET_NONE)
                        continue;
                load = load_of(f, i, count_bases(l, table_of(f, port->peer)));
                if (load.used > load.capacity)
                        places_add(l, &over, port->peer, diagnosis_text(l, "%s %u partitions, the switch port (%u) holds %u",
                                                                        load.by_policy ? "by the policy in" : "in", load.used,
                                                                        port->number, load.capacity));
        }
        diagnosis_add(l, DIAGNOSIS_LEAF_OVERFLOW, &over,
                      "%u host port%s %s in more partitions than the switch port next to them can hold", over.n,
                      text_plural(over.n), over.n == 1 ? "is" : "are");
}

/* The fullest first. */
DEFINE_COMPARE(compare_loads, struct load,
               ORDER((uint64_t) b->used * a->capacity, (uint64_t) a->used * b->capacity) ?: ORDER(a->port, b->port))

static void diagnose_capacity(struct diagnosis_list *l)
{
        const struct doctor_facts *f = l->facts;
        struct load *loads = arena_new_array(l->arena, struct load, f->subnet->n_ports);
        struct places near = {};
        uint32_t n = 0;

        if (!loads) {
                l->out_of_memory = true;
                return;
        }
        for (uint32_t i = 0; i < f->subnet->n_ports; i++) {
                struct load load = load_of(f, i, observed_table_count(table_of(f, i)));

                /* port 0 of some switches has room for one entry only, that of the default partition */
                if (subnet_port_is_managed(f->subnet, &f->subnet->ports[i]) && load.used > 1 &&
                    load.used * UINT64_C(100) > load.capacity * (uint64_t) DOCTOR_NEARLY_FULL)
                        loads[n++] = load;
        }
        qsort(loads, n, sizeof(*loads), compare_loads);
        for (uint32_t i = 0; i < n; i++)
                places_add(l, &near, loads[i].port, diagnosis_text(l, "%u of %u entries%s", loads[i].used, loads[i].capacity,
                                                                   loads[i].by_policy ? " by the policy" : ""));
        diagnosis_add(l, DIAGNOSIS_CAPACITY_NEAR, &near, "%u table%s %s nearly full or too small", near.n,
                      text_plural(near.n), near.n == 1 ? "is" : "are");
}

/* --- enforcement ------------------------------------------------------------------------------------------------- */

/* Ports of one switch, as ranges: "2-5,8". */
struct port_ranges {
        char text[5 * 256]; /* more than all port numbers need: at most three digits and a separator each */
        size_t used;
        unsigned n, first, last;
};

static void write_range(struct port_ranges *p)
{
        if (p->n > 0)
                p->used += (size_t) snprintf(p->text + p->used, sizeof(p->text) - p->used,
                                             p->first == p->last ? "%s%u" : "%s%u-%u", p->used > 0 ? "," : "", p->first, p->last);
}

static void add_port_number(struct port_ranges *p, unsigned number)
{
        if (p->n == 0 || number != p->last + 1) {
                write_range(p);
                p->first = number;
        }
        p->last = number;
        p->n++;
}

/* Adds the ports of one list as one place, and empties the list. Returns how many there were. */
static uint32_t add_switch(struct diagnosis_list *l, struct places *places, uint32_t node, struct port_ranges *p)
{
        const struct subnet *s = l->facts->subnet;
        uint32_t port = subnet_find_port(s, node, 0), n = p->n;

        if (p->n == 0)
                return 0;
        write_range(p);
        if (port == SUBNET_NONE)
                port = subnet_find_port(s, node, (uint8_t) p->first);
        places_add(l, places, port, diagnosis_text(l, "%u port%s: %s", p->n, text_plural(p->n), p->text));
        *p = (struct port_ranges) {};
        return n;
}

/* Whether a switch port filters what its host sends and receives. */
enum filtering { FILTERING_UNSUPPORTED, FILTERING_OFF, FILTERING_ONE_WAY, FILTERING_ON, N_FILTERINGS };

static enum filtering filtering_of(const struct doctor_facts *f, const struct subnet_port *port)
{
        const struct subnet_node *node = subnet_port_node(f->subnet, port);

        if (!subnet_port_can_enforce(f->subnet, port))
                return FILTERING_UNSUPPORTED;
        if (!port->enforce_inbound && !port->enforce_outbound)
                return FILTERING_OFF;
        if (f->settings->enforcement != ENFORCEMENT_BOTH || !node->inbound_enforcement_cap || !node->outbound_enforcement_cap)
                return FILTERING_ON;
        return port->enforce_inbound && port->enforce_outbound ? FILTERING_ON : FILTERING_ONE_WAY;
}

static void diagnose_enforcement(struct diagnosis_list *l)
{
        static const struct {
                enum diagnosis_code code;
                const char *text;
        } kinds[] = {
                [FILTERING_UNSUPPORTED] = { DIAGNOSIS_ENFORCEMENT_CANNOT, "not supported" },
                [FILTERING_OFF] = { DIAGNOSIS_ENFORCEMENT_OFF, "off" },
                [FILTERING_ONE_WAY] = { DIAGNOSIS_ENFORCEMENT_ONE_WAY, "in one direction only" },
        };
        const struct subnet *s = l->facts->subnet;
        struct port_ranges lists[N_FILTERINGS] = {};
        struct places places[N_FILTERINGS] = {};
        uint32_t n[N_FILTERINGS] = {};

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct subnet_port *port = &s->ports[i];

                if (port->role == PORT_SWITCH_EXTERNAL && port->peer != SUBNET_NONE)
                        add_port_number(&lists[filtering_of(l->facts, port)], port->number);
                if (i + 1 < s->n_ports && s->ports[i + 1].node == port->node)
                        continue;
                for (int g = 0; g < N_FILTERINGS; g++)
                        n[g] += add_switch(l, &places[g], port->node, &lists[g]);
        }
        for (int g = 0; g < FILTERING_ON; g++)
                diagnosis_add(l, kinds[g].code, &places[g], "partition enforcement is %s at %u host port%s of %u switch%s",
                              kinds[g].text, n[g], text_plural(n[g]), places[g].n, places[g].n == 1 ? "" : "es");
}

void diagnose_tables(struct diagnosis_list *l)
{
        if (!l->facts->observed)
                return;
        diagnose_unread(l);
        diagnose_default(l);
        diagnose_self(l);
        diagnose_index0(l);
        diagnose_stale(l);
        diagnose_frozen(l);
        diagnose_differences(l);
        diagnose_overflow(l);
        diagnose_capacity(l);
        diagnose_enforcement(l);
}
