/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "subnet/survey.h"

/* The SMA of a switch answers for dozens of ports. After so many timeouts of its ports in a row it counts as dead. */
#define MAX_TIMEOUTS_IN_A_ROW 2

/* Stands for NodeInfo in place of a block number. No table has so many blocks. */
#define NODE_INFO UINT16_MAX

/*
 * One conversation for each SMA, with one request at a time: more would only wait in the engine. The conversations that may send
 * are in a ring: next() takes the first, result() puts it back at the end. So requests spread over all SMAs, whatever the order
 * of ports.
 */
struct conversation {
        uint32_t begin, end; /* ports[begin..end) */
        uint32_t first;      /* ports[first..end) are not finished; the current one is ports[first] */
        uint16_t block;      /* the next (or outstanding) block of the current port */
        uint8_t tries;       /* for that block without an answer, in surveys that were interrupted */
        uint8_t timeouts;    /* ports in a row */
        bool waiting;        /* for an answer */
        bool must_identify;  /* what it answered counts only if it is the SMA that the snapshot has at its address */
};

struct survey {
        struct observed *observed; /* borrows */
        struct survey_options options;
        uint32_t *ports;           /* ascending, without duplicates, all with a table */
        uint32_t n_ports;
        struct conversation *conversations;
        uint32_t n_conversations;
        uint32_t *ring;            /* indexes into conversations, with room for all */
        uint32_t ring_first, ring_n;
        uint32_t *conversation_of; /* per port of the subnet; SUBNET_NONE: not surveyed */
        uint32_t n_open;           /* conversations that have not ended */
        uint64_t blocks_done, blocks_all;
        bool stale;
};

static void ring_push(struct survey *s, uint32_t conversation)
{
        s->ring[(s->ring_first + s->ring_n) % s->n_conversations] = conversation;
        s->ring_n++;
}

/* Part of a table is useless. */
static void forget_table(struct observed_table *t, enum mad_outcome failure, uint16_t mad_status)
{
        memset(t->entries, 0, t->capacity * sizeof(*t->entries));
        t->source = TABLE_UNKNOWN;
        t->failure = failure;
        t->mad_status = mad_status;
        t->is_stranger = false;
}

/* Forgets what was known of a port, and enqueues it. */
static void enqueue_port(struct survey *s, uint32_t port)
{
        struct observed_table *t = &s->observed->tables[port];

        if (!t->entries)
                return;
        forget_table(t, MAD_ANSWERED, 0);
        if (subnet_port_is_incomplete(s->observed->subnet, &s->observed->subnet->ports[port])) {
                t->failure = MAD_TIMED_OUT;
        } else if (t->capacity == 0) {
                t->failure = MAD_REFUSED;
        } else {
                s->ports[s->n_ports++] = port;
                s->blocks_all += observed_table_blocks(t);
        }
}

static int enqueue_ports(struct arena *a, struct survey *s)
{
        const struct survey_options *o = &s->options;
        uint32_t n = s->observed->subnet->n_ports;
        bool *chosen = arena_new_array(a, bool, n);

        s->ports = arena_new_array(a, uint32_t, n);
        if (!s->ports || !chosen)
                return -ENOMEM;
        for (uint32_t i = 0; o->ports && i < o->n_ports; i++)
                if (o->ports[i] < n)
                        chosen[o->ports[i]] = true;
        for (uint32_t i = 0; i < n; i++)
                if (!o->ports || chosen[i])
                        enqueue_port(s, i);
        return 0;
}

/* The ports of one SMA are next to each other. */
static int open_conversations(struct arena *a, struct survey *s)
{
        const struct subnet *subnet = s->observed->subnet;

        s->conversations = arena_new_array(a, struct conversation, s->n_ports);
        s->ring = arena_new_array(a, uint32_t, s->n_ports);
        s->conversation_of = arena_new_array(a, uint32_t, subnet->n_ports);
        if (!s->conversations || !s->ring || !s->conversation_of)
                return -ENOMEM;
        memset(s->conversation_of, 0xff, subnet->n_ports * sizeof(*s->conversation_of));
        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct subnet_port *p = &subnet->ports[s->ports[i]];

                if (i == 0 || subnet->ports[s->ports[i - 1]].destination != p->destination)
                        s->conversations[s->n_conversations++] = (struct conversation) { .begin = i, .first = i };
                s->conversations[s->n_conversations - 1].end = i + 1;
                s->conversation_of[s->ports[i]] = s->n_conversations - 1;
        }
        for (uint32_t c = 0; c < s->n_conversations; c++)
                ring_push(s, c);
        s->n_open = s->n_conversations;
        return 0;
}

int survey_new(struct arena *a, struct observed *observed, const struct survey_options *options, struct survey **ret)
{
        struct survey *s = arena_new_object(a, struct survey);
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct survey) { .observed = observed, .options = *options };
        r = enqueue_ports(a, s) ?: open_conversations(a, s);
        if (r == 0)
                *ret = s;
        return r;
}

/* A LID stays with its port when a cable is moved; a directed route then ends at another device. */
static bool is_by_directed_route(const struct survey *s, const struct conversation *c)
{
        return mad_route_is_directed(&s->observed->subnet->ports[s->ports[c->begin]].route);
}

/* It identifies itself after its tables were read. */
static bool is_identifying(const struct conversation *c)
{
        return c->first == c->end;
}

static uint32_t port_of(const struct survey *s, const struct conversation *c)
{
        return s->ports[is_identifying(c) ? c->begin : c->first];
}

/* The cookie of the request that a conversation sends next, or waits for. */
static uint64_t cookie_of(const struct survey *s, const struct conversation *c)
{
        return (uint64_t) port_of(s, c) << 16 | (is_identifying(c) ? NODE_INFO : c->block);
}

/* Finds the same port in another survey, which may be of another snapshot. */
static uint32_t find_in(const struct survey *s, const struct subnet_port *p, const struct observed *o)
{
        return o ? subnet_find_port_of(o->subnet, subnet_port_node(s->observed->subnet, p)->guid, p->number) : SUBNET_NONE;
}

/* The number of requests that the SMA of this port did not answer, if the interrupted survey ended while reading this port. */
static uint8_t recall(const struct survey *s, const struct subnet_port *p, bool *ret_failed)
{
        const struct survey *old = s->options.interrupted;
        uint32_t port = find_in(s, p, old ? old->observed : NULL);
        uint32_t i = port == SUBNET_NONE ? SUBNET_NONE : old->conversation_of[port];
        const struct conversation *c = i == SUBNET_NONE ? NULL : &old->conversations[i];

        *ret_failed = port != SUBNET_NONE && observed_table_failed(&old->observed->tables[port]);
        return c && c->first < c->end && old->ports[c->first] == port ? c->tries : 0;
}

/* True if the last survey could not read this port. */
static bool failed_before(const struct survey *s, const struct subnet_port *p)
{
        const struct observed *o = s->options.before;
        uint32_t port = find_in(s, p, o);

        return port != SUBNET_NONE && observed_table_failed(&o->tables[port]);
}

static void set_retries(const struct survey *s, const struct subnet_port *p, struct conversation *c, struct mad_request *request)
{
        bool failed_in_interrupted;

        c->tries = MAX(c->tries, recall(s, p, &failed_in_interrupted));
        mad_stage_set_retries(request, s->options.retries, failed_before(s, p) || failed_in_interrupted, c->tries);
}

static bool survey_next(void *state, usec_t, struct mad_request *ret)
{
        struct survey *s = state;
        const struct subnet_port *p;
        struct conversation *c;

        if (s->ring_n == 0)
                return false;
        c = &s->conversations[s->ring[s->ring_first]];
        s->ring_first = (s->ring_first + 1) % s->n_conversations;
        s->ring_n--;
        c->waiting = true;
        p = &s->observed->subnet->ports[port_of(s, c)];
        *ret = (struct mad_request) {
                .route = p->route, .destination = p->destination, .cookie = cookie_of(s, c), .method = MAD_GET,
                .attribute = SMP_ATTR_NODE_INFO, .key = m_keys_get(s->options.m_keys, p->guid),
        };
        if (is_identifying(c)) { /* it answered just before */
                ret->retries = s->options.retries;
                return true;
        }
        set_retries(s, p, c, ret);
        ret->attribute = SMP_ATTR_P_KEY_TABLE;
        ret->modifier = p_key_table_modifier(p->role == PORT_SWITCH_EXTERNAL ? p->number : 0, c->block);
        return true;
}

static void next_port(struct conversation *c)
{
        c->first++;
        c->block = 0;
        c->tries = 0;
}

/* The current port of a conversation could not be read. */
static void port_failed(struct survey *s, struct conversation *c, enum mad_outcome failure, uint16_t mad_status)
{
        struct observed_table *t = &s->observed->tables[s->ports[c->first]];

        s->blocks_done += observed_table_blocks(t) - c->block;
        forget_table(t, failure, mad_status);
        next_port(c);
        c->must_identify |= failure == MAD_REFUSED && s->options.identify; /* a stranger without such a port may have refused it */
        c->timeouts = failure == MAD_TIMED_OUT ? c->timeouts + 1 : 0;
        while (c->timeouts >= MAX_TIMEOUTS_IN_A_ROW && c->first < c->end) {
                t = &s->observed->tables[s->ports[c->first]];
                s->blocks_done += observed_table_blocks(t);
                forget_table(t, MAD_TIMED_OUT, 0);
                next_port(c);
        }
}

/* If the SMA is another one, or does not identify itself, its tables are dropped. */
static void identified(struct survey *s, struct conversation *c, const struct mad_result *result)
{
        const struct subnet *subnet = s->observed->subnet;
        bool is_stranger = false;
        struct node_info info;

        c->must_identify = false;
        if (result->outcome == MAD_ANSWERED) {
                node_info_decode(result->data, &info);
                is_stranger = !subnet_port_has_sma(subnet, &subnet->ports[port_of(s, c)], &info);
                if (!is_stranger)
                        return;
        }
        s->stale |= is_stranger && (s->options.identify || !is_by_directed_route(s, c));
        for (uint32_t i = c->begin; i < c->end; i++) {
                struct observed_table *t = &s->observed->tables[s->ports[i]];

                forget_table(t, is_stranger ? MAD_REFUSED : result->outcome, is_stranger ? 0 : result->mad_status);
                t->is_stranger = is_stranger;
        }
}

/* True if the block is as it was known for certain, so that the answer contains nothing new. */
static bool is_certain(const struct survey *s, const struct conversation *c)
{
        const struct observed_table *t = s->options.certain ? &s->options.certain->tables[s->ports[c->first]] : NULL;
        struct p_key known[P_KEY_BLOCK_ENTRIES], now[P_KEY_BLOCK_ENTRIES];

        if (!t || t->source != TABLE_READ)
                return false;
        observed_table_get_block(t, c->block, known);
        observed_table_get_block(&s->observed->tables[s->ports[c->first]], c->block, now);
        return memcmp(known, now, sizeof(known)) == 0;
}

static void block_answered(struct survey *s, struct conversation *c, const struct mad_result *result)
{
        struct observed_table *t = &s->observed->tables[s->ports[c->first]];
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        p_key_block_decode(result->data, entries);
        observed_table_set_block(t, c->block, entries);
        c->must_identify |= s->options.identify || is_by_directed_route(s, c) || !mad_result_is_prompt(result) || !is_certain(s, c);
        s->blocks_done++;
        c->timeouts = 0;
        c->tries = 0;
        c->block++;
        if (c->block < observed_table_blocks(t))
                return;
        t->source = TABLE_READ;
        next_port(c);
}

/* The conversation that waits for this answer; NULL: none does. */
static struct conversation *find_conversation(const struct survey *s, uint64_t cookie)
{
        uint64_t port = cookie >> 16;
        uint32_t i = port < s->observed->subnet->n_ports ? s->conversation_of[port] : SUBNET_NONE;
        struct conversation *c = i == SUBNET_NONE ? NULL : &s->conversations[i];

        return c && c->waiting && cookie == cookie_of(s, c) ? c : NULL;
}

static void survey_result(void *state, usec_t, const struct mad_result *result)
{
        struct survey *s = state;
        struct conversation *c = find_conversation(s, result->cookie);

        if (!c)
                return;
        c->waiting = false;
        if (is_identifying(c))
                identified(s, c, result);
        else if (result->outcome != MAD_ANSWERED)
                port_failed(s, c, result->outcome, result->mad_status);
        else
                block_answered(s, c, result);
        if (c->first < c->end || c->must_identify)
                ring_push(s, (uint32_t) (c - s->conversations));
        else
                s->n_open--;
}

/* Keeps only the number of tries without an answer. */
static void survey_take_back(void *state, usec_t, const struct mad_result *result)
{
        struct conversation *c = find_conversation(state, result->cookie);

        if (c)
                c->tries = (uint8_t) MIN(c->tries + result->timeouts, UINT8_MAX);
}

static bool survey_done(const void *state)
{
        const struct survey *s = state;

        return s->n_open == 0;
}

static void survey_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct survey *s = state;

        *ret_done = s->blocks_done;
        *ret_total = s->blocks_all;
}

struct mad_stage survey_stage(struct survey *s)
{
        return (struct mad_stage) {
                .state = s, .next = survey_next, .result = survey_result, .done = survey_done, .take_back = survey_take_back,
                .progress = survey_progress,
        };
}

bool survey_is_stale(const struct survey *s)
{
        return s->stale;
}
