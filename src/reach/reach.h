/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * reach/: which endports can talk to which, on the whole fabric, and what a change of tables changes in it.
 *
 * Tables are about one port; an admin wants to know about pairs. There are 10^9 pairs on a large fabric, but few kinds of ports: a
 * *class* is all endports whose tables give the same memberships, before and after. Two classes either can talk or cannot, with all
 * their ports. So pairs of classes are compared, and only those of which one class changes.
 *
 * The result is for people: lines of endports that lose or gain the same others through the same partitions. Classes that lose or
 * gain the same others are put together, and each pair of endports is in one line only.
 *
 * Invariants: a pair of endports is in the result if and only if it can talk before and not after, or after and not before. Pairs
 * with an endport whose table, or whose enforcing leaf port's table, is not known are not judged.
 *
 * This folder does not know policies, or how tables come about; verify/explain.h defines "can talk".
 */

#include "plan/plan.h"
#include "subnet/observed.h"

/* A P_Key table at one time. */
struct reach_table {
        const struct p_key *entries; /* NULL: not known */
        uint16_t capacity;
        bool enforces;               /* of a leaf port: it drops packets of partitions that it does not hold */
};

/* Endports with which others can no longer talk, or now can. */
struct reach_others {
        bool gained;
        const uint16_t *bases;       /* ascending: those through which they could talk before, or can talk now */
        uint32_t n_bases;
        const uint32_t *ports;       /* ascending */
        uint32_t n_ports;
};

/* What changes for some endports, in the same way for each. If the others include them, it changes between each two of them. */
struct reach_line {
        const uint32_t *ports;       /* ascending */
        uint32_t n_ports;
        const struct reach_others *others; /* the lost ones first */
        uint32_t n_others;
};

struct reach_changes {
        const struct reach_line *lines; /* ascending first port */
        uint32_t n_lines;
        uint64_t n_lost, n_gained;   /* pairs of endports */
        uint32_t n_unknown;          /* endports that are not judged */
        bool truncated;              /* lines are missing, because of REACH_MAX_OTHERS; n_lost and n_gained include their pairs */
        bool too_many;               /* too many classes: nothing was judged */
};

/* Limits, for fabrics with thousands of different tables that change: the ports in all lists of others together, and the
 * comparisons of two classes in a base. */
#define REACH_MAX_OTHERS      ((size_t) 8 << 20)
#define REACH_MAX_COMPARISONS ((uint64_t) 20 << 20)

/* The tables as they were read, by port of the subnet. Lives in the arena, and borrows the entries. NULL: out of memory. */
struct reach_table *reach_observed(struct arena *a, const struct observed *observed);

/* Compares two arrays of tables, by port of the subnet. Returns 0 or -ENOMEM; *ret lives in the arena. */
int reach_compare(struct arena *a, const struct subnet *s, const struct reach_table *before, const struct reach_table *after,
                  struct reach_changes *ret);

/* What a plan changes, if all of it is carried out. */
int reach_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed, struct reach_changes *ret);
