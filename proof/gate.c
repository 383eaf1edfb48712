/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver for Eva: the gate with any frame, any results, and any knowledge. The gate and the decoding of frames and attributes are
 * the real ones; libibmad, the index of answers and the knowledge are stubs that return any value that the real ones may return.
 */

#include <__fc_builtin.h>
#include <endian.h>

#include "gate/gate.c"
#include "ib/mad.c"
#include "ib/smp.c"

#define N_ANSWERS 3

/* --- libibmad: fields of a MAD, each within its width; an array is copied whole ------------------------------------------ */

uint32_t mad_get_field(void *buffer, int base, enum MAD_FIELDS field)
{
        (void) base;
        (void) field;
        Frama_C_make_unknown((char *) buffer, 0);
        return Frama_C_unsigned_int_interval(0, UINT32_MAX);
}

uint64_t mad_get_field64(void *buffer, int base, enum MAD_FIELDS field)
{
        return (uint64_t) mad_get_field(buffer, base, field) << 32 | mad_get_field(buffer, base, field);
}

void mad_get_array(void *buffer, int base, enum MAD_FIELDS field, void *value)
{
        (void) base;
        //@ assert field == IB_DRSMP_PATH_F;
        memcpy(value, (uint8_t *) buffer + 128, 64);
}

void mad_set_field(void *buffer, int base, enum MAD_FIELDS field, uint32_t value)
{
        (void) base;
        (void) field;
        (void) value;
        Frama_C_make_unknown(buffer, SMP_DATA_SIZE);
}

/* --- the index of answers ----------------------------------------------------------------------------------------------- */

static struct answer answers[N_ANSWERS];
static uint32_t n_answers;

static uint32_t any_answer(void)
{
        uint32_t i = Frama_C_unsigned_int_interval(0, N_ANSWERS);

        return i < n_answers ? i : HASH_INDEX_NONE;
}

uint32_t hash_index_first(const struct hash_index *x, uint64_t hash)
{
        (void) x;
        (void) hash;
        return any_answer();
}

uint32_t hash_index_next(const struct hash_index *x, uint32_t item)
{
        (void) x;
        (void) item;
        return any_answer();
}

int hash_index_reserve(struct hash_index *x, uint32_t n)
{
        (void) x;
        (void) n;
        return Frama_C_interval(0, 1) ? 0 : -ENOMEM;
}

void hash_index_add(struct hash_index *x, uint32_t item, uint64_t hash)
{
        (void) x;
        (void) hash;
        n_answers = item + 1;
}

void hash_index_done(struct hash_index *x)
{
        *x = (struct hash_index) {};
}

int vector_reserve(struct arena *a, void *items, size_t item_size, size_t n, size_t *allocated, size_t wanted)
{
        (void) a;
        (void) items;
        (void) item_size;
        (void) n;
        return wanted <= *allocated ? 0 : -ENOMEM;
}

/* --- the knowledge and the policy --------------------------------------------------------------------------------------- */

struct knowledge {
        int unused;
};

static struct knowledge_record records[1];
static struct p_key entries[P_KEY_BLOCK_ENTRIES];

uint32_t knowledge_find(const struct knowledge *k, struct knowledge_name name)
{
        (void) k;
        (void) name;
        return Frama_C_interval(0, 1) ? 0 : KNOWLEDGE_NONE; /* one record stands for all */
}

const struct knowledge_record *knowledge_get(const struct knowledge *k, uint32_t record)
{
        (void) k;
        //@ assert record == 0;
        return &records[record];
}

bool knowledge_block_is(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key read[P_KEY_BLOCK_ENTRIES])
{
        (void) k;
        (void) block;
        //@ assert record == 0 && records[0].entries != \null && \initialized(read + (0 .. P_KEY_BLOCK_ENTRIES - 1));
        return Frama_C_interval(0, 1);
}

enum rule_verdict knowledge_judge_block(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key after[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        (void) k;
        (void) block;
        //@ assert record == 0 && \initialized(after + (0 .. P_KEY_BLOCK_ENTRIES - 1)) && 0 < base <= P_KEY_BASE_MASK;
        return (enum rule_verdict) Frama_C_interval(RULE_ADMITS, RULE_LOSS);
}

bool knowledge_exceeds_policy(const struct knowledge *k, uint32_t record, uint16_t block, const struct p_key after[P_KEY_BLOCK_ENTRIES], uint16_t base)
{
        (void) k;
        (void) block;
        //@ assert record == 0 && \initialized(after + (0 .. P_KEY_BLOCK_ENTRIES - 1)) && 0 < base <= P_KEY_BASE_MASK;
        return Frama_C_interval(0, 1);
}

enum rule_verdict knowledge_judge_filter(const struct knowledge *k, uint32_t record, bool inbound, bool outbound, uint16_t *ret_base)
{
        (void) k;
        (void) inbound;
        (void) outbound;
        //@ assert record == 0;
        *ret_base = Frama_C_unsigned_short_interval(1, P_KEY_BASE_MASK);
        return (enum rule_verdict) Frama_C_interval(RULE_ADMITS, RULE_LOSS);
}

/* The next two are called only for a table that was read. */
bool knowledge_send_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key after[P_KEY_BLOCK_ENTRIES])
{
        (void) k;
        (void) block;
        //@ assert record == 0 && records[record].entries != \null && \initialized(after + (0 .. P_KEY_BLOCK_ENTRIES - 1));
        return Frama_C_interval(0, 1);
}

bool knowledge_weigh_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key read[P_KEY_BLOCK_ENTRIES],
                           enum knowledge_trust trust)
{
        (void) k;
        (void) block;
        (void) trust;
        //@ assert record == 0 && records[record].entries != \null && \initialized(read + (0 .. P_KEY_BLOCK_ENTRIES - 1));
        return Frama_C_interval(0, 1);
}

bool knowledge_weigh_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound, enum knowledge_trust trust)
{
        (void) k;
        (void) inbound;
        (void) outbound;
        (void) trust;
        //@ assert record == 0 && records[record].name.kind == KNOWLEDGE_LEAF;
        return Frama_C_interval(0, 1);
}

void knowledge_doubt_filter(struct knowledge *k, uint32_t record)
{
        (void) k;
        //@ assert record == 0 && records[record].name.kind == KNOWLEDGE_LEAF;
}

bool policy_owns(const struct policy *policy, uint16_t base)
{
        (void) policy;
        //@ assert base <= P_KEY_BASE_MASK;
        return Frama_C_interval(0, 1);
}

/* --- the driver --------------------------------------------------------------------------------------------------------- */

static void fill_record(void)
{
        records[0].name.kind = (enum knowledge_kind) Frama_C_interval(KNOWLEDGE_ENDPORT, KNOWLEDGE_PLACE);
        records[0].capacity = Frama_C_unsigned_short_interval(0, UINT16_MAX);
        records[0].entries = Frama_C_interval(0, 1) ? entries : NULL;
}

int main(void)
{
        static struct knowledge knowledge;
        static struct gate gate = { .answers = answers, .n_allocated = N_ANSWERS };
        struct mad_frame frame = { .length = MAD_SIZE };
        struct mad_result result = { .mgmt_class = MAD_CLASS_SMP };

        fill_record();
        gate.knowledge = Frama_C_interval(0, 1) ? &knowledge : NULL;
        while (Frama_C_interval(0, 1)) {
                Frama_C_make_unknown((char *) frame.mad, sizeof(frame.mad));
                frame.lid.v = Frama_C_unsigned_short_interval(0, UINT16_MAX);
                Frama_C_make_unknown((char *) result.data, sizeof(result.data));
                Frama_C_make_unknown((char *) &result.route, sizeof(result.route));
                result.attribute = Frama_C_unsigned_short_interval(0, UINT16_MAX);
                result.modifier = Frama_C_unsigned_int_interval(0, UINT32_MAX);
                result.outcome = (enum mad_outcome) Frama_C_interval(MAD_ANSWERED, MAD_UNSENT);
                result.repeated = Frama_C_interval(0, 1);
                result.mgmt_class = (enum mad_class) Frama_C_interval(MAD_CLASS_SMP, MAD_CLASS_SA);
                if (Frama_C_interval(0, 1))
                        gate_open(&gate, &knowledge, NULL);
                gate_see(&gate, &result);
                (void) gate_admit(&gate, &frame);
        }
        return 0;
}
