/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts and fields of log entries about a sweep, an apply and a standby. */

#include "control_fixture.h"
#include "events/event_text.h"

static struct log *l;
static struct generation *g;
static struct snapshot *snapshot;

/* A fabric that was read by a policy in audit mode; entries go to a log of the test's own. */
static void begin(const char *settings)
{
        start(AUDIT, POLICY_1);
        sweep();
        snapshot = snapshot_ref(status()->snapshot);
        l = log_new();
        g = make_generation(settings, POLICY_1);
        g->number = 42;
}

static void done(void)
{
        (void) log_free(l);
        (void) generation_unref(g);
        (void) snapshot_unref(snapshot);
}

static const struct log_entry *next(enum log_event event, const char *text)
{
        const struct log_entry *e = log_next(l);

        ck_assert_msg(e != NULL, "no entry '%s'", text);
        ck_assert_msg(e->event == event, "event %d: %s", (int) e->event, e->text);
        ck_assert_msg(strcmp(e->text, text) == 0, "'%s' is not '%s'", e->text, text);
        return e;
}

static void next_has(enum log_event event, const char *part)
{
        const struct log_entry *e = log_next(l);

        ck_assert_msg(e && e->event == event && strstr(e->text, part), "'%s' is not in '%s'", part,
                      e ? e->text : "(none)");
}

static void nothing_more(void)
{
        const struct log_entry *e = log_next(l);

        ck_assert_msg(e == NULL, "more: %s", e ? e->text : "");
}

/* --- a sweep --- */

static struct watch_event event_of(enum watch_kind kind)
{
        return (struct watch_event) {
                        .kind = kind,
                        .label = "node1 mlx5_0/1",
                        .node_guid = {0x100},
                        .port_guid = {0x101},
                        .lid = {3},
                        .number = 1,
                        .failure = MAD_TIMED_OUT,
        };
}

static void report_events(struct watch_event *events, uint32_t n, bool standby)
{
        struct watch_report report = {.events = events, .n_events = n};

        for (uint32_t i = 0; i < n; i++)
                report.n_of[events[i].kind]++;
        event_text_watch(l, g, &report, snapshot->subnet, standby);
}

static void report_one(struct watch_event event, bool standby)
{
        report_events(&event, 1, standby);
}

/* Which kinds are worth an entry, in which mode. */
START_TEST(kinds)
{
        static const struct {
                enum watch_kind kind;
                enum log_event event;
                bool enforce, audit, standby;
                const char *text;
        } cases[] = {
                        {WATCH_NEW, LOG_EVENT_PORT_NEW, true, true, true, "new in the fabric"},
                        {WATCH_RETURNED, LOG_EVENT_PORT_RETURNED, true, true, true, "in the fabric again"},
                        {WATCH_GONE, LOG_EVENT_PORT_GONE, true, true, true, "no longer in the fabric"},
                        {WATCH_UNREACHABLE, LOG_EVENT_PORT_UNREACHABLE, true, true, true,
                         "P_Key table cannot be read"},
                        {WATCH_READABLE, LOG_EVENT_PORT_READABLE, true, true, true, "P_Key table can be read again"},
                        {WATCH_DRIFTED, LOG_EVENT_DRIFT_FOUND, true, true, false,
                         "another program changed the P_Key table"},
                        {WATCH_DIFFERS, LOG_EVENT_TABLE_DIFFERS, false, true, false,
                         "P_Key table does not match the policy"},
                        {WATCH_MATCHES, LOG_EVENT_TABLE_MATCHES, false, true, false,
                         "P_Key table matches the policy again"},
                        {WATCH_REPAIRED, LOG_EVENT_DRIFT_REPAIRED, true, true, false,
                         "P_Key table matches the policy again"},
        };

        for (unsigned mode = 0; mode < 3; mode++) {
                begin(mode == 1 ? AUDIT : ENFORCE);
                for (size_t i = 0; i < ELEMENTS(cases); i++) {
                        bool is_news = mode == 0 ? cases[i].enforce : mode == 1 ? cases[i].audit : cases[i].standby;

                        report_one(event_of(cases[i].kind), mode == 2);
                        if (is_news)
                                next_has(cases[i].event, cases[i].text);
                        nothing_more();
                }
                done();
                teardown();
                setup();
        }
}
END_TEST

START_TEST(fields_of_a_port)
{
        const struct log_entry *e;

        begin(ENFORCE);
        report_one(event_of(WATCH_NEW), false);
        e = next(LOG_EVENT_PORT_NEW, "node1 mlx5_0/1 (0x0000000000000101): new in the fabric");
        ck_assert_str_eq(e->about.node, "node1 mlx5_0/1");
        ck_assert_uint_eq(e->about.port_guid.v, 0x101);
        ck_assert_uint_eq(e->about.lid.v, 3);
        ck_assert_uint_eq(e->about.port, 1);
        ck_assert_uint_eq(e->about.generation, 42);
        done();
}
END_TEST

/* Without a generation there is no number, and enforce is what counts. */
START_TEST(without_a_generation)
{
        struct watch_event event = event_of(WATCH_NEW);
        struct watch_report report = {.events = &event, .n_events = 1, .n_of = {[WATCH_NEW] = 1}};

        begin(ENFORCE);
        event_text_watch(l, NULL, &report, snapshot->subnet, false);
        ck_assert_uint_eq(next(LOG_EVENT_PORT_NEW, "node1 mlx5_0/1 (0x0000000000000101): new in the fabric")
                                          ->about.generation,
                          0);
        done();
}
END_TEST

START_TEST(why_it_cannot_be_read)
{
        struct watch_event event = event_of(WATCH_UNREACHABLE);

        begin(ENFORCE);
        report_one(event, false);
        next(LOG_EVENT_PORT_UNREACHABLE,
             "node1 mlx5_0/1 (0x0000000000000101): P_Key table cannot be read (timeout: the node "
             "is hung, it was unplugged just now, MADs are lost, or it has an M_Key, and m_key_file names none)");
        event.failure = MAD_REFUSED;
        event.mad_status = 0x1c;
        report_one(event, false);
        next_has(LOG_EVENT_PORT_UNREACHABLE, "cannot be read (status 0x001c, ");
        event.failure = MAD_BUSY;
        report_one(event, false);
        next(LOG_EVENT_PORT_UNREACHABLE, "node1 mlx5_0/1 (0x0000000000000101): P_Key table cannot be read (busy)");
        done();
}
END_TEST

/* An M_Key never stands in a message. */
START_TEST(no_secret)
{
        static const char secret[] = "0x1122334455667788\n";
        _cleanup_findings_ struct findings ignored = { .arena = arena };
        const struct log_entry *e;

        begin(ENFORCE);
        ck_assert_int_eq(m_keys_parse("/etc/pkeyd/m_keys", secret, strlen(secret), &ignored, &g->m_keys), 0);
        g->sm_key = UINT64_C(0x1122334455667788);
        report_one(event_of(WATCH_UNREACHABLE), false);
        e = log_next(l);
        ck_assert_ptr_nonnull(strstr(e->text, "M_Key"));
        ck_assert_ptr_null(strstr(e->text, "1122334455667788"));
        done();
}
END_TEST

static struct p_key many[40];

static struct discrepancy differing(uint32_t n_missing, uint32_t n_unexpected)
{
        for (unsigned i = 0; i < ELEMENTS(many); i++)
                many[i].v = (uint16_t) (0x8010 + i);
        return (struct discrepancy) {
                        .missing = many, .n_missing = n_missing, .unexpected = many + 20, .n_unexpected = n_unexpected};
}

START_TEST(how_it_differs)
{
        struct discrepancy d = differing(2, 1);
        struct watch_event event = event_of(WATCH_DRIFTED);
        const struct log_entry *e;

        begin("writer: direct\n");
        event.differs = &d;
        report_one(event, false);
        e = next(LOG_EVENT_DRIFT_FOUND,
                 "node1 mlx5_0/1 (0x0000000000000101): another program changed the P_Key table (lacks 0x8010 "
                 "0x8011, has unexpected 0x8024)");
        ck_assert_uint_eq(e->about.n_p_keys, 3);
        ck_assert_uint_eq(e->about.p_keys[0].v, 0x8010);
        ck_assert_uint_eq(e->about.p_keys[1].v, 0x8011);
        ck_assert_uint_eq(e->about.p_keys[2].v, 0x8024);
        d = differing(0, 8);
        d.enforcement_differs = true;
        report_one(event, false);
        next_has(LOG_EVENT_DRIFT_FOUND,
                 "(has unexpected 0x8024 0x8025 0x8026 0x8027 0x8028 0x8029 0x802a 0x802b, enforcement bits "
                 "differ)");
        d = differing(11, 9);
        report_one(event, false);
        e = log_next(l);
        ck_assert_ptr_nonnull(strstr(e->text, "0x8016 0x8017 and 3 more, has unexpected 0x8024"));
        ck_assert_ptr_nonnull(strstr(e->text, "0x802b and 1 more)"));
        ck_assert_uint_eq(e->about.n_p_keys, 16);
        ck_assert_uint_eq(e->about.p_keys[7].v, 0x8017);
        ck_assert_uint_eq(e->about.p_keys[8].v, 0x8024);
        d = differing(0, 0);
        d.enforcement_differs = true;
        report_one(event, false);
        next_has(LOG_EVENT_DRIFT_FOUND, "(enforcement bits differ)");
        done();
}
END_TEST

/* More than EVENT_TEXT_MAX of a kind are one entry. */
START_TEST(many_ports)
{
        struct watch_event events[EVENT_TEXT_MAX + 1];

        begin(ENFORCE);
        for (unsigned i = 0; i < ELEMENTS(events); i++) {
                events[i] = event_of(WATCH_GONE);
                events[i].label = arena_printf(arena, "h%u", i);
        }
        report_events(events, EVENT_TEXT_MAX, false);
        for (unsigned i = 0; i < EVENT_TEXT_MAX; i++)
                next_has(LOG_EVENT_PORT_GONE, "no longer in the fabric");
        nothing_more();
        report_events(events, EVENT_TEXT_MAX + 1, false);
        ck_assert_uint_eq(next(LOG_EVENT_PORT_GONE, "17 ports (h0, h1, h2, h3, ...): no longer in the fabric")
                                          ->about.generation,
                          42);
        nothing_more();
        for (unsigned i = 0; i < ELEMENTS(events); i++) {
                events[i] = event_of(WATCH_UNREACHABLE);
                events[i].failure = i == 0 ? MAD_BUSY : MAD_TIMED_OUT;
        }
        report_events(events, EVENT_TEXT_MAX + 1, false);
        next_has(LOG_EVENT_PORT_UNREACHABLE, "...): P_Key table cannot be read (the first: busy)");
        done();
}
END_TEST

/* --- many ports of one switch --- */

static void drift(struct watch_event *event, struct discrepancy *d, unsigned host)
{
        const struct subnet_port *p =
                        &snapshot->subnet->ports[subnet_find_endport(snapshot->subnet, port_of(hosts[host])->guid)];

        *d = differing(1, 1);
        d->port = (uint32_t) (p - snapshot->subnet->ports);
        *event = event_of(WATCH_DRIFTED);
        event->node_guid = f.nodes[hosts[host]].guid;
        event->port_guid = p->guid;
        event->differs = d;
}

START_TEST(rewritten_switch)
{
        struct watch_event events[N_HOSTS];
        struct discrepancy differs[N_HOSTS];
        const struct log_entry *e;

        begin(ENFORCE);
        for (unsigned i = 0; i < N_HOSTS; i++)
                drift(&events[i], &differs[i], i);
        report_events(events, N_HOSTS, false);
        e = log_next(l);
        ck_assert_int_eq(e->event, LOG_EVENT_TABLES_REWRITTEN);
        ck_assert_str_eq(e->about.switch_name, "leaf1");
        ck_assert_uint_eq(e->about.generation, 42);
        ck_assert_ptr_nonnull(strstr(e->text,
                                     "another program rewrote the P_Key tables of 3 ports on leaf1 since the last sweep "
                                     "(lost 0x8010, gained 0x8024): most likely OpenSM"));
        nothing_more();
        report_events(events, 2, false); /* too few */
        next_has(LOG_EVENT_DRIFT_FOUND, "another program changed");
        next_has(LOG_EVENT_DRIFT_FOUND, "another program changed");
        nothing_more();
        done();
}
END_TEST

/* Eight P_Keys of each kind are named; that there are more of either is said. */
START_TEST(rewritten_in_many_p_keys)
{
        static const struct {
                uint32_t n_lost, n_gained;
                bool others;
        } cases[] = {{8, 8, false}, {9, 8, true}, {8, 9, true}, {9, 9, true}};

        begin(ENFORCE);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct watch_event events[N_HOSTS];
                struct discrepancy differs[N_HOSTS];
                const struct log_entry *e;

                for (unsigned k = 0; k < N_HOSTS; k++) {
                        drift(&events[k], &differs[k], k);
                        differs[k].n_missing = cases[i].n_lost;
                        differs[k].n_unexpected = cases[i].n_gained;
                }
                report_events(events, N_HOSTS, false);
                e = log_next(l);
                ck_assert_int_eq(e->event, LOG_EVENT_TABLES_REWRITTEN);
                ck_assert_ptr_nonnull(strstr(e->text, cases[i].others ? "0x802b and others): most"
                                                                      : "0x802b): most"));
        }
        done();
}
END_TEST

/* Where OpenSM is the writer that is what it does. */
START_TEST(rewritten_by_the_writer)
{
        struct watch_event events[N_HOSTS];
        struct discrepancy differs[N_HOSTS];

        begin(OPENSM);
        for (unsigned i = 0; i < N_HOSTS; i++)
                drift(&events[i], &differs[i], i);
        report_events(events, N_HOSTS, false);
        for (unsigned i = 0; i < N_HOSTS; i++)
                next_has(LOG_EVENT_DRIFT_FOUND, "another program changed");
        nothing_more();
        done();
}
END_TEST

/* --- findings --- */

START_TEST(findings_of_files)
{
        _cleanup_findings_ struct findings found = { .arena = arena };
        const struct log_entry *e;

        begin(ENFORCE);
        (void) findings_add(&found, FINDING_ERROR, FINDING_VALUE_INVALID, &(struct location) {"p.yaml", 3, 1}, "first");
        (void) findings_add(&found, FINDING_NOTE, FINDING_VALUE_INVALID, NULL, "second");
        for (unsigned i = 0; i < 2; i++) { /* each time */
                event_text_findings(l, &found);
                e = next(LOG_EVENT_FINDING, "first");
                ck_assert_uint_eq(e->about.where->line, 3);
                next(LOG_EVENT_FINDING, "second");
                nothing_more();
        }
        done();
}
END_TEST

/* Each once, by what it is about; unreachable ports are the watch's. */
START_TEST(findings_of_the_planner)
{
        static const struct {
                enum finding_code code;
                enum log_event event;
        } cases[] = {
                        {FINDING_PLAN_INDEX0, LOG_EVENT_INDEX0_WRONG},
                        {FINDING_PLAN_ENFORCEMENT_OFF, LOG_EVENT_ENFORCEMENT_OFF},
                        {FINDING_PLAN_ENFORCEMENT_SKIPPED, LOG_EVENT_ENFORCEMENT_OFF},
                        {FINDING_PLAN_BESIDE_SM, LOG_EVENT_BESIDE_SM},
                        {FINDING_PLAN_CAPACITY_TRANSITION, LOG_EVENT_FINDING},
        };
        _cleanup_findings_ struct findings found = { .arena = arena };

        begin(ENFORCE);
        (void) findings_add(&found, FINDING_WARNING, FINDING_PLAN_UNREACHABLE, NULL, "silent");
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                (void) findings_add(&found, FINDING_WARNING, cases[i].code, NULL, "x");
        event_text_plan_findings(l, g, &found);
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                ck_assert_uint_eq(next(cases[i].event, "x")->about.generation, 42);
        nothing_more();
        event_text_plan_findings(l, g, &found);
        nothing_more();
        done();
}
END_TEST

/* A switch with a hundred hosts fails, and each line of the policy names some of them. Errors are all logged. */
START_TEST(findings_of_a_kind)
{
        _cleanup_findings_ struct findings found = { .arena = arena };

        begin(ENFORCE);
        for (unsigned i = 0; i < 100; i++) {
                (void) findings_add(&found, FINDING_NOTE, FINDING_SELECTOR_PARTIAL, NULL, "host %u", i);
                (void) findings_add(&found, FINDING_ERROR, FINDING_PLAN_CAPACITY, NULL, "table %u", i);
        }
        (void) findings_add(&found, FINDING_NOTE, FINDING_SELECTOR_NO_MATCH, NULL, "name");
        event_text_plan_findings(l, g, &found);
        for (size_t i = 0; i < found.n; i++)
                if (found.items[i].severity == FINDING_ERROR || i < 32 || i + 1 == found.n)
                        next(LOG_EVENT_FINDING, found.items[i].text);
        next(LOG_EVENT_FINDING, "84 more findings of this kind (selector.partial); pkeyctl plan lists all of them");
        nothing_more();
        event_text_plan_findings(l, g, &found);
        nothing_more();
        done();
}
END_TEST

/* --- standing by --- */

static struct verification differing_ports(struct discrepancy *d, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                d[i] = differing(1, 0);
                d[i].port = subnet_find_endport(snapshot->subnet, port_of(hosts[i])->guid);
        }
        return (struct verification) {.differ = d, .n_differ = n};
}

START_TEST(standby_differs)
{
        struct discrepancy d[N_HOSTS];
        struct verification v;
        uint64_t reported = 0;

        begin(FOLLOW_SM);
        v = differing_ports(d, 2);
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        ck_assert_uint_eq(next(LOG_EVENT_STANDBY_DIFFERS, "standing by: the fabric does not match the policy of this "
                                                          "host (generation 42) on 2 ports: node1 "
                                                          "mlx5_0/1, node2 mlx5_0/1; 0x0010 p missing on 2 ports")
                                          ->about.generation,
                          42);
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        nothing_more(); /* the same again */
        v = differing_ports(d, 1);
        d[0].n_missing = 0;
        d[0].unexpected = many;
        d[0].n_unexpected = 1;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        next(LOG_EVENT_STANDBY_DIFFERS,
             "standing by: the fabric does not match the policy of this host (generation 42) on 1 port: "
             "node1 mlx5_0/1; 0x0010 p unexpected on 1 port");
        v.n_differ = 0;
        v.n_unreachable = 1;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        next(LOG_EVENT_STANDBY_DIFFERS, "standing by: the fabric may differ from the policy of this host "
                                        "(generation 42): 1 port does not answer; all others match");
        v.n_unreachable = 0;
        snapshot->subnet->nodes[0].silent_ports[0] = 6; /* nor are these devices known to agree */
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        nothing_more();
        snapshot->subnet->nodes[0].silent_ports[0] = 0;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        next(LOG_EVENT_STANDBY_AGREES, "standing by: the fabric matches the policy of this host (generation 42)");
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        nothing_more();
        v.n_unreachable = 1; /* which is logged as such */
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        nothing_more();
        done();
}
END_TEST

/* What makes a difference another one: the port, the entry, whether it lacks or is unexpected, the bits. */
START_TEST(standby_differs_otherwise)
{
        static const struct p_key other[] = {{0x0010}};
        struct discrepancy d[N_HOSTS];
        struct verification v;
        uint64_t reported = 0;

        begin(FOLLOW_SM);
        v = differing_ports(d, 1);
        for (unsigned i = 0; i < 5; i++) {
                if (i == 1)
                        d[0].port = subnet_find_endport(snapshot->subnet, port_of(hosts[2])->guid);
                if (i == 2)
                        d[0].missing = other;
                if (i == 3) {
                        d[0].n_missing = 0;
                        d[0].unexpected = other;
                        d[0].n_unexpected = 1;
                }
                if (i == 4)
                        d[0].enforcement_differs = true;
                event_text_standby(l, g, snapshot->subnet, &v, &reported);
                next_has(LOG_EVENT_STANDBY_DIFFERS, i == 4 ? "; enforcement bits of 1 port" : "0x0010 p");
        }
        done();
}
END_TEST

/* Bounded: four ports, eight partitions. */
START_TEST(standby_differs_much)
{
        struct discrepancy d[2 * N_HOSTS];
        struct verification v;
        const struct log_entry *e;
        uint64_t reported = 0;

        begin(FOLLOW_SM);
        v = differing_ports(d, N_HOSTS);
        for (unsigned i = 0; i < N_HOSTS; i++)
                d[N_HOSTS + i] = d[i];
        v.n_differ = 2 * N_HOSTS;
        d[0].n_missing = 10;
        d[1].unexpected = many;
        d[1].n_unexpected = 1;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        e = log_next(l);
        ck_assert_ptr_nonnull(strstr(
                        e->text,
                        "on 6 ports, among them node1 mlx5_0/1, node2 mlx5_0/1, node3 mlx5_0/1, node1 mlx5_0/1;"));
        ck_assert_ptr_nonnull(strstr(e->text,
                                     "; 0x0010 p missing on 6 ports, unexpected on 1 port; 0x0011 missing on 1 port;"));
        ck_assert_ptr_nonnull(strstr(e->text, "; 0x0017 missing on 1 port; and 2 more partitions"));
        d[0].n_missing = 9;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        e = log_next(l);
        ck_assert_ptr_nonnull(strstr(e->text, "and 1 more partition"));
        ck_assert_ptr_null(strstr(e->text, "more partitions"));
        v.n_differ = 4;
        event_text_standby(l, g, snapshot->subnet, &v, &reported);
        e = log_next(l);
        ck_assert_ptr_nonnull(strstr(
                        e->text, "on 4 ports: node1 mlx5_0/1, node2 mlx5_0/1, node3 mlx5_0/1, node1 mlx5_0/1;"));
        done();
}
END_TEST

/* --- an apply --- */

static unsigned lost[20], n_lost;
static uint16_t lost_attribute;

static bool lose_sets(const struct mad_request *request, struct fabsim_place at)
{
        for (unsigned i = 0; i < n_lost; i++)
                if (at.node == lost[i] && request->method == MAD_SET && request->attribute == lost_attribute)
                        return true;
        return false;
}

static void apply_without_sets_of(unsigned node, uint16_t attribute, const char *policy)
{
        lost[0] = node;
        n_lost = 1;
        lost_attribute = attribute;
        lose = lose_sets;
        start(ENFORCE, policy);
        sweep();
}

START_TEST(apply_done)
{
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_uint_eq(last_logged(LOG_EVENT_APPLIED)->generation, 1);
        expect_logged(LOG_EVENT_APPLIED, "generation 1: ");
        expect_logged(LOG_EVENT_APPLIED, " writes done on ");
        expect_logged(LOG_EVENT_APPLIED, " ports in 0.00 s");
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 0);
}
END_TEST

START_TEST(apply_of_one_write)
{
        start(ENFORCE, POLICY_1);
        sweep();
        put_key(hosts[0], 1, 0);
        forget_log();
        until(CONTROL_OPENING_PORT);
        sweep();
        expect_logged(LOG_EVENT_APPLIED, "generation 1: 1 write done on 1 port in 0.00 s");
}
END_TEST

START_TEST(set_without_an_answer)
{
        const struct logged *e;

        apply_without_sets_of(hosts[0], SMP_ATTR_P_KEY_TABLE, POLICY_1);
        e = last_logged(LOG_EVENT_WRITE_FAILED);
        ck_assert_str_eq(e->node, "node1 mlx5_0/1");
        ck_assert_uint_eq(e->port_guid.v, port_of(hosts[0])->guid.v);
        ck_assert_uint_eq(e->generation, 1);
        expect_logged(LOG_EVENT_WRITE_FAILED,
                      "node1 mlx5_0/1: block 0 of its P_Key table could not be written (grant: set-unanswered; the port ");
        expect_logged(LOG_EVENT_APPLY_PARTIAL,
                      ", 1 failed, 0 held back");
}
END_TEST

START_TEST(bits_without_an_answer)
{
        apply_without_sets_of(leaf, SMP_ATTR_PORT_INFO, POLICY_0);
        expect_logged(LOG_EVENT_WRITE_FAILED,
                      ": its enforcement bits could not be written (enforce: set-unanswered; the port ");
}
END_TEST

static bool lose_while_it_writes(const struct mad_request *request, struct fabsim_place at)
{
        (void) request;
        return at.node == hosts[0] && state() == CONTROL_APPLYING;
}

/* It was read for the plan, and does not answer any more when it is to be written. */
START_TEST(read_without_an_answer)
{
        lose = lose_while_it_writes;
        start(ENFORCE, POLICY_1);
        sweep();
        expect_logged(LOG_EVENT_PORT_UNREACHABLE, "(timeout: the node is hung, it was unplugged just now, MADs are lost, or ");
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), 0);
}
END_TEST

/* Once, and only where the settings do not allow for the SM. */
START_TEST(beside_an_sm)
{
        f.sm_runs = true;
        start("mode: enforce\n", POLICY_1);
        sweep();
        expect_logged(LOG_EVENT_BESIDE_SM, "may write P_Key tables, too");
        forget_log();
        give_candidate("mode: enforce\nbeside_opensm: true\n", POLICY_2, 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_BESIDE_SM), 0);
}
END_TEST

static void refuse_sets(const struct mad_request *request)
{
        /* another size of table than it has: the modifier is refused */
        if (request->method == MAD_SET && request->attribute == SMP_ATTR_P_KEY_TABLE)
                port_of(hosts[0])->capacity = 0;
        else
                port_of(hosts[0])->capacity = 64;
}

START_TEST(set_refused)
{
        before_request = refuse_sets;
        start(ENFORCE, POLICY_1);
        sweep();
        expect_logged(LOG_EVENT_WRITE_FAILED, "(grant: status 0x");
        ck_assert_ptr_null(strstr(last_logged(LOG_EVENT_WRITE_FAILED)->text, "hung"));
}
END_TEST

/* What failed, then went well, and fails again in the same way is news again. */
START_TEST(failure_comes_again)
{
        apply_without_sets_of(hosts[0], SMP_ATTR_P_KEY_TABLE, POLICY_1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 1);
        n_lost = 0;
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLIED), 1);
        n_lost = 1;
        put_key(hosts[0], 1, 0);
        give_candidate(ENFORCE "sweep_interval: 10s\n", POLICY_1, 0);
        for (unsigned i = 0; i < 3; i++) {
                until(CONTROL_OPENING_PORT);
                sweep();
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 2);
}
END_TEST

/* A second leaf with hosts n4 and so on, which are all members of p. */
static void add_hosts(void)
{
        unsigned leaf2 = fabsim_add_node(&f, NODE_SWITCH, 16, 8, "leaf2");
        char name[32];

        fabsim_connect(&f, leaf, 8, leaf2, 16);
        f.nodes[leaf2].ports[0].lid.v = 100;
        n_lost = 0;
        for (uint8_t i = 1; i <= 15; i++) {
                unsigned n;

                (void) snprintf(name, sizeof(name), "node%u mlx5_0", 3u + i);
                n = fabsim_add_node(&f, NODE_CA, 1, 64, name);
                fabsim_connect(&f, n, 1, leaf2, i);
                f.nodes[n].ports[1].lid.v = (uint16_t) (100 + i);
                f.nodes[n].ports[1].table[0].v = 0x7fff;
                lost[n_lost++] = n;
        }
        for (unsigned i = 0; i < N_HOSTS; i++)
                lost[n_lost++] = hosts[i];
}

/* Eighteen hosts fail: sixteen are named, and the same failure the next time is not logged again. */
START_TEST(many_failures)
{
        add_hosts();
        lost_attribute = SMP_ATTR_P_KEY_TABLE;
        lose = lose_sets;
        start(ENFORCE, "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {\"node[1-18]\": full}\n");
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), EVENT_TEXT_MAX);
        expect_logged(LOG_EVENT_APPLY_PARTIAL, " writes done in 0.00 s, 18 failed, 0 held back (16 are named above)");
        forget_log();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_WRITE_FAILED), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 0);
        n_lost--; /* one less is another failure */
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLY_PARTIAL), 1);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        kinds,
                        fields_of_a_port,
                        without_a_generation,
                        why_it_cannot_be_read,
                        no_secret,
                        how_it_differs,
                        many_ports,
                        rewritten_switch,
                        rewritten_in_many_p_keys,
                        rewritten_by_the_writer,
                        findings_of_files,
                        findings_of_the_planner,
                        findings_of_a_kind,
                        standby_differs,
                        standby_differs_otherwise,
                        standby_differs_much,
                        apply_done,
                        apply_of_one_write,
                        set_without_an_answer,
                        bits_without_an_answer,
                        read_without_an_answer,
                        beside_an_sm,
                        set_refused,
                        failure_comes_again,
                        many_failures,
        };

        return run_suite("event text", tests, ELEMENTS(tests));
}
