/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The small parts of control: schedule, log, generation, snapshot, PortInfo query. */

#include <stdlib.h>

#include "control/backoff.h"
#include "control/schedule.h"
#include "control_fixture.h"
#include "host/port_query.h"

#define S USEC_PER_SEC
#define T0 (1000 * S)

/* --- backoff --- */

START_TEST(backoff)
{
        static const struct {
                usec_t previous, cap, next;
        } cases[] = {
                        {0, 60, 5},   {5, 60, 10},  {10, 60, 20}, {20, 60, 40}, {30, 60, 60}, {31, 60, 60},
                        {40, 60, 60}, {60, 60, 60}, {90, 60, 60}, {0, 3, 3},    {3, 3, 3},    {5, 11, 10},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                ck_assert_uint_eq(backoff_next(cases[i].previous * S, cases[i].cap * S), cases[i].next * S);
        ck_assert_uint_eq(backoff_next(UINT64_MAX / 2, UINT64_MAX), UINT64_MAX / 2 * 2);
}
END_TEST

/* --- schedule --- */

static struct schedule scheduled(void)
{
        struct schedule s;

        schedule_init(&s);
        schedule_begin(&s, T0, SWEEP_FULL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_DONE, 60 * S);
        return s;
}

START_TEST(schedule_at_the_start)
{
        struct schedule s;

        schedule_init(&s);
        ck_assert_uint_eq(schedule_due(&s), 0);
        ck_assert_int_eq(schedule_kind(&s, T0, false), SWEEP_FULL);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_FULL);
        s = scheduled();
        ck_assert_uint_eq(schedule_due(&s), T0 + 60 * S);
        ck_assert_int_eq(schedule_kind(&s, T0 + 60 * S, true), SWEEP_FULL);
        ck_assert_int_eq(schedule_kind(&s, T0 + 60 * S - 1, true), SWEEP_RETRY);
}
END_TEST

/* A short sweep does not put off the full one. */
/* A reload that comes with it does not make the next sweep rest on what was read before. */
START_TEST(schedule_after_a_stale_sweep)
{
        static const enum sweep_result failures[] = { SWEEP_STALE, SWEEP_FAILED, SWEEP_WAITS };
        struct schedule s = scheduled();

        schedule_reload(&s);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_KNOWN);
        for (unsigned i = 0; i < ELEMENTS(failures); i++) {
                schedule_begin(&s, T0, SWEEP_FULL, 60 * S);
                schedule_ended(&s, T0, SWEEP_FULL, failures[i], 60 * S);
                schedule_reload(&s);
                ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_FULL);
        }
        schedule_begin(&s, T0, SWEEP_FULL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_REFUSED, 60 * S);
        schedule_reload(&s);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_KNOWN);
}
END_TEST

START_TEST(schedule_of_short_sweeps)
{
        struct schedule s = scheduled();

        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 5 * S);
        schedule_begin(&s, T0 + 5 * S, SWEEP_RETRY, 60 * S);
        schedule_ended(&s, T0 + 5 * S, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 15 * S);
        schedule_begin(&s, T0 + 15 * S, SWEEP_RETRY, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_DONE, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 60 * S);
        schedule_ended(&s, T0 + 20 * S, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 25 * S); /* from the beginning */
}
END_TEST

START_TEST(schedule_of_a_reload)
{
        struct schedule s = scheduled();

        schedule_reload(&s);
        ck_assert_uint_eq(schedule_due(&s), 0);
        ck_assert_int_eq(schedule_kind(&s, T0 + S, true), SWEEP_KNOWN);
        ck_assert_int_eq(schedule_kind(&s, T0 + S, false), SWEEP_FULL);
        schedule_begin(&s, T0 + S, SWEEP_KNOWN, 60 * S);
        ck_assert(!s.reload_due);
        schedule_ended(&s, T0 + S, SWEEP_FULL, SWEEP_STALE, 60 * S); /* what was stopped or is stale is not the end of it */
        schedule_begin(&s, T0 + S, SWEEP_FULL, 60 * S);
        schedule_ended(&s, T0 + S, SWEEP_FULL, SWEEP_STOPPED, 60 * S);
        schedule_begin(&s, T0 + S, SWEEP_KNOWN, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 61 * S);
        schedule_ended(&s, T0 + 2 * S, SWEEP_FULL, SWEEP_DONE, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 7 * S);
        schedule_ended(&s, T0 + 20 * S, SWEEP_FULL, SWEEP_DONE, 60 * S); /* once */
        ck_assert_uint_eq(schedule_due(&s), T0 + 7 * S);
}
END_TEST

START_TEST(schedule_of_a_refused_candidate)
{
        struct schedule s = scheduled();

        schedule_reload(&s);
        schedule_no_candidate(&s);
        ck_assert_uint_eq(schedule_due(&s), T0 + 60 * S);
}
END_TEST

/* How a sweep ends, from one whose ports were to be read again. */
START_TEST(schedule_after_each_result)
{
        struct schedule s = scheduled();

        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_REFUSED, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_WAITS, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 3 * S);
        s = scheduled();
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_STOPPED, 60 * S);
        ck_assert_uint_eq(s.retry_at, USEC_INFINITY);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_KNOWN);
        s = scheduled();
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_STALE, 60 * S);
        ck_assert_uint_eq(s.retry_at, USEC_INFINITY);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_FULL);
}
END_TEST

START_TEST(schedule_of_failures)
{
        static const usec_t waits_for[] = {5, 10, 20, 40, 60, 60};
        struct schedule s = scheduled();

        schedule_port(&s, T0 + S);
        for (size_t i = 0; i < ELEMENTS(waits_for); i++) {
                schedule_ended(&s, T0, SWEEP_FULL, SWEEP_FAILED, 3600 * S);
                ck_assert_uint_eq(schedule_due(&s), T0 + waits_for[i] * S);
        }
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_DONE, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_FAILED, 3600 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 5 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_FAILED, 7 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 7 * S);
}
END_TEST

/* An event brings a sweep soon, the next five seconds later, none later than it would be anyway. */
START_TEST(schedule_of_events)
{
        struct schedule s = scheduled();
        const usec_t soon = 300 * USEC_PER_MSEC;

        schedule_event(&s, T0);
        ck_assert_uint_eq(schedule_due(&s), T0 + soon);
        schedule_event(&s, T0 + 100);
        ck_assert_uint_eq(schedule_due(&s), T0 + soon);
        schedule_begin(&s, T0 + soon, SWEEP_FULL, 60 * S);
        schedule_event(&s, T0 + soon);
        ck_assert_uint_eq(schedule_due(&s), T0 + soon + 5 * S);
        schedule_begin(&s, T0 + soon + 5 * S, SWEEP_FULL, 2 * S);
        schedule_event(&s, T0 + soon + 5 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + soon + 7 * S);
        schedule_begin(&s, T0 + 30 * S, SWEEP_FULL, 60 * S);
        schedule_event(&s, T0 + 40 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 40 * S + soon);
}
END_TEST

START_TEST(schedule_of_a_port)
{
        struct schedule s = scheduled();

        schedule_port(&s, T0 + 9 * S);
        schedule_port(&s, T0 + 4 * S);
        schedule_port(&s, T0 + 6 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 4 * S);
        schedule_full_sweep(&s);
        ck_assert_uint_eq(schedule_due(&s), 0);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_FULL);
}
END_TEST

/* --- log --- */

/* A queue; everything is copied. */
START_TEST(log_copies)
{
        struct log *l = log_new();
        char node[] = "node1", file[] = "p.yaml", by[] = "leaf1", partition[] = "p", source[] = "counter";
        struct p_key keys[] = {{0x8010}, {0x0011}};
        struct location where = {file, 3, 4};
        const struct log_about about = {
                        .generation = 7,
                        .node = node,
                        .port_guid = {0xabc},
                        .lid = {5},
                        .port = 2,
                        .p_keys = keys,
                        .n_p_keys = 2,
                        .where = &where,
                        .switch_name = by,
                        .partition = partition,
                        .source = source,
                        .p_key = {0x8012},
                        .count = 8,
                        .total = 9,
        };
        const struct log_entry *e;

        log_add(l, LOG_EVENT_PORT_NEW, &about, "%s is %d", node, 1);
        log_add(l, LOG_EVENT_PORT_GONE, NULL, "second");
        node[0] = file[0] = by[0] = partition[0] = source[0] = 'X';
        keys[0].v = 0;
        where.line = 99;
        e = log_next(l);
        ck_assert_int_eq(e->event, LOG_EVENT_PORT_NEW);
        ck_assert_str_eq(e->text, "node1 is 1");
        ck_assert_str_eq(e->about.node, "node1");
        ck_assert_str_eq(e->about.switch_name, "leaf1");
        ck_assert_str_eq(e->about.partition, "p");
        ck_assert_str_eq(e->about.source, "counter");
        ck_assert_str_eq(e->about.where->file, "p.yaml");
        ck_assert_uint_eq(e->about.where->line, 3);
        ck_assert_uint_eq(e->about.where->column, 4);
        ck_assert_uint_eq(e->about.n_p_keys, 2);
        ck_assert_uint_eq(e->about.p_keys[0].v, 0x8010);
        ck_assert_uint_eq(e->about.p_keys[1].v, 0x0011);
        ck_assert(e->about.generation == 7 && e->about.port_guid.v == 0xabc && e->about.lid.v == 5 &&
                  e->about.port == 2 && e->about.p_key.v == 0x8012 && e->about.count == 8 && e->about.total == 9);
        ck_assert_ptr_null(e->finding);
        e = log_next(l);
        ck_assert_int_eq(e->event, LOG_EVENT_PORT_GONE);
        ck_assert_str_eq(e->text, "second");
        ck_assert_ptr_null(e->about.node);
        ck_assert_ptr_null(e->about.where);
        ck_assert_ptr_null(log_next(l));
        /* empty, and good for more */
        log_debug(l, "%s", "third");
        e = log_next(l);
        ck_assert_int_eq(e->event, LOG_EVENT_DEBUG);
        ck_assert_str_eq(e->text, "third");
        ck_assert_ptr_null(log_next(l));
        log_add(l, LOG_EVENT_PORT_GONE, NULL, "left behind");
        ck_assert_ptr_null(log_free(l));
        ck_assert_ptr_null(log_free(NULL));
}
END_TEST

/* Entries that are taken and added by turns come in their order. */
START_TEST(log_by_turns)
{
        struct log *l = log_new();
        unsigned next = 0;

        for (unsigned i = 0; i < 300; i++) {
                log_add(l, LOG_EVENT_PORT_NEW, &(struct log_about) {.generation = i}, "entry %u", i);
                if (i % 3 != 2)
                        continue;
                for (unsigned k = 0; k < (i % 2 ? 2 : 4) && next <= i; k++)
                        ck_assert_uint_eq(log_next(l)->about.generation, next++);
        }
        (void) log_free(l);
}
END_TEST

START_TEST(log_of_a_finding)
{
        struct log *l = log_new();
        struct finding finding = {.severity = FINDING_WARNING,
                                  .code = FINDING_VALUE_INVALID,
                                  .where = {"p.yaml", 3, 4},
                                  .text = "wrong",
                                  .hint = "do it right",
                                  .source_line = "pkey: x"};
        const struct log_entry *e;

        log_add_finding(l, LOG_EVENT_FINDING, 12, &finding);
        e = log_next(l);
        ck_assert_int_eq(e->event, LOG_EVENT_FINDING);
        ck_assert_str_eq(e->text, "wrong");
        ck_assert_uint_eq(e->about.generation, 12);
        ck_assert_str_eq(e->about.where->file, "p.yaml");
        ck_assert_uint_eq(e->about.where->line, 3);
        ck_assert_ptr_ne(e->finding, &finding);
        ck_assert_str_eq(e->finding->hint, "do it right");
        ck_assert_str_eq(e->finding->source_line, "pkey: x");
        ck_assert_int_eq(e->finding->severity, FINDING_WARNING);
        (void) log_free(l);
}
END_TEST

/* --- generation --- */

static struct m_keys *make_keys(uint64_t common)
{
        _cleanup_findings_ struct findings ignored = { .arena = arena };
        struct m_keys *keys;
        char text[64];
        int n = snprintf(text, sizeof(text), "0x%" PRIx64 "\n", common);

        ck_assert_int_eq(m_keys_parse("keys", text, (size_t) n, &ignored, &keys), 0);
        return keys;
}

/* As long as ENFORCE, and as POLICY_1. */
#define AUDIT_OF_THIS_LENGTH "mode:   audit\nbeside_opensm: true\n"
#define POLICY_OF_THIS_LENGTH                                                                                          \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node2: full\n"

START_TEST(generations_compare)
{
        struct generation *a = make_generation(ENFORCE, POLICY_1), *same = make_generation(ENFORCE, POLICY_1);
        struct generation *other[] = {
                        make_generation(AUDIT, POLICY_1),       make_generation(ENFORCE, POLICY_2),
                        make_generation(ENFORCE " ", POLICY_1), make_generation(ENFORCE, POLICY_1 "\n"),
                        make_generation(ENFORCE, POLICY_1),     make_generation(ENFORCE, POLICY_1),
                        make_generation(AUDIT_OF_THIS_LENGTH, POLICY_1),
                        make_generation(ENFORCE, POLICY_OF_THIS_LENGTH),
        };

        ck_assert_uint_eq(strlen(AUDIT_OF_THIS_LENGTH), strlen(ENFORCE));
        ck_assert_uint_eq(strlen(POLICY_OF_THIS_LENGTH), strlen(POLICY_1));
        other[4]->sm_key = 5;
        other[5]->m_keys = make_keys(0x77);
        ck_assert(generation_equal(a, same) && generation_equal(same, a));
        for (size_t i = 0; i < ELEMENTS(other); i++) {
                ck_assert_msg(!generation_equal(a, other[i]) && !generation_equal(other[i], a), "case %zu", i);
                (void) generation_unref(other[i]);
        }
        ck_assert(generation_has_policy(a, POLICY_1, strlen(POLICY_1)));
        ck_assert(!generation_has_policy(a, POLICY_1, strlen(POLICY_1) - 1));
        ck_assert(!generation_has_policy(a, POLICY_0, strlen(POLICY_0)));
        (void) generation_unref(a);
        (void) generation_unref(same);
}
END_TEST

START_TEST(generation_of_defaults)
{
        struct generation *g = generation_new();

        ck_assert_uint_eq(g->number, 0);
        ck_assert_int_eq(g->settings->mode, MODE_ENFORCE);
        ck_assert_ptr_null(g->policy);
        ck_assert_ptr_eq(generation_ref(g), g);
        ck_assert_ptr_null(generation_unref(g));
        ck_assert_uint_eq(g->n_refs, 1);
        ck_assert_ptr_null(generation_unref(g));
        ck_assert_ptr_null(generation_unref(NULL));
        ck_assert_ptr_null(generation_ref(NULL));
}
END_TEST

/* Each finding once: what differs in code, place or text is another one; of hosts that are not in the fabric, the place does not
 * matter. */
START_TEST(generation_reports_once)
{
        struct generation *g = make_generation(ENFORCE, POLICY_1);
        const struct finding cases[] = {
                        {.code = FINDING_VALUE_INVALID, .where = {"p", 1, 1}, .text = "a"},
                        {.code = FINDING_PLAN_INDEX0, .where = {"p", 1, 1}, .text = "a"},
                        {.code = FINDING_VALUE_INVALID, .where = {"p", 2, 1}, .text = "a"},
                        {.code = FINDING_VALUE_INVALID, .where = {"p", 1, 2}, .text = "a"},
                        {.code = FINDING_VALUE_INVALID, .where = {"p", 1, 1}, .text = "b"},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ck_assert_msg(generation_reports(g, &cases[i]), "case %zu", i);
                ck_assert(!generation_reports(g, &cases[i]));
        }
        ck_assert(!generation_reports(g, &cases[0]));
        ck_assert(generation_reports(g, &(struct finding) { .code = FINDING_SELECTOR_PARTIAL, .where = { "p", 1, 1 }, .text = "a" }));
        ck_assert(!generation_reports(g, &(struct finding) { .code = FINDING_SELECTOR_PARTIAL, .where = { "p", 2, 2 }, .text = "a" }));
        ck_assert(generation_reports(g, &(struct finding) { .code = FINDING_SELECTOR_PARTIAL, .where = { "p", 1, 1 }, .text = "b" }));
        (void) generation_unref(g);
}
END_TEST

/* A list that grew too long reports what is new, and forgets what is old. */
START_TEST(generation_reports_so_much)
{
        struct generation *g = make_generation(ENFORCE, POLICY_1);
        struct finding finding = {.code = FINDING_VALUE_INVALID, .text = "a"};

        for (finding.where.line = 0; finding.where.line < 4096; finding.where.line++)
                ck_assert(generation_reports(g, &finding));
        ck_assert(generation_reports(g, &finding));
        for (finding.where.line = 1; finding.where.line <= 4096; finding.where.line++)
                ck_assert(!generation_reports(g, &finding));
        finding.where.line = 0;
        ck_assert(generation_reports(g, &finding));
        (void) generation_unref(g);
}
END_TEST

START_TEST(generation_refuses)
{
        struct generation *g = generation_new();
        _cleanup_findings_ struct findings found = { .arena = g->arena };

        ck_assert_int_eq(generation_read_settings(g, "pkeyd.yaml", "mode: maybe\n", 12, &found), -EBADMSG);
        ck_assert_uint_eq(found.n_errors, 1);
        ck_assert_str_eq(found.items[0].where.file, "pkeyd.yaml");
        findings_done(&found);
        found = (struct findings) { .arena = g->arena };
        ck_assert_int_eq(generation_read_policy(g, "partitions.yaml", "version: 9\n", 11, &found), -EBADMSG);
        ck_assert_uint_gt(found.n_errors, 0);
        ck_assert_str_eq(found.items[0].where.file, "partitions.yaml");
        (void) generation_unref(g);
}
END_TEST

/* --- snapshot --- */

/* Of a fabric that was read. */
static struct snapshot *make_snapshot(void)
{
        struct snapshot *s;

        start(AUDIT, POLICY_1);
        sweep();
        s = snapshot_ref(status()->snapshot);
        c = control_free(c);
        return s;
}

static uint32_t port_in(const struct snapshot *s, unsigned node)
{
        return subnet_find_endport(s->subnet, port_of(node)->guid);
}

START_TEST(snapshot_takes_what_was_read)
{
        struct snapshot *s = make_snapshot();
        uint32_t read = port_in(s, hosts[0]), silent = port_in(s, hosts[1]), not_asked = port_in(s, hosts[2]);
        struct observed *seen;

        ck_assert_int_eq(observed_new(arena, s->subnet, &seen), 0);
        seen->tables[read].source = TABLE_READ;
        seen->tables[read].entries[63].v = 0x8044;
        seen->tables[silent].failure = MAD_REFUSED;
        seen->tables[silent].mad_status = 0x1c;
        snapshot_merge(s, seen);
        ck_assert_uint_eq(s->observed->tables[read].entries[0].v, 0);
        ck_assert_uint_eq(s->observed->tables[read].entries[63].v, 0x8044);
        ck_assert_int_eq(s->observed->tables[read].source, TABLE_READ);
        ck_assert_int_eq(s->observed->tables[silent].source, TABLE_ASSUMED);
        ck_assert_int_eq(s->observed->tables[silent].failure, MAD_REFUSED);
        ck_assert_uint_eq(s->observed->tables[silent].mad_status, 0x1c);
        ck_assert_uint_eq(s->observed->tables[silent].entries[0].v, 0x7fff); /* what it held */
        ck_assert_int_eq(s->observed->tables[not_asked].source, TABLE_READ);
        ck_assert_int_eq(s->observed->tables[not_asked].failure, MAD_ANSWERED);
        (void) snapshot_unref(s);
}
END_TEST

/* One that never was read and does not answer stays unknown; when it answers, its failure is over. */
START_TEST(snapshot_of_the_unknown)
{
        struct snapshot *s = make_snapshot();
        uint32_t port = port_in(s, hosts[0]);
        struct observed *seen;

        s->observed->tables[port].source = TABLE_UNKNOWN;
        ck_assert_int_eq(observed_new(arena, s->subnet, &seen), 0);
        seen->tables[port].failure = MAD_TIMED_OUT;
        snapshot_merge(s, seen);
        ck_assert_int_eq(s->observed->tables[port].source, TABLE_UNKNOWN);
        ck_assert_int_eq(s->observed->tables[port].failure, MAD_TIMED_OUT);
        seen->tables[port].failure = MAD_ANSWERED;
        seen->tables[port].source = TABLE_READ;
        snapshot_merge(s, seen);
        ck_assert_int_eq(s->observed->tables[port].source, TABLE_READ);
        ck_assert_int_eq(s->observed->tables[port].failure, MAD_ANSWERED);
        (void) snapshot_unref(s);
}
END_TEST

START_TEST(snapshot_of_failed_ports)
{
        struct snapshot *s = make_snapshot();
        uint32_t first = port_in(s, hosts[0]), second = port_in(s, hosts[2]), *ports;

        ck_assert_uint_eq(snapshot_n_failed(s), 0);
        s->failed[first] = s->failed[second] = true;
        ck_assert_uint_eq(snapshot_n_failed(s), 2);
        ports = snapshot_failed_ports(s, arena);
        ck_assert_ptr_nonnull(ports);
        ck_assert_uint_eq(ports[0], MIN(first, second));
        ck_assert_uint_eq(ports[1], MAX(first, second));
        s->observed->tables[second].source = TABLE_ASSUMED;
        s->observed->tables[second].failure = MAD_TIMED_OUT;
        snapshot_reset_failed(s);
        ck_assert(!s->failed[first] && s->failed[second]);
        ck_assert_uint_eq(snapshot_n_failed(s), 1);
        (void) snapshot_unref(s);
}
END_TEST

START_TEST(snapshot_references)
{
        struct snapshot *s = snapshot_new();

        ck_assert_ptr_nonnull(s->arena);
        ck_assert_ptr_eq(snapshot_ref(s), s);
        ck_assert_ptr_null(snapshot_unref(s));
        ck_assert_uint_eq(s->n_refs, 1);
        ck_assert_ptr_null(snapshot_unref(s));
        ck_assert_ptr_null(snapshot_unref(NULL));
        ck_assert_ptr_null(snapshot_ref(NULL));
}
END_TEST

/* --- PortInfo query --- */

START_TEST(query_asks_once)
{
        struct port_query q;
        struct mad_stage stage = port_query_stage(&q, 0x1234);
        struct mad_request r;
        uint64_t done, total;

        ck_assert(!stage.done(stage.state));
        ck_assert(stage.next(stage.state, 0, &r));
        ck_assert(mad_route_is_directed(&r.route));
        ck_assert_uint_eq(r.route.hops, 0);
        ck_assert_int_eq(r.method, MAD_GET);
        ck_assert_uint_eq(r.attribute, SMP_ATTR_PORT_INFO);
        ck_assert_uint_eq(r.modifier, 0);
        ck_assert_uint_eq(r.key, 0x1234);
        ck_assert_uint_eq(r.retries, 2);
        ck_assert(!stage.next(stage.state, 0, &r));
        stage.progress(stage.state, &done, &total);
        ck_assert(done == 0 && total == 1);
        stage.result(stage.state, 0, &(struct mad_result) {.outcome = MAD_TIMED_OUT});
        ck_assert(stage.done(stage.state));
        stage.progress(stage.state, &done, &total);
        ck_assert(done == 1 && total == 1);
        ck_assert_str_eq(port_query_problem(&q), "it does not answer (if it has an M_Key, m_key_file must name it)");
        stage = port_query_stage(&q, 0x1234);
        stage.result(stage.state, 0, &(struct mad_result) {.outcome = MAD_UNSENT});
        ck_assert_str_eq(port_query_problem(&q), "this host could not send to it; pkeyd opens it again");
}
END_TEST

START_TEST(query_of_the_fabric)
{
        struct port_query q;
        struct mad_stage stage = port_query_stage(&q, 0);

        port_of(head)->lid.v = 21;
        f.sm = (struct fabsim_place) {hosts[0], 1};
        run_stage(&stage);
        ck_assert_ptr_null(port_query_problem(&q));
        ck_assert_uint_eq(q.info.lid.v, 21);
        ck_assert_uint_eq(q.info.sm_lid.v, 3);
}
END_TEST

START_TEST(query_problems)
{
        static const struct {
                enum port_state state;
                uint16_t lid, sm_lid;
                const char *problem;
        } cases[] = {
                        {PORT_STATE_ACTIVE, 1, 2, NULL},
                        {PORT_STATE_ARMED, 1, 2, NULL},
                        {PORT_STATE_DOWN, 1, 2, "its link is down"},
                        {PORT_STATE_NONE, 1, 2, "its link is down"},
                        {PORT_STATE_INIT, 1, 2, "no subnet manager has brought it up yet"},
                        {PORT_STATE_ACTIVE, 0, 2, "no subnet manager has given it a LID yet"},
                        {PORT_STATE_ACTIVE, 1, 0, "no subnet manager has given it a LID yet"},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct port_query q = {
                                .outcome = MAD_ANSWERED,
                                .info = {.state = cases[i].state, .lid = {cases[i].lid}, .sm_lid = {cases[i].sm_lid}}};
                const char *problem = port_query_problem(&q);

                ck_assert_msg(problem == cases[i].problem ||
                                              (problem && cases[i].problem && strcmp(problem, cases[i].problem) == 0),
                              "case %zu: %s", i, problem ? problem : "none");
        }
}
END_TEST

/* Leases delay a sweep that is due for a while only, and a sweep for them does not take the place of another one. */
START_TEST(leases_and_other_sweeps)
{
        struct schedule s;

        schedule_init(&s);
        schedule_begin(&s, T0, SWEEP_FULL, 60 * S);
        schedule_ended(&s, T0, SWEEP_FULL, SWEEP_PARTIAL, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 5 * S);
        schedule_lease(&s);
        ck_assert_uint_eq(schedule_due(&s), 0);
        ck_assert_int_eq(schedule_kind(&s, T0, true), SWEEP_KNOWN);
        schedule_begin(&s, T0, SWEEP_LEASE, 60 * S);
        schedule_ended(&s, T0, SWEEP_LEASE, SWEEP_DONE, 60 * S);
        ck_assert_uint_eq(schedule_due(&s), T0 + 5 * S);
        schedule_lease(&s);
        ck_assert_int_eq(schedule_kind(&s, T0 + 14 * S, true), SWEEP_KNOWN);
        ck_assert_int_eq(schedule_kind(&s, T0 + 15 * S, true), SWEEP_RETRY);
        ck_assert_int_eq(schedule_kind(&s, T0 + 70 * S, true), SWEEP_FULL);
        schedule_begin(&s, T0 + 70 * S, SWEEP_FULL, 60 * S); /* it decides about leases, too */
        ck_assert_uint_gt(schedule_due(&s), 0);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        backoff,
                        schedule_at_the_start,
                        schedule_after_a_stale_sweep,
                        schedule_of_short_sweeps,
                        schedule_of_a_reload,
                        schedule_of_a_refused_candidate,
                        schedule_after_each_result,
                        schedule_of_failures,
                        schedule_of_events,
                        schedule_of_a_port,
                        leases_and_other_sweeps,
                        log_copies,
                        log_by_turns,
                        log_of_a_finding,
                        generations_compare,
                        generation_of_defaults,
                        generation_reports_once,
                        generation_reports_so_much,
                        generation_refuses,
                        snapshot_takes_what_was_read,
                        snapshot_of_the_unknown,
                        snapshot_of_failed_ports,
                        snapshot_references,
                        query_asks_once,
                        query_of_the_fabric,
                        query_problems,
        };

        return run_suite("parts of control", tests, ELEMENTS(tests));
}
