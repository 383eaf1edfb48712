/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/freeze.h"

#include "util/cleanup.h"

/* Every error that resolving, planning and judging a policy against a fabric can report. */
static const struct {
        enum finding_code code;
        bool is_of_ports;
} scopes[] = {
        { FINDING_POLICY_AMBIGUOUS, true },          /* the ports that both lines match */
        { FINDING_SELECTOR_SWITCH_AMBIGUOUS, true }, /* the ports plugged into any of these switches */
        { FINDING_SELECTOR_NO_MATCH, true },         /* `strict`: ports that are not there, so nothing is written to them */
        { FINDING_SELECTOR_SWITCH_PORT, true },      /* likewise: the switch was replaced by a smaller one */
        { FINDING_PLAN_CAPACITY, true },             /* the port, and the other end of its cable */
        { FINDING_PLAN_CAPACITY_TRANSITION, true },  /* likewise */
        /* Without the port of the master SM, limited members lose the SA: the whole fabric is concerned. */
        { FINDING_SUBNET_SM_UNKNOWN, false },
        /* Without opensm.conf nobody knows what OpenSM makes of a partition file, for any port. */
        { FINDING_FILE_UNREADABLE, false },
        /* OpenSM reads another file than pkeyd writes: nothing would happen at all. */
        { FINDING_OPENSM_CONF, false },
        /* OpenSM would give every member that is `both` more than the policy does: its options are wrong, not a port. */
        { FINDING_OPENSM_BOTH, false },
};

bool freeze_is_of_ports(enum finding_code code)
{
        for (size_t i = 0; i < ELEMENTS(scopes); i++)
                if (scopes[i].code == code)
                        return scopes[i].is_of_ports;
        return false;
}

const char *freeze_to_string(enum freeze f)
{
        static const char *const words[N_FREEZES] = {
                [FREEZE_NONE] = "none",
                [FREEZE_NAME] = "name",
                [FREEZE_SWITCH_NAME] = "switch-name",
                [FREEZE_LINES] = "lines",
                [FREEZE_CAPACITY] = "capacity",
                [FREEZE_TRANSITION] = "transition",
        };

        return WORD(words, f, "?");
}

const char *freeze_reason(enum freeze f)
{
        static const char *const texts[N_FREEZES] = {
                [FREEZE_NONE] = "it is not frozen",
                [FREEZE_NAME] = "another adapter has the same name, by which the policy means it",
                [FREEZE_SWITCH_NAME] = "two switches have the name by which the policy means its switch",
                [FREEZE_LINES] = "two equally specific lines of the policy disagree about it",
                [FREEZE_CAPACITY] = "its P_Key table, or that of its switch port, is too small for what the policy gives it",
                [FREEZE_TRANSITION] = "its P_Key table, or that of its switch port, is too full for a safe change",
        };

        return WORD(texts, f, "?");
}

const char *freeze_way_out(enum freeze f)
{
        static const char *const texts[N_FREEZES] = {
                [FREEZE_NONE] = "",
                [FREEZE_NAME] = "give each host a unique name; if one of them is an impostor, unplug it, or write GUIDs or "
                                "@SWITCH/PORT in the policy",
                [FREEZE_SWITCH_NAME] = "give each switch a unique name, or write its GUID in the policy, as in "
                                       "@0x0002c903000e0b72/1-18",
                [FREEZE_LINES] = "check the name of the host and where it is plugged in; if both are right, remove it from one of "
                                 "the two lines, or add a more specific line",
                [FREEZE_CAPACITY] = "plug it in where it was, remove it from partitions or, if the table of the switch port is too "
                                    "small, set 'enforcement_overflow: disable'",
                [FREEZE_TRANSITION] = "remove it from a partition first, and add the new one afterwards",
        };

        return WORD(texts, f, "");
}
