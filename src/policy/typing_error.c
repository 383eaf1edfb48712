/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/typing_error.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "policy/policy.h"
#include "policy/policy_keys.h"
#include "policy/selector.h"
#include "util/duration.h"
#include "util/text.h"
#include "util/yaml_tree.h"

/* The bytes that one search may parse. */
#define MAX_PARSED (64u << 20)

/* Characters that are tried at each place: those with a meaning in the file, two digits, so that none is certain, and a letter; and
 * at a word all digits, and letters of the three kinds that make a difference: hexadecimal, not hexadecimal, and the x of 0x. Other
 * letters are tried where they make a known word or a duration. */
static const char alphabet[] = " \n:-,[]{}\"'#/@*.12k", alphabet_at_word[] = "0123456789afkx";

static const char *const values[] = {
        "full", "limited", "both", "none", "true", "false", "all", "unlimited",
};

/* `removed` bytes at `at` become n_added ones. */
struct edit {
        size_t at, removed;
        char added[2];
        size_t n_added;
};

struct search {
        const char *file, *bytes; /* borrows */
        size_t n;
        size_t error_line;        /* where the line of the error begins */
        size_t first_line;        /* where the first line begins of which all edits are tried */
        char *edited;             /* owned; n + 2 bytes */
        size_t n_parsed;          /* bytes so far */
        struct arena *arena;      /* owned; of the tree; NULL: no edit was accepted so far */
        struct yaml_tree_node *tree;
        struct edit edit;         /* the plainest one that was accepted */
        bool differs;             /* an accepted edit gives the file another meaning than the first one */
};

static bool is_over(const struct search *s)
{
        return s->differs || s->n_parsed > MAX_PARSED;
}

/* ---- one edit ----------------------------------------------------------------------------------------------------- */

static int parse_policy(struct search *s, size_t n)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct policy *policy;

        return a ? policy_parse(a, s->file, s->edited, n, &findings, &policy) : -ENOMEM;
}

static int parse_tree(const struct search *s, size_t n, struct arena *a, struct yaml_tree_node **ret)
{
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct yaml_tree tree = {};
        struct report report;
        int r;

        report_init(&report, &findings);
        r = yaml_tree_finish(&tree, yaml_tree_parse(&tree, a, s->file, s->edited, n, NULL, &report));
        if (r == 0)
                *ret = tree.root;
        return r;
}

/* Returns whether the edit can become a correction: it is within a line of which all edits are tried, and adds no glob, which would
 * make members of hosts that the file does not name. An edit at the end of the line before only shows that the correction is not
 * certain. */
static bool is_possible(const struct search *s, const struct edit *e)
{
        return e->at >= s->first_line && !memchr(s->bytes + e->at, '\n', e->removed) && !memchr(e->added, '\n', e->n_added) &&
               !memchr(e->added, '*', e->n_added);
}

/* How plain the edit is as a correction: 0 is the plainest, because a person sees what was wrong in the line of the error. */
static int rank(const struct search *s, const struct edit *e)
{
        return !is_possible(s, e) ? 2 : e->at < s->error_line ? 1 : 0;
}

/* The edit was accepted: keeps it if it is the plainest so far, and compares its tree with that of the first one. */
static int accept(struct search *s, const struct edit *e, size_t n)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct yaml_tree_node *tree;
        int r = a ? parse_tree(s, n, a, &tree) : -ENOMEM;

        if (r < 0)
                return r;
        if (!s->arena || rank(s, e) < rank(s, &s->edit))
                s->edit = *e;
        if (s->arena) {
                s->differs = !yaml_tree_equal(s->tree, tree);
                return 0;
        }
        s->arena = STEAL(a);
        s->tree = tree;
        return 0;
}

static int try_edit(struct search *s, const struct edit *e)
{
        size_t n = s->n - e->removed + e->n_added, rest = e->at + e->removed;
        int r;

        if (is_over(s))
                return 0;
        memcpy(s->edited, s->bytes, e->at);
        memcpy(s->edited + e->at, e->added, e->n_added);
        memcpy(s->edited + e->at + e->n_added, s->bytes + rest, s->n - rest);
        s->n_parsed += n;
        r = parse_policy(s, n);
        if (r == 0)
                return accept(s, e, n);
        return r == -EBADMSG ? 0 : r;
}

/* ---- all edits at a place ----------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
        return isalnum((unsigned char) c) || c == '_';
}

#define IS_ONE_OF(word, words) text_is_one_of((word), (words), ELEMENTS(words))

static bool is_known(const char *word)
{
        uint64_t unused;

        return selector_is_keyword(word) || IS_ONE_OF(word, values) || IS_ONE_OF(word, policy_keys) ||
               IS_ONE_OF(word, policy_pool_keys) || IS_ONE_OF(word, policy_partition_keys) || IS_ONE_OF(word, policy_ipoib_keys) ||
               IS_ONE_OF(word, policy_group_keys) || !duration_problem(word, &unused);
}

/* Returns whether the character is within a known word after the edit. */
static bool makes_word(const struct search *s, size_t at, size_t removed, char c)
{
        char word[16];
        size_t from = at, to = at + removed, n;

        while (from > 0 && is_word(s->bytes[from - 1]))
                from--;
        while (to < s->n && is_word(s->bytes[to]))
                to++;
        n = to - from - removed + 1;
        if (n >= sizeof(word) || !is_word(c))
                return false;
        memcpy(word, s->bytes + from, at - from);
        word[at - from] = c;
        memcpy(word + (at - from) + 1, s->bytes + at + removed, to - at - removed);
        word[n] = '\0';
        return is_known(word);
}

/* Returns whether a '#' here would begin a comment after a value. A line that would become a comment as a whole does not count:
 * whoever removed its '#' wanted the line. */
static bool begins_comment(const struct search *s, size_t at, size_t removed)
{
        size_t from = at;

        if (at == 0 || s->bytes[at - 1] != ' ' || at + removed >= s->n || s->bytes[at + removed] != ' ')
                return false;
        while (from > 0 && s->bytes[from - 1] == ' ')
                from--;
        return from > 0 && s->bytes[from - 1] != '\n';
}

static bool is_candidate(const struct search *s, size_t at, size_t removed, char c)
{
        bool at_word = (at > 0 && is_word(s->bytes[at - 1])) || (at + removed < s->n && is_word(s->bytes[at + removed]));

        if (c == '#')
                return begins_comment(s, at, removed);
        return strchr(alphabet, c) || (at_word && strchr(alphabet_at_word, c)) || makes_word(s, at, removed, c);
}

/* Tries each candidate in place of `removed` characters. */
static int try_characters(struct search *s, size_t at, size_t removed)
{
        int r = 0;

        for (char c = '\n'; c <= 'z' && r == 0; c = c == '\n' ? ' ' : (char) (c + 1))
                /* a character before the same character makes the same text as after it */
                if ((at >= s->n || c != s->bytes[at]) && is_candidate(s, at, removed, c))
                        r = try_edit(s, &(struct edit) { at, removed, { c }, 1 });
        return r;
}

static int try_swap(struct search *s, size_t at)
{
        char first = s->bytes[at], second = at + 1 < s->n ? s->bytes[at + 1] : first;

        if (first == second || (first & 0x80) || (second & 0x80))
                return 0;
        return try_edit(s, &(struct edit) { at, 2, { second, first }, 2 });
}

static int try_place(struct search *s, size_t at)
{
        int r = 0;

        if (at < s->n && (s->bytes[at] & 0x80)) /* part of a character of several bytes */
                return 0;
        if (at < s->n && (at == 0 || s->bytes[at] != s->bytes[at - 1]))
                r = try_edit(s, &(struct edit) { .at = at, .removed = 1 });
        if (at < s->n)
                r = r ?: try_characters(s, at, 1) ?: try_swap(s, at);
        return r ?: try_characters(s, at, 0);
}

/* ---- where -------------------------------------------------------------------------------------------------------- */

/* The beginning of the line before the one that begins at `from`. */
static size_t line_before(const struct search *s, size_t from)
{
        for (from -= from > 0; from > 0 && s->bytes[from - 1] != '\n'; from--)
                ;
        return from;
}

static size_t line_end(const struct search *s, size_t from)
{
        while (from < s->n && s->bytes[from] != '\n')
                from++;
        return from;
}

/* Returns whether the line has nothing, or only a comment. */
static bool is_empty_line(const struct search *s, size_t from)
{
        while (from < s->n && s->bytes[from] == ' ')
                from++;
        return from >= s->n || s->bytes[from] == '\n' || s->bytes[from] == '\r' || s->bytes[from] == '#';
}

/* The lines in which a typing error can have caused an error in this line: it, and the one before it that is not empty, with the
 * line feed before that. */
static void find_window(struct search *s, unsigned line, size_t *ret_from, size_t *ret_to)
{
        size_t from = 0;

        for (unsigned i = 1; i < line && line_end(s, from) < s->n; i++)
                from = line_end(s, from) + 1;
        s->error_line = from;
        *ret_to = line_end(s, from);
        do
                from = line_before(s, from);
        while (from > 0 && is_empty_line(s, from));
        s->first_line = from;
        *ret_from = from - (from > 0);
}

/* The place after this one; skips lines that are empty or only a comment. */
static size_t next_place(const struct search *s, size_t at)
{
        while (at < s->n && s->bytes[at] == '\n' && is_empty_line(s, at + 1))
                at = line_end(s, at + 1);
        return at + 1;
}

/* ---- the search --------------------------------------------------------------------------------------------------- */

/* Returns whether the parser reports this error about the form of a text, so that the typing error may be elsewhere. */
static bool is_searched(enum finding_code code)
{
        switch (code) {
        case FINDING_YAML_SYNTAX:
        case FINDING_YAML_ENCODING:
        case FINDING_YAML_TYPE:
        case FINDING_POLICY_NAME:
        case FINDING_POLICY_P_KEY:
        case FINDING_POLICY_OWNS:
        case FINDING_POLICY_POOL:
        case FINDING_POLICY_SELECTOR:
        case FINDING_POLICY_HOSTLIST:
        case FINDING_POLICY_GUID:
                return true;
        default:
                return false;
        }
}

/* The first error of the file; NULL if there is none, or if any error is one that is not searched for. */
static struct finding *find_error(const char *file, const struct findings *findings)
{
        struct finding *first = NULL;

        for (size_t i = 0; i < findings->n; i++) {
                struct finding *item = &findings->items[i];

                if (item->severity != FINDING_ERROR || !item->where.file || strcmp(item->where.file, file) != 0)
                        continue;
                if (item->fix.text || item->where.line == 0 || !is_searched(item->code))
                        return NULL;
                first = first ?: item;
        }
        return first;
}

/* The edit as a correction: its place in lines and characters. */
static int describe(const struct search *s, struct arena *a, struct finding_fix *ret)
{
        const struct edit *e = &s->edit;
        struct finding_fix fix = { .line = 1, .column = 1, .length = (unsigned) e->removed };

        for (size_t i = 0; i < e->at; i++)
                if (s->bytes[i] == '\n') {
                        fix.line++;
                        fix.column = 1;
                } else
                        fix.column += (s->bytes[i] & 0xc0) != 0x80;
        fix.text = arena_strndup(a, e->added, e->n_added);
        *ret = fix;
        return fix.text ? 0 : -ENOMEM;
}

int typing_error_find(const char *file, const char *bytes, size_t n, struct findings *findings)
{
        size_t mark = yaml_source_mark(bytes, n);
        struct search s = { .file = file, .bytes = bytes + mark, .n = n - mark };
        struct finding *error = find_error(file, findings);
        size_t at, to;
        int r = 0;

        if (!error)
                return 0;
        s.edited = malloc(s.n + 2);
        if (!s.edited)
                return -ENOMEM;
        find_window(&s, error->where.line, &at, &to);
        for (; at <= to && r == 0 && !is_over(&s); at = next_place(&s, at))
                r = try_place(&s, at);
        if (r == 0 && s.arena && !is_over(&s) && is_possible(&s, &s.edit))
                r = describe(&s, findings->arena, &error->fix);
        free(s.edited);
        arena_free(s.arena);
        return r;
}
