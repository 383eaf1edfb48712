/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pins/pins.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"
#include "util/vector.h"

/* How many nodes of one name are bound together. A name that more nodes have is that of a product. */
#define MAX_NAMESAKES 256

/* ---- the array ---------------------------------------------------------------------------------------------------- */

/* The three parts of a name are one block of memory. */
static void free_name(struct subnet_name *name)
{
        free((char *) name->description);
        *name = (struct subnet_name) {};
}

static int copy_name(const struct subnet_name *from, struct subnet_name *ret)
{
        size_t n = strlen(from->description) + 1, n_name = strlen(from->name) + 1, n_device = strlen(from->device) + 1;
        char *block = malloc(n + n_name + n_device);

        if (!block)
                return -ENOMEM;
        *ret = (struct subnet_name) { block, block + n, block + n + n_name };
        memcpy(block, from->description, n);
        memcpy(block + n, from->name, n_name);
        memcpy(block + n + n_name, from->device, n_device);
        return 0;
}

void pins_done(struct pins *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                free_name(&p->items[i].name);
        free(p->items);
        free(p->gone);
        *p = (struct pins) {};
}

/* The position of this GUID, or where it would be. */
static uint32_t place_of(const struct pins *p, struct guid node)
{
        return LOWER_BOUND(pin, p->items, p->n, pin->node.v < node.v);
}

const struct pin *pins_find(const struct pins *p, struct guid node)
{
        return FIND_SORTED(pin, p->items, p->n, ORDER(pin->node.v, node.v));
}

int pins_add(struct pins *p, const struct pin *pin)
{
        uint32_t at = place_of(p, pin->node);
        bool is_new = !pins_find(p, pin->node);
        struct pin copy = *pin;

        if (is_new && p->n == PINS_MAX)
                return -ENOSPC;
        if (copy_name(&pin->name, &copy.name) < 0)
                return -ENOMEM;
        if (!is_new) {
                free_name(&p->items[at].name);
                p->items[at] = copy;
        } else if (VECTOR_INSERT(NULL, p->items, p->n, p->allocated, at, copy) < 0) {
                free_name(&copy.name);
                return -ENOMEM;
        }
        return 0;
}

static void take_out(struct pins *p, uint32_t at)
{
        free_name(&p->items[at].name);
        p->n--;
        memmove(&p->items[at], &p->items[at + 1], (p->n - at) * sizeof(*p->items));
}

/* The same for one that may be in the store. */
static int remove_pin(struct pins *p, uint32_t at)
{
        if (VECTOR_ADD(NULL, p->gone, p->n_gone, p->allocated_gone, p->items[at].node) < 0)
                return -ENOMEM;
        take_out(p, at);
        return 0;
}

void pins_stored(struct pins *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                p->items[i].is_stored = true;
        p->n_gone = 0;
}

void pins_unstore(struct pins *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                p->items[i].is_stored = false;
}

/* ---- names -------------------------------------------------------------------------------------------------------- */

static const char *board_of(const struct pin *pin)
{
        return subnet_node_board(&(struct subnet_node) { .description = pin->name.description, .name = pin->name.name });
}

static bool is_same_board(const struct pin *pin, const struct subnet_node *node)
{
        return node->type != NODE_SWITCH || strcmp(board_of(pin), subnet_node_board(node)) == 0;
}

bool pin_is_of(const struct pin *pin, const struct subnet_node *node)
{
        return pin->type == node->type && strcmp(pin->name.name, node->name) == 0 && strcmp(pin->name.device, node->device) == 0 &&
               is_same_board(pin, node);
}

bool pins_is_unnamed(const struct subnet_node *node)
{
        return !node->name[0] || text_ends_with(node->description, " Technologies") || strcmp(node->name, "localhost") == 0 ||
               strncmp(node->name, "localhost.", strlen("localhost.")) == 0 || strcmp(node->name, "(none)") == 0;
}

static struct pin make_pin(const struct subnet_node *node, uint64_t wall)
{
        return (struct pin) { .node = node->guid, .type = node->type, .name = { node->description, node->name, node->device },
                              .since = wall };
}

/* ---- binding ------------------------------------------------------------------------------------------------------ */

static bool is_new(const struct pins *p, const struct subnet_node *node)
{
        return !node->incomplete && !pins_is_unnamed(node) && !pins_find(p, node->guid);
}

/* True if two new nodes of by_name[first..end) have the same device or board. */
static bool has_twins(const struct pins *p, const struct subnet *s, uint32_t first, uint32_t end)
{
        for (uint32_t i = first; i < end; i++) {
                const struct subnet_node *node = &s->nodes[s->by_name[i]];
                struct pin pin = make_pin(node, 0);

                for (uint32_t k = first; k < i && is_new(p, node); k++)
                        if (is_new(p, &s->nodes[s->by_name[k]]) && pin_is_of(&pin, &s->nodes[s->by_name[k]]))
                                return true;
        }
        return false;
}

/* Nodes that are about to be bound: indexes of a snapshot. */
struct binding {
        uint32_t *nodes;
        uint32_t n;
};

static void add_new(const struct pins *p, const struct subnet *s, uint32_t first, uint32_t end, struct binding *b)
{
        if (end - first > MAX_NAMESAKES || has_twins(p, s, first, end))
                return;
        for (uint32_t i = first; i < end; i++)
                if (is_new(p, &s->nodes[s->by_name[i]]))
                        b->nodes[b->n++] = s->by_name[i];
}

static bool has_new(const struct pins *p, const struct subnet *s)
{
        for (uint32_t i = 0; i < s->n_by_name; i++)
                if (is_new(p, &s->nodes[s->by_name[i]]))
                        return true;
        return false;
}

static int compare_strings(const void *left, const void *right)
{
        return strcmp(*(const char *const *) left, *(const char *const *) right);
}

/* The names of all pins, ascending. NULL: out of memory. */
static const char **list_names(const struct pins *p)
{
        const char **names = calloc((size_t) p->n + 1, sizeof(*names));

        for (uint32_t i = 0; names && i < p->n; i++)
                names[i] = p->items[i].name.name;
        if (names)
                SORT(names, p->n, compare_strings);
        return names;
}

static int find_new(const struct pins *p, const struct subnet *s, struct binding *ret)
{
        _cleanup_free_ const char **names = list_names(p);

        if (!names)
                return -ENOMEM;
        for (uint32_t i = 0, end; i < s->n_by_name; i = end) {
                const char *name = s->nodes[s->by_name[i]].name;

                for (end = i + 1; end < s->n_by_name && strcmp(s->nodes[s->by_name[end]].name, name) == 0; end++)
                        ;
                if (p->n == 0 || !bsearch(&name, names, p->n, sizeof(*names), compare_strings))
                        add_new(p, s, i, end, ret);
        }
        return 0;
}

/* Copies the names first, so that nothing has changed if out of memory. */
static int copy_names(const struct subnet *s, const struct binding *b, struct subnet_name *ret)
{
        for (uint32_t i = 0; i < b->n; i++) {
                const struct subnet_node *node = &s->nodes[b->nodes[i]];

                if (copy_name(&(struct subnet_name) { node->description, node->name, node->device }, &ret[i]) == 0)
                        continue;
                while (i-- > 0)
                        free_name(&ret[i]);
                return -ENOMEM;
        }
        return 0;
}

/* Merges the new pins, of ascending nodes, into the array from its end: inserting one after another would take too long. */
static int merge_new(struct pins *p, const struct subnet *s, const struct binding *b, uint64_t wall)
{
        _cleanup_free_ struct subnet_name *names = calloc((size_t) b->n + 1, sizeof(*names));
        uint32_t old = p->n, new = b->n;

        if (!names || VECTOR_EXTEND(NULL, p->items, p->n, p->allocated, b->n) < 0 || copy_names(s, b, names) < 0)
                return -ENOMEM;
        p->n += b->n;
        for (uint32_t at = p->n; new > 0;) {
                const struct subnet_node *node = &s->nodes[b->nodes[new - 1]];

                if (old > 0 && p->items[old - 1].node.v > node->guid.v) {
                        p->items[--at] = p->items[--old];
                        continue;
                }
                p->items[--at] = make_pin(node, wall);
                p->items[at].name = names[--new];
                p->items[at].is_provisional = true;
        }
        return 1;
}

int pins_bind(struct pins *p, const struct subnet *s, uint64_t wall)
{
        _cleanup_free_ uint32_t *nodes = NULL;
        struct binding b = {};

        if (!has_new(p, s))
                return 0;
        b.nodes = nodes = calloc((size_t) s->n_by_name + 1, sizeof(*nodes));
        if (!nodes || find_new(p, s, &b) < 0)
                return -ENOMEM;
        b.n = MIN(b.n, PINS_MAX - p->n);
        if (b.n == 0)
                return 0;
        SORT(nodes, b.n, uint32_compare);
        return merge_new(p, s, &b, wall);
}

void pins_keep(struct pins *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                p->items[i].is_provisional = false;
}

void pins_take_back(struct pins *p)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < p->n; i++)
                if (p->items[i].is_provisional)
                        free_name(&p->items[i].name);
                else
                        p->items[kept++] = p->items[i];
        p->n = kept;
}

/* ---- what an admin says ------------------------------------------------------------------------------------------- */

/* Other nodes lose the pin of exactly this name. */
static int set_pin(struct pins *p, const struct pin *pin)
{
        const struct subnet_node as = {
                .type = pin->type, .description = pin->name.description, .name = pin->name.name, .device = pin->name.device,
        };
        int r = pins_add(p, pin);

        for (uint32_t i = p->n; r == 0 && i-- > 0;)
                if (p->items[i].node.v != pin->node.v && pin_is_of(&p->items[i], &as))
                        r = remove_pin(p, i);
        return r;
}

int pins_accept(struct pins *p, const struct subnet *s, uint32_t node, uint64_t wall)
{
        struct pin pin = make_pin(&s->nodes[node], wall);

        assert(!pins_is_unnamed(&s->nodes[node]));
        return set_pin(p, &pin);
}

int pins_drop(struct pins *p, const char *name)
{
        int n = 0;

        for (uint32_t i = p->n; i-- > 0;) {
                if (strcmp(p->items[i].name.name, name) != 0)
                        continue;
                if (remove_pin(p, i) < 0)
                        return -ENOMEM;
                n++;
        }
        return n;
}

int pins_move(struct pins *p, struct guid from, const struct subnet *s, uint32_t node, uint64_t wall)
{
        const struct pin *old = pins_find(p, from);
        struct pin pin = make_pin(&s->nodes[node], wall);
        struct subnet_name copy;
        int r;

        if (!old)
                return -ENOENT;
        if (copy_name(&old->name, &copy) < 0)
                return -ENOMEM;
        if (strcmp(pin.name.name, copy.name) != 0 || pin.type != old->type)
                pin.name = copy;
        r = from.v == pin.node.v ? 0 : remove_pin(p, place_of(p, from));
        r = r ?: set_pin(p, &pin);
        free_name(&copy);
        return r;
}
