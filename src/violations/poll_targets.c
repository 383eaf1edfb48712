/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/poll_targets.h"

#include <errno.h>

DEFINE_COMPARE(compare_items, struct poll_item, ORDER(a->hash, b->hash) ?: ORDER(a->target, b->target))

struct poll_target *poll_targets_find(const struct poll_targets *t, struct violation_port port)
{
        return FIND_SORTED(item, t->targets, t->n_targets, violation_port_compare(&item->port, &port));
}

struct poll_agent *poll_targets_find_agent(const struct poll_targets *t, struct violation_port port)
{
        return FIND_SORTED(item, t->agents, t->n_agents, violation_port_compare(&item->port, &port));
}

void poll_targets_done(struct poll_targets *t)
{
        free(t->targets);
        free(t->agents);
        free(t->items);
        *t = (struct poll_targets) {};
}

/* What was learned of a port stays; where it is comes from the snapshot. */
static void add_target(struct poll_targets *t, const struct subnet *s, const struct subnet_port *p, const struct poll_targets *old)
{
        const struct subnet_node *node = subnet_port_node(s, p);
        const struct violation_port port = { .node_guid = node->guid, .number = p->number };
        const struct poll_target *known = poll_targets_find(old, port);
        struct poll_target *target = &t->targets[t->n_targets++];

        if (known)
                *target = *known;
        target->port = port;
        target->is_endport = p->role == PORT_ENDPORT;
        target->route = p->route;
        target->destination = p->destination;
        target->lid = p->lid;
        target->port_guid = p->guid;
        target->host_lid.v = 0;
        if (p->role == PORT_SWITCH_EXTERNAL && p->peer != SUBNET_NONE)
                target->host_lid = s->ports[p->peer].lid;
}

static void add_agent(struct poll_targets *t, enum node_type type, const struct poll_targets *old)
{
        struct poll_target *target = &t->targets[t->n_targets - 1];
        struct poll_block_state *counters = &target->blocks[POLL_BLOCK_COUNTERS];
        struct violation_port port = target->port;
        const struct poll_agent *known;
        struct poll_agent *agent;

        if (type == NODE_SWITCH)
                port.number = 0;
        if (t->n_agents == 0 || !violation_port_equal(t->agents[t->n_agents - 1].port, port)) {
                agent = &t->agents[t->n_agents++];
                known = poll_targets_find_agent(old, port);
                if (known)
                        *agent = *known;
                agent->port = port;
                agent->first = t->n_targets - 1;
        }
        target->agent = t->n_agents - 1;
        t->agents[target->agent].end = t->n_targets;
        /* the agent may be another one now, and the port for whose answer this one waits may be gone */
        if (counters->progress == PROGRESS_WAITING && t->agents[target->agent].state != AGENT_QUERIED)
                counters->progress = PROGRESS_IDLE;
}

static void add_items(struct poll_targets *t)
{
        const struct poll_target *target = &t->targets[t->n_targets - 1];
        uint64_t hash = violation_port_hash(target->port);

        for (enum poll_block b = 0; b < N_POLL_BLOCKS; b++)
                if (poll_target_has(target, b))
                        t->items[t->n_items++] = (struct poll_item) {
                                .hash = hash_mix(hash, b), .target = t->n_targets - 1, .block = b,
                        };
}

int poll_targets_make(const struct subnet *subnet, const struct poll_targets *old, struct poll_targets *ret)
{
        /* one more, so that no array is of no size */
        size_t n = (size_t) subnet->n_ports + 1;
        struct poll_targets t = {};

        t.targets = calloc(n, sizeof(*t.targets));
        t.agents = calloc(n, sizeof(*t.agents));
        t.items = calloc(n, N_POLL_BLOCKS * sizeof(*t.items));
        if (!t.targets || !t.agents || !t.items) {
                poll_targets_done(&t);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                const struct subnet_port *p = &subnet->ports[i];

                add_target(&t, subnet, p, old);
                add_agent(&t, subnet_port_node(subnet, p)->type, old);
                add_items(&t);
        }
        qsort(t.items, t.n_items, sizeof(*t.items), compare_items);
        *ret = t;
        return 0;
}

bool poll_targets_have_pending(const struct poll_targets *t, const struct poll_agent *agent)
{
        for (uint32_t i = agent->first; i < agent->end; i++) {
                const struct poll_block_state *b = &t->targets[i].blocks[POLL_BLOCK_COUNTERS];

                if (b->progress == PROGRESS_PENDING && b->answer != ANSWER_SILENT)
                        return true;
        }
        return false;
}
