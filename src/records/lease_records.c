/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/lease_records.h"

#include <errno.h>
#include <string.h>

#include "records/record_json.h"
#include "util/scan.h"

#define REST_KEY  RECORDS_REST "0x%04x"
#define MEMBER    "%" PRIx64 " %" PRIx64 " %x" /* node, port, number */
#define LEFT_OUT  " -"
#define INDEX0    " index0"

/* --- to the store ----------------------------------------------------------------------------------------------------- */

static json_t *member_to_json(const struct lease *lease, const struct lease_member *m)
{
        bool differs = m->membership != lease->membership;

        return json_sprintf(MEMBER "%s%s%s%s", m->node.v, m->port.v, m->number, differs ? " " : "",
                            differs ? membership_to_string(m->membership) : "", m->index0 ? INDEX0 : "", m->left_out ? LEFT_OUT : "");
}

static json_t *members_to_json(const struct lease *lease)
{
        json_t *list = json_array();

        for (uint32_t i = 0; i < lease->n_members; i++)
                if (!lease->members[i].is_leaving && json_array_append_new(list, member_to_json(lease, &lease->members[i])) < 0) {
                        json_decref(list);
                        return NULL;
                }
        return list;
}

static json_t *base_to_json(uint16_t base)
{
        return json_sprintf("0x%04x", base);
}

/* A number of seconds; POLICY_UNLIMITED does not fit into a JSON integer. */
static json_int_t seconds_to_json(uint64_t seconds)
{
        return seconds > INT64_MAX ? -1 : (json_int_t) seconds;
}

static json_t *wish_to_json(const struct lease_wish *w)
{
        return json_pack("{s:s, s:o, s:s, s:I, s:b}", "members", w->members, "pkey", base_to_json(w->base), "membership",
                         membership_to_string(w->membership), "seconds", seconds_to_json(w->seconds), "partial", w->partial);
}

static int put_true(json_t *o, const char *name, bool value)
{
        return value ? json_object_set_new(o, name, json_true()) : 0;
}

/* What is as usual is omitted. */
static int put_options(json_t *o, const struct lease *lease)
{
        const struct lease_qos *q = &lease->qos;
        int r = put_true(o, "open", lease->is_open) ?: put_true(o, "drops", !lease->is_kept) ?:
                put_true(o, "ip_over_ib", lease->ip_over_ib);

        if (r == 0 && q->mtu > 0)
                r = json_object_set_new(o, "qos", json_pack("{s:i, s:i, s:i}", "mtu", q->mtu, "service_level", q->service_level, "rate",
                                                            q->rate));
        if (r == 0 && lease->updated != lease->created)
                r = json_object_set_new(o, "updated", json_integer((json_int_t) lease->updated));
        return r;
}

static json_t *lease_to_json(const struct lease *lease)
{
        json_t *o = json_pack("{s:s, s:o, s:s, s:o, s:s, s:o}", "pool", lease->wish.pool, "asked", wish_to_json(&lease->wish), "state",
                              lease_state_to_string(lease->state), "pkey", base_to_json(lease->base), "membership",
                              membership_to_string(lease->membership), "members", members_to_json(lease));
        json_t *rest = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "via", origin_to_string(lease->owner.kind), "uid",
                                 (json_int_t) lease->owner.uid, "user", lease->owner.user, "created", (json_int_t) lease->created,
                                 "ends", (json_int_t) lease->ends, "seconds", (json_int_t) lease->seconds, "confirm_by",
                                 (json_int_t) lease->confirm_by, "timeout", (json_int_t) lease->timeout, "rest",
                                 (json_int_t) lease->rest, "why", lease->why ?: "");

        if (!o || !rest || json_object_update_missing(o, rest) < 0 || put_options(o, lease) < 0) {
                json_decref(o);
                o = NULL;
        }
        json_decref(rest);
        return o;
}

void records_put_leases(struct store_transaction *t, const struct leases *l)
{
        char key[STORE_KEY_MAX + 1];
        const struct lease *const *leases;
        const struct lease_rest *rests;
        size_t n;

        /* an ended lease comes before a new one with its ID */
        leases = leases_list(l, &n);
        for (size_t i = 0; i < n; i++) {
                if (leases[i]->is_stored)
                        continue;
                (void) snprintf(key, sizeof(key), RECORDS_LEASE "%s", leases[i]->id);
                if (leases[i]->state == LEASE_ENDED)
                        store_delete(t, key);
                else
                        record_put_object(t, key, lease_to_json(leases[i]));
        }
        rests = leases_rests(l, &n);
        for (size_t i = 0; i < n; i++) {
                if (rests[i].is_stored)
                        continue;
                (void) snprintf(key, sizeof(key), REST_KEY, rests[i].base);
                if (rests[i].is_over)
                        store_delete(t, key);
                else
                        record_put_object(t, key, json_pack("{s:I, s:I}", "seconds", (json_int_t) rests[i].seconds, "until",
                                                            (json_int_t) rests[i].until));
        }
}

/* --- from the store --------------------------------------------------------------------------------------------------- */

static bool read_text(struct arena *a, const json_t *o, const char *name, const char **ret)
{
        const char *text = json_string_value(json_object_get(o, name));

        *ret = text ? arena_strdup(a, text) : NULL;
        return *ret != NULL;
}

static bool read_base(const json_t *o, uint16_t *ret)
{
        uint64_t base;

        if (!json_member_hex(o, "pkey", P_KEY_BASE_MASK, &base))
                return false;
        *ret = (uint16_t) base;
        return true;
}

static bool read_membership(const json_t *o, enum membership *ret)
{
        const char *word = json_string_value(json_object_get(o, "membership"));

        for (enum membership m = MEMBERSHIP_NONE; word && m <= MEMBERSHIP_BOTH; m++)
                if (strcmp(word, membership_to_string(m)) == 0) {
                        *ret = m;
                        return true;
                }
        return false;
}

static bool read_seconds(const json_t *o, const char *name, uint64_t *ret)
{
        json_int_t n;

        if (!json_member_number(o, name, -1, INT64_MAX / 2, &n))
                return false;
        *ret = n < 0 ? POLICY_UNLIMITED : (uint64_t) n;
        return true;
}

static bool read_wish(struct arena *a, const json_t *o, struct lease_wish *ret)
{
        const json_t *partial = json_object_get(o, "partial");

        ret->partial = json_is_true(partial);
        return read_text(a, o, "members", &ret->members) && read_base(o, &ret->base) && read_membership(o, &ret->membership) &&
               read_seconds(o, "seconds", &ret->seconds) && json_is_boolean(partial);
}

static bool read_member(const struct lease *lease, const struct known *known, const char *text, struct lease_member *ret)
{
        struct scan s = { text, text + strlen(text) };
        const struct known_port *port;
        uint64_t number;

        ret->membership = lease->membership;
        if (!scan_number(&s, 16, UINT64_MAX, &ret->node.v) || !scan_blanks(&s) || !scan_number(&s, 16, UINT64_MAX, &ret->port.v) ||
            !scan_blanks(&s) || !scan_number(&s, 16, UINT8_MAX, &number) || ret->port.v == 0)
                return false;
        ret->number = (uint8_t) number;
        ret->is_unseen = lease->is_open && ret->node.v == 0;
        if (scan_word(&s, " full"))
                ret->membership = MEMBERSHIP_FULL;
        else if (scan_word(&s, " limited"))
                ret->membership = MEMBERSHIP_LIMITED;
        ret->index0 = lease->is_open && scan_word(&s, INDEX0);
        ret->left_out = scan_word(&s, LEFT_OUT);
        if (s.p < s.end)
                return false;
        port = known_find(known, ret->port);
        ret->name = port ? known_port_label(lease->arena, port) : arena_printf(lease->arena, "0x%016" PRIx64, ret->port.v);
        return ret->name != NULL;
}

static bool read_members(const json_t *list, const struct known *known, struct lease *lease)
{
        size_t n = json_array_size(list);

        lease->members = arena_new_array(lease->arena, struct lease_member, n);
        if (n > LEASE_MAX_MEMBERS || !lease->members)
                return false;
        for (size_t i = 0; i < n; i++) {
                struct lease_member *m = &lease->members[i];

                if (!read_member(lease, known, json_string_value(json_array_get(list, i)) ?: "", m) ||
                    (i > 0 && m->port.v <= m[-1].port.v))
                        return false;
                lease->n_members++;
        }
        /* of one that is released all may be left out, and hold the P_Key */
        return lease->is_open || (n > 0 && lease->state == LEASE_RELEASING) || lease_n_in_force(lease) > 0;
}

static bool read_owner(const json_t *o, struct origin *ret)
{
        const char *via = json_string_value(json_object_get(o, "via")), *user = json_string_value(json_object_get(o, "user"));
        json_int_t uid;

        if (!via || !user || !origin_from_string(via, &ret->kind) || !json_member_number(o, "uid", 0, UINT32_MAX, &uid) ||
            strlen(user) >= sizeof(ret->user))
                return false;
        ret->uid = (uint32_t) uid;
        (void) strcpy(ret->user, user);
        return true;
}

/* False if it is missing. */
static bool read_true(const json_t *o, const char *name, bool *ret)
{
        const json_t *value = json_object_get(o, name);

        *ret = json_is_true(value);
        return !value || *ret;
}

static bool read_qos(const json_t *o, struct lease_qos *ret)
{
        json_int_t mtu, level, rate;

        if (!o)
                return true;
        if (!json_member_number(o, "mtu", 0, UINT8_MAX, &mtu) || !json_member_number(o, "service_level", 0, UINT8_MAX, &level) ||
            !json_member_number(o, "rate", 0, UINT16_MAX, &rate))
                return false;
        *ret = (struct lease_qos) { .mtu = (uint8_t) mtu, .service_level = (uint8_t) level, .rate = (uint16_t) rate };
        return !lease_qos_problem(ret);
}

static bool read_options(const json_t *o, struct lease *lease)
{
        bool drops;

        lease->updated = lease->created;
        if (!read_true(o, "drops", &drops))
                return false;
        lease->is_kept = !drops;
        return read_true(o, "open", &lease->is_open) && read_true(o, "ip_over_ib", &lease->ip_over_ib) &&
               read_qos(json_object_get(o, "qos"), &lease->qos) &&
               (!json_object_get(o, "updated") || read_seconds(o, "updated", &lease->updated));
}

static bool read_times(const json_t *o, struct lease *lease)
{
        return read_seconds(o, "created", &lease->created) && read_seconds(o, "ends", &lease->ends) &&
               read_seconds(o, "seconds", &lease->seconds) && read_seconds(o, "confirm_by", &lease->confirm_by) &&
               read_seconds(o, "timeout", &lease->timeout) && read_seconds(o, "rest", &lease->rest);
}

static bool read_lease(const json_t *o, const struct known *known, struct lease *lease)
{
        const char *state = json_string_value(json_object_get(o, "state"));

        if (!state || !lease_state_from_string(state, &lease->state) || lease->state == LEASE_ENDED ||
            !read_text(lease->arena, o, "pool", &lease->wish.pool) || !read_text(lease->arena, o, "why", &lease->why) ||
            !read_wish(lease->arena, json_object_get(o, "asked"), &lease->wish) || !read_base(o, &lease->base) || lease->base == 0 ||
            !read_membership(o, &lease->membership) || !read_owner(o, &lease->owner) || !read_times(o, lease) ||
            !read_options(o, lease))
                return false;
        if (*lease->why == '\0')
                lease->why = NULL;
        if (lease->membership != MEMBERSHIP_LIMITED && lease->membership != MEMBERSHIP_FULL)
                return false;
        return read_members(json_object_get(o, "members"), known, lease);
}

static int restore_lease(struct leases *l, const struct known *known, const char *id, const json_t *o)
{
        _cleanup_(lease_free_p) struct lease *lease = lease_new();
        int r;

        if (!lease)
                return -ENOMEM;
        lease->id = arena_strdup(lease->arena, id);
        if (!lease->id || lease_id_problem(id) || !read_lease(o, known, lease))
                return -EBADMSG;
        lease->is_stored = true;
        r = leases_restore(l, lease);
        if (r == 0)
                (void) STEAL(lease);
        return r;
}

static int restore_rest(struct leases *l, const char *key, const json_t *o)
{
        struct lease_rest rest = { .is_stored = true };
        char expected[STORE_KEY_MAX + 1];
        char *end;
        unsigned long base = strtoul(key + strlen(RECORDS_REST), &end, 16);

        (void) snprintf(expected, sizeof(expected), REST_KEY, (unsigned) base);
        if (*end || base == 0 || base > P_KEY_BASE_MASK || strcmp(key, expected) != 0 || !read_seconds(o, "seconds", &rest.seconds) ||
            !read_seconds(o, "until", &rest.until))
                return -EBADMSG;
        rest.base = (uint16_t) base;
        return leases_restore_rest(l, &rest);
}

int lease_record_restore(struct leases *l, const struct known *known, const char *key, const void *value, size_t n)
{
        _cleanup_json_ json_t *o = json_loadb(value, n, JSON_REJECT_DUPLICATES, NULL);

        if (strncmp(key, RECORDS_LEASE, strlen(RECORDS_LEASE)) == 0)
                return restore_lease(l, known, key + strlen(RECORDS_LEASE), o);
        return restore_rest(l, key, o);
}
