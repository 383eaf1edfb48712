/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verbs check: this host's own tables against the policy and the SMA's answers. */

#include "control_fixture.h"
#include "host/verbs_check.h"

#define S USEC_PER_SEC

/* --- through control --- */

static unsigned n_reads;

/* Idle; the host's tables are read whenever that is due, for so long. No sweep becomes due. */
static void pass(usec_t duration)
{
        usec_t end = now + duration;

        while (control_due(c) <= end && state() == CONTROL_IDLE) {
                wait_until_due();
                while (waits() && state() == CONTROL_IDLE) {
                        n_reads++;
                        answer();
                }
        }
        now = MAX(now, end);
}

static void begin(void)
{
        n_reads = 0;
        start("sweep_interval: 1h\n", POLICY_1);
        sweep();
}

START_TEST(agrees)
{
        begin();
        pass(10 * S);
        ck_assert_uint_eq(n_reads, 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_KERNEL_VERIFIED), 1);
        expect_logged(LOG_EVENT_KERNEL_VERIFIED, "generation 1: the kernel's P_Key tables match the policy on 1 port of this host");
        ck_assert_uint_eq(last_logged(LOG_EVENT_KERNEL_VERIFIED)->generation, 1);
        pass(3000 * S);
        ck_assert_uint_eq(n_reads, 1);
}
END_TEST

/* --- alone --- */

static struct verbs_check *v;
static struct log *l;
static struct p_key table[64];
static struct local_table local;

/* What the last sweep found, once more. */
static void expect_head(void)
{
        struct guid guids[] = {{0xdead}, port_of(head)->guid};
        struct generation *g = status()->in_force;
        struct memberships *memberships;
        struct desired *desired;

        ck_assert_int_eq(policy_resolve(arena, g->policy, status()->snapshot->subnet, &findings, &memberships), 0);
        ck_assert_int_eq(desired_compute(arena, memberships, &desired), 0);
        verbs_check_expect(v, now, g, desired, status()->snapshot->observed, guids, 2);
        ck_assert_uint_eq(verbs_check_due(v), now);
}

/* Expects what a sweep found; the kernel's table is the port's. */
static void expect(const char *settings, const char *policy)
{
        start(settings, policy);
        sweep();
        v = verbs_check_new();
        l = log_new();
        memcpy(table, port_of(head)->table, sizeof(table));
        local = (struct local_table) {port_of(head)->guid, table, 64};
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        expect_head();
}

static void done(void)
{
        (void) verbs_check_free(v);
        (void) log_free(l);
}

static void see(void)
{
        verbs_check_see(v, now, &local, 1, l);
}

static const struct log_entry *logs(enum log_event event, const char *part)
{
        const struct log_entry *e = log_next(l);

        while (e && e->event == LOG_EVENT_DEBUG)
                e = log_next(l);
        ck_assert_msg(e != NULL, "no '%s'", part);
        ck_assert_int_eq(e->event, event);
        ck_assert_msg(strstr(e->text, part) != NULL, "'%s' is not in '%s'", part, e->text);
        return e;
}

static void logs_nothing(void)
{
        const struct log_entry *e = log_next(l);

        while (e && e->event == LOG_EVENT_DEBUG)
                e = log_next(l);
        ck_assert_msg(e == NULL, "more: %s", e ? e->text : "");
}

static bool asks(usec_t *at)
{
        struct guid guid;
        bool any = verbs_check_next_port(v, &guid, at);

        if (any)
                ck_assert_uint_eq(guid.v, port_of(head)->guid.v);
        if (any)
                ck_assert(!verbs_check_next_port(v, &guid, at));
        return any;
}

START_TEST(right_at_once)
{
        usec_t at;

        expect(ENFORCE, POLICY_1);
        see();
        logs(LOG_EVENT_KERNEL_VERIFIED, "match the policy on 1 port");
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        ck_assert(!asks(&at));
        now += 10 * S;
        see();
        logs_nothing();
        done();
}
END_TEST

/* The kernel may lag a second; then the SMA is asked once more; then it is reported, once. */
START_TEST(kernel_lacks_an_entry)
{
        const struct log_entry *e;
        usec_t at, began;

        expect(ENFORCE, POLICY_1);
        began = now;
        table[0].v = 0;
        see();
        logs_nothing();
        ck_assert_uint_eq(verbs_check_due(v), began + S);
        ck_assert(!asks(&at));
        now = began + S;
        see();
        logs_nothing();
        ck_assert(asks(&at));
        ck_assert_uint_eq(at, now);
        now += S;
        see();
        e = logs(LOG_EVENT_KERNEL_DIFFERS, "head1 mlx5_0/1 (0x");
        ck_assert_ptr_nonnull(
                        strstr(e->text,
                               "the P_Key table in this host's kernel differs from that of the port: 0xffff at index 0 is in the "
                               "port's table, not in the kernel's"));
        ck_assert_str_eq(e->about.node, "head1 mlx5_0/1");
        ck_assert_uint_eq(e->about.port_guid.v, port_of(head)->guid.v);
        ck_assert_uint_eq(e->about.lid.v, 1);
        ck_assert_uint_eq(e->about.port, 1);
        ck_assert_uint_eq(e->about.generation, 1);
        ck_assert(!asks(&at));
        see();
        logs_nothing();
        table[0].v = 0xffff;
        see();
        logs(LOG_EVENT_KERNEL_VERIFIED, "match");
        see();
        logs_nothing();
        done();
}
END_TEST

/* The kernel lacks the default partition for longer than it may lag, and the SMA was asked. */
static void lack_default_partition(void)
{
        usec_t at;

        table[0].v = 0;
        see();
        now += S;
        see();
        ck_assert(asks(&at));
        now = at + S;
        see();
}

/* What was reported, went away, and is there again as it was is reported again. */
START_TEST(kernel_lacks_it_again)
{
        expect(ENFORCE, POLICY_1);
        for (unsigned i = 0; i < 2; i++) {
                lack_default_partition();
                logs(LOG_EVENT_KERNEL_DIFFERS, "0xffff at index 0");
                table[0].v = 0xffff;
                see();
                logs(LOG_EVENT_KERNEL_VERIFIED, "match");
                now += 10 * S;
        }
        done();
}
END_TEST

START_TEST(kernel_has_more_and_elsewhere)
{
        expect(ENFORCE, POLICY_1);
        table[9].v = 0x8055;
        now += 2 * S;
        see();
        see();
        logs(LOG_EVENT_KERNEL_DIFFERS, "0x8055 at index 9 is in the kernel's table, not in the port's");
        table[9].v = 0;
        table[0].v = 0;
        table[4].v = 0xffff;
        see();
        logs_nothing();
        see();
        logs(LOG_EVENT_KERNEL_DIFFERS, "0xffff is at index 0 in the port's table, at 4 in the kernel's");
        logs_nothing();
        done();
}
END_TEST

/* The SMA was asked about one difference, a sweep repaired it, and another program wrote another entry meanwhile: that is news. */
START_TEST(another_difference_is_asked_about)
{
        usec_t at;

        expect(ENFORCE, POLICY_1);
        table[9].v = 0x8055;
        now += S;
        see();
        ck_assert(asks(&at));
        table[9].v = 0;
        table[7].v = 0x8077;
        expect_head();
        see();
        now += S;
        see();
        ck_assert(asks(&at));
        expect_head();
        now += S;
        see();
        logs(LOG_EVENT_KERNEL_DIFFERS, "0x8077 at index 7");
        ck_assert(!asks(&at));
        done();
}
END_TEST

/* There is no valid table: the port is down, or the table is of another port. */
START_TEST(no_table)
{
        expect(ENFORCE, POLICY_1);
        now += 2 * S;
        local.entries = NULL;
        see();
        see();
        logs_nothing();
        local.entries = table;
        local.port_guid.v++;
        see();
        logs_nothing();
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        done();
}
END_TEST

/* An event: what is right may not be all yet, what is wrong the SMA is asked about. */
START_TEST(changed)
{
        usec_t at;

        expect(ENFORCE, POLICY_1);
        see();
        logs(LOG_EVENT_KERNEL_VERIFIED, "match");
        now += 5 * S;
        verbs_check_changed(v, now, (struct guid) {0xdead});
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        verbs_check_changed(v, now, port_of(head)->guid);
        ck_assert_uint_eq(verbs_check_due(v), now);
        see();
        ck_assert_uint_eq(verbs_check_due(v), now + 200 * USEC_PER_MSEC);
        ck_assert(!asks(&at));
        now += S;
        see();
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        verbs_check_changed(v, now, (struct guid) {}); /* any */
        ck_assert_uint_eq(verbs_check_due(v), now);
        table[3].v = 0x8066;
        see();
        ck_assert(asks(&at));
        ck_assert_uint_eq(at, now);
        logs_nothing();
        done();
}
END_TEST

/* Within the grace it is what pkeyd wrote itself. */
START_TEST(changed_within_the_grace)
{
        usec_t at;

        expect(ENFORCE, POLICY_1);
        verbs_check_changed(v, now, port_of(head)->guid);
        table[3].v = 0x8066;
        now += S - 1;
        see();
        ck_assert(!asks(&at));
        ck_assert_uint_eq(verbs_check_due(v), now + 200 * USEC_PER_MSEC);
        done();
}
END_TEST

/* The SMA is asked once a second at most. */
START_TEST(asked_once_a_second)
{
        usec_t first, at;

        expect(ENFORCE, POLICY_1);
        now += 5 * S;
        table[3].v = 0x8066;
        verbs_check_changed(v, now, port_of(head)->guid);
        see();
        ck_assert(asks(&first));
        ck_assert_uint_eq(first, now);
        now += 100 * USEC_PER_MSEC;
        verbs_check_changed(v, now, port_of(head)->guid);
        see();
        ck_assert(asks(&at));
        ck_assert_uint_eq(at, first + S);
        verbs_check_changed(v, now, port_of(head)->guid);
        see();
        ck_assert(asks(&at));
        ck_assert_uint_eq(at, first + S); /* that question is on its way */
        done();
}
END_TEST

/* Another policy: no check until a sweep ends. */
START_TEST(forgotten)
{
        expect(ENFORCE, POLICY_1);
        verbs_check_forget(v);
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        table[0].v = 0;
        now += 5 * S;
        see();
        see();
        logs_nothing();
        verbs_check_changed(v, now, (struct guid) {});
        ck_assert_uint_eq(verbs_check_due(v), USEC_INFINITY);
        done();
}
END_TEST

#define HEAD_IN_P "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {head1: full}\n"

/* What both have otherwise than the policy the sweep reported. */
START_TEST(both_differ_from_the_policy)
{
        usec_t at;

        expect(AUDIT, HEAD_IN_P);
        now += 2 * S;
        see();
        see();
        logs_nothing();
        ck_assert(!asks(&at));
        done();
}
END_TEST

static bool lose_head(const struct mad_request *request, struct fabsim_place at)
{
        return at.node == head && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* An entry too many is a difference, too. */
START_TEST(only_witness_of_an_entry_too_many)
{
        lose = lose_head;
        expect(AUDIT, POLICY_0);
        table[7].v = 0x8077;
        now += S;
        see();
        logs(LOG_EVENT_KERNEL_DIFFERS, "differs from that of the policy: has unexpected 0x8077");
        done();
}
END_TEST

/* If the SMA was not read, the kernel is the only witness, and is reported. */
START_TEST(only_witness)
{
        usec_t at;

        lose = lose_head;
        expect(AUDIT, HEAD_IN_P);
        table[7].v = 0x8077;
        see();
        ck_assert_uint_eq(verbs_check_due(v), now + S);
        now += S;
        see();
        logs(LOG_EVENT_KERNEL_DIFFERS, "differs from that of the policy: lacks 0x8010; has unexpected 0x8077");
        ck_assert(!asks(&at));
        done();
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        agrees,
                        right_at_once,
                        kernel_lacks_an_entry,
                        kernel_lacks_it_again,
                        kernel_has_more_and_elsewhere,
                        another_difference_is_asked_about,
                        no_table,
                        changed,
                        changed_within_the_grace,
                        asked_once_a_second,
                        forgotten,
                        both_differ_from_the_policy,
                        only_witness,
                        only_witness_of_an_entry_too_many,
        };

        return run_suite("verbs check", tests, ELEMENTS(tests));
}
