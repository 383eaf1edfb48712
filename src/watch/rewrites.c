/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/rewrites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vector.h"

/* A drifted port, and the switch that it is a port of or plugged into. */
struct drifted {
        uint32_t node, event;
        bool endport;
};

DEFINE_COMPARE(compare_drifted, struct drifted, ORDER(a->node, b->node) ?: ORDER(a->event, b->event))

static struct drifted find_switch(const struct subnet *s, const struct watch_event *e, uint32_t event)
{
        uint32_t port = subnet_find_port_of(s, e->node_guid, e->number);
        struct drifted d = { SUBNET_NONE, event, true };

        if (port == SUBNET_NONE)
                return d;
        d.endport = s->ports[port].role == PORT_ENDPORT;
        if (!d.endport)
                d.node = s->ports[port].node;
        else if (s->ports[port].peer != SUBNET_NONE)
                d.node = s->ports[s->ports[port].peer].node;
        return d;
}

/* Counts each key once; keeps the first REWRITE_MAX_KEYS. */
static void keep_keys(struct p_key *keys, uint32_t n, struct p_key ret[REWRITE_MAX_KEYS], uint32_t *ret_n)
{
        *ret_n = p_keys_sort(keys, n);
        for (uint32_t i = 0; i < *ret_n && i < REWRITE_MAX_KEYS; i++)
                ret[i] = keys[i];
}

/* What the endports of d[0..n) lost (missing), or what they gained. */
static int gather(const struct watch_event *events, const struct drifted *d, uint32_t n, bool missing,
                  struct p_key ret[REWRITE_MAX_KEYS], uint32_t *ret_n)
{
        _cleanup_free_ struct p_key *keys = NULL;
        uint32_t n_keys = 0, allocated = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct discrepancy *differs = events[d[i].event].differs;
                const struct p_key *from = missing ? differs->missing : differs->unexpected;
                uint32_t n_from = missing ? differs->n_missing : differs->n_unexpected;

                if (!d[i].endport || n_from == 0)
                        continue;
                if (VECTOR_EXTEND(NULL, keys, n_keys, allocated, n_from) < 0)
                        return -ENOMEM;
                memcpy(keys + n_keys, from, n_from * sizeof(*keys));
                n_keys += n_from;
        }
        keep_keys(keys, n_keys, ret, ret_n);
        return 0;
}

static int add_switch(const struct watch_event *events, const struct drifted *d, uint32_t n, struct watch_rewrite *ret,
                      uint32_t *n_ret, bool *is_part)
{
        struct watch_rewrite w = { .node = d[0].node };
        int r;

        for (uint32_t i = 0; i < n; i++)
                w.n_ports += d[i].endport;
        if (w.node == SUBNET_NONE || w.n_ports < REWRITE_MIN_PORTS)
                return 0;
        r = gather(events, d, n, true, w.lost, &w.n_lost) ?: gather(events, d, n, false, w.gained, &w.n_gained);
        if (r < 0 || w.n_lost + w.n_gained == 0)
                return r;
        for (uint32_t i = 0; i < n; i++)
                is_part[d[i].event] = true;
        ret[(*n_ret)++] = w;
        return 0;
}

int watch_find_rewrites(struct arena *a, const struct subnet *subnet, const struct watch_report *report,
                        struct watch_rewrite **ret, uint32_t *ret_n, bool **ret_is_part)
{
        uint32_t n, n_ret = 0, end;
        const struct watch_event *events = watch_report_events(report, WATCH_DRIFTED, &n);
        _cleanup_free_ struct drifted *d = calloc(MAX(n, 1u), sizeof(*d));
        struct watch_rewrite *rewrites = arena_new_array(a, struct watch_rewrite, n);
        bool *is_part = arena_new_array(a, bool, n);
        int r = 0;

        if (!d || !rewrites || !is_part)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                d[i] = find_switch(subnet, &events[i], i);
        qsort(d, n, sizeof(*d), compare_drifted);
        for (uint32_t i = 0; r == 0 && i < n; i = end) {
                for (end = i; end < n && d[end].node == d[i].node; end++)
                        ;
                r = add_switch(events, d + i, end - i, rewrites, &n_ret, is_part);
        }
        *ret = rewrites;
        *ret_n = n_ret;
        *ret_is_part = is_part;
        return r;
}
