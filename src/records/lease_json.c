/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/lease_json.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/store.h"
#include "util/scan.h"
#include "util/text.h"

#define MEMBER    "%" PRIx64 " %" PRIx64 " %x" /* node, port, number */
#define LEFT_OUT  " -"
#define INDEX0    " index0"

#define LONGEST_MEMBER "\"ffffffffffffffff ffffffffffffffff ff limited" INDEX0 LEFT_OUT "\","
#define OTHERS_MAX     8192 /* bytes of what a record has besides the members and the selectors that were asked for */

static_assert((sizeof(LONGEST_MEMBER) - 1) * LEASE_MAX_MEMBERS + OTHERS_MAX <= STORE_VALUE_MAX,
              "a store takes every open lease; otherwise it would take no transaction any more");

/* --- a lease to JSON -------------------------------------------------------------------------------------------------- */

static json_t *member_to_json(const struct lease *lease, const struct lease_member *m)
{
        bool differs = m->membership != lease->membership;

        return json_sprintf(MEMBER "%s%s%s%s", m->node.v, m->port.v, m->number, differs ? " " : "",
                            differs ? membership_to_string(m->membership) : "", m->index0 ? INDEX0 : "",
                            m->state == LEASE_MEMBER_LEFT_OUT ? LEFT_OUT : "");
}

static json_t *members_to_json(const struct lease *lease)
{
        return JSON_ARRAY_IF(i, lease->n_members, !lease->members[i].is_leaving, member_to_json(lease, &lease->members[i]));
}

static json_t *base_to_json(uint16_t base)
{
        return json_sprintf("0x%04x", base);
}

/* POLICY_UNLIMITED does not fit into a JSON integer; what else does not is refused as too long. */
static json_int_t seconds_to_json(uint64_t seconds)
{
        return seconds == POLICY_UNLIMITED ? -1 : (json_int_t) MIN(seconds, LEASE_LONGEST + 1);
}

static json_t *wish_to_json(const struct lease_wish *w)
{
        return json_pack("{s:s, s:o, s:s, s:I, s:b}", "members", w->members, "pkey", base_to_json(w->base), "membership",
                         membership_to_string(w->membership), "seconds", seconds_to_json(w->seconds), "partial", w->partial);
}

static int put_origin(json_t *o, const struct origin *origin)
{
        _cleanup_json_ json_t *who = json_pack("{s:s, s:I, s:s}", "via", origin_to_string(origin->kind), "uid", (json_int_t) origin->uid,
                                               "user", origin->user);

        return who ? json_object_update_missing(o, who) : -1;
}

static json_t *qos_to_json(const struct lease_qos *q)
{
        return json_pack("{s:i, s:i, s:i}", "mtu", q->mtu, "service_level", q->service_level, "rate", q->rate);
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
                r = json_object_set_new(o, "qos", qos_to_json(q));
        if (r == 0 && lease->updated != lease->created)
                r = json_object_set_new(o, "updated", json_integer((json_int_t) lease->updated));
        return r;
}

json_t *lease_to_json(const struct lease *lease)
{
        _cleanup_json_ json_t *o = json_pack("{s:s, s:o, s:s, s:o, s:s, s:o}", "pool", lease->wish.pool,
                                             "asked", wish_to_json(&lease->wish), "state", lease_state_to_string(lease->state),
                                             "pkey", base_to_json(lease->base), "membership", membership_to_string(lease->membership),
                                             "members", members_to_json(lease));
        _cleanup_json_ json_t *times = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "created", (json_int_t) lease->created,
                                                 "ends", (json_int_t) lease->ends, "seconds", (json_int_t) lease->seconds,
                                                 "confirm_by", (json_int_t) lease->confirm_by, "timeout", (json_int_t) lease->timeout,
                                                 "rest", (json_int_t) lease->rest, "why", lease->why ?: "");
        bool ok = o && times && put_origin(o, &lease->owner) == 0 && json_object_update_missing(o, times) == 0 &&
                  put_options(o, lease) == 0;

        return ok ? STEAL(o) : NULL;
}

/* --- a lease from JSON ------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *o, const char *name)
{
        return json_string_value(json_object_get(o, name));
}

static bool read_text(struct arena *a, const json_t *o, const char *name, const char **ret)
{
        const char *text = text_of(o, name);

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

static bool read_seconds(const json_t *o, const char *name, uint64_t *ret)
{
        json_int_t n;

        if (!json_member_number(o, name, -1, INT64_MAX / 2, &n))
                return false;
        *ret = n < 0 ? POLICY_UNLIMITED : (uint64_t) n;
        return true;
}

static bool read_bool(const json_t *o, const char *name, bool *ret)
{
        const json_t *value = json_object_get(o, name);

        *ret = json_is_true(value);
        return json_is_boolean(value);
}

static bool read_wish(struct arena *a, const json_t *o, struct lease_wish *ret)
{
        return read_text(a, o, "members", &ret->members) && read_base(o, &ret->base) &&
               membership_from_string(text_of(o, "membership"), &ret->membership) &&
               read_seconds(o, "seconds", &ret->seconds) && read_bool(o, "partial", &ret->partial);
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
        if (scan_word(&s, " full"))
                ret->membership = MEMBERSHIP_FULL;
        else if (scan_word(&s, " limited"))
                ret->membership = MEMBERSHIP_LIMITED;
        ret->index0 = lease->is_open && scan_word(&s, INDEX0);
        if (scan_word(&s, LEFT_OUT))
                ret->state = LEASE_MEMBER_LEFT_OUT;
        else if (lease->is_open && ret->node.v == 0)
                ret->state = LEASE_MEMBER_UNSEEN;
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

static bool read_origin(const json_t *o, struct origin *ret)
{
        const char *user = text_of(o, "user");
        json_int_t uid;

        if (!user || !origin_from_string(text_of(o, "via"), &ret->kind) || !json_member_number(o, "uid", 0, UINT32_MAX, &uid) ||
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

bool lease_from_json(const json_t *o, const struct known *known, struct lease *lease)
{
        if (!lease_state_from_string(text_of(o, "state"), &lease->state) || lease->state == LEASE_ENDED ||
            !read_text(lease->arena, o, "pool", &lease->wish.pool) || !read_text(lease->arena, o, "why", &lease->why) ||
            !read_wish(lease->arena, json_object_get(o, "asked"), &lease->wish) || !read_base(o, &lease->base) || lease->base == 0 ||
            !membership_from_string(text_of(o, "membership"), &lease->membership) || !read_origin(o, &lease->owner) ||
            !read_times(o, lease) || !read_options(o, lease))
                return false;
        if (*lease->why == '\0')
                lease->why = NULL;
        if ((lease->state == LEASE_RELEASING) != (lease->why != NULL))
                return false;
        if (lease->membership != MEMBERSHIP_LIMITED && lease->membership != MEMBERSHIP_FULL)
                return false;
        return read_members(json_object_get(o, "members"), known, lease);
}

bool lease_rest_from_json(const json_t *o, struct lease_rest *ret)
{
        return read_seconds(o, "seconds", &ret->seconds) && read_seconds(o, "until", &ret->until);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static const char *const kinds[] = {
        [LEASE_CREATE] = "create", [LEASE_RENEW] = "renew", [LEASE_RELEASE] = "release", [LEASE_EDIT] = "edit",
};

static json_t *group_to_json(const struct lease_group *g)
{
        return json_pack("{s:s, s:s, s:b}", "members", g->members, "membership", membership_to_string(g->membership), "index0",
                         g->index0);
}

static json_t *edit_to_json(const struct lease_edit *edit)
{
        const struct lease_options *o = &edit->options;

        return json_pack("{s:s, s:s, s:o, s:o, s:b, s:b, s:o, s:b, s:b, s:b}", "kind", lease_edit_kind_to_string(edit->kind),
                         "pool", edit->pool, "pkey", base_to_json(edit->base),
                         "groups", JSON_ARRAY(i, edit->n_groups, group_to_json(&edit->groups[i])),
                         "sets_ip_over_ib", o->sets_ip_over_ib, "ip_over_ib", o->ip_over_ib, "qos", qos_to_json(&o->qos),
                         "keeps", o->keeps, "drops", o->drops, "must_exist", o->must_exist);
}

json_t *lease_request_to_json(const struct lease_request *q)
{
        _cleanup_json_ json_t *o = json_pack("{s:s, s:s, s:o, s:I, s:I}", "kind", kinds[q->kind], "id", q->id,
                                             "names", JSON_ARRAY(i, q->by.n_names, json_string(q->by.names[i])),
                                             "timeout", seconds_to_json(q->timeout), "seconds", seconds_to_json(q->seconds));
        bool ok = o && put_origin(o, &q->by.origin) == 0;

        if (ok && q->kind == LEASE_CREATE)
                ok = json_object_set_new(o, "asked", wish_to_json(&q->wish)) == 0 &&
                     json_object_set_new(o, "pool", json_string(q->wish.pool)) == 0;
        if (ok && q->kind == LEASE_EDIT)
                ok = json_object_set_new(o, "edit", edit_to_json(&q->edit)) == 0;
        return ok ? STEAL(o) : NULL;
}

static bool read_groups(struct arena *a, const json_t *list, struct lease_edit *ret)
{
        if (!json_is_array(list) || json_array_size(list) > LEASE_MAX_GROUPS)
                return false;
        for (; ret->n_groups < json_array_size(list); ret->n_groups++) {
                const json_t *o = json_array_get(list, ret->n_groups);
                struct lease_group *g = &ret->groups[ret->n_groups];

                if (!read_text(a, o, "members", &g->members) || !read_bool(o, "index0", &g->index0) ||
                    !membership_from_string(text_of(o, "membership"), &g->membership))
                        return false;
        }
        return true;
}

static bool read_edit_options(const json_t *o, struct lease_options *ret)
{
        const json_t *qos = json_object_get(o, "qos");
        json_int_t mtu;

        if (!json_member_number(qos, "mtu", 0, UINT8_MAX, &mtu) || (mtu > 0 && !read_qos(qos, &ret->qos)))
                return false;
        return read_bool(o, "sets_ip_over_ib", &ret->sets_ip_over_ib) && read_bool(o, "ip_over_ib", &ret->ip_over_ib) &&
               read_bool(o, "keeps", &ret->keeps) && read_bool(o, "drops", &ret->drops) && read_bool(o, "must_exist", &ret->must_exist);
}

static bool read_edit(struct arena *a, const json_t *o, struct lease_edit *ret)
{
        return lease_edit_kind_from_string(text_of(o, "kind"), &ret->kind) && read_text(a, o, "pool", &ret->pool) &&
               read_base(o, &ret->base) && read_groups(a, json_object_get(o, "groups"), ret) &&
               read_edit_options(o, &ret->options);
}

static bool read_caller(struct arena *a, const json_t *o, struct lease_caller *ret)
{
        const json_t *list = json_object_get(o, "names");
        size_t n = json_array_size(list);
        const char **names = arena_new_array(a, const char *, n);

        if (!names || n == 0 || !read_origin(o, &ret->origin))
                return false;
        for (size_t i = 0; i < n; i++) {
                const char *name = json_string_value(json_array_get(list, i));

                names[i] = name ? arena_strdup(a, name) : NULL;
                if (!names[i])
                        return false;
        }
        ret->names = names;
        ret->n_names = n;
        return true;
}

bool lease_request_from_json(struct arena *a, const json_t *o, struct lease_request *ret)
{
        *ret = (struct lease_request) {};
        if (!TEXT_READ_WORD(text_of(o, "kind"), kinds, &ret->kind) || !read_text(a, o, "id", &ret->id) || !read_caller(a, o, &ret->by) ||
            !read_seconds(o, "timeout", &ret->timeout) || !read_seconds(o, "seconds", &ret->seconds))
                return false;
        if (ret->kind == LEASE_EDIT)
                return read_edit(a, json_object_get(o, "edit"), &ret->edit);
        return ret->kind != LEASE_CREATE ||
               (read_text(a, o, "pool", &ret->wish.pool) && read_wish(a, json_object_get(o, "asked"), &ret->wish));
}

/* --- replies ---------------------------------------------------------------------------------------------------------- */

/* Of each member its index; null: it is not confirmed. */
static json_t *indexes_to_json(const struct lease *lease)
{
        const struct lease_member *m = lease->members;

        return JSON_ARRAY_IF(i, lease->n_members, !m[i].is_leaving,
                             m[i].state == LEASE_MEMBER_CONFIRMED ? json_integer(m[i].index) : json_null());
}

static json_t *finding_to_json(const struct finding *f)
{
        return json_pack("{s:s, s:s, s:s, s:s*}", "severity", finding_severity_to_string(f->severity),
                         "code", finding_code_to_string(f->code), "text", f->text, "hint", f->hint);
}

json_t *lease_reply_to_json(const struct lease_reply *reply)
{
        const struct lease_answer *answer = &reply->answer;
        const struct findings *f = reply->findings;
        size_t n = f ? f->n : 0;
        _cleanup_json_ json_t *o = json_pack("{s:s, s:s, s:o}", "outcome", lease_outcome_to_string(answer->outcome),
                                             "text", answer->text, "findings", JSON_ARRAY(i, n, finding_to_json(&f->items[i])));

        if (answer->lease && (json_object_set_new(o, "id", json_string(answer->lease->id)) < 0 ||
                              json_object_set_new(o, "lease", lease_to_json(answer->lease)) < 0 ||
                              json_object_set_new(o, "indexes", indexes_to_json(answer->lease)) < 0))
                return NULL;
        return STEAL(o);
}

static bool read_indexes(const json_t *list, struct lease *lease)
{
        if (json_array_size(list) != lease->n_members)
                return false;
        for (uint32_t i = 0; i < lease->n_members; i++) {
                const json_t *index = json_array_get(list, i);
                json_int_t v = json_integer_value(index);

                if ((!json_is_null(index) && !json_is_integer(index)) || v < 0 || v > UINT16_MAX)
                        return false;
                if (json_is_integer(index) && lease->members[i].state == LEASE_MEMBER_WAITS)
                        lease->members[i].state = LEASE_MEMBER_CONFIRMED;
                lease->members[i].index = (uint16_t) v;
        }
        return true;
}

static bool read_finding(const json_t *o, struct findings *ret)
{
        const char *text = text_of(o, "text"), *hint = text_of(o, "hint");
        enum finding_severity severity;
        enum finding_code code;
        struct finding *f;

        if (!text || !finding_severity_from_string(text_of(o, "severity"), &severity) ||
            !finding_code_from_string(text_of(o, "code"), &code))
                return false;
        f = findings_add(ret, severity, code, NULL, "%s", text);
        if (hint)
                finding_set_hint(ret, f, "%s", hint);
        return true;
}

static bool read_findings(const json_t *list, struct findings *ret)
{
        bool ok = json_is_array(list);

        for (size_t i = 0; ok && i < json_array_size(list); i++)
                ok = read_finding(json_array_get(list, i), ret);
        return ok;
}

bool lease_reply_from_json(const json_t *o, const struct known *known, struct lease *lease, struct findings *findings,
                           struct lease_answer *ret)
{
        const char *text = text_of(o, "text");
        const json_t *of_lease = json_object_get(o, "lease");

        *ret = (struct lease_answer) {};
        if (!text || !lease_outcome_from_string(text_of(o, "outcome"), &ret->outcome) || ret->outcome > LEASE_REFUSED ||
            !read_findings(json_object_get(o, "findings"), findings))
                return false;
        (void) snprintf(ret->text, sizeof(ret->text), "%s", text);
        if (!of_lease)
                return true;
        if (!read_text(lease->arena, o, "id", &lease->id) || lease_id_problem(lease->id) || !lease_from_json(of_lease, known, lease) ||
            !read_indexes(json_object_get(o, "indexes"), lease))
                return false;
        ret->lease = lease;
        return true;
}
