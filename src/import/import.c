/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/import.h"

#include <errno.h>

#include "policy/policy.h"
#include "util/vector.h"

#define MAX_UNKNOWN 8 /* unknown GUIDs that are reported one by one */

/* The last line of the partition with indx0; NULL: there is none. */
static const struct partitions_conf_member *find_last_index0(const struct import_partition *p)
{
        const struct partitions_conf_member *last = NULL;

        for (const struct partitions_conf_member *m = p->source->members; m; m = m->next)
                if (m->index0)
                        last = m;
        return last;
}

static bool is_later(const struct partitions_conf_member *a, const struct partitions_conf_member *b)
{
        return (ORDER(a->where.line, b->where.line) ?: ORDER(a->where.column, b->where.column)) > 0;
}

/* A policy has one partition at index 0, which is the default partition unless another has index0. If several have indx0, OpenSM
 * puts the one with the last line at index 0 of the ports that they share. */
static void keep_one_index0(struct import *im)
{
        const struct partitions_conf_member *last = NULL, *line;
        const struct import_partition *kept = NULL;

        for (uint32_t i = 0; i < im->n_partitions; i++) {
                const struct import_partition *p = &im->partitions[i];

                line = p->index0 || p->source->base == P_KEY_DEFAULT_BASE ? find_last_index0(p) : NULL;
                if (!line || (last && is_later(last, line)))
                        continue;
                last = line;
                kept = p;
        }
        for (uint32_t i = 0; i < im->n_partitions; i++) {
                struct import_partition *p = &im->partitions[i];

                if (p->index0 && p != kept)
                        report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_INDEX0, &(struct place) { p->source->where },
                                   "indx0 is left out, because the partition %s has it in a later line: a policy puts only one "
                                   "partition at index 0 of its members' tables", kept->name);
                p->index0 = p->index0 && p == kept && p->source->base != P_KEY_DEFAULT_BASE;
        }
}

/* Reports a default partition of which the SM's port is only a limited member. If it is known which port that is, import_check()
 * does that. */
static void report_default(struct import *im)
{
        const struct import_partition *p = &im->partitions[0];
        struct place place = { .where = p->source->where };

        for (const struct partitions_conf_member *m = p->source->members; m; m = m->next)
                if (m->where.line > 0)
                        place.where = m->where;
        if (!import_knows_self(im) &&
            (p->self == MEMBERSHIP_LIMITED || (p->self == MEMBERSHIP_NONE && p->all == MEMBERSHIP_LIMITED)))
                report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_DIFFERENT, &place,
                           "OpenSM makes its own port a limited member of the default partition; by a policy that port "
                           "is always a full member, because otherwise no host could reach the subnet administrator");
}

/* OpenSM uses the later one of SELF and a line for the same port. For a policy SELF is as specific as a GUID, and more specific
 * than the name of a host. */
static void report_self_of(struct import *im, const struct import_partition *p)
{
        for (uint32_t i = 0; i < p->n_ports; i++) {
                const struct import_port *port = &p->ports[i];

                if (port->membership == p->self || (!port->stays_guid && port->order < p->self_order))
                        continue;
                report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_SELF, &(struct place) { port->where },
                           port->stays_guid ? "this line and SELF give different memberships; if its port is that of the SM, OpenSM "
                                              "uses the later one, but pkeyd refuses the policy" :
                                              "this line comes after SELF, with another membership; if its port is that of the SM, "
                                              "OpenSM uses this line, but the policy uses SELF");
                return;
        }
}

/* If it is not known which port SELF is, another line may name the same port. In the default partition SELF decides in any case. */
static void report_self(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions && !import_knows_self(im); i++)
                if (im->partitions[i].self != MEMBERSHIP_NONE && im->partitions[i].source->base != P_KEY_DEFAULT_BASE)
                        report_self_of(im, &im->partitions[i]);
}

/* Drops IP groups that do not fit the broadcast group of the partition. */
static void drop_unfit_groups(struct import *im, const struct partitions_conf_partition *p)
{
        struct multicast_group *groups = (struct multicast_group *) (uintptr_t) p->ipoib->groups;
        uint32_t kept = 0;

        for (uint32_t i = 0; i < p->ipoib->n_groups; i++) {
                if (multicast_fits(&p->ipoib->broadcast, &groups[i])) {
                        groups[kept++] = groups[i];
                        continue;
                }
                report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_MULTICAST, &(struct place) { p->where },
                           "the group %s is left out: it is an IP group whose mtu and rate are not those of the "
                           "broadcast group, which another definition of the partition created",
                           mgid_text(im->arena, &groups[i].mgid) ?: "?");
        }
        p->ipoib->n_groups = kept;
}

/* Leaves out, with a warning, what a policy cannot express without `ipoib`, and groups that do not fit it. import_print() prints no
 * groups of a partition without a broadcast group. */
static void drop_parameters(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions; i++) {
                const struct partitions_conf_partition *p = im->partitions[i].source;

                if (p->sl > 0 && !p->has_broadcast)
                        report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_MULTICAST, &(struct place) { p->where },
                                   "sl=%u of %s is left out: in a policy it belongs to `ipoib`, which this partition does not have",
                                   p->sl, im->partitions[i].name);
                if (p->ipoib && p->has_broadcast)
                        drop_unfit_groups(im, p);
                else if (p->ipoib)
                        report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_MULTICAST, &(struct place) { p->where },
                                   "the multicast groups of %s are left out: in a policy they belong to `ipoib`, which "
                                   "this partition does not have",
                                   im->partitions[i].name);
        }
}

static int compare_guids(const void *left, const void *right)
{
        const struct import_port *a = *(const struct import_port *const *) left;
        const struct import_port *b = *(const struct import_port *const *) right;

        return ORDER(a->guid.v, b->guid.v) ?: ORDER(a->where.line, b->where.line) ?:
               ORDER(a->where.column, b->where.column);
}

static void report_unknown_guids(struct import *im, const struct import_port **ports, uint32_t n)
{
        uint32_t different = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (i > 0 && ports[i]->guid.v == ports[i - 1]->guid.v)
                        continue;
                if (different++ < MAX_UNKNOWN)
                        report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_GUID, &(struct place) { ports[i]->where },
                                   "no port of this fabric has the GUID 0x%016" PRIx64
                                   "; the policy keeps it, in case the port is added later",
                                   ports[i]->guid.v);
        }
        if (different > MAX_UNKNOWN)
                report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_GUID, NULL,
                           "%u more GUIDs belong to no port of this fabric; the policy keeps them, too",
                           different - MAX_UNKNOWN);
}

/* Reports each unknown GUID once, and only a few of them: half a cluster may be down. */
static int report_unknown(struct import *im)
{
        const struct import_port **unknown = NULL;
        uint32_t n = 0, allocated = 0;
        int r = 0;

        for (uint32_t i = 0; i < im->n_partitions && im->subnet; i++)
                for (uint32_t k = 0; r == 0 && k < im->partitions[i].n_ports; k++)
                        if (im->partitions[i].ports[k].port == SUBNET_NONE && !im->partitions[i].ports[k].self)
                                r = VECTOR_ADD(im->arena, unknown, n, allocated, &im->partitions[i].ports[k]);
        SORT(unknown, n, compare_guids);
        report_unknown_guids(im, unknown, n);
        return r;
}

/* Warns once that the meaning of `both` depends on opensm.conf. */
static void report_both(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions && !im->allow_both_pkeys; i++)
                for (const struct partitions_conf_member *m = im->partitions[i].source->members; m; m = m->next) {
                        if (m->membership != MEMBERSHIP_BOTH)
                                continue;
                        report_add(&im->report, FINDING_WARNING, FINDING_OPENSM_BOTH, &(struct place) { m->where },
                                   "OpenSM reads both as full, unless opensm.conf has allow_both_pkeys TRUE");
                        report_hint(&im->report, "if yours has it, name the file with --opensm-config FILE");
                        return;
                }
}

static int convert(struct import *im, const char **ret)
{
        int r = 0;

        for (uint32_t i = 0; i < im->n_partitions && r == 0; i++) {
                im->partitions[i].source = &im->conf->partitions[i];
                r = import_reduce(im, &im->partitions[i]);
        }
        r = r ?: import_name_partitions(im);
        for (uint32_t i = 0; i < im->n_partitions && r == 0; i++)
                r = import_name_sets(im, &im->partitions[i]);
        r = r ?: import_find_groups(im) ?: report_unknown(im);
        if (r < 0)
                return r;
        keep_one_index0(im);
        report_default(im);
        report_self(im);
        drop_parameters(im);
        report_both(im);
        *ret = import_print(im);
        return *ret ? import_check(im, *ret) : -ENOMEM;
}

int import_convert(struct arena *a, const struct partitions_conf *conf, const struct subnet *subnet, const struct known *known,
                   bool allow_both_pkeys, struct findings *findings, const char **ret)
{
        struct import im = {
                .arena = a, .conf = conf, .subnet = subnet, .allow_both_pkeys = allow_both_pkeys,
                .n_partitions = conf->n_partitions,
        };
        const char *yaml = NULL;
        struct subnet *extended;
        int r, finish;

        im.partitions = arena_new_array(a, struct import_partition, conf->n_partitions);
        if (!im.partitions)
                return -ENOMEM;
        if (subnet && known) {
                r = known_extend(a, known, subnet, &extended);
                if (r < 0)
                        return r;
                im.subnet = extended;
        }
        report_init(&im.report, findings);
        r = convert(&im, &yaml);
        finish = report_finish(&im.report);
        findings_sort(findings);
        r = r ?: finish;
        if (r == 0)
                *ret = yaml;
        return r;
}
