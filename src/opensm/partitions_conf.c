/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OpenSM reads a line into a buffer, cuts it into strings with NULs and walks over them, sometimes past the end of the line, where
 * it reads what an earlier line left. To read the same, this parser walks over a buffer of the same size in the same way.
 */
#include "opensm/partitions_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opensm/partitions_conf_reader.h"
#include "util/vector.h"
#include "util/yaml_source.h"

#define MAX_SOURCE_LINE 160

/* Keeps the line to be printed below a finding, unless it is too long to help. */
static int remember_source_line(struct reader *r, const char *bytes, size_t n)
{
        r->source_line = NULL;
        if (n > MAX_SOURCE_LINE)
                return 0;
        r->source_line = arena_printable(r->arena, bytes, n);
        return r->source_line ? 0 : -ENOMEM;
}

/* ---- partitions ------------------------------------------------------------------------------------------------ */

/* OpenSM sorts its partitions by the P_Key in network byte order, compared as if it were in host byte order. */
static uint16_t sort_key(uint16_t base)
{
        return (uint16_t) (base << 8 | base >> 8);
}

static struct partitions_conf_partition *find_by_name(struct reader *r, const char *name)
{
        struct partitions_conf_partition *found = NULL;

        for (uint32_t i = 0; i < r->conf->n_partitions; i++) {
                struct partitions_conf_partition *p = &r->conf->partitions[i];

                /* OpenSM names a nameless partition by its P_Key, which no lookup finds: names do not begin with a digit */
                if (*p->name && strncmp(p->name, name, NAME_SIZE) == 0 &&
                    (!found || sort_key(p->base) < sort_key(found->base)))
                        found = p;
        }
        return found;
}

/* The next P_Key that OpenSM assigns; 0: none is left. */
static uint16_t assign_base(struct reader *r)
{
        while (r->counter < P_KEY_DEFAULT_BASE - 1)
                if (r->by_base[++r->counter] == 0)
                        return r->counter;
        return 0;
}

/* The partition with this base, which is created if needed. NULL: out of memory. */
static struct partitions_conf_partition *get_partition(struct reader *r, const char *name, uint16_t base, size_t at)
{
        struct partitions_conf *c = r->conf;
        struct partitions_conf_partition *p;

        if (r->by_base[base])
                return &c->partitions[r->by_base[base] - 1];
        if (VECTOR_GROW(r->arena, c->partitions, c->n_partitions, r->allocated) < 0)
                return NULL;
        p = &c->partitions[c->n_partitions];
        *p = (struct partitions_conf_partition) { .base = base };
        p->where = at == NOWHERE ? (struct location) { .file = c->file } : partitions_conf_place(r, at).where;
        name = name ?: "";
        p->name = arena_strndup(r->arena, name, MIN(strlen(name), (size_t) NAME_SIZE - 1));
        if (!p->name)
                return NULL;
        r->by_base[base] = ++c->n_partitions;
        return p;
}

/* ---- definitions ----------------------------------------------------------------------------------------------- */

static enum line_ends line_ends_of(const char *bytes, size_t n)
{
        if (memmem(bytes, n, "\r\n", 2))
                return LINE_ENDS_CR_LF;
        return memchr(bytes, '\r', n) && !memchr(bytes, '\n', n) ? LINE_ENDS_CR : LINE_ENDS_LF;
}

/* Adds a hint if the file has a byte order mark or CRs, which editors hide and OpenSM reads as text. Returns whether it did. */
static bool hint_invisible(struct reader *r)
{
        if (r->has_byte_order_mark && r->line_number == 1)
                report_hint(&r->report, "it begins with a byte order mark, which OpenSM reads as text: "
                            "sed -i '1s/^\\xef\\xbb\\xbf//' %s", r->conf->file);
        else if (r->line_ends == LINE_ENDS_CR_LF)
                report_hint(&r->report, "its lines end with CR LF, which OpenSM does not accept: sed -i 's/\\r$//' %s",
                            r->conf->file);
        else if (r->line_ends == LINE_ENDS_CR)
                report_hint(&r->report, "its lines end with CR alone, so OpenSM reads the file as one line: sed -i 's/\\r/\\n/g' %s",
                            r->conf->file);
        else
                return false;
        return true;
}

/* OpenSM drops the file and uses its default. hint NULL: none. */
static int discard(struct reader *r, size_t position, const char *why, const char *hint)
{
        partitions_conf_warn(r, position, FINDING_OPENSM_DISCARDED, "%s: OpenSM drops the whole file, makes every port a full "
                             "member of the default partition and removes all other partitions", why);
        if (!hint_invisible(r) && hint)
                report_hint(&r->report, "%s", hint);
        return -ENOEXEC;
}

/* Returns whether the current line, in which another definition is still open, has the head of a definition: a colon in front of
 * any semicolon or comment, which does not belong to a GUID such as 0002:c903:000e:0b72. */
static bool begins_another(const struct reader *r, const struct token *t)
{
        return r->source_line && r->source_line[strcspn(r->source_line, ":;#")] == ':' && r->open.line < r->line_number &&
               t->name[strspn(t->name, "0123456789abcdefABCDEF:")] != '\0';
}

/* The token is the name of a host, or the beginning of another definition because the last one has no end. */
static int discard_member(struct reader *r, const struct token *t)
{
        const char *why = report_text(&r->report, "%s is not a port GUID", report_quote(&r->report, t->name));
        const char *hint = partitions_conf_binary_hint(r, t->name) ?:
                           "OpenSM accepts port GUIDs, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF and NONE";

        if (begins_another(r, t))
                hint = report_text(&r->report, "the definition that begins in line %u has no ';' at its end", r->open.line);
        return discard(r, t->at, why, hint);
}

static int open_definition(struct reader *r, struct token *head, const char *name, uint16_t base)
{
        struct partitions_conf_partition *p = base == 0 && name ? find_by_name(r, name) : NULL;
        bool generated = base == 0 && !p;
        uint32_t before = r->conf->n_partitions;

        if (generated)
                base = assign_base(r);
        if (generated && base == 0)
                return discard(r, head->at, "no P_Key is left for a partition without one", NULL);
        p = p ?: get_partition(r, name, base, head->at);
        if (!p)
                return -ENOMEM;
        p->generated |= generated;
        p->sl = (uint8_t) r->open.flags.sl;
        r->open.is_open = true;
        r->open.line = partitions_conf_place(r, head->at).where.line;
        r->open.partition = (uint32_t) (p - r->conf->partitions);
        partitions_conf_check_definition(r, head, name, generated, r->conf->n_partitions == before);
        return partitions_conf_add_broadcast(r, head);
}

/* NAME=KEY, NAME, KEY, or nothing. */
static int create_partition(struct reader *r, struct token *head)
{
        const char *name = head->name, *id = head->value, *end;
        size_t at = id ? head->value_at : head->at;
        uint64_t v = 0;

        if (!id && isdigit((unsigned char) *name)) {
                id = name;
                name = NULL;
        }
        if (id) {
                v = partitions_conf_number(r, at, id, &end);
                if (end == id || *end)
                        return discard(r, at, "this P_Key is not a number", partitions_conf_binary_hint(r, id));
                partitions_conf_check_key(r, at, id, v);
        }
        return open_definition(r, head, name, (uint16_t) v & P_KEY_BASE_MASK);
}

static int read_header(struct reader *r, size_t start, size_t *ret_end)
{
        size_t colon = partitions_conf_cut(r, start, ':'), comma = partitions_conf_cut(r, start, ','), p = start;
        struct token head, flag;

        if (colon == NOWHERE)
                return discard(r, start, "no ':' follows, so this defines no partition", NULL);
        if (++r->n_definitions > PARTITIONS_CONF_MAX_DEFINITIONS) {
                struct place place = partitions_conf_place(r, start);

                report_add(&r->report, FINDING_ERROR, FINDING_FILE_TOO_LARGE, &place, "more than %u definitions",
                           PARTITIONS_CONF_MAX_DEFINITIONS);
                return -EBADMSG;
        }
        p += partitions_conf_read_token(r, p, &head);
        while (comma != NOWHERE) {
                comma = partitions_conf_cut(r, p, ',');
                p += partitions_conf_read_token(r, p, &flag);
                partitions_conf_add_flag(r, &flag);
        }
        if (p != colon + 1)
                return discard(r, start, "this definition cannot be read", NULL);
        *ret_end = p;
        return create_partition(r, &head);
}

/* Port specifiers up to the next NUL. */
static int read_members(struct reader *r, size_t p, size_t *ret_end)
{
        struct token token;
        size_t comma, length;
        int e;

        do {
                comma = partitions_conf_cut(r, p, ',');
                length = partitions_conf_read_token(r, p, &token);
                if (strcmp(token.name, "mgid") == 0)
                        return partitions_conf_read_group(r, &token, p + length, ret_end);
                e = partitions_conf_read_member(r, &token);
                if (e == -EINVAL)
                        return discard_member(r, &token);
                if (e < 0)
                        return e;
                p += length;
        } while (comma != NOWHERE);
        *ret_end = p;
        return 0;
}

/* One definition, or the next part of the open one. *ret_end: where OpenSM continues if there was a semicolon. */
static int read_definition(struct reader *r, size_t p, size_t *ret_end)
{
        int e;

        if (r->line[p] == '\0') {
                partitions_conf_warn(r, p, FINDING_OPENSM_SEMICOLON, "an empty statement before ';': OpenSM treats the text "
                                     "after it as part of the same statement");
                p++;
        }
        e = r->open.is_open ? 0 : read_header(r, p, &p);
        return e ?: read_members(r, p, ret_end);
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static void begin_definition(struct reader *r)
{
        r->open = (struct definition) { .membership = MEMBERSHIP_LIMITED };
        r->open.flags = (struct group_flags) { .mtu = MULTICAST_MTU_2048, .rate = MULTICAST_RATE_10 };
        r->begun = true;
}

/* OpenSM reads on where its buffer may hold anything, even the end of another file. */
static int report_unknown_text(struct reader *r)
{
        struct place place = partitions_conf_place(r, 0);

        report_add(&r->report, FINDING_ERROR, FINDING_OPENSM_STALE, &place,
                   "OpenSM reads past the end of this line, where its buffer holds nothing of this file: what it does then "
                   "cannot be predicted");
        report_hint(&r->report, "remove the ';' that stands alone");
        return -EBADMSG;
}

static int read_chunk(struct reader *r)
{
        size_t p = 0, semicolon;
        int e;

        r->hash = partitions_conf_cut(r, 0, '#');
        do {
                if (!partitions_conf_was_written(r, p))
                        return report_unknown_text(r);
                p = partitions_conf_skip_blanks(r, p);
                if (r->line[p] == '\0')
                        return 0;
                if (!r->begun)
                        begin_definition(r);
                semicolon = partitions_conf_cut(r, p, ';');
                e = read_definition(r, p, &p);
                if (r->report.has_error[FINDING_OPENSM_NUMBER] && e != -ENOMEM)
                        return -EBADMSG;
                if (e < 0)
                        return e;
                r->has_statement = true;
                if (semicolon != NOWHERE)
                        r->begun = false;
        } while (semicolon != NOWHERE);
        return 0;
}

/* Copies what one fgets of OpenSM returns, with the place of each byte. Returns its length. */
static size_t take_chunk(struct reader *r, const char *bytes, size_t n)
{
        const char *newline = memchr(bytes, '\n', MIN(n, (size_t) PARTITIONS_CONF_LINE));
        size_t length = newline ? (size_t) (newline - bytes) + 1 : MIN(n, (size_t) PARTITIONS_CONF_LINE);

        memcpy(r->line, bytes, length);
        r->line[length] = '\0';
        for (size_t i = 0; i <= length; i++)
                r->origin[i] = (struct origin) { r->line_number, r->column + (unsigned) i };
        r->length = length;
        r->written = MAX(r->written, length + 1);
        return length;
}

static int add_comment(struct reader *r, const char *line, size_t n)
{
        const char *hash = memchr(line, '#', n), *end = line + n;
        struct partitions_conf_comment *c;

        if (!hash)
                return 0;
        c = arena_new_object(r->arena, struct partitions_conf_comment);
        if (!c)
                return -ENOMEM;
        c->line = r->line_number;
        c->alone = true;
        for (const char *p = line; p < hash; p++)
                c->alone &= isspace((unsigned char) *p) != 0;
        while (hash < end && (*hash == '#' || isspace((unsigned char) *hash)))
                hash++;
        while (end > hash && isspace((unsigned char) end[-1]))
                end--;
        c->text = yaml_source_visible(r->arena, hash, (size_t) (end - hash));
        if (!c->text)
                return -ENOMEM;
        *r->next_comment = c;
        r->next_comment = &c->next;
        return 0;
}

static int read_line(struct reader *r, const char *bytes, size_t n)
{
        size_t offset = 0;
        int e;

        r->line_number++;
        r->column = 1;
        e = add_comment(r, bytes, n) ?: remember_source_line(r, bytes, n > 0 && bytes[n - 1] == '\n' ? n - 1 : n);
        while (e == 0 && offset < n && !r->discarded) {
                size_t length = take_chunk(r, bytes + offset, n - offset);

                if (offset > 0)
                        partitions_conf_warn(r, 0, FINDING_OPENSM_LINE, "the line has more than %u characters: OpenSM reads "
                                             "the text from here on as another line", PARTITIONS_CONF_LINE);
                e = read_chunk(r);
                if (e == -ENOEXEC) {
                        r->discarded = true;
                        e = 0;
                }
                offset += length;
                r->column += (unsigned) length;
        }
        return e;
}

/* What OpenSM begins with: every port is a limited member of the default partition, the SM's a full one. With `full`, its default
 * for a file that it drops: every port is a full member. */
static int make_default(struct reader *r, bool full)
{
        struct location nowhere = { .file = r->conf->file };
        int e;

        if (!get_partition(r, "Default", P_KEY_DEFAULT_BASE, NOWHERE))
                return -ENOMEM;
        r->open.partition = 0;
        e = partitions_conf_add_member(r, (struct partitions_conf_member) {
                .who = PARTITIONS_CONF_ALL, .membership = full ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED, .where = nowhere });
        if (e < 0 || full)
                return e;
        return partitions_conf_add_member(r, (struct partitions_conf_member) {
                .who = PARTITIONS_CONF_SELF, .membership = MEMBERSHIP_FULL, .where = nowhere });
}

/* Replaces the model by OpenSM's default, which includes the broadcast group of IPv4. */
static int use_opensm_default(struct reader *r)
{
        struct partitions_conf *c = r->conf;
        int e;

        c->discarded = true;
        c->n_partitions = 0;
        memset(r->by_base, 0, sizeof(*r->by_base) * (P_KEY_BASE_MASK + 1));
        e = make_default(r, true);
        if (e < 0)
                return e;
        c->partitions[0].has_broadcast = true;
        return partitions_conf_ipoib(r) ? 0 : -ENOMEM;
}

static int read_all(struct reader *r, const char *bytes, size_t n)
{
        struct place whole = { .where = { r->conf->file, 1, 1 } };
        size_t offset = 0, length;
        const char *newline;
        int e = make_default(r, false);

        for (; e == 0 && offset < n; offset += length) {
                newline = memchr(bytes + offset, '\n', n - offset);
                length = newline ? (size_t) (newline - bytes) - offset + 1 : n - offset;
                e = read_line(r, bytes + offset, length);
        }
        if (e == 0 && !r->has_statement && !r->discarded) {
                report_add(&r->report, FINDING_WARNING, FINDING_OPENSM_DISCARDED, &whole,
                           "this file defines no partition: OpenSM makes every port a full member of the default partition");
                (void) hint_invisible(r);
                r->discarded = r->conf->is_empty = true;
        }
        return e == 0 && r->discarded ? use_opensm_default(r) : e;
}

int partitions_conf_parse(struct arena *a, enum opensm_numbers numbers, const char *file_name, const char *bytes, size_t n,
                          struct findings *findings, struct partitions_conf **ret)
{
        _cleanup_free_ struct reader *r = calloc(1, sizeof(*r));
        _cleanup_free_ uint32_t *by_base = calloc(P_KEY_BASE_MASK + 1, sizeof(*by_base));
        struct partitions_conf *c = arena_new_object(a, struct partitions_conf);
        int e, finish;

        if (!r || !by_base || !c)
                return -ENOMEM;
        c->file = arena_strdup(a, file_name);
        if (!c->file)
                return -ENOMEM;
        r->arena = a;
        r->conf = c;
        r->numbers = numbers;
        r->by_base = by_base;
        r->next_comment = &c->comments;
        r->line_ends = line_ends_of(bytes, n);
        r->has_byte_order_mark = yaml_source_mark(bytes, n) > 0;
        report_init(&r->report, findings);
        e = read_all(r, bytes, n);
        finish = report_finish(&r->report);
        e = e ?: finish;
        if (e == 0)
                *ret = c;
        return e;
}

const struct partitions_conf_member *partitions_conf_find_index0(const struct partitions_conf_partition *p, bool *ret_all)
{
        const struct partitions_conf_member *first = NULL;

        *ret_all = true;
        for (const struct partitions_conf_member *m = p->members; m; m = m->next) {
                *ret_all = *ret_all && m->index0;
                if (m->index0 && !first)
                        first = m;
        }
        return first;
}

int partitions_conf_fallback(struct arena *a, const char *file_name, struct partitions_conf **ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = a };

        return partitions_conf_parse(a, OPENSM_NUMBERS_UNKNOWN, file_name, "", 0, &ignored, ret);
}
