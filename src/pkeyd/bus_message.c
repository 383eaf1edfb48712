/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_message.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/json.h"
#include "util/text.h"

#define MAX_QUEUED 64 /* messages that the bus has not taken yet */
#define MAX_KEY    64 /* bytes of a wrong key that are repeated */

bool bus_queue_is_full(sd_bus *bus)
{
        uint64_t n = 0;

        return !bus || sd_bus_get_n_queued_write(bus, &n) < 0 || n > MAX_QUEUED;
}

int bus_check_queue(sd_bus_message *call, sd_bus_error *error)
{
        if (!bus_queue_is_full(sd_bus_message_get_bus(call)))
                return 0;
        return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                "earlier answers of pkeyd are still queued for the bus; call again later");
}

int bus_check_size(size_t size, sd_bus_error *error)
{
        if (size <= BUS_MAX_ANSWER)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "the answer would have more than %u MiB", BUS_MAX_ANSWER >> 20);
}

int bus_refuse_option(const char *key, const char *accepted, sd_bus_error *error)
{
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "unknown option '%s' (accepted: %s)",
                                 text_is_printable(key, MAX_KEY) ? key : "...", accepted);
}

int bus_look_up_sender(sd_bus_message *call, sd_bus_message_handler_t answered, void *userdata, sd_bus_error *error)
{
        const char *sender = sd_bus_message_get_sender(call);
        int r;

        if (!sender)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "the bus does not name the sender of this call");
        r = sd_bus_call_method_async(sd_bus_message_get_bus(call), NULL, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus", "GetConnectionUnixUser", answered, userdata, "s", sender);
        return r < 0 ? r : 0;
}

bool bus_read_sender(sd_bus_message *answer, uint32_t *ret)
{
        return !sd_bus_message_is_method_error(answer, NULL) && sd_bus_message_read(answer, "u", ret) >= 0;
}

int bus_append_text(sd_bus_message *m, const char *text)
{
        _cleanup_free_ char *safe = json_make_utf8(text ?: "");

        return safe ? sd_bus_message_append_basic(m, 's', safe) : -ENOMEM;
}

static int append_member(sd_bus_message *m, const char *signature, const void *member)
{
        const char *text;

        if (*signature != 's')
                return sd_bus_message_append_basic(m, *signature, member);
        memcpy(&text, member, sizeof(text));
        return bus_append_text(m, text);
}

int bus_append_variant(sd_bus_message *m, const char *key, const char *signature, const void *member)
{
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', key);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', signature);
        if (r >= 0)
                r = append_member(m, signature, member);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* --- findings --------------------------------------------------------------------------------------------------- */

static int append_finding(sd_bus_message *m, const struct finding *f)
{
        const char *texts[] = {
                finding_severity_to_string(f->severity), finding_code_to_string(f->code), f->text, f->hint,
                f->source_line,
        };
        int r = sd_bus_message_open_container(m, 'r', "suusssss");

        if (r >= 0)
                r = bus_append_text(m, f->where.file);
        if (r >= 0)
                r = sd_bus_message_append(m, "uu", f->where.line, f->where.column);
        for (size_t i = 0; i < ELEMENTS(texts) && r >= 0; i++)
                r = bus_append_text(m, texts[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_findings(sd_bus_message *m, const struct findings *findings)
{
        int r = sd_bus_message_open_container(m, 'a', BUS_FINDING);

        for (size_t i = 0; r >= 0 && i < findings->n && i < BUS_MAX_FINDINGS; i++)
                r = append_finding(m, &findings->items[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* --- violations ------------------------------------------------------------------------------------------------- */

/* In the order in which they are shown. A member is omitted if the one at by_offset, usually itself, is 0; by_size 0: it is never
 * omitted. */
static const struct member {
        const char *key, *signature;
        size_t offset, by_offset, by_size;
} members[] = {
#define KNOWN_BY(by, key, signature, member)                                                                           \
        { key, signature, offsetof(struct violation_item, member), offsetof(struct violation_item, by),                \
          sizeof(((struct violation_item *) NULL)->by) }
#define KNOWN(key, signature, member)  KNOWN_BY(member, key, signature, member)
#define ALWAYS(key, signature, member) { key, signature, offsetof(struct violation_item, member), 0, 0 }
        KNOWN("Kind", "s", kind),
        KNOWN("Source", "s", about.source),
        KNOWN("Node", "s", about.node),
        KNOWN("PortGuid", "t", about.port_guid),
        KNOWN("Lid", "q", about.lid),
        KNOWN_BY(about.node, "Port", "y", about.port),
        KNOWN("Switch", "s", about.switch_name),
        KNOWN("Partition", "s", about.partition),
        KNOWN("PKey", "q", about.p_key),
        KNOWN_BY(kind, "Count", "t", about.count),
        ALWAYS("Total", "t", about.total),
        KNOWN("Ports", "u", n_ports),
        KNOWN("First", "t", first),
        KNOWN("Last", "t", last),
        ALWAYS("NamesSender", "b", names_sender),
        ALWAYS("Saturated", "b", saturated),
        KNOWN("Text", "s", text),
};

static bool is_known(const struct violation_item *item, const struct member *x)
{
        static const char zeros[sizeof(uint64_t)];

        assert(x->by_size <= sizeof(zeros));
        return x->by_size == 0 || memcmp((const char *) item + x->by_offset, zeros, x->by_size) != 0;
}

int bus_append_violation(sd_bus_message *m, const struct violation_item *item)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (size_t i = 0; i < ELEMENTS(members) && r >= 0; i++)
                if (is_known(item, &members[i]))
                        r = bus_append_variant(m, members[i].key, members[i].signature, (const char *) item + members[i].offset);
        return r < 0 ? r : sd_bus_message_close_container(m);
}
