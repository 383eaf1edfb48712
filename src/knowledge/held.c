/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge/held.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

/* What the rule needs of a port that is written: its bounds around the write. */
struct question {
        uint8_t policy; /* enum level */
        uint8_t n_steps[N_FILTER_MODELS][N_DIRECTIONS];
        struct knowledge_step steps[N_FILTER_MODELS][N_DIRECTIONS][KNOWLEDGE_MAX_STEPS];
};

/* The verdict of all ports but `port` on a question about `port`. It holds for each other port with this question, too, once that
 * port is judged against `port`. */
struct answer {
        struct question question;
        uint32_t port;
        enum rule_verdict verdict;
        enum rule_verdict own; /* RULE_ADMITS: the port that is written does not block itself */
};

struct item {
        struct held held;           /* the first member */
        uint64_t *waiting, *blocks; /* a bit for each record that is counted */
        uint32_t n_records;
        struct answer *answers;
        size_t n_answers, n_allocated;
        uint32_t mark;              /* of the counts that the answers rest on */
};

struct held_list {
        struct arena *arena;
        struct held **items;        /* each in a struct item */
        size_t n, allocated;
};

/* --- the list ---------------------------------------------------------------------------------------------------------- */

struct held_list *held_list_new(struct arena *a)
{
        struct held_list *l = arena_new_object(a, struct held_list);

        if (l)
                l->arena = a;
        return l;
}

const struct held *const *held_list_items(const struct held_list *l, size_t *ret_n)
{
        *ret_n = l ? l->n : 0;
        return l ? (const struct held *const *) l->items : NULL;
}

uint32_t held_list_n_ports(const struct held_list *l)
{
        uint32_t n = 0, n_words = l->n > 0 ? ((const struct item *) l->items[0])->n_records / 64 + 1 : 0;

        for (uint32_t w = 0; w < n_words; w++) {
                uint64_t any = 0;

                for (size_t i = 0; i < l->n; i++)
                        any |= ((const struct item *) l->items[i])->blocks[w];
                n += (uint32_t) __builtin_popcountll(any);
        }
        return n;
}

static struct item *item_new(struct arena *a, const struct knowledge *k, uint16_t base)
{
        struct item *item = arena_new_object(a, struct item);
        uint32_t n = knowledge_n_records(k);

        if (!item)
                return NULL;
        item->held.base = base;
        item->n_records = n;
        item->waiting = arena_new_array(a, uint64_t, n / 64 + 1);
        item->blocks = arena_new_array(a, uint64_t, n / 64 + 1);
        return item->waiting && item->blocks ? item : NULL;
}

static struct item *ensure_item(struct held_list *l, const struct knowledge *k, uint16_t base)
{
        size_t i = LOWER_BOUND(item, l->items, l->n, (*item)->base < base);
        struct item *item;

        if (i < l->n && l->items[i]->base == base)
                return (struct item *) l->items[i];
        item = item_new(l->arena, k, base);
        return item && VECTOR_INSERT(l->arena, l->items, l->n, l->allocated, i, &item->held) == 0 ? item : NULL;
}

/* Returns false if the bit was set already. */
static bool add_bit(uint64_t *bits, uint32_t i)
{
        uint64_t bit = UINT64_C(1) << i % 64, old = bits[i / 64];

        bits[i / 64] |= bit;
        return !(old & bit);
}

/* --- why a port blocks a write ------------------------------------------------------------------------------------------ */

static bool has_unconfirmed(const struct knowledge_record *r)
{
        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].is_sent)
                        return true;
        return false;
}

static bool is_switch_silent(const struct knowledge *k, struct guid node)
{
        uint32_t record = knowledge_find(k, (struct knowledge_name) { node, 0, KNOWLEDGE_ENDPORT });

        return record != KNOWLEDGE_NONE && k->records[record].presence == KNOWLEDGE_SILENT;
}

/* The silent switch that this port is behind; 0: none, or it is also connected to one that is not silent. */
static struct guid find_behind(const struct knowledge *k, const struct knowledge_record *r)
{
        if (r->name.kind == KNOWLEDGE_PLACE)
                return is_switch_silent(k, r->name.node) ? r->name.node : (struct guid) {};
        for (size_t i = 0; i < r->n_places; i++)
                if (!is_switch_silent(k, r->places[i].node))
                        return (struct guid) {};
        return r->n_places > 0 ? r->places[0].node : (struct guid) {};
}

/* True if the port is frozen, so that what the policy gives it is not known exactly. */
static bool is_frozen(const struct knowledge *k, const struct knowledge_record *r)
{
        uint32_t port = knowledge_port_of(k, (uint32_t) (r - k->records));
        const struct desired_port *gives = port == KNOWLEDGE_NONE ? NULL : k->records[port].policy;

        return gives && gives->most;
}

static enum held_reason reason_of(const struct knowledge *k, const struct knowledge_record *r, enum rule_verdict verdict)
{
        if (r->presence == KNOWLEDGE_ABSENT)
                return r->may_be_silent ? HELD_MAYBE_SILENT : HELD_ABSENT;
        if (r->presence == KNOWLEDGE_SILENT)
                return find_behind(k, r).v ? HELD_SILENT_SWITCH : HELD_SILENT;
        if (!r->entries)
                return HELD_NEVER_READ;
        if (!r->fresh)
                return HELD_UNANSWERED;
        if (has_unconfirmed(r))
                return HELD_UNCONFIRMED;
        if (is_frozen(k, r))
                return HELD_FROZEN;
        return verdict == RULE_GAIN ? HELD_EXCESS : HELD_LACK;
}

static uint64_t until_of(const struct knowledge *k, const struct knowledge_record *r)
{
        usec_t absent_for = k->now - MIN(k->now, r->seen);

        return k->absent_hold == USEC_INFINITY ? 0 : k->wall + (k->absent_hold - MIN(k->absent_hold, absent_for)) / USEC_PER_SEC;
}

static uint64_t since_of(const struct knowledge_record *r, enum held_reason reason)
{
        if (reason == HELD_ABSENT || reason == HELD_MAYBE_SILENT)
                return r->seen_at;
        return reason == HELD_SILENT || reason == HELD_SILENT_SWITCH ? r->since : r->read_at;
}

static struct held_by describe_blocker(const struct knowledge *k, uint32_t record, enum held_reason reason)
{
        const struct knowledge_record *r = &k->records[record];

        return (struct held_by) {
                .name = r->name, .record = record, .reason = reason, .since = since_of(r, reason), .read_at = r->read_at,
                .until = reason == HELD_ABSENT ? until_of(k, r) : 0,
                .behind = reason == HELD_SILENT_SWITCH ? find_behind(k, r) : (struct guid) {},
        };
}

struct held_by held_by_record(const struct knowledge *k, uint32_t record)
{
        return describe_blocker(k, record, reason_of(k, &k->records[record], RULE_GAIN));
}

void held_find_holders(const struct knowledge *k, uint16_t base, struct held *ret)
{
        *ret = (struct held) { .base = base };
        for (uint32_t i = 0; i < k->n; i++)
                if (k->records[i].name.kind != KNOWLEDGE_LEAF && knowledge_port_may_hold(k, i, base) && ret->n_by++ < HELD_MAX)
                        ret->by[ret->n_by - 1] = held_by_record(k, i);
}

static void add_blocker(struct item *item, const struct knowledge *k, uint32_t record, enum held_reason reason)
{
        uint32_t port = knowledge_port_of(k, record);
        struct held_by *by;

        if (!add_bit(item->blocks, record) || item->held.n_by++ >= HELD_MAX)
                return;
        by = &item->held.by[item->held.n_by - 1];
        *by = describe_blocker(k, record, reason);
        by->policy = port == KNOWLEDGE_NONE ? POLICY_UNKNOWN : knowledge_policy_level(&k->records[port], item->held.base);
}

/* Adds the table of the port that does not match the policy: its own, or else that of its leaf port. */
static void add_blocking_table(struct item *item, const struct knowledge *k, uint32_t port, const struct knowledge_change *change,
                               enum rule_verdict verdict)
{
        const struct knowledge_record *p = &k->records[port];
        struct bounds host = change ? knowledge_table_after(k, port, item->held.base, change) :
                                      knowledge_table_bounds(k, port, item->held.base);
        uint32_t record = port;

        if (verdict == RULE_LOSS && host.has >= rule_policy_for(verdict, knowledge_policy_level(p, item->held.base)) &&
            p->other_end != KNOWLEDGE_NONE)
                record = p->other_end;
        add_blocker(item, k, record, reason_of(k, &k->records[record], verdict));
}

/* --- the question ---------------------------------------------------------------------------------------------------------- */

static struct question make_question(const struct knowledge *k, uint32_t port, uint16_t base, const struct knowledge_change *change)
{
        struct question q = { .policy = knowledge_policy_level(&k->records[port], base) };

        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; d < N_DIRECTIONS; d++)
                        q.n_steps[m][d] =
                                (uint8_t) knowledge_steps(k, base, change, (struct knowledge_view) { m, d }, q.steps[m][d]);
        return q;
}

/* Judges a step against a port as it is, and as it would be if it matched the policy. */
static void judge_step(struct answer *a, struct bounds before, struct bounds after, const struct rule_class *class,
                       enum rule_verdict *ret_blocks)
{
        enum rule_verdict verdict = rule_judge_pair(a->question.policy, before, after, class);
        const uint8_t policy = (uint8_t) rule_policy_for(verdict, class->policy);
        const struct rule_class matching = { .policy = class->policy, .bounds = { policy, policy } };
        bool helps;

        if (verdict == RULE_ADMITS)
                return;
        helps = rule_judge_pair(a->question.policy, before, after, &matching) == RULE_ADMITS;
        a->verdict = a->verdict == RULE_ADMITS ? verdict : a->verdict;
        if (!helps)
                a->own = verdict;
        if (helps || (verdict == RULE_GAIN ? class->bounds.may > policy : class->bounds.has < policy))
                *ret_blocks = verdict;
}

/* Judges what the written port sends against what the other port receives, and the other way round. */
static void judge_port(struct item *item, const struct knowledge *k, struct answer *a, uint32_t port)
{
        enum rule_verdict blocks = RULE_ADMITS;

        if (knowledge_table_bounds(k, port, item->held.base).may == LEVEL_NONE)
                return; /* as most ports: it communicates with no other port, before and after */
        for (enum filter_model m = 0; m < N_FILTER_MODELS; m++)
                for (enum direction d = 0; d < N_DIRECTIONS; d++) {
                        struct knowledge_view view = { m, d == SENDS ? RECEIVES : SENDS };
                        struct rule_class class = knowledge_class_of(k, port, item->held.base, view);

                        for (unsigned i = 0; i < a->question.n_steps[m][d]; i++)
                                judge_step(a, a->question.steps[m][d][i].before, a->question.steps[m][d][i].after, &class, &blocks);
                }
        if (blocks != RULE_ADMITS)
                add_blocking_table(item, k, port, NULL, blocks);
}

static struct answer *find_answer(struct item *item, const struct question *q)
{
        for (size_t i = 0; i < item->n_answers; i++)
                if (memcmp(&item->answers[i].question, q, sizeof(*q)) == 0)
                        return &item->answers[i];
        return NULL;
}

static struct answer *judge_all_ports(struct held_list *l, struct item *item, const struct knowledge *k, const struct question *q,
                                      uint32_t port)
{
        struct answer *a;

        if (VECTOR_ADD(l->arena, item->answers, item->n_answers, item->n_allocated,
                       (struct answer) { .question = *q, .port = port }) < 0)
                return NULL;
        a = &item->answers[item->n_answers - 1];
        for (uint32_t i = 0; i < k->n; i++)
                if (i != port && k->records[i].name.kind != KNOWLEDGE_LEAF)
                        judge_port(item, k, a, i);
        return a;
}

static struct answer *get_answer(struct held_list *l, struct item *item, const struct knowledge *k, const struct question *q,
                                 uint32_t port)
{
        struct answer *a;

        if (item->mark != k->counts.mark)
                item->n_answers = 0;
        item->mark = k->counts.mark;
        a = find_answer(item, q);
        if (!a)
                return judge_all_ports(l, item, k, q, port);
        if (a->port != port)
                judge_port(item, k, a, a->port);
        return a;
}

/* --- collecting ------------------------------------------------------------------------------------------------------------ */

static void add_waiting(struct item *item, const struct knowledge *k, const struct knowledge_change *change, uint8_t to,
                        enum rule_verdict rule)
{
        uint32_t record = change->record;

        if (!add_bit(item->waiting, record) || item->held.n_waiting++ >= HELD_MAX)
                return;
        item->held.waiting[item->held.n_waiting - 1] = (struct held_waiting) {
                .name = k->records[record].name, .record = record, .to = to, .is_filter = !change->write, .rule = rule,
                .from = knowledge_table_bounds(k, record, item->held.base).may,
        };
}

static int collect(struct held_list *l, const struct knowledge *k, uint16_t base, const struct knowledge_change *change)
{
        uint32_t port = knowledge_port_of(k, change->record);
        uint8_t to = knowledge_table_after(k, change->record, base, change).may;
        struct item *item = ensure_item(l, k, base);
        struct question q;
        struct answer *a;

        if (!item)
                return -ENOMEM;
        assert(base != 0 && k->counts.valid && item->n_records == k->n);
        if (port == KNOWLEDGE_NONE) {
                add_waiting(item, k, change, to, RULE_GAIN);
                add_blocker(item, k, change->record, HELD_UNKNOWN_DEVICE);
                return 0;
        }
        q = make_question(k, port, base, change);
        a = get_answer(l, item, k, &q, port);
        if (!a)
                return -ENOMEM;
        add_waiting(item, k, change, to, a->verdict);
        if (a->own != RULE_ADMITS)
                add_blocking_table(item, k, port, change, a->own);
        if (a->verdict == RULE_ADMITS)
                add_blocker(item, k, change->record, HELD_EARLIER);
        return 0;
}

int held_collect(struct held_list *l, const struct knowledge *k, uint32_t record, uint16_t block,
                 const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        const struct knowledge_write write = knowledge_make_write(block, entries);

        return collect(l, k, base, &(struct knowledge_change) { .record = record, .write = &write });
}

int held_collect_filter(struct held_list *l, const struct knowledge *k, uint32_t record, bool inbound, bool outbound, uint16_t base)
{
        return collect(l, k, base,
                       &(struct knowledge_change) { .record = record, .filters = { [SENDS] = inbound, [RECEIVES] = outbound } });
}

DEFINE_WORDS(held_reason_to_string, enum held_reason, "?",
             [HELD_NEVER_READ] = "never-read", [HELD_UNANSWERED] = "unanswered", [HELD_UNCONFIRMED] = "unconfirmed",
             [HELD_SILENT] = "silent", [HELD_ABSENT] = "absent", [HELD_EXCESS] = "excess", [HELD_LACK] = "lack",
             [HELD_EARLIER] = "earlier-write", [HELD_UNKNOWN_DEVICE] = "unknown-device",
             [HELD_SILENT_SWITCH] = "silent-switch", [HELD_MAYBE_SILENT] = "maybe-silent", [HELD_FROZEN] = "frozen")
