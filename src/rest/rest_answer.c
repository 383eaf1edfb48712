/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bodies of responses. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "rest/rest_internal.h"

#define UFM_VERSION "6.19.0" /* of the UFM whose API this is */

/* --- the outcome of a change ------------------------------------------------------------------------------------------ */

int rest_answer(struct arena *a, const struct rest_change *change, enum rest_outcome outcome, const char *text,
                struct rest_response *ret)
{
        static const unsigned statuses[] = {
                [REST_STORED] = 200,   [REST_REFUSED] = 400,     [REST_NOT_FOUND] = 404,
                [REST_CONFLICT] = 409, [REST_UNAVAILABLE] = 503,
        };

        if (outcome != REST_STORED)
                return rest_refuse(a, statuses[outcome], text, ret);
        return rest_ok(a, json_pack("{s:o}", "pkey", json_sprintf("0x%x", change->base)), ret);
}

/* --- values ---------------------------------------------------------------------------------------------------------- */

/* Adds a member. Takes the value; NULL: out of memory. */
static bool put(json_t *object, const char *name, json_t *value)
{
        return json_object_set_new(object, name, value) == 0;
}

static json_t *guid_text(struct guid guid)
{
        return json_sprintf("%016" PRIx64, guid.v);
}

/* Names are printable ASCII in pkeyd. If one is not, the response is valid JSON nevertheless. */
static json_t *name_text(struct arena *a, const char *name)
{
        const char *text = arena_printable(a, name, strlen(name));

        return text ? json_string(text) : NULL;
}

static json_t *qos_value(struct rest_qos qos)
{
        bool is_set = qos.mtu_limit > 0;
        unsigned rate = is_set ? qos.rate_limit : REST_DEFAULT_RATE_LIMIT;

        return json_pack("{s:i, s:i, s:o}", "mtu_limit", is_set ? qos.mtu_limit : REST_DEFAULT_MTU_LIMIT,
                         "service_level", is_set ? qos.service_level : 0, "rate_limit",
                         rate % 10 > 0 ? json_real(rate / 10.0) : json_integer(rate / 10));
}

/* The value of a name in the query, up to the next "&"; NULL: it is not there. Other names are ignored. */
static const char *query_value(const struct rest_exchange *x, const char *name)
{
        size_t length = strlen(name);

        for (const char *p = x->query; *p; p += strcspn(p, "&"), p += *p == '&')
                if (strncmp(p, name, length) == 0 && p[length] == '=')
                        return p + length + 1;
        return NULL;
}

static bool value_is(const char *value, const char *word)
{
        size_t n = strlen(word);

        return value && strncasecmp(value, word, n) == 0 && (value[n] == '&' || value[n] == '\0');
}

/* UFM's name of a state. */
static DEFINE_WORDS(logical_state, enum port_state, "Unknown", [PORT_STATE_DOWN] = "Down", [PORT_STATE_INIT] = "Initialize",
                    [PORT_STATE_ARMED] = "Armed", [PORT_STATE_ACTIVE] = "Active")

static json_t *port_value(struct arena *a, const struct rest_port *p)
{
        return json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:s, s:s}", "guid", guid_text(p->guid),
                         "name", json_sprintf("%016" PRIx64 "_%u", p->guid.v, p->number), "systemID", guid_text(p->node),
                         "lid", p->lid.v, "number", p->number, "dname", json_sprintf("%u", p->number),
                         "system_name", name_text(a, p->node_name),
                         "physical_state", p->state >= PORT_STATE_INIT ? "Link Up" : "Down",
                         "logical_state", logical_state(p->state));
}

/* NULL: it is not in the fabric. */
static const struct rest_port *find_port(const struct rest_view *v, struct guid guid)
{
        uint32_t i = LOWER_BOUND(p, v->ports, v->n_ports, p->guid.v < guid.v);

        return i < v->n_ports && v->ports[i].guid.v == guid.v ? &v->ports[i] : NULL;
}

bool rest_wants_members(const struct rest_exchange *x)
{
        return value_is(query_value(x, "guids_data"), "true");
}

bool rest_wants_ports(const struct rest_exchange *x)
{
        return value_is(query_value(x, "port_info"), "true");
}

static json_t *member_value(const struct rest_exchange *x, const struct rest_member *m)
{
        const struct rest_port *port = rest_wants_ports(x) ? find_port(x->view, m->guid) : NULL;
        _cleanup_json_ json_t *j = json_pack("{s:o, s:b, s:s}", "guid", guid_text(m->guid), "index0", m->index0, "membership",
                                             membership_to_string(m->membership));

        return !j || (port && !put(j, "port_info", port_value(x->arena, port))) ? NULL : STEAL(j);
}

static json_t *partition_value(const struct rest_exchange *x, const struct rest_partition *p)
{
        enum membership membership = x->view->default_membership;
        _cleanup_json_ json_t *j = json_object();
        bool ok = put(j, "partition", p->name ? name_text(x->arena, p->name) : json_sprintf("api_pkey_0x%x", p->base)) &&
                  put(j, "ip_over_ib", json_boolean(p->ip_over_ib));

        if (ok && rest_wants_members(x))
                ok = put(j, "guids", JSON_ARRAY(i, p->n_members, member_value(x, &p->members[i])));
        if (ok && rest_wants_members(x) && p->base == P_KEY_DEFAULT_BASE && membership != MEMBERSHIP_NONE)
                ok = put(j, "membership", json_string(membership_to_string(membership)));
        if (ok && value_is(query_value(x, "qos_conf"), "true"))
                ok = put(j, "qos_conf", qos_value(p->qos));
        return ok ? STEAL(j) : NULL;
}

/* --- routes ---------------------------------------------------------------------------------------------------------- */

int rest_get_version(struct rest_exchange *x)
{
        return rest_ok(x->arena, json_pack("{s:s}", "ufm_release_version", UFM_VERSION), &x->reply->response);
}

int rest_get_last_updated(struct rest_exchange *x)
{
        const char *time = x->view->last_updated;

        return rest_ok(x->arena, json_pack("{s:o}", "last_updated", time ? name_text(x->arena, time) : json_null()),
                       &x->reply->response);
}

/* OpenSM's defaults, whatever the keys are: the door does not know them. */
int rest_get_sm_conf(struct rest_exchange *x)
{
        return rest_ok(x->arena,
                       json_pack("{s:s, s:s, s:s, s:s, s:b}", "subnet_prefix", "0xfe80000000000000", "m_key", "0x0000000000000000",
                                 "sm_key", "0x0000000000000001", "sa_key", "0x0000000000000001", "m_key_per_port", false),
                       &x->reply->response);
}

/* With sys_type=Computer ports of hosts, with another type the other ones, else all. */
int rest_get_ports(struct rest_exchange *x)
{
        const char *type = query_value(x, "sys_type");
        bool only_hosts = value_is(type, "Computer");
        const struct rest_port *ports = x->view->ports;
        json_t *list = JSON_ARRAY_IF(i, x->view->n_ports, !type || ports[i].is_computer == only_hosts,
                                     port_value(x->arena, &ports[i]));

        return rest_ok(x->arena, list, &x->reply->response);
}

/* Always in the list, because clients take {} for "not found". It is in no pool, so clients cannot change it. */
static const struct rest_partition default_partition = { .base = P_KEY_DEFAULT_BASE, .name = "management", .ip_over_ib = true };

const struct rest_partition *rest_find_partition(const struct rest_view *v, uint16_t base)
{
        uint32_t i = LOWER_BOUND(p, v->partitions, v->n_partitions, p->base < base);

        if (i < v->n_partitions && v->partitions[i].base == base)
                return &v->partitions[i];
        return base == P_KEY_DEFAULT_BASE ? &default_partition : NULL;
}

static bool put_partition(const struct rest_exchange *x, json_t *all, const struct rest_partition *p)
{
        char p_key[sizeof("0x7fff")];

        (void) snprintf(p_key, sizeof(p_key), "0x%x", p->base & P_KEY_BASE_MASK);
        return put(all, p_key, partition_value(x, p));
}

int rest_get_partitions(struct rest_exchange *x)
{
        const struct rest_view *v = x->view;
        _cleanup_json_ json_t *all = json_object();

        for (uint32_t i = 0; i < v->n_partitions; i++)
                if (!v->partitions[i].is_hidden && !put_partition(x, all, &v->partitions[i]))
                        return -ENOMEM;
        if (!put_partition(x, all, &default_partition))
                return -ENOMEM;
        return rest_ok(x->arena, STEAL(all), &x->reply->response);
}

/* Clients take {} for "there is none". */
int rest_get_partition(struct rest_exchange *x)
{
        const struct rest_partition *p;
        uint16_t base;
        int r = rest_read_p_key(x, x->values[0], &base);

        if (r < 0)
                return r;
        p = rest_find_partition(x->view, base);
        return rest_ok(x->arena, p && !p->is_hidden ? partition_value(x, p) : json_object(), &x->reply->response);
}
