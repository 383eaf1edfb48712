/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <time.h>

#include "pkeyctl/result_json.h"

json_t *as_json_time(usec_t when)
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
                return as_json_time(value);
        case FIELD_TEXT:
                break;
        }
        return json_null();
}

/* Those of the fields that `which` has. */
static json_t *fields_object(struct doc *d, const struct bus_field *fields, size_t n, const void *object,
                             uint64_t which)
{
        json_t *o = json_object();

        for (size_t i = 0; i < n; i++) {
                const struct bus_field *f = &fields[i];

                if (which & UINT64_C(1) << i)
                        doc_add(d, o, "{s:o}", f->json_key,
                                f->kind == FIELD_TEXT ? doc_text(bus_field_text(f, object))
                                                      : number_value(f->kind, bus_field_number(f, object)));
        }
        return o;
}

static json_t *status_object(struct doc *d, const struct daemon_status *status, uint64_t which)
{
        return fields_object(d, daemon_status_fields, n_daemon_status_fields, status, which);
}

/* Only reports have a kind and a count of their own. */
static json_t *violation_object(struct doc *d, const struct seen_violation *v)
{
        json_t *o = fields_object(d, seen_violation_fields, n_seen_violation_fields, v, UINT64_MAX);

        if (!v->kind && json_object_del(o, "kind") + json_object_del(o, "count") + json_object_del(o, "ports") != 0)
                d->failed = true;
        return o;
}

static json_t *reload_object(struct doc *d, const struct reload_result *r)
{
        return doc_pack(d, "{s:o, s:I, s:o}", "outcome", doc_text(r->outcome), "generation", (json_int_t) r->generation,
                        "text", doc_text(r->text));
}

void as_json_status(struct doc *d, const struct result *r)
{
        doc_merge(d, d->root, status_object(d, &r->daemon, UINT64_MAX));
}

void as_json_reload(struct doc *d, const struct result *r)
{
        doc_merge(d, d->root, reload_object(d, &r->reload));
        doc_add(d, d->root, "{s:I, s:o}", "held_bases", (json_int_t) r->reload.daemon.held_bases, "held",
                doc_text(r->reload.daemon.held ?: ""));
}

void as_json_violations(struct doc *d, const struct result *result)
{
        const struct violations_result *r = &result->violations;
        json_t *list = json_array();

        for (uint32_t i = 0; i < r->n_items; i++)
                doc_append(d, list, violation_object(d, &r->items[i]));
        doc_add(d, d->root, "{s:o, s:o, s:I}", "since", as_json_time(MAX(r->since, r->counted_since)), "counted_since",
                as_json_time(r->counted_since), "records", (json_int_t) r->n_all);
        if (r->once)
                doc_add(d, d->root, "{s:i, s:i}", "ports_polled", r->n_polled, "ports_silent", r->n_silent);
        doc_add(d, d->root, "{s:o}", "violations", list);
}

/* One object to a line, with the keys that every object has: an event that came is what was asked for. */
void as_json_watched(struct context *ctx, const struct watched *r)
{
        static const char *const names[] = {
                [WATCHED_STATUS] = "status",       [WATCHED_CHANGE] = "change", [WATCHED_RELOAD] = "reload",
                [WATCHED_VIOLATION] = "violation", [WATCHED_GONE] = "gone",
        };
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, true);
        doc_add(&d, d.root, "{s:s, s:o}", "event", names[r->kind], "time", as_json_time(r->when));
        if (r->kind == WATCHED_STATUS || r->kind == WATCHED_CHANGE)
                doc_add(&d, d.root, "{s:o}", "status", status_object(&d, &r->status, r->changed));
        else if (r->kind == WATCHED_RELOAD)
                doc_add(&d, d.root, "{s:o}", "reload", reload_object(&d, &r->reload));
        else if (r->kind == WATCHED_VIOLATION)
                doc_add(&d, d.root, "{s:o}", "violation", violation_object(&d, &r->violation));
        doc_print(&d);
}
