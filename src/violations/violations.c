/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "violations/violation_table.h"

const char *violation_source_to_string(enum violation_source s)
{
        static const char *const names[VIOLATION_N_SOURCES] = {
                [VIOLATION_P_KEY_VIOLATIONS] = "p_key_violations",
                [VIOLATION_RCV_CONSTRAINT] = "port_rcv_constraint_errors",
                [VIOLATION_XMIT_CONSTRAINT] = "port_xmit_constraint_errors",
                [VIOLATION_BAD_PKEY_CNTR] = "bad_pkey_cntr",
                [VIOLATION_NOTICE_257] = "trap_257",
                [VIOLATION_NOTICE_258] = "trap_258",
                [VIOLATION_NOTICE_259] = "trap_259",
        };

        return s < VIOLATION_N_SOURCES ? names[s] : "unknown";
}

void violations_set_config(struct violations *v, const struct violations_config *config)
{
        v->config = *config;
        v->config.interval = MAX(config->interval, UINT64_C(1));
        v->config.threshold = MAX(config->threshold, UINT64_C(1));
}

struct violations *violations_new(const struct violations_config *config)
{
        struct violations *v = calloc(1, sizeof(*v));

        if (!v)
                return NULL;
        violation_table_init(v);
        violations_set_config(v, config);
        return v;
}

struct violations *violations_free(struct violations *v)
{
        if (v) {
                violation_table_done(v);
                free(v);
        }
        return NULL;
}

static void begin_episode(struct violation_entry *e, usec_t now)
{
        e->record.episode_began = now;
        e->interval_began = now;
        e->in_interval = 0;
        e->is_reported = e->in_sum = false;
}

/* The first time of a record may not be the host's: it may have another name now, or be plugged in elsewhere. */
static void note_first(struct violations *v, struct violation_record *r, usec_t now, usec_t since)
{
        struct first_counted this = { now, since }, *of_host = &this;
        struct port_samples *p = NULL;

        if (r->host && r->host->guid.v != 0 && !violation_source_is_notice(r->source))
                p = counter_samples_find(&v->samples, violation_host_port(r->host));
        if (p)
                of_host = violation_port_equal(p->port, r->port) ? &p->own[r->source] : &p->beside[r->source];
        if (of_host->first == 0)
                *of_host = this;
        r->first = now;
        r->first_since = since;
        r->host_first = of_host->first;
        r->host_first_since = of_host->since;
}

/* since: when it was last sampled without these. */
static void count(struct violations *v, usec_t now, uint32_t entry, uint64_t n, usec_t since)
{
        struct violation_entry *e = &v->entries[entry];
        struct violation_record *r = &e->record;

        if (r->episode == 0)
                begin_episode(e, now);
        if (now - e->interval_began >= v->config.interval) {
                e->interval_began = now;
                e->in_interval = 0;
        }
        if (r->unreported == 0)
                e->since = e->is_reported ? e->reported_at : since;
        e->in_interval = add_capped(e->in_interval, n);
        r->unreported = add_capped(r->unreported, n);
        r->episode = add_capped(r->episode, n);
        if (r->total == 0)
                note_first(v, r, now, since);
        r->total = add_capped(r->total, n);
        r->last = now;
        v->totals[r->source] = add_capped(v->totals[r->source], n);
        violation_table_set_life(v, entry, LIFE_ACTIVE);
}

/* Whose record the next sample of this counter goes to. */
static struct violation_key key_of(const struct port_samples *p, enum violation_source source)
{
        return (struct violation_key) {
                .port = p->port,
                .source = source,
                .host = !p->host ? NULL : p->doubted[source] ? &violation_nobody : &p->host->host,
        };
}

/* What a sample changes in the record. It is made only if there is something to say. 0 or -ENOMEM. */
static int note_change(struct violations *v, usec_t now, const struct port_samples *p, enum violation_source source,
                       unsigned bits, const struct counter_change *change)
{
        const struct violation_key key = key_of(p, source);
        bool is_news = change->count > 0 || change->newly_saturated;
        uint32_t entry = is_news ? violation_table_take(v, &key) : violation_table_find(v, &key);
        struct violation_entry *e;

        if (entry == VIOLATION_NONE)
                return is_news ? -ENOMEM : 0;
        e = &v->entries[entry];
        if (is_news && !p->doubted[source])
                violation_entry_set_hosts(e, shared_host_ref(p->host), NULL, NULL);
        if (change->count > 0)
                count(v, now, entry, change->count, change->since);
        e->record.saturated = change->saturated;
        e->record.bits = bits;
        e->report_saturated = e->report_saturated || change->newly_saturated;
        if (is_news)
                report_scheduler_update(v, entry);
        return 0;
}

int violations_see_counter(struct violations *v, usec_t now, struct violation_port port, enum violation_source source,
                           unsigned bits, uint64_t value)
{
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
        violation_counter_see(&c, now, bits, value, &change);
        r = note_change(v, now, p, source, bits, &change);
        if (r < 0)
                return r;
        p->counters[source] = c;
        p->doubted[source] = false;
        return change.saturated;
}

void violations_counter_cleared(struct violations *v, struct violation_port port, enum violation_source source)
{
        struct port_samples *p = counter_samples_find(&v->samples, port);
        struct violation_key key;
        uint32_t entry;

        if (!p || source >= VIOLATION_N_COUNTERS)
                return;
        violation_counter_cleared(&p->counters[source]);
        key = key_of(p, source);
        entry = violation_table_find(v, &key);
        if (entry != VIOLATION_NONE)
                v->entries[entry].record.saturated = false;
}

/* --- who is behind a port -------------------------------------------------------------------------------------------- */

const struct violation_host violation_nobody = {};

struct shared_host *shared_host_new(const struct violation_host *host)
{
        struct violation_host copy = *host;
        const char **strings[] = { &copy.label, &copy.name, &copy.node, &copy.device, &copy.at_switch, &copy.switch_name };
        struct shared_host *h;
        size_t size = sizeof(*h);
        char *end;

        for (size_t i = 0; i < ELEMENTS(strings); i++)
                size += *strings[i] ? strlen(*strings[i]) + 1 : 0;
        h = calloc(1, size);
        if (!h)
                return NULL;
        end = h->strings;
        for (size_t i = 0; i < ELEMENTS(strings); i++)
                if (*strings[i]) {
                        const char *from = *strings[i];

                        *strings[i] = end;
                        end = stpcpy(end, from) + 1;
                }
        h->host = copy;
        h->n_refs = 1;
        return h;
}

struct shared_host *shared_host_ref(struct shared_host *h)
{
        if (h)
                h->n_refs++;
        return h;
}

struct shared_host *shared_host_unref(struct shared_host *h)
{
        assert(!h || h->n_refs > 0);
        if (h && --h->n_refs == 0)
                free(h);
        return NULL;
}

static const struct violation_host *set_host(struct shared_host **to, struct shared_host *host)
{
        shared_host_unref(*to);
        *to = host;
        return host ? &host->host : NULL;
}

void violation_entry_set_hosts(struct violation_entry *e, struct shared_host *host, struct shared_host *from,
                               struct shared_host *to)
{
        e->record.host = set_host(&e->host, host);
        e->record.from = set_host(&e->from, from);
        e->record.to = set_host(&e->to, to);
}

int violation_compare_hosts(const struct violation_host *a, const struct violation_host *b)
{
        if (!a || !b)
                return ORDER(!!a, !!b);
        return ORDER(a->guid.v, b->guid.v) ?: strcmp(a->label ?: "", b->label ?: "") ?:
               strcmp(a->at_switch ?: "", b->at_switch ?: "");
}

/* The host that was there has moved away: what it sent is reported, and then its episodes are over. */
static void end_stay(struct violations *v, struct port_samples *p)
{
        for (enum violation_source s = 0; s < VIOLATION_N_COUNTERS; s++) {
                uint32_t entry = violation_table_find(v, &(struct violation_key) { p->port, s, &p->host->host, NULL });
                struct violation_entry *e;

                if (entry == VIOLATION_NONE)
                        continue;
                e = &v->entries[entry];
                e->record.saturated = false;
                if (e->life != LIFE_ACTIVE)
                        continue;
                violation_table_set_life(v, entry, LIFE_MOVED);
                if (e->is_reported && e->report_state == REPORT_COOLING && e->record.unreported > 0)
                        violation_table_set_report_state(v, entry, REPORT_DUE);
        }
}

void violations_doubt_host(struct violations *v, struct violation_port port, enum violation_source source)
{
        struct port_samples *p = counter_samples_find(&v->samples, port);

        if (p && source < VIOLATION_N_COUNTERS)
                p->doubted[source] = p->counters[source].seen;
}

/* Nothing of it is new; a new LID is not worth a new record, but is shown from then on. */
static bool is_same(const struct violation_host *a, const struct violation_host *b)
{
        return violation_compare_hosts(a, b) == 0 && a->lid.v == b->lid.v && a->number == b->number &&
               strcmp(a->name ?: "", b->name ?: "") == 0;
}

/* It is another host, or it is plugged in elsewhere. */
static bool has_moved(const struct violation_host *from, const struct violation_host *to)
{
        return from->guid.v != to->guid.v || strcmp(from->at_switch ?: "", to->at_switch ?: "") != 0;
}

int violations_set_host(struct violations *v, struct violation_port port, const struct violation_host *host)
{
        struct port_samples *p = counter_samples_find(&v->samples, port) ?: counter_samples_take(&v->samples, port);
        struct shared_host *h;

        if (!p)
                return -ENOMEM;
        if (p->host && is_same(&p->host->host, host))
                return 0;
        h = shared_host_new(host);
        if (p->host && has_moved(&p->host->host, host))
                end_stay(v, p);
        if (p->host && p->host->host.guid.v != host->guid.v)
                counter_samples_doubt(p);
        shared_host_unref(p->host);
        p->host = h;
        return h ? 0 : -ENOMEM;
}

int violations_see_notice(struct violations *v, usec_t now, struct violation_port port, const struct notice *notice,
                          const struct violation_ends *ends)
{
        _cleanup_host_ struct shared_host *from = shared_host_new(&ends->from), *to = shared_host_new(&ends->to);
        const struct port_samples *p = counter_samples_find(&v->samples, port);
        struct violation_key key = { .port = port, .host = p && p->host ? &p->host->host : NULL, .notice = notice };
        struct violation_entry *e;
        uint32_t entry;

        if (notice->trap < 257 || notice->trap > 259)
                return -EINVAL;
        if (!from || !to)
                return -ENOMEM;
        key.source = (enum violation_source) (VIOLATION_NOTICE_257 + notice->trap - 257);
        key.from = &from->host;
        key.to = &to->host;
        entry = violation_table_take(v, &key);
        if (entry == VIOLATION_NONE)
                return -ENOMEM;
        e = &v->entries[entry];
        e->record.notice = *notice;
        e->record.from_conflicts = ends->from_conflicts;
        violation_entry_set_hosts(e, p ? shared_host_ref(p->host) : NULL, shared_host_ref(from), shared_host_ref(to));
        count(v, now, entry, 1, 0);
        report_scheduler_update(v, entry);
        return 0;
}

const struct violation_record *violations_records(struct violations *v, uint32_t *ret_n)
{
        *ret_n = v->n;
        if (v->n == 0)
                return v->sorted;
        for (uint32_t i = 0; i < v->n; i++)
                v->sorted[i] = v->entries[i].record;
        qsort(v->sorted, v->n, sizeof(*v->sorted), violation_compare_records);
        return v->sorted;
}

uint64_t violations_total(const struct violations *v, enum violation_source source)
{
        return source < VIOLATION_N_SOURCES ? v->totals[source] : 0;
}
