/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets that the hardware drops, the poll and the engine that read its counters, and the violation table: in virtual time,
 * with lost MADs, nodes that reboot, disappear or are replaced, and PMAs with counters of 8 and of 64 bits. The expected
 * violation table is computed independently, from the registers of the hardware at the time of each answer that arrived.
 */

#include <check.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "mad_engine/mad_engine.h"
#include "prng.h"
#include "violations/notice_ends.h"
#include "violations/poll.h"

#define SWITCHES      3
#define HOSTS         9
#define NODES         (SWITCHES + HOSTS)
#define INTERVAL      (60 * USEC_PER_SEC)
#define ROUNDS        40
#define SIDE_IN_FLIGHT 8

/* The values of a register at each answer that arrived. */
struct register_seen {
        bool seen;
        unsigned bits;
        uint64_t last, total;
        bool full;
};

struct world {
        struct fabsim f;
        struct prng rng;
        unsigned lose;                  /* of a thousand MADs */
        bool clear;
        usec_t now;
        struct arena *arena;
        struct mad_engine *engine;
        struct violation_poll *poll;
        struct mad_background_task side;
        unsigned n_under_way;
        struct violations *violations;
        struct register_seen registers[NODES][FABSIM_MAX_PORTS + 1][VIOLATION_N_COUNTERS];
        uint64_t gone[VIOLATION_N_COUNTERS]; /* totals of nodes that were replaced */
        unsigned n_gone;
        uint64_t n_refused, told;
        unsigned n_looks, n_resets, n_full, n_cleared;
};

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

static struct fabsim_place host(unsigned h)
{
        return (struct fabsim_place) { SWITCHES + h, 1 };
}

static void make_tables(struct world *w)
{
        static const uint16_t keys[] = { 0x8010, 0x0010, 0x8011, 0x0011, 0x7fff, 0xffff };

        for (unsigned n = 0; n < NODES; n++)
                for (unsigned p = 0; p <= w->f.nodes[n].num_ports; p++) {
                        struct fabsim_port *port = &w->f.nodes[n].ports[p];

                        for (unsigned i = 0; i < 3 && i < port->capacity; i++)
                                port->table[i].v = keys[prng_below(&w->rng, 6)];
                        port->enforce_inbound = n < SWITCHES && p > 0 && prng_permille(&w->rng, 400);
                        port->enforce_outbound = n < SWITCHES && p > 0 && prng_permille(&w->rng, 400);
                }
}

static void make_fabric(struct world *w)
{
        struct fabsim *f = &w->f;

        fabsim_init(f);
        for (unsigned s = 0; s < SWITCHES; s++) {
                (void) fabsim_add_node(f, NODE_SWITCH, 8, 8, "leaf");
                fabsim_set_enforcement_cap(f, s, 8, true, true);
                f->nodes[s].ports[0].lid.v = (uint16_t) (1 + s);
                if (s > 0)
                        fabsim_connect(f, s - 1, 8, s, 7);
        }
        for (unsigned h = 0; h < HOSTS; h++) {
                unsigned n = fabsim_add_node(f, NODE_CA, 1, 8, "host mlx5_0");

                f->nodes[n].ports[1].lid.v = (uint16_t) (10 + h);
                fabsim_connect(f, n, 1, h % SWITCHES, (uint8_t) (1 + h / SWITCHES));
        }
        for (unsigned n = 0; n < NODES; n++) {
                f->nodes[n].has_wide_errors = prng_permille(&w->rng, 400);
                f->nodes[n].has_no_class_port_info = prng_permille(&w->rng, 200);
        }
        /* one of each kind at least, and what was full or nearly so before we came */
        f->nodes[0].has_wide_errors = false;
        f->nodes[1].has_wide_errors = true;
        f->nodes[1].has_no_class_port_info = false;
        fabsim_port_at(f, host(1))->p_key_violations = 0xffe0;
        f->nodes[0].ports[1].rcv_constraint_errors = 255;
        f->self = f->sm = host(0);
        make_tables(w);
}

static bool is_there(const struct fabsim *f, unsigned node)
{
        return f->nodes[node].is_up;
}

static void add_ports(struct subnet_builder *b, const struct fabsim *f, unsigned node)
{
        const struct fabsim_node *n = &f->nodes[node];

        for (uint8_t p = n->type == NODE_SWITCH ? 0 : 1; p <= n->num_ports; p++) {
                struct lid lid = n->ports[n->type == NODE_SWITCH ? 0 : p].lid;
                struct subnet_port port = {
                        .number = p, .guid = n->ports[p].guid, .lid = lid, .route.lid = lid,
                };

                ck_assert_int_eq(subnet_builder_add_port(b, n->guid, &port), 0);
        }
}

/* The snapshot that a sweep would have. */
static void take_snapshot(struct world *w)
{
        struct fabsim *f = &w->f;
        struct subnet_builder *b;
        struct fabsim_place other;
        struct subnet *s;

        arena_free(w->arena);
        w->arena = arena_new();
        ck_assert_int_eq(subnet_builder_new(w->arena, &b), 0);
        for (unsigned n = 0; n < NODES; n++) {
                struct subnet_node node = { .guid = f->nodes[n].guid, .type = f->nodes[n].type, .partition_cap = 8 };

                if (is_there(f, n))
                        ck_assert_int_eq(subnet_builder_add_node(b, &node, "x", 1), 0);
        }
        for (unsigned n = 0; n < NODES; n++)
                if (is_there(f, n))
                        add_ports(b, f, n);
        for (unsigned n = 0; n < NODES; n++)
                for (uint8_t p = 1; p <= f->nodes[n].num_ports; p++)
                        if (fabsim_peer(f, (struct fabsim_place) { n, p }, &other))
                                ck_assert_int_eq(subnet_builder_add_link(b, f->nodes[n].guid, p,
                                                                         f->nodes[other.node].guid, other.port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        ck_assert_int_eq(violation_poll_set_subnet(w->poll, w->now, s), 0);
}

/* --- what must come out ---------------------------------------------------------------------------------------------- */

static uint64_t shown(uint64_t value, unsigned bits)
{
        return bits < 64 && value >> bits ? (UINT64_C(1) << bits) - 1 : value;
}

static void expect_look(struct world *w, unsigned node, unsigned port, enum violation_source source, unsigned bits,
                        uint64_t value)
{
        struct register_seen *r = &w->registers[node][port][source];

        value = shown(value, bits);
        w->n_looks++;
        if (r->seen && r->bits == bits) {
                w->n_resets += value < r->last;
                r->total += value >= r->last ? value - r->last : value;
        }
        r->seen = true;
        r->bits = bits;
        r->last = value;
        r->full = bits < 64 && value == (UINT64_C(1) << bits) - 1;
        w->n_full += r->full;
}

static void expect_cleared(struct world *w, unsigned node, unsigned port, const struct mad_frame *answer)
{
        bool rcv = mad_get_field((void *) (answer->mad + 64), 0, IB_PC_COUNTER_SELECT_F) & 0x100;
        struct register_seen *r = &w->registers[node][port][rcv ? VIOLATION_RCV_CONSTRAINT : VIOLATION_XMIT_CONSTRAINT];

        ck_assert(r->full);
        r->last = 0;
        r->full = false;
        w->n_cleared++;
}

/* An answer that gets through. */
static void expect(struct world *w, struct fabsim_place at, const struct mad_frame *answer)
{
        uint8_t *mad = (void *) answer->mad;
        unsigned attribute = mad_get_field(mad, 0, IB_MAD_ATTRID_F), number;
        struct fabsim_node *n = &w->f.nodes[at.node];

        if (mad_get_field(mad, 0, IB_MAD_STATUS_F) != 0)
                return;
        if (attribute == IB_ATTR_PORT_INFO) {
                expect_look(w, at.node, at.port, VIOLATION_P_KEY_VIOLATIONS, 16, n->ports[at.port].p_key_violations);
                return;
        }
        number = mad_get_field(mad + 64, 0, IB_PC_PORT_SELECT_F);
        if (attribute != IB_GSI_PORT_COUNTERS && attribute != IB_GSI_PORT_COUNTERS_EXT)
                return;
        if (answer->mad[64 + 2] || answer->mad[64 + 3]) {
                expect_cleared(w, at.node, number, answer);
                return;
        }
        expect_look(w, at.node, number, VIOLATION_RCV_CONSTRAINT, n->has_wide_errors && !n->has_no_class_port_info ? 64 : 8,
                    n->ports[number].rcv_constraint_errors);
        expect_look(w, at.node, number, VIOLATION_XMIT_CONSTRAINT,
                    n->has_wide_errors && !n->has_no_class_port_info ? 64 : 8, n->ports[number].xmit_constraint_errors);
}

/* Every record is expected, and everything expected is a record. */
static void compare(struct world *w)
{
        const struct violation_record *records;
        uint64_t totals[VIOLATION_N_COUNTERS] = {};
        uint32_t n_records, n_counted = 0, n_expected = w->n_gone;

        records = violations_records(w->violations, &n_records);
        for (unsigned n = 0; n < NODES; n++)
                for (unsigned p = 0; p <= FABSIM_MAX_PORTS; p++)
                        for (unsigned s = 0; s < VIOLATION_N_COUNTERS; s++) {
                                const struct register_seen *r = &w->registers[n][p][s];
                                uint64_t total = 0;

                                for (uint32_t i = 0; i < n_records; i++)
                                        if (records[i].port.node_guid.v == w->f.nodes[n].guid.v &&
                                            records[i].port.number == p && records[i].source == s) {
                                                total += records[i].total;
                                                ck_assert_int_eq(records[i].saturated, r->full);
                                        }
                                ck_assert_msg(total == r->total, "node %u port %u %s: %" PRIu64 ", not %" PRIu64, n, p,
                                              violation_source_to_string((enum violation_source) s), total, r->total);
                                totals[s] += r->total;
                                n_expected += r->total > 0;
                        }
        for (unsigned s = 0; s < VIOLATION_N_COUNTERS; s++)
                ck_assert_uint_eq(violations_total(w->violations, (enum violation_source) s), totals[s] + w->gone[s]);
        for (uint32_t i = 0; i < n_records; i++)
                n_counted += records[i].total > 0;
        ck_assert_uint_eq(n_counted, n_expected);
}

/* --- time ------------------------------------------------------------------------------------------------------------ */

static void fetch(struct world *w)
{
        struct violation_report report;

        violations_take_samples(w->violations, w->now, w->poll);
        while (violations_next_report(w->violations, w->now, &report))
                if (report.kind != VIOLATION_QUIET && report.kind != VIOLATION_ALL_QUIET)
                        w->told += report.count;
}

/* There and back in no time, or lost on one of both ways. */
static void carry(struct world *w, const struct mad_frame *frame)
{
        struct mad_frame answer;
        struct fabsim_place at;
        unsigned hops;

        if (prng_permille(&w->rng, w->lose) || !fabsim_route(&w->f, frame, &at, &hops) ||
            !fabsim_answer(&w->f, w->now, at, frame, &answer) || prng_permille(&w->rng, w->lose))
                return;
        expect(w, at, &answer);
        ck_assert_int_eq(mad_engine_receive(w->engine, w->now, &answer), 1);
}

static bool give_results(struct world *w)
{
        struct mad_result result;
        bool any = false;

        for (; mad_engine_next_result(w->engine, &result); any = true) {
                w->n_under_way--;
                w->side.result(w->side.state, w->now, &result);
                fetch(w);
        }
        return any;
}

/* As the dispatcher does it. */
static void turn(struct world *w)
{
        struct mad_request request;
        struct mad_frame frame;

        do {
                while (w->n_under_way < SIDE_IN_FLIGHT && w->side.next(w->side.state, w->now, &request)) {
                        ck_assert_int_eq(mad_engine_submit(w->engine, &request), 0);
                        w->n_under_way++;
                }
                while (mad_engine_next_send(w->engine, w->now, &frame))
                        carry(w, &frame);
        } while (give_results(w));
        fetch(w);
}

static void run(struct world *w, usec_t until)
{
        while (w->now < until) {
                usec_t next = MIN(mad_engine_deadline(w->engine), violations_due(w->violations));

                if (w->n_under_way < SIDE_IN_FLIGHT)
                        next = MIN(next, w->side.due(w->side.state));
                w->now = MAX(w->now + 1, MIN(next, until));
                turn(w);
        }
}

/* --- what happens ---------------------------------------------------------------------------------------------------- */

static void send_packets(struct world *w, unsigned n)
{
        static const uint16_t bases[] = { 0x10, 0x11, 0x7fff };

        for (unsigned i = 0; i < n; i++) {
                unsigned a = prng_below(&w->rng, HOSTS), b = prng_below(&w->rng, HOSTS);
                struct p_key key = { (uint16_t) (bases[prng_below(&w->rng, 3)] | (prng_below(&w->rng, 2) << 15)) };

                if (a != b && is_there(&w->f, SWITCHES + a) && is_there(&w->f, SWITCHES + b))
                        w->n_refused += !fabsim_send_packet(&w->f, host(a), host(b), key);
        }
}

/* Another node in the same place: its records are its own. */
static void replace(struct world *w, unsigned node)
{
        w->f.nodes[node].guid.v += UINT64_C(1) << 32;
        w->f.nodes[node].ports[1].guid.v = w->f.nodes[node].guid.v + 1;
        for (unsigned s = 0; s < VIOLATION_N_COUNTERS; s++) {
                w->gone[s] += w->registers[node][1][s].total;
                w->n_gone += w->registers[node][1][s].total > 0;
        }
        memset(w->registers[node], 0, sizeof(w->registers[node]));
        take_snapshot(w);
}

static void something(struct world *w)
{
        unsigned h = SWITCHES + 1 + prng_below(&w->rng, HOSTS - 1), any = prng_below(&w->rng, NODES);

        switch (prng_below(&w->rng, 8)) {
        case 0:
                fabsim_reset_counters(&w->f, any);
                break;
        case 1: /* it is gone before anybody knows */
                w->f.nodes[h].is_up = false;
                break;
        case 2:
                take_snapshot(w);
                break;
        case 3:
                w->f.nodes[h].is_up = true;
                fabsim_reset_counters(&w->f, h);
                take_snapshot(w);
                break;
        case 4:
                if (is_there(&w->f, h) && w->n_under_way == 0)
                        replace(w, h);
                break;
        case 5:
                make_tables(w);
                break;
        case 6:
                send_packets(w, 6000); /* enough to fill small counters */
                break;
        default:
                break;
        }
}

static void world_init(struct world *w, unsigned seed)
{
        struct violation_poll_config config = { .interval = INTERVAL };
        struct mad_engine_config engine = { .window = 32, .timeout = 200 * USEC_PER_MSEC, .tid_key = 1 };

        memset(w, 0, sizeof(*w));
        w->rng.state = seed;
        w->lose = seed % 3 ? 0 : 100;
        w->clear = config.clear_saturated = seed % 2;
        w->now = 1000 * USEC_PER_SEC;
        make_fabric(w);
        ck_assert_int_eq(mad_engine_new(&engine, &w->engine), 0);
        w->poll = violation_poll_new(&config);
        w->side = violation_poll_task(w->poll);
        w->violations = violations_new(&(struct violations_config) { .interval = INTERVAL, .threshold = 1 });
        take_snapshot(w);
}

static void world_done(struct world *w)
{
        mad_engine_free(w->engine);
        violation_poll_free(w->poll);
        violations_free(w->violations);
        arena_free(w->arena);
}

static uint64_t grand_total(const struct world *w)
{
        uint64_t total = 0;

        for (unsigned s = 0; s < VIOLATION_N_SOURCES; s++)
                total += violations_total(w->violations, (enum violation_source) s);
        return total;
}

static struct world world; /* too large for a stack */

START_TEST(refused_packets_become_records)
{
        struct world *w = &world;

        world_init(w, (unsigned) _i + 1);
        for (unsigned i = 0; i < ROUNDS * 4; i++) {
                send_packets(w, prng_below(&w->rng, 2) ? prng_below(&w->rng, 40) : 0);
                something(w);
                run(w, w->now + 1 + prng_below(&w->rng, INTERVAL / 2));
                compare(w);
                ck_assert_uint_le(grand_total(w), w->n_refused);
        }
        run(w, w->now + 20 * INTERVAL);
        compare(w);
        ck_assert_uint_eq(w->told, grand_total(w));
        /* It must not pass because nothing happened. */
        ck_assert_uint_gt(w->n_looks, 1000);
        ck_assert_uint_gt(w->n_resets, 0);
        ck_assert_uint_gt(w->n_full, 0);
        ck_assert_uint_gt(w->told, 500);
        ck_assert_int_eq(w->n_cleared > 0, w->clear);
        world_done(w);
}
END_TEST

/* Nothing is dropped: no violation is ever reported. */
START_TEST(no_violation_where_none_was)
{
        struct world *w = &world;
        uint32_t n;

        world_init(w, (unsigned) _i + 1);
        for (unsigned i = 0; i < NODES; i++)
                for (unsigned p = 0; p <= w->f.nodes[i].num_ports; p++)
                        for (unsigned k = 0; k < 8; k++)
                                w->f.nodes[i].ports[p].table[k].v = (uint16_t[]) { 0xffff, 0x7fff, 0x8010, 0x0010, 0x8011,
                                                                                  0x0011, 0, 0 }[k];
        /* what was there before we came */
        for (unsigned i = 0; i < NODES; i++) {
                w->f.nodes[i].ports[1].p_key_violations = 99;
                w->f.nodes[i].ports[1].rcv_constraint_errors = 200;
        }
        for (unsigned i = 0; i < ROUNDS; i++) {
                send_packets(w, 50);
                if (i % 8 == 7)
                        fabsim_reset_counters(&w->f, i % NODES);
                if (i % 5 == 4)
                        take_snapshot(w);
                run(w, w->now + INTERVAL / 2);
        }
        ck_assert_uint_eq(w->n_refused, 0);
        ck_assert_uint_gt(w->n_looks, 100);
        (void) violations_records(w->violations, &n);
        ck_assert_uint_eq(n, 0);
        ck_assert_uint_eq(grand_total(w), 0);
        ck_assert_uint_eq(w->told, 0);
        world_done(w);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("refused");
        TCase *t = tcase_create("refused");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_set_timeout(t, 300);
        tcase_add_loop_test(t, refused_packets_become_records, 0, 24);
        tcase_add_loop_test(t, no_violation_where_none_was, 0, 6);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
