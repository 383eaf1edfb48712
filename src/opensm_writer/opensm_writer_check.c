/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "opensm_writer/opensm_writer.h"

/* Returns the first base of which the port should be both; 0: there is none. */
static uint16_t find_both(const struct desired_port *port)
{
        for (uint32_t i = 1; i < port->n_wanted; i++)
                if (p_key_base(port->wanted[i - 1]) == p_key_base(port->wanted[i]))
                        return p_key_base(port->wanted[i]);
        return 0;
}

/* Names one port and one partition as an example: the remedy is the same for all. */
static void check_both(const struct desired *desired, const struct opensm_conf *conf, struct findings *findings)
{
        const struct subnet *s = desired->subnet;
        struct finding *item;

        for (uint32_t i = 0; !conf->allow_both_pkeys && i < s->n_ports; i++) {
                uint16_t base = find_both(&desired->ports[i]);
                int p = policy_find_base(desired->policy, base);

                if (s->ports[i].role != PORT_ENDPORT || base == 0)
                        continue;
                item = findings_add(findings, FINDING_ERROR, FINDING_OPENSM_BOTH, NULL,
                                    "%s should be both a full and a limited member of %s (0x%04x), but OpenSM makes it a full member only",
                                    subnet_port_label(findings->arena, s, i) ?: "a port",
                                    p >= 0 ? desired->policy->partitions[p].name : "a partition", base);
                if (item)
                        finding_set_hint(findings, item, "add the line `allow_both_pkeys TRUE` to opensm.conf, restart OpenSM, and "
                                         "name opensm.conf in pkeyd.yaml (opensm.config)");
                return;
        }
}

/* Judged by the lines, so that no host that appears later stops pkeyd. The default partition is in a definition without `indx0`
 * then (opensm/partitions_file.h). */
int opensm_writer_check_index0(const struct policy *policy, struct findings *findings)
{
        size_t n_errors = findings->n_errors;
        const struct policy_partition *p = &policy->partitions[policy_index0_partition(policy)];

        for (uint32_t i = 0; p->base != P_KEY_DEFAULT_BASE && i < p->n_rules; i++)
                if (p->rules[i].membership == MEMBERSHIP_BOTH)
                        (void) findings_error(findings, FINDING_OPENSM_BOTH, "make them full members, or remove `index0`",
                                              "%s has the membership 'both' in line %u, but its entry belongs at index 0, where OpenSM "
                                              "would put the limited one of the two", p->name, p->rules[i].where.line);
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}

int opensm_writer_check(const struct generation *g, const struct opensm_conf *conf, const struct reconciled *decision,
                        struct findings *findings)
{
        const char *file = settings_opensm_file(g->settings);
        size_t n_errors = findings->n_errors;

        if (!file)
                return 0;
        opensm_conf_check_file(conf, g->settings->opensm_config, file, findings);
        check_both(decision->given, conf, findings);
        (void) opensm_writer_check_index0(g->policy, findings);
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}
