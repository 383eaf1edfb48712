/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

#include <string.h>

#include "pins/pins.h"
#include "util/text.h"

/* "MT4123 ConnectX6   Mellanox Technologies": a model is followed by its number. */
static bool is_model(const char *name)
{
        return strncmp(name, "MT", 2) == 0 && name[2] != '\0' && strspn(name + 2, "0123456789") == strlen(name + 2);
}

/* Also names that pins bind, but that are probably those of an adapter: the doctor only asks a person to set another one. */
static bool is_unnamed(const struct subnet_node *n)
{
        static const char *const names[] = {"unknown", "HCA"};
        static const char *const makes[] = {"Mellanox", "ConnectX", "NVIDIA", "InfiniHost"};

        for (size_t i = 0; i < ELEMENTS(makes); i++)
                if (strncmp(n->name, makes[i], strlen(makes[i])) == 0)
                        return true;
        return pins_is_unnamed(n) || text_is_one_of(n->name, names, ELEMENTS(names)) || is_model(n->name) ||
               strstr(n->description, "Mellanox Technologies");
}

/* The port that stands for a node in a list of places; of a switch that is port 0. */
static uint32_t first_port(const struct subnet *s, uint32_t node)
{
        uint32_t i = subnet_first_port(s, node);

        return i < s->n_ports && s->ports[i].node == node ? i : SUBNET_NONE;
}

static void diagnose_nameless(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        uint32_t last = SUBNET_NONE;
        struct places nameless = {};

        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct subnet_node *node = subnet_port_node(s, &s->ports[i]);

                if (!diagnosis_is_host_port(s, i) || s->ports[i].node == last || !is_unnamed(node))
                        continue;
                last = s->ports[i].node;
                places_add(l, &nameless, i, diagnosis_text(l, "node GUID 0x%016" PRIx64 ", NodeDescription '%s'", node->guid.v,
                                                           node->description));
        }
        diagnosis_add(l, DIAGNOSIS_NAME_NONE, &nameless, "%u host%s ha%s no name", nameless.n, text_plural(nameless.n),
                      nameless.n == 1 ? "s" : "ve");
}

/* Adapters of one host share its name and differ in the device: two nodes with the same name and device are two hosts. Switches of
 * one director share its name and differ in the board. */
static bool is_twin(const struct subnet_node *a, const struct subnet_node *b)
{
        bool switches = a->type == NODE_SWITCH;

        if (switches != (b->type == NODE_SWITCH) || strcmp(a->name, b->name) != 0)
                return false;
        return switches ? strcmp(subnet_node_board(a), subnet_node_board(b)) == 0
                        : strcmp(a->device, b->device) == 0 && !is_unnamed(a);
}

static void add_twins(struct diagnosis_list *l, struct places *places, uint32_t a, uint32_t b)
{
        const struct subnet *s = l->facts->subnet;
        const char *text = diagnosis_text(l, "'%s%s%s': node GUIDs 0x%016" PRIx64 " and 0x%016" PRIx64,
                                          s->nodes[b].name, *s->nodes[b].device ? " " : "", s->nodes[b].device,
                                          s->nodes[a].guid.v, s->nodes[b].guid.v);

        places_add(l, places, first_port(s, b), text);
}

static void diagnose_twins(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        struct places places[2] = {}; /* hosts, switches */
        uint32_t n_names[2] = {}, first = 0; /* of the present twins, which come one after another */

        for (uint32_t i = 1; i < s->n_by_name; i++) {
                const struct subnet_node *node = subnet_named_node(s, i);
                bool is_switch = node->type == NODE_SWITCH;

                if (!is_twin(subnet_named_node(s, first), node)) {
                        first = i;
                        continue;
                }
                add_twins(l, &places[is_switch], s->by_name[first], s->by_name[i]);
                n_names[is_switch] += i == first + 1;
        }
        diagnosis_add(l, DIAGNOSIS_NAME_TWICE, &places[false], "%u host name%s belong%s to more than one node", n_names[false],
                      text_plural(n_names[false]), n_names[false] == 1 ? "s" : "");
        diagnosis_add(l, DIAGNOSIS_NAME_SWITCH_TWICE, &places[true], "%u switch name%s belong%s to more than one switch",
                      n_names[true], text_plural(n_names[true]), n_names[true] == 1 ? "s" : "");
}

static void diagnose_guids(struct diagnosis_list *l)
{
        const struct subnet *s = l->facts->subnet;
        struct places places = {};

        for (uint32_t i = 0; i < s->n_conflicts; i++) {
                const struct subnet_conflict *c = &s->conflicts[i];
                const char *first = subnet_place_label(l->arena, s, c->places[0]);
                const char *second = subnet_place_label(l->arena, s, c->places[1]);

                l->out_of_memory |= !first || !second;
                if (subnet_find_conflict(s, c->places[1].node, c->places[1].number) == c)
                        places_add(l, &places, SUBNET_NONE, diagnosis_text(l, "0x%016" PRIx64 ": %s, and %s", c->guid.v, first ?: "?",
                                                                           second ?: "?"));
        }
        diagnosis_add(l, DIAGNOSIS_NAME_GUID_TWICE, &places, "%u GUID%s found in two places", places.n,
                      places.n == 1 ? " was" : "s were");
}

void diagnose_names(struct diagnosis_list *l)
{
        diagnose_guids(l);
        diagnose_nameless(l);
        diagnose_twins(l);
}
