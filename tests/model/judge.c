/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the verdicts of the rule, the knowledge and the gate for cases from stdin, as numbers; for check_rule_model.py.
 *
 *     rule POLICY BEFORE AFTER N OTHER...        BEFORE, AFTER: has may;  OTHER: policy has may is_absent
 *     fabric PORT IS_LEAF LEVEL N HOST...        the write: this level into the table of this host, or of its leaf port
 *                                                HOST: policy presence TABLE TABLE in out unsure;  the second TABLE: its leaf
 *                                                port's
 *                                                TABLE: kind level sent
 *
 * Prints for each `rule` the verdict of rule_judge(); for each `fabric` whether knowledge_judge_block() admits it, whether
 * knowledge_exceeds_policy(), and whether gate_admit() lets the frame pass.
 */

#include <err.h>
#include <string.h>

#include "gate/gate.h"
#include "ib/smp.h"
#include "knowledge/table_records.h"

#include <infiniband/mad.h>

#define MAX_HOSTS  4
#define CAPACITY   32
#define BASE       1
#define FILTERING  0x10 /* the switch of hosts with a leaf port that can filter; each host at the port of its number + 1 */
#define PLAIN      0x20
#define LID_OFFSET 100
#define HOLD       10

enum presence {
        THERE,
        ABSENT,
        EXPIRED,
};

enum kind {
        READ,        /* holds `level` */
        READ_SENT,   /* that, or `sent` */
        BEFORE,      /* `level` was read before the last discovery */
        BEFORE_SENT, /* that, or `sent` */
        NEVER,
        VOUCHED,     /* as BEFORE, and a person vouched for it */
        UNFOLLOWED,  /* as BEFORE, and another pkeyd may have written to it since */
        NO_TABLE,    /* no leaf port that can filter */
};

struct table {
        int kind, level, sent;
};

struct host {
        int policy, presence;
        struct table table, leaf;
        int in, out, unsure;
};

struct scene {
        unsigned n;
        struct host hosts[MAX_HOSTS];
        unsigned port;
        int is_leaf, level;
};

static void must(int r)
{
        if (r < 0)
                err(2, "out of memory");
}

static void announce(struct knowledge *k, uint32_t record, const struct p_key block[P_KEY_BLOCK_ENTRIES])
{
        must(knowledge_announce_block(k, record, 0, block));
        knowledge_stored(k);
}

static int number(void)
{
        int n;

        if (scanf("%d", &n) != 1)
                errx(2, "not a number");
        return n;
}

static struct bounds read_bounds(void)
{
        uint8_t has = (uint8_t) number();

        return (struct bounds) { has, (uint8_t) number() };
}

/* --- the rule ------------------------------------------------------------------------------------------------------------ */

static void judge_rule(void)
{
        enum level policy = (enum level) number();
        struct bounds before = read_bounds(), after = read_bounds();
        struct rule_counts others = {};

        for (int n = number(); n > 0; n--) {
                struct rule_class class = { .policy = (uint8_t) number() };

                class.bounds = read_bounds();
                class.is_absent = number();
                rule_count(&others, &class, 1);
        }
        printf("%d\n", rule_judge(policy, before, after, &others));
}

/* --- a fabric ------------------------------------------------------------------------------------------------------------ */

static struct table read_table(void)
{
        struct table t = { .kind = number() };

        t.level = number();
        t.sent = number();
        return t;
}

static void read_scene(struct scene *s)
{
        s->port = (unsigned) number();
        s->is_leaf = number();
        s->level = number();
        s->n = (unsigned) number();
        if (s->n > MAX_HOSTS || s->port >= s->n)
                errx(2, "there are 1 to %d hosts", MAX_HOSTS);
        for (unsigned i = 0; i < s->n; i++) {
                struct host *h = &s->hosts[i];

                h->policy = number();
                h->presence = number();
                h->table = read_table();
                h->leaf = read_table();
                h->in = number();
                h->out = number();
                h->unsure = number();
        }
}

static struct guid host_guid(unsigned host)
{
        return (struct guid) { 0x100u * (host + 1) };
}

static struct guid switch_guid(const struct host *h)
{
        return (struct guid) { h->leaf.kind == NO_TABLE ? PLAIN : FILTERING };
}

static void add_switch(struct subnet_builder *b, uint64_t guid)
{
        bool filters = guid == FILTERING;
        const struct subnet_node node = {
                .guid = { guid }, .type = NODE_SWITCH, .num_ports = MAX_HOSTS, .partition_cap = CAPACITY,
                .partition_enforcement_cap = CAPACITY, .inbound_enforcement_cap = filters, .outbound_enforcement_cap = filters,
        };

        must(subnet_builder_add_node(b, &node, "leaf", 4));
}

static void add_host(struct subnet_builder *b, const struct host *h, unsigned i)
{
        const struct subnet_node node = { .guid = host_guid(i), .type = NODE_CA, .num_ports = 1, .partition_cap = CAPACITY };
        const struct subnet_port port = { .number = 1, .guid = { node.guid.v + 1 } }, leaf = { .number = (uint8_t) (i + 1) };

        must(subnet_builder_add_node(b, &node, "host", 4));
        must(subnet_builder_add_port(b, node.guid, &port));
        must(subnet_builder_add_port(b, switch_guid(h), &leaf));
        must(subnet_builder_add_link(b, node.guid, 1, switch_guid(h), leaf.number));
}

/* Of hosts that are not further away than this. */
static struct subnet *make_subnet(struct arena *a, const struct scene *s, enum presence presence)
{
        struct subnet_builder *b;
        struct subnet *subnet;

        must(subnet_builder_new(a, &b));
        add_switch(b, FILTERING);
        add_switch(b, PLAIN);
        for (unsigned i = 0; i < s->n; i++)
                if (s->hosts[i].presence <= (int) presence)
                        add_host(b, &s->hosts[i], i);
        must(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &subnet));
        return subnet;
}

static uint32_t record_of(const struct knowledge *k, const struct scene *s, unsigned host, bool is_leaf)
{
        const struct knowledge_name leaf = { switch_guid(&s->hosts[host]), (uint8_t) (host + 1), KNOWLEDGE_LEAF };
        const struct knowledge_name name = { host_guid(host), 1, KNOWLEDGE_ENDPORT };

        return knowledge_find(k, is_leaf ? leaf : name);
}

static void fill(int level, struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        memset(ret, 0, P_KEY_BLOCK_ENTRIES * sizeof(*ret));
        if (level != LEVEL_NONE)
                ret[0] = p_key_make(BASE, level == LEVEL_FULL);
}

/* Tables of these two kinds are read, and the second (-1: none) is then sent something. */
static void read_tables(struct arena *a, struct knowledge *k, const struct scene *s, const struct subnet *subnet, int kind,
                        int kind_sent)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct observed *o;

        must(observed_new(a, subnet, &o));
        for (unsigned i = 0; i < 2 * s->n; i++) {
                const struct host *h = &s->hosts[i / 2];
                const struct table *t = i % 2 ? &h->leaf : &h->table;
                uint32_t node = subnet_find_node(subnet, i % 2 ? switch_guid(h) : host_guid(i / 2));
                uint32_t port = node == SUBNET_NONE ? node : subnet_find_port(subnet, node, (uint8_t) (i % 2 ? i / 2 + 1 : 1));

                if (port == SUBNET_NONE || (t->kind != kind && t->kind != kind_sent && (kind != BEFORE || t->kind != VOUCHED)))
                        continue;
                fill(t->level, o->tables[port].entries);
                o->tables[port].source = TABLE_READ;
        }
        must(knowledge_see_tables(k, o, 0));
        for (unsigned i = 0; i < 2 * s->n; i++) {
                const struct table *t = i % 2 ? &s->hosts[i / 2].leaf : &s->hosts[i / 2].table;

                if (t->kind != kind_sent)
                        continue;
                fill(t->sent, block);
                announce(k, record_of(k, s, i / 2, i % 2), block);
                if (!knowledge_send_block(k, record_of(k, s, i / 2, i % 2), 0, block))
                        errx(2, "a block that was announced may not be sent");
                knowledge_withdraw(k);
        }
}

/* All was there at 0, what is absent went away at 5, what expired before that; now it is 12. */
static struct subnet *see(struct arena *a, struct knowledge *k, const struct scene *s)
{
        struct subnet *all = make_subnet(a, s, EXPIRED), *now = make_subnet(a, s, THERE);

        must(knowledge_see_subnet(k, all, 0, 0, HOLD));
        read_tables(a, k, s, all, UNFOLLOWED, -1);
        knowledge_stop_following(k);
        read_tables(a, k, s, all, BEFORE, BEFORE_SENT);
        must(knowledge_see_subnet(k, make_subnet(a, s, ABSENT), 5, 0, HOLD));
        must(knowledge_see_subnet(k, now, 12, 0, HOLD));
        read_tables(a, k, s, now, READ, READ_SENT);
        return all;
}

static void see_others(struct knowledge *k, const struct scene *s)
{
        for (unsigned i = 0; i < s->n; i++) {
                const struct host *h = &s->hosts[i];
                uint32_t leaf = record_of(k, s, i, true);

                if (h->table.kind == VOUCHED)
                        must(knowledge_vouch(k, record_of(k, s, i, false), "root", 1));
                if (h->leaf.kind == VOUCHED)
                        must(knowledge_vouch(k, leaf, "root", 1));
                if (leaf != KNOWLEDGE_NONE)
                        knowledge_see_filter(k, leaf, h->in, h->out);
                if (leaf != KNOWLEDGE_NONE && h->unsure)
                        knowledge_doubt_filter(k, leaf);
        }
}

static struct desired_port wants(struct arena *a, enum level level)
{
        struct p_key *key = arena_new_object(a, struct p_key);

        *key = p_key_make(BASE, level == LEVEL_FULL);
        return (struct desired_port) { key, level != LEVEL_NONE };
}

/* The policy of a node that did not answer all queries is not known. */
static void give_policy(struct arena *a, struct knowledge *k, const struct scene *s, struct subnet *subnet)
{
        struct desired *d = arena_new_object(a, struct desired);

        *d = (struct desired) { .subnet = subnet, .ports = arena_new_array(a, struct desired_port, subnet->n_ports) };
        for (unsigned i = 0; i < s->n; i++) {
                uint32_t node = subnet_find_node(subnet, host_guid(i)), port = subnet_find_port(subnet, node, 1);
                struct desired_port *most = arena_new_object(a, struct desired_port);
                enum level policy = (enum level) s->hosts[i].policy;

                subnet->nodes[node].incomplete = policy == POLICY_UNKNOWN;
                *most = wants(a, policy == POLICY_UP_TO_LIMITED ? LEVEL_LIMITED : LEVEL_FULL);
                d->ports[port] = wants(a, policy == POLICY_FROM_LIMITED ? LEVEL_LIMITED :
                                          policy < N_LEVELS ? policy : LEVEL_NONE);
                d->ports[port].most = policy < N_LEVELS ? NULL : most;
        }
        must(knowledge_set_policy(k, d));
}

/* --- the gate ------------------------------------------------------------------------------------------------------------ */

static void answered(struct gate *g, struct mad_route route, uint16_t attribute, uint32_t modifier,
                     const uint8_t data[SMP_DATA_SIZE])
{
        struct mad_result result = { .attribute = attribute, .modifier = modifier, .route = route, .outcome = MAD_ANSWERED };

        memcpy(result.data, data, SMP_DATA_SIZE);
        gate_see(g, &result);
}

/* The SMA answers NodeInfo, and the block is read: it holds what was known of it. Then it is set. */
static bool passes_gate(struct knowledge *k, const struct scene *s)
{
        static const struct base_range owns = { 1, P_KEY_BASE_MASK };
        static const struct policy policy = { .owns = (struct base_range *) &owns, .n_owns = 1 };
        const struct host *h = &s->hosts[s->port];
        const struct table *t = s->is_leaf ? &h->leaf : &h->table;
        _cleanup_(gate_free_p) struct gate *g = gate_new();
        struct mad_request set = {
                .method = MAD_SET, .attribute = SMP_ATTR_P_KEY_TABLE, .route.lid.v = (uint16_t) (LID_OFFSET + s->port),
                .modifier = p_key_table_modifier(s->is_leaf ? (uint8_t) (s->port + 1) : 0, 0),
        };
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        uint8_t data[SMP_DATA_SIZE] = {};
        struct mad_frame frame;

        if (!g)
                errx(2, "out of memory");
        gate_open(g, k, &policy);
        mad_set_field(data, 0, IB_NODE_TYPE_F, s->is_leaf ? NODE_SWITCH : NODE_CA);
        mad_set_field(data, 0, IB_NODE_NPORTS_F, MAX_HOSTS);
        mad_set_field64(data, 0, IB_NODE_GUID_F, s->is_leaf ? switch_guid(h).v : host_guid(s->port).v);
        mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, 1);
        answered(g, set.route, SMP_ATTR_NODE_INFO, 0, data);
        fill(t->level, block);
        p_key_block_encode(block, data);
        answered(g, set.route, SMP_ATTR_P_KEY_TABLE, set.modifier, data);
        fill(s->level, block);
        if (knowledge_get(k, record_of(k, s, s->port, s->is_leaf))->entries)
                announce(k, record_of(k, s, s->port, s->is_leaf), block);
        p_key_block_encode(block, set.data);
        mad_request_encode(&set, 1, &frame);
        return gate_admit(g, &frame);
}

static void judge_fabric(void)
{
        _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
        _cleanup_arena_ struct arena *a = arena_new();
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct scene s = {};
        uint32_t record;
        bool admits, exceeds;

        if (!k || !a)
                errx(2, "out of memory");
        read_scene(&s);
        give_policy(a, k, &s, see(a, k, &s));
        see_others(k, &s);
        record = record_of(k, &s, s.port, s.is_leaf);
        fill(s.level, block);
        admits = knowledge_judge_block(k, record, 0, block, BASE) == RULE_ADMITS;
        exceeds = knowledge_exceeds_policy(k, record, 0, block, BASE);
        printf("%d %d %d\n", admits, exceeds, passes_gate(k, &s));
}

int main(void)
{
        char word[16];

        while (scanf("%15s", word) == 1)
                if (strcmp(word, "rule") == 0)
                        judge_rule();
                else if (strcmp(word, "fabric") == 0)
                        judge_fabric();
                else
                        errx(2, "%s: neither rule nor fabric", word);
        return fflush(stdout) ? 2 : 0;
}
