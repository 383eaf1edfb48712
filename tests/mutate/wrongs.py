# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs: what it is, where, the text, and what stands there instead."""

from collections import namedtuple

Wrong = namedtuple("Wrong", "name path old new")

PORT_PLAN = "src/plan/port_plan.c"
PLAN = "src/plan/plan.c"
PLAN_H = "src/plan/plan.h"
APPLY = "src/apply/apply.c"
ENGINE = "src/mad_engine/mad_engine.c"
TABLE = "src/mad_engine/table.c"
WINDOW = "src/mad_engine/window.c"
OBSERVED = "src/subnet/observed.c"
SURVEY = "src/subnet/survey.c"
VERIFY = "src/verify/verify.c"
SMP = "src/ib/smp.c"
M_KEYS = "src/ib/m_keys.c"
MAD = "src/ib/mad.c"
MEMORY = "src/plan/index_memory.c"
SA = "src/ib/sa.c"
NOTICES = "src/notices/notices.c"
PROBE = "src/doctor/probe.c"
PROTECTION = "src/doctor/diagnose_protection.c"
TABLES = "src/doctor/diagnose_tables.c"
COUNTER = "src/violations/counter.c"
BOOK = "src/violations/book.c"
TELLING = "src/violations/telling.c"
POLL = "src/violations/poll.c"
PMA = "src/ib/pma.c"
SM_FOLLOW = "src/control/sm_follow.c"
ANSWERS = "src/discovery/answers.c"
DISCOVERY = "src/discovery/discovery.c"
WALK = "src/discovery/walk.c"
SNAPSHOT = "src/discovery/snapshot.c"
NEIGHBORS = "src/discovery/opensm_neighbors.c"
SUBNET = "src/subnet/subnet.c"
HOSTLIST = "src/policy/hostlist.c"
MATCH = "src/policy/selector_match.c"

WRONGS = [
    # the order of phases
    Wrong("revoke-after-raise", PLAN_H,
          "        PHASE_REVOKE,\n        PHASE_CLOSE,\n        PHASE_RELAX,\n        PHASE_OPEN,\n        PHASE_RAISE,\n",
          "        PHASE_CLOSE,\n        PHASE_RELAX,\n        PHASE_OPEN,\n        PHASE_RAISE,\n        PHASE_REVOKE,\n"),
    Wrong("raise-after-lower", PLAN_H, "        PHASE_RAISE,\n        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n",
          "        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n        PHASE_RAISE,\n"),
    Wrong("grant-before-lower", PLAN_H,
          "        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n        PHASE_GRANT_ENFORCING,\n        PHASE_GRANT,\n",
          "        PHASE_GRANT_ENFORCING,\n        PHASE_GRANT,\n        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n"),
    Wrong("lower-enforcing-first", PLAN_H, "        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n",
          "        PHASE_LOWER_ENFORCING,\n        PHASE_LOWER_ENDPORTS,\n"),
    Wrong("enforce-before-open", PLAN_H, "        PHASE_OPEN,\n        PHASE_RAISE,\n        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n        PHASE_GRANT_ENFORCING,\n        PHASE_GRANT,\n        PHASE_ENFORCE,\n",
          "        PHASE_ENFORCE,\n        PHASE_OPEN,\n        PHASE_RAISE,\n        PHASE_LOWER_ENDPORTS,\n        PHASE_LOWER_ENFORCING,\n        PHASE_GRANT_ENFORCING,\n        PHASE_GRANT,\n"),
    Wrong("a-lower-is-a-revoke", PORT_PLAN, "if (after != LEVEL_NONE && after < before && p_key_is_full(key))",
          "if (after < before && p_key_is_full(key))"),
    Wrong("raise-as-grant", PORT_PLAN, "return before == LEVEL_LIMITED && p_key_is_full(key) ? PHASE_RAISE : PHASE_GRANT;",
          "return PHASE_GRANT;"),
    Wrong("switch-grants-early", PORT_PLAN,
          "return is_grant_by_switch(pp, before, p_key_base(key)) ? PHASE_GRANT_ENFORCING : PHASE_OPEN;", "return PHASE_OPEN;"),
    Wrong("relax-early", PLAN, "if (pl->plan->final_tables[port] && holds_back(pl, port))", "if (false && holds_back(pl, port))"),
    Wrong("enforce-and-cut-off", PLAN, "} else if (would_cut_off(pl, port, &key)) {",
          "} else if (false && would_cut_off(pl, port, &key)) {"),

    # indexes
    Wrong("entry-moves", PORT_PLAN, "                if (index >= 0)\n                        pp->b[index] = key;\n",
          "                if (index > 1)\n                        pp->b[index] = key;\n"),
    Wrong("freed-index-first", PORT_PLAN, "        if (next < pp->capacity)\n                return (int) next;\n", ""),
    Wrong("last-index-never-used", PORT_PLAN, "        if (next < pp->capacity)\n", "        if (next + 1 < pp->capacity)\n"),
    Wrong("memory-not-asked", PORT_PLAN, "next = MAX(next, (uint32_t) pp->freed[k].index + 1);", "next = MAX(next, 0u);"),
    Wrong("index0-for-anybody", PORT_PLAN, "return pp->index0_base ? 1 : 0;", "return 0;"),
    Wrong("freed-not-noted", APPLY, "                note_freed(ap, w, t);\n", ""),
    Wrong("youngest-freed-first", MEMORY, "(c == 0 && m->items[middle].sequence < sequence)",
          "(c == 0 && m->items[middle].sequence > sequence)"),
    Wrong("overflow-by-one", PORT_PLAN, "pp->overflow = pp->needed > pp->capacity;",
          "pp->overflow = pp->needed > pp->capacity + 1u;"),
    Wrong("owns-ignored", PORT_PLAN, "        if (!policy_owns(pp->policy, p_key_base(key)))\n                return false;\n", ""),
    Wrong("keep-ignored", PORT_PLAN, "return pp->options->unmanaged == UNMANAGED_REMOVE || policy_find_base",
          "return true || policy_find_base"),

    # blocks
    Wrong("block-edge-in-plan", PLAN, "uint16_t block, n_blocks = (uint16_t) ((pp->capacity + P_KEY_BLOCK_ENTRIES - 1)",
          "uint16_t block, n_blocks = (uint16_t) ((pp->capacity)"),
    Wrong("block-edge-in-observed", OBSERVED, "return MIN((size_t) P_KEY_BLOCK_ENTRIES, t->capacity - first);",
          "return MIN((size_t) P_KEY_BLOCK_ENTRIES - 1, t->capacity - first);"),
    Wrong("changes-of-a-block-lost", PLAN, "                w->after[i] = key;\n        }\n        if (w) {",
          "                w->after[i] = key;\n                break;\n        }\n        if (w) {"),
    Wrong("switch-port-forgotten", APPLY, "uint8_t switch_port = p->role == PORT_SWITCH_EXTERNAL ? p->number : 0;",
          "uint8_t switch_port = 0;"),

    # apply
    Wrong("no-read-before-write", APPLY, "        } else if (!blocks_equal(ap, w, entries, t->before)) {\n",
          "        } else if (false) {\n"),
    Wrong("base-not-held-back", APPLY, "                hold_bases_of(ap, w);\n                ap->port_failed[w->port] = 1;\n",
          "                ap->port_failed[w->port] = 1;\n"),
    Wrong("held-in-vain", APPLY, "if (is_held(ap, w->before[i]) || is_held(ap, w->after[i]) || t->before[i].v != w->before[i].v) {",
          "if (t->before[i].v != w->before[i].v) {"),
    Wrong("no-barrier", APPLY,
          "                if (ap->n_ready > 0 || ap->n_ended < ap->plan->steps[ap->phase].n_writes)\n                        return;\n",
          "                if (ap->n_ready > 0 || (ap->n_ended == 0 && ap->n_ended < ap->plan->steps[ap->phase].n_writes))\n"
          "                        return;\n"),
    Wrong("answer-not-compared", APPLY, "        if (blocks_equal(ap, w, entries, ap->tasks[i].after))\n                task_end(ap, i, APPLY_WRITTEN, APPLY_OK);",
          "        if (true || blocks_equal(ap, w, entries, ap->tasks[i].after))\n                task_end(ap, i, APPLY_WRITTEN, APPLY_OK);"),
    Wrong("set-retried-blindly", APPLY, "ret->retries = 0; /* no answer", "ret->retries = 4; /* no answer"),
    Wrong("no-read-back", APPLY, "                if (!blocks_equal(ap, w, entries, known))\n", "                if (false)\n"),
    Wrong("unconfirmed-called-read", APPLY, "        if (ap->tasks[i].rounds > 0)\n                doubt_task(ap, i, result);\n",
          "        (void) doubt_task;\n"),
    Wrong("doubt-forgotten", APPLY, "        hold_doubted(ap);\n", "        (void) hold_doubted;\n"),
    Wrong("doubt-not-handed-on", OBSERVED, "        to->n_doubted = from->n_doubted;\n", ""),
    Wrong("half-a-repair", APPLY, "if (*ret_partly && is_all_or_nothing(ap->phase)) {",
          "if (false && is_all_or_nothing(ap->phase)) {"),
    Wrong("bits-do-not-wait", APPLY, "        } else if (ap->phase == PHASE_ENFORCE && enforcement_must_wait(ap, w->port)) {\n",
          "        } else if (false && enforcement_must_wait(ap, w->port)) {\n"),
    Wrong("bits-doubt-forgotten", APPLY, "                t->enforcement_doubted = true;\n", ""),
    Wrong("unread-is-written", APPLY, "} else if (table_of(ap, w)->source != TABLE_READ) {",
          "} else if (table_of(ap, w)->source == TABLE_UNKNOWN) {"),
    Wrong("abort-ignored", APPLY, "        ap->aborted = true;\n", ""),
    Wrong("not-read-back-is-right", APPLY, "                if (w->kind == WRITE_BLOCK)\n                        call_unread(table_of(ap, w), result);\n", ""),

    # the engine and what is underneath
    Wrong("wrong-modifier-accepted", MAD, " || field(mad, IB_MAD_ATTRMOD_F) != request->modifier)", ")"),
    Wrong("two-to-one-destination", TABLE, "return x->state == TRANSACTION_READY || x->state == TRANSACTION_FLYING || x->state == TRANSACTION_RESTING;",
          "return x->state == TRANSACTION_READY || x->state == TRANSACTION_RESTING;"),
    Wrong("busy-is-an-answer", ENGINE, "        if (mad_status_is_busy(status))\n                return told_busy(e, slot);\n",
          "        (void) told_busy;\n"),
    Wrong("status-ignored", ENGINE, "status == 0 ? MAD_ANSWERED : MAD_REFUSED", "MAD_ANSWERED"),
    Wrong("one-retry-too-many", ENGINE, "return x->tries <= x->request.retries;", "return x->tries <= x->request.retries + 1;"),
    Wrong("window-never-cut", WINDOW, "w->size = MAX(w->ceiling / 2, MIN(WINDOW_MINIMUM, w->maximum));", "w->size = w->ceiling;"),
    Wrong("window-cut-from-what-it-is-now", WINDOW, "w->ceiling = MIN(w->size, size_then);", "w->ceiling = w->size;"),
    Wrong("slot-never-released", ENGINE, "        mad_engine_table_release(&e->table, slot);\n", ""),
    Wrong("half-a-table-is-read", SURVEY, "        if (c->block < observed_table_blocks(t))\n                return;\n", ""),
    Wrong("key-bytes-swapped", SMP, "                uint16_t be = htobe16(entries[i].v);", "                uint16_t be = entries[i].v;"),

    # M_Keys
    Wrong("m-key-of-others", SURVEY, ".key = m_keys_get(s->options.m_keys, p->guid),",
          ".key = m_keys_common(s->options.m_keys),"),
    Wrong("m-key-guessed", M_KEYS, "        if (most == k->n)\n                k->others = k->common;\n",
          "        k->others = k->common;\n"),
    Wrong("m-key-violations-of-no-port", APPLY, "ret->modifier = p->role == PORT_SWITCH_EXTERNAL ? 0 : p->number;",
          "ret->modifier = p->number;"),
    Wrong("m-key-violations-of-old", APPLY, "if (t->counted && pi.m_key_violations > t->violations)", "if (pi.m_key_violations > t->violations)"),
    Wrong("m-key-timeout-is-a-timeout", APPLY,
          "return t->last_set == MAD_TIMED_OUT ? APPLY_SET_UNANSWERED : reason_of(t->last_set);",
          "return reason_of(t->last_set);"),
    # notices
    Wrong("notice-lids-swapped", SA, "#define DETAILS_LID1     (DETAILS + 2)\n#define DETAILS_LID2     (DETAILS + 4)",
          "#define DETAILS_LID1     (DETAILS + 4)\n#define DETAILS_LID2     (DETAILS + 2)"),
    Wrong("invalid-is-taken", SA, "return valid ? valid : VALID_ALL;", "return valid | VALID_ALL;"),
    Wrong("any-sender-of-reports", NOTICES, "if (frame->lid.v != n->sa.lid.v) {", "if (false && frame->lid.v != n->sa.lid.v) {"),
    Wrong("repeated-comes-twice", NOTICES, "                remember(n, now, frame);\n", ""),
    Wrong("never-again", NOTICES, "begin_round(n, now + REFRESH, n->wanted);", "begin_round(n, USEC_INFINITY, n->wanted);"),
    Wrong("no-patience", NOTICES, "n->wait = n->wait == 0 ? FIRST_WAIT : MIN(n->wait * 2, LONGEST_WAIT);", "n->wait = FIRST_WAIT;"),
    Wrong("by-number-and-by-type", NOTICES, "if (n->held[k].is && !(n->wanted & BIT(k)))", "if (false && !(n->wanted & BIT(k)))"),
    Wrong("left-with-another-key", NOTICES, "return n->held[kind].key;", "return n->sa.sm_key;"),
    Wrong("late-answer-counts", NOTICES, "        if (n->expected != n->cookie)\n", "        if (false && n->expected != n->cookie)\n"),
    Wrong("reset-forgets-nothing", NOTICES, "        n->in_flight = false;\n        n->expected = 0;\n}", "        n->expected = 0;\n}"),

    # violations
    Wrong("violations-first-look-counts", COUNTER, ".count = c->seen ? moved(c, value) : 0,", ".count = moved(c, value),"),
    Wrong("violations-small-ones-go-round", COUNTER, "if (c->bits > VIOLATION_COUNTER_SATURATING_BITS && ", "if ("),
    Wrong("violations-a-reset-counts-nothing", COUNTER, "        return value;\n}\n\nvoid violation_counter_see",
          "        return 0;\n}\n\nvoid violation_counter_see"),
    Wrong("violations-saturated-every-time", COUNTER, ".newly_saturated = saturated && !c->saturated,",
          ".newly_saturated = saturated,"),
    Wrong("violations-cleared-is-not-known", COUNTER, "        c->value = 0;\n", ""),
    Wrong("violations-select-bits", PMA, "IB_PC_EXT_ERR_RCVCONSTR_F, 1U << 8, 1U << 8", "IB_PC_EXT_ERR_RCVCONSTR_F, 1U << 7, 1U << 8"),
    Wrong("violations-width-of-data-counters", PMA, "field(data, IB_CPI_CAPMASK2_F) & CAPABILITY_MASK2_ADDITIONAL_EXTENDED",
          "field(data, IB_CPI_CAPMASK_F) & 1U << 9"),
    Wrong("violations-qps-are-records", "src/violations/records.c", "a->gid2.prefix, a->gid2.id };", "a->gid2.prefix, a->gid2.id, a->qp1 };"),
    Wrong("violations-threshold-of-all-time", BOOK, "        if (now - e->interval_began >= v->config.interval) {",
          "        if (false) {"),
    Wrong("violations-last-episode-told-again", TELLING, "        r->episode = r->untold = 0;\n", "        r->episode = 0;\n"),
    Wrong("violations-no-cooling", TELLING, "bool is_free = e->tell == TELL_NONE || (e->tell == TELL_COOLING && !e->told);",
          "bool is_free = e->tell == TELL_NONE || e->tell == TELL_COOLING;"),
    Wrong("violations-told-twice", TELLING, "        e->record.untold = 0;\n        e->say_saturated", "        e->say_saturated"),
    Wrong("violations-storm-tells-all", TELLING, "(is_new || !v->in_storm)", "true"),
    Wrong("violations-storm-of-one-more", TELLING, "n_told + n_held > VIOLATIONS_STORM_PORTS;", "n_told + n_held > VIOLATIONS_STORM_PORTS + 40;"),
    Wrong("violations-storm-counts-records", TELLING, "        report->n_ports = n;\n", ""),
    Wrong("violations-quiet-one-by-one", TELLING, "} else if (e->in_sum || ", "} else if (false || "),
    Wrong("violations-sum-of-quiet-lost", TELLING, "        v->n_calm_released = v->lives[LIFE_CALMED].n;\n", ""),
    Wrong("violations-a-burst-after-a-pause", POLL, "                go_on_at(p, now, p->position);\n}", "                (void) 0;\n}"),
    Wrong("violations-round-begins-anew", POLL, "        go_on_at(p, then, position);\n        tie_ready", "        go_on_at(p, then, 0);\n        tie_ready"),
    Wrong("violations-refused-is-asked-again", POLL, "                t->is_refused[BLOCK_COUNTERS] = true;\n", "                t->is_silent[BLOCK_COUNTERS] = true;\n"),
    Wrong("violations-back-but-not-asked", POLL, "                agent->state = AGENT_UNKNOWN;\n        agent->redirect_lid.v = 0;", "                agent->state = AGENT_KNOWN;\n        agent->redirect_lid.v = 0;"),
    Wrong("violations-p-key-violations-cleared", POLL,
          "            (source != VIOLATION_RCV_CONSTRAINT && source != VIOLATION_XMIT_CONSTRAINT) ||\n", ""),
    Wrong("violations-cleared-twice", POLL, "            t->is_clearing[counter_of(source)])\n", "            false)\n"),
    Wrong("violations-cleared-out-of-order", POLL, "if (p->events.n == 0 || p->events.events[p->events.first].is_cleared)",
          "if (p->events.n == 0)"),
    Wrong("violations-late-results-count", POLL, "if (!f->is_used || f->cookie != result->cookie)", "if (!f->is_used)"),
    Wrong("violations-agents-asked-for-ever", POLL,
          "                if (p->t.agents[i].state == AGENT_ASKED)\n", "                if (false)\n"),
    Wrong("violations-a-port-is-another", "src/violations/poll_targets.c", "                who.number = 0;\n", ""),
    Wrong("violations-nothing-is-remembered", "src/violations/poll_targets.c", "        if (known)\n                *target = *known;\n", "        (void) known;\n"),

    # verify
    Wrong("unexpected-not-seen", "src/verify/table.c", "unexpected[n_unexpected++] = entries[i];",
          "unexpected[0] = entries[i];"),
    Wrong("assumed-is-verified", VERIFY, "if (vf->observed->tables[i].source != TABLE_READ) {",
          "if (vf->observed->tables[i].source == TABLE_UNKNOWN) {"),
    # a pair of head nodes
    Wrong("sm-writes-at-once", SM_FOLLOW, "return now >= sm_follow_due(f, hold) ? SM_FOLLOW_WRITER : SM_FOLLOW_TAKING_OVER;",
          "return SM_FOLLOW_WRITER;"),
    Wrong("sm-waits-from-the-start", SM_FOLLOW, "(changed || f->doubted))\n                f->since = now;",
          "f->since == 0)\n                f->since = now;"),
    Wrong("sm-event-is-nothing", SM_FOLLOW, "        f->doubted = true;\n", "        (void) f;\n"),
    Wrong("sm-none-is-here", SM_FOLLOW, "i < v->n_own && v->sm_lid.v != 0", "i < v->n_own"),
    Wrong("sm-base-lid-only", SM_FOLLOW, "v->own[i].lid.v >> v->own[i].lmc == v->sm_lid.v >> v->own[i].lmc",
          "v->own[i].lid.v == v->sm_lid.v"),
    Wrong("other-writer-loses-all", MEMORY, "!want || is_wanted(want, before->entries[i])", "true"),
    Wrong("abort-sets-again", APPLY, "(ap->tasks[i].rounds == 0 || ap->tasks[i].step == TASK_SET)",
          "ap->tasks[i].rounds == 0"),
    # hostlists in sorted names
    Wrong("hostlist-range-ends-early", HOSTLIST, "range->last < v))", "range->last <= v))"),
    Wrong("hostlist-largest-bound", HOSTLIST, "strcmp(offered, b->least) < 0)", "strcmp(offered, b->least) > 0)"),
    Wrong("hostlist-no-literal-follows", HOSTLIST, "if (strcmp(t->literal, b->name + at) > 0)", "if (false)"),
    Wrong("hostlist-any-byte-after-digits", HOSTLIST, "(unsigned char) c > '9' ? 10 : 0", "10"),
    Wrong("hostlist-bytes-are-signed", HOSTLIST, "(unsigned char) c > '9'", "c > '9'"),
    Wrong("hostlist-next-number-skipped", HOSTLIST, "least = has_digits ? v + 1 : v;", "least = v + 1;"),
    Wrong("hostlist-width-of-first-range", HOSTLIST, "widest = t->ranges[t->n_ranges - 1].width;",
          "widest = t->ranges[0].width;"),
    Wrong("hostlist-bound-not-padded", HOSTLIST, "snprintf(number, sizeof(number), \"%0*\" PRIu64, width, MAX",
          "snprintf(number, sizeof(number), \"%*\" PRIu64, 0 * width, MAX"),
    Wrong("hostlist-nothing-after-glob", HOSTLIST, "                b->found = true;\n                return;\n",
          "                return;\n"),
    Wrong("hostlist-matcher-skips-one", MATCH, "i = subnet_next_name(subnet, i + 1, after);",
          "i = subnet_next_name(subnet, MIN(i + 2, subnet->n_by_name), after);"),
    Wrong("hostlist-switch-skips-one", MATCH, "             i = matcher_next_name(subnet, i, s->host))\n",
          "             i = matcher_next_name(subnet, MIN(i + 1, subnet->n_by_name), s->host))\n"),
    Wrong("hostlist-missing-hidden-by-twins", MATCH, "n_names += strcmp(node->name, last) != 0;", "n_names++;"),
    Wrong("hostlist-groups-mix", MATCH, "                m->member[i] = false;\n", ""),
    Wrong("hostlist-gallop-too-short", "src/subnet/subnet.c", "high = low + step - 1;", "high = low + step - 2;"),
    # the doctor
    Wrong("doctor-silence-is-no-m-key", PROTECTION, "if (probe_is_answered(&p->port_info))\n", "if (true)\n"),
    Wrong("doctor-hidden-is-good", PROTECTION, "p->m_key_is_shown ? M_KEY_IS_FIXED : M_KEY_IS_HIDDEN", "M_KEY_IS_FIXED"),
    Wrong("doctor-nobody-asked", "src/doctor/probe.h", "return a->asked && a->outcome", "return a->outcome"),
    Wrong("doctor-entries-are-partitions", TABLES, "p_key_is_used(t.entries[i]) && !*seen", "p_key_is_used(t.entries[i])"),
    Wrong("doctor-unread-holds-nothing", TABLES, "if (!here.entries || !host.entries)", "if (!here.entries)"),
    Wrong("doctor-bases-of-the-last-host", TABLES, "mark_bases(bases, host, false);", "mark_bases(bases, host, true);"),
    Wrong("probe-asks-every-sm", PROBE, "if (!port->protection.is_sm)", "if (false)"),
    Wrong("probe-key-of-another", PROBE, "m_keys_get(p->options.m_keys, port->guid)", "m_keys_common(p->options.m_keys)"),
    Wrong("probe-half-a-block", PROBE, "MIN(ELEMENTS(entries), port->capacity - first)", "ELEMENTS(entries) / 2"),
    # discovery
    Wrong("discovery-zero-port-guid", ANSWERS, "info->node_guid.v == 0 || info->port_guid.v == 0 ||",
          "info->node_guid.v == 0 ||"),
    Wrong("discovery-cap-not-compared", ANSWERS, " && x->num_ports == y->num_ports &&\n               x->partition_cap == y->partition_cap;",
          " && x->num_ports == y->num_ports;"),
    Wrong("discovery-second-answer-half-compared", ANSWERS, "a->is_verified = is_equal(&a->info, &info);",
          "a->is_verified = is_same_node(&a->info, &info);"),
    Wrong("discovery-changed-not-dropped", ANSWERS, "a->has_changed = !a->is_verified;", "a->has_changed = false;"),
    Wrong("discovery-entry-followed", ANSWERS, "        if (entry != DISCOVERY_NONE)\n                set_peer(d, entry,",
          "        if (false)\n                set_peer(d, entry,"),
    Wrong("discovery-conflict-is-linked", ANSWERS, "        other = find_conflict(d, info);\n",
          "        other = find_conflict(d, info);\n        if (other != DISCOVERY_NONE && via != DISCOVERY_NONE)\n                set_peer(d, via, other, info->local_port);\n"),
    Wrong("discovery-second-key-after-busy", ANSWERS, "} else if (result->outcome == MAD_TIMED_OUT) {", "} else {"),
    Wrong("discovery-one-hop-too-many", ANSWERS, ".hops >= d->config.max_hops", ".hops > d->config.max_hops"),
    Wrong("discovery-down-is-followed", ANSWERS, "info->link_up && info->state != PORT_STATE_DOWN ? LINK_UP",
          "info->link_up ? LINK_UP"),
    Wrong("discovery-any-refusal-is-no-port", ANSWERS, "            (result->mad_status & STATUS_CODE_MASK) == STATUS_INVALID_MODIFIER)",
          "            STATUS_INVALID_MODIFIER & STATUS_CODE_MASK)"),
    Wrong("discovery-never-given-up", ANSWERS, "        a->timeouts += !is_refused;\n", ""),
    Wrong("discovery-unverified-keeps-attributes", ANSWERS, "        else if (!a->is_verified)\n                drop_attributes(a);",
          "        else if (false)\n                drop_attributes(a);"),
    Wrong("discovery-two-ports-one-number", ANSWERS, " &&\n               x->local_port != y->local_port;", ";"),
    Wrong("discovery-common-key-for-all", DISCOVERY, ".key = m_keys_get(d->config.m_keys, a->info.port_guid),",
          ".key = m_keys_common(d->config.m_keys),"),
    Wrong("discovery-same-key-twice", DISCOVERY, ".key = is_second_try ? m_keys_common(d->config.m_keys) : first_m_key(d, port),",
          ".key = is_second_try ? first_m_key(d, port) : first_m_key(d, port),"),
    Wrong("discovery-changed-is-learned", DISCOVERY, " || d->agents[p->peer].has_changed)", ")"),
    Wrong("discovery-result-of-another-query", DISCOVERY, "if (!a || !a->in_flight || cookie != make_cookie(a->query, about, a->number))",
          "if (!a || !a->in_flight)"),
    Wrong("discovery-one-node-too-many", WALK, "agent >= d->config.max_nodes", "agent > d->config.max_nodes"),
    Wrong("discovery-conflict-not-marked", WALK, "        d->agents[agent].has_conflict = true;\n", ""),
    Wrong("discovery-queue-loses-ports", WALK, "                d->ports[q->last].next = port;",
          "                d->ports[q->first].next = port;"),
    Wrong("discovery-hosts-of-changed-switch", SNAPSHOT, "return !d->agents[d->ports[a->via].agent].has_changed && a->state",
          "return a->state"),
    Wrong("discovery-ends-not-compared", SNAPSHOT, "                compare_ends(d, i);",
          "                (void) compare_ends;"),
    Wrong("discovery-conflict-by-lid", SNAPSHOT, " || a->has_conflict)\n                return false;",
          ")\n                return false;"),
    Wrong("discovery-sm-by-claim", SNAPSHOT, "(sm->has_conflict || c->lid_claims[d->sm_lid.v] != 1)",
          "sm->has_conflict"),
    Wrong("discovery-unread-is-not-silent", SNAPSHOT, "if (p->link == LINK_DOWN || (p->peer",
          "if (p->link != LINK_UP || (p->peer"),
    Wrong("discovery-dropped-is-not-silent", SNAPSHOT, "(p->peer != DISCOVERY_NONE && d->agents[p->peer].is_in_snapshot))\n                        continue;",
          "p->peer != DISCOVERY_NONE)\n                        continue;"),
    Wrong("discovery-complete-without-name", SNAPSHOT, "        node.incomplete = node.incomplete || !description;\n",
          ""),
    Wrong("discovery-local-leaf-missing", SNAPSHOT, "        return discovery_find_port(d, local->peer, local->peer_number);",
          "        return DISCOVERY_NONE;"),
    Wrong("discovery-incomplete-neighbour", SUBNET, "return p->neighbour != SUBNET_NONE && subnet_port_node(s, &s->ports[p->neighbour])->incomplete;",
          "return false;"),
    Wrong("discovery-incomplete-is-read", SURVEY, "if (subnet_port_is_incomplete(s->observed->subnet, &s->observed->subnet->ports[port])) {",
          "if (false) {"),
    Wrong("discovery-file-replaces-walk", NEIGHBORS, "        if (discovery_links_get(l, guid, number).v != 0)\n                return 1;\n",
          ""),
]
