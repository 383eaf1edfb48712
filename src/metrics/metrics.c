/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "metrics/metrics.h"

#include <errno.h>
#include <string.h>

#include "events/held_text.h"
#include "util/text.h"

#define COUNTER "counter"
#define GAUGE   "gauge"

/* One port and source: one or more records of the violation table. */
struct series {
        const struct violation_record *first;
        uint64_t total;
        usec_t last;
        bool rest; /* of all ports beyond the limit */
};

/* The text so far, and the fabric, which is the first label of each series. */
struct page {
        struct text text;
        const char *fabric; /* NULL: none */
};

/* --- lines ------------------------------------------------------------------------------------------------------ */

static void add_family(struct page *p, const char *name, const char *type, const char *help)
{
        text_add(&p->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The name of a series with no label of its own. */
static void add_sample_name(struct page *p, const char *name)
{
        if (p->fabric)
                text_add(&p->text, "%s{fabric=\"%s\"}", name, p->fabric);
        else
                text_add(&p->text, "%s", name);
}

/* The name of a series whose labels follow. */
static void open_labels(struct page *p, const char *name)
{
        if (p->fabric)
                text_add(&p->text, "%s{fabric=\"%s\",", name, p->fabric);
        else
                text_add(&p->text, "%s{", name);
}

/* A family with one sample. */
static void add_value(struct page *p, const char *name, const char *type, const char *help, uint64_t value)
{
        add_family(p, name, type, help);
        add_sample_name(p, name);
        text_add(&p->text, " %" PRIu64 "\n", value);
}

static void add_gauge(struct page *p, const char *name, const char *help, uint64_t value)
{
        add_value(p, name, GAUGE, help, value);
}

static void add_counter(struct page *p, const char *name, const char *help, uint64_t value)
{
        add_value(p, name, COUNTER, help, value);
}

/* when: 0: never, and left out. */
static void add_timestamp(struct page *p, const char *name, const char *help, usec_t when)
{
        if (when > 0)
                add_gauge(p, name, help, when / USEC_PER_SEC);
}

/* usec: 0: unknown, and left out. */
static void add_duration(struct page *p, const char *name, const char *help, usec_t usec)
{
        if (usec == 0)
                return;
        add_family(p, name, GAUGE, help);
        add_sample_name(p, name);
        text_add(&p->text, " %" PRIu64 ".%06u\n", usec / USEC_PER_SEC, (unsigned) (usec % USEC_PER_SEC));
}

static void add_labelled(struct page *p, const char *name, const char *label, const char *value, uint64_t number)
{
        open_labels(p, name);
        text_add(&p->text, "%s=\"%s\"} %" PRIu64 "\n", label, value, number);
}

/* ,label="value": names come from the fabric, and may hold quotes and the backslashes of their escapes. */
static void add_label(struct page *p, const char *label, const char *value)
{
        text_add(&p->text, ",%s=\"", label);
        for (; *value; value++) {
                if (*value == '\n') {
                        text_add(&p->text, "\\n");
                        continue;
                }
                if (*value == '\\' || *value == '"')
                        text_add_n(&p->text, "\\", 1);
                text_add_n(&p->text, value, 1);
        }
        text_add(&p->text, "\"");
}

/* --- violations ------------------------------------------------------------------------------------------------- */

static bool same_series(const struct violation_record *a, const struct violation_record *b)
{
        const struct violation_host none = {}, *x = a->host ?: &none, *y = b->host ?: &none;

        return violation_port_equal(a->port, b->port) && a->source == b->source && x->guid.v == y->guid.v &&
               strcmp(x->label ?: "", y->label ?: "") == 0 && strcmp(x->at_switch ?: "", y->at_switch ?: "") == 0;
}

/* Records of one series follow each other. Without violations there is no series: a fabric has tens of thousands of counters.
 * `all` has room for one series for each record; returns how many there are. */
static uint32_t make_series(const struct metrics *m, struct series *all)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < m->n_records; i++) {
                const struct violation_record *r = &m->records[i];

                if (r->total == 0)
                        continue;
                if (n == 0 || !same_series(all[n - 1].first, r))
                        all[n++] = (struct series) { .first = r };
                all[n - 1].total += r->total;
                all[n - 1].last = MAX(all[n - 1].last, r->last);
        }
        return n;
}

DEFINE_COMPARE(by_record, struct series, ORDER(a->first, b->first))

DEFINE_COMPARE(by_total, struct series, ORDER(b->total, a->total) ?: by_record(a, b))

/* The largest stay, in their order; after them, for each source, one of all others. */
static uint32_t cut_series(struct series *all, uint32_t n)
{
        struct series rest[VIOLATION_N_SOURCES] = {};
        uint32_t left = METRICS_MAX_SERIES;

        if (n <= METRICS_MAX_SERIES)
                return n;
        qsort(all, n, sizeof(*all), by_total);
        for (uint32_t i = METRICS_MAX_SERIES; i < n; i++) {
                struct series *s = &rest[all[i].first->source];

                *s = (struct series) { .first = s->rest ? s->first : all[i].first, .total = s->total + all[i].total,
                                       .last = MAX(s->last, all[i].last), .rest = true };
        }
        qsort(all, METRICS_MAX_SERIES, sizeof(*all), by_record);
        /* there is room: no more of these than series that they replace */
        for (int source = 0; source < VIOLATION_N_SOURCES; source++)
                if (rest[source].rest)
                        all[left++] = rest[source];
        return left;
}

/* host: as it was when the counter was read; GUID 0: another one may have been there. NULL: the one of the snapshot. */
static void add_port(struct page *p, struct arena *a, const struct subnet *s, struct violation_port port,
                     const struct violation_host *host)
{
        uint32_t node = s ? subnet_find_node(s, port.node_guid) : SUBNET_NONE;
        uint32_t endport = node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(s, node, port.number);
        bool is_switch_port = s && subnet_node_has_external(s, node, port.number);
        bool has_endport = host && host->guid.v != 0;
        struct violation_host h = {};
        char name[SUBNET_NAME_SIZE];

        if (endport != SUBNET_NONE && is_switch_port)
                endport = s->ports[endport].peer;
        if (has_endport) {
                h = *host;
                is_switch_port = port.node_guid.v != host->node_guid.v;
        } else if (endport != SUBNET_NONE) {
                has_endport = !host;
                p->text.failed = violation_host_open(a, s, endport, &h) < 0 || p->text.failed;
        } else if (is_switch_port) {
                h.switch_name = subnet_node_name(&s->nodes[node], name);
                h.switch_port = port.number;
        }
        text_add(&p->text, ",node_guid=\"0x%016" PRIx64 "\"", port.node_guid.v);
        if (p->text.failed || (!has_endport && !h.switch_name)) {
                text_add(&p->text, ",port=\"%u\"", (unsigned) port.number);
                return;
        }
        add_label(p, "seen_by", is_switch_port ? "switch" : "endport");
        if (has_endport) {
                add_label(p, "node", h.node);
                if (h.device[0])
                        add_label(p, "device", h.device);
                text_add(&p->text, ",port=\"%u\",port_guid=\"0x%016" PRIx64 "\"", (unsigned) h.number, h.guid.v);
        }
        if (h.switch_name) {
                add_label(p, "switch", h.switch_name);
                text_add(&p->text, ",switch_port=\"%u\"", (unsigned) h.switch_port);
        }
}

static void add_series_labels(struct page *p, struct arena *a, const struct metrics *m, const struct series *s)
{
        const struct snapshot *snapshot = m->control->snapshot;

        text_add(&p->text, "source=\"%s\"", violation_source_to_string(s->first->source));
        if (s->rest)
                text_add(&p->text, ",rest=\"true\"");
        else
                add_port(p, a, snapshot ? snapshot->subnet : NULL, s->first->port, s->first->host);
        text_add(&p->text, "} ");
}

static uint64_t to_unix(const struct metrics *m, usec_t when)
{
        usec_t ago = m->now > when ? m->now - when : 0;

        return m->realtime > ago ? (m->realtime - ago) / USEC_PER_SEC : 0;
}

/* times: the last time of each series, else its total. */
static void add_by_port(struct page *p, struct arena *a, const struct metrics *m, const struct series *all, uint32_t n, bool times)
{
        const char *name = times ? "pkeyd_violations_last_timestamp_seconds" : "pkeyd_violations_total";

        if (n == 0)
                return;
        add_family(p, name, times ? GAUGE : COUNTER,
                   times ? "When membership violations were last seen, by port and source."
                         : "Membership violations since pkeyd was started, by port and source, as in the journal.");
        for (uint32_t i = 0; i < n; i++) {
                open_labels(p, name);
                add_series_labels(p, a, m, &all[i]);
                text_add(&p->text, "%" PRIu64 "\n", times ? to_unix(m, all[i].last) : all[i].total);
        }
}

static void add_violations(struct page *p, const struct metrics *m)
{
        static const char name[] = "pkeyd_fabric_violations_total";
        _cleanup_arena_ struct arena *a = arena_new();
        struct series *all = arena_new_array(a, struct series, m->n_records);
        uint64_t saturated = 0;
        uint32_t n;

        p->text.failed = p->text.failed || !all;
        if (!m->has_violations || p->text.failed)
                return;
        add_family(p, name, COUNTER, "Membership violations on all ports since pkeyd was started, by source.");
        for (int source = 0; source < VIOLATION_N_SOURCES; source++)
                add_labelled(p, name, "source", violation_source_to_string((enum violation_source) source), m->violations[source]);
        n = cut_series(all, make_series(m, all));
        add_by_port(p, a, m, all, n, false);
        add_by_port(p, a, m, all, n, true);
        for (uint32_t i = 0; i < m->n_records; i++)
                saturated += m->records[i].saturated;
        add_gauge(p, "pkeyd_saturated_counters", "Violation counters at their maximum, which count no more.", saturated);
}

static void add_poll(struct page *p, const struct violation_poll_counters *poll)
{
        if (!poll)
                return;
        add_gauge(p, "pkeyd_polled_ports", "Ports whose violation counters are polled.", poll->n_ports);
        add_gauge(p, "pkeyd_silent_ports", "Polled ports that did not answer the last time.", poll->n_silent);
        add_counter(p, "pkeyd_poll_rounds_total", "Rounds in which every polled port that answers was queried once.",
                    poll->n_rounds);
        add_duration(p, "pkeyd_poll_duration_seconds",
                     "How long it last took to query every polled port once; silent ports are queried a few at a time.",
                     poll->cycle_duration);
        add_gauge(p, "pkeyd_poll_late", "1 if, in most rounds, violations.interval is too short to query each port once.",
                  poll->is_late);
}

static void add_notices(struct page *p, const struct notices_status *notices)
{
        static const char name[] = "pkeyd_notices_state";

        if (!notices)
                return;
        add_family(p, name, GAUGE, "State of the subscription to notices at the subnet administration: 1 for the present state.");
        for (enum notices_state s = 0; s < NOTICES_N_STATES; s++)
                add_labelled(p, name, "state", notices_state_to_string(s), notices->state == s);
        add_counter(p, "pkeyd_notices_received_total", "Reports of the subnet administration with a notice.", notices->n_reports);
        add_counter(p, "pkeyd_notices_malformed_total", "Reports without a notice that pkeyd understands.", notices->n_malformed);
}

/* --- the daemon and its work ------------------------------------------------------------------------------------ */

static void add_daemon(struct page *p, const struct metrics *m)
{
        static const char info[] = "pkeyd_build_info";
        const struct control_status *s = m->control;
        const struct generation *g = s->in_force ? s->in_force : s->wanted;
        uint64_t n_errors = s->n_file_errors + (g ? g->n_refused : 0);

        add_family(p, info, GAUGE, "1; the label is the version of pkeyd.");
        open_labels(p, info);
        text_add(&p->text, "version=\"%s\"} 1\n", m->version);
        add_timestamp(p, "pkeyd_start_time_seconds", "When pkeyd was started.", m->started);
        add_gauge(p, "pkeyd_audit_mode",
                  "1 if pkeyd compares and never writes (mode: audit, or a subnet manager that the settings do not allow for).", g && g->audits);
        add_gauge(p, "pkeyd_standing_by", "1 if pkeyd stands by, because the master SM is on another host (role: follow-sm).",
                  s->standby);
        add_gauge(p, "pkeyd_policy_generation", "The generation of the policy that is in force; 0 for none.",
                  s->in_force ? s->in_force->number : 0);
        add_gauge(p, "pkeyd_policy_accepted", "1 if the files as they were last loaded were accepted, 0 if refused.",
                  n_errors == 0);
        add_gauge(p, "pkeyd_policy_errors", "Errors for which the files as they were last loaded were refused.", n_errors);
}

/* The labels name the first of the ports that block the base. */
static void add_held_base(struct page *p, const struct held_context *context, const struct held *h, const char *name, int64_t value)
{
        const struct held_by *by = &h->by[0];
        bool is_endport = by->name.kind == KNOWLEDGE_ENDPORT;
        const char *partition = held_partition(context, h->base);
        struct held_port port;

        if (held_port_find(context, by->name, &port) < 0) {
                p->text.failed = true;
                return;
        }
        open_labels(p, name);
        text_add(&p->text, "base=\"0x%04x\"", (unsigned) h->base);
        if (partition)
                add_label(p, "partition", partition);
        add_label(p, "reason", held_reason_to_string(by->reason));
        text_add(&p->text, ",node_guid=\"0x%016" PRIx64 "\"", port.node_guid.v);
        if (port.node[0])
                add_label(p, is_endport ? "node" : "switch", port.node);
        text_add(&p->text, ",%s=\"%u\"", is_endport ? "port" : "switch_port", (unsigned) by->name.number);
        if (is_endport && port.port_guid.v)
                text_add(&p->text, ",port_guid=\"0x%016" PRIx64 "\"", port.port_guid.v);
        text_add(&p->text, "} %" PRId64 "\n", value);
}

static void add_held(struct page *p, const struct control_status *s)
{
        static const char ports[] = "pkeyd_held_base_ports", since[] = "pkeyd_held_base_since_timestamp_seconds";
        _cleanup_arena_ struct arena *a = arena_new();
        const struct held_context context = {
                .arena = a, .subnet = s->snapshot ? s->snapshot->subnet : NULL, .known = s->known,
                .policy = s->wanted ? s->wanted->policy : NULL,
        };
        size_t n, n_shown;
        const struct held *const *items = held_list_items(s->held, &n);

        p->text.failed |= !a;
        if (!s->held || p->text.failed)
                return;
        n_shown = MIN(n, (size_t) METRICS_MAX_HELD);
        add_gauge(p, "pkeyd_held_bases", "Held bases: a change waits, because too little is known of a port.", n);
        add_gauge(p, "pkeyd_held_ports", "Ports that block a base: changes wait until pkeyd knows what these ports have.",
                  held_list_n_ports(s->held));
        if (n > 0)
                add_family(p, ports, GAUGE, "Ports that block this base; the labels name the first of them, and why it does.");
        for (size_t i = 0; i < n_shown; i++)
                add_held_base(p, &context, items[i], ports, items[i]->n_by);
        for (size_t i = 0, n_since = 0; i < n_shown; i++) {
                if (items[i]->by[0].since == 0)
                        continue;
                if (n_since++ == 0)
                        add_family(p, since, GAUGE, "When the port in the labels entered the state in the label reason.");
                add_held_base(p, &context, items[i], since, (int64_t) items[i]->by[0].since);
        }
}

static void add_ports(struct page *p, const struct control_status *s)
{
        if (s->numbers.compared) {
                add_gauge(p, "pkeyd_ports_managed", "Ports whose P_Key tables pkeyd manages.", s->ports.managed);
                add_gauge(p, "pkeyd_ports_verified", "Managed ports that were read and match the policy.", s->ports.right);
                add_gauge(p, "pkeyd_ports_drifted", "Managed ports that were read and differ from the policy.", s->ports.differ);
                add_gauge(p, "pkeyd_ports_unreachable", "Managed ports that could not be read.", s->ports.unreachable);
                add_gauge(p, "pkeyd_silent_links", "Links that are up and whose other end did not answer discovery.",
                          s->ports.silent);
                add_gauge(p, "pkeyd_frozen_ports",
                          "Frozen endports: pkeyd writes neither to them nor to the switch ports beside them.", s->n_frozen);
                add_gauge(p, "pkeyd_name_claims", "Nodes that call themselves by a name that is not pinned to them.", s->n_claims);
        }
        add_held(p, s);
        add_counter(p, "pkeyd_drifts_total", "Tables that matched the policy and later differed from it.", s->numbers.n_drifts);
}

static void add_leases(struct page *p, const struct leases *leases)
{
        static const char name[] = "pkeyd_leases";
        uint32_t n[LEASE_N_STATES];

        leases_count(leases, n);
        add_family(p, name, GAUGE, "Leases by state: granting; active; releasing (a port may still hold the P_Key).");
        add_labelled(p, name, "state", "granting", n[LEASE_GRANTING]);
        add_labelled(p, name, "state", "active", n[LEASE_ACTIVE]);
        add_labelled(p, name, "state", "releasing", n[LEASE_RELEASING]);
}

static void add_sweeps(struct page *p, const struct metrics *m)
{
        static const char name[] = "pkeyd_passes_total";
        const struct control_numbers *n = &m->control->numbers;

        add_family(p, name, COUNTER,
                   "Sweeps, by result: done; partial (ports failed, or a base is held); refused (the policy cannot "
                   "be carried out on this fabric); failed.");
        add_labelled(p, name, "result", "done", n->sweeps[SWEEP_DONE]);
        add_labelled(p, name, "result", "partial", n->sweeps[SWEEP_PARTIAL]);
        add_labelled(p, name, "result", "refused", n->sweeps[SWEEP_REFUSED]);
        add_labelled(p, name, "result", "failed", n->sweeps[SWEEP_FAILED]);
        add_duration(p, "pkeyd_sweep_duration_seconds", "How long the last sweep of the whole fabric took.", n->sweep_duration);
        add_duration(p, "pkeyd_plan_duration_seconds", "How long the last comparison with the policy and the plan took.",
                     m->plan_duration);
        add_duration(p, "pkeyd_apply_duration_seconds", "How long it took to carry out the last plan that was not empty.",
                     n->apply_duration);
        add_timestamp(p, "pkeyd_last_pass_timestamp_seconds", "When a sweep last came to its end, also if ports failed.",
                      n->last_sweep);
        add_timestamp(p, "pkeyd_last_success_timestamp_seconds",
                      "When a sweep last ended with every table matching the policy, also in audit mode and on a standby.",
                      n->last_success);
        add_timestamp(p, "pkeyd_last_apply_timestamp_seconds", "When a plan was last carried out in full.", n->last_apply);
}

static void add_mads(struct page *p, const struct metrics *m)
{
        const struct control_numbers *n = &m->control->numbers;

        add_counter(p, "pkeyd_writes_total", "Confirmed writes to P_Key tables and switch ports, as the journal counts them.",
                    n->n_writes);
        add_counter(p, "pkeyd_writes_failed_total", "Writes that could not be confirmed.", n->n_writes_failed);
        add_counter(p, "pkeyd_writes_refused_by_gate_total",
                    "Writes that could have broken a promise and were not sent: a table changed at that moment, or a bug of pkeyd.",
                    n->n_refused_by_gate);
        add_counter(p, "pkeyd_mads_sent_total", "MADs sent, every try of each.", m->mads.sent);
        add_counter(p, "pkeyd_mads_retried_total", "MADs sent again because no answer came.", m->mads.retried);
        add_counter(p, "pkeyd_mads_answered_total", "MADs that were answered.", m->mads.answered);
        add_counter(p, "pkeyd_mads_timed_out_total", "Tries without an answer in time.", m->mads.timed_out);
        add_counter(p, "pkeyd_mads_busy_total", "Answers with the status busy.", m->mads.busy);
        add_counter(p, "pkeyd_mads_malformed_total", "Received MADs that do not answer a request.", m->mads.malformed);
}

int metrics_print(const struct metrics *m, char **ret, size_t *ret_n)
{
        struct page page = { .fabric = m->fabric };

        add_daemon(&page, m);
        add_ports(&page, m->control);
        add_leases(&page, m->control->leases);
        add_sweeps(&page, m);
        add_mads(&page, m);
        add_violations(&page, m);
        add_poll(&page, m->poll);
        add_notices(&page, m->notices);
        text_add(&page.text, "# EOF\n");
        if (page.text.failed) {
                text_done(&page.text);
                return -ENOMEM;
        }
        *ret_n = page.text.n;
        *ret = page.text.bytes;
        return 0;
}
