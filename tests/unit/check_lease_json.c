/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about leases, and their replies, as two head nodes exchange them. */
#include <check.h>
#include <string.h>

#include "records/lease_json.h"
#include "store/store.h"
#include "util/text.h"

static struct arena *arena;
static json_t *o;
static struct lease *lease;
static struct findings findings;
static struct lease_answer answer;

static void setup(void)
{
        arena = arena_new();
        lease = lease_new();
        findings = (struct findings) { .arena = arena };
}

static void teardown(void)
{
        json_decref(o);
        o = NULL;
        lease = lease_free(lease);
        findings_done(&findings);
        arena = arena_free(arena);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static const char *const names[] = { "rest:ufm", "alice", "staff" };

#define CALLER { .origin = { .kind = ORIGIN_BUS, .uid = 1000, .user = "rest:ufm" }, .names = names, .n_names = ELEMENTS(names) }

static struct lease_request pass_on(const struct lease_request *q)
{
        struct lease_request ret;

        o = lease_request_to_json(q);
        ck_assert_ptr_nonnull(o);
        ck_assert(lease_request_from_json(arena, o, &ret));
        ck_assert_int_eq(ret.kind, q->kind);
        ck_assert_str_eq(ret.id, q->id);
        ck_assert_uint_eq(ret.by.request, 0);
        ck_assert_uint_eq(ret.by.origin.uid, 1000);
        ck_assert_int_eq(ret.by.origin.kind, ORIGIN_BUS);
        ck_assert_str_eq(ret.by.origin.user, "rest:ufm");
        ck_assert_uint_eq(ret.by.n_names, ELEMENTS(names));
        for (size_t i = 0; i < ELEMENTS(names); i++)
                ck_assert_str_eq(ret.by.names[i], names[i]);
        return ret;
}

START_TEST(create)
{
        const struct lease_request q = {
                .kind = LEASE_CREATE, .by = CALLER, .id = "job:1", .timeout = 90,
                .wish = {
                        .pool = "jobs", .members = "node[1-2] !node1 \xc3\xa4", .base = 0x1234, .membership = MEMBERSHIP_LIMITED,
                        .seconds = POLICY_UNLIMITED, .partial = true,
                },
        };
        struct lease_request got = pass_on(&q);

        ck_assert_uint_eq(got.timeout, 90);
        ck_assert_str_eq(got.wish.pool, "jobs");
        ck_assert_str_eq(got.wish.members, q.wish.members);
        ck_assert_uint_eq(got.wish.base, 0x1234);
        ck_assert_int_eq(got.wish.membership, MEMBERSHIP_LIMITED);
        ck_assert_uint_eq(got.wish.seconds, POLICY_UNLIMITED);
        ck_assert(got.wish.partial);
}
END_TEST

START_TEST(renew_and_release)
{
        ck_assert_uint_eq(pass_on(&(struct lease_request) { .kind = LEASE_RENEW, .by = CALLER, .id = "a", .seconds = 77 }).seconds, 77);
        json_decref(o);
        pass_on(&(struct lease_request) { .kind = LEASE_RELEASE, .by = CALLER, .id = "b" });
}
END_TEST

/* The writer refuses them, as it refuses its own clients; what it cannot read it would not answer. */
START_TEST(numbers_that_are_too_large)
{
        const uint64_t large[] = { UINT64_C(1) << 40, UINT64_C(1) << 62, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 1 };

        for (size_t i = 0; i < ELEMENTS(large); i++) {
                struct lease_request got = pass_on(&(struct lease_request) {
                        .kind = LEASE_CREATE, .by = CALLER, .id = "a", .timeout = large[i], .seconds = large[i],
                        .wish = { .pool = "jobs", .members = "ALL", .seconds = large[i] },
                });

                ck_assert_uint_gt(got.timeout, LEASE_TIMEOUT_MAX);
                ck_assert(got.seconds > LEASE_LONGEST && got.seconds < POLICY_UNLIMITED);
                ck_assert(got.wish.seconds > LEASE_LONGEST && got.wish.seconds < POLICY_UNLIMITED);
                json_decref(o);
        }
        o = NULL;
}
END_TEST

static void check_options(const struct lease_options *a, const struct lease_options *b)
{
        ck_assert_int_eq(a->sets_ip_over_ib, b->sets_ip_over_ib);
        ck_assert_int_eq(a->ip_over_ib, b->ip_over_ib);
        ck_assert_uint_eq(a->qos.mtu, b->qos.mtu);
        ck_assert_uint_eq(a->qos.service_level, b->qos.service_level);
        ck_assert_uint_eq(a->qos.rate, b->qos.rate);
        ck_assert_int_eq(a->keeps, b->keeps);
        ck_assert_int_eq(a->drops, b->drops);
        ck_assert_int_eq(a->must_exist, b->must_exist);
}

START_TEST(edit)
{
        struct lease_request q = {
                .kind = LEASE_EDIT, .by = CALLER, .id = "vm",
                .edit = {
                        .kind = LEASE_SET_MEMBERS, .pool = "vms", .base = 0x0020, .n_groups = 2,
                        .groups = {
                                { .members = "0x1", .membership = MEMBERSHIP_FULL, .index0 = true },
                                { .members = "", .membership = MEMBERSHIP_NONE },
                        },
                },
        };
        static const struct lease_options options[] = {
                {}, { .sets_ip_over_ib = true, .ip_over_ib = true }, { .keeps = true }, { .drops = true }, { .must_exist = true },
                { .sets_ip_over_ib = true, .qos = { .mtu = 4, .service_level = 15, .rate = 1000 } },
        };

        for (size_t i = 0; i < ELEMENTS(options); i++) {
                struct lease_request got;

                json_decref(o);
                q.edit.options = options[i];
                got = pass_on(&q);
                ck_assert_int_eq(got.edit.kind, LEASE_SET_MEMBERS);
                ck_assert_str_eq(got.edit.pool, "vms");
                ck_assert_uint_eq(got.edit.base, 0x0020);
                ck_assert_uint_eq(got.edit.n_groups, 2);
                for (size_t g = 0; g < 2; g++) {
                        ck_assert_str_eq(got.edit.groups[g].members, q.edit.groups[g].members);
                        ck_assert_int_eq(got.edit.groups[g].membership, q.edit.groups[g].membership);
                        ck_assert_int_eq(got.edit.groups[g].index0, q.edit.groups[g].index0);
                }
                check_options(&got.edit.options, &options[i]);
        }
}
END_TEST

static bool reads_request(void)
{
        struct lease_request q;

        return lease_request_from_json(arena, o, &q);
}

static json_t *parse(const char *text)
{
        json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

        ck_assert_ptr_nonnull(j);
        return j;
}

#define EDIT                                                                                                           \
        "{\"kind\": \"edit\", \"id\": \"a\", \"names\": [\"alice\"], \"via\": \"bus\", \"uid\": 1, \"user\": \"alice\"," \
        " \"timeout\": 0, \"seconds\": 0, \"edit\": {\"kind\": \"add\", \"pool\": \"p\", \"pkey\": \"0x10\","             \
        " \"groups\": [{\"members\": \"\", \"membership\": \"full\", \"index0\": false}], \"sets_ip_over_ib\": false,"   \
        " \"ip_over_ib\": false, \"qos\": {\"mtu\": 0, \"service_level\": 0, \"rate\": 0}, \"keeps\": true,"             \
        " \"drops\": false, \"must_exist\": false}}"
#define CREATE                                                                                                         \
        "{\"kind\": \"create\", \"id\": \"a\", \"names\": [\"alice\"], \"via\": \"bus\", \"uid\": 1, \"user\": \"alice\"," \
        " \"timeout\": 0, \"seconds\": 0, \"pool\": \"p\", \"asked\": {\"members\": \"m\", \"pkey\": \"0x0\","             \
        " \"membership\": \"none\", \"seconds\": 0, \"partial\": false}}"

/* Each member, or member of a member, is needed, and has its type. */
static void check_each(const char *text, const char *inner)
{
        const char *name;
        json_t *value, *whole = parse(text);

        json_object_foreach(inner ? json_object_get(whole, inner) : whole, name, value) {
                o = parse(text);
                ck_assert(reads_request());
                json_object_del(inner ? json_object_get(o, inner) : o, name);
                ck_assert_msg(!reads_request(), "without %s", name);
                json_object_set_new(inner ? json_object_get(o, inner) : o, name, json_real(1.5));
                ck_assert_msg(!reads_request(), "%s is no such thing", name);
                json_decref(o);
        }
        o = NULL;
        json_decref(whole);
}

START_TEST(damaged_requests)
{
        json_t *groups;

        ck_assert(!reads_request()); /* no JSON */
        check_each(EDIT, NULL);
        check_each(EDIT, "edit");
        check_each(CREATE, NULL);
        check_each(CREATE, "asked");
        o = parse(EDIT);
        groups = json_object_get(json_object_get(o, "edit"), "groups");
        for (unsigned i = 1; i < LEASE_MAX_GROUPS; i++)
                json_array_append(groups, json_array_get(groups, 0));
        ck_assert(reads_request());
        json_array_append(groups, json_array_get(groups, 0));
        ck_assert(!reads_request());
        json_array_clear(groups);
        ck_assert(reads_request());
        json_object_set_new(o, "names", json_array());
        ck_assert(!reads_request());
}
END_TEST

/* --- records ---------------------------------------------------------------------------------------------------------- */

/* With the longest text for each member. */
static void fill_lease(struct lease *l)
{
        static struct lease_member most[LEASE_MAX_MEMBERS];

        for (uint32_t i = 0; i < LEASE_MAX_MEMBERS; i++)
                most[i] = (struct lease_member) {
                        .node.v = UINT64_MAX, .port.v = UINT64_MAX - LEASE_MAX_MEMBERS + i, .number = UINT8_MAX,
                        .membership = l->is_open ? MEMBERSHIP_LIMITED : MEMBERSHIP_FULL, .index0 = l->is_open,
                        .state = LEASE_MEMBER_LEFT_OUT,
                };
        l->members = most;
        l->n_members = LEASE_MAX_MEMBERS;
}

/* No store takes a larger record. */
START_TEST(largest_record)
{
        char *text, selectors[LEASE_MAX_TEXT + 1];
        struct lease l = { .wish.pool = "p", .membership = MEMBERSHIP_FULL, .is_open = _i == 0, .why = "it ends" };

        memset(selectors, 'a', LEASE_MAX_TEXT);
        selectors[l.is_open ? 0 : LEASE_MAX_TEXT] = '\0';
        l.wish.members = selectors;
        fill_lease(&l);
        o = lease_to_json(&l);
        text = json_dumps(o, JSON_COMPACT);
        ck_assert_uint_le(strlen(text), STORE_VALUE_MAX - 8192); /* and room for the name of a pool, and the like */
        free(text);
}
END_TEST

/* --- replies ---------------------------------------------------------------------------------------------------------- */

static const struct known known;

static struct lease_member members[] = {
        { .port.v = 0x11, .node.v = 0x10, .number = 1, .membership = MEMBERSHIP_FULL, .state = LEASE_MEMBER_CONFIRMED, .index = 3 },
        { .port.v = 0x15, .node.v = 0x14, .number = 1, .membership = MEMBERSHIP_FULL, .is_leaving = true },
        { .port.v = 0x21, .node.v = 0x20, .number = 2, .membership = MEMBERSHIP_LIMITED, .state = LEASE_MEMBER_LEFT_OUT },
        { .port.v = 0x31, .node.v = 0x30, .number = 1, .membership = MEMBERSHIP_FULL, .state = LEASE_MEMBER_CONFIRMED,
          .index = 0xffff },
};

static const struct lease of_writer = {
        .id = "job:1", .wish = { .pool = "jobs", .members = "node[1-3]", .partial = true }, .state = LEASE_ACTIVE, .base = 0x1000,
        .membership = MEMBERSHIP_FULL, .members = members, .n_members = ELEMENTS(members),
        .owner = { .kind = ORIGIN_BUS, .uid = 5, .user = "bob" }, .created = 100, .updated = 100, .ends = 200, .is_kept = true,
};

static bool read_reply(void)
{
        findings.n = 0;
        lease = lease_free(lease);
        lease = lease_new();
        return lease_reply_from_json(o, &known, lease, &findings, &answer);
}

static void pass_back(const struct lease_reply *reply)
{
        o = lease_reply_to_json(reply);
        ck_assert_ptr_nonnull(o);
        ck_assert(read_reply());
        ck_assert_int_eq(answer.outcome, reply->answer.outcome);
        ck_assert_str_eq(answer.text, reply->answer.text);
}

START_TEST(reply_with_a_lease)
{
        pass_back(&(struct lease_reply) { .answer = { .outcome = LEASE_GRANTED_PARTLY, .lease = &of_writer, .text = "it is" } });
        ck_assert_ptr_eq(answer.lease, lease);
        ck_assert_str_eq(lease->id, "job:1");
        ck_assert_str_eq(lease->owner.user, "bob");
        ck_assert_uint_eq(lease->n_members, 3); /* who leaves is none any more */
        ck_assert_int_eq(lease->members[0].state, LEASE_MEMBER_CONFIRMED);
        ck_assert_int_eq(lease->members[1].state, LEASE_MEMBER_LEFT_OUT);
        ck_assert_int_eq(lease->members[2].state, LEASE_MEMBER_CONFIRMED);
        ck_assert_uint_eq(lease->members[0].index, 3);
        ck_assert_uint_eq(lease->members[2].index, 0xffff);
        ck_assert_int_eq(lease->members[1].membership, MEMBERSHIP_LIMITED);
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

START_TEST(a_left_out_member_has_no_index)
{
        pass_back(&(struct lease_reply) { .answer = { .outcome = LEASE_GRANTED_PARTLY, .lease = &of_writer } });
        json_object_set_new(o, "indexes", parse("[3, 4, 5]"));
        ck_assert(read_reply());
        ck_assert_int_eq(lease->members[1].state, LEASE_MEMBER_LEFT_OUT);
}
END_TEST

START_TEST(reply_without_a_lease)
{
        pass_back(&(struct lease_reply) { .answer = { .outcome = LEASE_RELEASED, .text = "it ended" } });
        ck_assert_ptr_null(answer.lease);
}
END_TEST

START_TEST(refusal)
{
        struct findings why = { .arena = arena };

        (void) findings_error(&why, FINDING_LEASE_EXISTS, "another ID", "there is one already");
        (void) findings_add(&why, FINDING_WARNING, FINDING_LEASE_NONE, NULL, "and none");
        pass_back(&(struct lease_reply) { .answer = { .outcome = LEASE_REFUSED, .text = "refused" }, .findings = &why });
        ck_assert_uint_eq(findings.n, 2);
        ck_assert_int_eq(findings.items[0].code, FINDING_LEASE_EXISTS);
        ck_assert_int_eq(findings.items[0].severity, FINDING_ERROR);
        ck_assert_str_eq(findings.items[0].text, "there is one already");
        ck_assert_str_eq(findings.items[0].hint, "another ID");
        ck_assert_int_eq(findings.items[1].severity, FINDING_WARNING);
        ck_assert_ptr_null(findings.items[1].hint);
        findings_done(&why);
}
END_TEST

START_TEST(damaged_replies)
{
        static const char *const needed[] = { "outcome", "text", "findings", "id", "indexes" };
        static const char *const wrong[][2] = {
                { "outcome", "\"elsewhere\"" }, { "outcome", "\"none\"" }, { "text", "7" }, { "findings", "{}" }, { "findings", "[{}]" },
                { "findings", "[{\"severity\": \"error\", \"code\": \"no.such\", \"text\": \"a\"}]" },
                { "findings", "[{\"severity\": \"wrong\", \"code\": \"lease.none\", \"text\": \"a\"}]" },
                { "id", "\"-\"" }, { "lease", "{}" }, { "lease", "[]" }, { "indexes", "[1, 2]" }, { "indexes", "[1, 2, 65536]" },
                { "indexes", "[1, 2, -1]" }, { "indexes", "[1, 2, \"3\"]" },
        };
        json_t *whole = lease_reply_to_json(&(struct lease_reply) { .answer = { .outcome = LEASE_GRANTED, .lease = &of_writer } });

        ck_assert(!read_reply()); /* no JSON */
        for (size_t i = 0; i < ELEMENTS(needed) + ELEMENTS(wrong); i++) {
                size_t w = i - ELEMENTS(needed);

                o = json_deep_copy(whole);
                ck_assert(read_reply());
                if (i < ELEMENTS(needed))
                        json_object_del(o, needed[i]);
                else
                        json_object_set_new(o, wrong[w][0], parse(wrong[w][1]));
                ck_assert_msg(!read_reply(), "%s", json_dumps(o, 0));
                json_decref(o);
                o = NULL;
        }
        json_decref(whole);
}
END_TEST

START_TEST(reason_of_a_release)
{
        json_t *of_lease;

        o = lease_reply_to_json(&(struct lease_reply) { .answer = { .outcome = LEASE_GRANTED, .lease = &of_writer } });
        of_lease = json_object_get(o, "lease");
        json_object_set_new(of_lease, "why", json_string("it has expired"));
        ck_assert(!read_reply()); /* an active one has none */
        json_object_set_new(of_lease, "state", json_string("releasing"));
        ck_assert(read_reply());
        ck_assert_str_eq(lease->why, "it has expired");
        json_object_set_new(of_lease, "why", json_string(""));
        ck_assert(!read_reply());
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                create, renew_and_release, numbers_that_are_too_large, edit, damaged_requests, reply_with_a_lease,
                a_left_out_member_has_no_index, reply_without_a_lease, refusal, damaged_replies, reason_of_a_release,
        };
        Suite *suite = suite_create("lease_json");
        TCase *c = tcase_create("lease_json");
        SRunner *runner;
        int n_failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_loop_test(c, largest_record, 0, 2);
        for (size_t i = 0; i < ELEMENTS(tests); i++)
                tcase_add_test(c, tests[i]);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed > 0;
}
