/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gate/gate.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "ib/smp.h"
#include "util/hash_index.h"
#include "util/vector.h"

/* What an SMA answered last to a question, since the gate was opened. */
struct answer {
        struct mad_route route;
        uint16_t attribute;
        uint32_t modifier;
        bool in_doubt; /* of NodeInfo: that may be another one by now */
        uint8_t data[SMP_DATA_SIZE];
};

struct gate {
        struct knowledge *knowledge;   /* NULL: closed */
        const struct policy *policy;
        struct answer *answers;
        size_t n_answers, n_allocated;
        struct hash_index index;       /* of answers */
        struct mad_result *unnamed;    /* answers of which that is in doubt, in their order */
        size_t n_unnamed, n_unnamed_allocated;
        uint64_t n_refused;
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
        gate_close(g);
        free(g->answers);
        free(g->unnamed);
        free(g);
        return NULL;
}

void gate_open(struct gate *g, struct knowledge *k, const struct policy *policy)
{
        gate_close(g);
        g->knowledge = k;
        g->policy = policy;
}

void gate_close(struct gate *g)
{
        hash_index_done(&g->index);
        g->n_answers = 0;
        g->n_unnamed = 0;
        g->knowledge = NULL;
        g->policy = NULL;
}

uint64_t gate_n_refused(const struct gate *g)
{
        return g->n_refused;
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

        for (unsigned i = 0; route->lid.v == 0 && i <= route->hops && i < sizeof(route->path); i++)
                h = hash_mix(h, route->path[i]);
        return h;
}

/* The same SMA, by the same way. A frame may state any number of hops. */
static bool same_route(const struct mad_route *x, const struct mad_route *y)
{
        if (x->lid.v != 0 || y->lid.v != 0)
                return x->lid.v == y->lid.v;
        return x->hops == y->hops && x->hops <= MAD_MAX_HOPS && memcmp(x->path + 1, y->path + 1, x->hops) == 0;
}

static struct answer *find_answer(const struct gate *g, const struct mad_route *route, uint16_t attribute, uint32_t modifier)
{
        uint32_t i = hash_index_first(&g->index, hash_of(route, attribute, modifier));

        for (; i != HASH_INDEX_NONE; i = hash_index_next(&g->index, i)) {
                struct answer *a = &g->answers[i];

                if (a->attribute == attribute && a->modifier == modifier && same_route(&a->route, route))
                        return a;
        }
        return NULL;
}

/* Out of memory: what is not kept is not known. */
static void keep_answer(struct gate *g, const struct mad_result *result)
{
        struct answer *a = find_answer(g, &result->route, result->attribute, result->modifier);

        if (!a) {
                if (VECTOR_GROW(NULL, g->answers, g->n_answers, g->n_allocated) < 0 ||
                    hash_index_reserve(&g->index, (uint32_t) g->n_answers + 1) < 0)
                        return;
                a = &g->answers[g->n_answers];
                *a = (struct answer) { .route = result->route, .attribute = result->attribute, .modifier = result->modifier };
                hash_index_add(&g->index, (uint32_t) g->n_answers++, hash_of(&a->route, a->attribute, a->modifier));
        }
        memcpy(a->data, result->data, SMP_DATA_SIZE);
        a->in_doubt = false;
}

/* --- who is at an address ------------------------------------------------------------------------------------------------ */

/* The record of port `number` of a switch, or of the port that answered. KNOWLEDGE_NONE: nobody said who that is. */
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

static bool is_ours(const struct gate *g, struct p_key key)
{
        return !p_key_is_used(key) || policy_owns(g->policy, p_key_base(key));
}

static size_t entries_of(const struct gate *g, const struct block_set *b)
{
        size_t first = (size_t) b->block * P_KEY_BLOCK_ENTRIES, capacity = knowledge_get(g->knowledge, b->record)->capacity;

        return first < capacity ? MIN((size_t) P_KEY_BLOCK_ENTRIES, capacity - first) : 0;
}

static bool judge_base(struct gate *g, const struct block_set *b, uint16_t base)
{
        const char *const why[] = {
                [RULE_GAIN] = "it could let ports talk that may not", [RULE_LOSS] = "it could cut ports off that may talk",
        };
        enum rule_verdict verdict;

        if (knowledge_exceeds_policy(g->knowledge, b->record, b->block, b->after, base))
                return refuse(g, "P_Key base 0x%04x: more than the policy gives this port", base);
        verdict = knowledge_judge_block(g->knowledge, b->record, b->block, b->after, base);
        return verdict == RULE_ADMITS || refuse(g, "P_Key base 0x%04x: %s", base, why[verdict]);
}

static bool judge_key(struct gate *g, const struct block_set *b, struct p_key key)
{
        uint16_t base = p_key_base(key);

        return base == 0 || judge_base(g, b, base);
}

static bool judge_entries(struct gate *g, const struct block_set *b)
{
        size_t n = entries_of(g, b);

        for (size_t i = 0; i < n; i++) {
                if (b->before[i].v == b->after[i].v)
                        continue;
                if (!is_ours(g, b->before[i]) || !is_ours(g, b->after[i]))
                        return refuse(g, "entry %zu: 0x%04x to 0x%04x is not within `owns`", i, b->before[i].v, b->after[i].v);
                if (!judge_key(g, b, b->before[i]) || !judge_key(g, b, b->after[i]))
                        return false;
        }
        return true;
}

static bool admit_block(struct gate *g, const struct mad_request *set)
{
        const struct answer *read = find_answer(g, &set->route, SMP_ATTR_P_KEY_TABLE, set->modifier);
        struct block_set b = {
                .record = find_record(g, &set->route, set->modifier >> 16), .block = (uint16_t) set->modifier,
        };

        if (b.record == KNOWLEDGE_NONE)
                return refuse(g, "nobody at this address said that it is a port of this fabric");
        if (!read || !knowledge_get(g->knowledge, b.record)->entries)
                return refuse(g, "block %u was not read before", b.block);
        if (entries_of(g, &b) == 0)
                return refuse(g, "block %u is behind the end of the table", b.block);
        p_key_block_decode(read->data, b.before);
        p_key_block_decode(set->data, b.after);
        if (knowledge_get(g->knowledge, b.record)->vouched)
                return refuse(g, "somebody vouched that this table holds nothing, and it was not read since");
        if (!knowledge_block_is(g->knowledge, b.record, b.block, b.before)) /* it was read before it was known of whom */
                return refuse(g, "what was read of block %u is not what is known of it", b.block);
        if (!judge_entries(g, &b))
                return false;
        return knowledge_send_block(g->knowledge, b.record, b.block, b.after) ||
               refuse(g, "block %u is to be written as it was not stored before", b.block);
}

/* --- filters -------------------------------------------------------------------------------------------------------------- */

/* Is it what was read, with other filter bits and nothing else? */
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
                return refuse(g, "PortInfo of what is not known as the leaf port of a host");
        port_info_decode(set->data, &info);
        if (!read || !changes_filter_only(read, set, &info))
                return refuse(g, "PortInfo with more than its filter bits changed, or not read before");
        if (knowledge_judge_filter(g->knowledge, record, info.enforce_inbound, info.enforce_outbound, &base) != RULE_ADMITS)
                return refuse(g, "filter %s/%s: ports would talk that may not, or be cut off, in base 0x%04x",
                              info.enforce_inbound ? "in" : "-", info.enforce_outbound ? "out" : "-", base);
        knowledge_send_filter(g->knowledge, record);
        return true;
}

/* --- the gate --------------------------------------------------------------------------------------------------------------- */

bool gate_admit(struct gate *g, const struct mad_frame *frame)
{
        const struct answer *who;
        struct mad_request set;

        mad_frame_decode(frame, &set);
        if (set.mgmt_class != MAD_CLASS_SMP || set.method == MAD_GET)
                return true;
        if (!g->knowledge)
                return refuse(g, "nothing is to be written now");
        who = find_answer(g, &set.route, SMP_ATTR_NODE_INFO, 0);
        if (who && who->in_doubt)
                return false;
        if (set.method == MAD_SET && set.attribute == SMP_ATTR_P_KEY_TABLE)
                return admit_block(g, &set);
        if (set.method == MAD_SET && set.attribute == SMP_ATTR_PORT_INFO)
                return admit_filter(g, &set);
        return refuse(g, "method 0x%02x of attribute 0x%04x", set.method, set.attribute);
}

static void see_block(struct gate *g, const struct mad_result *result)
{
        uint32_t record = find_record(g, &result->route, result->modifier >> 16);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        if (record == KNOWLEDGE_NONE || !knowledge_get(g->knowledge, record)->entries)
                return;
        p_key_block_decode(result->data, entries);
        knowledge_see_block(g->knowledge, record, (uint16_t) result->modifier, entries);
}

static void see_filter(struct gate *g, const struct mad_result *result)
{
        uint32_t record = find_record(g, &result->route, result->modifier);
        struct port_info info;

        if (record == KNOWLEDGE_NONE || knowledge_get(g->knowledge, record)->name.kind != KNOWLEDGE_LEAF)
                return;
        port_info_decode(result->data, &info);
        knowledge_see_filter(g->knowledge, record, info.enforce_inbound, info.enforce_outbound);
}

static void take_over(struct gate *g, const struct mad_result *result)
{
        keep_answer(g, result);
        if (result->attribute == SMP_ATTR_P_KEY_TABLE)
                see_block(g, result);
        else if (result->attribute == SMP_ATTR_PORT_INFO)
                see_filter(g, result);
}

/* The SMA by this route has said who it is. */
static void take_over_unnamed(struct gate *g, const struct mad_route *route)
{
        size_t n = 0;

        for (size_t i = 0; i < g->n_unnamed; i++)
                if (same_route(&g->unnamed[i].route, route))
                        take_over(g, &g->unnamed[i]);
                else
                        g->unnamed[n++] = g->unnamed[i];
        g->n_unnamed = n;
}

void gate_see(struct gate *g, const struct mad_result *result)
{
        struct answer *who = find_answer(g, &result->route, SMP_ATTR_NODE_INFO, 0);

        if (!g->knowledge || result->mgmt_class != MAD_CLASS_SMP)
                return;
        if (who && !mad_result_is_prompt(result))
                who->in_doubt = true;
        if (result->outcome != MAD_ANSWERED)
                return;
        if (result->attribute == SMP_ATTR_NODE_INFO || !who || !who->in_doubt)
                take_over(g, result);
        else if (VECTOR_GROW(NULL, g->unnamed, g->n_unnamed, g->n_unnamed_allocated) >= 0) /* else it is not known */
                g->unnamed[g->n_unnamed++] = *result;
        if (result->attribute == SMP_ATTR_NODE_INFO)
                take_over_unnamed(g, &result->route);
}
