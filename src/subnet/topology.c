/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"
#include "util/scan.h"
#include "util/vector.h"

/*
 * The format, line by line:
 *
 *     # comment
 *     vendid=0x2c9                      a property; only the GUIDs matter here
 *     switchguid=0x2c903(2c903)         of the node that follows (and its port GUID); caguid=, rtguid= alike
 *     Switch 36 "S-2c903"  # "leaf07" enhanced port 0 lid 2 lmc 0
 *     [1](2c911) "H-2c910"[1](2c911)  # "node0001 mlx5_0" lid 5 4xHDR
 *     Chassis 1, Hostname: ...          headings of ibnetdiscover -g
 *
 * A node without a GUID line has its GUID in its name. Port lines belong to the node line above them.
 */

#define MAX_FINDINGS    50
#define MAX_NAME        64  /* of a node in the file: "S-0002c903000e0b72" */
#define MAX_SOURCE_LINE 200

struct topology_node {
        struct scan name;
        struct guid guid;
        uint8_t num_ports;
        unsigned line;
};

struct topology_link {
        struct guid node;
        uint8_t number;
        struct scan remote_name;
        uint8_t remote_number;
        struct guid remote_port_guid; /* 0: the line has none */
        struct scan line;
        unsigned line_number;
};

struct parser {
        struct arena *arena;
        struct subnet_builder *builder;
        struct findings *findings;
        const char *file;
        struct scan line; /* the one being read */
        unsigned line_number;

        struct guid guid, port_guid; /* of a GUID line, until its node line; 0: none */
        struct subnet_node current;  /* the node that the port lines belong to */
        enum { NOT_IN_NODE, IN_NODE, IN_BAD_NODE } where;

        struct topology_node *nodes;
        struct topology_link *links;
        size_t n_nodes, size_nodes, n_links, size_links;
        uint32_t n_findings;
        bool refused, out_of_memory;
};

static void parser_done(struct parser *ps)
{
        free(ps->nodes);
        free(ps->links);
}

/* --- findings ----------------------------------------------------------------------------------------------------- */

/* `what` contains only parts of the file that were found to be printable. */
static void complain(struct parser *ps, enum finding_severity severity, const char *at, const char *what)
{
        struct location where = { .file = ps->file, .line = ps->line_number };
        struct finding *item;

        if (!what)
                ps->out_of_memory = true;
        ps->refused = ps->refused || severity == FINDING_ERROR;
        if (ps->n_findings++ >= MAX_FINDINGS || !what)
                return;
        where.column = (unsigned) (at - ps->line.p) + 1;
        item = findings_add(ps->findings, severity, FINDING_TOPOLOGY_SYNTAX, &where, "%s", what);
        if (item)
                item->source_line =
                                arena_printable(ps->arena, ps->line.p,
                                                MIN((size_t) (ps->line.end - ps->line.p), (size_t) MAX_SOURCE_LINE));
}

static void complain_rest(struct parser *ps)
{
        struct location where = { .file = ps->file };

        if (ps->n_findings > MAX_FINDINGS)
                (void) findings_add(ps->findings, ps->refused ? FINDING_ERROR : FINDING_WARNING,
                                    FINDING_TOPOLOGY_SYNTAX, &where, "... and %u more like these",
                                    ps->n_findings - MAX_FINDINGS);
}

/* --- pieces of a line --------------------------------------------------------------------------------------------- */

/* 0x2c903, or 2c903 */
static bool take_guid(struct scan *t, struct guid *ret)
{
        (void) scan_word(t, "0x");
        return scan_number(t, 16, UINT64_MAX, &ret->v) && ret->v != 0;
}

/* "(2c903)", or nothing */
static bool take_guid_in_parentheses(struct scan *t, struct guid *ret)
{
        return !scan_char(t, '(') || (take_guid(t, ret) && scan_char(t, ')'));
}

/* "[12]", or with the addition of ibnetdiscover -g "[12][ext 3]" */
static bool take_port_number(struct scan *t, uint8_t *ret)
{
        uint64_t v, ignored;

        if (!scan_char(t, '[') || !scan_number(t, 10, UINT8_MAX, &v) || !scan_char(t, ']'))
                return false;
        if (scan_word(t, "[ext ") && (!scan_number(t, 10, UINT32_MAX, &ignored) || !scan_char(t, ']')))
                return false;
        *ret = (uint8_t) v;
        return v > 0;
}

/* Takes the name of a node in the file, between quotes and printable. */
static bool take_name(struct scan *t, struct scan *ret)
{
        struct scan rest = *t;

        if (!scan_char(&rest, '"'))
                return false;
        ret->p = rest.p;
        while (rest.p < rest.end && *rest.p >= 0x20 && *rest.p <= 0x7e && *rest.p != '"')
                rest.p++;
        ret->end = rest.p;
        if (ret->end == ret->p || ret->end - ret->p > MAX_NAME || !scan_char(&rest, '"'))
                return false;
        *t = rest;
        return true;
}

/* Finds "lid 5 lmc 0" anywhere after a '#'. If it is missing or invalid, the values stay 0. */
static void find_lid(struct scan t, struct lid *ret_lid, uint8_t *ret_lmc)
{
        uint64_t lid, lmc;

        for (; t.p < t.end; t.p++) {
                struct scan rest = t;

                if (!scan_word(&rest, "lid ") || !scan_number(&rest, 10, LID_MAX_UNICAST, &lid))
                        continue;
                ret_lid->v = (uint16_t) lid;
                if (scan_word(&rest, " lmc ") && scan_number(&rest, 10, 7, &lmc))
                        *ret_lmc = (uint8_t) lmc;
                return;
        }
}

/* --- lines of a node ---------------------------------------------------------------------------------------------- */

/* "H-0002c903000e0b72" */
static bool guid_from_name(struct scan name, struct guid *ret)
{
        if (name.end - name.p < 3 || name.p[1] != '-')
                return false;
        name.p += 2;
        return scan_number(&name, 16, UINT64_MAX, &ret->v) && name.p == name.end && ret->v != 0;
}

/* Finds the quoted text after the '#', up to the last quote of the line, because a description may contain quotes. *rest is then
 * what follows it. Without a comment the description is the name in the file. */
static bool find_description(struct scan *rest, struct scan name, struct scan *ret)
{
        const char *last;

        while (rest->p < rest->end && *rest->p != '#')
                rest->p++;
        if (!scan_char(rest, '#')) {
                *ret = name;
                return true;
        }
        (void) scan_blanks(rest);
        if (!scan_char(rest, '"')) {
                *ret = *rest;
                return true;
        }
        last = memrchr(rest->p, '"', (size_t) (rest->end - rest->p));
        if (!last)
                return false;
        *ret = (struct scan) { rest->p, last };
        rest->p = last + 1;
        return true;
}

static void check_builder(struct parser *ps, int r, const char *at, const char *exists)
{
        if (r == -ENOMEM)
                ps->out_of_memory = true;
        else if (r < 0)
                complain(ps, FINDING_ERROR, at, exists);
}

static void add_node(struct parser *ps, struct scan name, struct scan description, struct scan rest)
{
        struct subnet_port port0 = { .guid = ps->port_guid.v ? ps->port_guid : ps->current.guid };
        int r = subnet_builder_add_node(ps->builder, &ps->current, description.p, (size_t) (description.end - description.p));

        check_builder(ps, r, name.p, "the file has a node with this GUID already");
        if (r < 0)
                return;
        if (VECTOR_ADD(NULL, ps->nodes, ps->n_nodes, ps->size_nodes,
                       (struct topology_node) { name, ps->current.guid, ps->current.num_ports, ps->line_number }) < 0) {
                ps->out_of_memory = true;
                return;
        }
        ps->where = IN_NODE;
        if (ps->current.type != NODE_SWITCH)
                return;
        find_lid(rest, &port0.lid, &port0.lmc);
        check_builder(ps, subnet_builder_add_port(ps->builder, ps->current.guid, &port0), name.p, "this node has a port 0 already");
}

/* Takes the rest of a node line, after its first word, up to the description. Returns what is wrong at *t, or NULL. */
static const char *take_node(struct parser *ps, struct scan *t, struct scan *ret_name, struct scan *ret_description)
{
        uint64_t num_ports;

        (void) scan_blanks(t);
        if (!scan_number(t, 10, UINT8_MAX, &num_ports) || num_ports == 0)
                return "expected the number of ports, 1 to 255";
        ps->current.num_ports = (uint8_t) num_ports;
        (void) scan_blanks(t);
        if (!take_name(t, ret_name))
                return "expected the node's name in quotes, like \"S-0002c903000e0b72\"";
        ps->current.guid = ps->guid;
        if (!ps->guid.v && !guid_from_name(*ret_name, &ps->current.guid)) {
                t->p = ret_name->p;
                return "this node has no GUID: no switchguid=, caguid= or rtguid= line, and none in its name";
        }
        return find_description(t, *ret_name, ret_description) ? NULL : "expected a quote after the description";
}

static void parse_node(struct parser *ps, enum node_type type, struct scan t)
{
        struct scan name, description;
        const char *error;

        ps->where = IN_BAD_NODE;
        ps->current = (struct subnet_node) { .type = type };
        error = take_node(ps, &t, &name, &description);
        if (error)
                complain(ps, FINDING_ERROR, t.p, error);
        else
                add_node(ps, name, description, t);
}

static void add_port(struct parser *ps, uint8_t number, struct guid guid, struct scan rest)
{
        struct subnet_port port = { .number = number, .guid = guid };

        /* as in ibsim, the port GUIDs of a CA follow its node GUID */
        if (!port.guid.v)
                port.guid.v = ps->current.guid.v + number;
        if (ps->current.type != NODE_SWITCH)
                find_lid(rest, &port.lid, &port.lmc);
        check_builder(ps, subnet_builder_add_port(ps->builder, ps->current.guid, &port), ps->line.p,
                      "this node has this port already");
}

/* Takes a port line up to the comment. Returns what is wrong at *t, or NULL. */
static const char *take_link(const struct parser *ps, struct scan *t, struct topology_link *ret, struct guid *ret_guid)
{
        if (ps->where == NOT_IN_NODE)
                return "a port without a node: expected a Switch, Ca or Rt line before";
        if (!take_port_number(t, &ret->number) || ret->number > ps->current.num_ports)
                return "expected the number of a port of this node in brackets, like [1]";
        if (!take_guid_in_parentheses(t, ret_guid))
                return "expected a port GUID in parentheses";
        (void) scan_blanks(t);
        if (!take_name(t, &ret->remote_name))
                return "expected the name of the node at the other end in quotes";
        (void) scan_blanks(t);
        if (t->p < t->end && *t->p == '[' && !take_port_number(t, &ret->remote_number))
                return "expected the number of the port at the other end, like [1]";
        (void) scan_blanks(t);
        return take_guid_in_parentheses(t, &ret->remote_port_guid) ? NULL : "expected a port GUID in parentheses";
}

static void parse_port(struct parser *ps, struct scan t)
{
        struct topology_link link = {
                .node = ps->current.guid, .remote_number = 1, .line = ps->line, .line_number = ps->line_number,
        };
        struct guid guid = {};
        const char *error;

        if (ps->where == IN_BAD_NODE)
                return;
        error = take_link(ps, &t, &link, &guid);
        if (error)
                complain(ps, FINDING_ERROR, t.p, error);
        else if (VECTOR_ADD(NULL, ps->links, ps->n_links, ps->size_links, link) < 0)
                ps->out_of_memory = true;
        else
                add_port(ps, link.number, guid, t);
}

/* --- all lines ---------------------------------------------------------------------------------------------------- */

/* Parses "switchguid=0x2c903(2c903)" after the '='. */
static void parse_guid_line(struct parser *ps, struct scan t)
{
        ps->where = NOT_IN_NODE;
        ps->guid = ps->port_guid = (struct guid) { 0 };
        (void) scan_blanks(&t);
        if (!take_guid(&t, &ps->guid) || !take_guid_in_parentheses(&t, &ps->port_guid))
                complain(ps, FINDING_ERROR, t.p, "expected a GUID, like 0x0002c903000e0b72");
}

/* True for "vendid=0x2c9", "module "x"" or a heading: ignored. */
static bool is_property(struct scan t)
{
        static const char *const headings[] = { "Chassis ", "Hostname:", "module", "width", "speed", "extspeed" };
        const char *start = t.p;

        for (size_t i = 0; i < ELEMENTS(headings); i++)
                if (scan_word(&t, headings[i]))
                        return true;
        while (t.p < t.end && ((*t.p >= 'a' && *t.p <= 'z') || (*t.p >= 'A' && *t.p <= 'Z')))
                t.p++;
        return t.p > start && scan_char(&t, '=');
}

static void parse_line(struct parser *ps)
{
        static const struct {
                const char *word;
                enum node_type type;
        } node_words[] = { { "Switch", NODE_SWITCH }, { "Ca", NODE_CA }, { "Hca", NODE_CA }, { "Rt", NODE_ROUTER } };
        static const char *const guid_words[] = { "switchguid=", "caguid=", "hcaguid=", "hcaguids=", "rtguid=" };
        struct scan t = ps->line;

        (void) scan_blanks(&t);
        if (t.p == t.end || *t.p == '#' || *t.p == '@')
                return;
        if (*t.p == '[') {
                parse_port(ps, t);
                return;
        }
        for (size_t i = 0; i < ELEMENTS(guid_words); i++)
                if (scan_word(&t, guid_words[i])) {
                        parse_guid_line(ps, t);
                        return;
                }
        for (size_t i = 0; i < ELEMENTS(node_words); i++) {
                struct scan rest = t;

                if (!scan_word(&rest, node_words[i].word) || !(scan_char(&rest, ' ') || scan_char(&rest, '\t')))
                        continue;
                parse_node(ps, node_words[i].type, rest);
                ps->guid = ps->port_guid = (struct guid) { 0 };
                return;
        }
        if (!is_property(t))
                complain(ps, FINDING_ERROR, t.p, "not a line of ibnetdiscover's output");
}

static void parse_lines(struct parser *ps, const char *bytes, size_t n)
{
        struct scan rest = { bytes, bytes + n };

        while (!ps->out_of_memory && scan_line(&rest, &ps->line)) {
                ps->line_number++;
                if (ps->line.end > ps->line.p && ps->line.end[-1] == '\r')
                        ps->line.end--;
                parse_line(ps);
        }
}

/* --- links -------------------------------------------------------------------------------------------------------- */

static int compare_texts(struct scan a, struct scan b)
{
        size_t n = (size_t) (a.end - a.p), m = (size_t) (b.end - b.p);

        return memcmp(a.p, b.p, MIN(n, m)) ?: ORDER(n, m);
}

DEFINE_COMPARE(compare_nodes, struct topology_node, compare_texts(a->name, b->name) ?: ORDER(a->line, b->line))

static void check_names(struct parser *ps)
{
        SORT(ps->nodes, ps->n_nodes, compare_nodes);
        for (size_t i = 1; i < ps->n_nodes; i++)
                if (compare_texts(ps->nodes[i - 1].name, ps->nodes[i].name) == 0) {
                        ps->line = ps->nodes[i].name;
                        ps->line_number = ps->nodes[i].line;
                        complain(ps, FINDING_ERROR, ps->line.p,
                                 arena_printf(ps->arena, "a node of this name is in line %u already", ps->nodes[i - 1].line));
                }
}

/* Adds the cable of a port line, and the port at the other end if the file has no line for it. Most cables are in the file
 * twice. */
static void resolve_link(struct parser *ps, const struct topology_link *l)
{
        struct subnet_port far = { .number = l->remote_number, .guid = l->remote_port_guid };
        size_t i = LOWER_BOUND(n, ps->nodes, ps->n_nodes, compare_texts(n->name, l->remote_name) < 0);
        const struct topology_node *node;
        int r;

        ps->line = l->line;
        ps->line_number = l->line_number;
        if (i == ps->n_nodes || compare_texts(ps->nodes[i].name, l->remote_name) != 0) {
                complain(ps, FINDING_WARNING, l->remote_name.p, "the node at the other end is not in this file");
                return;
        }
        node = &ps->nodes[i];
        if (l->remote_number > node->num_ports) {
                complain(ps, FINDING_ERROR, l->remote_name.p,
                         arena_printf(ps->arena, "the node at the other end has only %u ports", node->num_ports));
                return;
        }
        if (!far.guid.v)
                far.guid.v = node->guid.v + far.number;
        r = subnet_builder_add_port(ps->builder, node->guid, &far);
        if (r == 0 || r == -EEXIST)
                r = subnet_builder_add_link(ps->builder, l->node, l->number, node->guid, l->remote_number);
        if (r < 0)
                ps->out_of_memory = true;
}

int subnet_parse_topology(struct arena *a, const char *file_name, const char *bytes, size_t n,
                          struct findings *findings, struct subnet **ret)
{
        _cleanup_(parser_done) struct parser ps = { .arena = a, .findings = findings, .file = arena_strdup(a, file_name) };
        struct guid none = { 0 };
        int r = subnet_builder_new(a, &ps.builder);

        if (r < 0 || !ps.file)
                return -ENOMEM;
        parse_lines(&ps, bytes, n);
        check_names(&ps);
        for (size_t i = 0; i < ps.n_links && !ps.out_of_memory; i++)
                resolve_link(&ps, &ps.links[i]);
        if (ps.n_nodes == 0 && !ps.refused) {
                ps.line = (struct scan) { "", "" };
                ps.line_number = 0;
                complain(&ps, FINDING_ERROR, ps.line.p, "the file contains no node");
        }
        complain_rest(&ps);
        if (ps.out_of_memory || findings->out_of_memory)
                return -ENOMEM;
        if (ps.refused)
                return -EBADMSG;
        return subnet_builder_finish(ps.builder, none, 0, none, 0, ret);
}
