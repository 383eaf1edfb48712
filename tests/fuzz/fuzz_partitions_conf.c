/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as partitions.conf: findings and no model, or a model that grants nothing out of range, which rendered and read
 * again is the same, without one finding; and never pkeyd's own file by accident. A model that is the same for every build of
 * OpenSM is that of each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/partitions_find.h"
#include "opensm/opensm_conf.h"
#include "opensm/partitions_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static struct partitions_conf *parse(struct arena *a, enum opensm_numbers numbers, const char *bytes, size_t n,
                                     size_t *ret_findings)
{
        struct partitions_conf *conf = NULL;
        struct findings findings = { .arena = a };
        int r;

        r = partitions_conf_parse(a, numbers, "partitions.conf", bytes, n, &findings, &conf);
        require(r == 0 || r == -EBADMSG);
        require((r == 0) == (conf != NULL) && (r == 0) != findings_refuse(&findings));
        for (size_t i = 0; i < findings.n; i++)
                require(finding_format(a, &findings.items[i]) != NULL);
        *ret_findings = findings.n;
        findings_done(&findings);
        return conf;
}

/* Three ports, of which one is a switch's; the SM is at the first. */
static struct subnet *build_subnet(struct arena *a)
{
        struct subnet_builder *b;
        struct subnet *subnet;

        require(subnet_builder_new(a, &b) == 0);
        for (unsigned i = 1; i <= 3; i++) {
                struct subnet_node node = { .guid = { i }, .type = i == 3 ? NODE_SWITCH : NODE_CA, .num_ports = 1 };
                struct subnet_port port = { .number = i == 3 ? 0 : 1, .guid = { 0x0002C90300800001 + 16 * (i - 1) } };

                require(subnet_builder_add_node(b, &node, "node", 4) == 0);
                require(subnet_builder_add_port(b, node.guid, &port) == 0);
        }
        require(subnet_builder_finish(b, (struct guid) { 1 }, 1, (struct guid) { 1 }, 1, &subnet) == 0);
        return subnet;
}

static uint8_t *apply(struct arena *a, const struct partitions_conf_partition *p, const struct subnet *subnet)
{
        uint8_t *levels;

        require(p->base > 0 && p->base <= P_KEY_BASE_MASK);
        require(partitions_conf_apply(a, p, subnet, true, &levels) == 0);
        for (uint32_t port = 0; port < subnet->n_ports; port++)
                require(levels[port] <= MEMBERSHIP_BOTH);
        return levels;
}

/* Groups that OpenSM made from the flags of another definition cannot be written in one. */
static struct ipoib *fitting(struct arena *a, const struct partitions_conf_partition *p)
{
        struct ipoib *ipoib = arena_new_object(a, struct ipoib);
        struct multicast_group *groups;

        if (!p->ipoib)
                return NULL;
        groups = arena_new_array(a, struct multicast_group, p->ipoib->n_groups);
        ipoib->broadcast = p->ipoib->broadcast;
        ipoib->groups = groups;
        for (uint32_t i = 0; i < p->ipoib->n_groups; i++)
                if (multicast_fits(&ipoib->broadcast, &p->ipoib->groups[i]))
                        groups[ipoib->n_groups++] = p->ipoib->groups[i];
        return ipoib;
}

static const char *render(struct arena *a, const struct partitions_conf *conf, const struct subnet *subnet, size_t *ret_n)
{
        struct partitions_file_partition *partitions = arena_new_array(a, struct partitions_file_partition, conf->n_partitions);
        struct partitions_file file = { .partitions = partitions, .n_partitions = conf->n_partitions };
        struct findings findings = { .arena = a };
        const char *bytes = NULL;

        for (uint32_t i = 0; i < conf->n_partitions; i++) {
                const struct partitions_conf_partition *p = &conf->partitions[i];
                struct partitions_file_member *members = arena_new_array(a, struct partitions_file_member, subnet->n_ports);
                const uint8_t *levels = apply(a, p, subnet);

                partitions[i] = (struct partitions_file_partition) { .name = p->name, .base = p->base, .ipoib = fitting(a, p),
                                                                     .members = members };
                for (uint32_t port = 0; port < subnet->n_ports; port++)
                        if (levels[port] != MEMBERSHIP_NONE)
                                members[partitions[i].n_members++] = (struct partitions_file_member) {
                                        subnet->ports[port].guid, (enum membership) levels[port], p->name };
        }
        require(partitions_file_render(a, &file, true, &findings, &bytes, ret_n) == 0);
        findings_done(&findings);
        return bytes;
}

static void compare(struct arena *a, const struct partitions_conf *x, const struct partitions_conf *y,
                    const struct subnet *subnet)
{
        for (uint32_t i = 0; i < x->n_partitions; i++) {
                const struct partitions_conf_partition *p = find_partition(y, x->partitions[i].base);
                const uint8_t *levels = apply(a, &x->partitions[i], subnet);
                bool any = false;

                for (uint32_t port = 0; port < subnet->n_ports; port++)
                        any |= levels[port] != MEMBERSHIP_NONE;
                require(p || !any);
                if (p)
                        require(memcmp(apply(a, p, subnet), levels, subnet->n_ports) == 0);
        }
}

/* What is accepted without knowing how OpenSM was built does not depend on that. */
static void compare_builds(struct arena *a, const char *bytes, size_t n, const struct partitions_conf *conf,
                           const struct subnet *subnet)
{
        static const enum opensm_numbers builds[] = { OPENSM_NUMBERS_C17, OPENSM_NUMBERS_C23 };

        for (size_t i = 0; i < ELEMENTS(builds); i++) {
                size_t n_findings;
                const struct partitions_conf *other = parse(a, builds[i], bytes, n, &n_findings);

                require(other && other->discarded == conf->discarded && other->n_partitions == conf->n_partitions);
                compare(a, conf, other, subnet);
                compare(a, other, conf, subnet);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        const struct partitions_conf *conf, *again;
        struct opensm_conf opensm;
        struct findings findings = { .arena = a };
        const char *bytes;
        size_t size, n_findings;

        require(a != NULL);
        require(partitions_file_recognize((const char *) data, n, NULL, NULL) != PARTITIONS_FILE_INTACT);
        require(opensm_conf_parse(a, "opensm.conf", (const char *) data, n, &findings, &opensm) == 0);
        findings_done(&findings);
        (void) opensm_numbers_of_program(data, n);
        conf = parse(a, OPENSM_NUMBERS_UNKNOWN, (const char *) data, n, &n_findings);
        if (conf) {
                const struct subnet *subnet = build_subnet(a);

                compare_builds(a, (const char *) data, n, conf, subnet);
                bytes = render(a, conf, subnet, &size);
                require(partitions_file_recognize(bytes, size, NULL, NULL) == PARTITIONS_FILE_INTACT);
                again = parse(a, OPENSM_NUMBERS_UNKNOWN, bytes, size, &n_findings);
                require(again && !again->discarded && n_findings == 0);
                compare(a, conf, again, subnet);
        }
        arena_free(a);
        return 0;
}
