/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"

#define G(x) ((struct guid) { (x) })

static struct arena *arena;
static struct findings findings;

static void setup(void)
{
        arena = arena_new();
        findings = (struct findings) { .arena = arena };
}

static void teardown(void)
{
        findings_done(&findings);
        arena_free(arena);
}

static const struct subnet *parse(const char *text)
{
        struct subnet *s = NULL;

        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", text, strlen(text), &findings, &s), 0);
        return s;
}

/* Where ../shared/topologies is beside the source; NULL and a message if it is not. */
static char *read_shared(const char *name, size_t *ret_n)
{
        const char *top = getenv("abs_top_srcdir");
        char *path = arena_printf(arena, "%s/../shared/topologies/%s", top ? top : ".", name);
        FILE *f = fopen(path, "re");
        char *bytes = arena_new_array(arena, char, 1 << 21);

        if (!f) {
                fprintf(stderr, "skipped: there is no %s\n", path);
                return NULL;
        }
        *ret_n = fread(bytes, 1, 1 << 21, f);
        fclose(f);
        return bytes;
}

static const struct subnet_node *node(const struct subnet *s, uint64_t guid)
{
        uint32_t i = subnet_find_node(s, G(guid));

        ck_assert_msg(i != SUBNET_NONE, "no node 0x%" PRIx64, guid);
        return &s->nodes[i];
}

static const struct subnet_port *port(const struct subnet *s, uint64_t guid, uint8_t number)
{
        uint32_t i = subnet_find_port(s, subnet_find_node(s, G(guid)), number);

        ck_assert_msg(i != SUBNET_NONE, "no port 0x%" PRIx64 "/%u", guid, number);
        return &s->ports[i];
}

static const char whole[] =
        "#\n# Topology file: generated on Fri Feb  3 09:32:51 2023\n#\n\n"
        "Chassis 1 (guid 0x2c90200423e70)\nHostname: anything [1] \"at\" all\n\n# Spine Nodes\n"
        "vendid=0x2c9\r\ndevid=0xcf08\nsysimgguid=0xa0\t\t# Chassis 1\n"
        "switchguid=0xa1(a2)\t# ISR 2012\n"
        "Switch\t36 \"S-00000000000000a1\"\t\t# \"MF0;leaf01:MQM8700/U1\" enhanced port 0 lid 12 lmc 1\n"
        "[1][ext 7]\t\"H-00000000000000b1\"[2](b3) \t\t# \"node0001 \"quoted\" # mlx5_0\" lid 6 4xHDR\n"
        "[2]\t\"S-00000000000000a9\"[36][ext 3]\t\t# \"leaf02\" lid 13 4xHDR s=1 w=2 v=3\n"
        "[5]\t\"R-00000000000000c1\"[1](c2)\n"
        "\n"
        "switchguid=0xa9\n"
        "Switch 36 \"S-00000000000000a9\" # leaf02 base port 0 lid 13 lmc 0\n"
        "[36] \"S-00000000000000a1\" [2] # \"leaf01\"\n"
        "[3] \"H-00000000000000b1\"[1] # only told from here: the other end has no line\n"
        "\n"
        "caguid=0xb1\n"
        "Ca\t2 \"H-00000000000000b1\"\t\t# \"node0001 \"quoted\" # mlx5_0\" (scp)\n"
        "[2](b3) \t\"S-00000000000000a1\"[1]\t\t# lid 6 lmc 2 \"leaf01\" lid 12 4xHDR\n"
        "\n"
        "rtguid=0xc1\n"
        "Rt 1 \"R-00000000000000c1\"\t# \"router1 rt0\"\n"
        "[1](c2) \"S-00000000000000a1\"[5] # lid 65535 lmc 9\n"
        "\n"
        "Hca 1 \"H-d1\"\n"
        "[1] \"nobody\"[1]\n";

START_TEST(whole_file)
{
        const struct subnet *s = parse(whole);
        const struct subnet_port *p;

        ck_assert_uint_eq(s->n_nodes, 5);
        ck_assert_uint_eq(s->self, SUBNET_NONE);
        ck_assert_uint_eq(s->sm, SUBNET_NONE);
        ck_assert_str_eq(node(s, 0xa1)->name, "leaf01");
        ck_assert_uint_eq(node(s, 0xa1)->num_ports, 36);
        ck_assert_int_eq(node(s, 0xc1)->type, NODE_ROUTER);
        ck_assert_str_eq(node(s, 0xb1)->description, "node0001 \"quoted\" # mlx5_0");
        ck_assert_str_eq(node(s, 0xa9)->name, "leaf02");
        ck_assert_str_eq(node(s, 0xd1)->name, "H-d1");
        p = port(s, 0xa1, 0);
        ck_assert_uint_eq(p->guid.v, 0xa2);
        ck_assert_uint_eq(p->lid.v, 12);
        ck_assert_uint_eq(p->lmc, 1);
        p = port(s, 0xb1, 2);
        ck_assert_uint_eq(p->guid.v, 0xb3);
        ck_assert_uint_eq(p->lid.v, 6);
        ck_assert_uint_eq(p->lmc, 2);
        ck_assert_ptr_eq(&s->ports[p->peer], port(s, 0xa1, 1));
        p = port(s, 0xb1, 1);
        ck_assert_uint_eq(p->guid.v, 0xb2);
        ck_assert_ptr_eq(&s->ports[p->peer], port(s, 0xa9, 3));
        ck_assert_uint_eq(port(s, 0xc1, 1)->lid.v, 0);
        ck_assert_uint_eq(port(s, 0xd1, 1)->peer, SUBNET_NONE);
        ck_assert_uint_eq(subnet_find_port(s, subnet_find_node(s, G(0xa1)), 2), SUBNET_NONE);

        /* the one thing that is odd in it */
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_int_eq(findings.items[0].severity, FINDING_WARNING);
        ck_assert_int_eq(findings.items[0].code, FINDING_TOPOLOGY_SYNTAX);
}
END_TEST

START_TEST(lmc)
{
        for (unsigned wanted = 0; wanted < 300; wanted++) {
                char text[128];

                (void) snprintf(text, sizeof(text), "Ca 1 \"H-b1\" # \"h hca\"\n[1](b2) \"nobody\"[1] # lid 6 lmc %u\n", wanted);
                ck_assert_uint_eq(port(parse(text), 0xb1, 1)->lmc, wanted <= 7 ? wanted : 0);
        }
}
END_TEST

START_TEST(cut_off_anywhere)
{
        for (size_t n = 0; n < sizeof(whole); n++) {
                char *bytes = malloc(n); /* so that a sanitizer sees who reads behind the end */
                struct subnet *s = NULL;
                int r;

                if (n > 0)
                        memcpy(bytes, whole, n);
                r = subnet_parse_topology(arena, "f.net", bytes, n, &findings, &s);
                ck_assert(r == 0 || r == -EBADMSG);
                ck_assert((r == 0) == (s != NULL));
                free(bytes);
        }
}
END_TEST

START_TEST(one_byte_changed)
{
        static const char junk[] = { '\0', '\n', '"', '[', '(', '#', '=', ' ', '9', (char) 0xff };
        char bytes[sizeof(whole) - 1];

        for (size_t n = 0; n < sizeof(bytes); n++)
                for (size_t j = 0; j < sizeof(junk); j++) {
                        struct subnet *s = NULL;
                        int r;

                        memcpy(bytes, whole, sizeof(bytes));
                        bytes[n] = junk[j];
                        teardown();
                        setup();
                        r = subnet_parse_topology(arena, "f.net", bytes, sizeof(bytes), &findings, &s);
                        ck_assert(r == 0 || (r == -EBADMSG && findings.n_errors > 0));
                }
}
END_TEST

static const struct {
        const char *text;
        unsigned line, column;
        const char *says;
} bad[] = {
        { "", 0, 1, "no node" },
        { "# only a comment\n", 0, 1, "no node" },
        { "rubbish\n", 1, 1, "not a line of ibnetdiscover" },
        { "\n  {\"json\": 1}\n", 2, 3, "not a line of ibnetdiscover" },
        { "[1] \"H-1\"[1]\n", 1, 1, "without a node" },
        { "Switch \"S-1\"\n", 1, 8, "number of ports" },
        { "Switch 0 \"S-1\"\n", 1, 9, "number of ports" },
        { "Switch 256 \"S-1\"\n", 1, 8, "number of ports" },
        { "Switch 99999999999999999999999 \"S-1\"\n", 1, 8, "number of ports" },
        { "Switch 8 S-1\n", 1, 10, "name in quotes" },
        { "Switch 8 \"S-1\n", 1, 10, "name in quotes" },
        { "Switch 8 \"\"\n", 1, 10, "name in quotes" },
        { "Switch 8 \"S-\x01\"\n", 1, 10, "name in quotes" },
        { "Switch 8 \"Switch1\"\n", 1, 11, "no GUID" },
        { "Switch 8 \"S-0\"\n", 1, 11, "no GUID" },
        { "Switch 8 \"S-12345678123456781\"\n", 1, 11, "no GUID" },
        { "Switch 8 \"S-1\" # \"never ends\n", 1, 19, "quote after" },
        { "switchguid=xyz\nSwitch 8 \"S-1\"\n", 1, 12, "GUID" },
        { "switchguid=0x1(\nSwitch 8 \"S-1\"\n", 1, 16, "GUID" },
        { "Switch 8 \"S-1\"\n[9] \"H-1\"[1]\n", 2, 4, "port of this node" },
        { "Switch 8 \"S-1\"\n[0] \"H-1\"[1]\n", 2, 4, "port of this node" },
        { "Switch 8 \"S-1\"\n[x] \"H-1\"[1]\n", 2, 2, "port of this node" },
        { "Switch 8 \"S-1\"\n[1\n", 2, 3, "port of this node" },
        { "Switch 8 \"S-1\"\n[1] H-1\n", 2, 5, "name of the node" },
        { "Switch 8 \"S-1\"\n[1] \"H-1\"[300]\n", 2, 11, "at the other end, like" },
        { "Switch 8 \"S-1\"\n[1] \"H-1\"[1](zz)\n", 2, 14, "in parentheses" },
        { "Ca 1 \"H-1\"\n[1](12345678123456781) \"S-1\"[1]\n", 2, 5, "in parentheses" },
        { "Ca 1 \"H-1\"\n[1] \"S-2\"[9]\nSwitch 8 \"S-2\"\n", 2, 6, "only 8 ports" },
        { "Ca 1 \"H-1\"\n[1] \"S-2\"[1]\n[1] \"S-2\"[2]\nSwitch 8 \"S-2\"\n", 3, 1, "has this port already" },
        { "Ca 1 \"H-1\"\n\nCa 1 \"S-1\"\n", 3, 7, "a node with this GUID already" },
        { "caguid=1\nCa 1 \"H-1\"\ncaguid=2\nCa 1 \"H-1\"\n", 4, 1, "in line 2" },
};

START_TEST(bad_line)
{
        struct subnet *s = NULL;

        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", bad[_i].text, strlen(bad[_i].text), &findings, &s),
                         -EBADMSG);
        ck_assert_ptr_null(s);
        findings_sort(&findings);
        for (size_t i = 0; i < findings.n; i++)
                if (findings.items[i].severity == FINDING_ERROR) {
                        const struct finding *f = &findings.items[i];

                        ck_assert_int_eq(f->code, FINDING_TOPOLOGY_SYNTAX);
                        ck_assert_str_eq(f->where.file, "f.net");
                        ck_assert_msg(strstr(f->text, bad[_i].says) != NULL, "'%s'", f->text);
                        ck_assert_uint_eq(f->where.line, bad[_i].line);
                        ck_assert_uint_eq(f->where.column, bad[_i].column);
                        return;
                }
        ck_abort_msg("refused without an error");
}
END_TEST

START_TEST(bad_node_hides_its_ports)
{
        static const char text[] = "Switch 8 \"nameless\"\n[1] \"H-1\"[1]\n[2] \"H-2\"[1]\n\nCa 1 \"H-1\"\n";
        struct subnet *s = NULL;

        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", text, strlen(text), &findings, &s), -EBADMSG);
        ck_assert_uint_eq(findings.n, 1);
}
END_TEST

START_TEST(findings_are_bounded)
{
        enum { LINES = 100000 };
        char *text = malloc(LINES * 2 + 1);
        struct subnet *s = NULL;

        for (size_t i = 0; i < LINES; i++)
                memcpy(text + 2 * i, "?\n", 2);
        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", text, LINES * 2, &findings, &s), -EBADMSG);
        free(text);
        ck_assert_uint_eq(findings.n, 51);
        ck_assert_str_eq(findings.items[50].text, "... and 99950 more like these");
}
END_TEST

START_TEST(long_line_is_shown_short)
{
        char text[5000];
        struct subnet *s = NULL;

        memset(text, 0x07, sizeof(text));
        text[0] = '\t';
        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", text, sizeof(text), &findings, &s), -EBADMSG);
        ck_assert_uint_le(strlen(findings.items[0].source_line), 200);
        ck_assert_int_eq(strncmp(findings.items[0].source_line, " ???", 4), 0);
}
END_TEST

START_TEST(small_fabric)
{
        size_t n;
        char *bytes = read_shared("small-4sw-12ca.net", &n);
        struct subnet *s = NULL;
        uint32_t i;

        if (!bytes)
                return;
        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", bytes, n, &findings, &s), 0);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(s->n_nodes, 16);
        /* four port 0s, twelve adapters and what they are plugged into */
        ck_assert_uint_eq(s->n_ports, 28);
        i = s->by_name[subnet_first_name(s, "Host2_1")];
        ck_assert_str_eq(s->nodes[i].device, "mlx5_0");
        ck_assert_uint_eq(s->nodes[i].guid.v, UINT64_C(0xb8599f03001ae2f1));
        ck_assert_uint_eq(s->ports[subnet_find_port(s, i, 1)].lid.v, 16);
        /* four Aggregation Nodes have no name */
        ck_assert_uint_eq(s->n_by_name, 12);
}
END_TEST

START_TEST(real_storage_fabric)
{
        size_t n;
        char *bytes = read_shared("selene-storage.net", &n);
        struct subnet *s = NULL;
        uint32_t linked = 0, endports = 0;

        if (!bytes)
                return;
        ck_assert_int_eq(subnet_parse_topology(arena, "f.net", bytes, n, &findings, &s), 0);
        ck_assert_uint_eq(findings.n, 0);
        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct subnet_port *p = &s->ports[i];

                endports += p->role == PORT_ENDPORT && p->number > 0;
                linked += p->role == PORT_ENDPORT && p->peer != SUBNET_NONE;
                if (p->peer != SUBNET_NONE)
                        ck_assert_uint_eq(s->ports[p->peer].peer, i);
        }
        ck_assert_uint_gt(endports, 1000);
        ck_assert_uint_eq(linked, endports);
        ck_assert_str_eq(s->nodes[s->by_name[subnet_first_name(s, "ai400x-157")]].name, "ai400x-157");
        ck_assert_str_eq(s->nodes[s->by_name[subnet_first_name(s, "SLG04-16")]].name, "SLG04-16");
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("topology");
        TCase *t = tcase_create("topology");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, whole_file);
        tcase_add_test(t, lmc);
        tcase_add_test(t, cut_off_anywhere);
        tcase_add_test(t, one_byte_changed);
        tcase_add_loop_test(t, bad_line, 0, (int) ELEMENTS(bad));
        tcase_add_test(t, bad_node_hides_its_ports);
        tcase_add_test(t, findings_are_bounded);
        tcase_add_test(t, long_line_is_shown_short);
        tcase_add_test(t, small_fabric);
        tcase_add_test(t, real_storage_fabric);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
