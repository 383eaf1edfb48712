/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A YAML document as a tree in which each node has its line and column.
 *
 * The tree is built from libyaml's events. It refuses the features of YAML that a configuration does not need: aliases and
 * anchors, merge keys, tags, several documents, duplicate keys, nesting deeper than 16 levels, more than a million values.
 * yaml_parser_load() cannot be used instead: in its documents an alias is a second reference to one node without a place of
 * its own, anchors are gone, each node has a tag whether the file has one or not, and limits could be checked only afterwards.
 *
 * Scalars are texts; the caller interprets them.
 */

#include "util/yaml_source.h"

#define YAML_TREE_MAX_SIZE  (16u << 20)
#define YAML_TREE_MAX_DEPTH 16
#define YAML_TREE_MAX_NODES 1000000

enum yaml_tree_kind {
        YAML_TREE_SCALAR,
        YAML_TREE_LIST,
        YAML_TREE_MAP,
};

struct yaml_tree_node {
        enum yaml_tree_kind kind;
        unsigned line, column;
        bool plain;    /* a scalar without quotes */
        bool verbatim; /* the file has the scalar as in `text`, so that an offset into it is an offset of columns */
        bool broken;   /* refused already: no further findings about it */
        const char *text; /* of a scalar: without NUL bytes; never NULL */
        struct yaml_tree_node *key;      /* of a value in a map: its key, a scalar */
        struct yaml_tree_node *children; /* of a list or map: the first child, linked by `next` */
        struct yaml_tree_node *next;
        uint32_t n_children;
};

/* Recognizes a line of another format, in which the user may have written the file. Returns a hint about it, a static string, or
 * NULL. */
typedef const char *yaml_tree_foreign(const char *line);

struct yaml_tree {
        struct yaml_source source;
        struct arena *arena;         /* borrows; owns the nodes */
        yaml_tree_foreign *foreign;  /* NULL: no other format is known */
        struct report *report;       /* borrows */
        struct yaml_tree_node *root; /* NULL: an empty file */
        unsigned source_line_number; /* of the line that yaml_tree_place() used last; its text is in the arena */
        const char *source_line;
};

/* Reads a file. foreign: may be NULL. Returns 0, -EBADMSG if there is no tree (see the report), -ENOMEM. The report may contain
 * errors even if it returns 0: an error in one node does not hide those in others. Always call yaml_tree_finish(); borrows file
 * and bytes until then. */
int yaml_tree_parse(struct yaml_tree *t, struct arena *a, const char *file, const char *bytes, size_t n, yaml_tree_foreign *foreign,
                    struct report *report);
/* Ends the report of a file after yaml_tree_parse() and the functions that read its nodes; e: their result. Sorts the findings.
 * Returns 0, -EBADMSG if anything was an error, -ENOMEM. */
int yaml_tree_finish(struct yaml_tree *t, int e);

/* For each item of a list; for a node of another kind: for that node. Without a node (NULL): never. */
#define YAML_TREE_FOR_EACH(item, node)                                                                                 \
        for (const struct yaml_tree_node *item = (node) && (node)->kind == YAML_TREE_LIST ? (node)->children : (node); item; \
             item = item == (node) ? NULL : item->next)

/* The value of a key, or NULL. map may be NULL. */
struct yaml_tree_node *yaml_tree_get(const struct yaml_tree_node *map, const char *key);
/* True for an empty value, ~ and null, without quotes. */
bool yaml_tree_is_null(const struct yaml_tree_node *node);
/* Returns whether both have the same keys and values in the same order, wherever they are. Either may be NULL. */
bool yaml_tree_equal(const struct yaml_tree_node *a, const struct yaml_tree_node *b);
/* "a map", "a list", "a single value"; a static string. */
const char *yaml_tree_kind_to_string(enum yaml_tree_kind kind);

/* The place of a node; the text of its line lives in the tree's arena. */
struct place yaml_tree_place(struct yaml_tree *t, const struct yaml_tree_node *node);
/* Reports an error at this node, unless the node is broken. */
void yaml_tree_error(struct yaml_tree *t, const struct yaml_tree_node *node, enum finding_code code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Corrects the last finding, about this scalar: n characters of its text from `offset` on become `text`. Does nothing if the file
 * has escape sequences or line breaks in it. */
void yaml_tree_fix(struct yaml_tree *t, const struct yaml_tree_node *node, size_t offset, size_t n, const char *text);
/* The same for the whole scalar, unless a character of it may have been swapped with the separator beside it. */
void yaml_tree_fix_scalar(struct yaml_tree *t, const struct yaml_tree_node *node, const char *text);

/* Returns whether the node is of this kind; if not, reports "PATH: is a list (accepted: a map)". */
bool yaml_tree_expect(struct yaml_tree *t, const struct yaml_tree_node *node, enum yaml_tree_kind kind, const char *path);
/* Reports each key of a map that is not one of `keys`. path "": the top of the file. */
void yaml_tree_check_keys(struct yaml_tree *t, const struct yaml_tree_node *map, const char *path,
                          const char *const *keys, size_t n_keys);
/* Reads true or false. Without a node *ret stays as it is. Returns 0 or -EBADMSG (reported). */
int yaml_tree_bool(struct yaml_tree *t, const struct yaml_tree_node *node, const char *path, bool *ret);
