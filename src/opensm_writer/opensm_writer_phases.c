/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "events/event_text.h"
#include "opensm/admission.h"
#include "opensm_writer/opensm_writer_internal.h"

bool writer_is_last_phase(const struct opensm_writer *w, enum opensm_phase phase)
{
        for (enum opensm_phase p = phase + 1; p < OPENSM_N_PHASES; p++)
                if (w->phases.needed[p])
                        return false;
        return true;
}

int writer_render(struct opensm_writer *w, enum opensm_phase phase, struct file_bytes *ret)
{
        _cleanup_findings_ struct findings findings = { .arena = w->arena };
        struct partitions_file file;
        int r;

        r = partitions_file_from_ports(w->arena, writer_policy(w), w->conf_in_place, w->phases.tables[phase],
                                       w->phases.n_ports, &file);
        if (r < 0)
                return r;
        file.generation = w->job.generation->number;
        file.fabric = w->job.fabric;
        file.phase = writer_is_last_phase(w, phase) ? NULL : opensm_phase_to_string(phase);
        r = partitions_file_render(w->arena, &file, w->phases.allow_both, &findings, &ret->bytes, &ret->n);
        event_text_findings(w->log, &findings);
        return r;
}

/* Endports that are not in the snapshot: those that are down, by the names and places that they had, and those that the policy, or
 * a partition that it does not manage, names by a GUID that was never seen. If the policy is ambiguous about one of them, all of
 * them keep what they have. */
static int resolve_absent(struct opensm_writer *w, struct opensm_absent *ret)
{
        const struct subnet *subnet = w->job.snapshot->subnet;
        const struct opensm_manager manager = writer_manager(w);
        _cleanup_findings_ struct findings ignored = { .arena = w->arena };
        struct partitions_file_port *given = NULL;
        struct memberships *memberships;
        struct desired *desired = NULL;
        const struct guid *named;
        struct subnet *larger;
        uint32_t n_named;
        int r;

        r = opensm_named_guids(w->arena, &manager, w->conf_in_place, &named, &n_named);
        r = r ?: known_extend_named(w->arena, w->job.known, subnet, named, n_named, NODE_UNKNOWN, &larger);
        if (r == 0 && w->handed_over)
                r = opensm_unmanaged_of_absent(w->arena, &manager, w->conf_in_place, larger, subnet, w->job.conf->allow_both_pkeys,
                                               &given);
        if (r < 0)
                return r;
        r = policy_resolve_with_memory(w->arena, manager.policy, larger, &(struct policy_memory) { .pins = w->job.pins }, false,
                                       &ignored, &memberships);
        r = r ?: desired_compute(w->arena, memberships, &desired);
        *ret = (struct opensm_absent) { larger, r == 0 ? desired : NULL, manager.keeps_unmanaged, given };
        return r == -EBADMSG ? 0 : r;
}

static int add_absent(struct opensm_writer *w, const struct opensm_tables *in_place, struct opensm_transition **transitions,
                      uint32_t *n)
{
        struct opensm_transition *absent, *all;
        struct opensm_absent known;
        uint32_t n_absent;
        int r = resolve_absent(w, &known);

        if (r == 0)
                r = opensm_transitions_of_absent(w->arena, &known, w->job.snapshot->subnet, w->job.knowledge, in_place, &absent,
                                                 &n_absent);
        if (r < 0)
                return r;
        all = arena_new_array(w->arena, struct opensm_transition, (size_t) *n + n_absent);
        if (!all)
                return -ENOMEM;
        memcpy(all, *transitions, *n * sizeof(*all));
        memcpy(all + *n, absent, n_absent * sizeof(*all));
        *transitions = all;
        *n += n_absent;
        return 0;
}

int writer_prepare(struct opensm_writer *w)
{
        _cleanup_findings_ struct findings findings = { .arena = w->arena };
        const struct opensm_tables *in_place;
        struct opensm_tables tables;
        struct opensm_transition *transitions;
        uint32_t n_transitions;
        int r = writer_read_in_place(w, &tables, &in_place);

        if (r == 0)
                r = opensm_transitions_of_plan(w->arena, w->job.decision->plan, w->job.snapshot->observed, w->job.knowledge,
                                               in_place, &transitions, &n_transitions);
        r = r ?: add_absent(w, in_place, &transitions, &n_transitions);
        if (r < 0)
                return r;
        r = opensm_phases_compute(w->arena, transitions, n_transitions, in_place, w->job.conf->allow_both_pkeys, &findings,
                                  &w->phases);
        event_text_findings(w->log, &findings);
        return r;
}

int writer_admit(struct opensm_writer *w, enum opensm_phase phase, enum opensm_phase hold_from)
{
        return opensm_admit(w->arena, &w->phases, phase, hold_from, w->job.snapshot->subnet, w->job.knowledge);
}

int writer_admit_at_once(struct opensm_writer *w)
{
        int r = writer_admit(w, OPENSM_GRANT, OPENSM_REVOKE);

        memset(w->phases.needed, 0, sizeof(w->phases.needed));
        return r;
}

int writer_find_phase(struct opensm_writer *w, enum opensm_phase from, enum opensm_phase *ret)
{
        for (*ret = from; *ret < OPENSM_N_PHASES; (*ret)++) {
                int r = w->phases.needed[*ret] ? writer_admit(w, *ret, *ret) : 0;

                if (r < 0)
                        return r;
                if (w->phases.needed[*ret])
                        break;
        }
        return 0;
}
