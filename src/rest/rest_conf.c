/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rest/rest_conf.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "util/duration.h"
#include "util/nearest.h"
#include "util/scan.h"
#include "util/text.h"
#include "util/yaml_tree.h"

struct reader {
        struct report report;
        struct yaml_tree tree;
        struct rest_conf *conf;
};

/* --- texts ----------------------------------------------------------------------------------------------------------- */

/* A kind of text, and what it accepts. */
struct kind {
        bool (*fits)(const char *text);
        const char *accepted;
};

static bool is_name(const char *text)
{
        return text_has_only(text, 64, TEXT_LETTERS_AND_DIGITS "_-");
}

/* A client's name has no dot, because that ends it in a token; a pool's may. */
static bool is_pool(const char *text)
{
        return text_has_only(text, 64, TEXT_LETTERS_AND_DIGITS "_-.") && isalnum((unsigned char) *text);
}

static bool is_subject(const char *text)
{
        return text_is_printable(text, 4095);
}

/* $y$parameters$salt$hash */
static bool is_hash(const char *text)
{
        size_t n = strlen(text), n_parts = 0;

        for (size_t i = 0; i < n; i++)
                n_parts += text[i] == '$';
        return text_has_only(text, 383, TEXT_LETTERS_AND_DIGITS "./$") && strncmp(text, "$y$", 3) == 0 && n_parts == 4 &&
               text[n - 1] != '$';
}

size_t rest_conf_parse_address(const char *text, struct sockaddr_storage *ret)
{
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) ret;
        struct sockaddr_in *v4 = (struct sockaddr_in *) ret;
        char host[INET6_ADDRSTRLEN + 2] = "";
        const char *colon = strrchr(text, ':');
        size_t n = colon ? (size_t) (colon - text) : sizeof(host);
        struct scan port = { colon ? colon + 1 : text, text + strlen(text) };
        uint64_t number;

        *ret = (struct sockaddr_storage) {};
        if (n >= sizeof(host) || !scan_number(&port, 10, 65535, &number) || port.p != port.end || number == 0)
                return 0;
        memcpy(host, text, n);
        if (host[0] != '[' || host[n - 1] != ']') {
                *v4 = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htobe16((uint16_t) number) };
                return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? sizeof(*v4) : 0;
        }
        host[n - 1] = '\0';
        *v6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = htobe16((uint16_t) number) };
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? sizeof(*v6) : 0;
}

static bool is_address(const char *text)
{
        struct sockaddr_storage address;

        return rest_conf_parse_address(text, &address) > 0;
}

static const struct kind a_path = { text_is_path, "an absolute path" };
static const struct kind a_hash = { is_hash, "a yescrypt hash, as `mkpasswd -m yescrypt` prints it" };
static const struct kind a_subject = { is_subject, "the subject of a certificate, as in CN=ib-kubernetes" };
static const struct kind a_pool = { is_pool, "the name of a pool of partitions.yaml" };
static const struct kind an_address = { is_address, "an address and a port, as in 127.0.0.1:8080 or [::]:443" };

/* --- keys ------------------------------------------------------------------------------------------------------------ */

static void refuse(struct reader *r, const struct yaml_tree_node *node, const char *path, const char *accepted)
{
        yaml_tree_error(&r->tree, node, FINDING_VALUE_INVALID, "%s: the value (not shown) is not accepted (accepted: %s)", path,
                        accepted);
}

/* The path of a key in the map `in`; "": the top of the file. */
static const char *path_of(struct reader *r, const char *in, const char *key)
{
        return report_text(&r->report, "%s%s%s", in, *in ? "." : "", key);
}

/* The text of a scalar of this kind; NULL: it is none, which is reported. */
static const char *read_text(struct reader *r, const struct yaml_tree_node *node, const char *path, const struct kind *kind)
{
        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, path))
                return NULL;
        if (!yaml_tree_is_null(node) && kind->fits(node->text))
                return node->text;
        refuse(r, node, path, kind->accepted);
        return NULL;
}

/* The text of a key; NULL: it is absent, or refused. */
static const char *get_text(struct reader *r, const struct yaml_tree_node *map, const char *in, const char *key,
                            const struct kind *kind)
{
        const struct yaml_tree_node *node = yaml_tree_get(map, key);

        return node ? read_text(r, node, path_of(r, in, key), kind) : NULL;
}

/* Reports keys that are none of these. The key is not shown: with a lost colon it has a value in it. */
static void check_keys(struct reader *r, const struct yaml_tree_node *map, const char *in, const char *const *keys, size_t n)
{
        for (const struct yaml_tree_node *c = map ? map->children : NULL; c; c = c->next) {
                const char *near = nearest_word(c->key->text, keys, n);

                if (text_is_one_of(c->key->text, keys, n))
                        continue;
                yaml_tree_error(&r->tree, c->key, FINDING_KEY_UNKNOWN, "%s%sthis key is unknown (accepted: %s)", in,
                                *in ? ": " : "", report_list(&r->report, keys, n));
                if (near)
                        report_hint(&r->report, "did you mean '%s'?", near);
        }
}

/* A map at the top of the file, with these keys; NULL: it is absent, or refused. */
static const struct yaml_tree_node *get_map(struct reader *r, const char *key, const char *const *keys, size_t n)
{
        const struct yaml_tree_node *map = yaml_tree_get(r->tree.root, key);

        if (!map || !yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, key))
                return NULL;
        if (n > 0)
                check_keys(r, map, key, keys, n);
        return map;
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

static int read_listen(struct reader *r)
{
        const struct yaml_tree_node *node = yaml_tree_get(r->tree.root, "listen");
        struct rest_conf *c = r->conf;

        if (!node)
                return 0;
        c->listen = arena_new_array(r->tree.arena, const char *, REST_CONF_MAX_LISTEN);
        if (!c->listen)
                return -ENOMEM;
        YAML_TREE_FOR_EACH(n, node) {
                const char *text = read_text(r, n, "listen", &an_address);

                if (text && c->n_listen < REST_CONF_MAX_LISTEN)
                        c->listen[c->n_listen++] = text;
                else if (text)
                        refuse(r, n, "listen", report_text(&r->report, "at most %d addresses", REST_CONF_MAX_LISTEN));
        }
        return 0;
}

static void read_tls(struct reader *r)
{
        static const char *const keys[] = { "certificate", "key", "client_ca" };
        const struct yaml_tree_node *map = get_map(r, "tls", keys, ELEMENTS(keys));
        struct rest_conf *c = r->conf;

        if (!map)
                return;
        c->tls_certificate = get_text(r, map, "tls", "certificate", &a_path);
        c->tls_key = get_text(r, map, "tls", "key", &a_path);
        c->tls_client_ca = get_text(r, map, "tls", "client_ca", &a_path);
        for (size_t i = 0; i < 2; i++)
                if (!yaml_tree_get(map, keys[i]))
                        yaml_tree_error(&r->tree, map, FINDING_KEY_MISSING, "the key 'tls.%s' is missing", keys[i]);
}

static void check_client(struct reader *r, const struct yaml_tree_node *map, const char *path, const struct rest_client *c)
{
        if (!yaml_tree_get(map, "pool"))
                yaml_tree_error(&r->tree, map, FINDING_KEY_MISSING, "the key '%s.pool' is missing", path);
        if (!yaml_tree_get(map, "password") && !yaml_tree_get(map, "token") && !yaml_tree_get(map, "certificate"))
                yaml_tree_error(&r->tree, map, FINDING_KEY_MISSING,
                                "%s: has no credential (accepted: one or more of password, token, certificate)", path);
        if (!c->certificate)
                return;
        if (!yaml_tree_get(yaml_tree_get(r->tree.root, "tls"), "client_ca"))
                yaml_tree_error(&r->tree, map, FINDING_KEY_MISSING,
                                "the key 'tls.client_ca' is missing: %s.certificate requires it", path);
        for (size_t i = 0; i < r->conf->n_clients; i++)
                if (r->conf->clients[i].certificate && strcmp(r->conf->clients[i].certificate, c->certificate) == 0)
                        refuse(r, yaml_tree_get(map, "certificate"), path_of(r, path, "certificate"),
                               "a subject that no other client has");
}

static void read_client(struct reader *r, const struct yaml_tree_node *map)
{
        static const char *const keys[] = { "password", "token", "certificate", "pool" };
        const char *path = path_of(r, "clients", map->key->text);
        struct rest_client c = { .name = map->key->text };

        if (!is_name(c.name)) {
                refuse(r, map->key, "clients", "names with 1 to 64 letters, digits, _ and -");
                return;
        }
        if (!yaml_tree_expect(&r->tree, map, YAML_TREE_MAP, path))
                return;
        check_keys(r, map, path, keys, ELEMENTS(keys));
        c.password = get_text(r, map, path, "password", &a_hash);
        c.token = get_text(r, map, path, "token", &a_hash);
        c.certificate = get_text(r, map, path, "certificate", &a_subject);
        c.pool = get_text(r, map, path, "pool", &a_pool);
        check_client(r, map, path, &c);
        r->conf->clients[r->conf->n_clients++] = c;
}

static int read_clients(struct reader *r)
{
        const struct yaml_tree_node *map = get_map(r, "clients", NULL, 0);

        if (!yaml_tree_get(r->tree.root, "clients"))
                report_add(&r->report, FINDING_ERROR, FINDING_KEY_MISSING, &(struct place) { .where.file = r->tree.source.file },
                           "the key 'clients' is missing");
        if (!map)
                return 0;
        if (map->n_children > REST_CONF_MAX_CLIENTS) {
                refuse(r, map, "clients", report_text(&r->report, "at most %d clients", REST_CONF_MAX_CLIENTS));
                return 0;
        }
        r->conf->clients = arena_new_array(r->tree.arena, struct rest_client, map->n_children);
        if (!r->conf->clients)
                return -ENOMEM;
        for (const struct yaml_tree_node *c = map->children; c; c = c->next)
                read_client(r, c);
        return 0;
}

static void read_number(struct reader *r, const struct yaml_tree_node *map, const char *key, uint64_t min, uint64_t max,
                        uint64_t *ret)
{
        const struct yaml_tree_node *node = yaml_tree_get(map, key);
        const char *path = path_of(r, "limits", key);
        struct scan s;
        uint64_t v;

        if (!node || !yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, path))
                return;
        s = (struct scan) { node->text, node->text + strlen(node->text) };
        if (!scan_number(&s, 10, max, &v) || s.p != s.end || v < min)
                refuse(r, node, path, report_text(&r->report, "%" PRIu64 " to %" PRIu64, min, max));
        else
                *ret = v;
}

static void read_limits(struct reader *r)
{
        static const char *const keys[] = { "requests", "body", "connections", "time" };
        const struct yaml_tree_node *map = get_map(r, "limits", keys, ELEMENTS(keys)), *time = yaml_tree_get(map, "time");
        struct rest_conf *c = r->conf;
        uint64_t v;

        read_number(r, map, "requests", 1, 100000, &c->max_requests);
        read_number(r, map, "body", 1024, REST_MAX_BODY, &c->max_body);
        read_number(r, map, "connections", 1, 10000, &c->max_connections);
        if (!time || !yaml_tree_expect(&r->tree, time, YAML_TREE_SCALAR, "limits.time"))
                return;
        if (duration_problem(time->text, &v) || v < USEC_PER_SEC || v > 3600 * USEC_PER_SEC)
                refuse(r, time, "limits.time", "1s to 1h");
        else
                c->max_time = v;
}

static int read_root(struct reader *r)
{
        static const char *const keys[] = { "listen", "tls", "clients", "limits" };
        int e;

        check_keys(r, r->tree.root, "", keys, ELEMENTS(keys));
        e = read_listen(r);
        if (e < 0)
                return e;
        read_tls(r);
        read_limits(r);
        return read_clients(r);
}

int rest_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                    struct rest_conf **ret)
{
        struct reader r = { .conf = arena_new_object(a, struct rest_conf) };
        char *file = arena_strdup(a, file_name);
        int e;

        report_init(&r.report, findings);
        if (!r.conf || !file)
                return -ENOMEM;
        *r.conf = (struct rest_conf) { .max_requests = 100, .max_body = REST_MAX_BODY, .max_connections = 64,
                                       .max_time = 10 * USEC_PER_SEC };
        e = yaml_tree_parse(&r.tree, a, file, bytes, n, NULL, &r.report);
        if (e == 0)
                e = read_root(&r);
        e = yaml_tree_finish(&r.tree, e);
        for (size_t i = 0; i < findings->n; i++) /* they are sorted among those of other files */
                if (findings->items[i].where.file && strcmp(findings->items[i].where.file, file) == 0)
                        findings->items[i].source_line = NULL;
        if (e == 0)
                *ret = r.conf;
        return e;
}
