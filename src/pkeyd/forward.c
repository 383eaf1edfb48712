/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/forward.h"

#include <errno.h>
#include <string.h>

#include "etcd/etcd_mailbox.h"
#include "records/lease_json.h"

#define FOREIGN (UINT64_C(1) << 63) /* in the number of a request of the other head node; the rest is its ID in the mailbox */
#define SPARE   30u /* seconds that a caller waits for the other head node, in addition to what it asked for */

/* A request that cannot be parsed stays in the mailbox: the next process that serves it may have another version. */
static void on_asked(uint64_t id, const char *text, void *userdata)
{
        _cleanup_json_ json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        _cleanup_arena_ struct arena *a = arena_new();
        struct forward *f = userdata;
        struct lease_request q;

        if (!a || !lease_request_from_json(a, o, &q))
                return;
        q.by.request = id | FOREIGN;
        f->handlers.asked(&q, f->handlers.userdata);
}

/* r: of the mailbox, or -EBADMSG: the reply cannot be parsed. */
static const char *explain(int r, char *buffer, size_t size)
{
        switch (r) {
        case -ETIMEDOUT:
                return "neither head node has answered the request: neither writes now, or etcd cannot be reached; it may still be "
                       "carried out; send it again";
        case -EMSGSIZE:
                return "the request is too large for etcd; send it on the head node that writes";
        case -EBADMSG:
                return "the answer of the other head node cannot be understood: its pkeyd may have another version";
        }
        (void) snprintf(buffer, size, "pkeyd cannot ask the other head node through etcd: %s", etcd_http_explain(r) ?: strerror(-r));
        return buffer;
}

static void on_answered(uint64_t request, int r, const char *text, void *userdata)
{
        _cleanup_json_ json_t *o = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        _cleanup_(lease_free_p) struct lease *lease = lease_new();
        _cleanup_findings_ struct findings findings = {};
        const struct forward *f = userdata;
        struct lease_reply reply = { .findings = &findings };
        char why[192];

        if (r == 0 && !lease)
                r = -ENOMEM;
        if (lease)
                findings.arena = lease->arena;
        if (r == 0 && !lease_reply_from_json(o, f->status->known, lease, &findings, &reply.answer))
                r = -EBADMSG;
        reply.answer.request = request;
        if (r == 0)
                f->handlers.answered(&reply, f->handlers.userdata);
        else
                f->handlers.unanswered(request, explain(r, why, sizeof(why)), f->handlers.userdata);
}

int forward_ask(struct forward *f, const struct lease_request *q)
{
        _cleanup_json_ json_t *o = lease_request_to_json(q);
        _cleanup_free_ char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
        uint64_t seconds = q->kind == LEASE_CREATE && q->timeout > 0 ? MIN(q->timeout, LEASE_TIMEOUT_MAX) : LEASE_TIMEOUT;

        return text ? etcd_mailbox_ask(f->mailbox, q->by.request, text, (unsigned) seconds + SPARE) : -ENOMEM;
}

/* A request with another outcome gets no reply; it stays in the mailbox for the next writer. */
bool forward_reply(struct forward *f, const struct lease_reply *reply)
{
        uint64_t request = reply->answer.request;

        if (!f->mailbox || !(request & FOREIGN))
                return false;
        if (reply->answer.outcome <= LEASE_REFUSED) {
                _cleanup_json_ json_t *o = lease_reply_to_json(reply);
                _cleanup_free_ char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

                if (text)
                        etcd_mailbox_reply(f->mailbox, request & ~FOREIGN, text);
        }
        return true;
}

void forward_update(struct forward *f)
{
        if (f->mailbox)
                etcd_mailbox_serve(f->mailbox, f->status->in_force && !f->status->guest && !f->status->stopping);
}

int forward_init(struct forward *f, sd_event *event, const struct etcd_config *etcd, const struct control_status *status,
                 const struct forward_handlers *handlers)
{
        *f = (struct forward) { .status = status, .handlers = *handlers };
        return etcd_mailbox_new(event, etcd, &(struct etcd_mailbox_handlers) { on_asked, on_answered, f }, &f->mailbox);
}

void forward_done(struct forward *f)
{
        f->mailbox = etcd_mailbox_free(f->mailbox);
}
