/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/probe.h"

#include <errno.h>
#include <string.h>

#include "ib/sa.h"

#define MAX_TIMEOUTS_IN_A_ROW 2
#define SA_RETRIES 2 /* an SA that has a key of its own passes over another one in silence */

enum question {
        ASK_PORT_INFO,
        ASK_SM_INFO,
        ASK_TABLE,
        ASK_SA,
};

/* With one SMA, or with the SA; those that may ask stand in a ring, as in the survey. */
struct conversation {
        uint32_t first, end; /* list[first..end): ports that are not finished; of the SA: keys */
        enum question question;
        uint16_t block;   /* of ASK_TABLE */
        uint8_t timeouts; /* ports in a row */
        bool waiting;     /* for an answer */
};

struct probe {
        const struct subnet *subnet;
        struct probe_options options;
        struct probe_result *result;
        uint32_t *list; /* ports, ascending */
        struct conversation *conversations;
        uint32_t n_conversations; /* the last one is that with the SA */
        uint32_t *ring, ring_first, ring_n;
        uint32_t *conversation_of; /* per port of the subnet; SUBNET_NONE: not asked */
        uint32_t n_open;
        struct lid sa;
        uint8_t sa_sl;
        uint64_t n_done, n_all;
};

static uint16_t blocks_of(const struct probe_port *p)
{
        return (uint16_t) ((p->capacity + P_KEY_BLOCK_ENTRIES - 1) / P_KEY_BLOCK_ENTRIES);
}

static void ring_push(struct probe *p, uint32_t conversation)
{
        p->ring[(p->ring_first + p->ring_n) % p->n_conversations] = conversation;
        p->ring_n++;
}

static uint32_t ring_pop(struct probe *p)
{
        uint32_t c = p->ring[p->ring_first];

        p->ring_first = (p->ring_first + 1) % p->n_conversations;
        p->ring_n--;
        return c;
}

/* --- what is to be asked ----------------------------------------------------------------------------------------- */

static bool has_unread_table(const struct subnet *s, const struct subnet_port *port)
{
        return port->role == PORT_SWITCH_EXTERNAL && !subnet_port_can_enforce(s, port) &&
               subnet_port_capacity(s, port) > 0;
}

static int take_port(struct arena *a, struct probe *p, uint32_t i, uint32_t *n)
{
        const struct subnet_port *port = &p->subnet->ports[i];
        struct probe_port *ret = &p->result->ports[i];

        p->conversation_of[i] = SUBNET_NONE;
        if (port->role == PORT_ENDPORT) {
                p->list[(*n)++] = i;
                p->n_all++;
                return 0;
        }
        if (!has_unread_table(p->subnet, port))
                return 0;
        ret->capacity = subnet_port_capacity(p->subnet, port);
        ret->entries = arena_new_array(a, struct p_key, ret->capacity);
        if (!ret->entries)
                return -ENOMEM;
        p->list[(*n)++] = i;
        p->n_all += blocks_of(ret);
        return 0;
}

static enum question first_question(const struct probe *p, uint32_t port)
{
        return p->subnet->ports[port].role == PORT_ENDPORT ? ASK_PORT_INFO : ASK_TABLE;
}

/* Ports of one SMA are neighbours in the order of ports. */
static void open_conversations(struct probe *p, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                const struct subnet_port *port = &p->subnet->ports[p->list[i]];

                if (i == 0 || p->subnet->ports[p->list[i - 1]].destination != port->destination)
                        p->conversations[p->n_conversations++] =
                                        (struct conversation){.first = i, .question = first_question(p, p->list[i])};
                p->conversations[p->n_conversations - 1].end = i + 1;
                p->conversation_of[p->list[i]] = p->n_conversations - 1;
        }
        p->conversations[p->n_conversations++] = (struct conversation){.end = PROBE_N_SA_KEYS, .question = ASK_SA};
        for (uint32_t c = 0; c + 1 < p->n_conversations; c++)
                ring_push(p, c);
        p->n_open = p->n_conversations - 1;
}

int probe_new(struct arena *a, const struct subnet *subnet, const struct probe_options *options, struct probe **ret,
              struct probe_result **ret_result)
{
        struct probe *p = arena_new_object(a, struct probe);
        uint32_t n = 0;

        if (!p)
                return -ENOMEM;
        p->subnet = subnet;
        p->options = *options;
        p->result = arena_new_object(a, struct probe_result);
        p->list = arena_new_array(a, uint32_t, subnet->n_ports);
        p->conversations = arena_new_array(a, struct conversation, (size_t) subnet->n_ports + 1);
        p->ring = arena_new_array(a, uint32_t, (size_t) subnet->n_ports + 1);
        p->conversation_of = arena_new_array(a, uint32_t, subnet->n_ports);
        if (!p->result || !p->list || !p->conversations || !p->ring || !p->conversation_of)
                return -ENOMEM;
        p->result->ports = arena_new_array(a, struct probe_port, subnet->n_ports);
        if (!p->result->ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                if (take_port(a, p, i, &n) < 0)
                        return -ENOMEM;
        open_conversations(p, n);
        *ret = p;
        *ret_result = p->result;
        return 0;
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static uint64_t make_cookie(const struct conversation *c, uint32_t subject)
{
        return (uint64_t) c->question << 56 | (uint64_t) subject << 16 | c->block;
}

/* The port that a conversation is about, or the key with which the SA is asked. */
static uint32_t subject_of(const struct probe *p, const struct conversation *c)
{
        return c->question == ASK_SA ? c->first : p->list[c->first];
}

static void make_smp(const struct probe *p, const struct conversation *c, uint32_t i, struct mad_request *ret)
{
        const struct subnet_port *port = &p->subnet->ports[i];

        *ret = (struct mad_request){
                        .route = port->route,
                        .destination = port->destination,
                        .method = MAD_GET,
                        .key = m_keys_get(p->options.m_keys, port->guid),
        };
        if (c->question == ASK_TABLE) {
                ret->attribute = SMP_ATTR_P_KEY_TABLE;
                ret->modifier = p_key_table_modifier(port->number, c->block);
        } else if (c->question == ASK_SM_INFO) {
                ret->attribute = SMP_ATTR_SM_INFO;
        } else {
                ret->attribute = SMP_ATTR_PORT_INFO;
                ret->modifier = port->number;
        }
}

/* The first block of this host's own table: one record, so that no answer needs more than a MAD. */
static void make_sa_request(const struct probe *p, uint32_t key, struct mad_request *ret)
{
        const struct p_key_record which = {.lid = p->subnet->ports[p->subnet->self].lid};

        p_key_record_request(&which, p->sa, p->sa_sl, key == PROBE_SA_KEY_DEFAULT ? 1 : 0, ret);
}

static bool probe_next(void *state, usec_t now, struct mad_request *ret)
{
        struct probe *p = state;
        struct conversation *c;
        uint32_t subject;

        (void) now;
        if (p->ring_n == 0)
                return false;
        c = &p->conversations[ring_pop(p)];
        c->waiting = true;
        subject = subject_of(p, c);
        if (c->question == ASK_SA)
                make_sa_request(p, subject, ret);
        else
                make_smp(p, c, subject, ret);
        ret->cookie = make_cookie(c, subject);
        ret->retries = c->question == ASK_SA ? MIN(p->options.retries, SA_RETRIES) : p->options.retries;
        return true;
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void open_sa(struct probe *p, const struct probe_port *self)
{
        p->sa = self->sm_lid;
        p->sa_sl = self->protection.sm_sl;
        if (!p->options.ask_sa || p->sa.v == 0)
                return;
        p->n_all += PROBE_N_SA_KEYS;
        p->n_open++;
        ring_push(p, p->n_conversations - 1);
}

/* True: this port has to be asked another thing. */
static bool take_port_info(struct probe *p, struct conversation *c, uint32_t i, const struct mad_result *result)
{
        struct probe_port *port = &p->result->ports[i];
        struct port_info info;

        port_info_decode(result->data, &info);
        port_protection_decode(result->data, &port->protection);
        port->sm_lid = info.sm_lid;
        if (i == p->subnet->self)
                open_sa(p, port);
        if (!port->protection.is_sm)
                return false;
        c->question = ASK_SM_INFO;
        p->n_all++;
        return true;
}

static bool take_block(struct probe *p, struct conversation *c, uint32_t i, const struct mad_result *result)
{
        struct probe_port *port = &p->result->ports[i];
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        size_t first = (size_t) c->block * P_KEY_BLOCK_ENTRIES;

        p_key_block_decode(result->data, entries);
        memcpy(port->entries + first, entries, MIN(ELEMENTS(entries), port->capacity - first) * sizeof(*entries));
        c->block++;
        return c->block < blocks_of(port);
}

static struct probe_answer *answer_of(struct probe *p, const struct conversation *c)
{
        uint32_t subject = subject_of(p, c);

        switch (c->question) {
        case ASK_PORT_INFO:
                return &p->result->ports[subject].port_info;
        case ASK_SM_INFO:
                return &p->result->ports[subject].sm_info;
        case ASK_TABLE:
                return &p->result->ports[subject].table;
        case ASK_SA:
                return &p->result->sa[subject];
        }
        return NULL;
}

static bool take_answer(struct probe *p, struct conversation *c, const struct mad_result *result)
{
        uint32_t subject = subject_of(p, c);

        c->timeouts = 0;
        switch (c->question) {
        case ASK_PORT_INFO:
                return take_port_info(p, c, subject, result);
        case ASK_SM_INFO:
                sm_info_decode(result->data, &p->result->ports[subject].sm);
                return false;
        case ASK_TABLE:
                return take_block(p, c, subject, result);
        case ASK_SA:
                return false;
        }
        return false;
}

static void next_subject(struct probe *p, struct conversation *c)
{
        c->first++;
        c->block = 0;
        if (c->question != ASK_SA && c->first < c->end)
                c->question = first_question(p, p->list[c->first]);
}

/* Nothing of a table that was not read whole; and no more patience with an SMA than two ports' worth. */
static void take_failure(struct probe *p, struct conversation *c, const struct mad_result *result)
{
        if (c->question == ASK_TABLE)
                p->result->ports[subject_of(p, c)].entries = NULL;
        if (c->question == ASK_SA || result->outcome != MAD_TIMED_OUT)
                return;
        c->timeouts++;
        while (c->timeouts >= MAX_TIMEOUTS_IN_A_ROW && c->first + 1 < c->end) {
                next_subject(p, c);
                *answer_of(p, c) = (struct probe_answer){.asked = true, .outcome = MAD_TIMED_OUT};
                p->result->ports[subject_of(p, c)].entries = NULL;
                p->n_done++;
        }
}

/* The conversation that waits for this answer, or NULL. */
static struct conversation *find_conversation(struct probe *p, uint64_t cookie)
{
        uint32_t subject = (uint32_t) (cookie >> 16), i = SUBNET_NONE;
        struct conversation *c;

        if (cookie >> 56 == ASK_SA)
                i = p->n_conversations - 1;
        else if (subject < p->subnet->n_ports)
                i = p->conversation_of[subject];
        if (i == SUBNET_NONE)
                return NULL;
        c = &p->conversations[i];
        return c->waiting && cookie == make_cookie(c, subject_of(p, c)) ? c : NULL;
}

static void probe_take(void *state, usec_t now, const struct mad_result *result)
{
        struct probe *p = state;
        struct conversation *c = find_conversation(p, result->cookie);
        bool more = false;

        (void) now;
        if (!c)
                return;
        c->waiting = false;
        p->n_done++;
        *answer_of(p, c) = (struct probe_answer){true, result->outcome, result->mad_status};
        if (result->outcome == MAD_ANSWERED)
                more = take_answer(p, c, result);
        else
                take_failure(p, c, result);
        if (!more)
                next_subject(p, c);
        if (c->first < c->end)
                ring_push(p, (uint32_t) (c - p->conversations));
        else
                p->n_open--;
}

static bool probe_done(const void *state)
{
        return ((const struct probe *) state)->n_open == 0;
}

static void probe_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct probe *p = state;

        *ret_done = p->n_done;
        *ret_total = p->n_all;
}

struct mad_stage probe_stage(struct probe *p)
{
        return (struct mad_stage){
                        .state = p,
                        .next = probe_next,
                        .result = probe_take,
                        .done = probe_done,
                        .progress = probe_progress,
        };
}
