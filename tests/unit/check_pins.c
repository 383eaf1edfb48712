/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "arena_fixture.h"
#include "pins/claims.h"

#define LEAF 0x1000u

static struct pins pins;
static struct findings findings;

static void begin(void)
{
        setup();
        findings = (struct findings) { .arena = arena };
        pins = (struct pins) {};
}

static void end(void)
{
        pins_done(&pins);
        findings_done(&findings);
        teardown();
}

/* ---- fabrics ------------------------------------------------------------------------------------------------------ */

struct host {
        uint64_t guid;
        const char *description; /* NULL: it is not there */
        bool incomplete;
};

static void add_host(struct subnet_builder *b, const struct host *h, uint8_t number)
{
        const struct subnet_node node = { .guid = { h->guid }, .type = NODE_CA, .num_ports = 1, .incomplete = h->incomplete };
        const struct subnet_port port = { .number = 1, .guid = { h->guid + 1 } }, leaf = { .number = number };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, h->description, strlen(h->description)), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { LEAF }, &leaf), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, node.guid, 1, (struct guid) { LEAF }, number), 0);
}

/* Hosts on ports 1, 2, ... of a switch that has no name. */
static struct subnet *fabric(const struct host *hosts, size_t n)
{
        const struct subnet_node leaf = { .guid = { LEAF }, .type = NODE_SWITCH, .num_ports = 36 };
        const struct subnet_port port0 = { .guid = { LEAF } };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &leaf, "", 0), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, leaf.guid, &port0), 0);
        for (size_t i = 0; i < n; i++)
                if (hosts[i].description)
                        add_host(b, &hosts[i], (uint8_t) (i + 1));
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        return s;
}

#define FABRIC(...) fabric((const struct host[]) { __VA_ARGS__ }, ELEMENTS(((const struct host[]) { __VA_ARGS__ })))

/* Binds what is new, as a sweep does. */
static void sweep(const struct subnet *s)
{
        ck_assert_int_ge(pins_bind(&pins, s, 1000), 0);
        pins_keep(&pins);
}

/* "node1 mlx5_0", as the policy sees the node; "": it has no name. */
static const char *seen_as(const struct subnet *s, uint64_t guid)
{
        const struct subnet *view;
        uint32_t node = subnet_find_node(s, (struct guid) { guid });

        ck_assert_int_eq(pins_view(arena, &pins, s, &view), 0);
        ck_assert_uint_ne(node, SUBNET_NONE);
        ck_assert_uint_eq(view->nodes[node].guid.v, guid);
        if (!view->nodes[node].name[0])
                return "";
        return arena_printf(arena, "%s %s", view->nodes[node].name, view->nodes[node].device);
}

static const struct claim *find_claim(const struct subnet *s, uint64_t guid)
{
        struct claim *claims;
        uint32_t n;

        ck_assert_int_eq(pins_find_claims(arena, &pins, s, &claims, &n), 0);
        for (uint32_t i = 0; i < n; i++)
                if (s->nodes[claims[i].node].guid.v == guid)
                        return &claims[i];
        return NULL;
}

static void accept(const struct subnet *s, uint64_t guid)
{
        ck_assert_int_eq(pins_accept(&pins, s, subnet_find_node(s, (struct guid) { guid }), 2000), 0);
}

/* ---- single cases ------------------------------------------------------------------------------------------------- */

/* Two adapters of a host have one name, and are bound together. A third one that comes later is not. */
START_TEST(test_adapters)
{
        struct subnet *two = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node1 mlx5_1" });
        struct subnet *three = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node1 mlx5_1" }, { 0x30, "node1 mlx5_2" });

        sweep(two);
        ck_assert_uint_eq(pins.n, 2);
        sweep(three);
        ck_assert_uint_eq(pins.n, 2);
        ck_assert_str_eq(seen_as(three, 0x20), "node1 mlx5_1");
        ck_assert_str_eq(seen_as(three, 0x30), "");
        ck_assert_ptr_null(find_claim(three, 0x30)->pin);
        ck_assert_uint_eq(find_claim(FABRIC({ 0x30, "node1 mlx5_1" }), 0x30)->holder->node.v, 0x20); /* whose device it has */
        accept(three, 0x30);
        ck_assert_uint_eq(pins.n, 3);
        ck_assert_str_eq(seen_as(three, 0x30), "node1 mlx5_2");
        ck_assert_ptr_null(find_claim(three, 0x30));
}
END_TEST

/* Root on a host cannot move the partitions of one of its adapters to the other. */
START_TEST(test_devices)
{
        struct subnet *before = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node1 mlx5_1" });
        struct subnet *after = FABRIC({ 0x10, "node1 mlx5_1" }, { 0x20, "node1 mlx5_0" });

        sweep(before);
        sweep(after);
        ck_assert_str_eq(seen_as(after, 0x10), "node1 mlx5_0");
        ck_assert_str_eq(seen_as(after, 0x20), "node1 mlx5_1");
        ck_assert_uint_eq(find_claim(after, 0x10)->holder->node.v, 0x20);
        /* who accepts one takes the device from the other, which then has none */
        accept(after, 0x10);
        ck_assert_str_eq(seen_as(after, 0x10), "node1 mlx5_1");
        ck_assert_str_eq(seen_as(after, 0x20), "");
        accept(after, 0x20);
        ck_assert_str_eq(seen_as(after, 0x20), "node1 mlx5_0");
}
END_TEST

/* A device that no adapter of the host has is claimed from nobody. */
START_TEST(test_another_device)
{
        struct subnet *after = FABRIC({ 0x10, "node1 mlx5_7" });

        sweep(FABRIC({ 0x10, "node1 mlx5_0" }));
        ck_assert_str_eq(seen_as(after, 0x10), "node1 mlx5_0");
        ck_assert_ptr_nonnull(find_claim(after, 0x10)->pin);
        ck_assert_ptr_null(find_claim(after, 0x10)->holder);
}
END_TEST

/* The new adapter has the name of the host and another device: it gets that, and the old one has no pin any more. */
START_TEST(test_move_to_another_device)
{
        struct subnet *s = FABRIC({ 0x20, "node1 mlx5_1" });

        sweep(FABRIC({ 0x10, "node1 mlx5_0" }));
        ck_assert_int_eq(pins_move(&pins, (struct guid) { 0x10 }, s, subnet_find_node(s, (struct guid) { 0x20 }), 5), 0);
        ck_assert_uint_eq(pins.n, 1);
        ck_assert_str_eq(seen_as(s, 0x20), "node1 mlx5_1");
        ck_assert_ptr_null(find_claim(s, 0x20));
}
END_TEST

/* Two new nodes with one name and device: neither gets it, nor does a third one of that name. */
START_TEST(test_twins)
{
        struct subnet *s = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node1 mlx5_1" }, { 0x30, "node1 mlx5_1" }, { 0x40, "node2 mlx5_0" });

        sweep(s);
        ck_assert_uint_eq(pins.n, 1);
        ck_assert_ptr_null(find_claim(s, 0x30));
        ck_assert_str_eq(seen_as(s, 0x30), "node1 mlx5_1"); /* the policy freezes both */
        accept(s, 0x20);
        ck_assert_str_eq(seen_as(s, 0x20), "node1 mlx5_1");
        ck_assert_str_eq(seen_as(s, 0x30), "");
        ck_assert_str_eq(seen_as(s, 0x10), "");
}
END_TEST

static const char *const unnamed[] = {
        "", "  ", "MT4123 ConnectX6   Mellanox Technologies", "localhost mlx5_0", "localhost.localdomain mlx5_0", "(none) mlx5_0",
        "Mellanox Technologies Aggregation Node",
};

/* A name that was not set yet binds nothing and takes nothing. */
START_TEST(test_unnamed)
{
        struct subnet *named = FABRIC({ 0x10, "node1 mlx5_0" });
        struct subnet *s = FABRIC({ 0x10, unnamed[_i] }, { 0x20, unnamed[_i] });

        sweep(named);
        sweep(s);
        ck_assert_uint_eq(pins.n, 1);
        ck_assert_str_eq(seen_as(s, 0x10), "node1 mlx5_0");
        ck_assert_ptr_null(find_claim(s, 0x10));
        ck_assert_ptr_null(find_claim(s, 0x20));
        sweep(named);
        ck_assert_str_eq(seen_as(named, 0x10), "node1 mlx5_0");
}
END_TEST

/* Names of hosts that only look like those. */
START_TEST(test_names_that_look_unnamed)
{
        sweep(FABRIC({ 0x10, "localhost1 mlx5_0" }, { 0x20, "Technologies mlx5_0" }, { 0x30, "none mlx5_0" }));
        ck_assert_uint_eq(pins.n, 3);
}
END_TEST

/* A node that did not answer all queries is what it was, claims nothing, and is not bound. */
START_TEST(test_incomplete)
{
        struct subnet *s = FABRIC({ 0x10, "node2 mlx5_0", true }, { 0x20, "node3 mlx5_0", true });

        sweep(FABRIC({ 0x10, "node1 mlx5_0" }));
        sweep(s);
        ck_assert_uint_eq(pins.n, 1);
        ck_assert_str_eq(seen_as(s, 0x10), "node1 mlx5_0");
        ck_assert_ptr_null(find_claim(s, 0x10));
}
END_TEST

static struct subnet *director(const char *first, const char *second)
{
        const struct subnet_node nodes[] = { { .guid = { 0x10 }, .type = NODE_SWITCH }, { .guid = { 0x20 }, .type = NODE_SWITCH } };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &nodes[0], first, strlen(first)), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &nodes[1], second, strlen(second)), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &s), 0);
        return s;
}

/* The switches of a director have one name, and each its board. */
START_TEST(test_boards)
{
        struct subnet *before = director("MF0;director:MQM8700/L01/U1", "MF0;director:MQM8700/L02/U1");
        struct subnet *after = director("MF0;director:MQM8700/L02/U1", "MF0;director:MQM8700/L02/U1");
        const struct subnet *view;

        sweep(before);
        ck_assert_uint_eq(pins.n, 2);
        ck_assert_ptr_null(find_claim(before, 0x10));
        ck_assert_uint_eq(find_claim(after, 0x10)->holder->node.v, 0x20);
        ck_assert_int_eq(pins_view(arena, &pins, after, &view), 0);
        ck_assert_str_eq(subnet_node_board(&view->nodes[0]), "L01/U1");
        pins_done(&pins);
        sweep(after);
        ck_assert_uint_eq(pins.n, 0);
}
END_TEST

/* A host cannot take the name of a switch. */
START_TEST(test_types)
{
        struct subnet *s = FABRIC({ 0x30, "leaf07" });

        sweep(director("leaf07", "leaf08"));
        ck_assert_uint_eq(find_claim(s, 0x30)->holder->node.v, 0x10);
        ck_assert_str_eq(seen_as(s, 0x30), "");
        accept(s, 0x30); /* what is a host has another identity than the switch, which keeps the name */
        ck_assert_uint_eq(pins.n, 3);
}
END_TEST

/* The policy for which names were bound did not come into force. */
START_TEST(test_take_back)
{
        struct subnet *s = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node2 mlx5_0" }, { 0x30, "node3 mlx5_0" });

        sweep(FABRIC({ 0x20, "node2 mlx5_0" }));
        ck_assert_int_eq(pins_bind(&pins, s, 1000), 1);
        ck_assert_uint_eq(pins.n, 3);
        ck_assert_int_eq(pins_bind(&pins, s, 1000), 0);
        pins_take_back(&pins);
        ck_assert_uint_eq(pins.n, 1);
        ck_assert_uint_eq(pins.items[0].node.v, 0x20);
        ck_assert_int_eq(pins_bind(&pins, s, 1000), 1);
        pins_keep(&pins);
        pins_take_back(&pins);
        ck_assert_uint_eq(pins.n, 3);
}
END_TEST

static const struct {
        const char *name;
        uint64_t node;
        const char *text, *way_out;
} texts[] = {
        { "unknown", 0x20, "node 0x0000000000000020 at 0x0000000000001000/2 calls itself 'node1 mlx5_0', a name that is pinned to "
          "0x0000000000000010 ('node1 mlx5_0'); it gets no partition by that name",
          "if the name is right: pkeyctl pin accept node1 0x0000000000000020; if its adapter replaced the other one: "
          "pkeyctl replace 0x0000000000000010 0x0000000000000020; if not, rename the host or unplug it" },
        { "renamed", 0x30, "node 0x0000000000000030 at 0x0000000000001000/3 calls itself 'other mlx5_0'; for the policy it is still "
          "'node3 mlx5_0', to which it is pinned",
          "if the name is right: pkeyctl pin accept other 0x0000000000000030; if not, rename the host or unplug it" },
        /* nobody should copy a command that a host wrote */
        { "shell", 0x40, "node 0x0000000000000040 at 0x0000000000001000/4 calls itself '$(reboot) mlx5_0'; for the policy it is still "
          "'node4 mlx5_0', to which it is pinned",
          "if the name is right: pkeyctl pin accept 0x0000000000000040; if not, rename the host or unplug it" },
};

START_TEST(test_texts)
{
        struct subnet *s = FABRIC({ 0x10, "node1 mlx5_0" }, { 0x20, "node1 mlx5_0" }, { 0x30, "other mlx5_0" }, { 0x40, "$(reboot) mlx5_0" });
        const struct claim *claim;

        sweep(FABRIC({ 0x10, "node1 mlx5_0" }, { 0x30, "node3 mlx5_0" }, { 0x40, "node4 mlx5_0" }));
        claim = find_claim(s, texts[_i].node);
        ck_assert_ptr_nonnull(claim);
        ck_assert_str_eq(claim_text(arena, s, claim), texts[_i].text);
        ck_assert_str_eq(claim_way_out(arena, s, claim), texts[_i].way_out);
}
END_TEST

/* More claims than that are counted in one finding. */
START_TEST(test_findings)
{
        struct host before[20], after[20];
        struct subnet *s;

        for (size_t i = 0; i < 20; i++) {
                before[i] = (struct host) { 0x10 * (i + 1), arena_printf(arena, "node%zu mlx5_0", i) };
                after[i] = (struct host) { 0x10 * (i + 1), arena_printf(arena, "other%zu mlx5_0", i) };
        }
        sweep(fabric(before, 20));
        s = fabric(after, 20);
        ck_assert_int_eq(pins_report_claims(&pins, s, &findings), 0);
        ck_assert_uint_eq(findings.n, 9);
        ck_assert_int_eq(findings.items[8].code, FINDING_NAME_CLAIMED);
        ck_assert_str_eq(findings.items[8].text, "12 more nodes claim names that are not pinned to them, 20 in total; pkeyctl pins "
                                                 "lists them");
        ck_assert_int_eq(pins_report_claims(NULL, s, &findings), 0);
        ck_assert_uint_eq(findings.n, 9);
}
END_TEST

/* ---- every state of three nodes and two names --------------------------------------------------------------------- */

/*
 * An independent model: pinned[i] is the name that node i is bound to, called[i] what it calls itself. All states that can be
 * reached from the one without pins are tried, with each change from there; after each change there is a sweep.
 */

#define N_NODES 3

enum name { NONE, A, B, ABSENT }; /* NONE: not pinned; no name yet */

struct model {
        uint8_t pinned[N_NODES], called[N_NODES];
};

static const char *const descriptions[] = { [NONE] = "localhost mlx5_0", [A] = "a mlx5_0", [B] = "b mlx5_0" };
static const char *const words[] = { [NONE] = "", [A] = "a", [B] = "b" };

static uint64_t guid_of(int node)
{
        return 0x10u * (unsigned) (node + 1);
}

static struct subnet *fabric_of(const struct model *m)
{
        struct host hosts[N_NODES];

        for (int i = 0; i < N_NODES; i++)
                hosts[i] = (struct host) { guid_of(i), m->called[i] == ABSENT ? NULL : descriptions[m->called[i]] };
        return fabric(hosts, N_NODES);
}

static bool is_taken(const struct model *m, uint8_t name)
{
        for (int i = 0; i < N_NODES; i++)
                if (m->pinned[i] == name)
                        return true;
        return false;
}

/* The only new node with a free name is bound to it. */
static void model_sweep(struct model *m)
{
        for (uint8_t name = A; name <= B; name++) {
                int n = 0, last = 0;

                for (int i = 0; i < N_NODES && !is_taken(m, name); i++)
                        if (m->called[i] == name && m->pinned[i] == NONE) {
                                last = i;
                                n++;
                        }
                if (n == 1)
                        m->pinned[last] = name;
        }
}

static uint8_t model_name(const struct model *m, int node)
{
        if (m->pinned[node] != NONE)
                return m->pinned[node];
        return is_taken(m, m->called[node]) ? NONE : m->called[node];
}

static void model_set(struct model *m, int node, uint8_t name)
{
        for (int i = 0; i < N_NODES; i++)
                if (m->pinned[i] == name)
                        m->pinned[i] = NONE;
        m->pinned[node] = name;
}

/* A store that gets what changed. */
static void put_all(uint8_t store[N_NODES])
{
        for (uint32_t i = 0; i < pins.n_gone; i++)
                store[pins.gone[i].v / 0x10 - 1] = NONE;
        for (uint32_t i = 0; i < pins.n; i++)
                if (!pins.items[i].is_stored)
                        store[pins.items[i].node.v / 0x10 - 1] = strcmp(pins.items[i].name.name, "a") == 0 ? A : B;
        pins_stored(&pins);
}

static void take_model(const struct model *m)
{
        pins_done(&pins);
        for (int i = 0; i < N_NODES; i++) {
                struct pin pin = { .node = { guid_of(i) }, .type = NODE_CA, .is_stored = true };

                pin.name = (struct subnet_name) { descriptions[m->pinned[i]], words[m->pinned[i]], "mlx5_0" };
                if (m->pinned[i] != NONE)
                        ck_assert_int_eq(pins_add(&pins, &pin), 0);
        }
}

static void compare(const struct model *m, const struct subnet *s, const uint8_t store[N_NODES])
{
        for (int i = 0; i < N_NODES; i++) {
                const struct pin *pin = pins_find(&pins, (struct guid) { guid_of(i) });
                uint8_t name = model_name(m, i);

                ck_assert_str_eq(pin ? pin->name.name : "", words[m->pinned[i]]);
                ck_assert_int_eq(store[i], m->pinned[i]);
                if (m->called[i] == ABSENT)
                        continue;
                if (name == NONE && m->called[i] == NONE)
                        ck_assert_str_eq(seen_as(s, guid_of(i)), descriptions[NONE]);
                else
                        ck_assert_str_eq(seen_as(s, guid_of(i)), name == NONE ? "" : descriptions[name]);
                ck_assert_int_eq(find_claim(s, guid_of(i)) != NULL, m->called[i] != NONE && name != m->called[i]);
        }
}

/* What the issue of all this is: by a name that another node is pinned to, no node gets anything. */
static void check_nobody_has_two(const struct model *m)
{
        for (int i = 0; i < N_NODES; i++)
                for (int k = 0; k < N_NODES; k++)
                        if (i != k && m->pinned[i] != NONE && m->called[k] != ABSENT)
                                ck_assert_int_ne(model_name(m, k), m->pinned[i]);
}

enum change { CALL, ACCEPT, DROP, MOVE, N_CHANGES };

/* Returns false if the change is not possible here. */
static bool change(struct model *m, enum change kind, int x, int y)
{
        struct subnet *s = fabric_of(m);
        uint32_t node = subnet_find_node(s, (struct guid) { guid_of(x) });
        uint8_t before;

        switch (kind) {
        case CALL: /* node x renames itself, vanishes or returns: it is what it was, if it was pinned */
                m->called[x] = (uint8_t) y;
                return true;
        case ACCEPT:
                if (y > 0 || m->called[x] == NONE || m->called[x] == ABSENT)
                        return false;
                model_set(m, x, m->called[x]);
                ck_assert_int_eq(pins_accept(&pins, s, node, 5), 0);
                ck_assert_ptr_null(find_claim(s, guid_of(x)));
                return true;
        case DROP:
                if (x > 0 || y == NONE || y == ABSENT)
                        return false;
                ck_assert_int_eq(pins_drop(&pins, words[y]), is_taken(m, (uint8_t) y));
                for (int i = 0; i < N_NODES; i++)
                        m->pinned[i] = m->pinned[i] == y ? NONE : m->pinned[i];
                return true;
        case MOVE: /* the pin of y to x */
                if (y >= N_NODES || m->pinned[y] == NONE || m->called[x] == ABSENT)
                        return false;
                before = m->pinned[y];
                model_set(m, x, before);
                ck_assert_int_eq(pins_move(&pins, (struct guid) { guid_of(y) }, s, node, 5), 0);
                return true;
        case N_CHANGES:
                break;
        }
        return false;
}

static unsigned number_of(const struct model *m)
{
        unsigned number = 0;

        for (int i = 0; i < N_NODES; i++)
                number = number * 16 + m->pinned[i] * 4u + m->called[i];
        return number;
}

static struct model model_of(unsigned number)
{
        struct model m;

        for (int i = N_NODES; i-- > 0; number /= 16) {
                m.pinned[i] = (uint8_t) (number / 4 % 4);
                m.called[i] = (uint8_t) (number % 4);
        }
        return m;
}

static void check_rename(const struct model *before, const struct model *after, int node)
{
        if (before->pinned[node] != NONE)
                ck_assert_int_eq(model_name(after, node), before->pinned[node]);
        for (int i = 0; i < N_NODES; i++)
                if (i != node && before->pinned[i] != NONE)
                        ck_assert_int_eq(after->pinned[i], before->pinned[i]);
}

static bool try_change(unsigned number, enum change kind, int x, int y, unsigned *ret)
{
        struct model m = model_of(number), before = m;
        uint8_t store[N_NODES];
        struct subnet *s;
        bool possible;

        memcpy(store, m.pinned, sizeof(store));
        take_model(&m);
        possible = change(&m, kind, x, y);
        if (!possible)
                return false;
        s = fabric_of(&m);
        compare(&m, s, (put_all(store), store)); /* the view of a policy that is only planned, before names are bound */
        model_sweep(&m);
        sweep(s);
        put_all(store);
        compare(&m, s, store);
        check_nobody_has_two(&m);
        if (kind == CALL)
                check_rename(&before, &m, x);
        *ret = number_of(&m);
        return true;
}

START_TEST(test_every_state)
{
        static bool seen[4096];
        static unsigned todo[4096];
        struct model first = { .called = { ABSENT, ABSENT, ABSENT } };
        unsigned n = 0, next;

        memset(seen, 0, sizeof(seen));
        todo[n++] = number_of(&first);
        seen[todo[0]] = true;
        for (unsigned i = 0; i < n; i++) {
                struct arena *own = arena;

                arena = arena_new();
                for (int k = 0; k < N_CHANGES * N_NODES * 4; k++)
                        if (try_change(todo[i], (enum change) (k / (N_NODES * 4)), k / 4 % N_NODES, k % 4, &next) && !seen[next]) {
                                seen[next] = true;
                                todo[n++] = next;
                        }
                arena_free(arena);
                arena = own;
        }
        ck_assert_uint_gt(n, 500);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("pins");
        TCase *tc = tcase_create("cases"), *all = tcase_create("every state");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(tc, begin, end);
        tcase_add_test(tc, test_adapters);
        tcase_add_test(tc, test_devices);
        tcase_add_test(tc, test_another_device);
        tcase_add_test(tc, test_move_to_another_device);
        tcase_add_test(tc, test_twins);
        tcase_add_loop_test(tc, test_unnamed, 0, ELEMENTS(unnamed));
        tcase_add_test(tc, test_names_that_look_unnamed);
        tcase_add_test(tc, test_incomplete);
        tcase_add_test(tc, test_boards);
        tcase_add_test(tc, test_types);
        tcase_add_test(tc, test_take_back);
        tcase_add_loop_test(tc, test_texts, 0, ELEMENTS(texts));
        tcase_add_test(tc, test_findings);
        tcase_add_checked_fixture(all, begin, end);
        tcase_set_timeout(all, 120);
        tcase_add_test(all, test_every_state);
        suite_add_tcase(suite, tc);
        suite_add_tcase(suite, all);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
