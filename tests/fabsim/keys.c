/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random M_Keys of the ports, and right and wrong ones in pkeyd's m_key_file.
 *
 * They come from a separate generator, so that the fabric of a seed is the same as without them. Temporary changes of a port's
 * key (EXTERNAL_M_KEY) end with all other faults; wrong keys in the file stay.
 */

#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum scheme {
        KEYS_NONE,
        KEYS_ONE,  /* the same everywhere */
        KEYS_EACH, /* another for each port; a few ports share one */
};

static struct fabsim_port *sma_port(struct sim *s, unsigned endport)
{
        return fabsim_port_at(&s->f, s->endports[endport]);
}

static bool is_self_or_sm(const struct sim *s, unsigned endport)
{
        const struct fabsim_place p = s->endports[endport];

        for (unsigned i = 0; i < s->n_heads; i++)
                if (p.node == s->heads[i].place.node)
                        return true;
        return p.node == s->f.sm.node;
}

static struct fabsim_place sma_of(const struct sim *s, struct fabsim_place at)
{
        return (struct fabsim_place) { at.node, s->f.nodes[at.node].type == NODE_SWITCH ? 0 : at.port };
}

/* With different keys and no file of links, discovery reaches only ports that can be read without their key, because it does
 * not know the port behind a cable yet. So switches must be readable, as they hide the ports behind them, and so must head
 * nodes and the port of the SM, without which no policy is carried out. */
static uint8_t choose_level(struct sim *s, struct prng *r, enum scheme scheme, unsigned endport)
{
        bool must_be_seen = !s->neighbors && (s->endports[endport].port == 0 || is_self_or_sm(s, endport));

        return (uint8_t) prng_below(r, scheme == KEYS_EACH && must_be_seen ? 2 : 4);
}

static void choose_keys(struct sim *s, struct prng *r, enum scheme scheme)
{
        uint64_t shared = prng_next(r) | 1;

        for (unsigned i = 0; i < s->n_endports; i++) {
                struct sim_key *k = &s->keys[i];

                k->key = scheme == KEYS_ONE || prng_permille(r, 300) ? shared : prng_next(r) | 1;
                k->level = choose_level(s, r, scheme, i);
                k->lease = (uint16_t) (prng_permille(r, 300) ? prng_between(r, 1, 30) : 0);
        }
}

/* A port that got another key than the file knows: of a few files, not of most. */
static void choose_wrong(struct sim *s, struct prng *r)
{
        unsigned rate = prng_permille(r, 500) ? 0 : 150;

        for (unsigned i = 0; i < s->n_endports; i++) {
                s->keys[i].in_file = s->keys[i].key;
                if (!is_self_or_sm(s, i) && prng_permille(r, rate))
                        s->keys[i].in_file = prng_permille(r, 300) ? 0 : prng_next(r) | 1;
        }
}

/* The file names every port; where one key is for all, what is wrong is the port. */
static void write_file(struct sim *s, enum scheme scheme, char *ret, size_t size)
{
        size_t n = 0;

        if (scheme == KEYS_ONE) {
                (void) snprintf(ret, size, "0x%016" PRIx64 "\n", s->keys[0].key);
                for (unsigned i = 0; i < s->n_endports; i++)
                        if (s->keys[i].in_file != s->keys[i].key)
                                s->keys[i].key = ~s->keys[0].key;
                return;
        }
        for (unsigned i = 0; i < s->n_endports; i++)
                n += (size_t) snprintf(ret + n, size - n, "0x%016" PRIx64 " 0x%016" PRIx64 "\n\n", sma_port(s, i)->guid.v,
                                       s->keys[i].in_file);
}

static void write_neighbors(struct sim *s)
{
        size_t size;
        FILE *f = open_memstream(&s->neighbors, &size);

        for (unsigned n = 0; f && n < s->f.n_nodes; n++)
                for (uint8_t i = 1; i <= s->f.nodes[n].num_ports; i++) {
                        const struct fabsim_port *p = &s->f.nodes[n].ports[i];
                        struct fabsim_place here = sma_of(s, (struct fabsim_place) { n, i });
                        struct fabsim_place there = sma_of(s, (struct fabsim_place) { p->peer_node, p->peer_port });

                        if (p->is_cabled)
                                (void) fprintf(f, "0x%016" PRIx64 ":%u 0x%016" PRIx64 ":%u\n",
                                               fabsim_port_at(&s->f, here)->guid.v, i, fabsim_port_at(&s->f, there)->guid.v,
                                               p->peer_port);
                }
        if (!f || fclose(f) != 0)
                sim_fail(s, "out of memory");
}

void keys_make(struct sim *s)
{
        struct prng r = { .state = ~s->seed };
        static const enum scheme schemes[] = { KEYS_NONE, KEYS_NONE, KEYS_ONE, KEYS_EACH };
        enum scheme scheme = schemes[prng_below(&r, 4)];
        struct arena *a = arena_new();
        char text[SIM_MAX_ENDPORTS * 48];
        struct findings findings = { .arena = a };

        s->has_own_keys = scheme == KEYS_EACH;
        if (scheme == KEYS_EACH && prng_permille(&r, 500))
                write_neighbors(s);
        if (scheme != KEYS_NONE && a) {
                choose_keys(s, &r, scheme);
                choose_wrong(s, &r);
                write_file(s, scheme, text, sizeof(text));
                if (m_keys_parse("m_key", text, strlen(text), &findings, &s->m_keys) < 0)
                        sim_fail(s, "a file of M_Keys was refused: %s", findings.n ? findings.items[0].text : "no reason");
                findings_done(&findings);
        }
        arena_free(a);
        keys_restore(s);
        for (unsigned i = 0; i < s->n_endports; i++)
                s->n_wrong_keys += keys_are_wrong(s, s->endports[i]);
        sim_trace(s, "M_Keys: scheme %d%s, %u wrong", (int) scheme, s->neighbors ? " with links" : "", s->n_wrong_keys);
}

void keys_restore(struct sim *s)
{
        for (unsigned i = 0; i < s->n_endports; i++) {
                struct fabsim_port *p = sma_port(s, i);

                p->m_key = s->keys[i].key;
                p->m_key_protection = s->keys[i].level;
                p->m_key_lease = s->keys[i].lease;
                p->m_key_expires = 0;
        }
}

bool keys_are_wrong(const struct sim *s, struct fabsim_place at)
{
        struct fabsim_place sma = sma_of(s, at);
        const struct fabsim_port *p = &s->f.nodes[sma.node].ports[sma.port];

        return p->m_key && p->m_key != m_keys_get(s->m_keys, p->guid);
}

/* It answers nothing without its key, and its key is not known before it answers, unless the file of links is right about it. */
bool keys_hide(const struct sim *s, unsigned endport)
{
        const struct fabsim_place at = s->endports[endport];
        const struct fabsim_port *p = &s->f.nodes[at.node].ports[at.port];

        bool is_unknown = s->has_own_keys && (!s->neighbors || s->has_moved_cables);

        return p->m_key && p->m_key_protection > 1 && (is_unknown || keys_are_wrong(s, at));
}

static bool is_in_file(const struct sim *s, uint64_t key)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->keys[i].in_file == key ||
                    m_keys_get(s->m_keys, s->f.nodes[s->endports[i].node].ports[s->endports[i].port].guid) == key)
                        return true;
        return key == 0;
}

/* A key goes to no port but its own. Who is behind a cable is not known before NodeInfo was answered: until then it is one of
 * the keys in the file. */
void keys_check_frame(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        struct fabsim_place sma = sma_of(s, at);
        unsigned endport = world_endport_at(s, sma);
        uint64_t key = mad_get_field64((void *) frame->mad, 0, IB_MAD_MKEY_F);
        usec_t known_since = p->full ? p->census.began : p->adopted.began;

        if (mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F) == SMP_ATTR_NODE_INFO) {
                if (!is_in_file(s, key))
                        sim_fail(s, "a MAD with an M_Key that m_key_file does not have");
                return;
        }
        /* the LID was that of another port when it was discovered */
        if (!frame->directed && endport != UINT32_MAX && s->lid_moved_at[endport] >= p->adopted.began)
                return;
        /* so was the port at the end of this route when its NodeInfo was queried */
        if (frame->directed && MAX(s->cables_moved_at, endport == UINT32_MAX ? 0 : s->lid_moved_at[endport]) >= known_since)
                return;
        if (key != m_keys_get(s->m_keys, fabsim_port_at(&s->f, sma)->guid))
                sim_fail(s, "a MAD to node %u port %u with another M_Key than m_key_file has for it", sma.node, sma.port);
}
