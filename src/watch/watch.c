/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/watch.h"

#include <errno.h>

#include "util/hash.h"
#include "util/vector.h"

enum judgement {
        JUDGED_NOT,
        JUDGED_RIGHT,
        JUDGED_WRONG,
};

/* A managed port as it was at the last update. */
struct record {
        struct watch_event port; /* what all its events have: names and address */
        bool is_endport;
        bool unreachable;
        bool drifted;        /* of JUDGED_WRONG: it was right before, with the same entries expected */
        enum judgement judged;
        uint64_t expected;   /* not of JUDGED_NOT: the hash of what the table was compared with */
        uint64_t difference; /* of JUDGED_WRONG: the hash of the discrepancy */
};

struct watch {
        struct arena *arena; /* of the records and their labels; one per update */
        struct record *records;
        uint32_t n;
        bool updated;
};

/* One update in progress. */
struct update {
        struct arena *a;     /* of the report */
        const struct observed *observed;
        const struct known *known;
        const struct discrepancy **differs; /* by port of the snapshot; NULL: tables are not judged */
        const enum freeze *frozen; /* by port; NULL: none is frozen */
        const struct desired_port *desired; /* by port */
        uint64_t generation;
        bool first;
        struct watch_report report;
        uint32_t allocated;
        bool out_of_memory;
};

struct watch *watch_new(void)
{
        return calloc(1, sizeof(struct watch));
}

struct watch *watch_free(struct watch *w)
{
        if (!w)
                return NULL;
        arena_free(w->arena);
        free(w);
        return NULL;
}

/* Appends an event of the port; the caller adds what only some kinds have. NULL: out of memory. */
static struct watch_event *emit(struct update *k, enum watch_kind kind, const struct record *r)
{
        const char *label = arena_strdup(k->a, r->port.label);
        struct watch_event *event;

        if (!label || VECTOR_GROW(k->a, k->report.events, k->report.n_events, k->allocated) < 0) {
                k->out_of_memory = true;
                return NULL;
        }
        event = &k->report.events[k->report.n_events++];
        *event = r->port;
        event->kind = kind;
        event->label = label;
        k->report.n_of[kind]++;
        return event;
}

static uint64_t hash_expected(const struct update *k, uint32_t port)
{
        const struct desired_port *want = &k->desired[port];
        uint64_t h = hash_mix(HASH_START, k->generation);

        for (uint32_t i = 0; i < want->n_wanted; i++)
                h = hash_mix(h, want->wanted[i].v);
        return h;
}

static void judge_wrong(struct update *k, struct record *r, const struct discrepancy *d, uint64_t expected)
{
        uint64_t difference = discrepancy_hash(HASH_START, d);
        bool may_drift = r->judged == JUDGED_RIGHT || (r->judged == JUDGED_WRONG && r->drifted);
        bool news = r->judged != JUDGED_WRONG || r->difference != difference;
        struct watch_event *event;

        k->report.n_differ++;
        r->drifted = may_drift && r->expected == expected;
        r->judged = JUDGED_WRONG;
        r->expected = expected;
        r->difference = difference;
        if (!news)
                return;
        event = emit(k, r->drifted ? WATCH_DRIFTED : WATCH_DIFFERS, r);
        if (event)
                event->differs = d;
}

static void judge_right(struct update *k, struct record *r, uint64_t expected)
{
        k->report.n_right++;
        if (r->judged == JUDGED_WRONG)
                emit(k, r->drifted ? WATCH_REPAIRED : WATCH_MATCHES, r);
        r->judged = JUDGED_RIGHT;
        r->expected = expected;
        r->drifted = false;
        r->difference = 0;
}

static void judge_reach(struct update *k, uint32_t port, struct record *r)
{
        const struct subnet *s = k->observed->subnet;
        const struct subnet_node *incomplete = subnet_port_incomplete_node(s, &s->ports[port]);
        const struct observed_table *t = &k->observed->tables[port];
        bool unreachable = t->source != TABLE_READ && t->failure != MAD_ANSWERED;
        struct watch_event *event = unreachable && !r->unreachable ? emit(k, WATCH_UNREACHABLE, r) : NULL;

        k->report.n_unreachable += unreachable;
        if (event) {
                event->failure = t->failure;
                event->mad_status = t->mad_status;
                event->incomplete = incomplete ? subnet_node_label(k->a, incomplete) : NULL;
        }
        if (!unreachable && r->unreachable)
                emit(k, WATCH_READABLE, r);
        r->unreachable = unreachable;
}

/* A rebooted host is not new, even if pkeyd was restarted meanwhile. */
static enum watch_kind kind_of_appearance(const struct update *k, const struct record *r)
{
        const struct known_port *known = k->known ? known_find(k->known, r->port.port_guid) : NULL;

        return known && !known->is_new ? WATCH_RETURNED : WATCH_NEW;
}

/* r is the record of the last update, or empty (is_new); it becomes that of this one. */
static void update_port(struct update *k, uint32_t port, bool is_new, struct record *r)
{
        const struct observed_table *t = &k->observed->tables[port];

        k->report.n_ports++;
        if (is_new && r->is_endport && !k->first)
                emit(k, kind_of_appearance(k, r), r);
        judge_reach(k, port, r);
        if (!k->differs || t->source != TABLE_READ)
                return;
        if (k->frozen && k->frozen[port] != FREEZE_NONE)
                r->judged = JUDGED_NOT; /* what it holds is neither right nor wrong */
        else if (k->differs[port])
                judge_wrong(k, r, k->differs[port], hash_expected(k, port));
        else
                judge_right(k, r, hash_expected(k, port));
}

static int compare_place(const struct record *r, struct guid node_guid, uint8_t number)
{
        return ORDER(r->port.node_guid.v, node_guid.v) ?: ORDER(r->port.number, number);
}

/* Identity, address and label are always those of the new snapshot. */
static int copy_port(struct arena *a, const struct subnet *s, uint32_t port, struct record *r)
{
        const struct subnet_port *p = &s->ports[port];

        r->port = (struct watch_event) {
                .label = subnet_port_label(a, s, port), .node_guid = subnet_port_node(s, p)->guid, .port_guid = p->guid,
                .lid = p->lid, .number = p->number,
        };
        r->is_endport = p->role == PORT_ENDPORT;
        return r->port.label ? 0 : -ENOMEM;
}

static void report_gone(struct update *k, const struct record *r)
{
        if (r->is_endport)
                emit(k, WATCH_GONE, r);
}

/* Merges the old records and the new snapshot. */
static int update_all(struct update *k, const struct watch *old, struct watch *ret)
{
        const struct subnet *s = k->observed->subnet;
        uint32_t o = 0;
        int r;

        for (uint32_t p = 0; p < s->n_ports; p++) {
                const struct subnet_port *port = &s->ports[p];
                struct guid node_guid = subnet_port_node(s, port)->guid;
                struct record *record = &ret->records[ret->n];
                bool is_new = true;

                if (!subnet_port_is_managed(s, port))
                        continue;
                while (o < old->n && compare_place(&old->records[o], node_guid, port->number) < 0)
                        report_gone(k, &old->records[o++]);
                if (o < old->n && compare_place(&old->records[o], node_guid, port->number) == 0) {
                        *record = old->records[o++];
                        is_new = false;
                }
                r = copy_port(ret->arena, s, p, record);
                if (r < 0)
                        return r;
                update_port(k, p, is_new, record);
                ret->n++;
        }
        while (o < old->n)
                report_gone(k, &old->records[o++]);
        return k->out_of_memory ? -ENOMEM : 0;
}

static int index_discrepancies(struct update *k, const struct verification *v)
{
        if (!v)
                return 0;
        k->frozen = v->frozen;
        k->desired = v->desired->ports;
        k->differs = arena_new_array(k->a, const struct discrepancy *, k->observed->subnet->n_ports);
        if (!k->differs)
                return -ENOMEM;
        for (uint32_t i = 0; i < v->n_differ; i++)
                if (v->differ[i].source == SOURCE_SMP)
                        k->differs[v->differ[i].port] = &v->differ[i];
        return 0;
}

/* Stable, so that ports stay in ascending order within a kind. */
static int sort_by_kind(struct update *k)
{
        struct watch_event *sorted = arena_new_array(k->a, struct watch_event, k->report.n_events);
        uint32_t n = 0;

        if (!sorted)
                return -ENOMEM;
        for (int kind = 0; kind < WATCH_N_KINDS; kind++)
                for (uint32_t i = 0; i < k->report.n_events; i++)
                        if ((int) k->report.events[i].kind == kind)
                                sorted[n++] = k->report.events[i];
        k->report.events = sorted;
        return 0;
}

int watch_update(struct watch *w, struct arena *a, const struct observed *observed, const struct verification *v,
                 uint64_t generation, const struct known *known, struct watch_report *ret)
{
        struct update k = { .a = a, .observed = observed, .known = known, .generation = generation, .first = !w->updated };
        struct watch now = { .arena = arena_new(), .updated = true };
        int r;

        now.records = arena_new_array(now.arena, struct record, observed->subnet->n_ports);
        r = now.records ? index_discrepancies(&k, v) : -ENOMEM;
        r = r ?: update_all(&k, w, &now) ?: sort_by_kind(&k);
        arena_free(r < 0 ? now.arena : w->arena);
        if (r < 0)
                return r;
        *w = now;
        *ret = k.report;
        return 0;
}

void watch_forget_right(struct watch *w, struct guid node_guid, uint8_t port)
{
        struct record *r = FIND_SORTED(item, w->records, w->n, compare_place(item, node_guid, port));

        if (r && r->judged == JUDGED_RIGHT)
                r->judged = JUDGED_NOT;
}

const struct watch_event *watch_report_events(const struct watch_report *report, enum watch_kind kind, uint32_t *ret_n)
{
        const struct watch_event *events = report->events;

        for (int before = 0; before < (int) kind; before++)
                events += report->n_of[before];
        *ret_n = report->n_of[kind];
        return events;
}
