/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_lease_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "pkeyd/bus_status.h"

#define BUS_LEASE_MEMBER "(ttysqqs)" /* port GUID, node GUID, port, name, index, P_Key, state */
#define CLIENT_MAX       64          /* characters of the name of a client of the REST API */

/* --- a lease as a dictionary ----------------------------------------------------------------------------------------- */

static const char *const member_states[] = {
        [LEASE_MEMBER_WAITS] = "waits", [LEASE_MEMBER_CONFIRMED] = "confirmed", [LEASE_MEMBER_EXPECTED] = "unseen",
        [LEASE_MEMBER_UNSEEN] = "unseen", [LEASE_MEMBER_LEFT_OUT] = "left-out",
};

/* While a lease is released, it matters whether the port may hold the P_Key. */
static const char *member_state(const struct lease *lease, const struct lease_member *m, const struct knowledge *k)
{
        const struct knowledge_name name = { m->node, m->number, KNOWLEDGE_ENDPORT };

        if (lease->state != LEASE_RELEASING || lease_member_is_unseen(m))
                return member_states[m->state];
        return knowledge_port_may_hold(k, knowledge_find(k, name), lease->base) ? "may-hold" : "released";
}

static void append_member(struct bus_builder *b, const struct lease *lease, const struct lease_member *m, const struct knowledge *k)
{
        bus_append(b, BUS_LEASE_MEMBER, m->port.v, m->node.v, m->number, m->name, m->state == LEASE_MEMBER_CONFIRMED ? m->index : 0,
                   p_key_make(lease->base, m->membership == MEMBERSHIP_FULL).v, member_state(lease, m, k));
}

/* Opens the variant of a key, which holds an array. */
static void open_array(struct bus_builder *b, const char *key, const char *type, const char *item)
{
        bus_open(b, 'e', "sv");
        bus_append(b, "s", key);
        bus_open(b, 'v', type);
        bus_open(b, 'a', item);
}

static void close_array(struct bus_builder *b)
{
        for (size_t depth = 0; depth < 3; depth++)
                bus_close(b);
}

static void append_members(struct bus_builder *b, const struct lease *lease, const struct knowledge *k)
{
        open_array(b, "Members", "a" BUS_LEASE_MEMBER, BUS_LEASE_MEMBER);
        for (uint32_t i = 0; i < lease->n_members; i++)
                if (!lease->members[i].is_leaving)
                        append_member(b, lease, &lease->members[i], k);
        close_array(b);
}

static void append_index0(struct bus_builder *b, const struct lease *lease)
{
        open_array(b, "Index0", "at", "t");
        for (uint32_t i = 0; i < lease->n_members; i++)
                if (lease->members[i].index0 && !lease->members[i].is_leaving)
                        bus_append(b, "t", lease->members[i].port.v);
        close_array(b);
}

/* The entries that every answer has. */
static void append_facts(struct bus_builder *b, const struct lease *lease)
{
        const char *owner = lease->owner.user;
        char number[16];

        if (*owner == '\0') {
                (void) snprintf(number, sizeof(number), "%" PRIu32, lease->owner.uid);
                owner = number;
        }
        bus_append_variant(b, "Id", "s", &lease->id);
        bus_append_variant(b, "Pool", "s", &lease->wish.pool);
        bus_append_variant(b, "Owner", "s", &owner);
        if (lease->why)
                bus_append_variant(b, "Why", "s", &lease->why);
        bus_append(b, "{sv}", "State", "s", lease_state_to_string(lease->state));
        bus_append(b, "{sv}", "PKey", "q", lease->base);
        bus_append(b, "{sv}", "Membership", "s", membership_to_string(lease->membership));
        bus_append(b, "{sv}", "Created", "t", lease->created * USEC_PER_SEC);
        bus_append(b, "{sv}", "Updated", "t", lease->updated * USEC_PER_SEC);
        bus_append(b, "{sv}", "Ends", "t", lease->ends * USEC_PER_SEC);
        bus_append(b, "{sv}", "NMembers", "u", lease_n_wanted(lease));
        bus_append(b, "{sv}", "NConfirmed", "u", lease_n_confirmed(lease));
        bus_append(b, "{sv}", "Open", "b", (int) lease->is_open);
        bus_append(b, "{sv}", "IpOverIb", "b", (int) lease->ip_over_ib);
        bus_append(b, "{sv}", "Keep", "b", (int) lease->is_kept);
        if (lease->qos.mtu > 0)
                bus_append(b, "{sv}{sv}{sv}", "Mtu", "y", lease->qos.mtu, "ServiceLevel", "y", lease->qos.service_level,
                           "RateLimit", "q", lease->qos.rate);
}

static void append_holders(struct bus_builder *b, const struct lease *lease, const struct control_status *status)
{
        _cleanup_arena_ struct arena *a = arena_new();
        const struct held_context context = bus_held_context(status, a);
        _cleanup_text_ struct text t = {};
        struct held holders;

        if (a) {
                held_find_holders(status->knowledge, lease->base, &holders);
                held_add_holders(&context, &holders, &t);
        }
        if (!a || t.failed)
                b->r = -ENOMEM;
        else if (t.n > 0)
                bus_append_variant(b, "Held", "s", &t.bytes);
}

static void append_whole(struct bus_builder *b, const struct lease *lease, const struct knowledge *k)
{
        bus_append_variant(b, "Selectors", "s", &lease->wish.members);
        append_members(b, lease, k);
        append_index0(b, lease);
}

void bus_append_lease(struct bus_builder *b, const struct lease *lease, const struct control_status *status,
                      enum bus_lease_detail detail)
{
        bus_open(b, 'a', "{sv}");
        if (lease)
                append_facts(b, lease);
        if (lease && detail >= BUS_LEASE_WHOLE)
                append_whole(b, lease, status->knowledge);
        if (lease && detail == BUS_LEASE_HOLDERS && lease->state == LEASE_RELEASING)
                append_holders(b, lease, status);
        bus_close(b);
}

/* Texts have at most the size that is added for them, or are counted. */
size_t bus_lease_size(const struct lease *lease)
{
        size_t size = 2048 + strlen(lease->wish.members);

        for (uint32_t i = 0; i < lease->n_members; i++)
                size += 64 + strlen(lease->members[i].name);
        return size;
}

/* --- arguments -------------------------------------------------------------------------------------------------------- */

int bus_read_membership(const char *word, enum membership *ret, sd_bus_error *error)
{
        *ret = MEMBERSHIP_NONE;
        if (*word == '\0' || (membership_from_string(word, ret) && (*ret == MEMBERSHIP_FULL || *ret == MEMBERSHIP_LIMITED)))
                return 0;
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "membership: is not a membership (accepted: full, limited; empty: that of the pool or of the lease)");
}

int bus_check_base(uint16_t base, sd_bus_error *error)
{
        if (base <= P_KEY_BASE_MASK)
                return 0;
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "pkey: give it without its high bit, which is the membership");
}

int bus_read_edit_kind(const char *word, enum lease_edit_kind *ret, sd_bus_error *error)
{
        if (lease_edit_kind_from_string(word, ret))
                return 0;
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "what: is not an edit (accepted: add, remove, set)");
}

int bus_read_groups(sd_bus_message *call, struct lease_edit *edit, sd_bus_error *error)
{
        const char *membership;
        int r, index0;

        r = sd_bus_message_enter_container(call, 'a', "(ssb)");
        while (r >= 0 && sd_bus_message_at_end(call, 0) == 0) {
                struct lease_group *group = &edit->groups[edit->n_groups];

                if (edit->n_groups == LEASE_MAX_GROUPS)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "members: more than %d groups", LEASE_MAX_GROUPS);
                r = sd_bus_message_read(call, "(ssb)", &group->members, &membership, &index0);
                if (r < 0)
                        return r;
                group->index0 = index0;
                r = bus_read_membership(membership, &group->membership, error);
                edit->n_groups++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(call);
        return r < 0 ? r : 0;
}

/* --- options ---------------------------------------------------------------------------------------------------------- */

struct read_options {
        const char *client;
        int ip_over_ib, keep, exists;
        uint8_t mtu, service_level;
        uint16_t rate_limit;
        unsigned seen; /* a bit for each enum option */
};

enum option { OPTION_CLIENT, OPTION_IP_OVER_IB, OPTION_MTU, OPTION_SERVICE_LEVEL, OPTION_RATE_LIMIT, OPTION_KEEP, OPTION_EXISTS };

#define BIT(option) (1u << (option))
#define QOS         (BIT(OPTION_MTU) | BIT(OPTION_SERVICE_LEVEL) | BIT(OPTION_RATE_LIMIT))

static const struct {
        const char *key, *type;
        size_t offset;
} options[] = {
        [OPTION_CLIENT] = { "Client", "s", offsetof(struct read_options, client) },
        [OPTION_IP_OVER_IB] = { "IpOverIb", "b", offsetof(struct read_options, ip_over_ib) },
        [OPTION_MTU] = { "Mtu", "y", offsetof(struct read_options, mtu) },
        [OPTION_SERVICE_LEVEL] = { "ServiceLevel", "y", offsetof(struct read_options, service_level) },
        [OPTION_RATE_LIMIT] = { "RateLimit", "q", offsetof(struct read_options, rate_limit) },
        [OPTION_KEEP] = { "Keep", "b", offsetof(struct read_options, keep) },
        [OPTION_EXISTS] = { "Exists", "b", offsetof(struct read_options, exists) },
};

/* accepted: bits of enum option, from the first one on. */
static int read_option(sd_bus_message *call, unsigned accepted, struct read_options *o, sd_bus_error *error)
{
        const char *key, *type;
        size_t i = 0;
        int r = sd_bus_message_read(call, "s", &key);

        if (r < 0)
                return r;
        while (i < ELEMENTS(options) && strcmp(options[i].key, key) != 0)
                i++;
        if (i == ELEMENTS(options) || !(accepted & BIT(i)))
                return bus_refuse_option(key, accepted == BIT(OPTION_CLIENT) ?
                                         "Client" : "Client, IpOverIb, Mtu, ServiceLevel, RateLimit, Keep, Exists", error);
        if (o->seen & BIT(i))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s: given twice", options[i].key);
        o->seen |= BIT(i);
        r = sd_bus_message_peek_type(call, NULL, &type);
        if (r >= 0 && strcmp(type, options[i].type) != 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s: has the wrong type (accepted: %s)", options[i].key,
                                         options[i].type);
        return r < 0 ? r : sd_bus_message_read(call, "v", options[i].type, (char *) o + options[i].offset);
}

static int check_client(const char *name, sd_bus_error *error)
{
        size_t n = strlen(name);

        if (n > 0 && n <= CLIENT_MAX &&
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Client: is not a valid name (accepted: 1 to %d letters, digits and "
                                 "._-)", CLIENT_MAX);
}

static int read_options(sd_bus_message *call, unsigned accepted, struct read_options *o, sd_bus_error *error)
{
        int r = sd_bus_message_enter_container(call, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
                r = read_option(call, accepted, o, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(call);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(call);
        if (r >= 0 && o->client)
                r = check_client(o->client, error);
        return r < 0 ? r : 0;
}

static int check_qos(const struct read_options *o, const struct lease_qos *qos, sd_bus_error *error)
{
        const char *problem;

        if (!(o->seen & QOS))
                return 0;
        if ((o->seen & QOS) != QOS)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "Mtu, ServiceLevel and RateLimit are set together, or not at all");
        problem = lease_qos_problem(qos);
        return problem ? sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, problem) : 0;
}

int bus_read_edit_options(sd_bus_message *call, struct lease_options *ret, const char **ret_client, sd_bus_error *error)
{
        struct read_options o = {};
        int r = read_options(call, (1u << ELEMENTS(options)) - 1, &o, error);

        if (r < 0)
                return r;
        *ret_client = o.client;
        *ret = (struct lease_options) {
                .sets_ip_over_ib = o.seen & BIT(OPTION_IP_OVER_IB), .ip_over_ib = o.ip_over_ib,
                .qos = { .mtu = o.mtu, .service_level = o.service_level, .rate = o.rate_limit },
                .keeps = o.keep, .drops = (o.seen & BIT(OPTION_KEEP)) && !o.keep, .must_exist = o.exists,
        };
        return check_qos(&o, &ret->qos, error);
}

int bus_read_release_options(sd_bus_message *call, const char **ret_client, sd_bus_error *error)
{
        struct read_options o = {};
        int r = read_options(call, BIT(OPTION_CLIENT), &o, error);

        if (r == 0)
                *ret_client = o.client;
        return r;
}
