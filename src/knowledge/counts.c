/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

/* --- counts ------------------------------------------------------------------------------------------------------------ */

static bool is_wild_table(const struct knowledge_record *r)
{
        return (!r->entries || r->is_unfollowed) && !r->vouched;
}

bool knowledge_counts_is_wild(const struct knowledge *k, uint32_t record, enum direction direction)
{
        uint32_t port = knowledge_port_of(k, record);
        const struct knowledge_record *p = port == KNOWLEDGE_NONE ? NULL : &k->records[port], *leaf;

        if (!p || p->expired || !is_wild_table(p))
                return false;
        if (p->other_end == KNOWLEDGE_NONE)
                return true;
        leaf = &k->records[p->other_end];
        return is_wild_table(leaf) || leaf->filters_unsure || !leaf->filters[direction];
}

/* Returns NULL if no port was ever counted at this base. */
static struct base_counts *find_counts(const struct counts *c, uint16_t base)
{
        uint32_t i = HASH_INDEX_FIND(k, &c->index, base, c->bases[k].base == base);

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

/* The port whose bases are being visited. */
struct counted {
        uint32_t port;
        bool is_wild[N_DIRECTIONS];
        int sign;
};

static uint32_t *count_wild(struct wild_counts *counts, const struct knowledge_record *p, enum direction direction)
{
        bool is_open = !p->policy || (p->policy->most && p->policy->most_is_held);

        return &counts->n[direction][knowledge_is_gone(p)][is_open];
}

/* Adds the port to the counts of this base, or subtracts it; at most once in a visit. */
static void change_at(struct knowledge *k, const struct counted *c, uint16_t base)
{
        struct base_counts *at = ensure_counts(&k->counts, base);

        if (k->counts.out_of_memory || at->mark == k->counts.mark)
                return; /* what was not counted cannot be subtracted; nothing is admitted until all ports are counted anew */
        at->mark = k->counts.mark;
        for (enum direction d = 0; d < N_DIRECTIONS; d++) {
                for (enum filter_model m = 0; m < N_FILTER_MODELS; m++) {
                        struct rule_class class = knowledge_class_of(k, c->port, base, (struct knowledge_view) { m, d });

                        rule_count(&at->counts[m][d], &class, c->sign);
                }
                if (c->is_wild[d])
                        *count_wild(&at->listed, &k->records[c->port], d) += (uint32_t) c->sign;
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
                        *count_wild(&k->counts.wild, p, d) += (uint32_t) sign;
        }
        for (const struct desired_port *gives = p->policy; gives; gives = gives->most)
                change_keys(k, &c, gives->wanted, gives->n_wanted);
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
        c->wild = (struct wild_counts) {};
        c->out_of_memory = false;
        for (uint32_t i = 0; i < k->n; i++)
                if (k->records[i].name.kind != KNOWLEDGE_LEAF)
                        knowledge_counts_change_all(k, i, 1);
        c->valid = !c->out_of_memory;
        return c->valid ? 0 : -ENOMEM;
}

/* --- holders ------------------------------------------------------------------------------------------------------------ */

bool knowledge_port_may_hold(const struct knowledge *k, uint32_t record, uint16_t base)
{
        for (enum filter_model m = 0; record != KNOWLEDGE_NONE && m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; d < N_DIRECTIONS; d++)
                        if (knowledge_class_of(k, record, base, (struct knowledge_view) { m, d }).bounds.may > LEVEL_NONE)
                                return true;
        return false;
}

static void list_keys(const struct knowledge *k, uint32_t port, const struct p_key *keys, size_t n, uint32_t *ret)
{
        for (size_t i = 0; i < n; i++)
                if (p_key_is_used(keys[i]) && ret[p_key_base(keys[i])] == KNOWLEDGE_NONE &&
                    knowledge_port_may_hold(k, port, p_key_base(keys[i])))
                        ret[p_key_base(keys[i])] = port;
}

/* The leaf port's table is listed, too: a port that was never read may hold each base that its leaf port lets through. */
void knowledge_list_holders(const struct knowledge *k, uint32_t *ret)
{
        for (uint32_t base = 0; base <= P_KEY_BASE_MASK; base++)
                ret[base] = KNOWLEDGE_NONE;
        for (uint32_t i = 0; i < k->n; i++) {
                const struct knowledge_record *r = &k->records[i];
                uint32_t port = knowledge_port_of(k, i);

                if (port == KNOWLEDGE_NONE || k->records[port].expired)
                        continue;
                if (knowledge_counts_is_wild(k, port, SENDS) || knowledge_counts_is_wild(k, port, RECEIVES)) {
                        for (uint32_t base = 0; base <= P_KEY_BASE_MASK; base++)
                                ret[base] = port;
                        return;
                }
                if (r->entries)
                        list_keys(k, port, r->entries, r->capacity, ret);
                for (size_t w = 0; w < r->n_writes; w++)
                        if (r->writes[w].is_sent)
                                list_keys(k, port, r->writes[w].entries, P_KEY_BLOCK_ENTRIES, ret);
        }
}

/* --- the rule ---------------------------------------------------------------------------------------------------------- */

/* Counts all ports but this one (KNOWLEDGE_NONE: all ports). */
static void count_others(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view,
                         struct rule_counts *ret)
{
        const struct base_counts *at = find_counts(&k->counts, base);
        struct rule_class own = {};

        *ret = at ? at->counts[view.model][view.direction] : (struct rule_counts) {};
        for (unsigned absent = 0; absent < 2; absent++)
                for (unsigned open = 0; open < 2; open++) {
                        const struct rule_class wild = {
                                .policy = open ? POLICY_UNKNOWN : LEVEL_NONE, .bounds = KNOWLEDGE_ANYTHING, .is_absent = absent,
                        };

                        rule_count(ret, &wild, (int) (k->counts.wild.n[view.direction][absent][open] -
                                                      (at ? at->listed.n[view.direction][absent][open] : 0)));
                }
        if (port != KNOWLEDGE_NONE)
                own = knowledge_class_of(k, port, base, view);
        rule_count(ret, &own, -1);
}

/* Judges what the port sends against what the others receive, or the other way round. */
static enum rule_verdict judge_view(const struct knowledge *k, uint16_t base, const struct knowledge_change *change,
                                    struct knowledge_view view)
{
        uint32_t port = knowledge_port_of(k, change->record);
        enum level policy = knowledge_policy_level(&k->records[port], base);
        struct knowledge_step steps[KNOWLEDGE_MAX_STEPS];
        enum rule_verdict verdict = RULE_ADMITS;
        struct rule_counts others;
        unsigned n;

        count_others(k, port, base, (struct knowledge_view) { view.model, view.direction == SENDS ? RECEIVES : SENDS }, &others);
        n = knowledge_steps(k, base, change, view, steps);
        for (unsigned i = 0; verdict == RULE_ADMITS && i < n; i++)
                verdict = rule_judge(policy, steps[i].before, steps[i].after, &others);
        return verdict;
}

static enum rule_verdict judge(const struct knowledge *k, uint16_t base, const struct knowledge_change *change)
{
        enum rule_verdict verdict = RULE_ADMITS;

        assert(base != 0 && k->counts.valid);
        if (knowledge_port_of(k, change->record) == KNOWLEDGE_NONE || k->counts.out_of_memory)
                return RULE_GAIN; /* it is not known what the write would change */
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; verdict == RULE_ADMITS && d < N_DIRECTIONS; d++)
                        verdict = judge_view(k, base, change, (struct knowledge_view) { m, d });
        return verdict;
}

bool knowledge_may_hold(const struct knowledge *k, uint16_t base)
{
        static const struct rule_counts none;

        assert(base != 0 && k->counts.valid);
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; d < N_DIRECTIONS; d++) {
                        struct rule_counts all;

                        count_others(k, KNOWLEDGE_NONE, base, (struct knowledge_view) { m, d }, &all);
                        if (memcmp(&all, &none, sizeof(all)) != 0)
                                return true;
                }
        return k->counts.out_of_memory;
}

enum rule_verdict knowledge_judge_block(const struct knowledge *k, uint32_t record, uint16_t block,
                                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        const struct knowledge_write write = knowledge_make_write(block, entries);

        assert(record < k->n);
        return judge(k, base, &(struct knowledge_change) { .record = record, .write = &write });
}

/* A host that was never read may use entries that are not in the policy: a filter would cut it off. */
static bool cuts_off_unread(const struct knowledge *k, const struct knowledge_change *change)
{
        const struct knowledge_record *leaf = &k->records[change->record];

        if (leaf->other_end == KNOWLEDGE_NONE || !is_wild_table(&k->records[leaf->other_end]))
                return false;
        for (enum direction d = 0; d < N_DIRECTIONS; d++)
                if (change->filters[d] && (leaf->filters_unsure || !leaf->filters[d]))
                        return true;
        return false;
}

enum rule_verdict knowledge_judge_arrival(const struct knowledge *k, uint32_t record, uint16_t base, enum level policy,
                                          enum level level)
{
        const struct bounds arrived = { LEVEL_NONE, (uint8_t) level };
        enum rule_verdict verdict = RULE_ADMITS;
        struct rule_counts others;

        assert(base != 0 && k->counts.valid);
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; verdict == RULE_ADMITS && d < N_DIRECTIONS; d++) {
                        count_others(k, record, base, (struct knowledge_view) { m, d }, &others);
                        verdict = rule_judge(policy, (struct bounds) {}, arrived, &others);
                }
        return k->counts.out_of_memory ? RULE_GAIN : verdict;
}

/* All bases without a counted port have the same verdict: one of them is judged as well, because a port that may hold anything may
 * hold them. */
enum rule_verdict knowledge_judge_filter(const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                                         uint16_t *ret_base)
{
        const struct knowledge_change change = { .record = record, .filters = { [SENDS] = inbound, [RECEIVES] = outbound } };
        enum rule_verdict verdict = RULE_ADMITS;
        uint16_t uncounted = 1;

        assert(record < k->n);
        while (uncounted < P_KEY_BASE_MASK && find_counts(&k->counts, uncounted))
                uncounted++;
        *ret_base = uncounted;
        if (cuts_off_unread(k, &change))
                return RULE_LOSS;
        for (size_t i = 0; verdict == RULE_ADMITS && i <= k->counts.n; i++) {
                *ret_base = i < k->counts.n ? k->counts.bases[i].base : uncounted;
                verdict = judge(k, *ret_base, &change);
        }
        return verdict;
}
