/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rest/rest.h"

#include <errno.h>
#include <string.h>

#include "rest/rest_internal.h"
#include "util/scan.h"

#define MAX_WORDS 5 /* of a path, after the prefix */

struct route {
        const char *pattern;
        const char *method;
        rest_handler *handler;
        unsigned needs; /* enum rest_needs */
};

#define EDITS      (REST_CHANGES | REST_NEEDS_PARTITIONS)
#define EDITS_HOST (EDITS | REST_NEEDS_PORTS)

/* A literal pattern comes before one with "*" in its place: the first that fits is the resource. */
static const struct route routes[] = {
        { "app/ufm_version", "GET", rest_get_version },
        { "app/smconf", "GET", rest_get_sm_conf },
        { "resources/ports", "GET", rest_get_ports, REST_NEEDS_PORTS },
        { "resources/pkeys", "GET", rest_get_partitions, REST_NEEDS_PARTITIONS },
        { "resources/pkeys", "POST", rest_add, EDITS },
        { "resources/pkeys", "PUT", rest_replace, EDITS },
        { "resources/pkeys/last_updated", "GET", rest_get_last_updated, REST_NEEDS_PARTITIONS },
        { "resources/pkeys/add", "POST", rest_create, EDITS },
        { "resources/pkeys/hosts", "POST", rest_add_hosts, EDITS_HOST },
        { "resources/pkeys/qos_conf", "PUT", rest_set_qos, EDITS },
        { "actions/remove_guids_from_pkey", "POST", rest_remove, EDITS },
        { "resources/pkeys/*", "GET", rest_get_partition, REST_NEEDS_PARTITIONS },
        { "resources/pkeys/*", "DELETE", rest_delete, EDITS },
        { "resources/pkeys/*/guids/*", "DELETE", rest_remove_guids, EDITS },
        { "resources/pkeys/*/hosts/*", "DELETE", rest_remove_hosts, EDITS_HOST },
};

/* Takes the prefix, a whole word of the path. */
static enum rest_prefix take_prefix(struct scan *s)
{
        static const char *const words[] = {
                [REST_PREFIX_PASSWORD] = "ufmRest", [REST_PREFIX_TOKEN] = "ufmRestV3", [REST_PREFIX_KERBEROS] = "ufmRestKrb",
        };

        if (!scan_char(s, '/'))
                return REST_PREFIX_NONE;
        for (size_t i = REST_PREFIX_PASSWORD; i < ELEMENTS(words); i++) {
                struct scan after = *s;

                if (scan_word(&after, words[i]) && (after.p == after.end || *after.p == '/')) {
                        *s = after;
                        return (enum rest_prefix) i;
                }
        }
        return REST_PREFIX_NONE;
}

/* The path of a target, without the query. */
static struct scan path_of(const char *target)
{
        return (struct scan) { target, target + strcspn(target, "?") };
}

enum rest_prefix rest_prefix_of(const char *target)
{
        struct scan path = path_of(target);

        return take_prefix(&path);
}

/* Decodes n bytes of a path. Text only: no control characters, NUL among them. *ret NULL: it is not well-formed. */
static int decode(struct arena *a, const char *p, size_t n, const char **ret)
{
        char *text = arena_new_array(a, char, n + 1);
        size_t length = 0;

        *ret = NULL;
        if (!text)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                unsigned c = (unsigned char) p[i];

                if (c == '%') {
                        if (n - i < 3 || digit_value(p[i + 1]) > 15 || digit_value(p[i + 2]) > 15)
                                return 0;
                        c = digit_value(p[i + 1]) * 16 + digit_value(p[i + 2]);
                        i += 2;
                }
                if (c < ' ' || c == 0x7f)
                        return 0;
                text[length++] = (char) c;
        }
        *ret = text;
        return 0;
}

/* Splits a path into its words; slashes at the end, and doubled ones, do not count. *ret_n is MAX_WORDS + 1 for a longer path. */
static int split(struct rest_exchange *x, struct scan path, const char *words[MAX_WORDS], size_t *ret_n)
{
        size_t n = 0;
        int r;

        while (path.p < path.end && n <= MAX_WORDS) {
                const char *slash = memchr(path.p, '/', (size_t) (path.end - path.p)) ?: path.end;

                if (slash > path.p && n++ < MAX_WORDS) {
                        r = decode(x->arena, path.p, (size_t) (slash - path.p), &words[n - 1]);
                        if (r < 0)
                                return r;
                        if (!words[n - 1])
                                return rest_fail(x, 400, "word %zu of the path has a control character, or a %% that no two "
                                                 "hexadecimal digits follow", n);
                }
                path.p = slash < path.end ? slash + 1 : slash;
        }
        *ret_n = n;
        return 0;
}

/* Returns whether the words are of this pattern; then the exchange has the values. */
static bool fits(struct rest_exchange *x, const char *pattern, const char *const *words, size_t n)
{
        size_t i = 0, n_values = 0;

        for (const char *p = pattern; *p; i++) {
                size_t length = strcspn(p, "/");

                if (i == n)
                        return false;
                if (*p == '*')
                        x->values[n_values++] = words[i];
                else if (strncmp(p, words[i], length) != 0 || words[i][length] != '\0')
                        return false;
                p += length + (p[length] == '/');
        }
        return i == n;
}

/* Answers with the methods of this pattern. */
static int refuse_method(struct rest_exchange *x, const char *pattern)
{
        _cleanup_text_ struct text t = {};
        const char *allow;
        int r;

        for (size_t i = 0; i < ELEMENTS(routes); i++)
                if (strcmp(routes[i].pattern, pattern) == 0)
                        text_add(&t, "%s%s", t.n > 0 ? ", " : "", routes[i].method);
        allow = rest_text(x, &t);
        r = rest_fail(x, 405, "the method is %s (accepted: %s)", rest_quote(x, x->request->method), allow);
        x->reply->response.allow = allow;
        return r;
}

static int match(struct rest_exchange *x, const char *const *words, size_t n, const struct route **ret)
{
        const char *pattern = NULL;

        for (size_t i = 0; i < ELEMENTS(routes); i++) {
                const struct route *route = &routes[i];

                if (pattern ? strcmp(pattern, route->pattern) != 0 : !fits(x, route->pattern, words, n))
                        continue;
                pattern = route->pattern;
                if (strcmp(route->method, x->request->method) == 0) {
                        *ret = route;
                        return 0;
                }
        }
        if (pattern)
                return refuse_method(x, pattern);
        return rest_fail(x, 404, "pkeyd does not serve this path: only the partition part of UFM's API is served");
}

/* The route of a request, and the values in its path. */
static int find_route(struct rest_exchange *x, const struct route **ret)
{
        const char *target = x->request->target, *words[MAX_WORDS] = {};
        struct scan path = path_of(target);
        enum rest_prefix prefix = take_prefix(&path);
        size_t n = 0;
        int r;

        if (strlen(target) > REST_MAX_TARGET)
                return rest_fail(x, 414, "the path is longer than %zu bytes", REST_MAX_TARGET);
        if (x->request->n_body > REST_MAX_BODY)
                return rest_fail(x, 413, "the body is longer than %zu bytes", REST_MAX_BODY);
        if (prefix == REST_PREFIX_NONE)
                return rest_fail(x, 404, "the path does not begin with /ufmRest or /ufmRestV3");
        if (prefix == REST_PREFIX_KERBEROS)
                return rest_fail(x, 401, "Kerberos is not served (accepted: /ufmRest with a password or a client certificate, "
                                 "/ufmRestV3 with a token)");
        x->query = *path.end ? path.end + 1 : "";
        r = split(x, path, words, &n);
        return r < 0 ? r : match(x, words, n, ret);
}

int rest_needs(struct arena *a, const struct rest_request *request, unsigned *ret)
{
        struct rest_reply refusal = {};
        struct rest_exchange x = { .arena = a, .request = request, .reply = &refusal };
        const struct route *route = NULL;
        int r = find_route(&x, &route);

        if (r == -ENOMEM)
                return r;
        *ret = r == 0 ? route->needs : REST_NEEDS_NOTHING;
        if (*ret == REST_NEEDS_PARTITIONS)
                *ret |= (rest_wants_members(&x) ? REST_NEEDS_DEFAULT : 0) | (rest_wants_ports(&x) ? REST_NEEDS_PORTS : 0);
        return 0;
}

int rest_handle(struct arena *a, const struct rest_request *request, const struct rest_view *view, struct rest_reply *ret)
{
        struct rest_exchange x = { .arena = a, .request = request, .view = view, .reply = ret };
        const struct route *route = NULL;
        int r;

        *ret = (struct rest_reply) {};
        r = find_route(&x, &route) ?: route->handler(&x);
        ret->is_change = r == 0 && route->needs & REST_CHANGES;
        return r == -EBADMSG ? 0 : r;
}
