/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The doctor on a fabric with M_Keys and switches that enforce: survey, probe, diagnoses. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "fabric.h"
#include "subnet/survey.h"

#define HOSTS    6
#define LEAF_LID 30
#define LEAF_CAP 32
#define KEY      UINT64_C(0x1234567812345678)

/* Host 0 is pkeyd's and the SM's. */
static struct fabsim f;
static unsigned leaf;
static struct fabsim_place host[HOSTS];
static struct arena *arena;
static struct diagnoses found;

static void grant(unsigned h, unsigned index, uint16_t key)
{
        fabsim_port_at(&f, host[h])->table[index].v = key;
        f.nodes[leaf].ports[h + 1].table[index].v = key;
}

static void protect(struct fabsim_port *p, uint64_t key, uint8_t level)
{
        p->m_key = key;
        p->m_key_protection = level;
}

/* As it should be. */
static void setup(void)
{
        arena = arena_new();
        fabsim_init(&f);
        leaf = fabsim_add_node(&f, NODE_SWITCH, 8, 8, "leaf");
        fabsim_set_enforcement_cap(&f, leaf, LEAF_CAP, true, true);
        f.nodes[leaf].ports[0].lid.v = LEAF_LID;
        f.nodes[leaf].ports[0].table[0].v = 0xffff;
        for (unsigned h = 0; h < HOSTS; h++) {
                host[h] = (struct fabsim_place) { fabsim_add_node(&f, NODE_CA, 1, 64, "host"), 1 };
                fabsim_connect(&f, host[h].node, 1, leaf, (uint8_t) (h + 1));
                fabsim_port_at(&f, host[h])->lid.v = (uint16_t) (10 + h);
                f.nodes[leaf].ports[h + 1].enforce_inbound = f.nodes[leaf].ports[h + 1].enforce_outbound = true;
                grant(h, 0, h == 0 ? 0xffff : 0x7fff);
                protect(fabsim_port_at(&f, host[h]), KEY, 2);
        }
        for (unsigned i = 0; i <= HOSTS; i++)
                protect(&f.nodes[leaf].ports[i], KEY, 2);
        f.self = f.sm = host[0];
}

static void teardown(void)
{
        arena_free(arena);
}

static struct subnet *snapshot(void)
{
        const struct fabsim_node *l = &f.nodes[leaf];
        struct subnet_node node = { .guid = l->guid, .type = NODE_SWITCH, .num_ports = 8, .partition_cap = l->partition_cap,
                                    .partition_enforcement_cap = l->partition_enforcement_cap,
                                    .inbound_enforcement_cap = l->inbound_cap, .outbound_enforcement_cap = l->outbound_cap };
        struct subnet_port port = { .guid = l->ports[0].guid, .lid = { LEAF_LID }, .state = PORT_STATE_ACTIVE,
                                    .route.lid = { LEAF_LID } };
        struct subnet_builder *b;
        struct subnet *subnet;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, l->guid, &port), 0);
        for (unsigned h = 0; h < HOSTS; h++) {
                const struct fabsim_port *p = fabsim_port_at(&f, host[h]), *e = &l->ports[h + 1];
                const char *name = arena_printf(arena, "node%u mlx5_0", h);

                node = (struct subnet_node) { .guid = f.nodes[host[h].node].guid, .type = NODE_CA, .num_ports = 1,
                                              .partition_cap = 64 };
                port = (struct subnet_port) { .number = 1, .guid = p->guid, .lid = p->lid, .state = PORT_STATE_ACTIVE,
                                              .route.lid = p->lid };
                ck_assert_int_eq(subnet_builder_add_node(b, &node, name, strlen(name)), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
                port = (struct subnet_port) { .number = (uint8_t) (h + 1), .state = PORT_STATE_ACTIVE,
                                              .enforce_inbound = e->enforce_inbound, .enforce_outbound = e->enforce_outbound };
                ck_assert_int_eq(subnet_builder_add_port(b, l->guid, &port), 0);
                ck_assert_int_eq(subnet_builder_add_link(b, l->guid, port.number, node.guid, 1), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, f.nodes[host[0].node].guid, 1, f.nodes[host[0].node].guid, 1, &subnet), 0);
        subnet->sm_lid.v = 10;
        return subnet;
}

static void answer(const struct mad_request *request, struct mad_result *ret)
{
        struct mad_frame frame, back;
        struct fabsim_place at;
        unsigned hops;

        *ret = (struct mad_result) { .cookie = request->cookie, .outcome = MAD_TIMED_OUT };
        mad_request_encode(request, 1, &frame);
        if (!fabsim_route(&f, &frame, &at, &hops) || !fabsim_answer(&f, 0, at, &frame, &back))
                return;
        ck_assert_int_eq(mad_check_response(request, &back, &ret->mad_status), 0);
        ret->outcome = ret->mad_status ? MAD_REFUSED : MAD_ANSWERED;
        mad_frame_get_data(&back, request->mgmt_class, ret->data);
}

static void run(const struct mad_stage *stage)
{
        struct mad_request request;
        struct mad_result result;

        while (!stage->done(stage->state)) {
                ck_assert(stage->next(stage->state, 0, &request));
                ck_assert_int_eq(request.method, MAD_GET);
                answer(&request, &result);
                stage->result(stage->state, 0, &result);
        }
}

/* key 0: pkeyd has none. */
static void diagnose(uint64_t key)
{
        const char *text = arena_printf(arena, "0x%016" PRIx64, key);
        struct survey_options survey_options = {};
        struct probe_options probe_options = { .ask_sa = true };
        struct doctor_facts facts = { .host.policy_file.exists = true };
        struct settings settings;
        struct observed *observed;
        struct probe_result *result;
        struct findings findings = { .arena = arena };
        struct m_keys *keys = NULL;
        struct mad_stage stage;
        struct survey *survey;
        struct probe *probe;

        if (key)
                ck_assert_int_eq(m_keys_parse("m_key", text, strlen(text), &findings, &keys), 0);
        survey_options.m_keys = probe_options.m_keys = keys;
        facts.subnet = snapshot();
        ck_assert_int_eq(observed_new(arena, facts.subnet, &observed), 0);
        ck_assert_int_eq(survey_new(arena, observed, &survey_options, &survey), 0);
        stage = survey_stage(survey);
        run(&stage);
        ck_assert_int_eq(probe_new(arena, facts.subnet, &probe_options, &probe, &result), 0);
        stage = probe_stage(probe);
        run(&stage);
        settings_default(&settings);
        settings.beside_opensm = true;
        facts.settings = &settings;
        facts.observed = observed;
        facts.probe = result;
        ck_assert_int_eq(doctor_diagnose(arena, &facts, &found), 0);
        m_keys_free(keys);
        findings_done(&findings);
}

static const struct diagnosis *find(enum diagnosis_code code)
{
        for (uint32_t i = 0; i < found.n; i++)
                if (found.items[i].code == code)
                        return &found.items[i];
        return NULL;
}

static void only(enum diagnosis_code code)
{
        for (uint32_t i = 0; i < found.n; i++)
                ck_assert_msg(found.items[i].code == code, "%s: %s", diagnosis_words[found.items[i].code].code,
                              found.items[i].title);
        ck_assert_msg(found.n == 1, "%s is missing", diagnosis_words[code].code);
}

START_TEST(nothing_is_found)
{
        diagnose(KEY);
        ck_assert_msg(found.n == 0, "%s", found.n > 0 ? found.items[0].title : "");
        for (unsigned h = 0; h < HOSTS; h++)
                ck_assert_uint_eq(fabsim_port_at(&f, host[h])->m_key_violations, 0);
}
END_TEST

/* The answers of a port at each protection level, with and without the key. */
START_TEST(levels)
{
        static const int with_key[] = { DIAGNOSIS_M_KEY_SHOWN, DIAGNOSIS_M_KEY_LEVEL_1, -1, -1 };
        static const int without[] = { DIAGNOSIS_M_KEY_SHOWN, DIAGNOSIS_M_KEY_UNKNOWN, DIAGNOSIS_PORT_SILENT,
                                       DIAGNOSIS_PORT_SILENT };
        struct fabsim_port *p = fabsim_port_at(&f, host[3]);

        protect(p, KEY, (uint8_t) _i);
        diagnose(KEY);
        if (with_key[_i] < 0)
                ck_assert_uint_eq(found.n, 0);
        else
                only((enum diagnosis_code) with_key[_i]);
        for (unsigned h = 0; h < HOSTS; h++)
                protect(fabsim_port_at(&f, host[h]), KEY, (uint8_t) _i);
        diagnose(0);
        ck_assert_ptr_nonnull(find((enum diagnosis_code) without[_i]));
        ck_assert_ptr_null(find(DIAGNOSIS_M_KEY_ZERO));
}
END_TEST

/* Without an M_Key a port answers anybody at every level; only at level 1 that could have another reason. */
START_TEST(no_m_key)
{
        for (uint8_t level = 0; level < 4; level++) {
                protect(fabsim_port_at(&f, host[3]), 0, level);
                diagnose(KEY);
                only(level == 1 ? DIAGNOSIS_M_KEY_UNKNOWN : DIAGNOSIS_M_KEY_ZERO);
                ck_assert_uint_eq(found.items[0].n_ports, 1);
        }
}
END_TEST

START_TEST(switch_ports)
{
        f.nodes[leaf].ports[4].table[9].v = 0x8020;
        diagnose(KEY);
        only(DIAGNOSIS_STALE_KEYS);
        f.nodes[leaf].ports[4].table[9].v = 0;
        f.nodes[leaf].ports[2].enforce_inbound = f.nodes[leaf].ports[2].enforce_outbound = false;
        diagnose(KEY);
        only(DIAGNOSIS_ENFORCEMENT_OFF);
        fabsim_set_enforcement_cap(&f, leaf, LEAF_CAP, false, false);
        f.nodes[leaf].ports[4].table[9].v = 0x8020;
        diagnose(KEY);
        ck_assert_uint_eq(found.n, 2);
        ck_assert_ptr_nonnull(find(DIAGNOSIS_ENFORCEMENT_CANNOT));
        ck_assert_ptr_nonnull(find(DIAGNOSIS_STALE_KEYS_IDLE));
}
END_TEST

int main(void)
{
        Suite *s = suite_create("fabsim doctor");
        TCase *t = tcase_create("doctor");
        SRunner *r = srunner_create(s);
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, nothing_is_found);
        tcase_add_loop_test(t, levels, 0, 4);
        tcase_add_test(t, no_m_key);
        tcase_add_test(t, switch_ports);
        suite_add_tcase(s, t);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
