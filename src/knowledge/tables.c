/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

#define MAX_BASES 256 /* that one change of a block can touch; beyond that all bases of its port are counted anew */

/* --- tables -------------------------------------------------------------------------------------------------------- */

/* The record of a port, or NULL. */
static struct knowledge_record *record_of(const struct knowledge *k, const struct subnet *s, uint32_t port)
{
        uint32_t record = knowledge_find_port(k, s, port);

        return record == KNOWLEDGE_NONE ? NULL : &k->records[record];
}

static bool is_as_known(const struct knowledge_record *r, const struct observed_table *t)
{
        return r->entries && !r->is_unfollowed && r->n_writes == 0 && !r->vouched &&
               memcmp(r->entries, t->entries, t->capacity * sizeof(*r->entries)) == 0;
}

static int see_table(struct knowledge_record *r, const struct observed_table *t, uint64_t wall)
{
        knowledge_set_capacity(r, t->capacity);
        r->fresh = true;
        r->read_at = wall;
        if (is_as_known(r, t))
                return 0;
        if (!r->entries)
                r->entries = calloc(MAX(t->capacity, 1u), sizeof(*r->entries));
        if (!r->entries)
                return -ENOMEM;
        memcpy(r->entries, t->entries, t->capacity * sizeof(*r->entries));
        r->n_writes = 0;
        r->vouched = r->is_unfollowed = r->is_stored = false;
        return 0;
}

int knowledge_see_tables(struct knowledge *k, const struct observed *seen, uint64_t wall)
{
        int r = 0;

        k->counts.valid = false;
        for (uint32_t i = 0; r == 0 && i < seen->subnet->n_ports; i++) {
                const struct observed_table *t = &seen->tables[i];
                struct knowledge_record *record = record_of(k, seen->subnet, i);

                if (record && t->source == TABLE_READ)
                        r = see_table(record, t, wall);
        }
        return r;
}

/* Returns false if there is nothing to recall. */
static bool recall(const struct knowledge_record *r, struct observed_table *t)
{
        if (!r->entries || r->capacity != t->capacity)
                return false;
        memcpy(t->entries, r->entries, t->capacity * sizeof(*t->entries));
        t->source = TABLE_ASSUMED;
        return true;
}

void knowledge_recall(const struct knowledge *k, struct observed *to)
{
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                const struct knowledge_record *r = record_of(k, to->subnet, i);

                if (r && t->entries && t->source != TABLE_READ)
                        (void) recall(r, t);
        }
}

void knowledge_recall_certain(const struct knowledge *k, struct observed *to)
{
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                const struct knowledge_record *r = record_of(k, to->subnet, i);

                if (r && t->entries && r->fresh && !r->vouched && r->n_writes == 0 && recall(r, t))
                        t->source = TABLE_READ;
        }
}

/* An entry that is known to be in use stays; a free one takes its value from the first write that may have used it. */
static void add_used(const struct knowledge_record *r, const struct knowledge_write *w, struct p_key *entries)
{
        size_t n = p_key_block_size(r->capacity, w->block);

        entries += (size_t) w->block * P_KEY_BLOCK_ENTRIES;
        for (size_t i = 0; w->is_sent && !w->is_foreign && i < n; i++)
                if (!p_key_is_used(entries[i]))
                        entries[i] = w->entries[i];
}

void knowledge_recall_used(const struct knowledge *k, struct observed *to)
{
        knowledge_recall(k, to);
        for (uint32_t i = 0; i < to->subnet->n_ports; i++) {
                struct observed_table *t = &to->tables[i];
                const struct knowledge_record *r = record_of(k, to->subnet, i);

                for (size_t w = 0; r && t->source == TABLE_ASSUMED && w < r->n_writes; w++)
                        add_used(r, &r->writes[w], t->entries);
        }
}

bool knowledge_has_open_writes(const struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++)
                if (k->records[i].n_writes > 0)
                        return true;
        return false;
}

static bool is_certain(const struct knowledge_record *r)
{
        if (r->expired || r->vouched)
                return true;
        return r->fresh && r->n_writes == 0 && (r->name.kind != KNOWLEDGE_LEAF || !r->filters_unsure);
}

bool knowledge_is_certain(const struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++)
                if (!is_certain(&k->records[i]))
                        return false;
        return true;
}

/* --- blocks -------------------------------------------------------------------------------------------------------- */

/* The bases at which a change of one block can change the bounds of its port. */
struct touched {
        uint16_t bases[MAX_BASES];
        size_t n;
        bool all;  /* too many bases, or the port may hold anything, or a person vouched for it */
};

static void touch(struct touched *t, struct p_key key)
{
        if (!p_key_is_used(key))
                return;
        if (t->n == MAX_BASES)
                t->all = true;
        else
                t->bases[t->n++] = p_key_base(key);
}

static void touch_block(struct touched *t, const struct p_key x[P_KEY_BLOCK_ENTRIES], const struct p_key y[P_KEY_BLOCK_ENTRIES])
{
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                if (x[i].v != y[i].v) {
                        touch(t, x[i]);
                        touch(t, y[i]);
                }
}

/* Entries past the end of the table are ignored. */
static bool blocks_equal(const struct knowledge_record *r, uint16_t block, const struct p_key *x, const struct p_key *y)
{
        return memcmp(x, y, p_key_block_size(r->capacity, block) * sizeof(*x)) == 0;
}

bool knowledge_block_is(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        const struct knowledge_record *r = &k->records[record];

        assert(record < k->n);
        return blocks_equal(r, block, r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, entries);
}

/* Finds the bases at which the bounds of the port may change when it gets known that the block may hold these entries. */
static void find_touched(const struct knowledge *k, uint32_t record, uint16_t block,
                         const struct p_key entries[P_KEY_BLOCK_ENTRIES], struct touched *ret)
{
        const struct knowledge_record *r = &k->records[record];
        struct p_key known[P_KEY_BLOCK_ENTRIES];

        *ret = (struct touched) {
                .all = r->vouched || knowledge_counts_is_wild(k, record, SENDS) || knowledge_counts_is_wild(k, record, RECEIVES),
        };
        p_keys_get_block(r->entries, r->capacity, block, known);
        touch_block(ret, known, entries);
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].block == block && r->writes[i].is_sent)
                        touch_block(ret, known, r->writes[i].entries);
}

static void change_all(struct knowledge *k, uint32_t record, int sign)
{
        if (k->counts.valid)
                knowledge_counts_change_all(k, record, sign);
}

static void recount(struct knowledge *k, uint32_t record, const struct touched *t, int sign)
{
        if (t->all)
                change_all(k, record, sign);
        else if (k->counts.valid)
                knowledge_counts_change(k, record, t->bases, t->n, sign);
}

/* Removes the writes that are neither sent nor announced any more. */
static void drop_ended_writes(struct knowledge_record *r)
{
        size_t kept = 0;

        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent || r->writes[i].is_announced)
                        r->writes[kept++] = r->writes[i];
        r->is_stored = r->is_stored && kept == r->n_writes;
        r->n_writes = kept;
}

static void take_block(struct knowledge_record *r, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        memcpy(r->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, entries, p_key_block_size(r->capacity, block) * sizeof(*entries));
        for (size_t i = 0; i < r->n_writes; i++)
                r->writes[i].is_sent = r->writes[i].is_sent && r->writes[i].block != block;
        drop_ended_writes(r);
        r->vouched = false;
        r->is_stored = false;
}

static bool is_possible(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                        bool if_suspected)
{
        const struct knowledge_record *r = &k->records[record];

        if (knowledge_block_is(k, record, block, entries))
                return true;
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent && (if_suspected || !r->writes[i].is_suspected) && r->writes[i].block == block &&
                    blocks_equal(r, block, r->writes[i].entries, entries))
                        return true;
        return false;
}

bool knowledge_block_may_be(const struct knowledge *k, uint32_t record, uint16_t block,
                            const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        assert(record < k->n);
        return is_possible(k, record, block, entries, false);
}

/* If another program wrote a switch port, or it was reset, its filter bits may have changed as well. */
void knowledge_see_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_record *r = &k->records[record];
        struct touched touched;

        assert(record < k->n);
        assert(r->entries);
        if (r->name.kind == KNOWLEDGE_LEAF && !is_possible(k, record, block, entries, true))
                knowledge_doubt_filter(k, record);
        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        take_block(r, block, entries);
        recount(k, record, &touched, 1);
}

/* Adds a write that is not announced or sent yet. NULL: out of memory. */
static struct knowledge_write *add_write(struct knowledge_record *r, uint16_t block,
                                         const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        assert(r->entries);
        if (VECTOR_RESERVE(NULL, r->writes, r->n_writes, r->n_allocated, r->n_writes + 1) < 0) /* rarely more than one */
                return NULL;
        r->is_stored = false;
        r->writes[r->n_writes] = knowledge_make_write(block, entries);
        return &r->writes[r->n_writes++];
}

int knowledge_announce_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write *w = add_write(&k->records[record], block, entries);

        if (!w)
                return -ENOMEM;
        w->is_announced = true;
        return 0;
}

void knowledge_withdraw(struct knowledge *k)
{
        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                for (size_t w = 0; w < r->n_writes; w++)
                        r->writes[w].is_announced = false;
                drop_ended_writes(r);
        }
}

static bool is_write_of(const struct knowledge_write *w, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return w->block == block && memcmp(w->entries, entries, sizeof(w->entries)) == 0;
}

static struct knowledge_write *find_announced(struct knowledge_record *r, uint16_t block,
                                              const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_announced && r->writes[i].is_stored && is_write_of(&r->writes[i], block, entries))
                        return &r->writes[i];
        return NULL;
}

/* From now on the table may hold what this write of it contains. */
static void send_write(struct knowledge *k, uint32_t record, struct knowledge_write *w)
{
        struct touched touched;

        find_touched(k, record, w->block, w->entries, &touched);
        recount(k, record, &touched, -1);
        w->is_sent = true;
        recount(k, record, &touched, 1);
}

bool knowledge_send_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_write *w;

        assert(record < k->n);
        w = find_announced(&k->records[record], block, entries);
        if (w)
                send_write(k, record, w);
        return w != NULL;
}

/* --- blocks of another writer -------------------------------------------------------------------------------------- */

static int add_foreign(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                       bool is_suspected)
{
        struct knowledge_write *w = add_write(&k->records[record], block, entries);

        if (!w)
                return -ENOMEM;
        w->is_foreign = true;
        w->is_expected = !is_suspected;
        w->is_suspected = is_suspected;
        send_write(k, record, w);
        return 0;
}

int knowledge_expect_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return add_foreign(k, record, block, entries, false);
}

int knowledge_suspect_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        return add_foreign(k, record, block, entries, true);
}

static bool is_trusted(enum knowledge_trust trust, bool news)
{
        return trust == KNOWLEDGE_NAMED || (trust == KNOWLEDGE_EXPECTED && !news);
}

bool knowledge_weigh_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                           enum knowledge_trust trust)
{
        bool news = !knowledge_block_may_be(k, record, block, entries);

        if (is_trusted(trust, news))
                knowledge_see_block(k, record, block, entries);
        else if (news && knowledge_suspect_block(k, record, block, entries) < 0)
                knowledge_doubt(k, record);
        return !news;
}

/* The indexes are guesses. If no index is free, existing entries are replaced in turn. */
static void add_wanted(struct p_key *table, uint16_t capacity, const struct desired_port *policy)
{
        uint32_t next = 0;

        for (uint32_t i = 0; i < policy->n_wanted; i++) {
                uint32_t at = 0;

                if (p_keys_hold(table, capacity, policy->wanted[i]))
                        continue;
                while (at < capacity && p_key_is_used(table[at]))
                        at++;
                table[at < capacity ? at : next++ % capacity] = policy->wanted[i];
        }
}

static int suspect_table(struct knowledge *k, uint32_t record, const struct desired_port *policy)
{
        const struct knowledge_record *r = &k->records[record];
        size_t n_blocks = p_key_table_blocks(r->capacity);
        _cleanup_free_ struct p_key *table = calloc(n_blocks * P_KEY_BLOCK_ENTRIES, sizeof(*table));
        int e = table ? 0 : -ENOMEM;

        if (table) {
                memcpy(table, r->entries, r->capacity * sizeof(*table));
                add_wanted(table, r->capacity, policy);
        }
        for (size_t block = 0; e == 0 && block < n_blocks; block++) {
                const struct p_key *entries = table + block * P_KEY_BLOCK_ENTRIES;

                if (!is_possible(k, record, (uint16_t) block, entries, true))
                        e = knowledge_suspect_block(k, record, (uint16_t) block, entries);
        }
        return e;
}

/* A switch port gets what the policy gives its peer. */
int knowledge_suspect_policy(struct knowledge *k)
{
        int e = 0;

        for (uint32_t i = 0; e == 0 && i < k->n; i++) {
                uint32_t port = knowledge_port_of(k, i);
                const struct knowledge_record *r = &k->records[i];

                if (port != KNOWLEDGE_NONE && k->records[port].policy && r->entries && r->capacity > 0)
                        e = suspect_table(k, i, k->records[port].policy);
        }
        return e;
}

static size_t find_last_sent(const struct knowledge_record *r, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        size_t i = r->n_writes;

        while (i > 0 && !(r->writes[i - 1].is_sent && is_write_of(&r->writes[i - 1], block, entries)))
                i--;
        assert(i > 0);
        return i - 1;
}

void knowledge_retract_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        struct knowledge_record *r = &k->records[record];
        struct touched touched;
        size_t i = find_last_sent(r, block, entries);

        find_touched(k, record, block, entries, &touched);
        recount(k, record, &touched, -1);
        memmove(&r->writes[i], &r->writes[i + 1], (--r->n_writes - i) * sizeof(*r->writes));
        recount(k, record, &touched, 1);
        r->is_stored = false;
}

void knowledge_settle_expected(struct knowledge *k, bool asked)
{
        for (uint32_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                change_all(k, i, -1);
                for (size_t w = 0; w < r->n_writes; w++) {
                        r->writes[w].is_sent = r->writes[w].is_sent && (asked || !r->writes[w].is_expected);
                        r->writes[w].is_expected = false;
                }
                drop_ended_writes(r);
                change_all(k, i, 1);
        }
}

/* --- one table ----------------------------------------------------------------------------------------------------- */

void knowledge_stop_following(struct knowledge *k)
{
        k->counts.valid = false;
        for (size_t i = 0; i < k->n; i++) {
                k->records[i].is_unfollowed = k->records[i].entries != NULL;
                k->records[i].fresh = false;
        }
}

/* Without memory for a write the table may hold anything. */
static void take_foreign_write(struct knowledge_record *r, const struct knowledge_write *foreign)
{
        bool fits = foreign->block < p_key_table_blocks(r->capacity);
        struct knowledge_write *w = fits ? add_write(r, foreign->block, foreign->entries) : NULL;

        assert(!foreign->is_expected);
        if (!w) {
                r->is_unfollowed = true;
                return;
        }
        w->is_sent = w->is_foreign = true;
        w->is_suspected = foreign->is_suspected;
}

void knowledge_take_foreign(struct knowledge *k, const struct knowledge *before)
{
        assert(!k->counts.valid);
        for (size_t i = 0; i < before->n; i++) {
                const struct knowledge_record *from = &before->records[i];
                uint32_t record = knowledge_find(k, from->name);
                struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : &k->records[record];

                if (!r || !r->entries) /* never read: it may hold anything */
                        continue;
                r->is_unfollowed |= from->is_unfollowed;
                for (size_t w = 0; w < from->n_writes; w++)
                        if (from->writes[w].is_foreign && from->writes[w].is_sent)
                                take_foreign_write(r, &from->writes[w]);
        }
}

void knowledge_doubt(struct knowledge *k, uint32_t record)
{
        assert(record < k->n);
        change_all(k, record, -1);
        k->records[record].fresh = false;
        change_all(k, record, 1);
}

void knowledge_see_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound)
{
        assert(record < k->n);
        change_all(k, record, -1);
        k->records[record].filters[SENDS] = inbound;
        k->records[record].filters[RECEIVES] = outbound;
        k->records[record].filters_unsure = false;
        change_all(k, record, 1);
}

/* True if the bits are as they were last read, or not certain. */
static bool filter_may_be(const struct knowledge_record *r, bool inbound, bool outbound)
{
        return r->filters_unsure || (r->filters[SENDS] == inbound && r->filters[RECEIVES] == outbound);
}

void knowledge_doubt_filter(struct knowledge *k, uint32_t record)
{
        assert(record < k->n);
        change_all(k, record, -1);
        k->records[record].filters_unsure = true;
        change_all(k, record, 1);
}

bool knowledge_weigh_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound, enum knowledge_trust trust)
{
        bool news;

        assert(record < k->n);
        news = !filter_may_be(&k->records[record], inbound, outbound);
        if (is_trusted(trust, news))
                knowledge_see_filter(k, record, inbound, outbound);
        else if (news)
                knowledge_doubt_filter(k, record);
        return !news;
}

int knowledge_vouch(struct knowledge *k, uint32_t record, const char *who, uint64_t wall)
{
        struct knowledge_record *r = &k->records[record];
        char *name = strdup(who);

        assert(record < k->n);
        if (!name)
                return -ENOMEM;
        change_all(k, record, -1);
        r->vouched = true;
        free(r->vouched_by);
        r->vouched_by = name;
        r->vouched_at = wall;
        r->is_stored = false;
        change_all(k, record, 1);
        return 0;
}
