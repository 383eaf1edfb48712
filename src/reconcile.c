/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reconcile.h"

#include <errno.h>

#define MAX_SILENT 8 /* named one by one */

/* The master SM's port must stay a full member of the default partition, or every limited member loses the SA. So it has to
 * be known which port that is. */
static int look_for_sm(const struct policy *policy, const struct subnet *s, struct findings *findings)
{
        if (s->self == SUBNET_NONE || s->sm != SUBNET_NONE || !policy_owns(policy, P_KEY_DEFAULT_BASE))
                return 0;
        if (s->sm_lid.v == 0) {
                (void) findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SM_UNKNOWN, NULL,
                                    "no subnet manager has this port: when one comes up elsewhere, it needs to be a full "
                                    "member of the default partition");
                return 0;
        }
        (void) findings_add(findings, FINDING_ERROR, FINDING_SUBNET_SM_UNKNOWN, NULL,
                            "the master SM is at LID %u, where discovery found no endport; which port must stay a full "
                            "member of the default partition is not known (try again: an answer may have been lost)",
                            s->sm_lid.v);
        return -EBADMSG;
}

/* Who writes P_Keys with MADs makes no multicast groups: that is the SM's part of an IPoIB partition. */
static void note_ipoib(const struct policy *policy, struct findings *findings)
{
        const struct policy_partition *first = NULL;
        struct finding *item;
        uint32_t i, n = 0;

        for (i = 0; i < policy->n_partitions; i++) {
                if (!policy->partitions[i].ipoib)
                        continue;
                n++;
                first = first ?: &policy->partitions[i];
        }
        if (n == 0)
                return;
        item = findings_add(findings, FINDING_NOTE, FINDING_OPENSM_IPOIB, &first->where,
                            "ipoib (of %s%s): only P_Keys are written here; multicast groups are made by the SM, as its own "
                            "configuration says", first->name, n > 1 ? " and others" : "");
        if (item)
                finding_set_hint(findings, item, "pkeyctl export opensm writes a partitions.conf for OpenSM");
}

/* Who is there and not in the snapshot gets nothing, and loses nothing; but the policy may well name it. */
static void tell_silent(const struct subnet *s, struct findings *findings)
{
        struct finding *item;
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                for (unsigned number = 1; number <= UINT8_MAX; number++) {
                        const struct subnet_node *node = &s->nodes[i];

                        if (!subnet_port_is_silent(node, (uint8_t) number) || n++ >= MAX_SILENT)
                                continue;
                        item = findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SILENT, NULL,
                                            "%s/%u: its link is up, but the node at the other end did not answer discovery",
                                            subnet_node_label(findings->arena, node) ?: "?", number);
                        finding_set_hint(findings, item, "it is hung, or MADs are lost, or it has an M_Key that discovery has "
                                                         "not got; see pkeyd(8), M_KEYS");
                }
        if (n > MAX_SILENT)
                (void) findings_add(findings, FINDING_WARNING, FINDING_SUBNET_SILENT, NULL,
                                    "%u more ports like that, %u in all", n - MAX_SILENT, n);
}

int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret)
{
        struct reconciled out = {};
        int r;

        r = look_for_sm(policy, observed->subnet, findings);
        if (r < 0)
                return r;

        if (options->writer == WRITER_DIRECT)
                note_ipoib(policy, findings);
        tell_silent(observed->subnet, findings);

        /* who is a member of what: policy x subnet */
        r = policy_resolve(a, policy, observed->subnet, findings, &out.memberships);
        if (r < 0)
                return r;

        /* what each table should hold */
        r = desired_compute(a, out.memberships, &out.desired);
        if (r < 0)
                return r;

        /* how to get there from what each table holds, without a broken promise on the way */
        r = plan_compute(a, out.desired, observed, memory, options, findings, &out.plan);
        if (r < 0)
                return r;

        *ret = out;
        return 0;
}
