# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs of leases."""

from wrongs import Wrong

SELECT = "src/policy/policy_select.c"
LEASES = "src/leases/leases.c"
LIFE = "src/leases/lease_life.c"
REQUEST = "src/leases/lease_request.c"
EXTEND = "src/leases/lease_policy.c"
EDIT = "src/leases/lease_edit.c"
HEADER = "src/leases/leases.h"
RECORDS = "src/records/lease_json.c"
BUS_MESSAGE, HELD = "src/pkeyd/bus_lease_message.c", "src/knowledge/held.c"
LEASING = "src/control/leasing.c"
SWEEP = "src/control/lease_sweep.c"
SCHEDULE = "src/control/schedule.c"
SWEEP_PLAN = "src/control/sweep_plan.c"
COUNTS = "src/knowledge/counts.c"
FREEZER = "src/conditions/freezer.c"
KNOWLEDGE = "src/knowledge/knowledge.c"
BUILDER = "src/subnet/builder.c"

WRONGS = [
    Wrong("leases-granted-by-the-wall-clock", "src/leases/lease_life.c", "        lease->due = lease->ends_due;\n        log_add", "        lease->due = time_of_wall(0, 0, lease->ends, lease->seconds);\n        log_add"),
    Wrong("leases-renewed-while-granted-keeps-its-end", "src/leases/lease_request.c", "        lease_set_ends_due(lease, view->now, view->wall);\n        if (lease->seconds > 0)", "        if (lease->state == LEASE_ACTIVE)\n                lease_set_ends_due(lease, view->now, view->wall);\n        if (lease->seconds > 0)"),
    Wrong("leases-active-ones-end-as-before", "src/leases/lease_life.c", "        if (lease->state == LEASE_ACTIVE)\n                lease->due = lease->ends_due;\n", ""),
    Wrong("own-entry-of-a-lease-is-drift", SWEEP, "                watch_forget_right(c->watch, subnet_port_node(s, p)->guid, p->number);\n", "                (void) p;\n"),
    # who may, and what
    Wrong("lease-for-anybody", REQUEST, "if (text_is_one_of(by->names[i], pool->allow, pool->n_allow))", "if (true)"),
    Wrong("lease-with-the-id-of-a-client", REQUEST, "check_reserved(by, id, findings) ?: check_wish", "check_wish"),
    Wrong("lease-of-a-client-refused", REQUEST, " || strncmp(by->origin.user, reserved, n) == 0)", ")"),
    Wrong("lease-of-ports-outside", REQUEST, "if (!port_list_holds_certainly(&all, members->ports[i]) && n++ == 0)", "if (0)"),
    Wrong("lease-of-a-contested-name", SELECT, "return e ?: refuse_contested(s->matcher.subnet, ret, findings);", "return e;"),
    Wrong("lease-without-a-host", SELECT, "return found.n > 0 ? -EBADMSG :", "return e < 0 ? e :"),
    Wrong("lease-as-long-as-wanted", REQUEST, "        if (seconds <= pool->longest)\n                return 0;\n", "        return 0;\n"),
    Wrong("longest-in-hours-only", REQUEST, "unsigned unit = seconds % 3600 == 0 ? 3600 : ", "unsigned unit = seconds >= 3600 ? 3600 : "),
    Wrong("longest-in-seconds", REQUEST, "seconds % 3600 == 0 ? 3600 : seconds % 60 == 0 ? 60 : 1;", "1;"),
    Wrong("lease-with-other-arguments", REQUEST, "        if (!same_wish(&lease->wish, wish))", "        if (0)"),
    Wrong("lease-while-it-is-releasing", REQUEST, "        if (lease->state != LEASE_RELEASING)\n                return 0;\n        return findings_error", "        if (makes || lease->state != LEASE_RELEASING)\n                return 0;\n        return findings_error"),
    Wrong("lease-in-audit", LEASING, "        if (g->audits)\n                return", "        if (0)\n                return"),
    # the P_Key
    Wrong("key-of-another-lease", REQUEST, "return !leases_find_base(t->leases, base) && !t->rests[base]", "return !t->rests[base]"),
    Wrong("key-of-a-lease-before-its-edit", EDIT, "        l->by_base[new->base] = new;\n", ""),
    Wrong("key-of-a-lease-that-was-freed", LEASES, "                                l->by_base[lease->base] = NULL;\n", "                                (void) lease;\n"),
    Wrong("key-that-rests", REQUEST, "return !leases_find_base(t->leases, base) && !t->rests[base] &&", "return !leases_find_base(t->leases, base) &&"),
    Wrong("key-that-is-held", REQUEST, " && !is_held(t, base);", ";"),
    Wrong("no-key-with-numbers-of-nothing", REQUEST, "        if (n > 0)\n                text_add(t, \"%s%u %s\"", "        if (true)\n                text_add(t, \"%s%u %s\""),
    Wrong("no-key-counts-all-as-held", REQUEST, "n_held += !is_leased && !t->rests[base];", "n_held++;"),
    Wrong("key-that-is-wanted-and-held", REQUEST, 'return is_held(t, base) ? "a port', 'return 0 ? "a port'),
    Wrong("held-by-nobody", COUNTS, "if (memcmp(&all, &none, sizeof(all)) != 0)", "if (0)"),
    Wrong("held-but-not-by-writes", COUNTS, "                for (size_t w = 0; w < r->n_writes; w++)\n                        if (r->writes[w].is_sent)\n                                list_keys", "                for (size_t w = 0; w < 0; w++)\n                        if (r->writes[w].is_sent)\n                                list_keys"),
    # its life
    Wrong("granted-without-the-entry", LIFE, "                all &= m->state == LEASE_MEMBER_CONFIRMED;\n", ""),
    Wrong("granted-without-the-switch", LIFE, " || find_entry(t, key, &at);", " || true;"),
    Wrong("granted-where-a-filter-is-doubted", LIFE, " || t->enforcement_doubted) ||", ") ||"),
    Wrong("granted-behind-a-silent-switch", LIFE, "return !subnet_port_is_behind_unknown(s, &s->ports[port]);", "return true;"),
    Wrong("stranded-is-given-up-too", LIFE, "l->items[i]->state == LEASE_GRANTING && !l->items[i]->is_stranded", "l->items[i]->state == LEASE_GRANTING"),
    Wrong("granted-by-an-assumed-table", LIFE, "t->source == TABLE_READ && i < t->capacity", "i < t->capacity"),
    Wrong("lease-never-ends", LIFE, "        } else if (lease->state == LEASE_ACTIVE) {\n", "        } else if (0) {\n"),
    Wrong("lease-by-a-clock-set-back", LIFE, "lease_time_after(now, MIN(until > wall ? until - wall : 0, most));", "lease_time_after(now, until > wall ? until - wall : 0);"),
    Wrong("lease-ended-while-held", LIFE, "        if (holder) {\n", "        if (0) {\n"),
    Wrong("releasing-is-confirmed", LEASES, "for (uint32_t i = 0; lease_is_in_force(lease) && i <", "for (uint32_t i = 0; i <"),
    Wrong("releasing-members-are-confirmed", BUS_MESSAGE, "if (lease->state != LEASE_RELEASING || lease_member_is_unseen(m))", "if (true)"),
    Wrong("released-although-it-may-hold", BUS_MESSAGE, '? "may-hold" : "released"', '? "released" : "released"'),
    Wrong("releasing-without-who-holds", BUS_MESSAGE, "detail == BUS_LEASE_HOLDERS && lease->state == LEASE_RELEASING)", "false)"),
    Wrong("holders-are-what-was-read", HELD, "k->records[i].name.kind != KNOWLEDGE_LEAF && knowledge_port_may_hold", "k->records[i].name.kind != KNOWLEDGE_LEAF && k->records[i].n_writes == 0 && knowledge_port_may_hold"),
    Wrong("holders-that-are-counted-are-kept", HELD, "base) && ret->n_by++ < HELD_MAX)", "base) && ret->n_by < HELD_MAX && ++ret->n_by)"),
    Wrong("lease-without-a-rest", LIFE, "        r = rest(l, lease, now, wall);\n", "        r = 0;\n"),
    Wrong("partial-although-not-wanted", LIFE, "if (!lease->wish.partial || !any)", "if (!any)"),
    Wrong("left-out-and-still-a-member", EXTEND, "return m->state <= LEASE_MEMBER_EXPECTED && !m->is_leaving && m->membership", "return m->membership"),
    Wrong("answered-before-it-is-stored", LEASES, "                if (l->items[i]->store == LEASE_IN_STORE)\n                        answer_waiters", "                answer_waiters"),
    Wrong("stored-although-it-changed", LEASES, "        lease->store = LEASE_TO_STORE;\n", "        lease->store = MIN(lease->store, LEASE_STORING);\n"),
    # reloads
    Wrong("stranded-is-accepted", EXTEND, "return r < 0 ? r : n > 0 && !release ? -EBADMSG : 0;", "return r < 0 ? r : 0;"),
    Wrong("stranded-by-its-key", EXTEND, "else if (policy_pool_of_base(view->policy, lease->base) != pool)", "else if (0)"),
    Wrong("stranded-by-its-ports", EXTEND, "        if (outside)\n", "        if (0)\n"),
    Wrong("stranded-and-kept", LEASING, "        leases_release_stranded(c->leases, c->now, c->log);\n", ""),
    Wrong("stranded-by-a-lost-name", EXTEND, " && port_list_holds(before, port) &&\n", " &&\n"),
    Wrong("stranded-by-a-twin", EXTEND, "                    !port_list_holds(ports, port))", "                    !port_list_holds_certainly(ports, port))"),
    Wrong("stranded-by-the-candidate-alone", LEASING, "in_force = view_of(c, c->in_force, before);", "in_force = view_of(c, g, selection);"),
    Wrong("contested-is-certain", "src/policy/selector_match.h", "return at && list->contested[at - list->ports] == FREEZE_NONE;", "return at;"),
    # records
    Wrong("record-without-left-out", RECORDS, 'm->state == LEASE_MEMBER_LEFT_OUT ? LEFT_OUT : ""', '""'),
    Wrong("record-of-nobody", RECORDS, "return lease->is_open || (n > 0 && lease->state == LEASE_RELEASING) || lease_n_in_force", "return lease->is_open || lease_n_in_force"),
    Wrong("record-without-who-asked", RECORDS, " || !read_origin(o, &lease->owner)", ""),
    Wrong("record-with-a-port-twice", RECORDS, "m->port.v <= m[-1].port.v", "m->port.v < m[-1].port.v"),
    Wrong("rest-is-not-stored", "src/records/lease_records.c", "        if (rest->is_over)\n", "        if (true)\n"),
    # open leases
    Wrong("edit-of-a-closed-lease", EDIT, "        if (!lease->is_open)\n", "        if (0)\n"),
    Wrong("edit-of-another-pool", EDIT, "strcmp(lease->wish.pool, edit->pool) != 0 || ", ""),
    Wrong("edit-removes-the-others", EDIT, "is_target != (kind == LEASE_REMOVE_MEMBERS)", "is_target != (kind == LEASE_SET_MEMBERS)"),
    Wrong("edit-keeps-the-membership", EDIT, "if (is_admitted && m->membership == t->membership && ", "if (is_admitted && "),
    Wrong("edit-admits-who-was-left-out", EDIT, "bool is_admitted = m && m->state != LEASE_MEMBER_LEFT_OUT;", "bool is_admitted = m;"),
    Wrong("edit-forgets-who-leaves", EDIT, "                m->is_leaving = m->is_changed = true;\n", "                m->is_leaving = true;\n"),
    Wrong("edit-returns-too-late", EDIT, "                m->is_leaving = false;\n", ""),
    Wrong("edit-beyond-the-pool", EDIT, "        if (r == 0 && edit->kind != LEASE_REMOVE_MEMBERS)\n                r = lease_check_ports(", "        if (0)\n                r = lease_check_ports("),
    Wrong("edit-needs-no-plan", EDIT, "        if (lease && is_changed(&edited))\n                lease_changed(l, new);\n", ""),
    Wrong("edit-without-both", EDIT, "int r = lease_check_membership(group->membership, findings);", "int r = 0;"),
    Wrong("unseen-beyond-the-pool", EDIT, "if (port_list_holds_certainly(ports, port) && ", "if ("),
    Wrong("unseen-for-ever", EDIT, "        m->state = state;\n        m->is_changed = true;\n", ""),
    Wrong("left-out-for-ever", EDIT, "return (is_left_out || is_waiting(lease, m)) &&", "return is_waiting(lease, m) &&"),
    Wrong("left-out-at-each-sweep", EDIT, "        if (m->state == state)\n                return 0;\n", ""),
    Wrong("left-out-gets-index0-of-another", EDIT, "port_list_holds_certainly(ports, port) && !index0_is_taken(l, lease, m)", "port_list_holds_certainly(ports, port)"),
    Wrong("number-of-who-leaves", EDIT, "lease_check_number(lease_n_wanted(lease), findings);", "lease_check_number(lease->n_members, findings);"),
    Wrong("leaving-without-a-limit", EDIT, "        if (lease->n_members > 2 * LEASE_MAX_MEMBERS)\n", "        if (0)\n"),
    Wrong("unseen-is-in-force", HEADER, "return m->state <= LEASE_MEMBER_CONFIRMED && !m->is_leaving;", "return m->state != LEASE_MEMBER_LEFT_OUT && !m->is_leaving;"),
    Wrong("leaving-is-in-force", HEADER, "return m->state <= LEASE_MEMBER_CONFIRMED && !m->is_leaving;", "return m->state <= LEASE_MEMBER_CONFIRMED;"),
    Wrong("leaving-for-ever", LEASES, "                if (!lease->members[i].is_leaving)\n                        lease->members[n++]", "                if (1)\n                        lease->members[n++]"),
    Wrong("all-members-anew", EXTEND, "lease_member_is_unseen(m) || (lease->is_open && is_in_policy(lease) && !m->is_changed)", "lease_member_is_unseen(m)"),
    Wrong("record-of-who-leaves", RECORDS, "lease->n_members, !lease->members[i].is_leaving, member_to_json", "lease->n_members, true, member_to_json"),
    Wrong("record-without-its-membership", RECORDS, "bool differs = m->membership != lease->membership;", "bool differs = false;"),
    Wrong("record-of-an-unseen", RECORDS, "else if (lease->is_open && ret->node.v == 0)", "else if (false)"),
    Wrong("record-is-not-open", RECORDS, 'put_true(o, "open", lease->is_open)', 'put_true(o, "open", false)'),
    Wrong("edited-before-it-is-confirmed", LEASES, "return waiter->kind != LEASE_CREATE ||", "return waiter->kind == LEASE_RENEW ||"),
    Wrong("expected-for-ever", EXTEND, "m->state <= LEASE_MEMBER_EXPECTED && !m->is_leaving &&", "m->state <= LEASE_MEMBER_EXPECTED && (m->state == LEASE_MEMBER_EXPECTED || !m->is_leaving) &&"),
    Wrong("expected-beyond-the-pool", EDIT, "port != SUBNET_NONE && port_list_holds_certainly(&ports, port) ?", "port != SUBNET_NONE ?"),
    Wrong("expected-of-no-type", LEASING, "unseen, n, NODE_CA, &larger)", "unseen, n, NODE_UNKNOWN, &larger)"),
    Wrong("expected-without-a-file", LEASING, "n > 0 && c->snapshot && settings_opensm_file(g->settings)", "n > 0 && c->snapshot"),
    Wrong("expected-is-not-in-the-policy", EXTEND, "return m->state <= LEASE_MEMBER_EXPECTED && !m->is_leaving &&", "return m->state <= LEASE_MEMBER_CONFIRMED && !m->is_leaving &&"),
    Wrong("empty-although-kept", LIFE, "lease->is_open && !lease->is_kept && lease_n_wanted(lease) == 0", "lease->is_open && lease_n_wanted(lease) == 0"),
    Wrong("empty-before-it-is-answered", LIFE, "return lease->store == LEASE_IN_STORE && lease->n_waiters == 0 ? lease->empty_due : USEC_INFINITY;", "return lease->empty_due;"),
    Wrong("empty-for-ever", LIFE, "                if (now >= empty_due(lease))\n", "                if (false)\n"),
    Wrong("empty-since-the-last-edit", LIFE, "        else if (lease->empty_due == USEC_INFINITY)\n                lease->empty_due", "        else\n                lease->empty_due"),
    Wrong("options-change-nothing", EDIT, "|| !same_qos(&lease->qos, &old.qos) || lease->is_kept != old.is_kept;", ";"),
    Wrong("groups-that-differ", EDIT, "(last->membership != t->membership || last->index0 != t->index0)", "(last->membership != t->membership)"),
    Wrong("made-although-it-must-exist", EDIT, " || edit->options.must_exist))", "))"),
    Wrong("record-without-qos", RECORDS, "if (r == 0 && q->mtu > 0)", "if (false)"),
    Wrong("record-that-is-kept", RECORDS, "lease->is_kept = !drops;", "lease->is_kept = true;"),
    Wrong("client-by-anybody", "src/pkeyd/bus_leases.c", "return !c->client || uid == 0 || strcmp(user, USER_PKEYD_REST) == 0;", "return true;"),
    Wrong("client-without-its-name", "src/pkeyd/bus_leases.c", "        if (c->client)\n                names[by->n_names++] = by->origin.user;\n", ""),
    Wrong("client-of-any-name", "src/pkeyd/bus_lease_message.c", "        if (r >= 0 && o->client)\n                r = check_client(o->client, error);\n", ""),
    Wrong("option-said-twice", "src/pkeyd/bus_lease_message.c", "if (o->seen & BIT(i))", "if (false)"),
    Wrong("qos-in-part", "src/pkeyd/bus_lease_message.c", "if ((o->seen & QOS) != QOS)", "if (false)"),
    Wrong("opensm-index0-for-all", "src/opensm/partitions_file.c", "(list->items[i].base == p->base) != p->index0;", "false;"),
    Wrong("opensm-index0-of-no-lease", "src/opensm/partitions_file.c", "                                            inverts_index0(", "                                            false && inverts_index0("),
    Wrong("opensm-ipoib-as-usual", EXTEND, "        if (q->mtu > 0) {\n", "        if (0) {\n"),
    Wrong("edit-by-a-candidate", LEASING, "!control_serves(c) || g != c->in_force || !c->snapshot", "!control_serves(c) || !c->snapshot"),
    # sweeps for leases
    Wrong("part-without-leaf-ports", SWEEP, "        ports[(*n)++] = leaf;\n", ""),
    Wrong("part-keeps-the-entry", SWEEP, "                if (p_key_base(port->wanted[i]) != change->base)\n", ""),
    Wrong("part-leaf-as-before", SWEEP, "                if (part->subnet->ports[i].role == PORT_SWITCH_EXTERNAL)\n", "                if (0)\n"),
    Wrong("part-does-not-change-the-policy", SWEEP, "        take_desired(c, desired);\n", ""),
    Wrong("part-of-another-sma", BUILDER, "p[-1].destination + (p->destination != s->ports[ports[i - 1]].destination);", "p[-1].destination;"),
    Wrong("holders-without-leaf-ports", COUNTS, "if (port == KNOWLEDGE_NONE || k->records[port].expired)", "if (port != i || k->records[port].expired)"),
    Wrong("certain-beyond-the-lines", FREEZER, "combine(a, &lower, &capped, true, &least)", "combine(a, &lower, certain, true, &least)"),
    Wrong("standing-without-doubt", KNOWLEDGE, "        }\n        knowledge_doubt_absence(k);\n        return knowledge_counts_rebuild(k);", "        }\n        return knowledge_counts_rebuild(k);"),
    Wrong("retry-is-forgotten", SCHEDULE, "        if (kind == SWEEP_LEASE && result == SWEEP_DONE)\n                return;", "        if (0)\n                return;"),
    Wrong("leases-always-first", SCHEDULE, " && now < MIN(s->sweep_at, s->retry_at) + LEASES_FIRST))", "))"),
    Wrong("part-fails-without-a-name", "src/control/sweep_write.c", "s->part.subnet ? NULL : sweep_observed(c), s->apply,", "sweep_observed(c), s->apply,"),
    Wrong("whole-fails-with-each-name", "src/control/sweep_write.c", "s->part.subnet ? NULL : sweep_observed(c), s->apply,", "NULL, s->apply,"),
    # a store that takes nothing
    Wrong("lease-unstored-caller-waits-for-ever", "src/leases/lease_life.c", "                lease_answer_late(l, lease, now);\n", ""),
    Wrong("lease-unstored-is-not-looked-at", "src/leases/lease_life.c", ", lease_answer_due(l->items[i])));", ", USEC_INFINITY));"),
    Wrong("lease-stored-caller-is-late", "src/leases/leases.c", "i < lease->n_waiters && lease->store != LEASE_IN_STORE; i++)", "i < lease->n_waiters; i++)"),
    Wrong("lease-unstored-is-answered-early", "src/leases/lease_request.c", "(timeout + LEASE_STORE_SPARE) * USEC_PER_SEC", "timeout * USEC_PER_SEC"),
    Wrong("lease-unstored-answers-all", "src/leases/leases.c", "                return now >= late_at(lease, waiter);\n", "                return true;\n"),
    Wrong("lease-unstored-answer-is-passed-back", "src/pkeyd/forward.c", "        if (reply->answer.outcome <= LEASE_REFUSED) {\n", "        if (reply->answer.outcome != LEASE_ELSEWHERE) {\n"),
    Wrong("lease-unstored-for-no-time", "src/leases/leases.c", "        return MAX(waiter->until, lease->unstored_at + LEASE_STORE_SPARE * USEC_PER_SEC);", "        return waiter->until;"),
    Wrong("lease-is-strict", "src/leases/lease_policy.c", ".may_match_nothing = true,", ".may_match_nothing = m->state == LEASE_MEMBER_EXPECTED,"),
    Wrong("lease-unstored-since-ever", "src/leases/leases.c", "        if (lease->store == LEASE_IN_STORE)\n                lease->unstored_at = 0;\n", ""),
    Wrong("lease-unstored-again-and-again", "src/leases/leases.c", "        if (lease->store == LEASE_IN_STORE)\n                lease->unstored_at = 0;\n", "        lease->unstored_at = 0;\n"),
]
