/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_guids.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_fix.h"
#include "policy/selector.h"
#include "util/vector.h"

#define HEX "0123456789abcdefABCDEF"

/* All selectors of a policy, in the order of groups, pools, partitions and lines. */
struct selectors {
        const struct selector **items;
        size_t n, allocated;
};

static int add_all(struct arena *a, struct selector *const *selectors, uint32_t n, struct selectors *ret)
{
        for (uint32_t i = 0; i < n; i++) {
                if (VECTOR_GROW(a, ret->items, ret->n, ret->allocated) < 0)
                        return -ENOMEM;
                ret->items[ret->n++] = selectors[i];
        }
        return 0;
}

static int list_selectors(struct arena *a, const struct policy *p, struct selectors *ret)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < p->n_groups; i++)
                r = add_all(a, p->groups[i].selectors, p->groups[i].n_selectors, ret);
        for (uint32_t i = 0; r == 0 && i < p->n_pools; i++)
                r = add_all(a, p->pools[i].ports, p->pools[i].n_ports, ret);
        for (uint32_t i = 0; r == 0 && i < p->n_partitions; i++)
                for (uint32_t k = 0; r == 0 && k < p->partitions[i].n_rules; k++)
                        r = add_all(a, p->partitions[i].rules[k].selectors, p->partitions[i].rules[k].n_selectors, ret);
        return r;
}

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
static int check(struct arena *a, const struct selectors *before, const struct policy *policy, const char *bytes, size_t n,
                 const struct guid_change *changes, size_t n_changes)
{
        _cleanup_findings_ struct findings ignored = {};
        struct selectors after = {};
        struct policy *now;
        int r;

        findings_init(&ignored, a);
        r = policy_parse(a, policy->file, bytes, n, &ignored, &now) ?: list_selectors(a, now, &after);
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
        _cleanup_findings_ struct findings fixes = {};
        struct selectors all = {};
        int r = list_selectors(a, policy, &all), n_fixed;

        findings_init(&fixes, a);
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
