/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The REST API, by requests as clients send them. Where a comment names a file, the method, path and keys of the requests below it
 * were read there; values are made up. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "arena_fixture.h"
#include "fail_alloc.h"
#include "rest/rest.h"

static const struct rest_member members[] = { { { 0x0002c90300000001 }, MEMBERSHIP_FULL, true, "node01" },
                                              { { 0x0002c90300000007 }, MEMBERSHIP_FULL, true, NULL },
                                              { { 0xf452140300188540 }, MEMBERSHIP_LIMITED, false, "gone1" } };
static const struct rest_partition partitions[] = {
        { .base = 0x5, .ip_over_ib = true, .members = members, .n_members = 3 },
        { .base = 0x1000, .name = "tenant \xff\"a\"", .qos = { 4, 3, 2000 } },
        { .base = 0x1001, .is_hidden = true },
};
static const struct rest_port ports[] = {
        { .guid = { 0x0002c90300000001 }, .node = { 0x0002c90300000000 }, .number = 1, .lid = { 7 }, .node_name = "node01",
          .is_computer = true, .state = PORT_STATE_ACTIVE },
        { .guid = { 0x0002c90300000011 }, .number = 1, .node_name = "node02", .is_computer = true },
        { .guid = { 0x0002c90300000012 }, .number = 2, .node_name = "node02", .is_computer = true },
        { .guid = { 0x0002c90300000021 }, .number = 1, .node_name = "gpu7", .is_computer = true },
        { .guid = { 0x0002c90300000100 }, .node = { 0x0002c90300000100 }, .number = 3, .lid = { 8 },
          .node_name = "leaf", .state = PORT_STATE_DOWN },
};
static const struct rest_view view = {
        .partitions = partitions,
        .n_partitions = ELEMENTS(partitions),
        .ports = ports,
        .n_ports = ELEMENTS(ports),
};

static struct rest_reply handle(const char *method, const char *target, const char *body)
{
        struct rest_request q = { method, target, body, body ? strlen(body) : 0 };
        struct rest_reply reply;

        ck_assert_int_eq(rest_handle(arena, &q, &view, &reply), 0);
        return reply;
}

static void expect_body(const struct rest_response *r, unsigned status, const char *body)
{
        ck_assert_str_eq(r->body, body);
        ck_assert_uint_eq(r->status, status);
        ck_assert_uint_eq(r->n_body, strlen(body));
        ck_assert_str_eq(r->content_type, "application/json; charset=utf-8");
}

/* A response of 200 with this body. */
static void get(const char *target, const char *body)
{
        struct rest_reply reply = handle("GET", target, NULL);

        ck_assert(!reply.is_change);
        expect_body(&reply.response, 200, body);
}

static struct rest_change change(const char *method, const char *target, const char *body)
{
        struct rest_reply reply = handle(method, target, body);

        ck_assert_msg(reply.is_change, "%s", reply.response.body);
        return reply.change;
}

/* A refusal whose reason has these parts; part2 may be NULL. */
static struct rest_response refused(unsigned status, const char *method, const char *target, const char *body, const char *part,
                                    const char *part2)
{
        struct rest_reply reply = handle(method, target, body);
        json_t *j;
        const char *reason;

        ck_assert(!reply.is_change);
        ck_assert_msg(reply.response.status == status, "%u %s", reply.response.status, reply.response.body);
        ck_assert_uint_le(reply.response.n_body, 512);
        j = json_loads(reply.response.body, 0, NULL);
        reason = json_string_value(json_object_get(j, "error"));
        ck_assert_msg(reason && strstr(reason, part) && (!part2 || strstr(reason, part2)), "%s", reply.response.body);
        json_decref(j);
        return reply.response;
}

/* 400 for a POST of this body. */
static void refused_add(const char *body, const char *part)
{
        (void) refused(400, "POST", "/ufmRest/resources/pkeys", body, part, NULL);
}

/* Mellanox/ib-kubernetes: pkg/sm/plugins/ufm/ufm.go */
START_TEST(ib_kubernetes)
{
        struct rest_change c;

        get("/ufmRest/app/ufm_version", "{\"ufm_release_version\":\"6.19.0\"}");
        c = change("POST", "/ufmRest/resources/pkeys",
                   "{\"pkey\": \"0x0005\", \"index0\": true, \"ip_over_ib\": true, \"membership\": \"full\", "
                   "\"guids\": [\"f452140300188540\",\"0002c90300000001\"]}");
        ck_assert_int_eq(c.kind, REST_ADD);
        ck_assert_uint_eq(c.base, 5);
        ck_assert(c.ip_over_ib && c.has_ip_over_ib);
        ck_assert_uint_eq(c.n_members, 2);
        ck_assert_uint_eq(c.members[0].guid.v, 0x0002c90300000001);
        ck_assert_uint_eq(c.members[1].guid.v, 0xf452140300188540);
        ck_assert(c.members[0].index0 && c.members[0].membership == MEMBERSHIP_FULL);
        c = change("POST", "/ufmRest/actions/remove_guids_from_pkey", "{\"pkey\": \"0x0005\", \"guids\": [\"0002c90300000001\"]}");
        ck_assert_int_eq(c.kind, REST_REMOVE);
        ck_assert_uint_eq(c.base, 5);
        ck_assert_uint_eq(c.n_members, 1);
        get("/ufmRest/resources/pkeys/?guids_data=true",
            "{\"0x5\":{\"partition\":\"api_pkey_0x5\",\"ip_over_ib\":true,\"guids\":["
            "{\"guid\":\"0002c90300000001\",\"index0\":true,\"membership\":\"full\"},"
            "{\"guid\":\"0002c90300000007\",\"index0\":true,\"membership\":\"full\"},"
            "{\"guid\":\"f452140300188540\",\"index0\":false,\"membership\":\"limited\"}]},"
            "\"0x1000\":{\"partition\":\"tenant ?\\\"a\\\"\",\"ip_over_ib\":false,\"guids\":[]},"
            "\"0x7fff\":{\"partition\":\"management\",\"ip_over_ib\":true,\"guids\":[]}}");
}
END_TEST

#define NODE02(guid, number)                                                                                           \
        "{\"guid\":\"0002c903000000" guid "\",\"name\":\"0002c903000000" guid "_" number "\",\"systemID\":\"0000000000000000\","    \
        "\"lid\":0,\"number\":" number ",\"dname\":\"" number "\",\"system_name\":\"node02\",\"physical_state\":\"Down\","         \
        "\"logical_state\":\"Unknown\"},"

/* NVIDIA/infra-controller-core: crates/ib-fabric/src/ib/ufmclient/mod.rs, rest.rs */
START_TEST(nico)
{
        struct rest_change c;

        get("/ufmRestV3/app/ufm_version", "{\"ufm_release_version\":\"6.19.0\"}");
        get("/ufmRestV3/app/smconf",
            "{\"subnet_prefix\":\"0xfe80000000000000\",\"m_key\":\"0x0000000000000000\",\"sm_key\":\"0x0000000000000001\","
            "\"sa_key\":\"0x0000000000000001\",\"m_key_per_port\":false}");
        get("/ufmRestV3/resources/ports?sys_type=Computer",
            "[{\"guid\":\"0002c90300000001\",\"name\":\"0002c90300000001_1\",\"systemID\":\"0002c90300000000\",\"lid\":7,"
            "\"number\":1,\"dname\":\"1\",\"system_name\":\"node01\",\"physical_state\":\"Link Up\",\"logical_state\":\"Active\"},"
            NODE02("11", "1") NODE02("12", "2")
            "{\"guid\":\"0002c90300000021\",\"name\":\"0002c90300000021_1\",\"systemID\":\"0000000000000000\",\"lid\":0,"
            "\"number\":1,\"dname\":\"1\",\"system_name\":\"gpu7\",\"physical_state\":\"Down\",\"logical_state\":\"Unknown\"}]");
        get("/ufmRestV3/resources/pkeys?qos_conf=true",
            "{\"0x5\":{\"partition\":\"api_pkey_0x5\",\"ip_over_ib\":true,"
            "\"qos_conf\":{\"mtu_limit\":2,\"service_level\":0,\"rate_limit\":2.5}},"
            "\"0x1000\":{\"partition\":\"tenant ?\\\"a\\\"\",\"ip_over_ib\":false,"
            "\"qos_conf\":{\"mtu_limit\":4,\"service_level\":3,\"rate_limit\":200}},"
            "\"0x7fff\":{\"partition\":\"management\",\"ip_over_ib\":true,"
            "\"qos_conf\":{\"mtu_limit\":2,\"service_level\":0,\"rate_limit\":2.5}}}");
        get("/ufmRestV3/resources/pkeys/0x1000?guids_data=true&qos_conf=true",
            "{\"partition\":\"tenant ?\\\"a\\\"\",\"ip_over_ib\":false,\"guids\":[],"
            "\"qos_conf\":{\"mtu_limit\":4,\"service_level\":3,\"rate_limit\":200}}");
        get("/ufmRestV3/resources/pkeys/0x1001?guids_data=true&qos_conf=true", "{}");
        c = change("POST", "/ufmRestV3/resources/pkeys",
                   "{\"pkey\":\"0x1000\",\"ip_over_ib\":false,\"membership\":\"limited\",\"index0\":true,"
                   "\"guids\":[\"946dae03005985c8\"]}");
        ck_assert(!c.ip_over_ib && c.members[0].index0 && c.members[0].membership == MEMBERSHIP_LIMITED);
        c = change("PUT", "/ufmRestV3/resources/pkeys/qos_conf",
                   "{\"pkey\":\"0x1000\",\"mtu_limit\":2,\"service_level\":15,\"rate_limit\":2.5}");
        ck_assert_int_eq(c.kind, REST_SET_QOS);
        ck_assert_uint_eq(c.qos.mtu_limit, 2);
        ck_assert_uint_eq(c.qos.service_level, 15);
        ck_assert_uint_eq(c.qos.rate_limit, 25);
        c = change("PUT", "/ufmRestV3/resources/pkeys/qos_conf",
                   "{\"pkey\":\"0x1000\",\"mtu_limit\":4,\"service_level\":0,\"rate_limit\":200.0}");
        ck_assert_uint_eq(c.qos.rate_limit, 2000);
}
END_TEST

/* NVIDIA/nv-config-manager: nv_config_manager/temporal/ngc/activities/ib_pkey.py */
START_TEST(nv_config_manager)
{
        struct rest_change c;

        get("/ufmRest/resources/pkeys",
            "{\"0x5\":{\"partition\":\"api_pkey_0x5\",\"ip_over_ib\":true},"
            "\"0x1000\":{\"partition\":\"tenant ?\\\"a\\\"\",\"ip_over_ib\":false},"
            "\"0x7fff\":{\"partition\":\"management\",\"ip_over_ib\":true}}");
        c = change("POST", "/ufmRest/resources/pkeys/add", "{\"pkey\": \"0x0042\", \"ip_over_ib\": true}");
        ck_assert_int_eq(c.kind, REST_CREATE);
        ck_assert_uint_eq(c.base, 0x42);
        ck_assert_uint_eq(c.n_members, 0);
        c = change("PUT", "/ufmRest/resources/pkeys/",
                   "{\"pkey\": \"0x0042\", \"guids\": [\"b000000000000002\", \"a000000000000001\"], "
                   "\"memberships\": [\"full\", \"limited\"], \"ip_over_ib\": false}");
        ck_assert_int_eq(c.kind, REST_REPLACE);
        ck_assert(!c.ip_over_ib);
        ck_assert_int_eq(c.members[0].membership, MEMBERSHIP_LIMITED);
        ck_assert_int_eq(c.members[1].membership, MEMBERSHIP_FULL);
        c = change("PUT", "/ufmRest/resources/pkeys/", "{\"pkey\": \"0x0042\", \"guids\": []}");
        ck_assert_uint_eq(c.n_members, 0);
        c = change("DELETE", "/ufmRest/resources/pkeys/0x0042/guids/a000000000000001,0xB000000000000002", NULL);
        ck_assert_int_eq(c.kind, REST_REMOVE);
        ck_assert_uint_eq(c.n_members, 2);
        ck_assert_uint_eq(c.members[1].guid.v, 0xb000000000000002);
}
END_TEST

/* NVIDIA's UFM Enterprise REST API Guide, PKey GUIDs: a partition with its own QoS, where the request says some of it. */
START_TEST(qos_of_an_empty_partition)
{
        struct rest_change c = change("POST", "/ufmRest/resources/pkeys/add",
                                      "{\"pkey\": \"0x12\", \"index0\": false, \"ip_over_ib\": true, \"mtu_limit\": 4, "
                                      "\"service_level\": 1, \"rate_limit\": 200}");

        ck_assert_uint_eq(c.qos.mtu_limit, 4);
        ck_assert_uint_eq(c.qos.service_level, 1);
        ck_assert_uint_eq(c.qos.rate_limit, 2000);
        c = change("POST", "/ufmRest/resources/pkeys/add", "{\"pkey\": \"0x12\", \"service_level\": 0}");
        ck_assert_uint_eq(c.qos.mtu_limit, 2);
        ck_assert_uint_eq(c.qos.service_level, 0);
        ck_assert_uint_eq(c.qos.rate_limit, 25);
        c = change("POST", "/ufmRest/resources/pkeys/add", "{\"pkey\": \"0x12\", \"service_level\": 3}");
        ck_assert_uint_eq(c.qos.mtu_limit, 2);
        ck_assert_uint_eq(c.qos.service_level, 3);
        ck_assert_uint_eq(c.qos.rate_limit, 25);
        c = change("POST", "/ufmRest/resources/pkeys/add", "{\"pkey\": \"0x12\", \"rate_limit\": 100}");
        ck_assert_uint_eq(c.qos.mtu_limit, 2);
        ck_assert_uint_eq(c.qos.rate_limit, 1000);
        c = change("POST", "/ufmRest/resources/pkeys/add", "{\"pkey\": \"0x12\"}");
        ck_assert_uint_eq(c.qos.mtu_limit, 0);
        ck_assert_uint_eq(c.qos.rate_limit, 0);
}
END_TEST

/* The port of a member that is in the fabric, as resources/ports has it. */
START_TEST(ports_of_members)
{
        static const char target[] = "/ufmRest/resources/pkeys/0x5?guids_data=true&port_info=true";
        const struct rest_request with = { "GET", target, NULL, 0 };
        const struct rest_request without = { "GET", "/ufmRest/resources/pkeys/0x5?guids_data=true&port_info=false", NULL, 0 };
        unsigned needs;

        get(target, "{\"partition\":\"api_pkey_0x5\",\"ip_over_ib\":true,\"guids\":["
                    "{\"guid\":\"0002c90300000001\",\"index0\":true,\"membership\":\"full\",\"port_info\":{"
                    "\"guid\":\"0002c90300000001\",\"name\":\"0002c90300000001_1\",\"systemID\":\"0002c90300000000\",\"lid\":7,"
                    "\"number\":1,\"dname\":\"1\",\"system_name\":\"node01\",\"physical_state\":\"Link Up\","
                    "\"logical_state\":\"Active\"}},"
                    "{\"guid\":\"0002c90300000007\",\"index0\":true,\"membership\":\"full\"},"
                    "{\"guid\":\"f452140300188540\",\"index0\":false,\"membership\":\"limited\"}]}");
        ck_assert_int_eq(rest_needs(arena, &with, &needs), 0);
        ck_assert_uint_eq(needs, REST_NEEDS_PARTITIONS | REST_NEEDS_PORTS | REST_NEEDS_DEFAULT);
        ck_assert_int_eq(rest_needs(arena, &without, &needs), 0);
        ck_assert_uint_eq(needs, REST_NEEDS_PARTITIONS | REST_NEEDS_DEFAULT);
}
END_TEST

/* A name in a query counts as a whole. */
START_TEST(names_in_queries)
{
        struct rest_reply all = handle("GET", "/ufmRest/resources/ports", NULL);

        get("/ufmRest/resources/ports?sys_types=Computer", all.response.body);
        get("/ufmRest/resources/ports?x=sys_type=Computer", all.response.body);
}
END_TEST

/* UFM's words. The physical state is derived from the logical one, which pkeyd has. */
START_TEST(states_of_ports)
{
        static const char *const words[] = {
                [PORT_STATE_NONE] = "\"physical_state\":\"Down\",\"logical_state\":\"Unknown\"",
                [PORT_STATE_DOWN] = "\"physical_state\":\"Down\",\"logical_state\":\"Down\"",
                [PORT_STATE_INIT] = "\"physical_state\":\"Link Up\",\"logical_state\":\"Initialize\"",
                [PORT_STATE_ARMED] = "\"physical_state\":\"Link Up\",\"logical_state\":\"Armed\"",
                [PORT_STATE_ACTIVE] = "\"physical_state\":\"Link Up\",\"logical_state\":\"Active\"",
        };
        const struct rest_port port = { .guid = { 1 }, .node_name = "node01", .state = (enum port_state) _i };
        const struct rest_view one = { .ports = &port, .n_ports = 1 };
        const struct rest_request q = { .method = "GET", .target = "/ufmRest/resources/ports" };
        struct rest_reply reply;

        ck_assert_int_eq(rest_handle(arena, &q, &one, &reply), 0);
        ck_assert_msg(strstr(reply.response.body, words[_i]) != NULL, "%s", reply.response.body);
}
END_TEST

/* The low bytes of the GUIDs of a change. */
static void expect_members(const struct rest_change *c, const char *guids)
{
        char text[256] = "", *p = text;

        for (uint32_t i = 0; i < c->n_members; i++)
                p += sprintf(p, "%s%x", i > 0 ? " " : "", (unsigned) (c->members[i].guid.v & 0xffffffff));
        ck_assert_str_eq(text, guids);
}

/* Mellanox/ufm_sdk_3.0: plugins/SLURM-Integration/ufm_slurm_utils.py, ufm_slurm_base.py; its booleans are strings of its file */
START_TEST(ufm_slurm)
{
        struct rest_change c;

        c = change("POST", "/ufmRestV3/resources/pkeys/hosts",
                   "{\"hosts_names\": \"node[01-02],gpu7\", \"pkey\": \"0x7\", \"ip_over_ib\": \"True\", \"index0\": false}");
        ck_assert_int_eq(c.kind, REST_ADD);
        expect_members(&c, "1 11 12 21");
        ck_assert(c.ip_over_ib && !c.members[0].index0 && c.members[0].membership == MEMBERSHIP_FULL);
        c = change("POST", "/ufmRest/resources/pkeys/hosts",
                   "{\"hosts_names\": \"node01\", \"pkey\": \"0x7\", \"ip_over_ib\": \"false\", \"index0\": \"true\"}");
        ck_assert(!c.ip_over_ib && c.n_members == 1 && c.members[0].index0);
        c = change("DELETE", "/ufmRestV3/resources/pkeys/0x7/hosts/node%5B01-04%5D,gpu7", NULL);
        ck_assert_int_eq(c.kind, REST_REMOVE);
        expect_members(&c, "1 11 12 21");
        c = change("DELETE", "/ufmRest/resources/pkeys/0x7/hosts/node[01-04]", NULL);
        expect_members(&c, "1 11 12");
}
END_TEST

/* UFM's documentation of its REST API */
START_TEST(others)
{
        struct rest_change c;

        c = change("DELETE", "/ufmRest/resources/pkeys/0x8005/", NULL);
        ck_assert_int_eq(c.kind, REST_DELETE);
        ck_assert_uint_eq(c.base, 5);
        get("/ufmRest/resources/pkeys/last_updated", "{\"last_updated\":null}");
        get("/ufmRest//resources/pkeys/0x05///?port_info=true&max_ports=true",
            "{\"partition\":\"api_pkey_0x5\",\"ip_over_ib\":true}");
        get("/ufmRest/resources/pkeys/0x7fff?GUIDS_DATA=true&guids_data=1&xguids_data=true",
            "{\"partition\":\"management\",\"ip_over_ib\":true}");
        get("/ufmRest/resources/pkeys/0x7fff?guids_data=True", "{\"partition\":\"management\",\"ip_over_ib\":true,\"guids\":[]}");
        get("/ufmRest/resources/ports?sys_type=Switch",
            "[{\"guid\":\"0002c90300000100\",\"name\":\"0002c90300000100_3\",\"systemID\":\"0002c90300000100\",\"lid\":8,\"number\":3,"
            "\"dname\":\"3\",\"system_name\":\"leaf\",\"physical_state\":\"Down\",\"logical_state\":\"Down\"}]");
}
END_TEST

START_TEST(default_partition)
{
        const struct rest_request q = { "GET", "/ufmRest/resources/pkeys?guids_data=true", NULL, 0 };
        struct rest_reply reply;

        ck_assert_int_eq(rest_handle(arena, &q, &(struct rest_view) {}, &reply), 0);
        expect_body(&reply.response, 200, "{\"0x7fff\":{\"partition\":\"management\",\"ip_over_ib\":true,\"guids\":[]}}");
}
END_TEST

/* As UFM, with its members only, and of no other partition. */
START_TEST(default_membership)
{
        static const char *const paths[] = { "/ufmRest/resources/pkeys/0x7fff", "/ufmRest/resources/pkeys/0x7fff?guids_data=true",
                                             "/ufmRest/resources/pkeys/0x5?guids_data=true" };
        struct rest_view v = view;

        for (enum membership m = MEMBERSHIP_NONE; m <= MEMBERSHIP_FULL; m++)
                for (size_t i = 0; i < ELEMENTS(paths); i++) {
                        const struct rest_request q = { "GET", paths[i], NULL, 0 };
                        struct rest_reply reply;
                        const char *has;
                        unsigned needs;

                        v.default_membership = m;
                        ck_assert_int_eq(rest_handle(arena, &q, &v, &reply), 0);
                        has = strstr(reply.response.body, m == MEMBERSHIP_FULL ? "],\"membership\":\"full\"}"
                                                                               : "],\"membership\":\"limited\"}");
                        ck_assert_msg(!!has == (m != MEMBERSHIP_NONE && i == 1), "%s", reply.response.body);
                        ck_assert_int_eq(rest_needs(arena, &q, &needs), 0);
                        ck_assert_uint_eq(needs, REST_NEEDS_PARTITIONS | (i > 0 ? REST_NEEDS_DEFAULT : 0));
                }
}
END_TEST

START_TEST(defaults)
{
        struct rest_change c = change("POST", "/ufmRest/resources/pkeys",
                                      "{\"pkey\":\"0X8005\",\"guids\":[\"0x1\",\"0X0000000000000001\",\"F452140300188540\"]}");

        ck_assert_uint_eq(c.base, 5);
        ck_assert(c.ip_over_ib && !c.has_ip_over_ib);
        ck_assert_uint_eq(c.n_members, 2);
        ck_assert_uint_eq(c.members[0].guid.v, 1);
        ck_assert(c.members[0].membership == MEMBERSHIP_FULL && !c.members[0].index0);
}
END_TEST

START_TEST(prefixes)
{
        ck_assert_int_eq(rest_prefix_of("/ufmRest"), REST_PREFIX_PASSWORD);
        ck_assert_int_eq(rest_prefix_of("/ufmRest/x?y"), REST_PREFIX_PASSWORD);
        ck_assert_int_eq(rest_prefix_of("/ufmRestV3/"), REST_PREFIX_TOKEN);
        ck_assert_int_eq(rest_prefix_of("/ufmRestKrb/x"), REST_PREFIX_KERBEROS);
        ck_assert_int_eq(rest_prefix_of("/ufmRestV2/x"), REST_PREFIX_NONE);
        ck_assert_int_eq(rest_prefix_of("/?/ufmRest/"), REST_PREFIX_NONE);
        ck_assert_int_eq(rest_prefix_of("ufmRest/x"), REST_PREFIX_NONE);
        ck_assert_int_eq(rest_prefix_of(""), REST_PREFIX_NONE);
        (void) refused(401, "GET", "/ufmRestKrb/app/ufm_version", NULL, "Kerberos", NULL);
        (void) refused(404, "GET", "/ufmrest/app/ufm_version", NULL, "/ufmRest", NULL);
        (void) refused(404, "GET", "", NULL, "/ufmRest", NULL);
}
END_TEST

START_TEST(routes)
{
        static const char *const unknown[] = {
                "/ufmRest", "/ufmRest/", "/ufmRest/app", "/ufmRest/app/", "/ufmRest/resources", "/ufmRest/app/ufm_versions",
                "/ufmRest/app/sharp/resources", "/ufmRest/resources/pkeys/0x5/guids", "/ufmRest/resources/pkeys/0x5/guids//",
                "/ufmRest/resources/pkeys/0x5/users/1", "/ufmRest/resources/pkeys/0x5/guids/1/2", "/ufmRest/a/b/c/d/e/f/g/h/i",
                "/ufmRest/app%2Fufm_version", "/ufmRest/../app/ufm_version",
        };
        struct rest_response r;

        for (size_t i = 0; i < ELEMENTS(unknown); i++)
                (void) refused(404, "GET", unknown[i], NULL, "does not serve this path", NULL);
        r = refused(405, "PATCH", "/ufmRest/resources/pkeys", "{}", "'PATCH'", NULL);
        ck_assert_str_eq(r.allow, "GET, POST, PUT");
        r = refused(405, "GET", "/ufmRest/resources/pkeys/add", NULL, "'GET'", NULL);
        ck_assert_str_eq(r.allow, "POST");
        r = refused(405, "POST", "/ufmRest/resources/pkeys/0x5", "{}", "'POST'", NULL);
        ck_assert_str_eq(r.allow, "GET, DELETE");
        r = refused(405, "get", "/ufmRest/app/smconf", NULL, "'get'", NULL);
        ck_assert_str_eq(r.allow, "GET");
}
END_TEST

START_TEST(paths)
{
        get("/ufmRest/%61pp/ufm%5fversion", "{\"ufm_release_version\":\"6.19.0\"}");
        (void) refused(400, "GET", "/ufmRest/app/%", NULL, "word 2 of the path", NULL);
        (void) refused(400, "GET", "/ufmRest/app/%4", NULL, "word 2", NULL);
        (void) refused(400, "GET", "/ufmRest/app/%g0", NULL, "word 2", NULL);
        (void) refused(400, "GET", "/ufmRest/app%00/ufm_version", NULL, "word 1", NULL);
        (void) refused(400, "GET", "/ufmRest/app\n/ufm_version", NULL, "word 1", NULL);
        (void) refused(400, "GET", "/ufmRest/resources/pkeys/5", NULL, "'5' is not a P_Key", "0x1 to 0x7fff");
        (void) refused(400, "GET", "/ufmRest/resources/pkeys/%ff%22", NULL, "'?\"' is not a P_Key", NULL);
        (void) refused(400, "DELETE", "/ufmRest/resources/pkeys/0x5/guids/1,2", NULL, "guids[0]: '1' is not a GUID", NULL);
        (void) refused(400, "DELETE", "/ufmRest/resources/pkeys/0x5/guids/0x1,", NULL, "guids[1]: '' is not a GUID", NULL);
        (void) refused(400, "DELETE", "/ufmRest/resources/pkeys/0x5/hosts/*", NULL, "hosts_names", NULL);
        (void) refused(400, "DELETE", "/ufmRest/resources/pkeys/0x7fff/hosts/node1", NULL, "default partition", NULL);
}
END_TEST

START_TEST(p_keys)
{
        static const char *const none[] = { "", "0x", "5", "0x0", "0x0000", "0x8000", "0x10000", "0x00005", "0xg", "0x5 ", " 0x5",
                                            "0x-5", "x5" };
        char body[128];

        for (size_t i = 0; i < ELEMENTS(none); i++) {
                (void) snprintf(body, sizeof(body), "{\"pkey\":\"%s\",\"guids\":[]}", none[i]);
                refused_add(body, "is not a P_Key");
        }
        refused_add("{\"pkey\":\"0x7fff\",\"guids\":[]}", "default partition");
        refused_add("{\"pkey\":\"0xffff\",\"guids\":[]}", "default partition");
        refused_add("{\"pkey\":5,\"guids\":[]}", "pkey: is not a string");
        (void) change("POST", "/ufmRest/resources/pkeys", "{\"pkey\":\"0xb000\",\"guids\":[]}");
}
END_TEST

START_TEST(bodies)
{
        static const struct {
                const char *body, *part;
        } wrong[] = {
                { "", "not JSON" },
                { "null", "not JSON" },
                { "[]", "not an object" },
                { "{", "not JSON: line 1, column 1" },
                { "{\"pkey\":\"0x5\",\"guids\":[]} x", "not JSON" },
                { "{\"pkey\":\"0x5\",\"pkey\":\"0x6\",\"guids\":[]}", "duplicate" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"\\u0000\"]}", "not JSON" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"\xff\"]}", "not JSON" },
                { "{}", "the key pkey is missing" },
                { "{\"pkey\":\"0x5\"}", "the key guids is missing" },
                { "{\"pkey\":\"0x5\",\"guids\":[],\"membershp\":\"limited\"}",
                  "unknown key 'membershp' (accepted: pkey, guids, membership, memberships, ip_over_ib, index0)" },
                { "{\"pkey\":\"0x5\",\"guids\":\"0x1\"}", "guids: is not an array" },
                { "{\"pkey\":\"0x5\",\"guids\":{}}", "guids: is not an array" },
                { "{\"pkey\":\"0x5\",\"guids\":[1]}", "guids[0]: '' is not a GUID" },
                { "{\"pkey\":\"0x5\",\"guids\":[[\"0x1\"]]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x1\",\"0x\"]}", "guids[1]: '0x' is not a GUID" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x0\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0000000000000000\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"00000000000000001\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x00000000000000001\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0002:c903:0000:0001\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"000000000000000g\"]}", "guids[0]" },
                { "{\"pkey\":\"0x5\",\"guids\":[],\"membership\":\"both\"}", "membership: is not a membership" },
                { "{\"pkey\":\"0x5\",\"guids\":[],\"membership\":null}", "membership: is not a membership" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x1\"],\"memberships\":\"full\"}", "memberships: is not an array" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x1\"],\"memberships\":[]}", "memberships: has 0 elements and guids has 1" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x1\"],\"memberships\":[\"\"]}", "memberships: is not a membership" },
                { "{\"pkey\":\"0x5\",\"guids\":[\"0x1\",\"0x1\"],\"memberships\":[\"full\",\"limited\"]}", "is given twice" },
                { "{\"pkey\":\"0x5\",\"guids\":[],\"index0\":1}", "index0: is not a boolean" },
                { "{\"pkey\":\"0x5\",\"guids\":[],\"ip_over_ib\":\"yes\"}", "ip_over_ib: is not a boolean" },
        };

        for (size_t i = 0; i < ELEMENTS(wrong); i++)
                refused_add(wrong[i].body, wrong[i].part);
        refused_add(NULL, "not JSON");
        (void) refused(400, "POST", "/ufmRest/resources/pkeys/add", "{\"pkey\":\"0x5\",\"guids\":[]}", "unknown key 'guids'",
                       NULL);
        (void) refused(400, "POST", "/ufmRest/actions/remove_guids_from_pkey", "{\"pkey\":\"0x5\",\"guids\":[\"\"]}", "guids[0]",
                       NULL);
}
END_TEST

START_TEST(hosts)
{
        static const char *const wrong[] = { "\"\"", "\"*\"", "\"node?\"", "\"a b\"", "\"a\\n\"", "5", "[\"a\"]", "null" };
        char body[128];

        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                (void) snprintf(body, sizeof(body), "{\"pkey\":\"0x5\",\"hosts_names\":%s}", wrong[i]);
                (void) refused(400, "POST", "/ufmRest/resources/pkeys/hosts", body, "hosts_names: is not a node list", NULL);
        }
}
END_TEST

#define ADD_HOSTS "POST", "/ufmRest/resources/pkeys/hosts"

START_TEST(unknown_hosts)
{
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"node[01-03]\"}",
                       "no port of the fabric belongs to node03 (accepted: names of hosts that are in the fabric now, and that no other",
                       NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"node01,leaf,n[1-6]\"}",
                       "belongs to leaf, n1, n2, n3, n4 and 2 more", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"gone1\"}", "belongs to gone1", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"node[01-\"}", "hosts_names: 'node[01-': ", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"node01,\"}", "an empty name", NULL);
}
END_TEST

/* By the names that the hosts of members had, and by the ports of today. */
START_TEST(removed_hosts)
{
        struct rest_change c = change("DELETE", "/ufmRest/resources/pkeys/0x5/hosts/gone1", NULL);

        ck_assert_uint_eq(c.n_members, 1);
        ck_assert_uint_eq(c.members[0].guid.v, 0xf452140300188540);
        c = change("DELETE", "/ufmRest/resources/pkeys/0x5/hosts/node[01-02]", NULL);
        expect_members(&c, "1 11 12");
        c = change("DELETE", "/ufmRest/resources/pkeys/0x5/hosts/nobody", NULL);
        ck_assert_uint_eq(c.n_members, 0);
        c = change("DELETE", "/ufmRest/resources/pkeys/0x6/hosts/gone1", NULL);
        ck_assert_uint_eq(c.n_members, 0);
}
END_TEST

/* A node list that means more names than there can be hosts is refused before any is made. */
START_TEST(many_hosts)
{
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"n[0-99999999]\"}", "more than 32768 hosts", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"n[0-99999999]x[0-99999999]x[0-99999999]\"}",
                       "more than 32768 hosts", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"n[1-32768],x\"}", "more than 32768 hosts", NULL);
        (void) refused(400, ADD_HOSTS, "{\"pkey\":\"0x5\",\"hosts_names\":\"n[1-32768]\"}", "and 32763 more", NULL);
        ck_assert_uint_lt(arena_size(arena), 8 << 20);
}
END_TEST

/* Ports of more hosts than a request may have GUIDs. */
START_TEST(many_ports_of_hosts)
{
        static const char body[] = "{\"pkey\":\"0x5\",\"hosts_names\":\"a,b\"}";
        const struct rest_request q = { ADD_HOSTS, body, sizeof(body) - 1 };
        struct rest_port *many = arena_new_array(arena, struct rest_port, REST_MAX_GUIDS + 1);
        struct rest_view v = { .ports = many, .n_ports = REST_MAX_GUIDS + 1 };
        struct rest_reply reply;

        ck_assert_ptr_nonnull(many);
        for (uint32_t i = 0; i < v.n_ports; i++)
                many[i] = (struct rest_port) { .guid = { i + 1 }, .node_name = i % 2 ? "a" : "b", .is_computer = true };
        ck_assert_int_eq(rest_handle(arena, &q, &v, &reply), 0);
        ck_assert(!reply.is_change && strstr(reply.response.body, "more than 32768 ports"));
        v.n_ports--;
        ck_assert_int_eq(rest_handle(arena, &q, &v, &reply), 0);
        ck_assert(reply.is_change && reply.change.n_members == REST_MAX_GUIDS);
}
END_TEST

START_TEST(needs)
{
        static const struct {
                const char *method, *target;
                unsigned needs;
        } requests[] = {
                { "GET", "/ufmRest/app/ufm_version", REST_NEEDS_NOTHING },
                { "GET", "/ufmRest/app/smconf", REST_NEEDS_NOTHING },
                { "GET", "/ufmRest/resources/ports", REST_NEEDS_PORTS },
                { "GET", "/ufmRest/resources/pkeys", REST_NEEDS_PARTITIONS },
                { "GET", "/ufmRest/resources/pkeys/0x5", REST_NEEDS_PARTITIONS },
                { "GET", "/ufmRest/resources/pkeys/last_updated", REST_NEEDS_PARTITIONS },
                { "POST", "/ufmRest/resources/pkeys", REST_CHANGES | REST_NEEDS_PARTITIONS },
                { "DELETE", "/ufmRest/resources/pkeys/0x5", REST_CHANGES | REST_NEEDS_PARTITIONS },
                { "POST", "/ufmRest/resources/pkeys/hosts", REST_CHANGES | REST_NEEDS_PARTITIONS | REST_NEEDS_PORTS },
                { "DELETE", "/ufmRest/resources/pkeys/0x5/hosts/a", REST_CHANGES | REST_NEEDS_PARTITIONS | REST_NEEDS_PORTS },
                { "PATCH", "/ufmRest/resources/pkeys", REST_NEEDS_NOTHING },
                { "GET", "/x", REST_NEEDS_NOTHING },
        };

        for (size_t i = 0; i < ELEMENTS(requests); i++) {
                const struct rest_request q = { .method = requests[i].method, .target = requests[i].target };
                unsigned found = 77;

                ck_assert_int_eq(rest_needs(arena, &q, &found), 0);
                ck_assert_msg(found == requests[i].needs, "%s %s: %u", q.method, q.target, found);
        }
}
END_TEST

START_TEST(qos)
{
        static const struct {
                const char *body, *part;
        } wrong[] = {
                { "{\"pkey\":\"0x5\",\"service_level\":0,\"rate_limit\":10}", "mtu_limit is missing" },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":3,\"service_level\":0,\"rate_limit\":10}", "mtu_limit: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":\"2\",\"service_level\":0,\"rate_limit\":10}", "mtu_limit: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":16,\"rate_limit\":10}", "service_level: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":-1,\"rate_limit\":10}", "service_level: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":true,\"rate_limit\":10}", "service_level: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":0,\"rate_limit\":2}", "rate_limit: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":0,\"rate_limit\":1e300}", "rate_limit: " },
                { "{\"pkey\":\"0x5\",\"mtu_limit\":2,\"service_level\":0,\"rate_limit\":\"10\"}", "rate_limit: " },
        };

        for (size_t i = 0; i < ELEMENTS(wrong); i++)
                (void) refused(400, "PUT", "/ufmRest/resources/pkeys/qos_conf", wrong[i].body, wrong[i].part, NULL);
}
END_TEST

/* A text of n bytes, all of them c. */
static char *fill(size_t n, char c)
{
        char *text = arena_new_array(arena, char, n + 1);

        ck_assert_ptr_nonnull(text);
        memset(text, c, n);
        return text;
}

START_TEST(limits)
{
        char *body = fill(REST_MAX_BODY + 1, ' '), *target = fill(REST_MAX_TARGET + 1, 'a'), *guids, *p;

        (void) refused(413, "POST", "/ufmRest/resources/pkeys", body, "1048576 bytes", NULL);
        body[REST_MAX_BODY] = '\0';
        refused_add(body, "not JSON");
        memset(body, '[', REST_MAX_BODY);
        refused_add(body, "not JSON");
        memcpy(target, "/ufmRest/", 9);
        (void) refused(414, "GET", target, NULL, "65536 bytes", NULL);
        (void) refused(405, fill(4096, '\x01'), "/ufmRest/app/smconf", NULL, "????...'", NULL);
        guids = p = fill((size_t) REST_MAX_GUIDS * 8 + 64, '\0');
        p += sprintf(p, "{\"pkey\":\"0x5\",\"guids\":[\"0x1\"");
        for (unsigned i = 1; i < REST_MAX_GUIDS; i++)
                p += sprintf(p, ",\"0x1\"");
        (void) sprintf(p, "]}");
        ck_assert_uint_eq(change("POST", "/ufmRest/resources/pkeys", guids).n_members, 1);
        (void) sprintf(p, ",\"0x2\"]}");
        refused_add(guids, "more than 32768 GUIDs");
        (void) refused(400, "POST", "/ufmRest/resources/pkeys/add",
                       "{\"pkey\":\"0x5\",\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}", "aaa...' (accepted: ",
                       NULL);
}
END_TEST

START_TEST(answers)
{
        const struct rest_change c = { .kind = REST_ADD, .base = 0x1f };
        static const unsigned statuses[] = { [REST_REFUSED] = 400, [REST_NOT_FOUND] = 404, [REST_CONFLICT] = 409,
                                             [REST_UNAVAILABLE] = 503 };
        struct rest_response r;

        ck_assert_int_eq(rest_answer(arena, &c, REST_STORED, NULL, &r), 0);
        expect_body(&r, 200, "{\"pkey\":\"0x1f\"}");
        for (size_t i = REST_REFUSED; i < ELEMENTS(statuses); i++) {
                ck_assert_int_eq(rest_answer(arena, &c, (enum rest_outcome) i, "the \"reason\"", &r), 0);
                expect_body(&r, statuses[i], "{\"error\":\"the \\\"reason\\\"\"}");
                ck_assert_ptr_null(r.allow);
        }
        ck_assert_int_eq(rest_refuse(arena, 429, "too many requests", &r), 0);
        expect_body(&r, 429, "{\"error\":\"too many requests\"}");
}
END_TEST

/* Each allocation fails in turn: the result is -ENOMEM, or the same as with enough memory. */
START_TEST(no_memory)
{
        static const struct rest_request requests[] = {
                { "GET", "/ufmRest/resources/pkeys?guids_data=true&qos_conf=true&port_info=true" },
                { "GET", "/ufmRest/resources/ports" },
                { "GET", "/ufmRest/app/smconf" },
                { "PATCH", "/ufmRest/resources/pkeys" },
                { "DELETE", "/ufmRest/resources/pkeys/0x5/guids/0x1,0x2" },
                { "DELETE", "/ufmRest/resources/pkeys/0x2000/hosts/node1" },
                { "POST", "/ufmRest/resources/pkeys/hosts", "{\"pkey\":\"0x5\",\"hosts_names\":\"n[1-9]\"}", 39 },
                { "DELETE", "/ufmRest/resources/pkeys/0x5/hosts/gone1,node[01-02]" },
                { "POST", "/ufmRest/resources/pkeys", "{\"pkey\":\"0x5\",\"guids\":[\"0x1\"]}", 32 },
                { "POST", "/ufmRest/resources/pkeys", "{\"pkex\":1}", 10 },
        };
        static struct fail_alloc_state state;
        unsigned n = 0;

        fail_alloc_use(&state);
        for (size_t i = 0; i < ELEMENTS(requests); i++) {
                struct rest_reply expected, reply;
                bool failed;

                ck_assert_int_eq(rest_handle(arena, &requests[i], &view, &expected), 0);
                for (unsigned k = 1;; k++, n++) {
                        int r;

                        fail_alloc_at(k);
                        fail_alloc_enter();
                        r = rest_handle(arena, &requests[i], &view, &reply);
                        fail_alloc_leave();
                        failed = fail_alloc_happened();
                        fail_alloc_at(0);
                        ck_assert(r == 0 || (r == -ENOMEM && failed));
                        ck_assert(r < 0 || reply.is_change == expected.is_change);
                        if (r == 0 && !reply.is_change)
                                expect_body(&reply.response, expected.response.status, expected.response.body);
                        if (!failed)
                                break;
                }
        }
        ck_assert_uint_gt(n, 20);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("rest");
        TCase *t = tcase_create("rest");
        SRunner *runner = srunner_create(s);
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, ib_kubernetes);
        tcase_add_test(t, nico);
        tcase_add_test(t, nv_config_manager);
        tcase_add_test(t, qos_of_an_empty_partition);
        tcase_add_test(t, ports_of_members);
        tcase_add_test(t, names_in_queries);
        tcase_add_loop_test(t, states_of_ports, PORT_STATE_NONE, PORT_STATE_ACTIVE + 1);
        tcase_add_test(t, ufm_slurm);
        tcase_add_test(t, others);
        tcase_add_test(t, default_partition);
        tcase_add_test(t, default_membership);
        tcase_add_test(t, defaults);
        tcase_add_test(t, prefixes);
        tcase_add_test(t, routes);
        tcase_add_test(t, paths);
        tcase_add_test(t, p_keys);
        tcase_add_test(t, bodies);
        tcase_add_test(t, hosts);
        tcase_add_test(t, unknown_hosts);
        tcase_add_test(t, removed_hosts);
        tcase_add_test(t, many_hosts);
        tcase_add_test(t, many_ports_of_hosts);
        tcase_add_test(t, needs);
        tcase_add_test(t, qos);
        tcase_add_test(t, limits);
        tcase_add_test(t, answers);
        tcase_add_test(t, no_memory);
        suite_add_tcase(s, t);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
