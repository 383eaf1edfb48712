/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subnet/fold.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/text.h"

#define MAX_DIGITS 18 /* always fits into 64 bits */

/* A name split at its last run of digits. */
struct part {
        const char *name;
        size_t prefix, digits; /* digits 0: nothing to fold */
        uint64_t number;
};

static struct part take_apart(const char *name)
{
        struct part p = { .name = name };
        size_t end = strlen(name), start;

        while (end > 0 && !isdigit((unsigned char) name[end - 1]))
                end--;
        start = end;
        while (start > 0 && isdigit((unsigned char) name[start - 1]))
                start--;
        if (end - start > MAX_DIGITS || end == start)
                return (struct part) { .name = name, .prefix = strlen(name) };
        p.prefix = start;
        p.digits = end - start;
        for (size_t i = start; i < end; i++)
                p.number = p.number * 10 + (uint64_t) (name[i] - '0');
        return p;
}

static const char *suffix(const struct part *p)
{
        return p->name + p->prefix + p->digits;
}

/* Compares what surrounds the number. */
static int compare_frames(const struct part *a, const struct part *b)
{
        return memcmp(a->name, b->name, MIN(a->prefix, b->prefix)) ?: ORDER(a->prefix, b->prefix) ?:
               strcmp(suffix(a), suffix(b)) ?: (a->digits > 0) - (b->digits > 0);
}

DEFINE_COMPARE(compare_parts, struct part, compare_frames(a, b) ?: ORDER(a->number, b->number) ?: ORDER(a->digits, b->digits))

/* True if b is the next number in the same width: 9 -> 10 and 09 -> 10, but not 9 -> 010. */
static bool follows(const struct part *a, const struct part *b)
{
        char buffer[MAX_DIGITS + 3];
        int n;

        if (b->number != a->number + 1)
                return false;
        n = snprintf(buffer, sizeof(buffer), "%0*" PRIu64, (int) a->digits, b->number);
        return n >= 0 && (size_t) n == b->digits;
}

static void print_range(struct text *t, const struct part *first, const struct part *last)
{
        text_add(t, "%.*s", (int) first->digits, first->name + first->prefix);
        if (last != first)
                text_add(t, "-%.*s", (int) last->digits, last->name + last->prefix);
}

/* Prints names with one prefix and suffix: prefix[ranges]suffix, or the name alone. */
static void print_group(struct text *t, const struct part *parts, size_t n)
{
        if (n == 1 || parts->digits == 0) {
                text_add(t, "%s", parts->name);
                return;
        }
        text_add(t, "%.*s[", (int) parts->prefix, parts->name);
        for (size_t i = 0, end; i < n; i = end + 1) {
                for (end = i; end + 1 < n && follows(&parts[end], &parts[end + 1]);)
                        end++;
                if (i > 0)
                        text_add(t, ",");
                print_range(t, &parts[i], &parts[end]);
        }
        text_add(t, "]%s", suffix(parts));
}

static void print_parts(struct text *t, const struct part *parts, size_t n)
{
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && compare_frames(&parts[i], &parts[end]) == 0;)
                        end++;
                if (i > 0)
                        text_add(t, ",");
                print_group(t, parts + i, end - i);
        }
}

static size_t drop_equal(struct part *parts, size_t n)
{
        size_t kept = 0;

        for (size_t i = 0; i < n; i++)
                if (kept == 0 || compare_parts(&parts[kept - 1], &parts[i]) != 0)
                        parts[kept++] = parts[i];
        return kept;
}

const char *fold_names(struct arena *a, const char **names, size_t n)
{
        _cleanup_free_ struct part *parts = calloc(n ? n : 1, sizeof(*parts));
        _cleanup_text_ struct text t = {};

        if (!parts)
                return NULL;
        for (size_t i = 0; i < n; i++)
                parts[i] = take_apart(names[i]);
        qsort(parts, n, sizeof(*parts), compare_parts);
        n = drop_equal(parts, n);
        print_parts(&t, parts, n);
        return text_copy(a, &t);
}

const char *fold_cut(struct arena *a, const char *list, size_t max)
{
        const char *rest = "";
        size_t end = max;
        int depth = 0;

        if (strlen(list) <= max)
                return list;
        while (end > 0 && list[end] != ',')
                end--;
        for (size_t i = 0; i < end; i++)
                depth += (list[i] == '[') - (list[i] == ']');
        if (depth > 0) /* within node[1,2,...]: what is after the numbers belongs to each of these names */
                rest = strchr(list + end, ']') ?: "";
        return arena_printf(a, "%.*s%.*s,...", (int) end, list, (int) strcspn(rest, ","), rest);
}

struct named_port {
        const char *name;
        uint32_t port;
};

DEFINE_COMPARE(compare_named, struct named_port, strcmp(a->name, b->name) ?: ORDER(a->port, b->port))

/* Counts the endports of all nodes with this name: a host may have several adapters. *at: where they are in by_name, or before;
 * it is moved there. */
static uint32_t count_endports(const struct subnet *s, const char *name, uint32_t *at)
{
        uint32_t n = 0;

        *at = subnet_next_name(s, *at, name);
        for (uint32_t i = *at; i < s->n_by_name; i++) {
                uint32_t node = s->by_name[i];

                if (strcmp(s->nodes[node].name, name) != 0)
                        break;
                for (uint32_t p = subnet_first_port(s, node); p < s->n_ports && s->ports[p].node == node; p++)
                        n += s->ports[p].role == PORT_ENDPORT;
        }
        return n;
}

static const char *long_name(struct arena *a, const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);

        if (!*node->device)
                return subnet_port_label(a, s, port);
        return arena_printf(a, "%s/%s/%u", node->name, node->device, p->number);
}

/* One label for each port of a name; equal labels fold into one. */
static int label_group(struct arena *a, const struct subnet *s, const struct named_port *group, size_t n, uint32_t *at,
                       const char **labels)
{
        bool whole = count_endports(s, group->name, at) == n;

        for (size_t i = 0; i < n; i++) {
                const struct subnet_node *node = subnet_port_node(s, &s->ports[group[i].port]);
                bool is_one = whole || !*node->name || node->type == NODE_SWITCH; /* a switch has one endport */

                labels[i] = is_one ? group->name : long_name(a, s, group[i].port);
                if (!labels[i])
                        return -ENOMEM;
        }
        return 0;
}

/* Names of ports, and the ports, sorted by both. */
static int name_ports(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n, struct named_port *ret)
{
        for (uint32_t i = 0; i < n; i++) {
                const struct subnet_node *node = subnet_port_node(s, &s->ports[ports[i]]);
                const char *name = *node->name ? node->name : node->description;

                if (node->type == NODE_SWITCH) /* those of a director have one name, and a board each */
                        name = subnet_node_label(a, node);
                if (!name)
                        return -ENOMEM;
                ret[i] = (struct named_port) { name, ports[i] };
        }
        qsort(ret, n, sizeof(*ret), compare_named);
        return 0;
}

const char **fold_labels(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n, uint32_t *ret_n)
{
        _cleanup_free_ struct named_port *named = calloc(n ? n : 1, sizeof(*named));
        const char **labels = arena_new_array(a, const char *, n);
        uint32_t kept = 0, at = 0;

        if (!named || !labels || name_ports(a, s, ports, n, named) < 0)
                return NULL;
        for (uint32_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && strcmp(named[i].name, named[end].name) == 0;)
                        end++;
                if (label_group(a, s, named + i, end - i, &at, labels + i) < 0)
                        return NULL;
        }
        for (uint32_t i = 0; i < n; i++)
                if (kept == 0 || strcmp(labels[kept - 1], labels[i]) != 0)
                        labels[kept++] = labels[i];
        *ret_n = kept;
        return labels;
}

const char *fold_ports(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        uint32_t n_labels;
        const char **labels = fold_labels(scratch, s, ports, n, &n_labels);

        return labels ? fold_names(a, labels, n_labels) : NULL;
}
