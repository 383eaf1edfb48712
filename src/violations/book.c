/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "violations/book.h"

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
        book_init(v);
        violations_set_config(v, config);
        return v;
}

struct violations *violations_free(struct violations *v)
{
        if (v) {
                book_done(v);
                free(v);
        }
        return NULL;
}

static void begin_episode(struct book_entry *e, usec_t now)
{
        e->record.episode_began = now;
        e->interval_began = now;
        e->in_interval = 0;
        e->told = e->in_sum = false;
}

/* since: when it was last looked at without these. */
static void count(struct violations *v, usec_t now, uint32_t entry, uint64_t n, usec_t since)
{
        struct book_entry *e = &v->entries[entry];
        struct violation_record *r = &e->record;

        if (r->episode == 0)
                begin_episode(e, now);
        if (now - e->interval_began >= v->config.interval) {
                e->interval_began = now;
                e->in_interval = 0;
        }
        if (r->unreported == 0)
                e->since = e->told ? e->told_at : since;
        e->in_interval = book_add(e->in_interval, n);
        r->unreported = book_add(r->unreported, n);
        r->episode = book_add(r->episode, n);
        if (r->total == 0)
                r->first = now;
        r->total = book_add(r->total, n);
        r->last = now;
        v->totals[r->source] = book_add(v->totals[r->source], n);
        book_set_life(v, entry, LIFE_ACTIVE);
}

/* What a look says to the record. It is made only if there is something to say. 0 or -ENOMEM. */
static int note_look(struct violations *v, usec_t now, struct violation_port port, enum violation_source source,
                     unsigned bits, const struct violation_look *look)
{
        bool is_news = look->count > 0 || look->newly_saturated;
        uint32_t entry = is_news ? book_take(v, port, source, NULL) : book_find(v, port, source, NULL);
        struct book_entry *e;

        if (entry == VIOLATION_NONE)
                return is_news ? -ENOMEM : 0;
        e = &v->entries[entry];
        if (look->count > 0)
                count(v, now, entry, look->count, look->since);
        e->record.saturated = look->saturated;
        e->record.bits = bits;
        e->say_saturated = e->say_saturated || look->newly_saturated;
        if (is_news)
                book_wants_telling(v, entry);
        return 0;
}

int violations_see_counter(struct violations *v, usec_t now, struct violation_port port, enum violation_source source,
                           unsigned bits, uint64_t value)
{
        struct violation_port_looks *p;
        struct violation_counter c;
        struct violation_look look;
        int r;

        if (source >= VIOLATION_N_COUNTERS || bits < 1 || bits > 64)
                return -EINVAL;
        p = violation_looks_take(&v->looks, port);
        if (!p)
                return -ENOMEM;
        c = p->counters[source];
        violation_counter_see(&c, now, bits, value, &look);
        r = note_look(v, now, port, source, bits, &look);
        if (r < 0)
                return r;
        p->counters[source] = c;
        return look.saturated;
}

void violations_counter_cleared(struct violations *v, struct violation_port port, enum violation_source source)
{
        struct violation_port_looks *p = violation_looks_find(&v->looks, port);
        uint32_t entry = book_find(v, port, source, NULL);

        if (!p || source >= VIOLATION_N_COUNTERS)
                return;
        violation_counter_cleared(&p->counters[source]);
        if (entry != VIOLATION_NONE)
                v->entries[entry].record.saturated = false;
}

int violations_see_notice(struct violations *v, usec_t now, struct violation_port port, const struct notice *notice)
{
        enum violation_source source;
        uint32_t entry;

        if (notice->trap < 257 || notice->trap > 259)
                return -EINVAL;
        source = (enum violation_source) (VIOLATION_NOTICE_257 + notice->trap - 257);
        entry = book_take(v, port, source, notice);
        if (entry == VIOLATION_NONE)
                return -ENOMEM;
        v->entries[entry].record.notice = *notice;
        count(v, now, entry, 1, 0);
        book_wants_telling(v, entry);
        return 0;
}

const struct violation_record *violations_records(struct violations *v, uint32_t *ret_n)
{
        *ret_n = v->n;
        if (v->n == 0)
                return v->sorted;
        for (uint32_t i = 0; i < v->n; i++)
                v->sorted[i] = v->entries[i].record;
        qsort(v->sorted, v->n, sizeof(*v->sorted), book_compare_records);
        return v->sorted;
}

uint64_t violations_total(const struct violations *v, enum violation_source source)
{
        return source < VIOLATION_N_SOURCES ? v->totals[source] : 0;
}
