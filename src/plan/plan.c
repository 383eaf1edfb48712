/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "plan/port_plan.h"
#include "util/text.h"
#include "util/vector.h"

/* Findings of one kind are reported port by port up to here, then counted: everything that refuses a policy is listed, but warnings
 * must not hide it. */
#define ERRORS_PER_KIND   1000
#define WARNINGS_PER_KIND 50

/* Findings of one kind. */
struct finding_kind {
        enum finding_severity severity;
        enum finding_code code;
        uint32_t n;
};

struct planner {
        struct arena *arena;
        const struct desired *desired;
        const struct observed *observed;
        const struct index_memory *memory;
        const struct plan_options *options;
        struct findings *findings;
        struct plan *plan;
        uint32_t allocated[PLAN_N_PHASES]; /* writes of each step of the plan */
        struct finding_kind capacity, transition, index0, unreachable, enforcement_off, enforcement_skipped;
        bool refused;
};

void plan_options_from_settings(const struct settings *s, struct plan_options *ret)
{
        *ret = (struct plan_options) {
                .unmanaged = s->unmanaged,
                .enforcement = s->enforcement,
                .enforcement_overflow = s->enforcement_overflow,
                .repair_index0 = s->repair_index0,
                .writer = s->writer,
                .beside_sm = settings_conflict_with_sm(s) ? BESIDE_SM_REPORTED : BESIDE_SM_ACCEPTED,
                .opensm_order = s->opensm_mirror, /* only with `writer: direct` */
        };
}

DEFINE_WORDS(plan_phase_to_string, enum plan_phase, "none",
             [PHASE_REPAIR_ADD] = "repair", [PHASE_REPAIR_SWAP] = "repair", [PHASE_REPAIR_DROP] = "repair",
             [PHASE_REVOKE] = "revoke", [PHASE_CLOSE] = "close", [PHASE_RELAX] = "relax", [PHASE_OPEN] = "open",
             [PHASE_RAISE] = "raise", [PHASE_LOWER_ENDPORTS] = "lower", [PHASE_LOWER_ENFORCING] = "lower",
             [PHASE_GRANT_ENFORCING] = "grant", [PHASE_GRANT] = "grant", [PHASE_ENFORCE] = "enforce")

bool plan_phase_is_enforcing(enum plan_phase p)
{
        return p == PHASE_CLOSE || p == PHASE_RELAX || p == PHASE_OPEN || p == PHASE_LOWER_ENFORCING ||
               p == PHASE_GRANT_ENFORCING || p == PHASE_ENFORCE;
}

bool plan_has_frozen_ports(const struct plan *p)
{
        for (uint32_t i = 0; i < p->subnet->n_ports; i++)
                if (p->frozen[i] != FREEZE_NONE)
                        return true;
        return false;
}

/* --- findings -------------------------------------------------------------------------------------------------------- */

static uint32_t most_findings(enum finding_severity severity)
{
        return severity == FINDING_ERROR ? ERRORS_PER_KIND : WARNINGS_PER_KIND;
}

/* Reports one more finding of a kind about a port, unless enough were reported. */
__attribute__((format(printf, 4, 5)))
static void report(struct planner *pl, struct finding_kind *t, uint32_t port, const char *format, ...)
{
        const char *label = subnet_port_label(pl->arena, pl->desired->subnet, port), *text;
        va_list ap;

        va_start(ap, format);
        text = arena_vprintf(pl->arena, format, ap);
        va_end(ap);
        if (t->severity == FINDING_ERROR && !(pl->options->in_force && freeze_is_of_ports(t->code)))
                pl->refused = true;
        if (!text || !label)
                pl->findings->out_of_memory = true;
        else if (t->n < most_findings(t->severity))
                (void) findings_add(pl->findings, t->severity, t->code, NULL, "%s: %s", label, text);
        t->n++;
}

static void report_rest(struct planner *pl, const struct finding_kind *t)
{
        if (t->n > most_findings(t->severity))
                (void) findings_add(pl->findings, t->severity, t->code, NULL, "... and %u more port%s like this",
                                    t->n - most_findings(t->severity), text_plural(t->n - most_findings(t->severity)));
}

static void report_overflow(struct planner *pl, uint32_t port, const struct port_plan *pp)
{
        report(pl, &pl->capacity, port, "its P_Key table holds %u entries and would need %u%s", pp->capacity, pp->needed,
               pp->enforcing ? " (the device plugged in there is in more partitions than this switch port can enforce; "
                               "'enforcement_overflow: disable' turns enforcement off on such ports)"
                             : "");
}

static void report_stuck(struct planner *pl, uint32_t port, const struct port_plan *pp)
{
        report(pl, &pl->transition, port,
               "its P_Key table of %u entries is too full for a safe change (%u needed, but no index is free when the new entry must "
               "be written); make the change in two steps, the removal first",
               pp->capacity, pp->needed);
}

static void report_index0(struct planner *pl, uint32_t port, const struct port_plan *pp)
{
        report(pl, &pl->index0, port, "index 0 holds 0x%04x, not an entry of 0x%04x (%s)", pp->b[0].v, pp->index0_base,
               pp->repairs ? "it cannot be moved: no index is free, or pkeyd does not manage its base ('owns', 'unmanaged: keep')"
                           : "'repair_index0: true' repairs it");
}

static void report_unreachable(struct planner *pl, uint32_t port)
{
        const struct observed_table *t = &pl->observed->tables[port];
        const char *what = t->source == TABLE_ASSUMED ? "pkeyd plans with its last known entries" : "it is left out of the plan";

        if (t->failure == MAD_REFUSED)
                report(pl, &pl->unreachable, port, "its P_Key table could not be read (status 0x%04x: %s); %s", t->mad_status,
                       mad_status_to_string(t->mad_status), what);
        else
                report(pl, &pl->unreachable, port,
                       "its P_Key table could not be read (%s; a wrong M_Key gets no answer either); %s",
                       mad_outcome_to_string(t->failure), what);
}

/* --- writes ---------------------------------------------------------------------------------------------------------- */

static struct plan_write *add_write(struct planner *pl, enum plan_phase phase, enum plan_write_kind kind, uint32_t port)
{
        struct plan_step *step = &pl->plan->steps[phase];

        if (VECTOR_GROW(pl->arena, step->writes, step->n_writes, pl->allocated[phase]) < 0)
                return NULL;
        step->writes[step->n_writes] = (struct plan_write) { .kind = kind, .port = port };
        return &step->writes[step->n_writes++];
}

/* The entry after this phase; `now`: as it was before. */
static struct p_key entry_after(const struct port_plan *pp, enum plan_phase phase, uint16_t index, struct p_key now)
{
        if (phase <= PHASE_REPAIR_DROP)
                return pp->repair_phase[index] == phase ? pp->a[index] : now;
        if (pp->a[index].v == pp->b[index].v)
                return now;
        if (port_plan_add_phase(pp, index) == phase)
                return pp->b[index];
        return port_plan_drop_phase(pp, index) == phase ? (struct p_key) {} : now;
}

/* All changes of one block in one phase are one write. `now` is the table at the beginning of the phase. */
static int write_block(struct planner *pl, const struct port_plan *pp, uint32_t port, enum plan_phase phase, uint16_t block,
                       struct p_key *now)
{
        uint16_t first = (uint16_t) (block * P_KEY_BLOCK_ENTRIES), n = (uint16_t) p_key_block_size(pp->capacity, block);
        struct p_key after[P_KEY_BLOCK_ENTRIES];
        struct plan_write *w;

        for (uint16_t i = 0; i < n; i++)
                after[i] = entry_after(pp, phase, (uint16_t) (first + i), now[first + i]);
        if (memcmp(after, now + first, n * sizeof(*now)) == 0)
                return 0;
        w = add_write(pl, phase, WRITE_BLOCK, port);
        if (!w)
                return -ENOMEM;
        w->block = block;
        memcpy(w->before, now + first, n * sizeof(*now));
        memcpy(w->after, after, n * sizeof(*now));
        memcpy(now + first, after, n * sizeof(*now));
        pl->plan->n_block_writes++;
        return 0;
}

/* Returns 1 if the table is to be written, 0, or -ENOMEM. */
static int write_table(struct planner *pl, const struct port_plan *pp, uint32_t port)
{
        _cleanup_free_ struct p_key *now = malloc(MAX((size_t) 1, pp->capacity * sizeof(*now)));
        uint16_t n_blocks = p_key_table_blocks(pp->capacity);
        int r;

        if (!now)
                return -ENOMEM;
        if (memcmp(pp->observed, pp->b, pp->capacity * sizeof(*pp->b)) == 0)
                return 0;
        memcpy(now, pp->observed, pp->capacity * sizeof(*now));
        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint16_t block = 0; block < n_blocks; block++) {
                        r = write_block(pl, pp, port, phase, block, now);
                        if (r < 0)
                                return r;
                }
        return 1;
}

/* --- one port -------------------------------------------------------------------------------------------------------- */

/* The base that belongs at index 0 of this port: that of a lease, or the partition with `index0` if the port is a member of it,
 * else the default partition. Queue pairs are bound to indexes; the external port of a switch has none, so no index is special
 * there. */
static uint16_t index0_base_of(const struct planner *pl, uint32_t port)
{
        const struct desired_port *want = &pl->desired->ports[port];
        uint16_t base = desired_index0_base(pl->desired, port);

        if (pl->desired->subnet->ports[port].role != PORT_ENDPORT)
                return 0;
        if (want->index0_base > 0 || p_keys_hold_base(want->wanted, want->n_wanted, base))
                return base;
        return p_keys_hold_base(want->wanted, want->n_wanted, P_KEY_DEFAULT_BASE) ? P_KEY_DEFAULT_BASE : 0;
}

/* Whether a lease may have put it at index 0. */
static bool is_of_index0_pool(const struct policy *policy, struct p_key key)
{
        const struct policy_pool *pool = policy_pool_of_base(policy, p_key_base(key));

        return pool && pool->index0;
}

static bool has_index0_pool(const struct policy *policy)
{
        for (uint32_t i = 0; i < policy->n_pools; i++)
                if (policy->pools[i].index0)
                        return true;
        return false;
}

/* Whether index 0 of this port may be repaired. Without `repair_index0` a lease may take it, and what a lease left, or may have
 * left, goes back to the partition that belongs there: otherwise the port would be without an entry at index 0. */
static bool may_repair_index0(const struct planner *pl, const struct desired_port *want, const struct observed_table *t)
{
        const struct policy *policy = pl->desired->policy;

        if (pl->options->repair_index0 || want->index0_base > 0)
                return true;
        if (t->capacity == 0 || !has_index0_pool(policy))
                return false;
        return !p_key_is_used(t->entries[0]) || is_of_index0_pool(policy, t->entries[0]);
}

static int port_plan_prepare(struct planner *pl, uint32_t port, struct port_plan *ret)
{
        const struct subnet_port *p = &pl->desired->subnet->ports[port];
        const struct observed_table *t = &pl->observed->tables[port];
        struct guid node = subnet_port_node(pl->desired->subnet, p)->guid;
        uint16_t index0_base = index0_base_of(pl, port);

        *ret = (struct port_plan) {
                .policy = pl->desired->policy,
                .options = pl->options,
                .want = &pl->desired->ports[port],
                .layout = layout_find(pl->options->layout, node, p->number),
                .observed = t->entries,
                .capacity = t->capacity,
                .enforcing = p->role == PORT_SWITCH_EXTERNAL,
                .enforces_now = t->enforce_inbound || t->enforce_outbound,
                .peer = p->peer == SUBNET_NONE ? NULL : &pl->observed->tables[p->peer],
                .index0_base = index0_base,
                .repairs = index0_base > 0 && may_repair_index0(pl, &pl->desired->ports[port], t),
                .a = arena_new_array(pl->arena, struct p_key, t->capacity),
                .b = arena_new_array(pl->arena, struct p_key, t->capacity),
                .repair_phase = arena_new_array(pl->arena, uint8_t, t->capacity),
        };
        if (pl->memory)
                ret->freed = index_memory_get(pl->memory, node, p->number, &ret->n_freed);
        return ret->a && ret->b && ret->repair_phase ? 0 : -ENOMEM;
}

/* True if the settings allow that this port does not get a table: then it does not enforce. */
static bool may_overflow(const struct planner *pl, const struct port_plan *pp)
{
        return pp->enforcing && (pl->options->enforcement == ENFORCEMENT_OFF ||
                                 pl->options->enforcement_overflow == OVERFLOW_DISABLE);
}

/* Freezes a port and its peer: a change of only one of the two has no effect. */
static void freeze(struct planner *pl, uint32_t port, enum freeze why)
{
        uint32_t other_end = pl->desired->subnet->ports[port].peer;

        pl->plan->frozen[port] = why;
        if (other_end != SUBNET_NONE)
                pl->plan->frozen[other_end] = why;
}

/* Returns 1 if its table is to be written, 0, or -ENOMEM. */
static int plan_port(struct planner *pl, uint32_t port)
{
        const struct observed_table *t = &pl->observed->tables[port];
        struct port_plan pp;
        int r;

        if (t->source != TABLE_READ)
                report_unreachable(pl, port);
        if (t->source == TABLE_UNKNOWN || pl->plan->frozen[port] != FREEZE_NONE)
                return 0;
        r = port_plan_prepare(pl, port, &pp);
        if (r < 0)
                return r;
        port_plan_compute(&pp);
        if ((pp.overflow || pp.stuck) && may_overflow(pl, &pp))
                return 0; /* its table is left alone; see plan_enforcement */
        if (pp.overflow)
                report_overflow(pl, port, &pp);
        else if (pp.stuck)
                report_stuck(pl, port, &pp);
        else if (pp.index0_wrong && pl->options->writer != WRITER_OPENSM) /* OpenSM writes index 0 itself */
                report_index0(pl, port, &pp);
        if (pp.overflow || pp.stuck) {
                freeze(pl, port, pp.overflow ? FREEZE_CAPACITY : FREEZE_TRANSITION);
                return 0;
        }
        pl->plan->final_tables[port] = pp.b;
        return write_table(pl, &pp, port);
}

/* --- enforcement ----------------------------------------------------------------------------------------------------- */

/* The first entry that the peer keeps although the policy does not give it (pkeyd does not manage its base), and that would be cut
 * off if the switch began to enforce a table without it; NULL: there is none. */
static const struct p_key *find_cut_off(const struct planner *pl, uint32_t port)
{
        uint32_t peer = pl->desired->subnet->ports[port].peer;
        const struct p_key *table = pl->plan->final_tables[peer];

        return table ? p_keys_find_uncovered(pl->plan->final_tables[port], pl->observed->tables[port].capacity, table,
                                             pl->observed->tables[peer].capacity)
                     : NULL;
}

static void decide_enforcement(struct planner *pl, uint32_t port, bool *ret_inbound, bool *ret_outbound)
{
        const struct subnet *s = pl->desired->subnet;
        const struct subnet_node *node = subnet_port_node(s, &s->ports[port]);
        enum settings_enforcement e = pl->options->enforcement;
        const struct p_key *cut_off;

        *ret_inbound = (e == ENFORCEMENT_BOTH || e == ENFORCEMENT_IN) && node->inbound_enforcement_cap;
        *ret_outbound = (e == ENFORCEMENT_BOTH || e == ENFORCEMENT_OUT) && node->outbound_enforcement_cap;
        if (!*ret_inbound && !*ret_outbound)
                return;
        if (!pl->plan->final_tables[port]) {
                report(pl, &pl->enforcement_off, port,
                       "partitions are not enforced here: the device plugged in is in more of them than the table of %u entries holds "
                       "(enforcement_overflow: disable)",
                       pl->observed->tables[port].capacity);
                *ret_inbound = *ret_outbound = false;
        } else if ((cut_off = find_cut_off(pl, port))) {
                report(pl, &pl->enforcement_skipped, port,
                       "enforcement stays as it is: the device plugged in holds 0x%04x, which pkeyd does not manage and which would be "
                       "cut off",
                       cut_off->v);
                *ret_inbound = pl->observed->tables[port].enforce_inbound;
                *ret_outbound = pl->observed->tables[port].enforce_outbound;
        }
}

static int add_enforcement_write(struct planner *pl, enum plan_phase phase, uint32_t port, const bool before[2],
                                 const bool after[2])
{
        struct plan_write *w = add_write(pl, phase, WRITE_ENFORCEMENT, port);

        if (!w)
                return -ENOMEM;
        w->before_inbound = before[0];
        w->before_outbound = before[1];
        w->after_inbound = after[0];
        w->after_outbound = after[1];
        pl->plan->n_enforcement_writes++;
        return 0;
}

/* True if the peer holds an entry now that only this switch port keeps from having an effect. */
static bool filters_peer_now(const struct planner *pl, uint32_t port)
{
        const struct observed_table *mine = &pl->observed->tables[port];
        const struct observed_table *its = &pl->observed->tables[pl->desired->subnet->ports[port].peer];

        return p_keys_find_uncovered(mine->entries, mine->capacity, its->entries, its->capacity) != NULL;
}

/* The relax phase clears bits, before tables open; the enforce phase sets bits, when every table matches the policy. If clearing a
 * bit would pass an entry that the table does not have, it waits for the enforce phase, when unwanted entries are dropped. Returns
 * 1 if bits are to be written, 0, or -ENOMEM. */
static int plan_enforcement(struct planner *pl, uint32_t port)
{
        const struct observed_table *t = &pl->observed->tables[port];
        bool now[2] = { t->enforce_inbound, t->enforce_outbound }, want[2], between[2], relaxes, enforces;
        int r = 0;

        decide_enforcement(pl, port, &want[0], &want[1]);
        between[0] = now[0] && want[0];
        between[1] = now[1] && want[1];
        if (pl->plan->final_tables[port] && filters_peer_now(pl, port))
                memcpy(between, now, sizeof(between));
        relaxes = between[0] != now[0] || between[1] != now[1];
        /* if the bits are in doubt, a write that changes nothing reads them */
        enforces = between[0] != want[0] || between[1] != want[1] || (!relaxes && t->enforcement_doubted);
        if (relaxes)
                r = add_enforcement_write(pl, PHASE_RELAX, port, now, between);
        if (r == 0 && enforces)
                r = add_enforcement_write(pl, PHASE_ENFORCE, port, between, want);
        return r < 0 ? r : relaxes || enforces;
}

/* --- frozen ports ---------------------------------------------------------------------------------------------------- */

/* Drops the writes that were planned for a peer before it was frozen. */
static void drop_frozen(struct plan *plan, struct plan_step *step)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < step->n_writes; i++)
                if (plan->frozen[step->writes[i].port] == FREEZE_NONE)
                        step->writes[kept++] = step->writes[i];
        plan->n_block_writes -= step->n_writes - kept;
        step->n_writes = kept;
}

/* Runs after all tables are planned, and before enforcement is. */
static int leave_frozen(struct planner *pl, bool *affected)
{
        for (uint32_t i = 0; i < pl->desired->subnet->n_ports; i++) {
                const struct observed_table *t = &pl->observed->tables[i];

                if (pl->plan->frozen[i] == FREEZE_NONE || !t->entries || t->source == TABLE_UNKNOWN)
                        continue;
                affected[i] = false;
                pl->plan->final_tables[i] = arena_new_array(pl->arena, struct p_key, t->capacity);
                if (!pl->plan->final_tables[i])
                        return -ENOMEM;
                memcpy(pl->plan->final_tables[i], t->entries, t->capacity * sizeof(*t->entries));
        }
        for (size_t phase = 0; phase < PLAN_N_PHASES; phase++)
                drop_frozen(pl->plan, &pl->plan->steps[phase]);
        return 0;
}

/* --- all of it ------------------------------------------------------------------------------------------------------- */

static int plan_ports(struct planner *pl)
{
        const struct subnet *s = pl->desired->subnet;
        _cleanup_free_ bool *affected = calloc(MAX(s->n_ports, 1u), sizeof(*affected));
        int r;

        if (!affected)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                if (!subnet_port_is_managed(s, &s->ports[i]))
                        continue;
                r = plan_port(pl, i);
                if (r < 0)
                        return r;
                affected[i] = r > 0;
        }
        r = leave_frozen(pl, affected);
        if (r < 0)
                return r;
        /* after all tables, because whether a port may enforce depends on its peer's table */
        for (uint32_t i = 0; i < s->n_ports; i++) {
                if (!subnet_port_can_enforce(s, &s->ports[i]) || pl->observed->tables[i].source != TABLE_READ ||
                    pl->plan->frozen[i] != FREEZE_NONE)
                        continue;
                r = plan_enforcement(pl, i);
                if (r < 0)
                        return r;
                affected[i] = affected[i] || r > 0;
        }
        for (uint32_t i = 0; i < s->n_ports; i++)
                pl->plan->n_ports_affected += affected[i];
        return 0;
}

int plan_compute(struct arena *a, const struct desired *desired, const struct observed *observed,
                 const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
                 struct plan **ret)
{
        struct planner pl = {
                .arena = a, .desired = desired, .observed = observed, .memory = memory, .options = options, .findings = findings,
                .plan = arena_new_object(a, struct plan),
                .capacity = { FINDING_ERROR, FINDING_PLAN_CAPACITY },
                .transition = { FINDING_ERROR, FINDING_PLAN_CAPACITY_TRANSITION },
                .index0 = { FINDING_WARNING, FINDING_PLAN_INDEX0 }, .unreachable = { FINDING_WARNING, FINDING_PLAN_UNREACHABLE },
                .enforcement_off = { FINDING_WARNING, FINDING_PLAN_ENFORCEMENT_OFF },
                .enforcement_skipped = { FINDING_WARNING, FINDING_PLAN_ENFORCEMENT_SKIPPED },
        };
        int r;

        assert(desired->subnet == observed->subnet); /* ports are indexes into it */
        if (!pl.plan)
                return -ENOMEM;
        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++) {
                pl.plan->steps[phase] = (struct plan_step) { phase, arena_new_array(a, struct plan_write, 0), 0 };
                if (!pl.plan->steps[phase].writes)
                        return -ENOMEM;
        }
        pl.plan->subnet = desired->subnet;
        pl.plan->desired = desired;
        pl.plan->final_tables = arena_new_array(a, struct p_key *, desired->subnet->n_ports);
        pl.plan->frozen = arena_new_array(a, enum freeze, desired->subnet->n_ports);
        if (!pl.plan->final_tables || !pl.plan->frozen)
                return -ENOMEM;
        if (desired->frozen)
                memcpy(pl.plan->frozen, desired->frozen, desired->subnet->n_ports * sizeof(*desired->frozen));
        r = plan_ports(&pl);
        if (r < 0)
                return r;
        report_rest(&pl, &pl.capacity);
        report_rest(&pl, &pl.transition);
        report_rest(&pl, &pl.index0);
        report_rest(&pl, &pl.unreachable);
        report_rest(&pl, &pl.enforcement_off);
        report_rest(&pl, &pl.enforcement_skipped);
        if (pl.refused || findings->out_of_memory)
                return findings->out_of_memory ? -ENOMEM : -EBADMSG;
        *ret = pl.plan;
        return 0;
}
