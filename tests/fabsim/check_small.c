/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The promises on small fabrics, by enumeration of every case: up to four ports and two bases, levels none, limited, full
 * and both, every order of the writes of a phase, every write failing or unconfirmed at every point.
 *
 * All of that at once are 184 million transitions. It comes apart, and each part is tried in full:
 *
 * 1. What the planner does with one port (and the switch port beside it) does not depend on any other port: the plan of
 *    four is the union of the plans of each alone (test_ports_are_planned_alone).
 * 2. A promise is about two ports and one base. So with no failure two ports are as good as four; and what two ports pass
 *    through are the four combinations of done and not done, which an order and its reverse show all. Two ports, two
 *    bases, all 32,896 transitions, in both orders, and with each of their own writes lost in each way (test_two_ports).
 * 3. A write of a third port that fails does nothing to the two but hold back the bases it touched, from the next phase on.
 *    Which bases and when is all that matters of it: all 16 changes of one base, with and without a second base granted in
 *    the same MADs, against all transitions of two others (test_a_third_fails).
 * 4. As a check on this reasoning: four ports and one base without any of it, every transition, every write lost, both
 *    orders (test_four_ports).
 *
 * Every state of the tables on the way is compared, in two models of a switch (fake_fabric_level).
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/fake_fabric.h"

#define MAX_PENDING 64
#define MAX_BASES   2
#define SLICES      8

/* ck_assert writes to a pipe each time it is passed: too slow for what runs some million times. */
#define REQUIRE(condition)                                                                                             \
        do {                                                                                                           \
                if (!(condition))                                                                                      \
                        ck_abort_msg("%s", #condition);                                                                \
        } while (0)

enum loss {
        LOST_BEFORE, /* never arrives, and the port is dead from then on */
        LOST_AFTER,  /* arrives, and the port is dead from then on */
        REFUSED,     /* with a status, and the port answers */
        N_LOSSES,
};

/* One history. */
struct trial {
        struct fake_fabric f;
        unsigned n_bases;
        bool reverse;
        uint32_t victim;       /* only its Sets count; SUBNET_NONE: all do */
        unsigned which;        /* the Set that is lost; UINT32_MAX: none */
        enum loss loss;
        unsigned sets;
        uint32_t dead;
        bool from[2][MAX_BASES][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS], to[2][MAX_BASES][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];
};

static void relate(const struct fake_fabric *f, unsigned n_bases, bool ret[2][MAX_BASES][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS])
{
        int level[FAKE_MAX_HOSTS];

        for (int strict = 0; strict < 2; strict++)
                for (unsigned b = 0; b < n_bases; b++) {
                        for (unsigned x = 0; x < f->n_hosts; x++)
                                level[x] = fake_fabric_level(f, x, FAKE_BASE(b + 1), strict);
                        for (unsigned x = 0; x < f->n_hosts; x++)
                                for (unsigned y = x + 1; y < f->n_hosts; y++)
                                        ret[strict][b][x][y] = level[x] && level[y] && (level[x] == 2 || level[y] == 2);
                }
}

static void check_promises(const struct trial *t)
{
        bool now[2][MAX_BASES][FAKE_MAX_HOSTS][FAKE_MAX_HOSTS];

        relate(&t->f, t->n_bases, now);
        for (int strict = 0; strict < 2; strict++)
                for (unsigned b = 0; b < t->n_bases; b++)
                        for (unsigned x = 0; x < t->f.n_hosts; x++)
                                for (unsigned y = x + 1; y < t->f.n_hosts; y++)
                                        if (t->from[strict][b][x][y] == t->to[strict][b][x][y] &&
                                            now[strict][b][x][y] != t->from[strict][b][x][y])
                                                ck_abort_msg("%s broken: %u-%u",
                                                             now[strict][b][x][y] ? "isolation" : "continuity", x, y);
}

static void put_all(struct fake_fabric *f, enum membership m[][4], unsigned n_bases)
{
        for (unsigned h = 0; h < f->n_hosts; h++)
                for (unsigned b = 1; b <= n_bases; b++) {
                        fake_fabric_put(f, f->host[h], FAKE_BASE(b), m[h][b]);
                        fake_fabric_put(f, f->leaf[h], FAKE_BASE(b),
                                        m[h][b] == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : m[h][b]);
                }
}

/* Carried out, lost before or after, or refused. */
static void answer(struct trial *t, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(&t->f, request);
        bool strikes = false;

        if (request->method == MAD_SET && (t->victim == SUBNET_NONE || port == t->victim))
                strikes = t->sets++ == t->which;
        *ret = (struct mad_result) { .outcome = MAD_TIMED_OUT };
        if (strikes && t->loss == REFUSED) {
                ret->outcome = MAD_REFUSED;
                ret->mad_status = 0x1c;
                return;
        }
        if (port == t->dead)
                return;
        if (strikes) {
                t->dead = port;
                if (t->loss == LOST_AFTER)
                        (void) fake_fabric_answer(&t->f, request, ret);
                ret->outcome = MAD_TIMED_OUT;
        } else {
                (void) fake_fabric_answer(&t->f, request, ret);
        }
        if (request->method == MAD_SET)
                check_promises(t);
}

/* Requests of a phase are answered in the order in which they come, or in the reverse one. */
static void carry_out(struct trial *t, struct arena *a, const struct plan *plan, struct observed *observed)
{
        struct apply_options options = { .retries = 1 };
        struct fake_wire wire;
        struct mad_request pending[MAX_PENDING], request;
        struct mad_result result;
        struct mad_stage stage;
        struct apply *apply;
        unsigned n = 0, i;

        fake_wire_init(&wire, observed, plan->desired, &t->f.policy);
        options.knowledge = wire.knowledge;
        REQUIRE(apply_new(a, plan, observed, NULL, &options, &apply) == 0);
        stage = apply_stage(apply);
        while (!stage.done(stage.state)) {
                while (n < MAX_PENDING && stage.next(stage.state, 0, &pending[n]))
                        n++;
                if (n == 0)
                        break;
                i = t->reverse ? n - 1 : 0;
                request = pending[i];
                memmove(&pending[i], &pending[i + 1], (n - i - 1) * sizeof(pending[0]));
                n--;
                REQUIRE(fake_wire_send(&wire, &request));
                answer(t, &request, &result);
                fake_wire_end(&wire, &request, &result);
                stage.result(stage.state, 0, &result);
        }
        REQUIRE(stage.done(stage.state));
        fake_wire_done(&wire);
}

static struct plan *plan_for(struct fake_fabric *f, struct arena *a, enum membership to[][4], unsigned n_bases,
                             struct observed **ret_observed)
{
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH };
        _cleanup_findings_ struct findings findings;
        struct desired *desired = arena_new_object(a, struct desired);
        struct plan *plan;

        findings_init(&findings, a);
        fake_fabric_desire(f, a, to, n_bases + 1, desired);
        *ret_observed = fake_fabric_observe(f, a);
        REQUIRE(plan_compute(a, desired, *ret_observed, NULL, &options, &findings, &plan) == 0);
        return plan;
}

/* How many Sets the victim (or anybody) was sent. */
static unsigned try_once(const struct trial *start, const struct plan *plan)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct trial t = *start;

        t.dead = SUBNET_NONE;
        carry_out(&t, a, plan, fake_fabric_observe(&t.f, a));
        return t.sets;
}

/* One transition: undisturbed in both orders, then with each Set lost in each way, in an order and in its reverse by turns.
 * (A failure takes effect from the next phase on; the order within a phase is then that of an undisturbed run.) */
static void try_all(const struct fake_fabric *empty, enum membership from[][4], enum membership to[][4], unsigned n_bases,
                    uint32_t victim)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct trial start = { .f = *empty, .n_bases = n_bases, .victim = victim, .which = UINT32_MAX };
        struct fake_fabric target = *empty;
        struct observed *observed;
        const struct plan *plan;
        unsigned n;

        put_all(&start.f, from, n_bases);
        put_all(&target, to, n_bases);
        relate(&start.f, n_bases, start.from);
        relate(&target, n_bases, start.to);
        plan = plan_for(&start.f, a, to, n_bases, &observed);
        n = try_once(&start, plan);
        if (victim == SUBNET_NONE) {
                start.reverse = true;
                (void) try_once(&start, plan);
        }
        for (start.which = 0; start.which < n; start.which++)
                for (start.loss = 0; start.loss < N_LOSSES; start.loss++) {
                        if (start.loss == REFUSED && victim != SUBNET_NONE)
                                continue; /* to the others, the same as one that never arrives */
                        start.reverse = (start.which + start.loss) % 2;
                        (void) try_once(&start, plan);
                }
}

static void all_default(enum membership m[][4])
{
        memset(m, 0, sizeof(enum membership) * FAKE_MAX_HOSTS * 4);
        for (unsigned h = 0; h < FAKE_MAX_HOSTS; h++)
                m[h][0] = MEMBERSHIP_FULL;
}

/* Two bases, each from one of four levels to one of four: 256 codes. */
static void put_code(enum membership from[][4], enum membership to[][4], unsigned h, unsigned code)
{
        from[h][1] = code % 4;
        to[h][1] = code / 4 % 4;
        from[h][2] = code / 16 % 4;
        to[h][2] = code / 64;
}

/* As if the bases changed their names. */
static unsigned swapped(unsigned code)
{
        return code / 16 + code % 16 * 16;
}

/* With a switch that enforces beside them: what it lets through is what their own tables do, at best. */
START_TEST(test_two_ports)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        fake_fabric_init(&f, a, 2, true);
        all_default(from);
        all_default(to);
        for (unsigned h = 0; h < 2; h++) {
                fake_fabric_put(&f, f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                fake_fabric_put(&f, f.leaf[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        }
        for (unsigned x = (unsigned) _i; x < 256; x += SLICES)
                for (unsigned y = x; y < 256; y++) {
                        unsigned low = swapped(x) < swapped(y) ? swapped(x) : swapped(y);

                        if (low < x)
                                continue; /* it was tried with the bases' names changed */
                        put_code(from, to, 0, x);
                        put_code(from, to, 1, y);
                        try_all(&f, from, to, 2, SUBNET_NONE);
                }
}
END_TEST

/* The third: its first base changes in each of 16 ways, its second stays away or is granted. The others: all changes of the
 * first base, and of the second those that the third's failure can have to do with. */
START_TEST(test_a_third_fails)
{
        _cleanup_arena_ struct arena *a = arena_new();
        static const unsigned second[] = { 0x00, 0x80, 0x20, 0x90 }; /* nothing; none to full; full to none; limited to full */
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;

        fake_fabric_init(&f, a, 3, false);
        all_default(from);
        all_default(to);
        for (unsigned h = 0; h < 3; h++)
                fake_fabric_put(&f, f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        for (unsigned z = (unsigned) _i; z < 32; z += SLICES)
                for (unsigned x = 0; x < 64; x++)
                        for (unsigned y = x; y < 64; y++) {
                                put_code(from, to, 0, x % 16 + second[x / 16]);
                                put_code(from, to, 1, y % 16 + second[y / 16]);
                                put_code(from, to, 2, z % 16 + (z < 16 ? 0 : 0x80));
                                try_all(&f, from, to, 2, f.host[2]);
                        }
}
END_TEST

START_TEST(test_four_ports)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct fake_fabric f;
        unsigned code[4];

        fake_fabric_init(&f, a, 4, false);
        all_default(from);
        all_default(to);
        for (unsigned h = 0; h < 4; h++)
                fake_fabric_put(&f, f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        for (code[0] = (unsigned) _i; code[0] < 16; code[0] += SLICES)
                for (code[1] = code[0]; code[1] < 16; code[1]++)
                        for (code[2] = code[1]; code[2] < 16; code[2]++)
                                for (code[3] = code[2]; code[3] < 16; code[3]++) {
                                        for (unsigned h = 0; h < 4; h++)
                                                put_code(from, to, h, code[h]);
                                        try_all(&f, from, to, 1, SUBNET_NONE);
                                }
}
END_TEST

/* Of one host and its switch port: what is written, phase by phase. */
struct writes {
        unsigned n;
        struct {
                enum plan_phase phase;
                bool is_leaf;
                struct p_key before[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
        } items[2 * PLAN_N_PHASES];
};

static void writes_of(const struct fake_fabric *f, const struct plan *plan, unsigned host, struct writes *ret)
{
        memset(ret, 0, sizeof(*ret));
        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];

                        if (w->port != f->host[host] && w->port != f->leaf[host])
                                continue;
                        REQUIRE(w->kind == WRITE_BLOCK && w->block == 0);
                        ret->items[ret->n].phase = (enum plan_phase) phase;
                        ret->items[ret->n].is_leaf = w->port == f->leaf[host];
                        memcpy(ret->items[ret->n].before, w->before, sizeof(w->before));
                        memcpy(ret->items[ret->n].after, w->after, sizeof(w->after));
                        ret->n++;
                }
}

static void plan_codes(unsigned n_hosts, const unsigned *codes, struct writes *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        enum membership from[FAKE_MAX_HOSTS][4], to[FAKE_MAX_HOSTS][4];
        struct observed *observed;
        struct fake_fabric f;
        struct plan *plan;

        fake_fabric_init(&f, a, n_hosts, true);
        all_default(from);
        all_default(to);
        for (unsigned h = 0; h < n_hosts; h++) {
                fake_fabric_put(&f, f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                fake_fabric_put(&f, f.leaf[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
                put_code(from, to, h, codes[h]);
        }
        put_all(&f, from, 2);
        plan = plan_for(&f, a, to, 2, &observed);
        for (unsigned h = 0; h < n_hosts; h++)
                writes_of(&f, plan, h, &ret[h]);
}

START_TEST(test_ports_are_planned_alone)
{
        static struct writes alone[256];
        struct writes together[4];
        unsigned codes[4], state = 1;

        for (unsigned code = 0; code < 256; code++)
                plan_codes(1, &code, &alone[code]);
        for (unsigned i = 0; i < 4000; i++) {
                for (unsigned h = 0; h < 4; h++)
                        codes[h] = h == 0 ? i % 256 : (state = state * 1103515245 + 12345) >> 16 & 255;
                plan_codes(4, codes, together);
                for (unsigned h = 0; h < 4; h++)
                        REQUIRE(memcmp(&together[h], &alone[codes[h]], sizeof(together[h])) == 0);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("small fabrics");
        TCase *t = tcase_create("all of them");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_set_timeout(t, 0);
        tcase_add_test(t, test_ports_are_planned_alone);
        tcase_add_loop_test(t, test_two_ports, 0, SLICES);
        tcase_add_loop_test(t, test_a_third_fails, 0, SLICES);
        tcase_add_loop_test(t, test_four_ports, 0, SLICES);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
