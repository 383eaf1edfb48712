/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The promises on small fabrics, by enumeration: up to four ports and two bases, levels none, limited, full and both, every
 * write failing or unconfirmed at every point, and every subset of the tables unknown.
 *
 * A transition begins with the tables in the hardware, and with incomplete knowledge of them. Each table is
 *
 *     read      and answers from then on, or until one of its Sets: the table falls silent before the read that precedes the Set,
 *               the Set does not arrive, it arrives and its answer is lost, or it is refused;
 *     silent    and was read some time ago: it holds what was read, or what was sent to it since without confirmation;
 *     silent    and was never read.
 *
 * The hardware is checked in each intermediate state: two ports that may talk before and by the policy can talk, and two that may
 * talk neither before nor by the policy cannot, in two models of a switch (fake_fabric_level). A history of many changes is a
 * chain of transitions, and each final state of a transition is also tested as an initial state. If all ports answer, the policy is
 * carried out completely.
 *
 * Because all combinations together are too many, they are split, and each part is tested exhaustively:
 *
 * 1. The plan of a port (and of its leaf port) does not depend on other ports: the plan of four ports is the union of the plans of
 *    each (test_ports_are_planned_alone).
 * 2. A promise concerns two ports and one base, so one base and two ports are tested with all possible knowledge and every
 *    membership (test_two_uncertain); and three ports, for changes that wait for a third one (test_three_uncertain).
 * 3. A filter is a second table before a port: tested with all contents, on or off, with all events at the port behind it and at
 *    another one (test_behind_a_filter), and with every subset of four tables silent (test_silent_behind_filters).
 * 4. Changes of several bases share MADs: two ports, two bases, all 32,896 transitions, each with one write lost in each way
 *    (test_two_bases); and changes of two bases that wait for a third port (test_a_third_fails).
 * 5. As a check of this reasoning: four ports and one base without the split (test_four_ports).
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/fake_fabric.h"
#include "knowledge/table_records.h"

#define MAX_PENDING 64
#define MAX_BASES   2
#define MAX_PORTS   (2 * FAKE_MAX_HOSTS)
#define CAPACITY    16 /* of each table: more than any test needs */
#define SLICES      2  /* of a long test: a process each */
#define ANY_PORT    UINT32_MAX

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some million times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

/* What happens to a table that was read. */
enum loss {
        SILENT_BEFORE, /* from the read before the Set on */
        LOST_BEFORE,   /* the Set never arrives, and the port is silent from then on */
        LOST_AFTER,    /* it arrives, and the port is silent from then on */
        REFUSED,       /* with a status, and the port answers */
        N_LOSSES,
};
#define ANY_LOSS    ((1u << N_LOSSES) - 1)
#define UNCONFIRMED (1u << LOST_BEFORE | 1u << LOST_AFTER)

/* What is known of a table. */
enum known_how {
        KNOWN_READ,
        KNOWN_BEFORE, /* what it holds was read some time ago */
        KNOWN_NEVER,
        KNOWN_SENT,   /* what it holds was sent, and not confirmed: `read` was read before that */
};

struct uncertainty {
        enum known_how known;
        enum membership read;          /* of KNOWN_SENT: in the first base */
        enum loss loss;
        unsigned which;                /* the Set that is lost; UINT32_MAX: none */
};

/* What is tried of a transition. */
struct variety {
        unsigned max_uncertain;        /* tables at once */
        uint32_t losing, silent;       /* ports, a bit for each: whose Sets may be lost, which may be silent from the beginning */
        unsigned losses;               /* a bit for each enum loss */
        bool sent;                     /* silent ports may be KNOWN_SENT, too */
        bool both_orders;              /* of the requests of a phase: both, else each by turns */
};

struct talks {
        bool may[2][MAX_BASES][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];
};

/* One history. */
struct trial {
        struct fake_fabric f;
        unsigned n_bases;
        struct uncertainty uncertain[MAX_PORTS];
        bool reverse;
        struct talks from, to;
        /* on the way */
        unsigned sets[MAX_PORTS];
        bool is_silent[MAX_PORTS];
};

/* Knowledge keeps what was read once: tables that were never read need one in which they never were. */
#define MAX_NEVER 8
static struct fake_wire wires[1u << MAX_NEVER];

static struct fake_wire *wire_of(const struct trial *t)
{
        unsigned never = 0;

        REQUIRE(t->f.subnet->n_ports <= MAX_NEVER);
        for (unsigned i = 0; i < MAX_NEVER; i++)
                never |= (unsigned) (t->uncertain[i].known == KNOWN_NEVER) << i;
        if (!wires[never].knowledge) {
                wires[never] = (struct fake_wire) { .knowledge = knowledge_new(), .gate = gate_new() };
                REQUIRE(wires[never].knowledge && wires[never].gate);
        }
        return &wires[never];
}

static void free_wires(void)
{
        for (unsigned i = 0; i < ELEMENTS(wires); i++)
                fake_wire_done(&wires[i]);
}

/* --- the promises ------------------------------------------------------------------------------------------------------ */

static void relate(const struct fake_fabric *f, unsigned n_bases, struct talks *ret)
{
        int level[FAKE_MAX_HOSTS];

        for (int strict = 0; strict < 2; strict++)
                for (unsigned b = 0; b < n_bases; b++) {
                        for (unsigned x = 0; x < f->n_hosts; x++)
                                level[x] = fake_fabric_level(f, x, FAKE_BASE(b + 1), strict);
                        for (unsigned x = 0; x < f->n_hosts; x++)
                                for (unsigned y = x + 1; y < f->n_hosts; y++)
                                        ret->may[strict][b][x][y] = level[x] && level[y] && (level[x] == 2 || level[y] == 2);
                }
}

static void check_promises(const struct trial *t)
{
        struct talks now;

        relate(&t->f, t->n_bases, &now);
        for (int strict = 0; strict < 2; strict++)
                for (unsigned b = 0; b < t->n_bases; b++)
                        for (unsigned x = 0; x < t->f.n_hosts; x++)
                                for (unsigned y = x + 1; y < t->f.n_hosts; y++)
                                        if (t->from.may[strict][b][x][y] == t->to.may[strict][b][x][y] &&
                                            now.may[strict][b][x][y] != t->from.may[strict][b][x][y])
                                                ck_abort_msg("%s broken: %u-%u",
                                                             now.may[strict][b][x][y] ? "isolation" : "continuity", x, y);
}

static enum membership at_leaf(enum membership m)
{
        return m == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : m;
}

/* What a table holds of each base. */
static void put_table(struct fake_fabric *f, uint32_t port, const enum membership m[4], unsigned n_bases)
{
        memset(f->tables[port], 0, sizeof(f->tables[port]));
        fake_fabric_put(f, port, P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        for (unsigned b = 1; b <= n_bases; b++)
                fake_fabric_put(f, port, FAKE_BASE(b), m[b]);
}

static void put_all(struct fake_fabric *f, enum membership m[][4], unsigned n_bases)
{
        for (unsigned h = 0; h < f->n_hosts; h++) {
                const enum membership leaf[4] = { m[h][0], at_leaf(m[h][1]), at_leaf(m[h][2]) };

                put_table(f, f->host[h], m[h], n_bases);
                put_table(f, f->leaf[h], leaf, n_bases);
        }
}

/* --- a run --------------------------------------------------------------------------------------------------------------- */

static bool is_table(const struct mad_request *request)
{
        return request->attribute == SMP_ATTR_P_KEY_TABLE || (request->attribute == SMP_ATTR_PORT_INFO && request->modifier > 0);
}

/* Carried out, lost before or after, or refused. */
static void answer(struct trial *t, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&t->f, request);
        const struct uncertainty *u = &t->uncertain[port];
        bool sets = request->method == MAD_SET, strikes = is_table(request) && t->sets[port] == u->which;

        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        t->sets[port] += sets;
        if (strikes && sets && u->loss == REFUSED) {
                ret->outcome = MAD_REFUSED;
                ret->mad_status = 0x1c;
                return;
        }
        if (t->is_silent[port])
                return;
        t->is_silent[port] = strikes && (u->loss == SILENT_BEFORE || (sets && u->loss != REFUSED));
        if (!t->is_silent[port] || (sets && u->loss == LOST_AFTER))
                (void) fake_fabric_answer(&t->f, request, ret);
        if (t->is_silent[port])
                ret->outcome = MAD_TIMED_OUT;
        if (sets)
                check_promises(t);
}

static void send_smp(struct fake_wire *wire, const struct mad_request *request)
{
        if (!fake_wire_send(wire, request))
                ck_abort_msg("the gate refused what apply found admitted: %s", gate_refusal(wire->gate));
}

/* All requests that are to be had are sent; they are carried out and answered in this order, or in the reverse one. */
static void carry_out_phase(struct trial *t, struct fake_wire *wire, struct mad_stage stage)
{
        struct mad_request pending[MAX_PENDING];
        unsigned first = 0, end = 0, i;
        struct mad_result result;

        for (;;) {
                while (end < MAX_PENDING && stage.next(stage.state, 0, &pending[end]))
                        send_smp(wire, &pending[end++]);
                if (first == end)
                        break;
                i = t->reverse ? --end : first++;
                answer(t, &pending[i], &result);
                fake_wire_end(wire, &pending[i], &result);
                stage.result(stage.state, 0, &result);
                if (first == end)
                        first = end = 0;
        }
        REQUIRE(stage.done(stage.state));
}

static void carry_out(struct trial *t, struct fake_wire *wire, struct apply *apply)
{
        while (apply_prepare(apply) > 0) {
                knowledge_stored(wire->knowledge);
                carry_out_phase(t, wire, apply_stage(apply));
        }
}

/* --- what is known ------------------------------------------------------------------------------------------------------- */

static void see(struct knowledge *k, const struct observed *o)
{
        REQUIRE(knowledge_see_subnet(k, o->subnet, 0, 0, USEC_INFINITY) == 0);
        REQUIRE(knowledge_see_tables(k, o, 0) == 0);
}

/* As if the silent tables had been read before this discovery, and written since. */
static void see_before(const struct trial *t, struct arena *a, struct knowledge *k)
{
        struct fake_fabric before = t->f;
        struct observed *o;

        for (uint32_t i = 0; i < t->f.subnet->n_ports; i++)
                if (t->uncertain[i].known == KNOWN_SENT)
                        put_table(&before, i, (enum membership[4]) { MEMBERSHIP_FULL, t->uncertain[i].read }, 1);
        o = fake_fabric_observe(&before, a);
        for (uint32_t i = 0; i < t->f.subnet->n_ports; i++)
                if (t->uncertain[i].known == KNOWN_NEVER)
                        o->tables[i].source = TABLE_UNKNOWN;
        see(k, o);
        for (uint32_t i = 0; i < t->f.subnet->n_ports; i++)
                if (t->uncertain[i].known == KNOWN_SENT)
                        REQUIRE(knowledge_expect_block(k, knowledge_find_port(k, o->subnet, i), 0, t->f.tables[i]) == 0);
}

/* Fills the knowledge of the wire, and what the planner sees of it. */
static struct observed *learn(const struct trial *t, struct arena *a, const struct desired *desired, bool any_silent)
{
        struct observed *o = fake_fabric_observe((struct fake_fabric *) &t->f, a);
        struct fake_wire *wire = wire_of(t);
        struct knowledge *k = wire->knowledge;

        if (any_silent)
                see_before(t, a, k);
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (t->uncertain[i].known != KNOWN_READ) {
                        memset(o->tables[i].entries, 0, o->tables[i].capacity * sizeof(*o->tables[i].entries));
                        o->tables[i].source = TABLE_UNKNOWN;
                        o->tables[i].failure = MAD_TIMED_OUT;
                }
        see(k, o);
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (o->subnet->ports[i].role == PORT_SWITCH_EXTERNAL && o->tables[i].entries)
                        knowledge_see_filter(k, knowledge_find_port(k, o->subnet, i), t->f.enforce_inbound[i],
                                             t->f.enforce_outbound[i]);
        REQUIRE(knowledge_set_policy(k, desired) == 0);
        knowledge_recall(k, o);
        gate_open(wire->gate, k, &t->f.policy);
        return o;
}

/* --- one transition ------------------------------------------------------------------------------------------------------ */

static struct plan *compute(struct arena *a, const struct desired *desired, const struct observed *observed)
{
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH };
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct plan *plan;

        REQUIRE(plan_compute(a, desired, observed, NULL, &options, &findings, &plan) == 0);
        return plan;
}

/* A transition with what is known at its beginning. */
struct transition {
        struct trial start;
        struct fake_fabric target;
        struct desired desired;
        const struct plan *plan;
        unsigned n_silent, n_lost;
        const struct variety *variety;
        unsigned sets[MAX_PORTS];      /* by an undisturbed run */
        unsigned n_tried;
};

static enum membership membership_of(const struct fake_fabric *f, uint32_t port, uint16_t base)
{
        bool full = p_keys_hold(f->tables[port], CAPACITY, p_key_make(base, true));

        return (enum membership) (full * MEMBERSHIP_FULL + p_keys_hold(f->tables[port], CAPACITY, p_key_make(base, false)));
}

/* Where everything is known, nothing waits. */
static void require_done(const struct transition *x, const struct trial *t, const struct apply *apply)
{
        struct apply_summary summary;

        apply_get_summary(apply, &summary);
        REQUIRE(summary.failed == 0 && summary.held == 0 && summary.n_held_bases == 0);
        for (uint16_t b = 1; b <= t->n_bases; b++)
                for (uint32_t i = 0; i < t->f.subnet->n_ports; i++)
                        if (subnet_port_is_managed(t->f.subnet, &t->f.subnet->ports[i]))
                                REQUIRE(membership_of(&t->f, i, FAKE_BASE(b)) == membership_of(&x->target, i, FAKE_BASE(b)));
}

static void try_once(struct transition *x, bool reverse, unsigned *ret_sets)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct trial t = x->start;
        struct observed *observed = learn(&t, a, &x->desired, x->n_silent > 0);
        struct fake_wire *wire = wire_of(&t);
        const struct apply_options options = { .retries = 1, .knowledge = wire->knowledge };
        struct apply *apply;

        t.reverse = reverse;
        REQUIRE(apply_new(a, x->plan, observed, NULL, &options, &apply) == 0);
        carry_out(&t, wire, apply);
        if (x->n_silent == 0 && x->n_lost == 0)
                require_done(x, &t, apply);
        if (ret_sets)
                memcpy(ret_sets, t.sets, sizeof(t.sets));
        x->n_tried++;
}

/* Without a loss the first order was tried, to count the Sets. */
static void try_orders(struct transition *x)
{
        bool both = x->variety->both_orders;

        if (both && x->n_lost > 0)
                try_once(x, false, NULL);
        try_once(x, both || x->n_lost == 0 || x->n_tried % 2, NULL);
}

/* Each Set of each port from this one on lost in each way, or none. */
static void lose(struct transition *x, uint32_t port)
{
        struct uncertainty *u;

        while (port < x->target.subnet->n_ports && (!(x->variety->losing >> port & 1) || x->start.is_silent[port]))
                port++;
        u = &x->start.uncertain[port];
        if (port == x->target.subnet->n_ports) {
                try_orders(x);
                return;
        }
        lose(x, port + 1);
        if (x->n_silent + x->n_lost == x->variety->max_uncertain)
                return;
        x->n_lost++;
        for (u->which = 0; u->which < x->sets[port]; u->which++)
                for (u->loss = 0; u->loss < N_LOSSES; u->loss++)
                        if (x->variety->losses >> u->loss & 1)
                                lose(x, port + 1);
        u->which = UINT32_MAX;
        x->n_lost--;
}

/* What is known at the beginning is settled. */
static void begin(struct transition *x)
{
        _cleanup_arena_ struct arena *a = arena_new();

        x->plan = compute(a, &x->desired, learn(&x->start, a, &x->desired, x->n_silent > 0));
        try_once(x, false, x->sets);
        lose(x, 0);
}

/* Each port from this one on silent from the beginning, with all that may be known of it, or not. */
static void keep_silent(struct transition *x, uint32_t port)
{
        const struct subnet *s = x->target.subnet;
        struct uncertainty *u;

        while (port < s->n_ports && (!(x->variety->silent >> port & 1) || !subnet_port_is_managed(s, &s->ports[port])))
                port++;
        u = &x->start.uncertain[port];
        if (port == s->n_ports) {
                begin(x);
                return;
        }
        keep_silent(x, port + 1);
        if (x->n_silent == x->variety->max_uncertain)
                return;
        x->n_silent++;
        x->start.is_silent[port] = true;
        for (u->known = KNOWN_BEFORE; u->known <= KNOWN_NEVER; u->known++)
                keep_silent(x, port + 1);
        u->known = KNOWN_SENT;
        for (u->read = MEMBERSHIP_NONE; x->variety->sent && u->read <= MEMBERSHIP_FULL; u->read++)
                if (u->read != membership_of(&x->start.f, port, FAKE_BASE(1)))
                        keep_silent(x, port + 1);
        u->known = KNOWN_READ;
        x->start.is_silent[port] = false;
        x->n_silent--;
}

/* From the tables that `f` has. */
static void try_from(const struct fake_fabric *f, enum membership to[][4], unsigned n_bases, const struct variety *variety)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct transition x = { .start = { .f = *f, .n_bases = n_bases }, .target = *f, .variety = variety };

        for (unsigned i = 0; i < MAX_PORTS; i++)
                x.start.uncertain[i].which = UINT32_MAX;
        put_all(&x.target, to, n_bases);
        fake_fabric_desire(&x.target, a, to, n_bases + 1, &x.desired);
        relate(&x.start.f, n_bases, &x.start.from);
        relate(&x.target, n_bases, &x.start.to);
        keep_silent(&x, 0);
}

static void try_all(const struct fake_fabric *empty, enum membership from[][4], enum membership to[][4], unsigned n_bases,
                    const struct variety *variety)
{
        struct fake_fabric f = *empty;

        put_all(&f, from, n_bases);
        try_from(&f, to, n_bases, variety);
}

static void all_default(enum membership m[][4])
{
        memset(m, 0, sizeof(enum membership) * FAKE_MAX_HOSTS * 4);
        for (unsigned h = 0; h < FAKE_MAX_HOSTS; h++)
                m[h][0] = MEMBERSHIP_FULL;
}

/* Two bases, each from one of four levels to one of four: 256 codes. */
static void put_code(enum membership from[][4], enum membership to[][4], unsigned h, unsigned code)
{
        from[h][1] = code % 4;
        to[h][1] = code / 4 % 4;
        from[h][2] = code / 16 % 4;
        to[h][2] = code / 64;
}

/* As if the bases changed their names. */
static unsigned swapped(unsigned code)
{
        return code / 16 + code % 16 * 16;
}

/* The tables of all, empty but for the default partition. */
static void init(struct fake_fabric *f, struct arena *a, unsigned n_hosts, bool with_leaf)
{
        fake_fabric_init(f, a, n_hosts, with_leaf);
        for (uint32_t i = 0; i < f->subnet->n_nodes; i++) {
                struct subnet_node *node = &f->subnet->nodes[i];

                node->partition_cap = CAPACITY;
                node->partition_enforcement_cap = MIN(node->partition_enforcement_cap, (uint16_t) CAPACITY);
        }
        for (uint32_t i = 0; i < f->subnet->n_ports; i++)
                fake_fabric_put(f, i, P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
}

/* Two ports of which anything may be unknown. */
START_TEST(test_two_uncertain)
{
        static const struct variety variety = { .max_uncertain = 2, .losing = ANY_PORT, .silent = ANY_PORT, .losses = ANY_LOSS,
                                                .sent = true, .both_orders = true };
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        init(&f, a, 2, false);
        all_default(from);
        all_default(to);
        for (unsigned x = 0; x < 16; x++)
                for (unsigned y = x; y < 16; y++) {
                        put_code(from, to, 0, x);
                        put_code(from, to, 1, y);
                        try_all(&f, from, to, 1, &variety);
                }
        free_wires();
}
END_TEST

/* And three. */
START_TEST(test_three_uncertain)
{
        static const struct variety variety = { .max_uncertain = 3, .losing = ANY_PORT, .silent = ANY_PORT, .losses = ANY_LOSS,
                                                .sent = true };
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        init(&f, a, 3, false);
        all_default(from);
        all_default(to);
        for (unsigned x = (unsigned) _i; x < 9; x += SLICES)
                for (unsigned y = x; y < 9; y++)
                        for (unsigned z = y; z < 9; z++) {
                                const unsigned codes[] = { x, y, z };

                                for (unsigned h = 0; h < 3; h++) {
                                        from[h][1] = codes[h] % 3;
                                        to[h][1] = codes[h] / 3;
                                }
                                try_all(&f, from, to, 1, &variety);
                        }
        free_wires();
}
END_TEST

/* A host and its leaf port with any levels: 27 codes. */
static void put_levels(struct fake_fabric *f, enum membership to[][4], unsigned h, unsigned code)
{
        put_table(f, f->host[h], (enum membership[4]) { MEMBERSHIP_FULL, code % 3 }, 1);
        put_table(f, f->leaf[h], (enum membership[4]) { MEMBERSHIP_FULL, code / 3 % 3 }, 1);
        to[h][1] = code / 9;
}

static void set_filter(struct fake_fabric *f, unsigned h, bool on)
{
        f->enforce_inbound[f->leaf[h]] = f->enforce_outbound[f->leaf[h]] = on;
}

/* A host, its leaf port, and another host. */
START_TEST(test_behind_a_filter)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership to[FAKE_MAX_HOSTS][4];
        struct variety variety = { .max_uncertain = 2, .losses = ANY_LOSS, .sent = true };
        struct fake_fabric f;

        init(&f, a, 2, true);
        all_default(to);
        variety.losing = variety.silent = 1u << f.host[0] | 1u << f.leaf[0] | 1u << f.host[1];
        for (unsigned x = (unsigned) _i; x < 54; x += SLICES)
                for (unsigned y = 0; y < 9; y++) {
                        put_levels(&f, to, 0, x % 27);
                        set_filter(&f, 0, x / 27);
                        put_levels(&f, to, 1, y % 3 + y * 3);
                        try_from(&f, to, 1, &variety);
                }
        free_wires();
}
END_TEST

/* Two hosts and their leaf ports, any of them silent. */
START_TEST(test_silent_behind_filters)
{
        static const struct variety variety = { .max_uncertain = 4, .silent = ANY_PORT };
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        init(&f, a, 2, true);
        all_default(to);
        for (unsigned x = (unsigned) _i; x < 27; x += SLICES)
                for (unsigned y = x; y < 27; y++) {
                        put_levels(&f, to, 0, x);
                        put_levels(&f, to, 1, y);
                        try_from(&f, to, 1, &variety);
                }
        free_wires();
}
END_TEST

/* With a switch that enforces beside them: what it lets through is what their own tables do, at best. */
START_TEST(test_two_bases)
{
        static const struct variety variety = { .max_uncertain = 1, .losing = ANY_PORT, .losses = UNCONFIRMED };
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        init(&f, a, 2, true);
        all_default(from);
        all_default(to);
        for (unsigned x = (unsigned) _i; x < 256; x += SLICES)
                for (unsigned y = x; y < 256; y++) {
                        unsigned low = swapped(x) < swapped(y) ? swapped(x) : swapped(y);

                        if (low < x)
                                continue; /* it was tried with the bases' names changed */
                        put_code(from, to, 0, x);
                        put_code(from, to, 1, y);
                        try_all(&f, from, to, 2, &variety);
                }
        free_wires();
}
END_TEST

/* The third: its first base changes in each of 16 ways, its second is granted. The others: all changes of the
 * first base, and of the second those that the third's failure can have to do with. */
START_TEST(test_a_third_fails)
{
        struct variety variety = { .max_uncertain = 1, .losses = UNCONFIRMED };
        _cleanup_arena_ struct arena *a = arena_new();
        static const unsigned second[] = { 0x00, 0x80, 0x20, 0x90 }; /* nothing; none to full; full to none; limited to full */
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        init(&f, a, 3, false);
        all_default(from);
        all_default(to);
        variety.losing = 1u << f.host[2];
        for (unsigned z = (unsigned) _i; z < 16; z += SLICES)
                for (unsigned x = 0; x < 64; x++)
                        for (unsigned y = x; y < 64; y++) {
                                put_code(from, to, 0, x % 16 + second[x / 16]);
                                put_code(from, to, 1, y % 16 + second[y / 16]);
                                put_code(from, to, 2, z + 0x80);
                                try_all(&f, from, to, 2, &variety);
                        }
        free_wires();
}
END_TEST

START_TEST(test_four_ports)
{
        static const struct variety variety = { .max_uncertain = 1, .losing = ANY_PORT, .losses = ANY_LOSS, .both_orders = true };
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;
        unsigned code[4];

        init(&f, a, 4, false);
        all_default(from);
        all_default(to);
        for (code[0] = (unsigned) _i; code[0] < 16; code[0] += SLICES)
                for (code[1] = code[0]; code[1] < 16; code[1]++)
                        for (code[2] = code[1]; code[2] < 16; code[2]++)
                                for (code[3] = code[2]; code[3] < 16; code[3]++) {
                                        for (unsigned h = 0; h < 4; h++)
                                                put_code(from, to, h, code[h]);
                                        try_all(&f, from, to, 1, &variety);
                                }
        free_wires();
}
END_TEST

/* Of one host and its switch port: what is written, phase by phase. */
struct writes {
        unsigned n;
        struct {
                enum plan_phase phase;
                bool is_leaf;
                struct p_key before[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
        } items[2 * PLAN_N_PHASES];
};

static void writes_of(const struct fake_fabric *f, const struct plan *plan, unsigned host, struct writes *ret)
{
        memset(ret, 0, sizeof(*ret));
        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];

                        if (w->port != f->host[host] && w->port != f->leaf[host])
                                continue;
                        REQUIRE(w->kind == WRITE_BLOCK && w->block == 0);
                        ret->items[ret->n].phase = (enum plan_phase) phase;
                        ret->items[ret->n].is_leaf = w->port == f->leaf[host];
                        memcpy(ret->items[ret->n].before, w->before, sizeof(w->before));
                        memcpy(ret->items[ret->n].after, w->after, sizeof(w->after));
                        ret->n++;
                }
}

static void plan_codes(unsigned n_hosts, const unsigned *codes, struct writes *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct desired desired;
        struct fake_fabric f;
        struct plan *plan;

        init(&f, a, n_hosts, true);
        all_default(from);
        all_default(to);
        for (unsigned h = 0; h < n_hosts; h++)
                put_code(from, to, h, codes[h]);
        put_all(&f, from, 2);
        fake_fabric_desire(&f, a, to, 3, &desired);
        plan = compute(a, &desired, fake_fabric_observe(&f, a));
        for (unsigned h = 0; h < n_hosts; h++)
                writes_of(&f, plan, h, &ret[h]);
}

START_TEST(test_ports_are_planned_alone)
{
        static struct writes alone[256];
        struct writes together[4];
        unsigned codes[4], state = 1;

        for (unsigned code = 0; code < 256; code++)
                plan_codes(1, &code, &alone[code]);
        for (unsigned i = 0; i < 4000; i++) {
                for (unsigned h = 0; h < 4; h++)
                        codes[h] = h == 0 ? i % 256 : (state = state * 1103515245 + 12345) >> 16 & 255;
                plan_codes(4, codes, together);
                for (unsigned h = 0; h < 4; h++)
                        REQUIRE(memcmp(&together[h], &alone[codes[h]], sizeof(together[h])) == 0);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("small fabrics");
        TCase *t = tcase_create("all of them");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_set_timeout(t, 0);
        tcase_add_test(t, test_ports_are_planned_alone);
        tcase_add_test(t, test_two_uncertain);
        tcase_add_loop_test(t, test_three_uncertain, 0, SLICES);
        tcase_add_loop_test(t, test_behind_a_filter, 0, SLICES);
        tcase_add_loop_test(t, test_silent_behind_filters, 0, SLICES);
        tcase_add_loop_test(t, test_two_bases, 0, SLICES);
        tcase_add_loop_test(t, test_a_third_fails, 0, SLICES);
        tcase_add_loop_test(t, test_four_ports, 0, SLICES);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
