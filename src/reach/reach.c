/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach/reach.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "reach/classes.h"
#include "util/hash_index.h"
#include "util/vector.h"

/* Through which partitions pairs are lost or gained. */
struct label {
        bool gained;
        const uint16_t *bases;
        uint32_t n_bases;
};

/* A changing class loses or gains another one. */
struct neighbor {
        uint32_t label, class;
};

/* Changing classes (the members of the row) that lose or gain the same classes, through the same partitions. */
struct row {
        uint32_t label;
        const uint32_t *classes; /* ascending */
        uint32_t n_classes;
        const struct member *members;
        uint32_t n_members;
};

struct member {
        uint32_t row, class;
};

struct pair_state {
        uint32_t stamp;          /* the class, plus 1, that this is about */
        bool before, after;
};

struct comparer {
        struct arena *arena;     /* borrows; of the result */
        struct arena *scratch;
        struct reach_classes classes;
        struct pair_state *pairs; /* by class: whether the class that is compared now can talk to it */

        struct hash_index label_index;
        struct label *labels;
        size_t n_labels, allocated_labels;

        struct neighbor *neighbors; /* of the class that is compared now */
        size_t n_neighbors, allocated_neighbors;

        struct hash_index row_index;
        struct row *rows;
        size_t n_rows, allocated_rows;
        struct member *members;
        size_t n_members, allocated_members;

        struct hash_index line_index;
        struct reach_line *lines;
        size_t n_lines, allocated_lines;
        size_t n_listed;         /* ports in lists of others */
};

/* --- labels ----------------------------------------------------------------------------------------------------------- */

static bool is_label(const struct label *l, bool gained, const uint16_t *bases, uint32_t n_bases)
{
        return l->gained == gained && l->n_bases == n_bases && memcmp(l->bases, bases, n_bases * sizeof(*bases)) == 0;
}

/* The label with these bases, which is made if there is none. */
static int get_label(struct comparer *c, bool gained, const uint16_t *bases, uint32_t n_bases, uint32_t *ret)
{
        uint64_t hash = hash_bytes(hash_mix(HASH_START, gained), (const char *) bases, n_bases * sizeof(*bases));
        uint16_t *copy;

        *ret = HASH_INDEX_FIND(i, &c->label_index, hash, is_label(&c->labels[i], gained, bases, n_bases));
        if (*ret != HASH_INDEX_NONE)
                return 0;
        *ret = (uint32_t) c->n_labels;
        copy = arena_copy(c->arena, bases, n_bases);
        if (!copy || hash_index_reserve(&c->label_index, *ret + 1) < 0 ||
            VECTOR_ADD(c->scratch, c->labels, c->n_labels, c->allocated_labels, (struct label) { gained, copy, n_bases }) < 0)
                return -ENOMEM;
        hash_index_add(&c->label_index, *ret, hash);
        return 0;
}

/* The label of two classes: the bases through which they can talk after (gained), or could before. */
static int label_pair(struct comparer *c, const struct reach_class *x, const struct reach_class *y, bool gained, uint32_t *ret)
{
        uint16_t bases[P_KEY_BASE_MASK + 1]; /* no table is larger */
        uint32_t n = 0;

        for (uint32_t i = 0, k = 0; i < x->n_levels && k < y->n_levels;) {
                const struct reach_level *lx = &x->levels[i], *ly = &y->levels[k];

                if (lx->base == ly->base &&
                    (gained ? levels_talk(lx->after, ly->after) : levels_talk(lx->before, ly->before)))
                        bases[n++] = lx->base;
                i += lx->base <= ly->base;
                k += ly->base <= lx->base;
        }
        assert(n > 0);
        return get_label(c, gained, bases, n, ret);
}

/* --- neighbors of one class ------------------------------------------------------------------------------------------- */

DEFINE_COMPARE(compare_neighbors, struct neighbor, ORDER(a->label, b->label) ?: ORDER(a->class, b->class))

static void count_pairs(const struct comparer *c, uint32_t x, uint32_t y, uint64_t *n)
{
        const struct reach_class *cx = &c->classes.items[x], *cy = &c->classes.items[y];

        if (x == y)
                *n += (uint64_t) cx->n_ports * (cx->n_ports - 1) / 2;
        else if (x < y || !cy->changes) /* else counted before */
                *n += (uint64_t) cx->n_ports * cy->n_ports;
}

/* Compares the class with all classes that share a base with it. That includes the class itself, even if it is one port, so that
 * it can be in one row with other classes of one port. */
static int find_neighbors(struct comparer *c, uint32_t x, struct reach_changes *ret)
{
        const struct reach_class *class = &c->classes.items[x];
        size_t n = 0;

        c->n_neighbors = 0;
        for (uint32_t i = 0; i < class->n_levels; i++) {
                const struct reach_level *l = &class->levels[i];

                for (uint32_t h = c->classes.first_holder[l->base]; h < c->classes.first_holder[l->base + 1]; h++) {
                        const struct reach_holder *holder = &c->classes.holders[h];
                        struct pair_state *pair = &c->pairs[holder->class];

                        if (pair->stamp != x + 1) {
                                *pair = (struct pair_state) { .stamp = x + 1 };
                                if (VECTOR_ADD(c->scratch, c->neighbors, c->n_neighbors, c->allocated_neighbors,
                                               (struct neighbor) { .class = holder->class }) < 0)
                                        return -ENOMEM;
                        }
                        pair->before |= levels_talk(l->before, holder->before);
                        pair->after |= levels_talk(l->after, holder->after);
                }
        }
        for (size_t i = 0; i < c->n_neighbors; i++) {
                uint32_t y = c->neighbors[i].class;
                const struct pair_state *pair = &c->pairs[y];

                if (pair->before == pair->after)
                        continue;
                count_pairs(c, x, y, pair->after ? &ret->n_gained : &ret->n_lost);
                c->neighbors[n].class = y;
                if (label_pair(c, class, &c->classes.items[y], pair->after, &c->neighbors[n++].label) < 0)
                        return -ENOMEM;
        }
        c->n_neighbors = n;
        SORT(c->neighbors, n, compare_neighbors);
        return 0;
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static bool is_row_of(const struct row *row, const struct neighbor *neighbors, size_t n)
{
        for (size_t i = 0; row->n_classes == n && row->label == neighbors->label && i < n; i++)
                if (row->classes[i] != neighbors[i].class)
                        return false;
        return row->n_classes == n && row->label == neighbors->label;
}

/* The row of n neighbors with one label, which is made if there is none. */
static int get_row(struct comparer *c, const struct neighbor *neighbors, size_t n, uint32_t *ret)
{
        uint64_t hash = hash_mix(HASH_START, neighbors->label);
        uint32_t *classes;

        for (size_t k = 0; k < n; k++)
                hash = hash_mix(hash, neighbors[k].class);
        *ret = HASH_INDEX_FIND(i, &c->row_index, hash, is_row_of(&c->rows[i], neighbors, n));
        if (*ret != HASH_INDEX_NONE)
                return 0;
        *ret = (uint32_t) c->n_rows;
        classes = arena_new_array(c->scratch, uint32_t, n);
        if (!classes || hash_index_reserve(&c->row_index, *ret + 1) < 0 ||
            VECTOR_ADD(c->scratch, c->rows, c->n_rows, c->allocated_rows,
                       (struct row) { .label = neighbors->label, .classes = classes, .n_classes = (uint32_t) n }) < 0)
                return -ENOMEM;
        for (size_t k = 0; k < n; k++)
                classes[k] = neighbors[k].class;
        hash_index_add(&c->row_index, *ret, hash);
        return 0;
}

static int add_to_rows(struct comparer *c, uint32_t class)
{
        uint32_t row;

        for (size_t i = 0, n; i < c->n_neighbors; i += n) {
                for (n = 1; i + n < c->n_neighbors && c->neighbors[i + n].label == c->neighbors[i].label;)
                        n++;
                if (get_row(c, c->neighbors + i, n, &row) < 0 ||
                    VECTOR_ADD(c->scratch, c->members, c->n_members, c->allocated_members, (struct member) { row, class }) < 0)
                        return -ENOMEM;
        }
        return 0;
}

DEFINE_COMPARE(compare_members, struct member, ORDER(a->row, b->row) ?: ORDER(a->class, b->class))

DEFINE_COMPARE(compare_rows, struct row, ORDER(a->label, b->label) ?: ORDER(a->members->class, b->members->class))

/* Gives each row its members, and puts the rows of a label together. */
static void sort_rows(struct comparer *c)
{
        SORT(c->members, c->n_members, compare_members);
        for (size_t i = 0; i < c->n_members; i++) {
                struct row *row = &c->rows[c->members[i].row];

                if (row->n_members++ == 0)
                        row->members = &c->members[i];
        }
        SORT(c->rows, c->n_rows, compare_rows);
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

/* The ports of these classes, ascending. NULL: out of memory. */
static const uint32_t *join_ports(const struct comparer *c, const uint32_t *classes, uint32_t n, uint32_t *ret_n)
{
        uint32_t *ports;

        *ret_n = 0;
        for (uint32_t i = 0; i < n; i++)
                *ret_n += c->classes.items[classes[i]].n_ports;
        ports = arena_new_array(c->arena, uint32_t, *ret_n);
        *ret_n = 0;
        for (uint32_t i = 0; i < n && ports; i++) {
                const struct reach_class *class = &c->classes.items[classes[i]];

                memcpy(ports + *ret_n, class->ports, class->n_ports * sizeof(*ports));
                *ret_n += class->n_ports;
        }
        if (ports && n > 1)
                SORT(ports, *ret_n, uint32_compare);
        return ports;
}

static bool is_line_of(const struct reach_line *l, const uint32_t *ports, uint32_t n_ports)
{
        return l->n_ports == n_ports && memcmp(l->ports, ports, n_ports * sizeof(*ports)) == 0;
}

/* The line of these ports, which is made if there is none. */
static int get_line(struct comparer *c, const uint32_t *ports, uint32_t n_ports, struct reach_line **ret)
{
        uint64_t hash = hash_bytes(HASH_START, (const char *) ports, n_ports * sizeof(*ports));
        uint32_t i = HASH_INDEX_FIND(k, &c->line_index, hash, is_line_of(&c->lines[k], ports, n_ports));

        if (i == HASH_INDEX_NONE) {
                i = (uint32_t) c->n_lines;
                if (hash_index_reserve(&c->line_index, i + 1) < 0 ||
                    VECTOR_ADD(c->arena, c->lines, c->n_lines, c->allocated_lines,
                               (struct reach_line) { .ports = ports, .n_ports = n_ports }) < 0)
                        return -ENOMEM;
                hash_index_add(&c->line_index, i, hash);
        }
        *ret = &c->lines[i];
        return 0;
}

static int add_others(struct comparer *c, struct reach_line *line, const struct label *label, const uint32_t *ports, uint32_t n)
{
        struct reach_others *others = arena_new_array(c->arena, struct reach_others, line->n_others + 1);

        if (!others)
                return -ENOMEM;
        if (line->n_others > 0)
                memcpy(others, line->others, line->n_others * sizeof(*others));
        others[line->n_others++] = (struct reach_others) { label->gained, label->bases, label->n_bases, ports, n };
        line->others = others;
        c->n_listed += n;
        return 0;
}

/* The classes of a row whose pairs with its members no earlier row of this label has listed. `done` has the label, plus 1, of each
 * class that was a member of an earlier row: pairs have no direction, so that row listed this one's members. */
static uint32_t select_others(const struct comparer *c, const struct row *row, const uint32_t *done, uint32_t *ret)
{
        bool is_one_port = row->n_members == 1 && c->classes.items[row->members->class].n_ports == 1;
        uint32_t n = 0;

        for (uint32_t i = 0; i < row->n_classes; i++)
                if (done[row->classes[i]] != row->label + 1 && !(is_one_port && row->classes[i] == row->members->class))
                        ret[n++] = row->classes[i];
        return n;
}

static int add_row(struct comparer *c, const struct row *row, uint32_t *done, uint32_t *classes, bool *ret_truncated)
{
        uint32_t n, n_ports, n_others;
        const uint32_t *ports, *others;
        struct reach_line *line;

        n = select_others(c, row, done, classes);
        if (n == 0)
                return 0;
        others = join_ports(c, classes, n, &n_others);
        for (uint32_t i = 0; i < row->n_members; i++) {
                classes[i] = row->members[i].class;
                done[classes[i]] = row->label + 1;
        }
        if (c->n_listed + n_others > REACH_MAX_OTHERS) {
                *ret_truncated = true;
                return 0;
        }
        ports = join_ports(c, classes, row->n_members, &n_ports);
        if (!others || !ports || get_line(c, ports, n_ports, &line) < 0)
                return -ENOMEM;
        return add_others(c, line, &c->labels[row->label], others, n_others);
}

DEFINE_COMPARE(compare_others, struct reach_others,
               ORDER(a->gained, b->gained) ?: ORDER(a->bases[0], b->bases[0]) ?: ORDER(a->n_bases, b->n_bases) ?:
               ORDER(a->ports[0], b->ports[0]))

DEFINE_COMPARE(compare_lines, struct reach_line, ORDER(a->ports[0], b->ports[0]) ?: ORDER(a->n_ports, b->n_ports))

static int make_lines(struct comparer *c, struct reach_changes *ret)
{
        uint32_t *done = arena_new_array(c->scratch, uint32_t, c->classes.n);
        uint32_t *classes = arena_new_array(c->scratch, uint32_t, c->classes.n);
        int r = done && classes ? 0 : -ENOMEM;

        for (size_t i = 0; i < c->n_rows && r == 0; i++)
                r = add_row(c, &c->rows[i], done, classes, &ret->truncated);
        for (size_t i = 0; i < c->n_lines; i++)
                SORT((struct reach_others *) c->lines[i].others, c->lines[i].n_others, compare_others);
        SORT(c->lines, c->n_lines, compare_lines);
        ret->lines = c->lines;
        ret->n_lines = (uint32_t) c->n_lines;
        return r;
}

static uint64_t count_comparisons(const struct reach_classes *classes)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < classes->n; i++)
                for (uint32_t k = 0; classes->items[i].changes && k < classes->items[i].n_levels; k++) {
                        uint16_t base = classes->items[i].levels[k].base;

                        n += classes->first_holder[base + 1] - classes->first_holder[base];
                }
        return n;
}

/* --- all -------------------------------------------------------------------------------------------------------------- */

int reach_compare(struct arena *a, const struct subnet *s, const struct reach_table *before, const struct reach_table *after,
                  struct reach_changes *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct comparer c = {
                .arena = a, .scratch = scratch, .label_index = { .arena = scratch }, .row_index = { .arena = scratch },
                .line_index = { .arena = scratch },
        };
        int r = scratch ? reach_classify(scratch, s, before, after, &c.classes) : -ENOMEM;

        *ret = (struct reach_changes) { .n_unknown = c.classes.n_unknown };
        if (r < 0)
                return r;
        ret->too_many = count_comparisons(&c.classes) > REACH_MAX_COMPARISONS;
        if (ret->too_many)
                return 0;
        c.pairs = arena_new_array(scratch, struct pair_state, c.classes.n);
        if (!c.pairs)
                return -ENOMEM;
        for (uint32_t i = 0; i < c.classes.n && r == 0; i++)
                if (c.classes.items[i].changes)
                        r = find_neighbors(&c, i, ret) ?: add_to_rows(&c, i);
        if (r < 0)
                return r;
        sort_rows(&c);
        return make_lines(&c, ret);
}

/* --- a plan ----------------------------------------------------------------------------------------------------------- */

static void set_enforcement(const struct plan *plan, struct reach_table *after)
{
        for (unsigned p = 0; p < PLAN_N_PHASES; p++)
                for (uint32_t i = 0; i < plan->steps[p].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[p].writes[i];

                        if (w->kind == WRITE_ENFORCEMENT)
                                after[w->port].enforces = w->after_inbound || w->after_outbound;
                }
}

struct reach_table *reach_observed(struct arena *a, const struct observed *observed)
{
        uint32_t n = observed->subnet->n_ports;
        struct reach_table *tables = arena_new_array(a, struct reach_table, n);

        for (uint32_t p = 0; tables && p < n; p++) {
                const struct observed_table *t = &observed->tables[p];

                tables[p] = (struct reach_table) {
                        .entries = t->source == TABLE_UNKNOWN ? NULL : t->entries, .capacity = t->capacity,
                        .enforces = t->enforce_inbound || t->enforce_outbound,
                };
        }
        return tables;
}

int reach_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed, struct reach_changes *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct reach_table *before = reach_observed(scratch, observed), *after = reach_observed(scratch, observed);

        if (!before || !after)
                return -ENOMEM;
        for (uint32_t p = 0; p < plan->subnet->n_ports; p++)
                if (before[p].entries && plan->final_tables[p])
                        after[p].entries = plan->final_tables[p];
        set_enforcement(plan, after);
        return reach_compare(a, plan->subnet, before, after, ret);
}
