/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/violations.h"

#include <errno.h>
#include <string.h>

#include "violations/counter_samples.h"
#include "violations/report_scheduler.h"

DEFINE_WORDS(violation_source_to_string, enum violation_source, "unknown",
             [VIOLATION_P_KEY_VIOLATIONS] = "p_key_violations", [VIOLATION_RCV_CONSTRAINT] = "port_rcv_constraint_errors",
             [VIOLATION_XMIT_CONSTRAINT] = "port_xmit_constraint_errors", [VIOLATION_BAD_PKEY_CNTR] = "bad_pkey_cntr",
             [VIOLATION_NOTICE_257] = "trap_257", [VIOLATION_NOTICE_258] = "trap_258", [VIOLATION_NOTICE_259] = "trap_259")

struct violations {
        struct violation_table table;
        struct counter_samples samples;
        struct report_scheduler scheduler;
        const struct subnet *subnet;     /* borrowed, as of violations_set_observed() */
        const struct observed *observed;
        uint64_t totals[VIOLATION_N_SOURCES];
        const struct violation_host *unknown; /* a reference; stands for the host where another one than the known one may
                                               * have sent the packets */
};

void violations_set_config(struct violations *v, const struct violations_config *config)
{
        report_scheduler_set_config(&v->scheduler, config);
}

struct violations *violations_new(const struct violations_config *config)
{
        struct violations *v = calloc(1, sizeof(*v));

        if (!v)
                return NULL;
        v->unknown = violation_host_copy(&(struct violation_host) {});
        if (!v->unknown) {
                free(v);
                return NULL;
        }
        violation_table_init(&v->table);
        counter_samples_init(&v->samples);
        v->scheduler = (struct report_scheduler) { .table = &v->table, .ends = USEC_INFINITY };
        violations_set_config(v, config);
        return v;
}

struct violations *violations_free(struct violations *v)
{
        if (v) {
                violation_table_done(&v->table);
                counter_samples_done(&v->samples);
                violation_host_unref(v->unknown);
                free(v);
        }
        return NULL;
}

/* --- counting ------------------------------------------------------------------------------------------------------- */

/* The first violation of a record need not be the first one of its host: there is another record for each name of the host, and for
 * each place where it was plugged in. */
static void set_first(struct violations *v, struct violation_record *r, usec_t now, usec_t since)
{
        struct first_counted this = { now, since }, *of_host = &this;
        struct port_samples *p = NULL;

        if (r->host && r->host->guid.v != 0 && !violation_source_is_notice(r->source))
                p = counter_samples_find(&v->samples, violation_host_port(r->host));
        if (p)
                of_host = violation_port_equal(p->port, r->port) ? &p->own[r->source] : &p->at_leaf[r->source];
        if (of_host->first == 0)
                *of_host = this;
        r->first = now;
        r->first_since = since;
        r->host_first = of_host->first;
        r->host_first_since = of_host->since;
}

void violations_set_observed(struct violations *v, const struct subnet *subnet, const struct observed *observed)
{
        v->subnet = subnet;
        v->observed = observed;
}

static enum violation_filter filter_of(const struct violations *v, struct violation_port port, enum violation_source source)
{
        uint32_t i = v->subnet ? subnet_find_port_of(v->subnet, port.node_guid, port.number) : SUBNET_NONE;

        if (i == SUBNET_NONE)
                return VIOLATION_FILTER_UNKNOWN;
        return observed_filter(v->subnet, v->observed, i, source == VIOLATION_XMIT_CONSTRAINT) == OBSERVED_FILTER_ON
                       ? VIOLATION_FILTER_ON : VIOLATION_FILTER_NOT_ALWAYS;
}

/* since: when it was last sampled without these. */
static void count(struct violations *v, usec_t now, uint32_t entry, uint64_t n, usec_t since, enum violation_filter filter)
{
        struct violation_record *r = &v->table.entries[entry].record;

        r->filter = MAX(r->filter, filter);
        r->episode_filter = r->episode == 0 ? filter : MAX(r->episode_filter, filter);
        report_scheduler_count(&v->scheduler, now, entry, n, since);
        if (r->total == 0)
                set_first(v, r, now, since);
        r->total = add_capped(r->total, n);
        r->last = now;
        v->totals[r->source] = add_capped(v->totals[r->source], n);
}

/* The record that the next sample of this counter belongs to. */
static struct violation_record key_of(const struct violations *v, const struct port_samples *p, enum violation_source source)
{
        return (struct violation_record) {
                .port = p->port,
                .source = source,
                .host = p->host && !p->doubted[source] ? p->host : v->unknown,
        };
}

/* The counter is not at its maximum, whichever host is behind the port now. If the record had to make room, the entry may be one of
 * another counter. */
static void clear_saturated(struct violations *v, const struct port_samples *p, enum violation_source source)
{
        uint32_t entry = p->saturated[source];
        struct violation_record *r = entry < v->table.n ? &v->table.entries[entry].record : NULL;

        if (r && r->source == source && violation_port_equal(r->port, p->port))
                r->saturated = false;
}

/* Applies a sample to its record, which is added only if something was counted or the counter reached its maximum. filter: at this
 * sample. 0 or -ENOMEM. */
static int update_record(struct violations *v, usec_t now, struct port_samples *p, enum violation_source source, unsigned bits,
                         const struct counter_change *change, enum violation_filter filter)
{
        const struct violation_record key = key_of(v, p, source);
        bool is_news = change->count > 0 || change->newly_saturated;
        uint32_t entry = is_news ? violation_table_take(&v->table, &key) : violation_table_find(&v->table, &key);
        struct violation_entry *e;

        if (!change->saturated || change->newly_saturated)
                clear_saturated(v, p, source);
        if (entry == VIOLATION_NONE)
                return is_news ? -ENOMEM : 0;
        e = &v->table.entries[entry];
        if (change->count > 0)
                count(v, now, entry, change->count, change->since, MAX(filter, p->filter[source]));
        if (change->newly_saturated) {
                e->record.saturated = true;
                p->saturated[source] = entry;
        }
        e->record.bits = bits;
        e->report_saturated = e->report_saturated || change->newly_saturated;
        if (is_news)
                report_scheduler_consider(&v->scheduler, entry);
        return 0;
}

int violations_see_counter(struct violations *v, usec_t now, struct violation_port port, enum violation_source source,
                           unsigned bits, uint64_t value)
{
        enum violation_filter filter;
        struct port_samples *p;
        struct violation_counter c;
        struct counter_change change;
        int r;

        if (source >= VIOLATION_N_COUNTERS || bits < 1 || bits > 64)
                return -EINVAL;
        p = counter_samples_take(&v->samples, port);
        if (!p)
                return -ENOMEM;
        c = p->counters[source];
        change = violation_counter_see(&c, now, bits, value);
        filter = filter_of(v, port, source);
        r = update_record(v, now, p, source, bits, &change, filter);
        if (r < 0)
                return r;
        p->counters[source] = c;
        p->filter[source] = filter;
        p->doubted[source] = false;
        return change.saturated;
}

void violations_counter_cleared(struct violations *v, struct violation_port port, enum violation_source source)
{
        struct port_samples *p = counter_samples_find(&v->samples, port);

        if (!p || source >= VIOLATION_N_COUNTERS)
                return;
        violation_counter_cleared(&p->counters[source]);
        clear_saturated(v, p, source);
}

/* --- hosts ---------------------------------------------------------------------------------------------------------- */

/* The host of this port has moved away: what it sent is reported, and then its episodes are over. */
static void end_stay(struct violations *v, struct port_samples *p)
{
        for (enum violation_source s = 0; s < VIOLATION_N_COUNTERS; s++) {
                const struct violation_record key = { .port = p->port, .source = s, .host = p->host };
                uint32_t entry = violation_table_find(&v->table, &key);

                if (entry != VIOLATION_NONE)
                        report_scheduler_end_stay(&v->scheduler, entry);
        }
}

void violations_doubt_host(struct violations *v, struct violation_port port, enum violation_source source)
{
        struct port_samples *p = counter_samples_find(&v->samples, port);

        if (p && source < VIOLATION_N_COUNTERS)
                p->doubted[source] = p->counters[source].bits > 0;
}

/* True if nothing is new. A new LID is not worth a new record, but is shown from then on. */
static bool is_same(const struct violation_host *a, const struct violation_host *b)
{
        return violation_compare_hosts(a, b) == 0 && a->lid.v == b->lid.v && a->number == b->number &&
               strcmp(a->name ?: "", b->name ?: "") == 0;
}

/* True if it is another host, or the same one plugged in elsewhere. */
static bool has_moved(const struct violation_host *from, const struct violation_host *to)
{
        return from->guid.v != to->guid.v || strcmp(from->at_switch ?: "", to->at_switch ?: "") != 0;
}

int violations_set_host(struct violations *v, struct violation_port port, const struct violation_host *host)
{
        struct port_samples *p = counter_samples_find(&v->samples, port) ?: counter_samples_take(&v->samples, port);
        const struct violation_host *copy;

        if (!p)
                return -ENOMEM;
        p->is_empty = false;
        if (p->host && is_same(p->host, host))
                return 0;
        copy = violation_host_copy(host);
        if (p->host && has_moved(p->host, host))
                end_stay(v, p);
        if (p->host && p->host->guid.v != host->guid.v)
                counter_samples_doubt(p);
        violation_host_unref(p->host);
        p->host = copy;
        return copy ? 0 : -ENOMEM;
}

static int set_host_of_snapshot(struct violations *v, struct arena *a, const struct subnet *s, uint32_t port, uint32_t endport)
{
        const struct violation_port at = { subnet_port_node(s, &s->ports[port])->guid, s->ports[port].number };
        const struct port_samples *p = counter_samples_find(&v->samples, at);
        bool is_known = p && p->host && p->host->guid.v == s->ports[endport].guid.v;
        struct violation_host host;
        int r;

        if (is_known && subnet_port_is_incomplete(s, &s->ports[endport]))
                return 0; /* a node that did not answer everything keeps the name that it had */
        r = violation_host_open(a, s, endport, &host);
        if (r < 0)
                return r;
        if (is_known && !host.at_switch) { /* the switch did not answer, which means nothing for the host */
                host.at_switch = p->host->at_switch;
                host.switch_name = p->host->switch_name;
                host.switch_port = p->host->switch_port;
        }
        return violations_set_host(v, at, &host);
}

static bool is_own_port(const struct port_samples *p)
{
        return p->host && violation_port_equal(p->port, violation_host_port(p->host));
}

/* Doubts the samples of ports that have no host in this snapshot. The counters of a host's own port are its own, wherever it is. */
static void doubt_empty(struct violations *v, const struct subnet *s)
{
        for (uint32_t i = 0; i < v->samples.n; i++) {
                struct port_samples *p = &v->samples.ports[i];
                uint32_t port = subnet_find_port_of(s, p->port.node_guid, p->port.number);

                if (is_own_port(p))
                        continue;
                p->is_empty = port == SUBNET_NONE ||
                              (s->ports[port].role == PORT_SWITCH_EXTERNAL && s->ports[port].peer == SUBNET_NONE);
                if (p->is_empty)
                        counter_samples_doubt(p);
        }
}

int violations_set_subnet(struct violations *v, const struct subnet *subnet)
{
        _cleanup_arena_ struct arena *a = arena_new();
        int r = a ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < subnet->n_ports && r == 0; i++) {
                const struct subnet_port *p = &subnet->ports[i];
                uint32_t endport = p->role == PORT_SWITCH_EXTERNAL ? p->peer : i;

                if (endport != SUBNET_NONE)
                        r = set_host_of_snapshot(v, a, subnet, i, endport);
        }
        doubt_empty(v, subnet);
        return r;
}

/* --- notices -------------------------------------------------------------------------------------------------------- */

int violations_see_notice(struct violations *v, usec_t now, struct violation_port port, const struct notice *notice,
                          const struct violation_ends *ends)
{
        _cleanup_host_ const struct violation_host *from = violation_host_copy(&ends->from), *to = violation_host_copy(&ends->to);
        const struct port_samples *p = counter_samples_find(&v->samples, port);
        struct violation_record key = { .port = port, .host = p && p->host && !p->is_empty ? p->host : v->unknown,
                                        .from = from, .to = to, .notice = *notice };
        struct violation_entry *e;
        uint32_t entry;

        if (notice->trap < NOTICE_P_KEY || notice->trap > NOTICE_SWITCH_P_KEY)
                return -EINVAL;
        if (!from || !to)
                return -ENOMEM;
        key.source = (enum violation_source) (VIOLATION_NOTICE_257 + notice->trap - NOTICE_P_KEY);
        entry = violation_table_take(&v->table, &key);
        if (entry == VIOLATION_NONE)
                return -ENOMEM;
        e = &v->table.entries[entry];
        e->record.notice = *notice;
        e->record.from_conflicts = ends->from_conflicts;
        count(v, now, entry, 1, 0, VIOLATION_FILTER_UNKNOWN);
        report_scheduler_consider(&v->scheduler, entry);
        return 0;
}

/* --- what comes out ------------------------------------------------------------------------------------------------- */

const struct violation_record *violations_records(struct violations *v, uint32_t *ret_n)
{
        struct violation_table *t = &v->table;

        *ret_n = t->n;
        for (uint32_t i = 0; i < t->n; i++)
                t->sorted[i] = t->entries[i].record;
        SORT(t->sorted, t->n, violation_compare_records);
        return t->sorted;
}

uint64_t violations_total(const struct violations *v, enum violation_source source)
{
        return source < VIOLATION_N_SOURCES ? v->totals[source] : 0;
}

bool violations_next_report(struct violations *v, usec_t now, struct violation_report *ret)
{
        return report_scheduler_next(&v->scheduler, now, ret);
}

usec_t violations_due(const struct violations *v)
{
        return report_scheduler_due(&v->scheduler);
}
