/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "discovery_fixture.h"

#include "snapshot_rules.h"

struct fabsim f;
struct arena *arena;
struct subnet *subnet;
struct discovery_links *links;
struct m_keys *keys;
struct discovery_config config;
unsigned n_again;
int finished;
struct fabric_rules rules;
struct prng prng;
enum answer_order order;
unsigned window, burst, n_requests, n_most_at_once;
static bool is_progress_whole;

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

unsigned host_a, host_b, leaf1, leaf2, router;

static void set_lids(void)
{
        f.nodes[host_a].ports[1].lid.v = 1;
        f.nodes[host_a].ports[2].lid.v = 2;
        f.nodes[host_b].ports[1].lid.v = 4;
        f.nodes[host_b].ports[1].lmc = 2;
        f.nodes[router].ports[1].lid.v = 9;
        f.nodes[leaf1].ports[0].lid.v = 10;
        f.nodes[leaf2].ports[0].lid.v = 11;
}

void setup(void)
{
        arena = arena_new();
        links = discovery_links_new();
        keys = NULL;
        subnet = NULL;
        memset(&rules, 0, sizeof(rules));
        config = (struct discovery_config) { .retries = 3 };
        prng.state = 1;
        order = FIRST_COME;
        window = MAX_REQUESTS;
        burst = 1;

        fabsim_init(&f);
        host_a = fabsim_add_node(&f, NODE_CA, 2, 128, "hostA mlx5_0");
        leaf1 = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "MF0;leaf1:MQM8700/U1");
        leaf2 = fabsim_add_node(&f, NODE_SWITCH, 6, 8, "leaf2 of two words");
        host_b = fabsim_add_node(&f, NODE_CA, 1, 64, "hostB mlx5_0");
        router = fabsim_add_node(&f, NODE_ROUTER, 2, 32, "router mlx5_1");
        fabsim_set_enforcement_cap(&f, leaf2, 32, true, false);
        fabsim_connect(&f, host_a, 1, leaf1, 1);
        fabsim_connect(&f, leaf1, 5, leaf2, 5);
        fabsim_connect(&f, leaf1, 6, leaf2, 4);
        fabsim_connect(&f, host_a, 2, leaf2, 3);
        fabsim_connect(&f, host_b, 1, leaf2, 1);
        fabsim_connect(&f, router, 1, leaf1, 2);
        f.nodes[leaf2].ports[1].enforce_inbound = true;
        set_lids();
        f.self = (struct fabsim_place) { host_a, 1 };
        f.sm = (struct fabsim_place) { host_b, 1 };
}

void teardown(void)
{
        (void) m_keys_free(keys);
        (void) discovery_links_free(links);
        arena_free(arena);
}

void forget_lids(void)
{
        for (unsigned n = 0; n < f.n_nodes; n++)
                for (unsigned p = 0; p <= f.nodes[n].num_ports; p++)
                        f.nodes[n].ports[p].lid.v = 0;
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static bool ask_fabric(const struct mad_request *request, struct mad_result *ret)
{
        struct mad_frame frame, answer;
        struct fabsim_place at;
        uint16_t status;
        unsigned hops;

        mad_request_encode(request, 1, &frame);
        if (!fabsim_route(&f, &frame, &at, &hops))
                return false;
        if (rules.lose && rules.lose(request, at))
                return false;
        if (!fabsim_answer(&f, n_requests * USEC_PER_MSEC, at, &frame, &answer))
                return false;
        REQUIRE(mad_check_response(request, &answer, &status) == 0);
        ret->outcome = status ? MAD_REFUSED : MAD_ANSWERED;
        ret->mad_status = status;
        mad_frame_get_data(&answer, MAD_CLASS_SMP, ret->data);
        if (rules.change)
                rules.change(request, at, ret);
        return true;
}

void carry(const struct mad_request *request, struct mad_result *ret)
{
        *ret = (struct mad_result) { .cookie = request->cookie, .lane = request->lane };
        n_requests++;
        if (rules.before)
                rules.before(n_requests);
        if (!(rules.answer ? rules.answer : ask_fabric)(request, ret))
                ret->outcome = MAD_TIMED_OUT;
}

static void check_request(const struct mad_request *r)
{
        REQUIRE(r->mgmt_class == MAD_CLASS_SMP && r->method == MAD_GET);
        REQUIRE(mad_route_is_directed(&r->route) && r->route.hops <= MAD_MAX_HOPS);
        REQUIRE(r->retries == config.retries || (config.before && r->retries == STAGE_RETRIES_AGAIN));
        n_again += r->retries != config.retries;
}

/* Requests in flight: a ring. */
static struct {
        struct mad_request items[MAX_REQUESTS];
        unsigned first, n;
} waiting;

static struct mad_request *waiting_at(unsigned i)
{
        return &waiting.items[(waiting.first + i) % MAX_REQUESTS];
}

static struct mad_request *find_lowest_rank(void)
{
        struct mad_request *lowest = waiting_at(0);

        for (unsigned i = 1; i < waiting.n; i++)
                if (rules.rank(waiting_at(i)) < rules.rank(lowest))
                        lowest = waiting_at(i);
        return lowest;
}

/* The last one takes the place of the one that is taken. */
static struct mad_request take_any(struct mad_request *any)
{
        struct mad_request taken = *any;

        *any = *waiting_at(--waiting.n);
        return taken;
}

/* Takes the request that is answered next. */
static struct mad_request take_waiting(void)
{
        if (rules.rank)
                return take_any(find_lowest_rank());
        switch (order) {
        case FIRST_COME:
                waiting.n--;
                waiting.first = (waiting.first + 1) % MAX_REQUESTS;
                return *waiting_at(MAX_REQUESTS - 1);
        case LAST_COME:
                return *waiting_at(--waiting.n);
        case ANY_ORDER:
                break;
        }
        return take_any(waiting_at(prng_below(&prng, waiting.n)));
}

static void take_requests(const struct mad_stage *stage)
{
        while (waiting.n < window && stage->next(stage->state, 0, waiting_at(waiting.n))) {
                check_request(waiting_at(waiting.n));
                for (unsigned i = 0; i < waiting.n && i < 200; i++)
                        REQUIRE(waiting_at(i)->destination != waiting_at(waiting.n)->destination);
                waiting.n++;
        }
}

static void answer_some(const struct mad_stage *stage)
{
        unsigned n = burst > 1 ? prng_between(&prng, 1, burst) : 1;

        for (; n > 0 && waiting.n > 0; n--) {
                struct mad_request request = take_waiting();
                struct mad_result result;

                n += rules.together && rules.together(&request);
                carry(&request, &result);
                stage->result(stage->state, 0, &result);
        }
}

void run(struct discovery *d)
{
        struct mad_stage stage = discovery_stage(d);
        uint64_t done, total;

        n_requests = n_most_at_once = 0;
        waiting.n = 0;
        for (;;) {
                take_requests(&stage);
                n_most_at_once = MAX(waiting.n, n_most_at_once);
                if (waiting.n == 0)
                        break;
                REQUIRE(!stage.done(stage.state));
                answer_some(&stage);
        }
        ck_assert(stage.done(stage.state));
        stage.progress(stage.state, &done, &total);
        ck_assert_uint_le(done, total);
        is_progress_whole = done == total;
}

int discover(void)
{
        struct discovery *d;

        ck_assert_int_eq(discovery_new(&config, &d), 0);
        subnet = NULL;
        run(d);
        finished = discovery_finish(d, arena, &subnet);
        if (finished == 0) {
                const char *broken = snapshot_rules_broken(subnet);

                ck_assert_msg(!broken, "broken: %s", broken);
                ck_assert(is_progress_whole);
                ck_assert_int_eq(discovery_learn_links(d, links), 0);
        } else {
                ck_assert_ptr_null(subnet);
        }
        (void) discovery_free(d);
        return finished;
}

/* --- the snapshot ---------------------------------------------------------------------------------------------------- */

struct guid guid_of(unsigned node)
{
        return f.nodes[node].guid;
}

bool has_node(unsigned node)
{
        return subnet_find_node(subnet, guid_of(node)) != SUBNET_NONE;
}

const struct subnet_node *node(unsigned n)
{
        uint32_t i = subnet_find_node(subnet, guid_of(n));

        ck_assert_msg(i != SUBNET_NONE, "no %s", f.nodes[n].description);
        return &subnet->nodes[i];
}

bool has_port(unsigned n, uint8_t number)
{
        uint32_t i = subnet_find_node(subnet, guid_of(n));

        return i != SUBNET_NONE && subnet_find_port(subnet, i, number) != SUBNET_NONE;
}

const struct subnet_port *port(unsigned n, uint8_t number)
{
        uint32_t i = subnet_find_port(subnet, (uint32_t) (node(n) - subnet->nodes), number);

        ck_assert_msg(i != SUBNET_NONE, "no port %u of %s", number, f.nodes[n].description);
        return &subnet->ports[i];
}

const struct subnet_port *peer(const struct subnet_port *p)
{
        ck_assert_uint_ne(p->peer, SUBNET_NONE);
        return &subnet->ports[p->peer];
}

unsigned count_incomplete(void)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < subnet->n_nodes; i++)
                n += subnet->nodes[i].incomplete;
        return n;
}

void assert_directed(const struct subnet_port *p, uint8_t hops, const uint8_t *path)
{
        ck_assert(mad_route_is_directed(&p->route));
        ck_assert_uint_eq(p->route.hops, hops);
        for (uint8_t i = 1; i <= hops; i++)
                ck_assert_uint_eq(p->route.path[i], path[i - 1]);
}

void assert_leads_there(const struct subnet_port *p)
{
        struct mad_request request = { .route = p->route, .method = MAD_GET, .attribute = SMP_ATTR_NODE_INFO };
        const struct fabsim_node *n;
        struct mad_frame frame;
        struct fabsim_place at;
        unsigned hops;

        mad_request_encode(&request, 1, &frame);
        ck_assert(fabsim_route(&f, &frame, &at, &hops));
        n = &f.nodes[at.node];
        ck_assert_uint_eq(n->guid.v, subnet_port_node(subnet, p)->guid.v);
        ck_assert_uint_eq(n->ports[at.port].guid.v, p->guid.v);
}

void assert_conflict(uint32_t i, struct guid guid, struct subnet_place first, struct subnet_place second)
{
        const struct subnet_conflict *c = &subnet->conflicts[i];

        ck_assert_uint_lt(i, subnet->n_conflicts);
        ck_assert_uint_eq(c->guid.v, guid.v);
        ck_assert_uint_eq(c->places[0].node.v, first.node.v);
        ck_assert_uint_eq(c->places[0].number, first.number);
        ck_assert_uint_eq(c->places[1].node.v, second.node.v);
        ck_assert_uint_eq(c->places[1].number, second.number);
}

struct subnet_place place(unsigned n, uint8_t number)
{
        return (struct subnet_place) { guid_of(n), number };
}

/* --- random fabrics --------------------------------------------------------------------------------------------------- */

bool is_switch(unsigned n)
{
        return f.nodes[n].type == NODE_SWITCH;
}

static bool is_cabled(unsigned n, unsigned number)
{
        return f.nodes[n].ports[number].is_cabled;
}

void connect_any(unsigned n_tries)
{
        for (; n_tries > 0; n_tries--) {
                unsigned a = prng_below(&prng, f.n_nodes), b = prng_below(&prng, f.n_nodes);
                uint8_t p = (uint8_t) prng_between(&prng, 1, f.nodes[a].num_ports);
                uint8_t q = (uint8_t) prng_between(&prng, 1, f.nodes[b].num_ports);

                if (!is_cabled(a, p) && !is_cabled(b, q) && (a != b || p != q || is_switch(a)))
                        fabsim_connect(&f, a, p, b, q);
        }
}

void make_random_fabric(void)
{
        static const enum node_type types[] = { NODE_CA, NODE_CA, NODE_SWITCH, NODE_SWITCH, NODE_ROUTER };
        unsigned n_nodes = prng_between(&prng, 2, 30);

        fabsim_init(&f);
        for (unsigned i = 0; i < n_nodes; i++) {
                enum node_type type = i == 0 ? NODE_CA : types[prng_below(&prng, ELEMENTS(types))];
                uint8_t num_ports = (uint8_t) prng_between(&prng, 1, type == NODE_SWITCH ? FABSIM_MAX_PORTS : 3);
                char description[NODE_DESCRIPTION_SIZE];

                (void) snprintf(description, sizeof(description), "node%u dev%u", i, prng_below(&prng, 3));
                (void) fabsim_add_node(&f, type, num_ports, (uint16_t) prng_between(&prng, 1, 128), description);
                if (type == NODE_SWITCH)
                        fabsim_set_enforcement_cap(&f, i, (uint16_t) prng_below(&prng, 64), prng_permille(&prng, 500),
                                                   prng_permille(&prng, 500));
                for (uint8_t p = 0; p <= num_ports; p++)
                        if (prng_permille(&prng, 800))
                                f.nodes[i].ports[p].lid.v = (uint16_t) (100 * i + 1 + p);
        }
        f.self = (struct fabsim_place) { 0, (uint8_t) prng_between(&prng, 1, f.nodes[0].num_ports) };
        f.sm = (struct fabsim_place) { prng_below(&prng, n_nodes), 1 };
        connect_any(n_nodes * 6);
        for (unsigned i = 1; i < n_nodes; i++)
                f.nodes[i].is_up = !prng_permille(&prng, 50);
}

/* --- rules ----------------------------------------------------------------------------------------------------------- */

struct meant meant;
enum mad_outcome failure;
uint16_t failure_status;

void mean(unsigned n, uint16_t attribute, uint32_t modifier)
{
        meant.node = n;
        meant.port = ANY;
        meant.attribute = attribute;
        meant.modifier = modifier;
        meant.from = 1;
        meant.to = UINT32_MAX;
        meant.n = 0;
}

bool is_meant(const struct mad_request *request, struct fabsim_place at)
{
        if (at.node != meant.node || (meant.port != ANY && at.port != meant.port) ||
            (meant.attribute != ANY && request->attribute != meant.attribute) ||
            (meant.modifier != ANY && request->modifier != meant.modifier))
                return false;
        meant.n++;
        return meant.n >= meant.from && meant.n <= meant.to;
}

void spoil(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (!is_meant(request, at))
                return;
        ret->outcome = failure;
        ret->mad_status = failure_status;
        memset(ret->data, 0xff, sizeof(ret->data));
}

static struct {
        enum MAD_FIELDS field;
        uint64_t value;
} lie;

static void tell_lie(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret)
{
        if (!is_meant(request, at))
                return;
        if (lie.field == IB_NODE_GUID_F || lie.field == IB_NODE_PORT_GUID_F)
                mad_set_field64(ret->data, 0, lie.field, lie.value);
        else
                mad_set_field(ret->data, 0, lie.field, (uint32_t) lie.value);
}

void lie_about(unsigned n, uint16_t attribute, enum MAD_FIELDS field, uint64_t value)
{
        rules.change = tell_lie;
        mean(n, attribute, ANY);
        lie.field = field;
        lie.value = value;
}

void set_state(struct mad_result *ret, enum port_state state)
{
        mad_set_field(ret->data, 0, IB_PORT_STATE_F, state);
}

bool is_port_info_of(const struct mad_request *request, struct fabsim_place at, unsigned n, unsigned number)
{
        return request->attribute == SMP_ATTR_PORT_INFO && at.node == n && request->modifier == number;
}

void fill_node_info(struct mad_result *ret, enum node_type type, uint8_t num_ports, uint64_t guid, uint8_t local_port)
{
        mad_set_field(ret->data, 0, IB_NODE_TYPE_F, type);
        mad_set_field(ret->data, 0, IB_NODE_NPORTS_F, num_ports);
        mad_set_field64(ret->data, 0, IB_NODE_GUID_F, guid);
        mad_set_field64(ret->data, 0, IB_NODE_PORT_GUID_F, guid);
        mad_set_field(ret->data, 0, IB_NODE_LOCAL_PORT_F, local_port);
}

void fill_port_info(struct mad_result *ret, uint16_t lid)
{
        mad_set_field(ret->data, 0, IB_PORT_LID_F, lid);
        mad_set_field(ret->data, 0, IB_PORT_STATE_F, PORT_STATE_ACTIVE);
        mad_set_field(ret->data, 0, IB_PORT_PHYS_STATE_F, 5);
}
