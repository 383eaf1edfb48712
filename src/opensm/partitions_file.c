/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/partitions_file.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/selector.h"
#include "util/hash.h"
#include "util/scan.h"
#include "util/text.h"
#include "util/vector.h"

/* The head: a line for people, and a line for partitions_file_recognize. The checksum covers what is before HEAD_SUM and after the
 * second line. */
#define HEAD_PEOPLE "# Written by pkeyd. Do not edit: what is changed here is not in the policy and will be refused.\n"
#define HEAD_OWN    "# pkeyd "
#define HEAD_FABRIC " fabric "
#define HEAD_PHASE  " phase "
#define HEAD_SUM    " sum "
#define SUM_DIGITS  16

#define MAX_LABEL 128

/* ---- from tables to members ------------------------------------------------------------------------------------ */

/* One entry of one port, or both of a base. */
struct item {
        uint16_t base;
        struct partitions_file_member member;
};

/* The default partition comes first. */
DEFINE_COMPARE(compare_items, struct item, ORDER(a->base != P_KEY_DEFAULT_BASE, b->base != P_KEY_DEFAULT_BASE) ?:
               ORDER(a->base, b->base) ?: ORDER(a->member.port.v, b->member.port.v))

/* Sorts, and merges the items of one port and base. Returns how many are left. */
static size_t merge_items(struct item *items, size_t n)
{
        size_t kept = 0;

        SORT(items, n, compare_items);
        for (size_t i = 0; i < n; i++) {
                struct item *last = kept > 0 ? &items[kept - 1] : NULL;

                if (!last || compare_items(last, &items[i]) != 0)
                        items[kept++] = items[i];
                else if (last->member.membership != items[i].member.membership)
                        last->member.membership = MEMBERSHIP_BOTH;
        }
        return kept;
}

/* Name, index 0 and IPoIB of a base by the file that OpenSM had before. *ret_mixed: only some lines have index 0. */
static void describe_by_conf(const struct partitions_conf_partition *p, struct partitions_file_partition *ret,
                             const struct partitions_conf_partition **ret_mixed)
{
        bool all;

        ret->name = p->name;
        ret->ipoib = p->has_broadcast ? p->ipoib : NULL;
        ret->sl = p->sl;
        ret->index0 |= partitions_conf_find_index0(p, &all) != NULL;
        *ret_mixed = ret->index0 && !all ? p : NULL;
}

/* Which ports SELF or a node type selects is not known here: such a line counts for every port. */
static bool has_index0(const struct partitions_conf_partition *p, struct guid port)
{
        for (const struct partitions_conf_member *m = p->members; m; m = m->next)
                if (m->index0 && (m->who != PARTITIONS_CONF_GUID || m->guid.v == port.v))
                        return true;
        return false;
}

static void describe_partition(const struct policy *policy, const struct partitions_conf *conf, uint16_t base,
                               struct partitions_file_partition *ret, const struct partitions_conf_partition **ret_mixed)
{
        int i = policy ? policy_find_base(policy, base) : -1;

        *ret = (struct partitions_file_partition) { .base = base, .name = "" };
        *ret_mixed = NULL;
        if (i < 0 || !policy_owns(policy, base)) {
                for (uint32_t k = 0; conf && k < conf->n_partitions; k++)
                        if (conf->partitions[k].base == base)
                                describe_by_conf(&conf->partitions[k], ret, ret_mixed);
                return;
        }
        ret->name = policy->partitions[i].name;
        ret->index0 = policy->partitions[i].index0;
        ret->ipoib = policy->partitions[i].ipoib;
        ret->sl = ret->ipoib ? ret->ipoib->broadcast.sl : 0;
}

/* ---- index 0 of a lease -------------------------------------------------------------------------------------------- */

/* A base that a line of a lease puts at index 0 of a port. */
struct at_index0 {
        struct guid port;
        uint16_t base;
};

struct index0_list {
        struct at_index0 *items; /* ascending port */
        size_t n, allocated;
};

DEFINE_COMPARE(compare_index0, struct at_index0, ORDER(a->port.v, b->port.v))

static int add_rule(struct arena *a, const struct policy_rule *rule, uint16_t base, struct index0_list *list)
{
        if (!rule->index0)
                return 0;
        if (VECTOR_EXTEND(a, list->items, list->n, list->allocated, rule->n_selectors) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < rule->n_selectors; i++)
                if (rule->selectors[i]->kind == SELECTOR_GUID)
                        list->items[list->n++] = (struct at_index0) { rule->selectors[i]->guid, base };
        return 0;
}

static int list_index0(struct arena *a, const struct policy *policy, struct index0_list *ret)
{
        int r = 0;

        for (uint32_t i = 0; policy && r == 0 && i < policy->n_partitions; i++)
                for (uint32_t k = 0; r == 0 && k < policy->partitions[i].n_rules; k++)
                        r = add_rule(a, &policy->partitions[i].rules[k], policy->partitions[i].base, ret);
        SORT(ret->items, ret->n, compare_index0);
        return r;
}

/* Returns whether a lease decides about index 0 of the port, and otherwise than the partition does for its members. */
static bool inverts_index0(const struct index0_list *list, const struct partitions_file_partition *p, struct guid port)
{
        size_t i = LOWER_BOUND(item, list->items, list->n, item->port.v < port.v);

        return i < list->n && list->items[i].port.v == port.v && (list->items[i].base == p->base) != p->index0;
}

/* ---- partitions ------------------------------------------------------------------------------------------------------ */

static int group_items(struct arena *a, const struct policy *policy, const struct partitions_conf *conf, const struct item *items,
                       size_t n, struct partitions_file *ret)
{
        struct partitions_file_member *members = arena_new_array(a, struct partitions_file_member, n);
        const struct partitions_conf_partition *mixed = NULL;
        struct partitions_file_partition *partitions;
        struct index0_list index0 = {};
        uint32_t n_partitions = 0;

        for (size_t i = 0; i < n; i++)
                n_partitions += i == 0 || items[i].base != items[i - 1].base;
        partitions = arena_new_array(a, struct partitions_file_partition, n_partitions);
        if (!members || !partitions || list_index0(a, policy, &index0) < 0)
                return -ENOMEM;
        *ret = (struct partitions_file) { .partitions = partitions };
        for (size_t i = 0; i < n; i++) {
                members[i] = items[i].member;
                if (i == 0 || items[i].base != items[i - 1].base) {
                        describe_partition(policy, conf, items[i].base, &partitions[ret->n_partitions], &mixed);
                        partitions[ret->n_partitions++].members = &members[i];
                }
                members[i].inverts_index0 = mixed ? !has_index0(mixed, members[i].port) :
                                            inverts_index0(&index0, &partitions[ret->n_partitions - 1], members[i].port);
                partitions[ret->n_partitions - 1].n_members++;
        }
        return 0;
}

int partitions_file_from_ports(struct arena *a, const struct policy *policy, const struct partitions_conf *conf,
                               const struct partitions_file_port *ports, uint32_t n_ports, struct partitions_file *ret)
{
        _cleanup_free_ struct item *items = NULL;
        size_t n = 0, allocated = 0;

        for (uint32_t p = 0; p < n_ports; p++)
                for (uint32_t k = 0; k < ports[p].n_keys; k++) {
                        const struct p_key key = ports[p].keys[k];

                        if (p_key_is_used(key) &&
                            VECTOR_ADD(NULL, items, n, allocated, (struct item) {
                                    p_key_base(key), { ports[p].guid, p_key_membership(key), ports[p].label } }) < 0)
                                return -ENOMEM;
                }
        return group_items(a, policy, conf, items, merge_items(items, n), ret);
}

int partitions_file_collect(struct arena *a, const struct subnet *subnet, const struct desired_port *tables,
                            struct partitions_file_port **ret, uint32_t *ret_n)
{
        struct partitions_file_port *ports = arena_new_array(a, struct partitions_file_port, subnet->n_ports);
        uint32_t n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t p = 0; p < subnet->n_ports; p++) {
                if (subnet->ports[p].role != PORT_ENDPORT || subnet->ports[p].guid.v == 0)
                        continue;
                ports[n] = (struct partitions_file_port) {
                        subnet->ports[p].guid, subnet_port_label(a, subnet, p), tables[p].wanted, tables[p].n_wanted,
                };
                if (!ports[n++].label)
                        return -ENOMEM;
        }
        *ret = ports;
        *ret_n = n;
        return 0;
}

/* ---- rendering ------------------------------------------------------------------------------------------------- */

static void print_name(struct text *t, const struct partitions_file_partition *p)
{
        size_t n = 0;

        for (const char *c = p->name; *c && n < 31; c++) {
                if (isalnum((unsigned char) *c) || *c == '_' || *c == '-' || *c == '.') {
                        text_add_n(t, c, 1);
                        n++;
                }
        }
        if (n == 0)
                text_add(t, "p%04x", p->base);
}

static void print_parameters(struct text *t, const struct multicast_parameters *m)
{
        text_add(t, ",mtu=%u,rate=%u,sl=%u", m->mtu, m->rate, m->sl);
        for (unsigned scope = 1; scope <= MULTICAST_MAX_SCOPE; scope++)
                if (m->scopes >> scope & 1)
                        text_add(t, ",scope=%u", scope);
        text_add(t, ",Q_Key=0x%x,TClass=%u,FlowLabel=%u", m->q_key, m->tclass, m->flow_label);
}

/* Groups have a definition of their own: in that of the broadcast group they would have its scopes, too. Each is on a line of its
 * own, and never the last of the definition, because OpenSM continues after it. */
static bool print_groups(struct text *t, struct arena *a, const struct partitions_file_partition *p)
{
        const struct ipoib *ipoib = p->ipoib;

        if (!ipoib || ipoib->n_groups == 0)
                return true;
        print_name(t, p);
        text_add(t, "=0x%04x,mtu=%u,rate=%u,sl=%u:\n", p->base, ipoib->broadcast.mtu, ipoib->broadcast.rate, p->sl);
        for (uint32_t i = 0; i < ipoib->n_groups; i++) {
                const char *gid = mgid_text(a, &ipoib->groups[i].mgid);

                if (!gid)
                        return false;
                text_add(t, "    mgid=%s", gid);
                print_parameters(t, &ipoib->groups[i].parameters);
                text_add(t, "\n");
        }
        text_add(t, "    NONE;\n");
        return true;
}

static void print_label(struct text *t, const char *label)
{
        size_t n = strnlen(label, MAX_LABEL);

        text_add(t, " # ");
        for (size_t i = 0; i < n; i++)
                text_add_n(t, isprint((unsigned char) label[i]) ? &label[i] : "?", 1);
}

/* In a definition of the default partition with `indx0`, OpenSM would give index 0 to the limited entry of `both`, and move the
 * full one. */
static bool is_at_index0(const struct partitions_file_partition *p, const struct partitions_file_member *m)
{
        return p->base == P_KEY_DEFAULT_BASE ? m->membership != MEMBERSHIP_BOTH : p->index0 != m->inverts_index0;
}

static uint32_t count_members(const struct partitions_file_partition *p, bool at_index0)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->n_members; i++)
                n += is_at_index0(p, &p->members[i]) == at_index0;
        return n;
}

static void print_members(struct text *t, const struct partitions_file_partition *p, bool at_index0, bool self_full)
{
        uint32_t left = count_members(p, at_index0) + self_full;

        text_add(t, left > 0 ? ":\n" : ":\n    NONE;\n");
        for (uint32_t i = 0; i < p->n_members; i++) {
                const struct partitions_file_member *m = &p->members[i];

                if (is_at_index0(p, m) != at_index0)
                        continue;
                text_add(t, "    0x%016" PRIx64 "=%s%s", m->port.v, membership_to_string(m->membership), --left > 0 ? "," : ";");
                if (m->label)
                        print_label(t, m->label);
                text_add(t, "\n");
        }
        if (self_full)
                text_add(t, "    SELF=full;\n");
}

static void print_sl(struct text *t, const struct partitions_file_partition *p)
{
        if (p->sl > 0)
                text_add(t, ",sl=%u", p->sl);
}

static bool print_partition(struct text *t, struct arena *a, const struct partitions_file_partition *p, bool self_full)
{
        bool indx0 = p->base == P_KEY_DEFAULT_BASE || count_members(p, true) > 0; /* of the first definition; the second has none */

        if (p->n_members == 0)
                return true;
        text_add(t, "\n");
        print_name(t, p);
        text_add(t, "=0x%04x%s", p->base, indx0 ? ",indx0" : "");
        if (p->ipoib) {
                text_add(t, ",ipoib");
                print_parameters(t, &p->ipoib->broadcast);
        } else {
                print_sl(t, p);
        }
        print_members(t, p, indx0, self_full && p->base == P_KEY_DEFAULT_BASE);
        if (indx0 && count_members(p, false) > 0) {
                print_name(t, p);
                text_add(t, "=0x%04x", p->base);
                print_sl(t, p);
                print_members(t, p, false, false);
        }
        return print_groups(t, a, p);
}

static uint64_t sum(const char *head, size_t n_head, const char *body, size_t n_body)
{
        return hash_bytes(hash_bytes(HASH_START, head, n_head), body, n_body);
}

static void refuse_both(const struct partitions_file_partition *p, const struct partitions_file_member *m,
                        struct findings *findings)
{
        (void) findings_error(findings, FINDING_OPENSM_BOTH,
                              "add the line `allow_both_pkeys TRUE` to opensm.conf if it is not there, restart OpenSM, and name the file "
                              "(--opensm-config, or opensm.config in pkeyd.yaml)",
                              "0x%016" PRIx64
                              "%s%s%s should be both a full and a limited member of %s%s0x%04x%s, but OpenSM makes it a full member only",
                              m->port.v, m->label ? " (" : "", m->label ?: "", m->label ? ")" : "", p->name, *p->name ? " (" : "",
                              p->base, *p->name ? ")" : "");
}

/* Reports one member of each partition. */
static int check_partition(const struct partitions_file_partition *p, bool allow_both_pkeys, struct findings *findings)
{
        for (uint32_t i = 0; i < p->n_members; i++) {
                assert(p->members[i].membership != MEMBERSHIP_NONE && p->members[i].port.v != 0);
                if (p->members[i].membership == MEMBERSHIP_BOTH && !allow_both_pkeys) {
                        refuse_both(p, &p->members[i], findings);
                        return -EBADMSG;
                }
        }
        return 0;
}

static void print_head(struct text *t, const struct partitions_file *file, const struct text *body)
{
        if (file->released) {
                text_add(t, "# Generated from a policy by pkeyctl export opensm.\n");
                return;
        }
        text_add(t, HEAD_PEOPLE HEAD_OWN "generation %" PRIu64, file->generation);
        if (file->fabric)
                text_add(t, HEAD_FABRIC "%s", file->fabric);
        if (file->phase)
                text_add(t, HEAD_PHASE "%s", file->phase);
        text_add(t, HEAD_SUM "%016" PRIx64 "\n", sum(t->bytes, t->n, body->bytes, body->n));
}

int partitions_file_render(struct arena *a, const struct partitions_file *file, bool allow_both_pkeys,
                           struct findings *findings, const char **ret, size_t *ret_n)
{
        _cleanup_text_ struct text body = {}, whole = {};
        _cleanup_arena_ struct arena *scratch = arena_new();
        int r = 0, e;

        if (!scratch)
                return -ENOMEM;
        for (uint32_t i = 0; i < file->n_partitions; i++) {
                e = check_partition(&file->partitions[i], allow_both_pkeys, findings);
                r = r < 0 ? r : e;
        }
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < file->n_partitions; i++)
                if (!print_partition(&body, scratch, &file->partitions[i], file->self_full))
                        return -ENOMEM;
        if (body.failed)
                return -ENOMEM;
        print_head(&whole, file, &body);
        text_add_n(&whole, body.bytes, body.n);
        *ret_n = whole.n;
        *ret = text_copy(a, &whole);
        return *ret ? 0 : -ENOMEM;
}

/* ---- recognizing ----------------------------------------------------------------------------------------------- */

/* Takes the fabric, or that there is none, if it is this one. */
static bool take_fabric(struct scan *own, const char *fabric)
{
        size_t length = fabric ? strlen(fabric) : 0;

        if (!scan_word(own, HEAD_FABRIC))
                return !fabric;
        if (!fabric || (size_t) (own->end - own->p) <= length || memcmp(own->p, fabric, length) != 0 || own->p[length] != ' ')
                return false;
        own->p += length;
        return true;
}

enum partitions_file_owner partitions_file_recognize(const char *bytes, size_t n, const char *fabric, bool *ret_is_phase)
{
        const ptrdiff_t digits = strlen(HEAD_SUM) + SUM_DIGITS;
        struct scan rest = { bytes, bytes + n }, people, own, tail;
        bool is_phase, is_ours, is_people = scan_word(&(struct scan) { bytes, bytes + n }, HEAD_PEOPLE);
        uint64_t generation, wanted;

        if (ret_is_phase)
                *ret_is_phase = false;
        /* the second line alone shows that pkeyd wrote it: the first may be the line that was edited */
        if (!scan_line(&rest, &people) || !scan_line(&rest, &own) || !scan_word(&own, HEAD_OWN "generation ") ||
            own.p == own.end || !isdigit((unsigned char) *own.p))
                return PARTITIONS_FILE_FOREIGN;
        if (!is_people || own.end == bytes + n || !scan_number(&own, 10, UINT64_MAX, &generation) || own.end - own.p < digits)
                return PARTITIONS_FILE_EDITED;
        tail = (struct scan) { own.end - digits, own.end };
        is_ours = take_fabric(&own, fabric);
        is_phase = scan_word(&own, HEAD_PHASE);
        if (!scan_word(&tail, HEAD_SUM) || !scan_number(&tail, 16, UINT64_MAX, &wanted) || tail.p != tail.end ||
            wanted != sum(bytes, (size_t) (own.end - digits - bytes), rest.p, (size_t) (rest.end - rest.p)))
                return PARTITIONS_FILE_EDITED;
        if (!is_ours)
                return PARTITIONS_FILE_OTHER;
        if (ret_is_phase)
                *ret_is_phase = is_phase;
        return PARTITIONS_FILE_INTACT;
}
