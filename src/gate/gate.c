/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gate/gate.h"

#include <stdarg.h>
#include <string.h>

#include "ib/smp.h"
#include "util/hash_index.h"
#include "util/vector.h"

/* The last answer of an SMA to one question, since the gate was opened. */
struct answer {
        struct mad_route route;
        uint16_t attribute;
        uint32_t modifier;
        bool in_doubt;    /* it counts only after the SMA has identified itself; of NodeInfo: another SMA may be there by now */
        bool is_old;      /* of NodeInfo: from before the gate was opened, and in_doubt */
        bool has_doubted; /* of NodeInfo: other answers of this SMA are in_doubt, and wait for the next NodeInfo */
        uint8_t data[SMP_DATA_SIZE];
};

struct gate {
        struct knowledge *knowledge;   /* NULL: closed */
        const struct policy *policy;
        struct answer *answers;
        size_t n_answers, n_allocated;
        struct hash_index by_question, by_route; /* of answers */
        bool (*holds_lock)(void *userdata); /* NULL: it always does */
        void *lock_userdata;
        uint64_t n_refused, n_late;
        char refusal[256];
};

/* A Set of a block that is judged. */
struct block_set {
        uint32_t record;
        uint16_t block;
        struct p_key before[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
};

struct gate *gate_new(void)
{
        return calloc(1, sizeof(struct gate));
}

struct gate *gate_free(struct gate *g)
{
        if (!g)
                return NULL;
        hash_index_done(&g->by_question);
        hash_index_done(&g->by_route);
        free(g->answers);
        free(g);
        return NULL;
}

uint64_t gate_n_refused(const struct gate *g)
{
        return g->n_refused;
}

uint64_t gate_n_late(const struct gate *g)
{
        return g->n_late;
}

void gate_set_lock(struct gate *g, bool (*holds)(void *userdata), void *userdata)
{
        g->holds_lock = holds;
        g->lock_userdata = userdata;
}

const char *gate_refusal(const struct gate *g)
{
        return g->refusal;
}

__attribute__((format(printf, 2, 3))) static bool refuse(struct gate *g, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(g->refusal, sizeof(g->refusal), format, ap);
        va_end(ap);
        g->n_refused++;
        return false;
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

static uint64_t hash_of(const struct mad_route *route, uint16_t attribute, uint32_t modifier)
{
        uint64_t h = hash_mix(hash_mix(route->lid.v, attribute), modifier);

        for (unsigned i = 1; route->lid.v == 0 && i <= route->hops && i < sizeof(route->path); i++)
                h = hash_mix(h, route->path[i]);
        return h;
}

/* True if both routes lead to the same SMA by the same path. A frame may state any number of hops. */
static bool same_route(const struct mad_route *x, const struct mad_route *y)
{
        if (x->lid.v != 0 || y->lid.v != 0)
                return x->lid.v == y->lid.v;
        return x->hops == y->hops && x->hops <= MAD_MAX_HOPS && memcmp(x->path + 1, y->path + 1, x->hops) == 0;
}

static struct answer *find_answer(const struct gate *g, const struct mad_route *route, uint16_t attribute, uint32_t modifier)
{
        uint32_t i = hash_index_first(&g->by_question, hash_of(route, attribute, modifier));

        for (; i != HASH_INDEX_NONE; i = hash_index_next(&g->by_question, i)) {
                struct answer *a = &g->answers[i];

                if (a->attribute == attribute && a->modifier == modifier && same_route(&a->route, route))
                        return a;
        }
        return NULL;
}

/* Out of memory, it drops the answer, which then counts as not read. */
static void keep_answer(struct gate *g, const struct answer *answer)
{
        struct answer *a = find_answer(g, &answer->route, answer->attribute, answer->modifier);
        const uint32_t i = (uint32_t) g->n_answers;

        if (!a) {
                if (VECTOR_GROW(NULL, g->answers, g->n_answers, g->n_allocated) < 0 ||
                    hash_index_reserve(&g->by_question, i + 1) < 0 || hash_index_reserve(&g->by_route, i + 1) < 0)
                        return;
                hash_index_add(&g->by_question, i, hash_of(&answer->route, answer->attribute, answer->modifier));
                hash_index_add(&g->by_route, i, hash_of(&answer->route, 0, 0));
                a = &g->answers[g->n_answers++];
        }
        *a = *answer;
}

void gate_open(struct gate *g, struct knowledge *k, const struct policy *policy)
{
        const size_t n = g->n_answers;

        g->knowledge = k;
        g->policy = policy;
        hash_index_done(&g->by_question);
        hash_index_done(&g->by_route);
        g->n_answers = 0;
        for (size_t i = 0; i < n; i++) {
                struct answer a = g->answers[i];

                a.in_doubt = a.is_old = true;
                if (a.attribute == SMP_ATTR_NODE_INFO)
                        keep_answer(g, &a);
        }
}

void gate_close(struct gate *g)
{
        g->knowledge = NULL;
        g->policy = NULL;
}

/* --- which port is at an address ----------------------------------------------------------------------------------------- */

/* The record of port `number` of a switch, or of the port that answered. KNOWLEDGE_NONE: no SMA identified itself. */
static uint32_t find_record(const struct gate *g, const struct mad_route *route, uint32_t number)
{
        const struct answer *a = find_answer(g, route, SMP_ATTR_NODE_INFO, 0);
        struct knowledge_name name;
        struct node_info info;

        if (!a)
                return KNOWLEDGE_NONE;
        node_info_decode(a->data, &info);
        name = (struct knowledge_name) { .node = info.node_guid, .kind = KNOWLEDGE_ENDPORT };
        if (info.type != NODE_SWITCH)
                name.number = info.local_port;
        else if (number > 0 && number <= info.num_ports)
                name = (struct knowledge_name) { info.node_guid, (uint8_t) number, KNOWLEDGE_LEAF };
        else if (number > 0)
                return KNOWLEDGE_NONE;
        return knowledge_find(g->knowledge, name);
}

/* --- blocks ---------------------------------------------------------------------------------------------------------------- */

static size_t entries_of(const struct gate *g, const struct block_set *b)
{
        return p_key_block_size(knowledge_get(g->knowledge, b->record)->capacity, b->block);
}

static bool judge_key(struct gate *g, const struct block_set *b, struct p_key key)
{
        uint16_t base = p_key_base(key);
        enum rule_verdict verdict;

        if (base == 0)
                return true;
        if (!policy_owns(g->policy, base))
                return refuse(g, "P_Key base 0x%04x is not within `owns`", base);
        if (knowledge_exceeds_policy(g->knowledge, b->record, b->block, b->after, base))
                return refuse(g, "P_Key base 0x%04x: more than the policy gives this port", base);
        verdict = knowledge_judge_block(g->knowledge, b->record, b->block, b->after, base);
        return verdict == RULE_ADMITS || refuse(g, "P_Key base 0x%04x: ports that %s", base, verdict == RULE_GAIN ?
                                                "must not communicate could" : "may communicate could be cut off");
}

static bool judge_entries(struct gate *g, const struct block_set *b)
{
        for (size_t i = 0; i < entries_of(g, b); i++)
                if (b->before[i].v != b->after[i].v && (!judge_key(g, b, b->before[i]) || !judge_key(g, b, b->after[i])))
                        return false;
        return true;
}

static bool admit_block(struct gate *g, const struct mad_request *set)
{
        const struct answer *read = find_answer(g, &set->route, SMP_ATTR_P_KEY_TABLE, set->modifier);
        struct block_set b = { .record = find_record(g, &set->route, set->modifier >> 16), .block = (uint16_t) set->modifier };

        if (b.record == KNOWLEDGE_NONE)
                return refuse(g, "no device at this address identified itself as a port of this fabric");
        if (!read || !knowledge_get(g->knowledge, b.record)->entries)
                return refuse(g, "block %u was not read before", b.block);
        if (entries_of(g, &b) == 0)
                return refuse(g, "block %u is past the end of the table", b.block);
        p_key_block_decode(read->data, b.before);
        p_key_block_decode(set->data, b.after);
        if (knowledge_get(g->knowledge, b.record)->vouched)
                return refuse(g, "an admin vouched that this table is empty, and it was not read since");
        if (knowledge_get(g->knowledge, b.record)->is_unfollowed)
                return refuse(g, "another pkeyd may have written this table since it was read");
        if (!knowledge_block_is(g->knowledge, b.record, b.block, b.before)) /* it was read before the SMA identified itself */
                return refuse(g, "block %u was read with entries other than those known", b.block);
        if (!judge_entries(g, &b))
                return false;
        return knowledge_send_block(g->knowledge, b.record, b.block, b.after) ||
               refuse(g, "block %u was not stored with these entries before its write", b.block);
}

/* --- filters -------------------------------------------------------------------------------------------------------------- */

/* True if the Set is what was read, with other filter bits and no other change. */
static bool changes_filter_only(const struct answer *read, const struct mad_request *set, const struct port_info *info)
{
        uint8_t expected[SMP_DATA_SIZE];

        memcpy(expected, read->data, sizeof(expected));
        port_info_set_enforcement(expected, info->enforce_inbound, info->enforce_outbound);
        return memcmp(expected, set->data, sizeof(expected)) == 0;
}

static bool admit_filter(struct gate *g, const struct mad_request *set)
{
        const struct answer *read = find_answer(g, &set->route, SMP_ATTR_PORT_INFO, set->modifier);
        uint32_t record = find_record(g, &set->route, set->modifier);
        struct port_info info;
        uint16_t base;

        if (record == KNOWLEDGE_NONE || knowledge_get(g->knowledge, record)->name.kind != KNOWLEDGE_LEAF)
                return refuse(g, "PortInfo of a port that is not known as the leaf port of a host");
        port_info_decode(set->data, &info);
        if (!read || !changes_filter_only(read, set, &info))
                return refuse(g, "PortInfo with more than its filter bits changed, or not read before");
        if (knowledge_judge_filter(g->knowledge, record, info.enforce_inbound, info.enforce_outbound, &base) != RULE_ADMITS)
                return refuse(g, "filter %s/%s: in base 0x%04x ports that must not communicate could, or ports that may could be "
                              "cut off", info.enforce_inbound ? "in" : "-", info.enforce_outbound ? "out" : "-", base);
        knowledge_doubt_filter(g->knowledge, record);
        return true;
}

/* --- the gate --------------------------------------------------------------------------------------------------------------- */

static bool admit_set(struct gate *g, const struct mad_request *set)
{
        const struct answer *identity = find_answer(g, &set->route, SMP_ATTR_NODE_INFO, 0);

        if (!g->knowledge)
                return refuse(g, "no write is expected now");
        if (identity && identity->is_old)
                return refuse(g, "no device at this address identified itself since the gate was opened");
        if (identity && identity->in_doubt)
                return false;
        if (set->method == MAD_SET && set->attribute == SMP_ATTR_P_KEY_TABLE)
                return admit_block(g, set);
        if (set->method == MAD_SET && set->attribute == SMP_ATTR_PORT_INFO)
                return admit_filter(g, set);
        return refuse(g, "method 0x%02x of attribute 0x%04x", set->method, set->attribute);
}

/* If the lock stops a Set, the knowledge has it as sent already, which only widens the bounds. */
bool gate_admit(struct gate *g, const struct mad_frame *frame)
{
        struct mad_request set;

        mad_frame_decode(frame, &set);
        if (set.mgmt_class != MAD_CLASS_SMP || set.method == MAD_GET)
                return true;
        if (!admit_set(g, &set))
                return false;
        if (!g->holds_lock || g->holds_lock(g->lock_userdata))
                return true;
        g->n_late++;
        return false;
}

/* Passes an answer about a table, or about the filter bits of a switch port, to the knowledge. Returns false if it is news. */
static bool weigh_answer(struct gate *g, const struct answer *a, enum knowledge_trust trust)
{
        const bool is_table = a->attribute == SMP_ATTR_P_KEY_TABLE;
        const uint32_t record = find_record(g, &a->route, is_table ? a->modifier >> 16 : a->modifier);
        const struct knowledge_record *r = record == KNOWLEDGE_NONE ? NULL : knowledge_get(g->knowledge, record);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        struct port_info info;

        if (r && is_table && r->entries) {
                p_key_block_decode(a->data, entries);
                return knowledge_weigh_block(g->knowledge, record, (uint16_t) a->modifier, entries, trust);
        }
        if (r && a->attribute == SMP_ATTR_PORT_INFO && r->name.kind == KNOWLEDGE_LEAF) {
                port_info_decode(a->data, &info);
                return knowledge_weigh_filter(g->knowledge, record, info.enforce_inbound, info.enforce_outbound, trust);
        }
        return true;
}

/* The SMA at this route has identified itself. If it is another SMA, the origin of the earlier answers is unknown. */
static void settle_answers(struct gate *g, const struct mad_route *route, bool is_same)
{
        uint32_t i = hash_index_first(&g->by_route, hash_of(route, 0, 0));

        for (; i != HASH_INDEX_NONE; i = hash_index_next(&g->by_route, i)) {
                struct answer *a = &g->answers[i];

                if (a->attribute == SMP_ATTR_NODE_INFO || !same_route(&a->route, route))
                        continue;
                if (!is_same)
                        a->attribute = 0; /* matches no question */
                else if (a->in_doubt)
                        (void) weigh_answer(g, a, KNOWLEDGE_NAMED);
                a->in_doubt = false;
        }
}

void gate_see(struct gate *g, const struct mad_result *result)
{
        struct answer answer = { .route = result->route, .attribute = result->attribute, .modifier = result->modifier };
        struct answer *identity = find_answer(g, &result->route, SMP_ATTR_NODE_INFO, 0);

        if (!g->knowledge || result->mgmt_class != MAD_CLASS_SMP)
                return;
        if (identity && !mad_result_is_prompt(result))
                identity->in_doubt = true;
        if (result->outcome != MAD_ANSWERED)
                return;
        memcpy(answer.data, result->data, SMP_DATA_SIZE);
        if (result->attribute == SMP_ATTR_NODE_INFO) {
                bool is_same = !identity || memcmp(identity->data, answer.data, SMP_DATA_SIZE) == 0;
                bool has_doubted = identity && identity->has_doubted;

                keep_answer(g, &answer);
                if (has_doubted || !is_same)
                        settle_answers(g, &result->route, is_same);
                return;
        }
        answer.in_doubt = identity && identity->in_doubt;
        answer.in_doubt |= !weigh_answer(g, &answer, answer.in_doubt ? KNOWLEDGE_DOUBTED : KNOWLEDGE_EXPECTED);
        if (identity)
                identity->in_doubt = identity->has_doubted = answer.in_doubt;
        keep_answer(g, &answer);
}
