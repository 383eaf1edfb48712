# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrongs of the REST door: src/rest and src/pkeyd_rest."""

from wrongs import Wrong

REST, VALUES, CHANGE, HOSTS = "src/rest/rest.c", "src/rest/rest_values.c", "src/rest/rest_change.c", "src/rest/rest_hosts.c"
ANSWER, EDIT, VIEW = "src/rest/rest_answer.c", "src/rest/rest_edit.c", "src/rest/rest_view.c"
LIMITS, CREDENTIALS = "src/rest/rest_limits.c", "src/rest/rest_credentials.c"
DOOR, JOBS, LOGIN = "src/pkeyd_rest/door.c", "src/pkeyd_rest/jobs.c", "src/pkeyd_rest/login.c"
HTTP, REQUEST, CONNECTION = "src/pkeyd_rest/http.c", "src/pkeyd_rest/http_request.c", "src/pkeyd_rest/http_connection.c"
MESSAGES, JOURNAL, CERTIFICATE = "src/pkeyd_rest/lease_messages.c", "src/pkeyd_rest/door_journal.c", "src/pkeyd_rest/certificate.c"

WRONGS = [
    # requests
    Wrong("rest-prefix-of-a-longer-word", REST, " && (after.p == after.end || *after.p == '/')", ""),
    Wrong("rest-path-with-controls", REST, "                if (c < ' ' || c == 0x7f)\n                        return 0;\n", ""),
    Wrong("rest-longer-paths-fit", REST, "        return i == n;\n}", "        return true;\n}"),
    Wrong("rest-405-without-allow", REST, "        x->reply->response.allow = allow;\n", ""),
    Wrong("rest-body-beyond-its-limit", REST, "if (x->request->n_body > REST_MAX_BODY)", "if (false)"),
    Wrong("rest-two-memberships", VALUES, "                else if (last->membership != members[i].membership)\n", "                else if (false)\n"),
    Wrong("rest-doubled-keys", CHANGE, "JSON_REJECT_DUPLICATES", "0"),
    Wrong("rest-unknown-keys", CHANGE, "                if (!find_key(keys, n, name))\n", "                if (false)\n"),
    Wrong("rest-members-of-more-memberships", CHANGE, "if (memberships && json_array_size(memberships) != n)", "if (false)"),
    # node lists
    Wrong("rest-hosts-are-switches", HOSTS, "                if (v->ports[i].is_computer)\n", "                if (1)\n"),
    Wrong("rest-hosts-without-limit", HOSTS, "if (h->lists[i]->n_names > room)", "if (false)"),
    Wrong("rest-unknown-hosts-are-left-out", HOSTS, "if (r == 0 && h.n_unknown > 0)", "if (false)"),
    Wrong("rest-hosts-that-are-gone-stay", HOSTS, "add_ports(&h) ?: add_members(&h) ?: find_hosts(&h)", "add_ports(&h) ?: find_hosts(&h)"),
    Wrong("rest-first-port-of-a-host", HOSTS, "strcmp(h->named[i].host, name) == 0; i++)\n                r = add_member", "i == first && strcmp(h->named[i].host, name) == 0; i++)\n                r = add_member"),
    # edits and answers
    Wrong("rest-replace-only-adds", EDIT, 'c->kind == REST_REPLACE ? "set" : "add"', '"add"'),
    Wrong("rest-partition-goes-while-empty", EDIT, "e->has_keep = is_new || c->kind == REST_CREATE;", "e->has_keep = is_new && c->kind != REST_CREATE;"),
    Wrong("rest-qos-makes-a-partition", EDIT, "                e->must_exist = true;\n", ""),
    Wrong("rest-releasing-is-an-error", EDIT, '"edited", "released", "releasing"', '"edited", "released", "edited"'),
    Wrong("rest-failed-is-stored", EDIT, '"edited", "released", "releasing"', '"edited", "released", "failed"'),
    Wrong("rest-index0-conflict-is-a-refusal", EDIT, ' || strcmp(code, "lease.index0-taken") == 0', ""),
    Wrong("rest-not-now-for-ever", EDIT, 'strcmp(code, "lease.not-now") == 0 ? REST_UNAVAILABLE : REST_REFUSED', "REST_REFUSED"),
    Wrong("rest-gone-is-an-error", EDIT, "change->kind == REST_REMOVE ? REST_STORED : REST_NOT_FOUND", "REST_NOT_FOUND"),
    Wrong("rest-groups-mix-index0", EDIT, "kind & 1 ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED, kind & 2", "kind & 1 ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED, false"),
    Wrong("rest-leases-that-are-not-open", VIEW, "if (!leases[i].is_open || !is_in_force(&leases[i]))", "if (!is_in_force(&leases[i]))"),
    Wrong("rest-leases-that-are-released", VIEW, "if (!leases[i].is_open || !is_in_force(&leases[i]))", "if (!leases[i].is_open)"),
    Wrong("rest-empty-partitions-are-shown", VIEW, "l->n_members == 0 && !l->is_kept", "false"),
    # limits
    Wrong("rest-network-of-ipv4", LIMITS, "? 16 : 8);", "? 8 : 8);"),
    Wrong("rest-address-of-ipv6", LIMITS, "? 16 : 8);", "? 16 : 16);"),
    Wrong("rest-delay-of-the-address-only", LIMITS, "delay_of(MAX(n, n_of_name))", "delay_of(n)"),
    Wrong("rest-delay-never-grows", LIMITS, "                delay *= 2;\n", "                ;\n"),
    Wrong("rest-failures-for-ever", LIMITS, "return i->n > 0 && now - i->last < REST_FORGET_AFTER;", "return i->n > 0;"),
    Wrong("rest-login-for-ever", LIMITS, "if (i == l->n || now - l->items[i].used >= REST_LOGIN_LASTS)", "if (i == l->n)"),
    Wrong("rest-busy-connections-make-room", LIMITS, "if (!c->is_busy && (!from", "if ((!from"),
    Wrong("rest-one-address-takes-all", LIMITS, "size_t share = MAX(max / 2, (size_t) 1)", "size_t share = max"),
    Wrong("rest-token-as-password", CREDENTIALS, "return prefix == REST_PREFIX_TOKEN ? c->token : c->password;", "return c->token ?: c->password;"),
    Wrong("rest-part-of-a-name", CREDENTIALS, " && c->name[n] == '\\0')", ")"),
    Wrong("rest-certificate-besides-a-password", CREDENTIALS, "return authorization && *authorization ? -EACCES : check_certificate", "return check_certificate"),
    # the program
    Wrong("door-certificate-unverified", CERTIFICATE, "chain && n > 0 && is_verified(session) ?", "chain && n > 0 ?"),
    Wrong("door-clients-without-limit", LOGIN, "ret->outcome = LOGIN_TOO_MANY_REQUESTS;", ";"),
    Wrong("door-failures-without-delay", LOGIN, "                ret->delay = failure.delay;\n", ""),
    Wrong("door-digest-of-any-prefix", LOGIN, "gnutls_hmac(h, &kind, 1) < 0", "kind == 99"),
    Wrong("door-logins-outlive-a-reload", LOGIN, "        l->logins.n = 0;\n", ""),
    Wrong("door-hashes-without-limit", LOGIN, "return rest_bucket_take(&l->hashes, &all_hashes, now) == 0;", "return true;"),
    Wrong("door-answers-before-pkeyd", JOBS, "        else\n                call(job, JOB_EDITS);\n", "        else {\n                call(job, JOB_EDITS);\n                answer_change(job, REST_STORED, NULL);\n        }\n"),
    Wrong("door-lost-call-is-stored", JOBS, "answer_change(job, REST_UNAVAILABLE, text);", "answer_change(job, REST_STORED, text);"),
    Wrong("door-queue-without-end", JOBS, "if (queue == &j->changes && queue->n == MAX_CHANGES)", "if (false)"),
    Wrong("door-change-for-nobody", JOBS, "        if (!http_request_is_awaited(job->request)) {\n", "        if (false) {\n"),
    Wrong("door-unlogged-change", JOBS, "        door_log_change(job->jobs->journal, &audit);\n", "        (void) audit;\n"),
    Wrong("door-logs-the-first-guids", JOURNAL, "        } while (first < audit->change->n_members);\n", "        } while (false);\n"),
    Wrong("door-for-itself", MESSAGES, 'r = sd_bus_message_append(m, "{sv}", "Client", "s", client);', "(void) client;"),
    Wrong("door-body-without-limit", REQUEST, "if (q->response.status == 0 && is_too_long(q, q->n_body + n))", "if (false)"),
    Wrong("door-length-without-limit", REQUEST, "!scan_number(&s, 10, UINT64_MAX - 1, &n) || is_too_long(q, n)", "!scan_number(&s, 10, UINT64_MAX - 1, &n)"),
    Wrong("door-drops-without-end", REQUEST, "return q->n_dropped > REST_MAX_BODY ? MHD_NO : MHD_YES;", "return MHD_YES;"),
    Wrong("door-401-without-a-scheme", REQUEST, "        if (r->status == 401)\n", "        if (false)\n"),
    Wrong("door-delays-all", REQUEST, "        if (s->n_delayed == MAX_DELAYED) {\n", "        if (false) {\n"),
    Wrong("door-idle-for-ever", CONNECTION, "        c->deadline = now + c->server->conf->max_time;\n", "        c->deadline = USEC_INFINITY - 1;\n"),
    Wrong("door-waits-for-pkeyd-for-ever", HTTP, "if (c->deadline <= now && q && http_request_is_awaited(q) && q->is_complete) {", "if (false) {"),
    Wrong("door-full-for-everybody", HTTP, "                http_cut(to_connection(instead));\n", "                (void) close(fd);\n                return;\n"),
    Wrong("door-connections-beyond-the-limit", DOOR, "        d->max_connections = MIN(wanted, room);\n", "        d->max_connections = wanted;\n"),
    Wrong("door-refused-file-is-in-force", DOOR, "        if (r < 0)\n                return r;\n        if (!listeners_are_from_systemd", "        if (!listeners_are_from_systemd"),
    Wrong("door-ends-at-once", DOOR, "        d->listeners = listeners_free(d->listeners);\n        http_server_end(d->servers->http);\n", "        d->listeners = listeners_free(d->listeners);\n        (void) sd_event_exit(d->event, 0);\n"),
]
