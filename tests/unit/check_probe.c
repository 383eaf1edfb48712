/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/probe.h"
#include "ib/sa.h"

#define N_HOSTS     4
#define LEAF_GUID   UINT64_C(0x1000)
#define HOST_GUID   UINT64_C(0x2000)
#define LEAF_CAP    40 /* two blocks, the second of eight entries */
#define MAX_ASKED   64
#define SM_SL       3

/* A leaf that cannot enforce partitions, with four hosts; the first has the master SM, the second is this one. */
static struct {
        enum mad_outcome outcome[N_HOSTS + 1]; /* by host, the last one is the switch */
        bool is_sm[N_HOSTS];
        struct mad_request asked[MAX_ASKED];
        unsigned n_asked;
} fabric;

static struct arena *arena;
static struct subnet *subnet;
static struct probe_result *result;
static struct mad_stage probed; /* the last one */

static void add_switch(struct subnet_builder *b, bool can_enforce)
{
        struct subnet_node node = { .guid = { LEAF_GUID }, .type = NODE_SWITCH, .num_ports = 36, .partition_cap = 8,
                                    .partition_enforcement_cap = LEAF_CAP, .inbound_enforcement_cap = can_enforce };
        struct subnet_port port = { .number = 0, .guid = { LEAF_GUID }, .lid = { 1 }, .route = { .lid = { 1 } } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

static void add_host(struct subnet_builder *b, unsigned i)
{
        struct subnet_node node = { .guid = { HOST_GUID + i }, .type = NODE_CA, .num_ports = 1, .partition_cap = 64 };
        struct subnet_port port = { .number = 1, .guid = { HOST_GUID + i }, .lid = { (uint16_t) (10 + i) },
                                    .route = { .lid = { (uint16_t) (10 + i) } } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "node", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        port = (struct subnet_port) { .number = (uint8_t) (i + 1) };
        ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { LEAF_GUID }, &port), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { LEAF_GUID }, port.number, node.guid, 1), 0);
}

static void build(bool can_enforce)
{
        struct subnet_builder *b;

        memset(&fabric, 0, sizeof(fabric));
        fabric.is_sm[0] = true;
        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_switch(b, can_enforce);
        for (unsigned i = 0; i < N_HOSTS; i++)
                add_host(b, i);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { HOST_GUID + 1 }, 1, (struct guid) { HOST_GUID }, 1, &subnet),
                         0);
}

static void setup(void)
{
        arena = arena_new();
        build(false);
}

static void teardown(void)
{
        arena_free(arena);
}

static uint32_t host_port(unsigned i)
{
        return subnet_find_endport(subnet, (struct guid) { HOST_GUID + i });
}

static uint32_t leaf_port(uint8_t number)
{
        return subnet_find_port(subnet, subnet_find_node(subnet, (struct guid) { LEAF_GUID }), number);
}

/* --- the fabric's side ----------------------------------------------------------------------------------------------- */

static void answer_smp(const struct mad_request *q, unsigned who, struct mad_result *ret)
{
        ret->outcome = fabric.outcome[who];
        ret->mad_status = ret->outcome == MAD_REFUSED ? 0x1c : 0;
        if (q->attribute == SMP_ATTR_PORT_INFO) {
                mad_set_field64(ret->data, 0, IB_PORT_MKEY_F, who == 2 ? 0 : 0x1234);
                mad_set_field(ret->data, 0, IB_PORT_MKEY_PROT_BITS_F, who == 3 ? 2 : 0);
                mad_set_field(ret->data, 0, IB_PORT_CAPMASK_F, who < N_HOSTS && fabric.is_sm[who] ? 2 : 0xfffffffd);
                mad_set_field(ret->data, 0, IB_PORT_SMLID_F, 10);
                mad_set_field(ret->data, 0, IB_PORT_SMSL_F, SM_SL);
        } else if (q->attribute == SMP_ATTR_NODE_INFO) {
                mad_set_field64(ret->data, 0, IB_NODE_GUID_F, who == N_HOSTS ? LEAF_GUID : HOST_GUID + who);
        } else if (q->attribute == SMP_ATTR_SM_INFO) {
                mad_set_field64(ret->data, 0, IB_SMINFO_GUID_F, HOST_GUID + who);
                mad_set_field(ret->data, 0, IB_SMINFO_PRIO_F, 7);
                mad_set_field(ret->data, 0, IB_SMINFO_STATE_F, 3);
        } else {
                struct p_key block[P_KEY_BLOCK_ENTRIES];

                ck_assert_int_eq(q->attribute, SMP_ATTR_P_KEY_TABLE);
                for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                        block[i].v = (uint16_t) (q->modifier >> 16 << 8 | (q->modifier & 0xff) << 6 | i);
                p_key_block_encode(block, ret->data);
        }
}

static void answer(const struct mad_request *q, struct mad_result *ret)
{
        *ret = (struct mad_result) { .cookie = q->cookie };
        if (q->mgmt_class == MAD_CLASS_SA)
                ret->outcome = q->key == 1 ? MAD_ANSWERED : MAD_REFUSED;
        else
                answer_smp(q, q->route.lid.v == 1 ? N_HOSTS : q->route.lid.v - 10u, ret);
}

/* All queries that the probe offers are sent at once; the answers arrive in reverse order, each twice. */
static void run(const struct probe_options *options)
{
        struct mad_request now[MAX_ASKED];
        struct mad_stage stage;
        struct probe *p;
        uint64_t done, total;

        ck_assert_int_eq(probe_new(arena, subnet, options, &p, &result), 0);
        stage = probe_stage(p);
        while (!stage.done(stage.state)) {
                unsigned n = 0;

                while (stage.next(stage.state, 0, &now[n])) {
                        ck_assert_uint_lt(fabric.n_asked, MAX_ASKED);
                        for (unsigned i = 0; i < n; i++)
                                ck_assert_uint_ne(now[i].destination, now[n].destination);
                        ck_assert_int_eq(now[n].method, MAD_GET);
                        fabric.asked[fabric.n_asked++] = now[n++];
                }
                ck_assert_uint_gt(n, 0);
                while (n-- > 0) {
                        struct mad_result r;

                        answer(&now[n], &r);
                        stage.result(stage.state, 0, &r);
                        stage.result(stage.state, 0, &r);
                }
        }
        ck_assert(!stage.next(stage.state, 0, &now[0]));
        probed = stage;
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_le(done, total);
}

static unsigned count_asked(enum mad_class mgmt_class, unsigned attribute)
{
        unsigned n = 0;

        for (unsigned i = 0; i < fabric.n_asked; i++)
                n += fabric.asked[i].mgmt_class == mgmt_class && fabric.asked[i].attribute == attribute;
        return n;
}

static const struct probe_options with_sa = { .retries = 2, .ask_sa = true };

/* --- tests ----------------------------------------------------------------------------------------------------------- */

START_TEST(what_is_asked)
{
        run(&with_sa);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SMP, SMP_ATTR_PORT_INFO), N_HOSTS + 1);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SMP, SMP_ATTR_SM_INFO), 1);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SMP, SMP_ATTR_P_KEY_TABLE), 2 * N_HOSTS);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SA, SA_ATTR_P_KEY_TABLE_RECORD), PROBE_N_SA_KEYS);
        for (unsigned i = 0; i < fabric.n_asked; i++) {
                const struct mad_request *q = &fabric.asked[i];

                ck_assert_uint_eq(q->retries, 2);
                if (q->mgmt_class != MAD_CLASS_SA) {
                        ck_assert_uint_eq(q->key, 0);
                        continue;
                }
                ck_assert_uint_eq(q->route.lid.v, 10);
                ck_assert_uint_eq(q->route.sl, SM_SL);
                ck_assert_uint_le(q->key, 1);
        }
}
END_TEST

START_TEST(what_is_understood)
{
        const struct probe_port *p;

        run(&with_sa);
        p = &result->ports[host_port(0)];
        ck_assert(probe_is_answered(&p->port_info) && probe_is_answered(&p->sm_info));
        ck_assert(p->protection.m_key_is_shown && p->is_sm);
        ck_assert_uint_eq(p->sm_lid.v, 10);
        ck_assert_int_eq(p->sm.state, SM_MASTER);
        ck_assert_uint_eq(p->sm.priority, 7);
        ck_assert_uint_eq(p->sm.port_guid.v, HOST_GUID);
        p = &result->ports[host_port(2)];
        ck_assert(!p->protection.m_key_is_shown && !p->is_sm && !p->sm_info.asked);
        ck_assert_uint_eq(result->ports[host_port(3)].protection.m_key_level, 2);
        ck_assert(probe_is_answered(&result->sa[PROBE_SA_KEY_DEFAULT]));
        ck_assert_int_eq(result->sa[PROBE_SA_KEY_NONE].outcome, MAD_REFUSED);
}
END_TEST

START_TEST(tables_of_a_switch_that_cannot_enforce)
{
        const struct observed_table *t;

        run(&with_sa);
        t = &result->tables->tables[leaf_port(3)];
        ck_assert_int_eq(t->source, TABLE_READ);
        ck_assert_uint_eq(t->capacity, LEAF_CAP);
        ck_assert_uint_eq(t->entries[31].v, 0x31f);
        ck_assert_uint_eq(t->entries[LEAF_CAP - 1].v, 0x347);
        ck_assert_ptr_null(result->tables->tables[host_port(0)].entries);
        build(true); /* the survey reads these */
        run(&with_sa);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SMP, SMP_ATTR_P_KEY_TABLE), 0);
        ck_assert_ptr_null(result->tables->tables[leaf_port(3)].entries);
}
END_TEST

START_TEST(keys_go_to_their_ports)
{
        static const char file[] = "0x0000000000002002 0xabc\n\n0x0000000000001000 0xdef\n";
        struct probe_options options = with_sa;
        struct findings findings = { .arena = arena };
        struct m_keys *keys;

        ck_assert_int_eq(m_keys_parse("keys", file, strlen(file), &findings, &keys), 0);
        options.m_keys = keys;
        run(&options);
        for (unsigned i = 0; i < fabric.n_asked; i++) {
                const struct mad_request *q = &fabric.asked[i];

                if (q->mgmt_class == MAD_CLASS_SMP)
                        ck_assert_uint_eq(q->key, q->route.lid.v == 1 ? 0xdef : q->route.lid.v == 12 ? 0xabc : 0);
        }
        m_keys_free(keys);
        findings_done(&findings);
}
END_TEST

/* A dead switch is queried for the tables of only two of its ports. */
START_TEST(silence)
{
        fabric.outcome[N_HOSTS] = MAD_TIMED_OUT;
        fabric.outcome[2] = MAD_REFUSED;
        run(&with_sa);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SMP, SMP_ATTR_P_KEY_TABLE), 2);
        for (uint8_t i = 1; i <= N_HOSTS; i++) {
                ck_assert_int_eq(result->tables->tables[leaf_port(i)].source, TABLE_UNKNOWN);
                ck_assert_int_eq(result->tables->tables[leaf_port(i)].failure, MAD_TIMED_OUT);
        }
        ck_assert_int_eq(result->ports[host_port(2)].port_info.outcome, MAD_REFUSED);
        ck_assert_uint_eq(result->ports[host_port(2)].port_info.mad_status, 0x1c);
}
END_TEST

/* The last answer again, and answers to no query. */
START_TEST(answers_that_nobody_waits_for)
{
        struct mad_result again = { .outcome = MAD_TIMED_OUT };
        struct mad_stage stage;
        struct probe *p;

        run(&with_sa);
        for (uint64_t question = 1; question < 256; question++)
                for (uint64_t subject = 0; subject < subnet->n_ports + 2u; subject++) {
                        again.cookie = question << 56 | subject;
                        probed.result(probed.state, 0, &again);
                }
        ck_assert(probe_is_answered(&result->ports[host_port(0)].port_info));
        ck_assert(probe_is_answered(&result->ports[host_port(0)].sm_info));
        ck_assert(!result->ports[host_port(1)].sm_info.asked);
        ck_assert(probe_is_answered(&result->sa[PROBE_SA_KEY_DEFAULT]));
        ck_assert(probed.done(probed.state));
        /* before any query */
        ck_assert_int_eq(probe_new(arena, subnet, &with_sa, &p, &result), 0);
        stage = probe_stage(p);
        again.cookie = UINT64_C(1) << 56 | host_port(0);
        stage.result(stage.state, 0, &again);
        ck_assert(!result->ports[host_port(0)].port_info.asked);
        ck_assert(!stage.done(stage.state));
}
END_TEST

START_TEST(nobody_to_ask_the_sa)
{
        struct probe_options options = with_sa;

        fabric.outcome[1] = MAD_TIMED_OUT; /* this host's own port: the LID of the SA is not known */
        run(&options);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SA, SA_ATTR_P_KEY_TABLE_RECORD), 0);
        ck_assert(!result->sa[PROBE_SA_KEY_DEFAULT].asked);
        build(false);
        options.ask_sa = false;
        run(&options);
        ck_assert_uint_eq(count_asked(MAD_CLASS_SA, SA_ATTR_P_KEY_TABLE_RECORD), 0);
        ck_assert(probe_is_answered(&result->ports[host_port(1)].port_info));
}
END_TEST

int main(void)
{
        Suite *s = suite_create("probe");
        TCase *t = tcase_create("probe");
        SRunner *r = srunner_create(s);
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, what_is_asked);
        tcase_add_test(t, what_is_understood);
        tcase_add_test(t, tables_of_a_switch_that_cannot_enforce);
        tcase_add_test(t, keys_go_to_their_ports);
        tcase_add_test(t, silence);
        tcase_add_test(t, answers_that_nobody_waits_for);
        tcase_add_test(t, nobody_to_ask_the_sa);
        suite_add_tcase(s, t);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
