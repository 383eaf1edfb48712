/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <infiniband/mad.h>
#include <string.h>

#include "subnet/survey.h"

#define G(x)      ((struct guid) { (x) })
#define MAX_PORTS 32
#define CAPACITY  70 /* three blocks, the last of six entries */

/*
 * A fabric in memory: tables that answer, and rules about who does not. It keeps the one thing that the wire would not
 * forgive: two requests at once to one SMA.
 */
static struct {
        struct p_key tables[MAX_PORTS][3 * P_KEY_BLOCK_ENTRIES];
        enum mad_outcome outcome[MAX_PORTS]; /* from which block on ... */
        unsigned bad_from[MAX_PORTS];        /* ... (3: never) */
        unsigned asked[MAX_PORTS];
        bool outstanding[MAX_PORTS];         /* per destination */
        uint64_t who[MAX_PORTS];             /* node GUID that answers for a port; 0: the right one */
        enum mad_outcome nameless[MAX_PORTS]; /* how a NodeInfo ends; MAD_ANSWERED: with an answer */
        unsigned late[MAX_PORTS];            /* blocks, a bit for each, of which the first Get was lost */
        uint8_t local_port;                  /* of all NodeInfos; 0: the right one */
        unsigned n_node_infos;
} fabric;

static struct arena *arena;
static struct subnet *subnet;
static struct observed *observed;
static struct m_keys *keys;
static bool identify;
static struct observed *certain;

static void add_node(struct subnet_builder *b, uint64_t guid, enum node_type type)
{
        struct subnet_node node = { .guid = G(guid), .type = type, .partition_cap = CAPACITY,
                                    .partition_enforcement_cap = CAPACITY, .outbound_enforcement_cap = true };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "x", 1), 0);
}

static void add_port(struct subnet_builder *b, uint64_t node, uint8_t number)
{
        struct subnet_port port = { .number = number, .guid = G(node + number), .lid = { (uint16_t) (node + number) } };

        ck_assert_int_eq(subnet_builder_add_port(b, G(node), &port), 0);
}

/* One switch with four hosts: ports 0..4 are the switch's, 5..8 the hosts'. */
static struct subnet *make_subnet(void)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_node(b, 0x10, NODE_SWITCH);
        for (uint8_t i = 0; i <= 4; i++)
                add_port(b, 0x10, i);
        for (uint8_t i = 1; i <= 4; i++) {
                add_node(b, 0x100u * i, NODE_CA);
                add_port(b, 0x100u * i, 1);
                ck_assert_int_eq(subnet_builder_add_link(b, G(0x10), i, G(0x100u * i), 1), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0x100), 1, G(0), 0, &s), 0);
        ck_assert_uint_eq(s->n_ports, 9);
        return s;
}

static void setup(void)
{
        arena = arena_new();
        subnet = make_subnet();
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                subnet->ports[i].route.lid.v = (uint16_t) (1 + subnet->ports[i].destination);
        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        memset(&fabric, 0, sizeof(fabric));
        keys = NULL;
        identify = false;
        certain = NULL;
        for (unsigned p = 0; p < MAX_PORTS; p++) {
                fabric.bad_from[p] = 3;
                for (unsigned i = 0; i < CAPACITY; i++)
                        fabric.tables[p][i].v = (uint16_t) (0x8000 | (p * 100 + i + 1));
                /* entries after the end of a table have no meaning */
                for (unsigned i = CAPACITY; i < 3 * P_KEY_BLOCK_ENTRIES; i++)
                        fabric.tables[p][i].v = 0xdead;
        }
}

static void teardown(void)
{
        (void) m_keys_free(keys);
        arena_free(arena);
}

/* Which port and block a request is about, from what would be on the wire. */
static uint32_t request_port(const struct mad_request *r)
{
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                if (subnet->ports[i].destination == r->destination &&
                    (subnet->ports[i].role == PORT_ENDPORT ? 0 : subnet->ports[i].number) == r->modifier >> 16)
                        return i;
        ck_abort_msg("nobody has destination %u", r->destination);
        return 0;
}

static void answer_node_info(uint32_t port, uint8_t data[SMP_DATA_SIZE])
{
        const struct subnet_port *p = &subnet->ports[port];
        uint64_t guid = fabric.who[port] ? fabric.who[port] : subnet_port_node(subnet, p)->guid.v;

        fabric.n_node_infos++;
        mad_encode_field(data, IB_NODE_GUID_F, &guid);
        mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, fabric.local_port ? fabric.local_port : p->number);
}

static void answer(const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = request->attribute == SMP_ATTR_NODE_INFO ? (uint32_t) (request->cookie >> 16) : request_port(request);
        unsigned block = request->modifier & 0xffff;

        ck_assert_int_eq(request->method, MAD_GET);
        if (request->attribute == SMP_ATTR_NODE_INFO) {
                ck_assert_uint_eq(request->modifier, 0);
                ck_assert_uint_eq(request->retries, 3); /* it was there a moment ago */
                ck_assert_uint_eq(request->destination, subnet->ports[port].destination);
                *ret = (struct mad_result) { .cookie = request->cookie };
                ret->outcome = fabric.nameless[port];
                if (ret->outcome == MAD_ANSWERED)
                        answer_node_info(port, ret->data);
                return;
        }
        ck_assert_int_eq(request->attribute, SMP_ATTR_P_KEY_TABLE);
        ck_assert_uint_lt(block, 3);
        /* of a switch's ports that of its port 0, whose GUID is that of its node here; of a host's port its own */
        ck_assert_uint_eq(request->key, keys ? subnet->nodes[subnet->ports[port].node].guid.v ^ 0x5555 : 0);
        fabric.asked[port]++;
        *ret = (struct mad_result) { .cookie = request->cookie, .repeated = fabric.late[port] & 1u << block };
        if (block >= fabric.bad_from[port]) {
                ret->outcome = fabric.outcome[port];
                ret->mad_status = ret->outcome == MAD_REFUSED ? 0x1c : 0;
                memset(ret->data, 0xff, sizeof(ret->data));
        } else
                p_key_block_encode(fabric.tables[port] + block * P_KEY_BLOCK_ENTRIES, ret->data);
}

/* Takes all requests there are, then answers them, last first: no order of answers may matter. */
static const struct observed *before;
static bool fewer[MAX_PORTS]; /* retries of the last request to this port */

static unsigned run(struct survey *survey)
{
        struct mad_stage stage = survey_stage(survey);
        struct mad_request requests[MAX_PORTS];
        uint64_t done, total;
        unsigned rounds = 0;

        while (!stage.done(stage.state)) {
                struct mad_result result;
                unsigned n = 0;

                while (stage.next(stage.state, 0, &requests[n])) {
                        ck_assert(!fabric.outstanding[requests[n].destination]);
                        ck_assert(requests[n].retries == 3 || requests[n].retries == STAGE_RETRIES_AGAIN);
                        if (requests[n].attribute == SMP_ATTR_P_KEY_TABLE)
                                fewer[requests[n].cookie >> 16] = requests[n].retries < 3;
                        fabric.outstanding[requests[n].destination] = true;
                        ck_assert_uint_lt(++n, MAX_PORTS);
                }
                ck_assert_uint_gt(n, 0);
                while (n-- > 0) {
                        fabric.outstanding[requests[n].destination] = false;
                        answer(&requests[n], &result);
                        stage.result(stage.state, 0, &result);
                }
                rounds++;
        }
        ck_assert(!stage.next(stage.state, 0, &requests[0]));
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_eq(done, total);
        return rounds;
}

static struct survey *start(const uint32_t *ports, uint32_t n)
{
        struct survey_options options = {
                .m_keys = keys, .retries = 3, .before = before, .ports = ports, .n_ports = n, .identify = identify,
                .certain = certain,
        };
        struct survey *s;

        ck_assert_int_eq(survey_new(arena, observed, &options, &s), 0);
        return s;
}

/* Tables that could not be read. */
static uint32_t n_unreachable(void)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < subnet->n_ports; i++)
                n += observed->tables[i].failure != MAD_ANSWERED;
        return n;
}

static void assert_read(uint32_t port)
{
        ck_assert_int_eq(observed->tables[port].source, TABLE_READ);
        ck_assert_int_eq(memcmp(observed->tables[port].entries, fabric.tables[port], CAPACITY * sizeof(struct p_key)),
                         0);
}

static void assert_unknown(uint32_t port, enum mad_outcome failure)
{
        const struct observed_table *t = &observed->tables[port];

        ck_assert_int_eq(t->source, TABLE_UNKNOWN);
        ck_assert_int_eq(t->failure, failure);
        for (unsigned i = 0; i < t->capacity; i++)
                ck_assert_uint_eq(t->entries[i].v, 0);
}

/* A key of its own for each SMA. */
static void give_keys(void)
{
        static const uint64_t nodes[][2] = {
                { 0x10, 0x10 }, { 0x100, 0x101 }, { 0x200, 0x201 }, { 0x300, 0x301 }, { 0x400, 0x401 },
        };
        _cleanup_findings_ struct findings findings = { .arena = arena };
        const char *text = "";

        for (size_t i = 0; i < ELEMENTS(nodes); i++)
                text = arena_printf(arena, "%s0x%x 0x%x\n", text, (unsigned) nodes[i][1], (unsigned) nodes[i][0] ^ 0x5555);
        ck_assert_int_eq(m_keys_parse("m_key", text, strlen(text), &findings, &keys), 0);
}

/* A port that could not be read last time is tried less often; one that was read, not queried, or absent gets all tries. */
START_TEST(fewer_retries)
{
        struct subnet_node other = { .guid = G(0x900), .type = NODE_CA, .partition_cap = CAPACITY };
        struct subnet_builder *b;
        struct observed *o;
        struct subnet *s;

        for (unsigned round = 0; round < 4; round++) {
                identify = round & 1;
                ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
                ck_assert_int_eq(subnet_builder_add_node(b, &other, "x", 1), 0); /* all others have another number */
                add_port(b, 0x900, 1);
                add_node(b, 0x10, NODE_SWITCH);
                add_port(b, 0x10, 0);
                for (uint8_t i = 1; i <= 3; i++) {
                        add_node(b, 0x100u * i, NODE_CA);
                        add_port(b, 0x100u * i, 1);
                }
                ck_assert_int_eq(subnet_builder_finish(b, G(0x100), 1, G(0), 0, &s), 0);
                ck_assert_int_eq(observed_new(arena, s, &o), 0);
                for (uint32_t i = 0; i < s->n_ports; i++) {
                        uint64_t node = subnet_port_node(s, &s->ports[i])->guid.v;

                        o->tables[i].source = node == 0x100 ? TABLE_READ : node == 0x200 ? TABLE_ASSUMED : TABLE_UNKNOWN;
                        o->tables[i].failure = node == 0x300 ? MAD_ANSWERED : MAD_TIMED_OUT;
                }
                before = round < 2 ? o : NULL;
                memset(fewer, 0, sizeof(fewer));
                run(start(NULL, 0));
                for (uint32_t i = 0; i < subnet->n_ports; i++) {
                        uint64_t node = subnet_port_node(subnet, &subnet->ports[i])->guid.v;
                        bool failed = node == 0x200 || (node == 0x10 && subnet->ports[i].number == 0);

                        ck_assert_msg(fewer[i] == (before && failed), "port %u", i);
                }
        }
        before = NULL;
}
END_TEST

/* A port that does not answer is queried four times in all, however often surveys are interrupted; others get all tries. */
START_TEST(interrupted_surveys_learn)
{
        const uint32_t mute = subnet_find_port_of(subnet, G(0x200), 1);
        struct survey *old = NULL;

        for (unsigned n = 0; n < 4; n++) {
                struct survey_options options = { .m_keys = keys, .retries = 3, .interrupted = old, .identify = n & 1 };
                struct mad_request request, last = {};
                struct observed *o;
                struct mad_stage stage;
                struct mad_result result;

                identify = options.identify;
                ck_assert_int_eq(observed_new(arena, subnet, &o), 0);
                ck_assert_int_eq(survey_new(arena, o, &options, &old), 0);
                stage = survey_stage(old);
                while (stage.next(stage.state, 0, &request)) {
                        bool is_mute = request.cookie >> 16 == mute && request.attribute == SMP_ATTR_P_KEY_TABLE;

                        ck_assert(request.doubtful == (n > 0 && request.cookie >> 16 == mute));
                        ck_assert_uint_eq(request.retries, request.doubtful ? 3 - n : 3);
                        if (is_mute) {
                                last = request;
                                continue;
                        }
                        answer(&request, &result);
                        stage.result(stage.state, 0, &result);
                }
                stage.take_back(stage.state, 0, &(struct mad_result) { .cookie = last.cookie, .timeouts = 1 });
        }
}
END_TEST

START_TEST(reads_all)
{
        struct survey *s;
        struct mad_stage stage;
        struct mad_request request;
        struct mad_result result;
        uint64_t done, total;

        give_keys();
        s = start(NULL, 0);
        stage = survey_stage(s);
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_eq(done, 0);
        ck_assert_uint_eq(total, 27);
        ck_assert(stage.next(stage.state, 0, &request));
        ck_assert_uint_ne(request.key, 0);
        ck_assert_uint_eq(request.retries, 3);
        answer(&request, &result);
        stage.result(stage.state, 0, &result);
        /* the switch has five ports of three blocks, one request at a time, and a name */
        ck_assert_uint_le(run(s), 15 + 1);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                assert_read(i);
                ck_assert_uint_eq(fabric.asked[i], 3);
        }
        ck_assert_uint_eq(n_unreachable(), 0);
}
END_TEST

START_TEST(keeps_all_smas_busy)
{
        struct survey *s = start(NULL, 0);
        struct mad_stage stage = survey_stage(s);
        struct mad_request request;
        unsigned n = 0;

        while (stage.next(stage.state, 0, &request))
                n++;
        ck_assert_uint_eq(n, 5); /* the switch and four hosts */
        ck_assert(!stage.done(stage.state));
}
END_TEST

START_TEST(chosen_ports)
{
        const uint32_t ports[] = { 7, 2, 7, 9999 };
        struct survey *s = start(ports, 4);

        run(s);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                ck_assert_uint_eq(fabric.asked[i], i == 7 || i == 2 ? 3 : 0);
        assert_read(2);
        assert_read(7);
        assert_unknown(5, MAD_ANSWERED);
}
END_TEST

START_TEST(no_ports)
{
        struct survey *s = start(&(uint32_t) { 0 }, 0);

        ck_assert_uint_eq(run(s), 0);
        ck_assert_uint_eq(n_unreachable(), 0);
}
END_TEST

START_TEST(half_a_table_is_none)
{
        struct survey *s;

        fabric.bad_from[6] = 1;
        fabric.outcome[6] = MAD_TIMED_OUT;
        s = start(NULL, 0);
        run(s);
        assert_unknown(6, MAD_TIMED_OUT);
        ck_assert_uint_eq(fabric.asked[6], 2); /* its third block was not queried */
        ck_assert_uint_eq(n_unreachable(), 1);
        assert_read(5);
        assert_read(7);
}
END_TEST

START_TEST(refusal_is_told)
{
        struct survey *s;

        fabric.bad_from[2] = 2;
        fabric.outcome[2] = MAD_REFUSED;
        s = start(NULL, 0);
        run(s);
        assert_unknown(2, MAD_REFUSED);
        ck_assert_uint_eq(observed->tables[2].mad_status, 0x1c);
        /* the switch's other ports do not suffer */
        assert_read(1);
        assert_read(3);
        ck_assert_uint_eq(n_unreachable(), 1);
}
END_TEST

static uint32_t node_index(uint64_t guid)
{
        uint32_t n = subnet_find_node(subnet, G(guid));

        ck_assert_uint_ne(n, SUBNET_NONE);
        return n;
}

/* Neither the table of an incomplete host nor that of the switch port beside it is read, and what is not read is not written. */
START_TEST(incomplete_host)
{
        uint32_t host = subnet_find_port(subnet, node_index(0x200), 1);
        struct survey *s;

        subnet->nodes[node_index(0x200)].incomplete = true;
        s = start(NULL, 0);
        (void) run(s);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                if (i != host && i != subnet->ports[host].peer) {
                        assert_read(i);
                        continue;
                }
                assert_unknown(i, MAD_TIMED_OUT);
                ck_assert_uint_eq(fabric.asked[i], 0);
        }
        ck_assert_uint_eq(n_unreachable(), 2);
        /* after a discovery in which it answered */
        subnet->nodes[node_index(0x200)].incomplete = false;
        s = start(&host, 1);
        (void) run(s);
        assert_read(host);
}
END_TEST

/* The policy may select the hosts of an incomplete switch by its name. */
START_TEST(incomplete_switch)
{
        struct survey *s;

        subnet->nodes[node_index(0x10)].incomplete = true;
        s = start(NULL, 0);
        ck_assert(survey_stage(s).done(survey_stage(s).state));
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                assert_unknown(i, MAD_TIMED_OUT);
        ck_assert_uint_eq(n_unreachable(), subnet->n_ports);
}
END_TEST

START_TEST(dead_switch_is_given_up)
{
        struct survey *s;

        for (unsigned i = 0; i < 5; i++) {
                fabric.bad_from[i] = 0;
                fabric.outcome[i] = MAD_TIMED_OUT;
        }
        s = start(NULL, 0);
        run(s);
        for (uint32_t i = 0; i < 5; i++) {
                assert_unknown(i, MAD_TIMED_OUT);
                ck_assert_uint_eq(fabric.asked[i], i < 2 ? 1 : 0);
        }
        for (uint32_t i = 5; i < 9; i++)
                assert_read(i);
        ck_assert_uint_eq(n_unreachable(), 5);
}
END_TEST

START_TEST(one_lost_port_is_not_a_dead_switch)
{
        struct survey *s;

        for (unsigned i = 0; i < 5; i += 2) {
                fabric.bad_from[i] = 0;
                fabric.outcome[i] = MAD_TIMED_OUT;
        }
        s = start(NULL, 0);
        run(s);
        assert_read(1);
        assert_read(3);
        ck_assert_uint_eq(n_unreachable(), 3);
}
END_TEST

START_TEST(strange_results_are_ignored)
{
        struct survey *s = start(NULL, 0);
        struct mad_stage stage = survey_stage(s);
        struct mad_result stray = { .outcome = MAD_TIMED_OUT };
        struct mad_request request;

        /* before any query; no such port; another block; a port that waits for its turn */
        stage.result(stage.state, 0, &stray);
        ck_assert(stage.next(stage.state, 0, &request));
        stray.cookie = UINT64_MAX;
        stage.result(stage.state, 0, &stray);
        stray.cookie = request.cookie + 1;
        stage.result(stage.state, 0, &stray);
        stray.cookie = request.cookie + (1 << 16);
        stage.result(stage.state, 0, &stray);
        ck_assert_uint_eq(n_unreachable(), 0);

        answer(&request, &stray);
        stage.result(stage.state, 0, &stray);
        stage.result(stage.state, 0, &stray); /* twice */
        run(s);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                assert_read(i);
}
END_TEST

START_TEST(again_after_a_failure)
{
        const uint32_t port = 6;

        run(start(NULL, 0));
        assert_read(6);
        fabric.bad_from[6] = 2;
        fabric.outcome[6] = MAD_BUSY;
        (void) start(&port, 1);
        ck_assert_uint_eq(n_unreachable(), 0);
        run(start(&port, 1));
        assert_unknown(6, MAD_BUSY);
        fabric.bad_from[6] = 3;
        run(start(&port, 1));
        assert_read(6);
        ck_assert_int_eq(observed->tables[6].failure, MAD_ANSWERED);
}
END_TEST

START_TEST(no_table_at_all)
{
        struct survey *s;

        for (uint32_t i = 0; i < subnet->n_nodes; i++)
                if (subnet->nodes[i].guid.v == 0x100)
                        subnet->nodes[i].partition_cap = 0;
        ck_assert_int_eq(observed_new(arena, subnet, &observed), 0);
        s = start(NULL, 0);
        run(s);
        ck_assert_uint_eq(n_unreachable(), 1);
        assert_unknown(5, MAD_REFUSED);
        ck_assert_uint_eq(observed->tables[5].mad_status, 0);
        ck_assert_uint_eq(fabric.asked[5], 0);
        assert_read(6);
}
END_TEST

START_TEST(blocks)
{
        struct observed_table *t = &observed->tables[5];
        struct p_key block[P_KEY_BLOCK_ENTRIES], back[P_KEY_BLOCK_ENTRIES];

        ck_assert_uint_eq(observed_table_blocks(t), 3);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                block[i].v = (uint16_t) (i + 1);
        observed_table_set_block(t, 2, block);
        observed_table_set_block(t, 3, block); /* there is none */
        observed_table_get_block(t, 2, back);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                ck_assert_uint_eq(back[i].v, i < 6 ? i + 1 : 0);
        observed_table_get_block(t, 3, back);
        ck_assert_uint_eq(back[0].v, 0);
        observed_table_get_block(t, 1, back);
        ck_assert_uint_eq(back[31].v, 0);
}
END_TEST

/* --- NodeInfo --- */

START_TEST(each_sma_is_identified_once)
{
        struct survey *s;

        identify = true;
        s = start(NULL, 0);
        (void) run(s);
        ck_assert_uint_eq(fabric.n_node_infos, 5); /* the switch answers for five ports */
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                assert_read(i);
                ck_assert_uint_eq(fabric.asked[i], 3);
        }
        ck_assert(!survey_is_stale(s));
}
END_TEST

/* Another node answers at the address: nothing is read from it. */
START_TEST(strangers)
{
        struct survey *s;

        identify = true;
        fabric.who[6] = 0x100; /* that of port 5 */
        s = start(NULL, 0);
        (void) run(s);
        assert_unknown(6, MAD_REFUSED);
        ck_assert(observed->tables[6].is_stranger);
        ck_assert(survey_is_stale(s));
        ck_assert_uint_eq(n_unreachable(), 1);
        fabric.who[6] = 0;
        s = start(NULL, 0);
        (void) run(s);
        assert_read(6);
        ck_assert(!observed->tables[6].is_stranger && !survey_is_stale(s));
}
END_TEST

/* What is known for certain is as it is in the fabric. */
static void make_certain(void)
{
        ck_assert_int_eq(observed_new(arena, subnet, &certain), 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                memcpy(certain->tables[i].entries, fabric.tables[i], CAPACITY * sizeof(struct p_key));
                certain->tables[i].source = TABLE_READ;
        }
}

/* A calm fabric: not one SMP more than the tables need. */
START_TEST(what_was_certain_needs_no_name)
{
        struct survey *s;

        make_certain();
        fabric.who[6] = 0x100;
        s = start(NULL, 0);
        (void) run(s);
        ck_assert_uint_eq(fabric.n_node_infos, 0);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                assert_read(i);
        ck_assert(!survey_is_stale(s));
}
END_TEST

/* What a sweep reads anew of one SMA: a table that changed in its first or last block, that was not read before or only assumed,
 * or an answer that came late. */
static void make_news(unsigned kind)
{
        make_certain();
        if (kind < 3)
                certain->tables[6].entries[kind * P_KEY_BLOCK_ENTRIES].v ^= 0x8000;
        else if (kind < 5)
                certain->tables[6].source = kind == 3 ? TABLE_UNKNOWN : TABLE_ASSUMED;
        else
                fabric.late[6] = 1u << (kind - 5);
}

START_TEST(what_is_new_needs_a_name)
{
        struct survey *s;

        for (unsigned stranger = 0; stranger < 2; stranger++) {
                fabric.n_node_infos = 0;
                make_news((unsigned) _i);
                fabric.who[6] = stranger ? 0x100 : 0;
                s = start(NULL, 0);
                (void) run(s);
                ck_assert_uint_eq(fabric.n_node_infos, 1);
                for (uint32_t i = 0; i < subnet->n_ports; i++)
                        if (i != 6)
                                assert_read(i);
                if (stranger)
                        assert_unknown(6, MAD_REFUSED);
                else
                        assert_read(6);
                ck_assert(observed->tables[6].is_stranger == stranger);
                ck_assert(survey_is_stale(s) == stranger);
        }
}
END_TEST

START_TEST(what_nobody_gives_a_name_to_was_not_read)
{
        struct survey *s;

        make_news((unsigned) _i);
        fabric.nameless[6] = MAD_TIMED_OUT;
        s = start(NULL, 0);
        (void) run(s);
        assert_unknown(6, MAD_TIMED_OUT);
        ck_assert(!observed->tables[6].is_stranger && !survey_is_stale(s));
        ck_assert_uint_eq(n_unreachable(), 1);
}
END_TEST

/* A table of a switch is unexpected: the other tables may be from the same wrong SMA. */
START_TEST(news_of_a_strange_switch)
{
        struct survey *s;

        for (unsigned port = 0; port < 5; port++) {
                make_certain();
                certain->tables[port].entries[40].v = 0;
                fabric.who[0] = 0x11;
                s = start(NULL, 0);
                (void) run(s);
                for (uint32_t i = 0; i < 9; i++)
                        if (i < 5)
                                assert_unknown(i, MAD_REFUSED);
                        else
                                assert_read(i);
                ck_assert(survey_is_stale(s));
        }
}
END_TEST

/* A host has no tables of switch ports. It reports that, and NodeInfo is queried if the snapshot may be wrong. */
START_TEST(stranger_that_refuses)
{
        for (unsigned old = 0; old < 2; old++) {
                struct survey *s;

                identify = old;
                make_certain();
                fabric.who[0] = 0x100;
                for (uint32_t i = 0; i < 5; i++) {
                        fabric.bad_from[i] = 0;
                        fabric.outcome[i] = MAD_REFUSED;
                }
                s = start((const uint32_t[]) { 0, 1, 2, 3, 4 }, 5);
                (void) run(s);
                ck_assert_uint_eq(fabric.n_node_infos, old);
                ck_assert(survey_is_stale(s) == old);
                for (uint32_t i = 0; i < 5; i++) {
                        assert_unknown(i, MAD_REFUSED);
                        ck_assert(observed->tables[i].is_stranger == old);
                }
        }
}
END_TEST

/* A cable was moved since the route was found. */
START_TEST(stranger_at_the_end_of_a_directed_route)
{
        struct survey *s;

        make_certain();
        subnet->ports[6].route = (struct mad_route) { .hops = 2, .path = { 0, 1, 2 } };
        fabric.who[6] = 0x100;
        s = start(NULL, 0);
        (void) run(s);
        ck_assert_uint_eq(fabric.n_node_infos, 1);
        assert_unknown(6, MAD_REFUSED);
        ck_assert(observed->tables[6].is_stranger);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                if (i != 6)
                        assert_read(i);
        ck_assert(!survey_is_stale(s)); /* another device that reports this repeatedly stops nothing */
        fabric.who[6] = 0;
        s = start(NULL, 0);
        (void) run(s);
        assert_read(6);
}
END_TEST

START_TEST(strange_switch)
{
        struct survey *s;

        identify = true;
        fabric.who[0] = 0x11;
        s = start(NULL, 0);
        (void) run(s);
        for (uint32_t i = 0; i < 5; i++) {
                assert_unknown(i, MAD_REFUSED);
                ck_assert(observed->tables[i].is_stranger);
        }
        for (uint32_t i = 5; i < 9; i++)
                assert_read(i);
        ck_assert(survey_is_stale(s));
}
END_TEST

/* The node is right, but its other port answers. For a switch the port does not matter. */
START_TEST(other_port_of_the_node)
{
        struct survey *s;

        identify = true;
        fabric.local_port = 2;
        s = start(NULL, 0);
        (void) run(s);
        for (uint32_t i = 0; i < 5; i++)
                assert_read(i);
        for (uint32_t i = 5; i < 9; i++)
                assert_unknown(i, MAD_REFUSED);
        ck_assert(survey_is_stale(s));
}
END_TEST

START_TEST(mute_is_no_stranger)
{
        struct survey *s;

        identify = true;
        for (uint32_t i = 0; i < 5; i++) {
                fabric.bad_from[i] = 0;
                fabric.outcome[i] = MAD_TIMED_OUT;
        }
        s = start(NULL, 0);
        (void) run(s);
        for (uint32_t i = 0; i < 5; i++) {
                assert_unknown(i, MAD_TIMED_OUT);
                ck_assert(!observed->tables[i].is_stranger);
        }
        ck_assert_uint_eq(n_unreachable(), 5);
        ck_assert(!survey_is_stale(s));
}
END_TEST

START_TEST(entries_in_use)
{
        struct observed_table *t = &observed->tables[5];

        ck_assert_uint_eq(observed_table_count(t), 0);
        t->entries[0].v = 0xffff;
        t->entries[7].v = 0x8000; /* base 0: as unused as 0 */
        t->entries[CAPACITY - 1].v = 0x0001;
        ck_assert_uint_eq(observed_table_count(t), 2);
}
END_TEST

static bool is_external(const struct subnet *s, const struct subnet_port *p)
{
        ck_assert_ptr_eq(s, subnet);
        return p->role == PORT_SWITCH_EXTERNAL;
}

START_TEST(tables_of_chosen_ports)
{
        struct observed *o;

        ck_assert_int_eq(observed_new_of(arena, subnet, is_external, &o), 0);
        ck_assert_ptr_eq(o->subnet, subnet);
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                bool has_table = i >= 1 && i <= 4;

                ck_assert_uint_eq(o->tables[i].capacity, has_table ? CAPACITY : 0);
                ck_assert(!o->tables[i].entries == !has_table);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("survey");
        TCase *t = tcase_create("survey");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, fewer_retries);
        tcase_add_test(t, interrupted_surveys_learn);
        tcase_add_test(t, reads_all);
        tcase_add_test(t, keeps_all_smas_busy);
        tcase_add_test(t, chosen_ports);
        tcase_add_test(t, no_ports);
        tcase_add_test(t, half_a_table_is_none);
        tcase_add_test(t, refusal_is_told);
        tcase_add_test(t, incomplete_host);
        tcase_add_test(t, incomplete_switch);
        tcase_add_test(t, dead_switch_is_given_up);
        tcase_add_test(t, one_lost_port_is_not_a_dead_switch);
        tcase_add_test(t, strange_results_are_ignored);
        tcase_add_test(t, again_after_a_failure);
        tcase_add_test(t, no_table_at_all);
        tcase_add_test(t, blocks);
        tcase_add_test(t, each_sma_is_identified_once);
        tcase_add_test(t, strangers);
        tcase_add_test(t, stranger_at_the_end_of_a_directed_route);
        tcase_add_test(t, strange_switch);
        tcase_add_test(t, what_was_certain_needs_no_name);
        tcase_add_loop_test(t, what_is_new_needs_a_name, 0, 8);
        tcase_add_loop_test(t, what_nobody_gives_a_name_to_was_not_read, 0, 8);
        tcase_add_test(t, news_of_a_strange_switch);
        tcase_add_test(t, stranger_that_refuses);
        tcase_add_test(t, other_port_of_the_node);
        tcase_add_test(t, mute_is_no_stranger);
        tcase_add_test(t, entries_in_use);
        tcase_add_test(t, tables_of_chosen_ports);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
