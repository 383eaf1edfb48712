/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "knowledge_fixture.h"
#include "records/stored_records.h"
#include "util/vector.h"

#define BOOT    "5d2f0c1b"
#define N_PORTS 25000

static struct remembered *now;
static struct store_transaction t;

/* --- out of memory ------------------------------------------------------------------------------------------------ */

static unsigned n_allocations, failing;
static bool counting;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
        return counting && ++n_allocations == failing ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
        return counting && ++n_allocations == failing ? NULL : __real_reallocarray(p, n, size);
}

/* --- a store ------------------------------------------------------------------------------------------------------ */

static struct store_op *all; /* ascending keys */
static uint32_t n_all, allocated_all;

static uint32_t place_of(const char *key)
{
        return LOWER_BOUND(op, all, n_all, strcmp(op->key, key) < 0);
}

static const struct store_op *stored(const char *key)
{
        uint32_t at = place_of(key);

        return at < n_all && strcmp(all[at].key, key) == 0 ? &all[at] : NULL;
}

static void put(const char *key, const void *value, size_t n)
{
        uint32_t at = place_of(key);

        if (!stored(key)) {
                ck_assert_int_eq(VECTOR_GROW(arena, all, n_all, allocated_all), 0);
                memmove(&all[at + 1], &all[at], (n_all++ - at) * sizeof(*all));
        }
        all[at] = (struct store_op) { .key = key, .value = value, .n = n };
}

static void put_text(const char *key, const char *value)
{
        put(key, value, strlen(value));
}

static void delete(const char *key)
{
        uint32_t at = place_of(key);

        if (stored(key))
                memmove(&all[at], &all[at + 1], (--n_all - at) * sizeof(*all));
}

/* Commits the transaction; returns the number of its operations. */
static size_t commit(void)
{
        size_t n = t.n;

        ck_assert_int_eq(t.error, 0);
        for (size_t i = 0; i < n; i++)
                if (t.ops[i].value)
                        put(t.ops[i].key, t.ops[i].value, t.ops[i].n);
                else
                        delete(t.ops[i].key);
        store_transaction_init(&t, arena);
        index_memory_stored(now->indexes);
        known_stored(&now->known);
        pins_stored(&now->pins);
        return n;
}

static size_t commit_changes(void)
{
        records_put_indexes(&t, now->indexes);
        records_put_known(&t, &now->known);
        records_put_pins(&t, &now->pins);
        return commit();
}

static int load(struct remembered *r)
{
        int e = 0;

        for (uint32_t i = 0; e == 0 && i < n_all; i++)
                e = remembered_restore(r, all[i].key, all[i].value, all[i].n);
        remembered_end(r);
        return e;
}

/* Loads all stored records, as a new process does. */
static void begin_anew(void)
{
        remembered_free(now);
        now = remembered_new(BOOT);
        ck_assert_ptr_nonnull(now);
        ck_assert_int_eq(load(now), 0);
}

static void check_damaged(const char *key)
{
        begin_anew();
        ck_assert_msg(now->n_damaged == 1 && strcmp(now->first_damaged, key) == 0, "%zu: %s", now->n_damaged,
                      now->first_damaged ?: key);
}

static void setup(void)
{
        knowledge_setup();
        all = NULL;
        n_all = allocated_all = 0;
        store_transaction_init(&t, arena);
        now = remembered_new(BOOT);
        ck_assert_ptr_nonnull(now);
}

static void teardown(void)
{
        now = remembered_free(now);
        knowledge_teardown();
}

/* A valid value in which one text is replaced. */
static const char *with(const char *good, const char *what, const char *by)
{
        const char *at = strstr(good, what);

        ck_assert_ptr_nonnull(at);
        return arena_printf(arena, "%.*s%s%s", (int) (at - good), good, by, at + strlen(what));
}

START_TEST(nothing)
{
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(now->generation, 0);
        ck_assert_ptr_null(now->policy);
        ck_assert_uint_eq(knowledge_n_records(now->knowledge), 0);
        ck_assert_str_eq(now->boot, BOOT);
        ck_assert_uint_eq(commit_changes(), 0);
}
END_TEST

/* --- tables ------------------------------------------------------------------------------------------------------- */

START_TEST(tables)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t record;

        read_host(s, 0, 0x8001);
        knowledge_store(k, BOOT, &t);
        (void) commit();
        put_text("table/endport/0x0000000000000200/1", "{}");
        check_damaged("table/endport/0x0000000000000200/1");
        ck_assert_uint_eq(knowledge_n_records(now->knowledge), knowledge_n_records(k));
        record = knowledge_find(now->knowledge, (struct knowledge_name) { { 0x100 }, 1, KNOWLEDGE_ENDPORT });
        ck_assert_uint_eq(knowledge_table_bounds(now->knowledge, record, 1).may, LEVEL_FULL);
        ck_assert_uint_eq(knowledge_table_bounds(now->knowledge, record, 2).may, LEVEL_NONE);
        record = knowledge_find(now->knowledge, (struct knowledge_name) { { 0x200 }, 1, KNOWLEDGE_ENDPORT });
        ck_assert_uint_eq(knowledge_table_bounds(now->knowledge, record, 2).may, LEVEL_FULL);
}
END_TEST

/* --- freed indexes ------------------------------------------------------------------------------------------------ */

#define INDEX "index/0x0000000000000001/1"

static const char good_index[] = "{\"node\":\"0x0000000000000001\",\"port\":1,\"freed\":["
                                 "{\"index\":1,\"base\":\"0x0010\",\"sequence\":5,\"lost\":false},"
                                 "{\"index\":2,\"base\":\"0x7fff\",\"sequence\":9223372036854775807,\"lost\":true}]}";

static void free_index(uint64_t guid, uint8_t port, uint16_t index, uint16_t key)
{
        ck_assert_int_eq(index_memory_note(now->indexes, G(guid), port, index,
                                           (struct p_key) { key }, (struct p_key) { 0 }, false), 0);
}

static void use_index(uint64_t guid, uint8_t port, uint16_t index, uint16_t key)
{
        ck_assert_int_eq(index_memory_note(now->indexes, G(guid), port, index,
                                           (struct p_key) { 0 }, (struct p_key) { key }, false), 0);
}

static size_t n_freed(void)
{
        size_t n;

        (void) index_memory_all(now->indexes, &n);
        return n;
}

START_TEST(indexes_come_back)
{
        struct index_memory *before;
        const struct freed_index *items, *again;
        size_t n;

        free_index(UINT64_MAX, 255, 65535, 0xffff);
        free_index(2, 1, 5, 0x8010);
        free_index(2, 1, 3, 0x0011);
        free_index(2, 0, 3, 0x0012);
        ck_assert_int_eq(index_memory_note(now->indexes, G(1), 1, 9, (struct p_key) { 0x8001 }, (struct p_key) { 0 }, true), 0);
        ck_assert_uint_eq(commit_changes(), 4);
        ck_assert_ptr_nonnull(stored("index/0xffffffffffffffff/255"));
        before = STEAL(now->indexes);
        begin_anew();
        items = index_memory_all(before, &n);
        again = index_memory_all(now->indexes, &n);
        ck_assert_uint_eq(n, 5);
        for (size_t i = 0; i < n; i++)
                ck_assert(again[i].node_guid.v == items[i].node_guid.v && again[i].port == items[i].port &&
                          again[i].index == items[i].index && again[i].base == items[i].base &&
                          again[i].sequence == items[i].sequence && again[i].lost == items[i].lost &&
                          again[i].full == items[i].full);
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(commit_changes(), 0);
        index_memory_free(before);
}
END_TEST

START_TEST(indexes_that_changed)
{
        free_index(1, 1, 5, 0x8010);
        free_index(2, 1, 5, 0x8010);
        ck_assert_uint_eq(commit_changes(), 2);
        begin_anew();
        free_index(2, 1, 6, 0x8010);
        ck_assert_uint_eq(commit_changes(), 1);
        use_index(1, 1, 5, 0x8010);
        ck_assert_uint_eq(commit_changes(), 1);
        ck_assert_ptr_null(stored(INDEX));
        begin_anew();
        ck_assert_uint_eq(n_freed(), 2);
        ck_assert_int_eq(index_memory_unstore(now->indexes), 0);
        ck_assert_uint_eq(commit_changes(), 1);
}
END_TEST

/* If there are too many, those are kept that were freed last. */
START_TEST(indexes_of_a_huge_table)
{
        const struct freed_index *items;
        size_t n;

        for (uint32_t i = 0; i <= UINT16_MAX; i++)
                free_index(1, 1, (uint16_t) i, 0x8010);
        ck_assert_uint_eq(commit_changes(), 1);
        begin_anew();
        items = index_memory_all(now->indexes, &n);
        ck_assert_uint_eq(n, RECORDS_MAX_FREED);
        ck_assert_uint_eq(items[0].index, UINT16_MAX - RECORDS_MAX_FREED + 1);
        ck_assert_uint_eq(items[n - 1].index, UINT16_MAX);
}
END_TEST

static const char *const wrong_indexes[][2] = {
        { "\"0x0000000000000001\"", "1" },
        { "0x0000000000000001", "0000000000000001" },
        { "0x0000000000000001", "0x" },
        { "0x0000000000000001", "0x-1" },
        { "0x0000000000000001", "0x000000000000000g" },
        { "0x0000000000000001", "0x00000000000000001" },
        { "0x0000000000000001", "0x0000000000000002" }, /* not the port of the key */
        { "\"port\":1", "\"port\":2" },
        { "\"port\":1", "\"port\":256" },
        { "\"port\":1", "\"port\":-1" },
        { "\"port\":1", "\"port\":1.5" },
        { "\"port\":1", "\"port\":1,\"port\":1" },
        { "\"port\":1,", "" },
        { "[", "{\"x\":[" },
        { "[", "[7," },
        { "[", "[{}," },
        { "\"index\":2", "\"index\":65536" },
        { "\"index\":2", "\"index\":\"2\"" },
        { "0x7fff", "0x8000" },
        { "0x7fff", "0x7fff " },
        { "\"0x7fff\"", "32767" },
        { "5,", "-1," },
        { "9223372036854775807", "9223372036854775808" },
        { "true", "1" },
        { "\"base\":\"0x7fff\",", "" },
};

START_TEST(damaged_indexes)
{
        put_text(INDEX, good_index);
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(n_freed(), 2);
        put_text(INDEX, with(good_index, wrong_indexes[_i][0], wrong_indexes[_i][1]));
        check_damaged(INDEX);
        ck_assert_uint_eq(n_freed(), 0);
}
END_TEST

START_TEST(cut_off)
{
        for (size_t n = 0; n < strlen(good_index); n++) {
                put(INDEX, good_index, n);
                check_damaged(INDEX);
                ck_assert_uint_eq(n_freed(), 0);
        }
}
END_TEST

START_TEST(wrong_keys)
{
        static const char *const keys[] = {
                "index/0x1/1", "index/0x0000000000000001/01", "index/0x0000000000000001", "index/",
                "indexes/0x0000000000000001/1",
                "known/0x0000000000000001", "host/0x0000000000000001/1",
                "x",
        };

        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                put_text(keys[i], good_index);
                check_damaged(keys[i]);
                ck_assert_uint_eq(n_freed(), 0);
                delete(keys[i]);
        }
}
END_TEST

/* --- known endports ----------------------------------------------------------------------------------------------- */

#define PIN   "pin/0x0000000000000007"
#define KNOWN "known/0x0000000000000002"

static const struct known_port example = { { 1 }, { 2 }, NODE_CA, 3, "node \\x01 \"mlx5_0\"", { 4 }, 5, 6,
                                         .absent = 7 * USEC_PER_SEC, .noted = 6 };

static void know(uint64_t guid)
{
        struct known_port port = example;

        port.port_guid.v = guid;
        ck_assert_int_eq(known_add(&now->known, &port), 0);
}

START_TEST(known_ports_come_back)
{
        struct known_port expected = example;

        know(2);
        know(UINT64_MAX);
        ck_assert_uint_eq(commit_changes(), 2);
        begin_anew();
        expected.is_stored = true;
        ck_assert_uint_eq(now->known.n, 2);
        ck_assert_mem_eq(&now->known.ports[0], &expected, sizeof(expected));
        ck_assert_uint_eq(now->known.ports[1].port_guid.v, UINT64_MAX);
        ck_assert_uint_eq(commit_changes(), 0);
        know(2);
        ck_assert_uint_eq(commit_changes(), 1);
        known_unstore(&now->known);
        ck_assert_uint_eq(commit_changes(), 2);
}
END_TEST

/* The same description as from the whole record, whatever characters it has. */
START_TEST(known_ports_at_a_glance)
{
        static const char *const texts[] = { "", "a", "node \\x01 \"mlx5_0\"", "\\", "\"", "\",\"type\":2,\"description\":\"b", "\\\",\"type\":2" };
        const char value[] = "{\"type\":3,\"description\":\"a\\\\b\"}";
        char description[SUBNET_NAME_SIZE], longest[SUBNET_NAME_SIZE] = "";
        enum node_type type = NODE_ROUTER;

        for (size_t i = 0; i < SUBNET_NAME_SIZE - 1; i++)
                longest[i] = (char) (' ' + i % ('~' - ' ' + 1));
        for (size_t i = 0; i <= ELEMENTS(texts); i++) {
                struct known_port port = example;
                const struct store_op *record;

                strcpy(port.description, i < ELEMENTS(texts) ? texts[i] : longest);
                ck_assert_int_eq(known_add(&now->known, &port), 0);
                (void) commit_changes();
                record = stored(KNOWN);
                ck_assert(records_peek_known(record->value, record->n, description, &type));
                ck_assert_str_eq(description, port.description);
                ck_assert_int_eq(type, NODE_CA);
        }
        for (size_t n = 0; n < sizeof(value) - 1; n++) {
                char *cut = arena_new_array(arena, char, n); /* its end is known to the sanitizer */

                memcpy(cut, value, n);
                ck_assert_int_eq(records_peek_known(cut, n, description, &type), n == sizeof(value) - 2);
        }
        ck_assert_str_eq(description, "a\\b");
        ck_assert(!records_peek_known("{\"type\":4,\"description\":\"\"}", 27, description, &type));
}
END_TEST

START_TEST(known_ports_that_are_gone)
{
        const usec_t day = 86400 * USEC_PER_SEC;
        struct subnet *s;

        know(2);
        know(3);
        ck_assert_uint_eq(commit_changes(), 2);
        s = discover(0, 0, 0, 0);
        for (unsigned i = 1; i <= KNOWN_DAYS + 2; i++)
                ck_assert_int_ge(known_learn(&now->known, s, i * day, i), 0);
        know(3); /* and back */
        ck_assert_uint_eq(commit_changes(), 4); /* with the switch's own port */
        ck_assert_ptr_null(stored(KNOWN));
        begin_anew();
        ck_assert_uint_eq(now->known.n, 2);
        ck_assert_uint_eq(now->known.ports[0].port_guid.v, 3);
        ck_assert_uint_eq(commit_changes(), 0);
}
END_TEST

static const char good_known[] = "{\"node\":\"0x01\",\"port\":3,\"port_guid\":\"0x2\",\"type\":1,\"description\":\"a\","
                                 "\"switch\":\"0x4\",\"switch_port\":5,\"seen\":6,\"absent\":8}";
static const char *const wrong_known[][2] = {
        { "0x01", "1" }, { "0x2", "0x0" }, { "0x2", "0x3" }, { "0x4", "" }, { "\"type\":1", "\"type\":0" },
        { "\"type\":1", "\"type\":4" }, { "\"port\":3", "\"port\":256" }, { "\"a\"", "7" }, { ":5", ":256" }, { ":6", ":-1" },
        { ",\"seen\":6", "" }, { ":8", ":-1" }, { ":8", ":\"\"" }, { ":8", ":4294967296" }, { "{", "[" },
        { "\"a\"", "\"a\\u001b[31m\"" }, /* descriptions are stored escaped */
};

START_TEST(damaged_known_ports)
{
        char *description = arena_new_array(arena, char, sizeof(example.description) + 1);

        put_text(KNOWN, good_known);
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(now->known.n, 1);
        ck_assert_uint_eq(now->known.ports[0].absent, 8 * USEC_PER_SEC);
        put_text(KNOWN, with(good_known, ",\"absent\":8", "")); /* of an earlier version */
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(now->known.ports[0].absent, 0);
        for (size_t i = 0; i < ELEMENTS(wrong_known); i++) {
                put_text(KNOWN, with(good_known, wrong_known[i][0], wrong_known[i][1]));
                check_damaged(KNOWN);
                ck_assert_uint_eq(now->known.n, 0);
        }
        delete(KNOWN);
        put_text("known/0x0000000000000000", with(good_known, "0x2", "0x0"));
        check_damaged("known/0x0000000000000000");
        delete("known/0x0000000000000000");
        memset(description, 'x', sizeof(example.description) - 1);
        put_text(KNOWN, with(good_known, "\"a\"", arena_printf(arena, "\"%s\"", description)));
        begin_anew();
        ck_assert_str_eq(now->known.ports[0].description, description);
        description[sizeof(example.description) - 1] = 'x';
        put_text(KNOWN, with(good_known, "\"a\"", arena_printf(arena, "\"%s\"", description)));
        check_damaged(KNOWN);
}
END_TEST

/* --- pins --------------------------------------------------------------------------------------------------------- */

static void pin(uint64_t node, const char *name)
{
        const struct pin new = {
                { node }, NODE_CA, { arena_printf(arena, "%s \"mlx5_0\\x01 x", name), name, "\"mlx5_0\\x01" }, 1700000000,
        };

        ck_assert_int_eq(pins_add(&now->pins, &new), 0);
}

START_TEST(pins_come_back)
{
        const struct pin *p;

        pin(7, "node1");
        pin(UINT64_MAX, "node2");
        ck_assert_uint_eq(commit_changes(), 2);
        begin_anew();
        ck_assert_uint_eq(now->pins.n, 2);
        p = pins_find(&now->pins, (struct guid) { 7 });
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(p->type, NODE_CA);
        ck_assert_str_eq(p->name.description, "node1 \"mlx5_0\\x01 x");
        ck_assert_str_eq(p->name.name, "node1");
        ck_assert_str_eq(p->name.device, "\"mlx5_0\\x01");
        ck_assert_uint_eq(p->since, 1700000000);
        ck_assert_uint_eq(commit_changes(), 0);
        ck_assert_int_eq(pins_drop(&now->pins, "node1"), 1);
        ck_assert_int_eq(pins_drop(&now->pins, "node2"), 1);
        pin(7, "node3"); /* bound anew before that was stored */
        ck_assert_uint_eq(commit_changes(), 3);
        begin_anew();
        ck_assert_uint_eq(now->pins.n, 1);
        ck_assert_str_eq(now->pins.items[0].name.name, "node3");
        pins_unstore(&now->pins);
        ck_assert_uint_eq(commit_changes(), 1);
}
END_TEST

static const char good_pin[] = "{\"node\":\"0x07\",\"type\":1,\"description\":\"a b\",\"name\":\"a\",\"device\":\"b\",\"since\":6}";
static const char *const wrong_pins[][2] = {
        { "0x07", "7" }, { "0x07", "0x8" }, { ":1", ":0" }, { ":1", ":4" }, { "\"a b\"", "7" }, { ":\"a\"", ":\"\"" },
        { ":\"b\"", ":null" }, { ":6", ":-1" }, { ",\"since\":6", "" }, { "{", "[" },
};

START_TEST(damaged_pins)
{
        char *name = arena_new_array(arena, char, SUBNET_NAME_SIZE + 1);

        put_text(PIN, good_pin);
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(now->pins.n, 1);
        for (size_t i = 0; i < ELEMENTS(wrong_pins); i++) {
                put_text(PIN, with(good_pin, wrong_pins[i][0], wrong_pins[i][1]));
                check_damaged(PIN);
                ck_assert_uint_eq(now->pins.n, 0);
        }
        memset(name, 'x', SUBNET_NAME_SIZE - 1);
        put_text(PIN, with(good_pin, "\"a\"", arena_printf(arena, "\"%s\"", name)));
        begin_anew();
        ck_assert_str_eq(now->pins.items[0].name.name, name);
        name[SUBNET_NAME_SIZE - 1] = 'x';
        put_text(PIN, with(good_pin, "\"a\"", arena_printf(arena, "\"%s\"", name)));
        check_damaged(PIN);
}
END_TEST

/* --- generations -------------------------------------------------------------------------------------------------- */

#define GENERATION(n) "generation/0000000000000000000" #n
#define PART(n, i)    GENERATION(n) "/policy/0" #i

#define KEEP 100
static const struct history_limits limits = { .keep = KEEP, .seconds = UINT64_MAX };

static void put_generation(uint64_t number, const char *bytes, size_t n)
{
        const struct generation g = { .number = number, .facts.time = 1000, .policy_bytes = bytes, .n_policy_bytes = n };

        records_put_generation(&t, &now->history, &g, &limits);
        (void) commit();
        generation_history_stored(&now->history, &g, &limits);
}

static void check_policy(uint64_t number, const char *bytes, size_t n)
{
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(now->generation, number);
        ck_assert_ptr_nonnull(now->policy);
        ck_assert_uint_eq(now->n_policy, n);
        ck_assert_int_eq(memcmp(now->policy, bytes, n), 0);
}

START_TEST(generations_come_back)
{
        static const char bytes[] = "version: 1\n\0\xff binary, too";

        put_generation(1, bytes, sizeof(bytes));
        check_policy(1, bytes, sizeof(bytes));
        put_generation(9, "older", 5);
        put_generation(10, "newer", 5);
        check_policy(10, "newer", 5);
        put_generation(11, "", 0);
        check_policy(11, "", 0);
        put_generation(INT64_MAX, "last", 4);
        check_policy(INT64_MAX, "last", 4);
        ck_assert_str_eq(arena_strndup(arena, stored(GENERATION(9))->value, stored(GENERATION(9))->n),
                         "{\"number\":9,\"time\":1000,\"policy_size\":5}");
}
END_TEST

START_TEST(large_policy)
{
        static const size_t sizes[] = {
                STORE_VALUE_MAX - 1, STORE_VALUE_MAX, STORE_VALUE_MAX + 1, 2 * STORE_VALUE_MAX, POLICY_MAX_FILE_SIZE,
        };
        char *bytes = arena_new_array(arena, char, POLICY_MAX_FILE_SIZE);

        for (size_t i = 0; i < POLICY_MAX_FILE_SIZE; i++)
                bytes[i] = (char) (i % 251);
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                put_generation(i + 1, bytes, sizes[i]);
                check_policy(i + 1, bytes, sizes[i]);
        }
        ck_assert_ptr_nonnull(stored(PART(5, 0)));
        ck_assert_ptr_nonnull(stored("generation/00000000000000000005/policy/15"));
        ck_assert_uint_eq(n_all, 5 + 1 + 1 + 2 + 2 + 16);
}
END_TEST

START_TEST(old_generations_go)
{
        for (uint64_t i = 1; i <= KEEP + 3; i++) {
                put_generation(7 * i, "policy", 6);
                if (i % 40 == 0)
                        begin_anew();
        }
        ck_assert_uint_eq(n_all, 2 * KEEP);
        ck_assert_ptr_null(stored("generation/00000000000000000021"));
        ck_assert_ptr_null(stored("generation/00000000000000000021/policy/00"));
        ck_assert_ptr_nonnull(stored("generation/00000000000000000028"));
        check_policy((KEEP + 3) * 7, "policy", 6);
}
END_TEST

/* A failed commit changes nothing: the next one deletes the same records. */
START_TEST(old_generations_go_after_a_failure)
{
        const struct generation g = { .number = KEEP + 1, .policy_bytes = "x", .n_policy_bytes = 1 };

        for (uint64_t i = 1; i <= KEEP; i++)
                put_generation(i, "policy", 6);
        records_put_generation(&t, &now->history, &g, &limits);
        store_transaction_init(&t, arena);
        put_generation(KEEP + 2, "policy", 6);
        ck_assert_uint_eq(n_all, 2 * KEEP);
        ck_assert_ptr_null(stored(GENERATION(1)));
}
END_TEST

/* However many there are. */
START_TEST(too_many_generations)
{
        for (uint64_t i = 1; i <= KEEP + 2; i++) {
                const char *key = arena_printf(arena, RECORDS_GENERATION "%020" PRIu64, i);

                put_text(key, arena_printf(arena, "{\"number\":%d,\"time\":1,\"policy_size\":0}", (int) i));
        }
        begin_anew();
        put_generation(KEEP + 3, "policy", 6);
        ck_assert_uint_eq(n_all, KEEP + 1);
        ck_assert_ptr_null(stored(GENERATION(3)));
        ck_assert_ptr_nonnull(stored(GENERATION(4)));
}
END_TEST

static const char good_header[] = "{\"number\":2,\"time\":1000,\"policy_size\":5}";
static const char *const wrong_headers[][2] = {
        { "2", "1" }, { "2", "\"2\"" }, { "1000", "-1" }, { "5", "16777217" }, { "5", "-1" }, { ",\"policy_size\":5", "" },
        { "5", "5,\"number\":2" }, { "}", "" },
};

/* If a generation is damaged, an older one does not come in force in its place, and its number is not used again. */
static void check_none_in_force(const char *key)
{
        check_damaged(key);
        ck_assert_uint_eq(now->generation, 2);
        ck_assert_ptr_null(now->policy);
}

START_TEST(damaged_generation)
{
        put_generation(1, "older", 5);
        put_generation(2, "newer", 5);
        put_text(GENERATION(2), "");
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 2); /* a policy without its header is damaged, too */
        ck_assert_str_eq(now->first_damaged, GENERATION(2));
        delete(PART(2, 0));
        for (size_t i = 0; i < ELEMENTS(wrong_headers); i++) {
                put_text(GENERATION(2), with(good_header, wrong_headers[i][0], wrong_headers[i][1]));
                check_none_in_force(GENERATION(2));
        }
        put_text(GENERATION(2), good_header);
        check_none_in_force(GENERATION(2)); /* without its bytes */
        put_text(PART(2, 0), "newe");
        check_none_in_force(GENERATION(2));
        put_text(PART(2, 0), "newest");
        check_none_in_force(PART(2, 0));
        put_text(PART(2, 0), "newer");
        put_text(PART(2, 2), "");
        check_none_in_force(PART(2, 2));
        delete(PART(2, 2));
        check_policy(2, "newer", 5);
        delete(GENERATION(2));
        check_none_in_force(PART(2, 0));
        put_text(PART(2, 0), "");
        check_none_in_force(PART(2, 0));
        /* damaged generations are in the history, and deleted in their turn */
        ck_assert_uint_eq(now->history.n, 2);
}
END_TEST

START_TEST(damaged_older_generation)
{
        put_generation(1, "older", 5);
        put_generation(2, "newer", 5);
        put_text(PART(1, 0), "olde");
        check_damaged(GENERATION(1));
        ck_assert_uint_eq(now->generation, 2);
        ck_assert_mem_eq(now->policy, "newer", 5);
}
END_TEST

/* A generation whose number cannot be read could be the newest. */
START_TEST(generation_of_unknown_number)
{
        static const char *const keys[] = {
                "generation/", "generation/3", "generation/0000000000000000000x", "generation/000000000000000000003",
                "generation/00000000000000000000", "generation/99999999999999999999", "generation/09223372036854775808",
                "generation/00000000000000000003/policy/0", "generation/00000000000000000003/policy/000",
                "generation/00000000000000000003/other/00", "generation/00000000000000000003/",
        };

        put_generation(2, "newer", 5);
        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                put_text(keys[i], "{\"number\":3,\"time\":1000,\"policy_size\":0}");
                check_none_in_force(keys[i]);
                delete(keys[i]);
        }
        check_policy(2, "newer", 5);
}
END_TEST

/* --- facts of generations ------------------------------------------------------------------------------------------ */

#define SETTINGS(n) GENERATION(n) "/settings/00"

static const char *const sentences[] = { "who can talk to whom: 1 pair of ports lost", "node1: no longer with \\x01\"node2\"" };

static const struct generation_facts all_facts = {
        .time = 1000, .origin = { ORIGIN_BUS, 7, "alice" }, .undoes = 8, .restores = 6, .confirm_for = 600, .confirm_until = 1600,
        .confirmed = 1200, .confirmed_by = { ORIGIN_COMMAND, UINT32_MAX, "bob" }, .outcome = "partial", .ended = 1100,
        .n_held = 2, .held = { 0x0010, 0x7fff }, .changes = sentences, .n_changes = ELEMENTS(sentences),
};
static const char all_members[] =
        "{\"number\":9,\"time\":1000,\"policy_size\":6,\"settings_size\":9,\"via\":\"bus\",\"uid\":7,\"user\":\"alice\",\"undoes\":8,"
        "\"restores\":6,\"confirm_for\":600,\"confirm_until\":1600,\"confirmed\":1200,\"confirmed_via\":\"command\","
        "\"confirmed_uid\":4294967295,\"confirmed_user\":\"bob\",\"outcome\":\"partial\",\"ended\":1100,\"n_held\":2,"
        "\"held\":[\"0x0010\",\"0x7fff\"],\"changes\":[\"who can talk to whom: 1 pair of ports lost\","
        "\"node1: no longer with \\\\x01\\\"node2\\\"\"]}";

static void put_facts(uint64_t number, const struct generation_facts *facts, const struct history_limits *l)
{
        const struct generation g = {
                .number = number, .facts = *facts, .policy_bytes = "policy", .n_policy_bytes = 6,
                .settings_bytes = "settings\n", .n_settings_bytes = 9,
        };

        records_put_generation(&t, &now->history, &g, l);
        (void) commit();
        generation_history_stored(&now->history, &g, l);
}

/* Returns whether it is whole. */
static bool read_files(uint64_t number, struct stored_files *f)
{
        struct generation_key key;

        *f = (struct stored_files) {};
        stored_files_begin(f, number);
        for (uint32_t i = 0; i < n_all; i++)
                if (generation_key_read(all[i].key, &key) && key.number == number)
                        ck_assert_int_ne(stored_files_read(f, arena, &key, all[i].value, all[i].n), -ENOMEM);
        return stored_files_end(f);
}

static void check_origin(const struct origin *a, const struct origin *b)
{
        ck_assert_int_eq(a->kind, b->kind);
        ck_assert_uint_eq(a->uid, b->uid);
        ck_assert_str_eq(a->user, b->user);
}

static void check_facts(uint64_t number, const struct generation_facts *e)
{
        const struct generation_facts *f;
        struct stored_files files;

        ck_assert(read_files(number, &files));
        f = &files.facts;
        ck_assert(!files.is_missing);
        ck_assert(f->time == e->time && f->undoes == e->undoes && f->restores == e->restores && f->confirm_for == e->confirm_for &&
                  f->confirm_until == e->confirm_until && f->confirmed == e->confirmed && f->ended == e->ended);
        check_origin(&f->origin, &e->origin);
        check_origin(&f->confirmed_by, &e->confirmed_by);
        ck_assert_str_eq(f->outcome, e->outcome);
        ck_assert_uint_eq(f->n_held, e->n_held);
        ck_assert_mem_eq(f->held, e->held, MIN(e->n_held, GENERATION_MAX_HELD) * sizeof(e->held[0]));
        ck_assert_uint_eq(f->n_changes, e->n_changes);
        for (size_t i = 0; i < e->n_changes; i++)
                ck_assert_str_eq(f->changes[i], e->changes[i]);
        stored_files_done(&files);
}

START_TEST(facts_come_back)
{
        static const struct origin origins[] = {
                { ORIGIN_START, 0, "" }, { ORIGIN_SIGNAL, 0, "" }, { ORIGIN_BUS, 0, "root" }, { ORIGIN_BUS, 0, "" }, { ORIGIN_COMMAND, 5, "x" },
                { ORIGIN_TIMEOUT, 0, "" },
        };
        struct stored_files files;

        put_facts(9, &all_facts, &limits);
        ck_assert_str_eq(arena_strndup(arena, stored(GENERATION(9))->value, stored(GENERATION(9))->n), all_members);
        check_facts(9, &all_facts);
        ck_assert(read_files(9, &files));
        ck_assert(files.has_settings);
        ck_assert_str_eq(files.policy.bytes, "policy");
        ck_assert_str_eq(files.settings.bytes, "settings\n");
        stored_files_done(&files);
        for (size_t i = 0; i < ELEMENTS(origins); i++) {
                const struct generation_facts f = { .time = i, .origin = origins[i] };

                put_facts(10 + i, &f, &limits);
                check_facts(10 + i, &f);
                begin_anew();
                ck_assert_uint_eq(now->n_damaged, 0);
                ck_assert_uint_eq(now->history.items[now->history.n - 1].time, i);
        }
        ck_assert(!read_files(99, &files));
        ck_assert(files.is_missing);
}
END_TEST

/* The facts alone: of a sweep that ended, or of a confirmation. */
START_TEST(facts_change)
{
        struct generation g = { .number = 9, .facts = { .time = 1000, .origin = { ORIGIN_START, 0, "" } }, .n_policy_bytes = 6, .n_settings_bytes = 9 };

        put_facts(9, &g.facts, &limits);
        g.facts = all_facts;
        g.facts.settings_size = 9;
        g.n_settings_bytes = 7; /* edited since */
        records_put_facts(&t, &g);
        ck_assert_uint_eq(commit(), 1);
        check_facts(9, &all_facts);
}
END_TEST

START_TEST(facts_at_their_limits)
{
        const char *many[GENERATION_MAX_CHANGES], *cut;
        struct generation_facts f = all_facts;
        struct stored_files files;
        char *longest = arena_new_array(arena, char, 4096 + 2);

        memset(longest, 'a', 4096);
        for (size_t i = 0; i < ELEMENTS(many); i++)
                many[i] = longest;
        memset(f.origin.user, 'u', sizeof(f.origin.user) - 1);
        f.confirmed = f.confirm_until = f.ended = f.undoes = f.time = INT64_MAX;
        f.changes = many;
        f.n_changes = ELEMENTS(many);
        f.n_held = GENERATION_MAX_HELD + 8; /* the first ones are named */
        for (size_t i = 0; i < GENERATION_MAX_HELD; i++)
                f.held[i] = (uint16_t) i;
        put_facts(9, &f, &limits);
        check_facts(9, &f);
        strcpy(longest + 4092, "\xc3\xa4\xc3\xa4x");
        f.n_changes = 1;
        put_facts(10, &f, &limits);
        ck_assert(read_files(10, &files));
        cut = files.facts.changes[0];
        ck_assert_uint_eq(strlen(cut), 4092 + 3);
        ck_assert_str_eq(cut + 4091, "a...");
        stored_files_done(&files);
}
END_TEST

static const char *const wrong_facts[][2] = {
        { "\"settings_size\":9", "\"settings_size\":\"9\"" },
        { "\"settings_size\":9", "\"settings_size\":1048577" },
        { "\"settings_size\":9", "\"settings_size\":-1" },
        { "\"via\":\"bus\"", "\"via\":\"Bus\"" },
        { "\"via\":\"bus\"", "\"via\":1" },
        { "\"via\":\"bus\"", "\"via\":null" },
        { "\"uid\":7", "\"uid\":-1" },
        { "\"uid\":7", "\"uid\":4294967296" },
        { "\"uid\":7", "\"uid\":\"7\"" },
        { "\"alice\"", "7" },
        { "\"alice\"", "\"a\\u0000b\"" },
        { "alice", "012345678901234567890123456789012345678901234567890123456789012345678901" },
        { "\"undoes\":8", "\"undoes\":-8" },
        { "\"undoes\":8", "\"undoes\":\"8\"" },
        { "\"restores\":6", "\"restores\":6.5" },
        { "\"confirm_for\":600", "\"confirm_for\":true" },
        { "\"confirm_until\":1600", "\"confirm_until\":-1" },
        { "\"confirm_until\":1600", "\"confirm_until\":9223372036854775808" },
        { "\"confirmed\":1200", "\"confirmed\":[]" },
        { "\"confirmed_via\":\"command\"", "\"confirmed_via\":\"\"" },
        { "\"confirmed_uid\":4294967295", "\"confirmed_uid\":4294967296" },
        { "\"bob\"", "{}" },
        { "\"partial\"", "1" },
        { "\"partial\"", "\"0123456789abcdef\"" },
        { "\"ended\":1100", "\"ended\":\"\"" },
        { "\"n_held\":2", "\"n_held\":1" },
        { "\"n_held\":2", "\"n_held\":4294967296" },
        { "\"n_held\":2,", "" },
        { "\"0x7fff\"", "\"0x8000\"" },
        { "\"0x7fff\"", "32767" },
        { "[\"0x0010\",\"0x7fff\"]", "\"0x0010\"" },
        { "[\"who", "[1,\"who" },
        { "\"changes\":[", "\"changes\":{\"a\":[" },
        { "\"changes\":[", "\"changes\":[[]," },
        { "\"number\":9", "\"number\":9,\"number\":9" },
};

START_TEST(damaged_facts)
{
        struct stored_files files;

        put_facts(9, &all_facts, &limits);
        put_text(GENERATION(9), with(all_members, wrong_facts[_i][0], wrong_facts[_i][1]));
        ck_assert_msg(!read_files(9, &files), "%s", wrong_facts[_i][1]);
        ck_assert(!files.is_missing);
        stored_files_done(&files);
        begin_anew();
        ck_assert_ptr_null(now->policy);
        ck_assert_uint_eq(now->generation, 9);
}
END_TEST

START_TEST(too_many_facts)
{
        _cleanup_text_ struct text held = {}, changes = {};
        struct stored_files files;
        char *sentence = arena_new_array(arena, char, 4098);

        put_facts(9, &all_facts, &limits);
        for (size_t i = 0; i <= GENERATION_MAX_HELD; i++)
                text_add(&held, "\"0x0010\"%s", i < GENERATION_MAX_HELD ? "," : "]");
        put_text(GENERATION(9), with(with(all_members, "\"0x0010\",\"0x7fff\"]", held.bytes), "\"n_held\":2", "\"n_held\":99"));
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
        for (size_t i = 0; i < GENERATION_MAX_CHANGES - 1; i++) /* before two others */
                text_add(&changes, "\"a\",");
        put_text(GENERATION(9), with(all_members, "[\"who", arena_printf(arena, "[%s\"who", changes.bytes)));
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
        memset(sentence, 'a', 4097);
        put_text(GENERATION(9), with(all_members, "who", sentence));
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
}
END_TEST

START_TEST(damaged_settings)
{
        static const char *const values[] = { "settings", "settings\nx", "" };
        struct stored_files files;

        put_facts(9, &all_facts, &limits);
        for (size_t i = 0; i < ELEMENTS(values); i++) {
                put_text(SETTINGS(9), values[i]);
                ck_assert(!read_files(9, &files));
                stored_files_done(&files);
                begin_anew();
                ck_assert_ptr_null(now->policy);
                ck_assert_uint_eq(now->n_damaged, 1);
        }
        delete(SETTINGS(9));
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
        put_text(GENERATION(9) "/settings/01", "settings\n");
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
        delete(GENERATION(9) "/settings/01");
        put_text(GENERATION(9), "{\"number\":9,\"time\":1000,\"policy_size\":6}"); /* of pkeyd 0.1.0 */
        ck_assert(read_files(9, &files));
        ck_assert(!files.has_settings);
        ck_assert_int_eq(files.facts.origin.kind, ORIGIN_UNKNOWN);
        stored_files_done(&files);
        put_text(SETTINGS(9), "s");
        ck_assert(!read_files(9, &files));
        stored_files_done(&files);
}
END_TEST

/* No settings at all are known settings: pkeyd ran with the defaults. */
START_TEST(empty_settings)
{
        struct generation g = { .number = 9, .facts = all_facts, .policy_bytes = "policy", .n_policy_bytes = 6, .settings_bytes = "" };
        struct stored_files files;

        records_put_generation(&t, &now->history, &g, &limits);
        ck_assert_uint_eq(commit(), 2);
        ck_assert(read_files(9, &files));
        ck_assert(files.has_settings);
        ck_assert_uint_eq(files.settings.n, 0);
        stored_files_done(&files);
}
END_TEST

/* --- which generations are kept ------------------------------------------------------------------------------------ */

static void put_at(uint64_t number, uint64_t time, size_t keep, uint64_t seconds)
{
        struct generation_facts f = { .time = time, .origin = { ORIGIN_SIGNAL, 0, "" } };

        put_facts(number, &f, &(struct history_limits) { keep, seconds });
}

/* Exactly these, in the store and in the history. */
static void check_kept(const char *numbers)
{
        _cleanup_text_ struct text in_store = {}, in_history = {};
        struct generation_key key;

        for (uint32_t i = 0; i < n_all; i++)
                if (generation_key_read(all[i].key, &key) && key.what == GENERATION_FACTS)
                        text_add(&in_store, "%" PRIu64 " ", key.number);
        for (size_t i = 0; i < now->history.n; i++)
                text_add(&in_history, "%" PRIu64 " ", now->history.items[i].number);
        ck_assert_str_eq(in_store.bytes, numbers);
        ck_assert_str_eq(in_history.bytes, numbers);
        ck_assert_uint_eq(n_all, 3 * now->history.n); /* with both files */
}

START_TEST(kept_by_number)
{
        for (uint64_t i = 1; i <= 5; i++) {
                put_at(i, 1000, 3, UINT64_MAX);
                if (_i)
                        begin_anew();
        }
        check_kept("3 4 5 ");
        put_at(6, 1000, 2, UINT64_MAX);
        check_kept("5 6 ");
        put_at(7, 1000, 10, UINT64_MAX);
        check_kept("5 6 7 ");
        put_at(7, 1000, 3, UINT64_MAX); /* again */
        check_kept("5 6 7 ");
}
END_TEST

START_TEST(kept_by_age)
{
        put_at(1, 1000, 10, 100);
        put_at(2, 1050, 10, 100);
        put_at(3, 1060, 10, 100);
        check_kept("1 2 3 ");
        if (_i)
                begin_anew();
        put_at(4, 1100, 10, 100); /* exactly as old as allowed */
        check_kept("1 2 3 4 ");
        put_at(5, 1151, 10, 100);
        check_kept("3 4 5 ");
        put_at(6, 900, 10, 100); /* the clock was set back */
        check_kept("3 4 5 6 ");
        put_at(7, 10000, 10, 100); /* the one before the newest stays, however old it is */
        check_kept("6 7 ");
        put_at(8, 20000, 10, 100);
        check_kept("7 8 ");
}
END_TEST

START_TEST(the_one_before)
{
        put_at(3, 1000, 10, UINT64_MAX);
        put_at(7, 1000, 10, UINT64_MAX);
        ck_assert_uint_eq(generation_history_before(&now->history, 1), 0);
        ck_assert_uint_eq(generation_history_before(&now->history, 3), 0);
        ck_assert_uint_eq(generation_history_before(&now->history, 4), 3);
        ck_assert_uint_eq(generation_history_before(&now->history, 7), 3);
        ck_assert_uint_eq(generation_history_before(&now->history, 8), 7);
}
END_TEST

static void put_undo(uint64_t number, uint64_t restores)
{
        struct generation_facts f = { .time = 1000, .origin = { ORIGIN_SIGNAL, 0, "" }, .undoes = number - 1, .restores = restores };

        put_facts(number, &f, &limits);
}

/* Whether they were read or stored. */
static void check_target(uint64_t number, uint64_t restores, uint64_t target)
{
        ck_assert_uint_eq(generation_history_target(&now->history, number, restores), target);
        begin_anew();
        ck_assert_uint_eq(generation_history_target(&now->history, number, restores), target);
}

START_TEST(where_an_undo_goes)
{
        for (uint64_t i = 1; i <= 3; i++)
                put_at(i, 1000, 10, UINT64_MAX);
        check_target(1, 0, 0);
        check_target(3, 0, 2);
        put_undo(4, 2);
        check_target(4, 2, 1);
        put_at(5, 1000, 10, UINT64_MAX);
        check_target(5, 0, 4);
        put_undo(6, 4);
        check_target(6, 4, 1);
        put_undo(7, 1);
        check_target(7, 1, 0);
        check_target(8, 0, 7);
        check_target(8, 9, 0); /* of a damaged record */
        put_text(GENERATION(4), "{}");
        begin_anew();
        check_target(6, 4, 0); /* it may have undone 3 */
        delete(GENERATION(4));
        delete(PART(4, 0));
        delete(SETTINGS(4));
        check_target(6, 4, 0);
        check_target(5, 0, 3);
}
END_TEST

/* NULL stands for a key or a value that no transaction can have written. */
/* --- leases ------------------------------------------------------------------------------------------------------- */

#define LEASE_KEY "lease/job:1"
#define LEASE_RECORD                                                                                                             \
        "{\"pool\":\"jobs\",\"asked\":{\"members\":\"node[1-2]\",\"pkey\":\"0x0000\",\"membership\":\"none\",\"seconds\":0,"              \
        "\"partial\":true},\"state\":\"active\",\"pkey\":\"0x1000\",\"membership\":\"full\",\"members\":[\"10 11 1\",\"20 21 1 -\"],"      \
        "\"via\":\"bus\",\"uid\":1000,\"user\":\"alice\",\"created\":1700000000,\"ends\":1700003600,\"seconds\":3600,"                     \
        "\"confirm_by\":1700000060,\"timeout\":60,\"rest\":30,\"why\":\"\"}"

static const struct lease *load_lease(const char *record)
{
        put_text(LEASE_KEY, record);
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        return leases_find(now->leases, "job:1");
}

/* It is stored again as it was. */
static void check_stored_again(const char *record)
{
        leases_unstore(now->leases);
        delete(LEASE_KEY);
        records_put_leases(&t, now->leases);
        ck_assert_uint_eq(commit(), 1);
        ck_assert_uint_eq(stored(LEASE_KEY)->n, strlen(record));
        ck_assert_mem_eq(stored(LEASE_KEY)->value, record, strlen(record));
}

START_TEST(lease)
{
        const struct lease *a = load_lease(LEASE_RECORD);

        ck_assert_ptr_nonnull(a);
        ck_assert_int_eq(a->state, LEASE_ACTIVE);
        ck_assert_uint_eq(a->base, 0x1000);
        ck_assert_uint_eq(a->n_members, 2);
        ck_assert_uint_eq(a->members[1].node.v, 0x20);
        ck_assert_uint_eq(a->members[1].port.v, 0x21);
        ck_assert_int_eq(a->members[0].state, LEASE_MEMBER_WAITS);
        ck_assert_int_eq(a->members[1].state, LEASE_MEMBER_LEFT_OUT);
        ck_assert_str_eq(a->owner.user, "alice");
        ck_assert_uint_eq(a->ends, 1700003600);
        ck_assert_uint_eq(a->timeout, 60);
        ck_assert(!a->is_open && !a->ip_over_ib && a->is_kept);
        ck_assert_uint_eq(a->qos.mtu, 0);
        ck_assert_uint_eq(a->updated, 1700000000);
        check_stored_again(LEASE_RECORD);
}
END_TEST

#define OPEN_RECORD with(with(LEASE_RECORD, "\"10 11 1\",\"20 21 1 -\"", "\"10 11 1 limited index0\",\"0 21 0 index0 -\""), "\"\"}", "\"\",\"open\":true" OPTIONS "}")
#define OPTIONS ",\"drops\":true,\"ip_over_ib\":true,\"qos\":{\"mtu\":4,\"service_level\":15,\"rate\":25},\"updated\":1700000001"

START_TEST(open_lease)
{
        const char *record = OPEN_RECORD;
        const struct lease *a = load_lease(record);

        ck_assert(a->is_open);
        ck_assert(a->members[0].index0 && a->members[1].index0);
        ck_assert_int_eq(a->members[0].membership, MEMBERSHIP_LIMITED);
        ck_assert_int_eq(a->members[1].state, LEASE_MEMBER_LEFT_OUT);
        ck_assert(a->ip_over_ib && !a->is_kept);
        ck_assert(a->qos.mtu == 4 && a->qos.service_level == 15 && a->qos.rate == 25);
        ck_assert_uint_eq(a->updated, 1700000001);
        check_stored_again(record);
}
END_TEST

START_TEST(damaged_options)
{
        static const char *const wrongs[][2] = {
                { "\"open\":true", "\"open\":1" }, { "\"drops\":true", "\"drops\":0" },
                { "\"ip_over_ib\":true", "\"ip_over_ib\":false" }, { "\"mtu\":4", "\"mtu\":3" },
                { "\"mtu\":4", "\"mtu\":260" }, { "\"mtu\":4", "\"mtu\":0" }, { ":15", ":16" }, { "\"rate\":25", "\"rate\":26" },
                { "\"rate\":25", "\"rat\":25" }, { "1700000001", "\"\"" }, { "\"qos\":{", "\"qos\":1,\"x\":{" },
        };

        for (size_t i = 0; i < ELEMENTS(wrongs); i++) {
                put_text(LEASE_KEY, with(OPEN_RECORD, wrongs[i][0], wrongs[i][1]));
                check_damaged(LEASE_KEY);
        }
}
END_TEST

/* What is released may have no member any more that is in force: all were left out. */
START_TEST(lease_of_which_all_are_left_out)
{
        const char *all_out = with(LEASE_RECORD, "10 11 1", "10 11 1 -"), *released = with(all_out, "\"why\":\"\"", "\"why\":\"it ended\"");

        ck_assert_int_eq(load_lease(with(released, "active", "releasing"))->state, LEASE_RELEASING);
        put_text(LEASE_KEY, all_out);
        check_damaged(LEASE_KEY);
}
END_TEST

START_TEST(damaged_leases)
{
        static const char *const wrongs[][2] = {
                { "active", "ended" }, { "active", "" }, { "0x1000", "0x0000" }, { "0x1000", "0x8000" }, { "full", "none" },
                { "full", "both" }, { "10 11 1", "10 0 1" }, { "10 11 1", "10 11 1 +" }, { "10 11 1", "10 21 1" }, { "10 11 1", "10 11" },
                { "\"10 11 1\",\"20 21 1 -\"", "" },
                { "10 11 1", "10 11 1 index0" }, { "bus", "" }, { "1000,", "-1," }, { "1700003600", "\"never\"" },
                { "\"pool\"", "\"pond\"" }, { "\"why\":\"\"", "\"why\":1" }, { "true", "1" }, { "}", "" },
        };

        for (size_t i = 0; i < ELEMENTS(wrongs); i++) {
                put_text(LEASE_KEY, with(LEASE_RECORD, wrongs[i][0], wrongs[i][1]));
                check_damaged(LEASE_KEY);
                ck_assert_ptr_null(leases_find(now->leases, "job:1"));
        }
}
END_TEST

START_TEST(leases_with_the_same_base)
{
        put_text(LEASE_KEY, LEASE_RECORD);
        put_text("lease/job:2", LEASE_RECORD);
        check_damaged("lease/job:2");
}
END_TEST

START_TEST(bases_that_rest)
{
        static const char *const keys[] = { "rest/0x0000", "rest/0x8000", "rest/0x010", "rest/0x0010x", "rest/" };
        size_t n;

        put_text("rest/0x0010", "{\"seconds\": 60, \"until\": 1700000060}");
        begin_anew();
        ck_assert_uint_eq(now->n_damaged, 0);
        ck_assert_uint_eq(leases_rests(now->leases, &n)[0].base, 0x0010);
        ck_assert_uint_eq(n, 1);
        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                put_text(keys[i], "{\"seconds\": 60, \"until\": 1700000060}");
                check_damaged(keys[i]);
                delete(keys[i]);
        }
        put_text("rest/0x0010", "{\"seconds\": 60}");
        check_damaged("rest/0x0010");
}
END_TEST

START_TEST(not_a_record)
{
        static const char *const keys[] = { "index/0x0000000000000001/1", "known/0x0000000000000001", PIN, GENERATION(2), PART(2, 0),
                                            "table/endport/0x0000000000000001/1" };

        for (size_t i = 0; i < ELEMENTS(keys); i++) {
                remembered_free(now);
                now = remembered_new(BOOT);
                ck_assert_int_eq(remembered_restore(now, keys[i], NULL, 0), 0);
                ck_assert_uint_eq(now->n_damaged, 1);
                ck_assert_str_eq(now->first_damaged, keys[i]);
        }
        put_generation(2, "newer", 5);
        remembered_free(now);
        now = remembered_new(BOOT);
        for (uint32_t i = 0; i < n_all; i++)
                ck_assert_int_eq(remembered_restore(now, all[i].key, all[i].value, all[i].n), 0);
        ck_assert_int_eq(remembered_restore(now, NULL, "", 0), 0);
        remembered_end(now);
        ck_assert_uint_eq(now->n_damaged, 1);
        ck_assert_ptr_null(now->policy); /* the record without a key may be a newer policy */
}
END_TEST

/* If a store returns records out of order, an older generation does not come in force. */
START_TEST(generations_out_of_order)
{
        put_generation(1, "older", 5);
        put_generation(2, "newer", 5);
        remembered_free(now);
        now = remembered_new(BOOT);
        for (uint32_t i = 0; i < n_all; i++) {
                const struct store_op *op = &all[(i + 2) % n_all];

                ck_assert_int_eq(remembered_restore(now, op->key, op->value, op->n), 0);
        }
        remembered_end(now);
        ck_assert_uint_eq(now->generation, 2);
        ck_assert_mem_eq(now->policy, "newer", 5);
        ck_assert_uint_eq(now->n_damaged, 2);
}
END_TEST

/* Without remembered_end() there is no policy. */
START_TEST(not_ended)
{
        put_generation(1, "older", 5);
        remembered_free(now);
        now = remembered_new(BOOT);
        for (uint32_t i = 0; i < n_all; i++)
                ck_assert_int_eq(remembered_restore(now, all[i].key, all[i].value, all[i].n), 0);
        ck_assert_ptr_null(now->policy);
}
END_TEST

/* --- all ---------------------------------------------------------------------------------------------------------- */

START_TEST(many_ports)
{
        for (uint64_t i = 1; i <= N_PORTS; i++) {
                free_index(i, 1, 3, 0x8010);
                know(i);
        }
        ck_assert_uint_eq(commit_changes(), 2 * N_PORTS);
        begin_anew();
        ck_assert_uint_eq(n_freed(), N_PORTS);
        ck_assert_uint_eq(now->known.n, N_PORTS);
        ck_assert_uint_eq(commit_changes(), 0);
        free_index(N_PORTS / 2, 1, 4, 0x8010);
        ck_assert_uint_eq(commit_changes(), 1);
        know(N_PORTS / 2);
        ck_assert_uint_eq(commit_changes(), 1);
}
END_TEST

/* Each failed allocation is an error, and never counts as damage. */
START_TEST(out_of_memory)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct remembered *r = NULL;
        int e = -ENOMEM;

        read_host(s, 0, 0x8001);
        knowledge_store(k, BOOT, &t);
        free_index(1, 1, 5, 0x8010);
        know(2);
        put_generation(1, "policy", 6);
        (void) commit_changes();
        for (failing = 1; e == -ENOMEM; failing++) {
                r = remembered_free(r);
                n_allocations = 0;
                counting = true;
                r = remembered_new(BOOT);
                e = r ? load(r) : -ENOMEM;
                counting = false;
                ck_assert(!r || r->n_damaged == 0);
                ck_assert(e == 0 || n_allocations >= failing);
        }
        ck_assert_int_eq(e, 0);
        ck_assert_uint_gt(failing, 10);
        remembered_free(r);
}
END_TEST

int main(void)
{
        TCase *c = tcase_create("records");
        Suite *s = suite_create("records");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, nothing);
        tcase_add_test(c, tables);
        tcase_add_test(c, indexes_come_back);
        tcase_add_test(c, indexes_that_changed);
        tcase_add_test(c, indexes_of_a_huge_table);
        tcase_add_loop_test(c, damaged_indexes, 0, (int) ELEMENTS(wrong_indexes));
        tcase_add_test(c, cut_off);
        tcase_add_test(c, wrong_keys);
        tcase_add_test(c, known_ports_come_back);
        tcase_add_test(c, known_ports_at_a_glance);
        tcase_add_test(c, known_ports_that_are_gone);
        tcase_add_test(c, damaged_known_ports);
        tcase_add_test(c, pins_come_back);
        tcase_add_test(c, damaged_pins);
        tcase_add_test(c, generations_come_back);
        tcase_add_test(c, large_policy);
        tcase_add_test(c, old_generations_go);
        tcase_add_test(c, old_generations_go_after_a_failure);
        tcase_add_test(c, too_many_generations);
        tcase_add_test(c, damaged_generation);
        tcase_add_test(c, damaged_older_generation);
        tcase_add_test(c, generation_of_unknown_number);
        tcase_add_test(c, facts_come_back);
        tcase_add_test(c, facts_change);
        tcase_add_test(c, facts_at_their_limits);
        tcase_add_loop_test(c, damaged_facts, 0, (int) ELEMENTS(wrong_facts));
        tcase_add_test(c, too_many_facts);
        tcase_add_test(c, damaged_settings);
        tcase_add_test(c, empty_settings);
        tcase_add_loop_test(c, kept_by_number, 0, 2);
        tcase_add_loop_test(c, kept_by_age, 0, 2);
        tcase_add_test(c, the_one_before);
        tcase_add_test(c, where_an_undo_goes);
        tcase_add_test(c, lease);
        tcase_add_test(c, open_lease);
        tcase_add_test(c, damaged_options);
        tcase_add_test(c, lease_of_which_all_are_left_out);
        tcase_add_test(c, damaged_leases);
        tcase_add_test(c, leases_with_the_same_base);
        tcase_add_test(c, bases_that_rest);
        tcase_add_test(c, not_a_record);
        tcase_add_test(c, generations_out_of_order);
        tcase_add_test(c, not_ended);
        tcase_add_test(c, many_ports);
        tcase_add_test(c, out_of_memory);
        suite_add_tcase(s, c);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
