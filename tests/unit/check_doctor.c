/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define N_HOSTS   12
#define LEAF_GUID UINT64_C(0x1000)
#define HOST_GUID UINT64_C(0x2000)
#define HOST_CAP  64
#define LEAF_CAP  32

/*
 * Twelve hosts on one leaf, without any fault: the SM's host and this one are full members of the default partition, the others
 * limited members, M_Keys are at level 2, and every leaf port enforces and holds what its host has. Each test breaks one thing, and
 * the doctor must find exactly that.
 */
static struct arena *arena;
static struct subnet *subnet;
static struct observed *observed;
static struct probe_result *probe;
static struct settings settings;
static struct doctor_facts facts;
static struct diagnoses found;
static uint32_t host[N_HOSTS], leaf[N_HOSTS], leaf0;
static const char *names[N_HOSTS]; /* NodeDescriptions */

static void add_switch(struct subnet_builder *b)
{
        struct subnet_node node = {
                .guid = { LEAF_GUID }, .type = NODE_SWITCH, .num_ports = 36, .partition_cap = 8,
                .partition_enforcement_cap = LEAF_CAP, .inbound_enforcement_cap = true, .outbound_enforcement_cap = true,
        };
        struct subnet_port port = { .number = 0, .state = PORT_STATE_ACTIVE, .guid = { LEAF_GUID }, .lid = { 1 },
                                    .route = { .lid = { 1 } } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "MF0;leaf:MQM8700/U1", 19), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

static void add_host(struct subnet_builder *b, unsigned i)
{
        struct subnet_node node = { .guid = { HOST_GUID + i }, .type = NODE_CA, .num_ports = 1, .partition_cap = HOST_CAP };
        struct subnet_port port = { .number = 1, .state = PORT_STATE_ACTIVE, .guid = { HOST_GUID + i },
                                    .lid = { (uint16_t) (10 + i) }, .route = { .lid = { (uint16_t) (10 + i) } } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, names[i], strlen(names[i])), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        port = (struct subnet_port) { .number = (uint8_t) (i + 1), .state = PORT_STATE_ACTIVE, .guid = { LEAF_GUID },
                                      .lid = { 1 }, .route = { .lid = { 1 } }, .enforce_inbound = true,
                                      .enforce_outbound = true };
        ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { LEAF_GUID }, &port), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { LEAF_GUID }, (uint8_t) (i + 1), node.guid, 1), 0);
}

static void find_ports(void)
{
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                const struct subnet_port *p = &subnet->ports[i];

                if (p->role == PORT_SWITCH_EXTERNAL)
                        leaf[p->number - 1] = i;
                else if (p->guid.v == LEAF_GUID)
                        leaf0 = i;
                else
                        host[p->guid.v - HOST_GUID] = i;
        }
}

static void put(uint32_t port, unsigned index, uint16_t key)
{
        ck_assert_uint_lt(index, observed->tables[port].capacity);
        observed->tables[port].entries[index].v = key;
}

/* Adds a P_Key to the tables of a host and its leaf port. */
static void grant(unsigned i, unsigned index, uint16_t key)
{
        put(host[i], index, key);
        put(leaf[i], index, key);
}

static void fill_in(void)
{
        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        probe = arena_new_object(arena, struct probe_result);
        probe->ports = arena_new_array(arena, struct probe_port, subnet->n_ports);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                observed->tables[i].source = TABLE_READ;
                if (subnet->ports[i].role != PORT_ENDPORT)
                        continue;
                probe->ports[i].port_info = (struct probe_answer) { .asked = true, .outcome = MAD_ANSWERED };
                probe->ports[i].protection = (struct port_protection) { .m_key_is_shown = true, .m_key_level = 2 };
                probe->ports[i].sm_lid.v = 10;
        }
        put(leaf0, 0, 0xffff);
        for (unsigned i = 0; i < N_HOSTS; i++)
                grant(i, 0, i < 2 ? 0xffff : 0x7fff);
        for (int i = 0; i < PROBE_N_SA_KEYS; i++)
                probe->sa[i] = (struct probe_answer) { .asked = true, .outcome = MAD_REFUSED, .mad_status = 0x200 };
}

static void make_sm(unsigned i, enum sm_state state, uint8_t priority)
{
        struct probe_port *p = &probe->ports[host[i]];

        p->is_sm = subnet->ports[host[i]].is_sm = true;
        p->sm_info = (struct probe_answer) { .asked = true, .outcome = MAD_ANSWERED };
        p->sm = (struct sm_info) { .port_guid = { HOST_GUID + i }, .state = state, .priority = priority };
}

static void build(void)
{
        struct subnet_builder *b;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_switch(b);
        for (unsigned i = 0; i < N_HOSTS; i++)
                add_host(b, i);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { HOST_GUID + 1 }, 1, (struct guid) { HOST_GUID }, 1, &subnet),
                         0);
        subnet->sm_lid.v = 10;
        find_ports();
        fill_in();
        make_sm(0, SM_MASTER, 5);
        settings_default(&settings);
        settings.beside_opensm = true;
        facts = (struct doctor_facts) {
                .settings = &settings, .subnet = subnet, .observed = observed, .probe = probe,
                .host = {
                        .settings_file = { .path = "pkeyd.yaml", .exists = true },
                        .policy_file = { .path = "partitions.yaml", .exists = true },
                        .state_dir = { .path = "state", .exists = true },
                },
        };
}

static void setup(void)
{
        arena = arena_new();
        for (unsigned i = 0; i < N_HOSTS; i++)
                names[i] = arena_printf(arena, "node%u mlx5_0", i);
        build();
}

static void teardown(void)
{
        arena_free(arena);
}

static void diagnose(void)
{
        ck_assert_int_eq(doctor_diagnose(arena, &facts, &found), 0);
}

static const struct diagnosis *only(enum diagnosis_code code)
{
        diagnose();
        for (uint32_t i = 0; i < found.n; i++)
                ck_assert_msg(found.items[i].code == code, "%s: %s", diagnosis_words[found.items[i].code].code,
                              found.items[i].title);
        ck_assert_msg(found.n == 1, "%s is missing", diagnosis_words[code].code);
        return &found.items[0];
}

static void nothing(void)
{
        diagnose();
        ck_assert_msg(found.n == 0, "%s", found.n > 0 ? found.items[0].title : "");
}

static const struct diagnosis *find(enum diagnosis_code code)
{
        diagnose();
        for (uint32_t i = 0; i < found.n; i++)
                if (found.items[i].code == code)
                        return &found.items[i];
        return NULL;
}

START_TEST(all_is_well)
{
        nothing();
}
END_TEST

START_TEST(every_code_has_its_words)
{
        for (int i = 0; i < DIAGNOSIS_CODE_MAX; i++) {
                ck_assert_str_ne(diagnosis_words[i].code, "");
                ck_assert_uint_gt(strlen(diagnosis_words[i].why), 20);
                ck_assert_uint_gt(strlen(diagnosis_words[i].advice), 20);
                /* with writer: opensm that is refused */
                ck_assert(!strstr(diagnosis_words[i].advice, "pkeyctl apply") || strstr(diagnosis_words[i].advice, "OpenSM") ||
                          strstr(diagnosis_words[i].advice, "writer: opensm") ||
                          strstr(diagnosis_words[i].advice, "writer: direct"));
        }
}
END_TEST

/* --- M_Keys ---------------------------------------------------------------------------------------------------------- */

START_TEST(m_keys)
{
        static const struct {
                bool is_shown;
                uint8_t level;
                int code; /* -1: nothing */
        } cases[] = {
                { false, 0, DIAGNOSIS_M_KEY_ZERO },    { true, 0, DIAGNOSIS_M_KEY_SHOWN },   { true, 1, DIAGNOSIS_M_KEY_LEVEL_1 },
                { true, 2, -1 },                       { true, 3, -1 },                      { false, 1, DIAGNOSIS_M_KEY_UNKNOWN },
                { false, 2, DIAGNOSIS_M_KEY_ZERO },    { false, 3, DIAGNOSIS_M_KEY_ZERO },
        };
        struct port_protection *p = &probe->ports[host[3]].protection;

        p->m_key_is_shown = cases[_i].is_shown;
        p->m_key_level = cases[_i].level;
        if (cases[_i].code < 0) {
                nothing();
        } else {
                const struct diagnosis *d = only((enum diagnosis_code) cases[_i].code);

                ck_assert_uint_eq(d->n_ports, 1);
                ck_assert_uint_eq(d->ports[0], host[3]);
                ck_assert_ptr_nonnull(strstr(d->title, "1 of 13 ports"));
        }
}
END_TEST

START_TEST(a_port_that_says_nothing)
{
        probe->ports[host[3]].port_info.outcome = MAD_TIMED_OUT;
        probe->ports[host[3]].protection.m_key_is_shown = false;
        ck_assert_uint_eq(only(DIAGNOSIS_PORT_SILENT)->ports[0], host[3]);
        probe->ports[host[3]].port_info = (struct probe_answer) { true, MAD_REFUSED, 0x1c };
        ck_assert_ptr_nonnull(strstr(only(DIAGNOSIS_PORT_SILENT)->places[0].text, "0x001c"));
        probe->ports[host[3]].port_info.asked = false;
        nothing();
}
END_TEST

/* --- the SA ---------------------------------------------------------------------------------------------------------- */

static void set_sa(int known, int none)
{
        probe->sa[PROBE_SA_KEY_DEFAULT] = (struct probe_answer) { known >= 0, (enum mad_outcome) MAX(known, 0), 0 };
        probe->sa[PROBE_SA_KEY_NONE] = (struct probe_answer) { none >= 0, (enum mad_outcome) MAX(none, 0), 0 };
}

START_TEST(sa_keys)
{
        set_sa(MAD_ANSWERED, MAD_REFUSED);
        ck_assert_uint_eq(only(DIAGNOSIS_SA_KEY_DEFAULT)->ports[0], host[0]);
        set_sa(MAD_ANSWERED, MAD_ANSWERED);
        (void) only(DIAGNOSIS_SA_KEY_NONE);
        set_sa(MAD_TIMED_OUT, MAD_REFUSED); /* as OpenSM: it ignores a wrong key, and refuses a request without */
        nothing();
        set_sa(MAD_TIMED_OUT, MAD_TIMED_OUT);
        (void) only(DIAGNOSIS_SA_KEY_UNKNOWN);
        set_sa(-1, -1);
        facts.sa_error = "no agent";
        ck_assert_ptr_nonnull(strstr(only(DIAGNOSIS_SA_KEY_UNKNOWN)->title, "no agent"));
        subnet->sm = SUBNET_NONE;
        put(host[0], 0, 0x7fff);
        ck_assert_str_eq(only(DIAGNOSIS_SA_KEY_UNKNOWN)->places[0].text, "LID 10");
}
END_TEST

/* --- subnet managers ------------------------------------------------------------------------------------------------- */

START_TEST(subnet_managers)
{
        const struct diagnosis *d;

        make_sm(3, SM_STANDBY, 4);
        nothing();
        make_sm(3, SM_STANDBY, 5);
        d = only(DIAGNOSIS_SM_SAME_PRIORITY);
        ck_assert_uint_eq(d->n_places, 1);
        ck_assert_uint_eq(d->places[0].port, host[3]);
        make_sm(3, SM_NOT_ACTIVE, 5);
        nothing();
        make_sm(3, SM_MASTER, 4);
        d = only(DIAGNOSIS_SM_SEVERAL);
        ck_assert_uint_eq(d->n_places, 2);
        ck_assert_ptr_nonnull(strstr(d->places[1].text, "master, priority 4"));
        probe->ports[host[3]].sm_info.outcome = MAD_TIMED_OUT;
        ck_assert_uint_eq(only(DIAGNOSIS_SM_SILENT)->ports[0], host[3]);
}
END_TEST

/* The settings do not resolve that the SM writes tables, too. */
START_TEST(subnet_manager_beside_pkeyd)
{
        settings.beside_opensm = false;
        ck_assert_uint_eq(only(DIAGNOSIS_SM_BESIDE)->ports[0], host[0]);
        settings.opensm_mirror = "/etc/opensm/partitions.conf";
        nothing();
        settings.opensm_mirror = NULL;
        settings.writer = WRITER_OPENSM;
        settings.opensm_partitions_conf = "/etc/opensm/partitions.conf";
        nothing();
        settings.writer = WRITER_DIRECT;
        settings.opensm_partitions_conf = NULL;
        subnet->sm = SUBNET_NONE;
        put(host[0], 0, 0x7fff);
        ck_assert_str_eq(only(DIAGNOSIS_SM_BESIDE)->places[0].text, "LID 10");
        subnet->sm_lid.v = 0;
        nothing();
}
END_TEST

START_TEST(subnet_manager_that_ended)
{
        settings.beside_opensm = false;
        subnet->ports[host[0]].is_sm = false;
        nothing();
}
END_TEST

START_TEST(ports_that_obey_another)
{
        probe->ports[host[5]].sm_lid.v = 13;
        ck_assert_uint_eq(only(DIAGNOSIS_SM_SEVERAL)->places[1].port, host[5]);
        subnet->ports[host[5]].state = PORT_STATE_INIT;
        nothing();
        subnet->ports[host[5]].state = PORT_STATE_ARMED;
        (void) only(DIAGNOSIS_SM_SEVERAL);
        probe->ports[host[5]].sm_lid.v = 0; /* not set yet */
        nothing();
}
END_TEST

START_TEST(no_subnet_manager)
{
        probe->ports[host[0]].is_sm = false;
        probe->ports[host[0]].sm_info.asked = false;
        subnet->sm_lid.v = 0;
        set_sa(-1, -1); /* no SA, so no diagnosis of it */
        (void) only(DIAGNOSIS_SM_NONE);
        subnet->self = SUBNET_NONE;
        nothing();
}
END_TEST

/* --- the default partition ------------------------------------------------------------------------------------------- */

START_TEST(default_full)
{
        const struct diagnosis *d;

        for (unsigned i = 2; i < N_HOSTS; i++)
                grant(i, 0, 0xffff);
        d = only(DIAGNOSIS_DEFAULT_FULL_FOR_ALL);
        ck_assert_uint_eq(d->n_ports, N_HOSTS - 2);
        ck_assert_ptr_nonnull(strstr(d->title, "10 of 10"));
        for (unsigned i = 2 + DOCTOR_FEW_FULL; i < N_HOSTS; i++)
                grant(i, 0, 0x7fff);
        nothing();
}
END_TEST

START_TEST(default_full_for_some)
{
        struct desired_port *wanted = arena_new_array(arena, struct desired_port, subnet->n_ports);
        static const struct p_key full = { 0xffff };
        struct desired desired = { .subnet = subnet, .ports = wanted, .index0_base = P_KEY_DEFAULT_BASE };

        for (unsigned i = 2; i < 6; i++)
                grant(i, i < 5 ? 0 : 1, 0xffff); /* at any index */
        ck_assert_uint_eq(only(DIAGNOSIS_DEFAULT_FULL_FOR_SOME)->n_ports, 4);
        facts.desired = &desired;
        ck_assert_uint_eq(only(DIAGNOSIS_DEFAULT_FULL_FOR_SOME)->n_ports, 4);
        wanted[host[2]] = (struct desired_port) { &full, 1 };
        nothing();
        wanted[host[2]].n_wanted = 0;
        make_sm(2, SM_STANDBY, 1);
        nothing();
}
END_TEST

START_TEST(self_is_limited)
{
        grant(1, 0, 0x7fff);
        ck_assert_ptr_nonnull(strstr(only(DIAGNOSIS_SELF_LIMITED)->title, "only a limited member"));
        observed->tables[host[1]].source = TABLE_UNKNOWN;
        (void) only(DIAGNOSIS_TABLE_UNREAD);
}
END_TEST

/* --- tables ---------------------------------------------------------------------------------------------------------- */

START_TEST(index0)
{
        struct desired desired = { .subnet = subnet, .index0_base = 0x10 };

        grant(4, 0, 0x8010);
        grant(4, 1, 0x7fff);
        ck_assert_str_eq(only(DIAGNOSIS_INDEX0_OTHER)->places[0].text, "0x8010 at index 0");
        desired.ports = arena_new_array(arena, struct desired_port, subnet->n_ports);
        facts.desired = &desired;
        nothing();
        grant(4, 0, 0x8011);
        (void) only(DIAGNOSIS_INDEX0_OTHER);
        desired.ports[host[4]].index0_base = 0x11; /* of a lease */
        nothing();
        grant(4, 0, 0x8000);
        desired.ports[host[4]].index0_base = 0;
        ck_assert_str_eq(only(DIAGNOSIS_INDEX0_OTHER)->places[0].text, "nothing at index 0");
}
END_TEST

START_TEST(stale_keys)
{
        const struct diagnosis *d;

        put(leaf[4], 7, 0x0020);
        grant(2, 5, 0x8020); /* what another host has makes no difference */
        d = only(DIAGNOSIS_STALE_KEYS);
        ck_assert_uint_eq(d->places[0].port, leaf[4]);
        ck_assert_str_eq(d->places[0].text, "0x0020, from index 7 on");
        put(host[4], 1, 0x8020); /* with any membership, at any index */
        nothing();
        put(host[4], 1, 0);
        for (unsigned i = 0; i < 9; i++)
                put(leaf[4], 8 + i, (uint16_t) (0x8030 + i));
        ck_assert_ptr_nonnull(strstr(only(DIAGNOSIS_STALE_KEYS)->places[0].text, "and 4 more"));
        observed->tables[host[4]].source = TABLE_UNKNOWN; /* not known what it holds */
        (void) only(DIAGNOSIS_TABLE_UNREAD);
}
END_TEST

START_TEST(stale_keys_of_a_switch_that_cannot_enforce)
{
        struct observed_table *t;
        const struct diagnosis *d;

        subnet->nodes[subnet->ports[leaf0].node].inbound_enforcement_cap = false;
        subnet->nodes[subnet->ports[leaf0].node].outbound_enforcement_cap = false;
        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        facts.observed = observed;
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                observed->tables[i].source = TABLE_READ;
        put(leaf0, 0, 0xffff);
        for (unsigned i = 0; i < N_HOSTS; i++)
                put(host[i], 0, i < 2 ? 0xffff : 0x7fff);
        (void) only(DIAGNOSIS_ENFORCEMENT_CANNOT);
        probe->tables = arena_new_object(arena, struct observed);
        probe->tables->tables = arena_new_array(arena, struct observed_table, subnet->n_ports);
        t = &probe->tables->tables[leaf[4]];
        t->capacity = LEAF_CAP;
        t->entries = arena_new_array(arena, struct p_key, LEAF_CAP);
        t->entries[0].v = 0xffff;
        t->entries[31].v = 0x9020;
        t->source = TABLE_READ;
        d = find(DIAGNOSIS_STALE_KEYS_IDLE);
        ck_assert_ptr_nonnull(d);
        ck_assert_str_eq(d->places[0].text, "0x9020, from index 31 on");
        ck_assert_ptr_null(find(DIAGNOSIS_STALE_KEYS));
        t->source = TABLE_UNKNOWN;
        ck_assert_ptr_null(find(DIAGNOSIS_STALE_KEYS_IDLE));
}
END_TEST

START_TEST(tables_that_differ)
{
        static const struct p_key missing = { 0x8010 };
        struct discrepancy differ[] = {
                { .port = host[2], .source = SOURCE_SMP, .missing = &missing, .n_missing = 1 },
                { .port = host[1], .source = SOURCE_KERNEL, .missing = &missing, .n_missing = 1 },
        };
        struct verification v = { .differ = differ, .n_differ = 2 };
        const struct diagnosis *d;

        facts.verification = &v;
        d = only(DIAGNOSIS_POLICY_DIFFERS);
        ck_assert_uint_eq(d->n_places, 1);
        ck_assert_str_eq(d->places[0].text, "1 missing, 0 unexpected");
        v.n_differ = 0;
        nothing();
}
END_TEST

START_TEST(ports_that_are_frozen)
{
        enum freeze *frozen = arena_new_array(arena, enum freeze, subnet->n_ports);
        struct desired desired = { .subnet = subnet, .ports = arena_new_array(arena, struct desired_port, subnet->n_ports) };
        const struct diagnosis *d;

        facts.desired = &desired;
        nothing();
        desired.frozen = frozen;
        nothing();
        frozen[host[2]] = frozen[leaf[2]] = FREEZE_NAME;
        d = only(DIAGNOSIS_PORT_FROZEN);
        ck_assert_uint_eq(d->n_places, 1);
        ck_assert_uint_eq(d->places[0].port, host[2]);
        ck_assert_ptr_nonnull(strstr(d->places[0].text, "another adapter has the same name"));
        ck_assert_str_eq(d->title, "1 port is frozen");
}
END_TEST

/* --- capacity -------------------------------------------------------------------------------------------------------- */

/* n bases besides the default one, for a host and its leaf port as far as they fit. */
static void fill(unsigned i, unsigned n)
{
        for (unsigned k = 1; k <= n; k++) {
                put(host[i], k, (uint16_t) (0x8100 + k));
                if (k < LEAF_CAP)
                        put(leaf[i], k, (uint16_t) (0x8100 + k));
        }
}

START_TEST(capacity)
{
        fill(4, 24); /* 25 of 32: 78 % */
        nothing();
        fill(4, 25);
        ck_assert_str_eq(only(DIAGNOSIS_CAPACITY_NEAR)->places[0].text, "26 of 32 entries");
        fill(4, 31);
        ck_assert_uint_eq(only(DIAGNOSIS_CAPACITY_NEAR)->n_places, 1);
        fill(4, 32);
        ck_assert_ptr_nonnull(strstr(find(DIAGNOSIS_LEAF_OVERFLOW)->places[0].text, "in 33 partitions"));
        ck_assert_uint_eq(find(DIAGNOSIS_LEAF_OVERFLOW)->places[0].port, host[4]);
}
END_TEST

/* Two entries of one base are two on a host and one on a switch port. */
START_TEST(capacity_of_both)
{
        fill(4, 16);
        for (unsigned k = 1; k <= 16; k++)
                put(host[4], 32 + k, (uint16_t) (0x0100 + k));
        nothing();
}
END_TEST

START_TEST(capacity_by_policy)
{
        struct p_key keys[LEAF_CAP + 1];
        struct desired_port *ports = arena_new_array(arena, struct desired_port, subnet->n_ports);
        struct desired desired = { .subnet = subnet, .ports = ports, .index0_base = P_KEY_DEFAULT_BASE };

        for (unsigned k = 0; k < ELEMENTS(keys); k++)
                keys[k].v = (uint16_t) (0x8200 + k);
        facts.desired = &desired;
        ports[leaf[4]] = (struct desired_port) { keys, LEAF_CAP - 6 };
        ports[leaf[5]] = (struct desired_port) { keys, LEAF_CAP };
        diagnose();
        ck_assert_uint_eq(found.n, 1);
        ck_assert_uint_eq(found.items[0].places[0].port, leaf[5]); /* the fullest first */
        ck_assert_str_eq(found.items[0].places[1].text, "26 of 32 entries by the policy");
        ports[leaf[5]].n_wanted = LEAF_CAP + 1;
        ck_assert_ptr_nonnull(find(DIAGNOSIS_LEAF_OVERFLOW));
        ck_assert_int_eq(found.items[0].code, DIAGNOSIS_LEAF_OVERFLOW); /* worst first */
        ck_assert_uint_eq(found.n_errors, 1);
        ck_assert_uint_eq(found.n_warnings, 1);
        settings.enforcement_overflow = OVERFLOW_DISABLE; /* so the policy is not refused */
        diagnose();
        ck_assert_uint_eq(found.n_errors, 0);
        settings.enforcement_overflow = 0;
        settings.enforcement = ENFORCEMENT_OFF;
        diagnose();
        ck_assert_uint_eq(found.n_errors, 0);
}
END_TEST

/* --- enforcement ----------------------------------------------------------------------------------------------------- */

START_TEST(enforcement)
{
        const struct diagnosis *d;

        for (unsigned i = 1; i < 5; i++)
                subnet->ports[leaf[i]].enforce_inbound = subnet->ports[leaf[i]].enforce_outbound = false;
        subnet->ports[leaf[7]].enforce_inbound = subnet->ports[leaf[7]].enforce_outbound = false;
        d = only(DIAGNOSIS_ENFORCEMENT_OFF);
        ck_assert_uint_eq(d->n_places, 1);
        ck_assert_uint_eq(d->places[0].port, leaf0);
        ck_assert_str_eq(d->places[0].text, "5 ports: 2-5,8");
        for (unsigned i = 0; i < N_HOSTS; i++)
                subnet->ports[leaf[i]].enforce_inbound = true;
        ck_assert_str_eq(only(DIAGNOSIS_ENFORCEMENT_ONE_WAY)->places[0].text, "5 ports: 2-5,8");
        settings.enforcement = ENFORCEMENT_IN; /* as the settings demand */
        nothing();
        settings.enforcement = ENFORCEMENT_BOTH;
        subnet->nodes[subnet->ports[leaf0].node].outbound_enforcement_cap = false;
        nothing();
}
END_TEST

/* --- names ----------------------------------------------------------------------------------------------------------- */

static void rename_host(unsigned i, const char *description)
{
        names[i] = description;
        build();
}

START_TEST(twins)
{
        rename_host(3, "node4 mlx5_1"); /* a second adapter of one host */
        nothing();
        rename_host(3, "node4 mlx5_0");
        ck_assert_ptr_nonnull(strstr(only(DIAGNOSIS_NAME_TWICE)->places[0].text,
                                     "0x0000000000002003 and 0x0000000000002004"));
        rename_host(5, "node4 mlx5_0");
        ck_assert_uint_eq(only(DIAGNOSIS_NAME_TWICE)->n_places, 2);
        ck_assert_str_eq(only(DIAGNOSIS_NAME_TWICE)->title, "1 host name belongs to more than one node");
}
END_TEST

START_TEST(guid_in_two_places)
{
        struct subnet_node *leaf_node = &subnet->nodes[subnet->ports[leaf0].node];
        struct subnet_conflict conflicts[2] = {
                { .guid = { 0x77 }, .places = { { leaf_node->guid, 2 }, { leaf_node->guid, 63 } } },
                { .guid = { 0x78 }, .places = { { leaf_node->guid, 3 }, { leaf_node->guid, 4 } } },
        };
        const struct diagnosis *d;

        subnet->conflicts = conflicts;
        subnet->n_conflicts = 2;
        nothing(); /* neither second place is silent: a cable was moved */
        leaf_node->silent_ports[0] |= UINT64_C(1) << 63;
        d = only(DIAGNOSIS_NAME_GUID_TWICE);
        ck_assert_uint_eq(d->n_places, 1);
        ck_assert_ptr_nonnull(strstr(d->places[0].text, "0x0000000000000077: the device at "));
        ck_assert_ptr_nonnull(strstr(d->places[0].text, "/2, and the device at "));
        ck_assert_ptr_nonnull(strstr(d->places[0].text, "/63"));
}
END_TEST

START_TEST(twin_switches)
{
        struct subnet_node *leaf_node = &subnet->nodes[subnet->ports[leaf0].node];

        /* a host with the name of a switch is no twin of it */
        leaf_node->type = NODE_CA;
        nothing();
        rename_host(3, "leaf");
        nothing();
        subnet->nodes[subnet->ports[host[3]].node].type = NODE_SWITCH;
        (void) only(DIAGNOSIS_NAME_SWITCH_TWICE);
        /* a director's switches differ in the board */
        subnet->nodes[subnet->ports[leaf0].node].description = "MF0;leaf:CS8500/L01/U2";
        nothing();
}
END_TEST

START_TEST(nameless)
{
        static const char *const no_names[] = { "localhost mlx5_0", "MT4123 ConnectX6   Mellanox Technologies", "MT25408",
                                                "ConnectX-5 Ex", "", "(none) mlx5_0", "localhost.cluster mlx5_0" };

        rename_host(3, no_names[_i]);
        rename_host(4, no_names[_i]); /* and no twins */
        ck_assert_uint_eq(only(DIAGNOSIS_NAME_NONE)->n_places, 2);
        rename_host(3, "MTX1 ConnectX-7");
        rename_host(4, "Mellanox Technologies Aggregation Node"); /* not a host */
        nothing();
}
END_TEST

/* --- this host ------------------------------------------------------------------------------------------------------- */

START_TEST(files)
{
        static const char *const lines[] = { "pkeyd.yaml:1:1: no", "pkeyd.yaml:2:1: no" };
        const struct doctor_lines two = { lines, 2 };

        facts.host.policy_file.changeable = true;
        ck_assert_str_eq(only(DIAGNOSIS_FILE_CHANGEABLE)->places[0].text, "partitions.yaml");
        facts.host.policy_file.changeable = false;
        facts.host.unreadable = two;
        ck_assert_str_eq(only(DIAGNOSIS_FILE_UNREADABLE)->title, "the user pkeyd cannot read 2 of pkeyd's files");
        facts.host.unreadable.n = 0;
        facts.host.settings_errors = two;
        ck_assert_uint_eq(only(DIAGNOSIS_SETTINGS_REFUSED)->n_places, 2);
        facts.host.settings_errors.n = 0;
        facts.host.secret_errors = two;
        (void) only(DIAGNOSIS_SECRET_REFUSED);
        facts.host.secret_errors.n = 0;
        facts.host.policy_errors = two;
        ck_assert_str_eq(only(DIAGNOSIS_POLICY_REFUSED)->title, "the policy is refused (2 errors)");
        facts.host.policy_errors.n = 0;
        facts.host.policy_warnings = two;
        (void) only(DIAGNOSIS_POLICY_WARNINGS);
        facts.host.policy_warnings.n = 0;
        facts.host.policy_file.exists = false;
        (void) only(DIAGNOSIS_POLICY_NONE);
}
END_TEST

START_TEST(state_and_mode)
{
        facts.host.state_of_other_fabric = true;
        ck_assert_str_eq(only(DIAGNOSIS_STATE_DIR_OTHER_FABRIC)->places[0].text, "state");
        facts.host.state_of_other_fabric = false;
        facts.host.state_damaged = true;
        (void) only(DIAGNOSIS_STATE_DIR_DAMAGED);
        facts.host.state_dir.error = "Read-only file system";
        ck_assert_str_eq(only(DIAGNOSIS_STATE_DIR_UNUSABLE)->places[0].text, "state: Read-only file system");
        facts.host.state_dir = (struct doctor_file) {};
        nothing();
        facts.host.verbs_error = "no";
        (void) only(DIAGNOSIS_NO_VERBS);
        facts.host.verbs_error = NULL;
        settings.mode = MODE_AUDIT;
        (void) only(DIAGNOSIS_MODE_AUDIT);
}
END_TEST

START_TEST(opensm)
{
        static const char *const lines[] = { "partitions.conf:3:1: bad PortGUID" };
        struct doctor_opensm *o = &facts.host.opensm;

        o->odd = (struct doctor_lines) { lines, 1 };
        nothing(); /* there is no file to check */
        o->path = "partitions.conf";
        ck_assert_str_eq(only(DIAGNOSIS_OPENSM_ODD)->places[0].text, lines[0]);
        o->discarded = true;
        (void) only(DIAGNOSIS_OPENSM_DISCARDS);
        o->odd.n = 0;
        ck_assert_str_eq(only(DIAGNOSIS_OPENSM_DISCARDS)->places[0].text, "partitions.conf");
        o->discarded = false;
        nothing();
        o->is_edited = true;
        ck_assert_str_eq(only(DIAGNOSIS_OPENSM_EDITED)->places[0].text, "partitions.conf");
        o->is_edited = false;
        o->is_foreign = true;
        ck_assert_str_eq(only(DIAGNOSIS_OPENSM_FOREIGN)->places[0].text, "partitions.conf");
        o->is_foreign = false;
        o->instead_of = "other.conf";
        ck_assert_str_eq(only(DIAGNOSIS_OPENSM_ELSEWHERE)->title, "pkeyd writes other.conf, and OpenSM reads partitions.conf");
}
END_TEST

START_TEST(without_a_fabric)
{
        probe->sa[PROBE_SA_KEY_NONE].outcome = MAD_ANSWERED;
        facts.subnet = NULL;
        facts.observed = NULL;
        facts.probe = NULL;
        nothing();
        facts.host.policy_file.exists = false;
        (void) only(DIAGNOSIS_POLICY_NONE);
}
END_TEST

/* More places than are listed: these are counted. */
START_TEST(many_places)
{
        const char *lines[DOCTOR_MAX_PLACES + 5];
        const struct diagnosis *d;

        for (unsigned i = 0; i < ELEMENTS(lines); i++)
                lines[i] = "line";
        facts.host.policy_errors = (struct doctor_lines) { lines, ELEMENTS(lines) };
        d = only(DIAGNOSIS_POLICY_REFUSED);
        ck_assert_uint_eq(d->n_places, DOCTOR_MAX_PLACES);
        ck_assert_uint_eq(d->n_more, 5);
        ck_assert_uint_eq(d->n_ports, 0);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("doctor");
        TCase *t = tcase_create("diagnoses");
        SRunner *r = srunner_create(s);
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, all_is_well);
        tcase_add_test(t, every_code_has_its_words);
        tcase_add_loop_test(t, m_keys, 0, 8);
        tcase_add_test(t, a_port_that_says_nothing);
        tcase_add_test(t, sa_keys);
        tcase_add_test(t, subnet_managers);
        tcase_add_test(t, subnet_manager_beside_pkeyd);
        tcase_add_test(t, subnet_manager_that_ended);
        tcase_add_test(t, ports_that_obey_another);
        tcase_add_test(t, no_subnet_manager);
        tcase_add_test(t, default_full);
        tcase_add_test(t, default_full_for_some);
        tcase_add_test(t, self_is_limited);
        tcase_add_test(t, index0);
        tcase_add_test(t, stale_keys);
        tcase_add_test(t, stale_keys_of_a_switch_that_cannot_enforce);
        tcase_add_test(t, tables_that_differ);
        tcase_add_test(t, ports_that_are_frozen);
        tcase_add_test(t, capacity);
        tcase_add_test(t, capacity_of_both);
        tcase_add_test(t, capacity_by_policy);
        tcase_add_test(t, enforcement);
        tcase_add_test(t, twins);
        tcase_add_test(t, guid_in_two_places);
        tcase_add_test(t, twin_switches);
        tcase_add_loop_test(t, nameless, 0, 7);
        tcase_add_test(t, files);
        tcase_add_test(t, state_and_mode);
        tcase_add_test(t, opensm);
        tcase_add_test(t, without_a_fabric);
        tcase_add_test(t, many_places);
        suite_add_tcase(s, t);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
