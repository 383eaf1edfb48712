# SPDX-License-Identifier: GPL-2.0-or-later
"""The wrongs of names that are pinned."""

from wrongs import Wrong

PINS = "src/pins/pins.c"
CLAIMS = "src/pins/claims.c"
IDENTITY = "src/conditions/identity.c"
SWEEP_PLAN = "src/control/sweep_plan.c"
RECORDS = "src/records/stored_records.c"
GUIDS = "src/policy/policy_fix.c"

WRONGS = [
    # whose name it is
    Wrong("pins-any-type", PINS, "pin->type == node->type && strcmp(pin->name.name", "strcmp(pin->name.name"),
    Wrong("pins-any-device", PINS, " && strcmp(pin->name.device, node->device) == 0 &&\n               is_same_board", " &&\n               is_same_board"),
    Wrong("pins-any-board", PINS, " &&\n               is_same_board(pin, node);", ";"),
    Wrong("pins-boards-of-hosts", PINS, "return node->type != NODE_SWITCH || strcmp", "return node->type == NODE_SWITCH || strcmp"),
    Wrong("pins-product-is-a-name", PINS, " || text_ends_with(node->description, \" Technologies\")", ""),
    Wrong("pins-localhost-is-a-name", PINS, " || strcmp(node->name, \"localhost\") == 0", ""),
    Wrong("pins-localhost-of-a-domain-is-a-name", PINS, "strncmp(node->name, \"localhost.\", strlen(\"localhost.\")) == 0 || ", ""),
    Wrong("pins-no-name-is-a-name", PINS, " || strcmp(node->name, \"(none)\") == 0", ""),
    Wrong("pins-localhost1-is-no-name", PINS, "strncmp(node->name, \"localhost.\", strlen(\"localhost.\"))", "strncmp(node->name, \"localhost\", strlen(\"localhost\"))"),
    # what is bound
    Wrong("pins-bind-incomplete", PINS, "return !node->incomplete && !pins_is_unnamed(node) && !pins_find", "return !pins_is_unnamed(node) && !pins_find"),
    Wrong("pins-bind-unnamed", PINS, "return !node->incomplete && !pins_is_unnamed(node) && !pins_find", "return !node->incomplete && !pins_find"),
    Wrong("pins-bind-twins", PINS, "if (end - first > MAX_NAMESAKES || has_twins(p, s, first, end))", "if (end - first > MAX_NAMESAKES)"),
    Wrong("pins-bind-a-name-of-others", PINS, "if (p->n == 0 || !bsearch(&name, names, p->n, sizeof(*names), compare_strings))", "if (true)"),
    Wrong("pins-renamed-are-twins", PINS, "if (is_new(p, &s->nodes[s->by_name[k]]) && pin_is_of", "if (pin_is_of"),
    Wrong("pins-merge-backwards", PINS, "p->items[old - 1].node.v > node->guid.v)", "p->items[old - 1].node.v < node->guid.v)"),
    Wrong("pins-bound-for-good", PINS, "                p->items[at].is_provisional = true;\n", ""),
    Wrong("pins-taken-back-all", PINS, "                if (p->items[i].is_provisional)\n", "                if (p->items[i].is_provisional || !p->items[i].is_stored)\n"),
    # what an admin says
    Wrong("pins-accept-leaves-the-other", PINS, "r == 0 && i-- > 0;)\n                if (p->items[i].node.v != pin->node.v &&", "r == 0 && i-- > 0;)\n                if (p->items[i].node.v == 0 &&"),
    Wrong("pins-removed-stays-stored", PINS, "if (VECTOR_ADD(NULL, p->gone, p->n_gone, p->allocated_gone, p->items[at].node) < 0)", "if (false)"),
    Wrong("pins-move-keeps-the-old", PINS, "r = from.v == pin.node.v ? 0 : remove_pin(p, place_of(p, from));", "r = 0;"),
    Wrong("pins-move-to-what-it-says", PINS, "                pin.name = copy;\n", ""),
    # what it means
    Wrong("claims-renamed-has-its-new-name", CLAIMS, "                *ret = pin->name;\n                return 1;\n", "                return 0;\n"),
    Wrong("claims-new-has-the-name", CLAIMS, "        *ret = (struct subnet_name) { \"\", \"\", \"\" };\n        return 1;\n", "        return 0;\n"),
    Wrong("claims-of-incomplete", CLAIMS, "if (node->incomplete || pins_is_unnamed(node) ||", "if (pins_is_unnamed(node) ||"),
    Wrong("claims-any-holder", CLAIMS, "                if (pin_is_of(index->items[i], node))\n                        return index->items[i];\n", ""),
    Wrong("claims-command-of-a-host", CLAIMS, "return name[0] != '-' && name[strspn(name, TEXT_LETTERS_AND_DIGITS \"_.-\")] == '\\0';", "return name[0] != '-';"),
    Wrong("claims-own-name-is-of-others", CLAIMS, "                if (index->items[i]->node.v == node->guid.v)\n                        continue;\n", ""),
    # from one sweep to the next
    Wrong("identity-logged-each-time", IDENTITY, "if ((!old || strcmp(old->text, c->text) != 0) && n++", "if (n++"),
    Wrong("identity-another-name-is-no-news", IDENTITY, "if ((!old || strcmp(old->text, c->text) != 0) && n++", "if (!old && n++"),
    Wrong("identity-silence-ends-a-claim", IDENTITY, "                else if (pins && s->nodes[node].incomplete)", "                else if (false)"),
    Wrong("identity-claim-without-pins", IDENTITY, "                else if (pins && s->nodes[node].incomplete)", "                else if (s->nodes[node].incomplete)"),
    Wrong("identity-since-now", IDENTITY, "                new->since = before->since;\n", "                new->since = wall;\n"),
    Wrong("sweep-refused-policy-binds", SWEEP_PLAN, "(r == 0 && c->config.goal != CONTROL_PLAN ? pins_keep : pins_take_back)(&c->pins);", "pins_keep(&c->pins);"),
    Wrong("sweep-never-binds", SWEEP_PLAN, "(r == 0 && c->config.goal != CONTROL_PLAN ? pins_keep : pins_take_back)(&c->pins);", "pins_take_back(&c->pins);"),
    Wrong("sweep-absent-by-their-own-names", "src/opensm_writer/opensm_writer_phases.c", "{ .pins = w->job.pins }", "{ .pins = NULL }"),
    Wrong("sweep-pins-are-not-stored", "src/control/sweep_steps.c", "        records_put_pins(t, &c->pins);\n", ""),
    Wrong("sweep-reload-by-their-own-names", SWEEP_PLAN, "c->sweep.options.pins = control_pins(c, c->sweep.generation);", "c->sweep.options.pins = c->candidate == c->sweep.generation ? NULL : control_pins(c, c->sweep.generation);"),
    Wrong("records-pin-is-put-before-it-is-deleted", RECORDS, "                store_delete(t, store_key(RECORDS_PIN_KEY, p->gone[i].v).text);\n", "                t->error = t->error;\n"),
    Wrong("records-pin-of-another-key", RECORDS, " || strcmp(key, store_key(RECORDS_PIN_KEY, pin.node.v).text) != 0)", ")"),
    # the lines of the policy
    Wrong("guids-of-switches-stay", GUIDS, "if (s->kind != SELECTOR_GUID && s->kind != SELECTOR_SWITCH)", "if (s->kind != SELECTOR_GUID)"),
    Wrong("guids-result-is-not-read", GUIDS, "        if (n_fixed > 0)\n", "        if (n_fixed < 0)\n"),
    Wrong("guids-only-of-lines", "src/policy/selector.c", "r == 0 && i < p->n_groups; i++", "r == 0 && i < p->n_groups && i > p->n_groups; i++"),
]
