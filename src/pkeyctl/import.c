/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/import.h"

#include <errno.h>
#include <string.h>

#include "policy/policy.h"

/* One partition alone may stand at index 0. */
static void settle_index0(struct import *im)
{
        const struct import_partition *first = NULL;

        for (uint32_t i = 0; i < im->n_partitions; i++) {
                struct import_partition *p = &im->partitions[i];
                struct place place = { .where = p->source->where };

                if (!p->index0)
                        continue;
                if (!first) {
                        first = p;
                        continue;
                }
                p->index0 = false;
                (void) report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_INDEX0, &place,
                                  "indx0 is said of %s already: a policy has one partition at index 0 of its members' tables",
                                  first->name);
        }
}

/* What a policy has no words for. */
static void tell_losses(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions; i++) {
                const struct partitions_conf_partition *p = im->partitions[i].source;
                struct place place = { .where = p->where };

                if (p->ipoib && !p->has_broadcast)
                        (void) report_add(&im->report, FINDING_WARNING, FINDING_IMPORT_MULTICAST, &place,
                                          "the multicast groups of %s are left out: in a policy they belong to `ipoib`, which "
                                          "this partition has not", im->partitions[i].name);
        }
}

/* `both` is what opensm.conf makes of it. */
static void tell_both(struct import *im)
{
        for (uint32_t i = 0; i < im->n_partitions && !im->allow_both_pkeys; i++)
                for (const struct partitions_conf_member *m = im->partitions[i].source->members; m; m = m->next) {
                        struct place place = { .where = m->where };

                        if (m->membership != MEMBERSHIP_BOTH)
                                continue;
                        report_hint(&im->report, report_add(&im->report, FINDING_WARNING, FINDING_OPENSM_BOTH, &place,
                                    "OpenSM takes both for full, unless opensm.conf says allow_both_pkeys TRUE"),
                                    "if yours does, name it with --opensm-config FILE");
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
        if (r == 0)
                r = import_name_partitions(im);
        for (uint32_t i = 0; i < im->n_partitions && r == 0; i++)
                r = import_name_sets(im, &im->partitions[i]);
        if (r == 0)
                r = import_find_groups(im);
        if (r < 0)
                return r;
        settle_index0(im);
        tell_losses(im);
        tell_both(im);
        *ret = import_print(im);
        return *ret ? import_check(im, *ret) : -ENOMEM;
}

int import_convert(struct arena *a, const struct partitions_conf *conf, const struct subnet *subnet, bool allow_both_pkeys,
                   struct findings *findings, const char **ret)
{
        struct import im = {
                .arena = a, .conf = conf, .subnet = subnet, .allow_both_pkeys = allow_both_pkeys,
                .n_partitions = conf->n_partitions,
        };
        const char *yaml = NULL;
        int r, finish;

        im.partitions = arena_new_array(a, struct import_partition, conf->n_partitions);
        if (!im.partitions)
                return -ENOMEM;
        report_init(&im.report, findings);
        r = convert(&im, &yaml);
        finish = report_finish(&im.report);
        findings_sort(findings);
        if (r == 0)
                r = finish;
        if (r == 0)
                *ret = yaml;
        return r;
}
