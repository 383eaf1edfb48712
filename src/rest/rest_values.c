/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values of requests. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "rest/rest_internal.h"
#include "util/scan.h"

/* Reads a text of 1 to max_digits hexadecimal digits. */
static bool scan_hex(const char *text, size_t max_digits, uint64_t *ret)
{
        struct scan s = { text, text + strlen(text) };

        return strlen(text) <= max_digits && scan_number(&s, 16, UINT64_MAX, ret) && s.p == s.end;
}

static bool has_0x(const char *text)
{
        return text[0] == '0' && (text[1] | 0x20) == 'x';
}

int rest_read_p_key(struct rest_exchange *x, const char *text, uint16_t *ret)
{
        uint64_t v;

        if (!has_0x(text) || !scan_hex(text + 2, 4, &v) || (v & P_KEY_BASE_MASK) == 0)
                return rest_fail(x, 400, "pkey: %s is not a P_Key (accepted: 0x and 1 to 4 hexadecimal digits, 0x1 to 0x7fff, also "
                                 "with the bit of full members)", rest_quote(x, text));
        *ret = (uint16_t) v & P_KEY_BASE_MASK;
        return 0;
}

int rest_read_changed_p_key(struct rest_exchange *x, const char *text, uint16_t *ret)
{
        int r = rest_read_p_key(x, text, ret);

        if (r == 0 && *ret == P_KEY_DEFAULT_BASE)
                return rest_fail(x, 400, "pkey: 0x7fff is the default partition, which clients cannot change (accepted: 0x1 to 0x7ffe)");
        return r;
}

int rest_read_guid(struct rest_exchange *x, const char *text, size_t number, struct guid *ret)
{
        bool ok = has_0x(text) ? scan_hex(text + 2, 16, &ret->v) : strlen(text) == 16 && scan_hex(text, 16, &ret->v);

        if (ok && ret->v != 0)
                return 0;
        return rest_fail(x, 400, "guids[%zu]: %s is not a GUID (accepted: 16 hexadecimal digits, or 0x and 1 to 16)", number,
                         rest_quote(x, text));
}

int rest_read_membership(struct rest_exchange *x, const json_t *j, const char *where, enum membership *ret)
{
        const char *text = json_string_value(j);

        if (text && membership_from_string(text, ret) && (*ret == MEMBERSHIP_FULL || *ret == MEMBERSHIP_LIMITED))
                return 0;
        return rest_fail(x, 400, "%s: is not a membership (accepted: \"full\", \"limited\")", where);
}

/* UFM's Slurm integration sends the words of its configuration as strings. */
int rest_read_bool(struct rest_exchange *x, const json_t *j, const char *where, bool *ret)
{
        const char *text = json_string_value(j);

        if (!json_is_boolean(j) && (!text || (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0)))
                return rest_fail(x, 400, "%s: is not a boolean (accepted: true, false)", where);
        *ret = text ? strcasecmp(text, "true") == 0 : json_is_true(j);
        return 0;
}

DEFINE_COMPARE(member_compare, struct rest_member, ORDER(a->guid.v, b->guid.v))

int rest_set_members(struct rest_exchange *x, struct rest_member *members, size_t n)
{
        struct rest_change *c = &x->reply->change;

        SORT(members, n, member_compare);
        for (size_t i = 0; i < n; i++) {
                struct rest_member *last = c->n_members > 0 ? &members[c->n_members - 1] : NULL;

                if (!last || last->guid.v != members[i].guid.v)
                        members[c->n_members++] = members[i];
                else if (last->membership != members[i].membership)
                        return rest_fail(x, 400, "guids: %016" PRIx64 " is given twice, with different memberships", last->guid.v);
        }
        c->members = members;
        return 0;
}
