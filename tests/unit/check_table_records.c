/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "knowledge/table_records.h"
#include "knowledge_fixture.h"

#define BOOT  "5d2f0c1b"
#define OTHER "c90a7e42"

/* The latest time that a record may have, and the next second. */
#define LATEST   "9007199254740992"
#define TOO_LATE "9007199254740993"

/* The store: what was put last under each key. */
static struct store_transaction all;

static void setup(void)
{
        knowledge_setup();
        store_transaction_init(&all, arena);
}

static size_t store_in(const char *boot)
{
        size_t before = all.n;

        knowledge_store(k, boot, &all);
        ck_assert_int_eq(all.error, 0);
        knowledge_stored(k);
        return all.n - before;
}

static size_t store(void)
{
        return store_in(BOOT);
}

static const struct store_op *stored(const char *key)
{
        for (size_t i = all.n; i > 0; i--)
                if (strcmp(all.ops[i - 1].key, key) == 0)
                        return &all.ops[i - 1];
        return NULL;
}

/* Another process begins with what was stored. */
static void begin_anew(const char *boot)
{
        k = knowledge_free(k);
        k = knowledge_new();
        ck_assert_ptr_nonnull(k);
        for (size_t i = 0; i < all.n; i++)
                if (stored(all.ops[i].key) == &all.ops[i])
                        ck_assert_int_eq(knowledge_restore(k, boot, all.ops[i].key, all.ops[i].value, all.ops[i].n), 0);
        knowledge_restored(k);
}

static struct bounds bounds_of(unsigned host, uint16_t base)
{
        return knowledge_port_bounds(k, host_record(host), base);
}

static void check_bounds(unsigned host, uint16_t base, unsigned has, unsigned may)
{
        ck_assert_uint_eq(bounds_of(host, base).has, has);
        ck_assert_uint_eq(bounds_of(host, base).may, may);
}

/* Writes that may have happened while no process ran are still possible after another restart; later reads are known. */
START_TEST(unfollowed_comes_back)
{
        struct subnet *s = discover(ALL, 0, 0, 5 * MINUTE);

        for (unsigned i = 0; i < HOSTS; i++)
                read_host(s, i, 0);
        store();
        begin_anew(BOOT);
        knowledge_stop_following(k);
        s = discover(ALL, 0, 0, 6 * MINUTE);
        read_host(s, 1, 0);
        store();
        ck_assert_uint_eq(store(), 0);
        begin_anew(BOOT);
        check_bounds(0, 7, LEVEL_NONE, LEVEL_FULL);
        check_bounds(1, 7, LEVEL_NONE, LEVEL_NONE);
        s = discover(ALL, 0, 0, 7 * MINUTE);
        read_host(s, 0, 0);
        store();
        begin_anew(BOOT);
        check_bounds(0, 7, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

START_TEST(tables_come_back)
{
        struct subnet *s;

        discover(ALL, 0, 0, 4 * MINUTE);
        s = discover(ALL, 0, 0, 5 * MINUTE);
        read_host(s, 0, 0x8001);
        read_host(s, 1, 0);
        store();
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL); /* not read since */
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        check_bounds(1, 1, LEVEL_NONE, LEVEL_NONE);
        check_bounds(2, 1, LEVEL_NONE, LEVEL_FULL); /* never read */
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->read_at, 1000);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen_at, 300);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen, 5 * MINUTE);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_places, 1);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->places[0].node.v, SWITCH);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->places[0].number, 1);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_THERE);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->since, 240);
}
END_TEST

/* ... each entry as it was read, an unused one that holds 0x8000, too: what is read again is no news then. */
START_TEST(unused_entries_come_back)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct observed *o;

        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port_at(s, host_guid(0), 1)].entries[CAPACITY - 1].v = 0x8000;
        o->tables[port_at(s, host_guid(0), 1)].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, 0), 0);
        store();
        begin_anew(BOOT);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->entries[CAPACITY - 1].v, 0x8000);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->entries[CAPACITY - 2].v, 0);
}
END_TEST

/* The largest table that there can be, with its last entry, and a Set of its last block that was not confirmed. */
START_TEST(largest_table_comes_back)
{
        const uint16_t capacity = UINT16_MAX, last_block = (uint16_t) (UINT16_MAX / P_KEY_BLOCK_ENTRIES);
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct observed *o;

        s->nodes[subnet_find_node(s, G(host_guid(0)))].partition_cap = capacity;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port_at(s, host_guid(0), 1)].entries[capacity - 1].v = 0x8001;
        o->tables[port_at(s, host_guid(0), 1)].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, 0), 0);
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), last_block, block), 0);
        store();
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 3, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* So is a switch, by all of them. */
START_TEST(silent_switch_after_a_restart)
{
        struct subnet_place links[] = { { G(0xffff0000ffff0000), 255 }, { G(0x20), 7 } };
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        const struct knowledge_record *r;

        s->nodes[subnet_find_node(s, G(SWITCH))].links = links;
        s->nodes[subnet_find_node(s, G(SWITCH))].n_links = 2;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        store();
        begin_anew(BOOT);
        r = knowledge_get(k, knowledge_find(k, (struct knowledge_name) { G(SWITCH), 0, KNOWLEDGE_ENDPORT }));
        ck_assert_uint_eq(r->n_places, 2);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_uint_eq(r->places[i].node.v, links[i].node.v);
                ck_assert_uint_eq(r->places[i].number, links[i].number);
        }
}
END_TEST

/* As many links as a switch may have, each as short in the store as can be. */
START_TEST(many_places_come_back)
{
        struct subnet_place links[254];
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        struct subnet_node *node = &s->nodes[subnet_find_node(s, G(SWITCH))];
        const struct knowledge_record *r;

        for (unsigned i = 0; i < ELEMENTS(links); i++)
                links[i] = (struct subnet_place) { G(0x1000 + i), (uint8_t) (1 + i % 9) };
        node->links = links;
        node->n_links = ELEMENTS(links);
        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        store();
        begin_anew(BOOT);
        r = knowledge_get(k, knowledge_find(k, (struct knowledge_name) { G(SWITCH), 0, KNOWLEDGE_ENDPORT }));
        ck_assert_uint_eq(r->n_places, ELEMENTS(links));
        for (unsigned i = 0; i < ELEMENTS(links); i++)
                ck_assert(r->places[i].node.v == links[i].node.v && r->places[i].number == links[i].number);
}
END_TEST

/* One cable less is news. */
START_TEST(fewer_places_are_stored)
{
        struct subnet_place links[] = { { G(0x20), 7 }, { G(0x20), 8 } };
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        struct subnet_node *node = &s->nodes[subnet_find_node(s, G(SWITCH))];

        node->links = links;
        for (uint16_t n = 2; n > 0; n--) {
                node->n_links = n;
                ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
                ck_assert_uint_eq(store(), n == 2 ? knowledge_n_records(k) : 1);
        }
}
END_TEST

/* So is a cable that leads elsewhere: to the same port of another switch, or to another port. */
START_TEST(moved_places_are_stored)
{
        static const struct subnet_place moves[] = { { G(0x20), 7 }, { G(0x21), 7 }, { G(0x21), 8 } };
        struct subnet_place links[] = { { G(0x30), 1 }, moves[0] };
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        struct subnet_node *node = &s->nodes[subnet_find_node(s, G(SWITCH))];
        const struct knowledge_record *r;

        node->links = links;
        node->n_links = ELEMENTS(links);
        for (unsigned i = 0; i < ELEMENTS(moves); i++) {
                links[1] = moves[i];
                ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
                ck_assert_uint_eq(store(), i == 0 ? knowledge_n_records(k) : 1);
                ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
                ck_assert_uint_eq(store(), 0);
        }
        begin_anew(BOOT);
        r = knowledge_get(k, knowledge_find(k, (struct knowledge_name) { G(SWITCH), 0, KNOWLEDGE_ENDPORT }));
        ck_assert(r->places[1].node.v == 0x21 && r->places[1].number == 8);
}
END_TEST

/* A silent host is known again by its place. */
START_TEST(silent_after_a_restart)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        store();
        begin_anew(BOOT);
        discover(ALL & ~1u, 1, 0, MINUTE);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* When it answered last is another time than when it was seen, silent. A record of before had only the latter. */
START_TEST(when_it_answered_last)
{
        discover(ALL, 0, 0, MINUTE);
        discover(ALL & ~1u, 1, 0, 5 * MINUTE);
        store();
        begin_anew(BOOT);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->there_at, 60);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen_at, 300);
        discover(ALL, 0, 0, 6 * MINUTE);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->there_at, 360);
}
END_TEST

/* The store is read again, and lacks what OpenSM was asked for: it may have done it, until the table is read. */
START_TEST(foreign_writes_are_taken_along)
{
        struct subnet *s = discover(ALL, 0, 0, 5 * MINUTE);
        struct knowledge *before = k;
        struct p_key full[P_KEY_BLOCK_ENTRIES];

        for (unsigned i = 0; i < 3; i++)
                read_host(s, i, 0);
        store();
        block_of(0x8001, full);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(1), 0, full), 0);
        knowledge_settle_expected(k, true);
        read_host(s, 1, 0);
        ck_assert_int_eq(knowledge_suspect_block(k, host_record(2), 0, full), 0);
        k = NULL;
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
        knowledge_take_foreign(k, before);
        knowledge_free(before);
        ck_assert(!knowledge_get(k, host_record(0))->writes[0].is_suspected);
        ck_assert(knowledge_get(k, host_record(2))->writes[0].is_suspected);
        for (unsigned i = 0; i < 2; i++) {
                check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
                check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
                check_bounds(1, 1, LEVEL_NONE, LEVEL_NONE);
                check_bounds(2, 1, LEVEL_NONE, LEVEL_FULL);
                store();
                begin_anew(BOOT);
        }
        read_host(s, 0, 0);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* The same of tables that nobody followed for a time; and a table that got smaller may hold anything. */
START_TEST(doubts_are_taken_along)
{
        struct subnet *s = discover(ALL, 0, 0, 5 * MINUTE);
        struct knowledge *before = k;
        struct p_key full[P_KEY_BLOCK_ENTRIES];
        struct knowledge_record *smaller;

        for (unsigned i = 0; i < 3; i++)
                read_host(s, i, 0);
        store();
        knowledge_stop_following(k);
        read_host(s, 1, 0);
        read_host(s, 2, 0);
        block_of(0x8001, full);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(2), 1, full), 0);
        knowledge_settle_expected(k, true);
        k = NULL;
        begin_anew(BOOT);
        smaller = (struct knowledge_record *) knowledge_get(k, host_record(2));
        smaller->capacity = P_KEY_BLOCK_ENTRIES;
        knowledge_take_foreign(k, before);
        knowledge_free(before);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        check_bounds(1, 1, LEVEL_NONE, LEVEL_NONE);
        check_bounds(2, 2, LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

START_TEST(when_it_answered_last_of_an_older_version)
{
        static const char value[] = "{\"capacity\":2,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"silent\","
                                    "\"since\":2,\"seen_at\":300,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                                    "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";

        ck_assert_int_eq(knowledge_restore(k, "x", "table/endport/0x0000000000000100/1", value, strlen(value)), 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->there_at, 300);
}
END_TEST

#define WALL INT64_C(1800000000)

/* Host 0 is absent, and something silent where nothing was before, unless all is well. */
static void see(bool all_is_well, unsigned seconds, int64_t wall)
{
        const struct scene scene = { .there = all_is_well ? ALL & ~2u : ALL & ~3u, .silent = all_is_well ? 0 : 2 };

        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&scene), seconds * USEC_PER_SEC, (uint64_t) wall, HOLD), 0);
}

static void check_times(int64_t absent, int64_t silent, bool expired)
{
        const struct knowledge_record *host = knowledge_get(k, host_record(0));

        ck_assert_int_eq((int64_t) host->seen_at, absent);
        ck_assert_int_eq((int64_t) host->there_at, absent);
        ck_assert_int_eq(host->expired, expired);
        ck_assert_int_eq((int64_t) knowledge_get(k, place_record(1))->since, silent);
}

static const int64_t steps[] = { 365 * 86400, -365 * 86400, 100 * INT64_C(365) * 86400, 3000, -3000, 1, -1, 10 - WALL };

/* The wall clock is set, and set right again: times say how long ago it was, in this process and the next; and absent_hold is as
 * long as it is. */
START_TEST(wall_clock_is_set)
{
        const int64_t there = WALL + steps[_i], hold = HOLD / USEC_PER_SEC;

        see(true, 100, WALL + 100);
        see(false, 200, WALL + 200);
        see(false, 300, there + 300);
        check_times(there + 100, there + 200, false);
        store();
        begin_anew(BOOT);
        see(false, 400, there + 400);
        check_times(there + 100, there + 200, false);
        see(false, 500, WALL + 500);
        check_times(WALL + 100, WALL + 200, false);
        store();
        begin_anew(BOOT);
        see(false, 600, there + 600);
        check_times(there + 100, there + 200, false);
        see(false, 99 + (unsigned) hold, WALL + 99 + hold);
        check_times(WALL + 100, WALL + 200, false);
        see(false, 100 + (unsigned) hold, there + 100 + hold);
        check_times(there + 100, there + 200, true);
}
END_TEST

/* ... when the table was read and when a person vouched for it, too. */
START_TEST(wall_clock_is_set_after_a_vouch)
{
        const int64_t there = WALL + steps[_i];
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        const struct knowledge_record *host;
        struct observed *o;

        ck_assert_int_eq(knowledge_see_subnet(k, s, 100 * USEC_PER_SEC, WALL + 100, HOLD), 0);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port_at(s, host_guid(0), 1)].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, WALL + 110), 0);
        see(false, 200, WALL + 200);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", WALL + 210), 0);
        see(false, 300, there + 300);
        host = knowledge_get(k, host_record(0));
        ck_assert(host->vouched);
        ck_assert_int_eq((int64_t) host->read_at, there + 110);
        ck_assert_int_eq((int64_t) host->vouched_at, there + 210);
}
END_TEST

/* To a time so early that what was before it is negative; what never was stays so. */
START_TEST(wall_clock_without_a_time)
{
        see(true, 1000, WALL);
        see(false, 1200, WALL + 200);
        see(false, 1201, 5);
        check_times(5 - 201, 5 - 1, false);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->read_at, 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->vouched_at, 0);
        store();
        see(false, 1202, WALL + 202);
        check_times(WALL, WALL + 200, false);
        begin_anew(BOOT); /* before 1970 is nothing in the store, but the record is good */
        see(false, 1203, 7);
        ck_assert_int_ge((int64_t) knowledge_get(k, host_record(0))->seen_at, 1);
        ck_assert_int_le((int64_t) knowledge_get(k, host_record(0))->seen_at, 7);
}
END_TEST

/* It began with the boot, as on a host without a battery, and is set after a restart of pkeyd. */
START_TEST(wall_clock_that_began_with_the_boot)
{
        see(true, 100, 100);
        see(false, 200, 200);
        store();
        begin_anew(BOOT);
        see(false, 300, WALL + 300);
        check_times(WALL + 100, WALL + 200, false);
}
END_TEST

/* Of another boot nothing is known but that nothing was seen in the future. */
START_TEST(wall_clock_of_another_boot)
{
        see(true, 100, WALL + 100);
        see(false, 200, WALL + 200);
        store();
        begin_anew("another");
        see(false, 50, WALL + 100000);
        check_times(WALL + 100, WALL + 200, false);
        begin_anew("another");
        see(false, 50, WALL - 100000);
        check_times(WALL - 100000, WALL - 100000, false);
        see(false, 60, WALL + 60); /* it is set right */
        check_times(WALL + 50, WALL + 50, false);
}
END_TEST

/* ... where it was last: hosts 0 and 1 changed their cables, and it is host 1 that hangs. */
START_TEST(silent_at_another_place)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t first = port_at(s, host_guid(0), 1), second = port_at(s, host_guid(1), 1);
        uint32_t leaf = s->ports[first].peer;

        store();
        s->ports[first].peer = s->ports[second].peer;
        s->ports[second].peer = leaf;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        store();
        begin_anew(BOOT);
        discover(ALL & ~3u, 1, 0, MINUTE);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_ABSENT);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_SILENT);
}
END_TEST

START_TEST(writes_come_back)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        store();
        ck_assert(knowledge_send_block(k, host_record(0), 0, block));
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 3, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* What was announced may have been sent, for all that the next process knows. For this one it changes nothing. */
START_TEST(announced)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        store();
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        check_bounds(0, 1, LEVEL_FULL, LEVEL_FULL);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, block)); /* it is not in the store */
        ck_assert_uint_eq(store(), 1);
        begin_anew(BOOT);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, block)); /* by another process */
}
END_TEST

/* A block that was sent and then read as it was before may be sent again in this phase, and only in this one. */
START_TEST(sent_again)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES], before[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        block_of(0x8002, block);
        block_of(0, before);
        announce(host_record(0), 0, block);
        ck_assert(knowledge_send_block(k, host_record(0), 0, block));
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        knowledge_see_block(k, host_record(0), 0, before);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, before));
        ck_assert(!knowledge_send_block(k, host_record(0), 1, block));
        ck_assert(!knowledge_send_block(k, host_record(1), 0, block));
        ck_assert(knowledge_send_block(k, host_record(0), 0, block));
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        knowledge_see_block(k, host_record(0), 0, block);
        check_bounds(0, 2, LEVEL_FULL, LEVEL_FULL);
        knowledge_withdraw(k);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, block));
}
END_TEST

/* A sweep in which nothing changed stores when it was, and nothing else. */
START_TEST(only_news_is_stored)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        ck_assert_uint_gt(store(), 2);
        s = discover(ALL, 0, 0, MINUTE);
        read_host(s, 0, 0x8001);
        ck_assert_uint_eq(store(), 1);
        ck_assert_uint_eq(store(), 0);
        s = discover(ALL, 0, 0, 2 * MINUTE);
        read_host(s, 0, 0x8002);
        ck_assert_uint_eq(store(), 2);
        block_of(0x8003, block);
        knowledge_see_block(k, host_record(0), 0, block);
        ck_assert_uint_eq(store(), 1);
        discover(ALL, 0, 0, 3 * MINUTE); /* it does not answer any more */
        ck_assert_uint_eq(store(), 2);
        discover(ALL, 0, 0, 4 * MINUTE);
        ck_assert_uint_eq(store(), 1);
        knowledge_unstore(k);
        ck_assert_uint_gt(store(), 2);
        discover(ALL & ~1u, 0, 0, 5 * MINUTE);
        ck_assert_uint_ge(store(), 2); /* with its leaf port */
        discover(ALL & ~1u, 0, 0, 6 * MINUTE);
        ck_assert_uint_eq(store(), 1);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen, 4 * MINUTE);
}
END_TEST

/* A vouch is stored without the discovery that was made for it. It ends when the port is back. */
START_TEST(one_record_is_stored)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        size_t before;

        read_host(s, 0, 0x8001);
        read_host(s, 1, 0x8001);
        store();
        before = all.n;
        begin_anew(BOOT);
        s = discover(ALL & ~1u, 0, 0, MINUTE);
        read_host(s, 1, 0x8002);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "alice", 60), 0);
        knowledge_store_record(k, host_record(0), BOOT, &all);
        ck_assert_uint_eq(all.n, before + 1);
        begin_anew(BOOT);
        ck_assert(knowledge_get(k, host_record(0))->vouched);
        check_bounds(1, 1, LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 2 * MINUTE);
        ck_assert(knowledge_get(k, host_record(0))->vouched);
        discover(ALL, 0, 0, 3 * MINUTE);
        ck_assert(!knowledge_get(k, host_record(0))->vouched);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Whoever was there when nothing changed was there then; who was silent was silent; who was gone is gone since when it went, but
 * for how long is not counted while it may be what is silent. */
START_TEST(seen_when_nothing_changed)
{
        static const char *const boots[] = { BOOT, "another boot" };

        for (size_t i = 0; i < ELEMENTS(boots); i++) {
                const struct store_op *when;

                knowledge_teardown();
                setup();
                discover(ALL, 0, 0, 10 * MINUTE);
                discover(ALL & ~3u, 1, 0, 20 * MINUTE); /* host 0 is silent, host 1 is gone */
                (void) store();
                discover(ALL & ~3u, 1, 0, 50 * MINUTE);
                ck_assert_uint_eq(store(), 1);
                begin_anew(boots[i]);
                for (unsigned host = 0; host < 3; host++) {
                        const struct knowledge_record *r = knowledge_get(k, host_record(host));

                        ck_assert_uint_eq(r->seen_at, 60 * (host == 1 ? 10 : 50));
                        ck_assert_uint_eq(r->there_at, 60 * (host < 2 ? 10 : 50));
                        ck_assert_uint_eq(r->since, 60 * (host == 0 ? 20 : 10));
                        ck_assert_uint_eq(r->seen, i == 0 ? 50 * MINUTE : USEC_INFINITY);
                        ck_assert_int_eq(r->may_be_silent, host == 1);
                }
                when = stored("table/discovery");
                (void) store(); /* before there is another one */
                ck_assert_ptr_eq(stored("table/discovery"), when);
        }
}
END_TEST

static void discover_at(unsigned there, usec_t now, uint64_t wall)
{
        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&(struct scene) { .there = there }), now, wall, HOLD), 0);
}

/* The clock was set by a day between the discovery that changed something and the one that did not. */
START_TEST(seen_when_the_clock_was_set)
{
        const uint64_t day = 24 * 60 * 60;
        const struct knowledge_record *r;

        discover_at(ALL, 10 * MINUTE, 10 * 60 + 2 * day);
        (void) store();
        discover_at(ALL, 20 * MINUTE, 20 * 60 + day);
        (void) store();
        begin_anew(BOOT);
        r = knowledge_get(k, host_record(0));
        ck_assert_uint_eq(r->since, 10 * 60 + day);
        ck_assert_uint_eq(r->seen_at, 20 * 60 + day);
        ck_assert_uint_eq(r->there_at, 20 * 60 + day);
        discover_at(ALL & ~1u, 30 * MINUTE, 30 * 60 + day);
        r = knowledge_get(k, host_record(0));
        ck_assert_uint_eq(r->since, 10 * 60 + day);
        ck_assert_uint_eq(r->there_at, 20 * 60 + day);
}
END_TEST

/* An invalid time is ignored; then the records count. */
START_TEST(seen_at_no_time)
{
        static const char *const values[] = {
                "", "[]", "{\"at\":0,\"now\":1,\"boot\":\"x\"}", "{\"at\":-1,\"now\":1,\"boot\":\"x\"}", "{\"at\":1,\"now\":-1,\"boot\":\"x\"}",
                "{\"at\":1,\"now\":1}", "{\"now\":1,\"boot\":\"x\"}", "{\"at\":" TOO_LATE ",\"now\":1,\"boot\":\"x\"}",
        };

        discover(ALL, 0, 0, 10 * MINUTE);
        (void) store();
        begin_anew(BOOT);
        for (size_t i = 0; i < ELEMENTS(values); i++)
                ck_assert_int_eq(knowledge_restore(k, BOOT, "table/discovery", values[i], strlen(values[i])), -EBADMSG);
        knowledge_restored(k);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen_at, 10 * 60);
}
END_TEST

/* What OpenSM may write is in the store before it may, and is not when it was not written. Reading the table ends the doubt. */
START_TEST(expected_is_stored)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        store();
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        ck_assert_uint_eq(store(), 1);
        knowledge_retract_block(k, host_record(0), 0, block);
        ck_assert_uint_eq(store(), 1);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0x8001);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        check_bounds(0, 1, LEVEL_FULL, LEVEL_FULL);
}
END_TEST

/* Possible writes of the other head node stay possible after a restart; no write of this one is pending for them. */
START_TEST(suspected_is_stored)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        want(s, 1);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        store();
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        ck_assert(knowledge_get(k, host_record(0))->writes[0].is_suspected);
}
END_TEST

/* No file came to say what was expected: a process that begins anew must not expect it either, or it would wait for what nobody
 * was asked. What OpenSM was asked for stays. */
START_TEST(settled_is_stored)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        knowledge_settle_expected(k, true);
        block_of(0x8003, block);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        store();
        knowledge_settle_expected(k, false);
        ck_assert_uint_eq(store(), 1);
        begin_anew(BOOT);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
        check_bounds(0, 3, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* The store was lost: all of it is stored anew, and until then nothing is sent. */
START_TEST(store_is_lost)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);
        size_t n;

        read_host(s, 0, 0);
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        n = store();
        knowledge_unstore(k);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, block));
        ck_assert_uint_eq(store(), n);
        ck_assert(knowledge_send_block(k, host_record(0), 0, block));
}
END_TEST

START_TEST(withdrawn)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES], other[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        block_of(0x8002, block);
        block_of(0x8003, other);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, other), 0);
        store();
        ck_assert(knowledge_send_block(k, host_record(0), 0, other));
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 2);
        knowledge_withdraw(k);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        check_bounds(0, 3, LEVEL_NONE, LEVEL_FULL);
        ck_assert(!knowledge_send_block(k, host_record(0), 0, other)); /* that phase is over */
        ck_assert_uint_eq(store(), 1);
        ck_assert_uint_eq(store(), 0);
        begin_anew(BOOT);
        check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        check_bounds(0, 3, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Times of another boot do not count, whose host may be another head node: how long the port is absent begins anew, once. */
START_TEST(another_boot)
{
        struct subnet *s = discover(ALL, 0, 0, 100 * HOLD);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 100 * HOLD + 1);
        store();
        begin_anew(OTHER);
        discover(ALL & ~1u, 0, 0, 200 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        store_in(OTHER);
        begin_anew(OTHER);
        discover(ALL & ~1u, 0, 0, 201 * HOLD - 1);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 201 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* It is stored before this boot has discovered anything: that states no time of this boot. */
START_TEST(stored_in_another_boot)
{
        struct subnet *s = discover(ALL, 0, 0, 100 * HOLD);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 100 * HOLD + 1);
        store();
        begin_anew(OTHER);
        knowledge_unstore(k);
        store_in(OTHER);
        begin_anew(OTHER);
        discover(ALL & ~1u, 0, 0, 200 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* The same boot: the time that it was absent before the restart counts. */
START_TEST(absent_before_a_restart)
{
        struct subnet *s = discover(ALL, 0, 0, HOLD);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, HOLD + MINUTE);
        store();
        begin_anew(BOOT);
        discover(ALL & ~1u, 0, 0, 2 * HOLD - 1);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 2 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* It disappeared while no process ran: as far as known, it was present until now. */
START_TEST(absent_since_a_restart)
{
        struct subnet *s = discover(ALL, 0, 0, MINUTE);

        read_host(s, 0, 0x8001);
        store();
        begin_anew(BOOT);
        discover(ALL & ~1u, 0, 0, 10 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 11 * HOLD - 1);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 11 * HOLD);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* A vouch about a port that is silent stays with a restart, and ends when the port is back. */
START_TEST(vouch_of_a_silent_port)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, MINUTE);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "admin", 1), 0);
        store();
        begin_anew(BOOT);
        discover(ALL & ~1u, 1, 0, 2 * MINUTE);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
        discover(ALL, 0, 0, 3 * MINUTE);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(vouches_come_back)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        store();
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        ck_assert_uint_eq(store(), 1);
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
        ck_assert_str_eq(knowledge_get(k, host_record(0))->vouched_by, "root");
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->vouched_at, 77);
        ck_assert_ptr_null(knowledge_get(k, host_record(1))->vouched_by);
}
END_TEST

/* A process that begins does not take a port that was silent before, and still is, for one that came back. */
START_TEST(vouch_for_a_silent_port)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, MINUTE);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        store();
        begin_anew(OTHER);
        discover(ALL & ~1u, 1, 0, 2 * MINUTE);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_NONE);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->since, 60);
        store();
        begin_anew(OTHER);
        discover(ALL, 0, 0, 3 * MINUTE);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* A vouch that ended before it could be stored that the port was gone: it does not come back. */
START_TEST(vouch_that_ended)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL, 0, 0, 1); /* it does not answer any more */
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        store();
        discover(ALL & ~1u, 0, 0, MINUTE);
        discover(ALL, 0, 0, 2 * MINUTE);
        store();
        begin_anew(BOOT);
        check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* It is not known where the port was, or that place is gone: it may be behind anything that is silent, but for a host that
 * was there before. */
START_TEST(silent_at_no_place)
{
        static const char value[] = "{\"capacity\":40,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"there\","
                                    "\"since\":1,\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"%s\",\"vouched\":false,"
                                    "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";
        static const char *const places[] = { "", "0x0000000000000099/1" };

        for (size_t i = 0; i < ELEMENTS(places); i++) {
                char text[512];
                uint32_t record;

                k = knowledge_free(k);
                k = knowledge_new();
                (void) snprintf(text, sizeof(text), value, places[i]);
                ck_assert_int_eq(knowledge_restore(k, "x", "table/endport/0x0000000000000900/1", text, strlen(text)), 0);
                record = knowledge_n_records(k) - 1;
                discover(ALL & ~1u, 1, 0, MINUTE);
                ck_assert_int_eq(knowledge_get(k, record)->presence, KNOWLEDGE_SILENT);
                discover(ALL, 0, 0, 2 * MINUTE);
                discover(ALL & ~1u, 1, 0, 3 * MINUTE);
                ck_assert_int_eq(knowledge_get(k, record)->presence, KNOWLEDGE_ABSENT);
        }
}
END_TEST

START_TEST(keys)
{
        discover(ALL & ~8u, 8, 0, 0);
        store();
        ck_assert_ptr_nonnull(stored("table/endport/0x0000000000000100/1"));
        ck_assert_ptr_nonnull(stored("table/endport/0x0000000000000010/0"));
        ck_assert_ptr_nonnull(stored("table/leaf/0x0000000000000010/1"));
        ck_assert_ptr_nonnull(stored("table/place/0x0000000000000010/4"));
}
END_TEST

/* What cannot be read is never taken for an empty table. */
START_TEST(damaged)
{
        static const char good[] = "{\"capacity\":2,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"there\",\"since\":1,"
                                   "\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                                   "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";
        static const char *const values[] = {
                "", "{}", "[]", "{\"capacity\":2}", "{\"capacity\":-1,\"read\":true,\"entries\":\"8001\"}",
        };
        static const char *const replaced[][2] = {
                { "8001", "80010" }, { "8001", "80g1" }, { "8001", "800180018001" }, { "\"capacity\":2", "\"capacity\":70000" },
                { "[]", "{}" }, { "[]", "[1]" }, { "[]", "[{\"block\":1,\"entries\":\"\"}]" },
                { "[]", "[{\"block\":0,\"entries\":\"x\"}]" }, { "\"place\":\"\"", "\"place\":\"leaf\"" },
                { "\"place\":\"\"", "\"place\":\"0x0000000000000010/1x\"" },
                { "\"place\":\"\"", "\"place\":\"0x0000000000000010/1,0x0000000000000010/2\"" },
                { "\"place\":\"\"", "\"place\":\"0x0000000000000010/256\"" },
                { "\"seen\":1", "\"seen\":-1" }, { "\"since\":1", "\"since\":-1" }, { "there", "here" },
                { "\"vouched_at\":0", "\"vouched_at\":-1" }, { "\"vouched_by\":\"\"", "\"vouched_by\":1" }, { "true", "1" },
                { "\"read_at\":1", "\"read_at\":-1" }, { "\"seen_at\":1", "\"seen_at\":-1" },
                { "\"read_at\":1", "\"read_at\":" TOO_LATE }, { "\"seen_at\":1", "\"seen_at\":" TOO_LATE },
                { "\"since\":1", "\"since\":" TOO_LATE }, { "\"vouched_at\":0", "\"vouched_at\":" TOO_LATE },
                { "\"since\":1", "\"since\":1,\"there_at\":" TOO_LATE }, { "\"since\":1", "\"since\":1,\"clock\":" TOO_LATE },
                { "\"since\":1", "\"since\":1,\"clock\":-" TOO_LATE },
                { "\"since\":1", "\"since\":1,\"clock\":-9223372036854775808" },
        };
        static const char key[] = "table/endport/0x0000000000000100/1";

        for (size_t i = 0; i < ELEMENTS(values) + ELEMENTS(replaced); i++) {
                char text[512];

                k = knowledge_free(k);
                k = knowledge_new();
                if (i < ELEMENTS(values)) {
                        (void) snprintf(text, sizeof(text), "%s", values[i]);
                } else {
                        const char *const *r = replaced[i - ELEMENTS(values)], *at = strstr(good, r[0]);

                        (void) snprintf(text, sizeof(text), "%.*s%s%s", (int) (at - good), good, r[1], at + strlen(r[0]));
                }
                ck_assert_msg(knowledge_restore(k, "x", key, text, strlen(text)) == -EBADMSG, "%s", text);
                discover(ALL, 0, 0, 0);
                check_bounds(0, 1, LEVEL_NONE, LEVEL_FULL);
        }
        k = knowledge_free(k);
        k = knowledge_new();
        ck_assert_int_eq(knowledge_restore(k, "x", key, good, strlen(good)), 0);
        ck_assert_int_eq(knowledge_restore(k, "x", key, good, strlen(good)), -EBADMSG); /* twice */
}
END_TEST

/* Arithmetic with the latest times, and with each clock, does not overflow (the sanitizer sees it). */
START_TEST(latest_times)
{
        static const char format[] = "{\"capacity\":40,\"read\":true,\"entries\":\"8001\",\"read_at\":" LATEST ",\"presence\":\"there\","
                                     "\"since\":" LATEST ",\"seen_at\":" LATEST ",\"there_at\":" LATEST ",\"seen\":1,\"boot\":\"x\","
                                     "\"clock\":%s" LATEST ",\"place\":\"\",\"vouched\":true,\"vouched_by\":\"\",\"vouched_at\":" LATEST
                                     ",\"writes\":[]}";
        static const char key[] = "table/endport/0x0000000000000100/1", discovery[] = "{\"at\":" LATEST ",\"now\":1,\"boot\":\"x\"}";

        for (unsigned i = 0; i < 4; i++) {
                char text[512];

                k = knowledge_free(k);
                k = knowledge_new();
                (void) snprintf(text, sizeof(text), format, i % 2 ? "-" : "");
                ck_assert_int_eq(knowledge_restore(k, "x", key, text, strlen(text)), 0);
                if (i / 2)
                        ck_assert_int_eq(knowledge_restore(k, "x", "table/discovery", discovery, strlen(discovery)), 0);
                knowledge_restored(k);
                discover(ALL & ~1u, 0, 0, MINUTE);
                ck_assert_int_le((int64_t) knowledge_get(k, host_record(0))->seen_at, 60);
        }
}
END_TEST

/* A write is of a block that the table has. */
START_TEST(write_behind_the_end)
{
        static const char value[] = "{\"capacity\":32,\"read\":true,\"entries\":\"\",\"read_at\":1,\"presence\":\"there\","
                                    "\"since\":1,\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                                    "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[{\"block\":%" PRId64 ",\"entries\":\"8001\"}]}";

        static const int64_t blocks[] = { 0, 1, -1, 65536, 67108864, 134217728, INT64_C(1) << 32, INT64_MAX };

        for (unsigned i = 0; i < ELEMENTS(blocks); i++) {
                char text[512], key[64];

                (void) snprintf(text, sizeof(text), value, blocks[i]);
                (void) snprintf(key, sizeof(key), "table/endport/0x0000000000000100/%u", i + 1);
                ck_assert_int_eq(knowledge_restore(k, "x", key, text, strlen(text)), i ? -EBADMSG : 0);
        }
}
END_TEST

/* Once it was found after a restart, it was there when it was seen last, and not until now. */
START_TEST(found_after_a_restart)
{
        discover(ALL, 0, 0, 0);
        store();
        begin_anew(BOOT);
        discover(ALL, 0, 0, MINUTE);
        discover(ALL & ~1u, 0, 0, 3 * MINUTE);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen, MINUTE);
}
END_TEST

static void check_place(unsigned may)
{
        const struct bounds bounds = knowledge_port_bounds(k, place_record(0), 7);

        ck_assert_uint_eq(bounds.may, may);
}

/* An unknown device was silent, and then answered: the place holds nothing besides, after another restart, too. */
START_TEST(device_found_before_a_restart)
{
        discover(ALL & ~1u, 1, 0, MINUTE);
        check_place(LEVEL_FULL);
        store();
        for (unsigned minute = 2; minute < 6; minute++) {
                discover(ALL, 0, 0, minute * MINUTE);
                check_place(LEVEL_NONE);
                store();
                ck_assert_uint_eq(store(), 0);
                begin_anew(minute == 4 ? OTHER : BOOT);
        }
        discover(ALL & ~1u, 1, 0, 7 * MINUTE); /* now it is known which device is there */
        check_place(LEVEL_NONE);
}
END_TEST

/* It was found at another place, which discovery shows only later. */
START_TEST(device_found_while_absent)
{
        discover(ALL & ~1u, 1, 0, MINUTE);
        discover(ALL & ~1u, 0, 0, 2 * MINUTE);
        check_place(LEVEL_FULL);
        store();
        discover(ALL, 0, 0, 3 * MINUTE);
        check_place(LEVEL_NONE);
        store();
        begin_anew(BOOT);
        discover(ALL, 0, 0, 4 * MINUTE);
        check_place(LEVEL_NONE);
}
END_TEST

/* An incomplete record is ignored, and the time since when its port is gone is not known: it was present until now. */
START_TEST(damaged_says_nothing)
{
        static const char key[] = "table/endport/0x0000000000000100/1";
        static const char half[] = "{\"capacity\":40,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"there\","
                                   "\"since\":1,\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"writes\":[]}";
        static const char *const values[] = { half, "{}", "no JSON" };

        for (size_t i = 0; i < ELEMENTS(values); i++) {
                k = knowledge_free(k);
                k = knowledge_new();
                ck_assert_int_eq(knowledge_restore(k, "x", key, values[i], strlen(values[i])), -EBADMSG);
                discover(ALL & ~1u, 0, 0, 2 * HOLD);
                check_bounds(0, 2, LEVEL_NONE, LEVEL_FULL);
                discover(ALL & ~1u, 0, 0, 3 * HOLD);
                check_bounds(0, 2, LEVEL_NONE, LEVEL_NONE);
        }
}
END_TEST

static const char empty[] = "{\"capacity\":0,\"read\":false,\"entries\":\"\",\"read_at\":1,\"presence\":\"there\",\"since\":1,"
                            "\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,"
                            "\"vouched_by\":\"\",\"vouched_at\":0,\"writes\":[]}";

/* GUIDs are hexadecimal, port numbers decimal. */
START_TEST(keys_are_read)
{
        static const struct { const char *key; struct knowledge_name name; } cases[] = {
                { "table/endport/0x00000000000000ff/1", { { 0xff }, 1, KNOWLEDGE_ENDPORT } },
                { "table/leaf/0xfedcba9876543210/10", { { 0xfedcba9876543210 }, 10, KNOWLEDGE_LEAF } },
                { "table/leaf/0x0000000000000010/255", { { 0x10 }, 255, KNOWLEDGE_LEAF } },
                { "table/place/0x0000000000000010/98", { { 0x10 }, 98, KNOWLEDGE_PLACE } },
                { "table/endport/0x0000000000000010/0", { { 0x10 }, 0, KNOWLEDGE_ENDPORT } },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ck_assert_int_eq(knowledge_restore(k, "x", cases[i].key, empty, strlen(empty)), 0);
                ck_assert_uint_ne(knowledge_find(k, cases[i].name), KNOWLEDGE_NONE);
        }
        ck_assert_uint_eq(knowledge_n_records(k), ELEMENTS(cases));
}
END_TEST

START_TEST(bad_keys)
{
        static const char *const names[] = {
                "", "table/", "table/endport", "table/endport/", "table/host/0x0000000000000100/1", "endport/0x0000000000000100/1",
                "table/endport/0x100/1", "table/endport/0x0000000000000100/", "table/endport/0x0000000000000100/256",
                "table/endport/0x0000000000000100/1x", "table/endport/0x0000000000000100/-1", "table/endport/0x0000000000000000/1",
                "table/endport/000x00000000000100/1",
        };

        for (size_t i = 0; i < ELEMENTS(names); i++)
                ck_assert_msg(knowledge_restore(k, "x", names[i], empty, strlen(empty)) == -EBADMSG, "%s", names[i]);
        ck_assert_uint_eq(knowledge_n_records(k), 0);
}
END_TEST

int main(void)
{
        TCase *t = tcase_create("memory");
        Suite *s = suite_create("table records");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(t, setup, knowledge_teardown);
        tcase_add_test(t, tables_come_back);
        tcase_add_test(t, unfollowed_comes_back);
        tcase_add_test(t, foreign_writes_are_taken_along);
        tcase_add_test(t, doubts_are_taken_along);
        tcase_add_test(t, when_it_answered_last);
        tcase_add_test(t, when_it_answered_last_of_an_older_version);
        tcase_add_test(t, unused_entries_come_back);
        tcase_add_test(t, largest_table_comes_back);
        tcase_add_test(t, silent_after_a_restart);
        tcase_add_test(t, silent_switch_after_a_restart);
        tcase_add_test(t, many_places_come_back);
        tcase_add_test(t, fewer_places_are_stored);
        tcase_add_test(t, moved_places_are_stored);
        tcase_add_loop_test(t, wall_clock_is_set, 0, (int) ELEMENTS(steps));
        tcase_add_loop_test(t, wall_clock_is_set_after_a_vouch, 0, (int) ELEMENTS(steps));
        tcase_add_test(t, wall_clock_without_a_time);
        tcase_add_test(t, wall_clock_that_began_with_the_boot);
        tcase_add_test(t, wall_clock_of_another_boot);
        tcase_add_test(t, silent_at_another_place);
        tcase_add_test(t, writes_come_back);
        tcase_add_test(t, announced);
        tcase_add_test(t, sent_again);
        tcase_add_test(t, only_news_is_stored);
        tcase_add_test(t, one_record_is_stored);
        tcase_add_test(t, seen_when_nothing_changed);
        tcase_add_test(t, seen_when_the_clock_was_set);
        tcase_add_test(t, seen_at_no_time);
        tcase_add_test(t, stored_in_another_boot);
        tcase_add_test(t, absent_before_a_restart);
        tcase_add_test(t, absent_since_a_restart);
        tcase_add_test(t, vouch_of_a_silent_port);
        tcase_add_test(t, expected_is_stored);
        tcase_add_test(t, settled_is_stored);
        tcase_add_test(t, suspected_is_stored);
        tcase_add_test(t, store_is_lost);
        tcase_add_test(t, withdrawn);
        tcase_add_test(t, another_boot);
        tcase_add_test(t, vouches_come_back);
        tcase_add_test(t, vouch_for_a_silent_port);
        tcase_add_test(t, vouch_that_ended);
        tcase_add_test(t, silent_at_no_place);
        tcase_add_test(t, keys);
        tcase_add_test(t, damaged);
        tcase_add_test(t, latest_times);
        tcase_add_test(t, damaged_says_nothing);
        tcase_add_test(t, write_behind_the_end);
        tcase_add_test(t, found_after_a_restart);
        tcase_add_test(t, device_found_before_a_restart);
        tcase_add_test(t, device_found_while_absent);
        tcase_add_test(t, keys_are_read);
        tcase_add_test(t, bad_keys);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
