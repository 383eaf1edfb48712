/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "gate/gate.h"
#include "ib/smp.h"
#include "knowledge_fixture.h"

#include <infiniband/mad.h>

#define HOST_LID(host) ((uint16_t) (100 + (host)))
#define SWITCH_LID     50

static struct gate *gate;
static struct subnet *subnet;
static bool late;    /* the next answers */
static bool unnamed; /* what is answered next is not followed by who that was */
static struct base_range owns = { 1, 0x7000 };
static struct policy policy = { .owns = &owns, .n_owns = 1 };

/* By LID; 0: at the directed route of a test. */
static struct {
        bool is_said;
        uint8_t data[SMP_DATA_SIZE];
} names[256];

static struct mad_route to_lid(uint16_t lid)
{
        return (struct mad_route) { .lid = { lid } };
}

/* Everything is known: nobody holds anything, no leaf port filters; the policy gives base 1 to hosts 0 and 1. */
static void setup(void)
{
        knowledge_setup();
        late = unnamed = false;
        memset(names, 0, sizeof(names));
        gate = gate_new();
        ck_assert_ptr_nonnull(gate);
        subnet = discover(ALL, 0, 0, 0);
        for (unsigned i = 0; i < HOSTS; i++) {
                read_host(subnet, i, 0);
                read_leaf(subnet, i, 0);
        }
        read_table(subnet, port_at(subnet, SWITCH, 0), 0);
        want(subnet, 3);
        gate_open(gate, k, &policy);
}

static void teardown(void)
{
        (void) gate_free(gate);
        knowledge_teardown();
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

static void answered(struct mad_route route, uint16_t attribute, uint32_t modifier, const uint8_t data[SMP_DATA_SIZE])
{
        struct mad_result result = {
                .attribute = attribute, .modifier = modifier, .route = route, .outcome = MAD_ANSWERED, .repeated = late,
        };

        memcpy(result.data, data, SMP_DATA_SIZE);
        gate_see(gate, &result);
}

/* ... and then, if it has said who it is, says so again. */
static void answered_by_name(struct mad_route route, uint16_t attribute, uint32_t modifier, const uint8_t data[SMP_DATA_SIZE])
{
        answered(route, attribute, modifier, data);
        if (!unnamed && names[route.lid.v].is_said)
                answered(route, SMP_ATTR_NODE_INFO, 0, names[route.lid.v].data);
}

static void answer_node_info_of(struct mad_route route, enum node_type type, uint64_t guid, uint8_t local_port, uint8_t n_ports)
{
        uint8_t data[SMP_DATA_SIZE] = {};

        mad_set_field(data, 0, IB_NODE_TYPE_F, type);
        mad_set_field(data, 0, IB_NODE_NPORTS_F, n_ports);
        mad_set_field64(data, 0, IB_NODE_GUID_F, guid);
        mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, local_port);
        answered(route, SMP_ATTR_NODE_INFO, 0, data);
        names[route.lid.v].is_said = true;
        memcpy(names[route.lid.v].data, data, SMP_DATA_SIZE);
}

static void answer_node_info(struct mad_route route, enum node_type type, uint64_t guid, uint8_t local_port)
{
        answer_node_info_of(route, type, guid, local_port, HOSTS);
}

static void answer_host(unsigned host)
{
        answer_node_info(to_lid(HOST_LID(host)), NODE_CA, host_guid(host), 1);
}

static void answer_block(struct mad_route route, uint32_t modifier, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        uint8_t data[SMP_DATA_SIZE];

        p_key_block_encode(entries, data);
        answered_by_name(route, SMP_ATTR_P_KEY_TABLE, modifier, data);
}

static void answer_key(struct mad_route route, uint32_t modifier, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        answer_block(route, modifier, block);
}

static void port_info(uint8_t data[SMP_DATA_SIZE], bool inbound)
{
        memset(data, 0, SMP_DATA_SIZE);
        mad_set_field(data, 0, IB_PORT_LID_F, 7);
        mad_set_field(data, 0, IB_PORT_PART_EN_INB_F, inbound);
        port_info_set_enforcement(data, inbound, false);
}

/* --- Sets ------------------------------------------------------------------------------------------------------------ */

static bool send_smp(struct mad_route route, enum mad_method method, uint16_t attribute, uint32_t modifier,
                 const uint8_t data[SMP_DATA_SIZE])
{
        struct mad_request request = {
                .route = route, .method = method, .attribute = attribute, .modifier = modifier, .key = 0x1234,
        };
        struct mad_frame frame;

        memcpy(request.data, data, SMP_DATA_SIZE);
        mad_request_encode(&request, 99, &frame);
        return gate_admit(gate, &frame);
}

static bool set_block(struct mad_route route, uint32_t modifier, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        uint8_t data[SMP_DATA_SIZE];

        bool admitted;

        for (uint32_t i = 0; i < knowledge_n_records(k); i++)
                if (knowledge_get(k, i)->entries)
                        announce(i, (uint16_t) modifier, entries);
        p_key_block_encode(entries, data);
        admitted = send_smp(route, MAD_SET, SMP_ATTR_P_KEY_TABLE, modifier, data);
        knowledge_withdraw(k);
        return admitted;
}

static bool set_key(struct mad_route route, uint32_t modifier, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        return set_block(route, modifier, block);
}

static bool set_host(unsigned host, uint16_t key)
{
        return set_key(to_lid(HOST_LID(host)), 0, key);
}

/* A host said who it is, and was read to hold this. */
static void prepare(unsigned host, uint16_t key)
{
        answer_host(host);
        answer_key(to_lid(HOST_LID(host)), 0, key);
}

static void check_refusal(const char *part)
{
        ck_assert_msg(strstr(gate_refusal(gate), part), "%s", gate_refusal(gate));
}

/* --- what passes ------------------------------------------------------------------------------------------------------ */

START_TEST(what_the_policy_gives)
{
        prepare(0, 0);
        ck_assert(set_host(0, 0x8001));
        ck_assert_uint_eq(gate_n_refused(gate), 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->writes[0].entries[0].v, 0x8001);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8001);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 1).has, LEVEL_FULL);
}
END_TEST

/* Gets, and what is not subnet management, are no concern of the gate. */
START_TEST(what_changes_nothing)
{
        struct mad_request request = { .mgmt_class = MAD_CLASS_PMA, .method = MAD_SET, .route = to_lid(1), .attribute = 0x12 };
        uint8_t data[SMP_DATA_SIZE] = {};
        struct mad_frame frame;

        gate_close(gate);
        ck_assert(send_smp(to_lid(HOST_LID(0)), MAD_GET, SMP_ATTR_P_KEY_TABLE, 0, data));
        mad_request_encode(&request, 1, &frame);
        ck_assert(gate_admit(gate, &frame));
        request.mgmt_class = MAD_CLASS_SA;
        mad_request_encode(&request, 1, &frame);
        ck_assert(gate_admit(gate, &frame));
        ck_assert_uint_eq(gate_n_refused(gate), 0);
}
END_TEST

START_TEST(directed_routes)
{
        struct mad_route route = { .hops = 2, .path = { 0, 1, 3 } }, other = { .hops = 2, .path = { 0, 1, 4 } };

        answer_node_info(route, NODE_CA, host_guid(0), 1);
        answer_key(route, 0, 0);
        ck_assert(!set_key(other, 0, 0x8001));
        route.path[0] = 9; /* unused */
        route.path[3] = 7; /* past its end */
        ck_assert(set_key(route, 0, 0x8001));
        other = (struct mad_route) { .hops = 3, .path = { 0, 1, 3, 1 } };
        ck_assert(!set_key(other, 0, 0));
}
END_TEST

/* More hops than there is room for in a MAD; what is compared must end where a route does (the sanitizer sees it). */
START_TEST(routes_that_no_mad_has)
{
        struct mad_request set = {
                .route = { .hops = MAD_MAX_HOPS, .path = { 0, 1, 3 } }, .method = MAD_SET, .attribute = SMP_ATTR_P_KEY_TABLE,
        };
        struct mad_route route = set.route;
        struct mad_frame frame;

        for (uint16_t lid = 1; lid < 64; lid++)
                answer_key(to_lid(lid), 0, 0);
        route.hops = UINT8_MAX;
        answer_node_info(route, NODE_CA, host_guid(0), 1);
        mad_request_encode(&set, 99, &frame);
        mad_set_field(frame.mad, 0, IB_DRSMP_HOPCNT_F, UINT8_MAX);
        ck_assert(!gate_admit(gate, &frame));
        check_refusal("no device at this address");
}
END_TEST

START_TEST(leaf_ports)
{
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        answer_key(to_lid(SWITCH_LID), 1 << 16, 0);
        ck_assert(set_key(to_lid(SWITCH_LID), 1 << 16, 0x8001));
        ck_assert_uint_eq(knowledge_get(k, leaf_record(0))->n_writes, 1);
        /* the policy gives host 3 nothing */
        answer_key(to_lid(SWITCH_LID), 4 << 16, 0);
        ck_assert(!set_key(to_lid(SWITCH_LID), 4 << 16, 0x8001));
        check_refusal("more than the policy gives");
        /* there is no such port */
        answer_key(to_lid(SWITCH_LID), 5 << 16, 0);
        ck_assert(!set_key(to_lid(SWITCH_LID), 5 << 16, 0x8001));
        check_refusal("no device at this address");
        answer_key(to_lid(SWITCH_LID), 257u << 16, 0);
        ck_assert(!set_key(to_lid(SWITCH_LID), 257u << 16, 0x8001));
        check_refusal("no device at this address");
        /* the table of the switch's own port */
        answer_key(to_lid(SWITCH_LID), 0, 0x8001);
        ck_assert(set_key(to_lid(SWITCH_LID), 0, 0));
}
END_TEST

/* The port of a router is an endport, like that of a CA. */
START_TEST(port_of_a_router)
{
        answer_node_info(to_lid(HOST_LID(0)), NODE_ROUTER, host_guid(0), 1);
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

/* An answer that the knowledge has no place for is no news: the SMA need not identify itself again. */
START_TEST(answers_about_no_table)
{
        uint8_t info[SMP_DATA_SIZE];

        unnamed = true;
        prepare(0, 0);
        port_info(info, true);
        answered(to_lid(HOST_LID(0)), SMP_ATTR_PORT_INFO, 1, info);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

/* One block of a table that was never read as a whole: the rest may hold anything. */
START_TEST(table_that_was_never_read)
{
        subnet = make_subnet(&(struct scene) { .there = ALL });
        subnet->nodes[subnet_find_node(subnet, G(host_guid(0)))].partition_cap = 2 * CAPACITY;
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, 1, 0, HOLD), 0);
        want(subnet, 3);
        prepare(0, 0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("was not read");
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 2).may, LEVEL_FULL);
}
END_TEST

/* While the gate is closed nothing is judged, and nothing that is heard counts. */
START_TEST(heard_while_closed)
{
        unnamed = true;
        prepare(0, 0);
        gate_close(gate);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 2).may, LEVEL_NONE);
        gate_open(gate, k, &policy);
        answer_host(0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("was not read");
}
END_TEST

/* A switch with more ports than fit into any number of bits less than eight: host 3 is at port 200. */
START_TEST(leaf_port_of_a_large_switch)
{
        const struct knowledge_name high = { G(SWITCH), 200, KNOWLEDGE_LEAF };
        const struct knowledge_record *leaf;

        subnet = make_subnet(&(struct scene) { .there = ALL });
        subnet->ports[port_at(subnet, SWITCH, 4)].number = 200;
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, 1, 0, HOLD), 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                read_table(subnet, i, 0);
        want(subnet, 9);
        answer_node_info_of(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3, 254);
        answer_key(to_lid(SWITCH_LID), 200u << 16, 0);
        ck_assert(set_key(to_lid(SWITCH_LID), 200u << 16, 0x8001));
        leaf = knowledge_get(k, knowledge_find(k, high));
        ck_assert_uint_eq(leaf->n_writes, 1);
        answer_key(to_lid(SWITCH_LID), 200u << 16, 0x8001);
        ck_assert_uint_eq(leaf->n_writes, 0);
        ck_assert_uint_eq(leaf->entries[0].v, 0x8001);
}
END_TEST

/* A table with more blocks than eight bits can count: the last one is not the first. */
START_TEST(block_of_a_large_table)
{
        const uint32_t last = UINT8_MAX + 1, first_entry = last * P_KEY_BLOCK_ENTRIES;
        const struct knowledge_record *host;

        subnet = make_subnet(&(struct scene) { .there = ALL });
        subnet->nodes[subnet_find_node(subnet, G(host_guid(0)))].partition_cap = (uint16_t) (first_entry + P_KEY_BLOCK_ENTRIES);
        ck_assert_int_eq(knowledge_see_subnet(k, subnet, 1, 0, HOLD), 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                read_table(subnet, i, 0);
        want(subnet, 3);
        answer_host(0);
        answer_key(to_lid(HOST_LID(0)), last, 0);
        ck_assert(set_key(to_lid(HOST_LID(0)), last, 0x8001));
        host = knowledge_get(k, host_record(0));
        ck_assert_uint_eq(host->n_writes, 1);
        ck_assert_uint_eq(host->writes[0].block, last);
        answer_key(to_lid(HOST_LID(0)), last, 0x8001);
        ck_assert_uint_eq(host->n_writes, 0);
        ck_assert_uint_eq(host->entries[first_entry].v, 0x8001);
        ck_assert_uint_eq(host->entries[0].v, 0);
}
END_TEST

/* --- what does not ----------------------------------------------------------------------------------------------------- */

START_TEST(closed)
{
        prepare(0, 0);
        gate_close(gate);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("no write is expected");
        /* what was said before it was opened again does not count */
        gate_open(gate, k, &policy);
        ck_assert(!set_host(0, 0x8001));
        ck_assert_uint_eq(gate_n_refused(gate), 2);
}
END_TEST

/* LIDs may move between two phases: what was said in one does not count in the next. */
START_TEST(opened_again)
{
        prepare(0, 0);
        gate_open(gate, k, &policy);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("no device at this address");
        prepare(0, 0);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

START_TEST(nobody_said_who_it_is)
{
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("no device at this address");
        /* that is a host of another fabric */
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, 0x777, 1);
        ck_assert(!set_host(0, 0x8001));
        /* and that is another port of it */
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(0), 2);
        ck_assert(!set_host(0, 0x8001));
}
END_TEST

/* LIDs moved: at host 0's address is host 3 now, to whom the policy gives nothing. */
START_TEST(another_host_is_there)
{
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(3), 1);
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("more than the policy gives");
}
END_TEST

static void check_known(unsigned host, uint16_t key)
{
        ck_assert_uint_eq(knowledge_get(k, host_record(host))->entries[0].v, key);
}

/* While a Get was repeated, host 3 got the LID of host 0. */
START_TEST(late_answer_of_a_stranger)
{
        unnamed = true;
        prepare(0, 0);
        late = true;
        answer_key(to_lid(HOST_LID(0)), 0, 0x8001);
        late = false;
        check_known(0, 0);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002); /* nor is what comes after it */
        check_known(0, 0);
        ck_assert(!set_host(0, 0x8001));
        ck_assert_uint_eq(gate_n_refused(gate), 0); /* it was on its way */
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(3), 1);
        check_known(0, 0);
        check_known(3, 0); /* nobody knows whose that was */
        ck_assert(!set_host(0, 0));
        check_refusal("was not read");
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(3), 1);
        check_known(3, 0);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(3), 1);
        check_known(3, 0x8002);
}
END_TEST

/* It came at once, and is not as it was known: LIDs may have moved since somebody said who that is. _i: another one is there. */
START_TEST(news)
{
        uint8_t info[SMP_DATA_SIZE];

        unnamed = true;
        prepare(0, 0);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        check_known(0, 0);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 2).may, LEVEL_FULL); /* it may be so */
        ck_assert(!set_host(0, 0));
        ck_assert_uint_eq(gate_n_refused(gate), 0);
        answer_node_info(to_lid(HOST_LID(0)), NODE_CA, host_guid(_i ? 3 : 0), 1);
        check_known(0, _i ? 0 : 0x8002);
        check_known(3, 0);

        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        port_info(info, true);
        answered(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, info);
        ck_assert(!knowledge_get(k, leaf_record(0))->filters[SENDS] && knowledge_get(k, leaf_record(0))->filters_unsure);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, _i ? 0x777 : SWITCH, 3);
        ck_assert_int_eq(knowledge_get(k, leaf_record(0))->filters[SENDS], !_i);
}
END_TEST

/* What a Set wrote, if that is late: it may be another one that has it. */
START_TEST(late_and_no_news)
{
        unnamed = true;
        prepare(0, 0);
        ck_assert(set_host(0, 0x8001));
        late = true;
        answer_key(to_lid(HOST_LID(0)), 0, 0x8001);
        check_known(0, 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        late = false;
        answer_key(to_lid(HOST_LID(0)), 0, 0x8001); /* nor does it say who it is by answering at once */
        check_known(0, 0);
        ck_assert(!set_host(0, 0));
        ck_assert_uint_eq(gate_n_refused(gate), 0);
        answer_host(0);
        check_known(0, 0x8001);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
}
END_TEST

/* Who said before the gate was opened who it is says it anew after it was read. */
START_TEST(named_before_it_was_opened)
{
        unnamed = true;
        prepare(0, 0);
        gate_open(gate, k, &policy);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        check_known(0, 0);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(0), 2).may, LEVEL_FULL);
        ck_assert(!set_host(0, 0));
        check_refusal("since the gate was opened");
        answer_host(0);
        check_known(0, 0x8002);
        /* it counts once: a Set that has no answer is open for all that was said before */
        ck_assert(set_host(0, 0));
        answer_host(0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        gate_open(gate, k, &policy);
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        answer_host(0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
}
END_TEST

/* What a Set wrote, or what was there before it, is none. */
START_TEST(no_news)
{
        unnamed = true;
        for (unsigned i = 0; i < 2; i++) {
                prepare(0, 0);
                ck_assert(set_host(0, 0x8001));
                answer_key(to_lid(HOST_LID(0)), 0, i ? 0x8001 : 0);
                check_known(0, i ? 0x8001 : 0);
                ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
        }
}
END_TEST

/* Host 0 says that it was nobody else; of host 1, whose answer was late, too, that says nothing. */
START_TEST(late_answer_and_a_name)
{
        unnamed = true;
        prepare(0, 0);
        prepare(1, 0);
        late = true;
        answer_key(to_lid(HOST_LID(1)), 0, 0x8002);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        answer_host(0); /* which may be late itself: who says it is there now */
        late = false;
        check_known(0, 0x8002);
        check_known(1, 0);
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        ck_assert(set_host(0, 0));
        answer_host(1);
        check_known(1, 0x8002);
        answer_host(1);
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        check_known(1, 0x8002);
}
END_TEST

/* What was settled by a name is not settled again by the next one: a Set went out since. */
START_TEST(settled_once)
{
        unnamed = true;
        prepare(0, 0);
        late = true;
        answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
        answer_host(0);
        check_known(0, 0x8002);
        ck_assert(set_host(0, 0));
        answer_key(to_lid(HOST_LID(0)), 1, 0);
        answer_host(0);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
}
END_TEST

/* A Set that was not answered, or one that was refused: only the first may have taken long. What waits for a name is forgotten when
 * the gate is closed. */
START_TEST(what_casts_doubt_on_a_name)
{
        static const struct {
                enum mad_outcome outcome;
                bool doubt;
        } cases[] = {{ MAD_TIMED_OUT, true }, { MAD_BUSY, true }, { MAD_UNSENT, true }, { MAD_REFUSED, false }};

        unnamed = true;
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct mad_result result = {
                        .attribute = SMP_ATTR_P_KEY_TABLE, .route = to_lid(HOST_LID(0)), .outcome = cases[i].outcome,
                };

                gate_open(gate, k, &policy);
                prepare(0, 0);
                gate_see(gate, &result);
                ck_assert_int_eq(set_host(0, 0x8001), !cases[i].doubt);
                ck_assert_uint_eq(gate_n_refused(gate), 0);
                answer_key(to_lid(HOST_LID(0)), 0, 0x8002);
                gate_open(gate, k, &policy);
                answer_host(0);
                check_known(0, 0);
        }
}
END_TEST

START_TEST(not_read)
{
        answer_host(0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("was not read");
        answer_key(to_lid(HOST_LID(0)), 1, 0);
        ck_assert(!set_host(0, 0x8001));
}
END_TEST

START_TEST(not_ours)
{
        prepare(0, 0xffff);
        ck_assert(!set_host(0, 0));
        check_refusal("owns");
        ck_assert(!set_host(0, 0x8001));
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert(!set_host(0, 0xffff));
        check_refusal("owns");
        answer_key(to_lid(HOST_LID(0)), 0, 0x8000);
        ck_assert(set_host(0, 0));
}
END_TEST

/* Each entry counts, wherever it stands in the block; those past the end of the table do not. */
START_TEST(every_entry_counts)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};

        answer_host(0);
        answer_block(to_lid(HOST_LID(0)), 0, block);
        answer_block(to_lid(HOST_LID(0)), 1, block);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                memset(block, 0, sizeof(block));
                block[i].v = 0x8002;
                ck_assert(!set_block(to_lid(HOST_LID(0)), 0, block));
                ck_assert_int_eq(set_block(to_lid(HOST_LID(0)), 1, block), i >= CAPACITY - P_KEY_BLOCK_ENTRIES);
        }
        answer_block(to_lid(HOST_LID(0)), BLOCKS, block);
        ck_assert(!set_block(to_lid(HOST_LID(0)), BLOCKS, block));
        check_refusal("past the end");
}
END_TEST

/* What stands past the end is nobody's, also where pkeyd does not own it: some SMAs give anything there. */
START_TEST(behind_the_end_nothing_is_foreign)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {}, junk[P_KEY_BLOCK_ENTRIES] = {};

        for (unsigned i = CAPACITY - P_KEY_BLOCK_ENTRIES; i < P_KEY_BLOCK_ENTRIES; i++)
                junk[i].v = 0xffff;
        answer_host(0);
        answer_block(to_lid(HOST_LID(0)), 1, junk);
        block[0].v = 0x8001;
        ck_assert(set_block(to_lid(HOST_LID(0)), 1, block));
        answer_block(to_lid(HOST_LID(0)), 1, block);
        ck_assert(set_block(to_lid(HOST_LID(0)), 1, junk));
        ck_assert_uint_eq(gate_n_refused(gate), 0);
}
END_TEST

/* One change that is admitted does not let another one of the same block pass, whichever stands first. */
START_TEST(two_changes_of_a_block)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};

        prepare(0, 0);
        block[0].v = 0x8001;
        block[5].v = 0x8002;
        ck_assert(!set_block(to_lid(HOST_LID(0)), 0, block));
        check_refusal("0x0002: more than the policy gives");
        block[0].v = 0x8002;
        block[5].v = 0x8001;
        ck_assert(!set_block(to_lid(HOST_LID(0)), 0, block));
        block[0].v = 0;
        ck_assert(set_block(to_lid(HOST_LID(0)), 0, block));
}
END_TEST

START_TEST(more_than_the_policy_gives)
{
        prepare(3, 0);
        ck_assert(!set_host(3, 0x0001));
        check_refusal("more than the policy gives");
        prepare(3, 0x8001);
        ck_assert(set_host(3, 0x0001));
}
END_TEST

/* The rule: host 3 may hold base 1, and must not talk with who is to get it. */
START_TEST(another_port_may_hold_it)
{
        prepare(0, 0);
        prepare(3, 0x8001);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("ports that must not communicate could");
        ck_assert(set_host(3, 0));
        ck_assert(!set_host(0, 0x8001)); /* not confirmed */
        answer_key(to_lid(HOST_LID(3)), 0, 0);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

START_TEST(nobody_is_cut_off)
{
        prepare(0, 0x8001);
        prepare(1, 0x8001);
        ck_assert(!set_host(0, 0x0002));
        ck_assert(!set_host(0, 0));
        check_refusal("ports that may communicate could be cut off");
}
END_TEST

/* A base that stays, with another level, is judged like one that comes or goes. */
START_TEST(another_level_of_the_same_base)
{
        prepare(3, 0x0001);
        ck_assert(!set_host(3, 0x8001));
        check_refusal("more than the policy gives");
        prepare(3, 0);
        prepare(0, 0x8001);
        prepare(1, 0x0001);
        ck_assert(!set_host(0, 0x0001));
        check_refusal("ports that may communicate could be cut off");
        prepare(2, 0x7001);
        ck_assert(!set_host(2, 0xf001));
        check_refusal("not within `owns`");
}
END_TEST

/* --- PortInfo ------------------------------------------------------------------------------------------------------------ */

START_TEST(filters)
{
        uint8_t off[SMP_DATA_SIZE], on[SMP_DATA_SIZE];

        port_info(off, false);
        port_info(on, true);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        ck_assert(!send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on)); /* not read */
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, off);
        ck_assert(send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on));
        ck_assert(knowledge_get(k, leaf_record(0))->filters_unsure);
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, on);
        ck_assert(!knowledge_get(k, leaf_record(0))->filters_unsure);
        ck_assert(knowledge_get(k, leaf_record(0))->filters[SENDS]);
        on[20] ^= 1;
        ck_assert(!send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on));
        check_refusal("more than its filter bits");
}
END_TEST

/* Every bit of PortInfo but the two is as it was read: other bits are a link that goes down, or a LID. */
START_TEST(filter_and_any_other_bit)
{
        uint8_t off[SMP_DATA_SIZE], on[SMP_DATA_SIZE];
        struct port_info info;
        unsigned n = 0;

        port_info(off, false);
        port_info(on, true);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, off);
        for (unsigned bit = 0; bit < 8 * SMP_DATA_SIZE; bit++) {
                on[bit / 8] ^= (uint8_t) (1 << bit % 8);
                port_info_decode(on, &info);
                if (info.enforce_inbound && !info.enforce_outbound) {
                        ck_assert_msg(!send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on), "bit %u", bit);
                        n++;
                }
                on[bit / 8] ^= (uint8_t) (1 << bit % 8);
        }
        ck_assert_uint_eq(n, 8 * SMP_DATA_SIZE - 2);
        ck_assert(send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on));
}
END_TEST

/* Host 0 uses base 1, which the leaf port's table does not let through. */
START_TEST(filter_over_what_is_used)
{
        uint8_t off[SMP_DATA_SIZE], on[SMP_DATA_SIZE];

        port_info(off, false);
        port_info(on, true);
        prepare(0, 0x8001);
        prepare(1, 0x8001);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, off);
        ck_assert(!send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, on));
        check_refusal("0x0001");
}
END_TEST

/* Host 0 must not send to host 3, and does not while its leaf port filters what it sends. */
START_TEST(filter_of_each_direction)
{
        uint8_t inbound[SMP_DATA_SIZE], outbound[SMP_DATA_SIZE];

        port_info(inbound, true);
        port_info(outbound, false);
        port_info_set_enforcement(outbound, false, true);
        prepare(0, 0x8001);
        prepare(3, 0x8001);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, inbound);
        ck_assert(!send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, outbound));
        ck_assert(send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, inbound));
}
END_TEST

START_TEST(port_info_of_others)
{
        uint8_t off[SMP_DATA_SIZE];

        port_info(off, false);
        answer_host(0);
        answered(to_lid(HOST_LID(0)), SMP_ATTR_PORT_INFO, 1, off);
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_PORT_INFO, 1, off));
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_PORT_INFO, 0, off));
}
END_TEST

START_TEST(other_attributes)
{
        uint8_t data[SMP_DATA_SIZE] = {};

        prepare(0, 0);
        for (uint16_t attribute = 0; attribute < 0x100; attribute++)
                if (attribute != SMP_ATTR_P_KEY_TABLE)
                        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, attribute, 0, data));
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_REPORT, SMP_ATTR_P_KEY_TABLE, 0, data));
}
END_TEST

/* What would be admitted as a Set is refused with any other method: what that does to a port is not known. */
START_TEST(other_methods)
{
        uint8_t filter[SMP_DATA_SIZE], block[SMP_DATA_SIZE];
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        prepare(0, 0);
        answer_node_info(to_lid(SWITCH_LID), NODE_SWITCH, SWITCH, 3);
        port_info(filter, false);
        answered_by_name(to_lid(SWITCH_LID), SMP_ATTR_PORT_INFO, 1, filter);
        port_info(filter, true);
        block_of(0x8001, entries);
        p_key_block_encode(entries, block);
        announce(host_record(0), 0, entries);
        for (unsigned method = 0; method < 0x100; method++) {
                if (method == MAD_GET || method == MAD_SET)
                        continue;
                ck_assert(!send_smp(to_lid(HOST_LID(0)), (enum mad_method) method, SMP_ATTR_P_KEY_TABLE, 0, block));
                ck_assert(!send_smp(to_lid(SWITCH_LID), (enum mad_method) method, SMP_ATTR_PORT_INFO, 1, filter));
        }
        ck_assert(send_smp(to_lid(SWITCH_LID), MAD_SET, SMP_ATTR_PORT_INFO, 1, filter));
        ck_assert(send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, block));
}
END_TEST

/* A vouch was for a port that does not answer. This one does. */
START_TEST(vouched)
{
        ck_assert_int_eq(knowledge_vouch(k, host_record(3), "root", 77), 0);
        prepare(3, 0);
        ck_assert(!set_host(3, 0x8001));
        check_refusal("more than the policy gives");
        ck_assert_int_eq(knowledge_vouch(k, host_record(3), "root", 77), 0);
        answer_key(to_lid(HOST_LID(3)), 0, 0x8001);
        ck_assert_uint_eq(knowledge_port_bounds(k, host_record(3), 1).may, LEVEL_FULL);
        prepare(0, 0);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("ports that must not communicate could");
}
END_TEST

/* What was read before somebody vouched, or before it was known who answers, is not what is known of the table. */
START_TEST(vouched_after_it_was_read)
{
        prepare(3, 0);
        ck_assert_int_eq(knowledge_vouch(k, host_record(3), "root", 77), 0);
        ck_assert(!set_host(3, 0));
        check_refusal("an admin vouched");
}
END_TEST

/* Another pkeyd may have written the table, and not every block was read since: the rule has no bounds to judge by. */
START_TEST(another_pkeyd_may_have_written)
{
        prepare(0, 0);
        knowledge_stop_following(k);
        want(subnet, 3);
        ck_assert(!set_host(0, 0x8001));
        check_refusal("another pkeyd may have written");
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        ck_assert(!set_host(0, 0x8001));
        for (unsigned i = 0; i < HOSTS; i++) {
                read_host(subnet, i, 0);
                read_leaf(subnet, i, 0);
        }
        read_table(subnet, port_at(subnet, SWITCH, 0), 0);
        want(subnet, 3);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

START_TEST(read_before_it_was_known_who_answers)
{
        answer_key(to_lid(HOST_LID(1)), 0, 0x8001);
        answer_host(1);
        ck_assert(!set_host(1, 0x8001));
        check_refusal("with entries other than those known");
        answer_key(to_lid(HOST_LID(1)), 0, 0x8001);
        ck_assert(set_host(1, 0x8001));
}
END_TEST

/* Only answers count. */
START_TEST(no_answer_says_nothing)
{
        struct mad_result result = {
                .attribute = SMP_ATTR_NODE_INFO, .route = to_lid(HOST_LID(0)), .outcome = MAD_REFUSED,
        };

        answer_key(to_lid(HOST_LID(0)), 0, 0);
        mad_set_field(result.data, 0, IB_NODE_TYPE_F, NODE_CA);
        mad_set_field64(result.data, 0, IB_NODE_GUID_F, host_guid(0));
        mad_set_field(result.data, 0, IB_NODE_LOCAL_PORT_F, 1);
        gate_see(gate, &result);
        ck_assert(!set_host(0, 0x8001));
        result.outcome = MAD_ANSWERED;
        result.mgmt_class = MAD_CLASS_PMA;
        gate_see(gate, &result);
        ck_assert(!set_host(0, 0x8001));
        result.mgmt_class = MAD_CLASS_SMP;
        gate_see(gate, &result);
        ck_assert(set_host(0, 0x8001));
}
END_TEST

/* What is sent is in the store before, as it is sent. */
START_TEST(not_stored)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES], other[P_KEY_BLOCK_ENTRIES];
        uint8_t data[SMP_DATA_SIZE];

        answer_host(0);
        answer_key(to_lid(HOST_LID(0)), 0, 0);
        block_of(0x8001, block);
        block_of(0x0001, other);
        p_key_block_encode(block, data);
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, data));
        announce(host_record(0), 0, other);
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, data));
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        ck_assert(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, data));
        ck_assert(strstr(gate_refusal(gate), "stored"));
        knowledge_stored(k);
        ck_assert(send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, data));
}
END_TEST

/* ... at each index. */
START_TEST(not_stored_at_any_index)
{
        struct p_key stored[P_KEY_BLOCK_ENTRIES], sent[P_KEY_BLOCK_ENTRIES];
        uint8_t data[SMP_DATA_SIZE];

        prepare(0, 0);
        block_of(0x8001, stored);
        announce(host_record(0), 0, stored);
        for (unsigned i = 1; i < P_KEY_BLOCK_ENTRIES; i++) {
                memcpy(sent, stored, sizeof(sent));
                sent[i].v = 0x0001;
                p_key_block_encode(sent, data);
                ck_assert_msg(!send_smp(to_lid(HOST_LID(0)), MAD_SET, SMP_ATTR_P_KEY_TABLE, 0, data), "index %u", i);
                check_refusal("stored");
        }
}
END_TEST

/* --- the lock ---------------------------------------------------------------------------------------------------------- */

static int held; /* how often the lock still holds */
static unsigned n_asked;

static bool holds_lock(void *userdata)
{
        n_asked++;
        return *(int *) userdata == 0 ? false : (*(int *) userdata)-- > 0;
}

/* It is asked for each Set that would pass, and only then. */
START_TEST(nothing_without_the_lock)
{
        held = 1;
        n_asked = 0;
        gate_set_lock(gate, holds_lock, &held);
        prepare(0, 0);
        prepare(1, 0);
        ck_assert_uint_eq(n_asked, 0);
        ck_assert(set_host(0, 0x8001));
        ck_assert(!set_host(1, 0x8001));
        ck_assert_uint_eq(n_asked, 2);
        ck_assert_uint_eq(gate_n_late(gate), 1);
        ck_assert_uint_eq(gate_n_refused(gate), 0);
        /* it counts as sent until it is read */
        ck_assert_uint_eq(knowledge_get(k, host_record(1))->n_writes, 1);
        ck_assert(!set_host(2, 0x8001));
        ck_assert_uint_eq(n_asked, 2);
        ck_assert_uint_eq(gate_n_refused(gate), 1);
}
END_TEST

int main(void)
{
        TCase *t = tcase_create("gate");
        Suite *s = suite_create("gate");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, what_the_policy_gives);
        tcase_add_test(t, what_changes_nothing);
        tcase_add_test(t, nothing_without_the_lock);
        tcase_add_test(t, directed_routes);
        tcase_add_test(t, routes_that_no_mad_has);
        tcase_add_test(t, leaf_ports);
        tcase_add_test(t, port_of_a_router);
        tcase_add_test(t, answers_about_no_table);
        tcase_add_test(t, table_that_was_never_read);
        tcase_add_test(t, heard_while_closed);
        tcase_add_test(t, leaf_port_of_a_large_switch);
        tcase_add_test(t, block_of_a_large_table);
        tcase_add_test(t, closed);
        tcase_add_test(t, opened_again);
        tcase_add_test(t, nobody_said_who_it_is);
        tcase_add_test(t, another_host_is_there);
        tcase_add_test(t, late_answer_of_a_stranger);
        tcase_add_loop_test(t, news, 0, 2);
        tcase_add_test(t, no_news);
        tcase_add_test(t, late_and_no_news);
        tcase_add_test(t, named_before_it_was_opened);
        tcase_add_test(t, late_answer_and_a_name);
        tcase_add_test(t, settled_once);
        tcase_add_test(t, what_casts_doubt_on_a_name);
        tcase_add_test(t, not_read);
        tcase_add_test(t, not_ours);
        tcase_add_test(t, every_entry_counts);
        tcase_add_test(t, behind_the_end_nothing_is_foreign);
        tcase_add_test(t, two_changes_of_a_block);
        tcase_add_test(t, more_than_the_policy_gives);
        tcase_add_test(t, another_port_may_hold_it);
        tcase_add_test(t, nobody_is_cut_off);
        tcase_add_test(t, another_level_of_the_same_base);
        tcase_add_test(t, filters);
        tcase_add_test(t, filter_and_any_other_bit);
        tcase_add_test(t, filter_over_what_is_used);
        tcase_add_test(t, filter_of_each_direction);
        tcase_add_test(t, port_info_of_others);
        tcase_add_test(t, other_attributes);
        tcase_add_test(t, other_methods);
        tcase_add_test(t, vouched);
        tcase_add_test(t, vouched_after_it_was_read);
        tcase_add_test(t, another_pkeyd_may_have_written);
        tcase_add_test(t, read_before_it_was_known_who_answers);
        tcase_add_test(t, no_answer_says_nothing);
        tcase_add_test(t, not_stored);
        tcase_add_test(t, not_stored_at_any_index);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
