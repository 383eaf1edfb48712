/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "arena_fixture.h"
#include "records/layout_records.h"

#define G(x)         ((struct guid) { (x) })
#define KEYS(...)    ((const struct p_key[]) { __VA_ARGS__ })
#define BEFORE(n, g) "before/0000000000000000000" #n "/0x000000000000000" #g

static struct store_transaction t;
static struct before_records records;

static void begin(void)
{
        setup();
        store_transaction_init(&t, arena);
}

static void end(void)
{
        before_records_done(&records);
        teardown();
}

static struct layout *new_layout(void)
{
        struct layout *l = arena_new_object(arena, struct layout);

        l->arena = arena;
        return l;
}

static void add(struct layout *l, uint64_t node, uint8_t number, const struct p_key *entries, uint16_t n)
{
        ck_assert_int_eq(layout_add(l, G(node), number, entries, n), 0);
}

static void check_table(const struct layout *l, uint64_t node, uint8_t number, const struct p_key *entries, uint16_t n)
{
        const struct layout_table *found = layout_find(l, G(node), number);

        ck_assert_ptr_nonnull(found);
        ck_assert_uint_eq(found->node_guid.v, node);
        ck_assert_uint_eq(found->number, number);
        ck_assert_uint_eq(found->n, n);
        for (uint16_t i = 0; i < n; i++)
                ck_assert_uint_eq(found->entries[i].v, entries[i].v);
}

/* --- the layout ---------------------------------------------------------------------------------------------------- */

START_TEST(finds_tables)
{
        struct layout *l = new_layout();

        add(l, 7, 2, KEYS({ 0xffff }, { 0 }, { 0x0010 }), 3);
        add(l, 7, 1, KEYS({ 0x8011 }), 1);
        add(l, UINT64_MAX, 255, KEYS({ 0x8012 }), 1);
        add(l, 0, 0, KEYS({ 0x8013 }), 1);
        layout_sort(l);
        check_table(l, 7, 1, KEYS({ 0x8011 }), 1);
        check_table(l, 7, 2, KEYS({ 0xffff }, { 0 }, { 0x0010 }), 3);
        check_table(l, UINT64_MAX, 255, KEYS({ 0x8012 }), 1);
        check_table(l, 0, 0, KEYS({ 0x8013 }), 1);
        ck_assert_ptr_null(layout_find(l, G(7), 0));
        ck_assert_ptr_null(layout_find(l, G(7), 3));
        ck_assert_ptr_null(layout_find(l, G(6), 1));
        ck_assert_ptr_null(layout_find(l, G(8), 2));
        ck_assert_ptr_null(layout_find(NULL, G(7), 1));
        ck_assert_ptr_null(layout_find(new_layout(), G(7), 1));
}
END_TEST

/* An entry without a base is unused, whatever its high bit is. */
START_TEST(leaves_out_the_end)
{
        struct layout *l = new_layout();

        add(l, 1, 1, KEYS({ 0x8011 }, { 0 }, { 0x8000 }, { 0 }), 4);
        add(l, 2, 1, KEYS({ 0 }, { 0 }), 2);
        add(l, 3, 1, NULL, 0);
        layout_sort(l);
        check_table(l, 1, 1, KEYS({ 0x8011 }), 1);
        check_table(l, 2, 1, NULL, 0);
        check_table(l, 3, 1, NULL, 0);
}
END_TEST

START_TEST(first_one_counts)
{
        struct layout *l = new_layout();

        for (uint16_t i = 1; i <= 100; i++)
                for (uint64_t node = 3; node > 0; node--)
                        add(l, node, 1, KEYS({ i }), 1);
        layout_sort(l);
        for (uint64_t node = 1; node <= 3; node++)
                check_table(l, node, 1, KEYS({ 1 }), 1);
}
END_TEST

START_TEST(copies_entries)
{
        struct p_key entries[] = { { 0x8011 }, { 0x8012 } };
        struct layout *l = new_layout();

        add(l, 1, 1, entries, 2);
        entries[0].v = entries[1].v = 0;
        layout_sort(l);
        check_table(l, 1, 1, KEYS({ 0x8011 }, { 0x8012 }), 2);
}
END_TEST

/* --- records -------------------------------------------------------------------------------------------------------- */

static void check_op(size_t i, const char *key, const char *value)
{
        ck_assert_uint_lt(i, t.n);
        ck_assert_str_eq(t.ops[i].key, key);
        if (!value) {
                ck_assert_ptr_null(t.ops[i].value);
                return;
        }
        ck_assert_ptr_nonnull(t.ops[i].value);
        ck_assert_uint_eq(t.ops[i].n, strlen(value));
        ck_assert_mem_eq(t.ops[i].value, value, strlen(value));
}

static int read_text(struct layout *l, uint64_t after, const char *key, const char *value)
{
        return before_record_read(l, after, key, value, strlen(value));
}

START_TEST(records_come_back)
{
        struct p_key all[256];
        struct layout *l = new_layout(), *again = new_layout();

        for (size_t i = 0; i < ELEMENTS(all); i++)
                all[i].v = (uint16_t) (0xff00 + i);
        add(l, 2, 0, KEYS({ 0xffff }, { 0 }, { 0x0010 }), 3);
        add(l, 1, 255, all, ELEMENTS(all));
        add(l, 3, 7, NULL, 0);
        records_put_before(&t, &records, 4, l);
        ck_assert_int_eq(t.error, 0);
        ck_assert_uint_eq(t.n, 3);
        check_op(0, BEFORE(4, 2) "/000", "ffff00000010");
        check_op(2, BEFORE(4, 3) "/007", "");
        for (size_t i = 0; i < t.n; i++)
                ck_assert_int_eq(before_record_read(again, 3, t.ops[i].key, t.ops[i].value, t.ops[i].n), 0);
        layout_sort(again);
        ck_assert_uint_eq(again->n, 3);
        check_table(again, 2, 0, KEYS({ 0xffff }, { 0 }, { 0x0010 }), 3);
        check_table(again, 1, 255, all, ELEMENTS(all));
        check_table(again, 3, 7, NULL, 0);
}
END_TEST

/* To return to generation N: of each port the table before the first generation above N. */
START_TEST(above_a_generation)
{
        struct layout *l = new_layout();

        ck_assert_int_eq(read_text(l, 4, BEFORE(3, 1) "/001", "8003"), 0);
        ck_assert_int_eq(read_text(l, 4, BEFORE(4, 1) "/001", "8004"), 0);
        ck_assert_uint_eq(l->n, 0);
        ck_assert_int_eq(read_text(l, 4, BEFORE(5, 1) "/001", "8005"), 0);
        ck_assert_int_eq(read_text(l, 4, BEFORE(6, 1) "/001", "8006"), 0);
        ck_assert_int_eq(read_text(l, 4, BEFORE(6, 2) "/001", "8007"), 0);
        layout_sort(l);
        check_table(l, 1, 1, KEYS({ 0x8005 }), 1);
        check_table(l, 2, 1, KEYS({ 0x8007 }), 1);
}
END_TEST

START_TEST(damaged_values)
{
        static const char *const values[] = { "8", "80", "800", "80041", "8004 ", "800g", "80-4", "0x80", "800G8004" };
        struct layout *l = new_layout();
        char *longest = arena_new_array(arena, char, 4 * (UINT16_MAX + 1));

        for (size_t i = 0; i < ELEMENTS(values); i++)
                ck_assert_int_eq(read_text(l, 0, BEFORE(5, 1) "/001", values[i]), -EBADMSG);
        ck_assert_int_eq(before_record_read(l, 0, BEFORE(5, 1) "/001", NULL, 0), -EBADMSG);
        memset(longest, '1', 4 * (UINT16_MAX + 1));
        ck_assert_int_eq(before_record_read(l, 0, BEFORE(5, 1) "/001", longest, 4 * (UINT16_MAX + 1)), -EBADMSG);
        ck_assert_uint_eq(l->n, 0);
        ck_assert_int_eq(before_record_read(l, 0, BEFORE(5, 1) "/001", longest, 4 * UINT16_MAX), 0);
        ck_assert_uint_eq(l->tables[0].n, UINT16_MAX);
}
END_TEST

static const char *const wrong_keys[] = {
        "before/", "before", "other/00000000000000000005/0x0000000000000001/001", "before/5/0x0000000000000001/001",
        "before/00000000000000000005", BEFORE(5, 1), BEFORE(5, 1) "/", BEFORE(5, 1) "/1", BEFORE(5, 1) "/0001", BEFORE(5, 1) "/256",
        BEFORE(5, 1) "/00x", BEFORE(5, 1) "/001/", "before/00000000000000000005/0000000000000001/001",
        "before/00000000000000000005/0x1/001", "before/00000000000000000005/0x000000000000000A/001",
        "before/00000000000000000005/0x000000000000000g/001", "before/09223372036854775808/0x0000000000000001/001",
        "before/99999999999999999999/0x0000000000000001/001", "before/0000000000000000000x/0x0000000000000001/001",
};

START_TEST(damaged_keys)
{
        struct layout *l = new_layout();

        ck_assert_int_eq(before_records_restore(&records, wrong_keys[_i]), -EBADMSG);
        ck_assert_int_eq(read_text(l, 0, wrong_keys[_i], "8001"), -EBADMSG);
        ck_assert_uint_eq(l->n + records.n, 0);
}
END_TEST

/* --- which records there are ---------------------------------------------------------------------------------------- */

static const char two_hosts[] = "vendid=0x0\ndevid=0x0\nsysimgguid=0x20\ncaguid=0x20\n"
                                "Ca 1 \"H-0000000000000020\" # \"node1 mlx5_0\"\n"
                                "[1](21) \"H-0000000000000030\"[1] (31) # lid 1 lmc 0 \"node2 mlx5_0\" lid 2\n\n"
                                "vendid=0x0\ndevid=0x0\nsysimgguid=0x30\ncaguid=0x30\n"
                                "Ca 1 \"H-0000000000000030\" # \"node2 mlx5_0\"\n"
                                "[1](31) \"H-0000000000000020\"[1] (21) # lid 2 lmc 0 \"node1 mlx5_0\" lid 1\n";

START_TEST(marks_ports)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };
        struct subnet *s;
        bool *has;

        ck_assert_int_eq(subnet_parse_topology(arena, "two", two_hosts, strlen(two_hosts), &findings, &s), 0);
        has = arena_new_array(arena, bool, s->n_ports);
        ck_assert_int_eq(before_records_restore(&records, "before/00000000000000000004/0x0000000000000020/001"), 0);
        ck_assert_int_eq(before_records_restore(&records, "before/00000000000000000005/0x0000000000000020/002"), 0);
        ck_assert_int_eq(before_records_restore(&records, "before/00000000000000000005/0x0000000000000030/001"), 0);
        ck_assert_int_eq(before_records_restore(&records, "before/00000000000000000005/0x0000000000000099/001"), 0);
        ck_assert_int_eq(before_records_restore(&records, "before/00000000000000000004/0x0000000000000030/001"), -EBADMSG);
        ck_assert_uint_eq(records.n, 4);
        before_records_mark(&records, 5, s, has);
        ck_assert(!has[subnet_find_port_of(s, G(0x20), 1)]);
        ck_assert(has[subnet_find_port_of(s, G(0x30), 1)]);
        memset(has, 0, s->n_ports);
        before_records_mark(&records, 4, s, has);
        ck_assert(has[subnet_find_port_of(s, G(0x20), 1)]);
        ck_assert(!has[subnet_find_port_of(s, G(0x30), 1)]);
        memset(has, 0, s->n_ports);
        before_records_mark(&records, 6, s, has);
        ck_assert(!has[0] && !has[1]);
}
END_TEST

static struct layout *tables_of(size_t n)
{
        struct layout *l = new_layout();

        for (size_t i = 0; i < n; i++)
                add(l, i + 1, 1, KEYS({ 0x8001 }), 1);
        return l;
}

/* As a process does that stores tables before a write. Returns how many records are deleted. */
static size_t store(uint64_t generation, size_t n)
{
        const struct layout *l = tables_of(n);
        size_t n_deleted = 0;

        store_transaction_init(&t, arena);
        records_put_before(&t, &records, generation, l);
        ck_assert_int_eq(t.error, 0);
        while (n_deleted < t.n && !t.ops[n_deleted].value)
                n_deleted++;
        ck_assert_uint_eq(t.n, n_deleted + n);
        before_records_stored(&records, generation, l);
        return n_deleted;
}

/* Of the oldest generations all records are deleted, or none. */
START_TEST(old_records_go)
{
        ck_assert_uint_eq(store(1, RECORDS_MAX_BEFORE / 2), 0);
        ck_assert_uint_eq(store(2, 10), 0);
        ck_assert_uint_eq(store(3, RECORDS_MAX_BEFORE / 2 - 10), 0);
        ck_assert_uint_eq(records.n, RECORDS_MAX_BEFORE);
        ck_assert_uint_eq(store(4, 1), RECORDS_MAX_BEFORE / 2);
        check_op(0, BEFORE(1, 1) "/001", NULL);
        ck_assert_uint_eq(records.items[0].generation, 2);
        ck_assert_uint_eq(records.n, RECORDS_MAX_BEFORE / 2 + 1);
        ck_assert_uint_eq(store(4, RECORDS_MAX_BEFORE), RECORDS_MAX_BEFORE / 2);
        ck_assert_uint_eq(records.items[0].generation, 4);
        ck_assert_uint_eq(records.n, RECORDS_MAX_BEFORE + 1);
        ck_assert_uint_eq(store(4, 1), 0); /* those of the highest generation stay */
        ck_assert_uint_eq(store(5, 1), RECORDS_MAX_BEFORE + 2);
        ck_assert_uint_eq(records.n, 1);
}
END_TEST

int main(void)
{
        TCase *c = tcase_create("layout");
        Suite *s = suite_create("layout");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(c, begin, end);
        tcase_set_timeout(c, 60);
        tcase_add_test(c, finds_tables);
        tcase_add_test(c, leaves_out_the_end);
        tcase_add_test(c, first_one_counts);
        tcase_add_test(c, copies_entries);
        tcase_add_test(c, records_come_back);
        tcase_add_test(c, above_a_generation);
        tcase_add_test(c, damaged_values);
        tcase_add_loop_test(c, damaged_keys, 0, (int) ELEMENTS(wrong_keys));
        tcase_add_test(c, marks_ports);
        tcase_add_test(c, old_records_go);
        suite_add_tcase(s, c);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
