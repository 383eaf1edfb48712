/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_message.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static bool is_utf8(const char *text)
{
        json_t *value = json_string(text);

        json_decref(value);
        return value != NULL;
}

char *bus_make_text(const char *text)
{
        size_t n = 0;
        char *out;

        if (is_utf8(text))
                return strdup(text);
        out = malloc(4 * strlen(text) + 1);
        if (!out)
                return NULL;
        for (; *text; text++) {
                unsigned char c = (unsigned char) *text;

                if (c < 0x80)
                        out[n++] = *text;
                else
                        n += (size_t) sprintf(out + n, "\\x%02x", (unsigned) c);
        }
        out[n] = '\0';
        return out;
}

int bus_append_text(sd_bus_message *m, const char *text)
{
        _cleanup_free_ char *safe = bus_make_text(text ?: "");

        return safe ? sd_bus_message_append_basic(m, 's', safe) : -ENOMEM;
}

static int append_value(sd_bus_message *m, const char *signature, const void *value)
{
        return *signature == 's' ? bus_append_text(m, value) : sd_bus_message_append_basic(m, *signature, value);
}

int bus_append_variant(sd_bus_message *m, const char *key, const char *signature, const void *value)
{
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', key);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', signature);
        if (r >= 0)
                r = append_value(m, signature, value);
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
        int r;

        r = sd_bus_message_open_container(m, 'r', "suusssss");
        if (r >= 0)
                r = bus_append_text(m, f->where.file);
        if (r >= 0)
                r = sd_bus_message_append(m, "uu", f->where.line, f->where.column);
        for (size_t i = 0; i < ELEMENTS(texts) && r >= 0; i++)
                r = bus_append_text(m, texts[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_findings(sd_bus_message *m, const struct findings *findings, size_t max)
{
        int r;

        r = sd_bus_message_open_container(m, 'a', BUS_FINDING);
        for (size_t i = 0; r >= 0 && i < findings->n && i < max; i++)
                r = append_finding(m, &findings->items[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* --- violations ------------------------------------------------------------------------------------------------- */

/* A key that is there only if it is known. */
static int append_known(sd_bus_message *m, const char *key, const char *signature, const void *value, bool known)
{
        return known ? bus_append_variant(m, key, signature, value) : 0;
}

static int append_text_if_known(sd_bus_message *m, const char *key, const char *text)
{
        return append_known(m, key, "s", text, text != NULL);
}

static int append_port(sd_bus_message *m, const struct violation_item *item)
{
        int r;

        r = append_text_if_known(m, "Node", item->node);
        if (r >= 0)
                r = append_known(m, "PortGuid", "t", &item->port_guid.v, item->port_guid.v != 0);
        if (r >= 0)
                r = append_known(m, "Lid", "q", &item->lid.v, item->lid.v != 0);
        if (r >= 0)
                r = append_known(m, "Port", "y", &item->port, item->node != NULL);
        if (r >= 0)
                r = append_text_if_known(m, "Switch", item->switch_name);
        if (r >= 0)
                r = append_text_if_known(m, "Partition", item->partition);
        return r < 0 ? r : append_known(m, "PKey", "q", &item->p_key.v, item->p_key.v != 0);
}

static int append_numbers(sd_bus_message *m, const struct violation_item *item)
{
        int sender = item->names_sender, saturated = item->saturated;
        int r;

        r = append_known(m, "Count", "t", &item->count, item->kind != NULL);
        if (r >= 0)
                r = bus_append_variant(m, "Total", "t", &item->total);
        if (r >= 0)
                r = append_known(m, "Ports", "u", &item->n_ports, item->n_ports > 0);
        if (r >= 0)
                r = append_known(m, "First", "t", &item->first, item->first != 0);
        if (r >= 0)
                r = append_known(m, "Last", "t", &item->last, item->last != 0);
        if (r >= 0)
                r = bus_append_variant(m, "NamesSender", "b", &sender);
        return r < 0 ? r : bus_append_variant(m, "Saturated", "b", &saturated);
}

int bus_append_violation(sd_bus_message *m, const struct violation_item *item)
{
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = append_text_if_known(m, "Kind", item->kind);
        if (r >= 0)
                r = append_text_if_known(m, "Source", item->source);
        if (r >= 0)
                r = append_port(m, item);
        if (r >= 0)
                r = append_numbers(m, item);
        if (r >= 0)
                r = append_text_if_known(m, "Text", item->text);
        return r < 0 ? r : sd_bus_message_close_container(m);
}
