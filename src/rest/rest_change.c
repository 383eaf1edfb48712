/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns the bodies and paths of requests into changes. */
#include <errno.h>
#include <string.h>

#include "ib/multicast.h"
#include "rest/rest_internal.h"
#include "util/vector.h"

/* --- bodies ---------------------------------------------------------------------------------------------------------- */

/* Reads the value of a key into the change. name: of the key. */
typedef int key_reader(struct rest_exchange *x, const json_t *j, const char *name);

static int read_pkey(struct rest_exchange *x, const json_t *j, const char *)
{
        if (!json_is_string(j))
                return rest_fail(x, 400, "pkey: is not a string (accepted: a string such as \"0x5\")");
        return rest_read_changed_p_key(x, json_string_value(j), &x->reply->change.base);
}

/* The elements are read at the end (read_members), because other keys of the body have their defaults. */
static int check_array(struct rest_exchange *x, const json_t *j, const char *name)
{
        return json_is_array(j) ? 0 : rest_fail(x, 400, "%s: is not an array (accepted: an array of strings)", name);
}

static int read_default_membership(struct rest_exchange *x, const json_t *j, const char *name)
{
        return rest_read_membership(x, j, name, &x->membership);
}

static int read_index0(struct rest_exchange *x, const json_t *j, const char *name)
{
        return rest_read_bool(x, j, name, &x->index0);
}

static int read_ip_over_ib(struct rest_exchange *x, const json_t *j, const char *name)
{
        x->reply->change.has_ip_over_ib = true;
        return rest_read_bool(x, j, name, &x->reply->change.ip_over_ib);
}

/* Not the globs of pkeyd's own hostlists, which could mean every host. */
static int set_hosts(struct rest_exchange *x, const char *text)
{
        if (!text || !text_has_only(text, REST_MAX_NODE_LIST, TEXT_LETTERS_AND_DIGITS "-_.,[]"))
                return rest_fail(x, 400, "hosts_names: is not a node list (accepted: a string of at most %u letters, digits and "
                                 "-_.,[], such as \"node[01-04]\")", REST_MAX_NODE_LIST);
        x->hosts = arena_strdup(x->arena, text);
        return x->hosts ? 0 : -ENOMEM;
}

static int read_hosts(struct rest_exchange *x, const json_t *j, const char *)
{
        return set_hosts(x, json_string_value(j));
}

static int read_mtu_limit(struct rest_exchange *x, const json_t *j, const char *)
{
        json_int_t v = json_integer_value(j);

        if (v != 2 && v != 4)
                return rest_fail(x, 400, "mtu_limit: is not an MTU in KiB (accepted: 2, 4)");
        x->has_qos = true;
        x->reply->change.qos.mtu_limit = (uint8_t) v;
        return 0;
}

static int read_service_level(struct rest_exchange *x, const json_t *j, const char *)
{
        json_int_t v = json_integer_value(j);

        if (!json_is_integer(j) || v < 0 || v > 15)
                return rest_fail(x, 400, "service_level: is not a service level (accepted: 0 to 15)");
        x->has_qos = true;
        x->reply->change.qos.service_level = (uint8_t) v;
        return 0;
}

static int read_rate_limit(struct rest_exchange *x, const json_t *j, const char *)
{
        double tenths = json_number_value(j) * 10;
        uint16_t whole = tenths > 0 && tenths <= UINT16_MAX ? (uint16_t) tenths : 0;

        if (whole == tenths && multicast_rate_code_of_tenths(whole) > 0) {
                x->has_qos = true;
                x->reply->change.qos.rate_limit = whole;
                return 0;
        }
        return rest_fail(x, 400, "rate_limit: is not a rate in Gb/s (accepted: 2.5, 5, 10, 14, 20, 25, 28, 30, 40, 50, 56, 60, 80, "
                         "100, 112, 120, 168, 200, 300, 400, 600, 800, 1200)");
}

struct key {
        const char *name;
        key_reader *read;
        bool is_required;
};

#define P_KEY       { "pkey", read_pkey, true }
#define GUIDS       { "guids", check_array, true }
#define MEMBERSHIP  { "membership", read_default_membership }
#define IP_OVER_IB  { "ip_over_ib", read_ip_over_ib }
#define INDEX0      { "index0", read_index0 }

static const struct key *find_key(const struct key *keys, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(keys[i].name, name) == 0)
                        return &keys[i];
        return NULL;
}

static int refuse_key(struct rest_exchange *x, const char *name, const struct key *keys, size_t n)
{
        _cleanup_text_ struct text t = {};

        for (size_t i = 0; i < n; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", keys[i].name);
        return rest_fail(x, 400, "unknown key %s (accepted: %s)", rest_quote(x, name), rest_text(x, &t));
}

/* Reads the keys of a body. */
static int read_keys(struct rest_exchange *x, json_t *body, const struct key *keys, size_t n)
{
        const char *name;
        json_t *value;
        int r;

        json_object_foreach(body, name, value)
                if (!find_key(keys, n, name))
                        return refuse_key(x, name, keys, n);
        for (size_t i = 0; i < n; i++) {
                value = json_object_get(body, keys[i].name);
                if (!value && keys[i].is_required)
                        return rest_fail(x, 400, "the key %s is missing", keys[i].name);
                r = value ? keys[i].read(x, value, keys[i].name) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the GUIDs of a body, each with its own membership if the body has some. */
static int read_members(struct rest_exchange *x, const json_t *body)
{
        const json_t *guids = json_object_get(body, "guids"), *memberships = json_object_get(body, "memberships");
        size_t n = json_array_size(guids);
        struct rest_member *members;
        int r = 0;

        if (n > REST_MAX_GUIDS)
                return rest_fail(x, 400, "guids: more than %u GUIDs in one request", REST_MAX_GUIDS);
        if (memberships && json_array_size(memberships) != n)
                return rest_fail(x, 400, "memberships: has %zu elements and guids has %zu (accepted: one for each GUID)",
                                 json_array_size(memberships), n);
        members = arena_new_array(x->arena, struct rest_member, n);
        if (!members)
                return -ENOMEM;
        for (size_t i = 0; i < n && r == 0; i++) {
                const char *text = json_string_value(json_array_get(guids, i)) ?: "";

                members[i] = (struct rest_member) { .membership = x->membership, .index0 = x->index0 };
                r = rest_read_guid(x, text, i, &members[i].guid);
                if (r == 0 && memberships)
                        r = rest_read_membership(x, json_array_get(memberships, i), "memberships", &members[i].membership);
        }
        return r < 0 ? r : rest_set_members(x, members, n);
}

/* The body becomes a change of this kind. */
static int read_change(struct rest_exchange *x, enum rest_kind kind, const struct key *keys, size_t n)
{
        const struct rest_request *q = x->request;
        json_error_t error;
        _cleanup_json_ json_t *body = json_loadb(q->body ?: "", q->body ? q->n_body : 0, JSON_REJECT_DUPLICATES, &error);
        int r;

        if (!body && !*error.text) /* not about the text: out of memory */
                return -ENOMEM;
        if (!body)
                return rest_fail(x, 400, "the body is not JSON: line %d, column %d (accepted: an object without duplicate keys)",
                                 error.line, error.column);
        if (!json_is_object(body))
                return rest_fail(x, 400, "the body is not an object");
        x->reply->change = (struct rest_change) { .kind = kind, .ip_over_ib = true };
        x->membership = MEMBERSHIP_FULL;
        r = read_keys(x, body, keys, n);
        if (r < 0)
                return r;
        return x->hosts ? rest_add_ports_of_hosts(x) : read_members(x, body);
}

/* --- routes with a body ---------------------------------------------------------------------------------------------- */

static const struct key member_keys[] = {
        P_KEY, GUIDS, MEMBERSHIP, { "memberships", check_array }, IP_OVER_IB, INDEX0,
};

int rest_add(struct rest_exchange *x)
{
        return read_change(x, REST_ADD, member_keys, ELEMENTS(member_keys));
}

int rest_replace(struct rest_exchange *x)
{
        return read_change(x, REST_REPLACE, member_keys, ELEMENTS(member_keys));
}

/* Adds UFM's defaults to a part of the QoS. */
static void complete_qos(struct rest_qos *qos)
{
        qos->mtu_limit = qos->mtu_limit ?: REST_DEFAULT_MTU_LIMIT;
        qos->rate_limit = qos->rate_limit ?: REST_DEFAULT_RATE_LIMIT;
}

int rest_create(struct rest_exchange *x)
{
        static const struct key keys[] = {
                P_KEY, IP_OVER_IB, INDEX0, { "mtu_limit", read_mtu_limit }, { "service_level", read_service_level },
                { "rate_limit", read_rate_limit },
        };
        int r = read_change(x, REST_CREATE, keys, ELEMENTS(keys));

        if (r == 0 && x->has_qos)
                complete_qos(&x->reply->change.qos);
        return r;
}

int rest_add_hosts(struct rest_exchange *x)
{
        static const struct key keys[] = { P_KEY, { "hosts_names", read_hosts, true }, MEMBERSHIP, IP_OVER_IB, INDEX0 };

        return read_change(x, REST_ADD, keys, ELEMENTS(keys));
}

int rest_set_qos(struct rest_exchange *x)
{
        static const struct key keys[] = { P_KEY, { "mtu_limit", read_mtu_limit, true },
                                           { "service_level", read_service_level, true }, { "rate_limit", read_rate_limit, true } };

        return read_change(x, REST_SET_QOS, keys, ELEMENTS(keys));
}

int rest_remove(struct rest_exchange *x)
{
        static const struct key keys[] = { P_KEY, GUIDS };

        return read_change(x, REST_REMOVE, keys, ELEMENTS(keys));
}

/* --- routes with a path only ----------------------------------------------------------------------------------------- */

/* Begins a change of the partition in the path. */
static int begin_change(struct rest_exchange *x, enum rest_kind kind)
{
        x->reply->change = (struct rest_change) { .kind = kind };
        return rest_read_changed_p_key(x, x->values[0], &x->reply->change.base);
}

int rest_delete(struct rest_exchange *x)
{
        return begin_change(x, REST_DELETE);
}

int rest_remove_hosts(struct rest_exchange *x)
{
        return begin_change(x, REST_REMOVE) ?: set_hosts(x, x->values[1]) ?: rest_remove_ports_of_hosts(x);
}

int rest_remove_guids(struct rest_exchange *x)
{
        char *guids = arena_strdup(x->arena, x->values[1]), *guid;
        struct rest_member *members = NULL;
        size_t n = 0, allocated = 0;
        int r = begin_change(x, REST_REMOVE);

        if (!guids)
                return -ENOMEM;
        while (r == 0 && (guid = strsep(&guids, ","))) {
                if (VECTOR_GROW(x->arena, members, n, allocated) < 0)
                        return -ENOMEM;
                members[n].membership = MEMBERSHIP_FULL;
                r = rest_read_guid(x, guid, n, &members[n].guid);
                n++;
        }
        return r < 0 ? r : rest_set_members(x, members, n);
}
