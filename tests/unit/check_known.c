/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "subnet/known.h"

#define DAY 86400u

static const char both[] = "vendid=0x0\ndevid=0x0\nsysimgguid=0x10\nswitchguid=0x10(10)\n"
                           "Switch 4 \"S-0000000000000010\" # \"leaf01\" base port 0 lid 9 lmc 0\n"
                           "[1] \"H-0000000000000020\"[1](21) # \"node1 mlx5_0\" lid 1\n"
                           "[2] \"H-0000000000000030\"[1](31) # \"node2 mlx5_0\" lid 2\n\n"
                           "vendid=0x0\ndevid=0x0\nsysimgguid=0x20\ncaguid=0x20\n"
                           "Ca 1 \"H-0000000000000020\" # \"node1 mlx5_0\"\n"
                           "[1](21) \"S-0000000000000010\"[1] # lid 1 lmc 0 \"leaf01\" lid 9\n\n"
                           "vendid=0x0\ndevid=0x0\nsysimgguid=0x30\ncaguid=0x30\n"
                           "Ca 1 \"H-0000000000000030\" # \"node2 mlx5_0\"\n"
                           "[1](31) \"S-0000000000000010\"[2] # lid 2 lmc 0 \"leaf01\" lid 9\n";
static const char one[] = "vendid=0x0\ndevid=0x0\nsysimgguid=0x10\nswitchguid=0x10(10)\n"
                          "Switch 4 \"S-0000000000000010\" # \"leaf01\" base port 0 lid 9 lmc 0\n"
                          "[1] \"H-0000000000000020\"[1](21) # \"node1 mlx5_0\" lid 1\n\n"
                          "vendid=0x0\ndevid=0x0\nsysimgguid=0x20\ncaguid=0x20\n"
                          "Ca 1 \"H-0000000000000020\" # \"node1 mlx5_0\"\n"
                          "[1](21) \"S-0000000000000010\"[1] # lid 1 lmc 0 \"leaf01\" lid 9\n";

static struct arena *arena;
static struct findings findings;
static struct known k;

static void setup(void)
{
        arena = arena_new();
        findings = (struct findings) { .arena = arena };
        k = (struct known) {};
}

static void teardown(void)
{
        known_done(&k);
        findings_done(&findings);
        arena_free(arena);
}

static struct subnet *snapshot_of(const char *text)
{
        struct subnet *s = NULL;

        ck_assert_int_eq(subnet_parse_topology(arena, "t", text, strlen(text), &findings, &s), 0);
        return s;
}

/* A sweep, while both clocks are right. */
static int learn(const struct subnet *subnet, uint64_t seconds)
{
        return known_learn(&k, subnet, seconds * USEC_PER_SEC, seconds);
}

START_TEST(test_absent_ports_stand_where_they_were)
{
        struct subnet *s, *now = snapshot_of(one);
        uint32_t port;

        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        ck_assert_uint_eq(k.n, 3);
        ck_assert_int_eq(learn(now, 1000 * DAY + 60), 0);
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        port = subnet_find_endport(s, (struct guid) { 0x31 });
        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_str_eq(subnet_port_node(s, &s->ports[port])->name, "node2");
        ck_assert_str_eq(subnet_port_node(s, &s->ports[port])->device, "mlx5_0");
        ck_assert_uint_ne(s->ports[port].peer, SUBNET_NONE);
        ck_assert_uint_eq(s->ports[s->ports[port].peer].number, 2);
        /* nothing is lost of those that are there */
        port = subnet_find_endport(s, (struct guid) { 0x21 });
        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_uint_eq(s->ports[s->ports[port].peer].number, 1);
        ck_assert_uint_eq(s->n_ports, now->n_ports + 2);
}
END_TEST

/* An unknown GUID in the policy is a separate port; the GUID of a known port or node is that one. */
START_TEST(test_named_ports)
{
        static const struct guid named[] = { { 0x20 }, { 0x21 }, { 0x30 }, { 0x31 }, { 0x77 }, { 0x10 } };
        struct subnet *s, *now = snapshot_of(one);
        uint32_t port;

        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        ck_assert_int_eq(known_extend_named(arena, &k, now, named, ELEMENTS(named), NODE_UNKNOWN, &s), 0);
        ck_assert_uint_eq(s->n_ports, now->n_ports + 3);
        port = subnet_find_endport(s, named[4]);
        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_int_eq(subnet_port_node(s, &s->ports[port])->type, NODE_UNKNOWN);
        ck_assert_str_eq(subnet_port_label(arena, s, port), "a port that was never seen");
        ck_assert_uint_eq(s->ports[port].peer, SUBNET_NONE);
        ck_assert_int_eq(known_extend_named(arena, &k, now, named, 4, NODE_UNKNOWN, &s), 0);
        ck_assert_uint_eq(s->n_ports, now->n_ports + 2);
}
END_TEST

START_TEST(test_a_place_that_was_taken)
{
        struct subnet *s, *now = snapshot_of(both);
        struct known_port port = { { 0x40 }, { 0x41 }, NODE_CA, 1, "node3 mlx5_0", { 0x10 }, 2, 1000 * DAY };
        uint32_t at;

        ck_assert_int_eq(known_add(&k, &port), 0);
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        at = subnet_find_endport(s, port.port_guid);
        ck_assert_uint_ne(at, SUBNET_NONE);
        ck_assert_uint_eq(s->ports[at].peer, SUBNET_NONE);
        at = subnet_find_endport(s, (struct guid) { 0x31 });
        ck_assert_uint_ne(s->ports[at].peer, SUBNET_NONE);
}
END_TEST

/* Of two that were there one after the other it is the later one's, whatever their GUIDs are. */
START_TEST(test_the_last_one_has_the_place)
{
        struct known_port earlier = { { 0x30 }, { 0x31 }, NODE_CA, 1, "node2 mlx5_0", { 0x10 }, 2, 1000 * DAY };
        struct known_port later = { { 0x40 }, { 0x41 }, NODE_CA, 1, "node3 mlx5_0", { 0x10 }, 2, 1000 * DAY };
        struct subnet *s;

        for (unsigned last = 0; last < 2; last++) {
                earlier.seen = 1000 * DAY + last;
                later.seen = 1000 * DAY + 1 - last;
                ck_assert_int_eq(known_add(&k, &earlier), 0);
                ck_assert_int_eq(known_add(&k, &later), 0);
                ck_assert_int_eq(known_extend(arena, &k, snapshot_of(one), &s), 0);
                ck_assert_int_eq(s->ports[subnet_find_endport(s, earlier.port_guid)].peer != SUBNET_NONE, last);
                ck_assert_int_eq(s->ports[subnet_find_endport(s, later.port_guid)].peer != SUBNET_NONE, !last);
        }
}
END_TEST

static const char host_only[] = "vendid=0x0\ndevid=0x0\nsysimgguid=0x20\ncaguid=0x20\n"
                                "Ca 1 \"H-0000000000000020\" # \"node1 mlx5_0\"\n";

START_TEST(test_an_absent_switch_has_its_ports)
{
        struct subnet *s;
        uint32_t port;

        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        ck_assert_int_eq(known_extend(arena, &k, snapshot_of(host_only), &s), 0);
        port = subnet_find_endport(s, (struct guid) { 0x31 });
        ck_assert_uint_ne(port, SUBNET_NONE);
        ck_assert_uint_ne(s->ports[port].peer, SUBNET_NONE);
        ck_assert_str_eq(subnet_port_node(s, &s->ports[s->ports[port].peer])->name, "leaf01");
        ck_assert_uint_eq(s->ports[s->ports[port].peer].number, 2);
}
END_TEST

/* Its description was not answered: it has the one that it had. */
START_TEST(test_an_incomplete_node_is_what_it_was)
{
        struct subnet *s, *now = snapshot_of(both);
        uint32_t node = subnet_find_node(now, (struct guid) { 0x30 });

        ck_assert_int_eq(learn(now, 1000 * DAY), 1);
        now->nodes[node].incomplete = true;
        now->nodes[node].description = now->nodes[node].name = now->nodes[node].device = "";
        ck_assert_int_eq(learn(now, 1000 * DAY), 0);
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        node = subnet_find_node(s, (struct guid) { 0x30 });
        ck_assert_str_eq(s->nodes[node].name, "node2");
        ck_assert(!s->nodes[node].incomplete);
}
END_TEST

/* A sweep each day. */
static void learn_daily(const struct subnet *subnet, unsigned first, unsigned last)
{
        for (unsigned day = first; day <= last; day++)
                ck_assert_int_ge(learn(subnet, day * DAY), 0);
}

START_TEST(test_forgetting)
{
        struct subnet *now = snapshot_of(one);

        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        learn_daily(now, 1001, 1001 + KNOWN_DAYS); /* it counts from the first sweep that missed it */
        ck_assert_uint_eq(k.n, 3);
        ck_assert_int_eq(learn(now, (1001 + KNOWN_DAYS) * DAY + 1), 1);
        ck_assert_uint_eq(k.n, 2);
        ck_assert_ptr_null(known_find(&k, (struct guid) { 0x31 }));
        ck_assert_uint_eq(k.n_gone, 1);
        ck_assert_uint_eq(k.gone[0].v, 0x31);
}
END_TEST

/* Who was there for one sweep is absent anew. */
START_TEST(test_back_for_a_moment)
{
        struct subnet *now = snapshot_of(one), *whole = snapshot_of(both);

        ck_assert_int_eq(learn(whole, 1000 * DAY), 1);
        learn_daily(now, 1001, 1000 + KNOWN_DAYS);
        known_stored(&k);
        ck_assert_int_eq(learn(whole, (1000 + KNOWN_DAYS) * DAY + 1), 1);
        ck_assert(!known_find(&k, (struct guid) { 0x31 })->is_stored);
        learn_daily(now, 1001 + KNOWN_DAYS, 1001 + 2 * KNOWN_DAYS);
        ck_assert_uint_eq(k.n, 3);
        /* one that answers only some queries is not absent */
        whole->nodes[subnet_find_node(whole, (struct guid) { 0x30 })].incomplete = true;
        learn_daily(whole, 1002 + 2 * KNOWN_DAYS, 1002 + 4 * KNOWN_DAYS);
        ck_assert_uint_eq(k.n, 3);
}
END_TEST

/* Steps of the wall clock, and back: no port is forgotten, or kept forever. */
START_TEST(test_a_wall_clock_that_is_set)
{
        static const int64_t offsets[] = { 0, 100, -2, 36500, -999, -1000, 0, 91 };
        struct subnet *now = snapshot_of(one);
        usec_t clock = DAY * USEC_PER_SEC;

        ck_assert_int_eq(known_learn(&k, snapshot_of(both), clock, 1000 * DAY), 1);
        for (unsigned i = 0; i < 1000; i++) {
                int64_t wall = (1000 + offsets[i % ELEMENTS(offsets)]) * DAY + i;

                ck_assert_int_ge(known_learn(&k, now, clock += USEC_PER_SEC, (uint64_t) wall), 0);
                ck_assert_uint_eq(k.n, 3);
                ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->seen, 1000 * DAY);
                ck_assert_uint_eq(known_find(&k, (struct guid) { 0x21 })->seen, (uint64_t) wall);
        }
        for (unsigned day = 0; day <= KNOWN_DAYS; day++)
                ck_assert_int_ge(known_learn(&k, now, clock += DAY * USEC_PER_SEC, day), 0);
        ck_assert_uint_eq(k.n, 2);
}
END_TEST

/* No process ran, or none of its sweeps succeeded: absences meanwhile are not known. */
START_TEST(test_time_without_sweeps)
{
        struct known stored = {};
        struct subnet *now = snapshot_of(one);

        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        ck_assert_int_ge(learn(now, 1000 * DAY + 60), 0);
        ck_assert_int_ge(learn(now, 2000 * DAY), 0);
        ck_assert_uint_eq(k.n, 3);
        ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->absent, DAY * USEC_PER_SEC);
        for (uint32_t i = 0; i < k.n; i++)
                ck_assert_int_eq(known_add(&stored, &k.ports[i]), 0);
        known_done(&k);
        k = stored;
        ck_assert_int_ge(known_learn(&k, now, 5 * USEC_PER_SEC, 3000 * DAY), 0); /* after the host was started again */
        ck_assert_int_ge(known_learn(&k, now, 4 * USEC_PER_SEC, 3000 * DAY), 0);
        ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->absent, DAY * USEC_PER_SEC);
}
END_TEST

/* The clock was wrong when the later one was there. */
START_TEST(test_later_in_spite_of_the_clock)
{
        struct known_port earlier = { .seen = 2000 * DAY, .absent = 3 }, later = { .seen = 1000 * DAY, .absent = 2 };

        ck_assert(known_is_later(&later, &earlier) && !known_is_later(&earlier, &later));
        later.absent = 3;
        ck_assert(known_is_later(&earlier, &later) && !known_is_later(&later, &earlier));
        ck_assert(!known_is_later(&later, &later));
}
END_TEST

/* How many are to be stored. */
static unsigned n_unstored(void)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < k.n; i++)
                n += !k.ports[i].is_stored;
        return n;
}

START_TEST(test_what_is_to_be_stored)
{
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        ck_assert_uint_eq(n_unstored(), 3);
        known_stored(&k);
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY + 60), 0);
        ck_assert_uint_eq(n_unstored(), 0);
        k.ports[1].switch_port++; /* it was elsewhere */
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY + 60), 1);
        ck_assert_uint_eq(n_unstored(), 1);
        ck_assert_int_eq(learn(snapshot_of(one), 1002 * DAY), 1);
        ck_assert_uint_eq(n_unstored(), 3);
        known_stored(&k);
        for (unsigned minute = 1; minute < 60; minute++)
                ck_assert_int_eq(learn(snapshot_of(one), 1002 * DAY + minute * 60), 0);
        ck_assert_int_eq(learn(snapshot_of(one), 1002 * DAY + 3600), 1); /* for how long it is absent */
        ck_assert_uint_eq(n_unstored(), 1);
        learn_daily(snapshot_of(one), 1003, 1003 + KNOWN_DAYS);
        ck_assert_uint_eq(k.n_gone, 1);
        ck_assert_uint_eq(k.gone[0].v, 0x31);
        known_stored(&k);
        ck_assert_uint_eq(k.n_gone, 0);
        known_unstore(&k);
        ck_assert_uint_eq(n_unstored(), 2);
}
END_TEST

/* Of a port that was known and is described anew nothing is new; what was not reported stays new. */
START_TEST(test_what_is_new)
{
        ck_assert_int_eq(learn(snapshot_of(one), 1000 * DAY), 1);
        ck_assert(known_find(&k, (struct guid) { 0x21 })->is_new);
        ck_assert_ptr_null(known_find(&k, (struct guid) { 0x31 }));
        ck_assert_ptr_null(known_find(&k, (struct guid) { 0x20 }));
        known_reported(&k);
        ck_assert_int_eq(learn(snapshot_of(both), 1002 * DAY), 1);
        ck_assert(!known_find(&k, (struct guid) { 0x21 })->is_new);
        ck_assert(known_find(&k, (struct guid) { 0x31 })->is_new);
        ck_assert_int_eq(learn(snapshot_of(both), 1004 * DAY), 1);
        ck_assert(known_find(&k, (struct guid) { 0x31 })->is_new);
        known_reported(&k);
        ck_assert_int_eq(learn(snapshot_of(one), 1004 * DAY), 0);
        ck_assert_int_eq(learn(snapshot_of(both), 1006 * DAY), 1);
        ck_assert(!known_find(&k, (struct guid) { 0x31 })->is_new);
}
END_TEST

/* To the sweep, while pkeyd runs; and then the store is to have it. */
START_TEST(test_last_seen)
{
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        known_stored(&k);
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY + 600), 0);
        ck_assert_uint_eq(n_unstored(), 0);
        ck_assert_int_eq(learn(snapshot_of(one), 1000 * DAY + 660), 1);
        ck_assert_uint_eq(known_find(&k, (struct guid) { 0x21 })->seen, 1000 * DAY + 660);
        ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->seen, 1000 * DAY + 600);
        ck_assert(!known_find(&k, (struct guid) { 0x31 })->is_stored);
        ck_assert_uint_eq(n_unstored(), 1);
        known_stored(&k);
        ck_assert_int_eq(learn(snapshot_of(one), 1000 * DAY + 720), 0);
        ck_assert_int_eq(learn(snapshot_of(one), 1001 * DAY + 1), 1); /* those that are there, for once in a day */
        ck_assert_uint_eq(n_unstored(), 3);
}
END_TEST

/* Two switches, and the host that is described here. It is the local port, and the SM runs on a switch. */
static struct subnet *snapshot_with(const struct known_port *host)
{
        struct subnet_node node = { .guid = host->node_guid, .type = host->type };
        struct subnet_port port = { .number = host->number, .guid = host->port_guid };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, host->description, strlen(host->description)), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        for (uint64_t guid = 0x10; guid <= 0x11; guid++) {
                node = (struct subnet_node) { .guid = { guid }, .type = NODE_SWITCH };
                port = (struct subnet_port) { .guid = { guid } };
                ck_assert_int_eq(subnet_builder_add_node(b, &node, "leaf", 4), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        }
        port = (struct subnet_port) { .number = host->switch_port };
        ck_assert_int_eq(subnet_builder_add_port(b, host->switch_guid, &port), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, host->node_guid, host->number, host->switch_guid, host->switch_port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, host->node_guid, host->number, (struct guid) { 0x11 }, 0, &s), 0);
        return s;
}

static void assert_same_port(const struct known_port *x, const struct known_port *y)
{
        ck_assert_uint_eq(x->node_guid.v, y->node_guid.v);
        ck_assert_uint_eq(x->port_guid.v, y->port_guid.v);
        ck_assert_int_eq(x->type, y->type);
        ck_assert_uint_eq(x->number, y->number);
        ck_assert_str_eq(x->description, y->description);
        ck_assert_uint_eq(x->switch_guid.v, y->switch_guid.v);
        ck_assert_uint_eq(x->switch_port, y->switch_port);
}

/* Whatever else is true of a port than before is learned and is to be stored, and nothing of any other port. */
START_TEST(test_each_change_is_learned)
{
        static const struct known_port before = { { 0x20 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 1 };
        static const struct known_port changes[] = {
                { { 0x20 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x11 }, 1 },     /* the same port of another switch */
                { { 0x20 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 2 },
                { { 0x20 }, { 0x21 }, NODE_CA, 1, "node7 mlx5_0", { 0x10 }, 1 },     /* renamed */
                { { 0x20 }, { 0x21 }, NODE_CA, 2, "node1 mlx5_0", { 0x10 }, 1 },
                { { 0x20 }, { 0x21 }, NODE_ROUTER, 1, "node1 mlx5_0", { 0x10 }, 1 },
                { { 0x22 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 1 },
        };

        for (unsigned i = 0; i < ELEMENTS(changes); i++) {
                ck_assert_int_eq(learn(snapshot_with(&before), 1000 * DAY), 1);
                known_stored(&k);
                ck_assert_int_eq(learn(snapshot_with(&before), 1000 * DAY + 60), 0);
                ck_assert_msg(learn(snapshot_with(&changes[i]), 1000 * DAY + 120) == 1, "change %u", i);
                assert_same_port(known_find(&k, before.port_guid), &changes[i]);
                ck_assert(!known_find(&k, before.port_guid)->is_stored);
                ck_assert_uint_eq(n_unstored(), 1);
                known_done(&k);
        }
}
END_TEST

/* A name is the same in the larger snapshot, of ports that are there and of those that are not, whatever bytes it has. */
START_TEST(test_odd_names_stay)
{
        static const char *const names[] = { "node\\ mlx5_0", "n\xf6" "de\tmlx5_0", "a\nb", "  x y  ", "MF0;l\xe9" "af:MQM8700/U1",
                                             "\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe z" };

        for (unsigned i = 0; i < ELEMENTS(names); i++) {
                struct known_port there = { { 0x20 }, { 0x21 }, NODE_CA, 1, "", { 0x10 }, 1 }, gone = there;
                struct subnet *now, *s;

                (void) snprintf(there.description, sizeof(there.description), "%s", names[i]);
                now = snapshot_with(&there);
                ck_assert_int_ge(learn(now, 1000 * DAY), 1);
                gone.node_guid.v = 0x30;
                gone.port_guid.v = 0x31;
                gone.switch_port = 2;
                (void) snprintf(gone.description, sizeof(gone.description), "%s", known_description(&k, (struct guid) { 0x20 }));
                ck_assert_int_eq(known_add(&k, &gone), 0);
                ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
                for (uint64_t guid = 0x20; guid <= 0x30; guid += 0x10) {
                        const struct subnet_node *want = &now->nodes[subnet_find_node(now, (struct guid) { 0x20 })];
                        const struct subnet_node *got = &s->nodes[subnet_find_node(s, (struct guid) { guid })];

                        ck_assert_str_eq(got->description, want->description);
                        ck_assert_str_eq(got->name, want->name);
                        ck_assert_str_eq(got->device, want->device);
                }
                known_done(&k);
        }
}
END_TEST

/* Of those that are gone, the one that was at this port of this switch, whether the switch is there or not. */
START_TEST(test_last_one_at_a_place)
{
        static const struct known_port there = { { 0x20 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 9 };
        const struct subnet *s = snapshot_with(&there);

        /* the greater the GUID of a switch, the later its hosts were seen */
        for (uint64_t leaf = 0x10; leaf <= 0x12; leaf++)
                for (uint8_t number = 1; number <= 2; number++) {
                        struct known_port gone = { .node_guid = { 0x100 * leaf + number }, .port_guid = { 0x100 * leaf + number },
                                                   .type = NODE_CA, .number = 1, .switch_guid = { leaf }, .switch_port = number,
                                                   .seen = leaf };

                        ck_assert_int_eq(known_add(&k, &gone), 0);
                }
        for (uint64_t leaf = 0x10; leaf <= 0x12; leaf++) {
                for (uint8_t number = 1; number <= 2; number++) {
                        const struct known_port *p = known_find_at(&k, s, (struct subnet_place) { { leaf }, number });

                        ck_assert_ptr_nonnull(p);
                        ck_assert_uint_eq(p->port_guid.v, 0x100 * leaf + number);
                }
                ck_assert_ptr_null(known_find_at(&k, s, (struct subnet_place) { { leaf }, 3 }));
        }
        ck_assert_ptr_null(known_find_at(&k, s, (struct subnet_place) { { 0x13 }, 1 }));
}
END_TEST

/* Of a node that answers everything nothing else is true than what it answered, whatever it was called before. */
START_TEST(test_a_complete_node_is_what_it_says)
{
        static const struct known_port before = { { 0x20 }, { 0x21 }, NODE_CA, 1, "node7 mlx5_0", { 0x11 }, 3 };
        struct subnet *s;

        ck_assert_int_eq(known_add(&k, &before), 0);
        ck_assert_int_eq(known_extend(arena, &k, snapshot_of(one), &s), 0);
        ck_assert_str_eq(s->nodes[subnet_find_node(s, (struct guid) { 0x20 })].name, "node1");
}
END_TEST

/* What was a switch, and is none now, has no ports into which anybody was plugged. */
START_TEST(test_a_switch_that_became_something_else)
{
        static const struct known_port gone = { { 0x40 }, { 0x41 }, NODE_CA, 1, "node3 mlx5_0", { 0x20 }, 5 };
        struct subnet *s, *now = snapshot_of(one);

        ck_assert_int_eq(known_add(&k, &gone), 0);
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        ck_assert_uint_eq(s->n_ports, now->n_ports + 1);
        ck_assert_uint_eq(s->ports[subnet_find_endport(s, gone.port_guid)].peer, SUBNET_NONE);
}
END_TEST

/* Of two ports that were seen in the same second, every query gives the same one the place. */
START_TEST(test_seen_at_the_same_time)
{
        struct subnet *s, *now = snapshot_of(one);
        const struct known_port *last;

        for (uint64_t guid = 0x41; guid <= 0x44; guid++) {
                struct known_port gone = { { guid }, { guid }, NODE_CA, 1, "node3 mlx5_0", { 0x10 }, 2, 1000 * DAY };

                ck_assert_int_eq(known_add(&k, &gone), 0);
        }
        last = known_find_at(&k, now, (struct subnet_place) { { 0x10 }, 2 });
        ck_assert_ptr_nonnull(last);
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        ck_assert_uint_ne(s->ports[subnet_find_endport(s, last->port_guid)].peer, SUBNET_NONE);
}
END_TEST

/* The local port and the SM are the same in the larger snapshot. */
START_TEST(test_self_and_sm_stay)
{
        static const struct known_port host = { { 0x20 }, { 0x21 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 1 };
        static const struct known_port gone = { { 0x08 }, { 0x09 }, NODE_CA, 1, "node0 mlx5_0", { 0x10 }, 2 };
        struct subnet *now = snapshot_with(&host), *s;

        ck_assert_int_eq(known_add(&k, &gone), 0);
        for (unsigned swapped = 0; swapped < 2; swapped++) {
                uint32_t self = now->self;

                ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
                ck_assert_uint_ne(s->self, SUBNET_NONE);
                ck_assert_uint_ne(s->sm, SUBNET_NONE);
                ck_assert_uint_eq(s->ports[s->self].guid.v, swapped ? 0x11 : 0x21);
                ck_assert_uint_eq(s->ports[s->sm].guid.v, swapped ? 0x21 : 0x11);
                now->self = now->sm;
                now->sm = self;
        }
        now->self = now->sm = SUBNET_NONE;
        ck_assert_int_eq(known_extend(arena, &k, now, &s), 0);
        ck_assert(s->self == SUBNET_NONE && s->sm == SUBNET_NONE);
}
END_TEST

/* A port without a GUID has no name by which anybody could find it again. */
START_TEST(test_without_a_guid)
{
        static const struct known_port host = { { 0x20 }, { 0 }, NODE_CA, 1, "node1 mlx5_0", { 0x10 }, 1 };

        ck_assert_int_eq(learn(snapshot_with(&host), 1000 * DAY), 1);
        ck_assert_uint_eq(k.n, 2);
        ck_assert_ptr_null(known_find(&k, (struct guid) { 0 }));
}
END_TEST

/* Each absence counts from the first sweep that missed the port. */
START_TEST(test_absent_again)
{
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 1);
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_int_ge(learn(snapshot_of(one), 1000 * DAY + 300 * i + 60), 0);
                ck_assert(known_find(&k, (struct guid) { 0x31 })->is_absent);
                ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->absent, 0);
                if (i > 0)
                        ck_assert_int_ge(learn(snapshot_of(one), 1000 * DAY + 300 * i + 120), 0);
                ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->absent, i > 0 ? 60 * USEC_PER_SEC : 0);
                ck_assert_int_ge(learn(snapshot_of(both), 1000 * DAY + 300 * i + 180), 0);
                ck_assert(!known_find(&k, (struct guid) { 0x31 })->is_absent);
        }
}
END_TEST

/* A clock that was set back by more than a day is news, too: else the store would keep the time that is in the future. */
START_TEST(test_seen_before_it_was_noted)
{
        usec_t now = DAY * USEC_PER_SEC;

        ck_assert_int_eq(known_learn(&k, snapshot_of(both), now, 2000 * DAY), 1);
        known_stored(&k);
        ck_assert_int_eq(known_learn(&k, snapshot_of(both), now + 60 * USEC_PER_SEC, 1999 * DAY), 0);
        ck_assert_uint_eq(n_unstored(), 0);
        ck_assert_int_eq(known_learn(&k, snapshot_of(both), now + 120 * USEC_PER_SEC, 1999 * DAY - 1), 1);
        ck_assert_uint_eq(n_unstored(), 3);
        ck_assert_uint_eq(known_find(&k, (struct guid) { 0x31 })->noted, 1999 * DAY - 1);
}
END_TEST

START_TEST(test_labels)
{
        static const struct {
                struct known_port port;
                const char *label;
        } cases[] = {
                { { { 0x20 }, { 0x22 }, NODE_CA, 2, "node1 mlx5_0" }, "node1 mlx5_0/2" },
                { { { 0x10 }, { 0x10 }, NODE_SWITCH, 0, "leaf01" }, "leaf01/0" },
                { { { 0x20 }, { 0x22 }, NODE_CA, 2, "" }, "0x0000000000000022" },
        };

        for (unsigned i = 0; i < ELEMENTS(cases); i++)
                ck_assert_str_eq(known_port_label(arena, &cases[i].port), cases[i].label);
}
END_TEST

/* No more than KNOWN_MAX: those that are known still change, new ones are not taken, and that is no news in each sweep. */
START_TEST(test_as_many_as_may_be)
{
        struct known_port port = { .type = NODE_CA, .number = 1, .seen = 1000 * DAY, .noted = 1000 * DAY };

        for (uint64_t i = 0; i < KNOWN_MAX; i++) {
                port.node_guid = port.port_guid = (struct guid) { 0x100 + i };
                ck_assert_int_eq(known_add(&k, &port), 0);
        }
        port.port_guid.v++;
        ck_assert_int_eq(known_add(&k, &port), -ENOSPC);
        ck_assert_uint_eq(k.n, KNOWN_MAX);
        port.port_guid.v--;
        port.number = 2;
        ck_assert_int_eq(known_add(&k, &port), 0);
        ck_assert_uint_eq(known_find(&k, port.port_guid)->number, 2);
        ck_assert_int_eq(learn(snapshot_of(both), 1000 * DAY), 0);
        ck_assert_uint_eq(k.n, KNOWN_MAX);
        ck_assert_ptr_null(known_find(&k, (struct guid) { 0x31 }));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("known");
        TCase *c = tcase_create("known");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, test_absent_ports_stand_where_they_were);
        tcase_add_test(c, test_named_ports);
        tcase_add_test(c, test_a_place_that_was_taken);
        tcase_add_test(c, test_the_last_one_has_the_place);
        tcase_add_test(c, test_an_absent_switch_has_its_ports);
        tcase_add_test(c, test_an_incomplete_node_is_what_it_was);
        tcase_add_test(c, test_forgetting);
        tcase_add_test(c, test_back_for_a_moment);
        tcase_add_test(c, test_a_wall_clock_that_is_set);
        tcase_add_test(c, test_time_without_sweeps);
        tcase_add_test(c, test_later_in_spite_of_the_clock);
        tcase_add_test(c, test_what_is_to_be_stored);
        tcase_add_test(c, test_what_is_new);
        tcase_add_test(c, test_last_seen);
        tcase_add_test(c, test_each_change_is_learned);
        tcase_add_test(c, test_odd_names_stay);
        tcase_add_test(c, test_last_one_at_a_place);
        tcase_add_test(c, test_a_complete_node_is_what_it_says);
        tcase_add_test(c, test_a_switch_that_became_something_else);
        tcase_add_test(c, test_seen_at_the_same_time);
        tcase_add_test(c, test_self_and_sm_stay);
        tcase_add_test(c, test_without_a_guid);
        tcase_add_test(c, test_absent_again);
        tcase_add_test(c, test_seen_before_it_was_noted);
        tcase_add_test(c, test_labels);
        tcase_add_test(c, test_as_many_as_may_be);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
