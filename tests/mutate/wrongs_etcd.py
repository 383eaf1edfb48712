# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrongs about a store that two head nodes share: the lock and its lease, transactions of etcd, and the one that stands by."""

from wrongs import Wrong

STORE, LEASE, HTTP = "src/etcd/etcd_store.c", "src/etcd/etcd_lease.c", "src/etcd/etcd_http.c"
STATE, GATE = "src/state/state.c", "src/gate/gate.c"
DECIDE, CONFIRM, INTERNAL = "src/control/sweep_decide.c", "src/control/confirm.c", "src/control/control_internal.c"

WRONGS = [
    Wrong("etcd-commit-without-the-lock", STORE, "etcd_if_created(lock_key(s, lock), s->lock)", "etcd_if_created(lock_key(s, lock), s->lock ? 0 : 1)"),
    Wrong("etcd-any-lock-will-do", STORE, "        if (r == 0) {\n                s->lease.deadline = 0;\n                return -ENOLCK;\n        }\n", ""),
    Wrong("etcd-lock-is-not-asked-for", STORE, "        if (s->lock == 0)\n                return -ENOLCK;\n        r = a ?", "        r = a ?"),
    Wrong("etcd-lock-of-another", STORE, "lock.lease == s->lease.id", "lock.lease != s->lease.id"),
    Wrong("etcd-lock-without-a-lease", STORE, "strlen(s->holder), s->lease.id)", "strlen(s->holder), 0)"),
    Wrong("etcd-lock-may-exist", STORE, "etcd_if_created(lock, 0)", "etcd_if_created(lock, s->seen)"),
    Wrong("etcd-parts-count-at-once", STORE, "                if (r < 0 || ret->redo == 0)\n                        return r;\n                r = redo(s, ret->redo);", "                if (r < 0)\n                        return r;\n                r = redo(s, ret->redo);"),
    Wrong("etcd-old-parts-stay", STORE, "        int r = delete_parts(s);\n", "        int r = 0 && delete_parts(s);\n"),
    Wrong("etcd-first-operation-counts", STORE, "strcmp((*a)->key, (*b)->key) ?: ORDER(*a, *b)", "strcmp((*a)->key, (*b)->key) ?: ORDER(*b, *a)"),
    Wrong("etcd-page-is-all", STORE, "        if (r == 0 && !etcd_has_more(answer))\n", "        if (r == 0)\n"),
    Wrong("etcd-older-is-believed", STORE, "        if (commit.modified < s->seen)\n                return -EUCLEAN;\n", ""),
    Wrong("etcd-change-is-not-seen", STORE, "        r = now.commit != s->seen;\n", "        r = 0;\n"),
    Wrong("etcd-newer-version", STORE, "return v == STORE_SCHEMA_VERSION ? 0 : -EPROTONOSUPPORT;", "return v > 0 ? 0 : -EPROTONOSUPPORT;"),
    Wrong("etcd-lease-from-the-answer", LEASE, "                extend(l, l->asked_at, seconds);\n", "                extend(l, clock_boot() + ETCD_MARGIN, seconds);\n"),
    Wrong("etcd-lease-ended-unnoticed", LEASE, "                l->deadline = 0;\n        else if", "                ;\n        else if"),
    Wrong("etcd-lease-is-not-renewed", LEASE, "(void) timer_set(l->timer, l->deadline > 0 ? clock_now() + renewal_interval(l) : USEC_INFINITY);", "(void) timer_set(l->timer, USEC_INFINITY);"),
    Wrong("etcd-one-member-only", HTTP, "q->member = (q->member + 1) % h->config->n_endpoints;", "q->member = (q->member + 0) % h->config->n_endpoints;"),
    Wrong("etcd-any-password", HTTP, "        case GRPC_UNAUTHENTICATED:\n                return -EACCES;", "        case GRPC_UNAUTHENTICATED:\n                return -EHOSTUNREACH;"),
    Wrong("etcd-state-holds-for-ever", STATE, "(s->store && etcd_store_deadline(s->store) > clock_boot())", "s->store"),
    Wrong("etcd-state-takes-state-db-along", STATE, "        if (has_file(s, SQLITE_FILES_NAME))\n                return -EEXIST;\n", ""),
    Wrong("etcd-state-forgets-the-mark", STATE, "has_file(s, STATE_MARK) ? -EXDEV : ", ""),
    Wrong("etcd-what-was-followed-is-believed", STATE, "        s->stale = true;\n        return r;\n}", "        return r;\n}"),
    Wrong("etcd-not-loaded-after-an-outage", STATE, "                s->stale = true; /* others may have committed meanwhile */\n", ""),
    Wrong("etcd-gate-does-not-ask", GATE, "        if (!g->holds_lock || g->holds_lock(g->lock_userdata))\n", "        if (g->holds_lock || g->holds_lock(g->lock_userdata))\n"),
    Wrong("etcd-gate-asks-first", GATE, "        if (!admit_set(g, &set))\n                return false;\n        if (!g->holds_lock", "        if (g->holds_lock && !g->holds_lock(g->lock_userdata))\n                return false;\n        if (!admit_set(g, &set))\n                return false;\n        if (true || !g->holds_lock"),
    Wrong("etcd-known-fabric-with-other-knowledge", "src/control/control.c", " && !c->discovery_failed && !c->knowledge_is_new &&\n", " && !c->discovery_failed &&\n"),
    Wrong("etcd-guest-takes-the-lock", DECIDE, "        if (control_stands_by(c)) {\n                sweep_query", "        if (control_is_guest(c) && c->sm.state == SM_FOLLOW_WRITER) {\n                sweep_query"),
    Wrong("etcd-guest-loads-its-files", DECIDE, "        if (control_is_guest(c) && c->candidate && c->in_force)\n", "        if (control_is_guest(c) && c->candidate && !c->in_force)\n"),
    Wrong("etcd-guest-undoes", CONFIRM, "c->status.stopping || control_is_guest(c)) /* the time", "c->status.stopping) /* the time"),
    Wrong("etcd-guest-keeps-its-generation", CONFIRM, "(control_is_guest(c) || !c->in_force || g->number", "(!c->in_force || g->number"),
    Wrong("etcd-writer-ignores-an-apply", CONFIRM, "(control_is_guest(c) || !c->in_force || g->number > c->in_force->number)", "control_is_guest(c)"),
    Wrong("etcd-writer-goes-back", CONFIRM, "g->number > c->in_force->number", "g->number != c->in_force->number"),
    Wrong("etcd-everybody-is-a-guest", INTERNAL, "control_follows_sm(c) && c->sm.state != SM_FOLLOW_WRITER", "control_follows_sm(c)"),
]
