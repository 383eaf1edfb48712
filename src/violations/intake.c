/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/intake.h"

void violations_take_samples(struct violations *book, usec_t now, struct violation_poll *poll)
{
        struct violation_sample s;

        while (violation_poll_next_sample(poll, &s))
                if (s.is_cleared)
                        violations_counter_cleared(book, s.port, s.source);
                else if (violations_see_counter(book, now, s.port, s.source, s.bits, s.value) > 0)
                        violation_poll_clear(poll, s.port, s.source);
}

struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids,
                                               const struct notice *notice)
{
        bool at_switch = notice->trap == NOTICE_SWITCH_P_KEY && notice->has_switch_port;
        struct violation_port port = {};
        uint32_t i;

        if (!subnet || !lids)
                return port;
        i = lid_map_find(lids, at_switch ? notice->switch_lid : notice->issuer);
        if (i == SUBNET_NONE || i == LID_SEVERAL)
                return port;
        port.node_guid = subnet_port_node(subnet, &subnet->ports[i])->guid;
        port.number = at_switch ? notice->switch_port : subnet->ports[i].number;
        return port;
}
