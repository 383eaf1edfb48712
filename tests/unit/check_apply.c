/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * apply/ against tables in memory: what it reads before it writes, what it makes of every kind of answer, what it holds back;
 * and the promises with one write failing at every point of every transition of three ports, answers in any order.
 */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fail_alloc.h"
#include "fake_fabric.h"
#include "knowledge/table_records.h"

#include <infiniband/mad.h>

#define MAX_PENDING 64
#define RETRIES     2

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some million times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

struct run;

/* May change how a request is answered: called before it is carried out. True: *ret is the answer, nothing else is done. */
typedef bool (*fault_t)(struct run *r, const struct mad_request *request, struct mad_result *ret);
/* Called after every Set that reached a table. */
typedef void (*watch_t)(struct run *r);

struct run {
        struct arena *a;
        struct fake_fabric f;
        struct desired d;
        struct observed *o;
        struct plan *plan;
        struct apply *apply;
        struct index_memory *memory;
        struct fake_wire wire;
        fault_t fault;
        watch_t watch;
        unsigned seed, n_fault_port, n_faults;
        uint32_t fault_port;
        unsigned sets_by_port[2 * FAKE_MAX_HOSTS + 1];
        const void *userdata;
        const struct m_keys *m_keys;
        unsigned most;                /* requests at once; 0: MAX_PENDING */
        unsigned burst;               /* answers that come together; 0: one */
        uint16_t capacity;            /* of host 0's table; 0: as it is */
        enum settings_enforcement enforcement;
        bool repair_index0;
};

static void run_plan(struct run *r, enum membership to[][4], unsigned n_partitions)
{
        _cleanup_findings_ struct findings findings = { .arena = r->a };
        struct plan_options options = { .enforcement = r->enforcement, .repair_index0 = r->repair_index0 };

        fake_fabric_desire(&r->f, r->a, to, n_partitions, &r->d);
        r->o = fake_fabric_observe(&r->f, r->a);
        if (r->capacity)
                r->o->tables[r->f.host[0]].capacity = r->capacity;
        REQUIRE(plan_compute(r->a, &r->d, r->o, NULL, &options, &findings, &r->plan) == 0);
}

static void answer(struct run *r, const struct mad_stage *stage, const struct mad_request *request)
{
        struct mad_result result = { .outcome = MAD_UNSENT };
        uint32_t port = fake_fabric_port_of(&r->f, request);

        REQUIRE(port != SUBNET_NONE);
        if (!fake_wire_send(&r->wire, request)) {
                result.cookie = request->cookie;
                stage->result(stage->state, 0, &result);
                return;
        }
        if (request->method == MAD_SET)
                r->sets_by_port[port]++;
        /* a Set is never sent again blindly */
        REQUIRE(request->method == MAD_SET ? request->retries == 0 :
                request->attribute == SMP_ATTR_NODE_INFO ? request->retries <= RETRIES : request->retries == RETRIES);
        if (!r->fault || !r->fault(r, request, &result))
                REQUIRE(fake_fabric_answer(&r->f, request, &result));
        fake_wire_end(&r->wire, request, &result);
        if (request->method == MAD_SET && r->watch)
                r->watch(r);
        stage->result(stage->state, 0, &result);
}

/* No step is taken back, and there are not more than all. */
static void expect_progress(const struct mad_stage *stage, uint64_t *steps)
{
        uint64_t done, total;

        stage->progress(stage->state, &done, &total);
        REQUIRE(done >= *steps && done <= total);
        *steps = done;
}

/* At the end a progress bar shows 100 %. */
static void expect_all_steps(const struct mad_stage *stage)
{
        uint64_t done, total;

        stage->progress(stage->state, &done, &total);
        REQUIRE(done == total);
}

/* Runs one phase, answering in an order that the seed chooses. */
static void run_phase(struct run *r, const struct mad_stage *phase, uint64_t *steps)
{
        const struct mad_stage stage = *phase;
        struct mad_request pending[MAX_PENDING];
        unsigned n = 0, i;

        while (!stage.done(stage.state)) {
                while (n < (r->most ? r->most : MAX_PENDING) && stage.next(stage.state, 0, &pending[n]))
                        n++;
                if (n == 0) {
                        REQUIRE(stage.done(stage.state));
                        break;
                }
                for (unsigned k = 0; n > 0 && k < MAX(r->burst, 1u); k++) {
                        struct mad_request request;

                        i = (unsigned) rand_r(&r->seed) % n;
                        request = pending[i];
                        pending[i] = pending[--n];
                        answer(r, &stage, &request);
                        expect_progress(&stage, steps);
                }
        }
        REQUIRE(n == 0);
}

static void begin_apply(struct run *r)
{
        struct apply_options options = { .m_keys = r->m_keys, .retries = RETRIES };

        fake_wire_done(&r->wire);
        fake_wire_init(&r->wire, r->o, &r->d, &r->f.policy);
        options.knowledge = r->wire.knowledge;
        REQUIRE(apply_new(r->a, r->plan, r->o, r->memory, &options, &r->apply) == 0);
}

/* Each write has ended, and there is a reason where it failed, and nowhere else. */
static void expect_ends(struct run *r)
{
        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < r->plan->steps[phase].n_writes; i++) {
                        const struct apply_outcome *o = apply_outcome(r->apply, phase, i);

                        REQUIRE(o->state > APPLY_PENDING && o->state <= APPLY_HELD);
                        REQUIRE((o->state == APPLY_FAILED) == (o->reason != APPLY_OK));
                }
}

static void run_phases(struct run *r)
{
        struct mad_stage stage = apply_stage(r->apply);
        uint64_t steps = 0;
        int left;

        while ((left = apply_prepare(r->apply)) != 0) {
                REQUIRE(left == 1);
                knowledge_stored(r->wire.knowledge);
                gate_open(r->wire.gate, r->wire.knowledge, &r->f.policy);
                run_phase(r, &stage, &steps);
        }
        expect_all_steps(&stage);
        expect_ends(r);
        REQUIRE(gate_n_refused(r->wire.gate) == 0);
}

static void run_apply(struct run *r)
{
        begin_apply(r);
        run_phases(r);
}

static void run_init(struct run *r, unsigned n_hosts, bool with_leaf)
{
        unsigned h;

        *r = (struct run) { .a = arena_new(), .seed = 1 };
        fake_fabric_init(&r->f, r->a, n_hosts, with_leaf);
        for (h = 0; h < n_hosts; h++) {
                fake_fabric_put(&r->f, r->f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                if (with_leaf)
                        fake_fabric_put(&r->f, r->f.leaf[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        }
}

static void run_done(struct run *r)
{
        index_memory_free(r->memory);
        fake_wire_done(&r->wire);
        arena_free(r->a);
}

static void default_members(enum membership m[][4])
{
        unsigned h;

        memset(m, 0, sizeof(enum membership) * FAKE_MAX_HOSTS * 4);
        for (h = 0; h < FAKE_MAX_HOSTS; h++)
                m[h][0] = MEMBERSHIP_FULL;
}

static void expect(const struct run *r, uint32_t written, uint32_t failed, uint32_t held, uint32_t sets)
{
        struct apply_summary s;

        apply_get_summary(r->apply, &s);
        ck_assert_uint_eq(s.written, written);
        ck_assert_uint_eq(s.failed, failed);
        ck_assert_uint_eq(s.held, held);
        ck_assert_uint_eq(s.sets_sent, sets);
}

/* What is known of a port in a partition. */
static struct bounds level_of(const struct run *r, uint32_t port, unsigned partition)
{
        return knowledge_table_bounds(r->wire.knowledge, knowledge_find_port(r->wire.knowledge, r->f.subnet, port),
                                      FAKE_BASE(partition));
}

static bool has_entry(const struct run *r, uint32_t port, uint16_t key)
{
        unsigned i;

        for (i = 0; i < FAKE_CAPACITY; i++)
                if (r->f.tables[port][i].v == key)
                        return true;
        return false;
}

/* Hosts 0 and 1 become members of partition 1. */
static void two_grants(struct run *r)
{
        enum membership to[FAKE_MAX_HOSTS][4];

        run_init(r, 2, false);
        default_members(to);
        to[0][1] = to[1][1] = MEMBERSHIP_FULL;
        run_plan(r, to, 2);
        r->fault_port = r->f.host[0];
}

/* Two for each write, one for each block that is read back. */
START_TEST(test_progress)
{
        uint64_t steps, total;
        struct mad_stage stage;
        struct run r;

        two_grants(&r);
        begin_apply(&r);
        stage = apply_stage(r.apply);
        stage.progress(stage.state, &steps, &total);
        ck_assert_uint_eq(steps, 0);
        ck_assert_uint_eq(total, 2 * 2 + 2);
        run_apply(&r);
        stage = apply_stage(r.apply);
        stage.progress(stage.state, &steps, &total);
        ck_assert_uint_eq(steps, 2 * 2 + 2);
        ck_assert_uint_eq(total, 2 * 2 + 2);
        run_done(&r);
}
END_TEST

START_TEST(test_clean)
{
        struct run r;

        two_grants(&r);
        r.memory = index_memory_new();
        run_apply(&r);
        expect(&r, 2, 0, 0, 2);
        ck_assert_uint_eq(r.f.sets, 2);
        ck_assert_uint_eq(r.f.gets, 4); /* before each write, and each read back */
        ck_assert(has_entry(&r, r.f.host[0], 0x8011));
        ck_assert_mem_eq(r.o->tables[r.f.host[1]].entries, r.f.tables[r.f.host[1]], sizeof(r.f.tables[0]));
        run_done(&r);
}
END_TEST

static bool on_fault_port(struct run *r, const struct mad_request *request, enum mad_method method)
{
        return fake_fabric_port_of(&r->f, request) == r->fault_port && request->method == method;
}

static bool lose_first_set_answer(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET) || r->n_faults++ > 0)
                return false;
        (void) fake_fabric_answer(&r->f, request, ret);
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* What is in the table decides: no second Set for one that arrived. */
START_TEST(test_set_answer_lost)
{
        struct run r;

        two_grants(&r);
        r.fault = lose_first_set_answer;
        run_apply(&r);
        expect(&r, 2, 0, 0, 2);
        ck_assert_uint_eq(r.sets_by_port[r.f.host[0]], 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->state, APPLY_WRITTEN);
        run_done(&r);
}
END_TEST

static bool lose_first_set(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET) || r->n_faults++ > 0)
                return false;
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

START_TEST(test_set_lost)
{
        struct run r;

        two_grants(&r);
        r.fault = lose_first_set;
        run_apply(&r);
        expect(&r, 2, 0, 0, 3);
        ck_assert(has_entry(&r, r.f.host[0], 0x8011));
        run_done(&r);
}
END_TEST

static bool lose_all_sets(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return on_fault_port(r, request, MAD_SET);
}

/* A host that does not answer NodeInfo, and the state of its link in its switch. */
static struct {
        bool is_up, switch_is_mute, comes_back;
        unsigned n_asked, n_links;
        uint8_t retries[4];
} unplugged;

static bool unplug(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&r->f, request);

        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (port == r->f.leaf[1] && request->attribute == SMP_ATTR_PORT_INFO) {
                ck_assert_uint_eq(request->modifier, r->f.subnet->ports[r->f.leaf[1]].number);
                ck_assert_uint_eq(request->key, m_keys_get(r->m_keys, r->f.subnet->ports[r->f.leaf[1]].guid));
                unplugged.n_links++;
                if (!unplugged.switch_is_mute)
                        *ret = (struct mad_result) { .outcome = MAD_ANSWERED };
                mad_set_field(ret->data, 0, IB_PORT_PHYS_STATE_F, unplugged.is_up ? 5 : 2);
                return true;
        }
        if (port != r->fault_port || request->attribute != SMP_ATTR_NODE_INFO)
                return false;
        ck_assert_uint_lt(unplugged.n_asked, ELEMENTS(unplugged.retries));
        unplugged.retries[unplugged.n_asked++] = request->retries;
        return unplugged.n_asked == 1 || !unplugged.comes_back;
}

/* An unplugged host is not waited for; one whose link is up, or whose switch does not answer, gets all its tries. */
START_TEST(test_unplugged)
{
        static const struct {
                bool is_up, switch_is_mute, comes_back;
                unsigned n_asked;
        } rows[] = { { .n_asked = 1 }, { .is_up = true, .n_asked = 2 }, { .switch_is_mute = true, .n_asked = 2 },
                     { .is_up = true, .comes_back = true, .n_asked = 2 } };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct run r;

                memset(&unplugged, 0, sizeof(unplugged));
                unplugged.is_up = rows[i].is_up;
                unplugged.switch_is_mute = rows[i].switch_is_mute;
                unplugged.comes_back = rows[i].comes_back;
                two_grants(&r);
                r.fault = unplug;
                r.fault_port = r.f.host[1];
                run_apply(&r);
                ck_assert_uint_eq(unplugged.n_links, 1);
                ck_assert_uint_eq(unplugged.n_asked, rows[i].n_asked);
                ck_assert_uint_eq(unplugged.retries[0], 1);
                ck_assert_uint_eq(unplugged.retries[1], 0);
                if (rows[i].comes_back)
                        expect(&r, 2, 0, 0, 2);
                else
                        expect(&r, 1, 1, 0, 1);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 1)->reason, rows[i].comes_back ? APPLY_OK : APPLY_TIMEOUT);
                ck_assert_int_eq(r.o->tables[r.f.host[1]].source == TABLE_READ, rows[i].comes_back);
                run_done(&r);
        }
}
END_TEST

/* One port that cannot be written does not keep the others of its phase from being written. */
START_TEST(test_set_never_arrives)
{
        struct run r;

        two_grants(&r);
        r.fault = lose_all_sets;
        run_apply(&r);
        expect(&r, 1, 1, 0, 4); /* 1 + 2 retries on one, 1 on the other */
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_SET_UNANSWERED);
        ck_assert_str_eq(apply_reason_to_string(APPLY_SET_UNANSWERED), "set-unanswered");
        ck_assert(!apply_outcome(r.apply, PHASE_GRANT, 0)->m_key_counted);
        ck_assert(has_entry(&r, r.f.host[1], 0x8011));
        run_done(&r);
}
END_TEST

/* A port with an M_Key that we have not got, at protection level 0 or 1. */
static bool want_key(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (!on_fault_port(r, request, MAD_SET))
                return false;
        r->f.m_key_violations += r->f.m_key_violations < UINT16_MAX;
        return true;
}

START_TEST(test_m_key_counted)
{
        static const uint16_t before[] = { 0, 7, UINT16_MAX };
        struct run r;

        for (size_t i = 0; i < ELEMENTS(before); i++) {
                two_grants(&r);
                r.fault = want_key;
                r.f.m_key_violations = before[i];
                run_apply(&r);
                /* two are enough if the counter moves */
                expect(&r, 1, 1, 0, before[i] < UINT16_MAX ? 3 : 4);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_SET_UNANSWERED);
                /* a counter at its maximum proves nothing */
                ck_assert(apply_outcome(r.apply, PHASE_GRANT, 0)->m_key_counted == (before[i] < UINT16_MAX));
                ck_assert(!apply_outcome(r.apply, PHASE_GRANT, 1)->m_key_counted);
                run_done(&r);
        }
}
END_TEST

/* Sets are lost, and another program resets the counter meanwhile. */
static bool clear_counter(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (!on_fault_port(r, request, MAD_SET))
                return false;
        r->f.m_key_violations = r->n_faults++ == 0 ? 7 : 0;
        return true;
}

/* A counter that begins anew was not moved by a Set: the port does not want another M_Key, and is tried as often as any other. */
START_TEST(test_m_key_counter_is_cleared)
{
        struct run r;

        two_grants(&r);
        r.fault = clear_counter;
        run_apply(&r);
        expect(&r, 1, 1, 0, 4);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_SET_UNANSWERED);
        ck_assert(!apply_outcome(r.apply, PHASE_GRANT, 0)->m_key_counted);
        run_done(&r);
}
END_TEST

static unsigned n_counts[2]; /* PortInfo of port 0, and of others */

static bool want_key_of_port_0(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (request->attribute == SMP_ATTR_PORT_INFO)
                n_counts[request->modifier != 0]++;
        return want_key(r, request, ret);
}

/* The M_Key of a switch, and its counter, is that of port 0. */
START_TEST(test_m_key_of_a_switch)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.fault_port = r.f.leaf[0];
        r.fault = want_key_of_port_0;
        memset(n_counts, 0, sizeof(n_counts));
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_OPEN, 0)->reason, APPLY_SET_UNANSWERED);
        ck_assert(apply_outcome(r.apply, PHASE_OPEN, 0)->m_key_counted);
        ck_assert_uint_eq(n_counts[0], 2);
        ck_assert_uint_eq(n_counts[1], 0);
        run_done(&r);
}
END_TEST

/* The counter cannot be read: the finding has what is known without it. */
static bool want_key_silently(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return on_fault_port(r, request, MAD_SET) || request->attribute == SMP_ATTR_PORT_INFO;
}

START_TEST(test_m_key_not_counted)
{
        struct run r;

        two_grants(&r);
        r.fault = want_key_silently;
        run_apply(&r);
        expect(&r, 1, 1, 0, 4);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_SET_UNANSWERED);
        ck_assert(!apply_outcome(r.apply, PHASE_GRANT, 0)->m_key_counted);
        run_done(&r);
}
END_TEST

/* Whose key it is: a host's port its own (by its port GUID, for each port of a host may have another), a switch's ports that of its
 * port 0; and whose violations are read. */
static bool check_key(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        static const struct guid leaf = { 0x1000 };
        uint32_t port = fake_fabric_port_of(&r->f, request);
        const struct m_keys *keys = r->userdata;
        struct guid guid = request->route.lid.v == 1 ? leaf : (struct guid) { 0x2100u + request->route.lid.v - 10 };

        ck_assert_uint_ne(m_keys_get(keys, guid), 0);
        ck_assert_uint_eq(request->key, m_keys_get(keys, guid));
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (request->attribute == SMP_ATTR_PORT_INFO && request->method == MAD_GET && r->n_faults > 0)
                ck_assert(request->route.lid.v == 1 ? request->modifier <= r->f.n_hosts : request->modifier == 1);
        r->n_faults += request->method == MAD_SET;
        return request->method == MAD_SET && port == r->fault_port;
}

START_TEST(test_m_keys)
{
        static const char text[] = "0x1000 0x5a\n\n0x2100 0x50\n\n0x2101 0x51\n";
        _cleanup_findings_ struct findings findings = {};
        _cleanup_(m_keys_free_p) struct m_keys *keys = NULL;
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        for (unsigned leaf = 0; leaf < 2; leaf++) {
                run_init(&r, 2, true);
                default_members(to);
                to[0][1] = to[1][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                findings.arena = r.a;
                keys = m_keys_free(keys);
                ck_assert_int_eq(m_keys_parse("m_key", text, strlen(text), &findings, &keys), 0);
                r.userdata = keys;
                r.m_keys = keys;
                r.fault = check_key;
                r.fault_port = leaf ? r.f.leaf[0] : r.f.host[0];
                run_apply(&r);
                ck_assert_uint_gt(r.sets_by_port[r.fault_port], 1);
                run_done(&r);
        }
}
END_TEST

static bool refuse_set(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_REFUSED, .mad_status = 0x1c };
        return on_fault_port(r, request, MAD_SET);
}

START_TEST(test_set_refused)
{
        struct run r;
        uint32_t n;

        two_grants(&r);
        r.fault = refuse_set;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STATUS);
        ck_assert_uint_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->mad_status, 0x1c);
        ck_assert_uint_eq(r.f.gets, 4); /* each block before and after; a port that answers wants no other M_Key */
        (void) apply_held_bases(r.apply, &n);
        ck_assert_uint_eq(n, 0); /* nothing waits for it */
        run_done(&r);
}
END_TEST

static enum mad_outcome ending;

static bool end_who(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = ending };
        return on_fault_port(r, request, MAD_GET) && request->attribute == SMP_ATTR_NODE_INFO;
}

/* It does not get as far as the Set, for each reason that a request can have no answer. */
START_TEST(test_who_ends_without_answer)
{
        static const struct {
                enum mad_outcome outcome;
                enum apply_reason reason;
        } ends[] = {
                { MAD_TIMED_OUT, APPLY_TIMEOUT },
                { MAD_REFUSED, APPLY_STATUS },
                { MAD_BUSY, APPLY_BUSY },
                { MAD_UNSENT, APPLY_UNSENT },
        };

        for (size_t i = 0; i < ELEMENTS(ends); i++) {
                struct run r;

                two_grants(&r);
                ending = ends[i].outcome;
                r.fault = end_who;
                run_apply(&r);
                expect(&r, 1, 1, 0, 1);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, ends[i].reason);
                run_done(&r);
        }
}
END_TEST

/* A name for each, and no two alike. */
START_TEST(test_reasons_have_names)
{
        for (enum apply_reason a = APPLY_OK; a <= APPLY_ABORTED; a++)
                for (enum apply_reason b = APPLY_OK; b <= a; b++)
                        ck_assert_int_eq(strcmp(apply_reason_to_string(a), apply_reason_to_string(b)) == 0, a == b);
}
END_TEST

/* Carried out, and yet a status. */
static bool refuse_but_do(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET))
                return false;
        (void) fake_fabric_answer(&r->f, request, ret);
        ret->outcome = MAD_REFUSED;
        ret->mad_status = 0x1c;
        return true;
}

START_TEST(test_refused_is_looked_at)
{
        struct run r;

        two_grants(&r);
        r.fault = refuse_but_do;
        run_apply(&r);
        expect(&r, 2, 0, 0, 2); /* the table decides, not the answer */
        ck_assert_mem_eq(r.o->tables[r.f.host[0]].entries, r.f.tables[r.f.host[0]], sizeof(r.f.tables[0]));
        run_done(&r);
}
END_TEST

/* Arrives, and then nothing is heard of the port any more. */
static bool do_and_die(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (on_fault_port(r, request, MAD_SET) && r->n_faults++ == 0)
                (void) fake_fabric_answer(&r->f, request, ret);
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return r->n_faults > 0 && fake_fabric_port_of(&r->f, request) == r->fault_port;
}

/* Its table is not a read one any more, and what it holds is not certain. */
START_TEST(test_unconfirmed_is_uncertain)
{
        struct observed_table *t;
        struct run r;

        two_grants(&r);
        r.memory = index_memory_new();
        r.fault = do_and_die;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        t = &r.o->tables[r.f.host[0]];
        ck_assert_int_eq(t->source, TABLE_ASSUMED);
        ck_assert_int_eq(t->failure, MAD_TIMED_OUT);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).has, LEVEL_NONE);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).may, LEVEL_FULL);
        ck_assert_uint_eq(level_of(&r, r.f.host[1], 1).has, LEVEL_FULL);
        run_done(&r);
}
END_TEST

/* Nobody joins a partition while a port that was not read may be in it. Members are no reason to wait. */
START_TEST(test_nobody_joins_what_another_may_hold)
{
        for (unsigned unread = 0; unread < 3; unread++) {
                enum membership to[FAKE_MAX_HOSTS][4];
                struct run r;
                uint32_t n;

                run_init(&r, 3, false);
                default_members(to);
                to[1][1] = to[2][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                r.o->tables[r.f.host[unread]].source = TABLE_ASSUMED;
                r.o->tables[r.f.host[unread]].failure = MAD_TIMED_OUT;
                run_apply(&r);
                ck_assert_uint_eq(r.f.sets, unread == 0 ? 0 : 1);
                ck_assert_int_eq(has_entry(&r, r.f.host[3 - MAX(unread, 1u)], 0x8011), unread != 0);
                if (unread == 0)
                        ck_assert_uint_eq(apply_held_bases(r.apply, &n)[0], FAKE_BASE(1));
                (void) apply_held_bases(r.apply, &n);
                ck_assert_uint_eq(n, unread == 0 ? 1 : 0);
                run_done(&r);
        }
}
END_TEST

static const struct held *const *collect_held(struct run *r, size_t *ret_n)
{
        struct held_list *l = held_list_new(r->a);

        ck_assert_ptr_nonnull(l);
        ck_assert_int_eq(apply_collect_held(r->apply, l), 0);
        return held_list_items(l, ret_n);
}

/* What waits for another port is held, whether or not it answers itself; what waits only for its own answer is not. */
START_TEST(test_unread_waits_for_another)
{
        for (unsigned joins = 1; joins <= 2; joins++) {
                enum membership to[FAKE_MAX_HOSTS][4];
                const struct held *const *held;
                const struct knowledge *known;
                struct run r;
                uint32_t n_bases;
                size_t n;

                run_init(&r, 2, false);
                fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
                default_members(to);
                to[1][joins] = to[1][3] = MEMBERSHIP_FULL;
                run_plan(&r, to, 4);
                begin_apply(&r);
                for (unsigned i = 0; i < 2; i++) {
                        r.o->tables[r.f.host[i]].source = TABLE_ASSUMED;
                        r.o->tables[r.f.host[i]].failure = MAD_TIMED_OUT;
                }
                run_phases(&r);
                ck_assert_uint_eq(r.f.sets, 0);
                (void) apply_held_bases(r.apply, &n_bases);
                held = collect_held(&r, &n);
                ck_assert_uint_eq(n, joins == 1);
                ck_assert_uint_eq(n_bases, n);
                known = r.wire.knowledge;
                if (n > 0) {
                        ck_assert_uint_eq(held[0]->base, FAKE_BASE(1));
                        ck_assert_uint_eq(held[0]->waiting[0].record, knowledge_find_port(known, r.f.subnet, r.f.host[1]));
                        ck_assert_uint_eq(held[0]->n_by, 1);
                        ck_assert_uint_eq(held[0]->by[0].record, knowledge_find_port(known, r.f.subnet, r.f.host[0]));
                }
                run_done(&r);
        }
}
END_TEST

/* Behind a filter that is closed it holds nothing up. */
START_TEST(test_unread_behind_a_filter)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 3, true);
        default_members(to);
        to[1][1] = to[2][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.o->tables[r.f.host[0]].source = TABLE_ASSUMED;
        run_apply(&r);
        ck_assert(has_entry(&r, r.f.host[1], 0x8011) && has_entry(&r, r.f.host[2], 0x8011));
        run_done(&r);
}
END_TEST

static bool another_is_there(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        struct mad_request moved = *request;

        if (request->route.lid.v == 10)
                moved.route.lid.v = 11;
        return fake_fabric_answer(&r->f, &moved, ret);
}

/* LIDs moved: what was meant for host 0 would go to host 1. */
START_TEST(test_stranger)
{
        struct run r;

        two_grants(&r);
        r.fault = another_is_there;
        run_apply(&r);
        expect(&r, 1, 1, 0, 1);
        ck_assert(apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        ck_assert(!has_entry(&r, r.f.host[0], 0x8011));
        run_done(&r);
}
END_TEST

static bool another_port_is_there(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (fake_fabric_port_of(&r->f, request) != r->fault_port || request->attribute != SMP_ATTR_NODE_INFO)
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        mad_set_field(ret->data, 0, IB_NODE_LOCAL_PORT_F, 2);
        return true;
}

/* The same host, by its other port. */
START_TEST(test_stranger_of_the_same_node)
{
        struct run r;

        two_grants(&r);
        r.fault = another_port_is_there;
        run_apply(&r);
        expect(&r, 1, 1, 0, 1);
        ck_assert(apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        run_done(&r);
}
END_TEST

static void change_block(struct mad_result *ret);

static unsigned n_asked_who;

/* The switch's LID moves between two answers of the same phase. */
static bool another_is_there_meanwhile(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        const struct subnet_port *ports = r->f.subnet->ports;

        if (ports[fake_fabric_port_of(&r->f, request)].node != ports[r->f.leaf[0]].node)
                return false;
        REQUIRE(n_asked_who < 2 || request->method == MAD_GET); /* nothing is written there any more */
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        if (request->attribute == SMP_ATTR_NODE_INFO && ++n_asked_who >= 2)
                mad_set_field64(ret->data, 0, IB_NODE_GUID_F, 0xbad);
        if (request->attribute == SMP_ATTR_P_KEY_TABLE && request->method == MAD_GET && n_asked_who > 1)
                change_block(ret);
        return true;
}

/* Two tables of one switch: NodeInfo for one task also counts for the other. */
START_TEST(test_stranger_for_another_task)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        unsigned n_stale = 0;
        struct run r;

        for (unsigned seed = 1; seed <= 40; seed++) {
                run_init(&r, 2, true);
                default_members(to);
                to[0][1] = to[1][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                r.seed = seed;
                r.most = r.burst = 2; /* both answers before the next request */
                n_asked_who = 0;
                r.fault = another_is_there_meanwhile;
                run_apply(&r);
                n_stale += apply_is_stale(r.apply);
                for (unsigned leaf = 0; leaf < 2; leaf++)
                        ck_assert_uint_ne(r.o->tables[r.f.leaf[leaf]].entries[P_KEY_BLOCK_ENTRIES - 1].v, 0x77);
                run_done(&r);
        }
        ck_assert_uint_gt(n_stale, 0);
}
END_TEST

/* A task read its block when the SMA was the right one, and gets the answer of another one: that is not its table. */
START_TEST(test_stranger_while_a_block_is_read)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct mad_request who[2], block;
        struct mad_stage stage;
        struct run r;

        run_init(&r, 2, true);
        default_members(to);
        to[0][1] = to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        n_asked_who = 0;
        r.fault = another_is_there_meanwhile;
        begin_apply(&r);
        stage = apply_stage(r.apply);
        ck_assert_int_eq(apply_prepare(r.apply), 1);
        ck_assert_int_eq(apply_phase(r.apply), PHASE_OPEN);
        knowledge_stored(r.wire.knowledge);
        gate_open(r.wire.gate, r.wire.knowledge, &r.f.policy);
        ck_assert(stage.next(stage.state, 0, &who[0]) && stage.next(stage.state, 0, &who[1]));
        answer(&r, &stage, &who[0]);
        ck_assert(stage.next(stage.state, 0, &block) && block.attribute == SMP_ATTR_P_KEY_TABLE);
        answer(&r, &stage, &who[1]);
        answer(&r, &stage, &block);
        ck_assert(stage.done(stage.state) && apply_is_stale(r.apply));
        for (unsigned leaf = 0; leaf < 2; leaf++) {
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_OPEN, leaf)->reason, APPLY_STRANGER);
                ck_assert_uint_ne(r.o->tables[r.f.leaf[leaf]].entries[P_KEY_BLOCK_ENTRIES - 1].v, 0x77);
        }
        run_done(&r);
}
END_TEST

/* Another table: with an entry that pkeyd did not write. */
static void change_block(struct mad_result *ret)
{
        ret->data[2 * (P_KEY_BLOCK_ENTRIES - 1) + 1] = 0x77;
}

/* What host 0 may hold of it, and whether it was read there for certain. */
static void check_77(const struct run *r, enum level may, bool is_read)
{
        uint32_t record = knowledge_find_port(r->wire.knowledge, r->f.subnet, r->f.host[0]);

        ck_assert_uint_eq(knowledge_table_bounds(r->wire.knowledge, record, 0x77).may, may);
        ck_assert_uint_eq(knowledge_get(r->wire.knowledge, record)->entries[P_KEY_BLOCK_ENTRIES - 1].v, is_read ? 0x77 : 0);
}

/* A block is read late for the first time, or is not as it was known; from then on another SMA may have that LID. */
struct doubtful {
        bool is_late, is_stranger;
};

static bool doubtful_read(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        const struct doubtful *d = r->userdata;

        if (!on_fault_port(r, request, MAD_GET) || (r->n_faults == 0 && request->attribute != SMP_ATTR_P_KEY_TABLE))
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        ret->repeated = r->n_faults++ == 0 && d->is_late;
        if (d->is_stranger && request->attribute == SMP_ATTR_NODE_INFO)
                mad_set_field64(ret->data, 0, IB_NODE_GUID_F, 0xbad);
        else if (request->attribute == SMP_ATTR_P_KEY_TABLE && (d->is_stranger || !d->is_late))
                change_block(ret);
        return true;
}

/* A late answer is used after the SMA has answered NodeInfo again. */
START_TEST(test_late_read)
{
        struct run r;

        for (unsigned i = 0; i < 2; i++) {
                const bool is_stranger = i;
                const struct doubtful doubtful = { true, is_stranger };

                two_grants(&r);
                r.fault = doubtful_read;
                r.userdata = &doubtful;
                run_apply(&r);
                expect(&r, 2 - i, i, 0, 2 - i);
                ck_assert(apply_is_stale(r.apply) == is_stranger);
                ck_assert_uint_eq(r.f.asked_who, 2 + 1);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, is_stranger ? APPLY_STRANGER : APPLY_OK);
                ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[P_KEY_BLOCK_ENTRIES - 1].v, 0);
                check_77(&r, is_stranger ? LEVEL_LIMITED : LEVEL_NONE, false);
                run_done(&r);
        }
}
END_TEST

/* The first answer is late; meanwhile another program has changed the block, or nothing has but all answers are late. */
static bool late_and_changed(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        const bool all_are_late = *(const bool *) r->userdata;

        if (!on_fault_port(r, request, MAD_GET) || request->attribute != SMP_ATTR_P_KEY_TABLE)
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        ret->repeated = all_are_late || r->n_faults == 0;
        if (r->n_faults++ == 0 && !all_are_late)
                r->f.tables[r->fault_port][P_KEY_BLOCK_ENTRIES - 1].v = 0x77;
        return true;
}

/* A Set does not rest on a late answer, which may be old, but on a second read; that one counts even if it is late, too. */
START_TEST(test_read_again_after_a_late_read)
{
        struct run r;

        for (unsigned i = 0; i < 2; i++) {
                const bool all_are_late = i;

                two_grants(&r);
                r.fault = late_and_changed;
                r.userdata = &all_are_late;
                run_apply(&r);
                expect(&r, 1 + i, 1 - i, 0, 1 + i);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, all_are_late ? APPLY_OK : APPLY_CHANGED);
                ck_assert_uint_eq(r.n_faults, 2 + i); /* with the read back */
                ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[P_KEY_BLOCK_ENTRIES - 1].v, all_are_late ? 0 : 0x77);
                run_done(&r);
        }
}
END_TEST

/* An unexpected table is used after the SMA has answered NodeInfo again. */
START_TEST(test_news)
{
        struct run r;

        for (unsigned i = 0; i < 2; i++) {
                const bool is_stranger = i;
                const struct doubtful doubtful = { false, is_stranger };

                two_grants(&r);
                r.fault = doubtful_read;
                r.userdata = &doubtful;
                run_apply(&r);
                expect(&r, 1, 1, 0, 1);
                ck_assert_uint_eq(r.f.asked_who, 2 + 1);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, is_stranger ? APPLY_STRANGER : APPLY_CHANGED);
                ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[P_KEY_BLOCK_ENTRIES - 1].v, is_stranger ? 0 : 0x77);
                check_77(&r, LEVEL_LIMITED, !is_stranger);
                run_done(&r);
        }
}
END_TEST

static bool news_and_abort(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        const bool answers = *(const bool *) r->userdata;

        if (!on_fault_port(r, request, MAD_GET) || (r->n_faults == 0 && request->attribute != SMP_ATTR_P_KEY_TABLE))
                return false;
        apply_abort(r->apply);
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        if (r->n_faults++ == 0)
                change_block(ret);
        else if (!answers)
                *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* A run that is ended early still asks whose news that is: else the next plan would call what changed right. */
START_TEST(test_news_when_ended_early)
{
        struct run r;

        for (unsigned i = 0; i < 2; i++) {
                const bool answers = i;
                const struct observed_table *t;

                two_grants(&r);
                r.fault = news_and_abort;
                r.userdata = &answers;
                run_apply(&r);
                ck_assert_uint_eq(r.n_faults, 2);
                t = &r.o->tables[r.fault_port];
                ck_assert_int_eq(t->source, answers ? TABLE_READ : TABLE_ASSUMED);
                ck_assert_uint_eq(t->entries[P_KEY_BLOCK_ENTRIES - 1].v, answers ? 0x77 : 0);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, answers ? APPLY_CHANGED : APPLY_TIMEOUT);
                run_done(&r);
        }
}
END_TEST

/* The Set is lost, and meanwhile another SMA, which holds what was to be written, gets the LID. */
static bool another_has_it_already(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (fake_fabric_port_of(&r->f, request) != r->fault_port || (r->n_faults == 0 && request->method == MAD_GET))
                return false;
        if (request->method == MAD_SET) {
                REQUIRE(r->n_faults++ == 0);
                *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
                return true;
        }
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        if (request->attribute == SMP_ATTR_NODE_INFO)
                mad_set_field64(ret->data, 0, IB_NODE_GUID_F, 0xbad);
        else if (request->attribute == SMP_ATTR_P_KEY_TABLE)
                memcpy(ret->data, r->f.tables[r->f.host[1]], SMP_DATA_SIZE);
        return true;
}

START_TEST(test_stranger_after_a_lost_set)
{
        struct run r;

        two_grants(&r);
        r.fault = another_has_it_already;
        run_apply(&r);
        ck_assert(apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).has, LEVEL_NONE);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).may, LEVEL_FULL);
        run_done(&r);
}
END_TEST

/* One block of a switch is read late, while another one's Set is about to be sent: it waits for the switch's name. */
START_TEST(test_set_behind_a_late_answer)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct mad_request who[2], block[2], next;
        struct mad_result result = {};
        struct mad_stage stage;
        struct run r;

        run_init(&r, 2, true);
        default_members(to);
        to[0][1] = to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        begin_apply(&r);
        stage = apply_stage(r.apply);
        ck_assert_int_eq(apply_prepare(r.apply), 1);
        knowledge_stored(r.wire.knowledge);
        gate_open(r.wire.gate, r.wire.knowledge, &r.f.policy);
        ck_assert(stage.next(stage.state, 0, &who[0]) && stage.next(stage.state, 0, &who[1]));
        for (unsigned i = 0; i < 2; i++)
                answer(&r, &stage, &who[i]);
        ck_assert(stage.next(stage.state, 0, &block[0]) && stage.next(stage.state, 0, &block[1]));
        answer(&r, &stage, &block[0]);
        ck_assert(fake_fabric_answer(&r.f, &block[1], &result));
        result.repeated = true;
        fake_wire_end(&r.wire, &block[1], &result);
        stage.result(stage.state, 0, &result);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert(stage.next(stage.state, 0, &who[i]));
                ck_assert_uint_eq(who[i].attribute, SMP_ATTR_NODE_INFO);
        }
        answer(&r, &stage, &who[0]);
        ck_assert(stage.next(stage.state, 0, &next) && next.method == MAD_SET);
        answer(&r, &stage, &next);
        answer(&r, &stage, &who[1]);
        ck_assert(stage.next(stage.state, 0, &next) && next.method == MAD_GET);
        answer(&r, &stage, &next);
        ck_assert(stage.next(stage.state, 0, &next) && next.method == MAD_SET);
        answer(&r, &stage, &next);
        ck_assert(stage.done(stage.state) && r.f.sets == 2);
        run_done(&r);
}
END_TEST

/* At the end a block differs, and the second read of it is late. */
static bool differs_late(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_GET) || r->sets_by_port[r->fault_port] == 0 ||
            request->attribute != SMP_ATTR_P_KEY_TABLE)
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        change_block(ret);
        ret->repeated = r->n_faults++ == 1;
        return true;
}

START_TEST(test_late_at_the_end)
{
        struct run r;

        two_grants(&r);
        r.fault = differs_late;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_TIMEOUT);
        ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[P_KEY_BLOCK_ENTRIES - 1].v, 0);
        ck_assert_int_eq(r.o->tables[r.f.host[0]].source, TABLE_ASSUMED);
        run_done(&r);
}
END_TEST

static bool nobody_says_who_later(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (r->sets_by_port[r->fault_port] == 0 || request->method != MAD_GET ||
            fake_fabric_port_of(&r->f, request) != r->fault_port)
                return false;
        if (request->attribute == SMP_ATTR_P_KEY_TABLE) {
                REQUIRE(fake_fabric_answer(&r->f, request, ret));
                change_block(ret);
        }
        return true;
}

/* A table that differs from what was written, of an SMA that does not answer NodeInfo, is not adopted, but counts as possible. */
START_TEST(test_nobody_says_who_at_the_end)
{
        uint32_t record;
        struct run r;

        two_grants(&r);
        r.fault = nobody_says_who_later;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        ck_assert(!apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_TIMEOUT);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).has, LEVEL_NONE);
        record = knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[0]);
        ck_assert_uint_eq(knowledge_table_bounds(r.wire.knowledge, record, 0x77).may, LEVEL_LIMITED);
        run_done(&r);
}
END_TEST

static bool one_says_who(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&r->f, request);

        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (r->sets_by_port[port] == 0 || request->method != MAD_GET)
                return false;
        if (request->attribute == SMP_ATTR_NODE_INFO)
                return port == r->fault_port;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        change_block(ret);
        return true;
}

/* The tables of two hosts differ from what was written. NodeInfo of one does not count for the other. */
START_TEST(test_one_says_who_at_the_end)
{
        const struct plan_step *grant;
        struct run r;

        two_grants(&r);
        r.fault_port = r.f.host[1];
        r.fault = one_says_who;
        r.most = 1;
        run_apply(&r);
        grant = &r.plan->steps[PHASE_GRANT];
        for (uint32_t i = 0; i < 2; i++) {
                bool unnamed = grant->writes[i].port == r.fault_port;
                uint16_t last = r.o->tables[grant->writes[i].port].entries[P_KEY_BLOCK_ENTRIES - 1].v;

                ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, i)->reason, unnamed ? APPLY_TIMEOUT : APPLY_REVERTED);
                ck_assert_uint_eq(last, unnamed ? 0 : 0x77);
        }
        run_done(&r);
}
END_TEST

static bool another_is_there_later(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (r->sets_by_port[r->f.host[0]] == 0 || request->method != MAD_GET || !another_is_there(r, request, ret))
                return false;
        if (request->attribute == SMP_ATTR_P_KEY_TABLE && request->route.lid.v == 10)
                change_block(ret);
        return true;
}

/* LIDs moved when all was written: what host 1 holds is not what host 0 holds. */
START_TEST(test_stranger_at_the_end)
{
        uint32_t record;
        struct run r;

        two_grants(&r);
        r.most = 1;
        r.fault = another_is_there_later;
        run_apply(&r);
        ck_assert(apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 1)->state, APPLY_WRITTEN);
        ck_assert(has_entry(&r, r.f.host[0], 0x8011));
        record = knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[0]);
        ck_assert_uint_eq(knowledge_table_bounds(r.wire.knowledge, record, FAKE_BASE(1)).has, LEVEL_FULL);
        ck_assert_int_eq(r.o->tables[r.f.host[0]].source, TABLE_ASSUMED);
        run_done(&r);
}
END_TEST

static bool one_is_another_and_one_reverts(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (request->route.lid.v == 10)
                return another_is_there_later(r, request, ret);
        if (r->sets_by_port[r->f.host[1]] == 0 || request->attribute != SMP_ATTR_P_KEY_TABLE || request->method != MAD_GET ||
            !fake_fabric_answer(&r->f, request, ret))
                return false;
        change_block(ret);
        return true;
}

/* The stranger does not keep pkeyd from asking the next port again. */
START_TEST(test_stranger_and_another_look)
{
        struct run r;

        two_grants(&r);
        r.fault = one_is_another_and_one_reverts;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 1)->reason, APPLY_REVERTED);
        run_done(&r);
}
END_TEST

/* ... or between two phases. */
START_TEST(test_stranger_in_a_later_phase)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        r.fault = another_is_there_later;
        run_plan(&r, to, 2);
        run_apply(&r);
        ck_assert(apply_is_stale(r.apply));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STRANGER);
        ck_assert(!has_entry(&r, r.f.host[0], FAKE_BASE(2) | 0x8000));
        run_done(&r);
}
END_TEST

/* Who is there is asked once for each SMA in each phase: revoke, open, grant. What is read back as it was written needs nobody's
 * name. */
START_TEST(test_asks_who_is_there_once)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        default_members(to);
        to[0][1] = to[0][2] = to[1][1] = MEMBERSHIP_FULL;
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(3), MEMBERSHIP_FULL);
        r.most = 1;
        run_plan(&r, to, 3);
        run_apply(&r);
        ck_assert_uint_eq(r.f.asked_who, 1 + 1 + 2);
        ck_assert(!apply_is_stale(r.apply));
        run_done(&r);
}
END_TEST

/* After all writes, the tables of the first and the last of three switch ports differ. */
static bool outer_ports_differ(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&r->f, request);

        if (request->method != MAD_GET || request->attribute != SMP_ATTR_P_KEY_TABLE || r->sets_by_port[r->f.host[2]] == 0 ||
            (port != r->f.leaf[0] && port != r->f.leaf[2]))
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        change_block(ret);
        return true;
}

/* Only they are read again, after one question to the switch. */
START_TEST(test_looks_again_at_what_differs)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;
        unsigned gets = 0, asked = 0;

        for (unsigned differ = 0; differ < 2; differ++) {
                run_init(&r, 3, true);
                default_members(to);
                to[0][1] = to[1][1] = to[2][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                if (differ)
                        r.fault = outer_ports_differ;
                run_apply(&r);
                ck_assert(!apply_is_stale(r.apply));
                for (uint32_t i = 0; i < 3; i++) {
                        bool outer = r.plan->steps[PHASE_OPEN].writes[i].port != r.f.leaf[1];

                        ck_assert_int_eq(apply_outcome(r.apply, PHASE_OPEN, i)->state,
                                         differ && outer ? APPLY_FAILED : APPLY_WRITTEN);
                        ck_assert_int_eq(apply_outcome(r.apply, PHASE_OPEN, i)->reason,
                                         differ && outer ? APPLY_REVERTED : APPLY_OK);
                }
                if (differ) {
                        ck_assert_uint_eq(r.f.gets, gets + 2);
                        ck_assert_uint_eq(r.f.asked_who, asked + 1);
                }
                gets = r.f.gets;
                asked = r.f.asked_who;
                run_done(&r);
        }
}
END_TEST

/* The revoke arrives without an answer: the index must not count as unused in the next plan. */
START_TEST(test_freed_index_is_noted_at_once)
{
        static const uint16_t indexes[] = { 1, 31, 32, 63 };

        for (size_t i = 0; i < ELEMENTS(indexes); i++) {
                enum membership to[FAKE_MAX_HOSTS][4];
                const struct freed_index *freed;
                struct run r;
                size_t n;

                run_init(&r, 2, false);
                r.f.tables[r.f.host[0]][indexes[i]].v = 0x8011;
                default_members(to);
                run_plan(&r, to, 1);
                r.memory = index_memory_new();
                r.fault_port = r.f.host[0];
                r.fault = do_and_die;
                run_apply(&r);
                freed = index_memory_get(r.memory, r.f.subnet->nodes[r.f.subnet->ports[r.f.host[0]].node].guid, 1, &n);
                ck_assert_uint_eq(n, 1);
                ck_assert_uint_eq(freed[0].index, indexes[i]);
                ck_assert_uint_eq(freed[0].base, FAKE_BASE(1));
                run_done(&r);
        }
}
END_TEST

static bool dead_port(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return fake_fabric_port_of(&r->f, request) == r->fault_port;
}

START_TEST(test_read_before_write_unanswered)
{
        struct run r;
        uint32_t record;

        two_grants(&r);
        r.fault = dead_port;
        run_apply(&r);
        expect(&r, 1, 1, 0, 1);
        ck_assert_uint_eq(r.sets_by_port[r.f.host[0]], 0);
        /* what was announced, and not sent, is nothing that the table may hold */
        record = knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[0]);
        ck_assert_uint_eq(knowledge_get(r.wire.knowledge, record)->n_writes, 0);
        /* it is one that does not answer, not one that differs */
        ck_assert_int_eq(r.o->tables[r.f.host[0]].source, TABLE_ASSUMED);
        ck_assert_int_eq(r.o->tables[r.f.host[0]].failure, MAD_TIMED_OUT);
        ck_assert_int_eq(r.o->tables[r.f.host[1]].source, TABLE_READ);
        run_done(&r);
}
END_TEST

static bool refuse_block(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_REFUSED, .mad_status = 0x1c };
        return on_fault_port(r, request, MAD_GET) && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* The status of the port is reported. */
START_TEST(test_read_before_write_refused)
{
        struct run r;

        two_grants(&r);
        r.fault = refuse_block;
        run_apply(&r);
        expect(&r, 1, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STATUS);
        ck_assert_uint_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->mad_status, 0x1c);
        run_done(&r);
}
END_TEST

START_TEST(test_changed_behind_our_back)
{
        struct run r;

        two_grants(&r);
        r.f.tables[r.f.host[0]][7] = (struct p_key) { 0x9999 };
        run_apply(&r);
        expect(&r, 1, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_CHANGED);
        ck_assert(!has_entry(&r, r.f.host[0], 0x8011));
        ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[7].v, 0x9999);
        run_done(&r);
}
END_TEST

START_TEST(test_there_already)
{
        struct run r;

        two_grants(&r);
        r.f.tables[r.f.host[0]][1] = (struct p_key) { 0x8011 };
        run_apply(&r);
        expect(&r, 2, 0, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->state, APPLY_PRESENT);
        run_done(&r);
}
END_TEST

/* Says OK and gives back what it was sent, but with one entry less. */
static bool answer_something_else(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        if (!on_fault_port(r, request, MAD_SET))
                return false;
        p_key_block_decode(request->data, block);
        block[1].v = 0;
        p_key_block_encode(block, ret->data);
        ret->outcome = MAD_ANSWERED;
        return true;
}

START_TEST(test_mismatch)
{
        struct run r;

        two_grants(&r);
        r.fault = answer_something_else;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_MISMATCH);
        run_done(&r);
}
END_TEST

/* Confirms the Set and does not do it: only reading back finds out. */
/* Silent once its Set was confirmed. */
static bool die_confirmed(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (r->n_faults == 0) {
                r->n_faults = on_fault_port(r, request, MAD_SET);
                return false;
        }
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return fake_fabric_port_of(&r->f, request) == r->fault_port;
}

/* It answers NodeInfo, but not reads of its table. */
static bool table_dies_confirmed(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        return request->attribute != SMP_ATTR_NODE_INFO && die_confirmed(r, request, ret);
}

/* What could not be read back is not a table that was read. */
START_TEST(test_not_read_back)
{
        static const fault_t faults[] = { die_confirmed, table_dies_confirmed };

        for (size_t i = 0; i < ELEMENTS(faults); i++) {
                const struct observed_table *t;
                struct run r;

                two_grants(&r);
                r.fault = faults[i];
                run_apply(&r);
                expect(&r, 1, 1, 0, 2);
                t = &r.o->tables[r.fault_port];
                ck_assert_int_eq(t->source, TABLE_ASSUMED);
                ck_assert_int_eq(t->failure, MAD_TIMED_OUT);
                ck_assert_uint_eq(level_of(&r, r.fault_port, 1).may, LEVEL_FULL); /* the Set itself was confirmed */
                ck_assert_uint_eq(level_of(&r, r.fault_port, 1).has, LEVEL_NONE);
                run_done(&r);
        }
}
END_TEST

static bool refuse_after_set(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_REFUSED, .mad_status = 0x1c };
        return on_fault_port(r, request, MAD_GET) && r->sets_by_port[r->fault_port] > 0;
}

/* Why it was not is known of the table from then on, too. */
START_TEST(test_not_read_back_with_a_status)
{
        const struct observed_table *t;
        struct run r;

        two_grants(&r);
        r.fault = refuse_after_set;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_STATUS);
        ck_assert_uint_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->mad_status, 0x1c);
        t = &r.o->tables[r.f.host[0]];
        ck_assert_int_eq(t->source, TABLE_ASSUMED);
        ck_assert_int_eq(t->failure, MAD_REFUSED);
        ck_assert_uint_eq(t->mad_status, 0x1c);
        run_done(&r);
}
END_TEST

static bool lie(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET))
                return false;
        memcpy(ret->data, request->data, SMP_DATA_SIZE);
        ret->outcome = MAD_ANSWERED;
        return true;
}

START_TEST(test_reverted)
{
        struct run r;
        uint32_t n;

        two_grants(&r);
        r.fault = lie;
        run_apply(&r);
        expect(&r, 1, 1, 0, 2);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_REVERTED);
        (void) apply_held_bases(r.apply, &n);
        ck_assert_uint_eq(n, 0);
        ck_assert_uint_eq(r.o->tables[r.f.host[0]].entries[1].v, 0);
        run_done(&r);
}
END_TEST

/* As many as a write is tried. */
static bool lose_first_sets(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return on_fault_port(r, request, MAD_SET) && r->n_faults++ < 3;
}

/* Host 0 leaves partition 1 and cannot be written; host 1 must not join it then, but may join partition 2. */
START_TEST(test_hold_back)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const struct freed_index *freed;
        const struct held *const *held;
        struct run r;
        size_t n;

        run_init(&r, 3, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[1][1] = to[1][2] = to[2][2] = MEMBERSHIP_FULL;
        run_plan(&r, to, 3);
        r.memory = index_memory_new();
        r.fault_port = r.f.host[0];
        r.fault = lose_all_sets;
        run_apply(&r);
        expect(&r, 2, 1, 0, 5); /* host 1 without 0x0011, and host 2 */
        freed = index_memory_all(r.memory, &n);
        ck_assert_uint_eq(n, 1); /* what was held was never sent, and used no index */
        ck_assert_uint_eq(freed[0].node_guid.v, r.f.subnet->nodes[r.f.subnet->ports[r.f.host[0]].node].guid.v);
        ck_assert(apply_outcome(r.apply, PHASE_GRANT, 0)->partly_held);
        ck_assert(!has_entry(&r, r.f.host[1], 0x8011));
        ck_assert(has_entry(&r, r.f.host[1], 0x8012));
        ck_assert(has_entry(&r, r.f.host[2], 0x8012));
        held = collect_held(&r, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(held[0]->base, FAKE_BASE(1));
        ck_assert_uint_eq(held[0]->n_waiting, 1);
        ck_assert_uint_eq(held[0]->waiting[0].record, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[1]));
        ck_assert_uint_eq(held[0]->waiting[0].to, LEVEL_FULL);
        ck_assert_uint_eq(held[0]->n_by, 1);
        ck_assert_uint_eq(held[0]->by[0].record, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[0]));
        run_done(&r);
}
END_TEST

/* The same where it is the last entry of a block that waits: the one before it is written. */
START_TEST(test_hold_back_the_last_entry)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        r.f.tables[r.f.host[1]][P_KEY_BLOCK_ENTRIES - 3].v = 0x8013;
        default_members(to);
        to[1][1] = to[1][2] = to[1][3] = MEMBERSHIP_FULL;
        run_plan(&r, to, 4);
        r.fault_port = r.f.host[0];
        r.fault = lose_all_sets;
        run_apply(&r);
        ck_assert_uint_eq(r.f.tables[r.f.host[1]][P_KEY_BLOCK_ENTRIES - 2].v, 0x8011);
        ck_assert_uint_eq(r.f.tables[r.f.host[1]][P_KEY_BLOCK_ENTRIES - 1].v, 0);
        run_done(&r);
}
END_TEST

/* The highest base is one like the others. */
START_TEST(test_hold_back_the_default_partition)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const uint16_t *bases;
        struct run r;
        uint32_t n;

        run_init(&r, 2, false);
        memset(r.f.tables[r.f.host[1]], 0, sizeof(r.f.tables[0]));
        default_members(to);
        to[0][0] = MEMBERSHIP_NONE;
        run_plan(&r, to, 1);
        r.fault_port = r.f.host[0];
        r.fault = lose_all_sets;
        run_apply(&r);
        bases = apply_held_bases(r.apply, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(bases[0], P_KEY_DEFAULT_BASE);
        run_done(&r);
}
END_TEST

/* Host 0 has room for two more entries, one where partition 1 stands until it is revoked, which cannot be done: what should take
 * its place waits, the other one is written. */
START_TEST(test_what_is_in_the_way_stays)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const uint16_t *bases;
        struct run r;
        uint32_t n;

        run_init(&r, 1, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[0][2] = to[0][3] = MEMBERSHIP_FULL;
        r.capacity = 3;
        run_plan(&r, to, 4);
        r.fault_port = r.f.host[0];
        r.fault = lose_first_sets;
        run_apply(&r);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][1].v, 0x8011);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][2].v, 0x8012);
        ck_assert(apply_outcome(r.apply, PHASE_GRANT, 0)->partly_held);
        bases = apply_held_bases(r.apply, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(bases[0], FAKE_BASE(3));
        run_done(&r);
}
END_TEST

/* With an index for each of them, nothing waits. */
START_TEST(test_what_is_not_in_the_way)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;
        uint32_t n;

        run_init(&r, 1, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[0][2] = to[0][3] = MEMBERSHIP_FULL;
        run_plan(&r, to, 4);
        r.fault_port = r.f.host[0];
        r.fault = lose_first_sets;
        run_apply(&r);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][1].v, 0x8011);
        ck_assert(has_entry(&r, r.f.host[0], 0x8012) && has_entry(&r, r.f.host[0], 0x8013));
        ck_assert(!apply_outcome(r.apply, PHASE_GRANT, 0)->partly_held);
        (void) apply_held_bases(r.apply, &n);
        ck_assert_uint_eq(n, 0);
        run_done(&r);
}
END_TEST

/* Host 0 cannot be revoked, so host 1 stays a limited member at any index: the change waits, and is reported as held. */
START_TEST(test_hold_back_at_any_index)
{
        for (unsigned index = 1; index < FAKE_CAPACITY; index++) {
                enum membership to[FAKE_MAX_HOSTS][4];
                const struct held *const *held;
                struct run r;
                size_t n;

                run_init(&r, 2, false);
                fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_LIMITED);
                r.f.tables[r.f.host[1]][index].v = FAKE_BASE(1);
                default_members(to);
                to[1][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                r.fault_port = r.f.host[0];
                r.fault = lose_all_sets;
                run_apply(&r);
                ck_assert_uint_eq(r.f.tables[r.f.host[1]][index].v, FAKE_BASE(1));
                held = collect_held(&r, &n);
                ck_assert_uint_eq(n, 1);
                ck_assert_uint_eq(held[0]->base, FAKE_BASE(1));
                ck_assert_int_eq(held[0]->waiting[0].to, LEVEL_FULL);
                run_done(&r);
        }
}
END_TEST

/* A dry run ends as a run in which each write is confirmed, and sends nothing. */
START_TEST(test_simulate)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;
        size_t n;

        run_init(&r, 2, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        begin_apply(&r);
        ck_assert_int_eq(apply_simulate(r.apply), 0);
        expect(&r, 2, 0, 0, 0);
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 1).may, LEVEL_NONE);
        ck_assert_uint_eq(level_of(&r, r.f.host[1], 1).has, LEVEL_FULL);
        ck_assert(!has_entry(&r, r.f.host[1], 0x8011));
        ck_assert(!p_key_is_used(r.o->tables[r.f.host[0]].entries[1]));
        ck_assert_uint_eq(r.o->tables[r.f.host[1]].entries[1].v, 0x8011);
        (void) collect_held(&r, &n);
        ck_assert_uint_eq(n, 0);
        run_done(&r);
}
END_TEST

/* What fails in a phase holds nothing back in the same phase, however late its other writes begin. */
START_TEST(test_the_same_phase_goes_on)
{
        struct run r;

        two_grants(&r);
        r.most = 1;
        r.fault = lose_all_sets;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->state, APPLY_FAILED);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 1)->state, APPLY_WRITTEN);
        ck_assert(has_entry(&r, r.f.host[1], 0x8011));
        run_done(&r);
}
END_TEST

/* Host 0 leaves partition 1 for partition 2. */
static void one_change(struct run *r)
{
        enum membership to[FAKE_MAX_HOSTS][4];

        run_init(r, 2, false);
        r->memory = index_memory_new();
        fake_fabric_put(&r->f, r->f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[0][2] = MEMBERSHIP_FULL;
        run_plan(r, to, 3);
        r->fault_port = r->f.host[0];
}

static const struct freed_index *freed_of_host(const struct run *r, size_t *ret_n)
{
        const struct subnet_port *p = &r->f.subnet->ports[r->f.host[0]];

        return index_memory_get(r->memory, r->f.subnet->nodes[p->node].guid, p->number, ret_n);
}

/* An index that pkeyd frees does not count as lost; one that another program freed before counts. */
START_TEST(test_freed_or_lost)
{
        const struct freed_index *freed;
        struct run r;
        size_t n;

        one_change(&r);
        run_apply(&r);
        freed = freed_of_host(&r, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(freed[0].base, 0x0011);
        ck_assert_uint_eq(freed[0].index, 1);
        ck_assert(!freed[0].lost);
        run_done(&r);

        one_change(&r);
        r.f.tables[r.f.host[0]][1].v = 0;
        run_apply(&r);
        freed = freed_of_host(&r, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(freed[0].base, 0x0011);
        ck_assert(freed[0].lost);
        run_done(&r);
}
END_TEST

/* The host reboots, and does not answer the Set. */
static bool wipe_and_be_silent(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET))
                return false;
        memset(r->f.tables[r->fault_port], 0, sizeof(r->f.tables[0]));
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* The entry that the Set was to drop is freed; the others were lost, and belong where they were: as what another Set was to add,
 * which may have been there. */
START_TEST(test_lost_beside_a_set)
{
        const struct freed_index *freed;
        struct run r;
        size_t n;

        one_change(&r);
        r.fault = wipe_and_be_silent;
        run_apply(&r);
        freed = freed_of_host(&r, &n);
        ck_assert_uint_eq(n, 3);
        for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(freed[i].lost, freed[i].base != FAKE_BASE(1));
        run_done(&r);
}
END_TEST

/* After its entry was dropped the host carries out the Set that adds another one, says nothing of it, and reboots. Only when all
 * phases are through it answers again. */
static bool take_and_be_silent(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (fake_fabric_port_of(&r->f, request) != r->fault_port || apply_phase(r->apply) != PHASE_GRANT)
                return false;
        if (request->method == MAD_GET && r->n_faults == 0)
                return false;
        if (request->method == MAD_SET) {
                memset(r->f.tables[r->fault_port], 0, sizeof(r->f.tables[0]));
                r->n_faults++;
        }
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* Where the entry perhaps was is remembered, though the block is read back for the sake of the other write. */
START_TEST(test_lost_before_it_was_read_back)
{
        const struct freed_index *freed;
        bool found = false;
        struct run r;
        size_t n;

        one_change(&r);
        r.fault = take_and_be_silent;
        run_apply(&r);
        ck_assert_int_gt(r.n_faults, 0);
        freed = freed_of_host(&r, &n);
        for (size_t i = 0; i < n; i++)
                found = found || (freed[i].base == FAKE_BASE(2) && freed[i].lost && freed[i].index == 2);
        ck_assert(found);
        run_done(&r);
}
END_TEST

/* Entries behind the end of the table, as an SMA gives them: anything. */
static bool litter_the_end(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (fake_fabric_port_of(&r->f, request) != r->fault_port)
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        for (unsigned i = 20; i < P_KEY_BLOCK_ENTRIES; i++)
                ret->data[2 * i] = (uint8_t) ++r->n_faults;
        return true;
}

START_TEST(test_behind_the_end)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, false);
        r.capacity = 20;
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.fault_port = r.f.host[0];
        r.fault = litter_the_end;
        run_apply(&r);
        expect(&r, 1, 0, 0, 1);
        run_done(&r);
}
END_TEST

/* The ring of what is ready is used in its order, and round its end. */
START_TEST(test_each_port_once)
{
        enum membership to[FAKE_MAX_HOSTS][4];

        for (unsigned most = 1; most <= 8; most++) {
                struct run r;

                run_init(&r, 8, true);
                default_members(to);
                for (unsigned h = 0; h < 8; h++)
                        to[h][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                r.most = most;
                r.burst = most;
                run_apply(&r);
                expect(&r, r.plan->n_block_writes + r.plan->n_enforcement_writes, 0, 0,
                       r.plan->n_block_writes + r.plan->n_enforcement_writes);
                for (unsigned h = 0; h < 8; h++)
                        ck_assert_uint_eq(r.sets_by_port[r.f.host[h]], 1);
                run_done(&r);
        }
}
END_TEST

/* One host; its leaf port has these bits, and should have those of the settings. */
static void change_bits(struct run *r, bool in, bool out, enum settings_enforcement enforcement)
{
        enum membership to[FAKE_MAX_HOSTS][4];

        run_init(r, 1, true);
        r->f.enforce_inbound[r->f.leaf[0]] = in;
        r->f.enforce_outbound[r->f.leaf[0]] = out;
        r->enforcement = enforcement;
        default_members(to);
        run_plan(r, to, 1);
        r->fault_port = r->f.leaf[0];
}

/* One bit is cleared in a phase, the other is set in a later one: the result is that of the last one. */
START_TEST(test_bits_in_two_phases)
{
        struct run r;

        change_bits(&r, true, false, ENFORCEMENT_OUT);
        ck_assert_uint_eq(r.plan->n_enforcement_writes, 2);
        run_apply(&r);
        expect(&r, 2, 0, 0, 2);
        ck_assert(!r.f.enforce_inbound[r.f.leaf[0]] && r.f.enforce_outbound[r.f.leaf[0]]);
        ck_assert_uint_eq(r.f.gets, 3); /* before each write, and one read back */
        ck_assert(!r.o->tables[r.f.leaf[0]].enforce_inbound && r.o->tables[r.f.leaf[0]].enforce_outbound);
        run_done(&r);
}
END_TEST

/* The table of a switch port and its bits are two things to read back. */
START_TEST(test_bits_and_table)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, true);
        r.f.enforce_inbound[r.f.leaf[0]] = r.f.enforce_outbound[r.f.leaf[0]] = false;
        r.enforcement = ENFORCEMENT_BOTH;
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        run_apply(&r);
        expect(&r, 3, 0, 0, 3);
        ck_assert_uint_eq(r.f.gets, 6); /* before each write, and each read back */
        run_done(&r);
}
END_TEST

/* As a Set of a block: once and the retries, and no more. */
START_TEST(test_bits_never_arrive)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = lose_all_sets;
        run_apply(&r);
        expect(&r, 0, 1, 0, 3);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_SET_UNANSWERED);
        run_done(&r);
}
END_TEST

/* The bit was not cleared: later writes wait for it, and no other port is reported. */
START_TEST(test_bits_wait_for_the_first_phase)
{
        struct run r;

        change_bits(&r, true, false, ENFORCEMENT_OUT);
        r.fault = lose_all_sets;
        run_apply(&r);
        expect(&r, 0, 1, 1, 3);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 0)->reason, APPLY_SET_UNANSWERED);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_HELD);
        run_done(&r);
}
END_TEST

static bool lose_sets_of_tables(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        return request->attribute == SMP_ATTR_P_KEY_TABLE && lose_all_sets(r, request, ret);
}

/* A table that is not right yet holds up a filter that is turned on, not one that is turned off. */
START_TEST(test_bits_go_off_beside_a_failed_table)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, true);
        r.f.tables[r.f.leaf[0]][5].v = 0x8011;
        r.f.enforce_inbound[r.f.leaf[0]] = r.f.enforce_outbound[r.f.leaf[0]] = true;
        r.enforcement = ENFORCEMENT_OFF;
        default_members(to);
        run_plan(&r, to, 2);
        r.fault_port = r.f.leaf[0];
        r.fault = lose_sets_of_tables;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_CLOSE, 0)->state, APPLY_FAILED);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 0)->state, APPLY_WRITTEN);
        ck_assert(!r.f.enforce_inbound[r.f.leaf[0]] && !r.f.enforce_outbound[r.f.leaf[0]]);
        run_done(&r);
}
END_TEST

/* Host 1 cannot be told to leave partition 1; its leaf port keeps it from sending there (or from receiving). The table of host 0
 * was not read, and its leaf port is to filter in one direction only: it may be opened for what others do not send, not for what
 * they may. */
START_TEST(test_bits_of_each_direction)
{
        const bool sends = _i & 1, opens_inbound = _i & 2; /* host 1; the leaf port of host 0: what host 0 sends */
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        fake_fabric_put(&r.f, r.f.host[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        r.f.enforce_inbound[r.f.leaf[1]] = !sends;
        r.f.enforce_outbound[r.f.leaf[1]] = sends;
        r.enforcement = opens_inbound ? ENFORCEMENT_OUT : ENFORCEMENT_IN;
        default_members(to);
        run_plan(&r, to, 2);
        r.o->tables[r.f.host[0]].source = TABLE_ASSUMED;
        r.fault_port = r.f.host[1];
        r.fault = lose_all_sets;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->state, APPLY_FAILED);
        ck_assert_uint_eq(r.plan->steps[PHASE_RELAX].writes[0].port, r.f.leaf[0]);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 0)->state, sends == opens_inbound ? APPLY_WRITTEN : APPLY_HELD);
        run_done(&r);
}
END_TEST

/* While the bits are read, the table of the switch port becomes uncertain. */
static bool doubt_the_table(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        (void) ret;
        if (on_fault_port(r, request, MAD_GET) && request->attribute == SMP_ATTR_PORT_INFO)
                knowledge_doubt(r->wire.knowledge, knowledge_find_port(r->wire.knowledge, r->f.subnet, r->fault_port));
        return false;
}

/* It may cut its host off then: the filter waits, though it was admitted when its phase began. */
START_TEST(test_bits_wait_for_what_is_known_now)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        for (unsigned h = 0; h < 2; h++)
                r.f.enforce_inbound[r.f.leaf[h]] = r.f.enforce_outbound[r.f.leaf[h]] = false;
        r.enforcement = ENFORCEMENT_BOTH;
        default_members(to);
        run_plan(&r, to, 1);
        r.fault_port = r.f.leaf[0];
        r.fault = doubt_the_table;
        run_apply(&r);
        expect(&r, 1, 0, 1, 1);
        ck_assert_uint_eq(r.sets_by_port[r.f.leaf[0]], 0);
        run_done(&r);
}
END_TEST

/* A Set without an answer may have left an entry in the table of the host that nobody asked for, and that stays: it would be cut
 * off. */
START_TEST(test_bits_wait_for_what_may_be_there)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = { { 0xffff }, [3] = { _i ? 0x8123 : 0x7fff } };
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        begin_apply(&r);
        ck_assert_int_eq(knowledge_suspect_block(r.wire.knowledge,
                                                 knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.host[0]), 0, block), 0);
        run_phases(&r);
        expect(&r, _i ? 0 : 1, 0, _i ? 1 : 0, _i ? 0 : 1);
        run_done(&r);
}
END_TEST

static bool swap_bits(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (!on_fault_port(r, request, MAD_SET) || request->attribute != SMP_ATTR_PORT_INFO)
                return false;
        ret->outcome = MAD_ANSWERED;
        port_info_set_enforcement(ret->data, true, false); /* half of it */
        return true;
}

/* The switch answers that it has set one of them only. */
START_TEST(test_bits_mismatch)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = swap_bits;
        run_apply(&r);
        expect(&r, 0, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_MISMATCH);
        ck_assert(r.o->tables[r.f.leaf[0]].enforce_inbound && !r.o->tables[r.f.leaf[0]].enforce_outbound); /* as it answered */
        run_done(&r);
}
END_TEST

/* They match the plan neither before nor after: another program writes. */
START_TEST(test_bits_changed)
{
        static const bool now[][2] = { { true, false }, { false, true } };

        for (size_t i = 0; i < 2; i++) {
                struct run r;

                change_bits(&r, false, false, ENFORCEMENT_BOTH);
                r.f.enforce_inbound[r.f.leaf[0]] = now[i][0];
                r.f.enforce_outbound[r.f.leaf[0]] = now[i][1];
                run_apply(&r);
                expect(&r, 0, 1, 0, 0);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_CHANGED);
                ck_assert_uint_eq(r.f.asked_who, 2); /* before, and after what is news */
                run_done(&r);
        }
}
END_TEST

/* What is there decides: no second Set for one that arrived, and it was written, not there before. */
START_TEST(test_bits_set_answer_lost)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = lose_first_set_answer;
        run_apply(&r);
        expect(&r, 1, 0, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_WRITTEN);
        run_done(&r);
}
END_TEST

/* The first Set is lost, and then the port has another LID. */
static bool lose_first_set_and_move(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (lose_first_set(r, request, ret))
                return true;
        if (!on_fault_port(r, request, MAD_GET) || request->attribute != SMP_ATTR_PORT_INFO || r->n_faults == 0)
                return false;
        REQUIRE(fake_fabric_answer(&r->f, request, ret));
        mad_set_field(ret->data, 0, IB_PORT_LID_F, 77);
        return true;
}

/* What is set again is PortInfo as it was read last (the gate lets nothing else pass). */
START_TEST(test_bits_set_again)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = lose_first_set_and_move;
        run_apply(&r);
        expect(&r, 1, 0, 0, 2);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_WRITTEN);
        run_done(&r);
}
END_TEST

/* An unused entry of the host that holds 0x8000 is nothing that its switch port could cut off. */
START_TEST(test_bits_beside_an_unused_entry)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, true);
        r.f.tables[r.f.host[0]][5].v = 0x8000;
        r.f.enforce_inbound[r.f.leaf[0]] = r.f.enforce_outbound[r.f.leaf[0]] = false;
        r.enforcement = ENFORCEMENT_BOTH;
        default_members(to);
        run_plan(&r, to, 1);
        run_apply(&r);
        expect(&r, 1, 0, 0, 1);
        run_done(&r);
}
END_TEST

/* They are already as expected. */
START_TEST(test_bits_present)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.f.enforce_inbound[r.f.leaf[0]] = r.f.enforce_outbound[r.f.leaf[0]] = true;
        run_apply(&r);
        expect(&r, 1, 0, 0, 0);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_PRESENT);
        run_done(&r);
}
END_TEST

/* Bits in doubt are read, and then they are not. */
START_TEST(test_bits_in_doubt)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        _cleanup_findings_ struct findings findings;
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH };
        struct run r;

        change_bits(&r, true, true, ENFORCEMENT_BOTH);
        ck_assert_uint_eq(r.plan->n_enforcement_writes, 0);
        default_members(to);
        findings = (struct findings) { .arena = r.a };
        r.o->tables[r.f.leaf[0]].enforcement_doubted = true;
        ck_assert_int_eq(plan_compute(r.a, &r.d, r.o, NULL, &options, &findings, &r.plan), 0);
        ck_assert_uint_eq(r.plan->n_enforcement_writes, 1);
        run_apply(&r);
        ck_assert(!r.o->tables[r.f.leaf[0]].enforcement_doubted);
        expect(&r, 1, 0, 0, 0);
        run_done(&r);
}
END_TEST

/* They are set, and then the switch does not answer any more: they are in doubt until they are read again. */
START_TEST(test_unconfirmed_bits_are_doubted)
{
        const struct knowledge_record *leaf;
        const struct observed_table *t;
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = do_and_die;
        run_apply(&r);
        expect(&r, 0, 1, 0, 1);
        t = &r.o->tables[r.f.leaf[0]];
        ck_assert(t->enforcement_doubted);
        ck_assert_int_eq(t->source, TABLE_READ); /* the table is what it was */
        leaf = knowledge_get(r.wire.knowledge, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.leaf[0]));
        ck_assert(leaf->fresh);
        run_done(&r);
}
END_TEST

/* The Set was confirmed, and then the switch does not answer any more: its table is as it was read. */
START_TEST(test_bits_not_read_back)
{
        const struct knowledge_record *leaf;
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = die_confirmed;
        run_apply(&r);
        expect(&r, 0, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_TIMEOUT);
        ck_assert_int_eq(r.o->tables[r.f.leaf[0]].source, TABLE_READ);
        leaf = knowledge_get(r.wire.knowledge, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.leaf[0]));
        ck_assert(leaf->fresh && leaf->filters[SENDS] && leaf->filters[RECEIVES]);
        run_done(&r);
}
END_TEST

static bool bits_change_back(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        (void) ret;
        if (on_fault_port(r, request, MAD_SET))
                r->n_faults++;
        else if (r->n_faults > 0)
                r->f.enforce_outbound[r->fault_port] = false;
        return false;
}

static bool bits_change_back_unnamed(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return (!bits_change_back(r, request, ret) && r->n_faults > 0 && request->attribute == SMP_ATTR_NODE_INFO);
}

/* NodeInfo is not answered at the address where the bits changed back: both states are possible. */
START_TEST(test_bits_reverted_by_nobody)
{
        const struct knowledge_record *leaf;
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = bits_change_back_unnamed;
        run_apply(&r);
        expect(&r, 0, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_TIMEOUT);
        leaf = knowledge_get(r.wire.knowledge, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.leaf[0]));
        ck_assert(leaf->filters_unsure);
        run_done(&r);
}
END_TEST

START_TEST(test_bits_reverted)
{
        struct run r;

        change_bits(&r, false, false, ENFORCEMENT_BOTH);
        r.fault = bits_change_back;
        run_apply(&r);
        expect(&r, 0, 1, 0, 1);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_REVERTED);
        ck_assert(r.o->tables[r.f.leaf[0]].enforce_inbound && !r.o->tables[r.f.leaf[0]].enforce_outbound); /* as they were read */
        run_done(&r);
}
END_TEST

START_TEST(test_simulate_bits)
{
        static const enum settings_enforcement settings[] = { ENFORCEMENT_BOTH, ENFORCEMENT_IN, ENFORCEMENT_OUT };

        for (size_t i = 0; i < ELEMENTS(settings); i++) {
                const bool in = settings[i] != ENFORCEMENT_OUT, out = settings[i] != ENFORCEMENT_IN;
                const struct knowledge_record *leaf;
                const struct observed_table *t;
                struct run r;

                change_bits(&r, false, false, settings[i]);
                begin_apply(&r);
                ck_assert_int_eq(apply_simulate(r.apply), 0);
                leaf = knowledge_get(r.wire.knowledge, knowledge_find_port(r.wire.knowledge, r.f.subnet, r.f.leaf[0]));
                ck_assert(leaf->filters[SENDS] == in && leaf->filters[RECEIVES] == out);
                t = &r.o->tables[r.f.leaf[0]];
                ck_assert(t->enforce_inbound == in && t->enforce_outbound == out);
                ck_assert(!r.f.enforce_inbound[r.f.leaf[0]] && !r.f.enforce_outbound[r.f.leaf[0]]);
                run_done(&r);
        }
}
END_TEST

/* Host 0 was not read, and may be in the partition of host 1: a dry run does not turn the filter before it off either. */
START_TEST(test_simulate_bits_that_wait)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        fake_fabric_put(&r.f, r.f.host[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        fake_fabric_put(&r.f, r.f.leaf[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        r.enforcement = ENFORCEMENT_OFF;
        default_members(to);
        to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.o->tables[r.f.host[0]].source = TABLE_ASSUMED;
        begin_apply(&r);
        ck_assert_int_eq(apply_simulate(r.apply), 0);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 0)->state, APPLY_HELD);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 1)->state, APPLY_WRITTEN);
        run_done(&r);
}
END_TEST

/* An entry that is not in the plan; the entry for its index takes another one. */
static void put_unknown(struct run *r, uint32_t port, unsigned index, uint16_t key)
{
        r->f.tables[port][FAKE_CAPACITY - 2] = r->f.tables[port][index];
        r->f.tables[port][index].v = key;
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                r->o->tables[port].entries[i] = r->f.tables[port][i];
}

/* An entry of the host that the leaf port's table lacks holds the bits back, at whatever index. */
START_TEST(test_bits_wait_for_what_is_held)
{
        static const struct {
                uint16_t host, leaf; /* that the plan does not know of */
                bool assumed, waits;
        } cases[] = {
                { 0, 0, false, false },           { 0, 0, true, true },
                { 0x0012, 0, false, true },       { 0x8012, 0, false, true },
                { 0x8012, 0x0012, false, true },  { 0x0012, 0x0012, false, false },
                { 0x0012, 0x8012, false, false }, { 0x8012, 0x8012, false, false },
        };

        for (size_t i = 0; i < 3 * ELEMENTS(cases); i++) {
                const unsigned indexes[] = { 0, 9, FAKE_CAPACITY - 1 };
                struct run r;

                change_bits(&r, false, false, ENFORCEMENT_BOTH);
                put_unknown(&r, r.f.host[0], indexes[i % 3], cases[i / 3].host);
                put_unknown(&r, r.f.leaf[0], indexes[i % 3], cases[i / 3].leaf);
                if (cases[i / 3].assumed)
                        r.o->tables[r.f.host[0]].source = TABLE_ASSUMED;
                run_apply(&r);
                ck_assert_msg(r.f.enforce_inbound[r.f.leaf[0]] == !cases[i / 3].waits, "case %zu", i);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state,
                                 cases[i / 3].waits ? APPLY_HELD : APPLY_WRITTEN);
                run_done(&r);
        }
}
END_TEST

/* Nor do they change while a part of the leaf port's own table waits: host 1 cannot be made a full member, so host 0
 * stays one, and so does its leaf port. */
START_TEST(test_bits_wait_for_a_part_that_is_held)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        for (unsigned h = 0; h < 2; h++) {
                fake_fabric_put(&r.f, r.f.host[h], FAKE_BASE(1), h ? MEMBERSHIP_LIMITED : MEMBERSHIP_FULL);
                fake_fabric_put(&r.f, r.f.leaf[h], FAKE_BASE(1), MEMBERSHIP_FULL);
        }
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        fake_fabric_put(&r.f, r.f.leaf[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        r.f.enforce_outbound[r.f.leaf[0]] = false;
        r.enforcement = ENFORCEMENT_BOTH;
        default_members(to);
        to[0][1] = to[0][2] = MEMBERSHIP_LIMITED;
        to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 3);
        r.fault_port = r.f.host[1];
        r.fault = lose_all_sets;
        run_apply(&r);
        ck_assert(has_entry(&r, r.f.leaf[0], 0x8011) && has_entry(&r, r.f.leaf[0], 0x0012));
        ck_assert(apply_outcome(r.apply, PHASE_LOWER_ENFORCING, 0)->partly_held);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_HELD);
        ck_assert(!r.f.enforce_outbound[r.f.leaf[0]]);
        run_done(&r);
}
END_TEST

/* Host 1 refuses to be lowered, and the leaf port of host 0 does not answer when its turn is. */
static bool lose_host_1_and_leaf_0(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&r->f, request);

        if (apply_phase(r->apply) == PHASE_LOWER_ENDPORTS) {
                *ret = (struct mad_result) { .outcome = MAD_REFUSED, .mad_status = 0x1c };
                return port == r->f.host[1] && request->method == MAD_SET;
        }
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return apply_phase(r->apply) == PHASE_LOWER_ENFORCING && port == r->f.leaf[0] &&
               request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* ... and while all of it waits, though it was admitted when its phase began. */
START_TEST(test_bits_wait_for_a_table_that_waits_now)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        for (unsigned h = 0; h < 2; h++) {
                fake_fabric_put(&r.f, r.f.host[h], FAKE_BASE(1), MEMBERSHIP_FULL);
                fake_fabric_put(&r.f, r.f.leaf[h], FAKE_BASE(1), MEMBERSHIP_FULL);
        }
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        fake_fabric_put(&r.f, r.f.leaf[0], FAKE_BASE(2), MEMBERSHIP_FULL);
        r.f.enforce_outbound[r.f.leaf[1]] = false;
        r.enforcement = ENFORCEMENT_BOTH;
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        to[0][2] = to[1][1] = MEMBERSHIP_LIMITED;
        run_plan(&r, to, 3);
        r.most = 1;
        r.fault = lose_host_1_and_leaf_0;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_LOWER_ENDPORTS, 1)->reason, APPLY_STATUS);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_LOWER_ENFORCING, 0)->reason, APPLY_TIMEOUT);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_LOWER_ENFORCING, 1)->state, APPLY_HELD);
        ck_assert(!apply_outcome(r.apply, PHASE_LOWER_ENFORCING, 1)->partly_held);
        ck_assert(has_entry(&r, r.f.leaf[1], 0x8011));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_HELD);
        ck_assert(!r.f.enforce_outbound[r.f.leaf[1]]);
        run_done(&r);
}
END_TEST

/* Each of two hosts is to be a limited member of a partition in which the other one stays a full one. While they are
 * lowered, host 0 is heard of no more: what it has is not certain, so host 1 is not lowered. */
START_TEST(test_a_phase_goes_on_by_what_is_known_now)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;
        uint32_t n;

        run_init(&r, 2, false);
        for (unsigned h = 0; h < 2; h++)
                for (unsigned p = 1; p < 3; p++)
                        fake_fabric_put(&r.f, r.f.host[h], FAKE_BASE(p), MEMBERSHIP_FULL);
        default_members(to);
        to[0][1] = to[1][2] = MEMBERSHIP_LIMITED;
        to[0][2] = to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 3);
        r.most = 1;
        r.fault_port = r.f.host[0];
        r.fault = dead_port;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_LOWER_ENDPORTS, 0)->state, APPLY_FAILED);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_LOWER_ENDPORTS, 1)->state, APPLY_HELD);
        ck_assert_uint_eq(r.f.sets, 0);
        ck_assert_uint_eq(apply_held_bases(r.apply, &n)[0], FAKE_BASE(2));
        ck_assert_uint_eq(n, 1);
        run_done(&r);
}
END_TEST

/* Nobody joins while one that does not answer may still be in the partition. What it may not join, a leaf port may let through. */
START_TEST(test_a_grant_waits_for_a_revoke)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        fake_fabric_put(&r.f, r.f.host[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        fake_fabric_put(&r.f, r.f.leaf[1], FAKE_BASE(1), MEMBERSHIP_FULL);
        for (unsigned i = 0; i < 2; i++)
                r.f.enforce_inbound[r.f.leaf[i]] = r.f.enforce_outbound[r.f.leaf[i]] = false;
        default_members(to);
        to[0][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.fault_port = r.f.host[1]; /* which cannot be revoked */
        r.fault = lose_all_sets;
        run_apply(&r);
        ck_assert(has_entry(&r, r.f.leaf[0], 0x8011) && !has_entry(&r, r.f.host[0], 0x8011));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->state, APPLY_HELD);
        run_done(&r);
}
END_TEST

static void expect_uncertain(const struct run *r, unsigned host, unsigned partition)
{
        struct bounds b = level_of(r, r->f.host[host], partition);

        ck_assert_uint_eq(b.has, LEVEL_NONE);
        ck_assert_uint_eq(b.may, LEVEL_FULL);
}

/* Each base that the Set touched is uncertain. */
START_TEST(test_every_base_is_uncertain)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, false);
        default_members(to);
        to[0][1] = MEMBERSHIP_BOTH;
        to[0][2] = MEMBERSHIP_FULL;
        run_plan(&r, to, 3);
        r.fault_port = r.f.host[0];
        r.fault = do_and_die;
        run_apply(&r);
        expect_uncertain(&r, 0, 1);
        expect_uncertain(&r, 0, 2);
        run_done(&r);
}
END_TEST

/* No Set is answered, and nothing is answered after both blocks of the host were set. */
static bool die_after_both_blocks(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (request->method == MAD_SET)
                r->n_faults |= 1u << (request->modifier & 0xffff);
        return request->method == MAD_SET || r->n_faults == 3;
}

/* Two Sets to one port, of two blocks: what the second touched does not make the first certain. */
START_TEST(test_both_blocks_are_uncertain)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, false);
        r.f.tables[r.f.host[0]][5].v = 0x8011;
        r.f.tables[r.f.host[0]][40].v = 0x8012;
        default_members(to);
        run_plan(&r, to, 1);
        r.fault = die_after_both_blocks;
        run_apply(&r);
        ck_assert_int_eq(r.o->tables[r.f.host[0]].source, TABLE_ASSUMED);
        expect_uncertain(&r, 0, 1);
        expect_uncertain(&r, 0, 2);
        run_done(&r);
}
END_TEST

/* An entry in the second block is changed there, and the first is not touched. */
START_TEST(test_second_block)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 1, false);
        default_members(to);
        r.f.tables[r.f.host[0]][8].v = 0x0012;
        r.f.tables[r.f.host[0]][40].v = 0x8011;
        to[0][2] = MEMBERSHIP_LIMITED;
        run_plan(&r, to, 3);
        run_apply(&r);
        expect(&r, 1, 0, 0, 1);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][40].v, 0);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][8].v, 0x0012);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][0].v, 0xffff);
        run_done(&r);
}
END_TEST

static bool lose_sets_of_block_1(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        (void) r;
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return request->method == MAD_SET && (request->modifier & 0xffff) == 1;
}

/* What stands at index 0 got no other place, so index 0 stays as it is. The old place of the default partition in the
 * same block must stay, too, though its base is not held back. */
static void repair_half(unsigned last_used)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const uint16_t *held;
        struct p_key *table;
        uint32_t n_held;
        struct run r;

        run_init(&r, 1, false);
        default_members(to);
        to[0][1] = to[0][2] = MEMBERSHIP_FULL;
        table = r.f.tables[r.f.host[0]];
        table[0].v = 0x8011;
        table[5].v = 0xffff;
        table[last_used].v = 0x8012;
        r.repair_index0 = true;
        run_plan(&r, to, 3);
        ck_assert_uint_eq(r.plan->steps[PHASE_REPAIR_ADD].writes[0].block, 1);
        ck_assert_uint_eq(r.plan->steps[PHASE_REPAIR_SWAP].writes[0].block, 0);
        r.fault = lose_sets_of_block_1;
        run_apply(&r);
        expect(&r, 0, 1, 1, 3);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REPAIR_SWAP, 0)->state, APPLY_HELD);
        ck_assert(table[0].v == 0x8011 && table[5].v == 0xffff && table[last_used + 1].v == 0);
        held = apply_held_bases(r.apply, &n_held);
        ck_assert_uint_eq(n_held, 2); /* the entry at index 0, and the one that waits for its place */
        ck_assert(held[0] == FAKE_BASE(1) && held[1] == P_KEY_DEFAULT_BASE);
        r.fault = NULL;
        run_plan(&r, to, 3);
        run_apply(&r);
        expect(&r, 2, 0, 0, 2);
        ck_assert(table[0].v == 0xffff && table[5].v == 0 && table[last_used + 1].v == 0x8011);
        run_done(&r);
}

START_TEST(test_repair_all_or_nothing)
{
        repair_half(40);
        repair_half(62); /* the new place is the last one of the block */
}
END_TEST

/* The old place of the default partition is not what the plan thought: nothing of the repair is done, and all that was to be moved
 * is named. */
START_TEST(test_repair_names_all_that_waits)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const uint16_t *held;
        struct p_key *table;
        uint32_t n_held;
        struct run r;

        run_init(&r, 1, false);
        default_members(to);
        table = r.f.tables[r.f.host[0]];
        table[0].v = 0x8011;
        table[5].v = 0xffff;
        r.repair_index0 = true;
        run_plan(&r, to, 2);
        r.o->tables[r.f.host[0]].entries[5].v = table[5].v = 0x7fff;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REPAIR_SWAP, 0)->state, APPLY_HELD);
        ck_assert(table[0].v == 0x8011 && table[5].v == 0x7fff);
        held = apply_held_bases(r.apply, &n_held);
        ck_assert_uint_eq(n_held, 2);
        ck_assert(held[0] == FAKE_BASE(1) && held[1] == P_KEY_DEFAULT_BASE);
        run_done(&r);
}
END_TEST

/* A limited entry that is there twice: the second was to go before the first is raised, and did not, or is no more what the plan
 * thought. */
START_TEST(test_raise_waits_for_what_was_to_go)
{
        enum membership to[FAKE_MAX_HOSTS][4];

        for (unsigned changed = 0; changed < 2; changed++) {
                struct p_key *table;
                struct run r;

                run_init(&r, 1, false);
                table = r.f.tables[r.f.host[0]];
                table[5].v = table[40].v = 0x0011;
                default_members(to);
                to[0][1] = MEMBERSHIP_FULL;
                run_plan(&r, to, 2);
                if (changed)
                        r.o->tables[r.f.host[0]].entries[40].v = table[40].v = 0x0012;
                r.fault = lose_sets_of_block_1;
                run_apply(&r);
                expect(&r, 0, !changed, 1 + changed, changed ? 0 : 3);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->state, changed ? APPLY_HELD : APPLY_FAILED);
                ck_assert_int_eq(apply_outcome(r.apply, PHASE_RAISE, 0)->state, APPLY_HELD);
                ck_assert_uint_eq(table[5].v, 0x0011);
                run_done(&r);
        }
}
END_TEST

/* Two entries that are there twice: one second entry went as it was to, the other did not. */
START_TEST(test_raise_waits_for_its_own_only)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct p_key *table;
        struct run r;

        run_init(&r, 1, false);
        table = r.f.tables[r.f.host[0]];
        table[5].v = table[7].v = 0x0011;
        table[6].v = table[40].v = 0x0012;
        default_members(to);
        to[0][1] = to[0][2] = MEMBERSHIP_FULL;
        run_plan(&r, to, 3);
        r.fault = lose_sets_of_block_1;
        run_apply(&r);
        ck_assert(table[7].v == 0 && table[40].v == 0x0012);
        ck_assert_uint_eq(table[5].v, 0x8011);
        ck_assert_uint_eq(table[6].v, 0x0012);
        run_done(&r);
}
END_TEST

static void expect_held_base(const struct run *r, uint16_t base)
{
        const uint16_t *held;
        uint32_t n;

        held = apply_held_bases(r->apply, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(held[0], base);
}

/* The base that was to go is named, also where nothing comes in its place: its entry is no more what the plan thought, or waits for
 * what should have been done to it before. */
START_TEST(test_what_was_to_go_is_named)
{
        static const uint16_t bases[] = { 1, FAKE_BASE(1), 0x7000 };
        enum membership to[FAKE_MAX_HOSTS][4];
        const struct held *const *list;
        struct run r;
        size_t n;

        default_members(to);
        for (size_t i = 0; i < ELEMENTS(bases); i++) {
                run_init(&r, 1, false);
                r.f.tables[r.f.host[0]][5] = p_key_make(bases[i], true);
                run_plan(&r, to, 2);
                r.o->tables[r.f.host[0]].entries[5] = r.f.tables[r.f.host[0]][5] = p_key_make(bases[i], false);
                run_apply(&r);
                expect(&r, 0, 0, 1, 0);
                expect_held_base(&r, bases[i]);
                run_done(&r);
        }
        run_init(&r, 1, false);
        r.f.tables[r.f.host[0]][0].v = 0x8011;
        r.f.tables[r.f.host[0]][5].v = 0xffff;
        r.f.tables[r.f.host[0]][40].v = 0x0011;
        r.repair_index0 = true;
        run_plan(&r, to, 2);
        r.fault = lose_all_sets;
        r.fault_port = r.f.host[0];
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REPAIR_SWAP, 0)->state, APPLY_FAILED);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->state, APPLY_HELD);
        ck_assert_uint_eq(r.f.tables[r.f.host[0]][40].v, 0x0011);
        expect_held_base(&r, FAKE_BASE(1));
        list = collect_held(&r, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(list[0]->base, FAKE_BASE(1));
        ck_assert_int_eq(list[0]->by[0].reason, HELD_EARLIER);
        run_done(&r);
}
END_TEST

/* A block that was written in two phases is read back once. */
START_TEST(test_read_back_once)
{
        struct run r;

        one_change(&r);
        run_apply(&r);
        expect(&r, 2, 0, 0, 2);
        ck_assert_uint_eq(r.f.gets, 3);
        run_done(&r);
}
END_TEST

static bool lie_about_the_second(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        return on_fault_port(r, request, MAD_SET) && r->n_faults++ > 0 && lie(r, request, ret);
}

/* So is that of each of several ports; if it is not as it was written, the last of the two writes failed. */
START_TEST(test_last_write_is_read_back)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 3, false);
        default_members(to);
        for (unsigned h = 0; h < 3; h++) {
                fake_fabric_put(&r.f, r.f.host[h], FAKE_BASE(1), MEMBERSHIP_FULL);
                to[h][2] = MEMBERSHIP_FULL;
        }
        run_plan(&r, to, 3);
        r.fault_port = r.f.host[1];
        r.fault = lie_about_the_second;
        run_apply(&r);
        expect(&r, 5, 1, 0, 6);
        ck_assert_uint_eq(r.f.gets, 10); /* that one is looked at again */
        for (uint32_t i = 0; i < 3; i++) {
                const struct apply_outcome *granted = apply_outcome(r.apply, PHASE_GRANT, i);
                bool lied = r.plan->steps[PHASE_GRANT].writes[i].port == r.f.host[1];

                ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, i)->state, APPLY_WRITTEN);
                ck_assert_int_eq(granted->state, lied ? APPLY_FAILED : APPLY_WRITTEN);
                ck_assert_int_eq(granted->reason, lied ? APPLY_REVERTED : APPLY_OK);
        }
        run_done(&r);
}
END_TEST

/* The Set of this phase arrives, and then nothing is heard of the port until the phase is over. */
static bool unheard_in_phase(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        const enum plan_phase *phase = r->userdata;

        if (apply_phase(r->apply) != *phase || fake_fabric_port_of(&r->f, request) != r->fault_port ||
            (r->n_faults == 0 && request->method != MAD_SET))
                return false;
        if (r->n_faults++ == 0)
                (void) fake_fabric_answer(&r->f, request, ret);
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* The block read back is the last write of pkeyd: no other program wrote it, and the earlier write counts as done. */
START_TEST(test_unconfirmed_write_is_read_back)
{
        const enum plan_phase phase = PHASE_GRANT;
        struct run r;

        one_change(&r);
        r.fault = unheard_in_phase;
        r.userdata = &phase;
        run_apply(&r);
        ck_assert(has_entry(&r, r.f.host[0], 0x8012) && !has_entry(&r, r.f.host[0], 0x8011));
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->state, APPLY_WRITTEN);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_TIMEOUT);
        ck_assert_mem_eq(r.o->tables[r.f.host[0]].entries, r.f.tables[r.f.host[0]], sizeof(r.f.tables[0]));
        run_done(&r);
}
END_TEST

/* The same with the bits of a switch port. */
START_TEST(test_unconfirmed_bits_are_read_back)
{
        const enum plan_phase phase = PHASE_ENFORCE;
        struct run r;

        change_bits(&r, true, false, ENFORCEMENT_OUT);
        r.fault = unheard_in_phase;
        r.userdata = &phase;
        run_apply(&r);
        ck_assert(!r.f.enforce_inbound[r.f.leaf[0]] && r.f.enforce_outbound[r.f.leaf[0]]);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_RELAX, 0)->state, APPLY_WRITTEN);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->reason, APPLY_TIMEOUT);
        ck_assert(r.o->tables[r.f.leaf[0]].enforce_outbound);
        run_done(&r);
}
END_TEST

START_TEST(test_assumed_table_is_not_tried)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct apply_outcome o;
        struct run r;

        run_init(&r, 2, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        r.o->tables[r.f.host[0]].source = TABLE_ASSUMED;
        r.o->tables[r.f.host[0]].failure = MAD_TIMED_OUT;
        run_apply(&r);
        expect(&r, 0, 1, 1, 0);
        o = *apply_outcome(r.apply, PHASE_REVOKE, 0);
        ck_assert_int_eq(o.reason, APPLY_TIMEOUT);
        ck_assert(!has_entry(&r, r.f.host[1], 0x8011));
        /* the status of a refused read is the reason */
        r.o->tables[r.f.host[0]].failure = MAD_REFUSED;
        r.o->tables[r.f.host[0]].mad_status = 0x1c;
        run_apply(&r);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->reason, APPLY_STATUS);
        ck_assert_uint_eq(apply_outcome(r.apply, PHASE_REVOKE, 0)->mad_status, 0x1c);
        run_done(&r);
}
END_TEST

static bool abort_on_first(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        (void) request;
        (void) ret;
        if (r->n_faults++ == 0)
                apply_abort(r->apply);
        return false;
}

START_TEST(test_abort)
{
        struct run r;

        two_grants(&r);
        r.fault = abort_on_first;
        run_apply(&r);
        expect(&r, 0, 2, 0, 0);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_GRANT, 0)->reason, APPLY_ABORTED);
        run_done(&r);
}
END_TEST

static bool abort_on_first_set(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        (void) ret;
        if (request->method == MAD_SET && r->n_faults++ == 0)
                apply_abort(r->apply);
        return false;
}

/* The write in flight is awaited and read back. */
START_TEST(test_abort_awaits_what_is_in_flight)
{
        struct apply_summary s;
        struct run r;

        two_grants(&r);
        r.fault = abort_on_first_set;
        run_apply(&r);
        apply_get_summary(r.apply, &s);
        ck_assert_uint_ge(s.written, 1);
        ck_assert_uint_eq(s.written, r.f.sets);
        ck_assert_uint_eq(s.written + s.failed, 2);
        run_done(&r);
}
END_TEST

/* The first Set gets no answer and the run is ended: it is not sent a second time. */
static bool abort_and_lose_sets(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (request->method != MAD_SET)
                return false;
        if (r->n_faults++ == 0)
                apply_abort(r->apply);
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

START_TEST(test_abort_sets_nothing_again)
{
        unsigned n_unanswered = 0;
        struct run r;

        two_grants(&r);
        r.fault = abort_and_lose_sets;
        run_apply(&r);
        expect(&r, 0, 2, 0, r.n_faults);
        ck_assert_uint_le(r.n_faults, 2); /* one for each port that was begun already */
        for (uint32_t i = 0; i < 2; i++)
                n_unanswered += apply_outcome(r.apply, PHASE_GRANT, i)->reason == APPLY_SET_UNANSWERED;
        ck_assert_uint_eq(n_unanswered, r.n_faults);
        run_done(&r);
}
END_TEST

static bool abort_and_lose_answers(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        if (request->method != MAD_SET)
                return false;
        if (r->n_faults++ == 0)
                apply_abort(r->apply);
        (void) fake_fabric_answer(&r->f, request, ret);
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        return true;
}

/* Each Set was carried out, and only its answer was lost: that is read before the run ends. */
START_TEST(test_abort_reads_what_was_set)
{
        struct run r;

        two_grants(&r);
        r.fault = abort_and_lose_answers;
        run_apply(&r);
        ck_assert_uint_ge(r.n_faults, 1);
        expect(&r, r.n_faults, 2 - r.n_faults, 0, r.n_faults);
        for (unsigned h = 0; h < 2; h++) {
                const struct observed_table *t = &r.o->tables[r.f.host[h]];

                ck_assert_int_eq(t->source, TABLE_READ);
                ck_assert_mem_eq(t->entries, r.f.tables[r.f.host[h]], sizeof(r.f.tables[0]));
        }
        run_done(&r);
}
END_TEST

START_TEST(test_enforcement_waits_for_its_table)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct run r;

        run_init(&r, 2, true);
        r.f.enforce_inbound[r.f.leaf[0]] = r.f.enforce_outbound[r.f.leaf[0]] = false;
        r.f.enforce_inbound[r.f.leaf[1]] = false;
        default_members(to);
        to[0][1] = to[1][1] = MEMBERSHIP_FULL;
        run_plan(&r, to, 2);
        ck_assert_uint_eq(r.plan->steps[PHASE_ENFORCE].n_writes, 2);
        r.fault_port = r.f.leaf[0];
        r.fault = refuse_set;
        run_apply(&r);
        ck_assert(!r.f.enforce_inbound[r.f.leaf[0]]);
        ck_assert(r.f.enforce_inbound[r.f.leaf[1]] && r.f.enforce_outbound[r.f.leaf[1]]);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 0)->state, APPLY_HELD);
        ck_assert_int_eq(apply_outcome(r.apply, PHASE_ENFORCE, 1)->state, APPLY_WRITTEN);
        ck_assert(has_entry(&r, r.f.host[0], 0x8011));
        run_done(&r);
}
END_TEST

START_TEST(test_index_memory_is_told)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        const struct freed_index *freed;
        struct run r;
        size_t n;

        run_init(&r, 1, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        default_members(to);
        run_plan(&r, to, 2);
        r.memory = index_memory_new();
        run_apply(&r);
        freed = index_memory_all(r.memory, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(freed[0].index, 1);
        ck_assert_uint_eq(freed[0].base, 0x11);
        run_done(&r);
}
END_TEST

/* --- no memory ------------------------------------------------------------------------------------------------------- */

/* Each array of an apply, one at a time. */
START_TEST(test_no_memory)
{
        struct apply_options options = {};
        unsigned n = 0;
        struct run r;

        two_grants(&r);
        fake_wire_init(&r.wire, r.o, &r.d, &r.f.policy);
        options.knowledge = r.wire.knowledge;
        do {
                _cleanup_arena_ struct arena *a = arena_new();
                int result;

                fail_alloc_at(++n);
                fail_alloc_enter();
                result = apply_new(a, r.plan, r.o, NULL, &options, &r.apply);
                fail_alloc_leave();
                REQUIRE(result == (fail_alloc_happened() ? -ENOMEM : 0));
        } while (fail_alloc_happened());
        ck_assert_uint_gt(n, PLAN_N_PHASES);
        run_done(&r);
}
END_TEST

/* Two blocks that are read back are not as they were written, and there is no room for what the second may hold: then nothing is
 * certain of this table until it is read. */
START_TEST(test_no_memory_for_what_differs)
{
        enum membership to[FAKE_MAX_HOSTS][4];
        struct mad_stage stage;
        uint64_t steps = 0;
        struct run r;

        run_init(&r, 1, false);
        fake_fabric_put(&r.f, r.f.host[0], FAKE_BASE(1), MEMBERSHIP_FULL);
        r.f.tables[r.f.host[0]][P_KEY_BLOCK_ENTRIES - 1].v = 0x8013;
        default_members(to);
        to[0][2] = to[0][3] = MEMBERSHIP_FULL;
        run_plan(&r, to, 4);
        begin_apply(&r);
        stage = apply_stage(r.apply);
        while (apply_prepare(r.apply) > 0 && apply_phase(r.apply) < PLAN_N_PHASES) {
                knowledge_stored(r.wire.knowledge);
                gate_open(r.wire.gate, r.wire.knowledge, &r.f.policy);
                run_phase(&r, &stage, &steps);
        }
        ck_assert_uint_eq(level_of(&r, r.f.host[0], 2).has, LEVEL_FULL);
        for (unsigned i = 0; i < 2; i++) {
                struct mad_request request;
                struct mad_result result;

                ck_assert(stage.next(stage.state, 0, &request));
                ck_assert(fake_fabric_answer(&r.f, &request, &result));
                change_block(&result);
                fail_alloc_at(i == 1 ? 1 : 1000);
                fail_alloc_enter();
                fake_wire_end(&r.wire, &request, &result);
                fail_alloc_leave();
                ck_assert_int_eq(fail_alloc_happened(), i == 1);
                stage.result(stage.state, 0, &result);
                ck_assert_uint_eq(level_of(&r, r.f.host[0], 2).has, i == 1 ? LEVEL_NONE : LEVEL_FULL);
        }
        run_done(&r);
}
END_TEST

/* --- the promises under failure -------------------------------------------------------------------------------------- */

struct goal {
        bool from[2][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS], to[2][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];
};

static void relate(const struct fake_fabric *f, bool strict, bool may[FAKE_MAX_HOSTS][FAKE_MAX_HOSTS])
{
        unsigned x, y;
        int l, k;

        for (x = 0; x < f->n_hosts; x++)
                for (y = x + 1; y < f->n_hosts; y++) {
                        l = fake_fabric_level(f, x, FAKE_BASE(1), strict);
                        k = fake_fabric_level(f, y, FAKE_BASE(1), strict);
                        may[x][y] = l && k && (l == 2 || k == 2);
                }
}

static void watch_promises(struct run *r)
{
        const struct goal *g = r->userdata;
        bool now[FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];
        unsigned x, y, strict;

        for (strict = 0; strict < 2; strict++) {
                relate(&r->f, strict, now);
                for (x = 0; x < r->f.n_hosts; x++)
                        for (y = x + 1; y < r->f.n_hosts; y++) {
                                if (g->from[strict][x][y] != g->to[strict][x][y])
                                        continue;
                                if (now[x][y] != g->from[strict][x][y])
                                        ck_abort_msg("%s broken", now[x][y] ? "isolation" : "continuity");
                        }
        }
}

/* The n-th Set to be sent is lost for good, in one of three ways. */
enum loss {
        LOST_BEFORE,  /* never arrives */
        LOST_AFTER,   /* arrives; no answer, now or to later reads */
        REFUSED,
        N_LOSSES,
};

struct nth {
        struct goal goal;
        unsigned which, count;
        enum loss loss;
        uint32_t port;
        bool struck;
};

static bool strike_nth(struct run *r, const struct mad_request *request, struct mad_result *ret)
{
        struct nth *n = (struct nth *) r->userdata;
        uint32_t port = fake_fabric_port_of(&r->f, request);

        if (!n->struck && request->method == MAD_SET && n->count++ == n->which) {
                n->struck = true;
                n->port = port;
                if (n->loss == LOST_AFTER)
                        (void) fake_fabric_answer(&r->f, request, ret);
        }
        if (!n->struck || port != n->port)
                return false;
        *ret = (struct mad_result) { .outcome = n->loss == REFUSED ? MAD_REFUSED : MAD_TIMED_OUT, .mad_status = 0x1c };
        return request->method == MAD_SET || n->loss != REFUSED;
}

static void put_members(struct fake_fabric *f, const unsigned level[3])
{
        unsigned h;

        for (h = 0; h < 3; h++) {
                fake_fabric_put(f, f->host[h], FAKE_BASE(1), level[h]);
                fake_fabric_put(f, f->leaf[h], FAKE_BASE(1), level[h] == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : level[h]);
        }
}

/* Returns how many Sets there were. */
static unsigned run_with_loss(const struct run *empty, const unsigned from[3], const unsigned to[3], unsigned which,
                              enum loss loss)
{
        enum membership m[FAKE_MAX_HOSTS][4];
        struct run r = *empty;
        struct fake_fabric target = empty->f;
        struct nth nth = { .which = which, .loss = loss };
        unsigned h, strict, count;

        r.a = arena_new();
        r.seed = which * 7 + 1;
        put_members(&r.f, from);
        put_members(&target, to);
        for (strict = 0; strict < 2; strict++) {
                relate(&r.f, strict, nth.goal.from[strict]);
                relate(&target, strict, nth.goal.to[strict]);
        }
        default_members(m);
        for (h = 0; h < 3; h++)
                m[h][1] = to[h];
        run_plan(&r, m, 2);
        r.fault = strike_nth;
        r.watch = watch_promises;
        r.userdata = &nth;
        run_apply(&r);
        count = nth.count;
        run_done(&r);
        return count;
}

START_TEST(test_every_single_failure)
{
        unsigned code[3], from[3], to[3], h, which, n;
        struct run empty;
        enum loss loss;

        run_init(&empty, 3, true);
        for (code[0] = (unsigned) _i; code[0] < 16; code[0] += 4)
                for (code[1] = code[0]; code[1] < 16; code[1]++)
                        for (code[2] = code[1]; code[2] < 16; code[2]++) {
                                for (h = 0; h < 3; h++) {
                                        from[h] = code[h] / 4;
                                        to[h] = code[h] % 4;
                                }
                                n = run_with_loss(&empty, from, to, UINT32_MAX, LOST_BEFORE);
                                for (which = 0; which < n; which++)
                                        for (loss = 0; loss < N_LOSSES; loss++)
                                                (void) run_with_loss(&empty, from, to, which, loss);
                        }
        run_done(&empty);
}
END_TEST

static Suite *apply_suite(void)
{
        Suite *s = suite_create("apply");
        TCase *t = tcase_create("answers");

        tcase_add_test(t, test_progress);
        tcase_add_test(t, test_clean);
        tcase_add_test(t, test_set_answer_lost);
        tcase_add_test(t, test_set_lost);
        tcase_add_test(t, test_set_never_arrives);
        tcase_add_test(t, test_unplugged);
        tcase_add_test(t, test_m_key_counted);
        tcase_add_test(t, test_m_key_counter_is_cleared);
        tcase_add_test(t, test_m_key_of_a_switch);
        tcase_add_test(t, test_m_key_not_counted);
        tcase_add_test(t, test_m_keys);
        tcase_add_test(t, test_set_refused);
        tcase_add_test(t, test_who_ends_without_answer);
        tcase_add_test(t, test_reasons_have_names);
        tcase_add_test(t, test_refused_is_looked_at);
        tcase_add_test(t, test_unconfirmed_is_uncertain);
        tcase_add_test(t, test_nobody_joins_what_another_may_hold);
        tcase_add_test(t, test_unread_waits_for_another);
        tcase_add_test(t, test_unread_behind_a_filter);
        tcase_add_test(t, test_stranger);
        tcase_add_test(t, test_stranger_of_the_same_node);
        tcase_add_test(t, test_stranger_for_another_task);
        tcase_add_test(t, test_stranger_while_a_block_is_read);
        tcase_add_test(t, test_late_read);
        tcase_add_test(t, test_read_again_after_a_late_read);
        tcase_add_test(t, test_news);
        tcase_add_test(t, test_news_when_ended_early);
        tcase_add_test(t, test_stranger_after_a_lost_set);
        tcase_add_test(t, test_set_behind_a_late_answer);
        tcase_add_test(t, test_late_at_the_end);
        tcase_add_test(t, test_stranger_at_the_end);
        tcase_add_test(t, test_stranger_and_another_look);
        tcase_add_test(t, test_nobody_says_who_at_the_end);
        tcase_add_test(t, test_one_says_who_at_the_end);
        tcase_add_test(t, test_stranger_in_a_later_phase);
        tcase_add_test(t, test_asks_who_is_there_once);
        tcase_add_test(t, test_looks_again_at_what_differs);
        tcase_add_test(t, test_freed_index_is_noted_at_once);
        tcase_add_test(t, test_read_before_write_unanswered);
        tcase_add_test(t, test_read_before_write_refused);
        tcase_add_test(t, test_changed_behind_our_back);
        tcase_add_test(t, test_there_already);
        tcase_add_test(t, test_mismatch);
        tcase_add_test(t, test_reverted);
        tcase_add_test(t, test_not_read_back);
        tcase_add_test(t, test_not_read_back_with_a_status);
        tcase_add_test(t, test_hold_back);
        tcase_add_test(t, test_what_is_not_in_the_way);
        tcase_add_test(t, test_hold_back_at_any_index);
        tcase_add_test(t, test_hold_back_the_last_entry);
        tcase_add_test(t, test_hold_back_the_default_partition);
        tcase_add_test(t, test_what_is_in_the_way_stays);
        tcase_add_test(t, test_simulate);
        tcase_add_test(t, test_simulate_bits);
        tcase_add_test(t, test_simulate_bits_that_wait);
        tcase_add_test(t, test_the_same_phase_goes_on);
        tcase_add_test(t, test_freed_or_lost);
        tcase_add_test(t, test_lost_beside_a_set);
        tcase_add_test(t, test_lost_before_it_was_read_back);
        tcase_add_test(t, test_behind_the_end);
        tcase_add_test(t, test_each_port_once);
        tcase_add_test(t, test_bits_in_two_phases);
        tcase_add_test(t, test_bits_wait_for_the_first_phase);
        tcase_add_test(t, test_bits_never_arrive);
        tcase_add_test(t, test_bits_and_table);
        tcase_add_loop_test(t, test_bits_wait_for_what_may_be_there, 0, 2);
        tcase_add_test(t, test_bits_mismatch);
        tcase_add_test(t, test_bits_changed);
        tcase_add_test(t, test_bits_go_off_beside_a_failed_table);
        tcase_add_loop_test(t, test_bits_of_each_direction, 0, 4);
        tcase_add_test(t, test_bits_wait_for_what_is_known_now);
        tcase_add_test(t, test_bits_set_answer_lost);
        tcase_add_test(t, test_bits_set_again);
        tcase_add_test(t, test_bits_beside_an_unused_entry);
        tcase_add_test(t, test_bits_present);
        tcase_add_test(t, test_bits_in_doubt);
        tcase_add_test(t, test_unconfirmed_bits_are_doubted);
        tcase_add_test(t, test_bits_reverted);
        tcase_add_test(t, test_bits_not_read_back);
        tcase_add_test(t, test_bits_reverted_by_nobody);
        tcase_add_test(t, test_bits_wait_for_what_is_held);
        tcase_add_test(t, test_bits_wait_for_a_part_that_is_held);
        tcase_add_test(t, test_bits_wait_for_a_table_that_waits_now);
        tcase_add_test(t, test_a_phase_goes_on_by_what_is_known_now);
        tcase_add_test(t, test_a_grant_waits_for_a_revoke);
        tcase_add_test(t, test_every_base_is_uncertain);
        tcase_add_test(t, test_both_blocks_are_uncertain);
        tcase_add_test(t, test_second_block);
        tcase_add_test(t, test_repair_all_or_nothing);
        tcase_add_test(t, test_repair_names_all_that_waits);
        tcase_add_test(t, test_raise_waits_for_what_was_to_go);
        tcase_add_test(t, test_raise_waits_for_its_own_only);
        tcase_add_test(t, test_what_was_to_go_is_named);
        tcase_add_test(t, test_read_back_once);
        tcase_add_test(t, test_last_write_is_read_back);
        tcase_add_test(t, test_unconfirmed_write_is_read_back);
        tcase_add_test(t, test_unconfirmed_bits_are_read_back);
        tcase_add_test(t, test_assumed_table_is_not_tried);
        tcase_add_test(t, test_abort);
        tcase_add_test(t, test_abort_awaits_what_is_in_flight);
        tcase_add_test(t, test_abort_sets_nothing_again);
        tcase_add_test(t, test_abort_reads_what_was_set);
        tcase_add_test(t, test_enforcement_waits_for_its_table);
        tcase_add_test(t, test_index_memory_is_told);
        tcase_add_test(t, test_no_memory);
        tcase_add_test(t, test_no_memory_for_what_differs);
        suite_add_tcase(s, t);
        t = tcase_create("failures");
        tcase_set_timeout(t, 0);
        tcase_add_loop_test(t, test_every_single_failure, 0, 4);
        suite_add_tcase(s, t);
        return s;
}

int main(void)
{
        SRunner *sr = srunner_create(apply_suite());
        int failed;

        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
