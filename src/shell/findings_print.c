/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/findings_print.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

bool findings_print_wants_color(FILE *stream)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        if (no_color && *no_color)
                return false;
        return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}

DEFINE_WORDS(findings_print_color, enum finding_severity, "",
                    [FINDING_NOTE] = "\033[36m", [FINDING_WARNING] = "\033[1;33m", [FINDING_ERROR] = "\033[1;31m")

/* Colors the word for the severity, which follows the place. */
static void print_colored(FILE *stream, const struct finding *item, const char *text)
{
        const char *word = finding_severity_to_string(item->severity), *start = text, *found;
        size_t skip = item->where.file ? strlen(item->where.file) : 0;

        if (skip <= strlen(text))
                start += skip;
        found = strstr(start, word);
        if (!found) {
                fputs(text, stream);
                return;
        }
        fprintf(stream, "%.*s%s%s" FINDINGS_PRINT_COLOR_OFF "%s", (int) (found - text), text, findings_print_color(item->severity), word,
                found + strlen(word));
}

int findings_print(FILE *stream, struct findings *findings, enum finding_severity least)
{
        bool color = findings_print_wants_color(stream);
        _cleanup_arena_ struct arena *a = arena_new();

        if (!a)
                return -ENOMEM;
        findings_sort(findings);
        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *item = &findings->items[i];
                const char *text;

                if (item->severity < least)
                        continue;
                text = finding_format(a, item);
                if (!text)
                        return -ENOMEM;
                if (color)
                        print_colored(stream, item, text);
                else
                        fputs(text, stream);
        }
        return findings->out_of_memory ? -ENOMEM : 0;
}

struct findings_count findings_print_count(const struct findings *findings)
{
        size_t errors = findings->n_errors + (findings->out_of_memory ? 1 : 0), warnings = findings->n_warnings;
        struct findings_count count = { "no errors" };

        if (errors > 0)
                (void) snprintf(count.text, sizeof(count.text), "%zu error%s", errors, text_plural(errors));
        if (warnings > 0)
                (void) sprintf(count.text + strlen(count.text), ", %zu warning%s", warnings, text_plural(warnings));
        return count;
}
