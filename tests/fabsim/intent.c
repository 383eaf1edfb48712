/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random policies, their text, and an oracle for their meaning that is independent of pkeyd. Lines of equal specificity never
 * match the same port here; the tests of the policy cover contradictions.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

/* --- making ---------------------------------------------------------------------------------------------------------- */

static enum membership random_membership(struct sim *s, bool may_be_none)
{
        unsigned r = prng_below(&s->rng, 10);

        if (r < 4)
                return MEMBERSHIP_FULL;
        if (r < 7)
                return MEMBERSHIP_LIMITED;
        return r < 9 && may_be_none ? MEMBERSHIP_NONE : MEMBERSHIP_BOTH;
}

static bool has_rule(const struct intent_partition *p, const struct rule *r)
{
        for (unsigned i = 0; i < p->n_rules; i++) {
                const struct rule *o = &p->rules[i];

                if (o->kind == r->kind && o->x == r->x && o->y == r->y)
                        return true;
                /* hosts and leaves are equally specific and could meet; so could GUID and SELF */
                if ((o->kind == RULE_HOST && r->kind == RULE_LEAF) || (o->kind == RULE_LEAF && r->kind == RULE_HOST))
                        return true;
                if ((o->kind == RULE_GUID && r->kind == RULE_SELF) || (o->kind == RULE_SELF && r->kind == RULE_GUID))
                        return true;
        }
        return false;
}

static unsigned random_node(struct sim *s, enum node_type type)
{
        unsigned n;

        do
                n = prng_below(&s->rng, s->n_nodes);
        while (s->f.nodes[n].type != type);
        return n;
}

static struct rule random_rule(struct sim *s, bool is_default)
{
        struct rule r = { .kind = prng_below(&s->rng, RULE_SELF + 1) };
        unsigned node = random_node(s, NODE_CA);

        r.membership = random_membership(s, !is_default);
        switch (r.kind) {
        case RULE_ALL:
        case RULE_CAS:
        case RULE_SWITCHES:
        case RULE_SELF:
                break;
        case RULE_GROUP:
                r.x = prng_below(&s->rng, 2);
                break;
        case RULE_HOST:
                r.x = s->host_of[node];
                break;
        case RULE_DEVICE:
                r.x = s->host_of[node];
                r.y = s->device_of[node];
                break;
        case RULE_LEAF:
                r.x = random_node(s, NODE_SWITCH);
                break;
        case RULE_SWITCH_PORT:
                r.x = random_node(s, NODE_SWITCH);
                r.y = prng_between(&s->rng, 1, s->f.nodes[r.x].num_ports);
                break;
        case RULE_GUID:
                r.x = node;
                r.y = prng_between(&s->rng, 1, s->f.nodes[node].num_ports);
                r.guid = s->f.nodes[r.x].ports[r.y].guid;
                break;
        }
        return r;
}

static void make_partition(struct sim *s, struct intent_partition *p, unsigned n)
{
        unsigned n_rules = prng_between(&s->rng, n == 0 ? 0 : 1, 5);
        struct rule r;

        while (n_rules-- > 0) {
                r = random_rule(s, n == 0);
                if (!has_rule(p, &r))
                        p->rules[p->n_rules++] = r;
        }
}

/* Such members cannot be at index 0 if OpenSM has a file. */
static bool has_both(const struct intent_partition *p)
{
        for (unsigned i = 0; i < p->n_rules; i++)
                if (p->rules[i].membership == MEMBERSHIP_BOTH)
                        return true;
        return false;
}

static void make_settings(struct sim *s, struct settings *ret)
{
        static const unsigned windows[] = { 1, 4, 16, 128 }, holds[] = { 0, 10, SIM_MAX_HOLD / USEC_PER_SEC };

        settings_default(ret);
        ret->unmanaged = prng_permille(&s->rng, 250) ? UNMANAGED_KEEP : UNMANAGED_REMOVE;
        ret->enforcement = prng_permille(&s->rng, 700) ? ENFORCEMENT_BOTH : prng_below(&s->rng, ENFORCEMENT_OFF + 1);
        ret->enforcement_overflow = prng_permille(&s->rng, 500) ? OVERFLOW_DISABLE : OVERFLOW_REFUSE;
        ret->repair_index0 = prng_permille(&s->rng, 250);
        ret->mode = prng_permille(&s->rng, 20) ? MODE_AUDIT : MODE_ENFORCE;
        ret->writer = s->writer;
        ret->role = s->role;
        ret->window = windows[prng_below(&s->rng, ELEMENTS(windows))];
        ret->absent_hold = holds[prng_below(&s->rng, ELEMENTS(holds))] * USEC_PER_SEC;
}

/* A small change of an older one, or one all new; without its pools. */
static void make_partitions(struct sim *s, struct intent *ret)
{
        unsigned i, k;
        uint16_t base;
        bool taken;

        if (s->n_intents > 0 && prng_permille(&s->rng, 500)) {
                *ret = s->intents[prng_below(&s->rng, s->n_intents)];
                i = prng_below(&s->rng, ret->n_partitions);
                ret->partitions[i].n_rules = 0;
                make_partition(s, &ret->partitions[i], i);
                ret->is_broken = false;
                return;
        }
        memset(ret, 0, sizeof(*ret));
        make_settings(s, &ret->settings);
        ret->has_owns = prng_permille(&s->rng, 250);
        ret->partitions[0].base = P_KEY_DEFAULT_BASE;
        make_partition(s, &ret->partitions[0], 0);
        ret->n_partitions = prng_between(&s->rng, 1, SIM_MAX_PARTITIONS);
        for (i = 1; i < ret->n_partitions; i++) {
                do {
                        base = sim_bases[prng_between(&s->rng, 1, 9)];
                        taken = false;
                        for (k = 0; k < i; k++)
                                taken |= ret->partitions[k].base == base;
                } while (taken);
                ret->partitions[i].base = base;
                make_partition(s, &ret->partitions[i], i);
        }
        if (ret->n_partitions > 1 && prng_permille(&s->rng, 150))
                ret->partitions[1].index0 = !((s->writer == WRITER_OPENSM || s->mirrors) && has_both(&ret->partitions[1]));
        ret->is_broken = s->n_intents > 0 && prng_permille(&s->rng, 50);
        ret->is_strict = prng_permille(&s->rng, 100);
}

static void make_pool(struct sim *s, struct intent_pool *ret)
{
        static const unsigned longest[] = { 0, 0, 20, 45 }, rests[] = { 0, 0, 5, 30 };
        struct prng *r = &s->lease_rng;
        unsigned kind = prng_below(r, 20);

        ret->ports.kind = kind < 17 ? RULE_CAS : kind < 19 ? RULE_GROUP : RULE_HOST;
        ret->ports.x = prng_below(r, 2);
        ret->is_limited = prng_permille(r, 200);
        ret->longest = longest[prng_below(r, ELEMENTS(longest))];
        ret->rest = rests[prng_below(r, ELEMENTS(rests))];
        ret->index0 = prng_permille(r, 500);
}

/* Their P_Keys are those that no policy has, and that other writers know, too. Most policies of a history have the same pools. */
static void make_pools(struct sim *s, struct intent *ret)
{
        struct prng *r = &s->lease_rng;

        if (s->n_intents > 0 && prng_permille(r, 850)) {
                memcpy(ret->pools, s->intents[0].pools, sizeof(ret->pools));
                ret->n_pools = s->intents[0].n_pools;
                return;
        }
        memset(ret->pools, 0, sizeof(ret->pools));
        ret->n_pools = s->n_intents > 0 ? prng_below(r, SIM_MAX_POOLS + 1) : prng_between(r, 1, SIM_MAX_POOLS);
        for (unsigned i = 0; i < ret->n_pools; i++) {
                ret->pools[i].first = (uint16_t) (0x0f01 + 2 * i);
                ret->pools[i].last = (uint16_t) (ret->pools[i].first + prng_below(r, 2) + 2 * (ret->n_pools == 1));
                make_pool(s, &ret->pools[i]);
        }
}

void intent_make(struct sim *s, struct intent *ret)
{
        make_partitions(s, ret);
        if (sim_has_leases(s))
                make_pools(s, ret);
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

struct printer {
        char *at;
        size_t left;
};

static void __attribute__((format(printf, 2, 3))) put(struct printer *t, const char *format, ...)
{
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(t->at, t->left, format, ap);
        va_end(ap);
        if (n > 0 && (size_t) n < t->left) {
                t->at += n;
                t->left -= (size_t) n;
        }
}

static void put_selector(struct printer *t, const struct rule *r)
{
        switch (r->kind) {
        case RULE_ALL:
                put(t, "ALL");
                break;
        case RULE_CAS:
                put(t, "ALL_CAS");
                break;
        case RULE_SWITCHES:
                put(t, "ALL_SWITCHES");
                break;
        case RULE_GROUP:
                put(t, "%s", r->x ? "odd" : "even");
                break;
        case RULE_HOST:
                put(t, "node%03u", r->x);
                break;
        case RULE_LEAF:
                put(t, "\"@leaf%02u\"", r->x);
                break;
        case RULE_DEVICE:
                put(t, "node%03u/mlx5_%u", r->x, r->y);
                break;
        case RULE_SWITCH_PORT:
                put(t, "\"@leaf%02u/%u\"", r->x, r->y);
                break;
        case RULE_GUID:
                put(t, "0x%016" PRIx64, r->guid.v);
                break;
        case RULE_SELF:
                put(t, "SELF");
                break;
        }
}

static void put_rule(struct printer *t, const struct rule *r)
{
        put(t, "      ");
        put_selector(t, r);
        put(t, ": %s\n", membership_to_string(r->membership));
}

static void put_pool(struct printer *t, const struct intent_pool *p, unsigned n)
{
        put(t, "  pool%u:\n    pkeys: 0x%04x-0x%04x\n    ports: ", n, p->first, p->last);
        put_selector(t, &p->ports);
        put(t, "\n    membership: %s\n    rest: %us\n    index0: %s\n    lease: ", p->is_limited ? "limited" : "full", p->rest,
            p->index0 ? "true" : "false");
        if (p->longest > 0)
                put(t, "%us\n", p->longest);
        else
                put(t, "unlimited\n");
}

static void put_owns(struct printer *t, const struct intent *it)
{
        put(t, "owns: [0x7fff, 0x0001-0x00ff");
        for (unsigned i = 0; i < it->n_pools; i++)
                put(t, ", 0x%04x-0x%04x", it->pools[i].first, it->pools[i].last);
        put(t, "]\n");
}

static bool uses_groups(const struct intent *it)
{
        for (unsigned i = 0; i < it->n_pools; i++)
                if (it->pools[i].ports.kind == RULE_GROUP)
                        return true;
        for (unsigned i = 0; i < it->n_partitions; i++)
                for (unsigned k = 0; k < it->partitions[i].n_rules; k++)
                        if (it->partitions[i].rules[k].kind == RULE_GROUP)
                                return true;
        return false;
}

static void put_group(struct printer *t, const char *name, unsigned first)
{
        put(t, "  %s: \"node[", name);
        for (unsigned i = first; i < 100; i += 2)
                put(t, "%s%03u", i == first ? "" : ",", i);
        put(t, "]\"\n");
}

void intent_print_policy(const struct sim *s, unsigned intent, char *ret, size_t size)
{
        const struct intent *it = &s->intents[intent];
        struct printer t = { ret, size };

        put(&t, "# %u\nversion: 1\n", intent);
        if (it->is_strict)
                put(&t, "strict: true\n");
        if (it->has_owns)
                put_owns(&t, it);
        if (uses_groups(it)) {
                put(&t, "groups:\n");
                put_group(&t, "even", 0);
                put_group(&t, "odd", 1);
        }
        if (it->n_pools > 0)
                put(&t, "pools:\n");
        for (unsigned i = 0; i < it->n_pools; i++)
                put_pool(&t, &it->pools[i], i);
        put(&t, "partitions:\n");
        for (unsigned i = 0; i < it->n_partitions; i++) {
                const struct intent_partition *p = &it->partitions[i];

                put(&t, "  %s%.0u:\n    pkey: 0x%04x\n", i ? "p" : "default", i, p->base);
                if (p->index0)
                        put(&t, "    index0: true\n");
                put(&t, "    members:%s\n", p->n_rules ? "" : " {}");
                for (unsigned k = 0; k < p->n_rules; k++)
                        put_rule(&t, &p->rules[k]);
        }
        if (it->is_broken)
                put(&t, "  p1:\n    pkey: 0xffff\n   members\n");
}

void intent_print_settings(const struct sim *s, unsigned intent, char *ret, size_t size)
{
        static const char *const enforcements[] = { "both", "in", "out", "off" };
        const struct settings *it = &s->intents[intent].settings;
        struct printer t = { ret, size };

        put(&t, "# %u\nmode: %s\nrole: %s\nunmanaged: %s\nenforcement: %s\nenforcement_overflow: %s\n", intent,
            it->mode == MODE_AUDIT ? "audit" : "enforce", it->role == ROLE_ALWAYS ? "always" : "follow-sm",
            it->unmanaged == UNMANAGED_KEEP ? "keep" : "remove", enforcements[it->enforcement],
            it->enforcement_overflow == OVERFLOW_DISABLE ? "disable" : "refuse");
        put(&t, "repair_index0: %s\nwindow: %u\nabsent_hold: %us\n", it->repair_index0 ? "true" : "false", it->window,
            (unsigned) (it->absent_hold / USEC_PER_SEC));
        if (it->writer == WRITER_OPENSM)
                put(&t, "writer: opensm\nopensm: {partitions_conf: %s, reload: \"pid:2\", config: %s}\n", SIM_CONF,
                    SIM_OPENSM_CONF);
        else if (s->mirrors)
                put(&t, "opensm: {mirror: %s, config: %s}\n", SIM_CONF, SIM_OPENSM_CONF);
        else
                put(&t, "beside_opensm: true\n");
}

unsigned intent_of_text(const char *text)
{
        return (unsigned) strtoul(text + strlen("# "), NULL, 10);
}

/* --- meaning --------------------------------------------------------------------------------------------------------- */

static bool matches(const struct rule *r, const struct census_entry *e)
{
        switch (r->kind) {
        case RULE_ALL:
                return true;
        case RULE_CAS:
                return e->type == NODE_CA;
        case RULE_SWITCHES:
                return e->type == NODE_SWITCH;
        case RULE_GROUP:
                return e->type == NODE_CA && e->host % 2 == r->x;
        case RULE_HOST:
                return e->type == NODE_CA && e->host == r->x;
        case RULE_DEVICE:
                return e->type == NODE_CA && e->host == r->x && e->device == r->y;
        case RULE_LEAF:
                return e->is_plugged && e->plugged_into.node == r->x;
        case RULE_SWITCH_PORT:
                return e->is_plugged && e->plugged_into.node == r->x && e->plugged_into.port == r->y;
        case RULE_GUID:
                return e->guid.v == r->guid.v;
        case RULE_SELF:
                return e->is_self;
        }
        return false;
}

static unsigned specificity(enum rule_kind k)
{
        static const unsigned of[] = {
                [RULE_ALL] = 0, [RULE_CAS] = 1, [RULE_SWITCHES] = 1, [RULE_GROUP] = 2, [RULE_HOST] = 3, [RULE_LEAF] = 3,
                [RULE_DEVICE] = 4, [RULE_SWITCH_PORT] = 6, [RULE_GUID] = 7, [RULE_SELF] = 7,
        };

        return of[k];
}

/* NULL: no line is about it. */
static const struct rule *find_rule(const struct intent_partition *p, const struct census_entry *e)
{
        const struct rule *best = NULL;

        for (unsigned i = 0; i < p->n_rules; i++)
                if (matches(&p->rules[i], e) &&
                    (!best || specificity(p->rules[i].kind) > specificity(best->kind)))
                        best = &p->rules[i];
        return best;
}

enum membership intent_membership(const struct intent *it, const struct census *c, unsigned endport, unsigned partition)
{
        const struct census_entry *e = &c->entries[endport];
        const struct rule *best = find_rule(&it->partitions[partition], e);

        if (partition == 0 && (e->is_self || e->is_sm))
                return best && best->membership == MEMBERSHIP_BOTH ? MEMBERSHIP_BOTH : MEMBERSHIP_FULL;
        if (best)
                return best->membership;
        return partition == 0 ? MEMBERSHIP_LIMITED : MEMBERSHIP_NONE;
}

bool intent_has_index0_pool(const struct intent *it)
{
        for (unsigned i = 0; i < it->n_pools; i++)
                if (it->pools[i].index0)
                        return true;
        return false;
}

const struct intent_pool *intent_pool_of(const struct intent *it, uint16_t base)
{
        for (unsigned i = 0; i < it->n_pools; i++)
                if (base >= it->pools[i].first && base <= it->pools[i].last)
                        return &it->pools[i];
        return NULL;
}

bool intent_names(const struct rule *r, const struct census_entry *e)
{
        return matches(r, e);
}

bool intent_owns(const struct intent *it, uint16_t base)
{
        return !it->has_owns || base == 0x7fff || base <= 0x00ff || intent_pool_of(it, base);
}

static bool is_twin(const struct census_entry *x, const struct census_entry *y, bool maybe)
{
        bool same = x->type == NODE_CA && y->type == NODE_CA && x->host == y->host && x->device == y->device;

        if (maybe) /* one that was not discovered completely may have reported its name */
                return same || x->is_ambiguous || y->is_ambiguous || !x->is_seen || !y->is_seen;
        return same && x->is_seen && y->is_seen && !x->is_ambiguous && !y->is_ambiguous;
}

/* As they are called by now: a node that is not discovered completely counts as called what it was before. */
static bool have_one_name(const struct sim *s, unsigned x, unsigned y)
{
        return s->f.nodes[x].type == NODE_CA && s->f.nodes[y].type == NODE_CA && s->host_of[x] == s->host_of[y] &&
               s->device_of[x] == s->device_of[y];
}

bool intent_has_twin(const struct sim *s, const struct census *c, unsigned endport, bool maybe)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->endports[i].node != s->endports[endport].node &&
                    (is_twin(&c->entries[i], &c->entries[endport], maybe) ||
                     (maybe && have_one_name(s, s->endports[i].node, s->endports[endport].node))))
                        return true;
        return false;
}

static bool is_by_name(enum rule_kind kind)
{
        return kind == RULE_GROUP || kind == RULE_HOST || kind == RULE_DEVICE;
}

bool intent_is_meant_by_name(const struct intent *it, const struct census *c, unsigned endport)
{
        const struct census_entry *e = &c->entries[endport];

        for (unsigned i = 0; i < it->n_partitions; i++) {
                const struct rule *r = find_rule(&it->partitions[i], e);

                if (r && is_by_name(r->kind) && intent_owns(it, it->partitions[i].base) && (i > 0 || !e->is_sm))
                        return true;
        }
        return false;
}

/* The name of the host that pkeyd runs on is certain. */
bool intent_is_contested(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport)
{
        for (unsigned i = 0; i < s->n_endports; i++)
                if (s->endports[i].node == s->endports[endport].node && c->entries[i].is_self)
                        return false;
        return intent_is_meant_by_name(it, c, endport) && intent_has_twin(s, c, endport, false);
}

/* The least of all lines from the most specific one to the first that does not mean it by its name. */
enum membership intent_certain(const struct intent *it, const struct census *c, unsigned endport, unsigned partition)
{
        const struct census_entry *e = &c->entries[endport];
        const struct intent_partition *p = &it->partitions[partition];
        enum membership least = intent_membership(it, c, endport, partition);
        const struct rule *settled = NULL;

        if (partition == 0 && (e->is_self || e->is_sm))
                return least;
        for (unsigned i = 0; i < p->n_rules; i++) {
                const struct rule *r = &p->rules[i];

                if (matches(r, e) && !is_by_name(r->kind) && (!settled || specificity(r->kind) > specificity(settled->kind)))
                        settled = r;
        }
        for (unsigned i = 0; settled && i < p->n_rules; i++)
                if (matches(&p->rules[i], e) && specificity(p->rules[i].kind) >= specificity(settled->kind))
                        least = MIN(least, p->rules[i].membership);
        if (settled)
                return least;
        return partition == 0 ? MEMBERSHIP_LIMITED : MEMBERSHIP_NONE;
}

bool intent_may_touch(const struct intent *it, uint16_t base)
{
        if (!intent_owns(it, base))
                return false;
        if (it->settings.unmanaged == UNMANAGED_REMOVE || intent_pool_of(it, base))
                return true;
        for (unsigned i = 0; i < it->n_partitions; i++)
                if (it->partitions[i].base == base)
                        return true;
        return false;
}

unsigned intent_wants(const struct intent *it, const struct census *c, unsigned endport, bool enforcing,
                      struct p_key ret[SIM_MAX_WANTS])
{
        unsigned n = 0;

        for (unsigned i = 0; i < it->n_partitions; i++) {
                enum membership m = intent_membership(it, c, endport, i);
                uint16_t base = it->partitions[i].base;

                if (m == MEMBERSHIP_LIMITED || (m == MEMBERSHIP_BOTH && !enforcing))
                        ret[n++].v = base;
                if (m == MEMBERSHIP_FULL || m == MEMBERSHIP_BOTH)
                        ret[n++].v = (uint16_t) (base | 0x8000);
        }
        return n;
}
