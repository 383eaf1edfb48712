/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OpenSM with its partition file: a process that reads the file at random times (after a SIGHUP, after a restart, at a heavy
 * sweep of its own), and then writes the tables of all ports in any order and at any speed. It behaves like OpenSM as far as
 * the promises depend on it, and uses nothing of src/opensm.
 *
 * A switch port that can enforce gets the entries of its peer at the same time (see src/opensm/phases.h for what this omits).
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

enum opensm_event {
        OPENSM_READS,   /* x: head */
        OPENSM_WRITES,  /* x: head, y: endport */
        OPENSM_STARTS,  /* x: head */
        OPENSM_GOES_ON, /* x: head; it hung */
};

static bool is_master(const struct sim *s, const struct head *h)
{
        return s->f.sm.node == h->place.node && s->f.sm.port == h->place.port;
}

static void at(struct sim *s, struct head *h, usec_t delay, enum opensm_event what, unsigned y)
{
        struct event *e = events_add(&s->events, s->now + delay, EVENT_OPENSM);

        e->what = what;
        e->x = (unsigned) (h - s->heads);
        e->y = y;
        e->life = h->opensm.life;
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

static unsigned base_number(uint16_t base)
{
        unsigned b = 0;

        while (b < SIM_BASES && sim_bases[b] != base)
                b++;
        return b;
}

static unsigned find_endport(const struct sim *s, uint64_t guid)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->f.nodes[s->endports[i].node].ports[s->endports[i].port].guid.v == guid)
                        return i;
        return UINT32_MAX;
}

/* "    0x0000000000000100=full, # node1" */
static void read_member(const struct sim *s, struct opensm_port ports[], const char *line, unsigned b)
{
        char *end;
        unsigned i = find_endport(s, strtoull(line, &end, 16));

        if (i == UINT32_MAX)
                return; /* it was in the fabric once */
        if (strncmp(end, "=full", 5) == 0)
                ports[i].level[b] = 2;
        else if (strncmp(end, "=limited", 8) == 0)
                ports[i].level[b] = 1;
        else
                ports[i].level[b] = 3;
}

/* Of a file that pkeyd wrote: partitions and their members, each on a line of its own. */
static void parse(const struct sim *s, const struct sim_file *f, struct opensm_port ports[SIM_MAX_ENDPORTS])
{
        unsigned b = SIM_BASES;

        memset(ports, 0, SIM_MAX_ENDPORTS * sizeof(*ports));
        for (const char *line = f->bytes; *line; line = strchr(line, '\n') + 1) {
                const char *key = strstr(line, "=0x");

                if (*line == ' ' && b < SIM_BASES)
                        read_member(s, ports, line + strspn(line, " "), b);
                else if (*line != '#' && *line != '\n' && key && key < strchr(line, '\n'))
                        b = base_number((uint16_t) strtoul(key + 1, NULL, 16) & 0x7fff);
        }
}

/* No file, or one that does not name it, makes a port a limited member of the default partition (the first base), too. */
static bool says_the_same(const struct opensm_port *x, const struct opensm_port *y, unsigned b)
{
        return x->level[b] == y->level[b] || (b == 0 && x->level[b] <= 1 && y->level[b] <= 1);
}

/* Levels that are equal to those of earlier files have the basis of the first of them, which may be an admin's. */
void opensm_file_written(struct sim *s, struct sim_file *f)
{
        struct opensm_port before[SIM_MAX_ENDPORTS];
        struct basis *basis = malloc(sizeof(*basis));

        *basis = f->basis;
        basis->next = s->bases;
        s->bases = basis;
        memcpy(before, f->ports, sizeof(before));
        parse(s, f, f->ports);
        for (unsigned i = 0; i < s->n_endports; i++)
                for (unsigned b = 0; b < SIM_BASES; b++) {
                        bool same = says_the_same(&f->ports[i], &before[i], b);

                        f->ports[i].basis[b] = same && before[i].basis[b] ? before[i].basis[b] : basis;
                        f->ports[i].by_admin[b] = same && before[i].by_admin[b];
                }
}

static void read_file(struct sim *s, struct head *h, const struct sim_file *f)
{
        struct opensm *o = &h->opensm;

        for (unsigned i = 0; i < s->n_endports; i++)
                o->overtaken[i] = o->unwritten >> i & 1 ? o->ports[i] : (struct opensm_port) {};
        o->unwritten = UINT64_MAX;
        o->basis = f->basis;
        o->version = f->version;
        o->is_edited = f->is_edited;
        memcpy(o->ports, f->ports, sizeof(o->ports));
        /* ports that the file does not name */
        for (unsigned i = 0; i < s->n_endports; i++) {
                bool is_sm = s->endports[i].node == h->place.node && s->endports[i].port == h->place.port;

                if (o->ports[i].level[0] == 0)
                        o->ports[i].level[0] = is_sm ? 2 : 1;
        }
}

/* --- tables ---------------------------------------------------------------------------------------------------------- */

static bool is_in(const struct p_key *keys, unsigned n, struct p_key key)
{
        for (unsigned i = 0; i < n; i++)
                if (keys[i].v == key.v)
                        return true;
        return false;
}

/* What is there stays where it is, what is new goes to the first free entries. */
static void set_table(struct fabsim_port *p, const struct p_key *keys, unsigned n)
{
        for (unsigned i = 0; i < p->capacity; i++)
                if (!is_in(keys, n, p->table[i]) || is_in(p->table, i, p->table[i]))
                        p->table[i].v = 0;
        for (unsigned k = 0; k < n; k++)
                for (unsigned i = 0; i < p->capacity && !is_in(p->table, p->capacity, keys[k]); i++)
                        if (p->table[i].v == 0)
                                p->table[i] = keys[k];
}

static unsigned list_keys(const struct opensm_port *port, bool allow_both, struct p_key ret[2 * SIM_BASES])
{
        unsigned n = 0;

        for (unsigned b = 0; b < SIM_BASES; b++) {
                uint8_t level = port->level[b];

                if (level == 1 || (level == 3 && allow_both))
                        ret[n++].v = sim_bases[b];
                if (level >= 2)
                        ret[n++].v = (uint16_t) (sim_bases[b] | 0x8000);
        }
        return n;
}

/* pkeyd waits for this write: by the policy in force, and by the last file that it gave. */
static bool is_waited_for(struct sim *s, struct head *h)
{
        const struct basis *basis = &h->opensm.basis;
        const struct process *p = &s->processes[basis->process];
        const struct sim_file *f = head_file(h, SIM_CONF);

        if (h->opensm.is_edited)
                return false;
        return basis->by->intent.settings.writer == WRITER_OPENSM && basis->by == p->judgement && p->control &&
               control_get_status(p->control)->state == CONTROL_WRITING_OPENSM && f && f->version == h->opensm.version;
}

/* A switch port gets the full entry only, where its peer has both. One that has no room for them all is let go. */
static void write_leaf(struct sim *s, struct fabsim_place at, const struct p_key *all, unsigned n_all)
{
        struct p_key keys[2 * SIM_BASES];
        unsigned n = 0;
        const struct fabsim_node *node = &s->f.nodes[at.node];
        struct fabsim_port *p = fabsim_port_at(&s->f, at);
        bool fits;

        for (unsigned i = 0; i < n_all; i++)
                if (!is_in(all, n_all, (struct p_key) { all[i].v | 0x8000 }) || all[i].v & 0x8000)
                        keys[n++] = all[i];
        fits = n <= p->capacity;
        if (fits)
                set_table(p, keys, n);
        p->enforce_inbound = fits && node->inbound_cap;
        p->enforce_outbound = fits && node->outbound_cap;
}

static void write_endport(struct sim *s, struct head *h, unsigned endport)
{
        struct opensm *o = &h->opensm;
        struct p_key keys[2 * SIM_BASES];
        unsigned n = list_keys(&o->ports[endport], head_file(h, SIM_OPENSM_CONF), keys);
        struct fabsim_place leaf;

        if (!s->f.nodes[s->endports[endport].node].is_up)
                return;
        sim_trace(s, "OpenSM writes node %u port %u", s->endports[endport].node, s->endports[endport].port);
        for (unsigned i = 0; i < n; i++)
                sim_trace(s, "   0x%04x", keys[i].v);
        s->counters.opensm_writes++;
        set_table(fabsim_port_at(&s->f, s->endports[endport]), keys, n);
        o->unwritten &= ~(UINT64_C(1) << endport);
        if (fabsim_peer(&s->f, s->endports[endport], &leaf) && s->f.nodes[leaf.node].type == NODE_SWITCH)
                write_leaf(s, leaf, keys, n);
        if (is_waited_for(s, h)) {
                promises_rewritten(s, o, endport);
                return;
        }
        /* else nothing that pkeyd does now rests on it */
        promises_disturbed(s, s->endports[endport]);
        if (fabsim_peer(&s->f, s->endports[endport], &leaf))
                promises_disturbed(s, leaf);
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

static void heavy_sweep(struct sim *s, struct head *h)
{
        const struct sim_file *f = head_file(h, SIM_CONF);

        if (!is_master(s, h) || h->opensm.hangs)
                return;
        /* a file that pkeyd did not write is for the tests of import */
        if (!f || !f->basis.by)
                return;
        sim_trace(s, "OpenSM reads its file");
        read_file(s, h, f);
        for (unsigned i = 0; i < s->n_endports; i++)
                at(s, h, prng_below(&s->rng, 1500000), OPENSM_WRITES, i);
}

static void start(struct sim *s, struct head *h)
{
        sim_trace(s, "OpenSM starts");
        h->opensm = (struct opensm) { .runs = true, .life = ++s->last_life };
        heavy_sweep(s, h);
}

void opensm_start(struct sim *s, struct head *h)
{
        if (!h->opensm.runs)
                start(s, h);
        if (h->opensm.hangs) {
                h->opensm.hangs = false;
                heavy_sweep(s, h);
        }
}

void opensm_event(struct sim *s, const struct event *e)
{
        struct head *h = &s->heads[e->x];

        if (e->what == OPENSM_STARTS && !h->opensm.runs)
                start(s, h);
        if (e->life != h->opensm.life || !h->opensm.runs)
                return;
        if (e->what == OPENSM_GOES_ON) {
                h->opensm.hangs = false;
                heavy_sweep(s, h);
        } else if (e->what == OPENSM_READS) {
                heavy_sweep(s, h);
        } else if (e->what == OPENSM_WRITES && !h->opensm.hangs && is_master(s, h)) {
                write_endport(s, h, e->y);
        }
}

int opensm_signal(struct sim *s, struct head *h, int signal)
{
        if (!h->opensm.runs)
                return -ESRCH;
        if (signal == SIGHUP)
                at(s, h, prng_below(&s->rng, 3000000), OPENSM_READS, 0);
        else if (signal)
                sim_fail(s, "OpenSM is sent signal %d", signal);
        return 0;
}

void opensm_disturb(struct sim *s, struct head *h)
{
        usec_t later = prng_below(&s->rng, 40) * USEC_PER_SEC;

        switch (prng_below(&s->rng, 3)) {
        case 0:
                h->opensm.runs = false;
                at(s, h, later, OPENSM_STARTS, 0);
                break;
        case 1:
                h->opensm.hangs = true;
                at(s, h, later, OPENSM_GOES_ON, 0);
                break;
        default:
                at(s, h, 0, OPENSM_READS, 0);
                break;
        }
}

/* --- an admin -------------------------------------------------------------------------------------------------------- */

#define ADMIN_SALT UINT64_C(0x61646d0000000000)

void opensm_schedule_edits(struct sim *s)
{
        struct prng *r = &s->admin_rng;

        r->state = s->seed ^ ADMIN_SALT;
        if (prng_below(r, 3) != 0 || (s->writer != WRITER_OPENSM && !s->mirrors))
                return;
        for (unsigned n = prng_between(r, 1, 3); n > 0; n--) {
                usec_t when = prng_next(r) % s->quiet_at;
                unsigned head = prng_below(r, s->n_heads);
                struct event *e;

                events_add(&s->events, when, EVENT_CONF)->x = head;
                when += prng_below(r, prng_permille(r, 500) ? 4000 : 60000) * USEC_PER_MSEC;
                e = events_add(&s->events, when, EVENT_CONF);
                e->x = head;
                e->y = true;
                s->calm_at = MAX(s->calm_at, when + SIM_MAX_HOLD);
        }
}

/* The beginning of a random line; the end of the file: it has none. */
static size_t random_line(struct sim *s, const struct sim_file *f)
{
        size_t at = prng_below(&s->admin_rng, (unsigned) f->n);

        while (at > 0 && f->bytes[at - 1] != '\n')
                at--;
        return at;
}

/* Another level of a member, or without it. False: it has none. */
static bool change_line(struct sim *s, struct sim_file *f)
{
        char *line = f->bytes + random_line(s, f), *level = strstr(line, "=full"), *end = strchr(line, '\n');

        if (*line != ' ' || !end)
                return false;
        if (level && level < end)
                memcpy(level, "=both", strlen("=both"));
        else
                *line = '#';
        return true;
}

static void edit(struct sim *s, struct sim_file *f)
{
        struct opensm_port ports[SIM_MAX_ENDPORTS];

        f->kept_since = 0;
        switch (prng_below(&s->admin_rng, 4)) {
        case 0: /* it is cut short */
                f->n = random_line(s, f);
                f->bytes[f->n] = '\0';
                break;
        case 1: /* an older one is put back */
                if (!f->before)
                        return;
                free(f->bytes);
                f->bytes = STEAL(f->before);
                f->n = strlen(f->bytes);
                break;
        default:
                for (unsigned n = prng_between(&s->admin_rng, 1, 5); n > 0; n--)
                        f->kept_since = change_line(s, f) ? s->now : f->kept_since;
                break;
        }
        parse(s, f, ports);
        for (unsigned i = 0; i < s->n_endports; i++)
                for (unsigned b = 0; b < SIM_BASES; b++)
                        if (!says_the_same(&ports[i], &f->ports[i], b)) {
                                f->ports[i].level[b] = ports[i].level[b];
                                f->ports[i].basis[b] = NULL;
                                f->ports[i].by_admin[b] = true;
                        }
        f->is_edited = true;
        f->version++;
        s->counters.conf_edits++;
        sim_trace(s, "an admin edits the partition file:\n%s", f->bytes);
}

void opensm_edit(struct sim *s, const struct event *e)
{
        struct head *h = &s->heads[e->x];
        struct sim_file *f = head_file(h, SIM_CONF);

        if (!f || f->n == 0 || (!e->y && (s->quiet || !f->basis.by)))
                return;
        if (!e->y) {
                edit(s, f);
                return;
        }
        sim_trace(s, "an admin hands the partition file over");
        head_write_file(s, h, SIM_CONF ".before-pkeyd", f->bytes, f->n, NULL);
}
