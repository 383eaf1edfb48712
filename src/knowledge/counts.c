/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "knowledge/records.h"

static const struct bounds ANYTHING = { LEVEL_NONE, LEVEL_FULL }, NOTHING = { LEVEL_NONE, LEVEL_NONE };

/* --- bounds of a table ------------------------------------------------------------------------------------------------ */

static enum level level_in(const struct p_key *entries, size_t n, uint16_t base)
{
        enum level level = LEVEL_NONE;

        for (size_t i = 0; i < n; i++)
                if (p_key_base(entries[i]) == base)
                        level = MAX(level, p_key_is_full(entries[i]) ? LEVEL_FULL : LEVEL_LIMITED);
        return level;
}

/* Entries of a block that are behind the end of the table are nobody's. */
static size_t entries_in(const struct knowledge_record *r, uint16_t block)
{
        size_t first = (size_t) block * P_KEY_BLOCK_ENTRIES;

        return first < r->capacity ? MIN((size_t) P_KEY_BLOCK_ENTRIES, r->capacity - first) : 0;
}

static enum level level_in_write(const struct knowledge_record *r, const struct knowledge_write *write, uint16_t base)
{
        return level_in(write->entries, entries_in(r, write->block), base);
}

/* The block as it was read, or any of the writes that were sent since. */
static struct bounds block_bounds(const struct knowledge_record *r, uint16_t block, uint16_t base)
{
        uint8_t level = level_in(r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, entries_in(r, block), base);
        struct bounds out = { level, level };

        for (size_t i = 0; i < r->n_writes; i++) {
                if (r->writes[i].block != block || !r->writes[i].is_sent)
                        continue;
                level = level_in_write(r, &r->writes[i], base);
                out.has = MIN(out.has, level);
                out.may = MAX(out.may, level);
        }
        return out;
}

#define ALL_BLOCKS UINT_MAX

/* Of all blocks but this one. */
static struct bounds bounds_without(const struct knowledge_record *r, uint16_t base, unsigned without)
{
        struct bounds out = NOTHING;

        if (r->vouched)
                return NOTHING;
        if (!r->entries)
                return ANYTHING;
        if (r->n_writes == 0 && without == ALL_BLOCKS) {
                out.has = out.may = level_in(r->entries, r->capacity, base);
        } else {
                for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < r->capacity; block++) {
                        struct bounds b = block == without ? NOTHING : block_bounds(r, (uint16_t) block, base);

                        out = (struct bounds) { MAX(out.has, b.has), MAX(out.may, b.may) };
                }
        }
        if (!r->fresh)
                out.has = LEVEL_NONE;
        return out;
}

static struct bounds table_bounds(const struct knowledge_record *r, uint16_t base)
{
        return bounds_without(r, base, ALL_BLOCKS);
}

/* --- bounds of a port ------------------------------------------------------------------------------------------------- */

uint32_t knowledge_port_of(const struct knowledge *k, uint32_t record)
{
        const struct knowledge_record *r = &k->records[record];

        return r->name.kind == KNOWLEDGE_LEAF ? r->other_end : record;
}

/* One way to look at a port: in one model of a switch, and in one direction. */
struct view {
        enum filter_model model;
        enum direction direction;
};

static struct bounds port_bounds(const struct knowledge *k, uint32_t port, uint16_t base, struct view view)
{
        const struct knowledge_record *p = &k->records[port], *leaf;
        struct bounds host = table_bounds(p, base), filter;

        if (p->expired)
                return NOTHING;
        if (p->presence == KNOWLEDGE_ABSENT) /* it may come back elsewhere */
                return (struct bounds) { LEVEL_NONE, host.may };
        if (p->other_end == KNOWLEDGE_NONE)
                return host;
        leaf = &k->records[p->other_end];
        filter = bounds_behind_filter(view.model, host, table_bounds(leaf, base));
        if (leaf->filters_unsure)
                return (struct bounds) { filter.has, host.may };
        return leaf->filters[view.direction] ? filter : host;
}

static enum level policy_level(const struct knowledge_record *p, uint16_t base)
{
        const struct desired_port *want = p->policy;
        uint32_t i;

        if (!want)
                return LEVEL_NONE;
        i = LOWER_BOUND(item, want->wanted, want->n_wanted, p_key_base(*item) < base);
        return level_in(want->wanted + i, MIN(want->n_wanted - i, 2u), base);
}

/* --- counts ------------------------------------------------------------------------------------------------------------ */

static struct rule_class class_of(const struct knowledge *k, uint32_t port, uint16_t base, struct view view)
{
        const struct knowledge_record *p = &k->records[port];

        return (struct rule_class) {
                .policy = policy_level(p, base),
                .bounds = port_bounds(k, port, base, view),
                .is_absent = p->presence == KNOWLEDGE_ABSENT,
        };
}

static bool is_wild_table(const struct knowledge_record *r)
{
        return !r->entries && !r->vouched;
}

bool knowledge_counts_is_wild(const struct knowledge *k, uint32_t record, enum direction direction)
{
        uint32_t port = knowledge_port_of(k, record);
        const struct knowledge_record *p = port == KNOWLEDGE_NONE ? NULL : &k->records[port], *leaf;

        if (!p || p->expired || !is_wild_table(p))
                return false;
        if (p->presence == KNOWLEDGE_ABSENT || p->other_end == KNOWLEDGE_NONE)
                return true;
        leaf = &k->records[p->other_end];
        return is_wild_table(leaf) || leaf->filters_unsure || !leaf->filters[direction];
}

/* NULL: nobody was ever counted at this base. */
static struct base_counts *find_counts(const struct counts *c, uint16_t base)
{
        uint32_t i = hash_index_first(&c->index, base);

        while (i != HASH_INDEX_NONE && c->bases[i].base != base)
                i = hash_index_next(&c->index, i);
        return i == HASH_INDEX_NONE ? NULL : &c->bases[i];
}

static struct base_counts *ensure_counts(struct counts *c, uint16_t base)
{
        struct base_counts *at = find_counts(c, base);

        if (at)
                return at;
        if (VECTOR_GROW(NULL, c->bases, c->n, c->allocated) < 0 || hash_index_reserve(&c->index, (uint32_t) c->n + 1) < 0) {
                c->out_of_memory = true;
                return NULL;
        }
        c->bases[c->n] = (struct base_counts) { .base = base };
        hash_index_add(&c->index, (uint32_t) c->n, base);
        return &c->bases[c->n++];
}

/* A port whose bases are gone through. */
struct counted {
        uint32_t port;
        bool is_wild[N_DIRECTIONS];
        int sign;
};

/* Each base of a port once. */
static void change_at(struct knowledge *k, const struct counted *c, uint16_t base)
{
        struct base_counts *at = ensure_counts(&k->counts, base);

        if (!at || at->mark == k->counts.mark)
                return;
        at->mark = k->counts.mark;
        for (enum direction d = 0; d < N_DIRECTIONS; d++) {
                for (enum filter_model m = 0; m < N_FILTER_MODELS; m++) {
                        struct rule_class class = class_of(k, c->port, base, (struct view) { m, d });

                        rule_count(&at->counts[m][d], &class, c->sign);
                }
                if (c->is_wild[d])
                        at->n_wild_listed[d][k->records[c->port].presence == KNOWLEDGE_ABSENT] += (uint32_t) c->sign;
        }
}

void knowledge_counts_change(struct knowledge *k, uint32_t record, const uint16_t *bases, size_t n, int sign)
{
        const struct counted c = { .port = knowledge_port_of(k, record), .sign = sign };

        k->counts.mark++;
        for (size_t i = 0; c.port != KNOWLEDGE_NONE && i < n; i++)
                change_at(k, &c, bases[i]);
}

static void change_keys(struct knowledge *k, const struct counted *c, const struct p_key *keys, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (p_key_is_used(keys[i]))
                        change_at(k, c, p_key_base(keys[i]));
}

static void change_table(struct knowledge *k, const struct counted *c, uint32_t record)
{
        const struct knowledge_record *r = &k->records[record];

        if (r->entries)
                change_keys(k, c, r->entries, r->capacity);
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent)
                        change_keys(k, c, r->writes[i].entries, P_KEY_BLOCK_ENTRIES);
}

void knowledge_counts_change_all(struct knowledge *k, uint32_t record, int sign)
{
        struct counted c = { .port = knowledge_port_of(k, record), .sign = sign };
        const struct knowledge_record *p;

        if (c.port == KNOWLEDGE_NONE)
                return;
        p = &k->records[c.port];
        k->counts.mark++;
        for (enum direction d = 0; d < N_DIRECTIONS; d++) {
                c.is_wild[d] = knowledge_counts_is_wild(k, c.port, d);
                if (c.is_wild[d])
                        k->counts.n_wild[d][p->presence == KNOWLEDGE_ABSENT] += (uint32_t) sign;
        }
        if (p->policy)
                change_keys(k, &c, p->policy->wanted, p->policy->n_wanted);
        change_table(k, &c, c.port);
        if (p->other_end != KNOWLEDGE_NONE)
                change_table(k, &c, p->other_end);
}

void knowledge_counts_done(struct counts *c)
{
        free(c->bases);
        hash_index_done(&c->index);
}

int knowledge_counts_rebuild(struct knowledge *k)
{
        struct counts *c = &k->counts;

        for (size_t i = 0; i < c->n; i++)
                c->bases[i] = (struct base_counts) { .base = c->bases[i].base, .mark = c->bases[i].mark };
        memset(c->n_wild, 0, sizeof(c->n_wild));
        c->out_of_memory = false;
        for (uint32_t i = 0; i < k->n; i++)
                if (k->records[i].name.kind != KNOWLEDGE_LEAF)
                        knowledge_counts_change_all(k, i, 1);
        c->valid = !c->out_of_memory;
        return c->valid ? 0 : -ENOMEM;
}

/* --- the rule ---------------------------------------------------------------------------------------------------------- */

/* All ports but this one. */
static void count_others(const struct knowledge *k, uint32_t port, uint16_t base, struct view view, struct rule_counts *ret)
{
        const struct base_counts *at = find_counts(&k->counts, base);
        const struct rule_class own = class_of(k, port, base, view);

        *ret = at ? at->counts[view.model][view.direction] : (struct rule_counts) {};
        for (unsigned absent = 0; absent < 2; absent++) {
                const struct rule_class wild = { .bounds = ANYTHING, .is_absent = absent };

                rule_count(ret, &wild, (int) (k->counts.n_wild[view.direction][absent] -
                                              (at ? at->n_wild_listed[view.direction][absent] : 0)));
        }
        rule_count(ret, &own, -1);
}

/* A write that is judged. */
struct change {
        uint32_t record;                     /* the table that is written */
        const struct knowledge_write *write; /* NULL: the filter */
        bool filters[N_DIRECTIONS];
};

/* What the write leaves as it is, and is not known for certain. The write is judged in each world that may be the real one: bounds
 * over all of them would not show what it raises in one, where another one reaches as high without it. */
struct world {
        uint8_t level;   /* of all other blocks of the table that is written; of the whole table, if the write is about its filter */
        bool filters;    /* the leaf port, in the direction of the view */
};

/* Around the write. A port that answers is there, whatever was found before. */
static struct bounds table_in(const struct knowledge *k, uint32_t record, uint16_t base, const struct change *change,
                              const struct world *world, bool after)
{
        const struct knowledge_record *r = &k->records[record];
        struct bounds block;

        if (change->record == record && !change->write)
                return (struct bounds) { world->level, world->level };
        if (change->record != record || !r->entries || r->vouched)
                return table_bounds(r, base);
        if (after)
                block.has = block.may = level_in_write(r, change->write, base);
        else
                block = block_bounds(r, change->write->block, base);
        return (struct bounds) { r->fresh ? MAX(block.has, world->level) : LEVEL_NONE, MAX(block.may, world->level) };
}

static struct bounds port_in(const struct knowledge *k, uint16_t base, const struct change *change, struct view view,
                             const struct world *world, bool after)
{
        uint32_t port = knowledge_port_of(k, change->record), leaf = k->records[port].other_end;
        bool filters = after && !change->write ? change->filters[view.direction] : world->filters;
        struct bounds host = table_in(k, port, base, change, world, after);

        if (leaf == KNOWLEDGE_NONE || !filters)
                return host;
        return bounds_behind_filter(view.model, host, table_in(k, leaf, base, change, world, after));
}

/* What the port sends against what the others receive, or the other way round. */
static enum rule_verdict judge_world(const struct knowledge *k, uint16_t base, const struct change *change, struct view view,
                                     const struct world *world, const struct rule_counts *others)
{
        return rule_judge(policy_level(&k->records[knowledge_port_of(k, change->record)], base),
                          port_in(k, base, change, view, world, false), port_in(k, base, change, view, world, true), others);
}

static struct bounds levels_of_worlds(const struct knowledge *k, uint16_t base, const struct change *change)
{
        return bounds_without(&k->records[change->record], base, change->write ? change->write->block : ALL_BLOCKS);
}

static enum rule_verdict judge_view(const struct knowledge *k, uint16_t base, const struct change *change, struct view view)
{
        uint32_t port = knowledge_port_of(k, change->record), leaf = k->records[port].other_end;
        const struct knowledge_record *l = leaf == KNOWLEDGE_NONE ? NULL : &k->records[leaf];
        const struct bounds levels = levels_of_worlds(k, base, change);
        enum rule_verdict verdict = RULE_ADMITS;
        struct rule_counts others;

        count_others(k, port, base, (struct view) { view.model, view.direction == SENDS ? RECEIVES : SENDS }, &others);
        for (unsigned filters = 0; filters < 2; filters++)
                for (uint8_t level = levels.has; verdict == RULE_ADMITS && level <= levels.may; level++) {
                        const struct world world = { level, filters };

                        if (l ? l->filters_unsure || l->filters[view.direction] == world.filters : !world.filters)
                                verdict = judge_world(k, base, change, view, &world, &others);
                }
        return verdict;
}

static enum rule_verdict judge(const struct knowledge *k, uint16_t base, const struct change *change)
{
        enum rule_verdict verdict = RULE_ADMITS;

        assert(base != 0 && k->counts.valid);
        if (knowledge_port_of(k, change->record) == KNOWLEDGE_NONE || k->counts.out_of_memory)
                return RULE_GAIN; /* nobody knows what it would change */
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; verdict == RULE_ADMITS && d < N_DIRECTIONS; d++)
                        verdict = judge_view(k, base, change, (struct view) { m, d });
        return verdict;
}

static struct knowledge_write make_write(uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write write = { .block = block };

        memcpy(write.entries, entries, sizeof(write.entries));
        return write;
}

enum rule_verdict knowledge_judge_block(const struct knowledge *k, uint32_t record, uint16_t block,
                                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        const struct knowledge_write write = make_write(block, entries);

        return judge(k, base, &(struct change) { .record = record, .write = &write });
}

bool knowledge_exceeds_policy(const struct knowledge *k, uint32_t record, uint16_t block,
                              const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        const struct knowledge_write write = make_write(block, entries);
        const struct knowledge_record *r = &k->records[record];
        uint32_t port = knowledge_port_of(k, record);
        uint8_t after = level_in_write(r, &write, base);

        return after > (port == KNOWLEDGE_NONE ? LEVEL_NONE : policy_level(&k->records[port], base)) &&
               after > bounds_without(r, base, block).has && (!r->entries || after > block_bounds(r, block, base).has);
}

/* Bases where nobody is counted are all alike: one of them is judged, because a port that may hold anything has them, too. */
enum rule_verdict knowledge_judge_filter(const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                                         uint16_t *ret_base)
{
        const struct change change = { .record = record, .filters = { [SENDS] = inbound, [RECEIVES] = outbound } };
        enum rule_verdict verdict = RULE_ADMITS;
        uint16_t nobodys = 1;

        while (nobodys < P_KEY_BASE_MASK && find_counts(&k->counts, nobodys))
                nobodys++;
        for (size_t i = 0; verdict == RULE_ADMITS && i <= k->counts.n; i++) {
                *ret_base = i < k->counts.n ? k->counts.bases[i].base : nobodys;
                verdict = judge(k, *ret_base, &change);
        }
        return verdict;
}

struct bounds knowledge_table_bounds(const struct knowledge *k, uint32_t record, uint16_t base)
{
        return table_bounds(&k->records[record], base);
}

struct bounds knowledge_port_bounds(const struct knowledge *k, uint32_t record, uint16_t base)
{
        return port_bounds(k, record, base, (struct view) { FILTER_BY_LEVEL, SENDS });
}
