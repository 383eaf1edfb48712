/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "util/text.h"
#include "util/vector.h"

/* The answer to a request. */
struct lease_result {
        const char *outcome; /* "granted", ...: see org.pkeyd1(5) */
        const char *text;
        struct seen_lease lease;
};

struct lease_list {
        struct seen_lease *items;
        size_t n, allocated;
};

/* --- output ---------------------------------------------------------------------------------------------------------- */

static bool is_at_index0(const struct seen_lease *l, const struct seen_member *m)
{
        size_t i = LOWER_BOUND(guid, l->index0.items, l->index0.n, guid->v < m->port.v);

        return i < l->index0.n && l->index0.items[i].v == m->port.v;
}

static void text_members(struct context *ctx, const struct seen_lease *l)
{
        const struct seen_members *members = &l->members;
        struct text_table t;

        text_table_begin(&t, "PORT|PORT GUID|>INDEX|P_KEY|STATE", 0);
        for (size_t i = 0; i < members->n; i++) {
                const struct seen_member *m = &members->items[i];
                bool confirmed = strcmp(m->state, "confirmed") == 0, released = strcmp(m->state, "released") == 0;

                text_table_row(&t, confirmed || released ? NULL : "yellow", "%s\t0x%016" PRIx64 "\t%s\t0x%04x\t%s%s", m->name, m->port.v,
                               confirmed ? output_format(ctx, "%u", m->index) : "", m->key.v, m->state,
                               is_at_index0(l, m) ? " (for index 0)" : "");
        }
        text_table_print(ctx, &t);
}

static void text_sentence(struct context *ctx, const void *result)
{
        const struct lease_result *r = result;

        output_sentence(ctx, r->text);
}

/* Of a new lease, whose members are news. */
static void text_result(struct context *ctx, const void *result)
{
        const struct lease_result *r = result;

        text_sentence(ctx, result);
        if (ctx->status != EXIT_REFUSED && !ctx->options->quiet)
                text_members(ctx, &r->lease);
}

static json_t *lease_or_null(struct doc *d, const struct seen_lease *lease)
{
        return lease->id ? json_lease(d, lease, false) : json_null();
}

static void json_result(struct doc *d, const void *result)
{
        const struct lease_result *r = result;

        doc_add(d, d->root, "{s:o, s:o, s:o}", "outcome", doc_text(r->outcome), "text", doc_text(r->text), "lease",
                lease_or_null(d, &r->lease));
}

/* An outcome that is not in the list means that nothing was changed. */
static enum exit_status status_of(const char *outcome)
{
        static const char *const done[] = { "granted", "edited", "renewed", "released" }, *const partial[] = { "partial", "failed", "releasing" };

        if (text_is_one_of(outcome, done, ELEMENTS(done)))
                return EXIT_DONE;
        return text_is_one_of(outcome, partial, ELEMENTS(partial)) ? EXIT_PARTIAL : EXIT_REFUSED;
}

/* The reply of a method that changes something. */
static int show_reply(struct context *ctx, const struct printer *printer, sd_bus_message *reply)
{
        struct lease_result result = {};
        int r = sd_bus_message_read(reply, "ss", &result.outcome, &result.text);

        if (r < 0)
                return bus_client_complain(ctx, r);
        r = bus_client_read(ctx, reply, &seen_lease_fields, &result.lease, NULL) ?: bus_client_read_findings(ctx, reply);
        return r < 0 ? r : output(ctx, printer, status_of(result.outcome), &result);
}

/* --- create, renew, release ------------------------------------------------------------------------------------------ */

static const char usage[] = "usage: pkeyctl lease create --pool POOL --id ID --members SELECTORS [--for TIME]; pkeyctl lease edit ID "
                            "--pool POOL --add|--remove|--set SELECTORS; pkeyctl lease renew ID --for TIME";

static void need_option(struct context *ctx, bool is_given, const char *option)
{
        if (!is_given)
                (void) findings_error(&ctx->findings, FINDING_USAGE, usage, "--%s is missing", option);
}

int command_lease_create(struct context *ctx)
{
        static const struct printer printer = { text_result, json_result, OK_IF_DONE };
        _cleanup_message_ sd_bus_message *reply = NULL;
        const struct options *o = ctx->options;
        int r;

        need_option(ctx, o->lease.pool, "pool");
        need_option(ctx, o->lease.id, "id");
        need_option(ctx, o->lease.members, "members");
        if (findings_refuse(&ctx->findings))
                return -EBADMSG;
        r = bus_client_call(ctx, BUS_LEASES, "Create", BUS_NO_TIMEOUT, &reply, "sssqsttb", o->lease.pool, o->lease.id,
                            o->lease.members, o->lease.base, o->lease.membership ?: "", o->lease.seconds,
                            (uint64_t) (o->wait / USEC_PER_SEC), o->lease.partial);
        return r < 0 ? r : show_reply(ctx, &printer, reply);
}

int command_lease_edit(struct context *ctx)
{
        static const struct printer printer = { text_result, json_result, OK_IF_DONE };
        _cleanup_message_ sd_bus_message *reply = NULL;
        const struct options *o = ctx->options;
        const char *what = o->lease.add ? "add" : o->lease.remove ? "remove" : "set";
        const char *members = o->lease.add ?: o->lease.remove ?: o->lease.set;
        int r;

        need_option(ctx, o->lease.pool, "pool");
        if (!!o->lease.add + !!o->lease.remove + !!o->lease.set != 1)
                (void) findings_error(&ctx->findings, FINDING_USAGE, usage, "one of --add, --remove and --set is needed");
        else if (o->lease.remove && o->lease.index0)
                (void) findings_error(&ctx->findings, FINDING_USAGE, usage, "--index0 is for members that are added (accepted: with --add "
                                      "or --set)");
        if (findings_refuse(&ctx->findings))
                return -EBADMSG;
        r = bus_client_call(ctx, BUS_LEASES, "EditWith", BUS_NO_TIMEOUT, &reply, "sssqa(ssb)a{sv}", o->lease.pool, ctx->arguments[0],
                            what, o->lease.base, 1, members, o->lease.membership ?: "", o->lease.index0, 0);
        return r < 0 ? r : show_reply(ctx, &printer, reply);
}

static const struct printer sentence_printer = { text_sentence, json_result, OK_IF_DONE };

int command_lease_renew(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;
        uint64_t seconds = ctx->options->lease.seconds;

        need_option(ctx, seconds, "for");
        if (findings_refuse(&ctx->findings))
                return -EBADMSG;
        return bus_client_call(ctx, BUS_LEASES, "Renew", BUS_NO_TIMEOUT, &reply, "st", ctx->arguments[0], seconds) ?:
               show_reply(ctx, &sentence_printer, reply);
}

int command_lease_release(struct context *ctx)
{
        _cleanup_message_ sd_bus_message *reply = NULL;

        return bus_client_call(ctx, BUS_LEASES, "Release", BUS_NO_TIMEOUT, &reply, "s", ctx->arguments[0]) ?:
               show_reply(ctx, &sentence_printer, reply);
}

/* --- list, show ------------------------------------------------------------------------------------------------------ */

static void text_list(struct context *ctx, const void *result)
{
        const struct lease_list *list = result;
        struct text_table t;

        if (list->n == 0)
                puts("there are no leases");
        text_table_begin(&t, "ID|POOL|P_KEY|STATE|>PORTS|OWNER|ENDS", 0);
        for (size_t i = 0; i < list->n; i++) {
                const struct seen_lease *l = &list->items[i];

                text_table_row(&t, NULL, "%s\t%s\t0x%04x\t%s\t%s\t%s\t%s", l->id ?: "?", l->pool ?: "?", (unsigned) l->p_key,
                               l->state ?: "?", output_format(ctx, "%" PRIu64 "/%" PRIu64, l->n_confirmed, l->n_members), l->owner ?: "?",
                               output_time(ctx, l->ends));
        }
        text_table_print(ctx, &t);
}

static void json_list(struct doc *d, const void *result)
{
        const struct lease_list *list = result;

        doc_add(d, d->root, "{s:o}", "leases", JSON_ARRAY(i, list->n, json_lease(d, &list->items[i], true)));
}

static int read_list(struct context *ctx, sd_bus_message *m, struct lease_list *list)
{
        int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

        if (r < 0)
                return bus_client_complain(ctx, r);
        while (sd_bus_message_at_end(m, 0) == 0) {
                if (VECTOR_GROW(ctx->arena, list->items, list->n, list->allocated) < 0)
                        return -ENOMEM;
                list->items[list->n] = (struct seen_lease) {};
                r = bus_client_read(ctx, m, &seen_lease_fields, &list->items[list->n++], NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

int command_lease_list(struct context *ctx)
{
        static const struct printer printer = { text_list, json_list, QUIET };
        _cleanup_message_ sd_bus_message *reply = NULL;
        struct lease_list list = {};

        return bus_client_call(ctx, BUS_LEASES, "List", BUS_NO_TIMEOUT, &reply, "") ?: read_list(ctx, reply, &list) ?:
               output(ctx, &printer, EXIT_DONE, &list);
}

static void text_lease(struct context *ctx, const void *result)
{
        const struct seen_lease *l = result;

        printf("lease %s: %s\n", l->id ?: "?", l->state ?: "?");
        if (l->why)
                printf("  why           %s\n", l->why);
        if (l->held)
                printf("  held          %s\n", l->held);
        printf("  pool          %s\n", l->pool ?: "?");
        printf("  P_Key         0x%04x, %s members\n", (unsigned) l->p_key, l->membership ?: "?");
        printf("  members       %s\n", l->is_open ? "open: pkeyctl lease edit changes them" : l->selectors ?: "?");
        printf("  owner         %s\n", l->owner ?: "?");
        printf("  created       %s\n", output_time(ctx, l->created));
        if (l->updated != l->created)
                printf("  changed       %s\n", output_time(ctx, l->updated));
        printf("  ends          %s%s\n", l->ends ? output_time(ctx, l->ends) : "when it is released",
               l->is_kept ? "" : ", or after a while without members");
        if (l->ip_over_ib)
                printf("  IPoIB         yes\n");
        if (l->mtu)
                printf("  QoS           MTU %" PRIu64 " KiB, service level %" PRIu64 ", %s Gb/s\n", l->mtu, l->service_level,
                       output_format(ctx, "%g", (double) l->rate_limit / 10));
        text_members(ctx, l);
}

static void json_shown(struct doc *d, const void *result)
{
        doc_add(d, d->root, "{s:o}", "lease", json_lease(d, result, false));
}

int command_lease_show(struct context *ctx)
{
        static const struct printer printer = { text_lease, json_shown, QUIET };
        _cleanup_message_ sd_bus_message *reply = NULL;
        struct seen_lease lease = {};

        return bus_client_call(ctx, BUS_LEASES, "Show", BUS_NO_TIMEOUT, &reply, "s", ctx->arguments[0]) ?:
               bus_client_read(ctx, reply, &seen_lease_fields, &lease, NULL) ?:
               output(ctx, &printer, EXIT_DONE, &lease);
}
