/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/verbs_check.h"

#include <errno.h>

#include "util/hash.h"
#include "util/text.h"
#include "verify/verbs_tables.h"

#define GRACE    USEC_PER_SEC          /* how long the kernel may lag behind the SMA */
#define SETTLE   (200 * USEC_PER_MSEC) /* for changes that come together */
#define ASK_GAP  USEC_PER_SEC          /* between two reads of SMAs */
#define SHOWN    8                     /* entries in one message */

struct expected_port {
        struct log_about about; /* node, port_guid, lid, port */
        struct desired_port want;
        struct p_key *sma;   /* the SMA's table; NULL: it was not read */
        uint32_t n_sma;
        bool changed;        /* the kernel reported a change since its table was read */
        bool ask;            /* its SMA must be read again */
        uint64_t asked;      /* digest of the difference because of which it was read last; 0: none */
        uint64_t reported;   /* digest of the difference that was logged last; 0: none */
};

struct verbs_check {
        struct arena *arena;           /* of the ports */
        struct generation *generation; /* NULL: nothing is expected */
        struct expected_port *ports;
        uint32_t n_ports;
        uint64_t confirmed;            /* number of the generation for which the agreement was logged */
        usec_t expected_at, asked_at;
        usec_t due;
        bool any_reported;
};

struct verbs_check *verbs_check_new(void)
{
        struct verbs_check *v = calloc(1, sizeof(*v));

        if (v)
                v->due = USEC_INFINITY;
        return v;
}

struct verbs_check *verbs_check_free(struct verbs_check *v)
{
        if (!v)
                return NULL;
        verbs_check_forget(v);
        free(v);
        return NULL;
}

usec_t verbs_check_due(const struct verbs_check *v)
{
        return v->due;
}

/* --- what is expected --------------------------------------------------------------------------------------------- */

void verbs_check_forget(struct verbs_check *v)
{
        v->generation = generation_unref(v->generation);
        v->arena = arena_free(v->arena);
        v->ports = NULL;
        v->n_ports = 0;
        v->due = USEC_INFINITY;
}

static const struct expected_port *find_port(const struct expected_port *ports, uint32_t n, struct guid guid)
{
        for (uint32_t i = 0; i < n; i++)
                if (ports[i].about.port_guid.v == guid.v)
                        return &ports[i];
        return NULL;
}

/* before: the same port after the previous sweep; NULL: it was not in the fabric then. */
static int expect_port(struct arena *a, const struct desired *desired, const struct observed *observed, uint32_t port,
                       const struct expected_port *before, struct expected_port *ret)
{
        const struct observed_table *t = &observed->tables[port];
        const struct subnet_port *p = &observed->subnet->ports[port];
        const struct desired_port *want = &desired->ports[port];

        *ret = (struct expected_port) {
                .about = {
                        .node = subnet_port_label(a, observed->subnet, port), .port_guid = p->guid, .lid = p->lid,
                        .port = p->number,
                },
                .want = { arena_copy(a, want->wanted, want->n_wanted), want->n_wanted },
                .asked = before ? before->asked : 0,
                .reported = before ? before->reported : 0,
        };
        if (!ret->about.node || !ret->want.wanted)
                return -ENOMEM;
        if (t->source != TABLE_READ)
                return 0;
        ret->sma = arena_copy(a, t->entries, t->capacity);
        ret->n_sma = t->capacity;
        return ret->sma ? 0 : -ENOMEM;
}

void verbs_check_expect(struct verbs_check *v, usec_t now, struct generation *g, const struct desired *desired,
                        const struct observed *observed, const struct guid *guids, size_t n)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct expected_port *ports = a ? arena_new_array(a, struct expected_port, n) : NULL;
        uint32_t n_ports = 0;

        for (size_t i = 0; i < n && ports; i++) {
                uint32_t port = subnet_find_endport(observed->subnet, guids[i]);

                if (port == SUBNET_NONE)
                        continue;
                if (expect_port(a, desired, observed, port, find_port(v->ports, v->n_ports, guids[i]), &ports[n_ports++]) < 0)
                        ports = NULL;
        }
        verbs_check_forget(v);
        if (!ports)
                return;
        v->arena = STEAL(a);
        v->ports = ports;
        v->n_ports = n_ports;
        v->generation = generation_ref(g);
        v->expected_at = v->due = now;
}

void verbs_check_changed(struct verbs_check *v, usec_t now, struct guid port_guid)
{
        for (uint32_t i = 0; i < v->n_ports; i++)
                if (port_guid.v == 0 || v->ports[i].about.port_guid.v == port_guid.v) {
                        v->ports[i].changed = true;
                        v->due = MIN(v->due, now);
                }
}

/* --- one table ---------------------------------------------------------------------------------------------------- */

static bool is_right(const struct discrepancy *d)
{
        return d->n_missing == 0 && d->n_unexpected == 0 && d->n_kernel == 0;
}

/* Returns 0, -EAGAIN: the port has no valid table now; -ENOMEM. */
static int judge(const struct verbs_check *v, struct arena *a, const struct expected_port *p,
                 const struct local_table *tables, size_t n, struct discrepancy *ret)
{
        const struct generation *g = v->generation;
        const struct local_table *t = NULL;
        int r;

        *ret = (struct discrepancy) {};
        for (size_t i = 0; i < n; i++)
                if (tables[i].port_guid.v == p->about.port_guid.v)
                        t = &tables[i];
        if (!t || !t->entries)
                return -EAGAIN;
        r = verify_table(a, g->policy, g->settings->unmanaged, &p->want, t->entries, t->n_entries, ret);
        return r < 0 || !p->sma ? r : verbs_tables_compare(a, p->sma, p->n_sma, t->entries, t->n_entries, ret);
}

/* --- reporting ---------------------------------------------------------------------------------------------------- */

static void describe_difference(struct text *t, const struct kernel_difference *d)
{
        text_add(t, "%s0x%04x ", t->n > 0 ? "; " : "", d->key.v);
        switch (d->kind) {
        case KERNEL_LACKS:
                text_add(t, "at index %u is in the port's table, not in the kernel's", d->sma_index);
                break;
        case KERNEL_ONLY:
                text_add(t, "at index %u is in the kernel's table, not in the port's", d->kernel_index);
                break;
        case KERNEL_MOVED:
                text_add(t, "is at index %u in the port's table, at %u in the kernel's", d->sma_index, d->kernel_index);
                break;
        }
}

static void describe_keys(struct text *t, const char *what, const struct p_key *keys, uint32_t n)
{
        if (n > 0)
                text_add(t, "%s%s", t->n > 0 ? "; " : "", what);
        for (uint32_t i = 0; i < n && i < SHOWN; i++)
                text_add(t, " 0x%04x", keys[i].v);
}

static void describe(struct text *t, const struct discrepancy *d)
{
        for (uint32_t i = 0; i < d->n_kernel && i < SHOWN; i++)
                describe_difference(t, &d->kernel[i]);
        if (d->n_kernel > 0)
                return;
        describe_keys(t, "lacks", d->missing, d->n_missing);
        describe_keys(t, "has unexpected", d->unexpected, d->n_unexpected);
}

static void report(struct verbs_check *v, struct expected_port *p, const struct discrepancy *d, struct log *log)
{
        struct log_about about = p->about;
        uint64_t difference = discrepancy_hash(HASH_START, d);
        _cleanup_text_ struct text text = {};

        if (p->reported == difference)
                return;
        p->reported = difference;
        v->any_reported = true;
        about.generation = v->generation->number;
        describe(&text, d);
        log_add(log, LOG_EVENT_KERNEL_DIFFERS, &about,
                "%s (0x%016" PRIx64 "): the P_Key table in this host's kernel differs from that of the %s: %s", about.node,
                about.port_guid.v, d->n_kernel > 0 ? "port" : "policy", text.failed ? "out of memory" : text.bytes);
}

static void report_right(struct verbs_check *v, uint32_t n, struct log *log)
{
        if (v->confirmed == v->generation->number && !v->any_reported)
                return;
        v->confirmed = v->generation->number;
        v->any_reported = false;
        for (uint32_t i = 0; i < v->n_ports; i++)
                v->ports[i].reported = 0;
        log_add(log, LOG_EVENT_KERNEL_VERIFIED, &(struct log_about) { .generation = v->generation->number },
                "generation %" PRIu64 ": the kernel's P_Key tables match the policy on %u port%s of this host", v->generation->number, n,
                text_plural(n));
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

bool verbs_check_next_port(struct verbs_check *v, struct guid *ret, usec_t *ret_at)
{
        for (uint32_t i = 0; i < v->n_ports; i++)
                if (v->ports[i].ask) {
                        v->ports[i].ask = false;
                        *ret = v->ports[i].about.port_guid;
                        *ret_at = v->asked_at;
                        return true;
                }
        return false;
}

/* At most once in ASK_GAP, all ports together. */
static void ask_sma(struct verbs_check *v, struct expected_port *p, usec_t now)
{
        if (v->asked_at <= now) /* else a read is due already */
                v->asked_at = MAX(now, v->asked_at + ASK_GAP);
        p->ask = true;
}

/* The kernel reported a change. If pkeyd may have made it, the rest of the kernel's table may follow in a moment, and pkeyd reads
 * it again; else it reads the table of the SMA. */
static void see_changed(struct verbs_check *v, usec_t now, struct expected_port *p, bool wrong, struct log *log)
{
        if (wrong && now >= v->expected_at + GRACE) {
                log_debug(log, "%s: its P_Key table has changed", p->about.node);
                ask_sma(v, p, now);
        } else {
                v->due = now + SETTLE;
        }
}

static void see_wrong(struct verbs_check *v, usec_t now, struct expected_port *p, const struct discrepancy *d, struct log *log)
{
        uint64_t difference = discrepancy_hash(HASH_START, d);

        if (now < v->expected_at + GRACE) {
                v->due = MIN(v->due, v->expected_at + GRACE);
                return;
        }
        if (d->n_kernel == 0 && p->sma)
                return; /* kernel and SMA agree: the sweep has reported how their table differs from the policy */
        if (!p->sma || p->asked == difference)
                report(v, p, d, log);
        else
                ask_sma(v, p, now);
        p->asked = difference;
}

void verbs_check_see(struct verbs_check *v, usec_t now, const struct local_table *tables, size_t n, struct log *log)
{
        _cleanup_arena_ struct arena *a = arena_new();
        uint32_t n_right = 0, n_wrong = 0;

        v->due = USEC_INFINITY;
        for (uint32_t i = 0; a && i < v->n_ports; i++) {
                struct expected_port *p = &v->ports[i];
                bool changed = p->changed, right;
                struct discrepancy d;

                p->changed = false;
                if (judge(v, a, p, tables, n, &d) < 0)
                        continue;
                right = is_right(&d);
                n_right += right;
                n_wrong += !right;
                if (right)
                        p->asked = 0;
                if (changed)
                        see_changed(v, now, p, !right, log);
                else if (!right)
                        see_wrong(v, now, p, &d, log);
        }
        if (n_wrong == 0 && n_right > 0)
                report_right(v, n_right, log);
}
