/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/doc.h"

#include <errno.h>
#include <string.h>

#include "pkeyctl/output.h"

#define N_P_KEYS 65536u

void doc_put(struct doc *d, json_t *object, const char *key, json_t *value)
{
        if (json_object_set_new(object, key, value) < 0)
                d->failed = true;
}

void doc_append(struct doc *d, json_t *array, json_t *value)
{
        if (json_array_append_new(array, value) < 0)
                d->failed = true;
}

/* Names on the command line may be any bytes. */
static json_t *escaped_text(const char *text)
{
        size_t n = strlen(text), used = 0;
        _cleanup_free_ char *out = malloc(n * 4 + 1);

        if (!out)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char) text[i];

                if (c < 0x80)
                        out[used++] = text[i];
                else
                        used += (size_t) sprintf(out + used, "\\x%02x", c);
        }
        return json_stringn(out, used);
}

json_t *doc_text(const char *text)
{
        json_t *value;

        if (!text)
                return json_null();
        value = json_string(text);
        return value ?: escaped_text(text);
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
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                doc_append(d, array, doc_p_key(d, keys[i]));
        return array;
}

void doc_put_port(struct doc *d, json_t *object, const struct context *ctx, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];

        doc_put(d, object, "node", doc_text(output_node(ctx, port)));
        doc_put(d, object, "device", doc_text(subnet_port_node(ctx->subnet, p)->device));
        doc_put(d, object, "port_guid", doc_guid(p->guid));
        doc_put(d, object, "lid", json_integer(p->lid.v));
        doc_put(d, object, "port", json_integer(p->number));
}

static json_t *finding_object(struct doc *d, const struct finding *item)
{
        json_t *o = json_object();

        doc_put(d, o, "file", doc_text(item->where.file));
        doc_put(d, o, "line", json_integer(item->where.line));
        doc_put(d, o, "column", json_integer(item->where.column));
        doc_put(d, o, "severity", doc_text(finding_severity_to_string(item->severity)));
        doc_put(d, o, "code", doc_text(finding_code_to_string(item->code)));
        doc_put(d, o, "text", doc_text(item->text));
        if (item->hint)
                doc_put(d, o, "hint", doc_text(item->hint));
        return o;
}

void doc_begin(struct doc *d, struct context *ctx, bool ok)
{
        json_t *findings = json_array();

        *d = (struct doc) { .root = json_object(), .p_keys = calloc(N_P_KEYS, sizeof(json_t *)) };
        if (!d->p_keys)
                d->failed = true;
        findings_sort(&ctx->findings);
        for (size_t i = 0; i < ctx->findings.n; i++)
                doc_append(d, findings, finding_object(d, &ctx->findings.items[i]));
        doc_put(d, d->root, "schema", json_integer(1));
        doc_put(d, d->root, "ok", json_boolean(ok));
        doc_put(d, d->root, "command", doc_text(ctx->command));
        doc_put(d, d->root, "findings", findings);
        if (ctx->findings.out_of_memory)
                d->failed = true;
}

void doc_done(struct doc *d)
{
        for (size_t i = 0; d->p_keys && i < N_P_KEYS; i++)
                json_decref(d->p_keys[i]);
        free(d->p_keys);
        json_decref(d->root);
}

/* jansson writes a few bytes at a time. */
static int print_bytes(const char *bytes, size_t n, void *userdata)
{
        (void) userdata;
        return fwrite_unlocked(bytes, 1, n, stdout) == n ? 0 : -1;
}

int doc_print(struct doc *d)
{
        if (d->failed || !d->root)
                return -ENOMEM;
        if (json_dump_callback(d->root, print_bytes, NULL, JSON_COMPACT | JSON_PRESERVE_ORDER) < 0)
                return -EIO;
        fputc('\n', stdout);
        return 0;
}
