/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/selector_match.h"

#include <errno.h>
#include <string.h>

#include "policy/selector_hint.h"

/* ---- setting up ----------------------------------------------------------------------------------------------- */

/* Finds adapters that have the name and device of another. pkeyd knows which one is on its own host. */
static void find_twins(struct matcher *m)
{
        const struct subnet *s = m->subnet;

        for (uint32_t i = 1; i < s->n_by_name; i++) {
                if (!subnet_is_twin(s, i))
                        continue;
                m->twin[s->by_name[i]] = s->by_name[i - 1];
                m->has_twin[s->by_name[i]] = m->has_twin[s->by_name[i - 1]] = true;
        }
        if (s->self != SUBNET_NONE)
                m->has_twin[s->ports[s->self].node] = false;
}

int matcher_init(struct matcher *m, struct arena *arena, const struct policy *policy, const struct subnet *subnet,
                 struct report *report)
{
        *m = (struct matcher) {
                .arena = arena, .report = report, .policy = policy, .subnet = subnet, .hints = MATCHER_HINTS,
                .twin = arena_new_array(arena, uint32_t, subnet->n_nodes),
                .has_twin = arena_new_array(arena, bool, subnet->n_nodes),
                .groups = arena_new_array(arena, struct port_list, policy ? policy->n_groups : 0),
                .found = arena_new_array(arena, uint32_t, subnet->n_ports),
                .why = arena_new_array(arena, uint8_t, subnet->n_ports),
                .member = arena_new_array(arena, uint8_t, subnet->n_ports),
        };
        if (!m->twin || !m->has_twin || !m->groups || !m->found || !m->why || !m->member)
                return -ENOMEM;
        memset(m->twin, 0xff, subnet->n_nodes * sizeof(*m->twin));
        find_twins(m);
        return 0;
}

/* ---- collecting ports ----------------------------------------------------------------------------------------- */

/* Adds a port to what was found, if it is an endport. */
static void add_port(struct matcher *m, uint32_t port, enum freeze why)
{
        if (m->subnet->ports[port].role != PORT_ENDPORT || m->n_found == m->subnet->n_ports)
                return;
        m->found[m->n_found++] = port;
        m->why[port] = (uint8_t) why;
}

static void add_node(struct matcher *m, uint32_t node, uint8_t number, enum freeze why)
{
        const struct subnet *s = m->subnet;

        for (uint32_t i = subnet_first_port(s, node); i < s->n_ports && s->ports[i].node == node; i++)
                if (number == 0 || s->ports[i].number == number)
                        add_port(m, i, why);
}

/* Moves what was found to *ret: ascending, each port once. */
static int take_found(struct matcher *m, struct port_list *ret)
{
        uint32_t n = m->n_found, used = 0, *ports = arena_new_array(m->arena, uint32_t, n);
        uint8_t *contested = arena_new_array(m->arena, uint8_t, n);

        m->n_found = 0;
        if (!ports || !contested)
                return -ENOMEM;
        qsort(m->found, n, sizeof(uint32_t), uint32_compare);
        for (uint32_t i = 0; i < n; i++)
                if (i == 0 || m->found[i] != m->found[i - 1]) {
                        contested[used] = m->why[m->found[i]];
                        ports[used++] = m->found[i];
                }
        *ret = (struct port_list) { ports, contested, used };
        return 0;
}

/* ---- absent ports --------------------------------------------------------------------------------------------- */

static struct matcher *get_larger(struct matcher *m)
{
        const struct subnet *view;
        struct subnet *subnet;

        if (m->larger || !m->known)
                return m->larger;
        m->larger = arena_new_object(m->arena, struct matcher);
        if (!m->larger || known_extend(m->arena, m->known, m->subnet, &subnet) < 0 ||
            pins_view(m->arena, m->pins, subnet, &view) < 0 ||
            matcher_init(m->larger, m->arena, m->policy, view, m->report) < 0)
                m->larger = NULL;
        else
                m->larger->in_force = true; /* two switches that had one name are no error here */
        return m->larger;
}

/* A selector of a present switch names no absent port, whatever was plugged into it before. A host that is coming up may have no
 * name yet. */
static bool is_absent(const struct matcher *m, const struct selector *s, const struct known_port *port)
{
        uint32_t i = subnet_find_endport(m->subnet, port->port_guid);

        return (i == SUBNET_NONE || subnet_port_is_incomplete(m->subnet, &m->subnet->ports[i])) &&
               (s->kind != SELECTOR_SWITCH || subnet_find_node(m->subnet, port->switch_guid) == SUBNET_NONE);
}

/* Of the absent ports that the selector would select if they were present, the one that was seen last; NULL: there is none, or out
 * of memory. */
static const struct known_port *find_absent(struct matcher *m, const struct selector *s)
{
        _cleanup_findings_ struct findings ignored = { .arena = m->arena };
        struct matcher *larger = get_larger(m);
        const struct known_port *last = NULL, *port;
        struct port_list list = {};
        struct report report;
        int r;

        if (!larger)
                return NULL;
        report_init(&report, &ignored);
        larger->report = &report;
        r = matcher_match(larger, s, &list);
        larger->report = m->report;
        if (r < 0)
                return NULL;
        for (uint32_t i = 0; i < list.n; i++) {
                port = known_find(m->known, larger->subnet->ports[list.ports[i]].guid);
                if (port && is_absent(m, s, port) && (!last || known_is_later(port, last)))
                        last = port;
        }
        return last;
}

/* ---- hosts ---------------------------------------------------------------------------------------------------- */

static void warn_twins(struct matcher *m, const struct selector *s, uint32_t node)
{
        const struct subnet_node *a, *b;

        if (m->twin[node] == SUBNET_NONE)
                return;
        a = &m->subnet->nodes[m->twin[node]];
        b = &m->subnet->nodes[node];
        m->twin[node] = SUBNET_NONE; /* report it once */
        report_add(m->report, FINDING_WARNING, FINDING_NAME_DUPLICATE, &s->place,
                   "%s: two nodes call themselves '%s %s': 0x%016" PRIx64 " and 0x%016" PRIx64,
                   report_quote(m->report, s->text), b->name, b->device, a->guid.v, b->guid.v);
        report_hint(m->report, "each host sets its own name: rename one of the two, or write GUIDs or @SWITCH/PORT");
}

/* Reports the missing names of a range, as a note only: nodes may be down. Each step finds a name that is present or one that is
 * missing, so the fabric bounds the work, not the range. */
static void note_missing(struct matcher *m, const struct selector *s)
{
        struct short_list missing = { .max = MAX_LISTED };
        char name[HOSTLIST_MAX_NAME];

        for (uint64_t i = 0; i < s->host->n_names && missing.n <= missing.max; i++) {
                hostlist_name(s->host, i, name);
                if (!subnet_has_name(m->subnet, name))
                        short_list_add(&missing, m->report, "%s", name);
        }
        if (missing.n > 0)
                report_add(m->report, FINDING_NOTE, FINDING_SELECTOR_PARTIAL, &s->place, "%s: not in the fabric: %s",
                           report_quote(m->report, s->text), missing.text);
}

static void find_hosts(struct matcher *m, const struct selector *s)
{
        const struct subnet *subnet = m->subnet;
        const char *last = "";
        uint64_t n_names = 0;

        for (uint32_t i = hostlist_next_name(s->host, subnet, 0); i < subnet->n_by_name;
             i = hostlist_next_name(s->host, subnet, i + 1)) {
                const struct subnet_node *node = subnet_named_node(subnet, i);

                n_names += strcmp(node->name, last) != 0;
                last = node->name;
                if (s->device && !hostlist_match(s->device, node->device))
                        continue;
                warn_twins(m, s, subnet->by_name[i]);
                add_node(m, subnet->by_name[i], s->port, m->has_twin[subnet->by_name[i]] ? FREEZE_NAME : FREEZE_NONE);
        }
        if (m->n_found > 0 && n_names < s->host->n_names)
                note_missing(m, s);
}

/* ---- switches ------------------------------------------------------------------------------------------------- */

/* Adds the endports that are plugged into the switch. */
static void add_peers(struct matcher *m, const struct selector *s, uint32_t node, enum freeze why)
{
        const struct subnet_port *end = m->subnet->ports + m->subnet->n_ports;

        for (const struct subnet_port *p = m->subnet->ports + subnet_first_port(m->subnet, node); p < end && p->node == node; p++)
                if (p->role == PORT_SWITCH_EXTERNAL && p->peer != SUBNET_NONE && (!s->has_ports || selector_has_port(s, p->number)))
                        add_port(m, p->peer, why);
}

static void check_port_numbers(struct matcher *m, const struct selector *s, const struct subnet_node *node)
{
        for (unsigned port = SELECTOR_MAX_PORT; s->has_ports && node->num_ports > 0 && port > node->num_ports; port--) {
                if (!selector_has_port(s, port))
                        continue;
                report_add(m->report, FINDING_ERROR, FINDING_SELECTOR_SWITCH_PORT, &s->place,
                           "%s: the switch '%s' has no port %u (accepted: 1 to %u)", report_quote(m->report, s->text),
                           subnet_node_label(m->arena, node) ?: "?", port, node->num_ports);
                return;
        }
}

static bool is_switch_of(const struct selector *s, const struct subnet_node *node)
{
        return node->type == NODE_SWITCH && (!s->board || strcmp(s->board, subnet_node_board(node)) == 0);
}

/* Adds the endports of all switches of one name: the selector may select any of them. */
static void add_all_peers(struct matcher *m, const struct selector *s, uint32_t i, uint32_t end)
{
        const struct subnet *subnet = m->subnet;

        for (; i < end; i++)
                if (is_switch_of(s, subnet_named_node(subnet, i)))
                        add_peers(m, s, subnet->by_name[i], FREEZE_SWITCH_NAME);
}

/* Reports that n of the nodes by_name[first..end), which have one name, are switches that the selector may select. Lists
 * their boards, or their GUIDs if two in a row have the same board. */
static void report_switches(struct matcher *m, const struct selector *s, uint32_t first, uint32_t end, unsigned n)
{
        const struct subnet *subnet = m->subnet;
        const char *name = subnet_named_node(subnet, first)->name, *board = NULL, *example = "";
        const char *ports = s->has_ports ? strrchr(s->text, '/') : "";
        struct short_list boards = { .max = 2 * MAX_LISTED }, guids = boards;
        bool has_boards = !s->board;

        for (uint32_t i = first; i < end && guids.n <= guids.max; i++) {
                const struct subnet_node *node = subnet_named_node(subnet, i);

                if (!is_switch_of(s, node))
                        continue;
                has_boards = has_boards && (!board || strcmp(board, subnet_node_board(node)) != 0);
                board = subnet_node_board(node);
                if (guids.n == 0)
                        example = board;
                short_list_add(&boards, m->report, "%s:%s", name, board);
                short_list_add(&guids, m->report, "0x%016" PRIx64, node->guid.v);
        }
        report_add(m->report, FINDING_ERROR, FINDING_SELECTOR_SWITCH_AMBIGUOUS, &s->place,
                   "%s: %u switches call themselves '%s': %s", report_quote(m->report, s->text), n, name,
                   has_boards ? boards.text : guids.text);
        if (has_boards)
                report_hint(m->report, "write one of them with its board, as in @%s:%s%s", name, example, ports);
        else
                report_hint(m->report, "write the GUID, as in @0x0002c903000e0b72%s", ports);
}

/* Matches the switches among the nodes by_name[i], by_name[i + 1], ... of one name; with more than one, the selector is ambiguous.
 * Returns the index after them. */
static uint32_t match_namesakes(struct matcher *m, const struct selector *s, uint32_t i)
{
        const struct subnet *subnet = m->subnet;
        const char *name = subnet_named_node(subnet, i)->name;
        uint32_t n = 0, only = 0, first = i;

        for (; i < subnet->n_by_name && strcmp(subnet_named_node(subnet, i)->name, name) == 0; i++)
                if (is_switch_of(s, subnet_named_node(subnet, i))) {
                        only = subnet->by_name[i];
                        n++;
                }
        if (n == 1) {
                check_port_numbers(m, s, &subnet->nodes[only]);
                add_peers(m, s, only, FREEZE_NONE);
        } else if (n > 1) {
                if (m->in_force)
                        add_all_peers(m, s, first, i);
                report_switches(m, s, first, i, n);
        }
        return i;
}

static void find_switch_peers(struct matcher *m, const struct selector *s)
{
        const struct subnet *subnet = m->subnet;
        uint32_t i;

        if (s->host) {
                for (i = hostlist_next_name(s->host, subnet, 0); i < subnet->n_by_name;
                     i = hostlist_next_name(s->host, subnet, i))
                        i = match_namesakes(m, s, i);
                return;
        }
        i = subnet_find_node(subnet, s->guid);
        if (i == SUBNET_NONE || subnet->nodes[i].type != NODE_SWITCH)
                return;
        check_port_numbers(m, s, &subnet->nodes[i]);
        add_peers(m, s, i, FREEZE_NONE);
}

/* ---- other selectors ------------------------------------------------------------------------------------------ */

/* A port and its node may have the same GUID. Then the selector selects the port, which is narrower. */
static void find_guid(struct matcher *m, const struct selector *s)
{
        uint32_t port = subnet_find_endport(m->subnet, s->guid), node = subnet_find_node(m->subnet, s->guid);

        if (port != SUBNET_NONE)
                add_port(m, port, FREEZE_NONE);
        else if (node != SUBNET_NONE)
                add_node(m, node, 0, FREEZE_NONE);
}

static void find_type(struct matcher *m, const struct selector *s)
{
        for (uint32_t i = 0; i < m->subnet->n_ports; i++)
                if (s->kind == SELECTOR_ALL || subnet_port_node(m->subnet, &m->subnet->ports[i])->type == s->type)
                        add_port(m, i, FREEZE_NONE);
}

/* Finds the ports of any selector except a group. */
static int match_simple(struct matcher *m, const struct selector *s, struct port_list *ret)
{
        bool names_ports = s->kind == SELECTOR_HOST || s->kind == SELECTOR_SWITCH || s->kind == SELECTOR_GUID;
        size_t errors = m->report->n_errors;

        switch (s->kind) {
        case SELECTOR_ALL:
        case SELECTOR_TYPE:
                find_type(m, s);
                break;
        case SELECTOR_SELF:
                if (m->subnet->self != SUBNET_NONE)
                        add_port(m, m->subnet->self, FREEZE_NONE);
                break;
        case SELECTOR_HOST:
                find_hosts(m, s);
                break;
        case SELECTOR_SWITCH:
                find_switch_peers(m, s);
                break;
        case SELECTOR_GUID:
                find_guid(m, s);
                break;
        case SELECTOR_GROUP:
                break;
        }
        if (names_ports && m->n_found == 0 && m->report->n_errors == errors && !s->may_match_nothing)
                selector_report_no_match(m, s, find_absent(m, s));
        return take_found(m, ret);
}

/* ---- groups and lists ----------------------------------------------------------------------------------------- */

/* A port that one selector certainly selects is not contested, even if another selector may select it, too. */
static void add_members(struct matcher *m, const struct port_list *list)
{
        for (uint32_t k = 0; k < list->n; k++) {
                uint8_t *member = &m->member[list->ports[k]], how = (uint8_t) (1 + list->contested[k]);

                *member = *member ? MIN(*member, how) : how;
        }
}

/* The parser has refused cycles and deep nesting, so the recursion is bounded. */
static int match_group(struct matcher *m, uint32_t group)
{
        const struct policy_group *g = &m->policy->groups[group];
        const struct selector empty = { .kind = SELECTOR_GROUP, .text = g->name, .place.where = g->where };

        if (m->groups[group].ports)
                return 0;
        if (g->n_selectors == 0)
                selector_report_no_match(m, &empty, NULL);
        return matcher_match_list(m, g->selectors, g->n_selectors, &m->groups[group]);
}

int matcher_match(struct matcher *m, const struct selector *s, struct port_list *ret)
{
        int r;

        if (s->kind != SELECTOR_GROUP)
                return match_simple(m, s, ret);
        r = match_group(m, s->group);
        if (r == 0)
                *ret = m->groups[s->group];
        return r;
}

int matcher_match_list(struct matcher *m, struct selector *const *selectors, uint32_t n, struct port_list *ret)
{
        struct port_list list = {};
        int r = 0;

        /* groups first: matching one uses m->member, too */
        for (uint32_t i = 0; i < n && r == 0; i++)
                if (selectors[i]->kind == SELECTOR_GROUP)
                        r = match_group(m, selectors[i]->group);
        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = matcher_match(m, selectors[i], &list);
                if (r == 0)
                        add_members(m, &list);
        }
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < m->subnet->n_ports; i++) {
                if (m->member[i])
                        add_port(m, i, (enum freeze) (m->member[i] - 1));
                m->member[i] = 0;
        }
        return take_found(m, ret);
}
