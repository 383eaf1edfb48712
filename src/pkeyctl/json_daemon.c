/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <time.h>

#include "pkeyctl/json.h"

static json_t *time_value(usec_t when)
{
        time_t seconds = (time_t) (when / USEC_PER_SEC);
        char text[32];
        struct tm tm;

        if (when == 0 || !gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                return json_null();
        return json_sprintf("%s.%06uZ", text, (unsigned) (when % USEC_PER_SEC));
}

static json_t *number_value(enum bus_field_kind kind, uint64_t value)
{
        switch (kind) {
        case FIELD_NUMBER:
                return json_integer((json_int_t) value);
        case FIELD_BOOL:
                return json_boolean(value);
        case FIELD_GUID:
                return value ? doc_guid((struct guid) { value }) : json_null();
        case FIELD_P_KEY:
                return value ? json_sprintf("0x%04x", (unsigned) value) : json_null();
        case FIELD_TIME:
                return time_value(value);
        case FIELD_TEXT:
                break;
        }
        return json_null();
}

/* Those of the fields that `which` has. */
static void put_fields(struct doc *d, json_t *o, const struct bus_field *fields, size_t n, const void *object, uint64_t which)
{
        for (size_t i = 0; i < n; i++) {
                const struct bus_field *f = &fields[i];

                if (!(which & UINT64_C(1) << i))
                        continue;
                doc_put(d, o, f->json_key,
                        f->kind == FIELD_TEXT ? doc_text(bus_field_text(f, object))
                                              : number_value(f->kind, bus_field_number(f, object)));
        }
}

static void put_status(struct doc *d, json_t *o, const struct daemon_status *status, uint64_t which)
{
        put_fields(d, o, daemon_status_fields, n_daemon_status_fields, status, which);
}

/* Only reports have a kind and a count of their own. */
static json_t *violation_object(struct doc *d, const struct seen_violation *v)
{
        json_t *o = json_object();

        put_fields(d, o, seen_violation_fields, n_seen_violation_fields, v, UINT64_MAX);
        if (!v->kind && json_object_del(o, "kind") + json_object_del(o, "count") + json_object_del(o, "ports") != 0)
                d->failed = true;
        return o;
}

static void put_reload(struct doc *d, json_t *o, const struct reload_result *r)
{
        doc_put(d, o, "outcome", doc_text(r->outcome));
        doc_put(d, o, "generation", json_integer((json_int_t) r->generation));
        doc_put(d, o, "text", doc_text(r->text));
}

int as_json_status(struct context *ctx, const struct daemon_status *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        (void) status;
        doc_begin(&d, ctx, true);
        put_status(&d, d.root, r, UINT64_MAX);
        return doc_print(&d);
}

int as_json_reload(struct context *ctx, const struct reload_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, status == EXIT_DONE);
        put_reload(&d, d.root, r);
        return doc_print(&d);
}

int as_json_violations(struct context *ctx, const struct violations_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};
        json_t *list = json_array();

        (void) status;
        doc_begin(&d, ctx, true);
        for (uint32_t i = 0; i < r->n_items; i++)
                doc_append(&d, list, violation_object(&d, &r->items[i]));
        doc_put(&d, d.root, "since", time_value(r->since > r->counted_since ? r->since : r->counted_since));
        doc_put(&d, d.root, "counted_since", time_value(r->counted_since));
        doc_put(&d, d.root, "records", json_integer((json_int_t) r->n_all));
        if (r->once) {
                doc_put(&d, d.root, "ports_polled", json_integer(r->n_polled));
                doc_put(&d, d.root, "ports_silent", json_integer(r->n_silent));
        }
        doc_put(&d, d.root, "violations", list);
        return doc_print(&d);
}

static const char *event_name(enum watched_kind kind)
{
        switch (kind) {
        case WATCHED_STATUS:
                return "status";
        case WATCHED_CHANGE:
                return "change";
        case WATCHED_RELOAD:
                return "reload";
        case WATCHED_VIOLATION:
                return "violation";
        case WATCHED_GONE:
                return "gone";
        }
        return "";
}

/* One object to a line; findings have no place in it. */
int as_json_watch(struct context *ctx, const struct watched *r)
{
        _cleanup_doc_ struct doc d = { .root = json_object() };
        json_t *o;

        (void) ctx;
        doc_put(&d, d.root, "schema", json_integer(1));
        doc_put(&d, d.root, "event", doc_text(event_name(r->kind)));
        doc_put(&d, d.root, "time", time_value(r->when));
        if (r->status) {
                o = json_object();
                put_status(&d, o, r->status, r->changed);
                doc_put(&d, d.root, "status", o);
        }
        if (r->reload) {
                o = json_object();
                put_reload(&d, o, r->reload);
                doc_put(&d, d.root, "reload", o);
        }
        if (r->violation)
                doc_put(&d, d.root, "violation", violation_object(&d, r->violation));
        return doc_print(&d);
}
