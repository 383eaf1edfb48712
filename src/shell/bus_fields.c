/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/bus_fields.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

static const struct bus_field lease_fields[] = {
        FIELD(seen_lease, "Id", "id", FIELD_TEXT, id),
        FIELD(seen_lease, "Pool", "pool", FIELD_TEXT, pool),
        FIELD(seen_lease, "State", "state", FIELD_TEXT, state),
        FIELD(seen_lease, "PKey", "pkey", FIELD_P_KEY, p_key),
        FIELD(seen_lease, "Membership", "membership", FIELD_TEXT, membership),
        FIELD(seen_lease, "Owner", "owner", FIELD_TEXT, owner),
        FIELD(seen_lease, "Created", "created", FIELD_TIME, created),
        FIELD(seen_lease, "Ends", "ends", FIELD_TIME, ends),
        FIELD(seen_lease, "Why", "why", FIELD_TEXT, why),
        FIELD(seen_lease, "NMembers", "members_total", FIELD_NUMBER, n_members),
        FIELD(seen_lease, "Open", "open", FIELD_BOOL, is_open),
        FIELD(seen_lease, "NConfirmed", "members_confirmed", FIELD_NUMBER, n_confirmed),
        FIELD(seen_lease, "Updated", "updated", FIELD_TIME, updated),
        FIELD(seen_lease, "Keep", "keep", FIELD_BOOL, is_kept),
        FIELD(seen_lease, "IpOverIb", "ip_over_ib", FIELD_BOOL, ip_over_ib),
        FIELD(seen_lease, "Mtu", "mtu", FIELD_IF_SET, mtu),
        FIELD(seen_lease, "ServiceLevel", "service_level", FIELD_NUMBER, service_level),
        FIELD(seen_lease, "RateLimit", "rate_limit", FIELD_IF_SET, rate_limit),
        FIELD(seen_lease, "Held", "held", FIELD_TEXT, held),
        FIELD(seen_lease, "Selectors", "selectors", FIELD_TEXT, selectors),
        FIELD(seen_lease, "Members", "members", FIELD_MEMBERS, members),
        FIELD(seen_lease, "Index0", "index0", FIELD_GUIDS, index0),
};
const struct bus_fields seen_lease_fields = BUS_FIELDS(lease_fields);

#define MEMBER "(ttysqqs)" /* port GUID, node GUID, port, name, index, P_Key, state */

static int read_members(struct arena *a, sd_bus_message *m, struct seen_members *ret)
{
        struct seen_member item = {};
        int r = sd_bus_message_enter_container(m, 'v', "a" MEMBER);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', MEMBER);
        while (r >= 0 && (r = sd_bus_message_read(m, MEMBER, &item.port.v, &item.node.v, &item.number, &item.name, &item.index,
                                                  &item.key.v, &item.state)) > 0) {
                item.name = arena_strdup(a, item.name);
                item.state = arena_strdup(a, item.state);
                if (!item.name || !item.state || VECTOR_ADD(a, ret->items, ret->n, ret->allocated, item) < 0)
                        return -ENOMEM;
        }
        for (size_t depth = 0; r >= 0 && depth < 2; depth++)
                r = sd_bus_message_exit_container(m);
        return r;
}

static int read_guids(struct arena *a, sd_bus_message *m, struct seen_guids *ret)
{
        struct guid guid;
        int r = sd_bus_message_enter_container(m, 'v', "at");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "t");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 't', &guid.v)) > 0) {
                if (VECTOR_ADD(a, ret->items, ret->n, ret->allocated, guid) < 0)
                        return -ENOMEM;
        }
        for (size_t depth = 0; r >= 0 && depth < 2; depth++)
                r = sd_bus_message_exit_container(m);
        return r;
}

static bool is_array(const struct bus_field *f)
{
        return f->kind == FIELD_MEMBERS || f->kind == FIELD_GUIDS;
}

/* The value of one key; one of an unexpected type is skipped. */
static int read_value(struct arena *a, sd_bus_message *m, const struct bus_field *f, void *object)
{
        void *member = (char *) object + f->offset;
        union {
                const char *s;
                uint8_t y;
                uint16_t q;
                uint32_t u;
                uint64_t t;
                int b;
        } v = {};
        const char *type;
        int r = sd_bus_message_peek_type(m, NULL, &type);

        if (r < 0)
                return r;
        if (f->kind == FIELD_MEMBERS && strcmp(type, "a" MEMBER) == 0)
                return read_members(a, m, member);
        if (f->kind == FIELD_GUIDS && strcmp(type, "at") == 0)
                return read_guids(a, m, member);
        if (is_array(f) || strlen(type) != 1 || !strchr(f->kind == FIELD_TEXT ? "s" : "yqutb", *type))
                return sd_bus_message_skip(m, "v");
        r = sd_bus_message_read(m, "v", type, &v);
        if (r < 0)
                return r;
        if (f->kind != FIELD_TEXT) {
                *(uint64_t *) member = *type == 'y' ? v.y : *type == 'q' ? v.q : *type == 'u' ? v.u : *type == 'b' ? v.b != 0 : v.t;
                return 0;
        }
        *(const char **) member = arena_strdup(a, v.s);
        return *(const char **) member ? 0 : -ENOMEM;
}

static int read_entry(struct arena *a, sd_bus_message *m, const struct bus_fields *fields, void *object, uint64_t *seen)
{
        const char *key;
        size_t i = 0;
        int r = sd_bus_message_read_basic(m, 's', &key);

        if (r < 0)
                return r;
        while (i < fields->n && strcmp(fields->items[i].bus_key, key) != 0)
                i++;
        if (i == fields->n)
                return sd_bus_message_skip(m, "v");
        if (seen)
                *seen |= UINT64_C(1) << i;
        return read_value(a, m, &fields->items[i], object);
}

int bus_fields_read(struct arena *a, sd_bus_message *m, const struct bus_fields *fields, void *object, uint64_t *seen)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(a, m, fields, object, seen);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 0;
}
