/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/event_text.h"

#include "events/held_text.h"
#include "util/hash.h"
#include "watch/rewrites.h"

#define EXAMPLES   4
#define MAX_P_KEYS 8

/* If out of memory, no entry is added. */
static void log_text(struct log *l, enum log_event event, const struct log_about *about, const struct text *t)
{
        if (!t->failed)
                log_add(l, event, about, "%s", t->bytes);
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
        if (f->code == FINDING_PLAN_REACH)
                return LOG_EVENT_REACH;
        return LOG_EVENT_FINDING;
}

/* event_text_watch(), the freezer and conditions/identity report each of these once. */
static bool is_reported_elsewhere(const struct finding *f)
{
        return f->code == FINDING_PLAN_UNREACHABLE || f->code == FINDING_PORT_FROZEN || f->code == FINDING_NAME_CLAIMED;
}

static void log_more(struct log *l, const struct generation *g, const struct finding *like, unsigned n)
{
        char text[128];

        (void) snprintf(text, sizeof(text), "%u more finding%s of this kind (%s); pkeyctl plan lists all of them", n, text_plural(n),
                        finding_code_to_string(like->code));
        log_add_finding(l, event_of_finding(like), g->number,
                        &(struct finding) { .severity = like->severity, .code = like->code, .text = text });
}

void event_text_plan_findings(struct log *l, struct generation *g, const struct findings *findings)
{
        unsigned n_of_kind[FINDING_CODE_MAX] = {};
        const struct finding *not_logged[FINDING_CODE_MAX] = {};

        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *f = &findings->items[i];

                if (is_reported_elsewhere(f) || !generation_reports(g, f))
                        continue;
                if (f->severity == FINDING_ERROR || n_of_kind[f->code]++ < EVENT_TEXT_MAX)
                        log_add_finding(l, event_of_finding(f), g->number, f);
                else
                        not_logged[f->code] = f;
        }
        for (size_t i = 0; i < FINDING_CODE_MAX; i++)
                if (n_of_kind[i] > EVENT_TEXT_MAX)
                        log_more(l, g, not_logged[i], n_of_kind[i] - EVENT_TEXT_MAX);
}

/* --- what a sweep found ----------------------------------------------------------------------------------------- */

static void add_p_keys(struct text *t, const char *word, const struct p_key *keys, uint32_t n)
{
        if (n == 0)
                return;
        text_add(t, "%s%s", t->n > 0 ? ", " : "", word);
        for (uint32_t i = 0; i < n && i < MAX_P_KEYS; i++)
                text_add(t, " 0x%04x", (unsigned) keys[i].v);
        if (n > MAX_P_KEYS)
                text_add(t, " and %u more", n - MAX_P_KEYS);
}

static void add_difference(struct text *t, const struct discrepancy *d)
{
        add_p_keys(t, "lacks", d->missing, d->n_missing);
        add_p_keys(t, "has unexpected", d->unexpected, d->n_unexpected);
        if (d->enforcement_differs)
                text_add(t, "%senforcement bits differ", t->n > 0 ? ", " : "");
}

/* Which events are logged, and in which mode. */
struct log_kind {
        enum watch_kind kind;
        enum log_event event;
        bool enforce;         /* false: only audit mode logs it */
        bool standby;         /* false: a standby does not log it */
        const char *sentence; /* after the port */
};

static const struct log_kind kinds_to_log[] = {
        { WATCH_NEW, LOG_EVENT_PORT_NEW, true, true, "new in the fabric" },
        { WATCH_RETURNED, LOG_EVENT_PORT_RETURNED, true, true, "in the fabric again" },
        { WATCH_GONE, LOG_EVENT_PORT_GONE, true, true, "no longer in the fabric" },
        { WATCH_UNREACHABLE, LOG_EVENT_PORT_UNREACHABLE, true, true, "P_Key table cannot be read" },
        { WATCH_READABLE, LOG_EVENT_PORT_READABLE, true, true, "P_Key table can be read again" },
        { WATCH_DRIFTED, LOG_EVENT_DRIFT_FOUND, true, false, "another program changed the P_Key table" },
        { WATCH_DIFFERS, LOG_EVENT_TABLE_DIFFERS, false, false, "P_Key table does not match the policy" },
        { WATCH_MATCHES, LOG_EVENT_TABLE_MATCHES, false, false, "P_Key table matches the policy again" },
        { WATCH_REPAIRED, LOG_EVENT_DRIFT_REPAIRED, true, false, "P_Key table matches the policy again" },
};

/* The origin of the M_Key that this port did not answer to. */
static const char *m_key_of_silent(const struct generation *g, struct guid port_guid)
{
        return m_key_source_to_string(m_keys_source(g ? g->m_keys : NULL, port_guid));
}

static void add_detail(struct text *t, const struct generation *g, const struct watch_event *e)
{
        if (e->differs)
                add_difference(t, e->differs);
        if (e->incomplete)
                text_add(t, "not queried: %s did not answer all discovery queries", e->incomplete);
        else if (e->kind == WATCH_UNREACHABLE && e->failure == MAD_REFUSED)
                text_add(t, "status 0x%04x, %s", (unsigned) e->mad_status, mad_status_to_string(e->mad_status));
        else if (e->kind == WATCH_UNREACHABLE && e->failure == MAD_TIMED_OUT)
                text_add(t, "%s: " M_KEY_SILENCE_FORMAT, mad_outcome_to_string(e->failure), m_key_of_silent(g, e->port_guid));
        else if (e->kind == WATCH_UNREACHABLE)
                text_add(t, "%s", mad_outcome_to_string(e->failure));
}

static void log_one(struct log *l, const struct log_kind *k, const struct generation *g, const struct watch_event *e)
{
        struct log_about about = {
                .generation = g ? g->number : 0, .node = e->label, .port_guid = e->port_guid, .lid = e->lid, .port = e->number,
        };
        struct p_key keys[2 * MAX_P_KEYS];
        _cleanup_text_ struct text detail = {};

        add_detail(&detail, g, e);
        if (e->differs) {
                about.p_keys = keys;
                for (uint32_t i = 0; i < MIN(e->differs->n_missing, (uint32_t) MAX_P_KEYS); i++)
                        keys[about.n_p_keys++] = e->differs->missing[i];
                for (uint32_t i = 0; i < MIN(e->differs->n_unexpected, (uint32_t) MAX_P_KEYS); i++)
                        keys[about.n_p_keys++] = e->differs->unexpected[i];
        }
        if (!detail.failed)
                log_add(l, k->event, &about, "%s (0x%016" PRIx64 "): %s%s%s%s", e->label, e->port_guid.v, k->sentence,
                        detail.n > 0 ? " (" : "", detail.bytes ?: "", detail.n > 0 ? ")" : "");
}

static void log_many(struct log *l, const struct log_kind *k, const struct generation *g, const struct watch_event *events,
                     uint32_t n)
{
        struct log_about about = { .generation = g ? g->number : 0 };
        _cleanup_text_ struct text t = {}, detail = {};

        text_add(&t, "%u ports (", n);
        for (uint32_t i = 0; i < n && i < EXAMPLES; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", events[i].label);
        text_add(&t, ", ...): %s", k->sentence);
        add_detail(&detail, g, &events[0]);
        if (detail.n > 0)
                text_add(&t, " (the first: %s)", detail.bytes);
        log_text(l, k->event, &about, &t);
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

/* All that another partition manager changed on one switch is one entry. */
static void log_rewrite(struct log *l, const struct generation *g, const struct subnet *subnet, const struct watch_rewrite *w)
{
        const struct subnet_node *node = &subnet->nodes[w->node];
        char name[SUBNET_NAME_SIZE];
        struct log_about about = { .generation = g->number, .switch_name = subnet_node_name(node, name) };
        _cleanup_text_ struct text what = {};

        add_p_keys(&what, "lost", w->lost, MIN(w->n_lost, (uint32_t) REWRITE_MAX_KEYS));
        add_p_keys(&what, "gained", w->gained, MIN(w->n_gained, (uint32_t) REWRITE_MAX_KEYS));
        if (w->n_lost > REWRITE_MAX_KEYS || w->n_gained > REWRITE_MAX_KEYS)
                text_add(&what, " and others");
        if (!what.failed)
                log_add(l, LOG_EVENT_TABLES_REWRITTEN, &about,
                        "another program rewrote the P_Key tables of %u ports on %s since the last sweep (%s): most likely OpenSM, "
                        "after a reboot on that leaf; see pkeyd-opensm(7)", w->n_ports, about.switch_name, what.bytes ?: "");
}

/* Returns false if no switch was rewritten, or out of memory: then each port gets an entry of its own. */
static bool log_rewrites(struct log *l, const struct log_kind *drifted, const struct generation *g,
                         const struct subnet *subnet, const struct watch_report *report)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct watch_rewrite *rewrites;
        struct watch_event *rest;
        uint32_t n_rewrites, n, n_rest = 0;
        const struct watch_event *events = watch_report_events(report, WATCH_DRIFTED, &n);
        bool *is_part;

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
                        "another program rewrote P_Key tables on %u more switch%s", n_rewrites - EVENT_TEXT_MAX,
                        n_rewrites - EVENT_TEXT_MAX == 1 ? "" : "es");
        log_kind(l, drifted, g, rest, n_rest);
        return true;
}

void event_text_watch(struct log *l, const struct generation *g, const struct watch_report *report, const struct subnet *subnet,
                      bool standby)
{
        bool audit = g && g->audits;
        const struct watch_event *events;
        uint32_t n;

        for (size_t i = 0; i < ELEMENTS(kinds_to_log); i++) {
                const struct log_kind *k = &kinds_to_log[i];

                if ((!audit && !k->enforce) || (standby && !k->standby))
                        continue;
                if (k->kind == WATCH_DRIFTED && log_rewrites(l, k, g, subnet, report))
                        continue;
                events = watch_report_events(report, k->kind, &n);
                log_kind(l, k, g, events, n);
        }
}

/* --- standing by ------------------------------------------------------------------------------------------------ */

/* How many ports lack a base, or have an unexpected entry of it. */
struct base_count {
        uint32_t lack, unexpected;
};

/* By the GUIDs of ports, not by their indexes: the same in each snapshot. */
static uint64_t digest_verification(const struct subnet *s, const struct verification *v)
{
        uint64_t h = HASH_START;

        for (uint32_t i = 0; i < v->n_differ; i++) {
                const struct discrepancy *d = &v->differ[i];

                h = hash_mix(h, s->ports[d->port].guid.v);
                h = discrepancy_hash(hash_mix(h, s->ports[d->port].number), d);
        }
        return v->n_differ > 0 ? h : 0;
}

/* An entry with the wrong membership counts as both: one entry is missing, the other is unexpected. */
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

static void add_partition(struct text *t, const struct policy *policy, uint16_t base, const struct base_count *c)
{
        int p = policy_find_base(policy, base);

        text_add(t, "; 0x%04x%s%s", (unsigned) base, p >= 0 ? " " : "", p >= 0 ? policy->partitions[p].name : "");
        if (c->lack > 0)
                text_add(t, " missing on %u port%s", c->lack, text_plural(c->lack));
        if (c->unexpected > 0)
                text_add(t, "%s unexpected on %u port%s", c->lack > 0 ? "," : "", c->unexpected, text_plural(c->unexpected));
}

static void add_differences(struct text *t, struct arena *a, const struct generation *g, const struct subnet *s,
                            const struct verification *v)
{
        uint32_t n = 0, n_enforcement;
        struct base_count *counts = count_bases(a, v, &n_enforcement);

        for (uint32_t i = 0; i < v->n_differ && i < EXAMPLES; i++) {
                const char *label = subnet_port_label(a, s, v->differ[i].port);

                text_add(t, "%s%s", i == 0 ? v->n_differ > EXAMPLES ? ", among them " : ": " : ", ", label ?: "?");
        }
        for (uint32_t base = 0; counts && base <= P_KEY_BASE_MASK; base++) {
                if (counts[base].lack + counts[base].unexpected == 0)
                        continue;
                if (++n <= MAX_P_KEYS)
                        add_partition(t, g->policy, (uint16_t) base, &counts[base]);
        }
        if (n > MAX_P_KEYS)
                text_add(t, "; and %u more partition%s", n - MAX_P_KEYS, text_plural(n - MAX_P_KEYS));
        if (n_enforcement > 0)
                text_add(t, "; enforcement bits of %u port%s", n_enforcement, text_plural(n_enforcement));
}

/* Ports that were not read may still differ, if any did before. If none did, the standby has nothing new to report. */
static uint64_t digest_standby(const struct subnet *s, const struct verification *v, uint32_t n_unread, uint64_t reported)
{
        if (v->n_differ == 0 && n_unread > 0 && reported != 0)
                return hash_mix(HASH_START, 0);
        return digest_verification(s, v);
}

void event_text_standby(struct log *l, const struct generation *g, const struct subnet *subnet, const struct verification *v,
                        uint64_t *reported)
{
        struct log_about about = { .generation = g->number };
        uint32_t n_unread = v->n_unreachable + subnet_count_silent(subnet);
        uint64_t digest = digest_standby(subnet, v, n_unread, *reported);
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_text_ struct text t = {};

        if (digest == *reported || !a)
                return;
        *reported = digest;
        if (digest == 0) {
                log_add(l, LOG_EVENT_STANDBY_AGREES, &about,
                        "standing by: the fabric matches the policy of this host (generation %" PRIu64 ")", g->number);
                return;
        }
        if (v->n_differ == 0) {
                log_add(l, LOG_EVENT_STANDBY_DIFFERS, &about,
                        "standing by: the fabric may differ from the policy of this host (generation %" PRIu64 "): %u port%s not answer; all "
                        "others match", g->number, n_unread, n_unread == 1 ? " does" : "s do");
                return;
        }
        text_add(&t, "standing by: the fabric does not match the policy of this host (generation %" PRIu64 ") on %u port%s", g->number,
                 v->n_differ, text_plural(v->n_differ));
        add_differences(&t, a, g, subnet, v);
        log_text(l, LOG_EVENT_STANDBY_DIFFERS, &about, &t);
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
        _cleanup_text_ struct text t = {};

        if (w->kind == WRITE_BLOCK)
                text_add(&t, "%s: block %u of its P_Key table", label ?: "?", (unsigned) w->block);
        else
                text_add(&t, "%s: its enforcement bits", label ?: "?");
        text_add(&t, " could not be written (%s: %s", plan_phase_to_string(phase), apply_reason_to_string(o->reason));
        if (o->reason == APPLY_STATUS)
                text_add(&t, " 0x%04x, %s", (unsigned) o->mad_status, mad_status_to_string(o->mad_status));
        if (o->reason == APPLY_SET_UNANSWERED)
                text_add(&t, "; the port %s", m_key_source_of_reader(m_keys_source(g->m_keys, p->guid), o->m_key_counted));
        if (o->reason == APPLY_TIMEOUT)
                text_add(&t, ": " M_KEY_SILENCE_FORMAT, m_key_of_silent(g, p->guid));
        text_add(&t, ")");
        log_text(l, LOG_EVENT_WRITE_FAILED, &about, &t);
}

static uint64_t digest_outcome(uint64_t h, const struct plan_write *w, const struct apply_outcome *o)
{
        return hash_mix(hash_mix(hash_mix(h, w->port), w->block), o->reason);
}

struct failures {
        uint64_t digest;  /* 0: none */
        uint32_t to_log;
};

/* The failed writes, of which the first EVENT_TEXT_MAX are logged; l: NULL: none. */
static struct failures visit_failures(struct log *l, const struct generation *g, const struct plan *plan,
                                      const struct observed *observed, const struct apply *apply)
{
        struct failures f = {};

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &plan->steps[phase].writes[i];
                        const struct apply_outcome *o = apply_outcome(apply, phase, i);

                        if (o->state != APPLY_FAILED)
                                continue;
                        f.digest = digest_outcome(f.digest ? f.digest : 1, w, o);
                        if (o->reason == APPLY_ABORTED || (observed && observed->tables[w->port].source != TABLE_READ))
                                continue;
                        if (l && f.to_log < EVENT_TEXT_MAX)
                                log_failed_write(l, g, plan, w, phase, o);
                        f.to_log++;
                }
        return f;
}

void event_text_apply(struct log *l, struct generation *g, const struct plan *plan, const struct observed *observed,
                      const struct apply *apply, usec_t duration, uint64_t *failures)
{
        struct log_about about = { .generation = g->number };
        struct failures now = visit_failures(NULL, g, plan, observed, apply);
        struct apply_summary summary;
        _cleanup_text_ struct text t = {};

        apply_get_summary(apply, &summary);
        text_add(&t, "generation %" PRIu64 ": %u write%s done", g->number, summary.written, text_plural(summary.written));
        if (summary.failed + summary.held == 0)
                text_add(&t, " on %u port%s", plan->n_ports_affected, text_plural(plan->n_ports_affected));
        text_add(&t, " in %.2f s", (double) duration / (double) USEC_PER_SEC);
        if (summary.failed + summary.held == 0) {
                *failures = 0;
                log_text(l, LOG_EVENT_APPLIED, &about, &t);
                return;
        }
        if (now.digest == *failures && summary.written == 0) {
                log_debug(l, "%s, the same %u writes failed and %u were held back again", t.bytes ?: "", summary.failed, summary.held);
                return;
        }
        *failures = now.digest;
        (void) visit_failures(l, g, plan, observed, apply);
        text_add(&t, ", %u failed, %u held back", summary.failed, summary.held);
        if (now.to_log > EVENT_TEXT_MAX)
                text_add(&t, " (%u are named above)", EVENT_TEXT_MAX);
        log_text(l, LOG_EVENT_APPLY_PARTIAL, &about, &t);
}

/* --- held bases -------------------------------------------------------------------------------------------------- */

/* Of all held bases with the ports that wait, those that they wait for, and the reasons, but without times; 0: no base is held. */
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

/* The fields of the entry are those of the first port that the base waits for. */
static void log_held_base(struct log *l, const struct generation *g, const struct held_context *context, const struct held *h)
{
        const struct p_key key = p_key_make(h->base, false);
        _cleanup_text_ struct text t = {};
        struct held_port port = {};
        struct log_about about = {
                .generation = g->number, .p_keys = &key, .n_p_keys = 1, .partition = held_partition(context, h->base),
        };

        if (h->n_by > 0 && held_port_find(context, h->by[0].name, &port) == 0) {
                about.node = port.label;
                about.port_guid = port.port_guid;
                about.port = h->by[0].name.number;
        }
        held_add_line(context, h, &t);
        log_text(l, LOG_EVENT_BASE_HELD, &about, &t);
}

void event_text_held(struct log *l, const struct generation *g, const struct subnet *subnet, const struct known *known,
                     const struct held_list *held, uint64_t now, uint64_t *reported)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct held_context context = { .arena = a, .subnet = subnet, .known = known, .policy = g->policy, .now = now };
        const struct log_about about = { .generation = g->number };
        size_t n;
        const struct held *const *items = held_list_items(held, &n);
        uint64_t digest = digest_held(items, n);

        if (digest == *reported || !a)
                return;
        *reported = digest;
        if (n == 0)
                log_add(l, LOG_EVENT_HELD_ENDED, &about, "no base is held");
        for (size_t i = 0; i < n && i < EVENT_TEXT_MAX; i++)
                log_held_base(l, g, &context, items[i]);
        if (n > EVENT_TEXT_MAX)
                log_add(l, LOG_EVENT_BASE_HELD, &about, "%zu more base%s held; pkeyctl show held lists %s", n - EVENT_TEXT_MAX,
                        n - EVENT_TEXT_MAX == 1 ? " is" : "s are", n - EVENT_TEXT_MAX == 1 ? "it" : "them");
}
