/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_fix.h"

#include <errno.h>
#include <string.h>

#include "policy/policy.h"
#include "policy/selector.h"
#include "policy/typing_error.h"
#include "util/text.h"
#include "util/yaml_source.h"

#define MAX_ROUNDS 16

/* ---- applying ----------------------------------------------------------------------------------------------------- */

/* A file that is read from its beginning to its end. */
struct cursor {
        const char *bytes;
        size_t n, at;
        unsigned line, column; /* of the character at `at` */
};

/* Moves to the next character. Returns false at the end of the file. */
static bool step(struct cursor *c)
{
        if (c->at >= c->n)
                return false;
        if (c->bytes[c->at] == '\n') {
                c->line++;
                c->column = 0;
        }
        /* the bytes of a character that follow its first one */
        for (c->at++; c->at < c->n && (c->bytes[c->at] & 0xc0) == 0x80; c->at++)
                ;
        c->column++;
        return true;
}

/* Copies the file up to the correction, and its text. Returns 0, or -EINVAL if the correction begins before the cursor, or is not
 * within a line. */
static int apply(struct cursor *c, const struct finding_fix *fix, struct text *out)
{
        size_t from = c->at;

        while (c->line < fix->line || (c->line == fix->line && c->column < fix->column))
                if (!step(c))
                        return -EINVAL;
        if (c->line != fix->line || c->column != fix->column)
                return -EINVAL;
        text_add_n(out, c->bytes + from, c->at - from);
        for (unsigned i = 0; i < fix->length; i++)
                if (c->at >= c->n || c->bytes[c->at] == '\n' || !step(c))
                        return -EINVAL;
        text_add(out, "%s", fix->text);
        return 0;
}

static int compare_fixes(const void *left, const void *right)
{
        const struct finding_fix *a = *(const struct finding_fix *const *) left, *b = *(const struct finding_fix *const *) right;

        return ORDER(a->line, b->line) ?: ORDER(a->column, b->column) ?: ORDER(a->length, b->length);
}

/* The corrections in the order of their places. Returns their number or -ENOMEM. */
static int sort_fixes(struct arena *a, const char *file, const struct findings *findings, const struct finding_fix ***ret)
{
        const struct finding_fix **fixes = arena_new_array(a, const struct finding_fix *, findings->n);
        size_t n = 0;

        if (!fixes)
                return -ENOMEM;
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *item = &findings->items[i];

                if (item->fix.text && item->where.file && strcmp(item->where.file, file) == 0)
                        fixes[n++] = &item->fix;
        }
        SORT(fixes, n, compare_fixes);
        *ret = fixes;
        return (int) n;
}

int policy_fix_apply(struct arena *a, const char *file, const char *bytes, size_t n, const struct findings *findings,
                     const char **ret_bytes, size_t *ret_n)
{
        size_t mark = yaml_source_mark(bytes, n);
        struct cursor c = { .bytes = bytes, .n = n, .at = mark, .line = 1, .column = 1 };
        _cleanup_text_ struct text out = {};
        const struct finding_fix **fixes;
        int n_fixes = sort_fixes(a, file, findings, &fixes), r = 0;
        const char *fixed;

        if (n_fixes < 0)
                return n_fixes;
        text_add_n(&out, bytes, mark);
        for (int i = 0; i < n_fixes && r == 0; i++)
                r = apply(&c, fixes[i], &out);
        if (r < 0)
                return r;
        text_add_n(&out, bytes + c.at, n - c.at);
        fixed = n_fixes > 0 ? text_copy(a, &out) : bytes;
        if (!fixed)
                return -ENOMEM;
        *ret_n = n_fixes > 0 ? out.n : n;
        *ret_bytes = fixed;
        return n_fixes;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------- */

static int check(struct arena *a, const char *file, const char *bytes, size_t n, struct findings *findings)
{
        struct policy *policy;
        int r;

        *findings = (struct findings) { .arena = a };
        r = policy_parse(a, file, bytes, n, findings, &policy);
        return r == -EBADMSG ? 0 : r;
}

/* Returns whether this is an error of the YAML form that has no correction. */
static bool is_form_error(const struct finding *item)
{
        return item->severity == FINDING_ERROR && !item->fix.text &&
               (item->code == FINDING_YAML_SYNTAX || item->code == FINDING_YAML_DUPLICATE_KEY ||
                item->code == FINDING_YAML_ENCODING);
}

static size_t count_form_errors(const struct findings *findings)
{
        size_t n = 0;

        for (size_t i = 0; i < findings->n; i++)
                n += is_form_error(&findings->items[i]);
        return n;
}

/* Returns whether this is an error without a correction in the text that the correction wrote. Earlier corrections in the line
 * moved it by `moved` columns. */
static bool is_error_at(const struct finding *item, const struct finding_fix *fix, long moved)
{
        long offset = (long) item->where.column - (long) fix->column - moved;

        return item->severity == FINDING_ERROR && !item->fix.text && item->where.line == fix->line && offset >= 0 &&
               offset < (long) MAX(strlen(fix->text), (size_t) 1);
}

/* Returns whether a round removed all errors that it corrected, and caused none of the YAML form. */
static bool is_improvement(const struct findings *before, const struct findings *after)
{
        unsigned line = 0;
        long moved = 0;

        /* before: sorted, so corrections in a line come one after another */
        for (size_t i = 0; i < before->n; i++) {
                const struct finding_fix *fix = &before->items[i].fix;

                if (!fix->text)
                        continue;
                moved = fix->line == line ? moved : 0;
                line = fix->line;
                for (size_t k = 0; k < after->n; k++)
                        if (is_error_at(&after->items[k], fix, moved))
                                return false;
                moved += (long) strlen(fix->text) - (long) fix->length;
        }
        return count_form_errors(after) <= count_form_errors(before);
}

/* Applies the corrections of the parser; if there are none, that of one typing error. Not for a file that has not passed
 * is_improvement(): an error that a correction left at its place must not be corrected further. Returns as policy_fix_apply(). */
static int apply_next(struct arena *a, const char *file, const char *bytes, size_t n, struct findings *findings,
                      const char **ret_bytes, size_t *ret_n)
{
        int count = policy_fix_apply(a, file, bytes, n, findings, ret_bytes, ret_n);

        if (count != 0)
                return count;
        return typing_error_find(file, bytes, n, findings) ?: policy_fix_apply(a, file, bytes, n, findings, ret_bytes, ret_n);
}

int policy_fix(struct arena *a, const char *file, const char *bytes, size_t n, const char **ret_bytes, size_t *ret_n,
               unsigned *ret_n_fixed, bool *ret_refused)
{
        _cleanup_findings_ struct findings before = {}, after = {};
        unsigned n_fixed = 0;
        bool refused = false;
        int r = check(a, file, bytes, n, &before);

        for (unsigned round = 0; r >= 0 && round < MAX_ROUNDS; round++) {
                const char *next;
                size_t n_next;
                int count;

                count = r = apply_next(a, file, bytes, n, &before, &next, &n_next);
                if (count == 0)
                        break;
                if (count > 0)
                        r = check(a, file, next, n_next, &after);
                refused = count == -EINVAL || (r >= 0 && !is_improvement(&before, &after));
                if (refused || r < 0)
                        break;
                n_fixed += (unsigned) count;
                bytes = next;
                n = n_next;
                findings_done(&before);
                before = STEAL(after);
        }
        if (r == -ENOMEM)
                return r;
        *ret_bytes = bytes;
        *ret_n = n;
        *ret_n_fixed = n_fixed;
        *ret_refused = refused;
        return 0;
}

/* --- other GUIDs ---------------------------------------------------------------------------------------------------- */

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
static int check_guids(struct arena *a, const struct selector_list *before, const struct policy *policy, const char *bytes,
                       size_t n, const struct guid_change *changes, size_t n_changes)
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
                r = check_guids(a, &all, policy, *ret_bytes, *ret_n, changes, n_changes);
        return r < 0 ? r : n_fixed;
}
