/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/admission.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vector.h"

/* ---- what OpenSM may write ------------------------------------------------------------------------------------- */

/* A block of a table; or, for a switch port whose table is too small, that OpenSM turns its filter off. */
struct file_write {
        uint32_t record;
        uint32_t transition; /* of a filter */
        bool is_filter;
        bool was_unsure; /* of a filter: before, it was not known whether it is on */
        bool is_absent;  /* the port is absent: the write cuts off no traffic, and judge_arrival() judges it */
        uint16_t block;
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
};

struct writes {
        struct file_write *items;
        size_t n, n_allocated;
        size_t n_expected; /* how many are in the knowledge */
};

static void writes_done(struct writes *w)
{
        free(w->items);
}
#define _cleanup_writes_ _cleanup_(writes_done)

/* What OpenSM gives an endport: the entries of its line, and at least limited membership in the default partition, which is the
 * highest base. ret has room for one entry more than the line. */
static uint32_t endport_keys(const struct partitions_file_port *line, struct p_key *ret)
{
        uint32_t n = line->n_keys;

        if (n > 0)
                memcpy(ret, line->keys, n * sizeof(*ret));
        if (n == 0 || p_key_base(ret[n - 1]) != P_KEY_DEFAULT_BASE)
                ret[n++] = p_key_make(P_KEY_DEFAULT_BASE, false);
        return n;
}

/* Reduces keys to those that OpenSM gives the leaf port: of a base with both entries only the full one. Returns their number. */
static uint32_t leaf_keys(struct p_key *keys, uint32_t n)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < n; i++)
                if (i + 1 == n || p_key_base(keys[i]) != p_key_base(keys[i + 1]))
                        keys[kept++] = keys[i];
        return kept;
}

static struct p_key other_membership(struct p_key key)
{
        return p_key_make(p_key_base(key), !p_key_is_full(key));
}

/* Changes a table as OpenSM does: entries that stay keep their indexes, as do bases whose membership changes; new entries take free
 * indexes. */
static void rewrite_table(struct p_key *table, uint16_t capacity, const struct p_key *want, uint32_t n)
{
        uint32_t free_from = 0;

        for (uint32_t i = 0; i < capacity; i++) {
                struct p_key other = other_membership(table[i]);

                if (!p_key_is_used(table[i]) || p_keys_hold(want, n, table[i]))
                        continue;
                table[i] = p_keys_hold(want, n, other) && !p_keys_hold(table, capacity, other) ? other : (struct p_key) {};
        }
        for (uint32_t k = 0; k < n; k++) {
                if (p_keys_hold(table, capacity, want[k]))
                        continue;
                while (free_from < capacity && p_key_is_used(table[free_from]))
                        free_from++;
                if (free_from < capacity)
                        table[free_from] = want[k];
        }
}

/* Adds the writes to one table, but for those that an earlier file made OpenSM do and that are not confirmed. A table that was
 * never read has none: it may hold anything before and after. */
static int add_table(struct writes *all, const struct knowledge *k, uint32_t record, const struct p_key *want, uint32_t n)
{
        const struct knowledge_record *r = knowledge_get(k, record);
        _cleanup_free_ struct p_key *table = NULL;

        if (!r->entries || r->capacity == 0)
                return 0;
        table = malloc(r->capacity * sizeof(*table));
        if (!table)
                return -ENOMEM;
        memcpy(table, r->entries, r->capacity * sizeof(*table));
        rewrite_table(table, r->capacity, want, n);
        for (unsigned block = 0; block * P_KEY_BLOCK_ENTRIES < r->capacity; block++) {
                struct file_write w = { record, .is_absent = knowledge_is_gone(r), .block = (uint16_t) block };

                p_keys_get_block(table, r->capacity, w.block, w.entries);
                if (!knowledge_block_may_be(k, record, w.block, w.entries) &&
                    VECTOR_ADD(NULL, all->items, all->n, all->n_allocated, w) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_filter(struct writes *all, const struct knowledge *k, uint32_t record, uint32_t transition)
{
        const struct knowledge_record *r = knowledge_get(k, record);
        const struct file_write off = { record, transition, .is_filter = true, .was_unsure = r->filters_unsure };

        return r->filters_unsure || r->filters[SENDS] || r->filters[RECEIVES] ?
               VECTOR_ADD(NULL, all->items, all->n, all->n_allocated, off) : 0;
}

/* The record of an endport's leaf port; KNOWLEDGE_NONE: it has none, or it cannot filter. */
static uint32_t find_leaf(const struct subnet *s, uint32_t port, const struct knowledge *k)
{
        uint32_t leaf = subnet_leaf_port(s, port);

        return leaf == SUBNET_NONE ? KNOWLEDGE_NONE : knowledge_find_port(k, s, leaf);
}

static int add_leaf(struct writes *all, const struct knowledge *k, uint32_t record, uint32_t transition, const struct p_key *keys,
                    uint32_t n)
{
        return n > knowledge_get(k, record)->capacity ? add_filter(all, k, record, transition) : add_table(all, k, record, keys, n);
}

/* Adds the writes to an endport and its leaf port. */
static int add_port_writes(struct writes *all, const struct opensm_phases *p, uint32_t i, const struct partitions_file_port *line,
                           const struct subnet *s, const struct knowledge *k)
{
        _cleanup_free_ struct p_key *keys = malloc((line->n_keys + 1) * sizeof(*keys));
        uint32_t leaf = p->transitions[i].port == SUBNET_NONE ? KNOWLEDGE_NONE : find_leaf(s, p->transitions[i].port, k), n;
        int r = 0;

        if (!keys)
                return -ENOMEM;
        n = endport_keys(line, keys);
        if (p->transitions[i].record != KNOWLEDGE_NONE)
                r = add_table(all, k, p->transitions[i].record, keys, n);
        if (r == 0 && leaf != KNOWLEDGE_NONE)
                r = add_leaf(all, k, leaf, i, keys, leaf_keys(keys, n));
        return r;
}

static int gather_writes(const struct opensm_phases *p, const struct partitions_file_port *tables, const struct subnet *s,
                         const struct knowledge *k, struct writes *ret)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < p->n_ports; i++)
                r = add_port_writes(ret, p, i, &tables[i], s, k);
        return r;
}

/* ---- the knowledge --------------------------------------------------------------------------------------------- */

static void retract_all(struct writes *all, struct knowledge *k)
{
        while (all->n_expected > 0) {
                const struct file_write *w = &all->items[--all->n_expected];
                const struct knowledge_record *r = knowledge_get(k, w->record);

                if (!w->is_filter)
                        knowledge_retract_block(k, w->record, w->block, w->entries);
                else if (!w->was_unsure)
                        knowledge_see_filter(k, w->record, r->filters[SENDS], r->filters[RECEIVES]);
        }
}

static int expect_all(struct writes *all, struct knowledge *k)
{
        int r = 0;

        for (; r == 0 && all->n_expected < all->n; all->n_expected += r == 0) {
                const struct file_write *w = &all->items[all->n_expected];

                if (w->is_filter)
                        knowledge_doubt_filter(k, w->record);
                else
                        r = knowledge_expect_block(k, w->record, w->block, w->entries);
        }
        if (r < 0)
                retract_all(all, k);
        return r;
}

int opensm_expect(const struct opensm_phases *p, const struct partitions_file_port *tables, const struct subnet *s,
                  struct knowledge *k)
{
        _cleanup_writes_ struct writes all = {};

        return gather_writes(p, tables, s, k, &all) ?: expect_all(&all, k);
}

/* ---- the judgement --------------------------------------------------------------------------------------------- */

struct judgement {
        const struct base_set *held;
        struct base_set refused;
        bool any;
};

static void refuse(struct judgement *j, uint16_t base)
{
        if (base_set_has(j->held, base))
                return;
        base_set_add(&j->refused, base);
        j->any = true;
}

static bool must_judge(const struct judgement *j, struct p_key key)
{
        return p_key_is_used(key) && !base_set_has(j->held, p_key_base(key)) &&
               !base_set_has(&j->refused, p_key_base(key));
}

/* True for the limited entry of the default partition that OpenSM adds with any file. */
static bool is_default_membership(const struct knowledge_record *r, struct p_key key)
{
        return key.v == P_KEY_DEFAULT_BASE && !p_keys_hold_base(r->entries, r->capacity, P_KEY_DEFAULT_BASE);
}

/* A full member behind a leaf port with the limited entry is full or limited, depending on the switch model. A file makes it
 * limited, which is no loss. */
static bool was_limited_by_leaf(const struct knowledge *k, const struct file_write *w, uint16_t base)
{
        const struct knowledge_record *r = knowledge_get(k, w->record), *leaf = knowledge_get(k, r->other_end);
        struct bounds through;

        if (!r->fresh || !leaf || leaf->name.kind != KNOWLEDGE_LEAF || leaf->filters_unsure || !leaf->filters[SENDS] ||
            !leaf->filters[RECEIVES])
                return false;
        through = knowledge_table_bounds(k, r->other_end, base);
        return through.has == LEVEL_LIMITED && through.may == LEVEL_LIMITED; /* writes to the leaf port are judged by themselves */
}

static void judge_key(const struct knowledge *k, const struct file_write *w, struct p_key key, struct judgement *j)
{
        uint16_t base = p_key_base(key);
        enum rule_verdict verdict;

        if (!must_judge(j, key))
                return;
        verdict = knowledge_judge_block(k, w->record, w->block, w->entries, base);
        if (verdict != RULE_ADMITS && !(verdict == RULE_LOSS && was_limited_by_leaf(k, w, base)))
                refuse(j, base);
}

/* Judges a write while all others may have been carried out, and this one was not. Expecting it again cannot fail: it reuses its
 * place. */
static void judge_write(struct knowledge *k, const struct file_write *w, struct judgement *j)
{
        const struct knowledge_record *r = knowledge_get(k, w->record);
        struct p_key known[P_KEY_BLOCK_ENTRIES];

        knowledge_retract_block(k, w->record, w->block, w->entries);
        p_keys_get_block(r->entries, r->capacity, w->block, known);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                if (known[i].v != w->entries[i].v) {
                        judge_key(k, w, known[i], j);
                        if (!is_default_membership(r, w->entries[i]))
                                judge_key(k, w, w->entries[i], j);
                }
        (void) knowledge_expect_block(k, w->record, w->block, w->entries);
}

/* Refuses all bases in which a file adds entries to a port. */
static void refuse_growth(const struct partitions_file_port *before, const struct partitions_file_port *after, struct judgement *j)
{
        for (uint32_t i = 0; i < after->n_keys; i++)
                if (!p_keys_hold(before->keys, before->n_keys, after->keys[i]))
                        refuse(j, p_key_base(after->keys[i]));
}

static void judge_filter(struct knowledge *k, const struct file_write *off, const struct partitions_file_port *before,
                         const struct partitions_file_port *after, struct judgement *j)
{
        const bool before_sends = knowledge_get(k, off->record)->filters[SENDS];
        const bool before_receives = knowledge_get(k, off->record)->filters[RECEIVES];
        uint16_t base;

        knowledge_see_filter(k, off->record, off->was_unsure || before_sends, off->was_unsure || before_receives);
        if (knowledge_judge_filter(k, off->record, false, false, &base) != RULE_ADMITS)
                refuse_growth(before, after, j);
        knowledge_see_filter(k, off->record, before_sends, before_receives);
        knowledge_doubt_filter(k, off->record);
}

/* An absent port gets what the file gives it when it arrives. */
static void judge_arrival(const struct knowledge *k, const struct opensm_transition *transition,
                          const struct partitions_file_port *before, const struct partitions_file_port *after, struct judgement *j)
{
        for (uint32_t i = 0; i < after->n_keys; i++) {
                uint16_t base = p_key_base(after->keys[i]);
                enum level level = p_keys_level(after->keys, after->n_keys, base);
                enum level final = p_keys_level(transition->after, transition->n_after, base);

                if (must_judge(j, after->keys[i]) && level > p_keys_level(before->keys, before->n_keys, base) &&
                    knowledge_judge_arrival(k, transition->record, base, final, level) != RULE_ADMITS)
                        refuse(j, base);
        }
}

/* Each phase fits into all tables, but with held bases it may not. */
static void judge_ports(const struct knowledge *k, const struct opensm_phases *p, enum opensm_phase phase,
                        enum opensm_phase hold_from, struct judgement *j)
{
        for (uint32_t i = 0; i < p->n_ports; i++) {
                const struct partitions_file_port *before = &opensm_phases_before(p, hold_from)[i], *after = &p->tables[phase][i];

                if (p->transitions[i].port == SUBNET_NONE)
                        judge_arrival(k, &p->transitions[i], before, after, j);
                else if (p->transitions[i].capacity > 0 && after->n_keys > p->transitions[i].capacity)
                        refuse_growth(before, after, j);
        }
}

static void judge_all(const struct opensm_phases *p, enum opensm_phase phase, enum opensm_phase hold_from, struct writes *all,
                     struct knowledge *k, struct judgement *j)
{
        const struct partitions_file_port *before = opensm_phases_before(p, hold_from);

        judge_ports(k, p, phase, hold_from, j);
        for (size_t i = 0; i < all->n; i++) {
                const struct file_write *w = &all->items[i];

                if (w->is_filter)
                        judge_filter(k, w, &before[w->transition], &p->tables[phase][w->transition], j);
                else if (!w->is_absent)
                        judge_write(k, w, j);
        }
}

/* Holding a base changes the tables, so they are judged again until nothing more is refused. */
int opensm_admit(struct arena *a, struct opensm_phases *p, enum opensm_phase phase, enum opensm_phase hold_from,
                 const struct subnet *s, struct knowledge *k)
{
        assert(phase < OPENSM_N_PHASES && hold_from <= OPENSM_N_PHASES);
        for (;;) {
                _cleanup_writes_ struct writes all = {};
                struct judgement j = { .held = &p->held };
                int r = gather_writes(p, p->tables[phase], s, k, &all) ?: expect_all(&all, k);

                if (r < 0)
                        return r;
                judge_all(p, phase, hold_from, &all, k, &j);
                if (!j.any)
                        return 0;
                retract_all(&all, k);
                r = opensm_phases_hold(a, p, hold_from, &j.refused);
                if (r < 0)
                        return r;
        }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* True if the write adds an entry of a held base that the table does not have, or removes one that it has. */
static bool changes_held_base(const struct base_set *held, const struct knowledge_record *r, const struct knowledge_write *w,
                              const struct observed_table *t)
{
        struct p_key known[P_KEY_BLOCK_ENTRIES];

        p_keys_get_block(r->entries, r->capacity, w->block, known);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                struct p_key was = known[i], will = w->entries[i];

                if (p_key_is_used(will) && base_set_has(held, p_key_base(will)) && !p_keys_hold(t->entries, t->capacity, will))
                        return true;
                if (p_key_is_used(was) && base_set_has(held, p_key_base(was)) &&
                    !p_keys_hold_base(w->entries, P_KEY_BLOCK_ENTRIES, p_key_base(was)) &&
                    p_keys_hold(t->entries, t->capacity, was))
                        return true;
        }
        return false;
}

static bool has_open_write(const struct base_set *held, const struct knowledge *k, uint32_t record,
                           const struct observed_table *t)
{
        const struct knowledge_record *r = knowledge_get(k, record);

        for (size_t i = 0; r && r->entries && t->source == TABLE_READ && t->capacity == r->capacity && i < r->n_writes; i++)
                if (r->writes[i].is_sent && changes_held_base(held, r, &r->writes[i], t))
                        return true;
        return false;
}

/* Returns whether OpenSM may still write the table of this port or of its leaf port. */
static bool may_be_written(const struct opensm_phases *p, uint32_t i, uint32_t leaf, const struct observed *seen,
                           const struct knowledge *k)
{
        uint32_t port = p->transitions[i].port;

        return opensm_phases_reached(p, OPENSM_GRANT, i, seen) == OPENSM_MISSING ||
               has_open_write(&p->held, k, p->transitions[i].record, &seen->tables[port]) ||
               (leaf != KNOWLEDGE_NONE && has_open_write(&p->held, k, leaf, &seen->tables[seen->subnet->ports[port].peer]));
}

static void count_as_unread(struct observed *seen, uint32_t port, bool *failed)
{
        failed[port] = true;
        seen->tables[port].source = TABLE_UNKNOWN;
}

void opensm_doubt_open(const struct opensm_phases *p, struct observed *seen, const struct knowledge *k, bool *failed)
{
        const struct subnet *s = seen->subnet;

        for (uint32_t i = 0; i < p->n_ports; i++) {
                uint32_t port = p->transitions[i].port, leaf = port == SUBNET_NONE ? KNOWLEDGE_NONE : find_leaf(s, port, k);

                if (port == SUBNET_NONE || !may_be_written(p, i, leaf, seen, k))
                        continue;
                count_as_unread(seen, port, failed);
                if (leaf != KNOWLEDGE_NONE)
                        count_as_unread(seen, s->ports[port].peer, failed);
        }
}

static void confirm_table(struct knowledge *k, uint32_t record, const struct observed_table *t)
{
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        if (record == KNOWLEDGE_NONE || !knowledge_get(k, record)->entries)
                return; /* the next sweep adds it */
        for (uint16_t block = 0; block < observed_table_blocks(t); block++) {
                observed_table_get_block(t, block, entries);
                knowledge_see_block(k, record, block, entries);
        }
}

static void doubt_unread(struct knowledge *k, const struct observed *seen)
{
        for (uint32_t i = 0; i < seen->subnet->n_ports; i++) {
                uint32_t record = knowledge_find_port(k, seen->subnet, i);

                if (record != KNOWLEDGE_NONE && observed_table_failed(&seen->tables[i]))
                        knowledge_doubt(k, record);
        }
}

void opensm_confirm(const struct opensm_phases *p, enum opensm_phase phase, const struct observed *seen, struct knowledge *k)
{
        const struct subnet *s = seen->subnet;

        assert(phase < OPENSM_N_PHASES);
        for (uint32_t i = 0; i < p->n_ports; i++) {
                uint32_t port = p->transitions[i].port, leaf;

                if (opensm_phases_reached(p, phase, i, seen) != OPENSM_REACHED)
                        continue;
                confirm_table(k, p->transitions[i].record, &seen->tables[port]);
                leaf = find_leaf(s, port, k);
                if (leaf != KNOWLEDGE_NONE)
                        confirm_table(k, leaf, &seen->tables[s->ports[port].peer]);
        }
        doubt_unread(k, seen);
}
