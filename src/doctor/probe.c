/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/probe.h"

#include <errno.h>

#include "ib/sa.h"
#include "subnet/survey.h"

#define SA_RETRIES 2 /* few, because an SA with another SM_Key never answers */

/* The highest byte of a cookie; the survey's cookies have 0 there. */
enum question {
        ASK_TABLE,
        ASK_PORT_INFO,
        ASK_SM_INFO,
        ASK_SA,
        N_QUESTIONS,
};

/* Queries of one kind. The subjects are ports, or SM_Keys for the SA. */
struct round {
        uint32_t *subjects;
        uint32_t n, next;
        unsigned n_waiting; /* sent and not answered */
};

struct probe {
        const struct subnet *subnet;
        struct probe_options options;
        struct probe_result *result;
        struct round rounds[N_QUESTIONS]; /* [ASK_TABLE] is unused: the survey does that */
        struct mad_stage survey;
        struct lid sa;
        uint8_t sa_sl;
        uint64_t n_done;
};

/* --- subjects ---------------------------------------------------------------------------------------------------- */

/* A table that the survey of the snapshot does not read. */
static bool has_unread_table(const struct subnet *s, const struct subnet_port *port)
{
        return port->role == PORT_SWITCH_EXTERNAL && !subnet_port_can_enforce(s, port) && subnet_port_capacity(s, port) > 0;
}

static void add_subject(struct probe *p, enum question question, uint32_t subject)
{
        struct round *r = &p->rounds[question];

        r->subjects[r->n++] = subject;
}

int probe_new(struct arena *a, const struct subnet *subnet, const struct probe_options *options, struct probe **ret,
              struct probe_result **ret_result)
{
        const struct survey_options tables = { .m_keys = options->m_keys, .retries = options->retries };
        struct probe *p = arena_new_object(a, struct probe);
        struct survey *survey;

        if (!p)
                return -ENOMEM;
        p->subnet = subnet;
        p->options = *options;
        p->result = arena_new_object(a, struct probe_result);
        for (int q = ASK_PORT_INFO; q < N_QUESTIONS; q++) {
                p->rounds[q].subjects = arena_new_array(a, uint32_t, (size_t) subnet->n_ports + PROBE_N_SA_KEYS);
                if (!p->rounds[q].subjects)
                        return -ENOMEM;
        }
        if (!p->result || observed_new_of(a, subnet, has_unread_table, &p->result->tables) < 0)
                return -ENOMEM;
        p->result->ports = arena_new_array(a, struct probe_port, subnet->n_ports);
        if (!p->result->ports || survey_new(a, p->result->tables, &tables, &survey) < 0)
                return -ENOMEM;
        p->survey = survey_stage(survey);
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                if (subnet->ports[i].role == PORT_ENDPORT)
                        add_subject(p, ASK_PORT_INFO, i);
        *ret = p;
        *ret_result = p->result;
        return 0;
}

/* --- queries ----------------------------------------------------------------------------------------------------- */

static void make_smp(const struct probe *p, enum question question, uint32_t i, struct mad_request *ret)
{
        const struct subnet_port *port = &p->subnet->ports[i];

        *ret = (struct mad_request) {
                .route = port->route, .destination = port->destination, .method = MAD_GET,
                .key = m_keys_get(p->options.m_keys, port->guid),
                .attribute = question == ASK_SM_INFO ? SMP_ATTR_SM_INFO : SMP_ATTR_PORT_INFO,
                .modifier = question == ASK_SM_INFO ? 0 : port->number,
                .retries = p->options.retries,
        };
}

/* Queries the first block of this host's own table: the answer is one record, which fits into one MAD. */
static void make_sa_request(const struct probe *p, uint32_t key, struct mad_request *ret)
{
        const struct p_key_record which = { .lid = p->subnet->ports[p->subnet->self].lid };

        p_key_record_request(&which, p->sa, p->sa_sl, key == PROBE_SA_KEY_DEFAULT ? 1 : 0, ret);
        ret->retries = MIN(p->options.retries, SA_RETRIES);
}

static bool rounds_are_over(const struct probe *p)
{
        for (int q = ASK_PORT_INFO; q < N_QUESTIONS; q++)
                if (p->rounds[q].next < p->rounds[q].n || p->rounds[q].n_waiting > 0)
                        return false;
        return true;
}

static bool probe_next(void *state, usec_t now, struct mad_request *ret)
{
        struct probe *p = state;

        for (int q = ASK_PORT_INFO; q < N_QUESTIONS; q++) {
                struct round *r = &p->rounds[q];
                uint32_t subject;

                /* one query to the SA at a time */
                if (r->next == r->n || (q == ASK_SA && r->n_waiting > 0))
                        continue;
                subject = r->subjects[r->next++];
                if (q == ASK_SA)
                        make_sa_request(p, subject, ret);
                else
                        make_smp(p, (enum question) q, subject, ret);
                ret->cookie = (uint64_t) q << 56 | subject;
                r->n_waiting++;
                return true;
        }
        /* the survey begins after all other queries, so that no SMA has two at a time */
        return rounds_are_over(p) && p->survey.next(p->survey.state, now, ret);
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void open_sa(struct probe *p, const struct probe_port *self)
{
        p->sa = self->sm_lid;
        p->sa_sl = self->protection.sm_sl;
        if (!p->options.ask_sa || p->sa.v == 0)
                return;
        for (uint32_t key = 0; key < PROBE_N_SA_KEYS; key++)
                add_subject(p, ASK_SA, key);
}

static void take_port_info(struct probe *p, uint32_t i, const struct mad_result *result)
{
        struct probe_port *port = &p->result->ports[i];
        struct port_info info;

        port_info_decode(result->data, &info);
        port_protection_decode(result->data, &port->protection);
        port->sm_lid = info.sm_lid;
        port->is_sm = info.is_sm;
        if (i == p->subnet->self)
                open_sa(p, port);
        if (port->is_sm)
                add_subject(p, ASK_SM_INFO, i);
}

static struct probe_answer *answer_of(struct probe *p, enum question question, uint32_t subject)
{
        if (question == ASK_SA)
                return subject < PROBE_N_SA_KEYS ? &p->result->sa[subject] : NULL;
        if (subject >= p->subnet->n_ports)
                return NULL;
        return question == ASK_SM_INFO ? &p->result->ports[subject].sm_info : &p->result->ports[subject].port_info;
}

static void probe_take(void *state, usec_t now, const struct mad_result *result)
{
        struct probe *p = state;
        enum question question = (enum question) (result->cookie >> 56);
        uint32_t subject = (uint32_t) result->cookie;
        struct probe_answer *answer;

        if (question == ASK_TABLE) {
                p->survey.result(p->survey.state, now, result);
                return;
        }
        answer = question < N_QUESTIONS ? answer_of(p, question, subject) : NULL;
        if (!answer || answer->asked || p->rounds[question].n_waiting == 0)
                return;
        p->rounds[question].n_waiting--;
        p->n_done++;
        *answer = (struct probe_answer) { true, result->outcome, result->mad_status };
        if (result->outcome != MAD_ANSWERED)
                return;
        if (question == ASK_PORT_INFO)
                take_port_info(p, subject, result);
        else if (question == ASK_SM_INFO)
                sm_info_decode(result->data, &p->result->ports[subject].sm);
}

static bool probe_done(const void *state)
{
        const struct probe *p = state;

        return rounds_are_over(p) && p->survey.done(p->survey.state);
}

static void probe_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct probe *p = state;

        p->survey.progress(p->survey.state, ret_done, ret_total);
        *ret_done += p->n_done;
        for (int q = ASK_PORT_INFO; q < N_QUESTIONS; q++)
                *ret_total += p->rounds[q].n;
}

struct mad_stage probe_stage(struct probe *p)
{
        return (struct mad_stage) {
                .state = p, .next = probe_next, .result = probe_take, .done = probe_done, .progress = probe_progress,
        };
}
