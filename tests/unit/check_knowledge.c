/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/held.h"
#include "knowledge_naive.h"

/* May this host's table be given one entry of base 1 (or none)? */
static enum rule_verdict judge(unsigned host, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        return knowledge_judge_block(k, host_record(host), 0, block, 1);
}

static void send_block(uint32_t record, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        send_announced(record, 0, block);
}

static void see_block(uint32_t record, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        knowledge_see_block(k, record, 0, block);
}

static void check_bounds(struct bounds b, unsigned has, unsigned may)
{
        ck_assert_uint_eq(b.has, has);
        ck_assert_uint_eq(b.may, may);
}

/* --- bounds -------------------------------------------------------------------------------------------------------------- */

START_TEST(never_read_may_hold_anything)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0x0001);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_LIMITED);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(1), 2), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(writes_are_not_certain_until_read)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        send_block(host_record(0), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        send_block(host_record(0), 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
        see_block(host_record(0), 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_FULL, LEVEL_FULL);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
}
END_TEST

static void check_holder(struct subnet *s, uint16_t base, uint32_t record)
{
        _cleanup_free_ uint32_t *holders = calloc(P_KEY_BASE_MASK + 1, sizeof(*holders));

        knowledge_list_holders(k, holders);
        ck_assert_uint_eq(holders[base], record);
        want(s, 0);
        ck_assert_int_eq(knowledge_may_hold(k, base), record != KNOWLEDGE_NONE);
}

START_TEST(who_may_hold_a_base)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_table(s, port_at(s, SWITCH, 0), 0);
        for (unsigned host = 0; host < HOSTS; host++) {
                check_holder(s, 9, host_record(host)); /* the first that was never read */
                read_host(s, host, 0);
                read_leaf(s, host, 0);
        }
        check_holder(s, 9, KNOWLEDGE_NONE);
        read_host(s, 1, 0x0009);
        check_holder(s, 9, host_record(1));
        send_block(host_record(2), 0x8003);
        check_holder(s, 3, host_record(2));
        see_block(host_record(2), 0);
        check_holder(s, 3, KNOWLEDGE_NONE);
        read_host(s, 0, 0x8004); /* behind a filter that does not let it through */
        check_holder(s, 4, KNOWLEDGE_NONE);
        read_leaf(s, 0, 0x8004);
        check_holder(s, 4, host_record(0));
}
END_TEST

/* It may hold everything that the filter lets through. */
START_TEST(who_may_hold_a_base_behind_a_filter)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_table(s, port_at(s, SWITCH, 0), 0);
        for (unsigned host = 1; host < HOSTS; host++) {
                read_host(s, host, 0);
                read_leaf(s, host, 0);
        }
        read_leaf(s, 0, 0x8004);
        check_holder(s, 4, host_record(0));
        check_holder(s, 9, KNOWLEDGE_NONE);
        send_block(leaf_record(0), 0x8005);
        check_holder(s, 5, host_record(0));
}
END_TEST

START_TEST(kept_policy)
{
        _cleanup_arena_ struct arena *kept = arena_new();
        struct subnet *s = discover(ALL, 0, 0, 0);
        const struct desired_port *before;

        for (unsigned host = 0; host < HOSTS; host++)
                read_host(s, host, 0x8001);
        s = discover(ALL & ~8u, 0, 0, MINUTE);
        want(s, ALL);
        before = knowledge_get(k, host_record(0))->policy;
        ((struct desired_port *) before)->index0_base = 0x0001;
        ((struct desired_port *) before)->most = knowledge_get(k, host_record(1))->policy;
        ((struct desired_port *) before)->most_is_held = true;
        ck_assert(knowledge_is_gone(knowledge_get(k, host_record(3))));
        ck_assert_int_eq(knowledge_keep_policy(k, kept), 0);
        ck_assert(knowledge_is_counted(k));
        ck_assert_ptr_ne(knowledge_get(k, host_record(0))->policy, before);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->policy->n_wanted, before->n_wanted);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->policy->index0_base, 0x0001);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->policy->most->n_wanted, before->most->n_wanted);
        ck_assert(knowledge_get(k, host_record(0))->policy->most_is_held);
        ck_assert(!knowledge_is_gone(knowledge_get(k, host_record(3)))); /* it may be back by now */
        knowledge_drop_policy(k);
        ck_assert(!knowledge_is_counted(k));
        want(s, ALL);
        knowledge_doubt_absence(k);
        ck_assert(!knowledge_is_counted(k));
}
END_TEST

/* While a policy is carried out, an absent port may come back: a write that would cut it off is not admitted any more. */
START_TEST(absence_is_doubted_now)
{
        struct p_key limited[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        for (unsigned host = 0; host < HOSTS; host++)
                read_host(s, host, host == 3 ? 0x0001 : 0x8001);
        s = discover(ALL & ~8u, 0, 0, MINUTE);
        for (unsigned host = 0; host < 3; host++)
                read_host(s, host, host == 0 ? 0x8001 : 0);
        knowledge_doubt_absence_after(k, MINUTE, 2 * MINUTE);
        want(s, ALL);
        block_of(0x0001, limited);
        ck_assert_int_eq(knowledge_apply_doubt(k, 2 * MINUTE), 0);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(0), 0, limited, 1), RULE_ADMITS);
        ck_assert_int_eq(knowledge_apply_doubt(k, 2 * MINUTE + 1), 0);
        ck_assert(knowledge_is_counted(k));
        ck_assert_int_eq(knowledge_judge_block(k, host_record(0), 0, limited, 1), RULE_LOSS);
}
END_TEST

/* A write by OpenSM is announced, and then withdrawn. */
START_TEST(expected_and_retracted)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key full[P_KEY_BLOCK_ENTRIES], none[P_KEY_BLOCK_ENTRIES];

        block_of(0x8001, full);
        block_of(0, none);
        read_host(s, 0, 0x0001);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_FULL);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, none), 0);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_retract_block(k, host_record(0), 0, none);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_FULL);
        knowledge_retract_block(k, host_record(0), 0, full);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_FULL);
        see_block(host_record(0), 0x8001);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_FULL, LEVEL_FULL);
}
END_TEST

/* A write in a file for OpenSM stays possible until the table is read; one that no file has does not. */
START_TEST(expected_in_vain)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key full[P_KEY_BLOCK_ENTRIES], none[P_KEY_BLOCK_ENTRIES];

        block_of(0x8001, full);
        block_of(0, none);
        read_host(s, 0, 0x0001);
        want(s, 0);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, none), 0);
        knowledge_settle_expected(k, true);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        knowledge_settle_expected(k, false);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_LIMITED);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        see_block(host_record(0), 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 4);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
}
END_TEST

/* The same entries in two blocks are two writes. */
START_TEST(retracted_block)
{
        struct p_key full[P_KEY_BLOCK_ENTRIES];

        read_host(discover(ALL, 0, 0, 0), 0, 0);
        block_of(0x8001, full);
        for (uint16_t block = 0; block < BLOCKS; block++)
                ck_assert_int_eq(knowledge_expect_block(k, host_record(0), block, full), 0);
        knowledge_retract_block(k, host_record(0), 0, full);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->writes[0].block, 1);
}
END_TEST

/* OpenSM was asked for a block; then for the same once more, and after all it was not: it may still write what it was asked for
 * first. */
START_TEST(retracted_after_it_was_asked)
{
        struct p_key full[P_KEY_BLOCK_ENTRIES];

        read_host(discover(ALL, 0, 0, 0), 0, 0);
        block_of(0x8001, full);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        knowledge_settle_expected(k, true);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, full), 0);
        knowledge_retract_block(k, host_record(0), 0, full);
        knowledge_settle_expected(k, false);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* The other head node carries out the policy: who it gives something may have it until it is read, also behind a switch port that
 * filters, and whether an index is free or not. */
START_TEST(what_the_other_head_may_write)
{
        struct subnet *s = discover(ALL, 0, 2, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        read_table(s, port_at(s, SWITCH, 0), 0);
        for (unsigned i = 0; i < HOSTS; i++) {
                read_host(s, i, 0);
                read_leaf(s, i, 0);
        }
        want(s, 3);
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_int_eq(knowledge_suspect_policy(k), 0);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, host_record(1), 1), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, host_record(2), 1), LEVEL_NONE, LEVEL_NONE);
                ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1); /* once */
                ck_assert_uint_eq(knowledge_get(k, host_record(2))->n_writes, 0);
        }
        /* another policy: what was written by the one before is there, for all that is known */
        want(s, 4);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        block_of(0x8001, block);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(2), 0, block, 1), RULE_GAIN);
        read_host(s, 0, 0);
        read_host(s, 1, 0);
        read_host(s, 2, 0);
        want(s, 4);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(2), 0, block, 1), RULE_ADMITS);
        /* a table that is full */
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                block[i].v = (uint16_t) (0x8100 + i);
        for (unsigned i = 0; i * P_KEY_BLOCK_ENTRIES < CAPACITY; i++)
                knowledge_see_block(k, host_record(2), (uint16_t) i, block);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        check_bounds(knowledge_port_bounds(k, host_record(2), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* This pkeyd was about to write the same: the withdrawal does not count for the other pkeyd. */
START_TEST(what_the_other_head_may_write_is_announced_here)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        read_host(s, 0, 0);
        want(s, 1);
        block_of(0x8001, block);
        announce(host_record(0), 0, block);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        knowledge_withdraw(k);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* A full table, and two partitions that it lacks: it may hold each of them. One without entries holds nothing. */
START_TEST(what_the_other_head_may_write_to_a_full_table)
{
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });
        struct p_key wanted[] = { { 0x8001 }, { 0x8002 } };
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        struct observed *o;

        s->nodes[subnet_find_node(s, G(host_guid(1)))].partition_cap = 0;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        for (unsigned i = 0; i < 2; i++) {
                uint32_t port = port_at(s, host_guid(i), 1);

                for (unsigned e = 0; i == 0 && e < CAPACITY; e++)
                        o->tables[port].entries[e].v = (uint16_t) (0x8100 + e);
                o->tables[port].source = TABLE_READ;
                d.ports[port] = (struct desired_port) { wanted, ELEMENTS(wanted) };
        }
        ck_assert_int_eq(knowledge_see_tables(k, o, 0), 0);
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        for (uint16_t base = 1; base < 3; base++) {
                check_bounds(knowledge_port_bounds(k, host_record(0), base), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, host_record(1), base), LEVEL_NONE, LEVEL_NONE);
        }
}
END_TEST

/* A limited member becomes a full one by the same policy. */
START_TEST(what_the_other_head_may_raise)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x0001);
        want(s, 1);
        ck_assert_int_eq(knowledge_suspect_policy(k), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_FULL);
}
END_TEST

/* A policy that gives both memberships gives full membership, whichever is listed first. */
START_TEST(policy_of_both_memberships)
{
        struct p_key wanted[][2] = { { { 0x0001 }, { 0x8001 } }, { { 0x8001 }, { 0x0001 } } };
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };

        for (unsigned i = 0; i < 2; i++)
                d.ports[port_at(s, host_guid(i), 1)] = (struct desired_port) { wanted[i], ELEMENTS(wanted[i]) };
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(knowledge_policy_level(knowledge_get(k, host_record(i)), 1), LEVEL_FULL);
}
END_TEST

/* They certainly talk, so another entry changes nothing; not if the entry may have been overwritten. */
START_TEST(suspected_may_have_taken_an_entry)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES], other[P_KEY_BLOCK_ENTRIES];

        read_table(s, port_at(s, SWITCH, 0), 0);
        for (unsigned i = 0; i < HOSTS; i++) {
                read_host(s, i, i == 0 ? 0x0001 : i == 1 ? 0x8001 : 0);
                read_leaf(s, i, 0);
        }
        want(s, 0);
        block_of(0x8001, block);
        block_of(0x8002, other);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(0), 0, block, 1), RULE_ADMITS);
        ck_assert_int_eq(knowledge_suspect_block(k, host_record(0), 0, other), 0);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(0), 0, block, 1), RULE_GAIN);
}
END_TEST

/* What a copy admits and holds up is what the knowledge does. */
START_TEST(copy)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct knowledge *other;

        read_host(discover(ALL, 0, 0, 0), 0, 0);
        send_block(host_record(0), 0x8001);
        ck_assert_int_eq(knowledge_vouch(k, host_record(1), "root", 77), 0);
        other = k;
        k = knowledge_copy(k);
        ck_assert_ptr_nonnull(k);
        knowledge_free(other);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(1), 2), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(2), 2), LEVEL_NONE, LEVEL_FULL);
        ck_assert_str_eq(knowledge_get(k, host_record(1))->vouched_by, "root");
        block_of(0x8002, block);
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Nothing is written to a fabric of which no port is known, unless no port is known at all. */
START_TEST(other_fabric)
{
        const struct subnet_node node = { .guid = G(0x777), .type = NODE_CA, .partition_cap = CAPACITY };
        struct subnet_builder *b;
        struct subnet *other, *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &(struct subnet_port) { .number = 1, .guid = G(0x778) }), 0);
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &other), 0);
        ck_assert(!knowledge_is_of_other_fabric(k, other));
        s = discover(ALL, 0, 0, 0);
        ck_assert(!knowledge_is_of_other_fabric(k, s));
        ck_assert(knowledge_is_of_other_fabric(k, other));
}
END_TEST

/* A time that the clock moves to 1970 is not "never". */
START_TEST(time_at_the_beginning)
{
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 100, HOLD), 0);
        s = make_subnet(&(struct scene) { .there = ALL & ~1u });
        ck_assert_int_eq(knowledge_see_subnet(k, s, USEC_PER_SEC, 1, HOLD), 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->seen_at, 1);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->there_at, 1);
}
END_TEST

/* The unknown device at a silent port is the switch that is found there. Other switches that are connected to the same one, by
 * other ports, are not that device. */
START_TEST(unknown_device_was_a_switch)
{
        const struct knowledge_name place = { G(0x20), 6, KNOWLEDGE_PLACE };

        see_chain(make_chain(2), MINUTE);
        ck_assert_int_eq(knowledge_get(k, knowledge_find(k, place))->presence, KNOWLEDGE_SILENT);
        see_chain(make_chain(3), 2 * MINUTE);
        ck_assert(knowledge_get(k, knowledge_find(k, place))->found);
}
END_TEST

/* Until when an absent port counts. */
START_TEST(copy_of_times)
{
        struct knowledge *other;
        uint64_t until;

        read_host(discover(ALL, 0, 0, 0), 0, 0);
        discover(ALL & ~1u, 0, 0, MINUTE);
        discover(ALL & ~1u, 0, 0, 2 * MINUTE);
        until = held_by_record(k, host_record(0)).until;
        ck_assert_uint_gt(until, 2 * 60);
        other = k;
        k = knowledge_copy(k);
        ck_assert_ptr_nonnull(k);
        knowledge_free(other);
        ck_assert_uint_eq(held_by_record(k, host_record(0)).until, until);
}
END_TEST

START_TEST(copy_of_places)
{
        const struct knowledge_record *from, *to;
        struct knowledge *other;

        see_chain(make_chain(3), 0);
        other = knowledge_copy(k);
        ck_assert_ptr_nonnull(other);
        for (uint32_t i = 0; i < knowledge_n_records(k); i++) {
                from = knowledge_get(k, i);
                to = knowledge_get(other, knowledge_find(other, from->name));
                ck_assert_uint_eq(from->n_places, to->n_places);
                for (size_t p = 0; p < from->n_places; p++)
                        ck_assert(from->places[p].node.v == to->places[p].node.v && from->places[p].number == to->places[p].number);
        }
        knowledge_free(other);
}
END_TEST

/* A read was not answered. */
START_TEST(doubt)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        knowledge_doubt(k, host_record(0));
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0x8001);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_FULL, LEVEL_FULL);
}
END_TEST

/* What was read before this discovery is what it may hold, not what it has. */
START_TEST(old_reads_are_not_certain)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0x8001);
        discover(ALL, 0, 0, MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_table_bounds(k, leaf_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

static void read_all(struct subnet *s)
{
        for (unsigned i = 0; i < HOSTS; i++)
                if (port_at(s, host_guid(i), 1) != NO_PORT) {
                        read_host(s, i, 0x8001);
                        read_leaf(s, i, 0x8001);
                }
        read_table(s, port_at(s, SWITCH, 0), 0);
}

/* All is known for certain when each table was read since the last discovery, and nothing was sent to it since. */
START_TEST(certain_when_all_was_read)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        ck_assert(!knowledge_is_certain(k));
        read_all(s);
        ck_assert(knowledge_is_certain(k));
        send_block(host_record(0), 0);
        ck_assert(!knowledge_is_certain(k));
        see_block(host_record(0), 0);
        ck_assert(knowledge_is_certain(k));
        knowledge_doubt_filter(k, leaf_record(0));
        ck_assert(!knowledge_is_certain(k));
        knowledge_see_filter(k, leaf_record(0), true, true);
        ck_assert(knowledge_is_certain(k));
        for (uint32_t i = 0; i < knowledge_n_records(k); i++) {
                read_all(s);
                ck_assert(knowledge_is_certain(k));
                knowledge_doubt(k, i);
                ck_assert(!knowledge_is_certain(k));
        }
        read_all(s);
        knowledge_stop_following(k);
        ck_assert(!knowledge_is_certain(k));
        read_all(s);
        ck_assert(knowledge_is_certain(k));
}
END_TEST

/* Nothing is certain of an absent port, until it no longer counts. */
START_TEST(certain_without_who_is_gone)
{
        read_all(discover(ALL, 0, 0, 0));
        read_all(discover(ALL & ~1u, 1, 0, 1));
        ck_assert(!knowledge_is_certain(k));
        read_all(discover(ALL & ~1u, 0, 0, HOLD));
        ck_assert(!knowledge_is_certain(k));
        read_all(discover(ALL & ~1u, 0, 0, 1 + HOLD));
        ck_assert(knowledge_is_certain(k));
        read_all(discover(ALL & ~1u, 1, 0, 2 + HOLD));
        ck_assert(!knowledge_is_certain(k));
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        ck_assert(!knowledge_is_certain(k)); /* it may be another one */
        ck_assert_int_eq(knowledge_vouch(k, place_record(0), "root", 77), 0);
        ck_assert(knowledge_is_certain(k));
}
END_TEST

/* What is written behind the end of a table is in no table. */
START_TEST(entries_behind_the_end)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        block[CAPACITY - P_KEY_BLOCK_ENTRIES].v = 0x8001;
        send_announced(host_record(0), 1, block);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        block[CAPACITY - P_KEY_BLOCK_ENTRIES - 1].v = 0x8001;
        send_announced(host_record(0), 1, block);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Each entry of a block is compared, the last one, too, and no entry behind the end of the table. */
START_TEST(block_as_it_was_read)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        read_host(s, 0, 0);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                memset(block, 0, sizeof(block));
                block[i].v = 0x8001;
                ck_assert(!knowledge_block_is(k, host_record(0), 0, block));
                ck_assert_int_eq(knowledge_block_is(k, host_record(0), 1, block), i >= CAPACITY - P_KEY_BLOCK_ENTRIES);
        }
}
END_TEST

START_TEST(table_of_another_size)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct subnet_node *node;

        read_host(s, 0, 0x8001);
        block_of(0x8002, block);
        send_announced(host_record(0), 0, block);
        ck_assert(knowledge_has_open_writes(k));
        s = make_subnet(&(struct scene) { ALL, 0, 0, 0, false });
        node = &s->nodes[subnet_find_node(s, G(host_guid(0)))];
        node->partition_cap = 2 * CAPACITY;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
        ck_assert(!knowledge_has_open_writes(k)); /* nor is it the table that was written */
}
END_TEST

/* What the host sends and what it receives may be filtered one without the other. */
START_TEST(filter_of_each_direction)
{
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL, .filters = 1, .outbound = 2 });

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_int_eq(knowledge_get(k, leaf_record(i))->filters[SENDS], i == 0);
                ck_assert_int_eq(knowledge_get(k, leaf_record(i))->filters[RECEIVES], i == 1);
        }
        for (unsigned i = 0; i < 2; i++) {
                read_host(s, i, 0x8001);
                read_leaf(s, i, 0);
                /* the bounds of a port are those of what it sends */
                check_bounds(knowledge_port_bounds(k, host_record(i), 1), i ? LEVEL_FULL : LEVEL_NONE, i ? LEVEL_FULL : LEVEL_NONE);
        }
}
END_TEST

/* --- filters -------------------------------------------------------------------------------------------------------------- */

START_TEST(mute_behind_a_closed_filter_holds_nothing)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_leaf(s, 0, 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
        knowledge_doubt_filter(k, leaf_record(0));
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_see_filter(k, leaf_record(0), true, true);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        knowledge_see_filter(k, leaf_record(0), false, false);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(filter_of_a_switch_that_is_incomplete)
{
        struct subnet *s = make_subnet(&(struct scene) { ALL, 0, ALL, ALL, true });

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

static struct subnet *discover_without_switch_info(bool incomplete, unsigned filters, usec_t now)
{
        struct subnet *s = make_subnet(&(struct scene) { ALL, 0, filters, filters, incomplete });
        struct subnet_node *leaf = &s->nodes[subnet_find_node(s, G(SWITCH))];

        s->nodes[subnet_find_node(s, G(host_guid(0)))].incomplete = true;
        leaf->partition_enforcement_cap = 0;
        leaf->inbound_enforcement_cap = leaf->outbound_enforcement_cap = false;
        knowledge_complete_subnet(k, s);
        ck_assert_int_eq(knowledge_see_subnet(k, s, now, now / USEC_PER_SEC, HOLD), 0);
        return s;
}

/* Its ports filter as before for all that is known, however long that goes on; one that says that it cannot has no filter. */
START_TEST(switch_that_does_not_say_whether_it_filters)
{
        struct subnet *s = discover_without_switch_info(true, 1, 0);

        ck_assert(!subnet_port_can_enforce(s, &s->ports[port_at(s, SWITCH, 1)]));
        ck_assert_uint_eq(leaf_record(0), KNOWLEDGE_NONE);
        discover(ALL & ~7u, 0, ALL, 0); /* of its ports only one has a neighbor */
        s = discover_without_switch_info(true, ALL, 0);
        ck_assert(subnet_port_can_enforce(s, &s->ports[port_at(s, SWITCH, 1)]));
        s = discover(ALL, 0, 1, 0);
        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        s = discover_without_switch_info(true, 1, 2 * HOLD);
        ck_assert(subnet_port_can_enforce(s, &s->ports[port_at(s, SWITCH, 1)]));
        ck_assert_uint_eq(subnet_port_capacity(s, &s->ports[port_at(s, SWITCH, 1)]), CAPACITY);
        ck_assert_uint_eq(s->nodes[subnet_find_node(s, G(host_guid(0)))].partition_enforcement_cap, 0);
        ck_assert_int_eq(knowledge_get(k, leaf_record(0))->presence, KNOWLEDGE_THERE);
        ck_assert_ptr_nonnull(knowledge_get(k, leaf_record(0))->entries);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        s = discover_without_switch_info(false, 0, 2 * HOLD);
        ck_assert(!subnet_port_can_enforce(s, &s->ports[port_at(s, SWITCH, 1)]));
        ck_assert_int_eq(knowledge_get(k, leaf_record(0))->presence, KNOWLEDGE_ABSENT);
}
END_TEST

/* Where another query was not answered, what it says of its filters counts, and not what is known of its leaf ports. */
START_TEST(incomplete_switch_that_says_how_it_filters)
{
        for (unsigned known = 0; known < 2; known++) {
                struct subnet *s = make_subnet(&(struct scene) { .there = ALL, .incomplete = true });
                struct subnet_node *leaf = &s->nodes[subnet_find_node(s, G(SWITCH))];

                leaf->partition_enforcement_cap = 2 * CAPACITY;
                leaf->outbound_enforcement_cap = false;
                knowledge_complete_subnet(k, s);
                ck_assert_uint_eq(leaf->partition_enforcement_cap, 2 * CAPACITY);
                ck_assert(leaf->inbound_enforcement_cap && !leaf->outbound_enforcement_cap);
                discover(ALL, 0, 0, 0);
        }
}
END_TEST

/* It says that it cannot filter any more: what was known of its leaf port is between nobody and the fabric. */
START_TEST(switch_that_does_not_filter_any_more)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover_without_switch_info(false, 0, MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* A switch port that was reset lost its filter with its table, for all that is known: until it is read anew. What was sent to it,
 * or was there before, is no surprise. */
START_TEST(filter_of_a_port_that_was_reset)
{
        struct subnet *s = discover(ALL, 0, 1, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0x8002);
        block_of(0x8003, block);
        announce(leaf_record(0), 0, block);
        ck_assert(knowledge_send_block(k, leaf_record(0), 0, block));
        see_block(leaf_record(0), 0x8003);
        see_block(leaf_record(0), 0x8003);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        see_block(leaf_record(0), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_see_filter(k, leaf_record(0), true, true);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* An absent port may come back elsewhere. */
START_TEST(filter_does_not_hold_the_absent)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover(ALL & ~1u, 0, 1, MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* --- presence -------------------------------------------------------------------------------------------------------------- */

START_TEST(silent_ports_keep_their_record)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->since, 100 * HOLD / USEC_PER_SEC);
        discover(ALL & ~1u, 1, 0, 101 * HOLD);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->since, 100 * HOLD / USEC_PER_SEC);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

START_TEST(silent_and_never_seen)
{
        discover(ALL & ~1u, 1, 0, 0);
        ck_assert_uint_ne(place_record(0), KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        /* it is discovered: from now on it has a name */
        discover(ALL, 0, 0, 1);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_NONE);
        /* it was unplugged instead */
        discover(ALL & ~2u, 2, 0, 2);
        discover(ALL & ~2u, 0, 0, 3);
        check_bounds(knowledge_port_bounds(k, host_record(1), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Each port of a switch for itself: host 0 was unplugged, host 1 is silent, and so is a device at port 3, where nothing
 * was before. */
START_TEST(silent_beside_others)
{
        discover(ALL & ~4u, 0, 0, 0);
        discover(ALL & ~7u, 6, 0, MINUTE);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_ABSENT);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
        ck_assert_uint_eq(place_record(1), KNOWLEDGE_NONE);
        ck_assert_uint_ne(place_record(2), KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, place_record(2), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Host 0 hangs, and its cable is plugged in where host 1 was: what is silent there may be host 0, which does not expire. Host 2
 * was unplugged when nothing had fallen silent, nor did within absent_hold: that is not it. Host 3 hangs all the time. */
START_TEST(moved_to_the_place_of_another)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        read_host(s, 2, 0x8001);
        discover(ALL & ~8u, 8, 0, MINUTE / 3);
        discover(ALL & ~8u, 8, 0, MINUTE / 2);
        discover(ALL & ~12u, 8, 0, MINUTE);
        discover(ALL & ~13u, 9, 0, MINUTE + HOLD);
        discover(ALL & ~15u, 10, 0, 2 * MINUTE + HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_SILENT);
        for (unsigned i = 3; i < 100; i += 9) {
                discover(ALL & ~15u, 10, 0, i * HOLD);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, host_record(2), 1), LEVEL_NONE, LEVEL_NONE);
        }
        knowledge_hold_absent(k, 100 * HOLD, HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~15u, 10, 0, 100 * HOLD);
        /* it was host 1 after all: host 0 may have been unplugged a moment ago */
        discover(ALL & ~13u, 8, 0, 100 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~13u, 8, 0, 101 * HOLD - 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~13u, 8, 0, 101 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* Two hosts hang, and their cables are swapped. One of them goes; the other, which has been silent for as long, may be at either
 * place. */
START_TEST(swapped_while_both_are_silent)
{
        struct subnet *s = discover(ALL, 0, 0, MINUTE);

        read_host(s, 0, 0x8001);
        for (unsigned i = 2; i < 100; i++)
                discover(ALL & ~9u, 9, 0, i * MINUTE);
        discover(ALL & ~9u, 8, 0, 100 * MINUTE); /* the place of host 0 is empty */
        discover(ALL & ~9u, 8, 0, 100 * MINUTE + 2 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~1u, 0, 0, 100 * MINUTE + 3 * HOLD); /* it was host 3 after all */
        discover(ALL & ~1u, 0, 0, 100 * MINUTE + 5 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* When it fell silent is known to a sweep only: it may have been within absent_hold after this one went. */
START_TEST(moved_between_two_sweeps)
{
        struct subnet *s = discover(ALL, 0, 0, MINUTE);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, HOLD);
        discover(ALL & ~9u, 8, 0, 3 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* ... also if it fell silent in the second in which this one was seen last: times in the store are no finer. */
START_TEST(moved_within_a_second)
{
        struct subnet *s = discover(ALL, 0, 0, MINUTE);

        read_host(s, 0, 0x8001);
        discover(ALL & ~9u, 8, 0, MINUTE + USEC_PER_SEC / 2);
        discover(ALL & ~9u, 8, 0, MINUTE + 10 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* What hung before a port was unplugged is not that port. */
START_TEST(silent_before_another_went)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~2u, 2, 0, MINUTE);
        discover(ALL & ~2u, 2, 0, 2 * MINUTE);
        discover(ALL & ~3u, 2, 0, 3 * MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        discover(ALL & ~3u, 2, 0, 2 * MINUTE + HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* A switch with more than 64 ports: host 3 was at port 100. */
START_TEST(silent_at_a_high_port)
{
        const struct knowledge_name high = { G(SWITCH), 100, KNOWLEDGE_PLACE }, higher = { G(SWITCH), 255, KNOWLEDGE_PLACE };
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL });

        s->ports[port_at(s, SWITCH, 4)].number = 100;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        s = make_subnet(&(struct scene) { .there = ALL & ~8u });
        s->nodes[subnet_find_node(s, G(SWITCH))].silent_ports[1] = UINT64_C(1) << (100 - 64);
        s->nodes[subnet_find_node(s, G(SWITCH))].silent_ports[3] = UINT64_C(1) << (255 - 192);
        ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        ck_assert_int_eq(knowledge_get(k, host_record(3))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(knowledge_find(k, high), KNOWLEDGE_NONE);
        ck_assert_uint_ne(knowledge_find(k, higher), KNOWLEDGE_NONE);
}
END_TEST

/* The switch cannot filter, so that its ports have no record: where host 0 was is known all the same, and it is host 0 that does
 * not answer, not a device of which nothing is known. */
START_TEST(silent_at_a_switch_that_cannot_filter)
{
        for (usec_t now = 0; now < 2; now++) {
                struct subnet *s = make_subnet(&(struct scene) { .there = now == 0 ? ALL : ALL & ~1u, .silent = (unsigned) now });

                s->nodes[subnet_find_node(s, G(SWITCH))].partition_enforcement_cap = 0;
                ck_assert_int_eq(knowledge_see_subnet(k, s, now, 0, HOLD), 0);
                if (now == 0)
                        read_host(s, 0, 0x8001);
        }
        ck_assert_uint_eq(leaf_record(0), KNOWLEDGE_NONE);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
}
END_TEST

/* Nothing but host 0 was found; whether the link of its port is up. */
static void discover_host_only(bool link_is_up, usec_t now)
{
        struct subnet_node node = { .guid = G(host_guid(0)), .type = NODE_CA, .partition_cap = CAPACITY };
        struct subnet_port port = { .number = 1, .guid = G(host_guid(0) + 1) };
        struct subnet_builder *b;
        struct subnet *s;

        node.silent_ports[0] = link_is_up ? 1u << 1 : 0;
        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, node.guid, 1, G(0), 0, &s), 0);
        ck_assert_int_eq(knowledge_see_subnet(k, s, now, now / USEC_PER_SEC, HOLD), 0);
}

START_TEST(behind_a_silent_switch)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 1, 0x8001);
        discover_host_only(true, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_SILENT);
        ck_assert_int_eq(knowledge_get(k, leaf_record(1))->presence, KNOWLEDGE_ABSENT); /* it does not answer itself */
        check_bounds(knowledge_port_bounds(k, host_record(1), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(1), 2), LEVEL_NONE, LEVEL_NONE);
        /* the link is down: all behind it is absent, for how long counts from now */
        discover_host_only(false, 101 * HOLD - 1);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_ABSENT);
        check_bounds(knowledge_port_bounds(k, host_record(1), 1), LEVEL_NONE, LEVEL_FULL);
        discover_host_only(false, 101 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(1), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* Switch 0x10 with host 0 at its port 1, and at its port 2 switch 0x20 with host 1, and with a device at port 3 that never said
 * anything; or switch 0x10 alone, where nothing answers. */
static void discover_switches(bool answer, usec_t now)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = 0; i < (answer ? 2u : 1u); i++) {
                struct subnet_node leaf = { .guid = G(0x10 * (i + 1)), .type = NODE_SWITCH, .partition_enforcement_cap = CAPACITY };

                leaf.silent_ports[0] = !answer ? 1u << 1 | 1u << 2 : i == 1 ? 1u << 3 : 0;
                add_leaf(b, &leaf);
                if (answer)
                        (void) add_leaf_host(b, leaf.guid, i);
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &s), 0);
        ck_assert_int_eq(knowledge_see_subnet(k, s, now, now / USEC_PER_SEC, HOLD), 0);
}

static enum knowledge_presence presence_of(uint64_t node, uint8_t number)
{
        return knowledge_get(k, knowledge_find(k, (struct knowledge_name) { G(node), number, KNOWLEDGE_ENDPORT }))->presence;
}

static uint32_t place_at(uint64_t node, uint8_t number)
{
        return knowledge_find(k, (struct knowledge_name) { G(node), number, KNOWLEDGE_PLACE });
}

/* Host 0 was unplugged, and something silent is there now: it may be host 0, or anybody. It stays so until it answers, or is
 * gone. */
START_TEST(another_where_a_known_one_was)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 1);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
        for (unsigned i = 2; i < 5; i++) {
                discover(ALL & ~1u, 1, 0, i);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        }
        discover(ALL, 0, 0, 5); /* it was host 0 */
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_NONE);
        discover(ALL & ~1u, 1, 0, 6); /* ... which falls silent again, and its link was never down */
        discover(ALL & ~1u, 1, 0, 7);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* Something unknown was unplugged, and a host that answered elsewhere all the time is plugged in there: that is not it. */
START_TEST(known_one_where_another_was)
{
        struct scene scene = { .there = ALL & ~1u, .silent = 1 };

        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&scene), 0, 1, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        scene.silent = 0;
        scene.there &= ~2u;
        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&scene), 1, 2, HOLD), 0);
        scene.there |= 2u;
        scene.moved = true;
        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&scene), 2, 3, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        ck_assert_int_eq(knowledge_see_subnet(k, make_subnet(&scene), HOLD, HOLD / USEC_PER_SEC, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* A switch that was discovered hangs: what is behind it is what was discovered there, and not anything. */
START_TEST(known_switch_is_silent)
{
        struct subnet *s = make_chain(3);

        see_chain(s, 0);
        for (unsigned i = 0; i < 3; i++)
                read_host(s, i, (uint16_t) (0x8001 + i));
        see_chain(make_chain(1), KNOWLEDGE_UNSEEN * USEC_PER_SEC);
        see_chain(make_chain(1), 100 * HOLD);
        ck_assert_int_eq(presence_of(0x10, 0), KNOWLEDGE_THERE);
        ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(0x900, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(0), 1), KNOWLEDGE_THERE);
        for (unsigned i = 1; i < 3; i++) {
                ck_assert_int_eq(presence_of(host_guid(i), 1), KNOWLEDGE_SILENT);
                check_bounds(knowledge_port_bounds(k, host_record(i), (uint16_t) (1 + i)), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, host_record(i), 1), LEVEL_NONE, LEVEL_NONE);
        }
        ck_assert_uint_eq(place_at(0x10, 2), KNOWLEDGE_NONE);
        ck_assert_uint_eq(place_at(0x10, 4), KNOWLEDGE_NONE);
}
END_TEST

/* ... unless there was no sweep for long before: then unknown ports may have come up behind it. Known ones count, too. */
START_TEST(unseen_switch_is_silent)
{
        struct subnet *s = make_chain(3);

        see_chain(s, 0);
        read_host(s, 1, 0x8002);
        for (unsigned later = 1; later < 3; later++) {
                see_chain(make_chain(1), later * (KNOWLEDGE_UNSEEN + 1) * USEC_PER_SEC);
                ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_SILENT);
                check_bounds(knowledge_port_bounds(k, place_at(0x10, 2), 7), LEVEL_NONE, LEVEL_FULL);
                check_bounds(knowledge_port_bounds(k, place_at(0x10, 4), 7), LEVEL_NONE, LEVEL_FULL);
                ck_assert_int_eq(presence_of(host_guid(1), 1), KNOWLEDGE_SILENT);
                check_bounds(knowledge_port_bounds(k, host_record(1), 2), LEVEL_NONE, LEVEL_FULL);
        }
}
END_TEST

/* A host has no ports behind it. */
START_TEST(unseen_host_is_silent)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
}
END_TEST

/* Behind it is nothing but another switch, of which only the host behind that was known sooner. */
START_TEST(known_switch_behind_a_silent_switch)
{
        see_chain(make_chain_of(3, 5), 0);
        ck_assert_uint_lt(host_record(2), knowledge_find(k, (struct knowledge_name) { G(0x900), 0, KNOWLEDGE_ENDPORT }));
        see_chain(make_chain_of(1, 5), 2 * HOLD);
        ck_assert_int_eq(presence_of(0x900, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_SILENT);
}
END_TEST

/* A host did not answer when it was plugged in, and did later. When its switch is gone, and may be what is silent elsewhere, it is
 * the host that is silent there, and nobody who is not known. */
START_TEST(found_place_behind_a_silent_switch)
{
        const struct knowledge_name name = { G(0x900), 1, KNOWLEDGE_PLACE };
        struct subnet *s = make_chain_of(3, 3);

        s->nodes[subnet_find_node(s, G(0x900))].silent_ports[0] |= 1u << 1;
        see_chain(s, 0);
        ck_assert_int_eq(knowledge_get(k, knowledge_find(k, name))->presence, KNOWLEDGE_SILENT);
        see_chain(make_chain(3), 1);
        s = make_chain(2);
        s->nodes[subnet_find_node(s, G(0x10))].silent_ports[0] |= 1u << 9;
        see_chain(s, 2);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_SILENT);
        ck_assert_int_eq(knowledge_get(k, knowledge_find(k, name))->presence, KNOWLEDGE_ABSENT);
}
END_TEST

/* One of its links is silent first, while it still answers through the other one. */
START_TEST(switch_falls_silent_during_a_discovery)
{
        struct subnet *s = make_chain(2);

        see_chain(make_chain(2), 0);
        s->nodes[0].silent_ports[0] = 1u << 4;
        s->nodes[subnet_find_node(s, G(0x20))].n_links = 1;
        see_chain(s, 1);
        check_bounds(knowledge_port_bounds(k, place_at(0x10, 4), 7), LEVEL_NONE, LEVEL_FULL);
        see_chain(make_chain(1), 2);
        ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place_at(0x10, 4), 7), LEVEL_NONE, LEVEL_NONE);
        ck_assert_uint_eq(place_at(0x10, 2), KNOWLEDGE_NONE);
        /* that link is moved, and something else is silent there */
        s->nodes[0].silent_ports[0] = 0;
        see_chain(s, 3);
        s->nodes[0].silent_ports[0] = 1u << 4;
        see_chain(s, 4);
        check_bounds(knowledge_port_bounds(k, place_at(0x10, 4), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* The switch that hangs was plugged in there long ago: it is not what is silent there now. */
START_TEST(switch_was_plugged_in_elsewhere)
{
        struct subnet *s = make_chain(2);

        see_chain(make_chain(2), 0);
        s->nodes[subnet_find_node(s, G(0x20))].n_links = 1;
        see_chain(s, 1);
        see_chain(make_chain(1), 2);
        ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place_at(0x10, 4), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* What went while the switch still answered is not behind it, unless its cable was moved there since. */
START_TEST(gone_before_the_switch_was_silent)
{
        struct subnet *s = make_chain(2);

        s->nodes[subnet_find_node(s, G(0x20))].silent_ports[0] = 0; /* the link to switch 2 is down */
        see_chain(make_chain(3), 0);
        see_chain(s, HOLD / 2);
        see_chain(s, 2 * HOLD);
        see_chain(make_chain(1), 3 * HOLD);
        ck_assert_int_eq(presence_of(host_guid(1), 1), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(0x900, 0), KNOWLEDGE_ABSENT);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_ABSENT);
        check_bounds(knowledge_port_bounds(k, host_record(2), 7), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* A switch was off for long, and hangs when its link is up again: what went with it is behind it. */
START_TEST(gone_with_the_switch_that_is_silent)
{
        struct subnet *s = make_chain(3);

        see_chain(s, 0);
        for (unsigned i = 0; i < 3; i++)
                read_host(s, i, (uint16_t) (0x8001 + i));
        s = make_chain(1);
        s->nodes[0].silent_ports[0] = 0; /* both links to it are down */
        see_chain(s, 1);
        see_chain(s, 2 * HOLD);
        ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_ABSENT);
        for (unsigned round = 3; round < 5; round++) {
                see_chain(make_chain(1), round * HOLD);
                for (unsigned i = 1; i < 3; i++) {
                        ck_assert_int_eq(presence_of(host_guid(i), 1), KNOWLEDGE_SILENT);
                        check_bounds(knowledge_port_bounds(k, host_record(i), (uint16_t) (1 + i)), LEVEL_NONE, LEVEL_FULL);
                }
        }
}
END_TEST

START_TEST(moved_behind_a_switch_before_it_was_silent)
{
        struct subnet *s = make_chain(2);

        s->nodes[subnet_find_node(s, G(0x20))].silent_ports[0] = 0;
        see_chain(make_chain(3), 0);
        see_chain(s, MINUTE);
        see_chain(make_chain(1), HOLD);
        see_chain(make_chain(1), 100 * HOLD);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_ABSENT);
        check_bounds(knowledge_port_bounds(k, host_record(2), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* One switch of the chain, of which these links are silent, with its host. */
static void discover_end(uint64_t guid, uint64_t silent_ports, unsigned its_host, usec_t now)
{
        struct subnet_node leaf = { .guid = G(guid), .type = NODE_SWITCH, .partition_cap = CAPACITY };
        struct subnet_builder *b;
        struct guid host;
        struct subnet *s;

        leaf.silent_ports[0] = silent_ports;
        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_leaf(b, &leaf);
        host = add_leaf_host(b, leaf.guid, its_host);
        ck_assert_int_eq(subnet_builder_finish(b, host, 1, G(0), 0, &s), 0);
        see_chain(s, now);
}

/* A switch hangs that one head node sees from one end, and the other one from the other. What is behind it stays there. */
START_TEST(silent_switch_from_both_ends)
{
        see_chain(make_chain(3), 0);
        discover_end(0x900, 1u << 7, 2, HOLD / 2);
        see_chain(make_chain(1), 2 * HOLD);
        ck_assert_int_eq(presence_of(0x900, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_SILENT);
}
END_TEST

/* The same if a head node is plugged into the switch that hangs, and so finds nothing but itself. */
START_TEST(silent_switch_of_a_head_node)
{
        see_chain(make_chain(2), 0);
        discover_host_only(true, HOLD / 2);
        discover_end(0x20, 1u << 3 | 1u << 5, 1, 2 * HOLD);
        ck_assert_int_eq(presence_of(0x10, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(0), 1), KNOWLEDGE_SILENT);
        discover_host_only(false, 3 * HOLD); /* its cable is out */
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_places, 0);
}
END_TEST

/* A host beside the switch is silent, too, and was known later: ports behind the switch are still silent. */
START_TEST(silent_switch_and_silent_host)
{
        see_chain(make_chain(2), 0);
        see_chain(make_subnet(&(struct scene) { .silent = 1u << 0 | 1u << 1 | 1u << 3 }), 100 * HOLD);
        ck_assert_int_eq(presence_of(0x20, 0), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(0), 1), KNOWLEDGE_SILENT);
        ck_assert_int_eq(presence_of(host_guid(1), 1), KNOWLEDGE_SILENT);
}
END_TEST

/* A host has one place. Where it was before is something else now, also when the host is gone. */
START_TEST(silent_where_a_host_was_before)
{
        struct subnet *s;

        discover(1, 0, 0, 0);
        s = make_subnet(&(struct scene) { .there = 1 });
        s->ports[port_at(s, SWITCH, 1)].number = 4;
        s->nodes[subnet_find_node(s, G(SWITCH))].silent_ports[0] = 1u << 1;
        ck_assert_int_eq(knowledge_see_subnet(k, s, MINUTE, 60, HOLD), 0);
        discover(0, 1, 0, 2 * MINUTE);
        ck_assert_int_eq(presence_of(host_guid(0), 1), KNOWLEDGE_ABSENT);
        ck_assert_int_eq(knowledge_get(k, place_record(0))->presence, KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* Beside it an unknown device is silent, perhaps a switch: then every absent port may be behind that. */
START_TEST(unknown_device_beside_a_silent_switch)
{
        struct subnet *s = make_chain(2);

        s->nodes[subnet_find_node(s, G(0x20))].silent_ports[0] = 0;
        see_chain(make_chain(3), 0);
        see_chain(s, 1);
        s = make_chain(1);
        s->nodes[0].silent_ports[0] |= 1u << 9;
        see_chain(s, 2);
        ck_assert_int_eq(presence_of(host_guid(2), 1), KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place_at(0x10, 9), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* A device behind it has never answered, and is still silent. */
START_TEST(unknown_device_behind_a_silent_switch)
{
        struct subnet *s = make_chain(2);

        s->nodes[subnet_find_node(s, G(0x20))].silent_ports[0] = 1u << 8;
        see_chain(s, 0);
        see_chain(make_chain(1), 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, place_at(0x20, 8))->presence, KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place_at(0x20, 8), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* A host that is known hangs at another port of the same switch: that does not explain what is silent beside it. */
START_TEST(behind_a_silent_switch_beside_a_silent_host)
{
        discover_switches(true, 0);
        discover_switches(false, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        ck_assert_int_eq(knowledge_get(k, host_record(1))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
        ck_assert_uint_ne(place_record(1), KNOWLEDGE_NONE);
}
END_TEST

/* What never said anything is there, too, for all that is known: it must not be forgotten after some time. */
START_TEST(place_behind_a_silent_switch)
{
        uint32_t place;

        discover_switches(true, 0);
        place = knowledge_find(k, (struct knowledge_name) { G(0x20), 3, KNOWLEDGE_PLACE });
        ck_assert_int_eq(knowledge_get(k, place)->presence, KNOWLEDGE_SILENT);
        discover_switches(false, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, place)->presence, KNOWLEDGE_SILENT);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* What is behind it was never seen: it may hold anything. */
START_TEST(unknown_behind_a_silent_switch)
{
        uint32_t place;

        discover_host_only(true, 0);
        place = knowledge_find(k, (struct knowledge_name) { G(host_guid(0)), 1, KNOWLEDGE_PLACE });
        ck_assert_uint_ne(place, KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_FULL);
        discover(ALL, 0, 0, 1);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* At a second port of host 0 is what did not answer at first, and then is a switch. */
START_TEST(found_behind_a_silent_switch)
{
        struct subnet *s = discover(ALL, 0, 0, 1);
        struct subnet_node *node = &s->nodes[subnet_find_node(s, G(host_guid(0)))];
        struct subnet_place elsewhere = { G(0x777), 2 };
        uint32_t place;

        node->silent_ports[0] = 1u << 2;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 2, 2, USEC_INFINITY), 0);
        place = knowledge_find(k, (struct knowledge_name) { G(host_guid(0)), 2, KNOWLEDGE_PLACE });
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_FULL);
        node->silent_ports[0] = 0;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 3, 3, USEC_INFINITY), 0);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_FULL); /* it may have been unplugged */
        node->switch_ports[0] = 1u << 2;
        s->nodes[subnet_find_node(s, G(SWITCH))].links = &elsewhere; /* it answered all the time, and is not plugged in there */
        s->nodes[subnet_find_node(s, G(SWITCH))].n_links = 1;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 4, 4, USEC_INFINITY), 0);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_NONE);
        knowledge_hold_absent(k, 5, USEC_INFINITY);
        check_bounds(knowledge_port_bounds(k, place, 7), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

START_TEST(absent_hold_is_changed)
{
        struct subnet *s = discover(ALL, 0, 0, 5);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 10);
        knowledge_hold_absent(k, 15, 11);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_hold_absent(k, 15, 10);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        knowledge_hold_absent(k, 15, USEC_INFINITY);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_hold_absent(k, 15, 0);
        check_bounds(knowledge_port_bounds(k, host_record(1), 1), LEVEL_NONE, LEVEL_FULL); /* it is there */
}
END_TEST

/* A silent port counts however long it is silent, with any absent_hold. */
START_TEST(absent_hold_is_changed_beside_a_silent_port)
{
        read_host(discover(ALL, 0, 0, 5), 0, 0x8001);
        discover(ALL & ~1u, 1, 0, 10);
        knowledge_hold_absent(k, 10 + HOLD, 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_hold_absent(k, 10 + HOLD, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(absent_for_some_time)
{
        struct subnet *s = discover(ALL, 0, 0, 5);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 5 + HOLD - 1);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_ABSENT);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        s = discover(ALL & ~1u, 0, 0, 5 + HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        ck_assert_int_eq(knowledge_see_subnet(k, s, 100 * HOLD, 0, USEC_INFINITY), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        /* it is back, and holds what it held until it is read */
        s = discover(ALL, 0, 0, 200 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* Longer than it holds anything up. What it holds when it is back is what it held. */
START_TEST(back_after_a_long_time)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover(ALL, 0, 0, HOLD + 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(vouches_end)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        /* still there, still mute */
        s = discover(ALL, 0, 0, 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        /* silent, gone, and back */
        discover(ALL & ~1u, 1, 0, 2);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover(ALL & ~1u, 0, 0, 2);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        s = discover(ALL, 0, 0, 3);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        for (unsigned twice = 0; twice < 2; twice++) { /* also if it holds what it held */
                ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
                read_host(s, 0, 0x0001);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_LIMITED);
        }
}
END_TEST

/* A vouch for a silent port lasts while it is silent: it ends when the port answers, and when it was unplugged in between. */
START_TEST(vouches_for_silent_ports_end)
{
        read_host(discover(ALL, 0, 0, 0), 0, 0x8001);
        for (usec_t now = 1; now < 3; now++) {
                discover(ALL & ~1u, 1, 0, 10 * now);
                ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", now), 0);
                ck_assert_uint_eq(knowledge_get(k, host_record(0))->vouched_at, now);
                discover(ALL & ~1u, 1, 0, 10 * now + 1);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
                discover(ALL & ~1u, 0, 0, 10 * now + 2);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
                discover(ALL & ~1u, 1, 0, 10 * now + 3);
                check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        }
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 30), 0);
        discover(ALL, 0, 0, 31);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* It was about the table that was there, not about one of another size. */
START_TEST(vouch_for_a_table_of_another_size)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        s->nodes[subnet_find_node(s, G(host_guid(0)))].partition_cap = 2 * CAPACITY;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(recalled_is_assumed)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t first = port_at(s, host_guid(0), 1), second = port_at(s, host_guid(1), 1);
        struct observed *o;

        read_host(s, 0, 0x8001);
        read_host(s, 1, 0x8001);
        s = discover(ALL, 0, 0, 1);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[second].source = TABLE_READ;
        knowledge_recall(k, o);
        ck_assert_int_eq(o->tables[first].source, TABLE_ASSUMED);
        ck_assert_uint_eq(o->tables[first].entries[0].v, 0x8001);
        ck_assert_int_eq(o->tables[second].source, TABLE_READ);
        ck_assert_uint_eq(o->tables[second].entries[0].v, 0);
        ck_assert_int_eq(o->tables[port_at(s, host_guid(2), 1)].source, TABLE_UNKNOWN);
}
END_TEST

/* A table that was read since the last discovery and since another pkeyd may have written to it, without unconfirmed writes and
 * without a vouch. */
START_TEST(recalled_as_certain)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES] = { { 0x8002 } };
        struct observed *o;

        for (unsigned i = 0; i < HOSTS; i++)
                read_host(s, i, 0x8001);
        announce(host_record(1), 0, block);
        ck_assert(knowledge_send_block(k, host_record(1), 0, block));
        knowledge_doubt(k, host_record(2));
        ck_assert_int_eq(knowledge_vouch(k, host_record(3), "root", 30), 0);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        knowledge_recall_certain(k, o);
        for (unsigned i = 0; i < HOSTS; i++) {
                const struct observed_table *t = &o->tables[port_at(s, host_guid(i), 1)];

                ck_assert_int_eq(t->source, i == 0 ? TABLE_READ : TABLE_UNKNOWN);
                ck_assert_uint_eq(t->entries[0].v, i == 0 ? 0x8001 : 0);
        }
        s = discover(ALL, 0, 0, 1);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        knowledge_recall_certain(k, o);
        ck_assert_int_eq(o->tables[port_at(s, host_guid(0), 1)].source, TABLE_UNKNOWN);
        read_host(s, 0, 0x8001);
        knowledge_stop_following(k);
        knowledge_recall_certain(k, o);
        ck_assert_int_eq(o->tables[port_at(s, host_guid(0), 1)].source, TABLE_UNKNOWN);
}
END_TEST

/* An index that an open write may have used was used, for all that is known. */
START_TEST(recalled_as_used)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES] = { { 0x8002 }, { 0x8003 } };
        struct p_key other[P_KEY_BLOCK_ENTRIES] = { { 0 }, { 0x8004 }, { 0x8005 } };
        uint32_t port = port_at(s, host_guid(0), 1);
        struct observed *o;

        read_host(s, 0, 0x8001);
        announce(host_record(0), 0, block);
        announce(host_record(0), 0, other);
        ck_assert(knowledge_send_block(k, host_record(0), 0, block));
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        knowledge_recall_used(k, o);
        ck_assert_uint_eq(o->tables[port].entries[0].v, 0x8001);
        ck_assert_uint_eq(o->tables[port].entries[1].v, 0x8003);
        ck_assert_uint_eq(o->tables[port].entries[2].v, 0);
        ck_assert_int_eq(o->tables[port].source, TABLE_ASSUMED);
        knowledge_recall(k, o);
        ck_assert_uint_eq(o->tables[port].entries[1].v, 0);
        /* where another writer would put it is a guess */
        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, other), 0);
        knowledge_recall_used(k, o);
        ck_assert_uint_eq(o->tables[port].entries[1].v, 0x8003);
        ck_assert_uint_eq(o->tables[port].entries[2].v, 0);
}
END_TEST

/* Knowledge of a table of another size does not count. */
START_TEST(recalled_of_another_size)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t port = port_at(s, host_guid(0), 1);
        struct observed *o;

        read_host(s, 0, 0x8001);
        s->nodes[s->ports[port].node].partition_cap = CAPACITY / 2;
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        knowledge_recall(k, o);
        ck_assert_int_eq(o->tables[port].source, TABLE_UNKNOWN);
}
END_TEST

/* --- the rule -------------------------------------------------------------------------------------------------------------- */

/* A held base 1 and does not answer; the policy gives it to B and C. */
START_TEST(mute_port_holds_a_base)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        s = discover(ALL, 0, 0, 1);
        read_host(s, 1, 0x8001);
        read_host(s, 2, 0);
        read_host(s, 3, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
        ck_assert_int_eq(judge(3, 0x8001), RULE_GAIN);
        ck_assert_int_eq(judge(1, 0), RULE_ADMITS);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
        see_block(host_record(2), 0x8001);
        ck_assert_int_eq(judge(1, 0), RULE_LOSS);
}
END_TEST

/* While no process ran, another pkeyd may have written anything, by policies that are not known here. */
START_TEST(unfollowed_port_holds_every_base)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        for (unsigned i = 0; i < HOSTS; i++)
                read_host(s, i, 0);
        knowledge_stop_following(k);
        ck_assert_int_eq(held_by_record(k, host_record(0)).reason, HELD_UNANSWERED);
        s = discover(ALL, 0, 0, 1);
        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 6);
        check_bounds(knowledge_port_bounds(k, host_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(1), 7), LEVEL_NONE, LEVEL_NONE);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
        read_host(s, 0, 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
}
END_TEST

/* A port that was never read may hold anything in the direction that its leaf port does not filter (_i: what it receives, or what
 * it sends), and is counted once, whatever its leaf port's table holds. */
START_TEST(never_read_port_behind_a_filter_of_one_direction)
{
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL, .filters = _i == 0, .outbound = _i == 1 });
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        for (unsigned i = 0; i < HOSTS; i++) {
                read_leaf(s, i, 0);
                if (i > 0)
                        read_host(s, i, 0);
        }
        want(s, 0);
        block_of(0x8003, block);
        send_block(leaf_record(0), 0x8003);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 0, block, 3), RULE_GAIN);
        see_block(leaf_record(0), 0x8003);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 0, block, 3), RULE_GAIN);
        ck_assert_int_eq(knowledge_vouch(k, host_record(0), "root", 77), 0);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 0, block, 3), RULE_ADMITS);
}
END_TEST

START_TEST(never_read_port_holds_every_base)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
        read_host(s, 0, 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
}
END_TEST

/* Who is known as a member of the same partition holds nothing up, read or not. */
START_TEST(members_hold_nothing_up)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        read_host(s, 3, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        s = discover(ALL, 0, 0, 1);
        read_host(s, 2, 0);
        read_host(s, 1, 0);
        want(s, 7);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
}
END_TEST

/* The policy of a device that was never discovered is not known. */
START_TEST(unknown_device_is_not_cut_off)
{
        struct subnet *s = discover(ALL & ~1u, 1, 0, 0);
        struct desired_port limited = { &(struct p_key) { 0x0001 }, 1 };
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, i == 1 ? 0x8001 : 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        d.ports[port_at(s, host_guid(1), 1)] = limited;
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_LOSS);
        ck_assert_int_eq(knowledge_vouch(k, place_record(0), "root", 77), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_ADMITS);
}
END_TEST

/* Host 0 was never read, and the policy gives it nothing at least: what it gives at most counts, in a base that only that has. */
START_TEST(frozen_and_unread_is_not_cut_off)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        const struct desired_port full = { &(struct p_key) { 0x8001 }, 1 }, limited = { &(struct p_key) { 0x0001 }, 1 };
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        struct desired_port *frozen = &d.ports[port_at(s, host_guid(0), 1)];

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, i == 1 ? 0x8001 : 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        d.ports[port_at(s, host_guid(1), 1)] = limited;
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_ADMITS);
        frozen->most = &limited;
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_ADMITS);
        frozen->most = &full;
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_LOSS);
        frozen->most = &limited;
        frozen->most_is_held = true;
        ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
        ck_assert_int_eq(judge(1, 0x0001), RULE_LOSS);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
}
END_TEST

/* Host 0 went, and host 1 falls silent: what is silent may be host 0, which then talks as before. */
START_TEST(moved_port_is_not_cut_off)
{
        struct subnet *s = discover(ALL, 0, 0, 0), *now;
        struct desired_port full = { &(struct p_key) { 0x8001 }, 1 }, limited = { &(struct p_key) { 0x0001 }, 1 };
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };

        d.ports[port_at(s, host_guid(0), 1)] = full;
        d.ports[port_at(s, host_guid(2), 1)] = limited;
        read_host(s, 0, 0x0001);
        read_host(s, 1, 0);
        for (unsigned silent = 0; silent < 2; silent++) {
                now = discover(silent ? ALL & ~3u : ALL & ~1u, silent ? 2 : 0, 0, (1 + silent) * MINUTE);
                for (unsigned i = 1 + silent; i < HOSTS; i++)
                        read_host(now, i, i == 2 ? 0x8001 : 0);
                read_table(now, port_at(now, SWITCH, 0), 0);
                ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
                ck_assert_int_eq(judge(2, 0x0001), silent ? RULE_LOSS : RULE_ADMITS);
        }
}
END_TEST

/* Host 0 went, and may be back since: until the next discovery. */
START_TEST(port_that_may_be_back_is_not_cut_off)
{
        struct subnet *s = discover(ALL, 0, 0, 0), *now;
        struct desired_port full = { &(struct p_key) { 0x8001 }, 1 }, limited = { &(struct p_key) { 0x0001 }, 1 };
        struct desired d = { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };

        d.ports[port_at(s, host_guid(0), 1)] = full;
        d.ports[port_at(s, host_guid(2), 1)] = limited;
        read_host(s, 0, 0x0001);
        for (unsigned round = 0; round < 3; round++) {
                now = round < 2 ? discover(ALL & ~1u, 0, 0, MINUTE) : now;
                for (unsigned i = 1; i < HOSTS; i++)
                        read_host(now, i, i == 2 ? 0x8001 : 0);
                read_table(now, port_at(now, SWITCH, 0), 0);
                if (round == 2)
                        knowledge_doubt_absence(k);
                ck_assert_int_eq(knowledge_set_policy(k, &d), 0);
                ck_assert_int_eq(judge(2, 0x0001), round == 2 ? RULE_LOSS : RULE_ADMITS);
        }
        discover(ALL & ~1u, 0, 0, MINUTE);
        ck_assert(knowledge_is_gone(knowledge_get(k, host_record(0))));
}
END_TEST

/* A write to another block that may have arrived does not make this one no gain: it may not have. */
START_TEST(open_write_is_no_licence)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        read_host(s, 0, 0x8001);
        want(s, 2);
        block_of(0x8001, block);
        send_announced(host_record(1), 0, block);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 1, block, 1), RULE_GAIN);
        see_block(host_record(1), 0x8001);
        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 1, block, 1), RULE_ADMITS); /* they talk already */
}
END_TEST

/* Many blocks were sent to a table, one after another: each base of them counts until it is read, and none afterwards. */
START_TEST(many_open_writes)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES], one[P_KEY_BLOCK_ENTRIES];
        const uint16_t first = 0x100, n = 20 * P_KEY_BLOCK_ENTRIES;

        read_all(s);
        read_host(s, 0, 0);
        want(s, 0);
        for (uint16_t base = first; base < first + n; base++) {
                block[base % P_KEY_BLOCK_ENTRIES] = p_key_make(base, true);
                if (base % P_KEY_BLOCK_ENTRIES == P_KEY_BLOCK_ENTRIES - 1)
                        ck_assert_int_eq(knowledge_expect_block(k, host_record(0), 0, block), 0);
        }
        for (unsigned open = 2; open-- > 0;) {
                for (uint16_t base = first; base < first + n; base++) {
                        block_of(0x8000 | base, one);
                        ck_assert_int_eq(knowledge_judge_block(k, host_record(1), 1, one, base), open ? RULE_GAIN : RULE_ADMITS);
                }
                see_block(host_record(0), 0);
        }
}
END_TEST

/* A filter may not be opened for what a mute host may hold, nor closed over what it uses. */
START_TEST(filters_are_judged)
{
        struct subnet *s = discover(ALL, 0, 1, 0);
        uint16_t base;

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        read_leaf(s, 0, 0);
        read_host(s, 1, 0x8001);
        want(s, 2);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_GAIN);
        ck_assert_uint_eq(base, 1);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_ADMITS);
        read_host(s, 0, 0x8001);
        knowledge_see_filter(k, leaf_record(0), false, false);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_LOSS);
        read_leaf(s, 0, 0x8001);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
}
END_TEST

/* Nor opened between two of them: in base 1 they may talk, but they may hold any other, too. */
START_TEST(filter_is_not_opened_between_hosts_that_were_never_read)
{
        struct subnet *s = discover(ALL, 0, 1, 0);
        uint16_t base;

        for (unsigned i = 0; i < HOSTS; i++) {
                if (i > 1)
                        read_host(s, i, 0);
                read_leaf(s, i, 0);
        }
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_GAIN);
        ck_assert_uint_ne(base, 1);
        read_host(s, 1, 0x8001);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_ADMITS);
}
END_TEST

/* It may use entries that are not in the policy. */
START_TEST(filter_is_not_closed_over_a_host_that_was_never_read)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint16_t base;

        read_leaf(s, 0, 0);
        want(s, 0);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, false, &base), RULE_LOSS);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, true, &base), RULE_LOSS);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_ADMITS);
        /* it filters already, unless a write was lost that was to end that */
        knowledge_see_filter(k, leaf_record(0), true, true);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
        knowledge_doubt_filter(k, leaf_record(0));
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_LOSS);
        read_host(s, 0, 0);
        want(s, 0);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
}
END_TEST

START_TEST(more_than_the_policy_gives)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        read_host(s, 1, 0x0001);
        read_leaf(s, 0, 0);
        want(s, 1);
        block_of(0x8001, block);
        ck_assert(!knowledge_exceeds_policy(k, host_record(0), 0, block, 1));
        ck_assert(!knowledge_exceeds_policy(k, leaf_record(0), 0, block, 1));
        ck_assert(knowledge_exceeds_policy(k, host_record(1), 0, block, 1));
        block_of(0x0001, block);
        ck_assert(!knowledge_exceeds_policy(k, host_record(1), 0, block, 1)); /* it has that already */
        block_of(0x8002, block);
        ck_assert(knowledge_exceeds_policy(k, host_record(0), 0, block, 2));
        /* a write to another block that may have arrived is no licence, and not what this one raises */
        block_of(0x8001, block);
        send_announced(host_record(1), 0, block);
        ck_assert(knowledge_exceeds_policy(k, host_record(1), 1, block, 1));
        want(s, 2);
        ck_assert(!knowledge_exceeds_policy(k, host_record(1), 1, block, 1));
        send_announced(host_record(0), 0, block);
        block_of(0x0001, block);
        ck_assert(knowledge_exceeds_policy(k, host_record(0), 1, block, 1));
        block_of(0, block);
        ck_assert(!knowledge_exceeds_policy(k, host_record(0), 1, block, 1));
}
END_TEST

/* Host 0 was a member. The next policy is about a subnet in which it is not: nobody knows what that gives it, and nobody may join
 * what it may hold. */
START_TEST(policy_of_a_port_that_is_not_in_the_next_one)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_all(s);
        want(s, 3);
        s = discover(ALL & ~1u, 0, 0, 1);
        read_all(s);
        read_host(s, 1, 0);
        read_host(s, 2, 0);
        read_host(s, 3, 0);
        want(s, 3);
        ck_assert_ptr_null(knowledge_get(k, host_record(0))->policy);
        ck_assert_int_eq(judge(1, 0x8001), RULE_GAIN);
}
END_TEST

/* Of who is on a node that is incomplete, or at the other end of its link, nobody knows what the policy gives it: a line of the
 * policy may name the switch. */
START_TEST(policy_beside_an_incomplete_switch)
{
        struct subnet *s = make_subnet(&(struct scene) { .there = ALL, .incomplete = true });

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        want(s, ALL);
        for (unsigned i = 0; i < HOSTS; i++)
                ck_assert_ptr_null(knowledge_get(k, host_record(i))->policy);
        s = discover(ALL, 0, 0, 1);
        want(s, ALL);
        ck_assert_ptr_nonnull(knowledge_get(k, host_record(0))->policy);
}
END_TEST

/* When something else is known, or counts, all ports are to be counted anew before anything is judged. */
START_TEST(nothing_is_judged_before_the_policy_is_set)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_all(s);
        want(s, 0);
        (void) judge(1, 0x8001);
        if (_i == 0)
                ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        else if (_i == 1)
                read_host(s, 0, 0);
        else if (_i == 2)
                knowledge_hold_absent(k, 1, HOLD);
        else if (_i == 3)
                knowledge_drop_policy(k);
        else
                ck_assert_int_eq(knowledge_restore(k, "x", "table/leaf/0x0000000000000010/9", "", 0), -EBADMSG);
        (void) judge(1, 0x8001);
}
END_TEST

/* Nothing is behind a leaf port that is known: what it would change is not known, and the policy gives it nothing. */
START_TEST(leaf_of_nobody)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_leaf(s, 0, 0x8001);
        s = discover(ALL & ~1u, 0, 0, 1);
        want(s, 0);
        ck_assert_int_eq(knowledge_judge_block(k, leaf_record(0), 0, block, 1), RULE_GAIN);
        block_of(0x8002, block);
        ck_assert(knowledge_exceeds_policy(k, leaf_record(0), 0, block, 2));
}
END_TEST

/* --- counts, against each port by itself ------------------------------------------------------------------------------------ */

/* A filter that would be closed, where it is not known to be, over a host of which nothing was ever read. */
static bool closes_over_unread(const struct write *w)
{
        const struct knowledge_record *leaf = knowledge_get(k, w->record), *host;

        if (leaf->other_end == KNOWLEDGE_NONE)
                return false;
        host = knowledge_get(k, leaf->other_end);
        if (host->entries || host->vouched)
                return false;
        return (w->filters[SENDS] && (leaf->filters_unsure || !leaf->filters[SENDS])) ||
               (w->filters[RECEIVES] && (leaf->filters_unsure || !leaf->filters[RECEIVES]));
}

/* Against each port that is there, or may come back. */
static bool arrival_is_admitted(uint32_t record, uint16_t base, enum level policy, enum level arrives)
{
        for (uint32_t p = 0; p < knowledge_n_records(k); p++)
                for (unsigned i = 0; i < 4; i++) {
                        const struct knowledge_record *other = knowledge_get(k, p);
                        struct bounds b;

                        if (p == record || other->name.kind == KNOWLEDGE_LEAF)
                                continue;
                        b = naive_bounds(p, base, i & 1 ? FILTER_BY_LEVEL : FILTER_BY_BASE, i & 2 ? SENDS : RECEIVES);
                        if (levels_talk(arrives, b.may) &&
                            !levels_talk(policy, rule_policy_for(RULE_GAIN, naive_policy(other, base))))
                                return false;
                }
        return true;
}

static void compare_arrivals(void)
{
        uint32_t record = host_record(any(HOSTS));
        uint16_t base = (uint16_t) (1 + any(BASES + 1));
        enum level policy = (enum level) any(N_LEVELS), arrives = (enum level) any(N_LEVELS);

        if (any(2))
                record = KNOWLEDGE_NONE;
        ck_assert_int_eq(knowledge_judge_arrival(k, record, base, policy, arrives) == RULE_ADMITS,
                         arrival_is_admitted(record, base, policy, arrives));
}

static void compare_judgements(void)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct write w = { .record = any_record(), .block = any(BLOCKS), .entries = block, .filters = { any(2), any(2) } };
        uint16_t base = (uint16_t) (1 + any(BASES + 1)), found;

        any_block(block);
        ck_assert_int_eq(knowledge_judge_block(k, w.record, (uint16_t) w.block, block, base) == RULE_ADMITS,
                         naive_admits(&w, base));
        w.record = leaf_record(any(HOSTS));
        w.block = BLOCKS;
        if (w.record == KNOWLEDGE_NONE)
                return;
        if (closes_over_unread(&w)) {
                ck_assert_int_eq(knowledge_judge_filter(k, w.record, w.filters[SENDS], w.filters[RECEIVES], &found), RULE_LOSS);
                return;
        }
        for (base = 1; base <= BASES + 1 && naive_admits(&w, base); base++)
                ;
        ck_assert_int_eq(knowledge_judge_filter(k, w.record, w.filters[SENDS], w.filters[RECEIVES], &found) == RULE_ADMITS,
                         base > BASES + 1);
        if (base <= BASES + 1)
                ck_assert(!naive_admits(&w, found));
}

static bool naive_may_hold(uint16_t base)
{
        for (uint32_t p = 0; p < knowledge_n_records(k); p++)
                for (unsigned i = 0; knowledge_get(k, p)->name.kind != KNOWLEDGE_LEAF && i < 4; i++)
                        if (naive_bounds(p, base, i & 1 ? FILTER_BY_LEVEL : FILTER_BY_BASE, i & 2 ? SENDS : RECEIVES).may !=
                            LEVEL_NONE)
                                return true;
        return false;
}

static void compare_holders(void)
{
        _cleanup_free_ uint32_t *holders = calloc(P_KEY_BASE_MASK + 1, sizeof(*holders));

        knowledge_list_holders(k, holders);
        for (uint16_t base = 1; base <= BASES + 1; base++) {
                ck_assert_int_eq(holders[base] != KNOWLEDGE_NONE, naive_may_hold(base));
                ck_assert_int_eq(knowledge_may_hold(k, base), naive_may_hold(base));
        }
}

START_TEST(counts_are_those_of_all_ports)
{
        seed = (uint64_t) _i;
        for (usec_t now = 0; now < 40 * MINUTE; now += MINUTE) {
                struct subnet *s = any_subnet();

                ck_assert_int_eq(knowledge_see_subnet(k, s, now, 0, HOLD), 0);

                for (unsigned read = 0; read < 2; read++) {
                        any_reads(s);
                        any_policy(s);
                        compare_holders();
                        for (unsigned i = 0; i < 20; i++) {
                                compare_judgements();
                                compare_arrivals();
                                any_event();
                        }
                }
        }
}
END_TEST

int main(void)
{
        TCase *bounds = tcase_create("bounds"), *presence = tcase_create("presence"), *rule = tcase_create("rule");
        Suite *s = suite_create("knowledge");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(bounds, knowledge_setup, knowledge_teardown);
        tcase_add_test(bounds, never_read_may_hold_anything);
        tcase_add_test(bounds, writes_are_not_certain_until_read);
        tcase_add_test(bounds, who_may_hold_a_base);
        tcase_add_test(bounds, who_may_hold_a_base_behind_a_filter);
        tcase_add_test(bounds, kept_policy);
        tcase_add_test(bounds, absence_is_doubted_now);
        tcase_add_test(bounds, expected_and_retracted);
        tcase_add_test(bounds, expected_in_vain);
        tcase_add_test(bounds, retracted_block);
        tcase_add_test(bounds, retracted_after_it_was_asked);
        tcase_add_test(bounds, what_the_other_head_may_write);
        tcase_add_test(bounds, what_the_other_head_may_write_is_announced_here);
        tcase_add_test(bounds, what_the_other_head_may_write_to_a_full_table);
        tcase_add_test(bounds, policy_of_both_memberships);
        tcase_add_test(bounds, what_the_other_head_may_raise);
        tcase_add_test(bounds, suspected_may_have_taken_an_entry);
        tcase_add_test(bounds, copy);
        tcase_add_test(bounds, copy_of_times);
        tcase_add_test(bounds, time_at_the_beginning);
        tcase_add_test(bounds, unknown_device_was_a_switch);
        tcase_add_test(bounds, other_fabric);
        tcase_add_test(bounds, copy_of_places);
        tcase_add_test(bounds, doubt);
        tcase_add_test(bounds, old_reads_are_not_certain);
        tcase_add_test(bounds, certain_when_all_was_read);
        tcase_add_test(bounds, certain_without_who_is_gone);
        tcase_add_test(bounds, entries_behind_the_end);
        tcase_add_test(bounds, block_as_it_was_read);
        tcase_add_test(bounds, table_of_another_size);
        tcase_add_test(bounds, mute_behind_a_closed_filter_holds_nothing);
        tcase_add_test(bounds, filter_of_each_direction);
        tcase_add_test(bounds, filter_of_a_switch_that_is_incomplete);
        tcase_add_test(bounds, switch_that_does_not_say_whether_it_filters);
        tcase_add_test(bounds, incomplete_switch_that_says_how_it_filters);
        tcase_add_test(bounds, filter_of_a_port_that_was_reset);
        tcase_add_test(bounds, switch_that_does_not_filter_any_more);
        tcase_add_test(bounds, filter_does_not_hold_the_absent);
        tcase_add_checked_fixture(presence, knowledge_setup, knowledge_teardown);
        tcase_add_test(presence, silent_ports_keep_their_record);
        tcase_add_test(presence, silent_and_never_seen);
        tcase_add_test(presence, silent_beside_others);
        tcase_add_test(presence, silent_where_a_host_was_before);
        tcase_add_test(presence, moved_to_the_place_of_another);
        tcase_add_test(presence, swapped_while_both_are_silent);
        tcase_add_test(presence, moved_between_two_sweeps);
        tcase_add_test(presence, moved_within_a_second);
        tcase_add_test(presence, silent_before_another_went);
        tcase_add_test(presence, silent_at_a_high_port);
        tcase_add_test(presence, silent_at_a_switch_that_cannot_filter);
        tcase_add_test(presence, behind_a_silent_switch);
        tcase_add_test(presence, behind_a_silent_switch_beside_a_silent_host);
        tcase_add_test(presence, place_behind_a_silent_switch);
        tcase_add_test(presence, another_where_a_known_one_was);
        tcase_add_test(presence, known_one_where_another_was);
        tcase_add_test(presence, known_switch_is_silent);
        tcase_add_test(presence, known_switch_behind_a_silent_switch);
        tcase_add_test(presence, found_place_behind_a_silent_switch);
        tcase_add_test(presence, unseen_switch_is_silent);
        tcase_add_test(presence, unseen_host_is_silent);
        tcase_add_test(presence, silent_switch_and_silent_host);
        tcase_add_test(presence, silent_switch_from_both_ends);
        tcase_add_test(presence, silent_switch_of_a_head_node);
        tcase_add_test(presence, switch_falls_silent_during_a_discovery);
        tcase_add_test(presence, switch_was_plugged_in_elsewhere);
        tcase_add_test(presence, gone_before_the_switch_was_silent);
        tcase_add_test(presence, gone_with_the_switch_that_is_silent);
        tcase_add_test(presence, moved_behind_a_switch_before_it_was_silent);
        tcase_add_test(presence, unknown_device_beside_a_silent_switch);
        tcase_add_test(presence, unknown_device_behind_a_silent_switch);
        tcase_add_test(presence, unknown_behind_a_silent_switch);
        tcase_add_test(presence, found_behind_a_silent_switch);
        tcase_add_test(presence, absent_hold_is_changed);
        tcase_add_test(presence, absent_hold_is_changed_beside_a_silent_port);
        tcase_add_test(presence, absent_for_some_time);
        tcase_add_test(presence, back_after_a_long_time);
        tcase_add_test(presence, vouches_end);
        tcase_add_test(presence, vouches_for_silent_ports_end);
        tcase_add_test(presence, vouch_for_a_table_of_another_size);
        tcase_add_test(presence, recalled_is_assumed);
        tcase_add_test(presence, recalled_as_certain);
        tcase_add_test(presence, recalled_as_used);
        tcase_add_test(presence, recalled_of_another_size);
        tcase_add_checked_fixture(rule, knowledge_setup, knowledge_teardown);
        tcase_add_test(rule, mute_port_holds_a_base);
        tcase_add_test(rule, unfollowed_port_holds_every_base);
        tcase_add_loop_test(rule, never_read_port_behind_a_filter_of_one_direction, 0, 2);
        tcase_add_test(rule, never_read_port_holds_every_base);
        tcase_add_test(rule, members_hold_nothing_up);
        tcase_add_test(rule, unknown_device_is_not_cut_off);
        tcase_add_test(rule, frozen_and_unread_is_not_cut_off);
        tcase_add_test(rule, moved_port_is_not_cut_off);
        tcase_add_test(rule, port_that_may_be_back_is_not_cut_off);
        tcase_add_test(rule, open_write_is_no_licence);
        tcase_add_test(rule, many_open_writes);
        tcase_add_test(rule, filters_are_judged);
        tcase_add_test(rule, filter_is_not_opened_between_hosts_that_were_never_read);
        tcase_add_test(rule, filter_is_not_closed_over_a_host_that_was_never_read);
        tcase_add_loop_test_raise_signal(rule, nothing_is_judged_before_the_policy_is_set, SIGABRT, 0, 5);
        tcase_add_test(rule, leaf_of_nobody);
        tcase_add_test(rule, more_than_the_policy_gives);
        tcase_add_test(rule, policy_of_a_port_that_is_not_in_the_next_one);
        tcase_add_test(rule, policy_beside_an_incomplete_switch);
        tcase_add_loop_test(rule, counts_are_those_of_all_ports, 0, 12);
        suite_add_tcase(s, bounds);
        suite_add_tcase(s, presence);
        suite_add_tcase(s, rule);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
