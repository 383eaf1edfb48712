/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who sent what: a random run of edits, moves, swaps, renames, reboots, new LIDs and violations, through the poll, the notices,
 * the violation table, the history and the words, against an oracle that knows the sender of each packet. No report and no record
 * may name a host that did not send so many (of a notice: from whom, to whom), or a cause that was none.
 *
 * What no poll can see is left out: a port has the same host at two samples, and another one between them.
 */
#include "policy_fixture.h"

#include <infiniband/mad.h>

#include "../fabsim/prng.h"
#include "ib/pma.h"
#include "ib/smp.h"
#include "violations/attribution.h"
#include "violations/notice_ends.h"
#include "violations/poll.h"

#define HOSTS     20
#define FEW       3  /* hosts in notices */
#define SLOTS     25 /* ports of the switch, 1 to SLOTS - 1 */
#define LEAF      0x10000
#define LEAF_LID  100
#define INTERVAL  (10 * USEC_PER_SEC)
#define STEPS     400
#define RUNS      20
#define MAX_EDITS (STEPS + 2)
#define MAX_READS (STEPS * 40)
#define MAX_NOTICES STEPS
#define NOBODY    -1

struct host {
        unsigned name;                  /* "n03" */
        unsigned seen_name;             /* in the last snapshot */
        int slot;                       /* NOBODY: it is down */
        int seen_slot;                  /* in the last snapshot */
        uint16_t lid;
        bool in_a;
        uint64_t named[HOSTS];          /* packets that were read while it was known by this name */
        uint64_t told[HOSTS];           /* packets that reports attribute to it, by name */
        usec_t first_told;              /* when the first of them were counted; 0: never */
};

struct slot {
        int host, last;
        usec_t moved;
        uint64_t rcv;
        uint64_t pending[HOSTS];        /* not read yet, by sender */
        usec_t pending_since[HOSTS];
};

/* Packets of a host of one sample. */
struct read {
        int host;
        usec_t when, earliest_sent;
};

/* A dropped packet that a notice reports. */
struct told_packet {
        int from;
        unsigned from_name, to_name;
};

static struct host hosts[HOSTS];
static struct slot slots[SLOTS];
static struct read reads[MAX_READS];
static unsigned n_reads;
static struct told_packet packets[MAX_NOTICES];
static unsigned n_packets;
static bool lost[MAX_EDITS][HOSTS];     /* with this generation the policy took the host out of a */
static usec_t edited[MAX_EDITS];
static unsigned generation;
static struct prng prng;
static bool leaf_is_silent;             /* discovery does not see what is plugged in where */
static usec_t now;
static uint64_t n_sent, n_named, n_reports, n_causes, n_storms, n_notices;

static const struct subnet *subnet;
static struct policy *policy;
static struct memberships *memberships;
static struct membership_history *history;
static struct lid_map *lids;
static struct violations *violations;
static struct violation_poll *poll;

static uint64_t guid_of(unsigned host)
{
        return 0x100 * (host + 1);
}

/* --- what pkeyd sees ---------------------------------------------------------------------------------------------- */

static void add_switch(struct subnet_builder *b)
{
        struct subnet_node node = { .guid = { LEAF }, .type = NODE_SWITCH, .num_ports = SLOTS - 1, .partition_cap = 32,
                                    .partition_enforcement_cap = 32, .inbound_enforcement_cap = true,
                                    .outbound_enforcement_cap = true };
        struct subnet_port port = { .guid = { LEAF }, .lid = { LEAF_LID }, .route.lid = { LEAF_LID } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

static void add_host(struct subnet_builder *b, unsigned i)
{
        struct subnet_node node = { .guid = { guid_of(i) }, .type = NODE_CA, .num_ports = 1, .partition_cap = 128 };
        uint16_t lid = hosts[i].lid;
        struct subnet_port port = { .number = 1, .guid = { guid_of(i) + 1 }, .lid = { lid }, .route.lid = { lid } };
        struct subnet_port external = { .number = (uint8_t) hosts[i].slot, .enforce_inbound = true,
                                        .enforce_outbound = true };
        char name[16];

        hosts[i].seen_name = hosts[i].name;
        hosts[i].seen_slot = hosts[i].slot;
        (void) snprintf(name, sizeof(name), "n%02u mlx5_0", hosts[i].name);
        port.state = external.state = PORT_STATE_ACTIVE;
        ck_assert_int_eq(subnet_builder_add_node(b, &node, name, strlen(name)), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { LEAF }, &external), 0);
        if (!leaf_is_silent)
                ck_assert_int_eq(subnet_builder_add_link(b, node.guid, 1, (struct guid) { LEAF }, external.number), 0);
}

static void learn(void)
{
        const struct policy_memory nothing = {};

        ck_assert_int_eq(policy_resolve_with_memory(arena, policy, subnet, &nothing, true, &findings, &memberships), 0);
        ck_assert_int_eq(membership_history_learn(history, now, generation, memberships), 0);
}

static void sweep(void)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_switch(b);
        for (unsigned i = 0; i < HOSTS; i++) {
                hosts[i].seen_slot = NOBODY;
                if (hosts[i].slot != NOBODY)
                        add_host(b, i);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &s), 0);
        subnet = s;
        lids = lid_map_new(arena, subnet);
        ck_assert_ptr_nonnull(lids);
        learn();
        ck_assert_int_eq(violations_set_subnet(violations, subnet), 0);
        ck_assert_int_eq(violation_poll_set_subnet(poll, now, subnet), 0);
}

/* a: by GUID, what edits change; b: by name, what renames change. */
static void make_policy(void)
{
        const char *members = "oss: full";

        for (unsigned i = 0; i < HOSTS; i++)
                if (hosts[i].in_a)
                        members = arena_printf(arena, "%s, '0x%x': full", members, (unsigned) guid_of(i));
        policy = parse(arena_printf(arena, "version: 1\nowns: [0x7fff, 0x0001-0x0fff]\npartitions:\n"
                                           "  a: {pkey: 0x0101, members: {%s}}\n"
                                           "  b: {pkey: 0x0102, members: {'n0*': limited}}\n", members));
}

/* Every third edit changes nothing for anybody. */
static void edit(void)
{
        ck_assert_uint_lt(generation + 1, MAX_EDITS);
        generation++;
        edited[generation] = now;
        for (unsigned i = 0; i < HOSTS; i++)
                if (generation % 3 != 0 && prng_permille(&prng, 300)) {
                        lost[generation][i] = hosts[i].in_a;
                        hosts[i].in_a = !hosts[i].in_a;
                }
        if (prng_permille(&prng, 500)) {
                generation--; /* first what the fabric changed */
                sweep();
                generation++;
        }
        make_policy();
        learn();
}

/* --- the fabric --------------------------------------------------------------------------------------------------- */

static void plug(int host, int slot)
{
        hosts[host].slot = slot;
        if (slot == NOBODY)
                return;
        slots[slot].host = host;
        if (slots[slot].last != host)
                slots[slot].moved = now;
        slots[slot].last = host;
}

static void unplug(int host)
{
        if (hosts[host].slot != NOBODY)
                slots[hosts[host].slot].host = NOBODY;
        hosts[host].slot = NOBODY;
}

static bool may_change(int slot)
{
        return slots[slot].moved == 0 || now - slots[slot].moved > 2 * INTERVAL;
}

static void move_host(int host)
{
        int to = (int) prng_between(&prng, 1, SLOTS - 1);

        if (slots[to].host != NOBODY || !may_change(to))
                return;
        unplug(host);
        plug(host, to);
}

static void swap_hosts(int a, int b)
{
        int x = hosts[a].slot, y = hosts[b].slot;

        if (a == b || x == NOBODY || y == NOBODY || !may_change(x) || !may_change(y))
                return;
        plug(a, y);
        plug(b, x);
}

/* It returns to its place, if no other host took it. */
static void boot(int host)
{
        for (int i = 1; i < SLOTS && hosts[host].slot == NOBODY; i++)
                if (slots[i].last == host && slots[i].host == NOBODY)
                        plug(host, i);
}

static void rename_hosts(int a, int b)
{
        unsigned name = hosts[a].name;

        hosts[a].name = hosts[b].name;
        hosts[b].name = name;
        sweep(); /* a new name is not known before it is queried */
}

/* By a subnet manager, whose sweep is followed by one of pkeyd. */
static void swap_lids(int a, int b)
{
        uint16_t lid = hosts[a].lid;

        hosts[a].lid = hosts[b].lid;
        hosts[b].lid = lid;
        sweep();
}

/* From a to b, refused by b, or where a is plugged in. */
static void send_noticed(int a, int b)
{
        struct notice n = { .trap = NOTICE_P_KEY, .key = 0x8101, .issuer = { hosts[b].lid }, .lid1 = { hosts[a].lid },
                            .lid2 = { hosts[b].lid } };
        struct violation_ends ends;

        if (a == b || hosts[a].slot == NOBODY || hosts[b].slot == NOBODY)
                return;
        if (hosts[a].seen_slot == hosts[a].slot && prng_below(&prng, 2)) {
                n.trap = NOTICE_SWITCH_P_KEY;
                n.issuer = n.switch_lid = (struct lid) { LEAF_LID };
                n.switch_port = (uint8_t) hosts[a].slot;
                n.has_switch_port = true;
        }
        ck_assert_uint_lt(n_packets, MAX_NOTICES);
        packets[n_packets++] = (struct told_packet) { a, hosts[a].seen_name, hosts[b].seen_name };
        ck_assert_int_eq(violation_ends_of_notice(arena, subnet, lids, &n, &ends), 0);
        ck_assert_int_eq(violations_see_notice(violations, now, violation_port_of_notice(subnet, lids, &n), &n, &ends), 0);
}

static void send_packets(int host, unsigned n)
{
        int slot = hosts[host].slot;
        struct slot *s = &slots[MAX(slot, 0)];

        if (slot == NOBODY)
                return;
        if (s->pending[host] == 0)
                s->pending_since[host] = now;
        s->pending[host] += n;
        s->rcv += n;
        n_sent += n;
}

/* A port counter is read: what is in it gets its name now. */
static void note_read(struct slot *s)
{
        for (int i = 0; i < HOSTS; i++) {
                if (s->pending[i] == 0)
                        continue;
                ck_assert_uint_lt(n_reads, MAX_READS);
                reads[n_reads++] = (struct read) { i, now, s->pending_since[i] };
                hosts[i].named[hosts[i].seen_name] += s->pending[i];
                s->pending[i] = 0;
        }
}

/* The switch's forwarding table, as a subnet manager has made it. */
static void answer_forwarding(const struct mad_request *q, struct mad_result *ret)
{
        memset(ret->data, 0xff, SMP_DATA_SIZE);
        for (unsigned i = 0; i < HOSTS; i++)
                if (hosts[i].lid / 64 == q->modifier && hosts[i].slot != NOBODY)
                        ret->data[hosts[i].lid % 64] = (uint8_t) hosts[i].slot;
}

static bool is_up(struct lid lid)
{
        for (unsigned i = 0; i < HOSTS; i++)
                if (hosts[i].lid == lid.v)
                        return hosts[i].slot != NOBODY;
        return false;
}

static void answer(const struct mad_request *q, struct mad_result *ret)
{
        bool at_leaf = q->route.lid.v == LEAF_LID;

        *ret = (struct mad_result) { .cookie = q->cookie };
        if (!at_leaf && !is_up(q->route.lid)) {
                ret->outcome = MAD_TIMED_OUT;
        } else if (q->mgmt_class == MAD_CLASS_SMP) {
                if (q->attribute == 0x19)
                        answer_forwarding(q, ret);
                else if (at_leaf && q->attribute == SMP_ATTR_NODE_INFO)
                        mad_set_field64(ret->data, 0, IB_NODE_PORT_GUID_F, LEAF);
        } else if (q->attribute == CLASS_PORT_INFO) {
                mad_set_field(ret->data, 0, IB_CPI_CAPMASK_F, 1 << 9);
                mad_set_field(ret->data, 0, IB_CPI_CAPMASK2_F, 0);
        } else if (at_leaf) {
                struct slot *s = &slots[mad_get_field((void *) q->data, 0, IB_PC_PORT_SELECT_F)];

                if (q->attribute == IB_GSI_PORT_COUNTERS_EXT)
                        mad_set_field64(ret->data, 0, IB_PC_EXT_ERR_RCVCONSTR_F, s->rcv);
                else
                        mad_set_field(ret->data, 0, IB_PC_ERR_RCVCONSTR_F, (uint32_t) (s->rcv = MIN(s->rcv, 255U)));
                note_read(s);
        }
}

/* --- the oracle --------------------------------------------------------------------------------------------------- */

static int host_of(struct guid guid)
{
        return guid.v == 0 ? NOBODY : (int) ((guid.v - 1) / 0x100 - 1);
}

/* When the first of the packets was sent that a host's episode is about. */
static usec_t first_sent(int host, usec_t began)
{
        usec_t first = USEC_INFINITY;

        for (unsigned i = 0; i < n_reads; i++)
                if (reads[i].host == host && reads[i].when >= began)
                        first = MIN(first, reads[i].earliest_sent);
        return first;
}

static void check_cause(const char *text, int host, usec_t began)
{
        const char *by = strstr(text, " by generation "), *about = strstr(text, "about when this began");
        unsigned g;

        if (!by || (!strstr(text, ": probably") && !strstr(text, ": perhaps") && !strstr(text, ": this is ")))
                return;
        n_causes++;
        ck_assert_int_eq(sscanf(by, " by generation %u", &g), 1);
        ck_assert_msg(lost[g][host], "generation %u did not take it out: %s", g, text);
        ck_assert_msg(about || edited[g] <= first_sent(host, began), "it had begun before: %s", text);
        /* here or elsewhere, under this name or another */
        ck_assert_msg(edited[g] <= hosts[host].first_told, "not the first time: %s", text);
}

/* Only this name may be in the text. */
static unsigned check_names(const char *text, const char *node)
{
        unsigned name, other;

        ck_assert_msg(node && sscanf(node, "n%02u mlx5_0/1", &name) == 1, "no name: %s", text);
        for (const char *p = text; (p = strstr(p, " mlx5_0/1")); p++) {
                ck_assert_int_eq(sscanf(p - 3, "n%02u", &other), 1);
                ck_assert_msg(other == name, "%s is not about n%02u", text, other);
        }
        return name;
}

static struct attribution_input context(void)
{
        return (struct attribution_input) {
                .subnet = subnet, .memberships = memberships, .history = history, .now = now,
        };
}

/* So many from this host, and to the one that is named. A host that the last snapshot did not have has no name. */
static void check_notice(const struct attribution *words, uint64_t count)
{
        unsigned from, to;
        uint64_t n = 0;

        if (!words->names_sender || !strstr(words->text, " mlx5_0/1 with P_Key 0x8101"))
                return;
        ck_assert_msg(words->node && sscanf(words->node, "n%02u mlx5_0/1", &from) == 1, "no name: %s", words->text);
        ck_assert_int_eq(sscanf(strstr(words->text, " mlx5_0/1 with P_Key 0x8101") - 3, "n%02u", &to), 1);
        for (unsigned i = 0; i < n_packets; i++)
                n += packets[i].from == host_of(words->port_guid) && packets[i].from_name == from && packets[i].to_name == to;
        ck_assert_msg(count <= n, "%" PRIu64 " of %" PRIu64 ": %s", count, n, words->text);
        n_notices += count;
}

static void note_told(int host, unsigned name, uint64_t n, usec_t first)
{
        hosts[host].told[name] += n;
        if (hosts[host].first_told == 0)
                hosts[host].first_told = first;
}

static void check_storm(const struct violation_report *report, const char *text)
{
        n_storms++;
        for (uint32_t i = 0; i < report->n_worst; i++) {
                const struct attribution_input c = context();
                struct attribution one;

                ck_assert_int_eq(attribution_explain_record(arena, &report->worst[i], &c, &one), 0);
                if (violation_source_is_notice(report->worst[i].source)) {
                        check_notice(&one, report->worst[i].total);
                        continue;
                }
                if (report->kind == VIOLATION_STORM && one.port_guid.v != 0)
                        note_told(host_of(one.port_guid), check_names(one.text, one.node), report->worst[i].unreported,
                                  report->worst[i].first);
                if (strstr(text, "all of these"))
                        check_cause(text, host_of(one.port_guid), report->worst[i].episode_began);
        }
}

static void check_report(const struct violation_report *report)
{
        const struct attribution_input c = context();
        struct attribution a;
        int host;

        ck_assert_int_eq(attribution_explain(arena, report, &c, &a), 0);
        n_reports++;
        if (report->kind == VIOLATION_STORM || report->kind == VIOLATION_ALL_QUIET) {
                check_storm(report, a.text);
                return;
        }
        host = host_of(a.port_guid);
        if (violation_source_is_notice(report->record.source))
                check_notice(&a, report->count);
        if (host == NOBODY || violation_source_is_notice(report->record.source))
                return;
        if (report->kind == VIOLATION_QUIET) {
                ck_assert_uint_le(report->count, hosts[host].named[check_names(a.text, a.node)]);
                return;
        }
        note_told(host, check_names(a.text, a.node), report->count, report->record.first);
        n_named += report->count;
        check_cause(a.text, host, report->record.episode_began);
        for (unsigned i = 0; i < HOSTS; i++)
                ck_assert_msg(hosts[host].told[i] <= hosts[host].named[i], "too many: %s", a.text);
}

/* Whatever became of the hosts since. */
static void check_records(void)
{
        const struct attribution_input c = context();
        const struct violation_record *records;
        uint64_t sums[HOSTS][HOSTS] = {};
        uint32_t n;

        records = violations_records(violations, &n);
        for (uint32_t i = 0; i < n; i++) {
                struct attribution a;
                unsigned name;
                int host;

                ck_assert_int_eq(attribution_explain_record(arena, &records[i], &c, &a), 0);
                host = host_of(a.port_guid);
                if (violation_source_is_notice(records[i].source))
                        check_notice(&a, records[i].total);
                if (host == NOBODY || records[i].total == 0 || violation_source_is_notice(records[i].source))
                        continue;
                name = check_names(a.text, a.node);
                sums[host][name] += records[i].total;
                ck_assert_msg(sums[host][name] <= hosts[host].named[name], "too many: %s", a.text);
        }
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static void poll_until(usec_t until)
{
        struct mad_background_task task = violation_poll_task(poll);
        struct violation_report report;
        struct mad_request q;
        struct mad_result result;

        for (; now < until; now = MIN(MAX(now + 1, task.due(task.state)), until)) {
                while (task.next(task.state, now, &q)) {
                        answer(&q, &result);
                        task.result(task.state, now, &result);
                        violations_take_samples(violations, now, poll);
                }
                while (violations_next_report(violations, now, &report))
                        check_report(&report);
        }
}

static void step(void)
{
        int a = (int) prng_below(&prng, HOSTS), b = (int) prng_below(&prng, HOSTS);
        unsigned what = prng_below(&prng, 100);

        if (what < 10)
                send_noticed(a % FEW, b % FEW); /* so that what becomes of a pair is seen */
        else if (what < 45)
                send_packets(a, prng_between(&prng, 1, 9));
        else if (what < 47)
                for (int i = 0; i < HOSTS; i++)
                        send_packets(i, prng_between(&prng, 1, 9));
        else if (what < 57)
                edit();
        else if (what < 65)
                move_host(a);
        else if (what < 72)
                swap_hosts(a, b);
        else if (what < 74)
                rename_hosts(a % FEW, b);
        else if (what < 76)
                swap_lids(a % FEW, b % FEW);
        else if (what < 84)
                unplug(a);
        else if (what < 90)
                boot(a);
        else
                sweep();
}

static void begin(uint64_t seed)
{
        const struct violations_config config = { .interval = INTERVAL, .threshold = 1 };
        const struct violation_poll_config poll_config = { .interval = INTERVAL, .check_hosts = true };

        memset(hosts, 0, sizeof(hosts));
        memset(slots, 0, sizeof(slots));
        memset(lost, 0, sizeof(lost));
        n_reads = n_packets = 0;
        generation = 1;
        now = 1000 * USEC_PER_SEC;
        prng = (struct prng) { seed };
        for (int i = 0; i < SLOTS; i++)
                slots[i].host = slots[i].last = NOBODY;
        for (int i = 0; i < HOSTS; i++) {
                hosts[i].name = (unsigned) i;
                hosts[i].lid = (uint16_t) (i + 1);
                hosts[i].in_a = i % 2 == 0;
                plug(i, i + 1);
        }
        violations = violations_new(&config);
        poll = violation_poll_new(&poll_config);
        history = membership_history_new();
        ck_assert(violations && poll && history);
        make_policy();
        sweep();
}

static void end_run(void)
{
        history = membership_history_free(history);
        poll = violation_poll_free(poll);
        violations = violations_free(violations);
        teardown();
        setup();
}

/* The only record there is, of what an adapter counted. */
static const struct violation_host *own_host(unsigned host, uint64_t value)
{
        const struct violation_port own = { { guid_of(host) }, 1 };
        const struct violation_record *records;
        uint32_t n;

        ck_assert_int_ge(violations_see_counter(violations, ++now, own, VIOLATION_P_KEY_VIOLATIONS, 16, value), 0);
        records = violations_records(violations, &n);
        ck_assert_uint_le(n, 1);
        return n > 0 ? records->host : NULL;
}

/* Whatever became of its cable: it was the adapter that counted, where it was seen last. */
START_TEST(an_adapter_counts_for_itself)
{
        begin(1);
        ck_assert_ptr_null(own_host(3, 5));
        unplug(3);
        sweep();
        ck_assert_uint_eq(own_host(3, 6)->guid.v, guid_of(3) + 1);
        boot(3);
        leaf_is_silent = true;
        sweep();
        leaf_is_silent = false;
        ck_assert_str_eq(own_host(3, 7)->at_switch, "leaf/4");
        ck_assert_uint_eq(own_host(3, 7)->switch_port, 4);
        end_run();
}
END_TEST

START_TEST(names_who_sent_it)
{
        for (uint64_t seed = 1; seed <= RUNS; seed++) {
                begin(seed);
                for (unsigned i = 0; i < STEPS; i++) {
                        poll_until(now + prng_between(&prng, 1, 12) * USEC_PER_SEC);
                        step();
                        check_records();
                }
                end_run();
        }
        /* there are reports */
        ck_assert_uint_gt(n_reports, 1000);
        ck_assert_uint_gt(n_causes, 100);
        ck_assert_uint_gt(n_storms, 5);
        ck_assert_uint_gt(n_notices, 1000);
        ck_assert_uint_gt(n_named * 3, n_sent);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("violation_hosts");
        TCase *t = tcase_create("hosts");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 0);
        tcase_add_test(t, an_adapter_counts_for_itself);
        tcase_add_test(t, names_who_sent_it);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
