/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leases as partitions, and changes as edits of leases. */
#include <errno.h>
#include <string.h>

#include "arena_fixture.h"
#include "fail_alloc.h"
#include "policy/selector.h"
#include "rest/rest_edit.h"
#include "rest/rest_view.h"

static struct rest_member members[] = { { { 1 }, MEMBERSHIP_FULL, true, "node01" }, { { 2 }, MEMBERSHIP_LIMITED, false, NULL } };

/* --- views ------------------------------------------------------------------------------------------------------------ */

static struct rest_lease lease_of(const char *id, uint16_t base)
{
        return (struct rest_lease) { .id = id, .state = "active", .base = base, .is_open = true, .members = members, .n_members = 2 };
}

static struct rest_view view_of(const struct rest_lease *leases, size_t n)
{
        struct rest_view view = {};

        ck_assert_int_eq(rest_view_add_leases(arena, leases, n, &view), 0);
        return view;
}

START_TEST(partitions)
{
        struct rest_lease leases[] = { lease_of("rest:0x0012", 0x12), lease_of("tenant", 0x11), lease_of("rest:0x0011", 0x10) };
        struct rest_view v;

        leases[0].ip_over_ib = true;
        leases[0].qos = (struct rest_qos) { 4, 3, 2000 };
        leases[1].state = "granting";
        leases[1].updated = 1700000000 * USEC_PER_SEC;
        leases[2].updated = 1600000000 * USEC_PER_SEC;
        v = view_of(leases, 3);
        ck_assert_uint_eq(v.n_partitions, 3);
        ck_assert_uint_eq(v.partitions[0].base, 0x10);
        ck_assert_uint_eq(v.partitions[1].base, 0x11);
        ck_assert_uint_eq(v.partitions[2].base, 0x12);
        ck_assert_str_eq(v.partitions[0].name, "rest:0x0011");
        ck_assert_str_eq(v.partitions[1].name, "tenant");
        ck_assert_str_eq(v.partitions[1].lease, "tenant");
        ck_assert_ptr_null(v.partitions[2].name);
        ck_assert_str_eq(v.partitions[2].lease, "rest:0x0012");
        ck_assert(v.partitions[2].ip_over_ib && !v.partitions[1].ip_over_ib);
        ck_assert_uint_eq(v.partitions[2].qos.rate_limit, 2000);
        ck_assert_ptr_eq(v.partitions[2].members, members);
        ck_assert_uint_eq(v.partitions[2].n_members, 2);
        ck_assert_str_eq(v.last_updated, "Tue Nov 14 22:13:20 UTC 2023");
        leases[1].updated = leases[2].updated = 0;
        ck_assert_ptr_null(view_of(leases, 3).last_updated);
}
END_TEST

START_TEST(leases_that_are_no_partitions)
{
        struct rest_lease leases[] = { lease_of("a", 1), lease_of("b", 2), lease_of("c", 3) };

        leases[0].is_open = false;
        leases[1].state = "releasing";
        leases[2].state = "ended";
        ck_assert_uint_eq(view_of(leases, 3).n_partitions, 0);
        ck_assert_uint_eq(view_of(NULL, 0).n_partitions, 0);
}
END_TEST

/* A partition exists while it has members, or if it was made without. */
START_TEST(hidden)
{
        struct rest_lease leases[] = { lease_of("a", 1), lease_of("b", 2), lease_of("c", 3) };
        struct rest_view v;

        leases[0].n_members = leases[1].n_members = 0;
        leases[1].is_kept = true;
        v = view_of(leases, 3);
        ck_assert(v.partitions[0].is_hidden && !v.partitions[1].is_hidden && !v.partitions[2].is_hidden);
}
END_TEST

START_TEST(labels)
{
        ck_assert_str_eq(rest_host_of_label(arena, "node0001 mlx5_0/1"), "node0001");
        ck_assert_str_eq(rest_host_of_label(arena, "leaf07/12"), "leaf07");
        ck_assert_str_eq(rest_host_of_label(arena, "node7"), "node7");
        ck_assert_str_eq(rest_host_of_label(arena, ""), "");
}
END_TEST

/* --- edits ------------------------------------------------------------------------------------------------------------ */

static struct rest_edit edit_of(const struct rest_change *c, const struct rest_view *v)
{
        struct rest_edit e;

        ck_assert_int_eq(rest_edit_make(arena, c, v, &e), 0);
        ck_assert_uint_eq(e.base, c->base);
        return e;
}

static const struct rest_view empty = {};

START_TEST(ids)
{
        struct rest_lease leases[] = { lease_of("tenant", 0x11), lease_of("rest:0x0012", 0x12) };
        struct rest_view v = view_of(leases, 2);

        ck_assert_str_eq(edit_of(&(struct rest_change) { .base = 0x11 }, &v).id, "tenant");
        ck_assert_str_eq(edit_of(&(struct rest_change) { .base = 0x12 }, &v).id, "rest:0x0012");
        ck_assert_str_eq(edit_of(&(struct rest_change) { .base = 0x7f0e }, &v).id, "rest:0x7f0e");
}
END_TEST

/* Clients know partitions; a lease with another ID is one that an admin made. */
START_TEST(texts)
{
        static const char *const cases[][2] = {
                { "there is no lease rest:0x0006", "there is no partition 0x0006" },
                { "lease rest:0x0006 is being released (released by rest:kube)", "partition 0x0006 is being released (released by rest:kube)" },
                { "P_Key 0x0006 is that of lease rest:0x0006, not of lease rest:0x0007; lease mine",
                  "P_Key 0x0006 is that of partition 0x0006, not of partition 0x0007; lease mine" },
                { "", "" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                ck_assert_str_eq(rest_edit_translate(arena, cases[i][0]), cases[i][1]);
}
END_TEST

START_TEST(groups)
{
        static const struct rest_member many[] = { { { 1 }, MEMBERSHIP_FULL, true, NULL },
                                                   { { 2 }, MEMBERSHIP_LIMITED, false, NULL },
                                                   { { 0xf452140300188540 }, MEMBERSHIP_FULL, true, NULL },
                                                   { { 4 }, MEMBERSHIP_FULL, false, NULL } };
        struct rest_edit e = edit_of(&(struct rest_change) { .base = 1, .members = many, .n_members = 4 }, &empty);

        ck_assert_uint_eq(e.n_groups, 3);
        ck_assert_str_eq(e.groups[0].selectors, "0x2");
        ck_assert(e.groups[0].membership == MEMBERSHIP_LIMITED && !e.groups[0].index0);
        ck_assert_str_eq(e.groups[1].selectors, "0x4");
        ck_assert(e.groups[1].membership == MEMBERSHIP_FULL && !e.groups[1].index0);
        ck_assert_str_eq(e.groups[2].selectors, "0x1,0xf452140300188540");
        ck_assert(e.groups[2].membership == MEMBERSHIP_FULL && e.groups[2].index0);
        ck_assert_uint_eq(edit_of(&(struct rest_change) { .base = 1 }, &empty).n_groups, 0);
}
END_TEST

/* pkeyd bounds the text of one group. */
START_TEST(large_groups)
{
        struct rest_member *many = arena_new_array(arena, struct rest_member, REST_MAX_GUIDS);
        struct rest_change c = { .base = 1, .members = many, .n_members = REST_MAX_GUIDS };
        struct rest_edit e;
        size_t n = 0;

        for (uint32_t i = 0; i < REST_MAX_GUIDS; i++)
                many[i] = (struct rest_member) { .guid = { UINT64_MAX - REST_MAX_GUIDS + i }, .membership = MEMBERSHIP_FULL };
        for (uint32_t wanted = 8; wanted <= 9; wanted++) {
                e = edit_of(&c, &empty);
                ck_assert_uint_eq(e.n_groups, wanted);
                n = 0;
                for (size_t i = 0; i < e.n_groups; i++) {
                        size_t before = n;

                        ck_assert_uint_le(strlen(e.groups[i].selectors), 200000);
                        for (const char *p = e.groups[i].selectors; p; p = strchr(p + 1, ','))
                                n++;
                        ck_assert_uint_le(n - before, SELECTOR_MAX_ELEMENTS);
                }
                ck_assert_uint_eq(n, REST_MAX_GUIDS);
                many[0].index0 = true;
        }
}
END_TEST

static const struct {
        enum rest_kind kind;
        const char *what;
        bool is_new, says_ip_over_ib;
        bool has_ip_over_ib, has_keep, keep, must_exist;
} edits[] = {
        { REST_ADD, "add", true, false, true, true, false, false },
        { REST_ADD, "add", false, false, false, false, false, false },
        { REST_ADD, "add", false, true, true, false, false, false },
        { REST_REPLACE, "set", true, false, true, true, false, false },
        { REST_REPLACE, "set", false, false, false, false, false, false },
        { REST_CREATE, "add", true, false, true, true, true, false },
        { REST_CREATE, "add", false, false, false, true, true, false },
        { REST_REMOVE, "remove", false, false, false, false, false, false },
        { REST_REMOVE, "remove", true, false, false, false, false, false },
        { REST_SET_QOS, "add", false, false, false, false, false, true },
        { REST_DELETE, NULL, false, false, false, false, false, false },
};

START_TEST(options)
{
        const struct rest_lease lease = lease_of("rest:0x0011", 0x11);
        const struct rest_view v = view_of(&lease, 1);
        const struct rest_change c = { .kind = edits[_i].kind, .base = edits[_i].is_new ? 0x12 : 0x11, .ip_over_ib = true,
                                       .has_ip_over_ib = edits[_i].says_ip_over_ib, .qos = { 2, 1, 100 } };
        struct rest_edit e = edit_of(&c, &v);

        if (edits[_i].what)
                ck_assert_str_eq(e.what, edits[_i].what);
        else
                ck_assert_ptr_null(e.what);
        ck_assert(e.has_ip_over_ib == edits[_i].has_ip_over_ib && e.ip_over_ib == (e.has_ip_over_ib || e.ip_over_ib));
        ck_assert(e.has_keep == edits[_i].has_keep && e.keep == edits[_i].keep && e.must_exist == edits[_i].must_exist);
        ck_assert_uint_eq(e.qos.mtu_limit, c.kind == REST_SET_QOS || c.kind == REST_CREATE ? 2 : 0);
        ck_assert_uint_eq(e.qos.rate_limit, c.kind == REST_SET_QOS || c.kind == REST_CREATE ? 100 : 0);
}
END_TEST

/* Members come into a partition that clients did not see: it is as a new one. */
START_TEST(hidden_is_new)
{
        struct rest_lease lease = lease_of("tenant", 0x11);
        struct rest_view v;
        struct rest_edit e;

        lease.n_members = 0;
        v = view_of(&lease, 1);
        e = edit_of(&(struct rest_change) { .kind = REST_ADD, .base = 0x11, .ip_over_ib = true }, &v);
        ck_assert_str_eq(e.id, "tenant");
        ck_assert(e.has_ip_over_ib && e.ip_over_ib);
        ck_assert_uint_eq(e.qos.mtu_limit, 0); /* it has none */
}
END_TEST

/* A new partition does not get the QoS that the former one had. */
START_TEST(hidden_qos)
{
        struct rest_change c = { .kind = REST_ADD, .base = 0x11, .members = members, .n_members = 2 };
        struct rest_lease lease = lease_of("rest:0x0011", 0x11);
        struct rest_view v;
        struct rest_edit e;

        lease.qos = (struct rest_qos) { 4, 3, 2000 };
        v = view_of(&lease, 1);
        ck_assert_uint_eq(edit_of(&c, &v).qos.mtu_limit, 0);
        lease.n_members = 0;
        v = view_of(&lease, 1);
        for (c.kind = REST_ADD; c.kind <= REST_DELETE; c.kind++) {
                bool makes = c.kind == REST_ADD || c.kind == REST_REPLACE || c.kind == REST_CREATE;

                e = edit_of(&c, &v);
                ck_assert_uint_eq(e.qos.mtu_limit, makes ? REST_DEFAULT_MTU_LIMIT : 0);
                ck_assert_uint_eq(e.qos.rate_limit, makes ? REST_DEFAULT_RATE_LIMIT : 0);
                ck_assert_uint_eq(e.qos.service_level, 0);
        }
        c = (struct rest_change) { .kind = REST_CREATE, .base = 0x11, .qos = { 2, 1, 100 } };
        ck_assert_uint_eq(edit_of(&c, &v).qos.rate_limit, 100);
}
END_TEST

START_TEST(no_such_partition)
{
        struct rest_lease leases[] = { lease_of("a", 0x11), lease_of("b", 0x12) };
        struct rest_view v;

        leases[1].n_members = 0;
        v = view_of(leases, 2);
        ck_assert(!rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_DELETE, .base = 0x11 }, &v));
        ck_assert(rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_DELETE, .base = 0x12 }, &v));
        ck_assert(rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_DELETE, .base = 0x13 }, &v));
        ck_assert(!rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_REMOVE, .base = 0x12 }, &v));
        ck_assert(!rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_REMOVE, .base = 0x13 }, &v));
        ck_assert(!rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_SET_QOS, .base = 0x11 }, &v));
        ck_assert(rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_SET_QOS, .base = 0x12 }, &v));
        ck_assert(!rest_edit_lacks_partition(&(struct rest_change) { .kind = REST_SET_QOS, .base = 0x13 }, &v)); /* pkeyd answers */
}
END_TEST

static const struct {
        enum rest_kind kind;
        const char *outcome, *code;
        enum rest_outcome wanted;
} outcomes[] = {
        { REST_ADD, "edited", NULL, REST_STORED },
        { REST_DELETE, "released", NULL, REST_STORED },
        { REST_DELETE, "releasing", NULL, REST_STORED },
        { REST_ADD, "refused", "lease.none", REST_NOT_FOUND },
        { REST_DELETE, "refused", "lease.none", REST_NOT_FOUND },
        { REST_SET_QOS, "refused", "lease.none", REST_NOT_FOUND },
        { REST_REMOVE, "refused", "lease.none", REST_STORED }, /* ib-kubernetes tries until it is 200 */
        { REST_REMOVE, "refused", "lease.p-key", REST_REFUSED },
        { REST_ADD, "refused", "lease.exists", REST_CONFLICT },
        { REST_ADD, "refused", "lease.index0-taken", REST_CONFLICT },
        { REST_ADD, "refused", "lease.index0", REST_REFUSED }, /* the pool does not have it */
        { REST_ADD, "refused", "lease.not-now", REST_UNAVAILABLE },
        { REST_ADD, "refused", "lease.ports", REST_REFUSED },
        { REST_ADD, "refused", NULL, REST_UNAVAILABLE },
        { REST_ADD, "failed", NULL, REST_UNAVAILABLE },
        { REST_ADD, "granted", NULL, REST_UNAVAILABLE },
        { REST_ADD, "", "lease.none", REST_UNAVAILABLE },
};

START_TEST(answers)
{
        const struct rest_change c = { .kind = outcomes[_i].kind };

        ck_assert_int_eq(rest_edit_outcome(&c, outcomes[_i].outcome, outcomes[_i].code), outcomes[_i].wanted);
}
END_TEST

/* Each allocation fails in turn. */
START_TEST(no_memory)
{
        static struct fail_alloc_state state;
        struct rest_lease lease = lease_of("tenant", 0x11);
        const struct rest_change c = { .base = 0x12, .members = members, .n_members = 2 };
        unsigned n = 0;

        lease.updated = 1;
        fail_alloc_use(&state);
        for (bool failed = true; failed; n++) {
                struct rest_view v = {};
                struct rest_edit e;
                int r;

                fail_alloc_at(n + 1);
                fail_alloc_enter();
                r = rest_view_add_leases(arena, &lease, 1, &v) ?: rest_edit_make(arena, &c, &v, &e);
                fail_alloc_leave();
                failed = fail_alloc_happened();
                fail_alloc_at(0);
                ck_assert_int_eq(r, failed ? -ENOMEM : 0);
        }
        ck_assert_uint_gt(n, 4);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("rest_edit");
        TCase *t = tcase_create("rest_edit");
        SRunner *runner = srunner_create(suite);
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, partitions);
        tcase_add_test(t, leases_that_are_no_partitions);
        tcase_add_test(t, hidden);
        tcase_add_test(t, labels);
        tcase_add_test(t, ids);
        tcase_add_test(t, texts);
        tcase_add_test(t, groups);
        tcase_add_test(t, large_groups);
        tcase_add_loop_test(t, options, 0, ELEMENTS(edits));
        tcase_add_test(t, hidden_is_new);
        tcase_add_test(t, hidden_qos);
        tcase_add_test(t, no_such_partition);
        tcase_add_loop_test(t, answers, 0, ELEMENTS(outcomes));
        tcase_add_test(t, no_memory);
        suite_add_tcase(suite, t);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
