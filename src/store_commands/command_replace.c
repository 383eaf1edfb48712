/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pins/pins.h"
#include "policy/policy_fix.h"
#include "session/policy_edit.h"
#include "shell/file.h"
#include "store_commands/store_change.h"
#include "store_commands/store_commands.h"
#include "store_commands/vouches.h"
#include "util/vector.h"

/* An adapter or a switch that took the place of another one. */
struct replacement {
        struct guid old;               /* node GUIDs */
        uint32_t node;                 /* the new one, of ctx->subnet */
        const char *name;              /* of the pin that moves, a copy; NULL: the old node has none */
        struct guid_change *changes;   /* of the node, and of each of its ports */
        size_t n_changes, allocated;
        struct policy_edit file;       /* path NULL: there is no policy */
        int n_lines;                   /* GUIDs in the policy that change */
        bool written;
        struct vouches vouches;        /* for ports of the old node */
};

static struct guid new_guid(const struct context *ctx, const struct replacement *r)
{
        return ctx->subnet->nodes[r->node].guid;
}

/* --- which nodes ----------------------------------------------------------------------------------------------------- */

static int add_change(struct context *ctx, struct replacement *r, struct guid from, struct guid to)
{
        return VECTOR_ADD(ctx->arena, r->changes, r->n_changes, r->allocated, (struct guid_change) { from, to });
}

/* Replaces a port GUID by that of the new node's port with the same number; if there is none, it stays. */
static int add_port(struct context *ctx, struct replacement *r, struct guid port_guid, uint8_t number)
{
        uint32_t port = subnet_find_port(ctx->subnet, r->node, number);

        if (port_guid.v == r->old.v || port == SUBNET_NONE || ctx->subnet->ports[port].role != PORT_ENDPORT)
                return 0;
        return add_change(ctx, r, port_guid, ctx->subnet->ports[port].guid);
}

/* The ports of the old node as it was when it was last seen, which may be now. */
static int find_changes(struct context *ctx, struct replacement *r)
{
        const struct known *k = &ctx->remembered->known;
        const struct subnet *s = ctx->subnet;
        uint32_t node = subnet_find_node(s, r->old);
        int e = add_change(ctx, r, r->old, new_guid(ctx, r));

        for (uint32_t i = 0; e == 0 && i < k->n; i++)
                if (k->ports[i].node_guid.v == r->old.v)
                        e = add_port(ctx, r, k->ports[i].port_guid, k->ports[i].number);
        for (uint32_t i = 0; e == 0 && node != SUBNET_NONE && i < s->n_ports; i++)
                if (s->ports[i].node == node && s->ports[i].role == PORT_ENDPORT && !known_find(k, s->ports[i].guid))
                        e = add_port(ctx, r, s->ports[i].guid, s->ports[i].number);
        return e;
}

/* The GUID of a node, or of one of its ports that was seen once. */
static struct guid find_old(struct context *ctx, struct guid guid)
{
        const struct known_port *port = known_find(&ctx->remembered->known, guid);
        uint32_t node = find_node_of(ctx->subnet, guid);

        if (pins_find(&ctx->remembered->pins, guid))
                return guid;
        if (node != SUBNET_NONE)
                return ctx->subnet->nodes[node].guid;
        return port ? port->node_guid : guid;
}

static int find_nodes(struct context *ctx, struct replacement *r)
{
        struct guid old, new;
        int e = guid_argument(ctx, ctx->arguments[0], &old) ?: guid_argument(ctx, ctx->arguments[1], &new);

        if (e < 0)
                return e;
        r->old = find_old(ctx, old);
        r->node = find_node_of(ctx->subnet, new);
        if (r->node == SUBNET_NONE)
                return findings_error(&ctx->findings, FINDING_SELECTOR_NO_MATCH, "connect the new adapter first",
                                      "%s is not a node or port in the fabric; nothing was replaced", ctx->arguments[1]);
        if (new_guid(ctx, r).v == r->old.v)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "%s and %s are the same node; nothing was replaced",
                                      ctx->arguments[0], ctx->arguments[1]);
        return find_changes(ctx, r);
}

static int find_pin(struct context *ctx, struct replacement *r)
{
        const struct pin *pin = pins_find(&ctx->remembered->pins, r->old);

        if (!pin)
                return 0;
        r->name = arena_strdup(ctx->arena, pin->name.description);
        return r->name ? 0 : -ENOMEM;
}

/* --- the policy ------------------------------------------------------------------------------------------------------ */

static int complain_lines(struct context *ctx, const struct replacement *r)
{
        return findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, "edit the file: pkeyctl show ports lists the GUIDs",
                              "%s: a GUID of the old node cannot be located in the file (for example in a multi-line text); nothing was "
                              "replaced", r->file.path);
}

/* A policy with errors has no lines that are certain. The default file may be absent. */
static int find_lines(struct context *ctx, struct replacement *r)
{
        const char *path = ctx->options->policy ?: ctx->fabric.policy_file;
        struct policy_edit *e = &r->file;
        struct policy *policy;
        int n;

        if (!ctx->options->policy && access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        e->path = path;
        n = file_read_found(ctx->arena, path, POLICY_MAX_FILE_SIZE, &ctx->findings, &e->before, &e->n_before) ?:
            policy_parse(ctx->arena, path, e->before, e->n_before, &ctx->findings, &policy) ?:
            policy_change_guids(ctx->arena, policy, e->before, e->n_before, r->changes, r->n_changes, &e->after, &e->n_after);
        if (n == -EINVAL)
                return complain_lines(ctx, r);
        if (n < 0)
                return n;
        r->n_lines = n;
        return 0;
}

/* --- printers -------------------------------------------------------------------------------------------------------- */

static void json_replaced(struct doc *d, const void *result)
{
        const struct replacement *r = result;

        doc_add(d, d->root, "{s:o, s:o, s:o, s:i, s:b, s:i}", "old", doc_guid(r->old), "new", doc_guid(new_guid(d->ctx, r)), "name",
                doc_text(r->name), "guids", r->n_lines, "written", r->written,
                "ports_vouched", (int) r->vouches.n);
}

static void text_replaced(struct context *ctx, const void *result)
{
        const struct replacement *r = result;

        if (r->name)
                printf("'%s' is pinned to 0x%016" PRIx64 "; pkeyd continues at its next sweep\n", r->name, new_guid(ctx, r).v);
        if (r->vouches.n > 0)
                printf("0x%016" PRIx64 " is assumed to have no P_Key until it is seen again\n", r->old.v);
        if (r->written)
                printf("%s: %d GUID%s changed; pkeyctl reload puts the file in force\n", r->file.path, r->n_lines,
                       text_plural((size_t) r->n_lines));
        else if (r->n_lines > 0)
                printf("%s has %d GUID%s of the old node; pkeyctl replace --write changes the lines above\n", r->file.path,
                       r->n_lines, text_plural((size_t) r->n_lines));
}

static void text_proposal(struct context *ctx, const struct replacement *r)
{
        const struct subnet_node *node = &ctx->subnet->nodes[r->node];

        if (r->name && !ctx->options->json)
                printf("0x%016" PRIx64 " ('%s') gets the name '%s' of 0x%016" PRIx64 "\n", node->guid.v, node->description, r->name,
                       r->old.v);
        if (r->n_lines > 0)
                policy_edit_show(ctx, &r->file);
}

/* --- the command ----------------------------------------------------------------------------------------------------- */

static const char *nothing_of(const struct replacement *r)
{
        return r->written ? "only the policy was changed" : "nothing was replaced";
}

static int move_pin(struct context *ctx, struct replacement *r)
{
        int e = pins_move(&ctx->remembered->pins, r->old, ctx->subnet, r->node, clock_wall() / USEC_PER_SEC);

        if (e == -ENOENT)
                return findings_error(&ctx->findings, FINDING_HOST_BUSY, "repeat the command",
                                      "0x%016" PRIx64 " is no longer pinned", r->old.v);
        return e;
}

static int store_replacement(struct context *ctx, bool, struct store_transaction *t, void *userdata)
{
        struct remembered *m = ctx->remembered;
        struct replacement *r = userdata;
        int e = r->name ? move_pin(ctx, r) : 0;

        e = e ?: vouches_store(ctx, nothing_of(r), t, &r->vouches);
        if (e < 0)
                return e;
        records_put_pins(t, &m->pins);
        return 0;
}

static bool writes_policy(const struct context *ctx, const struct replacement *r)
{
        return ctx->options->write && r->n_lines > 0;
}

static bool changes_anything(const struct context *ctx, const struct replacement *r)
{
        return r->name || writes_policy(ctx, r);
}

/* The old adapter was taken out, so nothing has to wait for it: with the answer the person vouches for it, as with forget. */
static int find_vouches(struct context *ctx, struct replacement *r)
{
        const struct knowledge *k = ctx->remembered->knowledge;
        int e = 0;

        if (!changes_anything(ctx, r) || subnet_find_node(ctx->subnet, r->old) != SUBNET_NONE)
                return 0;
        e = store_see_fabric(ctx);
        for (uint32_t i = 0; e == 0 && i < knowledge_n_records(k); i++) {
                const struct knowledge_record *record = knowledge_get(k, i);

                if (record->name.kind == KNOWLEDGE_ENDPORT && record->name.node.v == r->old.v && !record->expired)
                        e = vouches_add(ctx, i, &r->vouches);
        }
        return e;
}

static int ask(struct context *ctx, const struct replacement *r)
{
        const char *old = ctx->arguments[0], *holds = "";

        if (!r->name && r->n_lines == 0)
                return findings_error(&ctx->findings, FINDING_SELECTOR_NO_MATCH, "pkeyctl pins lists the names that are pinned",
                                      "no name is pinned to %s, and the policy does not name it; nothing was replaced", old);
        text_proposal(ctx, r);
        if (ctx->output_r < 0)
                return ctx->output_r;
        if (!changes_anything(ctx, r))
                return 0;
        if (subnet_find_node(ctx->subnet, r->old) == SUBNET_NONE)
                holds = " The old one is assumed to have no P_Key until it is seen again.";
        return ask_person(ctx, "Replace %s by %s%s?%s", old, ctx->arguments[1],
                          writes_policy(ctx, r) ? ", in the policy, too" : "", holds);
}

/* The file first: if it cannot be written, nothing has changed. */
static int carry_out(struct context *ctx, struct replacement *r)
{
        int e = writes_policy(ctx, r) ? policy_edit_write(ctx, &r->file) : 0;

        if (e < 0 || !changes_anything(ctx, r))
                return e;
        r->written = writes_policy(ctx, r);
        return store_change(ctx, nothing_of(r), store_replacement, r);
}

int command_replace(struct context *ctx)
{
        static const struct printer printer = { text_replaced, json_replaced, QUIET };
        struct replacement r = {};
        int e = find_nodes(ctx, &r) ?: find_pin(ctx, &r) ?: find_lines(ctx, &r) ?: find_vouches(ctx, &r) ?:
                ask(ctx, &r) ?: carry_out(ctx, &r);

        return e < 0 ? e : output(ctx, &printer, EXIT_DONE, &r);
}
