/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "opensm_writer/opensm_writer.h"

/* Why OpenSM cannot give a port both entries of a base; NULL: it can. The default partition is in a definition without `indx0` then
 * (opensm/partitions_file.h). */
static const char *both_problem(uint16_t base, uint16_t index0_base, const struct opensm_conf *conf, const char **ret_hint)
{
        if (!conf->allow_both_pkeys) {
                *ret_hint = "add the line `allow_both_pkeys TRUE` to opensm.conf, restart OpenSM, and name opensm.conf in pkeyd.yaml "
                            "(opensm.config)";
                return "OpenSM makes it a full member only";
        }
        if (base == P_KEY_DEFAULT_BASE || base != index0_base)
                return NULL;
        *ret_hint = "make it a full member, or remove `index0`";
        return "its entry belongs at index 0, where OpenSM would put the limited one";
}

/* Returns whether it has reported a port. Names one port and one partition as an example: the remedy is the same for all. */
static bool check_both(const struct desired *desired, uint32_t i, const struct opensm_conf *conf, struct findings *findings)
{
        const struct desired_port *port = &desired->ports[i];

        for (uint32_t k = 1; desired->subnet->ports[i].role == PORT_ENDPORT && k < port->n_wanted; k++) {
                uint16_t base = p_key_base(port->wanted[k]);
                int p = policy_find_base(desired->policy, base);
                const char *hint, *problem;

                if (!p_key_same_partition(port->wanted[k - 1], port->wanted[k]))
                        continue;
                problem = both_problem(base, desired_index0_base(desired, i), conf, &hint);
                if (!problem)
                        continue;
                (void) findings_error(findings, FINDING_OPENSM_BOTH, hint,
                                      "%s should be both a full and a limited member of %s (0x%04x), but %s",
                                      subnet_port_label(findings->arena, desired->subnet, i) ?: "a port",
                                      p >= 0 ? desired->policy->partitions[p].name : "a partition", base, problem);
                return true;
        }
        return false;
}

int opensm_writer_check(const struct generation *g, const struct opensm_conf *conf, const struct reconciled *decision,
                        struct findings *findings)
{
        const char *file = settings_opensm_file(g->settings);
        size_t n_errors = findings->n_errors;

        if (!file)
                return 0;
        opensm_conf_check_file(conf, g->settings->opensm_config, file, findings);
        for (uint32_t i = 0; i < decision->given->subnet->n_ports && !check_both(decision->given, i, conf, findings); i++)
                ;
        if (findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > n_errors ? -EBADMSG : 0;
}
