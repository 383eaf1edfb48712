/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/lease_messages.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

#define INTERFACE "org.pkeyd1.Leases"

#define PORT    "(ttyqsyy)"  /* port GUID, node GUID, port, LID, host, node type, state */
#define FINDING "(suusssss)" /* file, line, column, severity, code, text, hint, source line */

int lease_messages_call(const struct pkeyd_bus *b, const char *method, const char *argument, sd_bus_message **ret)
{
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(pkeyd_bus_get(b), &m, b->fabric->bus_name, b->fabric->bus_path, INTERFACE, method);

        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, 0);
        if (r >= 0 && argument)
                r = sd_bus_message_append(m, "s", argument);
        if (r < 0)
                return r;
        *ret = STEAL(m);
        return 0;
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
        int r = edit->what ? lease_messages_call(b, "EditWith", pool, &m) : lease_messages_call(b, "ReleaseWith", edit->id, &m);

        if (r >= 0 && edit->what)
                r = sd_bus_message_append(m, "ssq", edit->id, edit->what, edit->base);
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

DEFINE_COMPARE(member_compare, struct rest_member, ORDER(a->guid.v, b->guid.v))

static int set_members(struct arena *a, const struct seen_lease *seen, struct rest_lease *l)
{
        l->members = arena_new_array(a, struct rest_member, seen->members.n);
        if (!l->members)
                return -ENOMEM;
        for (size_t i = 0; i < seen->members.n; i++) {
                const struct seen_member *m = &seen->members.items[i];
                const char *host = rest_host_of_label(a, m->name);

                if (!host)
                        return -ENOMEM;
                l->members[l->n_members++] = (struct rest_member) {
                        .guid = m->port, .host = *host ? host : NULL,
                        .membership = p_key_is_full(m->key) ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED,
                };
        }
        SORT(l->members, l->n_members, member_compare);
        for (size_t i = 0; i < seen->index0.n; i++) {
                uint32_t k = LOWER_BOUND(m, l->members, l->n_members, m->guid.v < seen->index0.items[i].v);

                if (k < l->n_members && l->members[k].guid.v == seen->index0.items[i].v)
                        l->members[k].index0 = true;
        }
        return 0;
}

static int read_lease(struct arena *a, sd_bus_message *m, struct rest_lease *ret)
{
        struct seen_lease l = {};
        int r = bus_fields_read(a, m, &seen_lease_fields, &l, NULL);

        if (r < 0)
                return r;
        if (!l.id || !l.state || l.p_key == 0 || l.p_key > UINT16_MAX || l.mtu > UINT8_MAX || l.service_level > UINT8_MAX ||
            l.rate_limit > UINT16_MAX)
                return -EBADMSG;
        *ret = (struct rest_lease) {
                .id = l.id, .state = l.state, .base = (uint16_t) l.p_key, .updated = l.updated,
                .is_open = l.is_open, .is_kept = l.is_kept, .ip_over_ib = l.ip_over_ib,
                .qos = { (uint8_t) l.mtu, (uint8_t) l.service_level, (uint16_t) l.rate_limit },
        };
        return set_members(a, &l, ret);
}

int lease_messages_read_list(struct arena *a, sd_bus_message *m, struct rest_view *view)
{
        struct rest_lease *leases = NULL;
        size_t n = 0, allocated = 0;
        int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

        while (r >= 0 && (r = sd_bus_message_at_end(m, 0)) == 0) {
                if (VECTOR_GROW(a, leases, n, allocated) < 0)
                        return -ENOMEM;
                r = read_lease(a, m, &leases[n++]);
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

int lease_messages_read_default(struct arena *, sd_bus_message *m, struct rest_view *view)
{
        const char *word;
        int r = sd_bus_message_read(m, "s", &word);

        if (r >= 0) /* "": it is not known */
                (void) membership_from_string(word, &view->default_membership);
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
