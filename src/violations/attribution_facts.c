/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "violations/attribution_internal.h"
#include "violations/notice_ends.h"

/* --- the ports ---------------------------------------------------------------------------------------------------- */

static enum switch_filter filter_of(const struct facts *f)
{
        const struct subnet *s = f->input->subnet;

        switch (observed_filter(s, f->input->observed, f->counted, f->record->source == VIOLATION_XMIT_CONSTRAINT)) {
        case OBSERVED_FILTER_DOUBTED:
                return FILTER_UNCONFIRMED;
        case OBSERVED_FILTER_ON:
                return FILTER_ON;
        case OBSERVED_FILTER_OFF:
                break;
        }
        return subnet_port_can_enforce(s, &s->ports[f->counted]) ? FILTER_OFF : FILTER_UNSUPPORTED;
}

/* The label of a port that is not in the snapshot: with the name of its node if that is in it, else from the notice. */
static const char *label_of_missing(const struct facts *f, uint32_t node)
{
        const struct violation_port *port = &f->record->port;
        const struct notice *notice = &f->record->notice;
        const char *label;

        if (port->node_guid.v == 0 && notice->has_switch_port)
                return arena_printf(f->arena, "port %u of the switch with LID %u", notice->switch_port, notice->switch_lid.v);
        if (port->node_guid.v == 0)
                return arena_printf(f->arena, "LID %u", notice->issuer.v);
        if (node == SUBNET_NONE)
                return arena_printf(f->arena, "port %u of node 0x%016" PRIx64, port->number, port->node_guid.v);
        label = subnet_node_label(f->arena, &f->input->subnet->nodes[node]);
        return label ? arena_printf(f->arena, "%s/%u", label, port->number) : NULL;
}

static void remark_missing(struct facts *f, uint32_t node)
{
        const struct violation_port *port = &f->record->port;

        if (node == SUBNET_NONE)
                add_remark(f, port->node_guid.v != 0 ? REMARK_GONE : REMARK_UNKNOWN_PORT);
        else if (f->is_switch_port && subnet_port_is_silent(&f->input->subnet->nodes[node], port->number))
                add_remark(f, REMARK_SILENT);
        else if (!violation_source_is_notice(f->record->source))
                add_remark(f, REMARK_EMPTY);
        else if (!f->record->host || !host_is_known(f->record->host)) /* a packet just came through the port */
                add_remark(f, REMARK_UNKNOWN_HOST);
}

static int find_counted_port(struct facts *f)
{
        const struct subnet *s = f->input->subnet;
        const struct violation_port *port = &f->record->port;
        uint32_t node = s ? subnet_find_node(s, port->node_guid) : SUBNET_NONE;

        f->is_switch_port = s && subnet_node_has_external(s, node, port->number);
        f->filter = FILTER_GONE;
        f->counted = node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(s, node, port->number);
        if (f->counted != SUBNET_NONE) {
                f->out->counted_by = subnet_port_label(f->arena, s, f->counted);
                if (f->is_switch_port)
                        f->filter = filter_of(f);
        } else {
                f->out->counted_by = label_of_missing(f, node);
                if (s)
                        remark_missing(f, node);
        }
        if (f->then == VIOLATION_FILTER_ON)
                f->filter = FILTER_ON;
        else if (f->then == VIOLATION_FILTER_NOT_ALWAYS && f->filter == FILTER_ON)
                f->filter = FILTER_CHANGED;
        return f->out->counted_by ? 0 : -ENOMEM;
}

/* As it was known when the counter was read, whatever is plugged in there now; without that as the snapshot has it. */
static int find_host(struct facts *f)
{
        const struct violation_host *then = f->record->host;
        uint32_t endport = f->counted;

        if (then) {
                if (!host_is_known(then))
                        return 0;
                f->host = *then;
                if (f->counted == SUBNET_NONE && then->node_guid.v != f->record->port.node_guid.v)
                        f->is_switch_port = true;
                if (!f->is_switch_port || then->at_switch)
                        f->out->counted_by = f->is_switch_port ? then->at_switch : then->label;
                return 0;
        }
        if (f->counted != SUBNET_NONE && f->is_switch_port)
                endport = f->input->subnet->ports[f->counted].peer;
        return endport == SUBNET_NONE ? 0 : violation_host_open(f->arena, f->input->subnet, endport, &f->host);
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

static void set_endport(struct facts *f, const struct violation_host *host)
{
        f->out->node = host->label;
        f->out->port_guid = host->guid;
        f->out->lid = host->lid;
        f->out->port = host->number;
}

static void fill_fields(struct facts *f)
{
        struct attribution *out = f->out;

        out->node = out->counted_by;
        if (host_is_known(&f->host)) {
                set_endport(f, &f->host);
                out->switch_name = f->host.at_switch;
                out->names_sender = f->record->source == VIOLATION_RCV_CONSTRAINT && f->is_switch_port && f->filter == FILTER_ON;
        } else if (f->is_switch_port) {
                out->switch_name = out->counted_by;
        }
}

static int fill_partition(struct facts *f)
{
        const struct memberships *m = f->input->memberships;
        int i = m ? policy_find_base(m->policy, p_key_base(f->out->p_key)) : -1;

        if (i < 0)
                return 0;
        f->out->partition = m->policy->partitions[i].name;
        f->partition = policy_partition_label(f->arena, &m->policy->partitions[i]);
        return f->partition ? 0 : -ENOMEM;
}

static int fill_notice_fields(struct facts *f)
{
        struct attribution *out = f->out;
        const struct violation_host *host = &f->host;
        bool from_is_known = host_is_known(f->record->from);

        f->from = *f->record->from;
        f->to = *f->record->to;
        if (f->record->source == VIOLATION_NOTICE_257 && lid_is_multicast(f->record->notice.lid2) && host_is_known(host)) {
                f->to = *host; /* of the members of the group, the one that refused the packet */
                f->to.label = f->record->to->label;
        }
        out->names_sender = from_is_known;
        /* what passes a leaf port comes from the endport that is plugged in or goes to it */
        if (f->is_switch_port && host_is_known(host) && f->from.guid.v != host->guid.v && f->to.guid.v != host->guid.v) {
                out->names_sender = false;
                add_remark(f, from_is_known && host_is_known(&f->to) ? REMARK_WIRING_CONFLICT : REMARK_WIRING);
        }
        if (out->names_sender)
                host = &f->from;
        else if (!host_is_known(host))
                host = &f->to;
        if (host_is_known(host))
                set_endport(f, host);
        if (!record_has_p_key(f->record))
                return 0;
        out->p_key.v = (uint16_t) f->record->notice.key;
        return fill_partition(f);
}

static struct beginning beginning_of(const struct violation_record *r)
{
        usec_t latest = r->host_first ?: r->first, since = r->host_first ? r->host_first_since : r->first_since;

        if (r->total == 0) /* it is only saturated, and since when is not known */
                return (struct beginning) { 0, USEC_INFINITY, USEC_INFINITY };
        return (struct beginning) { since ?: latest, latest, MAX(r->episode_began, latest) };
}

int attribution_open(struct facts *f)
{
        int r = find_counted_port(f) ?: find_host(f);

        if (r < 0)
                return r;
        f->began = beginning_of(f->record);
        fill_fields(f);
        return violation_source_is_notice(f->record->source) ? fill_notice_fields(f) : 0;
}

/* --- what the other files ask ---------------------------------------------------------------------------------------- */

uint32_t attribution_find_host(const struct attribution_input *input, const struct violation_host *host)
{
        const struct memberships *m = input->memberships;

        return m && host_is_known(host) ? subnet_find_endport(m->subnet, host->guid) : SUBNET_NONE;
}

/* Both counts as full: with the limited key a port reaches no member that it does not reach with the full one. */
static int level_of(enum membership m)
{
        return membership_has_full(m) ? 2 : membership_has_limited(m) ? 1 : 0;
}

bool membership_change_is_loss(const struct membership_change *change)
{
        return level_of(change->after) < level_of(change->before);
}
