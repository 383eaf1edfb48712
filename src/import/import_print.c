/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "import/import.h"
#include "policy/policy.h"
#include "util/text.h"
#include "util/vector.h"

/* A line of the original that defines a partition or one of its members. */
struct mark {
        unsigned line;
        uint32_t partition;
        const struct partitions_conf_member *member; /* NULL: the head of its first definition */
};

/* A comment and the partition that it is about; TOP: the whole file. */
struct owned {
        uint32_t owner;
        const struct partitions_conf_comment *comment;
};

struct printer {
        struct import *im;
        struct text t;
        struct mark *marks;   /* ascending line */
        uint32_t n_marks;
        struct owned *owned;  /* comments printed above a partition, ascending owner and line */
        uint32_t n_owned;
        const struct partitions_conf_comment **trailing; /* comments printed after a GUID, ascending line */
        uint32_t n_trailing;
};

#define TOP UINT32_MAX

DEFINE_COMPARE(compare_marks, struct mark, ORDER(a->line, b->line))

static int make_marks(struct printer *p)
{
        const struct partitions_conf *c = p->im->conf;
        uint32_t allocated = 0;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < c->n_partitions; i++) {
                if (c->partitions[i].where.line > 0)
                        r = VECTOR_ADD(p->im->arena, p->marks, p->n_marks, allocated,
                                       (struct mark) { c->partitions[i].where.line, i, NULL });
                for (const struct partitions_conf_member *m = c->partitions[i].members; r == 0 && m; m = m->next)
                        if (m->where.line > 0)
                                r = VECTOR_ADD(p->im->arena, p->marks, p->n_marks, allocated,
                                               (struct mark) { m->where.line, i, m });
        }
        SORT(p->marks, p->n_marks, compare_marks);
        return r;
}

/* ---- comments -------------------------------------------------------------------------------------------------- */

/* The first mark at or after this line. */
static uint32_t mark_from(const struct printer *p, unsigned line)
{
        return LOWER_BOUND(mark, p->marks, p->n_marks, mark->line < line);
}

/* The last line of the block of comments that begins with this one. */
static unsigned end_of_block(const struct partitions_conf_comment *c)
{
        while (c->next && c->next->alone && c->next->line == c->line + 1)
                c = c->next;
        return c->line;
}

/* The partition that a comment is about: the one right below or on its line, else the one above. */
static uint32_t comment_owner(const struct printer *p, const struct partitions_conf_comment *c)
{
        uint32_t next = mark_from(p, c->line);

        if (c->alone && next < p->n_marks && p->marks[next].line == end_of_block(c) + 1)
                return p->marks[next].partition;
        if (!c->alone && next < p->n_marks && p->marks[next].line == c->line)
                return p->marks[next].partition;
        return next > 0 ? p->marks[next - 1].partition : TOP;
}

static const char *host_of(const struct import *im, const struct partitions_conf_member *m)
{
        uint32_t port = im->subnet && m->who == PARTITIONS_CONF_GUID ? subnet_find_endport(im->subnet, m->guid) : SUBNET_NONE;

        return port == SUBNET_NONE ? "" : subnet_port_node(im->subnet, &im->subnet->ports[port])->name;
}

/* The one port in the line of a comment; NULL: none, or several. */
static const struct partitions_conf_member *only_member(const struct printer *p, unsigned line)
{
        const struct partitions_conf_member *found = NULL;

        for (uint32_t i = mark_from(p, line); i < p->n_marks && p->marks[i].line == line; i++) {
                if (p->marks[i].member && found)
                        return NULL;
                if (p->marks[i].member)
                        found = p->marks[i].member;
        }
        return found && found->who == PARTITIONS_CONF_GUID ? found : NULL;
}

/* Returns whether the comment after a GUID names the GUID's host, as the policy does. */
static bool repeats_host(const struct printer *p, const struct partitions_conf_comment *c)
{
        const struct partitions_conf_member *m = c->alone ? NULL : only_member(p, c->line);
        const char *host = m ? host_of(p->im, m) : "";

        return *host && strstr(c->text, host);
}

/* Returns whether the GUID on the comment's line is in the policy, so that the comment can follow it there. */
static bool is_trailing(const struct printer *p, const struct partitions_conf_comment *c, uint32_t owner)
{
        const struct partitions_conf_member *m = c->alone || owner == TOP ? NULL : only_member(p, c->line);
        const struct import_partition *ip;
        uint32_t i;

        if (!m)
                return false;
        ip = &p->im->partitions[owner];
        i = LOWER_BOUND(port, ip->ports, ip->n_ports, port->guid.v < m->guid.v);
        return i < ip->n_ports && ip->ports[i].guid.v == m->guid.v && ip->ports[i].stays_guid &&
               ip->ports[i].where.line == c->line;
}

DEFINE_COMPARE(compare_owned, struct owned, ORDER(a->owner, b->owner) ?: ORDER(a->comment->line, b->comment->line))

/* Assigns each comment to a partition or a GUID. */
static int assign_comments(struct printer *p)
{
        uint32_t allocated_owned = 0, allocated_trailing = 0;
        struct arena *a = p->im->arena;
        int r = 0;

        for (const struct partitions_conf_comment *c = p->im->conf->comments; r == 0 && c; c = c->next) {
                uint32_t owner = p->im->conf->discarded ? TOP : comment_owner(p, c);

                if (!*c->text || repeats_host(p, c))
                        continue;
                if (is_trailing(p, c, owner))
                        r = VECTOR_ADD(a, p->trailing, p->n_trailing, allocated_trailing, c);
                else
                        r = VECTOR_ADD(a, p->owned, p->n_owned, allocated_owned, (struct owned) { owner, c });
        }
        SORT(p->owned, p->n_owned, compare_owned);
        return r;
}

/* The comment after this port in the original; NULL: none. */
static const char *trailing_comment(const struct printer *p, const struct import_port *port)
{
        const struct partitions_conf_comment **found = FIND_SORTED(comment, p->trailing, p->n_trailing,
                                                                   ORDER((*comment)->line, port->where.line));

        return found ? (*found)->text : NULL;
}

static void print_comments(struct printer *p, uint32_t owner, const char *indent)
{
        uint32_t first = LOWER_BOUND(owned, p->owned, p->n_owned, owned->owner < owner);

        for (uint32_t i = first; i < p->n_owned && p->owned[i].owner == owner; i++) {
                const struct partitions_conf_comment *c = p->owned[i].comment;
                const struct partitions_conf_member *m = c->alone ? NULL : only_member(p, c->line);

                if (m)
                        text_add(&p->t, "%s# 0x%016" PRIx64 ": %s\n", indent, m->guid.v, c->text);
                else
                        text_add(&p->t, "%s# %s\n", indent, c->text);
        }
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static void print_item(struct printer *p, const struct import_set *set, uint32_t i, const char *before, const char *after)
{
        uint32_t first_guid = set->n_items - set->n_guids;
        const char *comment = i < first_guid ? NULL : trailing_comment(p, set->guids[i - first_guid]);

        text_add(&p->t, "%s%s%s%s%s\n", before, set->items[i], after, comment ? " # " : "", comment ?: "");
}

static void print_group(struct printer *p, const struct import_set *set)
{
        text_add(&p->t, "  %s:\n", set->group);
        for (uint32_t i = 0; i < set->n_items; i++)
                print_item(p, set, i, "    - ", "");
}

static void print_groups(struct printer *p)
{
        bool any = false;

        for (uint32_t i = 0; i < p->im->n_partitions; i++)
                for (uint32_t k = 0; k < p->im->partitions[i].n_sets; k++) {
                        if (!p->im->partitions[i].sets[k].defines_group)
                                continue;
                        if (!any)
                                text_add(&p->t, "\ngroups:\n");
                        any = true;
                        print_group(p, &p->im->partitions[i].sets[k]);
                }
}

static void print_level(struct printer *p, const char *word, enum membership m)
{
        if (m != MEMBERSHIP_NONE)
                text_add(&p->t, "      %s: %s\n", word, membership_to_string(m));
}

static void print_set(struct printer *p, const struct import_set *set)
{
        char after[16];

        if (set->group) {
                print_level(p, set->group, set->membership);
                return;
        }
        (void) snprintf(after, sizeof(after), ": %s", membership_to_string(set->membership));
        for (uint32_t i = 0; i < set->n_items; i++)
                print_item(p, set, i, "      ", after);
}

static void print_members(struct printer *p, uint32_t partition)
{
        const struct import_partition *ip = &p->im->partitions[partition];
        size_t before;

        text_add(&p->t, "    members:");
        before = p->t.n;
        text_add(&p->t, "\n");
        print_level(p, "ALL", ip->all);
        print_level(p, "ALL_CAS", ip->types[NODE_CA]);
        print_level(p, "ALL_SWITCHES", ip->types[NODE_SWITCH]);
        print_level(p, "ALL_ROUTERS", ip->types[NODE_ROUTER]);
        print_level(p, "SELF", ip->self);
        for (uint32_t k = 0; k < ip->n_sets; k++)
                print_set(p, &ip->sets[k]);
        if (p->t.n == before + 1) {
                p->t.n = before;
                text_add(&p->t, " {}\n");
        }
}

static int print_partition(struct printer *p, uint32_t partition)
{
        const struct import_partition *ip = &p->im->partitions[partition];
        const char *ipoib;

        text_add(&p->t, "\n");
        print_comments(p, partition, "  ");
        text_add(&p->t, "  %s:\n    pkey: 0x%04x\n", ip->name, ip->source->base);
        if (ip->index0)
                text_add(&p->t, "    index0: true\n");
        if (ip->source->has_broadcast) {
                ipoib = policy_print_ipoib(p->im->arena, ip->source->ipoib);
                if (!ipoib)
                        return -ENOMEM;
                text_add(&p->t, "%s", ipoib);
        }
        print_members(p, partition);
        return 0;
}

static const char *print(struct printer *p)
{
        const struct partitions_conf *c = p->im->conf;

        text_add(&p->t, "# Generated from %s by pkeyctl import.\n", c->file);
        if (c->is_empty)
                text_add(&p->t, "# That file defines no partition: OpenSM makes every port a full member of the default one. So does this policy.\n");
        else if (c->discarded)
                text_add(&p->t, "# OpenSM drops that file and makes every port a full member of the default partition. So does this policy.\n");
        print_comments(p, TOP, "");
        text_add(&p->t, "\nversion: 1\n");
        print_groups(p);
        text_add(&p->t, "\npartitions:\n");
        for (uint32_t i = 0; i < p->im->n_partitions; i++)
                if (print_partition(p, i) < 0)
                        return NULL;
        return text_copy(p->im->arena, &p->t);
}

const char *import_print(struct import *im)
{
        struct printer p = { .im = im };
        const char *text = NULL;

        if (make_marks(&p) == 0 && assign_comments(&p) == 0)
                text = print(&p);
        text_done(&p.t);
        return text;
}
