/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

static const struct bounds ANYTHING = KNOWLEDGE_ANYTHING, NOTHING = { LEVEL_NONE, LEVEL_NONE };

/* --- bounds of a table ------------------------------------------------------------------------------------------------ */

static enum level level_in_write(const struct knowledge_record *r, const struct knowledge_write *write, uint16_t base)
{
        return p_keys_level(write->entries, (uint32_t) p_key_block_size(r->capacity, write->block), base);
}

/* The bounds over the block as it was read and all writes sent since; `with_suspected`: suspected ones, too. */
static struct bounds block_bounds(const struct knowledge_record *r, uint16_t block, uint16_t base, bool with_suspected)
{
        uint8_t level = p_keys_level(r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES,
                                     (uint32_t) p_key_block_size(r->capacity, block), base);
        struct bounds out = { level, level };

        for (size_t i = 0; i < r->n_writes; i++) {
                if (r->writes[i].block != block || !r->writes[i].is_sent || (r->writes[i].is_suspected && !with_suspected))
                        continue;
                level = level_in_write(r, &r->writes[i], base);
                out.has = MIN(out.has, level);
                out.may = MAX(out.may, level);
        }
        return out;
}

#define ALL_BLOCKS UINT_MAX

/* The bounds over all blocks but the block `without`. */
static struct bounds bounds_without(const struct knowledge_record *r, uint16_t base, unsigned without)
{
        struct bounds out = NOTHING;

        assert(!r->fresh || !r->is_unfollowed);
        if (r->vouched)
                return NOTHING;
        if (!r->entries || r->is_unfollowed)
                return ANYTHING;
        if (r->n_writes == 0 && without == ALL_BLOCKS) {
                out.has = out.may = p_keys_level(r->entries, r->capacity, base);
        } else {
                for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < r->capacity; block++) {
                        struct bounds b = block == without ? NOTHING : block_bounds(r, (uint16_t) block, base, true);

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

struct knowledge_write knowledge_make_write(uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write write = { .block = block };

        memcpy(write.entries, entries, sizeof(write.entries));
        return write;
}

static struct bounds port_bounds(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view)
{
        const struct knowledge_record *p = &k->records[port], *leaf;
        struct bounds host = table_bounds(p, base), filter;

        if (p->expired)
                return NOTHING;
        if (p->other_end == KNOWLEDGE_NONE)
                return host;
        leaf = &k->records[p->other_end];
        filter = bounds_behind_filter(view.model, host, table_bounds(leaf, base));
        if (leaf->filters_unsure)
                return (struct bounds) { filter.has, host.may };
        return leaf->filters[view.direction] ? filter : host;
}

static enum level level_wanted(const struct desired_port *want, uint16_t base)
{
        uint32_t i = LOWER_BOUND(item, want->wanted, want->n_wanted, p_key_base(*item) < base);

        return p_keys_level(want->wanted + i, MIN(want->n_wanted - i, 2u), base);
}

enum level knowledge_policy_level(const struct knowledge_record *p, uint16_t base)
{
        enum level least, most;

        if (!p->policy)
                return POLICY_UNKNOWN;
        least = level_wanted(p->policy, base);
        if (!p->policy->most)
                return least;
        most = MAX(least, level_wanted(p->policy->most, base));
        return rule_policy_between(least, p->policy->most_is_held ? MAX(most, (enum level) table_bounds(p, base).may) : most);
}

struct rule_class knowledge_class_of(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view)
{
        const struct knowledge_record *p = &k->records[port];

        return (struct rule_class) {
                .policy = knowledge_policy_level(p, base), .bounds = port_bounds(k, port, base, view),
                .is_absent = knowledge_is_gone(p),
        };
}

struct bounds knowledge_table_bounds(const struct knowledge *k, uint32_t record, uint16_t base)
{
        return table_bounds(&k->records[record], base);
}

/* --- a write ----------------------------------------------------------------------------------------------------------- */

struct bounds knowledge_table_after(const struct knowledge *k, uint32_t record, uint16_t base,
                                    const struct knowledge_change *change)
{
        const struct knowledge_record *r = &k->records[record];
        struct bounds rest;
        uint8_t level;

        if (change->record != record || !change->write)
                return table_bounds(r, base);
        rest = bounds_without(r, base, change->write->block);
        level = level_in_write(r, change->write, base);
        return (struct bounds) { r->fresh ? MAX(rest.has, level) : LEVEL_NONE, MAX(rest.may, level) };
}

bool knowledge_exceeds_policy(const struct knowledge *k, uint32_t record, uint16_t block,
                              const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        const struct knowledge_write write = knowledge_make_write(block, entries);
        const struct knowledge_record *r = &k->records[record];
        uint32_t port = knowledge_port_of(k, record);
        enum level policy = port == KNOWLEDGE_NONE ? LEVEL_NONE : knowledge_policy_level(&k->records[port], base);
        uint8_t after = level_in_write(r, &write, base);

        return after > rule_policy_for(RULE_GAIN, policy) && after > bounds_without(r, base, block).has &&
               (!r->entries || r->is_unfollowed || after > block_bounds(r, block, base, true).has);
}

/* One possible value of what a write leaves as it is and is not known for certain. */
struct world {
        uint8_t level;   /* of all other blocks of the table that is written; of the whole table if the write is of its filter
                          * bits */
        bool filters;    /* whether the leaf port filters in the direction of the view */
};

/* The bounds of a table in this world, before the write or after it. They ignore whether the port was absent: if it answers, it is
 * present. A write that was sent was admitted, so sending it again raises nothing; a suspected one was not admitted. */
static struct bounds table_in(const struct knowledge *k, uint32_t record, uint16_t base, const struct knowledge_change *change,
                              const struct world *world, bool after)
{
        const struct knowledge_record *r = &k->records[record];
        struct bounds block;

        if (change->record == record && !change->write)
                return (struct bounds) { world->level, world->level };
        if (change->record != record || !r->entries || r->is_unfollowed || r->vouched)
                return table_bounds(r, base);
        if (after)
                block.has = block.may = level_in_write(r, change->write, base);
        else
                block = (struct bounds) {
                        .has = block_bounds(r, change->write->block, base, true).has,
                        .may = block_bounds(r, change->write->block, base, false).may,
                };
        return (struct bounds) { r->fresh ? MAX(block.has, world->level) : LEVEL_NONE, MAX(block.may, world->level) };
}

static struct bounds port_in(const struct knowledge *k, uint16_t base, const struct knowledge_change *change,
                             struct knowledge_view view, const struct world *world, bool after)
{
        uint32_t port = knowledge_port_of(k, change->record), leaf = k->records[port].other_end;
        bool filters = after && !change->write ? change->filters[view.direction] : world->filters;
        struct bounds host = table_in(k, port, base, change, world, after);

        if (leaf == KNOWLEDGE_NONE || !filters)
                return host;
        return bounds_behind_filter(view.model, host, table_in(k, leaf, base, change, world, after));
}

static bool may_filter(const struct knowledge *k, const struct knowledge_change *change, struct knowledge_view view, bool filters)
{
        uint32_t leaf = k->records[knowledge_port_of(k, change->record)].other_end;
        const struct knowledge_record *l = leaf == KNOWLEDGE_NONE ? NULL : &k->records[leaf];

        return l ? l->filters_unsure || l->filters[view.direction] == filters : !filters;
}

unsigned knowledge_steps(const struct knowledge *k, uint16_t base, const struct knowledge_change *change,
                         struct knowledge_view view, struct knowledge_step ret[KNOWLEDGE_MAX_STEPS])
{
        const struct bounds levels = bounds_without(&k->records[change->record], base,
                                                    change->write ? change->write->block : ALL_BLOCKS);
        unsigned n = 0;

        for (unsigned filters = 0; filters < 2; filters++)
                for (uint8_t level = levels.has; may_filter(k, change, view, filters) && level <= levels.may; level++) {
                        const struct world world = { level, filters };

                        ret[n].before = port_in(k, base, change, view, &world, false);
                        ret[n++].after = port_in(k, base, change, view, &world, true);
                }
        return n;
}
