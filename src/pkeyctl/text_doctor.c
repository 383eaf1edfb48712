/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <sys/ioctl.h>

#include "pkeyctl/result_text.h"
#include "shell/findings_print.h"

#define MAX_PLACES 8 /* without -v */
#define MIN_WIDTH 40
#define MAX_WIDTH 120
#define INDENT 8
#define COLOUR_OFF "\033[0m"

/* Lines longer than that are hard to read, whatever the terminal can hold. */
static unsigned line_width(void)
{
        struct winsize size;
        const char *columns = getenv("COLUMNS");
        unsigned long width = 80;

        if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                width = size.ws_col;
        else if (columns && *columns >= '1' && *columns <= '9')
                width = strtoul(columns, NULL, 10);
        return (unsigned) MIN(MAX(width, MIN_WIDTH), MAX_WIDTH);
}

/* A paragraph behind a label, broken at blanks and, for lists, behind commas. */
static void print_wrapped(const char *label, const char *text, unsigned width)
{
        unsigned column = INDENT, gap = 0;

        printf("  %-*s", INDENT - 2, label);
        while (*text) {
                unsigned n = (unsigned) strcspn(text, " ,");

                n += text[n] == ',';
                if (column > INDENT && column + gap + n > width) {
                        printf("\n%*s", INDENT, "");
                        column = INDENT;
                        gap = 0;
                }
                printf("%*s%.*s", (int) gap, "", (int) n, text);
                column += gap + n;
                text += n;
                gap = (unsigned) strspn(text, " ");
                text += gap;
        }
        putchar('\n');
}

/* Nobody says "port 0 of leaf07". */
static const char *place_label(struct context *ctx, uint32_t port)
{
        const struct subnet_port *p = &ctx->subnet->ports[port];

        if (p->role == PORT_ENDPORT && p->number == 0)
                return output_node(ctx, port);
        return output_label(ctx, port);
}

static const char *place_text(struct context *ctx, const struct diagnosis_place *place)
{
        const char *label;

        if (place->port == SUBNET_NONE)
                return place->text;
        label = place_label(ctx, place->port);
        return *place->text ? output_format(ctx, "%s: %s", label, place->text) : label;
}

static void print_places(struct context *ctx, const struct diagnosis *d, unsigned width)
{
        uint32_t shown = ctx->options->verbose ? d->n_places : MIN(d->n_places, MAX_PLACES);
        uint32_t more = d->n_more + d->n_places - shown;

        if (d->n_ports > 0) {
                print_wrapped("where", output_folded(ctx, d->ports, d->n_ports), width);
                return;
        }
        for (uint32_t i = 0; i < shown; i++)
                print_wrapped(i == 0 ? "where" : "", place_text(ctx, &d->places[i]), width);
        if (more > 0)
                printf("%*sand %u more%s\n", INDENT, "", more, shown < d->n_places ? " (-v shows them)" : "");
}

static void print_title(const struct diagnosis *d)
{
        static const char *const colours[] = {
                        [FINDING_NOTE] = "\033[1m", [FINDING_WARNING] = "\033[1;33m", [FINDING_ERROR] = "\033[1;31m"};
        const struct diagnosis_words *words = &diagnosis_words[d->code];
        bool colour = findings_print_wants_colour(stdout);

        printf("%s%s%s: %s [%s]\n", colour ? colours[words->severity] : "", finding_severity_to_string(words->severity),
               colour ? COLOUR_OFF : "", d->title, words->code);
}

void text_doctor(struct context *ctx, const struct result *result)
{
        const struct diagnoses *all = &result->doctor.diagnoses;
        unsigned width = line_width();

        for (uint32_t i = 0; i < all->n; i++) {
                const struct diagnosis *d = &all->items[i];

                print_title(d);
                print_places(ctx, d, width);
                print_wrapped("why", diagnosis_words[d->code].why, width);
                print_wrapped("do", diagnosis_words[d->code].advice, width);
                putchar('\n');
        }
        if (result->status == EXIT_REFUSED)
                printf("this host only, for the fabric could not be looked at: ");
        else
                printf("%u nodes, %u endports: ", ctx->subnet->n_nodes, ctx->subnet->n_by_port_guid);
        if (all->n == 0)
                puts("nothing found");
        else
                printf("%u error%s, %u warning%s, %u note%s\n", all->n_errors, text_plural(all->n_errors),
                       all->n_warnings, text_plural(all->n_warnings), all->n_notes, text_plural(all->n_notes));
}
