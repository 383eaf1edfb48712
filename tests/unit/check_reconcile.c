/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole decision: bytes of a policy and tables in memory to a plan. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_fabric.h"
#include "reconcile.h"
#include "subnet/known.h"
#include "util/text.h"

static const char policy_text[] = "version: 1\n"
                                  "partitions:\n"
                                  "  default:\n"
                                  "    pkey: 0x7fff\n"
                                  "    members:\n"
                                  "      ALL: limited\n"
                                  "  tenant:\n"
                                  "    pkey: 0x0101\n"
                                  "    members:\n"
                                  "      node[1-2]: full\n"
                                  "      node0: limited\n";

struct scene {
        struct arena *a;
        struct fake_fabric f;
        struct findings findings;
        struct reconciled decision;
        struct policy *policy;
};

static bool has_mirror, sm_runs;
static enum plan_beside_sm beside_sm;

static int decide_as(struct scene *s, bool in_force)
{
        struct plan_options options = {
                .enforcement = ENFORCEMENT_BOTH, .in_force = in_force, .beside_sm = beside_sm,
                .opensm_order = has_mirror,
        };

        return reconcile(s->a, s->policy, fake_fabric_observe(&s->f, s->a), NULL, &options, &s->findings, &s->decision);
}

static int decide_again(struct scene *s)
{
        return decide_as(s, false);
}

static unsigned n_hosts = 3;

static int decide_text(struct scene *s, const char *text, uint32_t sm, uint16_t sm_lid)
{
        unsigned h;

        s->a = arena_new();
        fake_fabric_init(&s->f, s->a, n_hosts, false);
        for (h = 0; h < n_hosts; h++)
                fake_fabric_put(&s->f, s->f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        s->f.subnet->sm = sm == SUBNET_NONE ? SUBNET_NONE : s->f.host[sm];
        if (sm != SUBNET_NONE)
                s->f.subnet->ports[s->f.host[sm]].is_sm = sm_runs;
        s->f.subnet->sm_lid.v = sm_lid;
        s->findings = (struct findings) { .arena = s->a };
        ck_assert_int_eq(policy_parse(s->a, "p.yaml", text, strlen(text), &s->findings, &s->policy), 0);
        return decide_again(s);
}

static int decide(struct scene *s, uint32_t sm, uint16_t sm_lid)
{
        return decide_text(s, policy_text, sm, sm_lid);
}

static void done(struct scene *s)
{
        findings_done(&s->findings);
        arena_free(s->a);
}

static bool ends_with(const struct scene *s, unsigned host, uint16_t key)
{
        const struct p_key *table = s->decision.plan->final_tables[s->f.host[host]];
        unsigned i;

        for (i = 0; i < FAKE_CAPACITY; i++)
                if (table[i].v == key)
                        return true;
        return false;
}

START_TEST(test_policy_to_plan)
{
        struct scene s;

        ck_assert_int_eq(decide(&s, 1, 11), 0);
        ck_assert_uint_eq(s.findings.n, 0);
        ck_assert(ends_with(&s, 0, 0xffff)); /* SELF */
        ck_assert(ends_with(&s, 1, 0xffff)); /* the master SM's port */
        ck_assert(ends_with(&s, 2, 0x7fff));
        ck_assert(ends_with(&s, 0, 0x0101));
        ck_assert(ends_with(&s, 1, 0x8101));
        ck_assert_uint_eq(s.decision.plan->steps[PHASE_LOWER_ENDPORTS].n_writes, 1);
        ck_assert_uint_eq(s.decision.plan->steps[PHASE_GRANT].n_writes, 3);
        done(&s);
}
END_TEST

/* If several ports lose the full membership of the default partition, a warning says what that means and how to keep it. */
START_TEST(test_default_limited)
{
        static const char *const members[] = { "ALL: limited", "ALL: full", "ALL: both", "node[0-2]: full",
                                               "ALL: full\n      node[0-4]: limited" };

        n_hosts = 5;
        for (unsigned i = 0; i < ELEMENTS(members); i++) {
                char text[200];
                struct scene s;

                (void) snprintf(text, sizeof(text), "version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n      %s\n",
                                members[i]);
                ck_assert_int_eq(decide_text(&s, text, 1, 11), 0);
                ck_assert_uint_eq(s.findings.n, i == 0 || i >= 3);
                if (s.findings.n > 0) {
                        ck_assert_int_eq(s.findings.items[0].code, FINDING_PLAN_DEFAULT_LIMITED);
                        ck_assert_int_eq(s.findings.items[0].severity, FINDING_WARNING);
                        ck_assert(strncmp(s.findings.items[0].text, i != 3 ? "3 ports become" : "2 ports become", 14) == 0);
                        if (i == 4) /* the policy has this line, and a more specific one lowers the ports */
                                ck_assert_ptr_null(s.findings.items[0].hint);
                        else
                                ck_assert_ptr_nonnull(strstr(s.findings.items[0].hint, "pkey: 0x7fff, ipoib: true, members: {ALL: full}"));
                }
                s.findings.n = 0; /* a repair does not report it again */
                ck_assert_int_eq(decide_as(&s, true), 0);
                ck_assert_uint_eq(s.findings.n, 0);
                done(&s);
        }
        n_hosts = 3;
}
END_TEST

/* A note only: the tables are the same with and without `ipoib`. */
START_TEST(test_ipoib_is_the_sm_s)
{
        struct scene s;
        char *text;

        ck_assert_int_gt(asprintf(&text, "%s    ipoib: {mtu: 4096}\n", policy_text), 0);
        ck_assert_int_eq(decide_text(&s, text, 1, 11), 0);
        ck_assert_uint_eq(s.findings.n, 1);
        ck_assert_int_eq(s.findings.items[0].severity, FINDING_NOTE);
        ck_assert_int_eq(s.findings.items[0].code, FINDING_OPENSM_IPOIB);
        ck_assert_ptr_nonnull(strstr(s.findings.items[0].text, "the SM creates"));
        ck_assert_uint_eq(s.decision.plan->steps[PHASE_GRANT].n_writes, 3);
        done(&s);
        has_mirror = true; /* OpenSM gets a file that says so */
        ck_assert_int_eq(decide_text(&s, text, 1, 11), 0);
        ck_assert_uint_eq(s.findings.n, 0);
        has_mirror = false;
        done(&s);
        free(text);
}
END_TEST

static void expect_beside(uint32_t sm, uint16_t sm_lid, int r, const char *text, const char *hint)
{
        struct scene s;
        size_t n = 0;

        ck_assert_int_eq(decide(&s, sm, sm_lid), r);
        for (size_t i = 0; i < s.findings.n; i++) {
                const struct finding *f = &s.findings.items[i];

                if (f->code != FINDING_PLAN_BESIDE_SM)
                        continue;
                n++;
                ck_assert_int_eq(f->severity, r < 0 ? FINDING_ERROR : FINDING_WARNING);
                ck_assert_ptr_nonnull(strstr(f->text, text ?: "?"));
                ck_assert_ptr_nonnull(strstr(f->hint, hint ?: "?"));
        }
        ck_assert_uint_eq(n, text ? 1 : 0);
        done(&s);
}

/* An SM that may write tables, too, and has no file from pkeyd. */
START_TEST(test_beside_an_sm)
{
        beside_sm = BESIDE_SM_REPORTED;
        sm_runs = true;
        expect_beside(1, 11, 0, "the subnet manager on node1 (LID 11)", "--beside-opensm");
        beside_sm = BESIDE_SM_AUDITED;
        expect_beside(1, 11, 0, "pkeyd only compares, ", "pkeyctl reload");
        beside_sm = BESIDE_SM_REFUSED;
        expect_beside(1, 11, -EBADMSG, "nothing is written, because the subnet manager on node1", "--beside-opensm");
        expect_beside(SUBNET_NONE, 0, 0, NULL, NULL);
        beside_sm = BESIDE_SM_ACCEPTED;
        expect_beside(1, 11, 0, NULL, NULL);
        beside_sm = BESIDE_SM_REFUSED;
        sm_runs = false; /* it assigned the LIDs and ended */
        expect_beside(1, 11, 0, NULL, NULL);
        beside_sm = BESIDE_SM_ACCEPTED;
}
END_TEST

/* The master SM's port is not in the snapshot, so that it would be lowered with all others. */
START_TEST(test_sm_port_missing)
{
        struct scene s;

        ck_assert_int_eq(decide(&s, SUBNET_NONE, 77), -EBADMSG);
        ck_assert_uint_eq(s.findings.n_errors, 1);
        ck_assert_int_eq(s.findings.items[0].code, FINDING_SUBNET_SM_UNKNOWN);
        ck_assert_ptr_nonnull(strstr(s.findings.items[0].text, "LID 77"));
        done(&s);
}
END_TEST

START_TEST(test_no_sm)
{
        struct scene s;

        ck_assert_int_eq(decide(&s, SUBNET_NONE, 0), 0);
        ck_assert_uint_eq(s.findings.n_warnings, 2);
        ck_assert_int_eq(s.findings.items[0].code, FINDING_SUBNET_SM_UNKNOWN);
        ck_assert_int_eq(s.findings.items[1].code, FINDING_PLAN_DEFAULT_LIMITED);
        done(&s);
}
END_TEST

/* Ports whose peer did not answer discovery are reported, up to a limit, and do not prevent a plan. */
START_TEST(test_silent)
{
        struct scene s;
        unsigned n = 0;

        ck_assert_int_eq(decide(&s, 1, 11), 0);
        for (unsigned number = 1; number <= 12; number++) {
                s.f.subnet->nodes[0].silent_ports[0] |= UINT64_C(1) << number;
                ck_assert_int_eq(decide_again(&s), 0);
                ck_assert_uint_eq(s.findings.n - n, number <= 8 ? number : 9);
                ck_assert_int_eq(s.findings.items[n].code, FINDING_SUBNET_SILENT);
                ck_assert_int_eq(s.findings.items[n].severity, FINDING_WARNING);
                ck_assert_ptr_nonnull(strstr(s.findings.items[n].text, "leaf/1: its link is up"));
                ck_assert_ptr_nonnull(strstr(s.findings.items[n].hint, "M_Key"));
                n = (unsigned) s.findings.n;
        }
        ck_assert_ptr_nonnull(strstr(s.findings.items[n - 1].text, "4 more ports like this, 12 in total"));
        ck_assert(ends_with(&s, 1, 0x8101));
        done(&s);
}
END_TEST

/* ... with the port that was there last, unless it is present elsewhere now. */
START_TEST(test_silent_was_known)
{
        struct known_port ports[] = {
                { .port_guid = { 1 }, .number = 1, .description = "old mlx5_0", .switch_port = 6, .is_absent = true, .seen = 10 },
                { .port_guid = { 2 }, .number = 1, .description = "node0003 mlx5_0", .switch_port = 6, .is_absent = true, .seen = 30 },
                { .port_guid = { 3 }, .number = 2, .description = "", .switch_port = 6, .is_absent = true, .seen = 20 },
                { .port_guid = { 4 }, .number = 1, .description = "beside", .switch_port = 7, .is_absent = true, .seen = 40 },
                { .number = 1, .description = "moved", .switch_port = 6, .is_absent = false, .seen = 50 },
                { .port_guid = { 5 }, .description = "MF0;leaf07:MQM8700/U1", .switch_port = 6, .is_absent = true, .seen = 5 },
        };
        const char *const names[] = { "(node0003 mlx5_0/1 was there last)", "(0x0000000000000003 was there last)", "(old mlx5_0/1 was",
                                      "(leaf07/0 was there last)" };
        const size_t gone[] = { 1, 2, 0, 5 }; /* these are removed one after the other */
        struct known known = { .ports = ports, .n = (uint32_t) ELEMENTS(ports) };
        struct scene s;

        ck_assert_int_eq(decide(&s, 1, 11), 0);
        s.f.subnet->nodes[0].silent_ports[0] |= 1u << 6;
        for (size_t i = 0; i < ELEMENTS(ports); i++)
                ports[i].switch_guid = s.f.subnet->nodes[0].guid;
        ports[4].port_guid = s.f.subnet->ports[s.f.host[0]].guid;
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                size_t n = s.findings.n;

                (void) reconcile_report_silent(s.f.subnet, &known, &s.findings);
                ck_assert_ptr_nonnull(strstr(s.findings.items[n].text, names[i]));
                ports[gone[i]].switch_port = 9;
        }
        done(&s);
}
END_TEST

/* A device that did answer, with the GUID of another, is not reported as silent. */
START_TEST(test_guid_in_two_places)
{
        struct subnet_conflict conflict = { .guid = { 0x77 } };
        const struct finding *item;
        struct scene s;

        ck_assert_int_eq(decide(&s, 1, 11), 0);
        s.f.subnet->nodes[0].silent_ports[0] |= 3u << 6;
        conflict.places[0] = conflict.places[1] = (struct subnet_place) { s.f.subnet->nodes[0].guid, 3 };
        conflict.places[1].number = 7;
        s.f.subnet->conflicts = &conflict;
        s.f.subnet->n_conflicts = 1;
        ck_assert_int_eq(decide_again(&s), 0);
        ck_assert_uint_eq(s.findings.n, 2);
        ck_assert_ptr_nonnull(strstr(s.findings.items[0].text, "leaf/6: its link is up"));
        item = &s.findings.items[1];
        ck_assert_int_eq(item->code, FINDING_SUBNET_SILENT);
        ck_assert_str_eq(item->text, "leaf/7: the device at the other end has the same GUID 0x0000000000000077 as the device at leaf/3, "
                                     "which was found first");
        ck_assert_ptr_nonnull(strstr(item->hint, "give one of the two adapters another GUID"));
        s.f.subnet->nodes[0].silent_ports[0] |= 1u << 3; /* a switch: neither of the two is in the snapshot */
        ck_assert_int_eq(decide_again(&s), 0);
        ck_assert_ptr_nonnull(strstr(s.findings.items[4].hint, "knows nothing of either device"));
        s.f.subnet->nodes[0].silent_ports[0] &= ~(1u << 3);
        conflict.places[0].node.v = 0;
        ck_assert_int_eq(decide_again(&s), 0);
        ck_assert_ptr_nonnull(strstr(s.findings.items[6].text, "as this host's own port, which"));
        done(&s);
}
END_TEST

/* --- a policy in force ----------------------------------------------------------------------------------------------- */

static const char disputed_policy[] = "version: 1\n"
                                      "partitions:\n"
                                      "  default:\n"
                                      "    pkey: 0x7fff\n"
                                      "    members:\n"
                                      "      ALL: limited\n"
                                      "  tenant:\n"
                                      "    pkey: 0x0101\n"
                                      "    members:\n"
                                      "      node2: full\n"
                                      "      \"@leaf\": full\n"
                                      "      node1: limited\n";

static const struct finding *find_finding(const struct scene *s, enum finding_code code)
{
        for (size_t i = 0; i < s->findings.n; i++)
                if (s->findings.items[i].code == code)
                        return &s->findings.items[i];
        return NULL;
}

static int decide_in_force(struct scene *s, const char *text)
{
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH, .in_force = true };

        s->a = arena_new();
        fake_fabric_init(&s->f, s->a, 3, true);
        for (unsigned h = 0; h < 3; h++)
                fake_fabric_put(&s->f, s->f.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
        fake_fabric_put(&s->f, s->f.host[1], 0x0055, MEMBERSHIP_BOTH);
        s->f.tables[s->f.host[1]][9] = (struct p_key) { 0x8055 }; /* twice */
        s->f.subnet->sm = s->f.host[0];
        s->f.subnet->sm_lid.v = 10;
        s->findings = (struct findings) { .arena = s->a };
        ck_assert_int_eq(policy_parse(s->a, "p.yaml", text, strlen(text), &s->findings, &s->policy), 0);
        return reconcile(s->a, s->policy, fake_fabric_observe(&s->f, s->a), NULL, &options, &s->findings, &s->decision);
}

static bool is_written(const struct scene *s, uint32_t port)
{
        for (unsigned phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < s->decision.plan->steps[phase].n_writes; i++)
                        if (s->decision.plan->steps[phase].writes[i].port == port)
                                return true;
        return false;
}

/* The frozen port and its leaf port keep their entries, and the policy is carried out for all others. */
START_TEST(test_frozen)
{
        struct scene s;
        const struct desired_port *port;
        const struct finding *f;

        ck_assert_int_eq(decide_in_force(&s, disputed_policy), 0);
        ck_assert_int_eq(find_finding(&s, FINDING_POLICY_AMBIGUOUS)->severity, FINDING_ERROR);
        f = find_finding(&s, FINDING_PORT_FROZEN);
        ck_assert_int_eq(f->severity, FINDING_ERROR);
        ck_assert_ptr_nonnull(strstr(f->text, "node1 mlx5_0/1 (0x"));
        ck_assert_ptr_nonnull(strstr(f->text, ") is frozen: two equally specific lines"));
        ck_assert_ptr_nonnull(strstr(f->text, "stays as it is (0x0055 0x8055 0xffff)"));
        ck_assert_ptr_nonnull(strstr(f->hint, "remove it from one of the two lines"));
        ck_assert_uint_eq(s.findings.n_errors, 2);
        for (unsigned h = 0; h < 3; h++) {
                ck_assert_int_eq(s.decision.plan->frozen[s.f.leaf[h]], h == 1 ? FREEZE_LINES : FREEZE_NONE);
                ck_assert_int_eq(s.decision.desired->frozen[s.f.host[h]], h == 1 ? FREEZE_LINES : FREEZE_NONE);
                ck_assert_int_eq(is_written(&s, s.f.host[h]), h != 1);
                ck_assert_int_eq(is_written(&s, s.f.leaf[h]), h != 1);
                ck_assert_int_eq(ends_with(&s, h, 0x8101), h != 1);
        }
        port = &s.decision.desired->ports[s.f.host[1]];
        ck_assert_uint_eq(port->n_wanted, 3);
        ck_assert_uint_eq(port->wanted[0].v, 0x0055);
        ck_assert_uint_eq(port->wanted[2].v, 0xffff);
        port = &s.decision.given->ports[s.f.host[1]];
        ck_assert_uint_eq(port->n_wanted, 2);
        ck_assert_uint_eq(port->wanted[0].v, 0x0101);
        ck_assert_uint_eq(port->wanted[1].v, 0x7fff);
        ck_assert_uint_eq(s.decision.given->ports[s.f.host[2]].n_wanted, 2);
        done(&s);
}
END_TEST

static int judge_tables(struct scene *s, bool in_force, const struct observed *observed)
{
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH, .in_force = in_force };

        findings_done(&s->findings);
        s->findings = (struct findings) { .arena = s->a };
        return reconcile_tables(s->a, s->policy, observed, &options, &s->findings, &s->decision);
}

/* What only compares says the same as the plan, but neither refuses nor freezes for the sake of the SM. */
START_TEST(test_tables)
{
        struct scene s;

        ck_assert_int_eq(decide_in_force(&s, disputed_policy), 0);
        s.f.subnet->sm = SUBNET_NONE;
        s.f.subnet->sm_lid.v = 77;
        ck_assert_int_eq(judge_tables(&s, false, fake_fabric_observe(&s.f, s.a)), -EBADMSG);
        ck_assert_int_eq(judge_tables(&s, true, fake_fabric_observe(&s.f, s.a)), 0);
        ck_assert_ptr_nonnull(strstr(find_finding(&s, FINDING_PORT_FROZEN)->text, "stays as it is (0x0055 0x8055 0xffff)"));
        for (unsigned h = 0; h < 3; h++)
                ck_assert_int_eq(s.decision.desired->frozen[s.f.leaf[h]], h == 1 ? FREEZE_LINES : FREEZE_NONE);
        ck_assert_uint_eq(s.decision.desired->ports[s.f.host[1]].n_wanted, 3);
        ck_assert_uint_eq(s.decision.given->ports[s.f.host[1]].n_wanted, 2);
        done(&s);
}
END_TEST

/* A port whose table nobody asked for is frozen, and not in the findings; one that did not answer is. */
START_TEST(test_tables_unread)
{
        struct scene s;
        struct observed *observed;

        ck_assert_int_eq(decide_in_force(&s, disputed_policy), 0);
        observed = fake_fabric_observe(&s.f, s.a);
        observed->tables[s.f.host[1]].source = TABLE_UNKNOWN;
        ck_assert_int_eq(judge_tables(&s, true, observed), 0);
        ck_assert_int_eq(s.decision.desired->frozen[s.f.host[1]], FREEZE_LINES);
        ck_assert_uint_eq(s.findings.n_errors, 1);
        observed->tables[s.f.host[1]].failure = MAD_TIMED_OUT;
        ck_assert_int_eq(judge_tables(&s, true, observed), 0);
        ck_assert_ptr_nonnull(strstr(find_finding(&s, FINDING_PORT_FROZEN)->text, "(no known entries)"));
        done(&s);
}
END_TEST

/* A table that is too small freezes its port if the policy is in force; a new policy only differs there. */
START_TEST(test_tables_capacity)
{
        _cleanup_text_ struct text t = {};
        struct scene s;

        text_add(&t, "version: 1\npartitions:\n");
        for (unsigned i = 0; i < FAKE_CAPACITY; i++)
                text_add(&t, "  p%u: {pkey: 0x%04x, members: {node1: full}}\n", i, 0x0101 + i);
        ck_assert_int_eq(decide_text(&s, t.bytes, 0, 1), -EBADMSG);
        ck_assert_int_eq(judge_tables(&s, false, fake_fabric_observe(&s.f, s.a)), 0);
        ck_assert_int_eq(s.decision.desired->frozen[s.f.host[1]], FREEZE_NONE);
        ck_assert_ptr_null(s.decision.plan);
        ck_assert_int_eq(judge_tables(&s, true, fake_fabric_observe(&s.f, s.a)), 0);
        ck_assert_int_eq(s.decision.desired->frozen[s.f.host[1]], FREEZE_CAPACITY);
        ck_assert_uint_eq(s.decision.desired->ports[s.f.host[1]].n_wanted, 1);
        ck_assert_uint_eq(s.findings.n_errors, 1);
        done(&s);
}
END_TEST

/* An error about the whole fabric stops everything, even with a policy in force. */
START_TEST(test_fatal_in_force)
{
        struct scene s;

        ck_assert_int_eq(decide_in_force(&s, disputed_policy), 0);
        s.f.subnet->sm = SUBNET_NONE;
        ck_assert_int_eq(reconcile(s.a, s.policy, fake_fabric_observe(&s.f, s.a), NULL,
                                   &(struct plan_options) { .in_force = true }, &s.findings, &s.decision), -EBADMSG);
        done(&s);
}
END_TEST

/* The same error in a new policy. */
START_TEST(test_refused_when_new)
{
        struct scene s;

        ck_assert_int_eq(decide_text(&s, disputed_policy, 1, 11), -EBADMSG);
        ck_assert_ptr_null(find_finding(&s, FINDING_PORT_FROZEN));
        done(&s);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("reconcile");
        TCase *t = tcase_create("reconcile");
        SRunner *sr;
        int failed;

        tcase_add_test(t, test_policy_to_plan);
        tcase_add_test(t, test_default_limited);
        tcase_add_test(t, test_ipoib_is_the_sm_s);
        tcase_add_test(t, test_beside_an_sm);
        tcase_add_test(t, test_sm_port_missing);
        tcase_add_test(t, test_no_sm);
        tcase_add_test(t, test_silent);
        tcase_add_test(t, test_silent_was_known);
        tcase_add_test(t, test_guid_in_two_places);
        tcase_add_test(t, test_frozen);
        tcase_add_test(t, test_tables);
        tcase_add_test(t, test_tables_unread);
        tcase_add_test(t, test_tables_capacity);
        tcase_add_test(t, test_fatal_in_force);
        tcase_add_test(t, test_refused_when_new);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
