/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/yaml_tree.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "util/macros.h"
#include "util/nearest.h"
#include "util/text.h"

/* A list or map whose end was not reached yet. */
struct frame {
        struct yaml_tree_node *node;
        struct yaml_tree_node *key;   /* of a map: the key whose value comes next; NULL: a key comes next */
        struct yaml_tree_node **tail; /* where to store the next child */
};

struct builder {
        yaml_parser_t parser;
        struct yaml_tree *tree;
        struct frame frames[YAML_TREE_MAX_DEPTH];
        unsigned depth;
        uint32_t n_nodes;
};

/* ---- places and findings -------------------------------------------------------------------------------------- */

struct place yaml_tree_place(struct yaml_tree *t, const struct yaml_tree_node *node)
{
        if (t->source_line_number != node->line) {
                t->source_line = yaml_source_line(&t->source, t->arena, node->line);
                t->source_line_number = t->source_line ? node->line : 0;
        }
        return (struct place) { { t->source.file, node->line, node->column }, t->source_line };
}

void yaml_tree_error(struct yaml_tree *t, const struct yaml_tree_node *node, enum finding_code code, const char *format,
                     ...)
{
        struct place place = yaml_tree_place(t, node);
        va_list ap;

        t->report->last = NULL;
        if (node->broken)
                return;
        va_start(ap, format);
        report_vadd(t->report, FINDING_ERROR, code, &place, format, ap);
        va_end(ap);
}

void yaml_tree_fix(struct yaml_tree *t, const struct yaml_tree_node *node, size_t offset, size_t n, const char *text)
{
        unsigned column = node->column + !node->plain + (unsigned) offset;

        if (node->verbatim && t->report->last)
                report_fix(t->report, &(struct finding_fix) { node->line, column, (unsigned) n, text });
}

/* ---- syntax errors ---------------------------------------------------------------------------------------------- */

/* A message of libyaml in our words. */
struct complaint {
        const char *libyaml; /* the beginning of its message */
        const char *text, *hint;
        bool at_context;     /* the mistake is where the construct begins, not where libyaml noticed it */
        char closes;         /* the construct; 0: nothing does */
        size_t from_column;  /* libyaml noticed it there or further right; from 0 on */
};

#define KEY_MAX 1024 /* characters: libyaml takes no longer key on one line */

/* The first that fits counts. */
static const struct complaint complaints[] = {
        { "mapping values are not allowed", "the key before this ':' is longer than 1,024 characters",
          "put the hosts into a group, or write '? KEY' on this line and ': VALUE' on the next one", .from_column = KEY_MAX + 1 },
        { "mapping values are not allowed", "a ':' is not allowed here",
          "check for a missing ':' in the line above, or one without a blank after it, a second ':' in this line, or too much "
          "indentation" },
        { "did not find expected <document start>", "this line does not continue the lines above",
          "begin all keys of the file in the same column" },
        { "did not find expected key", "the indentation of this line does not match the other keys of its map",
          "begin all keys of a map in the same column" },
        { "did not find expected '-' indicator", "the indentation of this line does not match the list above",
          "begin all items of a list with '- ' in the same column" },
        { "could not find expected ':'", "a line without ': ' (accepted: KEY: VALUE)", "write a colon and a blank after the key",
          .at_context = true },
        { "found character that cannot start any token", "a value cannot begin with this character unless it is in quotes",
          "put the value in quotes, as in \"@leaf07/1-18\"" },
        { "did not find expected alphabetic or numeric character", "a value cannot begin with '*' or '&' unless it is in quotes",
          "put a glob in quotes, as in \"*-ib0\"", true },
        { "did not find expected ',' or '}'", "expected ',' or '}' in this map",
          "put hostlists inside { } and [ ] in quotes, as in {\"node[1-4]\": full}", .closes = '}' },
        { "did not find expected ',' or ']'", "expected ',' or ']' in this list",
          "put hostlists inside { } and [ ] in quotes, as in [\"node[1-4]\", head1]", .closes = ']' },
        { "found unexpected end of stream", "the quote that opens here is not closed", .at_context = true },
        { "found unexpected document indicator", "the quote that opens here is not closed", .at_context = true },
        { "block sequence entries are not allowed", "a list item is not allowed here",
          "begin the list on the next line, or write it as [a, b]" },
        { "did not find expected node content", "a value is missing here", "check for a '[' or '{' above that is not closed" },
        { "found unknown escape character", "unknown escape sequence in a double-quoted string",
          "write each backslash twice, or use single quotes" },
        { "found incompatible YAML document", "unknown YAML version (accepted: 1.1, 1.2)" },
};

static const struct complaint unclosed = { "", "the list or map that opens here is not closed", .at_context = true };
/* libyaml does not tell where a list or map opens in which nothing follows. */
static const struct complaint unclosed_above = { "", "the file ends within a list or map",
                                                 "check for a '[' or '{' above that is not closed" };

static const char *foreign_hint(const struct yaml_tree *t, const char *line)
{
        return line && t->foreign ? t->foreign(line) : NULL;
}

static void add_hint(struct yaml_tree *t, const char *hint)
{
        if (hint)
                report_hint(t->report, "%s", hint);
}

/* A node with nothing but a place. */
static struct yaml_tree_node node_at(const yaml_mark_t *mark)
{
        return (struct yaml_tree_node) { .line = (unsigned) mark->line + 1, .column = (unsigned) mark->column + 1 };
}

static const struct complaint *find_complaint(const yaml_parser_t *parser)
{
        const char *problem = parser->problem ? parser->problem : "";

        for (size_t i = 0; i < ELEMENTS(complaints); i++)
                if (strncmp(problem, complaints[i].libyaml, strlen(complaints[i].libyaml)) == 0 &&
                    parser->problem_mark.column >= complaints[i].from_column)
                        return &complaints[i];
        return NULL;
}

/* libyaml noticed the mistake only at the end of the file, so the beginning of the construct is the better place. */
static bool is_at_end(const struct yaml_source *s, const yaml_mark_t *mark)
{
        return mark->line + 1 > s->n_lines || s->lines[mark->line] + mark->column >= s->n;
}

/* The line in which the construct begins may be far above. */
static void add_hint_of(struct yaml_tree *t, const struct complaint *known, const yaml_mark_t *begin, unsigned line)
{
        if (known->closes && begin->line + 1 < line)
                report_hint(t->report, "it begins in line %zu: close it with '%c'; %s", begin->line + 1, known->closes,
                            known->hint);
        else
                add_hint(t, known->hint);
}

static void report_syntax(struct builder *b)
{
        struct yaml_tree *t = b->tree;
        const char *problem = b->parser.problem ? b->parser.problem : "unreadable";
        const struct complaint *known = find_complaint(&b->parser);
        yaml_mark_t mark = b->parser.problem_mark;
        struct yaml_tree_node at;
        struct place place;
        const char *hint;

        if (b->parser.context && ((known && known->at_context) || is_at_end(&t->source, &mark))) {
                mark = b->parser.context_mark;
                if (known && !known->at_context)
                        known = is_at_end(&t->source, &mark) ? &unclosed_above : &unclosed;
        }
        at = node_at(&mark);
        at.line = MIN(at.line, (unsigned) t->source.n_lines);
        place = yaml_tree_place(t, &at);
        report_add(t->report, FINDING_ERROR, FINDING_YAML_SYNTAX, &place, "not valid YAML: %s", known ? known->text : problem);
        hint = foreign_hint(t, place.source_line) ?: foreign_hint(t, yaml_source_line(&t->source, t->arena, at.line - 1));
        if (hint || !known)
                add_hint(t, hint);
        else
                add_hint_of(t, known, &b->parser.context_mark, at.line);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static size_t count_characters(const unsigned char *s, size_t n)
{
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += (s[i] & 0xc0) != 0x80;
        return count;
}

/* May the difference be a character that was swapped with a ',' or line feed beside the scalar? Then the text there is wrong, too:
 * `sl: 1,2rate` for `sl: 12,rate`, `a: ful,lb` for `a: full,b`. */
static bool may_be_swapped(const struct yaml_source *s, const struct yaml_tree_node *node, const char *text)
{
        size_t at = s->lines[node->line - 1], n = strlen(node->text);

        if (!node->plain || n == 0)
                return false;
        for (unsigned column = 1; column < node->column && at < s->n; column++)
                for (at++; at < s->n && (s->bytes[at] & 0xc0) == 0x80; at++)
                        ;
        if (strcasecmp(node->text + 1, text) == 0 || strcasecmp(node->text, text + 1) == 0)
                return at > 0 && s->bytes[at - 1] != ' ';
        return strncasecmp(node->text, text, MIN(n, strlen(text))) == 0 && n != strlen(text) && at + n + 1 < s->n &&
               strchr(",\n", s->bytes[at + n]) && !strchr(" \r\n", s->bytes[at + n + 1]);
}

void yaml_tree_fix_scalar(struct yaml_tree *t, const struct yaml_tree_node *node, const char *text)
{
        if (may_be_swapped(&t->source, node, text))
                return;
        yaml_tree_fix(t, node, 0, count_characters((const unsigned char *) node->text, strlen(node->text)), text);
}

static int set_scalar(struct builder *b, struct yaml_tree_node *node, const yaml_event_t *e)
{
        const char *value = (const char *) e->data.scalar.value;
        size_t n = e->data.scalar.length, width = e->end_mark.column - e->start_mark.column;
        bool block = e->data.scalar.style == YAML_LITERAL_SCALAR_STYLE || e->data.scalar.style == YAML_FOLDED_SCALAR_STYLE;

        node->kind = YAML_TREE_SCALAR;
        node->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->verbatim = !block && e->start_mark.line == e->end_mark.line &&
                         width == count_characters(e->data.scalar.value, n) + (node->plain ? 0 : 2);
        node->text = "";
        if (memchr(value, '\0', n)) {
                yaml_tree_error(b->tree, node, FINDING_YAML_ENCODING, "a value contains a NUL character");
                node->broken = true;
                return 0;
        }
        node->text = arena_strndup(b->tree->arena, value, n);
        return node->text ? 0 : -ENOMEM;
}

static void refuse_extras(struct builder *b, const struct yaml_tree_node *node, const void *anchor, const void *tag)
{
        struct report *r = b->tree->report;

        if (anchor) {
                yaml_tree_error(b->tree, node, FINDING_YAML_ALIAS, "anchors (&NAME) are not accepted");
                report_hint(r, "remove it; repeat the value where it is used, or use `groups`");
        }
        if (tag) {
                yaml_tree_error(b->tree, node, FINDING_YAML_TYPE, "tags (!NAME) are not accepted");
                report_hint(r, "remove it: no value needs a tag");
        }
}

static void refuse_alias(struct builder *b, struct yaml_tree_node *node, const yaml_event_t *e)
{
        node->text = "";
        yaml_tree_error(b->tree, node, FINDING_YAML_ALIAS, "aliases (*NAME) are not accepted");
        report_hint(b->tree->report, "repeat the value, or use `groups`; if it is a glob, put it in quotes: \"*%s\"",
                    report_escape(b->tree->report, (const char *) e->data.alias.anchor));
        node->broken = true;
}

/* The node of a scalar, an alias, or the start of a list or map. */
static int make_node(struct builder *b, const yaml_event_t *e, struct yaml_tree_node *node)
{
        int r = 0;

        *node = node_at(&e->start_mark);
        if (e->type == YAML_SCALAR_EVENT) {
                r = set_scalar(b, node, e);
                refuse_extras(b, node, e->data.scalar.anchor, e->data.scalar.tag);
        } else if (e->type == YAML_SEQUENCE_START_EVENT) {
                node->kind = YAML_TREE_LIST;
                refuse_extras(b, node, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        } else if (e->type == YAML_MAPPING_START_EVENT) {
                node->kind = YAML_TREE_MAP;
                refuse_extras(b, node, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        } else {
                refuse_alias(b, node, e);
        }
        return r;
}

static void check_key(struct builder *b, struct yaml_tree_node *key)
{
        if (key->kind != YAML_TREE_SCALAR) {
                yaml_tree_error(b->tree, key, FINDING_YAML_TYPE, "a key must be a single word, not %s",
                                yaml_tree_kind_to_string(key->kind));
                report_hint(b->tree->report, "put a key that begins with '[' or '{' in quotes");
                key->broken = true;
        } else if (key->plain && strcmp(key->text, "<<") == 0) {
                yaml_tree_error(b->tree, key, FINDING_YAML_ALIAS, "merge keys (<<) are not accepted");
                report_hint(b->tree->report, "repeat the keys in each map");
                key->broken = true;
        }
}

/* Adds a node to the tree: as the root, an item of a list, a key, or the value of a key. */
static void attach(struct builder *b, struct yaml_tree_node *node)
{
        struct frame *f;

        if (b->depth == 0) {
                b->tree->root = node;
                return;
        }
        f = &b->frames[b->depth - 1];
        if (f->node->kind == YAML_TREE_MAP) {
                if (!f->key) {
                        check_key(b, node);
                        f->key = node;
                        return;
                }
                node->key = f->key;
                f->key = NULL;
        }
        *f->tail = node;
        f->tail = &node->next;
        f->node->n_children++;
}

static int add_node(struct builder *b, const yaml_event_t *e)
{
        struct yaml_tree_node at = node_at(&e->start_mark), *node;
        int r;

        if (++b->n_nodes > YAML_TREE_MAX_NODES) {
                yaml_tree_error(b->tree, &at, FINDING_FILE_TOO_LARGE, "more than %d values in one file", YAML_TREE_MAX_NODES);
                return -EBADMSG;
        }
        node = arena_new_object(b->tree->arena, struct yaml_tree_node);
        r = node ? make_node(b, e, node) : -ENOMEM;
        if (r < 0)
                return r;
        attach(b, node);
        if (node->kind == YAML_TREE_SCALAR)
                return 0;
        if (b->depth == YAML_TREE_MAX_DEPTH) {
                yaml_tree_error(b->tree, node, FINDING_YAML_DEPTH, "nested deeper than %d levels", YAML_TREE_MAX_DEPTH);
                return -EBADMSG;
        }
        b->frames[b->depth++] = (struct frame) { .node = node, .tail = &node->children };
        return 0;
}

static int compare_keys(const void *left, const void *right)
{
        const struct yaml_tree_node *a = *(struct yaml_tree_node *const *) left;
        const struct yaml_tree_node *b = *(struct yaml_tree_node *const *) right;

        return strcmp(a->key->text ?: "", b->key->text ?: "") ?: ORDER(a->key->line, b->key->line) ?:
               ORDER(a->key->column, b->key->column);
}

static void report_duplicate(struct builder *b, const struct yaml_tree_node *first, struct yaml_tree_node *again)
{
        struct report *r = b->tree->report;

        yaml_tree_error(b->tree, again->key, FINDING_YAML_DUPLICATE_KEY, "duplicate key %s", report_quote(r, again->key->text));
        report_hint(r, "the first one is in line %u: remove one of the two", first->key->line);
        again->key->broken = again->broken = true;
}

/* Reports duplicate keys. Removes the later ones, and values whose key was refused. */
static int close_map(struct builder *b, struct frame *f)
{
        _cleanup_free_ struct yaml_tree_node **values = NULL;
        struct yaml_tree_node **tail = &f->node->children;
        const struct yaml_tree_node *first;
        uint32_t n = 0, i;

        if (!f->node->children)
                return 0;
        values = reallocarray(NULL, f->node->n_children, sizeof(struct yaml_tree_node *));
        if (!values)
                return -ENOMEM;
        for (struct yaml_tree_node *c = f->node->children; c; c = c->next)
                values[n++] = c;
        qsort(values, n, sizeof(struct yaml_tree_node *), compare_keys);
        for (i = 1, first = values[0]; i < n; i++) {
                if (!values[i]->key->broken && !first->key->broken && strcmp(values[i]->key->text, first->key->text) == 0)
                        report_duplicate(b, first, values[i]);
                else
                        first = values[i];
        }
        for (struct yaml_tree_node *c = f->node->children; c; c = c->next) {
                if (c->key->broken) {
                        f->node->n_children--;
                        continue;
                }
                *tail = c;
                tail = &c->next;
        }
        *tail = NULL;
        return 0;
}

/* Even an empty document has a root: a null. */
static int start_document(struct builder *b, const yaml_event_t *e)
{
        struct yaml_tree_node at = node_at(&e->start_mark);

        if (!b->tree->root)
                return 0;
        yaml_tree_error(b->tree, &at, FINDING_YAML_DOCUMENTS, "a second YAML document (accepted: one in a file)");
        return -EBADMSG;
}

static int handle_event(struct builder *b, const yaml_event_t *e)
{
        switch (e->type) {
        case YAML_DOCUMENT_START_EVENT:
                return start_document(b, e);
        case YAML_ALIAS_EVENT:
        case YAML_SCALAR_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
                return add_node(b, e);
        case YAML_SEQUENCE_END_EVENT:
                b->depth--;
                return 0;
        case YAML_MAPPING_END_EVENT:
                return close_map(b, &b->frames[--b->depth]);
        default:
                return 0;
        }
}

static int build(struct builder *b)
{
        bool done = false;
        yaml_event_t event;
        int r = 0;

        while (r == 0 && !done) {
                if (!yaml_parser_parse(&b->parser, &event)) {
                        if (b->parser.error == YAML_MEMORY_ERROR)
                                return -ENOMEM;
                        report_syntax(b);
                        return -EBADMSG;
                }
                done = event.type == YAML_STREAM_END_EVENT;
                r = handle_event(b, &event);
                yaml_event_delete(&event);
        }
        return r;
}

/* The root must be a map; a null root counts as an empty file. */
static int check_root(struct yaml_tree *t)
{
        struct yaml_tree_node *root = t->root;

        if (!root || root->kind == YAML_TREE_MAP)
                return 0;
        if (yaml_tree_is_null(root)) {
                t->root = NULL;
                return 0;
        }
        yaml_tree_error(t, root, FINDING_YAML_TYPE, "the file is %s (accepted: a map of keys and values)",
                        yaml_tree_kind_to_string(root->kind));
        if (root->kind == YAML_TREE_SCALAR)
                add_hint(t, foreign_hint(t, root->text));
        return -EBADMSG;
}

int yaml_tree_parse(struct yaml_tree *t, struct arena *a, const char *file, const char *bytes, size_t n, yaml_tree_foreign *foreign,
                    struct report *report)
{
        struct builder b = { .tree = t };
        struct place whole = { .where = { .file = file } };
        int r;

        *t = (struct yaml_tree) { .arena = a, .foreign = foreign, .report = report };
        if (n > YAML_TREE_MAX_SIZE) {
                report_add(report, FINDING_ERROR, FINDING_FILE_TOO_LARGE, &whole,
                           "the file has %zu bytes (accepted: up to %u MiB)", n, YAML_TREE_MAX_SIZE >> 20);
                return -EBADMSG;
        }
        r = yaml_source_init(&t->source, file, bytes, n, report);
        if (r < 0)
                return r;
        if (!yaml_parser_initialize(&b.parser))
                return -ENOMEM;
        yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&b.parser, (const unsigned char *) t->source.bytes, t->source.n);
        r = build(&b);
        yaml_parser_delete(&b.parser);
        return r < 0 ? r : check_root(t);
}

int yaml_tree_finish(struct yaml_tree *t, int e)
{
        int finished = report_finish(t->report);

        yaml_source_done(&t->source);
        findings_sort(t->report->findings);
        return e < 0 ? e : finished;
}

/* ---- reading a tree --------------------------------------------------------------------------------------------- */

struct yaml_tree_node *yaml_tree_get(const struct yaml_tree_node *map, const char *key)
{
        if (!map || map->kind != YAML_TREE_MAP)
                return NULL;
        for (struct yaml_tree_node *c = map->children; c; c = c->next)
                if (strcmp(c->key->text, key) == 0)
                        return c;
        return NULL;
}

bool yaml_tree_is_null(const struct yaml_tree_node *node)
{
        static const char *const words[] = { "", "~", "null", "Null", "NULL" };

        return node->kind == YAML_TREE_SCALAR && node->plain && text_is_one_of(node->text, words, ELEMENTS(words));
}

static bool same_text(const struct yaml_tree_node *a, const struct yaml_tree_node *b)
{
        return strcmp(a->text, b->text) == 0 && yaml_tree_is_null(a) == yaml_tree_is_null(b);
}

bool yaml_tree_equal(const struct yaml_tree_node *a, const struct yaml_tree_node *b)
{
        if (!a || !b)
                return a == b;
        if (a->kind != b->kind || !a->key != !b->key || (a->key && !same_text(a->key, b->key)))
                return false;
        if (a->kind == YAML_TREE_SCALAR)
                return same_text(a, b);
        for (a = a->children, b = b->children; a && b && yaml_tree_equal(a, b); a = a->next, b = b->next)
                ;
        return !a && !b;
}

DEFINE_WORDS(yaml_tree_kind_to_string, enum yaml_tree_kind, "something else",
             [YAML_TREE_SCALAR] = "a single value", [YAML_TREE_LIST] = "a list", [YAML_TREE_MAP] = "a map")

bool yaml_tree_expect(struct yaml_tree *t, const struct yaml_tree_node *node, enum yaml_tree_kind kind, const char *path)
{
        if (node->broken)
                return false;
        if (kind != YAML_TREE_SCALAR && yaml_tree_is_null(node)) {
                yaml_tree_error(t, node, FINDING_YAML_TYPE, "%s: has no value (accepted: %s)", path,
                                yaml_tree_kind_to_string(kind));
                report_hint(t->report, "to leave it empty, write %s: %s", node->key ? node->key->text : "",
                            kind == YAML_TREE_MAP ? "{}" : "[]");
                return false;
        }
        if (node->kind == kind)
                return true;
        yaml_tree_error(t, node, FINDING_YAML_TYPE, "%s: is %s (accepted: %s)", path,
                        yaml_tree_kind_to_string(node->kind), yaml_tree_kind_to_string(kind));
        return false;
}

/* Corrects an unknown key if it can only be one of `keys`, which the map does not have, and which no other unknown key is near. A
 * map with many more keys than are accepted is something else. */
static void fix_key(struct yaml_tree *t, const struct yaml_tree_node *map, const struct yaml_tree_node *key,
                    const char *const *keys, size_t n_keys)
{
        const char *near = map->n_children <= 4 * n_keys ? nearest_certain(key->text, keys, n_keys) : NULL;

        for (const struct yaml_tree_node *c = map->children; near && c; c = c->next)
                if (c->key != key && nearest_word(c->key->text, keys, n_keys) == near)
                        near = NULL;
        if (near)
                yaml_tree_fix_scalar(t, key, near);
}

void yaml_tree_check_keys(struct yaml_tree *t, const struct yaml_tree_node *map, const char *path,
                          const char *const *keys, size_t n_keys)
{
        const char *accepted = NULL;

        for (const struct yaml_tree_node *c = map->children; c; c = c->next) {
                const char *text = c->key->text, *near;

                if (text_is_one_of(text, keys, n_keys))
                        continue;
                accepted = accepted ?: report_list(t->report, keys, n_keys);
                yaml_tree_error(t, c->key, FINDING_KEY_UNKNOWN, "%s%sunknown key %s (accepted: %s)", path,
                                *path ? ": " : "", report_quote(t->report, text), accepted);
                near = nearest_word(text, keys, n_keys);
                fix_key(t, map, c->key, keys, n_keys);
                if (near)
                        report_hint(t->report, "did you mean '%s'?", near);
                else
                        add_hint(t, foreign_hint(t, text));
        }
}

int yaml_tree_bool(struct yaml_tree *t, const struct yaml_tree_node *node, const char *path, bool *ret)
{
        static const char *const words[][2] = { { "yes", "no" }, { "on", "off" }, { "y", "n" }, { "1", "0" }, { "true", "false" } };

        if (!node)
                return 0;
        if (!yaml_tree_expect(t, node, YAML_TREE_SCALAR, path))
                return -EBADMSG;
        if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) {
                *ret = node->text[0] == 't';
                return 0;
        }
        yaml_tree_error(t, node, FINDING_VALUE_INVALID, "%s: %s is not a boolean (accepted: true, false)", path,
                        report_quote(t->report, node->text));
        for (size_t i = 0; i < 2 * ELEMENTS(words); i++) {
                if (strcasecmp(node->text, words[i / 2][i % 2]) != 0)
                        continue;
                report_hint(t->report, "write %s", i % 2 ? "false" : "true");
                yaml_tree_fix_scalar(t, node, i % 2 ? "false" : "true");
        }
        return -EBADMSG;
}
