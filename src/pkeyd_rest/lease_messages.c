/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/lease_messages.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

#define INTERFACE "org.pkeyd1.Leases"

#define MEMBER  "(ttysqqs)"  /* port GUID, node GUID, port, label, index, P_Key, state */
#define PORT    "(ttyqsyy)"  /* port GUID, node GUID, port, LID, host, node type, state */
#define FINDING "(suusssss)" /* file, line, column, severity, code, text, hint, source line */

static int new_call(const struct pkeyd_bus *b, const char *member, sd_bus_message **ret)
{
        const struct fabric *fabric = pkeyd_bus_fabric(b);
        int r = sd_bus_message_new_method_call(pkeyd_bus_get(b), ret, fabric->bus_name, fabric->bus_path, INTERFACE, member);

        if (r >= 0)
                r = sd_bus_message_set_auto_start(*ret, 0);
        return r < 0 ? r : 0;
}

int lease_messages_list(const struct pkeyd_bus *b, const char *pool, sd_bus_message **ret)
{
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = new_call(b, "ListWhole", &m);

        if (r >= 0)
                r = sd_bus_message_append(m, "s", pool);
        if (r < 0)
                return r;
        *ret = STEAL(m);
        return 0;
}

int lease_messages_ports(const struct pkeyd_bus *b, sd_bus_message **ret)
{
        return new_call(b, "Ports", ret);
}

/* --- edits ------------------------------------------------------------------------------------------------------------ */

static int append_groups(sd_bus_message *m, const struct rest_edit *e)
{
        int r = sd_bus_message_open_container(m, 'a', "(ssb)");

        for (size_t i = 0; r >= 0 && i < e->n_groups; i++)
                r = sd_bus_message_append(m, "(ssb)", e->groups[i].selectors, membership_to_string(e->groups[i].membership),
                                          (int) e->groups[i].index0);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_options(sd_bus_message *m, const char *client, const struct rest_edit *e)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "Client", "s", client);
        if (r >= 0 && e->has_ip_over_ib)
                r = sd_bus_message_append(m, "{sv}", "IpOverIb", "b", (int) e->ip_over_ib);
        if (r >= 0 && e->has_keep)
                r = sd_bus_message_append(m, "{sv}", "Keep", "b", (int) e->keep);
        if (r >= 0 && e->must_exist)
                r = sd_bus_message_append(m, "{sv}", "Exists", "b", 1);
        if (r >= 0 && e->qos.mtu_limit > 0)
                r = sd_bus_message_append(m, "{sv}{sv}{sv}", "Mtu", "y", e->qos.mtu_limit, "ServiceLevel", "y", e->qos.service_level,
                                          "RateLimit", "q", e->qos.rate_limit);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int lease_messages_edit(const struct pkeyd_bus *b, const char *pool, const char *client, const struct rest_edit *edit,
                        sd_bus_message **ret)
{
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = new_call(b, edit->what ? "EditWith" : "ReleaseWith", &m);

        if (r >= 0 && edit->what)
                r = sd_bus_message_append(m, "sssq", pool, edit->id, edit->what, edit->base);
        else if (r >= 0)
                r = sd_bus_message_append(m, "s", edit->id);
        if (r >= 0 && edit->what)
                r = append_groups(m, edit);
        if (r >= 0)
                r = append_options(m, client, edit);
        if (r < 0)
                return r;
        *ret = STEAL(m);
        return 0;
}

/* --- leases ----------------------------------------------------------------------------------------------------------- */

/* A lease that is being read. */
struct reading {
        struct arena *arena;
        struct rest_lease lease;
        size_t allocated_members;
        struct guid *index0;
        size_t n_index0, allocated_index0;
};

static int read_member(struct reading *x, uint64_t guid, const char *label, uint16_t key)
{
        struct rest_lease *l = &x->lease;
        const char *host = rest_host_of_label(x->arena, label);

        if (!host || VECTOR_GROW(x->arena, l->members, l->n_members, x->allocated_members) < 0)
                return -ENOMEM;
        l->members[l->n_members++] = (struct rest_member) {
                .guid = { guid }, .host = *host ? host : NULL,
                .membership = p_key_is_full((struct p_key) { key }) ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED,
        };
        return 0;
}

static int read_members(struct reading *x, sd_bus_message *m)
{
        uint64_t port, node;
        const char *label, *state;
        uint16_t index, key;
        uint8_t number;
        int r = sd_bus_message_enter_container(m, 'a', MEMBER);

        while (r >= 0 && (r = sd_bus_message_read(m, MEMBER, &port, &node, &number, &label, &index, &key, &state)) > 0)
                r = read_member(x, port, label, key);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_index0(struct reading *x, sd_bus_message *m)
{
        uint64_t guid;
        int r = sd_bus_message_enter_container(m, 'a', "t");

        while (r >= 0 && (r = sd_bus_message_read(m, "t", &guid)) > 0) {
                if (VECTOR_GROW(x->arena, x->index0, x->n_index0, x->allocated_index0) < 0)
                        return -ENOMEM;
                x->index0[x->n_index0++].v = guid;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_text(struct reading *x, sd_bus_message *m, const char **ret)
{
        const char *text;
        int r = sd_bus_message_read(m, "s", &text);

        if (r < 0)
                return r;
        *ret = arena_strdup(x->arena, text);
        return *ret ? 0 : -ENOMEM;
}

static int read_bool(sd_bus_message *m, bool *ret)
{
        int value, r = sd_bus_message_read(m, "b", &value);

        if (r >= 0)
                *ret = value;
        return r;
}

/* The value of a key, which is of this type. Returns 0 for a key that does not matter. */
static int read_value(struct reading *x, sd_bus_message *m, const char *key, const char *type)
{
        struct rest_lease *l = &x->lease;
        const struct {
                const char *key, *type;
                void *value; /* of an array: NULL */
        } values[] = {
                { "Id", "s", &l->id }, { "State", "s", &l->state }, { "PKey", "q", &l->base }, { "Updated", "t", &l->updated },
                { "Open", "b", &l->is_open }, { "Keep", "b", &l->is_kept }, { "IpOverIb", "b", &l->ip_over_ib },
                { "Mtu", "y", &l->qos.mtu_limit }, { "ServiceLevel", "y", &l->qos.service_level },
                { "RateLimit", "q", &l->qos.rate_limit }, { "Members", "a" MEMBER, NULL }, { "Index0", "at", NULL },
        };
        size_t i = 0;

        while (i < ELEMENTS(values) && (strcmp(values[i].key, key) != 0 || strcmp(values[i].type, type) != 0))
                i++;
        if (i == ELEMENTS(values))
                return 0;
        if (!values[i].value)
                return (strcmp(type, "at") == 0 ? read_index0(x, m) : read_members(x, m)) ?: 1;
        if (*type == 's')
                return read_text(x, m, values[i].value) ?: 1;
        return (*type == 'b' ? read_bool(m, values[i].value) : sd_bus_message_read(m, type, values[i].value)) ?: 1;
}

static int read_entry(struct reading *x, sd_bus_message *m)
{
        const char *key, *type;
        int r = sd_bus_message_read(m, "s", &key);

        if (r >= 0)
                r = sd_bus_message_peek_type(m, NULL, &type);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'v', type);
        if (r >= 0)
                r = read_value(x, m, key, type);
        r = r ?: sd_bus_message_skip(m, type);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

DEFINE_COMPARE(member_compare, struct rest_member, ORDER(a->guid.v, b->guid.v))

static void mark_index0(struct reading *x)
{
        struct rest_lease *l = &x->lease;

        SORT(l->members, l->n_members, member_compare);
        for (size_t i = 0; i < x->n_index0; i++) {
                uint32_t k = LOWER_BOUND(m, l->members, l->n_members, m->guid.v < x->index0[i].v);

                if (k < l->n_members && l->members[k].guid.v == x->index0[i].v)
                        l->members[k].index0 = true;
        }
}

static int read_lease(struct arena *a, sd_bus_message *m, struct rest_lease *ret)
{
        struct reading x = { .arena = a };
        int r = 0;

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(&x, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        if (!x.lease.id || !x.lease.state || x.lease.base == 0)
                return -EBADMSG;
        mark_index0(&x);
        *ret = x.lease;
        return 0;
}

int lease_messages_read_list(struct arena *a, sd_bus_message *m, struct rest_view *view)
{
        struct rest_lease *leases = NULL;
        size_t n = 0, allocated = 0;
        int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'a', "{sv}")) > 0) {
                if (VECTOR_GROW(a, leases, n, allocated) < 0)
                        return -ENOMEM;
                r = read_lease(a, m, &leases[n]);
                n += r == 0;
        }
        return r < 0 ? r : rest_view_add_leases(a, leases, n, view);
}

/* --- ports ------------------------------------------------------------------------------------------------------------ */

int lease_messages_read_ports(struct arena *a, sd_bus_message *m, struct rest_view *view)
{
        struct rest_port *ports = NULL, p;
        size_t n = 0, allocated = 0;
        uint8_t type, state;
        int r = sd_bus_message_enter_container(m, 'a', PORT);

        while (r >= 0 && (r = sd_bus_message_read(m, PORT, &p.guid.v, &p.node.v, &p.number, &p.lid.v, &p.node_name, &type,
                                                  &state)) > 0) {
                if (VECTOR_GROW(a, ports, n, allocated) < 0)
                        return -ENOMEM;
                ports[n] = (struct rest_port) { .guid = p.guid, .node = p.node, .number = p.number, .lid = p.lid,
                                                .node_name = arena_strdup(a, p.node_name), .is_computer = type == NODE_CA,
                                                .state = (enum port_state) state };
                if (!ports[n++].node_name)
                        return -ENOMEM;
        }
        view->ports = ports;
        view->n_ports = (uint32_t) n;
        return r < 0 ? r : 0;
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

/* Keeps the first error. */
static int read_findings(struct arena *a, sd_bus_message *m, struct lease_messages_answer *ret)
{
        const char *file, *severity, *code, *text, *hint, *source;
        uint32_t line, column;
        int r = sd_bus_message_enter_container(m, 'a', FINDING);

        while (r >= 0 && (r = sd_bus_message_read(m, FINDING, &file, &line, &column, &severity, &code, &text, &hint,
                                                  &source)) > 0) {
                if (ret->code || strcmp(severity, "error") != 0)
                        continue;
                ret->code = arena_strdup(a, code);
                ret->text = arena_strdup(a, text);
                if (!ret->code || !ret->text)
                        return -ENOMEM;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int lease_messages_read_answer(struct arena *a, sd_bus_message *m, struct lease_messages_answer *ret)
{
        struct lease_messages_answer answer = {};
        const char *outcome, *text;
        int r = sd_bus_message_read(m, "ss", &outcome, &text);

        if (r < 0)
                return r;
        answer.outcome = arena_strdup(a, outcome);
        answer.text = arena_strdup(a, text);
        if (!answer.outcome || !answer.text)
                return -ENOMEM;
        r = sd_bus_message_skip(m, "a{sv}");
        if (r >= 0)
                r = read_findings(a, m, &answer);
        if (r < 0)
                return r;
        *ret = answer;
        return 0;
}
