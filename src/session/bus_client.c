/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/bus_client.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/bus_properties.h"

#define MAX_FINDINGS        4096
#define LISTED_LEASE_FIELDS ((UINT64_C(1) << (seen_lease_fields.n - 4)) - 1) /* a list lacks the last four */

static const struct bus_field status_fields[] = {
#define X(name, signature, member, kind) FIELD(daemon_status, #name, #member, FIELD_##kind, member),
        BUS_PROPERTIES(X)
#undef X
};
const struct bus_fields daemon_status_fields = BUS_FIELDS(status_fields);

uint64_t daemon_status_bit(size_t offset)
{
        size_t i = 0;

        while (status_fields[i].offset != offset)
                i++;
        return UINT64_C(1) << i;
}

static const struct bus_field violation_fields[] = {
        FIELD(seen_violation, "Kind", "kind", FIELD_TEXT, kind),
        FIELD(seen_violation, "Source", "source", FIELD_TEXT, source),
        FIELD(seen_violation, "Node", "node", FIELD_TEXT, node),
        FIELD(seen_violation, "PortGuid", "port_guid", FIELD_GUID, port_guid),
        FIELD(seen_violation, "Lid", "lid", FIELD_NUMBER, lid),
        FIELD(seen_violation, "Port", "port", FIELD_NUMBER, port),
        FIELD(seen_violation, "Switch", "switch", FIELD_TEXT, switch_name),
        FIELD(seen_violation, "Partition", "partition", FIELD_TEXT, partition),
        FIELD(seen_violation, "PKey", "p_key", FIELD_P_KEY, p_key),
        FIELD(seen_violation, "Count", "count", FIELD_NUMBER, count),
        FIELD(seen_violation, "Total", "total", FIELD_NUMBER, total),
        FIELD(seen_violation, "Ports", "ports", FIELD_NUMBER, n_ports),
        FIELD(seen_violation, "First", "first", FIELD_TIME, first),
        FIELD(seen_violation, "Last", "last", FIELD_TIME, last),
        FIELD(seen_violation, "NamesSender", "names_sender", FIELD_BOOL, names_sender),
        FIELD(seen_violation, "Saturated", "saturated", FIELD_BOOL, saturated),
        FIELD(seen_violation, "Text", "text", FIELD_TEXT, text),
};
const struct bus_fields seen_violation_fields = BUS_FIELDS(violation_fields);

bool daemon_is_in_state(const struct daemon_status *s, const char *state)
{
        return s->state && strcmp(s->state, state) == 0;
}

const char *bus_next_line(const char **rest, int *length)
{
        const char *line = *rest;

        if (!line || *line == '\0')
                return NULL;
        *length = (int) strcspn(line, "\n");
        *rest = line + *length + (line[*length] == '\n');
        return line;
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

#define FIND_TIMEOUT (10 * USEC_PER_SEC) /* pkeyd answers within milliseconds, unless it is stopped or hangs */

/* Without a name, the fabrics of this host are named: one of them may be meant. */
static const char *hint_absent(struct context *ctx)
{
        const char *name = ctx->fabric.name;

        return (name ? NULL : fabric_hint(ctx->arena)) ?:
               arena_printf(ctx->arena, "see systemctl status pkeyd%s%s; check, plan, apply, verify, show, explain and violations --once "
                            "need no daemon", name ? "@" : "", name ?: "");
}

static int complain_absent(struct context *ctx)
{
        const char *name = ctx->fabric.name;

        return findings_error(&ctx->findings, FINDING_DAEMON_ABSENT, hint_absent(ctx), "pkeyd%s%s is not running, or is not on the system "
                              "bus", name ? " of fabric " : "", name ?: "");
}

int bus_client_complain(struct context *ctx, int r)
{
        if (r == -ENOMEM)
                return r;
        return findings_error(&ctx->findings, FINDING_DAEMON_FAILED, NULL, "the system bus: %s", strerror(-r));
}

int bus_client_open(struct context *ctx)
{
        int r = ctx->bus ? 0 : sd_bus_open_system(&ctx->bus);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return findings_error(&ctx->findings, FINDING_DAEMON_ABSENT, hint_absent(ctx),
                                      "pkeyd cannot be reached: there is no system bus: %s", strerror(-r));
        return 0;
}

static bool may_be_carried_out(const sd_bus_error *e, int r)
{
        return sd_bus_error_has_name(e, "org.pkeyd1.Error.NoAnswer") || sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) ||
               r == -ECONNRESET || r == -ENOTCONN;
}

static int complain_error(struct context *ctx, const sd_bus_error *e, int r)
{
        struct findings *f = &ctx->findings;

        if (sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) || sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
            sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT)) /* the name is that of the pkeyd of another fabric */
                return complain_absent(ctx);
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_ACCESS_DENIED))
                return findings_error(f, FINDING_HOST_NO_PERMISSION, "run as root", "permission denied by pkeyd");
        if (sd_bus_error_has_name(e, "org.pkeyd1.Error.NoSuchNode"))
                return findings_error(f, FINDING_USAGE,
                                      "one name, as the tables show it: node0007, 'node0007 mlx5_0/1', leaf07, leaf07/12",
                                      "%s", e->message ?: e->name);
        if (sd_bus_error_has_name(e, "org.pkeyd1.Error.NoSuchLease"))
                return findings_error(f, FINDING_LEASE_NONE, "pkeyctl lease list shows all", "%s", e->message ?: e->name);
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) || r == -ECONNRESET || r == -ENOTCONN)
                return findings_error(f, FINDING_DAEMON_FAILED, "see systemctl status pkeyd",
                                      "pkeyd or the bus ended before pkeyd answered");
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_TIMEOUT)) /* from sd_bus_call() */
                return findings_error(f, FINDING_DAEMON_FAILED, "see systemctl status pkeyd", "pkeyd did not answer in time");
        if (sd_bus_error_is_set(e))
                return findings_error(f, FINDING_DAEMON_FAILED, NULL, "pkeyd answered with an error: %s", e->message ?: e->name);
        return bus_client_complain(ctx, r);
}

int bus_client_call(struct context *ctx, const char *interface, const char *member, uint64_t timeout, sd_bus_message **ret,
                    const char *types, ...)
{
        _cleanup_message_ sd_bus_message *call = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = bus_client_open(ctx);
        va_list ap;

        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(ctx->bus, &call, ctx->fabric.bus_name, ctx->fabric.bus_path, interface, member);
        va_start(ap, types);
        if (r >= 0)
                r = sd_bus_message_appendv(call, types, ap);
        va_end(ap);
        if (r >= 0)
                r = sd_bus_call(ctx->bus, call, timeout, &error, ret);
        ctx->is_unanswered = r < 0 && timeout == BUS_NO_TIMEOUT && may_be_carried_out(&error, r);
        if (r < 0)
                r = complain_error(ctx, &error, r);
        sd_bus_error_free(&error);
        return r < 0 ? r : 0;
}

/* --- dictionaries ---------------------------------------------------------------------------------------------------- */

int bus_client_read(struct context *ctx, sd_bus_message *m, const struct bus_fields *fields, void *ret, uint64_t *seen)
{
        int r = bus_fields_read(ctx->arena, m, fields, ret, seen);

        return r < 0 ? bus_client_complain(ctx, r) : 0;
}

int bus_client_find(struct context *ctx, struct daemon_status *ret)
{
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_bus_ sd_bus *bus = NULL;
        int r = sd_bus_open_system(&bus);

        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &call, ctx->fabric.bus_name, ctx->fabric.bus_path, BUS_INTERFACE, "Status");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, 0);
        if (r >= 0)
                r = sd_bus_call(bus, call, FIND_TIMEOUT, NULL, &reply);
        if (r < 0)
                return r == -ENOMEM || r == -ETIMEDOUT ? r : 0;
        return bus_client_read(ctx, reply, &daemon_status_fields, ret, NULL) ?: 1;
}

/* The port may lead to another fabric than pkeyd's: that needs a state directory of its own. */
static bool is_elsewhere(const struct context *ctx)
{
        const struct options *o = ctx->options;
        struct stat named, pkeyds;

        if (!(o->ca || o->port) || !o->state_dir)
                return false;
        return stat(o->state_dir, &named) < 0 || stat(ctx->fabric.state_dir, &pkeyds) < 0 || named.st_dev != pkeyds.st_dev ||
               named.st_ino != pkeyds.st_ino;
}

int bus_client_find_here(struct context *ctx, struct daemon_status *ret)
{
        return is_elsewhere(ctx) ? 0 : bus_client_find(ctx, ret);
}

/* --- dictionaries as JSON --------------------------------------------------------------------------------------------- */

static json_t *json_member(struct doc *d, const struct seen_member *m)
{
        json_t *index = strcmp(m->state, "confirmed") == 0 ? json_integer(m->index) : json_null();

        return json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", doc_text(m->name), "node_guid", doc_guid(m->node), "port_guid",
                         doc_guid(m->port), "port", m->number, "index", index, "key", doc_p_key(d, m->key), "state", doc_text(m->state));
}

static json_t *json_members(struct doc *d, const struct seen_members *members)
{
        return JSON_ARRAY(i, members->n, json_member(d, &members->items[i]));
}

static json_t *json_guids(const struct seen_guids *guids)
{
        return JSON_ARRAY(i, guids->n, doc_guid(guids->items[i]));
}

static json_t *field_value(struct doc *d, const struct bus_field *f, const void *object)
{
        const void *member = (const char *) object + f->offset;
        uint64_t number = f->kind == FIELD_TEXT || f->kind >= FIELD_MEMBERS ? 0 : bus_field_number(f, object);

        switch (f->kind) {
        case FIELD_TEXT:
                return doc_text(bus_field_text(f, object));
        case FIELD_NUMBER:
                return json_integer((json_int_t) number);
        case FIELD_BOOL:
                return json_boolean(number);
        case FIELD_GUID:
                return number ? doc_guid((struct guid) { number }) : json_null();
        case FIELD_P_KEY:
                return number ? json_sprintf("0x%04x", (unsigned) number) : json_null();
        case FIELD_TIME:
                return doc_time(number);
        case FIELD_IF_SET:
                return doc_number(number);
        case FIELD_MEMBERS:
                return json_members(d, member);
        case FIELD_GUIDS:
                return json_guids(member);
        }
        return NULL;
}

/* Those of the fields whose bits `which` has. */
static json_t *fields_object(struct doc *d, const struct bus_fields *fields, const void *object, uint64_t which)
{
        json_t *o = json_object();

        for (size_t i = 0; i < fields->n; i++)
                if (which & UINT64_C(1) << i)
                        doc_add(d, o, "{s:o}", fields->items[i].json_key, field_value(d, &fields->items[i], object));
        return o;
}

json_t *json_daemon_status(struct doc *d, const struct daemon_status *status, uint64_t which)
{
        return fields_object(d, &daemon_status_fields, status, which);
}

json_t *json_violation(struct doc *d, const struct seen_violation *v)
{
        json_t *o = fields_object(d, &seen_violation_fields, v, UINT64_MAX);

        if (!v->kind && json_object_del(o, "kind") + json_object_del(o, "count") + json_object_del(o, "ports") != 0)
                d->failed = true;
        return o;
}

json_t *json_lease(struct doc *d, const struct seen_lease *lease, bool is_listed)
{
        return fields_object(d, &seen_lease_fields, lease, is_listed ? LISTED_LEASE_FIELDS : UINT64_MAX);
}

void json_violations(struct doc *d, const void *result)
{
        const struct violations_result *r = result;

        doc_add(d, d->root, "{s:o, s:o, s:I}", "since", doc_time(MAX(r->since, r->counted_since)), "counted_since",
                doc_time(r->counted_since), "records", (json_int_t) r->n_all);
        if (r->once)
                doc_add(d, d->root, "{s:i, s:i}", "ports_polled", r->n_polled, "ports_silent", r->n_silent);
        doc_add(d, d->root, "{s:o}", "violations", JSON_ARRAY(i, r->n_items, json_violation(d, &r->items[i])));
}

/* --- violations ------------------------------------------------------------------------------------------------------- */

static int read_items(struct context *ctx, sd_bus_message *m, struct violations_result *result)
{
        struct seen_violation *items;
        uint32_t n_all, n = 0;
        int r = sd_bus_message_read(m, "tu", &result->counted_since, &n_all);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "a{sv}");
        if (r < 0)
                return bus_client_complain(ctx, r);
        items = arena_new_array(ctx->arena, struct seen_violation, n_all);
        if (!items)
                return -ENOMEM;
        while (n < n_all && sd_bus_message_at_end(m, 0) == 0) {
                r = bus_client_read(ctx, m, &seen_violation_fields, &items[n], NULL);
                if (r < 0)
                        return r;
                n++;
        }
        result->items = items;
        result->n_items = n;
        result->n_all = n_all;
        return 0;
}

int violations_request(struct context *ctx, struct violations_result *result)
{
        _cleanup_message_ sd_bus_message *reply = NULL;

        return bus_client_call(ctx, BUS_INTERFACE, "Violations", 0, &reply, "ts", result->since, result->node ?: "") ?:
               read_items(ctx, reply, result);
}

/* --- findings -------------------------------------------------------------------------------------------------------- */

/* pkeyctl apply may have found the same. */
static bool is_found(const struct findings *f, const struct location *where, enum finding_severity severity, const char *text)
{
        for (size_t i = 0; i < f->n; i++) {
                const struct finding *item = &f->items[i];

                if (item->severity == severity && item->where.line == where->line && item->where.column == where->column &&
                    strcmp(item->where.file ?: "", where->file ?: "") == 0 && strcmp(item->text, text) == 0)
                        return true;
        }
        return false;
}

static int read_finding(struct context *ctx, sd_bus_message *m)
{
        const char *file, *severity_word, *code_word, *text, *hint, *source_line;
        enum finding_severity severity = FINDING_ERROR;
        enum finding_code code = FINDING_DAEMON_FAILED; /* a newer daemon may have codes that this program does not know */
        struct location where = {};
        struct finding *item;
        int r = sd_bus_message_read(m, "suusssss", &file, &where.line, &where.column, &severity_word, &code_word, &text, &hint,
                                    &source_line);

        if (r < 0)
                return r;
        (void) finding_severity_from_string(severity_word, &severity);
        (void) finding_code_from_string(code_word, &code);
        where.file = *file ? arena_strdup(ctx->arena, file) : NULL;
        if (is_found(&ctx->findings, &where, severity, text))
                return 0;
        item = findings_add(&ctx->findings, severity, code, &where, "%s", text);
        if (!item)
                return -ENOMEM;
        if (*hint)
                finding_set_hint(&ctx->findings, item, "%s", hint);
        if (*source_line)
                item->source_line = arena_strdup(ctx->arena, source_line);
        return 0;
}

int bus_client_read_findings(struct context *ctx, sd_bus_message *m)
{
        size_t n = 0;
        int r = sd_bus_message_enter_container(m, 'a', "(suusssss)");

        while (r >= 0 && n++ < MAX_FINDINGS && (r = sd_bus_message_enter_container(m, 'r', "suusssss")) > 0) {
                r = read_finding(ctx, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? bus_client_complain(ctx, r) : 0;
}
