/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The settings by which programs use a partition. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "applications/applications.h"

static const struct p_key first[] = { { 0x7fff }, { 0 }, { 0x0101 }, { 0x8101 }, { 0x0010 } };
static const struct p_key second[] = { { 0x7fff }, { 0x0010 }, { 0x8000 }, { 0x8101 } };
static const struct p_key third[] = { { 0x0101 }, { 0xffff }, { 0x0010 } };
static const struct application_port ports[] = {
        { "mlx5_0", 1, "ib0", first, ELEMENTS(first) },
        { "mlx5_1", 1, NULL, second, ELEMENTS(second) },
        { "mlx5_2", 2, "ibp3s0", third, ELEMENTS(third) },
        { "mlx5_3", 1, "ib3", NULL, 0 },
};

static void expect_variables(const struct application_settings *s, const char *value, const char *index)
{
        const char *const names[] = { "UCX_IB_PKEY", "NCCL_IB_PKEY", "NVSHMEM_IB_PKEY_INDEX", "MV2_DEFAULT_PKEY" };
        const char *const values[] = { value, index, index, value };

        for (unsigned i = 0; i < APPLICATION_N_VARIABLES; i++) {
                ck_assert_str_eq(s->variables[i].name, names[i]);
                ck_assert_pstr_eq(s->variables[i].value, values[i]);
        }
}

START_TEST(an_equal_index)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct application_settings s;

        ck_assert_int_eq(application_settings(a, ports, 2, 0x0101, &s), 0);
        ck_assert_uint_eq(s.n_entries, 2);
        ck_assert_ptr_eq(s.entries[0].port, &ports[0]);
        ck_assert_uint_eq(s.entries[0].key.v, 0x8101); /* not the limited entry before it */
        ck_assert_uint_eq(s.entries[0].index, 3);
        ck_assert_str_eq(s.entries[0].child, "ib0.8101");
        ck_assert_uint_eq(s.entries[1].index, 3);
        ck_assert_ptr_null(s.entries[1].child);
        ck_assert(!s.differs);
        expect_variables(&s, "0x0101", "3");
}
END_TEST

START_TEST(different_indexes)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct application_settings s;

        ck_assert_int_eq(application_settings(a, ports, 4, 0x0101, &s), 0);
        ck_assert_uint_eq(s.n_entries, 3);
        ck_assert_uint_eq(s.entries[2].key.v, 0x0101);
        ck_assert_uint_eq(s.entries[2].index, 0);
        ck_assert_str_eq(s.entries[2].child, "ibp3s0.8101"); /* the full bit, although the member is limited */
        ck_assert(s.differs);
        expect_variables(&s, "0x0101", NULL);
}
END_TEST

START_TEST(what_programs_take_by_default)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct application_settings s;

        ck_assert_int_eq(application_settings(a, ports, 4, 0x0010, &s), 0);
        ck_assert_uint_eq(s.entries[0].by_default.v, 0x8101);
        ck_assert_uint_eq(s.entries[0].at_index0.v, 0x7fff);
        ck_assert_uint_eq(s.entries[2].by_default.v, 0xffff);
        ck_assert_uint_eq(s.entries[2].at_index0.v, 0x0101);
        ck_assert_uint_eq(application_default(first, 3).v, 0x7fff); /* no full entry: the first limited one */
        ck_assert_uint_eq(application_default(second + 2, 1).v, 0); /* 0x8000 grants nothing */
        ck_assert_uint_eq(application_default(NULL, 0).v, 0);
}
END_TEST

/* On any port. The entry of the partition itself at index 0 is no other partition. */
START_TEST(limited_entries)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct application_settings s;

        ck_assert_int_eq(application_settings(a, ports, 2, 0x0101, &s), 0);
        ck_assert_ptr_null(s.limited);
        ck_assert_ptr_eq(s.limited_index0, &s.entries[0]);
        ck_assert_int_eq(application_settings(a, ports, 4, 0x0101, &s), 0);
        ck_assert_ptr_eq(s.limited, &s.entries[2]);
        ck_assert_int_eq(application_settings(a, ports + 2, 2, 0x0101, &s), 0);
        ck_assert_ptr_null(s.limited_index0);
        ck_assert_int_eq(application_settings(a, ports, 4, 0x7fff, &s), 0);
        ck_assert_ptr_eq(s.limited, &s.entries[0]);
        ck_assert_ptr_eq(s.limited_index0, &s.entries[2]);
}
END_TEST

START_TEST(no_port_holds_it)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct application_settings s;

        ck_assert_int_eq(application_settings(a, ports, 4, 0x0102, &s), -ENOENT);
        ck_assert_int_eq(application_settings(a, ports, 0, 0x0101, &s), -ENOENT);
        ck_assert_int_eq(application_settings(a, ports + 1, 1, 0x7fff, &s), 0);
        ck_assert_uint_eq(s.n_entries, 1);
        expect_variables(&s, "0x7fff", "0");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("applications");
        TCase *t = tcase_create("applications");
        SRunner *r;
        int n_failed;

        tcase_add_test(t, an_equal_index);
        tcase_add_test(t, different_indexes);
        tcase_add_test(t, what_programs_take_by_default);
        tcase_add_test(t, limited_entries);
        tcase_add_test(t, no_port_holds_it);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed > 0;
}
