/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/door_journal.h"

#include <string.h>
#include <syslog.h>

#include "util/text.h"

#define MAX_GUIDS 32 /* of one entry */

static const struct {
        const char *message_id;
        int priority;
} events[DOOR_N_EVENTS] = {
#define X(name, id, priority) [DOOR_EVENT_##name] = { id, priority },
#include "pkeyd_rest/door-events.def"
#undef X
};

/* --- entries ---------------------------------------------------------------------------------------------------------- */

static void write_entry(const struct journal_output *j, enum door_event event, struct journal_fields *f, const char *text)
{
        if (journal_output_begin(j, events[event].priority, events[event].message_id, text, f))
                journal_output_send(f, text);
}

void door_log(const struct journal_output *j, enum door_event event, const char *format, ...)
{
        _cleanup_journal_fields_ struct journal_fields f = {};
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        write_entry(j, event, &f, text ?: format);
}

void door_log_findings(const struct journal_output *j, const struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *item = &findings->items[i];

                door_log(j, DOOR_EVENT_CONF_REFUSED, "%s%s%s%s", location_format(findings->arena, &item->where) ?: "", item->text,
                         item->hint ? "; " : "", item->hint ?: "");
        }
}

/* --- changes and logins ----------------------------------------------------------------------------------------------- */

static DEFINE_WORDS(kind_to_string, enum rest_kind, "?", [REST_ADD] = "add", [REST_REMOVE] = "remove", [REST_REPLACE] = "replace",
                    [REST_CREATE] = "create", [REST_DELETE] = "delete", [REST_SET_QOS] = "set-qos")
static DEFINE_WORDS(outcome_to_string, enum rest_outcome, "?", [REST_STORED] = "stored", [REST_REFUSED] = "refused",
                    [REST_NOT_FOUND] = "not-found", [REST_CONFLICT] = "conflict", [REST_UNAVAILABLE] = "unavailable")

/* The GUIDs from `first` on, as many as one entry has. */
static void log_part(const struct journal_output *j, const struct door_audit *a, uint32_t first)
{
        const struct rest_change *c = a->change;
        _cleanup_journal_fields_ struct journal_fields f = {};
        _cleanup_text_ struct text t = {};

        text_add(&t, "client %s at %s: %s P_Key 0x%04x: %s", a->client, a->address, kind_to_string(c->kind), (unsigned) c->base,
                 outcome_to_string(a->outcome));
        if (a->text)
                text_add(&t, ": %s", a->text);
        else if (c->n_members == 0 && (c->kind == REST_ADD || c->kind == REST_REPLACE))
                text_add(&t, "; no GUIDs");
        for (uint32_t i = first; i < c->n_members && i < first + MAX_GUIDS; i++) {
                text_add(&t, "%s0x%016" PRIx64, i > first ? ", " : "; GUIDs: ", c->members[i].guid.v);
                journal_fields_add(&f, "PKEYD_PORT_GUID=0x%016" PRIx64, c->members[i].guid.v);
        }
        journal_fields_add(&f, "PKEYD_CLIENT=%s", a->client);
        journal_fields_add(&f, "PKEYD_ADDRESS=%s", a->address);
        journal_fields_add(&f, "PKEYD_P_KEY=0x%04x", (unsigned) c->base);
        journal_fields_add(&f, "PKEYD_CHANGE=%s", kind_to_string(c->kind));
        journal_fields_add(&f, "PKEYD_OUTCOME=%s", outcome_to_string(a->outcome));
        write_entry(j, a->outcome == REST_STORED ? DOOR_EVENT_CHANGE_STORED : DOOR_EVENT_CHANGE_REFUSED, &f,
                    t.failed ? "out of memory: the fields of this entry describe the change" : t.bytes);
}

void door_log_change(const struct journal_output *j, const struct door_audit *audit)
{
        uint32_t first = 0;

        do {
                log_part(j, audit, first);
                first += MAX_GUIDS;
        } while (first < audit->change->n_members);
}

void door_log_login(const struct journal_output *j, const char *address, uint64_t n_failures)
{
        _cleanup_journal_fields_ struct journal_fields f = {};
        char text[160];

        (void) snprintf(text, sizeof(text), "a login from %s failed: wrong name, password or token; %" PRIu64 " failed so far", address,
                        n_failures);
        journal_fields_add(&f, "PKEYD_ADDRESS=%s", address);
        write_entry(j, DOOR_EVENT_LOGIN_FAILED, &f, text);
}
