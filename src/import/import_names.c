/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "import/import.h"
#include "policy/selector.h"
#include "subnet/fold.h"
#include "util/text.h"
#include "util/vector.h"

#define MAX_ITEM  96 /* characters of one hostlist */
#define MAX_LINES 4  /* sets with more selectors become groups */

/* ---- names of partitions and groups ---------------------------------------------------------------------------- */

/* The name without what a policy does not accept in a name; "p0010" if nothing valid is left. */
static const char *make_valid_name(struct arena *a, const char *name, uint16_t base)
{
        char *copy = arena_strdup(a, name);

        if (!copy)
                return NULL;
        for (char *c = copy; *c; c++)
                if (!isalnum((unsigned char) *c) && !strchr("_-.", *c))
                        *c = '-';
        while (*copy && !isalnum((unsigned char) *copy))
                copy++;
        if (base == P_KEY_DEFAULT_BASE && strcasecmp(copy, "default") == 0)
                return "default";
        if (selector_name_problem(copy) || strcasecmp(copy, "default") == 0 || strcasecmp(copy, "null") == 0)
                return arena_printf(a, "p%04x", base);
        return copy;
}

static bool is_taken(const struct import *im, uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(im->partitions[i].name, name) == 0)
                        return true;
        return false;
}

int import_name_partitions(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions; i++) {
                struct import_partition *p = &im->partitions[i];
                const char *name = make_valid_name(im->arena, p->source->name, p->source->base);

                if (name && is_taken(im, i, name))
                        name = arena_printf(im->arena, "%s-%04x", name, p->source->base);
                if (name && is_taken(im, i, name))
                        name = arena_printf(im->arena, "p%04x", p->source->base);
                if (!name)
                        return -ENOMEM;
                p->name = name;
                if (*p->source->name && strcmp(name, p->source->name) != 0 && strcasecmp(name, "default") != 0)
                        report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_NAME,
                                   &(struct place) { p->source->where }, "partition %s is called '%s' in the policy",
                                   report_quote(&im->report, p->source->name), name);
        }
        return 0;
}

/* ---- hosts ----------------------------------------------------------------------------------------------------- */

/* A selector for a port: its host's name and, as far as needed, device and port number: "", "/mlx5_0", "/mlx5_0/1". */
struct label {
        const char *name, *suffix;
};

struct namer {
        struct import *im;
        bool *in_set;           /* of each port of the subnet */
        struct label *labels;
        uint32_t n_labels;
        const char **items;
        uint32_t n_items, allocated;
};

static int add_item(struct namer *n, const char *item)
{
        return item ? VECTOR_ADD(n->im->arena, n->items, n->n_items, n->allocated, item) : -ENOMEM;
}

/* Returns whether the set has all endports of a node. */
static bool has_whole_node(const struct namer *n, uint32_t node)
{
        const struct subnet *s = n->im->subnet;

        for (uint32_t i = subnet_first_port(s, node); i < s->n_ports && s->ports[i].node == node; i++)
                if (s->ports[i].role == PORT_ENDPORT && !n->in_set[i])
                        return false;
        return true;
}

/* Returns whether the set has all endports of all nodes with this name and device (NULL: any), and none of them has a twin: pkeyd
 * freezes ports that a name selects together with a twin's. *ret_nodes: the number of these nodes. */
static bool has_whole_name(const struct namer *n, const char *name, const char *device, unsigned *ret_nodes)
{
        const struct subnet *s = n->im->subnet;
        bool whole = true;

        *ret_nodes = 0;
        for (uint32_t i = subnet_first_name(s, name); i < s->n_by_name; i++) {
                const struct subnet_node *node = subnet_named_node(s, i);

                if (strcmp(node->name, name) != 0)
                        break;
                if (device && strcmp(node->device, device) != 0)
                        continue;
                ++*ret_nodes;
                whole = whole && has_whole_node(n, s->by_name[i]) && !subnet_is_twin(s, i);
        }
        return whole;
}

/* Not null, which is nothing at all in YAML without quotes. */
static bool is_usable(const char *word)
{
        return selector_names_host(word) && strcasecmp(word, "null") != 0;
}

/* The selector for a port. ret->name NULL: only its GUID selects it. Returns 0 or -ENOMEM. */
static int label_port(const struct namer *n, uint32_t port, struct label *ret)
{
        const struct subnet *s = n->im->subnet;
        const struct subnet_node *node = subnet_port_node(s, &s->ports[port]);
        unsigned nodes;

        *ret = (struct label) { .suffix = "" };
        if (!is_usable(node->name))
                return 0;
        if (has_whole_name(n, node->name, NULL, &nodes)) {
                ret->name = node->name;
        } else if (is_usable(node->device) && has_whole_name(n, node->name, node->device, &nodes)) {
                ret->name = node->name;
                ret->suffix = arena_printf(n->im->arena, "/%s", node->device);
        } else if (is_usable(node->device) && nodes == 1 && s->ports[port].number > 0) {
                ret->name = node->name;
                ret->suffix = arena_printf(n->im->arena, "/%s/%u", node->device, s->ports[port].number);
        }
        return ret->suffix ? 0 : -ENOMEM;
}

DEFINE_COMPARE(compare_labels, struct label, strcmp(a->suffix, b->suffix) ?: strcmp(a->name, b->name))

/* Adds a hostlist PREFIX[RANGES]REST with a suffix, split into items of a readable length. */
static int add_hostlist(struct namer *n, const char *text, size_t length, const char *suffix)
{
        const char *end = text + length, *open = memchr(text, '[', length), *close, *piece, *comma;
        struct arena *a = n->im->arena;
        int r = 0;

        close = open ? memchr(open, ']', (size_t) (end - open)) : NULL;
        if (length <= MAX_ITEM || !close)
                return add_item(n, arena_printf(a, "%.*s%s", (int) length, text, suffix));
        for (piece = open + 1; piece < close && r == 0; piece = comma + 1) {
                comma = piece + MAX_ITEM < close ? memrchr(piece, ',', MAX_ITEM) : close;
                if (!comma)
                        comma = close;
                r = add_item(n, arena_printf(a, "%.*s[%.*s]%.*s%s", (int) (open - text), text, (int) (comma - piece), piece,
                                             (int) (end - close - 1), close + 1, suffix));
        }
        return r;
}

/* Folds labels with the same suffix, and adds one item for each hostlist. */
static int add_folded(struct namer *n, const struct label *labels, uint32_t count)
{
        const char **names = arena_new_array(n->im->arena, const char *, count), *text;
        int depth = 0, r = 0;

        if (!names)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                names[i] = labels[i].name;
        text = fold_names(n->im->arena, names, count);
        if (!text)
                return -ENOMEM;
        for (const char *start = text; r == 0; text++) {
                depth += (*text == '[') - (*text == ']');
                if (*text && (*text != ',' || depth > 0))
                        continue;
                r = add_hostlist(n, start, (size_t) (text - start), labels->suffix);
                start = text + 1;
                if (!*text)
                        break;
        }
        return r;
}

static int add_hosts(struct namer *n)
{
        int r = 0;

        qsort(n->labels, n->n_labels, sizeof(*n->labels), compare_labels);
        for (uint32_t i = 0, end; i < n->n_labels && r == 0; i = end) {
                for (end = i + 1; end < n->n_labels && strcmp(n->labels[i].suffix, n->labels[end].suffix) == 0;)
                        end++;
                r = add_folded(n, &n->labels[i], end - i);
        }
        return r;
}

/* Names ports by their hosts; ports without a usable name, or not in the fabric, by their GUIDs. */
static int name_ports(struct namer *n, struct import_set *set)
{
        int r = 0;

        for (uint32_t i = 0; i < set->n_ports; i++)
                if (set->ports[i]->port != SUBNET_NONE)
                        n->in_set[set->ports[i]->port] = true;
        for (uint32_t i = 0; i < set->n_ports && r == 0; i++) {
                struct import_port *p = set->ports[i];
                struct label label = {};

                if (p->port != SUBNET_NONE)
                        r = label_port(n, p->port, &label);
                p->stays_guid = !label.name;
                if (label.name)
                        n->labels[n->n_labels++] = label;
                else
                        set->guids[set->n_guids++] = p;
        }
        r = r ?: add_hosts(n);
        for (uint32_t i = 0; i < set->n_guids && r == 0; i++)
                r = add_item(n, arena_printf(n->im->arena, "0x%016" PRIx64, set->guids[i]->guid.v));
        return r;
}

static int name_set(struct import *im, struct import_set *set)
{
        struct namer n = { .im = im };
        _cleanup_text_ struct text all = {};
        int r;

        n.in_set = arena_new_array(im->arena, bool, im->subnet ? im->subnet->n_ports : 0);
        n.labels = arena_new_array(im->arena, struct label, set->n_ports);
        set->guids = arena_new_array(im->arena, struct import_port *, set->n_ports);
        if (!n.in_set || !n.labels || !set->guids)
                return -ENOMEM;
        r = name_ports(&n, set);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n.n_items; i++)
                text_add(&all, "%s,", n.items[i]);
        set->text = text_copy(im->arena, &all);
        set->items = n.items;
        set->n_items = n.n_items;
        return set->text ? 0 : -ENOMEM;
}

int import_name_sets(struct import *im, struct import_partition *p)
{
        static const enum membership order[] = { MEMBERSHIP_LIMITED, MEMBERSHIP_FULL, MEMBERSHIP_BOTH };
        int r = 0;

        for (size_t k = 0; k < ELEMENTS(order) && r == 0; k++) {
                struct import_set *set = &p->sets[p->n_sets];

                *set = (struct import_set) { .membership = order[k] };
                set->ports = arena_new_array(im->arena, struct import_port *, p->n_ports);
                if (!set->ports)
                        return -ENOMEM;
                for (uint32_t i = 0; i < p->n_ports; i++)
                        if (p->ports[i].membership == order[k])
                                set->ports[set->n_ports++] = &p->ports[i];
                if (set->n_ports == 0)
                        continue;
                r = name_set(im, set);
                p->n_sets++;
        }
        return r;
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* A set and its partition, to be sorted by the set's text. */
struct candidate {
        struct import_partition *partition;
        struct import_set *set;
        uint32_t order;
};

DEFINE_COMPARE(compare_candidates, struct candidate, strcmp(a->set->text, b->set->text) ?: ORDER(a->order, b->order))

static bool group_is_taken(const struct import *im, const char *name)
{
        if (im->subnet && subnet_has_name(im->subnet, name))
                return true;
        for (uint32_t p = 0; p < im->n_partitions; p++)
                for (uint32_t k = 0; k < im->partitions[p].n_sets; k++)
                        if (im->partitions[p].sets[k].group && strcmp(im->partitions[p].sets[k].group, name) == 0)
                                return true;
        return false;
}

/* The name of the first partition with this set, made unique. */
static const char *name_group(struct import *im, const struct candidate *c)
{
        const char *base = c->partition->name, *name = base;
        unsigned n = 1;

        if (strlen(base) > HOSTLIST_MAX_LENGTH - 16)
                base = arena_strndup(im->arena, base, HOSTLIST_MAX_LENGTH - 16);
        if (!base)
                return NULL;
        if (c->partition->n_sets > 1)
                base = arena_printf(im->arena, "%s-%s", base, membership_to_string(c->set->membership));
        for (name = base; name && group_is_taken(im, name);)
                name = arena_printf(im->arena, "%s-%u", base, ++n);
        return name;
}

static bool deserves_group(const struct import_set *set, uint32_t n_uses)
{
        return set->n_items > MAX_LINES || (n_uses > 1 && (set->n_items > 1 || strchr(set->text, '[')));
}

static int name_equal_sets(struct import *im, struct candidate *first, uint32_t n)
{
        const char *name;

        if (!deserves_group(first->set, n))
                return 0;
        name = name_group(im, first);
        if (!name)
                return -ENOMEM;
        first->set->defines_group = true;
        for (uint32_t i = 0; i < n; i++)
                first[i].set->group = name;
        return 0;
}

int import_find_groups(struct import *im)
{
        struct candidate *all = arena_new_array(im->arena, struct candidate, (size_t) im->n_partitions * 3);
        uint32_t n = 0;
        int r = 0;

        if (!all)
                return -ENOMEM;
        for (uint32_t p = 0; p < im->n_partitions; p++)
                for (uint32_t k = 0; k < im->partitions[p].n_sets; k++, n++)
                        all[n] = (struct candidate) { &im->partitions[p], &im->partitions[p].sets[k], n };
        qsort(all, n, sizeof(*all), compare_candidates);
        for (uint32_t i = 0, end; i < n && r == 0; i = end) {
                for (end = i + 1; end < n && strcmp(all[i].set->text, all[end].set->text) == 0;)
                        end++;
                r = name_equal_sets(im, &all[i], end - i);
        }
        return r;
}
