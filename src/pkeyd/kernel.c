/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/kernel.h"

#include <errno.h>
#include <string.h>

#include "pkeyd/daemon.h"
#include "pkeyd/monitor.h"
#include "shell/verbs_port.h"
#include "verify/kernel.h"
#include "verify/table.h"

#define GRACE    USEC_PER_SEC           /* how long a kernel may lag behind the SMA */
#define SETTLE   (200 * USEC_PER_MSEC)  /* what comes together is looked at together */
#define LOOK_GAP USEC_PER_SEC           /* between two questions to an SMA because of an event */
#define SHOWN    8                      /* entries in one message */

/* A port of this host: how it should be, and what was said of it. */
struct expected_port {
        struct guid guid;
        struct lid lid;
        uint8_t number;
        const char *label;
        struct desired_port want;
        struct p_key *sma; /* NULL: it was not read */
        uint32_t n_sma;
};

/* What was said of a port lives longer than what is expected of it. */
struct said {
        struct guid guid;
        uint64_t digest;
};

struct kernel {
        struct daemon *d;
        struct verbs_host *host;
        sd_event_source *timer;
        struct arena *arena;             /* of what is expected */
        const struct generation *generation; /* borrows; NULL: nothing is expected */
        struct expected_port *ports;
        uint32_t n_ports;
        uint64_t confirmed;              /* generation of which it was said that the kernel agrees */
        usec_t expected_at, asked_at;
        bool asked_again;                /* the SMA, before it is said that the kernel differs */
        struct said *said;               /* malloc'ed */
        size_t n_said;
};

/* --- one table ---------------------------------------------------------------------------------------------------- */

struct judgement {
        struct table_comparison policy;
        struct kernel_difference *kernel;
        uint32_t n_kernel;
};

static bool is_right(const struct judgement *j)
{
        return j->policy.n_missing == 0 && j->policy.n_unexpected == 0 && j->n_kernel == 0;
}

/* Returns 0, -EAGAIN: the table means nothing now or cannot be read; -ENOMEM. */
static int judge(struct kernel *k, struct arena *a, const struct expected_port *p, struct judgement *ret)
{
        size_t i = verbs_host_find(k->host, p->guid);
        struct verbs_port port;
        struct p_key *entries;
        uint32_t n;
        int r;

        *ret = (struct judgement) {};
        if (i == (size_t) -1 || verbs_host_query(k->host, i, &port) < 0 || !port.is_infiniband ||
            (port.state != PORT_STATE_ARMED && port.state != PORT_STATE_ACTIVE))
                return -EAGAIN;
        r = verbs_host_read_table(k->host, i, a, &entries, &n);
        if (r < 0)
                return r == -ENOMEM ? r : -EAGAIN;
        r = table_compare(a, k->generation->policy, k->generation->settings->unmanaged, &p->want, entries, n,
                          &ret->policy);
        if (r == 0 && p->sma)
                r = kernel_compare(a, p->sma, p->n_sma, entries, n, &ret->kernel, &ret->n_kernel);
        return r;
}

/* --- saying it ---------------------------------------------------------------------------------------------------- */

static uint64_t digest(uint64_t h, uint64_t value)
{
        return (h ^ value) * UINT64_C(0x100000001b3);
}

static uint64_t digest_judgement(const struct judgement *j)
{
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (uint32_t i = 0; i < j->policy.n_missing; i++)
                h = digest(h, j->policy.missing[i].v);
        for (uint32_t i = 0; i < j->policy.n_unexpected; i++)
                h = digest(h, 0x10000u | j->policy.unexpected[i].v);
        for (uint32_t i = 0; i < j->n_kernel; i++) {
                h = digest(h, 0x20000u | j->kernel[i].key.v);
                h = digest(h, (uint64_t) j->kernel[i].sma_index << 32 | j->kernel[i].kernel_index);
        }
        return h;
}

/* True if this was not said of the port before. Where memory is out it is said once more. */
static bool is_news(struct kernel *k, struct guid guid, uint64_t what)
{
        struct said *more;

        for (size_t i = 0; i < k->n_said; i++)
                if (k->said[i].guid.v == guid.v) {
                        bool news = k->said[i].digest != what;

                        k->said[i].digest = what;
                        return news;
                }
        more = reallocarray(k->said, k->n_said + 1, sizeof(*more));
        if (more) {
                k->said = more;
                k->said[k->n_said++] = (struct said) { guid, what };
        }
        return true;
}

static const char *describe_kernel(struct arena *a, const struct kernel_difference *d)
{
        switch (d->kind) {
        case KERNEL_LACKS:
                return arena_printf(a, "0x%04x at index %u is in the port's table, not in the kernel's", d->key.v,
                                    d->sma_index);
        case KERNEL_ONLY:
                return arena_printf(a, "0x%04x at index %u is in the kernel's table, not in the port's", d->key.v,
                                    d->kernel_index);
        case KERNEL_MOVED:
                return arena_printf(a, "0x%04x is at index %u in the port's table, at %u in the kernel's", d->key.v,
                                    d->sma_index, d->kernel_index);
        }
        return NULL;
}

static const char *describe_keys(struct arena *a, const char *text, const char *what, const struct p_key *keys,
                                 uint32_t n)
{
        for (uint32_t i = 0; i < n && i < SHOWN && text; i++)
                text = arena_printf(a, "%s%s%s0x%04x", text, *text && i == 0 ? "; " : "", i == 0 ? what : " ",
                                    keys[i].v);
        return text;
}

static void say_port(struct kernel *k, struct arena *a, const struct expected_port *p, const struct judgement *j)
{
        struct journal_about about = {
                .generation = k->generation->number, .node = p->label, .port_guid = p->guid, .lid = p->lid,
                .port = p->number,
        };
        const char *text = "";

        if (!is_news(k, p->guid, digest_judgement(j)))
                return;
        for (uint32_t i = 0; i < j->n_kernel && i < SHOWN && text; i++) {
                const char *one = describe_kernel(a, &j->kernel[i]);

                text = one ? arena_printf(a, "%s%s%s", text, *text ? "; " : "", one) : NULL;
        }
        if (j->n_kernel == 0) {
                text = describe_keys(a, text, "lacks ", j->policy.missing, j->policy.n_missing);
                if (text)
                        text = describe_keys(a, text, "has unasked ", j->policy.unexpected, j->policy.n_unexpected);
        }
        journal_event(&k->d->journal, EVENT_KERNEL_DIFFERS, &about,
                      "%s (0x%016" PRIx64 "): what this kernel holds is not what the %s says: %s", p->label, p->guid.v,
                      j->n_kernel > 0 ? "port" : "policy", text ? text : "out of memory");
}

static void say_right(struct kernel *k, uint32_t n)
{
        if (k->confirmed == k->generation->number && k->n_said == 0)
                return;
        k->confirmed = k->generation->number;
        k->n_said = 0;
        journal_event(&k->d->journal, EVENT_KERNEL_VERIFIED,
                      &(struct journal_about) { .generation = k->generation->number },
                      "generation %" PRIu64 ": the kernel's own tables agree on %u port%s of this host",
                      k->generation->number, n, n == 1 ? "" : "s");
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static void look_again_at(struct kernel *k, usec_t at)
{
        (void) sd_event_source_set_time(k->timer, at);
        (void) sd_event_source_set_enabled(k->timer, SD_EVENT_ONESHOT);
}

/* The SMA shall say what it holds: a short pass over this port, not more often than once in a while. Who writes here writes
 * elsewhere too (a subnet manager that was started again writes every table), so the whole fabric is next. */
static void ask_sma(struct kernel *k, struct guid guid)
{
        usec_t now = clock_now(), at = k->asked_at;

        if (at <= now) /* else one is on its way */
                at = MAX(now, at + LOOK_GAP);
        k->asked_at = at;
        daemon_look_at_port(k->d, guid, at);
        daemon_look_soon(k->d);
}

/* All expected ports. in_time: the kernel may still lag. */
static void look(struct kernel *k, bool in_time)
{
        _cleanup_arena_ struct arena *a = arena_new();
        uint32_t n_right = 0, n_wrong = 0;

        for (uint32_t i = 0; a && i < k->n_ports; i++) {
                struct judgement j;

                if (judge(k, a, &k->ports[i], &j) < 0)
                        continue;
                if (is_right(&j)) {
                        n_right++;
                        continue;
                }
                n_wrong++;
                if (in_time)
                        continue;
                /* what differs from the port's own table may be news of it; what both hold was said of the port */
                if (j.n_kernel > 0 && !k->asked_again)
                        ask_sma(k, k->ports[i].guid);
                else if (j.n_kernel > 0 || !k->ports[i].sma)
                        say_port(k, a, &k->ports[i], &j);
        }
        if (n_wrong > 0) {
                k->asked_again |= !in_time;
                if (in_time)
                        look_again_at(k, k->expected_at + GRACE);
                return;
        }
        k->asked_again = false;
        if (n_right > 0)
                say_right(k, n_right);
}

static int on_timer(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        struct kernel *k = userdata;

        (void) timer;
        (void) scheduled;
        (void) verbs_host_scan(k->host);
        if (k->generation && !k->d->pass && !k->d->stopping)
                look(k, clock_now() < k->expected_at + GRACE);
        return 0;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static const struct expected_port *find_expected(const struct kernel *k, struct guid guid)
{
        for (uint32_t i = 0; i < k->n_ports; i++)
                if (k->ports[i].guid.v == guid.v)
                        return &k->ports[i];
        return NULL;
}

/* Somebody wrote a table: pkeyd itself (a pass runs, or what is there is what it wrote), or somebody else. */
static void on_p_key_change(struct kernel *k, struct guid guid)
{
        const struct expected_port *p = find_expected(k, guid);
        _cleanup_arena_ struct arena *a = arena_new();
        struct judgement j;

        if (k->d->pass || !k->generation || !p || !a)
                return; /* the pass looks at its end */
        if (judge(k, a, p, &j) == 0 && !is_right(&j) && clock_now() >= k->expected_at + GRACE) {
                journal_debug(&k->d->journal, "%s: its P_Key table has changed", p->label);
                ask_sma(k, guid);
                return;
        }
        look_again_at(k, clock_now() + SETTLE); /* the kernel's table may follow its event */
}

static const char *event_to_string(enum verbs_event_kind kind)
{
        switch (kind) {
        case VERBS_P_KEY_CHANGE:
                return "P_Key change";
        case VERBS_LID_CHANGE:
                return "LID change";
        case VERBS_SM_CHANGE:
                return "SM change";
        case VERBS_CLIENT_REREGISTER:
                return "client reregister";
        case VERBS_PORT_ACTIVE:
                return "port active";
        case VERBS_PORT_ERROR:
                return "port error";
        case VERBS_DEVICE_FATAL:
                return "device fatal";
        }
        return "?";
}

static void on_event(const struct verbs_event *event, void *userdata)
{
        struct kernel *k = userdata;

        if (k->d->stopping)
                return;
        journal_debug(&k->d->journal, "%s/%u: %s", event->device, event->number, event_to_string(event->kind));
        switch (event->kind) {
        case VERBS_P_KEY_CHANGE:
                on_p_key_change(k, event->port_guid);
                break;
        case VERBS_DEVICE_FATAL:
                journal_event(&k->d->journal, EVENT_DEVICE_GONE, NULL, "%s has failed or was taken out", event->device);
                look_again_at(k, clock_now() + SETTLE);
                daemon_look_soon(k->d);
                break;
        case VERBS_SM_CHANGE:
                monitor_resubscribe(k->d->monitor);
                daemon_sm_changed(k->d);
                break;
        case VERBS_CLIENT_REREGISTER:
                monitor_resubscribe(k->d->monitor);
                daemon_look_soon(k->d);
                break;
        case VERBS_LID_CHANGE:
        case VERBS_PORT_ACTIVE:
        case VERBS_PORT_ERROR:
                daemon_look_soon(k->d);
                break;
        }
}

/* --- what is expected --------------------------------------------------------------------------------------------- */

static int expect_port(struct kernel *k, const struct desired *desired, const struct picture *picture, uint32_t port)
{
        const struct observed_table *t = &picture->observed->tables[port];
        const struct subnet_port *p = &picture->subnet->ports[port];
        const struct desired_port *want = &desired->ports[port];
        struct expected_port *e = &k->ports[k->n_ports];
        struct p_key *wanted = arena_new_array(k->arena, struct p_key, want->n_wanted);

        *e = (struct expected_port) { .guid = p->guid, .lid = p->lid, .number = p->number };
        e->label = subnet_port_label(k->arena, picture->subnet, port);
        if (!wanted || !e->label)
                return -ENOMEM;
        if (want->n_wanted > 0)
                memcpy(wanted, want->wanted, want->n_wanted * sizeof(*wanted));
        e->want = (struct desired_port) { wanted, want->n_wanted };
        if (t->source == TABLE_READ) {
                e->sma = arena_new_array(k->arena, struct p_key, t->capacity);
                if (!e->sma)
                        return -ENOMEM;
                memcpy(e->sma, t->entries, t->capacity * sizeof(*e->sma));
                e->n_sma = t->capacity;
        }
        k->n_ports++;
        return 0;
}

static int expect_ports(struct kernel *k, const struct desired *desired, const struct picture *picture)
{
        size_t n = verbs_host_n_ports(k->host);
        int r = 0;

        k->arena = arena_new();
        k->ports = k->arena ? arena_new_array(k->arena, struct expected_port, n) : NULL;
        if (!k->ports)
                return -ENOMEM;
        for (size_t i = 0; i < n && r == 0; i++) {
                struct verbs_port port;
                uint32_t found;

                if (verbs_host_query(k->host, i, &port) < 0 || !port.is_infiniband || port.port_guid.v == 0)
                        continue;
                found = subnet_find_endport(picture->subnet, port.port_guid);
                if (found != SUBNET_NONE)
                        r = expect_port(k, desired, picture, found);
        }
        return r;
}

void kernel_expect(struct kernel *k, const struct generation *g, const struct desired *desired,
                   const struct picture *picture)
{
        kernel_forget(k);
        (void) verbs_host_scan(k->host);
        if (expect_ports(k, desired, picture) < 0)
                return; /* out of memory: the SMAs have been asked, the kernel will be at the next sweep */
        k->generation = g;
        k->expected_at = clock_now();
        look(k, true);
}

void kernel_forget(struct kernel *k)
{
        k->generation = NULL;
        k->ports = NULL;
        k->n_ports = 0;
        k->arena = arena_free(k->arena);
}

void kernel_each_port(struct kernel *k, void (*see)(const struct verbs_port *port, void *userdata), void *userdata)
{
        struct verbs_port port;

        for (size_t i = 0; i < verbs_host_n_ports(k->host); i++)
                if (verbs_host_query(k->host, i, &port) == 0 && port.is_infiniband)
                        see(&port, userdata);
}

int kernel_new(struct daemon *d, struct kernel **ret)
{
        struct kernel *k = calloc(1, sizeof(*k));
        int r;

        if (!k)
                return -ENOMEM;
        k->d = d;
        r = verbs_host_new(d->event, on_event, k, &k->host);
        if (r == 0)
                r = sd_event_add_time(d->event, &k->timer, CLOCK_MONOTONIC, 0, 1, on_timer, k);
        if (r < 0) {
                kernel_free(k);
                return r;
        }
        *ret = k;
        return 0;
}

struct kernel *kernel_free(struct kernel *k)
{
        if (!k)
                return NULL;
        kernel_forget(k);
        sd_event_source_disable_unref(k->timer);
        verbs_host_free(k->host);
        free(k->said);
        free(k);
        return NULL;
}
