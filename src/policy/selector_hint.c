/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/selector_hint.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "util/nearest.h"

void short_list_add(struct short_list *l, struct report *r, const char *format, ...)
{
        const char *item = "...";
        va_list ap;

        if (l->n > l->max)
                return;
        if (l->n < l->max) {
                va_start(ap, format);
                item = arena_vprintf(r->findings->arena, format, ap) ?: "?";
                va_end(ap);
        }
        l->text = l->n > 0 ? report_text(r, "%s, %s", l->text, item) : item;
        l->n++;
}

/* A name with each run of digits replaced by one #, so that node[1-4] and node0017 have the same shape. */
static void shape_of_name(const char *name, char ret[HOSTLIST_MAX_NAME])
{
        size_t used = 0;

        for (; *name && used < HOSTLIST_MAX_NAME - 1; name++) {
                char c = isdigit((unsigned char) *name) ? '#' : *name;

                if (c != '#' || used == 0 || ret[used - 1] != '#')
                        ret[used++] = c;
        }
        ret[used] = '\0';
}

static void shape_of_hostlist(const struct hostlist *h, char ret[HOSTLIST_MAX_NAME])
{
        char text[HOSTLIST_MAX_NAME];
        size_t used = 0;

        for (uint32_t i = 0; i < h->n_tokens && used < sizeof(text) - HOSTLIST_MAX_LENGTH; i++) {
                const char *part = h->tokens[i].kind == HOSTLIST_LITERAL ? h->tokens[i].literal :
                                   h->tokens[i].kind == HOSTLIST_RANGES ? "0" : "";

                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s", part);
        }
        text[MIN(used, sizeof(text) - 1)] = '\0';
        shape_of_name(text, ret);
}

static bool is_candidate(const struct selector *s, const struct subnet_node *node)
{
        return s->kind != SELECTOR_SWITCH || node->type == NODE_SWITCH;
}

/* The most similar name in the fabric or of a group, for a selector with a single name. */
static const char *nearest_name(struct matcher *m, const struct selector *s, const char *name)
{
        const struct subnet *subnet = m->subnet;
        struct nearest nearest;

        nearest_init(&nearest, name);
        for (uint32_t i = 0; i < subnet->n_by_name; i++)
                if (is_candidate(s, subnet_named_node(subnet, i)))
                        nearest_offer(&nearest, subnet_named_node(subnet, i)->name);
        for (uint32_t i = 0; m->policy && s->kind == SELECTOR_HOST && !s->device && i < m->policy->n_groups; i++)
                nearest_offer(&nearest, m->policy->groups[i].name);
        return nearest.best;
}

/* The name whose shape is the most similar to that of a hostlist. */
static const char *nearest_shape(struct matcher *m, const struct selector *s)
{
        const struct subnet *subnet = m->subnet;
        char wanted[HOSTLIST_MAX_NAME], shape[HOSTLIST_MAX_NAME];
        unsigned limit = 2, d;
        const char *best = NULL;

        shape_of_hostlist(s->host, wanted);
        for (uint32_t i = 0; i < subnet->n_by_name; i++) {
                const struct subnet_node *node = subnet_named_node(subnet, i);

                if (!is_candidate(s, node))
                        continue;
                shape_of_name(node->name, shape);
                d = edit_distance(wanted, shape, limit);
                if (d > limit || d >= strlen(shape))
                        continue;
                best = node->name;
                if (d == 0)
                        break;
                limit = d - 1;
        }
        return best;
}

/* The devices of the host in the fabric; NULL: there is no host of this name. */
static const char *list_devices(struct matcher *m, const struct selector *s)
{
        const struct subnet *subnet = m->subnet;
        struct short_list list = { .max = MAX_LISTED };

        for (uint32_t i = hostlist_next_name(s->host, subnet, 0); i < subnet->n_by_name && list.n <= list.max;
             i = hostlist_next_name(s->host, subnet, i + 1)) {
                const struct subnet_node *node = subnet_named_node(subnet, i);

                short_list_add(&list, m->report, "%s/%s", node->name,
                               node->device[0] ? node->device : "(no device in its NodeDescription)");
        }
        return list.text;
}

/* "L20/U2" and "L20/U3" are units of the same board. */
static bool is_same_board(const char *board, const char *other)
{
        size_t n = strcspn(board, "/");

        return strncmp(board, other, n) == 0 && (other[n] == '/' || other[n] == '\0');
}

/* If no switch of this name has the board, lists the other units of this board or, if there are none, other boards. Returns whether
 * it added a hint. */
static bool hint_other_board(struct matcher *m, const struct selector *s, uint32_t first)
{
        const struct subnet *subnet = m->subnet;
        struct short_list others = { .max = MAX_LISTED }, units = others, *list;

        for (uint32_t i = first; s->board && i < subnet->n_by_name; i = hostlist_next_name(s->host, subnet, i + 1)) {
                const struct subnet_node *node = subnet_named_node(subnet, i);
                const char *board = subnet_node_board(node);

                if (node->type != NODE_SWITCH)
                        continue;
                if (strcmp(board, s->board) == 0)
                        return false;
                short_list_add(is_same_board(s->board, board) ? &units : &others, m->report, "@%s:%s", node->name, board);
        }
        list = units.n > 0 ? &units : &others;
        if (list->n == 0)
                return false;
        report_hint(m->report, "no switch of this name has board %s (known: %s)", s->board, list->text);
        return true;
}

/* Handles a switch selector whose name exists, but as a group, another kind of node, or a switch without peers. Returns whether it
 * added a hint. */
static bool hint_wrong_kind(struct matcher *m, const struct selector *s)
{
        const struct subnet *subnet = m->subnet;
        const struct subnet_node *node;
        uint32_t i;

        if (s->kind != SELECTOR_SWITCH)
                return false;
        if (selector_find_group(m->policy, s->host->text) >= 0) {
                report_hint(m->report, "'%s' is a group: write it without '@'", s->host->text);
                return true;
        }
        i = hostlist_next_name(s->host, subnet, 0);
        if (i == subnet->n_by_name)
                return false;
        if (hint_other_board(m, s, i))
                return true;
        node = subnet_named_node(subnet, i);
        if (node->type != NODE_SWITCH)
                report_hint(m->report, "'%s' is a %s, not a switch: write it without '@'", node->name,
                            node_type_to_string(node->type));
        else
                report_hint(m->report, "the switch is there, but no endport is plugged into it%s",
                            s->has_ports ? " at these ports" : "");
        return true;
}

/* The selector with another name: what follows the name makes it narrower. */
static const char *with_name(struct report *r, const struct selector *s, const char *name)
{
        const char *sign = s->kind == SELECTOR_SWITCH ? "@" : "";

        return report_text(r, "%s%s%s", sign, name, s->text + strlen(sign) + strlen(s->host->text));
}

static void hint_nearest(struct matcher *m, const struct selector *s)
{
        const char *near;
        char name[HOSTLIST_MAX_NAME];

        if (s->host->n_names == 1) {
                hostlist_name(s->host, 0, name);
                near = nearest_name(m, s, name);
                if (near) {
                        report_hint(m->report, "did you mean '%s'?", with_name(m->report, s, near));
                        return;
                }
        }
        near = nearest_shape(m, s);
        if (near)
                report_hint(m->report, "similar names such as '%s' exist: check spelling and zero padding", near);
}

static void add_hint(struct matcher *m, const struct selector *s)
{
        const char *devices;

        if (m->hints == 0)
                return;
        m->hints--;
        if (s->kind == SELECTOR_GUID) {
                report_hint(m->report, "neither a port nor a node has this GUID: check that it is not a system image GUID "
                                       "and that the node is up");
                return;
        }
        if (!s->host || hint_wrong_kind(m, s))
                return;
        devices = s->device ? list_devices(m, s) : NULL;
        if (devices)
                report_hint(m->report, "devices in the fabric: %s", devices);
        else
                hint_nearest(m, s);
}

/* In UTC, because the core knows no time zone. */
static const char *time_text(struct report *r, uint64_t seconds)
{
        time_t t = (time_t) seconds;
        char text[32] = "?";
        struct tm tm;

        if (gmtime_r(&t, &tm))
                (void) strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm);
        return report_text(r, "%s", text);
}

static void report_absent(struct matcher *m, const struct selector *s, const struct known_port *port)
{
        bool strict = m->policy && m->policy->strict, gone = subnet_find_endport(m->subnet, port->port_guid) == SUBNET_NONE;

        report_add(m->report, strict ? FINDING_ERROR : FINDING_WARNING, FINDING_SELECTOR_NO_MATCH, &s->place, "%s %s%s)%s",
                   report_quote(m->report, s->text),
                   gone ? "is not in the fabric now (last seen " :
                          "is in the fabric, but did not answer all queries of discovery (it last did ",
                   time_text(m->report, port->seen), strict ? "; `strict: true` makes this an error" : "");
        if (s->place.source_line) /* else the selector is from a command line */
                report_hint(m->report, "the line applies again when it %s", gone ? "returns" : "does");
}

void selector_report_no_match(struct matcher *m, const struct selector *s, const struct known_port *absent)
{
        bool strict = m->policy && m->policy->strict;

        if (absent) {
                report_absent(m, s, absent);
                return;
        }
        report_add(m->report, strict ? FINDING_ERROR : FINDING_WARNING, FINDING_SELECTOR_NO_MATCH, &s->place,
                   "%s matches nothing in the fabric%s", report_quote(m->report, s->text),
                   strict ? " (`strict: true` makes this an error)" : "");
        if (m->report->last)
                add_hint(m, s);
}
