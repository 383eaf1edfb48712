/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

/* --- M_Keys ------------------------------------------------------------------------------------------------------ */

enum m_key_state {
        M_KEY_IS_ZERO,
        M_KEY_IS_SHOWN,  /* to every sender */
        M_KEY_IS_FIXED,  /* level 1: without it tables can be read, not written */
        M_KEY_IS_HIDDEN, /* it may be 0 */
        M_KEY_IS_GOOD,
        M_KEY_N_STATES,
};

/* IBA 1.5, 14.2.4: at level 0 PortInfo shows the M_Key to every sender, at level 1 only to a sender that has it. At levels 2 and 3
 * other senders get no answer; but if the M_Key is 0 every sender gets one, whatever the level. */
static enum m_key_state m_key_state(const struct port_protection *p)
{
        if (p->m_key_is_shown && p->m_key_level == 0)
                return M_KEY_IS_SHOWN;
        if (p->m_key_level == 1)
                return p->m_key_is_shown ? M_KEY_IS_FIXED : M_KEY_IS_HIDDEN;
        return p->m_key_is_shown ? M_KEY_IS_GOOD : M_KEY_IS_ZERO;
}

static const char *describe_failure(struct diagnosis_list *l, const struct probe_answer *a)
{
        switch (a->outcome) {
        case MAD_ANSWERED:
        case MAD_TIMED_OUT:
                return "";
        case MAD_REFUSED:
                return diagnosis_text(l, "refused with status 0x%04x (%s)", a->mad_status, mad_status_to_string(a->mad_status));
        case MAD_BUSY:
                return "busy";
        case MAD_UNSENT:
                return "this host could not send to it";
        }
        return "";
}

static void diagnose_m_keys(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        struct places by_state[M_KEY_N_STATES] = {}, silent = {};
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct probe_port *p = &l->facts->probe->ports[i];

                if (!p->port_info.asked)
                        continue;
                n++;
                if (probe_is_answered(&p->port_info))
                        places_add(l, &by_state[m_key_state(&p->protection)], i, NULL);
                else
                        places_add(l, &silent, i, describe_failure(l, &p->port_info));
        }
        diagnosis_add(l, DIAGNOSIS_M_KEY_ZERO, &by_state[M_KEY_IS_ZERO], "%u of %u ports ha%s no M_Key",
                      by_state[M_KEY_IS_ZERO].n, n, by_state[M_KEY_IS_ZERO].n == 1 ? "s" : "ve");
        diagnosis_add(l, DIAGNOSIS_M_KEY_SHOWN, &by_state[M_KEY_IS_SHOWN],
                      "%u of %u ports show their M_Key to every sender (protection level 0)", by_state[M_KEY_IS_SHOWN].n, n);
        diagnosis_add(l, DIAGNOSIS_M_KEY_LEVEL_1, &by_state[M_KEY_IS_FIXED],
                      "the tables of %u of %u ports can be read without the M_Key (protection level 1)",
                      by_state[M_KEY_IS_FIXED].n, n);
        diagnosis_add(l, DIAGNOSIS_M_KEY_UNKNOWN, &by_state[M_KEY_IS_HIDDEN],
                      "whether %u of %u ports have an M_Key is not known", by_state[M_KEY_IS_HIDDEN].n, n);
        diagnosis_add(l, DIAGNOSIS_PORT_SILENT, &silent, "%u of %u ports did not answer", silent.n, n);
}

/* --- the SA ------------------------------------------------------------------------------------------------------ */

static void add_sm(struct diagnosis_list *l, struct places *ret)
{
        const struct subnet *s = l->facts->subnet;

        if (s->sm != SUBNET_NONE)
                places_add(l, ret, s->sm, NULL);
        else
                places_add(l, ret, SUBNET_NONE, diagnosis_text(l, "LID %u", s->sm_lid.v));
}

/* OpenSM ignores a request with a wrong SM_Key and refuses one without. Only the refusal proves that the SA is there: without it,
 * two unanswered requests may as well have been lost. */
static void diagnose_sa(struct diagnosis_list *l)
{
        const struct probe_answer *known = &l->facts->probe->sa[PROBE_SA_KEY_DEFAULT];
        const struct probe_answer *none = &l->facts->probe->sa[PROBE_SA_KEY_NONE];
        struct places sm = {};

        if (l->facts->subnet->sm_lid.v == 0)
                return;
        add_sm(l, &sm);
        if (probe_is_answered(none))
                diagnosis_add(l, DIAGNOSIS_SA_KEY_NONE, &sm, "the SA returns P_Key tables to a request without an SM_Key");
        else if (probe_is_answered(known))
                diagnosis_add(l, DIAGNOSIS_SA_KEY_DEFAULT, &sm, "the SA trusts an SM_Key of 1");
        else if (!known->asked && !none->asked)
                diagnosis_add(l, DIAGNOSIS_SA_KEY_UNKNOWN, &sm, "the SA could not be queried%s%s",
                              l->facts->sa_error ? ": " : "", l->facts->sa_error ?: "");
        else if (known->outcome != MAD_REFUSED && none->outcome != MAD_REFUSED)
                diagnosis_add(l, DIAGNOSIS_SA_KEY_UNKNOWN, &sm, "the SA did not answer");
}

/* --- subnet managers --------------------------------------------------------------------------------------------- */

static const char *describe_sm(struct diagnosis_list *l, const struct sm_info *sm)
{
        return diagnosis_text(l, "%s, priority %u, port GUID 0x%016" PRIx64, sm_state_to_string(sm->state),
                              sm->priority, sm->port_guid.v);
}

/* A port whose MasterSMLID differs from that of this host's port. Skips ports that no SM has brought up yet: theirs is old. */
static uint32_t find_other_master(const struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct probe_port *p = &l->facts->probe->ports[i];

                if (s->ports[i].state >= PORT_STATE_ARMED && probe_is_answered(&p->port_info) && p->sm_lid.v != 0 &&
                    s->sm_lid.v != 0 && p->sm_lid.v != s->sm_lid.v)
                        return i;
        }
        return SUBNET_NONE;
}

static void diagnose_masters(struct diagnosis_list *l, struct places *masters)
{
        const struct subnet *s = l->facts->subnet;
        uint32_t other = find_other_master(l);

        if (masters->n > 1) {
                diagnosis_add(l, DIAGNOSIS_SM_SEVERAL, masters, "%u subnet managers are master at the same time", masters->n);
                return;
        }
        if (other == SUBNET_NONE)
                return;
        places_add(l, masters, other, diagnosis_text(l, "its master SM has LID %u, that of this host's port LID %u",
                                                     l->facts->probe->ports[other].sm_lid.v, s->sm_lid.v));
        diagnosis_add(l, DIAGNOSIS_SM_SEVERAL, masters, "ports of this fabric report different master SMs");
}

static void diagnose_priorities(struct diagnosis_list *l, uint32_t master)
{
        const struct subnet *s = l->facts->subnet;
        const struct sm_info *m = &l->facts->probe->ports[master].sm;
        struct places rivals = {};

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct probe_port *p = &l->facts->probe->ports[i];

                if (i != master && probe_is_answered(&p->sm_info) && p->sm.state == SM_STANDBY && p->sm.priority == m->priority)
                        places_add(l, &rivals, i, describe_sm(l, &p->sm));
        }
        diagnosis_add(l, DIAGNOSIS_SM_SAME_PRIORITY, &rivals, "%u standby SM%s ha%s the priority of the master, %u",
                      rivals.n, text_plural(rivals.n), rivals.n == 1 ? "s" : "ve", m->priority);
}

static void diagnose_sms(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        struct places masters = {}, silent = {};
        uint32_t master = SUBNET_NONE;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct probe_port *p = &l->facts->probe->ports[i];

                if (p->sm_info.asked && !probe_is_answered(&p->sm_info))
                        places_add(l, &silent, i, describe_failure(l, &p->sm_info));
                if (!probe_is_answered(&p->sm_info) || p->sm.state != SM_MASTER)
                        continue;
                master = i;
                places_add(l, &masters, i, describe_sm(l, &p->sm));
        }
        diagnosis_add(l, DIAGNOSIS_SM_SILENT, &silent, "%u port%s report%s a subnet manager that does not answer",
                      silent.n, text_plural(silent.n), silent.n == 1 ? "s" : "");
        if (masters.n == 0 && s->self != SUBNET_NONE && s->sm_lid.v == 0)
                diagnosis_add(l, DIAGNOSIS_SM_NONE, NULL, "there is no subnet manager");
        if (masters.n == 1)
                diagnose_priorities(l, master);
        diagnose_masters(l, &masters);
}

static void diagnose_writer(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        struct places sm = {};

        if (!subnet_has_master(s) || !settings_conflict_with_sm(l->facts->settings))
                return;
        add_sm(l, &sm);
        diagnosis_add(l, DIAGNOSIS_SM_BESIDE, &sm, "a subnet manager may write P_Key tables beside pkeyd");
}

void diagnose_protection(struct diagnosis_list *l)
{
        if (!l->facts->probe)
                return;
        diagnose_m_keys(l);
        diagnose_sa(l);
        diagnose_sms(l);
        diagnose_writer(l);
}
