/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Knowledge, by enumeration: ports that are read, silent, absent, never read, wiped, written to without an answer, and behind
 * filters of
 * which little is known. What the knowledge admits is done to a model of the hardware, which knows nothing of records and
 * bounds: who sends to whom before and by the policy sends to it afterwards, and who does neither before nor by the policy does not
 * afterwards.
 *
 * One write is enough: each state of the hardware, with everything that can be known of it, is one that it begins in, so each
 * longer history is a chain of such steps. That what is known stays true of the hardware is tried at each step, too.
 *
 * Every three ports without filters and every port behind a filter beside any other one, in one base; and a sample of all four
 * ports, two bases.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge_fixture.h"

#define BASES 2

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some hundred thousand times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

enum known_how {
        READ,        /* now */
        READ_SENT,   /* now, and then something was sent to it, without an answer */
        BEFORE,      /* before the last discovery; it may be empty since */
        BEFORE_SENT, /* likewise, with such a write */
        NEVER,
        N_KNOWN,
};

struct table {
        enum known_how known;
        uint8_t read[BASES], sent[BASES]; /* levels */
        uint8_t holds[BASES];             /* in the hardware */
        uint8_t behind[BASES];            /* its second block was read to hold this */
        bool emptied;                     /* and then it was emptied, without an answer */
        uint8_t holds_behind[BASES];      /* in the hardware */
};

struct port {
        uint8_t policy[BASES];
        bool frozen;                     /* of the policy only this is known: */
        uint8_t least[BASES], most[BASES];
        bool most_is_held;               /* it may be what the table holds, too */
        enum knowledge_presence presence;
        struct table tables[2];           /* the host's, its leaf port's */
        bool filters[N_DIRECTIONS];       /* in the hardware */
        bool filters_unsure;
};

struct hardware {
        struct port ports[HOSTS];
        unsigned n_bases;
};

static struct arena *kept;
static struct subnet *subnets[ALL + 1][ALL + 1]; /* by who is there, who is silent */
static uint64_t seed;

static unsigned any(unsigned n)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned) (seed >> 33) % n;
}

static struct subnet *subnet_of(unsigned there, unsigned silent)
{
        struct subnet **s = &subnets[there][silent];

        arena = kept;
        if (!*s)
                *s = make_subnet(&(struct scene) { .there = there, .silent = silent });
        return *s;
}

/* --- what is known ------------------------------------------------------------------------------------------------------- */

static void fill(const uint8_t levels[BASES], struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        memset(ret, 0, P_KEY_BLOCK_ENTRIES * sizeof(*ret));
        for (uint16_t b = 0; b < BASES; b++)
                if (levels[b] != LEVEL_NONE)
                        ret[b] = p_key_make((uint16_t) (b + 1), levels[b] == LEVEL_FULL);
}

static uint32_t record_of(unsigned host, unsigned table)
{
        return table ? leaf_record(host) : host_record(host);
}

static void send_unanswered(uint32_t record, const struct table *t)
{
        const uint8_t nothing[BASES] = {};
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        fill(t->sent, block);
        if (t->known == READ_SENT || t->known == BEFORE_SENT)
                REQUIRE(knowledge_expect_block(k, record, 0, block) == 0);
        fill(nothing, block);
        if (t->emptied)
                REQUIRE(knowledge_expect_block(k, record, 1, block) == 0);
}

/* All tables that are known so; that of the switch itself is empty. */
static void see_tables(const struct hardware *h, struct subnet *s, enum known_how known)
{
        struct observed *o;

        REQUIRE(observed_new(arena, s, &o) == 0);
        o->tables[port_at(s, SWITCH, 0)].source = TABLE_READ;
        for (unsigned i = 0; i < 2 * HOSTS; i++) {
                const struct table *t = &h->ports[i / 2].tables[i % 2];
                uint32_t port = i % 2 ? port_at(s, SWITCH, (uint8_t) (i / 2 + 1)) : port_at(s, host_guid(i / 2), 1);

                if (port == NO_PORT || (t->known != known && t->known != known + 1))
                        continue;
                fill(t->read, o->tables[port].entries);
                for (uint16_t b = 0; b < BASES; b++)
                        if (t->behind[b] != LEVEL_NONE)
                                o->tables[port].entries[P_KEY_BLOCK_ENTRIES + b] =
                                        p_key_make((uint16_t) (b + 1), t->behind[b] == LEVEL_FULL);
                o->tables[port].source = TABLE_READ;
        }
        REQUIRE(knowledge_see_tables(k, o, 0) == 0);
        for (unsigned i = 0; i < 2 * HOSTS; i++) {
                const struct table *t = &h->ports[i / 2].tables[i % 2];

                if (t->known == known || t->known == known + 1)
                        send_unanswered(record_of(i / 2, i % 2), t);
        }
}

static struct desired_port wants(const uint8_t levels[BASES])
{
        struct p_key *keys = arena_new_array(arena, struct p_key, BASES);
        uint32_t n = 0;

        for (uint16_t b = 0; b < BASES; b++)
                if (levels[b] != LEVEL_NONE)
                        keys[n++] = p_key_make((uint16_t) (b + 1), levels[b] == LEVEL_FULL);
        return (struct desired_port) { keys, n };
}

static void give_policy(const struct hardware *h, struct subnet *s)
{
        struct desired *d = arena_new_object(arena, struct desired);

        *d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (unsigned i = 0; i < HOSTS; i++) {
                struct desired_port *gives = &d->ports[port_at(s, host_guid(i), 1)], *most;
                const struct port *p = &h->ports[i];

                *gives = wants(p->frozen ? p->least : p->policy);
                if (!p->frozen)
                        continue;
                most = arena_new_object(arena, struct desired_port);
                *most = wants(p->most);
                gives->most = most;
                gives->most_is_held = p->most_is_held;
        }
        REQUIRE(knowledge_set_policy(k, d) == 0);
}

/* All are there at first, then some not any more. */
static void learn(const struct hardware *h)
{
        unsigned there = 0, silent = 0;
        struct subnet *all = subnet_of(ALL, 0), *now;

        for (unsigned i = 0; i < HOSTS; i++) {
                there |= (unsigned) (h->ports[i].presence == KNOWLEDGE_THERE) << i;
                silent |= (unsigned) (h->ports[i].presence == KNOWLEDGE_SILENT) << i;
        }
        now = subnet_of(there, silent);
        arena = arena_new();
        k = knowledge_new();
        REQUIRE(arena && k && knowledge_see_subnet(k, all, 0, 0, HOLD) == 0);
        see_tables(h, all, BEFORE);
        REQUIRE(knowledge_see_subnet(k, now, 1, 0, HOLD) == 0);
        see_tables(h, now, READ);
        for (unsigned i = 0; i < HOSTS; i++) {
                const struct port *p = &h->ports[i];

                if (p->presence != KNOWLEDGE_THERE)
                        continue;
                knowledge_see_filter(k, leaf_record(i), p->filters[SENDS], p->filters[RECEIVES]);
                if (p->filters_unsure)
                        knowledge_doubt_filter(k, leaf_record(i));
        }
        give_policy(h, all);
}

static void forget(void)
{
        k = knowledge_free(k);
        arena = arena_free(arena);
}

/* --- the hardware -------------------------------------------------------------------------------------------------------- */

static unsigned holds(const struct table *t, unsigned base)
{
        return MAX(t->holds[base], t->holds_behind[base]);
}

static unsigned level_of(const struct port *p, unsigned base, enum filter_model model, enum direction d)
{
        unsigned host = holds(&p->tables[0], base), leaf = holds(&p->tables[1], base);

        if (p->presence == KNOWLEDGE_ABSENT || !p->filters[d]) /* what is absent may come back elsewhere */
                return host;
        if (model == FILTER_BY_LEVEL)
                return MIN(host, leaf);
        return leaf ? host : LEVEL_NONE;
}

static bool sends(const struct port *from, const struct port *to, unsigned base, enum filter_model model)
{
        return levels_talk(level_of(from, base, model, SENDS), level_of(to, base, model, RECEIVES));
}

static void compare(const struct port *from, const struct port *to, const struct port *from_after, const struct port *to_after,
                    unsigned base, enum filter_model model)
{
        bool before = sends(from, to, base, model), after = sends(from_after, to_after, base, model);
        bool wanted = levels_talk(from->policy[base], to->policy[base]);
        bool present = from->presence != KNOWLEDGE_ABSENT && to->presence != KNOWLEDGE_ABSENT;

        REQUIRE(!before || !wanted || after || !present);
        REQUIRE(before || wanted || !after);
}

static void check_promises(const struct hardware *before, const struct hardware *after, unsigned port)
{
        for (unsigned other = 0; other < HOSTS; other++)
                for (unsigned b = 0; other != port && b < before->n_bases; b++)
                        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++) {
                                const struct port *x = &before->ports[port], *y = &before->ports[other];

                                compare(x, y, &after->ports[port], &after->ports[other], b, m);
                                compare(y, x, &after->ports[other], &after->ports[port], b, m);
                        }
}

static void check_bounds(const struct hardware *h)
{
        for (unsigned i = 0; i < 2 * HOSTS; i++)
                for (uint16_t b = 0; b < h->n_bases && record_of(i / 2, i % 2) != KNOWLEDGE_NONE; b++) {
                        struct bounds bounds = knowledge_table_bounds(k, record_of(i / 2, i % 2), (uint16_t) (b + 1));
                        unsigned level = holds(&h->ports[i / 2].tables[i % 2], b);

                        REQUIRE(bounds.has <= level && level <= bounds.may);
                }
}

/* --- a step -------------------------------------------------------------------------------------------------------------- */

static bool is_admitted(const struct hardware *before, unsigned port, unsigned table, const struct p_key block[P_KEY_BLOCK_ENTRIES],
                        const uint8_t levels[BASES])
{
        for (uint16_t b = 0; b < before->n_bases; b++)
                if (before->ports[port].tables[table].holds[b] != levels[b] &&
                    knowledge_judge_block(k, record_of(port, table), 0, block, (uint16_t) (b + 1)) != RULE_ADMITS)
                        return false;
        return true;
}

/* Whether it arrives or not, what is known of it is true; and again when the answer comes. */
static void carry_out(const struct hardware *before, struct hardware *after, unsigned port, unsigned table,
                      const struct p_key block[P_KEY_BLOCK_ENTRIES])
{
        REQUIRE(knowledge_expect_block(k, record_of(port, table), 0, block) == 0);
        check_bounds(before);
        check_bounds(after);
        knowledge_see_block(k, record_of(port, table), 0, block);
        check_bounds(after);
}

/* A table that was read just now (and is what it was read to be) gets these levels. Returns whether that was admitted. */
static bool try_block(const struct hardware *before, unsigned port, unsigned table, const uint8_t levels[BASES])
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct hardware after = *before;
        bool admitted;

        learn(before);
        check_bounds(before);
        fill(levels, block);
        memcpy(after.ports[port].tables[table].holds, levels, BASES);
        admitted = is_admitted(before, port, table, block, levels);
        if (admitted) {
                check_promises(before, &after, port);
                carry_out(before, &after, port, table, block);
        }
        forget();
        return admitted;
}

static bool try_filter(const struct hardware *before, unsigned port, bool inbound, bool outbound)
{
        struct hardware after = *before;
        uint16_t base;
        bool admitted;

        learn(before);
        after.ports[port].filters[SENDS] = inbound;
        after.ports[port].filters[RECEIVES] = outbound;
        admitted = knowledge_judge_filter(k, leaf_record(port), inbound, outbound, &base) == RULE_ADMITS;
        if (admitted)
                check_promises(before, &after, port);
        forget();
        return admitted;
}

/* --- every port ---------------------------------------------------------------------------------------------------------- */

/* Table number i of all there are, in one base; false: there is no such table. */
static bool get_table(unsigned i, struct table *ret)
{
        *ret = (struct table) { .known = i % N_KNOWN, .read = { i / N_KNOWN % 3 }, .sent = { i / N_KNOWN / 3 % 3 },
                                .holds = { i / N_KNOWN / 9 } };
        switch (ret->known) {
        case READ:
                return ret->sent[0] == 0 && ret->holds[0] == ret->read[0];
        case READ_SENT:
                return ret->sent[0] != ret->read[0] && (ret->holds[0] == ret->read[0] || ret->holds[0] == ret->sent[0]);
        case BEFORE:
                return ret->sent[0] == 0 && (ret->holds[0] == ret->read[0] || ret->holds[0] == LEVEL_NONE);
        case BEFORE_SENT:
                return ret->sent[0] > ret->read[0] && ret->holds[0] <= ret->sent[0];
        case NEVER:
                return ret->sent[0] == 0 && ret->read[0] == 0;
        case N_KNOWN:
                break;
        }
        return false;
}
#define N_TABLES (N_KNOWN * 27)

/* Port number i without a filter. */
static bool get_port(unsigned i, struct port *ret)
{
        unsigned presence = i / 3 % 3;

        *ret = (struct port) { .policy = { i % 3 }, .presence = (enum knowledge_presence) presence };
        if (presence != KNOWLEDGE_THERE)
                ret->tables[1].known = NEVER;
        return get_table(i / 9, &ret->tables[0]) && (presence == KNOWLEDGE_THERE || ret->tables[0].known >= BEFORE);
}
#define N_PORTS (9 * N_TABLES)

/* Port number i behind a leaf port that filters, or may. */
static bool get_filtered(unsigned i, struct port *ret)
{
        *ret = (struct port) { .policy = { i % 3 }, .filters = { i / 3 % 2, i / 6 % 2 }, .filters_unsure = i / 12 % 2 };
        i /= 24;
        return (ret->filters_unsure || ret->filters[SENDS] || ret->filters[RECEIVES]) &&
               get_table(i % N_TABLES, &ret->tables[0]) && get_table(i / N_TABLES, &ret->tables[1]);
}
#define N_FILTERED (24 * N_TABLES * N_TABLES)

/* --- the tests ----------------------------------------------------------------------------------------------------------- */

static unsigned n_tried, n_admitted;

static void count(bool admitted)
{
        n_tried++;
        n_admitted += admitted;
}

static void setup(void)
{
        kept = arena_new();
        ck_assert_ptr_nonnull(kept);
}

/* A test in which nothing is admitted, or everything, shows nothing. */
static void teardown(void)
{
        ck_assert_uint_gt(n_admitted, n_tried / 10);
        ck_assert_uint_lt(n_admitted, n_tried - n_tried / 10);
        kept = arena_free(kept);
}

/* Both other levels of a table that was read. */
static void try_levels(const struct hardware *h, unsigned port, unsigned table)
{
        const struct table *t = &h->ports[port].tables[table];

        for (uint8_t level = LEVEL_NONE; t->known == READ && level <= LEVEL_FULL; level++)
                if (level != t->holds[0])
                        count(try_block(h, port, table, (const uint8_t[BASES]) { level }));
}

START_TEST(three_ports)
{
        struct hardware h = { .n_bases = 1 };

        for (unsigned x = 0; x < N_PORTS; x++)
                for (unsigned y = x; get_port(x, &h.ports[1]) && y < N_PORTS; y++)
                        for (unsigned z = 0; get_port(y, &h.ports[2]) && z < 3 * N_LEVELS; z++) {
                                const uint8_t level = (uint8_t) (z / 3), policy = (uint8_t) (z % 3);

                                h.ports[0] = (struct port) { .policy = { policy } };
                                h.ports[0].tables[0] = (struct table) { .read = { level }, .holds = { level } };
                                try_levels(&h, 0, 0);
                        }
}
END_TEST

/* All that can be of a port and its leaf port; another one, of all that there are by turns. */
START_TEST(behind_a_filter)
{
        struct hardware h = { .n_bases = 1 };

        for (unsigned x = 0; x < N_FILTERED; x++)
                for (unsigned n = 0; get_filtered(x, &h.ports[0]) && n < 3; n++) {
                        while (!get_port(any(N_PORTS), &h.ports[1]))
                                ;
                        try_levels(&h, 0, 0);
                        try_levels(&h, 0, 1);
                        for (unsigned bits = 0; bits < 4; bits++)
                                count(try_filter(&h, 0, bits & 1, bits & 2));
                }
}
END_TEST

/* All bases of a table are known in the same way. */
static struct table any_table(enum known_how known)
{
        struct table t = { .known = known }, one;

        for (unsigned b = 0; b < BASES; b++) {
                while (!get_table(any(N_TABLES / N_KNOWN) * N_KNOWN + known, &one))
                        ;
                t.read[b] = one.read[0];
                t.sent[b] = one.sent[0];
                t.holds[b] = one.holds[0];
        }
        if (known == NEVER || any(3) > 0)
                return t;
        t.emptied = any(2);
        for (unsigned b = 0; b < BASES; b++) {
                t.behind[b] = (uint8_t) any(N_LEVELS);
                t.holds_behind[b] = t.emptied && any(2) ? LEVEL_NONE : t.behind[b];
        }
        return t;
}

/* What the policy gives it is in the range. */
static void freeze(struct port *p)
{
        p->frozen = true;
        p->most_is_held = any(2);
        for (unsigned b = 0; b < BASES; b++) {
                bool is_held = p->most_is_held && p->policy[b] <= MAX(p->tables[0].holds[b], p->tables[0].holds_behind[b]);

                p->least[b] = (uint8_t) any(p->policy[b] + 1u);
                p->most[b] = is_held ? (uint8_t) any(N_LEVELS) : (uint8_t) (p->policy[b] + any(N_LEVELS - p->policy[b]));
        }
}

static struct port any_port(void)
{
        struct port p = { .presence = any(2) ? KNOWLEDGE_THERE : (enum knowledge_presence) any(3) };
        bool is_there = p.presence == KNOWLEDGE_THERE;

        for (unsigned b = 0; b < BASES; b++)
                p.policy[b] = (uint8_t) any(N_LEVELS);
        p.tables[0] = any_table((enum known_how) (is_there ? any(N_KNOWN) : BEFORE + any(3)));
        p.tables[1] = any_table((enum known_how) (is_there ? any(N_KNOWN) : NEVER));
        p.filters[SENDS] = is_there && any(2);
        p.filters[RECEIVES] = is_there && any(2);
        p.filters_unsure = is_there && any(4) == 0;
        if (any(4) == 0)
                freeze(&p);
        return p;
}

START_TEST(any_four_ports)
{
        struct hardware h = { .n_bases = BASES };

        for (unsigned i = 0; i < 60000; i++) {
                unsigned port = any(HOSTS), table = any(2);
                const uint8_t levels[BASES] = { (uint8_t) any(N_LEVELS), (uint8_t) any(N_LEVELS) };

                for (unsigned p = 0; p < HOSTS; p++)
                        h.ports[p] = any_port();
                if (h.ports[port].presence != KNOWLEDGE_THERE)
                        continue;
                if (any(4) == 0)
                        count(try_filter(&h, port, any(2), any(2)));
                else if (h.ports[port].tables[table].known == READ)
                        count(try_block(&h, port, table, levels));
        }
}
END_TEST

int main(void)
{
        TCase *t = tcase_create("transitions");
        Suite *s = suite_create("transitions");
        SRunner *sr;
        int failed;

        tcase_set_timeout(t, 0);
        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, three_ports);
        tcase_add_test(t, behind_a_filter);
        tcase_add_test(t, any_four_ports);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
