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

/* --- building --------------------------------------------------------------------------------------------------- */

struct bus_builder bus_begin_reply(sd_bus_message *call)
{
        struct bus_builder b = {};

        b.r = sd_bus_message_new_method_return(call, &b.message);
        return b;
}

int bus_send(struct bus_builder *b)
{
        int r = b->r < 0 ? b->r : sd_bus_send(NULL, b->message, NULL);

        b->message = sd_bus_message_unref(b->message);
        return r;
}

void bus_send_reply(struct bus_builder *b, sd_bus_message *call)
{
        int r = bus_send(b);

        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, NULL);
}

void bus_open(struct bus_builder *b, char type, const char *contents)
{
        if (b->r >= 0)
                b->r = sd_bus_message_open_container(b->message, type, contents);
}

void bus_close(struct bus_builder *b)
{
        if (b->r >= 0)
                b->r = sd_bus_message_close_container(b->message);
}

void bus_append(struct bus_builder *b, const char *types, ...)
{
        va_list ap;

        va_start(ap, types);
        if (b->r >= 0)
                b->r = sd_bus_message_appendv(b->message, types, ap);
        va_end(ap);
}

static void append_basic(struct bus_builder *b, char type, const void *value)
{
        if (b->r >= 0)
                b->r = sd_bus_message_append_basic(b->message, type, value);
}

void bus_append_text(struct bus_builder *b, const char *text)
{
        _cleanup_free_ char *safe = b->r < 0 ? NULL : json_make_utf8(text ?: "");

        if (safe)
                append_basic(b, 's', safe);
        else if (b->r >= 0)
                b->r = -ENOMEM;
}

void bus_append_variant(struct bus_builder *b, const char *key, const char *signature, const void *member)
{
        bus_open(b, 'e', "sv");
        append_basic(b, 's', key);
        bus_open(b, 'v', signature);
        if (*signature == 's')
                bus_append_text(b, *(const char *const *) member);
        else
                append_basic(b, *signature, member);
        bus_close(b);
        bus_close(b);
}

/* --- findings --------------------------------------------------------------------------------------------------- */

static void append_finding(struct bus_builder *b, const struct finding *f)
{
        bus_open(b, 'r', "suusssss");
        bus_append_text(b, f->where.file);
        bus_append(b, "uuss", f->where.line, f->where.column, finding_severity_to_string(f->severity), finding_code_to_string(f->code));
        bus_append_text(b, f->text);
        bus_append_text(b, f->hint);
        bus_append_text(b, f->source_line);
        bus_close(b);
}

void bus_append_findings(struct bus_builder *b, const struct findings *findings)
{
        bus_open(b, 'a', BUS_FINDING);
        for (size_t i = 0; i < findings->n && i < BUS_MAX_FINDINGS; i++)
                append_finding(b, &findings->items[i]);
        bus_close(b);
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

void bus_append_violation(struct bus_builder *b, const struct violation_item *item)
{
        bus_open(b, 'a', "{sv}");
        for (size_t i = 0; i < ELEMENTS(members); i++)
                if (is_known(item, &members[i]))
                        bus_append_variant(b, members[i].key, members[i].signature, (const char *) item + members[i].offset);
        bus_close(b);
}
