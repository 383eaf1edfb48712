/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_guids.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_fix.h"
#include "policy/selector.h"

#define HEX "0123456789abcdefABCDEF"

/* The change of the GUID in this selector; NULL: there is none. */
static const struct guid_change *find_change(const struct selector *s, const struct guid_change *changes, size_t n)
{
        if (s->kind != SELECTOR_GUID && s->kind != SELECTOR_SWITCH)
                return NULL;
        for (size_t i = 0; i < n && s->guid.v != 0; i++)
                if (changes[i].from.v == s->guid.v)
                        return &changes[i];
        return NULL;
}

static int add_fix(struct findings *fixes, const struct policy *policy, const struct selector *s, const struct guid_change *change)
{
        unsigned offset = s->kind == SELECTOR_SWITCH; /* the @ */
        struct location where = s->place.where;
        struct finding *item;

        where.file = policy->file;
        item = findings_add(fixes, FINDING_NOTE, FINDING_VALUE_INVALID, &where, "%s", s->text);
        if (!item)
                return -ENOMEM;
        item->fix = (struct finding_fix) {
                .line = where.line, .column = where.column + offset, .length = (unsigned) (2 + strspn(s->text + offset + 2, HEX)),
                .text = arena_printf(fixes->arena, "0x%016" PRIx64, change->to.v),
        };
        return item->fix.text ? 0 : -ENOMEM;
}

static bool is_same(const struct selector *before, const struct selector *after, const struct guid_change *change)
{
        struct guid expected = change ? change->to : before->guid;

        return before->kind == after->kind && expected.v == after->guid.v && (change || strcmp(before->text, after->text) == 0) &&
               before->ports[0] == after->ports[0] && before->port == after->port;
}

/* Reads the result, in which every selector must be what it was, with the new GUIDs. */
static int check(struct arena *a, const struct selector_list *before, const struct policy *policy, const char *bytes, size_t n,
                 const struct guid_change *changes, size_t n_changes)
{
        _cleanup_findings_ struct findings ignored = { .arena = a };
        struct selector_list after = {};
        struct policy *now;
        int r = policy_parse(a, policy->file, bytes, n, &ignored, &now) ?: selector_list_all(a, now, &after);

        if (r < 0)
                return r == -ENOMEM ? r : -EINVAL;
        for (size_t i = 0; i < before->n && after.n == before->n; i++)
                if (!is_same(before->items[i], after.items[i], find_change(before->items[i], changes, n_changes)))
                        return -EINVAL;
        return after.n == before->n ? 0 : -EINVAL;
}

int policy_change_guids(struct arena *a, const struct policy *policy, const char *bytes, size_t n,
                        const struct guid_change *changes, size_t n_changes, const char **ret_bytes, size_t *ret_n)
{
        _cleanup_findings_ struct findings fixes = { .arena = a };
        struct selector_list all = {};
        int r = selector_list_all(a, policy, &all), n_fixed;

        for (size_t i = 0; r == 0 && i < all.n; i++) {
                const struct guid_change *change = find_change(all.items[i], changes, n_changes);

                if (change)
                        r = add_fix(&fixes, policy, all.items[i], change);
        }
        n_fixed = r < 0 ? r : policy_fix_apply(a, policy->file, bytes, n, &fixes, ret_bytes, ret_n);
        if (n_fixed > 0)
                r = check(a, &all, policy, *ret_bytes, *ret_n, changes, n_changes);
        return r < 0 ? r : n_fixed;
}
