/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "knowledge/records.h"

static const struct bounds ANYTHING = KNOWLEDGE_ANYTHING, NOTHING = { LEVEL_NONE, LEVEL_NONE };

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

/* The block as it was read, or any of the writes that were sent since. `instead` is what the block is to be, if it is this one. */
static struct bounds block_bounds(const struct knowledge_record *r, uint16_t block, uint16_t base,
                                  const struct knowledge_write *instead)
{
        size_t n = entries_in(r, block);
        struct bounds out;

        if (instead && instead->block == block)
                out.has = out.may = level_in(instead->entries, n, base);
        else
                out.has = out.may = level_in(r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, n, base);
        for (size_t i = 0; i < r->n_writes && !(instead && instead->block == block); i++) {
                uint8_t level;

                if (r->writes[i].block != block || !r->writes[i].is_sent)
                        continue;
                level = level_in(r->writes[i].entries, n, base);
                out.has = MIN(out.has, level);
                out.may = MAX(out.may, level);
        }
        return out;
}

static struct bounds table_bounds(const struct knowledge_record *r, uint16_t base, const struct knowledge_write *instead)
{
        struct bounds out = NOTHING;

        if (r->vouched)
                return NOTHING;
        if (!r->entries)
                return ANYTHING;
        if (r->n_writes == 0 && !instead) {
                out.has = out.may = level_in(r->entries, r->capacity, base);
        } else {
                for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < r->capacity; block++) {
                        struct bounds b = block_bounds(r, (uint16_t) block, base, instead);

                        out = (struct bounds) { MAX(out.has, b.has), MAX(out.may, b.may) };
                }
        }
        if (!r->fresh)
                out.has = LEVEL_NONE;
        return out;
}

uint8_t knowledge_lowest_level(const struct knowledge_record *r, uint16_t base, uint16_t block, const struct knowledge_write *instead)
{
        uint8_t level = LEVEL_NONE;

        for (unsigned i = 0; r->entries && !r->vouched && i * P_KEY_BLOCK_ENTRIES < r->capacity; i++)
                if (r->fresh || i == block)
                        level = MAX(level, block_bounds(r, (uint16_t) i, base, instead).has);
        return level;
}

/* --- bounds of a port ------------------------------------------------------------------------------------------------- */

uint32_t knowledge_port_of(const struct knowledge *k, uint32_t record)
{
        const struct knowledge_record *r = &k->records[record];

        return r->name.kind == KNOWLEDGE_LEAF ? r->other_end : record;
}

struct knowledge_write knowledge_make_write(uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write write = { .block = block };

        memcpy(write.entries, entries, sizeof(write.entries));
        return write;
}

struct bounds knowledge_table_after(const struct knowledge *k, uint32_t record, uint16_t base,
                                    const struct knowledge_change *change)
{
        return table_bounds(&k->records[record], base, change && change->record == record ? change->write : NULL);
}

/* The bounds of a port by those of its table, and of its leaf port's. */
static struct bounds combine(const struct knowledge *k, const struct knowledge_record *p, struct bounds host, struct bounds filter,
                             struct knowledge_view view, const struct knowledge_change *change)
{
        const struct knowledge_record *leaf;
        bool sets_filter;

        if (p->expired)
                return NOTHING;
        if (p->presence == KNOWLEDGE_ABSENT) /* it may come back elsewhere */
                return (struct bounds) { LEVEL_NONE, host.may };
        if (p->other_end == KNOWLEDGE_NONE)
                return host;
        leaf = &k->records[p->other_end];
        sets_filter = change && change->record == p->other_end && !change->write;
        filter = bounds_behind_filter(view.model, host, filter);
        if (!sets_filter && leaf->filters_unsure)
                return (struct bounds) { filter.has, host.may };
        return (sets_filter ? change->filters : leaf->filters)[view.direction] ? filter : host;
}

static struct bounds filter_after(const struct knowledge *k, uint32_t port, uint16_t base, const struct knowledge_change *change)
{
        uint32_t leaf = k->records[port].other_end;

        return leaf == KNOWLEDGE_NONE ? NOTHING : knowledge_table_after(k, leaf, base, change);
}

struct bounds knowledge_port_after(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view,
                                   const struct knowledge_change *change)
{
        return combine(k, &k->records[port], knowledge_table_after(k, port, base, change), filter_after(k, port, base, change), view,
                       change);
}

struct knowledge_around knowledge_around_lowest(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view,
                                                const struct knowledge_change *change)
{
        const struct knowledge_record *p = &k->records[port], *r = &k->records[change->record];
        struct knowledge_around ret;

        for (unsigned i = 0; i < 2; i++) {
                const struct knowledge_change *now = i ? change : NULL;
                struct bounds host = knowledge_table_after(k, port, base, now), filter = filter_after(k, port, base, now);

                (change->record == port ? &host : &filter)->may =
                        knowledge_lowest_level(r, base, change->write->block, now ? now->write : NULL);
                *(i ? &ret.after : &ret.before) = combine(k, p, host, filter, view, now);
        }
        return ret;
}

enum level knowledge_policy_level(const struct knowledge_record *p, uint16_t base)
{
        const struct desired_port *want = p->policy;
        uint32_t i;

        if (!want)
                return POLICY_UNKNOWN;
        i = LOWER_BOUND(item, want->wanted, want->n_wanted, p_key_base(*item) < base);
        return level_in(want->wanted + i, MIN(want->n_wanted - i, 2u), base);
}

struct rule_class knowledge_class_of(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view)
{
        const struct knowledge_record *p = &k->records[port];

        return (struct rule_class) {
                .policy = knowledge_policy_level(p, base),
                .bounds = knowledge_port_after(k, port, base, view, NULL),
                .is_absent = p->presence == KNOWLEDGE_ABSENT,
        };
}

struct bounds knowledge_table_bounds(const struct knowledge *k, uint32_t record, uint16_t base)
{
        return knowledge_table_after(k, record, base, NULL);
}

struct bounds knowledge_port_bounds(const struct knowledge *k, uint32_t record, uint16_t base)
{
        return knowledge_port_after(k, record, base, (struct knowledge_view) { FILTER_BY_LEVEL, SENDS }, NULL);
}
