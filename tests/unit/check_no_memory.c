/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs from the text of a policy and a topology to the plan, OpenSM's file and the knowledge of the ports, while each allocation
 * fails in turn. Each time the result is -ENOMEM, or the same as with enough memory. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fail_alloc.h"
#include "knowledge/table_records.h"
#include "leases/leases_internal.h"
#include "opensm/partitions_conf.h"
#include "opensm/partitions_file.h"
#include "plan/plan.h"
#include "reach/matrix.h"
#include "records/layout_records.h"
#include "settings/settings.h"
#include "verify/verify.h"

static const char topology[] = "vendid=0x0\ndevid=0x0\nsysimgguid=0x10\nswitchguid=0x10(10)\n"
                               "Switch 4 \"S-0000000000000010\" # \"leaf01\" base port 0 lid 9 lmc 0\n"
                               "[1] \"H-0000000000000020\"[1](21) # \"node1 mlx5_0\" lid 1\n"
                               "[2] \"H-0000000000000030\"[1](31) # \"node2 mlx5_0\" lid 2\n\n"
                               "vendid=0x0\ndevid=0x0\nsysimgguid=0x20\ncaguid=0x20\n"
                               "Ca 1 \"H-0000000000000020\" # \"node1 mlx5_0\"\n"
                               "[1](21) \"S-0000000000000010\"[1] # lid 1 lmc 0 \"leaf01\" lid 9\n\n"
                               "vendid=0x0\ndevid=0x0\nsysimgguid=0x30\ncaguid=0x30\n"
                               "Ca 1 \"H-0000000000000030\" # \"node2 mlx5_0\"\n"
                               "[1](31) \"S-0000000000000010\"[2] # lid 2 lmc 0 \"leaf01\" lid 9\n";
static const char policy_text[] = "version: 1\n"
                                  "owns: [0x7fff, 0x10-0x20]\n"
                                  "groups:\n"
                                  "  tenant: \"node[1-3]\"\n"
                                  "  some: [tenant, '@leaf01/1-2', 'nod?9*']\n"
                                  "partitions:\n"
                                  "  default:\n"
                                  "    pkey: 0x7fff\n"
                                  "    members: {ALL: limited, node1/mlx5_0/1: full}\n"
                                  "  a:\n"
                                  "    pkey: 0x0010\n"
                                  "    ipoib: {mtu: 4096, rate: 56}\n"
                                  "    members: {some: limited, 0x31: full}\n"
                                  "  b:\n"
                                  "    pkey: 0x0011\n"
                                  "    members: {node2: both}\n";
static const char settings_text[] = "mode: enforce\nenforcement: 'off'\nabsent_hold: 20m\nwriter: opensm\n"
                                    "opensm: {partitions_conf: /etc/p.conf, reload: 'pid:7', config: /etc/opensm.conf}\n";

/* --- the steps --------------------------------------------------------------------------------------------------------- */

static int read_texts(struct arena *a, struct findings *f, struct settings **ret_settings, struct policy **ret_policy,
                      struct subnet **ret_subnet)
{
        int r = settings_parse(a, "pkeyd.yaml", settings_text, strlen(settings_text), f, ret_settings);

        if (r == 0)
                r = policy_parse(a, "partitions.yaml", policy_text, strlen(policy_text), f, ret_policy);
        if (r == 0)
                r = subnet_parse_topology(a, "topology", topology, strlen(topology), f, ret_subnet);
        for (uint32_t i = 0; r == 0 && i < (*ret_subnet)->n_nodes; i++)
                (*ret_subnet)->nodes[i].partition_cap = P_KEY_BLOCK_ENTRIES;
        return r;
}

static int make_plan(struct arena *a, const struct desired *desired, struct findings *f, size_t *ret_writes, size_t *ret_wrong)
{
        const struct plan_options options = { .unmanaged = UNMANAGED_REMOVE };
        struct verification *v;
        struct observed *o;
        struct plan *plan;
        int r = observed_new(a, desired->subnet, &o);

        for (uint32_t i = 0; r == 0 && i < desired->subnet->n_ports; i++)
                if (o->tables[i].entries)
                        o->tables[i].source = TABLE_READ;
        if (r == 0)
                r = plan_compute(a, desired, o, NULL, &options, f, &plan);
        if (r == 0)
                r = verify_compare(a, desired, o, &options, &v);
        if (r < 0)
                return r;
        *ret_writes = plan->n_block_writes;
        *ret_wrong = v->n_differ;
        return 0;
}

static int export(struct arena *a, const struct policy *policy, const struct desired *desired, struct findings *f, const char **ret,
                  size_t *ret_n)
{
        struct partitions_file_port *ports;
        struct partitions_file file;
        uint32_t n;
        int r = partitions_file_collect(a, desired->subnet, desired->ports, &ports, &n);

        if (r == 0)
                r = partitions_file_from_ports(a, policy, NULL, ports, n, &file);
        return r < 0 ? r : partitions_file_render(a, &file, true, f, ret, ret_n);
}

struct outcome {
        size_t n_findings, n_writes, n_wrong, n_partitions;
        char *file;
};

static int go(struct arena *a, struct findings *f, struct outcome *ret)
{
        struct memberships *memberships;
        struct partitions_conf *conf;
        struct settings *settings;
        struct desired *desired;
        struct policy *policy;
        struct subnet *subnet;
        const char *bytes;
        size_t n;
        int r = read_texts(a, f, &settings, &policy, &subnet);

        if (r == 0)
                r = policy_resolve(a, policy, subnet, f, &memberships);
        if (r == 0)
                r = desired_compute(a, memberships, &desired);
        if (r == 0)
                r = make_plan(a, desired, f, &ret->n_writes, &ret->n_wrong);
        if (r == 0)
                r = export(a, policy, desired, f, &bytes, &n);
        if (r == 0)
                r = partitions_conf_parse(a, OPENSM_NUMBERS_UNKNOWN, "partitions.conf", bytes, n, f, &conf);
        if (r < 0)
                return r;
        ret->n_findings = f->n;
        ret->n_partitions = conf->n_partitions;
        ret->file = arena_strdup(a, bytes);
        return f->out_of_memory || !ret->file ? -ENOMEM : 0;
}

/* --- with failing allocations -------------------------------------------------------------------------------------------- */

START_TEST(each_allocation)
{
        _cleanup_arena_ struct arena *first = arena_new();
        _cleanup_findings_ struct findings all = { .arena = first };
        struct outcome with = {};
        unsigned n = 0;

        ck_assert_msg(go(first, &all, &with) == 0, "%s", all.n > 0 ? finding_format(first, &all.items[all.n - 1]) : "no memory");
        ck_assert_uint_gt(with.n_writes, 0);
        ck_assert_uint_eq(with.n_partitions, 3);
        do {
                _cleanup_arena_ struct arena *a = arena_new();
                _cleanup_findings_ struct findings f = { .arena = a };
                struct outcome without = {};
                int r;

                fail_alloc_at(++n);
                fail_alloc_enter();
                r = go(a, &f, &without);
                fail_alloc_leave();
                if (r == 0) {
                        ck_assert_uint_eq(without.n_findings, with.n_findings);
                        ck_assert_uint_eq(without.n_writes, with.n_writes);
                        ck_assert_uint_eq(without.n_wrong, with.n_wrong);
                        ck_assert_str_eq(without.file, with.file);
                } else {
                        ck_assert_msg(r == -ENOMEM || (r == -EBADMSG && f.out_of_memory), "allocation %u: %d", n, r);
                }
        } while (fail_alloc_happened());
        ck_assert_uint_gt(n, 250);
}
END_TEST

/* --- knowledge ----------------------------------------------------------------------------------------------------------- */

/* Ports that were read, one with an unconfirmed write, one that a person vouched for. */
static int learn(struct knowledge *k, const struct observed *o, const struct desired *desired)
{
        const struct p_key entries[P_KEY_BLOCK_ENTRIES] = { { 0xffff }, { 0x8010 } };
        int r = k ? knowledge_see_subnet(k, o->subnet, 1, 1, USEC_INFINITY) : -ENOMEM;

        if (r == 0)
                r = knowledge_see_tables(k, o, 1);
        if (r == 0)
                r = knowledge_expect_block(k, 0, 0, entries);
        if (r < 0)
                return r;
        knowledge_settle_expected(k, true);
        r = knowledge_vouch(k, knowledge_n_records(k) - 1, "root", 1);
        return r < 0 ? r : knowledge_set_policy(k, desired);
}

static struct knowledge *know(const struct observed *o, const struct desired *desired)
{
        struct knowledge *k = knowledge_new(), *copy = NULL;

        if (learn(k, o, desired) == 0)
                copy = knowledge_copy(k);
        (void) knowledge_free(k);
        return copy;
}

static void expect_same(struct arena *a, const struct knowledge *x, const struct knowledge *y)
{
        const struct p_key entries[P_KEY_BLOCK_ENTRIES] = {};
        struct store_transaction s, t;

        store_transaction_init(&s, a);
        store_transaction_init(&t, a);
        knowledge_store(x, "boot", &s);
        knowledge_store(y, "boot", &t);
        ck_assert_int_eq(s.error, 0);
        ck_assert_int_eq(t.error, 0);
        ck_assert_uint_eq(s.n, t.n);
        ck_assert_uint_ge(s.n, knowledge_n_records(x));
        for (size_t i = 0; i < s.n; i++) {
                ck_assert_str_eq(s.ops[i].key, t.ops[i].key);
                ck_assert_uint_eq(s.ops[i].n, t.ops[i].n);
                ck_assert_mem_eq(s.ops[i].value, t.ops[i].value, s.ops[i].n);
        }
        for (uint32_t i = 0; i < knowledge_n_records(x); i++)
                for (uint16_t base = 0x10; base < 0x12; base++)
                        ck_assert_int_eq(knowledge_judge_block(x, i, 0, entries, base),
                                         knowledge_judge_block(y, i, 0, entries, base));
}

/* Every table was read, and has no entry. */
static void observe(struct arena *a, struct observed **ret, struct desired **ret_desired)
{
        _cleanup_findings_ struct findings f = { .arena = a };
        struct memberships *memberships;
        struct settings *settings;
        struct policy *policy;
        struct subnet *subnet;

        ck_assert_int_eq(read_texts(a, &f, &settings, &policy, &subnet), 0);
        for (uint32_t i = 0; i < subnet->n_nodes; i++)
                if (subnet->nodes[i].type == NODE_SWITCH) {
                        subnet->nodes[i].partition_enforcement_cap = P_KEY_BLOCK_ENTRIES;
                        subnet->nodes[i].inbound_enforcement_cap = true;
                }
        ck_assert_int_eq(policy_resolve(a, policy, subnet, &f, &memberships), 0);
        ck_assert_int_eq(desired_compute(a, memberships, ret_desired), 0);
        ck_assert_int_eq(observed_new(a, subnet, ret), 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                if ((*ret)->tables[i].entries)
                        (*ret)->tables[i].source = TABLE_READ;
}

START_TEST(each_allocation_of_knowledge)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct knowledge *whole, *k;
        struct desired *desired;
        struct observed *o;
        unsigned n = 0;

        observe(a, &o, &desired);
        whole = know(o, desired);
        ck_assert(whole && knowledge_n_records(whole) == 5);
        do {
                fail_alloc_at(++n);
                fail_alloc_enter();
                k = know(o, desired);
                fail_alloc_leave();
                ck_assert_msg(k || fail_alloc_happened(), "allocation %u", n);
                if (k)
                        expect_same(a, whole, k);
                (void) knowledge_free(k);
        } while (fail_alloc_happened());
        ck_assert_uint_gt(n, 20);
        (void) knowledge_free(whole);
}
END_TEST

/* A part of the pairs would look like all of them. */
START_TEST(each_allocation_of_reach)
{
        static const struct p_key some[P_KEY_BLOCK_ENTRIES] = { { 0x8010 }, { 0x11 } };
        _cleanup_arena_ struct arena *a = arena_new();
        struct reach_table *before, *after;
        struct reach_set all = {};
        struct desired *desired;
        struct observed *o;
        uint32_t ports[2];
        unsigned n = 0;
        bool happened;

        observe(a, &o, &desired);
        before = reach_observed(a, o);
        after = reach_observed(a, o);
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (o->subnet->ports[i].guid.v == 0x21 || o->subnet->ports[i].guid.v == 0x31) {
                        after[i].entries = some;
                        ports[all.n++] = i;
                }
        all.ports = ports;
        do {
                _cleanup_arena_ struct arena *scratch = arena_new();
                const struct reach_cell *cells;
                struct reach_changes changes;
                struct reach_kind *kinds;
                uint32_t n_kinds;
                int r;

                fail_alloc_at(++n);
                fail_alloc_enter();
                r = reach_compare(scratch, o->subnet, before, after, &changes) ?:
                    reach_kinds(scratch, o->subnet, after, &all, 1, &kinds, &n_kinds) ?:
                    reach_matrix(scratch, o->subnet, after, &all, 1, &cells);
                fail_alloc_leave();
                happened = fail_alloc_happened();
                ck_assert_int_eq(r, happened ? -ENOMEM : 0);
        } while (happened);
        ck_assert_uint_gt(n, 20);
}
END_TEST

/* A partial discovery would lose ports: the result is complete, or an error. */
START_TEST(each_allocation_of_a_discovery)
{
        const struct knowledge_name host = { { 0x20 }, 1, KNOWLEDGE_ENDPORT };
        unsigned n = 0;
        bool happened;

        do {
                _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
                _cleanup_arena_ struct arena *a = arena_new();
                struct subnet none = {};
                struct desired *desired;
                struct observed *o;
                int r;

                observe(a, &o, &desired);
                for (uint32_t i = 0; i < o->subnet->n_nodes; i++) /* where nothing was before */
                        if (o->subnet->nodes[i].type == NODE_SWITCH)
                                ((struct subnet *) o->subnet)->nodes[i].silent_ports[0] |= UINT64_C(1) << 30;
                ck_assert_int_eq(knowledge_see_subnet(k, &none, 1, 1, USEC_INFINITY), 0);
                ck_assert_uint_eq(knowledge_n_records(k), 0);
                fail_alloc_at(++n);
                fail_alloc_enter();
                r = knowledge_see_subnet(k, o->subnet, 1, 1, USEC_INFINITY);
                fail_alloc_leave();
                happened = fail_alloc_happened();
                ck_assert_int_eq(r, happened ? -ENOMEM : 0);
                ck_assert_int_eq(knowledge_n_records(k) == 0, happened);
                ck_assert_int_eq(knowledge_see_subnet(k, o->subnet, 2, 2, USEC_INFINITY), 0);
                ck_assert_int_eq(knowledge_get(k, knowledge_find(k, host))->presence, KNOWLEDGE_THERE);
                fail_alloc_at(n);
                fail_alloc_enter();
                r = knowledge_see_subnet(k, &none, 3, 3, USEC_INFINITY);
                fail_alloc_leave();
                ck_assert_int_eq(knowledge_get(k, knowledge_find(k, host))->presence,
                                 r < 0 ? KNOWLEDGE_THERE : KNOWLEDGE_ABSENT);
        } while (happened);
        ck_assert_uint_gt(n, 4);
}
END_TEST

START_TEST(each_allocation_of_a_table_before)
{
        static const char key[] = "before/00000000000000000004/0x0000000000000020/001", value[] = "ffff00008010";
        unsigned n = 0;
        bool happened;

        do {
                _cleanup_arena_ struct arena *a = arena_new();
                struct layout l = { .arena = a };
                int r;

                fail_alloc_at(++n);
                fail_alloc_enter();
                r = before_record_read(&l, 3, key, value, strlen(value));
                fail_alloc_leave();
                happened = fail_alloc_happened();
                ck_assert_int_eq(r, happened ? -ENOMEM : 0);
                ck_assert_uint_eq(l.n, !happened);
        } while (happened);
        ck_assert_uint_gt(n, 2);
}
END_TEST

/* If an allocation failed while something was counted, it must not be subtracted later, when there is memory again. */
START_TEST(uncounted_and_taken_away)
{
        const struct p_key none[P_KEY_BLOCK_ENTRIES] = {}, open[P_KEY_BLOCK_ENTRIES] = { { 0x8010 }, { 0x8011 } };

        for (unsigned n = 1; n < 12; n++) {
                _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
                _cleanup_arena_ struct arena *a = arena_new();
                struct desired *desired;
                struct observed *o;
                uint32_t host;

                observe(a, &o, &desired);
                ck_assert_int_eq(knowledge_see_subnet(k, o->subnet, 1, 1, USEC_INFINITY), 0);
                ck_assert_int_eq(knowledge_see_tables(k, o, 1), 0);
                ck_assert_int_eq(knowledge_set_policy(k, NULL), 0);
                host = knowledge_find(k, (struct knowledge_name) { { 0x20 }, 1, KNOWLEDGE_ENDPORT });
                ck_assert_int_eq(knowledge_expect_block(k, host, 0, none), 0); /* there is room for a write */
                knowledge_settle_expected(k, false);
                fail_alloc_from(n);
                fail_alloc_enter();
                (void) knowledge_expect_block(k, host, 0, open);
                fail_alloc_leave();
                fail_alloc_at(0);
                knowledge_see_block(k, host, 0, open);
                knowledge_see_block(k, host, 0, none);
        }
}
END_TEST

/* If a base could not be counted, the counts are not known: no write and no arriving port is admitted, in any base, until all are
 * counted again. */
START_TEST(uncounted)
{
        const struct p_key open[P_KEY_BLOCK_ENTRIES] = { { 0x8010 } }, other[P_KEY_BLOCK_ENTRIES] = { { 0x8011 } };
        unsigned n = 0, n_uncounted = 0;
        bool happened;

        do {
                _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
                _cleanup_arena_ struct arena *a = arena_new();
                struct desired *desired;
                struct observed *o;
                uint32_t host;
                int r;

                observe(a, &o, &desired);
                ck_assert_int_eq(knowledge_see_subnet(k, o->subnet, 1, 1, USEC_INFINITY), 0);
                ck_assert_int_eq(knowledge_see_tables(k, o, 1), 0);
                ck_assert_int_eq(knowledge_set_policy(k, NULL), 0);
                host = knowledge_find(k, (struct knowledge_name) { { 0x20 }, 1, KNOWLEDGE_ENDPORT });
                ck_assert_int_eq(knowledge_judge_block(k, host, 0, other, 0x11), RULE_ADMITS);
                fail_alloc_at(++n);
                fail_alloc_enter();
                r = knowledge_expect_block(k, host, 0, open);
                fail_alloc_leave();
                happened = fail_alloc_happened();
                ck_assert(r == 0 || happened);
                if (r == 0) {
                        enum rule_verdict expected = happened ? RULE_GAIN : RULE_ADMITS;

                        ck_assert_int_eq(knowledge_judge_block(k, host, 0, other, 0x11), expected);
                        ck_assert_int_eq(knowledge_judge_arrival(k, KNOWLEDGE_NONE, 0x11, LEVEL_FULL, LEVEL_FULL), expected);
                        n_uncounted += happened;
                        ck_assert_int_eq(knowledge_set_policy(k, NULL), 0);
                        ck_assert_int_eq(knowledge_judge_block(k, host, 0, other, 0x11), RULE_ADMITS);
                        ck_assert_int_eq(knowledge_judge_arrival(k, KNOWLEDGE_NONE, 0x11, LEVEL_FULL, LEVEL_FULL), RULE_ADMITS);
                }
        } while (happened);
        ck_assert_uint_gt(n_uncounted, 0);
}
END_TEST

/* All ports are stored again, or the result is -ENOMEM. */
START_TEST(each_allocation_of_what_is_to_be_stored)
{
        unsigned fails = 0;
        bool happened;

        do {
                _cleanup_index_memory_ struct index_memory *m = index_memory_new();
                size_t n;
                int r;

                for (uint64_t i = 0; i < 200; i++)
                        ck_assert_int_eq(index_memory_restore(m, &(struct freed_index) {
                                .node_guid = { i + 1 }, .port = 1, .index = 5, .base = 0x10, .sequence = i,
                        }), 0);
                fail_alloc_at(++fails);
                fail_alloc_enter();
                r = index_memory_unstore(m);
                fail_alloc_leave();
                happened = fail_alloc_happened();
                ck_assert_int_eq(r, happened ? -ENOMEM : 0);
                (void) index_memory_unstored(m, &n);
                ck_assert(happened || n == 200);
        } while (happened);
        ck_assert_uint_gt(fails, 2);
}
END_TEST

/* There is room for an answer to each caller, since it waits; so it gets one without more memory. */
START_TEST(callers_that_wait_for_leases)
{
        _cleanup_(leases_free_p) struct leases *l = leases_new();
        struct findings findings = {};
        struct lease_answer answer;
        unsigned n = 0, n_answers = 0;

        for (uint16_t i = 1; i <= 64 / LEASE_MAX_WAITERS; i++) {
                struct lease *lease = lease_new();

                lease->id = arena_printf(lease->arena, "lease%d", i);
                lease->base = i;
                ck_assert_int_eq(leases_restore(l, lease), 0);
                for (unsigned k = 0; k < LEASE_MAX_WAITERS; k++)
                        ck_assert_int_eq(lease_wait(l, lease, &(struct lease_waiter) { .request = ++n }, &findings), 0);
        }
        fail_alloc_from(1);
        fail_alloc_enter();
        leases_pass_on(l, l);
        fail_alloc_leave();
        while (leases_next_answer(l, &answer))
                n_answers++;
        ck_assert_uint_eq(n_answers, n);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("no_memory");
        TCase *t = tcase_create("each");
        SRunner *sr;
        int failed;

        tcase_add_test(t, each_allocation);
        tcase_add_test(t, each_allocation_of_knowledge);
        tcase_add_test(t, each_allocation_of_reach);
        tcase_add_test(t, each_allocation_of_a_discovery);
        tcase_add_test(t, each_allocation_of_a_table_before);
        tcase_add_test(t, uncounted_and_taken_away);
        tcase_add_test(t, uncounted);
        tcase_add_test(t, each_allocation_of_what_is_to_be_stored);
        tcase_add_test(t, callers_that_wait_for_leases);
        tcase_set_timeout(t, 120);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
