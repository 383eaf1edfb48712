/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/journal.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "util/text.h"

#define MAX_P_KEYS 32

static const struct {
        const char *message_id;
        int priority;
} events[LOG_N_EVENTS] = {
#define X(name, id, priority) [LOG_EVENT_##name] = { id, priority },
#include "events/events.def"
#undef X
};

static void add_violation(struct journal_fields *f, const struct log_about *about)
{
        if (about->switch_name)
                journal_fields_add(f, "PKEYD_SWITCH=%s", about->switch_name);
        if (about->partition)
                journal_fields_add(f, "PKEYD_PARTITION=%s", about->partition);
        if (p_key_is_used(about->p_key))
                journal_fields_add(f, "PKEYD_PKEY=0x%04x", (unsigned) about->p_key.v);
        if (!about->source)
                return;
        journal_fields_add(f, "PKEYD_SOURCE=%s", about->source);
        journal_fields_add(f, "PKEYD_COUNT=%" PRIu64, about->count);
        journal_fields_add(f, "PKEYD_TOTAL=%" PRIu64, about->total);
}

static void add_about(struct journal_fields *f, const struct log_about *about)
{
        if (about->generation)
                journal_fields_add(f, "PKEYD_GENERATION=%" PRIu64, about->generation);
        if (about->node) {
                journal_fields_add(f, "PKEYD_NODE=%s", about->node);
                journal_fields_add(f, "PKEYD_PORT=%u", (unsigned) about->port);
        }
        if (about->port_guid.v)
                journal_fields_add(f, "PKEYD_PORT_GUID=0x%016" PRIx64, about->port_guid.v);
        if (about->lid.v)
                journal_fields_add(f, "PKEYD_LID=%u", (unsigned) about->lid.v);
        for (uint32_t i = 0; i < about->n_p_keys && i < MAX_P_KEYS; i++)
                journal_fields_add(f, "PKEYD_P_KEY=0x%04x", (unsigned) about->p_keys[i].v);
        add_violation(f, about);
        if (about->where && about->where->file) {
                journal_fields_add(f, "CONFIG_FILE=%s", about->where->file);
                if (about->where->line)
                        journal_fields_add(f, "CONFIG_LINE=%u", about->where->line);
        }
}

/* message_id and about may be NULL. */
static void write_entry(const struct journal *j, int priority, const char *message_id, const struct log_about *about,
                        const char *text)
{
        _cleanup_journal_fields_ struct journal_fields f = {};

        if (!journal_output_begin(&j->output, priority, message_id, text, &f))
                return;
        if (about)
                add_about(&f, about);
        journal_output_send(&f, text);
}

void journal_init(struct journal *j, const char *fabric, bool verbose)
{
        *j = (struct journal) { .verbose = verbose };
        journal_output_init(&j->output, "pkeyd", fabric);
}

static const int finding_priorities[] = {
        [FINDING_ERROR] = LOG_ERR, [FINDING_WARNING] = LOG_WARNING, [FINDING_NOTE] = LOG_INFO,
};

/* In the style of a compiler, on one line. */
static void add_finding(struct text *t, const struct finding *f)
{
        if (f->where.file && f->where.line)
                text_add(t, "%s:%u:%u: ", f->where.file, f->where.line, f->where.column);
        else if (f->where.file)
                text_add(t, "%s: ", f->where.file);
        text_add(t, "%s%s%s", f->where.file ? finding_severity_to_string(f->severity) : "", f->where.file ? ": " : "", f->text);
        if (f->hint)
                text_add(t, " (hint: %s)", f->hint);
}

static void write_finding(const struct journal *j, const struct log_entry *entry)
{
        _cleanup_text_ struct text line = {};

        if (!j->output.native && entry->finding->where.file) {
                _cleanup_arena_ struct arena *a = arena_new();
                const char *block = a ? finding_format(a, entry->finding) : NULL;

                fprintf(stderr, "%s: %s%s", j->output.identifier, block ?: entry->text, block ? "" : "\n");
                return;
        }
        add_finding(&line, entry->finding);
        write_entry(j, finding_priorities[entry->finding->severity], events[entry->event].message_id, &entry->about,
                    line.failed ? entry->text : line.bytes);
}

void journal_entry(const struct journal *j, const struct log_entry *entry)
{
        if (entry->finding)
                write_finding(j, entry);
        else if (entry->event != LOG_EVENT_DEBUG)
                write_entry(j, events[entry->event].priority, events[entry->event].message_id, &entry->about, entry->text);
        else if (j->verbose)
                write_entry(j, LOG_DEBUG, NULL, NULL, entry->text);
}

void journal_event(const struct journal *j, enum log_event event, const struct log_about *about, const char *format, ...)
{
        struct log_entry entry = { .event = event };
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        if (n < 0)
                text = NULL;
        if (about)
                entry.about = *about;
        entry.text = text ?: format;
        journal_entry(j, &entry);
}
