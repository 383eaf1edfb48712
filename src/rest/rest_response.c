/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Responses with a body of JSON, and refusals. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "rest/rest_internal.h"

#define MAX_QUOTE 48

/* Takes the body. */
static int respond(struct arena *a, unsigned status, json_t *body, struct rest_response *ret)
{
        _cleanup_json_ json_t *j = body;
        _cleanup_free_ char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
        const char *copy = text ? arena_strdup(a, text) : NULL;

        if (!copy)
                return -ENOMEM;
        *ret = (struct rest_response) { .status = status, .content_type = "application/json; charset=utf-8", .body = copy,
                                        .n_body = strlen(copy) };
        return 0;
}

int rest_ok(struct arena *a, json_t *body, struct rest_response *ret)
{
        return respond(a, 200, body, ret);
}

int rest_refuse(struct arena *a, unsigned status, const char *text, struct rest_response *ret)
{
        const char *printable = arena_printable(a, text, strlen(text));

        return respond(a, status, printable ? json_pack("{s:s}", "error", printable) : NULL, ret);
}

int rest_fail(struct rest_exchange *x, unsigned status, const char *format, ...)
{
        va_list ap;
        char *text;

        va_start(ap, format);
        text = arena_vprintf(x->arena, format, ap);
        va_end(ap);
        return text && !x->out_of_memory && rest_refuse(x->arena, status, text, &x->reply->response) == 0 ? -EBADMSG : -ENOMEM;
}

const char *rest_quote(struct rest_exchange *x, const char *text)
{
        size_t n = strnlen(text, MAX_QUOTE + 1);
        const char *quote = arena_printable(x->arena, text, MIN(n, MAX_QUOTE));

        if (quote)
                quote = arena_printf(x->arena, "'%s%s'", quote, n > MAX_QUOTE ? "..." : "");
        x->out_of_memory |= !quote;
        return quote ?: "";
}

const char *rest_text(struct rest_exchange *x, const struct text *t)
{
        const char *copy = text_copy(x->arena, t);

        x->out_of_memory |= !copy;
        return copy ?: "";
}
