/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "knowledge/held.h"
#include "knowledge/table_records.h"
#include "knowledge_naive.h"

#define READ_AT 1000 /* as knowledge_fixture.c reads */

static struct held_list *list;

static void setup(void)
{
        knowledge_setup();
        list = held_list_new(arena);
        ck_assert_ptr_nonnull(list);
}

/* The block with one entry that this table is to have waits, for base 1. */
static void collect(uint32_t record, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        ck_assert_int_eq(held_collect(list, k, record, 0, block, 1), 0);
}

static const struct held *only_item(void)
{
        size_t n;
        const struct held *const *items = held_list_items(list, &n);

        ck_assert_uint_eq(n, 1);
        ck_assert_uint_eq(items[0]->base, 1);
        return items[0];
}

/* All but host 0 were read, and hold nothing. */
static void read_others(struct subnet *s)
{
        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
}

static void check_only(uint32_t record, enum held_reason reason, uint64_t since)
{
        const struct held *h = only_item();

        ck_assert_uint_eq(h->n_by, 1);
        ck_assert_uint_eq(h->by[0].record, record);
        ck_assert_uint_eq(h->by[0].name.node.v, knowledge_get(k, record)->name.node.v);
        ck_assert_int_eq(h->by[0].reason, reason);
        ck_assert_uint_eq(h->by[0].since, since);
}

/* Host 2 waits for base 1, which the policy gives to hosts 1 and 2. */
static void check_grant(struct subnet *s, uint32_t by, enum held_reason reason, uint64_t since)
{
        const struct held *h;

        want(s, 6);
        collect(host_record(2), 0x8001);
        h = only_item();
        ck_assert_uint_eq(h->n_waiting, 1);
        ck_assert_uint_eq(h->waiting[0].record, host_record(2));
        ck_assert_int_eq(h->waiting[0].rule, RULE_GAIN);
        ck_assert_int_eq(h->waiting[0].from, LEVEL_NONE);
        ck_assert_int_eq(h->waiting[0].to, LEVEL_FULL);
        check_only(by, reason, since);
}

/* --- each reason ------------------------------------------------------------------------------------------------------------ */

START_TEST(never_read)
{
        struct subnet *s = discover(ALL, 0, 0, 5 * MINUTE);

        read_others(s);
        check_grant(s, host_record(0), HELD_NEVER_READ, 0);
}
END_TEST

START_TEST(unanswered)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        s = discover(ALL, 0, 0, MINUTE);
        read_others(s);
        check_grant(s, host_record(0), HELD_UNANSWERED, READ_AT);
        ck_assert_uint_eq(only_item()->by[0].until, 0); /* it counts until it answers */
}
END_TEST

/* It was written and then does not answer: the missing answer is the reason to report. */
START_TEST(unanswered_and_unconfirmed)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        block_of(0, block);
        send_announced(host_record(0), 0, block);
        s = discover(ALL, 0, 0, MINUTE);
        read_others(s);
        check_grant(s, host_record(0), HELD_UNANSWERED, READ_AT);
}
END_TEST

/* The table is the same as when it was read before; the time since when it was not read counts from the last read. */
START_TEST(unanswered_and_as_before)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct observed *o;

        read_host(s, 0, 0x8001);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port_at(s, host_guid(0), 1)].entries[0].v = 0x8001;
        o->tables[port_at(s, host_guid(0), 1)].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, 2 * READ_AT), 0);
        s = discover(ALL, 0, 0, MINUTE);
        read_others(s);
        check_grant(s, host_record(0), HELD_UNANSWERED, 2 * READ_AT);
}
END_TEST

START_TEST(unconfirmed)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_others(s);
        read_host(s, 0, 0x8001);
        block_of(0, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        want(s, 6);
        check_grant(s, host_record(0), HELD_EXCESS, READ_AT);
        list = held_list_new(arena);
        send_announced(host_record(0), 0, block);
        check_grant(s, host_record(0), HELD_UNCONFIRMED, READ_AT);
}
END_TEST

START_TEST(silent)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, 2 * MINUTE);
        s = discover(ALL & ~1u, 1, 0, 3 * MINUTE);
        read_others(s);
        check_grant(s, host_record(0), HELD_SILENT, 120);
        ck_assert_uint_eq(only_item()->by[0].read_at, READ_AT);
}
END_TEST

/* Each by itself, with the switch that is to be repaired; that one is behind no other. */
START_TEST(behind_a_silent_switch)
{
        struct subnet *s = make_chain(3);
        struct held_by by;

        see_chain(s, 0);
        read_host(s, 2, 0x8001);
        see_chain(make_chain(1), 2 * MINUTE);
        by = held_by_record(k, host_record(2));
        ck_assert_int_eq(by.reason, HELD_SILENT_SWITCH);
        ck_assert_uint_eq(by.behind.v, 0x900);
        ck_assert_uint_eq(by.since, 120);
        by = held_by_record(k, knowledge_find(k, (struct knowledge_name) { G(0x900), 0, KNOWLEDGE_ENDPORT }));
        ck_assert_int_eq(by.reason, HELD_SILENT_SWITCH);
        ck_assert_uint_eq(by.behind.v, 0x20);
        by = held_by_record(k, knowledge_find(k, (struct knowledge_name) { G(0x20), 0, KNOWLEDGE_ENDPORT }));
        ck_assert_int_eq(by.reason, HELD_SILENT);
        ck_assert_uint_eq(by.behind.v, 0);
        ck_assert_int_eq(held_by_record(k, host_record(0)).reason, HELD_NEVER_READ);
}
END_TEST

/* The switch is gone with the host behind it, which may be at the port where something unknown is silent: that switch is nothing
 * that could be repaired. */
START_TEST(silent_and_its_switch_is_gone)
{
        struct subnet *s = make_chain(1);
        struct held_by by;

        see_chain(make_chain(2), 0);
        s->nodes[0].silent_ports[0] = 1u << 9; /* and both links to the switch are down */
        see_chain(s, 1);
        by = held_by_record(k, host_record(1));
        ck_assert_int_eq(by.reason, HELD_SILENT);
        ck_assert_uint_eq(by.behind.v, 0);
}
END_TEST

/* A device that never answered, at a port of a switch that was there then. */
START_TEST(unknown_behind_a_silent_switch)
{
        struct subnet *s = make_chain(2);
        uint32_t place;

        s->nodes[subnet_find_node(s, G(0x20))].silent_ports[0] = 1u << 8;
        see_chain(s, 0);
        place = knowledge_find(k, (struct knowledge_name) { G(0x20), 8, KNOWLEDGE_PLACE });
        ck_assert_int_eq(held_by_record(k, place).reason, HELD_SILENT);
        see_chain(make_chain(1), 1);
        ck_assert_int_eq(held_by_record(k, place).reason, HELD_SILENT_SWITCH);
        ck_assert_uint_eq(held_by_record(k, place).behind.v, 0x20);
}
END_TEST

START_TEST(silent_and_never_seen)
{
        struct subnet *s = discover(ALL & ~1u, 1, 0, 2 * MINUTE);

        read_others(s);
        check_grant(s, place_record(0), HELD_SILENT, 120);
        ck_assert_int_eq(only_item()->by[0].policy, POLICY_UNKNOWN);
        ck_assert_uint_eq(only_item()->by[0].read_at, 0);
}
END_TEST

/* A copy takes the place of the knowledge, which is returned. */
static struct knowledge *copy_over(void)
{
        struct knowledge *before = k;

        k = knowledge_copy(k);
        ck_assert_ptr_nonnull(k);
        return before;
}

START_TEST(absent)
{
        struct subnet *s;

        discover(ALL, 0, 0, 4 * MINUTE);
        s = discover(ALL, 0, 0, 5 * MINUTE);
        read_host(s, 0, 0x8001);
        s = discover(ALL & ~1u, 0, 0, 8 * MINUTE);
        read_others(s);
        check_grant(s, host_record(0), HELD_ABSENT, 300); /* when it was there last */
        ck_assert_uint_eq(only_item()->by[0].until, (5 * MINUTE + HOLD) / USEC_PER_SEC);
        (void) knowledge_free(copy_over());
        list = held_list_new(arena);
        check_grant(s, host_record(0), HELD_ABSENT, 300);
        ck_assert_uint_eq(only_item()->by[0].until, (5 * MINUTE + HOLD) / USEC_PER_SEC);
        knowledge_hold_absent(k, 12 * MINUTE, 2 * HOLD); /* long after the discovery */
        list = held_list_new(arena);
        check_grant(s, host_record(0), HELD_ABSENT, 300);
        ck_assert_uint_eq(only_item()->by[0].until, (5 * MINUTE + 2 * HOLD) / USEC_PER_SEC);
        ck_assert_int_eq(knowledge_see_subnet(k, s, 9 * MINUTE, 540, USEC_INFINITY), 0);
        read_others(s);
        list = held_list_new(arena);
        check_grant(s, host_record(0), HELD_ABSENT, 300);
        ck_assert_uint_eq(only_item()->by[0].until, 0);
}
END_TEST

/* Host 3 fell silent after host 0 went: that may be host 0. */
START_TEST(absent_or_silent)
{
        struct subnet *s = discover(ALL, 0, 0, 5 * MINUTE);

        read_host(s, 0, 0x8001);
        read_host(s, 3, 0);
        discover(ALL & ~1u, 0, 0, 8 * MINUTE);
        s = discover(ALL & ~9u, 8, 0, 9 * MINUTE);
        for (unsigned i = 1; i < 3; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        check_grant(s, host_record(0), HELD_MAYBE_SILENT, 300);
        ck_assert_str_eq(held_reason_to_string(HELD_MAYBE_SILENT), "maybe-silent");
}
END_TEST

/* Host 1 is to be lowered to limited when host 0 is full. */
static void lower_beside(struct subnet *s, bool frozen)
{
        static const struct p_key full = { 0x8001 }, limited = { 0x0001 };
        static const struct desired_port most = { &full, 1 };
        struct desired *d = arena_new_object(arena, struct desired);

        *d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        d->ports[port_at(s, host_guid(0), 1)] =
                frozen ? (struct desired_port) { &limited, 1, &most } : (struct desired_port) { &full, 1 };
        d->ports[port_at(s, host_guid(1), 1)] = (struct desired_port) { (struct p_key *) &limited, 1 };
        ck_assert_int_eq(knowledge_set_policy(k, d), 0);
        collect(host_record(1), 0x0001);
        ck_assert_int_eq(only_item()->waiting[0].rule, RULE_LOSS);
        ck_assert_int_eq(only_item()->waiting[0].from, LEVEL_FULL);
        ck_assert_int_eq(only_item()->waiting[0].to, LEVEL_LIMITED);
}

static void lower(struct subnet *s)
{
        lower_beside(s, false);
}

START_TEST(lack)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_others(s);
        read_host(s, 0, 0x0001);
        read_host(s, 1, 0x8001);
        lower(s);
        check_only(host_record(0), HELD_LACK, READ_AT);
        ck_assert_int_eq(only_item()->by[0].policy, LEVEL_FULL);
}
END_TEST

/* The host has what it should have, but its leaf port does not let it through. */
START_TEST(lack_of_a_leaf_port)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_others(s);
        read_host(s, 0, 0x8001);
        read_host(s, 1, 0x8001);
        read_leaf(s, 0, 0x0001);
        lower(s);
        check_only(leaf_record(0), HELD_LACK, READ_AT);
        ck_assert_int_eq(only_item()->by[0].policy, LEVEL_FULL); /* of its host */
}
END_TEST

/* The policy gives it full at most, and limited at least: it is its own table that has less. */
START_TEST(frozen)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_others(s);
        read_host(s, 0, 0x0001);
        read_host(s, 1, 0x8001);
        read_leaf(s, 0, 0x0001);
        lower_beside(s, true);
        check_only(host_record(0), HELD_FROZEN, READ_AT);
        ck_assert_int_eq(only_item()->by[0].policy, POLICY_FROM_LIMITED);
        read_host(s, 0, 0x8001);
        list = held_list_new(arena);
        lower_beside(s, true);
        check_only(leaf_record(0), HELD_FROZEN, READ_AT);
        ck_assert_str_eq(held_reason_to_string(HELD_FROZEN), "frozen");
}
END_TEST

START_TEST(earlier)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_others(s);
        read_host(s, 0, 0);
        want(s, 6);
        collect(host_record(2), 0x8001);
        ck_assert_int_eq(only_item()->waiting[0].rule, RULE_ADMITS);
        check_only(host_record(2), HELD_EARLIER, READ_AT);
}
END_TEST

START_TEST(nobody)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_leaf(s, 0, 0);
        s = discover(ALL & ~1u, 0, 0, 1);
        want(s, 0);
        collect(leaf_record(0), 0x8001);
        check_only(leaf_record(0), HELD_UNKNOWN_DEVICE, READ_AT);
}
END_TEST

/* Host 0 was not read, so its leaf port is not opened for a base of host 1. The write does not wait for host 1. */
START_TEST(in_its_own_way)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_others(s);
        read_host(s, 1, 0x8001);
        read_leaf(s, 0, 0);
        want(s, 2);
        collect(leaf_record(0), 0x8001);
        check_only(host_record(0), HELD_NEVER_READ, 0);
        ck_assert_uint_eq(only_item()->waiting[0].record, leaf_record(0));
}
END_TEST

/* What a host has that was not read since the last discovery is not certain after a write either: it stands in its own
 * way, not its leaf port, which lets through what it should. */
START_TEST(in_its_own_way_unread)
{
        static const struct p_key keys[] = { { 0x0001 }, { 0x8001 } };
        struct desired d = {};
        struct subnet *s;

        read_host(discover(ALL, 0, 1, 0), 0, 0x8001);
        s = discover(ALL, 0, 1, MINUTE);
        read_others(s);
        read_host(s, 1, 0x8001);
        read_leaf(s, 0, 0x8001);
        d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (unsigned i = 0; i < 2; i++)
                d.ports[port_at(s, host_guid(i), 1)] = (struct desired_port) { (struct p_key *) &keys[i], 1 };
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        collect(host_record(0), 0x0001);
        ck_assert_int_eq(only_item()->waiting[0].rule, RULE_LOSS);
        check_only(host_record(0), HELD_UNANSWERED, READ_AT);
}
END_TEST

/* After the write it has what it should have, whatever a Set before it may have left there: its leaf port stands in the way, which
 * does not answer and may not let it through. */
START_TEST(leaf_port_in_the_way_of_its_own)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s;

        read_leaf(discover(ALL, 0, 2, 0), 1, 0x8001);
        s = discover(ALL, 0, 2, MINUTE);
        read_others(s);
        read_host(s, 0, 0x8001);
        block_of(0x8001, block);
        send_announced(host_record(1), 0, block);
        lower(s);
        check_only(leaf_record(1), HELD_UNANSWERED, READ_AT);
}
END_TEST

/* Levels are those of the whole table, not of the block that is written. */
START_TEST(level_of_both_blocks)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t port = port_at(s, host_guid(2), 1);
        struct observed *o;

        read_others(s);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port].entries[P_KEY_BLOCK_ENTRIES].v = 0x8001;
        o->tables[port].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, READ_AT), 0);
        want(s, 6);
        collect(host_record(2), 0x0001);
        ck_assert_int_eq(only_item()->waiting[0].from, LEVEL_FULL);
        ck_assert_int_eq(only_item()->waiting[0].to, LEVEL_FULL);
}
END_TEST

/* The same, when it is the filter that is to be opened. */
START_TEST(filters)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_others(s);
        read_host(s, 1, 0x8001);
        read_leaf(s, 0, 0);
        want(s, 2);
        ck_assert_int_eq(held_collect_filter(list, k, leaf_record(0), false, false, 1), 0);
        ck_assert_int_eq(only_item()->waiting[0].rule, RULE_GAIN);
        check_only(host_record(0), HELD_NEVER_READ, 0);
}
END_TEST

/* --- many ------------------------------------------------------------------------------------------------------------------- */

#define MANY 40

/* A port of an even number was never read, one of an odd number was found empty. */
static uint32_t add_host(unsigned i)
{
        static const char value[] = "{\"capacity\":32,\"read\":%s,\"entries\":\"%s\",\"read_at\":1,\"presence\":\"there\",\"since\":1,"
                                    "\"seen_at\":1,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,\"vouched_by\":\"\","
                                    "\"vouched_at\":0,\"writes\":[]}";
        char key[64], text[256];

        (void) snprintf(key, sizeof(key), "table/endport/0x%016x/1", 0x10000 + i);
        (void) snprintf(text, sizeof(text), value, i % 2 ? "true" : "false", i % 2 ? "0000" : "");
        ck_assert_int_eq(knowledge_restore(k, "x", key, text, strlen(text)), 0);
        return knowledge_n_records(k) - 1;
}

/* Forty ports are in the way of forty grants: all are counted, sixteen of each kept. */
START_TEST(bounded)
{
        uint32_t records[2 * MANY];

        for (unsigned i = 0; i < 2 * MANY; i++)
                records[i] = add_host(i);
        ck_assert_int_eq(knowledge_set_policy(k, NULL), 0);
        for (unsigned twice = 0; twice < 2; twice++)
                for (unsigned i = 1; i < 2 * MANY; i += 2)
                        collect(records[i], 0x8001);
        ck_assert_uint_eq(only_item()->n_waiting, MANY);
        ck_assert_uint_eq(only_item()->n_by, MANY);
        ck_assert_uint_eq(held_list_n_ports(list), MANY);
        for (unsigned i = 0; i < HELD_MAX; i++) {
                ck_assert_uint_eq(only_item()->waiting[i].record, records[2 * i + 1]);
                ck_assert_uint_eq(only_item()->by[i].record, records[2 * i]);
        }
}
END_TEST

/* Hosts 0 and 2 hold the base, host 2 only by a write that is not confirmed; the switch does not filter. */
START_TEST(holders)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct held h;

        read_others(s);
        read_host(s, 0, 0x8001);
        block_of(0x0001, block);
        send_announced(host_record(2), 0, block);
        held_find_holders(k, 1, &h);
        ck_assert_uint_eq(h.base, 1);
        ck_assert_uint_eq(h.n_waiting, 0);
        ck_assert_uint_eq(h.n_by, 2);
        ck_assert_uint_eq(h.by[0].record, host_record(0));
        ck_assert_int_eq(h.by[0].reason, HELD_EXCESS);
        ck_assert_uint_eq(h.by[1].record, host_record(2));
        ck_assert_int_eq(h.by[1].reason, HELD_UNCONFIRMED);
        ck_assert(knowledge_port_may_hold(k, host_record(2), 1));
        ck_assert(!knowledge_port_may_hold(k, host_record(1), 1));
        ck_assert(!knowledge_port_may_hold(k, KNOWLEDGE_NONE, 1));
        held_find_holders(k, 2, &h);
        ck_assert_uint_eq(h.n_by, 0);
        for (unsigned i = 0; i < 2 * MANY; i++)
                add_host(i);
        held_find_holders(k, 1, &h);
        ck_assert_uint_eq(h.n_by, 2 + MANY);
}
END_TEST

/* Ports in the same state wait for each other, but not for themselves. */
START_TEST(alike)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_others(s);
        for (unsigned i = 0; i < 3; i++)
                read_host(s, i, 0x0001);
        want(s, 0);
        collect(host_record(0), 0x8001);
        collect(host_record(0), 0x8001);
        ck_assert_uint_eq(only_item()->n_by, 2);
        collect(host_record(1), 0x8001);
        ck_assert_uint_eq(only_item()->n_by, 3);
        ck_assert_uint_eq(only_item()->by[2].record, host_record(0));
        ck_assert_int_eq(only_item()->by[2].reason, HELD_EXCESS);
        /* what was answered before something was read does not count any more */
        list = held_list_new(arena);
        collect(host_record(0), 0x8001);
        read_host(s, 2, 0);
        want(s, 0);
        collect(host_record(1), 0x8001);
        ck_assert_uint_eq(only_item()->n_by, 3);
        read_host(s, 3, 0x0001);
        want(s, 0);
        collect(host_record(1), 0x8001);
        ck_assert_uint_eq(only_item()->n_by, 4);
}
END_TEST

START_TEST(sorted_by_base)
{
        static const uint16_t bases[] = { 7, 1, 0x7ffe, 7, 3 };
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        const struct held *const *items;
        size_t n;

        read_others(s);
        want(s, 6);
        for (size_t i = 0; i < ELEMENTS(bases); i++) {
                block_of(0x8000 | bases[i], block);
                ck_assert_int_eq(held_collect(list, k, host_record(2), 0, block, bases[i]), 0);
        }
        items = held_list_items(list, &n);
        ck_assert_uint_eq(n, 4);
        ck_assert_uint_eq(items[0]->base, 1);
        ck_assert_uint_eq(items[1]->base, 3);
        ck_assert_uint_eq(items[2]->base, 7);
        ck_assert_uint_eq(items[3]->base, 0x7ffe);
        ck_assert_uint_eq(held_list_n_ports(list), 1);
        ck_assert_uint_eq(held_list_n_ports(held_list_new(arena)), 0);
}
END_TEST

/* --- against each port by itself
 * ----------------------------------------------------------------------------------------------- */

#define MAX_PORTS 32

static uint32_t written_port(const struct write *w)
{
        const struct knowledge_record *r = knowledge_get(k, w->record);

        return r->name.kind == KNOWLEDGE_LEAF ? r->other_end : w->record;
}

static struct rule_class naive_class(uint32_t p, uint16_t base, enum filter_model m, enum direction d)
{
        return (struct rule_class) {
                .policy = naive_policy(knowledge_get(k, p), base), .bounds = naive_bounds(p, base, m, d),
                .is_absent = knowledge_get(k, p)->presence == KNOWLEDGE_ABSENT && !knowledge_get(k, p)->may_be_silent &&
                             !knowledge_get(k, p)->may_be_back,
        };
}

static void judge_step(enum level policy, const struct naive_step *step, const struct rule_class *class, bool *stands, bool *own)
{
        enum rule_verdict verdict = rule_judge_pair(policy, step->before, step->after, class);
        uint8_t level = (uint8_t) rule_policy_for(verdict, class->policy);
        const struct rule_class right = { class->policy, { level, level }, false };
        bool more = class->bounds.may > level, less = class->bounds.has < level;

        if (verdict == RULE_ADMITS)
                return;
        if (rule_judge_pair(policy, step->before, step->after, &right) != RULE_ADMITS)
                *own = true;
        else
                *stands = true;
        if (verdict == RULE_GAIN ? more : less)
                *stands = true;
        ck_assert(*own || more || less);
}

/* Does this port by itself keep the write from being admitted, if it is as it is, and if it were as the policy has it? */
static void judge_alone(const struct write *w, uint16_t base, uint32_t p, bool *stands, bool *own)
{
        enum level policy = naive_policy(knowledge_get(k, written_port(w)), base);

        for (unsigned view = 0; view < 4; view++) {
                struct rule_class class = naive_class(p, base, view & 1, !(view >> 1));
                struct naive_step steps[6];
                unsigned n = naive_steps(w, base, view & 1, view >> 1, steps);

                for (unsigned i = 0; i < n; i++)
                        judge_step(policy, &steps[i], &class, stands, own);
        }
}

/* Adds the ports that this write waits for. */
static void find_by(const struct write *w, uint16_t base, bool *ports)
{
        for (uint32_t p = 0; p < knowledge_n_records(k); p++)
                if (p != written_port(w) && knowledge_get(k, p)->name.kind != KNOWLEDGE_LEAF)
                        judge_alone(w, base, p, &ports[p], &ports[written_port(w)]);
}

static void compare(const struct held *h, const bool *ports)
{
        bool named[MAX_PORTS] = {}, seen[MAX_PORTS] = {};

        ck_assert_uint_le(h->n_by, HELD_MAX);
        for (uint32_t i = 0; i < h->n_by; i++) {
                const struct knowledge_record *r = knowledge_get(k, h->by[i].record);
                uint32_t port = r->name.kind == KNOWLEDGE_LEAF ? r->other_end : h->by[i].record;

                ck_assert(!seen[h->by[i].record]);
                seen[h->by[i].record] = named[port] = true;
        }
        for (uint32_t p = 0; p < MAX_PORTS; p++)
                ck_assert_uint_eq(named[p], ports[p]);
}

/* Some writes of one base, of which those that are not admitted wait. */
static void compare_writes(void)
{
        uint16_t base = (uint16_t) (1 + any(BASES + 1));
        bool ports[MAX_PORTS] = {}, waits[MAX_PORTS] = {};
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        const struct held *const *items;
        uint32_t n_waiting = 0;
        size_t n;

        list = held_list_new(arena);
        for (unsigned i = 0; i < 8; i++) {
                struct write w = { .record = any_record(), .block = any(BLOCKS), .entries = block };

                any_block(block);
                if (written_port(&w) == KNOWLEDGE_NONE || naive_admits(&w, base))
                        continue;
                find_by(&w, base, ports);
                ck_assert_int_eq(held_collect(list, k, w.record, (uint16_t) w.block, block, base), 0);
                n_waiting += !waits[w.record];
                waits[w.record] = true;
        }
        items = held_list_items(list, &n);
        ck_assert_uint_eq(n, n_waiting > 0);
        if (n == 0)
                return;
        ck_assert_uint_eq(items[0]->n_waiting, n_waiting);
        compare(items[0], ports);
}

START_TEST(names_who_stands_in_the_way)
{
        seed = (uint64_t) _i;
        for (usec_t now = 0; now < 40 * MINUTE; now += MINUTE) {
                struct subnet *s = any_subnet();

                ck_assert_int_eq(knowledge_see_subnet(k, s, now, 0, HOLD), 0);
                ck_assert_uint_le(knowledge_n_records(k), MAX_PORTS);
                any_reads(s);
                any_policy(s);
                for (unsigned i = 0; i < 20; i++) {
                        compare_writes();
                        any_event();
                }
        }
}
END_TEST

START_TEST(reasons_have_words)
{
        for (enum held_reason r = 0; r < HELD_N_REASONS; r++)
                for (enum held_reason other = 0; other < r; other++)
                        ck_assert_str_ne(held_reason_to_string(r), held_reason_to_string(other));
        ck_assert_str_eq(held_reason_to_string(HELD_SILENT), "silent");
}
END_TEST

int main(void)
{
        TCase *reasons = tcase_create("reasons"), *many = tcase_create("many");
        Suite *s = suite_create("held");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(reasons, setup, knowledge_teardown);
        tcase_add_test(reasons, never_read);
        tcase_add_test(reasons, unanswered);
        tcase_add_test(reasons, unanswered_and_unconfirmed);
        tcase_add_test(reasons, unanswered_and_as_before);
        tcase_add_test(reasons, unconfirmed);
        tcase_add_test(reasons, silent);
        tcase_add_test(reasons, behind_a_silent_switch);
        tcase_add_test(reasons, silent_and_its_switch_is_gone);
        tcase_add_test(reasons, unknown_behind_a_silent_switch);
        tcase_add_test(reasons, silent_and_never_seen);
        tcase_add_test(reasons, absent);
        tcase_add_test(reasons, absent_or_silent);
        tcase_add_test(reasons, lack);
        tcase_add_test(reasons, lack_of_a_leaf_port);
        tcase_add_test(reasons, frozen);
        tcase_add_test(reasons, earlier);
        tcase_add_test(reasons, nobody);
        tcase_add_test(reasons, in_its_own_way);
        tcase_add_test(reasons, in_its_own_way_unread);
        tcase_add_test(reasons, leaf_port_in_the_way_of_its_own);
        tcase_add_test(reasons, level_of_both_blocks);
        tcase_add_test(reasons, filters);
        tcase_add_test(reasons, reasons_have_words);
        tcase_add_checked_fixture(many, setup, knowledge_teardown);
        tcase_add_test(many, bounded);
        tcase_add_test(many, holders);
        tcase_add_test(many, alike);
        tcase_add_test(many, sorted_by_base);
        tcase_add_loop_test(many, names_who_stands_in_the_way, 0, 12);
        suite_add_tcase(s, reasons);
        suite_add_tcase(s, many);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
