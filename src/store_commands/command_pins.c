/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pins/claims.h"
#include "store_commands/store_change.h"
#include "store_commands/store_commands.h"
#include "util/scan.h"
#include "util/text.h"

/* --- pins ------------------------------------------------------------------------------------------------------------ */

struct pins_result {
        const struct pins *pins;
        struct claim *claims;
        uint32_t n_claims;
};

/* "seen", "absent", or "disputed": its node calls itself something else, or another node claims its name. */
static const char *state_of(const struct context *ctx, const struct pins_result *r, const struct pin *pin)
{
        for (uint32_t i = 0; i < r->n_claims; i++)
                if (r->claims[i].pin == pin || r->claims[i].holder == pin)
                        return "disputed";
        return subnet_find_node(ctx->subnet, pin->node) == SUBNET_NONE ? "absent" : "seen";
}

static json_t *pin_object(const struct pin *pin)
{
        return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", doc_text(pin->name.name), "device", doc_text(pin->name.device),
                         "description", doc_text(pin->name.description), "node_guid", doc_guid(pin->node), "since",
                         doc_time(pin->since * USEC_PER_SEC));
}

static json_t *state_object(struct doc *d, const struct pins_result *r, const struct pin *pin)
{
        json_t *o = pin_object(pin);

        doc_add(d, o, "{s:s}", "state", state_of(d->ctx, r, pin));
        return o;
}

static json_t *claim_object(struct doc *d, const struct claim *c)
{
        const struct subnet_node *node = &d->ctx->subnet->nodes[c->node];
        struct arena *a = d->ctx->arena;

        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "node_guid", doc_guid(node->guid), "description",
                         doc_text(node->description), "pinned_as", doc_text(c->pin ? c->pin->name.description : NULL), "pinned_to",
                         c->holder ? doc_guid(c->holder->node) : json_null(), "text",
                         doc_text(claim_text(a, d->ctx->subnet, c) ?: "?"), "way_out",
                         doc_text(claim_way_out(a, d->ctx->subnet, c) ?: "?"));
}

static void json_pins(struct doc *d, const void *result)
{
        const struct pins_result *r = result;

        doc_add(d, d->root, "{s:b, s:o, s:o}", "identity", d->ctx->settings->identity == IDENTITY_PIN, "pins",
                JSON_ARRAY(i, r->pins->n, state_object(d, r, &r->pins->items[i])), "claims",
                JSON_ARRAY(i, r->n_claims, claim_object(d, &r->claims[i])));
}

/* Who disputes the pin: ", claimed by 0x0002c903000e0b72". */
static const char *list_claimants(struct context *ctx, const struct pins_result *r, const struct pin *pin)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < r->n_claims; i++) {
                const struct subnet_node *node = &ctx->subnet->nodes[r->claims[i].node];

                if (r->claims[i].pin == pin)
                        text_add(&t, ", calls itself '%s'", node->description);
                else if (r->claims[i].holder == pin)
                        text_add(&t, ", claimed by 0x%016" PRIx64, node->guid.v);
        }
        return output_taken(ctx, &t);
}

static void text_pins(struct context *ctx, const void *result)
{
        const struct pins_result *r = result;
        struct text_table t;

        if (r->pins->n == 0)
                puts("no name is pinned");
        text_table_begin(&t, "NAME|DEVICE|NODE|SINCE|*STATE", 0);
        for (uint32_t i = 0; i < r->pins->n; i++) {
                const struct pin *pin = &r->pins->items[i];
                const char *state = state_of(ctx, r, pin);

                text_table_row(&t, strcmp(state, "disputed") == 0 ? "red" : NULL, "%s\t%s\t0x%016" PRIx64 "\t%s\t%s%s", pin->name.name,
                               pin->name.device, pin->node.v, output_time(ctx, pin->since * USEC_PER_SEC), state,
                               list_claimants(ctx, r, pin));
        }
        text_table_print(ctx, &t);
        for (uint32_t i = 0; i < r->n_claims; i++)
                printf("%s; %s\n", claim_text(ctx->arena, ctx->subnet, &r->claims[i]) ?: "?",
                       claim_way_out(ctx->arena, ctx->subnet, &r->claims[i]) ?: "?");
}

static void note_off(struct context *ctx)
{
        if (ctx->settings->identity == IDENTITY_PIN)
                return;
        finding_set_hint(&ctx->findings,
                         findings_add(&ctx->findings, FINDING_NOTE, FINDING_NAME_CLAIMED, NULL,
                                      "names are not pinned: the settings have no 'identity: pin'"),
                         "set 'identity: pin' in pkeyd.yaml, then pkeyctl reload");
}

int command_pins(struct context *ctx)
{
        static const struct printer printer = { text_pins, json_pins, 0 };
        struct pins_result r = { .pins = &ctx->remembered->pins };

        note_off(ctx);
        if (pins_find_claims(ctx->arena, r.pins, ctx->subnet, &r.claims, &r.n_claims) < 0)
                return -ENOMEM;
        return output(ctx, &printer, EXIT_DONE, &r);
}

/* --- changes --------------------------------------------------------------------------------------------------------- */

/* What a command changes: nodes that get a name, or pins that are dropped. */
struct pin_changes {
        uint32_t *nodes, n;
        const char *dropped;       /* a name */
        struct pins before;        /* a copy, to show what was dropped or moved */
};

static const struct pin *pin_before(const struct pin_changes *c, struct guid node)
{
        return pins_find(&c->before, node);
}

/* The other node that had exactly the name that this one gets; NULL: none. */
static const struct pin *displaced_by(const struct context *ctx, const struct pin_changes *c, uint32_t node)
{
        for (uint32_t i = 0; i < c->before.n; i++)
                if (c->before.items[i].node.v != ctx->subnet->nodes[node].guid.v &&
                    pin_is_of(&c->before.items[i], &ctx->subnet->nodes[node]))
                        return &c->before.items[i];
        return NULL;
}

/* Copies all pins: store_change() may replace or free them. */
static int remember_pins(struct context *ctx, struct pin_changes *c)
{
        const struct pins *p = &ctx->remembered->pins;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < p->n; i++)
                r = pins_add(&c->before, &p->items[i]);
        return r;
}

static json_t *accepted_object(struct doc *d, const struct pin_changes *c, uint32_t node)
{
        const struct subnet_node *n = &d->ctx->subnet->nodes[node];
        const struct pin *old = pin_before(c, n->guid), *other = displaced_by(d->ctx, c, node);

        return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", doc_text(n->name), "description", doc_text(n->description), "node_guid",
                         doc_guid(n->guid), "pinned_as", doc_text(old ? old->name.description : NULL), "taken_from",
                         other ? doc_guid(other->node) : json_null());
}

static void json_accepted(struct doc *d, const void *result)
{
        const struct pin_changes *c = result;

        doc_add(d, d->root, "{s:o}", "accepted", JSON_ARRAY(i, c->n, accepted_object(d, c, c->nodes[i])));
}

static void text_proposal(struct context *ctx, const struct pin_changes *c)
{
        for (uint32_t i = 0; i < c->n; i++) {
                const struct subnet_node *node = &ctx->subnet->nodes[c->nodes[i]];
                const struct pin *old = pin_before(c, node->guid), *other = displaced_by(ctx, c, c->nodes[i]);

                printf("0x%016" PRIx64 " gets the name '%s'", node->guid.v, node->description);
                if (old)
                        printf("; it was '%s'", old->name.description);
                if (other)
                        printf("; 0x%016" PRIx64 " loses this name", other->node.v);
                puts("");
        }
}

static void text_accepted(struct context *ctx, const void *result)
{
        const struct pin_changes *c = result;

        for (uint32_t i = 0; i < c->n; i++)
                printf("'%s' is pinned to 0x%016" PRIx64 "; pkeyd continues at its next sweep\n",
                       ctx->subnet->nodes[c->nodes[i]].description, ctx->subnet->nodes[c->nodes[i]].guid.v);
}

static int accept_nodes(struct context *ctx, bool is_reread, struct store_transaction *t, void *userdata)
{
        struct pins *p = &ctx->remembered->pins;
        struct pin_changes *c = userdata;
        int r = 0;

        (void) is_reread; /* the admin's decision replaces what another process has stored */
        for (uint32_t i = 0; r == 0 && i < c->n; i++)
                r = pins_accept(p, ctx->subnet, c->nodes[i], clock_wall() / USEC_PER_SEC);
        if (r == 0)
                records_put_pins(t, p);
        return r;
}

/* --- pin accept ------------------------------------------------------------------------------------------------------ */

static bool is_guid(const char *text, struct guid *ret)
{
        struct scan s = { text, text + strlen(text) };

        return strlen(text) <= strlen("0x") + 16 && scan_word(&s, "0x") && scan_number(&s, 16, UINT64_MAX, &ret->v) && s.p == s.end;
}

int guid_argument(struct context *ctx, const char *text, struct guid *ret)
{
        if (is_guid(text, ret))
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl pins lists the GUIDs of nodes",
                              "'%s' is not a GUID (expected 0x and up to 16 hex digits)", text);
}

uint32_t find_node_of(const struct subnet *s, struct guid guid)
{
        uint32_t port = subnet_find_endport(s, guid), node = subnet_find_node(s, guid);

        return node == SUBNET_NONE && port != SUBNET_NONE ? s->ports[port].node : node;
}

/* Whether the node gives itself a name that is not pinned to it, but to another node or to none. */
static bool wants_name(const struct pins *p, const struct subnet_node *node)
{
        const struct pin *pin = pins_find(p, node->guid);

        return !node->incomplete && !pins_is_unnamed(node) && !(pin && pin_is_of(pin, node));
}

static int complain_guid(struct context *ctx, const char *name, const char *guid, uint32_t node)
{
        const struct subnet_node *n = node == SUBNET_NONE ? NULL : &ctx->subnet->nodes[node];
        struct findings *f = &ctx->findings;

        if (!n)
                return findings_error(f, FINDING_SELECTOR_NO_MATCH, "pkeyctl pins lists who claims which name",
                                      "%s is not a node or port in the fabric; nothing was accepted", guid);
        if (n->incomplete || pins_is_unnamed(n))
                return findings_error(f, FINDING_SELECTOR_NO_MATCH, "wait until the host has set its name",
                                      "%s has no name yet ('%s'); nothing was accepted", guid, n->description);
        if (name && strcmp(n->name, name) != 0)
                return findings_error(f, FINDING_SELECTOR_NO_MATCH, NULL, "%s calls itself '%s', not '%s'; nothing was accepted", guid,
                                      n->description, name);
        return findings_error(f, FINDING_SELECTOR_NO_MATCH, NULL, "'%s' is already pinned to %s; nothing was accepted",
                              n->description, guid);
}

static int choose_by_guid(struct context *ctx, const char *name, const char *text, struct pin_changes *c)
{
        struct guid guid;
        uint32_t node;
        int r = guid_argument(ctx, text, &guid);

        if (r < 0)
                return r;
        node = find_node_of(ctx->subnet, guid);
        if (node == SUBNET_NONE || (name && strcmp(ctx->subnet->nodes[node].name, name) != 0) ||
            !wants_name(&ctx->remembered->pins, &ctx->subnet->nodes[node]))
                return complain_guid(ctx, name, text, node);
        c->nodes[c->n++] = node;
        return 0;
}

static int complain_name(struct context *ctx, const char *name, uint32_t n_strangers, const char *list)
{
        if (n_strangers > 1)
                return findings_error(&ctx->findings, FINDING_SELECTOR_PARTIAL,
                                      arena_printf(ctx->arena, "pkeyctl pin accept NAME GUID accepts one of them: %s", list ?: "?"),
                                      "%u nodes claim the name '%s'; nothing was accepted", n_strangers, name);
        return findings_error(&ctx->findings, FINDING_SELECTOR_NO_MATCH, "pkeyctl pins lists who claims which name",
                              "no node claims the name '%s'; nothing was accepted", name);
}

/* Nodes that have the name already, and changed their device, cannot be impostors; of others there may be one. */
static int choose_by_name(struct context *ctx, const char *name, struct pin_changes *c)
{
        const struct pins *p = &ctx->remembered->pins;
        _cleanup_text_ struct text list = {};
        uint32_t n_strangers = 0;
        const char *text;

        for (uint32_t i = 0; i < ctx->subnet->n_nodes; i++) {
                const struct subnet_node *node = &ctx->subnet->nodes[i];
                const struct pin *pin = pins_find(p, node->guid);

                if (strcmp(node->name, name) != 0 || !wants_name(p, node))
                        continue;
                if (!pin || strcmp(pin->name.name, name) != 0)
                        text_add(&list, "%s0x%016" PRIx64, n_strangers++ > 0 ? ", " : "", node->guid.v);
                c->nodes[c->n++] = i;
        }
        text = output_taken(ctx, &list);
        return c->n == 0 || n_strangers > 1 ? complain_name(ctx, name, n_strangers, text) : 0;
}

static int choose(struct context *ctx, struct pin_changes *c)
{
        const char *name = ctx->arguments[0], *guid = ctx->arguments[1];
        struct guid ignored;

        c->nodes = arena_new_array(ctx->arena, uint32_t, ctx->subnet->n_nodes);
        if (!c->nodes)
                return -ENOMEM;
        if (guid)
                return choose_by_guid(ctx, name, guid, c);
        if (is_guid(name, &ignored))
                return choose_by_guid(ctx, NULL, name, c);
        return choose_by_name(ctx, name, c);
}

static int ask_to_accept(struct context *ctx, const struct pin_changes *c)
{
        if (!ctx->options->json)
                text_proposal(ctx, c);
        return ask_person(ctx, "Accept %s? The policy gives a node the partitions of its name.", c->n == 1 ? "this name" : "these names");
}

int command_pin_accept(struct context *ctx)
{
        static const struct printer printer = { text_accepted, json_accepted, QUIET };
        struct pin_changes c = {};
        int r;

        note_off(ctx);
        r = remember_pins(ctx, &c) ?: choose(ctx, &c) ?: ask_to_accept(ctx, &c) ?:
            store_change(ctx, "nothing was accepted", accept_nodes, &c) ?: output(ctx, &printer, EXIT_DONE, &c);
        pins_done(&c.before);
        return r;
}

/* --- pin drop -------------------------------------------------------------------------------------------------------- */

static bool is_dropped(const struct pin_changes *c, uint32_t i)
{
        return strcmp(c->before.items[i].name.name, c->dropped) == 0;
}

static uint32_t count_dropped(const struct pin_changes *c)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < c->before.n; i++)
                n += is_dropped(c, i);
        return n;
}

static void json_dropped(struct doc *d, const void *result)
{
        const struct pin_changes *c = result;

        doc_add(d, d->root, "{s:o}", "dropped",
                JSON_ARRAY_IF(i, c->before.n, is_dropped(c, (uint32_t) i), pin_object(&c->before.items[i])));
}

static void text_to_drop(const struct pin_changes *c)
{
        for (uint32_t i = 0; i < c->before.n; i++)
                if (is_dropped(c, i))
                        printf("'%s' is pinned to 0x%016" PRIx64 "\n", c->before.items[i].name.description, c->before.items[i].node.v);
}

static void text_dropped(struct context *, const void *result)
{
        const struct pin_changes *c = result;
        uint32_t n = count_dropped(c);

        printf("%u pin%s of '%s' dropped; the next sweep of pkeyd binds the name anew\n", n, text_plural(n), c->dropped);
}

static int drop_name(struct context *ctx, bool, struct store_transaction *t, void *userdata)
{
        const struct pin_changes *c = userdata;
        int r = pins_drop(&ctx->remembered->pins, c->dropped);

        if (r < 0)
                return r;
        records_put_pins(t, &ctx->remembered->pins);
        return 0;
}

static int ask_to_drop(struct context *ctx, const struct pin_changes *c)
{
        if (count_dropped(c) == 0)
                return findings_error(&ctx->findings, FINDING_SELECTOR_NO_MATCH, "pkeyctl pins lists the names that are pinned",
                                      "the name '%s' is not pinned; nothing was dropped", c->dropped);
        if (!ctx->options->json)
                text_to_drop(c);
        return ask_person(ctx, "Drop the name '%s'? The next sweep binds it to the nodes that have it then.", c->dropped);
}

int command_pin_drop(struct context *ctx)
{
        static const struct printer printer = { text_dropped, json_dropped, QUIET };
        struct pin_changes c = { .dropped = ctx->arguments[0] };
        int r;

        note_off(ctx);
        r = remember_pins(ctx, &c) ?: ask_to_drop(ctx, &c) ?: store_change(ctx, "nothing was dropped", drop_name, &c) ?:
            output(ctx, &printer, EXIT_DONE, &c);
        pins_done(&c.before);
        return r;
}
