# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrongs about index 0 of leases."""

from wrongs import Wrong

PORT_PLAN, PLAN = "src/plan/port_plan.c", "src/plan/plan.c"
SWEEP, DESIRED = "src/control/lease_sweep.c", "src/desired/desired.c"
EDIT, LIFE, EXTEND = "src/leases/lease_edit.c", "src/leases/lease_life.c", "src/leases/lease_policy.c"
RECORDS = "src/records/lease_json.c"

WRONGS = [
    # the plan
    Wrong("index0-only-by-the-setting", PLAN, "pl->options->repair_index0 || want->index0_base > 0)", "pl->options->repair_index0)"),
    Wrong("index0-never-given-back", PLAN, "return !p_key_is_used(t->entries[0]) || is_of_index0_pool(policy, t->entries[0]);", "return false;"),
    Wrong("index0-stays-empty", PLAN, "return !p_key_is_used(t->entries[0]) || is_of_index0_pool(", "return is_of_index0_pool("),
    Wrong("index0-of-any-pool", PLAN, "        return pool && pool->index0;\n", "        return pool;\n"),
    Wrong("index0-of-the-last-pool", PLAN, "                if (policy->pools[i].index0)\n                        return true;\n        return false;",
          "                if (policy->pools[i].index0 && i > 0)\n                        return true;\n        return false;"),
    Wrong("index0-of-the-default-first", "src/desired/desired.h", "desired->ports[port].index0_base ?: desired->index0_base", "desired->index0_base"),
    Wrong("index0-of-a-switch-port", PLAN, "        if (pl->desired->subnet->ports[port].role != PORT_ENDPORT)\n                return 0;\n        if (want", "        if (want"),
    Wrong("index0-drops-what-was-there", PORT_PLAN, "        if (is_wanted && !displace(pp))\n                return;\n", ""),
    Wrong("index0-without-room", PORT_PLAN, "        if (index < 0)\n                return false;\n        repair_entry", "        repair_entry"),
    Wrong("index0-displaces-in-the-last-phase", PORT_PLAN, "repair_entry(pp, index, pp->a[0], PHASE_REPAIR_ADD);", "repair_entry(pp, index, pp->a[0], PHASE_REPAIR_DROP);"),
    Wrong("index0-keeps-the-old-place", PORT_PLAN, "        if (old > 0)\n                repair_entry(pp, old, (struct p_key) { 0 }, PHASE_REPAIR_DROP);\n", ""),
    Wrong("index0-by-the-layout", PORT_PLAN, " || p_key_base(key) == pp->want->index0_base;", ";"),
    Wrong("index0-for-the-layout-of-another", PORT_PLAN, "        if (index == 0 && pp->want->index0_base > 0)\n                return -1;\n", ""),
    Wrong("index0-reported-as-a-setting", PLAN, "               pp->repairs ? ", "               pp->options->repair_index0 ? "),
    # from the lease to the plan
    Wrong("index0-of-every-line", DESIRED, "if (item->rule && item->rule->index0)", "if (item->rule)"),
    Wrong("index0-forgotten-by-knowledge", "src/knowledge/knowledge.c",
          "        copy->wanted = arena_copy(a, from->wanted, from->n_wanted);\n",
          "        copy->wanted = arena_copy(a, from->wanted, from->n_wanted);\n        copy->index0_base = 0;\n"),
    Wrong("index0-not-in-a-part", SWEEP, "        if (change->index0)\n                return change->base;\n", ""),
    Wrong("index0-of-who-left-it", SWEEP, "return index0_base == change->base ? 0 : index0_base;", "return index0_base;"),
    Wrong("index0-lost-to-any-change", SWEEP, "return index0_base == change->base ? 0 : index0_base;", "return 0;"),
    Wrong("index0-not-in-the-doctor", "src/doctor/diagnose_tables.c", " || (base > 0 && base == f->desired->ports[port].index0_base)", ""),
    Wrong("index0-empty-is-as-expected", "src/doctor/diagnose_tables.c", "(base > 0 && base == f->desired->ports[port].index0_base)", "base == f->desired->ports[port].index0_base"),
    Wrong("index0-line-for-all", EXTEND, " &&\n               m->index0 == line->index0;", ";"),
    Wrong("index0-change-unsaid", EXTEND, ".index0 = gives && m->index0 })", ".index0 = false })"),
    Wrong("index0-change-of-who-leaves", EXTEND, ".index0 = gives && m->index0 })", ".index0 = m->index0 })"),
    # requests
    Wrong("index0-of-two-leases", EDIT, "if (m->index0 && m->state != LEASE_MEMBER_LEFT_OUT && !m->is_leaving &&", "if (false &&"),
    Wrong("index0-of-who-was-left-out", EDIT, "if (m->index0 && m->state != LEASE_MEMBER_LEFT_OUT && !m->is_leaving &&", "if (m->index0 && !m->is_leaving &&"),
    Wrong("index0-of-who-leaves", EDIT, "if (m->index0 && m->state != LEASE_MEMBER_LEFT_OUT && !m->is_leaving &&", "if (m->index0 && m->state != LEASE_MEMBER_LEFT_OUT &&"),
    Wrong("index0-of-any-pool-asked", EDIT, "        if (!pool->index0)\n                return findings_error(", "        if (0)\n                return findings_error("),
    Wrong("index0-to-remove", EDIT, "        if (!any || edit->kind == LEASE_REMOVE_MEMBERS)\n", "        if (!any)\n"),
    Wrong("index0-as-it-was", EDIT, " && m->index0 == t->index0 && !m->is_leaving)", " && !m->is_leaving)"),
    Wrong("index0-confirmed-anywhere", LIFE, " && (!m->index0 || *ret == 0) &&", " &&"),
    Wrong("index0-not-recorded", RECORDS, 'm->index0 ? INDEX0 : ""', '""'),
    Wrong("index0-not-restored", RECORDS, "ret->index0 = lease->is_open && scan_word(&s, INDEX0);", "(void) scan_word(&s, INDEX0);"),
]
