/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/freeze.h"

/* The errors about single ports that can be reported when a policy is resolved, planned and judged for a fabric. The others are
 * about all ports:
 *
 *     FINDING_SUBNET_SM_UNKNOWN  If the master SM's port is not a full member, all limited members lose the SA.
 *     FINDING_FILE_UNREADABLE    How OpenSM reads a partition file depends on opensm.conf, for every port.
 *     FINDING_OPENSM_CONF        OpenSM reads another file than the one that pkeyd writes, so nothing would change.
 *     FINDING_OPENSM_BOTH        The options of OpenSM give every member that is `both` more than the policy does. */
static const bool is_of_ports[FINDING_CODE_MAX] = {
        [FINDING_POLICY_AMBIGUOUS] = true,          /* the ports that both lines match */
        [FINDING_SELECTOR_SWITCH_AMBIGUOUS] = true, /* the ports plugged into any of these switches */
        [FINDING_SELECTOR_NO_MATCH] = true,         /* with `strict`; such ports are absent, so nothing is written to them */
        [FINDING_SELECTOR_SWITCH_PORT] = true,      /* the same: the switch was replaced by a smaller one */
        [FINDING_PLAN_CAPACITY] = true,             /* the port, and the other end of its cable */
        [FINDING_PLAN_CAPACITY_TRANSITION] = true,  /* the same two */
};

bool freeze_is_of_ports(enum finding_code code)
{
        return is_of_ports[code];
}

static const struct {
        const char *word, *reason, *way_out;
} texts[N_FREEZES] = {
        [FREEZE_NONE] = { "none", "it is not frozen", "" },
        [FREEZE_NAME] = {
                "name", "another adapter has the same name, and the policy selects it by that name",
                "give each host a unique name; if one of them is an impostor, unplug it, or write GUIDs or @SWITCH/PORT in the policy",
        },
        [FREEZE_SWITCH_NAME] = {
                "switch-name", "two switches have the name by which the policy selects its switch",
                "give each switch a unique name, or write its GUID in the policy, as in @0x0002c903000e0b72/1-18",
        },
        [FREEZE_LINES] = {
                "lines", "two equally specific lines of the policy disagree about it",
                "check the name of the host and where it is plugged in; if both are right, remove it from one of the two lines, or "
                "add a more specific line",
        },
        [FREEZE_CAPACITY] = {
                "capacity", "its P_Key table, or that of its switch port, is too small for what the policy gives it",
                "plug it back in where it was, remove it from partitions or, if the table of the switch port is too small, set "
                "'enforcement_overflow: disable'",
        },
        [FREEZE_TRANSITION] = {
                "transition", "its P_Key table, or that of its switch port, is too full for a safe change",
                "remove it from a partition first, and add it to the new one in a second change",
        },
};

const char *freeze_to_string(enum freeze f)
{
        return (unsigned) f < N_FREEZES ? texts[f].word : "?";
}

const char *freeze_reason(enum freeze f)
{
        return (unsigned) f < N_FREEZES ? texts[f].reason : "?";
}

const char *freeze_way_out(enum freeze f)
{
        return (unsigned) f < N_FREEZES ? texts[f].way_out : "";
}
