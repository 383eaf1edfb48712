/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char place[] = "@DATA@";

/* Writes <, > and & as \u00XX, so that no name can end the script element with the JSON. JSON has them in strings only, where the
 * escape means the same. */
static int add_bytes(const char *bytes, size_t n, void *userdata)
{
        struct text *t = userdata;

        for (size_t i = 0, k; i < n; i = k) {
                for (k = i; k < n && !strchr("<>&", bytes[k]);)
                        k++;
                text_add_n(t, bytes + i, k - i);
                if (k < n)
                        text_add(t, "\\u%04x", (unsigned char) bytes[k++]);
        }
        return t->failed ? -1 : 0;
}

int report_page(const json_t *root, struct text *ret)
{
        const char *at = memmem(report_html, report_html_size, place, strlen(place));
        const char *rest = at + strlen(place);

        assert(at);
        text_add_n(ret, report_html, (size_t) (at - report_html));
        if (json_dump_callback(root, add_bytes, ret, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII) < 0)
                return -ENOMEM;
        text_add_n(ret, rest, report_html_size - (size_t) (rest - report_html));
        return ret->failed ? -ENOMEM : 0;
}
