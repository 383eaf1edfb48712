/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "fail_alloc.h"
#include "findings_fixture.h"
#include "rest/rest_conf.h"

/* Of the passwords "example", "k8s.secret" and "s3cret:with:colons". */
#define SALT    "$y$j75$V7qMYJaNbVKOeh4PhtqPk/$"
#define EXAMPLE SALT "oCdlTan5NZAR1pTux6vtUs2U/Yp9fNO1GjYujvJ17K9"
#define TOKEN   SALT "1plsePaeQEjDTeexeI9ZyicE526LPhtpb6lZH4LSZ6D"
#define COLONS  SALT "n7vfbBENbIr2zPy2.j39iionhyyDtNLk2xBjfQX5djD"

static struct rest_conf *accept(const char *yaml)
{
        struct rest_conf *c = NULL;

        ck_assert_msg(rest_conf_parse(arena, "rest.yaml", yaml, strlen(yaml), &findings, &c) == 0, "%s",
                      findings.n ? findings.items[0].text : "?");
        ck_assert_uint_eq(findings.n, 0);
        return c;
}

static const char whole[] = "listen: ['[::]:443', '127.0.0.1:8080']\n"
                            "tls:\n  certificate: /etc/a.crt\n  key: /etc/a.key\n  client_ca: /etc/ca.crt\n"
                            "clients:\n"
                            "  admin: {password: " EXAMPLE ", pool: p1}\n"
                            "  k8s: {token: " TOKEN ", password: " COLONS ", pool: p2}\n"
                            "  nico: {certificate: 'CN=nico,O=x', pool: 3k.tenants_a-b}\n"
                            "limits: {requests: 5, body: 2048, connections: 7, time: 2m}\n";

START_TEST(all_keys)
{
        const struct rest_conf *c = accept(whole);

        ck_assert_uint_eq(c->n_listen, 2);
        ck_assert_str_eq(c->listen[0], "[::]:443");
        ck_assert_str_eq(c->tls_certificate, "/etc/a.crt");
        ck_assert_str_eq(c->tls_key, "/etc/a.key");
        ck_assert_str_eq(c->tls_client_ca, "/etc/ca.crt");
        ck_assert_uint_eq(c->n_clients, 3);
        ck_assert_str_eq(c->clients[1].name, "k8s");
        ck_assert_str_eq(c->clients[1].token, TOKEN);
        ck_assert_str_eq(c->clients[2].certificate, "CN=nico,O=x");
        ck_assert_str_eq(c->clients[2].pool, "3k.tenants_a-b");
        ck_assert_uint_eq(c->max_requests, 5);
        ck_assert_uint_eq(c->max_body, 2048);
        ck_assert_uint_eq(c->max_connections, 7);
        ck_assert_uint_eq(c->max_time, 120 * USEC_PER_SEC);
}
END_TEST

START_TEST(defaults)
{
        const struct rest_conf *c = accept("listen: 127.0.0.1:80\nclients: {a: {password: " EXAMPLE ", pool: p}}\n");

        ck_assert_uint_eq(c->n_listen, 1);
        ck_assert_ptr_null(c->tls_certificate);
        ck_assert_uint_eq(c->max_requests, 100);
        ck_assert_uint_eq(c->max_body, REST_MAX_BODY);
        ck_assert_uint_eq(c->max_connections, 64);
        ck_assert_uint_eq(c->max_time, 10 * USEC_PER_SEC);
        ck_assert_uint_eq(accept("clients: {}\n")->n_clients, 0);
}
END_TEST

START_TEST(example)
{
        const char *folder = getenv("top_srcdir");
        char path[4096], bytes[65536] = "";
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/conf/rest.yaml", folder ?: ".");
        f = fopen(path, "re");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_gt(fread(bytes, 1, sizeof(bytes) - 1, f), 0);
        (void) fclose(f);
        ck_assert_uint_eq(accept(bytes)->n_clients, 1);
}
END_TEST

#define FOUR "'[::]:443', '[::]:443', '[::]:443', '[::]:443', "
#define CLIENTS "clients: {a: {password: " EXAMPLE ", pool: p}}\n"

static const struct {
        const char *yaml, *text;
        enum finding_code code;
} refused[] = {
        { "", "the key 'clients' is missing", FINDING_KEY_MISSING },
        { "clients: []\n", "clients: is a list (accepted: a map)", FINDING_YAML_TYPE },
        { "clients: {a: x}\n", "clients.a: is a single value (accepted: a map)", FINDING_YAML_TYPE },
        { "clients: {'a b': {password: " EXAMPLE ", pool: p}}\n", "clients: the value", FINDING_VALUE_INVALID },
        { "clients: {a.b: {password: " EXAMPLE ", pool: p}}\n", "clients: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {password: " EXAMPLE ", pool: .p}}\n", "clients.a.pool: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {password: " EXAMPLE "}}\n", "the key 'clients.a.pool' is missing", FINDING_KEY_MISSING },
        { "clients: {a: {password: " EXAMPLE ", pool: ''}}\n", "clients.a.pool: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {pool: p}}\n", "clients.a: has no credential", FINDING_KEY_MISSING },
        { "clients: {a: {password: $6$salt$x$y, pool: p}}\n", "clients.a.password: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {password: secret, pool: p}}\n", "clients.a.password: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {password: $6$abc$abc, pool: p}}\n", "yescrypt", FINDING_VALUE_INVALID },
        { "clients: {a: {token: [secret], pool: p}}\n", "clients.a.token: is a list", FINDING_YAML_TYPE },
        { "clients: {a: {token: , pool: p}}\n", "clients.a.token: the value", FINDING_VALUE_INVALID },
        { "clients: {a: {passwd: secret, password: " EXAMPLE ", pool: p}}\n", "clients.a: this key is unknown", FINDING_KEY_UNKNOWN },
        { "clients: {a: {certificate: CN=a, pool: p}}\n", "tls.client_ca' is missing", FINDING_KEY_MISSING },
        { "tls: {certificate: /a, key: /b, client_ca: /c}\nclients: {a: {certificate: CN=a, pool: p}, b: {certificate: CN=a, "
          "pool: p}}\n", "a subject that no other client has", FINDING_VALUE_INVALID },
        { CLIENTS "tls: {certificate: /a}\n", "the key 'tls.key' is missing", FINDING_KEY_MISSING },
        { CLIENTS "tls: {certificate: a, key: /b}\n", "tls.certificate: the value", FINDING_VALUE_INVALID },
        { CLIENTS "tls: {certificate: /a, key: /b, ca: /c}\n", "tls: this key is unknown", FINDING_KEY_UNKNOWN },
        { "tls: {certificate: /a, key: /b, client_ca: c}\nclients: {a: {certificate: CN=a, pool: p}}\n",
          "tls.client_ca: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: [" FOUR FOUR FOUR FOUR "'[::]:443']\n", "at most 16 addresses", FINDING_VALUE_INVALID },
        { CLIENTS "listen: 443\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: ['[::]:0']\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: ['[::]:65536']\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: '::1:443'\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: ':443'\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "listen: 'host:443'\n", "listen: the value", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {requests: 0}\n", "limits.requests: the value", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {requests: 10x}\n", "limits.requests: the value", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {body: 1048577}\n", "1024 to 1048576", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {body: 1023}\n", "1024 to 1048576", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {connections: 0}\n", "1 to 10000", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {connections: 10001}\n", "1 to 10000", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {time: 10}\n", "limits.time: the value", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {time: 0s}\n", "1s to 1h", FINDING_VALUE_INVALID },
        { CLIENTS "limits: {time: 61m}\n", "1s to 1h", FINDING_VALUE_INVALID },
        { CLIENTS "limit: {}\n", "this key is unknown (accepted: listen, tls, clients, limits)", FINDING_KEY_UNKNOWN },
};

START_TEST(refusing)
{
        struct rest_conf *c = NULL;
        const struct finding *f;

        ck_assert_int_eq(rest_conf_parse(arena, "rest.yaml", refused[_i].yaml, strlen(refused[_i].yaml), &findings, &c), -EBADMSG);
        ck_assert_ptr_null(c);
        ck_assert_uint_eq(findings.n, 1);
        f = &findings.items[0];
        ck_assert_msg(strstr(f->text, refused[_i].text) != NULL, "%s", f->text);
        ck_assert_int_eq(f->code, refused[_i].code);
}
END_TEST

/* Wherever a secret is, no finding shows it. */
START_TEST(no_secret_is_shown)
{
        static const char *const places[] = {
                "clients: {a: {password: HUSH, pool: p}}",
                "clients: {a: {password: [HUSH], pool: p}}",
                "clients: {a: {password HUSH, pool: p}}",
                "clients: {a: {passwordHUSH: x, pool: p}}",
                "clients: {a: {token: &HUSH x, pool: p}}",
                "clients: {a: {token: 'HUSH\n",
                "clients: {a: {pool: HUSH, certificate: HUSH}}",
                "clients: {'HUSH ': x}",
                "clients: {a: HUSH}",
                "clients: HUSH",
                "clients:\n  a:\n    password: HUSH\n  pool: x\n",
                "clients:\n  a:\n\tpassword: HUSH\n",
                "HUSH",
                "HUSH: x",
                "tls: {key: HUSH}",
                "listen: HUSH",
                "limits: {time: HUSH}",
        };
        struct rest_conf *c = NULL;

        for (size_t i = 0; i < ELEMENTS(places); i++) {
                ck_assert_int_eq(rest_conf_parse(arena, "rest.yaml", places[i], strlen(places[i]), &findings, &c), -EBADMSG);
                ck_assert_uint_gt(findings.n, 0);
        }
        for (size_t i = 0; i < findings.n; i++) {
                const char *text = finding_format(arena, &findings.items[i]);

                ck_assert_msg(strstr(text, "HUSH") == NULL, "%s", text);
        }
}
END_TEST

/* Base64 of NAME:PASSWORD, as `base64` prints it. */
static const struct {
        const char *authorization, *certificate, *client; /* client NULL: refused */
        enum rest_prefix prefix;
} credentials[] = {
        { "Basic YWRtaW46ZXhhbXBsZQ==", NULL, "admin", REST_PREFIX_PASSWORD },
        { "basic  YWRtaW46ZXhhbXBsZQ==", NULL, "admin", REST_PREFIX_PASSWORD },
        { "Basic azhzOnMzY3JldDp3aXRoOmNvbG9ucw==", NULL, "k8s", REST_PREFIX_PASSWORD },
        { "Basic k8s.secret", NULL, "k8s", REST_PREFIX_TOKEN },
        { NULL, "CN=nico,O=x", "nico", REST_PREFIX_PASSWORD },
        /* NICo sends an empty header beside its certificate (crates/ib-fabric/src/ib/ufmclient/rest.rs) */
        { "", "CN=nico,O=x", "nico", REST_PREFIX_PASSWORD },
        { NULL, NULL, NULL, REST_PREFIX_PASSWORD },
        { NULL, "CN=nico", NULL, REST_PREFIX_PASSWORD },
        { NULL, "CN=nico,O=x", NULL, REST_PREFIX_TOKEN },
        { "Basic YWRtaW46ZXhhbXBsZQ==", "CN=nico,O=x", NULL, REST_PREFIX_TOKEN },
        { "Basic YWRtaW46ZXhhbXBsZQ==", NULL, NULL, REST_PREFIX_KERBEROS },
        { "Basic YWRtaW46ZXhhbXBsZQ==", NULL, NULL, REST_PREFIX_NONE },
        { "Basic YWRtaW46ZXhhbXBsZQ=", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic YWRtaW46ZXhhbXBsZQ", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic YWRtaW46ZXhhbXBs====", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic YWRtaW46Z=hhbXBsZQ==", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic YWRtaW46*XhhbXBsZQ==", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic YWRtaW46ZXhhbXBsZQA=", NULL, NULL, REST_PREFIX_PASSWORD }, /* example and a NUL */
        { "Basic YWRtaW46ZXhhbXBsZTI=", NULL, NULL, REST_PREFIX_PASSWORD }, /* admin:example2 */
        { "Basic YWRtaW46d3JvbmcxNQ==", NULL, NULL, REST_PREFIX_PASSWORD }, /* admin:wrong15, whose hash begins like that of example */
        { "Basic YWRtaW46d3JvbmcyNQ==", NULL, NULL, REST_PREFIX_PASSWORD }, /* admin:wrong25, whose hash ends like that of example */
        { "Basic YWRtaW5pOmV4YW1wbGU=", NULL, NULL, REST_PREFIX_PASSWORD }, /* admini:example */
        { "Basic YWRtaTpleGFtcGxl", NULL, NULL, REST_PREFIX_PASSWORD },     /* admi:example */
        { "Basic OmV4YW1wbGU=", NULL, NULL, REST_PREFIX_PASSWORD },         /* :example */
        { "Basic YWRtaW4=", NULL, NULL, REST_PREFIX_PASSWORD },             /* admin */
        { "Basic bmljbzpleGFtcGxl", NULL, NULL, REST_PREFIX_PASSWORD },     /* nico:example, who has no password */
        { "Basic ", NULL, NULL, REST_PREFIX_PASSWORD },
        { "Bearer k8s.secret", NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic k8s.secre", NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic k8s.secret ", NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic k8s", NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic admin.secret", NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic ", NULL, NULL, REST_PREFIX_TOKEN },
        { NULL, NULL, NULL, REST_PREFIX_TOKEN },
};

START_TEST(authenticating)
{
        const struct rest_conf *c = accept(whole);
        const struct rest_client *client = NULL;
        int r = rest_authenticate(c, credentials[_i].prefix, credentials[_i].authorization, credentials[_i].certificate, &client);

        ck_assert_int_eq(r, credentials[_i].client ? 0 : -EACCES);
        if (credentials[_i].client)
                ck_assert_str_eq(client->name, credentials[_i].client);
        else
                ck_assert_ptr_null(client);
}
END_TEST

/* What is counted as a failure of whom; and none where no hash is made. */
static const struct {
        const char *authorization, *name; /* name NULL: none */
        enum rest_prefix prefix;
} names[] = {
        { "Basic YWRtaW46ZXhhbXBsZQ==", "admin", REST_PREFIX_PASSWORD },
        { "basic  YWRtaW46ZXhhbXBsZTI=", "admin", REST_PREFIX_PASSWORD },
        { "Basic OmV4YW1wbGU=", "", REST_PREFIX_PASSWORD },
        { "Basic YWRtaW4=", NULL, REST_PREFIX_PASSWORD },
        { "Basic k8s.secret", NULL, REST_PREFIX_PASSWORD },
        { "Basic ", NULL, REST_PREFIX_PASSWORD },
        { "Bearer YWRtaW46ZXhhbXBsZQ==", NULL, REST_PREFIX_PASSWORD },
        { "", NULL, REST_PREFIX_PASSWORD },
        { NULL, NULL, REST_PREFIX_PASSWORD },
        { "Basic k8s.secret.x", "k8s", REST_PREFIX_TOKEN },
        { "Basic k8s", NULL, REST_PREFIX_TOKEN },
        { "Basic YWRtaW46ZXhhbXBsZQ==", NULL, REST_PREFIX_TOKEN },
        { NULL, NULL, REST_PREFIX_TOKEN },
        { "Basic YWRtaW46ZXhhbXBsZQ==", NULL, REST_PREFIX_KERBEROS },
};

START_TEST(credential_names)
{
        char name[REST_CREDENTIAL_SIZE];
        size_t n = 77;

        memset(name, 'x', sizeof(name));
        ck_assert(rest_credential_name(names[_i].prefix, names[_i].authorization, name, &n) == (names[_i].name != NULL));
        ck_assert_uint_eq(n, names[_i].name ? strlen(names[_i].name) : 0);
        ck_assert_str_eq(name, names[_i].name ?: "");
        for (size_t i = n; i < sizeof(name); i++) /* the secret is gone */
                ck_assert_int_eq(name[i], '\0');
}
END_TEST

START_TEST(long_credentials)
{
        const struct rest_conf *c = accept(whole);
        const struct rest_client *client = NULL;
        char header[8192] = "Basic k8s.";

        memset(header + 10, 'A', sizeof(header) - 11);
        ck_assert_int_eq(rest_authenticate(c, REST_PREFIX_TOKEN, header, NULL, &client), -EACCES);
        ck_assert(!rest_credential_name(REST_PREFIX_TOKEN, header, (char[REST_CREDENTIAL_SIZE]) {}, &(size_t) { 0 }));
        for (size_t n = 6 + 680; n < 6 + 700; n++) {
                header[n] = '\0';
                ck_assert_int_eq(rest_authenticate(c, REST_PREFIX_PASSWORD, header, NULL, &client), -EACCES);
                header[n] = 'A';
        }
        ck_assert_int_eq(rest_authenticate(accept("clients: {}\n"), REST_PREFIX_PASSWORD, "Basic YTpi", NULL, &client), -EACCES);
}
END_TEST

/* Each allocation fails in turn: the result is -ENOMEM, or the same as with enough memory. */
START_TEST(no_memory)
{
        static struct fail_alloc_state state;
        unsigned n = 0;

        fail_alloc_use(&state);
        for (bool failed = true; failed; n++) {
                const struct rest_client *client = NULL;
                struct rest_conf *c = NULL;
                int r;

                fail_alloc_at(n + 1);
                fail_alloc_enter();
                r = rest_conf_parse(arena, "rest.yaml", whole, sizeof(whole) - 1, &findings, &c);
                if (r == 0)
                        r = rest_authenticate(c, REST_PREFIX_TOKEN, "Basic k8s.secret", NULL, &client);
                fail_alloc_leave();
                failed = fail_alloc_happened();
                fail_alloc_at(0);
                ck_assert(failed ? r == -ENOMEM : r == 0 && client == &c->clients[1]);
        }
        ck_assert_uint_gt(n, 30);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("rest_conf");
        TCase *t = tcase_create("rest_conf");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, all_keys);
        tcase_add_test(t, defaults);
        tcase_add_test(t, example);
        tcase_add_loop_test(t, refusing, 0, ELEMENTS(refused));
        tcase_add_test(t, no_secret_is_shown);
        tcase_add_loop_test(t, authenticating, 0, ELEMENTS(credentials));
        tcase_add_loop_test(t, credential_names, 0, ELEMENTS(names));
        tcase_add_test(t, long_credentials);
        tcase_add_test(t, no_memory);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
