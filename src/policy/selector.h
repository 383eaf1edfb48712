/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * This file parses selectors; selector_match.h finds the ports that they select in a fabric.
 *
 *     0x0002c903000e0b72            a port GUID or node GUID
 *     SELF                          the port pkeyd works through
 *     @leaf07/1-18,20               the endports plugged into these ports of a switch (a name, hostlist or GUID)
 *     @director:L20/U2/1-18         the same for one switch of a director, whose switches share a name
 *     node7/mlx5_0/1  node7/mlx5_0  host, device, port
 *     node[001-128]   @leaf07       host names; the endports plugged into a switch
 *     storage                       a group
 *     ALL_CAS ALL_SWITCHES ALL_ROUTERS ALL
 *
 * Several selectors are separated by commas; each has its own specificity. After @SWITCH/, a comma continues the list of ports if
 * only digits and dashes follow it up to the next comma.
 */

#include "policy/hostlist.h"
#include "policy/policy.h"
#include "util/file_report.h"
#include "util/text.h"

#define SELECTOR_MAX_PORT     254  /* a port number has 8 bits, and 255 means "all" in MADs */
#define SELECTOR_MAX_ELEMENTS 4096 /* in one line */
#define SELECTOR_MAX_TOTAL    1000000 /* in one file */

enum selector_kind {
        SELECTOR_ALL,
        SELECTOR_TYPE,
        SELECTOR_SELF,
        SELECTOR_GROUP,
        SELECTOR_HOST,   /* host, host/device, host/device/port */
        SELECTOR_SWITCH, /* @SWITCH, @SWITCH/PORTS, @SWITCH:BOARD, @SWITCH:BOARD/PORTS */
        SELECTOR_GUID,
};

struct selector {
        enum selector_kind kind;
        enum specificity specificity;
        const char *text;        /* as written */
        struct place place;
        enum node_type type;     /* of SELECTOR_TYPE */
        struct guid guid;        /* of SELECTOR_GUID, and of SELECTOR_SWITCH by GUID */
        bool may_match_nothing;  /* of SELECTOR_GUID: that is no finding; never of a selector that was written */
        uint32_t group;          /* of SELECTOR_GROUP: index into policy->groups */
        struct hostlist *host;   /* host or switch name */
        struct hostlist *device; /* NULL: any */
        uint8_t port;            /* 0: any */
        const char *board;       /* of SELECTOR_SWITCH, as subnet_node_board() returns it; NULL: any */
        bool has_ports;          /* @SWITCH/PORTS */
        uint64_t ports[4];       /* a bit for each port */
        const char *ports_text;
};

static inline bool selector_has_port(const struct selector *s, unsigned port)
{
        return s->ports[port / 64] >> (port % 64) & 1;
}

struct selector_reader {
        struct arena *arena;
        struct report *report;
        const struct policy *policy; /* for its groups; NULL: there are none */
        uint32_t total;              /* selectors read so far */
};

/* A list of selectors and its place in the file. */
struct selector_source {
        const char *text;
        const char *path;   /* for messages, "partitions.lustre.members"; NULL: none */
        struct place place;
        bool verbatim;      /* the text is the same in the file, so that an offset into it is an offset of columns */
};

/* Reads a list of selectors separated by commas. Reports all errors in it. Returns 0, -EBADMSG, -ENOMEM. *ret lives in the reader's
 * arena and is set only on 0. */
int selector_parse_list(struct selector_reader *r, const struct selector_source *source, struct selector ***ret, uint32_t *ret_n);

struct selector_list {
        const struct selector **items;
        size_t n, allocated;
};

/* Appends all selectors of a policy, in the order of groups, pools, partitions and lines. Returns 0 or -ENOMEM; *ret lives in the
 * arena. */
int selector_list_all(struct arena *a, const struct policy *p, struct selector_list *ret);

/* The name of a group or partition consists of letters, digits, '_', '-' and '.', and cannot be mistaken for another selector.
 * Returns NULL for a valid name, else what is wrong with it, a static string. */
const char *selector_name_problem(const char *name);

/* Returns whether a selector that is this word selects the host of this name, unless there is a group of that name. */
bool selector_names_host(const char *word);

/* Returns whether this word, written like this, is one of ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS and SELF. */
bool selector_is_keyword(const char *word);

/* The membership with this name, in upper or lower case; -1: there is none. */
int selector_find_membership(const char *word);

/* Index of the group of this name, or -1. policy may be NULL. */
int selector_find_group(const struct policy *p, const char *name);

/* Reports two lines of a partition that are equally specific and disagree about something. */
void selector_report_ambiguous(struct report *r, const struct place *place, const char *partition,
                               const struct policy_rule *later, const struct policy_rule *earlier, const char *about);

/* Appends a selector in its normal form. */
void selector_print(struct text *t, const struct selector *s);
