/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "session/held_output.h"
#include "store_commands/store_change.h"
#include "store_commands/store_commands.h"
#include "store_commands/vouches.h"

#define NOTHING "nothing was forgotten"

/* --- printers -------------------------------------------------------------------------------------------------------- */

static json_t *vouch_object(struct doc *d, const struct held_context *context, const struct vouch *v)
{
        json_t *o = json_named_port(context, v->name);

        doc_add(d, o, "{s:o, s:o, s:o, s:o}", "may_hold", v->may_hold_anything ? json_null() : doc_p_keys(d, v->may_hold, v->n_may_hold),
                "last_read", json_seconds(v->by.read_at), "vouched_by", doc_text(v->who), "vouched_at", doc_time(v->at));
        return o;
}

static void json_vouches(struct doc *d, const void *result)
{
        const struct vouches *r = result;
        const struct held_context context = output_held_context(d->ctx);

        doc_add(d, d->root, "{s:o}", "vouches", JSON_ARRAY(i, r->n, vouch_object(d, &context, &r->items[i])));
}

static const char *label_of(struct context *ctx, const struct vouch *v)
{
        const struct held_context context = output_held_context(ctx);
        struct held_port port;

        return output_or_fail(ctx, held_port_find(&context, v->name, &port) < 0 ? NULL : port.label);
}

static const char *may_hold(struct context *ctx, const struct vouch *v)
{
        if (v->may_hold_anything)
                return "any P_Key, for its table was never read";
        return v->n_may_hold == 0 ? "no P_Key" : text_p_keys(ctx, v->may_hold, v->n_may_hold);
}

static void text_proposal(struct context *ctx, const struct vouches *r)
{
        const struct held_context context = output_held_context(ctx);
        _cleanup_text_ struct text t = {};

        for (size_t i = 0; i < r->n; i++) {
                const struct vouch *v = &r->items[i];

                held_add_reason(&context, &v->by, &t);
                text_add(&t, "\n   may hold %s", may_hold(ctx, v));
                if (!v->may_hold_anything && held_has_dates(&context))
                        text_add(&t, " (last read %s)", context.time(ctx->arena, v->by.read_at) ?: "?");
                text_add(&t, "\n");
        }
        fputs(output_taken(ctx, &t), stdout);
}

static void text_forgotten(struct context *ctx, const void *result)
{
        const struct vouches *r = result;

        for (size_t i = 0; i < r->n; i++)
                printf("%s is assumed to have no P_Key until it answers or comes back (vouched by %s); pkeyd continues at its next sweep\n",
                       label_of(ctx, &r->items[i]), r->items[i].who);
}

static void text_vouches(struct context *ctx, const void *result)
{
        const struct held_context context = output_held_context(ctx);
        const struct vouches *r = result;
        struct text_table t;

        if (r->n == 0) {
                puts("there are no vouches");
                return;
        }
        text_table_begin(&t, "PORT|VOUCHED BY|AT|*MAY HOLD", 0);
        for (size_t i = 0; i < r->n; i++)
                text_table_row(&t, NULL, "%s\t%s\t%s\t%s", label_of(ctx, &r->items[i]), r->items[i].who,
                               context.time(ctx->arena, r->items[i].at / USEC_PER_SEC) ?: "?", may_hold(ctx, &r->items[i]));
        text_table_print(ctx, &t);
}

/* --- the fabric ------------------------------------------------------------------------------------------------------ */

/* Only the tables of what was named: a port that answers now has nothing to be forgotten. */
int forget_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n)
{
        struct endports lists[MAX_FORGET];
        size_t n = 0;

        for (; ctx->arguments[n]; n++) {
                int r = pipeline_find(ctx, NULL, ctx->subnet, NULL, ctx->arguments[n], &lists[n]);

                if (r < 0)
                        return r;
        }
        return pipeline_around(ctx, lists, n, ret, ret_n);
}

/* --- which ports ----------------------------------------------------------------------------------------------------- */

/* What one argument selects. */
struct found {
        uint32_t n, n_fresh, n_expired;
        uint32_t n_partial; /* there, and their tables were not read: discovery was not complete */
        const char *label;  /* of one of them */
};

static bool is_partial(const struct subnet *s, struct knowledge_name name)
{
        uint32_t port = name.kind == KNOWLEDGE_ENDPORT ? subnet_find_port_of(s, name.node, name.number) : SUBNET_NONE;

        return port != SUBNET_NONE && subnet_port_is_incomplete(s, &s->ports[port]);
}

static int take(struct context *ctx, uint32_t record, struct vouches *all, struct found *found)
{
        const struct held_context context = output_held_context(ctx);
        const struct knowledge_record *r = knowledge_get(ctx->remembered->knowledge, record);
        const bool partial = is_partial(ctx->subnet, r->name);
        struct held_port port;

        if (held_port_find(&context, r->name, &port) < 0)
                return -ENOMEM;
        found->n++;
        found->n_fresh += r->fresh;
        found->n_expired += r->expired;
        found->n_partial += partial;
        found->label = port.label;
        return r->fresh || r->expired || partial || vouches_have(all, r->name) ? 0 : vouches_add(ctx, record, all);
}

/* `extended`: the fabric, with endports that are gone where they were last. */
static int take_selected(struct context *ctx, const struct subnet *extended, const char *text, struct vouches *all,
                         struct found *found)
{
        struct endports selected;
        int r = pipeline_find(ctx, NULL, extended, NULL, text, &selected);

        for (uint32_t i = 0; r == 0 && i < selected.n; i++) {
                uint32_t record = knowledge_find_port(ctx->remembered->knowledge, extended, selected.ports[i]);

                if (record != KNOWLEDGE_NONE)
                        r = take(ctx, record, all, found);
        }
        return r;
}

/* Finds ports by the text that a held base printed for them, or by the place of a device that was never discovered. */
static int take_named(struct context *ctx, const char *text, bool by_place, struct vouches *all, struct found *found)
{
        const struct held_context context = output_held_context(ctx);
        const struct knowledge *k = ctx->remembered->knowledge;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < knowledge_n_records(k); i++) {
                struct held_port port;
                const char *name;

                if (knowledge_get(k, i)->name.kind == KNOWLEDGE_LEAF)
                        continue;
                r = held_port_find(&context, knowledge_get(k, i)->name, &port);
                name = r < 0 ? NULL : by_place ? port.place : port.forget;
                if (name && strcasecmp(name, text) == 0)
                        r = take(ctx, i, all, found);
        }
        return r;
}

static bool is_any_left(const struct found *found)
{
        return found->n > found->n_fresh + found->n_expired + found->n_partial;
}

static int complain(struct context *ctx, const char *text, const struct found *found)
{
        struct findings *f = &ctx->findings;

        if (found->n == 0)
                return findings_error(f, FINDING_SELECTOR_NO_MATCH, "a host, a GUID, or @SWITCH/PORT, as pkeyctl show held has it",
                                      "pkeyd knows no port '%s'; nothing was forgotten", text);
        if (found->n_fresh > 0)
                return findings_error(f, FINDING_FORGET_ANSWERS, "pkeyctl show port shows its table",
                                      "%s answers, so its table is known; nothing was forgotten", found->label);
        if (found->n_partial > 0)
                return findings_error(f, FINDING_FORGET_ANSWERS,
                                      "query it and its switch with smpquery (nodedesc, portinfo), or unplug it",
                                      "%s is in the fabric, but it, or the switch that it is plugged into, did not answer all discovery queries, so "
                                      "its table was not read; nothing was forgotten", found->label);
        return findings_error(f, FINDING_FORGET_EXPIRED, NULL,
                              "%s has been gone for longer than absent_hold, so nothing waits for it; nothing was forgotten",
                              found->label);
}

/* The text that a held base printed selects that port only, even if a selector of the same text would select more. */
static int take_argument(struct context *ctx, const struct subnet *extended, const char *text, struct vouches *all)
{
        struct found found = {};
        int r = take_named(ctx, text, false, all, &found);

        if (r == 0 && !is_any_left(&found))
                r = take_selected(ctx, extended, text, all, &found);
        if (r == 0 && found.n == 0)
                r = take_named(ctx, text, true, all, &found);
        return r < 0 || is_any_left(&found) ? r : complain(ctx, text, &found);
}

/* --- the store ------------------------------------------------------------------------------------------------------- */

/* Stores the names of all ports, too: show vouches needs them. Another process stored them if it stored something meanwhile. */
static int vouch(struct context *ctx, bool is_reread, struct store_transaction *t, void *userdata)
{
        struct remembered *m = ctx->remembered;
        int r = vouches_store(ctx, NOTHING, t, userdata);

        if (r == 0 && !is_reread)
                r = known_learn(&m->known, ctx->subnet, clock_now(), clock_wall() / USEC_PER_SEC);
        if (r < 0)
                return r;
        records_put_known(t, &m->known);
        return 0;
}

/* --- the commands ---------------------------------------------------------------------------------------------------- */

static int ask(struct context *ctx, const struct vouches *all)
{
        bool is_one = all->n == 1;

        if (!ctx->options->json)
                text_proposal(ctx, all);
        if (ctx->output_r < 0)
                return ctx->output_r;
        return ask_person(ctx, "Do you vouch that %s no P_Key? If %s after all, ports that must not talk to %s will be able to.",
                          is_one ? "this port holds" : "these ports hold", is_one ? "it holds a P_Key" : "they hold a P_Key",
                          is_one ? "it" : "them");
}

int command_forget(struct context *ctx)
{
        static const struct printer printer = { text_forgotten, json_vouches, QUIET };
        struct vouches all = {};
        struct subnet *extended;
        int r = store_see_fabric(ctx) ?: known_extend(ctx->arena, ctx->known, ctx->subnet, &extended);

        for (char **argument = ctx->arguments; r == 0 && *argument; argument++)
                r = take_argument(ctx, extended, *argument, &all);
        return r ?: ask(ctx, &all) ?: store_change(ctx, NOTHING, vouch, &all) ?:
               output(ctx, &printer, EXIT_DONE, &all);
}

/* As they are in the store: no MAD is sent. */
int command_show_vouches(struct context *ctx)
{
        static const struct printer printer = { text_vouches, json_vouches, QUIET };
        const struct knowledge *k = ctx->remembered->knowledge;
        struct vouches all = {};
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < knowledge_n_records(k); i++)
                if (knowledge_get(k, i)->vouched)
                        r = vouches_add(ctx, i, &all);
        return r < 0 ? r : output(ctx, &printer, EXIT_DONE, &all);
}
