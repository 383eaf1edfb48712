/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contradictions that are visible without a fabric: two equally specific lines of a partition with different memberships that name
 * the same host, GUID or switch port. Only certain contradictions are reported. If a more specific line may decide for that host,
 * or the lines have too many names to list, it is left to policy_resolve().
 *
 * Resolving the policy for a made-up snapshot of the named hosts cannot replace this file: in such a snapshot a GUID, SELF or a
 * switch port of a more specific line selects none of these hosts. In the fabric it may select any of them, and then there is no
 * contradiction.
 */
#include <errno.h>
#include <string.h>

#include "policy/policy_reader.h"
#include "util/vector.h"

#define NAMES_PER_SELECTOR 4096
#define NAMES_PER_FILE     1000000
#define STEPS_PER_FILE     50000000
#define MANY               (UINT64_C(1) << 32)

/* Bounds the work for a file. */
struct budget {
        uint32_t names; /* names that may still be listed */
        uint32_t steps; /* comparisons with more specific lines that may still be made */
};

/* A name in a line, without brackets: a host, device, switch port, GUID, group or keyword. */
struct entry {
        const char *key;
        const char *host; /* NULL: the key has none */
        const struct policy_candidate *line;
};

struct conflict {
        const struct entry *earlier, *later;
};

struct search {
        struct policy_reader *reader;
        const struct policy_partition *partition;
        struct arena *arena; /* for this partition */
        /* The candidates from `first` up to `end` are equally specific and are compared; those before are more specific. */
        const struct policy_candidate *first, *end;
        enum specificity level; /* of the candidates that are compared */
        struct budget *budget;
        struct entry *entries;
        size_t n, allocated;
        struct conflict *conflicts;
        size_t n_conflicts, n_keys; /* different keys among the conflicts */
};

static int add_entry(struct search *s, const char *key, const char *host, const struct policy_candidate *c)
{
        return key ? VECTOR_ADD(s->arena, s->entries, s->n, s->allocated, (struct entry) { key, host, c }) : -ENOMEM;
}

/* What follows the name in the key with number i: a port of @SWITCH/PORTS, a device of HOST/DEVICE, or nothing. */
static const char *suffix(struct search *s, const struct selector *selector, uint64_t i)
{
        const char *colon = selector->board ? ":" : "", *board = selector->board ? selector->board : "";
        char device[HOSTLIST_MAX_NAME];
        unsigned port = 0;

        if (selector->has_ports) {
                for (;; port++)
                        if (selector_has_port(selector, port) && i-- == 0)
                                return arena_printf(s->arena, "%s%s/%u", colon, board, port);
        }
        if (selector->board)
                return arena_printf(s->arena, "%s%s", colon, board);
        if (!selector->device)
                return "";
        hostlist_name(selector->device, i, device);
        if (selector->port > 0)
                return arena_printf(s->arena, "/%s/%u", device, selector->port);
        return arena_printf(s->arena, "/%s", device);
}

static uint64_t count_ports(const struct selector *s)
{
        uint64_t n = 0;

        for (size_t i = 0; i < ELEMENTS(s->ports); i++)
                n += (uint64_t) __builtin_popcountll(s->ports[i]);
        return n;
}

static uint64_t count_suffixes(const struct selector *s)
{
        if (s->has_ports)
                return count_ports(s);
        return s->device ? s->device->n_names : 1;
}

/* Adds each name in HOST, HOST/DEVICE, HOST/DEVICE/PORT or @SWITCH, unless they are too many. */
static int add_names(struct search *s, const struct policy_candidate *c)
{
        const struct selector *selector = c->selector;
        const char *sign = selector->kind == SELECTOR_SWITCH ? "@" : "";
        uint64_t n = selector->host->n_names, m = count_suffixes(selector);
        char name[HOSTLIST_MAX_NAME];
        const char *host, *end;
        int e;

        if (n > NAMES_PER_SELECTOR || m > NAMES_PER_SELECTOR || n * m > NAMES_PER_SELECTOR || n * m > s->budget->names)
                return 0;
        s->budget->names -= (uint32_t) (n * m);
        for (uint64_t i = 0; i < n; i++) {
                hostlist_name(selector->host, i, name);
                host = arena_strdup(s->arena, name);
                for (uint64_t k = 0; k < m; k++) {
                        end = suffix(s, selector, k);
                        if (!host || !end)
                                return -ENOMEM;
                        e = add_entry(s, arena_printf(s->arena, "%s%s%s", sign, host, end), sign[0] ? NULL : host, c);
                        if (e < 0)
                                return e;
                }
        }
        return 0;
}

static int add_selector(struct search *s, const struct policy_candidate *c)
{
        const struct selector *selector = c->selector;

        switch (selector->kind) {
        case SELECTOR_ALL:
        case SELECTOR_TYPE:
        case SELECTOR_SELF:
        case SELECTOR_GROUP:
                return add_entry(s, selector->text, NULL, c);
        case SELECTOR_GUID:
                return add_entry(s, arena_printf(s->arena, "0x%016" PRIx64, selector->guid.v), NULL, c);
        case SELECTOR_SWITCH:
                return selector->host ? add_names(s, c) : 0;
        case SELECTOR_HOST:
                return add_names(s, c);
        }
        return 0;
}

/* Matches hostlists with too many names to list against the names of other lines. */
static int add_long_hostlists(struct search *s)
{
        size_t n = s->n;
        int e = 0;

        for (const struct policy_candidate *c = s->first; c < s->end; c++) {
                if (c->selector->kind != SELECTOR_HOST || c->selector->host->n_names <= NAMES_PER_SELECTOR || n > s->budget->names)
                        continue;
                s->budget->names -= (uint32_t) n;
                for (size_t i = 0; i < n && e == 0; i++)
                        if (s->entries[i].host && hostlist_match(c->selector->host, s->entries[i].key))
                                e = add_entry(s, s->entries[i].key, s->entries[i].host, c);
        }
        return e;
}

static int collect(struct search *s)
{
        int e = 0;

        s->n = 0;
        for (const struct policy_candidate *c = s->first; c < s->end && e == 0; c++)
                e = add_selector(s, c);
        return e == 0 && s->level == SPECIFICITY_HOST ? add_long_hostlists(s) : e;
}

DEFINE_COMPARE(compare_entries, struct entry, strcmp(a->key, b->key) ?: ORDER(a->line->rule, b->line->rule))

/* ---- more specific lines -------------------------------------------------------------------------------------- */

/* The number of hosts, or else of ports, that this more specific selector may decide about. */
static uint64_t count_reach(const struct selector *s, bool hosts)
{
        switch (s->kind) {
        case SELECTOR_ALL:
        case SELECTOR_TYPE:
        case SELECTOR_GROUP:
        case SELECTOR_HOST:
                return MANY;
        case SELECTOR_SELF:
                return 1;
        case SELECTOR_GUID:
                return hosts ? 1 : MANY; /* that of a node selects all its ports */
        case SELECTOR_SWITCH:
                if (!s->has_ports || (s->host && s->host->n_names != 1))
                        return MANY;
                return count_ports(s);
        }
        return MANY;
}

/* How many of the keys in conflict more specific lines may decide about. Lines for a device are not counted for hosts: is_covered()
 * compares them with each host. */
static uint64_t count_decided(const struct search *s)
{
        bool hosts = s->level == SPECIFICITY_HOST || s->level == SPECIFICITY_DEVICE;
        uint64_t n = 0;

        for (const struct policy_candidate *c = s->partition->candidates; c < s->first; c++)
                if (!hosts || c->selector->kind != SELECTOR_HOST)
                        n = MIN(n + count_reach(c->selector, hosts), MANY);
        return n;
}

/* Returns whether a more specific line may decide about this key. If the budget is spent, it may. */
static bool is_covered(const struct search *s, const struct entry *entry)
{
        if (s->level >= SPECIFICITY_SWITCH_PORT) /* count_decided() counts the GUIDs and SELF in more specific lines */
                return false;
        for (const struct policy_candidate *c = s->partition->candidates; c < s->first; c++) {
                if (s->budget->steps == 0)
                        return true;
                s->budget->steps--;
                if (!entry->host || (c->selector->kind == SELECTOR_HOST && hostlist_match(c->selector->host, entry->host)))
                        return true;
        }
        return false;
}

/* ---- conflicts ------------------------------------------------------------------------------------------------ */

static int find_conflicts(struct search *s)
{
        const struct policy_rule *rules = s->partition->rules;
        size_t i, first;

        s->n_conflicts = s->n_keys = 0;
        s->conflicts = arena_new_array(s->arena, struct conflict, s->n);
        if (!s->conflicts)
                return -ENOMEM;
        SORT(s->entries, s->n, compare_entries);
        for (i = first = 0; i < s->n; i++) {
                struct entry *a = &s->entries[first], *b = &s->entries[i];

                if (strcmp(a->key, b->key) != 0) {
                        first = i;
                        continue;
                }
                if (rules[a->line->rule].membership == rules[b->line->rule].membership || is_covered(s, b))
                        continue;
                s->n_keys += s->n_conflicts == 0 || strcmp(s->conflicts[s->n_conflicts - 1].later->key, b->key) != 0;
                s->conflicts[s->n_conflicts++] = (struct conflict) { a, b };
        }
        return 0;
}

DEFINE_COMPARE(compare_conflicts, struct conflict, ORDER(a->later->line->rule, b->later->line->rule) ?:
               ORDER(a->earlier->line->rule, b->earlier->line->rule) ?: ORDER(a, b))

static void report_conflict(struct search *s, const struct conflict *c)
{
        struct report *report = &s->reader->report;
        const struct policy_rule *rules = s->partition->rules;

        selector_report_ambiguous(report, &c->later->line->selector->place, s->partition->name, &rules[c->later->line->rule],
                                  &rules[c->earlier->line->rule], report_text(report, "'%s'", c->later->key));
}

/* Compares the next equally specific candidates with each other. */
static int search_level(struct search *s)
{
        const struct policy_candidate *limit = s->partition->candidates + s->partition->n_candidates;
        const struct conflict *c, *last = NULL;
        int e;

        s->first = s->end;
        s->level = s->first->selector->specificity;
        while (s->end < limit && s->end->selector->specificity == s->level)
                s->end++;
        e = collect(s) ?: find_conflicts(s);
        if (e < 0 || s->n_keys <= count_decided(s))
                return e;
        qsort(s->conflicts, s->n_conflicts, sizeof(*s->conflicts), compare_conflicts);
        for (size_t i = 0; i < s->n_conflicts; i++) {
                c = &s->conflicts[i];
                if (!last || last->later->line->rule != c->later->line->rule || last->earlier->line->rule != c->earlier->line->rule)
                        report_conflict(s, c);
                last = c;
        }
        return 0;
}

/* ---- duplicate lines in another notation ---------------------------------------------------------------------- */

struct normal {
        const char *text;
        const struct policy_rule *rule;
};

DEFINE_COMPARE(compare_normals, struct normal, strcmp(a->text, b->text) ?: ORDER(a->rule, b->rule))

static const char *normal_text(struct arena *a, const struct policy_rule *rule)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < rule->n_selectors; i++) {
                if (i > 0)
                        text_add_n(&t, ",", 1);
                selector_print(&t, rule->selectors[i]);
        }
        return text_copy(a, &t);
}

static int check_duplicates(struct search *s)
{
        const struct policy_partition *p = s->partition;
        struct report *report = &s->reader->report;
        struct normal *normals = arena_new_array(s->arena, struct normal, p->n_rules);
        struct place place;

        if (!normals)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_rules; i++) {
                normals[i] = (struct normal) { normal_text(s->arena, &p->rules[i]), &p->rules[i] };
                if (!normals[i].text)
                        return -ENOMEM;
        }
        qsort(normals, p->n_rules, sizeof(*normals), compare_normals);
        for (uint32_t i = 1; i < p->n_rules; i++) {
                if (strcmp(normals[i - 1].text, normals[i].text) != 0)
                        continue;
                place = (struct place) { normals[i].rule->where, normals[i].rule->source_line };
                report_add(report, FINDING_ERROR, FINDING_YAML_DUPLICATE_KEY, &place,
                           "partitions.%s.members: %s is the same selector as %s in line %u", p->name,
                           report_quote(report, normals[i].rule->text), report_quote(report, normals[i - 1].rule->text),
                           normals[i - 1].rule->where.line);
                report_hint(report, "remove one of the two lines");
        }
        return 0;
}

static bool has_two_memberships(const struct policy_partition *p)
{
        for (uint32_t i = 1; i < p->n_rules; i++)
                if (p->rules[i].membership != p->rules[0].membership)
                        return true;
        return false;
}

static int check_partition(struct policy_reader *r, const struct policy_partition *partition, struct budget *budget)
{
        _cleanup_arena_ struct arena *arena = arena_new();
        struct search s = { .reader = r, .partition = partition, .arena = arena, .budget = budget };
        size_t errors = r->report.n_errors;
        int e;

        if (!arena)
                return -ENOMEM;
        e = check_duplicates(&s);
        if (r->report.n_errors > errors || !has_two_memberships(partition))
                return e;
        s.end = partition->candidates;
        while (e == 0 && s.end < partition->candidates + partition->n_candidates)
                e = search_level(&s);
        return e;
}

int policy_check_contradictions(struct policy_reader *r)
{
        struct budget budget = { NAMES_PER_FILE, STEPS_PER_FILE };
        int e;

        for (uint32_t i = 0; i < r->policy->n_partitions; i++) {
                if (!r->nodes[i].sound)
                        continue;
                e = check_partition(r, &r->policy->partitions[i], &budget);
                if (e < 0)
                        return e;
        }
        return 0;
}
