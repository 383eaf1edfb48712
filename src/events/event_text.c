/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/event_text.h"

#include <stdarg.h>
#include <string.h>

#include "events/held_text.h"
#include "util/hash.h"
#include "util/text.h"
#include "watch/rewrites.h"

#define EXAMPLES   4
#define TEXT_SIZE  512
#define MAX_P_KEYS 8

/* A line of bounded length that is put together piece by piece. */
struct line {
        char text[TEXT_SIZE];
        size_t n;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *l, const char *format, ...)
{
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(l->text + l->n, sizeof(l->text) - l->n, format, ap);
        va_end(ap);
        if (n > 0)
                l->n = MIN(l->n + (size_t) n, sizeof(l->text) - 1);
}

/* --- findings --------------------------------------------------------------------------------------------------- */

void event_text_findings(struct log *l, const struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++)
                log_add_finding(l, LOG_EVENT_FINDING, 0, &findings->items[i]);
}

static enum log_event event_of_finding(const struct finding *f)
{
        if (f->code == FINDING_PLAN_INDEX0)
                return LOG_EVENT_INDEX0_WRONG;
        if (f->code == FINDING_PLAN_ENFORCEMENT_OFF || f->code == FINDING_PLAN_ENFORCEMENT_SKIPPED)
                return LOG_EVENT_ENFORCEMENT_OFF;
        if (f->code == FINDING_PLAN_BESIDE_SM)
                return LOG_EVENT_BESIDE_SM;
        return LOG_EVENT_FINDING;
}

void event_text_plan_findings(struct log *l, struct generation *g, const struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *f = &findings->items[i];

                /* the watch says which ports do not answer, and the freezer which are frozen, once for each time */
                if (f->code != FINDING_PLAN_UNREACHABLE && f->code != FINDING_PORT_FROZEN && generation_reports(g, f))
                        log_add_finding(l, event_of_finding(f), g->number, f);
        }
}

/* --- what a sweep found ----------------------------------------------------------------------------------------- */

static void add_p_keys(struct line *l, const char *word, const struct p_key *keys, uint32_t n)
{
        if (n == 0)
                return;
        line_add(l, "%s%s", l->n > 0 ? ", " : "", word);
        for (uint32_t i = 0; i < n && i < MAX_P_KEYS; i++)
                line_add(l, " 0x%04x", (unsigned) keys[i].v);
        if (n > MAX_P_KEYS)
                line_add(l, " and %u more", n - MAX_P_KEYS);
}

static void add_difference(struct line *l, const struct discrepancy *d)
{
        add_p_keys(l, "lacks", d->missing, d->n_missing);
        add_p_keys(l, "has unexpected", d->unexpected, d->n_unexpected);
        if (d->enforcement_differs)
                line_add(l, "%sits enforcement bits differ", l->n > 0 ? ", " : "");
}

static struct log_about about_event(const struct generation *g, const struct watch_event *e)
{
        return (struct log_about) {
                .generation = g ? g->number : 0,
                .node = e->label,
                .port_guid = e->port_guid,
                .lid = e->lid,
                .port = e->number,
        };
}

/* What is worth an entry, and in which mode. */
struct log_kind {
        enum watch_kind kind;
        enum log_event event;
        bool enforce, audit, standby;
        const char *sentence; /* after the port */
};

static const struct log_kind kinds_to_log[] = {
        { WATCH_NEW, LOG_EVENT_PORT_NEW, true, true, true, "is new in the fabric" },
        { WATCH_RETURNED, LOG_EVENT_PORT_RETURNED, true, true, true, "is in the fabric again" },
        { WATCH_GONE, LOG_EVENT_PORT_GONE, true, true, true, "is not discovered any more" },
        { WATCH_UNREACHABLE, LOG_EVENT_PORT_UNREACHABLE, true, true, true, "its P_Key table cannot be read" },
        { WATCH_BACK, LOG_EVENT_PORT_BACK, true, true, true, "its P_Key table can be read again" },
        { WATCH_DRIFTED, LOG_EVENT_DRIFT_FOUND, true, true, false, "another writer changed its P_Key table" },
        { WATCH_DIFFERS, LOG_EVENT_TABLE_DIFFERS, false, true, false, "its P_Key table is not as the policy says" },
        { WATCH_RIGHT, LOG_EVENT_TABLE_RIGHT, false, true, false, "its P_Key table is as the policy says again" },
        { WATCH_REPAIRED, LOG_EVENT_DRIFT_REPAIRED, true, true, false, "its P_Key table is as the policy says again" },
};

/* What M_Keys have to do with it. */
static const char *m_key_of_silent(const struct generation *g, struct guid port_guid)
{
        return m_key_source_to_string(m_keys_source(g ? g->m_keys : NULL, port_guid));
}

static void log_one(struct log *l, const struct log_kind *k, const struct generation *g, const struct watch_event *e)
{
        struct log_about about = about_event(g, e);
        struct p_key keys[2 * MAX_P_KEYS];
        struct line detail = {};

        if (e->differs) {
                uint32_t n_missing = MIN(e->differs->n_missing, (uint32_t) MAX_P_KEYS);
                uint32_t n_unexpected = MIN(e->differs->n_unexpected, (uint32_t) MAX_P_KEYS);

                add_difference(&detail, e->differs);
                if (n_missing > 0)
                        memcpy(keys, e->differs->missing, n_missing * sizeof(keys[0]));
                if (n_unexpected > 0)
                        memcpy(keys + n_missing, e->differs->unexpected, n_unexpected * sizeof(keys[0]));
                about.p_keys = keys;
                about.n_p_keys = n_missing + n_unexpected;
        }
        if (e->incomplete)
                line_add(&detail, "not asked: %s did not answer all of discovery", e->incomplete);
        else if (e->kind == WATCH_UNREACHABLE && e->failure == MAD_REFUSED)
                line_add(&detail, "status 0x%04x, %s", (unsigned) e->mad_status, mad_status_to_string(e->mad_status));
        else if (e->kind == WATCH_UNREACHABLE && e->failure == MAD_TIMED_OUT)
                line_add(&detail, "%s: " M_KEY_SILENCE_FORMAT, mad_outcome_to_string(e->failure),
                         m_key_of_silent(g, e->port_guid));
        else if (e->kind == WATCH_UNREACHABLE)
                line_add(&detail, "%s", mad_outcome_to_string(e->failure));
        log_add(l, k->event, &about, "%s (0x%016" PRIx64 "): %s%s%s%s", e->label, e->port_guid.v, k->sentence,
                detail.n > 0 ? " (" : "", detail.text, detail.n > 0 ? ")" : "");
}

static void log_many(struct log *l, const struct log_kind *k, const struct generation *g, const struct watch_event *events,
                     uint32_t n)
{
        struct log_about about = { .generation = g ? g->number : 0 };
        struct line examples = {};

        for (uint32_t i = 0; i < n && i < EXAMPLES; i++)
                line_add(&examples, "%s%s", i > 0 ? ", " : "", events[i].label);
        log_add(l, k->event, &about, "%u ports, among them %s: each %s", n, examples.text, k->sentence);
}

static void log_kind(struct log *l, const struct log_kind *k, const struct generation *g, const struct watch_event *events,
                     uint32_t n)
{
        if (n > EVENT_TEXT_MAX) {
                log_many(l, k, g, events, n);
                return;
        }
        for (uint32_t i = 0; i < n; i++)
                log_one(l, k, g, &events[i]);
}

/* What another partition manager did to a switch: one thing, and what it is most likely. */
static void log_rewrite(struct log *l, const struct generation *g, const struct subnet *subnet,
                        const struct watch_rewrite *w)
{
        const struct subnet_node *node = &subnet->nodes[w->node];
        char name[SUBNET_NAME_SIZE];
        struct log_about about = { .generation = g->number, .switch_name = subnet_node_name(node, name) };
        struct line what = {};

        add_p_keys(&what, "lost", w->lost, MIN(w->n_lost, (uint32_t) REWRITE_MAX_KEYS));
        add_p_keys(&what, "gained", w->gained, MIN(w->n_gained, (uint32_t) REWRITE_MAX_KEYS));
        if (w->n_lost > REWRITE_MAX_KEYS || w->n_gained > REWRITE_MAX_KEYS)
                line_add(&what, " and others");
        log_add(l, LOG_EVENT_TABLES_REWRITTEN, &about,
                      "%u ports on %s %s from one sweep to the next: another partition manager is at work, most likely OpenSM after "
                      "a reboot on that leaf; see pkeyd-opensm(7)", w->n_ports, about.switch_name, what.text);
}

/* Returns false if that is no matter here, and the ports are to be named one by one. */
static bool log_rewrites(struct log *l, const struct log_kind *drifted, const struct generation *g,
                         const struct subnet *subnet, const struct watch_report *report)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct watch_rewrite *rewrites;
        const struct watch_event *events;
        struct watch_event *rest;
        uint32_t n_rewrites, n, n_rest = 0;
        bool *is_part;

        events = watch_report_events(report, WATCH_DRIFTED, &n);
        if (!a || !g || g->settings->writer != WRITER_DIRECT ||
            watch_find_rewrites(a, subnet, report, &rewrites, &n_rewrites, &is_part) < 0 || n_rewrites == 0)
                return false;
        rest = arena_new_array(a, struct watch_event, n);
        if (!rest)
                return false;
        for (uint32_t i = 0; i < n; i++)
                if (!is_part[i])
                        rest[n_rest++] = events[i];
        for (uint32_t i = 0; i < n_rewrites && i < EVENT_TEXT_MAX; i++)
                log_rewrite(l, g, subnet, &rewrites[i]);
        if (n_rewrites > EVENT_TEXT_MAX)
                log_add(l, LOG_EVENT_TABLES_REWRITTEN, &(struct log_about) { .generation = g->number },
                              "the same on %u more switches", n_rewrites - EVENT_TEXT_MAX);
        log_kind(l, drifted, g, rest, n_rest);
        return true;
}

void event_text_watch(struct log *l, const struct generation *g, const struct watch_report *report,
              const struct subnet *subnet, bool standby)
{
        bool audit = g && g->audits;
        const struct watch_event *events;
        uint32_t n;

        for (size_t i = 0; i < ELEMENTS(kinds_to_log); i++) {
                const struct log_kind *k = &kinds_to_log[i];

                if (!(audit ? k->audit : k->enforce) || (standby && !k->standby))
                        continue;
                if (k->kind == WATCH_DRIFTED && log_rewrites(l, k, g, subnet, report))
                        continue;
                events = watch_report_events(report, k->kind, &n);
                log_kind(l, k, g, events, n);
        }
}

/* --- standing by ------------------------------------------------------------------------------------------------ */

/* How many ports lack a partition, or have it unexpectedly. */
struct base_count {
        uint32_t lack, unexpected;
};

/* By what ports are called for good, not by their place in a snapshot. */
static uint64_t digest_verification(const struct subnet *s, const struct verification *v)
{
        uint64_t h = HASH_START;

        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];

                h = hash_mix(h, s->ports[d->port].guid.v);
                h = hash_mix(h, s->ports[d->port].number);
                for (uint32_t k = 0; k < d->n_missing; k++)
                        h = hash_mix(h, 0x10000u | d->missing[k].v);
                for (uint32_t k = 0; k < d->n_unexpected; k++)
                        h = hash_mix(h, 0x20000u | d->unexpected[k].v);
                h = hash_mix(h, d->enforcement_differs);
        }
        return v->n_differ > 0 ? h : 0;
}

/* A raise or a lower is both: the one entry is missing, the other unexpected. */
static struct base_count *count_bases(struct arena *a, const struct verification *v, uint32_t *ret_enforcement)
{
        struct base_count *counts = arena_new_array(a, struct base_count, P_KEY_BASE_MASK + 1u);

        *ret_enforcement = 0;
        for (uint32_t i = 0; counts && i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];

                for (uint32_t k = 0; k < d->n_missing; k++)
                        counts[p_key_base(d->missing[k])].lack++;
                for (uint32_t k = 0; k < d->n_unexpected; k++)
                        counts[p_key_base(d->unexpected[k])].unexpected++;
                *ret_enforcement += d->enforcement_differs;
        }
        return counts;
}

static void add_partition(struct line *l, const struct policy *policy, uint16_t base, const struct base_count *c)
{
        int p = policy_find_base(policy, base);

        line_add(l, "; 0x%04x%s%s", (unsigned) base, p >= 0 ? " " : "", p >= 0 ? policy->partitions[p].name : "");
        if (c->lack > 0)
                line_add(l, " missing on %u port%s", c->lack, text_plural(c->lack));
        if (c->unexpected > 0)
                line_add(l, "%s unexpected on %u port%s", c->lack > 0 ? "," : "", c->unexpected, text_plural(c->unexpected));
}

static void add_differences(struct line *l, struct arena *a, const struct generation *g, const struct subnet *s,
                            const struct verification *v)
{
        uint32_t n = 0, n_enforcement;
        struct base_count *counts = count_bases(a, v, &n_enforcement);

        for (uint32_t i = 0; i < v->n_differ && i < EXAMPLES; i++) {
                const char *label = subnet_port_label(a, s, v->differ[i].port);

                line_add(l, "%s%s", i == 0 ? v->n_differ > EXAMPLES ? ", among them " : ": " : ", ", label ? label : "?");
        }
        for (uint32_t base = 0; counts && base <= P_KEY_BASE_MASK; base++) {
                if (counts[base].lack + counts[base].unexpected == 0)
                        continue;
                if (++n <= MAX_P_KEYS)
                        add_partition(l, g->policy, (uint16_t) base, &counts[base]);
        }
        if (n > MAX_P_KEYS)
                line_add(l, "; and %u more partitions", n - MAX_P_KEYS);
        if (n_enforcement > 0)
                line_add(l, "; enforcement bits of %u port%s", n_enforcement, text_plural(n_enforcement));
}

/* Tables that were not read, and devices that did not answer discovery behind links that are up. */
static uint32_t count_unread(const struct subnet *s, const struct verification *v)
{
        uint32_t n = v->n_unreachable;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                for (size_t w = 0; w < ELEMENTS(s->nodes[i].silent_ports); w++)
                        n += (uint32_t) __builtin_popcountll(s->nodes[i].silent_ports[w]);
        return n;
}

/* What differed may differ still where nothing was read. Where nothing differed before, it is no news of the standby. */
static uint64_t digest_standby(const struct subnet *s, const struct verification *v, uint32_t n_unread, uint64_t said)
{
        if (v->n_differ == 0 && n_unread > 0 && said != 0)
                return hash_mix(HASH_START, 0);
        return digest_verification(s, v);
}

void event_text_standby(struct log *l, const struct generation *g, const struct subnet *subnet,
                 const struct verification *v, uint64_t *said)
{
        struct log_about about = { .generation = g->number };
        uint32_t n_unread = count_unread(subnet, v);
        uint64_t digest = digest_standby(subnet, v, n_unread, *said);
        _cleanup_arena_ struct arena *a = arena_new();
        struct line line = {};

        if (digest == *said || !a)
                return;
        *said = digest;
        if (digest == 0) {
                log_add(l, LOG_EVENT_STANDBY_AGREES, &about,
                              "standing by: the fabric is as the policy of this host says (generation %" PRIu64 ")",
                              g->number);
                return;
        }
        if (v->n_differ == 0) {
                log_add(l, LOG_EVENT_STANDBY_DIFFERS, &about,
                        "standing by: it is not known whether the fabric is as the policy of this host says (generation %" PRIu64
                        "): %u port%s not answer, all others are", g->number, n_unread, n_unread == 1 ? " does" : "s do");
                return;
        }
        line_add(&line, "standing by: the policy of this host (generation %" PRIu64 ") is not what the fabric has, on %u "
                 "port%s", g->number, v->n_differ, text_plural(v->n_differ));
        add_differences(&line, a, g, subnet, v);
        log_add(l, LOG_EVENT_STANDBY_DIFFERS, &about, "%s", line.text);
}

/* --- an apply --------------------------------------------------------------------------------------------------- */

static void log_failed_write(struct log *l, const struct generation *g, const struct plan *plan,
                             const struct plan_write *w, enum plan_phase phase, const struct apply_outcome *o)
{
        const struct subnet_port *p = &plan->subnet->ports[w->port];
        _cleanup_arena_ struct arena *a = arena_new();
        const char *label = a ? subnet_port_label(a, plan->subnet, w->port) : NULL;
        struct log_about about = {
                .generation = g->number, .node = label, .port_guid = p->guid, .lid = p->lid, .port = p->number,
        };
        struct line what = {}, reason = {};

        line_add(&reason, "%s", apply_reason_to_string(o->reason));
        if (o->reason == APPLY_STATUS)
                line_add(&reason, " 0x%04x, %s", (unsigned) o->mad_status, mad_status_to_string(o->mad_status));
        if (o->reason == APPLY_SET_UNANSWERED)
                line_add(&reason, "; it %s", m_key_source_of_reader(m_keys_source(g->m_keys, p->guid), o->m_key_counted));
        if (o->reason == APPLY_TIMEOUT)
                line_add(&reason, ": " M_KEY_SILENCE_FORMAT, m_key_of_silent(g, p->guid));
        if (w->kind == WRITE_BLOCK)
                line_add(&what, "block %u of its P_Key table", (unsigned) w->block);
        else
                line_add(&what, "its enforcement bits");
        log_add(l, LOG_EVENT_WRITE_FAILED, &about, "%s: %s could not be written (%s: %s)", label ? label : "?", what.text,
                plan_phase_to_string(phase), reason.text);
}

static uint64_t digest_outcome(uint64_t h, const struct plan_write *w, const struct apply_outcome *o)
{
        return hash_mix(hash_mix(hash_mix(h, w->port), w->block), o->reason);
}

/* Ports that could not be read were named by the watch. */
static bool is_failure_to_name(const struct observed *observed, const struct plan_write *w,
                               const struct apply_outcome *o)
{
        return o->state == APPLY_FAILED && o->reason != APPLY_ABORTED && observed->tables[w->port].source == TABLE_READ;
}

struct failures {
        uint64_t digest;  /* 0: none */
        uint32_t to_name;
};

static struct failures count_failures(const struct plan *plan, const struct observed *observed,
                                      const struct apply *apply)
{
        struct failures f = {};

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];
                        const struct apply_outcome *o = apply_outcome(apply, (enum plan_phase) phase, i);

                        if (o->state == APPLY_FAILED)
                                f.digest = digest_outcome(f.digest ? f.digest : 1, w, o);
                        f.to_name += is_failure_to_name(observed, w, o);
                }
        return f;
}

static void log_failed_writes(struct log *l, const struct generation *g, const struct plan *plan,
                              const struct observed *observed, const struct apply *apply)
{
        uint32_t said = 0;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes && said < EVENT_TEXT_MAX; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];
                        const struct apply_outcome *o = apply_outcome(apply, (enum plan_phase) phase, i);

                        if (!is_failure_to_name(observed, w, o))
                                continue;
                        log_failed_write(l, g, plan, w, (enum plan_phase) phase, o);
                        said++;
                }
}

/* The bases that are held are named one by one, see event_text_held. */
void event_text_apply(struct log *l, struct generation *g, const struct plan *plan, const struct observed *observed,
               const struct apply *apply, usec_t duration, uint64_t *failures)
{
        struct log_about about = { .generation = g->number };
        struct failures now = count_failures(plan, observed, apply);
        struct apply_summary summary;
        struct line line = {};

        apply_get_summary(apply, &summary);
        line_add(&line, "generation %" PRIu64 ": %u write%s done on %u port%s in %.2f s", g->number, summary.written,
                 text_plural(summary.written), plan->n_ports_affected, text_plural(plan->n_ports_affected),
                 (double) duration / (double) USEC_PER_SEC);
        if (summary.failed + summary.held == 0) {
                *failures = 0;
                log_add(l, LOG_EVENT_APPLIED, &about, "%s", line.text);
                return;
        }
        if (now.digest == *failures && summary.written == 0) {
                log_debug(l, "%s, the same %u failed and %u held back again", line.text, summary.failed, summary.held);
                return;
        }
        *failures = now.digest;
        log_failed_writes(l, g, plan, observed, apply);
        line_add(&line, ", %u failed, %u held back", summary.failed, summary.held);
        if (now.to_name > EVENT_TEXT_MAX)
                line_add(&line, " (%u are named above)", EVENT_TEXT_MAX);
        log_add(l, LOG_EVENT_APPLY_PARTIAL, &about, "%s", line.text);
}

/* --- held bases -------------------------------------------------------------------------------------------------- */

/* Who waits for whom and why, not since when; 0: no base is held. */
static uint64_t digest_held(const struct held *const *items, size_t n)
{
        uint64_t h = n;

        for (size_t i = 0; i < n; i++) {
                h = hash_mix(hash_mix(h, items[i]->base), (uint64_t) items[i]->n_waiting << 32 | items[i]->n_by);
                for (uint32_t w = 0; w < held_n_kept(items[i]->n_waiting); w++)
                        h = hash_mix(hash_mix(h, items[i]->waiting[w].name.node.v), items[i]->waiting[w].name.number);
                for (uint32_t b = 0; b < held_n_kept(items[i]->n_by); b++)
                        h = hash_mix(hash_mix(h, items[i]->by[b].name.node.v),
                                     (uint64_t) items[i]->by[b].reason << 8 | items[i]->by[b].name.number);
        }
        return h;
}

/* Its fields are about the first port that holds it. */
static void log_held_base(struct log *l, const struct generation *g, const struct held_words *words, const struct held *h)
{
        const struct p_key key = p_key_make(h->base, false);
        _cleanup_text_ struct text t = {};
        struct held_port port = {};
        struct log_about about = {
                .generation = g->number, .p_keys = &key, .n_p_keys = 1, .partition = held_partition(words, h->base),
        };

        if (h->n_by > 0 && held_port_find(words, h->by[0].name, &port) == 0) {
                about.node = port.label;
                about.port_guid = port.port_guid;
                about.port = h->by[0].name.number;
        }
        held_add_line(words, h, &t);
        if (!t.failed)
                log_add(l, LOG_EVENT_BASE_HELD, &about, "%s", t.bytes);
}

void event_text_held(struct log *l, const struct generation *g, const struct subnet *subnet, const struct known *known,
                     const struct held_list *held, uint64_t now, uint64_t *reported)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct held_words words = { .arena = a, .subnet = subnet, .known = known, .policy = g->policy, .now = now };
        const struct log_about about = { .generation = g->number };
        const struct held *const *items;
        uint64_t digest;
        size_t n;

        items = held_list_items(held, &n);
        digest = digest_held(items, n);
        if (digest == *reported || !a)
                return;
        *reported = digest;
        if (n == 0)
                log_add(l, LOG_EVENT_HELD_ENDED, &about, "no base is held any more");
        for (size_t i = 0; i < n && i < EVENT_TEXT_MAX; i++)
                log_held_base(l, g, &words, items[i]);
        if (n > EVENT_TEXT_MAX)
                log_add(l, LOG_EVENT_BASE_HELD, &about, "%zu bases more are held; pkeyctl show held lists them",
                        n - EVENT_TEXT_MAX);
}
