/* SPDX-License-Identifier: GPL-2.0-or-later */
#define SD_JOURNAL_SUPPRESS_LOCATION

#include "pkeyd_rest/door_journal.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "util/text.h"

#define MAX_GUIDS  32 /* of one entry */
#define MAX_FIELDS (MAX_GUIDS + 16)

static const struct {
        const char *message_id;
        int priority;
} events[DOOR_N_EVENTS] = {
#define X(name, id, priority) [DOOR_EVENT_##name] = { id, priority },
#include "pkeyd_rest/door-events.def"
#undef X
};

/* systemd sets JOURNAL_STREAM to the device and inode of the stderr that it passes; a shell may have redirected stderr since. */
void door_journal_init(struct door_journal *j)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        *j = (struct door_journal) {};
        if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &st) < 0)
                return;
        j->native = st.st_dev == device && st.st_ino == inode;
}

/* --- entries ---------------------------------------------------------------------------------------------------------- */

/* An entry that is being built. A field for which there is no memory is left out. */
struct fields {
        struct iovec items[MAX_FIELDS];
        int n;
};

static void fields_done(struct fields *f)
{
        for (int i = 0; i < f->n; i++)
                free(f->items[i].iov_base);
}

__attribute__((format(printf, 2, 3))) static void add_field(struct fields *f, const char *format, ...)
{
        char *field;
        va_list ap;
        int n;

        if (f->n == MAX_FIELDS)
                return;
        va_start(ap, format);
        n = vasprintf(&field, format, ap);
        va_end(ap);
        if (n >= 0)
                f->items[f->n++] = (struct iovec) { .iov_base = field, .iov_len = (size_t) n };
}

static DEFINE_WORDS(priority_to_string, int, "", [LOG_ERR] = "error: ", [LOG_WARNING] = "warning: ")

static void write_entry(const struct door_journal *j, enum door_event event, struct fields *f, const char *text)
{
        int priority = events[event].priority;

        if (!j->native) {
                fprintf(stderr, "pkeyd-rest: %s%s\n", priority_to_string(priority), text);
                return;
        }
        add_field(f, "MESSAGE=%s", text);
        add_field(f, "PRIORITY=%d", priority);
        add_field(f, "SYSLOG_IDENTIFIER=pkeyd-rest");
        add_field(f, "MESSAGE_ID=%s", events[event].message_id);
        if (sd_journal_sendv(f->items, f->n) < 0)
                fprintf(stderr, "%s\n", text);
}

void door_log(const struct door_journal *j, enum door_event event, const char *format, ...)
{
        _cleanup_(fields_done) struct fields f = {};
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        write_entry(j, event, &f, text ?: format);
}

void door_log_findings(const struct door_journal *j, const struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *item = &findings->items[i];
                const char *colon = item->hint ? "; " : "", *hint = item->hint ?: "";

                if (item->where.file && item->where.line)
                        door_log(j, DOOR_EVENT_CONF_REFUSED, "%s:%u:%u: %s%s%s", item->where.file, item->where.line,
                                 item->where.column, item->text, colon, hint);
                else
                        door_log(j, DOOR_EVENT_CONF_REFUSED, "%s%s%s%s%s", item->where.file ?: "", item->where.file ? ": " : "",
                                 item->text, colon, hint);
        }
}

/* --- changes and logins ----------------------------------------------------------------------------------------------- */

static DEFINE_WORDS(kind_to_string, enum rest_kind, "?", [REST_ADD] = "add", [REST_REMOVE] = "remove", [REST_REPLACE] = "replace",
                    [REST_CREATE] = "create", [REST_DELETE] = "delete", [REST_SET_QOS] = "set-qos")
static DEFINE_WORDS(outcome_to_string, enum rest_outcome, "?", [REST_STORED] = "stored", [REST_REFUSED] = "refused",
                    [REST_NOT_FOUND] = "not-found", [REST_CONFLICT] = "conflict", [REST_UNAVAILABLE] = "unavailable")

/* The GUIDs from `first` on, as many as one entry has. */
static void log_part(const struct door_journal *j, const struct door_audit *a, uint32_t first)
{
        const struct rest_change *c = a->change;
        _cleanup_(fields_done) struct fields f = {};
        _cleanup_text_ struct text t = {};

        text_add(&t, "client %s at %s: %s P_Key 0x%04x: %s", a->client, a->address, kind_to_string(c->kind), (unsigned) c->base,
                 outcome_to_string(a->outcome));
        if (a->text)
                text_add(&t, ": %s", a->text);
        for (uint32_t i = first; i < c->n_members && i < first + MAX_GUIDS; i++) {
                text_add(&t, "%s0x%016" PRIx64, i > first ? ", " : "; GUIDs: ", c->members[i].guid.v);
                add_field(&f, "PKEYD_PORT_GUID=0x%016" PRIx64, c->members[i].guid.v);
        }
        add_field(&f, "PKEYD_CLIENT=%s", a->client);
        add_field(&f, "PKEYD_ADDRESS=%s", a->address);
        add_field(&f, "PKEYD_P_KEY=0x%04x", (unsigned) c->base);
        add_field(&f, "PKEYD_CHANGE=%s", kind_to_string(c->kind));
        add_field(&f, "PKEYD_OUTCOME=%s", outcome_to_string(a->outcome));
        write_entry(j, a->outcome == REST_STORED ? DOOR_EVENT_CHANGE_STORED : DOOR_EVENT_CHANGE_REFUSED, &f,
                    t.failed ? "out of memory for the entry about a change" : t.bytes);
}

void door_log_change(const struct door_journal *j, const struct door_audit *audit)
{
        uint32_t first = 0;

        do {
                log_part(j, audit, first);
                first += MAX_GUIDS;
        } while (first < audit->change->n_members);
}

void door_log_login(const struct door_journal *j, const char *address, uint64_t n_failures)
{
        _cleanup_(fields_done) struct fields f = {};
        char text[160];

        (void) snprintf(text, sizeof(text), "a login from %s failed: wrong name, password or token; %" PRIu64 " failed so far", address,
                        n_failures);
        add_field(&f, "PKEYD_ADDRESS=%s", address);
        write_entry(j, DOOR_EVENT_LOGIN_FAILED, &f, text);
}
