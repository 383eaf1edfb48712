/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the ports of the hosts in a node list of Slurm. */
#include <errno.h>
#include <string.h>

#include "policy/hostlist.h"
#include "rest/rest_internal.h"
#include "util/vector.h"

#define MAX_SHOWN 5 /* unknown hosts in a reason */

/* A port by the name of its host. */
struct named {
        const char *host;
        struct guid guid;
};

DEFINE_COMPARE(named_compare, struct named, strcmp(a->host, b->host))

struct hosts {
        struct rest_exchange *exchange;
        struct named *named;          /* ascending host */
        size_t n_named, allocated_named;
        struct hostlist **lists;
        size_t n_lists, allocated_lists;
        struct rest_member *members;  /* what was found */
        size_t n_members, allocated_members;
        const char *unknown[MAX_SHOWN];
        size_t n_unknown;
};

static int add_named(struct hosts *h, const char *host, struct guid guid)
{
        return VECTOR_ADD(h->exchange->arena, h->named, h->n_named, h->allocated_named, (struct named) { host, guid });
}

static int add_ports(struct hosts *h)
{
        const struct rest_view *v = h->exchange->view;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < v->n_ports; i++)
                if (v->ports[i].is_computer)
                        r = add_named(h, v->ports[i].node_name, v->ports[i].guid);
        return r;
}

/* The members of the partition by the names that their hosts had, so that a host that is gone can be taken out. */
static int add_members(struct hosts *h)
{
        const struct rest_exchange *x = h->exchange;
        const struct rest_partition *p = rest_find_partition(x->view, x->reply->change.base);
        int r = 0;

        for (uint32_t i = 0; r == 0 && p && i < p->n_members; i++)
                if (p->members[i].host)
                        r = add_named(h, p->members[i].host, p->members[i].guid);
        return r;
}

/* Parses n bytes, a node list without commas outside of brackets. */
static int parse_list(struct hosts *h, const char *text, size_t n)
{
        struct rest_exchange *x = h->exchange;
        struct hostlist_error error = {};
        int r = VECTOR_GROW(x->arena, h->lists, h->n_lists, h->allocated_lists);

        r = r ?: hostlist_parse(x->arena, text, n, &error, &h->lists[h->n_lists]);
        if (r == -EBADMSG)
                return error.text ? rest_fail(x, 400, "hosts_names: %s: %s (accepted: a node list such as \"node[01-04],gpu7\")",
                                              rest_quote(x, arena_strndup(x->arena, text, n) ?: ""), error.text)
                                  : -ENOMEM;
        h->n_lists += r == 0;
        return r;
}

static int parse_lists(struct hosts *h)
{
        const char *text = h->exchange->hosts;
        bool inside = false;
        int r = 0;

        for (const char *p = text; r == 0; p++) {
                inside = *p == '[' || (inside && *p != ']');
                if (*p != '\0' && (*p != ',' || inside))
                        continue;
                r = parse_list(h, text, (size_t) (p - text));
                if (*p == '\0')
                        break;
                text = p + 1;
        }
        return r;
}

/* Called before the first name is made: a short node list can stand for millions of names. */
static int check_number(struct hosts *h)
{
        uint64_t room = REST_MAX_HOSTS;

        for (size_t i = 0; i < h->n_lists; i++) {
                if (h->lists[i]->n_names > room)
                        return rest_fail(h->exchange, 400, "hosts_names: more than %d hosts", REST_MAX_HOSTS);
                room -= h->lists[i]->n_names;
        }
        return 0;
}

static int add_member(struct hosts *h, struct guid guid)
{
        struct rest_exchange *x = h->exchange;

        if (h->n_members == REST_MAX_GUIDS)
                return rest_fail(x, 400, "hosts_names: the hosts have more than %d ports", REST_MAX_GUIDS);
        return VECTOR_ADD(x->arena, h->members, h->n_members, h->allocated_members,
                          (struct rest_member) { .guid = guid, .membership = x->membership, .index0 = x->index0 });
}

/* Finds the ports of one host. */
static int find_host(struct hosts *h, const char *name)
{
        size_t i = LOWER_BOUND(p, h->named, h->n_named, strcmp(p->host, name) < 0), first = i;
        int r = 0;

        for (; r == 0 && i < h->n_named && strcmp(h->named[i].host, name) == 0; i++)
                r = add_member(h, h->named[i].guid);
        if (i > first || r < 0)
                return r;
        if (h->n_unknown < MAX_SHOWN) {
                h->unknown[h->n_unknown] = arena_strdup(h->exchange->arena, name);
                if (!h->unknown[h->n_unknown])
                        return -ENOMEM;
        }
        h->n_unknown++;
        return 0;
}

static int find_hosts(struct hosts *h)
{
        char name[HOSTLIST_MAX_NAME];
        int r;

        SORT(h->named, h->n_named, named_compare);
        r = parse_lists(h) ?: check_number(h);
        for (size_t i = 0; i < h->n_lists && r == 0; i++)
                for (uint64_t k = 0; k < h->lists[i]->n_names && r == 0; k++) {
                        hostlist_name(h->lists[i], k, name);
                        r = find_host(h, name);
                }
        return r;
}

static int refuse_unknown(struct hosts *h)
{
        _cleanup_text_ struct text t = {};
        size_t shown = MIN(h->n_unknown, (size_t) MAX_SHOWN);

        for (size_t i = 0; i < shown; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", h->unknown[i]);
        if (h->n_unknown > shown)
                text_add(&t, " and %zu more", h->n_unknown - shown);
        return rest_fail(h->exchange, 400, "hosts_names: no port of the fabric belongs to %s (accepted: names of hosts that are in the "
                         "fabric now, and that no other host claims; see pkeyctl doctor)", rest_text(h->exchange, &t));
}

int rest_add_ports_of_hosts(struct rest_exchange *x)
{
        struct hosts h = { .exchange = x };
        int r = add_ports(&h) ?: find_hosts(&h);

        if (r == 0 && h.n_unknown > 0)
                r = refuse_unknown(&h);
        return r < 0 ? r : rest_set_members(x, h.members, h.n_members);
}

int rest_remove_ports_of_hosts(struct rest_exchange *x)
{
        struct hosts h = { .exchange = x };
        int r = add_ports(&h) ?: add_members(&h) ?: find_hosts(&h);

        return r < 0 ? r : rest_set_members(x, h.members, h.n_members);
}
