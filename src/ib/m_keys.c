/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/m_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/scan.h"

#define MAX_COMPLAINTS 20
#define MAX_DIGITS     16
#define MAX_WORDS      3 /* of a line: one more than is valid */
#define MIN_PAIR       8 /* characters of a port GUID and its key: "0x1 0x1" and a newline */

struct item {
        struct guid port_guid;
        uint64_t key;
        unsigned line;
};

struct m_keys {
        unsigned n_owners;
        struct item *items; /* as in the file. They never move, because realloc() and qsort() would leave keys in other memory */
        const struct item **sorted; /* ascending GUID */
        size_t n;           /* 0: one key for all */
        uint64_t others;    /* the key of ports that are not in items */
        uint64_t common;
        size_t n_distinct;
};

/* --- the file -------------------------------------------------------------------------------------------------------- */

struct reader {
        const char *file; /* in the findings' arena */
        struct findings *findings;
        size_t n_complaints;
        struct m_keys *keys;
        unsigned single_line; /* the line with a single key; 0: none yet */
};

struct word {
        const char *text; /* not terminated */
        size_t n;
        unsigned column;
};

/* Does not show the line, which may contain the secret. */
static struct finding *complain(struct reader *r, unsigned line, unsigned column, const char *text)
{
        struct location where = { .file = r->file, .line = line, .column = column };

        r->n_complaints++;
        return findings_add(r->findings, FINDING_ERROR, FINDING_SECRET_SYNTAX, &where, "%s", text);
}

static bool parse_hex(struct reader *r, unsigned line, const struct word *w, uint64_t *ret)
{
        uint64_t value = 0;

        if (w->n < 3 || w->text[0] != '0' || (w->text[1] != 'x' && w->text[1] != 'X')) {
                (void) complain(r, line, w->column, "not a hexadecimal number with 0x in front");
                return false;
        }
        for (size_t i = 2; i < w->n; i++) {
                unsigned digit = digit_value(w->text[i]);

                if (digit > 15) {
                        (void) complain(r, line, w->column, "not a hexadecimal number: contains another character");
                        return false;
                }
                value = value << 4 | digit;
        }
        if (w->n - 2 > MAX_DIGITS) {
                (void) complain(r, line, w->column, "more than 64 bits (16 hexadecimal digits)");
                return false;
        }
        *ret = value;
        return true;
}

/* Splits a line at blanks and tabs; words after MAX_WORDS are ignored. */
static unsigned split(const char *line, size_t n, struct word ret[MAX_WORDS])
{
        unsigned n_words = 0;
        size_t i = 0;

        while (n_words < MAX_WORDS) {
                while (i < n && (line[i] == ' ' || line[i] == '\t'))
                        i++;
                if (i == n)
                        break;
                ret[n_words] = (struct word) { .text = line + i, .column = (unsigned) i + 1 };
                while (i < n && line[i] != ' ' && line[i] != '\t')
                        i++;
                ret[n_words].n = (size_t) (line + i - ret[n_words].text);
                n_words++;
        }
        return n_words;
}

static void read_single(struct reader *r, unsigned line, const struct word *w)
{
        if (r->keys->n > 0) {
                (void) complain(r, line, w->column, "a single number, in a file with lines of a port GUID and its key");
        } else if (r->single_line) {
                (void) complain(r, line, w->column, "a second key; the file has one key for all ports, or a port GUID before each "
                                                    "key");
        } else if (parse_hex(r, line, w, &r->keys->others) && r->keys->others == 0) {
                (void) complain(r, line, w->column, "0 means that there is no key; then this file is not needed");
        }
        r->single_line = line;
}

static void read_pair(struct reader *r, unsigned line, const struct word words[MAX_WORDS])
{
        struct item *item = &r->keys->items[r->keys->n];

        item->line = line;
        if (r->single_line)
                (void) complain(r, line, words[0].column, "a port GUID and its key, in a file with one key for all ports");
        else if (!parse_hex(r, line, &words[0], &item->port_guid.v) || !parse_hex(r, line, &words[1], &item->key))
                return;
        else if (item->port_guid.v == 0)
                (void) complain(r, line, words[0].column, "0 is not a port GUID");
        else
                r->keys->n++;
}

static void read_line(struct reader *r, unsigned number, const char *line, size_t n)
{
        struct word words[MAX_WORDS];
        unsigned n_words = split(line, n, words);

        if (n > 0 && line[n - 1] == '\r')
                (void) complain(r, number, (unsigned) n, "the line ends with a carriage return; lines end with a newline only");
        else if (n_words > 2)
                (void) complain(r, number, words[2].column, "more than a port GUID and its key");
        else if (n_words == 2)
                read_pair(r, number, words);
        else if (n_words == 1)
                read_single(r, number, &words[0]);
}

DEFINE_COMPARE(compare_guids, __typeof__(struct item *),
               ORDER((*a)->port_guid.v, (*b)->port_guid.v) ?: ORDER((*a)->line, (*b)->line))

static void sort(struct reader *r)
{
        struct m_keys *k = r->keys;

        for (size_t i = 0; i < k->n; i++)
                k->sorted[i] = &k->items[i];
        SORT(k->sorted, k->n, compare_guids);
        for (size_t i = 1; i < k->n && r->n_complaints < MAX_COMPLAINTS; i++)
                if (k->sorted[i]->port_guid.v == k->sorted[i - 1]->port_guid.v)
                        (void) complain(r, k->sorted[i]->line, 1, "a line above has a key for this port GUID already");
}

DEFINE_COMPARE(compare_keys, __typeof__(struct item *), ORDER((*a)->key, (*b)->key))

/* Counts how many ports have each key. */
static void count(struct m_keys *k)
{
        size_t most = 0, of_this = 0;

        SORT(k->sorted, k->n, compare_keys);
        for (size_t i = 0; i < k->n; i++) {
                uint64_t key = k->sorted[i]->key;

                if (key == 0)
                        continue;
                of_this = i > 0 && key == k->sorted[i - 1]->key ? of_this + 1 : 1;
                k->n_distinct += of_this == 1;
                if (of_this > most) {
                        most = of_this;
                        k->common = key;
                }
        }
        if (most == k->n)
                k->others = k->common;
        SORT(k->sorted, k->n, compare_guids);
}

static int parse(struct reader *r, const char *file_name, const char *bytes, size_t n)
{
        struct scan rest = { bytes, bytes + n }, line;

        r->keys = calloc(1, sizeof(*r->keys));
        r->file = arena_strdup(r->findings->arena, file_name);
        if (!r->keys || !r->file)
                return -ENOMEM;
        r->keys->n_owners = 1;
        r->keys->items = calloc(n / MIN_PAIR + 2, sizeof(*r->keys->items));
        r->keys->sorted = calloc(n / MIN_PAIR + 2, sizeof(struct item *));
        if (!r->keys->items || !r->keys->sorted)
                return -ENOMEM;
        for (unsigned number = 1; r->n_complaints < MAX_COMPLAINTS && scan_line(&rest, &line); number++)
                read_line(r, number, line.p, (size_t) (line.end - line.p));
        sort(r);
        if (r->n_complaints == 0 && !r->single_line && r->keys->n == 0)
                (void) complain(r, 0, 0, "the file contains no key");
        if (r->findings->out_of_memory)
                return -ENOMEM;
        return r->n_complaints > 0 ? -EBADMSG : 0;
}

int m_keys_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, struct m_keys **ret)
{
        struct reader r = { .findings = findings };
        int e = parse(&r, file_name, bytes, n);

        if (e == 0 && r.single_line) {
                r.keys->common = r.keys->others;
                r.keys->n_distinct = 1;
        } else if (e == 0) {
                count(r.keys);
        }
        if (e == 0)
                *ret = STEAL(r.keys);
        (void) m_keys_free(r.keys);
        return e;
}

int sm_key_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, uint64_t *ret)
{
        struct reader r = { .findings = findings };
        int e = parse(&r, file_name, bytes, n);

        if (e == 0 && !r.single_line) {
                (void) complain(&r, r.keys->items[0].line, 1, "a port GUID and a key, but this file must contain one key only");
                e = findings->out_of_memory ? -ENOMEM : -EBADMSG;
        }
        if (e == 0)
                *ret = r.keys->others;
        (void) m_keys_free(r.keys);
        return e;
}

struct m_keys *m_keys_ref(struct m_keys *k)
{
        if (k)
                k->n_owners++;
        return k;
}

struct m_keys *m_keys_free(struct m_keys *k)
{
        if (!k || --k->n_owners > 0)
                return NULL;
        if (k->items)
                explicit_bzero(k->items, (k->n + 1) * sizeof(*k->items)); /* also what was read of a wrong line */
        free(k->items);
        free(k->sorted);
        explicit_bzero(k, sizeof(*k));
        free(k);
        return NULL;
}

/* --- looking up ------------------------------------------------------------------------------------------------------ */

static const struct item *find(const struct m_keys *k, struct guid port_guid)
{
        size_t i = k ? LOWER_BOUND(item, k->sorted, k->n, (*item)->port_guid.v < port_guid.v) : 0;

        return k && i < k->n && k->sorted[i]->port_guid.v == port_guid.v ? k->sorted[i] : NULL;
}

uint64_t m_keys_get(const struct m_keys *k, struct guid port_guid)
{
        const struct item *item = find(k, port_guid);

        if (item)
                return item->key;
        return k ? k->others : 0;
}

enum m_key_source m_keys_source(const struct m_keys *k, struct guid port_guid)
{
        if (!k)
                return M_KEY_NO_FILE;
        return find(k, port_guid) || k->others ? M_KEY_IN_FILE : M_KEY_NOT_NAMED;
}

DEFINE_WORDS(m_key_source_to_string, enum m_key_source, "",
             [M_KEY_NO_FILE] = "or it has an M_Key, and m_key_file names none",
             [M_KEY_IN_FILE] = "or its M_Key is not the one in m_key_file",
             [M_KEY_NOT_NAMED] = "or it has an M_Key, and m_key_file has none for it")

const char *m_key_source_of_reader(enum m_key_source source, bool counted)
{
        static const char *const likely[] = {
                [M_KEY_NO_FILE] = "answers reads but not writes: most likely it has an M_Key, and m_key_file names none",
                [M_KEY_IN_FILE] = "answers reads but not writes: most likely its M_Key is not the one in m_key_file",
                [M_KEY_NOT_NAMED] = "answers reads but not writes: most likely it has an M_Key, and m_key_file has none for it",
        };
        static const char *const certain[] = {
                [M_KEY_NO_FILE] = "answers reads but not writes: it has an M_Key (its M_KeyViolations rose at pkeyd's write), and "
                                  "m_key_file names none",
                [M_KEY_IN_FILE] = "answers reads but not writes: its M_Key is not the one in m_key_file (its M_KeyViolations rose "
                                  "at pkeyd's write)",
                [M_KEY_NOT_NAMED] = "answers reads but not writes: it has an M_Key (its M_KeyViolations rose at pkeyd's write), "
                                    "and m_key_file has none for it",
        };

        return counted ? WORD(certain, source, "") : WORD(likely, source, "");
}

uint64_t m_keys_common(const struct m_keys *k)
{
        return k ? k->common : 0;
}

size_t m_keys_n_distinct(const struct m_keys *k)
{
        return k ? k->n_distinct : 0;
}

bool m_keys_equal(const struct m_keys *a, const struct m_keys *b)
{
        if (!a || !b)
                return a == b;
        if (a->n != b->n || a->others != b->others)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (a->sorted[i]->port_guid.v != b->sorted[i]->port_guid.v || a->sorted[i]->key != b->sorted[i]->key)
                        return false;
        return true;
}
