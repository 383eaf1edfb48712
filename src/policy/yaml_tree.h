/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A YAML document as a tree in which every node knows where it stands.
 *
 * libyaml gives the events, this makes the tree and refuses what YAML can do and a configuration should not: aliases and
 * anchors (one line that means many), merge keys, tags, several documents, keys that appear twice, nesting deeper than
 * 16, more than a million values. Scalars are texts; what they mean is the reader's matter.
 */

#include "policy/yaml_source.h"

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
        bool verbatim; /* a scalar that stands in the file as in `text`, so that an offset is a column */
        bool broken;   /* refused already: say nothing more of it */
        const char *text; /* of a scalar: without NUL bytes; never NULL */
        struct yaml_tree_node *key;      /* of a value in a map: its key, a scalar */
        struct yaml_tree_node *children; /* of a list or map: the first; next: the following one */
        struct yaml_tree_node *next;
        uint32_t n_children;
};

struct yaml_tree {
        struct yaml_source source;
        struct arena *arena;         /* borrows; owns the nodes */
        struct report *report;       /* borrows */
        struct yaml_tree_node *root; /* NULL: an empty file */
        unsigned source_line_number; /* the last line looked up, and its text in the arena */
        const char *source_line;
};

/* Reads a file. Returns 0; -EBADMSG if there is no tree (the report says why); -ENOMEM. With 0 there may have been
 * errors too: what is wrong with single nodes does not keep the others from being looked at. Call yaml_tree_done in any
 * case; file and bytes must live until then. */
int yaml_tree_parse(struct yaml_tree *t, struct arena *a, const char *file, const char *bytes, size_t n,
                    struct report *report);
void yaml_tree_done(struct yaml_tree *t);

/* The value of a key, or NULL. map may be NULL. */
struct yaml_tree_node *yaml_tree_get(const struct yaml_tree_node *map, const char *key);
/* No value at all: empty, ~ or null without quotes. */
bool yaml_tree_is_null(const struct yaml_tree_node *node);
/* "a map", "a list", "a single value"; a static string. */
const char *yaml_tree_kind_to_string(enum yaml_tree_kind kind);

/* Where a node stands; the line's text lives in the tree's arena. */
struct place yaml_tree_place(struct yaml_tree *t, const struct yaml_tree_node *node);
/* Reports an error at this node; nothing for broken nodes. */
void yaml_tree_error(struct yaml_tree *t, const struct yaml_tree_node *node, enum finding_code code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* Is this node of that kind? If not, says so: "PATH: is a list, not a map". */
bool yaml_tree_expect(struct yaml_tree *t, const struct yaml_tree_node *node, enum yaml_tree_kind kind,
                      const char *path);
/* Reports keys of a map that are not among `keys`, and names those. path "": the top of the file. */
void yaml_tree_check_keys(struct yaml_tree *t, const struct yaml_tree_node *map, const char *path,
                          const char *const *keys, size_t n_keys);
/* true or false, nothing else. Returns 0 or -EBADMSG (reported). */
int yaml_tree_bool(struct yaml_tree *t, const struct yaml_tree_node *node, const char *path, bool *ret);
