/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/settings.h"

#include <errno.h>
#include <string.h>

#include "util/duration.h"
#include "util/nearest.h"
#include "util/text.h"
#include "util/yaml_tree.h"

#define MEMBER(name) offsetof(struct settings, name)
#define WORDS(...)                                                                                                     \
        .words = (const char *const[]) { __VA_ARGS__ }, .n_words = ELEMENTS(((const char *const[]) { __VA_ARGS__ }))
#define NAME_MAX_LENGTH 63
#define URL_MAX_LENGTH  255
#define MAX_ENDPOINTS   16

const struct settings_key settings_schema[] = {
        { "ca", SETTINGS_NAME, MEMBER(ca), 0, 0, "the name of a channel adapter, as in mlx5_0" },
        { "port", SETTINGS_NUMBER, MEMBER(port), 1, 254, "1 to 254" },
        { "mode", SETTINGS_WORD, MEMBER(mode), WORDS("enforce", "audit"), .standard = "enforce" },
        { "writer", SETTINGS_WORD, MEMBER(writer), WORDS("direct", "opensm"), .standard = "direct" },
        { "beside_opensm", SETTINGS_BOOL, MEMBER(beside_opensm), 0, 0, "true, false", .standard = "false" },
        { "role", SETTINGS_WORD, MEMBER(role), WORDS("always", "follow-sm"), .standard = "always" },
        { "identity", SETTINGS_WORD, MEMBER(identity), WORDS("off", "pin"), .standard = "off" },
        { "unmanaged", SETTINGS_WORD, MEMBER(unmanaged), WORDS("remove", "keep"), .standard = "remove" },
        { "enforcement", SETTINGS_WORD, MEMBER(enforcement), WORDS("both", "in", "out", "off"), .standard = "both" },
        { "enforcement_overflow", SETTINGS_WORD, MEMBER(enforcement_overflow), WORDS("refuse", "disable"), .standard = "refuse" },
        { "repair_index0", SETTINGS_BOOL, MEMBER(repair_index0), 0, 0, "true, false", .standard = "false" },
        { "sweep_interval", SETTINGS_DURATION, MEMBER(sweep_interval), USEC_PER_SEC, 24 * 3600 * USEC_PER_SEC,
          "1s to 24h", .standard = "60s" },
        { "absent_hold", SETTINGS_DURATION, MEMBER(absent_hold), 0, USEC_INFINITY, "0s or more, or forever", .standard = "15m" },
        { "timeout", SETTINGS_DURATION, MEMBER(timeout), 10 * USEC_PER_MSEC, 60 * USEC_PER_SEC, "10ms to 60s",
          .standard = "500ms" },
        { "window", SETTINGS_NUMBER, MEMBER(window), 1, 4096, "1 to 4096", .standard = "128" },
        { "m_key_file", SETTINGS_SECRET, MEMBER(m_key_file), 0, 0, "an absolute path, as in /etc/pkeyd/m_key" },
        { "sa_key_file", SETTINGS_SECRET, MEMBER(sa_key_file), 0, 0, "an absolute path, as in /etc/pkeyd/sa_key" },
        { "opensm", SETTINGS_MAP, .standard = "{}" },
        { "opensm.partitions_conf", SETTINGS_PATH, MEMBER(opensm_partitions_conf), 0, 0,
          "an absolute path, as in /etc/opensm/partitions.conf" },
        { "opensm.reload", SETTINGS_RELOAD, MEMBER(opensm_reload), 0, 0,
          "systemd:UNIT, as in systemd:opensm.service, pidfile:PATH, pid:NUMBER" },
        { "opensm.config", SETTINGS_PATH, MEMBER(opensm_config), 0, 0, "an absolute path, as in /etc/opensm/opensm.conf" },
        { "opensm.mirror", SETTINGS_PATH, MEMBER(opensm_mirror), 0, 0, "an absolute path, as in /etc/opensm/partitions.conf" },
        { "violations", SETTINGS_MAP, .standard = "{}" },
        { "violations.interval", SETTINGS_DURATION, MEMBER(violations_interval), USEC_PER_SEC, 24 * 3600 * USEC_PER_SEC,
          "1s to 24h", .standard = "60s" },
        { "violations.threshold", SETTINGS_NUMBER, MEMBER(violations_threshold), 1, 1000000000, "1 to 1000000000",
          .standard = "1" },
        { "violations.clear_saturated", SETTINGS_BOOL, MEMBER(violations_clear_saturated), 0, 0, "true, false",
          .standard = "false" },
        { "history", SETTINGS_MAP, .standard = "{}" },
        { "history.keep", SETTINGS_NUMBER, MEMBER(history_keep), 2, 10000, "2 to 10000", .standard = "200" },
        { "history.days", SETTINGS_NUMBER, MEMBER(history_days), 1, 36500, "1 to 36500", .standard = "365" },
        { "store", SETTINGS_WORD, MEMBER(store), WORDS("sqlite", "etcd"), .standard = "sqlite" },
        { "etcd", SETTINGS_MAP, .standard = "{}" },
        { "etcd.endpoints", SETTINGS_URLS, MEMBER(etcd_endpoints), 0, 0, "URLs, as in [https://head1:2379, https://head2:2379]" },
        { "etcd.ca_file", SETTINGS_PATH, MEMBER(etcd_ca_file), 0, 0, "an absolute path, as in /etc/pkeyd/etcd-ca.pem" },
        { "etcd.cert_file", SETTINGS_PATH, MEMBER(etcd_cert_file), 0, 0, "an absolute path, as in /etc/pkeyd/etcd.pem" },
        { "etcd.key_file", SETTINGS_SECRET, MEMBER(etcd_key_file), 0, 0, "an absolute path, as in /etc/pkeyd/etcd.key" },
        { "etcd.user", SETTINGS_NAME, MEMBER(etcd_user), 0, 0, "the name of a user of etcd, as in pkeyd" },
        { "etcd.password_file", SETTINGS_SECRET, MEMBER(etcd_password_file), 0, 0,
          "an absolute path, as in /etc/pkeyd/etcd-password" },
        { "etcd.lease", SETTINGS_DURATION, MEMBER(etcd_lease), 5 * USEC_PER_SEC, 120 * USEC_PER_SEC, "5s to 120s",
          .standard = "15s" },
        { "metrics", SETTINGS_MAP, .standard = "{}" },
        { "metrics.textfile", SETTINGS_PATH, MEMBER(metrics_textfile), 0, 0,
          "an absolute path, as in /var/lib/prometheus/node-exporter/pkeyd.prom" },
};
const size_t settings_n_keys = ELEMENTS(settings_schema);

struct reader {
        struct report report;
        struct yaml_tree tree;
        struct settings *settings;
};

static const char *accepted_values(struct reader *r, const struct settings_key *key)
{
        return key->words ? report_list(&r->report, key->words, key->n_words) : key->accepted;
}

static void refuse(struct reader *r, const struct yaml_tree_node *node, const struct settings_key *key, const char *problem)
{
        yaml_tree_error(&r->tree, node, FINDING_VALUE_INVALID, "%s: %s %s (accepted: %s)", key->name,
                        report_quote(&r->report, node->text), problem, accepted_values(r, key));
}

static void *member(struct reader *r, const struct settings_key *key)
{
        return (char *) r->settings + key->offset;
}

static void set_text(struct reader *r, const struct settings_key *key, const char *text)
{
        memcpy(member(r, key), &text, sizeof(text));
}

static void read_name(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        if (text_has_only(node->text, NAME_MAX_LENGTH, TEXT_LETTERS_AND_DIGITS "_-."))
                set_text(r, key, node->text);
        else
                refuse(r, node, key, "is not a name");
}

static bool is_file_path(const char *text)
{
        return text_is_path(text) && text[strlen(text) - 1] != '/';
}

static void read_path(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        if (is_file_path(node->text))
                set_text(r, key, node->text);
        else
                refuse(r, node, key, "is not the absolute path of a file");
}

/* 1 to 10 decimal digits. *ret_end: the text after them. */
static bool parse_number(const char *text, uint64_t *ret, const char **ret_end)
{
        size_t n = strspn(text, "0123456789");

        if (n == 0 || n > 10)
                return false;
        *ret = strtoull(text, NULL, 10);
        *ret_end = text + n;
        return true;
}

static void read_number(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        const char *end;
        uint64_t v;

        if (!parse_number(node->text, &v, &end) || *end)
                refuse(r, node, key, "is not a number");
        else if (v < key->min || v > key->max)
                refuse(r, node, key, "is out of range");
        else
                memcpy(member(r, key), &(unsigned) { (unsigned) v }, sizeof(unsigned));
}

static void read_duration(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        const char *problem;
        uint64_t v;

        if (key->max == USEC_INFINITY && strcmp(node->text, "forever") == 0) {
                memcpy(member(r, key), &key->max, sizeof(key->max));
                return;
        }
        problem = duration_problem(node->text, &v);
        if (problem) {
                refuse(r, node, key, problem);
                report_hint(&r->report, DURATION_HINT);
                return;
        }
        if (v < key->min || v > key->max)
                refuse(r, node, key, "is out of range");
        else
                memcpy(member(r, key), &v, sizeof(v));
}

static void read_word(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        unsigned i = (unsigned) text_find_word(node->text, key->words, key->n_words);
        const char *near;

        if (i < key->n_words) {
                memcpy(member(r, key), &i, sizeof(i));
                return;
        }
        near = nearest_word(node->text, key->words, key->n_words);
        refuse(r, node, key, "is not a known value");
        if (near)
                report_hint(&r->report, "did you mean '%s'?", near);
}

/* read_word() stores a word as its index in an unsigned int. */
_Static_assert(sizeof(enum settings_mode) == sizeof(unsigned) && sizeof(enum settings_unmanaged) == sizeof(unsigned) &&
                       sizeof(enum settings_enforcement) == sizeof(unsigned) &&
                       sizeof(enum settings_overflow) == sizeof(unsigned) && sizeof(enum settings_writer) == sizeof(unsigned) &&
                       sizeof(enum settings_role) == sizeof(unsigned) && sizeof(enum settings_identity) == sizeof(unsigned) &&
                       sizeof(enum settings_store) == sizeof(unsigned),
               "an enum of settings.h is no unsigned int");

/* No message shows the value: it may be the key itself, written here by mistake. */
static void read_secret(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        if (node->kind == YAML_TREE_SCALAR && text_is_path(node->text)) {
                set_text(r, key, node->text);
                return;
        }
        yaml_tree_error(&r->tree, node, FINDING_VALUE_INVALID, "%s: the value (not shown) is not the path of a file (accepted: %s)",
                        key->name, key->accepted);
        if (r->report.last)
                r->report.last->source_line = NULL;
        report_hint(&r->report, "write the key into a file that only root and the group pkeyd can read, and the path of that file here");
}

static const char *after_prefix(const char *text, const char *prefix)
{
        size_t n = strlen(prefix);

        return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* http(s)://HOST[:PORT] with HOST a name, an IPv4 address, or an IPv6 address in brackets. */
static bool is_endpoint(const char *url)
{
        const char *host = after_prefix(url, "https://") ?: after_prefix(url, "http://"), *end;
        bool is_ipv6 = host && *host == '[';
        size_t n = !host ? 0 : is_ipv6 ? strspn(host + 1, "0123456789abcdefABCDEF:.") : strspn(host, TEXT_LETTERS_AND_DIGITS "-.");
        uint64_t port;

        if (n == 0 || strlen(url) > URL_MAX_LENGTH || (is_ipv6 && host[1 + n] != ']'))
                return false;
        end = is_ipv6 ? host + n + 2 : host + n;
        return !*end || (*end == ':' && parse_number(end + 1, &port, &end) && !*end && port > 0 && port <= UINT16_MAX);
}

static bool read_url(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node, const char **ret)
{
        if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, key->name))
                return false;
        *ret = node->text;
        if (!is_endpoint(node->text))
                refuse(r, node, key, "is not http:// or https:// with a host and, if it is not 80 or 443, a port");
        return true;
}

static void read_urls(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        uint32_t n = node->kind == YAML_TREE_LIST ? node->n_children : 1, i = 0;
        const char **urls = arena_new_array(r->tree.arena, const char *, n);

        if (n == 0 || n > MAX_ENDPOINTS) {
                yaml_tree_error(&r->tree, node, FINDING_VALUE_INVALID, "%s: %u URLs (accepted: 1 to %d)", key->name, n,
                                MAX_ENDPOINTS);
                return;
        }
        YAML_TREE_FOR_EACH(item, node)
                if (urls && !read_url(r, key, item, &urls[i++]))
                        return;
        r->settings->etcd_endpoints = urls;
        r->settings->n_etcd_endpoints = urls ? n : 0;
}

static bool is_unit(const char *text)
{
        size_t n = strlen(text), suffix = strlen(".service");

        return text_has_only(text, 255, TEXT_LETTERS_AND_DIGITS "_-.@:\\") && n > suffix &&
               strcmp(text + n - suffix, ".service") == 0;
}

static void read_reload(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        const char *unit = after_prefix(node->text, "systemd:"), *path = after_prefix(node->text, "pidfile:");
        const char *number = after_prefix(node->text, "pid:"), *end;
        struct settings *s = r->settings;
        uint64_t pid;

        if (unit && is_unit(unit)) {
                s->opensm_reload = OPENSM_RELOAD_SYSTEMD;
                s->opensm_unit = unit;
        } else if (path && is_file_path(path)) {
                s->opensm_reload = OPENSM_RELOAD_PIDFILE;
                s->opensm_pidfile = path;
        } else if (number && parse_number(number, &pid, &end) && !*end && pid > 1 && pid <= INT32_MAX) {
                s->opensm_reload = OPENSM_RELOAD_PID;
                s->opensm_pid = (unsigned) pid;
        } else {
                refuse(r, node, key,
                       unit     ? "is not the name of a service"
                       : path   ? "is not the absolute path of a file"
                       : number ? "is not a process ID"
                                : "is not a way to reload OpenSM");
        }
}

static void read_bool(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        (void) yaml_tree_bool(&r->tree, node, key->name, member(r, key));
}

typedef void (*value_reader)(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node);

/* Every type except SETTINGS_MAP; the node is a scalar that is not null. */
static const value_reader readers[] = {
        [SETTINGS_NAME] = read_name, [SETTINGS_NUMBER] = read_number, [SETTINGS_DURATION] = read_duration,
        [SETTINGS_BOOL] = read_bool, [SETTINGS_WORD] = read_word,     [SETTINGS_SECRET] = read_secret,
        [SETTINGS_PATH] = read_path, [SETTINGS_RELOAD] = read_reload, [SETTINGS_URLS] = read_urls,
};

static void read_key(struct reader *r, const struct settings_key *key, const struct yaml_tree_node *node)
{
        if (key->type == SETTINGS_SECRET && node->kind != YAML_TREE_SCALAR)
                read_secret(r, key, node);
        else if (key->type == SETTINGS_URLS && node->kind == YAML_TREE_LIST)
                read_urls(r, key, node);
        else if (!yaml_tree_expect(&r->tree, node, YAML_TREE_SCALAR, key->name))
                return;
        else if (yaml_tree_is_null(node))
                yaml_tree_error(&r->tree, node, FINDING_VALUE_INVALID, "%s: has no value (accepted: %s)", key->name,
                                accepted_values(r, key));
        else
                readers[key->type](r, key, node);
}

/* The name of a key in the map `path` ("": the top of the file); NULL: the key belongs to another map. */
static const char *name_in(const struct settings_key *key, const char *path)
{
        const char *name = key->name;

        if (*path) {
                name = after_prefix(name, path);
                if (!name || *name++ != '.')
                        return NULL;
        }
        return strchr(name, '.') ? NULL : name;
}

/* Reads the keys of the map `path`, including those of maps in it. */
static void read_map(struct reader *r, const struct yaml_tree_node *map, const char *path)
{
        const char *names[ELEMENTS(settings_schema)];
        size_t n = 0;

        for (size_t i = 0; i < settings_n_keys; i++) {
                const struct settings_key *key = &settings_schema[i];
                const struct yaml_tree_node *node;

                names[n] = name_in(key, path);
                if (!names[n])
                        continue;
                node = yaml_tree_get(map, names[n++]);
                if (!node)
                        continue;
                if (key->type != SETTINGS_MAP)
                        read_key(r, key, node);
                else if (yaml_tree_expect(&r->tree, node, YAML_TREE_MAP, key->name))
                        read_map(r, node, key->name);
        }
        yaml_tree_check_keys(&r->tree, map, path, names, n);
}

static void report_missing(struct reader *r, const struct yaml_tree_node *at, const char *key, const char *cause,
                           const char *example)
{
        yaml_tree_error(&r->tree, at, FINDING_KEY_MISSING, "the key '%s' is missing: %s requires it", key, cause);
        report_hint(&r->report, "write it as in %s", example);
}

/* Keys that require or exclude each other. A key that is present but was refused is not reported as missing. */
static void check_writer(struct reader *r)
{
        const struct yaml_tree_node *writer = yaml_tree_get(r->tree.root, "writer");
        const struct yaml_tree_node *opensm = yaml_tree_get(r->tree.root, "opensm");

        if (r->settings->writer == WRITER_DIRECT || (opensm && opensm->kind != YAML_TREE_MAP))
                return;
        if (!yaml_tree_get(opensm, "partitions_conf"))
                report_missing(r, writer, "opensm.partitions_conf", "writer: opensm",
                               "opensm: {partitions_conf: /etc/opensm/partitions.conf, ...}");
        if (!yaml_tree_get(opensm, "reload"))
                report_missing(r, writer, "opensm.reload", "writer: opensm", "opensm: {reload: systemd:opensm.service, ...}");
        if (yaml_tree_get(opensm, "mirror"))
                yaml_tree_error(&r->tree, yaml_tree_get(opensm, "mirror"), FINDING_VALUE_INVALID,
                                "opensm.mirror: is accepted with writer: direct only; with writer: opensm pkeyd writes "
                                "opensm.partitions_conf");
}

/* Returns whether this is what follows the host in a URL: a port, or nothing. NULL: no. */
static bool follows_host(const char *text)
{
        return text && (*text == ':' || *text == '\0');
}

/* Without encryption the password could be read on the network, but not on this host's own. */
static bool is_private(const char *url)
{
        const char *host = after_prefix(url, "http://");

        return !host || follows_host(after_prefix(host, "localhost")) || follows_host(after_prefix(host, "[::1]")) ||
               (after_prefix(host, "127.") && follows_host(host + strspn(host, "0123456789.")));
}

static void check_password_is_private(struct reader *r, const struct yaml_tree_node *user)
{
        for (unsigned i = 0; i < r->settings->n_etcd_endpoints; i++)
                if (!is_private(r->settings->etcd_endpoints[i])) {
                        yaml_tree_error(&r->tree, user, FINDING_VALUE_INVALID,
                                        "etcd.user: the password would be sent to %s without encryption",
                                        r->settings->etcd_endpoints[i]);
                        report_hint(&r->report, "write https:// in etcd.endpoints, and etcd.ca_file");
                        return;
                }
}

static void require_etcd_key(struct reader *r, const struct yaml_tree_node *etcd, const char *name, const char *other)
{
        if (!yaml_tree_get(etcd, name) || yaml_tree_get(etcd, other))
                return;
        yaml_tree_error(&r->tree, yaml_tree_get(etcd, name), FINDING_KEY_MISSING,
                        "the key 'etcd.%s' is missing: etcd.%s requires it", other, name);
}

static void check_store(struct reader *r)
{
        const struct yaml_tree_node *store = yaml_tree_get(r->tree.root, "store");
        const struct yaml_tree_node *etcd = yaml_tree_get(r->tree.root, "etcd");

        if (etcd && etcd->kind != YAML_TREE_MAP)
                return;
        if (yaml_tree_get(etcd, "endpoints") && r->settings->store != STORE_ETCD) {
                yaml_tree_error(&r->tree, yaml_tree_get(etcd, "endpoints"), FINDING_VALUE_INVALID,
                                "etcd.endpoints: is accepted with store: etcd only");
                report_hint(&r->report, "write store: etcd as well, or remove etcd");
                return;
        }
        if (r->settings->store == STORE_ETCD && !yaml_tree_get(etcd, "endpoints"))
                report_missing(r, store, "etcd.endpoints", "store: etcd",
                               "etcd: {endpoints: [https://head1:2379, https://head2:2379], ...}");
        if (r->settings->store == STORE_ETCD && r->settings->role != ROLE_FOLLOW_SM) {
                yaml_tree_error(&r->tree, store, FINDING_VALUE_INVALID, "store: etcd is accepted with role: follow-sm only");
                report_hint(&r->report, "of the head nodes that share a store, the one with the master SM writes; see pkeyd-etcd(7)");
        }
        require_etcd_key(r, etcd, "cert_file", "key_file");
        require_etcd_key(r, etcd, "key_file", "cert_file");
        require_etcd_key(r, etcd, "user", "password_file");
        require_etcd_key(r, etcd, "password_file", "user");
        if (yaml_tree_get(etcd, "user"))
                check_password_is_private(r, yaml_tree_get(etcd, "user"));
}

void settings_default(struct settings *ret)
{
        struct reader r = { .settings = ret };

        *ret = (struct settings) {};
        for (size_t i = 0; i < settings_n_keys; i++) {
                const struct settings_key *key = &settings_schema[i];
                const struct yaml_tree_node node = { .kind = YAML_TREE_SCALAR, .text = key->standard };

                if (key->standard && key->type != SETTINGS_MAP)
                        read_key(&r, key, &node);
        }
}

int settings_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                   struct settings **ret)
{
        struct reader r = { .settings = arena_new_object(a, struct settings) };
        char *file = arena_strdup(a, file_name);
        int e;

        report_init(&r.report, findings);
        if (!r.settings || !file)
                return -ENOMEM;
        settings_default(r.settings);
        e = yaml_tree_parse(&r.tree, a, file, bytes, n, NULL, &r.report);
        if (e == 0 && r.tree.root)
                read_map(&r, r.tree.root, "");
        if (e == 0) {
                check_writer(&r);
                check_store(&r);
        }
        e = yaml_tree_finish(&r.tree, e);
        if (e == 0)
                *ret = r.settings;
        return e;
}
