/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/hostlist.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct reader {
        struct arena *arena;
        const char *text;
        size_t n, at;
        struct hostlist_error *error;
        struct hostlist *list;
        size_t min_length; /* of the names that it means */
};

static int fail(struct reader *r, size_t offset, const char *text, const char *hint)
{
        *r->error = (struct hostlist_error) { offset, text, hint };
        return text ? -EBADMSG : -ENOMEM;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

/* A character in the words of a message. */
static const char *show_char(struct reader *r, char c)
{
        if (c == ' ')
                return "a space";
        return arena_printf(r->arena, c > 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", (unsigned char) c) ?: "a character";
}

/* Reads a number in brackets: its value and its number of digits. */
static int read_number(struct reader *r, uint64_t *ret, size_t *ret_digits)
{
        size_t start = r->at;
        uint64_t v = 0;

        while (r->at < r->n && is_digit(r->text[r->at])) {
                if (r->at - start >= HOSTLIST_MAX_DIGITS)
                        return fail(r, start, arena_printf(r->arena, "a number of more than %d digits", HOSTLIST_MAX_DIGITS), NULL);
                v = v * 10 + (uint64_t) (r->text[r->at++] - '0');
        }
        if (r->at == start) {
                if (r->at < r->n && r->text[r->at] == '[')
                        return fail(r, start, "brackets within brackets", NULL);
                return fail(r, start, "a number is missing between the brackets (accepted: digits, as in [01-18,20])", NULL);
        }
        *ret = v;
        *ret_digits = r->at - start;
        return 0;
}

/* As in pdsh and Slurm, the first number of a range gives the width, and larger numbers have more digits: 0998-10002 means 0998 to
 * 9999 and 10000 to 10002. If the last number is padded to another width, or shorter than a padded first one, the range is
 * ambiguous. */
static int check_padding(struct reader *r, size_t start, const struct hostlist_range *range, size_t digits_first,
                         size_t digits_last)
{
        bool padded_first = digits_first > 1 && r->text[start] == '0';
        bool padded_last = digits_last > 1 && r->text[r->at - digits_last] == '0';
        int width = (int) MAX(digits_first, digits_last);

        if (digits_first == digits_last || (digits_last > digits_first && !padded_last) || (!padded_first && !padded_last))
                return 0;
        return fail(r, start,
                    arena_printf(r->arena, "the ends of the range %.*s differ in their zero padding",
                                 (int) (r->at - start), r->text + start),
                    arena_printf(r->arena, "write %0*" PRIu64 "-%0*" PRIu64 " or %" PRIu64 "-%" PRIu64, width,
                                 range->first, width, range->last, range->first, range->last));
}

/* Adds a range in parts that have one width each. */
static void add_range(struct hostlist_token *token, const struct hostlist_range *range, size_t digits_first, size_t digits_last)
{
        uint64_t first = range->first, limit = 1;

        for (size_t digits = 1; digits <= digits_last; digits++) {
                limit *= 10;
                if (digits < digits_first)
                        continue;
                token->ranges[token->n_ranges++] = (struct hostlist_range) { first, MIN(range->last, limit - 1),
                                                                             (uint8_t) digits };
                first = limit;
        }
}

static int read_range(struct reader *r, struct hostlist_token *token)
{
        struct hostlist_range range = {};
        size_t start = r->at, digits_first, digits_last;
        int e = read_number(r, &range.first, &digits_first);

        if (e < 0)
                return e;
        range.last = range.first;
        digits_last = digits_first;
        if (r->at < r->n && r->text[r->at] == '-') {
                r->at++;
                e = read_number(r, &range.last, &digits_last);
        }
        e = e ?: check_padding(r, start, &range, digits_first, digits_last);
        if (e < 0)
                return e;
        if (range.first > range.last)
                return fail(r, start,
                            arena_printf(r->arena, "the range %.*s runs backwards", (int) (r->at - start), r->text + start),
                            arena_printf(r->arena, "write %.*s-%.*s", (int) digits_last, r->text + r->at - digits_last,
                                         (int) digits_first, r->text + start));
        add_range(token, &range, digits_first, digits_last);
        return 0;
}

DEFINE_COMPARE(compare_ranges, struct hostlist_range, ORDER(a->width, b->width) ?: ORDER(a->first, b->first))

static void sort_and_merge_ranges(struct hostlist_token *t)
{
        uint32_t used = 0;

        qsort(t->ranges, t->n_ranges, sizeof(*t->ranges), compare_ranges);
        for (uint32_t i = 1; i < t->n_ranges; i++) {
                struct hostlist_range *last = &t->ranges[used], *next = &t->ranges[i];

                if (next->width == last->width && next->first <= last->last + 1)
                        last->last = MAX(last->last, next->last);
                else
                        t->ranges[++used] = *next;
        }
        t->n_ranges = used + 1;
}

static uint64_t count_names(const struct hostlist_token *t)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < t->n_ranges; i++)
                n += t->ranges[i].last - t->ranges[i].first + 1;
        return n;
}

/* Reads from after the opening bracket to after the closing one. */
static int read_brackets(struct reader *r, struct hostlist_token *token)
{
        size_t open = r->at - 1, commas = 0, i;
        int e;

        for (i = r->at; i < r->n && r->text[i] != ']'; i++)
                commas += r->text[i] == ',';
        if (i == r->n)
                return fail(r, open, "the bracket is not closed", NULL);
        if (commas >= HOSTLIST_MAX_RANGES)
                return fail(r, open, arena_printf(r->arena, "more than %d ranges between brackets", HOSTLIST_MAX_RANGES), NULL);
        token->kind = HOSTLIST_RANGES;
        /* no range has more parts than characters */
        token->ranges = arena_new_array(r->arena, struct hostlist_range, i - r->at + 1);
        if (!token->ranges)
                return -ENOMEM;
        for (;;) {
                e = read_range(r, token);
                if (e < 0)
                        return e;
                if (r->text[r->at] == ']')
                        break;
                if (r->text[r->at] != ',')
                        return fail(r, r->at, arena_printf(r->arena, "%s between brackets (accepted: numbers, '-' and "
                                                           "',')", show_char(r, r->text[r->at])), NULL);
                r->at++;
        }
        r->at++;
        sort_and_merge_ranges(token);
        r->min_length++;
        if (__builtin_mul_overflow(r->list->n_names, count_names(token), &r->list->n_names))
                r->list->n_names = UINT64_MAX;
        return 0;
}

static int read_literal(struct reader *r, struct hostlist_token *token)
{
        size_t start = r->at;

        while (r->at < r->n && is_name_char(r->text[r->at]))
                r->at++;
        if (r->at == start)
                return fail(r, start,
                            r->text[start] == ']' ?
                                    "a ']' without a '['" :
                                    arena_printf(r->arena, "%s is not allowed in a name (accepted: letters, digits, '-', "
                                                 "'_', '.', ranges in brackets, the globs * and ?)", show_char(r, r->text[start])),
                            NULL);
        token->kind = HOSTLIST_LITERAL;
        token->length = r->at - start;
        token->literal = arena_strndup(r->arena, r->text + start, token->length);
        r->min_length += token->length;
        return token->literal ? 0 : -ENOMEM;
}

static int read_token(struct reader *r, struct hostlist_token *token)
{
        char c = r->text[r->at];

        if (c == '*' || c == '?') {
                r->at++;
                r->list->n_names = 0; /* and stays 0 */
                token->kind = c == '*' ? HOSTLIST_ANY : HOSTLIST_ONE;
                return 0;
        }
        if (c == '[') {
                r->at++;
                return read_brackets(r, token);
        }
        return read_literal(r, token);
}

int hostlist_parse(struct arena *a, const char *text, size_t n, struct hostlist_error *reterr, struct hostlist **ret)
{
        struct reader r = { .arena = a, .text = text, .n = n, .error = reterr };
        int e;

        r.list = arena_new_object(a, struct hostlist);
        if (!r.list)
                return -ENOMEM;
        r.list->text = arena_strndup(a, text, n);
        r.list->tokens = arena_new_array(a, struct hostlist_token, MIN(n + 1, (size_t) HOSTLIST_MAX_TOKENS));
        r.list->n_names = 1;
        if (!r.list->text || !r.list->tokens)
                return -ENOMEM;
        if (n == 0)
                return fail(&r, 0, "an empty name", NULL);
        while (r.at < n) {
                if (r.list->n_tokens == HOSTLIST_MAX_TOKENS)
                        return fail(&r, r.at, arena_printf(a, "more than %d parts in one name", HOSTLIST_MAX_TOKENS), NULL);
                e = read_token(&r, &r.list->tokens[r.list->n_tokens++]);
                if (e < 0)
                        return e;
        }
        if (r.min_length > HOSTLIST_MAX_LENGTH)
                return fail(&r, 0, arena_printf(a, "a name of more than %d characters, the most that a NodeDescription can hold",
                                                HOSTLIST_MAX_LENGTH), NULL);
        *ret = r.list;
        return 0;
}

/* The first range that has this width and does not end before v, or has a larger width; n_ranges: there is none. */
static uint32_t find_range(const struct hostlist_token *t, uint64_t v, uint8_t width)
{
        return LOWER_BOUND(range, t->ranges, t->n_ranges, range->width < width || (range->width == width && range->last < v));
}

/* Returns whether a range contains v, a number of `width` digits. */
static bool in_ranges(const struct hostlist_token *t, uint64_t v, uint8_t width)
{
        uint32_t i = find_range(t, v, width);

        return i < t->n_ranges && t->ranges[i].width == width && t->ranges[i].first <= v;
}

/* Marks in `next` each place where a number that begins at `at` may end. */
static void match_number(const struct hostlist_token *t, const char *name, size_t at, bool *next)
{
        uint64_t v = 0;

        for (uint8_t digits = 1; digits <= HOSTLIST_MAX_DIGITS && is_digit(name[at + digits - 1]); digits++) {
                v = v * 10 + (uint64_t) (name[at + digits - 1] - '0');
                if (in_ranges(t, v, digits))
                        next[at + digits] = true;
        }
}

/* Marks in `next` each place where this token may end if it begins at place `at` of the name. */
static void match_token(const struct hostlist_token *t, const char *name, size_t length, size_t at, bool *next)
{
        switch (t->kind) {
        case HOSTLIST_LITERAL:
                if (length - at >= t->length && memcmp(name + at, t->literal, t->length) == 0)
                        next[at + t->length] = true;
                return;
        case HOSTLIST_RANGES:
                match_number(t, name, at, next);
                return;
        case HOSTLIST_ONE:
                if (at < length)
                        next[at + 1] = true;
                return;
        case HOSTLIST_ANY:
                memset(next + at, true, length - at + 1);
                return;
        }
}

/*
 * hostlist_after() returns a bound: each name m that matches and comes after `name` is the bound or comes after it.
 *
 * The tokens of the hostlist cut m into pieces. Take the last cut up to which m and `name` are equal. A piece follows, because m,
 * which comes after `name`, does not end there. The rest of `name` does not begin with this piece, because the cut is the last
 * one; m comes after `name`, so the piece comes after the rest of `name`. Matching `name` reaches the same token at the same
 * place. So m does not come before `name` up to this place followed by the least piece of this token that comes after the rest of
 * `name`. The bound is the least such text for every token and place that matching `name` reaches.
 */
struct bound {
        const char *name;
        char *least;
        bool found;
};

static void offer(struct bound *b, size_t at, const char *piece)
{
        char offered[HOSTLIST_MAX_BOUND];
        size_t n = strlen(piece) + 1;

        assert(at + n <= sizeof(offered));
        memcpy(offered, b->name, at);
        memcpy(offered + at, piece, n);
        if (!b->found || strcmp(offered, b->least) < 0)
                memcpy(b->least, offered, at + n);
        b->found = true;
}

/* Offers the least number of each width that comes after the rest of the name. If the rest begins with `width` digits, this is at
 * least their value plus 1. Otherwise it is at least the leading digits of the rest, increased by 1 if the byte after them comes
 * after all digits, and filled up with zeros. */
static void offer_numbers(struct bound *b, size_t at, const struct hostlist_token *t)
{
        uint8_t width, widest = t->ranges[t->n_ranges - 1].width;
        char number[HOSTLIST_MAX_DIGITS + 2];
        bool has_digits = true; /* the rest begins with `width` digits */
        uint64_t v = 0, least;
        uint32_t i;

        for (width = 1; width <= widest; width++) {
                char c = has_digits ? b->name[at + width - 1] : '0';

                has_digits = has_digits && is_digit(c);
                v = v * 10 + (is_digit(c) ? (uint64_t) (c - '0') : (unsigned char) c > '9' ? 10 : 0);
                least = has_digits ? v + 1 : v;
                i = find_range(t, least, width);
                if (i == t->n_ranges || t->ranges[i].width != width)
                        continue;
                (void) snprintf(number, sizeof(number), "%0*" PRIu64, width, MAX(t->ranges[i].first, least));
                offer(b, at, number);
        }
}

static void offer_pieces(struct bound *b, size_t at, const struct hostlist_token *t)
{
        switch (t->kind) {
        case HOSTLIST_LITERAL:
                if (strcmp(t->literal, b->name + at) > 0)
                        offer(b, at, t->literal);
                return;
        case HOSTLIST_RANGES:
                offer_numbers(b, at, t);
                return;
        case HOSTLIST_ONE:
                offer(b, at, (char[]) { (char) (b->name[at] + 1), '\0' });
                return;
        case HOSTLIST_ANY: /* any next name may match */
                b->least[0] = '\0';
                b->found = true;
                return;
        }
}

/* Follows all places at once instead of backtracking, so that the time is bounded for any name and pattern. With b, computes the
 * bound instead of the result. */
static bool match_tokens(const struct hostlist *h, const char *name, size_t length, struct bound *b)
{
        bool places[2][HOSTLIST_MAX_NAME + 1] = { { true } };

        for (uint32_t i = 0; i < h->n_tokens; i++) {
                bool *here = places[i % 2], *next = places[(i + 1) % 2], any = false;

                memset(next, false, length + 1);
                for (size_t at = 0; at <= length; at++) {
                        if (!here[at])
                                continue;
                        any = true;
                        match_token(&h->tokens[i], name, length, at, next);
                        if (b) {
                                offer_pieces(b, at, &h->tokens[i]);
                                if (b->found && !b->least[0])
                                        return false;
                        }
                        if (h->tokens[i].kind == HOSTLIST_ANY)
                                break;
                }
                if (!any)
                        return false;
        }
        return places[h->n_tokens % 2][length];
}

bool hostlist_match(const struct hostlist *h, const char *name)
{
        size_t length = strnlen(name, HOSTLIST_MAX_NAME + 1);

        if (h->n_tokens == 1 && h->tokens[0].kind == HOSTLIST_LITERAL)
                return strcmp(h->tokens[0].literal, name) == 0;
        return length <= HOSTLIST_MAX_NAME && match_tokens(h, name, length, NULL);
}

bool hostlist_after(const struct hostlist *h, const char *name, char ret[HOSTLIST_MAX_BOUND])
{
        struct bound b = { .name = name, .least = ret };
        size_t length = strnlen(name, HOSTLIST_MAX_NAME + 1);

        ret[0] = '\0';
        if (length > HOSTLIST_MAX_NAME)
                return true;
        (void) match_tokens(h, name, length, &b);
        return b.found;
}

uint32_t hostlist_next_name(const struct hostlist *h, const struct subnet *subnet, uint32_t from)
{
        char after[HOSTLIST_MAX_BOUND];
        uint32_t i = from;

        while (i < subnet->n_by_name) {
                const char *name = subnet_named_node(subnet, i)->name;

                if (hostlist_match(h, name))
                        return i;
                if (!hostlist_after(h, name, after))
                        return subnet->n_by_name;
                i = subnet_next_name(subnet, i + 1, after);
        }
        return i;
}

static void write_number(const struct hostlist_token *t, uint64_t index, char ret[HOSTLIST_MAX_DIGITS + 2])
{
        uint32_t i;

        for (i = 0; i + 1 < t->n_ranges; i++) {
                uint64_t n = t->ranges[i].last - t->ranges[i].first + 1;

                if (index < n)
                        break;
                index -= n;
        }
        (void) snprintf(ret, HOSTLIST_MAX_DIGITS + 2, "%0*" PRIu64, t->ranges[i].width, t->ranges[i].first + index);
}

void hostlist_name(const struct hostlist *h, uint64_t index, char ret[HOSTLIST_MAX_NAME])
{
        char numbers[HOSTLIST_MAX_TOKENS][HOSTLIST_MAX_DIGITS + 2];
        size_t used = 0;

        assert(h->n_names > 0);
        for (uint32_t i = h->n_tokens; i-- > 0;) {
                uint64_t n;

                if (h->tokens[i].kind != HOSTLIST_RANGES)
                        continue;
                n = count_names(&h->tokens[i]);
                write_number(&h->tokens[i], index % n, numbers[i]);
                index /= n;
        }
        ret[0] = '\0';
        for (uint32_t i = 0; i < h->n_tokens; i++) {
                const char *part = h->tokens[i].kind == HOSTLIST_RANGES ? numbers[i] : h->tokens[i].literal;

                used += (size_t) snprintf(ret + used, HOSTLIST_MAX_NAME - used, "%s", part);
                used = MIN(used, (size_t) HOSTLIST_MAX_NAME - 1);
        }
}
