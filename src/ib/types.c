/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/types.h"

#include "util/cleanup.h"

int p_key_compare(const void *a, const void *b)
{
        struct p_key x = *(const struct p_key *) a, y = *(const struct p_key *) b;

        return ORDER(p_key_base(x), p_key_base(y)) ?: ORDER(x.v, y.v);
}

const char *membership_to_string(enum membership m)
{
        switch (m) {
        case MEMBERSHIP_NONE:
                return "none";
        case MEMBERSHIP_LIMITED:
                return "limited";
        case MEMBERSHIP_FULL:
                return "full";
        case MEMBERSHIP_BOTH:
                return "both";
        }
        return "unknown";
}

const char *node_type_to_string(enum node_type t)
{
        switch (t) {
        case NODE_CA:
                return "CA";
        case NODE_SWITCH:
                return "switch";
        case NODE_ROUTER:
                return "router";
        }
        return "unknown";
}

const char *port_state_to_string(enum port_state s)
{
        switch (s) {
        case PORT_STATE_NONE:
                return "unknown";
        case PORT_STATE_DOWN:
                return "DOWN";
        case PORT_STATE_INIT:
                return "INIT";
        case PORT_STATE_ARMED:
                return "ARMED";
        case PORT_STATE_ACTIVE:
                return "ACTIVE";
        }
        return "unknown";
}
