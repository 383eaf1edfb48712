/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pins/claims.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

#define MAX_REPORTED 8 /* findings about single nodes; more are counted in one */

/* ---- pins by name ------------------------------------------------------------------------------------------------- */

/* Pins, ascending name. Made for the first node that has no pin or another name: most snapshots have none. */
struct by_name {
        struct arena *arena;
        const struct pins *pins;
        const struct pin **items; /* NULL: not made so far */
};

static int compare_pins(const void *left, const void *right)
{
        const struct pin *const *a = left, *const *b = right;

        return strcmp((*a)->name.name, (*b)->name.name) ?: ORDER((*a)->node.v, (*b)->node.v);
}

static int make_index(struct by_name *index)
{
        const struct pins *p = index->pins;

        if (index->items)
                return 0;
        index->items = arena_new_array(index->arena, const struct pin *, (size_t) p->n + 1);
        if (!index->items)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n; i++)
                index->items[i] = &p->items[i];
        SORT(index->items, p->n, compare_pins);
        return 0;
}

/* Another node that has the name of this one; the one that also has its device or board, if there is one. NULL: none. */
static const struct pin *find_holder(const struct by_name *index, const struct subnet_node *node)
{
        uint32_t n = index->pins->n, first = LOWER_BOUND(pin, index->items, n, strcmp((*pin)->name.name, node->name) < 0);
        const struct pin *holder = NULL;

        for (uint32_t i = first; i < n && strcmp(index->items[i]->name.name, node->name) == 0; i++) {
                if (index->items[i]->node.v == node->guid.v)
                        continue;
                if (pin_is_of(index->items[i], node))
                        return index->items[i];
                holder = holder ?: index->items[i];
        }
        return holder;
}

/* ---- the view of the policy --------------------------------------------------------------------------------------- */

/* The name of a node for the policy, if it is another one than it has. Returns 1, 0: it is the same; or -ENOMEM. */
static int find_name(struct by_name *index, const struct subnet_node *node, struct subnet_name *ret)
{
        const struct pin *pin = pins_find(index->pins, node->guid);

        if (pin && pin_is_of(pin, node))
                return 0;
        if (pin) {
                *ret = pin->name;
                return 1;
        }
        if (make_index(index) < 0)
                return -ENOMEM;
        if (!find_holder(index, node))
                return 0;
        *ret = (struct subnet_name) { "", "", "" };
        return 1;
}

int pins_view(struct arena *a, const struct pins *p, const struct subnet *s, const struct subnet **ret)
{
        struct by_name index = { .arena = a, .pins = p };
        struct subnet_name *names = p ? arena_new_array(a, struct subnet_name, s->n_nodes) : NULL;
        struct subnet *renamed;
        bool differs = false;
        int r = p && !names ? -ENOMEM : 0;

        for (uint32_t i = 0; p && i < s->n_nodes && r >= 0; i++) {
                r = find_name(&index, &s->nodes[i], &names[i]);
                differs |= r > 0;
        }
        if (r < 0)
                return r;
        *ret = s;
        if (!differs)
                return 0;
        r = subnet_with_names(a, s, names, &renamed);
        if (r == 0)
                *ret = renamed;
        return r;
}

/* ---- claims ------------------------------------------------------------------------------------------------------- */

/* Returns 1 if the node claims a name, 0 or -ENOMEM. */
static int find_claim(struct by_name *index, const struct subnet_node *node, struct claim *ret)
{
        const struct pin *pin = pins_find(index->pins, node->guid);

        if (node->incomplete || pins_is_unnamed(node) || (pin && pin_is_of(pin, node)))
                return 0;
        if (make_index(index) < 0)
                return -ENOMEM;
        ret->pin = pin;
        ret->holder = find_holder(index, node);
        return pin || ret->holder;
}

int pins_find_claims(struct arena *a, const struct pins *p, const struct subnet *s, struct claim **ret, uint32_t *ret_n)
{
        struct by_name index = { .arena = a, .pins = p };
        struct claim *claims = arena_new_array(a, struct claim, s->n_nodes);
        uint32_t n = 0;

        if (!claims)
                return -ENOMEM;
        for (uint32_t i = 0; p && i < s->n_nodes; i++) {
                int r = find_claim(&index, &s->nodes[i], &claims[n]);

                if (r < 0)
                        return r;
                claims[n].node = i;
                n += (uint32_t) r;
        }
        *ret = claims;
        *ret_n = n;
        return 0;
}

/* ---- texts -------------------------------------------------------------------------------------------------------- */

uint32_t claim_port(const struct subnet *s, const struct claim *claim)
{
        uint32_t found = SUBNET_NONE;

        for (uint32_t i = subnet_first_port(s, claim->node); i < s->n_ports && s->ports[i].node == claim->node; i++) {
                if (s->ports[i].role != PORT_ENDPORT)
                        continue;
                if (subnet_leaf_port(s, i) != SUBNET_NONE)
                        return i;
                found = found == SUBNET_NONE ? i : found;
        }
        return found;
}

/* " at leaf07/12"; "": it is not connected to a switch. */
static const char *place_text(struct arena *a, const struct subnet *s, const struct claim *claim)
{
        uint32_t port = claim_port(s, claim), leaf = port == SUBNET_NONE ? SUBNET_NONE : subnet_leaf_port(s, port);
        const char *label = leaf == SUBNET_NONE ? NULL : subnet_port_label(a, s, leaf);

        return label ? arena_printf(a, " at %s", label) : leaf == SUBNET_NONE ? "" : NULL;
}

const char *claim_text(struct arena *a, const struct subnet *s, const struct claim *claim)
{
        const struct subnet_node *node = &s->nodes[claim->node];
        const char *place = place_text(a, s, claim), *holder = "", *means;

        if (!place)
                return NULL;
        if (claim->holder)
                holder = arena_printf(a, ", a name that is pinned to 0x%016" PRIx64 " ('%s')", claim->holder->node.v,
                                      claim->holder->name.description);
        means = claim->pin ? arena_printf(a, "for the policy it is still '%s', to which it is pinned", claim->pin->name.description)
                           : "it gets no partition by that name";
        if (!holder || !means)
                return NULL;
        return arena_printf(a, "node 0x%016" PRIx64 "%s calls itself '%s'%s; %s", node->guid.v, place, node->description, holder,
                            means);
}

/* A name that means itself to a shell; other names are left out, because root on that host chose them. */
static bool is_plain(const char *name)
{
        return name[0] != '-' && name[strspn(name, TEXT_LETTERS_AND_DIGITS "_.-")] == '\0';
}

const char *claim_way_out(struct arena *a, const struct subnet *s, const struct claim *claim)
{
        const struct subnet_node *node = &s->nodes[claim->node];
        bool plain = is_plain(node->name);
        const char *replace = "";

        if (!claim->pin && claim->holder)
                replace = arena_printf(a, "; if its adapter replaced the other one: pkeyctl replace 0x%016" PRIx64 " 0x%016" PRIx64,
                                       claim->holder->node.v, node->guid.v);
        if (!replace)
                return NULL;
        return arena_printf(a, "if the name is right: pkeyctl pin accept %s%s0x%016" PRIx64 "%s; if not, rename the host or unplug it",
                            plain ? node->name : "", plain ? " " : "", node->guid.v, replace);
}

int pins_report_claims(const struct pins *p, const struct subnet *s, struct findings *findings)
{
        struct claim *claims;
        uint32_t n;
        int r = pins_find_claims(findings->arena, p, s, &claims, &n);

        for (uint32_t i = 0; r == 0 && i < MIN(n, (uint32_t) MAX_REPORTED); i++) {
                struct finding *item = findings_add(findings, FINDING_WARNING, FINDING_NAME_CLAIMED, NULL, "%s",
                                                    claim_text(findings->arena, s, &claims[i]) ?: "?");

                finding_set_hint(findings, item, "%s", claim_way_out(findings->arena, s, &claims[i]) ?: "?");
        }
        if (r == 0 && n > MAX_REPORTED)
                (void) findings_add(findings, FINDING_WARNING, FINDING_NAME_CLAIMED, NULL,
                                    "%u more nodes claim names that are not pinned to them, %u in total; pkeyctl pins lists them",
                                    n - MAX_REPORTED, n);
        return r;
}
