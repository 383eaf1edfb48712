/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From packets that are refused to the one right message, in virtual time.
 *
 *     policy -> planner -> tables of the virtual fabric        packets -> refused by adapters and switches
 *     poll, subscription -> engine -> violation table -> reports -> sentences
 *
 * Everything of pkeyd's that stands between is the real thing. What must come out is worked out beside it: from what the
 * fabric's own registers and notices say of each packet at the moment it is sent, and from who was given what when.
 */

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "mad_engine/mad_engine.h"
#include "notices/notices.h"
#include "plan/plan.h"
#include "prng.h"
#include "violations/attribution.h"
#include "violations/notice_ends.h"
#include "violations/poll.h"

#define LEAVES         5
#define SPINE          LEAVES
#define FIRST_HOST     (LEAVES + 1)
#define MAX_ENDS       64
#define TABLE          16
#define PARTITIONS     4 /* the first is the default partition */
#define INTERVAL       (60 * USEC_PER_SEC)
#define SIDE_IN_FLIGHT 8
#define SOAK           200 /* seeds */
#define MAX_MESSAGES   2048
#define MAX_CAUSES     4096
#define STRAY          0x0666 /* a base that no policy here has */

/* ck_assert notes each place that is passed, which takes longer than the test where that is a hundred thousand times. */
#define MUST_SAY(condition, ...)                                                                                       \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg(__VA_ARGS__);                                                                     \
        } while (0)
#define MUST(condition) MUST_SAY(condition, "not true: %s", #condition)

static const uint16_t bases[PARTITIONS] = { 0x7fff, 0x0101, 0x0102, 0x0103 };
static const char *const names[PARTITIONS] = { "default", "tenant-a", "tenant-b", "tenant-c" };

/* One side stage and its own engine. */
struct side {
        struct mad_engine *engine;
        struct mad_background_task stage;
        unsigned n_under_way;
};

/* What refused packets moved, by the fabric's own account: one counter, or the notices of one key between two ends. */
struct cause {
        struct violation_port port;
        enum violation_source source;
        uint16_t key;          /* of notices */
        unsigned from, to;     /* ends; of a counter those of the last packet */
        uint64_t n;            /* packets */
        bool open;             /* a first report came, and no quiet yet */
        unsigned n_first, n_quiet, n_saturated;
        uint64_t told, told_in_episode;
};

struct message {
        struct violation_report report;
        struct attribution words;
        usec_t when;
};

/* What the policy gives an end: by partition. */
struct given {
        enum membership next[PARTITIONS]; /* with the next generation */
        enum membership now[PARTITIONS], before[PARTITIONS];
        uint64_t changed[PARTITIONS];     /* generation; 0: never */
};

struct world {
        struct fabsim f;
        struct prng rng;
        unsigned n_ends, per_node, lose;
        usec_t now;
        struct arena *arena;
        struct side poll_side, notices_side;
        struct violation_poll *poll;
        struct notices *notices;
        struct violations *violations;
        struct membership_history *history;
        struct subnet *subnet;
        struct observed *observed;
        struct memberships *memberships;
        struct lid_map *lids;
        uint64_t generation;
        struct given given[MAX_ENDS];
        struct cause causes[MAX_CAUSES];
        unsigned n_causes;
        unsigned n_messages;
        bool storms;              /* sums are expected */
        uint64_t n_refused, n_sums;
        struct message messages[MAX_MESSAGES]; /* the first n_messages; the rest is left as it was */
};

static struct world world; /* too large for a stack */

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

static struct fabsim_place place_of(const struct world *w, unsigned end)
{
        return (struct fabsim_place) { FIRST_HOST + end / w->per_node, (uint8_t) (1 + end % w->per_node) };
}

static struct fabsim_place leaf_place(unsigned end)
{
        return (struct fabsim_place) { end % LEAVES, (uint8_t) (1 + end / LEAVES) };
}

static const char *host_name(struct world *w, unsigned end)
{
        return arena_printf(w->arena, "node%02u", end / w->per_node);
}

static const char *label(struct world *w, unsigned end)
{
        return arena_printf(w->arena, "node%02u mlx5_0/%u", end / w->per_node, 1 + end % w->per_node);
}

/* Where it is told what it is a member of: the ports of a host have each their own. */
static const char *member_name(struct world *w, unsigned end)
{
        return w->per_node == 1 ? host_name(w, end) : label(w, end);
}

static const char *leaf_label(struct world *w, unsigned end)
{
        return arena_printf(w->arena, "leaf%02u/%u", leaf_place(end).node + 1, leaf_place(end).port);
}

static unsigned end_of_lid(const struct world *w, struct lid lid)
{
        MUST(lid.v >= 10);
        MUST(lid.v < 10 + w->n_ends);
        return lid.v - 10;
}

/* Leaf 0 and 4 enforce both ways, 1 of what comes in, 3 of what goes out, 2 cannot; 1 and 4 have counters of 64 bits. */
static void make_fabric(struct world *w)
{
        struct fabsim *f = &w->f;
        char description[32];

        fabsim_init(f);
        for (unsigned s = 0; s <= LEAVES; s++) {
                (void) snprintf(description, sizeof(description), s == SPINE ? "spine" : "leaf%02u switch", s + 1);
                (void) fabsim_add_node(f, NODE_SWITCH, 16, TABLE, description);
                if (s != SPINE)
                        fabsim_set_enforcement_cap(f, s, s == 2 ? 0 : TABLE, s != 2 && s != 3, s != 2 && s != 1);
                f->nodes[s].ports[0].lid.v = (uint16_t) (1 + s);
                f->nodes[s].has_wide_errors = s == 1 || s == 4;
        }
        for (unsigned s = 0; s < LEAVES; s++)
                fabsim_connect(f, s, 16, SPINE, (uint8_t) (1 + s));
        for (unsigned e = 0; e < w->n_ends; e++) {
                struct fabsim_place p = place_of(w, e), l = leaf_place(e);

                (void) snprintf(description, sizeof(description), "node%02u mlx5_0", e / w->per_node);
                if (e % w->per_node == 0)
                        (void) fabsim_add_node(f, NODE_CA, (uint8_t) w->per_node, TABLE, description);
                fabsim_port_at(f, p)->lid.v = (uint16_t) (10 + e);
                fabsim_connect(f, p.node, p.port, l.node, l.port);
        }
        f->self = place_of(w, 0);
        f->sm = place_of(w, 1);
}

static void add_ports(struct world *w, struct subnet_builder *b, unsigned node)
{
        const struct fabsim_node *n = &w->f.nodes[node];
        bool is_switch = n->type == NODE_SWITCH;

        for (uint8_t p = is_switch ? 0 : 1; p <= n->num_ports; p++) {
                struct fabsim_place other;
                struct subnet_port port = {
                        .number = p,
                        .guid = n->ports[is_switch ? 0 : p].guid,
                        .lid = n->ports[is_switch ? 0 : p].lid,
                        .state = PORT_STATE_ACTIVE,
                        .enforce_inbound = n->ports[p].enforce_inbound,
                        .enforce_outbound = n->ports[p].enforce_outbound,
                };

                port.route.lid = port.lid;
                if (is_switch && p > 0 && (!fabsim_peer(&w->f, (struct fabsim_place) { node, p }, &other) ||
                                           other.node < FIRST_HOST))
                        continue;
                MUST(subnet_builder_add_port(b, n->guid, &port) == 0);
        }
}

static struct subnet *make_snapshot(struct world *w)
{
        struct fabsim *f = &w->f;
        struct subnet_builder *b;
        struct subnet *s;

        MUST(subnet_builder_new(w->arena, &b) == 0);
        for (unsigned i = 0; i < f->n_nodes; i++) {
                const struct fabsim_node *n = &f->nodes[i];
                struct subnet_node node = {
                        .guid = n->guid,
                        .type = n->type,
                        .num_ports = n->num_ports,
                        .partition_cap = n->partition_cap,
                        .partition_enforcement_cap = n->partition_enforcement_cap,
                        .inbound_enforcement_cap = n->inbound_cap,
                        .outbound_enforcement_cap = n->outbound_cap,
                };

                if (!n->is_up)
                        continue;
                MUST(subnet_builder_add_node(b, &node, n->description, strlen(n->description)) == 0);
                add_ports(w, b, i);
        }
        for (unsigned e = 0; e < w->n_ends; e++) {
                struct fabsim_place p = place_of(w, e), l = leaf_place(e);

                if (f->nodes[p.node].is_up)
                        MUST(subnet_builder_add_link(b, f->nodes[l.node].guid, l.port, f->nodes[p.node].guid,
                                                                 p.port) == 0);
        }
        MUST(subnet_builder_finish(b, f->nodes[f->self.node].guid, f->self.port, f->nodes[f->sm.node].guid,
                                               f->sm.port, &s) == 0);
        return s;
}

/* --- the policy ------------------------------------------------------------------------------------------------------ */

static struct fabsim_port *hardware_of(struct world *w, uint32_t port)
{
        const struct subnet_port *p = &w->subnet->ports[port];
        const struct guid guid = subnet_port_node(w->subnet, p)->guid;

        for (unsigned n = 0; n < w->f.n_nodes; n++)
                if (w->f.nodes[n].guid.v == guid.v)
                        return &w->f.nodes[n].ports[p->number];
        ck_abort();
}

static void observe(struct world *w)
{
        MUST(observed_new(w->arena, w->subnet, &w->observed) == 0);
        for (uint32_t i = 0; i < w->subnet->n_ports; i++) {
                struct observed_table *t = &w->observed->tables[i];
                const struct fabsim_port *p = hardware_of(w, i);

                t->source = TABLE_READ;
                t->enforce_inbound = p->enforce_inbound;
                t->enforce_outbound = p->enforce_outbound;
                for (unsigned k = 0; t->entries && k < t->capacity; k++)
                        t->entries[k] = p->table[k];
        }
}

static void carry_out(struct world *w, const struct plan_step *step)
{
        for (uint32_t i = 0; i < step->n_writes; i++) {
                const struct plan_write *write = &step->writes[i];
                struct fabsim_port *p = hardware_of(w, write->port);

                for (unsigned k = 0; write->kind == WRITE_BLOCK && k < P_KEY_BLOCK_ENTRIES && k < p->capacity; k++)
                        p->table[k] = write->after[k];
                if (write->kind == WRITE_ENFORCEMENT) {
                        p->enforce_inbound = write->after_inbound;
                        p->enforce_outbound = write->after_outbound;
                }
        }
}

static const char *policy_text(struct world *w)
{
        const char *text = "version: 1\npartitions:\n";

        for (unsigned k = 0; k < PARTITIONS; k++) {
                bool any = false;

                text = arena_printf(w->arena, "%s  %s:\n    pkey: 0x%04x\n", text, names[k], bases[k]);
                for (unsigned e = 0; e < w->n_ends; e++)
                        if (w->given[e].now[k] != MEMBERSHIP_NONE) {
                                text = arena_printf(w->arena, "%s%s      0x%016" PRIx64 ": %s\n", text,
                                                    any ? "" : "    members:\n",
                                                    fabsim_port_at(&w->f, place_of(w, e))->guid.v,
                                                    membership_to_string(w->given[e].now[k]));
                                any = true;
                        }
        }
        return text;
}

/* What w->given says, as pkeyd brings it to the tables, and as it remembers it. */
static void bring_in_force(struct world *w)
{
        const char *text = policy_text(w);
        struct plan_options options;
        struct findings findings = { .arena = w->arena };
        struct settings settings;
        struct desired *desired;
        struct policy *policy;
        struct plan *plan;

        MUST(policy_parse(w->arena, "p.yaml", text, strlen(text), &findings, &policy) == 0);
        w->subnet = make_snapshot(w);
        observe(w);
        w->lids = lid_map_new(w->arena, w->subnet);
        MUST(w->lids);
        MUST(policy_resolve(w->arena, policy, w->subnet, &findings, &w->memberships) == 0);
        MUST(desired_compute(w->arena, w->memberships, &desired) == 0);
        settings_default(&settings);
        plan_options_from_settings(&settings, &options);
        MUST(plan_compute(w->arena, desired, w->observed, NULL, &options, &findings, &plan) == 0);
        for (unsigned i = 0; i < PLAN_N_PHASES; i++)
                carry_out(w, &plan->steps[i]);
        observe(w);
        MUST(membership_history_learn(w->history, w->now, w->generation, w->memberships) == 0);
        MUST(violations_set_subnet(w->violations, w->subnet) == 0);
        MUST(violation_poll_set_subnet(w->poll, w->now, w->subnet) == 0);
        findings_done(&findings);
}

static void give(struct world *w, unsigned end, unsigned partition, enum membership m)
{
        w->given[end].next[partition] = m;
}

static void next_generation(struct world *w)
{
        w->generation++;
        for (unsigned e = 0; e < w->n_ends; e++)
                for (unsigned k = 0; k < PARTITIONS; k++) {
                        struct given *g = &w->given[e];

                        if (g->now[k] == g->next[k])
                                continue;
                        g->before[k] = g->now[k];
                        g->now[k] = g->next[k];
                        g->changed[k] = w->generation > 1 ? w->generation : 0;
                }
        bring_in_force(w);
}

/* --- packets --------------------------------------------------------------------------------------------------------- */

static struct cause *cause_at(struct world *w, struct violation_port port, enum violation_source source, uint16_t key,
                              unsigned from, unsigned to)
{
        bool is_notice = source >= VIOLATION_N_COUNTERS;

        for (unsigned i = 0; i < w->n_causes; i++) {
                struct cause *c = &w->causes[i];

                if (violation_port_equal(c->port, port) && c->source == source &&
                    (!is_notice || (c->key == key && c->from == from && c->to == to)))
                        return c;
        }
        MUST(w->n_causes < MAX_CAUSES);
        w->causes[w->n_causes] = (struct cause) { .port = port, .source = source, .key = key };
        return &w->causes[w->n_causes++];
}

static void blame(struct world *w, struct fabsim_place at, enum violation_source source, uint16_t key, unsigned from,
                  unsigned to)
{
        struct violation_port port = { .node_guid = w->f.nodes[at.node].guid, .number = at.port };
        struct cause *c = cause_at(w, port, source, key, from, to);

        c->n++;
        c->from = from;
        c->to = to;
}

/* The three registers of a port as its agents show them. */
struct shown {
        uint64_t p_key, rcv, xmit;
};

static struct shown look(const struct world *w, struct fabsim_place at)
{
        const struct fabsim_node *n = &w->f.nodes[at.node];
        const struct fabsim_port *p = &n->ports[at.port];
        uint64_t max = n->has_wide_errors ? UINT64_MAX : 255;

        return (struct shown) { p->p_key_violations, MIN(p->rcv_constraint_errors, max),
                                MIN(p->xmit_constraint_errors, max) };
}

static void blame_counters(struct world *w, struct fabsim_place at, const struct shown *before, unsigned from, unsigned to)
{
        struct shown after = look(w, at);

        if (after.p_key != before->p_key)
                blame(w, at, VIOLATION_P_KEY_VIOLATIONS, 0, from, to);
        if (after.rcv != before->rcv)
                blame(w, at, VIOLATION_RCV_CONSTRAINT, 0, from, to);
        if (after.xmit != before->xmit)
                blame(w, at, VIOLATION_XMIT_CONSTRAINT, 0, from, to);
}

static void blame_notice(struct world *w)
{
        const struct fabsim_notice *n = &w->f.notices[(w->f.n_notices - 1) % FABSIM_MAX_NOTICES];
        unsigned from = end_of_lid(w, n->lid1), to = end_of_lid(w, n->lid2);

        if (n->trap == 257)
                blame(w, place_of(w, to), VIOLATION_NOTICE_257, n->key.v, from, to);
        else
                blame(w, (struct fabsim_place) { n->switch_lid.v - 1u, n->switch_port }, VIOLATION_NOTICE_259, n->key.v, from,
                      to);
}

/* Somebody sends, be the entry in his table or not: who has his host can bring it there. True: it arrived. */
static bool send_packet(struct world *w, unsigned from, unsigned to, uint16_t key)
{
        struct fabsim_place at[] = { place_of(w, to), leaf_place(from), leaf_place(to) };
        struct p_key *entry = &fabsim_port_at(&w->f, place_of(w, from))->table[TABLE - 1];
        unsigned n_notices = w->f.n_notices;
        struct shown before[3];
        bool passed;

        for (unsigned i = 0; i < 3; i++)
                before[i] = look(w, at[i]);
        MUST(entry->v == 0);
        entry->v = key;
        passed = fabsim_send_packet(&w->f, place_of(w, from), place_of(w, to), (struct p_key) { key });
        entry->v = 0;
        for (unsigned i = 0; i < 3; i++)
                blame_counters(w, at[i], &before[i], from, to);
        if (w->f.n_notices != n_notices)
                blame_notice(w);
        MUST(passed == (w->f.n_notices == n_notices));
        w->n_refused += !passed;
        return passed;
}

/* --- what a message must say ----------------------------------------------------------------------------------------- */

static void has(const struct message *m, const char *part)
{
        MUST_SAY(strstr(m->words.text, part) != NULL, "'%s' is not in: %s", part, m->words.text);
}

static void has_not(const struct message *m, const char *part)
{
        MUST_SAY(strstr(m->words.text, part) == NULL, "'%s' is in: %s", part, m->words.text);
}

static void is_same(const struct message *m, const char *got, const char *wanted)
{
        MUST_SAY(got && strcmp(got, wanted) == 0, "'%s', not '%s', with: %s", got ? got : "", wanted, m->words.text);
}

static const char *grouped(struct world *w, uint64_t n)
{
        return n < 1000 ? arena_printf(w->arena, "%" PRIu64, n)
                        : arena_printf(w->arena, "%" PRIu64 ",%03" PRIu64, n / 1000, n % 1000);
}

static unsigned partition_of(uint16_t key)
{
        unsigned k = 0;

        while (k < PARTITIONS && bases[k] != (key & 0x7fff))
                k++;
        return k;
}

/* Whoever counted, and the end of the packet on which light falls. */
static void judge_headline(struct world *w, const struct message *m, const struct cause *c)
{
        uint64_t n = m->report.count;
        const char *more = m->report.kind == VIOLATION_MORE ? " more" : "", *from = label(w, c->from), *to = label(w, c->to);
        const char *count = arena_printf(w->arena, "%s%s packet%s", grouped(w, n), more, n == 1 ? "" : "s");
        const char *head = "?", *tail = "?";
        unsigned k = partition_of(c->key);
        const char *key = arena_printf(w->arena, "to %s with P_Key 0x%04x", to, c->key);

        if (k < PARTITIONS)
                key = arena_printf(w->arena, "%s (the %s key of %s)", key, c->key & 0x8000 ? "full" : "limited", names[k]);
        switch (c->source) {
        case VIOLATION_P_KEY_VIOLATIONS:
                head = arena_printf(w->arena, "%s received %s", to, count);
                tail = " with a P_Key that matches none of its own (PortInfo:P_KeyViolations)";
                break;
        case VIOLATION_RCV_CONSTRAINT:
                head = arena_printf(w->arena, "%s sent %s", from, count);
                tail = arena_printf(w->arena, " with a P_Key that its switch port %s does not accept (PortRcvConstraintErrors)",
                                    leaf_label(w, c->from));
                break;
        case VIOLATION_XMIT_CONSTRAINT:
                head = arena_printf(w->arena, "switch port %s dropped %s", leaf_label(w, c->to), count);
                tail = arena_printf(w->arena, " to %s with a P_Key that the port does not accept (PortXmitConstraintErrors)", to);
                break;
        case VIOLATION_NOTICE_257:
                head = arena_printf(w->arena, "%s sent %s%s", from, n > 1 ? "at least " : "", count);
                tail = arena_printf(w->arena, "%s, refused there (notice 257, P_Key mismatch)", key);
                break;
        case VIOLATION_NOTICE_259:
                head = arena_printf(w->arena, "%s sent %s%s", from, n > 1 ? "at least " : "", count);
                tail = arena_printf(w->arena, "%s, refused at switch port ", key);
                break;
        case VIOLATION_BAD_PKEY_CNTR:
        case VIOLATION_NOTICE_258:
        case VIOLATION_N_SOURCES:
                ck_abort();
        }
        MUST_SAY(strncmp(m->words.text, head, strlen(head)) == 0, "'%s' does not begin: %s", head, m->words.text);
        has(m, tail);
}

/* One end is no member of the partition. */
static void judge_outsider(struct world *w, const struct message *m, unsigned end, unsigned k)
{
        const struct given *g = &w->given[end];
        const char *host = member_name(w, end);

        if (g->changed[k]) {
                has(m, arena_printf(w->arena, "; %s was taken out of %s (0x%04x) ", host, names[k], bases[k]));
                has(m, arena_printf(w->arena, " by generation %" PRIu64, g->changed[k]));
                return;
        }
        has_not(m, "taken out of");
        if (!strstr(m->words.text, " is not a member of "))
                has(m, arena_printf(w->arena, "; %s was never a member of %s (0x%04x)", host, names[k], bases[k]));
}

static void judge_notice(struct world *w, const struct message *m, const struct cause *c)
{
        unsigned k = partition_of(c->key);
        enum membership from = k < PARTITIONS ? w->given[c->from].now[k] : MEMBERSHIP_NONE;
        enum membership to = k < PARTITIONS ? w->given[c->to].now[k] : MEMBERSHIP_NONE;
        bool full_key = c->key & 0x8000;

        MUST(m->words.names_sender);
        is_same(m, m->words.node, label(w, c->from));
        MUST(m->words.p_key.v == c->key);
        if (k == PARTITIONS) {
                has(m, arena_printf(w->arena, "; no partition of the policy has 0x%04x", c->key & 0x7fffu));
                return;
        }
        is_same(m, m->words.partition, names[k]);
        if (from == MEMBERSHIP_NONE)
                judge_outsider(w, m, c->from, k);
        else if (to == MEMBERSHIP_NONE)
                judge_outsider(w, m, c->to, k);
        else if (full_key && from == MEMBERSHIP_LIMITED)
                has(m, "but used the full key");
        else if (!full_key && to == MEMBERSHIP_LIMITED)
                has(m, "limited members may not talk to each other");
        else
                has(m, "the policy lets them talk");
}

/* The last loss of the host, and of what it is a member. */
static void judge_counter(struct world *w, const struct message *m, const struct cause *c)
{
        bool in = c->source == VIOLATION_RCV_CONSTRAINT;
        unsigned end = in ? c->from : c->to;
        const struct given *g = &w->given[end];
        uint64_t lost = 0;

        is_same(m, m->words.node, label(w, end));
        MUST(m->words.port_guid.v == fabsim_port_at(&w->f, place_of(w, end))->guid.v);
        MUST(m->words.lid.v == 10 + end);
        is_same(m, m->words.switch_name, leaf_label(w, end));
        MUST(m->words.names_sender == in);
        if (!in)
                has(m, "; this counter does not show the sender");
        for (unsigned k = 0; k < PARTITIONS; k++) {
                if (g->changed[k] && g->now[k] < g->before[k])
                        lost = MAX(lost, g->changed[k]);
                if (g->now[k] != MEMBERSHIP_NONE)
                        has(m, names[k]);
        }
        if (lost) {
                has(m, arena_printf(w->arena, "; %s was ", member_name(w, end)));
                has(m, arena_printf(w->arena, " ago by generation %" PRIu64, lost));
        } else {
                has_not(m, "taken out of");
        }
}

static void judge_strangers(struct world *w, const struct message *m, const struct cause *c)
{
        for (unsigned e = 0; e < w->n_ends; e++)
                if (strcmp(host_name(w, e), host_name(w, c->from)) != 0 &&
                    strcmp(host_name(w, e), host_name(w, c->to)) != 0)
                        has_not(m, host_name(w, e));
        MUST(strlen(m->words.text) < 600);
}

static struct cause *cause_of(struct world *w, const struct violation_record *r)
{
        const struct notice *n = &r->notice;
        unsigned from = r->source < VIOLATION_N_COUNTERS ? 0 : end_of_lid(w, n->lid1);
        unsigned to = r->source < VIOLATION_N_COUNTERS ? 0 : end_of_lid(w, n->lid2), before = w->n_causes;
        struct cause *c = cause_at(w, r->port, r->source, (uint16_t) n->key, from, to);

        MUST_SAY(w->n_causes == before, "nothing was refused at port %u of %016" PRIx64 " that %s could tell of",
                      r->port.number, r->port.node_guid.v, violation_source_to_string(r->source));
        return c;
}

static void judge_news(struct world *w, struct message *m, struct cause *c)
{
        bool is_first = m->report.kind == VIOLATION_FIRST;

        MUST(m->report.count > 0);
        MUST_SAY(is_first == !c->open, "%s: %s", is_first ? "a second first one" : "no first one", m->words.text);
        c->n_first += is_first;
        c->open = true;
        judge_headline(w, m, c);
        if (c->source < VIOLATION_N_COUNTERS)
                judge_counter(w, m, c);
        else
                judge_notice(w, m, c);
        judge_strangers(w, m, c);
}

static void judge(struct world *w, struct message *m)
{
        struct cause *c;

        if (m->report.kind == VIOLATION_STORM || m->report.kind == VIOLATION_ALL_QUIET) {
                MUST(w->storms);
                w->n_sums++;
                return;
        }
        c = cause_of(w, &m->report.record);
        if (m->report.kind == VIOLATION_QUIET) {
                has(m, "quiet again after ");
                has(m, arena_printf(w->arena, ", %s in all", grouped(w, m->report.count)));
                MUST(c->open || w->storms);
                if (!w->storms)
                        MUST(m->report.count == c->told_in_episode);
                c->open = false;
                c->n_quiet++;
                c->told_in_episode = 0;
                return;
        }
        if (m->report.kind == VIOLATION_SATURATED) {
                has(m, "is at its maximum");
                c->n_saturated++;
                c->n_first += !c->open;
                c->open = true;
        } else if (!w->storms) {
                judge_news(w, m, c);
        }
        c->told += m->report.count;
        c->told_in_episode += m->report.count;
}

/* --- time ------------------------------------------------------------------------------------------------------------ */

static void see_notice(struct world *w, const struct notice *n)
{
        const struct violation_port port = violation_port_of_notice(w->subnet, w->lids, n);
        struct violation_ends ends;

        MUST(violation_ends_of_notice(w->arena, w->subnet, w->lids, n, &ends) == 0);
        MUST(violations_see_notice(w->violations, w->now, port, n, &ends) == 0);
}

static void take(struct world *w)
{
        struct attribution_input context = {
                .subnet = w->subnet, .memberships = w->memberships, .history = w->history, .now = w->now,
                .observed = w->observed,
        };
        struct notice n;

        violations_take_samples(w->violations, w->now, w->poll);
        while (notices_next(w->notices, &n))
                see_notice(w, &n);
        for (;;) {
                struct message *m = &w->messages[w->n_messages];

                MUST(w->n_messages < MAX_MESSAGES);
                if (!violations_next_report(w->violations, w->now, &m->report))
                        break;
                w->n_messages++;
                m->when = w->now;
                MUST(attribution_explain(w->arena, &m->report, &context, &m->words) == 0);
                judge(w, m);
        }
}

/* There and back in no time, or lost on one of both ways. */
static void carry(struct world *w, struct side *side, const struct mad_frame *frame)
{
        struct mad_frame answer;
        struct fabsim_place at;
        unsigned hops;

        if (prng_permille(&w->rng, w->lose) || !fabsim_route(&w->f, frame, &at, &hops) ||
            !fabsim_answer(&w->f, w->now, at, frame, &answer) || prng_permille(&w->rng, w->lose))
                return;
        MUST(mad_engine_receive(side->engine, w->now, &answer) == 1);
}

static bool give_results(struct world *w, struct side *side)
{
        struct mad_result result;
        bool any = false;

        for (; mad_engine_next_result(side->engine, &result); any = true) {
                side->n_under_way--;
                side->stage.result(side->stage.state, w->now, &result);
                take(w);
        }
        return any;
}

static void turn(struct world *w, struct side *side)
{
        struct mad_request request;
        struct mad_frame frame;

        do {
                while (side->n_under_way < SIDE_IN_FLIGHT && side->stage.next(side->stage.state, w->now, &request)) {
                        MUST(mad_engine_submit(side->engine, &request) == 0);
                        side->n_under_way++;
                }
                while (mad_engine_next_send(side->engine, w->now, &frame))
                        carry(w, side, &frame);
        } while (give_results(w, side));
}

static void deliver_reports(struct world *w)
{
        struct mad_frame frame, response, none;
        struct side *side = &w->notices_side;
        struct fabsim_place at;
        unsigned hops;

        while (fabsim_sa_next_report(&w->f, w->now, &frame)) {
                if (prng_permille(&w->rng, w->lose) || !side->stage.report(side->stage.state, w->now, &frame))
                        continue;
                take(w);
                mad_frame_make_report_response(&frame, &response);
                if (!prng_permille(&w->rng, w->lose) && fabsim_route(&w->f, &response, &at, &hops))
                        (void) fabsim_answer(&w->f, w->now, at, &response, &none);
        }
}

static void step(struct world *w)
{
        turn(w, &w->poll_side);
        turn(w, &w->notices_side);
        deliver_reports(w);
        take(w);
}

static usec_t side_due(const struct side *side)
{
        usec_t due = mad_engine_deadline(side->engine);

        return side->n_under_way < SIDE_IN_FLIGHT ? MIN(due, side->stage.due(side->stage.state)) : due;
}

/* Lets so much time pass. */
static void run(struct world *w, usec_t duration)
{
        usec_t until = w->now + duration;

        step(w);
        while (w->now < until) {
                usec_t next = MIN(violations_due(w->violations), fabsim_sa_due(&w->f));

                next = MIN(next, MIN(side_due(&w->poll_side), side_due(&w->notices_side)));
                w->now = MAX(w->now + 1, MIN(next, until));
                step(w);
        }
}

/* Until every counter was looked at, and every notice came. */
static void settle(struct world *w)
{
        unsigned lose = w->lose;

        w->lose = 0;
        run(w, 2 * INTERVAL + USEC_PER_SEC);
        w->lose = lose;
}

static uint64_t total(const struct world *w)
{
        uint64_t sum = 0;

        for (unsigned s = 0; s < VIOLATION_N_SOURCES; s++)
                sum += violations_total(w->violations, (enum violation_source) s);
        return sum;
}

/* Until all is quiet. Then what was told, what is in the violation table, and what was refused are the same. */
static void judge_all(struct world *w)
{
        const struct violation_record *records;
        uint64_t told = 0, n = 0;
        uint32_t n_records;

        settle(w);
        run(w, 8 * INTERVAL);
        records = violations_records(w->violations, &n_records);
        for (uint32_t i = 0; i < n_records; i++) {
                MUST(records[i].total == cause_of(w, &records[i])->n);
                MUST(records[i].episode == 0);
        }
        MUST(n_records == w->n_causes);
        for (unsigned i = 0; i < w->n_causes; i++) {
                n += w->causes[i].n;
                if (w->storms)
                        continue;
                MUST(w->causes[i].told == w->causes[i].n);
                MUST(!w->causes[i].open);
                MUST(w->causes[i].n_first == w->causes[i].n_quiet);
        }
        for (unsigned i = 0; i < w->n_messages; i++)
                if (w->messages[i].report.kind != VIOLATION_QUIET && w->messages[i].report.kind != VIOLATION_ALL_QUIET)
                        told += w->messages[i].report.count;
        MUST(told == n);
        MUST(total(w) == n);
}

/* --- worlds ---------------------------------------------------------------------------------------------------------- */

static void side_init(struct side *side, struct mad_background_task stage)
{
        struct mad_engine_config config = { .window = 32, .timeout = 200 * USEC_PER_MSEC, .tid_key = 1 };

        ck_assert_int_eq(mad_engine_new(&config, &side->engine), 0);
        side->stage = stage;
}

static void ask_sa(struct world *w, bool again)
{
        struct notices_sa sa = { .lid = fabsim_port_at(&w->f, w->f.sm)->lid };

        notices_set_sa(w->notices, w->now, &sa, again);
}

/* All are full members of default, and the policy is in force. */
static void world_init(struct world *w, uint64_t seed, unsigned n_ends, unsigned per_node)
{
        memset(w, 0, offsetof(struct world, messages));
        w->rng.state = seed;
        w->n_ends = n_ends;
        w->per_node = per_node;
        w->now = 1000 * USEC_PER_SEC;
        w->arena = arena_new();
        w->poll = violation_poll_new(&(struct violation_poll_config) { .interval = INTERVAL });
        w->notices = notices_new();
        w->violations = violations_new(&(struct violations_config) { .interval = INTERVAL, .threshold = 1 });
        w->history = membership_history_new();
        side_init(&w->poll_side, violation_poll_task(w->poll));
        side_init(&w->notices_side, notices_task(w->notices));
        make_fabric(w);
        for (unsigned e = 0; e < n_ends; e++)
                give(w, e, 0, MEMBERSHIP_FULL);
}

static void world_begin(struct world *w)
{
        next_generation(w);
        ask_sa(w, false);
        settle(w);
        ck_assert_uint_eq(w->n_messages, 0);
}

static void world_done(struct world *w)
{
        mad_engine_free(w->poll_side.engine);
        mad_engine_free(w->notices_side.engine);
        violation_poll_free(w->poll);
        notices_free(w->notices);
        violations_free(w->violations);
        membership_history_free(w->history);
        arena_free(w->arena);
}

/* Ends by the leaf they are at (end % LEAVES): 0 and 4 check both ways, 1 what comes in, 2 nothing, 3 what goes out. */
enum {
        BOTH_A = 5, BOTH_B = 9, IN_A = 6, IN_B = 11, NONE_A = 7, NONE_B = 12, OUT_A = 8, OUT_B = 13, ENDS = 20,
};

static const struct message *last(const struct world *w, enum violation_kind kind, enum violation_source source)
{
        for (unsigned i = w->n_messages; i > 0; i--) {
                const struct message *m = &w->messages[i - 1];

                if (m->report.kind == kind && m->report.record.source == source)
                        return m;
        }
        ck_abort_msg("there is none");
}

static void send_packets(struct world *w, unsigned n, unsigned from, unsigned to, uint16_t key)
{
        for (unsigned i = 0; i < n; i++) {
                ck_assert(!send_packet(w, from, to, key));
                run(w, 10 * USEC_PER_MSEC);
        }
}

/* Where what is refused is seen: two messages for each, a counter's and a notice's. */
START_TEST(each_check)
{
        static const struct {
                unsigned from, to;
                uint16_t key;
                enum violation_source counter, notice;
        } cases[] = {
                { NONE_A, NONE_B, 0x8101, VIOLATION_P_KEY_VIOLATIONS, VIOLATION_NOTICE_257 },
                { NONE_A, OUT_B, 0x8101, VIOLATION_XMIT_CONSTRAINT, VIOLATION_NOTICE_259 },
                { NONE_B, IN_B, 0x8102, VIOLATION_P_KEY_VIOLATIONS, VIOLATION_NOTICE_257 },
                { IN_A, NONE_A, 0x8101, VIOLATION_RCV_CONSTRAINT, VIOLATION_NOTICE_259 },
                { BOTH_B, NONE_A, 0x8102, VIOLATION_RCV_CONSTRAINT, VIOLATION_NOTICE_259 },
                { BOTH_A, BOTH_B, 0x8101, VIOLATION_XMIT_CONSTRAINT, VIOLATION_NOTICE_259 },
        };
        struct world *w = &world;
        unsigned i = (unsigned) _i;

        world_init(w, 1, ENDS, 1);
        for (unsigned k = 0; k < 2; k++)
                give(w, k ? NONE_A : BOTH_A, 1, MEMBERSHIP_FULL);
        give(w, NONE_B, 2, MEMBERSHIP_FULL);
        world_begin(w);
        send_packets(w, 3, cases[i].from, cases[i].to, cases[i].key);
        settle(w);
        ck_assert_uint_eq(last(w, VIOLATION_FIRST, cases[i].counter)->report.count, 3);
        ck_assert_uint_eq(last(w, VIOLATION_FIRST, cases[i].notice)->report.count, 1); /* at once */
        ck_assert_uint_eq(last(w, VIOLATION_MORE, cases[i].notice)->report.count, 2);
        ck_assert_uint_eq(w->n_messages, 3);
        judge_all(w);
        ck_assert_uint_eq(w->n_messages, 5);
        world_done(w);
}
END_TEST

/* Only the last of those that were told is as it stands here; the rest was judged as it came. */
static void expect_last(const struct world *w, enum violation_kind kind, enum violation_source source, const char *text)
{
        ck_assert_str_eq(last(w, kind, source)->words.text, text);
}

/* Jobs that go on with the key of a partition that their host was taken out of, and others that go on sending to it. */
START_TEST(just_taken_out)
{
        struct world *w = &world;

        world_init(w, 2, ENDS, 1);
        give(w, BOTH_A, 1, MEMBERSHIP_FULL);
        give(w, NONE_A, 1, MEMBERSHIP_FULL);
        world_begin(w);
        ck_assert(send_packet(w, BOTH_A, NONE_A, 0x8101));
        ck_assert(send_packet(w, NONE_A, BOTH_A, 0x8101));
        give(w, BOTH_A, 1, MEMBERSHIP_NONE);
        next_generation(w);
        run(w, 3 * 60 * USEC_PER_SEC);
        ck_assert_uint_eq(w->n_messages, 0);
        send_packets(w, 1, BOTH_A, NONE_A, 0x8101);
        send_packets(w, 2, NONE_A, BOTH_A, 0x8101);
        settle(w);
        expect_last(w, VIOLATION_FIRST, VIOLATION_NOTICE_259,
                    "node07 mlx5_0/1 sent 1 packet to node05 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused at "
                    "switch port leaf01/2 (notice 259, P_Key mismatch at a switch); node05 was taken out of tenant-a (0x0101) 3 "
                    "minutes ago by generation 2: probably other members still send to it; it is a full member of default");
        expect_last(w, VIOLATION_FIRST, VIOLATION_XMIT_CONSTRAINT,
                    "switch port leaf01/2 dropped 2 packets in the last 60 seconds to node05 mlx5_0/1 with a P_Key that "
                    "the port does not accept (PortXmitConstraintErrors); node05 was taken out of tenant-a (0x0101) 4 "
                    "minutes ago by generation 2: probably other members still send to it; it is a full member of "
                    "default; this counter does not show the sender: check for an entry of the same time that names one "
                    "(notice 257 or 259, or PortRcvConstraintErrors)");
        expect_last(w, VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT,
                    "node05 mlx5_0/1 sent 1 packet in the last 60 seconds with a P_Key that its switch port leaf01/2 "
                    "does not accept (PortRcvConstraintErrors); node05 was taken out of tenant-a (0x0101) 4 minutes ago "
                    "by generation 2: probably its jobs still use the old key; it is a full member of default");
        judge_all(w);
        world_done(w);
}
END_TEST

/* Limited members with each other, the full key where only the limited one was given, and a key of nobody's. */
START_TEST(wrong_keys)
{
        struct world *w = &world;

        world_init(w, 3, ENDS, 1);
        give(w, NONE_A, 1, MEMBERSHIP_LIMITED);
        give(w, BOTH_A, 1, MEMBERSHIP_LIMITED);
        give(w, NONE_B, 1, MEMBERSHIP_FULL);
        world_begin(w);
        ck_assert(send_packet(w, BOTH_A, NONE_B, 0x0101));
        ck_assert(send_packet(w, NONE_B, BOTH_A, 0x8101));
        send_packets(w, 1, BOTH_A, NONE_A, 0x0101);
        expect_last(w, VIOLATION_FIRST, VIOLATION_NOTICE_257,
                    "node05 mlx5_0/1 sent 1 packet to node07 mlx5_0/1 with P_Key 0x0101 (the limited key of tenant-a), refused "
                    "there (notice 257, P_Key mismatch); both are limited members of tenant-a: limited members may not talk to "
                    "each other");
        send_packets(w, 1, BOTH_A, NONE_A, 0x8000 | STRAY);
        expect_last(w, VIOLATION_FIRST, VIOLATION_NOTICE_259,
                    "node05 mlx5_0/1 sent 1 packet to node07 mlx5_0/1 with P_Key 0x8666, refused at switch port leaf01/2 (notice "
                    "259, P_Key mismatch at a switch); no partition of the policy has 0x0666; node05 is a full member of "
                    "default, a limited member of tenant-a");
        judge_all(w);
        world_done(w);
}
END_TEST

/* A small counter comes to its end: once it is said, and no packet is made up. */
START_TEST(saturation)
{
        struct world *w = &world;
        const struct message *m;
        struct cause *c;

        world_init(w, 4, ENDS, 1);
        world_begin(w);
        send_packets(w, 5, BOTH_A, NONE_A, 0x8000 | STRAY);
        settle(w);
        send_packets(w, 400, BOTH_A, NONE_A, 0x8000 | STRAY);
        settle(w);
        m = last(w, VIOLATION_SATURATED, VIOLATION_RCV_CONSTRAINT);
        ck_assert_uint_eq(m->report.count, 250);
        has(m, "PortRcvConstraintErrors of switch port leaf01/2 is at its maximum, 255: there may have been more, and no more "
               "are seen until it is cleared");
        c = cause_of(w, &m->report.record);
        send_packets(w, 50, BOTH_A, NONE_A, 0x8000 | STRAY);
        judge_all(w);
        ck_assert_uint_eq(c->n, 255);
        ck_assert_uint_eq(c->n_saturated, 1);
        has(last(w, VIOLATION_QUIET, VIOLATION_RCV_CONSTRAINT),
            "255 in all, the last 5 minutes ago (but the counter is at its maximum: more are not seen until it is cleared)");
        /* perfquery -R */
        fabsim_reset_counters(&w->f, leaf_place(BOTH_A).node);
        settle(w);
        send_packets(w, 7, BOTH_A, NONE_A, 0x8000 | STRAY);
        judge_all(w);
        ck_assert_uint_eq(c->n, 262);
        ck_assert_uint_eq(c->n_first, 2);
        ck_assert_uint_eq(last(w, VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT)->report.count, 7);
        /* all is seen where the counter is wide */
        send_packets(w, 400, BOTH_B, NONE_A, 0x8000 | STRAY);
        settle(w);
        has(last(w, VIOLATION_FIRST, VIOLATION_RCV_CONSTRAINT), "node09 mlx5_0/1 sent ");
        judge_all(w);
        world_done(w);
}
END_TEST

static void let_clear(struct world *w)
{
        violation_poll_set_config(w->poll, w->now, &(struct violation_poll_config) { .interval = INTERVAL,
                                                                                     .clear_saturated = true });
}

/* A counter that pkeyd clears itself goes on counting, and only that one was touched. */
START_TEST(cleared)
{
        struct fabsim_port *port;
        struct world *w = &world;
        struct cause *c;

        world_init(w, 9, ENDS, 1);
        let_clear(w);
        port = fabsim_port_at(&w->f, leaf_place(BOTH_A));
        port->xmit_constraint_errors = 17;
        world_begin(w);
        send_packets(w, 260, BOTH_A, NONE_A, 0x8000 | STRAY);
        settle(w);
        ck_assert_uint_eq(port->rcv_constraint_errors, 0);
        ck_assert_uint_eq(port->xmit_constraint_errors, 17);
        send_packets(w, 10, BOTH_A, NONE_A, 0x8000 | STRAY);
        settle(w);
        c = cause_of(w, &last(w, VIOLATION_SATURATED, VIOLATION_RCV_CONSTRAINT)->report.record);
        ck_assert_uint_eq(c->n, 265);
        ck_assert_uint_eq(c->told, 265);
        send_packets(w, 260, BOTH_A, NONE_A, 0x8000 | STRAY);
        /* full again before anybody looks again */
        while (port->rcv_constraint_errors > 0)
                run(w, 100 * USEC_PER_MSEC);
        for (unsigned i = 0; i < 260; i++)
                (void) send_packet(w, BOTH_A, NONE_A, 0x8000 | STRAY);
        settle(w);
        ck_assert_uint_eq(c->n, 265 + 245 + 255);
        ck_assert_uint_eq(c->told, c->n);
        ck_assert_uint_eq(c->n_saturated, 3);
        ck_assert_uint_eq(port->rcv_constraint_errors, 0);
        world_done(w);
}
END_TEST

/* Somebody clears, a host reboots: what went down is no violation, what comes after is counted. */
START_TEST(resets)
{
        struct world *w = &world;
        unsigned n;

        world_init(w, 5, ENDS, 1);
        world_begin(w);
        send_packets(w, 20, BOTH_A, NONE_A, 0x8000 | STRAY);
        send_packets(w, 20, NONE_A, NONE_B, 0x8000 | STRAY);
        judge_all(w);
        n = w->n_messages;
        for (unsigned i = 0; i < w->f.n_nodes; i++)
                fabsim_reset_counters(&w->f, i);
        judge_all(w);
        /* off and on again, with a snapshot in between and without */
        for (unsigned k = 0; k < 2; k++) {
                w->f.nodes[place_of(w, NONE_B).node].is_up = false;
                run(w, INTERVAL);
                if (k == 0)
                        bring_in_force(w);
                settle(w);
                w->f.nodes[place_of(w, NONE_B).node].is_up = true;
                fabsim_reset_counters(&w->f, place_of(w, NONE_B).node);
                bring_in_force(w);
                judge_all(w);
        }
        ck_assert_uint_eq(w->n_messages, n);
        send_packets(w, 3, NONE_A, NONE_B, 0x8000 | STRAY);
        /* in the middle of an episode, and at once again */
        settle(w);
        fabsim_reset_counters(&w->f, place_of(w, NONE_B).node);
        send_packets(w, 2, NONE_A, NONE_B, 0x8000 | STRAY);
        judge_all(w);
        ck_assert_uint_eq(last(w, VIOLATION_QUIET, VIOLATION_P_KEY_VIOLATIONS)->report.count, 5);
        world_done(w);
}
END_TEST

/* A partition loses sixty ports at once, and all of them go on with it. */
START_TEST(storm)
{
        struct world *w = &world;
        const struct message *m = NULL;

        world_init(w, 6, MAX_ENDS, 2);
        for (unsigned e = 2; e < MAX_ENDS; e++)
                give(w, e, 1, MEMBERSHIP_FULL);
        world_begin(w);
        for (unsigned e = 4; e < MAX_ENDS; e++)
                give(w, e, 1, MEMBERSHIP_NONE);
        next_generation(w);
        run(w, 10 * USEC_PER_SEC);
        w->storms = true;
        /* counters only: who subscribes to nothing has no notices */
        fabsim_sa_restart(&w->f);
        for (unsigned e = 4; e < MAX_ENDS; e++)
                for (unsigned k = 0; k < e; k++)
                        ck_assert(!(e % LEAVES == 2 || e % LEAVES == 3 ? send_packet(w, 2, e, 0x8101)
                                                                       : send_packet(w, e, 2, 0x8101)));
        w->f.sa.n_seen = w->f.n_notices;
        for (unsigned i = 0; i < w->n_causes;)
                if (w->causes[i].source >= VIOLATION_N_COUNTERS)
                        w->causes[i] = w->causes[--w->n_causes];
                else
                        i++;
        judge_all(w);
        for (unsigned i = 0; i < w->n_messages; i++)
                if (w->messages[i].report.kind == VIOLATION_STORM)
                        m = m ? m : &w->messages[i];
        ck_assert_ptr_nonnull(m);
        has(m, "; the worst: ");
        has(m, "; all of these were taken out of tenant-a (0x0101) ");
        has(m, " ago by generation 2: this is probably the cause of all of them");
        ck_assert_uint_eq(m->report.n_worst, VIOLATIONS_WORST);
        ck_assert_uint_eq(m->report.n_ports, MAX_ENDS - 4 - VIOLATIONS_STORM_PORTS);
        ck_assert_uint_lt(strlen(m->words.text), 800);
        ck_assert_uint_le(w->n_messages, 2 * (VIOLATIONS_STORM_PORTS + 2));
        world_done(w);
}
END_TEST

/* Another SM in the middle, one that restarts before it was answered, one that asks all to register again: what it told of
 * is told once. */
START_TEST(sm_changes)
{
        struct world *w = &world;
        struct cause *c;

        world_init(w, 7, ENDS, 1);
        world_begin(w);
        send_packets(w, 3, NONE_A, NONE_B, 0x8000 | STRAY);
        c = cause_of(w, &last(w, VIOLATION_FIRST, VIOLATION_NOTICE_257)->report.record);
        w->f.sm = place_of(w, 2);
        fabsim_sa_restart(&w->f);
        ask_sa(w, false);
        run(w, 5 * USEC_PER_SEC);
        send_packets(w, 3, NONE_A, NONE_B, 0x8000 | STRAY);
        ask_sa(w, true);
        run(w, 5 * USEC_PER_SEC);
        w->lose = 300;
        send_packets(w, 40, NONE_A, NONE_B, 0x8000 | STRAY);
        run(w, 30 * USEC_PER_SEC);
        ask_sa(w, true);
        run(w, 30 * USEC_PER_SEC);
        w->lose = 0;
        judge_all(w);
        ck_assert_uint_eq(c->n, 46);
        ck_assert_uint_eq(c->n_first, 1);
        ck_assert_uint_eq(w->f.sa.n_given_up, 0);
        world_done(w);
}
END_TEST

/* A notice of a switch and of hosts that are not in the snapshot yet. */
START_TEST(not_in_the_snapshot)
{
        static const struct notice n257 = { .trap = 257, .issuer.v = 99, .key = 0x8101, .lid1.v = 98, .lid2.v = 99 };
        static const struct notice n259 = { .trap = 259, .issuer.v = 97, .key = 0x8101, .lid1.v = 98, .lid2.v = 99,
                                            .switch_lid.v = 97, .switch_port = 5, .has_switch_port = true };
        static const struct notice uplink = { .trap = 259, .issuer.v = 1, .key = 0x8101, .lid1.v = 17, .lid2.v = 22,
                                              .switch_lid.v = 1, .switch_port = 16, .has_switch_port = true };
        static const struct { const struct notice *notice; const char *text; } cases[] = {
                { &n257, "LID 98 (no port of this fabric has it) sent 1 packet to LID 99 (no port of this fabric has it) with "
                         "P_Key 0x8101 (the full key of tenant-a), refused there (notice 257, P_Key mismatch); pkeyd does not know LID "
                         "99 (yet)" },
                { &n259, "LID 98 (no port of this fabric has it) sent 1 packet to LID 99 (no port of this fabric has it) with "
                         "P_Key 0x8101 (the full key of tenant-a), refused at port 5 of the switch with LID 97 (notice "
                         "259, P_Key mismatch at a switch); pkeyd does not know port 5 of the switch with LID 97 (yet)" },
                { &uplink, "node07 mlx5_0/1 sent 1 packet to node12 mlx5_0/1 with P_Key 0x8101 (the full key of tenant-a), refused "
                           "at switch port leaf01/16 (notice 259, P_Key mismatch at a switch); node07 was never a member of "
                           "tenant-a (0x0101) in the 2 minutes that pkeyd remembers; it is a full member of default; pkeyd "
                           "does not know the host at leaf01/16 (yet)" },
        };
        struct world *w = &world;

        world_init(w, 8, ENDS, 1);
        world_begin(w);
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct attribution_input context = {
                        .subnet = w->subnet, .memberships = w->memberships, .history = w->history, .now = w->now,
                        .observed = w->observed,
                };
                struct violation_report report;
                struct attribution words;

                see_notice(w, cases[i].notice);
                ck_assert(violations_next_report(w->violations, w->now, &report));
                ck_assert_int_eq(attribution_explain(w->arena, &report, &context, &words), 0);
                ck_assert_str_eq(words.text, cases[i].text);
        }
        world_done(w);
}
END_TEST

/* --- anything, in any order ------------------------------------------------------------------------------------------ */

struct quarrel {
        unsigned from, to;
        uint16_t key;
};

static struct quarrel any_quarrel(struct world *w)
{
        struct quarrel q = { .from = prng_below(&w->rng, w->n_ends), .to = prng_below(&w->rng, w->n_ends - 1) };
        unsigned k = prng_below(&w->rng, PARTITIONS + 1);

        q.to += q.to >= q.from;
        q.key = (uint16_t) ((k == PARTITIONS ? STRAY : bases[k]) | (prng_below(&w->rng, 2) << 15));
        return q;
}

static void any_policy(struct world *w)
{
        for (unsigned e = 0; e < w->n_ends; e++)
                for (unsigned k = 1; k < PARTITIONS; k++)
                        if (prng_permille(&w->rng, 300))
                                give(w, e, k, (enum membership) prng_below(&w->rng, MEMBERSHIP_BOTH));
        next_generation(w);
}

static void turn_off_and_on(struct world *w)
{
        unsigned node = place_of(w, 2 + prng_below(&w->rng, w->n_ends - 2)).node;

        settle(w);
        w->f.nodes[node].is_up = false;
        if (prng_below(&w->rng, 2))
                bring_in_force(w);
        run(w, prng_below(&w->rng, 3 * INTERVAL));
        w->f.nodes[node].is_up = true;
        fabsim_reset_counters(&w->f, node);
        bring_in_force(w);
        settle(w);
}

static void change_sm(struct world *w)
{
        settle(w);
        w->f.sm = place_of(w, 1 + prng_below(&w->rng, 2));
        fabsim_sa_restart(&w->f);
        ask_sa(w, true);
        settle(w);
}

static void something(struct world *w)
{
        switch (prng_below(&w->rng, 12)) {
        case 0:
                settle(w);
                fabsim_reset_counters(&w->f, prng_below(&w->rng, w->f.n_nodes));
                settle(w);
                break;
        case 1:
                turn_off_and_on(w);
                break;
        case 2:
                change_sm(w);
                break;
        case 3:
                any_policy(w);
                break;
        case 4:
                bring_in_force(w);
                break;
        case 5:
                run(w, 6 * INTERVAL);
                break;
        default:
                break;
        }
}

/* Some that go on for a while; only their packets are refused. */
static void quarrel(struct world *w, unsigned n_quarrels)
{
        struct quarrel quarrels[16];
        unsigned n = 4 + prng_below(&w->rng, 12);

        for (unsigned i = 0; i < n_quarrels; i++)
                quarrels[i] = any_quarrel(w);
        for (unsigned i = 0; i < n; i++) {
                const struct quarrel *q = &quarrels[prng_below(&w->rng, n_quarrels)];
                unsigned n_packets = prng_permille(&w->rng, 30) ? 300 : prng_below(&w->rng, 6);

                for (unsigned k = 0; k < n_packets; k++) {
                        (void) send_packet(w, q->from, q->to, q->key);
                        if (k % 20 == 19 || prng_below(&w->rng, 4) == 0)
                                run(w, 1 + prng_below(&w->rng, USEC_PER_SEC));
                }
                run(w, 1 + prng_below(&w->rng, INTERVAL));
                something(w);
        }
        judge_all(w);
}

/* With few at a time each message is judged, with many the sums. */
START_TEST(soak)
{
        struct world *w = &world;

        world_init(w, (uint64_t) _i + 1, ENDS, 1 + (unsigned) _i % 2);
        for (unsigned e = 0; e < w->n_ends; e++)
                for (unsigned k = 1; k < PARTITIONS; k++)
                        give(w, e, k, (enum membership) prng_below(&w->rng, MEMBERSHIP_BOTH));
        world_begin(w);
        w->lose = _i % 3 ? 0 : 100;
        if (_i % 3 == 1)
                let_clear(w); /* without losses: a clearing that is sent once more would clear what came between */
        w->storms = _i % 5 == 4;
        for (unsigned i = 0; i < 2 || w->n_refused == 0; i++)
                quarrel(w, w->storms ? 16 : 3);
        world_done(w);
}
END_TEST

/* Only what the policy allows is sent: nothing is ever said, whatever else happens. */
START_TEST(nothing_refused)
{
        struct world *w = &world;
        unsigned n_passed = 0;

        world_init(w, (uint64_t) _i + 1, ENDS, 1);
        for (unsigned n = 0; n < w->f.n_nodes; n++)
                w->f.nodes[n].ports[1].p_key_violations = (uint16_t) prng_below(&w->rng, 1000);
        any_policy(w);
        world_begin(w);
        for (unsigned i = 0; i < 60; i++) {
                struct quarrel q = any_quarrel(w);
                unsigned k = partition_of(q.key);

                /* the default partition's members may always talk to each other; of the rest those of whom one is full */
                if (k == PARTITIONS || w->given[q.from].now[k] == MEMBERSHIP_NONE)
                        continue;
                if (w->given[q.to].now[k] == MEMBERSHIP_FULL ||
                    (w->given[q.to].now[k] == MEMBERSHIP_LIMITED && w->given[q.from].now[k] == MEMBERSHIP_FULL)) {
                        q.key = (uint16_t) (bases[k] | (w->given[q.from].now[k] == MEMBERSHIP_FULL ? 0x8000 : 0));
                        ck_assert(send_packet(w, q.from, q.to, q.key));
                        n_passed++;
                }
                run(w, prng_below(&w->rng, 20 * USEC_PER_SEC));
                something(w);
        }
        judge_all(w);
        ck_assert_uint_gt(n_passed, 5);
        ck_assert_uint_eq(w->n_refused, 0);
        ck_assert_uint_eq(w->n_messages, 0);
        world_done(w);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("messages");
        TCase *t = tcase_create("messages");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_set_timeout(t, 300);
        tcase_add_loop_test(t, each_check, 0, 6);
        tcase_add_test(t, just_taken_out);
        tcase_add_test(t, wrong_keys);
        tcase_add_test(t, saturation);
        tcase_add_test(t, cleared);
        tcase_add_test(t, resets);
        tcase_add_test(t, storm);
        tcase_add_test(t, sm_changes);
        tcase_add_test(t, not_in_the_snapshot);
        tcase_add_loop_test(t, soak, 0, SOAK);
        tcase_add_loop_test(t, nothing_refused, 0, 20);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
