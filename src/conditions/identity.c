/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "conditions/identity.h"

#include <errno.h>
#include <string.h>

#include "events/event_text.h"

struct identity {
        struct arena *arena;            /* owned */
        struct identity_claim *claims;  /* ascending node GUID; in the arena */
        const char **ways_out;          /* of each claim */
        uint32_t n;
};

struct identity *identity_new(void)
{
        struct identity *i = calloc(1, sizeof(*i));

        if (i)
                i->arena = arena_new();
        return i && i->arena ? i : identity_free(i);
}

struct identity *identity_free(struct identity *i)
{
        if (i)
                arena_free(i->arena);
        free(i);
        return NULL;
}

const struct identity_claim *identity_claims(const struct identity *i, uint32_t *ret_n)
{
        *ret_n = i->n;
        return i->claims;
}

static const struct identity_claim *find_claim(const struct identity *i, struct guid node)
{
        return FIND_SORTED(c, i->claims, i->n, ORDER(c->node_guid.v, node.v));
}

/* --- claims ------------------------------------------------------------------------------------------------------------- */

static int add_claim(const struct identity *old, const struct subnet *s, const struct claim *claim, uint64_t wall,
                     struct identity *to)
{
        struct identity_claim *new = &to->claims[to->n];
        uint32_t port = claim_port(s, claim);
        const struct identity_claim *before;

        *new = (struct identity_claim) {
                .node_guid = s->nodes[claim->node].guid, .since = wall, .text = claim_text(to->arena, s, claim),
                .label = port == SUBNET_NONE ? subnet_node_label(to->arena, &s->nodes[claim->node]) :
                                               subnet_port_label(to->arena, s, port),
        };
        to->ways_out[to->n] = claim_way_out(to->arena, s, claim);
        if (!new->text || !new->label || !to->ways_out[to->n])
                return -ENOMEM;
        if (port != SUBNET_NONE) {
                new->port_guid = s->ports[port].guid;
                new->number = s->ports[port].number;
                new->lid = s->ports[port].lid;
        }
        before = find_claim(old, new->node_guid);
        if (before && strcmp(before->text, new->text) == 0)
                new->since = before->since;
        to->n++;
        return 0;
}

/* The node is still in the fabric, but what it calls itself now is not known. */
static int keep_claim(const struct identity *old, struct guid node, struct identity *to)
{
        const struct identity_claim *before = find_claim(old, node);
        struct identity_claim *new = &to->claims[to->n];

        if (!before)
                return 0;
        *new = *before;
        new->text = arena_strdup(to->arena, before->text);
        new->label = arena_strdup(to->arena, before->label);
        to->ways_out[to->n] = arena_strdup(to->arena, old->ways_out[before - old->claims]);
        if (!new->text || !new->label || !to->ways_out[to->n])
                return -ENOMEM;
        to->n++;
        return 0;
}

static int list_claims(const struct identity *old, const struct pins *pins, const struct subnet *s, uint64_t wall,
                       struct identity *to)
{
        struct claim *claims;
        uint32_t n;
        int r = to->arena ? pins_find_claims(to->arena, pins, s, &claims, &n) : -ENOMEM;

        if (r < 0)
                return r;
        to->claims = arena_new_array(to->arena, struct identity_claim, (size_t) n + old->n);
        to->ways_out = arena_new_array(to->arena, const char *, (size_t) n + old->n);
        if (!to->claims || !to->ways_out)
                return -ENOMEM;
        for (uint32_t node = 0, i = 0; r == 0 && node < s->n_nodes; node++) {
                if (i < n && claims[i].node == node)
                        r = add_claim(old, s, &claims[i++], wall, to);
                else if (pins && s->nodes[node].incomplete)
                        r = keep_claim(old, s->nodes[node].guid, to);
        }
        return r;
}

/* --- the log ------------------------------------------------------------------------------------------------------------ */

static struct log_about about_of(const struct identity_claim *c, uint64_t generation)
{
        return (struct log_about) {
                .generation = generation, .node = c->label, .port_guid = c->port_guid, .lid = c->lid, .port = c->number,
        };
}

static void log_new_claims(struct log *log, uint64_t generation, const struct identity *now, const struct identity *before)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < now->n; i++) {
                const struct identity_claim *c = &now->claims[i], *old = find_claim(before, c->node_guid);
                struct log_about about = about_of(c, generation);

                if ((!old || strcmp(old->text, c->text) != 0) && n++ < EVENT_TEXT_MAX)
                        log_add(log, LOG_EVENT_NAME_CLAIMED, &about, "%s; %s", c->text, now->ways_out[i]);
        }
        if (n > EVENT_TEXT_MAX)
                log_add(log, LOG_EVENT_NAME_CLAIMED, &(struct log_about) { .generation = generation },
                        "%u more nodes claim names that are not pinned to them; pkeyctl pins lists them", n - EVENT_TEXT_MAX);
}

/* What became of a claim. */
static const char *outcome(const struct pins *pins, const struct subnet *s, struct guid node)
{
        const struct pin *pin = pins ? pins_find(pins, node) : NULL;
        uint32_t i = subnet_find_node(s, node);

        if (!pins)
                return "names are no longer pinned";
        if (i == SUBNET_NONE)
                return "it is no longer in the fabric";
        return pin && pin_is_of(pin, &s->nodes[i]) ? "its name is pinned to it" : "it no longer uses that name";
}

static void log_ended_claims(struct log *log, uint64_t generation, const struct identity *now, const struct identity *before,
                             const struct pins *pins, const struct subnet *s)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < before->n; i++) {
                const struct identity_claim *c = &before->claims[i];
                struct log_about about = about_of(c, generation);

                if (!find_claim(now, c->node_guid) && n++ < EVENT_TEXT_MAX)
                        log_add(log, LOG_EVENT_NAME_SETTLED, &about, "node 0x%016" PRIx64 " (%s) no longer claims a name: %s",
                                c->node_guid.v, c->label, outcome(pins, s, c->node_guid));
        }
        if (n > EVENT_TEXT_MAX)
                log_add(log, LOG_EVENT_NAME_SETTLED, &(struct log_about) { .generation = generation },
                        "%u more node%s a name", n - EVENT_TEXT_MAX,
                        n - EVENT_TEXT_MAX == 1 ? " no longer claims" : "s no longer claim");
}

int identity_see(struct identity *i, const struct pins *pins, const struct subnet *subnet, uint64_t generation, uint64_t wall,
                 struct log *log)
{
        struct identity now = { .arena = arena_new() };
        int r = list_claims(i, pins, subnet, wall, &now);

        if (r < 0) {
                arena_free(now.arena);
                return r;
        }
        log_new_claims(log, generation, &now, i);
        log_ended_claims(log, generation, &now, i, pins, subnet);
        arena_free(i->arena);
        *i = now;
        return 0;
}
