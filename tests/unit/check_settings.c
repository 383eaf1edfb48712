/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "findings_fixture.h"
#include "settings/settings.h"

static int parse(const char *yaml, struct settings **ret)
{
        *ret = NULL;
        return settings_parse(arena, "pkeyd.yaml", yaml, strlen(yaml), &findings, ret);
}

static struct settings *accept(const char *yaml)
{
        struct settings *s;

        ck_assert_msg(parse(yaml, &s) == 0, "%s", findings.n ? findings.items[0].text : "?");
        ck_assert_uint_eq(findings.n, 0);
        return s;
}

static void refuse(const char *yaml, const char *text)
{
        struct settings *s;
        size_t before = findings.n;

        ck_assert_int_eq(parse(yaml, &s), -EBADMSG);
        ck_assert_ptr_null(s);
        ck_assert_uint_eq(findings.n, before + 1);
        ck_assert_msg(strstr(findings.items[before].text, text) != NULL, "%s", findings.items[before].text);
}

START_TEST(defaults)
{
        struct settings expected, *s = accept("");

        settings_default(&expected);
        ck_assert_mem_eq(s, &expected, sizeof(expected));
        ck_assert_mem_eq(accept("# nothing\n"), &expected, sizeof(expected));
        ck_assert_ptr_null(s->ca);
        ck_assert_uint_eq(s->port, 0);
        ck_assert_int_eq(s->mode, MODE_ENFORCE);
        ck_assert_int_eq(s->writer, WRITER_DIRECT);
        ck_assert(!s->beside_opensm);
        ck_assert_int_eq(s->role, ROLE_ALWAYS);
        ck_assert_int_eq(s->unmanaged, UNMANAGED_REMOVE);
        ck_assert_int_eq(s->enforcement, ENFORCEMENT_BOTH);
        ck_assert_int_eq(s->enforcement_overflow, OVERFLOW_REFUSE);
        ck_assert(!s->repair_index0);
        ck_assert_uint_eq(s->sweep_interval, 60 * USEC_PER_SEC);
        ck_assert_uint_eq(s->timeout, 500 * USEC_PER_MSEC);
        ck_assert_uint_eq(s->window, 128);
        ck_assert_uint_eq(s->violations_interval, 60 * USEC_PER_SEC);
        ck_assert_uint_eq(s->violations_threshold, 1);
        ck_assert(!s->violations_clear_saturated);
        ck_assert_ptr_null(s->metrics_textfile);
}
END_TEST

START_TEST(all_keys)
{
        const struct settings *s = accept("ca: mlx5_1\nport: 2\nmode: audit\nwriter: direct\nbeside_opensm: true\nrole: follow-sm\nunmanaged: keep\n"
                                          "enforcement: out\nenforcement_overflow: disable\nrepair_index0: true\n"
                                          "sweep_interval: 2m\ntimeout: 250ms\nwindow: 4096\n"
                                          "m_key_file: /etc/pkeyd/m_key\nsa_key_file: '/run/sa key'\n"
                                          "violations: {interval: 1s, threshold: 1000000000, clear_saturated: true}\n"
                                          "metrics:\n  textfile: /run/metrics/pkeyd.prom\n");

        ck_assert_str_eq(s->ca, "mlx5_1");
        ck_assert_uint_eq(s->port, 2);
        ck_assert_int_eq(s->mode, MODE_AUDIT);
        ck_assert(s->beside_opensm);
        ck_assert_int_eq(s->role, ROLE_FOLLOW_SM);
        ck_assert_int_eq(s->unmanaged, UNMANAGED_KEEP);
        ck_assert_int_eq(s->enforcement, ENFORCEMENT_OUT);
        ck_assert_int_eq(s->enforcement_overflow, OVERFLOW_DISABLE);
        ck_assert(s->repair_index0);
        ck_assert_uint_eq(s->sweep_interval, 120 * USEC_PER_SEC);
        ck_assert_uint_eq(s->timeout, 250 * USEC_PER_MSEC);
        ck_assert_uint_eq(s->window, 4096);
        ck_assert_str_eq(s->m_key_file, "/etc/pkeyd/m_key");
        ck_assert_str_eq(s->sa_key_file, "/run/sa key");
        ck_assert_uint_eq(s->violations_interval, USEC_PER_SEC);
        ck_assert_uint_eq(s->violations_threshold, 1000000000);
        ck_assert(s->violations_clear_saturated);
        ck_assert_str_eq(s->metrics_textfile, "/run/metrics/pkeyd.prom");
}
END_TEST

START_TEST(opensm_writer)
{
        const struct settings *s = accept("writer: opensm\nopensm: {partitions_conf: /etc/opensm/partitions.conf, "
                                          "reload: 'systemd:opensm@0x1.service', config: /etc/opensm/opensm.conf}\n");

        ck_assert_int_eq(s->writer, WRITER_OPENSM);
        ck_assert_str_eq(s->opensm_partitions_conf, "/etc/opensm/partitions.conf");
        ck_assert_int_eq(s->opensm_reload, OPENSM_RELOAD_SYSTEMD);
        ck_assert_str_eq(s->opensm_unit, "opensm@0x1.service");
        ck_assert_str_eq(s->opensm_config, "/etc/opensm/opensm.conf");
        s = accept("opensm: {reload: pidfile:/run/opensm.pid, mirror: /etc/opensm/partitions.conf}\n");
        ck_assert_int_eq(s->writer, WRITER_DIRECT);
        ck_assert_int_eq(s->opensm_reload, OPENSM_RELOAD_PIDFILE);
        ck_assert_str_eq(s->opensm_pidfile, "/run/opensm.pid");
        ck_assert_str_eq(s->opensm_mirror, "/etc/opensm/partitions.conf");
        s = accept("writer: opensm\nopensm: {partitions_conf: /p, reload: pid:2147483647}\n");
        ck_assert_int_eq(s->opensm_reload, OPENSM_RELOAD_PID);
        ck_assert_uint_eq(s->opensm_pid, 2147483647);
}
END_TEST

/* A key that is written in the place of its file appears in no message. */
START_TEST(no_secret_is_shown)
{
        refuse("m_key_file: 0x5ec4e75ec4e7", "m_key_file: the value (not shown)");
        refuse("sa_key_file: \"5ec4e75ec4e7\"", "sa_key_file: the value (not shown)");
        for (size_t i = 0; i < findings.n; i++)
                ck_assert_ptr_null(strstr(finding_format(arena, &findings.items[i]), "5ec4e7"));
}
END_TEST

/* A key of the schema with its default, as it would be written. */
static const char *write_default(const struct settings_key *key)
{
        const char *dot = strchr(key->name, '.');

        if (!dot)
                return arena_printf(arena, "%s: %s\n", key->name, key->standard);
        return arena_printf(arena, "%.*s: {%s: %s}\n", (int) (dot - key->name), key->name, dot + 1, key->standard);
}

/* The default in the schema is the value of an absent key. */
START_TEST(schema_names_the_defaults)
{
        struct settings expected, *s;
        size_t i;

        settings_default(&expected);
        for (i = 0; i < settings_n_keys; i++) {
                if (!settings_schema[i].standard)
                        continue;
                s = accept(write_default(&settings_schema[i]));
                ck_assert_msg(memcmp(s, &expected, sizeof(expected)) == 0, "%s", settings_schema[i].name);
        }
}
END_TEST

static const struct {
        const char *text;
        usec_t usec;
} durations[] = {
        { "1s", USEC_PER_SEC },        { "1000ms", USEC_PER_SEC },         { "5m", 300 * USEC_PER_SEC },
        { "1h", 3600 * USEC_PER_SEC }, { "24h", 24 * 3600 * USEC_PER_SEC }, { "007s", 7 * USEC_PER_SEC },
};

START_TEST(duration)
{
        ck_assert_uint_eq(accept(arena_printf(arena, "sweep_interval: %s\n", durations[_i].text))->sweep_interval,
                          durations[_i].usec);
}
END_TEST

static const struct {
        const char *yaml, *text;
} refused[] = {
        { "sweep_interval: 60", "sweep_interval: '60' has no unit (accepted: 1s to 24h)" },
        { "sweep_interval: 999ms", "'999ms' is out of range (accepted: 1s to 24h)" },
        { "sweep_interval: 25h", "'25h' is out of range" },
        { "sweep_interval: 999999999h", "out of range" },
        { "sweep_interval: 9999999999h", "out of range" },
        { "sweep_interval: 18446744073709551616s", "is not a duration" },
        { "timeout: 9ms", "timeout: '9ms' is out of range (accepted: 10ms to 60s)" },
        { "timeout: 1us", "'1us' has an unknown unit" },
        { "window: 0", "window: '0' is out of range (accepted: 1 to 4096)" },
        { "window: many", "'many' is not a number" },
        { "port: 255", "port: '255' is out of range (accepted: 1 to 254)" },
        { "ca: a/b", "ca: 'a/b' is not a name" },
        { "mode: observe", "mode: 'observe' is not a known value (accepted: enforce, audit)" },
        { "writer: opensm\nopensm: {partitions_conf: /p}", "the key 'opensm.reload' is missing" },
        { "writer: opensm\nopensm: {reload: pid:7}", "the key 'opensm.partitions_conf' is missing" },
        { "writer: opensm\nopensm: {partitions_conf: /p, reload: pid:7, mirror: /q}", "opensm.mirror: is accepted with writer: direct only" },
        { "opensm: {reload: opensm.service}", "opensm.reload: 'opensm.service' is not a way to reload OpenSM (accepted: systemd:UNIT" },
        { "opensm: {reload: systemd:opensm}", "'systemd:opensm' is not the name of a service" },
        { "opensm: {reload: 'systemd:a b.service'}", "is not the name of a service" },
        { "opensm: {reload: pidfile:run/opensm.pid}", "is not the absolute path of a file" },
        { "opensm: {reload: pid:1}", "'pid:1' is not a process ID" },
        { "opensm: {reload: pid:4294967298}", "is not a process ID" },
        { "opensm: {reload: pid:12x}", "is not a process ID" },
        { "opensm: {mirror: partitions.conf}", "opensm.mirror: 'partitions.conf' is not the absolute path" },
        { "opensm: {mirrors: /p}", "opensm: unknown key 'mirrors'" },
        { "role: follow-master", "role: 'follow-master' is not a known value (accepted: always, follow-sm)" },
        { "violations: {interval: 60}", "violations.interval: '60' has no unit (accepted: 1s to 24h)" },
        { "violations: {interval: 999ms}", "violations.interval: '999ms' is out of range" },
        { "violations: {interval: 86401s}", "violations.interval: '86401s' is out of range" },
        { "violations: {interval: 9999999999h}", "violations.interval: '9999999999h' is out of range" },
        { "violations: {threshold: 0}", "violations.threshold: '0' is out of range (accepted: 1 to 1000000000)" },
        { "violations: {threshold: 1000000001}", "violations.threshold: '1000000001' is out of range" },
        { "violations: {threshold: 4294967297}", "violations.threshold: '4294967297' is out of range" },
        { "violations: {treshold: 2}", "violations: unknown key 'treshold' (accepted: interval, threshold, "
          "clear_saturated)" },
        { "violations: {threshold: 1, threshold: 1}", "duplicate key 'threshold'" },
        { "violations: {window: 1}", "violations: unknown key 'window'" },
        { "violations: 60s", "violations: is a single value (accepted: a map)" },
        { "violations:", "violations: has no value (accepted: a map)" },
        { "violations.interval: 60s", "unknown key 'violations.interval'" },
        { "interval: 60s", "unknown key 'interval'" },
        { "violations: {clear_saturated: 1}", "violations.clear_saturated: '1' is not a boolean" },
        { "metrics: {textfile: x.prom}", "metrics.textfile: 'x.prom' is not the absolute path of a file" },
        { "metrics: {textfile: /run/}", "metrics.textfile: '/run/' is not the absolute path of a file" },
        { "metrics: {textfile: \"/run\\n/x\"}", "is not the absolute path of a file" },
        { "metrics: {textfile: }", "metrics.textfile: has no value (accepted: an absolute path" },
        { "metrics: {textfile: [/x]}", "metrics.textfile: is a list (accepted: a single value)" },
        { "metrics: [textfile]", "metrics: is a list (accepted: a map)" },
        { "opensm: systemd", "opensm: is a single value (accepted: a map)" },
        { "m_key_file: m_key", "m_key_file: the value (not shown) is not the path of a file" },
        { "sa_key_file: /", "sa_key_file: the value (not shown)" },
        { "m_key_file: \"/etc/\\t\"", "m_key_file: the value (not shown)" },
        { "m_key_file:", "m_key_file: has no value (accepted: an absolute path" },
        { "repair_index0: 1", "repair_index0: '1' is not a boolean (accepted: true, false)" },
        { "sweepinterval: 1s", "unknown key 'sweepinterval'" },
        { "mode: audit\nmode: audit", "duplicate key 'mode'" },
        { "mode: [audit", "not valid YAML" },
        { "mode:", "mode: has no value (accepted: enforce, audit)" },
        { "- mode", "the file is a list" },
};

START_TEST(refusing)
{
        refuse(refused[_i].yaml, refused[_i].text);
}
END_TEST

static const struct {
        const char *url;
        bool is_private;
} endpoints[] = {
        { "https://head2", true }, { "http://127.0.0.1:2379", true }, { "http://127.0.0.2", true }, { "http://localhost:2379", true },
        { "http://localhost", true }, { "http://[::1]:2379", true }, { "http://[::1]", true },
        { "http://head2", false }, { "http://127.example:2379", false }, { "http://127.0.0.1.example", false },
        { "http://localhost.example", false }, { "http://localhost2:2379", false }, { "http://[::1:2]", false },
};

/* No password is sent to another host without encryption. */
START_TEST(password)
{
        _cleanup_free_ char *yaml = NULL;
        struct settings *s;

        ck_assert_int_gt(asprintf(&yaml, "store: etcd\nrole: follow-sm\netcd: {endpoints: '%s', user: pkeyd, password_file: /p}\n",
                                  endpoints[_i].url), 0);
        ck_assert_int_eq(parse(yaml, &s), endpoints[_i].is_private ? 0 : -EBADMSG);
        if (!endpoints[_i].is_private)
                ck_assert_ptr_nonnull(strstr(findings.items[0].text, "would be sent"));
}
END_TEST

/* A file with one wrong key is refused as a whole. */
START_TEST(all_or_nothing)
{
        struct settings *s;

        ck_assert_int_eq(parse("mode: audit\nwindow: 0\nport: 0\n", &s), -EBADMSG);
        ck_assert_ptr_null(s);
        ck_assert_uint_eq(findings.n_errors, 2);
        ck_assert_uint_eq(findings.items[0].where.line, 2);
        ck_assert_uint_eq(findings.items[0].where.column, 9);
        ck_assert_int_eq(findings.items[0].code, FINDING_VALUE_INVALID);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("settings");
        TCase *c = tcase_create("settings");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, defaults);
        tcase_add_test(c, all_keys);
        tcase_add_test(c, opensm_writer);
        tcase_add_test(c, schema_names_the_defaults);
        tcase_add_loop_test(c, duration, 0, ELEMENTS(durations));
        tcase_add_loop_test(c, refusing, 0, ELEMENTS(refused));
        tcase_add_loop_test(c, password, 0, ELEMENTS(endpoints));
        tcase_add_test(c, all_or_nothing);
        tcase_add_test(c, no_secret_is_shown);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
