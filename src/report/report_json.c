/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "subnet/fold.h"

/* Ports that look alike in a part of the page become one object, with a hostlist. */

#define MAX_CELLS 100000      /* of the matrix; a policy with more is one in which almost everyone may talk */
#define MAX_LISTS (4u << 20)  /* bytes of all hostlists, about */
#define MIN_LIST  1024        /* bytes of one */

/* --- hostlists ------------------------------------------------------------------------------------------------------- */

/* Of switch ports: "leaf07/[1-12]". */
static const char *fold_switch_ports(struct context *ctx, const uint32_t *ports, uint32_t n)
{
        const char **labels = arena_new_array(ctx->arena, const char *, n);

        for (uint32_t i = 0; labels && i < n; i++)
                labels[i] = output_label(ctx, ports[i]);
        return labels ? fold_names(ctx->arena, labels, n) : NULL;
}

/* NULL: out of memory. */
static json_t *cut(struct doc *d, const char *text, size_t max)
{
        if (text)
                text = fold_cut(d->ctx->arena, text, max);
        return text ? json_string(text) : NULL;
}

static json_t *hostlist_of(struct doc *d, const uint32_t *ports, uint32_t n, size_t max)
{
        struct context *ctx = d->ctx;
        bool is_endport = n == 0 || ctx->subnet->ports[ports[0]].role == PORT_ENDPORT;

        return cut(d, is_endport ? fold_ports(ctx->arena, ctx->subnet, ports, n) : fold_switch_ports(ctx, ports, n), max);
}

static json_t *names(struct doc *d, const uint32_t *ports, uint32_t n)
{
        uint32_t n_labels;
        const char **labels = fold_labels(d->ctx->arena, d->ctx->subnet, ports, n, &n_labels);

        return labels ? JSON_ARRAY(i, n_labels, doc_text(labels[i])) : NULL;
}

/* How ports are grouped: by what they have in common, and how that is shown. */
struct folding {
        struct doc *doc;
        const struct discrepancy *const *differ; /* by port; of differences only */
        const char **failures;                   /* by port; of ports that were not read only */
        int (*compare)(const struct folding *f, uint32_t a, uint32_t b);
        json_t *(*describe)(const struct folding *f, uint32_t port);
};

static int compare_ports(const void *pa, const void *pb, void *userdata)
{
        const struct folding *f = userdata;
        uint32_t a = *(const uint32_t *) pa, b = *(const uint32_t *) pb;
        const struct subnet_port *ports = f->doc->ctx->subnet->ports;

        return ORDER(ports[a].role, ports[b].role) ?: f->compare(f, a, b) ?: ORDER(a, b);
}

static bool are_alike(const struct folding *f, uint32_t a, uint32_t b)
{
        const struct subnet_port *ports = f->doc->ctx->subnet->ports;

        return ports[a].role == ports[b].role && f->compare(f, a, b) == 0;
}

/* An object for each set of ports that are alike. Sorts the ports. */
static json_t *fold(struct folding *f, const struct endports *all)
{
        struct doc *d = f->doc;
        json_t *array = json_array();

        if (all->n > 0)
                qsort_r(all->ports, all->n, sizeof(*all->ports), compare_ports, f);
        for (uint32_t i = 0, end; i < all->n; i = end) {
                const uint32_t *ports = all->ports + i;
                json_t *o = f->describe(f, *ports);

                for (end = i + 1; end < all->n && are_alike(f, *ports, all->ports[end]);)
                        end++;
                doc_add(d, o, "{s:s, s:i, s:o}", "role", d->ctx->subnet->ports[*ports].role == PORT_ENDPORT ? "endport" : "enforcing",
                        "ports", end - i, "who", hostlist_of(d, ports, end - i, SIZE_MAX));
                doc_append(d, array, o);
        }
        return array;
}

/* --- tables ---------------------------------------------------------------------------------------------------------- */

static const struct observed_table *table_of(const struct folding *f, uint32_t port)
{
        return &f->doc->ctx->observed->tables[port];
}

static int compare_use(const struct folding *f, uint32_t a, uint32_t b)
{
        const struct observed_table *x = table_of(f, a), *y = table_of(f, b);

        return ORDER(x->capacity, y->capacity) ?: ORDER(observed_table_count(x), observed_table_count(y));
}

static json_t *describe_use(const struct folding *f, uint32_t port)
{
        const struct observed_table *t = table_of(f, port);

        return json_pack("{s:i, s:i}", "used", observed_table_count(t), "capacity", t->capacity);
}

static json_t *json_tables(struct doc *d, const struct endports *read)
{
        return fold(&(struct folding) { .doc = d, .compare = compare_use, .describe = describe_use }, read);
}

/* --- ports that differ, or were not read ------------------------------------------------------------------------------ */

static int compare_failures(const struct folding *f, uint32_t a, uint32_t b)
{
        return strcmp(f->failures[a], f->failures[b]);
}

static json_t *describe_failure(const struct folding *f, uint32_t port)
{
        return json_pack("{s:s, s:o}", "reason", mad_outcome_to_string(table_of(f, port)->failure),
                         "detail", doc_text(f->failures[port]));
}

static json_t *json_not_read(struct doc *d, const struct endports *unreachable)
{
        const char **failures = arena_new_array(d->ctx->arena, const char *, d->ctx->subnet->n_ports);

        for (uint32_t i = 0; failures && i < unreachable->n; i++)
                failures[unreachable->ports[i]] = output_failure(d->ctx, unreachable->ports[i]);
        return failures ? fold(&(struct folding) { .doc = d, .failures = failures, .compare = compare_failures,
                                                   .describe = describe_failure }, unreachable) : NULL;
}

/* Endports whose partitions are not known, one by one, so that a reader who searches for a host finds it. */
static json_t *json_unknown(struct doc *d, const struct report_data *r)
{
        const struct subnet *s = d->ctx->subnet;
        bool *is_known = arena_new_array(d->ctx->arena, bool, s->n_ports);
        uint32_t *ports = arena_new_array(d->ctx->arena, uint32_t, s->n_ports), n = 0;

        if (!is_known || !ports)
                return NULL;
        for (uint32_t i = 0; i < r->n_kinds; i++)
                for (uint32_t k = 0; k < r->kinds[i].n_ports; k++)
                        is_known[r->kinds[i].ports[k]] = true;
        for (uint32_t p = 0; p < s->n_ports; p++)
                if (s->ports[p].role == PORT_ENDPORT && !is_known[p])
                        ports[n++] = p;
        return names(d, ports, n);
}

static int compare_keys(const struct p_key *a, uint32_t n_a, const struct p_key *b, uint32_t n_b)
{
        for (uint32_t i = 0; i < n_a && i < n_b; i++)
                if (a[i].v != b[i].v)
                        return ORDER(a[i].v, b[i].v);
        return ORDER(n_a, n_b);
}

static int compare_differences(const struct folding *f, uint32_t a, uint32_t b)
{
        const struct discrepancy *x = f->differ[a], *y = f->differ[b];

        return compare_keys(x->missing, x->n_missing, y->missing, y->n_missing) ?:
               compare_keys(x->unexpected, x->n_unexpected, y->unexpected, y->n_unexpected) ?:
               ORDER(x->enforcement_differs, y->enforcement_differs);
}

static json_t *describe_difference(const struct folding *f, uint32_t port)
{
        const struct discrepancy *x = f->differ[port];

        return json_pack("{s:o, s:o, s:b}", "missing", doc_p_keys(f->doc, x->missing, x->n_missing),
                         "unexpected", doc_p_keys(f->doc, x->unexpected, x->n_unexpected),
                         "enforcement_differs", x->enforcement_differs);
}

static json_t *fold_differences(struct doc *d, const struct verification *v)
{
        struct arena *a = d->ctx->arena;
        const struct discrepancy **by_port = arena_new_array(a, const struct discrepancy *, d->ctx->subnet->n_ports);
        struct endports all = { arena_new_array(a, uint32_t, v->n_differ), v->n_differ };

        if (!by_port || !all.ports)
                return NULL;
        for (uint32_t i = 0; i < v->n_differ; i++) {
                all.ports[i] = v->differ[i].port;
                by_port[v->differ[i].port] = &v->differ[i];
        }
        return fold(&(struct folding) { .doc = d, .differ = by_port, .compare = compare_differences,
                                        .describe = describe_difference }, &all);
}

static int compare_freezes(const struct folding *f, uint32_t a, uint32_t b)
{
        return ORDER(f->doc->ctx->plan->frozen[a], f->doc->ctx->plan->frozen[b]);
}

static json_t *describe_freeze(const struct folding *f, uint32_t port)
{
        enum freeze why = f->doc->ctx->plan->frozen[port];

        return json_pack("{s:s, s:s, s:s}", "reason", freeze_to_string(why), "detail", freeze_reason(why), "way_out",
                         freeze_way_out(why));
}

static json_t *json_frozen(struct doc *d, const struct endports *frozen)
{
        return fold(&(struct folding) { .doc = d, .compare = compare_freezes, .describe = describe_freeze }, frozen);
}

/* A hostlist of the switch ports whose other ends did not answer discovery. */
static json_t *json_silent(struct doc *d, uint32_t n)
{
        const struct subnet *s = d->ctx->subnet;
        const char **labels = arena_new_array(d->ctx->arena, const char *, n), *text = NULL;
        uint32_t k = 0;

        for (uint32_t i = 0; labels && i < s->n_nodes; i++)
                for (unsigned number = 1; number <= UINT8_MAX && k < n; number++) {
                        char name[SUBNET_NAME_SIZE];

                        if (subnet_port_is_silent(&s->nodes[i], (uint8_t) number))
                                labels[k++] = output_format(d->ctx, "%s/%u", subnet_node_name(&s->nodes[i], name), number);
                }
        if (labels)
                text = fold_names(d->ctx->arena, labels, k);
        return text ? json_string(text) : NULL;
}

/* --- who may talk to whom --------------------------------------------------------------------------------------------- */

static json_t *set_object(struct doc *d, const struct matrix *m, uint32_t i)
{
        bool is_group = i < m->n_groups;

        return json_pack("{s:o, s:i, s:o}", "name", is_group ? doc_text(m->names[i]) : json_null(), "ports", m->sets[i].n,
                         "who", hostlist_of(d, m->sets[i].ports, m->sets[i].n, MAX(MAX_LISTS / m->n, (size_t) MIN_LIST)));
}

static json_t *way_object(const struct reach_way *w)
{
        return json_pack("{s:o, s:b}", "p_key", doc_base(w->base), "all", w->all);
}

static json_t *json_cells(struct doc *d, const struct matrix *m, bool *ret_truncated)
{
        const struct reach_cell *c;
        json_t *cells = json_array();

        *ret_truncated = m->n == MATRIX_MAX_SETS;
        for (uint32_t x = 0, y = 0; (c = matrix_next_cell(m, &x, &y)); y++) {
                if (json_array_size(cells) == MAX_CELLS) {
                        *ret_truncated = true;
                        return cells;
                }
                doc_append(d, cells, json_pack("{s:i, s:i, s:o}", "a", x, "b", y, "partitions",
                                               JSON_ARRAY(i, c->n, way_object(&c->ways[i]))));
        }
        return cells;
}

static json_t *kind_object(struct doc *d, const struct reach_kind *k)
{
        return json_pack("{s:i, s:o, s:o, s:o}", "ports", k->n_ports, "p_keys", doc_p_keys(d, k->keys, k->n_keys),
                         "sets", JSON_ARRAY(i, k->n_sets, json_integer(k->sets[i])), "hosts", names(d, k->ports, k->n_ports));
}

static void add_matrix(struct doc *d, const struct report_data *r)
{
        const struct matrix *m = &r->matrix;
        bool truncated;
        json_t *cells = json_cells(d, m, &truncated);

        doc_add(d, d->root, "{s:o, s:o, s:b, s:o, s:o}", "sets", JSON_ARRAY(i, m->n, set_object(d, m, (uint32_t) i)), "cells", cells,
                "truncated", truncated, "kinds", JSON_ARRAY(i, r->n_kinds, kind_object(d, &r->kinds[i])),
                "unknown", json_unknown(d, r));
}

/* --- partitions ------------------------------------------------------------------------------------------------------ */

/* The end of the members from i on with the same base and membership. */
static size_t end_of_members(const struct report_data *r, size_t i)
{
        size_t end = i;

        while (end < r->n_members && r->members[end].base == r->members[i].base &&
               r->members[end].membership == r->members[i].membership)
                end++;
        return end;
}

static size_t count_lists(const struct report_data *r)
{
        size_t n = 0;

        for (size_t i = 0; i < r->n_members; i = end_of_members(r, i))
                n++;
        return n;
}

static json_t *member_object(struct doc *d, const struct report_member *members, size_t n, size_t max)
{
        uint32_t *ports = arena_new_array(d->ctx->arena, uint32_t, n);

        if (!ports)
                return NULL;
        for (size_t i = 0; i < n; i++)
                ports[i] = members[i].port;
        return json_pack("{s:s, s:i, s:o}", "membership", membership_to_string(members->membership), "ports", (int) n,
                         "who", hostlist_of(d, ports, (uint32_t) n, max));
}

static json_t *json_partitions(struct doc *d, const struct report_data *r)
{
        size_t max = MAX(MAX_LISTS / MAX(count_lists(r), (size_t) 1), (size_t) MIN_LIST), i = 0;
        json_t *array = json_array();

        for (uint16_t base = partitions_next(d->ctx, &r->partitions, 1); base > 0;
             base = partitions_next(d->ctx, &r->partitions, base + 1u)) {
                json_t *o = json_partition(d, &r->partitions, base), *members = json_array();

                for (size_t end; i < r->n_members && r->members[i].base == base; i = end) {
                        end = end_of_members(r, i);
                        doc_append(d, members, member_object(d, &r->members[i], end - i, max));
                }
                doc_add(d, o, "{s:o}", "members", members);
                doc_append(d, array, o);
        }
        return array;
}

/* --- leases ---------------------------------------------------------------------------------------------------------- */

static struct seen_lease seen_lease_of(struct context *ctx, const struct lease *lease)
{
        const struct origin *owner = &lease->owner;

        return (struct seen_lease) {
                .id = lease->id, .pool = lease->wish.pool, .state = lease_state_to_string(lease->state), .p_key = lease->base,
                .membership = membership_to_string(lease->membership),
                .owner = *owner->user ? owner->user : output_format(ctx, "%" PRIu32, owner->uid),
                .created = lease->created * USEC_PER_SEC, .updated = lease->updated * USEC_PER_SEC,
                .ends = lease->ends * USEC_PER_SEC, .why = lease->why, .n_members = lease_n_wanted(lease),
                .n_confirmed = lease_n_confirmed(lease), .is_open = lease->is_open, .is_kept = lease->is_kept,
                .ip_over_ib = lease->ip_over_ib, .mtu = lease->qos.mtu, .service_level = lease->qos.service_level,
                .rate_limit = lease->qos.rate,
        };
}

static bool is_wanted(const struct lease_member *m)
{
        return !m->is_leaving && m->state != LEASE_MEMBER_LEFT_OUT;
}

/* Those with this membership whose ports are in the fabric. */
static void append_members(struct doc *d, const struct lease *lease, enum membership membership, size_t max, json_t *array)
{
        struct report_member *members = arena_new_array(d->ctx->arena, struct report_member, lease->n_members);
        size_t n = 0;

        for (uint32_t i = 0; members && i < lease->n_members; i++) {
                const struct lease_member *m = &lease->members[i];
                uint32_t port = subnet_find_endport(d->ctx->subnet, m->port);

                if (is_wanted(m) && m->membership == membership && port != SUBNET_NONE)
                        members[n++] = (struct report_member) { lease->base, membership, port };
        }
        if (n > 0 || !members)
                doc_append(d, array, members ? member_object(d, members, n, max) : NULL);
}

/* A hostlist of the members whose ports are not in the fabric, by the names that the lease has. */
static json_t *json_absent(struct doc *d, const struct lease *lease, size_t max)
{
        const char **labels = arena_new_array(d->ctx->arena, const char *, lease->n_members);
        size_t n = 0;

        for (uint32_t i = 0; labels && i < lease->n_members; i++) {
                const struct lease_member *m = &lease->members[i];

                if (is_wanted(m) && subnet_find_endport(d->ctx->subnet, m->port) == SUBNET_NONE)
                        labels[n++] = m->name;
        }
        return labels ? cut(d, fold_names(d->ctx->arena, labels, n), max) : NULL;
}

static json_t *lease_object(struct doc *d, const struct lease *lease, size_t max)
{
        const struct seen_lease seen = seen_lease_of(d->ctx, lease);
        json_t *o = json_lease(d, &seen, true), *members = json_array();

        append_members(d, lease, MEMBERSHIP_LIMITED, max, members);
        append_members(d, lease, MEMBERSHIP_FULL, max, members);
        doc_add(d, o, "{s:o, s:o}", "members", members, "absent", json_absent(d, lease, max));
        return o;
}

static json_t *json_leases(struct doc *d, const struct report_data *r)
{
        size_t n = 0;
        const struct lease *const *leases = r->stored ? leases_list(r->stored->leases, &n) : NULL;

        return r->stored ? JSON_ARRAY(i, n, lease_object(d, leases[i], MAX(MAX_LISTS / MAX(n, (size_t) 1), (size_t) MIN_LIST))) :
                           json_null();
}

/* --- the rest -------------------------------------------------------------------------------------------------------- */

/* What is stored of a generation. */
static json_t *generation_object(const struct stored_generation *g)
{
        return json_pack("{s:I, s:o}", "generation", (json_int_t) g->number, "time", json_seconds(g->time));
}

static json_t *json_history(const struct report_data *r)
{
        if (!r->stored)
                return json_null();
        return JSON_ARRAY(i, r->stored->history.n, generation_object(&r->stored->history.items[i]));
}

/* Whether the policy is in force; null: not known. */
static json_t *is_in_force(const struct context *ctx, const struct report_data *r)
{
        if (!r->stored || !r->stored->policy)
                return json_null();
        return json_boolean(generation_has_policy(ctx->files, r->stored->policy, r->stored->n_policy));
}

static json_t *json_policy(struct doc *d, const struct report_data *r)
{
        const struct policy *p = d->ctx->policy;

        if (!p)
                return json_null();
        return json_pack("{s:o, s:i, s:o}", "file", doc_text(p->file), "partitions", p->n_partitions, "in_force", is_in_force(d->ctx, r));
}

static json_t *number_or_null(bool is_known, size_t n)
{
        return is_known ? json_integer((json_int_t) n) : json_null();
}

static void add_verdict(struct doc *d, const struct report_data *r)
{
        const struct verification *v = r->verification;
        size_t n_held;

        (void) held_list_items(r->held, &n_held);
        doc_add(d, d->root, "{s:{s:i, s:i, s:i, s:o, s:i, s:i, s:o, s:o}}", "counts", "endports", r->n_endports, "switches",
                r->n_switches, "switch_ports", r->n_switch_ports, "differ", number_or_null(v, v ? v->n_differ : 0), "unreachable", r->unreachable.n, "silent", r->n_silent,
                "frozen", number_or_null(d->ctx->plan, r->frozen.n), "held", number_or_null(r->held, n_held));
        doc_add(d, d->root, "{s:o, s:o, s:o, s:o, s:o}", "differ", v ? fold_differences(d, v) : json_null(), "unreachable", json_not_read(d, &r->unreachable),
                "silent", json_silent(d, r->n_silent), "frozen", d->ctx->plan ? json_frozen(d, &r->frozen) : json_null(),
                "held", r->held ? json_held(d, r->held) : json_null());
}

static void add_daemon(struct doc *d, const struct report_data *r)
{
        static const char *const states[] = {
                [REPORT_DAEMON_RUNNING] = "running", [REPORT_DAEMON_ABSENT] = "absent", [REPORT_DAEMON_SILENT] = "silent",
                [REPORT_DAEMON_NOT_ASKED] = "not-asked",
        };
        bool runs = r->daemon_state == REPORT_DAEMON_RUNNING;

        doc_add(d, d->root, "{s:s, s:o}", "daemon_state", states[r->daemon_state],
                "daemon", runs ? json_daemon_status(d, &r->daemon, UINT64_MAX) : json_null());
        if (runs)
                json_violations(d, &r->violations);
        else
                doc_add(d, d->root, "{s:n, s:n, s:n, s:n}", "since", "counted_since", "records", "violations");
}

void report_json(struct doc *d, const struct report_data *r)
{
        const struct local_port *port = &d->ctx->port.lp;

        doc_add(d, d->root, "{s:o, s:s, s:o, s:o, s:i}", "time", doc_time(r->made), "version", PACKAGE_VERSION, "host", doc_text(r->host),
                "device", doc_text(port->ca), "port", (int) port->port);
        doc_add(d, d->root, "{s:o, s:o}", "policy", json_policy(d, r), "generation",
                doc_number(r->stored ? r->stored->generation : 0));
        add_verdict(d, r);
        add_matrix(d, r);
        doc_add(d, d->root, "{s:o, s:o, s:o, s:o}", "partitions", json_partitions(d, r), "leases", json_leases(d, r),
                "tables", json_tables(d, &r->read), "history", json_history(r));
        add_daemon(d, r);
}
