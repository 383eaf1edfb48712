/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "apply/apply_internal.h"

void apply_take_block(struct apply *ap, const struct plan_write *w, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                      const struct p_key *set)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];
        struct observed_table *t = apply_table_of(ap, w);
        struct p_key known[P_KEY_BLOCK_ENTRIES];

        observed_table_get_block(t, w->block, known);
        for (uint16_t i = 0; ap->memory && i < p_key_block_size(t->capacity, w->block); i++)
                if (known[i].v != entries[i].v)
                        /* without memory a hint is lost, not correctness */
                        (void) index_memory_note(ap->memory, subnet_port_node(ap->plan->subnet, p)->guid, p->number,
                                                 (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i), known[i], entries[i],
                                                 !set || set[i].v != entries[i].v);
        observed_table_set_block(t, w->block, entries);
}

/* Entries past the end of the table are ignored: some SMAs return what they were sent, others zeros. */
bool apply_blocks_equal(const struct apply *ap, const struct plan_write *w, const struct p_key *x, const struct p_key *y)
{
        return memcmp(x, y, p_key_block_size(apply_table_of(ap, w)->capacity, w->block) * sizeof(*x)) == 0;
}

bool apply_has_bits(const struct port_info *pi, bool inbound, bool outbound)
{
        return pi->enforce_inbound == inbound && pi->enforce_outbound == outbound;
}

void apply_take_enforcement(struct apply *ap, const struct plan_write *w, const uint8_t data[SMP_DATA_SIZE], struct port_info *ret)
{
        port_info_decode(data, ret);
        apply_table_of(ap, w)->enforce_inbound = ret->enforce_inbound;
        apply_table_of(ap, w)->enforce_outbound = ret->enforce_outbound;
        apply_table_of(ap, w)->enforcement_doubted = false;
}

void apply_mark_unread(struct observed_table *t, const struct mad_result *result)
{
        t->source = TABLE_ASSUMED;
        t->failure = result->outcome;
        t->mad_status = result->mad_status;
}

void apply_doubt_silent_table(struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        if (w->kind == WRITE_BLOCK && result->outcome == MAD_TIMED_OUT)
                knowledge_doubt(ap->options.knowledge, apply_record_of(ap, w));
}

enum sma_state *apply_sma_of(const struct apply *ap, const struct plan_write *w)
{
        return &ap->sma_state[ap->plan->subnet->ports[w->port].destination];
}

bool apply_check_sma(struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        struct node_info info;

        node_info_decode(result->data, &info);
        if (subnet_port_has_sma(ap->plan->subnet, &ap->plan->subnet->ports[w->port], &info))
                return true;
        ap->stale = true;
        return false;
}

bool apply_is_news(const struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        const struct observed_table *t = apply_table_of(ap, w);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        uint32_t record = apply_record_of(ap, w);
        struct port_info pi;

        if (result->outcome != MAD_ANSWERED)
                return false;
        if (result->attribute == SMP_ATTR_P_KEY_TABLE) {
                p_key_block_decode(result->data, entries);
                return record != KNOWLEDGE_NONE && knowledge_get(ap->options.knowledge, record)->entries &&
                       !knowledge_block_may_be(ap->options.knowledge, record, w->block, entries);
        }
        port_info_decode(result->data, &pi);
        return result->attribute == SMP_ATTR_PORT_INFO && w->kind == WRITE_ENFORCEMENT && !t->enforcement_doubted &&
               !apply_has_bits(&pi, t->enforce_inbound, t->enforce_outbound) &&
               !apply_has_bits(&pi, w->after_inbound, w->after_outbound);
}

void apply_doubt_sma(const struct apply *ap, const struct plan_write *w, const struct mad_result *result, bool news)
{
        if (*apply_sma_of(ap, w) == SMA_EXPECTED && (!mad_result_is_prompt(result) || news))
                *apply_sma_of(ap, w) = SMA_UNKNOWN;
}

/* If the answer to a Set is lost, only the next survey reads the table, and it compares with nothing. So an index that is about to
 * be freed is noted as freed now. If it is not freed after all, it is in use, which takes precedence. */
void apply_note_freed(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];

        for (uint16_t i = 0; ap->memory && i < P_KEY_BLOCK_ENTRIES; i++)
                if (!p_key_is_used(t->after[i]))
                        (void) index_memory_note(ap->memory, subnet_port_node(ap->plan->subnet, p)->guid, p->number,
                                                 (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i), t->before[i], t->after[i], false);
}

/* The Set may have been carried out: the indexes that it was to use may have been used, whatever the next read shows. */
void apply_note_unanswered(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];

        for (uint16_t i = 0; ap->memory && w->kind == WRITE_BLOCK && i < P_KEY_BLOCK_ENTRIES; i++)
                if (!p_key_is_used(t->before[i]) && p_key_is_used(t->after[i]))
                        (void) index_memory_note_open(ap->memory, subnet_port_node(ap->plan->subnet, p)->guid, p->number,
                                                      (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i), t->after[i]);
}

enum apply_reason apply_reason_of(enum mad_outcome outcome)
{
        static const enum apply_reason reasons[] = {
                [MAD_ANSWERED] = APPLY_OK, [MAD_TIMED_OUT] = APPLY_TIMEOUT, [MAD_REFUSED] = APPLY_STATUS, [MAD_BUSY] = APPLY_BUSY,
                [MAD_UNSENT] = APPLY_UNSENT,
        };

        return reasons[outcome];
}

void apply_make_read(struct apply *ap, const struct plan_write *w, struct mad_request *ret)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];
        uint8_t switch_port = p->role == PORT_SWITCH_EXTERNAL ? p->number : 0;

        *ret = (struct mad_request) {
                .route = p->route, .destination = p->destination, .key = m_keys_get(ap->options.m_keys, p->guid), .method = MAD_GET,
                .retries = ap->options.retries,
        };
        if (w->kind == WRITE_BLOCK) {
                ret->attribute = SMP_ATTR_P_KEY_TABLE;
                ret->modifier = p_key_table_modifier(switch_port, w->block);
        } else {
                ret->attribute = SMP_ATTR_PORT_INFO;
                ret->modifier = p->number;
        }
}

void apply_make_identify(struct mad_request *ret)
{
        ret->attribute = SMP_ATTR_NODE_INFO;
        ret->modifier = 0;
}
