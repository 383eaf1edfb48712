/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd/etcd_lease.h"

#include <errno.h>

#include "etcd/etcd_message.h"
#include "shell/shell.h"
#include "shell/timer.h"

#define GRANT_TIMEOUT  (3 * USEC_PER_SEC)
#define REVOKE_TIMEOUT USEC_PER_SEC

/* The time counts from when the request was sent, which is before etcd begins to count. */
static void extend(struct etcd_lease *l, usec_t asked_at, uint64_t seconds)
{
        usec_t length = MIN(seconds, (uint64_t) ETCD_LEASE_MAX) * USEC_PER_SEC;

        if (length > ETCD_MARGIN)
                l->deadline = MAX(l->deadline, asked_at + length - ETCD_MARGIN);
}

static usec_t renewal_interval(const struct etcd_lease *l)
{
        return l->seconds * USEC_PER_SEC / 5;
}

/* If etcd does not know the lease, or no time is left, it has ended. If there was no answer, the deadline stays as it was. */
static void on_renewed(int r, json_t *answer, void *userdata)
{
        struct etcd_lease *l = userdata;
        const json_t *result = json_object_get(answer, "result");
        uint64_t seconds = 0;

        l->renewal = NULL;
        if (r == -ENOENT || (r == 0 && (!etcd_number(result, "TTL", &seconds) || seconds == 0)))
                l->deadline = 0;
        else if (r == 0)
                extend(l, l->asked_at, seconds);
        (void) timer_set(l->timer, l->deadline > 0 ? clock_now() + renewal_interval(l) : USEC_INFINITY);
}

static int on_renewal_due(sd_event_source *, uint64_t, void *userdata)
{
        struct etcd_lease *l = userdata;

        l->asked_at = clock_boot();
        if (etcd_http_post(l->http, ETCD_LEASE_RENEW, etcd_lease_reference(l->id), renewal_interval(l) * 2, on_renewed, l,
                           &l->renewal) < 0)
                (void) timer_set(l->timer, clock_now() + renewal_interval(l));
        return 0;
}

static void forget(struct etcd_lease *l)
{
        etcd_http_drop(l->renewal);
        sd_event_source_disable_unref(l->timer);
        *l = (struct etcd_lease) {};
}

int etcd_lease_take(struct etcd_lease *l, struct etcd_http *http, sd_event *event, unsigned seconds)
{
        usec_t asked_at = clock_boot();
        _cleanup_json_ json_t *answer = NULL;
        uint64_t given = 0;
        int r;

        *l = (struct etcd_lease) { .http = http, .seconds = seconds };
        r = etcd_http_call(http, ETCD_LEASE_GRANT, etcd_lease_grant(seconds), GRANT_TIMEOUT, &answer);
        if (r == 0 && (!etcd_number(answer, "ID", &l->id) || !etcd_number(answer, "TTL", &given) || l->id == 0 || given == 0))
                r = -EPROTO;
        r = r ?: sd_event_add_time(event, &l->timer, CLOCK_MONOTONIC, clock_now() + renewal_interval(l), 1, on_renewal_due, l);
        if (r < 0) {
                forget(l);
                return r;
        }
        extend(l, asked_at, given);
        return 0;
}

void etcd_lease_give_back(struct etcd_lease *l)
{
        _cleanup_json_ json_t *answer = NULL;
        struct etcd_http *http = l->http;
        uint64_t id = l->id;

        if (id == 0)
                return;
        forget(l);
        (void) etcd_http_call(http, ETCD_LEASE_REVOKE, etcd_lease_reference(id), REVOKE_TIMEOUT, &answer);
}
