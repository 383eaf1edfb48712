/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The normal form is the same for all files with the same meaning: partitions by P_Key after the default partition, lines from the
 * least specific, groups and equally specific lines by name, GUIDs with all digits.
 */
#include <string.h>

#include "policy_print.h"

#include "policy/selector.h"

/* libyaml accepts "KEY: VALUE" only for keys of up to 1024 characters; longer ones are written "? KEY" and ": VALUE". */
#define SIMPLE_KEY_MAX 1000

/* A line of a partition or group, printed once and then sorted. */
struct line {
        const char *text;
        enum specificity specificity;
        enum membership membership;
};

static bool needs_quotes(const char *s)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/,[]";

        return !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", s[0]) ||
               strspn(s, plain) != strlen(s) || strcasecmp(s, "null") == 0;
}

static void print_word(struct text *t, const char *s)
{
        const char *quote = needs_quotes(s) ? "\"" : "";

        text_add(t, "%s%s%s", quote, s, quote);
}

static int compare_lines(const void *left, const void *right)
{
        const struct line *a = left, *b = right;

        return ORDER(a->specificity, b->specificity) ?: strcmp(a->text, b->text);
}

static bool make_line(struct arena *a, struct selector *const *selectors, uint32_t n, struct line *ret)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < n; i++) {
                if (i > 0)
                        text_add_n(&t, ",", 1);
                selector_print(&t, selectors[i]);
                ret->specificity = MAX(ret->specificity, selectors[i]->specificity);
        }
        ret->text = text_copy(a, &t);
        return ret->text;
}

static void print_ranges(struct text *t, const struct base_range *ranges, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                text_add(t, "%s0x%04x", i > 0 ? ", " : "", ranges[i].first);
                if (ranges[i].last > ranges[i].first)
                        text_add(t, "-0x%04x", ranges[i].last);
        }
}

static void print_pool(struct text *t, const struct policy_pool *p)
{
        text_add(t, "  %s:\n    pkeys: [", p->name);
        print_ranges(t, p->ranges, p->n_ranges);
        text_add(t, "]\n    ports: \"");
        for (uint32_t i = 0; i < p->n_ports; i++) {
                text_add(t, "%s", i > 0 ? "," : "");
                selector_print(t, p->ports[i]);
        }
        text_add(t, "\"\n    membership: %s\n", membership_to_string(p->membership));
        if (p->longest == POLICY_UNLIMITED)
                text_add(t, "    lease: unlimited\n");
        else
                text_add(t, "    lease: %" PRIu64 "s\n", p->longest);
        text_add(t, "    rest: %" PRIu64 "s\n    index0: %s\n    allow: [", p->rest, p->index0 ? "true" : "false");
        for (uint32_t i = 0; i < p->n_allow; i++)
                text_add(t, "%s\"%s\"", i > 0 ? ", " : "", p->allow[i]);
        text_add(t, "]\n");
}

static void print_pools(struct text *t, const struct policy *p)
{
        if (p->n_pools > 0)
                text_add(t, "pools:\n");
        for (uint32_t i = 0; i < p->n_pools; i++)
                print_pool(t, &p->pools[i]);
}

static void print_owns(struct text *t, const struct policy *p)
{
        if (p->n_owns == 1 && p->owns[0].first == 1 && p->owns[0].last == P_KEY_BASE_MASK)
                return;
        text_add(t, "owns:\n");
        for (uint32_t i = 0; i < p->n_owns; i++) {
                text_add(t, "  - 0x%04x", p->owns[i].first);
                if (p->owns[i].last > p->owns[i].first)
                        text_add(t, "-0x%04x", p->owns[i].last);
                text_add_n(t, "\n", 1);
        }
}

static bool print_group(struct text *t, struct arena *a, const struct policy_group *g)
{
        struct line *lines = arena_new_array(a, struct line, g->n_selectors);

        if (!lines)
                return false;
        for (uint32_t i = 0; i < g->n_selectors; i++)
                if (!make_line(a, &g->selectors[i], 1, &lines[i]))
                        return false;
        qsort(lines, g->n_selectors, sizeof(*lines), compare_lines);
        text_add(t, "  %s:%s\n", g->name, g->n_selectors == 0 ? " []" : "");
        for (uint32_t i = 0; i < g->n_selectors; i++) {
                text_add(t, "    - ");
                print_word(t, lines[i].text);
                text_add_n(t, "\n", 1);
        }
        return true;
}

static bool print_groups(struct text *t, struct arena *a, const struct policy *p)
{
        if (p->n_groups > 0)
                text_add(t, "groups:\n");
        for (uint32_t i = 0; i < p->n_groups; i++)
                if (!print_group(t, a, &p->groups[i]))
                        return false;
        return true;
}

static void print_member(struct text *t, const struct line *line)
{
        bool simple = strlen(line->text) <= SIMPLE_KEY_MAX;

        text_add(t, simple ? "      " : "      ? ");
        print_word(t, line->text);
        text_add(t, "%s: %s\n", simple ? "" : "\n      ", membership_to_string(line->membership));
}

static bool print_partition(struct text *t, struct arena *a, const struct policy_partition *p)
{
        struct line *lines = arena_new_array(a, struct line, p->n_rules);

        if (!lines)
                return false;
        for (uint32_t i = 0; i < p->n_rules; i++) {
                if (!make_line(a, p->rules[i].selectors, p->rules[i].n_selectors, &lines[i]))
                        return false;
                lines[i].membership = p->rules[i].membership;
        }
        qsort(lines, p->n_rules, sizeof(*lines), compare_lines);
        text_add(t, "  %s:\n    pkey: 0x%04x\n%s", p->name, p->base, p->index0 ? "    index0: true\n" : "");
        if (p->ipoib) {
                const char *ipoib = policy_print_ipoib(a, p->ipoib);

                if (!ipoib)
                        return false;
                text_add(t, "%s", ipoib);
        }
        text_add(t, "    members:%s\n", p->n_rules == 0 ? " {}" : "");
        for (uint32_t i = 0; i < p->n_rules; i++)
                print_member(t, &lines[i]);
        return true;
}

static int compare_partitions(const void *left, const void *right)
{
        const struct policy_partition *a = *(const struct policy_partition *const *) left;
        const struct policy_partition *b = *(const struct policy_partition *const *) right;
        bool default_a = a->base == P_KEY_DEFAULT_BASE, default_b = b->base == P_KEY_DEFAULT_BASE;

        if (default_a != default_b)
                return default_a ? -1 : 1;
        return ORDER(a->base, b->base);
}

static bool print_partitions(struct text *t, struct arena *a, const struct policy *p)
{
        const struct policy_partition **sorted = arena_new_array(a, const struct policy_partition *, p->n_partitions);
        uint32_t n = 0;

        if (!sorted)
                return false;
        /* the default partition cannot be in the file if the policy does not own it */
        for (uint32_t i = 0; i < p->n_partitions; i++)
                if (policy_owns(p, p->partitions[i].base))
                        sorted[n++] = &p->partitions[i];
        qsort(sorted, n, sizeof(*sorted), compare_partitions);
        text_add(t, "partitions:%s\n", n == 0 ? " {}" : "");
        for (uint32_t i = 0; i < n; i++)
                if (!print_partition(t, a, sorted[i]))
                        return false;
        return true;
}

const char *policy_print(struct arena *a, const struct policy *p)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        _cleanup_text_ struct text t = {};

        if (!scratch)
                return NULL;
        text_add(&t, "version: 1\n%s", p->strict ? "strict: true\n" : "");
        print_owns(&t, p);
        print_pools(&t, p);
        if (!print_groups(&t, scratch, p) || !print_partitions(&t, scratch, p))
                return NULL;
        return text_copy(a, &t);
}
