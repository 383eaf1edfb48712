/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/doc.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "session/output_text.h"

#define N_P_KEYS 65536u

void doc_merge(struct doc *d, json_t *object, json_t *value)
{
        if (json_object_update_new(object, value) < 0)
                d->failed = true;
}

void doc_append(struct doc *d, json_t *array, json_t *value)
{
        if (json_array_append_new(array, value) < 0)
                d->failed = true;
}

/* Names on the command line may contain any bytes. */
json_t *doc_text(const char *text)
{
        _cleanup_free_ char *utf8 = text ? json_make_utf8(text) : NULL;

        if (!text)
                return json_null();
        return utf8 ? json_string(utf8) : NULL;
}

json_t *doc_number(uint64_t number)
{
        return number > 0 ? json_integer((json_int_t) number) : json_null();
}

json_t *doc_time(usec_t when)
{
        time_t seconds = (time_t) (when / USEC_PER_SEC);
        char text[32];
        struct tm tm;

        if (when == 0 || !gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                return json_null();
        return json_sprintf("%s.%06uZ", text, (unsigned) (when % USEC_PER_SEC));
}

json_t *doc_guid(struct guid guid)
{
        return json_sprintf("0x%016" PRIx64, guid.v);
}

json_t *doc_base(uint16_t base)
{
        return json_sprintf("0x%04x", base);
}

json_t *doc_p_key(struct doc *d, struct p_key key)
{
        if (!d->p_keys)
                return NULL;
        if (!d->p_keys[key.v])
                d->p_keys[key.v] = json_sprintf("0x%04x", key.v);
        return json_incref(d->p_keys[key.v]);
}

json_t *doc_p_keys(struct doc *d, const struct p_key *keys, uint32_t n)
{
        return JSON_ARRAY(i, n, doc_p_key(d, keys[i]));
}

json_t *doc_used_p_keys(struct doc *d, const struct p_key *keys, uint32_t n)
{
        return JSON_ARRAY_IF(i, n, p_key_is_used(keys[i]), doc_p_key(d, keys[i]));
}

json_t *doc_port_with(struct doc *d, uint32_t port, json_t *members)
{
        const struct subnet_port *p = &d->ctx->subnet->ports[port];
        json_t *o = json_pack("{s:o, s:o, s:o, s:i, s:i}", "node", doc_text(output_node(d->ctx, port)),
                              "device", doc_text(subnet_port_node(d->ctx->subnet, p)->device),
                              "port_guid", doc_guid(p->guid), "lid", p->lid.v, "port", p->number);

        doc_merge(d, o, members);
        return o;
}

json_t *doc_partition_with(struct doc *d, uint16_t base, json_t *members)
{
        json_t *o = json_pack("{s:o, s:o}", "partition", doc_text(output_partition(d->ctx, base)), "p_key", doc_base(base));

        doc_merge(d, o, members);
        return o;
}

static json_t *fix_object(const struct finding_fix *fix)
{
        if (!fix->text)
                return json_null();
        return json_pack("{s:i, s:i, s:i, s:o}", "line", fix->line, "column", fix->column, "length", fix->length, "text",
                         doc_text(fix->text));
}

static json_t *finding_object(struct doc *d, const struct finding *item)
{
        json_t *o = json_pack("{s:o, s:i, s:i, s:s, s:s, s:o, s:o}", "file", doc_text(item->where.file), "line",
                              item->where.line, "column", item->where.column, "severity",
                              finding_severity_to_string(item->severity), "code", finding_code_to_string(item->code),
                              "text", doc_text(item->text), "fix", fix_object(&item->fix));

        if (item->hint)
                doc_add(d, o, "{s:o}", "hint", doc_text(item->hint));
        return o;
}

void doc_begin(struct doc *d, struct context *ctx, bool ok)
{
        static const char *const ends[] = {
                [WAIT_CONFIRMED] = "confirmed", [WAIT_CONFIRMED_HERE] = "confirmed", [WAIT_UNDONE] = "undone",
                [WAIT_EXPIRED] = "expired", [WAIT_INTERRUPTED] = "interrupted", [WAIT_LOST] = "lost",
        };

        *d = (struct doc) { .ctx = ctx, .p_keys = calloc(N_P_KEYS, sizeof(json_t *)) };
        d->failed = !d->p_keys || ctx->findings.out_of_memory;
        findings_sort(&ctx->findings);
        d->root = json_pack("{s:i, s:b, s:s, s:o}", "schema", 1, "ok", ok, "command", ctx->command, "findings",
                            JSON_ARRAY(i, ctx->findings.n, finding_object(d, &ctx->findings.items[i])));
        if (ctx->wait_end != WAIT_NONE)
                doc_add(d, d->root, "{s:s}", "confirmation", ends[ctx->wait_end]);
}

void doc_done(struct doc *d)
{
        for (size_t i = 0; d->p_keys && i < N_P_KEYS; i++)
                json_decref(d->p_keys[i]);
        free(d->p_keys);
        json_decref(d->root);
}

/* jansson writes a few bytes at a time. */
static int print_bytes(const char *bytes, size_t n, void *)
{
        return fwrite_unlocked(bytes, 1, n, stdout) == n ? 0 : -1;
}

void doc_print(struct doc *d)
{
        if (d->failed || !d->root)
                output_fail(d->ctx, -ENOMEM);
        else if (json_dump_callback(d->root, print_bytes, NULL, JSON_COMPACT | JSON_PRESERVE_ORDER) < 0)
                output_fail(d->ctx, -EIO);
        else
                fputc('\n', stdout);
}
